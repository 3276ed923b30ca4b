//! Products and orders that a pattern names: `torch.einsum`, and the functions of einops.

use ndarray::{ArrayD, Axis, IxDyn};
use rustc_hash::FxHashMap;

use super::derived::{Given, tensor_of};
use super::{Data, known, of_value};
use crate::host::code::arguments::Args;
use crate::host::value::Value;

/// Multiplications of one product; beyond, its numbers are not worked out.
const MAX_STEPS: usize = 1 << 24;

/// The labels of the axes of each operand, those of the result, and the operands.
type Parsed = (Vec<Vec<String>>, Vec<String>, Vec<Value>);

/// `torch.einsum(pattern, ...)`, without `...` in the pattern.
pub(super) fn einsum(args: &Args<'_>) -> Option<Data> {
    let (labels, right, operands) = parsed(args)?;
    contracted(&labels, &right, &operands)
}

/// What a call of `einsum` hands on to the operand at `at`, of the gradient of what it gives.
pub(super) fn handed_on(args: &Given, at: usize, given: &ArrayD<f64>) -> Option<ArrayD<f64>> {
    let args = Args(args);
    let is_pattern_first = matches!(args.positional().first(), Some(Value::Str(_)));
    let (labels, right, operands) =
        if is_pattern_first { parsed(&args)? } else { parsed_by_words(&args)? };
    let own = labels.get(at)?;
    let others = |which: usize| which != at && which < operands.len();
    let mut of_others: Vec<Vec<String>> = vec![right];
    let mut numbers = vec![Value::Tensor(tensor_of(given.clone()))];
    for which in (0..labels.len()).filter(|which| others(*which)) {
        of_others.push(labels[which].clone());
        numbers.push(operands[which].clone());
    }
    let is_shared = |label: &&String| of_others.iter().flatten().any(|other| other == *label);
    let shared: Vec<String> = own.iter().filter(is_shared).cloned().collect();
    let mut made = contracted(&of_others, &shared, &numbers)?.numbers;
    for (axis, label) in own.iter().enumerate() {
        if !shared.contains(label) {
            made.insert_axis_inplace(Axis(axis));
        }
    }
    let shape = of_value(operands.get(at)?)?.numbers.raw_dim();
    for axis in 0..made.ndim() {
        if shape[axis] == 1 && made.len_of(Axis(axis)) != 1 {
            made = made.sum_axis(Axis(axis)).insert_axis(Axis(axis));
        }
    }
    Some(made.broadcast(shape)?.to_owned())
}

fn parsed(args: &Args<'_>) -> Option<Parsed> {
    let (Value::Str(pattern), operands) =
        args.positional().split_first().map(|(pattern, rest)| {
            let listed = match rest {
                [one] => one.elements(),
                _ => None,
            };
            let operands = listed.unwrap_or_else(|| rest.iter().copied().cloned().collect());
            (Value::clone(pattern), operands)
        })?
    else {
        return None;
    };
    let pattern: String = pattern.chars().filter(|c| !c.is_whitespace()).collect();
    let letters = |text: &str| text.chars().map(String::from).collect::<Vec<String>>();
    let (left, right) = match pattern.split_once("->") {
        Some((left, right)) => (left, letters(right)),
        None => {
            let mut once: Vec<char> = pattern
                .chars()
                .filter(|c| c.is_alphabetic() && pattern.matches(*c).count() == 1)
                .collect();
            once.sort_unstable();
            (pattern.as_str(), once.into_iter().map(String::from).collect())
        }
    };
    Some((left.split(',').map(letters).collect(), right, operands))
}

/// `einops.einsum(..., pattern)`.
pub(super) fn einops_einsum(args: &Args<'_>) -> Option<Data> {
    let (labels, right, operands) = parsed_by_words(args)?;
    contracted(&labels, &right, &operands)
}

