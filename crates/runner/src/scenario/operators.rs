//! Operators on numbers and tensors.

use rayon::prelude::*;
use tile_compiler::hir::{BinaryOp, CompareOp, UnaryOp};

use super::dtype::DType;
use super::error::{Eval, fault};
use super::tensor::{Array, Data, Layout, Value, broadcast_shapes};

/// Elements above which work is spread over all cores.
const PARALLEL: usize = 1 << 16;

/// A number or a tensor: what arithmetic works on.
#[derive(Debug, Clone)]
pub(super) enum Operand {
    Int(i128),
    Float(f64),
    Array(std::sync::Arc<Array>),
}

impl Operand {
    /// The operand as an array of `dtype`'s class.
    pub(crate) fn to_array(&self, dtype: DType) -> Array {
        match self {
            Operand::Array(array) => (**array).clone(),
            Operand::Int(value) if dtype.is_float() => {
                Array::floats(dtype, vec![], vec![*value as f64])
            }
            Operand::Int(value) => Array::ints(dtype, vec![], vec![*value as i64]),
            Operand::Float(value) => Array::floats(dtype, vec![], vec![*value]),
        }
    }

    pub fn to_float(&self) -> Option<f64> {
        match self {
            Operand::Int(value) => Some(*value as f64),
            Operand::Float(value) => Some(*value),
            Operand::Array(_) => None,
        }
    }
}

/// The type that an operation on both gives; numbers are weak.
pub(super) fn common_dtype(a: &Operand, b: &Operand) -> DType {
    let weak = |dtype: DType, number: &Operand| match number {
        Operand::Float(_) if !dtype.is_float() => DType::F32,
        Operand::Int(_) if dtype == DType::Bool => DType::I64,
        _ => dtype,
    };
    match (a, b) {
        (Operand::Array(a), Operand::Array(b)) => a.dtype.promote(b.dtype),
        (Operand::Array(a), number) | (number, Operand::Array(a)) => weak(a.dtype, number),
        (Operand::Int(_), Operand::Int(_)) => DType::I64,
        _ => DType::F64,
    }
}

/// Applies `f` to the elements as floats.
pub(super) fn map_floats(
    array: &Array,
    dtype: DType,
    f: impl Fn(f64) -> f64 + Send + Sync,
) -> Array {
    let values = array.to_floats();
    let values = if values.len() < PARALLEL {
        values.into_iter().map(f).collect()
    } else {
        values.into_par_iter().map(f).collect()
    };
    Array::floats(dtype, array.shape.clone(), values)
}

/// Both operands as arrays of one shape.
pub(super) fn align(a: &Array, b: &Array) -> Eval<(Array, Array)> {
    let shape = broadcast_shapes(&a.shape, &b.shape).ok_or_else(|| {
        fault!("shapes {} and {} do not broadcast", show_shape(&a.shape), show_shape(&b.shape))
    })?;
    let stretch = |array: &Array| {
        if array.shape == shape {
            return array.clone();
        }
        let layout = Layout::contiguous(&array.shape).broadcast(&shape);
        layout.map_or_else(|| array.clone(), |layout| array.gather(&layout))
    };
    Ok((stretch(a), stretch(b)))
}

/// A shape as Python writes it.
pub(super) fn show_shape(shape: &[usize]) -> String {
    let extents: Vec<String> = shape.iter().map(usize::to_string).collect();
    match extents.as_slice() {
        [one] => format!("({one},)"),
        all => format!("({})", all.join(", ")),
    }
}

/// Applies `f` to pairs of elements as floats, after broadcasting.
pub(super) fn zip_floats(
    a: &Array,
    b: &Array,
    dtype: DType,
    f: impl Fn(f64, f64) -> f64 + Send + Sync,
) -> Eval<Array> {
    let (a, b) = align(a, b)?;
    let (x, y) = (a.to_floats(), b.to_floats());
    let values = if x.len() < PARALLEL {
        x.into_iter().zip(y).map(|(x, y)| f(x, y)).collect()
    } else {
        x.into_par_iter().zip(y).map(|(x, y)| f(x, y)).collect()
    };
    Ok(Array::floats(dtype, a.shape, values))
}

