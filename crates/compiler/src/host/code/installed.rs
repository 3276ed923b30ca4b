//! What a module binds in a `try` that asks for packages: which of its bindings there is depends on
//! what is installed.

use crate::builtins::{TORCH, torch};
use crate::hir::{Body, Expr, ExprId, Handler, ItemKind, Module, SourceMap, Stmt, StmtId, UnaryOp};
use crate::host::library::environment::is_asking;
use crate::host::{Frame, Host};
use crate::project::{ItemRef, Resolution, Scope, resolve_expr, resolve_item, triton};
use crate::source::{FileId, TextRange};

/// Packages that are there wherever kernels are.
const INSTALLED: &[&str] = &[
    "dataclasses",
    "enum",
    "functools",
    "importlib",
    "inspect",
    "itertools",
    "math",
    "numpy",
    "os",
    "sys",
    "torch",
    "triton",
    "triton.language",
    "typing",
    "warnings",
];

/// What an import that fails raises.
const IMPORT_ERRORS: &[&str] = &["ImportError", "ModuleNotFoundError"];

/// Methods of texts that give others, whatever they say.
const CASES: &[&str] = &["lower", "strip", "upper"];

/// Whether a package is there wherever kernels are.
pub(crate) fn is_installed(package: &str) -> bool {
    INSTALLED.contains(&package)
}

impl Host<'_> {
    /// The other bindings of a name that there may be in place of the one at `at`, which stands in
    /// a `try` that may fail, or in a handler.
    pub(crate) fn other_outcomes(&self, at: ItemRef) -> Vec<ItemRef> {
        let Some(module) = self.sources.module(at.file) else { return Vec::new() };
        let Some(bound) = module.items.get(at.index as usize) else { return Vec::new() };
        if bound.occasion == crate::hir::Occasion::Always || !bound.scope.is_empty() {
            return Vec::new();
        }
        let main = module.mains.iter().find(|main| main.range.contains_range(bound.range));
        let Some(main) = main else { return Vec::new() };
        let may_fail = main.body.stmts.iter().any(|(id, stmt)| match stmt {
            Stmt::Try { body, handlers, .. } => {
                !handlers.is_empty()
                    && main.map.stmts[id].contains_range(bound.range)
                    && !self.finds_imports(at.file, (&main.body, &main.map), body, handlers)
            }
            _ => false,
        });
        if !may_fail {
            return Vec::new();
        }
        let same = module.items_named(&bound.name).filter(|index| *index != at.index);
        let same = same.filter(|index| module.items[*index as usize].scope.is_empty());
        same.map(|index| ItemRef { index, ..at }).collect()
    }

    /// Whether handlers only wait for imports that fail, and none of these statements does so, or these cannot fail
    /// at all.
    pub(crate) fn finds_imports(
        &self,
        file: FileId,
        (body, map): (&Body, &SourceMap),
        stmts: &[StmtId],
        handlers: &[Handler],
    ) -> bool {
        let Some(module) = self.sources.module(file) else { return false };
        let waits = |handler: &Handler| {
            let kinds = handler.kinds.and_then(|kinds| body.exprs[kinds].as_name());
            kinds.is_some_and(|kind| IMPORT_ERRORS.contains(&&**kind))
        };
        let finds = |stmt: &StmtId| self.imports_installed(file, &module, map.stmts[*stmt]);
        let finds_all = || handlers.iter().all(waits) && stmts.iter().all(finds);
        !handlers.is_empty() && (finds_all() || self.succeeds(file, &module, (body, map), stmts))
    }

    /// Whether statements only import what is there everywhere, and bind what cannot fail.
    fn succeeds(
        &self,
        file: FileId,
        module: &Module,
        (body, map): (&Body, &SourceMap),
        stmts: &[StmtId],
    ) -> bool {
        stmts.iter().all(|stmt| match &body.stmts[*stmt] {
            Stmt::Pass | Stmt::Unsupported("ClassDef" | "FunctionDef") => true,
            Stmt::Assign { targets, value } => {
                let is_name = |target: &ExprId| body.exprs[*target].as_name().is_some();
                targets.iter().all(is_name) && self.can_be_had(file, body, *value)
            }
            Stmt::If { body: then, orelse, .. } => {
                [then, orelse].iter().all(|stmts| self.succeeds(file, module, (body, map), stmts))
            }
            Stmt::Unsupported("Import" | "ImportFrom") => {
                self.imports_installed(file, module, map.stmts[*stmt])
            }
            _ => false,
        })
    }

    /// Whether an expression only names what is there everywhere, lists or compares it, calls it without arguments, or
    /// asks for a variable of the environment.
    fn can_be_had(&self, file: FileId, body: &Body, expr: ExprId) -> bool {
        let all = |items: &[ExprId]| items.iter().all(|item| self.can_be_had(file, body, *item));
        match &body.exprs[expr] {
            Expr::Literal(_) => true,
            Expr::Tuple(items) | Expr::List(items) => all(items),
            Expr::Dict(entries) => entries.iter().all(|(key, value)| {
                key.is_some_and(|key| self.can_be_had(file, body, key))
                    && self.can_be_had(file, body, *value)
            }),
            Expr::Compare { first, rest } => {
                self.can_be_had(file, body, *first)
                    && rest.iter().all(|(_, other)| self.can_be_had(file, body, *other))
            }
            Expr::Bool { values, .. } => all(values),
            Expr::Unary { op: UnaryOp::Not, operand } => self.can_be_had(file, body, *operand),
            Expr::Call { callee, args } if args.is_empty() => match &body.exprs[*callee] {
                Expr::Attribute { value, attr } if CASES.contains(&&**attr) => {
                    self.can_be_had(file, body, *value)
                }
                _ => self.can_be_had(file, body, *callee),
            },
            Expr::Call { callee, args } => {
                let scope = Scope { file, path: &[] };
                matches!(resolve_expr(self.sources, scope, body, *callee),
                    Resolution::External(path) if is_asking(&path))
                    && args.iter().all(|arg| self.can_be_had(file, body, arg.value))
            }
            Expr::Attribute { .. } => {
                let scope = Scope { file, path: &[] };
                match resolve_expr(self.sources, scope, body, expr) {
                    Resolution::External(path) => torch::has(&path),
                    Resolution::Triton(path) => triton::can_import(&path),
                    _ => false,
                }
            }
            _ => false,
        }
    }

    /// Whether an import of running code finds what it names.
    pub(crate) fn finds_import(&self, frame: &Frame, statement: StmtId) -> bool {
        let module = self.sources.module(frame.file);
        let map = frame.code.map().zip(module);
        map.is_some_and(|(map, module)| {
            self.imports_installed(frame.file, &module, map.stmts[statement])
        })
    }

    /// Whether all that an import statement asks for is there everywhere.
    fn imports_installed(&self, file: FileId, module: &Module, statement: TextRange) -> bool {
        let here = module.items.iter().enumerate();
        let mut here =
            here.filter(|(_, item)| statement.contains_range(item.range) && item.is_import());
        here.all(|(index, item)| {
            if let ItemKind::Import { path, .. } = &item.kind
                && is_installed(&path.join("."))
            {
                return true;
            }
            match resolve_item(self.sources, ItemRef { file, index: index as u32 }) {
                Resolution::External(path) => match path.as_slice() {
                    [package] => is_installed(package),
                    [package, _] if &**package != TORCH => is_installed(package),
                    path => torch::has(path),
                },
                Resolution::Triton(path) => triton::can_import(&path),
                Resolution::Unknown | Resolution::Undefined => false,
                _ => true,
            }
        })
    }
}
