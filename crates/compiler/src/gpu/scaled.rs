//! Products of block-scaled operands in terms of ordinary ones.
//!
//! In: a tile-level function. Out: the same function, in which each `dot_scaled` is a `dot` of
//! operands that were unpacked, multiplied by their scales and rounded to bf16 (f16 where one of
//! them is f16 as it is). Four-bit floats and the formats of eight bits are exact in bf16, and so
//! is a scale that is a power of two. The formats are those of the OCP Microscaling Formats
//! specification, version 1.0. Cost: linear.

use crate::ir::{
    Attrs, Axis, Builder, Dot, DotPrecision, DotScaled, Function, Inst, IntCompare, IntPredicate,
    Opcode, Order, Region, Reshape, Round, Rounding, Scalar, ScaledFormat, Shape, Type, Value,
};

/// Bits of fraction of an f32.
const FRACTION_BITS: i128 = 23;
/// The byte of a power-of-two scale that is no number.
const NAN_SCALE: i128 = 255;
const NAN_BITS: u64 = 0x7fc0_0000;
/// `2^126` as f32: it takes a four-bit float, whose exponent was put below that of any normal f32,
/// to its value.
const E2M1_REBIAS: u64 = 0x7e80_0000;

/// Rewrites the block-scaled products of `func`.
pub fn expand(func: &mut Function) {
    let regions: Vec<Region> = func.regions.keys().collect();
    for region in regions {
        for inst in std::mem::take(&mut func.regions[region].insts) {
            if func.insts[inst].opcode == Opcode::DotScaled {
                expand_product(func, region, inst);
            }
            func.regions[region].insts.push(inst);
        }
    }
}

/// Makes `inst` an ordinary product, after writing its operands at the end of `region`.
fn expand_product(func: &mut Function, region: Region, inst: Inst) {
    let data = func.insts[inst].clone();
    let Attrs::DotScaled(attrs) = data.attrs.clone() else { return };
    let is_half = [attrs.lhs, attrs.rhs].contains(&ScaledFormat::Fp16);
    let factor = if is_half { Scalar::F16 } else { Scalar::BF16 };
    let mut builder = Builder::new(func, region);
    builder.set_loc(data.loc);
    let DotScaled { lhs, rhs, lhs_k_pack, rhs_k_pack } = attrs;
    let mut expansion = Expansion { builder, factor };
    let left = Packed { format: lhs, axis: usize::from(lhs_k_pack), along_k: 1 };
    let right = Packed { format: rhs, axis: usize::from(!rhs_k_pack), along_k: 0 };
    let left = expansion.operand(left, data.operand(0), data.operand_opt(1));
    let right = expansion.operand(right, data.operand(2), data.operand_opt(3));
    let inst = &mut func.insts[inst];
    inst.opcode = Opcode::Dot;
    inst.operands = [left, right, data.operand(4)].into_iter().map(Some).collect();
    inst.attrs = Dot { precision: DotPrecision::Tf32, max_imprecise: 0 }.into();
}

/// How an operand is encoded.
#[derive(Clone, Copy)]
struct Packed {
    format: ScaledFormat,
    /// Which of the matrix's two axes two four-bit values share a byte along.
    axis: usize,
    /// Which of them is K.
    along_k: usize,
}

struct Expansion<'f> {
    builder: Builder<'f>,
    /// What the operands are multiplied in.
    factor: Scalar,
}

