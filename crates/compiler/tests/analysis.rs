//! Runs the chapters of `tests/analysis`: what analyses of kernels under known launches find, and
//! where they must stay silent.
//!
//! A chapter is Markdown. Each `python` block is a module (its imports are added) whose lines end
//! in `# error: CODE`, `# warning: CODE`, `# info: CODE` or `# hint: CODE` where something must be found; nothing
//! else may be found. Most blocks have no such line. What the family `resource` finds needs
//! configurations to be lowered further, which is done for its own chapter and explanations.

use std::cell::Cell;
use std::fmt::Write as _;
use std::panic;
use std::path::{Path, PathBuf};

use tile_compiler::analysis::{self, CompiledKernel, Lints, settle};
use tile_compiler::artifact::{Limit, Resources};
use tile_compiler::diagnostic::{Code, Diagnostic, Severity};
use tile_compiler::eval::Rules;
use tile_compiler::gpu::{self, GpuTarget};
use tile_compiler::ir::{Function, verify};
use tile_compiler::passes;
use tile_compiler::project::{self, ItemRef, MemorySources, Sources};
use tile_compiler::source::{FileId, LineIndex};
use tile_compiler::specialization::{Discovery, Flags, Origin, Specialization, discover};

#[path = "literate/fixes.rs"]
mod fixes;
#[path = "analysis/mutations.rs"]
mod mutations;

use fixes::Fixes;

const IMPORTS: &str = "import torch\nimport triton\nimport triton.language as tl\n";

/// What lowering a kernel for sm_90a under `spec` finds, as the worker and its client do it.
fn compiled(
    sources: &MemorySources,
    at: ItemRef,
    spec: &Specialization,
    mut func: Function,
) -> Vec<Diagnostic> {
    passes::optimize(&mut func).expect("the passes leave the function well-formed");
    let target = GpuTarget { capability: 90, has_warp_groups: true };
    let tile = verify(&func).expect("the function is well-formed");
    let gpu = gpu::lower(tile, target).expect("the kernel is lowered");
    let over = analysis::resources::shared_memory(tile, target, &gpu, "sm_90a");
    let over = over.expect("shared memory is planned").map(|over| over.finding);
    let found = Vec::from_iter(over);
    analysis::check_compiled(sources, at, spec, CompiledKernel::failed(&found, "sm_90a"))
}

/// Every finding in a file, as `tile check` reports them; `compile` is its flag.
fn findings(sources: &MemorySources, file: FileId, text: &str, compile: bool) -> Vec<Diagnostic> {
    let rules = Rules::default();
    let mut found = Vec::new();
    let parse = sources.parse(file).map(|parse| parse.diagnostics(file));
    found.extend(parse.into_iter().flatten());
    for kernel in rules.infer_file(sources, file).kernels {
        found.extend(kernel.diagnostics);
    }
    found.extend(analysis::check_launches(sources, file));
    let flags = Flags::default();
    let discovery = Discovery::new(sources, &flags);
    found.extend(analysis::check_host(sources, &discovery, file));
    found.extend(analysis::check_results(
        sources,
        rules,
        &discovery,
        file,
        &tile_executor::Executor,
    ));
    for at in project::kernels(sources, file) {
        let specs = discover(sources, at, &Flags::default());
        let mut proved = Vec::new();
        let mut lowering = rules.lowering(sources, at);
        for spec in &specs {
            if compile && spec.is_certain() {
                let lowered = lowering.lower(spec).1.function;
                found.extend(
                    lowered.map(|func| compiled(sources, at, spec, func)).into_iter().flatten(),
                );
            }
            let checked =
                analysis::check_specialization(&mut lowering, spec, true, &tile_executor::Executor)
                    .into_iter();
            proved.push(checked.map(|(found, at)| at.attach(found, sources)).collect::<Vec<_>>());
        }
        analysis::reconcile(&specs.iter().collect::<Vec<_>>(), &mut proved);
        found.extend(proved.into_iter().flatten());
    }
    let module = sources.module(file).expect("the file was added");
    let lines = LineIndex::new(text);
    settle(&mut found, file, &module, (&lines, text), &Lints::default());
    found
}

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "info",
        Severity::Hint => "hint",
    }
}

