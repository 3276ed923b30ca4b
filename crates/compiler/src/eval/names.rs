//! Names: locals, globals of the module and of others, builtins.

use std::sync::Arc;

use super::dtype::{DType, Elem};
use super::value::{ClassRef, Const, FunctionKind, FunctionRef, Held, ModuleRef, Role, Value};
use super::{Evaluator, Frame, Locals, Lost, Mode, OriginKind, Source, python};
use crate::builtins::{
    self, IMPORTLIB, LANGUAGE, NUMPY, PYTHON, PYTHON_HOST, PYTHON_MATH, TORCH, TORCH_FUNCTIONAL,
    TORCH_NN, TORCH_VERSION, TRITON,
};
use crate::diagnostic::{Code, Diagnostic, TextEdit, suggest};
use crate::hir::{Body, Expr, ExprId, ItemKind, Name, PYTHON_NAMES, statements};
use crate::host::named_dtype;
use crate::project::{self, Decorator, ItemRef, Resolution, Scope};
use crate::source::{FileId, FileRange, TextRange};

/// Steps from a name to a call of PyTorch that its value is made of.
const MAX_STEPS: u32 = 8;

/// Methods of tensors that give tensors.
const KEEPING: &[&str] = &[
    "bfloat16",
    "clone",
    "contiguous",
    "cuda",
    "detach",
    "flatten",
    "float",
    "half",
    "int",
    "long",
    "reshape",
    "requires_grad_",
    "t",
    "to",
    "transpose",
    "view",
];

