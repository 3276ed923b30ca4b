//! Sums with products become the products' accumulators.
//!
//! In: a tile-level function. Out: the same function in which `x + dot(a, b, 0)` is `dot(a, b, x)`,
//! where nothing else uses the product: matrix instructions add to what they are given, and a sum
//! that stays with them takes half the registers. Products that ask for fewer exact additions
//! (`max_num_imprecise_acc`) keep theirs. Triton does the same, so roundings agree. Cost: linear.

use rustc_hash::FxHashMap;

use crate::ir::{Attrs, Function, Inst, Opcode, Region, Value, ValueDef};
use crate::passes;

/// The operand of a product that it adds to.
const ACCUMULATOR: usize = 2;

/// Rewrites the sums of `func`.
pub fn accumulate(func: &mut Function) {
    let uses = uses(func);
    accumulate_region(func, &uses, func.body);
    // What is left of products whose sums took their place has no use.
    passes::eliminate_dead_code(func);
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
    for inst in func.regions[region].insts.clone() {
        if let Some((product, other)) = product_of_sum(func, uses, region, inst) {
            let mut product = func.insts[product].clone();
            product.operands[ACCUMULATOR] = Some(other);
            let sum = &mut func.insts[inst];
            (sum.opcode, sum.attrs, sum.operands) =
                (product.opcode, product.attrs, product.operands);
        }
        for inner in func.insts[inst].regions.clone() {
            accumulate_region(func, uses, inner);
        }
    }
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
        let fits = is_exact_product(func, product)
            && func.constant_bits(func.insts[product].operand(ACCUMULATOR)) == Some(0)
            && uses.get(&value) == Some(&1)
            && func.regions[region].insts.contains(&product);
        fits.then(|| (product, data.operand(other)))
    })
}

fn is_exact_product(func: &Function, inst: Inst) -> bool {
    let data = &func.insts[inst];
    data.opcode == Opcode::Dot && matches!(&data.attrs, Attrs::Dot(dot) if dot.max_imprecise == 0)
}
