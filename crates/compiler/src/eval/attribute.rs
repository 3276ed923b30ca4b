//! Attributes and subscripts.

use std::sync::Arc;

use smallvec::SmallVec;

use super::call::Argument;
use super::display::const_text;
use super::dtype::{DType, Elem};
use super::names::{known_member, suggest};
use super::symbolic::Sym;
use super::value::{
    ClassRef, Const, FunctionKind, FunctionRef, ModuleRef, Object, Role, Shape, Tensor, Tuple,
    Value,
};
use super::{Evaluator, Mode, Source, Stop};
use crate::builtins::{self, attributes};
use crate::diagnostic::{Code, Diagnostic, Severity, TextEdit};
use crate::hir::{Class, Expr, ExprId, Function, Name};
use crate::project::{self, Resolution, Scope};
use crate::source::{FileId, FileRange, TextRange};

impl Evaluator<'_> {
    /// `object.attr`.
    pub(super) fn attribute(&mut self, object: &Value, attr: &Name, at: FileRange) -> Value {
        match object {
            Value::Module(module) => self.module_member(module, attr, at),
            Value::Tensor(tensor) => self.tensor_attribute(tensor, attr, at),
            Value::Const(constant) => self.const_attribute(constant, attr, at),
            Value::Tuple(tuple) if &**attr == "values" => Value::tuple(tuple.items.clone()),
            Value::Tuple(tuple) if &**attr == "type" => match tuple_type(tuple, self.is_3_9()) {
                Some(text) => Value::Const(Const::Opaque(text.into())),
                None => self.fresh_const(),
            },
            Value::Tuple(tuple) => match &tuple.named {
                Some(named) => match named.1.iter().position(|name| name == attr) {
                    Some(index) => tuple.items.get(index).cloned().unwrap_or(Value::Unknown),
                    None => self.no_attribute(object, attr, at),
                },
                None => self.no_attribute(object, attr, at),
            },
            Value::Object(fields) => self.object_attribute(fields, attr, object, at),
            Value::Descriptor(desc) => match &**attr {
                "shape" => tuple_of(&desc.shape),
                "strides" => tuple_of(&desc.strides),
                "block_shape" => shape_tuple(&desc.block),
                "dtype" => Value::Const(Const::DType(desc.base.elem.pointee())),
                "type" if desc.base.elem.is_unknown() || desc.block.rank().is_none() => {
                    self.fresh_const()
                }
                "type" => {
                    let elem = desc.base.elem.pointee();
                    Value::Const(Const::DescriptorType(elem, desc.block.clone()))
                }
                "block_type" => {
                    Value::Const(Const::BlockType(desc.base.elem.pointee(), desc.block.clone()))
                }
                "handle" => Value::Unknown,
                name => match descriptor_method(name) {
                    Some(builtin) => bound(object, builtin),
                    None => self.no_attribute(object, attr, at),
                },
            },
            Value::BlockPtr(block) => match &**attr {
                "dtype" | "type" => {
                    let elem = block.base.elem.pointee();
                    Value::Const(Const::BlockPtrType(elem, block.block.clone()))
                }
                "shape" => shape_tuple(&block.block),
                name => match builtins::method(name) {
                    Some(builtin) => bound(object, builtin),
                    None => self.no_attribute(object, attr, at),
                },
            },
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
                ("tensor_descriptor", name) if let Some(method) = descriptor_method(name) => {
                    Value::Builtin(method)
                }
                ("PropagateNan", "ALL") => Value::Const(Const::Enum("PropagateNan.ALL")),
                ("PropagateNan", "NONE") => Value::Const(Const::Enum("PropagateNan.NONE")),
                _ => Value::Unknown,
            },
            Value::Class(class) if let Some(kind) = self.enumeration(class) => {
                self.member(class, kind, attr, at)
            }
            Value::Class(class) => {
                let method = class.class.methods.iter().find(|method| method.name == *attr);
                match method {
                    None if &**attr == "_make"
                        && project::named_tuple_fields(&class.class).is_some() =>
                    {
                        bound(object, builtins::make())
                    }
                    Some(method) if is_decorated(method, "classmethod") => Value::Unknown,
                    // Nor has the class of an aggregate properties.
                    Some(method)
                        if is_decorated(method, "property")
                            && class.class.bases.is_empty()
                            && !class.class.decorators.is_empty() =>
                    {
                        self.no_attribute(object, attr, at)
                    }
                    Some(method) => self.method_of(class, method),
                    None => self.class_attribute(class, attr),
                }
            }
            _ => Value::Unknown,
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

    /// What the decorators of a method make of it: methods of aggregates are jit functions.
    pub(super) fn method_kind(&self, file: FileId, method: &Function) -> FunctionKind {
        let scope = Scope { file, path: &[] };
        let jit = method.decorators.iter().any(|&decorator| {
            let callee = match &method.body.exprs[decorator] {
                Expr::Call { callee, .. } => *callee,
                _ => decorator,
            };
            let meaning = project::resolve_expr(self.project, scope, &method.body, callee);
            meaning == Resolution::Triton("jit".into())
        });
        let known = |names: &[&str]| {
            method.decorators.iter().any(|&decorator| {
                matches!(
                    project::resolve_expr(self.project, scope, &method.body, decorator),
                    Resolution::Triton(path) if names.contains(&&*path)
                )
            })
        };
        let plain = method.decorators.iter().all(|&decorator| {
            matches!(&method.body.exprs[decorator], Expr::Name(name) if &**name == "staticmethod")
        });
        let role = if jit {
            Role::Jit
        } else if known(&["constexpr_function", "language.constexpr_function"]) {
            Role::Constexpr
        } else if known(&["language.builtin"]) {
            Role::Builtin
        } else if plain {
            Role::Host
        } else {
            Role::Unknown
        };
        FunctionKind { role, noinline: false, must_use: false }
    }

    fn module_member(&mut self, module: &ModuleRef, attr: &Name, at: FileRange) -> Value {
        match module {
            ModuleRef::Known(path) => match known_member(path, attr) {
                Some(Value::Builtin(builtin)) if !self.is_exported(path, builtin) => {
                    self.missing_in_version(builtin, at);
                    Value::Unknown
                }
                Some(value) => value,
                None => match self.shared_member(path, attr) {
                    Some(value) => value,
                    None => self.unknown_member(path, attr, at),
                },
            },
            ModuleRef::File(file) => {
                let resolution = Resolution::File(*file);
                let member =
                    project::resolve_member_under(self.project, self.version, &resolution, attr);
                if member == Resolution::Undefined {
                    return self.missing_member(*file, attr, at);
                }
                self.resolved(&member).map_or(Value::Unknown, |global| global.value)
            }
        }
    }

    /// Reports a name that nothing in the module `file` binds.
    fn missing_member(&mut self, file: FileId, attr: &Name, at: FileRange) -> Value {
        let binds_by_text = |text: Arc<str>| MAKES_NAMES.iter().any(|way| text.contains(way));
        let frame = self.frame();
        if frame.mode != Mode::Jit
            || attr.starts_with('_')
            || self.project.text(file).is_none_or(binds_by_text)
        {
            return Value::Unknown;
        }
        let start = at.range.end.saturating_sub(attr.len() as u32);
        let name_at = FileRange { file: at.file, range: TextRange { start, end: at.range.end } };
        if self.is_reported(Code::NoAttribute, name_at) {
            return Value::Unknown;
        }
        let path = self.project.path(file);
        let name = path.rsplit('/').next().unwrap_or(&path);
        let message = format!("nothing in `{name}` is called `{attr}`");
        let mut diagnostic = Diagnostic::new(Code::NoAttribute, name_at, message);
        let module = self.project.module(file);
        let items = module.iter().flat_map(|module| &module.items);
        let outer = items.filter(|item| item.scope.is_empty()).map(|item| &*item.name);
        if let Some(best) = suggest(attr, outer) {
            diagnostic.message.push_str(&format!("; did you mean `{best}`?"));
            let edit = TextEdit { at: name_at, text: best.to_owned() };
            diagnostic = diagnostic.with_fix(format!("Change to `{best}`"), vec![edit]);
        }
        self.emit_diagnostic(diagnostic);
        Value::Unknown
    }

    /// A member of the language that another module of the package has too, under the same name.
    /// Modules whose members are all in the table have no others.
    fn shared_member(&mut self, path: &str, attr: &Name) -> Option<Value> {
        if is_listed(path, attr) {
            return None;
        }
        let module = path.strip_prefix(builtins::TRITON)?.strip_prefix('.')?;
        match project::triton::member(module, attr) {
            Resolution::Triton(canonical) if canonical.rsplit_once('.')?.0 != module => {
                Some(self.resolved(&Resolution::Triton(canonical))?.value)
            }
            _ => None,
        }
    }

    /// Whether the module at `path` has the builtin in the version that is compiled for.
    pub(super) fn is_exported(&self, path: &str, builtin: &builtins::Builtin) -> bool {
        builtin.exists_in(self.version)
            && (path != builtins::LANGUAGE || builtin.exported <= self.version)
    }

    /// The name of what is called, if it is a function of NumPy.
    pub(super) fn numpy_function(&mut self, source: Source<'_>, callee: ExprId) -> Option<Name> {
        let Expr::Attribute { value, attr } = &source.body.exprs[callee] else { return None };
        if builtins::instead(attr).is_none() && !builtins::is_shared(attr) {
            return None;
        }
        let module = self.quietly(|this| this.expr(source, *value));
        let Value::Module(ModuleRef::Known(path)) = &module else { return None };
        (&**path == builtins::NUMPY).then(|| attr.clone())
    }

    /// NumPy's functions compute with compile-time values, but not with what exists at run time.
    pub(super) fn check_numpy_call(&mut self, name: &Name, at: FileRange, given: &[Argument]) {
        // Scalars may be arguments that are compile-time values at a launch.
        let at_run_time = |argument: &Argument| match &argument.value {
            Value::Tensor(tensor) => tensor.is_block() || tensor.ir.is_some(),
            _ => false,
        };
        if given.iter().any(at_run_time) {
            self.host_member(builtins::NUMPY, name, at);
        }
    }

    /// Reports a function of PyTorch or NumPy that computes with tensors of the host.
    fn host_member(&mut self, path: &str, attr: &Name, at: FileRange) {
        let note = match builtins::instead(attr) {
            Some(instead) => format!("in kernels, use {instead}"),
            None if builtins::is_shared(attr) => format!("in kernels it is `tl.{attr}`"),
            None => return,
        };
        let frame = self.frame();
        if frame.mode != Mode::Jit || frame.in_default || self.is_reported(Code::HostFunction, at) {
            return;
        }
        let message =
            format!("`{path}.{attr}` works on tensors of the host; kernels cannot use it");
        let diagnostic = Diagnostic::new(Code::HostFunction, at, message).with_note(note);
        self.emit_diagnostic(diagnostic);
    }

    fn unknown_member(&mut self, path: &str, attr: &Name, at: FileRange) -> Value {
        if matches!(path, builtins::TORCH | builtins::TORCH_FUNCTIONAL) {
            self.host_member(path, attr, at);
            return Value::Unknown;
        }
        if !is_listed(path, attr) || self.frame().mode == Mode::Python {
            return Value::Unknown;
        }
        let start = at.range.end.saturating_sub(attr.len() as u32);
        let name_at = FileRange { file: at.file, range: TextRange { start, end: at.range.end } };
        if self.is_reported(Code::UnknownBuiltin, name_at) {
            return Value::Unknown;
        }
        let module = match path {
            builtins::LANGUAGE | builtins::CORE | builtins::MATH => path,
            _ => "libdevice",
        };
        let mut diagnostic = Diagnostic::new(
            Code::UnknownBuiltin,
            name_at,
            format!("`{module}` has no member `{attr}`"),
        );
        let version = self.version;
        let members: Vec<&str> = builtins::members(path)
            .into_iter()
            .filter(|builtin| builtin.exists_in(version))
            .map(|builtin| builtin.name)
            .chain(
                DType::ALL
                    .iter()
                    .filter(|_| path == builtins::LANGUAGE)
                    .map(|dtype| dtype.member()),
            )
            .collect();
        if path == builtins::CORE {
            diagnostic = diagnostic.with_note(format!("it is `tl.{attr}`"));
        } else if let Some(instead) = builtins::instead(attr) {
            diagnostic = diagnostic.with_note(format!("use {instead}"));
        } else if let Some(best) = suggest(attr, members.iter().copied()) {
            diagnostic.message.push_str(&format!("; did you mean `{best}`?"));
            let edit = TextEdit { at: name_at, text: best.to_owned() };
            diagnostic = diagnostic.with_fix(format!("Change to `{best}`"), vec![edit]);
        } else if builtins::member(builtins::LIBDEVICE, attr).is_some() {
            diagnostic = diagnostic.with_note(format!(
                "`{attr}` is in the device library: `from triton.language.extra import libdevice`, then `libdevice.{attr}`"
            ));
        } else if let Some((_, fork)) =
            builtins::FORK_MEMBERS.iter().find(|(member, _)| *member == &**attr)
        {
            diagnostic.severity = Severity::Warning;
            diagnostic = diagnostic.with_note(format!("only {fork} has it"));
        }
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
                if open && descriptor_method(name).is_some() {
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

    fn object_attribute(
        &mut self,
        object: &Object,
        attr: &Name,
        receiver: &Value,
        at: FileRange,
    ) -> Value {
        if let Some((_, value)) = object.fields.iter().find(|(name, _)| name == attr) {
            return value.clone();
        }
        let class = &object.class.class;
        if &**attr == "type" && class.bases.is_empty() {
            return match aggregate_type(object, self.is_3_9()) {
                Some(text) => Value::Const(Const::Opaque(text.into())),
                None => self.fresh_const(),
            };
        }
        let Some(method) = class.methods.iter().find(|m| m.name == *attr) else {
            // A base class may have it.
            if class.bases.is_empty() {
                return self.no_attribute(receiver, attr, at);
            }
            return Value::Unknown;
        };
        // An aggregate has the functions of its class, not the properties.
        if is_decorated(method, "property") && class.bases.is_empty() {
            return self.no_attribute(receiver, attr, at);
        }
        if is_decorated(method, "classmethod") {
            return Value::Unknown;
        }
        let function = self.method_of(&object.class, method);
        // So are static methods: the class of an aggregate keeps what they wrap.
        Value::Bound(Arc::new((receiver.clone(), function)))
    }

    /// Whether an aggregate defines an operator itself.
    pub(super) fn defines(&self, object: &Value, name: &str) -> bool {
        matches!(object, Value::Object(object)
            if object.class.class.methods.iter().any(|method| &*method.name == name))
    }

    /// A method of a class as a function of all its parameters.
    fn method_of(&self, class: &ClassRef, method: &Arc<Function>) -> Value {
        Value::Function(FunctionRef {
            file: class.file,
            function: method.clone(),
            kind: self.method_kind(class.file, method),
            scope: Arc::from([]),
            closure: Arc::from([]),
        })
    }

    /// Calls the method by which an aggregate defines an operator, such as `__add__`; `None` where
    /// it has none.
    pub(super) fn call_operator(
        &mut self,
        receiver: &Value,
        name: &str,
        operands: &[Value],
        at: FileRange,
    ) -> Option<Value> {
        let Value::Object(object) = receiver else { return None };
        let methods = &object.class.class.methods;
        let method = methods.iter().find(|method| &*method.name == name)?.clone();
        let function = self.method_of(&object.class, &method);
        let all = std::iter::once(receiver).chain(operands);
        let arguments = all.map(|value| Argument::positional(value.clone(), at)).collect();
        Some(self.call_value(&function, arguments, at))
    }

    pub(super) fn no_attribute(&mut self, object: &Value, attr: &Name, at: FileRange) -> Value {
        let private = attr.starts_with('_') && !matches!(object, Value::Tuple(_));
        if self.frame().mode == Mode::Python || private {
            return Value::Unknown;
        }
        let start = at.range.end.saturating_sub(attr.len() as u32);
        let name_at = FileRange { file: at.file, range: TextRange { start, end: at.range.end } };
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
                diagnostic.message.push_str(&format!("; did you mean `{best}`?"));
                let edit = TextEdit { at: name_at, text: best.to_owned() };
                diagnostic = diagnostic.with_fix(format!("Change to `{best}`"), vec![edit]);
            }
        }
        self.emit_diagnostic(diagnostic);
        Value::Unknown
    }

    /// `object[index]`.
    pub(super) fn subscript(
        &mut self,
        object: &Value,
        index: &Value,
        at: FileRange,
        index_at: FileRange,
    ) -> Value {
        match object {
            Value::Tensor(tensor) if tensor.is_open() => Value::Unknown,
            Value::Tensor(tensor) => {
                let tensor = tensor.clone();
                match self.index_tensor(&tensor, index, at, index_at) {
                    Ok(result) => Value::Tensor(result),
                    Err(_) => Value::Unknown,
                }
            }
            Value::Tuple(tuple)
                if tuple.held.is_python()
                    && self.frame().mode == Mode::Jit
                    && matches!(index, Value::Const(Const::Slice(_))) =>
            {
                let message = "a tuple that one constexpr holds has no slices";
                self.error(Code::TensorIndex, index_at, message);
                Value::Unknown
            }
            Value::Tuple(tuple) => self.index_tuple(&tuple.items, index, index_at),
            Value::Const(Const::Str(text)) => match index {
                Value::Const(Const::Int(position)) => {
                    let count = text.chars().count() as i128;
                    let position = if *position < 0 { position + count } else { *position };
                    match usize::try_from(position).ok().and_then(|at| text.chars().nth(at)) {
                        Some(c) => Value::str(c.to_string()),
                        None => {
                            self.error(Code::IndexRange, index_at, "the index is out of range");
                            Value::Unknown
                        }
                    }
                }
                _ => self.fresh_const(),
            },
            Value::Object(_) if self.defines(object, "__getitem__") => self
                .call_operator(object, "__getitem__", std::slice::from_ref(index), index_at)
                .unwrap_or(Value::Unknown),
            Value::Object(object) if !may_have_elements(&object.class.class) => {
                let message = format!("`{}` has no elements", object.class.class.name);
                self.error(Code::TensorIndex, index_at, message);
                Value::Unknown
            }
            _ => Value::Unknown,
        }
    }

    fn index_tuple(&mut self, items: &[Value], index: &Value, at: FileRange) -> Value {
        match index {
            Value::Const(Const::Int(position)) => {
                let count = items.len() as i128;
                let wrapped = if *position < 0 { position + count } else { *position };
                match usize::try_from(wrapped).ok().and_then(|at| items.get(at)) {
                    Some(item) => item.clone(),
                    None => {
                        let message =
                            format!("index {position} is out of range for a tuple of {count}");
                        self.error(Code::IndexRange, at, message);
                        Value::Unknown
                    }
                }
            }
            Value::Const(Const::Bool(value)) => {
                let index = Value::int(i128::from(*value));
                self.index_tuple(items, &index, at)
            }
            Value::Const(Const::Slice(bounds)) => slice_tuple(items, bounds),
            Value::Const(Const::Symbol(_)) | Value::Unknown => Value::Unknown,
            Value::Tensor(tensor) if tensor.elem.is_unknown() => Value::Unknown,
            other => {
                let what = "the index of a tuple";
                self.not_constexpr(Code::NotConstexpr, what, &other.clone(), at);
                Value::Unknown
            }
        }
    }

    /// `x[:, None]`: inserts axes.
    fn index_tensor(
        &mut self,
        tensor: &Tensor,
        index: &Value,
        at: FileRange,
        index_at: FileRange,
    ) -> Result<Tensor, Stop> {
        let parts: Vec<Value> = match index {
            Value::Tuple(tuple) => tuple.items.clone(),
            Value::Unknown => return Err(Stop::Unknown),
            other => vec![other.clone()],
        };
        let mut kept = 0;
        let mut result = tensor.clone();
        for (axis, part) in parts.iter().enumerate() {
            match part {
                Value::Const(Const::None) => {
                    if result.shape.rank().is_some_and(|rank| rank > 0 && axis > rank) {
                        break;
                    }
                    result = self.insert_axis(&result, axis);
                }
                Value::Const(Const::Slice(bounds)) if bounds.iter().all(Option::is_none) => {
                    kept += 1;
                }
                Value::Unknown | Value::Const(Const::Symbol(_)) => return Err(Stop::Unknown),
                _ => {
                    let diagnostic = Diagnostic::new(
                        Code::TensorIndex,
                        index_at,
                        "tiles are indexed only by `None` and `:`",
                    );
                    let diagnostic = diagnostic.with_note(match matches!(tensor.elem, Elem::Ptr(_)) {
                        true => "to read an element from memory, load it: `tl.load(pointer + index)`",
                        false => "to read single elements, load them from memory, or use `tl.gather` or a masked `tl.sum`",
                    });
                    return Err(self.emit_diagnostic(diagnostic));
                }
            }
        }
        // Before Triton 3.9 there are as many axes as slices, unless one is inserted behind them.
        let misplaced = parts.iter().enumerate().any(|(axis, part)| {
            part.is_none() && result.shape.rank().is_some_and(|rank| axis >= rank)
        });
        if let Some(rank) = tensor.shape.rank()
            && kept > rank
            && ((misplaced && rank > 0) || self.is_3_9())
        {
            let text = super::report::extents(&tensor.shape);
            let message = format!("{kept} axes are indexed, but the tile has shape {text}");
            return Err(self.error(Code::TensorIndex, at, message));
        }
        Ok(result)
    }
}