impl Evaluator<'_> {
    /// The value of a name.
    pub(super) fn name(&mut self, name: &Name, at: FileRange) -> Value {
        if let Some(local) = self.frame().locals.get(name) {
            let value = local.value.clone();
            return self.close(value);
        }
        if let Some(captured) = self.captured(name) {
            return self.check_global(name, captured, at);
        }
        let (file, scope) = (self.frame().file, self.frame().scope.clone());
        if let Some(global) = self.global(file, &scope, name) {
            let value = self.check_global(name, global, at);
            let value = self.close(value);
            return self.beside(value);
        }
        if let Some(builtin) = builtins::member(PYTHON, name) {
            return Value::Builtin(builtin);
        }
        if self.frame().mode == Mode::Python {
            return builtins::member(PYTHON_HOST, name).map_or(Value::Unknown, Value::Builtin);
        }
        self.undefined(name, at);
        Value::Unknown
    }

    /// Warns where a name stands for the index of a run-time loop, after the loop, whose `value` is
    /// used.
    pub(super) fn check_after_loop(&mut self, source: Source<'_>, id: ExprId, value: &Value) {
        let (Expr::Name(name), Value::Tensor(tensor)) = (&source.body.exprs[id], value) else {
            return;
        };
        let Some(origin) = self.origins.get(tensor.origin.0 as usize) else { return };
        let is_index = matches!(&origin.kind, OriginKind::AfterLoop(index) if index == name);
        if !is_index || self.speculative > 0 {
            return;
        }
        let diagnostic = Diagnostic::new(
            Code::AfterLoop,
            source.at(id),
            format!("`{name}` has no value after its loop: what is read here is undefined"),
        )
        .with_related(origin.at, "the variable of this loop")
        .with_note("Python keeps the last value, Triton does not: keep it in a variable that exists before the loop");
        self.emit_diagnostic(diagnostic);
    }

    /// Kernels may use only some globals: constexprs, functions, modules, types.
    fn check_global(&mut self, name: &Name, global: Global, at: FileRange) -> Value {
        let frame = self.frame();
        let value = global.value;
        if frame.mode == Mode::Python || frame.in_default {
            return value;
        }
        let code = match &value {
            Value::Const(
                Const::DType(_) | Const::BlockType(..) | Const::BlockPtrType(..) | Const::None,
            ) => return value,
            Value::Const(Const::Symbol(_)) => return value,
            Value::Const(_) | Value::Tuple(_) if !global.constexpr => Code::GlobalNotConstexpr,
            Value::Function(function) if function.kind.role == Role::Host => Code::HostFunction,
            Value::Class(class) if self.is_host_class(class) && !global.constexpr => {
                Code::GlobalNotConstexpr
            }
            Value::Unknown if global.item.is_some_and(|item| self.is_host_object(item)) => {
                Code::GlobalNotConstexpr
            }
            _ => return value,
        };
        let message = match code {
            Code::HostFunction => format!(
                "`{name}` is a Python function; kernels can call only functions decorated with `@triton.jit` or `@triton.constexpr_function`"
            ),
            _ if matches!(value, Value::Class(_)) => {
                format!("`{name}` is a Python class; kernels can use named tuples and aggregates")
            }
            _ => {
                format!("kernels can read the global `{name}` only if it is a `tl.constexpr` value")
            }
        };
        let mut diagnostic = Diagnostic::new(code, at, message);
        if let Some(item) = global.item {
            diagnostic = self.with_definition(diagnostic, name, item);
        }
        self.emit_diagnostic(diagnostic);
        Value::Unknown
    }

    /// Adds where a global is defined, and how to make it usable there.
    fn with_definition(&self, diagnostic: Diagnostic, name: &Name, at: ItemRef) -> Diagnostic {
        let Some(item) = project::item(self.project, at) else { return diagnostic };
        let place = |range: TextRange| FileRange { file: at.file, range };
        let definition = place(item.name_range);
        let diagnostic = diagnostic.with_related(definition, format!("`{name}` is defined here"));
        let insert = |offset: u32, text: &str| TextEdit {
            at: place(TextRange::empty(offset as usize)),
            text: text.to_owned(),
        };
        match &item.kind {
            ItemKind::Assign { map, value, .. }
                if !self.is_host_object(at) && self.is_bound_once(at.file, name) =>
            {
                let range = map.exprs[*value];
                let edits = vec![insert(range.start, "tl.constexpr("), insert(range.end, ")")];
                diagnostic.with_fix(format!("Make `{name}` a `tl.constexpr`"), edits)
            }
            ItemKind::Function(_) => {
                let edits = vec![insert(item.range.start, "@triton.jit\n")];
                diagnostic.with_fix(format!("Decorate `{name}` with `@triton.jit`"), edits)
            }
            _ => diagnostic,
        }
    }

    /// True where no other statement of a module may bind a name of it anew.
    fn is_bound_once(&self, file: FileId, name: &Name) -> bool {
        let Some(module) = self.project.module(file) else { return false };
        let bound = module.mains.iter().flat_map(|main| main.body.bound_names());
        bound.filter(|bound| *bound == name).count() <= 1
    }

    /// True for a class that is nothing to the language: neither a named tuple nor an aggregate.
    fn is_host_class(&self, class: &ClassRef) -> bool {
        let bare = class.class.bases.is_empty() && class.class.decorators.is_empty();
        bare || self.enumeration(class).is_some()
    }

    fn undefined(&mut self, name: &Name, at: FileRange) {
        let function = self.frame().function.as_ref();
        if function.is_some_and(|it| it.function.body.may_bind(name)) {
            return;
        }
        if let Some(lost) = self.frame().lost.get(name).copied() {
            let file = at.file;
            let diagnostic = Diagnostic::new(
                Code::UndefinedName,
                at,
                format!("`{name}` is not defined here: it is assigned only inside {}", lost.place),
            )
            .with_related(FileRange { file, range: lost.at }, "assigned here")
            .with_note(format!("assign `{name}` before, with the same type"));
            self.emit_diagnostic(diagnostic);
            return;
        }
        let mut diagnostic = if PYTHON_NAMES.contains(&&**name) {
            let hint = match &**name {
                "abs" => "; use `tl.abs`",
                "sum" => "; use `tl.sum`",
                "round" => "; use `libdevice.rint`",
                "pow" => "; use `libdevice.pow`",
                "bool" => "; annotate with `tl.int1`",
                _ => "",
            };
            Diagnostic::new(
                Code::UndefinedName,
                at,
                format!("Python's `{name}` is not available in kernels{hint}"),
            )
        } else {
            Diagnostic::new(Code::UndefinedName, at, format!("`{name}` is not defined"))
        };
        let candidates = self.visible_names();
        if let Some(best) = suggest(name, candidates.iter().map(|candidate| &**candidate)) {
            diagnostic = diagnostic.with_suggestion(best);
        }
        self.emit_diagnostic(diagnostic);
    }

    fn visible_names(&self) -> Vec<Name> {
        let frame = self.frame();
        let mut names: Vec<Name> = frame.locals.keys().cloned().collect();
        if let Some(module) = self.project.module(frame.file) {
            names.extend(
                module
                    .items
                    .iter()
                    .filter(|item| frame.scope.starts_with(&item.scope))
                    .map(|item| item.name.clone()),
            );
        }
        names.extend(builtins::members(PYTHON).iter().map(|builtin| Name::from(builtin.name)));
        names
    }

    /// A module-level name of `file`, seen from inside `scope`.
    pub(super) fn global(
        &mut self,
        file: FileId,
        scope: &Arc<[Name]>,
        name: &Name,
    ) -> Option<Global> {
        let key = (file, scope.clone(), name.clone());
        if let Some(global) = self.globals.get(&key) {
            return global.clone();
        }
        let scoped = Scope { file, path: scope };
        let resolution = project::resolve_under(self.project, self.version, scoped, name);
        let mut global = self.resolved(&resolution);
        if matches!(resolution, Resolution::Unknown | Resolution::Undefined) {
            global = self.bound_by_running(scoped, name).or(global);
        }
        let is_bound = |global: &Global| !matches!(global.value, Value::Const(Const::None));
        if !global.as_ref().is_some_and(is_bound) {
            let later = match self.home_of(&resolution, file) {
                Some((home, name)) => self.bound_later(Scope { file: home, path: &[] }, &name),
                None => self.bound_later(scoped, name),
            };
            global = later.or(global);
        }
        self.globals.insert(key, global.clone());
        global
    }

    /// The other file whose variable a name stands for, and what it is called there.
    fn home_of(&self, resolution: &Resolution, file: FileId) -> Option<(FileId, Name)> {
        let (Resolution::Constant(at) | Resolution::Constexpr(at)) = resolution else {
            return None;
        };
        let item = project::item(self.project, *at).filter(|_| at.file != file)?;
        Some((at.file, item.name))
    }

    /// True where no function around a scope has a variable of that name.
    pub(super) fn is_of_module(&self, scope: Scope<'_>, name: &Name) -> bool {
        let Some(module) = self.project.module(scope.file) else { return false };
        !module.items.iter().any(|item| {
            let around = item.scope.len() < scope.path.len() && scope.path.starts_with(&item.scope);
            match &item.kind {
                ItemKind::Function(function) if around => {
                    scope.path[item.scope.len()] == item.name
                        && (function.params.iter().any(|param| param.name == *name)
                            || function.body.bound_names().any(|bound| bound == name))
                }
                _ => false,
            }
        })
    }

    /// A variable of a module that no statement names as its target alone.
    fn bound_by_running(&mut self, scope: Scope<'_>, name: &Name) -> Option<Global> {
        let module = self.project.module(scope.file)?;
        let is_bound =
            module.mains.iter().any(|main| main.body.bound_names().any(|bound| bound == name));
        if !is_bound || !self.is_of_module(scope, name) {
            return None;
        }
        let (value, constexpr) = self.imported(scope.file, name).unwrap_or((Value::Unknown, true));
        Some(Global { value, item: None, constexpr })
    }

    /// What functions of its file give a variable of a module by `global`: what stands there before
    /// they run, `None` or nothing, no kernel is compiled with.
    fn bound_later(&mut self, scope: Scope<'_>, name: &Name) -> Option<Global> {
        let file = scope.file;
        let module = self.project.module(file)?;
        let binding = module.items.iter().filter(|item| match &item.kind {
            ItemKind::Function(function) => function.globals.contains(name),
            _ => false,
        });
        let mut binding = binding.peekable();
        if binding.peek().is_none() || !self.is_of_module(scope, name) {
            return None;
        }
        let found: Vec<Resolution> = binding
            .map(|item| {
                let path = item.body_scope();
                project::resolve_under(
                    self.project,
                    self.version,
                    Scope { file, path: &path },
                    name,
                )
            })
            .collect();
        let (first, rest) = found.split_first()?;
        let is_known = matches!(
            first,
            Resolution::Jit(_) | Resolution::Triton(_) | Resolution::TritonModule(_)
        );
        match is_known && rest.iter().all(|other| other == first) {
            true => self.resolved(first),
            false => Some(Global { value: Value::Unknown, item: None, constexpr: true }),
        }
    }

    /// What running its module leaves in the variable that an item binds; `None` where the item's
    /// own expression says it.
    fn computed(&mut self, at: ItemRef, constexpr: bool) -> Option<Global> {
        let module = self.project.module(at.file)?;
        let item = module.items.get(at.index as usize)?;
        if !item.scope.is_empty() {
            return None;
        }
        if let ItemKind::Assign { body, .. } = &item.kind
            && let Some(constant) = project::constant(self.project, at)
            && python::is_plain(body, constant.value)
            && module.items_named(&item.name).count() == 1
        {
            return None;
        }
        let global = |value, constexpr| Global { value, item: Some(at), constexpr };
        match self.imported(at.file, &item.name) {
            Some((value, constexpr)) => Some(global(value, constexpr)),
            None => statements::is_recomputed(&module, &item.name)
                .then(|| global(Value::Unknown, constexpr)),
        }
    }

    /// The value behind what a name means.
    pub(super) fn resolved(&mut self, resolution: &Resolution) -> Option<Global> {
        let plain = |value: Value| Some(Global { value, item: None, constexpr: true });
        match resolution {
            Resolution::Undefined => None,
            Resolution::Unknown => plain(Value::Unknown),
            Resolution::TritonModule(path) => {
                plain(Value::Module(ModuleRef::Known(Arc::from(triton_path(path)))))
            }
            Resolution::Triton(path) => {
                let (module, name) = path.rsplit_once('.').unwrap_or(("", path));
                let found = known_member(&triton_path(module), name);
                // Older Tritons had the device library in their math module, and code that
                // supports several versions imports from both.
                let moved = || {
                    known_member(builtins::LIBDEVICE, name).filter(|_| module == "language.math")
                };
                plain(found.or_else(moved).unwrap_or(Value::Unknown))
            }
            Resolution::External(path) if is_typing(path) => Some(Global {
                value: Value::Const(Const::Opaque(path.join(".").into())),
                item: None,
                constexpr: false,
            }),
            Resolution::External(path) => plain(external(path)),
            Resolution::File(file) => plain(Value::Module(ModuleRef::File(*file))),
            Resolution::Folder(file, path) => {
                plain(Value::Module(ModuleRef::Folder(*file, path.as_slice().into())))
            }
            Resolution::Jit(at) | Resolution::Function(at)
                if !self.exact && self.has_alternatives(*at) =>
            {
                plain(self.alternatives(*at))
            }
            Resolution::Function(at) if self.has_alternatives(*at) => {
                let jit = self.jit_alternative(*at);
                let role = if jit.is_some() { Role::Jit } else { Role::Host };
                self.function_global(jit.unwrap_or(*at), role)
            }
            Resolution::Jit(at) => {
                self.replaced(*at).or_else(|| self.function_global(*at, Role::Jit))
            }
            Resolution::ConstexprFunction(at) => {
                // Python calls what a constant holds, and nothing is asked of its code.
                let constant =
                    project::decorators(self.project, *at).contains(&Decorator::Constant);
                let role = if constant { Role::Wrapped } else { Role::Constexpr };
                self.function_global(*at, role)
            }
            Resolution::Function(at) => self.function_global(*at, Role::Host),
            Resolution::Class(at) => {
                let class = project::class(self.project, *at)?;
                let value = Value::Class(ClassRef { file: at.file, class });
                Some(Global { value, item: Some(*at), constexpr: false })
            }
            Resolution::Constexpr(at) => self.constant_global(*at, true),
            Resolution::Constant(at) => self.constant_global(*at, false),
        }
    }

    /// True when something else is bound to the same name in the same place, as under `if` and
    /// `else`: which one counts is known at run time only.
    pub(super) fn has_alternatives(&self, at: ItemRef) -> bool {
        self.others_bound(at).next().is_some()
    }

    /// True when something else is bound to the same name that is not made of the function itself, as
    /// `kernel = {16: tuned(kernel)}` is.
    pub(super) fn has_other_definitions(&self, at: ItemRef) -> bool {
        let is_made_of_it = |other: ItemRef| {
            let Some(item) = project::item(self.project, other) else { return false };
            match &item.kind {
                ItemKind::Assign { body, value, .. } => body.mentions(*value, &item.name),
                _ => false,
            }
        };
        self.others_bound(at).any(|other| !is_made_of_it(other))
    }

    /// What else is bound to the name of `at`, other than what is the same jit function.
    fn others_bound(&self, at: ItemRef) -> impl Iterator<Item = ItemRef> {
        let is_other = move |other: &ItemRef| {
            *other != at && project::resolve_item(self.project, *other) != Resolution::Jit(at)
        };
        self.bound_alike(at).into_iter().filter(is_other)
    }

    /// The jit function among what is bound to the name of `at`: where Triton is not installed,
    /// projects put a function in its place that raises.
    fn jit_alternative(&self, at: ItemRef) -> Option<ItemRef> {
        self.bound_alike(at)
            .into_iter()
            .rev()
            .find(|other| matches!(project::resolve_item(self.project, *other), Resolution::Jit(_)))
    }

    /// Everything that is bound to the name of `at`, in its scope.
    fn bound_alike(&self, at: ItemRef) -> Vec<ItemRef> {
        let Some(module) = self.project.module(at.file) else { return Vec::new() };
        let Some(item) = module.items.get(at.index as usize) else { return Vec::new() };
        module
            .items_named(&item.name)
            .filter(|&index| {
                module.items.get(index as usize).is_some_and(|other| other.scope == item.scope)
            })
            .map(|index| ItemRef { file: at.file, index })
            .filter(|other| !project::never_runs(self.project, Some(self.version), *other))
            .collect()
    }

    /// The values that the name of `at` may have. Host functions that stand in for jit functions
    /// are none.
    fn alternatives(&mut self, at: ItemRef) -> Value {
        let mut values = Vec::new();
        let has_jit = self.jit_alternative(at).is_some();
        for other in self.bound_alike(at) {
            values.push(match project::resolve_item(self.project, other) {
                Resolution::Function(_) if has_jit => continue,
                Resolution::Jit(function) => {
                    let found = function_ref(self.project, function, Role::Jit);
                    found.map_or(Value::Unknown, Value::Function)
                }
                Resolution::Triton(path) => {
                    let (module, name) = path.rsplit_once('.').unwrap_or(("", &path));
                    known_member(&triton_path(module), name).unwrap_or(Value::Unknown)
                }
                _ => Value::Unknown,
            });
        }
        match values.as_slice() {
            [one] => one.clone(),
            _ => Value::Either(values.into()),
        }
    }

    /// What functions of the project that decorate a jit function make of it: some put a function of a
    /// library in its place. `None` where it has no such decorators.
    fn replaced(&mut self, at: ItemRef) -> Option<Global> {
        let decorators = project::decorators(self.project, at);
        let jit = decorators.iter().position(|it| matches!(it, Decorator::Jit(_)))?;
        let function = function_ref(self.project, at, Role::Jit)?;
        let scope = Scope { file: at.file, path: &function.scope };
        let body = &function.function.body;
        let named = |decorator: &Decorator| match decorator {
            Decorator::Other(id) if matches!(body.exprs[*id], Expr::Name(_)) => {
                match project::resolve_expr(self.project, scope, body, *id) {
                    Resolution::Function(at) => function_ref(self.project, at, Role::Host),
                    _ => None,
                }
            }
            _ => None,
        };
        let above: Vec<FunctionRef> = decorators[..jit].iter().rev().filter_map(named).collect();
        if above.is_empty() {
            return None;
        }
        let mut value = Value::Function(function.clone());
        for decorator in &above {
            value = self.decorated(decorator, value).unwrap_or(Value::Unknown);
        }
        Some(Global { value, item: Some(at), constexpr: true })
    }

    fn function_global(&mut self, at: ItemRef, role: Role) -> Option<Global> {
        let value = Value::Function(function_ref(self.project, at, role)?);
        Some(Global { value, item: Some(at), constexpr: true })
    }

    fn constant_global(&mut self, at: ItemRef, constexpr: bool) -> Option<Global> {
        if self.resolving.contains(&at) || self.resolving.len() > 32 {
            return Some(Global { value: Value::Unknown, item: Some(at), constexpr });
        }
        if let Some(global) = self.computed(at, constexpr) {
            return Some(global);
        }
        let constant = project::constant(self.project, at)?;
        let scope: Arc<[Name]> = project::item_scope(self.project, at).into();
        self.resolving.push(at);
        let source = Source { body: &constant.body, map: &constant.map, file: at.file };
        let value = self.module_value(source, &scope, constant.value);
        let value = if constexpr { value.held(Held::Python) } else { value };
        self.resolving.pop();
        Some(Global { value, item: Some(at), constexpr })
    }

    /// True for a name that a module binds to a dictionary, or to what PyTorch makes: a tensor, or
    /// something else that is the host's.
    fn is_host_object(&self, at: ItemRef) -> bool {
        let Some(constant) = project::constant(self.project, at) else { return false };
        matches!(constant.body.exprs[constant.value], Expr::Dict(_))
            || self.is_made_by_torch(at, MAX_STEPS)
    }

    /// Whether a module binds a name to what PyTorch makes, or makes of that by operators, positions and
    /// methods that give tensors.
    fn is_made_by_torch(&self, at: ItemRef, steps: u32) -> bool {
        let Some(constant) = project::constant(self.project, at) else { return false };
        let Some(item) = project::item(self.project, at) else { return false };
        let scope = Scope { file: at.file, path: &item.scope };
        self.makes_tensor(scope, &constant.body, constant.value, steps)
    }

    fn makes_tensor(&self, scope: Scope<'_>, body: &Body, id: ExprId, steps: u32) -> bool {
        let Some(steps) = steps.checked_sub(1) else { return false };
        let is_made = |id: ExprId| self.makes_tensor(scope, body, id, steps);
        let meaning = |id: ExprId| project::resolve_expr(self.project, scope, body, id);
        match &body.exprs[id] {
            Expr::Name(_) => match meaning(id) {
                Resolution::Constant(at) => self.is_made_by_torch(at, steps),
                _ => false,
            },
            Expr::Binary { lhs, rhs, .. } => is_made(*lhs) || is_made(*rhs),
            Expr::Subscript { value, .. } => is_made(*value),
            Expr::Call { callee, .. } => match (&body.exprs[*callee], meaning(*callee)) {
                (_, Resolution::External(path)) => {
                    matches!(path.as_slice(), [torch, _] if &**torch == TORCH)
                }
                (Expr::Attribute { value, attr }, _) => {
                    KEEPING.contains(&&**attr) && is_made(*value)
                }
                _ => false,
            },
            _ => false,
        }
    }

    /// Evaluates a module-level expression, quietly.
    fn module_value(&mut self, source: Source<'_>, scope: &Arc<[Name]>, expr: ExprId) -> Value {
        let frame = Frame::new(Mode::Python, source.file, None, scope.clone(), Locals::default());
        self.frames.push(frame);
        let value = self.quietly(|this| this.kept_expr(source, expr));
        self.frames.pop();
        match value {
            Value::Tensor(_) => Value::Unknown,
            value => value,
        }
    }
}

