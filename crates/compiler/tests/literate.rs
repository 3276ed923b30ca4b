//! Counts, for each diagnostic code, the literate cases in which it must be found and those of the
//! same construct in which it must not: at least twice as many. Prints both.
//!
//! A case is a line of a kernel in `tests/language` and `tests/analysis`. A line that a comment
//! says a code of is one where it must be found. Anything that is not said must not be found, so
//! every other line with the construct that the code is about, as [`CONSTRUCTS`] has it, is one
//! where it must be silent. That both hold is what the chapters' own tests are for.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use tile_compiler::diagnostic::Code;

/// Codes that no kernel alone shows, with the tests that do.
const ELSEWHERE: &[(&str, &str)] = &[
    ("syntax/unreadable", "crates/tile/tests/cli/usage.rs: the file is no text"),
    ("name/no-kernel", "crates/tile/tests/cli/usage.rs: the command line is wrong"),
    (
        "name/unknown-code",
        "crates/compiler/src/analysis/allowed.rs: a comment ends with what it allows",
    ),
    ("resource/spills", "crates/compiler/tests/analysis.rs: the assembler decides"),
    ("resource/occupancy", "crates/compiler/tests/analysis.rs: the assembler decides"),
    ("constexpr/inactive", "crates/lsp/tests/lsp/tags.rs: shown in editors alone"),
    ("name/unused", "crates/lsp/tests/lsp/tags.rs: shown in editors alone"),
    ("name/deprecated", "crates/lsp/tests/lsp/tags.rs: shown in editors alone"),
    ("constexpr/static-print", "tests/language: `prints:` says what is printed"),
];

