//! What host code computes, as far as the text shows it.
//!
//! A small abstract interpreter of Python: numbers, strings, tuples, lists, dicts, lambdas, calls
//! of the project's own functions, Triton's host helpers, and tensors by dtype, shape and
//! strides. Nothing outside the text is consulted and nothing is executed; what is not shown is
//! [`Value::Unknown`]. It serves autotune configurations, heuristics, launches and scenarios.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::eval::Python;
use crate::hir::{
    self, Body, ExprId, Function, Item, ItemKind, MainBlock, Module, Name, Scenario, SourceMap,
    Stmt,
};
use crate::project::launchers::is_test;
use crate::project::{ItemRef, Kernel, Resolution, Sources, function, item, resolve_item};
use crate::source::{FileId, FileRange, TextRange};

pub(crate) mod code;
pub(crate) mod entry;
pub(crate) mod launch;
pub(crate) mod library;
pub(crate) mod objects;
#[cfg(test)]
mod tests;
pub(crate) mod torch;
pub(crate) mod value;

pub(crate) use code::arguments::{Args as Arguments, REST};
use code::doubt::Doubt;
pub use code::failing::{Compared, Exception, Failure};
use code::flow::Flow;
pub(crate) use code::frame::Variables;
use code::frame::{Code, Frame};
pub(crate) use code::rebound::Rebound;
use entry::assumed::{Assumed, Extent};
pub(crate) use launch::ObservedLaunch;
pub(crate) use launch::executed::{Launcher, LeftMemory};
use launch::past::Past;
pub(crate) use launch::past::{Before, Earlier, Maker, Step};
pub use launch::past::{MadeMemory, Making};
use torch::autograd::{Applied, Summand};
pub use torch::data::Difference;
pub(crate) use torch::data::drawn;
pub use torch::misuse::{Misfit, Mismatch, Misuse};
use torch::tape::Tape;
pub(crate) use torch::views::{elements, is_contiguous, is_expanded, strides};
use value::Value;
use value::changes::Changed;
pub(crate) use value::contents::repeats;
pub use value::contents::{Contents, Listing};
pub(crate) use value::dtype::{
    SPELLINGS, is_complex, language_dtype, may_lead, named_dtype, torch_name,
};
use value::memory::{Filled, Parts};

/// Expressions evaluated for one question; beyond, everything is unknown.
pub(crate) const FUEL: u32 = 100_000;

/// Calls and constants followed into each other.
const MAX_DEPTH: u32 = 24;

