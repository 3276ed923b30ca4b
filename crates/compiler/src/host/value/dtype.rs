//! Dtypes by the names that host code has for them.

use std::sync::Arc;

use crate::builtins::TORCH;
use crate::hir::Name;
use crate::host::value::Value;

/// Names of dtypes with their signature spelling, as PyTorch, Triton and scenarios have them.
const DTYPES: &[(&str, &str)] = &[
    ("bfloat16", "bf16"),
    ("bool", "i1"),
    ("double", "fp64"),
    ("float", "fp32"),
    ("float16", "fp16"),
    ("float32", "fp32"),
    ("float64", "fp64"),
    ("float8_e4m3fn", "fp8e4nv"),
    ("float8_e4m3fnuz", "fp8e4b8"),
    ("float8_e5m2", "fp8e5"),
    ("float8_e5m2fnuz", "fp8e5b16"),
    ("float8e4b15", "fp8e4b15"),
    ("float8e4b8", "fp8e4b8"),
    ("float8e4nv", "fp8e4nv"),
    ("float8e5", "fp8e5"),
    ("float8e5b16", "fp8e5b16"),
    ("half", "fp16"),
    ("int", "i32"),
    ("int1", "i1"),
    ("int16", "i16"),
    ("int32", "i32"),
    ("int64", "i64"),
    ("int8", "i8"),
    ("long", "i64"),
    ("short", "i16"),
    ("uint16", "u16"),
    ("uint32", "u32"),
    ("uint64", "u64"),
    ("uint8", "u8"),
];

/// Names of PyTorch's dtypes of complex numbers, which Triton has not, with the usual one of each.
const COMPLEX: &[(&str, &str)] = &[
    ("cdouble", "complex128"),
    ("cfloat", "complex64"),
    ("chalf", "complex32"),
    ("complex128", "complex128"),
    ("complex32", "complex32"),
    ("complex64", "complex64"),
];

/// Signature spellings of the types that a number or an element can have.
pub(crate) const SPELLINGS: &[&str] = &[
    "i1", "u1", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "fp8e4nv", "fp8e4b8",
    "fp8e4b15", "fp8e5", "fp8e5b16", "fp16", "bf16", "fp32", "fp64",
];

/// The dtype called `name`, by either spelling.
pub(crate) fn named_dtype(name: &str) -> Option<&'static str> {
    let by_name = DTYPES.iter().find(|(known, _)| *known == name).map(|(_, spelling)| *spelling);
    by_name.or_else(|| SPELLINGS.iter().copied().find(|known| *known == name))
}

/// The dtype that the member `path` of the triton package is.
pub(crate) fn language_dtype(path: &str) -> Option<&'static str> {
    named_dtype(path.strip_prefix("language.")?)
}

/// PyTorch's name of the dtype with a signature spelling, with its module: of several the longest, which
/// says how wide it is.
pub(crate) fn torch_name(spelling: &str) -> String {
    let names = DTYPES.iter().filter(|(_, known)| *known == spelling).map(|(name, _)| *name);
    let longest = names.reduce(|known, name| if name.len() > known.len() { name } else { known });
    format!("{TORCH}.{}", longest.unwrap_or(spelling))
}

/// The dtype that a dotted path outside of the project is: `torch.float16`.
pub(crate) fn torch_dtype(path: &[Name]) -> Option<&'static str> {
    match path {
        [torch, name] if &**torch == TORCH => {
            let complex = COMPLEX.iter().find(|(known, _)| *known == &**name);
            named_dtype(name).or(complex.map(|(_, usual)| *usual))
        }
        _ => None,
    }
}

/// The dtype that PyTorch takes a type of Python for.
pub(crate) fn python_type(name: &str) -> Option<&'static str> {
    match name {
        "bool" => Some("i1"),
        "int" => Some("i64"),
        "float" => Some("fp64"),
        _ => None,
    }
}

/// The dtype of a tensor that PyTorch makes of a number; `None` for what is none.
pub(crate) fn number_dtype(value: &Value) -> Option<&'static str> {
    match value.plain() {
        Value::Bool(_) => Some("i1"),
        Value::Int(_) | Value::Address { .. } => Some("i64"),
        Value::Float(_) => Some("fp32"),
        _ => None,
    }
}

