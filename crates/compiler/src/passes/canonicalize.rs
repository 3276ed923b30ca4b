//! Folds integer constants and drops operations that change nothing.
//!
//! In: a verified function. Out: the same function with simpler instructions: integer arithmetic,
//! comparisons and conversions of constants become constants, `x + 0`, `x * 1`, `x & true`,
//! `select` of a constant, splats of constants and shape operations that keep the shape go away;
//! so does what follows from the [`Ranges`] of numbers, such as a mask that a whole block passes.
//! Loads and stores lose masks that are true everywhere.
//! Numbers that are only widened and rounded again stay as they are, or are widened less; what changes their sign
//! does so once they are wide.
//! What a loop carries unchanged is used from before it. Branches on constants and loops that run
//! once or never leave what runs: a loop of one iteration has nothing to overlap with, so that
//! buffers for several would be lost.
//! Other arithmetic on floats is left alone, so that every rounding happens where the program runs. Cost:
//! linear.

use rustc_hash::FxHashMap;

use super::ranges::{Range, Ranges, signed};
use crate::ir::{
    Attrs, Constant, Function, Inst, IntCompare, IntPredicate, Opcode, Region, Scalar, Type, Value,
    ValueData, ValueDef,
};

/// Operands of a `for` before what it carries: its bounds and its step.
const BOUNDS: usize = 3;

/// Simplifies every instruction once, operands before users.
pub fn canonicalize(func: &mut Function) {
    visit(func, func.body, &mut Known::default());
}

/// What is known of the values so far.
#[derive(Default)]
struct Known {
    /// What to use instead of them.
    replaced: FxHashMap<Value, Value>,
    ranges: Ranges,
}

impl Known {
    /// What to use for `value`.
    fn resolve(&self, value: Value) -> Value {
        *self.replaced.get(&value).unwrap_or(&value)
    }
}

fn visit(func: &mut Function, region: Region, known: &mut Known) {
    let insts = std::mem::take(&mut func.regions[region].insts);
    let mut kept = Vec::with_capacity(insts.len());
    simplify_all(func, insts, known, &mut kept);
    func.regions[region].insts = kept;
}

/// Appends what is left of `insts` to `kept`.
fn simplify_all(func: &mut Function, insts: Vec<Inst>, known: &mut Known, kept: &mut Vec<Inst>) {
    for inst in insts {
        for operand in func.insts[inst].operands.iter_mut().flatten() {
            *operand = known.resolve(*operand);
        }
        if let Some(runs) = decided(func, inst) {
            flatten(func, inst, runs, known, kept);
            continue;
        }
        drop_full_mask(func, inst);
        widen_less(func, inst);
        kept.extend(sign_behind_widening(func, inst));
        known.ranges.visit(func, inst);
        match simplify(func, inst, &known.ranges) {
            Simpler::Value(value) => {
                known.replaced.insert(func.insts[inst].result(), value);
                continue;
            }
            Simpler::Constant(bits) => {
                let data = &mut func.insts[inst];
                data.opcode = Opcode::Constant;
                data.operands.clear();
                data.attrs = Attrs::Constant(Constant { bits });
            }
            Simpler::No => {}
        }
        for inner in func.insts[inst].regions.clone() {
            visit(func, inner, known);
        }
        if func.insts[inst].opcode == Opcode::For && drop_constant_carries(func, inst, known) {
            // What follows from them may be simpler now.
            visit(func, func.insts[inst].regions[0], known);
        }
        kept.push(inst);
    }
}

/// Takes a mask that is true everywhere from a load or a store, and what masked lanes would read.
fn drop_full_mask(func: &mut Function, inst: Inst) {
    let slots = match func.insts[inst].opcode {
        Opcode::Load => 1..3,
        Opcode::Store => 2..3,
        _ => return,
    };
    let mask = func.insts[inst].operand_opt(slots.start).and_then(|mask| func.constant_bits(mask));
    if mask.is_some_and(|bits| bits & 1 == 1) {
        func.insts[inst].operands[slots].fill(None);
    }
}

/// Has a float that is widened, and rounded to a format that holds all numbers of its own, be widened to
/// that one.
fn widen_less(func: &mut Function, inst: Inst) {
    let data = &func.insts[inst];
    if data.opcode != Opcode::FTrunc {
        return;
    }
    let Some(wide) = func.def(data.operand(0)).filter(|data| data.opcode == Opcode::FExt) else {
        return;
    };
    let (source, attrs) = (wide.operand(0), wide.attrs.clone());
    let [from, to] = [source, data.result()].map(|value| func.ty(value).number());
    let holds_all = match (from, to) {
        (Some(Scalar::F8E5 | Scalar::F8E4NV), Some(Scalar::F16))
        | (Some(Scalar::F16 | Scalar::BF16), Some(Scalar::F32)) => true,
        (from, to) => from == to && matches!(to, Some(Scalar::F16 | Scalar::BF16 | Scalar::F32)),
    };
    if holds_all {
        let data = &mut func.insts[inst];
        (data.opcode, data.attrs) = (Opcode::FExt, attrs);
        data.operands[0] = Some(source);
    }
}

