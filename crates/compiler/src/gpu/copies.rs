//! Tiles copied straight into shared memory.
//!
//! In: a GPU-level function without barriers. Out: the same function; where a load's only use is to
//! fill a buffer for a product, and each thread moves whole vectors, an asynchronous copy takes the
//! place of the load, and a wait for it that of the store. So threads do not hold the tile while it
//! is on its way. A copy may read memory until it is waited for: where something may be written
//! between the two, the load stays. It stays too where threads put something else into a buffer
//! before the same product, and so must wait for loads anyway, which arrive sooner (on an H200, such
//! kernels take up to 1.13 times as long with copies); in loops, where
//! [`pipeline`](super::pipeline) copies iterations ahead; and beside loops of products, of which the
//! first copies would wait (attention takes up to 1.02 times as long). Buffers live longer; see
//! [`lower`](super::lower) for when that is worth it. Cost: linear.

use rustc_hash::{FxHashMap, FxHashSet};

use super::anew::is_loop_of_products;
use super::early::{Buffered, EarlyLoad, MOST_COPY_BYTES};
use super::early_stores::is_stop;
use crate::analysis::axis::AxisInfos;
use crate::ir::{Attrs, Builder, Function, Inst, Opcode, Region, Type, Value, Wait};

/// Copies the tiles of `func` that can be; tells whether there are any.
pub fn copy(func: &mut Function) -> bool {
    let infos = AxisInfos::of(func);
    let mut uses: FxHashMap<Value, u32> = FxHashMap::default();
    for inst in func.walk() {
        func.insts[inst].uses().for_each(|value| *uses.entry(value).or_default() += 1);
    }
    let mut any = false;
    for region in outside_loops(func) {
        let loads = candidates(func, &infos, &uses, region);
        any |= !loads.is_empty();
        write(func, region, &loads);
    }
    any
}

/// The regions of `func` that run at most once.
fn outside_loops(func: &Function) -> Vec<Region> {
    let mut regions = vec![func.body];
    let mut next = 0;
    while let Some(&region) = regions.get(next) {
        let insts = func.regions[region].insts.iter().map(|&inst| &func.insts[inst]);
        let branches = insts.filter(|data| data.opcode == Opcode::If);
        regions.extend(branches.flat_map(|data| data.regions.iter().copied()));
        next += 1;
    }
    regions
}

/// The loads of `region` that can be copies, with what puts their tiles into buffers.
fn candidates(
    func: &Function,
    infos: &AxisInfos,
    uses: &FxHashMap<Value, u32>,
    region: Region,
) -> Vec<(Inst, Buffered)> {
    let insts = &func.regions[region].insts;
    if insts.iter().any(|&inst| is_loop_of_products(func, inst)) {
        return Vec::new();
    }
    let positions = func.positions(region);
    let may_write = |at: &usize| func.any_within(insts[*at], Opcode::may_write_global);
    let writes: Vec<usize> = (0..insts.len()).filter(may_write).collect();
    let writes_before = |inst: Inst| writes.partition_point(|&at| at < positions[&inst]);
    let stored = insts.iter().filter_map(|&store| EarlyLoad::stored(func, &positions, store));
    let whole = stored.filter(|early| {
        early.is_copy(func, infos) && early.copy_bytes(func, infos) == MOST_COPY_BYTES
    });
    let alone = whole.filter(|early| uses.get(&func.insts[early.load].result()) == Some(&1));
    let mut found: FxHashMap<Inst, (Inst, Buffered)> = alone
        .filter_map(|early| {
            let buffered = early.buffered?;
            let is_safe = writes_before(early.load) == writes_before(buffered.store);
            is_safe.then_some((buffered.store, (early.load, buffered)))
        })
        .collect();
    for together in insts.split(|&inst| is_stop(func, inst)) {
        let is_store = |inst: &&Inst| func.insts[**inst].opcode == Opcode::LocalStore;
        let stores: Vec<Inst> = together.iter().filter(is_store).copied().collect();
        if !stores.iter().all(|store| found.contains_key(store)) {
            found.retain(|store, _| !stores.contains(store));
        }
    }
    found.into_values().collect()
}

/// Writes copies in the place of `loads`, each a group of its own, and waits in that of stores.
fn write(func: &mut Function, region: Region, loads: &[(Inst, Buffered)]) {
    if loads.is_empty() {
        return;
    }
    let by_load: FxHashMap<Inst, &Buffered> = loads.iter().map(|(load, to)| (*load, to)).collect();
    let by_store: FxHashMap<Inst, Inst> =
        loads.iter().map(|(load, to)| (to.store, *load)).collect();
    let moved: FxHashSet<Inst> = loads.iter().map(|(_, to)| to.alloc).collect();
    // How many groups were closed before that of each load, and in all.
    let mut numbers: FxHashMap<Inst, u32> = FxHashMap::default();
    let mut closed = 0;
    for inst in std::mem::take(&mut func.regions[region].insts) {
        if let Some(to) = by_load.get(&inst) {
            func.regions[region].insts.push(to.alloc);
            copy_and_commit(func, region, inst, to);
            numbers.insert(inst, closed);
            closed += 1;
        } else if let Some(load) = by_store.get(&inst) {
            let pending = closed - numbers[load] - 1;
            let mut builder = Builder::new(func, region);
            let loc = builder.func.insts[inst].loc;
            builder.set_loc(loc);
            builder.emit_inst(Opcode::AsyncWait, [], Wait { pending }, [Type::Token], []);
        } else if !moved.contains(&inst) {
            closed += u32::from(func.insts[inst].opcode == Opcode::AsyncCommit);
            func.regions[region].insts.push(inst);
        }
    }
}

fn copy_and_commit(func: &mut Function, region: Region, load: Inst, to: &Buffered) {
    let data = func.insts[load].clone();
    let buffer = func.insts[to.alloc].result();
    let operands = [Some(data.operand(0)), Some(buffer), data.operand_opt(1)];
    let mut builder = Builder::new(func, region);
    builder.set_loc(data.loc);
    let copy = builder.emit_inst(Opcode::AsyncCopy, operands, data.attrs, [Type::Token], []);
    let token = builder.func.insts[copy].result();
    builder.emit_typed(Opcode::AsyncCommit, &[token], Attrs::None, Type::Token);
}
