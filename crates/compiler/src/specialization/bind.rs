//! Binding what a launch gives to the parameters of a kernel: one specialization per launch and
//! autotune configuration.

use std::sync::Arc;

use indexmap::IndexMap;

use super::argument::value_of;
use super::config::{Config, Configured};
use super::discover::{MAX_SPECIALIZATIONS, bind};
use super::flags::Flags;
use super::guess::KernelFacts;
use super::heuristics::computed;
use super::known::{
    ArgFault, Binding, Happened, KnownArg, KnownLaunch, Past, PastLaunch, PastStep, has_hooks,
    known_launch,
};
use super::launches::ShownLaunches;
use super::tuning::{Tuning, launched_tuning, tuning_by};
use super::usage::{self, Usage, Use};
use super::{ArgSpec, ConstArg, Origin, Specialization};
use crate::hir::{Name, Param, ParamKind};
use crate::host::value::{Tuner, Value};
use crate::host::{Contents, Earlier, Host, ObservedLaunch, Options, Step};
use crate::ir::LaunchOptions;
use crate::project::{ItemRef, Kernel, Resolution, Sources, constexpr_params, kernel};
use crate::source::FileRange;

/// Binds arguments to the parameters of one kernel.
pub(super) struct Binder<'a> {
    pub(super) sources: &'a dyn Sources,
    pub(super) kernel: &'a Kernel,
    pub(super) tuning: Tuning,
    pub(super) uses: Arc<[Use]>,
    pub(super) constexpr: Vec<Name>,
    pub(super) facts: KernelFacts,
    /// Whether a condition of the kernel asks for types.
    asks_types: bool,
}

/// An argument of one specialization.
pub(super) struct Bound {
    spec: ArgSpec,
    /// The value that the launch gives, which tells more than the specialization keeps.
    given: Option<Value>,
    assumed: bool,
}

impl Bound {
    pub(super) fn new(spec: ArgSpec, assumed: bool) -> Bound {
        Bound { spec, given: None, assumed }
    }

    /// What heuristics see.
    fn value(&self) -> Value {
        match &self.given {
            Some(value)
                if !matches!(value, Value::Unknown | Value::Collection | Value::Omitted) =>
            {
                value.clone()
            }
            _ => value_of(&self.spec),
        }
    }
}

/// What a launch gives.
struct Given<'l> {
    launch: &'l ObservedLaunch,
    args: &'l [(Option<Name>, Value)],
    /// Arguments that a hook replaces.
    hooked: Vec<(Name, Value)>,
}

impl Given<'_> {
    fn value(&self, index: usize, name: &Name) -> Option<&Value> {
        self.hooked(name).or_else(|| argument(self.launch, self.args, index, name))
    }

    fn hooked(&self, name: &Name) -> Option<&Value> {
        self.hooked.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }
}

/// The configurations that a launch may run with.
enum Kept {
    All,
    /// Those of them that are here.
    These(Vec<Config>),
    /// Some; it is not known which.
    Some,
}

