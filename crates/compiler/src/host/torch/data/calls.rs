//! Which functions and methods make numbers of numbers.

use super::{
    Made, Ties, along, arithmetic, assigned, chosen, convolutions, einsum, joined, layers, losses,
    norms, pools, products, sampled, solved,
};
use crate::builtins::TORCH;
use crate::hir::Name;
use crate::host::code::arguments::Args;
use crate::host::value::{Tensor, Value};

/// What a method of a tensor makes, or a function of it and what follows; `None` where that is not
/// known.
pub(crate) fn of_method(name: &str, tensor: &Tensor, args: &Args<'_>, ties: Ties) -> Option<Made> {
    if let Some(args) = spelled_by_torch(args.0) {
        return of_method(name, tensor, &Args(&args), ties);
    }
    along::made_of(name, tensor, args, ties)
        .or_else(|| chosen::made_of(name, tensor, args))
        .or_else(|| of_matrices(name, tensor, args))
        .or_else(|| arithmetic::made_of(name, tensor, args).map(Made::One))
        .or_else(|| products::made_of(name, tensor, args).map(Made::One))
        .or_else(|| layers::made_of(name, tensor, args).map(Made::One))
        .or_else(|| norms::made_of(name, tensor, args).map(Made::One))
        .or_else(|| pools::made_of(name, tensor, args).map(Made::One))
        .or_else(|| sampled::made_of(name, tensor, args).map(Made::One))
        .or_else(|| losses::made_of(name, tensor, args).map(Made::One))
        .or_else(|| convolutions::made_of(name, tensor, args).map(Made::One))
        .or_else(|| assigned::made_of(name, tensor, args).map(Made::One))
        .or_else(|| joined::made_like(name, tensor, args).map(Made::One))
}

/// Arguments with PyTorch's names of parameters, where some are spelled as NumPy does.
pub(super) fn spelled_by_torch(
    args: &[(Option<Name>, Value)],
) -> Option<Vec<(Option<Name>, Value)>> {
    let own = |(name, value): &(Option<Name>, Value)| {
        (numpy_spelling(name).map(Name::from).or_else(|| name.clone()), value.clone())
    };
    let is_spelled = args.iter().any(|(name, _)| numpy_spelling(name).is_some());
    is_spelled.then(|| args.iter().map(own).collect())
}

/// PyTorch's name of a parameter that may be spelled as NumPy does.
fn numpy_spelling(name: &Option<Name>) -> Option<&'static str> {
    match name.as_deref() {
        Some("axis") => Some("dim"),
        Some("keepdims") => Some("keepdim"),
        _ => None,
    }
}

/// What those functions of linear algebra make of a tensor that PyTorch has outside of `torch.linalg` as well.
fn of_matrices(name: &str, tensor: &Tensor, args: &Args<'_>) -> Option<Made> {
    let has_it =
        matches!(name, "cholesky" | "det" | "inverse" | "matrix_power" | "triangular_solve");
    has_it.then(|| solved::made_of(name, tensor, args))?
}

/// What a function of `torch.linalg` makes.
fn of_linear_algebra(name: &str, args: &Args<'_>, ties: Ties) -> Option<Made> {
    if name == "multi_dot" {
        let matrices = args.get(0, "tensors")?.elements()?;
        return solved::product_of_all(&matrices.iter().collect::<Vec<_>>()).map(Made::One);
    }
    let (tensor, rest) = match args.keyword("x") {
        Some(Value::Tensor(tensor)) => (tensor, Args(args.0)),
        _ => args.of_input()?,
    };
    match name {
        "matmul" => of_method("matmul", tensor, &rest, ties),
        "norm" | "vector_norm" => layers::length_of(tensor, &rest).map(Made::One),
        "cross" => {
            let last = (Some(Name::from("dim")), Value::Int(Some(-1)));
            let told = rest.keyword("dim").is_some();
            let args: Vec<_> = rest.0.iter().cloned().chain((!told).then_some(last)).collect();
            of_method("cross", tensor, &Args(&args), ties)
        }
        name => solved::made_of(name, tensor, &rest),
    }
}

/// What a function of PyTorch makes, or one of einops; `None` where that is not known.
pub(crate) fn by_torch(path: &[Name], args: &Args<'_>, ties: Ties) -> Option<Made> {
    let name = match path {
        [torch, name] if **torch == *TORCH => name,
        [torch, nn, functional, name]
            if [&**torch, &**nn, &**functional] == [TORCH, "nn", "functional"] =>
        {
            name
        }
        [torch, module, name] if [&**torch, &**module] == [TORCH, "special"] => name,
        [torch, nn, utils, rnn, name]
            if [&**torch, &**nn, &**utils, &**rnn] == [TORCH, "nn", "utils", "rnn"] =>
        {
            name
        }
        [torch, module, name] if [&**torch, &**module] == [TORCH, "linalg"] => {
            return of_linear_algebra(name, args, ties);
        }
        [einops, name] if &**einops == "einops" => {
            return match &**name {
                "einsum" => einsum::einops_einsum(args),
                name @ ("rearrange" | "reduce" | "repeat") => einsum::einops(name, args),
                _ => None,
            }
            .map(Made::One);
        }
        _ => return None,
    };
    if &**name == "einsum" {
        return einsum::einsum(args).map(Made::One);
    }
    if args.keyword("out").is_some() {
        return None;
    }
    if let ("where", [(None, Value::Tensor(condition))]) = (&**name, args.0) {
        return of_method("nonzero", condition, &Args(&[(None, Value::Bool(Some(true)))]), ties);
    }
    if &**name == "chain_matmul" {
        return solved::product_of_all(&args.positional()).map(Made::One);
    }
    if let Some(made) = joined::made_by(name, args) {
        return Some(Made::One(made));
    }
    match args.of_input() {
        Some((tensor, rest)) => of_method(name, tensor, &rest, ties),
        None => arithmetic::of_number(name, args).map(Made::One),
    }
}