/// Lines and findings that a block's comments ask for.
fn expected(text: &str) -> Vec<(u32, String)> {
    let mut expected = Vec::new();
    for (line, content) in text.lines().enumerate() {
        for kind in ["error", "warning", "info", "hint"] {
            if let Some((_, codes)) = content.split_once(&format!("# {kind}: ")) {
                let codes = codes.split(", ").map(|code| format!("{kind}: {}", code.trim()));
                expected.extend(codes.map(|code| (line as u32, code)));
            }
        }
    }
    expected.sort();
    expected
}

/// What begins another file of a block, with its path; the first is `block.py`.
const FILE: &str = "# file: ";

/// The text of a block's first file, and the paths and texts of the others.
fn files(text: &str) -> (&str, Vec<(&str, &str)>) {
    let mut parts = text.split(FILE);
    let first = parts.next().unwrap_or_default();
    (first, parts.filter_map(|part| part.split_once('\n')).collect())
}

fn check_block(text: &str, compile: bool) -> Result<(), String> {
    let (text, others) = files(text);
    let text = format!("{IMPORTS}{text}");
    let mut sources = MemorySources::new(vec![String::new()]);
    let file = sources.add("block.py", &text);
    for (path, text) in others {
        sources.add(path, &format!("{IMPORTS}{text}"));
    }
    let lines = LineIndex::new(&text);
    let found = findings(&sources, file, &text, compile);
    let mut shown: Vec<(u32, String)> = found
        .iter()
        .map(|found| {
            let line = lines.line(found.primary.range.start);
            (line, format!("{}: {}", severity(found.severity), found.code))
        })
        .collect();
    shown.sort();
    let wanted = expected(&text);
    if shown == wanted {
        return Ok(());
    }
    let messages: Vec<String> =
        found.iter().map(|found| format!("  {}: {}", found.code, found.message)).collect();
    Err(format!("wanted {wanted:?}\nfound {shown:?}\n{}", messages.join("\n")))
}

/// The `python` blocks of a chapter with the lines they start on.
fn blocks(chapter: &str) -> Vec<(usize, String)> {
    let mut blocks = Vec::new();
    let mut current: Option<(usize, String)> = None;
    for (line, content) in chapter.lines().enumerate() {
        match (&mut current, content.trim_end()) {
            (None, "```python") => current = Some((line + 2, String::new())),
            (Some(_), "```") => blocks.extend(current.take()),
            (Some((_, text)), _) => {
                let _ = writeln!(text, "{content}");
            }
            _ => {}
        }
    }
    blocks
}

/// The names and texts of all chapters.
fn chapters() -> Vec<(String, String)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/analysis");
    let mut chapters: Vec<PathBuf> = std::fs::read_dir(dir)
        .expect("tests/analysis exists")
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    chapters.sort();
    let read = |chapter: PathBuf| {
        let text = std::fs::read_to_string(&chapter).expect("the chapter is readable");
        (chapter.file_name().unwrap_or_default().to_string_lossy().into_owned(), text)
    };
    chapters.into_iter().map(read).collect()
}

#[test]
fn chapters_hold() {
    let mut problems = String::new();
    let mut counts = (0, 0);
    for (name, text) in chapters() {
        for (line, block) in blocks(&text) {
            match expected(&block).is_empty() {
                true => counts.1 += 1,
                false => counts.0 += 1,
            }
            if let Err(problem) = check_block(&block, name == "resource.md") {
                let _ = writeln!(problems, "{name}:{line}: {problem}");
            }
        }
    }
    assert!(problems.is_empty(), "{problems}");
    assert!(counts.0 > 10, "too few blocks: {counts:?}");
    assert!(counts.1 >= 2 * counts.0, "silence needs twice the blocks: {counts:?}");
}

