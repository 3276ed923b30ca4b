//! Tensor descriptors: kept as base, extents and strides, and lowered to pointers with masks
//! where they are used.

use std::sync::Arc;

use smallvec::smallvec;

use super::super::attribute::extents_of;
use super::super::call::Call;
use super::super::display::shape_text;
use super::super::dtype::{DType, Elem, is_stored_alike};
use super::super::join::{Relation, relate_shapes};
use super::super::symbolic::Sym;
use super::super::value::{Const, Descriptor, Held, Shape, Tensor, Value};
use super::super::{Eval, Evaluator, Stop};
use super::block_ptr::Addresses;
use crate::builtins::options::{self, Padding};
use crate::diagnostic::{Code, Diagnostic};
use crate::ir::{self, AtomicOp, Opcode};
use crate::source::FileRange;

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
        for name in ["shape", "strides", "block_shape"] {
            let given = call.value(name);
            if !is_list(&given) {
                let message = format!("`{name}` is a list with one entry per axis");
                return Err(self.error(Code::Descriptor, call.place(name), message));
            }
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
        self.check_last_extent(&base, &block, call)?;
        self.check_last_stride(call)?;
        self.check_stride_bytes(&base, call)?;
        let open =
            |name| matches!(call.given(name), Some(Value::Tensor(tensor)) if tensor.is_open());
        if open("shape") || open("strides") {
            return Err(Stop::Unknown);
        }
        let shape = self.cast_scalars(call, "shape", DType::Int32)?;
        let strides = self.cast_scalars(call, "strides", DType::Int64)?;
        if shape.len() != rank || strides.len() != rank {
            let message = format!(
                "the block has {rank} axes, but {} extents and {} strides are given",
                shape.len(),
                strides.len()
            );
            return Err(self.error(Code::Descriptor, call.at, message));
        }
        self.check_extents(&block, call.place("block_shape"))?;
        let nothing = |given: &Value| match given {
            Value::Const(Const::None) => true,
            Value::Const(Const::Str(text)) => text.is_empty(),
            _ => false,
        };
        if call.given("padding_option").is_some_and(nothing) {
            let message = "`padding_option` is 'zero' or 'nan'";
            return Err(self.error(Code::BadOption, call.place("padding_option"), message));
        }
        let padding = self.option(call, "padding_option", options::PADDING)?;
        let padding = padding.unwrap_or(Padding::Zero);
        self.check_padding(padding, base.elem.pointee(), call.place("padding_option"))?;
        let nan_padding = padding == Padding::Nan;
        let (base, strides) = self.aligned(base, strides);
        Ok(Value::Descriptor(Arc::new(Descriptor { base, shape, strides, block, nan_padding })))
    }

    /// The base and the strides of a descriptor, with what the hardware asks of them noted.
    fn aligned(&mut self, base: Tensor, mut strides: Vec<Tensor>) -> (Tensor, Vec<Tensor>) {
        let Some(dtype) = base.elem.pointee().num() else { return (base, strides) };
        let rows = strides.len() - 1;
        for stride in &mut strides[..rows] {
            *stride = self.multiple_of(stride, row_multiple(dtype));
        }
        (self.multiple_of(&base, ALIGNMENT), strides)
    }

    /// A scalar of which it is known that it is a multiple of `factor`, in bytes if it is a pointer.
    fn multiple_of(&mut self, scalar: &Tensor, factor: u32) -> Tensor {
        let facts = ir::Facts {
            divisibility: ir::Longs(smallvec![i64::from(factor)]),
            contiguity: ir::Longs::default(),
            constancy: ir::Longs::default(),
        };
        self.op(Opcode::AssertFacts, &[scalar], facts, scalar.elem, Shape::scalar())
    }

    /// The scalars of a list, converted to `dtype`.
    fn cast_scalars(&mut self, call: &Call, name: &str, dtype: DType) -> Eval<Vec<Tensor>> {
        let at = call.place(name);
        let Value::Tuple(list) = call.value(name) else { return Err(Stop::Unknown) };
        let scalar = |this: &mut Self, item: &Value| match item {
            Value::Tensor(tensor) if tensor.is_block() => {
                let shape = shape_text(&tensor.shape);
                let message = format!("`{name}` holds scalars, but this has shape {shape}");
                Err(this.error(Code::Descriptor, at, message))
            }
            Value::Const(Const::Int(value)) => {
                let bits = dtype.bits();
                let wrapped = (value << (128 - bits)) >> (128 - bits);
                Ok(this.scalar_constant(&Const::Int(wrapped), dtype))
            }
            Value::Const(constant @ Const::Bool(_)) => Ok(this.scalar_constant(constant, dtype)),
            Value::Tensor(tensor) => this.cast(&tensor.clone(), Elem::Num(dtype), at),
            Value::Tuple(_) => {
                let message = format!("`{name}` holds scalars, but this is a list");
                Err(this.error(Code::Descriptor, at, message))
            }
            other => {
                let one = Value::tuple(vec![other.clone()]);
                Ok(this.scalar_list(&one, dtype, "extents and strides", at)?.swap_remove(0))
            }
        };
        list.items.iter().map(|item| scalar(self, item)).collect()
    }

    /// Rows begin at multiples of 16 bytes; Triton 3.9 looks at strides that it knows.
    fn check_stride_bytes(&mut self, base: &Tensor, call: &Call) -> Eval<()> {
        let Value::Tuple(strides) = call.value("strides") else { return Ok(()) };
        let Some(bytes) = base.elem.pointee().num().map(|dtype| i128::from(dtype.bits() / 8))
        else {
            return Ok(());
        };
        let rows = strides.items.split_last().map_or(&[][..], |(_, rows)| rows);
        let known = |stride: &Value| match stride {
            Value::Const(Const::Int(stride)) => Some(*stride),
            Value::Const(Const::Bool(stride)) => Some(i128::from(*stride)),
            _ => None,
        };
        let odd = rows.iter().filter_map(known).find(|stride| stride * bytes % 16 != 0);
        let Some(odd) = odd.filter(|_| self.is_3_9()) else { return Ok(()) };
        let message = format!(
            "strides of a descriptor are multiples of 16 bytes, but {odd} elements are {}",
            odd * bytes
        );
        Err(self.error(Code::Descriptor, call.place("strides"), message))
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
        if !is_list(&offsets) {
            let message = "offsets are a list with one entry per axis";
            return Err(self.error(Code::Descriptor, call.place("offsets"), message));
        }
        if let Value::Tuple(tuple) = &offsets {
            for item in &tuple.items {
                self.check_offset(item, call.place("offsets"))?;
            }
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

    /// The hardware takes offsets of 32 bits, and nothing converts others.
    fn check_offset(&mut self, offset: &Value, at: FileRange) -> Eval<()> {
        let other = match offset {
            Value::Const(Const::Bool(_)) => Some(DType::Int1),
            Value::Tensor(tensor) => tensor.elem.num().filter(|dtype| {
                !dtype.is_float() && !matches!(dtype, DType::Int32 | DType::UInt32)
            }),
            _ => None,
        };
        let Some(other) = other else { return Ok(()) };
        let message = format!("offsets of descriptors have 32 bits, but this one is `{other}`");
        let diagnostic = Diagnostic::new(Code::Descriptor, at, message)
            .with_note("convert with `.to(tl.int32)`");
        Err(self.emit_diagnostic(diagnostic))
    }

    /// Pointers to the elements of a descriptor's block at these offsets, and the mask of those inside.
    fn addresses_at(&mut self, descriptor: &Descriptor, offsets: &[Tensor]) -> Addresses {
        let all: Vec<usize> = (0..offsets.len()).collect();
        self.block_addresses(
            &descriptor.base,
            &descriptor.shape,
            &descriptor.strides,
            offsets,
            &descriptor.block,
            &all,
        )
    }

    pub(super) fn descriptor_load(&mut self, call: &Call) -> Eval<Value> {
        let descriptor = self.descriptor_arg(call)?;
        let offsets = self.descriptor_offsets(&descriptor, call)?;
        let addresses = self.addresses_at(&descriptor, &offsets);
        let elem = descriptor.base.elem.pointee();
        let other = self.padding_of(&descriptor, elem);
        let Descriptor { base, shape, strides, .. } = &*descriptor;
        let axes = shape.iter().chain(strides).chain(&offsets);
        let tensor: Vec<&Tensor> = std::iter::once(base).chain(axes).collect();
        let loaded = self.load_at(
            &addresses.ptr,
            addresses.mask.as_ref(),
            other.as_ref(),
            &descriptor.block,
            plain_load(),
            &tensor,
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
        let addresses = self.addresses_at(&descriptor, &offsets);
        let hints =
            ir::StoreHints { cache: ir::CacheModifier::Default, evict: ir::Eviction::Normal };
        self.store_at(&addresses.ptr, &value, addresses.mask.as_ref(), hints)?;
        Ok(Value::void())
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
        self.check_reduced(&descriptor, call)?;
        let addresses = self.addresses_at(&descriptor, &offsets);
        let value = self.expand_to(&value, &descriptor.block);
        let atomic =
            ir::Atomic { op, order: ir::MemoryOrder::Relaxed, scope: ir::MemoryScope::Gpu };
        self.atomic_op(&addresses.ptr, &value, addresses.mask.as_ref(), atomic)?;
        Ok(Value::void())
    }

    /// Triton 3.9 converts no value that is combined.
    fn check_reduced(&mut self, descriptor: &Descriptor, call: &Call) -> Eval<()> {
        let Value::Tensor(value) = call.value("value") else { return Ok(()) };
        let (given, held) = (value.elem, descriptor.base.elem.pointee());
        if !self.is_3_9() || is_stored_alike(given, held) {
            return Ok(());
        }
        let message = format!("the value is `{given}`, but the descriptor is of `{held}`");
        let diagnostic = Diagnostic::new(Code::Descriptor, call.place("value"), message)
            .with_note("Triton 3.9 converts no value that is combined with memory");
        Err(self.emit_diagnostic(diagnostic))
    }

    /// Pointers and mask of the rows `x_offsets` from column `y_offset` on.
    fn row_addresses(
        &mut self,
        descriptor: &Descriptor,
        rows: &Tensor,
        call: &Call,
    ) -> Eval<(Addresses, Shape)> {
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
        if bits > 32 {
            let message = format!(
                "gather and scatter take elements of at most 32 bits, not `{}`",
                descriptor.base.elem.pointee()
            );
            return Err(self.error(Code::Descriptor, call.at, message));
        }
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
        let taken: &[DType] = match self.is_3_9() {
            true => &[DType::Int16, DType::Int32],
            false => &[DType::Int32, DType::UInt32],
        };
        if let Some(dtype) = rows.elem.num().filter(|dtype| !taken.contains(dtype)) {
            let message = format!("rows are named by `{}`, not `{dtype}`", DType::Int32);
            return Err(self.error(Code::Descriptor, call.place("x_offsets"), message));
        }
        self.check_offset(&call.value("y_offset"), call.place("y_offset"))?;
        if let Value::Tuple(_) = call.value("y_offset") {
            let message = "the column is one offset, not a list";
            return Err(self.error(Code::Descriptor, call.place("y_offset"), message));
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
    ) -> Addresses {
        use crate::hir::CompareOp;
        use crate::ir::Attrs;
        let int64 = Elem::Num(DType::Int64);
        let at = FileRange::default();
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
        Addresses { ptr, mask }
    }

    /// What is read beyond the bounds of a descriptor.
    fn padding_of(&mut self, descriptor: &Descriptor, elem: Elem) -> Option<Tensor> {
        let padding = if descriptor.nan_padding { Padding::Nan } else { Padding::Zero };
        self.padding_value(padding, elem)
    }

    pub(super) fn descriptor_gather(&mut self, call: &Call) -> Eval<Value> {
        let descriptor = self.descriptor_arg(call)?;
        let rows = self.materialize(&call.value("x_offsets"), call.place("x_offsets"))?;
        let (addresses, shape) = self.row_addresses(&descriptor, &rows, call)?;
        let elem = descriptor.base.elem.pointee();
        let other = self.padding_of(&descriptor, elem);
        let loaded = self.load_at(
            &addresses.ptr,
            addresses.mask.as_ref(),
            other.as_ref(),
            &shape,
            plain_load(),
            &[],
        )?;
        Ok(Value::Tensor(loaded))
    }

    pub(super) fn descriptor_scatter(&mut self, call: &Call) -> Eval<Value> {
        let descriptor = self.descriptor_arg(call)?;
        let rows = self.materialize(&call.value("x_offsets"), call.place("x_offsets"))?;
        let (addresses, shape) = self.row_addresses(&descriptor, &rows, call)?;
        let value = self.materialize(&call.value("value"), call.place("value"))?;
        if !value.is_open() && relate_shapes(&value.shape, &shape) == Relation::Different {
            let message = format!(
                "the value has shape {}, but the rows have {}",
                shape_text(&value.shape),
                shape_text(&shape)
            );
            return Err(self.error(Code::Descriptor, call.place("value"), message));
        }
        let held = descriptor.base.elem.pointee();
        if !is_stored_alike(value.elem, held) {
            let message =
                format!("the value is `{}`, but the descriptor is of `{held}`", value.elem);
            let diagnostic = Diagnostic::new(Code::Descriptor, call.place("value"), message)
                .with_note("nothing converts what is scattered");
            return Err(self.emit_diagnostic(diagnostic));
        }
        let value = self.cast(&value, held, call.place("value"))?;
        let hints =
            ir::StoreHints { cache: ir::CacheModifier::Default, evict: ir::Eviction::Normal };
        self.store_at(&addresses.ptr, &value, addresses.mask.as_ref(), hints)?;
        Ok(Value::void())
    }
}

/// What the base and the rows of a descriptor are aligned to, in bytes; the hardware asks for it.
pub(in crate::eval) const ALIGNMENT: u32 = 16;

/// What strides between rows of `dtype` are multiples of, in elements.
pub(in crate::eval) fn row_multiple(dtype: DType) -> u32 {
    (ALIGNMENT * 8 / dtype.bits().max(8)).max(1)
}

/// True for what may be a list: one of Python that a constexpr holds has no elements for Triton.
fn is_list(value: &Value) -> bool {
    match value {
        Value::Tuple(tuple) => tuple.held == Held::Elements,
        Value::Tensor(tensor) => tensor.is_open(),
        Value::Unknown | Value::Const(Const::Symbol(_)) => true,
        _ => false,
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
