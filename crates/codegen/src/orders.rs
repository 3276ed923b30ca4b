//! Orders of instructions: which of those that LLVM printed becomes the machine code.
//!
//! What the assembler makes of an order shows in its report and in the machine code alone, so that all
//! that may gain are assembled, beside each other.

use std::panic::resume_unwind;
use std::path::Path;
use std::thread::ScopedJoinHandle;

use tile_compiler::artifact::{LineMap, Manifest};
use tile_compiler::gpu::limits::SmLimits;
use tile_compiler::ir::{Function, Opcode};

use crate::loops::Spent;
use crate::machine::Order;
use crate::ptxas::{self, Assembled};
use crate::{
    Arch, CodegenError, Wish, assemble_order, assemble_plain, assemble_wish, can_lose, has,
    has_loops, with_directive,
};

/// PTX in one order of instructions.
pub(crate) struct Printed {
    pub(crate) order: Order,
    pub(crate) ptx: String,
    pub(crate) line_map: LineMap,
}

/// How often threads of a kernel wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waits {
    /// In each iteration of a loop, or for tiles that other threads hold.
    Often,
    /// For memory, then for each other to reduce what was read.
    Twice,
    /// For memory: each thread stores what it makes of what it reads.
    Once,
}

impl Waits {
    pub(crate) fn of(func: &Function) -> Waits {
        if has_loops(func) || has(func, &[Opcode::ConvertLayout, Opcode::Scan, Opcode::Sort]) {
            Waits::Often
        } else if has(func, &[Opcode::Reduce]) {
            Waits::Twice
        } else {
            Waits::Once
        }
    }
}

/// PTX in one order, and what was assembled of it.
pub(crate) type Candidate = (Printed, Assembled);

/// Assembles PTX in several orders beside each other.
pub(crate) fn assemble_orders(
    tool: &Path,
    manifest: &Manifest,
    wish: Wish,
    mut printed: Vec<Printed>,
) -> Vec<(Printed, Result<Assembled, CodegenError>)> {
    let results: Vec<_> = std::thread::scope(|scope| {
        let run = |printed| scope.spawn(move || assemble_order(tool, manifest, wish, printed));
        let threads: Vec<_> = printed.iter_mut().map(run).collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined.map(|result| result.unwrap_or_else(|panic| resume_unwind(panic))).collect()
    });
    printed.into_iter().zip(results).collect()
}

/// The better one of the best order up to now and another, which may have failed.
pub(crate) fn better_of(
    manifest: &Manifest,
    waits: Waits,
    best: Candidate,
    (printed, result): (Printed, Result<Assembled, CodegenError>),
) -> Candidate {
    let Ok(other) = result else { return best };
    let is_better = match printed.order {
        Order::Written => false,
        Order::FewRegisters | Order::DepthFirst => {
            saves_registers(manifest, waits, &best.1, &other)
                || reads_at_once(manifest, waits, &best.1, &other)
        }
        Order::PlainAddresses => shortens_loops(manifest, &best.1, &other),
        Order::NarrowOffsets => narrows_loops(manifest, &best.1, &other),
    };
    if is_better { (printed, other) } else { best }
}

/// Whether `other` takes the place of `written` because it needs fewer registers: an eighth at
/// least, since it waits a little more for what it has just computed, and so much that other warps
/// make up for it, those that read memory included.
fn saves_registers(
    manifest: &Manifest,
    waits: Waits,
    written: &Assembled,
    other: &Assembled,
) -> bool {
    let [a, b] = [written, other].map(|assembled| &assembled.report);
    b.spill_store_bytes <= a.spill_store_bytes
        && is_an_eighth_less(a.registers, b.registers)
        && !grows(written, other, 5)
        && !reads_less(manifest, written, other)
        && !is_better_as_written(manifest, waits, written, other)
}

/// Whether the code of `other` is longer by more than one part in so many, or it is not known how long it is.
fn grows(written: &Assembled, other: &Assembled, parts: u64) -> bool {
    let sizes = written.code_bytes().zip(other.code_bytes());
    sizes.is_none_or(|(written, other)| other > written + written / parts)
}

/// Whether `other` takes the place of `written` because each thread has a quarter more on its way at once, where it waits
/// for memory but once, and hardly anything else changes. On an H200, gradients of a cross entropy take 0.995 times as
/// long so; a step of Adam took 1.010 times as long with 12 CTAs instead of 10.
fn reads_at_once(
    manifest: &Manifest,
    waits: Waits,
    written: &Assembled,
    other: &Assembled,
) -> bool {
    let [a, b] = [written, other].map(|it| it.bytes_in_flight().unwrap_or(0));
    let [room, other_room] = [written, other].map(|assembled| resident_blocks(manifest, assembled));
    waits == Waits::Once
        && 4 * b >= 5 * a
        && b > 0
        && !grows(written, other, 16)
        && other_room == room
        && other.report.spills_no_more_than(&written.report)
}

