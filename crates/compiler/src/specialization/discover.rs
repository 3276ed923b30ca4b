//! Finding what a kernel is compiled for.
//!
//! Scenarios and launches give arguments; autotune configurations multiply them; heuristics,
//! defaults and, last, the guess fill in the rest. Nothing is executed: see [`super::host`].

use std::sync::Arc;

use indexmap::IndexMap;
use indexmap::map::Entry;
use rustc_hash::{FxHashMap, FxHashSet};

use super::config::Config;
use super::flags::Flags;
use super::guess::{self, KernelFacts};
use super::host::value::{Descriptor, Tensor, Value};
use super::host::{Host, ObservedLaunch, Options, SPELLINGS, language_dtype};
use super::known::{Binding, KnownLaunch, known_launch};
use super::tuning::{Tuning, tuning};
use super::usage::{self, Compared, Use};
use super::{ArgSpec, ConstArg, Origin, Specialization, TupleArg, TupleNames};
use crate::hir::{
    Body, Expr, ItemKind, Launch, Literal, MainBlock, Module, Name, Param, ParamKind,
};
use crate::ir::LaunchOptions;
use crate::project::{
    ItemRef, Kernel, Resolution, Scope, Sources, constexpr_params, is_expected_to_fail, is_jit,
    kernel, launch_scope, launching_item, never_runs, resolve_expr, resolve_item,
};
use crate::source::{FileId, FileRange, TextRange};

/// At most this many specializations of one kernel are listed.
pub const MAX_SPECIALIZATIONS: usize = 64;

/// At most this many launches of one specialization are kept.
const MAX_LAUNCHES: usize = 8;

/// Everything that the kernel `at` is compiled for, best known first: flags, scenarios,
/// launches, autotune configurations, the guess. Empty when `at` is no jit function.
///
/// With flags there is one origin only: what is found without them, with their arguments in
/// place of what was found.
pub fn discover(sources: &dyn Sources, at: ItemRef, flags: &Flags) -> Vec<Specialization> {
    let Some(kernel) = kernel(sources, at) else { return Vec::new() };
    let binder = Binder::new(sources, &kernel);
    let mut found = binder.of_launches(&launches(sources, &kernel));
    if found.is_empty() {
        let is_guess = binder.tuning.stated.is_empty();
        let origin = if is_guess { Origin::Guess } else { Origin::Autotune };
        binder.specialize(origin, None, &mut found);
    }
    follow_scenario(&mut found);
    if !flags.is_empty() {
        found.iter_mut().for_each(|spec| overlay(spec, flags));
    }
    found.sort_by_key(|spec| (spec.origin, spec.assumed.len(), spec.is_doubtful()));
    let mut found = merge_equal(found);
    found.truncate(MAX_SPECIALIZATIONS);
    found
}

/// True when nothing about a launch's arguments had to be assumed.
fn is_certain(specs: &[Specialization]) -> bool {
    specs.iter().all(|spec| spec.assumed.is_empty())
}

/// Gives arguments that a launch does not show what the first scenario gives them: element types
/// of pointers, and constants. Its author has said there what the kernel is for.
fn follow_scenario(found: &mut [Specialization]) {
    let Some(scenario) = found.iter().find(|spec| spec.origin == Origin::Scenario) else { return };
    let shown = scenario.clone();
    for spec in found.iter_mut() {
        for name in &spec.assumed {
            let (Some(arg), Some(known)) = (spec.args.get_mut(name), shown.args.get(name)) else {
                continue;
            };
            let constants = [&*arg, known].iter().all(|arg| matches!(arg, ArgSpec::Constexpr(_)));
            let pointers = is_pointer(arg) && is_pointer(known);
            if (constants || pointers) && !shown.assumed.contains(name) {
                *arg = known.clone();
            }
        }
    }
}

fn is_pointer(arg: &ArgSpec) -> bool {
    matches!(arg, ArgSpec::Runtime { signature, .. } if signature.starts_with('*'))
}

/// Keeps the first of equal specializations, with the launches of all.
fn merge_equal(found: Vec<Specialization>) -> Vec<Specialization> {
    let mut merged: IndexMap<String, Specialization> = IndexMap::new();
    for spec in found {
        match merged.entry(spec.to_string()) {
            Entry::Vacant(entry) => {
                entry.insert(spec);
            }
            Entry::Occupied(mut entry) => {
                let launches = &mut entry.get_mut().launches;
                // Sizes that go with a guess prove nothing about what is known.
                let certain = spec.assumed.is_empty();
                for launch in spec.launches.into_iter().filter(|_| certain) {
                    if launches.len() < MAX_LAUNCHES && !launches.contains(&launch) {
                        launches.push(launch);
                    }
                }
            }
        }
    }
    merged.into_values().collect()
}

