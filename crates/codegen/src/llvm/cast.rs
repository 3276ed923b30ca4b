//! Conversions between element types.

use tile_compiler::ir::{Attrs, InstData, Opcode, Rounding, Scalar, Value};

use super::Emitter;
use super::text::{Ty, Val};
use crate::CodegenError;

/// The first architecture that converts 8-bit floats in hardware.
const FP8_CONVERSIONS: u32 = 89;

/// The first architecture that makes two numbers of 16 bits of two f32 at once.
const PAIR_CONVERSIONS: u32 = 80;

type Element = Result<Val, CodegenError>;

/// What one instruction makes of two numbers.
#[derive(Clone, Copy)]
enum Pairs {
    /// Two 8-bit floats of the format that PTX names so.
    Bytes(&'static str),
    /// Two 16-bit floats, rounded in the mode that PTX names so.
    Halves(Scalar, &'static str),
}

fn rounds_toward_zero(data: &InstData) -> bool {
    matches!(&data.attrs, Attrs::Round(round) if round.mode == Rounding::TowardZero)
}

/// How PTX names the rounding of a conversion.
fn rounding(data: &InstData) -> &'static str {
    if rounds_toward_zero(data) { "rz" } else { "rn" }
}

impl Emitter<'_> {
    /// Converts one element.
    pub(super) fn convert_element(&mut self, data: &InstData, value: Val) -> Element {
        let (from_ty, to_ty) = (self.ty(data.operand(0)), self.ty(data.result()));
        let (from, to) = (self.register_ty(data.operand(0))?, self.register_ty(data.result())?);
        let numbers = from_ty.number().zip(to_ty.number());
        match (data.opcode, numbers) {
            (Opcode::ExtS, _) => Ok(self.text.cast("sext", from, value, to)),
            (Opcode::ExtU, _) => Ok(self.text.cast("zext", from, value, to)),
            (Opcode::Trunc, _) => Ok(self.text.cast("trunc", from, value, to)),
            (Opcode::Bitcast | Opcode::IntToPtr | Opcode::PtrToInt, _) => {
                Ok(self.text.bitcast(from, value, to))
            }
            (Opcode::FExt, Some((from, to))) => self.widen_float(from, value, to),
            (Opcode::FTrunc, Some((from, to))) => {
                self.narrow_float(from, value, to, rounds_toward_zero(data))
            }
            (Opcode::SToF | Opcode::UToF, Some((_, to))) => {
                let op = if data.opcode == Opcode::SToF { "sitofp" } else { "uitofp" };
                self.int_to_float(op, from, value, to)
            }
            (Opcode::FToS | Opcode::FToU, Some((scalar, _))) => {
                let op = if data.opcode == Opcode::FToS { "fptosi" } else { "fptoui" };
                let (value, from) = self.plain_float(scalar, value)?;
                Ok(self.text.cast(op, from, value, to))
            }
            _ => Err(self.unsupported(data)),
        }
    }

    /// Converts floats to 8 or 16 bits, and from 8 bits, two at a time, as hardware does; `None` where
    /// it does not, or what is converted is something else.
    pub(super) fn convert_in_pairs(
        &mut self,
        data: &InstData,
        values: &[Val],
    ) -> Result<Option<Vec<Val>>, CodegenError> {
        if !values.len().is_multiple_of(2) {
            return Ok(None);
        }
        let numbers = (self.ty(data.operand(0)).number(), self.ty(data.result()).number());
        match (data.opcode, numbers) {
            (Opcode::FTrunc, _) => {}
            (Opcode::FExt, (Some(from), Some(to))) => return self.widen_in_pairs(from, to, values),
            _ => return Ok(None),
        }
        let (Some(from @ (Scalar::F32 | Scalar::F16 | Scalar::BF16)), Some(to)) = numbers else {
            return Ok(None);
        };
        let instruction = match self.fp8_instruction(to) {
            Some(format) => Pairs::Bytes(format),
            None if self.converts_to_halves(data.result(), to) => Pairs::Halves(to, rounding(data)),
            None => return Ok(None),
        };
        let mut converted = Vec::with_capacity(values.len());
        for pair in values.chunks(2) {
            let (low, _) = self.plain_float(from, pair[0])?;
            let (high, _) = self.plain_float(from, pair[1])?;
            converted.extend(match instruction {
                Pairs::Bytes(format) => self.bytes_of_pair(format, low, high),
                Pairs::Halves(to, rounding) => self.halves_of_pair(to, rounding, low, high),
            });
        }
        Ok(Some(converted))
    }