/// Has a float that is widened behind a change of its sign be widened in front of it, where it may be widened
/// anyway; instructions on wide floats change signs of what they read. Returns what widens.
fn sign_behind_widening(func: &mut Function, inst: Inst) -> Option<Inst> {
    let data = &func.insts[inst];
    let sign = func.def(data.operand_opt(0)?).filter(|_| data.opcode == Opcode::FExt)?;
    let changes_sign = matches!(sign.opcode, Opcode::FAbs | Opcode::FNeg);
    let (opcode, source) = (sign.opcode, sign.operand_opt(0).filter(|_| changes_sign)?);
    let ty = func.ty(data.result()).clone();
    let mut widening = data.clone();
    widening.operands[0] = Some(source);
    widening.results.clear();
    let attrs = sign.attrs.clone();
    let widening = func.insts.push(widening);
    let wide = func.values.push(ValueData { ty, def: ValueDef::Result(widening, 0), name: None });
    func.insts[widening].results.push(wide);
    let data = &mut func.insts[inst];
    (data.opcode, data.attrs) = (opcode, attrs);
    data.operands[0] = Some(wide);
    Some(widening)
}

/// Takes away the values that a `for` carries from iteration to iteration as they are, or as they
/// were before it; tells whether there were any.
fn drop_constant_carries(func: &mut Function, inst: Inst, known: &mut Known) -> bool {
    let region = func.insts[inst].regions[0];
    let Some(&last) = func.regions[region].insts.last() else { return false };
    let args = func.regions[region].args.drain(1..).collect::<Vec<_>>();
    let inits = func.insts[inst].operands.drain(BOUNDS..).collect::<Vec<_>>();
    let results = std::mem::take(&mut func.insts[inst].results);
    let yielded = std::mem::take(&mut func.insts[last].operands);
    let count = args.len();
    for (((arg, init), result), next) in args.into_iter().zip(inits).zip(results).zip(yielded) {
        match init {
            Some(init) if next == Some(arg) || next == Some(init) => {
                known.replaced.extend([(arg, init), (result, init)]);
            }
            _ => {
                func.regions[region].args.push(arg);
                func.insts[inst].operands.push(init);
                func.insts[inst].results.push(result);
                func.insts[last].operands.push(next);
            }
        }
    }
    func.insts[inst].results.len() < count
}

/// The region of a branch or a loop that is known to run once, with what its arguments are then;
/// without a region, what the results are instead.
struct Runs {
    region: Option<Region>,
    values: Vec<Value>,
}

