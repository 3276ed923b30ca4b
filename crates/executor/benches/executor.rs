//! How fast the CPU executor is: a row-wise softmax, a tiled matrix product, and flash attention as
//! the front end lowers the example.

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use tile_compiler::builtins::TritonVersion;
use tile_compiler::eval::lower_kernel;
use tile_compiler::ir::{self, Scalar};
use tile_compiler::project::{MemorySources, item, jit_functions};
use tile_compiler::specialization::{Flags, discover};
use tile_executor::{Arg, Buffers, Kernel, Options};

fn main() {
    divan::main();
}

const HEAD: &str = "kernel @k level=tile num_warps=4 num_stages=3 num_ctas=1 fp_fusion=true {\n";
const HINTS: &str = "{cache=default, evict=normal, volatile=false}";

/// One row of 4,096 numbers for each program.
const SOFTMAX: &str = r#"
  param %0 : ptr<f32> {name="x", signature="*fp32", divisibility=16}
  param %1 : ptr<f32> {name="out", signature="*fp32", divisibility=16}
  %2 = program_id {axis=0} : i32 @0
  %3 = constant {bits=0x1000} : i32 @0
  %4 = mul %2, %3 : i32 @0
  %5 = ptr_add %0, %4 : ptr<f32> @0
  %6 = arange {start=0, end=4096} : tile<4096xi32> @0
  %7 = splat %5 : tile<4096xptr<f32>> @0
  %8 = ptr_add %7, %6 : tile<4096xptr<f32>> @0
  %9 = load %8 HINTS : tile<4096xf32> @0
  %10 = reduce %9 {axis=0} : f32 @0 { |%11: f32, %12: f32|
    %13 = fmax %11, %12 {propagate=false} : f32 @0
    yield %13 @0
  }
  %14 = splat %10 : tile<4096xf32> @0
  %15 = fsub %9, %14 : tile<4096xf32> @0
  %16 = exp %15 : tile<4096xf32> @0
  %17 = reduce %16 {axis=0} : f32 @0 { |%18: f32, %19: f32|
    %20 = fadd %18, %19 : f32 @0
    yield %20 @0
  }
  %21 = splat %17 : tile<4096xf32> @0
  %22 = fdiv %16, %21 : tile<4096xf32> @0
  %23 = ptr_add %1, %4 : ptr<f32> @0
  %24 = splat %23 : tile<4096xptr<f32>> @0
  %25 = ptr_add %24, %6 : tile<4096xptr<f32>> @0
  store %25, %22 {cache=default, evict=normal} @0
  return @0
}
"#;

/// A 64 x 64 tile of the product of two 512 x 512 half-precision matrices for each program.
const MATMUL: &str = r#"
  param %0 : ptr<f16> {name="a", signature="*fp16", divisibility=16}
  param %1 : ptr<f16> {name="b", signature="*fp16", divisibility=16}
  param %2 : ptr<f32> {name="c", signature="*fp32", divisibility=16}
  %3 = program_id {axis=0} : i32 @0
  %4 = program_id {axis=1} : i32 @0
  %5 = constant {bits=0x40} : i32 @0
  %6 = constant {bits=0x200} : i32 @0
  %7 = constant {bits=0x0} : i32 @0
  %8 = mul %3, %5 : i32 @0
  %9 = mul %4, %5 : i32 @0
  %10 = arange {start=0, end=64} : tile<64xi32> @0
  %11 = splat %8 : tile<64xi32> @0
  %12 = add %11, %10 : tile<64xi32> @0
  %13 = splat %6 : tile<64xi32> @0
  %14 = mul %12, %13 : tile<64xi32> @0
  %15 = expand_dims %14 {axis=1} : tile<64x1xi32> @0
  %16 = broadcast %15 : tile<64x64xi32> @0
  %17 = expand_dims %10 {axis=0} : tile<1x64xi32> @0
  %18 = broadcast %17 : tile<64x64xi32> @0
  %19 = add %16, %18 : tile<64x64xi32> @0
  %20 = splat %0 : tile<64x64xptr<f16>> @0
  %21 = ptr_add %20, %19 : tile<64x64xptr<f16>> @0
  %22 = mul %10, %13 : tile<64xi32> @0
  %23 = expand_dims %22 {axis=1} : tile<64x1xi32> @0
  %24 = broadcast %23 : tile<64x64xi32> @0
  %25 = splat %9 : tile<64xi32> @0
  %26 = add %25, %10 : tile<64xi32> @0
  %27 = expand_dims %26 {axis=0} : tile<1x64xi32> @0
  %28 = broadcast %27 : tile<64x64xi32> @0
  %29 = add %24, %28 : tile<64x64xi32> @0
  %30 = splat %1 : tile<64x64xptr<f16>> @0
  %31 = ptr_add %30, %29 : tile<64x64xptr<f16>> @0
  %32 = constant {bits=0x40} : tile<64x64xi32> @0
  %33 = constant {bits=0x8000} : tile<64x64xi32> @0
  %34 = constant {bits=0x0} : tile<64x64xf32> @0
  %35, %36, %37 = for %7, %6, %5, %34, %21, %31 {stages=0, unroll=0, flatten=false, warp_specialize=false} : tile<64x64xf32>, tile<64x64xptr<f16>>, tile<64x64xptr<f16>> @0 { |%38: i32, %39: tile<64x64xf32>, %40: tile<64x64xptr<f16>>, %41: tile<64x64xptr<f16>>|
    %42 = load %40 HINTS : tile<64x64xf16> @0
    %43 = load %41 HINTS : tile<64x64xf16> @0
    %44 = dot %42, %43, %39 {precision=tf32, max_imprecise=0} : tile<64x64xf32> @0
    %45 = ptr_add %40, %32 : tile<64x64xptr<f16>> @0
    %46 = ptr_add %41, %33 : tile<64x64xptr<f16>> @0
    yield %44, %45, %46 @0
  }
  %47 = add %16, %28 : tile<64x64xi32> @0
  %48 = splat %2 : tile<64x64xptr<f32>> @0
  %49 = ptr_add %48, %47 : tile<64x64xptr<f32>> @0
  store %49, %35 {cache=default, evict=normal} @0
  return @0
}
"#;

