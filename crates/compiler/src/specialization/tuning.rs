//! What decorators say of a kernel's specializations: autotune configurations, heuristics, and
//! arguments that are not specialized on. What stands before a function may as well be called with
//! it: `tuned = triton.autotune(...)(kernel)`.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::ConstArg;
use super::config::Config;
use super::launches::ShownLaunches;
use super::spelled::spelled;
use super::stated::{Stated, stated};
use crate::hir::{ArgKind, Body, Expr, ExprId, ItemKind, Name};
use crate::host::value::{Tuner, TunerKind, Value};
use crate::host::{Arguments, FUEL, Host, Options, Variables};
use crate::project::{
    self, Decorator, ItemRef, Kernel, Resolution, Scope, Sources, calls_plainly, wrapping_calls,
};
use crate::source::{FileId, FileRange};

/// What the decorators of a kernel say.
#[derive(Debug, Clone, Default)]
pub struct Tuning {
    /// Autotune configurations in order.
    pub configs: Vec<Config>,
    /// Where a list of configurations has dicts, which are none.
    pub dicts: Vec<FileRange>,
    /// Whether a decorator of the project's own may make something of the kernel that takes other
    /// arguments.
    pub wrapped: bool,
    /// True when there may be other configurations: these are those of one possible run of the
    /// module.
    pub one_run: bool,
    /// True when some of this holds for what a call makes of the kernel, and not for the kernel
    /// under its own name.
    pub by_call: bool,
    /// Whether something that modules call with the kernel makes of it what is not known to be the kernel,
    /// tuned: that may take other arguments.
    pub(super) may_be_other: bool,
    /// Names for which `@triton.heuristics` has a value in the place of a function.
    pub uncallable: Vec<Name>,
    /// Names of the arguments on which the choice depends.
    pub key: Vec<Name>,
    /// Names of the arguments that tuning resets or restores between runs.
    pub restored: Vec<Name>,
    /// Whether something else may do so: a hook, or names that are not known.
    pub(super) may_restore: bool,
    /// False when some configurations or heuristics could not be read statically.
    pub complete: bool,
    /// Where they could not, names of which they set no others; `None` when they may set any.
    pub spelled: Option<FxHashSet<Name>>,
    /// Names that `@triton.heuristics` computes, in order.
    pub heuristics: Vec<Name>,
    /// Parameters that are specialized on neither alignment nor the value 1.
    pub do_not_specialize: Vec<Name>,
    /// Parameters that are not specialized on alignment.
    pub do_not_specialize_on_alignment: Vec<Name>,
    /// True for `@triton.jit(noinline=True)`.
    pub noinline: bool,
    /// True for `@triton.jit(debug=True)`.
    pub debug: bool,
    /// What a decorator states of arguments.
    pub(super) stated: Stated,
    /// The functions behind `heuristics`.
    pub(super) heuristic_functions: Vec<Value>,
    /// What chooses among the configurations of a launch, where something does.
    pub(super) pruner: Option<Value>,
}

impl Tuning {
    /// Whether something of the author's chooses among the configurations.
    pub fn prunes(&self) -> bool {
        self.pruner.is_some()
    }

    /// True when a kernel is compiled anew for integers that equal 1 of the parameter `name`.
    pub fn specializes_on_value(&self, name: &str) -> bool {
        !self.do_not_specialize.iter().any(|known| &**known == name)
    }

    /// True when a kernel is compiled anew for multiples of 16 of the parameter `name`.
    pub fn specializes_on_alignment(&self, name: &str) -> bool {
        let mut others = self.do_not_specialize_on_alignment.iter();
        self.specializes_on_value(name) && !others.any(|known| &**known == name)
    }

    /// True when some configuration or heuristic sets the parameter `name`.
    pub fn sets(&self, name: &str) -> bool {
        let tuned = self.configs.iter().any(|config| config.value(name).is_some());
        tuned || self.heuristics.iter().any(|known| &**known == name)
    }

