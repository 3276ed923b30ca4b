//! The libdevice functions that the executor knows.
//!
//! Functions of `f32` are computed in `f64` and rounded once. Names are libdevice's without their
//! prefix, the `f` of the `f32` forms left out.

use tile_compiler::ir::Scalar;

use super::frame::Slot;
use super::lanes::{LaneFn, map1, map2, map3};
use crate::number::{Bit, Float};

/// The kernel of a libdevice function for operands of the given types; `None` when the executor
/// does not know it.
pub(super) fn lane_fn(
    name: &str,
    operands: &[Slot],
    types: &[Scalar],
    result: Scalar,
) -> Option<LaneFn> {
    let name = name.strip_prefix("__nv_").unwrap_or(name);
    match (types, result) {
        ([Scalar::F32], Scalar::F32) => {
            let function = float_unary(name)?;
            Some(map1::<f32, f32>(operands[0], move |x| function(f64::from(x)) as f32))
        }
        ([Scalar::F64], Scalar::F64) => Some(map1::<f64, f64>(operands[0], float_unary(name)?)),
        ([Scalar::F32, Scalar::F32], Scalar::F32) => {
            if strip(name) == "nextafter" {
                return Some(map2::<f32, f32, f32>(operands[0], operands[1], libm::nextafterf));
            }
            let function = float_binary(name)?;
            Some(map2::<f32, f32, f32>(operands[0], operands[1], move |x, y| {
                function(f64::from(x), f64::from(y)) as f32
            }))
        }
        ([Scalar::F64, Scalar::F64], Scalar::F64) => {
            Some(map2::<f64, f64, f64>(operands[0], operands[1], float_binary(name)?))
        }
        ([Scalar::F32, Scalar::F32, Scalar::F32], Scalar::F32) => {
            float_ternary::<f32>(name, operands)
        }
        ([Scalar::F64, Scalar::F64, Scalar::F64], Scalar::F64) => {
            float_ternary::<f64>(name, operands)
        }
        ([Scalar::F32, Scalar::I32], Scalar::F32) => {
            let function = float_int(name)?;
            Some(map2::<f32, i32, f32>(operands[0], operands[1], move |x, n| {
                function(f64::from(x), n) as f32
            }))
        }
        ([Scalar::F64, Scalar::I32], Scalar::F64) => {
            Some(map2::<f64, i32, f64>(operands[0], operands[1], float_int(name)?))
        }
        ([Scalar::F32], _) => classify::<f32>(name, operands[0], result),
        ([Scalar::F64], _) => classify::<f64>(name, operands[0], result),
        _ => integer(name, operands, types, result),
    }
}

/// The name without the `f` that marks `f32` forms, such as `tanhf`.
fn strip(name: &str) -> &str {
    const WITHOUT_MARK: [&str; 3] = ["erf", "modf", "lrintf"];
    if WITHOUT_MARK.contains(&name) { name } else { name.strip_suffix('f').unwrap_or(name) }
}

fn float_unary(name: &str) -> Option<fn(f64) -> f64> {
    let name = strip(name);
    Some(match name.strip_prefix("fast_").map_or(name, strip) {
        "abs" | "fabs" => f64::abs,
        "acos" => libm::acos,
        "acosh" => libm::acosh,
        "asin" => libm::asin,
        "asinh" => libm::asinh,
        "atan" => libm::atan,
        "atanh" => libm::atanh,
        "cbrt" => libm::cbrt,
        "ceil" => libm::ceil,
        "cos" => libm::cos,
        "cosh" => libm::cosh,
        "cospi" => |x| libm::cos((x % 2.0) * std::f64::consts::PI),
        "erf" => libm::erf,
        "erfc" => libm::erfc,
        "erfcx" => |x| libm::exp(x * x) * libm::erfc(x),
        "exp" => libm::exp,
        "exp10" => libm::exp10,
        "exp2" => libm::exp2,
        "expm1" => libm::expm1,
        "floor" => libm::floor,
        "j0" => libm::j0,
        "j1" => libm::j1,
        "lgamma" => libm::lgamma,
        "log" => libm::log,
        "log10" => libm::log10,
        "log1p" => libm::log1p,
        "log2" => libm::log2,
        "logb" => |x| libm::floor(libm::log2(libm::fabs(x))),
        "nearbyint" | "rint" => f64::round_ties_even,
        "normcdf" => |x| 0.5 * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2),
        "rcbrt" => |x| 1.0 / libm::cbrt(x),
        "rcp_rn" | "rcp64h" => |x| 1.0 / x,
        "round" => libm::round,
        "rsqrt" | "rsqrt_rn" => |x| 1.0 / x.sqrt(),
        "saturate" => |x: f64| if x.is_nan() { 0.0 } else { x.clamp(0.0, 1.0) },
        "sin" => libm::sin,
        "sinh" => libm::sinh,
        "sinpi" => |x| libm::sin((x % 2.0) * std::f64::consts::PI),
        "sqrt" | "sqrt_rn" => f64::sqrt,
        "tan" => libm::tan,
        "tanh" => libm::tanh,
        "tgamma" => libm::tgamma,
        "trunc" => libm::trunc,
        "y0" => libm::y0,
        "y1" => libm::y1,
        _ => return None,
    })
}