fn kernel(text: &str) -> Kernel {
    let text = format!("{HEAD}{}", text.replace("HINTS", HINTS));
    let func = ir::parse(&text).expect("invariant: the benchmark's IR parses");
    Kernel::compile(&func).expect("invariant: the benchmark's IR compiles")
}

fn run(bencher: Bencher, kernel: &Kernel, buffers: &mut Buffers, args: &[Arg], grid: [u32; 3]) {
    let options = Options::default();
    bencher.bench_local(|| {
        let report = kernel.launch(buffers, args, grid, &options);
        assert!(report.expect("invariant: the launch fits").findings.is_empty());
    });
}

#[divan::bench]
fn softmax(bencher: Bencher) {
    const ROWS: usize = 256;
    let values: Vec<u8> =
        (0..ROWS * 4096).flat_map(|at| ((at * 37 % 101) as f32 / 10.0).to_le_bytes()).collect();
    let mut buffers = Buffers::new();
    let x = buffers.add("x", Scalar::F32, &values);
    let out = buffers.add("out", Scalar::F32, &values);
    let args = [x, out].map(|id| Arg::Pointer(buffers.address(id)));
    let bencher = bencher.counter(BytesCount::new(2 * values.len()));
    run(bencher, &kernel(SOFTMAX), &mut buffers, &args, [ROWS as u32, 1, 1]);
}

/// Items are multiplications and additions.
#[divan::bench]
fn matmul(bencher: Bencher) {
    const EXTENT: usize = 512;
    let one = 0x3c00u16.to_le_bytes().repeat(EXTENT * EXTENT);
    let mut buffers = Buffers::new();
    let a = buffers.add("a", Scalar::F16, &one);
    let b = buffers.add("b", Scalar::F16, &one);
    let c = buffers.add("c", Scalar::F32, &vec![0; EXTENT * EXTENT * 4]);
    let args = [a, b, c].map(|id| Arg::Pointer(buffers.address(id)));
    let bencher = bencher.counter(ItemsCount::new(2 * EXTENT.pow(3)));
    run(bencher, &kernel(MATMUL), &mut buffers, &args, [8, 8, 1]);
}

/// A kernel of an example file, as its first scenario specializes it.
fn example(text: &str, name: &str) -> Kernel {
    let mut sources = MemorySources::new(Vec::new());
    let file = sources.add("example.py", text);
    let mut functions = jit_functions(&sources, file).into_iter();
    let at = functions
        .find(|&at| item(&sources, at).is_some_and(|item| &*item.name == name))
        .expect("invariant: the example has the kernel");
    let specs = discover(&sources, at, &Flags::default());
    let lowered = lower_kernel(&sources, file, name, &specs[0], TritonVersion::default());
    let func = lowered.function.expect("invariant: the example lowers");
    Kernel::compile(&func).expect("invariant: the example runs on the CPU")
}

/// Items are multiplications and additions of the two products.
#[divan::bench]
fn attention(bencher: Bencher) {
    const HEADS: usize = 4;
    const TOKENS: usize = 512;
    const DIMS: usize = 32;
    const BLOCK_M: usize = 32;
    let half = 0x3800u16.to_le_bytes().repeat(HEADS * TOKENS * DIMS);
    let mut buffers = Buffers::new();
    let mut args: Vec<Arg> = ["q", "k", "v", "out"]
        .map(|name| buffers.add(name, Scalar::F16, &half))
        .map(|id| Arg::Pointer(buffers.address(id)))
        .into();
    let lse = buffers.add("lse", Scalar::F32, &vec![0; HEADS * TOKENS * 4]);
    args.push(Arg::Pointer(buffers.address(lse)));
    args.push(Arg::Float(0.125));
    args.extend([TOKENS * DIMS, DIMS, TOKENS].map(|extent| Arg::Int(extent as i128)));
    let kernel = example(include_str!("../../../examples/attention.py"), "attention_forward");
    let bencher = bencher.counter(ItemsCount::new(4 * HEADS * TOKENS * TOKENS * DIMS));
    run(bencher, &kernel, &mut buffers, &args, [(TOKENS / BLOCK_M) as u32, HEADS as u32, 1]);
}
