//! Tile IR to GPU IR: every tile gets a layout, and everything that layouts imply is made explicit.
//!
//! The passes, in order:
//!
//! | pass | what it does |
//! |---|---|
//! | [`warp_groups`] | gives kernels that ask for warp specialization a second warp group |
//! | [`scaled`] | spells out products of block-scaled operands |
//! | [`precision`] | spells out products that the matrix units do not have |
//! | [`invariants`] | begins addresses and masks with what loops leave alone |
//! | [`coalesce`] | gives each memory access the layout that moves the most bytes per instruction |
//! | [`product`] | picks the instruction of each matrix product, and its layouts |
//! | [`assign`] | spreads these layouts to all other values |
//! | [`rebuild`] | writes the function anew at GPU level, with conversions where layouts meet |
//! | [`operands`] | brings operands to matrix products, as part of `rebuild` |
//! | common subexpressions, dead code | as at tile level |
//! | [`merge`] | keeps one buffer for each tile that several would hold |
//! | [`held`] | reads operands from their buffers in loops where registers run short |
//! | [`early_stores`] | puts operands of later products into their buffers before earlier ones |
//! | [`pipeline`] | copies operands of products asynchronously, iterations ahead |
//! | [`bulk`] | which of them the bulk copy engine copies, as part of `pipeline` |
//! | [`in_flight`] | keeps products in flight across iterations, as part of `pipeline` |
//! | [`late_reads`] | reads tiles from stages behind the products that do not need them |
//! | [`direct`] | reads tiles from buffers in the layouts in which they are used |
//! | [`loads_first`] | issues loads before work that waits for others |
//! | [`copies`] | copies tiles straight into the buffers that they are loaded for |
//! | [`anew`] | computes addresses anew behind loops of products, which need the registers |
//! | [`bulk_store`] | has the bulk copy engine write runs of memory |
//! | [`barrier`] | makes threads wait where they meet in shared buffers |
//!
//! Beside them, [`beside`] lays out tiles that follow no anchor, [`shared`] plans where buffers and exchanges lie
//! in shared memory, [`steps`] says how far elements usually lie apart, [`exchange`] what carries an axis in a
//! layout, [`pressure`] how many registers tiles take, and [`limits`] what a multiprocessor of each architecture has.

pub mod accumulate;
pub mod anew;
pub mod arch;
mod assign;
mod barrier;
mod beside;
pub mod bulk;
mod bulk_store;
pub mod coalesce;
mod copies;
mod direct;
mod early;
mod early_stores;
pub mod exchange;
pub mod flip;
mod held;
mod in_flight;
mod invariants;
mod late_reads;
pub mod limits;
mod loads_first;
mod merge;
mod operands;
mod pipeline;
pub mod precision;
pub mod pressure;
pub mod product;
mod propagate;
mod rebuild;
pub mod scaled;
pub mod shared;
mod steps;
mod warp_groups;

use thiserror::Error;

use self::limits::SmLimits;
use self::pipeline::EarlyLoads;
use self::shared::SharedPlan;
use crate::ir::{Function, Opcode, Type, Verified, VerifyError, verify};
use crate::layout::LayoutError;
use crate::passes;

/// Threads of a warp.
pub(crate) const LANES: usize = 32;

/// Registers of a thread in kernels with matrix products, as far as their number is asked for before
/// it is known.
const TYPICAL_REGISTERS: u32 = 128;

/// CTAs of a multiprocessor beyond which early loads hide more than further CTAs.
const ENOUGH_CTAS: u32 = 2;

/// Warps of a multiprocessor that hide from each other what loads take. With fewer, early loads hide more
/// than further CTAs: measured on an H200, a product of 4-bit numbers by four warps that need 240 registers
/// takes 0.64 times as long with one CTA and early loads as with two CTAs without, and one by eight warps
/// that need 128 takes 1.1 times as long.
const ENOUGH_WARPS: u32 = 16;

/// The first compute capability with asynchronous copies to shared memory (`cp.async`).
pub const ASYNC_COPIES: u32 = 80;

/// The most 32-bit registers of each thread that one tile may take: four times what a thread has.
/// Beyond that the assembler takes minutes, to move all of it through local memory.
const MAX_TILE_WORDS: usize = 1024;

/// Whether some tile of a function at the level of tiles takes more registers than can be compiled.
pub(crate) fn has_too_large_tile(func: &Function) -> bool {
    let most = MAX_TILE_WORDS * 32 * threads(func.options.num_warps);
    let bits = |ty: &Type| ty.elem().map_or(0, |elem| ty.numel() * elem.bits() as usize);
    func.values.values().any(|value| bits(&value.ty) > most)
}

