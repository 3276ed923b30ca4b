//! Types after assignments and values after constexpr parameters.

use tile_compiler::builtins::{ParameterKind, TritonVersion};
use tile_compiler::eval::BodyTypes;
use tile_compiler::eval::value::Value;
use tile_compiler::hir::{ArgKind, Body, Expr, ExprId, Function, ItemKind, Stmt};
use tile_compiler::source::TextRange;
use tile_compiler::specialization::ArgSpec;

use crate::db::{self, Db, SourceFile};
use crate::ide::hover::exact_types;

/// Text that an editor shows between what the user wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hint {
    /// Before this byte.
    pub(crate) offset: usize,
    /// What it says.
    pub(crate) label: String,
    /// It names the parameter of an argument.
    pub(crate) parameter: bool,
}

/// Which hints are wanted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    /// Shape and dtype after assignments.
    pub(crate) types: bool,
    /// Values after constexpr parameters.
    pub(crate) constexprs: bool,
    /// Names of parameters before literals.
    pub(crate) parameters: bool,
}

/// The hints in a part of a file.
pub(crate) fn hints(db: &dyn Db, file: SourceFile, within: TextRange, wanted: Wanted) -> Vec<Hint> {
    let mut hints = Vec::new();
    for (index, item) in db::module(db, file).items.iter().enumerate() {
        let ItemKind::Function(function) = &item.kind else { continue };
        let apart = item.range.end < within.start || within.end < item.range.start;
        if apart {
            continue;
        }
        let Some(inferred) = db::types(db, file, index as u32) else { continue };
        if wanted.types {
            types(function, exact_types(db, file, &item.name), inferred, &mut hints);
        }
    }
    if wanted.parameters {
        for (index, _) in db::parts::jit_items(db, file) {
            parameters(db, file, *index, within, &mut hints);
        }
    }
    if wanted.constexprs {
        constexprs(db, file, within, &mut hints);
    }
    hints.retain(|hint| within.touches(hint.offset));
    hints.sort_by_key(|hint| hint.offset);
    hints
}

/// `: tile<BLOCK x fp32>` after the names that statements assign.
fn types(
    function: &Function,
    exact: Option<&BodyTypes>,
    inferred: &BodyTypes,
    hints: &mut Vec<Hint>,
) {
    for stmt in function.body.stmts.values() {
        let Stmt::Assign { targets, value } = stmt else { continue };
        let [target] = targets.as_slice() else { continue };
        if !matches!(function.body.exprs[*target], Expr::Name(_)) {
            continue;
        }
        let label = exact
            .and_then(|types| type_label(types, *target, *value))
            .or_else(|| type_label(inferred, *target, *value));
        if let Some(label) = label {
            let offset = function.map.exprs[*target].end as usize;
            hints.push(Hint { offset, label: format!(": {label}"), parameter: false });
        }
    }
}

/// The type of a run-time value; of one at compile time the value itself says more.
fn type_label(types: &BodyTypes, target: ExprId, value: ExprId) -> Option<String> {
    let shown = [target, value].into_iter().find(|expr| {
        matches!(
            types.value(*expr),
            Some(Value::Tensor(_) | Value::BlockPtr(_) | Value::Descriptor(_))
        )
    })?;
    types.type_text(shown).filter(|text| text != "?" && !is_vague(text))
}

/// True when a dimension is unknown, which tells nobody anything: after an error, mostly.
fn is_vague(text: &str) -> bool {
    let inside = text.split_once('<').map_or(text, |(_, inside)| inside);
    let dimensions = inside.rsplit_once(" x ").map_or("", |(dimensions, _)| dimensions);
    dimensions.split(" x ").any(|dimension| dimension.contains('?'))
}

/// ` = 1024` after constexpr parameters, of the active specialization.
fn constexprs(db: &dyn Db, file: SourceFile, within: TextRange, hints: &mut Vec<Hint>) {
    for kernel in db::kernels(db, file) {
        if kernel.range.end < within.start || within.end < kernel.range.start {
            continue;
        }
        let Some(active) = kernel.specialization(db, kernel.active(db)) else { continue };
        for param in &kernel.function.params {
            let Some(annotation) = param.annotation else { continue };
            if let Some(ArgSpec::Constexpr(value)) = active.spec.args.get(&param.name) {
                let offset = kernel.function.map.exprs[annotation].end as usize;
                hints.push(Hint { offset, label: format!(" = {value}"), parameter: false });
            }
        }
    }
}

/// `axis: ` before literals that are passed by position, where there are several arguments.
fn parameters(db: &dyn Db, file: SourceFile, index: u32, within: TextRange, hints: &mut Vec<Hint>) {
    let item = &db::module(db, file).items[index as usize];
    let ItemKind::Function(function) = &item.kind else { return };
    if item.range.end < within.start || within.end < item.range.start {
        return;
    }
    let Some(types) = db::types(db, file, index) else { return };
    let version = db::version(db, file);
    for expr in function.body.exprs.values() {
        let Expr::Call { callee, args } = expr else { continue };
        let Some(names) = types.value(*callee).and_then(|callee| names_of(callee, version)) else {
            continue;
        };
        let positional = args.iter().take_while(|arg| arg.kind == ArgKind::Positional);
        for (arg, name) in positional.zip(names) {
            if args.len() > 1 && is_literal(&function.body, arg.value) {
                let offset = function.map.exprs[arg.value].start as usize;
                hints.push(Hint { offset, label: format!("{name}:"), parameter: true });
            }
        }
    }
}

/// The names of the parameters that arguments by position reach.
fn names_of(callee: &Value, version: TritonVersion) -> Option<Vec<String>> {
    match callee {
        Value::Builtin(builtin) => {
            let parameters = builtin.parameters(version).iter();
            let by_position = parameters.take_while(|parameter| {
                !matches!(parameter.kind, ParameterKind::VarArgs | ParameterKind::KeywordOnly)
            });
            Some(by_position.map(|parameter| parameter.name.to_owned()).collect())
        }
        Value::Function(function) => {
            let params = function.function.params.iter();
            Some(params.map(|param| param.name.to_string()).collect())
        }
        // The receiver is written before the dot.
        Value::Bound(bound) => {
            let names = names_of(&bound.1, version).or_else(|| names_of(&bound.0, version))?;
            Some(names.into_iter().skip(1).collect())
        }
        _ => None,
    }
}

fn is_literal(body: &Body, expr: ExprId) -> bool {
    match &body.exprs[expr] {
        Expr::Literal(_) => true,
        Expr::Unary { operand, .. } => matches!(body.exprs[*operand], Expr::Literal(_)),
        _ => false,
    }
}
