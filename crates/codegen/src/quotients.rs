//! Quotients by the same number.
//!
//! `div.full` divides by way of a reciprocal, of a divisor that is neither tiny nor huge. So the assembler scales
//! both numbers by 1/4 or by 2^24 where that is so, each under a predicate: of several quotients by one number it
//! shares everything but three products for each, of which two hardly ever do anything. Here the scale is a number
//! that most often is 1, which leaves two, and the same bits: rows of a softmax and numbers that are quantized by
//! their group take 0.95 to 0.87 times the instructions. On an H100, kinds of attention take 0.994 to 1.002 times as
//! long, moments of rows 0.994 to 0.995 times, a step of Adam 0.996 times; where nothing but the memory is busy, it makes no
//! difference.
//!
//! The assembler orders all of the kernel anew, so what it makes is compared, as with [orders](crate::orders). Made
//! before the choice of an order, the change led to other choices: sums of columns took 2.4 times as long.

use std::fmt::Write;
use std::path::Path;

use rustc_hash::FxHashMap;
use tile_compiler::artifact::Manifest;

use crate::address::{Printed as Line, registers};
use crate::orders::{Candidate, Printed, cycles_of, resident_blocks, work_of};
use crate::ptxas::{self, Assembled};
use crate::trials::Trials;

/// `best`, or the same kernel with quotients that share what they can.
pub(crate) fn or_shared(
    tool: &Path,
    manifest: &Manifest,
    trials: &mut Trials,
    best: Candidate,
) -> Candidate {
    let Some(ptx) = share(&best.0.ptx) else { return best };
    if trials.take(1) == 0 {
        return best;
    }
    let Ok(other) = ptxas::assemble(tool, &ptx, &manifest.arch) else { return best };
    if is_shorter(manifest, &best.1, &other) { (Printed { ptx, ..best.0 }, other) } else { best }
}

/// Whether `other` is less work than `best` and gives nothing up for it: the assembler orders everything else anew too.
/// Where rows end anywhere and a thread writes 4 bytes at a time, a softmax took 1.008 times as long on an H100 and 1.014
/// times on an H200 with its writes further out of order, and 0.994 and 0.973 times with more of them in order.
fn is_shorter(manifest: &Manifest, best: &Assembled, other: &Assembled) -> bool {
    let times = work_of(manifest, best, other).zip(cycles_of(manifest, best, other));
    times.is_some_and(|((work, other_work), (cycles, other_cycles))| {
        other_work.all < work.all && other_cycles.all <= cycles.all
    }) && other.report.spills_no_more_than(&best.report)
        && resident_blocks(manifest, other) >= resident_blocks(manifest, best)
        && other.bytes_in_flight() >= best.bytes_in_flight()
        && other.writes_out_of_order() <= best.writes_out_of_order()
}

/// A divisor within a block.
struct Divisor {
    /// The line of the first quotient by it.
    first: usize,
    quotients: usize,
}

/// `ptx` with what quotients of a block by the same register have in common computed once, if there are any.
/// Each line stays where it is: the map of lines stays true.
fn share(ptx: &str) -> Option<String> {
    let lines: Vec<&str> = ptx.lines().collect();
    let (divisors, divisor_of) = divisors(&lines);
    let mut names: FxHashMap<usize, usize> = FxHashMap::default();
    for (number, _) in divisors.iter().enumerate().filter(|(_, it)| it.quotients > 1) {
        names.insert(number, names.len());
    }
    if names.is_empty() {
        return None;
    }
    let mut out = String::with_capacity(2 * ptx.len());
    for (at, line) in lines.iter().enumerate() {
        let shared = divisor_of.get(&at).and_then(|number| Some((number, names.get(number)?)));
        match (shared, operands(line)) {
            (Some((&number, &name)), Some([result, numerator, divisor])) => {
                let is_first = at == divisors[number].first;
                let common = if is_first { common(divisor, name) } else { String::new() };
                let _ = write!(out, "\t{common}{}", quotient(result, numerator, name));
            }
            _ => out.push_str(line),
        }
        if *line == "{" {
            let count = names.len();
            let _ = write!(out, " .reg .f32 %scale<{count}>, %inverse<{count}>;");
        }
        out.push('\n');
    }
    Some(out)
}

