//! Following a name to what it means.

use rustc_hash::FxHashMap;

use super::conditions::Place;
use super::installation::Fact;
use super::{
    ItemRef, Resolution, Scope, Sources, decorators, function, item, item_scope, named_tuple,
    paths, triton,
};
use crate::builtins::{self, PYTHON, PYTHON_HOST, TritonVersion, torch};
use crate::hir::{
    Arg, ArgKind, Body, Expr, ExprId, Guard, Item, ItemKind, Literal, Module, Name, Occasion,
    PYTHON_NAMES, names_by_star,
};
use crate::source::FileId;

/// Imports and aliases are followed this far, which also ends cycles.
const MAX_STEPS: u32 = 24;

/// Bindings looked at for one answer, which bounds the cost of cycles of star imports.
pub(super) const MAX_WORK: u32 = 1000;

/// What `name` means at `scope`.
pub fn resolve(sources: &dyn Sources, scope: Scope<'_>, name: &str) -> Resolution {
    Resolver::new(sources).name(scope, name, None)
}

/// What `name` meant at `scope` before the binding at `before`.
pub(crate) fn resolve_before(
    sources: &dyn Sources,
    scope: Scope<'_>,
    name: &str,
    before: u32,
) -> Resolution {
    Resolver::new(sources).name(scope, name, Some(before))
}

/// As [`resolve`], where this version of Triton is installed: imports of what it does not have
/// fail.
pub(crate) fn resolve_under(
    sources: &dyn Sources,
    version: TritonVersion,
    scope: Scope<'_>,
    name: &str,
) -> Resolution {
    Resolver { version: Some(version), ..Resolver::new(sources) }.name(scope, name, None)
}

/// What the expression `id` of `body` means at `scope`, when it is a name or dotted path; other
/// expressions are [`Resolution::Unknown`]. Names are those of `scope`: a caller with local
/// variables looks there first.
pub fn resolve_expr(
    sources: &dyn Sources,
    scope: Scope<'_>,
    body: &Body,
    id: ExprId,
) -> Resolution {
    Resolver::new(sources).expr(scope, body, id, None)
}

/// As [`resolve_expr`], before the binding at `before`.
pub(crate) fn resolve_expr_before(
    sources: &dyn Sources,
    scope: Scope<'_>,
    body: &Body,
    id: ExprId,
    before: u32,
) -> Resolution {
    Resolver::new(sources).expr(scope, body, id, Some(before))
}

/// What gives a kernel as it is, so that PyTorch's compiler sees its launch.
pub(crate) const GIVES_KERNEL: &[&[&str]] = &[
    &["torch", "library", "wrap_triton"],
    &["torch", "_library", "wrap_triton"],
    &["torch", "_library", "triton", "wrap_triton"],
];

/// Whether something is what stands at this path outside of the project.
pub(crate) fn is_external(found: &Resolution, path: &[&str]) -> bool {
    matches!(found, Resolution::External(found) if found.iter().map(|name| &**name).eq(path.iter().copied()))
}

/// What the binding `at` means.
pub fn resolve_item(sources: &dyn Sources, at: ItemRef) -> Resolution {
    Resolver::new(sources).item(at)
}

/// True when the conditions around the item show that its statement never runs, where this version
/// of Triton is installed, or with any.
pub(crate) fn never_runs(
    sources: &dyn Sources,
    version: Option<TritonVersion>,
    at: ItemRef,
) -> bool {
    let Some(item) = item(sources, at).filter(|item| item.guard.is_some()) else { return false };
    let mut resolver = Resolver { version, ..Resolver::new(sources) };
    resolver.runs(at.file, at.index, &item) == Some(false)
}

/// What an expression of the module `file` gives where this version of Triton is installed, as far
/// as conditions of modules would know it.
pub(crate) fn fact(
    sources: &dyn Sources,
    version: TritonVersion,
    file: FileId,
    body: &Body,
    id: ExprId,
) -> Option<Fact> {
    let mut resolver = Resolver { version: Some(version), ..Resolver::new(sources) };
    resolver.fact(&Place::of_module(file, u32::MAX, body), id)
}

