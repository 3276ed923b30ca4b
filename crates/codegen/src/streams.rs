//! Loops that stream through memory, and the room that the assembler needs for them.
//!
//! Left alone, the assembler orders a loop so that as many CTAs as possible fit a multiprocessor,
//! even if each load is then waited for before the next one starts. Where a loop reads several
//! vectors and only adds them to what it carries, more bytes on their way are worth more than more
//! warps: measured on a H200, 5/8 of the warps with all loads in flight took 0.8 times as long.
//! Loops that reduce what they read need all of it at once and are ordered well already.

use tile_compiler::ir::{Function, Opcode, Type};

/// Bytes of a vector access.
const VECTOR_BYTES: usize = 16;
/// Registers of a multiprocessor.
const REGISTERS: u32 = 64 * 1024;
/// Registers of a thread come in units of this many.
const UNIT: u32 = 8;

/// Whether some loop reads several vectors per thread and combines them with nothing but what the
/// same thread holds.
pub(crate) fn found(func: &Function) -> bool {
    func.walk().into_iter().any(|inst| {
        let data = &func.insts[inst];
        if data.opcode != Opcode::For {
            return false;
        }
        let mut bytes = 0;
        for inner in func.walk_from(data.regions[0]) {
            let inner = &func.insts[inner];
            match inner.opcode {
                Opcode::Load => bytes += bytes_per_thread(func, func.ty(inner.result())),
                opcode if meets_threads(opcode) => return false,
                _ => {}
            }
        }
        bytes >= 2 * VECTOR_BYTES
    })
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
/// has room for its loads: 5/8 of the warps are to stay. `None` if the kernel needs more `registers`
/// than that leaves, or has the room already.
pub(crate) fn blocks_with_room(threads: u32, warps: u32, registers: u32) -> Option<u32> {
    let blocks = warps * 32 * 5 / 8 / threads;
    let fits = blocks > 0 && registers <= REGISTERS / (blocks * threads) / UNIT * UNIT;
    fits.then_some(blocks)
}

#[cfg(test)]
mod tests {
    use super::blocks_with_room;

    #[test]
    fn room_is_made_where_registers_allow_it() {
        assert_eq!(blocks_with_room(256, 64, 32), Some(5), "48 registers are enough");
        assert_eq!(blocks_with_room(256, 64, 56), None);
        assert_eq!(blocks_with_room(1024, 32, 32), None, "no CTA would be left");
    }
}