impl<'a> Binder<'a> {
    /// For what host code makes of the kernel that launches it in these ways.
    pub(super) fn new(
        sources: &'a dyn Sources,
        kernel: &'a Kernel,
        launches: &ShownLaunches,
    ) -> Binder<'a> {
        let constexpr = constexpr_params(sources, kernel.at);
        let Usage { uses, has_dot, has_columns, asks_types } = usage::usage(sources, kernel.at);
        let extents = kernel.function.params.iter().zip(uses.iter());
        let extents =
            extents.filter(|(param, uses)| uses.extent && constexpr.contains(&param.name));
        let facts = KernelFacts { extents: extents.count(), has_dot, has_columns };
        let tuning = launched_tuning(sources, kernel, launches);
        Binder { sources, kernel, tuning, uses, constexpr, facts, asks_types }
    }

    /// The same for what `tuners` make of the kernel.
    fn tuned_by(&self, tuners: &[Arc<Tuner>]) -> Binder<'a> {
        Binder {
            tuning: tuning_by(self.sources, self.kernel, tuners),
            uses: Arc::clone(&self.uses),
            constexpr: self.constexpr.clone(),
            ..*self
        }
    }

    /// The specializations of launches; of one place in the text only those of which everything is
    /// known, if there are such, with what is wrong with the arguments of others.
    pub(super) fn of_launches(&self, launches: &ShownLaunches) -> Vec<Specialization> {
        let specialized: Vec<(&ObservedLaunch, Vec<Specialization>)> = launches
            .0
            .iter()
            .map(|(origin, launch)| (launch, self.of_launch(*origin, launch)))
            .collect();
        let certain: Vec<FileRange> = specialized
            .iter()
            .filter(|(_, specs)| is_certain(specs))
            .filter_map(|(launch, _)| launch.at)
            .collect();
        let shown = |launch: &ObservedLaunch| launch.at.is_some_and(|at| certain.contains(&at));
        let (kept, dropped): (Vec<_>, Vec<_>) = specialized
            .into_iter()
            .partition(|(launch, specs)| is_certain(specs) || !shown(launch));
        let mut kept: Vec<Specialization> = kept.into_iter().flat_map(|(_, specs)| specs).collect();
        let dropped = dropped.into_iter().flat_map(|(_, specs)| specs);
        for faulty in dropped.flat_map(|spec| spec.launches).filter_map(KnownLaunch::faults_alone) {
            let is_there = |spec: &&mut Specialization| {
                spec.launches.iter().any(|launch| launch.site == faulty.site)
            };
            if let Some(spec) = kept.iter_mut().find(is_there) {
                spec.add_launch(faulty);
            }
        }
        kept
    }

    fn of_launch(&self, origin: Origin, launch: &ObservedLaunch) -> Vec<Specialization> {
        let mut specs = self.specialized(origin, launch);
        if let Some(past) = past(self.sources, launch).map(Arc::new) {
            let launches = specs.iter_mut().flat_map(|spec| &mut spec.launches);
            launches.for_each(|launch| launch.past = Some(Arc::clone(&past)));
        }
        specs
    }

    fn specialized(&self, origin: Origin, launch: &ObservedLaunch) -> Vec<Specialization> {
        let mut specs = Vec::new();
        if launch.tuners.is_empty() && !self.is_untuned(launch) {
            self.specialize(origin, Some(launch), &mut specs);
            return specs;
        }
        let binder = self.tuned_by(&launch.tuners);
        binder.specialize(origin, Some(launch), &mut specs);
        for configured in specs.iter_mut().filter_map(|spec| spec.config.as_mut()) {
            let config = binder.tuning.configs.get(configured.position);
            let known = self.tuning.configs.iter();
            let position =
                config.and_then(|config| known.clone().position(|it| it.is_same(config)));
            configured.position = position.unwrap_or(configured.position.max(known.len()));
        }
        specs
    }

    /// Adds one specialization per autotune configuration, or one when there are none.
    pub(super) fn specialize(
        &self,
        origin: Origin,
        launch: Option<&ObservedLaunch>,
        found: &mut Vec<Specialization>,
    ) {
        if self.tuning.configs.is_empty() {
            found.push(self.bind(origin, launch, None));
            return;
        }
        let of = self.tuning.configs.len();
        let kept = launch.map(|launch| self.kept(launch));
        let runs = match &kept {
            Some(Kept::These(kept)) => kept.len(),
            Some(Kept::Some) => 0,
            Some(Kept::All) | None => of,
        };
        let restored = self.restored().filter(|_| origin != Origin::Scenario && runs > 1);
        let configs = match &kept {
            Some(Kept::These(kept)) => self.positions(kept),
            Some(Kept::All | Kept::Some) | None => self.tuning.configs.iter().enumerate().collect(),
        };
        for (position, config) in configs.into_iter().take(MAX_SPECIALIZATIONS) {
            // What a scenario launches is the first configuration; the others are tuning.
            let of_scenario = origin == Origin::Scenario && position == 0;
            let origin = if of_scenario { origin } else { Origin::Autotune };
            let mut spec = self.bind(origin, launch, Some(config));
            if matches!(kept, Some(Kept::Some)) {
                spec.launches.iter_mut().for_each(KnownLaunch::doubt);
            }
            let names = config.kwargs.iter().map(|(name, _)| name);
            let sets = names.chain(&self.tuning.heuristics).cloned().collect();
            let configured = Configured { position, of, sets, restored: restored.clone() };
            found.push(Specialization { config: Some(configured), ..spec });
        }
    }

    /// The configurations that an author's function keeps, by position among all. Those that it makes itself
    /// come behind these.
    fn positions<'k>(&'k self, kept: &'k [Config]) -> Vec<(usize, &'k Config)> {
        let known = &self.tuning.configs;
        let is_kept = |(_, config): &(usize, &Config)| kept.iter().any(|it| it.is_same(config));
        let is_made = |config: &&Config| !known.iter().any(|known| known.is_same(config));
        let made = kept.iter().filter(is_made).enumerate();
        let made = made.map(|(at, config)| (known.len() + at, config));
        known.iter().enumerate().filter(is_kept).chain(made).collect()
    }

    /// The parameters whose memory is put back between the runs of tuning, where that is known.
    fn restored(&self) -> Option<Arc<[Name]>> {
        let tuning = &self.tuning;
        let is_prepared = tuning.configs.iter().any(|config| config.is_prepared);
        let is_known = tuning.complete && !tuning.may_restore && !is_prepared;
        is_known.then(|| tuning.restored.as_slice().into())
    }

    /// The configurations that a launch may run with, as the author's function chooses among them.
    fn kept(&self, launch: &ObservedLaunch) -> Kept {
        let Some(pruner) = self.tuning.pruner.as_ref().filter(|_| self.tuning.configs.len() > 1)
        else {
            return Kept::All;
        };
        let configs = self.tuning.configs.iter().cloned();
        let configs = configs.map(|config| Value::Config(Box::new(config))).collect();
        let params = self.kernel.function.params.iter();
        let positional = launch.args.iter().filter(|(name, _)| name.is_none());
        let named = params.zip(positional);
        let named =
            named.map(|(param, (_, value))| (Value::Str(param.name.clone()), value.clone()));
        let keywords = launch.args.iter().filter(|(name, _)| name.is_some()).cloned();
        let args = [(None, Value::List(configs)), (None, Value::Dict(named.collect()))];
        let args: Vec<_> = args.into_iter().chain(keywords).collect();
        let kept = Host::new(self.sources).outcome(pruner, &args).elements();
        let config = |kept: Value| match kept {
            Value::Config(kept) => Some(*kept),
            _ => None,
        };
        let kept: Option<Vec<Config>> =
            kept.and_then(|kept| kept.into_iter().map(config).collect());
        kept.filter(|kept| !kept.is_empty()).map_or(Kept::Some, Kept::These)
    }

    /// True for a launch of the kernel under its own name where a call tunes it: it gives what
    /// tuning sets.
    fn is_untuned(&self, launch: &ObservedLaunch) -> bool {
        let mut params = self.kernel.function.params.iter().enumerate();
        self.tuning.by_call
            && params.any(|(index, param)| {
                self.tuning.sets(&param.name)
                    && argument(launch, &launch.args, index, &param.name).is_some()
            })
    }

    fn bind(
        &self,
        origin: Origin,
        launch: Option<&ObservedLaunch>,
        config: Option<&Config>,
    ) -> Specialization {
        let given = launch.map(|launch| self.given(launch, &launch.args, config, false));
        let example = launch.map(|launch| self.given(launch, &launch.example, config, true));
        let mut bound: IndexMap<Name, Bound> = IndexMap::new();
        for (index, param) in self.kernel.function.params.iter().enumerate() {
            if matches!(param.kind, ParamKind::VarArgs | ParamKind::KwArgs) {
                continue;
            }
            let argument = match config.and_then(|config| config.value(&param.name)) {
                Some(value) => self.bind_configured(index, param, value),
                None => self.bind_argument(index, param, given.as_ref(), example.as_ref()),
            };
            bound.insert(param.name.clone(), argument);
        }
        let faults = self.apply_heuristics(&mut bound);
        let known = launch.map(|launch| {
            let mut known = self.known_launch(origin, launch, &bound);
            let faults = faults.into_iter().filter(|_| !known.doubtful);
            known.arg_faults.extend(faults);
            known
        });
        let assumed = bound.iter().filter(|(_, bound)| bound.assumed).map(|(name, _)| name);
        let paces = |name: &&Name| {
            let mut params = self.kernel.function.params.iter().zip(self.uses.iter());
            params.any(|(param, uses)| param.name == **name && uses.paces)
        };
        Specialization {
            launches: known.into_iter().collect(),
            assumed: assumed.clone().cloned().collect(),
            pacing: assumed.clone().filter(paces).cloned().collect(),
            plain: assumed.filter(|name| self.is_plain(name, &bound)).cloned().collect(),
            args: bound.into_iter().map(|(name, bound)| (name, bound.spec)).collect(),
            options: self.options(launch, config),
            origin,
            config: None,
        }
    }

    /// A parameter that the configuration sets, compile-time or not.
    fn bind_configured(&self, index: usize, param: &Param, value: &ConstArg) -> Bound {
        if self.constexpr.contains(&param.name) {
            return Bound::new(ArgSpec::Constexpr(value.clone()), self.tuning.one_run);
        }
        let value = Value::from_const(value);
        let bound = self.argument(index, param, Some(&value));
        let assumed = bound.assumed || self.tuning.one_run;
        Bound { given: Some(value), assumed, ..bound }
    }

    /// A parameter that a heuristic sets: as a configuration does.
    fn bind_computed(&self, name: &Name, value: &ConstArg, assumed: bool) -> Bound {
        let mut params = self.kernel.function.params.iter().enumerate();
        match params.find(|(_, param)| param.name == *name) {
            Some((index, param)) => Bound { assumed, ..self.bind_configured(index, param, value) },
            None => Bound::new(ArgSpec::Constexpr(value.clone()), assumed),
        }
    }

    /// A parameter that no configuration sets. Where what is given leaves something open, the example
    /// says what it is compiled for.
    fn bind_argument(
        &self,
        index: usize,
        param: &Param,
        given: Option<&Given<'_>>,
        example: Option<&Given<'_>>,
    ) -> Bound {
        let value = given.and_then(|given| given.value(index, &param.name));
        let bound = self.argument(index, param, value);
        let hooked = given.and_then(|given| given.hooked(&param.name));
        let is_hooked = matches!(hooked, Some(Value::Descriptor(_)));
        let shown = example.filter(|_| bound.assumed && !is_hooked);
        let shown = shown.and_then(|example| example.value(index, &param.name));
        let spec = shown.map(|shown| self.argument(index, param, Some(shown)).spec);
        Bound { spec: spec.unwrap_or(bound.spec), given: value.cloned(), ..bound }
    }

    /// Whether an argument that is assumed certainly is memory or a number at run time, and no branch of
    /// the kernel asks which.
    fn is_plain(&self, name: &Name, bound: &IndexMap<Name, Bound>) -> bool {
        let mut params = self.kernel.function.params.iter().zip(self.uses.iter());
        let Some((_, uses)) = params.find(|(param, _)| param.name == *name) else { return false };
        let is_tensor = matches!(bound[name].given, Some(Value::Tensor(_)));
        let is_used = (uses.pointer || uses.required) && !uses.none_test;
        (is_tensor || is_used)
            && !uses.integer_elements
            && matches!(bound[name].spec, ArgSpec::Runtime { .. })
            && !self.constexpr.contains(name)
            && !self.asks_types
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
        let (kernel, constexpr) = (self.kernel, &*self.constexpr);
        let used = |is_so: fn(&Use) -> bool| {
            let params = kernel.function.params.iter().zip(self.uses.iter());
            params.filter(move |(_, uses)| is_so(uses)).map(|(param, _)| &param.name)
        };
        let extents = used(|uses| uses.extent).collect();
        let numbers = used(|uses| uses.required || uses.integral || uses.chooses);
        let numbers = numbers.filter(|name| constexpr.contains(name)).collect();
        let at_run_time = kernel.function.params.iter().filter(|it| !constexpr.contains(&it.name));
        let annotated =
            at_run_time.filter_map(|param| Some((&param.name, self.annotated_number(param)?)));
        let annotated = annotated.collect();
        let tuning = &self.tuning;
        let is_made_known = !launch.tuners.is_empty() || tuning.by_call && !tuning.may_be_other;
        let binding =
            Binding { kernel, missing, is_made_known, constexpr, extents, numbers, annotated };
        known_launch(self.sources, origin, launch, args, meta, &binding)
    }

    /// Parameters that a launch gives no value, and nothing else does.
    fn missing(&self, launch: &ObservedLaunch, bound: &IndexMap<Name, Bound>) -> Vec<Name> {
        let known = self.tuning.complete || self.tuning.spelled.is_some();
        let params = self.kernel.function.params.iter().enumerate().filter(|_| known);
        let missing = params.filter(|(index, param)| {
            let given = argument(launch, &launch.args, *index, &param.name).is_some();
            param.default.is_none()
                && !self.tuning.may_set(&param.name)
                && !given
                && bound.contains_key(&param.name)
        });
        missing.map(|(_, param)| param.name.clone()).collect()
    }

    /// What `args` of a launch give once the configuration's `pre_hook` has changed them: it gives
    /// descriptors the block shapes that the configuration means.
    fn given<'l>(
        &self,
        launch: &'l ObservedLaunch,
        args: &'l [(Option<Name>, Value)],
        config: Option<&Config>,
        one_run: bool,
    ) -> Given<'l> {
        let mut given = Given { launch, args, hooked: Vec::new() };
        given.hooked = match config {
            Some(config @ Config { pre_hook: Some(hook), .. }) => {
                self.hooked(&given, config, *hook, one_run)
            }
            Some(Config { is_prepared: true, .. }) => self.perhaps_written(&given),
            _ => Vec::new(),
        };
        given
    }

    /// The tensors of a launch, where something that is not followed may have written to them.
    fn perhaps_written(&self, given: &Given<'_>) -> Vec<(Name, Value)> {
        let params = self.kernel.function.params.iter().enumerate();
        let tensors = params.filter_map(|(index, param)| {
            let value = given.value(index, &param.name)?;
            matches!(value, Value::Tensor(_)).then(|| (param.name.clone(), value.clone()))
        });
        let mut tensors: Vec<(Name, Value)> = tensors.collect();
        tensors.iter_mut().for_each(|(_, tensor)| tensor.note_writes(&|_| true));
        tensors
    }

    /// The descriptors that a `pre_hook` makes, and the tensors that it fills.
    fn hooked(
        &self,
        given: &Given<'_>,
        config: &Config,
        hook: ItemRef,
        one_run: bool,
    ) -> Vec<(Name, Value)> {
        let mut args = Vec::new();
        for (index, param) in self.kernel.function.params.iter().enumerate() {
            let value = match config.value(&param.name) {
                Some(value) => Some(Value::from_const(value)),
                None => given.value(index, &param.name).cloned(),
            };
            args.extend(value.map(|value| (Value::Str(param.name.clone()), value)));
        }
        let options = Options { one_run, ..Options::default() };
        let before = Value::Dict(args.clone().into());
        let after = Host::with(self.sources, options).run_hook(hook, before);
        let changed = after.into_iter().filter_map(|(key, value)| {
            let is_kept = || args.iter().any(|(name, before)| *name == key && *before == value);
            match (key.clone(), &value) {
                (Value::Str(name), Value::Descriptor(_)) => Some((name, value)),
                (Value::Str(name), Value::Tensor(_)) if !is_kept() => Some((name, value)),
                _ => None,
            }
        });
        changed.collect()
    }

    /// Computes the parameters that heuristics set, from the other arguments, and tells which cannot
    /// be computed.
    fn apply_heuristics(&self, bound: &mut IndexMap<Name, Bound>) -> Vec<ArgFault> {
        let mut faults = Vec::new();
        let is_set = |name: &Name| self.tuning.heuristics.contains(name);
        let guessed = bound.iter().any(|(name, bound)| bound.assumed && !is_set(name));
        for (name, function) in self.tuning.heuristics.iter().zip(&self.tuning.heuristic_functions)
        {
            let Some(index) = bound.get_index_of(name) else { continue };
            let args = bound.iter().map(|(name, bound)| (name, bound.value()));
            let (value, assumed) = match computed(self.sources, name, function, args) {
                // Whatever is decided at run time, the general case is compiled.
                Value::Bool(None) => (ConstArg::Bool(false), true),
                Value::Raises(misuse) => {
                    let fault = ArgFault::Heuristic(name.clone(), misuse);
                    faults.extend((!guessed).then_some(fault));
                    continue;
                }
                value => match value.to_const() {
                    Some(value) => (value, guessed),
                    None => continue,
                },
            };
            bound[index] = self.bind_computed(name, &value, assumed);
        }
        faults
    }
}

