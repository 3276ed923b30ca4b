//! Programs and creation of tiles.

use super::super::attribute::extents_of;
use super::super::call::Call;
use super::super::dtype::{DType, Elem};
use super::super::symbolic::Sym;
use super::super::value::{Const, Shape, Tensor, Value};
use super::super::{Eval, Evaluator, Stop};
use crate::builtins::{Rule, options};
use crate::diagnostic::{Code, Diagnostic};
use crate::ir::{self, Attrs, Opcode};
use crate::source::FileRange;

impl Evaluator<'_> {
    pub(super) fn program(&mut self, call: &Call) -> Eval<Value> {
        let at = call.place("axis");
        let opcode = match call.builtin.rule {
            Rule::ProgramId => Opcode::ProgramId,
            _ => Opcode::NumPrograms,
        };
        let axis = match call.value("axis") {
            Value::Const(Const::Int(axis @ 0..=2)) => axis as u32,
            Value::Const(Const::Int(axis)) => {
                let message = format!("the launch grid has the axes 0, 1 and 2, not {axis}");
                return Err(self.error(Code::AxisRange, at, message));
            }
            Value::Const(Const::Bool(axis)) => u32::from(axis),
            Value::Const(Const::Symbol(_)) | Value::Unknown => 0,
            other => return Err(self.not_constexpr(Code::NotConstexpr, "the axis", &other, at)),
        };
        let attrs = ir::Axis { axis };
        Ok(Value::Tensor(self.op(opcode, &[], attrs, Elem::I32, Shape::scalar())))
    }

    pub(super) fn arange(&mut self, call: &Call) -> Eval<Value> {
        let start = self.arange_bound(call, "start")?;
        let end = self.arange_bound(call, "end")?;
        let length = end.sub(&start);
        for bound in [&start, &end] {
            if let Some(value) = bound.int()
                && !(0..1i128 << 32).contains(&value)
            {
                let message =
                    format!("the bounds of `tl.arange` are from 0 to 2^32 - 1, not {value}");
                return Err(self.error(Code::ArangeBound, call.at, message));
            }
        }
        if let Some(length) = length.int() {
            self.check_range_length(length, call)?;
        }
        let shape = Shape::of([length]);
        let range = match (start.int(), end.int()) {
            (Some(start), Some(end)) => ir::Range { start: start as i64, end: end as i64 },
            _ => ir::Range { start: 0, end: 0 },
        };
        Ok(Value::Tensor(self.op(Opcode::Arange, &[], range, Elem::I32, shape)))
    }

    fn check_range_length(&mut self, length: i128, call: &Call) -> Eval<()> {
        if length <= 0 {
            let message = "the end of `tl.arange` must be greater than its start";
            return Err(self.error(Code::ArangeBound, call.at, message));
        }
        if length & (length - 1) != 0 {
            let next = (length as u128).next_power_of_two();
            let diagnostic = Diagnostic::new(
                Code::PowerOfTwo,
                call.at,
                format!("the length of `tl.arange` must be a power of two, but it is {length}"),
            )
            .with_note(format!("use {next} and mask off what is too much"));
            return Err(self.emit_diagnostic(diagnostic));
        }
        self.check_extents(&Shape::of([Sym::Int(length)]), call.at)
    }

    fn arange_bound(&mut self, call: &Call, name: &str) -> Eval<Sym> {
        let at = call.place(name);
        match call.value(name) {
            Value::Const(Const::Int(value)) => Ok(Sym::Int(value)),
            Value::Const(Const::Bool(value)) => Ok(Sym::Int(i128::from(value))),
            Value::Const(Const::Symbol(sym)) => {
                self.integer_symbols.extend(sym.atoms());
                Ok(sym)
            }
            other => {
                Err(self.not_constexpr(Code::ArangeBound, "a bound of `tl.arange`", &other, at))
            }
        }
    }

    /// Reads extents that a shape argument gives: compile-time integers.
    pub(super) fn shape_arg(&mut self, value: &Value, at: FileRange) -> Eval<Shape> {
        if let Some(extents) = extents_of(value) {
            for extent in &extents {
                self.integer_symbols.extend(extent.atoms());
            }
            return Ok(Shape::of(extents));
        }
        let bad = match value {
            Value::Tuple(tuple) => tuple
                .items
                .iter()
                .find(|item| !matches!(item, Value::Const(Const::Int(_) | Const::Symbol(_))))
                .cloned(),
            other => Some(other.clone()),
        };
        match bad {
            None | Some(Value::Unknown) => Err(Stop::Unknown),
            // An argument may be a tuple of compile-time values.
            Some(Value::Tensor(tensor))
                if tensor.is_open() && !matches!(value, Value::Tuple(_)) =>
            {
                Err(Stop::Unknown)
            }
            Some(Value::Const(constant)) => {
                let message = format!("an extent must be an integer, not {constant}");
                Err(self.error(Code::ShapeExtent, at, message))
            }
            Some(other) => {
                Err(self.not_constexpr(Code::ShapeExtent, "an extent of a shape", &other, at))
            }
        }
    }

    /// The shape of a new tile: a tuple or list, even of one extent.
    fn shape_list(&mut self, call: &Call) -> Eval<Shape> {
        let value = call.value("shape");
        if let Value::Const(Const::Int(_) | Const::Bool(_)) = &value {
            let message = "the shape is a tuple, also where it has one extent";
            let diagnostic = Diagnostic::new(Code::ShapeExtent, call.place("shape"), message)
                .with_note("write `(n,)`");
            return Err(self.emit_diagnostic(diagnostic));
        }
        self.shape_arg(&value, call.place("shape"))
    }

    /// Reads a type argument.
    pub(super) fn dtype_arg(&mut self, call: &Call, name: &str) -> Eval<Elem> {
        let at = call.place(name);
        match call.value(name) {
            Value::Const(Const::DType(elem)) => Ok(elem),
            Value::Const(Const::BlockType(elem, _)) => Ok(elem),
            Value::Const(Const::Symbol(_)) | Value::Unknown => Ok(Elem::Unknown),
            Value::Tensor(tensor) if tensor.elem.is_unknown() => Ok(Elem::Unknown),
            Value::Const(Const::TorchDType(dtype)) => {
                let message = format!(
                    "`{name}` must be a type such as `tl.float32`, but this is PyTorch's `{}`",
                    Const::TorchDType(dtype)
                );
                let diagnostic = Diagnostic::new(Code::BadDType, at, message)
                    .with_note(format!("the language calls it `tl.{}`", dtype.member()));
                Err(self.emit_diagnostic(diagnostic))
            }
            other => {
                let message = format!(
                    "`{name}` must be a type such as `tl.float32`, but this is {}",
                    super::super::report::a(&other)
                );
                Err(self.error(Code::BadDType, at, message))
            }
        }
    }

    pub(super) fn full(&mut self, call: &Call) -> Eval<Value> {
        let shape = self.shape_list(call);
        let elem = self.dtype_arg(call, "dtype")?;
        let value = call.value("value");
        let shape = self.or_unknown_shape(shape)?;
        self.filled(&value, shape, elem, call, call.place("value"))
    }

    pub(super) fn zeros(&mut self, call: &Call) -> Eval<Value> {
        let shape = self.shape_list(call);
        let elem = self.dtype_arg(call, "dtype")?;
        let shape = self.or_unknown_shape(shape)?;
        self.filled(&Value::int(0), shape, elem, call, call.at)
    }

    pub(super) fn zeros_like(&mut self, call: &Call) -> Eval<Value> {
        let input = self.strict_tensor(call, 0)?;
        let elem = input.elem;
        self.filled(&Value::int(0), input.shape.clone(), elem, call, call.at)
    }

    fn or_unknown_shape(&mut self, shape: Eval<Shape>) -> Eval<Shape> {
        match shape {
            Ok(shape) => Ok(shape),
            Err(Stop::Unknown) if !self.emitting() => Ok(Shape::unknown()),
            Err(stop) => Err(stop),
        }
    }

    fn filled(
        &mut self,
        value: &Value,
        shape: Shape,
        elem: Elem,
        call: &Call,
        at: FileRange,
    ) -> Eval<Value> {
        self.check_new_extents(&shape, call.place("shape"))?;
        if let Elem::Num(dtype) = elem {
            self.check_supported(dtype, call.place("dtype"))?;
        }
        let scalar = match value {
            Value::Const(Const::Symbol(_)) | Value::Unknown => Tensor::new(elem, Shape::scalar()),
            Value::Const(constant) => match elem {
                Elem::Num(dtype) => {
                    self.check_small_constant(constant, dtype, at)?;
                    self.fill_constant(constant, dtype, at)?
                }
                Elem::Ptr(_) => {
                    let message = format!("a number cannot fill a tile of `{elem}`");
                    let diagnostic = Diagnostic::new(Code::BadDType, call.place("dtype"), message)
                        .with_note("fill a tile of `tl.int64`, and convert it");
                    return Err(self.emit_diagnostic(diagnostic));
                }
                _ => Tensor::new(elem, Shape::scalar()),
            },
            Value::Tensor(tensor) => {
                if tensor.is_block() {
                    let message = "the value of `tl.full` must be a scalar";
                    return Err(self.error(Code::ShapeExtent, at, message));
                }
                let tensor = tensor.clone();
                self.cast(&tensor, elem, at)?
            }
            other => {
                let message = format!(
                    "the value must be a number, but this is {}",
                    super::super::report::a(other)
                );
                return Err(self.error(Code::NotATensor, at, message));
            }
        };
        Ok(Value::Tensor(self.expand_to(&scalar, &shape)))
    }

    /// A number of type `dtype`; a fraction cannot fill integers.
    /// Triton keeps the number in 64 bits of the type's sign before it narrows it; for bits it
    /// asks whether the number is zero.
    fn fill_constant(&mut self, constant: &Const, dtype: DType, at: FileRange) -> Eval<Tensor> {
        let truth = constant.truth().map(Const::Bool);
        let constant = truth.as_ref().filter(|_| dtype == DType::Int1).unwrap_or(constant);
        match constant {
            Const::Int(value) if dtype.is_int() && !fits_64_bits(*value, dtype) => {
                let message = format!("{value} cannot fill a tile of `{dtype}`");
                Err(self.error(Code::IntegerRange, at, message))
            }
            Const::Int(_) | Const::Bool(_) => Ok(self.scalar_constant(constant, dtype)),
            Const::Float(value) => {
                if dtype.is_int() && *value != 0.0 {
                    let message = format!("{constant} cannot fill a tile of `{dtype}`");
                    return Err(self.error(Code::BadOperand, at, message));
                }
                Ok(self.scalar_constant(constant, dtype))
            }
            other => {
                let message = format!("the value must be a number, not {other}");
                Err(self.error(Code::NotATensor, at, message))
            }
        }
    }

    pub(super) fn cast_builtin(&mut self, call: &Call) -> Eval<Value> {
        let elem = self.dtype_arg(call, "dtype")?;
        let input = call.nth(0);
        let at = call.at;
        if let Elem::Num(dtype) = elem {
            self.check_supported(dtype, call.place("dtype"))?;
        }
        let bitcast = self.flag(call, "bitcast", false)?;
        let tensor = match &input {
            Value::Const(Const::Symbol(_)) => Tensor::new(Elem::Unknown, Shape::scalar()),
            other => self.materialize(other, call.place_nth(0))?,
        };
        // What stays as it is is no question of rounding.
        let rounding = match bitcast || tensor.elem == elem {
            true => None,
            false => self.rounding(call)?,
        };
        let result = if bitcast {
            self.bitcast(&tensor, elem, at)?
        } else {
            self.cast_rounding(&tensor, elem, rounding, at)?
        };
        Ok(Value::Tensor(result))
    }

    fn rounding(&mut self, call: &Call) -> Eval<Option<ir::Rounding>> {
        match call.value("fp_downcast_rounding") {
            Value::Const(Const::None) => Ok(None),
            Value::Const(Const::Str(name)) => {
                let known = options::ROUNDINGS.iter().find(|choice| choice.text == &*name);
                known.map(|choice| Some(choice.value)).ok_or_else(|| {
                    let message = format!("the rounding is 'rtne' or 'rtz', not '{name}'");
                    self.error(Code::BadOption, call.place("fp_downcast_rounding"), message)
                })
            }
            Value::Const(constant) if !constant.is_symbol() => {
                let message = format!("the rounding is 'rtne' or 'rtz', not {constant}");
                Err(self.error(Code::BadOption, call.place("fp_downcast_rounding"), message))
            }
            _ => Err(Stop::Unknown),
        }
    }

    pub(super) fn where_builtin(&mut self, call: &Call) -> Eval<Value> {
        let condition = self.tensor_arg(call, 0)?;
        let condition_at = call.place_nth(0);
        let places = (call.place_nth(1), call.place_nth(2));
        if let (Value::BlockPtr(x), Value::BlockPtr(y)) = (call.nth(1), call.nth(2)) {
            return self.where_block_ptr(&condition, &x, &y, call);
        }
        let (x, y) = self.promote_pair(&call.nth(1), &call.nth(2), true, call.at, places)?;
        if condition.elem.num().is_some_and(|dtype| dtype != DType::Int1) && self.speculative == 0 {
            let text = condition.elem.to_string();
            let diagnostic = Diagnostic::new(
                Code::WhereCondition,
                condition_at,
                format!("the condition of `tl.where` should be `int1`, not `{text}`"),
            )
            .with_note("compare with zero: `x != 0`");
            self.emit_diagnostic(diagnostic);
        }
        let condition = self.cast(&condition, Elem::BOOL, condition_at)?;
        let places = (condition_at, call.place_nth(1));
        let (condition, x, y) = if condition.is_scalar() {
            (condition, x, y)
        } else {
            let shape = self.broadcast_shapes(&condition.shape, &x.shape, call.at, places)?;
            (
                self.expand_to(&condition, &shape),
                self.expand_to(&x, &shape),
                self.expand_to(&y, &shape),
            )
        };
        let (elem, shape) = (x.elem.or(y.elem), x.shape.clone());
        let result = self.op(Opcode::Select, &[&condition, &x, &y], Attrs::None, elem, shape);
        Ok(Value::Tensor(result))
    }
}

/// True when a 64-bit integer with the sign of `dtype` holds the value.
fn fits_64_bits(value: i128, dtype: DType) -> bool {
    match dtype.is_signed() {
        true => i64::try_from(value).is_ok(),
        false => u64::try_from(value).is_ok(),
    }
}
