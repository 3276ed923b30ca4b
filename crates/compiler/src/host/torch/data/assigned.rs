//! What memory holds after some of its numbers were replaced.

use ndarray::{Axis, IxDyn};

use super::along::axis_of;
use super::places::Places;
use super::{Data, Ties, contents, converted, is_float, of, of_value};
use crate::host::Host;
use crate::host::code::arguments::Args;
use crate::host::code::operators::truth;
use crate::host::torch::views;
use crate::host::value::contents::{Contents, Listing, MAX_LISTED};
use crate::host::value::memory::Stored;
use crate::host::value::number::as_float;
use crate::host::value::{Storage, Tensor, Value};

/// An allocation that no tensor of host code is in.
const NOWHERE: u32 = 0;

impl Host<'_> {
    /// A tensor of the same shape whose elements are their own positions.
    pub(crate) fn positions_in(&mut self, tensor: &Tensor) -> Option<Value> {
        let elements = views::elements(tensor.shape.as_deref()?)?;
        let count = usize::try_from(elements).ok().filter(|count| *count <= super::MAX_COMPUTED)?;
        let contents = match count {
            ..super::MAX_NUMBERS => Contents::Progression { start: 0, step: 1 },
            count => Contents::Listed(self.ordinals_to(count)),
        };
        let storage = Storage { id: Some(NOWHERE), elements, contents, ..Storage::default() };
        Some(Value::Tensor(Tensor {
            dtype: Some("i64".into()),
            shape: tensor.shape.clone(),
            storage: Some(Box::new(storage)),
            ..Tensor::default()
        }))
    }

    fn ordinals_to(&mut self, count: usize) -> Listing<i128> {
        if self.ordinals.len() < count {
            self.ordinals = (0..count as i128).collect();
        }
        self.ordinals.up_to(count)
    }
}

impl Host<'_> {
    /// What the memory of a tensor holds after `value` was assigned to its elements at the positions that
    /// `chosen` holds.
    pub(crate) fn stored(&self, tensor: &Tensor, chosen: &Value, value: &Value) -> Option<Stored> {
        let Value::Tensor(chosen) = chosen else { return None };
        elements_of_memory(tensor)?;
        let (chosen, value) = (of(chosen)?, converted(of_value(value)?, tensor.dtype.as_ref()?)?);
        let given = value.numbers.broadcast(chosen.numbers.raw_dim())?;
        let places = Places::of(tensor)?;
        let replaced = chosen.numbers.iter().zip(given);
        self.replaced(
            tensor,
            replaced.map(|(at, number)| (places.of_element(*at as usize), *number)),
        )
    }

    /// What the memory of a tensor holds after a method that changes the tensor.
    pub(crate) fn changed_in_place(
        &self,
        name: &str,
        tensor: &Tensor,
        args: &Args<'_>,
    ) -> Option<Stored> {
        elements_of_memory(tensor)?;
        let throughout = match name {
            "zero_" => Some(&Value::Int(Some(0))),
            "fill_" => args.get(0, "value"),
            _ => None,
        };
        if let Some(contents) = throughout.and_then(|value| filled(tensor, value)) {
            return Some(contents.into());
        }
        let data = changed(name, tensor, args)?;
        let data = converted(data, tensor.dtype.as_ref()?)?;
        if whole(tensor) == i128::try_from(data.numbers.len()).ok() {
            return Some(data.row_major().into());
        }
        let places = Places::of(tensor)?;
        let replaced = data.numbers.iter().enumerate();
        self.replaced(tensor, replaced.map(|(at, number)| (places.of_element(at), *number)))
    }

    /// What the memory that a tensor is in holds where these numbers are at these places of it.
    fn replaced(
        &self,
        tensor: &Tensor,
        replaced: impl Iterator<Item = (usize, f64)>,
    ) -> Option<Stored> {
        let (storage, elements) = (tensor.storage.as_ref()?, elements_of_memory(tensor)?);
        let (id, dtype) = (tensor.memory()?, tensor.dtype.as_ref()?);
        let is_of_memory = self.types.get(&id) == Some(dtype);
        let begun = self.filled.begun(id).filter(|_| is_of_memory);
        let before = match (storage.before, self.filled.get(id).filter(|_| is_of_memory)) {
            (0, _) => &storage.contents,
            (_, Some(filled)) => filled,
            _ => begun.map(|_| &Contents::Unknown)?,
        };
        if let Contents::Floats(before) = before
            && before.len() >= elements
            && is_float(dtype)
        {
            let mut numbers = before[..elements].to_vec();
            for (at, number) in replaced {
                *numbers.get_mut(at)? = number.to_bits();
            }
            return Some(Contents::Floats(numbers.into()).into());
        }
        let mut numbers: Vec<Option<f64>> = match (before.all(elements), begun) {
            (Some(before), _) => before.into_iter().map(Some).collect(),
            (None, Some(begun)) if begun.len() >= elements => begun.to_vec(),
            (None, _) => vec![None; elements],
        };
        for (at, number) in replaced {
            *numbers.get_mut(at)? = Some(number);
        }
        let known = numbers[..elements].iter().copied().collect::<Option<Vec<f64>>>();
        let is_kept = is_of_memory && (self.launcher.is_some() || elements <= MAX_LISTED);
        let is_begun = is_kept && numbers.iter().any(Option::is_none);
        Some(Stored {
            known: known.map(|numbers| contents(dtype, numbers)),
            begun: is_begun.then(|| numbers.into()),
        })
    }
}

