//! What tensors and tuples of host code are asked for that they do not have.

use crate::hir::Name;
use crate::host::{Difference, Misfit, Mismatch, Misuse};

/// What a tensor or a tuple is asked for that it does not have.
pub(super) fn misuse_text(misuse: &Misuse) -> String {
    match misuse {
        Misuse::Differs(difference) => difference_text(difference),
        Misuse::NoDimension { at, rank } => {
            format!("there is no dimension {at}: the tensor has {rank}")
        }
        Misuse::NoElement { at, len } => format!("there is no element {at}: the tuple has {len}"),
        Misuse::Unpacked { len, names } => {
            format!("a tuple of {len} is unpacked into {names} names")
        }
        Misuse::NoMember { name, .. } => format!("a tensor has no attribute `{name}`"),
        Misuse::NotCalled(name) => format!("`{name}` is a method of tensors"),
        Misuse::Called(name) => format!("`{name}` of a tensor is no method"),
        Misuse::NoRandom { function, dtype } => {
            format!("`torch.{function}` draws floats, not `{dtype}`")
        }
        Misuse::NoSizes { function, size } => {
            format!("`torch.{function}` takes a tuple of sizes, not `{size}`")
        }
        Misuse::NoMemberOf { class, name } => format!("`{class}` has no attribute `{name}`"),
        Misuse::NoOperands { symbol, classes: [a, b] } => {
            format!("`{symbol}` takes no `{a}` beside `{b}`")
        }
        Misuse::NoNumber { function, class } => {
            format!("`{function}` takes numbers, not a `{class}`")
        }
        Misuse::ArgumentCount { function, takes: 1, given } => {
            format!("`{function}` takes 1 argument, not {given}")
        }
        Misuse::ArgumentCount { function, takes, given } => {
            format!("`{function}` takes {takes} arguments, not {given}")
        }
        Misuse::Arguments { function, fault } => mismatch_text(function, fault),
        Misuse::Repeated(name) => format!("`{name}` is given twice"),
        Misuse::NoBits { symbol, dtype } => format!("`{symbol}` takes integers, not `{dtype}`"),
        Misuse::FloatIndex(dtype) => {
            format!("tensors are indexed by integers or truth values, not by `{dtype}`")
        }
        Misuse::NoOperator(symbol) => format!("`{symbol}` takes no `None` beside a number"),
        Misuse::OtherTypes { function, dtypes: [a, b] } => {
            format!("`{function}` takes tensors of one type, not of `{a}` and `{b}`")
        }
        Misuse::Sizes(misfit) => misfit_text(misfit),
    }
}

/// What of its arguments does not suit a function.
fn mismatch_text(function: &Name, fault: &Mismatch) -> String {
    match fault {
        Mismatch::NoParameter(name) => format!("`{function}` has no parameter `{name}`"),
        Mismatch::Twice(name) => format!("`{function}` is given `{name}` twice"),
        Mismatch::Missing(name) => format!("`{function}` is not given `{name}`"),
        Mismatch::TooMany { takes, given } => {
            let arguments = if *takes == 1 { "argument" } else { "arguments" };
            format!("`{function}` takes {takes} {arguments} by position, not {given}")
        }
    }
}

/// In what tensors differ that are compared.
pub(super) fn difference_text(
    Difference { count, all, at, actual, expected }: &Difference,
) -> String {
    let at = at.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
    let differ = if *count == 1 { "differs" } else { "differ" };
    format!("{count} of {all} elements {differ}: at [{at}] there is {actual} instead of {expected}")
}

/// Which sizes do not fit.
fn misfit_text(misfit: &Misfit) -> String {
    let of = |sizes: &[i128]| match sizes {
        [one] => format!("({one},)"),
        sizes => {
            format!("({})", sizes.iter().map(i128::to_string).collect::<Vec<_>>().join(", "))
        }
    };
    match misfit {
        Misfit::Broadcast([a, b]) => {
            format!("tensors of sizes {} and {} do not broadcast", of(a), of(b))
        }
        Misfit::Product([a, b]) => {
            format!("tensors of sizes {} and {} have no matrix product", of(a), of(b))
        }
        Misfit::View { of: own, to } => {
            format!("a tensor of sizes {} has no view of sizes {}", of(own), of(to))
        }
        Misfit::Expanded { of: own, to } => {
            format!("a tensor of sizes {} is not expanded to {}", of(own), of(to))
        }
        Misfit::Joined([a, b]) => {
            format!("tensors of sizes {} and {} do not fit together", of(a), of(b))
        }
        Misfit::Permuted { of: own, axes } => {
            format!("a tensor of sizes {} has not {axes} dimensions to permute", of(own))
        }
        Misfit::Index { at, size } => {
            format!("there is no index {at} along a dimension of {size}")
        }
        Misfit::Gradient { of: own, is } => {
            format!("the gradient has sizes {}, but the result has {}", of(is), of(own))
        }
        Misfit::Strided { elements, span } => {
            format!("the view reaches over {span} elements, and there are {elements}")
        }
        Misfit::NoGradient(own) => {
            format!("the result has sizes {}, so its gradient must be given", of(own))
        }
        Misfit::Empty { function, of: own } => {
            format!("a tensor of sizes {} has no elements, so it has no `{function}`", of(own))
        }
    }
}

/// What gives the value that a misuse of a tensor does not.
pub(super) fn instead(misuse: &Misuse) -> Option<String> {
    match misuse {
        Misuse::Differs(_)
        | Misuse::NoDimension { .. }
        | Misuse::NoElement { .. }
        | Misuse::NoMemberOf { .. }
        | Misuse::NoOperator(_)
        | Misuse::NoOperands { .. }
        | Misuse::NoNumber { .. }
        | Misuse::ArgumentCount { .. }
        | Misuse::Arguments { .. }
        | Misuse::Repeated(_)
        | Misuse::Sizes(_) => None,
        Misuse::OtherTypes { .. } => Some("convert one of them: `.to(...)`".to_owned()),
        Misuse::NoBits { .. } | Misuse::FloatIndex(_) => {
            Some("convert it to a type of integers first".to_owned())
        }
        Misuse::NoSizes { size, .. } => Some(format!("a tuple of one element: `({size},)`")),
        Misuse::NoRandom { .. } => Some("draw integers with `torch.randint`".to_owned()),
        Misuse::Unpacked { .. } => {
            Some("a tuple is unpacked into as many names as it has elements".to_owned())
        }
        Misuse::NoMember { meant, .. } => Some(format!("it is called `{meant}`")),
        Misuse::NotCalled(name @ ("stride" | "size")) => {
            Some(format!("call it with the dimension: `.{name}(0)`"))
        }
        Misuse::NotCalled(name) => Some(format!("call it: `.{name}()`")),
        Misuse::Called("shape") => Some("index it: `.shape[0]`, or call `.size(0)`".to_owned()),
        Misuse::Called(name) => Some(format!("leave out the parentheses: `.{name}`")),
    }
}
