//! GPU IR to LLVM, PTX, machine code, resources and line map.
//!
//! ```text
//! tile IR ▶ GPU IR (tile_compiler::gpu) ▶ LLVM IR text ▶ LLVM ▶ PTX ▶ ptxas ▶ cubin, Resources
//! ```
//!
//! [`compile`] runs the whole path for one kernel under one specialization. This is the one crate
//! that links LLVM. It runs in worker processes only: LLVM can abort and the assembler can hang.

mod address;
mod anew;
mod apart;
mod counters;
mod depth_first;
mod distances;
mod error;
mod halves;
mod in_flight;
pub mod line_map;
mod llvm;
mod loops;
mod machine;
mod offsets;
mod orders;
mod predicates;
mod products;
pub mod ptxas;
mod quotients;
mod sass;
mod streams;
mod target;
mod tensor_maps;
mod together;
mod trials;

use std::path::{Path, PathBuf};
use std::time::Instant;

use tile_compiler::analysis::resources;
use tile_compiler::artifact::{Artifact, Keep, Manifest, ManifestParam, Timings};
use tile_compiler::gpu::limits::SmLimits;
use tile_compiler::gpu::shared::SharedPlan;
use tile_compiler::gpu::{self, GpuTarget};
use tile_compiler::ir::{Function, Inst, Opcode, Verified, verify};
use tile_compiler::passes;

use self::machine::Order;
use self::orders::{Printed, Waits, assemble_orders, better_of, bytes_in_flight};
use self::products::{FEWER_REGISTERS, Needs, with_fewer_registers};
use self::ptxas::Assembled;
use self::trials::Trials;

pub use error::CodegenError;
pub use target::{Arch, Target};

/// How to compile.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Texts to keep in the artifact besides PTX.
    pub keep: Keep,
    /// The assembler; without one the artifact ends at PTX. The math library that functions such
    /// as `log` need is looked for beside it.
    pub ptxas: Option<PathBuf>,
    /// The disassembler; without one the artifact has no SASS.
    pub nvdisasm: Option<PathBuf>,
}

/// Compiles a tile-level function.
///
/// # Errors
/// When the kernel needs what the target or this compiler lacks, when a tool is missing or fails,
/// or when a stage breaks its own invariants.
pub fn compile(
    func: &Function,
    target: Target,
    options: &Options,
) -> Result<Artifact, CodegenError> {
    let start = Instant::now();
    let gpu = lower(func, target, TooMuch::Refused)?;
    let passes_ms = milliseconds(start);
    let mut artifact = generate(verified("gpu", &gpu)?, target, options)?;
    artifact.timings.passes = passes_ms;
    Ok(artifact)
}

/// Compiles a tile-level function as far as GPU IR, for what that shows: an artifact without any
/// code. Where the IR is to be kept, it may take more shared memory than a block can have.
///
/// # Errors
/// As [`compile`].
pub fn inspect(func: &Function, target: Target, keep: Keep) -> Result<Artifact, CodegenError> {
    let gpu = lower(func, target, if keep.gpu { TooMuch::Shown } else { TooMuch::Refused })?;
    let manifest = manifest(&gpu, target, SharedPlan::new(&gpu)?.bytes());
    let has_products = resources::has_products(&gpu);
    let gpu_ir = if keep.gpu { gpu.to_string() } else { String::new() };
    Ok(Artifact { manifest, has_products, gpu_ir, ..Artifact::default() })
}

/// What becomes of a function that takes more shared memory than a block can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TooMuch {
    Refused,
    Shown,
}

/// The function at GPU level, unless it takes what no block can have: no time is spent on that.
fn lower(func: &Function, target: Target, too_much: TooMuch) -> Result<Function, CodegenError> {
    let mut tile = func.clone();
    passes::optimize(&mut tile).map_err(|(pass, errors)| CodegenError::Invalid { pass, errors })?;
    let tile = verified("front end", &tile)?;
    let Arch { capability, specific } = target.arch;
    let has_warp_groups = capability == 90 && specific;
    let gpu_target = GpuTarget { capability, has_warp_groups };
    let gpu = gpu::lower(tile, gpu_target)?;
    if too_much == TooMuch::Shown {
        return Ok(gpu);
    }
    let arch = target.arch.to_string();
    match resources::shared_memory(tile, gpu_target, &gpu, &arch)? {
        Some(over) => Err(CodegenError::SharedMemory { over: Box::new(over), arch }),
        None => Ok(gpu),
    }
}

