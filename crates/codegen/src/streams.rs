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

/// The PTX with room for loads: at least 5/8 of `warps`, those that fit a multiprocessor, are to
/// stay. `None` if the kernel needs more `registers` than that leaves, or has the room already.
pub(crate) fn with_room(ptx: &str, threads: u32, warps: u32, registers: u32) -> Option<String> {
    let ctas = warps * 32 * 5 / 8 / threads;
    if ctas == 0 || registers > REGISTERS / (ctas * threads) / UNIT * UNIT {
        return None;
    }
    let size = format!(".reqntid {threads}, 1, 1");
    // On the same line: the map of lines stays true.
    ptx.contains(&size).then(|| ptx.replacen(&size, &format!("{size} .minnctapersm {ctas}"), 1))
}

#[cfg(test)]
mod tests {
    use super::with_room;

    #[test]
    fn room_is_made_where_registers_allow_it() {
        let ptx = ".entry k()\n.reqntid 256, 1, 1\n{\n}";
        let roomy = with_room(ptx, 256, 64, 32).expect("48 registers are enough");
        assert_eq!(roomy, ".entry k()\n.reqntid 256, 1, 1 .minnctapersm 5\n{\n}");
        assert_eq!(with_room(ptx, 256, 64, 56), None);
        assert_eq!(with_room(ptx, 1024, 32, 32), None, "no CTA would be left");
    }
}