fn parsed_by_words(args: &Args<'_>) -> Option<Parsed> {
    let positional = args.positional();
    let (Value::Str(pattern), operands) = positional.split_last()? else { return None };
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<String>>();
    let (left, right) = pattern.split_once("->")?;
    let labels: Vec<Vec<String>> = left.split(',').map(words).collect();
    let operands: Vec<Value> = operands.iter().copied().cloned().collect();
    Some((labels, words(right), operands))
}

/// The sums of products over the labels that the result lacks.
fn contracted(labels: &[Vec<String>], right: &[String], operands: &[Value]) -> Option<Data> {
    let operands = operands.iter().map(of_value).collect::<Option<Vec<Data>>>()?;
    let mut sizes: FxHashMap<&str, usize> = FxHashMap::default();
    for (labels, operand) in labels.iter().zip(&operands) {
        if labels.len() != operand.numbers.ndim() {
            return None;
        }
        for (label, size) in labels.iter().zip(operand.numbers.shape()) {
            let is_name = label.chars().all(|c| c.is_alphanumeric() || c == '_');
            let known = sizes.entry(label).or_insert(*size);
            if !is_name || *known != *size && *known != 1 && *size != 1 {
                return None;
            }
            // What has one number there is repeated.
            *known = if *known == 1 { *size } else { *known };
        }
    }
    if labels.len() != operands.len() || operands.is_empty() {
        return None;
    }
    let summed = labels.iter().flatten().filter(|label| !right.contains(label));
    let mut order: Vec<&String> = right.iter().collect();
    summed.for_each(|label| {
        if !order.contains(&label) {
            order.push(label);
        }
    });
    let extents = order.iter().map(|label| sizes.get(label.as_str()).copied());
    let extents = extents.collect::<Option<Vec<usize>>>()?;
    let steps = extents.iter().try_fold(1usize, |steps, size| steps.checked_mul(*size))?;
    if steps > MAX_STEPS {
        return None;
    }
    let spread = |labels: &Vec<String>, operand: &Data| -> Option<ArrayD<f64>> {
        // Each operand with all labels, of which those that it lacks repeat it.
        let mut own: Vec<usize> = Vec::new();
        let mut numbers = operand.numbers.clone();
        for label in &order {
            match labels.iter().position(|it| it == *label) {
                Some(at) => own.push(at),
                None => {
                    numbers.insert_axis_inplace(Axis(numbers.ndim()));
                    own.push(numbers.ndim() - 1);
                }
            }
        }
        (own.len() == numbers.ndim()).then(|| numbers.permuted_axes(IxDyn(&own)))
    };
    let spread = labels.iter().zip(&operands).map(|(labels, operand)| spread(labels, operand));
    let spread = spread.collect::<Option<Vec<_>>>()?;
    let views = spread.iter().map(|numbers| numbers.broadcast(IxDyn(&extents)));
    let mut views = views.collect::<Option<Vec<_>>>()?.into_iter();
    let mut products: Vec<f64> = views.next()?.iter().copied().collect();
    for view in views {
        products.iter_mut().zip(view.iter()).for_each(|(all, number)| *all *= number);
    }
    let shape = &extents[..right.len()];
    let inner: usize = extents[right.len()..].iter().product();
    let sums = products.chunks_exact(inner.max(1)).map(|inner| inner.iter().sum()).collect();
    Some(operands[0].with(ArrayD::from_shape_vec(IxDyn(shape), sums).ok()?))
}

