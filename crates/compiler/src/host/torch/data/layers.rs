//! Numbers that layers of neural networks make of numbers.

use ndarray::{ArrayD, ArrayViewMut1, Axis};

use super::along::{axes_of, axis_of};
use super::arithmetic::{sigmoid, zipped};
use super::products::product;
use super::{Data, of, of_value};
use crate::hir::Name;
use crate::host::code::arguments::Args;
use crate::host::code::operators::truth;
use crate::host::value::number::as_float;
use crate::host::value::{Tensor, Value};

/// A function of one number, by its name.
type OfOne = (&'static str, fn(f64) -> f64);

/// Activations without parameters.
const ACTIVATIONS: &[OfOne] = &[
    ("erf", libm::erf),
    ("hardsigmoid", |x| (x + 3.0).clamp(0.0, 6.0) / 6.0),
    ("hardswish", |x| x * (x + 3.0).clamp(0.0, 6.0) / 6.0),
    ("mish", |x| x * softplus(x).tanh()),
    ("selu", |x| SELU_SCALE * if x > 0.0 { x } else { SELU_ALPHA * x.exp_m1() }),
    ("silu", |x| x * sigmoid(x)),
    ("softsign", |x| x / (1.0 + x.abs())),
    ("tanhshrink", |x| x - x.tanh()),
];

/// The constants of `torch.nn.SELU`, as its documentation states them.
const SELU_ALPHA: f64 = 1.673_263_242_354_377_2;
const SELU_SCALE: f64 = 1.050_700_987_355_480_5;

fn softplus(x: f64) -> f64 {
    if x > 20.0 { x } else { x.exp().ln_1p() }
}

fn gelu(x: f64) -> f64 {
    0.5 * x * (1.0 + libm::erf(x * std::f64::consts::FRAC_1_SQRT_2))
}

fn gelu_by_tanh(x: f64) -> f64 {
    let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x);
    0.5 * x * (1.0 + inner.tanh())
}

/// Whether a function computes each number by itself.
pub(super) fn is_of_each(name: &str) -> bool {
    ACTIVATIONS.iter().any(|(known, _)| *known == name)
        || matches!(
            name,
            "celu"
                | "elu"
                | "gelu"
                | "hardtanh"
                | "leaky_relu"
                | "softplus"
                | "softshrink"
                | "threshold"
        )
}

/// What a layer makes of `tensor`; `None` for other functions.
pub(super) fn made_of(name: &str, tensor: &Tensor, args: &Args<'_>) -> Option<Data> {
    if let Some((_, of_one)) = ACTIVATIONS.iter().find(|(known, _)| *known == name) {
        return each(tensor, of_one);
    }
    let number =
        |at: usize, name: &str, default: f64| args.get(at, name).map_or(Some(default), as_float);
    match name {
        "softmax" | "log_softmax" => {
            let dim = args.get(0, "dim").filter(|dim| **dim != Value::None);
            let axis = axis_of(tensor, Some(dim?), None)?;
            along(of(tensor)?, axis, |row| softmax(row, name == "log_softmax"))
        }
        "normalize" => unit(tensor, args),
        "softplus" => {
            let (beta, bound) = (number(0, "beta", 1.0)?, number(1, "threshold", 20.0)?);
            each(tensor, |x| match beta * x {
                scaled if scaled > bound => x,
                scaled => scaled.exp().ln_1p() / beta,
            })
        }
        "elu" => {
            let alpha = number(0, "alpha", 1.0)?;
            each(tensor, |x| if x > 0.0 { x } else { alpha * x.exp_m1() })
        }
        "celu" => {
            let alpha = number(0, "alpha", 1.0)?;
            each(tensor, |x| x.max(0.0) + (alpha * (x / alpha).exp_m1()).min(0.0))
        }
        "hardtanh" => {
            let (least, most) = (number(0, "min_val", -1.0)?, number(1, "max_val", 1.0)?);
            each(tensor, |x| x.max(least).min(most))
        }
        "softshrink" => {
            let bound = number(0, "lambd", 0.5)?;
            each(tensor, |x| if x.abs() > bound { x - bound.copysign(x) } else { 0.0 })
        }
        "threshold" => {
            let (bound, other) =
                (as_float(args.get(0, "threshold")?)?, as_float(args.get(1, "value")?)?);
            each(tensor, |x| if x > bound { x } else { other })
        }
        "glu" => gated(tensor, args),
        "dropout" => {
            let keeps = args.get(1, "training").is_some_and(|flag| truth(flag) == Some(false));
            (keeps || number(0, "p", 0.5)? == 0.0).then(|| of(tensor))?
        }
        "gelu" => match args.get(0, "approximate") {
            None => each(tensor, gelu),
            Some(Value::Str(kind)) if &**kind == "none" => each(tensor, gelu),
            Some(Value::Str(kind)) if &**kind == "tanh" => each(tensor, gelu_by_tanh),
            Some(_) => None,
        },
        "leaky_relu" => {
            let slope = args.get(0, "negative_slope").map_or(Some(0.01), as_float)?;
            each(tensor, |x| if x >= 0.0 { x } else { slope * x })
        }
        "logsumexp" => reduced(tensor, args, log_sum),
        "quantile" => quantile(tensor, args),
        "var" | "std" => deviation(name == "std", tensor, args),
        "norm" => norm(tensor, args),
        "layer_norm" | "rms_norm" => normalized(name == "layer_norm", tensor, args),
        "scaled_dot_product_attention" => attention(tensor, args),
        "tril" | "triu" => triangle(name == "tril", tensor, args),
        _ => None,
    }
}

