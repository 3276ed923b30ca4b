//! Breaks working kernels in one place at a time and measures, per family of mistakes, the share
//! that is found.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;
use std::path::Path;

use tile_compiler::diagnostic::Severity;
use tile_compiler::project::MemorySources;

/// Working kernels whose scenarios show launches.
const KERNELS: &[&str] = &[
    "cross_entropy",
    "embedding",
    "histogram",
    "layer_norm",
    "matmul",
    "matmul_split_k",
    "rms_norm",
    "rope",
    "softmax",
    "softmax_online",
    "vector_add",
];

/// The share of mistakes of each family that must be found.
const REQUIRED: f64 = 0.95;

/// Mutants that change nothing that matters, by file and the mutated line, with the reason.
const EQUIVALENT: &[(&str, &str, &str)] = &[
    ("cross_entropy", "x = tl.load(ptrs, mask=cols < n_cols)", "stored under the same mask"),
    ("embedding", "tl.load(table_ptr + row * n_cols + cols)", "the row comes from memory"),
    ("embedding", "randn(rows - 1, cols)", "the row comes from memory"),
    ("embedding", "zeros(rows - 1, cols)", "the row comes from memory"),
    ("embedding", "code = tl.load(code_ptr + offsets, mask=mask)", "stored under the same mask"),
    ("histogram", "x = tl.load(x_ptr + offsets, mask=mask)", "counted under the same mask"),
    ("layer_norm", "dw += tl.load(dw_ptrs)", "runs only when memory says so"),
    ("layer_norm", "db += tl.load(db_ptrs)", "runs only when memory says so"),
    ("layer_norm", "x = tl.load(x_ptr + start + cols, mask=mask)", "replaced, or stored under it"),
    ("layer_norm", "x = tl.load(x_ptr + row * stride + cols, mask=mask)", "replaced by `where`"),
    ("layer_norm", "dy = tl.load(dy_ptr + row * stride + cols, mask=mask)", "replaced by `where`"),
    ("layer_norm", "w = tl.load(w_ptr + cols, mask=mask)", "replaced by `where`"),
    ("rms_norm", "w = tl.load(w_ptr + cols, mask=mask)", "stored under the same mask"),
    ("softmax_online", "x = tl.load(in_ptr + start + cols, mask=mask)", "stored under it"),
];

/// One mistake: what replaces what.
struct Mutant {
    family: &'static str,
    range: Range<usize>,
    text: String,
}

fn errors(text: &str) -> Vec<String> {
    let mut sources = MemorySources::new(Vec::new());
    let file = sources.add("kernel.py", text);
    let found = super::findings(&sources, file, text, false);
    let serious = found.iter().filter(|found| found.severity >= Severity::Warning);
    serious.map(|found| format!("{}: {}", found.code, found.message)).collect()
}

/// The arguments of the calls of `name`: their ranges, split at commas of the call itself.
fn calls(text: &str, name: &str) -> Vec<Vec<Range<usize>>> {
    let mut found = Vec::new();
    let pattern = format!("{name}(");
    for (start, _) in text.match_indices(&pattern) {
        let mut depth = 0;
        let mut args = Vec::new();
        let mut from = start + pattern.len();
        for (at, c) in text[from..].char_indices().map(|(at, c)| (at + start + pattern.len(), c)) {
            match c {
                '(' | '[' | '{' => depth += 1,
                ')' | ']' | '}' if depth > 0 => depth -= 1,
                ')' | ',' if depth == 0 => {
                    if !text[from..at].trim().is_empty() {
                        args.push(from..at);
                    }
                    from = at + 1;
                    if c == ')' {
                        break;
                    }
                }
                _ => {}
            }
        }
        found.push(args);
    }
    found
}

fn keyword(text: &str, args: &[Range<usize>], name: &str) -> Option<Range<usize>> {
    let is_named = |arg: &&Range<usize>| text[(*arg).clone()].trim_start().starts_with(name);
    args.iter().find(is_named).cloned()
}

/// An argument with the comma before it.
fn with_comma(arg: &Range<usize>) -> Range<usize> {
    arg.start - 1..arg.end
}

