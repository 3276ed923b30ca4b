//! Names: locals, globals of the module and of others, builtins.

use std::sync::Arc;

use super::dtype::{DType, Elem};
use super::value::{ClassRef, Const, FunctionKind, FunctionRef, ModuleRef, Role, Value};
use super::{Evaluator, Frame, Locals, Lost, Mode, Source};
use crate::builtins::{self, LANGUAGE, PYTHON, TRITON};
use crate::diagnostic::{Code, Diagnostic, TextEdit};
use crate::hir::{Expr, ExprId, Function, Item, ItemKind, Module, Name};
use crate::source::{FileId, FileRange};

/// Python builtins that exist but that kernels may not use.
const FORBIDDEN_PYTHON: &[&str] = &[
    "abs", "all", "any", "bool", "bytes", "callable", "chr", "complex", "dict", "dir", "divmod",
    "enumerate", "eval", "exec", "filter", "format", "frozenset", "globals", "hash", "hex", "id",
    "input", "iter", "locals", "map", "next", "object", "open", "ord", "pow", "property", "repr",
    "reversed", "round", "set", "setattr", "slice", "sorted", "str", "sum", "super", "tuple",
    "type", "vars", "zip", "Exception", "ValueError", "TypeError", "NotImplementedError",
    "RuntimeError", "AssertionError",
];

