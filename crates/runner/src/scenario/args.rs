//! Arguments of the functions and methods of scenarios.

use super::dtype::DType;
use super::error::{Eval, fault};
use super::tensor::Value;

/// Arguments of a call.
#[derive(Debug, Clone)]
pub(super) struct Args {
    pub positional: Vec<Value>,
    pub named: Vec<(String, Value)>,
}

impl Args {
    /// Takes the named argument `name`, by the first of its spellings that is given.
    pub fn named(&mut self, names: &[&str]) -> Option<Value> {
        let at = self.named.iter().position(|(name, _)| names.contains(&name.as_str()))?;
        Some(self.named.remove(at).1)
    }

    /// Takes an argument that may be given by position or name.
    pub fn take(&mut self, names: &[&str]) -> Option<Value> {
        if self.positional.is_empty() {
            return self.named(names);
        }
        Some(self.positional.remove(0))
    }

    pub fn need(&mut self, function: &str, names: &[&str]) -> Eval<Value> {
        self.take(names).ok_or_else(|| fault!("{function} needs the argument `{}`", names[0]))
    }

    /// Fails if anything is left.
    pub fn finish(self, function: &str) -> Eval<()> {
        if let Some((name, _)) = self.named.first() {
            return Err(fault!("{function} has no argument `{name}`"));
        }
        match self.positional.len() {
            0 => Ok(()),
            count => Err(fault!("{function} was given {count} arguments too many")),
        }
    }
}

/// Takes the argument `dtype`.
pub(super) fn dtype_argument(args: &mut Args) -> Eval<Option<DType>> {
    args.named(&["dtype"]).map(|value| to_dtype(&value)).transpose()
}

/// The element type that a value names.
pub(super) fn to_dtype(value: &Value) -> Eval<DType> {
    match value {
        Value::DType(dtype) => Ok(*dtype),
        Value::Str(name) => {
            DType::from_name(name).ok_or_else(|| fault!("there is no dtype `{name}`"))
        }
        other => Err(fault!("a dtype is needed here, not {}", other.kind())),
    }
}