    /// 8-bit floats made wider two at a time; `None` of other formats.
    fn widen_in_pairs(
        &mut self,
        from: Scalar,
        to: Scalar,
        values: &[Val],
    ) -> Result<Option<Vec<Val>>, CodegenError> {
        if from != Scalar::F8E5 && self.fp8_instruction(from).is_none() {
            return Ok(None);
        }
        let mut widened = Vec::with_capacity(values.len());
        for pair in values.chunks(2) {
            for half in self.halves_of_bytes(from, [pair[0], pair[1]]) {
                widened.push(self.widen_half(half, to)?);
            }
        }
        Ok(Some(widened))
    }

    /// The halves that two 8-bit floats are, made by one instruction: `e5m2` are their upper bytes.
    fn halves_of_bytes(&mut self, from: Scalar, pair: [Val; 2]) -> [Val; 2] {
        /// The lower two bytes of a word, each behind a byte of the other.
        const UPPER_BYTES: i64 = 0x1404;
        let (word, wide) = (Ty::Int(16), Ty::Int(32));
        let [low, high] = pair.map(|byte| self.text.cast("zext", Ty::Int(8), byte, word));
        let high = self.text.binary("shl", word, high, Val::Int(8));
        let both = self.text.binary("or", word, low, high);
        let halves = if from == Scalar::F8E5 {
            let both = self.text.cast("zext", word, both, wide);
            let args = [(wide, both), (wide, Val::Int(0)), (wide, Val::Int(UPPER_BYTES))];
            self.text.call("llvm.nvvm.prmt", wide, &args)
        } else {
            self.text.op(format_args!(
                "call i32 asm \"cvt.rn.f16x2.e4m3x2 $0, $1;\", \"=r,h\"(i16 {both})"
            ))
        };
        let vector = self.text.op(format_args!("bitcast i32 {halves} to <2 x half>"));
        [0, 1].map(|at| self.text.op(format_args!("extractelement <2 x half> {vector}, i32 {at}")))
    }

    /// Whether hardware makes two numbers of the 16-bit format `to` at once, and `result` holds
    /// different ones. Where neighbors are equal one conversion serves several registers.
    fn converts_to_halves(&self, result: Value, to: Scalar) -> bool {
        self.target.arch.capability >= PAIR_CONVERSIONS
            && matches!(to, Scalar::F16 | Scalar::BF16)
            && self.first_of_alike(result).is_empty()
    }

    fn bytes_of_pair(&mut self, format: &str, low: Val, high: Val) -> [Val; 2] {
        let word = Ty::Int(16);
        let both = self.fp8_of_pair(format, low, high);
        let upper = self.text.binary("lshr", word, both, Val::Int(8));
        let pair = [both, upper].map(|half| self.text.cast("trunc", word, half, Ty::Int(8)));
        self.byte_pairs.insert(pair, both);
        pair
    }

    fn halves_of_pair(&mut self, to: Scalar, rounding: &str, low: Val, high: Val) -> [Val; 2] {
        let (name, ty) = (if to == Scalar::F16 { "f16" } else { "bf16" }, Ty::of_scalar(to));
        let both = self.text.op(format_args!(
            "call i32 asm \"cvt.{rounding}.{name}x2.f32 $0, $1, $2;\", \"=r,f,f\"(\
             float {high}, float {low})"
        ));
        let vector = self.text.op(format_args!("bitcast i32 {both} to <2 x {ty}>"));
        [0, 1].map(|at| self.text.op(format_args!("extractelement <2 x {ty}> {vector}, i32 {at}")))
    }

