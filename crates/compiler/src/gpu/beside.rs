//! Layouts of tiles that follow no anchor: beside vectors that reductions leave, and tiles that reductions repeat.
//!
//! What a loop carries and nothing anchors, such as the nearest elements of each row so far, meets what reductions
//! found in each row of another tile. There the lanes that hold the same element of such a vector share a row of
//! the tile: both meet without conversions, and a reduction of the tile along its rows ends where the vector lives.
//! On an H100, nearest neighbors that are inserted one by one take 0.12 to 0.69 times as long so as with rows along
//! the lanes. A vector that was read says nothing of the sort: states of recurrences meet those along either axis,
//! and are reduced along the one or the other. Cost: linear in what the tile follows from.

use cranelift_entity::SecondaryMap;
use rustc_hash::{FxHashMap, FxHashSet};

use super::propagate::is_elementwise;
use crate::ir::{Attrs, Function, Opcode, Value, ValueDef};
use crate::layout::{Dim, LayoutError, LinearLayout};

/// The layout of `value` beside the first vector with a home that it follows from and that a reduction left.
///
/// # Errors
/// When a layout is too large.
pub(super) fn layout(
    func: &Function,
    home: &SecondaryMap<Value, Option<LinearLayout>>,
    value: Value,
    sources: &[Value],
) -> Result<Option<LinearLayout>, LayoutError> {
    followed(func, home, (value, sources), |axis, vector| is_reduced(func, axis, vector))
}

/// The layout of a tile that is reduced along `axis` beside the tile that it repeats along it, if no threads of that
/// hold the same elements: each then has all that it reduces, and nothing is exchanged. On an H200, values that are
/// counted among eight thresholds each, for 4 bits, take 0.30 to 0.38 times as long so.
///
/// # Errors
/// When a layout is too large.
pub(super) fn repeated(
    func: &Function,
    home: &SecondaryMap<Value, Option<LinearLayout>>,
    value: Value,
    axis: usize,
) -> Result<Option<LinearLayout>, LayoutError> {
    let has_own = |tile: Value| {
        let is_own = |layout: &LinearLayout| {
            [Dim::Lane, Dim::Warp].iter().all(|&dim| !layout.bases(dim).contains(&0))
        };
        home[tile].as_ref().is_some_and(is_own)
    };
    followed(func, home, (value, &[value]), |added, tile| added == axis && has_own(tile))
}

/// By what a reduction leaves, the tile of the reduced one's shape in which each part along the axis has it again.
pub(super) fn spread_again(func: &Function) -> FxHashMap<Value, Value> {
    let spread = func.walk().into_iter().filter_map(|inst| {
        let data = &func.insts[inst];
        let operand = (data.opcode == Opcode::Broadcast).then(|| data.operand(0))?;
        let (added, vector) = expanded(func, operand)?;
        let reduce = func.def(vector).filter(|def| def.opcode == Opcode::Reduce)?;
        let Attrs::Axis(along) = &reduce.attrs else { return None };
        let is_same = along.axis as usize == added
            && func.ty(reduce.operand(0)).shape() == func.ty(data.result()).shape();
        is_same.then(|| (vector, data.result()))
    });
    spread.collect()
}

/// The layout of `value` beside the first tile with a home that it follows from, by way of `sources`, and that
/// `is_meant` of the axis that is added to it.
fn followed(
    func: &Function,
    home: &SecondaryMap<Value, Option<LinearLayout>>,
    (value, sources): (Value, &[Value]),
    is_meant: impl Fn(usize, Value) -> bool,
) -> Result<Option<LinearLayout>, LayoutError> {
    let shape = func.ty(value).shape();
    let mut open = sources.to_vec();
    let mut seen = FxHashSet::default();
    while let Some(value) = open.pop() {
        let ValueDef::Result(inst, at) = func.values[value].def else { continue };
        if !seen.insert(value) {
            continue;
        }
        let data = &func.insts[inst];
        match data.opcode {
            Opcode::Broadcast => {
                let found = expanded(func, data.operand(0));
                let found = found.filter(|&(axis, vector)| is_meant(axis, vector));
                let found = found.and_then(|(axis, vector)| Some((axis, home[vector].as_ref()?)));
                if let Some((axis, vector)) = found
                    && let Some(layout) = shared_by_lanes(vector, axis, shape)?
                {
                    return Ok(Some(layout));
                }
            }
            Opcode::For | Opcode::While | Opcode::If => {
                let ends = data.regions.iter().filter_map(|&region| func.terminator(region));
                let at = at as usize + usize::from(data.opcode == Opcode::While);
                open.extend(ends.filter_map(|end| end.operand_opt(at)));
            }
            opcode if is_elementwise(opcode) => open.extend(data.uses()),
            _ => {}
        }
        open.retain(|&value| func.ty(value).shape() == shape);
    }
    Ok(None)
}

