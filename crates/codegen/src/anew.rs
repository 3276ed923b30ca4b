//! Numbers that are computed anew behind loops of products.
//!
//! What follows from the program's number and from arguments, such as where a program's part of a tensor begins, is
//! needed in front of a loop and behind it. The assembler keeps it meanwhile, and where products take all
//! registers it spills it, although few instructions make it. Here these stand behind the loop once more. The
//! program's number is made different by the ballot of nobody, which is 0: the assembler would find both numbers equal and
//! keep the first.

use std::fmt::Write;
use std::ops::Range;
use std::path::Path;

use rustc_hash::{FxHashMap, FxHashSet};
use tile_compiler::artifact::Manifest;

use crate::address::registers;
use crate::apart::thread_number_read_anew;
use crate::depth_first::Statement;
use crate::orders::{Candidate, Printed, cycles_of, resident_blocks, work_of};
use crate::ptxas::{self, Assembled, Report};
use crate::trials::Trials;

/// Instructions that are repeated for one number at most. Which of them lets registers be allocated best, shows in
/// machine code alone.
const LENGTHS: [usize; 2] = [6, 12];

/// `best`, or, where it spills, the same kernel with numbers behind its loops computed anew.
pub(crate) fn or_anew(
    tool: &Path,
    manifest: &Manifest,
    trials: &Trials,
    best: Candidate,
) -> Candidate {
    let Report { spill_store_bytes, spill_load_bytes, .. } = best.1.report;
    if spill_load_bytes == 0 || !trials.may_save(spill_store_bytes) {
        return best;
    }
    let written = best.0.ptx.clone();
    let mut texts: Vec<String> =
        LENGTHS.iter().filter_map(|&length| behind_loops(&written, length)).collect();
    texts.dedup();
    texts.into_iter().fold(best, |best, ptx| match ptxas::assemble(tool, &ptx, &manifest.arch) {
        Ok(other) if spills_less(manifest, &best.1, &other) => (Printed { ptx, ..best.0 }, other),
        _ => best,
    })
}

/// By what part code may issue more instructions, outside of its innermost loops.
const GROWTH: u64 = 64;

/// By what part a warp may wait longer that has a multiprocessor to itself.
const DELAY: u64 = 32;

/// Whether `other` takes the place of `best` because it spills less, in innermost loops that are no longer.
fn spills_less(manifest: &Manifest, best: &Assembled, other: &Assembled) -> bool {
    let [a, b] = [best, other].map(|assembled| &assembled.report);
    let times = work_of(manifest, best, other).zip(cycles_of(manifest, best, other));
    b.spills_no_more_than(a)
        && !a.spills_no_more_than(b)
        && resident_blocks(manifest, other) >= resident_blocks(manifest, best)
        && times.is_some_and(|((work, other_work), (cycles, other_cycles))| {
            other_work.innermost <= work.innermost
                && other_work.all <= work.all + work.all / GROWTH
                && other_cycles.all <= cycles.all + cycles.all / DELAY
        })
}

/// `ptx` with what at most `length` instructions make of arguments and numbers of the program made again behind each
/// loop of products that does not need it; `None` where there is no such thing.
fn behind_loops(ptx: &str, length: usize) -> Option<String> {
    if ptx.contains(".func") || ptx.contains("brx.") {
        return None;
    }
    let lines: Vec<&str> = ptx.lines().collect();
    let flow = Flow::of(&lines);
    let numbers = Numbers::of(&lines);
    let mut copies: Vec<(Range<usize>, FxHashMap<&str, String>)> = Vec::new();
    let mut written: Vec<String> = Vec::with_capacity(lines.len());
    for (at, line) in lines.iter().enumerate() {
        copies.retain(|(region, _)| region.contains(&at));
        let mut text = renamed(line, |name| {
            copies.iter().rev().find_map(|(_, names)| names.get(name)).map(String::as_str)
        });
        if let Some(region) = thread_number_read_anew(line).and_then(|_| flow.region_behind(at)) {
            let looped = flow.loop_before(at);
            let again = looped.map(|looped| numbers.again(&lines, looped, region.clone(), length));
            let again = again.unwrap_or_default();
            let names = again.iter().map(|&name| (name, format!("{name}_{at}"))).collect();
            // On the same line: the map of lines stays true.
            for &name in &again {
                text.push_str(&numbers.copy(&lines, name, &names)?);
            }
            copies.push((region, names));
        }
        written.push(text);
    }
    let ptx_again = written.join("\n") + "\n";
    (ptx_again != ptx).then_some(ptx_again)
}