/// `einops.rearrange`, `repeat` and `reduce` of one tensor.
pub(super) fn einops(name: &str, args: &Args<'_>) -> Option<Data> {
    let data = of_value(args.get(0, "tensor")?)?;
    let Value::Str(pattern) = args.get(1, "pattern")? else { return None };
    let (left, right) = pattern.split_once("->")?;
    let (left, right) = (groups(left)?, groups(right)?);
    if left.len() != data.numbers.ndim() {
        return None;
    }
    let given = |axis: &String| args.keyword(axis).and_then(known);
    let mut sizes: FxHashMap<String, usize> = FxHashMap::default();
    for (group, size) in left.iter().zip(data.numbers.shape()) {
        let mut open = None;
        let mut rest = *size;
        for axis in group {
            match given(axis) {
                Some(size) => {
                    let size = usize::try_from(size).ok().filter(|size| *size > 0)?;
                    sizes.insert(axis.clone(), size);
                    rest /= size;
                }
                None if axis == "1" => {}
                None if open.is_none() => open = Some(axis.clone()),
                None => return None,
            }
        }
        sizes.extend(open.map(|axis| (axis, rest)));
    }
    let named = |groups: &[Vec<String>]| {
        groups.iter().flatten().filter(|axis| *axis != "1").cloned().collect::<Vec<String>>()
    };
    let (from, to) = (named(&left), named(&right));
    let is_told_twice = |axes: &[String]| (1..axes.len()).any(|at| axes[..at].contains(&axes[at]));
    if is_told_twice(&from) || is_told_twice(&to) {
        return None;
    }
    let shape: Vec<usize> =
        from.iter().map(|axis| sizes.get(axis).copied()).collect::<Option<_>>()?;
    let mut numbers =
        data.numbers.as_standard_layout().into_owned().into_shape_with_order(IxDyn(&shape)).ok()?;
    let mut axes = from;
    for axis in axes.clone().into_iter().filter(|axis| !to.contains(axis)) {
        let at = axes.iter().position(|it| *it == axis)?;
        let Value::Str(how) = args.get(2, "reduction").filter(|_| name == "reduce")? else {
            return None;
        };
        numbers = match &**how {
            "sum" => numbers.sum_axis(Axis(at)),
            "mean" => numbers.mean_axis(Axis(at))?,
            "max" => numbers.fold_axis(Axis(at), f64::NEG_INFINITY, |a, b| a.max(*b)),
            "min" => numbers.fold_axis(Axis(at), f64::INFINITY, |a, b| a.min(*b)),
            _ => return None,
        };
        axes.remove(at);
    }
    for axis in to
        .iter()
        .filter(|axis| name == "repeat" && !axes.contains(axis))
        .cloned()
        .collect::<Vec<_>>()
    {
        let size = match axis.parse::<usize>() {
            Ok(size) => size,
            Err(_) => usize::try_from(given(&axis)?).ok()?,
        };
        sizes.insert(axis.clone(), size);
        numbers.insert_axis_inplace(Axis(axes.len()));
        axes.push(axis);
    }
    let order = to.iter().map(|axis| axes.iter().position(|it| it == axis));
    let order = order.collect::<Option<Vec<usize>>>().filter(|order| order.len() == axes.len())?;
    let full: Vec<usize> = to.iter().map(|axis| sizes.get(axis).copied()).collect::<Option<_>>()?;
    let ordered = numbers.permuted_axes(IxDyn(&order));
    let all: Vec<f64> = ordered.broadcast(IxDyn(&full))?.iter().copied().collect();
    let together = |group: &Vec<String>| -> usize {
        group.iter().filter(|axis| *axis != "1").map(|axis| sizes[axis]).product()
    };
    let shape: Vec<usize> = right.iter().map(together).collect();
    Some(data.with(ArrayD::from_shape_vec(IxDyn(&shape), all).ok()?))
}

/// The axes of one side of a pattern, those in parentheses together.
fn groups(side: &str) -> Option<Vec<Vec<String>>> {
    let spaced = side.replace('(', " ( ").replace(')', " ) ");
    let (mut groups, mut open) = (Vec::new(), None::<Vec<String>>);
    for word in spaced.split_whitespace() {
        match (word, &mut open) {
            ("(", None) => open = Some(Vec::new()),
            (")", Some(_)) => groups.extend(open.take()),
            ("(" | ")", _) => return None,
            (word, _) if word.contains("...") => return None,
            (word, Some(group)) => group.push(word.to_owned()),
            (word, None) => groups.push(vec![word.to_owned()]),
        }
    }
    open.is_none().then_some(groups)
}