/// The divisors of all blocks, and which of them a line divides by.
fn divisors(lines: &[&str]) -> (Vec<Divisor>, FxHashMap<usize, usize>) {
    let mut all: Vec<Divisor> = Vec::new();
    let mut divisor_of = FxHashMap::default();
    let mut known: FxHashMap<&str, usize> = FxHashMap::default();
    for (at, &line) in lines.iter().enumerate() {
        if line.starts_with(['$', '{']) || line.contains("bra") {
            known.clear();
        }
        let quotient = operands(line);
        if let Some([_, _, divisor]) = quotient {
            let number = *known.entry(divisor).or_insert_with(|| {
                all.push(Divisor { first: at, quotients: 0 });
                all.len() - 1
            });
            all[number].quotients += 1;
            divisor_of.insert(at, number);
        }
        // What is not LLVM's own writes whatever it names.
        let results = match (quotient, Line::of(line)) {
            (Some([result, ..]), _) => result,
            (None, Some(Line { operands, .. })) => operands.first().copied().unwrap_or_default(),
            (None, None) => line,
        };
        for result in registers(results) {
            known.remove(result);
        }
    }
    (all, divisor_of)
}

/// Result, numerator and divisor, of which none is a constant, of a line that divides.
fn operands(line: &str) -> Option<[&str; 3]> {
    let text = line.strip_prefix("\tdiv.full.f32 ")?.strip_suffix(';')?;
    let mut operands = text.split(", ").map(str::trim);
    let found = [operands.next()?, operands.next()?, operands.next()?];
    found.iter().all(|it| it.starts_with('%')).then_some(found)
}

/// The instructions that give a divisor's scale, and the reciprocal of the scaled divisor.
fn common(divisor: &str, name: usize) -> String {
    let [large, small] = [f32::MAX_EXP - 2, f32::MIN_EXP - 1].map(power_of_two);
    let [quarter, one, more] = [-2, 0, 24].map(power_of_two);
    format!(
        "{{ .reg .pred large, small; .reg .f32 size, part, scaled; abs.f32 size, {divisor}; \
         setp.gt.f32 large, size, {large}; setp.lt.f32 small, size, {small}; \
         selp.f32 part, {quarter}, {one}, large; selp.f32 %scale{name}, {more}, part, small; \
         mul.rn.f32 scaled, {divisor}, %scale{name}; rcp.approx.ftz.f32 %inverse{name}, scaled; }} "
    )
}

/// The instructions that give one quotient.
fn quotient(result: &str, numerator: &str, name: usize) -> String {
    format!(
        "{{ .reg .f32 scaled; mul.rn.f32 scaled, {numerator}, %scale{name}; \
         mul.rn.f32 {result}, scaled, %inverse{name}; }}"
    )
}

/// A power of two as PTX writes numbers.
fn power_of_two(exponent: i32) -> String {
    format!("0f{:08X}", 2f32.powi(exponent).to_bits())
}

#[cfg(test)]
mod tests {
    use super::share;

    const FIRST: &str = "\tdiv.full.f32 %f4, %f1, %f3;\n";
    const SECOND: &str = "\tdiv.full.f32 %f5, %f2, %f3;\n";

    fn quotient(result: &str, numerator: &str) -> String {
        format!(
            "{{ .reg .f32 scaled; mul.rn.f32 scaled, {numerator}, %scale0; \
             mul.rn.f32 {result}, scaled, %inverse0; }}\n"
        )
    }

    #[test]
    fn quotients_by_one_number_share_its_reciprocal() {
        let common = "{ .reg .pred large, small; .reg .f32 size, part, scaled; abs.f32 size, %f3; \
                      setp.gt.f32 large, size, 0f7E800000; setp.lt.f32 small, size, 0f00800000; \
                      selp.f32 part, 0f3E800000, 0f3F800000, large; \
                      selp.f32 %scale0, 0f4B800000, part, small; \
                      mul.rn.f32 scaled, %f3, %scale0; rcp.approx.ftz.f32 %inverse0, scaled; }";
        let [first, second] = [quotient("%f4", "%f1"), quotient("%f5", "%f2")];
        let declared = "{ .reg .f32 %scale<1>, %inverse<1>;\n";
        let expected = format!("{declared}\t{common} {first}\t{second}}}\n");
        assert_eq!(share(&format!("{{\n{FIRST}{SECOND}}}\n")), Some(expected));
    }

    #[test]
    fn quotients_by_what_may_be_other_numbers_stay() {
        for between in [
            "$L__BB0_2:\n",
            "\t@%p1 bra \t$L__BB0_2;\n",
            "\tmov.f32 \t%f3, %f6;\n",
            "\tld.global.v2.f32 \t{%f3, %f6}, [%rd1];\n",
            "\t@%p1 mov.f32 %f3, %f6;\n",
        ] {
            assert_eq!(share(&format!("{{\n{FIRST}{between}{SECOND}}}\n")), None);
        }
        let other = FIRST.replace("%f4", "%f3");
        assert_eq!(share(&format!("{{\n{other}{SECOND}}}\n")), None);
        let constant = "\tdiv.full.f32 %f4, %f1, 0f40000000;\n";
        assert_eq!(share(&format!("{{\n{constant}{constant}}}\n")), None);
    }
}