/// How the text of a module shows that it may have names that no statement binds.
const MAKES_NAMES: &[&str] = &["__getattr__", "exec(", "globals()", "setattr(", "sys.modules"];

/// Whether the table of builtins says everything of a name in the module at `path`: private and
/// experimental members come and go, and some modules are not listed completely.
pub(super) fn is_listed(path: &str, name: &str) -> bool {
    let lists = match path {
        // It has members of its own besides those of the language.
        builtins::CORE => builtins::member(path, name).is_some(),
        builtins::LANGUAGE | builtins::MATH | builtins::LIBDEVICE => true,
        _ => false,
    };
    lists && !name.starts_with('_')
}

/// The type of an aggregate as Triton spells it; `None` where not all of it is known.
fn aggregate_type(object: &Object, newer: bool) -> Option<String> {
    let mut fields = Vec::with_capacity(object.fields.len());
    for (name, value) in &object.fields {
        let ty = match value {
            Value::Tensor(Tensor { elem: Elem::Num(dtype), shape, .. }) if shape.is_scalar() => {
                format!("triton.language.{}", dtype.member())
            }
            value => item_type(value, newer)?,
        };
        fields.push(format!("('{name}', {ty})"));
    }
    let (class, fields) = (&object.class.class.name, fields.join(", "));
    Some(format!("_aggregate_type(base_cls=<class '{class}'>, fields=[{fields}])"))
}

