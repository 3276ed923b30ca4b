//! Shared memory that pipelines take at least.
//!
//! An innermost loop of so many stages keeps the operands of its products once for each trip that is
//! copied ahead: for all stages but one, or all trips where those are fewer. Only operands of tensor
//! cores count that are multiplied as they were loaded, from addresses that advance: what passes through
//! registers first Tile loads late where it would not fit. Elements of 32 bits are left out for that
//! reason: tensor cores read them along K alone, so some are turned on their way. Nor is copied ahead what
//! strides that may be odd leave no pairs of: an asynchronous copy moves four bytes at least.
//!
//! So this is what Tile cannot do without. Triton 3.6 is much alike, but gives up nothing that would not
//! fit: of 18 configurations that are too much by this, it asks for more than a block can have in 17; of
//! five of 32 bits for which Tile found a way to fit, in four.

use std::collections::BTreeSet;

use tile_compiler::ir::{Attrs, DotPrecision, Function, Inst, InstData, Opcode, Region, Value};

use super::launch;
use super::offsets::Offsets;

/// Bytes of shared memory that a block can have on sm_90.
const LIMIT: u64 = 227 * 1024;

/// Numbers of a launch: those that are multiples of 16, and others, of which that is not known.
const ODD: (i128, i128) = (1024, 1001);

/// Whether a loop of `func` takes more than a block can have.
pub fn is_too_much(func: &Function) -> bool {
    let constants = Offsets::of(func, None);
    let launch = launch(func, ODD);
    let offsets = Offsets::of(func, Some(&launch));
    let bytes = |inst| copied(func, inst, &offsets) * ahead(func, inst, &constants);
    func.walk().into_iter().any(|inst| bytes(inst) > LIMIT)
}

/// For how many trips a loop copies ahead at least.
fn ahead(func: &Function, inst: Inst, constants: &Offsets<'_>) -> u64 {
    let data = &func.insts[inst];
    let Attrs::Loop(attrs) = &data.attrs else { return 0 };
    let stages = if attrs.stages == 0 { func.options.num_stages } else { attrs.stages };
    let copies = u64::from(stages.saturating_sub(1));
    let bound = |slot: usize| constants.get(data.operand(slot))?.first().copied();
    let trips = || {
        let (from, to, step) = (bound(0)?, bound(1)?, bound(2)?);
        u64::try_from((to - from + step - step.signum()) / step).ok()
    };
    match trips() {
        // There is no loop left.
        Some(1) => 0,
        Some(trips) => trips.min(copies),
        None => copies,
    }
}

/// The bytes that a trip of a loop copies.
fn copied(func: &Function, inst: Inst, offsets: &Offsets<'_>) -> u64 {
    let data = &func.insts[inst];
    let Some(&region) = data.regions.first().filter(|_| data.opcode == Opcode::For) else {
        return 0;
    };
    let insts = &func.regions[region].insts;
    let is_loop = |inst: &Inst| matches!(func.insts[*inst].opcode, Opcode::For | Opcode::While);
    if func.walk_from(region).iter().any(is_loop) {
        return 0;
    }
    let advancing = advancing(func, region);
    let products = insts.iter().map(|inst| &func.insts[*inst]).filter(|data| on_tensor_cores(data));
    let operands = products.flat_map(|data| data.uses().take(2));
    let is_copied = |operand: &Value| {
        let load = func.def(*operand).filter(|data| data.opcode == Opcode::Load);
        let is_narrow = func.ty(*operand).elem().is_some_and(|elem| elem.bits() == 16);
        let is_ahead = |pointer| advancing.contains(&pointer) && is_of_pairs(offsets, pointer);
        is_narrow && load.is_some_and(|load| is_ahead(load.operand(0)))
    };
    let copied: BTreeSet<Value> = operands.filter(is_copied).collect();
    let bytes = |value: &Value| {
        let ty = func.ty(*value);
        ty.numel() as u64 * u64::from(ty.elem().map_or(0, |elem| elem.bytes()))
    };
    copied.iter().map(bytes).sum()
}

/// Whether all that an access of 16-bit elements touches are whole words of four bytes.
fn is_of_pairs(offsets: &Offsets<'_>, pointer: Value) -> bool {
    let touched: BTreeSet<i128> = offsets.get(pointer).into_iter().flatten().copied().collect();
    !touched.is_empty() && touched.iter().all(|at| touched.contains(&(at ^ 1)))
}

fn on_tensor_cores(data: &InstData) -> bool {
    matches!(&data.attrs, Attrs::Dot(dot) if dot.precision != DotPrecision::Ieee)
}

/// Values directly in a loop that depend on its index or on what it carries.
fn advancing(func: &Function, region: Region) -> BTreeSet<Value> {
    let mut found: BTreeSet<Value> = func.regions[region].args.iter().copied().collect();
    for inst in &func.regions[region].insts {
        let data = &func.insts[*inst];
        if data.uses().any(|value| found.contains(&value)) {
            found.extend(&data.results);
        }
    }
    found
}