/// Whether a kernel that waits for memory but once gains nothing by more warps: each thread would have
/// less than three quarters of its loads on their way at once, or plenty is on its way as it is written.
/// On an H100, crossings of rows take 0.98 times as long as written, a step of Adam 0.995. Where threads
/// wait for each other, other warps read meanwhile: a softmax took 1.006 times as long as written.
fn is_better_as_written(
    manifest: &Manifest,
    waits: Waits,
    written: &Assembled,
    other: &Assembled,
) -> bool {
    let [of_written, of_other] = [written, other].map(|it| it.bytes_in_flight().unwrap_or(0));
    let reads_later = 4 * of_other < 3 * of_written;
    let has_plenty = || bytes_in_flight(manifest, written) >= PLENTY_IN_FLIGHT;
    match waits {
        Waits::Often => false,
        Waits::Twice => reads_later,
        Waits::Once => reads_later || has_plenty(),
    }
}

/// Whether `other` takes the place of `written` because its loops are a twentieth less work at least, or
/// no more and read less that was spilled, and as many CTAs fit a multiprocessor.
fn shortens_loops(manifest: &Manifest, written: &Assembled, other: &Assembled) -> bool {
    let [room, other_room] = [written, other].map(|assembled| resident_blocks(manifest, assembled));
    let [a, b] = [written, other].map(|assembled| &assembled.report);
    let reads_fewer_spills = b.spill_load_bytes < a.spill_load_bytes;
    let shortens = |(written, other): (Spent, Spent)| {
        20 * other.all <= 19 * written.all || (reads_fewer_spills && other.all <= written.all)
    };
    work_of(manifest, written, other).is_some_and(shortens)
        && b.spill_store_bytes <= a.spill_store_bytes
        && b.spill_load_bytes <= a.spill_load_bytes
        && other_room >= room
        && !reads_less(manifest, written, other)
}

/// Whether `other` takes the place of `best` because it needs fewer registers for loops that are no longer, by
/// instructions and by cycles.
fn narrows_loops(manifest: &Manifest, best: &Assembled, other: &Assembled) -> bool {
    let [room, other_room] = [best, other].map(|assembled| resident_blocks(manifest, assembled));
    let [a, b] = [best, other].map(|assembled| &assembled.report);
    let times = work_of(manifest, best, other).zip(cycles_of(manifest, best, other));
    times.is_some_and(|((work, other_work), (cycles, other_cycles))| {
        other_work.all <= work.all && other_cycles.all <= cycles.all
    }) && 12 * b.registers <= 11 * a.registers
        && b.spill_store_bytes <= a.spill_store_bytes
        && b.spill_load_bytes <= a.spill_load_bytes
        && other_room >= room
}

/// The instructions that a warp issues of two versions of a kernel, as far as they are known.
pub(crate) fn work_of(manifest: &Manifest, a: &Assembled, b: &Assembled) -> Option<(Spent, Spent)> {
    a.work(capability(manifest)).zip(b.work(capability(manifest)))
}

/// The cycles that a warp takes for two versions of a kernel, as far as they are known.
pub(crate) fn cycles_of(
    manifest: &Manifest,
    a: &Assembled,
    b: &Assembled,
) -> Option<(Spent, Spent)> {
    a.cycles(capability(manifest)).zip(b.cycles(capability(manifest)))
}

fn capability(manifest: &Manifest) -> u32 {
    manifest.arch.parse().map_or(0, |arch: Arch| arch.capability)
}

/// Whether the memory is less busy with `other` than with `written`.
fn reads_less(manifest: &Manifest, written: &Assembled, other: &Assembled) -> bool {
    let [written, other] = [written, other].map(|assembled| bytes_in_flight(manifest, assembled));
    other < written.min(ENOUGH_IN_FLIGHT)
}

/// Bytes on their way to a multiprocessor with which the memory is busy: what an H200's delivers to
/// each, 36 GB/s, in the 0.7 to 0.8 microseconds that a load takes.
const ENOUGH_IN_FLIGHT: u32 = 28 * 1024;

/// Bytes on their way with which the memory is busy although some warps compute or store.
const PLENTY_IN_FLIGHT: u32 = 2 * ENOUGH_IN_FLIGHT;

/// The bytes that loads of all threads of a multiprocessor have on their way at most.
pub(crate) fn bytes_in_flight(manifest: &Manifest, assembled: &Assembled) -> u32 {
    let of_thread = assembled.bytes_in_flight().unwrap_or(0);
    of_thread * resident_blocks(manifest, assembled) * manifest.num_warps * 32
}