    /// The name of the format, if hardware converts to it.
    fn fp8_instruction(&self, to: Scalar) -> Option<&'static str> {
        let hardware = self.target.arch.capability >= FP8_CONVERSIONS;
        match to {
            Scalar::F8E5 if hardware => Some("e5m2x2"),
            Scalar::F8E4NV if hardware => Some("e4m3x2"),
            _ => None,
        }
    }

    fn fp8_of_pair(&mut self, name: &str, low: Val, high: Val) -> Val {
        self.text.op(format_args!(
            "call i16 asm \"cvt.rn.satfinite.{name}.f32 $0, $1, $2;\", \"=h,f,f\"(\
             float {high}, float {low})"
        ))
    }

    fn int_to_float(&mut self, op: &str, from: Ty, value: Val, to: Scalar) -> Element {
        match to {
            Scalar::F32 | Scalar::F64 | Scalar::F16 => {
                Ok(self.text.cast(op, from, value, Ty::of_scalar(to)))
            }
            _ => {
                let wide = self.text.cast(op, from, value, Ty::Float);
                self.narrow_float(Scalar::F32, wide, to, false)
            }
        }
    }

    /// The value in a type that LLVM's conversions take: 16-bit and smaller floats as f32.
    fn plain_float(&mut self, scalar: Scalar, value: Val) -> Result<(Val, Ty), CodegenError> {
        match scalar {
            Scalar::F64 | Scalar::F32 => Ok((value, Ty::of_scalar(scalar))),
            _ => Ok((self.widen_float(scalar, value, Scalar::F32)?, Ty::Float)),
        }
    }

    /// Float to wider float, exact.
    pub(super) fn widen_float(&mut self, from: Scalar, value: Val, to: Scalar) -> Element {
        if from == to {
            return Ok(value);
        }
        if !from.is_fp8() {
            return Ok(self.text.cast("fpext", Ty::of_scalar(from), value, Ty::of_scalar(to)));
        }
        let half = self.half_of_fp8(from, value)?;
        self.widen_half(half, to)
    }

    /// A half as a number of `to`, which holds all that 8-bit floats are.
    fn widen_half(&mut self, half: Val, to: Scalar) -> Element {
        match to {
            Scalar::F16 => Ok(half),
            Scalar::BF16 => {
                let wide = self.text.cast("fpext", Ty::Half, half, Ty::Float);
                self.narrow_float(Scalar::F32, wide, Scalar::BF16, false)
            }
            _ => Ok(self.text.cast("fpext", Ty::Half, half, Ty::of_scalar(to))),
        }
    }

    /// Every 8-bit float is a half. `e5m2` is its upper byte and `e4b15` its bits moved, while
    /// `e4m3` is left to the hardware.
    fn half_of_fp8(&mut self, from: Scalar, value: Val) -> Element {
        let (byte, word) = (Ty::Int(8), Ty::Int(16));
        let wide = self.text.cast("zext", byte, value, word);
        let bits = match from {
            Scalar::F8E5 => self.text.binary("shl", word, wide, Val::Int(8)),
            Scalar::F8E4B15 => {
                let sign = self.text.binary("and", word, wide, Val::Int(0x80));
                let sign = self.text.binary("shl", word, sign, Val::Int(8));
                let rest = self.text.binary("and", word, wide, Val::Int(0x7f));
                let rest = self.text.binary("shl", word, rest, Val::Int(7));
                self.text.binary("or", word, sign, rest)
            }
            _ => {
                self.require_fp8()?;
                let pair = self.text.op(format_args!(
                    "call i32 asm \"cvt.rn.f16x2.e4m3x2 $0, $1;\", \"=r,h\"(i16 {wide})"
                ));
                self.text.cast("trunc", Ty::Int(32), pair, word)
            }
        };
        Ok(self.text.bitcast(word, bits, Ty::Half))
    }

    fn require_fp8(&self) -> Result<(), CodegenError> {
        if self.target.arch.capability >= FP8_CONVERSIONS {
            return Ok(());
        }
        let what = format!("conversion of f8e4nv on {} (sm_89 or later can)", self.target.arch);
        Err(CodegenError::Unsupported { what })
    }

    /// Float to narrower float, or between the two 16-bit formats.
    pub(super) fn narrow_float(
        &mut self,
        from: Scalar,
        value: Val,
        to: Scalar,
        toward_zero: bool,
    ) -> Element {
        if from == to {
            return Ok(value);
        }
        let to_ty = Ty::of_scalar(to);
        let (value, wide) = match (from, to) {
            (Scalar::F64, Scalar::F16 | Scalar::F32) if !toward_zero => (value, Ty::Double),
            (Scalar::F64, _) => {
                (self.text.cast("fptrunc", Ty::Double, value, Ty::Float), Ty::Float)
            }
            _ => self.plain_float(from, value)?,
        };
        match to {
            Scalar::F16 | Scalar::BF16 if toward_zero => {
                let name = if to == Scalar::F16 { "f16" } else { "bf16" };
                let word = self.text.op(format_args!(
                    "call i16 asm \"cvt.rz.{name}.f32 $0, $1;\", \"=h,f\"(float {value})"
                ));
                Ok(self.text.bitcast(Ty::Int(16), word, to_ty))
            }
            Scalar::F16 | Scalar::BF16 | Scalar::F32 => {
                Ok(self.text.cast("fptrunc", wide, value, to_ty))
            }
            _ => self.fp8_of_float(value, to),
        }
    }

    fn fp8_of_float(&mut self, value: Val, to: Scalar) -> Element {
        if let Some(name) = self.fp8_instruction(to) {
            let pair = self.fp8_of_pair(name, value, Val::float(0.0));
            return Ok(self.text.cast("trunc", Ty::Int(16), pair, Ty::Int(8)));
        }
        match to {
            Scalar::F8E5 => self.round_to_e5(value),
            Scalar::F8E4B15 => self.round_to_e4b15(value),
            _ => {
                self.require_fp8()?;
                Ok(value)
            }
        }
    }

    /// As Triton does before sm_89: to half toward zero, then to the nearest even upper byte.
    fn round_to_e5(&mut self, value: Val) -> Element {
        let word = Ty::Int(16);
        let half = self.narrow_float(Scalar::F32, value, Scalar::F16, true)?;
        let bits = self.text.bitcast(Ty::Half, half, word);
        let odd = self.text.binary("lshr", word, bits, Val::Int(8));
        let odd = self.text.binary("and", word, odd, Val::Int(1));
        let rounded = self.text.binary("add", word, bits, Val::Int(0x7f));
        let rounded = self.text.binary("add", word, rounded, odd);
        let high = self.text.binary("lshr", word, rounded, Val::Int(8));
        Ok(self.text.cast("trunc", word, high, Ty::Int(8)))
    }

    /// Half, cut to the format's largest value, then its bits moved with rounding half up.
    fn round_to_e4b15(&mut self, value: Val) -> Element {
        let word = Ty::Int(16);
        let half = self.narrow_float(Scalar::F32, value, Scalar::F16, false)?;
        let bits = self.text.bitcast(Ty::Half, half, word);
        let magnitude = self.text.binary("and", word, bits, Val::Int(0x7fff));
        let args = [(word, magnitude), (word, Val::Int(0x3f80))];
        let magnitude = self.text.call("llvm.umin.i16", word, &args);
        let rounded = self.text.binary("add", word, magnitude, Val::Int(0x40));
        let moved = self.text.binary("lshr", word, rounded, Val::Int(7));
        let sign = self.text.binary("lshr", word, bits, Val::Int(8));
        let sign = self.text.binary("and", word, sign, Val::Int(0x80));
        let byte = self.text.binary("or", word, moved, sign);
        Ok(self.text.cast("trunc", word, byte, Ty::Int(8)))
    }
}