/// Elements up to the end of a tensor in the memory that it is in, where they are not too many to compute them.
fn elements_of_memory(tensor: &Tensor) -> Option<usize> {
    let storage = tensor.storage.as_deref()?;
    let elements = usize::try_from(storage.before + storage.elements).ok()?;
    (elements <= super::MAX_COMPUTED).then_some(elements)
}

/// How many elements a tensor has that is all of its memory, in order.
pub(crate) fn whole(tensor: &Tensor) -> Option<i128> {
    let storage = tensor.storage.as_deref().filter(|storage| storage.before == 0)?;
    let is_whole =
        views::span(tensor) == Some(storage.elements) && views::is_contiguous(tensor) == Some(true);
    (is_whole && storage.elements <= super::MAX_COMPUTED as i128).then_some(storage.elements)
}

/// What memory holds that is all of a tensor, where each element of that is one number.
fn filled(tensor: &Tensor, value: &Value) -> Option<Contents> {
    let (count, dtype) = (usize::try_from(whole(tensor)?).ok()?, tensor.dtype.as_ref()?);
    let number = converted(of_value(value)?, dtype)?.number()?;
    Some(match is_float(dtype) {
        true => Contents::Floats(vec![number.to_bits(); count].into()),
        false => Contents::constant(number as i128),
    })
}

/// What a tensor holds after a method that changes it.
fn changed(name: &str, tensor: &Tensor, args: &Args<'_>) -> Option<Data> {
    let plain = name.strip_suffix('_')?;
    Some(match plain {
        "zero" => throughout(tensor, &Value::Int(Some(0)))?,
        "fill" => throughout(tensor, args.get(0, "value")?)?,
        "copy" => throughout(tensor, args.get(0, "src")?)?,
        "index_fill" | "index_copy" => {
            let axis = axis_of(tensor, args.get(0, "dim"), None)?;
            let mut data = of(tensor)?;
            let rows = of_value(args.get(1, "index")?)?.positions()?;
            let given =
                of_value(args.get(2, if plain == "index_fill" { "value" } else { "source" })?)?;
            for (at, row) in rows.into_iter().enumerate() {
                let row =
                    usize::try_from(row).ok().filter(|row| *row < data.numbers.shape()[axis])?;
                let part = match plain {
                    "index_fill" => given.numbers.view(),
                    _ if given.numbers.shape().get(axis).is_some_and(|rows| at < *rows) => {
                        given.numbers.index_axis(Axis(axis), at)
                    }
                    _ => return None,
                };
                let mut place = data.numbers.index_axis_mut(Axis(axis), row);
                let shape = place.raw_dim();
                place.assign(&part.broadcast(shape)?);
            }
            data
        }
        _ => match super::calls::of_method(plain, tensor, args, Ties::Open)? {
            super::Made::One(data) if data.numbers.shape() == of(tensor)?.numbers.shape() => data,
            _ => return None,
        },
    })
}

/// Numbers that take the place of all of a tensor's.
fn throughout(tensor: &Tensor, value: &Value) -> Option<Data> {
    let sizes = tensor.shape.as_ref()?.iter().map(|size| usize::try_from(super::known(size)?).ok());
    let sizes = sizes.collect::<Option<Vec<usize>>>()?;
    let value = of_value(value)?;
    Some(value.with(value.numbers.broadcast(IxDyn(&sizes))?.to_owned()))
}

/// A tensor with some elements replaced, or with more added to them; `None` for other functions.
pub(super) fn made_of(name: &str, tensor: &Tensor, args: &Args<'_>) -> Option<Data> {
    match name {
        "scatter" | "scatter_add" if args.keyword("reduce").is_none() => {
            scattered(name, tensor, args)
        }
        "index_add" => added(tensor, args),
        "scatter_reduce" | "index_reduce" => reduced(name, tensor, args),
        "index_copy" | "index_fill" => changed(&format!("{name}_"), tensor, args),
        "index_put" => put(tensor, args),
        "masked_scatter" => {
            let (mut data, mask) = (of(tensor)?, of_value(args.get(0, "mask")?)?);
            let source = of_value(args.get(1, "source")?)?;
            (mask.numbers.shape() == data.numbers.shape()).then_some(())?;
            let mut source = source.numbers.iter();
            for (place, chosen) in data.numbers.iter_mut().zip(&mask.numbers) {
                if *chosen != 0.0 {
                    *place = *source.next()?;
                }
            }
            Some(data)
        }
        _ => None,
    }
}

