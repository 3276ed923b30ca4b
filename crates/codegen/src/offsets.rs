//! Offsets of addresses in loops.
//!
//! LLVM computes what does not change in a loop before it, so that a loop which copies rows keeps the
//! distance of each in 64 bits: two registers a row, and two sums in every iteration. The number of elements
//! that it comes from has 32 bits, and one instruction widens, multiplies and adds. A loop of products with
//! ten rows takes 80 registers so instead of 91, and ten instructions less. Which of the two is better shows
//! in machine code alone, see [`orders`](crate::orders).

use std::fmt::Write;
use std::ops::RangeInclusive;

use rustc_hash::FxHashMap;

use crate::address::{Printed, registers};

/// What a number of 64 bits comes to: the product of one of 32 bits, extended as its `kind` says, and a
/// constant, and a distance.
#[derive(Debug, Clone, Copy)]
struct Offset<'t> {
    /// `u32` or `s32`.
    kind: &'t str,
    factor: &'t str,
    times: i64,
    distance: i64,
}

/// `ptx` where sums in loops make their offsets themselves, those that are computed before the loop and used
/// by such sums alone.
pub(crate) fn narrow_in_loops(ptx: &str) -> String {
    let lines: Vec<&str> = ptx.lines().collect();
    let loops = loops(&lines);
    if loops.is_empty() {
        return ptx.to_owned();
    }
    let text = Text::of(&lines);
    let mut sums: FxHashMap<&str, Vec<(usize, String)>> = FxHashMap::default();
    for (at, line) in lines.iter().enumerate() {
        let Some(Printed { op: "add.s64", operands }) = Printed::of(line) else { continue };
        let &[to, a, b] = &operands[..] else { continue };
        let Some(begin) = loops.iter().filter(|it| it.contains(&at)).map(|it| *it.start()).min()
        else {
            continue;
        };
        for (offset, rest) in [(a, b), (b, a)] {
            if offset != rest
                && rest.starts_with('%')
                && let Some(found) = text.offset(offset, begin)
            {
                sums.entry(offset).or_default().push((at, found.added(to, rest)));
                break;
            }
        }
    }
    let replaced = sums.into_iter().filter(|(offset, sums)| text.uses(offset) == sums.len());
    let changed: FxHashMap<usize, String> = replaced.flat_map(|(_, sums)| sums).collect();
    let mut out = String::with_capacity(ptx.len());
    for (at, line) in lines.iter().enumerate() {
        let _ = writeln!(out, "{}", changed.get(&at).map_or(*line, String::as_str));
    }
    out
}

/// The lines of each loop, from the label to the last branch back to it.
pub(crate) fn loops(lines: &[&str]) -> Vec<RangeInclusive<usize>> {
    let mut begins: FxHashMap<&str, usize> = FxHashMap::default();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if let Some(label) = line.strip_suffix(':').filter(|label| label.starts_with('$')) {
            begins.insert(label, at);
        } else if let Some((_, target)) = line.split_once("bra")
            && let Some(&begin) =
                target.trim_end_matches(';').split_whitespace().last().and_then(|it| begins.get(it))
        {
            found.push(begin..=at);
        }
    }
    found
}

impl Offset<'_> {
    /// The sum of `rest` and this as `to`.
    fn added(self, to: &str, rest: &str) -> String {
        let Offset { kind, factor, times, distance } = self;
        let sum = format!("\tmad.wide.{kind} \t{to}, {factor}, {times}, {rest};");
        // The assembler puts a distance into the instruction that uses the address.
        match distance {
            0 => sum,
            distance => format!("{sum} add.s64 {to}, {to}, {distance};"),
        }
    }
}

/// Where registers get their values, as far as LLVM's own instructions give them, and how often they are named.
struct Text<'t> {
    makers: FxHashMap<&'t str, (usize, Printed<'t>)>,
    mentions: FxHashMap<&'t str, usize>,
}

