//! Block pointers: kept as base, extents, strides and offsets, and lowered to plain pointers with
//! masks where they are used.

use std::sync::Arc;

use super::super::attribute::extents_of;
use super::super::call::Call;
use super::super::cast::pointer_like;
use super::super::display::shape_text;
use super::super::dtype::{DType, Elem};
use super::super::join::{Relation, relate_shapes};
use super::super::symbolic::Sym;
use super::super::value::{BlockPtr, Const, Shape, Tensor, Value};
use super::super::{Eval, Evaluator, Stop};
use crate::builtins::options::{self, Padding};
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::hir::CompareOp;
use crate::ir::{Attrs, Opcode};
use crate::source::FileRange;

/// The pointers of a block, and where it lies inside the array.
pub(super) struct Addresses {
    pub ptr: Tensor,
    pub mask: Option<Tensor>,
}

impl Evaluator<'_> {
    /// Integer scalars of a tuple argument as tensors of type `dtype`.
    pub(super) fn scalar_list(
        &mut self,
        value: &Value,
        dtype: DType,
        what: &str,
        at: FileRange,
    ) -> Eval<Vec<Tensor>> {
        let items = match value {
            Value::Tuple(tuple) => tuple.items.clone(),
            Value::Unknown | Value::Const(Const::Symbol(_)) => return Err(Stop::Unknown),
            other => vec![other.clone()],
        };
        let mut tensors = Vec::with_capacity(items.len());
        for item in &items {
            tensors.push(self.index_scalar(item, dtype, what, at)?);
        }
        Ok(tensors)
    }

    fn index_scalar(
        &mut self,
        value: &Value,
        dtype: DType,
        what: &str,
        at: FileRange,
    ) -> Eval<Tensor> {
        match value {
            Value::Const(Const::Int(value)) if !fits(*value, dtype) => {
                let message = format!("{what} have {} bits, but {value} has more", dtype.bits());
                Err(self.error(Code::BlockPointer, at, message))
            }
            Value::Const(constant @ Const::Int(_)) => Ok(self.scalar_constant(constant, dtype)),
            Value::Const(Const::Symbol(_)) => Ok(Tensor::new(Elem::Num(dtype), Shape::scalar())),
            Value::Tensor(tensor) => {
                if tensor.is_block() {
                    let message = format!(
                        "{what} must be scalars, but this has shape {}",
                        shape_text(&tensor.shape)
                    );
                    return Err(self.error(Code::BlockPointer, at, message));
                }
                if tensor.elem.num().is_some_and(DType::is_float) || tensor.elem.is_ptr() {
                    let message = format!("{what} must be integers, not `{}`", tensor.elem);
                    return Err(self.error(Code::BlockPointer, at, message));
                }
                let tensor = tensor.clone();
                self.cast(&tensor, Elem::Num(dtype), at)
            }
            Value::Unknown => Err(Stop::Unknown),
            other => {
                let message = format!(
                    "{what} must be integers, but this is {}",
                    super::super::report::a(other)
                );
                Err(self.error(Code::BlockPointer, at, message))
            }
        }
    }

    pub(super) fn make_block_ptr(&mut self, call: &Call) -> Eval<Value> {
        if self.is_3_9() {
            let diagnostic = Diagnostic::new(
                Code::UnknownBuiltin,
                call.at,
                "block pointers were removed in Triton 3.9",
            )
            .with_note("use `tl.make_tensor_descriptor`");
            return Err(self.emit_diagnostic(diagnostic));
        }
        let mut base = self.pointer_arg(call)?;
        if let Elem::Ptr(pointer) = base.elem
            && pointer.to == Some(DType::Int1)
        {
            // Blocks of bools are blocks of the bytes that hold them.
            base = self.pointer_cast(&base, pointer_like(pointer, DType::Int8));
        }
        if base.is_block() {
            let message = format!(
                "the base must be one pointer, but it has shape {}",
                shape_text(&base.shape)
            );
            return Err(self.error(Code::BlockPointer, call.place("base"), message));
        }
        for list in ["shape", "strides", "offsets", "block_shape", "order"] {
            if let Value::Const(Const::Int(_) | Const::Bool(_)) = call.value(list) {
                let message = format!("`{list}` is a tuple, also where it has one element");
                return Err(self.error(Code::BlockPointer, call.place(list), message));
            }
        }
        let extents = extents_of(&call.value("block_shape"));
        let Some(extents) = extents else {
            let value = call.value("block_shape");
            if value.is_unknown() {
                return Err(Stop::Unknown);
            }
            let block = self.shape_arg(&value, call.place("block_shape"))?;
            return Err(if block.rank().is_none() { Stop::Unknown } else { Stop::Reported });
        };
        if extents.is_empty() {
            let message = "a block has one axis at least";
            return Err(self.error(Code::BlockPointer, call.place("block_shape"), message));
        }
        let block = Shape::of(extents);
        let int64 = DType::Int64;
        let shape =
            self.scalar_list(&call.value("shape"), int64, "extents", call.place("shape"))?;
        let strides =
            self.scalar_list(&call.value("strides"), int64, "strides", call.place("strides"))?;
        self.refuse_wide_offsets(&call.value("offsets"), call.place("offsets"))?;
        let offsets = self.scalar_list(
            &call.value("offsets"),
            DType::Int32,
            "offsets",
            call.place("offsets"),
        )?;
        let rank = block.rank().unwrap_or(0);
        if [shape.len(), strides.len(), offsets.len()].iter().any(|&len| len != rank) {
            let message = "shape, strides, offsets and block_shape need one length";
            return Err(self.error(Code::BlockPointer, call.at, message));
        }
        self.check_order(call, rank)?;
        self.check_new_extents(&block, call.place("block_shape"))?;
        Ok(Value::BlockPtr(Arc::new(BlockPtr { base, shape, strides, offsets, block })))
    }

    /// Offsets of block pointers have 32 bits.
    fn refuse_wide_offsets(&mut self, value: &Value, at: FileRange) -> Eval<()> {
        let wide = |item: &Value| matches!(item, Value::Tensor(tensor) if tensor.elem == Elem::Num(DType::Int64));
        let found = match value {
            Value::Tuple(tuple) => tuple.items.iter().any(wide),
            other => wide(other),
        };
        if !found {
            return Ok(());
        }
        let diagnostic = Diagnostic::new(
            Code::BlockPointer,
            at,
            "offsets of block pointers have 32 bits, but this one is `int64`",
        )
        .with_note("convert with `.to(tl.int32)`, or use plain pointers");
        Err(self.emit_diagnostic(diagnostic))
    }

    fn check_order(&mut self, call: &Call, rank: usize) -> Eval<()> {
        let order = match call.value("order") {
            Value::Unknown | Value::Const(Const::Symbol(_)) => return Ok(()),
            Value::Tensor(tensor) if tensor.is_open() => return Ok(()),
            Value::Tuple(tuple) if tuple.items.iter().any(Value::is_unknown) => return Ok(()),
            order => extents_of(&order),
        };
        let Some(order) = order else {
            let message = "`order` is a tuple of the axes";
            return Err(self.error(Code::BlockPointer, call.place("order"), message));
        };
        let mut axes: Vec<i128> = order.iter().filter_map(Sym::int).collect();
        if axes.len() != order.len() {
            return Ok(());
        }
        axes.sort_unstable();
        if !axes.iter().copied().eq(0..rank as i128) {
            let message = format!("`order` must name each of the {rank} axes once");
            return Err(self.error(Code::BlockPointer, call.place("order"), message));
        }
        Ok(())
    }

    pub(super) fn advance(&mut self, call: &Call) -> Eval<Value> {
        let Value::BlockPtr(block) = call.nth(0) else {
            return match call.nth(0) {
                Value::Unknown => Err(Stop::Unknown),
                Value::Tensor(tensor) if tensor.elem.is_unknown() => Err(Stop::Unknown),
                other => {
                    let message = format!(
                        "`tl.advance` needs a block pointer, but this is {}",
                        super::super::report::a(&other)
                    );
                    Err(self.error(Code::BlockPointer, call.place_nth(0), message))
                }
            };
        };
        self.refuse_wide_offsets(&call.nth(1), call.place_nth(1))?;
        if let Value::Const(Const::Int(_) | Const::Bool(_)) = call.nth(1) {
            let message = "the offsets are a tuple, also where there is one";
            return Err(self.error(Code::BlockPointer, call.place_nth(1), message));
        }
        let deltas = self.scalar_list(&call.nth(1), DType::Int32, "offsets", call.place_nth(1))?;
        if deltas.len() != block.offsets.len() {
            // Triton pairs them as far as they go.
            let message = format!(
                "the block pointer has {} axes, but {} offsets are given",
                block.offsets.len(),
                deltas.len()
            );
            let mut diagnostic = Diagnostic::new(Code::BlockPointer, call.at, message);
            diagnostic.severity = Severity::Warning;
            self.emit_diagnostic(diagnostic);
        }
        let mut offsets = block.offsets.clone();
        for (offset, delta) in offsets.iter_mut().zip(&deltas) {
            *offset =
                self.op(Opcode::Add, &[&*offset, delta], Attrs::None, Elem::I32, Shape::scalar());
        }
        Ok(Value::BlockPtr(Arc::new(BlockPtr { offsets, ..(*block).clone() })))
    }

    /// `tl.where` of block pointers, which one condition chooses between.
    pub(super) fn where_block_ptr(
        &mut self,
        condition: &Tensor,
        x: &BlockPtr,
        y: &BlockPtr,
        call: &Call,
    ) -> Eval<Value> {
        let at = call.place_nth(0);
        let different = relate_shapes(&x.block, &y.block) == Relation::Different
            || (x.base.elem != y.base.elem
                && !x.base.elem.is_unknown()
                && !y.base.elem.is_unknown());
        if different || condition.is_block() {
            let message = "one condition chooses between block pointers of one type";
            return Err(self.error(Code::BlockPointer, call.at, message));
        }
        let condition = self.cast(condition, Elem::BOOL, at)?;
        let mut choose = |x: &Tensor, y: &Tensor| {
            let (elem, shape) = (x.elem.or(y.elem), x.shape.clone());
            self.op(Opcode::Select, &[&condition, x, y], Attrs::None, elem, shape)
        };
        let mut all = |x: &[Tensor], y: &[Tensor]| -> Vec<Tensor> {
            x.iter().zip(y).map(|(x, y)| choose(x, y)).collect()
        };
        let shape = all(&x.shape, &y.shape);
        let strides = all(&x.strides, &y.strides);
        let offsets = all(&x.offsets, &y.offsets);
        let base = choose(&x.base, &y.base);
        Ok(Value::BlockPtr(Arc::new(BlockPtr {
            base,
            shape,
            strides,
            offsets,
            block: x.block.clone(),
        })))
    }

    /// The axes that `boundary_check` names.
    fn boundary_axes(&mut self, call: &Call, rank: usize) -> Eval<Vec<usize>> {
        let at = call.place("boundary_check");
        let Some(value) = call.given("boundary_check") else { return Ok(Vec::new()) };
        if value.is_none() {
            return Ok(Vec::new());
        }
        let Some(axes) = extents_of(value) else { return Err(Stop::Unknown) };
        let mut out = Vec::new();
        for axis in axes {
            let Some(axis) = axis.int() else { return Err(Stop::Unknown) };
            if !(0..rank as i128).contains(&axis) {
                let message =
                    format!("the block has {rank} axes, so there is no axis {axis} to check");
                return Err(self.error(Code::BlockPointer, at, message));
            }
            if out.contains(&(axis as usize)) {
                let message = format!("axis {axis} is named twice");
                return Err(self.error(Code::BlockPointer, at, message));
            }
            out.push(axis as usize);
        }
        Ok(out)
    }

    /// Pointers to the elements of a block, and the mask of those inside along `checked`.
    pub(super) fn block_addresses(
        &mut self,
        base: &Tensor,
        extents: &[Tensor],
        strides: &[Tensor],
        offsets: &[Tensor],
        block: &Shape,
        checked: &[usize],
    ) -> Addresses {
        let int64 = Elem::Num(DType::Int64);
        let rank = block.rank().unwrap_or(0);
        let mut ptr = base.clone();
        let mut mask: Option<Tensor> = None;
        let at = FileRange::default();
        for axis in 0..rank {
            let index = self.block_index(&offsets[axis], block, axis, DType::Int64);
            let stride = self.expand_to(&strides[axis], &index.shape);
            let moved =
                self.op(Opcode::Mul, &[&index, &stride], Attrs::None, int64, index.shape.clone());
            let shape = broadcast_known(&ptr.shape, &moved.shape);
            let (left, right) = (self.expand_to(&ptr, &shape), self.expand_to(&moved, &shape));
            ptr = self.op(Opcode::PtrAdd, &[&left, &right], Attrs::None, base.elem, shape);
            if checked.contains(&axis) {
                let dtype = bounds_type(&extents[axis]);
                let index = self.block_index(&offsets[axis], block, axis, dtype);
                let elem = Elem::Num(dtype);
                let extent = self.cast(&extents[axis], elem, at).unwrap_or(extents[axis].clone());
                let inside = self.inside(&index, &extent, dtype);
                mask = Some(match mask {
                    None => inside,
                    Some(mask) => {
                        let shape = broadcast_known(&mask.shape, &inside.shape);
                        let (a, b) =
                            (self.expand_to(&mask, &shape), self.expand_to(&inside, &shape));
                        self.op(Opcode::And, &[&a, &b], Attrs::None, Elem::BOOL, shape)
                    }
                });
            }
        }
        let mask = mask.map(|mask| self.expand_to(&mask, block));
        Addresses { ptr: self.expand_to(&ptr, block), mask }
    }

    /// `0 <= index < extent`, elementwise in `dtype`.
    fn inside(&mut self, index: &Tensor, extent: &Tensor, dtype: DType) -> Tensor {
        let extent = self.expand_to(extent, &index.shape);
        let zero = self.int_constant(0, dtype);
        let zero = self.expand_to(&zero, &index.shape);
        let below = self.compare_numbers(CompareOp::Lt, index, &extent, dtype);
        let above = self.compare_numbers(CompareOp::Ge, index, &zero, dtype);
        self.op(Opcode::And, &[&above, &below], Attrs::None, Elem::BOOL, index.shape.clone())
    }

    /// `offset + arange` in `dtype` along one axis of a block, with extent 1 along the others.
    fn block_index(&mut self, offset: &Tensor, block: &Shape, axis: usize, dtype: DType) -> Tensor {
        let Some(dims) = block.dims() else { return offset.clone() };
        let extent = dims[axis].clone();
        let range = crate::ir::Range { start: 0, end: extent.int().unwrap_or(0) as i64 };
        let mut steps = self.op(Opcode::Arange, &[], range, Elem::I32, Shape::of([extent]));
        for position in 0..dims.len() {
            if position != axis {
                steps = self.insert_axis(&steps, position);
            }
        }
        let at = FileRange::default();
        let elem = Elem::Num(dtype);
        let steps = self.cast(&steps, elem, at).unwrap_or(steps);
        let offset = self.cast(offset, elem, at).unwrap_or_else(|_| offset.clone());
        let offset = self.expand_to(&offset, &steps.shape);
        self.op(Opcode::Add, &[&offset, &steps], Attrs::None, elem, steps.shape.clone())
    }

    fn padding(&mut self, call: &Call, elem: Elem) -> Eval<Padding> {
        let padding = self.option(call, "padding_option", options::PADDING)?;
        let padding = padding.unwrap_or(Padding::Zero);
        self.check_padding(padding, elem, call.place("padding_option"))?;
        Ok(padding)
    }

    pub(super) fn check_padding(
        &mut self,
        padding: Padding,
        elem: Elem,
        at: FileRange,
    ) -> Eval<()> {
        if padding == Padding::Nan && elem.num().is_some_and(DType::is_int) {
            let message = format!("NaN cannot pad a block of `{elem}`");
            return Err(self.error(Code::BlockPointer, at, message));
        }
        Ok(())
    }

    /// The value of elements outside the array.
    pub(super) fn padding_value(&mut self, padding: Padding, elem: Elem) -> Option<Tensor> {
        let Elem::Num(dtype) = elem else { return None };
        Some(match padding {
            Padding::Zero => self.int_constant(0, dtype),
            Padding::Nan => self.scalar_constant(&Const::Float(f64::NAN), dtype),
        })
    }

    pub(super) fn load_block(&mut self, block: &BlockPtr, call: &Call) -> Eval<Value> {
        if call.has("mask") || call.has("other") {
            let name = if call.has("mask") { "mask" } else { "other" };
            let diagnostic = Diagnostic::new(
                Code::BlockPointer,
                call.place(name),
                format!("`{name}` does not work with block pointers"),
            )
            .with_note("use `boundary_check` and `padding_option`");
            return Err(self.emit_diagnostic(diagnostic));
        }
        let elem = block.base.elem.pointee();
        let hints = self.load_hints(call)?;
        let rank = block.block.rank().unwrap_or(0);
        let checked = self.boundary_axes(call, rank)?;
        let padding = self.padding(call, elem)?;
        let addresses = self.block_addresses(
            &block.base,
            &block.shape,
            &block.strides,
            &block.offsets,
            &block.block,
            &checked,
        );
        let other = match addresses.mask {
            Some(_) => self.padding_value(padding, elem),
            None => None,
        };
        let loaded = self.load_at(
            &addresses.ptr,
            addresses.mask.as_ref(),
            other.as_ref(),
            &block.block,
            hints,
            &[],
        )?;
        Ok(Value::Tensor(loaded))
    }

    pub(super) fn store_block(&mut self, block: &BlockPtr, call: &Call) -> Eval<Value> {
        if call.has("mask") {
            let diagnostic = Diagnostic::new(
                Code::BlockPointer,
                call.place("mask"),
                "`mask` does not work with block pointers",
            )
            .with_note("use `boundary_check`");
            return Err(self.emit_diagnostic(diagnostic));
        }
        let elem = block.base.elem.pointee();
        let hints = self.store_hints(call)?;
        let rank = block.block.rank().unwrap_or(0);
        let checked = self.boundary_axes(call, rank)?;
        let value = match call.nth(1) {
            Value::Unknown if !self.emitting() => Tensor::new(Elem::Unknown, Shape::unknown()),
            value => self.materialize(&value, call.place_nth(1))?,
        };
        if value.is_block() && relate_shapes(&value.shape, &block.block) == Relation::Different {
            let message = format!(
                "the value has shape {}, but the block has {}",
                shape_text(&value.shape),
                shape_text(&block.block)
            );
            return Err(self.error(Code::StoreShape, call.place_nth(1), message));
        }
        if !value.elem.is_unknown() && !elem.is_unknown() && value.elem != elem {
            let diagnostic = Diagnostic::new(
                Code::BlockPointer,
                call.place_nth(1),
                format!(
                    "a store through a block pointer needs `{elem}` exactly, but the value is `{}`",
                    value.elem
                ),
            )
            .with_note("convert with `.to(...)`");
            return Err(self.emit_diagnostic(diagnostic));
        }
        let addresses = self.block_addresses(
            &block.base,
            &block.shape,
            &block.strides,
            &block.offsets,
            &block.block,
            &checked,
        );
        let value = self.expand_to(&value, &block.block);
        self.store_at(&addresses.ptr, &value, addresses.mask.as_ref(), hints)?;
        Ok(Value::void())
    }
}

/// The broadcast of shapes of equal rank of which one side is 1 where they differ; scalars give
/// way.
fn broadcast_known(a: &Shape, b: &Shape) -> Shape {
    let (Some(x), Some(y)) = (a.dims(), b.dims()) else { return Shape::unknown() };
    if x.is_empty() {
        return b.clone();
    }
    if y.is_empty() {
        return a.clone();
    }
    let one = Sym::Int(1);
    Shape::of(x.iter().zip(y).map(|(x, y)| if *x == one { y.clone() } else { x.clone() }))
}

fn fits(value: i128, dtype: DType) -> bool {
    dtype.int_range().is_none_or(|(least, greatest)| (least..=greatest).contains(&value))
}

/// The type in which indices are compared with this extent. Those of descriptors have 32 bits: an index
/// that wraps around is negative, so outside, as it is without wrapping.
fn bounds_type(extent: &Tensor) -> DType {
    if extent.elem == Elem::I32 { DType::Int32 } else { DType::Int64 }
}
