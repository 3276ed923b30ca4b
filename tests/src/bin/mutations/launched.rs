//! Mistakes that only a launch shows: accesses outside of buffers, and programs that race.
//!
//! Published packages show no sizes of tensors. So each kernel gets a launch of a few programs,
//! with arguments as `tile run --arg auto` chooses them and buffers exactly as large as it reaches.
//! Launches under which a kernel is right as it stands are kept; then the kernel, the grid, or a
//! buffer is broken in one place.
//!
//! Whether that makes a mistake is decided by running it on the CPU executor: a lane outside of its
//! buffer is an access out of bounds, and a result that depends on whether programs run forwards or
//! backwards is a race. Where addresses or conditions follow from what memory holds, nothing can be
//! proved: such mistakes are counted apart.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use rayon::{ThreadPool, ThreadPoolBuilder};
use tile_compiler::analysis;
use tile_compiler::eval::Rules;
use tile_compiler::hir::{
    Arg, ArgKind, BinaryOp, CompareOp, Expr, ExprId, Function as Source, Name, Stmt,
};
use tile_compiler::ir::{Attrs, Function, Inst, Opcode, Region, Value, ValueDef};
use tile_compiler::project::{self, ItemRef, MemorySources, Sources};
use tile_compiler::source::FileRange;
use tile_compiler::specialization::{
    Flags, KnownArg, KnownBuffer, KnownLaunch, Origin, Specialization, discover,
};
use tile_runner::auto;
use tile_runner::cpu::{self, Buffers, FindingKind, Kernel};
use tile_runner::scenario::{self, Arguments, DType, ScenarioOptions};

/// Kernels that get a launch at most, spread evenly over those that there are.
const KERNELS: usize = 100;

/// Mistakes tried of each kind, spread evenly over those that there are.
const PER_KIND: usize = 30;

/// Programs along each axis of the grid that a kernel uses.
const PROGRAMS: u32 = 3;

/// Time that one run may take.
const DEADLINE: Duration = Duration::from_secs(2);

/// Bytes that all buffers of a launch may take.
const MAX_BYTES: usize = 1 << 24;

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
    /// Kernels that have a launch under which they are right.
    pub launched: usize,
    /// Findings about kernels that are right, in words.
    pub alarms: Vec<String>,
}

/// Breaks every kernel that can be launched.
pub fn measure(sources: &mut MemorySources) -> Report {
    let pool = ThreadPoolBuilder::new().num_threads(1).build().expect("one thread");
    let mut report = Report::default();
    let mut working = Vec::new();
    let kernels: Vec<ItemRef> =
        sources.files().flat_map(|file| project::kernels(sources, file)).collect();
    for at in kernels.iter().step_by(kernels.len().div_ceil(KERNELS).max(1)) {
        let Some(kernel) = Working::find(sources, *at, &pool) else { continue };
        let text = sources.text(at.file).unwrap_or_default();
        let found = found_in(sources, &kernel, &kernel.launch);
        let name = &kernel.name;
        report.alarms.extend(found.into_iter().map(|(_, message)| format!("{name}: {message}")));
        let mutants = mutants(&kernel, &text);
        working.push((kernel, mutants));
    }
    report.launched = working.len();
    let mut kinds: BTreeMap<&str, Vec<(usize, &Mutant)>> = BTreeMap::new();
    for (index, (_, mutants)) in working.iter().enumerate() {
        for mutant in mutants {
            kinds.entry(mutant.kind).or_default().push((index, mutant));
        }
    }
    for mutants in kinds.values() {
        let step = mutants.len().div_ceil(PER_KIND).max(1);
        for &(kernel, mutant) in mutants.iter().step_by(step) {
            try_one(sources, &working[kernel].0, mutant, &pool, &mut report);
        }
    }
    report
}

/// A kernel under a launch that is right.
struct Working {
    at: ItemRef,
    name: Name,
    source: std::sync::Arc<Source>,
    spec: Specialization,
    func: Function,
    launch: Launch,
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
}

/// One mistake.
struct Mutant {
    kind: &'static str,
    change: Change,
}