/// The line with each register that `name` gives another name.
fn renamed<'n>(line: &str, name: impl Fn(&str) -> Option<&'n str>) -> String {
    let mut text = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find('%') {
        let end = rest[at + 1..].find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let end = end.map_or(rest.len(), |end| at + 1 + end);
        text.push_str(&rest[..at]);
        text.push_str(name(&rest[at..end]).unwrap_or(&rest[at..end]));
        rest = &rest[end..];
    }
    text + rest
}

/// Where lines of a kernel go on.
struct Flow {
    /// Each branch and the label that it goes to.
    branches: Vec<(usize, usize)>,
    end: usize,
}

impl Flow {
    fn of(lines: &[&str]) -> Flow {
        let name = |line: &&str| line.strip_suffix(':').map(str::trim).map(str::to_owned);
        let labels: FxHashMap<String, usize> = lines
            .iter()
            .enumerate()
            .filter_map(|(at, line)| name(line).map(|name| (name, at)))
            .collect();
        let target = |line: &str| {
            let (_, to) = line.rsplit_once("bra")?;
            labels.get(to[to.find('$')?..].trim_end_matches(';')).copied()
        };
        let branches = lines.iter().enumerate();
        let branches = branches.filter_map(|(at, line)| target(line).map(|to| (at, to))).collect();
        let end = lines.iter().rposition(|line| *line == "}").unwrap_or(lines.len());
        Flow { branches, end }
    }

    /// The lines from `at` on that nobody reaches but by way of it.
    fn region_behind(&self, at: usize) -> Option<Range<usize>> {
        let is_behind = |&&(from, to): &&(usize, usize)| from < at && to > at;
        let end = self.branches.iter().filter(is_behind).map(|&(_, to)| to).min();
        let region = at + 1..end.unwrap_or(self.end);
        let enters = |&(from, to): &(usize, usize)| region.contains(&to) && !region.contains(&from);
        (!self.branches.iter().any(enters)).then_some(region)
    }

    /// The outermost loop that ends last before `at` without going on to it.
    fn loop_before(&self, at: usize) -> Option<Range<usize>> {
        let back = self.branches.iter().filter(|&&(from, to)| to < from);
        let closed = back.filter(|&&(from, _)| from < at).map(|&(from, to)| to..from + 1);
        closed.max_by_key(|looped| (looped.end, std::cmp::Reverse(looped.start)))
    }
}

/// What makes the registers that are written once by what does nothing else.
struct Numbers<'t> {
    made: FxHashMap<&'t str, (usize, Statement<'t>)>,
}

