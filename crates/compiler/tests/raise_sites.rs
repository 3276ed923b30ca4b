//! Every place where Triton refuses a kernel, and what we say of it: `tests/triton/raise_sites.tsv`.
//!
//! `tests/triton/verify.py` lists the places and finds out which of our fixtures reaches which.

use std::fmt::Write;
use std::path::Path;

/// Each place where Triton refuses a kernel has a fixture of ours with a code, or a reason why no
/// kernel reaches it.
#[test]
fn raise_sites_have_a_code_or_a_reason() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    let table = std::fs::read_to_string(tests.join("triton/raise_sites.tsv"))
        .expect("the table is readable");
    let mut problems = String::new();
    let mut shown = 0;
    for line in table.lines().skip(1) {
        let columns: Vec<&str> = line.split('\t').collect();
        let &[site, _, _, code, chapter, statement, note] = columns.as_slice() else {
            let _ = writeln!(problems, "not a row: {line}");
            continue;
        };
        if chapter.is_empty() {
            if note.is_empty() {
                let _ = writeln!(problems, "{site}: neither a fixture nor a reason");
            }
            continue;
        }
        shown += 1;
        let text =
            std::fs::read_to_string(tests.join("language").join(chapter)).unwrap_or_default();
        let states = |line: &str| {
            let (text, comment) = line.split_once("  # ").unwrap_or((line, ""));
            text.trim() == statement
                && comment.trim_start_matches("launch ") == format!("error: {code}")
        };
        if !text.lines().any(states) {
            let _ = writeln!(problems, "{site}: {chapter} has no `{statement}` with {code}");
        }
    }
    assert!(shown > 100, "too few sites are shown: {shown}");
    assert!(problems.is_empty(), "{problems}");
}
