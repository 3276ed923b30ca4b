//! The CPU executor on kernels written as tile IR.

use expect_test::expect;
use tile_compiler::ir::{self, Scalar};
use tile_runner::cpu::{Arg, BufferId, Buffers, FindingKind, Kernel, Options, RunError, RunReport};

/// A kernel from its parameters (`NAME: TYPE`, comma-separated) and the instructions of its body.
/// Values have any names; constant attributes that tests do not care for may be left out:
/// `LOAD`, `STORE` stand for the usual hints and `LOOP` for a plain loop.
fn kernel(params: &str, body: &str) -> Kernel {
    let func = parse(params, body);
    Kernel::compile(&func).unwrap_or_else(|error| panic!("{error}"))
}

fn parse(params: &str, body: &str) -> ir::Function {
    let mut text =
        "kernel @k level=tile num_warps=4 num_stages=3 num_ctas=1 fp_fusion=true {\n".to_owned();
    for param in params.split(',').map(str::trim).filter(|param| !param.is_empty()) {
        let (name, ty) = param.split_once(": ").expect("a parameter is `NAME: TYPE`");
        text += &format!(
            "  param %{name} : {ty} {{name=\"{name}\", signature=\"\", divisibility=1}}\n"
        );
    }
    for (at, line) in body.lines().map(str::trim).filter(|line| !line.is_empty()).enumerate() {
        let plain =
            !line.ends_with(['{', '|', '}']) || line.ends_with("LOAD") || !line.contains("@1 {");
        let braces = line.starts_with('}') || line.contains("@1 {");
        let loc = if plain && !braces { format!(" @{}", at + 1) } else { String::new() };
        text += &format!("  {line}{loc}\n");
    }
    text += "  return @0\n}\n";
    for line in 1..=body.lines().count() {
        text += &format!("loc @{line} = 0:0..1 {line}:1 \"k\"\n");
    }
    let text = text
        .replace("LOAD", "{cache=default, evict=normal, volatile=false}")
        .replace("STORE", "{cache=default, evict=normal}")
        .replace("LOOP", "{stages=0, unroll=0, flatten=false, warp_specialize=false}");
    let text = number_values(&text);
    let func = ir::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    if let Err(errors) = ir::verify(&func) {
        panic!("{errors:?}\n{text}");
    }
    func
}

/// Numbers named values in the order in which they appear.
fn number_values(text: &str) -> String {
    let mut names: Vec<&str> = Vec::new();
    let mut parts = text.split('%');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(part.len());
        let (name, rest) = part.split_at(end);
        let number = names.iter().position(|known| *known == name).unwrap_or_else(|| {
            names.push(name);
            names.len() - 1
        });
        out += &format!("%{number}{rest}");
    }
    out
}

fn bytes<T: bytemuck::Pod>(values: &[T]) -> Vec<u8> {
    bytemuck::cast_slice(values).to_vec()
}

fn read<T: bytemuck::Pod>(buffers: &Buffers, id: BufferId) -> Vec<T> {
    buffers.bytes(id).chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect()
}

fn launch(
    kernel: &Kernel,
    buffers: &mut Buffers,
    args: &[Arg],
    grid: u32,
    options: &Options,
) -> RunReport {
    kernel.launch(buffers, args, [grid, 1, 1], options).expect("the launch runs to its end")
}

/// Applies instructions to tiles: parameters `a`, `b`, ... are loaded from `inputs` as tiles of
/// type `T`, and the value `r` of type `R` is stored. The instructions may use `N` for the extent.
fn apply<T: bytemuck::Pod, R: bytemuck::Pod>(
    (from, to): (&str, &str),
    inputs: &[&[T]],
    body: &str,
) -> Vec<R> {
    let count = inputs[0].len();
    let names = ["a", "b", "c"];
    let mut params = String::new();
    let mut text = format!("%i = arange {{start=0, end={count}}} : tile<{count}xi32>\n");
    let mut buffers = Buffers::new();
    let mut args = Vec::new();
    let scalar = |name: &str| Scalar::from_name(name).expect("a scalar type");
    for (name, input) in names.iter().zip(inputs) {
        params += &format!("p{name}: ptr<{from}>, ");
        text += &format!(
            "%s{name} = splat %p{name} : tile<{count}xptr<{from}>>
             %q{name} = ptr_add %s{name}, %i : tile<{count}xptr<{from}>>
             %{name} = load %q{name} LOAD : tile<{count}x{from}>\n"
        );
        let id = buffers.add(*name, scalar(from), &bytes(input));
        args.push(Arg::Pointer(buffers.address(id)));
    }
    params += &format!("pr: ptr<{to}>");
    let size = size_of::<R>();
    let out = buffers.add("r", scalar(to), &vec![0xcc; count * size]);
    args.push(Arg::Pointer(buffers.address(out)));
    text += &body.replace('N', &count.to_string());
    text += &format!(
        "\n%sr = splat %pr : tile<{count}xptr<{to}>>
         %qr = ptr_add %sr, %i : tile<{count}xptr<{to}>>
         store %qr, %r STORE\n"
    );
    let kernel = kernel(&params, &text);
    let report = launch(&kernel, &mut buffers, &args, 1, &Options::default());
    assert_eq!(report.findings, []);
    read(&buffers, out)
}

/// Applies one operation to two operands.
fn binary<T: bytemuck::Pod>(ty: &str, op: &str, a: &[T], b: &[T]) -> Vec<T> {
    let (name, attrs) = op.split_once(' ').unwrap_or((op, ""));
    apply((ty, ty), &[a, b], &format!("%r = {name} %a, %b {attrs} : tile<Nx{ty}>"))
}

fn convert<T: bytemuck::Pod, R: bytemuck::Pod>(from: &str, to: &str, op: &str, a: &[T]) -> Vec<R> {
    let (name, attrs) = op.split_once(' ').unwrap_or((op, ""));
    apply((from, to), &[a], &format!("%r = {name} %a {attrs} : tile<Nx{to}>"))
}