/// The most elements of a tile whose shape is free to choose: half of a thread's registers hold its share.
pub(crate) fn most_elements(num_warps: u32) -> usize {
    128 * threads(num_warps)
}

fn threads(num_warps: u32) -> usize {
    LANES * num_warps as usize
}

/// Why a function has no GPU IR.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LowerError {
    /// A tile's shape or the launch options allow no layout.
    #[error("no layout for a tile of this kernel: {0}")]
    Layout(#[from] LayoutError),
    /// An operation that this target cannot do.
    #[error("`{opcode}` is not supported on GPUs yet: {reason}")]
    Unsupported {
        /// The operation.
        opcode: Opcode,
        /// What is missing.
        reason: String,
    },
    /// A tile that no thread can hold its share of.
    #[error(
        "out of resource: registers: a {tile} takes {words} registers of each thread at \
         {num_warps} warps, and {MAX_TILE_WORDS} are the most that can be compiled; smaller tiles \
         or more warps help"
    )]
    TileTooLarge {
        /// The tile's type.
        tile: String,
        /// 32-bit registers of each thread that it takes.
        words: usize,
        /// The launch option.
        num_warps: u32,
    },
    /// A pass broke an invariant: a bug of this compiler.
    #[error("internal error: the pass `{pass}` broke the function: {errors:?}")]
    Invalid {
        /// The pass.
        pass: &'static str,
        /// What does not hold.
        errors: Vec<VerifyError>,
    },
}

/// The part of the target that layouts depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GpuTarget {
    /// Compute capability as one number: 80, 90, ...
    pub capability: u32,
    /// Whether there are matrix instructions of warp groups (`wgmma`), and bulk copies of what they read,
    /// as sm_90a has.
    pub has_warp_groups: bool,
}

/// Lowers a verified tile-level function.
///
/// # Errors
/// When a tile has no layout or an operation is not supported on the target.
pub fn lower(func: Verified<'_>, target: GpuTarget) -> Result<Function, LowerError> {
    let mut expanded = func.function().clone();
    accumulate::accumulate(&mut expanded);
    if !target.has_warp_groups {
        bulk::forget_tensors(&mut expanded);
    }
    warp_groups::add_second(&mut expanded, target);
    scaled::expand(&mut expanded);
    precision::expand(&mut expanded, target);
    invariants::put_first(&mut expanded);
    let func = verified("invariants", &expanded)?;
    let anchors = coalesce::choose(&func)?;
    let layouts = assign::assign(&func, anchors, target)?;
    let mut lowered = rebuild::rebuild(&func, &layouts, target)?;
    check("rebuild", &lowered)?;
    check_sizes(&lowered)?;
    passes::eliminate_common_subexpressions(&mut lowered);
    passes::eliminate_dead_code(&mut lowered);
    check("cleanup", &lowered)?;
    merge::merge(&mut lowered);
    held::release(&mut lowered);
    passes::eliminate_dead_code(&mut lowered);
    check("merge and held", &lowered)?;
    let mut lowered = brought(lowered, target)?;
    direct::read_directly(&mut lowered)?;
    passes::eliminate_common_subexpressions(&mut lowered);
    passes::eliminate_dead_code(&mut lowered);
    check("pipeline", &lowered)?;
    let mut lowered = with_loads_first(lowered, target)?;
    check("loads_first and copies", &lowered)?;
    anew::compute_anew(&mut lowered);
    passes::eliminate_dead_code(&mut lowered);
    check("anew", &lowered)?;
    let mut lowered = with_bulk_stores(lowered, target)?;
    check("bulk_store", &lowered)?;
    barrier::insert(&mut lowered);
    check("barrier", &lowered)?;
    Ok(lowered)
}

/// `func` scheduled, with bulk copies where these leave room for as many CTAs: mbarriers take shared memory.
/// On an H100, one kernel of attention takes 0.82 to 0.85 times as long with bulk copies by two CTAs, and 1.19
/// times by one.
fn brought(mut func: Function, target: GpuTarget) -> Result<Function, LowerError> {
    let in_bulk = scheduled(func.clone(), target)?;
    let has_bulk_copies =
        in_bulk.walk().iter().any(|&inst| in_bulk.insts[inst].opcode == Opcode::BulkCopy);
    let mut chosen = in_bulk;
    if has_bulk_copies {
        bulk::forget_tensors(&mut func);
        let plain = scheduled(func, target)?;
        if has_fewer_ctas(&chosen, &plain, target)? {
            chosen = plain;
        }
    }
    bulk::forget_tensors(&mut chosen);
    Ok(chosen)
}

