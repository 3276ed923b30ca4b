//! Attributes of values, and what is said of one that a value does not have. Those of modules, of
//! aggregates and of types stand in modules of their own.

use std::sync::Arc;

use smallvec::SmallVec;

use super::display::{const_text, tuple_type};
use super::dtype::Elem;
use super::symbolic::Sym;
use super::value::{
    BlockPtr, Const, Descriptor, FunctionKind, FunctionRef, Role, Shape, Tensor, Tuple, Value,
};
use super::{Evaluator, Mode, Source};
use crate::builtins::{self, attributes};
use crate::diagnostic::{Code, Diagnostic, suggest};
use crate::hir::{Expr, ExprId, Name};
use crate::source::{FileRange, TextRange};

impl Evaluator<'_> {
    /// `object.attr`.
    pub(super) fn attribute(&mut self, object: &Value, attr: &Name, at: FileRange) -> Value {
        match object {
            Value::Module(module) => self.module_member(module, attr, at),
            Value::Tensor(tensor) => self.tensor_attribute(tensor, attr, at),
            Value::Const(constant) => self.const_attribute(constant, attr, at),
            Value::Tuple(tuple) => self.tuple_attribute(tuple, attr, at),
            Value::Object(fields) => self.object_attribute(fields, attr, object, at),
            Value::Descriptor(descriptor) => self.descriptor_attribute(descriptor, attr, at),
            Value::BlockPtr(pointer) => self.block_ptr_attribute(pointer, attr, at),
            Value::Function(function)
                if &**attr == "fn" && matches!(function.kind.role, Role::Jit | Role::Constexpr) =>
            {
                let kind = FunctionKind { role: Role::Wrapped, ..function.kind };
                Value::Function(FunctionRef { kind, ..function.clone() })
            }
            Value::Function(function) if &**attr == "__name__" => {
                Value::str(function.function.name.clone())
            }
            Value::Builtin(builtin) => match (builtin.name, &**attr) {
                ("tensor", name) if let Some(method) = builtins::method(name) => {
                    Value::Builtin(method)
                }
                ("tensor_descriptor", name)
                    if let Some(method) = builtins::descriptor_method(name) =>
                {
                    Value::Builtin(method)
                }
                ("PropagateNan", "ALL") => Value::Const(Const::Enum("PropagateNan.ALL")),
                ("PropagateNan", "NONE") => Value::Const(Const::Enum("PropagateNan.NONE")),
                _ => Value::Unknown,
            },
            Value::Class(class) if let Some(kind) = self.enumeration(class) => {
                self.member(class, kind, attr, at)
            }
            Value::Class(class) => self.attribute_of_class(class, attr, at),
            _ => Value::Unknown,
        }
    }

    fn tuple_attribute(&mut self, tuple: &Arc<Tuple>, attr: &Name, at: FileRange) -> Value {
        match &**attr {
            "values" => Value::tuple(tuple.items.clone()),
            // Of the constexpr that holds it.
            "value" if tuple.held.is_python() => Value::Tuple(tuple.clone()),
            "type" => match tuple_type(tuple, self.is_3_9()) {
                Some(text) => Value::Const(Const::Opaque(text.into())),
                None => self.fresh_const(),
            },
            _ => {
                let fields = tuple.named.as_ref().map(|named| &named.1);
                match fields.and_then(|fields| fields.iter().position(|name| name == attr)) {
                    Some(index) => tuple.items.get(index).cloned().unwrap_or(Value::Unknown),
                    None => self.no_attribute(&Value::Tuple(tuple.clone()), attr, at),
                }
            }
        }
    }

    fn descriptor_attribute(
        &mut self,
        descriptor: &Arc<Descriptor>,
        attr: &Name,
        at: FileRange,
    ) -> Value {
        let (elem, block) = (descriptor.base.elem.pointee(), &descriptor.block);
        match &**attr {
            "shape" => tuple_of(&descriptor.shape),
            "strides" => tuple_of(&descriptor.strides),
            "block_shape" => shape_tuple(block),
            "dtype" => Value::Const(Const::DType(elem)),
            "type" if descriptor.base.elem.is_unknown() || block.rank().is_none() => {
                self.fresh_const()
            }
            "type" => Value::Const(Const::DescriptorType(elem, block.clone())),
            "block_type" => Value::Const(Const::BlockType(elem, block.clone())),
            "handle" => Value::Unknown,
            name => {
                let object = Value::Descriptor(descriptor.clone());
                match builtins::descriptor_method(name) {
                    Some(builtin) => bound(&object, builtin),
                    None => self.no_attribute(&object, attr, at),
                }
            }
        }
    }

    fn block_ptr_attribute(
        &mut self,
        pointer: &Arc<BlockPtr>,
        attr: &Name,
        at: FileRange,
    ) -> Value {
        match &**attr {
            "dtype" | "type" => {
                let elem = pointer.base.elem.pointee();
                Value::Const(Const::BlockPtrType(elem, pointer.block.clone()))
            }
            "shape" => shape_tuple(&pointer.block),
            name => {
                let object = Value::BlockPtr(pointer.clone());
                match builtins::method(name) {
                    Some(builtin) => bound(&object, builtin),
                    None => self.no_attribute(&object, attr, at),
                }
            }
        }
    }

    /// Before Triton 3.9 a launch asks global constexprs themselves for the attributes that
    /// functions read, and what they hold for none.
    pub(super) fn is_hidden_by_constexpr(
        &mut self,
        source: Source<'_>,
        object: ExprId,
        attr: &Name,
    ) -> bool {
        let Expr::Name(name) = &source.body.exprs[object] else { return false };
        let frame = self.frame();
        if self.is_3_9() || frame.mode != Mode::Jit || frame.locals.contains_key(name) {
            return false;
        }
        let (file, scope, name) = (frame.file, frame.scope.clone(), name.clone());
        let Some(global) = self.global(file, &scope, &name) else { return false };
        let own = matches!(&**attr, "value" | "type") || attr.starts_with('_');
        let held = match &global.value {
            // A named tuple has its fields.
            Value::Tuple(tuple) => tuple.named.as_ref().is_none_or(|named| !named.1.contains(attr)),
            value => matches!(value, Value::Const(_) | Value::Class(_)),
        };
        global.constexpr && global.item.is_some() && held && !own
    }

    /// Reports what [`Self::is_hidden_by_constexpr`] finds.
    pub(super) fn hidden_by_constexpr(
        &mut self,
        object: &Value,
        attr: &Name,
        at: FileRange,
    ) -> Value {
        let text = super::report::a(object);
        let message = format!(
            "before Triton 3.9 a global constexpr has no attribute `{attr}`; it holds {text}"
        );
        let diagnostic = Diagnostic::new(Code::NoAttribute, at, message)
            .with_note("bind the constexpr to a local `tl.constexpr` variable first");
        self.emit_diagnostic(diagnostic);
        Value::Unknown
    }

    fn tensor_attribute(&mut self, tensor: &Tensor, attr: &Name, at: FileRange) -> Value {
        let open = tensor.is_open();
        match &**attr {
            "dtype" if open => Value::Const(Const::DType(Elem::Unknown)),
            "dtype" => Value::Const(Const::DType(tensor.elem)),
            "shape" if open => Value::Unknown,
            "shape" => shape_tuple(&tensor.shape),
            "type" if tensor.is_scalar() => Value::Const(Const::DType(tensor.elem)),
            "type" => Value::Const(Const::BlockType(tensor.elem, tensor.shape.clone())),
            "numel" => match tensor.shape.numel() {
                Some(numel) if !open => Value::Const(Const::from_sym(numel)),
                _ => self.fresh_const(),
            },
            "T" if open => Value::Unknown,
            "T" => {
                let tensor = tensor.clone();
                let dims = [1, 0];
                self.permute(&tensor, &dims, at).map_or(Value::Unknown, Value::Tensor)
            }
            "handle" => Value::Unknown,
            name => {
                let object = Value::Tensor(tensor.clone());
                if open && builtins::descriptor_method(name).is_some() {
                    return Value::Unknown;
                }
                match builtins::method(name) {
                    Some(builtin) => bound(&object, builtin),
                    None if open => Value::Unknown,
                    None => self.no_attribute(&object, attr, at),
                }
            }
        }
    }

    fn const_attribute(&mut self, constant: &Const, attr: &Name, at: FileRange) -> Value {
        match (constant, &**attr) {
            (Const::Member(member), _) => self.member_attribute(member, attr, at),
            (Const::DescriptorType(elem, shape), "block_type") => {
                Value::Const(Const::BlockType(*elem, shape.clone()))
            }
            (Const::Opaque(_) | Const::DescriptorType(..), "value") => Value::Unknown,
            (_, "value") => Value::Const(constant.clone()),
            (Const::Symbol(_), _) => Value::Unknown,
            (Const::Int(_) | Const::Bool(_) | Const::Float(_) | Const::Str(_), "type")
                if self.frame().mode == Mode::Jit =>
            {
                let text = format!("constexpr_type[{}]", const_text(constant));
                Value::Const(Const::Opaque(text.into()))
            }
            (Const::Str(_), name)
                if let Some(method) = builtins::member(builtins::STRING, name) =>
            {
                bound(&Value::Const(constant.clone()), method)
            }
            (Const::Int(_) | Const::Bool(_), name)
                if let Some(method) = builtins::member(builtins::INTEGER, name) =>
            {
                bound(&Value::Const(constant.clone()), method)
            }
            (Const::DType(_) | Const::BlockType(..) | Const::BlockPtrType(..), _) => {
                self.type_attribute(constant, attr, at)
            }
            (Const::Str(_), _) if self.frame().mode == Mode::Jit => Value::Unknown,
            (Const::Int(_) | Const::Bool(_) | Const::Float(_) | Const::None, name)
                if self.frame().mode == Mode::Jit =>
            {
                let object = Value::Const(constant.clone());
                // Its type as a value of the language, which only tests of the language ask for.
                if &**attr == "type" {
                    return Value::Unknown;
                }
                if builtins::method(name).is_some() {
                    return self.method_of_constant(&object, attr, at);
                }
                self.no_attribute(&object, attr, at)
            }
            _ => Value::Unknown,
        }
    }

    /// Compile-time numbers have no methods: `n.to(...)` fails when `n` is one at launch.
    fn method_of_constant(&mut self, object: &Value, attr: &Name, at: FileRange) -> Value {
        let text = super::display::type_text(object);
        let diagnostic = Diagnostic::new(
            Code::NoAttribute,
            at,
            format!("a compile-time value has no method `{attr}`; this is `{text}`"),
        )
        .with_note(format!(
            "integer arguments that equal 1 become compile-time values; `tl.cast`, `tl.full` or `do_not_specialize` avoid it, or write `tl.{attr}(...)`"
        ));
        self.emit_diagnostic(diagnostic);
        Value::Unknown
    }

    /// Reports an attribute that a value does not have.
    pub(super) fn no_attribute(&mut self, object: &Value, attr: &Name, at: FileRange) -> Value {
        let private = attr.starts_with('_') && !matches!(object, Value::Tuple(_));
        if self.frame().mode == Mode::Python || private {
            return Value::Unknown;
        }
        let name_at = last_name(attr, at);
        if self.is_reported(Code::NoAttribute, name_at) {
            return Value::Unknown;
        }
        let text = super::display::type_text(object);
        let mut diagnostic = Diagnostic::new(
            Code::NoAttribute,
            name_at,
            format!("`{text}` has no attribute `{attr}`"),
        );
        if let Value::Tensor(_) = object {
            let names: Vec<&str> = builtins::methods()
                .iter()
                .map(|builtin| builtin.name)
                .chain(attributes::OF_TENSORS.iter().map(|attribute| attribute.name))
                .collect();
            if let Some(instead) = builtins::instead(attr) {
                diagnostic = diagnostic.with_note(format!("use {instead}"));
            } else if let Some(best) = suggest(attr, names.iter().copied()) {
                diagnostic = diagnostic.with_suggestion(best);
            }
        }
        self.emit_diagnostic(diagnostic);
        Value::Unknown
    }
}

