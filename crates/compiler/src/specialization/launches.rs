//! The launches of kernels that scenarios and host code show.
//!
//! A file's host code is run piece by piece: each function and module-level value that may launch
//! something, the program, and each launch that stands by itself. A kernel's launches are those of
//! it in the pieces from which it can be reached; a piece is run once for all kernels.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

use rustc_hash::{FxHashMap, FxHashSet};

use super::Origin;
use super::facts::Table;
use super::known::{Caller, LaunchSite};
use crate::hir::{Class, Expr, ExprId, Item, ItemKind, Launch, MainBlock, Module, Name};
use crate::host::entry::assumed::Extent;
use crate::host::value::contents::Contents;
use crate::host::value::{Storage, Tensor, Value};
use crate::host::{FUEL, Failure, Host, Launcher, ObservedLaunch, Options, may_lead};
use crate::project::launchers::{
    Called, Mentions, called, calls_to_launchers, is_registered, is_test, mentions, named_in,
    reached_by, runs_alone,
};
use crate::project::routes::imported_files;
use crate::project::ways::{Place, ways};
use crate::project::{
    ItemRef, Resolution, Sources, in_class, is_expected_to_fail, item, jit_functions, launched_by,
    launching_item, never_runs, resolve_item,
};
use crate::source::{FileId, FileRange, TextRange};

/// Expressions evaluated together for all functions that a file runs by themselves: where it has many tests,
/// each gets less. Its program has a bound of its own.
const FILE_FUEL: u32 = 200_000;

/// Expressions evaluated at least for each of them.
const LEAST_FUEL: u32 = 8_000;

/// Launches of one kernel as host code makes them, scenarios first: nothing of the kernel itself is
/// in them but its parameters, and which of these it writes to.
#[derive(Debug, Clone, Default)]
pub struct ShownLaunches(pub(super) Vec<(Origin, ObservedLaunch)>);

/// The host code around kernels, as far as it was run.
pub(super) struct HostCode<'a> {
    sources: &'a dyn Sources,
    files: RefCell<FxHashMap<FileId, Rc<HostFile<'a>>>>,
}