/// The type of what a tuple or an aggregate holds.
fn item_type(item: &Value, newer: bool) -> Option<String> {
    Some(match item {
        Value::Tensor(tensor) if !tensor.elem.is_unknown() => match tensor.is_scalar() {
            true => tensor.elem.to_string(),
            false => const_text(&Const::BlockType(tensor.elem, tensor.shape.clone())),
        },
        Value::Const(constant) if !constant.is_symbol() => {
            format!("constexpr_type[{}]", const_text(constant))
        }
        Value::Tuple(inner) => tuple_type(inner, newer)?,
        Value::Object(inner) => aggregate_type(inner, newer)?,
        _ => return None,
    })
}

/// The type of a tuple as Triton spells it; `None` where not all of it is known.
fn tuple_type(tuple: &Tuple, newer: bool) -> Option<String> {
    let fields = tuple.named.as_ref().map(|named| &named.1);
    let mut parts = Vec::with_capacity(tuple.items.len());
    for (at, item) in tuple.items.iter().enumerate() {
        let ty = item_type(item, newer)?;
        parts.push(match fields.and_then(|fields| fields.get(at)) {
            Some(field) => format!("{field}:{ty}"),
            None if newer => ty,
            None => format!(":{ty}"),
        });
    }
    Some(format!("[{}]", parts.join(",")))
}

