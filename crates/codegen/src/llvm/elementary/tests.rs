//! Accuracy of the elementary functions against double precision.

use super::function::Elementary;
use super::machine::Machine;

/// Computes.
struct Host;

impl Machine for Host {
    type F = f32;
    type I = i32;
    type L = u64;
    type B = bool;

    fn f(&mut self, value: f32) -> f32 {
        value
    }
    fn i(&mut self, value: i32) -> i32 {
        value
    }
    fn add(&mut self, a: f32, b: f32) -> f32 {
        a + b
    }
    fn sub(&mut self, a: f32, b: f32) -> f32 {
        a - b
    }
    fn mul(&mut self, a: f32, b: f32) -> f32 {
        a * b
    }
    fn div(&mut self, a: f32, b: f32) -> f32 {
        a / b
    }
    fn reciprocal(&mut self, a: f32) -> f32 {
        1.0 / a
    }
    fn fma(&mut self, a: f32, b: f32, c: f32) -> f32 {
        a.mul_add(b, c)
    }
    fn neg(&mut self, a: f32) -> f32 {
        -a
    }
    fn abs(&mut self, a: f32) -> f32 {
        a.abs()
    }
    fn copysign(&mut self, a: f32, b: f32) -> f32 {
        a.copysign(b)
    }
    fn min(&mut self, a: f32, b: f32) -> f32 {
        a.min(b)
    }
    fn max(&mut self, a: f32, b: f32) -> f32 {
        a.max(b)
    }
    fn trunc(&mut self, a: f32) -> f32 {
        a.trunc()
    }
    fn exp2(&mut self, a: f32) -> f32 {
        let power = f64::from(a).exp2() as f32;
        if power.is_subnormal() { 0.0 } else { power }
    }
    fn less(&mut self, a: f32, b: f32) -> bool {
        a < b
    }
    fn equal(&mut self, a: f32, b: f32) -> bool {
        a == b
    }
    fn differ(&mut self, a: f32, b: f32) -> bool {
        a.partial_cmp(&b).is_some_and(std::cmp::Ordering::is_ne)
    }
    fn pick(&mut self, condition: bool, yes: f32, no: f32) -> f32 {
        if condition { yes } else { no }
    }
    fn bits(&mut self, a: f32) -> i32 {
        a.to_bits() as i32
    }
    fn float_of_bits(&mut self, a: i32) -> f32 {
        f32::from_bits(a as u32)
    }
    fn to_float(&mut self, a: i32) -> f32 {
        a as f32
    }
    fn iadd(&mut self, a: i32, b: i32) -> i32 {
        a.wrapping_add(b)
    }
    fn isub(&mut self, a: i32, b: i32) -> i32 {
        a.wrapping_sub(b)
    }
    fn and(&mut self, a: i32, b: i32) -> i32 {
        a & b
    }
    fn or(&mut self, a: i32, b: i32) -> i32 {
        a | b
    }
    fn shl(&mut self, a: i32, by: i32) -> i32 {
        a << by
    }
    fn shr(&mut self, a: i32, by: i32) -> i32 {
        a >> by
    }
    fn below(&mut self, a: i32, b: i32) -> bool {
        (a as u32) < b as u32
    }
    fn iequal(&mut self, a: i32, b: i32) -> bool {
        a == b
    }
    fn ipick(&mut self, condition: bool, yes: i32, no: i32) -> i32 {
        if condition { yes } else { no }
    }
    fn long(&mut self, a: i32) -> u64 {
        u64::from(a as u32)
    }
    fn low(&mut self, a: u64) -> i32 {
        a as i32
    }
    fn ladd(&mut self, a: u64, b: u64) -> u64 {
        a.wrapping_add(b)
    }
    fn lmul(&mut self, a: u64, b: u64) -> u64 {
        a.wrapping_mul(b)
    }
    fn lor(&mut self, a: u64, b: u64) -> u64 {
        a | b
    }
    fn lshl(&mut self, a: u64, by: u64) -> u64 {
        a << by
    }
    fn lshr(&mut self, a: u64, by: u64) -> u64 {
        a >> by
    }
    fn long_to_float(&mut self, a: u64) -> f32 {
        (a as i64) as f32
    }
    fn rarely(
        &mut self,
        condition: bool,
        usual: (f32, i32),
        rare: impl FnOnce(&mut Host) -> (f32, i32),
    ) -> (f32, i32) {
        if condition { rare(self) } else { usual }
    }
}

