//! Launches in host code, in all the ways that there are to write them.

use std::sync::Arc;

use crate::hir::{Arg, ExprId, ItemKind, Launch, Name};
use crate::host::code::frame::{Code, Variables};
use crate::host::code::operators;
use crate::host::objects::kept::Kept;
use crate::host::value::dtype::is_float;
use crate::host::value::{Callable, Tuner, Value};
use crate::host::{Before, Frame, Host};
use crate::project::{self, ItemRef, Resolution, Scope, resolve_expr};
use crate::source::{FileId, FileRange};
use crate::specialization::{Caller, LaunchSite, gets_configs, may_write};

pub(crate) mod executed;
pub(crate) mod past;

/// At most this many launches of one specialization are kept.
pub(crate) const MAX_LAUNCHES: usize = 8;

/// Evaluated arguments; the flag is false when some were left out.
pub(crate) type Given = (Vec<(Option<Name>, Value)>, bool);

/// A launch with the values of its arguments.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ObservedLaunch {
    /// What is launched.
    pub(crate) kernel: Value,
    /// What calls gave the kernel to before it was launched, in order.
    pub(crate) tuners: Vec<Arc<Tuner>>,
    /// What stands between the brackets.
    pub(crate) grid: Value,
    /// The arguments in order; starred ones whose length is not known are left out.
    pub(crate) args: Vec<(Option<Name>, Value)>,
    /// The arguments in one possible run of the host code, if one was followed.
    pub(crate) example: Vec<(Option<Name>, Value)>,
    /// Where the kernel's name stands, if the text is at hand: what tells launches apart that one
    /// run meets.
    pub(crate) at: Option<FileRange>,
    /// Which launch of the text it is: this outlives edits of kernels.
    pub(crate) site: Option<LaunchSite>,
    /// False when a starred argument was left out, so that positions are not known.
    pub(crate) complete: bool,
    /// Whether it may never happen: it stands under a condition whose outcome is settled, but not
    /// known.
    pub(crate) doubtful: bool,
    /// The `backward` that launches it, where that runs because something may come to it, and nothing was seen to.
    pub(crate) supposed: Option<ItemRef>,
    /// Whether it may be one of several kernels that is launched.
    pub(crate) is_one_of: bool,
    /// Whether it is as one draw of random numbers has it.
    pub(crate) drawn: bool,
    /// Whether it may be that only the run that met it has tensors that lie as its own do.
    pub(crate) takes_order: bool,
    /// Whether nothing shows the sizes of tensors that what ran and met it is given.
    pub(crate) open_sizes: bool,
    /// What is assumed of the arguments of what ran and met it.
    pub(crate) assumed: Option<Arc<str>>,
    /// What ran and met it.
    pub(crate) caller: Option<Caller>,
    /// The launches that left the memory that it is given.
    pub(crate) before: Arc<Before>,
    /// The objects that a function computes the grid from.
    pub(crate) objects: Kept,
}

