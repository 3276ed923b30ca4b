//! What grids that are functions ask of the arguments that they get.

use super::Site;
use crate::builtins::LAUNCH_OPTIONS;
use crate::diagnostic::{Code, Diagnostic, TextEdit, suggest_in_any_case};
use crate::hir::{
    Body, Expr, ExprId, Function, Item, ItemKind, Literal, Name, Occasion, ParamKind, SourceMap,
    Stmt, StmtId,
};
use crate::source::{FileRange, TextRange};
use crate::specialization::Tuning;

impl Site<'_> {
    /// Keys of a lambda's argument that no launch of the kernel has: `meta["BLOCK_SIZE"]` where no
    /// parameter has that name.
    pub(super) fn meta_keys(&self, tuning: &Tuning) -> Vec<Diagnostic> {
        let params = &self.kernel.function.params;
        if !tuning.complete || params.iter().any(|param| param.kind == ParamKind::KwArgs) {
            return Vec::new();
        }
        let keywords = self.keyword_args().map(|(name, _)| name);
        let configured = tuning.configs.iter().flat_map(|config| &config.kwargs);
        let known: Vec<&Name> = params
            .iter()
            .map(|param| &param.name)
            .chain(keywords)
            .chain(configured.map(|(name, _)| name))
            .chain(&tuning.heuristics)
            .collect();
        let asked = self.asked_for();
        let unknown = asked.keys.iter().filter(|(key, _)| !is_known(key, &known));
        let mut found: Vec<Diagnostic> =
            unknown.map(|(key, range)| self.unknown_key(key, *range, &known)).collect();
        found.extend(asked.attributes.iter().map(|(name, value, range)| {
            let message = format!("what a grid gets is a dict, which has no attribute `{name}`");
            let found = self.finding(Code::GridShape, *range, message);
            let rest = TextRange { start: value.end, end: range.end };
            let edit = TextEdit {
                at: FileRange { file: self.file, range: rest },
                text: format!("[\"{name}\"]"),
            };
            found.with_fix("look it up", vec![edit])
        }));
        found
    }

    fn unknown_key(&self, key: &Name, range: TextRange, known: &[&Name]) -> Diagnostic {
        let kernel = &self.kernel.item.name;
        let message = format!("the grid asks for `{key}`, but `{kernel}` has no parameter `{key}`");
        let found = self.finding(Code::UnknownArgument, range, message);
        match suggest_in_any_case(key, known.iter().map(|name| &***name)) {
            Some(name) => found.with_suggested_text(name, format!("\"{name}\"")),
            None => found,
        }
    }

    /// A grid that is a function of no or several parameters, or the call of one that has some.
    pub(super) fn grid_call(&self) -> Option<Diagnostic> {
        let launch = self.launch;
        let (name, is_called) = match &launch.body.exprs[launch.grid] {
            Expr::Lambda { .. } => (None, false),
            Expr::Name(name) => (Some(name), false),
            Expr::Call { callee, args } if args.is_empty() => {
                (Some(launch.body.exprs[*callee].as_name()?), true)
            }
            _ => return None,
        };
        let takes = match name.map(|name| self.function_called(name)) {
            None => of_lambda(&launch.body.exprs[launch.grid])?,
            Some(function) => match function? {
                Local::Lambda(body, _, id) => of_lambda(&body.exprs[id])?,
                Local::Function(function) => {
                    needed(function.params.iter().map(|param| (param.kind, param.default)))?
                }
            },
        };
        let gets = "a grid that is a function gets a dict of arguments";
        let message = match (takes, is_called) {
            (0, false) => format!("{gets}: this one takes nothing"),
            (2.., false) => format!("{gets}: this one needs {takes} arguments"),
            (1.., true) => {
                "this call lacks the dict of arguments that the launch gives a grid".to_owned()
            }
            _ => return None,
        };
        Some(self.finding(Code::GridShape, self.range(launch.grid), message))
    }

    /// Whether the grid, or the lambda that it names, has this name in it.
    pub(super) fn grid_mentions(&self, name: &str) -> bool {
        let launch = self.launch;
        let grid = launch.body.exprs[launch.grid].as_name();
        match grid.and_then(|grid| self.function_called(grid)) {
            Some(Local::Lambda(body, _, id)) => body.mentions(id, name),
            _ => launch.body.mentions(launch.grid, name),
        }
    }

    /// What the grid asks of its argument: a lambda in the brackets, or the function that is bound to the
    /// name there.
    fn asked_for(&self) -> Asked {
        let launch = self.launch;
        match &launch.body.exprs[launch.grid] {
            Expr::Lambda { params, body } => {
                let [meta] = &**params else { return Asked::default() };
                asked(&launch.body, &meta.name, self.range(*body), |id| self.range(id))
            }
            Expr::Name(name) => match self.function_called(name) {
                Some(Local::Lambda(body, map, id)) => asked_by_lambda(body, map, id),
                Some(Local::Function(function)) => asked_by_function(function),
                None => Asked::default(),
            },
            _ => Asked::default(),
        }
    }

    /// The function that is bound to a name at the launch: the only one that the function around the
    /// launch binds to it, or the last one before on every way; outside of functions, the one that the
    /// module binds to it before.
    fn function_called(&self, name: &Name) -> Option<Local<'_>> {
        match self.scope.path.is_empty() {
            true => self.function_of_module(name),
            false => self.local_function(name),
        }
    }

    fn function_of_module(&self, name: &Name) -> Option<Local<'_>> {
        let items = self.module.items_named(name).map(|index| &self.module.items[index as usize]);
        let before = |item: &&Item| item.range.end <= self.launch.range.start;
        let bound: Vec<&Item> = items.filter(|item| item.scope.is_empty()).filter(before).collect();
        if bound.iter().any(|item| item.occasion != Occasion::Always || item.guard.is_some()) {
            return None;
        }
        match &bound.last()?.kind {
            ItemKind::Function(function) => Some(Local::Function(function)),
            ItemKind::Assign { body, map, value, .. } => {
                let is_lambda = matches!(body.exprs[*value], Expr::Lambda { .. });
                is_lambda.then_some(Local::Lambda(body, map, *value))
            }
            _ => None,
        }
    }

    fn local_function(&self, name: &Name) -> Option<Local<'_>> {
        let functions = self.module.items.iter().filter_map(|item| match &item.kind {
            ItemKind::Function(function) => Some((item, &**function)),
            _ => None,
        });
        let mut around = functions.clone().filter(|(item, _)| item.body_scope() == self.scope.path);
        let (_, function) = around.next()?;
        let (body, map) = (&function.body, &function.map);
        let binds = |target: &ExprId| body.exprs[*target] == Expr::Name(name.clone());
        let assigned = body.stmts.iter().filter_map(|(id, stmt)| match stmt {
            Stmt::Assign { targets, value } if targets.iter().any(binds) => {
                let is_lambda = matches!(body.exprs[*value], Expr::Lambda { .. });
                let lambda = is_lambda.then_some(Local::Lambda(body, map, *value));
                Some((map.stmts[id], lambda))
            }
            _ => None,
        });
        let inside = functions
            .filter(|(item, _)| item.name == *name && item.scope == self.scope.path)
            .map(|(item, function)| (item.range, Some(Local::Function(function))));
        let mut bound: Vec<(TextRange, Option<Local<'_>>)> = assigned.chain(inside).collect();
        if bound.len() == 1 {
            return bound.pop()?.1;
        }
        let launch = self.launch.range;
        let before = bound.into_iter().filter(|(range, _)| range.end <= launch.start);
        let (range, last) = before.max_by_key(|(range, _)| range.start)?;
        last.filter(|_| is_in_block_of(function, range, launch))
    }
}