impl<'t> Numbers<'t> {
    fn of(lines: &[&'t str]) -> Numbers<'t> {
        let mut made: FxHashMap<&str, (usize, Statement<'_>)> = FxHashMap::default();
        let mut often: FxHashSet<&str> = FxHashSet::default();
        let mut depth = 0;
        for (at, line) in lines.iter().enumerate() {
            let opened = line.matches('{').count() as i32 - line.matches('}').count() as i32;
            depth += opened;
            let statement = Statement::of(line, "");
            // What stands in braces of its own may use names of its own.
            let is_pure = statement.is_pure && depth == 1 && opened == 0;
            if let (&[name], true) = (statement.writes.as_slice(), is_pure) {
                if made.insert(name, (at, statement)).is_some() {
                    often.insert(name);
                }
            } else {
                often.extend(statement.writes);
            }
        }
        made.retain(|name, _| !often.contains(name));
        Numbers { made }
    }

    /// The registers to make again in `region`, behind a loop, each after those that it is made of.
    fn again(
        &self,
        lines: &[&'t str],
        looped: Range<usize>,
        region: Range<usize>,
        length: usize,
    ) -> Vec<&'t str> {
        let kept: FxHashSet<&str> =
            lines[looped.clone()].iter().flat_map(|line| registers(line)).collect();
        let mut again: Vec<&str> = Vec::new();
        for name in lines[region].iter().flat_map(|line| registers(line)) {
            let mut chain = Vec::new();
            let is_made = !kept.contains(name)
                && self.collect(name, looped.start, &kept, &mut chain)
                && chain.len() <= length;
            if is_made {
                chain.retain(|name| !again.contains(name));
                again.extend(chain);
            }
        }
        again
    }

    /// Adds what makes `name` in front of line `before`, in order, unless the loop behind it keeps it. Whether all of
    /// it follows from numbers of the program and arguments.
    fn collect(
        &self,
        name: &'t str,
        before: usize,
        kept: &FxHashSet<&str>,
        chain: &mut Vec<&'t str>,
    ) -> bool {
        /// More than is made again of anything.
        const MANY: usize = 64;
        if chain.contains(&name) || is_of_program(name) {
            return true;
        }
        let Some((_, statement)) = self.made.get(name).filter(|(at, _)| *at < before) else {
            return false;
        };
        if kept.contains(name) {
            return true;
        }
        let follows = statement.reads.iter().all(|read| self.collect(read, before, kept, chain));
        chain.push(name);
        follows && chain.len() <= MANY
    }

    /// What makes the register again, under another name.
    fn copy(&self, lines: &[&str], name: &str, names: &FxHashMap<&str, String>) -> Option<String> {
        let (at, statement) = self.made.get(name)?;
        let other = names.get(name)?;
        let ty = register_type(name)?;
        let made = renamed(lines[*at].trim(), |name| names.get(name).map(String::as_str));
        let mut text = format!(" .reg .{ty} {other}; {made}");
        if !statement.reads.iter().any(|read| is_of_program(read)) {
            return Some(text);
        }
        let _ = write!(
            text,
            " {{ .reg .b32 nobody; vote.sync.ballot.b32 nobody, 0, -1; add.u32 {other}, {other}, nobody; }}"
        );
        (ty == "b32").then_some(text)
    }
}

/// Whether a register holds a number of the program.
fn is_of_program(name: &str) -> bool {
    matches!(name, "%ctaid" | "%nctaid")
}

fn register_type(name: &str) -> Option<&'static str> {
    Some(match name.trim_end_matches(|digit: char| digit.is_ascii_digit()) {
        "%p" => "pred",
        "%rs" => "b16",
        "%r" => "b32",
        "%rd" => "b64",
        "%f" => "f32",
        "%fd" => "f64",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::behind_loops;

    /// A kernel whose loop is `looped`, and what it does `behind`.
    fn kernel(looped: &str, number: &str, behind: &[&str]) -> String {
        let before = [
            "{",
            "\tld.param.u64 \t%rd1, [k_param_0];",
            "\tmov.u32 \t%r1, %ctaid.x;",
            "\tshl.b32 \t%r2, %r1, 7;",
            "\tmov.u32 \t%r3, %tid.x;",
            "\tadd.s32 \t%r4, %r3, 1;",
            "\t@%p1 bra \t$L__BB0_2;",
            "$L__BB0_1:",
            looped,
            "\t@%p1 bra \t$L__BB0_1;",
            "$L__BB0_2:",
            number,
        ];
        [&before[..], behind, &["\tret;", "}"]].concat().join("\n") + "\n"
    }

    const NUMBER: &str = "\tmov.u32 %r5, %tid.x;";
    const MULTIPLY: &str = "\twgmma.fence;";
    const BEHIND: &[&str] = &["\tor.b32 \t%r6, %r5, %r2;", "\tor.b32 \t%r7, %r6, %r4;"];

    #[test]
    fn what_follows_from_the_program_is_made_again() {
        let again = "\tmov.u32 %r5, %tid.x; .reg .b32 %r1_11; mov.u32 \t%r1_11, %ctaid.x; \
                     { .reg .b32 nobody; vote.sync.ballot.b32 nobody, 0, -1; \
                     add.u32 %r1_11, %r1_11, nobody; } \
                     .reg .b32 %r2_11; shl.b32 \t%r2_11, %r1_11, 7;";
        let behind = ["\tor.b32 \t%r6, %r5, %r2_11;", BEHIND[1]];
        let written = kernel(MULTIPLY, NUMBER, BEHIND);
        assert_eq!(behind_loops(&written, 2), Some(kernel(MULTIPLY, again, &behind)));
        assert_eq!(behind_loops(&written, 1), None, "it takes two instructions");
    }

    #[test]
    fn what_the_loop_needs_or_changes_is_kept() {
        for looped in ["\tadd.s32 \t%r8, %r8, %r2;", "\tadd.s32 \t%r2, %r2, 1;"] {
            assert_eq!(behind_loops(&kernel(looped, NUMBER, BEHIND), 2), None, "{looped}");
        }
    }

    #[test]
    fn what_is_reached_in_another_way_is_left_alone() {
        let behind = [&["$L__BB0_3:"], BEHIND].concat();
        let skips =
            kernel(MULTIPLY, NUMBER, &behind).replacen("bra \t$L__BB0_2", "bra \t$L__BB0_3", 1);
        assert_eq!(behind_loops(&skips, 2), None);
    }
}