impl<'a> HostCode<'a> {
    pub(super) fn new(sources: &'a dyn Sources) -> HostCode<'a> {
        HostCode { sources, files: RefCell::default() }
    }

    /// Launches of `kernel` with what is known of their arguments: scenarios first.
    pub(super) fn launches(&self, kernel: ItemRef) -> ShownLaunches {
        let file = kernel.file;
        let scenarios = self.file(file).of_scenarios(kernel);
        let mut found: Vec<_> =
            scenarios.into_iter().map(|launch| (Origin::Scenario, launch)).collect();
        let files: Vec<FileId> = [file].into_iter().chain(self.sources.importers(file)).collect();
        let launching = self.launching(&files, kernel);
        for from in &files {
            let from = self.file(*from);
            let called = from.called().leading_to(self.sources, &launching);
            for open_flags in [false, true] {
                let options = Options { open_flags, ..Options::default() };
                let launches = from.shown(kernel, &called, options).into_iter();
                found.extend(launches.map(|launch| (Origin::Launch, launch)));
                // A launch that the defaults of the functions around it do not reach.
                if !found.is_empty() {
                    break;
                }
            }
        }
        HostCode::note_open_sizes(&mut found);
        ShownLaunches(found)
    }

    /// Notes of which launches nobody shows sizes.
    fn note_open_sizes(found: &mut [(Origin, ObservedLaunch)]) {
        let known = found.iter().filter(|(_, launch)| !is_vague(launch));
        let known: FxHashSet<_> = known.map(|(_, launch)| launch.at).collect();
        for (_, launch) in found {
            let is_known = launch.at.is_none() || known.contains(&launch.at);
            launch.open_sizes = !is_known && !launch.doubtful && launch.caller.is_some();
        }
    }

    /// The launch of `kernel` at `site` that the function `by` comes to, if it is one, under sizes that are
    /// assumed of the tensors that it gets.
    pub(super) fn under_sizes(
        &self,
        kernel: ItemRef,
        (by, site): (ItemRef, LaunchSite),
        extent: Extent,
    ) -> Option<ObservedLaunch> {
        let options = Options { extent: Some(extent), one_run: true, ..Options::default() };
        let run = self.file(by.file).run(Piece::Item(by.index), options);
        let mut met = of_kernel(&run.launches, kernel).filter(|met| met.site == Some(site));
        let sized = met.next().filter(|met| met.assumed.is_some() && !met.doubtful)?;
        met.next().is_none().then(|| sized.clone())
    }

    /// The functions and classes of `files` by which `kernel` is launched.
    fn launching(&self, files: &[FileId], kernel: ItemRef) -> FxHashSet<Place> {
        let of_file = |file: &FileId| {
            let launchers = self.file(*file).launchers(kernel);
            launchers.iter().map(|name| (*file, name.clone())).collect::<Vec<_>>()
        };
        files.iter().flat_map(of_file).collect()
    }

    /// The exceptions that a file certainly raises, as a program, in functions that take nothing and in tests whose
    /// decorators give all, if it has jit functions; of others, where it calls what launches kernels.
    pub(super) fn failures(&self, file: FileId) -> Vec<Failure> {
        let file = self.file(file);
        file.failures(&file.pieces_about_kernels(is_given_all))
    }

    /// What the same code compares after launches and finds wrong, in a run that computes all numbers with what
    /// `begin` gives it to execute launches.
    pub(super) fn disagreements(&self, file: FileId, begin: &Begin<'_>) -> Vec<Failure> {
        let file = self.file(file);
        file.disagreements(&file.pieces_about_kernels(is_given_all), begin)
    }

    fn file(&self, file: FileId) -> Rc<HostFile<'a>> {
        let mut files = self.files.borrow_mut();
        Rc::clone(files.entry(file).or_insert_with(|| Rc::new(HostFile::new(self.sources, file))))
    }
}

/// True when a launch shows too little of an argument to compile for it.
fn is_open(launch: &ObservedLaunch) -> bool {
    let open = |value: &Value| match value {
        Value::Unknown
        | Value::Collection
        | Value::OneOf(_)
        | Value::Bool(None)
        | Value::Int(None)
        | Value::Float(None) => true,
        Value::Tensor(tensor) => tensor.dtype.is_none(),
        Value::Descriptor(descriptor) => descriptor.tensor.dtype.is_none(),
        _ => false,
    };
    launch.args.iter().any(|(_, value)| open(value))
}

/// True when sizes, numbers or the grid of a launch are not known, or of those that left what is in its
/// memory.
fn is_vague(launch: &ObservedLaunch) -> bool {
    let before = &launch.before;
    is_vague_after(launch, &before.left)
        || before.launches().any(|(launch, left)| is_vague_after(launch, left))
}

/// The same of one launch, where others `left` some of its memory, by allocation.
fn is_vague_after(launch: &ObservedLaunch, left: &[(u32, usize)]) -> bool {
    fn is_open(value: &Value, left: &[(u32, usize)]) -> bool {
        match value.plain() {
            Value::Unknown
            | Value::OneOf(_)
            | Value::Collection
            | Value::Ints
            | Value::Int(None)
            | Value::Float(None)
            | Value::Bool(None) => true,
            Value::Tensor(tensor) => {
                tensor
                    .shape
                    .as_ref()
                    .is_none_or(|shape| shape.iter().any(|size| is_open(size, left)))
                    || tensor.dtype.as_deref().is_some_and(may_lead)
                        && holds_nothing_known(tensor)
                        && !is_left(tensor, left)
            }
            Value::Tuple(items) | Value::List(items) => {
                items.iter().any(|item| is_open(item, left))
            }
            _ => false,
        }
    }
    launch.doubtful
        || launch.args.iter().any(|(_, value)| is_open(value, left))
        || is_open(&launch.grid, left)
}

