//! LLVM: parses, verifies, optimizes, and generates PTX.

use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError, RwLock};

use inkwell::OptimizationLevel;
use inkwell::context::Context;
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::module::{Linkage, Module as LlvmModule};
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::{
    CodeModel, FileType, InitializationConfig, RelocMode, Target as LlvmTarget, TargetMachine,
    TargetTriple,
};

use crate::llvm::Module;
use crate::{CodegenError, Target, distances, predicates};

/// The PTX version that LLVM 19 is asked for, the newest it knows.
const PTX_FEATURE: &str = "+ptx85";
const TRIPLE: &str = "nvptx64-nvidia-cuda";

/// What LLVM makes of a module.
pub(crate) struct Generated {
    /// Optimized LLVM IR, if it was asked for.
    pub(crate) llvm_ir: String,
    /// PTX as LLVM prints it, for each order that was asked for.
    pub(crate) ptx: Vec<String>,
}

/// The order of instructions within blocks. The assembler schedules again, but from this one: where
/// many values are computed side by side, it keeps many of them at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// As written: each operation for all registers of a tile.
    Written,
    /// With as few registers in use as LLVM can make it.
    FewRegisters,
    /// As written, and addresses in loops as sums of what does not change and what does. LLVM would carry
    /// some from iteration to iteration and make the others of these one by one: with many rows that is a
    /// chain of sums, where the assembler has better ways to add what all threads share.
    PlainAddresses,
    /// As written, but for the [`offsets`](crate::offsets) of addresses in loops; made of what is printed.
    NarrowOffsets,
    /// Elements one after the other, see [`depth_first`](crate::depth_first); made of what is printed as written.
    DepthFirst,
}

/// Optimizes `module` and generates its PTX in the first of `orders`, and in the others if `may_try` says so of that.
pub(crate) fn generate(
    module: &Module,
    target: Target,
    libdevice: Option<&Path>,
    keep_llvm: bool,
    orders: &[Order],
    may_try: impl Fn(&str) -> bool,
) -> Result<Generated, CodegenError> {
    initialize();
    let machine = target_machine(target, Order::Written)?;
    let context = Context::create();
    let buffer = MemoryBuffer::create_from_memory_range_copy(module.text.as_bytes(), "kernel");
    let llvm = context
        .create_module_from_ir(buffer)
        .map_err(|error| failed("rejects the generated IR", &error.to_string()))?;
    llvm.set_data_layout(&machine.get_target_data().get_data_layout());
    if let Some(function) = &module.libdevice_function {
        let path = libdevice
            .ok_or_else(|| CodegenError::MissingLibdevice { function: function.clone() })?;
        link_libdevice(&context, &llvm, path)?;
    }
    llvm.verify().map_err(|error| failed("finds the module malformed", &error.to_string()))?;
    llvm.run_passes("globaldce,default<O3>", &machine, PassBuilderOptions::create())
        .map_err(|error| failed("fails to optimize", &error.to_string()))?;
    predicates::widen(&context, &llvm)
        .map_err(|error| failed("cannot widen truth values", &error.to_string()))?;
    distances::share_bases(&context, &llvm, &machine.get_target_data())
        .map_err(|error| failed("cannot share addresses", &error.to_string()))?;
    let llvm_ir = if keep_llvm { llvm.print_to_string().to_string() } else { String::new() };
    // Generating code changes the module.
    let copies: Vec<_> = orders.iter().skip(1).map(|_| llvm.clone()).collect();
    let print = |(&order, llvm): (&Order, &LlvmModule<'_>)| {
        let machine = target_machine(target, order)?;
        let write = || machine.write_to_memory_buffer(llvm, FileType::Assembly);
        let output = match order {
            Order::PlainAddresses => without_strength_reduction(write),
            _ => with_strength_reduction(write),
        };
        let output = output.map_err(|error| failed("fails to generate PTX", &error.to_string()))?;
        let ptx = String::from_utf8_lossy(output.as_slice());
        Ok(without_dwarf(ptx.trim_end_matches('\0')))
    };
    let mut printed = orders.iter().zip(std::iter::once(&llvm).chain(&copies)).map(print);
    let written = printed.next().expect("invariant: PTX is printed in some order")?;
    let others = printed.take(if may_try(&written) { copies.len() } else { 0 });
    let ptx = std::iter::once(Ok(written)).chain(others).collect::<Result<_, CodegenError>>()?;
    Ok(Generated { llvm_ir, ptx })
}

fn failed(stage: &'static str, message: &str) -> CodegenError {
    CodegenError::Llvm { stage, message: message.to_owned() }
}

/// Registers the target and sets LLVM's process-wide options, once.
fn initialize() {
    static DONE: OnceLock<()> = OnceLock::new();
    DONE.get_or_init(|| {
        LlvmTarget::initialize_nvptx(&InitializationConfig::default());
        // Pointers to shared memory take one register instead of two. Sums and products are
        // written without rounding, so that the assembler may contract them and knows their
        // ranges; where each must be rounded by itself, the module says so operation by operation.
        // What vector-combine does changes no kernel for the better, and its time grows with the
        // square of a block's size: minutes for products that are spelled out.
        // Loops that count at run time are left to the assembler: it unrolls them by four and
        // starts their loads together, but not those that come to it unrolled by two, nor those that it
        // could leave in the middle since they count to an odd number.
        parse_options(&[
            "-nvptx-short-ptr",
            "-nvptx-fma-level=1",
            "-disable-vector-combine",
            "-unroll-runtime=false",
            "-unroll-allow-remainder=false",
        ]);
    });
}