/// Where `attr` stands at the end of an expression.
pub(super) fn last_name(attr: &Name, at: FileRange) -> FileRange {
    let start = at.range.end.saturating_sub(attr.len() as u32);
    FileRange { file: at.file, range: TextRange { start, end: at.range.end } }
}

/// The method `builtin` of `object`.
pub(super) fn bound(object: &Value, builtin: &'static builtins::Builtin) -> Value {
    Value::Bound(Arc::new((object.clone(), Value::Builtin(builtin))))
}

fn tuple_of(tensors: &[Tensor]) -> Value {
    Value::tuple(tensors.iter().cloned().map(Value::Tensor).collect())
}

/// A shape as the tuple of constexprs that kernels see.
pub(super) fn shape_tuple(shape: &Shape) -> Value {
    match shape.dims() {
        Some(dims) => Value::tuple(
            dims.iter().map(|extent| Value::Const(Const::from_sym(extent.clone()))).collect(),
        ),
        None => Value::Unknown,
    }
}

/// The extents that a value names: a tuple of compile-time integers, or one.
pub(super) fn extents_of(value: &Value) -> Option<SmallVec<[Sym; 3]>> {
    match value {
        Value::Tuple(tuple) => {
            tuple.items.iter().map(|item| item.as_const().and_then(Const::to_sym)).collect()
        }
        Value::Const(constant) => Some(SmallVec::from_iter([constant.to_sym()?])),
        _ => None,
    }
}

/// A method without arguments that returns `result`.
pub(super) fn answering(result: Value) -> Value {
    Value::Bound(Arc::new((result, Value::Builtin(builtins::answer()))))
}