/// Puts the arguments of `flags` in place of what was found.
fn overlay(spec: &mut Specialization, flags: &Flags) {
    for (name, arg) in &mut spec.args {
        if let Some(given) = flags.arg(name) {
            *arg = given.clone();
            spec.assumed.retain(|assumed| assumed != name);
        }
    }
    spec.options.num_warps = flags.num_warps.unwrap_or(spec.options.num_warps);
    spec.options.num_stages = flags.num_stages.unwrap_or(spec.options.num_stages);
    spec.origin = Origin::Flags;
    // Sizes in the text belong to the arguments in the text.
    spec.launches.clear();
}

/// Launches of `kernel` with what is known of their arguments: scenarios first.
fn launches(sources: &dyn Sources, kernel: &Kernel) -> Vec<(Origin, ObservedLaunch)> {
    let mut host = Host::new(sources);
    let file = kernel.at.file;
    let Some(module) = sources.module(file) else { return Vec::new() };
    for scenario in &module.scenarios {
        host.run_scenario(file, scenario);
    }
    let mut found = take_launches(&mut host, kernel, Origin::Scenario);
    let mut files = vec![file];
    files.extend(sources.importers(file));
    for file in files {
        for open_flags in [false, true] {
            let options = Options { open_flags, one_run: false };
            let (mut launches, joined) = run_host_code(sources, file, kernel, options);
            if joined && launches.iter().any(|(_, launch)| is_open(launch)) {
                let options = Options { one_run: true, ..options };
                let (examples, _) = run_host_code(sources, file, kernel, options);
                launches.iter_mut().for_each(|(_, launch)| add_example(launch, &examples));
            }
            found.extend(launches);
            // A launch that the defaults of the functions around it do not reach.
            if !found.is_empty() {
                break;
            }
        }
    }
    found
}

fn take_launches(
    host: &mut Host<'_>,
    kernel: &Kernel,
    origin: Origin,
) -> Vec<(Origin, ObservedLaunch)> {
    let wanted = Value::Named(Resolution::Jit(kernel.at));
    let launches = std::mem::take(&mut host.launches).into_iter();
    launches.filter(|launch| launch.kernel == wanted).map(|launch| (origin, launch)).collect()
}

/// True when a launch shows too little of an argument to compile for it.
fn is_open(launch: &ObservedLaunch) -> bool {
    let open = |value: &Value| match value {
        Value::Unknown
        | Value::OneOf(_)
        | Value::Bool(None)
        | Value::Int(None)
        | Value::Float(None) => true,
        Value::Tensor(tensor) | Value::Descriptor(Descriptor { tensor, .. }) => {
            tensor.dtype.is_none()
        }
        _ => false,
    };
    launch.args.iter().any(|(_, value)| open(value))
}