fn scenario_lines(text: &str) -> Vec<Range<usize>> {
    let mut start = 0;
    let mut lines = Vec::new();
    for line in text.split_inclusive('\n') {
        if line.starts_with("# tile:") {
            lines.push(start..start + line.len());
        }
        start += line.len();
    }
    lines
}

fn bounds(text: &str, add: &mut dyn FnMut(&'static str, Range<usize>, String)) {
    for args in calls(text, "tl.load").iter().chain(&calls(text, "tl.store")) {
        let (Some(mask), other) = (keyword(text, args, "mask="), keyword(text, args, "other="))
        else {
            continue;
        };
        let first = args[0].clone();
        let kept = args.iter().filter(|arg| **arg != mask && Some(*arg) != other.as_ref());
        let kept: Vec<&str> = kept.map(|arg| text[arg.clone()].trim()).collect();
        let end = args.last().map_or(first.end, |arg| arg.end);
        add("bounds", first.start..end, kept.join(", "));
    }
    for line in scenario_lines(text) {
        for name in ["randn", "empty", "zeros"] {
            for args in calls(&text[line.clone()], name) {
                let Some(size) = args.first() else { continue };
                let at = line.start + size.start..line.start + size.end;
                let shrunk = format!("{} - 1", &text[at.clone()]);
                if !shrunk.contains('=') {
                    add("bounds", at, shrunk);
                }
            }
        }
        // A grid that is one program short leaves elements untouched.
        if text[line.clone()].contains("[(cdiv(") && text.contains("empty(") {
            let at = line.start + text[line.clone()].find("[(cdiv(").unwrap_or(0) + 2;
            add("coverage", at..at, "-1 + ".to_owned());
        }
    }
}

fn masks(text: &str, add: &mut dyn FnMut(&'static str, Range<usize>, String)) {
    for args in calls(text, "tl.load") {
        if let Some(other) = keyword(text, &args, "other=") {
            add("mask", with_comma(&other), String::new());
        }
    }
    for (from, to) in [("[:, None] <", "[None, :] <"), ("[None, :] <", "[:, None] <")] {
        for (at, _) in text.match_indices(from) {
            add("mask", at..at + from.len(), to.to_owned());
        }
    }
}

fn races(text: &str, add: &mut dyn FnMut(&'static str, Range<usize>, String)) {
    for (at, atomic) in text.match_indices("tl.atomic_add(") {
        if text[..at].ends_with("    ") {
            add("race", at..at + atomic.len(), "tl.store(".to_owned());
        }
    }
    for args in calls(text, "tl.store") {
        let pointer = args[0].clone();
        let terms: Vec<&str> = text[pointer.clone()].split(" + ").collect();
        for skip in 1..terms.len() {
            // What is left out belongs to the program, not to the lane.
            if !["row", "pid", "program", "head"].iter().any(|name| terms[skip].contains(name)) {
                continue;
            }
            let kept = terms.iter().enumerate().filter(|(index, _)| *index != skip);
            let kept: Vec<&str> = kept.map(|(_, term)| *term).collect();
            add("race", pointer.clone(), kept.join(" + "));
        }
    }
}

fn launches(text: &str, add: &mut dyn FnMut(&'static str, Range<usize>, String)) {
    for line in scenario_lines(text) {
        let content = &text[line.clone()];
        let Some(open) = content.find("](").filter(|_| content.contains("[(")) else { continue };
        let call = format!("launch{}", &content[open + 1..]);
        let shift = line.start + open + 1 - "launch".len();
        for args in calls(&call, "launch").into_iter().take(1) {
            for arg in &args {
                let at = arg.start + shift..arg.end + shift;
                let given = text[at.clone()].trim().to_owned();
                let lead = text[at.clone()].len() - text[at.clone()].trim_start().len();
                match given
                    .split_once('=')
                    .filter(|(name, _)| name.chars().all(|c| c.is_alphanumeric() || c == '_'))
                {
                    Some((name, _)) => {
                        let end = at.start + lead + name.len();
                        add("launch", end..end, "X".to_owned());
                        if !name.starts_with("num_") {
                            add("launch", with_comma(&at), String::new());
                        }
                    }
                    None if arg == &args[0] => add("launch", at.start..at.end + 1, String::new()),
                    None => {}
                }
            }
            if let Some(last) = args.last() {
                let end = last.end + shift;
                add("launch", end..end, ", num_warps=3".to_owned());
            }
        }
    }
}

fn constants(text: &str, add: &mut dyn FnMut(&'static str, Range<usize>, String)) {
    for (at, annotation) in text.match_indices(": tl.constexpr") {
        let name =
            text[..at].rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("");
        let kernel = text[at..].find("@triton.jit").map_or(text.len(), |end| at + end);
        if text[at..kernel].contains(&format!("tl.arange(0, {name})")) {
            add("constexpr", at..at + annotation.len(), String::new());
        }
    }
}

fn shapes(text: &str, add: &mut dyn FnMut(&'static str, Range<usize>, String)) {
    for (at, axis) in text.match_indices("axis=0").chain(text.match_indices("axis=1")) {
        add("shape", at..at + axis.len(), "axis=5".to_owned());
    }
    if text.contains("tl.dot(") {
        for (at, dtype) in text.match_indices("dtype=fp16") {
            let line = text[..at].rfind('\n').map_or(0, |at| at + 1);
            let call = text[line..at]
                .rfind(") ")
                .unwrap_or(0)
                .max(text[line..at].rfind("), ").unwrap_or(0));
            if text[line + call..at].contains("randn") {
                add("type", at..at + dtype.len(), "dtype=fp64".to_owned());
            }
        }
        for args in calls(text, "tl.dot") {
            add("shape", args[1].clone(), format!(" {}[None, :, :]", text[args[1].clone()].trim()));
        }
    }
}

fn names(text: &str, add: &mut dyn FnMut(&'static str, Range<usize>, String)) {
    let body = &text[..text.find("# tile:").unwrap_or(text.len())];
    let body_start = body.find("@triton.jit").unwrap_or(0);
    for name in
        ["load", "store", "arange", "program_id", "sum", "max", "exp", "zeros", "dot", "where"]
    {
        for (at, _) in body[body_start..].match_indices(&format!("tl.{name}(")) {
            let end = body_start + at + 3 + name.len();
            add("name", end..end, "e".to_owned());
        }
    }
    for (at, _) in body[body_start..].match_indices("mask=mask") {
        let end = body_start + at + "mask=mask".len();
        add("name", end..end, "s".to_owned());
    }
}

fn mutants(text: &str) -> Vec<Mutant> {
    let mut mutants = Vec::new();
    let mut add = |family, range: Range<usize>, text| mutants.push(Mutant { family, range, text });
    for mutate in [bounds, masks, races, launches, constants, shapes, names] {
        mutate(text, &mut add);
    }
    mutants
}

/// The line that a mutant changes, as it is afterwards.
fn line(text: &str, at: usize) -> &str {
    let at = at.min(text.len());
    let start = text[..at].rfind('\n').map_or(0, |at| at + 1);
    text[start..].lines().next().unwrap_or_default().trim()
}

#[test]
fn broken_kernels_are_found() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let mut missed = String::new();
    for name in KERNELS {
        let text = std::fs::read_to_string(folder.join(format!("{name}.py"))).expect("an example");
        assert_eq!(errors(&text), Vec::<String>::new(), "{name} is right");
        for mutant in mutants(&text) {
            let mut broken = text.clone();
            broken.replace_range(mutant.range.clone(), &mutant.text);
            let changed = line(&broken, mutant.range.start);
            let equivalent =
                EQUIVALENT.iter().any(|(file, part, _)| file == name && changed.contains(part));
            if broken == text || equivalent {
                continue;
            }
            let count = counts.entry(mutant.family).or_default();
            count.1 += 1;
            if errors(&broken).is_empty() {
                let _ = writeln!(missed, "{} {name}: {changed}", mutant.family);
            } else {
                count.0 += 1;
            }
        }
    }
    let mut report = String::new();
    let mut short = false;
    for (family, (found, all)) in &counts {
        let share = *found as f64 / *all as f64;
        short |= share < REQUIRED;
        let _ = writeln!(report, "{family:10} {found:3} of {all:3} ({:.1} %)", 100.0 * share);
    }
    println!("{report}\nmissed:\n{missed}");
    assert!(!short, "{report}\n{missed}");
}