fn zip_ints(a: &Array, b: &Array, dtype: DType, f: impl Fn(i64, i64) -> i64) -> Eval<Array> {
    let (a, b) = align(a, b)?;
    match (&a.data, &b.data) {
        (Data::Int(x), Data::Int(y)) => {
            // Wrapped to the type, as the operation on that type would.
            let values = x.iter().zip(y).map(|(&x, &y)| dtype.decode_int(f(x, y) as u64)).collect();
            Ok(Array::ints(dtype, a.shape, values))
        }
        _ => Err(fault!("this operator takes integers, and one side is a float tensor")),
    }
}

pub(super) fn binary(op: BinaryOp, a: Operand, b: Operand) -> Eval<Value> {
    if op == BinaryOp::MatMul {
        return matmul(&a, &b);
    }
    if let (Operand::Int(x), Operand::Int(y)) = (&a, &b) {
        return int_binary(op, *x, *y);
    }
    if let (Some(x), Some(y)) = (a.to_float(), b.to_float()) {
        return float_binary(op, x, y).map(Value::Float);
    }
    let mut dtype = common_dtype(&a, &b);
    if op == BinaryOp::Div && !dtype.is_float() {
        dtype = DType::F32;
    }
    let (a, b) = (a.to_array(dtype), b.to_array(dtype));
    // Sums and products of truth values are truth values.
    let op = match op {
        BinaryOp::Add if dtype == DType::Bool => BinaryOp::Or,
        BinaryOp::Mul if dtype == DType::Bool => BinaryOp::And,
        op => op,
    };
    let bitwise =
        matches!(op, BinaryOp::And | BinaryOp::Or | BinaryOp::Xor | BinaryOp::Shl | BinaryOp::Shr);
    let array = if dtype.is_float() && !bitwise {
        let f = float_function(op)?;
        zip_floats(&a, &b, dtype, f)?
    } else {
        zip_ints(&a, &b, dtype, int_function(op)?)?
    };
    Ok(Value::Array(array.into()))
}

fn int_binary(op: BinaryOp, x: i128, y: i128) -> Eval<Value> {
    let amount = |y: i128| u32::try_from(y).map_err(|_| fault!("the shift amount is {y}"));
    let zero = || fault!("division by zero");
    let too_large = || fault!("the integer is too large");
    Ok(Value::Int(match op {
        BinaryOp::Add => x.checked_add(y).ok_or_else(too_large)?,
        BinaryOp::Sub => x.checked_sub(y).ok_or_else(too_large)?,
        BinaryOp::Mul => x.checked_mul(y).ok_or_else(too_large)?,
        BinaryOp::Div if y == 0 => return Err(zero()),
        BinaryOp::Div => return Ok(Value::Float(x as f64 / y as f64)),
        BinaryOp::FloorDiv | BinaryOp::Mod if y == 0 => return Err(zero()),
        BinaryOp::FloorDiv => floor_div(x, y),
        BinaryOp::Mod => x - floor_div(x, y) * y,
        BinaryOp::Pow if y < 0 => return Ok(Value::Float(libm::pow(x as f64, y as f64))),
        BinaryOp::Pow => {
            let power = u32::try_from(y).ok().and_then(|power| x.checked_pow(power));
            power.ok_or_else(too_large)?
        }
        BinaryOp::Shl => x.checked_shl(amount(y)?).ok_or_else(too_large)?,
        BinaryOp::Shr => x >> amount(y)?.min(127),
        BinaryOp::And => x & y,
        BinaryOp::Or => x | y,
        BinaryOp::Xor => x ^ y,
        BinaryOp::MatMul => return Err(fault!("`@` takes tensors")),
    }))
}

fn floor_div(x: i128, y: i128) -> i128 {
    x.wrapping_div_euclid(y) - i128::from(y < 0 && x.wrapping_rem_euclid(y) != 0)
}

fn float_binary(op: BinaryOp, x: f64, y: f64) -> Eval<f64> {
    Ok(float_function(op)?(x, y))
}

fn float_function(op: BinaryOp) -> Eval<fn(f64, f64) -> f64> {
    Ok(match op {
        BinaryOp::Add => |x, y| x + y,
        BinaryOp::Sub => |x, y| x - y,
        BinaryOp::Mul => |x, y| x * y,
        BinaryOp::Div => |x, y| x / y,
        BinaryOp::FloorDiv => |x, y| libm::floor(x / y),
        BinaryOp::Mod => |x, y| x - libm::floor(x / y) * y,
        BinaryOp::Pow => libm::pow,
        _ => return Err(fault!("`{}` takes integers", op.symbol())),
    })
}

