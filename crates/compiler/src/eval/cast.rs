//! Conversions between element types.

use super::dtype::{DType, Elem, Pointer};
use super::value::{Const, Tensor, Value};
use super::{Eval, Evaluator, promote};
use crate::diagnostic::Code;
use crate::hir::CompareOp;
use crate::ir::{self, Attrs, Opcode, Rounding};
use crate::source::FileRange;

impl Evaluator<'_> {
    /// A number as a tensor; literals get the type they have as tensors.
    pub(super) fn materialize(&mut self, value: &Value, at: FileRange) -> Eval<Tensor> {
        match value {
            Value::Tensor(tensor) => Ok(tensor.clone()),
            Value::Unknown => Err(super::Stop::Unknown),
            Value::Const(Const::Symbol(sym)) => {
                let elem = self.symbol_elem(sym);
                Ok(Tensor::new(elem, super::value::Shape::scalar()))
            }
            Value::Const(constant) => match literal_dtype(constant) {
                Some(dtype) => Ok(self.scalar_constant(constant, dtype)),
                None if matches!(constant, Const::Int(_)) => {
                    let message = format!("the integer {constant} does not fit 64 bits");
                    Err(self.error(Code::IntegerRange, at, message))
                }
                None => {
                    let message =
                        format!("{constant} is not a number, so it cannot become a tensor");
                    Err(self.error(Code::NotATensor, at, message))
                }
            },
            other => {
                let text = super::report::a(other);
                Err(self.error(
                    Code::NotATensor,
                    at,
                    format!("expected a number or tensor, but this is {text}"),
                ))
            }
        }
    }

    /// The type that a symbolic number has as a tensor, if that is certain.
    pub(super) fn symbol_elem(&self, sym: &super::symbolic::Sym) -> Elem {
        let atoms = sym.atoms();
        let integer = !atoms.is_empty() && atoms.iter().all(|atom| self.is_integer(atom));
        if integer { Elem::I32 } else { Elem::Unknown }
    }

    /// True for symbols that count something: those used as extents or bounds, those whose name
    /// says so, and expressions of such symbols.
    fn is_integer(&self, atom: &str) -> bool {
        if self.integer_symbols.contains(atom) || self.named_integer(atom) {
            return true;
        }
        let nested = atom.starts_with('(') || atom.starts_with("next_power_of_2(");
        if !nested || atom.contains(" / ") || atom.contains('?') {
            return false;
        }
        atom.split(|c: char| !c.is_alphanumeric() && c != '_')
            .filter(|part| part.starts_with(|c: char| c.is_alphabetic() || c == '_'))
            .filter(|part| !matches!(*part, "min" | "max" | "next_power_of_2"))
            .all(|part| self.integer_symbols.contains(part) || self.named_integer(part))
    }

    fn named_integer(&self, atom: &str) -> bool {
        looks_like_integer(atom) && !self.other_symbols.contains(atom)
    }

    /// Converts to another number type, or between pointers and 64-bit integers.
    pub(super) fn cast(&mut self, tensor: &Tensor, to: Elem, at: FileRange) -> Eval<Tensor> {
        self.cast_rounding(tensor, to, None, at)
    }

    /// As [`Self::cast`], with the rounding of a narrowing float conversion.
    pub(super) fn cast_rounding(
        &mut self,
        tensor: &Tensor,
        to: Elem,
        rounding: Option<Rounding>,
        at: FileRange,
    ) -> Eval<Tensor> {
        if tensor.elem == to {
            return Ok(tensor.clone());
        }
        match (tensor.elem, to) {
            // Whatever it was made of, it is now what it is converted to.
            (Elem::Unknown, _) | (_, Elem::Unknown) => {
                Ok(Tensor { elem: to, ir: None, number: None, ..tensor.clone() })
            }
            (Elem::Num(from), Elem::Num(to)) => self.cast_number(tensor, from, to, rounding, at),
            (Elem::Ptr(_), Elem::Num(DType::Int64 | DType::UInt64)) => {
                Ok(self.retype(Opcode::PtrToInt, tensor, to))
            }
            (Elem::Ptr(_), Elem::Num(DType::Int1)) => {
                let number = self.retype(Opcode::PtrToInt, tensor, Elem::Num(DType::Int64));
                self.is_nonzero(&number, at)
            }
            (Elem::Num(from), Elem::Ptr(_)) if from.is_int() => {
                if from.bits() != 64 {
                    let message = format!(
                        "cannot convert `{from}` to a pointer; only 64-bit integers are addresses"
                    );
                    return Err(self.error(Code::BadCast, at, message));
                }
                Ok(self.retype(Opcode::IntToPtr, tensor, to))
            }
            (Elem::Ptr(_), Elem::Ptr(_)) => Ok(self.pointer_cast(tensor, to)),
            (from, to) => {
                let message = format!("cannot convert `{from}` to `{to}`");
                Err(self.error(Code::BadCast, at, message))
            }
        }
    }

    /// Pointers that differ only in what the language knows of them are one type in the IR.
    pub(super) fn pointer_cast(&mut self, tensor: &Tensor, to: Elem) -> Tensor {
        if tensor.elem.lower() == to.lower() {
            return Tensor { elem: to, ..tensor.clone() };
        }
        self.retype(Opcode::Bitcast, tensor, to)
    }

    fn retype(&mut self, opcode: Opcode, tensor: &Tensor, to: Elem) -> Tensor {
        self.op(opcode, &[tensor], Attrs::None, to, tensor.shape.clone())
    }

    fn cast_number(
        &mut self,
        tensor: &Tensor,
        from: DType,
        to: DType,
        rounding: Option<Rounding>,
        at: FileRange,
    ) -> Eval<Tensor> {
        if let (Some(_), false) =
            (rounding, to.is_float() && from.is_float() && to.bits() < from.bits())
        {
            let message = format!(
                "rounding applies only to narrowing float conversions, not from `{from}` to `{to}`"
            );
            return Err(self.error(Code::BadCast, at, message));
        }
        if from == DType::Float8E4B15 {
            // Triton converts it to `fp16`, whatever is asked for, unless that is `fp32`.
            let to = if to == DType::Float32 { to } else { DType::Float16 };
            return Ok(self.retype(Opcode::FExt, tensor, Elem::Num(to)));
        }
        if from.is_fp8() && to.is_int() || from.is_int() && to.is_fp8() {
            let message = format!("cannot convert `{from}` to `{to}`; go through `fp32`");
            return Err(self.error(Code::BadCast, at, message));
        }
        if to == DType::Float8E4B15 && !matches!(from, DType::Float16 | DType::Float32) {
            let message =
                format!("`{to}` is converted to from `fp16` and `fp32` only, not `{from}`");
            return Err(self.error(Code::BadCast, at, message));
        }
        if from.is_float() && to.is_float() {
            return Ok(self.cast_float(tensor, from, to, rounding));
        }
        if to == DType::Int1 {
            return self.is_nonzero(tensor, at);
        }
        let elem = Elem::Num(to);
        if from.is_int() && to.is_int() {
            return Ok(self.cast_int(tensor, from, to));
        }
        if from.is_float() {
            // Half precision converts through single precision.
            let wide = match from {
                DType::Float16 | DType::BFloat16 => {
                    self.retype(Opcode::FExt, tensor, Elem::Num(DType::Float32))
                }
                _ => tensor.clone(),
            };
            let opcode = if to.is_signed() { Opcode::FToS } else { Opcode::FToU };
            return Ok(self.retype(opcode, &wide, elem));
        }
        let opcode = if from.is_signed() { Opcode::SToF } else { Opcode::UToF };
        Ok(self.retype(opcode, tensor, elem))
    }

    fn cast_int(&mut self, tensor: &Tensor, from: DType, to: DType) -> Tensor {
        let elem = Elem::Num(to);
        match from.bits().cmp(&to.bits()) {
            std::cmp::Ordering::Equal => Tensor { elem, ..tensor.clone() },
            std::cmp::Ordering::Greater => self.retype(Opcode::Trunc, tensor, elem),
            std::cmp::Ordering::Less => {
                let opcode = if from.is_signed() { Opcode::ExtS } else { Opcode::ExtU };
                self.retype(opcode, tensor, elem)
            }
        }
    }

    fn cast_float(
        &mut self,
        tensor: &Tensor,
        from: DType,
        to: DType,
        rounding: Option<Rounding>,
    ) -> Tensor {
        let elem = Elem::Num(to);
        let half = |dtype| matches!(dtype, DType::Float16 | DType::BFloat16);
        // Half precision meets everything but single precision and 8 bits through the former.
        if half(from) && to != DType::Float32 && !to.is_fp8() {
            let wide = self.retype(Opcode::FExt, tensor, Elem::Num(DType::Float32));
            return self.cast_float(&wide, DType::Float32, to, rounding);
        }
        if from.bits() < to.bits() {
            return self.retype(Opcode::FExt, tensor, elem);
        }
        if from.is_fp8() && to.is_fp8() {
            let wide = self.retype(Opcode::FExt, tensor, Elem::Num(DType::Float16));
            return self.cast_float(&wide, DType::Float16, to, rounding);
        }
        let mode = ir::Round { mode: rounding.unwrap_or(Rounding::Nearest) };
        self.op(Opcode::FTrunc, &[tensor], mode, elem, tensor.shape.clone())
    }

    /// Elementwise `!= 0`.
    pub(super) fn is_nonzero(&mut self, tensor: &Tensor, at: FileRange) -> Eval<Tensor> {
        let Elem::Num(dtype) = tensor.elem else {
            return Ok(Tensor { elem: Elem::BOOL, ir: None, ..tensor.clone() });
        };
        let zero = self.int_constant(0, dtype);
        let (left, right) = self.broadcast(tensor, &zero, at, (at, at))?;
        Ok(self.compare_numbers(CompareOp::Ne, &left, &right, dtype))
    }

    /// Reinterprets bits as another type of the same width.
    pub(super) fn bitcast(&mut self, tensor: &Tensor, to: Elem, at: FileRange) -> Eval<Tensor> {
        if tensor.elem == to {
            return Ok(tensor.clone());
        }
        match (tensor.elem, to) {
            (Elem::Unknown, _) | (_, Elem::Unknown) => {
                Ok(Tensor { elem: to, ir: None, ..tensor.clone() })
            }
            (Elem::Num(from), Elem::Num(into)) => {
                if from.bits() != into.bits() {
                    let message = format!(
                        "cannot reinterpret `{from}` ({} bits) as `{into}` ({} bits)",
                        from.bits(),
                        into.bits()
                    );
                    return Err(self.error(Code::BadCast, at, message));
                }
                if from.scalar() == into.scalar() {
                    return Ok(Tensor { elem: to, ..tensor.clone() });
                }
                Ok(self.retype(Opcode::Bitcast, tensor, to))
            }
            _ => self.cast(tensor, to, at),
        }
    }

    /// A tensor as the condition of an `if`, `while` or assertion: one bit.
    pub(super) fn truth_bit(&mut self, tensor: &Tensor, at: FileRange) -> Eval<Tensor> {
        if tensor.elem == Elem::Num(DType::Float8E4B15) {
            let message = "a condition cannot be `fp8e4b15`, which converts to floats only";
            return Err(self.error(Code::BadCondition, at, message));
        }
        self.cast(tensor, Elem::BOOL, at)
    }
}

/// The type that a compile-time number has as a tensor.
pub(super) fn literal_dtype(value: &Const) -> Option<DType> {
    match value {
        Const::Bool(_) => Some(DType::Int1),
        Const::Int(value) => promote::literal_int(*value),
        Const::Float(value) => Some(promote::literal_float(*value)),
        _ => None,
    }
}

/// True for symbols whose name alone says that they count something.
fn looks_like_integer(atom: &str) -> bool {
    const WORDS: &[&str] =
        &["BLOCK", "SIZE", "NUM_", "GROUP_", "TILE", "STAGES", "WARPS", "DIM", "LEN", "STRIDE"];
    if atom.starts_with(['?', '(']) {
        return false;
    }
    let upper = atom.to_ascii_uppercase();
    WORDS.iter().any(|word| upper.contains(word))
        || (atom.len() <= 2 && atom.chars().all(|c| c.is_ascii_uppercase()))
}

/// A pointer to `to` with the constness of `like`.
pub(super) fn pointer_like(like: Pointer, to: DType) -> Elem {
    Elem::Ptr(Pointer { to: Some(to), depth: 1, constant: like.constant })
}
