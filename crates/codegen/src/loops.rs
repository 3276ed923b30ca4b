//! How much work loops are, read from machine code.
//!
//! What is cheaper in LLVM's eyes need not be so once the assembler has chosen instructions, so that only
//! its output tells. A loop is what a branch goes back over. In instructions of 128 bits a branch has 0x947
//! in bits 0 to 11, and the distance from the instruction behind it in bits 34 to 81, in units of 4 bytes;
//! since Hopper the lowest 8 bits of the distance stand in bits 16 to 23. Loads of what was spilled are
//! 0x983 there, stores 0x387. Seen in what `nvdisasm` prints.
//!
//! A warp also waits: for results of what it began, and for the cycles that instructions ask for.

use std::iter::Sum;

const INSTRUCTION_BYTES: i64 = 16;

/// How often a loop is taken to run each time that it is reached.
const TRIPS: u64 = 16;

/// Loops within more loops than this count as within so many.
const DEEPEST: u32 = 4;

/// Instructions that an access to spilled values is worth: each takes its turn at the memory, and what
/// is read comes late.
const SPILLED: u64 = 8;

/// What a warp spends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Spent {
    /// In all, if each loop runs [`TRIPS`] times.
    pub(crate) all: u64,
    /// In one iteration of each of the innermost loops, those within most others.
    pub(crate) innermost: u64,
}

impl Sum for Spent {
    fn sum<I: Iterator<Item = Spent>>(parts: I) -> Spent {
        parts.fold(Spent::default(), |sum, part| Spent {
            all: sum.all + part.all,
            innermost: sum.innermost + part.innermost,
        })
    }
}

/// The instructions that a warp issues: those of `code`, for GPUs of `capability`.
pub(crate) fn work(code: &[u8], capability: u32) -> Spent {
    weighted(code, capability, worth)
}

/// The cycles that a warp takes which has a multiprocessor to itself.
/// An instruction says how many cycles the next one waits in bits 105 to 108, the barrier that its result
/// sets in bits 110 to 112, and those that it waits for in bits 116 to 121.
pub(crate) fn cycles(code: &[u8], capability: u32) -> Spent {
    const BARRIERS: usize = 6;
    let (mut now, mut issued) = (0, 0);
    let mut set_at = [0; BARRIERS];
    weighted(code, capability, |inst| {
        let waits = field(inst, 116, BARRIERS as u32);
        let awaited = (0..BARRIERS).filter(|barrier| waits >> barrier & 1 == 1);
        let start = awaited.map(|barrier| set_at[barrier]).fold(now, u64::max);
        if let Some(barrier) = set_at.get_mut(field(inst, 110, 3) as usize) {
            *barrier = start + latency(inst);
        }
        now = start + field(inst, 105, 4) as u64;
        let taken = now - issued;
        issued = now;
        taken
    })
}

/// Cycles until the result of an instruction that sets a barrier is there, about: as measured by others for
/// loads of global memory that hit the L2, and for shuffles and loads of shared memory.
fn latency(inst: u128) -> u64 {
    if matches!(field(inst, 0, 12), 0x981 | 0x381) { 250 } else { 25 }
}

/// What instructions cost, each as often as it runs.
fn weighted(code: &[u8], capability: u32, mut cost: impl FnMut(u128) -> u64) -> Spent {
    let insts: Vec<u128> = code
        .chunks_exact(INSTRUCTION_BYTES as usize)
        .map(|inst| u128::from_le_bytes(inst.try_into().expect("invariant: chunks have this size")))
        .collect();
    // The last instruction of the loop that begins at each.
    let mut ends: Vec<Option<usize>> = vec![None; insts.len()];
    for (at, &inst) in insts.iter().enumerate() {
        let start = target(inst, at, capability).filter(|&start| start < at);
        if let Some(end) = start.and_then(|start| ends.get_mut(start)) {
            *end = Some(at);
        }
    }
    let mut open: Vec<usize> = Vec::new();
    let (mut spent, mut most) = (Spent::default(), 0);
    for (at, end) in ends.into_iter().enumerate() {
        open.retain(|&end| end >= at);
        open.extend(end);
        let cost = cost(insts[at]);
        if open.len() > most {
            (most, spent.innermost) = (open.len(), 0);
        }
        if open.len() == most {
            spent.innermost += cost;
        }
        spent.all += cost * TRIPS.pow(DEEPEST.min(open.len() as u32));
    }
    spent
}