fn int_function(op: BinaryOp) -> Eval<fn(i64, i64) -> i64> {
    Ok(match op {
        BinaryOp::Add => i64::wrapping_add,
        BinaryOp::Sub => i64::wrapping_sub,
        BinaryOp::Mul => i64::wrapping_mul,
        BinaryOp::FloorDiv => |x, y| if y == 0 { 0 } else { floor_div(x.into(), y.into()) as i64 },
        BinaryOp::Mod => |x, y| {
            if y == 0 {
                0
            } else {
                x.wrapping_sub((floor_div(x.into(), y.into()) as i64).wrapping_mul(y))
            }
        },
        BinaryOp::Pow => |x, y| x.wrapping_pow(u32::try_from(y).unwrap_or(0)),
        BinaryOp::And => |x, y| x & y,
        BinaryOp::Or => |x, y| x | y,
        BinaryOp::Xor => |x, y| x ^ y,
        BinaryOp::Shl => |x, y| x.checked_shl(y as u32).unwrap_or(0),
        BinaryOp::Shr => |x, y| x >> y.clamp(0, 63),
        BinaryOp::Div | BinaryOp::MatMul => return Err(fault!("this operator takes floats")),
    })
}

pub(super) fn unary(op: UnaryOp, operand: Operand) -> Eval<Value> {
    Ok(match (op, operand) {
        (UnaryOp::Plus, Operand::Int(value)) => Value::Int(value),
        (UnaryOp::Plus, Operand::Float(value)) => Value::Float(value),
        (UnaryOp::Plus, Operand::Array(array)) => Value::Array(array),
        (UnaryOp::Minus, Operand::Int(value)) => Value::Int(value.wrapping_neg()),
        (UnaryOp::Minus, Operand::Float(value)) => Value::Float(-value),
        (UnaryOp::Minus, Operand::Array(array)) => Value::Array(negate(&array).into()),
        (UnaryOp::Invert, Operand::Int(value)) => Value::Int(!value),
        (UnaryOp::Invert, Operand::Array(array)) => Value::Array(invert(&array)?.into()),
        (UnaryOp::Invert, Operand::Float(_)) => return Err(fault!("`~` takes integers")),
        (UnaryOp::Not, Operand::Int(value)) => Value::Bool(value == 0),
        (UnaryOp::Not, Operand::Float(value)) => Value::Bool(value == 0.0),
        (UnaryOp::Not, Operand::Array(_)) => {
            return Err(fault!("`not` takes one truth value; use `~` for each element"));
        }
    })
}

fn negate(array: &Array) -> Array {
    let data = match &array.data {
        Data::Float(values) => Data::Float(values.iter().map(|value| -value).collect()),
        Data::Int(values) => Data::Int(
            values
                .iter()
                .map(|value| array.dtype.decode_int(value.wrapping_neg() as u64))
                .collect(),
        ),
    };
    Array { dtype: array.dtype, shape: array.shape.clone(), data }
}

fn invert(array: &Array) -> Eval<Array> {
    let Data::Int(values) = &array.data else { return Err(fault!("`~` takes integers")) };
    let flip = |value: &i64| match array.dtype {
        DType::Bool => value ^ 1,
        dtype => dtype.decode_int(!*value as u64),
    };
    let values = values.iter().map(flip).collect();
    Ok(Array::ints(array.dtype, array.shape.clone(), values))
}