/// True when nothing about a launch's arguments on which values depend had to be assumed.
fn is_certain(specs: &[Specialization]) -> bool {
    specs.iter().all(Specialization::computes_as_known)
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

/// What left what is in the memory of `launch`; `None` where nothing did, or it is not known what a launch
/// among it is compiled for.
fn past(sources: &dyn Sources, launch: &ObservedLaunch) -> Option<Past> {
    let before = &launch.before;
    if before.steps.is_empty() || launch.doubtful {
        return None;
    }
    let bound = |Earlier { step, left }: &Earlier| {
        let what = match step {
            Step::Launch(launch) => Happened::Launch(Box::new(past_launch(sources, launch)?)),
            Step::Made(making) => Happened::Made(Arc::clone(making)),
        };
        Some(PastStep { what, left: left.clone() })
    };
    let steps = before.steps.iter().map(bound).collect::<Option<_>>()?;
    Some(Past { steps, left: before.left.clone() })
}

/// What the kernel of a launch is compiled for there, of several configurations the first.
pub(crate) fn launched(
    sources: &dyn Sources,
    launch: &ObservedLaunch,
) -> Option<(ItemRef, Specialization)> {
    let Value::Named(Resolution::Jit(kernel)) = launch.kernel else { return None };
    let shown = ShownLaunches(vec![(Origin::Launch, launch.clone())]);
    let specs = bind(sources, kernel, &shown, &Flags::default());
    Some((kernel, specs.into_iter().next()?))
}

/// A launch with what its kernel is compiled for.
fn past_launch(sources: &dyn Sources, launch: &ObservedLaunch) -> Option<PastLaunch> {
    past_of(launched(sources, launch)?)
}

/// The launch of this specialization of a kernel, if nothing about it is assumed.
fn past_of((kernel, spec): (ItemRef, Specialization)) -> Option<PastLaunch> {
    let launch = spec.launches.first().filter(|_| spec.assumed.is_empty())?.clone();
    Some(PastLaunch { kernel, spec: Specialization { launches: Vec::new(), ..spec }, launch })
}

/// The same of a launch that is executed now, of which it is known what is [`launched`]: memory that tuning sets to
/// zero before the run that counts is zero. `None` where something else may prepare its arguments.
pub(crate) fn executed_launch(
    sources: &dyn Sources,
    launch: &ObservedLaunch,
    launched: (ItemRef, Specialization),
) -> Option<PastLaunch> {
    let mut past = past_of(launched)?;
    let kernel = kernel(sources, past.kernel)?;
    let shown = ShownLaunches(vec![(Origin::Launch, launch.clone())]);
    let tuning = launched_tuning(sources, &kernel, &shown);
    let is_prepared = tuning.configs.iter().any(|config| config.is_prepared);
    if tuning.may_restore || is_prepared || has_hooks(sources, past.kernel) {
        return None;
    }
    for (_, arg) in past.launch.args.iter_mut().filter(|(name, _)| tuning.restored.contains(name)) {
        if let KnownArg::Buffer(buffer) = arg
            && buffer.contents == Contents::Uninitialized
        {
            buffer.contents = Contents::constant(0);
        }
    }
    Some(past)
}