fn worth(inst: u128) -> u64 {
    if matches!(field(inst, 0, 12), 0x983 | 0x387) { SPILLED } else { 1 }
}

/// The `count` bits from the bit `low` on.
fn field(inst: u128, low: u32, count: u32) -> u128 {
    (inst >> low) & ((1 << count) - 1)
}

/// The index of the instruction that `inst`, the one at index `at`, branches to.
fn target(inst: u128, at: usize, capability: u32) -> Option<usize> {
    const BRANCH: u128 = 0x947;
    if field(inst, 0, 12) != BRANCH {
        return None;
    }
    // Of 48 bits with a sign.
    let high = ((field(inst, 34, 48) as u64) << 16) as i64 >> 16;
    let units = if capability >= 90 { high << 8 | field(inst, 16, 8) as i64 } else { high };
    usize::try_from(at as i64 + 1 + 4 * units / INSTRUCTION_BYTES).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOVE: [u64; 2] = [0x0000000200067202, 0x004fe20000000f00];

    /// As assembled for sm_90a: `STL [R1+0x24], RZ`.
    const SPILL: [u64; 2] = [0x000024ff01007387, 0x0003e20000100800];

    /// As assembled for sm_90a: back over 408 instructions, and forward over 639.
    const BACK: [u64; 2] = [0xffffffe400a08947, 0x004fec000383ffff];
    const FORWARD: [u64; 2] = [0x0000002400f0a947, 0x008fea0003800000];

    /// As assembled for sm_80: back over 15 instructions.
    const BACK_BEFORE: [u64; 2] = [0xffffff1000008947, 0x000fea000383ffff];

    fn code(insts: &[[u64; 2]]) -> Vec<u8> {
        insts.as_flattened().iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn instructions_of_loops_count_as_often_as_they_run() {
        let straight = [MOVE; 500];
        assert_eq!(work(&code(&straight), 90), Spent { all: 500, innermost: 500 });
        let mut looping = straight;
        looping[450] = BACK;
        let all = 500 + 408 * (TRIPS - 1);
        assert_eq!(work(&code(&looping), 90), Spent { all, innermost: 408 });
        // Another that begins ten instructions later, and ends as much later.
        looping[460] = BACK;
        let within_both = 398 * (TRIPS * TRIPS - TRIPS);
        let all = 500 + 418 * (TRIPS - 1) + within_both;
        assert_eq!(work(&code(&looping), 90), Spent { all, innermost: 398 });
    }

    #[test]
    fn who_needs_a_result_waits_for_it() {
        /// As assembled for sm_90a: `SHFL.BFLY` that sets barrier 2 and asks for two cycles, and a sum that
        /// waits for it and asks for five.
        const SHUFFLE: [u64; 2] = [0x0c801f00a8a77f89, 0x000ea400000e0000];
        const SUM: [u64; 2] = [0x000000a7a8a97221, 0x004fca0000000000];
        assert_eq!(cycles(&code(&[SHUFFLE]), 90).all, 2);
        assert_eq!(cycles(&code(&[SHUFFLE, SUM]), 90).all, latency(0) + 5);
    }

    #[test]
    fn what_was_spilled_counts_for_more() {
        assert_eq!(work(&code(&[MOVE, SPILL]), 90).all, 1 + SPILLED);
    }

    #[test]
    fn branches_go_where_the_disassembler_says() {
        let bits = |[low, high]: [u64; 2]| u128::from(low) | u128::from(high) << 64;
        assert_eq!(target(bits(BACK), 0x354, 90), Some(0x1bd));
        assert_eq!(target(bits(FORWARD), 0xd8, 90), Some(0x355));
        assert_eq!(target(bits(BACK_BEFORE), 0x16, 80), Some(0x8));
        assert_eq!(target(bits(MOVE), 3, 90), None);
    }
}
