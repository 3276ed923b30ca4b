//! What grids that are functions ask of the arguments that they get.

use super::options::OPTIONS;
use super::{Site, meant};
use crate::diagnostic::{Code, Diagnostic, TextEdit};
use crate::hir::{Body, Expr, ExprId, ItemKind, LambdaParam, Literal, Name, ParamKind, Stmt};
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
        let unknown = asked
            .into_iter()
            .filter(|(key, _)| !known.contains(&key) && !OPTIONS.contains(&&**key));
        unknown.map(|(key, range)| self.unknown_key(&key, range, &known)).collect()
    }

    fn unknown_key(&self, key: &Name, range: TextRange, known: &[&Name]) -> Diagnostic {
        let kernel = &self.kernel.item.name;
        let message = format!("the grid asks for `{key}`, but `{kernel}` has no parameter `{key}`");
        let found = self.finding(Code::UnknownArgument, range, message);
        let close = known
            .iter()
            .map(|name| (strsim::jaro_winkler(&name.to_lowercase(), &key.to_lowercase()), name))
            .filter(|(score, _)| *score > 0.85)
            .max_by(|a, b| a.0.total_cmp(&b.0));
        match close {
            Some((_, name)) => {
                let at = FileRange { file: self.file, range };
                let edit = TextEdit { at, text: format!("\"{name}\"") };
                meant(found, name, edit)
            }
            None => found,
        }
    }

    /// The keys that the grid asks for, with their places: a lambda in the brackets, or the only one
    /// that the function around the launch binds to the name there.
    fn asked_for(&self) -> Vec<(Name, TextRange)> {
        let launch = self.launch;
        match &launch.body.exprs[launch.grid] {
            Expr::Lambda { params, body } => keys(&launch.body, params, *body, |id| self.range(id)),
            Expr::Name(name) => self.asked_by_local(name).unwrap_or_default(),
            _ => Vec::new(),
        }
    }

    fn asked_by_local(&self, name: &Name) -> Option<Vec<(Name, TextRange)>> {
        let mut functions = self.module.items.iter().filter_map(|item| match &item.kind {
            ItemKind::Function(function) if item.body_scope() == self.scope.path => Some(function),
            _ => None,
        });
        let function = functions.next()?;
        let body = &function.body;
        let binds = |target: &ExprId| body.exprs[*target] == Expr::Name(name.clone());
        let mut bound = body.stmts.values().filter_map(|stmt| match stmt {
            Stmt::Assign { targets, value } if targets.iter().any(binds) => Some(*value),
            _ => None,
        });
        let (Some(value), None) = (bound.next(), bound.next()) else { return None };
        let Expr::Lambda { params, body: result } = &body.exprs[value] else { return None };
        Some(keys(body, params, *result, |id| function.map.exprs[id]))
    }
}

/// The strings by which the only parameter of a lambda is indexed.
fn keys(
    body: &Body,
    params: &[LambdaParam],
    result: ExprId,
    range: impl Fn(ExprId) -> TextRange,
) -> Vec<(Name, TextRange)> {
    let [meta] = params else { return Vec::new() };
    let inside = range(result);
    let asked = body.exprs.values().filter_map(|expr| {
        let Expr::Subscript { value, index } = expr else { return None };
        let Expr::Literal(Literal::Str(key)) = &body.exprs[*index] else { return None };
        let at = range(*index);
        let is_meta = body.exprs[*value] == Expr::Name(meta.name.clone());
        (is_meta && inside.contains_range(at)).then(|| (key.clone(), at))
    });
    asked.collect()
}