impl<'t> Text<'t> {
    fn of(lines: &[&'t str]) -> Text<'t> {
        let (mut makers, mut mentions) = (FxHashMap::default(), FxHashMap::default());
        let mut unclear = Vec::new();
        for (at, line) in lines.iter().enumerate() {
            for name in registers(line) {
                *mentions.entry(name).or_insert(0) += 1;
            }
            let Some(printed) = Printed::of(line) else {
                // What is not LLVM's own may write whatever it names.
                unclear.extend(registers(line));
                continue;
            };
            let Some(&to) = printed.operands.first() else { continue };
            if makers.insert(to, (at, printed)).is_some() {
                unclear.push(to);
            }
        }
        for name in unclear {
            makers.remove(name);
        }
        Text { makers, mentions }
    }

    /// How often a register that is written once is read.
    fn uses(&self, name: &str) -> usize {
        self.mentions.get(name).map_or(0, |mentions| mentions - 1)
    }

    /// What made `name`, once and before the line `begin`.
    fn maker(&self, name: &str, begin: usize) -> Option<&Printed<'t>> {
        self.makers.get(name).filter(|(at, _)| *at < begin).map(|(_, printed)| printed)
    }

    /// What `name` is, if it is an offset that is known before the line `begin`.
    fn offset(&self, name: &str, begin: usize) -> Option<Offset<'t>> {
        let Printed { op, operands } = self.maker(name, begin)?;
        let &[_, a, b] = &operands[..] else { return None };
        let number: i64 = b.parse().ok()?;
        match *op {
            "add.s64" => {
                let offset = self.offset(a, begin)?;
                (offset.distance == 0).then_some(Offset { distance: number, ..offset })
            }
            "shl.b64" => {
                let Printed { op, operands } = self.maker(a, begin)?;
                let kind = match *op {
                    "cvt.s64.s32" => "s32",
                    "cvt.u64.u32" => "u32",
                    _ => return None,
                };
                let times = 1i64.checked_shl(u32::try_from(number).ok()?)?;
                self.product(kind, operands.get(1)?, times, begin)
            }
            "mul.wide.s32" => self.product("s32", a, number, begin),
            "mul.wide.u32" => self.product("u32", a, number, begin),
            _ => None,
        }
    }

    fn product(
        &self,
        kind: &'t str,
        factor: &'t str,
        times: i64,
        begin: usize,
    ) -> Option<Offset<'t>> {
        self.maker(factor, begin)?;
        i32::try_from(times).ok()?;
        Some(Offset { kind, factor, times, distance: 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::narrow_in_loops;

    const BEFORE: &str = "\tadd.s32 \t%r2, %r1, %r1;
\tcvt.s64.s32 \t%rd1, %r2;
\tshl.b64 \t%rd2, %rd1, 1;
\tadd.s64 \t%rd3, %rd2, 384;
\tmul.wide.u32 \t%rd4, %r2, 4;
$L__BB0_2:
";

    #[test]
    fn sums_in_loops_make_their_offsets() {
        let sums = "\tadd.s64 \t%rd6, %rd5, %rd3;\n\tadd.s64 \t%rd7, %rd4, %rd5;\n";
        let narrow = "\tmad.wide.s32 \t%rd6, %r2, 2, %rd5; add.s64 %rd6, %rd6, 384;
\tmad.wide.u32 \t%rd7, %r2, 4, %rd5;\n";
        let end = "\t@%p1 bra \t$L__BB0_2;\n";
        let ptx = format!("{BEFORE}{sums}{end}");
        assert_eq!(narrow_in_loops(&ptx), format!("{BEFORE}{narrow}{end}"));
        assert_eq!(narrow_in_loops(&format!("{BEFORE}{sums}")), format!("{BEFORE}{sums}"));
    }

    #[test]
    fn what_else_needs_an_offset_or_may_change_it_keeps_it() {
        let sum = "\tadd.s64 \t%rd6, %rd5, %rd3;\n\t@%p1 bra \t$L__BB0_2;\n";
        for other in [
            "\tadd.s64 \t%rd8, %rd3, 1;\n",
            "\tst.global.b64 [%rd5], %rd3;\n",
            "\tmov.u32 \t%r2, %r3;\n",
            "\tld.global.b32 %r2, [%rd5];\n",
            "\tshl.b64 \t%rd1, %rd9, 2;\n",
        ] {
            let ptx = format!("{BEFORE}{other}{sum}");
            assert_eq!(narrow_in_loops(&ptx), ptx, "{other}");
        }
    }
}
