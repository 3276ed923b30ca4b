//! Arithmetic, conversions and functions of each element.

use super::*;

#[test]
fn integers_wrap_and_keep_their_signs() {
    let (a, b) = ([i32::MIN, -7, 7, 5, -1, 0, 1, 9], [-1, 2, -2, 0, 40, 33, 31, 3]);
    let unsigned = |values: &[i32]| values.iter().map(|&value| value as u32).collect::<Vec<_>>();
    let run = |op| unsigned(&binary("i32", op, &a, &b));
    assert_eq!(run("add"), unsigned(&[i32::MAX, -5, 5, 5, 39, 33, 32, 12]));
    assert_eq!(run("mul"), unsigned(&[i32::MIN, -14, -14, 0, -40, 0, 31, 27]));
    assert_eq!(run("div_s"), unsigned(&[i32::MIN, -3, -3, -1, 0, 0, 0, 3]));
    assert_eq!(run("rem_s"), unsigned(&[0, -1, 1, 5, -1, 0, 1, 0]));
    assert_eq!(run("shl"), unsigned(&[0, -28, 0, 5, 0, 0, i32::MIN, 72]));
    assert_eq!(run("shr_s"), unsigned(&[-1, -2, 0, 5, -1, 0, 0, 1]));
    assert_eq!(run("shr_u"), unsigned(&[0, 0x3fff_fffe, 0, 5, 0, 0, 0, 1]));
    assert_eq!(run("min_u"), unsigned(&[i32::MIN, 2, 7, 0, 40, 0, 1, 3]));
    assert_eq!(run("max_s"), unsigned(&[-1, 2, 7, 5, 40, 33, 31, 9]));
    assert_eq!(run("mul_high_u"), unsigned(&[0x7fff_ffff, 1, 6, 0, 39, 0, 0, 0]));
    assert_eq!(convert::<i8, i8>("i8", "i8", "abs_s", &[-128, -1, 0, 5]), [-128, 1, 0, 5]);
}

#[test]
fn booleans_are_one_bit() {
    let (a, b) = ([0u8, 0, 1, 1], [0u8, 1, 0, 1]);
    assert_eq!(binary("i1", "add", &a, &b), [0, 1, 1, 0]);
    assert_eq!(binary("i1", "or", &a, &b), [0, 1, 1, 1]);
    assert_eq!(binary("i1", "max_u", &a, &b), [0, 1, 1, 1]);
    assert_eq!(convert::<u8, i32>("i1", "i32", "ext_u", &a), [0, 0, 1, 1]);
    assert_eq!(convert::<u8, i32>("i1", "i32", "ext_s", &a), [0, 0, -1, -1]);
    // Any byte but 0 in memory is true.
    assert_eq!(convert::<u8, u8>("i1", "i1", "bitcast", &[0, 1, 2, 255]), [0, 1, 1, 1]);
}

#[test]
fn narrow_floats_round_once_per_operation() {
    let half = |values: &[f32]| {
        values.iter().map(|&value| half::f16::from_f32(value).to_bits()).collect::<Vec<u16>>()
    };
    let (a, b) = (half(&[1.0, 2048.0, 65504.0, 0.1]), half(&[2f32.powi(-11), 1.0, 65504.0, 3.0]));
    // Ties go to even, and sums beyond the largest number are infinite.
    assert_eq!(binary("f16", "fadd", &a, &b), half(&[1.0, 2048.0, f32::INFINITY, 3.1]));
    let tenth = half::f16::from_f32(0.1).to_f32();
    assert_eq!(binary("f16", "fmul", &a, &b)[3], half(&[tenth * 3.0])[0]);
    let brain = |values: &[f32]| {
        values.iter().map(|&value| half::bf16::from_f32(value).to_bits()).collect::<Vec<u16>>()
    };
    let (a, b) = (brain(&[256.0, 1.0, 3.0, -0.5]), brain(&[1.0, 3.0, 0.5, 0.25]));
    assert_eq!(binary("bf16", "fadd", &a, &b), brain(&[256.0, 4.0, 3.5, -0.25]));
    assert_eq!(binary("bf16", "fdiv", &a, &b), brain(&[256.0, 1.0 / 3.0, 6.0, -2.0]));
}

#[test]
fn extremes_treat_nan_as_asked() {
    let (a, b) = ([f32::NAN, 1.0, 2.0, -0.0], [1.0, f32::NAN, 3.0, 0.0]);
    let run = |op: &str| binary::<f32>("f32", op, &a, &b);
    assert_eq!(run("fmin {propagate=false}"), [1.0, 1.0, 2.0, -0.0]);
    assert_eq!(run("fmax {propagate=false}"), [1.0, 1.0, 3.0, 0.0]);
    assert_eq!(run("fmax {propagate=true}").map_nan(), [true, true, false, false]);
    assert!(run("fmin {propagate=false}")[3].is_sign_negative());
}