/// The interpreter.
pub(crate) struct Host<'a> {
    sources: &'a dyn Sources,
    fuel: u32,
    depth: u32,
    options: Options,
    /// Whether something is not known because branches leave different values.
    pub(crate) joined: bool,
    /// Whether random numbers were drawn.
    pub(crate) draws: bool,
    /// What executes launches, where all numbers of one run are computed.
    launcher: Option<&'a dyn Launcher>,
    /// Whether it has executed one.
    pub(crate) executed: bool,
    /// Whether it took what functions make to lie in order where nothing tells how it does.
    takes_order: bool,
    /// The last difference of tensors that a run compared.
    differing: Option<Difference>,
    /// Comparisons of floats so far that a run computes.
    close_calls: u32,
    /// What draws them, where they are those of one run.
    numbers: Option<torch::data::Draws>,
    /// What draws the numbers of the generators that the code makes, by their objects, where that is known.
    generators: FxHashMap<usize, Option<torch::data::Draws>>,
    /// Launches met, in the order in which they would happen.
    pub(crate) launches: Vec<ObservedLaunch>,
    /// Kernels that were given to tuners, in order.
    pub(crate) tuned: Vec<(ItemRef, Arc<value::Tuner>)>,
    /// Allocations made so far.
    allocations: u32,
    /// Allocations that tensors may not be in any more.
    replaced: code::rebound::Replaced,
    /// Allocations of tensors whose gradients are wanted.
    wanted: FxHashSet<u32>,
    /// Whether gradients of tensors in such memory may not be wanted all the same.
    may_be_unwanted: bool,
    /// Regions around the code in which gradients may not be wanted.
    without_gradients: u32,
    /// Allocations of parameters and buffers of modules.
    parameters: FxHashSet<u32>,
    /// The memory of what modules registered as buffers.
    buffers: FxHashSet<u32>,
    /// Variables whose gradients were taken away since the last backward pass.
    cleared_gradients: FxHashSet<u32>,
    /// Allocations whose tensors may have another type now.
    recast: FxHashSet<u32>,
    /// What it set in the environment.
    environment: library::environment::Environment,
    /// The file that is run, where there is nothing before it but imports.
    entry: Option<FileId>,
    /// The file that is run as a program.
    program: Option<FileId>,
    /// The objects that have the variables of modules and classes as attributes.
    statics: FxHashMap<code::statics::Owner, usize>,
    /// The attributes of objects.
    objects: FxHashMap<usize, Variables>,
    /// The statements of modules that are being run, or whose values are being looked for, the innermost
    /// last.
    binding: Vec<(FileId, TextRange)>,
    /// What the running program defined last by a name that its module defines several times.
    redefined: FxHashMap<(FileId, Name), ItemRef>,
    /// The arguments that parsers of command lines know, by their objects.
    parsers: FxHashMap<usize, Vec<entry::parsed::Argument>>,
    /// The classes of objects that are instances of the project's own.
    classes: FxHashMap<usize, ItemRef>,
    /// The expression that is evaluated next where only what it holds is read.
    only_read: Option<ExprId>,
    /// Whether decorators of classes give these as they are.
    kept_classes: FxHashMap<(ItemRef, ExprId), bool>,
    /// Whether decorators of functions give these as they are.
    kept_functions: FxHashMap<ItemRef, bool>,
    /// Objects that may have attributes of any name.
    open_objects: FxHashSet<usize>,
    /// Whether a call was not followed for being too deep.
    cut_short: bool,
    /// The objects that are instances of PyTorch's own modules, with their classes.
    modules: FxHashMap<usize, &'static str>,
    /// The objects that are sparse tensors.
    sparse: FxHashSet<usize>,
    /// Whether NumPy was asked for anything: its numbers have members that Python's have not.
    uses_numpy: bool,
    /// How many assertions, and conditions of `if`s, were not known to hold or not to.
    unsettled: u32,
    /// Whether something ran that changes what code does in a way that is not followed: nothing is certain after it.
    unfollowed: bool,
    /// How many expressions and assignments may have raised an exception, as those of which the value is not known.
    lost: u32,
    /// The type that tensors have by default, where PyTorch was told another one; unknown where that may be another.
    default_type: Option<Value>,
    /// What code has set outside of the project, by its path.
    settings: FxHashMap<Vec<Name>, Value>,
    /// Whether host code wrote to an array of NumPy.
    arrays_written: bool,
    /// Whether one may be in the memory of a tensor.
    arrays_shared: bool,
    /// What functions gave that keep what they gave, with their arguments.
    kept_results: Vec<code::functions::KeptResult>,
    /// What made tensors whose gradients are wanted, where all numbers of one run are computed.
    tape: Tape,
    /// By variable, which is an allocation mostly, what the gradient of the tensor in it is or was set to.
    gradients: FxHashMap<u32, Value>,
    /// Whether a backward pass was run, or something that is called so.
    differentiated: bool,
    /// Whether a backward pass may have run, or run later, that was not seen.
    may_go_back: bool,
    /// How many regions around the code let PyTorch choose types.
    autocast: u32,
    /// The objects in which optimizers keep the states of parameters.
    states: FxHashSet<usize>,
    /// Whether modules may not be in training any more, as they are when they are made.
    modes_change: bool,
    /// Calls of functions without their decorators so far.
    undecorated: u32,
    /// Results of `autograd.Function`s so far.
    outputs: u32,
    /// Calls of `forward` so far.
    applied: Vec<Arc<Applied>>,
    /// Objects that classes hold and that were told their names.
    named: FxHashSet<usize>,
    /// The `backward` that runs although nothing was seen to come to it.
    supposed: Option<ItemRef>,
    /// Those that backward passes were seen to come to.
    reached: FxHashSet<ItemRef>,
    /// By the allocations of sums, what they add up.
    sums: FxHashMap<u32, Vec<Summand>>,
    /// By allocation, of which results of `autograd.Function`s what is in it is made.
    paths: FxHashMap<u32, Vec<torch::autograd::Path>>,
    /// Allocations that launches or host code may have written.
    written: FxHashSet<u32>,
    /// By allocation, the parts of it that host code may have written.
    parts: FxHashMap<u32, Parts>,
    /// Allocations of which parts may have been written that are not known.
    touched: FxHashSet<u32>,
    /// Comparisons that are being evaluated.
    comparing: u32,
    /// By allocation, the type of the tensor that it was made for.
    types: FxHashMap<u32, Arc<str>>,
    /// What host code wrote to allocations that it wrote all of, or numbers to a part.
    filled: Filled,
    /// 0, 1, 2 and so on, as many as were asked for yet.
    ordinals: Listing<i128>,
    /// What launches left in memory.
    past: Past,
    /// By kernel, which of its arguments it may write to.
    writes: FxHashMap<ItemRef, Arc<[bool]>>,
    /// Names by file that may be bound at any time.
    rebound: FxHashMap<FileId, Arc<Rebound>>,
    /// Collections among its arguments that the last function called changed, and what they are now.
    changed: Vec<Changed>,
    /// What may keep the running code from running.
    doubt: Doubt,
    /// The calls that are running, the outermost first.
    calls: Vec<FileRange>,
    /// What is assumed of the arguments of the function that is run by itself.
    pub(crate) assumed: Option<Assumed>,
    /// What the parameters are of the test that runs, as far as that can be written.
    case: Vec<(Name, String)>,
    /// The exception that the run certainly raises.
    pub(crate) failure: Option<Failure>,
    /// What knows Python exactly, once it was asked.
    python: Option<Box<Python<'a>>>,
    /// What running modules left in variables, as far as that was asked for.
    left: FxHashMap<(FileId, Name), Value>,
    /// What names mean that no variable binds, by file and scope: loops ask for the same again and
    /// again.
    meanings: FxHashMap<FileId, FxHashMap<Vec<Name>, FxHashMap<Name, Resolution>>>,
}

