//! What host code computes, as far as the text shows it.
//!
//! A small abstract interpreter of Python: numbers, strings, tuples, lists, dicts, lambdas, calls
//! of the project's own functions, Triton's host helpers, and tensors by dtype, shape and
//! strides. Nothing outside the text is consulted and nothing is executed; what is not shown is
//! [`Value::Unknown`]. It serves autotune configurations, heuristics, launches and scenarios.

use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use self::misuse::{Misuse, is_whole};
use self::value::{Callable, Descriptor, Value};
use crate::eval::Python;
use crate::hir::{
    self, Arg, ArgKind, Body, Expr, ExprId, Function, Item, Launch, Literal, MainBlock, Name,
    Param, ParamKind, Scenario, SourceMap, Stmt,
};
use crate::project::{
    ItemRef, Kernel, Resolution, Scope, Sources, callee, constant, function, installation, item,
    item_scope, resolve, resolve_expr, resolve_item, resolve_member,
};
use crate::source::{FileId, FileRange, TextRange};

mod calls;
mod changes;
mod collections;
mod doubt;
mod dtype;
mod enumeration;
mod exact;
mod expr;
mod flow;
mod installed;
mod instances;
mod launch;
mod made;
pub(crate) mod misuse;
mod number;
mod objects;
mod operators;
mod rebound;
mod tensor;
#[cfg(test)]
mod tests;
pub(super) mod value;
mod views;
mod wrapped;

use changes::Names;
use doubt::Doubt;
pub(crate) use dtype::named_dtype;
pub(super) use dtype::{SPELLINGS, language_dtype};
use flow::{Exits, Flow};
use rebound::Rebound;
use tensor::Args;
pub(super) use views::strides;

/// Expressions evaluated for one question; beyond, everything is unknown.
const FUEL: u32 = 100_000;

/// Calls and constants followed into each other.
const MAX_DEPTH: u32 = 24;

/// The interpreter.
pub(super) struct Host<'a> {
    sources: &'a dyn Sources,
    fuel: u32,
    depth: u32,
    options: Options,
    /// Whether something is not known because branches leave different values.
    pub(super) joined: bool,
    /// Launches met, in the order in which they would happen.
    pub(super) launches: Vec<ObservedLaunch>,
    /// Allocations made so far.
    allocations: u32,
    /// Allocations that tensors may not be in any more.
    replaced: FxHashSet<u32>,
    /// The attributes of objects.
    objects: FxHashMap<usize, Variables>,
    /// The classes of objects that are instances of the project's own.
    classes: FxHashMap<usize, ItemRef>,
    /// Calls of functions without their decorators so far.
    undecorated: u32,
    /// Allocations that launches may have written.
    written: FxHashSet<u32>,
    /// By kernel, which of its arguments it may write to.
    writes: FxHashMap<ItemRef, Arc<[bool]>>,
    /// Names by file that may be bound at any time.
    rebound: FxHashMap<FileId, Rc<Rebound>>,
    /// Collections among its arguments that the last function called changed.
    changed: Vec<Value>,
    /// What may keep the running code from running.
    doubt: Doubt,
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
pub(super) struct Options {
    /// Arguments that are flags by default may as well be the other way round.
    pub(super) open_flags: bool,
    /// Of two branches the first counts where the condition is not known, so that values are
    /// those of one possible run; otherwise only what both leave is known. Where one of them ends
    /// the function or an iteration, the run goes on in the other.
    pub(super) one_run: bool,
}

/// A launch with the values of its arguments.
#[derive(Debug, Clone)]
pub(super) struct ObservedLaunch {
    /// What is launched.
    pub(super) kernel: Value,
    /// What stands between the brackets.
    pub(super) grid: Value,
    /// The arguments in order; starred ones whose length is not known are left out.
    pub(super) args: Vec<(Option<Name>, Value)>,
    /// The arguments in one possible run of the host code, if one was followed.
    pub(super) example: Vec<(Option<Name>, Value)>,
    /// Where the kernel's name stands, if the text is at hand.
    pub(super) at: Option<FileRange>,
    /// False when a starred argument was left out, so that positions are not known.
    pub(super) complete: bool,
    /// Whether it may never happen: it stands under a condition whose outcome is settled, but not
    /// known.
    pub(super) doubtful: bool,
}

