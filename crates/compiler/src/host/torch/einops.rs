//! What functions of `einops` make: tensors whose axes a pattern names, takes apart and puts together.

use crate::host::code::arguments::Args;
use crate::host::torch::sizes::{contiguous, dims, ordered_anyhow};
use crate::host::torch::tensor::{joined, method};
use crate::host::torch::views;
use crate::host::value::dtype::is_float;
use crate::host::value::{Tensor, Value};

/// One side of a pattern: for each axis of a tensor, the axes that it is made of.
type Side = Vec<Vec<String>>;

/// What `einops.NAME(tensor, pattern, ...)` makes; `None` for other functions, and where the pattern does
/// not fit or says too little.
pub(crate) fn made_of(name: &str, args: &Args<'_>) -> Option<Value> {
    match name {
        "pack" => return packed(args),
        "unpack" => return unpacked(args),
        _ => {}
    }
    let (Value::Tensor(tensor), Value::Str(pattern)) =
        (args.get(0, "tensor")?, args.get(1, "pattern")?)
    else {
        return None;
    };
    let of = dims(tensor)?;
    let (left, right) = pattern.split_once("->")?;
    let (left, right) = (side(left, of.len(), left)?, side(right, of.len(), left)?);
    let mut sizes = Sizes::given(args);
    sizes.take_apart(&left, &of)?;
    let right_axes: Vec<&String> = right.iter().flatten().collect();
    match name {
        "rearrange" | "repeat" => {
            let apart: Vec<&String> = left.iter().flatten().collect();
            let parts = asked(tensor, &sizes.of(&apart)?)?;
            let kept: Vec<&String> =
                right_axes.iter().copied().filter(|axis| apart.contains(axis)).collect();
            let order = kept.iter().map(|axis| apart.iter().position(|known| known == axis));
            let order = order.collect::<Option<Vec<usize>>>()?;
            let is_permutation = order.len() == apart.len();
            let is_plain = name == "repeat" || right_axes.len() == kept.len();
            if !is_permutation || !is_plain {
                return None;
            }
            let ordered = match order.is_sorted() {
                true => parts,
                false => views::permuted(&parts, &order)?,
            };
            let all = sizes.of(&right_axes)?;
            let spread = (0..right_axes.len()).try_fold(ordered, |tensor, at| {
                match apart.contains(&right_axes[at]) {
                    true => Some(tensor),
                    false => Some(views::with_axis(&tensor, at)),
                }
            })?;
            let all: Vec<Value> = all.into_iter().map(|size| Value::Int(Some(size))).collect();
            let spread = match spread.shape.as_ref() == Some(&all) {
                true => spread,
                false => views::expanded(&spread, &all)?,
            };
            Some(Value::Tensor(asked(&spread, &sizes.together(&right)?)?))
        }
        "reduce" => {
            let places =
                right_axes.iter().map(|axis| left.iter().flatten().position(|it| it == *axis));
            let in_order = places.collect::<Option<Vec<_>>>()?.is_sorted();
            let floats = tensor.dtype.clone().filter(|dtype| is_float(dtype));
            let made = sizes.together(&right)?;
            Some(if in_order { contiguous } else { ordered_anyhow }(floats, &made))
        }
        _ => None,
    }
}

/// The tensors of a list one behind the other along the axis `*` of a pattern, which is made of all that the
/// pattern does not name, and of what it was made in each.
fn packed(args: &Args<'_>) -> Option<Value> {
    let Value::Str(pattern) = args.get(1, "pattern")? else { return None };
    let (before, after) = around_star(pattern)?;
    let mut flat = Vec::new();
    let mut shapes = Vec::new();
    for tensor in args.get(0, "tensors")?.elements()? {
        let Value::Tensor(tensor) = tensor else { return None };
        let of = dims(&tensor)?;
        let inner = of.get(before..of.len().checked_sub(after)?)?;
        let sizes = [&of[..before], &[inner.iter().product()], &of[of.len() - after..]].concat();
        flat.push(Value::Tensor(asked(&tensor, &sizes)?));
        shapes.push(Value::Tuple(inner.iter().map(|size| Value::Int(Some(*size))).collect()));
    }
    let packed = match flat.len() {
        1 => flat.pop()?,
        _ => {
            let dim = Value::Int(Some(before as i128));
            joined("cat", &Args(&[(None, Value::List(flat)), (None, dim)]))?
        }
    };
    Some(Value::Tuple(vec![packed, Value::List(shapes)]))
}

