//! Products in element types or precisions that the matrix units do not have, in terms of those
//! that they have.
//!
//! In: a tile-level function. Out: the same function, in which
//!
//! - a product of f32 operands by several products (`tf32x3`, `bf16x3`, `bf16x6`) is spelled out:
//!   each operand is a sum of parts that the units hold exactly, products of small parts are
//!   summed first, and what infinities make of them there is dropped;
//! - 8-bit floats that the units cannot multiply are widened to f16;
//! - where no instruction fits the shape anyway, f32 operands are multiplied as they are.
//!
//! The scheme of splitting is that of Henry, Tang and Heinecke, "Leveraging the bfloat16
//! Artificial Intelligence Datatype For Higher-Precision Computations" (arXiv 1904.06376). Cost:
//! linear.

use rustc_hash::FxHashMap;

use super::{GpuTarget, product};
use crate::ir::{
    Attrs, Builder, Dot, DotPrecision, FloatCompare, FloatPredicate, Function, Inst, Opcode,
    Region, Round, Rounding, Scalar, Type, Value,
};

/// Sign, exponent and the ten bits of fraction that TF32 keeps of an f32.
const TF32_BITS: u64 = 0xffff_e000;

/// Rewrites the products of `func` for `target`.
pub fn expand(func: &mut Function, target: GpuTarget) {
    let mut replaced = FxHashMap::default();
    expand_region(func, func.body, target, &mut replaced);
}

fn expand_region(
    func: &mut Function,
    region: Region,
    target: GpuTarget,
    replaced: &mut FxHashMap<Value, Value>,
) {
    for inst in std::mem::take(&mut func.regions[region].insts) {
        for operand in func.insts[inst].operands.iter_mut().flatten() {
            *operand = *replaced.get(operand).unwrap_or(operand);
        }
        match expand_product(func, region, inst, target) {
            Some(result) => {
                replaced.insert(func.insts[inst].result(), result);
            }
            None => func.regions[region].insts.push(inst),
        }
        for inner in func.insts[inst].regions.clone() {
            expand_region(func, inner, target, replaced);
        }
    }
}

/// What takes the place of `inst`, written at the end of `region`; `None` when it stays.
fn expand_product(
    func: &mut Function,
    region: Region,
    inst: Inst,
    target: GpuTarget,
) -> Option<Value> {
    let data = func.insts[inst].clone();
    let Attrs::Dot(attrs) = &data.attrs else { return None };
    let fits = product::fits_units(func, &data, target);
    let number = |slot: usize| func.ty(data.operand(slot)).number();
    let (lhs, rhs, acc) = (number(0)?, number(1)?, number(2)?);
    if lhs == Scalar::F32 && rhs == Scalar::F32 {
        let splitting = match attrs.precision {
            DotPrecision::Tf32 | DotPrecision::Ieee => return None,
            DotPrecision::Tf32x3 => Splitting::Tf32,
            DotPrecision::Bf16x3 => Splitting::Bf16 { parts: 2 },
            DotPrecision::Bf16x6 => Splitting::Bf16 { parts: 3 },
        };
        if !fits {
            let dot = Dot { precision: DotPrecision::Ieee, ..attrs.clone() };
            func.insts[inst].attrs = dot.into();
            return None;
        }
        return Some(Expansion::new(func, region, inst).split(splitting));
    }
    let native = target.capability >= 89
        && acc == Scalar::F32
        && [lhs, rhs].iter().all(|scalar| *scalar != Scalar::F8E4B15);
    if !lhs.is_fp8() || !rhs.is_fp8() || !fits || native {
        return None;
    }
    Some(Expansion::new(func, region, inst).widen())
}

/// How an f32 is a sum of numbers that the units hold exactly.
#[derive(Clone, Copy)]
enum Splitting {
    /// The f32 cut to TF32, and the rest.
    Tf32,
    /// The nearest bf16, that of the rest, and so on.
    Bf16 { parts: usize },
}

struct Expansion<'f> {
    builder: Builder<'f>,
    attrs: Dot,
    operands: [Value; 3],
}