fn generate(
    func: Verified<'_>,
    target: Target,
    options: &Options,
) -> Result<Artifact, CodegenError> {
    let start = Instant::now();
    let module = llvm::emit(func, target)?;
    let libdevice = options.ptxas.as_deref().and_then(machine::find_libdevice);
    let has_products = resources::has_products(&func);
    // Products have registers for other reasons, and their operands are read in the order written.
    let orders: &[Order] = match (&options.ptxas, has_products, has_loops(&func)) {
        (None, ..) | (_, true, false) => &[Order::Written],
        (_, true, true) => &[Order::Written, Order::PlainAddresses],
        (_, false, false) => &[Order::Written, Order::FewRegisters],
        (_, false, true) => &[Order::Written, Order::FewRegisters, Order::PlainAddresses],
    };
    let libdevice = libdevice.as_deref();
    // Of what is too long to be tried in several orders, the others are not even printed.
    let may_try = |written: &str| Trials::of(written, has_products).may_promise();
    let keep_llvm = options.keep.llvm;
    let generated = machine::generate(&module, target, libdevice, keep_llvm, orders, may_try)?;
    let mut printed: Vec<Printed> = Vec::new();
    for (&order, ptx) in orders.iter().zip(generated.ptx) {
        // Kernels with products have addresses that loops carry.
        let ptx = match has_products {
            true => ptx,
            false => counters::count_apart(&address::fuse_products(&ptx)),
        };
        let ptx = halves::join(&ptx);
        let other = match (order, has_products) {
            (Order::Written, true) if has_loops(&func) => {
                Some((Order::NarrowOffsets, offsets::narrow_in_loops(&ptx)))
            }
            (Order::Written, false) => Some((Order::DepthFirst, depth_first::order(&ptx))),
            _ => None,
        };
        for (order, ptx) in [(order, ptx)].into_iter().chain(other) {
            let (ptx, line_map) = line_map::relocate(&ptx, &func);
            if printed.iter().all(|other| other.ptx != ptx) {
                printed.push(Printed { order, ptx, line_map });
            }
        }
    }
    let mut artifact = Artifact {
        gpu_ir: if options.keep.gpu { func.to_string() } else { String::new() },
        llvm_line_map: line_map::of_llvm(&generated.llvm_ir, &func),
        llvm_ir: generated.llvm_ir,
        manifest: manifest(&func, target, module.shared_bytes),
        has_products,
        timings: Timings { llvm: milliseconds(start), ..Timings::default() },
        ..Artifact::default()
    };
    let wish = match func.options.max_registers {
        Some(_) => Wish::Nothing,
        None => Wish::of(&func),
    };
    let needs =
        (wish != Wish::Nothing && has(&func, &[Opcode::WarpGroupMma, Opcode::Mma])).then(|| {
            Needs {
                registers: gpu::pressure::registers(&func),
                are_all: module.has_steps,
                compares_behind: module.compares_behind,
            }
        });
    assemble(&mut artifact, printed, options, (wish, Waits::of(&func)), needs)?;
    Ok(artifact)
}

fn has_loops(func: &Function) -> bool {
    has(func, &[Opcode::For, Opcode::While])
}

fn has(func: &Function, opcodes: &[Opcode]) -> bool {
    func.walk().iter().any(|&inst: &Inst| opcodes.contains(&func.insts[inst].opcode))
}

