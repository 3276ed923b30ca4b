//! Loops that stream through memory, and the room that the assembler needs for them.
//!
//! Left alone, the assembler orders a loop so that as many CTAs as possible fit a multiprocessor,
//! even if each load is then waited for before the next one starts. Where a loop reads several
//! vectors and only adds them to what it carries, more bytes on their way are worth more than more
//! warps, until all loads of an iteration are: measured on an H200, such loops take 0.92 to 0.99
//! times as long with room for that. Loops that reduce what they read need all of it at once and are
//! ordered well already. Loops that hand on no tiles, as those that write a normalized row, gain more
//! from all the warps that fit: they take 0.82 to 1.01 times as long as with such room.

use rustc_hash::FxHashSet;
use tile_compiler::analysis::axis::AxisInfos;
use tile_compiler::gpu::coalesce::access_bytes;
use tile_compiler::ir::{Function, Inst, InstData, Opcode, Region, Type, Value};

/// Bytes of a vector access.
const VECTOR_BYTES: usize = 16;
/// Bytes of a register.
const REGISTER_BYTES: usize = 4;
/// Registers of a multiprocessor.
const REGISTERS: u32 = 64 * 1024;
/// Registers of a thread come in units of this many.
const UNIT: u32 = 8;
/// Registers for what every loop has: its counter, bounds, and where its arrays begin.
const REST: usize = 16;

/// What a loop that reads several vectors per thread and combines them with nothing but what the
/// same thread holds needs its registers for.
struct Stream {
    /// Registers for the loads of an iteration and their addresses.
    in_flight: usize,
    /// Registers of tiles that iterations hand on.
    carried: usize,
}

/// The registers that a thread needs to have all loads of an iteration on their way, where some
/// stream adds to tiles.
pub(crate) fn room(func: &Function) -> Option<u32> {
    let adding = streams(func).into_iter().filter(|stream| stream.carried > 0);
    adding.map(|stream| (stream.in_flight + stream.carried + REST) as u32).max()
}

/// Whether some stream hands on no tiles: what it reads is soon written, and other warps keep the
/// memory as busy as more loads would.
pub(crate) fn has_map(func: &Function) -> bool {
    streams(func).iter().any(|stream| stream.carried == 0)
}

/// Whether tiles are read into as many registers as are computed with: elements that are narrower
/// take fewer while they are on their way, so that there is room for them anyhow.
pub(crate) fn loads_fill_registers(func: &Function) -> bool {
    let loads = func.walk().into_iter().map(|inst| &func.insts[inst]);
    let mut loads = loads.filter(|data| data.opcode == Opcode::Load);
    loads.all(|load| {
        let ty = func.ty(load.result());
        let fills = |bits: u32| bits as usize >= 8 * REGISTER_BYTES;
        !ty.is_tile() || ty.elem().is_none_or(|elem| fills(elem.bits()))
    })
}

fn streams(func: &Function) -> Vec<Stream> {
    let infos = AxisInfos::of(func);
    let own = of_own_program(func);
    let loops = func.walk().into_iter().filter(|&inst| func.insts[inst].opcode == Opcode::For);
    let streams = loops.filter_map(|inst| {
        let inner = func.walk_from(func.insts[inst].regions[0]);
        let is_load = |&&inst: &&Inst| func.insts[inst].opcode == Opcode::Load;
        let loads = || inner.iter().filter(is_load).map(|&inst| &func.insts[inst]);
        let bytes: usize = loads().map(|load| bytes_per_thread(func, func.ty(load.result()))).sum();
        let meets = inner.iter().any(|&inst| meets_threads(func.insts[inst].opcode));
        if meets || bytes < 2 * VECTOR_BYTES {
            return None;
        }
        // What every program reads comes from the cache, and soon.
        let awaited = loads().filter(|load| own.contains(&load.operand(0)));
        let in_flight = awaited.map(|load| registers_of_load(func, &infos, load)).sum();
        let results = func.insts[inst].results.iter();
        let carried: usize = results.map(|&value| bytes_per_thread(func, func.ty(value))).sum();
        Some(Stream { in_flight, carried: carried.div_ceil(REGISTER_BYTES) })
    });
    streams.collect()
}