/// The CTAs that fit a multiprocessor.
pub(crate) fn resident_blocks(manifest: &Manifest, assembled: &Assembled) -> u32 {
    let Manifest { arch, num_warps, shared_bytes, .. } = manifest;
    let registers = assembled.report.registers;
    SmLimits::of(arch)
        .map_or(1, |limits| limits.resident_blocks(*num_warps, registers, *shared_bytes).0)
}

/// `best`, or the kernel in depth-first order, where registers keep CTAs out: with those that it takes by itself, if
/// `best` could lose what keeps one out, else, where threads often wait, with an eighth less than `best`, if that lets
/// no more CTAs in. Both are assembled beside each other.
pub(crate) fn or_depth_first(
    tool: &Path,
    manifest: &Manifest,
    (wish, waits): (Wish, Waits),
    printed: Printed,
    best: Candidate,
) -> Candidate {
    let Manifest { arch, num_warps, shared_bytes, .. } = manifest;
    let registers = best.1.report.registers;
    let more_blocks =
        |limits: &SmLimits| limits.more_blocks(*num_warps, registers, *shared_bytes).next();
    let Some((_, of_more)) = SmLimits::of(arch).and_then(more_blocks) else { return best };
    let fewer = registers - registers.div_ceil(8);
    // What spills has no registers to lose.
    let spills = best.1.report.spill_store_bytes > 0;
    let may_narrow = waits == Waits::Often && fewer > of_more && !spills;
    let narrow = may_narrow.then(|| narrowed(manifest, &printed, fewer)).flatten();
    let as_is = can_lose(registers, of_more).then_some(printed);
    let (narrow, as_is) = std::thread::scope(|scope| {
        let narrow = narrow.map(|printed| {
            scope.spawn(move || (ptxas::assemble(tool, &printed.ptx, arch), printed))
        });
        let as_is = as_is.and_then(|printed| depth_first(tool, manifest, wish, printed, &best));
        let join = |thread: ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| resume_unwind(panic))
        };
        (narrow.map(join), as_is)
    });
    if let Some((printed, other)) = as_is
        && saves_registers(manifest, waits, &best.1, &other)
    {
        return (printed, other);
    }
    match narrow {
        Some((Ok(other), printed)) if leaves_registers(manifest, &best.1, &other) => {
            (printed, other)
        }
        _ => best,
    }
}

/// The kernel in depth-first order, unless it cannot save registers.
fn depth_first(
    tool: &Path,
    manifest: &Manifest,
    wish: Wish,
    mut printed: Printed,
    best: &Candidate,
) -> Option<Candidate> {
    let plain = assemble_plain(tool, manifest, &printed).ok()?;
    let wish = wish.settled_for(manifest, &plain);
    let may_save = is_an_eighth_less(best.1.report.registers, plain.report.registers);
    if wish.only_adds_registers() && !may_save {
        return None;
    }
    let assembled = assemble_wish(tool, manifest, wish, &mut printed, plain);
    Some((printed, assembled))
}

/// PTX that asks for `registers` at most.
fn narrowed(manifest: &Manifest, printed: &Printed, registers: u32) -> Option<Printed> {
    let Printed { order, ptx, line_map } = printed;
    let ptx = with_directive(ptx, manifest.num_warps * 32, &format!(".maxnreg {registers}"))?;
    Some(Printed { order: *order, ptx, line_map: line_map.clone() })
}

/// By what part a warp may be through a kernel later that needs fewer registers.
const DELAY: u64 = 32;

fn is_an_eighth_less(registers: u32, fewer: u32) -> bool {
    8 * fewer <= 7 * registers
}

/// Whether `other` takes the place of `best` because it needs an eighth of the registers less and hardly anything else
/// changes: as many CTAs fit a multiprocessor, as many bytes are on their way at once, and a warp is through it about
/// as early with no more instructions. On an H100, gradients of layer normalization take 0.97 to 1.00 times as long so; one
/// whose programs wait for each other's locks took 1.035 times as long with 12 CTAs instead of 10. A softmax, whose threads
/// wait but twice, took 1.004 times as long.
fn leaves_registers(manifest: &Manifest, best: &Assembled, other: &Assembled) -> bool {
    let [a, b] = [best, other].map(|assembled| &assembled.report);
    let [room, other_room] = [best, other].map(|assembled| resident_blocks(manifest, assembled));
    let times = work_of(manifest, best, other).zip(cycles_of(manifest, best, other));
    is_an_eighth_less(a.registers, b.registers)
        && b.spills_no_more_than(a)
        && other_room == room
        && other.bytes_in_flight() >= best.bytes_in_flight()
        && times.is_some_and(|((work, other_work), (cycles, other_cycles))| {
            other_work.all <= work.all && other_cycles.all <= cycles.all + cycles.all / DELAY
        })
}
