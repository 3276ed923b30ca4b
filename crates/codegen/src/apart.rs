//! What follows from the thread's number, apart before and behind a loop.
//!
//! Behind loops of products the number is read anew, so that indices and masks take no registers in the loop.
//! The assembler finds the two equal, though, and keeps what it compares behind the loop if it has computed it
//! in front of it: an attention in 8-bit floats kept sixteen columns, and took 93 registers instead of 80. Here
//! each thread asks itself for its number instead, which no assembler sees through.
//!
//! It is what fits a multiprocessor that decides. Measured on an H100, attentions of which another CTA fits take
//! 0.94 to 1.00 times as long. Others took up to 1.05 times as long: where as many fit as before, where a tenth of
//! the registers was saved, and where a warp waits for longer than the others make up for.

use std::path::Path;

use tile_compiler::artifact::Manifest;

use crate::loops::Spent;
use crate::orders::{Candidate, Printed, cycles_of, resident_blocks, work_of};
use crate::products::{FEWER_REGISTERS, Needs, with_fewer_registers};
use crate::ptxas::Assembled;
use crate::trials::Trials;
use crate::{Wish, assemble_order};

/// `best`, or the same kernel with the thread's number behind loops apart from the first.
pub(crate) fn or_apart(
    tool: &Path,
    manifest: &Manifest,
    wish: Wish,
    needs: Needs,
    trials: &mut Trials,
    best: Candidate,
) -> Candidate {
    if trials.take_beside(FEWER_REGISTERS, 1) == 0 {
        return best;
    }
    let (Printed { order, ptx, line_map }, _) = &best;
    let ptx = set_apart(&without_directives(ptx));
    let mut printed = Printed { order: *order, ptx, line_map: line_map.clone() };
    let Ok(assembled) = assemble_order(tool, manifest, wish, &mut printed) else { return best };
    let other = with_fewer_registers(tool, manifest, needs, trials, (printed, assembled));
    if makes_room(manifest, &best.1, &other.1) { other } else { best }
}

/// `ptx` with each number that is read anew as an answer of the thread to itself.
fn set_apart(ptx: &str) -> String {
    let mut lines: Vec<String> = ptx.lines().map(str::to_owned).collect();
    for line in &mut lines {
        if let Some(register) = thread_number_read_anew(line).map(str::to_owned) {
            line.push_str(&format!(" shfl.sync.bfly.b32 {register}, {register}, 0, 31, -1;"));
        }
    }
    lines.join("\n") + "\n"
}

/// The register into which a line reads the thread's number anew, behind a loop of products.
pub(crate) fn thread_number_read_anew(line: &str) -> Option<&str> {
    // LLVM itself writes a tab behind the name.
    let register = line.trim().strip_prefix("mov.u32 ")?.strip_suffix(", %tid.x;")?;
    register.starts_with('%').then_some(register)
}

/// `ptx` without what it asks the assembler for.
fn without_directives(ptx: &str) -> String {
    let line = |line: &str| match line.split_once(", 1, 1 .") {
        Some((size, _)) if line.starts_with(".reqntid") => format!("{size}, 1, 1\n"),
        _ => format!("{line}\n"),
    };
    ptx.lines().map(line).collect()
}

/// By what part a warp may wait longer beside as many others.
const DELAY: u64 = 32;

/// By what part code may issue more instructions.
const GROWTH: u64 = 64;

/// Whether `other` takes the place of `best` because it needs a ninth of the registers less, and all warps of
/// a multiprocessor are through their loops as early.
fn makes_room(manifest: &Manifest, best: &Assembled, other: &Assembled) -> bool {
    let [room, other_room] =
        [best, other].map(|assembled| u64::from(resident_blocks(manifest, assembled)));
    let [a, b] = [best, other].map(|assembled| &assembled.report);
    let times = work_of(manifest, best, other).zip(cycles_of(manifest, best, other));
    type Pair = (Spent, Spent);
    let is_as_early = |((work, other_work), (cycles, other_cycles)): (Pair, Pair)| {
        let delay = if other_room > room { 0 } else { cycles.all / DELAY };
        other_work.all <= work.all + work.all / GROWTH
            && other_cycles.all * room <= (cycles.all + delay) * other_room
    };
    9 * b.registers <= 8 * a.registers && b.spills_no_more_than(a) && times.is_some_and(is_as_early)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_later_numbers_are_set_apart() {
        let ptx = "\tmov.u32 \t%r1, %tid.x;\n\tmov.u32 %r2, %tid.x;\n";
        let apart = "\tmov.u32 \t%r1, %tid.x;\n\
                     \tmov.u32 %r2, %tid.x; shfl.sync.bfly.b32 %r2, %r2, 0, 31, -1;\n";
        assert_eq!(set_apart(ptx), apart);
    }

    #[test]
    fn directives_are_taken_back() {
        let ptx = ".reqntid 128, 1, 1 .maxnreg 96 .minnctapersm 4\n{\n";
        assert_eq!(without_directives(ptx), ".reqntid 128, 1, 1\n{\n");
    }
}
