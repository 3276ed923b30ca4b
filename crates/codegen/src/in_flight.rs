//! Loads, and those that are on their way at once, read from machine code.
//!
//! The assembler orders instructions anew, and unrolls loops, so that only its output tells. A load
//! sets one of six barriers, and whoever needs its result names the barriers to wait for. Instructions
//! have 128 bits from Volta to Hopper: the operation in bits 0 to 11 (a global load is 0x981, or 0x381
//! with an address of another form), a load's width in bits 73 to 75, the barrier that it sets in bits
//! 110 to 112, those waited for in bits 116 to 121. A global write is 0x986 or 0x386; the register that its address
//! begins with is in bits 24 to 31, what is added to that, with a sign, in bits 40 to 63. Seen in what `nvdisasm`
//! prints of both.

const INSTRUCTION_BYTES: usize = 16;
const BARRIERS: usize = 6;

/// The most bytes that loads of one thread have on their way at once.
pub(crate) fn bytes_in_flight(code: &[u8]) -> u32 {
    let mut awaited = [0u32; BARRIERS];
    let mut most = 0;
    for inst in instructions(code) {
        let waits = field(inst, 116, BARRIERS as u32);
        for (barrier, bytes) in awaited.iter_mut().enumerate() {
            if waits >> barrier & 1 == 1 {
                *bytes = 0;
            }
        }
        if let Some(loaded) = loaded_bytes(inst)
            && let Some(bytes) = awaited.get_mut(field(inst, 110, 3))
        {
            *bytes += loaded;
            most = most.max(awaited.iter().sum());
        }
    }
    most
}

/// The bytes that all loads of one thread bring, each counted once.
pub(crate) fn bytes_loaded(code: &[u8]) -> u32 {
    instructions(code).filter_map(loaded_bytes).sum()
}

/// The pairs of a thread's narrow writes from the same register on of which the earlier one comes behind the later one in
/// memory. Rows that begin anywhere are written so, and lines of the cache by two instructions each.
pub(crate) fn writes_out_of_order(code: &[u8]) -> u32 {
    let writes: Vec<(usize, i32)> = instructions(code).filter_map(written).collect();
    let before = |at: usize| {
        let (base, offset) = writes[at];
        let earlier = writes[..at].iter();
        earlier.filter(move |&&(other, behind)| other == base && behind > offset).count() as u32
    };
    (0..writes.len()).map(before).sum()
}

/// The register that the address of a global write of 4 bytes at most begins with, and what is added to it.
fn written(inst: u128) -> Option<(usize, i32)> {
    let is_narrow = matches!(field(inst, 0, 12), 0x986 | 0x386) && width(inst) <= 4;
    is_narrow.then(|| (field(inst, 24, 8), ((field(inst, 40, 24) as i32) << 8) >> 8))
}

fn instructions(code: &[u8]) -> impl Iterator<Item = u128> {
    let whole = code.as_chunks::<INSTRUCTION_BYTES>().0.iter();
    whole.map(|&inst| u128::from_le_bytes(inst))
}

fn field(inst: u128, low: u32, count: u32) -> usize {
    (inst >> low) as usize & ((1 << count) - 1)
}

/// The bytes that an instruction loads from global memory.
fn loaded_bytes(inst: u128) -> Option<u32> {
    matches!(field(inst, 0, 12), 0x981 | 0x381).then(|| width(inst))
}

/// The bytes that an access moves.
fn width(inst: u128) -> u32 {
    match field(inst, 73, 3) {
        0 | 1 => 1,
        2 | 3 => 2,
        4 => 4,
        5 => 8,
        _ => 16,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As assembled for sm_90a: `LDG.E.64 R2` that sets barrier 2, `LDG.E.64 R4` that sets 3.
    const LOADS: [[u64; 2]; 2] =
        [[0x0000000802027981, 0x000ea2000c1e1b00], [0x0000000804047981, 0x000ee2000c1e1b00]];

    fn code(insts: &[[u64; 2]]) -> Vec<u8> {
        insts.as_flattened().iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn loads_are_on_their_way_until_someone_waits() {
        let [first, second] = LOADS;
        assert_eq!(bytes_in_flight(&code(&LOADS)), 16);
        // A move that waits for barrier 2.
        let waits = [0x0000000200067202, 0x004fe20000000f00];
        assert_eq!(bytes_in_flight(&code(&[first, waits, second])), 8);
        assert_eq!(bytes_loaded(&code(&[first, waits, second])), 16);
    }

    #[test]
    fn writes_are_in_order_from_each_register_on() {
        let write = |base: u64, offset: u64| [0x986 | base << 24 | offset << 40, 4 << 9];
        let [first, second, third] = [write(2, 0xff_fff0), write(2, 0), write(2, 0x400)];
        assert_eq!(writes_out_of_order(&code(&[first, second, third])), 0);
        assert_eq!(writes_out_of_order(&code(&[third, second, first])), 3);
        assert_eq!(writes_out_of_order(&code(&[third, write(4, 0), LOADS[0]])), 0);
        let wide = |[low, _]: [u64; 2]| [low, 6 << 9];
        assert_eq!(writes_out_of_order(&code(&[wide(third), wide(first)])), 0);
    }
}
