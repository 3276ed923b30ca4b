//! What a kernel takes of a multiprocessor, as findings: shared memory that a block cannot have,
//! registers that spill, and registers that keep blocks from running side by side.
//!
//! Shared memory is counted from our own allocation ([`SharedPlan`]), so that no assembler is
//! needed. Registers and spills are those that the assembler reports.

use super::report::{finding, place};
use crate::artifact::{Limit, Resources};
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::gpu::limits::SmLimits;
use crate::gpu::shared::{SharedPlan, SharedUse};
use crate::gpu::{self, GpuTarget, LowerError};
use crate::ir::{Attrs, Function, Inst, InstData, Loc, Opcode, Type, Value, Verified, verify};
use crate::source::FileRange;

/// Users of shared memory that a finding names.
const USERS_NAMED: usize = 3;

/// Occupancy up to which registers are told of, as a share of the warps that fit.
const LOW_OCCUPANCY: f64 = 0.25;

/// A kernel that asks for more shared memory than a block can have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverLimit {
    /// Bytes asked for.
    pub required: u32,
    /// Bytes that a block can have.
    pub limit: u32,
    /// The same in terms of the source.
    pub finding: Diagnostic,
}

/// Whether `gpu` asks for more shared memory than a block on `arch` can have. `tile` is what it
/// was lowered from, for `target`.
///
/// # Errors
/// When a conversion between layouts has no plan.
pub fn shared_memory(
    tile: Verified<'_>,
    target: GpuTarget,
    gpu: &Function,
    arch: &str,
) -> Result<Option<OverLimit>, LowerError> {
    let Some(limits) = SmLimits::of(arch) else { return Ok(None) };
    let plan = SharedPlan::new(gpu)?;
    let (required, limit) = (plan.bytes(), limits.shared_bytes_per_block);
    if required <= limit {
        return Ok(None);
    }
    let users = plan.users();
    let inst = users.first().map(|user| user.inst);
    let loc = inst.map_or(Loc::from_u32(0), |inst| gpu.insts[inst].loc);
    let message = format!(
        "needs {required} bytes of shared memory, {} more than a block on {arch} can have ({limit})",
        required - limit
    );
    let mut found = finding(gpu, loc, Code::SharedMemory, message);
    let mut products: Vec<Inst> = Vec::new();
    for user in side_by_side(&plan).iter().take(USERS_NAMED) {
        let at = place(gpu, gpu.insts[user.inst].loc);
        found = found.with_related(at, format!("{} bytes: {}", user.bytes, purpose(gpu, user)));
        products.extend(product_of(gpu, user.inst));
    }
    products.dedup();
    for product in products {
        found = found.with_related(place(gpu, gpu.insts[product].loc), "multiplied here");
    }
    let advice = stages_that_fit(tile, target, limit);
    let found = found
        .with_note(advice.unwrap_or_else(|| "smaller blocks take less".to_owned()))
        .with_note("counted from Tile's own allocation for this configuration; no ptxas is needed");
    Ok(Some(OverLimit { required, limit, finding: found }))
}

/// Users of shared memory that take no part which a larger one has, the largest first.
fn side_by_side(plan: &SharedPlan) -> Vec<SharedUse> {
    let mut kept: Vec<SharedUse> = Vec::new();
    for user in plan.users() {
        let end = user.offset + user.bytes;
        let shares =
            |other: &SharedUse| user.offset < other.offset + other.bytes && other.offset < end;
        if !kept.iter().any(shares) {
            kept.push(*user);
        }
    }
    kept
}

/// What a user keeps in shared memory, in words.
fn purpose(func: &Function, user: &SharedUse) -> String {
    let data = &func.insts[user.inst];
    let tile = |ty: &Type| {
        let shape: Vec<String> = ty.shape().iter().map(u32::to_string).collect();
        let elem = ty.elem().map(|elem| elem.to_string()).unwrap_or_default();
        format!("a {} tile of {elem}", shape.join("x"))
    };
    match (data.opcode, data.results.first().map(|&result| func.ty(result))) {
        (Opcode::LocalAlloc, Some(ty @ Type::Buffer(buffer))) => match buffer.stages {
            1 => tile(ty),
            stages => format!("{}, once for each of {stages} stages", tile(ty)),
        },
        (Opcode::ConvertLayout, Some(ty)) => format!("{} on its way between threads", tile(ty)),
        (opcode, _) => format!("what `{opcode}` exchanges between warps"),
    }
}