/// `func` with its loops pipelined, and with operands stored early, where tiles take many registers,
/// that saves barriers and it leaves room for as many CTAs. With registers to spare, operands of later
/// products are better on their way while earlier ones run: on an H200, such kernels take up to 1.07
/// times as long with early stores, the others 0.75 to 1.0 times.
fn scheduled(func: Function, target: GpuTarget) -> Result<Function, LowerError> {
    let mut early = func.clone();
    if !early_stores::store_early(&mut early) {
        return pipelined(func, target);
    }
    let late = pipelined(func, target)?;
    let limits = SmLimits::of_capability(target.capability);
    let Some(limits) = limits.filter(|_| pressure::registers(&late) >= TYPICAL_REGISTERS) else {
        return Ok(late);
    };
    let early = pipelined(early, target)?;
    let ctas = |func: &Function| resident(func, limits, pressure::registers(func));
    let saves = barrier::count(&early) < barrier::count(&late);
    Ok(if saves && ctas(&early)? >= ctas(&late)? { early } else { late })
}

/// `func` with its loops pipelined, with fewer stages where all of them do not fit shared memory, so that
/// what fits under Triton fits. It has a buffer less than stages unless warp groups multiply, and fewer
/// where addresses are loaded; and it has no second buffers, for operands in the order that warp groups
/// read, since it copies each element there.
fn pipelined(func: Function, target: GpuTarget) -> Result<Function, LowerError> {
    let all = with_stages(func.clone(), target)?;
    let Some(limits) = SmLimits::of_capability(target.capability) else { return Ok(all) };
    let fits = |func: &Function, without: u32| -> Result<bool, LowerError> {
        let bytes = SharedPlan::new(func)?.bytes().saturating_sub(without);
        let warps = func.options.num_warps;
        Ok(limits.resident_blocks(warps, TYPICAL_REGISTERS, bytes).0 > 0)
    };
    let has_warp_groups =
        func.walk().iter().any(|&inst| func.insts[inst].opcode == Opcode::WarpGroupMma);
    if fits(&all, 0)? {
        return if has_warp_groups { Ok(all) } else { with_room(func, all, limits, target) };
    }
    let more = u32::from(has_warp_groups && !fits(&all, shared::second_bytes(&all))?);
    for spared in 1.. {
        let mut fewer = func.clone();
        if !pipeline::spare_stages(&mut fewer, spared, more) {
            break;
        }
        let fewer = with_stages(fewer, target)?;
        if fits(&fewer, 0)? {
            return Ok(fewer);
        }
    }
    Ok(all)
}

/// `all`, `func` with all of its stages, or with a stage less where a multiprocessor has but one CTA of few
/// warps with them, and room for another one without. On an H200, exact products
/// of 128 x 128 elements by four warps, in blocks of experts, take 0.64 to 0.79 times as long so.
fn with_room(
    func: Function,
    all: Function,
    limits: &SmLimits,
    target: GpuTarget,
) -> Result<Function, LowerError> {
    let ctas = |func: &Function| resident(func, limits, pressure::registers(func));
    let is_alone = ctas(&all)? == 1 && func.options.num_warps < ENOUGH_WARPS;
    let mut fewer = func;
    if !is_alone || fewer.options.num_stages < 3 || !pipeline::spare_stages(&mut fewer, 1, 0) {
        return Ok(all);
    }
    let fewer = with_stages(fewer, target)?;
    Ok(if ctas(&fewer)? > ctas(&all)? { fewer } else { all })
}

/// `func` with its loops pipelined, and what its stages hold read late where registers run short.
fn with_stages(func: Function, target: GpuTarget) -> Result<Function, LowerError> {
    let mut staged = with_early_loads(func, target)?;
    if pressure::exceeds_registers(&staged) {
        late_reads::read_late(&mut staged);
    }
    Ok(staged)
}

