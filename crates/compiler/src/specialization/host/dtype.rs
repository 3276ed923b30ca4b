//! Dtypes by the names that host code has for them.

use crate::hir::Name;

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

/// Signature spellings of the types that a number or an element can have.
pub(in crate::specialization) const SPELLINGS: &[&str] = &[
    "i1", "u1", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "fp8e4nv", "fp8e4b8",
    "fp8e4b15", "fp8e5", "fp8e5b16", "fp16", "bf16", "fp32", "fp64",
];

/// The dtype called `name`, by either spelling.
pub(crate) fn named_dtype(name: &str) -> Option<&'static str> {
    let by_name = DTYPES.iter().find(|(known, _)| *known == name).map(|(_, spelling)| *spelling);
    by_name.or_else(|| SPELLINGS.iter().copied().find(|known| *known == name))
}

/// The dtype that the member `path` of the triton package is.
pub(in crate::specialization) fn language_dtype(path: &str) -> Option<&'static str> {
    named_dtype(path.strip_prefix("language.")?)
}

/// The dtype that a dotted path outside of the project is: `torch.float16`.
pub(super) fn torch_dtype(path: &[Name]) -> Option<&'static str> {
    match path {
        [torch, name] if &**torch == "torch" => named_dtype(name),
        _ => None,
    }
}

/// Whether a dtype, in Triton's spelling, is one of floats.
pub(super) fn is_float(dtype: &str) -> bool {
    dtype.starts_with("fp") || dtype.starts_with("bf")
}

/// Bytes of an element of a dtype, in Triton's spelling.
pub(super) fn element_size(dtype: &str) -> Option<i128> {
    let bits: i128 = match dtype {
        "i1" | "u1" => 8,
        _ if dtype.starts_with("fp8") => 8,
        _ => dtype.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().ok()?,
    };
    Some(bits / 8)
}
