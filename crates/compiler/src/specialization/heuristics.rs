//! What heuristics of a kernel make of the arguments of one launch.

use std::sync::Arc;

use super::host::Host;
use super::host::value::{Tensor, Value};
use super::{ConstArg, tuning};
use crate::hir::Name;
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
    let mut seen: Vec<(Value, Value)> =
        args.iter().map(|(name, passed)| (Value::Str(name.clone()), passed.value())).collect();
    let mut set = Vec::new();
    for (name, function) in tuning.heuristics.iter().zip(&tuning.heuristic_functions) {
        let meta = Value::Dict(seen.clone());
        let value = Host::new(sources).call_value(function, &[(None, meta)]);
        let Some(value) = value.to_const() else { continue };
        seen.retain(|(key, _)| !matches!(key, Value::Str(known) if known == name));
        seen.push((Value::Str(name.clone()), Value::from_const(&value)));
        set.push((name.clone(), value));
    }
    set
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
                Value::Tensor(Tensor { dtype, shape, strides, storage: None })
            }
        }
    }
}
