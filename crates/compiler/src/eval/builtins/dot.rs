//! Matrix products.

use super::super::call::Call;
use super::super::display::shape_text;
use super::super::dtype::{DType, Elem};
use super::super::join::{Relation, relate_shapes};
use super::super::symbolic::Sym;
use super::super::value::{Const, Shape, Tensor, Value};
use super::super::{Eval, Evaluator, Stop};
use super::statics::is_count;
use crate::builtins::options;
use crate::diagnostic::{Code, Diagnostic};
use crate::ir::{self, DotPrecision, Opcode, ScaledFormat};
use crate::source::FileRange;

impl Evaluator<'_> {
    pub(super) fn dot(&mut self, call: &Call) -> Eval<Value> {
        let (lhs, rhs) = (self.strict_tensor(call, 0)?, self.strict_tensor(call, 1)?);
        let precision = self.dot_precision(call)?;
        let (lhs, rhs) = self.check_dot_types(&lhs, &rhs, call)?;
        let shape = self.check_dot_shapes(&lhs, &rhs, call)?;
        let acc = match call.has("acc") {
            true => match call.value("acc") {
                Value::Unknown => Some(Tensor::new(Elem::Unknown, Shape::unknown())),
                value => Some(self.materialize(&value, call.place("acc"))?),
            },
            false => None,
        };
        let elem = self.dot_result(&lhs, acc.as_ref(), call)?;
        if let Some(acc) = &acc {
            self.check_accumulator(acc, elem, &shape, call)?;
        }
        let max_imprecise = self.max_imprecise(&lhs, &rhs, call)?;
        let acc = match acc {
            Some(acc) if !acc.elem.is_unknown() => acc,
            _ => self.zero_tile(elem, &shape),
        };
        let attrs = ir::Dot { precision, max_imprecise };
        Ok(Value::Tensor(self.dot_op(&lhs, &rhs, &acc, attrs, elem, shape)))
    }

    pub(super) fn zero_tile(&mut self, elem: Elem, shape: &Shape) -> Tensor {
        match elem {
            Elem::Num(dtype) => {
                let zero = self.int_constant(0, dtype);
                self.expand_to(&zero, shape)
            }
            _ => Tensor::new(elem, shape.clone()),
        }
    }

    /// Ranks above three are collapsed to one batch axis.
    fn dot_op(
        &mut self,
        lhs: &Tensor,
        rhs: &Tensor,
        acc: &Tensor,
        attrs: ir::Dot,
        elem: Elem,
        shape: Shape,
    ) -> Tensor {
        let rank = shape.rank().unwrap_or(2);
        if rank <= 3 {
            return self.op(Opcode::Dot, &[lhs, rhs, acc], attrs, elem, shape);
        }
        let collapsed: Vec<Tensor> = [lhs, rhs, acc]
            .into_iter()
            .map(|tensor| {
                let flat = collapse_batch(&tensor.shape);
                self.reshape_to(tensor, flat, false)
            })
            .collect();
        let flat = collapse_batch(&shape);
        let inputs = [&collapsed[0], &collapsed[1], &collapsed[2]];
        let product = self.op(Opcode::Dot, &inputs, attrs, elem, flat);
        self.reshape_to(&product, shape, false)
    }

    fn dot_precision(&mut self, call: &Call) -> Eval<DotPrecision> {
        // A `None` that a call writes is a constexpr, and not the absence of an argument.
        let given = (call.given("input_precision"), call.given("allow_tf32"));
        if let (Some(_), Some(_)) = given {
            let message = "only one of `input_precision` and `allow_tf32` can be given";
            return Err(self.error(Code::BadOption, call.place("allow_tf32"), message));
        }
        if let (_, Some(allow)) = given {
            if allow.is_none() {
                return Ok(DotPrecision::Ieee);
            }
            let allow = self.flag(call, "allow_tf32", true);
            return Ok(match allow {
                Ok(false) => DotPrecision::Ieee,
                Err(Stop::Reported) => return Err(Stop::Reported),
                _ => DotPrecision::Tf32,
            });
        }
        let lower = match call.given("input_precision") {
            Some(Value::Const(Const::Str(text))) => text.to_ascii_lowercase(),
            _ => {
                return Ok(self
                    .option(call, "input_precision", options::PRECISIONS)?
                    .unwrap_or(DotPrecision::Tf32));
            }
        };
        match options::PRECISIONS.iter().find(|choice| choice.text == lower) {
            Some(choice) => Ok(choice.value),
            None => {
                self.option(call, "input_precision", options::PRECISIONS)?;
                Err(Stop::Reported)
            }
        }
    }

    fn check_dot_types(
        &mut self,
        lhs: &Tensor,
        rhs: &Tensor,
        call: &Call,
    ) -> Eval<(Tensor, Tensor)> {
        let (Elem::Num(a), Elem::Num(b)) = (lhs.elem, rhs.elem) else {
            return Ok((lhs.clone(), rhs.clone()));
        };
        let places = (call.place_nth(0), call.place_nth(1));
        if a.is_fp8() && b.is_fp8() {
            return Ok((self.upcast_e4b15(lhs, call)?, self.upcast_e4b15(rhs, call)?));
        }
        let supported = |dtype: DType| {
            matches!(
                dtype,
                DType::Int8
                    | DType::UInt8
                    | DType::Float16
                    | DType::BFloat16
                    | DType::Float32
                    | DType::Float64
            )
        };
        for (dtype, place) in [(a, places.0), (b, places.1)] {
            let one_fp8 = dtype.is_fp8();
            if !supported(dtype) && !one_fp8 {
                let message = format!("`tl.dot` does not take `{dtype}`");
                let diagnostic = Diagnostic::new(Code::DotType, place, message)
                    .with_note("convert to `tl.float16`, `tl.bfloat16` or `tl.float32` first");
                return Err(self.emit_diagnostic(diagnostic));
            }
        }
        if a != b {
            let message =
                format!("both operands of `tl.dot` need one type, but these are `{a}` and `{b}`");
            let diagnostic = Diagnostic::new(Code::DotType, call.at, message)
                .with_related(places.0, format!("this is `{a}`"))
                .with_related(places.1, format!("this is `{b}`"))
                .with_note("convert one, as in `a.to(b.dtype)`");
            return Err(self.emit_diagnostic(diagnostic));
        }
        if a == DType::UInt8 {
            let message = "of 8-bit integers `tl.dot` takes only `int8`";
            return Err(self.error(Code::DotType, call.at, message));
        }
        Ok((lhs.clone(), rhs.clone()))
    }

    fn upcast_e4b15(&mut self, operand: &Tensor, call: &Call) -> Eval<Tensor> {
        if operand.elem == Elem::Num(DType::Float8E4B15) {
            return self.cast(operand, Elem::Num(DType::Float16), call.at);
        }
        Ok(operand.clone())
    }

    /// The shape of the product.
    fn check_dot_shapes(&mut self, lhs: &Tensor, rhs: &Tensor, call: &Call) -> Eval<Shape> {
        let places = (call.place_nth(0), call.place_nth(1));
        let (Some(a), Some(b)) = (lhs.shape.dims(), rhs.shape.dims()) else {
            return Ok(Shape::unknown());
        };
        let open = |t: &Tensor| t.is_open();
        if open(lhs) || open(rhs) {
            return Ok(Shape::unknown());
        }
        if a.len() != b.len() || a.len() < 2 {
            let message = format!(
                "`tl.dot` needs two tiles of one rank from 2, but these have shapes {} and {}",
                shape_text(&lhs.shape),
                shape_text(&rhs.shape)
            );
            return Err(self.dot_shape_error(message, lhs, rhs, call.at, places));
        }
        let rank = a.len();
        let (m, k, k2, n) = (&a[rank - 2], &a[rank - 1], &b[rank - 2], &b[rank - 1]);
        if k.certainly_differs(k2) {
            let message = format!(
                "`tl.dot` of shapes {} and {}: the inner extents {k} and {k2} differ",
                shape_text(&lhs.shape),
                shape_text(&rhs.shape)
            );
            return Err(self.dot_shape_error(message, lhs, rhs, call.at, places));
        }
        for axis in 0..rank - 2 {
            if a[axis].certainly_differs(&b[axis]) {
                let message = format!(
                    "`tl.dot` of shapes {} and {}: the batch extents differ",
                    shape_text(&lhs.shape),
                    shape_text(&rhs.shape)
                );
                return Err(self.dot_shape_error(message, lhs, rhs, call.at, places));
            }
        }
        self.check_dot_minimum(lhs, k, call)?;
        let mut shape: Vec<Sym> = a[..rank - 2].to_vec();
        shape.push(m.clone());
        shape.push(n.clone());
        Ok(Shape::of(shape))
    }

    fn dot_shape_error(
        &mut self,
        message: String,
        lhs: &Tensor,
        rhs: &Tensor,
        at: FileRange,
        places: (FileRange, FileRange),
    ) -> Stop {
        let diagnostic = Diagnostic::new(Code::DotShape, at, message)
            .with_related(places.0, format!("this has shape {}", shape_text(&lhs.shape)))
            .with_related(places.1, format!("this has shape {}", shape_text(&rhs.shape)));
        self.emit_diagnostic(diagnostic)
    }

    /// The matrix units need a minimal K.
    fn check_dot_minimum(&mut self, lhs: &Tensor, k: &Sym, call: &Call) -> Eval<()> {
        let (Some(k), Some(dtype)) = (k.int(), lhs.elem.num()) else { return Ok(()) };
        let minimum = match dtype {
            DType::Float32 if self.is_3_9() => 8,
            DType::Float64 if self.is_3_9() => 4,
            dtype if dtype.bits() == 8 => 32,
            _ => 16,
        };
        if k >= minimum {
            return Ok(());
        }
        let message = format!(
            "`tl.dot` on `{dtype}` needs an inner extent K of at least {minimum}, but it is {k}"
        );
        let diagnostic = Diagnostic::new(Code::DotShape, call.at, message)
            .with_note("for small products use `tl.sum(a[:, :, None] * b[None, :, :], axis=1)`");
        Err(self.emit_diagnostic(diagnostic))
    }

    /// The type of the product.
    fn dot_result(&mut self, lhs: &Tensor, acc: Option<&Tensor>, call: &Call) -> Eval<Elem> {
        if !self.is_3_9() && matches!(call.given("out_dtype"), Some(Value::Const(Const::None))) {
            let message = "Triton 3.6 needs a type to compute in";
            return Err(self.error(Code::BadDType, call.place("out_dtype"), message));
        }
        let inferred = self.is_3_9() && !call.has("out_dtype");
        let out = match (call.has("out_dtype"), acc) {
            (true, _) => self.dtype_arg(call, "out_dtype")?,
            (false, Some(acc)) if inferred => acc.elem,
            _ => Elem::Num(DType::Float32),
        };
        if out == Elem::Num(DType::BFloat16) && lhs.elem.num() != Some(DType::Int8) {
            let diagnostic = Diagnostic::new(
                Code::DotType,
                call.place("out_dtype"),
                "`tl.dot` does not accumulate in `bf16`",
            )
            .with_note("use `out_dtype=tl.float32` and convert with `.to(tl.bfloat16)`");
            return Err(self.emit_diagnostic(diagnostic));
        }
        Ok(match lhs.elem {
            Elem::Num(DType::Int8) => Elem::Num(DType::Int32),
            Elem::Num(DType::Float32 | DType::BFloat16) => Elem::Num(DType::Float32),
            Elem::Num(DType::Float64) => Elem::Num(DType::Float64),
            Elem::Num(_)
                if out.num().is_some_and(DType::is_int)
                    || (acc.is_none() && out == Elem::Num(DType::Float64)) =>
            {
                let message = format!("`tl.dot` of floats does not accumulate in `{out}`");
                return Err(self.error(Code::DotType, call.place("out_dtype"), message));
            }
            Elem::Num(_) => out,
            _ => match acc {
                Some(acc) if !acc.elem.is_unknown() => acc.elem,
                _ => Elem::Unknown,
            },
        })
    }

    /// The accumulator has the product's type and shape exactly.
    fn check_accumulator(
        &mut self,
        acc: &Tensor,
        elem: Elem,
        shape: &Shape,
        call: &Call,
    ) -> Eval<()> {
        let at = call.place("acc");
        if acc.is_open() {
            return Ok(());
        }
        self.check_accumulator_shape(acc, shape, at)?;
        // Triton 3.6 compares with `out_dtype`, which is fp32 unless given.
        let expected = if self.is_3_9() || call.has("out_dtype") {
            if call.has("out_dtype") { self.dtype_arg(call, "out_dtype")? } else { elem }
        } else {
            Elem::Num(DType::Float32)
        };
        let differs = |from: Elem| !acc.elem.is_unknown() && !from.is_unknown() && acc.elem != from;
        // What is `out_dtype` may still be no product of these operands: nothing can use the result.
        let is_asked_for = !differs(expected);
        let expected = if is_asked_for { elem } else { expected };
        if differs(expected) {
            let message =
                format!("the accumulator is `{}`, but the product is `{expected}`", acc.elem);
            let mut diagnostic = Diagnostic::new(Code::DotType, at, message);
            if let (Elem::Num(dtype), false) = (acc.elem, is_asked_for) {
                diagnostic =
                    diagnostic.with_note(format!("pass `out_dtype=tl.{}`", dtype.member()));
            }
            return Err(self.emit_diagnostic(diagnostic));
        }
        Ok(())
    }

    fn check_accumulator_shape(&mut self, acc: &Tensor, shape: &Shape, at: FileRange) -> Eval<()> {
        if relate_shapes(&acc.shape, shape) != Relation::Different {
            return Ok(());
        }
        let message = format!(
            "the accumulator has shape {}, but the product has {}",
            shape_text(&acc.shape),
            shape_text(shape)
        );
        Err(self.error(Code::DotShape, at, message))
    }

    fn max_imprecise(&mut self, lhs: &Tensor, rhs: &Tensor, call: &Call) -> Eval<u32> {
        let fp8 = |t: &Tensor| t.elem.num().is_some_and(DType::is_fp8);
        let both = fp8(lhs) && fp8(rhs);
        match call.given("max_num_imprecise_acc") {
            Some(Value::Const(Const::Int(limit))) => {
                let k = lhs.shape.dims().and_then(|dims| dims.last()?.int());
                if both && k.is_some_and(|k| *limit > k) {
                    let message = format!(
                        "`max_num_imprecise_acc` ({limit}) must not exceed the inner extent K ({})",
                        k.unwrap_or(0)
                    );
                    let at = call.place("max_num_imprecise_acc");
                    return Err(self.error(Code::BadOption, at, message));
                }
                Ok(if both { u32::try_from(*limit).unwrap_or(0) } else { 0 })
            }
            Some(given) if !is_count(given) || is_known_tensor(given) => {
                let given = super::super::report::a(given);
                let message = format!("`max_num_imprecise_acc` is an integer, not {given}");
                Err(self.error(Code::BadOption, call.place("max_num_imprecise_acc"), message))
            }
            _ if both && self.capability == 90 => Ok(1 << 30),
            _ => Ok(0),
        }
    }

    pub(super) fn dot_scaled(&mut self, call: &Call) -> Eval<Value> {
        let lhs = self.materialize(&call.value("lhs"), call.place("lhs"))?;
        let rhs = self.materialize(&call.value("rhs"), call.place("rhs"))?;
        let lhs_format = self.scaled_format(call, "lhs_format")?;
        let rhs_format = self.scaled_format(call, "rhs_format")?;
        let lhs_k_pack = self.flag(call, "lhs_k_pack", true)?;
        let rhs_k_pack = self.flag(call, "rhs_k_pack", true)?;
        let lhs = self.scaled_operand(&lhs, lhs_format, call.place("lhs"))?;
        let rhs = self.scaled_operand(&rhs, rhs_format, call.place("rhs"))?;
        self.check_packing(call, "lhs_k_pack", lhs_k_pack, lhs_format)?;
        self.check_packing(call, "rhs_k_pack", rhs_k_pack, rhs_format)?;
        let lhs_scale = self.optional_tensor(call, "lhs_scale")?;
        let rhs_scale = self.optional_tensor(call, "rhs_scale")?;
        let (Some(a), Some(b)) = (lhs.shape.dims(), rhs.shape.dims()) else {
            return Ok(Value::Tensor(Tensor::new(Elem::Num(DType::Float32), Shape::unknown())));
        };
        if a.len() != b.len() || !(2..=3).contains(&a.len()) {
            let message = "`tl.dot_scaled` needs two tiles of rank 2 or 3";
            return Err(self.error(Code::DotShape, call.at, message));
        }
        let rank = a.len();
        let double =
            |extent: &Sym, yes: bool| if yes { extent.mul(&Sym::Int(2)) } else { extent.clone() };
        let packed = |format| format == ScaledFormat::E2M1;
        let k_lhs = double(&a[rank - 1], packed(lhs_format) && lhs_k_pack);
        let k_rhs = double(&b[rank - 2], packed(rhs_format) && rhs_k_pack);
        let m = double(&a[rank - 2], packed(lhs_format) && !lhs_k_pack);
        let n = double(&b[rank - 1], packed(rhs_format) && !rhs_k_pack);
        if k_lhs.certainly_differs(&k_rhs) {
            let message =
                format!("the inner extents {k_lhs} and {k_rhs} of `tl.dot_scaled` differ");
            return Err(self.error(Code::DotShape, call.at, message));
        }
        self.check_scale(lhs_scale.as_ref(), &m, &k_lhs, "lhs_scale", call)?;
        self.check_scale(rhs_scale.as_ref(), &n, &k_rhs, "rhs_scale", call)?;
        let mut shape: Vec<Sym> = a[..rank - 2].to_vec();
        shape.push(m);
        shape.push(n);
        let shape = Shape::of(shape);
        let elem = self.dtype_arg_or(call, "out_dtype", Elem::Num(DType::Float32))?;
        if elem.num().is_some_and(|dtype| dtype != DType::Float32) {
            let message = format!("`tl.dot_scaled` gives `fp32`, not `{elem}`");
            return Err(self.error(Code::DotType, call.place("out_dtype"), message));
        }
        let acc = match self.optional_tensor(call, "acc")? {
            Some(acc) => {
                self.check_scaled_accumulator(&acc, elem, &shape, call)?;
                acc
            }
            None => self.zero_tile(elem, &shape),
        };
        let attrs = ir::DotScaled { lhs: lhs_format, rhs: rhs_format, lhs_k_pack, rhs_k_pack };
        let operands = [Some(&lhs), lhs_scale.as_ref(), Some(&rhs), rhs_scale.as_ref(), Some(&acc)];
        Ok(Value::Tensor(self.op_optional(Opcode::DotScaled, &operands, attrs, elem, shape)))
    }

    /// The accumulator has the result's shape and type exactly.
    fn check_scaled_accumulator(
        &mut self,
        acc: &Tensor,
        elem: Elem,
        shape: &Shape,
        call: &Call,
    ) -> Eval<()> {
        let at = call.place("acc");
        self.check_accumulator_shape(acc, shape, at)?;
        if acc.elem.num().is_some_and(|dtype| Elem::Num(dtype) != elem) {
            let message = format!("the accumulator is `{}`, but the product is `{elem}`", acc.elem);
            return Err(self.error(Code::DotType, at, message));
        }
        Ok(())
    }

    /// Only `e2m1`, two numbers a byte, may be packed along another axis than the inner one.
    fn check_packing(
        &mut self,
        call: &Call,
        name: &str,
        k_pack: bool,
        format: ScaledFormat,
    ) -> Eval<()> {
        if k_pack || format == ScaledFormat::E2M1 {
            return Ok(());
        }
        let message = format!("`{name}=False` needs the format 'e2m1', not '{}'", format.name());
        Err(self.error(Code::BadOption, call.place(name), message))
    }

    fn dtype_arg_or(&mut self, call: &Call, name: &str, default: Elem) -> Eval<Elem> {
        if call.has(name) { self.dtype_arg(call, name) } else { Ok(default) }
    }

    fn optional_tensor(&mut self, call: &Call, name: &str) -> Eval<Option<Tensor>> {
        if !call.has(name) {
            return Ok(None);
        }
        match call.value(name) {
            Value::Unknown if !self.emitting() => Ok(None),
            Value::Tensor(tensor) if tensor.elem.is_unknown() => Ok(None),
            value => self.materialize(&value, call.place(name)).map(Some),
        }
    }

    fn check_scale(
        &mut self,
        scale: Option<&Tensor>,
        rows: &Sym,
        k: &Sym,
        name: &str,
        call: &Call,
    ) -> Eval<()> {
        let Some(scale) = scale else { return Ok(()) };
        if let Some(dtype) = scale.elem.num().filter(|dtype| dtype.bits() != 8) {
            let message = format!("`{name}` has one byte per scale, but this is `{dtype}`");
            return Err(self.error(Code::BadOperand, call.place(name), message));
        }
        let group = if scale.elem == Elem::Num(DType::Float8E4NV) { 16 } else { 32 };
        let Some(groups) = k.floor_div(&Sym::Int(group)) else { return Ok(()) };
        let expected = Shape::of([rows.clone(), groups]);
        if relate_shapes(&scale.shape, &expected) == Relation::Different
            && scale.shape.rank() == Some(2)
        {
            let message = format!(
                "`{name}` must have shape {}, but it has {}",
                shape_text(&expected),
                shape_text(&scale.shape)
            );
            return Err(self.error(Code::DotShape, call.place(name), message));
        }
        Ok(())
    }

    fn scaled_format(&mut self, call: &Call, name: &str) -> Eval<ScaledFormat> {
        let format = self.option(call, name, options::FORMATS)?;
        format.ok_or(Stop::Unknown)
    }

    /// Operands may be given as unsigned integers of the format's width.
    fn scaled_operand(
        &mut self,
        operand: &Tensor,
        format: ScaledFormat,
        at: FileRange,
    ) -> Eval<Tensor> {
        let dtype = match format {
            ScaledFormat::E2M1 => DType::UInt8,
            ScaledFormat::E4M3 => DType::Float8E4NV,
            ScaledFormat::E5M2 => DType::Float8E5,
            ScaledFormat::Bf16 => DType::BFloat16,
            ScaledFormat::Fp16 => DType::Float16,
        };
        if operand.elem.is_unknown() || operand.elem == Elem::Num(dtype) {
            return Ok(operand.clone());
        }
        let unsigned = DType::int_of(dtype.bits(), false);
        if format == ScaledFormat::E2M1 || operand.elem.num() != unsigned {
            let message = format!(
                "format '{}' needs `{dtype}`, but this is `{}`",
                format.name(),
                operand.elem
            );
            return Err(self.error(Code::DotType, at, message));
        }
        self.bitcast(operand, Elem::Num(dtype), at)
    }
}

fn collapse_batch(shape: &Shape) -> Shape {
    let dims = shape.dims().unwrap_or_default();
    let split = dims.len().saturating_sub(2);
    let batch = dims[..split].iter().fold(Sym::Int(1), |product, extent| product.mul(extent));
    Shape::of(std::iter::once(batch).chain(dims[split..].iter().cloned()))
}

fn is_known_tensor(value: &Value) -> bool {
    matches!(value, Value::Tensor(tensor) if !tensor.is_open())
}
