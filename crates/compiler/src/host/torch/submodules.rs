//! What modules of PyTorch hold: parameters, and modules within them.

use crate::host::Host;
use crate::host::code::arguments::Args;
use crate::host::torch::data;
use crate::host::value::Value;

/// The method that gives parameters and buffers by their names.
const STATE: &str = "state_dict";

/// The method that takes them.
const LOAD: &str = "load_state_dict";

/// Whether a method of a module writes nothing to what it holds.
fn only_reads(method: &str) -> bool {
    ["get_", "named_", "register_"].iter().any(|begin| method.starts_with(begin))
        || matches!(
            method,
            "buffers" | "children" | "extra_repr" | "modules" | "parameters" | STATE
        )
}

impl Host<'_> {
    /// What a method of a module goes over: parameters, the modules that it holds, or all within it and itself,
    /// or the dict of its state; `None` for other methods.
    pub(crate) fn within_module(&self, object: usize, method: &str) -> Option<Value> {
        if method == STATE {
            let named = |(name, held): (String, Value)| (Value::Str(name.into()), held);
            let state = self.parameters_of(object)?.into_iter().map(named).collect();
            return Some(Value::Dict(state));
        }
        let (is_named, goes_over) = match method.strip_prefix("named_") {
            Some(goes_over) => (true, goes_over),
            None => (false, method),
        };
        let held = match goes_over {
            "parameters" => self.parameters_of(object),
            "children" => self.modules_held(object).map(listed),
            "modules" => self.all_modules(object).map(listed),
            _ => return None,
        };
        let given = |(name, held): (String, Value)| match is_named {
            true => Value::Tuple(vec![Value::Str(name.into()), held]),
            false => held,
        };
        let given = |held: Vec<_>| Value::List(held.into_iter().map(given).collect());
        Some(held.map_or(Value::Unknown, given))
    }

    /// What a method of a module does that may change what it holds.
    pub(crate) fn changed_module(&mut self, object: usize, method: &str, args: &Args<'_>) -> Value {
        let module = Value::Object(object);
        match method {
            "apply"
                if let Some(function) = args.get(0, "fn")
                    && let Some(modules) = self.all_modules(object) =>
            {
                for (_, inner) in modules.into_iter().rev() {
                    self.call_value(function, &[(None, Value::Object(inner))]);
                }
                return module;
            }
            LOAD => self.load(object, args.get(0, "state_dict")),
            method if only_reads(method) => {}
            _ => self.note_written(&self.reached([&module])),
        }
        Value::Unknown
    }

    /// Gives the parameters of a module what a dict of a state has by their names.
    fn load(&mut self, object: usize, state: Option<&Value>) {
        let taken = |(name, parameter): (String, Value)| {
            let Some(Value::Dict(state)) = state else { return None };
            let name = Value::Str(name.into());
            let (_, given) = state.iter().find(|(key, _)| *key == name)?;
            let Value::Tensor(given) = self.current(given.clone()) else { return None };
            let Value::Tensor(parameter) = parameter else { return None };
            let is_same = given.dtype == parameter.dtype && given.shape == parameter.shape;
            data::whole(&given).filter(|_| is_same)?;
            Some((parameter.allocation()?, given.storage?.contents))
        };
        let parameters = self.parameters_of(object).unwrap_or_default();
        let loaded: Vec<_> = parameters.into_iter().filter_map(taken).collect();
        self.note_written(&self.reached([&Value::Object(object)]));
        loaded.into_iter().for_each(|(id, contents)| self.note_filled(id, contents));
    }

    /// The parameters of a module, in the order in which they were made, and then those of modules within it, with their
    /// names, each once; `None` where something that these hold is not known.
    fn parameters_of(&self, object: usize) -> Option<Vec<(String, Value)>> {
        let mut found: Vec<(String, Value)> = Vec::new();
        for (path, module) in self.all_modules(object)? {
            let before = found.len();
            for (name, held) in self.objects.get(&module)? {
                let Value::Tensor(tensor) = held else { continue };
                let is_parameter =
                    |id: u32| self.parameters.contains(&id) && !self.buffers.contains(&id);
                let is_known = || {
                    found[..before]
                        .iter()
                        .any(|(_, known)| known.allocations() == held.allocations())
                };
                if tensor.memory().is_some_and(is_parameter) && !is_known() {
                    found.push((joined(&path, name), held.clone()));
                }
            }
            found[before..].sort_by_key(|(_, value)| value.allocations().into_iter().min());
        }
        Some(found)
    }

    /// A module and all within it, each once, the outer ones first, with the paths to them; `None` where
    /// something that these hold is not known.
    fn all_modules(&self, object: usize) -> Option<Vec<(String, usize)>> {
        let mut found = Vec::new();
        self.add_modules((String::new(), object), &mut found)?;
        Some(found)
    }

    fn add_modules(
        &self,
        (path, object): (String, usize),
        found: &mut Vec<(String, usize)>,
    ) -> Option<()> {
        if found.iter().any(|(_, known)| *known == object) {
            return Some(());
        }
        found.push((path.clone(), object));
        for (name, child) in self.modules_held(object)? {
            self.add_modules((joined(&path, &name), child), found)?;
        }
        Some(())
    }

    /// The modules that a module holds itself, in the order in which they were made, each once.
    fn modules_held(&self, object: usize) -> Option<Vec<(String, usize)>> {
        let mut found: Vec<(String, usize)> = Vec::new();
        for (name, held) in self.objects.get(&object)? {
            match held {
                Value::Unknown | Value::Collection | Value::OneOf(_) => return None,
                Value::Object(inner) if self.is_torch_object(*inner) => {
                    found.push((name.to_string(), *inner));
                }
                _ => {}
            }
        }
        found.sort_by_key(|(_, module)| *module);
        found.dedup_by_key(|(_, module)| *module);
        Some(found)
    }
}

fn listed(modules: Vec<(String, usize)>) -> Vec<(String, Value)> {
    modules.into_iter().map(|(name, module)| (name, Value::Object(module))).collect()
}

/// The path of what a module has by a name.
fn joined(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