trait MapNan {
    fn map_nan(&self) -> Vec<bool>;
}

impl MapNan for Vec<f32> {
    fn map_nan(&self) -> Vec<bool> {
        self.iter().map(|value| value.is_nan()).collect()
    }
}

#[test]
fn conversions_saturate_and_truncate() {
    let floats = [1.9f32, -1.9, 300.0, -300.0, f32::NAN, f32::INFINITY, 3e9, -0.5];
    assert_eq!(
        convert::<f32, i8>("f32", "i8", "f_to_s", &floats),
        [1, -1, 127, -128, 0, 127, 127, 0]
    );
    assert_eq!(
        convert::<f32, u32>("f32", "i32", "f_to_u", &floats),
        [1, 0, 300, 0, 0, u32::MAX, 3_000_000_000, 0]
    );
    assert_eq!(convert::<i32, i8>("i32", "i8", "trunc", &[300, -1, 128, 0]), [44, -1, -128, 0]);
    assert_eq!(convert::<i8, i64>("i8", "i64", "ext_s", &[-1, 127]), [-1, 127]);
    assert_eq!(convert::<i8, i64>("i8", "i64", "ext_u", &[-1, 127]), [255, 127]);
    assert_eq!(
        convert::<i32, f32>("i32", "f32", "s_to_f", &[-1, 16_777_217]),
        [-1.0, 16_777_216.0]
    );
    assert_eq!(convert::<i32, f32>("i32", "f32", "u_to_f", &[-1, 1]), [4_294_967_296.0, 1.0]);
    let eighths =
        convert::<f32, u8>("f32", "f8e4nv", "ftrunc {mode=rtne}", &[1.0, 1.0625, 1e4, -0.3]);
    assert_eq!(eighths, [0x38, 0x38, 0x7e, 0xaa]);
    assert_eq!(convert::<u8, f32>("f8e4nv", "f32", "fext", &eighths), [1.0, 1.0, 448.0, -0.3125]);
    let halves = [1.0f32 + 1.5 / 1024.0, 1e6];
    let nearest = convert::<f32, u16>("f32", "f16", "ftrunc {mode=rtne}", &halves);
    let zero = convert::<f32, u16>("f32", "f16", "ftrunc {mode=rtz}", &halves);
    assert_eq!((nearest, zero), (vec![0x3c02, 0x7c00], vec![0x3c01, 0x7bff]));
}

#[test]
fn functions_are_those_of_the_library() {
    let x = [0.5f32, 2.0, -1.0, 0.0];
    let exact = |f: fn(f64) -> f64| x.map(|x| f(f64::from(x)) as f32);
    assert_eq!(convert::<f32, f32>("f32", "f32", "exp", &x), exact(f64::exp));
    assert_eq!(convert::<f32, f32>("f32", "f32", "sin", &x), exact(f64::sin));
    assert_eq!(convert::<f32, f32>("f32", "f32", "floor", &x), [0.0, 2.0, -1.0, 0.0]);
    assert_eq!(convert::<f32, f32>("f32", "f32", "rsqrt", &x)[1], 0.707_106_77);
    assert_eq!(
        convert::<f32, f32>("f32", "f32", r#"extern_math {symbol="tanh"}"#, &x),
        exact(f64::tanh)
    );
    let fused = apply::<f32, f32>(
        ("f32", "f32"),
        &[&[1.0 + f32::EPSILON; 2], &[1.0 + f32::EPSILON; 2], &[-1.0 - 2.0 * f32::EPSILON; 2]],
        "%r = fma %a, %b, %c : tile<Nxf32>",
    );
    assert_eq!(fused, [f32::EPSILON * f32::EPSILON; 2]);
}

#[test]
fn comparisons_and_choices() {
    let (a, b) = ([-1, 1, 2, 3], [1, 1, 1, -3]);
    let choose = |predicate: &str| {
        apply::<i32, i32>(
            ("i32", "i32"),
            &[&a, &b],
            &format!(
                "%c = cmp %a, %b {{predicate={predicate}}} : tile<Nxi1>
                 %r = select %c, %a, %b : tile<Nxi32>"
            ),
        )
    };
    assert_eq!(choose("slt"), [-1, 1, 1, -3]);
    assert_eq!(choose("ult"), [1, 1, 1, 3]);
    assert_eq!(choose("ne"), [-1, 1, 2, 3]);
    let nan = apply::<f32, u8>(
        ("f32", "i1"),
        &[&[f32::NAN, 1.0], &[1.0, 1.0]],
        "%r = fcmp %a, %b {predicate=une} : tile<Nxi1>",
    );
    assert_eq!(nan, [1, 0]);
}