fn float_binary(name: &str) -> Option<fn(f64, f64) -> f64> {
    let name = strip(name);
    Some(match name.strip_prefix("fast_").map_or(name, strip) {
        "add_rn" => |x, y| x + y,
        "atan2" => libm::atan2,
        "copysign" => libm::copysign,
        "div_rn" | "divide" => |x, y| x / y,
        "fdim" => libm::fdim,
        "fmod" => libm::fmod,
        "hypot" => libm::hypot,
        "max" | "fmax" => libm::fmax,
        "min" | "fmin" => libm::fmin,
        "mul_rn" => |x, y| x * y,
        "nextafter" => libm::nextafter,
        "pow" => libm::pow,
        "remainder" => libm::remainder,
        "rhypot" => |x, y| 1.0 / libm::hypot(x, y),
        "sub_rn" => |x, y| x - y,
        _ => return None,
    })
}

fn float_ternary<T: Float + 'static>(name: &str, operands: &[Slot]) -> Option<LaneFn> {
    let slots = [operands[0], operands[1], operands[2]];
    match strip(name) {
        "fma" | "fma_rn" => Some(map3::<T, T, T, T>(slots, T::fma)),
        "norm3d" => Some(map3::<T, T, T, T>(slots, |x, y, z| {
            let [x, y, z] = [x, y, z].map(T::to_f64);
            T::from_f64((x * x + y * y + z * z).sqrt())
        })),
        "rnorm3d" => Some(map3::<T, T, T, T>(slots, |x, y, z| {
            let [x, y, z] = [x, y, z].map(T::to_f64);
            T::from_f64(1.0 / (x * x + y * y + z * z).sqrt())
        })),
        _ => None,
    }
}

fn float_int(name: &str) -> Option<fn(f64, i32) -> f64> {
    Some(match strip(name) {
        "ldexp" | "scalbn" => libm::scalbn,
        "pow" | "powi" => |x, n| libm::pow(x, f64::from(n)),
        _ => return None,
    })
}

/// Functions from a float to an integer.
fn classify<T: Float + 'static>(name: &str, x: Slot, result: Scalar) -> Option<LaneFn> {
    let test: fn(f64) -> bool = match name {
        "isnan" | "isnanf" | "isnand" => f64::is_nan,
        "isinf" | "isinff" | "isinfd" => f64::is_infinite,
        "isfinite" | "isfinited" | "finitef" => f64::is_finite,
        "signbit" | "signbitf" | "signbitd" => |x| x.is_sign_negative(),
        _ => return to_integer::<T>(name, x, result),
    };
    match result {
        Scalar::I1 => Some(map1::<T, Bit>(x, move |x| test(x.to_f64()).into())),
        Scalar::I32 => Some(map1::<T, i32>(x, move |x| i32::from(test(x.to_f64())))),
        _ => None,
    }
}

fn to_integer<T: Float + 'static>(name: &str, x: Slot, result: Scalar) -> Option<LaneFn> {
    let rounding: fn(f64) -> f64 = match strip(name) {
        "llrint" | "float2int_rn" | "double2int_rn" | "float2ll_rn" | "double2ll_rn" => {
            f64::round_ties_even
        }
        "llround" => libm::round,
        "float2int_rd" | "double2int_rd" | "float2ll_rd" | "double2ll_rd" => libm::floor,
        "float2int_ru" | "double2int_ru" | "float2ll_ru" | "double2ll_ru" => libm::ceil,
        "float2int_rz" | "double2int_rz" | "float2ll_rz" | "double2ll_rz" => libm::trunc,
        "ilogb" => |x| libm::floor(libm::log2(libm::fabs(x))),
        "float_as_int" | "float_as_uint" => return Some(map1::<u32, u32>(x, |bits| bits)),
        "double_as_longlong" => return Some(map1::<u64, u64>(x, |bits| bits)),
        _ => return None,
    };
    match result {
        Scalar::I32 => Some(map1::<T, i32>(x, move |x| rounding(x.to_f64()) as i32)),
        Scalar::I64 => Some(map1::<T, i64>(x, move |x| rounding(x.to_f64()) as i64)),
        _ => None,
    }
}

