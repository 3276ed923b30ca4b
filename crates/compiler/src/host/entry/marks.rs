//! What marks tests, by pytest or unittest: which of them do not run, and what the marks are given.

use std::sync::Arc;

use crate::hir::{Body, Expr, ExprId, Function, Name, SourceMap};
use crate::host::code::frame::{Code, Frame};
use crate::host::code::operators::truth;
use crate::host::entry::given::argument;
use crate::host::value::Value;
use crate::host::{Host, Variables};
use crate::project::{ItemRef, Resolution, Scope, callee, class, constant, resolve_expr};
use crate::source::FileId;

/// The variable of a module that has the marks of all its tests.
const MARKS_OF_MODULE: &str = "pytestmark";

/// What marks a test.
pub(crate) struct Mark {
    /// What makes it.
    pub found: Resolution,
    file: FileId,
    path: Vec<Name>,
    /// Where it stands.
    code: Code,
    expr: ExprId,
}

/// Which tests a decorator skips.
enum Skips {
    /// All, or those that are expected to fail.
    Always,
    /// Those of which its first argument is this.
    Where(bool),
}

/// Which tests the decorator at a dotted path skips; `None` where it skips none.
fn skips(path: &[Name]) -> Option<Skips> {
    let path: Vec<&str> = path.iter().map(|part| &**part).collect();
    let (["pytest", "mark", mark] | ["unittest", mark]) = path.as_slice() else { return None };
    match *mark {
        "skip" | "xfail" | "expectedFailure" => Some(Skips::Always),
        "skipif" | "skipIf" => Some(Skips::Where(true)),
        "skipUnless" => Some(Skips::Where(false)),
        _ => None,
    }
}

/// Whether a mark that a parameter is given skips none.
pub(crate) fn keeps(mark: &Value) -> bool {
    match mark {
        Value::Named(Resolution::External(path)) => {
            path.first().is_some_and(|first| &**first == "pytest") && skips(path).is_none()
        }
        Value::List(marks) | Value::Tuple(marks) => marks.iter().all(keeps),
        _ => false,
    }
}

impl Host<'_> {
    /// Whether a function is a test that does not run on a machine like the one that kernels are compiled
    /// for: where that is not known its author says that it may.
    pub(crate) fn is_skipped(
        &mut self,
        file: FileId,
        scope: &[Name],
        function: &Arc<Function>,
    ) -> bool {
        self.marks(file, scope, function).iter().any(|mark| {
            let Resolution::External(path) = &mark.found else { return false };
            match skips(path) {
                None => false,
                Some(Skips::Always) => true,
                Some(Skips::Where(holds)) => match self.mark_argument(mark, (0, "condition")) {
                    None => true,
                    // pytest evaluates a text.
                    Some(Value::Str(_)) => false,
                    Some(condition) => truth(&condition) == Some(holds),
                },
            }
        })
    }

    /// What marks a function: its decorators, then those of its class, then what its module names as marks of all.
    pub(crate) fn marks(
        &self,
        file: FileId,
        scope: &[Name],
        function: &Arc<Function>,
    ) -> Vec<Mark> {
        let found = self.decorators(file, scope, function);
        let own = function.decorators.iter().zip(found).map(|(expr, found)| Mark {
            found,
            file,
            path: scope.to_vec(),
            code: Code::Function(function.clone()),
            expr: *expr,
        });
        let around = self.marks_of_class(file, scope).into_iter().chain(self.marks_of_module(file));
        own.chain(around).collect()
    }

    fn marks_of_class(&self, file: FileId, scope: &[Name]) -> Vec<Mark> {
        let Some((name, path)) = scope.split_last() else { return Vec::new() };
        let module = self.sources.module(file).unwrap_or_default();
        let meant =
            module.items_named(name).find(|index| *module.items[*index as usize].scope == *path);
        let class = meant.and_then(|index| class(self.sources, ItemRef { file, index }));
        let Some(class) = class else { return Vec::new() };
        let map = Arc::new(class.map.clone());
        let mark = |expr: &ExprId| self.mark_in((file, path), (&class.body, &map), *expr);
        class.decorators.iter().map(mark).collect()
    }

    fn marks_of_module(&self, file: FileId) -> Vec<Mark> {
        let module = self.sources.module(file).unwrap_or_default();
        let mut named = module.items_named(MARKS_OF_MODULE);
        let held = named.find_map(|index| constant(self.sources, ItemRef { file, index }));
        let Some(held) = held else { return Vec::new() };
        let mark = |expr: &ExprId| self.mark_in((file, &[]), (&held.body, &held.map), *expr);
        match &held.body.exprs[held.value] {
            Expr::List(marks) | Expr::Tuple(marks) => marks.iter().map(mark).collect(),
            _ => vec![mark(&held.value)],
        }
    }

    fn mark_in(
        &self,
        (file, path): (FileId, &[Name]),
        (body, map): (&Arc<Body>, &Arc<SourceMap>),
        expr: ExprId,
    ) -> Mark {
        let found = resolve_expr(self.sources, Scope { file, path }, body, callee(body, expr));
        let found = self.mark_held(&found).unwrap_or(found);
        let code = Code::Body(body.clone(), Some(map.clone()));
        Mark { found, file, path: path.to_vec(), code, expr }
    }

    /// An argument, by its position and name, of the call that makes a mark: that stands there, or where a
    /// variable of a module gets the mark.
    pub(crate) fn mark_argument(
        &mut self,
        mark: &Mark,
        (at, name): (usize, &str),
    ) -> Option<Value> {
        let body = mark.code.body();
        if let Expr::Call { args, .. } = &body.exprs[mark.expr] {
            let value = argument(args, at, name)?;
            let frame = Frame::new(mark.file, &mark.path, mark.code.clone(), Variables::default());
            return Some(self.expr(&mut { frame }, value));
        }
        let scope = Scope { file: mark.file, path: &mark.path };
        let Resolution::Constant(held) = resolve_expr(self.sources, scope, body, mark.expr) else {
            return None;
        };
        let held_mark = constant(self.sources, held)?;
        let Expr::Call { args, .. } = &held_mark.body.exprs[held_mark.value] else { return None };
        let value = argument(args, at, name)?;
        Some(self.module_expr(held.file, &[], (&held_mark.body, &held_mark.map), value))
    }

    /// The mark of pytest that a variable of a module holds.
    pub(crate) fn mark_held(&self, found: &Resolution) -> Option<Resolution> {
        let Resolution::Constant(at) = found else { return None };
        let held = constant(self.sources, *at)?;
        let scope = Scope { file: at.file, path: &[] };
        let made_by = callee(&held.body, held.value);
        let mark = resolve_expr(self.sources, scope, &held.body, made_by);
        let is_mark = |path: &[Name]| matches!(path, [package, marks, _] if &**package == "pytest" && &**marks == "mark");
        matches!(&mark, Resolution::External(path) if is_mark(path)).then_some(mark)
    }
}