/// What the assembler is asked for beyond what it does by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    Nothing,
    /// So many registers for loads, see [`streams`].
    Loads(u32),
    /// One CTA more on each multiprocessor: where one waits for a product, another multiplies. The
    /// assembler takes registers freely up to the next limit that it knows of. Else as [`Wish::Fit`].
    Block,
    /// The CTAs that fit a multiprocessor anyway. The assembler knows of no shared memory that is given
    /// at launch, and without a number of CTAs it weighs registers against a CTA more that never comes.
    /// Measured on an H100, 45 products take 0.94 to 1.012 times as long, 0.9965 in the mean.
    Fit,
    /// A quarter of the CTAs less on each multiprocessor, and more registers for each: a reduction
    /// waits for the last load, so that more loads at once are worth more than more warps. Measured on
    /// an H200, kernels that reduce rows once take 0.98 to 1.01 times as long, loops that reduce 0.7 to
    /// 1.0 times. Loops so short that a multiprocessor is full of warps need all of them, though.
    Room {
        in_loops: bool,
    },
    /// So many registers that all loads are on their way at once, where a reduction waits for the last of
    /// them and a multiprocessor is full of warps: fewer of these are worth it only if they read earlier. On
    /// an H100, groups of 128 numbers that each get a scale take 0.996 times as long so, and 1.004 with a
    /// quarter of the CTAs less that read no earlier. With two CTAs of the four that fit, sums of 44
    /// tensors whose rows are reduced take 1.2 times as long on an H200.
    AllLoads(u32),
    /// As many CTAs on each multiprocessor as may be: others keep the memory busy while one waits.
    Blocks {
        /// Code may grow by one part in so many, for what is computed again costs time too.
        growth: u64,
        /// Whether they may fill a multiprocessor with warps. Those of a reduction that runs once wait for each
        /// other, and have hardly any registers then: sums of gradients take 1.03 times as long so on an H100 and on an
        /// H200, rows that are normalized and quantized 1.013 times on an H200, normalized sums 1.02 times there and 0.998
        /// times on an H100.
        may_fill: bool,
    },
}

/// Where a kernel waits for memory but once, its instructions are as much of its time: by so much
/// may they grow for [`Wish::Blocks`].
const GROWTH_ONCE: u64 = 32;

/// Loops wait in every iteration: they may grow by more.
const GROWTH_IN_LOOPS: u64 = 8;

/// Whether a product that leaves room for another CTA issues so many more instructions with `other` that it is no gain:
/// on an H200, one of 64 x 64 elements whose rows wrap around took 1.12 times as long by four CTAs that issue 1.22 times
/// as many, and attention takes 0.82 times as long by two that issue 1.03 times as many.
fn lengthens(manifest: &Manifest, plain: &Assembled, other: &Assembled) -> bool {
    /// By what part it may issue more.
    const GROWTH: u64 = 8;
    orders::work_of(manifest, plain, other)
        .is_some_and(|(plain, other)| other.all > plain.all + plain.all / GROWTH)
}

/// Whether a kernel of so many registers can do with `limit`; with fewer it would spill.
fn can_lose(registers: u32, limit: u32) -> bool {
    registers <= limit + limit / 4
}

impl Wish {
    fn of(func: &Function) -> Wish {
        let has = |opcodes: &[Opcode]| has(func, opcodes);
        let in_loops = has_loops(func);
        if let Some(room) = streams::room(func) {
            Wish::Loads(room)
        } else if has(&[Opcode::WarpGroupMma]) {
            Wish::Block
        } else if resources::has_products(func) {
            Wish::Fit
        } else if streams::has_map(func) {
            Wish::Blocks { growth: GROWTH_IN_LOOPS, may_fill: true }
        } else if has(&[Opcode::Reduce])
            && !has(&[Opcode::Scan])
            && (in_loops || streams::loads_fill_registers(func))
        {
            Wish::Room { in_loops }
        } else if in_loops {
            Wish::Nothing
        } else {
            Wish::Blocks { growth: GROWTH_ONCE, may_fill: !has(&[Opcode::Reduce]) }
        }
    }

    /// Whether `other`, which was assembled with what is wished for, takes the place of `plain`.
    fn accepts(self, manifest: &Manifest, plain: &Assembled, other: &Assembled) -> bool {
        /// Code comes in units of this many bytes.
        const UNIT: u64 = 128;
        let grows = |most: u64| {
            let [plain, other] = [plain, other].map(Assembled::code_bytes);
            plain.zip(other).is_none_or(|(plain, other)| other > plain + UNIT.max(plain / most))
        };
        other.report.spill_store_bytes <= plain.report.spill_store_bytes
            && match self {
                Wish::Blocks { growth, .. } => {
                    !grows(growth) && !self.delays(manifest, plain, other)
                }
                Wish::Room { .. } => {
                    other.report.registers > plain.report.registers && !grows(u64::MAX)
                }
                Wish::AllLoads(_) => {
                    let [plain, other] = [plain, other].map(|it| bytes_in_flight(manifest, it));
                    other > plain
                }
                Wish::Block | Wish::Fit => !lengthens(manifest, plain, other),
                Wish::Nothing | Wish::Loads(_) => true,
            }
    }