const ADD: &str = "
    %pid = program_id {axis=0} : i32
    %eight = constant {bits=0x8} : i32
    %start = mul %pid, %eight : i32
    %lane = arange {start=0, end=8} : tile<8xi32>
    %first = splat %start : tile<8xi32>
    %i = add %first, %lane : tile<8xi32>
    %end = splat %n : tile<8xi32>
    %mask = cmp %i, %end {predicate=slt} : tile<8xi1>
    %sx = splat %x : tile<8xptr<f32>>
    %px = ptr_add %sx, %i : tile<8xptr<f32>>
    %vx = load %px, mask=%mask LOAD : tile<8xf32>
    %sy = splat %y : tile<8xptr<f32>>
    %py = ptr_add %sy, %i : tile<8xptr<f32>>
    %vy = load %py, mask=%mask LOAD : tile<8xf32>
    %sum = fadd %vx, %vy : tile<8xf32>
    %so = splat %out : tile<8xptr<f32>>
    %po = ptr_add %so, %i : tile<8xptr<f32>>
    store %po, %sum, mask=%mask STORE
";
const ADD_PARAMS: &str = "x: ptr<f32>, y: ptr<f32>, out: ptr<f32>, n: i32";

/// Runs the addition on three tensors of `len` elements with the mask `i < n`.
fn add_vectors(len: usize, n: i128, grid: u32, options: &Options) -> (RunReport, Vec<f32>) {
    let kernel = kernel(ADD_PARAMS, ADD);
    let x: Vec<f32> = (0..len).map(|i| i as f32).collect();
    let y: Vec<f32> = (0..len).map(|i| 0.5 * i as f32).collect();
    let mut buffers = Buffers::new();
    let ids = [
        buffers.add("x", Scalar::F32, &bytes(&x)),
        buffers.add("y", Scalar::F32, &bytes(&y)),
        buffers.add("out", Scalar::F32, &bytes(&vec![-1f32; len])),
    ];
    let mut args = ids.map(|id| Arg::Pointer(buffers.address(id))).to_vec();
    args.push(Arg::Int(n));
    let report = launch(&kernel, &mut buffers, &args, grid, options);
    (report, read(&buffers, ids[2]))
}

#[test]
fn adds_vectors_up_to_the_mask() {
    let options = Options { trace: true, ..Options::default() };
    let (report, out) = add_vectors(21, 20, 3, &options);
    assert_eq!(report.findings, []);
    assert_eq!(report.touched, Some((2 * 20 * 4, 20 * 4)));
    let mut expected: Vec<f32> = (0..20).map(|i| 1.5 * i as f32).collect();
    expected.push(-1.0);
    assert_eq!(out, expected);
}