/// A module-level name.
#[derive(Debug, Clone)]
pub(super) struct Global {
    /// Its value.
    pub value: Value,
    /// The item that binds it, if it is one of a file.
    pub item: Option<ItemRef>,
    /// False for plain Python values, which kernels may not read.
    pub constexpr: bool,
}

/// The dotted path of a module of the `triton` package.
fn triton_path(path: &str) -> String {
    if path.is_empty() { TRITON.to_owned() } else { format!("{TRITON}.{path}") }
}

/// True for a member of Python's module of annotations, which kernels may not name.
fn is_typing(path: &[Name]) -> bool {
    matches!(path, [module, _] if &**module == "typing")
}

/// A module or member outside of what can be read: anything, unless it is of Python's `math` or
/// one of PyTorch's types.
fn external(path: &[Name]) -> Value {
    let is_math = path.first().is_some_and(|first| &**first == PYTHON_MATH);
    match path {
        [module] if &**module == IMPORTLIB => Value::Module(ModuleRef::Known(Arc::from(IMPORTLIB))),
        [module, .., name] if &**module == IMPORTLIB => {
            let module = path[..path.len() - 1].join(".");
            known_member(&module, name).unwrap_or(Value::Unknown)
        }
        [_] if is_math => Value::Module(ModuleRef::Known(Arc::from(PYTHON_MATH))),
        [_, name] if is_math => known_member(PYTHON_MATH, name).unwrap_or(Value::Unknown),
        [module] if [TORCH, NUMPY].contains(&&**module) => {
            Value::Module(ModuleRef::Known(Arc::from(&**module)))
        }
        [torch, nn, functional]
            if [&**torch, &**nn, &**functional].join(".") == TORCH_FUNCTIONAL =>
        {
            Value::Module(ModuleRef::Known(Arc::from(TORCH_FUNCTIONAL)))
        }
        [module, name] if [TORCH, NUMPY].contains(&&**module) => {
            known_member(module, name).unwrap_or(Value::Unknown)
        }
        [module, version, name] if &**module == TORCH && &**version == "version" => {
            known_member(TORCH_VERSION, name).unwrap_or(Value::Unknown)
        }
        _ => Value::Unknown,
    }
}

