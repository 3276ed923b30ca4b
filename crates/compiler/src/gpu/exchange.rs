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

/// Which bits of the hardware places tell apart the totals that warps exchange in a scan or a
/// reduction. A thread finds the totals of its own rows, whatever else lies between.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// Register bits that count through rows.
    pub rows: Vec<usize>,
    /// Register bits that count through one row, beyond the warps.
    pub later: Vec<usize>,
    /// Lane bits that tell totals apart.
    pub lanes: Vec<u32>,
    /// Warp bits that do, but for those along the axis.
    pub warps: Vec<u32>,
    /// Warp bits that count through one row.
    pub along: Vec<u32>,
}

impl Places {
    /// The places of what a reduction leaves in `reduced`, in which the warp bits of the mask
    /// `along` hold the totals of one row.
    pub fn of_reduction(reduced: &LinearLayout, along: u32) -> Places {
        let numbers = |dim: Dim| {
            let bases = reduced.bases(dim).iter().enumerate();
            bases.filter(|&(_, &basis)| basis != 0).map(|(bit, _)| bit as u32)
        };
        let is_along = |bit: &u32| along >> bit & 1 != 0;
        Places {
            rows: numbers(Dim::Register).map(|bit| bit as usize).collect(),
            later: Vec::new(),
            lanes: numbers(Dim::Lane).collect(),
            warps: numbers(Dim::Warp).filter(|bit| !is_along(bit)).collect(),
            along: (0..u32::BITS).filter(is_along).collect(),
        }
    }

    /// The places of a scan in a layout whose warp bits `along` carry the index along the axis.
    pub fn of_scan(layout: &LinearLayout, along: &[u32]) -> Places {
        let carried = along.iter().map(|&bit| layout.bases(Dim::Warp)[bit as usize]);
        let (lowest, highest) = (carried.clone().min().unwrap_or(0), carried.max().unwrap_or(0));
        let (rows, later) = beyond(layout, lowest, highest);
        let of = |dim: Dim, mask: u64| -> Vec<usize> {
            let bases = layout.bases(dim).iter().enumerate();
            bases.filter(|&(_, basis)| basis & mask != 0).map(|(bit, _)| bit).collect()
        };
        let numbers = |dim: Dim| of(dim, rows | later).into_iter().map(|bit| bit as u32).collect();
        let mut registers = of(Dim::Register, rows | later);
        let within = of(Dim::Register, later);
        registers.retain(|bit| !within.contains(bit));
        Places {
            rows: registers,
            later: within,
            lanes: numbers(Dim::Lane),
            warps: numbers(Dim::Warp),
            along: along.to_vec(),
        }
    }

    /// Totals of one tile.
    pub fn count(&self) -> u32 {
        let Places { rows, later, lanes, warps, along } = self;
        1 << (rows.len() + later.len() + lanes.len() + warps.len() + along.len())
    }
}

/// The bits of the packed index that count through other axes, and those along the axis of `lowest`
/// that are above `highest`.
fn beyond(layout: &LinearLayout, lowest: u64, highest: u64) -> (u64, u64) {
    let (mut shift, mut axis) = (0, 0);
    for output in layout.outputs() {
        let bits = ((1u64 << output.bits) - 1) << shift;
        if bits & lowest != 0 {
            axis = bits;
        }
        shift += output.bits;
    }
    let all = (1u64 << shift) - 1;
    (all & !axis, axis & !(highest | (highest - 1)))
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
        Level::Warps(bits) => Some(Places::of_scan(layout, bits).count()),
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

/// Bytes of shared memory that a sort takes: those of what it exchanges, if some of it goes from
/// warp to warp.
pub(super) fn sort_bytes(func: &Function, data: &InstData) -> u32 {
    let ty = func.ty(data.operand(0));
    let (Some(id), Some(elem)) = (ty.layout(), ty.elem()) else { return 0 };
    let layout = sort_layout(func, data, &func.layouts[id]);
    let steps = axis_steps(&layout, layout.rank() - 1);
    let leaves_warp = steps.iter().any(|&step| carrier(&layout, step) == Carrier::Warp);
    if leaves_warp { ty.numel() as u32 * exchanged_bits(elem) / 8 } else { 0 }
}

/// Where a sort of a tile in `layout` takes its elements to lie. In what order they come matters
/// only where the places of elements show in the result; elsewhere they are dealt out so that most
/// steps of the network stay within a thread.
pub fn sort_layout(func: &Function, data: &InstData, layout: &LinearLayout) -> LinearLayout {
    if shows_places(func, data) { layout.clone() } else { layout.with_last_axis_inward() }
}

/// True of sorts whose results depend on where elements lay: of floats, because neither NaN nor
/// zeros of both signs are in an order, and of sorts that start with runs.
pub(super) fn shows_places(func: &Function, data: &InstData) -> bool {
    let Attrs::Sort(sort) = &data.attrs else { return false };
    sort.runs > 1 || func.ty(data.operand(0)).elem().is_some_and(Elem::is_float)
}

/// Bits of what a sort exchanges: floats as they are, integers in registers.
pub fn exchanged_bits(elem: Elem) -> u32 {
    if elem.is_float() { elem.bits() } else { elem.bits().max(32) }
}
