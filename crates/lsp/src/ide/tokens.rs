//! What words are, for highlighting: in jit functions and scenarios. Other servers and the
//! grammar color the rest.

use rustc_hash::FxHashMap;
use tile_compiler::eval::ValueClass;
use tile_compiler::hir::{Expr, ItemKind, Stmt};
use tile_compiler::project::{self, Resolution};
use tile_compiler::source::TextRange;

use crate::db::{self, Analysis, Db, SourceFile};
use crate::ide::structure::walk;
use crate::ide::symbol::{Semantics, Symbol, range};

/// A word and what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Token {
    /// Where.
    pub(crate) range: TextRange,
    /// What.
    pub(crate) kind: TokenKind,
    /// It cannot change: a constexpr.
    pub(crate) readonly: bool,
    /// What kind of value it has.
    pub(crate) value: Option<ValueClass>,
}

/// What a word is; the order is that of the legend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TokenKind {
    /// A module.
    Namespace,
    /// A function.
    Function,
    /// A member of the language.
    Builtin,
    /// A parameter.
    Parameter,
    /// A variable.
    Variable,
    /// A class.
    Class,
}

/// The words in a part of a file.
pub(crate) fn tokens(db: &dyn Db, file: SourceFile, within: TextRange) -> Vec<Token> {
    let Some(semantics) = Semantics::new(db, file) else { return Vec::new() };
    let module = db::module(db, file);
    let mut parts: Vec<TextRange> = project::jit_functions(&Analysis(db), file.id(db))
        .iter()
        .filter_map(|at| Some(module.items.get(at.index as usize)?.range))
        .chain(module.scenarios.iter().map(|scenario| scenario.range))
        .collect();
    parts.retain(|part| part.start < within.end && within.start < part.end);
    let values = values(db, file, within);
    let mut tokens = Vec::new();
    walk(semantics.root(), &mut |node| {
        let at = range(node);
        let wanted = node.kind() == "identifier"
            && within.contains_range(at)
            && parts.iter().any(|part| part.contains_range(at));
        if !wanted {
            return;
        }
        let found = match semantics.symbol(node) {
            Some(symbol) => kind(db, &symbol),
            None => semantics.module_of(node).and_then(|found| {
                let is_module = matches!(found, Resolution::TritonModule(_) | Resolution::File(_));
                is_module.then_some((TokenKind::Namespace, false))
            }),
        };
        if let Some((kind, readonly)) = found {
            let value = values.get(&at).copied();
            let readonly = readonly || value == Some(ValueClass::Constexpr);
            let has_value = matches!(kind, TokenKind::Parameter | TokenKind::Variable);
            tokens.push(Token { range: at, kind, readonly, value: value.filter(|_| has_value) });
        }
    });
    tokens.sort();
    tokens
}

/// What kind of value stands at each name and parameter of the jit functions.
fn values(db: &dyn Db, file: SourceFile, within: TextRange) -> FxHashMap<TextRange, ValueClass> {
    let mut found = FxHashMap::default();
    let module = db::module(db, file);
    for (index, _) in db::parts::jit_items(db, file) {
        let item = &module.items[*index as usize];
        let ItemKind::Function(function) = &item.kind else { continue };
        if item.range.end < within.start || within.end < item.range.start {
            continue;
        }
        let Some(types) = db::types(db, file, *index) else { continue };
        for (expr, data) in &function.body.exprs {
            if let (Expr::Name(_), Some(class)) = (data, types.class(expr)) {
                found.insert(function.map.exprs[expr], class);
            }
        }
        // What is assigned has the type of what is assigned to it.
        for stmt in function.body.stmts.values() {
            if let Stmt::Assign { targets, value } = stmt
                && let Some(class) = types.class(*value)
            {
                for target in targets {
                    found.entry(function.map.exprs[*target]).or_insert(class);
                }
            }
        }
        for param in &function.params {
            found.extend(types.param_class(&param.name).map(|class| (param.range, class)));
        }
    }
    found
}

fn kind(db: &dyn Db, symbol: &Symbol) -> Option<(TokenKind, bool)> {
    Some(match symbol {
        Symbol::Local(at, name) => {
            let function = project::function(&Analysis(db), *at)?;
            match function.params.iter().find(|param| param.name == *name) {
                Some(param) => {
                    let constant = project::constexpr_params(&Analysis(db), *at);
                    (TokenKind::Parameter, constant.contains(&param.name))
                }
                None => (TokenKind::Variable, false),
            }
        }
        Symbol::Item(at) => match project::resolve_item(&Analysis(db), *at) {
            Resolution::Class(_) => (TokenKind::Class, false),
            Resolution::Constexpr(_) | Resolution::Constant(_) => (TokenKind::Variable, true),
            _ => (TokenKind::Function, false),
        },
        Symbol::File(_) => (TokenKind::Namespace, false),
        Symbol::Builtin(_) => (TokenKind::Builtin, false),
        Symbol::BuiltinParameter(..) => (TokenKind::Parameter, false),
    })
}
