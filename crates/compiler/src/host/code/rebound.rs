//! What changes behind a name: names that other functions bind again, and tensors whose memory
//! or shape is replaced in place.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::builtins::torch;
use crate::hir::{Expr, ExprId, Function, Item, ItemKind, Name, Stmt};
use crate::host::value::{Callable, Tensor, Value};
use crate::host::{Frame, Host};
use crate::project::Sources;
use crate::source::FileId;

/// Methods of tensors that give one another shape, other strides or other memory in place.
const REPLACE: &[&str] = &[
    "addbmm_",
    "as_strided_",
    "resize_",
    "resize_as_",
    "resize_as_sparse_",
    "set_",
    "sparse_resize_",
    "sparse_resize_and_clear_",
    "squeeze_",
    "swapaxes_",
    "swapdims_",
    "t_",
    "transpose_",
    "unsqueeze_",
];

/// Whether a method changes a tensor in place and leaves its shape and memory what they were.
pub(crate) fn keeps_shape(method: &str) -> bool {
    let in_place = method.ends_with('_') && !method.starts_with('_') && !REPLACE.contains(&method);
    in_place && torch::tensor_members().is_some_and(|members| members.contains(method))
}

/// Whether a method may give a tensor another shape or other memory.
pub(crate) fn replaces(method: &str) -> bool {
    method.ends_with('_') && !method.ends_with("__") && !keeps_shape(method)
}

/// The names of a file that functions bind which are not their own, or whose collections they change in
/// place, each with the scopes that it belongs to there and whether it is bound.
pub(crate) type Rebound = FxHashMap<Name, FxHashMap<Vec<Name>, bool>>;

/// The names that functions of `file` bind for others, by `global` and `nonlocal`.
fn rebound(sources: &dyn Sources, file: FileId) -> Rebound {
    let mut found = Rebound::default();
    let Some(module) = sources.module(file) else { return found };
    let mut bind = |scope: Vec<Name>, name: &Name| {
        found.entry(name.clone()).or_default().insert(scope, true);
    };
    let functions = || {
        module.items.iter().filter_map(|item| match &item.kind {
            ItemKind::Function(function) => Some((item, function)),
            _ => None,
        })
    };
    for (item, function) in functions() {
        if !function.globals.is_empty() {
            let globals =
                function.body.bound_names().filter(|name| function.globals.contains(name));
            globals.for_each(|name| bind(Vec::new(), name));
        }
        for scope in scopes_bound(item, function) {
            function.body.bound_names().for_each(|name| bind(scope.clone(), name));
        }
    }
    for (item, function) in functions() {
        for name in &function.changes {
            let scopes = found.entry(name.clone()).or_default();
            for depth in 0..=item.scope.len() {
                scopes.entry(item.scope[..depth].to_vec()).or_default();
            }
        }
    }
    found
}

/// The scopes whose names a function may bind: those of the functions around it.
fn scopes_bound(item: &Item, function: &Function) -> Vec<Vec<Name>> {
    let is_nonlocal = |stmt: &Stmt| matches!(stmt, Stmt::Unsupported("Nonlocal"));
    let binds = function.body.stmts.values().any(is_nonlocal);
    let around = (1..=item.scope.len()).filter(|_| binds);
    around.map(|depth| item.scope[..depth].to_vec()).collect()
}

/// Allocations that tensors may not be in any more, each with the tensor that was in it and the one in its place,
/// where that is known.
pub(crate) type Replaced = FxHashMap<u32, Option<Replacement>>;

/// `before.data = now`.
#[derive(Debug, Clone)]
pub(crate) struct Replacement {
    before: Tensor,
    now: Tensor,
}

impl Replacement {
    /// Whether a tensor is the one whose memory was replaced: what else is in that memory stays there.
    fn is_of(&self, tensor: &Tensor) -> bool {
        let is_detached = tensor.storage.as_deref().is_some_and(|storage| storage.is_detached);
        !is_detached && tensor.shape == self.before.shape && tensor.strides == self.before.strides
    }
}