#[test]
fn accesses_outside_a_buffer_are_found_and_harmless() {
    let (report, out) = add_vectors(21, 24, 3, &Options::default());
    let shown: Vec<String> = report
        .findings
        .iter()
        .map(|found| {
            let line = found.place.line;
            format!(
                "line {line}: {} (program {:?}, lane {:?}, {} times)",
                found.message, found.program, found.index, found.count
            )
        })
        .collect();
    expect![[r#"
        [
            "line 11: load from element 21 of `x`, which has 21 elements (program [2, 0, 0], lane [5], 3 times)",
            "line 14: load from element 21 of `y`, which has 21 elements (program [2, 0, 0], lane [5], 3 times)",
            "line 18: store to element 21 of `out`, which has 21 elements (program [2, 0, 0], lane [5], 3 times)",
        ]
    "#]].assert_debug_eq(&shown);
    assert_eq!(out[20], 30.0);
}

#[test]
fn probing_tells_how_far_a_kernel_reaches() {
    let kernel = kernel(ADD_PARAMS, ADD);
    let mut buffers = Buffers::new();
    let ids = ["x", "y", "out"].map(|name| buffers.add(name, Scalar::F32, &[]));
    let mut args = ids.map(|id| Arg::Pointer(buffers.address(id))).to_vec();
    args.push(Arg::Int(20));
    let options = Options { probe: true, ..Options::default() };
    let report = launch(&kernel, &mut buffers, &args, 3, &options);
    assert_eq!(report.findings, []);
    assert_eq!(report.extents, [Some((0, 79)); 3]);
}

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

#[test]
fn shapes_keep_row_major_order() {
    let a: Vec<i32> = (0..8).collect();
    let run = |body: &str| apply::<i32, i32>(("i32", "i32"), &[&a], body);
    let transposed = "
        %m = reshape %a {reorder=false} : tile<2x4xi32>
        %t = permute %m {order=[1, 0]} : tile<4x2xi32>
        %r = reshape %t {reorder=false} : tile<8xi32>";
    assert_eq!(run(transposed), [0, 4, 1, 5, 2, 6, 3, 7]);
    let broadcast = "
        %h = reshape %a {reorder=false} : tile<2x2x2xi32>
        %x, %y = split %h : tile<2x2xi32>, tile<2x2xi32>
        %s = reduce %x {axis=1} : tile<2xi32> @1 { |%p: i32, %q: i32|
        %u = add %p, %q : i32
        yield %u
        }
        %e = expand_dims %s {axis=1} : tile<2x1xi32>
        %w = broadcast %e : tile<2x4xi32>
        %r = reshape %w {reorder=false} : tile<8xi32>";
    assert_eq!(run(broadcast), [2, 2, 2, 2, 10, 10, 10, 10]);
    let joined = "
        %h = reshape %a {reorder=false} : tile<4x2xi32>
        %x, %y = split %h : tile<4xi32>, tile<4xi32>
        %j = join %y, %x : tile<4x2xi32>
        %r = reshape %j {reorder=false} : tile<8xi32>";
    assert_eq!(run(joined), [1, 0, 3, 2, 5, 4, 7, 6]);
    let concatenated = "
        %h = reshape %a {reorder=false} : tile<4x2xi32>
        %x, %y = split %h : tile<4xi32>, tile<4xi32>
        %r = cat %x, %y : tile<8xi32>";
    assert_eq!(run(concatenated), [0, 2, 4, 6, 1, 3, 5, 7]);
    let gathered = "
        %m = reshape %a {reorder=false} : tile<2x4xi32>
        %one = constant {bits=0x1} : tile<2x4xi32>
        %f = xor %m, %one : tile<2x4xi32>
        %three = constant {bits=0x3} : tile<2x4xi32>
        %g = and %f, %three : tile<2x4xi32>
        %o = gather %m, %g {axis=1} : tile<2x4xi32>
        %r = reshape %o {reorder=false} : tile<8xi32>";
    assert_eq!(run(gathered), [1, 0, 3, 2, 5, 4, 7, 6]);
}

#[test]
fn reductions_take_any_region() {
    let a = [3.0f32, 9.0, -2.0, 9.0, 4.0, 0.5, 1.0, 7.0];
    // The index of the largest element, the first of equals.
    let argmax = "
        %v, %w = reduce %a, %i {axis=0} : f32, i32 @1 { |%va: f32, %ia: i32, %vb: f32, %ib: i32|
        %gt = fcmp %va, %vb {predicate=ogt} : i1
        %eq = fcmp %va, %vb {predicate=oeq} : i1
        %lo = cmp %ia, %ib {predicate=slt} : i1
        %tie = and %eq, %lo : i1
        %left = or %gt, %tie : i1
        %vr = select %left, %va, %vb : f32
        %ir = select %left, %ia, %ib : i32
        yield %vr, %ir
        }
        %f = s_to_f %w : f32
        %r = splat %f : tile<Nxf32>";
    assert_eq!(apply::<f32, f32>(("f32", "f32"), &[&a], argmax)[0], 1.0);
    // The last element: the region yields its right argument as it is.
    let last = "
        %v = reduce %a {axis=0} : f32 @1 { |%p: f32, %q: f32|
        yield %q
        }
        %r = splat %v : tile<Nxf32>";
    assert_eq!(apply::<f32, f32>(("f32", "f32"), &[&a], last)[0], 7.0);
    // A value from outside, and a branch.
    let outside = "
        %two = constant {bits=0x40000000} : f32
        %v = reduce %a {axis=0} : f32 @1 { |%p: f32, %q: f32|
        %c = fcmp %p, %q {predicate=olt} : i1
        %u = if %c : f32 @1 {
        %s = fadd %q, %two : f32
        yield %s
        } {
        yield %p
        }
        yield %u
        }
        %r = splat %v : tile<Nxf32>";
    assert_eq!(apply::<f32, f32>(("f32", "f32"), &[&a], outside)[0], 11.0);
}

#[test]
fn known_reductions_agree_with_the_tree() {
    let a: Vec<f32> = (0..64).map(|i| ((i * 37) % 64) as f32 - 20.0).collect();
    for (op, expected) in [
        ("fadd", a.iter().sum::<f32>()),
        ("fmax {propagate=false}", 43.0),
        ("fmin {propagate=true}", -20.0),
    ] {
        let (name, attrs) = op.split_once(' ').unwrap_or((op, ""));
        let body = format!(
            "%m = reshape %a {{reorder=false}} : tile<4x16xf32>
             %c = reduce %m {{axis=0}} : tile<16xf32> @1 {{ |%p: f32, %q: f32|
             %u = {name} %p, %q {attrs} : f32
             yield %u
             }}
             %v = reduce %c {{axis=0}} : f32 @1 {{ |%s: f32, %t: f32|
             %w = {name} %s, %t {attrs} : f32
             yield %w
             }}
             %r = splat %v : tile<Nxf32>"
        );
        assert_eq!(apply::<f32, f32>(("f32", "f32"), &[&a], &body)[0], expected, "{op}");
    }
}

#[test]
fn scans_run_both_ways() {
    let a = [1, 2, 3, 4, 5, 6, 7, 8];
    let scan = |reverse: bool, op: &str| {
        let body = format!(
            "%m = reshape %a {{reorder=false}} : tile<2x4xi32>
             %s = scan %m {{axis=1, reverse={reverse}}} : tile<2x4xi32> @1 {{ |%p: i32, %q: i32|
             {op}
             yield %u
             }}
             %r = reshape %s {{reorder=false}} : tile<8xi32>"
        );
        apply::<i32, i32>(("i32", "i32"), &[&a], &body)
    };
    let add = "%u = add %p, %q : i32";
    assert_eq!(scan(false, add), [1, 3, 6, 10, 5, 11, 18, 26]);
    assert_eq!(scan(true, add), [10, 9, 7, 4, 26, 21, 15, 8]);
    // Two operations: the general way.
    let twice = "%d = add %p, %p : i32
                 %u = add %d, %q : i32";
    assert_eq!(scan(false, twice), [1, 4, 11, 26, 5, 16, 39, 86]);
}

#[test]
fn loops_carry_values_in_parallel() {
    // Fibonacci numbers: the carried values change places.
    let body = "
        %zero = constant {bits=0x0} : i32
        %one = constant {bits=0x1} : i32
        %ten = constant {bits=0xa} : i32
        %x0 = constant {bits=0x0} : tile<Nxi32>
        %x1 = constant {bits=0x1} : tile<Nxi32>
        %x, %y, %k = for %zero, %ten, %one, %x0, %x1, %zero LOOP : tile<Nxi32>, tile<Nxi32>, i32 @1 { |%j: i32, %p: tile<Nxi32>, %q: tile<Nxi32>, %l: i32|
        %s = add %p, %q : tile<Nxi32>
        yield %q, %s, %j
        }
        %last = splat %k : tile<Nxi32>
        %xy = mul %x, %y : tile<Nxi32>
        %r = add %xy, %last : tile<Nxi32>";
    assert_eq!(apply::<i32, i32>(("i32", "i32"), &[&[0; 4]], body), [55 * 89 + 9; 4]);
    // Rotation of one value into another, and the same value yielded twice.
    let rotate = "
        %zero = constant {bits=0x0} : i32
        %one = constant {bits=0x1} : i32
        %three = constant {bits=0x3} : i32
        %x, %y, %z = for %zero, %three, %one, %a, %b, %a LOOP : tile<Nxi32>, tile<Nxi32>, tile<Nxi32> @1 { |%j: i32, %p: tile<Nxi32>, %q: tile<Nxi32>, %w: tile<Nxi32>|
        %s = add %p, %w : tile<Nxi32>
        yield %s, %p, %s
        }
        %t = mul %x, %y : tile<Nxi32>
        %r = add %t, %z : tile<Nxi32>";
    assert_eq!(apply::<i32, i32>(("i32", "i32"), &[&[1, 2], &[5, 5]], rotate), [40, 144]);
}

#[test]
fn loops_may_count_down_and_not_at_all() {
    let run = |lower: u32, upper: u32, step: u32| {
        let body = format!(
            "%l = constant {{bits={lower:#x}}} : i32
             %u = constant {{bits={upper:#x}}} : i32
             %s = constant {{bits={step:#x}}} : i32
             %z = constant {{bits=0x0}} : i32
             %v = for %l, %u, %s, %z LOOP : i32 @1 {{ |%j: i32, %p: i32|
             %ten = constant {{bits=0xa}} : i32
             %m = mul %p, %ten : i32
             %n = add %m, %j : i32
             yield %n
             }}
             %r = splat %v : tile<Nxi32>"
        );
        apply::<i32, i32>(("i32", "i32"), &[&[0; 2]], &body)[0]
    };
    assert_eq!(run(1, 5, 1), 1234);
    assert_eq!(run(4, 0, u32::MAX), 4321);
    assert_eq!(run(5, 5, 1), 0);
    assert_eq!(run(0, 5, 2), 24);
}

#[test]
fn whiles_and_branches() {
    // Steps of the Collatz sequence of 27.
    let body = "
        %n0 = constant {bits=0x1b} : i32
        %c0 = constant {bits=0x0} : i32
        %one = constant {bits=0x1} : i32
        %n1, %c1 = while %n0, %c0 : i32, i32 @1 { |%n: i32, %c: i32|
        %go = cmp %n, %one {predicate=ne} : i1
        condition %go, %n, %c
        } { |%m: i32, %d: i32|
        %bit = and %m, %one : i32
        %odd = cmp %bit, %one {predicate=eq} : i1
        %next = if %odd : i32 @1 {
        %three = constant {bits=0x3} : i32
        %t = mul %m, %three : i32
        %u = add %t, %one : i32
        yield %u
        } {
        %h = shr_u %m, %one : i32
        yield %h
        }
        %e = add %d, %one : i32
        yield %next, %e
        }
        %r = splat %c1 : tile<Nxi32>";
    assert_eq!(apply::<i32, i32>(("i32", "i32"), &[&[0; 2]], body), [111; 2]);
}

#[test]
fn elements_are_mapped_in_packs() {
    let body = "
        %r = map_elements %a, %b {pack=2} : tile<Nxi32> @1 { |%x0: i32, %x1: i32, %y0: i32, %y1: i32|
        %c = cmp %x0, %y0 {predicate=slt} : i1
        %d = if %c : i32 @1 {
        yield %x1
        } {
        yield %y1
        }
        %e = sub %x0, %y0 : i32
        yield %d, %e
        }";
    let mapped = apply::<i32, i32>(("i32", "i32"), &[&[1, 2, 3, 4], &[9, 8, 0, 6]], body);
    assert_eq!(mapped, [2, -8, 6, 3]);
}

#[test]
fn matrices_multiply() {
    let dot = |ty: &str, acc: &str| {
        format!(
            "%x = reshape %a {{reorder=false}} : tile<4x4x{ty}>
             %y = reshape %b {{reorder=false}} : tile<4x4x{ty}>
             %z = constant {{bits=0x0}} : tile<4x4x{acc}>
             %d = dot %x, %y, %z {{precision=tf32, max_imprecise=0}} : tile<4x4x{acc}>
             %r = reshape %d {{reorder=false}} : tile<16x{acc}>"
        )
    };
    let a: Vec<i32> = (0..16).map(|i| i % 5 - 2).collect();
    let b: Vec<i32> = (0..16).map(|i| i % 7 - 3).collect();
    let expected: Vec<i32> =
        (0..16).map(|at| (0..4).map(|k| a[at / 4 * 4 + k] * b[k * 4 + at % 4]).sum()).collect();
    let floats = |values: &[i32]| values.iter().map(|&v| v as f32).collect::<Vec<f32>>();
    let (fa, fb) = (floats(&a), floats(&b));
    assert_eq!(
        apply::<f32, f32>(("f32", "f32"), &[&fa, &fb], &dot("f32", "f32")),
        floats(&expected)
    );
    let halves = |values: &[i32]| {
        values.iter().map(|&v| half::f16::from_f32(v as f32).to_bits()).collect::<Vec<u16>>()
    };
    let (ha, hb) = (halves(&a), halves(&b));
    assert_eq!(
        apply::<u16, f32>(("f16", "f32"), &[&ha, &hb], &dot("f16", "f32")),
        floats(&expected)
    );
    assert_eq!(
        apply::<u16, u16>(("f16", "f16"), &[&ha, &hb], &dot("f16", "f16")),
        halves(&expected)
    );
    let bytes = |values: &[i32]| values.iter().map(|&v| v as i8).collect::<Vec<i8>>();
    let (ba, bb) = (bytes(&a), bytes(&b));
    assert_eq!(apply::<i8, i32>(("i8", "i32"), &[&ba, &bb], &dot("i8", "i32")), expected);
}

/// An element of the product of two 16 by 16 matrices: every row of the left one starts with the
/// first two numbers, every column of the right one with the other two; zeros follow.
fn product(precision: &str, [first, second]: [f32; 2], [row, next]: [f32; 2]) -> f32 {
    let mut a = vec![0.0f32; 256];
    let mut b = vec![0.0f32; 256];
    for at in 0..16 {
        a[at * 16] = first;
        a[at * 16 + 1] = second;
        b[at] = row;
        b[16 + at] = next;
    }
    let c = vec![0.0f32; 256];
    let body = format!(
        "%x = reshape %a {{reorder=false}} : tile<16x16xf32>
         %y = reshape %b {{reorder=false}} : tile<16x16xf32>
         %z = reshape %c {{reorder=false}} : tile<16x16xf32>
         %d = dot %x, %y, %z {{precision={precision}, max_imprecise=0}} : tile<16x16xf32>
         %r = reshape %d {{reorder=false}} : tile<Nxf32>"
    );
    let results: Vec<f32> = apply(("f32", "f32"), &[&a, &b, &c], &body);
    assert!(results.iter().all(|result| result.to_bits() == results[0].to_bits()));
    results[0]
}

#[test]
fn single_precision_products_lose_what_their_precision_drops() {
    let ulp = |bits: i32| 2f32.powi(-bits);
    // TF32 keeps 10 bits of fraction and drops the rest without rounding.
    let long = 1.0 + ulp(10) + ulp(11) + ulp(23);
    assert_eq!(product("ieee", [long, 0.0], [1.0, 0.0]), long);
    assert_eq!(product("tf32", [long, 0.0], [1.0, 0.0]), 1.0 + ulp(10));
    assert_eq!(product("tf32", [-long, 0.0], [1.0, 0.0]), -1.0 - ulp(10));
    // The rest of it loses its own low digits.
    assert_eq!(product("tf32x3", [long, 0.0], [1.0, 0.0]), long - ulp(23));
    // Two parts of bf16 hold 16 digits, three all 24.
    let long = 1.0 + ulp(9) + ulp(23);
    assert_eq!(product("bf16x3", [long, 0.0], [1.0, 0.0]), long - ulp(23));
    assert_eq!(product("bf16x6", [long, 0.0], [1.0, 0.0]), long);
    // The second product fuses with the sum: its low digits are not rounded away before.
    let (a, b) = (1.0 + ulp(12), 1.0 - ulp(12));
    assert_eq!(product("ieee", [-1.0, a], [1.0, b]), -ulp(24));
    // Infinities stay infinite in products of parts, and NaN stays NaN.
    for precision in ["tf32", "tf32x3", "bf16x3", "bf16x6", "ieee"] {
        assert_eq!(product(precision, [f32::INFINITY, 0.0], [2.0, 0.0]), f32::INFINITY);
        let nan = f32::from_bits(0x7f80_0001);
        assert!(product(precision, [nan, 0.0], [2.0, 0.0]).is_nan(), "{precision}");
    }
}

#[test]
fn integer_products_wrap() {
    let ones = vec![-128i8; 256];
    let body = "%x = reshape %a {reorder=false} : tile<16x16xi8>
         %y = reshape %b {reorder=false} : tile<16x16xi8>
         %most = constant {bits=0x7fffffff} : tile<16x16xi32>
         %d = dot %x, %y, %most {precision=tf32, max_imprecise=0} : tile<16x16xi32>
         %r = reshape %d {reorder=false} : tile<Nxi32>";
    let results: Vec<i32> = apply(("i8", "i32"), &[&ones, &ones], body);
    assert!(results.iter().all(|&result| result == i32::MAX.wrapping_add(16 * 128 * 128)));
}

#[test]
fn large_matrices_multiply_as_small_ones() {
    // 32 x 16 by 16 x 32 takes the blocked way.
    let body = "
        %x = reshape %a {reorder=false} : tile<32x16xf32>
        %y = reshape %b {reorder=false} : tile<16x32xf32>
        %z = constant {bits=0x3f800000} : tile<32x32xf32>
        %d = dot %x, %y, %z {precision=ieee, max_imprecise=0} : tile<32x32xf32>
        %s = reduce %d {axis=1} : tile<32xf32> @1 { |%p: f32, %q: f32|
        %u = fadd %p, %q : f32
        yield %u
        }
        %e = expand_dims %s {axis=1} : tile<32x1xf32>
        %w = broadcast %e : tile<32x16xf32>
        %r = reshape %w {reorder=false} : tile<512xf32>";
    let a: Vec<f32> = (0..512).map(|i| (i % 3) as f32).collect();
    let b: Vec<f32> = (0..512).map(|i| (i % 4) as f32).collect();
    let found = apply::<f32, f32>(("f32", "f32"), &[&a, &b], body);
    for row in 0..32 {
        let sum: f32 =
            (0..16).map(|k| a[row * 16 + k] * b[k * 32..(k + 1) * 32].iter().sum::<f32>()).sum();
        assert_eq!(found[row * 16], sum + 32.0, "row {row}");
    }
}

#[test]
fn scaled_products_unpack_four_bit_floats() {
    // 1 x 32 values of e2m1, two to a byte, each 2.0 (0x4) and -0.5 (0x9); scale 2^1.
    let kernel = kernel(
        "pa: ptr<i8>, ps: ptr<i8>, pb: ptr<f8e5>, po: ptr<f32>",
        "%ia = arange {start=0, end=16} : tile<16xi32>
         %sa = splat %pa : tile<16xptr<i8>>
         %qa = ptr_add %sa, %ia : tile<16xptr<i8>>
         %va = load %qa LOAD : tile<16xi8>
         %a = reshape %va {reorder=false} : tile<1x16xi8>
         %vs = load %ps LOAD : i8
         %s = splat %vs : tile<1x1xi8>
         %ib = arange {start=0, end=32} : tile<32xi32>
         %sb = splat %pb : tile<32xptr<f8e5>>
         %qb = ptr_add %sb, %ib : tile<32xptr<f8e5>>
         %vb = load %qb LOAD : tile<32xf8e5>
         %b = reshape %vb {reorder=false} : tile<32x1xf8e5>
         %z = constant {bits=0x0} : tile<1x1xf32>
         %d = dot_scaled %a, lhs_scale=%s, %b, %z {lhs=e2m1, rhs=e5m2, lhs_k_pack=true, rhs_k_pack=true} : tile<1x1xf32>
         %u = unsplat %d : f32
         store %po, %u STORE",
    );
    let mut buffers = Buffers::new();
    let ids = [
        buffers.add("a", Scalar::I8, &[0x94; 16]),
        buffers.add("s", Scalar::I8, &[128]),
        buffers.add("b", Scalar::F8E5, &[0x3c; 32]),
        buffers.add("o", Scalar::F32, &[0; 4]),
    ];
    let args = ids.map(|id| Arg::Pointer(buffers.address(id)));
    let report = launch(&kernel, &mut buffers, &args, 1, &Options::default());
    assert_eq!(report.findings, []);
    assert_eq!(read::<f32>(&buffers, ids[3]), [16.0 * 2.0 * (2.0 - 0.5)]);
    assert_eq!(report.flops, 64);
}

#[test]
fn sorting_puts_nan_last() {
    let a = [2.0f32, f32::NAN, -1.0, -0.0, 0.0, f32::INFINITY, -3.0, 1.0];
    let sort = |descending: bool| {
        let body = format!("%r = sort %a {{descending={descending}}} : tile<Nxf32>");
        apply::<f32, f32>(("f32", "f32"), &[&a], &body)
    };
    let ascending = sort(false);
    assert_eq!(ascending[..7], [-3.0, -1.0, -0.0, 0.0, 1.0, 2.0, f32::INFINITY]);
    assert!(ascending[7].is_nan() && ascending[2].is_sign_negative());
    assert!(sort(true)[0].is_nan());
    let ints = apply::<i32, i32>(
        ("i32", "i32"),
        &[&[3, -1, 2, 0]],
        "%r = sort %a {descending=false} : tile<Nxi32>",
    );
    assert_eq!(ints, [-1, 0, 2, 3]);
}

#[test]
fn histograms_count_what_is_inside() {
    let counted = apply::<i32, i32>(
        ("i32", "i32"),
        &[&[0, 1, 1, 3, 3, 3, 9, -1]],
        "%h = histogram %a {bins=8} : tile<8xi32>
         %r = add %h, %a : tile<Nxi32>",
    );
    assert_eq!(counted, [1, 3, 1, 6, 3, 3, 9, -1]);
}

#[test]
fn atomics_of_all_programs_add_up() {
    let kernel = kernel(
        "p: ptr<f32>, c: ptr<i32>",
        "%one = constant {bits=0x3f800000} : f32
         %old = atomic_rmw %p, %one {op=fadd, order=acq_rel, scope=gpu} : f32
         %pid = program_id {axis=0} : i32
         %max = atomic_rmw %c, %pid {op=smax, order=relaxed, scope=gpu} : i32",
    );
    let mut buffers = Buffers::new();
    let p = buffers.add("p", Scalar::F32, &[0; 4]);
    let c = buffers.add("c", Scalar::I32, &[0; 4]);
    let args = [p, c].map(|id| Arg::Pointer(buffers.address(id)));
    let options = Options { sanitize: true, ..Options::default() };
    let report = launch(&kernel, &mut buffers, &args, 1000, &options);
    assert_eq!(report.findings, []);
    assert_eq!(read::<f32>(&buffers, p), [1000.0]);
    assert_eq!(read::<i32>(&buffers, c), [999]);
}

/// Each program adds 1 to a number under a lock.
const LOCKED: &str = "
    %zero = constant {bits=0x0} : i32
    %one = constant {bits=0x1} : i32
    %w = while %zero : i32 @1 { |%k: i32|
    %old = atomic_cas %lock, %zero, %one {order=acquire, scope=gpu} : i32
    %busy = cmp %old, %zero {predicate=ne} : i1
    condition %busy, %k
    } { |%l: i32|
    yield %l
    }
    %v = load %p LOAD : i32
    %s = add %v, %one : i32
    store %p, %s STORE
    %free = atomic_rmw %lock, %zero {op=xchg, order=release, scope=gpu} : i32
";

#[test]
fn locks_hold_programs_apart() {
    let kernel = kernel("p: ptr<i32>, lock: ptr<i32>", LOCKED);
    let mut buffers = Buffers::new();
    let p = buffers.add("p", Scalar::I32, &[0; 4]);
    let lock = buffers.add("lock", Scalar::I32, &[0; 4]);
    let args = [p, lock].map(|id| Arg::Pointer(buffers.address(id)));
    let options = Options { sanitize: true, ..Options::default() };
    let report = launch(&kernel, &mut buffers, &args, 500, &options);
    assert_eq!(report.findings, []);
    assert_eq!(read::<i32>(&buffers, p), [500]);
}

#[test]
fn a_launch_that_never_ends_is_ended() {
    let kernel = kernel("p: ptr<i32>, lock: ptr<i32>", LOCKED);
    let mut buffers = Buffers::new();
    let p = buffers.add("p", Scalar::I32, &[0; 4]);
    let lock = buffers.add("lock", Scalar::I32, &[1, 0, 0, 0]);
    let args = [p, lock].map(|id| Arg::Pointer(buffers.address(id)));
    let deadline = Some(std::time::Duration::from_millis(50));
    let options = Options { deadline, ..Options::default() };
    let error = kernel.launch(&mut buffers, &args, [4, 1, 1], &options).unwrap_err();
    assert_eq!(error, RunError::TimedOut("k".to_owned()));
}

#[test]
fn two_programs_that_store_to_one_element_race() {
    let kernel = kernel(
        "p: ptr<i32>",
        "%pid = program_id {axis=0} : i32
         %one = constant {bits=0x1} : i32
         %half = shr_u %pid, %one : i32
         %q = ptr_add %p, %half : ptr<i32>
         store %q, %pid STORE",
    );
    let mut buffers = Buffers::new();
    let p = buffers.add("p", Scalar::I32, &[0; 16]);
    let args = [Arg::Pointer(buffers.address(p))];
    let options = Options { sanitize: true, ..Options::default() };
    let report = launch(&kernel, &mut buffers, &args, 8, &options);
    let [found] = report.findings.as_slice() else { panic!("{:?}", report.findings) };
    assert_eq!((found.kind, found.place.line, found.count), (FindingKind::Race, 5, 4));
    assert!(found.message.contains("both store to element"), "{}", found.message);
}

/// What sanitizing finds when each of `grid` programs loads element `from` and stores element `to`
/// of a buffer of 8; both are `PID` and an offset of the program's number.
fn shift(from: &str, to: &str, grid: u32) -> RunReport {
    let kernel = kernel(
        "p: ptr<i32>",
        &format!(
            "%pid = program_id {{axis=0}} : i32
             %zero = constant {{bits=0x0}} : i32
             %one = constant {{bits=0x1}} : i32
             %from = add %pid, %{from} : i32
             %to = add %pid, %{to} : i32
             %q = ptr_add %p, %from : ptr<i32>
             %v = load %q LOAD : i32
             %r = ptr_add %p, %to : ptr<i32>
             store %r, %v STORE"
        ),
    );
    let mut buffers = Buffers::new();
    let p = buffers.add("p", Scalar::I32, &[0; 32]);
    let args = [Arg::Pointer(buffers.address(p))];
    let options = Options { sanitize: true, ..Options::default() };
    launch(&kernel, &mut buffers, &args, grid, &options)
}

#[test]
fn a_program_that_loads_what_another_stores_races() {
    let report = shift("one", "zero", 7);
    let [found, ..] = report.findings.as_slice() else { panic!("nothing is found") };
    assert!(report.findings.iter().all(|found| found.kind == FindingKind::Race));
    // The program that comes second finds it, at its load or at its store.
    assert!([7, 9].contains(&found.place.line), "{found:?}");
    assert_eq!(report.findings.iter().map(|found| found.count).sum::<u64>(), 6);
    assert!(found.message.contains("stores to element"), "{}", found.message);
    assert_eq!(shift("zero", "zero", 7).findings, [], "each program keeps to its own element");
    assert_eq!(shift("one", "zero", 1).findings, [], "one program has its own order");
}

#[test]
fn memory_that_nothing_wrote_is_not_to_be_read() {
    let kernel = kernel(
        "p: ptr<i32>, out: ptr<i32>, n: i32",
        "%i = arange {start=0, end=4} : tile<4xi32>
         %end = splat %n : tile<4xi32>
         %m = cmp %i, %end {predicate=slt} : tile<4xi1>
         %s = splat %p : tile<4xptr<i32>>
         %q = ptr_add %s, %i : tile<4xptr<i32>>
         store %q, %i, mask=%m STORE
         %v = load %q LOAD : tile<4xi32>
         %t = splat %out : tile<4xptr<i32>>
         %r = ptr_add %t, %i : tile<4xptr<i32>>
         store %r, %v STORE",
    );
    let run = |n: i128| {
        let mut buffers = Buffers::new();
        let [p, out] =
            ["p", "out"].map(|name| buffers.add_uninitialized(name, Scalar::I32, &[0xcc; 16]));
        let [p, out] = [p, out].map(|id| Arg::Pointer(buffers.address(id)));
        let options = Options { sanitize: true, ..Options::default() };
        launch(&kernel, &mut buffers, &[p, out, Arg::Int(n)], 1, &options).findings
    };
    assert_eq!(run(4), [], "what the program wrote itself may be read");
    let findings = run(3);
    let [found] = findings.as_slice() else { panic!("{findings:?}") };
    assert_eq!((found.kind, found.place.line), (FindingKind::Uninitialized, 7));
    assert_eq!((found.index.as_slice(), found.count), (&[3][..], 1));
    let access = found.access.as_ref().expect("the address is known");
    assert_eq!((access.buffer.as_deref(), access.element), (Some("p"), 3));
}

#[test]
fn a_stored_nan_is_traced_to_its_birth() {
    let body = "
        %i = arange {start=0, end=4} : tile<4xi32>
        %s = splat %p : tile<4xptr<f32>>
        %q = ptr_add %s, %i : tile<4xptr<f32>>
        %v = load %q LOAD : tile<4xf32>
        %w = fdiv %v, %v : tile<4xf32>
        %x = fadd %w, %v : tile<4xf32>
        %three = constant {bits=0x3} : tile<4xi32>
        %m = cmp %i, %three {predicate=slt} : tile<4xi1>
        store %q, %x, mask=%m STORE";
    let kernel = kernel("p: ptr<f32>", body);
    let run = |values: [f32; 4]| {
        let mut buffers = Buffers::new();
        let p = buffers.add("p", Scalar::F32, &bytes(&values));
        let args = [Arg::Pointer(buffers.address(p))];
        let options = Options { sanitize: true, ..Options::default() };
        let report = launch(&kernel, &mut buffers, &args, 1, &options);
        report
            .findings
            .iter()
            .map(|found| (found.kind, found.place.line, found.index[0]))
            .collect::<Vec<_>>()
    };
    assert_eq!(run([1.0, 0.0, 2.0, 3.0]), [(FindingKind::NanBirth, 5, 1)]);
    assert_eq!(run([1.0, 1.0, 1.0, 0.0]), [], "the NaN is not stored");
    assert_eq!(run([1.0, f32::NAN, 2.0, 3.0]), [], "the NaN was there before");
}

#[test]
fn pointers_are_numbers_that_come_back() {
    let kernel = kernel(
        "p: ptr<f32>, list: ptr<ptr<f32>>",
        "%n = ptr_to_int %p : i64
         %four = constant {bits=0x4} : i64
         %m = add %n, %four : i64
         %q = int_to_ptr %m : ptr<f32>
         %v = load %q LOAD : f32
         %first = load %list LOAD : ptr<f32>
         store %first, %v STORE",
    );
    let mut buffers = Buffers::new();
    let p = buffers.add("p", Scalar::F32, &bytes(&[1f32, 2.0]));
    let out = buffers.add("out", Scalar::F32, &[0; 4]);
    let list = buffers.add("list", Scalar::I64, &buffers.address(out).to_ne_bytes());
    let args = [p, list].map(|id| Arg::Pointer(buffers.address(id)));
    let report = launch(&kernel, &mut buffers, &args, 1, &Options::default());
    assert_eq!(report.findings, []);
    assert_eq!(read::<f32>(&buffers, out), [2.0]);
}

#[test]
fn wild_addresses_are_explained() {
    let kernel = kernel(
        "p: ptr<f32>, n: i64",
        "%a = ptr_to_int %p : i64
         %b = add %a, %n : i64
         %q = int_to_ptr %b : ptr<f32>
         %v = load %q LOAD : f32
         store %p, %v STORE",
    );
    let message = |n: i128| {
        let mut buffers = Buffers::new();
        let p = buffers.add("p", Scalar::F32, &bytes(&[5f32, 6.0]));
        let args = [Arg::Pointer(buffers.address(p)), Arg::Int(n)];
        let report = launch(&kernel, &mut buffers, &args, 1, &Options::default());
        report.findings.first().map(|found| found.message.clone()).unwrap_or_default()
    };
    assert_eq!(message(4), "");
    assert_eq!(message(-4), "load from element -1 of `p`, which has 2 elements");
    assert_eq!(message(2), "load from byte 2 of `p`, which is not a multiple of 4 bytes");
    assert_eq!(message(8), "load from element 2 of `p`, which has 2 elements");
    assert_eq!(
        message(i128::from(i64::MAX / 2)),
        "load from address 0x4000017fffffffff, which is in no buffer"
    );
}

#[test]
fn prints_come_in_program_order() {
    let kernel = kernel(
        "",
        r#"%pid = program_id {axis=0} : i32
           %h = constant {bits=0x3e00} : tile<2xf16>
           device_print %pid, %h {text=" x: ", hex=false}"#,
    );
    let report = launch(&kernel, &mut Buffers::new(), &[], 2, &Options::default());
    expect![[r#"
        [
            "pid (0, 0, 0) idx () x: (operand 0) 0",
            "pid (0, 0, 0) idx (0) x: (operand 1) 1.500000",
            "pid (0, 0, 0) idx (1) x: (operand 1) 1.500000",
            "pid (1, 0, 0) idx () x: (operand 0) 1",
            "pid (1, 0, 0) idx (0) x: (operand 1) 1.500000",
            "pid (1, 0, 0) idx (1) x: (operand 1) 1.500000",
        ]
    "#]]
    .assert_debug_eq(&report.prints);
}

#[test]
fn a_failed_assertion_ends_its_program() {
    let kernel = kernel(
        "p: ptr<i32>",
        r#"%pid = program_id {axis=0} : i32
           %one = constant {bits=0x1} : i32
           %ok = cmp %pid, %one {predicate=ne} : i1
           device_assert %ok {text="not the second", hex=false}
           %q = ptr_add %p, %pid : ptr<i32>
           store %q, %one STORE"#,
    );
    let mut buffers = Buffers::new();
    let p = buffers.add("p", Scalar::I32, &[0; 12]);
    let args = [Arg::Pointer(buffers.address(p))];
    let report = launch(&kernel, &mut buffers, &args, 3, &Options::default());
    let found: Vec<_> =
        report.findings.iter().map(|found| (found.message.as_str(), found.program)).collect();
    assert_eq!(found, [("assertion failed: not the second", [1, 0, 0])]);
    assert_eq!(read::<i32>(&buffers, p), [1, 0, 1]);
}

#[test]
fn what_a_cpu_cannot_do_is_a_typed_error() {
    let func = parse(
        "",
        r#"%one = constant {bits=0x1} : i32
           %v = inline_asm %one {asm="mov.u32 $0, $1;", constraints="=r,r", pack=1, pure=true} : i32"#,
    );
    let error = Kernel::compile(&func).unwrap_err().to_string();
    assert_eq!(
        error,
        "line 2: inline PTX cannot run on the CPU; run the kernel with `--device cuda:0`"
    );
    let kernel = kernel("n: i32", "%m = add %n, %n : i32");
    let mut buffers = Buffers::new();
    let run = |args: &[Arg]| {
        kernel
            .launch(&mut Buffers::new(), args, [1, 1, 1], &Options::default())
            .map(|_| ())
            .map_err(|e| e.to_string())
    };
    assert_eq!(run(&[]), Err("k: takes 1 arguments, got 0".to_owned()));
    assert_eq!(run(&[Arg::Float(1.0)]), Err("k: argument `n` is 1.0, which is no i32".to_owned()));
    assert_eq!(
        run(&[Arg::Int(1 << 40)]),
        Err("k: argument `n` is 1099511627776, which is no i32".to_owned())
    );
    assert!(kernel.launch(&mut buffers, &[Arg::Int(-1)], [0, 1, 1], &Options::default()).is_ok());
}