/// Codes without kernels as examples, with the reason.
const WITHOUT_EXAMPLES: &[(&str, &str)] = &[
    ("syntax/unreadable", "the file is no text"),
    ("name/no-kernel", "the command line is wrong"),
    ("resource/spills", "the assembler decides"),
    ("resource/occupancy", "the assembler decides"),
    ("constexpr/inactive", "shown in editors alone; `crates/lsp/tests/lsp/tags.rs`"),
    ("name/unused", "shown in editors alone; `crates/lsp/tests/lsp/tags.rs`"),
    ("name/deprecated", "shown in editors alone; `crates/lsp/tests/lsp/tags.rs`"),
];

/// The examples of each explanation: the wrong one has the finding, the right one has none.
#[test]
fn explanations_hold() {
    let mut problems = String::new();
    for code in Code::ALL {
        let info = code.info();
        if WITHOUT_EXAMPLES.iter().any(|(name, _)| *name == info.name) {
            continue;
        }
        let examples = blocks(info.explanation);
        if examples.len() != 2 {
            let _ = writeln!(problems, "{} has {} examples", info.name, examples.len());
        }
        for (index, (_, block)) in examples.into_iter().enumerate() {
            let text = format!("{IMPORTS}{block}");
            let mut sources = MemorySources::new(Vec::new());
            let file = sources.add("block.py", &text);
            let found = findings(&sources, file, &text, code.is_resource());
            let has = found.iter().any(|found| found.code == *code);
            if has != (index == 0) || (index > 0 && !found.is_empty()) {
                let _ = writeln!(problems, "{} example {index}: {found:#?}", info.name);
            }
        }
    }
    assert!(problems.is_empty(), "{problems}");
}

/// The blocks of a chapter that expect an overflow, with their fixes applied: nothing is found then.
#[test]
fn overflows_are_resolved_by_their_fixes() {
    let (fixed, without) = apply_fixes("overflow.md", Code::IndexOverflow);
    assert!(fixed >= 10 && without >= 2, "too few overflows: {fixed}, {without}");
}

#[test]
fn undefined_lanes_are_resolved_by_their_fixes() {
    let (fixed, _) = apply_fixes("mask.md", Code::UndefinedLanes);
    assert!(fixed >= 5, "too few undefined lanes: {fixed}");
}

/// What lanes are given that a mask leaves out changes nothing of what combines them; where that is not
/// known, no edit is offered.
#[test]
fn undefined_lanes_are_given_what_changes_nothing() {
    for (combined, other) in [
        ("tl.sum(x * x)", Some("0.0")),
        ("tl.max(x)", Some("float(\"-inf\")")),
        ("tl.min(x)", Some("float(\"inf\")")),
        ("tl.min(-x)", None),
        ("tl.max(tl.abs(x))", None),
        ("tl.argmax(x, 0)", None),
        ("tl.sum(tl.exp(x))", Some("float(\"-inf\")")),
        ("tl.sum(tl.exp2((x - 3) * 1.44) / 2)", Some("float(\"-inf\")")),
        ("tl.sum(tl.exp(-x))", None),
        ("tl.sum(tl.exp(x * scale))", None),
        ("tl.sum(tl.exp(x) + 1)", None),
    ] {
        let text = format!(
            "{IMPORTS}@triton.jit\ndef k(x_ptr, y_ptr, n, scale, BLOCK: tl.constexpr):\n    \
             i = tl.arange(0, BLOCK)\n    x = tl.load(x_ptr + i, mask=i < n)\n    \
             tl.store(y_ptr, {combined})\n\n# tile: x, y = randn(100), zeros(1)\n\
             # tile: k[(1,)](x, y, 100, 0.5, BLOCK=128)\n"
        );
        let (_, found) = parsed_and_found(&text);
        let [finding] = &found[..] else { panic!("{combined}: {found:#?}") };
        assert_eq!(finding.code, Code::UndefinedLanes);
        let given = finding.fixes.first().map(|fix| fix.edits[0].text.clone());
        assert_eq!(given, other.map(|other| format!(", other={other}")), "{combined}");
    }
}

/// Every fix of every finding in the chapters, made by itself: what comes out parses, and the code is
/// found less often.
#[test]
fn fixes_resolve_what_they_are_of() {
    let mut fixes = Fixes::default();
    for (name, chapter) in chapters() {
        for (line, block) in blocks(&chapter) {
            if !expected(&block).is_empty() {
                let text = format!("{IMPORTS}{block}");
                fixes.make(&format!("{name}:{line}"), &text, parsed_and_found);
            }
        }
    }
    fixes.expect(7);
}