/// Whether a function of GPU level multiplies matrices.
pub fn has_products(func: &Function) -> bool {
    func.insts.values().any(|data| data.opcode.is_gpu_product())
}

/// The first product that reads the buffer allocated at `alloc`.
fn product_of(func: &Function, alloc: Inst) -> Option<Inst> {
    let data = &func.insts[alloc];
    if data.opcode != Opcode::LocalAlloc {
        return None;
    }
    let buffer = data.result();
    let is_product = |inst: &Inst| {
        let user = &func.insts[*inst];
        user.opcode.is_gpu_product() && user.uses().any(|value| comes_from(func, value, buffer))
    };
    func.walk().into_iter().find(is_product)
}

/// Whether `value` is `buffer`, a view of it, or a fragment read from it.
fn comes_from(func: &Function, value: Value, buffer: Value) -> bool {
    let source = match func.def(value) {
        Some(data) if data.opcode == Opcode::LocalLoad => data.operand(0),
        _ => value,
    };
    matches!(func.ty(source), Type::Buffer(_)) && func.allocation(source) == buffer
}

/// How many stages fit into `limit`, found by lowering with fewer.
fn stages_that_fit(tile: Verified<'_>, target: GpuTarget, limit: u32) -> Option<String> {
    let most = most_stages(&tile);
    let mut least = None;
    for stages in (1..most).rev() {
        let mut fewer = tile.function().clone();
        fewer.options.num_stages = fewer.options.num_stages.min(stages);
        for data in fewer.insts.values_mut() {
            if let Attrs::Loop(attrs) = &mut data.attrs {
                attrs.stages = attrs.stages.min(stages);
            }
        }
        let fewer = verify(&fewer).ok()?;
        let bytes = SharedPlan::new(&gpu::lower(fewer, target).ok()?).ok()?.bytes();
        if bytes <= limit {
            return Some(format!("num_stages={stages} needs {bytes} bytes, which fit"));
        }
        least = Some(bytes);
    }
    least.map(|bytes| {
        format!("even num_stages=1 needs {bytes} bytes, so the blocks themselves must be smaller")
    })
}

fn most_stages(func: &Function) -> u32 {
    let of_loop = |data: &InstData| match &data.attrs {
        Attrs::Loop(attrs) => attrs.stages,
        _ => 0,
    };
    let loops = func.insts.values().map(of_loop).max().unwrap_or(0);
    loops.max(func.options.num_stages)
}

/// What the assembler reports that the author may want to know. `at` is the kernel's name.
pub(super) fn measured(
    kernel: &str,
    at: FileRange,
    resources: &Resources,
    arch: &str,
    has_products: bool,
) -> Vec<Diagnostic> {
    let Resources { registers, spill_store_bytes, spill_load_bytes, source, .. } = resources;
    let mut found = Vec::new();
    if spill_store_bytes + spill_load_bytes > 0 {
        let message = format!(
            "spills registers to memory: {spill_store_bytes} bytes of stores and \
             {spill_load_bytes} bytes of loads for each thread"
        );
        let spills = Diagnostic::new(Code::Spills, at, message)
            .with_note("smaller blocks or more num_warps leave each thread less to hold");
        found.push(spills);
    }
    // Accumulators of products fill the registers by design.
    let low = resources.occupancy <= LOW_OCCUPANCY && resources.limited_by == Limit::Registers;
    if low && !has_products {
        let message = format!(
            "{registers} registers for each thread let {:.0} % of the warps run that {arch} has \
             room for",
            resources.occupancy * 100.0
        );
        let occupancy = Diagnostic::new(Code::Occupancy, at, message)
            .with_note("smaller blocks or more num_warps take fewer registers of each thread");
        found.push(occupancy);
    }
    for finding in &mut found {
        finding.kernel = Some(kernel.to_owned());
        finding.notes.push(format!("reported by {source} for {arch}"));
        debug_assert_eq!(finding.severity, Severity::Info);
    }
    found
}