/// The function behind an item, with what its decorators make of it.
pub(super) fn function_ref(
    sources: &dyn project::Sources,
    at: ItemRef,
    role: Role,
) -> Option<FunctionRef> {
    let item = project::item(sources, at)?;
    let function = project::function(sources, at)?;
    let decorators = project::decorators(sources, at);
    let is_foreign =
        |decorator: &Decorator| matches!(decorator, Decorator::Static | Decorator::Other(_));
    let foreign = decorators.iter().any(is_foreign);
    let role = match role {
        Role::Host if decorators.contains(&Decorator::Builtin) => Role::Builtin,
        Role::Host if foreign => Role::Unknown,
        role => role,
    };
    let noinline = decorators.iter().any(|decorator| match decorator {
        Decorator::Jit(id) => is_noinline(&function.body, *id),
        _ => false,
    });
    let must_use = decorators.contains(&Decorator::MustUseResult);
    Some(FunctionRef {
        file: at.file,
        function,
        kind: FunctionKind { role, noinline, must_use },
        scope: item.body_scope().into(),
        closure: Arc::from([]),
    })
}

/// True for `triton.jit(..., noinline=True)`.
fn is_noinline(body: &Body, decorator: ExprId) -> bool {
    let Expr::Call { args, .. } = &body.exprs[decorator] else { return false };
    args.iter().any(|arg| {
        matches!(&arg.kind, crate::hir::ArgKind::Keyword(name) if &**name == "noinline")
            && body.exprs[arg.value] == Expr::Literal(crate::hir::Literal::Bool(true))
    })
}

