//! Mistakes that only a launch shows: accesses outside of buffers, elements that no program writes,
//! and programs that race.
//!
//! Published packages show no sizes of tensors. So each kernel gets a launch of a few programs,
//! with arguments as `tile run --arg auto` chooses them and buffers exactly as large as it reaches.
//! Launches under which a kernel is right as it stands are kept; then the kernel, the grid, or a
//! buffer is broken in one place.
//!
//! Whether that makes a mistake is decided by running it on the CPU executor: a lane outside of its
//! buffer is an access out of bounds, an element of an output that is written no more is left
//! uncovered, and a result that depends on whether programs run forwards or backwards is a race.
//! Where addresses or conditions follow from what memory holds, nothing can be proved: such mistakes
//! are counted apart.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rayon::{ThreadPool, ThreadPoolBuilder};
use tile_compiler::analysis;
use tile_compiler::diagnostic::{Code, Diagnostic};
use tile_compiler::eval::Rules;
use tile_compiler::hir::{self, Function as Source, Module, Name};
use tile_compiler::host::Contents;
use tile_compiler::ir::{Attrs, Function, Opcode};
use tile_compiler::project::{self, ItemRef, MemorySources, Sources};
use tile_compiler::source::{FileId, FileRange};
use tile_compiler::specialization::{
    Flags, KnownArg, KnownBuffer, KnownLaunch, Origin, Specialization, discover,
};
use tile_compiler::syntax::Parse;
use tile_executor::{self as cpu, Buffers, FindingKind, Kernel};
use tile_runner::auto;
use tile_runner::scenario::{self, Arguments, DType, ScenarioOptions};

use super::{kernels, spread};
use breaks::{Change, Mutant};

mod breaks;
mod origin;

/// Kernels that get a launch at most, spread evenly over those that there are.
const KERNELS: usize = 80;

/// Mistakes tried of each kind, spread evenly over those that there are.
const PER_KIND: usize = 16;

/// Programs along each axis of the grid that a kernel uses.
const PROGRAMS: u32 = 3;

/// Time that one run may take. Launches that take longer are small enough to end, but not to be
/// repeated for each mistake.
const DEADLINE: Duration = Duration::from_secs(2);

/// Bytes that all buffers of a launch may take.
const MAX_BYTES: usize = 1 << 22;

/// What was found in one family.
#[derive(Debug, Default)]
pub struct Tally {
    /// Mistakes that can be proved.
    pub all: usize,
    /// Those that were found.
    pub found: usize,
    /// Those that follow from what memory holds.
    pub apart: usize,
    /// Those that were not found, in words.
    pub missed: Vec<String>,
}

/// What breaking launched kernels showed.
#[derive(Debug, Default)]
pub struct Report {
    /// By family.
    pub families: BTreeMap<&'static str, Tally>,
    /// By kind of mistake: those that were tried, and those that are some.
    pub kinds: BTreeMap<&'static str, (usize, usize)>,
    /// Kernels that are right as they stand.
    pub kernels: usize,
    /// Findings about kernels that are right, in words.
    pub alarms: Vec<String>,
}