/// The parts of a tensor along the axis `*` of a pattern, each in the shape that [`packed`] gave.
fn unpacked(args: &Args<'_>) -> Option<Value> {
    let (Value::Tensor(tensor), Value::Str(pattern)) =
        (args.get(0, "tensor")?, args.get(2, "pattern")?)
    else {
        return None;
    };
    let (before, after) = around_star(pattern)?;
    let of = dims(tensor).filter(|of| of.len() == before + 1 + after)?;
    let mut start = 0;
    let mut parts = Vec::new();
    for shape in args.get(1, "packed_shapes")?.elements()? {
        let inner = shape.elements()?.into_iter().map(|size| match size {
            Value::Int(size) => size,
            _ => None,
        });
        let inner = inner.collect::<Option<Vec<i128>>>()?;
        let count: i128 = inner.iter().product();
        let narrow = [before as i128, start, count].map(|at| (None, Value::Int(Some(at))));
        start += count;
        let part = method(&Value::Tensor(tensor.clone()), "narrow", &Args(&narrow))?;
        let Value::Tensor(part) = part else { return None };
        let sizes = [&of[..before], &inner[..], &of[before + 1..]].concat();
        parts.push(Value::Tensor(asked(&part, &sizes)?));
    }
    (start == of[before]).then_some(Value::List(parts))
}

/// How many axes a pattern names before and after `*`.
fn around_star(pattern: &str) -> Option<(usize, usize)> {
    let (before, after) = pattern.split_once('*')?;
    Some((before.split_whitespace().count(), after.split_whitespace().count()))
}

/// The same elements in other sizes.
fn asked(tensor: &Tensor, sizes: &[i128]) -> Option<Tensor> {
    let sizes = sizes.iter().map(|size| Value::Int(Some(*size))).collect();
    let args = [(None, Value::Tuple(sizes))];
    match method(&Value::Tensor(tensor.clone()), "reshape", &Args(&args))? {
        Value::Tensor(tensor) => Some(tensor),
        _ => None,
    }
}

/// Sizes of axes by name.
struct Sizes(Vec<(String, i128)>);

impl Sizes {
    /// Those that are arguments.
    fn given(args: &Args<'_>) -> Sizes {
        let named = args.0.iter().filter_map(|(name, value)| match (name, value) {
            (Some(name), Value::Int(Some(size))) => Some((name.to_string(), *size)),
            _ => None,
        });
        Sizes(named.collect())
    }

    fn size(&self, axis: &str) -> Option<i128> {
        match axis.parse() {
            Ok(size) => Some(size),
            Err(_) => self.0.iter().find(|(known, _)| known == axis).map(|(_, size)| *size),
        }
    }

    /// Finds what each axis of a tensor is made of: at most one part of it may be left to find.
    fn take_apart(&mut self, left: &Side, of: &[i128]) -> Option<()> {
        if left.len() != of.len() {
            return None;
        }
        for (parts, whole) in left.iter().zip(of) {
            let known: i128 = parts.iter().filter_map(|part| self.size(part)).product();
            let mut open = parts.iter().filter(|part| self.size(part).is_none());
            match (open.next(), open.next()) {
                (None, _) if known == *whole => {}
                (Some(part), None) if known > 0 && whole % known == 0 => {
                    let part = part.clone();
                    self.0.push((part, whole / known));
                }
                _ => return None,
            }
        }
        Some(())
    }

    fn of(&self, axes: &[&String]) -> Option<Vec<i128>> {
        axes.iter().map(|axis| self.size(axis)).collect()
    }

    /// The sizes of the axes that a side puts together.
    fn together(&self, side: &Side) -> Option<Vec<i128>> {
        let size = |parts: &Vec<String>| {
            parts.iter().try_fold(1i128, |all, part| all.checked_mul(self.size(part)?))
        };
        side.iter().map(size).collect()
    }
}

/// The axes of one side; `...` stands for those of a tensor of this rank that the left side does not name.
fn side(text: &str, rank: usize, left: &str) -> Option<Side> {
    let spaced = |text: &str| text.replace('(', " ( ").replace(')', " ) ");
    let mut named = 0usize;
    let mut depth = 0usize;
    for token in spaced(left).split_whitespace() {
        match token {
            "(" => {
                depth += 1;
                named += 1;
            }
            ")" => depth = depth.checked_sub(1)?,
            "..." => {}
            _ => named += usize::from(depth == 0),
        }
    }
    let mut found: Side = Vec::new();
    let mut group: Option<Vec<String>> = None;
    for token in spaced(text).split_whitespace() {
        let axes: Vec<String> = match token {
            "(" => {
                group = Some(Vec::new());
                continue;
            }
            ")" => {
                found.push(group.take()?);
                continue;
            }
            "..." => (0..rank.checked_sub(named)?).map(|at| format!("...{at}")).collect(),
            "1" => {
                if group.is_none() {
                    found.push(Vec::new());
                }
                continue;
            }
            token => vec![token.to_owned()],
        };
        match &mut group {
            Some(group) => group.extend(axes),
            None => found.extend(axes.into_iter().map(|axis| vec![axis])),
        }
    }
    group.is_none().then_some(found)
}