fn exact(function: Elementary, args: &[f64]) -> f64 {
    let x = args[0];
    match function {
        Elementary::Cos => libm::cos(x),
        Elementary::Erf => libm::erf(x),
        Elementary::Exp => libm::exp(x),
        Elementary::Expm1 => libm::expm1(x),
        Elementary::Fmod => libm::fmod(x, args[1]),
        Elementary::Log => libm::log(x),
        Elementary::Log10 => libm::log10(x),
        Elementary::Log1p => libm::log1p(x),
        Elementary::Log2 => libm::log2(x),
        Elementary::Pow => libm::pow(x, args[1]),
        Elementary::Sin => libm::sin(x),
        Elementary::Tan => libm::tan(x),
        Elementary::Tanh => libm::tanh(x),
    }
}

/// The distance in units in the last place of the nearest f32; 0 for the same special value.
fn error(function: Elementary, args: &[f32]) -> f64 {
    let wide: Vec<f64> = args.iter().map(|&arg| arg.into()).collect();
    let (got, wanted) = (function.run(&mut Host, args), exact(function, &wide));
    let nearest = wanted as f32;
    if got == nearest || (got.is_nan() && nearest.is_nan()) {
        return if nearest.is_finite() {
            (f64::from(got) - wanted).abs() / ulp(nearest)
        } else {
            0.0
        };
    }
    if !got.is_finite() || !nearest.is_finite() {
        // The neighbor of infinity is as good as one unit away.
        let bits = |value: f32| i64::from(value.abs().to_bits());
        return if got.is_nan() || nearest.is_nan() {
            f64::INFINITY
        } else {
            (bits(got) - bits(nearest)).abs() as f64
        };
    }
    (f64::from(got) - wanted).abs() / ulp(nearest)
}

fn ulp(value: f32) -> f64 {
    let exponent = (value.abs().to_bits() >> 23).max(1) as i32;
    libm::ldexp(1.0, exponent - 127 - 23)
}

/// Every `stride`-th f32, and values that functions treat apart.
fn samples(stride: usize) -> impl Iterator<Item = f32> {
    let special = [0.0, 1.0, f32::MIN_POSITIVE, f32::MAX, f32::INFINITY, f32::NAN, 1e-45, 0.5, 2.0];
    let special = special.into_iter().flat_map(|value: f32| [value, -value]);
    special.chain((0..=u32::MAX).step_by(stride).map(f32::from_bits))
}

/// The greatest error allowed, in units in the last place. The CUDA programming guide states 1 to 4
/// for the same functions of libdevice.
fn bound(function: Elementary) -> f64 {
    match function {
        Elementary::Log | Elementary::Log2 | Elementary::Exp => 1.0,
        Elementary::Sin | Elementary::Cos | Elementary::Erf | Elementary::Tanh => 2.25,
        Elementary::Log1p | Elementary::Expm1 => 1.5,
        Elementary::Log10 => 2.0,
        Elementary::Tan | Elementary::Pow => 4.0,
        Elementary::Fmod => 0.0,
    }
}

#[test]
fn functions_of_one_argument_are_accurate_everywhere() {
    for &function in Elementary::ALL.iter().filter(|function| function.arity() == 1) {
        let worst = samples(20_011)
            .map(|x| (error(function, &[x]), x))
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .unwrap();
        assert!(
            worst.0 <= bound(function),
            "{} is off by {} units at {:e}",
            function.name(),
            worst.0,
            worst.1
        );
    }
}

#[test]
fn powers_are_accurate_and_follow_the_rules_for_special_values() {
    let function = Elementary::Pow;
    let exponents = [0.0, -0.0, 1.0, -1.0, 2.0, 3.0, -3.0, 0.5, 1.5, 1e10, 1e-3, 37.25];
    let special = [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MAX];
    for x in samples(1_000_003) {
        for y in exponents.into_iter().chain(special) {
            let error = error(function, &[x, y]);
            assert!(error <= bound(function), "pow({x:e}, {y:e}) is off by {error}");
        }
    }
    let near_one = (0..20_000).map(|at| 0.9 + at as f32 * 1e-5);
    for x in near_one {
        for y in [100.0, -250.5, 777.0, 12_345.6] {
            let error = error(function, &[x, y]);
            assert!(error <= bound(function), "pow({x:e}, {y:e}) is off by {error}");
        }
    }
}

#[test]
fn remainders_are_exact_for_quotients_below_two_to_the_23() {
    for x in [0.0f32, -0.0, 5.5, -7.25, 1e-40, 8_000_000.0, -123_456.7, f32::NAN, f32::INFINITY] {
        for y in [1.0f32, -1.5, 3.0, 7.1, f32::INFINITY, f32::NAN, 0.0] {
            assert_eq!(error(Elementary::Fmod, &[x, y]), 0.0, "fmod({x:e}, {y:e})");
        }
    }
}