/// Notes the arguments of the same launch in one possible run, which must be those that are known.
fn add_example(launch: &mut ObservedLaunch, examples: &[(Origin, ObservedLaunch)]) {
    let agrees = |example: &ObservedLaunch| {
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
    if let Some((_, example)) = examples.iter().find(|(_, example)| agrees(example)) {
        launch.example.clone_from(&example.args);
    }
}

/// What launches `kernel` when the host code of `file` runs that launches it, names it, or
/// mentions functions that do; and whether branches left something unknown.
fn run_host_code(
    sources: &dyn Sources,
    file: FileId,
    kernel: &Kernel,
    options: Options,
) -> (Vec<(Origin, ObservedLaunch)>, bool) {
    let Some(module) = sources.module(file) else { return (Vec::new(), false) };
    let mut host = Host::with(sources, options);
    let launches: Vec<&Launch> = module
        .launches
        .iter()
        .zip(launched(sources, file, &module).iter())
        .filter(|(launch, named)| may_launch(launch, named, kernel.at))
        .map(|(launch, _)| launch)
        .filter(|launch| !is_expected_to_fail(sources, file, launch.range))
        .collect();
    let launching = launching_items(sources, file, &module, &launches, kernel.at);
    let names = launcher_names(&module, &launching);
    for (index, item) in module.items.iter().enumerate() {
        let at = ItemRef { file, index: index as u32 };
        if item.guard.is_some() && never_runs(sources, None, at) {
            continue;
        }
        match &item.kind {
            // What runs as a program runs below, in order.
            ItemKind::Assign { .. } if in_main(&module, item.range) => {}
            ItemKind::Assign { body, map, value, .. } if mentions(body, &names) => {
                host.module_expr(file, &item.scope, (body, map), *value);
            }
            ItemKind::Function(function)
                if launching.contains(&(index as u32)) || mentions(&function.body, &names) =>
            {
                host.run_function(file, &item.scope, function);
            }
            _ => {}
        }
    }
    if !module.mains.is_empty() {
        let mut reaching = reaching_names(&module, &names);
        reaching.extend(kernel_names(sources, file, &module, kernel.at));
        let runs = |main: &MainBlock| {
            let mut launches = launches.iter();
            let launches_here = launches.any(|launch| main.range.contains_range(launch.range));
            launches_here || mentions(&main.body, &reaching)
        };
        if module.mains.iter().any(runs) {
            host.run_mains(file, &module.mains);
        }
    }
    for launch in launches {
        let in_scenario = module.scenarios.iter().any(|s| s.range.contains_range(launch.range));
        let at = FileRange { file, range: launch.map.exprs[launch.kernel] };
        // What is run in order may end before it comes to the launch.
        let met = || host.launches.iter().any(|known| known.at == Some(at));
        if launch.host.is_none() && !in_scenario && !met() {
            host.observe(file, launch);
        }
    }
    (take_launches(&mut host, kernel, Origin::Launch), host.joined)
}

/// Functions of host code that launch the kernel themselves, or name it: they may launch it in
/// another way.
fn launching_items(
    sources: &dyn Sources,
    file: FileId,
    module: &Module,
    launches: &[&Launch],
    kernel: ItemRef,
) -> Vec<u32> {
    let mut found: Vec<u32> =
        launches.iter().filter_map(|launch| launching_item(module, launch)).collect();
    let names = kernel_names(sources, file, module, kernel);
    for (index, item) in module.items.iter().enumerate() {
        let at = ItemRef { file, index: index as u32 };
        if let ItemKind::Function(function) = &item.kind
            && !found.contains(&at.index)
            && mentions(&function.body, &names)
            && !is_jit(sources, at)
        {
            found.push(at.index);
        }
    }
    found
}

/// The names that a kernel has in a file.
fn kernel_names(
    sources: &dyn Sources,
    file: FileId,
    module: &Module,
    kernel: ItemRef,
) -> FxHashSet<Name> {
    let find = || {
        let items = (0..module.items.len() as u32).map(|index| ItemRef { file, index });
        items.map(|at| resolve_item(sources, at)).collect()
    };
    let meant = match sources.facts() {
        Some(facts) => facts.items.get(file, find),
        None => find(),
    };
    let items = module.items.iter().zip(meant.iter());
    let items = items.filter(|(_, meant)| **meant == Resolution::Jit(kernel));
    items.map(|(item, _)| item.name.clone()).collect()
}

fn in_main(module: &Module, range: TextRange) -> bool {
    module.mains.iter().any(|main| main.range.contains_range(range))
}

/// Names through which host code reaches the functions at `launching`: their own, their
/// classes', and those of module-level values made from these.
fn launcher_names(module: &Module, launching: &[u32]) -> FxHashSet<Name> {
    let items = launching.iter().map(|index| &module.items[*index as usize]);
    let mut names: FxHashSet<Name> =
        items.map(|item| item.scope.first().unwrap_or(&item.name).clone()).collect();
    for item in &module.items {
        if let ItemKind::Assign { body, .. } = &item.kind
            && mentions(body, &names)
        {
            names.insert(item.name.clone());
        }
    }
    names
}

/// `names` and the names of functions that reach one of them through others.
fn reaching_names(module: &Module, names: &FxHashSet<Name>) -> FxHashSet<Name> {
    let mut reaching = names.clone();
    loop {
        let before = reaching.len();
        for item in &module.items {
            if let ItemKind::Function(function) = &item.kind
                && mentions(&function.body, &reaching)
            {
                reaching.insert(item.scope.first().unwrap_or(&item.name).clone());
            }
        }
        if reaching.len() == before {
            return reaching;
        }
    }
}

fn mentions(body: &Body, names: &FxHashSet<Name>) -> bool {
    let is_name = |expr: &Expr| matches!(expr, Expr::Name(name) if names.contains(name));
    !names.is_empty() && body.exprs.values().any(is_name)
}

/// What each launch in a file names.
fn launched(sources: &dyn Sources, file: FileId, module: &Module) -> Arc<[Resolution]> {
    let named = |launch: &Launch| {
        let path = launch_scope(module, launch);
        resolve_expr(sources, Scope { file, path: &path }, &launch.body, launch.kernel)
    };
    let find = || module.launches.iter().map(named).collect();
    match sources.facts() {
        Some(facts) => facts.launched.get(file, find),
        None => find(),
    }
}

/// True when a launch may be of `kernel`: what it names is it, or a variable that may hold it.
fn may_launch(launch: &Launch, named: &Resolution, kernel: ItemRef) -> bool {
    match named {
        Resolution::Jit(at) => *at == kernel,
        Resolution::Undefined => launch.host.is_some(),
        _ => false,
    }
}

/// Binds arguments to the parameters of one kernel.
struct Binder<'a> {
    sources: &'a dyn Sources,
    kernel: &'a Kernel,
    tuning: Tuning,
    uses: Arc<[Use]>,
    constexpr: Vec<Name>,
    facts: KernelFacts,
}