/// A member of a module that the table of builtins knows.
pub(super) fn known_member(module: &str, name: &str) -> Option<Value> {
    if let Some(value) = torch_member(module, name) {
        return Some(value);
    }
    if builtins::canonical_module(module) == LANGUAGE {
        if let Some(dtype) = DType::from_member(name) {
            return Some(Value::Const(Const::DType(Elem::Num(dtype))));
        }
        match name {
            "void" => return Some(Value::Const(Const::DType(Elem::Void))),
            "pi32_t" => {
                let pointer = Elem::pointer_to(Some(DType::Int32));
                return Some(Value::Const(Const::DType(pointer)));
            }
            "TRITON_MAX_TENSOR_NUMEL" => return Some(Value::int(1 << 20)),
            "CONSTEXPR_0" => return Some(Value::int(0)),
            _ => {}
        }
    }
    if let Some(builtin) = builtins::member(module, name) {
        return builtins::defines(module, builtin).then_some(Value::Builtin(builtin));
    }
    if let Some(value) = float_member(module, name) {
        return Some(Value::Const(Const::Float(value)));
    }
    let path = builtins::submodules(module).iter().find(|(sub, _)| *sub == name)?.1;
    Some(Value::Module(ModuleRef::Known(Arc::from(path))))
}

/// A number that a module has: those of Python's `math` are in PyTorch and NumPy as well.
fn float_member(module: &str, name: &str) -> Option<f64> {
    if ![PYTHON_MATH, TORCH, NUMPY].contains(&module) {
        return None;
    }
    Some(match name {
        "pi" => std::f64::consts::PI,
        "e" => std::f64::consts::E,
        "inf" => f64::INFINITY,
        "nan" => f64::NAN,
        "tau" if module == PYTHON_MATH => std::f64::consts::TAU,
        _ => return None,
    })
}

