//! Mistakes that change no result and cost much: time, and shared memory that no block can have.
//!
//! Kernels are compiled for what they are launched with, or for a guess. Numbers that no launch shows
//! are chosen, as strides of 1 and of large rows, and a few programs. Then text, a compile-time value
//! or the number of stages is changed in one place.
//!
//! Whether that is a mistake is decided on the tile IR of the changed kernel by arithmetic of its own:
//! [`time`] counts sectors, lanes that share an address, and rows and precision of products, [`memory`]
//! the bytes that copies in flight take at least. Each counts only what was measured to matter
//! (`docs/hints.md`) or what Tile's pipelines cannot do without. Where addresses are computed from what memory
//! holds, or rows overlap under the numbers chosen, nothing is decided: such changes are counted apart.
//! The mistake is found when its code is reported more often than of the kernel as it stands.
//!
//! Accidents of float64 are left out: numbers of published kernels that were read as float64 hardly ever
//! led to three slow functions for each element that is moved, from which on they were measured to matter.

use std::collections::BTreeMap;
use std::sync::Arc;

use tile_compiler::analysis::{self, resources};
use tile_compiler::diagnostic::Code;
use tile_compiler::eval::Rules;
use tile_compiler::gpu::{self, GpuTarget};
use tile_compiler::hir::{Function as Source, Name};
use tile_compiler::host::Contents;
use tile_compiler::ir::{Function, Opcode, Param, verify};
use tile_compiler::passes;
use tile_compiler::project::{self, ItemRef, MemorySources, Sources};
use tile_compiler::specialization::{
    ArgSpec, ConstArg, Flags, KnownArg, KnownBuffer, KnownLaunch, Origin, Specialization, discover,
};

use super::launched::{Edited, Report, Verdict, grid, on_all_cores};
use super::{kernels, spread};
use breaks::{Change, Mutant};

mod breaks;
mod memory;
mod offsets;
mod time;

/// Kernels that are broken at most, spread evenly over those that there are.
const KERNELS: usize = 400;

/// Changes tried of each kind, spread evenly over those that there are: few of those that take shared
/// memory take too much.
const PER_KIND: usize = 100;
const PER_KIND_OF_MEMORY: usize = 400;

/// The GPU of which costs are known.
const TARGET: GpuTarget = GpuTarget { capability: 90, has_warp_groups: true };
const ARCH: &str = "sm_90a";

/// Numbers of the launch that is chosen.
const LARGE: (i128, i128) = (1024, 1000);

/// Numbers of another launch: what no launch shows must hold under both.
const SMALL: (i128, i128) = (16, 10);

/// Elements of a buffer: more than any program reaches.
const ELEMENTS: i128 = 1 << 40;

/// Breaks every kernel that lowers.
pub fn measure(sources: &MemorySources) -> Report {
    let working = on_all_cores(&kernels(sources, KERNELS), |at, _| Working::find(sources, *at));
    let working: Vec<Working> = working.into_iter().flatten().collect();
    let mut kinds: BTreeMap<&str, Vec<(&Working, Mutant)>> = BTreeMap::new();
    for kernel in &working {
        let text = sources.text(kernel.at.file).unwrap_or_default();
        for mutant in breaks::mutants(kernel, &text) {
            kinds.entry(mutant.kind).or_default().push((kernel, mutant));
        }
    }
    let tried: Vec<(&Working, Mutant)> = kinds
        .into_values()
        .flat_map(|mutants| {
            let is_of_memory = mutants.iter().all(|(_, mutant)| mutant.code == Code::SharedMemory);
            let most = if is_of_memory { PER_KIND_OF_MEMORY } else { PER_KIND };
            spread(mutants, most)
        })
        .collect();
    let verdicts = on_all_cores(&tried, |(kernel, mutant), _| try_one(sources, kernel, mutant));
    let alarms = on_all_cores(&working, |kernel, _| kernel.alarm());
    let mut report = Report {
        kernels: working.len(),
        alarms: alarms.into_iter().flatten().collect(),
        ..Report::default()
    };
    for ((kernel, mutant), verdict) in tried.into_iter().zip(verdicts) {
        let text = sources.text(kernel.at.file).unwrap_or_default();
        let verdicts = verdict.map(|verdict| (mutant.family(), verdict));
        report.count(mutant.kind, verdicts, || mutant.describe(kernel, &text));
    }
    report
}

/// A kernel that lowers.
struct Working {
    at: ItemRef,
    name: Name,
    source: Arc<Source>,
    spec: Specialization,
    func: Function,
}

impl Working {
    fn find(sources: &MemorySources, at: ItemRef) -> Option<Working> {
        let source = project::function(sources, at)?;
        let spec = discover(sources, at, &Flags::default()).into_iter().next()?;
        let lowered = Rules::default().lower_kernel(sources, at, &spec);
        let mut spec = lowered.repaired.unwrap_or(spec);
        let mut func = lowered.function?;
        (spec.origin, spec.assumed, spec.launches) = (Origin::Scenario, Vec::new(), Vec::new());
        let narrow = of_half_precision(&spec);
        if has_products(&func)
            && let Some(function) = Rules::default().lower_kernel(sources, at, &narrow).function
        {
            (spec, func) = (narrow, function);
        }
        Some(Working { at, name: source.name.clone(), source, spec, func })
    }