/// What a line must contain to be a case of a code: one of these.
const CONSTRUCTS: &[(&str, &[&str])] = &[
    ("bounds/out-of-bounds", &["tl.load(", "tl.store(", ".load(", ".store("]),
    ("bounds/overflow", &["tl.load(", "tl.store("]),
    ("bounds/uncovered", &["[(", "tl.store("]),
    ("bounds/loop-step", &["tl.load("]),
    ("bounds/unread", &["tl.load("]),
    ("bounds/unwritten", &["[(", "tl.atomic_add(", "empty("]),
    ("constexpr/arange-bound", &["tl.arange("]),
    ("constexpr/global", &["tl.constexpr(", "tl.arange(0, "]),
    ("constexpr/not-constexpr", &["tl.static_range(", "axis=", "tl.sum(", "tl.program_id("]),
    ("constexpr/reassigned", &[": tl.constexpr ="]),
    ("constexpr/recursion", &["def ", "LEVELS"]),
    ("constexpr/shape", &["tl.zeros(", "tl.full(", "tl.make_block_ptr("]),
    ("constexpr/static-assert", &["tl.static_assert("]),
    ("constexpr/static-assert-condition", &["tl.static_assert("]),
    ("constexpr/too-much-code", &["tl.static_range("]),
    ("launch/argument-type", &["k[(", "# tile: "]),
    ("launch/exchanged-arguments", &["k[("]),
    ("launch/extra-argument", &["k[("]),
    ("launch/grid", &["k[("]),
    ("launch/lossy-conversion", &[".to(tl.int"]),
    ("launch/lossy-store", &["tl.store("]),
    ("launch/lost-result", &[".float()", ".to(", ".long()", ".double()", ".half()"]),
    ("launch/missing-argument", &["k[("]),
    ("launch/num-warps", &["num_warps"]),
    ("launch/option", &["num_stages=", "num_warps="]),
    ("launch/repeated-argument", &["k[("]),
    ("launch/repeated-update", &["triton.cdiv(1000", "centered[("]),
    ("launch/tuned-argument", &["k[("]),
    ("launch/tuning-name", &["triton.Config(", "triton.autotune(", "triton.heuristics("]),
    ("launch/unknown-argument", &["k[("]),
    ("launch/unused-axis", &["k[("]),
    ("launch/wrong-result", &["assert", "allclose("]),
    ("mask/always-true", &["mask="]),
    ("shape/mixed-axes", &["tl.dot(", " * ", " - ", " >= ", " + "]),
    ("shape/reduced-axis", &["tl.sum(", "tl.max("]),
    ("mask/axis", &["mask="]),
    ("mask/other-without-mask", &["other="]),
    ("mask/shape", &["mask="]),
    ("mask/type", &["mask="]),
    ("mask/undefined", &["tl.load("]),
    ("mask/counted", &["tl.sum("]),
    ("mask/first-block", &["tl.sum("]),
    ("name/after-loop", &["in range("]),
    ("name/no-attribute", &[".dtype", ".shape", ".to(", ".T"]),
    ("name/undefined", &[" = "]),
    ("name/unknown-builtin", &["tl.", "libdevice."]),
    ("name/unknown-keyword", &["="]),
    ("perf/atomic-lanes", &["tl.atomic_"]),
    ("perf/float64", &["* ", "- ", "+ "]),
    ("perf/narrow-access", &["tl.load(", "tl.store("]),
    ("perf/operand-order", &["tl.dot("]),
    ("perf/small-product", &["tl.dot("]),
    ("perf/sum-in-loop", &["tl.sum("]),
    ("perf/tensor-cores", &["tl.dot("]),
    ("perf/uncoalesced", &["tl.load(", "tl.store("]),
    ("python/device-function", &["tl."]),
    (
        "python/raises",
        &["assert ", "raise ", ".shape", ".view(", " @ ", ".backward(", "torch.cat("],
    ),
    ("python/host-function", &["tl.", "def "]),
    ("python/not-understood", &["pair", "tl."]),
    ("python/ignored-keyword", &["range("]),
    ("python/precedence", &[" & ", " | ", " ^ "]),
    ("python/unsupported", &["for ", "while ", "if ", "return"]),
    ("race/read-write", &["tl.load("]),
    ("race/stores", &["tl.store("]),
    ("resource/shared-memory", &["k[(", "triton.Config("]),
    ("shape/axis", &["axis=", ", 0)", ", 1)"]),
    ("shape/broadcast", &["[:, None]", "[None, :]", "tl.broadcast"]),
    ("shape/dot", &["tl.dot("]),
    ("shape/gather", &["tl.gather("]),
    ("shape/hint", &["tl.multiple_of(", "tl.max_contiguous(", "tl.max_constancy("]),
    ("shape/histogram", &["tl.histogram("]),
    ("shape/index", &["[:", "[None"]),
    ("shape/index-range", &["pair[", "items[", "shape["]),
    ("shape/permute", &["permute(", "trans(", ".T"]),
    ("shape/power-of-two", &["tl.arange(", "tl.zeros(", "tl.full("]),
    ("shape/reshape", &["reshape(", "view(", "split(", "ravel("]),
    ("shape/store", &["tl.store("]),
    ("shape/too-many-elements", &["tl.zeros(", "tl.full(", "tl.arange("]),
    ("syntax/error", &["("]),
    ("type/atomic", &["tl.atomic_"]),
    ("type/block-pointer", &["make_block_ptr(", "advance(", "boundary_check"]),
    ("type/branch-mismatch", &["if ", "else"]),
    ("type/cast", &[".to(", "tl.cast("]),
    ("type/combine-function", &["tl.reduce(", "tl.associative_scan(", "tl.map_elementwise("]),
    ("type/condition", &["if ", "while "]),
    ("type/const-pointer", &["tl.store(", "tl.load("]),
    (
        "type/descriptor",
        &["make_tensor_descriptor(", "desc.", "TensorDescriptor", "d.load(", ".scatter("],
    ),
    ("type/dot", &["tl.dot("]),
    ("type/dtype", &["dtype=", "tl.float32)", "tl.int32)"]),
    ("type/exclusive-options", &["eviction_policy=", "cache_modifier=", "volatile="]),
    ("type/extra-argument", &["tl."]),
    ("type/float-required", &["tl.exp", "tl.log", "tl.sqrt", "tl.sin", "tl.cos", "libdevice."]),
    ("type/inline-assembly", &["tl.inline_asm_elementwise("]),
    ("type/integer-range", &[" + ", " * ", " - "]),
    ("type/loop-bound", &["range("]),
    ("type/loop-carried", &["for ", "while ", "+= "]),
    ("type/missing-argument", &["tl."]),
    ("type/noinline", &["apart(", "noinline"]),
    ("type/not-a-pointer", &["tl.load(", "tl.store(", "tl.atomic_"]),
    ("type/not-a-tensor", &[": tl.constexpr = ", " = "]),
    ("type/not-callable", &["tl."]),
    ("type/operand", &[" + ", " * ", " & ", " | ", " // ", " % "]),
    ("type/option", &["eviction_policy=", "cache_modifier=", "input_precision=", "sem="]),
    ("type/pointer-arithmetic", &["_ptr +", "p +", "ptr -"]),
    ("type/print-prefix", &["print("]),
    ("type/random-seed", &["tl.rand", "tl.philox"]),
    ("type/return-mismatch", &["return "]),
    ("type/unpack", &[", b = ", ", c = ", "*"]),
    ("type/unsupported-dtype", &["float8"]),
    ("type/unused-result", &["useful("]),
    ("type/where-condition", &["tl.where("]),
];