impl ObservedLaunch {
    /// Whether `other` is the same launch at the same place.
    pub(super) fn is_same(&self, other: &ObservedLaunch) -> bool {
        self.at == other.at
            && self.complete == other.complete
            && self.kernel == other.kernel
            && self.grid == other.grid
            && self.args == other.args
    }
}

/// The code that a frame runs.
#[derive(Debug, Clone)]
pub(super) enum Code {
    /// A function's body.
    Function(Arc<Function>),
    /// An expression's body, and where its parts stand where that may be asked.
    Body(Arc<Body>, Option<Arc<SourceMap>>),
}

impl Code {
    fn body(&self) -> &Body {
        match self {
            Code::Function(function) => &function.body,
            Code::Body(body, _) => body,
        }
    }

    fn range(&self, expr: ExprId) -> Option<TextRange> {
        match self {
            Code::Function(function) => Some(function.map.exprs[expr]),
            Code::Body(_, map) => map.as_ref().map(|map| map.exprs[expr]),
        }
    }
}

/// Variables by name.
pub(super) type Variables = FxHashMap<Name, Value>;

/// A running function, or an expression being evaluated.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    pub(super) file: FileId,
    /// Where names are looked up that are no variables.
    pub(super) scope: Rc<[Name]>,
    pub(super) code: Code,
    pub(super) variables: Variables,
    /// Whether the functions of scenarios (`randn`, `cdiv`) are in scope.
    pub(super) scenario: bool,
    /// The ways out that may have been taken.
    exits: Exits,
    /// Which variables change together.
    names: Names,
    /// Variables that hold what callers choose.
    open: FxHashSet<Name>,
}

impl Frame {
    fn new(file: FileId, scope: &[Name], code: Code, variables: Variables) -> Frame {
        let (scope, exits, names) = (Rc::from(scope), Exits::default(), Names::default());
        let open = FxHashSet::default();
        Frame { file, scope, code, variables, scenario: false, exits, names, open }
    }

    /// From the callee to the last argument.
    fn call_place(&self, callee: ExprId, args: &[Arg]) -> Option<FileRange> {
        let callee = self.place(callee)?;
        let last = args.last().and_then(|arg| self.place(arg.value)).unwrap_or(callee);
        Some(FileRange { range: callee.range.cover(last.range), ..callee })
    }

    /// Where an expression of the running code stands.
    fn place(&self, expr: ExprId) -> Option<FileRange> {
        self.code.range(expr).map(|range| FileRange { file: self.file, range })
    }
}