/// The logarithm of the sum of exponentials.
pub(super) fn log_sum(row: &[f64]) -> f64 {
    let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    match most.is_finite() {
        true => most + row.iter().map(|number| (number - most).exp()).sum::<f64>().ln(),
        false => most,
    }
}

fn length(row: &[f64]) -> f64 {
    row.iter().map(|number| number * number).sum::<f64>().sqrt()
}

/// `torch.quantile`, of one part.
fn quantile(tensor: &Tensor, args: &Args<'_>) -> Option<Data> {
    let part = as_float(args.get(0, "q")?).filter(|part| (0.0..=1.0).contains(part))?;
    let is_linear = args
        .keyword("interpolation")
        .is_none_or(|how| matches!(how, Value::Str(how) if &**how == "linear"));
    is_linear.then_some(())?;
    reduced(tensor, &Args(&axes_behind_first(args)), |row| {
        let mut row = row.to_vec();
        row.sort_by(f64::total_cmp);
        if row.iter().any(|number| number.is_nan()) {
            return f64::NAN;
        }
        let place = part * (row.len() - 1) as f64;
        let (below, above) = (row[place.floor() as usize], row[place.ceil() as usize]);
        below + (above - below) * place.fract()
    })
}

/// What `F.normalize` divides by at least.
pub(super) const LEAST_LENGTH: f64 = 1e-12;

/// `F.normalize`: rows of length 1.
fn unit(tensor: &Tensor, args: &Args<'_>) -> Option<Data> {
    args.get(0, "p").is_none_or(|p| as_float(p) == Some(2.0)).then_some(())?;
    along(of(tensor)?, axis_of(tensor, args.get(1, "dim"), Some(1))?, |row| {
        let length = length(&row.to_vec()).max(LEAST_LENGTH);
        row.mapv_inplace(|number| number / length);
    })
}

/// The variance, or its root.
fn deviation(is_root: bool, tensor: &Tensor, args: &Args<'_>) -> Option<Data> {
    let unbiased = is_unbiased(args)?;
    // A flag may stand in the place of the axes.
    let axes_alone =
        args.positional().len() <= 1 && !matches!(args.positional().first(), Some(Value::Bool(_)));
    axes_alone.then_some(())?;
    reduced(tensor, args, |row| {
        let mean = row.iter().sum::<f64>() / row.len() as f64;
        let squares = row.iter().map(|number| (number - mean) * (number - mean)).sum::<f64>();
        let variance = squares / (row.len() as f64 - f64::from(u8::from(unbiased)));
        if is_root { variance.sqrt() } else { variance }
    })
}

/// Whether a variance is divided by one less than the count.
pub(super) fn is_unbiased(args: &Args<'_>) -> Option<bool> {
    match (args.keyword("unbiased"), args.keyword("correction")) {
        (None, None) => Some(true),
        (Some(flag), None) => truth(flag),
        (None, Some(Value::Int(Some(correction @ 0..=1)))) => Some(*correction == 1),
        _ => None,
    }
}

/// `F.glu`: the first half along an axis, with the sigmoid of the other.
fn gated(tensor: &Tensor, args: &Args<'_>) -> Option<Data> {
    let (data, axis) = (of(tensor)?, Axis(axis_of(tensor, args.get(0, "dim"), Some(-1))?));
    let length = data.numbers.len_of(axis);
    length.is_multiple_of(2).then_some(())?;
    let (first, second) = data.numbers.view().split_at(axis, length / 2);
    let gated = |a: f64, b: f64| Some(a * sigmoid(b));
    Some(data.with(zipped(&first.to_owned(), &second.to_owned(), gated)?))
}