/// Whether a module has no syntax errors, and every finding in it.
fn parsed_and_found(text: &str) -> (bool, Vec<Diagnostic>) {
    let mut sources = MemorySources::new(Vec::new());
    let file = sources.add("block.py", text);
    let found = findings(&sources, file, text, false);
    let parses = sources.parse(file).is_some_and(|parse| parse.diagnostics(file).is_empty());
    (parses, found)
}

/// Two accesses with the same offset written out: what overflows is in each one's own text.
#[test]
fn an_overflow_is_shown_in_the_address_of_its_access() {
    let text = format!(
        "{IMPORTS}@triton.jit\ndef k(x_ptr, stride):\n    row = tl.program_id(0)\n    \
         x = tl.load(x_ptr + row * stride)\n    tl.store(x_ptr + row * stride, x + 1)\n\n\
         # tile: x = empty(70_000, 65_536, dtype=int8)\n# tile: k[(70_000,)](x, x.stride(0))\n"
    );
    let mut sources = MemorySources::new(Vec::new());
    let file = sources.add("block.py", &text);
    let found = findings(&sources, file, &text, false);
    let overflows: Vec<_> =
        found.iter().filter(|found| found.code == Code::IndexOverflow).collect();
    assert_eq!(overflows.len(), 2, "{found:#?}");
    for overflow in overflows {
        let place = overflow.related[0].at.range;
        assert!(overflow.primary.range.contains_range(place), "{overflow:#?}");
        assert_eq!(&text[place.as_usize()], "row * stride");
    }
}

/// Applies the first edit of each finding of `code` in a chapter's blocks, and checks again until
/// none is left; then nothing else may be found. Returns how many edits there were, and in how
/// many blocks, which say `no edit`, a finding had none.
fn apply_fixes(chapter: &str, code: Code) -> (usize, usize) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/analysis").join(chapter);
    let chapter = std::fs::read_to_string(path).expect("the chapter exists");
    let (mut fixed, mut without) = (0, 0);
    for (line, block) in blocks(&chapter) {
        let mut text = format!("{IMPORTS}{block}");
        let mut rounds = 0;
        loop {
            let mut sources = MemorySources::new(Vec::new());
            let file = sources.add("block.py", &text);
            let found = findings(&sources, file, &text, false);
            let Some(finding) = found.iter().find(|found| found.code == code) else {
                // An edit changes neither how fast an access is nor what a hint says of it.
                let wrong = found.iter().any(|found| found.severity != Severity::Hint);
                assert!(!wrong || rounds == 0, "line {line}: {found:#?}\n{text}");
                break;
            };
            let Some(fix) = finding.fixes.first() else {
                without += 1;
                assert!(block.contains("no edit"), "line {line}: no edit: {finding:#?}");
                break;
            };
            assert!(!block.contains("no edit"), "line {line}: {fix:#?}");
            let [edit] = fix.edits.as_slice() else { panic!("one edit: {fix:#?}") };
            text.replace_range(edit.at.range.as_usize(), &edit.text);
            fixed += 1;
            rounds += 1;
            assert!(rounds <= 4, "line {line}: the edits do not end\n{text}");
        }
    }
    (fixed, without)
}