impl<'a> Host<'a> {
    pub(super) fn new(sources: &'a dyn Sources) -> Host<'a> {
        Host::with(sources, Options::default())
    }

    /// An interpreter that takes what is open as `options` say.
    pub(super) fn with(sources: &'a dyn Sources, options: Options) -> Host<'a> {
        Host {
            sources,
            options,
            fuel: FUEL,
            depth: 0,
            joined: false,
            launches: Vec::new(),
            allocations: 0,
            replaced: FxHashSet::default(),
            objects: FxHashMap::default(),
            classes: FxHashMap::default(),
            undecorated: 0,
            written: FxHashSet::default(),
            writes: FxHashMap::default(),
            rebound: FxHashMap::default(),
            changed: Vec::new(),
            doubt: Doubt::default(),
            python: None,
            left: FxHashMap::default(),
            meanings: FxHashMap::default(),
        }
    }

    /// Begins another question: with all of the fuel, and nothing launched.
    pub(super) fn begin(&mut self) {
        self.fuel = FUEL;
        self.joined = false;
        self.launches.clear();
        self.doubt = Doubt::default();
    }

    /// A module-level expression's value.
    pub(super) fn module_expr(
        &mut self,
        file: FileId,
        scope: &[Name],
        (body, map): (&Arc<Body>, &Arc<SourceMap>),
        id: ExprId,
    ) -> Value {
        let code = Code::Body(body.clone(), Some(map.clone()));
        self.expr(&mut Frame::new(file, scope, code, Variables::default()), id)
    }

    /// An expression that belongs to a function's head: a decorator, annotation or default.
    pub(super) fn head_expr(
        &mut self,
        file: FileId,
        scope: &[Name],
        function: &Arc<Function>,
        id: ExprId,
    ) -> Value {
        self.head_expr_with(file, scope, function, Variables::default(), id)
    }

    /// As [`Host::head_expr`], where the module has bound these variables.
    pub(super) fn head_expr_with(
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
    pub(super) fn bound_before(&mut self, kernel: &Kernel) -> Variables {
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
                self.run_mains(kernel.at.file, module.mains.iter().filter(binds))
            }
            _ => Variables::default(),
        }
    }

    /// Runs a host function with nothing known of its arguments but annotations and defaults.
    pub(super) fn run_function(&mut self, file: FileId, scope: &[Name], function: &Arc<Function>) {
        if self.is_skipped(file, scope, function) {
            return;
        }
        let mut variables = Variables::default();
        let known = self.backward_arguments(file, scope, function).unwrap_or_default();
        for (index, param) in function.params.iter().enumerate() {
            let value = match known.get(index) {
                Some(known) if param.kind.is_positional() => known.clone(),
                _ => self.unknown_argument(file, scope, function, param),
            };
            variables.insert(param.name.clone(), value);
        }
        self.doubt = Doubt::of_entry();
        let frame = self.frame_of(file, scope, function, variables);
        self.body_of(frame, function);
        self.doubt = Doubt::default();
    }

    /// Runs the statements of a scenario.
    pub(super) fn run_scenario(&mut self, file: FileId, scenario: &Scenario) {
        let code = Code::Body(scenario.body.clone(), Some(scenario.map.clone()));
        let mut frame = Frame::new(file, &[], code, Variables::default());
        frame.scenario = true;
        self.block(&mut frame, &scenario.body.root);
    }

    /// Runs the function `hook` on a dict of arguments; the dict afterwards.
    pub(super) fn run_hook(&mut self, hook: ItemRef, args: Value) -> Vec<(Value, Value)> {
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
            Some(Value::Dict(entries)) => entries,
            _ => Vec::new(),
        }
    }

    /// Evaluates a launch at module level that was not met when the module ran in order.
    pub(super) fn observe(&mut self, file: FileId, launch: &Launch) {
        let code = Code::Body(launch.body.clone(), Some(launch.map.clone()));
        let mut frame = Frame::new(file, &[], code, Variables::default());
        let kernel = self.kernel_value(&mut frame, launch.kernel);
        let grid = self.expr(&mut frame, launch.grid);
        let (args, complete) = self.arguments(&mut frame, &launch.args);
        let at = frame.place(launch.kernel);
        let (example, doubtful) = (Vec::new(), true);
        self.launches.push(ObservedLaunch { kernel, grid, args, example, at, complete, doubtful });
    }

    /// What a function shows of an argument that it is called with. Defaults count: calling
    /// without the argument is a use that the author offers.
    fn unknown_argument(
        &mut self,
        file: FileId,
        scope: &[Name],
        function: &Arc<Function>,
        param: &Param,
    ) -> Value {
        if param.kind == ParamKind::VarArgs || param.kind == ParamKind::KwArgs {
            return Value::Unknown;
        }
        let default = match param.default {
            Some(default) => self.head_expr(file, scope, function, default),
            None => Value::Unknown,
        };
        match default {
            Value::None => match annotated(function, param) {
                Value::Unknown => Value::Omitted,
                annotated => annotated,
            },
            Value::Unknown => annotated(function, param),
            Value::Bool(_) if self.options.open_flags => Value::Bool(None),
            default => default,
        }
    }

