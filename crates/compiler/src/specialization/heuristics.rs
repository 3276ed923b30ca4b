//! What heuristics of a kernel make of the arguments of a launch.

use std::sync::Arc;

use indexmap::IndexMap;

use super::{ConstArg, tuning};
use crate::hir::Name;
use crate::host::Host;
use crate::host::value::{Tensor, Value};
use crate::project::{ItemRef, Sources, kernel};

/// An argument as heuristics see it.
#[derive(Debug, Clone, PartialEq)]
pub enum Passed {
    /// A number, a text, `None`.
    Value(ConstArg),
    /// A tensor.
    Tensor {
        /// Element type by signature spelling.
        dtype: Arc<str>,
        /// Sizes.
        shape: Vec<i128>,
        /// Distances between neighbors along each dimension, in elements.
        strides: Vec<i128>,
    },
}

/// The parameters that `@triton.heuristics` sets where the kernel `at` is launched with `args`, in
/// order: each sees what those before it set. What cannot be followed is left out.
pub fn heuristics(
    sources: &dyn Sources,
    at: ItemRef,
    args: &[(Name, Passed)],
) -> Vec<(Name, ConstArg)> {
    let Some(kernel) = kernel(sources, at) else { return Vec::new() };
    let tuning = tuning(sources, &kernel);
    let mut seen: IndexMap<Name, Value> =
        args.iter().map(|(name, passed)| (name.clone(), passed.value())).collect();
    let mut set = Vec::new();
    for (name, function) in tuning.heuristics.iter().zip(&tuning.heuristic_functions) {
        let args = seen.iter().map(|(name, value)| (name, value.clone()));
        let Some(value) = computed(sources, name, function, args).to_const() else { continue };
        seen.insert(name.clone(), Value::from_const(&value));
        set.push((name.clone(), value));
    }
    set
}

/// What `function` makes of the arguments of a launch, apart from `name`, which it sets; or what it
/// raises an exception for.
pub(super) fn computed<'a>(
    sources: &dyn Sources,
    name: &Name,
    function: &Value,
    args: impl Iterator<Item = (&'a Name, Value)>,
) -> Value {
    let others = args.filter(|(known, _)| *known != name);
    let others = others.map(|(known, value)| (Value::Str(known.clone()), value)).collect();
    Host::new(sources).outcome(function, &[(None, Value::Dict(others))])
}

impl Passed {
    fn value(&self) -> Value {
        match self {
            Passed::Value(value) => Value::from_const(value),
            Passed::Tensor { dtype, shape, strides } => {
                let numbers =
                    |of: &[i128]| Some(of.iter().map(|&size| Value::Int(Some(size))).collect());
                let (shape, strides) = (numbers(shape), numbers(strides));
                let dtype = Some(dtype.clone());
                Value::Tensor(Tensor { dtype, shape, strides, ..Tensor::default() })
            }
        }
    }
}