    /// Whether loops take so much longer with `other` that more CTAs are no gain. On an H200, losses of rows with their
    /// gradients take 0.98 times as long in bf16 and 1.000 times in f32 with fewer CTAs, on an H100 0.999 and 1.002 times.
    fn delays(self, manifest: &Manifest, plain: &Assembled, other: &Assembled) -> bool {
        /// By what part a warp may be through a kernel later.
        const DELAY: u64 = 16;
        let cycles = orders::cycles_of(manifest, plain, other);
        matches!(self, Wish::Blocks { growth: GROWTH_IN_LOOPS, .. })
            && cycles.is_some_and(|(plain, other)| other.all > plain.all + plain.all / DELAY)
    }

    /// The wish for a kernel of which is known how many registers it takes by itself, and how many more its
    /// loads would need at once.
    fn settled(self, limits: &SmLimits, manifest: &Manifest, registers: u32, loads: u32) -> Wish {
        let Manifest { num_warps, shared_bytes, .. } = manifest;
        let (resident, _) = limits.resident_blocks(*num_warps, registers, *shared_bytes);
        let is_full = is_full(limits, *num_warps, resident);
        match self {
            Wish::Room { in_loops: false } if loads > 0 && is_full => {
                Wish::AllLoads(registers + loads)
            }
            wish => wish,
        }
    }

    /// The wish for a kernel that was assembled without.
    fn settled_for(self, manifest: &Manifest, assembled: &Assembled) -> Wish {
        let loads = assembled.bytes_left_for_later().div_ceil(4);
        let registers = assembled.report.registers;
        let settle = |limits| self.settled(limits, manifest, registers, loads);
        SmLimits::of(&manifest.arch).map_or(self, settle)
    }

    /// Whether nothing that is accepted takes fewer registers.
    fn only_adds_registers(self) -> bool {
        matches!(self, Wish::Nothing | Wish::Room { .. })
    }

    /// The CTAs to ask for, given a report on the kernel as it was assembled without.
    fn blocks(self, limits: &SmLimits, manifest: &Manifest, registers: u32) -> Option<u32> {
        /// Warps that keep the matrix units busy: with so many there, more gain nothing.
        const ENOUGH_WARPS: u32 = 16;
        /// Where the assembler left so many registers of a full multiprocessor unused, it uses no more
        /// when it may: with ptxas 12.9, none of 42 such kernels of published packages did.
        const SPARE: u32 = 5;
        /// CTAs that keep the memory busy while some of them wait for their last loads.
        const FEWEST: u32 = 4;
        let Manifest { num_warps, shared_bytes, .. } = manifest;
        let (resident, _) = limits.resident_blocks(*num_warps, registers, *shared_bytes);
        match self {
            Wish::Nothing => None,
            Wish::Loads(room) => {
                streams::blocks_with_room(num_warps * 32, limits.warps, registers, room)
            }
            Wish::Room { in_loops } => {
                let is_full = is_full(limits, *num_warps, resident);
                let (with_spare, _) =
                    limits.resident_blocks(*num_warps, registers + SPARE, *shared_bytes);
                let has_enough = is_full && (in_loops || with_spare == resident);
                let fewer = (3 * resident).div_ceil(4);
                (fewer < resident && !has_enough).then_some(fewer)
            }
            Wish::AllLoads(needed) => {
                let (fewer, _) = limits.resident_blocks(*num_warps, needed, *shared_bytes);
                (FEWEST..resident).contains(&fewer).then_some(fewer)
            }
            Wish::Block => {
                let waits = resident * num_warps < ENOUGH_WARPS;
                let mut more = limits.more_blocks(*num_warps, registers, *shared_bytes);
                let one_more =
                    more.next().filter(|&(_, limit)| waits && can_lose(registers, limit));
                one_more
                    .map(|(blocks, _)| blocks)
                    .or_else(|| Wish::Fit.blocks(limits, manifest, registers))
            }
            // One CTA may have all registers anyway.
            Wish::Fit => (resident > 1).then_some(resident),
            Wish::Blocks { may_fill, .. } => {
                let more = limits.more_blocks(*num_warps, registers, *shared_bytes);
                more.take_while(|&(_, limit)| can_lose(registers, limit))
                    .map(|(blocks, _)| blocks)
                    .last()
                    .filter(|&blocks| may_fill || !is_full(limits, *num_warps, blocks))
            }
        }
    }
}

