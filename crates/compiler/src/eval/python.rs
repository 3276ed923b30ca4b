//! Python itself: what a function computes that runs at compile time.
//!
//! Triton's own rules say nothing of the inside of a `@triton.constexpr_function`: Python runs it, on
//! the arguments without their constexprs. So does this interpreter, on values of Python. It either
//! knows the outcome exactly, a value or an exception, or gives up ([`Exit::Unknown`]) where something
//! is not known or not followed; then the evaluator follows the function as well as it can.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use indexmap::IndexMap;

use super::call::Argument;
use super::closure::Captured;
use super::size::size_of;
use super::value::{ClassRef, Const, FunctionRef, Held, Role, Tensor, Tuple, Value};
use super::{Evaluator, Frame, Locals, MAX_DEPTH, Mode, Source};
use crate::hir::{CompareOp, Expr, ExprId, Name, ParamKind};
use crate::project;
use crate::source::{FileId, FileRange};

mod builtins;
mod classes;
mod expr;
mod methods;
mod module;
mod operators;
mod plain;
mod run;
mod text;

pub(super) use module::{Import, Imports, is_plain};
pub(crate) use plain::{Arguments, Plain, Python};

/// A value of Python.
#[derive(Clone)]
pub(super) enum Obj {
    /// A value without parts: numbers, strings, `None`, types of the language, members of
    /// enumerations.
    Const(Const),
    /// `tl.constexpr(value)`.
    Constexpr(Rc<Obj>),
    /// A tuple, with class and fields if it is a named one.
    Tuple(Rc<Vec<Obj>>, Option<Arc<(Name, Vec<Name>)>>),
    /// A tuple of the language, `tl.tuple`, with class and fields if it was a named one.
    Sequence(Rc<Vec<Obj>>, Option<Arc<(Name, Vec<Name>)>>),
    /// An aggregate that its constructor fills.
    Instance(Rc<Instance>),
    /// A list.
    List(Rc<RefCell<Vec<Obj>>>),
    /// A dictionary in order.
    Dict(Rc<RefCell<Vec<(Obj, Obj)>>>),
    /// A set in the order in which it was filled, which is not that of Python.
    Set(Rc<RefCell<Vec<Obj>>>),
    /// What is iterated once, with the name of its class.
    Iterator(Rc<RefCell<Vec<Obj>>>, &'static str),
    /// `range(...)`: first, end and step.
    Range(i128, i128, i128),
    /// A function of Python's builtins, or one of its classes.
    Builtin(&'static str),
    /// A method with its receiver.
    Method(Rc<Obj>, Name),
    /// A lambda with the variables around it.
    Lambda(Rc<Lambda>),
    /// A tensor, function, class or module.
    Value(Value),
}

/// An aggregate that its constructor fills.
pub(super) struct Instance {
    class: ClassRef,
    fields: RefCell<Vec<(Name, Obj)>>,
}

/// A lambda.
pub(super) struct Lambda {
    params: Vec<(Name, ParamKind, Option<Obj>)>,
    body: ExprId,
    scope: Scope,
}

/// The code that runs, and its variables.
#[derive(Clone)]
struct Scope {
    function: FunctionRef,
    locals: Rc<RefCell<IndexMap<Name, Obj, rustc_hash::FxBuildHasher>>>,
}

impl Scope {
    fn get(&self, name: &Name) -> Option<Obj> {
        self.locals.borrow().get(name).cloned()
    }

    fn set(&self, name: &Name, value: Obj) {
        self.locals.borrow_mut().insert(name.clone(), value);
    }

    fn file(&self) -> FileId {
        self.function.file
    }
}

/// Why an expression has no value.
#[derive(Debug, Clone)]
pub(super) enum Exit {
    /// An exception is on its way.
    Raised(Exception),
    /// Something is not known, or not followed.
    Unknown,
}

/// An exception.
#[derive(Debug, Clone)]
pub(super) struct Exception {
    /// Its class; `None` where a `raise` decides it.
    pub kind: Option<&'static str>,
    /// What it says.
    pub message: String,
    /// The innermost statement that raised it.
    pub at: Option<FileRange>,
}

impl Exception {
    /// True where something computes with a tensor, which only the code of kernels does.
    pub(super) fn needs_kernel(&self) -> bool {
        self.message == operators::NO_KERNEL
    }
}

type Run<T> = Result<T, Exit>;

/// The exception `kind` with a message.
fn raise<T>(kind: &'static str, message: impl Into<String>) -> Run<T> {
    Err(Exit::Raised(Exception { kind: Some(kind), message: message.into(), at: None }))
}

impl Evaluator<'_> {
    /// What Python gives for a call of `function` with arguments of a kernel, whose constexprs it
    /// does not see.
    pub(super) fn run_python(
        &mut self,
        function: &FunctionRef,
        arguments: &[Argument],
    ) -> Result<Value, Exit> {
        let mut given = Vec::with_capacity(arguments.len());
        for argument in arguments {
            let value = Obj::of(&argument.value).ok_or(Exit::Unknown)?;
            // What makes kernels gives them constexprs as such.
            let mut value = match (function.kind.role, argument.constexpr) {
                (Role::Host, Some(true)) => value.wrapped(),
                (Role::Host, None) if !matches!(value, Obj::Value(_)) => return Err(Exit::Unknown),
                _ => value.unwrapped(),
            };
            if let Obj::Sequence(_, fields @ Some(_)) = &mut value
                && !self.is_3_9()
            {
                // What takes a tuple out of its constexprs makes another one.
                *fields = None;
            }
            given.push((argument.keyword.clone(), value));
        }
        let result = self.quietly(|this| this.apply_python(function, given))?;
        self.python_result(&result).ok_or(Exit::Unknown)
    }

    /// What a decorator written in Python makes of a function, if that is known.
    pub(super) fn decorated(&mut self, decorator: &FunctionRef, value: Value) -> Option<Value> {
        let given = vec![(None, Obj::Value(value))];
        match self.quietly(|this| this.apply_python(decorator, given)) {
            Ok(Obj::Value(made)) => Some(made),
            _ => None,
        }
    }

    /// What a method of a text gives for arguments of a kernel.
    pub(super) fn run_text_method(
        &mut self,
        text: &Value,
        method: &str,
        arguments: &[Argument],
    ) -> Result<Value, Exit> {
        let receiver = Obj::of(text).ok_or(Exit::Unknown)?;
        let mut given = Vec::with_capacity(arguments.len());
        for argument in arguments {
            let value = Obj::of(&argument.value).ok_or(Exit::Unknown)?;
            let value = match (&argument.keyword, &value) {
                (Some(_), _) => value.wrapped(),
                (None, Obj::Sequence(..)) if !self.is_3_9() => value,
                (None, _) => value.unwrapped(),
            };
            given.push((argument.keyword.clone(), value));
        }
        let result = self.quietly(|this| this.python_method(&receiver, method, given))?;
        self.python_result(&result).ok_or(Exit::Unknown)
    }

    /// A comparison of values of Python in constexprs.
    pub(super) fn compare_as_python(
        &mut self,
        op: CompareOp,
        left: &Value,
        right: &Value,
    ) -> Value {
        let (Some(left), Some(right)) = (Obj::of(left), Obj::of(right)) else {
            return self.fresh_const();
        };
        let result = self.python_compare(op, &left, &right);
        let result = result.ok().and_then(|result| self.python_result(&result));
        result.unwrap_or_else(|| self.fresh_const())
    }

    /// Runs a function of Python.
    fn apply_python(
        &mut self,
        function: &FunctionRef,
        given: Vec<(Option<Name>, Obj)>,
    ) -> Run<Obj> {
        if self.frames.len() >= MAX_DEPTH / 2 || function.function.is_stub() {
            return Err(Exit::Unknown);
        }
        if function.kind.role == Role::Constexpr
            && let Some(name) = self.untracked_function(function)
        {
            let message = format!("Unsupported function referenced: `{name}`");
            return raise("RuntimeError", message);
        }
        let scope = Scope { function: function.clone(), locals: Rc::default() };
        self.bind_python(&scope, given)?;
        let code = function.function.clone();
        let source = Source::of(&code, function.file);
        let frame = Frame::new(
            Mode::Python,
            function.file,
            Some(function.clone()),
            function.scope.clone(),
            Locals::default(),
        );
        self.frames.push(frame);
        let flow = self.nested(|this| this.python_block(source, &scope, &code.body.root));
        self.frames.pop();
        match flow.unwrap_or(Err(Exit::Unknown))? {
            run::Flow::Return(value) => Ok(value),
            _ => Ok(Obj::NONE),
        }
    }

    /// The first plain function of Python among the names in `function`. Triton keeps compiled
    /// kernels by the code of all functions that they use, and knows that of its own alone.
    fn untracked_function(&mut self, function: &FunctionRef) -> Option<Name> {
        let code = function.function.clone();
        code.body.exprs.values().find_map(|expr| {
            let Expr::Name(name) = expr else { return None };
            let own = code.params.iter().any(|param| param.name == *name)
                || code.body.may_bind(name)
                || function.closure.iter().any(|captured| captured.name == *name);
            if own {
                return None;
            }
            let global = self.global(function.file, &function.scope, name)?;
            let Value::Function(named) = &global.value else { return None };
            // What stands inside the function is a part of its own code.
            if named.file == function.file && named.scope.starts_with(&function.scope) {
                return None;
            }
            let plain = match named.kind.role {
                Role::Host => {
                    !project::is_marked_builtin(self.project, named.file, &named.function.name)
                }
                Role::Unknown => self.is_cached(named),
                _ => false,
            };
            plain.then(|| name.clone())
        })
    }

    /// True for a function that `functools` caches the results of.
    fn is_cached(&self, function: &FunctionRef) -> bool {
        let code = &function.function;
        let scope = project::Scope { file: function.file, path: &function.scope };
        code.decorators.iter().any(|&decorator| {
            let callee = match &code.body.exprs[decorator] {
                Expr::Call { callee, .. } => *callee,
                _ => decorator,
            };
            let meaning = project::resolve_expr(self.project, scope, &code.body, callee);
            matches!(
                meaning,
                project::Resolution::External(path)
                    if matches!(&path[..], [module, name]
                        if &**module == "functools" && matches!(&**name, "cache" | "lru_cache"))
            )
        })
    }

    /// The exception that the constructor of an aggregate raises, as far as Python alone decides.
    pub(super) fn constructor_exception(
        &mut self,
        class: &ClassRef,
        init: &FunctionRef,
        arguments: &[Argument],
    ) -> Option<Exception> {
        let built = init.function.params.iter().any(|param| super::call::is_builder(&param.name));
        let unwraps = match init.kind.role {
            Role::Constexpr => true,
            Role::Host => false,
            _ => return None,
        };
        if built || !class.class.bases.is_empty() {
            return None;
        }
        let fields = RefCell::default();
        let instance = Rc::new(Instance { class: class.clone(), fields });
        let mut given = vec![(None, Obj::Instance(instance.clone()))];
        for argument in arguments {
            let value = Obj::of(&argument.value)?;
            let value = match (unwraps, value) {
                (true, value) => value.unwrapped(),
                // A type is a constexpr or none.
                (false, Obj::Const(Const::DType(_) | Const::BlockType(..) | Const::None)) => {
                    return None;
                }
                (false, value) => value.wrapped(),
            };
            given.push((argument.keyword.clone(), value));
        }
        match self.quietly(|this| this.apply_python(init, given)) {
            Err(Exit::Raised(exception)) => Some(exception),
            _ => None,
        }
    }

    /// A function as the one that defines it gets it by name: with the variables around it.
    #[inline(never)]
    fn enclosing(&mut self, scope: &Scope, value: Obj) -> Obj {
        let outer = &scope.function;
        let Obj::Value(Value::Function(inner)) = &value else { return value };
        let is_inside = inner.file == outer.file
            && !outer.scope.is_empty()
            && inner.scope.len() > outer.scope.len()
            && inner.scope.starts_with(&outer.scope);
        if !is_inside {
            return value;
        }
        let own: Vec<(Name, Obj)> = scope
            .locals
            .borrow()
            .iter()
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let mut captured = Vec::with_capacity(own.len());
        for (name, value) in own {
            let held = self.python_result(&value);
            let constexpr = held.as_ref().map(|_| matches!(value, Obj::Constexpr(_)));
            captured.push(Captured { name, value: held.unwrap_or(Value::Unknown), constexpr });
        }
        let outside = outer.closure.iter().filter(|it| scope.get(&it.name).is_none());
        captured.extend(outside.cloned());
        Obj::Value(Value::Function(FunctionRef { closure: captured.into(), ..inner.clone() }))
    }

    fn bind_python(&mut self, scope: &Scope, given: Vec<(Option<Name>, Obj)>) -> Run<()> {
        let function = scope.function.clone();
        let params = &function.function.params;
        let named: Vec<_> =
            params.iter().map(|param| (param.name.clone(), param.kind, param.default)).collect();
        let missing = bind_arguments(scope, &function.function.name, &named, given)?;
        for (name, default) in missing {
            if super::call::is_builder(&name) {
                scope.set(&name, Obj::NONE);
                continue;
            }
            let Some(default) = default else {
                let called = &function.function.name;
                return raise(
                    "TypeError",
                    format!("{called}() missing 1 required positional argument: '{name}'"),
                );
            };
            let held = self.default_value(&function, default);
            scope.set(&name, Obj::of(&held).ok_or(Exit::Unknown)?);
        }
        Ok(())
    }

    /// A value of Python as a constexpr of a kernel holds it.
    fn python_result(&mut self, result: &Obj) -> Option<Value> {
        let items = |this: &mut Self, items: &[Obj]| -> Option<Vec<Value>> {
            items.iter().map(|item| this.python_result(item)).collect()
        };
        Some(match result {
            Obj::Const(value) => Value::Const(value.clone()),
            Obj::Constexpr(value) => self.python_result(value)?,
            Obj::Tuple(parts, named) => {
                let (items, named) = (items(self, parts)?, named.clone());
                Value::Tuple(Arc::new(Tuple { items, named, held: Held::Python }))
            }
            Obj::Sequence(parts, named) => {
                let (items, named) = (items(self, parts)?, named.clone());
                let held = Held::Annotated { shown: 0 };
                Value::Tuple(Arc::new(Tuple { items, named, held }))
            }
            Obj::List(parts) => {
                let parts = parts.borrow().clone();
                Value::held_tuple(items(self, &parts)?, Held::PythonList)
            }
            Obj::Value(value) => value.clone(),
            Obj::Dict(_) | Obj::Range(..) => {
                Value::Const(Const::Opaque(text::repr(result)?.into()))
            }
            _ => return None,
        })
    }
}

/// Assigns arguments to parameters; gives those that take their defaults.
fn bind_arguments<D: Clone>(
    scope: &Scope,
    called: &str,
    params: &[(Name, ParamKind, D)],
    given: Vec<(Option<Name>, Obj)>,
) -> Run<Vec<(Name, D)>> {
    let mut positional = params.iter().filter(|(_, kind, _)| kind.is_positional());
    let (mut rest, mut keywords) = (Vec::new(), Vec::new());
    for (keyword, value) in given {
        let Some(keyword) = keyword else {
            match positional.next() {
                Some((name, ..)) => scope.set(name, value),
                None => rest.push(value),
            }
            continue;
        };
        let known = params.iter().any(|(name, kind, _)| {
            *name == keyword && matches!(kind, ParamKind::Normal | ParamKind::KeywordOnly)
        });
        match (known, scope.get(&keyword)) {
            (true, None) => scope.set(&keyword, value),
            (true, Some(_)) => {
                let message = format!("{called}() got multiple values for argument '{keyword}'");
                return raise("TypeError", message);
            }
            (false, _) => keywords.push((Obj::str(&keyword), value)),
        }
    }
    let mut missing = Vec::new();
    for (name, kind, default) in params {
        match kind {
            ParamKind::VarArgs => {
                scope.set(name, Obj::Tuple(Rc::new(std::mem::take(&mut rest)), None));
            }
            ParamKind::KwArgs => {
                let entries = std::mem::take(&mut keywords);
                scope.set(name, Obj::Dict(Rc::new(RefCell::new(entries))));
            }
            _ if scope.get(name).is_none() => missing.push((name.clone(), default.clone())),
            _ => {}
        }
    }
    match (rest.is_empty(), keywords.first()) {
        (true, None) => Ok(missing),
        (false, _) => raise("TypeError", format!("{called}() takes fewer positional arguments")),
        (true, Some((keyword, _))) => {
            let keyword = text::repr(keyword).unwrap_or_default();
            raise("TypeError", format!("{called}() got an unexpected keyword argument {keyword}"))
        }
    }
}

impl Obj {
    const NONE: Obj = Obj::Const(Const::None);