    /// Runs what a file runs when it is a program, in order; the variables that this leaves.
    pub(super) fn run_mains<'m>(
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
            if !matches!(self.block(frame, &main.body.root), Flow::Next) {
                break;
            }
        }
        self.doubt = Doubt::default();
        running.map(|frame| frame.variables).unwrap_or_default()
    }

    /// The frame of a function that starts with these variables.
    fn frame_of(
        &self,
        file: FileId,
        scope: &[Name],
        function: &Arc<Function>,
        variables: Variables,
    ) -> Frame {
        let mut inner: Vec<Name> = scope.to_vec();
        inner.push(function.name.clone());
        let mut frame = Frame::new(file, &inner, Code::Function(function.clone()), variables);
        if self.doubt.chosen {
            frame.open_undetermined();
        }
        frame
    }

    /// Runs a function's body; its value.
    fn body_of(&mut self, mut frame: Frame, function: &Arc<Function>) -> Value {
        if self.depth >= MAX_DEPTH || self.doubt.raised {
            return Value::Unknown;
        }
        self.depth += 1;
        let collections = frame.variables.iter().filter(|(_, value)| changes::is_collection(value));
        let collections = collections.map(|(name, value)| (name.clone(), value.clone())).collect();
        let around = self.doubt.enter();
        let flow = self.block(&mut frame, &function.body.root);
        self.doubt.leave(around, matches!(flow, Flow::Return(None)), frame.exits.may_return());
        self.depth -= 1;
        self.changed = frame.changed_of(collections).collect();
        match function.body.exprs.values().any(|expr| matches!(expr, Expr::Unsupported("Yield"))) {
            // A generator, or what a context manager makes of one.
            true => {
                self.doubt.raised = false;
                Value::Unknown
            }
            false => self.result(&mut frame, flow),
        }
    }

    fn assign(&mut self, frame: &mut Frame, target: ExprId, value: &Value) {
        let code = frame.code.clone();
        match &code.body().exprs[target] {
            Expr::Name(name) => frame.bind(name, value.clone()),
            Expr::Tuple(targets) | Expr::List(targets) => {
                let starred =
                    |target: &ExprId| matches!(code.body().exprs[*target], Expr::Starred(_));
                let star = targets.iter().position(starred);
                let items = value.elements().and_then(|items| dealt(items, targets.len(), star));
                let raised = match value {
                    Value::Tuple(items)
                        if star.is_none() && items.len() != targets.len() && is_whole(items) =>
                    {
                        let (len, names) = (items.len(), targets.len());
                        Some(Value::Raises(Misuse::Unpacked { len, names }))
                    }
                    _ => None,
                };
                for (at, target) in targets.iter().enumerate() {
                    let item = items.as_ref().map(|items| items[at].clone());
                    let item = item.or_else(|| raised.clone());
                    self.assign(frame, *target, &item.unwrap_or_else(|| value.any_element()));
                }
            }
            // What it gets is a list where what is unpacked is known.
            Expr::Starred(target) => match value {
                Value::List(_) => self.assign(frame, *target, value),
                _ => self.assign(frame, *target, &Value::Unknown),
            },
            Expr::Subscript { value: object, index } => {
                self.assign_item(frame, *object, *index, value);
            }
            Expr::Attribute { value: object, attr }
                if let Value::Object(object) = self.expr(frame, *object) =>
            {
                self.set_attribute(object, attr, value.clone());
            }
            Expr::Attribute { value: object, attr } if &**attr == "block_shape" => {
                self.assign_block(frame, *object, value);
            }
            Expr::Attribute { value: object, attr } if &**attr == "data" => {
                self.note_replaced(frame, *object);
            }
            _ => {}
        }
    }

    /// `descriptor.block_shape = value`.
    fn assign_block(&mut self, frame: &mut Frame, object: ExprId, value: &Value) {
        let Value::Descriptor(descriptor) = self.expr(frame, object) else { return };
        let Some(block) = value.elements() else { return };
        self.assign(
            frame,
            object,
            &Value::Descriptor(Box::new(Descriptor { block, ..*descriptor })),
        );
    }

    /// `object[index] = value`.
    fn assign_item(&mut self, frame: &mut Frame, object: ExprId, index: ExprId, value: &Value) {
        let key = self.expr(frame, index);
        match self.expr(frame, object) {
            Value::Dict(mut entries) => {
                let changed = collections::set(&mut entries, key, value.clone());
                frame.change(object, changed.map_or(Value::Unknown, |()| Value::Dict(entries)));
            }
            Value::List(mut items) => {
                let at = match key {
                    Value::Int(Some(at)) => operators::position(items.len(), at),
                    _ => None,
                };
                let changed = at.map(|at| items[at] = value.clone());
                frame.change(object, changed.map_or(Value::Unknown, |()| Value::List(items)));
            }
            Value::Tensor(_) => self.note_write(frame, object),
            _ => {}
        }
    }

    fn name(&mut self, frame: &mut Frame, name: &Name) -> Value {
        if let Some(value) = frame.variables.get(name) {
            // What is long takes long to look at, as when a list grows in a loop.
            let length = match value {
                Value::List(items) | Value::Tuple(items) => items.len(),
                Value::Dict(entries) => entries.len(),
                _ => 0,
            };
            self.fuel = self.fuel.saturating_sub(length as u32);
            return match self.is_rebound(frame.file, &frame.scope, name) {
                true => value.degraded(),
                false => self.current(value.clone()),
            };
        }
        let scope = Scope { file: frame.file, path: &frame.scope };
        match self.meaning(scope, name) {
            found @ (Resolution::Undefined | Resolution::Unknown) => {
                match (self.bound_by_running(frame, name), found) {
                    (Some(value), _) => value,
                    (None, Resolution::Undefined) => Value::Global(name.clone()),
                    (None, _) => Value::Unknown,
                }
            }
            Resolution::Function(at) if self.stands_in(at, frame) => {
                Value::Callable(Callable::Closure { frame: frame.kept(), at })
            }
            found => self.resolved(found),
        }
    }

    /// What a name means that no variable binds.
    fn meaning(&mut self, scope: Scope<'_>, name: &Name) -> Resolution {
        let scopes = self.meanings.entry(scope.file).or_default();
        if let Some(known) = scopes.get(scope.path).and_then(|names| names.get(name)) {
            return known.clone();
        }
        let found = resolve(self.sources, scope, name);
        scopes.entry(scope.path.to_vec()).or_default().insert(name.clone(), found.clone());
        found
    }

    /// Whether a plain function stands in the function that is running.
    fn stands_in(&self, at: ItemRef, frame: &Frame) -> bool {
        if at.file != frame.file || frame.scope.is_empty() {
            return false;
        }
        let scope = item_scope(self.sources, at);
        scope == frame.scope[..]
            && function(self.sources, at)
                .is_some_and(|found| self.is_plain(at.file, &scope, &found))
    }

    /// The value of what a name or dotted path means.
    fn resolved(&mut self, found: Resolution) -> Value {
        match found {
            Resolution::Constant(at) | Resolution::Constexpr(at) => {
                let mut value = self.constant_at(at);
                for other in self.other_outcomes(at) {
                    let other = match resolve_item(self.sources, other) {
                        Resolution::Constant(_) | Resolution::Constexpr(_) => {
                            self.constant_at(other)
                        }
                        _ => Value::Unknown,
                    };
                    value = self.one_of(value, &other);
                }
                value
            }
            Resolution::Triton(path) => match language_dtype(&path) {
                Some(dtype) => Value::DType(dtype.into()),
                None => Value::Named(Resolution::Triton(path)),
            },
            Resolution::External(path) => external_value(path),
            Resolution::Unknown | Resolution::Undefined => Value::Unknown,
            found => Value::Named(found),
        }
    }

    /// The value that a binding of a module gives.
    fn constant_at(&mut self, at: ItemRef) -> Value {
        let Some(constant) = constant(self.sources, at) else { return Value::Unknown };
        if self.depth >= MAX_DEPTH {
            return Value::Unknown;
        }
        self.depth += 1;
        let scope = item_scope(self.sources, at);
        let value =
            self.module_expr(at.file, &scope, (&constant.body, &constant.map), constant.value);
        self.depth -= 1;
        let Some(Item { name, .. }) = item(self.sources, at) else { return value };
        let value = match scope.is_empty() {
            true => self.as_imported(at.file, &name, value),
            false => value,
        };
        match self.is_rebound(at.file, &scope, &name) {
            true => value.degraded(),
            false => value,
        }
    }

    /// A member of something that has a name.
    fn member(&mut self, base: &Resolution, name: &str) -> Value {
        match (base, name) {
            (Resolution::Class(at), "apply") => Value::Callable(Callable::Apply(*at)),
            (Resolution::Class(at), _) => self.member_of_class(*at, name),
            // A class method of one of Triton's own classes.
            (Resolution::Triton(class), _) => {
                Value::Named(Resolution::Triton(format!("{class}.{name}").into()))
            }
            _ => {
                let member = resolve_member(self.sources, base, name);
                self.resolved(member)
            }
        }
    }

    fn attribute(&mut self, frame: &mut Frame, value: ExprId, attr: &Name) -> Value {
        match self.expr(frame, value) {
            Value::Member(member) => self.attribute_of_member(&member, attr),
            Value::Named(base) => self.member(&base, attr),
            Value::Object(object) => match self.object_attribute(object, attr) {
                Value::Unknown => self.of_class(object, attr),
                value => value,
            },
            value => tensor::attribute(&value, attr),
        }
    }

    /// Calls a function of the project with known arguments.
    pub(super) fn call_function(&mut self, at: ItemRef, args: &[(Option<Name>, Value)]) -> Value {
        let (Some(item), Some(function)) = (item(self.sources, at), function(self.sources, at))
        else {
            return Value::Unknown;
        };
        if !self.is_wrapped(at.file, &item.scope, &function) {
            return self.call_undecorated(at, &function, args);
        }
        let tells = |(_, value): &(_, Value)| match value {
            Value::Tensor(tensor) => tensor.shape.is_some(),
            _ => false,
        };
        if args.iter().any(tells)
            && let Some(result) = self.call_wrapped(at, &function, args)
        {
            return result;
        }
        let entry = |(name, value): &(Option<Name>, Value)| (name.clone(), other_tensor(value));
        let handed_on: Vec<_> = args.iter().map(entry).collect();
        self.call_undecorated(at, &function, &handed_on)
    }

    /// Calls a function that stands in another one, whose variables it sees.
    fn call_closure(
        &mut self,
        around: &Frame,
        at: ItemRef,
        args: &[(Option<Name>, Value)],
    ) -> Value {
        let Some(function) = function(self.sources, at) else { return Value::Unknown };
        let variables = self.parameters(at.file, &around.scope, &function, args);
        let mut frame = self.frame_of(at.file, &around.scope, &function, variables);
        for (name, value) in &around.variables {
            if !frame.variables.contains_key(name) {
                let value = match self.is_rebound(around.file, &around.scope, name) {
                    true => value.degraded(),
                    false => value.clone(),
                };
                frame.variables.insert(name.clone(), value);
                frame.note_open(name, around.open.contains(name));
            }
        }
        self.body_of(frame, &function)
    }

    /// What the parameters of a function are in a call.
    fn parameters(
        &mut self,
        file: FileId,
        scope: &[Name],
        function: &Arc<Function>,
        args: &[(Option<Name>, Value)],
    ) -> Variables {
        let heads: Vec<_> = function.params.iter().map(|param| (&param.name, param.kind)).collect();
        let given = function.params.iter().zip(calls::bound(&heads, args));
        given
            .map(|(param, given)| {
                let value =
                    given.unwrap_or_else(|| self.unknown_argument(file, scope, function, param));
                (param.name.clone(), value)
            })
            .collect()
    }

    /// What the decorators of a function are, or what they are made by.
    fn decorators(&self, file: FileId, scope: &[Name], function: &Function) -> Vec<Resolution> {
        let scope = Scope { file, path: scope };
        let body = &function.body;
        let called = function.decorators.iter().map(|decorator| callee(body, *decorator));
        called.map(|callee| resolve_expr(self.sources, scope, body, callee)).collect()
    }

    /// Whether a decorator of the project's own stands before a function: what it hands on to it may
    /// be something else.
    fn is_wrapped(&self, file: FileId, scope: &[Name], function: &Function) -> bool {
        self.decorators(file, scope, function).iter().any(is_wrapper_of)
    }

    /// Whether a function is a test that may not run.
    fn is_skipped(&self, file: FileId, scope: &[Name], function: &Function) -> bool {
        self.decorators(file, scope, function).iter().any(|found| {
            let Resolution::External(path) = found else { return false };
            let path: Vec<&str> = path.iter().map(|part| &**part).collect();
            let (["pytest", "mark", mark] | ["unittest", mark]) = path.as_slice() else {
                return false;
            };
            matches!(
                *mark,
                "skip" | "skipif" | "skipIf" | "skipUnless" | "xfail" | "expectedFailure"
            )
        })
    }

    /// Arguments in order; `**` of a known dict is spread. The flag is false when something was
    /// left out.
    fn arguments(&mut self, frame: &mut Frame, args: &[Arg]) -> (Vec<(Option<Name>, Value)>, bool) {
        let mut values = Vec::new();
        let mut complete = true;
        for arg in args {
            let value = self.expr(frame, arg.value);
            match &arg.kind {
                ArgKind::Positional => values.push((None, value)),
                ArgKind::Keyword(name) => values.push((Some(name.clone()), value)),
                ArgKind::Star => match value.elements() {
                    Some(items) => values.extend(items.into_iter().map(|item| (None, item))),
                    None => complete = false,
                },
                // Of a dict that is not known, what it holds is left out.
                ArgKind::DoubleStar => {
                    if let Value::Dict(entries) = value {
                        values.extend(entries.into_iter().filter_map(|(key, value)| match key {
                            Value::Str(name) => Some((Some(name), value)),
                            _ => None,
                        }));
                    }
                }
            }
        }
        (values, complete)
    }

    /// Calls a lambda or function value.
    pub(super) fn call_value(&mut self, callee: &Value, args: &[(Option<Name>, Value)]) -> Value {
        match callee {
            Value::Callable(Callable::Lambda { frame, params, body }) => {
                if self.depth >= MAX_DEPTH {
                    return Value::Unknown;
                }
                let mut frame = Frame::clone(frame);
                let heads: Vec<_> = params.iter().map(|param| (&param.name, param.kind)).collect();
                let given = calls::bound(&heads, args).into_iter();
                for (param, given) in params.iter().zip(given) {
                    let value = given.unwrap_or_else(|| param.default.clone());
                    frame.variables.insert(param.name.clone(), value);
                }
                self.expr(&mut frame, *body)
            }
            Value::Callable(Callable::Closure { frame, at }) => {
                self.call_closure(&Rc::clone(frame), *at, args)
            }
            Value::Callable(Callable::Apply(class)) => self.call_forward(*class, args),
            Value::Callable(Callable::Undecorated(at)) => {
                self.undecorated += 1;
                match function(self.sources, *at) {
                    Some(function) => self.call_undecorated(*at, &function, args),
                    None => Value::Unknown,
                }
            }
            Value::Callable(Callable::Launcher { kernel, grid }) => {
                let launched = (Value::clone(kernel), Value::clone(grid));
                self.launch(launched, (args.to_vec(), true), None)
            }
            Value::Callable(Callable::Partial { callee, args: held }) => {
                self.call_value(callee, &launch::applied(held, args.to_vec()))
            }
            Value::Named(Resolution::Function(at)) => self.call_function(*at, args),
            Value::Global(name) => self.global_call(name, &Args(args)),
            _ => Value::Unknown,
        }
    }

    /// What a value is that is one of several.
    fn any_of(&mut self, values: Vec<Value>) -> Value {
        let mut values = values.into_iter();
        let Some(first) = values.next() else { return Value::Unknown };
        values.fold(first, |known, value| self.one_of(known, &value))
    }

    /// What the callee of a launch names.
    fn kernel_value(&mut self, frame: &mut Frame, kernel: ExprId) -> Value {
        let scope = Scope { file: frame.file, path: &frame.scope };
        let code = frame.code.clone();
        match resolve_expr(self.sources, scope, code.body(), kernel) {
            found @ Resolution::Jit(_) => Value::Named(found),
            _ => self.expr(frame, kernel),
        }
    }
}

