//! Shape manipulation.

use smallvec::SmallVec;

use super::super::attribute::extents_of;
use super::super::call::Call;
use super::super::display::shape_text;
use super::super::dtype::Elem;
use super::super::join::{Relation, relate_shapes};
use super::super::symbolic::Sym;
use super::super::value::{Const, Shape, Tensor, Value};
use super::super::{Eval, Evaluator, Stop};
use crate::builtins::Rule;
use crate::diagnostic::{Code, Diagnostic};
use crate::ir::{self, Attrs, Opcode};
use crate::source::FileRange;

impl Evaluator<'_> {
    pub(super) fn broadcast_builtin(&mut self, call: &Call) -> Eval<Value> {
        let (a, b) = (self.strict_tensor(call, 0)?, self.strict_tensor(call, 1)?);
        let places = (call.place_nth(0), call.place_nth(1));
        let (a, b) = self.broadcast(&a, &b, call.at, places)?;
        Ok(Value::tuple(vec![Value::Tensor(a), Value::Tensor(b)]))
    }

    /// The shape of `f(x, 4, 8)` or `f(x, (4, 8))`.
    fn variadic_shape(&mut self, call: &Call) -> Eval<Shape> {
        let given: Value = match (call.given("shape"), call.rest.as_slice()) {
            (Some(shape), _) => shape.clone(),
            (None, [(single, _)]) => single.clone(),
            (None, items) => Value::tuple(items.iter().map(|(value, _)| value.clone()).collect()),
        };
        let at = call.rest.first().map_or(call.at, |(_, at)| *at);
        self.shape_arg(&given, at)
    }

    pub(super) fn broadcast_to(&mut self, call: &Call) -> Eval<Value> {
        let input = self.strict_tensor(call, 0)?;
        let shape = self.variadic_shape(call)?;
        self.check_extents(&shape, call.at)?;
        if input.is_scalar() {
            return Ok(Value::Tensor(self.expand_to(&input, &shape)));
        }
        let (Some(from), Some(to)) = (input.shape.dims(), shape.dims()) else {
            return Ok(Value::Tensor(Tensor { shape, ir: None, ..input }));
        };
        let fits = from.len() == to.len()
            && from.iter().zip(to).all(|(from, to)| {
                from == to || from.int().is_none() || from.int() == Some(1) || to.int().is_none()
            });
        if !fits {
            let message = format!(
                "a tile of shape {} cannot be broadcast to {}",
                shape_text(&input.shape),
                shape_text(&shape)
            );
            let mut diagnostic = Diagnostic::new(Code::BroadcastMismatch, call.at, message);
            if from.len() != to.len() {
                diagnostic = diagnostic.with_note(
                    "`tl.broadcast_to` keeps the rank; insert axes first, as in `x[None, :]`",
                );
            }
            return Err(self.emit_diagnostic(diagnostic));
        }
        Ok(Value::Tensor(self.expand_to(&input, &shape)))
    }

    pub(super) fn expand_dims(&mut self, call: &Call) -> Eval<Value> {
        let tensor = self.tensor_arg(call, 0)?;
        self.insert_axes(tensor, "axis", call)
    }

    /// `tl.unsqueeze`, a reshape of a tile.
    pub(super) fn unsqueeze(&mut self, call: &Call) -> Eval<Value> {
        let tensor = self.strict_tensor(call, 0)?;
        if tensor.is_scalar() && !tensor.is_open() {
            return Err(self.scalar_of_no_shape(call));
        }
        if let Value::Tuple(_) = call.value("dim") {
            let message = "`dim` is one axis";
            return Err(self.error(Code::AxisRange, call.place("dim"), message));
        }
        self.insert_axes(tensor, "dim", call)
    }

    fn insert_axes(&mut self, mut tensor: Tensor, name: &str, call: &Call) -> Eval<Value> {
        let at = call.place(name);
        let axes = match extents_of(&call.value(name)) {
            Some(axes) => axes,
            None => match call.value(name) {
                Value::Unknown => return Err(Stop::Unknown),
                other => {
                    return Err(self.not_constexpr(Code::NotConstexpr, "the axis", &other, at));
                }
            },
        };
        let Some(rank) = tensor.shape.rank() else {
            return Ok(Value::Tensor(Tensor { shape: Shape::unknown(), ir: None, ..tensor }));
        };
        let result_rank = rank + axes.len();
        let mut places = Vec::new();
        for axis in axes {
            let Some(axis) = axis.int() else { return Err(Stop::Unknown) };
            let axis = self.checked_axis(axis, result_rank, at)?;
            if places.contains(&axis) {
                let message = format!("axis {axis} is inserted twice");
                return Err(self.error(Code::AxisRange, at, message));
            }
            places.push(axis);
        }
        places.sort_unstable();
        for axis in places {
            tensor = self.insert_axis(&tensor, axis);
        }
        Ok(Value::Tensor(tensor))
    }

    pub(super) fn squeeze(&mut self, call: &Call) -> Eval<Value> {
        let tensor = self.strict_tensor(call, 0)?;
        let Some(axis) = self.axis(call, "dim", tensor.shape.rank())? else {
            return Err(Stop::Unknown);
        };
        let Some(dims) = tensor.shape.dims() else { return Err(Stop::Unknown) };
        if dims[axis].int().is_some_and(|extent| extent != 1) {
            let message = format!("axis {axis} of {} has not extent 1", shape_text(&tensor.shape));
            return Err(self.error(Code::ReshapeCount, call.at, message));
        }
        let kept = dims.iter().enumerate().filter(|(at, _)| *at != axis).map(|(_, d)| d.clone());
        let shape = Shape::of(kept);
        Ok(Value::Tensor(self.reshape_to(&tensor, shape, false)))
    }

    pub(super) fn reshape_builtin(&mut self, call: &Call) -> Eval<Value> {
        let input = self.strict_tensor(call, 0)?;
        let shape = self.variadic_shape(call)?;
        if input.is_scalar() && !input.is_open() && shape.rank().is_some_and(|rank| rank > 0) {
            return Err(self.scalar_of_no_shape(call));
        }
        let reorder = match call.builtin.rule {
            Rule::View => true,
            _ => self.builder_flag(call, "can_reorder", false)?,
        };
        self.check_extents(&shape, call.at)?;
        self.check_count(&input, &shape, call.at)?;
        Ok(Value::Tensor(self.reshape_to(&input, shape, reorder)))
    }

    /// The error that a scalar is given a shape where tiles are.
    fn scalar_of_no_shape(&mut self, call: &Call) -> Stop {
        let name = call.builtin.display_name();
        let message = format!("`{name}` takes tiles, but this is a scalar");
        let diagnostic = Diagnostic::new(Code::NotATensor, call.place_nth(0), message)
            .with_note("`tl.full(shape, value, dtype)` makes a tile of a scalar");
        self.emit_diagnostic(diagnostic)
    }

    fn check_count(&mut self, input: &Tensor, shape: &Shape, at: FileRange) -> Eval<()> {
        if let (Some(from), Some(to)) = (input.shape.numel(), shape.numel())
            && from.certainly_differs(&to)
        {
            let message = format!(
                "a tile of shape {} ({from} elements) cannot be reshaped to {} ({to} elements)",
                shape_text(&input.shape),
                shape_text(shape)
            );
            return Err(self.error(Code::ReshapeCount, at, message));
        }
        Ok(())
    }

    pub(super) fn ravel(&mut self, call: &Call) -> Eval<Value> {
        let input = self.strict_tensor(call, 0)?;
        if input.is_scalar() && !input.is_open() {
            return Err(self.scalar_of_no_shape(call));
        }
        let reorder = self.builder_flag(call, "can_reorder", false)?;
        let shape = match input.shape.numel() {
            Some(numel) => Shape::of([numel]),
            None => {
                let unknown = self.fresh_symbol();
                Shape::of([unknown])
            }
        };
        Ok(Value::Tensor(self.reshape_to(&input, shape, reorder)))
    }

    pub(super) fn item_builtin(&mut self, call: &Call) -> Eval<Value> {
        let input = self.strict_tensor(call, 0)?;
        if let Some(numel) = input.shape.numel().and_then(|numel| numel.int())
            && numel != 1
        {
            let message = format!(
                "`item` needs one element, but the tile has shape {}",
                shape_text(&input.shape)
            );
            return Err(self.error(Code::ReshapeCount, call.at, message));
        }
        Ok(Value::Tensor(self.reshape_to(&input, Shape::scalar(), false)))
    }

    /// The axes of `f(x, 1, 0)` or `f(x, (1, 0))`.
    fn variadic_axes(&mut self, call: &Call) -> Eval<Vec<i128>> {
        let items: Vec<Value> = match call.rest.as_slice() {
            [(Value::Tuple(tuple), _)] => tuple.items.clone(),
            items => items.iter().map(|(value, _)| value.clone()).collect(),
        };
        let mut axes = Vec::with_capacity(items.len());
        for item in &items {
            match item {
                Value::Const(Const::Int(axis)) => axes.push(*axis),
                Value::Const(Const::Bool(axis)) => axes.push(i128::from(*axis)),
                Value::Unknown | Value::Const(Const::Symbol(_)) => return Err(Stop::Unknown),
                other => {
                    let at = call.rest.first().map_or(call.at, |(_, at)| *at);
                    return Err(self.not_constexpr(Code::NotConstexpr, "an axis", other, at));
                }
            }
        }
        Ok(axes)
    }

    pub(super) fn trans(&mut self, call: &Call) -> Eval<Value> {
        let input = self.strict_tensor(call, 0)?;
        let axes = self.variadic_axes(call)?;
        if !axes.is_empty() {
            return Ok(Value::Tensor(self.permute(&input, &axes, call.at)?));
        }
        let Some(rank) = input.shape.rank() else {
            return Ok(Value::Tensor(Tensor { shape: Shape::unknown(), ir: None, ..input }));
        };
        if rank < 2 {
            let message = format!(
                "`tl.trans` needs at least two axes, but the shape is {}",
                shape_text(&input.shape)
            );
            return Err(self.error(Code::PermuteAxes, call.at, message));
        }
        let mut axes: Vec<i128> = (0..rank as i128).collect();
        axes.swap(rank - 1, rank - 2);
        Ok(Value::Tensor(self.permute(&input, &axes, call.at)?))
    }

    pub(super) fn permute_builtin(&mut self, call: &Call) -> Eval<Value> {
        let input = self.strict_tensor(call, 0)?;
        let axes = self.variadic_axes(call)?;
        Ok(Value::Tensor(self.permute(&input, &axes, call.at)?))
    }

    /// Axis `i` of the result is axis `axes[i]` of the input.
    pub(in super::super) fn permute(
        &mut self,
        input: &Tensor,
        axes: &[i128],
        at: FileRange,
    ) -> Eval<Tensor> {
        let Some(dims) = input.shape.dims() else {
            return Ok(Tensor { shape: Shape::unknown(), ir: None, ..input.clone() });
        };
        let mut sorted = axes.to_vec();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq(0..dims.len() as i128) {
            let message = format!(
                "the axes {axes:?} do not name each axis of shape {} once",
                shape_text(&input.shape)
            );
            return Err(self.error(Code::PermuteAxes, at, message));
        }
        let shape = Shape::of(axes.iter().map(|&axis| dims[axis as usize].clone()));
        let order = ir::Order { order: axes.iter().map(|&axis| axis as u32).collect() };
        Ok(self.op(Opcode::Permute, &[input], order, input.elem, shape))
    }

    pub(super) fn join_builtin(&mut self, call: &Call) -> Eval<Value> {
        let (a, b) = (self.strict_tensor(call, 0)?, self.strict_tensor(call, 1)?);
        let places = (call.place_nth(0), call.place_nth(1));
        Ok(Value::Tensor(self.join_tensors(&a, &b, call.at, places)?))
    }

    fn join_tensors(
        &mut self,
        a: &Tensor,
        b: &Tensor,
        at: FileRange,
        places: (FileRange, FileRange),
    ) -> Eval<Tensor> {
        if a.elem != b.elem && !a.elem.is_unknown() && !b.elem.is_unknown() {
            let message =
                format!("joined tiles need one type, but these are `{}` and `{}`", a.elem, b.elem);
            return Err(self.error(Code::BadOperand, at, message));
        }
        let (a, b) = self.broadcast(a, b, at, places)?;
        let Some(dims) = a.shape.dims() else {
            return Ok(Tensor { shape: Shape::unknown(), ir: None, ..a });
        };
        let mut dims: SmallVec<[Sym; 3]> = SmallVec::from(dims);
        dims.push(Sym::Int(2));
        let shape = Shape::of(dims);
        self.check_numel(&shape, at)?;
        Ok(self.op(Opcode::Join, &[&a, &b], Attrs::None, a.elem.or(b.elem), shape))
    }

    pub(super) fn split(&mut self, call: &Call) -> Eval<Value> {
        let input = self.strict_tensor(call, 0)?;
        let Some(dims) = input.shape.dims() else {
            let part = Value::Tensor(Tensor { shape: Shape::unknown(), ir: None, ..input });
            return Ok(Value::tuple(vec![part.clone(), part]));
        };
        let last = dims.last().cloned().unwrap_or(Sym::Int(0));
        if last.int().is_some_and(|extent| extent != 2) {
            let message = format!(
                "`tl.split` needs a last axis of extent 2, but the shape is {}",
                shape_text(&input.shape)
            );
            return Err(self.error(Code::ReshapeCount, call.at, message));
        }
        let shape = Shape::of(dims[..dims.len() - 1].iter().cloned());
        let (first, second) = self.split_halves(&input, shape);
        Ok(Value::tuple(vec![Value::Tensor(first), Value::Tensor(second)]))
    }

    fn split_halves(&mut self, input: &Tensor, shape: Shape) -> (Tensor, Tensor) {
        let half = Tensor { shape: shape.clone(), ir: None, ..input.clone() };
        let (Some(value), Some(ty)) = (input.ir, super::super::emit::ir_type(input.elem, &shape))
        else {
            return (half.clone(), half);
        };
        let Some(emitter) = self.emitter.as_mut() else { return (half.clone(), half) };
        let results = emitter.inst(Opcode::Split, [Some(value)], Attrs::None, [ty.clone(), ty], []);
        let part = |at: usize| Tensor { ir: results.get(at).copied(), ..half.clone() };
        (part(0), part(1))
    }

    pub(super) fn interleave(&mut self, call: &Call) -> Eval<Value> {
        let (a, b) = (self.strict_tensor(call, 0)?, self.strict_tensor(call, 1)?);
        let places = (call.place_nth(0), call.place_nth(1));
        let joined = self.join_tensors(&a, &b, call.at, places)?;
        let Some(dims) = joined.shape.dims() else { return Ok(Value::Tensor(joined)) };
        if dims.len() == 1 {
            return Ok(Value::Tensor(joined));
        }
        let rank = dims.len();
        let mut merged: Vec<Sym> = dims[..rank - 2].to_vec();
        merged.push(dims[rank - 2].mul(&Sym::Int(2)));
        Ok(Value::Tensor(self.reshape_to(&joined, Shape::of(merged), false)))
    }

    pub(super) fn cat(&mut self, call: &Call) -> Eval<Value> {
        let (a, b) = (self.strict_tensor(call, 0)?, self.strict_tensor(call, 1)?);
        let reorder = self.flag(call, "can_reorder", false)?;
        if !self.is_3_9() && !reorder {
            let diagnostic = Diagnostic::new(
                Code::BadOption,
                call.at,
                "in Triton 3.6 `tl.cat` may reorder elements, and needs `can_reorder=True` to say so",
            )
            .with_note("`tl.join` with `permute` and `reshape` keeps the order");
            return Err(self.emit_diagnostic(diagnostic));
        }
        if a.elem != b.elem && !a.elem.is_unknown() && !b.elem.is_unknown() {
            let message = format!(
                "concatenated tiles need one type, but these are `{}` and `{}`",
                a.elem, b.elem
            );
            return Err(self.error(Code::BadOperand, call.at, message));
        }
        let (Some(left), Some(right)) = (a.shape.dims(), b.shape.dims()) else {
            return Ok(Value::Tensor(Tensor { shape: Shape::unknown(), ir: None, ..a }));
        };
        if left.len() != 1 || right.len() != 1 {
            let scalar = left.is_empty() || right.is_empty();
            if self.is_3_9() && !reorder && !scalar {
                return self.cat_axes(&a, &b, call);
            }
            let message = "`tl.cat` takes one-dimensional tiles";
            return Err(self.error(Code::ReshapeCount, call.at, message));
        }
        let shape = Shape::of([left[0].add(&right[0])]);
        self.check_numel(&shape, call.at)?;
        if relate_shapes(&a.shape, &b.shape) == Relation::Different {
            return Err(self.unlowered("`tl.cat` of tiles of different lengths", call.at));
        }
        let elem = a.elem.or(b.elem);
        Ok(Value::Tensor(self.op(Opcode::Cat, &[&a, &b], Attrs::None, elem, shape)))
    }

    /// Concatenation along any axis: join, move the new axis in front of `dim`, merge.
    fn cat_axes(&mut self, a: &Tensor, b: &Tensor, call: &Call) -> Eval<Value> {
        let rank = a.shape.rank().unwrap_or(0);
        let axis = self.axis(call, "dim", Some(rank))?.unwrap_or(0);
        let places = (call.place_nth(0), call.place_nth(1));
        let joined = self.join_tensors(a, b, call.at, places)?;
        let mut order: Vec<i128> = (0..rank as i128).collect();
        order.insert(axis, rank as i128);
        let moved = self.permute(&joined, &order, call.at)?;
        let Some(dims) = a.shape.dims() else { return Err(Stop::Unknown) };
        let mut merged = dims.to_vec();
        merged[axis] = merged[axis].mul(&Sym::Int(2));
        Ok(Value::Tensor(self.reshape_to(&moved, Shape::of(merged), false)))
    }

    pub(super) fn flip(&mut self, call: &Call) -> Eval<Value> {
        let input = self.strict_tensor(call, 0)?;
        if input.elem.is_ptr() {
            return Err(self.error(
                Code::BadOperand,
                call.place_nth(0),
                "pointers cannot be flipped",
            ));
        }
        let rank = input.shape.rank();
        let axis = match self.axis(call, "dim", rank)? {
            Some(axis) => axis,
            None if self.is_3_9() => rank.unwrap_or(1).saturating_sub(1),
            None => {
                let message = "in Triton 3.6 `tl.flip` needs the axis `dim`";
                return Err(self.error(Code::MissingArgument, call.at, message));
            }
        };
        let Some(dims) = input.shape.dims() else { return Ok(Value::Tensor(input)) };
        let extent = dims.get(axis).cloned().unwrap_or(Sym::Int(1));
        let indices = self.axis_indices(&input.shape, axis);
        let last =
            self.int_constant(extent.int().unwrap_or(1) - 1, super::super::dtype::DType::Int32);
        let last = self.expand_to(&last, &input.shape);
        let reversed =
            self.op(Opcode::Sub, &[&last, &indices], Attrs::None, Elem::I32, input.shape.clone());
        Ok(Value::Tensor(self.gather_along(&input, &reversed, axis)))
    }

    /// The position along `axis` of each element of a tile of `shape`.
    pub(super) fn axis_indices(&mut self, shape: &Shape, axis: usize) -> Tensor {
        let Some(dims) = shape.dims() else { return Tensor::new(Elem::I32, shape.clone()) };
        let extent = dims.get(axis).cloned().unwrap_or(Sym::Int(1));
        let end = extent.int().unwrap_or(0) as i64;
        let range = ir::Range { start: 0, end };
        let mut indices = self.op(Opcode::Arange, &[], range, Elem::I32, Shape::of([extent]));
        for position in 0..dims.len() {
            if position != axis {
                indices = self.insert_axis(&indices, position);
            }
        }
        self.expand_to(&indices, shape)
    }

    pub(super) fn gather_along(&mut self, value: &Tensor, index: &Tensor, axis: usize) -> Tensor {
        let attrs = ir::Axis { axis: axis as u32 };
        self.op(Opcode::Gather, &[value, index], attrs, value.elem, index.shape.clone())
    }

    pub(super) fn gather(&mut self, call: &Call) -> Eval<Value> {
        let (source, index) = (self.strict_tensor(call, 0)?, self.strict_tensor(call, 1)?);
        if index.elem.is_ptr() || index.elem.num().is_some_and(|dtype| dtype.is_float()) {
            let message =
                format!("the index of `tl.gather` must be integers, not `{}`", index.elem);
            return Err(self.error(Code::BadOperand, call.place_nth(1), message));
        }
        let (Some(from), Some(at)) = (source.shape.dims(), index.shape.dims()) else {
            return Ok(Value::Tensor(Tensor { shape: index.shape, ir: None, ..source }));
        };
        if from.len() != at.len() {
            let message = format!(
                "source and index of `tl.gather` need one rank, but have shapes {} and {}",
                shape_text(&source.shape),
                shape_text(&index.shape)
            );
            return Err(self.error(Code::GatherShape, call.at, message));
        }
        let Some(axis) = self.axis(call, "axis", Some(from.len()))? else {
            let message = "`tl.gather` needs an axis";
            return Err(self.error(Code::MissingArgument, call.at, message));
        };
        let clash = (0..from.len()).find(|&d| d != axis && from[d].certainly_differs(&at[d]));
        if let Some(clash) = clash {
            let message = format!(
                "source {} and index {} of `tl.gather` differ at axis {clash}, which is not gathered",
                shape_text(&source.shape),
                shape_text(&index.shape)
            );
            return Err(self.error(Code::GatherShape, call.at, message));
        }
        let index = match index.elem {
            Elem::Num(dtype) if dtype.bits() != 32 => {
                self.cast(&index, Elem::I32, call.place_nth(1))?
            }
            _ => index,
        };
        Ok(Value::Tensor(self.gather_along(&source, &index, axis)))
    }
}