/// The vector that an axis of one element was added to for `value`, and that axis.
fn expanded(func: &Function, mut value: Value) -> Option<(usize, Value)> {
    loop {
        let data = func.def(value)?;
        match &data.attrs {
            Attrs::Axis(axis) if data.opcode == Opcode::ExpandDims => {
                return Some((axis.axis as usize, data.operand(0)));
            }
            _ if is_elementwise(data.opcode) => value = data.operand_opt(0)?,
            _ => return None,
        }
    }
}

/// Whether a vector follows element by element from a reduction along `axis`.
fn is_reduced(func: &Function, axis: usize, vector: Value) -> bool {
    let mut open = vec![vector];
    let mut seen = FxHashSet::default();
    while let Some(value) = open.pop() {
        let Some(data) = func.def(value).filter(|_| seen.insert(value)) else { continue };
        match &data.attrs {
            Attrs::Axis(along) if data.opcode == Opcode::Reduce && along.axis as usize == axis => {
                return true;
            }
            _ if is_elementwise(data.opcode) => open.extend(data.uses()),
            _ => {}
        }
    }
    false
}

/// The layout of a tile of `shape` whose parts along `axis` are where `vector` has the element that belongs to
/// them, shared by the lanes that have the same one; `None` where warps have the same ones too.
fn shared_by_lanes(
    vector: &LinearLayout,
    axis: usize,
    shape: &[u32],
) -> Result<Option<LinearLayout>, LayoutError> {
    let narrow = vector.expand_dims(axis)?;
    let along = Dim::Axis(axis as u8);
    let outputs = narrow.outputs().iter().map(|output| {
        let bits = if output.dim == along { shape[axis].trailing_zeros() } else { output.bits };
        (output.dim, bits)
    });
    let outputs: Vec<(Dim, u32)> = outputs.collect();
    let fits = outputs.iter().rev().zip(shape).all(|(output, extent)| 1 << output.1 == *extent);
    let repeats = |dim: Dim| narrow.bases(dim).contains(&0);
    if !fits || repeats(Dim::Warp) {
        return Ok(None);
    }
    let below =
        outputs.iter().take_while(|output| output.0 != along).map(|output| output.1).sum::<u32>();
    let bits = shape[axis].trailing_zeros();
    let mut free = (below..below + bits).map(|bit| 1u64 << bit);
    let mut inputs = Vec::new();
    let mut bases = Vec::new();
    // Lanes take the nearest neighbors, and registers what is left.
    let place = |basis: u64| {
        let low = basis & ((1 << below) - 1);
        ((basis ^ low) << bits) | low
    };
    let mut lanes: Vec<u64> = narrow.bases(Dim::Lane).iter().map(|&basis| place(basis)).collect();
    for lane in lanes.iter_mut().filter(|lane| **lane == 0) {
        *lane = free.next().unwrap_or(0);
    }
    for input in narrow.inputs() {
        let own = match input.dim {
            Dim::Lane => lanes.clone(),
            dim => narrow.bases(dim).iter().map(|&basis| place(basis)).collect(),
        };
        let more: Vec<u64> =
            if input.dim == Dim::Register { free.by_ref().collect() } else { Vec::new() };
        inputs.push((input.dim, (own.len() + more.len()) as u32));
        bases.extend(own.into_iter().chain(more));
    }
    if free.next().is_some() {
        return Ok(None);
    }
    LinearLayout::new(&inputs, &outputs, bases).map(Some)
}