/// What a load fills, and an address for each access but those of whole vectors, which lie at fixed
/// distances.
fn registers_of_load(func: &Function, infos: &AxisInfos, load: &InstData) -> usize {
    let bytes = bytes_per_thread(func, func.ty(load.result()));
    let access =
        access_bytes(func, infos, load.operand(0)).map_or(bytes, |(_, access)| access as usize);
    let accesses = bytes / access.max(1);
    let addresses = if access >= VECTOR_BYTES { 0 } else { 2 * accesses };
    bytes / REGISTER_BYTES + addresses
}

/// The values that differ between programs: they follow from the program's number.
fn of_own_program(func: &Function) -> FxHashSet<Value> {
    let mut own = FxHashSet::default();
    loop {
        let known = own.len();
        for inst in func.walk() {
            let data = &func.insts[inst];
            let follows = data.opcode == Opcode::ProgramId
                || data.uses().any(|value| own.contains(&value))
                || data.regions.iter().any(|&region| yields_any(func, region, &own));
            if follows {
                own.extend(&data.results);
                own.extend(data.regions.iter().flat_map(|&region| &func.regions[region].args));
            }
        }
        if own.len() == known {
            return own;
        }
    }
}

fn yields_any(func: &Function, region: Region, values: &FxHashSet<Value>) -> bool {
    func.terminator(region).is_some_and(|end| end.uses().any(|value| values.contains(&value)))
}

/// Operations through which elements of several threads meet, or that wait for memory themselves.
fn meets_threads(opcode: Opcode) -> bool {
    use Opcode::*;
    matches!(
        opcode,
        Reduce
            | Scan
            | Sort
            | Gather
            | Histogram
            | ConvertLayout
            | Barrier
            | Dot
            | Mma
            | AsyncCopy
            | AtomicRmw
            | AtomicCas
            | For
            | While
    )
}

fn bytes_per_thread(func: &Function, ty: &Type) -> usize {
    match (ty.layout(), ty.elem()) {
        (Some(layout), Some(elem)) => {
            func.layouts[layout].elements_per_thread() * elem.bits().div_ceil(8) as usize
        }
        _ => 0,
    }
}

/// How many CTAs of `threads` are to fit a multiprocessor that has room for `warps`, so that each
/// thread has `room` registers, and no fewer than it needs anyhow: as many as that leaves, but half
/// of the warps at least and three quarters at most. A kernel of which not even so many fit keeps
/// those that do: told how many, the assembler uses all registers that they leave for loads.
pub(crate) fn blocks_with_room(threads: u32, warps: u32, registers: u32, room: u32) -> Option<u32> {
    let blocks_of = |eighths: u32| warps * 32 * eighths / 8 / threads;
    let limit = |blocks: u32| REGISTERS / (blocks * threads) / UNIT * UNIT;
    let fewest = blocks_of(4);
    if fewest == 0 {
        return None;
    }
    if registers > limit(fewest) {
        return Some(REGISTERS / (registers.next_multiple_of(UNIT) * threads))
            .filter(|&own| own > 0);
    }
    let enough = |&blocks: &u32| limit(blocks) >= room.max(registers);
    Some([6, 5].into_iter().map(blocks_of).find(enough).unwrap_or(fewest))
}

#[cfg(test)]
mod tests {
    use super::blocks_with_room;

    #[test]
    fn room_is_made_where_registers_allow_it() {
        assert_eq!(blocks_with_room(256, 64, 32, 36), Some(6), "40 registers are enough");
        assert_eq!(blocks_with_room(256, 64, 44, 36), Some(5), "the kernel itself needs 44");
        assert_eq!(blocks_with_room(256, 64, 32, 90), Some(4), "half of the warps stay");
        assert_eq!(blocks_with_room(128, 64, 96, 144), Some(5), "more would not fit anyhow");
        assert_eq!(blocks_with_room(1024, 32, 32, 36), None, "no CTA would be left");
    }
}