/// An argument of one specialization.
struct Bound {
    spec: ArgSpec,
    /// The value that the launch gives, which tells more than the specialization keeps.
    given: Option<Value>,
    assumed: bool,
}

impl Bound {
    fn new(spec: ArgSpec, assumed: bool) -> Bound {
        Bound { spec, given: None, assumed }
    }

    /// What heuristics see.
    fn value(&self) -> Value {
        match &self.given {
            Some(value) if !matches!(value, Value::Unknown | Value::Omitted) => value.clone(),
            _ => value_of(&self.spec),
        }
    }
}

impl<'a> Binder<'a> {
    fn new(sources: &'a dyn Sources, kernel: &'a Kernel) -> Binder<'a> {
        let constexpr = constexpr_params(sources, kernel.at);
        let uses = usage::uses(sources, kernel.at);
        let extents = kernel.function.params.iter().zip(uses.iter());
        let extents =
            extents.filter(|(param, uses)| uses.extent && constexpr.contains(&param.name));
        let facts = KernelFacts {
            extents: extents.count(),
            has_dot: usage::has_dot(&kernel.function.body),
            has_columns: usage::has_columns(&kernel.function.body),
        };
        Binder { sources, kernel, tuning: tuning(sources, kernel), uses, constexpr, facts }
    }

    /// The specializations of launches; of one place in the text only those of which everything is
    /// known, if there are such.
    fn of_launches(&self, launches: &[(Origin, ObservedLaunch)]) -> Vec<Specialization> {
        let specialized: Vec<(&ObservedLaunch, Vec<Specialization>)> = launches
            .iter()
            .map(|(origin, launch)| {
                let mut specs = Vec::new();
                self.specialize(*origin, Some(launch), &mut specs);
                (launch, specs)
            })
            .collect();
        let certain: Vec<FileRange> = specialized
            .iter()
            .filter(|(_, specs)| is_certain(specs))
            .filter_map(|(launch, _)| launch.at)
            .collect();
        let shown = |launch: &ObservedLaunch| launch.at.is_some_and(|at| certain.contains(&at));
        let kept =
            specialized.into_iter().filter(|(launch, specs)| is_certain(specs) || !shown(launch));
        kept.flat_map(|(_, specs)| specs).collect()
    }

    /// Adds one specialization per autotune configuration, or one when there are none.
    fn specialize(
        &self,
        origin: Origin,
        launch: Option<&ObservedLaunch>,
        found: &mut Vec<Specialization>,
    ) {
        if self.tuning.configs.is_empty() {
            found.push(self.bind(origin, launch, None));
            return;
        }
        for (index, config) in self.tuning.configs.iter().take(MAX_SPECIALIZATIONS).enumerate() {
            // What a scenario launches is the first configuration; the others are tuning.
            let of_scenario = origin == Origin::Scenario && index == 0;
            let origin = if of_scenario { origin } else { Origin::Autotune };
            let spec = self.bind(origin, launch, Some(config));
            found.push(Specialization { config: Some(index), ..spec });
        }
    }

    fn bind(
        &self,
        origin: Origin,
        launch: Option<&ObservedLaunch>,
        config: Option<&Config>,
    ) -> Specialization {
        let mut bound: IndexMap<Name, Bound> = IndexMap::new();
        let args = launch.map(|launch| &*launch.args);
        let hooked = self.hooked_arguments(launch, args, config, false);
        let example = launch.map(|launch| &*launch.example);
        let hooked_example = self.hooked_arguments(launch, example, config, true);
        for (index, param) in self.kernel.function.params.iter().enumerate() {
            if matches!(param.kind, ParamKind::VarArgs | ParamKind::KwArgs) {
                continue;
            }
            let given =
                launch.and_then(|launch| argument(launch, &launch.args, index, &param.name));
            let tuned = config.and_then(|config| {
                config.kwargs.iter().find(|(name, _)| *name == param.name).map(|(_, value)| value)
            });
            let argument = match tuned {
                Some(value) => Bound::new(ArgSpec::Constexpr(value.clone()), self.tuning.one_run),
                None => {
                    let hooked = hooked.iter().find(|(name, _)| *name == param.name);
                    let given = hooked.map(|(_, value)| value).or(given);
                    let bound = self.argument(index, param, given);
                    let example = launch.filter(|_| bound.assumed && hooked.is_none());
                    let example = example.and_then(|launch| {
                        let hooked = hooked_example.iter().find(|(name, _)| *name == param.name);
                        let shown = argument(launch, &launch.example, index, &param.name);
                        let value = hooked.map(|(_, value)| value).or(shown)?;
                        Some(self.argument(index, param, Some(value)).spec)
                    });
                    let spec = example.unwrap_or(bound.spec);
                    Bound { spec, given: given.cloned(), ..bound }
                }
            };
            bound.insert(param.name.clone(), argument);
        }
        self.apply_heuristics(&mut bound);
        let known = launch.map(|launch| self.known_launch(origin, launch, &bound));
        let assumed = bound.iter().filter(|(_, bound)| bound.assumed);
        Specialization {
            launches: known.into_iter().collect(),
            assumed: assumed.map(|(name, _)| name.clone()).collect(),
            args: bound.into_iter().map(|(name, bound)| (name, bound.spec)).collect(),
            options: self.options(launch, config),
            origin,
            config: None,
        }
    }

    fn options(&self, launch: Option<&ObservedLaunch>, config: Option<&Config>) -> LaunchOptions {
        let mut options = options(launch, config);
        if let (None, None) = (launch, config) {
            let stated = &self.tuning.stated;
            options.num_warps = stated.num_warps.unwrap_or(options.num_warps);
            options.num_stages = stated.num_stages.unwrap_or(options.num_stages);
        }
        options
    }

    /// What a launch shows beyond what the kernel is compiled for.
    fn known_launch(
        &self,
        origin: Origin,
        launch: &ObservedLaunch,
        bound: &IndexMap<Name, Bound>,
    ) -> KnownLaunch {
        let meta = bound.iter().map(|(name, bound)| (Value::Str(name.clone()), bound.value()));
        let meta = Value::Dict(meta.collect());
        let args = bound.iter().map(|(name, bound)| {
            let param = self.kernel.function.params.iter().find(|param| param.name == *name);
            let default = param.and_then(|param| param.default).filter(|_| bound.given.is_none());
            let value = match default {
                Some(default) => self.head_value(default),
                None => bound.value(),
            };
            (name, &bound.spec, value)
        });
        let missing = self.missing(launch, bound);
        let binding = Binding { kernel: self.kernel, missing, constexpr: &self.constexpr };
        known_launch(self.sources, origin, launch, args, meta, &binding)
    }

    /// Parameters that a launch gives no value, and nothing else does.
    fn missing(&self, launch: &ObservedLaunch, bound: &IndexMap<Name, Bound>) -> Vec<Name> {
        let known = self.tuning.complete || self.tuning.spelled.is_some();
        let params = self.kernel.function.params.iter().enumerate().filter(|_| known);
        let missing = params.filter(|(index, param)| {
            let tuned = self
                .tuning
                .configs
                .iter()
                .any(|config| config.kwargs.iter().any(|(name, _)| *name == param.name));
            let spelled =
                self.tuning.spelled.as_ref().is_some_and(|names| names.contains(&param.name));
            let set = tuned || spelled || self.tuning.heuristics.contains(&param.name);
            let given = argument(launch, &launch.args, *index, &param.name).is_some();
            param.default.is_none() && !set && !given && bound.contains_key(&param.name)
        });
        missing.map(|(_, param)| param.name.clone()).collect()
    }

    /// Arguments that the configuration's `pre_hook` changes before a launch: it gives
    /// descriptors the block shapes that the configuration means.
    fn hooked_arguments(
        &self,
        launch: Option<&ObservedLaunch>,
        args: Option<&[(Option<Name>, Value)]>,
        config: Option<&Config>,
        one_run: bool,
    ) -> Vec<(Name, Value)> {
        let (Some(launch), Some(given), Some(config)) = (launch, args, config) else {
            return Vec::new();
        };
        let Some(hook) = config.pre_hook else { return Vec::new() };
        let mut args = Vec::new();
        for (index, param) in self.kernel.function.params.iter().enumerate() {
            let tuned = config.kwargs.iter().find(|(name, _)| *name == param.name);
            let value = match tuned {
                Some((_, value)) => Some(Value::from_const(value)),
                None => argument(launch, given, index, &param.name).cloned(),
            };
            args.extend(value.map(|value| (Value::Str(param.name.clone()), value)));
        }
        let options = Options { one_run, ..Options::default() };
        let changed = Host::with(self.sources, options).run_hook(hook, Value::Dict(args));
        let descriptors = changed.into_iter().filter_map(|(key, value)| match (key, &value) {
            (Value::Str(name), Value::Descriptor(_)) => Some((name, value)),
            _ => None,
        });
        descriptors.collect()
    }

    /// The value of a parameter that no configuration sets.
    fn argument(&self, index: usize, param: &Param, given: Option<&Value>) -> Bound {
        let is_constexpr = self.constexpr.contains(&param.name);
        if matches!(given, Some(Value::Omitted)) {
            return self.omitted_argument(index, param, is_constexpr);
        }
        let known = match given {
            Some(Value::Named(Resolution::Jit(at))) => self.function_argument(*at),
            Some(value) if is_constexpr => value.to_const().map(ArgSpec::Constexpr),
            Some(value) => self.runtime_argument(param, value),
            None => None,
        };
        if let Some(spec) = known {
            return Bound::new(spec, false);
        }
        if given.is_none()
            && let Some(spec) = self.tuning.stated.argument(&param.name)
        {
            return Bound::new(spec.clone(), false);
        }
        let default =
            if given.is_none() { self.default_argument(param, is_constexpr) } else { None };
        if let Some(spec) = default {
            return Bound::new(spec, false);
        }
        if let Some(Value::Descriptor(Descriptor { tensor, block })) = given
            && tensor.dtype.is_none()
            && let Some(spec) = descriptor("fp32", block)
        {
            return Bound::new(spec, true);
        }
        if let Some(given) = given.filter(|_| !is_constexpr)
            && let Some(spec) = self.partly_known(index, param, given)
        {
            return Bound::new(spec, true);
        }
        if let Some(extent) = self.tuning.stated.extent(&param.name).filter(|_| is_constexpr) {
            return Bound::new(extent, true);
        }
        Bound::new(self.guess(index, param, is_constexpr), true)
    }

    /// A tuple of which not everything is known; `None` for other values.
    fn partly_known(&self, index: usize, param: &Param, value: &Value) -> Option<ArgSpec> {
        let uses = self.uses.get(index).copied().unwrap_or_default();
        let (items, named) = match value {
            Value::Ints => return Some(guess::tuple(&param.name, &uses)),
            Value::Tuple(items) => (items, None),
            Value::Record { names, items } => (items, Some(names.clone())),
            _ => return None,
        };
        let item = |item: &Value| {
            let known = self.runtime_argument(param, item);
            known.or_else(|| self.partly_known(index, param, item))
        };
        let guessed = |at: usize| {
            let names: Option<&Arc<TupleNames>> = named.as_ref();
            guess::element(names.map_or(&*param.name, |names| &*names.fields[at]), &uses)
        };
        let items = items.iter().enumerate();
        let items = items.map(|(at, value)| item(value).unwrap_or_else(|| guessed(at))).collect();
        Some(ArgSpec::Tuple(TupleArg { items, named }))
    }

    /// An argument that host code leaves out by default: `None`, unless the kernel needs it.
    fn omitted_argument(&self, index: usize, param: &Param, is_constexpr: bool) -> Bound {
        let uses = self.uses.get(index).copied().unwrap_or_default();
        let number = uses.operand && !uses.pointer && !uses.none_test;
        let required = uses.required || number;
        let spec = match required {
            true => self.guess(index, param, is_constexpr),
            false => ArgSpec::Constexpr(ConstArg::None),
        };
        Bound::new(spec, true)
    }

    fn default_argument(&self, param: &Param, is_constexpr: bool) -> Option<ArgSpec> {
        let default = self.head_value(param.default?);
        match default {
            Value::Named(Resolution::Jit(at)) => self.function_argument(at),
            value if is_constexpr => value.to_const().map(ArgSpec::Constexpr),
            value => self.runtime_argument(param, &value),
        }
    }

    fn head_value(&self, id: crate::hir::ExprId) -> Value {
        let (at, scope) = (self.kernel.at, &self.kernel.item.scope);
        Host::new(self.sources).head_expr(at.file, scope, &self.kernel.function, id)
    }

    /// A jit function as an argument, by the name it has where the kernel is defined.
    fn function_argument(&self, at: ItemRef) -> Option<ArgSpec> {
        let name = crate::project::item(self.sources, at)?.name;
        let module = self.sources.module(self.kernel.at.file)?;
        let visible = module.items.iter().enumerate().find(|(index, _)| {
            let candidate = ItemRef { file: self.kernel.at.file, index: *index as u32 };
            resolve_item(self.sources, candidate) == Resolution::Jit(at)
        });
        let name = visible.map_or(name, |(_, item)| item.name.clone());
        Some(ArgSpec::Constexpr(ConstArg::Function(name)))
    }

    /// What a value passed at run time is specialized to; `None` when too little is known.
    fn runtime_argument(&self, param: &Param, value: &Value) -> Option<ArgSpec> {
        if let Some(forced) = self.forced_type(param) {
            return match value {
                Value::None => Some(ArgSpec::Constexpr(ConstArg::None)),
                Value::Int(value) => Some(self.integer(param, *value, Some(forced))),
                _ => Some(ArgSpec::Runtime {
                    divisible_by_16: forced.starts_with('*'),
                    signature: forced.into(),
                }),
            };
        }
        Some(match value {
            Value::Constexpr(value) => ArgSpec::Constexpr(value.to_const()?),
            Value::None => ArgSpec::Constexpr(ConstArg::None),
            Value::Bool(_) => guess::number("u1"),
            Value::Int(value) => self.integer(param, *value, None),
            Value::Float(_) => guess::number("fp32"),
            Value::Tensor(Tensor { dtype: Some(dtype), .. }) => {
                let konst = if self.is_const_pointer(param) { "k" } else { "" };
                let aligned = !self.tuning.do_not_specialize.contains(&param.name)
                    && !self.tuning.do_not_specialize_on_alignment.contains(&param.name);
                let signature = format!("*{konst}{dtype}").into();
                ArgSpec::Runtime { signature, divisible_by_16: aligned }
            }
            Value::Descriptor(Descriptor { tensor, block }) => {
                descriptor(tensor.dtype.as_deref()?, block)?
            }
            Value::Tuple(items) => {
                let items = items.iter().map(|item| self.runtime_argument(param, item));
                ArgSpec::Tuple(items.collect::<Option<Vec<_>>>()?.into())
            }
            Value::Record { names, items } => {
                let items = items.iter().map(|item| self.runtime_argument(param, item));
                let items = items.collect::<Option<_>>()?;
                ArgSpec::Tuple(TupleArg { items, named: Some(names.clone()) })
            }
            Value::DType(dtype) => ArgSpec::Constexpr(ConstArg::DType(dtype.clone())),
            Value::Named(Resolution::Jit(at)) => self.function_argument(*at)?,
            _ => return None,
        })
    }

    /// An integer argument, specialized as a launch does: 1 is a constant, and multiples of 16
    /// are marked.
    fn integer(&self, param: &Param, value: Option<i128>, forced: Option<&str>) -> ArgSpec {
        let specialize = !self.tuning.do_not_specialize.contains(&param.name);
        let align = specialize && !self.tuning.do_not_specialize_on_alignment.contains(&param.name);
        let signature = forced.unwrap_or(match value {
            Some(value) if i32::try_from(value).is_err() => {
                if i64::try_from(value).is_ok() {
                    "i64"
                } else {
                    "u64"
                }
            }
            _ => "i32",
        });
        if value == Some(1) && specialize {
            return ArgSpec::Constexpr(ConstArg::Int(1));
        }
        let divisible_by_16 = align && value.is_some_and(|value| value % 16 == 0);
        ArgSpec::Runtime { signature: signature.into(), divisible_by_16 }
    }

    fn annotation(&self, param: &Param) -> Option<Resolution> {
        let scope = Scope { file: self.kernel.at.file, path: &self.kernel.item.scope };
        Some(resolve_expr(self.sources, scope, &self.kernel.function.body, param.annotation?))
    }

    fn is_const_pointer(&self, param: &Param) -> bool {
        self.annotation(param) == Some(Resolution::Triton("language.const".into()))
    }

    /// The type that the annotation forces: `int`, `float`, a dtype, or a string that spells one.
    fn forced_type(&self, param: &Param) -> Option<&str> {
        match &self.kernel.function.body.exprs[param.annotation?] {
            Expr::Name(name) if &**name == "int" => Some("i32"),
            Expr::Name(name) if &**name == "float" => Some("fp32"),
            Expr::Literal(Literal::Str(text)) => {
                let text = text.strip_prefix("tl.").unwrap_or(text);
                let element = text.strip_prefix('*').unwrap_or(text);
                let known = SPELLINGS.contains(&element) && !element.is_empty();
                if known { Some(text) } else { language_dtype(&format!("language.{text}")) }
            }
            _ => match self.annotation(param)? {
                Resolution::Triton(path) => language_dtype(&path),
                _ => None,
            },
        }
    }

    fn guess(&self, index: usize, param: &Param, is_constexpr: bool) -> ArgSpec {
        let uses = self.uses.get(index).copied().unwrap_or_default();
        if is_constexpr {
            let is_choice = !uses.extent && !uses.number && !uses.unrolled;
            let compared = uses.compared.filter(|_| is_choice);
            let compared = compared.and_then(|compared| self.compared_value(compared));
            return ArgSpec::Constexpr(guess::constexpr(&param.name, &uses, self.facts, compared));
        }
        match self.forced_type(param) {
            Some(forced) => ArgSpec::Runtime {
                divisible_by_16: forced.starts_with('*'),
                signature: forced.into(),
            },
            None => guess::runtime(&param.name, &uses),
        }
    }

    /// The string or number that a parameter is compared with.
    fn compared_value(&self, compared: Compared) -> Option<ConstArg> {
        let item = crate::project::item(self.sources, compared.at)?;
        let function = crate::project::function(self.sources, compared.at)?;
        let (file, scope) = (compared.at.file, item.body_scope());
        let value = Host::new(self.sources).head_expr(file, &scope, &function, compared.value);
        match value {
            Value::Str(_) | Value::Int(Some(_)) => value.to_const(),
            _ => None,
        }
    }

    /// Computes the parameters that heuristics set, from the other arguments.
    fn apply_heuristics(&self, bound: &mut IndexMap<Name, Bound>) {
        let tuning = &self.tuning;
        let guessed =
            bound.iter().any(|(name, bound)| bound.assumed && !tuning.heuristics.contains(name));
        for (name, function) in tuning.heuristics.iter().zip(&tuning.heuristic_functions) {
            let Some(index) = bound.get_index_of(name) else { continue };
            let others = || bound.iter().filter(|(known, _)| *known != name);
            let args = others().map(|(name, bound)| (Value::Str(name.clone()), bound.value()));
            let args = Value::Dict(args.collect());
            let value = match Host::new(self.sources).call_value(function, &[(None, args)]) {
                // Whatever is decided at run time, the general case is compiled.
                Value::Bool(None) => (ConstArg::Bool(false), true),
                value => match value.to_const() {
                    Some(value) => (value, guessed),
                    None => continue,
                },
            };
            bound[index] = Bound::new(ArgSpec::Constexpr(value.0), value.1);
        }
    }
}