impl Report {
    /// Counts what became of a mistake of some kind, a verdict for each family to which it belongs.
    pub fn count(
        &mut self,
        kind: &'static str,
        verdicts: impl IntoIterator<Item = (&'static str, Verdict)>,
        describe: impl Fn() -> String,
    ) {
        let (all, seen) = self.kinds.entry(kind).or_default();
        *all += 1;
        let mut verdicts = verdicts.into_iter().peekable();
        *seen += usize::from(verdicts.peek().is_some());
        for (family, verdict) in verdicts {
            let tally = self.families.entry(family).or_default();
            tally.all += usize::from(verdict != Verdict::Apart);
            tally.apart += usize::from(verdict == Verdict::Apart);
            tally.found += usize::from(verdict == Verdict::Found);
            if verdict == Verdict::Missed {
                tally.missed.push(describe());
            }
        }
    }
}

/// Breaks every kernel that can be launched.
pub fn measure(sources: &MemorySources) -> Report {
    let working =
        on_all_cores(&kernels(sources, KERNELS), |at, pool| Working::find(sources, *at, pool));
    let working: Vec<Working> = working.into_iter().flatten().collect();
    let alarms = on_all_cores(&working, |kernel, _| kernel.alarms());
    let mut kinds: BTreeMap<&str, Vec<(&Working, Mutant)>> = BTreeMap::new();
    for kernel in &working {
        let text = sources.text(kernel.at.file).unwrap_or_default();
        for mutant in breaks::mutants(kernel, &text) {
            kinds.entry(mutant.kind).or_default().push((kernel, mutant));
        }
    }
    let tried: Vec<(&Working, Mutant)> =
        kinds.into_values().flat_map(|mutants| spread(mutants, PER_KIND)).collect();
    let verdicts =
        on_all_cores(&tried, |(kernel, mutant), pool| try_one(sources, kernel, mutant, pool));
    let mut report = Report {
        kernels: working.len(),
        alarms: alarms.into_iter().flatten().collect(),
        ..Report::default()
    };
    for ((kernel, mutant), verdicts) in tried.into_iter().zip(verdicts) {
        let text = sources.text(kernel.at.file).unwrap_or_default();
        report.count(mutant.kind, verdicts, || mutant.describe(kernel, &text));
    }
    report
}

/// What `look` gives for each item, in order. `look` gets a pool of one thread, on which programs
/// run one after the other.
pub fn on_all_cores<T: Sync, R: Send>(
    items: &[T],
    look: impl Fn(&T, &ThreadPool) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let work = || {
        let pool = ThreadPoolBuilder::new().num_threads(1).build().expect("one thread");
        let taken = std::iter::from_fn(|| {
            let at = next.fetch_add(1, Ordering::Relaxed);
            Some((at, look(items.get(at)?, &pool)))
        });
        taken.collect::<Vec<_>>()
    };
    let mut found: Vec<(usize, R)> = std::thread::scope(|scope| {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("no worker panics")).collect()
    });
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, found)| found).collect()
}

/// What became of a mistake that a run shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It was found.
    Found,
    /// It was not.
    Missed,
    /// It follows from what memory holds.
    Apart,
}

/// A kernel under a launch that is right.
struct Working {
    at: ItemRef,
    name: Name,
    source: Arc<Source>,
    spec: Specialization,
    func: Function,
    launch: Launch,
    /// By buffer, the elements that the launch writes whatever they held before.
    written: Vec<Vec<bool>>,
}

/// A launch with its memory.
#[derive(Debug, Clone)]
struct Launch {
    grid: [u32; 3],
    args: Vec<(String, Given)>,
    memory: Vec<Memory>,
}

#[derive(Debug, Clone)]
enum Given {
    Number(cpu::Arg),
    /// The first element of a buffer.
    Buffer(usize),
}

#[derive(Debug, Clone)]
struct Memory {
    dtype: DType,
    bytes: Vec<u8>,
    /// Whether the kernel writes all of it, without reading what it held.
    is_output: bool,
}

/// What a run left.
struct Outcome {
    /// Places of accesses out of bounds.
    outside: Vec<FileRange>,
    /// Places where the executor saw programs meet.
    races: Vec<FileRange>,
    memory: Vec<Memory>,
}

impl Working {
    /// The kernel under a launch, if it has one under which it is right.
    fn find(sources: &MemorySources, at: ItemRef, pool: &ThreadPool) -> Option<Working> {
        let source = project::function(sources, at)?;
        let rules = Rules::default();
        let spec = discover(sources, at, &Flags::default()).into_iter().next()?;
        let lowered = rules.lower_kernel(sources, at, &spec);
        let mut spec = lowered.repaired.unwrap_or(spec);
        let func = lowered.function?;
        let grid = grid(&func);
        let chosen = auto::choose(&spec, &func, &Arguments::default(), Some(grid)).ok()?;
        let module = sources.module(at.file)?;
        let given =
            scenario::evaluate_arguments(&module, &chosen.args, &ScenarioOptions::default())
                .ok()?;
        let mut launch = Launch::new(&func, &given, grid)?;
        (spec.origin, spec.assumed, spec.launches) = (Origin::Scenario, Vec::new(), Vec::new());
        let name = source.name.clone();
        let forwards = launch.run(&func, false, pool)?;
        let backwards = launch.run(&func, true, pool)?;
        if !forwards.outside.is_empty() || !same(&forwards.memory, &backwards.memory) {
            return None;
        }
        for (memory, after) in launch.memory.iter_mut().zip(&forwards.memory) {
            memory.is_output = memory.bytes != after.bytes;
        }
        let mut written = launch.written(&func, pool)?;
        for (memory, written) in launch.memory.iter_mut().zip(&mut written) {
            // Where elements are left as they are, a larger grid might well write them.
            memory.is_output &= !written.contains(&false);
            written.iter_mut().for_each(|written| *written &= memory.is_output);
        }
        Some(Working { at, name, source, spec, func, launch, written })
    }

