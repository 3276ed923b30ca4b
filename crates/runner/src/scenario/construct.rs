//! Functions that make tensors.

use rayon::prelude::*;

use super::args::{Args, dtype_argument};
use super::dtype::DType;
use super::error::{Eval, fault};
use super::host::Host;
use super::npy::load_npy;
use super::operators::Operand;
use super::random::Random;
use super::tensor::{Array, Value, numel};

/// A shape from arguments: extents, or one tuple of them.
pub(super) fn shape_of(host: &Host, values: Vec<Value>) -> Eval<Vec<usize>> {
    let values = match values.as_slice() {
        [Value::Tuple(items)] => items.clone(),
        _ => values,
    };
    let extent = |value: &Value| {
        let extent = host.int(value)?;
        usize::try_from(extent).map_err(|_| fault!("an extent cannot be {extent}"))
    };
    let shape = values.iter().map(extent).collect::<Eval<Vec<usize>>>()?;
    numel(&shape).map_err(|error| fault!("{error}"))?;
    Ok(shape)
}

/// `randn rand randint zeros ones full empty`.
pub(super) fn construct(host: &mut Host, name: &str, mut args: Args) -> Eval<Value> {
    let dtype = dtype_argument(&mut args)?.unwrap_or(DType::F32);
    let seed = args.named(&["seed"]).map(|seed| host.int(&seed)).transpose()?.unwrap_or(0);
    let mut positional = std::mem::take(&mut args.positional);
    if let Some(shape) = args.named(&["shape", "size"]) {
        positional.push(shape);
    }
    let filling = match name {
        "randint" if positional.len() < 2 => {
            return Err(fault!("randint takes a lower and an upper bound, then the shape"));
        }
        "randint" => {
            let high = host.int(&positional.remove(1))?;
            let low = host.int(&positional.remove(0))?;
            if low >= high {
                return Err(fault!("randint({low}, {high}) has nothing to draw from"));
            }
            Filling::Integers(low as i64, high as i64)
        }
        "full" => {
            let value = args.named(&["value", "fill_value"]).or_else(|| positional.pop());
            let value = value.ok_or_else(|| fault!("full takes a shape and then a value"))?;
            match host.operand(value)? {
                Operand::Int(value) => Filling::Same(value as f64, value as i64),
                Operand::Float(value) => Filling::Same(value, value as i64),
                Operand::Array(_) => return Err(fault!("full takes a number")),
            }
        }
        "zeros" => Filling::Same(0.0, 0),
        "ones" => Filling::Same(1.0, 1),
        "rand" => Filling::Uniform,
        "randn" => Filling::Normal,
        _ => Filling::Poison,
    };
    args.finish(name)?;
    let shape = shape_of(host, positional)?;
    Ok(filled(host, filling, dtype, &shape, seed as u64))
}

#[derive(Debug, Clone, Copy)]
enum Filling {
    Same(f64, i64),
    Uniform,
    Normal,
    Integers(i64, i64),
    Poison,
}

fn filled(host: &mut Host, filling: Filling, dtype: DType, shape: &[usize], seed: u64) -> Value {
    let numel: usize = shape.iter().product();
    let random = Random::new(seed);
    let floats = |f: &(dyn Fn(u64) -> f64 + Sync)| {
        let values = (0..numel as u64).into_par_iter().map(f).collect();
        Array::floats(DType::F64, shape.to_vec(), values).convert(dtype)
    };
    let array = match filling {
        Filling::Poison => {
            let bytes = poison(dtype, numel);
            return Value::Tensor(host.store.add(dtype, shape, bytes, false));
        }
        Filling::Same(value, _) if dtype.is_float() => floats(&|_| value),
        Filling::Same(_, value) => {
            Array::ints(DType::I64, shape.to_vec(), vec![value; numel]).convert(dtype)
        }
        Filling::Uniform => floats(&|at| random.uniform(at)),
        Filling::Normal => floats(&|at| random.normal(at)),
        Filling::Integers(low, high) => {
            let values = (0..numel as u64).map(|at| random.integer(at, low, high)).collect();
            Array::ints(DType::I64, shape.to_vec(), values).convert(dtype)
        }
    };
    Value::Tensor(host.store.store(&array))
}

/// What `empty` holds: NaN, or for integers a pattern that catches the eye and is far outside
/// most buffers when it is taken for an index.
fn poison(dtype: DType, numel: usize) -> Vec<u8> {
    let bits = match dtype {
        DType::Bool => 1,
        dtype if dtype.is_float() => tile_executor::number::encode(dtype.scalar(), f64::NAN),
        _ => 0x6BAD_BAD1_6BAD_BAD1,
    };
    let element: Vec<u8> = bits.to_le_bytes().into_iter().take(dtype.bytes()).collect();
    element.repeat(numel)
}