/// What annotations fix of parameters.
#[derive(Debug, Clone)]
pub struct Annotated {
    /// Compile-time parameters.
    pub constexpr: Vec<Name>,
    /// Types that do not depend on what is passed, in signature spelling, by parameter.
    pub types: FxHashMap<Name, Arc<str>>,
}

/// What annotations fix of the parameters of `kernel`.
pub fn annotated(sources: &dyn Sources, kernel: &Kernel) -> Annotated {
    let binder = Binder::new(sources, kernel);
    let params = kernel.function.params.iter();
    let typed =
        params.filter_map(|param| Some((param.name.clone(), binder.forced_type(param)?.into())));
    Annotated { types: typed.collect(), constexpr: binder.constexpr }
}

/// A descriptor argument; `None` when some extent of its block is not known.
fn descriptor(dtype: &str, block: &[Value]) -> Option<ArgSpec> {
    let sizes = block.iter().map(|size| match size {
        Value::Int(Some(size)) => Some(size.to_string()),
        _ => None,
    });
    let sizes = sizes.collect::<Option<Vec<_>>>()?.join(", ");
    Some(guess::number(&format!("tensordesc<{dtype}[{sizes}]>")))
}

/// What a specialization tells of an argument's value.
fn value_of(spec: &ArgSpec) -> Value {
    match spec {
        ArgSpec::Constexpr(value) => Value::from_const(value),
        ArgSpec::Runtime { signature, .. } => match &**signature {
            "u1" | "i1" => Value::Bool(None),
            spelling if spelling.starts_with('*') => {
                Value::tensor(Some(spelling[1..].trim_start_matches('k')))
            }
            spelling if super::flags::is_integer(spelling) => Value::Int(None),
            spelling if SPELLINGS.contains(&spelling) => Value::Float(None),
            _ => Value::Unknown,
        },
        ArgSpec::Tuple(tuple) => {
            let items: Vec<Value> = tuple.items.iter().map(value_of).collect();
            match &tuple.named {
                Some(names) => Value::Record { names: names.clone(), items },
                None => Value::Tuple(items),
            }
        }
    }
}

