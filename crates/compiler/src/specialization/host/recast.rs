//! What gives the parameters of a module of PyTorch another type in place.

use std::sync::Arc;

use super::Host;
use super::arguments::Args;
use super::dtype::is_float;
use super::instances::keeps_module;
use super::tensor::given_dtype;
use super::value::{Tensor, Value};
use super::views::with_dtype;
use crate::hir::collections::root;
use crate::hir::{Body, Expr, Name, Stmt};

/// Methods that may give what a module holds another type.
const METHODS: &[&str] = &["bfloat16", "double", "float", "half", "to", "type"];

/// A dtype, where it is known.
type Dtype = Option<Arc<str>>;

impl Host<'_> {
    /// Calls a method of PyTorch's own of a module.
    pub(super) fn module_method(
        &mut self,
        object: usize,
        name: &str,
        args: &[(Option<Name>, Value)],
    ) -> Value {
        if matches!(name, "named_parameters" | "parameters") && args.is_empty() {
            let listed = |(own, parameter): (String, Value)| match name {
                "parameters" => parameter,
                _ => Value::Tuple(vec![Value::Str(own.into()), parameter]),
            };
            let parameters = self.parameters_of(object, &mut Vec::new());
            return parameters.map_or(Value::Unknown, |parameters| {
                Value::List(parameters.into_iter().map(listed).collect())
            });
        }
        if let Some(modules) = self.modules_in(object, name).filter(|_| args.is_empty()) {
            return Value::List(modules);
        }
        match asked_for(name, &Args(args)) {
            Some(dtype) => self.recast(object, &dtype, &mut Vec::new()),
            None if keeps_module(name, args) => {}
            None => return Value::Unknown,
        }
        Value::Object(object)
    }

    /// The parameters of a module and of those that it holds, with their names, in the order in which they were made; `None`
    /// where something that it holds is not known.
    fn parameters_of(&self, object: usize, seen: &mut Vec<usize>) -> Option<Vec<(String, Value)>> {
        let mut found: Vec<(String, Value)> = Vec::new();
        if seen.contains(&object) {
            return Some(found);
        }
        seen.push(object);
        for (name, held) in self.objects.get(&object)? {
            match held {
                Value::Unknown | Value::Collection | Value::OneOf(_) => return None,
                Value::Object(inner) if self.is_torch_object(*inner) => {
                    let inner = self.parameters_of(*inner, seen)?.into_iter();
                    found.extend(inner.map(|(inner, value)| (format!("{name}.{inner}"), value)));
                }
                Value::Tensor(tensor) => {
                    let is_parameter =
                        tensor.memory().is_some_and(|id| self.parameters.contains(&id));
                    found.extend(is_parameter.then(|| (name.to_string(), held.clone())));
                }
                _ => {}
            }
        }
        found.sort_by_key(|(_, value)| value.allocations().into_iter().min());
        Some(found)
    }

    /// What a method of a module goes over: the modules that it holds, or all within it and itself; `None` for
    /// other methods, and where something that it holds is not known.
    fn modules_in(&self, object: usize, method: &str) -> Option<Vec<Value>> {
        let mut held = Vec::new();
        match method {
            "children" | "named_children" => {
                for (name, child) in self.held_modules(object)? {
                    held.push((name.to_string(), child));
                }
            }
            "modules" | "named_modules" => self.add_modules((String::new(), object), &mut held)?,
            _ => return None,
        }
        let listed = |(name, module): (String, usize)| match method.starts_with("named") {
            true => Value::Tuple(vec![Value::Str(name.into()), Value::Object(module)]),
            false => Value::Object(module),
        };
        Some(held.into_iter().map(listed).collect())
    }

    /// The modules that a module holds itself, in the order in which they were made, each once.
    fn held_modules(&self, object: usize) -> Option<Vec<(Name, usize)>> {
        let mut found: Vec<(Name, usize)> = Vec::new();
        for (name, held) in self.objects.get(&object)? {
            match held {
                Value::Unknown | Value::Collection | Value::OneOf(_) => return None,
                Value::Object(inner) if self.is_torch_object(*inner) => {
                    found.push((name.clone(), *inner));
                }
                _ => {}
            }
        }
        found.sort_by_key(|(_, module)| *module);
        found.dedup_by_key(|(_, module)| *module);
        Some(found)
    }

    /// Adds a module and all within it, each once, the outer ones first.
    fn add_modules(
        &self,
        (path, object): (String, usize),
        found: &mut Vec<(String, usize)>,
    ) -> Option<()> {
        if found.iter().any(|(_, known)| *known == object) {
            return Some(());
        }
        found.push((path.clone(), object));
        for (name, child) in self.held_modules(object)? {
            let path = if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
            self.add_modules((path, child), found)?;
        }
        Some(())
    }

    /// Gives the floats of a module, and of those that it holds, another type.
    fn recast(&mut self, object: usize, dtype: &Dtype, seen: &mut Vec<usize>) {
        if seen.contains(&object) {
            return;
        }
        seen.push(object);
        let attributes = self.objects.get(&object).into_iter().flatten();
        let attributes: Vec<(Name, Value)> =
            attributes.map(|(name, value)| (name.clone(), value.clone())).collect();
        for (name, value) in attributes {
            let recast = match value {
                Value::Object(inner) if self.is_torch_object(inner) => {
                    self.recast(inner, dtype, seen);
                    continue;
                }
                Value::Tensor(tensor) => self.recast_tensor(&tensor, dtype),
                _ => continue,
            };
            if let Some(attributes) = self.objects.get_mut(&object) {
                attributes.insert(name, recast);
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
        match is_parameter && self.doubt.is_sure() {
            true => {
                let recast = Value::Tensor(with_dtype(tensor, dtype.clone()));
                self.parameter_of(recast)
            }
            false => Value::Tensor(with_dtype(tensor, None)),
        }
    }

    /// A parameter or buffer of a module.
    pub(super) fn parameter_of(&mut self, data: Value) -> Value {
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
pub(super) fn recasts(body: &Body, name: &Name) -> bool {
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
