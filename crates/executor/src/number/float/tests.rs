//! Conversions, against references of their own: the table of a format's values, searched for
//! the nearest, and the `half` crate.

use super::*;

/// All finite magnitudes of an 8-bit format by its definition, with their bits.
fn magnitudes(exponent_bits: u32, bias: i32, last: u8) -> Vec<(f64, u8)> {
    let mantissa_bits = 7 - exponent_bits;
    (0..=last)
        .map(|bits| {
            let exponent = i32::from(bits >> mantissa_bits);
            let mantissa = f64::from(bits & ((1 << mantissa_bits) - 1));
            let fraction = mantissa / f64::from(1 << mantissa_bits);
            let value = match exponent {
                0 => fraction * 2f64.powi(1 - bias),
                _ => (1.0 + fraction) * 2f64.powi(exponent - bias),
            };
            (value, bits)
        })
        .collect()
}

/// The bits of the nearest magnitude, ties to even bits.
fn nearest(table: &[(f64, u8)], value: f64) -> u8 {
    let distance = |entry: &&(f64, u8)| (entry.0 - value).abs();
    let best = table
        .iter()
        .min_by(|a, b| distance(a).total_cmp(&distance(b)).then((a.1 & 1).cmp(&(b.1 & 1))));
    best.unwrap().1
}

/// Values on, between and around all values of a format.
fn probes(table: &[(f64, u8)]) -> Vec<f64> {
    let mut probes = vec![1e6, 1e-30];
    for pair in table.windows(2) {
        let middle = (pair[0].0 + pair[1].0) / 2.0;
        let nudge = middle * 1e-7;
        probes.extend([pair[0].0, middle, middle - nudge, middle + nudge, pair[1].0]);
    }
    probes
}

fn check_small<T: Float<Wide = f32>>(
    table: &[(f64, u8)],
    from_bits: fn(u8) -> T,
    to_bits: fn(T) -> u8,
) {
    for &(value, bits) in table {
        assert_eq!(from_bits(bits).to_f64(), value, "{bits:#x}");
        assert_eq!(from_bits(bits | 0x80).to_f64(), -value, "{bits:#x}");
    }
    for probe in probes(table) {
        let expected = nearest(table, probe);
        assert_eq!(to_bits(T::from_f64(probe)), expected, "{probe:e}");
        assert_eq!(to_bits(T::from_f64(-probe)), expected | 0x80, "-{probe:e}");
        let below = table.iter().rev().find(|(value, _)| *value <= probe).unwrap().1;
        assert_eq!(to_bits(T::toward_zero(probe)), below, "{probe:e} toward zero");
    }
}

#[test]
fn e4m3_is_its_definition() {
    check_small(&magnitudes(4, 7, 0x7e), E4M3, |value| value.0);
    assert!(E4M3(0x7f).to_f64().is_nan());
    assert_eq!(E4M3::narrow(f32::NAN), E4M3(0x7f));
    assert_eq!(E4M3::narrow(f32::NEG_INFINITY).to_f64(), -448.0);
}

#[test]
fn e5m2_is_its_definition() {
    check_small(&magnitudes(5, 15, 0x7b), E5M2, |value| value.0);
    assert_eq!(E5M2(0x7c).to_f64(), f64::INFINITY);
    assert!(E5M2(0x7d).to_f64().is_nan());
    assert_eq!(E5M2::narrow(f32::INFINITY).to_f64(), 57344.0);
}

#[test]
fn e4b15_rounds_as_triton_does() {
    let table = magnitudes(4, 15, 0x7f);
    for &(value, bits) in &table {
        assert_eq!(E4B15(bits).to_f64(), value);
        assert_eq!(E4B15::from_f64(value), E4B15(bits));
    }
    for pair in table.windows(2) {
        let middle = (pair[0].0 + pair[1].0) / 2.0;
        assert_eq!(E4B15::from_f64(middle), E4B15(pair[1].1), "{middle:e}");
        assert_eq!(E4B15::toward_zero(middle), E4B15(pair[0].1), "{middle:e}");
    }
    assert_eq!(E4B15::from_f64(100.0).to_f64(), 1.875);
}

/// `f32` values around every `f16` or `bf16` value: itself, its neighbors, and half-way points.
fn around(value: f32) -> [f32; 5] {
    let bits = value.to_bits();
    [0, 1, 0x1000, 0x8000, 0xffff].map(|step| f32::from_bits(bits.wrapping_add(step)))
}

#[test]
fn halves_agree_with_the_half_crate() {
    for bits in 0..=u16::MAX {
        let (ours, theirs) = (F16(bits).widen(), half::f16::from_bits(bits).to_f32_const());
        assert!(ours == theirs || (ours.is_nan() && theirs.is_nan()), "{bits:#x}");
        for value in around(ours).into_iter().filter(|value| !value.is_nan()) {
            let expected = half::f16::from_f32_const(value).to_bits();
            assert_eq!(F16::narrow(value).0, expected, "{value:e}");
            assert_eq!(F16::from_f64(f64::from(value)).0, expected, "{value:e} from f64");
        }
    }
}

