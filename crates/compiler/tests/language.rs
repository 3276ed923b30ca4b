//! The rules of the language as readable chapters: `tests/language/*.md`.
//!
//! A Python block is a kernel's body (or a module, when it has a `def`). Comments state what
//! evaluation finds on their line: `# error: CODE`, `# warning: CODE`, `# reveals: TYPE` for the
//! type of the variable assigned there, and, once a specialization is known, `# launch error: CODE`
//! and `# prints: TEXT`. Anything that is not stated must not be found.
//!
//! The words of a fence say what the block holds for: `3.6` or `3.9` for one version of Triton
//! alone, `NAME=VALUE` for an argument of the specialization. Each block is evaluated twice: as
//! the editor does, with nothing known of the arguments, and compiled for the specialization.
//!
//! A fence that says `matrix` holds a table of result types instead: [`matrix`] tells how it is read.
//!
//! `tests/triton/verify.py` compares every block with Triton itself and records it in
//! `verified.tsv`; a block that is not there is refused, unless its fence says `ours`: a rule that
//! is not Triton's. A fence that says `open` is only inferred: it shows what is said, and what is
//! not, while nothing is known. One that says `run` is run by a test of the runner as well.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tile_compiler::builtins::TritonVersion;
use tile_compiler::diagnostic::{Diagnostic, Severity};
use tile_compiler::eval::{infer_file, lower_kernel};
use tile_compiler::hir::{Expr, ItemKind, Name, Stmt};
use tile_compiler::project::{MemorySources, Sources};
use tile_compiler::source::{FileId, LineIndex};
use tile_compiler::specialization::{ArgSpec, ConstArg, Origin, Specialization};

#[path = "literate/fixes.rs"]
mod fixes;
#[path = "language/matrix.rs"]
mod matrix;

use fixes::Fixes;

struct Block {
    line: usize,
    info: String,
    text: String,
    is_matrix: bool,
}

impl Block {
    fn words(&self) -> impl Iterator<Item = &str> {
        self.info.split_whitespace()
    }

    fn is(&self, word: &str) -> bool {
        self.words().any(|other| other == word)
    }

    fn versions(&self) -> Vec<TritonVersion> {
        let both = [("3.6", TritonVersion::V3_6), ("3.9", TritonVersion::V3_9)];
        let chosen: Vec<TritonVersion> =
            both.iter().filter(|(word, _)| self.words().any(|w| w == *word)).map(|v| v.1).collect();
        if chosen.is_empty() { both.map(|(_, version)| version).to_vec() } else { chosen }
    }

    /// The Python that the block states.
    fn python(&self, version: TritonVersion) -> String {
        match self.is_matrix {
            true => matrix::expand(&self.info, &self.text, version),
            false => self.text.clone(),
        }
    }

    /// Where a line of the Python is, for messages.
    fn place(&self, python: &str, line: usize) -> String {
        match (self.is_matrix, line.checked_sub(1).and_then(|at| python.lines().nth(at))) {
            (true, Some(text)) => {
                let cell = text.split("  # ").next().unwrap_or_default();
                format!("{} `{}`", self.line, cell.trim())
            }
            _ => (self.line + line).to_string(),
        }
    }

    /// What the kernel is compiled for.
    fn arguments(&self) -> BTreeMap<&str, &str> {
        if self.is_matrix {
            return ARGUMENTS.iter().copied().collect();
        }
        let given = self.words().filter_map(|word| word.split_once('='));
        ARGUMENTS.iter().copied().chain(given).collect()
    }

    /// 64-bit FNV-1a of fence and text, as `tests/triton/fixtures.py` computes it.
    fn key(&self) -> String {
        let bytes = self.info.bytes().chain([b'\n']).chain(self.text.bytes());
        let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        format!("{hash:016x}")
    }
}

/// What the arguments of a body are compiled for, unless the fence says otherwise.
const ARGUMENTS: &[(&str, &str)] =
    &[("x_ptr", "*fp32"), ("y_ptr", "*fp32"), ("n", "i32"), ("BLOCK", "64"), ("WIDE", "32")];