fn is_left(tensor: &Tensor, left: &[(u32, usize)]) -> bool {
    tensor.allocation().is_some_and(|id| left.iter().any(|(known, _)| *known == id))
}

/// Whether one draw of random numbers may tell more of a launch: something is not known, of its own memory or
/// of what launches before it were given, or only of parts.
fn is_told_by_draws(launch: &ObservedLaunch) -> bool {
    let is_random =
        |storage: &Storage| storage.drawn.is_some() || matches!(storage.contents, Contents::Signed);
    let is_partial = |storage: &Storage| matches!(storage.contents, Contents::Except { .. });
    let mut earlier = launch.before.launches().flat_map(|(launch, _)| &launch.args);
    is_vague(launch)
        || launch.args.iter().any(|(_, value)| storage(value).is_some_and(is_partial))
        || earlier.any(|(_, value)| storage(value).is_some_and(is_random))
}

fn storage(value: &Value) -> Option<&Storage> {
    match value {
        Value::Tensor(tensor) => tensor.storage.as_deref(),
        _ => None,
    }
}

fn holds_nothing_known(tensor: &Tensor) -> bool {
    tensor.storage.as_ref().is_none_or(|storage| storage.contents == Contents::Unknown)
}

/// Adds the launches of a run that draws its random numbers where what any draw shows leaves something
/// open.
fn take_drawn(launches: &mut Vec<ObservedLaunch>, drawn: Vec<ObservedLaunch>) {
    let is_open = |at| {
        let mut launches = launches.iter().filter(|known| known.at == at);
        launches.any(is_told_by_draws)
    };
    let wanted = |launch: &ObservedLaunch| {
        !is_vague(launch)
            && is_open(launch.at)
            && !launches.iter().any(|known| known.is_same(launch))
    };
    let drawn = drawn.into_iter().filter(wanted);
    let drawn: Vec<_> = drawn.map(|launch| ObservedLaunch { drawn: true, ..launch }).collect();
    launches.extend(drawn);
}

/// Notes the arguments of the same launch in one possible run, which must be those that are known.
fn add_example(launch: &mut ObservedLaunch, examples: &[ObservedLaunch]) {
    let agrees = |example: &&ObservedLaunch| {
        let names = |launch: &ObservedLaunch| {
            launch.args.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>()
        };
        let mut pairs = launch.args.iter().zip(&example.args);
        example.at == launch.at
            && example.complete == launch.complete
            && names(example) == names(launch)
            && pairs.all(|((_, known), (_, shown))| {
                known.to_const().is_none_or(|known| shown.to_const() == Some(known))
            })
    };
    if let Some(example) = examples.iter().find(agrees) {
        launch.example.clone_from(&example.args);
    }
}

/// A piece of host code that is run by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Piece {
    /// A function, or the value of an assignment, by its index among the items.
    Item(u32),
    /// What the file runs when it is a program.
    Program,
    /// A launch outside of functions, by its index.
    Launch(u32),
}

/// What a run leaves open.
#[derive(Debug, Clone, Copy, Default)]
struct Open {
    /// Branches left something unknown.
    joined: bool,
    /// Numbers were drawn at random.
    drawn: bool,
}

impl Open {
    fn of(host: &Host<'_>) -> Open {
        Open { joined: host.joined, drawn: host.draws }
    }
}

/// What a piece launches.
#[derive(Debug)]
pub(super) struct Run {
    launches: Vec<ObservedLaunch>,
    open: Open,
    /// The exception that it certainly raises.
    failure: Option<Failure>,
}

impl Run {
    /// Whether a launch of `kernel` is open as random numbers were drawn.
    fn depends_on_draws(&self, kernel: ItemRef) -> bool {
        self.open.drawn && of_kernel(&self.launches, kernel).any(is_told_by_draws)
    }

    /// Whether a launch of `kernel` is open as branches left something unknown.
    fn depends_on_branches(&self, kernel: ItemRef) -> bool {
        self.open.joined && of_kernel(&self.launches, kernel).any(is_open)
    }
}