#[test]
fn brain_floats_agree_with_the_half_crate() {
    for bits in 0..=u16::MAX {
        let (ours, theirs) = (BF16(bits).widen(), half::bf16::from_bits(bits).to_f32_const());
        assert!(ours == theirs || (ours.is_nan() && theirs.is_nan()), "{bits:#x}");
        for value in around(ours).into_iter().filter(|value| !value.is_nan()) {
            let expected = half::bf16::from_f32_const(value).to_bits();
            assert_eq!(BF16::narrow(value).0, expected, "{value:e}");
            assert_eq!(BF16::from_f64(f64::from(value)).0, expected, "{value:e} from f64");
        }
    }
}

#[test]
fn toward_zero_never_grows() {
    for bits in (0..=u16::MAX).filter(|&bits| F16(bits).widen().is_finite()) {
        let value = F16(bits).to_f64();
        assert_eq!(F16::toward_zero(value), F16(bits));
        let inward = f64::from_bits(value.to_bits().wrapping_sub(1));
        if value != 0.0 {
            assert_eq!(F16::toward_zero(inward), F16(bits - 1), "{inward:e}");
        }
    }
    assert_eq!(F16::toward_zero(1e9).to_f64(), 65504.0);
    assert_eq!(F16::toward_zero(f64::INFINITY).to_f64(), f64::INFINITY);
    assert_eq!(f32::toward_zero(1e300), f32::MAX);
}

#[test]
fn doubles_are_rounded_once() {
    // Just above the middle of 1 and the next f16; f32 would first round it to the middle.
    let above = 1.0 + f64::from(2f32.powi(-11)) + 2f64.powi(-40);
    assert_eq!(F16::from_f64(above).to_f64(), 1.0 + 2f64.powi(-10));
    assert_eq!(F16::narrow(above as f32).to_f64(), 1.0);
    assert_eq!(BF16::from_int((1 << 40) + (1 << 32) + 1).to_f64(), 2f64.powi(40) + 2f64.powi(33));
}

/// Between each value of a 16-bit format and the next: the middle goes to the even one, and the
/// doubles beside it to the nearer one.
fn check_middles<T: Float>(from_bits: fn(u16) -> T, to_bits: fn(T) -> u16, largest: u16) {
    for bits in 0..largest {
        let [low, high] = [bits, bits + 1].map(|bits| from_bits(bits).to_f64());
        let middle = (low + high) / 2.0;
        let even = bits + (bits & 1);
        assert_eq!(to_bits(T::from_f64(middle)), even, "{middle:e}");
        assert_eq!(to_bits(T::from_f64(-middle)), even | 0x8000, "-{middle:e}");
        assert_eq!(to_bits(T::from_f64(middle.next_up())), bits + 1, "above {middle:e}");
        assert_eq!(to_bits(T::from_f64(middle.next_down())), bits, "below {middle:e}");
        assert_eq!(to_bits(T::toward_zero(high.next_down())), bits, "below {high:e} toward zero");
    }
}

#[test]
fn doubles_between_halves_go_to_the_nearer_one() {
    check_middles(F16, |value| value.0, 0x7bff);
    check_middles(BF16, |value| value.0, 0x7f7f);
    assert_eq!(F16::from_f64(65520.0).to_f64(), f64::INFINITY);
    assert_eq!(F16::from_f64(65520f64.next_down()).to_f64(), 65504.0);
}

#[test]
fn products_and_sums_fuse_exactly() {
    // Where two roundings differ from one: the product's low bits decide.
    let (a, b, c) = (1.0 + f32::EPSILON, 1.0 + f32::EPSILON, -1.0 - 2.0 * f32::EPSILON);
    assert_eq!(f32::fma(a, b, c), f32::EPSILON * f32::EPSILON);
    let mut state = 1u32;
    let mut random = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f32::from_bits((state >> 3) & 0x83ff_ffff | 0x3c00_0000)
    };
    for _ in 0..10_000 {
        let (a, b, c) = (random(), random(), random());
        assert_eq!(f32::fma(a, b, c), libm::fmaf(a, b, c), "{a:e} {b:e} {c:e}");
    }
}

#[test]
fn single_precision_functions_are_nearly_exact() {
    for step in -8_800..8_800 {
        let x = step as f32 / 100.0;
        let ulps = |ours: f32, exact: f64| {
            let expected = exact as f32;
            i64::from(ours.to_bits() as i32).abs_diff(i64::from(expected.to_bits() as i32))
        };
        assert!(ulps(Real::exp(x), libm::exp(f64::from(x))) <= 1, "exp {x}");
        assert!(ulps(Real::exp2(x), libm::exp2(f64::from(x))) <= 1, "exp2 {x}");
    }
    assert_eq!(Real::exp(f32::NEG_INFINITY), 0.0);
    assert_eq!(Real::exp(f32::INFINITY), f32::INFINITY);
    assert!(Real::exp(f32::NAN).is_nan());
    assert_eq!(Real::exp(0.0f32), 1.0);
    assert_eq!(Real::exp2(-149.0f32), f32::from_bits(1));
}

#[test]
fn extremes_know_nan_and_signed_zero() {
    assert_eq!(Real::min_number(f32::NAN, 1.0), 1.0);
    assert_eq!(Real::min_number(1.0, f32::NAN), 1.0);
    assert!(Real::max_propagate(f32::NAN, 1.0).is_nan());
    assert!(Real::max_propagate(1.0, f32::NAN).is_nan());
    assert!(Real::min_number(0.0f32, -0.0).is_sign_negative());
    assert!(Real::max_number(-0.0f32, 0.0).is_sign_positive());
}