fn blocks(chapter: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (at, line) in chapter.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(info)) if info.starts_with("python") || info.starts_with("matrix") => {
                let (kind, info) = info.split_at("python".len());
                open = Some(Block {
                    line: at + 1,
                    info: info.trim().to_owned(),
                    text: String::new(),
                    is_matrix: kind == "matrix",
                });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(block), None) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            _ => {}
        }
    }
    blocks
}

const PRELUDE: &str =
    "import triton\nimport triton.language as tl\nfrom triton.language.extra import libdevice\n";

/// The block as a module, and the number of lines before its first one.
fn module(text: &str) -> (String, usize) {
    if text.contains("def ") {
        return (format!("{PRELUDE}{text}"), 3);
    }
    let mut module = format!(
        "{PRELUDE}@triton.jit\ndef kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr, WIDE: tl.constexpr):\n"
    );
    for line in text.lines() {
        let _ = writeln!(module, "    {line}");
    }
    module.push_str("    tl.store(y_ptr, 0.0)\n");
    (module, 5)
}

/// `(line, what)` of the statements in comments.
fn expected(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let Some((_, comment)) = line.split_once("# ") else { continue };
        for kind in ["error: ", "launch error: ", "warning: ", "reveals: ", "prints: "] {
            if let Some(what) = comment.strip_prefix(kind) {
                found.push((at + 1, format!("{kind}{}", what.trim())));
            }
        }
    }
    found
}

/// A block as a file of its own.
struct Given {
    sources: MemorySources,
    file: FileId,
    lines: LineIndex,
    offset: usize,
}

impl Given {
    fn new(python: &str) -> Given {
        let (text, offset) = module(python);
        let mut sources = MemorySources::new(Vec::new());
        let file = sources.add("block.py", &text);
        Given { sources, file, lines: LineIndex::new(&text), offset }
    }

    /// The line of the block, from 1.
    fn line(&self, byte: u32) -> usize {
        (self.lines.line(byte) as usize + 1).saturating_sub(self.offset)
    }

    fn findings(&self, diagnostics: &[Diagnostic]) -> Vec<(usize, String)> {
        let stated = diagnostics.iter().filter(|found| found.severity != Severity::Info);
        let named = stated.map(|found| {
            let kind = if found.severity == Severity::Error { "error" } else { "warning" };
            (self.line(found.primary.range.start), format!("{kind}: {}", found.code))
        });
        named.collect()
    }
}