impl Host<'_> {
    /// Calls `value[index]`: a launch, or what a collection holds.
    pub(crate) fn call_subscript(
        &mut self,
        frame: &mut Frame,
        id: ExprId,
        (callee, value, index): (ExprId, ExprId, ExprId),
        args: &[Arg],
    ) -> Value {
        let object = self.kernel_value(frame, value);
        let index = self.expr(frame, index);
        let given = self.arguments(frame, args);
        if object.is_kernel() || matches!(object, Value::Unknown) {
            let at = frame.place(value);
            return self.launch((object, index), given, at);
        }
        let place = frame.call_place(callee, args);
        let child = self.child(&object, &index);
        let child = child.or_else(|| self.of_module(frame.file, &object, &index));
        let child =
            child.or_else(|| self.special(&object, "__getitem__", std::slice::from_ref(&index)));
        let child = child.or_else(|| match &object {
            // A class with the types that it is for: `Class[int](...)`.
            Value::Named(Resolution::Class(_)) => Some(object.clone()),
            object => Some(operators::subscript(&Value::Dict(self.items_of(object)?), &index)),
        });
        let callee = child.unwrap_or_else(|| operators::subscript(&object, &index));
        let raises = given.0.iter().any(|(_, value)| matches!(value, Value::Raises(_)));
        let result = self.call_with(frame, (callee, None, None), given, place);
        if !raises {
            self.note_raised(frame, id, &result, &[]);
        }
        result
    }

    /// A launch of `kernel`, or of one of several.
    pub(crate) fn launch(
        &mut self,
        (kernel, grid): (Value, Value),
        (args, complete): Given,
        at: Option<FileRange>,
    ) -> Value {
        if self.doubt.raised {
            return Value::Unknown;
        }
        let number = |(name, value): (Option<Name>, Value)| match value {
            Value::Address { .. } => (name, Value::Int(None)),
            // Kernels know nothing of gradients.
            Value::Tensor(tensor) => (name, Value::Tensor(tensor.without_gradient())),
            value => (name, value),
        };
        let args: Vec<_> = args.into_iter().map(number).collect();
        let allocations: Vec<u32> = kernel
            .alternatives()
            .iter()
            .flat_map(|kernel| self.written_by(&kernel.clone().untuned().0, &args, complete))
            .collect();
        let kernels = kernel.alternatives().into_iter();
        let launches = kernels
            .map(|kernel| self.observed((kernel, grid.clone()), (args.clone(), complete), at))
            .collect::<Vec<_>>();
        if self.launcher.is_some() {
            self.execute(&launches, &allocations);
            return Value::Unknown;
        }
        let one = Some(&launches).filter(|launches| launches.len() == 1);
        self.note_launch(one.and_then(|launches| launches.first()), &allocations);
        let is_one_of = launches.len() > 1;
        for launch in launches {
            let launch = ObservedLaunch { is_one_of, ..launch };
            if !self.note_later_launch(&launch, &allocations) {
                self.keep_launch(launch);
            }
        }
        self.filled.forget(&allocations);
        self.written.extend(allocations);
        Value::Unknown
    }

    /// A launch as it is met now.
    pub(crate) fn observed(
        &self,
        (kernel, grid): (Value, Value),
        (args, complete): Given,
        at: Option<FileRange>,
    ) -> ObservedLaunch {
        let site = at.and_then(|at| LaunchSite::at(self.sources, at));
        let (kernel, tuners) = kernel.untuned();
        let (example, doubtful) = (Vec::new(), self.doubt.conditions > 0);
        let caller = None;
        let (drawn, is_one_of) = (false, false);
        let before = self.before(&args);
        let objects = self.kept_for(&grid);
        let gets_configs =
            |kernel| at.is_some_and(|at| gets_configs(self.sources, kernel, at.file));
        let complete = match kernel {
            Value::Named(Resolution::Jit(kernel)) => complete && !gets_configs(kernel),
            _ => complete,
        };
        ObservedLaunch {
            kernel,
            tuners,
            grid,
            args,
            example,
            at,
            site,
            complete,
            doubtful,
            supposed: self.supposed,
            is_one_of,
            drawn,
            takes_order: self.takes_order,
            open_sizes: false,
            assumed: self.assumed.as_ref().map(|assumed| assumed.text().into()),
            caller,
            before,
            objects,
        }
    }

    /// Keeps a launch unless enough are known that its place repeats, as in a loop that measures how
    /// long the kernel takes.
    fn keep_launch(&mut self, launch: ObservedLaunch) {
        let repeated = self.launches.iter().filter(|known| known.repeats(&launch));
        if repeated.count() < MAX_LAUNCHES {
            self.launches.push(launch);
        }
    }

    /// The launches that the run has met. Where a backward pass came to a `backward`, others that one is
    /// only supposed to come to are none: what the run is for goes back from some results, not from all. Nor are
    /// there any where all of a program or a test was followed, and nothing goes back.
    pub(crate) fn met_launches(&mut self) -> Vec<ObservedLaunch> {
        let mut launches = std::mem::take(&mut self.launches);
        let is_whole = self.fuel > 0 && !self.cut_short && !self.unfollowed;
        let may_go_back = self.may_go_back || !is_whole;
        let is_met = |at: ItemRef| may_go_back && !self.reached.contains(&at);
        launches.retain(|launch| launch.supposed.is_none_or(is_met));
        launches
    }

    /// The allocations that a kernel may write of what it gets.
    fn written_by(
        &mut self,
        kernel: &Value,
        args: &[(Option<Name>, Value)],
        complete: bool,
    ) -> Vec<u32> {
        let written = match kernel {
            Value::Named(Resolution::Jit(at)) if complete => {
                let sources = self.sources;
                let known = self.writes.entry(*at);
                known.or_insert_with(|| may_write(sources, *at)).clone()
            }
            _ => Arc::default(),
        };
        let function = match kernel {
            Value::Named(Resolution::Jit(at)) => project::head(self.sources, *at),
            _ => None,
        };
        let position =
            |name: &Name| function.as_ref()?.params.iter().position(|param| param.name == *name);
        let index = |(at, (name, _)): (usize, &(Option<Name>, Value))| match name {
            Some(name) => position(name),
            None => Some(at),
        };
        let may_write = |(at, arg): (usize, &(Option<Name>, Value))| {
            index((at, arg)).and_then(|at| written.get(at).copied()).unwrap_or(true)
        };
        let args = args.iter().enumerate().filter(|(at, arg)| may_write((*at, arg)));
        args.flat_map(|(_, (_, value))| value.allocations()).collect()
    }

    /// `kernel.run(..., grid=grid, warmup=False)`, which launches as `kernel[grid](...)` does, and
    /// `kernel.warmup(..., grid=grid)`, which compiles what such a launch would run.
    pub(crate) fn launch_by_method(
        &mut self,
        frame: &mut Frame,
        (callee, kernel): (ExprId, Value),
        method: &str,
        args: &[Arg],
    ) -> Value {
        let at = frame.place(callee);
        let (mut args, complete) = self.arguments(frame, args);
        let mut grid = Value::Unknown;
        let mut warmup = Value::Bool(Some(method == "warmup"));
        args.retain(|(name, value)| match name.as_deref() {
            Some("grid") => {
                grid = value.clone();
                false
            }
            Some("warmup") if method == "run" => {
                warmup = value.clone();
                false
            }
            _ => true,
        });
        if operators::truth(&warmup) == Some(false) {
            return self.launch((kernel, grid), (args, complete), at);
        }
        for kernel in kernel.alternatives() {
            // No program runs, so the grid tells nothing.
            let mut launch = self.observed((kernel, Value::Unknown), (Vec::new(), complete), at);
            let Value::Named(Resolution::Jit(item)) = &launch.kernel else { continue };
            launch.args = self.typed(*item, args.clone());
            self.keep_launch(launch);
        }
        Value::Unknown
    }

    /// Arguments of a kernel that is only compiled: dtypes stand for pointers to them.
    fn typed(
        &self,
        kernel: ItemRef,
        mut args: Vec<(Option<Name>, Value)>,
    ) -> Vec<(Option<Name>, Value)> {
        let constexpr = project::constexpr_params(self.sources, kernel);
        let function = project::head(self.sources, kernel);
        let params = function.iter().flat_map(|function| function.params.iter());
        let params: Vec<&Name> = params.map(|param| &param.name).collect();
        for (index, (name, value)) in args.iter_mut().enumerate() {
            let param = name.as_ref().or(params.get(index).copied());
            if let Value::DType(dtype) | Value::TorchDType(dtype) = value
                && param.is_some_and(|param| !constexpr.contains(param))
            {
                *value = Value::tensor(Some(dtype));
            }
        }
        args
    }

    /// Notes that what earlier launches left untouched a later one may write, unless it writes to the
    /// same elements again; whether the same has been met at the same place.
    fn note_later_launch(&mut self, later: &ObservedLaunch, allocations: &[u32]) -> bool {
        let is_written = |id| allocations.contains(&id);
        let written = |args: &[(Option<Name>, Value)]| {
            let mut args = args.to_vec();
            args.iter_mut().for_each(|(_, value)| value.note_writes(&is_written));
            args
        };
        let again = written(&later.args);
        let mut met = false;
        // Each is compared with all before it, as when a loop launches.
        self.fuel = self.fuel.saturating_sub(self.launches.len() as u32);
        for launch in &mut self.launches {
            let same = launch.launches_as(later) && launch.grid == later.grid;
            if same && written(&launch.args) == again {
                let same_place = launch.at == later.at && launch.complete == later.complete;
                met |= same_place;
                // It happens if one of the two does.
                launch.doubtful &= !same_place || later.doubtful;
                launch.supposed =
                    launch.supposed.filter(|_| !same_place || later.supposed.is_some());
            } else if !allocations.is_empty() && !launch.writes_as(later, &is_written) {
                launch.args.iter_mut().for_each(|(_, value)| value.note_writes(&is_written));
            }
        }
        met
    }

    /// Evaluates a launch at module level that was not met when the module ran in order.
    pub(crate) fn observe(&mut self, file: FileId, launch: &Launch) {
        let code = Code::Body(launch.body.clone(), Some(launch.map.clone()));
        let mut frame = Frame::new(file, &[], code, Variables::default());
        let kernel = self.kernel_value(&mut frame, launch.kernel);
        let grid = self.expr(&mut frame, launch.grid);
        let (args, complete) = self.arguments(&mut frame, &launch.args);
        let at = frame.place(launch.kernel);
        let launch = self.observed((kernel, grid), (args, complete), at);
        self.launches.push(ObservedLaunch { doubtful: true, ..launch });
    }

    /// What the callee of a launch names.
    pub(crate) fn kernel_value(&mut self, frame: &mut Frame, kernel: ExprId) -> Value {
        let scope = Scope { file: frame.file, path: &frame.scope };
        let code = frame.code.clone();
        match resolve_expr(self.sources, scope, code.body(), kernel) {
            found @ Resolution::Jit(_) => match self.expr(frame, kernel) {
                bound @ Value::Named(Resolution::Jit(_)) => {
                    self.tuned_variable(frame, kernel).unwrap_or(bound)
                }
                bound @ Value::Callable(Callable::Tuned(_)) => bound,
                _ => Value::Named(self.defined_by_now(found)),
            },
            _ => self.expr(frame, kernel),
        }
    }

    /// What a tuner made of a kernel that a variable of the module holds, where that is what an expression names: another
    /// variable may hold what another tuner made of the same kernel.
    fn tuned_variable(&mut self, frame: &Frame, named: ExprId) -> Option<Value> {
        let name = frame.code.body().exprs[named].as_name()?.clone();
        if frame.variables.contains_key(&name) {
            return None;
        }
        let module = self.sources.module(frame.file)?;
        let mut bound = module.items_named(&name).map(|at| &module.items[at as usize]);
        let (Some(item), None) = (bound.next(), bound.next()) else { return None };
        let ItemKind::Assign { body, map, value, .. } = &item.kind else { return None };
        let made = self.module_expr(frame.file, &item.scope, (body, map), *value);
        matches!(made, Value::Callable(Callable::Tuned(_))).then_some(made)
    }
}

