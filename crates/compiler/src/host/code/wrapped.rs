//! Functions with decorators of the project's own, which may hand on other arguments than they get.

use std::sync::Arc;

use crate::hir::{Class, ExprId, Function, Name, ParamKind};
use crate::host::code::statics::Owner;
use crate::host::objects::records::is_data_maker;
use crate::host::value::{Callable, Value};
use crate::host::{Frame, Host};
use crate::project::{
    self, ItemRef, Resolution, Scope, callee, class, function, is_external, item, resolve_expr,
    resolve_item,
};
use crate::source::FileId;

impl Host<'_> {
    /// Calls what the decorators of a function make of it; `None` where it is not seen that they
    /// come to call the function itself.
    pub(crate) fn call_wrapped(
        &mut self,
        at: ItemRef,
        function: &Arc<Function>,
        args: &[(Option<Name>, Value)],
    ) -> Option<Value> {
        let wrapped = self.decorated_function(at, function)?;
        let before = self.undecorated;
        let result = self.call_value(&wrapped, args);
        (self.undecorated > before).then_some(result)
    }

    /// What the decorators of a function make of it.
    fn decorated_function(&mut self, at: ItemRef, function: &Arc<Function>) -> Option<Value> {
        let scope = item(self.sources, at)?.scope;
        let mut wrapped = match resolve_item(self.sources, at) {
            kernel @ Resolution::Jit(_) => Value::Named(kernel),
            _ => Value::Callable(Callable::Undecorated(at)),
        };
        let decorators = self.decorators(at.file, &scope, function);
        for (decorator, found) in function.decorators.iter().zip(decorators).rev() {
            if !is_wrapper_of(&found) || self.only_enters(&found) {
                continue;
            }
            let decorator = self.head_expr(at.file, &scope, function, *decorator);
            wrapped = self.call_value(&decorator, &[(None, wrapped)]);
        }
        Some(wrapped)
    }

    /// Whether a decorator enters a context around each call, and hands on what the call gives and gets:
    /// a class that derives from `contextlib.ContextDecorator`, or a `contextlib.contextmanager`.
    fn only_enters(&self, decorator: &Resolution) -> bool {
        let is_of = |found: &Resolution, name: &str| match found {
            Resolution::External(path) => path.iter().map(|part| &**part).eq(["contextlib", name]),
            _ => false,
        };
        match decorator {
            Resolution::Class(at) => {
                let derives = |at: &ItemRef| {
                    self.bases(*at).iter().any(|base| is_of(base, "ContextDecorator"))
                };
                self.lineage(*at).iter().any(derives)
                    && self.class_method(*at, "__call__").is_none()
            }
            Resolution::Function(at) => {
                let Some(function) = function(self.sources, *at) else { return false };
                let scope = project::item_scope(self.sources, *at);
                let found = self.decorators(at.file, &scope, &function);
                found.iter().any(|found| is_of(found, "contextmanager"))
            }
            _ => false,
        }
    }

    /// Does what the decorators of a function or class do when it is made.
    pub(crate) fn decorate(&mut self, at: ItemRef) {
        if let Some(function) = function(self.sources, at) {
            self.decorated_function(at, &function);
        } else if let Some(class) = class(self.sources, at) {
            for decorator in class.decorators.iter().rev() {
                let decorator = self.class_value(at, &class, *decorator);
                self.call_value(&decorator, &[(None, Value::Named(Resolution::Class(at)))]);
            }
        }
    }

    /// Whether a decorator of a class gives that class with its own methods.
    pub(crate) fn keeps_class(&mut self, at: ItemRef, class: &Class, decorator: ExprId) -> bool {
        if let Some(known) = self.kept_classes.get(&(at, decorator)) {
            return *known;
        }
        let scope = project::item_scope(self.sources, at);
        let scope = Scope { file: at.file, path: &scope };
        let maker = resolve_expr(self.sources, scope, &class.body, callee(&class.body, decorator));
        let keeps = match maker {
            Resolution::Function(_) | Resolution::Class(_) | Resolution::Unknown => {
                // Where it asks for the class itself, there is none yet.
                self.kept_classes.insert((at, decorator), false);
                let maker = self.class_value(at, class, decorator);
                let decorated = Value::Named(Resolution::Class(at));
                let made = self.call_value(&maker, &[(None, decorated)]);
                let is_same = matches!(made, Value::Named(Resolution::Class(same)) if same == at);
                let held = |method: &Arc<Function>| self.held(Owner::Class(at), &method.name);
                is_same && !class.methods.iter().any(|method| held(method).is_some())
            }
            maker => {
                let is_of_library = matches!(&maker, Resolution::External(_));
                is_data_maker(&maker) || (is_of_library && is_transparent(&maker))
            }
        };
        self.kept_classes.insert((at, decorator), keeps);
        keeps
    }

    /// Calls a function as if no decorators stood before it.
    pub(crate) fn call_undecorated(
        &mut self,
        at: ItemRef,
        function: &Arc<Function>,
        args: &[(Option<Name>, Value)],
    ) -> Value {
        let Some((frame, _)) = self.frame_with(at, function, args) else { return Value::Unknown };
        self.body_of(frame, function)
    }

    /// The frame in which a function begins that is called with these arguments, and its scope.
    pub(crate) fn frame_with(
        &mut self,
        at: ItemRef,
        function: &Arc<Function>,
        args: &[(Option<Name>, Value)],
    ) -> Option<(Frame, Vec<Name>)> {
        let scope = item(self.sources, at)?.scope;
        let variables = self.parameters(at.file, &scope, function, args);
        Some((self.frame_of(at.file, &scope, function, variables), scope))
    }

    /// Calls a function whose decorators are not followed. They hand on what has a name as a rule, tensors
    /// perhaps as others, but may take apart the rest.
    pub(crate) fn call_handed_on(
        &mut self,
        at: ItemRef,
        function: &Arc<Function>,
        args: &[(Option<Name>, Value)],
    ) -> Value {
        let handed_on: Vec<_> =
            args.iter().map(|(name, value)| (name.clone(), other_tensor(value))).collect();
        let Some((mut frame, _)) = self.frame_with(at, function, &handed_on) else {
            return Value::Unknown;
        };
        let rest = function.params.iter().filter(|param| param.kind == ParamKind::VarArgs);
        frame.variables.extend(rest.map(|param| (param.name.clone(), Value::Unknown)));
        self.body_of(frame, function)
    }

    /// Calls a function as what its decorators make of it does: these have been followed.
    pub(crate) fn call_within(
        &mut self,
        at: ItemRef,
        function: &Arc<Function>,
        args: &[(Option<Name>, Value)],
    ) -> Value {
        let Some((frame, scope)) = self.frame_with(at, function, args) else {
            return Value::Unknown;
        };
        let hands_on = self.decorators(at.file, &scope, function).iter().all(|found| {
            matches!(found, Resolution::Function(_) | Resolution::Class(_)) || is_transparent(found)
        });
        self.body_with(frame, function, hands_on)
    }

    /// Whether all that decorates a function is `functools.wraps`, which changes no call.
    pub(crate) fn is_plain(&self, file: FileId, scope: &[Name], function: &Function) -> bool {
        self.decorators(file, scope, function).iter().all(|found| match found {
            Resolution::External(path) => {
                path.iter().map(|part| &**part).eq(["functools", "wraps"])
            }
            _ => false,
        })
    }

    /// What the decorators of a function are, or what they are made by. A mark of pytest that a variable of a module
    /// holds is that mark.
    pub(crate) fn decorators(
        &self,
        file: FileId,
        scope: &[Name],
        function: &Function,
    ) -> Vec<Resolution> {
        let scope = Scope { file, path: scope };
        let body = &function.body;
        let called = function.decorators.iter().map(|decorator| callee(body, *decorator));
        let found = called.map(|callee| resolve_expr(self.sources, scope, body, callee));
        found.map(|found| self.mark_held(&found).unwrap_or(found)).collect()
    }

    /// Whether a decorator of the project's own stands before a function: what it hands on to it may
    /// be something else.
    pub(crate) fn is_wrapped(&self, file: FileId, scope: &[Name], function: &Function) -> bool {
        self.decorators(file, scope, function).iter().any(is_wrapper_of)
    }

    /// Whether what stands before a function gives it as it is: none of it is the project's own, or that only
    /// registers it with PyTorch.
    pub(crate) fn keeps_function(
        &mut self,
        at: ItemRef,
        scope: &[Name],
        function: &Arc<Function>,
    ) -> bool {
        if let Some(keeps) = self.kept_functions.get(&at) {
            return *keeps;
        }
        // Where a decorator calls the function itself, it is not known yet.
        self.kept_functions.insert(at, !self.is_wrapped(at.file, scope, function));
        let decorators = self.decorators(at.file, scope, function);
        let keeps = function.decorators.iter().zip(decorators).all(|(decorator, found)| {
            !is_wrapper_of(&found) && !chooses(&found)
                || matches!(found, Resolution::Function(_))
                    && matches!(
                        self.head_expr(at.file, scope, function, *decorator),
                        Value::Callable(Callable::Around | Callable::Registrar(_))
                    )
        });
        self.kept_functions.insert(at, keeps);
        keeps
    }

    /// Whether the exceptions of a function reach its callers, whatever stands before it.
    pub(crate) fn hands_exceptions_on(
        &self,
        file: FileId,
        scope: &[Name],
        function: &Function,
    ) -> bool {
        self.decorators(file, scope, function).iter().all(is_transparent)
    }
}