/// Whether a multiprocessor has room for no more than `resident` CTAs, whatever they take. On an H100, rows of entmax and
/// their gradients by CTAs of one warp take 0.91 to 0.97 times what they do under Triton with as many CTAs as may be, where
/// it was 1.04 to 1.11 on an H200 with registers for three quarters of them.
fn is_full(limits: &SmLimits, num_warps: u32, resident: u32) -> bool {
    resident * num_warps >= limits.warps || resident >= limits.blocks
}

/// The PTX of a kernel of which `blocks` CTAs of `threads` are to fit a multiprocessor.
fn with_blocks(ptx: &str, threads: u32, blocks: u32) -> Option<String> {
    with_directive(ptx, threads, &format!(".minnctapersm {blocks}"))
}

/// The PTX of a kernel of `threads` with one more directive.
fn with_directive(ptx: &str, threads: u32, directive: &str) -> Option<String> {
    let size = format!(".reqntid {threads}, 1, 1");
    // On the same line: the map of lines stays true.
    ptx.contains(&size).then(|| ptx.replacen(&size, &format!("{size} {directive}"), 1))
}

/// Assembles PTX, and what is wished for if that needs no more spills and fulfils the wish's other
/// terms.
fn assemble_order(
    tool: &Path,
    manifest: &Manifest,
    wish: Wish,
    printed: &mut Printed,
) -> Result<Assembled, CodegenError> {
    let assembled = assemble_plain(tool, manifest, printed)?;
    let wish = wish.settled_for(manifest, &assembled);
    Ok(assemble_wish(tool, manifest, wish, printed, assembled))
}

/// Assembles PTX as it is.
fn assemble_plain(
    tool: &Path,
    manifest: &Manifest,
    printed: &Printed,
) -> Result<Assembled, CodegenError> {
    let assembled = ptxas::assemble(tool, &printed.ptx, &manifest.arch);
    Ok(assembled.map_err(|error| error.at_sources(&printed.line_map))?)
}

/// What is wished for, if it can be had, else what was `assembled` without.
fn assemble_wish(
    tool: &Path,
    manifest: &Manifest,
    wish: Wish,
    printed: &mut Printed,
    assembled: Assembled,
) -> Assembled {
    let Manifest { arch, num_warps, .. } = manifest;
    let blocks = SmLimits::of(arch)
        .and_then(|limits| wish.blocks(limits, manifest, assembled.report.registers))
        .and_then(|blocks| with_blocks(&printed.ptx, num_warps * 32, blocks));
    if let Some(ptx) = blocks {
        // It is refused where single instructions need more registers.
        if let Ok(other) = ptxas::assemble(tool, &ptx, arch)
            && wish.accepts(manifest, &assembled, &other)
        {
            printed.ptx = ptx;
            return other;
        }
    }
    assembled
}

