//! What gives the parameters of a module of PyTorch another type in place.

use std::sync::Arc;

use crate::hir::collections::root;
use crate::hir::{Body, Expr, Name, Stmt};
use crate::host::Host;
use crate::host::code::arguments::Args;
use crate::host::objects::instances::keeps_module;
use crate::host::torch::devices;
use crate::host::torch::tensor::given_dtype;
use crate::host::torch::views::with_dtype;
use crate::host::value::dtype::is_float;
use crate::host::value::{Tensor, Value};

/// Methods that may give what a module holds another type.
const METHODS: &[&str] = &["bfloat16", "double", "float", "half", "to", "type"];

/// Methods that may move it to another device.
const MOVE: &[&str] = &["cpu", "cuda", "to"];

/// A dtype, where it is known.
type Dtype = Option<Arc<str>>;

impl Host<'_> {
    /// Calls a method of PyTorch's own of a module.
    pub(crate) fn module_method(
        &mut self,
        object: usize,
        name: &str,
        args: &[(Option<Name>, Value)],
    ) -> Value {
        if let Some(within) = self.within_module(object, name).filter(|_| args.is_empty()) {
            return within;
        }
        match asked_for(name, &Args(args)) {
            Some(dtype) => {
                let mut recast = |host: &mut Self, tensor: &_| host.recast_tensor(tensor, &dtype);
                self.change_tensors(object, &mut recast, &mut Vec::new());
            }
            None if keeps_module(name, args) => {}
            None => return self.changed_module(object, name, &Args(args)),
        }
        let mut moved = |_: &mut Self, tensor: &Tensor| {
            devices::given(tensor, (name, &Args(args)), Value::Tensor(tensor.clone()))
        };
        if MOVE.contains(&name) {
            self.change_tensors(object, &mut moved, &mut Vec::new());
        }
        Value::Object(object)
    }

    /// Changes the tensors of a module, and of those that it holds.
    fn change_tensors(
        &mut self,
        object: usize,
        change: &mut dyn FnMut(&mut Self, &Tensor) -> Value,
        seen: &mut Vec<usize>,
    ) {
        if seen.contains(&object) {
            return;
        }
        seen.push(object);
        let attributes = self.objects.get(&object).into_iter().flatten();
        let attributes: Vec<(Name, Value)> =
            attributes.map(|(name, value)| (name.clone(), value.clone())).collect();
        for (name, value) in attributes {
            let changed = match value {
                Value::Object(inner) if self.is_torch_object(inner) => {
                    self.change_tensors(inner, change, seen);
                    continue;
                }
                Value::Tensor(tensor) => change(self, &tensor),
                _ => continue,
            };
            if let Some(attributes) = self.objects.get_mut(&object) {
                attributes.insert(name, changed);
            }
        }
    }

    /// What an attribute of a module is then: tensors that are no parameters stay what they are.
    fn recast_tensor(&mut self, tensor: &Tensor, dtype: &Dtype) -> Value {
        if !tensor.dtype.as_deref().is_none_or(is_float) || tensor.dtype == *dtype {
            return Value::Tensor(tensor.clone());
        }
        // What is at hand of a parameter changes with it, but for what shows its data.
        let memory = tensor.memory();
        self.recast.extend(memory);
        let is_parameter = memory.is_some_and(|id| self.parameters.contains(&id));
        match is_parameter && self.doubt.has_run() {
            true => {
                let recast = Value::Tensor(with_dtype(tensor, dtype.clone()));
                self.parameter_of(recast)
            }
            false => Value::Tensor(with_dtype(tensor, None)),
        }
    }

    /// A parameter or buffer of a module.
    pub(crate) fn parameter_of(&mut self, data: Value) -> Value {
        let data = match data {
            Value::Tensor(tensor) if tensor.is_alone() => {
                let contents = tensor.storage.as_ref().map(|storage| storage.contents.clone());
                self.allocate(Value::Tensor(tensor), contents.unwrap_or_default())
            }
            data => data,
        };
        self.parameters.extend(data.allocations());
        data
    }
}

/// Whether a statement may give a module, or one in it, another type by a call.
pub(crate) fn recasts(body: &Body, name: &Name) -> bool {
    let recasts = |stmt: &Stmt| match stmt {
        Stmt::Expr(call) => match &body.exprs[*call] {
            Expr::Call { callee, .. } => match &body.exprs[*callee] {
                Expr::Attribute { value, attr } => {
                    METHODS.contains(&&**attr) && root(body, *value) == Some(name)
                }
                _ => false,
            },
            _ => false,
        },
        _ => false,
    };
    body.stmts.values().any(recasts)
}

/// The type that a method of modules gives what they hold; `None` where it gives none.
fn asked_for(name: &str, args: &Args<'_>) -> Option<Dtype> {
    let dtype = match name {
        "bfloat16" => "bf16",
        "double" => "fp64",
        "float" => "fp32",
        "half" => "fp16",
        "type" => return Some(args.get(0, "dst_type").and_then(given_dtype)),
        "to" => {
            let named = ["dtype", "tensor"].into_iter().filter_map(|name| args.keyword(name));
            return args.positional().into_iter().chain(named).find_map(named_type);
        }
        _ => return None,
    };
    Some(Some(dtype.into()))
}

/// The type that an argument of `to` names; `None` of a device and of flags.
fn named_type(value: &Value) -> Option<Dtype> {
    match value {
        Value::Tensor(other) => Some(other.dtype.clone()),
        Value::Str(_) | Value::None | Value::Omitted | Value::Bool(_) | Value::Int(_) => None,
        value => Some(given_dtype(value)),
    }
}