/// Held by those who generate code: alone by those who change how loops are reduced meanwhile.
static STRENGTH_REDUCTION: RwLock<()> = RwLock::new(());

/// Held while options change, and while a generator is made that takes one.
static OPTIONS: Mutex<()> = Mutex::new(());

/// Runs `write` while loops carry what is cheap to carry, as LLVM does by itself.
fn with_strength_reduction<T>(write: impl FnOnce() -> T) -> T {
    let _shared = STRENGTH_REDUCTION.read().unwrap_or_else(PoisonError::into_inner);
    write()
}

/// Runs `write` while they do not: LLVM has but an option of the process for it, which code generation
/// reads when it begins.
fn without_strength_reduction<T>(write: impl FnOnce() -> T) -> T {
    let set = |option| {
        let _held = OPTIONS.lock().unwrap_or_else(PoisonError::into_inner);
        parse_options(&[option]);
    };
    let _alone = STRENGTH_REDUCTION.write().unwrap_or_else(PoisonError::into_inner);
    set("-disable-lsr=true");
    let written = write();
    set("-disable-lsr=false");
    written
}

/// Sets options that hold for the whole process; the last value of each counts.
fn parse_options(options: &[&str]) {
    let args: Vec<CString> = std::iter::once(&"tile")
        .chain(options)
        .map(|&arg| CString::new(arg).expect("invariant: literals have no NUL byte"))
        .collect();
    let pointers: Vec<_> = args.iter().map(|arg| arg.as_ptr()).collect();
    // SAFETY: the array holds as many NUL-terminated strings as the count says, and LLVM copies
    // them; `initialize` calls this once before anything else, the others while they hold `OPTIONS`.
    unsafe {
        inkwell::llvm_sys::support::LLVMParseCommandLineOptions(
            pointers.len() as i32,
            pointers.as_ptr(),
            std::ptr::null(),
        );
    }
}

/// The generator of code in one order, which LLVM takes from an option when it makes a generator.
fn target_machine(target: Target, order: Order) -> Result<TargetMachine, CodegenError> {
    let _held = OPTIONS.lock().unwrap_or_else(PoisonError::into_inner);
    parse_options(&[match order {
        Order::FewRegisters => "-nvptx-sched4reg=true",
        _ => "-nvptx-sched4reg=false",
    }]);
    let triple = TargetTriple::create(TRIPLE);
    let llvm_target = LlvmTarget::from_triple(&triple)
        .map_err(|error| failed("lacks the NVPTX target", &error.to_string()))?;
    llvm_target
        .create_target_machine(
            &triple,
            &target.virtual_arch().to_string(),
            PTX_FEATURE,
            OptimizationLevel::Aggressive,
            RelocMode::PIC,
            CodeModel::Default,
        )
        .ok_or_else(|| failed("does not know the architecture", &target.arch.to_string()))
}

/// Links the math library that comes with the CUDA toolkit; what is not called is dropped.
fn link_libdevice<'c>(
    context: &'c Context,
    module: &LlvmModule<'c>,
    path: &Path,
) -> Result<(), CodegenError> {
    let buffer = MemoryBuffer::create_from_file(path)
        .map_err(|error| failed("cannot read libdevice", &error.to_string()))?;
    let library = LlvmModule::parse_bitcode_from_buffer(&buffer, context)
        .map_err(|error| failed("cannot parse libdevice", &error.to_string()))?;
    library.set_triple(&module.get_triple());
    library.set_data_layout(&module.get_data_layout());
    let names: Vec<_> = library
        .get_functions()
        .filter(|function| function.count_basic_blocks() > 0)
        .map(|function| function.get_name().to_owned())
        .collect();
    module
        .link_in_module(library)
        .map_err(|error| failed("cannot link libdevice", &error.to_string()))?;
    for name in names {
        if let Some(function) = name.to_str().ok().and_then(|name| module.get_function(name)) {
            function.set_linkage(Linkage::Internal);
        }
    }
    Ok(())
}

/// The math library in the toolkit or Python package that `ptxas` is part of.
pub(crate) fn find_libdevice(ptxas: &Path) -> Option<PathBuf> {
    let ptxas = ptxas.canonicalize().ok()?;
    let root = ptxas.parent()?.parent()?;
    let places = ["nvvm/libdevice/libdevice.10.bc", "lib/libdevice.10.bc"];
    places.iter().map(|place| root.join(place)).find(|path| path.is_file())
}

/// The PTX without DWARF sections and labels, and without the `debug` target option, which would
/// switch the assembler's optimizer off; it makes the line table from the `.loc` directives alone.
fn without_dwarf(ptx: &str) -> String {
    let mut out = String::with_capacity(ptx.len());
    let mut in_section = false;
    for line in ptx.lines() {
        let text = line.trim();
        in_section |= text.starts_with(".section");
        let is_debug_label = ["$L__tmp", "$L__func_begin", "$L__func_end"]
            .iter()
            .any(|prefix| text.starts_with(prefix));
        let kept = !in_section && !is_debug_label && !text.starts_with("//") && !text.is_empty();
        in_section &= text != "}";
        if kept {
            let is_target = text.starts_with(".target");
            let line = if is_target { line.trim_end_matches(", debug") } else { line };
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}
