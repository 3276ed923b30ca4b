//! Tensor descriptors: kept as base, extents and strides, and lowered to pointers with masks
//! where they are used.

use std::sync::Arc;

use super::super::attribute::extents_of;
use super::super::call::Call;
use super::super::display::shape_text;
use super::super::dtype::{DType, Elem};
use super::super::join::{Relation, relate_shapes};
use super::super::symbolic::Sym;
use super::super::value::{Const, Descriptor, Shape, Tensor, Value};
use super::super::{Eval, Evaluator, Stop};
use crate::builtins::options::{self, Padding};
use crate::diagnostic::{Code, Diagnostic};
use crate::ir::{self, AtomicOp};

impl Evaluator<'_> {
    pub(super) fn make_descriptor(&mut self, call: &Call) -> Eval<Value> {
        let base = self.pointer_arg(call)?;
        if base.is_block() {
            let message = format!(
                "the base must be one pointer, but it has shape {}",
                shape_text(&base.shape)
            );
            return Err(self.error(Code::Descriptor, call.place_nth(0), message));
        }
        let block_value = call.value("block_shape");
        let Some(extents) = extents_of(&block_value) else {
            if block_value.is_unknown() {
                return Err(Stop::Unknown);
            }
            self.shape_arg(&block_value, call.place("block_shape"))?;
            return Err(Stop::Unknown);
        };
        let block = Shape::of(extents);
        let rank = block.rank().unwrap_or(0);
        if !(1..=5).contains(&rank) {
            let message = format!("a tensor descriptor has 1 to 5 axes, not {rank}");
            return Err(self.error(Code::Descriptor, call.at, message));
        }
        for name in ["shape", "strides"] {
            if matches!(call.given(name), Some(Value::Tensor(tensor)) if !tensor.is_open()) {
                let message = format!("`{name}` is a list with one entry per axis");
                return Err(self.error(Code::Descriptor, call.place(name), message));
            }
        }
        self.check_last_extent(&base, &block, call)?;
        self.check_last_stride(call)?;
        let open =
            |name| matches!(call.given(name), Some(Value::Tensor(tensor)) if tensor.is_open());
        if open("shape") || open("strides") {
            return Err(Stop::Unknown);
        }
        let shape =
            self.scalar_list(&call.value("shape"), DType::Int32, "extents", call.place("shape"))?;
        let strides = self.scalar_list(
            &call.value("strides"),
            DType::Int64,
            "strides",
            call.place("strides"),
        )?;
        if shape.len() != rank || strides.len() != rank {
            let message = format!(
                "the block has {rank} axes, but {} extents and {} strides are given",
                shape.len(),
                strides.len()
            );
            return Err(self.error(Code::Descriptor, call.at, message));
        }
        self.check_extents(&block, call.place("block_shape"))?;
        if matches!(call.given("padding_option"), Some(Value::Const(Const::None))) {
            let message = "`padding_option` is 'zero' or 'nan'";
            return Err(self.error(Code::BadOption, call.place("padding_option"), message));
        }
        let padding = self.option(call, "padding_option", options::PADDING)?;
        let padding = padding.unwrap_or(Padding::Zero);
        self.check_padding(padding, base.elem.pointee(), call.place("padding_option"))?;
        let nan_padding = padding == Padding::Nan;
        Ok(Value::Descriptor(Arc::new(Descriptor { base, shape, strides, block, nan_padding })))
    }

    fn check_last_extent(&mut self, base: &Tensor, block: &Shape, call: &Call) -> Eval<()> {
        let extent = block.dims().and_then(|dims| dims.last()?.int());
        let bits = base.elem.pointee().num().map(DType::bits);
        let (Some(extent), Some(bits)) = (extent, bits) else { return Ok(()) };
        let bytes = extent * i128::from(bits / 8);
        if bytes >= 16 {
            return Ok(());
        }
        let message = format!(
            "the last extent of a descriptor's block covers at least 16 bytes, but {extent} elements of `{}` are {bytes}",
            base.elem.pointee()
        );
        Err(self.error(Code::Descriptor, call.place("block_shape"), message))
    }

    fn check_last_stride(&mut self, call: &Call) -> Eval<()> {
        let Value::Tuple(strides) = call.value("strides") else { return Ok(()) };
        let message = match strides.items.last() {
            None | Some(Value::Const(Const::Int(1) | Const::Symbol(_)) | Value::Unknown) => {
                return Ok(());
            }
            // An integer argument that equals one becomes a compile-time one at launch.
            Some(Value::Tensor(tensor)) if tensor.elem.is_unknown() => return Ok(()),
            Some(Value::Tensor(_)) => {
                "the last stride of a descriptor must be the compile-time value 1".to_owned()
            }
            Some(Value::Const(Const::Bool(true))) => return Ok(()),
            Some(Value::Const(other)) => {
                format!("the last stride of a descriptor must be 1, not {other}")
            }
            Some(_) => return Ok(()),
        };
        Err(self.error(Code::Descriptor, call.place("strides"), message))
    }

    fn descriptor_arg(&mut self, call: &Call) -> Eval<Arc<Descriptor>> {
        match call.nth(0) {
            Value::Descriptor(descriptor) => Ok(descriptor),
            Value::Unknown | Value::Const(Const::Symbol(_)) => Err(Stop::Unknown),
            Value::Tensor(tensor) if tensor.elem.is_unknown() => Err(Stop::Unknown),
            other => {
                let message = format!(
                    "expected a tensor descriptor, but this is {}",
                    super::super::report::a(&other)
                );
                Err(self.error(Code::Descriptor, call.place_nth(0), message))
            }
        }
    }

    fn descriptor_offsets(&mut self, descriptor: &Descriptor, call: &Call) -> Eval<Vec<Tensor>> {
        let offsets = call.value("offsets");
        let wide = |item: &Value| matches!(item, Value::Tensor(tensor) if tensor.elem == Elem::Num(DType::Int64));
        if let Value::Tuple(tuple) = &offsets
            && tuple.items.iter().any(wide)
        {
            let diagnostic = Diagnostic::new(
                Code::Descriptor,
                call.place("offsets"),
                "offsets of descriptors have 32 bits, but this one is `int64`",
            )
            .with_note("convert with `.to(tl.int32)`");
            return Err(self.emit_diagnostic(diagnostic));
        }
        let list = self.scalar_list(&offsets, DType::Int32, "offsets", call.place("offsets"))?;
        if list.len() != descriptor.shape.len() {
            let message = format!(
                "the descriptor has {} axes, but {} offsets are given",
                descriptor.shape.len(),
                list.len()
            );
            return Err(self.error(Code::Descriptor, call.place("offsets"), message));
        }
        Ok(list)
    }

    pub(super) fn descriptor_load(&mut self, call: &Call) -> Eval<Value> {
        let descriptor = self.descriptor_arg(call)?;
        let offsets = self.descriptor_offsets(&descriptor, call)?;
        let all: Vec<usize> = (0..offsets.len()).collect();
        let addresses = self.block_addresses(
            &descriptor.base,
            &descriptor.shape,
            &descriptor.strides,
            &offsets,
            &descriptor.block,
            &all,
        );
        let elem = descriptor.base.elem.pointee();
        let padding = if descriptor.nan_padding { Padding::Nan } else { Padding::Zero };
        let other = self.padding_value(padding, elem);
        let loaded = self.load_at(
            &addresses.ptr,
            addresses.mask.as_ref(),
            other.as_ref(),
            &descriptor.block,
            plain_load(),
        )?;
        Ok(Value::Tensor(loaded))
    }

    /// The value of a store, converted and checked against the block.
    fn descriptor_value(&mut self, descriptor: &Descriptor, call: &Call) -> Eval<Tensor> {
        let at = call.place("value");
        let value = match call.value("value") {
            Value::Unknown if !self.emitting() => {
                return Ok(Tensor::new(Elem::Unknown, Shape::unknown()));
            }
            value => self.materialize(&value, at)?,
        };
        let open = value.is_open();
        let count = |shape: &Shape| shape.numel();
        let same_count = match (count(&value.shape), count(&descriptor.block)) {
            (Some(a), Some(b)) => !a.certainly_differs(&b),
            _ => true,
        };
        if !open && relate_shapes(&value.shape, &descriptor.block) == Relation::Different {
            // Leading axes of extent 1 may be missing from the value.
            if !same_count || !self.squeezes_to(&descriptor.block, &value.shape) {
                let message = format!(
                    "the value has shape {}, but the descriptor's block has {}",
                    shape_text(&value.shape),
                    shape_text(&descriptor.block)
                );
                return Err(self.error(Code::Descriptor, at, message));
            }
        }
        let value = self.cast(&value, descriptor.base.elem.pointee(), at)?;
        if value.shape.rank() != descriptor.block.rank() && value.is_block() {
            return Ok(self.reshape_to(&value, descriptor.block.clone(), false));
        }
        Ok(value)
    }

    fn squeezes_to(&self, block: &Shape, value: &Shape) -> bool {
        let (Some(block), Some(value)) = (block.dims(), value.dims()) else { return true };
        let one = Sym::Int(1);
        block.len() > value.len()
            && block[..block.len() - value.len()].iter().all(|extent| *extent == one)
    }

    pub(super) fn descriptor_store(&mut self, call: &Call) -> Eval<Value> {
        let descriptor = self.descriptor_arg(call)?;
        let offsets = self.descriptor_offsets(&descriptor, call)?;
        let value = self.descriptor_value(&descriptor, call)?;
        let all: Vec<usize> = (0..offsets.len()).collect();
        let addresses = self.block_addresses(
            &descriptor.base,
            &descriptor.shape,
            &descriptor.strides,
            &offsets,
            &descriptor.block,
            &all,
        );
        let hints =
            ir::StoreHints { cache: ir::CacheModifier::Default, evict: ir::Eviction::Normal };
        self.store_at(&addresses.ptr, &value, addresses.mask.as_ref(), hints)?;
        Ok(Value::NONE)
    }

    pub(super) fn descriptor_atomic(&mut self, call: &Call, op: AtomicOp) -> Eval<Value> {
        let descriptor = self.descriptor_arg(call)?;
        let offsets = self.descriptor_offsets(&descriptor, call)?;
        let value = self.descriptor_value(&descriptor, call)?;
        if let Some(dtype) = descriptor.base.elem.pointee().num()
            && !reduces(op, dtype)
        {
            let message =
                format!("`{}` is not available for `{dtype}`", call.builtin.display_name());
            return Err(self.error(Code::AtomicType, call.at, message));
        }
        let all: Vec<usize> = (0..offsets.len()).collect();
        let addresses = self.block_addresses(
            &descriptor.base,
            &descriptor.shape,
            &descriptor.strides,
            &offsets,
            &descriptor.block,
            &all,
        );
        let value = self.expand_to(&value, &descriptor.block);
        let atomic =
            ir::Atomic { op, order: ir::MemoryOrder::Relaxed, scope: ir::MemoryScope::Gpu };
        self.atomic_op(&addresses.ptr, &value, addresses.mask.as_ref(), atomic)?;
        Ok(Value::NONE)
    }

    /// Pointers and mask of the rows `x_offsets` from column `y_offset` on.
    fn row_addresses(
        &mut self,
        descriptor: &Descriptor,
        rows: &Tensor,
        call: &Call,
    ) -> Eval<(super::block_ptr::Addresses, Shape)> {
        let (Some(block), Some(count)) = (descriptor.block.dims(), rows.shape.dims()) else {
            return Err(Stop::Unknown);
        };
        if block.len() != 2 || block[0].int().is_some_and(|rows| rows != 1) {
            let message = format!(
                "gather and scatter need a block of one row, but this one is {}",
                shape_text(&descriptor.block)
            );
            return Err(self.error(Code::Descriptor, call.at, message));
        }
        if count.len() != 1 || count[0].int().is_some_and(|rows| rows < 8) {
            let message = format!(
                "gather and scatter need at least 8 row offsets, but these have shape {}",
                shape_text(&rows.shape)
            );
            return Err(self.error(Code::Descriptor, call.place("x_offsets"), message));
        }
        let bits = descriptor.base.elem.pointee().bits().unwrap_or(32);
        let least = i128::from(32 / bits.max(1) * 8);
        if let Some(columns) = block[1].int()
            && columns < least
        {
            let message = format!(
                "gather and scatter of `{}` need at least {least} columns, not {columns}",
                descriptor.base.elem.pointee()
            );
            return Err(self.error(Code::Descriptor, call.at, message));
        }
        let column = self.scalar_list(
            &call.value("y_offset"),
            DType::Int32,
            "the column offset",
            call.place("y_offset"),
        )?;
        let shape = Shape::of([count[0].clone(), block[1].clone()]);
        let addresses = self.gathered_addresses(descriptor, rows, &column[0], &shape);
        Ok((addresses, shape))
    }

    fn gathered_addresses(
        &mut self,
        descriptor: &Descriptor,
        rows: &Tensor,
        column: &Tensor,
        shape: &Shape,
    ) -> super::block_ptr::Addresses {
        use crate::hir::CompareOp;
        use crate::ir::{Attrs, Opcode};
        let int64 = Elem::Num(DType::Int64);
        let at = crate::source::FileRange::default();
        let mut wide = |tensor: &Tensor| {
            let cast = self.cast(tensor, int64, at).unwrap_or_else(|_| tensor.clone());
            self.expand_to(&cast, shape)
        };
        let row_stride = wide(&descriptor.strides[0]);
        let height = wide(&descriptor.shape[0]);
        let width = wide(&descriptor.shape[1]);
        let first = wide(column);
        let rows = self.insert_axis(rows, 1);
        let rows = self.cast(&rows, int64, at).unwrap_or(rows);
        let rows = self.expand_to(&rows, shape);
        let steps = self.axis_indices(shape, 1);
        let steps = self.cast(&steps, int64, at).unwrap_or(steps);
        let mut arith = |opcode, a: &Tensor, b: &Tensor| {
            self.op(opcode, &[a, b], Attrs::None, int64, shape.clone())
        };
        let columns = arith(Opcode::Add, &first, &steps);
        let start = arith(Opcode::Mul, &rows, &row_stride);
        let offset = arith(Opcode::Add, &start, &columns);
        let base = self.expand_to(&descriptor.base, shape);
        let ptr = self.op(Opcode::PtrAdd, &[&base, &offset], Attrs::None, base.elem, shape.clone());
        let zero = self.int_constant(0, DType::Int64);
        let zero = self.expand_to(&zero, shape);
        let mut mask: Option<Tensor> = None;
        for (op, a, b) in [
            (CompareOp::Ge, &rows, &zero),
            (CompareOp::Lt, &rows, &height),
            (CompareOp::Ge, &columns, &zero),
            (CompareOp::Lt, &columns, &width),
        ] {
            let next = self.compare_numbers(op, a, b, DType::Int64);
            mask = Some(match mask {
                None => next,
                Some(mask) => {
                    self.op(Opcode::And, &[&mask, &next], Attrs::None, Elem::BOOL, shape.clone())
                }
            });
        }
        super::block_ptr::Addresses { ptr, mask }
    }

    pub(super) fn descriptor_gather(&mut self, call: &Call) -> Eval<Value> {
        let descriptor = self.descriptor_arg(call)?;
        let rows = self.materialize(&call.value("x_offsets"), call.place("x_offsets"))?;
        let (addresses, shape) = self.row_addresses(&descriptor, &rows, call)?;
        let elem = descriptor.base.elem.pointee();
        let other = self.padding_value(Padding::Zero, elem);
        let loaded = self.load_at(
            &addresses.ptr,
            addresses.mask.as_ref(),
            other.as_ref(),
            &shape,
            plain_load(),
        )?;
        Ok(Value::Tensor(loaded))
    }

    pub(super) fn descriptor_scatter(&mut self, call: &Call) -> Eval<Value> {
        let descriptor = self.descriptor_arg(call)?;
        let rows = self.materialize(&call.value("x_offsets"), call.place("x_offsets"))?;
        let (addresses, _) = self.row_addresses(&descriptor, &rows, call)?;
        let value = self.materialize(&call.value("value"), call.place("value"))?;
        let value = self.cast(&value, descriptor.base.elem.pointee(), call.place("value"))?;
        let hints =
            ir::StoreHints { cache: ir::CacheModifier::Default, evict: ir::Eviction::Normal };
        self.store_at(&addresses.ptr, &value, addresses.mask.as_ref(), hints)?;
        Ok(Value::NONE)
    }
}

/// True for the element types that `op` combines through a descriptor.
fn reduces(op: AtomicOp, dtype: DType) -> bool {
    use DType::{BFloat16, Float16, Float32, Int32, Int64, UInt32, UInt64};
    match dtype {
        UInt32 | Int32 | UInt64 => true,
        Int64 => op != AtomicOp::Add,
        Float32 => op == AtomicOp::Add,
        Float16 | BFloat16 => !matches!(op, AtomicOp::And | AtomicOp::Or | AtomicOp::Xor),
        _ => false,
    }
}

fn plain_load() -> ir::LoadHints {
    ir::LoadHints {
        cache: ir::CacheModifier::Default,
        evict: ir::Eviction::Normal,
        volatile: false,
    }
}