pub(super) fn construct_like(host: &mut Host, name: &str, mut args: Args) -> Eval<Value> {
    let like = args.need(name, &["x", "input"])?;
    let array = host.array(&like)?;
    let shape = array.shape.iter().map(|&extent| Value::Int(extent as i128)).collect();
    args.positional.insert(0, Value::Tuple(shape));
    if !args.named.iter().any(|(name, _)| name == "dtype") {
        args.named.push(("dtype".to_owned(), Value::DType(array.dtype)));
    }
    construct(host, name.trim_end_matches("_like"), args)
}

pub(super) fn arange(host: &mut Host, mut args: Args) -> Eval<Value> {
    let dtype = dtype_argument(&mut args)?.unwrap_or(DType::F32);
    let bounds = std::mem::take(&mut args.positional);
    args.finish("arange")?;
    let bounds = bounds.iter().map(|bound| host.int(bound)).collect::<Eval<Vec<i128>>>()?;
    let (start, end, step) = match bounds[..] {
        [end] => (0, end, 1),
        [start, end] => (start, end, 1),
        [start, end, step] if step != 0 => (start, end, step),
        _ => return Err(fault!("arange takes an end, or start and end, or start, end and step")),
    };
    let span = if step > 0 { end - start } else { start - end };
    let count = ((span + step.abs() - 1) / step.abs()).max(0) as usize;
    shape_of(host, vec![Value::Int(count as i128)])?;
    let values = (0..count as i128).map(|at| (start + at * step) as i64).collect();
    let array = Array::ints(DType::I64, vec![count], values).convert(dtype);
    Ok(Value::Tensor(host.store.store(&array)))
}

/// `tensor(values, dtype=)`: the numbers of a nested list.
pub(super) fn tensor(host: &mut Host, mut args: Args) -> Eval<Value> {
    let data = args.need("tensor", &["data", "values"])?;
    let dtype = dtype_argument(&mut args)?;
    args.finish("tensor")?;
    let mut numbers = Vec::new();
    let shape = flatten_list(&data, &mut numbers)?;
    let natural = match numbers.as_slice() {
        [] => DType::F32,
        some if some.iter().all(|number| matches!(number, Value::Bool(_))) => DType::Bool,
        _ => DType::I64,
    };
    let integer = |number: &Value| match number {
        Value::Int(value) => i64::try_from(*value).ok(),
        Value::Bool(value) => Some(i64::from(*value)),
        _ => None,
    };
    let array = match numbers.iter().map(integer).collect::<Option<Vec<i64>>>() {
        Some(values) => Array::ints(DType::I64, shape, values).convert(dtype.unwrap_or(natural)),
        None => {
            let floats = numbers.into_iter().map(|number| {
                host.operand(number)?.to_float().ok_or_else(|| fault!("tensor takes numbers"))
            });
            Array::floats(DType::F64, shape, floats.collect::<Eval<_>>()?)
                .convert(dtype.unwrap_or(DType::F32))
        }
    };
    Ok(Value::Tensor(host.store.store(&array)))
}

/// Collects the numbers of a nested list in row-major order; its shape.
fn flatten_list(value: &Value, numbers: &mut Vec<Value>) -> Eval<Vec<usize>> {
    let Value::Tuple(items) = value else {
        numbers.push(value.clone());
        return Ok(Vec::new());
    };
    let mut inner: Option<Vec<usize>> = None;
    for item in items {
        let shape = flatten_list(item, numbers)?;
        if inner.as_ref().is_some_and(|known| *known != shape) {
            return Err(fault!("the lists in a tensor have one length"));
        }
        inner = Some(shape);
    }
    Ok([items.len()].into_iter().chain(inner.unwrap_or_default()).collect())
}

pub(super) fn load(host: &mut Host, mut args: Args) -> Eval<Value> {
    let path = args.need("load", &["file"])?;
    let dtype = dtype_argument(&mut args)?;
    args.finish("load")?;
    let Value::Str(path) = path else { return Err(fault!("load takes a file name")) };
    let array = load_npy(&host.options.folder.join(&*path)).map_err(|error| fault!("{error}"))?;
    let array = dtype.map_or_else(|| array.clone(), |dtype| array.convert(dtype));
    Ok(Value::Tensor(host.store.store(&array)))
}
