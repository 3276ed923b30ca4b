//! Loads and stores through pointers.

use super::super::call::Call;
use super::super::cast::pointer_like;
use super::super::display::{shape_text, type_text};
use super::super::dtype::{DType, Elem};
use super::super::join::{Relation, relate_shapes};
use super::super::types::argument_behind;
use super::super::value::{Const, Number, Shape, Tensor, Value};
use super::super::{Eval, Evaluator, Stop};
use crate::builtins::{Choice, options};
use crate::diagnostic::{Code, Diagnostic};
use crate::hir::{Expr, Literal};
use crate::ir::{self, CacheModifier, Eviction, Opcode};
use crate::source::FileRange;

/// Options that Triton reads only where they count as true.
const READ_WHERE_TRUE: &[&str] = &["cache_modifier", "eviction_policy", "scope", "sem"];

impl Evaluator<'_> {
    pub(super) fn load(&mut self, call: &Call) -> Eval<Value> {
        if let Value::BlockPtr(block) = call.nth(0) {
            return self.load_block(&block, call);
        }
        let hints = self.load_hints(call)?;
        let ptr = self.pointer_arg(call)?;
        self.refuse_boundary_check(call)?;
        let mask = self.mask_arg(call)?;
        let other = self.other_arg(call, &ptr, mask.is_some())?;
        if ptr.is_scalar() {
            self.scalar_only(mask.as_ref(), "mask", call)?;
            self.scalar_only(other.as_ref(), "other", call)?;
        }
        let elem = ptr.elem.pointee();
        let mut shape = ptr.shape.clone();
        if let Some(mask) = &mask {
            let places = (call.place_nth(0), call.place("mask"));
            shape = self.mask_shape(&shape, mask, call.at, places)?;
        }
        if let Some(other) = &other {
            let places = (call.place_nth(0), call.place("other"));
            let wider = self.broadcast_shapes(&shape, &other.shape, call.at, places)?;
            if let Some(mask) = mask.as_ref().filter(|_| !mask_follows(&shape, &wider)) {
                return Err(self.narrow_mask(mask, &wider, call));
            }
            shape = wider;
        }
        let other = match other {
            Some(other) => Some(self.cast(&other, elem, call.place("other"))?),
            None => None,
        };
        Ok(Value::Tensor(self.load_at(&ptr, mask.as_ref(), other.as_ref(), &shape, hints, &[])?))
    }

    /// A load of pointers, mask and other at their common shape, and of the `tensor` that a descriptor
    /// names. Memory of `int1` holds bytes.
    pub(super) fn load_at(
        &mut self,
        ptr: &Tensor,
        mask: Option<&Tensor>,
        other: Option<&Tensor>,
        shape: &Shape,
        hints: ir::LoadHints,
        tensor: &[&Tensor],
    ) -> Eval<Tensor> {
        let ptr = self.expand_to(ptr, shape);
        let mask = mask.map(|mask| self.expand_to(mask, shape));
        let other = other.map(|other| self.expand_to(other, shape));
        let elem = ptr.elem.pointee();
        let bytes = elem == Elem::BOOL;
        let memory = if bytes { Elem::Num(DType::Int8) } else { elem };
        let at = FileRange::default();
        let other = match other {
            Some(other) if bytes => Some(self.cast(&other, memory, at)?),
            other => other,
        };
        let mut operands = vec![Some(&ptr), mask.as_ref(), other.as_ref()];
        operands.extend(tensor.iter().copied().map(Some));
        let loaded = self.op_optional(Opcode::Load, &operands, hints, memory, shape.clone());
        if bytes {
            return self.is_nonzero(&loaded, at);
        }
        Ok(loaded)
    }

    /// The pointer argument of a memory operation.
    pub(super) fn pointer_arg(&mut self, call: &Call) -> Eval<Tensor> {
        let at = call.place_nth(0);
        match call.nth(0) {
            Value::Tensor(tensor) => match tensor.elem {
                Elem::Ptr(_) => Ok(tensor),
                Elem::Unknown => {
                    match tensor.number {
                        Some(Number::Float(float)) => {
                            let message =
                                "an address is a pointer plus integers, but this is a float";
                            return Err(self.error(Code::PointerArithmetic, float, message));
                        }
                        Some(Number::Any) => {
                            let message = format!(
                                "`{}` needs a pointer, but this is a number",
                                call.builtin.display_name()
                            );
                            return Err(self.error(Code::NotAPointer, at, message));
                        }
                        None => {}
                    }
                    let argument = argument_behind(&self.origins, tensor.origin).cloned();
                    argument.into_iter().for_each(|name| self.types.note_pointer(name));
                    Ok(tensor)
                }
                _ => {
                    let message = format!(
                        "`{}` needs a pointer, but this is `{}`",
                        call.builtin.display_name(),
                        type_text(&Value::Tensor(tensor.clone()))
                    );
                    let mut diagnostic = Diagnostic::new(Code::NotAPointer, at, message);
                    diagnostic = self.with_reasons(diagnostic, tensor.origin);
                    diagnostic.fixes.clear();
                    Err(self.emit_diagnostic(diagnostic))
                }
            },
            Value::Unknown => Err(Stop::Unknown),
            Value::Const(Const::Symbol(_)) => Err(Stop::Unknown),
            Value::Descriptor(_) => {
                let diagnostic = Diagnostic::new(
                    Code::NotAPointer,
                    at,
                    "this is a tensor descriptor, not a pointer",
                )
                .with_note("use its methods: `desc.load([...])`, `desc.store([...], value)`");
                Err(self.emit_diagnostic(diagnostic))
            }
            other => {
                let message = format!(
                    "`{}` needs a pointer, but this is {}",
                    call.builtin.display_name(),
                    super::super::report::a(&other)
                );
                Err(self.error(Code::NotAPointer, at, message))
            }
        }
    }

    /// The mask, one bit per element.
    pub(super) fn mask_arg(&mut self, call: &Call) -> Eval<Option<Tensor>> {
        if !call.has("mask") {
            return Ok(None);
        }
        let at = call.place("mask");
        let value = call.value("mask");
        if let Value::Unknown | Value::Const(Const::Symbol(_)) = value {
            let unknown = Tensor::new(Elem::BOOL, Shape::unknown());
            return if self.emitting() { Err(Stop::Unknown) } else { Ok(Some(unknown)) };
        }
        let mask = self.materialize(&value, at)?;
        match mask.elem {
            Elem::Num(DType::Int1) => Ok(Some(mask)),
            Elem::Unknown => Ok(Some(Tensor { elem: Elem::BOOL, ir: None, ..mask })),
            elem => {
                let diagnostic = Diagnostic::new(
                    Code::MaskType,
                    at,
                    format!("a mask must be `int1`, but this is `{elem}`"),
                )
                .with_note("compare, as in `mask=offsets < n`");
                Err(self.emit_diagnostic(diagnostic))
            }
        }
    }

    /// The shape of pointers and mask together.
    pub(super) fn mask_shape(
        &mut self,
        shape: &Shape,
        mask: &Tensor,
        at: FileRange,
        places: (FileRange, FileRange),
    ) -> Eval<Shape> {
        let known = self.quietly(|this| this.broadcast_shapes(shape, &mask.shape, at, places));
        if known.is_ok() {
            return self.broadcast_shapes(shape, &mask.shape, at, places);
        }
        Err(self.unfit_mask(shape, mask, places))
    }

    /// The error that `mask` does not broadcast to the pointers' shape.
    pub(super) fn unfit_mask(
        &mut self,
        shape: &Shape,
        mask: &Tensor,
        places: (FileRange, FileRange),
    ) -> Stop {
        let message = format!(
            "the mask has shape {}, which does not fit the pointers' shape {}",
            shape_text(&mask.shape),
            shape_text(shape)
        );
        let diagnostic = Diagnostic::new(Code::MaskShape, places.1, message)
            .with_related(places.0, format!("the pointers have shape {}", shape_text(shape)));
        self.emit_diagnostic(diagnostic)
    }

    /// The error that the values elsewhere have more elements than mask and pointers.
    fn narrow_mask(&mut self, mask: &Tensor, wider: &Shape, call: &Call) -> Stop {
        let message = format!(
            "the mask has shape {}, but `other` makes this a load of shape {}",
            shape_text(&mask.shape),
            shape_text(wider)
        );
        let diagnostic = Diagnostic::new(Code::MaskShape, call.place("other"), message);
        self.emit_diagnostic(diagnostic)
    }

    fn other_arg(&mut self, call: &Call, ptr: &Tensor, masked: bool) -> Eval<Option<Tensor>> {
        if !call.has("other") {
            return Ok(None);
        }
        let at = call.place("other");
        // An unknown mask may be `None` at launch.
        if !masked {
            let diagnostic = Diagnostic::new(
                Code::OtherWithoutMask,
                at,
                "`other` has no effect without `mask`, and Triton rejects it",
            )
            .with_note("add `mask=...`, or drop `other`");
            return Err(self.emit_diagnostic(diagnostic));
        }
        match call.value("other") {
            Value::Unknown if !self.emitting() => Ok(None),
            Value::Const(constant) => match ptr.elem.pointee() {
                Elem::Num(dtype) if !constant.is_symbol() => {
                    let literal = Value::Const(constant.clone());
                    let own = super::super::cast::literal_dtype(&constant);
                    // Converting the literal at once gives the same value as converting at run
                    // time, except for integers that would wrap.
                    let integer_for_fp8 = dtype.is_fp8() && own.is_some_and(DType::is_int);
                    if own.is_some() && dtype.is_float() && !integer_for_fp8 {
                        return Ok(Some(self.scalar_constant(&constant, dtype)));
                    }
                    self.materialize(&literal, at).map(Some)
                }
                _ => self.materialize(&Value::Const(constant), at).map(Some),
            },
            value => self.materialize(&value, at).map(Some),
        }
    }

    fn scalar_only(&mut self, value: Option<&Tensor>, what: &str, call: &Call) -> Eval<()> {
        let Some(tile) = value.filter(|value| value.is_block()) else { return Ok(()) };
        let message =
            format!("`{what}` has shape {}, but the pointer is a scalar", shape_text(&tile.shape));
        let code = if what == "value" { Code::StoreShape } else { Code::MaskShape };
        let diagnostic = Diagnostic::new(code, call.place(what), message)
            .with_related(call.place_nth(0), "this is one pointer; add a tile of offsets to it");
        Err(self.emit_diagnostic(diagnostic))
    }

    fn refuse_boundary_check(&mut self, call: &Call) -> Eval<()> {
        let counts = |name: &str| match call.given(name) {
            Some(Value::Tuple(tuple)) => !tuple.items.is_empty(),
            Some(Value::Const(constant)) => constant.truth() == Some(true),
            Some(Value::Tensor(tensor)) => !tensor.is_open(),
            None | Some(Value::Unknown) => false,
            Some(_) => true,
        };
        let (given, padded) = (counts("boundary_check"), counts("padding_option"));
        let unknown = matches!(call.nth(0), Value::Tensor(tensor) if tensor.elem.is_unknown());
        if (!given && !padded) || unknown {
            return Ok(());
        }
        let name = if given { "boundary_check" } else { "padding_option" };
        let diagnostic = Diagnostic::new(
            Code::BadOption,
            call.place(name),
            format!("`{name}` works only with block pointers"),
        )
        .with_note("use `mask` (and `other`) with plain pointers");
        Err(self.emit_diagnostic(diagnostic))
    }

    pub(super) fn load_hints(&mut self, call: &Call) -> Eval<ir::LoadHints> {
        let cache = self.option(call, "cache_modifier", options::LOAD_CACHE)?;
        let evict = self.eviction(call)?;
        let numbers = !self.is_3_9();
        let volatile = self.flag_among(call, "volatile", false, |value| match value {
            Const::Bool(_) => true,
            Const::None | Const::Int(_) | Const::Float(_) => numbers,
            _ => false,
        });
        let volatile = volatile.or_else(unless_reported(false))?;
        // A pipelined load becomes an asynchronous copy, which takes them all.
        if self.frames.iter().all(|frame| frame.loops == 0) {
            let volatile = volatile.then_some("volatile");
            self.check_exclusive(call, cache.unwrap_or(CacheModifier::Default), evict, volatile);
        }
        Ok(ir::LoadHints { cache: cache.unwrap_or(CacheModifier::Default), evict, volatile })
    }

    pub(super) fn store_hints(&mut self, call: &Call) -> Eval<ir::StoreHints> {
        let cache = self.option(call, "cache_modifier", options::STORE_CACHE)?;
        let evict = self.eviction(call)?;
        let cache = cache.unwrap_or(CacheModifier::Default);
        self.check_exclusive(call, cache, evict, None);
        Ok(ir::StoreHints { cache, evict })
    }

    /// Reports options of which PTX takes one: ptxas refuses what Triton makes of several.
    fn check_exclusive(
        &mut self,
        call: &Call,
        cache: CacheModifier,
        evict: Eviction,
        volatile: Option<&'static str>,
    ) {
        // Triton 3.6 leaves `.cv` out of the PTX.
        let unsaid =
            cache == CacheModifier::Default || cache == CacheModifier::Cv && !self.is_3_9();
        let cache = (!unsaid).then_some("cache_modifier");
        let evict = (evict != Eviction::Normal).then_some("eviction_policy");
        let given: Vec<&'static str> = [volatile, cache, evict].into_iter().flatten().collect();
        let [first, .., last] = given.as_slice() else { return };
        let what = call.builtin.display_name();
        let message = format!(
            "PTX has no `{what}` with both `{first}` and `{last}`: Triton fails to assemble this \
             for NVIDIA GPUs"
        );
        let note = format!("leave out one of them; Tile keeps `{first}`");
        let found = Diagnostic::new(Code::ExclusiveOptions, call.place(last), message);
        self.emit_diagnostic(found.with_note(note));
    }

    fn eviction(&mut self, call: &Call) -> Eval<Eviction> {
        let evict = self.option(call, "eviction_policy", options::EVICTION)?;
        Ok(evict.unwrap_or(Eviction::Normal))
    }

    /// A compile-time string that names one of some choices; `None` where it was not given.
    pub(super) fn option<T: Copy>(
        &mut self,
        call: &Call,
        name: &str,
        choices: &[Choice<T>],
    ) -> Eval<Option<T>> {
        match call.given(name) {
            None | Some(Value::Const(Const::None | Const::Symbol(_)) | Value::Unknown) => Ok(None),
            // What counts as false counts as not given.
            Some(Value::Const(Const::Int(0) | Const::Bool(false)))
                if READ_WHERE_TRUE.contains(&name) =>
            {
                Ok(None)
            }
            Some(Value::Const(Const::Str(text))) => {
                let version = self.version;
                let mut known = choices.iter().filter(|choice| choice.since <= version);
                let said = options::canonical(name, text, version);
                if let Some(choice) = known.clone().find(|choice| choice.text == said) {
                    return Ok(Some(choice.value));
                }
                let names: Vec<String> =
                    known.by_ref().map(|choice| format!("'{}'", choice.text)).collect();
                let message = format!("`{name}` is one of {}, not '{text}'", names.join(", "));
                Err(self.error(Code::BadOption, call.place(name), message))
            }
            Some(Value::Tensor(argument)) if self.may_be_none(argument) => Ok(None),
            Some(other) => {
                let value = other.clone();
                let what = format!("`{name}`");
                Err(self.not_constexpr(Code::NotConstexpr, &what, &value, call.place(name)))
            }
        }
    }

    /// True for an argument of the kernel that is `None` where a launch leaves it out.
    fn may_be_none(&self, argument: &Tensor) -> bool {
        let Some(name) = argument_behind(&self.origins, argument.origin) else { return false };
        let Some(kernel) = self.frames.first().and_then(|frame| frame.function.as_ref()) else {
            return false;
        };
        let body = &kernel.function.body;
        let mut params = kernel.function.params.iter();
        let default = params.find(|param| param.name == *name).and_then(|param| param.default);
        let is_none = |id| matches!(body.exprs[id], Expr::Literal(Literal::None));
        argument.is_open() && default.is_some_and(is_none)
    }

    pub(super) fn store(&mut self, call: &Call) -> Eval<Value> {
        if let Value::BlockPtr(block) = call.nth(0) {
            return self.store_block(&block, call);
        }
        let hints = self.store_hints(call)?;
        let ptr = self.pointer_arg(call)?;
        self.refuse_boundary_check(call)?;
        self.refuse_constant(&ptr, call)?;
        let value = match call.nth(1) {
            Value::Unknown if !self.emitting() => Tensor::new(Elem::Unknown, Shape::unknown()),
            value => self.materialize(&value, call.place_nth(1))?,
        };
        let mask = self.mask_arg(call)?;
        if ptr.is_scalar() {
            self.scalar_only(Some(&value), "value", call)?;
            self.scalar_only(mask.as_ref(), "mask", call)?;
        }
        self.check_store_shape(&ptr, &value, mask.as_ref(), call)?;
        let elem = ptr.elem.pointee();
        let value = self.cast(&value, elem, call.place_nth(1))?;
        self.store_at(&ptr, &value, mask.as_ref(), hints)?;
        Ok(Value::void())
    }

    /// A store at the pointers' shape. Memory of `int1` holds bytes.
    pub(super) fn store_at(
        &mut self,
        ptr: &Tensor,
        value: &Tensor,
        mask: Option<&Tensor>,
        hints: ir::StoreHints,
    ) -> Eval<()> {
        let shape = ptr.shape.clone();
        let value = if value.elem == Elem::BOOL {
            self.cast(value, Elem::Num(DType::Int8), FileRange::default())?
        } else {
            value.clone()
        };
        let value = self.expand_to(&value, &shape);
        let mask = mask.map(|mask| self.expand_to(mask, &shape));
        self.effect(Opcode::Store, &[Some(ptr), Some(&value), mask.as_ref()], hints);
        Ok(())
    }

    pub(super) fn refuse_constant(&mut self, ptr: &Tensor, call: &Call) -> Eval<()> {
        if ptr.elem.ptr().is_some_and(|pointer| pointer.constant) {
            let diagnostic = Diagnostic::new(
                Code::ConstPointer,
                call.place_nth(0),
                "this pointer is `tl.const`: nothing can be stored through it",
            );
            let diagnostic = self.with_reasons(diagnostic, ptr.origin);
            return Err(self.emit_diagnostic(Diagnostic { fixes: Vec::new(), ..diagnostic }));
        }
        Ok(())
    }

    /// Value and mask broadcast to the pointers, not the other way round.
    fn check_store_shape(
        &mut self,
        ptr: &Tensor,
        value: &Tensor,
        mask: Option<&Tensor>,
        call: &Call,
    ) -> Eval<()> {
        if !ptr.is_block() {
            return Ok(());
        }
        let places = (call.place_nth(0), call.place_nth(1));
        let mut shape = self.broadcast_shapes(&ptr.shape, &value.shape, call.at, places)?;
        if let Some(mask) = mask {
            let places = (call.place_nth(0), call.place("mask"));
            shape = self.mask_shape(&shape, mask, call.at, places)?;
        }
        let grows = match (ptr.shape.dims(), shape.dims()) {
            (Some(before), Some(after)) => {
                before.len() != after.len()
                    || before
                        .iter()
                        .zip(after)
                        .any(|(b, a)| b.int() == Some(1) && a.int().is_some_and(|a| a != 1))
            }
            _ => false,
        };
        if grows {
            let message = format!(
                "the pointers have shape {}, but value and mask need {}",
                shape_text(&ptr.shape),
                shape_text(&shape)
            );
            let diagnostic = Diagnostic::new(Code::StoreShape, call.at, message)
                .with_related(
                    places.0,
                    format!("these pointers have shape {}", shape_text(&ptr.shape)),
                )
                .with_related(
                    places.1,
                    format!("this value has shape {}", shape_text(&value.shape)),
                )
                .with_note(
                    "pointers of a store are not broadcast; give each element its own pointer",
                );
            return Err(self.emit_diagnostic(diagnostic));
        }
        Ok(())
    }

    /// A pointer to the same memory with elements of another type.
    pub(super) fn reinterpret_pointer(&mut self, ptr: &Tensor, to: DType) -> Tensor {
        match ptr.elem {
            Elem::Ptr(pointer) => self.pointer_cast(ptr, pointer_like(pointer, to)),
            _ => ptr.clone(),
        }
    }
}

/// A default for what is not known, while errors stay errors.
fn unless_reported<T>(default: T) -> impl FnOnce(Stop) -> Eval<T> {
    move |stop| match stop {
        Stop::Unknown => Ok(default),
        Stop::Reported => Err(stop),
    }
}

/// Whether a mask of pointers of one shape fits those of another that these were broadcast to.
fn mask_follows(pointers: &Shape, wider: &Shape) -> bool {
    pointers.rank() == Some(0) || relate_shapes(pointers, wider) != Relation::Different
}