    /// True when some configuration or heuristic sets the parameter `name`, or one that could not
    /// be read spells it.
    pub fn may_set(&self, name: &str) -> bool {
        self.sets(name) || self.spelled.as_ref().is_some_and(|names| names.contains(name))
    }
}

/// Whether a kernel gets other configurations than its tuner names, in its own file or in one
/// that launches it: `kernel.configs = ...`.
pub(crate) fn gets_configs(sources: &dyn Sources, kernel: ItemRef, launched_in: FileId) -> bool {
    let Some(item) = project::item(sources, kernel) else { return false };
    let assigned = format!("{}.configs = ", item.name);
    let assigns = |file| sources.text(file).is_some_and(|text| text.contains(&assigned));
    assigns(kernel.file) || assigns(launched_in)
}

/// Reads the decorators of `kernel` and what modules call with it, following lists, comprehensions
/// and helper functions.
pub fn tuning(sources: &dyn Sources, kernel: &Kernel) -> Tuning {
    let mut reader = Reader::new(sources, kernel);
    reader.decorators();
    reader.module_calls();
    reader.finish()
}

/// As [`tuning`], and what functions call with the kernel before they launch it.
pub fn launched_tuning(sources: &dyn Sources, kernel: &Kernel, launches: &ShownLaunches) -> Tuning {
    let mut reader = Reader::new(sources, kernel);
    reader.decorators();
    reader.module_calls();
    for tuner in launches.0.iter().flat_map(|(_, launch)| &launch.tuners) {
        reader.by_call(tuner, None);
    }
    reader.finish()
}

/// What holds for a launch of what `tuners` made of the kernel.
pub(crate) fn tuning_by(sources: &dyn Sources, kernel: &Kernel, tuners: &[Arc<Tuner>]) -> Tuning {
    let mut reader = Reader::new(sources, kernel);
    reader.decorators();
    tuners.iter().for_each(|tuner| reader.tuner(tuner, None));
    reader.finish()
}

/// As [`tuning`], of the kernel under its own name: what its decorators say.
pub(crate) fn decorated_tuning(sources: &dyn Sources, kernel: &Kernel) -> Tuning {
    let mut reader = Reader::new(sources, kernel);
    reader.decorators();
    reader.finish()
}

/// What each call of a module says of the kernel that it is given. Heuristics are those of all of them:
/// what one made is given to the next.
pub(crate) fn called_tunings(sources: &dyn Sources, kernel: &Kernel) -> Vec<Tuning> {
    let mut reader = Reader::new(sources, kernel);
    reader.decorators();
    reader.module_calls();
    let tuners = std::mem::take(&mut reader.tuners);
    let all = reader.finish();
    let alone = |tuner: &Arc<Tuner>| {
        let mut reader = Reader::new(sources, kernel);
        reader.tuner(tuner, None);
        let heuristics = all.heuristics.clone();
        Tuning { heuristics, ..reader.finish() }
    };
    tuners.iter().map(alone).collect()
}

struct Reader<'a> {
    sources: &'a dyn Sources,
    host: Host<'a>,
    kernel: &'a Kernel,
    /// What the module has bound when it comes to the kernel, once that has been asked.
    bound: Option<Variables>,
    /// Whether some configurations or heuristics may set any name.
    any_name: bool,
    /// What calls gave the kernel to so far.
    tuners: Vec<Arc<Tuner>>,
    tuning: Tuning,
}

/// Decorators are called when their module is imported.
const IMPORTING: Options =
    Options { open_flags: false, one_run: false, importing: true, drawn: false, extent: None };

/// The expression that makes something, with its scope.
type Made<'e> = (Scope<'e>, &'e Body, ExprId);