fn integer(name: &str, operands: &[Slot], types: &[Scalar], result: Scalar) -> Option<LaneFn> {
    let a = *operands.first()?;
    let b = operands.get(1).copied().unwrap_or(a);
    Some(match (name, types, result) {
        ("abs", [Scalar::I32], _) => map1::<i32, i32>(a, i32::wrapping_abs),
        ("llabs" | "abs", [Scalar::I64], _) => map1::<i64, i64>(a, i64::wrapping_abs),
        ("clz", [Scalar::I32], _) => map1::<u32, i32>(a, |x| x.leading_zeros() as i32),
        ("clzll" | "clz", [Scalar::I64], _) => map1::<u64, i32>(a, |x| x.leading_zeros() as i32),
        ("popc", [Scalar::I32], _) => map1::<u32, i32>(a, |x| x.count_ones() as i32),
        ("popcll" | "popc", [Scalar::I64], _) => map1::<u64, i32>(a, |x| x.count_ones() as i32),
        ("brev", [Scalar::I32], _) => map1::<u32, u32>(a, u32::reverse_bits),
        ("brevll" | "brev", [Scalar::I64], _) => map1::<u64, u64>(a, u64::reverse_bits),
        ("ffs", [Scalar::I32], _) => {
            map1::<u32, i32>(a, |x| if x == 0 { 0 } else { x.trailing_zeros() as i32 + 1 })
        }
        ("ffsll" | "ffs", [Scalar::I64], _) => {
            map1::<u64, i32>(a, |x| if x == 0 { 0 } else { x.trailing_zeros() as i32 + 1 })
        }
        ("mulhi", [Scalar::I32, _], _) => {
            map2::<i32, i32, i32>(a, b, |x, y| ((i64::from(x) * i64::from(y)) >> 32) as i32)
        }
        ("umulhi", [Scalar::I32, _], _) => {
            map2::<u32, u32, u32>(a, b, |x, y| ((u64::from(x) * u64::from(y)) >> 32) as u32)
        }
        ("mul24", [Scalar::I32, _], _) => {
            map2::<i32, i32, i32>(a, b, |x, y| (x << 8 >> 8).wrapping_mul(y << 8 >> 8))
        }
        ("hadd", [Scalar::I32, _], _) => {
            map2::<i32, i32, i32>(a, b, |x, y| ((i64::from(x) + i64::from(y)) >> 1) as i32)
        }
        ("rhadd", [Scalar::I32, _], _) => {
            map2::<i32, i32, i32>(a, b, |x, y| ((i64::from(x) + i64::from(y) + 1) >> 1) as i32)
        }
        ("int_as_float" | "uint_as_float", [Scalar::I32], Scalar::F32)
        | ("longlong_as_double", [Scalar::I64], Scalar::F64) => {
            return bits_as_float(a, result);
        }
        ("int2float_rn", [Scalar::I32], _) => map1::<i32, f32>(a, |x| x as f32),
        ("uint2float_rn", [Scalar::I32], _) => map1::<u32, f32>(a, |x| x as f32),
        ("int2double_rn", [Scalar::I32], _) => map1::<i32, f64>(a, f64::from),
        ("uint2double_rn", [Scalar::I32], _) => map1::<u32, f64>(a, f64::from),
        ("ll2float_rn", [Scalar::I64], _) => map1::<i64, f32>(a, |x| x as f32),
        ("ll2double_rn", [Scalar::I64], _) => map1::<i64, f64>(a, |x| x as f64),
        ("ull2float_rn", [Scalar::I64], _) => map1::<u64, f32>(a, |x| x as f32),
        ("ull2double_rn", [Scalar::I64], _) => map1::<u64, f64>(a, |x| x as f64),
        _ => return None,
    })
}

fn bits_as_float(a: Slot, result: Scalar) -> Option<LaneFn> {
    match result {
        Scalar::F32 => Some(map1::<u32, u32>(a, |bits| bits)),
        Scalar::F64 => Some(map1::<u64, u64>(a, |bits| bits)),
        _ => None,
    }
}