impl ObservedLaunch {
    /// Whether `other` launches the same kernel, tuned in the same way.
    fn launches_as(&self, other: &ObservedLaunch) -> bool {
        self.kernel == other.kernel && self.tuners == other.tuners
    }

    /// Whether `other` writes to the same elements of the allocations for which `is_written` holds: it
    /// differs at most in floats, of which neither addresses nor masks are made.
    fn writes_as(&self, other: &ObservedLaunch, is_written: &dyn Fn(u32) -> bool) -> bool {
        let by_function = |grid: &Value| matches!(grid, Value::Callable(_));
        let places = |args: &[(Option<Name>, Value)]| -> Vec<(Option<Name>, Value)> {
            args.iter().map(|(name, value)| (name.clone(), place(value, is_written))).collect()
        };
        let same_grid = self.grid == other.grid
            || self.at == other.at && by_function(&self.grid) && by_function(&other.grid);
        same_grid
            && self.launches_as(other)
            && self.complete == other.complete
            && places(&self.args) == places(&other.args)
    }

    /// Whether `other` differs at most in allocations and in what a function computes the grid from:
    /// the kernel is compiled for both in the same way.
    fn repeats(&self, other: &ObservedLaunch) -> bool {
        let by_function = |grid: &Value| matches!(grid, Value::Callable(_));
        let anywhere = |args: &[(Option<Name>, Value)]| -> Vec<(Option<Name>, Value)> {
            args.iter().map(|(name, value)| (name.clone(), value.clone().anywhere())).collect()
        };
        self.at == other.at
            && self.launches_as(other)
            && self.complete == other.complete
            && self.doubtful == other.doubtful
            && (self.grid == other.grid || by_function(&self.grid) && by_function(&other.grid))
            && anywhere(&self.args) == anywhere(&other.args)
    }

