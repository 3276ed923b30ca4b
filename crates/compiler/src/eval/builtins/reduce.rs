//! Reductions and scans.

use super::super::call::Call;
use super::super::display::shape_text;
use super::super::dtype::{DType, Elem, is_stored_alike};
use super::super::emit::ir_type;
use super::super::join::{Relation, relate_shapes};
use super::super::value::{Const, Shape, Tensor, Value};
use super::super::{Eval, Evaluator, Stop};
use crate::builtins::Rule;
use crate::diagnostic::{Code, Diagnostic};
use crate::hir::{BinaryOp, CompareOp};
use crate::ir::{self, Attrs, Opcode};
use crate::source::FileRange;

/// How two elements combine.
pub(super) enum Combine<'c> {
    /// By a jit function.
    Function(&'c Value),
    /// By an operator.
    Operator(BinaryOp),
    /// Minimum or maximum.
    Extremum { max: bool },
    /// Minimum or maximum of the first input, with the second as its position; the smaller
    /// position wins a tie if asked for.
    Indexed { max: bool, tie_left: bool },
}

impl Evaluator<'_> {
    /// The scalars that combining two sets of scalars gives.
    fn combine(
        &mut self,
        combine: &Combine<'_>,
        args: &[Tensor],
        at: FileRange,
    ) -> Eval<Vec<Tensor>> {
        let places = (at, at);
        match combine {
            Combine::Function(function) => {
                let (values, _) = self.call_combine(function, args.to_vec(), at);
                values
                    .into_iter()
                    .map(|value| match value {
                        Value::Tensor(tensor) => Ok(tensor),
                        _ => Err(Stop::Unknown),
                    })
                    .collect()
            }
            Combine::Operator(op) => {
                let (a, b) = (Value::Tensor(args[0].clone()), Value::Tensor(args[1].clone()));
                Ok(vec![self.tensor_binary(*op, &a, &b, at, places)?])
            }
            Combine::Extremum { max } => {
                Ok(vec![self.extremum_op(&args[0], &args[1], *max, false)])
            }
            Combine::Indexed { max, tie_left } => self.combine_indexed(*max, *tie_left, args, at),
        }
    }

    /// A function of Triton's library that combines elements, called with all of them.
    pub(super) fn combine_elements(&mut self, call: &Call, combine: &Combine<'_>) -> Eval<Value> {
        let count = if matches!(combine, Combine::Indexed { .. }) { 4 } else { 2 };
        let mut args = Vec::with_capacity(count);
        for index in 0..count {
            args.push(self.strict_tensor(call, index)?);
        }
        let results = self.combine(combine, &args, call.at)?;
        Ok(packed(results, count > 2))
    }

    fn combine_indexed(
        &mut self,
        max: bool,
        tie_left: bool,
        args: &[Tensor],
        at: FileRange,
    ) -> Eval<Vec<Tensor>> {
        let [value, index, other, other_index] = args else { return Err(Stop::Unknown) };
        let mut alike = |x: &Tensor, y: &Tensor| {
            let (x, y) = (Value::Tensor(x.clone()), Value::Tensor(y.clone()));
            self.promote_pair(&x, &y, true, at, (at, at))
        };
        let (value, other) = &alike(value, other)?;
        let (index, other_index) = &alike(index, other_index)?;
        let dtype = value.elem.num().ok_or(Stop::Unknown)?;
        let op = if max { CompareOp::Gt } else { CompareOp::Lt };
        let mut first = self.compare_numbers(op, value, other, dtype);
        if tie_left {
            let equal = self.compare_numbers(CompareOp::Eq, value, other, dtype);
            let before = self.scalar_less(index, other_index);
            let tie = self.logical(true, &equal, &before, at)?;
            first = self.logical(false, &first, &tie, at)?;
        }
        let mut select = |x: &Tensor, y: &Tensor| {
            self.op(Opcode::Select, &[&first, x, y], Attrs::None, x.elem, x.shape.clone())
        };
        Ok(vec![select(value, other), select(index, other_index)])
    }

    /// Emits a reduction or scan whose region combines two elements of each input.
    fn combining(
        &mut self,
        opcode: Opcode,
        inputs: &[Tensor],
        attrs: Attrs,
        shape: &Shape,
        combine: &Combine<'_>,
        at: FileRange,
    ) -> Eval<Vec<Tensor>> {
        let scalars: Vec<Tensor> =
            inputs.iter().map(|input| Tensor::new(input.elem, Shape::scalar())).collect();
        let both: Vec<Tensor> = scalars.iter().chain(&scalars).cloned().collect();
        let types = both.iter().filter_map(|tensor| ir_type(tensor.elem, &tensor.shape));
        let types: Vec<ir::Type> = types.collect();
        let open = self.begin_region(types);
        let handles = open.as_ref().map(|open| open.args.to_vec()).unwrap_or_default();
        let args = Self::with_handles(&both, &handles);
        let outer_loops = std::mem::take(&mut self.frame_mut().loops);
        let combined = self.combine(combine, &args, at);
        self.frame_mut().loops = outer_loops;
        self.end_region(&open);
        let results: Vec<Tensor> = inputs
            .iter()
            .map(|input| Tensor { shape: shape.clone(), ir: None, ..input.clone() })
            .collect();
        let combined = match combined {
            Ok(combined) => combined,
            Err(Stop::Unknown) if !self.emitting() => return Ok(results),
            Err(stop) => return Err(stop),
        };
        self.check_combined(&scalars, &combined, at)?;
        let Some(open) = open else { return Ok(results) };
        let yielded: Option<Vec<ir::Value>> = combined.iter().map(|tensor| tensor.ir).collect();
        let operands: Option<Vec<ir::Value>> = inputs.iter().map(|tensor| tensor.ir).collect();
        let (Some(yielded), Some(operands)) = (yielded, operands) else { return Ok(results) };
        self.terminate(open.region, Opcode::Yield, yielded);
        let types: Option<Vec<ir::Type>> =
            results.iter().map(|tensor| ir_type(tensor.elem, &tensor.shape)).collect();
        let (Some(types), Some(emitter)) = (types, self.emitter.as_mut()) else {
            return Ok(results);
        };
        let operands = operands.into_iter().map(Some);
        let values = emitter.inst(opcode, operands, attrs, types, [open.region]);
        Ok(Self::with_handles(&results, &values))
    }

    /// A combining function gives as many scalars as there are inputs, of their types.
    fn check_combined(
        &mut self,
        inputs: &[Tensor],
        combined: &[Tensor],
        at: FileRange,
    ) -> Eval<()> {
        if inputs.len() != combined.len() {
            let message = format!(
                "the combining function returns {} values, but {} are combined",
                combined.len(),
                inputs.len()
            );
            return Err(self.error(Code::CombineFunction, at, message));
        }
        for (input, result) in inputs.iter().zip(combined) {
            if result.is_block() {
                let shape = shape_text(&result.shape);
                let message = format!("the combining function returns scalars, not shape {shape}");
                return Err(self.error(Code::CombineFunction, at, message));
            }
            if !is_stored_alike(input.elem, result.elem) {
                let message = format!(
                    "the combining function takes `{}` but returns `{}`; both must agree",
                    input.elem, result.elem
                );
                return Err(self.error(Code::CombineFunction, at, message));
            }
        }
        Ok(())
    }

    /// Reduces tiles along an axis, or along all.
    pub(super) fn reduce_along(
        &mut self,
        inputs: &[Tensor],
        axis: Option<usize>,
        keep: bool,
        combine: &Combine<'_>,
        at: FileRange,
    ) -> Eval<Vec<Tensor>> {
        let first = &inputs[0];
        if first.is_scalar() && !first.elem.is_unknown() {
            let diagnostic = Diagnostic::new(Code::AxisRange, at, "a scalar cannot be reduced")
                .with_related(at, format!("this is a scalar `{}`", first.elem));
            return Err(self.emit_diagnostic(diagnostic));
        }
        let Some(dims) = first.shape.dims() else {
            let shape = if axis.is_none() && !keep { Shape::scalar() } else { Shape::unknown() };
            return Ok(inputs
                .iter()
                .map(|input| Tensor { shape: shape.clone(), ir: None, ..input.clone() })
                .collect());
        };
        let rank = dims.len();
        let (inputs, axis, shape) = match axis {
            Some(axis) => {
                let kept = dims.iter().enumerate().filter(|(d, _)| *d != axis);
                let shape = Shape::of(kept.map(|(_, extent)| extent.clone()));
                (inputs.to_vec(), axis, shape)
            }
            None => {
                let flat = Shape::of(first.shape.numel());
                let inputs =
                    inputs.iter().map(|input| self.reshape_to(input, flat.clone(), true)).collect();
                (inputs, 0, Shape::scalar())
            }
        };
        let full_axis = axis;
        let flattened = shape.is_scalar() && rank > 1;
        let attrs = Attrs::Axis(ir::Axis { axis: axis as u32 });
        let mut results = self.combining(Opcode::Reduce, &inputs, attrs, &shape, combine, at)?;
        if keep {
            for result in &mut results {
                *result = if flattened {
                    let mut kept = result.clone();
                    for position in 0..rank {
                        kept = self.insert_axis(&kept, position);
                    }
                    kept
                } else {
                    self.insert_axis(result, full_axis)
                };
            }
        }
        Ok(results)
    }

    pub(super) fn sum_along(
        &mut self,
        input: &Tensor,
        axis: Option<usize>,
        keep: bool,
        at: FileRange,
    ) -> Eval<Tensor> {
        let combine = Combine::Operator(BinaryOp::Add);
        let results = self.reduce_along(std::slice::from_ref(input), axis, keep, &combine, at)?;
        results.into_iter().next().ok_or(Stop::Unknown)
    }

    pub(super) fn max_along(
        &mut self,
        input: &Tensor,
        axis: Option<usize>,
        keep: bool,
        at: FileRange,
    ) -> Eval<Tensor> {
        let input = self.extremum_input(input, at)?;
        let combine = Combine::Extremum { max: true };
        let results = self.reduce_along(&[input], axis, keep, &combine, at)?;
        results.into_iter().next().ok_or(Stop::Unknown)
    }

    /// Minimum and maximum are reduced in at least 32 bits, by Triton's library.
    fn extremum_input(&mut self, input: &Tensor, at: FileRange) -> Eval<Tensor> {
        let input = self.widen_bf16(input, at)?;
        match input.elem {
            Elem::Num(dtype) if dtype.bits() < 32 && dtype.is_float() => {
                self.cast(&input, Elem::Num(DType::Float32), at)
            }
            Elem::Num(dtype) if dtype.bits() < 32 => self.cast(&input, Elem::I32, at),
            _ => Ok(input),
        }
    }

    /// The type in which sums of integers are computed.
    fn sum_dtype(elem: Elem) -> Elem {
        match elem {
            Elem::Num(dtype) if dtype.is_int() && dtype.bits() < 32 => {
                Elem::Num(if dtype.is_signed() { DType::Int32 } else { DType::UInt32 })
            }
            other => other,
        }
    }

    pub(super) fn sum(&mut self, call: &Call) -> Eval<Value> {
        let input = self.strict_tensor(call, 0)?;
        let axis = self.axis(call, "axis", input.shape.rank())?;
        let keep = self.flag(call, "keep_dims", false)?;
        let elem = match call.has("dtype") {
            true => self.dtype_arg(call, "dtype")?,
            false => Self::sum_dtype(input.elem),
        };
        let input = self.cast(&input, elem, call.at)?;
        Ok(Value::Tensor(self.sum_along(&input, axis, keep, call.at)?))
    }

    pub(super) fn reduce_extremum(&mut self, call: &Call, max: bool) -> Eval<Value> {
        let input = self.strict_tensor(call, 0)?;
        if input.elem.is_ptr() {
            return Err(self.error(
                Code::BadOperand,
                call.place_nth(0),
                "pointers have no extremum",
            ));
        }
        let axis = self.axis(call, "axis", input.shape.rank())?;
        let keep = self.flag(call, "keep_dims", false)?;
        if self.flag_among(call, "return_indices", false, is_condition)? {
            let tie_left = self.flag(call, "return_indices_tie_break_left", true)?;
            let parts = self.indexed_extremum(&input, axis, keep, max, tie_left, call)?;
            return Ok(Value::tuple(parts.into_iter().map(Value::Tensor).collect()));
        }
        let input = self.extremum_input(&input, call.at)?;
        let combine = Combine::Extremum { max };
        let results = self.reduce_along(&[input], axis, keep, &combine, call.at)?;
        results.into_iter().next().map(Value::Tensor).ok_or(Stop::Unknown)
    }

    pub(super) fn arg_extremum(&mut self, call: &Call, max: bool) -> Eval<Value> {
        let input = self.strict_tensor(call, 0)?;
        let axis = self.axis(call, "axis", input.shape.rank())?;
        let keep = self.flag(call, "keep_dims", false)?;
        let tie_left = match call.given("tie_break_left") {
            Some(Value::Tensor(tensor)) if tensor.is_scalar() => {
                self.flag(call, "tie_break_left", true)?
            }
            _ => self.flag_among(call, "tie_break_left", true, is_condition)?,
        };
        let parts = self.indexed_extremum(&input, axis, keep, max, tie_left, call)?;
        parts.into_iter().nth(1).map(Value::Tensor).ok_or(Stop::Unknown)
    }

    fn indexed_extremum(
        &mut self,
        input: &Tensor,
        axis: Option<usize>,
        keep: bool,
        max: bool,
        tie_left: bool,
        call: &Call,
    ) -> Eval<Vec<Tensor>> {
        let at = call.at;
        let input = self.widen_bf16(input, at)?;
        let Some(_) = input.shape.rank() else {
            let value = Tensor { shape: Shape::unknown(), ir: None, ..input.clone() };
            let index = Tensor { elem: Elem::I32, ..value.clone() };
            return Ok(vec![value, index]);
        };
        let axis = match axis {
            Some(axis) => axis,
            None => {
                let message =
                    format!("positions need an axis: the shape is {}", shape_text(&input.shape));
                return Err(self.error(Code::AxisRange, at, message));
            }
        };
        let indices = self.axis_indices(&input.shape, axis);
        let combine = Combine::Indexed { max, tie_left };
        self.reduce_along(&[input, indices], Some(axis), keep, &combine, at)
    }

    pub(super) fn reduce_bits(&mut self, call: &Call) -> Eval<Value> {
        let input = self.strict_tensor(call, 0)?;
        if input.elem.num().is_some_and(DType::is_float) {
            let message =
                format!("`{}` needs integers, not `{}`", call.builtin.display_name(), input.elem);
            return Err(self.error(Code::BadOperand, call.at, message));
        }
        let axis = self.axis(call, "axis", input.shape.rank())?;
        let keep = self.flag(call, "keep_dims", false)?;
        let op = if call.builtin.rule == Rule::XorSum { BinaryOp::Xor } else { BinaryOp::Or };
        let combine = Combine::Operator(op);
        let results = self.reduce_along(&[input], axis, keep, &combine, call.at)?;
        results.into_iter().next().map(Value::Tensor).ok_or(Stop::Unknown)
    }

    /// Whether any bit of a tile is set; a scalar is its own answer.
    pub(super) fn any(&mut self, bits: &Tensor, at: FileRange) -> Eval<Tensor> {
        if bits.is_scalar() {
            return Ok(bits.clone());
        }
        let combine = Combine::Operator(BinaryOp::Or);
        let results = self.reduce_along(std::slice::from_ref(bits), None, false, &combine, at)?;
        results.into_iter().next().ok_or(Stop::Unknown)
    }

    /// The inputs of a reduction or scan: one tile, or a tuple of tiles of one shape.
    fn combined_inputs(&mut self, call: &Call) -> Eval<(Vec<Tensor>, bool)> {
        let at = call.place_nth(0);
        let (values, several) = match call.nth(0) {
            Value::Tuple(tuple) => (tuple.items.clone(), true),
            other => (vec![other], false),
        };
        let mut tensors = Vec::with_capacity(values.len());
        for value in &values {
            tensors.push(self.materialize(value, at)?);
        }
        let Some(first) = tensors.first() else { return Err(Stop::Unknown) };
        let clash = tensors
            .iter()
            .find(|tensor| relate_shapes(&first.shape, &tensor.shape) == Relation::Different);
        if let Some(clash) = clash {
            let message = format!(
                "tiles that are combined together need one shape, but these have {} and {}",
                shape_text(&first.shape),
                shape_text(&clash.shape)
            );
            return Err(self.error(Code::BroadcastMismatch, at, message));
        }
        Ok((tensors, several))
    }

    pub(super) fn reduce_builtin(&mut self, call: &Call) -> Eval<Value> {
        let (inputs, several) = self.combined_inputs(call)?;
        let axis = self.axis(call, "axis", inputs[0].shape.rank())?;
        let keep = self.flag(call, "keep_dims", false)?;
        let function = call.value("combine_fn");
        let combine = Combine::Function(&function);
        let results = self.reduce_along(&inputs, axis, keep, &combine, call.at)?;
        Ok(packed(results, several))
    }

    pub(super) fn associative_scan(&mut self, call: &Call) -> Eval<Value> {
        let (inputs, several) = self.combined_inputs(call)?;
        let function = call.value("combine_fn");
        let combine = Combine::Function(&function);
        let results = self.scan_along(&inputs, &combine, call)?;
        Ok(packed(results, several))
    }

    fn scan_along(
        &mut self,
        inputs: &[Tensor],
        combine: &Combine<'_>,
        call: &Call,
    ) -> Eval<Vec<Tensor>> {
        let shape = inputs[0].shape.clone();
        if inputs[0].is_scalar() && !inputs[0].elem.is_unknown() {
            return Err(self.error(Code::AxisRange, call.at, "a scalar cannot be scanned"));
        }
        let axis = match self.axis(call, "axis", shape.rank()) {
            Ok(Some(axis)) => axis,
            Ok(None) => {
                let message = format!("`{}` needs an axis", call.builtin.display_name());
                return Err(self.error(Code::AxisRange, call.at, message));
            }
            Err(Stop::Unknown) if !self.emitting() => 0,
            Err(stop) => return Err(stop),
        };
        let reverse = self.builder_flag(call, "reverse", false)?;
        let attrs = Attrs::Scan(ir::Scan { axis: axis as u32, reverse });
        self.combining(Opcode::Scan, inputs, attrs, &shape, combine, call.at)
    }

    pub(super) fn cumulative(&mut self, call: &Call) -> Eval<Value> {
        let product = call.builtin.rule == Rule::CumProd;
        let input = self.strict_tensor(call, 0)?;
        let input = self.widen_bf16(&input, call.at)?;
        let elem = if call.has("dtype") {
            self.dtype_arg(call, "dtype")?
        } else if product && !self.is_3_9() {
            input.elem
        } else {
            Self::sum_dtype(input.elem)
        };
        let input = self.cast(&input, elem, call.at)?;
        let op = if product { BinaryOp::Mul } else { BinaryOp::Add };
        let inputs = [input];
        let axis_default = call.given("axis").is_none();
        let results = if axis_default {
            self.scan_axis(&inputs, 0, op, call)?
        } else {
            self.scan_along(&inputs, &Combine::Operator(op), call)?
        };
        results.into_iter().next().map(Value::Tensor).ok_or(Stop::Unknown)
    }

    fn scan_axis(
        &mut self,
        inputs: &[Tensor],
        axis: u32,
        op: BinaryOp,
        call: &Call,
    ) -> Eval<Vec<Tensor>> {
        let shape = inputs[0].shape.clone();
        if inputs[0].is_scalar() && !inputs[0].elem.is_unknown() {
            return Err(self.error(Code::AxisRange, call.at, "a scalar cannot be scanned"));
        }
        let reverse = self.builder_flag(call, "reverse", false)?;
        let attrs = Attrs::Scan(ir::Scan { axis, reverse });
        self.combining(Opcode::Scan, inputs, attrs, &shape, &Combine::Operator(op), call.at)
    }

    pub(super) fn histogram(&mut self, call: &Call) -> Eval<Value> {
        let input = self.strict_tensor(call, 0)?;
        if input.shape.rank().is_some_and(|rank| rank != 1) {
            let message = format!(
                "`tl.histogram` takes one axis, but the shape is {}",
                shape_text(&input.shape)
            );
            return Err(self.error(Code::HistogramInput, call.at, message));
        }
        if input.elem.is_ptr() || input.elem.num().is_some_and(DType::is_float) {
            let message = format!("`tl.histogram` counts integers, not `{}`", input.elem);
            return Err(self.error(Code::HistogramInput, call.at, message));
        }
        if self.is_3_9() && input.elem.num().is_some_and(|dtype| dtype.bits() != 32) {
            let message = format!("`tl.histogram` counts 32-bit integers, not `{}`", input.elem);
            return Err(self.error(Code::HistogramInput, call.at, message));
        }
        let bins = match call.value("num_bins") {
            Value::Tuple(_) => {
                let message = "the number of bins is one number";
                return Err(self.error(Code::ShapeExtent, call.place("num_bins"), message));
            }
            bins => self.shape_arg(&bins, call.place("num_bins"))?,
        };
        self.check_extents(&bins, call.place("num_bins"))?;
        let mask = match call.has("mask") {
            false => None,
            true => {
                let mask = self.materialize(&call.value("mask"), call.place("mask"))?;
                if mask.elem.is_ptr() || mask.elem.num().is_some_and(|d| d != DType::Int1) {
                    let message = format!("a mask is made of bits, but this is `{}`", mask.elem);
                    return Err(self.error(Code::MaskType, call.place("mask"), message));
                }
                Some(self.expand_to(&mask, &input.shape))
            }
        };
        let count = bins.dims().and_then(|dims| dims.first()?.int()).unwrap_or(0);
        let attrs = ir::Bins { bins: u32::try_from(count).unwrap_or(0) };
        let operands = [Some(&input), mask.as_ref()];
        let result = self.op_optional(Opcode::Histogram, &operands, attrs, Elem::I32, bins);
        Ok(Value::Tensor(result))
    }

    pub(super) fn map_elementwise(&mut self, call: &Call) -> Eval<Value> {
        let function = call.nth(0);
        let at = call.at;
        let mut tensors = Vec::new();
        for (value, place) in &call.rest {
            if let Value::Const(constant) = value
                && !constant.is_symbol()
            {
                let message = format!("`tl.map_elementwise` maps tensors, not {constant}");
                return Err(self.error(Code::NotATensor, *place, message));
            }
            tensors.push(self.materialize(value, *place)?);
        }
        if tensors.is_empty() {
            let message = "`tl.map_elementwise` needs at least one tile";
            return Err(self.error(Code::MissingArgument, at, message));
        }
        let places: Vec<FileRange> = call.rest.iter().map(|(_, place)| *place).collect();
        let tensors = self.broadcast_all(&tensors, at, &places)?;
        if tensors[0].is_scalar() && !tensors[0].elem.is_unknown() {
            let message = "`tl.map_elementwise` maps tiles, not scalars";
            return Err(self.error(Code::NotATensor, places[0], message));
        }
        let pack = match call.given("pack") {
            None | Some(Value::Const(Const::Bool(true))) => 1,
            Some(Value::Const(Const::Int(pack))) => u32::try_from(*pack).unwrap_or(0),
            Some(_) => return Err(Stop::Unknown),
        };
        let shape = tensors[0].shape.clone();
        let scalars: Vec<Tensor> = tensors
            .iter()
            .flat_map(|tensor| {
                std::iter::repeat_n(Tensor::new(tensor.elem, Shape::scalar()), pack as usize)
            })
            .collect();
        let types = scalars.iter().filter_map(|scalar| ir_type(scalar.elem, &scalar.shape));
        let types: Vec<ir::Type> = types.collect();
        let open = self.begin_region(types);
        let handles = open.as_ref().map(|open| open.args.to_vec()).unwrap_or_default();
        let args = Self::with_handles(&scalars, &handles);
        let (results, several) = self.call_combine(&function, args, at);
        self.end_region(&open);
        let scalars: Option<Vec<Tensor>> =
            results.iter().map(|value| value.as_tensor().cloned()).collect();
        let scalars = scalars.ok_or(Stop::Unknown)?;
        if scalars.iter().any(Tensor::is_block) {
            let message = "the function that is applied returns a tile, not a scalar";
            return Err(self.error(Code::CombineFunction, at, message));
        }
        let groups = scalars.chunks(pack.max(1) as usize);
        let differ = |group: &[Tensor]| {
            group.iter().any(|scalar| {
                let known = !scalar.elem.is_unknown() && !group[0].elem.is_unknown();
                known && scalar.elem != group[0].elem
            })
        };
        if groups.into_iter().any(differ) {
            let message = "the results for the packed elements have different types";
            return Err(self.error(Code::CombineFunction, at, message));
        }
        let outputs: Vec<Tensor> = scalars
            .iter()
            .step_by(pack.max(1) as usize)
            .map(|scalar| Tensor::new(scalar.elem, shape.clone()))
            .collect();
        let emitted = self.emit_map(&tensors, open, &scalars, &outputs, pack);
        Ok(packed(emitted, several))
    }

    fn emit_map(
        &mut self,
        inputs: &[Tensor],
        open: Option<super::super::emit::OpenRegion>,
        scalars: &[Tensor],
        outputs: &[Tensor],
        pack: u32,
    ) -> Vec<Tensor> {
        let Some(open) = open else { return outputs.to_vec() };
        let yielded: Option<Vec<ir::Value>> = scalars.iter().map(|tensor| tensor.ir).collect();
        let operands: Option<Vec<ir::Value>> = inputs.iter().map(|tensor| tensor.ir).collect();
        let types: Option<Vec<ir::Type>> =
            outputs.iter().map(|tensor| ir_type(tensor.elem, &tensor.shape)).collect();
        let (Some(yielded), Some(operands), Some(types)) = (yielded, operands, types) else {
            return outputs.to_vec();
        };
        self.terminate(open.region, Opcode::Yield, yielded);
        let Some(emitter) = self.emitter.as_mut() else { return outputs.to_vec() };
        let operands = operands.into_iter().map(Some);
        let attrs = ir::Pack { pack };
        let values = emitter.inst(Opcode::MapElements, operands, attrs, types, [open.region]);
        Self::with_handles(outputs, &values)
    }
}

/// One result alone, or several as a tuple.
fn packed(mut results: Vec<Tensor>, several: bool) -> Value {
    if several || results.len() != 1 {
        return Value::tuple(results.into_iter().map(Value::Tensor).collect());
    }
    Value::Tensor(results.remove(0))
}

/// Whether an `if` of kernels takes the constant.
fn is_condition(value: &Const) -> bool {
    matches!(value, Const::None | Const::Bool(_) | Const::Int(_))
}