/// Lines of the kernels in both folders.
fn lines() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    let mut lines = Vec::new();
    for folder in ["language", "analysis"] {
        let entries = std::fs::read_dir(root.join(folder)).expect("the chapters exist");
        let paths = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
        let is_chapter = |path: &PathBuf| path.extension().is_some_and(|known| known == "md");
        for path in paths.filter(is_chapter) {
            let text = std::fs::read_to_string(&path).expect("the chapter is readable");
            lines.extend(kernel_lines(&text));
        }
    }
    lines
}

fn kernel_lines(chapter: &str) -> Vec<String> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in chapter.lines() {
        match line.strip_prefix("```") {
            Some(info) => inside = !inside && info.starts_with("python"),
            None if inside => found.push(line.to_owned()),
            None => {}
        }
    }
    found
}

/// Whether a line's comment says that a code is found there.
fn says(line: &str, code: &str) -> bool {
    ["error: ", "warning: ", "hint: ", "info: "].iter().any(|kind| {
        let mut parts = line.split(kind).skip(1);
        parts.any(|rest| rest.split_whitespace().next() == Some(code))
    })
}

#[test]
fn every_code_has_cases_and_twice_as_many_of_silence() {
    let lines = lines();
    let (mut table, mut short) = (String::new(), Vec::new());
    for code in Code::ALL.iter().map(|code| code.name()) {
        if let Some((_, place)) = ELSEWHERE.iter().find(|(known, _)| *known == code) {
            let _ = writeln!(table, "{code:36} {place}");
            continue;
        }
        let (_, words) = CONSTRUCTS
            .iter()
            .find(|(known, _)| *known == code)
            .unwrap_or_else(|| panic!("{code} needs a row that says what it is about"));
        let (firing, others): (Vec<_>, Vec<_>) = lines.iter().partition(|line| says(line, code));
        let code_part = |line: &&&String| {
            let text = line.split("  # ").next().unwrap_or_default();
            words.iter().any(|word| text.contains(word))
        };
        let silent = others.iter().filter(code_part).count();
        let _ = writeln!(table, "{code:36} {:4} found {silent:5} silent", firing.len());
        if firing.is_empty() || silent < 2 * firing.len() {
            short.push(code);
        }
    }
    println!("{table}");
    assert!(short.is_empty(), "too few cases of {short:?}:\n{table}");
}

#[test]
fn rows_are_of_codes() {
    let rows = CONSTRUCTS.iter().map(|row| row.0).chain(ELSEWHERE.iter().map(|row| row.0));
    let unknown: Vec<&str> = rows.filter(|name| Code::from_name(name).is_none()).collect();
    assert!(unknown.is_empty(), "no such codes: {unknown:?}");
}