impl Host<'_> {
    /// Whether another function may bind `name` of `scope` at any time, or change its collection.
    pub(crate) fn is_rebound(&mut self, file: FileId, scope: &[Name], name: &Name) -> bool {
        !self.options.importing && self.rebinding(file, scope, name).is_some()
    }

    /// Whether other functions bind `name` of `scope`; `None` where they do not change it either.
    fn rebinding(&mut self, file: FileId, scope: &[Name], name: &Name) -> Option<bool> {
        let sources = self.sources;
        let find = || Arc::new(rebound(sources, file));
        let names = self.rebound.entry(file).or_insert_with(|| match sources.facts() {
            Some(facts) => facts.rebound.get(file, find),
            None => find(),
        });
        names.get(name)?.get(scope).copied()
    }

    /// What is known of a variable that held a value, as other functions may have bound or changed it since.
    pub(crate) fn since(
        &mut self,
        (file, scope): (FileId, &[Name]),
        name: &Name,
        value: &Value,
    ) -> Value {
        let is_kept = match value {
            // It is the same object, class or module whatever is in it.
            Value::Object(_) | Value::Named(_) => self.rebinding(file, scope, name) != Some(true),
            _ => !self.is_rebound(file, scope, name),
        };
        if is_kept { value.clone() } else { value.degraded() }
    }

    /// What is known of a variable's value now: less than when it was assigned, where its memory
    /// was replaced since or a launch may have written it.
    pub(crate) fn current(&self, mut value: Value) -> Value {
        if !self.replaced.is_empty() {
            value.forget_replaced(&self.replaced);
        }
        if !self.recast.is_empty() {
            value.change_memory(&|id| self.recast.contains(&id), &|tensor| tensor.dtype = None);
        }
        self.note_memory_of(&mut value);
        if self.arrays_written
            && let Value::Array(array) = &mut value
        {
            array.note_write();
        }
        value
    }

    /// `tensor.data = value`: the tensor is what it was and has the elements and the memory of another one.
    pub(crate) fn replace_data(&mut self, tensor: &Tensor, value: &Value) {
        let Some(id) = tensor.allocation() else { return };
        let is_parameter = self.parameters.contains(&id);
        let known = matches!(value, Value::Tensor(_)) && self.doubt.is_straight();
        let value = match (known, is_parameter) {
            (true, true) => Some(self.parameter_of(value.clone())),
            (true, false) => Some(value.clone()),
            (false, _) => None,
        };
        let made = value.and_then(|value| match value {
            // Whether its gradient is wanted stays what it is.
            Value::Tensor(made) if made.memory() != Some(id) => Some(made.without_gradient()),
            _ => None,
        });
        let is_wanted = self.wanted.contains(&id);
        let new = made.as_ref().and_then(Tensor::allocation).filter(|_| is_wanted);
        self.wanted.extend(new);
        let before = tensor.clone();
        self.replaced.insert(id, made.map(|now| Replacement { before, now }));
    }

    /// Notes that the tensor that `object` names may have another shape and other memory now.
    pub(crate) fn note_replaced(&mut self, frame: &mut Frame, object: ExprId) {
        let Value::Tensor(tensor) = self.expr(frame, object) else { return };
        self.replaced.extend(tensor.allocation().map(|id| (id, None)));
        if let Expr::Name(name) = &frame.code.body().exprs[object] {
            let name = name.clone();
            frame.variables.insert(name, Value::tensor(tensor.dtype.as_deref()));
        }
    }
}

impl Value {
    /// What is left to know when something else may have been assigned.
    pub(crate) fn degraded(&self) -> Value {
        match self {
            Value::Tensor(tensor) => Value::tensor(tensor.dtype.as_deref()),
            Value::Int(_) | Value::Address { .. } => Value::Int(None),
            Value::Float(_) => Value::Float(None),
            Value::Bool(_) => Value::Bool(None),
            _ => Value::Unknown,
        }
    }

    /// Forgets all but the dtype of tensors in memory that was replaced, where it is not known by which
    /// tensor.
    fn forget_replaced(&mut self, replaced: &Replaced) {
        match self {
            Value::Tensor(tensor) => {
                // What took its place may have been replaced as well.
                for _ in 0..replaced.len() {
                    let Some(made) = tensor.allocation().and_then(|id| replaced.get(&id)) else {
                        break;
                    };
                    let now = made.as_ref().filter(|made| made.is_of(tensor));
                    let dtype = tensor.dtype.clone();
                    *tensor = now.map_or_else(
                        || Tensor { dtype, ..Tensor::default() },
                        |replacement| replacement.now.clone(),
                    );
                }
            }
            Value::Tuple(items) | Value::List(items) | Value::Record { items, .. } => {
                items.iter_mut().for_each(|item| item.forget_replaced(replaced));
            }
            Value::Dict(entries) => {
                entries.iter_mut().for_each(|(_, value)| value.forget_replaced(replaced));
            }
            Value::Callable(Callable::Partial { args, .. }) => {
                args.iter_mut().for_each(|(_, value)| value.forget_replaced(replaced));
            }
            _ => {}
        }
    }
}