/// The axes that are reduced, and whether they are kept, of a function that is told something else first.
fn axes_behind_first(args: &Args<'_>) -> Vec<(Option<Name>, Value)> {
    let named = |(at, name): (usize, &str)| Some((Some(name.into()), args.get(at, name)?.clone()));
    [(1, "dim"), (2, "keepdim")].into_iter().filter_map(named).collect()
}

/// The Euclidean norm that a function of `torch.linalg` gives: of matrices, that of Frobenius.
pub(super) fn length_of(tensor: &Tensor, args: &Args<'_>) -> Option<Data> {
    let order = args.get(0, "ord").filter(|order| **order != Value::None);
    let is_vector = tensor.shape.as_ref()?.len() == 1
        || args.get(1, "dim").is_some_and(|dim| dim.elements().is_none());
    order.is_none_or(|order| is_vector && as_float(order) == Some(2.0)).then_some(())?;
    reduced(tensor, &Args(&axes_behind_first(args)), length)
}

/// The Euclidean norm.
fn norm(tensor: &Tensor, args: &Args<'_>) -> Option<Data> {
    reduced(tensor, &Args(&behind_order(args)?), length)
}

/// The arguments of a Euclidean norm behind its order; `None` for other norms.
pub(super) fn behind_order(args: &Args<'_>) -> Option<Vec<(Option<Name>, Value)>> {
    let order = args.keyword("p").or_else(|| args.positional().first().copied());
    let is_plain = order.is_none_or(|p| as_float(p) == Some(2.0)) && args.positional().len() <= 1;
    is_plain.then_some(())?;
    let is_behind =
        |(name, _): &&(Option<Name>, Value)| name.as_deref().is_some_and(|name| name != "p");
    Some(args.0.iter().filter(is_behind).cloned().collect())
}

/// What is below a diagonal, or above it, with it.
fn triangle(is_lower: bool, tensor: &Tensor, args: &Args<'_>) -> Option<Data> {
    let diagonal = args.get(0, "diagonal").map_or(Some(0), super::known)?;
    let mut data = of(tensor)?;
    let last = data.numbers.ndim().checked_sub(2)?;
    for (index, number) in data.numbers.indexed_iter_mut() {
        let above = index[last + 1] as i128 - index[last] as i128;
        if (is_lower && above > diagonal) || (!is_lower && above < diagonal) {
            *number = 0.0;
        }
    }
    Some(data)
}

fn each(tensor: &Tensor, of_one: impl Fn(f64) -> f64) -> Option<Data> {
    let data = of(tensor)?;
    Some(data.with(data.numbers.mapv(of_one)))
}