/// What `base.name` means.
pub fn resolve_member(sources: &dyn Sources, base: &Resolution, name: &str) -> Resolution {
    Resolver::new(sources).member(base, name)
}

/// As [`resolve_member`], where this version of Triton is installed.
pub(crate) fn resolve_member_under(
    sources: &dyn Sources,
    version: TritonVersion,
    base: &Resolution,
    name: &str,
) -> Resolution {
    Resolver { version: Some(version), ..Resolver::new(sources) }.member(base, name)
}

/// How much a binding tells, when several bind one name. What stands in for Triton where it, or
/// what is sought in it, is missing tells less than Triton itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    Nothing,
    Unknown,
    External,
    Placeholder,
    Followed,
    Triton,
}

/// Follows names, with a bound on how far.
pub(super) struct Resolver<'a> {
    pub(super) sources: &'a dyn Sources,
    /// The installed version, where one is settled.
    pub(super) version: Option<TritonVersion>,
    /// Answers about conditions of modules, under each version.
    pub(super) conditions: FxHashMap<(*const Guard, TritonVersion), Option<bool>>,
    steps: u32,
    pub(super) work: u32,
}

impl<'a> Resolver<'a> {
    fn new(sources: &'a dyn Sources) -> Resolver<'a> {
        Resolver { sources, version: None, conditions: FxHashMap::default(), steps: 0, work: 0 }
    }

    /// Runs `follow` one step deeper, or gives up.
    pub(super) fn step(&mut self, follow: impl FnOnce(&mut Self) -> Resolution) -> Resolution {
        if self.steps >= MAX_STEPS || self.work >= MAX_WORK {
            return Resolution::Unknown;
        }
        self.steps += 1;
        self.work += 1;
        let resolution = follow(self);
        self.steps -= 1;
        resolution
    }

    /// Looks `name` up from the innermost scope outwards; only items before `before` count.
    fn name(&mut self, scope: Scope<'_>, name: &str, before: Option<u32>) -> Resolution {
        let Some(module) = self.sources.module(scope.file) else { return Resolution::Undefined };
        for depth in (0..=scope.path.len()).rev() {
            let path = &scope.path[..depth];
            if depth < scope.path.len() && is_class(&module, path) {
                continue;
            }
            if let Some(found) = self.binding(scope.file, &module, path, name, before) {
                return found;
            }
            if is_parameter(&module, path, name) {
                return Resolution::Unknown;
            }
        }
        self.starred(scope.file, &module, name).unwrap_or_else(|| self.implied(scope.file, name))
    }

    /// The best binding of `name` directly in the scope `path`: the last one that certainly runs, or
    /// one of those in branches after it that may run. Of several branches that tell the same, the
    /// last one counts, and one that runs where something failed only when there is no other.
    fn binding(
        &mut self,
        file: FileId,
        module: &Module,
        path: &[Name],
        name: &str,
        before: Option<u32>,
    ) -> Option<Resolution> {
        let mut best: Option<((Weight, bool), Resolution)> = None;
        for index in module.items_named(name).rev() {
            if before.is_some_and(|before| index >= before) {
                continue;
            }
            let item = &module.items[index as usize];
            if item.scope != path {
                continue;
            }
            let occasion = match self.runs(file, index, item) {
                Some(false) => continue,
                None if item.occasion == Occasion::Always => Occasion::Branch,
                _ => item.occasion,
            };
            let at = ItemRef { file, index };
            let found = self.step(|resolver| resolver.item(at));
            let usual = occasion != Occasion::Fallback;
            let weight = match self.weight(&found) {
                // Who runs code that needs what failed, or is not there, has it: `None` in its place
                // tells nothing.
                Weight::Placeholder if occasion != Occasion::Always => Weight::Nothing,
                weight => weight,
            };
            let rank = (weight, usual);
            if best.as_ref().is_none_or(|(known, _)| *known < rank) {
                best = Some((rank, found));
            }
            if occasion == Occasion::Always && weight >= Weight::Followed {
                break;
            }
        }
        best.map(|(_, found)| found)
    }

    fn weight(&self, found: &Resolution) -> Weight {
        match found {
            Resolution::Unknown | Resolution::Undefined => Weight::Unknown,
            // PyTorch is there wherever kernels are.
            Resolution::External(path) if torch::has(path) => Weight::Followed,
            Resolution::External(_) => Weight::External,
            Resolution::Constant(at) if self.is_none(*at) => Weight::Placeholder,
            Resolution::TritonModule(_) => Weight::Triton,
            Resolution::Triton(path) => match triton::has(path, self.version) {
                Some(true) => Weight::Triton,
                Some(false) => Weight::Unknown,
                None => Weight::Followed,
            },
            _ => Weight::Followed,
        }
    }

    fn is_none(&self, at: ItemRef) -> bool {
        item(self.sources, at).is_some_and(|item| item.binds_none())
    }

    /// Bindings that star imports bring in, the last one first.
    fn starred(&mut self, file: FileId, module: &Module, name: &str) -> Option<Resolution> {
        let mut fallback = None;
        for index in module.items_named("*").rev() {
            let ItemKind::ImportFrom { level, path, .. } = &module.items[index as usize].kind
            else {
                continue;
            };
            match self.module_path(file, *level, path) {
                Resolution::File(target) if !name.starts_with('_') => {
                    let member = Resolution::File(target);
                    match self.step(|resolver| resolver.member(&member, name)) {
                        Resolution::Undefined => {}
                        found => return Some(found),
                    }
                }
                Resolution::TritonModule(path) => match triton::member(&path, name) {
                    Resolution::Triton(path) if triton::has(&path, None).is_some() => {
                        return Some(Resolution::Triton(path));
                    }
                    found if !is_python(name) && !PYTHON_NAMES.contains(&name) => {
                        fallback = Some(found);
                    }
                    _ => {}
                },
                // What cannot be read is not taken to shadow what Python defines everywhere.
                Resolution::External(path) if !is_python(name) && may_star(&path, name) => {
                    fallback.get_or_insert(Resolution::Unknown);
                }
                _ => {}
            }
        }
        fallback
    }

    /// Names in scope without imports, in `.tile` files.
    fn implied(&self, file: FileId, name: &str) -> Resolution {
        let path: &[&str] = match name {
            "tl" => &["language"],
            "triton" => &[],
            _ => return Resolution::Undefined,
        };
        if !paths::is_tile(&self.sources.path(file)) {
            return Resolution::Undefined;
        }
        let path: Vec<Name> = path.iter().map(|name| Name::from(*name)).collect();
        triton::resolve(&path)
    }

    fn item(&mut self, at: ItemRef) -> Resolution {
        let Some(module) = self.sources.module(at.file) else { return Resolution::Undefined };
        let Some(item) = module.items.get(at.index as usize) else { return Resolution::Undefined };
        match &item.kind {
            ItemKind::Import { path, within } => self.imported(at.file, path, within),
            ItemKind::ImportFrom { level, path, member } => {
                self.import_from(at.file, *level, path, member)
            }
            ItemKind::Function(function) => {
                let scope = Scope { file: at.file, path: &item.scope };
                let body = &function.body;
                let mut marked = Resolution::Function(at);
                for (place, decorator) in function.decorators.iter().enumerate() {
                    let decorator = self.step(|resolver| {
                        resolver.decorator(scope, body, *decorator, Some(at.index))
                    });
                    match self.effect(&decorator) {
                        Some(decorators::Effect::Jit) => {
                            let before = &function.decorators[place + 1..];
                            return match before.iter().all(|it| self.keeps(scope, body, *it, at)) {
                                true => Resolution::Jit(at),
                                false => Resolution::Unknown,
                            };
                        }
                        Some(decorators::Effect::ConstexprFunction) => {
                            marked = Resolution::ConstexprFunction(at);
                        }
                        None => {}
                    }
                }
                marked
            }
            ItemKind::Class(_) => Resolution::Class(at),
            ItemKind::Assign { body, value, .. } => self.assigned(at, item, body, *value),
            ItemKind::Element { body, call, index, .. } => {
                let scope = Scope { file: at.file, path: &item.scope };
                self.module_given(scope, body, (*call, Some(*index)), Some(at.index))
            }
            ItemKind::Unknown => Resolution::Unknown,
        }
    }

    /// Whether a decorator gives the function that it gets: one of the project may give another.
    fn keeps(&mut self, scope: Scope<'_>, body: &Body, decorator: ExprId, at: ItemRef) -> bool {
        let found =
            self.step(|resolver| resolver.decorator(scope, body, decorator, Some(at.index)));
        !matches!(found, Resolution::Function(_))
    }

    /// An assignment is followed when its value is an alias or wraps a function.
    fn assigned(&mut self, at: ItemRef, item: &Item, body: &Body, value: ExprId) -> Resolution {
        let scope = Scope { file: at.file, path: &item.scope };
        let before = Some(at.index);
        match &body.exprs[value] {
            Expr::Name(_) | Expr::Attribute { .. } => {
                match self.step(|resolver| resolver.expr(scope, body, value, before)) {
                    Resolution::Unknown | Resolution::Undefined => Resolution::Constant(at),
                    found => found,
                }
            }
            Expr::Call { callee, args } => {
                let wrapped =
                    self.step(|resolver| resolver.wrapped(scope, body, *callee, args, before));
                match wrapped {
                    Resolution::Constexpr(_) => Resolution::Constexpr(at),
                    Resolution::Class(_) => Resolution::Class(at),
                    Resolution::Unknown => {
                        match self.handed_decorator(scope, body, value, before) {
                            Some(path) => Resolution::Triton(path),
                            None => match self.module_given(scope, body, (value, None), before) {
                                Resolution::Unknown => Resolution::Constant(at),
                                module => module,
                            },
                        }
                    }
                    found => found,
                }
            }
            // Which branch is taken may be known at run time only; where one is a constexpr, the
            // other stands in where Triton is not installed.
            Expr::IfElse { on_true, on_false, .. } => {
                let branches = [*on_true, *on_false];
                let constexpr = branches.into_iter().any(|branch| {
                    let of_branch = self.step(|resolver| resolver.assigned(at, item, body, branch));
                    matches!(of_branch, Resolution::Constexpr(_))
                });
                if constexpr { Resolution::Constexpr(at) } else { Resolution::Constant(at) }
            }
            // What is computed with a constexpr is one.
            Expr::Binary { lhs, rhs, .. } => {
                let constexpr = [*lhs, *rhs].into_iter().any(|operand| {
                    let found = self.step(|resolver| resolver.assigned(at, item, body, operand));
                    matches!(found, Resolution::Constexpr(_))
                });
                if constexpr { Resolution::Constexpr(at) } else { Resolution::Constant(at) }
            }
            _ => Resolution::Constant(at),
        }
    }

    /// `triton.jit(f)`, `triton.autotune(...)(f)` and the like; `tl.constexpr(value)`;
    /// `namedtuple(...)`; `pytest.importorskip("triton")`.
    fn wrapped(
        &mut self,
        scope: Scope<'_>,
        body: &Body,
        callee: ExprId,
        args: &[Arg],
        before: Option<u32>,
    ) -> Resolution {
        let wrapper = self.expr(scope, body, decorators::callee(body, callee), before);
        if wrapper == Resolution::Triton("language.constexpr".into()) {
            let at = ItemRef { file: scope.file, index: 0 };
            return Resolution::Constexpr(at);
        }
        if named_tuple::makes(&wrapper) {
            return Resolution::Class(ItemRef { file: scope.file, index: 0 });
        }
        let [Arg { value, .. }, ..] = args else { return Resolution::Unknown };
        if let Expr::Literal(Literal::Str(name)) = &body.exprs[*value]
            && imports_by_text(&wrapper)
        {
            let path: Vec<Name> = name.split('.').map(Name::from).collect();
            return self.module_path(scope.file, 0, &path);
        }
        if is_partial(&wrapper) {
            return match self.expr(scope, body, *value, before) {
                Resolution::Triton(path) if decorators::is_decorator(&path) => {
                    Resolution::Triton(path)
                }
                _ => Resolution::Unknown,
            };
        }
        let makes_jit = self.effect(&wrapper) == Some(decorators::Effect::Jit);
        let wrapped = match &body.exprs[*value] {
            Expr::Name(_) | Expr::Attribute { .. } => self.expr(scope, body, *value, before),
            Expr::Call { callee, args } => self.wrapped(scope, body, *callee, args, before),
            _ => return Resolution::Unknown,
        };
        match wrapped {
            Resolution::Function(inner) if makes_jit => Resolution::Jit(inner),
            Resolution::Jit(inner) => Resolution::Jit(inner),
            _ => Resolution::Unknown,
        }
    }

    /// The module outside of the project that a call of a function gives, or that is an element of what it
    /// gives: who imports Triton in a function hands it on so. Unknown for all else.
    fn module_given(
        &mut self,
        scope: Scope<'_>,
        body: &Body,
        (call, index): (ExprId, Option<usize>),
        before: Option<u32>,
    ) -> Resolution {
        let Expr::Call { callee, .. } = &body.exprs[call] else { return Resolution::Unknown };
        let called = self.step(|resolver| resolver.expr(scope, body, *callee, before));
        let Resolution::Function(at) = called else { return Resolution::Unknown };
        let (Some(item), Some(function)) = (item(self.sources, at), function(self.sources, at))
        else {
            return Resolution::Unknown;
        };
        let [value] = decorators::returned(&function.body).collect::<Vec<_>>()[..] else {
            return Resolution::Unknown;
        };
        let given = match (&function.body.exprs[value], index) {
            (Expr::Tuple(items), Some(index)) => items.get(index).copied(),
            (_, index) => index.is_none().then_some(value),
        };
        let Some(given) = given else { return Resolution::Unknown };
        let path = item.body_scope();
        let scope = Scope { file: at.file, path: &path };
        match self.step(|resolver| resolver.expr(scope, &function.body, given, None)) {
            module @ Resolution::TritonModule(_) => module,
            module @ Resolution::External(_) if function.body.exprs[given].as_name().is_some() => {
                module
            }
            _ => Resolution::Unknown,
        }
    }

    /// The decorator of Triton's that a function of the project gets alone and makes a decorator of, as it
    /// is or from a function: `jit = optional(lambda: triton.jit)`.
    fn handed_decorator(
        &mut self,
        scope: Scope<'_>,
        body: &Body,
        call: ExprId,
        before: Option<u32>,
    ) -> Option<Name> {
        let Expr::Call { callee, args } = &body.exprs[call] else { return None };
        let [Arg { value, kind: ArgKind::Positional }] = args[..] else { return None };
        let handed = match &body.exprs[value] {
            Expr::Lambda { params, body } if params.is_empty() => *body,
            _ => value,
        };
        let path = match self.step(|resolver| resolver.expr(scope, body, handed, before)) {
            Resolution::Triton(path) if decorators::is_decorator(&path) => path,
            _ => return None,
        };
        let maker = self.step(|resolver| resolver.expr(scope, body, *callee, before));
        matches!(maker, Resolution::Function(_)).then_some(path)
    }

    /// What a decorator calls, or what `functools.partial` keeps options for.
    fn decorator(
        &mut self,
        scope: Scope<'_>,
        body: &Body,
        decorator: ExprId,
        before: Option<u32>,
    ) -> Resolution {
        let found = self.expr(scope, body, decorators::callee(body, decorator), before);
        match &body.exprs[decorator] {
            Expr::Call { args, .. } if is_partial(&found) => match args.first() {
                Some(Arg { value, .. }) => self.expr(scope, body, *value, before),
                None => Resolution::Unknown,
            },
            _ => found,
        }
    }

    /// What a decorator that means `resolution` makes of a function. Functions of the project that
    /// return `triton.jit(...)`, or a function that does, count as it.
    fn effect(&mut self, resolution: &Resolution) -> Option<decorators::Effect> {
        match resolution {
            Resolution::Triton(path) => decorators::effect(path),
            Resolution::Function(at) => self.returns_jit(*at).then_some(decorators::Effect::Jit),
            _ => None,
        }
    }

    /// True when a `return` of the function `at` calls `triton.jit`, or gives a function inside of
    /// which one does. What is called may come back to this function by way of a module's variable,
    /// so it counts as a step.
    fn returns_jit(&mut self, at: ItemRef) -> bool {
        let (Some(item), Some(function)) = (item(self.sources, at), function(self.sources, at))
        else {
            return false;
        };
        let path = item.body_scope();
        let scope = Scope { file: at.file, path: &path };
        let calls = decorators::returned_callees(&function).into_iter().any(|callee| {
            let called = self.step(|resolver| resolver.expr(scope, &function.body, callee, None));
            called == Resolution::Triton("jit".into())
        });
        calls
            || decorators::returned_names(&function).into_iter().any(|name| {
                match self.step(|resolver| resolver.expr(scope, &function.body, name, None)) {
                    Resolution::Function(inner) if inner != at => {
                        inner.file == at.file
                            && item_scope(self.sources, inner) == path
                            && self.returns_jit(inner)
                    }
                    _ => false,
                }
            })
    }

    pub(super) fn expr(
        &mut self,
        scope: Scope<'_>,
        body: &Body,
        id: ExprId,
        before: Option<u32>,
    ) -> Resolution {
        match &body.exprs[id] {
            Expr::Name(name) => self.name(scope, name, before),
            Expr::Attribute { value, attr } => {
                match self.step(|resolver| resolver.expr(scope, body, *value, before)) {
                    Resolution::Undefined => Resolution::Undefined,
                    base => self.member(&base, attr),
                }
            }
            Expr::Call { callee, args } => {
                let called = self.step(|resolver| resolver.expr(scope, body, *callee, before));
                match args.first() {
                    Some(arg) if GIVES_KERNEL.iter().any(|path| is_external(&called, path)) => {
                        self.step(|resolver| resolver.expr(scope, body, arg.value, before))
                    }
                    _ => Resolution::Unknown,
                }
            }
            _ => Resolution::Unknown,
        }
    }

    fn member(&mut self, base: &Resolution, name: &str) -> Resolution {
        match base {
            Resolution::TritonModule(module) => triton::member(module, name),
            Resolution::File(file) => self.file_member(*file, name),
            Resolution::External(path) => {
                let mut path = path.clone();
                path.push(Name::from(name));
                Resolution::External(path)
            }
            Resolution::Folder(file, path) => {
                let path = [path.as_slice(), &[Name::from(name)]].concat();
                match self.module_path(*file, 0, &path) {
                    Resolution::External(path) => Resolution::Folder(*file, path),
                    found => found,
                }
            }
            Resolution::Class(at) => self.kernel_of_class(*at, name),
            _ => Resolution::Unknown,
        }
    }

    /// The jit function `name` in the body of a class. Its other members are not followed.
    fn kernel_of_class(&mut self, at: ItemRef, name: &str) -> Resolution {
        let Some(class) = item(self.sources, at) else { return Resolution::Unknown };
        let Some(module) = self.sources.module(at.file) else { return Resolution::Unknown };
        match self.binding(at.file, &module, &class.body_scope(), name, None) {
            Some(found @ Resolution::Jit(_)) => found,
            _ => Resolution::Unknown,
        }
    }

    /// A name that the module `file` binds, or a module below the package `file`.
    fn file_member(&mut self, file: FileId, name: &str) -> Resolution {
        let found = self.step(|resolver| resolver.name(Scope { file, path: &[] }, name, None));
        let is_bound = || {
            let module = self.sources.module(file);
            module.is_some_and(|module| module.items_named(name).next().is_some())
        };
        let is_open = match found {
            Resolution::Undefined => true,
            // What a star brings may come from this package itself, round in a circle.
            Resolution::Unknown => !is_bound(),
            _ => false,
        };
        if !is_open || !self.sources.path(file).ends_with("__init__.py") {
            return found;
        }
        let submodule = self.sources.import(file, 1, &[Name::from(name)]);
        submodule.map_or(found, Resolution::File)
    }

    fn import_from(&mut self, file: FileId, level: u32, path: &[Name], member: &str) -> Resolution {
        let base = self.module_path(file, level, path);
        let mut whole = path.to_vec();
        whole.push(Name::from(member));
        let sources = self.sources;
        let submodule = || sources.import(file, level, &whole).map(Resolution::File);
        // A package takes from itself what it has not bound yet.
        if base == Resolution::File(file)
            && let Some(found) = submodule()
        {
            return found;
        }
        match self.step(|resolver| resolver.member(&base, member)) {
            Resolution::External(path) if let Some(handed_on) = triton::handed_on(&path) => {
                handed_on
            }
            Resolution::Undefined => {
                submodule().unwrap_or_else(|| Resolution::External(whole.clone()))
            }
            // It may be a file that the module imports from elsewhere.
            found @ Resolution::External(_) => submodule().unwrap_or(found),
            found => found,
        }
    }

    /// The module `path`, or the folder of that name in which the module `within` it is.
    fn imported(&self, file: FileId, path: &[Name], within: &[Name]) -> Resolution {
        let found = self.module_path(file, 0, path);
        let is_folder = !within.is_empty()
            && matches!(found, Resolution::External(_))
            && self.sources.import(file, 0, &[path, within].concat()).is_some();
        if is_folder { Resolution::Folder(file, path.to_vec()) } else { found }
    }

    fn module_path(&self, file: FileId, level: u32, path: &[Name]) -> Resolution {
        if level == 0 && path.first().is_some_and(|first| &**first == "triton") {
            return triton::resolve(&path[1..]);
        }
        match self.sources.import(file, level, path) {
            Some(file) => Resolution::File(file),
            None => Resolution::External(path.to_vec()),
        }
    }
}

fn is_class(module: &Module, path: &[Name]) -> bool {
    binder(module, path).is_some_and(|item| matches!(item.kind, ItemKind::Class(_)))
}

fn is_parameter(module: &Module, path: &[Name], name: &str) -> bool {
    match binder(module, path).map(|item| &item.kind) {
        Some(ItemKind::Function(function)) => {
            function.params.iter().any(|param| &*param.name == name)
        }
        _ => false,
    }
}

/// The function or class whose inside `path` is.
fn binder<'m>(module: &'m Module, path: &[Name]) -> Option<&'m Item> {
    let (name, outer) = path.split_last()?;
    let items = module.items_named(name).map(|index| &module.items[index as usize]);
    items.rev().find(|item| {
        item.scope == outer && matches!(item.kind, ItemKind::Function(_) | ItemKind::Class(_))
    })
}

/// Whether `from path import *` may bind `name`.
fn may_star(path: &[Name], name: &str) -> bool {
    let [module] = path else { return true };
    names_by_star(module).is_none_or(|known| known.contains(&name))
}

/// Whether Python defines the name everywhere, and kernels or host code that is read may use it.
fn is_python(name: &str) -> bool {
    [PYTHON, PYTHON_HOST].iter().any(|module| builtins::member(module, name).is_some())
}

/// Whether something gives the module that a text names: `pytest.importorskip` and
/// `importlib.import_module`.
fn imports_by_text(resolution: &Resolution) -> bool {
    let Resolution::External(path) = resolution else { return false };
    let [module, name] = &path[..] else { return false };
    matches!((&**module, &**name), ("pytest", "importorskip") | ("importlib", "import_module"))
}

/// True for `functools.partial`.
fn is_partial(resolution: &Resolution) -> bool {
    matches!(resolution, Resolution::External(path)
        if matches!(&path[..], [module, name] if &**module == "functools" && &**name == "partial"))
}
