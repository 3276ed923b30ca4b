//! Whether gradients of tensors are wanted, as far as host code says so: of those that it makes with
//! `requires_grad=True`, and of what functions make of these.

use crate::builtins::TORCH;
use crate::hir::{ExprId, Function, Name};
use crate::host::code::arguments::Args;
use crate::host::code::operators::truth;
use crate::host::value::dtype::{is_complex, is_float};
use crate::host::value::{Tensor, Value};
use crate::host::{Frame, Host};
use crate::project::{Resolution, Scope, callee, resolve_expr};
use crate::source::FileId;

/// The keyword, and the attribute, by which gradients are wanted, and the method that says so.
const WANTS: &str = "requires_grad";
const WANTS_IN_PLACE: &str = "requires_grad_";

/// What gives a tensor in the same memory of which no gradient is wanted.
const DETACHES: &str = "detach";

/// Regions of code in which no gradients are wanted, perhaps.
const WITHOUT: &[&str] = &["enable_grad", "inference_mode", "no_grad", "set_grad_enabled"];

impl Host<'_> {
    /// Notes that a function of PyTorch made a tensor whose gradient is wanted, if it was told so.
    pub(crate) fn note_wanted(&mut self, args: &Args<'_>, made: &Value) {
        match args.keyword(WANTS).map(truth) {
            Some(Some(true)) => {
                self.wanted.extend(made.allocations());
                self.watch(made);
            }
            Some(None) => self.may_be_unwanted = true,
            Some(Some(false)) | None => {}
        }
    }

    /// Whether gradients may be wanted of what an `autograd.Function` is given: those of tensors that the run makes are
    /// where it says so.
    pub(crate) fn perhaps_wants_gradients(&self, given: &[(Option<Name>, Value)]) -> bool {
        let is_made = |(_, value): &(Option<Name>, Value)| match value {
            Value::Tensor(tensor) => tensor.memory().is_some(),
            value => value.to_const().is_some(),
        };
        self.may_be_unwanted || !self.wanted.is_empty() || !given.iter().all(is_made)
    }

    /// Notes what a method says of whether gradients are wanted.
    pub(crate) fn note_gradients(
        &mut self,
        method: &str,
        receiver: Option<&Value>,
        args: &Args<'_>,
    ) {
        match (method, receiver) {
            (WANTS_IN_PLACE, Some(tensor @ Value::Tensor(_))) if asks(args) == Some(true) => {
                self.wanted.extend(tensor.allocations());
                self.watch(tensor);
            }
            (WANTS_IN_PLACE | "detach_", Some(Value::Tensor(tensor)))
                if self.is_wanted(tensor) == Some(false)
                    && (method == "detach_" || asks(args) == Some(false)) => {}
            (WANTS_IN_PLACE | "detach_", _) => self.may_be_unwanted = true,
            ("retain_grad", Some(tensor)) => self.retain(tensor),
            ("zero_grad", Some(Value::Object(module))) => match self.parameters_to_drop(*module) {
                Some(parameters) => self.drop_gradients(&parameters),
                None => self.forget_gradients(),
            },
            ("zero_grad", _) => self.forget_gradients(),
            (hooks, _) if hooks.starts_with("register_") && hooks.ends_with("_hook") => {
                self.lose_gradients();
                self.unfollowed = true;
            }
            _ => {}
        }
    }

    /// `tensor.requires_grad = value`.
    pub(crate) fn set_wanted(&mut self, owner: &Value, value: &Value) {
        match (owner, value) {
            (Value::Tensor(_), Value::Bool(Some(true))) => {
                self.wanted.extend(owner.allocations());
                self.watch(owner);
            }
            (Value::Tensor(tensor), Value::Bool(Some(false)))
                if self.is_wanted(tensor) == Some(false) => {}
            _ => self.may_be_unwanted = true,
        }
    }

    /// What an attribute of a tensor says that tells whether its gradient is wanted; `None` for others.
    pub(crate) fn says_whether_wanted(&self, owner: &Value, attr: &str) -> Option<Value> {
        let says = attr == WANTS && matches!(owner, Value::Tensor(_));
        says.then(|| self.wants_gradient(owner))
    }

    /// Whether the gradient of an argument of an `autograd.Function` is wanted.
    pub(crate) fn wants_gradient(&self, given: &Value) -> Value {
        Value::Bool(match given {
            Value::Tensor(tensor) => self.is_wanted(tensor),
            given => given.to_const().map(|_| false),
        })
    }

    fn is_wanted(&self, tensor: &Tensor) -> Option<bool> {
        if tensor.dtype.as_deref().is_some_and(|dtype| !is_float(dtype) && !is_complex(dtype)) {
            return Some(false);
        }
        let storage = tensor.storage.as_deref()?;
        if storage.is_detached {
            return Some(false);
        }
        let is_wanted =
            storage.is_of_wanted || storage.id.is_some_and(|id| self.wanted.contains(&id));
        (!self.may_be_unwanted && (is_wanted || self.is_apart(tensor))).then_some(is_wanted)
    }

    /// What a function or method makes of `sources`, with what that says of whether its gradient is wanted.
    pub(crate) fn following<'v>(
        &mut self,
        name: &str,
        sources: impl Iterator<Item = &'v Value>,
        mut made: Value,
    ) -> Value {
        if let Value::Tensor(tensor) = &mut made
            && name == DETACHES
        {
            self.detach(tensor);
        }
        let Value::Tensor(Tensor { dtype, storage: Some(storage), .. }) = &mut made else {
            return made;
        };
        if name == DETACHES {
            storage.is_detached = true;
        } else if name == WANTS_IN_PLACE {
            storage.is_detached = false;
        } else if self.without_gradients == 0 && dtype.as_deref().is_some_and(is_float) {
            let wanted = |value: &Value| match value {
                Value::Tensor(tensor) => self.is_wanted(tensor) == Some(true),
                _ => false,
            };
            let mut sources = sources;
            storage.is_of_wanted = storage.is_of_wanted || sources.any(wanted);
        }
        made
    }

    /// Notes that a context manager is entered, in which gradients may not be wanted, or are again.
    pub(crate) fn enter_mode(&mut self, frame: &Frame, manager: ExprId) {
        let body = frame.code.body();
        let scope = Scope { file: frame.file, path: &frame.scope };
        let entered = resolve_expr(self.sources, scope, body, callee(body, manager));
        match self.launcher.is_some() && is_mode(&entered, "enable_grad") {
            true => self.without_gradients = 0,
            false => self.without_gradients += u32::from(is_without(&entered)),
        }
    }

    /// Whether gradients may not be wanted in a function, as its decorators say.
    pub(crate) fn runs_without_gradients(
        &self,
        file: FileId,
        scope: &[Name],
        function: &Function,
    ) -> bool {
        self.decorators(file, scope, function).iter().any(is_without)
    }

    /// What a function of PyTorch tells of whether gradients are wanted of what the code computes; `None` for others.
    /// One possible run begins where they are; who imports a module decides what its own statements see.
    pub(crate) fn gradient_mode(&mut self, frame: &Frame, path: &[Name]) -> Option<bool> {
        let [torch, name] = path else { return None };
        let mode = match &**name {
            _ if **torch != *TORCH || frame.scope.is_empty() => return None,
            "is_grad_enabled" => true,
            "is_inference" | "is_inference_mode_enabled" => false,
            _ => return None,
        };
        (self.happens() && self.without_gradients == 0).then_some(mode)
    }

    /// Notes that a function of PyTorch may change whether gradients are wanted from then on.
    pub(crate) fn note_gradient_mode(&mut self, path: &[Name]) {
        let is_mode = path.last().is_some_and(|name| &**name == "set_grad_enabled");
        self.without_gradients += u32::from(is_mode);
    }
}

impl Tensor {
    /// The same, of which it is not known whether gradients are wanted.
    pub(crate) fn without_gradient(mut self) -> Tensor {
        if let Some(storage) = &mut self.storage {
            (storage.is_detached, storage.is_of_wanted) = (false, false);
        }
        self
    }
}

/// What `tensor.requires_grad_(...)` asks for.
fn asks(args: &Args<'_>) -> Option<bool> {
    args.get(0, WANTS).map_or(Some(true), truth)
}

pub(crate) fn is_without(found: &Resolution) -> bool {
    WITHOUT.iter().any(|name| is_mode(found, name))
}

fn is_mode(found: &Resolution, name: &str) -> bool {
    match found {
        Resolution::External(path) => {
            path.first().is_some_and(|first| &**first == TORCH)
                && path.last().is_some_and(|last| &**last == name)
        }
        _ => false,
    }
}