/// What a branch or loop comes down to where constants decide it.
fn decided(func: &Function, inst: Inst) -> Option<Runs> {
    let data = &func.insts[inst];
    match data.opcode {
        Opcode::If => {
            let holds = func.constant_bits(data.operand(0))? & 1 == 1;
            Some(Runs { region: Some(data.regions[usize::from(!holds)]), values: Vec::new() })
        }
        Opcode::For => {
            let lower = data.operand(0);
            let inits = data.uses().skip(BOUNDS);
            match trips(func, inst)? {
                0 => Some(Runs { region: None, values: inits.collect() }),
                1 => {
                    let values = std::iter::once(lower).chain(inits).collect();
                    Some(Runs { region: Some(data.regions[0]), values })
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// How often a `for` of constant bounds runs, whatever the sign that its index is read with.
fn trips(func: &Function, inst: Inst) -> Option<i128> {
    let data = &func.insts[inst];
    let scalar = func.ty(data.operand(0)).number()?;
    let [lower, upper, step] = [0, 1, 2].map(|slot| func.constant_bits(data.operand(slot)));
    let [lower, upper, step] = [lower?, upper?, step?].map(|bits| signed(scalar, bits));
    let is_certain = lower >= 0 && upper >= 0 && step > 0;
    is_certain.then(|| ((upper - lower).max(0) + step - 1) / step)
}

/// Puts what runs in place of `inst`.
fn flatten(func: &mut Function, inst: Inst, runs: Runs, known: &mut Known, kept: &mut Vec<Inst>) {
    let results = func.insts[inst].results.to_vec();
    let Some(region) = runs.region else {
        known.replaced.extend(results.into_iter().zip(runs.values));
        return;
    };
    let args = func.regions[region].args.to_vec();
    known.replaced.extend(args.into_iter().zip(runs.values));
    let mut insts = std::mem::take(&mut func.regions[region].insts);
    let last = insts.pop().expect("invariant: a region ends in its terminator");
    simplify_all(func, insts, known, kept);
    let yielded = func.insts[last].uses().map(|value| known.resolve(value)).collect::<Vec<_>>();
    known.replaced.extend(results.into_iter().zip(yielded));
}

enum Simpler {
    /// Use this value instead.
    Value(Value),
    /// It is the constant with these bits.
    Constant(u64),
    /// As simple as it gets.
    No,
}

fn simplify(func: &Function, inst: Inst, ranges: &Ranges) -> Simpler {
    let data = &func.insts[inst];
    let &[result] = data.results.as_slice() else { return Simpler::No };
    let ty = func.ty(result);
    let constant = |slot: usize| data.operand_opt(slot).and_then(|value| func.constant_bits(value));
    let by_range = narrow(func, inst, ranges);
    if !matches!(by_range, Simpler::No) {
        return by_range;
    }
    match data.opcode {
        Opcode::Splat | Opcode::Broadcast | Opcode::Reshape | Opcode::ExpandDims => {
            match constant(0) {
                Some(bits) => Simpler::Constant(bits),
                None if func.ty(data.operand(0)) == ty => Simpler::Value(data.operand(0)),
                None => Simpler::No,
            }
        }
        Opcode::FExt if func.ty(data.operand(0)) == ty => Simpler::Value(data.operand(0)),
        Opcode::AssertFacts if constant(0).is_some() => Simpler::Value(data.operand(0)),
        Opcode::Select => match constant(0) {
            Some(bits) => Simpler::Value(data.operand(if bits & 1 == 1 { 1 } else { 2 })),
            None if data.operand(1) == data.operand(2) => Simpler::Value(data.operand(1)),
            None => Simpler::No,
        },
        Opcode::ExtS
        | Opcode::ExtU
        | Opcode::Trunc
        | Opcode::FTrunc
        | Opcode::FToS
        | Opcode::FToU => {
            let types = func.ty(data.operand(0)).number().zip(ty.number());
            let cast = constant(0).zip(types);
            let folded = cast.and_then(|(bits, types)| fold_cast(data.opcode, types, bits));
            folded.map_or(Simpler::No, |constant| Simpler::Constant(constant.bits))
        }
        Opcode::Cmp => match (&data.attrs, constant(0), constant(1)) {
            (Attrs::IntCompare(compare), Some(lhs), Some(rhs)) => {
                fold_compare(compare, func.ty(data.operand(0)), lhs, rhs)
            }
            _ => Simpler::No,
        },
        opcode => fold_binary(opcode, ty, [constant(0), constant(1)], |slot| data.operand(slot)),
    }
}

/// What follows from the ranges of the operands.
fn narrow(func: &Function, inst: Inst, ranges: &Ranges) -> Simpler {
    let data = &func.insts[inst];
    if data.opcode == Opcode::Constant || !data.opcode.is_pure() {
        return Simpler::No;
    }
    let ty = func.ty(data.result());
    let result = ranges.get(func, data.result());
    if let (Some(scalar), Some(number)) = (ty.number(), result.and_then(Range::single)) {
        return Simpler::Constant(Constant::int(scalar, number).bits);
    }
    let &[Some(lhs), Some(rhs)] = data.operands.as_slice() else { return Simpler::No };
    let (Some(left), Some(right)) = (ranges.get(func, lhs), ranges.get(func, rhs)) else {
        return Simpler::No;
    };
    match (data.opcode, &data.attrs) {
        (Opcode::Cmp, Attrs::IntCompare(compare)) => {
            let outcome = left.compare(compare.predicate, right);
            outcome.map_or(Simpler::No, |holds| Simpler::Constant(holds.into()))
        }
        (Opcode::RemS | Opcode::RemU, _) if left.is_index_below(right) => Simpler::Value(lhs),
        (Opcode::MinS, _) if left.is_at_most(right) => Simpler::Value(lhs),
        (Opcode::MinS, _) if right.is_at_most(left) => Simpler::Value(rhs),
        (Opcode::MaxS, _) if left.is_at_most(right) => Simpler::Value(rhs),
        (Opcode::MaxS, _) if right.is_at_most(left) => Simpler::Value(lhs),
        _ => Simpler::No,
    }
}

/// A constant of another type, such as what a load of integers takes where it is masked off. Floats that the type
/// does not hold become what hardware makes of them.
fn fold_cast(opcode: Opcode, (from, to): (Scalar, Scalar), bits: u64) -> Option<Constant> {
    let number = Constant { bits }.number(from);
    match opcode {
        Opcode::FTrunc => Constant::float(to, number?),
        Opcode::FToS | Opcode::FToU => {
            let most = f64::from(1u32 << (to.bits().min(32) - 1));
            let least = if opcode == Opcode::FToS { -most } else { 0.0 };
            let number = number.map(f64::trunc).filter(|number| (least..most).contains(number))?;
            Some(Constant::int(to, number as i128))
        }
        Opcode::ExtS => Some(Constant::int(to, signed(from, bits))),
        _ => Some(Constant::int(to, i128::from(bits))),
    }
}

fn fold_compare(compare: &IntCompare, ty: &Type, lhs: u64, rhs: u64) -> Simpler {
    let Some(scalar) = ty.number() else { return Simpler::No };
    let (left, right) = (signed(scalar, lhs), signed(scalar, rhs));
    let holds = match compare.predicate {
        IntPredicate::Eq => lhs == rhs,
        IntPredicate::Ne => lhs != rhs,
        IntPredicate::Slt => left < right,
        IntPredicate::Sle => left <= right,
        IntPredicate::Sgt => left > right,
        IntPredicate::Sge => left >= right,
        IntPredicate::Ult => lhs < rhs,
        IntPredicate::Ule => lhs <= rhs,
        IntPredicate::Ugt => lhs > rhs,
        IntPredicate::Uge => lhs >= rhs,
    };
    Simpler::Constant(holds.into())
}

fn fold_binary(
    opcode: Opcode,
    ty: &Type,
    constants: [Option<u64>; 2],
    operand: impl Fn(usize) -> Value,
) -> Simpler {
    let Some(scalar) = ty.number().filter(|scalar| scalar.is_int()) else { return Simpler::No };
    let ones = Constant::int(scalar, -1).bits;
    match (opcode, constants) {
        (_, [Some(lhs), Some(rhs)]) => match fold_int(opcode, scalar, lhs, rhs) {
            Some(value) => Simpler::Constant(Constant::int(scalar, value).bits),
            None => Simpler::No,
        },
        (Opcode::Add | Opcode::Or | Opcode::Xor, [Some(0), None]) => Simpler::Value(operand(1)),
        (
            Opcode::Add
            | Opcode::Sub
            | Opcode::Or
            | Opcode::Xor
            | Opcode::Shl
            | Opcode::ShrS
            | Opcode::ShrU,
            [None, Some(0)],
        ) => Simpler::Value(operand(0)),
        (Opcode::Mul, [Some(1), None]) => Simpler::Value(operand(1)),
        (Opcode::Mul | Opcode::DivS | Opcode::DivU, [None, Some(1)]) => Simpler::Value(operand(0)),
        (Opcode::Mul | Opcode::And, [Some(0), None] | [None, Some(0)]) => Simpler::Constant(0),
        (Opcode::And, [Some(mask), None]) if mask == ones => Simpler::Value(operand(1)),
        (Opcode::And, [None, Some(mask)]) if mask == ones => Simpler::Value(operand(0)),
        _ => Simpler::No,
    }
}

/// The exact result, which the caller wraps to the type; `None` when it is not an integer
/// operation or is undefined.
fn fold_int(opcode: Opcode, scalar: Scalar, lhs: u64, rhs: u64) -> Option<i128> {
    let (left, right) = (signed(scalar, lhs), signed(scalar, rhs));
    let (low, high) = (i128::from(lhs), i128::from(rhs));
    let amount = || u32::try_from(rhs).ok().filter(|&amount| amount < scalar.bits());
    Some(match opcode {
        Opcode::Add => left + right,
        Opcode::Sub => left - right,
        Opcode::Mul => left.wrapping_mul(right),
        Opcode::DivS => left.checked_div(right)?,
        Opcode::RemS => left.checked_rem(right)?,
        Opcode::DivU => low.checked_div(high)?,
        Opcode::RemU => low.checked_rem(high)?,
        Opcode::And => low & high,
        Opcode::Or => low | high,
        Opcode::Xor => low ^ high,
        Opcode::Shl => low << amount()?,
        Opcode::ShrS => left >> amount()?,
        Opcode::ShrU => low >> amount()?,
        Opcode::MinS => left.min(right),
        Opcode::MaxS => left.max(right),
        Opcode::MinU => low.min(high),
        Opcode::MaxU => low.max(high),
        _ => return None,
    })
}