    /// What is found although the kernel is right. Grids are chosen apart from sizes, so masks reach
    /// further than programs read; that this is told is right.
    fn alarms(&self) -> Vec<String> {
        let spec = self.under(&self.launch);
        let found = analysis::check_accesses(&self.func, &spec, &|| ()).into_iter();
        let stores = origin::stores(&self.func);
        let wrong = found.map(|(found, _)| found).filter(|found| {
            is_in_family(found)
                && (found.code != Code::Uncovered || stores.contains(&found.primary))
        });
        wrong.map(|found| format!("{}: {}", self.name, found.message)).collect()
    }

    /// The specialization with a launch.
    fn under(&self, launch: &Launch) -> Specialization {
        Specialization { launches: vec![self.known(launch)], ..self.spec.clone() }
    }

    /// What analyses are told of a launch.
    fn known(&self, launch: &Launch) -> KnownLaunch {
        let arg = |(name, given): &(String, Given)| {
            let known = match given {
                Given::Number(cpu::Arg::Int(value)) => KnownArg::Int(*value),
                Given::Number(_) => return None,
                Given::Buffer(index) => {
                    let memory = &launch.memory[*index];
                    let elements = (memory.bytes.len() / memory.dtype.bytes()) as i128;
                    let contents = match memory.is_output {
                        true => Contents::Uninitialized,
                        false => Contents::Unknown,
                    };
                    let (id, shape) = (Some(*index as u32), None);
                    KnownArg::Buffer(KnownBuffer {
                        id,
                        elements,
                        before: 0,
                        sizes: shape,
                        contents,
                        is_expanded: false,
                        converted: None,
                    })
                }
            };
            Some((Name::from(name.as_str()), known))
        };
        KnownLaunch {
            site: None,
            caller: None,
            origin: Origin::Scenario,
            doubtful: false,
            drawn: false,
            grid: Some(launch.grid),
            open_axes: [false; 3],
            least_grid: launch.grid,
            grid_fault: None,
            grid_rank: 3,
            arg_faults: Vec::new(),
            args: launch.args.iter().filter_map(arg).collect(),
            past: None,
            assumed: None,
            open_sizes: None,
        }
    }
}

/// A few programs along the axes that a kernel asks for its position on.
pub fn grid(func: &Function) -> [u32; 3] {
    let mut grid = [1; 3];
    for inst in func.walk() {
        if let (Opcode::ProgramId, Attrs::Axis(axis)) =
            (func.insts[inst].opcode, &func.insts[inst].attrs)
        {
            grid[axis.axis as usize] = PROGRAMS;
        }
    }
    grid
}

impl Launch {
    fn new(func: &Function, given: &Arguments, grid: [u32; 3]) -> Option<Launch> {
        let mut launch = Launch { grid, args: Vec::new(), memory: Vec::new() };
        for param in &func.params {
            let (_, value) = given.values.iter().find(|(name, _)| **name == *param.name)?;
            let arg = match value {
                scenario::Value::Tensor(tensor) => {
                    let storage = given.store.get(tensor.storage);
                    let (dtype, bytes) = (storage.dtype, storage.bytes.clone());
                    launch.memory.push(Memory { dtype, bytes, is_output: false });
                    Given::Buffer(launch.memory.len() - 1)
                }
                scenario::Value::Int(value) => Given::Number(cpu::Arg::Int(*value)),
                scenario::Value::Bool(value) => Given::Number(cpu::Arg::Int(i128::from(*value))),
                scenario::Value::Float(value) => Given::Number(cpu::Arg::Float(*value)),
                _ => return None,
            };
            launch.args.push((param.name.to_string(), arg));
        }
        let bytes: usize = launch.memory.iter().map(|memory| memory.bytes.len()).sum();
        (bytes <= MAX_BYTES).then_some(launch)
    }