fn bound(object: &Value, builtin: &'static builtins::Builtin) -> Value {
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

/// The builtin behind a method of descriptors.
fn descriptor_method(name: &str) -> Option<&'static builtins::Builtin> {
    builtins::descriptor_method(name)
}

fn slice_tuple(items: &[Value], bounds: &[Option<Const>; 3]) -> Value {
    let count = items.len() as i128;
    let bound = |value: &Option<Const>, default: i128| match value {
        None => Some(default),
        Some(Const::Int(value)) => Some(if *value < 0 { value + count } else { *value }),
        Some(_) => None,
    };
    let step = match &bounds[2] {
        None => 1,
        Some(Const::Int(step)) if *step != 0 => *step,
        Some(_) => return Value::Unknown,
    };
    let (low, high) = if step > 0 { (0, count) } else { (count - 1, -1) };
    let (Some(start), Some(end)) = (bound(&bounds[0], low), bound(&bounds[1], high)) else {
        return Value::Unknown;
    };
    let mut picked = Vec::new();
    let mut at = start.clamp(-1, count);
    while (step > 0 && at < end.min(count)) || (step < 0 && at > end) {
        if let Some(item) = usize::try_from(at).ok().and_then(|at| items.get(at)) {
            picked.push(item.clone());
        }
        at += step;
    }
    Value::tuple(picked)
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

/// True for an aggregate that may define what its brackets mean.
fn may_have_elements(class: &Class) -> bool {
    !class.bases.is_empty() || class.methods.iter().any(|method| &*method.name == "__getitem__")
}

/// True for a class with a method that is decorated with `@classmethod`.
pub(super) fn has_class_method(class: &Class) -> bool {
    class.methods.iter().any(|method| is_decorated(method, "classmethod"))
}

fn is_decorated(method: &Function, by: &str) -> bool {
    method.decorators.iter().any(
        |&decorator| matches!(&method.body.exprs[decorator], Expr::Name(name) if **name == *by),
    )
}

/// A method without arguments that returns `result`.
pub(super) fn answering(result: Value) -> Value {
    Value::Bound(Arc::new((result, Value::Builtin(builtins::answer()))))
}

#[cfg(test)]
mod tests {
    use super::super::infer_file;
    use crate::diagnostic::{Code, Diagnostic};
    use crate::project::MemorySources;
    use crate::specialization::TritonVersion;

    /// What inference finds where a kernel calls `member` of a module with the text `helpers`.
    fn of_member(helpers: &str, member: &str) -> Vec<Diagnostic> {
        let mut sources = MemorySources::default();
        sources
            .add("helpers.py", &format!("import triton\nimport triton.language as tl\n{helpers}"));
        let text = format!(
            "import triton\nimport triton.language as tl\nimport helpers\n\n\n@triton.jit\ndef kernel(x_ptr):\n    tl.store(x_ptr, helpers.{member}(tl.load(x_ptr)))\n"
        );
        let file = sources.add("kernel.py", &text);
        let kernels = infer_file(&sources, file, TritonVersion::V3_6).kernels;
        kernels.into_iter().flat_map(|kernel| kernel.diagnostics).collect()
    }

    const SILU: &str = "@triton.jit\ndef silu(x):\n    return x * tl.sigmoid(x)\n";

    #[test]
    fn a_module_has_the_names_that_it_binds() {
        assert!(of_member(SILU, "silu").is_empty());
        let found = of_member(SILU, "sillu");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].code, Code::NoAttribute);
        assert_eq!(
            found[0].message,
            "nothing in `helpers.py` is called `sillu`; did you mean `silu`?"
        );
    }

    #[test]
    fn a_module_that_makes_names_may_have_any() {
        let dynamic = format!("{SILU}\nglobals()[\"sillu\"] = silu\n");
        assert!(of_member(&dynamic, "sillu").is_empty());
        let starred = format!("from elsewhere import *\n{SILU}");
        assert!(of_member(&starred, "sillu").is_empty());
    }
}