/// Gives a run what executes its launches.
pub(crate) type Begin<'a> = dyn Fn(&mut dyn FnMut(&dyn Launcher)) + 'a;

/// What the pieces of a file launch, as far as they were run. That follows from the piece and from how it is
/// run alone, so that it is the same whatever kernel is asked about first.
pub(super) type Runs = Table<(Piece, Options), Arc<OnceLock<Arc<Run>>>>;

/// One file's host code.
struct HostFile<'a> {
    sources: &'a dyn Sources,
    file: FileId,
    module: Arc<Module>,
    /// What each launch names.
    launched: Arc<[Resolution]>,
    /// The names that kernels have in the file.
    kernels: FxHashMap<ItemRef, FxHashSet<Name>>,
    mentions: Arc<Mentions>,
    /// What its programs, tests and benchmarks may call of other files.
    called: OnceCell<Arc<Called>>,
    /// The names through which its code launches kernels.
    launchers: RefCell<FxHashMap<ItemRef, Rc<FxHashSet<Name>>>>,
    scenarios: OnceCell<Run>,
    /// Expressions evaluated for each function that runs by itself.
    share: u32,
    /// What runs pieces.
    host: RefCell<Host<'a>>,
    runs: Arc<Runs>,
}

impl<'a> HostFile<'a> {
    fn new(sources: &'a dyn Sources, file: FileId) -> HostFile<'a> {
        let module = sources.module(file).unwrap_or_default();
        HostFile {
            launched: launched(sources, file, &module),
            kernels: kernel_names(sources, file, &module),
            mentions: mentions(sources, file),
            called: OnceCell::default(),
            launchers: RefCell::default(),
            scenarios: OnceCell::default(),
            share: share(&module),
            host: RefCell::new(Host::new(sources)),
            runs: runs(sources, file),
            sources,
            file,
            module,
        }
    }

    /// The exceptions that these pieces certainly raise, each once.
    fn failures(&self, pieces: &[Piece]) -> Vec<Failure> {
        let mut found: Vec<Failure> = Vec::new();
        for piece in pieces {
            let failure = self.run(*piece, Options::default()).failure.clone();
            found
                .extend(failure.filter(|failure| found.iter().all(|known| known.at != failure.at)));
        }
        found
    }

    /// What these pieces compare after launches and find wrong, each once.
    fn disagreements(&self, pieces: &[Piece], begin: &Begin<'_>) -> Vec<Failure> {
        let mut found: Vec<Failure> = Vec::new();
        for piece in pieces {
            let run = self.run(*piece, Options::default());
            if run.failure.is_some() || run.launches.is_empty() {
                continue;
            }
            let mut failure = None;
            begin(&mut |launcher| {
                let mut host = Host::computing(self.sources, launcher, self.fuel(*piece));
                self.run_in(&mut host, *piece);
                failure = host.failure.take().filter(Failure::is_disagreement);
            });
            found
                .extend(failure.filter(|failure| found.iter().all(|known| known.at != failure.at)));
        }
        found
    }

    /// The program and the functions that run by themselves, as far as they have to do with kernels.
    fn pieces_about_kernels(&self, runs: fn(&Item) -> bool) -> Vec<Piece> {
        let items = (0..).zip(&self.module.items).filter(|(_, item)| runs(item));
        let mut items: Vec<u32> = items.map(|(index, _)| index).collect();
        let mut has_program = !self.module.mains.is_empty();
        let has_kernels = !jit_functions(self.sources, self.file).is_empty();
        if !has_kernels && !self.imports_operations() {
            let mut calls = calls_to_launchers(self.sources, self.file);
            calls.extend(ways(self.sources, self.file).launchers.iter().cloned());
            let names = self.mentions.reaching(calls.clone()).union(&calls).cloned().collect();
            let launches = self.module.launches.iter();
            let launching = launches.filter_map(|launch| launching_item(&self.module, launch));
            let calling = self.items_to_run(&launching.collect(), &names);
            items.retain(|index| calling.contains(index));
            let launches = |main: &MainBlock| {
                self.module.launches.iter().any(|launch| main.range.contains_range(launch.range))
            };
            let mut mains = self.module.mains.iter();
            has_program &= mains.any(|main| launches(main) || mentions_one_of(main, &names));
        }
        let program = has_program.then_some(Piece::Program);
        program.into_iter().chain(items.into_iter().map(Piece::Item)).collect()
    }

    /// Whether what it imports registers functions with PyTorch, which any code may call then.
    fn imports_operations(&self) -> bool {
        let registers = |file: &FileId| {
            let module = self.sources.module(*file).unwrap_or_default();
            module.items.iter().any(is_registered)
        };
        imported_files(self.sources, self.file).iter().any(registers)
    }

    /// Launches of a kernel in the file's scenarios.
    fn of_scenarios(&self, kernel: ItemRef) -> Vec<ObservedLaunch> {
        let run = self.scenarios.get_or_init(|| {
            let mut host = Host::new(self.sources);
            for scenario in &self.module.scenarios {
                host.run_scenario(self.file, scenario);
            }
            let open = Open::of(&host);
            Run { launches: host.met_launches(), open, failure: None }
        });
        of_kernel(&run.launches, kernel).cloned().collect()
    }

    fn called(&self) -> &Called {
        self.called.get_or_init(|| called(self.sources, self.file))
    }

    /// The names through which host code launches the kernel here.
    fn launchers(&self, kernel: ItemRef) -> Rc<FxHashSet<Name>> {
        let mut known = self.launchers.borrow_mut();
        let launchers = known.entry(kernel).or_insert_with(|| {
            let launching = self.launching(&self.launches_of(kernel), kernel);
            Rc::new(self.reaching(&launching))
        });
        Rc::clone(launchers)
    }

    fn reaching(&self, launching: &FxHashSet<u32>) -> FxHashSet<Name> {
        let names = launching.iter().flat_map(|index| reached_by(self.item(*index)));
        self.mentions.reaching(names.collect())
    }

    /// Launches that may be of the kernel.
    fn launches_of(&self, kernel: ItemRef) -> Vec<(u32, &Launch)> {
        let item = item(self.sources, kernel);
        let of_class = item.filter(|_| in_class(self.sources, kernel)).map(|item| item.name);
        let of_class: Vec<Name> = of_class.into_iter().chain(self.fields_with(kernel)).collect();
        (0..)
            .zip(&self.module.launches)
            .zip(self.launched.iter())
            .filter(|((_, launch), named)| {
                may_launch(launch, named, kernel)
                    || of_class.iter().any(|name| names_member(launch, name))
            })
            .map(|(launch, _)| launch)
            .filter(|(_, launch)| !is_expected_to_fail(self.sources, self.file, launch.range))
            .collect()
    }

    /// The variables of classes that are set to the kernel by one of its names.
    fn fields_with(&self, kernel: ItemRef) -> impl Iterator<Item = Name> {
        let names = self.kernels.get(&kernel);
        let is_kernel = move |class: &Class, value: Option<ExprId>| {
            let name = value.and_then(|value| class.body.exprs[value].as_name());
            names.is_some_and(|names| name.is_some_and(|name| names.contains(name)))
        };
        let classes = self.module.items.iter().filter_map(|item| match &item.kind {
            ItemKind::Class(class) => Some(class),
            _ => None,
        });
        classes.flat_map(move |class| {
            let fields = class.fields.iter();
            let set = fields.filter(move |(_, _, value)| is_kernel(class, *value));
            set.map(|(name, ..)| name.clone())
        })
    }

    /// The launches of `kernel` that the host code shows. Only what leaves a launch open is run again, with
    /// numbers that are drawn and as one possible run.
    fn shown(
        &self,
        kernel: ItemRef,
        called: &FxHashSet<Name>,
        options: Options,
    ) -> Vec<ObservedLaunch> {
        let pieces = self.pieces(kernel, called, options);
        let mut launches = self.launches(kernel, &pieces, options);
        let again = |leaves_open: fn(&Run, ItemRef) -> bool, options_then: Options| {
            let mut pieces = pieces.clone();
            pieces.retain(|piece| leaves_open(&self.run(*piece, options), kernel));
            self.launches(kernel, &pieces, options_then)
        };
        let drawn = again(Run::depends_on_draws, Options { drawn: true, ..options });
        take_drawn(&mut launches, drawn);
        let examples = again(Run::depends_on_branches, Options { one_run: true, ..options });
        launches.iter_mut().for_each(|launch| add_example(launch, &examples));
        launches
    }

    /// What to run for the launches of `kernel`: the host code that launches it, names it, or mentions
    /// functions that do, and what runs by itself that calls functions of other files that do, which
    /// it has by the names in `called`.
    fn pieces(&self, kernel: ItemRef, called: &FxHashSet<Name>, options: Options) -> Vec<Piece> {
        let launches = self.launches_of(kernel);
        let launching = self.launching(&launches, kernel);
        let mut names = self.reaching(&launching);
        let mut items = self.items_to_run(&launching, &names);
        if !called.is_empty() {
            names.extend(self.mentions.reaching(called.clone()));
            let mut calling = self.items_to_run(&FxHashSet::default(), &names);
            calling.retain(|index| runs_alone(self.item(*index)));
            items.extend(calling);
        }
        let mut pieces: Vec<Piece> = items.into_iter().map(Piece::Item).collect();
        if self.program_reaches(kernel, &launches, names) {
            pieces.push(Piece::Program);
        }
        for (index, launch) in launches {
            let mut scenarios = self.module.scenarios.iter();
            let in_scenario = scenarios.any(|s| s.range.contains_range(launch.range));
            let at = FileRange { file: self.file, range: launch.map.exprs[launch.kernel] };
            // What is run in order may end before it comes to the launch.
            let meets = |piece: &Piece| {
                let run = self.run(*piece, options);
                run.launches.iter().any(|known| known.at == Some(at))
            };
            if launch.host.is_none() && !in_scenario && !pieces.iter().any(meets) {
                pieces.push(Piece::Launch(index));
            }
        }
        pieces
    }

    /// What launches `kernel` when these pieces run.
    fn launches(&self, kernel: ItemRef, pieces: &[Piece], options: Options) -> Vec<ObservedLaunch> {
        let mut found: Vec<ObservedLaunch> = Vec::new();
        for piece in pieces {
            let run = self.run(*piece, options);
            for launch in of_kernel(&run.launches, kernel) {
                match found.iter_mut().find(|known| known.is_same(launch)) {
                    // It happens if one of the two does.
                    Some(known) => known.doubtful &= launch.doubtful,
                    None => found.push(launch.clone()),
                }
            }
        }
        found
    }

    /// Functions of host code that launch the kernel themselves, or name it: they may launch it in
    /// another way.
    fn launching(&self, launches: &[(u32, &Launch)], kernel: ItemRef) -> FxHashSet<u32> {
        let launches = launches.iter();
        let mut found: FxHashSet<u32> =
            launches.filter_map(|(_, launch)| launching_item(&self.module, launch)).collect();
        for index in self.mentions.of_names(&self.names_with(kernel)) {
            if matches!(self.item(index).kind, ItemKind::Function(_)) {
                found.insert(index);
            }
        }
        found
    }

    /// The names that the kernel has here, and those of variables of the module that are made of it by
    /// these, such as a dict of kernels.
    fn names_with(&self, kernel: ItemRef) -> FxHashSet<Name> {
        let mut names = self.kernels.get(&kernel).cloned().unwrap_or_default();
        let of_it = self.mentions.of_names(&names);
        let is_variable = |index: &u32| {
            let item = self.item(*index);
            item.scope.is_empty() && matches!(item.kind, ItemKind::Assign { .. })
        };
        names.extend(
            of_it.into_iter().filter(is_variable).map(|index| self.item(index).name.clone()),
        );
        names
    }

    /// The functions and values to run for a kernel that the functions at `launching` launch, which
    /// have these names.
    fn items_to_run(&self, launching: &FxHashSet<u32>, names: &FxHashSet<Name>) -> BTreeSet<u32> {
        let mut found = self.mentions.of_names(names);
        found.extend(launching);
        found.extend(self.tests_of(names));
        let around: Vec<u32> = found.iter().flat_map(|index| self.around(*index)).collect();
        found.extend(around);
        found.retain(|index| {
            let item = self.item(*index);
            let at = ItemRef { file: self.file, index: *index };
            // What runs as a program runs there, in order.
            let is_class = matches!(item.kind, ItemKind::Class(_));
            let in_program = matches!(item.kind, ItemKind::Assign { .. })
                && self.module.mains.iter().any(|main| main.range.contains_range(item.range));
            let never = item.guard.is_some() && never_runs(self.sources, None, at);
            !is_class && !in_program && !never
        });
        found
    }

    /// The tests of classes that have one of these names: they may call methods beside them.
    fn tests_of(&self, names: &FxHashSet<Name>) -> impl Iterator<Item = u32> {
        let of_class = |item: &Item| match (&item.kind, &item.scope[..]) {
            (ItemKind::Function(function), [class]) => names.contains(class) && is_test(function),
            _ => false,
        };
        let items = (0..).zip(&self.module.items);
        items.filter(move |(_, item)| of_class(item)).map(|(index, _)| index)
    }

    /// The functions that something stands in: they may call it with what it does not have itself.
    fn around(&self, index: u32) -> impl Iterator<Item = u32> {
        let scope = &self.item(index).scope;
        scope.iter().enumerate().flat_map(move |(depth, name)| {
            self.module.items_named(name).filter(move |index| {
                let item = self.item(*index);
                matches!(item.kind, ItemKind::Function(_)) && item.scope == scope[..depth]
            })
        })
    }

    /// Whether the program launches the kernel, by its own name or one of `names`, or calls what does.
    fn program_reaches(
        &self,
        kernel: ItemRef,
        launches: &[(u32, &Launch)],
        mut names: FxHashSet<Name>,
    ) -> bool {
        if self.module.mains.is_empty() {
            return false;
        }
        names.extend(self.kernels.get(&kernel).into_iter().flatten().cloned());
        let reaches = |main: &MainBlock| {
            let holds = |range: TextRange| main.range.contains_range(range);
            launches.iter().any(|(_, launch)| holds(launch.range)) || mentions_one_of(main, &names)
        };
        self.module.mains.iter().any(reaches)
    }

    fn item(&self, index: u32) -> &Item {
        &self.module.items[index as usize]
    }

    /// What a piece launches.
    fn run(&self, piece: Piece, options: Options) -> Arc<Run> {
        let kept = self.runs.get((piece, options), Arc::default);
        Arc::clone(kept.get_or_init(|| Arc::new(self.run_anew(piece, options))))
    }

    /// Expressions evaluated for a piece at most.
    fn fuel(&self, piece: Piece) -> u32 {
        match piece {
            Piece::Item(index) if runs_alone(self.item(index)) => self.share,
            _ => FUEL,
        }
    }

    fn run_anew(&self, piece: Piece, options: Options) -> Run {
        let mut host = self.host.borrow_mut();
        host.begin(options, self.fuel(piece));
        self.run_in(&mut host, piece);
        let mut launches = host.met_launches();
        if let Piece::Item(index) = piece {
            let caller = Some(Caller(ItemRef { file: self.file, index }));
            launches.iter_mut().for_each(|launch| launch.caller = caller);
        }
        Run { launches, open: Open::of(&host), failure: host.failure.take() }
    }

    fn run_in(&self, host: &mut Host<'_>, piece: Piece) {
        match piece {
            Piece::Item(index) => {
                let item = self.item(index);
                match &item.kind {
                    ItemKind::Assign { body, map, value, .. } => {
                        host.module_expr(self.file, &item.scope, (body, map), *value);
                    }
                    ItemKind::Function(function) => {
                        host.run_function(self.file, item, function);
                    }
                    _ => {}
                }
            }
            Piece::Program => {
                host.run_program(self.file, &self.module.mains);
            }
            Piece::Launch(index) => host.observe(self.file, &self.module.launches[index as usize]),
        }
    }
}

/// Whether an item is a function of a module that takes nothing.
fn takes_nothing(item: &Item) -> bool {
    match &item.kind {
        ItemKind::Function(function) => item.scope.is_empty() && function.params.is_empty(),
        _ => false,
    }
}

/// Whether it is one, or a test, perhaps of a class, which decorators give what it takes.
fn is_given_all(item: &Item) -> bool {
    let is_test = |item: &Item| match &item.kind {
        ItemKind::Function(function) => item.scope.len() <= 1 && is_test(function),
        _ => false,
    };
    takes_nothing(item) || is_test(item)
}

/// Expressions evaluated for each function of a module that runs by itself.
fn share(module: &Module) -> u32 {
    let alone = module.items.iter().filter(|item| runs_alone(item)).count();
    (FILE_FUEL / alone.max(1) as u32).clamp(LEAST_FUEL, FUEL)
}

/// What the pieces of a file launch, which is kept where files never change.
fn runs(sources: &dyn Sources, file: FileId) -> Arc<Runs> {
    match sources.facts() {
        Some(facts) => facts.runs.get(file, Arc::default),
        None => Arc::default(),
    }
}

/// Whether an outermost statement has one of these names in its code.
fn mentions_one_of(main: &MainBlock, names: &FxHashSet<Name>) -> bool {
    named_in(&main.body).any(|name| names.contains(name))
}

/// The launches of one kernel.
fn of_kernel(
    launches: &[ObservedLaunch],
    kernel: ItemRef,
) -> impl Iterator<Item = &ObservedLaunch> {
    let wanted = Value::Named(Resolution::Jit(kernel));
    launches.iter().filter(move |launch| launch.kernel == wanted)
}

/// The names that each kernel has in a file.
fn kernel_names(
    sources: &dyn Sources,
    file: FileId,
    module: &Module,
) -> FxHashMap<ItemRef, FxHashSet<Name>> {
    let find = || {
        let items = (0..module.items.len() as u32).map(|index| ItemRef { file, index });
        items.map(|at| resolve_item(sources, at)).collect()
    };
    let meant = match sources.facts() {
        Some(facts) => facts.items.get(file, find),
        None => find(),
    };
    let mut names: FxHashMap<ItemRef, FxHashSet<Name>> = FxHashMap::default();
    for (item, meant) in module.items.iter().zip(meant.iter()) {
        if let Resolution::Jit(kernel) = meant {
            names.entry(*kernel).or_default().insert(item.name.clone());
        }
    }
    names
}

/// What each launch in a file names.
fn launched(sources: &dyn Sources, file: FileId, module: &Module) -> Arc<[Resolution]> {
    let named = |launch: &Launch| launched_by(sources, file, module, launch);
    let find = || module.launches.iter().map(named).collect();
    match sources.facts() {
        Some(facts) => facts.launched.get(file, find),
        None => find(),
    }
}

/// True when what a launch names is a member of this name of something.
fn names_member(launch: &Launch, name: &Name) -> bool {
    matches!(&launch.body.exprs[launch.kernel], Expr::Attribute { attr, .. } if attr == name)
}

/// True when a launch may be of `kernel`: what it names is it, or a variable that may hold it.
fn may_launch(launch: &Launch, named: &Resolution, kernel: ItemRef) -> bool {
    match named {
        Resolution::Jit(at) => *at == kernel,
        Resolution::Undefined => launch.host.is_some(),
        _ => false,
    }
}