    /// What is found although the kernel is launched as it stands.
    fn alarm(&self) -> Option<String> {
        let is_blamed = has_products(&self.func) && takes_too_much(self.func.clone()) == Some(true);
        is_blamed.then(|| format!("{}: too much shared memory", self.name))
    }

    /// The kernel with a change: what it is compiled for, and its tile IR.
    fn changed(
        &self,
        sources: &MemorySources,
        change: &Change,
    ) -> Option<(Specialization, Function)> {
        let mut spec = self.spec.clone();
        let mut text = sources.text(self.at.file)?.to_string();
        match change {
            Change::Text(range, new) => text.replace_range(range.clone(), new),
            Change::Constant(name, value) => {
                *spec.args.get_mut(name)? = ArgSpec::Constexpr(ConstArg::Int(*value));
            }
            Change::Stages(stages) => spec.options.num_stages = *stages,
        }
        let edited = Edited::new(sources, self.at.file, &text);
        let func = Rules::default().lower_kernel(&edited, self.at, &spec).function?;
        Some((spec, func))
    }
}

/// What is guessed to be float32 is float16, as products usually get it.
fn of_half_precision(spec: &Specialization) -> Specialization {
    let mut spec = spec.clone();
    for arg in spec.args.values_mut() {
        if let ArgSpec::Runtime { signature, .. } = arg
            && &**signature == "*fp32"
        {
            *signature = "*fp16".into();
        }
    }
    spec
}

fn has_products(func: &Function) -> bool {
    func.insts.values().any(|data| data.opcode == Opcode::Dot)
}

/// A launch of a kernel with these numbers: those that are multiples of 16, and others.
fn launch(func: &Function, (aligned, plain): (i128, i128)) -> KnownLaunch {
    let known = |(index, param): (usize, &Param)| {
        let number = match param.divisibility {
            1 if param.name.contains("stride") && !param.name.contains("row") => 1,
            1 => plain,
            _ => aligned,
        };
        let arg = match &*param.signature {
            "fp16" | "bf16" | "fp32" | "fp64" => return None,
            pointer if pointer.starts_with('*') => KnownArg::Buffer(KnownBuffer {
                id: Some(index as u32),
                elements: ELEMENTS,
                before: 0,
                sizes: None,
                contents: Contents::Unknown,
                is_expanded: false,
                converted: None,
            }),
            "u1" | "i1" => KnownArg::Int(1),
            _ => KnownArg::Int(number),
        };
        Some((Name::from(&*param.name), arg))
    };
    let grid = grid(func);
    KnownLaunch {
        site: None,
        caller: None,
        origin: Origin::Scenario,
        doubtful: false,
        drawn: false,
        grid: Some(grid),
        open_axes: [false; 3],
        least_grid: grid,
        grid_fault: None,
        grid_rank: 3,
        arg_faults: Vec::new(),
        args: func.params.iter().enumerate().filter_map(known).collect(),
        past: None,
        assumed: None,
        open_sizes: None,
    }
}

/// What becomes of a change; `None` where it makes no mistake, or another one.
fn try_one(sources: &MemorySources, kernel: &Working, mutant: &Mutant) -> Option<Verdict> {
    let (spec, func) = kernel.changed(sources, &mutant.change)?;
    let is_mistake = match mutant.code {
        Code::SharedMemory => Some(memory::is_too_much(&func)),
        code => time::is_lost(code, &kernel.func, &func),
    };
    let Some(is_mistake) = is_mistake else { return Some(Verdict::Apart) };
    if !is_mistake {
        return None;
    }
    let is_found = match mutant.code {
        Code::SharedMemory => takes_too_much(func)?,
        code => hints(code, &spec, &func) > hints(code, &kernel.spec, &kernel.func),
    };
    Some(if is_found { Verdict::Found } else { Verdict::Missed })
}

/// How often `code` is reported of a kernel under the launch that is chosen for it.
fn hints(code: Code, spec: &Specialization, func: &Function) -> usize {
    let mut spec = spec.clone();
    if code == Code::Uncoalesced {
        spec.launches.push(launch(func, LARGE));
    }
    let found = analysis::check(func, &spec, TARGET.capability, &|| ());
    found.iter().filter(|(found, _)| found.code == code).count()
}

/// Whether shared memory over the limit is reported; `None` where a kernel is refused before.
fn takes_too_much(mut func: Function) -> Option<bool> {
    passes::optimize(&mut func).ok()?;
    let tile = verify(&func).ok()?;
    let gpu = gpu::lower(tile, TARGET).ok()?;
    Some(resources::shared_memory(tile, TARGET, &gpu, ARCH).ok()?.is_some())
}