    /// Elements and letters of the value and all its parts; `None` where these are too many.
    fn size(&self) -> Option<usize> {
        size_of(self.clone(), |value| match value {
            Obj::Const(Const::Str(text)) => (text.len(), Vec::new()),
            value => (0, value.parts()),
        })
    }

    /// What the value is put together of.
    fn parts(&self) -> Vec<Obj> {
        match self {
            Obj::Tuple(items, _) | Obj::Sequence(items, _) => items.to_vec(),
            Obj::List(items) | Obj::Set(items) | Obj::Iterator(items, _) => items.borrow().clone(),
            Obj::Dict(entries) => {
                entries.borrow().iter().flat_map(|(key, value)| [key, value]).cloned().collect()
            }
            Obj::Instance(instance) => {
                instance.fields.borrow().iter().map(|(_, value)| value.clone()).collect()
            }
            Obj::Constexpr(inner) => vec![Obj::clone(inner)],
            Obj::Method(receiver, _) => vec![Obj::clone(receiver)],
            _ => Vec::new(),
        }
    }

    fn int(value: i128) -> Obj {
        Obj::Const(Const::Int(value))
    }

    fn bool(value: bool) -> Obj {
        Obj::Const(Const::Bool(value))
    }

    fn str(text: &str) -> Obj {
        Obj::Const(Const::Str(text.into()))
    }