/// `func` with its loops pipelined: loads that products use from registers are issued early as well
/// where there are asynchronous copies, and where their buffers leave room for as many CTAs, or for
/// enough of them: these hide what loads take.
fn with_early_loads(func: Function, target: GpuTarget) -> Result<Function, LowerError> {
    let mut fewer = func.clone();
    let limits = SmLimits::of_capability(target.capability);
    if let Some(limits) = limits.filter(|_| target.capability >= ASYNC_COPIES) {
        let mut all = func;
        let has_more = pipeline::pipeline(&mut all, EarlyLoads::OfOperands);
        if !has_more {
            return Ok(all);
        }
        pipeline::pipeline(&mut fewer, EarlyLoads::OfBuffers);
        let ctas = |func: &Function| resident(func, limits, TYPICAL_REGISTERS);
        let enough = ctas(&fewer)?.clamp(1, ctas_before_early_loads(&fewer, limits)?);
        return Ok(if ctas(&all)? >= enough { all } else { fewer });
    }
    pipeline::pipeline(&mut fewer, EarlyLoads::OfBuffers);
    Ok(fewer)
}

/// The CTAs of a multiprocessor that are worth more than early loads, if so many fit.
fn ctas_before_early_loads(func: &Function, limits: &SmLimits) -> Result<u32, LowerError> {
    // The assembler makes do with a fifth less than tiles seem to need.
    let registers = pressure::registers(func) * 4 / 5;
    let warps = resident(func, limits, registers)? * func.options.num_warps;
    Ok(if warps < ENOUGH_WARPS { 1 } else { ENOUGH_CTAS })
}

/// `func` with its loads first, where the tiles that wait for their use take few registers and leave
/// room for as many CTAs.
fn with_loads_first(func: Function, target: GpuTarget) -> Result<Function, LowerError> {
    let mut first = func.clone();
    let any = loads_first::load_first(&mut first);
    let func = with_copies(func, target)?;
    if !any {
        return Ok(func);
    }
    let first = with_copies(first, target)?;
    let few = pressure::registers(&func).max(TYPICAL_REGISTERS);
    let fits = pressure::registers(&first) <= few && !has_fewer_ctas(&first, &func, target)?;
    Ok(if fits { first } else { func })
}

/// `func` with tiles copied straight into their buffers, where that leaves room for as many CTAs.
fn with_copies(func: Function, target: GpuTarget) -> Result<Function, LowerError> {
    let mut copied = func.clone();
    if target.capability < ASYNC_COPIES || !copies::copy(&mut copied) {
        return Ok(func);
    }
    Ok(if has_fewer_ctas(&copied, &func, target)? { func } else { copied })
}

/// `func` with runs of memory written in bulk, where that leaves room for as many CTAs.
fn with_bulk_stores(func: Function, target: GpuTarget) -> Result<Function, LowerError> {
    let mut in_bulk = func.clone();
    if !target.has_warp_groups || !bulk_store::store_in_bulk(&mut in_bulk) {
        return Ok(func);
    }
    Ok(if has_fewer_ctas(&in_bulk, &func, target)? { func } else { in_bulk })
}

/// Whether fewer CTAs of `func` fit a multiprocessor than of `other`.
fn has_fewer_ctas(
    func: &Function,
    other: &Function,
    target: GpuTarget,
) -> Result<bool, LowerError> {
    let Some(limits) = SmLimits::of_capability(target.capability) else { return Ok(true) };
    let ctas = |func: &Function| resident(func, limits, pressure::registers(func));
    Ok(ctas(func)? < ctas(other)?)
}

/// The CTAs that fit a multiprocessor if threads have so many registers.
fn resident(func: &Function, limits: &SmLimits, registers: u32) -> Result<u32, LowerError> {
    let bytes = SharedPlan::new(func)?.bytes();
    Ok(limits.resident_blocks(func.options.num_warps, registers, bytes).0)
}

/// Refuses what would only burn time in later stages.
fn check_sizes(func: &Function) -> Result<(), LowerError> {
    for value in func.values.values() {
        let (Some(id), Some(elem)) = (value.ty.layout(), value.ty.elem()) else { continue };
        if matches!(value.ty, Type::Buffer(_)) {
            continue;
        }
        let bits = func.layouts[id].elements_per_thread() * elem.bits() as usize;
        if bits.div_ceil(32) > MAX_TILE_WORDS {
            let shape: Vec<String> = value.ty.shape().iter().map(u32::to_string).collect();
            return Err(LowerError::TileTooLarge {
                tile: format!("tile of {} elements of {} bits", shape.join("x"), elem.bits()),
                words: bits.div_ceil(32),
                num_warps: func.options.num_warps,
            });
        }
    }
    Ok(())
}

fn check(pass: &'static str, func: &Function) -> Result<(), LowerError> {
    verified(pass, func).map(|_| ())
}

fn verified<'f>(pass: &'static str, func: &'f Function) -> Result<Verified<'f>, LowerError> {
    verify(func).map_err(|errors| LowerError::Invalid { pass, errors })
}