fn along(
    mut data: Data,
    axis: usize,
    change: impl Fn(&mut ArrayViewMut1<'_, f64>),
) -> Option<Data> {
    data.numbers.lanes_mut(Axis(axis)).into_iter().for_each(|mut row| change(&mut row));
    Some(data)
}

fn softmax(row: &mut ArrayViewMut1<'_, f64>, is_log: bool) {
    let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = row.iter().map(|number| (number - most).exp()).sum();
    match is_log {
        true => row.mapv_inplace(|number| number - most - sum.ln()),
        false => row.mapv_inplace(|number| (number - most).exp() / sum),
    }
}

/// What `of_row` makes of the numbers along the axes that `dim` names, or of all.
fn reduced(tensor: &Tensor, args: &Args<'_>, of_row: impl Fn(&[f64]) -> f64) -> Option<Data> {
    let data = of(tensor)?;
    let (axes, keeps) = axes_of(tensor, args)?;
    // The axes that are reduced come last, as one.
    let kept: Vec<usize> = (0..data.numbers.ndim()).filter(|axis| !axes.contains(axis)).collect();
    let order: Vec<usize> = kept.iter().chain(&axes).copied().collect();
    let sizes: Vec<usize> = kept.iter().map(|axis| data.numbers.shape()[*axis]).collect();
    let length: usize = axes.iter().map(|axis| data.numbers.shape()[*axis]).product();
    let ordered = data.numbers.view().permuted_axes(order);
    let flat: Vec<f64> = ordered.iter().copied().collect();
    if length == 0 {
        return None;
    }
    let numbers: Vec<f64> = flat.chunks_exact(length).map(of_row).collect();
    let mut made = ArrayD::from_shape_vec(sizes, numbers).ok()?;
    if keeps {
        axes.iter().for_each(|axis| made.insert_axis_inplace(Axis(*axis)));
    }
    Some(data.with(made))
}

/// Rows that layer or RMS normalization makes, without weights.
pub(super) struct Rows {
    pub(super) made: ArrayD<f64>,
    /// How long each row is.
    pub(super) length: usize,
    /// What each was multiplied with.
    pub(super) scales: Vec<f64>,
}

/// The rows over the last axes.
pub(super) fn normalized_rows(centers: bool, tensor: &Tensor, args: &Args<'_>) -> Option<Rows> {
    let dims = args.get(0, "normalized_shape")?;
    let count = dims.elements().map_or(1, |dims| dims.len());
    let data = of(tensor)?;
    let kept = data.numbers.ndim().checked_sub(count)?;
    let length: usize = data.numbers.shape()[kept..].iter().product();
    let eps_at = if centers { 3 } else { 2 };
    let eps = match args.get(eps_at, "eps") {
        None if centers => 1e-5,
        // Of the type that it is computed in.
        None | Some(Value::None) => f64::from(f32::EPSILON),
        Some(eps) => as_float(eps)?,
    };
    let mut numbers: Vec<f64> = data.numbers.iter().copied().collect();
    let mut scales = Vec::new();
    for row in numbers.chunks_exact_mut(length.max(1)) {
        let mean = if centers { row.iter().sum::<f64>() / length as f64 } else { 0.0 };
        row.iter_mut().for_each(|number| *number -= mean);
        let variance = row.iter().map(|number| number * number).sum::<f64>() / length as f64;
        let scale = (variance + eps).sqrt().recip();
        row.iter_mut().for_each(|number| *number *= scale);
        scales.push(scale);
    }
    let made = ArrayD::from_shape_vec(data.numbers.raw_dim(), numbers).ok()?;
    Some(Rows { made, length, scales })
}

/// Layer or RMS normalization over the last axes.
fn normalized(centers: bool, tensor: &Tensor, args: &Args<'_>) -> Option<Data> {
    let mut made = of(tensor)?.with(normalized_rows(centers, tensor, args)?.made);
    let given = |at: usize, name: &str| args.get(at, name).filter(|given| **given != Value::None);
    if let Some(weight) = given(1, "weight") {
        made.numbers = zipped(&made.numbers, &of_value(weight)?.numbers, |a, b| Some(a * b))?;
    }
    if let Some(bias) = given(2, "bias").filter(|_| centers) {
        made.numbers = zipped(&made.numbers, &of_value(bias)?.numbers, |a, b| Some(a + b))?;
    }
    Some(made)
}

/// `F.scaled_dot_product_attention` of as many heads for keys as for queries.
fn attention(query: &Tensor, args: &Args<'_>) -> Option<Data> {
    let value = of_value(args.get(1, "value")?)?;
    product(&attention_chances(query, args)?.1, &value)
}

/// What attention multiplies scores with, and how much of each value it takes for each query.
pub(super) fn attention_chances(query: &Tensor, args: &Args<'_>) -> Option<(f64, Data)> {
    let (query, key) = (of(query)?, of_value(args.get(0, "key")?)?);
    let is_told = |at: usize, name: &str| args.get(at, name).filter(|told| **told != Value::None);
    if is_told(3, "dropout_p").is_some_and(|p| as_float(p) != Some(0.0))
        || args.keyword("enable_gqa").is_some_and(|told| truth(told) != Some(false))
    {
        return None;
    }
    let rank = key.numbers.ndim();
    if query.numbers.ndim() < 2 {
        return None;
    }
    let width = *query.numbers.shape().last()? as f64;
    let scale = match args.keyword("scale") {
        None | Some(Value::None) => width.sqrt().recip(),
        Some(scale) => as_float(scale)?,
    };
    let mut turned = key.numbers.clone();
    turned.swap_axes(rank.checked_sub(2)?, rank - 1);
    let mut scores = product(&query, &key.with(turned))?;
    scores.numbers.mapv_inplace(|score| score * scale);
    let last = scores.numbers.ndim() - 1;
    if args.get(4, "is_causal").map_or(Some(false), truth)? {
        for (index, score) in scores.numbers.indexed_iter_mut() {
            if index[last] > index[last - 1] {
                *score = f64::NEG_INFINITY;
            }
        }
    }
    if let Some(mask) = is_told(2, "attn_mask") {
        let mask = of_value(mask)?;
        let masked =
            |score: f64, mask: f64| Some(if mask != 0.0 { score } else { f64::NEG_INFINITY });
        let added = |score: f64, mask: f64| Some(score + mask);
        scores.numbers = match &*mask.dtype {
            "i1" => zipped(&scores.numbers, &mask.numbers, masked)?,
            _ => zipped(&scores.numbers, &mask.numbers, added)?,
        };
    }
    Some((scale, along(scores, last, |row| softmax(row, false))?))
}