impl<'a> Reader<'a> {
    fn new(sources: &'a dyn Sources, kernel: &'a Kernel) -> Reader<'a> {
        Reader {
            sources,
            host: Host::with(sources, IMPORTING),
            kernel,
            bound: None,
            any_name: false,
            tuners: Vec::new(),
            tuning: Tuning { complete: true, ..Tuning::default() },
        }
    }

    fn finish(mut self) -> Tuning {
        if self.any_name {
            self.tuning.spelled = None;
        }
        self.tuning
    }

    fn decorators(&mut self) {
        let kernel = self.kernel;
        for decorator in &kernel.decorators {
            match *decorator {
                Decorator::Jit(id) => self.jit(id),
                Decorator::Autotune(id) if self.calls(id, "autotune") => self.autotune(id),
                Decorator::Heuristics(id) if self.calls(id, "heuristics") => self.heuristics(id),
                Decorator::Autotune(id) | Decorator::Heuristics(id) | Decorator::Other(id) => {
                    self.of_project(id);
                }
                _ => {}
            }
        }
    }

    fn calls(&self, id: ExprId, name: &str) -> bool {
        calls_plainly(&self.kernel.function.body, id, name)
    }

    /// A decorator of the project's own: what it comes to call, or if that is not seen, what it is
    /// given, because such a wrapper takes the same arguments as what it wraps.
    fn of_project(&mut self, id: ExprId) {
        let decorator = self.value(id);
        let kernel = Value::Named(Resolution::Jit(self.kernel.at));
        let made = self.host.call_value(&decorator, &[(None, kernel.clone())]);
        let wraps = made.untuned().0 != kernel;
        self.tuning.wrapped |= wraps;
        let tuners = self.applied();
        if wraps && tuners.is_empty() {
            self.autotune(id);
        }
        let kernel = self.kernel;
        let scope = Scope { file: kernel.at.file, path: &kernel.item.scope };
        for tuner in tuners {
            self.tuner(&tuner, Some((scope, &*kernel.function.body, id)));
        }
        if let Some(stated) = stated(&mut self.host, kernel, id) {
            self.tuning.stated = stated;
        }
    }

    /// What calls of modules make of the kernel.
    fn module_calls(&mut self) {
        let around = self.sources.importers(self.kernel.at.file);
        for file in [self.kernel.at.file].into_iter().chain(around) {
            for item in wrapping_calls(self.sources, file, self.kernel.at) {
                let ItemKind::Assign { body, map, value, .. } = &item.kind else { continue };
                self.host.begin(Options::default(), FUEL);
                let made = self.host.module_expr(file, &item.scope, (body, map), *value);
                self.tuning.may_be_other |= !made.alternatives().iter().all(Value::is_kernel);
                for tuner in self.applied() {
                    let scope = Scope { file, path: &item.scope };
                    self.by_call(&tuner, Some((scope, &**body, *value)));
                }
            }
        }
    }

    /// What a tuner says that some call gives the kernel to.
    fn by_call(&mut self, tuner: &Arc<Tuner>, made: Option<Made<'_>>) {
        if !self.tuners.contains(tuner) {
            self.tuners.push(Arc::clone(tuner));
            self.tuning.by_call = true;
            // Heuristics of a later call are around the others, and run before them.
            let names = std::mem::take(&mut self.tuning.heuristics);
            let functions = std::mem::take(&mut self.tuning.heuristic_functions);
            self.tuner(tuner, made);
            self.tuning.heuristics.extend(names);
            self.tuning.heuristic_functions.extend(functions);
        }
    }

    /// What the kernel was given to since this was asked last.
    fn applied(&mut self) -> Vec<Arc<Tuner>> {
        let found = std::mem::take(&mut self.host.tuned).into_iter();
        found.filter(|(at, _)| *at == self.kernel.at).map(|(_, tuner)| tuner).collect()
    }

    /// What a tuner says, with the expression that makes it, if that is known.
    fn tuner(&mut self, tuner: &Tuner, made: Option<Made<'_>>) {
        let args = Arguments(&tuner.args);
        match tuner.kind {
            TunerKind::Autotune => {
                let key = args.get(1, "key").map(|key| self.parameter_names(key));
                self.tuning.key.extend(key.unwrap_or_default());
                for names in RESTORING.into_iter().filter_map(|(at, name)| args.get(at, name)) {
                    self.restores(names);
                }
                let configs = args.get(0, "configs").and_then(Value::elements);
                self.configurations(configs, made);
            }
            TunerKind::Heuristics => match args.get(0, "values") {
                Some(values) => self.heuristics_of(values.clone()),
                None => self.any_name = true,
            },
        }
    }

    /// Adds configurations; where some are not known, `made` is where they come from.
    fn configurations(&mut self, found: Option<Vec<Value>>, made: Option<Made<'_>>) {
        if !found.as_ref().is_some_and(|found| found.iter().all(is_config)) {
            self.tuning.complete = false;
            let names = made.and_then(|(scope, body, id)| spelled(self.sources, scope, body, id));
            match names {
                Some(names) => self.tuning.spelled.get_or_insert_default().extend(names),
                None => self.any_name = true,
            }
        }
        self.tuning.configs.extend(found.into_iter().flatten().filter_map(|config| match config {
            Value::Config(config) => Some(*config),
            _ => None,
        }));
    }

    /// The argument `name`, or the positional one at `index`, of the decorator call `id`.
    fn argument(&self, id: ExprId, index: Option<usize>, name: &str) -> Option<ExprId> {
        let Expr::Call { args, .. } = &self.kernel.function.body.exprs[id] else { return None };
        let keyword = args.iter().find(|arg| match &arg.kind {
            ArgKind::Keyword(known) => &**known == name,
            _ => false,
        });
        let positional = index.and_then(|index| args.get(index));
        let positional = positional.filter(|arg| arg.kind == ArgKind::Positional);
        keyword.or(positional).map(|arg| arg.value)
    }

    fn value(&mut self, id: ExprId) -> Value {
        let kernel = self.kernel;
        let bound = self.bound.get_or_insert_with(|| self.host.bound_before(kernel)).clone();
        let (file, scope) = (kernel.at.file, &kernel.item.scope);
        self.host.head_expr_with(file, scope, &kernel.function, bound, id)
    }

    fn jit(&mut self, id: ExprId) {
        let names = |reader: &mut Self, name: &str| match reader.argument(id, None, name) {
            Some(list) => {
                let list = reader.value(list);
                reader.parameter_names(&list)
            }
            None => Vec::new(),
        };
        let flag = |reader: &mut Self, name: &str| {
            let value = reader.argument(id, None, name);
            value.is_some_and(|value| matches!(reader.value(value), Value::Bool(Some(true))))
        };
        self.tuning.do_not_specialize = names(self, "do_not_specialize");
        self.tuning.do_not_specialize_on_alignment = names(self, "do_not_specialize_on_alignment");
        self.tuning.noinline = flag(self, "noinline");
        self.tuning.debug = flag(self, "debug");
    }

    /// Parameters given by name or index.
    fn parameter_names(&self, list: &Value) -> Vec<Name> {
        let items = list.elements().unwrap_or_default();
        let name = |item: &Value| match item {
            Value::Str(name) => Some(name.clone()),
            Value::Int(Some(index)) => {
                let param = self.kernel.function.params.get(usize::try_from(*index).ok()?)?;
                Some(param.name.clone())
            }
            _ => None,
        };
        items.iter().filter_map(name).collect()
    }

    fn autotune(&mut self, id: ExprId) {
        if let Some(prune) = self.argument(id, None, "prune_configs_by") {
            self.tuning.pruner = pruner(self.value(prune));
        }
        let Some(configs) = self.argument(id, Some(0), "configs") else { return };
        self.tuning.dicts.extend(self.dicts(configs));
        let mut found = self.value(configs).elements();
        let open = found.is_none();
        if open {
            // Which ones there are depends on something that is not known.
            self.tuning.one_run = true;
            let options = Options { one_run: true, ..IMPORTING };
            let host = std::mem::replace(&mut self.host, Host::with(self.sources, options));
            let bound = self.bound.take();
            found = self.value(configs).elements();
            (self.host, self.bound) = (host, bound);
        }
        let kernel = self.kernel;
        let scope = Scope { file: kernel.at.file, path: &kernel.item.scope };
        let made = Some((scope, &*kernel.function.body, configs));
        if open {
            self.configurations(None, made);
        }
        let is_empty = found.iter().flatten().next().is_none();
        self.configurations(found, made);
        if is_empty {
            return;
        }
        if let Some(key) = self.argument(id, Some(1), "key") {
            let key = self.value(key);
            self.tuning.key = self.parameter_names(&key);
        }
        for (at, name) in RESTORING {
            if let Some(names) = self.argument(id, Some(at), name) {
                let names = self.value(names);
                self.restores(&names);
            }
        }
        self.tuning.may_restore |= self.spreads(id);
    }

    /// Notes what a tuner puts back between runs.
    fn restores(&mut self, names: &Value) {
        self.tuning.may_restore |= !is_list(names);
        let names = self.parameter_names(names);
        self.tuning.restored.extend(names);
    }

    /// Whether the decorator call `id` is given arguments by `*` or `**`.
    fn spreads(&self, id: ExprId) -> bool {
        let Expr::Call { args, .. } = &self.kernel.function.body.exprs[id] else { return false };
        args.iter().any(|arg| !matches!(arg.kind, ArgKind::Positional | ArgKind::Keyword(_)))
    }

    /// Where a list that is written out has dicts.
    fn dicts(&self, list: ExprId) -> Vec<FileRange> {
        let (file, function) = (self.kernel.at.file, &self.kernel.function);
        let (Expr::List(items) | Expr::Tuple(items)) = &function.body.exprs[list] else {
            return Vec::new();
        };
        let dicts =
            items.iter().filter(|item| matches!(function.body.exprs[**item], Expr::Dict(_)));
        dicts.map(|dict| FileRange { file, range: function.map.exprs[*dict] }).collect()
    }

    fn heuristics(&mut self, id: ExprId) {
        let Some(values) = self.argument(id, Some(0), "values") else { return };
        let values = self.value(values);
        self.heuristics_of(values);
    }

    fn heuristics_of(&mut self, values: Value) {
        let Value::Dict(entries) = values else {
            self.tuning.complete = false;
            self.any_name = true;
            return;
        };
        for (key, function) in entries {
            if let Value::Str(name) = key {
                if function.to_const().is_some_and(|value| !matches!(value, ConstArg::Function(_)))
                {
                    self.tuning.uncallable.push(Arc::clone(&name));
                }
                self.tuning.heuristics.push(Arc::clone(&name));
                self.tuning.heuristic_functions.push(function);
            }
        }
    }
}