/// What PyTorch has for constants of modules: types, and the name of what it was built for.
fn torch_member(module: &str, name: &str) -> Option<Value> {
    match (module, name) {
        (TORCH, "version") => Some(Value::Module(ModuleRef::Known(Arc::from(TORCH_VERSION)))),
        (TORCH, "nn") => Some(Value::Module(ModuleRef::Known(Arc::from(TORCH_NN)))),
        (TORCH_NN, "functional") => {
            Some(Value::Module(ModuleRef::Known(Arc::from(TORCH_FUNCTIONAL))))
        }
        // Kernels are compiled for CUDA.
        (TORCH_VERSION, "hip") => Some(Value::NONE),
        (TORCH, name) => {
            let dtype = DType::from_signature(named_dtype(name)?)?;
            Some(Value::Const(Const::TorchDType(dtype)))
        }
        _ => None,
    }
}

impl Frame {
    /// A frame without returns.
    pub(super) fn new(
        mode: Mode,
        file: FileId,
        function: Option<FunctionRef>,
        scope: Arc<[Name]>,
        locals: Locals,
    ) -> Frame {
        Frame {
            mode,
            file,
            function,
            scope,
            locals,
            declared: rustc_hash::FxHashSet::default(),
            constexprs: rustc_hash::FxHashSet::default(),
            bare: rustc_hash::FxHashSet::default(),
            counters: rustc_hash::FxHashSet::default(),
            lost: rustc_hash::FxHashMap::default(),
            returns: Vec::new(),
            loops: 0,
            call: FileRange::default(),
            inlined_at: None,
            in_default: false,
            remainder: super::Remainder::Live,
        }
    }

    /// Forgets a name, remembering why.
    pub(super) fn lose(&mut self, name: Name, lost: Lost) {
        self.locals.shift_remove(&name);
        self.lost.insert(name, lost);
    }
}