impl Evaluator<'_> {
    /// The value of a name.
    pub(super) fn name(&mut self, name: &Name, at: FileRange) -> Value {
        if let Some(local) = self.frame().locals.get(name) {
            return local.value.clone();
        }
        let (file, scope) = (self.frame().file, self.frame().scope.clone());
        if let Some(value) = self.global(file, &scope, name) {
            return self.check_global(name, value, at);
        }
        if let Some(builtin) = builtins::member(PYTHON, name) {
            return Value::Builtin(builtin);
        }
        if self.project.has_implicit_imports(file) {
            match &**name {
                "tl" => return Value::Module(ModuleRef::Known(Arc::from(LANGUAGE))),
                "triton" => return Value::Module(ModuleRef::Known(Arc::from(TRITON))),
                _ => {}
            }
        }
        if self.frame().mode == Mode::Python {
            return self.python_name(name);
        }
        self.undefined(name, at);
        Value::Unknown
    }

    /// Kernels may use only some globals: constexprs, functions, modules, types.
    fn check_global(&mut self, name: &Name, value: Value, at: FileRange) -> Value {
        let frame = self.frame();
        if frame.mode == Mode::Python || frame.in_default {
            return value;
        }
        let problem = match &value {
            Value::Const(Const::DType(_) | Const::BlockType(..) | Const::None) => None,
            Value::Const(_) if self.is_constexpr_global(name) => None,
            Value::Const(Const::Symbol(_)) => None,
            Value::Const(_) | Value::Tuple(_) => Some(Code::GlobalNotConstexpr),
            Value::Function(function) if function.kind.role == Role::Host => {
                Some(Code::HostFunction)
            }
            _ => None,
        };
        let Some(code) = problem else { return value };
        let message = match code {
            Code::HostFunction => format!(
                "`{name}` is a Python function; kernels can call only functions decorated with `@triton.jit` or `@triton.constexpr_function`"
            ),
            _ => format!("kernels can read the global `{name}` only if it is a `tl.constexpr` value"),
        };
        let mut diagnostic = Diagnostic::new(code, at, message);
        if let Some(item) = self.find_item(name) {
            let definition = FileRange { file: self.frame().file, range: item.name_range };
            diagnostic = diagnostic.with_related(definition, format!("`{name}` is defined here"));
            if let (ItemKind::Assign { map, value, .. }, Code::GlobalNotConstexpr) =
                (&item.kind, code)
            {
                let range = map.exprs[*value];
                let file = definition.file;
                let edit = |offset: u32, text: &str| TextEdit {
                    at: FileRange {
                        file,
                        range: crate::source::TextRange::empty(offset as usize),
                    },
                    text: text.to_owned(),
                };
                diagnostic = diagnostic.with_fix(
                    format!("Make `{name}` a `tl.constexpr`"),
                    vec![edit(range.start, "tl.constexpr("), edit(range.end, ")")],
                );
            } else if let ItemKind::Function(_) = &item.kind {
                let at = FileRange {
                    file: definition.file,
                    range: crate::source::TextRange::empty(item.range.start as usize),
                };
                let edit = TextEdit { at, text: "@triton.jit\n".to_owned() };
                diagnostic =
                    diagnostic.with_fix(format!("Decorate `{name}` with `@triton.jit`"), vec![edit]);
            }
        }
        self.emit_diagnostic(diagnostic);
        Value::Unknown
    }

    /// The item that a global name of the current frame is bound to.
    fn find_item(&self, name: &Name) -> Option<Item> {
        let module = self.project.module(self.frame().file)?;
        visible_items(&module, &self.frame().scope, name).last().map(|item| (*item).clone())
    }

    /// True when a global was made by `tl.constexpr(...)`, here or where it was imported from.
    fn is_constexpr_global(&mut self, name: &Name) -> bool {
        let Some(item) = self.find_item(name) else { return true };
        match &item.kind {
            ItemKind::Assign { body, value, .. } => matches!(body.exprs[*value], Expr::Call { .. }),
            ItemKind::Import { .. } | ItemKind::ImportFrom { .. } => {
                let file = self.frame().file;
                self.imported_is_constexpr(file, &item, 0)
            }
            _ => true,
        }
    }

    fn imported_is_constexpr(&self, file: FileId, item: &Item, depth: usize) -> bool {
        let ItemKind::ImportFrom { level, path, member } = &item.kind else { return true };
        let Some(target) = self.project.import(file, *level, path) else { return true };
        let Some(module) = self.project.module(target) else { return true };
        match visible_items(&module, &[], member).last() {
            Some(found) => match &found.kind {
                ItemKind::Assign { body, value, .. } => {
                    matches!(body.exprs[*value], Expr::Call { .. })
                }
                ItemKind::ImportFrom { .. } if depth < 8 => {
                    self.imported_is_constexpr(target, found, depth + 1)
                }
                _ => true,
            },
            None => true,
        }
    }

    /// Names of Python that compile-time functions may use but whose results are not followed.
    fn python_name(&mut self, name: &Name) -> Value {
        if FORBIDDEN_PYTHON.contains(&&**name) || self.frame().mode == Mode::Python {
            return Value::Unknown;
        }
        Value::Unknown
    }

    fn undefined(&mut self, name: &Name, at: FileRange) {
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
        let mut diagnostic = if FORBIDDEN_PYTHON.contains(&&**name) {
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
            let edit = TextEdit { at, text: best.to_owned() };
            diagnostic = diagnostic.with_fix(format!("Change to `{best}`"), vec![edit]);
            diagnostic.message.push_str(&format!("; did you mean `{best}`?"));
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

    /// The value of a module-level name of `file`, seen from inside `scope`.
    pub(super) fn global(
        &mut self,
        file: FileId,
        scope: &Arc<[Name]>,
        name: &Name,
    ) -> Option<Value> {
        let key = (file, scope.clone(), name.clone());
        if let Some(value) = self.globals.get(&key) {
            return Some(value.clone());
        }
        let module = self.project.module(file)?;
        let items = visible_items(&module, scope, name);
        if items.is_empty() {
            return self.star_import(file, &module, name);
        }
        let marker = (file, name.clone());
        if self.resolving.contains(&marker) || self.resolving.len() > 32 {
            return Some(Value::Unknown);
        }
        self.resolving.push(marker);
        let mut value = Value::Unknown;
        for item in &items {
            let next = self.item(file, &module, item);
            // Alternatives under `if` or `try`: what is understood wins, the last among those.
            if !next.is_unknown() {
                value = next;
            } else if items.len() == 1 {
                value = next;
            }
        }
        self.resolving.pop();
        self.globals.insert(key, value.clone());
        Some(value)
    }

    fn star_import(&mut self, file: FileId, module: &Module, name: &Name) -> Option<Value> {
        let mut unknown = false;
        for item in &module.items {
            let ItemKind::ImportFrom { level, path, member } = &item.kind else { continue };
            if &**member != "*" {
                continue;
            }
            if self.resolving.len() > 16 {
                return Some(Value::Unknown);
            }
            match self.project.import(file, *level, path) {
                Some(target) => {
                    self.resolving.push((target, name.clone()));
                    let found = self.global(target, &Arc::from([]), name);
                    self.resolving.pop();
                    if found.is_some() {
                        return found;
                    }
                }
                None => {
                    let dotted = join_path(path);
                    match known_member(&dotted, name) {
                        Some(value) => return Some(value),
                        None => unknown |= !builtins::is_known_module(&dotted),
                    }
                }
            }
        }
        unknown.then_some(Value::Unknown)
    }

    fn item(&mut self, file: FileId, module: &Module, item: &Item) -> Value {
        match &item.kind {
            ItemKind::Import { path } => self.import_module(file, path),
            ItemKind::ImportFrom { level, path, member } => {
                self.import_member(file, *level, path, member)
            }
            ItemKind::Function(function) => {
                let kind = function_kind(module, function);
                Value::Function(FunctionRef {
                    file,
                    function: function.clone(),
                    kind,
                    scope: Arc::from(item.scope.as_slice()),
                })
            }
            ItemKind::Class(class) => Value::Class(ClassRef { file, class: class.clone() }),
            ItemKind::Assign { body, map, value, .. } => {
                let source = Source { body, map, file };
                self.module_value(source, &Arc::from(item.scope.as_slice()), *value)
            }
            ItemKind::Unknown => Value::Unknown,
        }
    }

    /// Evaluates a module-level expression, quietly.
    fn module_value(&mut self, source: Source<'_>, scope: &Arc<[Name]>, expr: ExprId) -> Value {
        let emitter = self.emitter.take();
        let failed = self.failed;
        self.quiet += 1;
        self.frames.push(Frame {
            mode: Mode::Python,
            file: source.file,
            function: None,
            scope: scope.clone(),
            locals: Locals::default(),
            lost: rustc_hash::FxHashMap::default(),
            returns: Vec::new(),
            loops: 0,
            call: FileRange::default(),
            inlined_at: None,
            in_default: false,
        });
        let value = self.expr(source, expr);
        self.frames.pop();
        self.quiet -= 1;
        self.failed = failed;
        self.emitter = emitter;
        match value {
            Value::Tensor(_) => Value::Unknown,
            value => value,
        }
    }

    fn import_module(&mut self, file: FileId, path: &[Name]) -> Value {
        let dotted = join_path(path);
        if is_known_path(&dotted) {
            return Value::Module(ModuleRef::Known(Arc::from(dotted)));
        }
        match self.project.import(file, 0, path) {
            Some(target) => Value::Module(ModuleRef::File(target)),
            None => Value::Module(ModuleRef::Other(Arc::from(dotted))),
        }
    }

    fn import_member(&mut self, file: FileId, level: u32, path: &[Name], member: &Name) -> Value {
        if level == 0 {
            let dotted = join_path(path);
            if let Some(value) = known_member(&dotted, member) {
                return value;
            }
        }
        if let Some(target) = self.project.import(file, level, path)
            && let Some(value) = self.global(target, &Arc::from([]), member)
        {
            return value;
        }
        let mut nested: Vec<Name> = path.to_vec();
        nested.push(member.clone());
        match self.project.import(file, level, &nested) {
            Some(target) => Value::Module(ModuleRef::File(target)),
            None => Value::Unknown,
        }
    }
}

/// A member of a module that the table of builtins knows.
pub(super) fn known_member(module: &str, name: &str) -> Option<Value> {
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
            _ => {}
        }
    }
    if let Some(builtin) = builtins::member(module, name) {
        return Some(Value::Builtin(builtin));
    }
    if module == builtins::PYTHON_MATH {
        let value = match name {
            "pi" => std::f64::consts::PI,
            "e" => std::f64::consts::E,
            "inf" => f64::INFINITY,
            "nan" => f64::NAN,
            "tau" => std::f64::consts::TAU,
            _ => return None,
        };
        return Some(Value::Const(Const::Float(value)));
    }
    let path = builtins::submodules(module).iter().find(|(sub, _)| *sub == name)?.1;
    Some(Value::Module(ModuleRef::Known(Arc::from(path))))
}