pub(super) fn compare(op: CompareOp, a: Operand, b: Operand) -> Eval<Value> {
    let holds = |ordering: Option<std::cmp::Ordering>| match op {
        CompareOp::Eq => ordering == Some(std::cmp::Ordering::Equal),
        CompareOp::Ne => ordering != Some(std::cmp::Ordering::Equal),
        CompareOp::Lt => ordering.is_some_and(std::cmp::Ordering::is_lt),
        CompareOp::Le => ordering.is_some_and(std::cmp::Ordering::is_le),
        CompareOp::Gt => ordering.is_some_and(std::cmp::Ordering::is_gt),
        CompareOp::Ge => ordering.is_some_and(std::cmp::Ordering::is_ge),
        CompareOp::Is | CompareOp::IsNot | CompareOp::In | CompareOp::NotIn => false,
    };
    if let (Operand::Int(x), Operand::Int(y)) = (&a, &b) {
        return Ok(Value::Bool(holds(Some(x.cmp(y)))));
    }
    if let (Some(x), Some(y)) = (a.to_float(), b.to_float()) {
        return Ok(Value::Bool(holds(x.partial_cmp(&y))));
    }
    let dtype = common_dtype(&a, &b);
    let (a, b) = align(&a.to_array(dtype), &b.to_array(dtype))?;
    let values: Vec<i64> = match (&a.data, &b.data) {
        (Data::Int(x), Data::Int(y)) => {
            x.iter().zip(y).map(|(x, y)| i64::from(holds(Some(x.cmp(y))))).collect()
        }
        _ => {
            let pairs = a.to_floats().into_iter().zip(b.to_floats());
            pairs.map(|(x, y)| i64::from(holds(x.partial_cmp(&y)))).collect()
        }
    };
    Ok(Value::Array(Array::ints(DType::Bool, a.shape, values).into()))
}

/// `a @ b` over the last two axes, leading axes broadcast; a vector is a row on the left and a
/// column on the right.
fn matmul(a: &Operand, b: &Operand) -> Eval<Value> {
    let (Operand::Array(a), Operand::Array(b)) = (a, b) else {
        return Err(fault!("`@` takes tensors"));
    };
    if a.shape.is_empty() || b.shape.is_empty() {
        return Err(fault!("`@` takes tensors of rank 1 or more"));
    }
    let mut left = a.shape.clone();
    let mut right = b.shape.clone();
    if left.len() == 1 {
        left.insert(0, 1);
    }
    if right.len() == 1 {
        right.push(1);
    }
    let (m, k) = (left[left.len() - 2], left[left.len() - 1]);
    let (k2, n) = (right[right.len() - 2], right[right.len() - 1]);
    let batches = broadcast_shapes(&left[..left.len() - 2], &right[..right.len() - 2]);
    let Some(batch_shape) = batches.filter(|_| k == k2) else {
        return Err(fault!("cannot multiply {} by {}", show_shape(&a.shape), show_shape(&b.shape)));
    };
    let dtype = a.dtype.promote(b.dtype);
    let starts = |shape: &[usize], size: usize| -> Vec<usize> {
        let layout = Layout::contiguous(&shape[..shape.len() - 2]).broadcast(&batch_shape);
        layout
            .map(|layout| layout.positions())
            .unwrap_or_default()
            .iter()
            .map(|at| at * size)
            .collect()
    };
    let (x, y) = (a.to_floats(), b.to_floats());
    let mut values = Vec::new();
    for (from_x, from_y) in starts(&left, m * k).into_iter().zip(starts(&right, k * n)) {
        values.extend(product(&x[from_x..][..m * k], &y[from_y..][..k * n], [m, n, k]));
    }
    let mut shape = batch_shape;
    if a.shape.len() > 1 {
        shape.push(m);
    }
    if b.shape.len() > 1 {
        shape.push(n);
    }
    let array = Array::floats(dtype, shape, values);
    Ok(Value::Array(if dtype.is_float() { array } else { array.convert(dtype) }.into()))
}

/// One product, rows spread over all cores.
fn product(x: &[f64], y: &[f64], [m, n, k]: [usize; 3]) -> Vec<f64> {
    const ROWS: usize = 64;
    let mut out = vec![0.0; m * n];
    if out.is_empty() || k == 0 {
        return out;
    }
    let Ok(y) = ndarray::ArrayView2::from_shape((k, n), y) else { return out };
    out.par_chunks_mut(ROWS * n).zip(x.par_chunks(ROWS * k)).for_each(|(out, x)| {
        let rows = x.len() / k;
        let views = (
            ndarray::ArrayView2::from_shape((rows, k), x),
            ndarray::ArrayViewMut2::from_shape((rows, n), out),
        );
        if let (Ok(x), Ok(mut out)) = views {
            ndarray::linalg::general_mat_mul(1.0, &x, &y, 0.0, &mut out);
        }
    });
    out
}
