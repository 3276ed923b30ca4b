//! What names and dotted paths mean in host code: variables, what a module binds, and members of
//! both.

use std::sync::Arc;

use crate::hir::statements;
use crate::hir::{
    Body, Expr, ExprId, Item, ItemKind, Literal, Module, Name, Occasion, PYTHON_NAMES, Stmt, StmtId,
};
use crate::host::code::frame::Frame;
use crate::host::code::statics::Owner;
use crate::host::library::versions;
use crate::host::torch::misuse::{self, Misuse};
use crate::host::torch::tensor;
use crate::host::value::dtype::{self, language_dtype};
use crate::host::value::{Callable, Value};
use crate::host::{Host, MAX_DEPTH};
use crate::project::{
    ItemRef, Resolution, Scope, Sources, constant, function, installation, item, item_scope,
    resolve, resolve_before, resolve_item, resolve_member,
};
use crate::source::{FileId, TextRange};

/// Settings of PyTorch that code passes to kernels, and what they are where nobody sets them:
/// <https://docs.pytorch.org/docs/stable/backends.html>.
const SETTINGS: &[(&[&str], bool)] = &[
    (&["torch", "backends", "cuda", "matmul", "allow_tf32"], false),
    (&["torch", "backends", "cudnn", "allow_tf32"], true),
    (&["torch", "backends", "cudnn", "benchmark"], false),
    (&["torch", "backends", "cudnn", "deterministic"], false),
];

/// What `__name__` is in a program.
const MAIN: &str = "__main__";

