//! Sums with products become the products' accumulators.
//!
//! In: a tile-level function. Out: the same function in which `x + dot(a, b, 0)` is `dot(a, b, x)`,
//! where nothing else uses the product: matrix instructions add to what they are given, and a sum
//! that stays with them takes half the registers. Products that ask for fewer exact additions
//! (`max_num_imprecise_acc`) keep theirs. Triton does the same, so roundings agree. Cost: linear.

use rustc_hash::FxHashMap;

use crate::ir::{Attrs, Function, Inst, Opcode, Region, Value, ValueDef};

/// Rewrites the sums of `func`.
pub fn accumulate(func: &mut Function) {
    let uses = uses(func);
    accumulate_region(func, &uses, func.body);
}

/// How often each value is used.
fn uses(func: &Function) -> FxHashMap<Value, u32> {
    let mut uses = FxHashMap::default();
    for inst in func.walk() {
        for value in func.insts[inst].uses() {
            *uses.entry(value).or_default() += 1;
        }
    }
    uses
}

fn accumulate_region(func: &mut Function, uses: &FxHashMap<Value, u32>, region: Region) {
    let mut insts = func.regions[region].insts.clone();
    for &inst in &insts {
        if let Some((product, other)) = product_of_sum(func, uses, region, inst) {
            let mut product = func.insts[product].clone();
            *product.operands.last_mut().expect("invariant: products have accumulators") =
                Some(other);
            let sum = &mut func.insts[inst];
            (sum.opcode, sum.attrs, sum.operands) =
                (product.opcode, product.attrs, product.operands);
        }
        for inner in func.insts[inst].regions.clone() {
            accumulate_region(func, uses, inner);
        }
    }
    // What is left of a product whose sum took its place has no use.
    let used = self::uses(func);
    insts.retain(|&inst| !is_product(func, inst) || used.contains_key(&func.insts[inst].result()));
    func.regions[region].insts = insts;
}

/// The product of the same region that `sum` adds to something else, and what that is.
fn product_of_sum(
    func: &Function,
    uses: &FxHashMap<Value, u32>,
    region: Region,
    sum: Inst,
) -> Option<(Inst, Value)> {
    let data = &func.insts[sum];
    if !matches!(data.opcode, Opcode::Add | Opcode::FAdd) {
        return None;
    }
    [(0, 1), (1, 0)].into_iter().find_map(|(slot, other)| {
        let value = data.operand(slot);
        let ValueDef::Result(product, _) = func.values[value].def else { return None };
        let starts_at_zero = || {
            let start = func.insts[product].operands.last().copied().flatten();
            start.and_then(|start| func.constant_bits(start)) == Some(0)
        };
        let fits = is_product(func, product)
            && is_exact(func, product)
            && uses.get(&value) == Some(&1)
            && func.regions[region].insts.contains(&product)
            && starts_at_zero();
        fits.then(|| (product, data.operand(other)))
    })
}

fn is_product(func: &Function, inst: Inst) -> bool {
    func.insts[inst].opcode == Opcode::Dot
}

fn is_exact(func: &Function, product: Inst) -> bool {
    matches!(&func.insts[product].attrs, Attrs::Dot(dot) if dot.max_imprecise == 0)
}