    /// Whether `other` is the same launch at the same place.
    pub(crate) fn is_same(&self, other: &ObservedLaunch) -> bool {
        self.at == other.at
            && self.complete == other.complete
            && self.launches_as(other)
            && self.grid == other.grid
            && self.args == other.args
            && self.before == other.before
    }
}

/// What an argument says of where a kernel reads and writes: of floats, where they are.
fn place(value: &Value, is_written: &dyn Fn(u32) -> bool) -> Value {
    match value {
        Value::Float(_) => Value::Float(None),
        Value::Tensor(tensor) => {
            let mut tensor = tensor.clone();
            let is_of_floats = tensor.dtype.as_deref().is_some_and(is_float);
            if is_of_floats || tensor.memory().is_some_and(is_written) {
                tensor.note_write();
            }
            match tensor.memory().is_some_and(is_written) {
                true => Value::Tensor(tensor),
                false => Value::Tensor(tensor).anywhere(),
            }
        }
        value => value.clone(),
    }
}

/// The arguments of a call of a partial application: those that it holds come first, and keywords
/// are replaced by those that are given.
pub(crate) fn applied(
    held: &[(Option<Name>, Value)],
    given: Vec<(Option<Name>, Value)>,
) -> Vec<(Option<Name>, Value)> {
    let replaced =
        |name: &Option<Name>| name.is_some() && given.iter().any(|(known, _)| known == name);
    let kept = held.iter().filter(|(name, _)| !replaced(name)).cloned();
    let (named, positional): (Vec<_>, Vec<_>) = kept.partition(|(name, _)| name.is_some());
    positional.into_iter().chain(given).chain(named).collect()
}