fn is_known_path(dotted: &str) -> bool {
    dotted == builtins::PYTHON_MATH || dotted == TRITON || builtins::is_known_module(dotted)
        || builtins::canonical_module(dotted) != dotted
}

fn join_path(path: &[Name]) -> String {
    path.iter().map(|part| &**part).collect::<Vec<_>>().join(".")
}

/// Items that bind `name` and are visible from inside `scope`: those of the innermost scope.
pub(super) fn visible_items<'m>(
    module: &'m Module,
    scope: &[Name],
    name: &str,
) -> Vec<&'m Item> {
    let visible = |item: &&Item| &*item.name == name && scope.starts_with(&item.scope);
    let depth = module.items.iter().filter(visible).map(|item| item.scope.len()).max();
    let Some(depth) = depth else { return Vec::new() };
    module.items.iter().filter(visible).filter(|item| item.scope.len() == depth).collect()
}

/// What the decorators of a function make of it.
pub(super) fn function_kind(module: &Module, function: &Function) -> FunctionKind {
    let mut kind = FunctionKind { role: Role::Host, noinline: false, must_use: false };
    let mut foreign = false;
    for &decorator in &function.decorators {
        let (head, args) = match &function.body.exprs[decorator] {
            Expr::Call { callee, args } => (*callee, args.as_slice()),
            _ => (decorator, [].as_slice()),
        };
        let path = dotted_path(module, &function.body, head).unwrap_or_default();
        match path.as_str() {
            "triton.jit" | "triton.runtime.jit.jit" | "triton.runtime.jit" => {
                kind.role = Role::Jit;
                kind.noinline |= args.iter().any(|arg| {
                    matches!(&arg.kind, crate::hir::ArgKind::Keyword(name) if &**name == "noinline")
                        && matches!(
                            function.body.exprs[arg.value],
                            Expr::Literal(crate::hir::Literal::Bool(true))
                        )
                });
            }
            "triton.constexpr_function" | "triton.runtime.jit.constexpr_function" => {
                kind.role = Role::Constexpr;
            }
            "triton.must_use_result" => kind.must_use = true,
            "triton.autotune" | "triton.heuristics" | "triton.runtime.autotuner.autotune" => {}
            "triton.language.core.builtin" | "triton.language.core.extern" => {
                kind.role = Role::Unknown;
            }
            other if other.ends_with(".jit") || other == "jit" => kind.role = Role::Jit,
            _ => foreign = true,
        }
    }
    if kind.role == Role::Host && foreign {
        kind.role = Role::Unknown;
    }
    kind
}