/// `index_put`: numbers at positions along all axes, or added to those there.
fn put(tensor: &Tensor, args: &Args<'_>) -> Option<Data> {
    let mut data = of(tensor)?;
    let index = args.get(0, "indices")?.elements()?;
    let index = index.iter().map(of_value).collect::<Option<Vec<Data>>>()?;
    let adds = args.get(2, "accumulate").map_or(Some(false), truth)?;
    let (places, shape) = super::chosen::places(data.numbers.shape(), &index)?;
    let values = of_value(args.get(1, "values")?)?.numbers;
    let values = values.broadcast(IxDyn(&shape))?;
    for (place, value) in places.iter().zip(values) {
        (place.len() == data.numbers.ndim()).then_some(())?;
        let place = &mut data.numbers[IxDyn(place)];
        *place = if adds { *place + value } else { *value };
    }
    Some(data)
}

/// `index_add`: rows that are added to those at these positions.
fn added(tensor: &Tensor, args: &Args<'_>) -> Option<Data> {
    let axis = Axis(axis_of(tensor, args.get(0, "dim"), None)?);
    let mut data = of(tensor)?;
    let rows = of_value(args.get(1, "index")?)?.positions()?;
    let source = of_value(args.get(2, "source")?)?.numbers;
    let scale = args.keyword("alpha").map_or(Some(1.0), as_float)?;
    if source.ndim() != data.numbers.ndim() || source.len_of(axis) != rows.len() {
        return None;
    }
    for (row, added) in rows.into_iter().zip(source.axis_iter(axis)) {
        let row = usize::try_from(row).ok().filter(|row| *row < data.numbers.len_of(axis))?;
        let mut place = data.numbers.index_axis_mut(axis, row);
        let added = added.broadcast(place.raw_dim())?;
        place.zip_mut_with(&added, |place, added| *place += scale * added);
    }
    Some(data)
}

/// `scatter_reduce` and `index_reduce`: numbers that are combined with those at these positions.
fn reduced(name: &str, tensor: &Tensor, args: &Args<'_>) -> Option<Data> {
    let axis = axis_of(tensor, args.get(0, "dim"), None)?;
    let mut data = of(tensor)?;
    let index = of_value(args.get(1, "index")?)?.numbers;
    let source = args.get(2, "src").or_else(|| args.keyword("source"));
    let source = of_value(source?)?.numbers;
    let Value::Str(how) = args.get(3, "reduce")? else { return None };
    let combined: fn(f64, f64) -> f64 = match &**how {
        "sum" | "mean" => |a, b| a + b,
        "prod" => |a, b| a * b,
        "amin" => |a, b| if a < b || a.is_nan() { a } else { b },
        "amax" => |a, b| if a > b || a.is_nan() { a } else { b },
        _ => return None,
    };
    let includes_own = args.keyword("include_self").map_or(Some(true), truth)?;
    if &**how == "mean" && !is_float(&data.dtype) || source.ndim() != data.numbers.ndim() {
        return None;
    }
    let mut counts = data.numbers.map(|_| u32::from(includes_own));
    for (mut at, number) in source.indexed_iter() {
        let to = match name {
            "index_reduce" => index.get(IxDyn(&[at[axis]])),
            _ => index.get(&at),
        };
        // Of what is scattered only as much counts as there are positions.
        let Some(to) = to else { continue };
        at[axis] = (*to >= 0.0).then_some(*to as usize)?;
        let (place, count) = (data.numbers.get_mut(&at)?, counts.get_mut(&at)?);
        *place = if *count == 0 { *number } else { combined(*place, *number) };
        *count += 1;
    }
    if &**how == "mean" {
        data.numbers.zip_mut_with(&counts, |sum, count| *sum /= f64::from((*count).max(1)));
    }
    Some(data)
}

fn scattered(name: &str, tensor: &Tensor, args: &Args<'_>) -> Option<Data> {
    let axis = axis_of(tensor, args.get(0, "dim"), None)?;
    let mut data = of(tensor)?;
    let index = of_value(args.get(1, "index")?)?;
    let source = args.get(2, "src").or_else(|| args.keyword("value"))?;
    let source = of_value(source)?;
    if index.numbers.ndim() != data.numbers.ndim() {
        return None;
    }
    for (mut at, to) in index.numbers.indexed_iter().map(|(at, to)| (at, *to)) {
        let number = match source.number() {
            Some(number) => number,
            None => *source.numbers.get(&at)?,
        };
        at[axis] = (to >= 0.0).then_some(to as usize)?;
        let place = data.numbers.get_mut(&at)?;
        *place = if name == "scatter" { number } else { *place + number };
    }
    Some(data)
}
