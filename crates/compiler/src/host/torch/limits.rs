//! What `torch.finfo` and `torch.iinfo` tell of dtypes.

use std::sync::Arc;

use crate::host::torch::tensor::given_dtype;
use crate::host::value::Value;
use crate::host::value::dtype::{element_size, is_float, is_integer};
use crate::specialization::TupleNames;

/// A format of floats: its greatest number, its least normal one, and the distance from 1 to the next one.
/// Source: PyTorch's `torch.finfo`.
type Format = (&'static str, f64, f64, f64);

const FORMATS: &[Format] = &[
    ("fp64", f64::MAX, f64::MIN_POSITIVE, f64::EPSILON),
    ("fp32", f32::MAX as f64, f32::MIN_POSITIVE as f64, f32::EPSILON as f64),
    ("fp16", 65504.0, 6.103515625e-5, 9.765625e-4),
    ("bf16", 3.3895313892515355e38, 1.1754943508222875e-38, 0.0078125),
    ("fp8e4nv", 448.0, 0.015625, 0.125),
    ("fp8e5", 57344.0, 6.103515625e-5, 0.25),
    ("fp8e4b8", 240.0, 0.0078125, 0.125),
    ("fp8e5b16", 57344.0, 3.0517578125e-5, 0.25),
];

/// What `torch.NAME(dtype)` gives, of which nothing is known where the dtype is not; `None` for other
/// functions.
pub(crate) fn of_dtype(name: &str, dtype: Option<&Value>) -> Option<Value> {
    let given = match dtype {
        None if name == "finfo" => Some(Arc::from("fp32")),
        dtype => dtype.and_then(given_dtype),
    };
    let dtype = given.as_deref();
    let bits = Value::Int(dtype.and_then(element_size).map(|bytes| bytes * 8));
    let fields = match name {
        "finfo" => {
            let format = FORMATS.iter().find(|(known, ..)| Some(*known) == dtype);
            let number = |of: fn(&Format) -> f64| Value::Float(format.map(of));
            vec![
                ("bits", bits),
                ("max", number(|(_, max, ..)| *max)),
                ("min", number(|(_, max, ..)| -max)),
                ("tiny", number(|(_, _, least, _)| *least)),
                ("smallest_normal", number(|(_, _, least, _)| *least)),
                ("eps", number(|(.., distance)| *distance)),
            ]
        }
        "iinfo" => {
            let (least, greatest) = dtype.and_then(range).unzip();
            vec![("bits", bits), ("max", Value::Int(greatest)), ("min", Value::Int(least))]
        }
        _ => return None,
    };
    if dtype.is_some_and(|dtype| is_float(dtype) != (name == "finfo")) {
        return None;
    }
    let (names, items): (Vec<_>, Vec<_>) = fields.into_iter().unzip();
    let fields = names.into_iter().map(Into::into).collect();
    Some(Value::Record { names: Arc::new(TupleNames { class: name.into(), fields }), items })
}

/// The least and the greatest integer of a dtype.
fn range(dtype: &str) -> Option<(i128, i128)> {
    let bits = element_size(dtype).filter(|_| is_integer(dtype))? * 8;
    let half = 1i128 << (bits - 1);
    Some(if dtype.starts_with('u') { (0, 2 * half - 1) } else { (-half, half - 1) })
}