impl<'f> Expansion<'f> {
    fn new(func: &'f mut Function, region: Region, inst: Inst) -> Expansion<'f> {
        let data = &func.insts[inst];
        let attrs = match &data.attrs {
            Attrs::Dot(attrs) => Dot { precision: DotPrecision::Tf32, ..attrs.clone() },
            _ => Dot { precision: DotPrecision::Tf32, max_imprecise: 0 },
        };
        let (loc, operands) = (data.loc, [0, 1, 2].map(|slot| data.operand(slot)));
        let mut builder = Builder::new(func, region);
        builder.set_loc(loc);
        Expansion { builder, attrs, operands }
    }

    fn widen(mut self) -> Value {
        let [lhs, rhs, acc] = self.operands;
        let [lhs, rhs] = [lhs, rhs].map(|operand| self.cast(Opcode::FExt, operand, Scalar::F16));
        self.dot(lhs, rhs, acc)
    }

    fn split(mut self, splitting: Splitting) -> Value {
        let [lhs, rhs, acc] = self.operands;
        let [lhs, rhs] = [lhs, rhs].map(|operand| self.parts(operand, splitting));
        let ty = self.builder.func.ty(acc).clone();
        let zero = self.builder.constant(ty.clone(), 0);
        // The smallest products first; those beyond f32's own precision are left out.
        let order = lhs.len() - 1;
        let mut sum = zero;
        for rank in (1..=order).rev() {
            for left in (0..=rank).rev() {
                sum = self.dot(lhs[left], rhs[rank - left], sum);
            }
        }
        // An infinite part times a part that is 0 is no number, though the whole product is one.
        let unordered = FloatCompare { predicate: FloatPredicate::Une };
        let is_nan = self.builder.emit(Opcode::FCmp, &[sum, sum], unordered);
        let sum = self.builder.emit_typed(Opcode::Select, &[is_nan, zero, sum], Attrs::None, ty);
        let product = self.dot(lhs[0], rhs[0], sum);
        self.builder.emit(Opcode::FAdd, &[product, acc], Attrs::None)
    }

    /// Numbers that sum to `value`, the largest first.
    fn parts(&mut self, value: Value, splitting: Splitting) -> Vec<Value> {
        match splitting {
            Splitting::Tf32 => {
                let bits = self.cast(Opcode::Bitcast, value, Scalar::I32);
                let ty = self.builder.func.ty(bits).clone();
                let mask = self.builder.constant(ty, TF32_BITS);
                let kept = self.builder.emit(Opcode::And, &[bits, mask], Attrs::None);
                let large = self.cast(Opcode::Bitcast, kept, Scalar::F32);
                let rest = self.builder.emit(Opcode::FSub, &[value, large], Attrs::None);
                vec![large, rest]
            }
            Splitting::Bf16 { parts } => {
                let mut rest = value;
                let mut split = Vec::with_capacity(parts);
                for at in 0..parts {
                    let part = self.cast(Opcode::FTrunc, rest, Scalar::BF16);
                    split.push(part);
                    if at + 1 < parts {
                        let wide = self.cast(Opcode::FExt, part, Scalar::F32);
                        rest = self.builder.emit(Opcode::FSub, &[rest, wide], Attrs::None);
                    }
                }
                split
            }
        }
    }

    fn cast(&mut self, opcode: Opcode, value: Value, to: Scalar) -> Value {
        let ty: Type = self.builder.func.ty(value).with_elem(to);
        let attrs: Attrs = match opcode {
            Opcode::FTrunc => Round { mode: Rounding::Nearest }.into(),
            _ => Attrs::None,
        };
        self.builder.emit_typed(opcode, &[value], attrs, ty)
    }

    fn dot(&mut self, lhs: Value, rhs: Value, acc: Value) -> Value {
        let ty = self.builder.func.ty(acc).clone();
        self.builder.emit_typed(Opcode::Dot, &[lhs, rhs, acc], self.attrs.clone(), ty)
    }
}