enum Change {
    /// Text of the kernel.
    Text(Range<usize>, String),
    /// A buffer has one element less.
    Shrunk(usize),
    /// The grid has one program more along an axis.
    Longer(usize),
    /// Two arguments are one buffer.
    Same(usize, usize),
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
    fn find(sources: &mut MemorySources, at: ItemRef, pool: &ThreadPool) -> Option<Working> {
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
        let launch = Launch::new(&func, &given, grid)?;
        (spec.origin, spec.assumed, spec.launches) = (Origin::Scenario, Vec::new(), Vec::new());
        let name = source.name.clone();
        let kernel = Working { at, name, source, spec, func, launch };
        let forwards = kernel.launch.run(&kernel.func, pool)?;
        let backwards = kernel.launch.run(&reversed(sources, &kernel)?, pool)?;
        let is_right = forwards.outside.is_empty() && same(&forwards.memory, &backwards.memory);
        is_right.then_some(kernel)
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
                    let id = Some(*index as u32);
                    KnownArg::Buffer(KnownBuffer { id, elements, uninitialized: false })
                }
            };
            Some((Name::from(name.as_str()), known))
        };
        KnownLaunch {
            site: None,
            origin: Origin::Scenario,
            grid: Some(launch.grid),
            grid_fault: None,
            grid_rank: 3,
            args: launch.args.iter().filter_map(arg).collect(),
        }
    }
}

