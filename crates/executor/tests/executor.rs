//! The CPU executor on kernels written as tile IR.

#[path = "executor/collective.rs"]
mod collective;
#[path = "executor/control.rs"]
mod control;
#[path = "executor/effects.rs"]
mod effects;
#[path = "executor/elementwise.rs"]
mod elementwise;
#[path = "executor/order.rs"]
mod order;
#[path = "executor/products.rs"]
mod products;
#[path = "executor/sanitizer.rs"]
mod sanitizer;

use expect_test::expect;
use tile_compiler::ir::{self, Scalar};
use tile_executor::{
    Arg, BufferId, Buffers, Finding, FindingKind, Kernel, Options, RunError, RunReport,
};

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
