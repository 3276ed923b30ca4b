//! Registers that products take and do not need.
//!
//! The assembler spreads over all registers that a thread may have: it keeps addresses that are one sum
//! away from others that it keeps anyway, and starts early what could wait. So it is asked once more for
//! fewer, which is taken where nothing gets longer by it.

use std::panic::resume_unwind;
use std::path::Path;
use std::thread::ScopedJoinHandle;

use tile_compiler::artifact::Manifest;

use crate::orders::{Candidate, Printed, cycles_of, resident_blocks, work_of};
use crate::ptxas::{self, Assembled};
use crate::trials::Trials;
use crate::with_directive;

/// What a kernel needs whose products matrix units compute.
#[derive(Clone, Copy)]
pub(crate) struct Needs {
    /// Registers, about, without the addresses that loops carry.
    pub(crate) registers: u32,
    /// Whether these are all: the addresses of rows follow from one.
    pub(crate) are_all: bool,
    /// Whether many indices are compared behind loops, which need none of them.
    pub(crate) compares_behind: bool,
}

/// By what part a kernel may issue more instructions that has no more registers than it needs. With
/// descriptors, whose rows need one address, a product on an H100 took 158 registers instead of 202 and
/// 0.998 times as long.
const GROWTH_AS_NEEDED: u64 = 12;

/// By what part any other may. Where loops issued a hundredth more, kernels took as much longer.
const GROWTH: u64 = 256;

/// By what part any may in which a warp waits no longer in all, or issues as much in its innermost loops: these
/// run more often than is assumed of loops. Measured on an H200, decoding of pages took 109 registers instead of
/// 124 and as long, attention over sequences 156 instead of 178 and 1.005 times as long; persistent products that
/// clamp rows 214 and 216 instead of 249 and 247, and, with other masks, 1.001 and 1.014 times as long.
const GROWTH_ELSEWHERE: u64 = 64;

/// By what part one may that is too long for most attempts: each thread has much of a product, and few warps wait
/// for the matrix units. Measured on an H200 with an eighth of the registers less, products of 128 x 256 elements
/// take 0.998 times as long, those of 8-bit floats 0.973, attention 0.965 to 0.981, with a sixteenth less persistent
/// ones 0.993; those whose warps wait for longer than [`DELAY`] allows took up to 1.03 times as long.
const GROWTH_OF_LONG: u64 = 48;

/// How many numbers of registers are tried at least, where any are.
pub(crate) const FEWER_REGISTERS: usize = 2;

/// `best`, or the same kernel with the fewest registers of which nothing gets longer: a sixteenth or a tenth more than
/// it needs, an eighth or a sixteenth less than it takes. All are assembled beside each other.
pub(crate) fn with_fewer_registers(
    tool: &Path,
    manifest: &Manifest,
    needs: Needs,
    trials: &mut Trials,
    (printed, best): Candidate,
) -> Candidate {
    // With fewer it would spill more.
    if best.report.spill_store_bytes > 0 {
        return (printed, best);
    }
    let registers = best.report.registers;
    let [less, little_less] = [8, 16].map(|part| registers - registers / part);
    let [scarce, needed] = [16, 10].map(|part| needs.registers + needs.registers / part);
    let mut limits = vec![(little_less, GROWTH), (less, GROWTH)];
    limits.truncate(trials.take(limits.len()));
    // What a kernel takes beyond all that it needs is most often saved, and much of it.
    if needs.are_all && trials.may_promise() {
        let needed = if limits.is_empty() { vec![needed] } else { vec![needed, scarce] };
        let needed = needed.into_iter().filter(|&limit| limit <= little_less);
        limits.extend(needed.map(|limit| (limit, GROWTH_AS_NEEDED)));
    }
    if trials.is_long() && trials.may_promise() {
        limits.extend([little_less, less].map(|limit| (limit, GROWTH_OF_LONG)));
    }
    limits.sort_by_key(|&(limit, _)| limit);
    let try_out = |limit: u32| {
        let directive = format!(".maxnreg {limit}");
        let ptx = with_directive(&printed.ptx, manifest.num_warps * 32, &directive)?;
        // It is refused where single instructions need more registers.
        let few = ptxas::assemble(tool, &ptx, &manifest.arch).ok()?;
        Some((ptx, few))
    };
    let tried: Vec<_> = std::thread::scope(|scope| {
        let begin = |(limit, growth)| (scope.spawn(move || try_out(limit)), growth);
        let threads: Vec<_> = limits.into_iter().map(begin).collect();
        let join = |thread: ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| resume_unwind(panic))
        };
        threads.into_iter().map(|(thread, growth)| (join(thread), growth)).collect()
    });
    let mut few = tried.into_iter().filter_map(|(tried, growth)| tried.zip(Some(growth)));
    match few.find(|((_, few), growth)| is_as_good(manifest, &best, few, *growth)) {
        Some(((ptx, few), _)) => (Printed { ptx, ..printed }, few),
        None => (printed, best),
    }
}

/// By what part a warp may wait longer, whatever it issues: few registers have values computed one after the
/// other that could be computed beside each other. A warp that inverts a matrix alone, by four shuffles in a
/// row instead of at once, took 1.26 times as long as Triton's on an H100 and 1.18 times before.
const DELAY: u64 = 32;

/// Whether `few` spills no more than `best`, as many CTAs fit a multiprocessor, about as many bytes are on
/// their way at once, and its loops are longer by one part in `growth` at most. A step of decoding that
/// loads its weights through registers took 1.3 times as long on an H100 with a third of the registers less.
fn is_as_good(manifest: &Manifest, best: &Assembled, few: &Assembled, growth: u64) -> bool {
    let [a, b] = [best, few].map(|assembled| &assembled.report);
    let [room, other_room] = [best, few].map(|assembled| resident_blocks(manifest, assembled));
    let [in_flight, others_in_flight] = [best, few].map(|it| it.bytes_in_flight().unwrap_or(0));
    b.spills_no_more_than(a)
        && other_room >= room
        && 4 * others_in_flight >= 3 * in_flight
        && is_as_short(manifest, best, few, growth)
}

/// Whether `few` is longer by one part in `growth` at most, or by [`GROWTH_ELSEWHERE`] where a warp is through it
/// no later or its innermost loops are no longer.
fn is_as_short(manifest: &Manifest, best: &Assembled, few: &Assembled, growth: u64) -> bool {
    let times = work_of(manifest, best, few).zip(cycles_of(manifest, best, few));
    times.is_some_and(|((work, few_work), (cycles, few_cycles))| {
        let is_elsewhere = few_cycles.all <= cycles.all || few_work.innermost <= work.innermost;
        let growth = if is_elsewhere { growth.min(GROWTH_ELSEWHERE) } else { growth };
        few_work.all <= work.all + work.all / growth
            && few_cycles.all <= cycles.all + cycles.all / DELAY.min(growth)
    })
}