/// A few programs along the axes that a kernel asks for its position on.
fn grid(func: &Function) -> [u32; 3] {
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
                    launch.memory.push(Memory { dtype, bytes });
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
    fn run(&self, func: &Function, pool: &ThreadPool) -> Option<Outcome> {
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
        let options =
            cpu::Options { deadline: Some(DEADLINE), sanitize: true, ..cpu::Options::default() };
        let launched = pool.install(|| kernel.launch(&mut buffers, &args, self.grid, &options));
        let findings = launched.ok()?.findings;
        let places = |kind: FindingKind| {
            let of_kind = findings.iter().filter(move |finding| finding.kind == kind);
            of_kind.map(|finding| finding.place.at).collect()
        };
        let (outside, races) = (places(FindingKind::OutOfBounds), places(FindingKind::Race));
        let memory = self.memory.iter().zip(&ids);
        let memory = memory
            .map(|(memory, id)| Memory { dtype: memory.dtype, bytes: buffers.bytes(*id) })
            .collect();
        Some(Outcome { outside, races, memory })
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

/// What a language's function for the position is called, and what takes its place.
const POSITION: [&str; 2] = ["tl.program_id(", "_backwards("];

/// The function that counts programs from the last.
const BACKWARDS: &str = "\n\n@triton.jit\ndef _backwards(axis: tl.constexpr):\n    \
                         return tl.num_programs(axis) - 1 - tl.program_id(axis)\n";

/// The kernel with its programs in the reverse order, from the text that `sources` has now.
fn reversed(sources: &mut MemorySources, kernel: &Working) -> Option<Function> {
    let [forwards, backwards] = POSITION;
    let text = sources.text(kernel.at.file)?;
    let other = format!("{}{BACKWARDS}", text.replace(forwards, backwards));
    with_text(sources, kernel, &other, |sources| lower(sources, kernel))
}

fn lower(sources: &MemorySources, kernel: &Working) -> Option<Function> {
    Rules::default().lower_kernel(sources, kernel.at, &kernel.spec).function
}

/// What `look` gives while the kernel's file has another text.
fn with_text<T>(
    sources: &mut MemorySources,
    kernel: &Working,
    text: &str,
    look: impl FnOnce(&mut MemorySources) -> T,
) -> T {
    let (file, path) = (kernel.at.file, sources.path(kernel.at.file));
    let before = sources.text(file).unwrap_or_default();
    sources.add(&path, text);
    let found = look(sources);
    sources.add(&path, &before);
    found
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

/// What analyses find in a kernel, as `sources` have it now, under a launch: codes and messages.
fn found_in(
    sources: &MemorySources,
    kernel: &Working,
    launch: &Launch,
) -> Vec<(&'static str, String)> {
    let Some(func) = lower(sources, kernel) else { return Vec::new() };
    let spec = Specialization { launches: vec![kernel.known(launch)], ..kernel.spec.clone() };
    let found = analysis::check_accesses(&func, &spec, &|| ()).into_iter();
    let found = found.map(|(found, _)| (found.code.name(), found.message.to_string()));
    found.filter(|(code, _)| FAMILIES.iter().any(|(family, _)| code.starts_with(family))).collect()
}

/// Families with the prefixes of their codes.
const FAMILIES: [(&str, &str); 2] = [("bounds/", "bounds"), ("race/", "race")];

/// Breaks a kernel in one place, runs it, and looks at what is found.
fn try_one(
    sources: &mut MemorySources,
    kernel: &Working,
    mutant: &Mutant,
    pool: &ThreadPool,
    report: &mut Report,
) {
    let before = sources.text(kernel.at.file).unwrap_or_default();
    let mut text = before.to_string();
    if let Change::Text(range, new) = &mutant.change {
        text.replace_range(range.clone(), new);
    }
    let launch = kernel.launch.changed(&mutant.change);
    with_text(sources, kernel, &text, |sources| {
        let Some(func) = lower(sources, kernel) else { return };
        let Some(outcome) = launch.run(&func, pool) else { return };
        let races = !outcome.races.is_empty() && {
            let backwards = reversed(sources, kernel).and_then(|func| launch.run(&func, pool));
            backwards.is_some_and(|other| !same(&outcome.memory, &other.memory))
        };
        let real = [
            ("bounds", !outcome.outside.is_empty(), &outcome.outside),
            ("race", races, &outcome.races),
        ];
        let real: Vec<_> = real.into_iter().filter(|(_, is_real, _)| *is_real).collect();
        if real.is_empty() {
            return;
        }
        let found = found_in(sources, kernel, &launch);
        for (family, _, places) in real {
            let tally = report.families.entry(family).or_default();
            if places.iter().all(|place| follows_from_memory(&func, *place)) {
                tally.apart += 1;
                continue;
            }
            tally.all += 1;
            if found.iter().any(|(code, _)| code.starts_with(family)) {
                tally.found += 1;
            } else {
                tally.missed.push(mutant.describe(kernel, &before));
            }
        }
    });
}

/// Whether the addresses of every access at a place, or what decides whether it happens, are
/// computed from what memory holds.
fn follows_from_memory(func: &Function, place: FileRange) -> bool {
    let is_access = |inst: &Inst| {
        let data = &func.insts[*inst];
        let accesses = matches!(
            data.opcode,
            Opcode::Load | Opcode::Store | Opcode::AtomicRmw | Opcode::AtomicCas
        );
        accesses && func.locs[func.user_loc(data.loc)].at == place
    };
    func.walk().into_iter().filter(is_access).all(|inst| {
        let data = &func.insts[inst];
        let mask = match data.opcode {
            Opcode::Load => data.operand_opt(1),
            Opcode::Store | Opcode::AtomicRmw => data.operand_opt(2),
            _ => None,
        };
        let around = conditions(func, func.body, inst).unwrap_or_default();
        let deciding = [data.operand_opt(0), mask].into_iter().flatten().chain(around);
        reads_memory(func, deciding.collect())
    })
}

/// What the branches and loops around an instruction depend on.
fn conditions(func: &Function, region: Region, wanted: Inst) -> Option<Vec<Value>> {
    for &inst in &func.regions[region].insts {
        if inst == wanted {
            return Some(Vec::new());
        }
        let data = &func.insts[inst];
        for &inner in &data.regions {
            let Some(mut found) = conditions(func, inner, wanted) else { continue };
            match data.opcode {
                Opcode::If => found.push(data.operand(0)),
                Opcode::For => found.extend(data.uses().take(3)),
                // How often it runs depends on all that it carries.
                _ => found.extend(data.regions.iter().flat_map(|region| {
                    let end = func.terminator(*region);
                    end.into_iter().flat_map(|end| end.uses().collect::<Vec<_>>())
                })),
            }
            return Some(found);
        }
    }
    None
}

/// Whether any of `values` is computed from what a load gives.
fn reads_memory(func: &Function, mut pending: Vec<Value>) -> bool {
    let mut seen = std::collections::BTreeSet::new();
    while let Some(value) = pending.pop() {
        if !seen.insert(value.as_u32()) {
            continue;
        }
        match func.values[value].def {
            ValueDef::Result(inst, at) => {
                let data = &func.insts[inst];
                match data.opcode {
                    Opcode::Load | Opcode::AtomicRmw | Opcode::AtomicCas => return true,
                    Opcode::If | Opcode::For | Opcode::While => {
                        let slot = usize::from(data.opcode == Opcode::For) * 3 + at as usize;
                        pending.extend(data.operand_opt(slot));
                        let ends =
                            data.regions.iter().filter_map(|region| func.terminator(*region));
                        pending.extend(ends.filter_map(|end| end.operand_opt(at as usize)));
                    }
                    _ => pending.extend(data.uses()),
                }
            }
            ValueDef::Argument(region, at) if region != func.body => {
                let owner = func.walk().into_iter();
                let mut owner = owner.filter(|inst| func.insts[*inst].regions.contains(&region));
                let Some(owner) = owner.next() else { continue };
                let data = &func.insts[owner];
                let carried = match data.opcode {
                    Opcode::For if at == 0 => {
                        pending.extend(data.uses().take(3));
                        continue;
                    }
                    Opcode::For => at as usize - 1,
                    _ => at as usize,
                };
                let slot = usize::from(data.opcode == Opcode::For) * 3 + carried;
                pending.extend(data.operand_opt(slot));
                pending.extend(func.terminator(region).and_then(|end| end.operand_opt(carried)));
            }
            ValueDef::Argument(..) => {}
        }
    }
    false
}

impl Mutant {
    fn describe(&self, kernel: &Working, text: &str) -> String {
        let (kind, name) = (self.kind, &kernel.name);
        match &self.change {
            Change::Text(range, new) => {
                let line = text[..range.start].matches('\n').count() + 1;
                let old = &text[range.clone()];
                format!("{kind} {name}:{line}: `{old}` became `{new}`")
            }
            Change::Shrunk(index) => {
                let is_buffer =
                    |given: &Given| matches!(given, Given::Buffer(known) if known == index);
                let mut args = kernel.launch.args.iter();
                let arg = args.find(|(_, given)| is_buffer(given)).map(|(name, _)| name.as_str());
                format!("{kind} {name}: `{}` has an element less", arg.unwrap_or_default())
            }
            Change::Longer(axis) => format!("{kind} {name}: a program more along axis {axis}"),
            Change::Same(a, b) => format!("{kind} {name}: buffers {a} and {b} are one"),
        }
    }
}

/// The mistakes that are tried in a kernel.
fn mutants(kernel: &Working, text: &str) -> Vec<Mutant> {
    let mut found = Breaks { source: &kernel.source, text, found: Vec::new() };
    found.of_launch(kernel);
    found.of_text();
    found.found
}

struct Breaks<'a> {
    source: &'a Source,
    text: &'a str,
    found: Vec<Mutant>,
}

impl Breaks<'_> {
    fn add(&mut self, kind: &'static str, change: Change) {
        self.found.push(Mutant { kind, change });
    }

    fn of_launch(&mut self, kernel: &Working) {
        let launch = &kernel.launch;
        for (index, memory) in launch.memory.iter().enumerate() {
            if memory.bytes.len() > memory.dtype.bytes() {
                self.add("buffer", Change::Shrunk(index));
            }
        }
        for axis in (0..3).filter(|axis| launch.grid[*axis] > 1) {
            self.add("grid", Change::Longer(axis));
        }
        for first in 0..launch.memory.len() {
            for second in first + 1..launch.memory.len() {
                if launch.memory[first].dtype == launch.memory[second].dtype {
                    self.add("alias", Change::Same(first, second));
                }
            }
        }
    }

    fn range(&self, expr: ExprId) -> Range<usize> {
        self.source.map.exprs[expr].as_usize()
    }

    fn source(&self, expr: ExprId) -> &str {
        &self.text[self.range(expr)]
    }

    fn of_text(&mut self) {
        let body = &self.source.body;
        let Some(first) = body.root.first() else { return };
        let start = self.source.map.stmts[*first].start;
        let programs = self.programs();
        let inside = body.exprs.iter().filter(|(id, _)| self.source.map.exprs[*id].start >= start);
        let inside: Vec<(ExprId, Expr)> = inside.map(|(id, expr)| (id, expr.clone())).collect();
        for (id, expr) in inside {
            match expr {
                Expr::Call { callee, args } => self.of_call(id, callee, &args),
                Expr::Compare { first, rest } => {
                    if let [(CompareOp::Lt, right)] = rest.as_slice() {
                        let between = self.range(first).end..self.range(*right).start;
                        let text = self.text[between.clone()].replace('<', "<=");
                        self.add("compare", Change::Text(between, text));
                    }
                }
                Expr::Binary { op: BinaryOp::Mul, lhs, rhs } => {
                    for side in [lhs, rhs] {
                        let of_program = matches!(&self.source.body.exprs[side],
                            Expr::Name(name) if programs.contains(name));
                        if of_program {
                            let text = format!("({} * 0)", self.source(side));
                            self.add("program", Change::Text(self.range(side), text));
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// Variables that hold the program's position.
    fn programs(&self) -> Vec<Name> {
        let body = &self.source.body;
        let assigned = body.stmts.iter().filter_map(|(_, stmt)| match stmt {
            Stmt::Assign { targets, value } => Some((targets.as_slice(), *value)),
            _ => None,
        });
        let of_program = assigned.filter(|(_, value)| self.source(*value).contains(POSITION[0]));
        let names = of_program.flat_map(|(targets, _)| targets).flat_map(|target| {
            match &body.exprs[*target] {
                Expr::Tuple(items) => items.clone(),
                _ => vec![*target],
            }
        });
        let name = |id: ExprId| match &body.exprs[id] {
            Expr::Name(name) => Some(name.clone()),
            _ => None,
        };
        names.filter_map(name).collect()
    }

    fn of_call(&mut self, call: ExprId, callee: ExprId, args: &[Arg]) {
        let name = self.source(callee).to_owned();
        match name.as_str() {
            "tl.load" | "tl.store" => {
                let at = usize::from(name == "tl.store") + 1;
                let keeps = |index: usize, arg: &Arg| match &arg.kind {
                    ArgKind::Keyword(word) => {
                        !matches!(&**word, "mask" | "other" | "boundary_check" | "padding_option")
                    }
                    _ => index < at,
                };
                self.rebuild("mask", call, (&name, args), keeps);
            }
            "tl.atomic_add" => {
                let keeps = |index: usize, arg: &Arg| match &arg.kind {
                    ArgKind::Keyword(word) => &**word == "mask",
                    _ => index < 3,
                };
                self.rebuild("atomic", call, ("tl.store", args), keeps);
            }
            "tl.arange" => {
                let text = format!("({} + 1)", self.source(call));
                self.add("shift", Change::Text(self.range(call), text));
            }
            _ => {}
        }
        if let ("tl.store", Some(pointer)) = (name.as_str(), args.first()) {
            let text = format!("({}) + 1", self.source(pointer.value));
            self.add("store", Change::Text(self.range(pointer.value), text));
        }
    }

    /// The call of a function with some of the arguments, where that changes anything.
    fn rebuild(
        &mut self,
        kind: &'static str,
        call: ExprId,
        (callee, args): (&str, &[Arg]),
        keeps: impl Fn(usize, &Arg) -> bool,
    ) {
        let kept = args.iter().enumerate().filter(|(index, arg)| keeps(*index, arg));
        let kept: Vec<String> = kept
            .map(|(_, arg)| match &arg.kind {
                ArgKind::Keyword(word) => format!("{word}={}", self.source(arg.value)),
                _ => self.source(arg.value).to_owned(),
            })
            .collect();
        if kind != "mask" || kept.len() < args.len() {
            let text = format!("{callee}({})", kept.join(", "));
            self.add(kind, Change::Text(self.range(call), text));
        }
    }
}
