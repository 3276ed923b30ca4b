//! The rules of the language as readable chapters: `tests/language/*.md`.
//!
//! A Python block is a kernel's body (or a module, when it has a `def`). Comments state what
//! evaluation finds on their line: `# error: CODE`, `# warning: CODE`, and `# reveals: TYPE` for
//! the type of the variable assigned there. A block holds for both Triton versions unless its
//! fence says `python 3.6` or `python 3.9`. Anything that is not stated must not be found.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use tile_compiler::diagnostic::Severity;
use tile_compiler::eval::infer_file;
use tile_compiler::hir::{Expr, ItemKind, Stmt};
use tile_compiler::project::{MemorySources, Sources};
use tile_compiler::source::LineIndex;
use tile_compiler::specialization::TritonVersion;

struct Block {
    line: usize,
    versions: Vec<TritonVersion>,
    text: String,
}

fn blocks(chapter: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (at, line) in chapter.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(info)) if info.starts_with("python") => {
                let versions = match info.trim_start_matches("python").trim() {
                    "3.6" => vec![TritonVersion::V3_6],
                    "3.9" => vec![TritonVersion::V3_9],
                    _ => vec![TritonVersion::V3_6, TritonVersion::V3_9],
                };
                open = Some(Block { line: at + 1, versions, text: String::new() });
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
        for kind in ["error: ", "warning: ", "reveals: "] {
            if let Some(what) = comment.strip_prefix(kind) {
                found.push((at + 1, format!("{kind}{}", what.trim())));
            }
        }
    }
    found
}

fn found(text: &str, version: TritonVersion, reveals: &[usize]) -> Vec<(usize, String)> {
    let (module_text, offset) = module(text);
    let mut sources = MemorySources::new(Vec::new());
    let file = sources.add("block.py", &module_text);
    let lines = LineIndex::new(&module_text);
    let line_of =
        |offset_bytes: u32| (lines.line(offset_bytes) as usize + 1).saturating_sub(offset);
    let inference = infer_file(&sources, file, version);
    let module = sources.module(file).expect("the block is a file");
    let mut found = Vec::new();
    for kernel in &inference.kernels {
        for diagnostic in &kernel.diagnostics {
            let kind = match diagnostic.severity {
                Severity::Error => "error",
                _ => "warning",
            };
            let line = line_of(diagnostic.primary.range.start);
            found.push((line, format!("{kind}: {}", diagnostic.code)));
        }
        let function = module.items.iter().find_map(|item| match &item.kind {
            ItemKind::Function(function) if item.name_range == kernel.range => Some(function),
            _ => None,
        });
        let Some(function) = function else { continue };
        for (id, stmt) in &function.body.stmts {
            let (Stmt::Assign { .. } | Stmt::AnnAssign { .. } | Stmt::AugAssign { .. }) = stmt
            else {
                continue;
            };
            let line = line_of(function.map.stmts[id].start);
            if !reveals.contains(&line) {
                continue;
            }
            let target = match stmt {
                Stmt::Assign { targets, .. } => targets[0],
                Stmt::AnnAssign { target, .. } | Stmt::AugAssign { target, .. } => *target,
                _ => continue,
            };
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

fn check(chapter: &Path, problems: &mut String) -> usize {
    let text = std::fs::read_to_string(chapter).expect("the chapter is readable");
    let name = chapter.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut count = 0;
    for block in blocks(&text) {
        let mut wanted = expected(&block.text);
        wanted.sort();
        let reveals: Vec<usize> = wanted
            .iter()
            .filter(|(_, what)| what.starts_with("reveals"))
            .map(|(line, _)| *line)
            .collect();
        for version in &block.versions {
            let found = found(&block.text, *version, &reveals);
            count += 1;
            let missing = wanted.iter().filter(|item| !found.contains(item));
            let surplus = found.iter().filter(|item| !wanted.contains(item));
            for (line, what) in missing {
                let _ =
                    writeln!(problems, "{name}:{} ({version}): missing {what}", block.line + line);
            }
            for (line, what) in surplus {
                let _ =
                    writeln!(problems, "{name}:{} ({version}): found {what}", block.line + line);
            }
        }
    }
    count
}

#[test]
fn chapters_hold() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/language");
    let mut chapters: Vec<PathBuf> = std::fs::read_dir(dir)
        .expect("tests/language exists")
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    chapters.sort();
    let mut problems = String::new();
    let count: usize = chapters.iter().map(|chapter| check(chapter, &mut problems)).sum();
    assert!(count > 20, "too few blocks: {count}");
    assert!(problems.is_empty(), "{problems}");
}