/// Whether a decorator may hand on other arguments to a function than it gets.
fn is_wrapper_of(found: &Resolution) -> bool {
    matches!(found, Resolution::Function(_) | Resolution::Class(_) | Resolution::Unknown)
}

/// What is known of an argument that may be replaced on the way: of a tensor, its dtype.
fn other_tensor(value: &Value) -> Value {
    match value {
        Value::Tensor(tensor) => Value::tensor(tensor.dtype.as_deref()),
        value => value.clone(),
    }
}

/// Something outside of the project; what tells the kind of device is that of NVIDIA.
fn external_value(path: Vec<Name>) -> Value {
    if let Some(dtype) = dtype::torch_dtype(&path) {
        return Value::DType(dtype.into());
    }
    let names: Vec<&str> = path.iter().map(|name| &**name).collect();
    let known = installation::named(&names).and_then(|fact| Value::of_fact(&fact, 0));
    known.unwrap_or(Value::Named(Resolution::External(path)))
}

/// What a plain annotation says of an argument.
fn annotated(function: &Function, param: &Param) -> Value {
    let Some(annotation) = param.annotation else { return Value::Unknown };
    match &function.body.exprs[annotation] {
        Expr::Name(name) => match &**name {
            "int" => Value::Int(None),
            "float" => Value::Float(None),
            "bool" => Value::Bool(None),
            "Tensor" => Value::tensor(None),
            _ => Value::Unknown,
        },
        Expr::Attribute { attr, .. } if &**attr == "Tensor" => Value::tensor(None),
        _ => Value::Unknown,
    }
}

fn literal_value(literal: &Literal) -> Value {
    match literal {
        Literal::Int(value) => Value::Int(Some(*value)),
        Literal::BigInt(_) => Value::Int(None),
        Literal::Float(bits) => Value::Float(Some(f64::from_bits(*bits))),
        Literal::Bool(value) => Value::Bool(Some(*value)),
        Literal::None => Value::None,
        Literal::Str(text) => Value::Str(text.clone()),
        Literal::Bytes | Literal::Ellipsis | Literal::Imaginary => Value::Unknown,
    }
}

/// What each of `targets` targets gets of `items`; the one at `star` gets a list of what the others
/// leave. `None` where they do not fit.
fn dealt(mut items: Vec<Value>, targets: usize, star: Option<usize>) -> Option<Vec<Value>> {
    if let Some(star) = star {
        let rest = (items.len() + 1).checked_sub(targets)?;
        let rest: Vec<Value> = items.drain(star..star + rest).collect();
        items.insert(star, Value::List(rest));
    }
    (items.len() == targets).then_some(items)
}
