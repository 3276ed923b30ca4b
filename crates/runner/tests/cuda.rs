//! The CUDA device, on a kernel in PTX that the driver assembles. Prints how many tests ran: none
//! on a machine without a GPU.

use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};
use tile_compiler::artifact::{Manifest, ManifestParam};
use tile_compiler::ir::{self, Function};
use tile_compiler::specialization::Specialization;
use tile_executor::Arg;
use tile_runner::bench;
use tile_runner::cuda::{CudaDevice, devices};
use tile_runner::launch::{CompiledKernel, Device, KernelCompiler, KernelId, LaunchOptions};
use tile_runner::scenario::{DType, KernelInfo, LaunchFailure, Storage, StorageId};

/// Adds `factor` to each of the first `n` elements of `x`.
const PTX: &str = "
.version 7.0
.target sm_75
.address_size 64
.visible .entry shift(.param .u64 x, .param .f32 factor, .param .u32 n)
{
    .reg .pred %p<2>;
    .reg .b32 %r<6>;
    .reg .f32 %f<4>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [x];
    ld.param.f32 %f1, [factor];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p1, %r5, %r1;
    @%p1 bra done;
    mul.wide.u32 %rd2, %r5, 4;
    add.s64 %rd3, %rd1, %rd2;
    ld.global.f32 %f2, [%rd3];
    add.f32 %f3, %f2, %f1;
    st.global.f32 [%rd3], %f3;
done:
    ret;
}
";

const IR: &str = r#"kernel @shift level=tile num_warps=4 num_stages=3 num_ctas=1 fp_fusion=true {
  param %0 : ptr<f32> {name="x", signature="*fp32", divisibility=16}
  param %1 : f32 {name="factor", signature="fp32", divisibility=1}
  param %2 : i32 {name="n", signature="i32", divisibility=1}
  return @0
}
"#;

struct Ptx {
    shared_bytes: u32,
}

impl KernelCompiler for Ptx {
    fn kernel(&mut self, name: &str) -> Result<KernelInfo, LaunchFailure> {
        Err(LaunchFailure::Usage(name.to_owned()))
    }

    fn tile_ir(&mut self, _: &str, _: &Specialization) -> Result<Function, LaunchFailure> {
        ir::parse(IR).map_err(|error| LaunchFailure::Compile(error.to_string()))
    }

    fn cubin(&mut self, func: &Function, arch: &str) -> Result<CompiledKernel, LaunchFailure> {
        let param = |name: &str, ty: &str| ManifestParam { name: name.into(), ty: ty.into() };
        let manifest = Manifest {
            entry: func.name.to_string(),
            arch: arch.to_owned(),
            params: vec![param("x", "*fp32"), param("factor", "fp32"), param("n", "i32")],
            num_warps: 4,
            block: [128, 1, 1],
            shared_bytes: self.shared_bytes,
            cluster: [1, 1, 1],
            scratch_bytes: 0,
            tensor_maps: Vec::new(),
        };
        let cubin = format!("{PTX}\0").into_bytes();
        Ok(CompiledKernel { cubin, manifest, resources: None })
    }
}

const COUNT: usize = 1000;

fn prepared(shared_bytes: u32) -> Result<(CudaDevice, KernelId, Vec<Arg>), String> {
    let mut device = CudaDevice::open(0).map_err(|error| error.to_string())?;
    let bytes: Vec<u8> = (0..COUNT).flat_map(|at| (at as f32).to_le_bytes()).collect();
    let storage = Storage { name: "x".to_owned(), dtype: DType::F32, bytes, initialized: true };
    let told = |failure: LaunchFailure| failure.message().to_owned();
    device.upload(StorageId(0), &storage).map_err(told)?;
    let mut compiler = Ptx { shared_bytes };
    let func = ir::parse(IR).map_err(|error| error.to_string())?;
    let kernel = device.load(&mut compiler, &func).map_err(told)?;
    let address = device.address(StorageId(0));
    Ok((device, kernel, vec![Arg::Pointer(address), Arg::Float(0.5), Arg::Int(COUNT as i128)]))
}