/// What the assembler reports becomes a finding where it is news.
#[test]
fn reports_of_the_assembler_are_judged() {
    let text = format!(
        "{IMPORTS}@triton.jit\ndef k(x_ptr):\n    tl.store(x_ptr, 1.0)\n\n\
         # tile: x = zeros(1)\n# tile: k[(1,)](x)\n"
    );
    let mut sources = MemorySources::new(Vec::new());
    let file = sources.add("block.py", &text);
    let at = project::kernels(&sources, file)[0];
    let specs = discover(&sources, at, &Flags::default());
    let fine = Resources {
        registers: 32,
        shared_bytes: 0,
        spill_load_bytes: 0,
        spill_store_bytes: 0,
        stack_bytes: 0,
        occupancy: 1.0,
        limited_by: Limit::Warps,
        source: "ptxas 12.9.86".to_owned(),
    };
    let judge = |resources: Resources, has_products: bool| {
        let compiled = CompiledKernel {
            findings: &[],
            resources: Some(&resources),
            has_products,
            arch: "sm_90a",
        };
        let found = analysis::check_compiled(&sources, at, &specs[0], compiled);
        assert!(found.iter().all(|found| found.severity == Severity::Info));
        assert!(found.iter().all(|found| {
            let place = &text[found.primary.range.as_usize()];
            place == "k" && found.notes.iter().any(|note| note.contains("ptxas 12.9.86"))
        }));
        found.iter().map(|found| found.code).collect::<Vec<_>>()
    };
    let spilled = Resources { spill_store_bytes: 8, spill_load_bytes: 12, ..fine.clone() };
    let by =
        |occupancy: f64, limited_by: Limit| Resources { occupancy, limited_by, ..fine.clone() };
    assert_eq!(judge(spilled.clone(), true), [Code::Spills]);
    assert_eq!(judge(by(0.25, Limit::Registers), false), [Code::Occupancy]);
    assert_eq!(judge(fine.clone(), false), []);
    assert_eq!(judge(Resources { stack_bytes: 16, ..fine.clone() }, false), []);
    assert_eq!(judge(by(0.25, Limit::Registers), true), [], "accumulators fill registers");
    assert_eq!(judge(by(0.125, Limit::Shared), false), []);
    assert_eq!(judge(by(0.5, Limit::Registers), false), []);
    let guessed = Specialization { origin: Origin::Guess, ..specs[0].clone() };
    let compiled = CompiledKernel {
        findings: &[],
        resources: Some(&spilled),
        has_products: false,
        arch: "sm_90a",
    };
    assert_eq!(analysis::check_compiled(&sources, at, &guessed, compiled), []);
}

/// The analyses can be given up at any moment, and soon after it is asked for.
#[test]
fn work_can_be_given_up() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/matmul.py");
    let text = std::fs::read_to_string(path).expect("the example exists");
    let mut sources = MemorySources::new(Vec::new());
    let file = sources.add("matmul.py", &text);
    let at = project::kernels(&sources, file)[0];
    let spec = &discover(&sources, at, &Flags::default())[0];
    let func = Rules::default().lower_kernel(&sources, at, spec).function;
    let func = func.expect("the example lowers");
    let calls = Cell::new(0u32);
    analysis::check(&func, spec, 90, &|| calls.set(calls.get() + 1));
    let all = calls.take();
    assert!(all > 500, "{all} chances to give up");
    for last in [1, all / 2, all] {
        let given_up = panic::catch_unwind(panic::AssertUnwindSafe(|| {
            analysis::check(&func, spec, 90, &|| {
                calls.set(calls.get() + 1);
                if calls.get() == last {
                    panic::resume_unwind(Box::new("given up"));
                }
            })
        }));
        assert!(given_up.is_err());
        assert_eq!(calls.take(), last);
    }
}

/// Working kernels are left alone.
#[test]
fn examples_are_right() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut problems = String::new();
    let mut count = 0;
    for entry in std::fs::read_dir(dir).expect("examples exist").filter_map(Result::ok) {
        if entry.path().extension().is_none_or(|extension| extension != "py") {
            continue;
        }
        let Ok(text) = std::fs::read_to_string(entry.path()) else { continue };
        let mut sources = MemorySources::new(Vec::new());
        let name = entry.file_name().to_string_lossy().into_owned();
        let file = sources.add(&name, &text);
        count += 1;
        for found in findings(&sources, file, &text, false) {
            // What other examples define is not at hand here.
            let is_import = found.code == Code::NotUnderstood;
            if found.severity >= Severity::Warning && !is_import {
                let _ = writeln!(problems, "{name}: {}: {}", found.code, found.message);
            }
        }
    }
    assert!(count > 20, "too few examples: {count}");
    assert!(problems.is_empty(), "{problems}");
}