/// What a tuner may be given that puts memory back between runs, with the position of each.
const RESTORING: [(usize, &str); 4] =
    [(3, "reset_to_zero"), (4, "restore_value"), (5, "pre_hook"), (6, "post_hook")];

/// Whether a value is a list of which all is known, or nothing.
fn is_list(value: &Value) -> bool {
    let is_name = |item: &Value| matches!(item, Value::Str(_) | Value::Int(Some(_)));
    match value {
        Value::None => true,
        value => value.elements().is_some_and(|items| items.iter().all(is_name)),
    }
}

/// The function that chooses among configurations, as `Autotuner` of `triton.runtime.autotuner` reads what
/// it is given: `None` where nothing does, not known where times are estimated.
fn pruner(prune: Value) -> Option<Value> {
    let entries = match prune {
        Value::Dict(entries) => entries,
        Value::None => return None,
        _ => return Some(Value::Unknown),
    };
    let given = |name: &str| {
        let is_key = |(key, _): &&(Value, Value)| matches!(key, Value::Str(key) if **key == *name);
        let found = entries.iter().find(is_key).map(|(_, value)| value);
        found.filter(|value| !matches!(value, Value::None)).cloned()
    };
    let is_read = entries.iter().all(|(key, _)| matches!(key, Value::Str(_)));
    match given("perf_model") {
        None if is_read => given("early_config_prune"),
        _ => Some(Value::Unknown),
    }
}

fn is_config(value: &Value) -> bool {
    matches!(value, Value::Config(_))
}