/// The dtype of an operation on a tensor and a number: the tensor's, unless the number is of a
/// wider kind (bools, integers, floats), which then has its default dtype. Source: PyTorch's
/// documentation of type promotion.
pub(crate) fn with_number(dtype: Option<&Arc<str>>, number: &Value) -> Option<Arc<str>> {
    let dtype = dtype?;
    if is_complex(dtype) {
        return Some(dtype.clone());
    }
    let wider = match number_dtype(number)? {
        "fp32" => !is_float(dtype),
        "i64" => &**dtype == "i1",
        _ => false,
    };
    Some(if wider { Arc::from(number_dtype(number)?) } else { dtype.clone() })
}

/// The dtype of floats that a function makes of elements of a dtype: of integers, PyTorch's default type.
pub(crate) fn float_of(dtype: &Arc<str>) -> Arc<str> {
    match is_float(dtype) || is_complex(dtype) {
        true => dtype.clone(),
        false => Arc::from("fp32"),
    }
}

/// The dtype of an operation on a tensor with dimensions and one without, which counts by its kind alone.
/// Source: as of [`with_number`].
pub(crate) fn with_scalar(dtype: Option<&Arc<str>>, scalar: Option<&Arc<str>>) -> Option<Arc<str>> {
    let (own, scalar) = (dtype?, scalar?);
    match is_float(own) || is_complex(own) {
        true if is_complex(scalar) && own != scalar => None,
        true => Some(own.clone()),
        false if &**own == "i1" || is_float(scalar) || is_complex(scalar) => {
            promoted(Some(own), Some(scalar))
        }
        false => Some(own.clone()),
    }
}

/// The dtype of an operation on two tensors of more than no dimensions; `None` where it is not
/// known. Source: as of [`with_number`].
pub(crate) fn promoted(a: Option<&Arc<str>>, b: Option<&Arc<str>>) -> Option<Arc<str>> {
    let (a, b) = (a?, b?);
    if a == b {
        return Some(a.clone());
    }
    match (is_complex(a), is_complex(b)) {
        (false, false) => {}
        (true, false) if !is_float(b) || element_size(b) <= Some(4) => return Some(a.clone()),
        (false, true) if !is_float(a) || element_size(a) <= Some(4) => return Some(b.clone()),
        _ => return None,
    }
    match (is_float(a), is_float(b)) {
        (true, false) => return Some(a.clone()),
        (false, true) => return Some(b.clone()),
        // Formats of 8 bits are not promoted.
        (true, true) if element_size(a) == Some(1) || element_size(b) == Some(1) => return None,
        (true, true) if element_size(a) == element_size(b) => return Some(Arc::from("fp32")),
        _ => {}
    }
    let signed = |dtype: &str| dtype.starts_with('i') || is_float(dtype);
    let (wide, narrow) = if element_size(a) > element_size(b) { (a, b) } else { (b, a) };
    match (&**wide, &**narrow) {
        (wide, "i1") => Some(Arc::from(wide)),
        ("i1", narrow) => Some(Arc::from(narrow)),
        (to, from) if element_size(to) > element_size(from) && signed(to) => Some(wide.clone()),
        (to, from) if element_size(to) > element_size(from) && !signed(from) => Some(wide.clone()),
        _ => None,
    }
}

/// Whether a dtype, in Triton's spelling, is one of floats.
pub(crate) fn is_float(dtype: &str) -> bool {
    dtype.starts_with("fp") || dtype.starts_with("bf")
}

/// Whether a dtype is one of complex numbers, which Triton has not.
pub(crate) fn is_complex(dtype: &str) -> bool {
    dtype.starts_with("complex")
}

/// True for a dtype of integers, in Triton's spelling: truth values are none.
pub(crate) fn is_integer(dtype: &str) -> bool {
    dtype.starts_with(['i', 'u']) && dtype != "i1" && dtype != "u1"
}

/// Bytes of an element of a dtype, in Triton's spelling.
pub(crate) fn element_size(dtype: &str) -> Option<i128> {
    let bits: i128 = match dtype {
        "i1" | "u1" => 8,
        _ if dtype.starts_with("fp8") => 8,
        _ => dtype.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().ok()?,
    };
    Some(bits / 8)
}

/// Whether numbers of this type are likely to decide where a kernel reads or what it does: integers and
/// truth values.
pub(crate) fn may_lead(dtype: &str) -> bool {
    dtype.starts_with(['i', 'u'])
}

/// Whether an integer is one of a type's numbers.
pub(crate) fn has_integer(dtype: &str, number: i128) -> bool {
    match dtype.get(1..).and_then(|bits| bits.parse::<u32>().ok()) {
        Some(bits @ 1..=64) if dtype.starts_with('u') => (0..1 << bits).contains(&number),
        Some(bits @ 1..=64) => (-1 << (bits - 1)..1 << (bits - 1)).contains(&number),
        _ => false,
    }
}
