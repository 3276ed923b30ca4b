//! Counters of loops in registers of their own.
//!
//! Where a loop needs its counter in 64 bits for addresses, LLVM counts in 64 bits and compares the lower half.
//! The assembler does not know such a loop for one that counts, and does not unroll it, so that each iteration
//! waits for its own loads. On an H200, means of rows of several lengths, which loops of one load each add up,
//! take 0.50 times as long with a counter of 32 bits beside it.

use std::fmt::Write;
use std::ops::RangeInclusive;

use rustc_hash::FxHashMap;

use crate::address::{Printed, registers};
use crate::offsets::loops;

/// A counter of which a loop compares the lower half.
struct Counter<'t> {
    /// The register of 64 bits, and what each iteration adds to it.
    wide: &'t str,
    step: &'t str,
    /// The lower half, and the lines that make it and compare it.
    half: &'t str,
    halved: usize,
    compared: usize,
}

/// `ptx` where loops of one block that compare the lower half of a counter count in 32 bits too.
pub(crate) fn count_apart(ptx: &str) -> String {
    let lines: Vec<&str> = ptx.lines().collect();
    let mut changed: FxHashMap<usize, String> = FxHashMap::default();
    let mut found = 0;
    for block in loops(&lines) {
        let Some(Counter { wide, step, half, halved, compared }) = counter(&lines, &block) else {
            continue;
        };
        let (begin, own) = (*block.start(), format!("%counter{found}"));
        found += 1;
        changed.insert(begin, format!("\tcvt.u32.u64 \t{own}, {wide};\n{}", lines[begin]));
        changed.insert(halved, format!("\tadd.s32 \t{own}, {own}, {step};"));
        changed
            .insert(compared, lines[compared].replacen(&format!("{half},"), &format!("{own},"), 1));
    }
    if found == 0 {
        return ptx.to_owned();
    }
    let mut out = String::with_capacity(ptx.len());
    for (at, line) in lines.iter().enumerate() {
        let _ = writeln!(out, "{}", changed.get(&at).map_or(*line, String::as_str));
        if *line == "{" {
            let _ = writeln!(out, "\t.reg .b32 \t%counter<{found}>;");
        }
    }
    out
}

/// The counter of the loop in `block`, if that is one block which only its own last line goes back to.
fn counter<'t>(lines: &[&'t str], block: &RangeInclusive<usize>) -> Option<Counter<'t>> {
    let label = lines[*block.start()].trim_end_matches(':');
    let is_named = |line: &&&str| {
        line.split(|c: char| c.is_whitespace() || ":;,".contains(c)).any(|word| word == label)
    };
    let body = block.start() + 1..*block.end();
    if lines[body.clone()].iter().any(|line| line.starts_with('$') || line.contains("bra"))
        || lines.iter().filter(is_named).count() != 2
    {
        return None;
    }
    let branch = lines[*block.end()];
    let printed = body.filter_map(|at| Some((at, Printed::of(lines[at])?)));
    let (mut steps, mut halves) = (FxHashMap::default(), FxHashMap::default());
    for (at, Printed { op, operands }) in printed {
        match (op, &operands[..]) {
            ("add.s64", &[to, from, step]) if to == from && step.parse::<i32>().is_ok() => {
                steps.insert(to, step);
            }
            ("cvt.u32.u64", &[half, wide]) if steps.contains_key(wide) => {
                halves.insert(half, (at, wide));
            }
            (op, &[holds, half, _]) if op.starts_with("setp.") && op.ends_with("32") => {
                let Some(&(halved, wide)) = halves.get(half) else { continue };
                if registers(branch).any(|name| name == holds)
                    && times(lines, half) == 2
                    && changes(&lines[*block.start()..*block.end()], wide) == 1
                {
                    let step = steps[wide];
                    return Some(Counter { wide, step, half, halved, compared: at });
                }
            }
            _ => {}
        }
    }
    None
}

/// How often `register` is named.
fn times(lines: &[&str], register: &str) -> usize {
    lines.iter().flat_map(|line| registers(line)).filter(|name| *name == register).count()
}

/// How many lines may write `register`: those of LLVM's own that name it first, and others that name it at all.
fn changes(lines: &[&str], register: &str) -> usize {
    let may_write = |line: &&&str| match Printed::of(line) {
        Some(printed) => printed.operands.first() == Some(&register),
        None => registers(line).any(|name| name == register),
    };
    lines.iter().filter(may_write).count()
}

#[cfg(test)]
mod tests {
    use super::count_apart;

    const LOOP: &str = "{
\tmov.u64 \t%rd28, 0;
$L__BB0_2:
\tadd.s64 \t%rd28, %rd28, 8;
\tcvt.u32.u64 \t%r24, %rd28;
\tsetp.lt.s32 \t%p5, %r24, %r8;
\t@%p5 bra \t$L__BB0_2;
";

    #[test]
    fn a_compared_half_is_a_counter() {
        let want = "{
\t.reg .b32 \t%counter<1>;
\tmov.u64 \t%rd28, 0;
\tcvt.u32.u64 \t%counter0, %rd28;
$L__BB0_2:
\tadd.s64 \t%rd28, %rd28, 8;
\tadd.s32 \t%counter0, %counter0, 8;
\tsetp.lt.s32 \t%p5, %counter0, %r8;
\t@%p5 bra \t$L__BB0_2;
";
        assert_eq!(count_apart(LOOP), want);
    }

    #[test]
    fn what_else_needs_the_half_or_goes_on_differently_stays() {
        let step = "\tadd.s64 \t%rd28, %rd28, 8;\n";
        let end = "\t@%p5 bra \t$L__BB0_2;\n";
        for other in [
            LOOP.replace(step, &format!("{step}\tadd.s64 \t%rd28, %rd28, %rd3;\n")),
            LOOP.replace(step, "\tadd.s64 \t%rd28, %rd28, %rd3;\n"),
            LOOP.replace(step, &format!("{step}\t@%p6 bra \t$L__BB0_3;\n")),
            LOOP.replace(end, &format!("\tst.global.b32 [%rd1], %r24;\n{end}")),
            LOOP.replace(end, "\t@%p6 bra \t$L__BB0_2;\n"),
            LOOP.replace("{\n", "{\n\t@%p6 bra \t$L__BB0_2;\n"),
        ] {
            assert_eq!(count_apart(&other), other);
        }
    }
}