/// Whether a decorator takes no exceptions.
fn is_transparent(found: &Resolution) -> bool {
    match found {
        Resolution::External(path) => TRANSPARENT.iter().any(|transparent| {
            let begins = path.iter().zip(*transparent).all(|(part, name)| **part == **name);
            begins && path.len() >= transparent.len()
        }),
        found => matches!(found, Resolution::Undefined),
    }
}

/// Where decorators come from that take no exceptions.
const TRANSPARENT: &[&[&str]] =
    &[&["abc"], &["functools"], &["pytest", "mark"], &["torch"], &["typing"], &["unittest"]];

/// Whether a decorator may call another function in the place of the one that it gets.
pub(crate) fn chooses(found: &Resolution) -> bool {
    let chooses = |name: &str| is_external(found, &["functools", name]);
    chooses("singledispatch") || chooses("singledispatchmethod")
}

/// Whether a decorator may hand on other arguments to a function than it gets.
fn is_wrapper_of(found: &Resolution) -> bool {
    matches!(found, Resolution::Function(_) | Resolution::Class(_) | Resolution::Unknown)
}

/// What is known of an argument that may be replaced on the way: of a tensor, its dtype.
fn other_tensor(value: &Value) -> Value {
    match value {
        Value::Tensor(tensor) => Value::tensor(tensor.dtype.as_deref()),
        value => value.clone(),
    }
}