/// The value that `args` of a launch give to a parameter.
fn argument<'l>(
    launch: &ObservedLaunch,
    args: &'l [(Option<Name>, Value)],
    index: usize,
    name: &str,
) -> Option<&'l Value> {
    let keyword = args.iter().find(|(known, _)| known.as_deref() == Some(name));
    let positional = args.get(index).filter(|(known, _)| known.is_none());
    // A starred argument of unknown length shifts what follows it.
    let positional = positional.filter(|_| launch.complete);
    keyword.or(positional).map(|(_, value)| value)
}

/// Launch options from the launch's keywords and the configuration, which wins.
fn options(launch: Option<&ObservedLaunch>, config: Option<&Config>) -> LaunchOptions {
    let mut options = LaunchOptions::default();
    let keyword = |name: &str| {
        let found = launch?.args.iter().find(|(known, _)| known.as_deref() == Some(name));
        found.map(|(_, value)| value)
    };
    let count = |name: &str| match keyword(name) {
        Some(Value::Int(Some(value))) => u32::try_from(*value).ok(),
        _ => None,
    };
    let empty = Config::default();
    let config = config.unwrap_or(&empty);
    options.num_warps = config.num_warps.or(count("num_warps")).unwrap_or(options.num_warps);
    options.num_stages = config.num_stages.or(count("num_stages")).unwrap_or(options.num_stages);
    options.num_ctas = config.num_ctas.or(count("num_ctas")).unwrap_or(options.num_ctas);
    options.max_registers = config.max_registers.or(count("maxnreg"));
    if let Some(Value::Bool(Some(fusion))) = keyword("enable_fp_fusion") {
        options.fp_fusion = *fusion;
    }
    options
}