impl Expansion<'_> {
    /// The operand's values in the type of the product.
    fn operand(&mut self, packed: Packed, value: Value, scale: Option<Value>) -> Value {
        let value = match packed.format {
            ScaledFormat::E2M1 => self.unpack(packed, value),
            _ => value,
        };
        let scaled = scale.map(|scale| self.scale(packed, value, scale));
        if scaled.is_none() && self.builder.func.ty(value).number() == Some(self.factor) {
            return value;
        }
        let value = match scaled {
            Some(scaled) => scaled,
            None => self.widen(value),
        };
        let round = Round { mode: Rounding::Nearest };
        self.cast(Opcode::FTrunc, value, self.factor, round)
    }

    /// `value` times the scale of each group along K, as f32.
    fn scale(&mut self, packed: Packed, value: Value, scale: Value) -> Value {
        let scale = self.scale_value(scale);
        let shape = self.shape(value);
        let matrix = shape.len() - 2;
        let depth = shape[matrix + packed.along_k];
        // Scales lie with the group along K last, for both operands.
        let mut spread = self.shape(scale);
        let groups = spread[spread.len() - 1].max(1);
        spread.push(1);
        let scale = self.explicit(Opcode::ExpandDims, scale, &spread, last_axis(&spread));
        spread.pop();
        spread.push(depth / groups);
        let scale = self.explicit(Opcode::Broadcast, scale, &spread, Attrs::None);
        spread.pop();
        spread.pop();
        spread.push(depth);
        let scale = self.reshape(scale, &spread);
        let scale = if packed.along_k == 1 { scale } else { self.transpose(scale) };
        let value = self.widen(value);
        self.builder.emit(Opcode::FMul, &[value, scale], Attrs::None)
    }

    /// A scale as f32: `2^(byte - 127)`, or a float of its own.
    fn scale_value(&mut self, scale: Value) -> Value {
        if self.builder.func.ty(scale).number().is_some_and(Scalar::is_fp8) {
            return self.widen(scale);
        }
        let exponent = self.cast(Opcode::ExtU, scale, Scalar::I32, Attrs::None);
        let fraction_bits = self.int(exponent, FRACTION_BITS);
        let bits = self.builder.emit(Opcode::Shl, &[exponent, fraction_bits], Attrs::None);
        // 2^-127 is below the normal numbers.
        let lowest = self.int(exponent, 1 << (FRACTION_BITS - 1));
        let bits = self.builder.emit(Opcode::MaxU, &[bits, lowest], Attrs::None);
        let power = self.cast(Opcode::Bitcast, bits, Scalar::F32, Attrs::None);
        let nan_byte = self.int(exponent, NAN_SCALE);
        let equal = IntCompare { predicate: IntPredicate::Eq };
        let is_nan = self.builder.emit(Opcode::Cmp, &[exponent, nan_byte], equal);
        let ty = self.builder.func.ty(power).clone();
        let nan = self.builder.constant(ty.clone(), NAN_BITS);
        self.builder.emit_typed(Opcode::Select, &[is_nan, nan, power], Attrs::None, ty)
    }

    /// The values of bytes that hold two four-bit floats each, the low half first, as f32.
    fn unpack(&mut self, packed: Packed, value: Value) -> Value {
        let bytes = self.cast(Opcode::ExtU, value, Scalar::I32, Attrs::None);
        let half = self.int(bytes, 4);
        let high = self.builder.emit(Opcode::ShrU, &[bytes, half], Attrs::None);
        let [low, high] = [bytes, high].map(|nibble| self.e2m1(nibble));
        let mut shape = self.shape(value);
        let axis = shape.len() - 2 + packed.axis;
        let mut joined = shape.clone();
        joined.push(2);
        let ty = self.tile(Scalar::F32, &joined);
        let mut pairs = self.builder.emit_typed(Opcode::Join, &[low, high], Attrs::None, ty);
        if packed.axis == 0 {
            pairs = self.transpose(pairs);
        }
        shape[axis] *= 2;
        self.reshape(pairs, &shape)
    }

    /// The low four bits as an f32: a sign, two bits of exponent, one of fraction.
    fn e2m1(&mut self, nibble: Value) -> Value {
        let field = |this: &mut Self, mask: i128, shift: i128| {
            let mask = this.int(nibble, mask);
            let bits = this.builder.emit(Opcode::And, &[nibble, mask], Attrs::None);
            let shift = this.int(nibble, shift);
            this.builder.emit(Opcode::Shl, &[bits, shift], Attrs::None)
        };
        let magnitude = field(self, 7, FRACTION_BITS - 1);
        let sign = field(self, 8, 28);
        let bits = self.builder.emit(Opcode::Or, &[magnitude, sign], Attrs::None);
        let small = self.cast(Opcode::Bitcast, bits, Scalar::F32, Attrs::None);
        let ty = self.builder.func.ty(small).clone();
        let rebias = self.builder.constant(ty, E2M1_REBIAS);
        self.builder.emit(Opcode::FMul, &[small, rebias], Attrs::None)
    }

    fn widen(&mut self, value: Value) -> Value {
        match self.builder.func.ty(value).number() {
            Some(Scalar::F32) => value,
            _ => self.cast(Opcode::FExt, value, Scalar::F32, Attrs::None),
        }
    }

    fn shape(&self, value: Value) -> Shape {
        self.builder.func.ty(value).shape().into()
    }

    fn tile(&self, scalar: Scalar, shape: &[u32]) -> Type {
        Type::of(scalar, shape)
    }

    fn int(&mut self, like: Value, value: i128) -> Value {
        let ty = self.builder.func.ty(like).clone();
        self.builder.constant(ty, value as u64)
    }

    fn cast(&mut self, opcode: Opcode, value: Value, to: Scalar, attrs: impl Into<Attrs>) -> Value {
        let ty = self.builder.func.ty(value).with_elem(to);
        self.builder.emit_typed(opcode, &[value], attrs, ty)
    }

    fn explicit(
        &mut self,
        opcode: Opcode,
        value: Value,
        shape: &[u32],
        attrs: impl Into<Attrs>,
    ) -> Value {
        let scalar = self.builder.func.ty(value).number().unwrap_or(Scalar::F32);
        let ty = self.tile(scalar, shape);
        self.builder.emit_typed(opcode, &[value], attrs, ty)
    }

    fn reshape(&mut self, value: Value, shape: &[u32]) -> Value {
        self.explicit(Opcode::Reshape, value, shape, Reshape { reorder: false })
    }

    /// The value with its last two axes exchanged.
    fn transpose(&mut self, value: Value) -> Value {
        let mut shape = self.shape(value);
        let rank = shape.len();
        shape.swap(rank - 2, rank - 1);
        let mut order: Shape = (0..rank as u32).collect();
        order.swap(rank - 2, rank - 1);
        self.explicit(Opcode::Permute, value, &shape, Order { order })
    }
}

fn last_axis(shape: &[u32]) -> Axis {
    Axis { axis: shape.len() as u32 - 1 }
}