fn launches_and_reads_back() -> Result<(), Failed> {
    let (mut device, kernel, args) = prepared(0)?;
    let options = LaunchOptions { deadline: Some(Duration::from_secs(10)), ..Default::default() };
    let report =
        device.launch(kernel, &args, [8, 1, 1], &options).map_err(|f| f.message().to_owned())?;
    assert!(report.elapsed > Duration::ZERO);
    let bytes = device.download(StorageId(0)).map_err(|f| f.message().to_owned())?;
    let values: Vec<f32> = bytes
        .chunks_exact(4)
        .map(|chunk| f32::from_le_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]))
        .collect();
    let expected: Vec<f32> = (0..COUNT).map(|at| at as f32 + 0.5).collect();
    assert_eq!(values, expected);
    Ok(())
}

fn measures_by_the_protocol() -> Result<(), Failed> {
    let (mut device, kernel, args) = prepared(0)?;
    let measured = bench::measure(&mut device, kernel, &args, [8, 1, 1])
        .map_err(|f| f.message().to_owned())?;
    assert!(
        measured.p20 > 0.0 && measured.p20 <= measured.median && measured.median <= measured.p80
    );
    assert!(measured.runs > 10, "{measured:?}");
    Ok(())
}

fn reports_registers() -> Result<(), Failed> {
    let (device, kernel, _) = prepared(64 << 10)?;
    let resources = device.resources(kernel).ok_or("a loaded kernel has resources")?;
    assert!(resources.registers > 0);
    assert_eq!((resources.shared_bytes, resources.local_bytes), (64 << 10, 0));
    Ok(())
}

/// What follows from the device's limits, where one limit alone can bind.
fn tells_what_a_multiprocessor_holds() -> Result<(), Failed> {
    let device = CudaDevice::open(0).map_err(|error| error.to_string())?;
    let threads = device.info().max_threads;
    let mut shared = vec![(0, threads / 128)];
    // Beyond half of what one CTA may have, a second one fits only where there is more than that.
    shared.push((device.info().max_shared_bytes, 1));
    for (shared_bytes, ctas) in shared {
        let func = ir::parse(IR).map_err(|error| error.to_string())?;
        let compiled = Ptx { shared_bytes }.cubin(&func, &device.info().arch);
        let compiled = compiled.map_err(|failure| failure.message().to_owned())?;
        let found = device.residency(&compiled.cubin, &compiled.manifest);
        let found = found.map_err(|error| error.to_string())?;
        assert_eq!(found.ctas, ctas, "with {shared_bytes} bytes of shared memory");
        let occupancy = f64::from(ctas * 128) / f64::from(threads);
        assert!((found.occupancy - occupancy).abs() < 1e-9, "{found:?}");
    }
    Ok(())
}

fn explains_too_much_shared_memory() -> Result<(), Failed> {
    match prepared(1 << 30) {
        Ok(_) => Err("a gibibyte of shared memory cannot be had".into()),
        Err(message) if message.contains("bytes of shared memory, the device has") => Ok(()),
        Err(message) => Err(message.into()),
    }
}

fn main() {
    let found = devices();
    let (trials, place): (Vec<Trial>, String) = match &found {
        Ok(found) if !found.is_empty() => {
            let trials = vec![
                Trial::test("launches_and_reads_back", launches_and_reads_back),
                Trial::test("measures_by_the_protocol", measures_by_the_protocol),
                Trial::test("reports_registers", reports_registers),
                Trial::test("tells_what_a_multiprocessor_holds", tells_what_a_multiprocessor_holds),
                Trial::test("explains_too_much_shared_memory", explains_too_much_shared_memory),
            ];
            (trials, format!("on {} ({})", found[0].name, found[0].arch))
        }
        Ok(_) => (Vec::new(), "because there is no CUDA device".to_owned()),
        Err(error) => (Vec::new(), format!("because {error}")),
    };
    let mut arguments = Arguments::from_args();
    // One process, one device: tests would measure each other.
    arguments.test_threads = Some(1);
    let conclusion = libtest_mimic::run(&arguments, trials);
    let ran = conclusion.num_passed + conclusion.num_failed;
    // On standard error: test runners read the list of tests from standard output.
    eprintln!("{ran} GPU tests ran {place}");
    conclusion.exit();
}
