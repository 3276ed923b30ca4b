//! What is known of numbers that are put in order, and of the positions that they had.

use crate::host::code::arguments::Args;
use crate::host::torch::numbers;
use crate::host::torch::views::elements;
use crate::host::value::contents::{Contents, Listing};
use crate::host::value::dtype::is_integer;
use crate::host::value::{Tensor, Value};

/// What `sort` and `argsort` of a tensor give, `made`, with what is known of its numbers.
pub(crate) fn noted(tensor: &Tensor, args: &Args<'_>, made: Value) -> Value {
    match made {
        Value::Record { names, mut items } => {
            if let [values, positions] = &mut items[..] {
                note(values, sorted(tensor, args));
                note(positions, positions_of(tensor, args));
            }
            Value::Record { names, items }
        }
        mut positions => {
            note(&mut positions, positions_of(tensor, args));
            positions
        }
    }
}

fn note(made: &mut Value, contents: Option<Contents>) {
    if let (Value::Tensor(Tensor { storage: Some(storage), .. }), Some(contents)) = (made, contents)
    {
        storage.contents = contents;
    }
}

/// Numbers in order: of what is drawn at random all that is said is that each may be any.
fn sorted(tensor: &Tensor, args: &Args<'_>) -> Option<Contents> {
    let count = row(tensor);
    if let Some((mut numbers, _)) = count.and(numbers::of(tensor)).zip(falls(args)) {
        numbers.sort_unstable();
        if falls(args)? {
            numbers.reverse();
        }
        return Some(Contents::listed(numbers.into()));
    }
    match (&tensor.storage.as_ref()?.contents, falls(args)?) {
        (Contents::Distinct { lo, hi }, falls) if count == Some(hi - lo + 1) => Some(match falls {
            true => Contents::Progression { start: *hi, step: -1 },
            false => Contents::Progression { start: *lo, step: 1 },
        }),
        (known @ (Contents::Random { .. } | Contents::Distinct { .. }), _) => Some(known.clone()),
        _ => None,
    }
}

/// The positions that numbers have which are put in order: any order there is, of what is drawn at
/// random.
fn positions_of(tensor: &Tensor, args: &Args<'_>) -> Option<Contents> {
    let count = row(tensor).filter(|count| *count > 0)?;
    if let Some(numbers) = numbers::of(tensor) {
        return order_of(&numbers, falls(args)?, is_stable(args)).map(Contents::listed);
    }
    let storage = tensor.storage.as_ref()?;
    let is_drawn = storage.drawn.is_some()
        || matches!(
            storage.contents,
            Contents::Random { .. } | Contents::Distinct { .. } | Contents::Signed
        );
    is_drawn.then_some(Contents::Distinct { lo: 0, hi: count - 1 })
}

/// The positions of numbers in their order; `None` where equal ones may change places.
fn order_of(numbers: &[i128], falls: bool, stable: bool) -> Option<Listing<i128>> {
    let mut order: Vec<usize> = (0..numbers.len()).collect();
    order.sort_by(|a, b| match falls {
        true => numbers[*b].cmp(&numbers[*a]),
        false => numbers[*a].cmp(&numbers[*b]),
    });
    let is_tie = |pair: &[usize]| numbers[pair[0]] == numbers[pair[1]];
    let is_known = stable || !order.windows(2).any(is_tie);
    is_known.then(|| order.into_iter().map(|at| at as i128).collect())
}

/// How many numbers a tensor of one dimension has.
fn row(tensor: &Tensor) -> Option<i128> {
    let shape = tensor.shape.as_deref().filter(|shape| shape.len() == 1)?;
    elements(shape)
}

fn falls(args: &Args<'_>) -> Option<bool> {
    let stated = args.keyword("descending").or_else(|| args.get(1, "descending"));
    match stated {
        None => Some(false),
        Some(Value::Bool(falls)) => *falls,
        Some(_) => None,
    }
}

fn is_stable(args: &Args<'_>) -> bool {
    matches!(args.keyword("stable"), Some(Value::Bool(Some(true))))
}

/// What `owner`, a row of numbers, holds after `owner[positions] = values`, which writes each of them
/// once.
pub(crate) fn scattered(owner: &Value, positions: &Value, values: &Value) -> Option<Contents> {
    let (Value::Tensor(owner), Value::Tensor(positions), Value::Tensor(values)) =
        (owner, positions, values)
    else {
        return None;
    };
    let count = row(owner)?;
    let is_whole = owner.strides.is_none() && owner.allocation().is_some();
    let same = row(positions) == Some(count) && row(values) == Some(count);
    let holds_integers = owner.dtype.as_deref().is_some_and(is_integer);
    if !is_whole || !same || !holds_integers || owner.storage.as_ref()?.elements != count {
        return None;
    }
    if let Some((positions, values)) = numbers::of(positions).zip(numbers::of(values)) {
        let mut written = vec![None; positions.len()];
        for (at, value) in positions.iter().zip(values) {
            *written.get_mut(usize::try_from(*at).ok()?)? = Some(value);
        }
        return Some(Contents::listed(written.into_iter().collect::<Option<_>>()?));
    }
    let all = Contents::Distinct { lo: 0, hi: count - 1 };
    let is_order = positions.storage.as_ref()?.contents == all;
    match values.storage.as_ref().filter(|_| is_order)?.contents {
        Contents::Progression { start, step: 1 } => {
            Some(Contents::Distinct { lo: start, hi: start + count - 1 })
        }
        Contents::Progression { start, step: 0 } => Some(Contents::constant(start)),
        Contents::Distinct { lo, hi } => Some(Contents::Distinct { lo, hi }),
        Contents::Random { lo, hi } => Some(Contents::Random { lo, hi }),
        _ => None,
    }
}