/// What the editor finds: nothing is known of the arguments.
fn inferred(given: &Given, version: TritonVersion, reveals: &[usize]) -> Vec<(usize, String)> {
    let inference = infer_file(&given.sources, given.file, version);
    let module = given.sources.module(given.file).expect("the block is a file");
    let mut found = Vec::new();
    for kernel in &inference.kernels {
        found.extend(given.findings(&kernel.diagnostics));
        let function = module.items.iter().find_map(|item| match &item.kind {
            ItemKind::Function(function) if item.name_range == kernel.range => Some(function),
            _ => None,
        });
        let Some(function) = function else { continue };
        for (id, stmt) in &function.body.stmts {
            let target = match stmt {
                Stmt::Assign { targets, .. } => targets[0],
                Stmt::AnnAssign { target, .. } | Stmt::AugAssign { target, .. } => *target,
                _ => continue,
            };
            let line = given.line(function.map.stmts[id].start);
            if !reveals.contains(&line) {
                continue;
            }
            if let Expr::Name(_) = function.body.exprs[target] {
                let text = kernel.types.type_text(target).unwrap_or_else(|| "?".to_owned());
                found.push((line, format!("reveals: {text}")));
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

/// An argument of a specialization: a number, a string in quotes, or a type.
fn argument(text: &str) -> ArgSpec {
    if let Ok(value) = text.parse() {
        return ArgSpec::Constexpr(ConstArg::Int(value));
    }
    match text {
        "None" => ArgSpec::Constexpr(ConstArg::None),
        "True" | "False" => ArgSpec::Constexpr(ConstArg::Bool(text == "True")),
        _ => match text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
            Some(text) => ArgSpec::Constexpr(ConstArg::Str(Arc::from(text))),
            None => ArgSpec::Runtime { signature: Arc::from(text), divisible_by_16: false },
        },
    }
}

/// What compiling for the specialization finds, with the text printed at compile time.
fn compiled(given: &Given, block: &Block, version: TritonVersion) -> Vec<(usize, String)> {
    let args = block.arguments().into_iter();
    let args = args.map(|(name, text)| (Name::from(name), argument(text))).collect();
    let spec = Specialization::new(Origin::Flags, args);
    let result = lower_kernel(&given.sources, given.file, "kernel", &spec, version);
    let mut found = given.findings(&result.diagnostics);
    if let Some(function) = &result.function
        && let Err(errors) = tile_compiler::ir::verify(function)
    {
        found.push((0, format!("ill-formed IR: {errors:?}")));
    }
    let prints = result.prints.into_iter();
    found.extend(
        prints.map(|(at, text)| (given.line(at.range.start), format!("prints: {}", text.trim()))),
    );
    found.sort();
    found.dedup();
    found
}

/// A revealed type without the shape of the tile.
fn without_shape(what: &str) -> String {
    match what.strip_prefix("reveals: tile<").and_then(|ty| ty.strip_suffix('>')) {
        Some(ty) => format!("reveals: {}", ty.rsplit(" x ").next().unwrap_or(ty)),
        None => what.to_owned(),
    }
}

fn check(chapter: &Path, problems: &mut String) -> usize {
    let text = std::fs::read_to_string(chapter).expect("the chapter is readable");
    let name = chapter.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut count = 0;
    for block in blocks(&text) {
        for version in block.versions() {
            let python = block.python(version);
            let stated = expected(&python);
            let lines_of = |kind: &str| -> Vec<usize> {
                stated.iter().filter(|(_, what)| what.starts_with(kind)).map(|at| at.0).collect()
            };
            let given = Given::new(&python);
            count += 1;
            let mut report = |how: &str, wanted: &[(usize, String)], found: &[(usize, String)]| {
                let place = |line: &usize| {
                    format!("{name}:{} ({version}, {how})", block.place(&python, *line))
                };
                for (line, what) in wanted.iter().filter(|item| !found.contains(item)) {
                    let _ = writeln!(problems, "{}: missing {what}", place(line));
                }
                for (line, what) in found.iter().filter(|item| !wanted.contains(item)) {
                    let _ = writeln!(problems, "{}: found {what}", place(line));
                }
            };
            let at_edit = |what: &&(usize, String)| {
                !what.1.starts_with("launch error") && !what.1.starts_with("prints")
            };
            let wanted: Vec<_> = stated.iter().filter(at_edit).cloned().collect();
            let mut found = inferred(&given, version, &lines_of("reveals"));
            if block.is_matrix {
                found.iter_mut().for_each(|(_, what)| *what = without_shape(what));
            }
            report("inferred", &wanted, &found);
            let wanted: Vec<_> = stated
                .iter()
                .filter(|(_, what)| !what.starts_with("reveals"))
                .map(|(line, what)| (*line, what.trim_start_matches("launch ").to_owned()))
                .collect();
            if !block.is("open") {
                report("compiled", &wanted, &compiled(&given, &block, version));
            }
        }
    }
    count
}

fn chapters() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/language");
    let mut chapters: Vec<PathBuf> = std::fs::read_dir(dir)
        .expect("tests/language exists")
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    chapters.sort();
    chapters
}

#[test]
fn chapters_hold() {
    let mut problems = String::new();
    let count: usize = chapters().iter().map(|chapter| check(chapter, &mut problems)).sum();
    assert!(count > 20, "too few blocks: {count}");
    assert!(problems.is_empty(), "{problems}");
}

/// Every fix of every finding in the chapters, made by itself: what comes out parses, and the code is
/// found less often.
#[test]
fn fixes_resolve_what_they_are_of() {
    let mut fixes = Fixes::default();
    for chapter in chapters() {
        let text = std::fs::read_to_string(&chapter).expect("the chapter is readable");
        let name = chapter.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let firing = blocks(&text).into_iter().filter(|block| {
            !block.is_matrix && block.text.contains("error: ") | block.text.contains("warning: ")
        });
        for block in firing {
            let version = block.versions()[0];
            let (text, _) = module(&block.python(version));
            let place = format!("{name}:{}", block.line);
            fixes.make(&place, &text, |text| parsed_and_found(text, version));
        }
    }
    fixes.expect(5);
}

/// Whether a module has no syntax errors, and what the editor finds in it.
fn parsed_and_found(text: &str, version: TritonVersion) -> (bool, Vec<Diagnostic>) {
    let mut sources = MemorySources::new(Vec::new());
    let file = sources.add("block.py", text);
    let inference = infer_file(&sources, file, version);
    let found = inference.kernels.into_iter().flat_map(|kernel| kernel.diagnostics).collect();
    (sources.parse(file).is_some_and(|parse| parse.diagnostics(file).is_empty()), found)
}

/// The cases of Triton's own tests of compile errors, each in a block of its own. Prints how many
/// ran, past the capture of the test runner.
#[test]
fn compile_errors_have_the_right_family_and_line() {
    let chapter =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/language/compile_errors.md");
    let text = std::fs::read_to_string(&chapter).expect("the chapter is readable");
    let refused =
        |block: &Block| expected(&block.text).iter().any(|(_, what)| what.contains("error: "));
    let (refused, accepted): (Vec<_>, Vec<_>) = blocks(&text).into_iter().partition(refused);
    let mut problems = String::new();
    let runs = check(&chapter, &mut problems);
    let summary = format!(
        "compile errors: {} refused and {} accepted kernels, {runs} runs with both versions of Triton",
        refused.len(),
        accepted.len()
    );
    let _ = std::io::Write::write_all(&mut std::io::stdout(), format!("{summary}\n").as_bytes());
    assert!(refused.len() + accepted.len() >= 32, "cases are missing: {summary}");
    assert!(problems.is_empty(), "{problems}");
}

#[test]
fn the_index_lists_every_chapter() {
    let chapters = chapters();
    let names = chapters.iter().filter_map(|chapter| chapter.file_name()?.to_str());
    let index = chapters.iter().find(|chapter| chapter.ends_with("README.md"));
    let index = std::fs::read_to_string(index.expect("there is an index")).expect("readable");
    let missing: Vec<&str> = names
        .filter(|name| *name != "README.md" && !index.contains(&format!("({name})")))
        .collect();
    assert!(missing.is_empty(), "tests/language/README.md does not list {missing:?}");
}

/// Each block and version is in the record that the comparison with Triton writes, and nothing else.
#[test]
fn fixtures_were_compared_with_triton() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/language");
    let record = std::fs::read_to_string(dir.join("verified.tsv")).expect("the record is readable");
    let (mut missing, mut rows) = (String::new(), BTreeSet::new());
    for chapter in chapters() {
        let text = std::fs::read_to_string(&chapter).expect("the chapter is readable");
        let name = chapter.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for block in blocks(&text) {
            for version in block.versions() {
                let row = format!("{name}\t{}\t{version}.", block.key());
                if block.is("ours") || block.is("open") {
                    continue;
                }
                if !record.contains(&row) {
                    let _ =
                        writeln!(missing, "{name}:{} is not verified for {version}", block.line);
                }
                rows.insert(row);
            }
        }
    }
    assert!(
        missing.is_empty(),
        "run tests/triton/verify.py with Triton 3.6 and with 3.9 to compare them:\n{missing}"
    );
    let is_stale = |row: &&str| !rows.iter().any(|known| row.starts_with(known.as_str()));
    let stale: Vec<&str> = record.lines().skip(1).filter(is_stale).collect();
    assert!(stale.is_empty(), "rows of fixtures that are gone; drop them: {stale:#?}");
}
