//! Which functions and methods make numbers of numbers.

use super::{Made, Ties, along, arithmetic, chosen, joined, layers, products};
use crate::builtins::TORCH;
use crate::hir::Name;
use crate::host::code::arguments::Args;
use crate::host::value::{Tensor, Value};

/// What a method of a tensor makes, or a function of it and what follows; `None` where that is not
/// known.
pub(crate) fn of_method(name: &str, tensor: &Tensor, args: &Args<'_>, ties: Ties) -> Option<Made> {
    along::made_of(name, tensor, args, ties)
        .or_else(|| chosen::made_of(name, tensor, args))
        .or_else(|| arithmetic::made_of(name, tensor, args).map(Made::One))
        .or_else(|| products::made_of(name, tensor, args).map(Made::One))
        .or_else(|| layers::made_of(name, tensor, args).map(Made::One))
}

/// What a function of PyTorch makes; `None` where that is not known.
pub(crate) fn by_torch(path: &[Name], args: &Args<'_>, ties: Ties) -> Option<Made> {
    let name = match path {
        [torch, name] if **torch == *TORCH => name,
        [torch, nn, functional, name]
            if [&**torch, &**nn, &**functional] == [TORCH, "nn", "functional"] =>
        {
            name
        }
        _ => return None,
    };
    if args.keyword("out").is_some() {
        return None;
    }
    if let ("where", [(None, Value::Tensor(condition))]) = (&**name, args.0) {
        return of_method("nonzero", condition, &Args(&[(None, Value::Bool(Some(true)))]), ties);
    }
    if let Some(made) = joined::made_by(name, args) {
        return Some(Made::One(made));
    }
    let (tensor, rest) = args.of_input()?;
    of_method(name, tensor, &rest, ties)
}