/// Whether the innermost block around a statement has a later place in it as well, so that what comes
/// there has come by the statement.
fn is_in_block_of(function: &Function, stmt: TextRange, later: TextRange) -> bool {
    let (body, map) = (&function.body, &function.map);
    let blocks = body.stmts.values().flat_map(|stmt| stmt.blocks());
    let range = |block: &[StmtId]| {
        let (first, last) = (map.stmts[*block.first()?], map.stmts[*block.last()?]);
        Some(TextRange { start: first.start, end: last.end })
    };
    blocks.filter_map(range).all(|block| !block.contains_range(stmt) || block.contains_range(later))
}

/// A function that is bound to a name.
enum Local<'a> {
    /// A lambda in this code.
    Lambda(&'a Body, &'a SourceMap, ExprId),
    /// A function of its own.
    Function(&'a Function),
}

fn of_lambda(lambda: &Expr) -> Option<usize> {
    let Expr::Lambda { params, .. } = lambda else { return None };
    needed(params.iter().map(|param| (param.kind, param.default)))
}

/// How many arguments a function needs, all of them by position; `None` where it takes others.
fn needed(params: impl Iterator<Item = (ParamKind, Option<ExprId>)>) -> Option<usize> {
    let mut needed = 0;
    for (kind, default) in params {
        needed += 1;
        if !kind.is_positional() || default.is_some() {
            return None;
        }
    }
    Some(needed)
}

fn asked_by_lambda(around: &Body, map: &SourceMap, id: ExprId) -> Asked {
    let Expr::Lambda { params, body } = &around.exprs[id] else { return Asked::default() };
    let [meta] = &**params else { return Asked::default() };
    let range = |id| map.exprs[id];
    asked(around, &meta.name, range(*body), range)
}

/// What a function asks of its only parameter.
fn asked_by_function(function: &Function) -> Asked {
    let [meta] = function.params.as_slice() else { return Asked::default() };
    let everywhere = TextRange { start: 0, end: u32::MAX };
    asked(&function.body, &meta.name, everywhere, |id| function.map.exprs[id])
}

/// Whether a key is there: that of a parameter, or of an option.
pub(super) fn is_known(key: &Name, known: &[&Name]) -> bool {
    known.contains(&key) || LAUNCH_OPTIONS.contains(&&**key)
}

/// What a function asks of the dict that it gets.
#[derive(Default)]
pub(super) struct Asked {
    /// Keys, with their places.
    pub(super) keys: Vec<(Name, TextRange)>,
    /// Attributes that dicts do not have, with the places of the dict and of all of the expression.
    pub(super) attributes: Vec<(Name, TextRange, TextRange)>,
}

/// What is asked of the variable `meta` by what stands in `inside`.
pub(super) fn asked(
    body: &Body,
    meta: &Name,
    inside: TextRange,
    range: impl Fn(ExprId) -> TextRange,
) -> Asked {
    const METHODS: &[&str] =
        &["clear", "copy", "get", "items", "keys", "pop", "setdefault", "update", "values"];
    let mut found = Asked::default();
    for (id, expr) in body.exprs.iter() {
        let is_meta = |value: ExprId| body.exprs[value] == Expr::Name(meta.clone());
        match expr {
            Expr::Subscript { value, index } if is_meta(*value) => {
                let at = range(*index);
                if let Expr::Literal(Literal::Str(key)) = &body.exprs[*index]
                    && inside.contains_range(at)
                {
                    found.keys.push((key.clone(), at));
                }
            }
            Expr::Attribute { value, attr }
                if is_meta(*value)
                    && inside.contains_range(range(id))
                    && !METHODS.contains(&&**attr) =>
            {
                found.attributes.push((attr.clone(), range(*value), range(id)));
            }
            _ => {}
        }
    }
    found
}
