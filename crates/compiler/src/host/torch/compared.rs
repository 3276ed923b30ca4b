//! Comparisons and products of tensors by PyTorch, which refuse tensors of two types.

use crate::hir::{BinaryOp, Name};
use crate::host::Host;
use crate::host::code::arguments::Args;
use crate::host::code::operators::truth;
use crate::host::torch::misuse::Misuse;
use crate::host::value::{Tensor, Value};

/// Functions and methods that compare a tensor with another one of its type, as users call the functions.
const OF_ONE_TYPE: &[(&str, &str)] =
    &[("allclose", "torch.allclose"), ("isclose", "torch.isclose")];

/// The function behind `@`.
const PRODUCT: &str = "torch.matmul";

/// Functions, and methods of these names, that multiply tensors of one type, as users call the functions, with the
/// parameters after the first tensor that are of its type. Source: what PyTorch raises.
const PRODUCTS: &[(&str, &str, &[&str])] = &[
    ("addmm", "torch.addmm", &["mat1", "mat2"]),
    ("addmv", "torch.addmv", &["mat", "vec"]),
    ("baddbmm", "torch.baddbmm", &["batch1", "batch2"]),
    ("bmm", "torch.bmm", &["mat2"]),
    ("dot", "torch.dot", &["tensor"]),
    ("linear", "torch.nn.functional.linear", &["weight"]),
    ("matmul", PRODUCT, &["other"]),
    ("mm", "torch.mm", &["mat2"]),
    ("mv", "torch.mv", &["vec"]),
];

impl Host<'_> {
    /// Why `left @ right` is refused because of the types, where PyTorch does not choose them.
    pub(crate) fn product_of_types(
        &mut self,
        op: BinaryOp,
        left: &Value,
        right: &Value,
    ) -> Option<Misuse> {
        let (BinaryOp::MatMul, Value::Tensor(left), Value::Tensor(right)) = (op, left, right)
        else {
            return None;
        };
        let misuse = other_types(PRODUCT, left, right)?;
        (self.chooses_types() == Some(false)).then_some(misuse)
    }

    /// Why a function of PyTorch refuses to multiply what it is given because of the types.
    pub(crate) fn function_of_types(&mut self, path: &[Name], args: &Args<'_>) -> Option<Misuse> {
        let is_called = |(_, function, _): &&(&str, &str, &[&str])| {
            function.split('.').eq(path.iter().map(|part| &**part))
        };
        let (name, ..) = PRODUCTS.iter().find(is_called)?;
        let Value::Tensor(tensor) = args.get(0, "input")? else { return None };
        let rest = match args.keyword("input") {
            Some(_) => args.0,
            None => args.0.get(1..)?,
        };
        self.method_of_types(name, tensor, &Args(rest))
    }

    /// Why a method of a tensor refuses to multiply it with its arguments because of the types.
    pub(crate) fn method_of_types(
        &mut self,
        name: &str,
        tensor: &Tensor,
        args: &Args<'_>,
    ) -> Option<Misuse> {
        let (_, function, params) = PRODUCTS.iter().find(|(known, ..)| *known == name)?;
        let of_other = |(at, param): (usize, &&str)| match args.get(at, param)? {
            Value::Tensor(other) => Some(other),
            _ => None,
        };
        // What is no plain tensor may do the whole product in its own way.
        let others: Option<Vec<_>> = params.iter().enumerate().map(of_other).collect();
        let misuse = others?.into_iter().find_map(|other| other_types(function, tensor, other))?;
        (self.chooses_types() == Some(false)).then_some(misuse)
    }
}

/// Why `torch.testing.assert_close(...)` raises an exception whatever the tensors hold.
pub(crate) fn not_asserted(args: &Args<'_>) -> Option<Misuse> {
    let compares_types = match args.keyword("check_dtype") {
        None => true,
        Some(told) => truth(told) == Some(true),
    };
    let (Value::Tensor(actual), Value::Tensor(expected)) =
        (args.get(0, "actual")?, args.get(1, "expected")?)
    else {
        return None;
    };
    compares_types.then(|| other_types("torch.testing.assert_close", actual, expected))?
}

/// Why `name` of a tensor, as a function or as a method, is refused with the arguments after it.
pub(crate) fn not_compared(name: &str, tensor: &Tensor, args: &Args<'_>) -> Option<Misuse> {
    let (_, function) = OF_ONE_TYPE.iter().find(|(known, _)| *known == name)?;
    match args.get(0, "other")? {
        Value::Tensor(other) => other_types(function, tensor, other),
        _ => None,
    }
}

fn other_types(function: &'static str, a: &Tensor, b: &Tensor) -> Option<Misuse> {
    let (a, b) = (a.dtype.clone()?, b.dtype.clone()?);
    (a != b).then_some(Misuse::OtherTypes { function, dtypes: [a, b] })
}