    /// Runs `func`, one program after the other.
    fn run(&self, func: &Function, backwards: bool, pool: &ThreadPool) -> Option<Outcome> {
        let kernel = Kernel::compile(func).ok()?;
        let mut buffers = Buffers::new();
        let add = |memory: &Memory| buffers.add("", memory.dtype.scalar(), &memory.bytes);
        let ids: Vec<_> = self.memory.iter().map(add).collect();
        let arg = |name: &str| {
            let (_, given) = self.args.iter().find(|(known, _)| known == name)?;
            Some(match given {
                Given::Number(number) => *number,
                Given::Buffer(index) => cpu::Arg::Pointer(buffers.address(ids[*index])),
            })
        };
        let args: Option<Vec<_>> = func.params.iter().map(|param| arg(&param.name)).collect();
        let args = args?;
        let options = cpu::Options {
            deadline: Some(DEADLINE),
            sanitize: !backwards,
            backwards,
            ..cpu::Options::default()
        };
        let launched = pool.install(|| kernel.launch(&mut buffers, &args, self.grid, &options));
        let findings = launched.ok()?.findings;
        let places = |kind: FindingKind| {
            let of_kind = findings.iter().filter(move |finding| finding.kind == kind);
            of_kind.map(|finding| finding.place.at).collect()
        };
        let (outside, races) = (places(FindingKind::OutOfBounds), places(FindingKind::Race));
        let memory = self.memory.iter().zip(&ids);
        let memory =
            memory.map(|(memory, id)| Memory { bytes: buffers.bytes(*id), ..*memory }).collect();
        Some(Outcome { outside, races, memory })
    }

    /// By buffer, the elements of outputs that `func` writes whatever they held before.
    fn written(&self, func: &Function, pool: &ThreadPool) -> Option<Vec<Vec<bool>>> {
        let mut other = self.clone();
        for memory in other.memory.iter_mut().filter(|memory| memory.is_output) {
            memory.bytes.iter_mut().for_each(|byte| *byte = !*byte);
        }
        let (first, second) = (self.run(func, true, pool)?, other.run(func, true, pool)?);
        let of_buffer = |(a, b): (&Memory, &Memory)| {
            let size = a.dtype.bytes();
            let equal = a.bytes.chunks(size).zip(b.bytes.chunks(size)).map(|(a, b)| a == b);
            equal.map(|equal| equal && a.is_output).collect()
        };
        Some(first.memory.iter().zip(&second.memory).map(of_buffer).collect())
    }

    /// The launch with a change that is not one of the text.
    fn changed(&self, change: &Change) -> Launch {
        let mut launch = self.clone();
        match change {
            Change::Text(..) => {}
            Change::Shrunk(index) => {
                let memory = &mut launch.memory[*index];
                let rest = memory.bytes.len() - memory.dtype.bytes();
                memory.bytes.truncate(rest);
            }
            Change::Longer(axis) => launch.grid[*axis] += 1,
            Change::Shorter(axis) => launch.grid[*axis] -= 1,
            Change::Stride(index) => {
                launch.args[*index].1 = Given::Number(cpu::Arg::Int(0));
            }
            Change::Same(first, second) => {
                let larger = |index: &&usize| launch.memory[**index].bytes.len();
                let kept = *[first, second].iter().copied().max_by_key(larger).unwrap_or(first);
                for (_, given) in &mut launch.args {
                    if matches!(given, Given::Buffer(index) if index == first || index == second) {
                        *given = Given::Buffer(kept);
                    }
                }
            }
        }
        launch
    }
}

/// Sources with another text of one file.
pub struct Edited<'a> {
    sources: &'a MemorySources,
    file: FileId,
    parse: Parse,
    module: Arc<Module>,
}

impl<'a> Edited<'a> {
    /// Puts `text` in the place of that of `file`.
    pub fn new(sources: &'a MemorySources, file: FileId, text: &str) -> Edited<'a> {
        let parse = Parse::new(text);
        let module = Arc::new(hir::lower(&parse));
        Edited { sources, file, parse, module }
    }
}

impl Sources for Edited<'_> {
    fn module(&self, file: FileId) -> Option<Arc<Module>> {
        if file == self.file { Some(self.module.clone()) } else { self.sources.module(file) }
    }