/// The dotted path that an expression names, with imports of the module followed:
/// `jit` after `from triton import jit` is `triton.jit`.
pub(super) fn dotted_path(
    module: &Module,
    body: &crate::hir::Body,
    expr: ExprId,
) -> Option<String> {
    match &body.exprs[expr] {
        Expr::Attribute { value, attr } => {
            Some(format!("{}.{attr}", dotted_path(module, body, *value)?))
        }
        Expr::Name(name) => {
            let item = module.items.iter().rev().find(|item| item.name == *name);
            Some(match item.map(|item| &item.kind) {
                Some(ItemKind::Import { path }) => join_path(path),
                Some(ItemKind::ImportFrom { path, member, .. }) => {
                    format!("{}.{member}", join_path(path))
                }
                _ => name.to_string(),
            })
        }
        _ => None,
    }
}

/// The candidate most like `name`, if one is close enough.
pub(super) fn suggest<'n>(
    name: &str,
    candidates: impl IntoIterator<Item = &'n str>,
) -> Option<&'n str> {
    candidates
        .into_iter()
        .filter(|candidate| !candidate.is_empty() && *candidate != name)
        .map(|candidate| (strsim::jaro_winkler(name, candidate), candidate))
        .filter(|(score, candidate)| {
            *score > 0.85 || strsim::damerau_levenshtein(name, candidate) <= name.len() / 4
        })
        .max_by(|a, b| a.0.total_cmp(&b.0).then_with(|| b.1.cmp(a.1)))
        .map(|(_, candidate)| candidate)
}

impl Frame {
    /// Forgets a name, remembering why.
    pub(super) fn lose(&mut self, name: Name, lost: Lost) {
        self.locals.shift_remove(&name);
        self.lost.insert(name, lost);
    }
}