impl Host<'_> {
    /// The value of a variable, or of what a name means.
    pub(crate) fn name(&mut self, frame: &mut Frame, name: &Name) -> Value {
        if frame.scope.is_empty()
            && !frame.scenario
            && let Some(held) = self.held(Owner::Module(frame.file), name)
        {
            return held;
        }
        let defined = self.defined_here(frame, name);
        if defined.is_none()
            && let Some(value) = frame.variables.get(name)
        {
            // What is long takes long to look at, as when a list grows in a loop.
            let length = match value {
                Value::List(items) | Value::Tuple(items) => items.len(),
                Value::Dict(entries) => entries.len(),
                _ => 0,
            };
            self.fuel = self.fuel.saturating_sub(length as u32);
            let value = self.since((frame.file, &frame.scope), name, value);
            return self.current(value);
        }
        // What a function binds by `global` is no variable of its own.
        let path = if self.binds_global(frame, name) { &[][..] } else { &frame.scope };
        let scope = Scope { file: frame.file, path };
        let found = match defined.unwrap_or_else(|| self.meaning(scope, name)) {
            Resolution::Constant(at) if let Some(before) = self.bound_now(frame, at) => {
                resolve_before(self.sources, scope, name, before)
            }
            found => match self.defined_around(frame, name, &found) {
                Some(Value::Named(defined)) => defined,
                Some(value) => return self.current(value),
                None => self.defined_by_now(found),
            },
        };
        match found {
            found @ (Resolution::Undefined | Resolution::Unknown) => {
                let bound = self.bound_by_running(frame, name);
                match (bound.or_else(|| self.element_of_call(frame.file, name)), found) {
                    (Some(value), _) => value,
                    _ if &**name == "__name__" => self.module_name(frame.file),
                    _ if &**name == "__file__" => self.path_of(frame.file),
                    (None, Resolution::Undefined) => {
                        self.lost += u32::from(!PYTHON_NAMES.contains(&&**name));
                        Value::Global(name.clone())
                    }
                    (None, _) => Value::Unknown,
                }
            }
            Resolution::Function(at) if let Some(frame) = self.made_in(at, frame) => {
                Value::Callable(Callable::Closure { frame, at })
            }
            Resolution::Class(class) if let Some(around) = self.stands_in(class, frame) => {
                Value::Callable(Callable::Local { class, around })
            }
            found => self.resolved(found),
        }
    }

    /// Binds what a statement defines or imports, where others of its function give the same name another meaning:
    /// the one that ran last decides.
    pub(crate) fn bind_here(&mut self, frame: &mut Frame, stmt: StmtId) {
        let range = frame.code.map().map(|map| map.stmts[stmt]).filter(|_| !frame.scenario);
        let module = self.sources.module(frame.file);
        let (Some(range), Some(module)) = (range, module) else { return };
        let scope = frame.scope.clone();
        let is_here = |item: &Item| item.scope == scope[..];
        let bound = (0..).zip(&module.items).filter(|(_, item)| range.contains_range(item.range));
        for (index, item) in bound.filter(|(_, item)| is_here(item)) {
            let is_alone = !is_defined_again(&module, &scope, &item.name);
            if is_alone && !frame.variables.contains_key(&item.name) {
                continue;
            }
            let at = ItemRef { file: frame.file, index };
            if scope.is_empty() {
                self.redefined.insert((frame.file, item.name.clone()), at);
                continue;
            }
            let value = match resolve_item(self.sources, at) {
                found if self.is_defined_in(&found, frame.file, &scope) => Value::Named(found),
                found => self.resolved(found),
            };
            frame.bind_anew(&item.name, value);
        }
    }

    /// What `found` is at the statement that is being run, where its module binds the same name again: what it is bound
    /// to before the statement.
    pub(crate) fn defined_by_now(&self, found: Resolution) -> Resolution {
        let (Resolution::Function(at)
        | Resolution::Class(at)
        | Resolution::Jit(at)
        | Resolution::Constant(at)
        | Resolution::Constexpr(at)) = found
        else {
            return found;
        };
        let now = self.binding.iter().rev().find(|(file, _)| *file == at.file);
        let (Some((_, now)), Some(module)) = (now, self.sources.module(at.file)) else {
            return found;
        };
        let Some(last) = module.items.get(at.index as usize) else { return found };
        if !is_defined_again(&module, &last.scope, &last.name) {
            return found;
        }
        let start = |index: u32| module.items[index as usize].range.start;
        let redefined = self.redefined.get(&(at.file, last.name.clone()));
        if let Some(at) = redefined.filter(|at| last.scope.is_empty() && start(at.index) < now.end)
        {
            return resolve_item(self.sources, *at);
        }
        let is_before = |index: &u32| {
            start(*index) < now.start && module.items[*index as usize].scope == last.scope
        };
        if is_before(&at.index) || !module.items_named(&last.name).any(|index| is_before(&index)) {
            return found;
        }
        let is_later = |item: &Item| item.range.start >= now.start;
        let Some(later) = module.items.iter().position(is_later) else { return found };
        let scope = Scope { file: at.file, path: &last.scope };
        resolve_before(self.sources, scope, &last.name, later as u32)
    }

    /// Evaluates something as it is where a statement of a module stands.
    pub(crate) fn as_of<T>(
        &mut self,
        file: FileId,
        range: TextRange,
        code: impl FnOnce(&mut Self) -> T,
    ) -> T {
        self.binding.push((file, range));
        let found = code(self);
        self.binding.pop();
        found
    }

    /// Whether a function or class stands in a function, right below it.
    fn is_defined_in(&self, found: &Resolution, file: FileId, scope: &[Name]) -> bool {
        match found {
            Resolution::Function(at) | Resolution::Class(at) | Resolution::Jit(at) => {
                at.file == file && !scope.is_empty() && item_scope(self.sources, *at) == *scope
            }
            _ => false,
        }
    }

    /// The function or class that a variable of the running function [was bound to](Self::bind_here).
    fn defined_here(&self, frame: &Frame, name: &Name) -> Option<Resolution> {
        match frame.variables.get(name)? {
            Value::Named(found) if self.is_defined_in(found, frame.file, &frame.scope) => {
                Some(found.clone())
            }
            _ => None,
        }
    }

    /// What a variable of a function around the running one was bound to, where some function or class there,
    /// `found`, has its name.
    fn defined_around(&self, frame: &Frame, name: &Name, found: &Resolution) -> Option<Value> {
        let (Resolution::Function(at) | Resolution::Class(at) | Resolution::Jit(at)) = found else {
            return None;
        };
        let scope = item_scope(self.sources, *at);
        let is_around = at.file == frame.file && !scope.is_empty() && scope != frame.scope[..];
        let around = frame.of_scope(&scope).filter(|_| is_around)?;
        around.variables.get(name).cloned()
    }

    /// What a module calls itself: `__main__` where it is run as a program.
    fn module_name(&self, file: FileId) -> Value {
        match self.program == Some(file) {
            true => Value::Str(MAIN.into()),
            false => Value::Unknown,
        }
    }

    /// The first binding of the statement of a module that is being run or whose value is being looked
    /// for, where a name is bound by that statement: in it the name is what it was before, as in
    /// `kernel = {16: tuned(kernel)}`.
    fn bound_now(&self, frame: &Frame, at: ItemRef) -> Option<u32> {
        let (_, now) = *self.binding.last().filter(|(file, _)| *file == at.file)?;
        let module = self.sources.module(at.file).filter(|_| frame.scope.is_empty())?;
        let binds = |item: &Item| now.contains_range(item.range);
        if !binds(module.items.get(at.index as usize)?) {
            return None;
        }
        module.items.iter().position(binds).map(|first| first as u32)
    }

    /// The variables and code around a subclass of `torch.autograd.Function` that stands in the running
    /// function.
    fn stands_in(&self, class: ItemRef, frame: &mut Frame) -> Option<Arc<Frame>> {
        let is_here = class.file == frame.file
            && !frame.scope.is_empty()
            && item_scope(self.sources, class) == frame.scope[..];
        (is_here && self.is_differentiable(class)).then(|| frame.kept())
    }

    /// The variables and code that a plain function sees which stands in the running function, or in one
    /// around that.
    fn made_in(&self, at: ItemRef, frame: &mut Frame) -> Option<Arc<Frame>> {
        if at.file != frame.file || frame.scope.is_empty() {
            return None;
        }
        let scope = item_scope(self.sources, at);
        let is_own = scope == frame.scope[..];
        let around = frame.of_scope(&scope).cloned();
        let found = function(self.sources, at).filter(|_| is_own || around.is_some())?;
        let made = if is_own { Some(frame.kept()) } else { around };
        made.filter(|_| self.is_plain(at.file, &scope, &found))
    }

    /// What a name means that no variable binds.
    pub(crate) fn meaning(&mut self, scope: Scope<'_>, name: &Name) -> Resolution {
        let scopes = self.meanings.entry(scope.file).or_default();
        if let Some(known) = scopes.get(scope.path).and_then(|names| names.get(name)) {
            return known.clone();
        }
        let found = resolve(self.sources, scope, name);
        scopes.entry(scope.path.to_vec()).or_default().insert(name.clone(), found.clone());
        found
    }

    /// The value of what a name or dotted path means.
    fn resolved(&mut self, found: Resolution) -> Value {
        match found {
            Resolution::Constant(at) | Resolution::Constexpr(at) => {
                let bound = item(self.sources, at).filter(|bound| bound.scope.is_empty());
                if let Some(Item { name, .. }) = &bound
                    && let Some(held) = self.held(Owner::Module(at.file), name)
                {
                    return held;
                }
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
                match bound {
                    Some(bound) => self.first_held(at.file, &bound.name, value),
                    None => value,
                }
            }
            Resolution::Triton(path) if &*path == "__version__" => versions::of_triton(),
            Resolution::Triton(path) => match language_dtype(&path) {
                Some(dtype) => Value::DType(dtype.into()),
                None => Value::Named(Resolution::Triton(path)),
            },
            Resolution::External(path) => match self.setting(&path) {
                Some(value) => value,
                None => external_value(path),
            },
            Resolution::Unknown | Resolution::Undefined => Value::Unknown,
            found => Value::Named(found),
        }
    }

    /// What a setting of PyTorch is: what the code has set it to, or what it is by default where nothing but imports
    /// comes before the code.
    fn setting(&self, path: &[Name]) -> Option<Value> {
        if let Some(set) = self.settings.get(path) {
            return Some(set.clone());
        }
        let is_it = |known: &[&str]| path.iter().map(|part| &**part).eq(known.iter().copied());
        let (_, default) = SETTINGS.iter().find(|(known, _)| is_it(known))?;
        Some(Value::Bool(self.entry.is_some().then_some(*default)))
    }

    /// Notes that code sets something outside of the project.
    pub(crate) fn set_setting(&mut self, owner: &[Name], name: &Name, value: &Value) {
        let path: Vec<Name> = owner.iter().chain([name]).cloned().collect();
        let value = if self.doubt.has_run() { value.clone() } else { Value::Unknown };
        self.settings.insert(path, value);
    }

    /// The value of a variable of a module that is one of the targets of a call, as `size` is in
    /// `size, kind = detect()`, itself or imported from the module where it is.
    fn element_of_call(&mut self, file: FileId, name: &str) -> Option<Value> {
        let at = element_of_call(self.sources, file, name)?;
        Some(self.resolved(Resolution::Constant(at)))
    }

    /// The value that a binding of a module gives.
    fn constant_at(&mut self, at: ItemRef) -> Value {
        let Some(Item { name, range, scope, kind, .. }) = item(self.sources, at) else {
            return Value::Unknown;
        };
        if self.depth >= MAX_DEPTH {
            return Value::Unknown;
        }
        self.depth += 1;
        let bound = constant(self.sources, at);
        let mut value_of = |body, map, value| {
            self.as_of(at.file, range, |host| host.module_expr(at.file, &scope, (body, map), value))
        };
        let value = match (bound, kind) {
            (Some(bound), _) => value_of(&bound.body, &bound.map, bound.value),
            (None, ItemKind::Element { body, map, call, index }) => {
                let all = value_of(&body, &map, call);
                let element = all.elements().and_then(|all| all.get(index).cloned());
                element.unwrap_or_else(|| all.any_element())
            }
            (None, _) => Value::Unknown,
        };
        self.depth -= 1;
        let value = match scope.is_empty() {
            true if self.is_early(at, &name) => value,
            true => self.as_imported(at.file, &name, value),
            false => value,
        };
        let value = match resolve_item(self.sources, at) {
            Resolution::Constexpr(_) => Value::Constexpr(Box::new(value.plain().clone())),
            _ => value,
        };
        let is_followed = scope.is_empty() && self.entry.is_some();
        match !is_followed && self.is_rebound(at.file, &scope, &name) {
            true => value.degraded(),
            false => value,
        }
    }

    /// Whether another binding of a module's variable is meant than the last one: it holds what it is bound to then,
    /// rather than what importing the module leaves.
    fn is_early(&self, at: ItemRef, name: &Name) -> bool {
        let Some(module) = self.sources.module(at.file) else { return false };
        let is_later = |index: u32| {
            let item = &module.items[index as usize];
            index > at.index && item.scope.is_empty() && item.occasion == Occasion::Always
        };
        module.items_named(name).any(is_later) && !statements::is_recomputed(&module, name)
    }

    /// `value.attr`, after what it is an attribute of.
    pub(crate) fn attribute(
        &mut self,
        frame: &mut Frame,
        value: ExprId,
        attr: &Name,
    ) -> (Value, Value) {
        let owner = self.expr(frame, value);
        let member = self.attribute_of(frame.file, &owner, attr);
        (owner, self.seen_from(frame, member))
    }

    /// A member of a class that stands in a function, with the variables that its methods see there.
    pub(crate) fn member_of_local(
        &mut self,
        class: ItemRef,
        around: Arc<Frame>,
        name: &str,
    ) -> Value {
        match self.member(&Resolution::Class(class), name) {
            Value::Callable(Callable::Apply { .. }) => {
                Value::Callable(Callable::Apply { class, around: Some(around) })
            }
            member => member,
        }
    }

    /// A member of a class with the variables that its methods see, where the class stands in the running
    /// function, or in one around that.
    pub(crate) fn seen_from(&mut self, frame: &mut Frame, member: Value) -> Value {
        let Value::Callable(Callable::Apply { class, around: None }) = member else {
            return member;
        };
        let scope = item_scope(self.sources, class);
        let around = match frame.scope[..] == scope[..] {
            _ if scope.is_empty() || class.file != frame.file => None,
            true => Some(frame.kept()),
            false => frame.of_scope(&scope).cloned(),
        };
        Value::Callable(Callable::Apply { class, around })
    }

    /// A member of a value, as code of a file sees it.
    pub(crate) fn attribute_of(&mut self, file: FileId, owner: &Value, attr: &Name) -> Value {
        match owner {
            Value::Named(Resolution::Function(at) | Resolution::Class(at))
            | Value::Callable(Callable::Undecorated(at) | Callable::Closure { at, .. })
                if &**attr == "__name__" =>
            {
                item(self.sources, *at).map_or(Value::Unknown, |item| Value::Str(item.name))
            }
            Value::Named(Resolution::Jit(_)) | Value::Callable(Callable::Tuned(_))
                if &**attr == "best_config" =>
            {
                self.best_config(owner)
            }
            Value::Member(member) => self.attribute_of_member(member, attr),
            Value::Callable(Callable::Local { class, around }) => {
                self.member_of_local(*class, around.clone(), attr)
            }
            Value::Named(base) => self.member(base, attr),
            Value::Object(object) if &**attr == "__dict__" && !self.has_own(*object, attr) => {
                self.attributes_of(*object).unwrap_or(Value::Unknown)
            }
            Value::Object(object) => match self.object_attribute(*object, attr) {
                Value::Unknown => match self.of_class(*object, attr) {
                    Value::Unknown => self.made_attribute(*object, attr),
                    value => value,
                },
                value => value,
            },
            Value::Tensor(tensor)
                if &**attr == "grad"
                    && tensor
                        .own_variable()
                        .is_some_and(|of| self.cleared_gradients.contains(&of)) =>
            {
                Value::None
            }
            // Before a backward pass there are no gradients but those that are set.
            Value::Tensor(tensor)
                if &**attr == "grad" && (!self.differentiated || self.tape.keeps(tensor)) =>
            {
                match tensor.own_variable().and_then(|variable| self.gradients.get(&variable)) {
                    Some(Value::Unknown) if self.tape.keeps(tensor) => {
                        tensor::attribute(owner, attr)
                    }
                    Some(set) => self.current(set.clone()),
                    None if self.doubt.is_whole => Value::Unknown,
                    None => tensor::attribute(owner, attr),
                }
            }
            Value::Tensor(_) if &**attr == "data" => {
                let mut data = tensor::attribute(owner, attr);
                if let Value::Tensor(data) = &mut data {
                    self.detach(data);
                }
                data
            }
            Value::Record { names, .. } => match tensor::attribute(owner, attr) {
                Value::Unknown => self.record_property(file, names, owner, attr),
                field => field,
            },
            Value::OneOf(values) if values.iter().all(|it| matches!(it, Value::Record { .. })) => {
                let found: Vec<Value> =
                    values.iter().map(|value| self.attribute_of(file, value, attr)).collect();
                self.any_of(found)
            }
            Value::Int(_) | Value::Float(_) if !self.uses_numpy => {
                misuse::of_number(owner, attr).unwrap_or_else(|| tensor::attribute(owner, attr))
            }
            value => self.unless_set(file, tensor::attribute(value, attr)),
        }
    }

    /// A member of a tensor; not known where the file gives such a member to anything.
    pub(crate) fn unless_set(&self, file: FileId, member: Value) -> Value {
        let Value::Raises(Misuse::NoMember { name, .. }) = &member else { return member };
        match self.is_member_set(file, name) {
            true => Value::Unknown,
            false => member,
        }
    }

    /// Whether a file may give anything a member of this name, be it by a string.
    fn is_member_set(&self, file: FileId, name: &str) -> bool {
        let is_text =
            |expr: &Expr| matches!(expr, Expr::Literal(Literal::Str(text)) if **text == *name);
        self.any_body(file, |body| assigns(body, name) || body.exprs.values().any(is_text))
    }

    /// Whether a file assigns a member of this name to anything.
    pub(crate) fn is_member_assigned(&self, file: FileId, name: &str) -> bool {
        let is_setter = |expr: &Expr| expr.is_name("setattr");
        self.any_body(file, |body| assigns(body, name) || body.exprs.values().any(is_setter))
    }

    fn any_body(&self, file: FileId, holds: impl Fn(&Body) -> bool) -> bool {
        let Some(module) = self.sources.module(file) else { return false };
        let in_functions = module.items.iter().any(|item| match &item.kind {
            ItemKind::Function(function) => holds(&function.body),
            _ => false,
        });
        in_functions || module.mains.iter().any(|main| holds(&main.body))
    }

    /// A member of something that has a name.
    pub(crate) fn member(&mut self, base: &Resolution, name: &str) -> Value {
        match (base, name) {
            (Resolution::Class(at), _) => match self.method_of_class(*at, name) {
                Some(method) => method,
                None if name == "apply" => {
                    Value::Callable(Callable::Apply { class: *at, around: None })
                }
                None if self.entry.is_none() && self.is_member_assigned(at.file, name) => {
                    Value::Unknown
                }
                None => self.class_variable(*at, name),
            },
            // A class method of one of Triton's own classes.
            (Resolution::Triton(class), _) => {
                Value::Named(Resolution::Triton(format!("{class}.{name}").into()))
            }
            _ => {
                let member = resolve_member(self.sources, base, name);
                match (&member, base) {
                    (Resolution::Unknown, Resolution::File(file)) => {
                        self.element_of_call(*file, name).unwrap_or(Value::Unknown)
                    }
                    _ => self.resolved(member),
                }
            }
        }
    }
}