/// How what the text leaves open is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Options {
    /// Arguments that are flags by default may as well be the other way round.
    pub(crate) open_flags: bool,
    /// Of two branches the first counts where the condition is not known, so that values are
    /// those of one possible run; otherwise only what both leave is known. Where one of them ends
    /// the function or an iteration, the run goes on in the other.
    pub(crate) one_run: bool,
    /// The code runs when its module is imported: what functions bind that somebody may call later is what
    /// modules bind it to.
    pub(crate) importing: bool,
    /// Random numbers are those that one run draws, so that what is computed of them is known;
    /// otherwise they may be any that may be drawn.
    pub(crate) drawn: bool,
    /// Tensors that a function gets of which nothing is known have sizes of this kind.
    pub(crate) extent: Option<Extent>,
}

impl<'a> Host<'a> {
    pub(crate) fn new(sources: &'a dyn Sources) -> Host<'a> {
        Host::with(sources, Options::default())
    }

    /// An interpreter that takes what is open as `options` say.
    pub(crate) fn with(sources: &'a dyn Sources, options: Options) -> Host<'a> {
        Host {
            sources,
            options,
            fuel: FUEL,
            depth: 0,
            joined: false,
            draws: false,
            launcher: None,
            executed: false,
            takes_order: false,
            differing: None,
            close_calls: 0,
            numbers: options.drawn.then(torch::data::Draws::default),
            generators: FxHashMap::default(),
            launches: Vec::new(),
            tuned: Vec::new(),
            allocations: 0,
            replaced: code::rebound::Replaced::default(),
            wanted: FxHashSet::default(),
            may_be_unwanted: false,
            without_gradients: 0,
            parameters: FxHashSet::default(),
            buffers: FxHashSet::default(),
            cleared_gradients: FxHashSet::default(),
            recast: FxHashSet::default(),
            environment: library::environment::Environment::default(),
            entry: None,
            program: None,
            statics: FxHashMap::default(),
            objects: FxHashMap::default(),
            binding: Vec::new(),
            redefined: FxHashMap::default(),
            parsers: FxHashMap::default(),
            classes: FxHashMap::default(),
            only_read: None,
            kept_classes: FxHashMap::default(),
            kept_functions: FxHashMap::default(),
            open_objects: FxHashSet::default(),
            cut_short: false,
            modules: FxHashMap::default(),
            sparse: FxHashSet::default(),
            uses_numpy: false,
            unfollowed: false,
            unsettled: 0,
            lost: 0,
            default_type: None,
            settings: FxHashMap::default(),
            arrays_written: false,
            arrays_shared: false,
            kept_results: Vec::new(),
            tape: Tape::default(),
            gradients: FxHashMap::default(),
            differentiated: false,
            may_go_back: false,
            autocast: 0,
            states: FxHashSet::default(),
            modes_change: false,
            undecorated: 0,
            outputs: 0,
            applied: Vec::new(),
            named: FxHashSet::default(),
            supposed: None,
            reached: FxHashSet::default(),
            sums: FxHashMap::default(),
            paths: FxHashMap::default(),
            written: FxHashSet::default(),
            parts: FxHashMap::default(),
            touched: FxHashSet::default(),
            comparing: 0,
            types: FxHashMap::default(),
            filled: Filled::default(),
            ordinals: Vec::new().into(),
            past: Past::default(),
            writes: FxHashMap::default(),
            rebound: FxHashMap::default(),
            changed: Vec::new(),
            doubt: Doubt::default(),
            calls: Vec::new(),
            assumed: None,
            case: Vec::new(),
            failure: None,
            python: None,
            left: FxHashMap::default(),
            meanings: FxHashMap::default(),
        }
    }

    /// An interpreter that computes all numbers of one run, as far as `launcher` executes its launches, and
    /// evaluates at most `fuel` expressions.
    pub(crate) fn computing(
        sources: &'a dyn Sources,
        launcher: &'a dyn Launcher,
        fuel: u32,
    ) -> Host<'a> {
        let options = Options { drawn: true, ..Options::default() };
        let numbers = Some(torch::data::Draws::of_computing());
        Host { launcher: Some(launcher), fuel, numbers, ..Host::with(sources, options) }
    }

    /// Begins another question, as if there had been none before, in which what is open is taken as `options`
    /// say and `fuel` expressions are evaluated at most. What follows from texts alone is kept.
    pub(crate) fn begin(&mut self, options: Options, fuel: u32) {
        *self = Host {
            fuel,
            tuned: std::mem::take(&mut self.tuned),
            writes: std::mem::take(&mut self.writes),
            rebound: std::mem::take(&mut self.rebound),
            meanings: std::mem::take(&mut self.meanings),
            python: self.python.take(),
            ..Host::with(self.sources, options)
        };
    }

    /// A module-level expression's value.
    pub(crate) fn module_expr(
        &mut self,
        file: FileId,
        scope: &[Name],
        (body, map): (&Arc<Body>, &Arc<SourceMap>),
        id: ExprId,
    ) -> Value {
        let code = Code::Body(body.clone(), Some(map.clone()));
        let mut frame = Frame::new(file, scope, code, Variables::default());
        // It may be evaluated again, or at another time than its module runs.
        self.without_draws(|host| host.expr(&mut frame, id))
    }

    /// An expression that belongs to a function's head: a decorator, annotation or default.
    pub(crate) fn head_expr(
        &mut self,
        file: FileId,
        scope: &[Name],
        function: &Arc<Function>,
        id: ExprId,
    ) -> Value {
        self.head_expr_with(file, scope, function, Variables::default(), id)
    }

    /// As [`Host::head_expr`], where the module has bound these variables.
    pub(crate) fn head_expr_with(
        &mut self,
        file: FileId,
        scope: &[Name],
        function: &Arc<Function>,
        variables: Variables,
        id: ExprId,
    ) -> Value {
        let code = Code::Function(function.clone());
        self.expr(&mut Frame::new(file, scope, code, variables), id)
    }

    /// What a module has bound when it comes to the kernel, if that is at module level.
    pub(crate) fn bound_before(&mut self, kernel: &Kernel) -> Variables {
        let before = kernel.item.range.start;
        let binds = |main: &&MainBlock| {
            let first = main.body.root.first().map(|first| &main.body.stmts[*first]);
            let changes = match first {
                Some(Stmt::Expr(value)) => hir::collections::changes(&main.body, *value),
                _ => true,
            };
            main.range.end <= before && changes
        };
        match self.sources.module(kernel.at.file) {
            Some(module) if kernel.item.scope.is_empty() => {
                let mut bound = self.defined_again(kernel.at.file, &module, before);
                bound.extend(self.run_mains(kernel.at.file, module.mains.iter().filter(binds)));
                bound
            }
            _ => Variables::default(),
        }
    }

    /// The functions of a module that are defined before a place and, by the same name, after it again.
    fn defined_again(&self, file: FileId, module: &Module, place: u32) -> Variables {
        let functions = module.items.iter().enumerate().filter(|(_, item)| {
            item.scope.is_empty() && matches!(item.kind, ItemKind::Function(_))
        });
        let before = functions.filter(|(_, item)| {
            let mut named = module.items_named(&item.name);
            let is_after = |index: u32| module.items[index as usize].range.start >= place;
            item.range.end <= place && named.any(is_after)
        });
        let value = |index: usize| {
            let at = ItemRef { file, index: index as u32 };
            Value::Named(resolve_item(self.sources, at))
        };
        before.map(|(index, item)| (item.name.clone(), value(index))).collect()
    }

    /// Runs a host function with nothing known of its arguments but annotations, defaults, and what
    /// decorators run it with.
    pub(crate) fn run_function(&mut self, file: FileId, item: &Item, function: &Arc<Function>) {
        let scope = &item.scope[..];
        if self.is_skipped(file, scope, function) {
            return;
        }
        if self.runs_first(file, function) {
            self.begin_with_imports(file);
        }
        // Tests run when their module is there; what else runs a function comes with what stands before it.
        let run = |host: &mut Self| {
            let all = host.given_arguments(file, scope, function);
            // Each run begins with instances and fixtures of its own.
            let given = all.iter().flat_map(|given| given.values());
            let objects = given.filter_map(|value| match value {
                Value::Object(object) => Some((*object, host.objects.get(object)?.clone())),
                _ => None,
            });
            let made: FxHashMap<usize, Variables> = objects.collect();
            for given in all {
                host.objects.extend(made.iter().map(|(object, held)| (*object, held.clone())));
                host.run_with(file, scope, function, &given);
            }
        };
        match is_test(function) {
            true => run(self),
            false => self.as_of(file, item.range, run),
        }
    }

    /// Runs a host function with what is given for some of its parameters.
    fn run_with(
        &mut self,
        file: FileId,
        scope: &[Name],
        function: &Arc<Function>,
        given: &Variables,
    ) {
        let mut variables = Variables::default();
        let known = self.backward_arguments(file, scope, function).unwrap_or_default();
        self.assumed = self.options.extent.and_then(|extent| Assumed::of(function, extent));
        for (index, param) in function.params.iter().enumerate() {
            let value = match (given.get(&param.name), known.get(index)) {
                (Some(given), _) => given.clone(),
                (None, Some(known)) if param.kind.is_positional() => known.clone(),
                _ => {
                    let shown = self.unknown_argument(file, scope, function, param);
                    self.shown_or_assumed(shown, &param.name)
                }
            };
            variables.insert(param.name.clone(), value);
        }
        self.note_case(function, given);
        // What others call gives them results to go back from.
        self.may_go_back |= !is_test(function);
        self.doubt = Doubt::of_entry();
        let takes_nothing =
            scope.is_empty() && function.params.is_empty() && function.decorators.is_empty();
        self.doubt.is_whole = self.is_as_it_stands()
            && (takes_nothing || self.is_given_all(file, scope, function, given));
        let frame = self.frame_of(file, scope, function, variables);
        self.body_of(frame, function);
        self.doubt = Doubt::default();
        self.case.clear();
    }

    /// An argument of the function that is run by itself: what is assumed of the parameter `name` where nothing is
    /// `shown`.
    fn shown_or_assumed(&mut self, shown: Value, name: &str) -> Value {
        let is_open = match &shown {
            Value::Unknown => true,
            Value::Tensor(tensor) => tensor.shape.is_none(),
            _ => false,
        };
        let assumed = self.assumed.as_ref().filter(|_| is_open);
        match assumed.and_then(|assumed| assumed.tensor(name)) {
            Some(tensor) => self.allocate(tensor, Contents::Unknown),
            None => shown,
        }
    }

    /// Whether nothing that the text leaves open is taken in another way than it may be.
    fn is_as_it_stands(&self) -> bool {
        !self.options.open_flags && !self.options.one_run && self.options.extent.is_none()
    }

    /// Runs a file as a program.
    pub(crate) fn run_program(&mut self, file: FileId, mains: &[MainBlock]) {
        if self.is_as_it_stands() {
            self.doubt = Doubt::of_whole();
        }
        self.begin_with_imports(file);
        self.program = Some(file);
        self.run_mains(file, mains);
        self.program = None;
    }

    /// Runs the statements of a scenario.
    pub(crate) fn run_scenario(&mut self, file: FileId, scenario: &Scenario) {
        let code = Code::Body(scenario.body.clone(), Some(scenario.map.clone()));
        let mut frame = Frame::new(file, &[], code, Variables::default());
        frame.scenario = true;
        self.block(&mut frame, &scenario.body.root);
    }

    /// Runs the function `hook` on a dict of arguments; the dict afterwards.
    pub(crate) fn run_hook(&mut self, hook: ItemRef, args: Value) -> Vec<(Value, Value)> {
        let (Some(item), Some(function)) = (item(self.sources, hook), function(self.sources, hook))
        else {
            return Vec::new();
        };
        let Some(param) = function.params.first() else { return Vec::new() };
        let code = Code::Function(function.clone());
        let variables = Variables::from_iter([(param.name.clone(), args)]);
        let mut frame = Frame::new(hook.file, &item.body_scope(), code, variables);
        self.block(&mut frame, &function.body.root);
        match frame.variables.remove(&param.name) {
            Some(Value::Dict(entries)) => entries
                .iter()
                .map(|(key, value)| (key.clone(), self.current(value.clone())))
                .collect(),
            _ => Vec::new(),
        }
    }

    /// Runs what a file runs when it is a program, in order; the variables that this leaves.
    pub(crate) fn run_mains<'m>(
        &mut self,
        file: FileId,
        mains: impl IntoIterator<Item = &'m MainBlock>,
    ) -> Variables {
        let mut running: Option<Frame> = None;
        for main in mains {
            let code = Code::Body(main.body.clone(), Some(main.map.clone()));
            let frame = match &mut running {
                Some(frame) => {
                    frame.code = code;
                    frame
                }
                none => none.insert(Frame::new(file, &[], code, Variables::default())),
            };
            let run = |host: &mut Self| host.block(frame, &main.body.root);
            let flow = self.as_of(file, main.range, run);
            if !matches!(flow, Flow::Next) {
                break;
            }
        }
        self.doubt = Doubt::default();
        self.redefined.clear();
        running.map(|frame| frame.variables).unwrap_or_default()
    }
}