    fn list(items: Vec<Obj>) -> Obj {
        Obj::List(Rc::new(RefCell::new(items)))
    }

    fn tuple(items: Vec<Obj>) -> Obj {
        Obj::Tuple(Rc::new(items), None)
    }

    /// A value of the evaluator, if all of it is known. Tuples of kernels hold constexprs.
    fn of(value: &Value) -> Option<Obj> {
        Some(match value {
            Value::Unknown
            | Value::Const(
                Const::Symbol(_) | Const::Opaque(_) | Const::DescriptorType(..) | Const::Slice(_),
            ) => {
                return None;
            }
            Value::Const(Const::DType(elem)) if elem.is_unknown() => return None,
            Value::Const(value) => Obj::Const(value.clone()),
            Value::Tensor(tensor) if !is_known(tensor) => return None,
            Value::Tuple(tuple) => {
                let items = tuple.items.iter().map(Obj::of).collect::<Option<Vec<Obj>>>()?;
                match tuple.held {
                    Held::Python => Obj::Tuple(Rc::new(items), tuple.named.clone()),
                    Held::PythonList => Obj::list(items),
                    Held::Elements | Held::Annotated { .. } => {
                        let items = items.into_iter().map(Obj::wrapped).collect();
                        Obj::Sequence(Rc::new(items), tuple.named.clone())
                    }
                }
            }
            Value::Either(_) | Value::Range(_) | Value::Condition(_) => return None,
            other => Obj::Value(other.clone()),
        })
    }

