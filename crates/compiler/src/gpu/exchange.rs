//! How elements along an axis meet: what carries each bit of their index in a layout, and the shared
//! memory that scans and sorts take where warps carry some.

use crate::ir::{Attrs, Elem, Function, InstData, Opcode, Value};
use crate::layout::{Dim, LinearLayout};

/// The bit of a hardware place that carries a bit of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// A bit of the register's number.
    Register(usize),
    /// A bit of the lane's number.
    Lane(u32),
    /// A bit of the warp's number.
    Warp,
}

/// The packed index bits of an axis, lowest first.
pub fn axis_steps(layout: &LinearLayout, axis: usize) -> Vec<u64> {
    let mut shift = 0;
    for output in layout.outputs() {
        if output.dim.axis() == Some(axis) {
            return (shift..shift + output.bits).map(|bit| 1 << bit).collect();
        }
        shift += output.bits;
    }
    Vec::new()
}

/// What carries the index bit `step`: the nearest place whose bit moves by exactly that.
pub fn carrier(layout: &LinearLayout, step: u64) -> Carrier {
    let position = |dim: Dim| layout.bases(dim).iter().position(|&basis| basis == step);
    match (position(Dim::Register), position(Dim::Lane)) {
        (Some(bit), _) => Carrier::Register(bit),
        (None, Some(bit)) => Carrier::Lane(bit as u32),
        (None, None) => Carrier::Warp,
    }
}

/// Neighboring bits of the index along the axis that places of one kind carry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Level {
    /// Consecutive lane bits, in order.
    Lanes {
        /// The lowest of them.
        lowest: u32,
        /// How many.
        count: u32,
    },
    /// Warp bits by number, the one that carries the lowest index bit first.
    Warps(Vec<u32>),
    /// A register bit.
    Registers(usize),
}

/// Where the totals of warps lie: those of one row next to each other.
#[derive(Debug, Clone)]
pub struct Places {
    /// Bits of the index that tell rows apart.
    row: u64,
    /// Bits of the warp that count through one row.
    pub warp_bits: u32,
}

impl Places {
    /// The places in a layout whose bits `warps` carry the index along the axis.
    pub fn new(layout: &LinearLayout, warps: &[u32]) -> Places {
        let bases = layout.bases(Dim::Warp);
        let highest = warps.iter().map(|&bit| bases[bit as usize]).max().unwrap_or(0);
        let lowest = warps.iter().map(|&bit| bases[bit as usize]).min().unwrap_or(0);
        Places { row: rows(layout, lowest, highest), warp_bits: warps.len() as u32 }
    }

    /// The place of the first total of the row that holds an element.
    pub fn row(&self, index: u64) -> u32 {
        let (mut place, mut next) = (0, 1 << self.warp_bits);
        for bit in (0..u64::BITS).filter(|bit| self.row >> bit & 1 != 0) {
            place |= if index >> bit & 1 != 0 { next } else { 0 };
            next <<= 1;
        }
        place
    }
}

/// The bits of the packed index but those from the start of their axis up to `highest`.
fn rows(layout: &LinearLayout, lowest: u64, highest: u64) -> u64 {
    let (mut shift, mut below) = (0, 0);
    for output in layout.outputs() {
        let axis = ((1u64 << output.bits) - 1) << shift;
        if axis & lowest != 0 {
            below = axis & (highest | (highest - 1));
        }
        shift += output.bits;
    }
    ((1u64 << shift) - 1) & !below
}

/// The register bits that count through a thread's neighbors, and what carries the other bits of
/// the index, lowest first; `None` where no place carries a bit by itself.
pub fn levels(layout: &LinearLayout, axis: usize) -> Option<(Vec<usize>, Vec<Level>)> {
    let steps = axis_steps(layout, axis);
    let mut within = Vec::new();
    let mut levels: Vec<Level> = Vec::new();
    for &step in &steps {
        match carrier(layout, step) {
            Carrier::Register(bit) if levels.is_empty() => within.push(bit),
            Carrier::Register(bit) => levels.push(Level::Registers(bit)),
            Carrier::Lane(bit) => match levels.last_mut() {
                Some(Level::Lanes { lowest, count }) if *lowest + *count == bit => *count += 1,
                _ => levels.push(Level::Lanes { lowest: bit, count: 1 }),
            },
            Carrier::Warp => {
                let bit = layout.bases(Dim::Warp).iter().position(|&basis| basis == step)? as u32;
                match levels.last_mut() {
                    Some(Level::Warps(bits)) => bits.push(bit),
                    _ => levels.push(Level::Warps(vec![bit])),
                }
            }
        }
    }
    Some((within, levels))
}

/// Bytes of shared memory that the totals of one tile take.
pub fn total_bytes(func: &Function, data: &InstData, tile: Value) -> u32 {
    let ty = func.ty(tile);
    let (Attrs::Scan(scan), Some(id), Some(elem)) = (&data.attrs, ty.layout(), ty.elem()) else {
        return 0;
    };
    let layout = &func.layouts[id];
    let Some((_, levels)) = levels(layout, scan.axis as usize) else { return 0 };
    let totals = levels.iter().filter_map(|level| match level {
        Level::Warps(bits) => {
            Some(1 << (Places::new(layout, bits).row.count_ones() + bits.len() as u32))
        }
        _ => None,
    });
    let most: u32 = totals.max().unwrap_or(0);
    (most * elem.bytes()).next_multiple_of(16)
}

/// Bytes of shared memory that a scan takes.
pub(super) fn scan_bytes(func: &Function, data: &InstData) -> u32 {
    debug_assert_eq!(data.opcode, Opcode::Scan);
    data.uses().map(|tile| total_bytes(func, data, tile)).sum()
}

/// Bytes of shared memory that a sort takes: those of its keys, if some are exchanged between warps.
pub(super) fn sort_bytes(func: &Function, data: &InstData) -> u32 {
    let ty = func.ty(data.operand(0));
    let (Some(id), Some(elem)) = (ty.layout(), ty.elem()) else { return 0 };
    let layout = func.layouts[id].with_last_axis_inward();
    let steps = axis_steps(&layout, layout.rank() - 1);
    let leaves_warp = steps.iter().any(|&step| carrier(&layout, step) == Carrier::Warp);
    if leaves_warp { ty.numel() as u32 * key_bits(elem) / 8 } else { 0 }
}

/// Bits of the integers that are sorted in place of elements.
pub fn key_bits(elem: Elem) -> u32 {
    elem.bits().max(32)
}