    fn text(&self, file: FileId) -> Option<Arc<str>> {
        if file == self.file { Some(self.parse.text().clone()) } else { self.sources.text(file) }
    }

    fn path(&self, file: FileId) -> String {
        self.sources.path(file)
    }

    fn import(&self, from: FileId, level: u32, path: &[Name]) -> Option<FileId> {
        self.sources.import(from, level, path)
    }
}

/// Whether two runs left the same, but for the order in which floats were added.
fn same(first: &[Memory], second: &[Memory]) -> bool {
    first.iter().zip(second).all(|(a, b)| {
        let size = a.dtype.bytes();
        let mut elements = a.bytes.chunks(size).zip(b.bytes.chunks(size));
        elements.all(|(x, y)| x == y || (a.dtype.is_float() && near(a.dtype, x, y)))
    })
}

fn near(dtype: DType, a: &[u8], b: &[u8]) -> bool {
    let value = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        dtype.decode_float(u64::from_le_bytes(word))
    };
    let (a, b) = (value(a), value(b));
    (a.is_nan() && b.is_nan()) || (a - b).abs() <= 0.01 * a.abs().max(b.abs())
}

/// The codes of what analyses find in a kernel under a launch.
fn found_in(func: &Function, kernel: &Working, launch: &Launch) -> Vec<&'static str> {
    let found = analysis::check_accesses(func, &kernel.under(launch), &|| ()).into_iter();
    let found = found.map(|(found, _)| found).filter(is_in_family);
    found.map(|found| found.code.name()).collect()
}

fn is_in_family(found: &Diagnostic) -> bool {
    FAMILIES.iter().any(|(family, _)| found.code.name().starts_with(family))
}

/// Families with the prefixes of their codes.
const FAMILIES: [(&str, &str); 2] = [("bounds/", "bounds"), ("race/", "race")];

/// Breaks a kernel in one place, runs it, and looks at what is found: a verdict for each family in
/// which the executor sees a mistake.
fn try_one(
    sources: &MemorySources,
    kernel: &Working,
    mutant: &Mutant,
    pool: &ThreadPool,
) -> Vec<(&'static str, Verdict)> {
    let lowered = match &mutant.change {
        Change::Text(range, new) => {
            let mut text = sources.text(kernel.at.file).unwrap_or_default().to_string();
            text.replace_range(range.clone(), new);
            let edited = Edited::new(sources, kernel.at.file, &text);
            Rules::default().lower_kernel(&edited, kernel.at, &kernel.spec).function
        }
        _ => Some(kernel.func.clone()),
    };
    let launch = kernel.launch.changed(&mutant.change);
    let Some(func) = lowered else { return Vec::new() };
    let Some(real) = mistakes(&func, kernel, mutant, &launch, pool) else { return Vec::new() };
    if real.is_empty() {
        return Vec::new();
    }
    let found = found_in(&func, kernel, &launch);
    let verdict = |(family, places): (&'static str, Vec<FileRange>)| {
        let is_apart = places.iter().all(|place| origin::follows_from_memory(&func, *place));
        let is_found = found.iter().any(|code| code.starts_with(family));
        let verdict = match (is_apart, is_found) {
            (true, _) => Verdict::Apart,
            (false, true) => Verdict::Found,
            (false, false) => Verdict::Missed,
        };
        (family, verdict)
    };
    real.into_iter().map(verdict).collect()
}

/// The families in which a run shows a mistake, each with the places of accesses that make it.
fn mistakes(
    func: &Function,
    kernel: &Working,
    mutant: &Mutant,
    launch: &Launch,
    pool: &ThreadPool,
) -> Option<Vec<(&'static str, Vec<FileRange>)>> {
    let outcome = launch.run(func, false, pool)?;
    let mut real = Vec::new();
    if !outcome.outside.is_empty() {
        real.push(("bounds", outcome.outside));
    } else if let Change::Shorter(_) = mutant.change {
        let after = launch.written(func, pool)?;
        let mut elements = kernel.written.iter().flatten().zip(after.iter().flatten());
        if elements.any(|(before, after)| *before && !*after) {
            real.push(("bounds", origin::stores(func)));
        }
    }
    if !outcome.races.is_empty() {
        let other = launch.run(func, true, pool)?;
        if !same(&outcome.memory, &other.memory) {
            real.push(("race", outcome.races));
        }
    }
    Some(real)
}
