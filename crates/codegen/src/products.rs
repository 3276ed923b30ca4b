//! Registers that products take and do not need.
//!
//! The assembler spreads over all registers that a thread may have: it keeps addresses that are one sum
//! away from others that it keeps anyway, and starts early what could wait. So it is asked once more for
//! fewer, which is taken where nothing gets longer by it.

use std::path::Path;

use tile_compiler::artifact::Manifest;

use crate::orders::{Candidate, Printed, resident_blocks, work_of};
use crate::ptxas::{self, Assembled};
use crate::with_directive;

/// What a kernel needs whose products matrix units compute.
pub(crate) struct Needs {
    /// Registers, about, where that is known: where loops carry the addresses of all rows, these take
    /// as many as they are.
    pub(crate) registers: Option<u32>,
}

/// By what part a kernel may issue more instructions that has no more registers than it needs. With
/// descriptors, whose rows need one address, a product on an H100 took 158 registers instead of 202 and
/// 0.998 times as long.
const GROWTH_AS_NEEDED: u64 = 12;

/// By what part any other may. Where loops issued a hundredth more, kernels took as much longer.
const GROWTH: u64 = 256;

/// `best`, or the same kernel with fewer registers: few more than it needs, else an eighth less than it
/// takes.
pub(crate) fn with_fewer_registers(
    tool: &Path,
    manifest: &Manifest,
    needs: Needs,
    (printed, best): Candidate,
) -> Candidate {
    let less = best.report.registers - best.report.registers / 8;
    let needed = needs.registers.map(|needed| needed + needed / 16).filter(|&it| it <= less);
    let limits = needed.map(|limit| (limit, GROWTH_AS_NEEDED)).into_iter().chain([(less, GROWTH)]);
    for (limit, growth) in limits {
        let directive = format!(".maxnreg {limit}");
        let asked = with_directive(&printed.ptx, manifest.num_warps * 32, &directive);
        // It is refused where single instructions need more registers.
        if let Some(ptx) = asked
            && let Ok(few) = ptxas::assemble(tool, &ptx, &manifest.arch)
            && is_as_good(manifest, &best, &few, growth)
        {
            return (Printed { ptx, ..printed }, few);
        }
    }
    (printed, best)
}

/// Whether `few` spills no more than `best`, as many CTAs fit a multiprocessor, as many bytes are on their
/// way at once, and its loops are longer by one part in `growth` at most.
fn is_as_good(manifest: &Manifest, best: &Assembled, few: &Assembled, growth: u64) -> bool {
    let [a, b] = [best, few].map(|assembled| &assembled.report);
    let [room, other_room] = [best, few].map(|assembled| resident_blocks(manifest, assembled));
    b.spill_store_bytes <= a.spill_store_bytes
        && b.spill_load_bytes <= a.spill_load_bytes
        && other_room >= room
        && few.bytes_in_flight() >= best.bytes_in_flight()
        && work_of(manifest, best, few).is_some_and(|(best, few)| few <= best + best / growth)
}
