//! The CPU executor on kernels written as tile IR.

use tile_compiler::ir::{self, Scalar};
use tile_runner::cpu::{Arg, BufferId, Buffers, Kernel, Options, RunReport};

/// A kernel from the instructions of its body; parameters come first, as `%0`, `%1`, ...
fn kernel(params: &[(&str, &str)], body: &str) -> Kernel {
    let mut text =
        "kernel @k level=tile num_warps=4 num_stages=3 num_ctas=1 fp_fusion=true {\n".to_owned();
    for (at, (name, ty)) in params.iter().enumerate() {
        text +=
            &format!("  param %{at} : {ty} {{name=\"{name}\", signature=\"\", divisibility=1}}\n");
    }
    for line in body.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let located = line.ends_with('{') || line.starts_with('}') || line.contains(" @");
        text += &if located || line.ends_with('|') {
            format!("  {line}\n")
        } else {
            format!("  {line} @1\n")
        };
    }
    text += "  return @0\n}\nloc @1 = 0:0..1 7:3 \"k\"\n";
    let func = ir::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    Kernel::compile(&func).unwrap_or_else(|error| panic!("{error}\n{text}"))
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
    kernel.launch(buffers, args, [grid, 1, 1], options).unwrap()
}

const ADD: &str = "
    %4 = program_id {axis=0} : i32
    %5 = constant {bits=0x8} : i32
    %6 = mul %4, %5 : i32
    %7 = arange {start=0, end=8} : tile<8xi32>
    %8 = splat %6 : tile<8xi32>
    %9 = add %8, %7 : tile<8xi32>
    %10 = splat %3 : tile<8xi32>
    %11 = cmp %9, %10 {predicate=slt} : tile<8xi1>
    %12 = splat %0 : tile<8xptr<f32>>
    %13 = ptr_add %12, %9 : tile<8xptr<f32>>
    %14 = load %13, mask=%11 {cache=default, evict=normal, volatile=false} : tile<8xf32>
    %15 = splat %1 : tile<8xptr<f32>>
    %16 = ptr_add %15, %9 : tile<8xptr<f32>>
    %17 = load %16, mask=%11 {cache=default, evict=normal, volatile=false} : tile<8xf32>
    %18 = fadd %14, %17 : tile<8xf32>
    %19 = splat %2 : tile<8xptr<f32>>
    %20 = ptr_add %19, %9 : tile<8xptr<f32>>
    store %20, %18, mask=%11 {cache=default, evict=normal}
";

const ADD_PARAMS: [(&str, &str); 4] =
    [("x", "ptr<f32>"), ("y", "ptr<f32>"), ("out", "ptr<f32>"), ("n", "i32")];

#[test]
fn adds_vectors_up_to_the_mask() {
    let kernel = kernel(&ADD_PARAMS, ADD);
    let x: Vec<f32> = (0..21).map(|i| i as f32).collect();
    let y: Vec<f32> = (0..21).map(|i| 0.5 * i as f32).collect();
    let mut buffers = Buffers::new();
    let ids = [
        buffers.add("x", Scalar::F32, &bytes(&x)),
        buffers.add("y", Scalar::F32, &bytes(&y)),
        buffers.add("out", Scalar::F32, &bytes(&[-1f32; 21])),
    ];
    let mut args = ids.map(|id| Arg::Pointer(buffers.address(id))).to_vec();
    args.push(Arg::Int(20));
    let report = launch(&kernel, &mut buffers, &args, 3, &Options::default());
    assert_eq!(report.findings, []);
    let mut expected: Vec<f32> = (0..20).map(|i| 1.5 * i as f32).collect();
    expected.push(-1.0);
    assert_eq!(read::<f32>(&buffers, ids[2]), expected);
}