/// Whether a scope of a module binds a name several times.
fn is_defined_again(module: &Module, scope: &[Name], name: &Name) -> bool {
    let mut same = module.items_named(name).filter(|at| module.items[*at as usize].scope == *scope);
    same.nth(1).is_some()
}

/// The item by which a module has a variable that is one of the targets of a call, and no other; imports of it by
/// its name are followed.
fn element_of_call(sources: &dyn Sources, file: FileId, name: &str) -> Option<ItemRef> {
    let (mut file, mut name) = (file, Name::from(name));
    for _ in 0..MAX_DEPTH {
        let module = sources.module(file)?;
        let is_outermost = |index: &u32| module.items[*index as usize].scope.is_empty();
        let mut bound = module.items_named(&name).filter(is_outermost);
        let (index, None) = (bound.next()?, bound.next()) else { return None };
        match &module.items[index as usize].kind {
            ItemKind::Element { .. } => return Some(ItemRef { file, index }),
            ItemKind::ImportFrom { level, path, member } => {
                file = sources.import(file, *level, path)?;
                name = member.clone();
            }
            _ => return None,
        }
    }
    None
}

/// Whether code assigns a member of this name to anything.
fn assigns(body: &Body, name: &str) -> bool {
    let is_it = |target: ExprId| matches!(&body.exprs[target], Expr::Attribute { attr, .. } if **attr == *name);
    body.stmts.values().flat_map(Stmt::targets).any(is_it)
}

fn math_constant(name: &str) -> Option<f64> {
    Some(match name {
        "e" => std::f64::consts::E,
        "inf" => f64::INFINITY,
        "nan" => f64::NAN,
        "pi" => std::f64::consts::PI,
        "tau" => std::f64::consts::TAU,
        _ => return None,
    })
}

/// Something outside of the project; what tells the kind of device is that of NVIDIA.
fn external_value(path: Vec<Name>) -> Value {
    if let Some(dtype) = dtype::torch_dtype(&path) {
        return Value::TorchDType(dtype.into());
    }
    let names: Vec<&str> = path.iter().map(|name| &**name).collect();
    if let ["math" | "numpy" | "torch", constant] = names.as_slice()
        && let Some(number) = math_constant(constant)
    {
        return Value::Float(Some(number));
    }
    if let ["torch", "__version__"] = names.as_slice() {
        return versions::of_torch();
    }
    let known = installation::named(&names).and_then(|fact| Value::of_fact(&fact, 0));
    known.unwrap_or(Value::Named(Resolution::External(path)))
}