/// Fills in PTX, machine code, resources and SASS, as far as tools are at hand. Of the orders in
/// `printed` the first is the one that is written.
fn assemble(
    artifact: &mut Artifact,
    mut printed: Vec<Printed>,
    options: &Options,
    (wish, waits): (Wish, Waits),
    needs: Option<Needs>,
) -> Result<(), CodegenError> {
    let Some(tool) = options.ptxas.as_deref() else {
        let Printed { ptx, line_map, .. } = printed.swap_remove(0);
        (artifact.ptx, artifact.line_map) = (ptx, line_map);
        return Ok(());
    };
    let start = Instant::now();
    let manifest = &artifact.manifest;
    let mut trials = Trials::of(&printed[0].ptx, artifact.has_products);
    let depth_first = printed.iter().position(|it| it.order == Order::DepthFirst);
    let depth_first = depth_first.map(|at| printed.remove(at));
    // Loops that multiply issue instructions all the time. Others wait for memory, and gain by shorter
    // ones only where they wait for spilled values too: one on an H100 took 1.3 times as long otherwise.
    let (mut orders, mut plain): (Vec<_>, Vec<_>) = printed
        .into_iter()
        .partition(|it| it.order != Order::PlainAddresses || artifact.has_products);
    // Products gain most by fewer registers. One order beside the first takes hardly longer than that alone.
    let beside = if needs.is_some() { FEWER_REGISTERS } else { 0 };
    let others = trials.take_beside(beside, orders.len() - 1);
    orders[1..].sort_by_key(|it| it.order != Order::PlainAddresses);
    orders.truncate(1 + others.max(usize::from(trials.may_promise())));
    let mut orders = assemble_orders(tool, manifest, wish, orders).into_iter();
    let (first, written) = orders.next().expect("invariant: PTX is printed in some order");
    let choose = |best, other| better_of(manifest, waits, best, other);
    let mut best = orders.fold((first, written?), choose);
    if best.1.report.spill_load_bytes > 0 {
        plain.truncate(trials.take(plain.len()));
        best = assemble_orders(tool, manifest, wish, plain).into_iter().fold(best, choose);
    }
    if let Some(printed) = depth_first
        && trials.take(1) == 1
    {
        best = orders::or_depth_first(tool, manifest, (wish, waits), printed, best);
    }
    if let Some(needs) = needs {
        best = with_fewer_registers(tool, manifest, needs, &mut trials, best);
        if needs.compares_behind {
            best = apart::or_apart(tool, manifest, wish, needs, &mut trials, best);
        }
        best = anew::or_anew(tool, manifest, &trials, best);
    }
    best = quotients::or_shared(tool, manifest, &mut trials, best);
    if !artifact.has_products {
        best = together::or_together(tool, manifest, &mut trials, best);
    }
    let (chosen, assembled) = best;
    let Manifest { arch, num_warps, shared_bytes, .. } = manifest;
    artifact.resources = assembled.report.resources(tool, arch, *num_warps, *shared_bytes);
    artifact.timings.ptxas = milliseconds(start);
    if let (true, Some(tool)) = (options.keep.sass, options.nvdisasm.as_deref()) {
        artifact.sass = Some(sass::disassemble(tool, &assembled.cubin)?);
    }
    (artifact.ptx, artifact.line_map) = (chosen.ptx, chosen.line_map);
    artifact.cubin = Some(assembled.cubin);
    Ok(())
}

fn verified<'f>(pass: &'static str, func: &'f Function) -> Result<Verified<'f>, CodegenError> {
    verify(func).map_err(|errors| CodegenError::Invalid { pass, errors })
}

