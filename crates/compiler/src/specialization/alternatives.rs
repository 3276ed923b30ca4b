//! What else an argument might be, once a guess has turned out not to work.

use std::sync::Arc;

use super::guess;
use super::usage::{self, Use};
use super::{ArgSpec, ConstArg, Specialization};
use crate::project::{ItemRef, Sources, function};

/// Sizes that a block's extent is tried with.
const EXTENTS: &[i128] = &[128, 32, 16, 256, 1];

/// Tuples in tuples are tried this deep.
const MAX_NESTING: u32 = 2;

/// Elements that a pointer is tried with, after other things it may be.
const ELEMENTS: &[&str] =
    &["*fp32", "*i32", "*i64", "*fp16", "*i8", "*u8", "*fp8e4nv", "*bf16", "*i1"];

/// Other values for the argument `name` of the jit function `at`, most likely first.
pub(crate) fn alternatives(
    sources: &dyn Sources,
    at: ItemRef,
    spec: &Specialization,
    name: &str,
) -> Vec<ArgSpec> {
    let (Some(current), Some(function)) = (spec.args.get(name), function(sources, at)) else {
        return Vec::new();
    };
    let Some(index) = function.params.iter().position(|param| &*param.name == name) else {
        return Vec::new();
    };
    let uses = usage::uses(sources, at).get(index).copied().unwrap_or_default();
    let is_constexpr = function.params[index].annotation.is_some();
    let mut found = match current {
        ArgSpec::Constexpr(ConstArg::None) if is_constexpr => [
            ConstArg::Int(64),
            ConstArg::Int(4),
            ConstArg::Bool(true),
            ConstArg::DType("fp32".into()),
        ]
        .map(ArgSpec::Constexpr)
        .to_vec(),
        ArgSpec::Constexpr(ConstArg::None) => present(&uses),
        ArgSpec::Constexpr(value) => constants(value),
        ArgSpec::Runtime { signature, .. } => {
            let mut found = other_types(signature);
            if signature.starts_with('*') {
                // Operands of one operation have one type.
                found.splice(0..0, other_pointers(spec));
            }
            found
        }
        ArgSpec::Tuple(tuple) => {
            let items = &tuple.items;
            let longer = ArgSpec::Tuple([items.clone(), items.clone()].concat().into());
            let others = other_elements(items, MAX_NESTING).into_iter();
            items.iter().take(1).cloned().chain([longer]).chain(others).collect()
        }
    };
    found.retain(|other| other != current);
    found
}

/// The tuple with one element changed: another tuple, a constant, a pointer or a number.
fn other_elements(items: &[ArgSpec], nesting: u32) -> Vec<ArgSpec> {
    let mut found = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let inner = match item {
            ArgSpec::Tuple(inner) if nesting > 0 => other_elements(&inner.items, nesting - 1),
            _ => {
                let [number, extent] =
                    [guess::number("i32"), ArgSpec::Constexpr(ConstArg::Int(64))];
                let pairs = [[&extent, &extent], [&number, &extent], [&extent, &number]];
                let pairs =
                    pairs.map(|pair| ArgSpec::Tuple(pair.map(ArgSpec::clone).to_vec().into()));
                [&pairs[..], &[extent, pointer("*fp32"), guess::number("fp32")]].concat()
            }
        };
        for other in inner {
            let mut changed = items.to_vec();
            changed[at] = other;
            found.push(ArgSpec::Tuple(changed.into()));
        }
    }
    found
}

/// Pointers that are other arguments, each once.
fn other_pointers(spec: &Specialization) -> Vec<ArgSpec> {
    let mut found: Vec<ArgSpec> = Vec::new();
    for arg in spec.args.values() {
        let is_pointer =
            matches!(arg, ArgSpec::Runtime { signature, .. } if signature.starts_with('*'));
        if is_pointer && !found.contains(arg) {
            found.push(arg.clone());
        }
    }
    found
}

/// What an argument may be that is not `None`.
fn present(uses: &Use) -> Vec<ArgSpec> {
    let guessed = guess::runtime("", &Use { none_test: false, ..*uses });
    let others = if uses.pointer {
        vec![pointer("*fp32"), pointer("*i64"), guess::number("i32")]
    } else {
        vec![guess::number("fp32"), guess::number("i32"), pointer("*fp32"), pointer("*i64")]
    };
    [vec![guessed], others].concat()
}

fn constants(value: &ConstArg) -> Vec<ArgSpec> {
    let values = match value {
        ConstArg::Bool(value) => vec![ConstArg::Bool(!value), ConstArg::Int(64), ConstArg::Int(1)],
        ConstArg::Int(value) => {
            let scaled = [2, 4, 8].iter().map(|factor| value.saturating_mul(*factor));
            let divided = [2, 4, 8].iter().map(|factor| value / factor).filter(|value| *value > 0);
            let small = [1, 0, 2, 3, 16, 128];
            let integers = scaled.chain(divided).chain(small).map(ConstArg::Int);
            integers.chain([ConstArg::Float(1f64.to_bits())]).collect()
        }
        ConstArg::Float(_) => vec![ConstArg::Int(1), ConstArg::Int(64), ConstArg::None],
        ConstArg::Str(_) => vec![ConstArg::None, ConstArg::Int(0)],
        ConstArg::DType(_) | ConstArg::TorchDType(_) => {
            ["fp16", "bf16", "i32", "i8"].map(|name| ConstArg::DType(name.into())).to_vec()
        }
        ConstArg::None | ConstArg::Function(_) | ConstArg::Member(_) | ConstArg::Tuple(_) => {
            Vec::new()
        }
    };
    values.into_iter().map(ArgSpec::Constexpr).collect()
}

fn other_types(signature: &Arc<str>) -> Vec<ArgSpec> {
    let number = |names: &[&str]| names.iter().map(|name| guess::number(name)).collect();
    let pointers = || ELEMENTS.iter().map(|element| pointer(element)).collect::<Vec<_>>();
    match &**signature {
        _ if signature.starts_with("tensordesc<") => descriptors(signature),
        "i32" | "i64" => {
            let one = ArgSpec::Constexpr(ConstArg::Int(1));
            [vec![one], number(&["fp32", "i64"]), pointers()].concat()
        }
        "fp32" => [number(&["i32"]), pointers()].concat(),
        _ if signature.starts_with('*') => {
            let one = pointer(signature);
            let tuple = ArgSpec::Tuple(vec![one.clone(), one.clone(), one.clone(), one].into());
            [pointers(), number(&["i32", "fp32"]), vec![tuple]].concat()
        }
        _ => number(&["i32", "fp32"]),
    }
}

/// The descriptor with one extent of its block changed.
fn descriptors(signature: &str) -> Vec<ArgSpec> {
    let parts = signature.strip_suffix("]>").and_then(|text| text.split_once('['));
    let Some((head, extents)) = parts else { return Vec::new() };
    let extents: Vec<&str> = extents.split(',').map(str::trim).collect();
    let mut found = Vec::new();
    for axis in (0..extents.len()).rev() {
        for extent in EXTENTS {
            let mut changed: Vec<String> = extents.iter().map(ToString::to_string).collect();
            changed[axis] = extent.to_string();
            found.push(guess::number(&format!("{head}[{}]>", changed.join(", "))));
        }
    }
    found
}

fn pointer(signature: &str) -> ArgSpec {
    ArgSpec::Runtime { signature: signature.into(), divisible_by_16: true }
}
