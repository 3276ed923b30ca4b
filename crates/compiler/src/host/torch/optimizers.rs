//! Optimizers of PyTorch: the groups of parameters that they keep, and a state for each parameter.

use crate::hir::Name;
use crate::host::Host;
use crate::host::code::arguments::Args;
use crate::host::code::operators;
use crate::host::library::collections;
use crate::host::value::{Dict, Value};

/// The attribute that lists the groups of parameters.
const GROUPS: &str = "param_groups";

impl Host<'_> {
    /// Does to an object what `Optimizer.__init__(params, defaults)` does.
    pub(crate) fn construct_optimizer(&mut self, object: usize, args: &Args<'_>) {
        let defaults = args.get(1, "defaults").cloned().unwrap_or(Value::Unknown);
        let groups = args.get(0, "params").and_then(|params| groups(params, &defaults));
        let state = self.object();
        if let Value::Object(state) = state {
            self.states.insert(state);
        }
        let set = [
            ("defaults", defaults),
            (GROUPS, groups.map_or(Value::Unknown, Value::List)),
            ("state", state),
        ];
        for (name, value) in set {
            self.set_attribute(object, &name.into(), value);
        }
    }

    /// The parameters whose gradients `zero_grad` of a module or of an optimizer drops, if they are known.
    pub(crate) fn parameters_to_drop(&mut self, of: usize) -> Option<Vec<Value>> {
        if !self.has_own(of, GROUPS) {
            let parameters = self.within_module(of, "parameters")?;
            return parameters.elements();
        }
        let mut parameters = Vec::new();
        for group in self.object_attribute(of, GROUPS).elements()? {
            let listed = operators::subscript(&group, &Value::Str("params".into()));
            parameters.extend(listed.elements()?);
        }
        Some(parameters)
    }

    /// What an optimizer keeps for a parameter: nothing before its first step, and what a run that computes all
    /// numbers has put there. `None` of what is no optimizer's state.
    pub(crate) fn kept_for_parameter(&mut self, state: &Value, parameter: &Value) -> Option<Value> {
        let Value::Object(state) = state else { return None };
        if !self.states.contains(state) {
            return None;
        }
        if self.launcher.is_none() {
            return Some(Value::Dict(Dict::default()));
        }
        let memory = match parameter {
            Value::Tensor(tensor) => tensor.memory(),
            _ => None,
        };
        let Some(memory) = memory else { return Some(Value::Unknown) };
        let place: Name = format!("parameter {memory}").into();
        if !self.has_own(*state, &place) {
            let kept = self.object();
            if let Value::Object(kept) = kept {
                self.fill_mapping(kept, &Args(&[]));
            }
            self.set_attribute(*state, &place, kept);
        }
        Some(self.object_attribute(*state, &place))
    }
}

/// The groups of parameters, each with what all have by default: one, where parameters are listed.
fn groups(params: &Value, defaults: &Value) -> Option<Vec<Value>> {
    let Value::Dict(defaults) = defaults else { return None };
    let listed = params.elements().filter(|listed| !listed.is_empty())?;
    let group = |own: &[(Value, Value)]| {
        let mut group = defaults.clone();
        for (key, value) in own {
            collections::set(&mut group, key.clone(), value.clone())?;
        }
        Some(Value::Dict(group))
    };
    let is_group = |listed: &Value| matches!(listed, Value::Dict(_));
    if !listed.iter().any(is_group) {
        let own = (Value::Str("params".into()), Value::List(listed));
        return Some(vec![group(&[own])?]);
    }
    let groups = listed.iter().map(|listed| match listed {
        Value::Dict(own) => group(own),
        _ => None,
    });
    groups.collect()
}