fn manifest(func: &Function, target: Target, shared_bytes: u32) -> Manifest {
    let params = func.params.iter().map(|param| ManifestParam {
        name: param.name.to_string(),
        ty: param.signature.to_string(),
    });
    Manifest {
        entry: func.name.to_string(),
        arch: target.arch.to_string(),
        params: params.collect(),
        num_warps: func.options.num_warps,
        block: [func.options.num_warps * 32, 1, 1],
        shared_bytes,
        cluster: [1, 1, 1],
        scratch_bytes: 0,
        tensor_maps: tensor_maps::of(func),
    }
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_asked_for_on_the_line_of_the_size() {
        let ptx = ".entry k()\n.reqntid 256, 1, 1\n{\n}";
        let asked = with_blocks(ptx, 256, 5).expect("the size is there");
        assert_eq!(asked, ".entry k()\n.reqntid 256, 1, 1 .minnctapersm 5\n{\n}");
    }

    #[test]
    fn products_ask_for_a_block_that_few_registers_keep_out() {
        let limits = SmLimits::of("sm_90a").expect("it is listed");
        let manifest = Manifest { num_warps: 8, shared_bytes: 98_304, ..Manifest::default() };
        assert_eq!(Wish::Block.blocks(limits, &manifest, 142), Some(2));
        assert_eq!(Wish::Block.blocks(limits, &manifest, 200), None);
        assert_eq!(Wish::Nothing.blocks(limits, &manifest, 142), None);
    }

    #[test]
    fn products_say_how_many_blocks_fit() {
        let limits = SmLimits::of("sm_90a").expect("it is listed");
        let manifest = Manifest { num_warps: 8, shared_bytes: 98_304, ..Manifest::default() };
        assert_eq!(Wish::Fit.blocks(limits, &manifest, 120), Some(2));
        assert_eq!(
            Wish::Block.blocks(limits, &manifest, 120),
            Some(2),
            "shared memory is in the way"
        );
        assert_eq!(Wish::Fit.blocks(limits, &manifest, 142), None, "one is all that fits");
    }

    #[test]
    fn fewer_blocks_are_asked_for_where_threads_meet() {
        let limits = SmLimits::of("sm_90a").expect("it is listed");
        let manifest = Manifest { num_warps: 8, ..Manifest::default() };
        let [once, in_loops] = [false, true].map(|in_loops| Wish::Room { in_loops });
        assert_eq!(once.blocks(limits, &manifest, 32), Some(6));
        assert_eq!(once.blocks(limits, &manifest, 28), Some(6));
        assert_eq!(once.blocks(limits, &manifest, 26), None, "registers are left over");
        assert_eq!(in_loops.blocks(limits, &manifest, 32), None, "all warps are there");
        assert_eq!(in_loops.blocks(limits, &manifest, 48), Some(4));
        assert_eq!(once.blocks(limits, &manifest, 200), None, "one CTA is all that fits");
        assert_eq!(once.settled(limits, &manifest, 40, 0), once);
        assert_eq!(in_loops.settled(limits, &manifest, 40, 0), in_loops);
        let of_a_warp = Manifest { num_warps: 1, ..Manifest::default() };
        assert_eq!(in_loops.blocks(limits, &of_a_warp, 64), None, "all CTAs are there");
        assert_eq!(in_loops.blocks(limits, &of_a_warp, 72), Some(21));
    }

    #[test]
    fn reductions_ask_for_registers_for_the_loads_that_are_left_for_later() {
        let limits = SmLimits::of("sm_90a").expect("it is listed");
        let manifest = Manifest { num_warps: 4, ..Manifest::default() };
        let [once, in_loops] = [false, true].map(|in_loops| Wish::Room { in_loops });
        assert_eq!(once.settled(limits, &manifest, 32, 16), Wish::AllLoads(48));
        assert_eq!(once.settled(limits, &manifest, 72, 16), once, "there is room for warps");
        assert_eq!(in_loops.settled(limits, &manifest, 32, 16), in_loops);
        assert_eq!(Wish::AllLoads(48).blocks(limits, &manifest, 32), Some(10));
        assert_eq!(Wish::AllLoads(34).blocks(limits, &manifest, 34), None, "as many fit anyway");
        let of_many_warps = Manifest { num_warps: 16, ..Manifest::default() };
        assert_eq!(Wish::AllLoads(64).blocks(limits, &of_many_warps, 32), None, "two are too few");
    }

    #[test]
    fn kernels_that_wait_once_ask_for_all_blocks_that_few_registers_keep_out() {
        let limits = SmLimits::of("sm_90a").expect("it is listed");
        let manifest = Manifest { num_warps: 4, ..Manifest::default() };
        let blocks = Wish::Blocks { growth: GROWTH_ONCE, may_fill: true };
        assert_eq!(blocks.blocks(limits, &manifest, 39), Some(16));
        assert_eq!(blocks.blocks(limits, &manifest, 48), Some(12));
        assert_eq!(blocks.blocks(limits, &manifest, 32), None);
        let reduces = Wish::Blocks { growth: GROWTH_ONCE, may_fill: false };
        assert_eq!(reduces.blocks(limits, &manifest, 39), None, "a multiprocessor would be full");
        assert_eq!(reduces.blocks(limits, &manifest, 48), Some(12));
    }
}