    /// In a constexpr, where it is no value of the language by itself.
    fn wrapped(self) -> Obj {
        match self {
            Obj::Const(_) | Obj::Tuple(..) | Obj::List(_) => Obj::Constexpr(Rc::new(self)),
            other => other,
        }
    }

    /// Without its constexprs, as Triton passes it to a function that runs at compile time.
    fn unwrapped(&self) -> Obj {
        let all = |items: &[Obj]| items.iter().map(Obj::unwrapped).collect::<Vec<Obj>>();
        match self {
            Obj::Constexpr(value) => value.unwrapped(),
            Obj::Tuple(items, named) => Obj::Tuple(Rc::new(all(items)), named.clone()),
            Obj::Sequence(items, named) => Obj::Sequence(Rc::new(all(items)), named.clone()),
            Obj::List(items) => Obj::list(all(&items.borrow())),
            other => other.clone(),
        }
    }

    /// The name of its class.
    fn class(&self) -> Option<&str> {
        Some(match self {
            Obj::Const(value) => match value {
                Const::None => "NoneType",
                Const::Bool(_) => "bool",
                Const::Int(_) => "int",
                Const::Float(_) => "float",
                Const::Str(_) => "str",
                Const::DType(elem) if elem.is_ptr() => "pointer_type",
                Const::DType(_) => "dtype",
                Const::BlockType(..) => "block_type",
                Const::Ellipsis => "ellipsis",
                Const::Member(member) => &member.class.class.name,
                _ => return None,
            },
            Obj::Constexpr(_) => "constexpr",
            Obj::Tuple(_, Some(named)) => &named.0,
            Obj::Tuple(_, None) | Obj::Sequence(..) => "tuple",
            Obj::List(_) => "list",
            Obj::Dict(_) => "dict",
            Obj::Set(_) => "set",
            Obj::Iterator(_, class) => class,
            Obj::Range(..) => "range",
            Obj::Lambda(_) => "function",
            Obj::Instance(instance) => &instance.class.class.name,
            Obj::Builtin(name) if builtins::is_class(name) => "type",
            Obj::Builtin(_) | Obj::Method(..) => "builtin_function_or_method",
            Obj::Value(Value::Tensor(_)) => "tensor",
            Obj::Value(Value::Module(_)) => "module",
            Obj::Value(Value::Class(_)) => "type",
            Obj::Value(Value::Object(object)) => &object.class.class.name,
            Obj::Value(Value::Function(function)) => match function.kind.role {
                Role::Jit => "JITFunction",
                Role::Constexpr => "ConstexprFunction",
                _ => "function",
            },
            Obj::Value(_) => return None,
        })
    }

    /// How a message calls its class.
    fn class_text(&self) -> &str {
        self.class().unwrap_or("object")
    }
}

/// A tensor whose type is known: it is one at every launch.
fn is_known(tensor: &Tensor) -> bool {
    !tensor.is_open() && !tensor.elem.is_unknown() && tensor.shape.known().is_some()
}
