//! What words are, for highlighting: in jit functions and scenarios. Other servers and the
//! grammar color the rest.

use rustc_hash::FxHashMap;
use tile_compiler::eval::ValueClass;
use tile_compiler::hir::{Expr, ItemKind, Name, Stmt};
use tile_compiler::project::{self, ItemRef, Resolution};
use tile_compiler::source::TextRange;

use crate::db::{self, Analysis, Db, SourceFile};
use crate::ide::symbol::{Semantics, Symbol};
use crate::ide::tree::{range, walk_below};

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

/// The words in a part of a file, those included that it cuts through.
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
    let mut kinds = Kinds { db, constexprs: FxHashMap::default() };
    walk_below(semantics.root(), &mut |around, node| {
        let at = range(node);
        if node.kind() != "identifier" {
            return parts.iter().any(|part| part.start < at.end && at.start < part.end);
        }
        let is_within = at.start < within.end && within.start < at.end;
        if !is_within || !parts.iter().any(|part| part.contains_range(at)) {
            return false;
        }
        let symbol = semantics.symbol_below(around, node);
        if let Some((kind, readonly)) = symbol.and_then(|symbol| kinds.of(&symbol)) {
            let value = values.get(&at).copied();
            let readonly = readonly || value == Some(ValueClass::Constexpr);
            let has_value = matches!(kind, TokenKind::Parameter | TokenKind::Variable);
            tokens.push(Token { range: at, kind, readonly, value: value.filter(|_| has_value) });
        }
        false
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

/// What is asked of the same functions over and over.
struct Kinds<'db> {
    db: &'db dyn Db,
    /// Parameters of a function, true for those that are constexpr.
    constexprs: FxHashMap<ItemRef, FxHashMap<Name, bool>>,
}

impl Kinds<'_> {
    /// What a symbol is, and whether it cannot change.
    fn of(&mut self, symbol: &Symbol) -> Option<(TokenKind, bool)> {
        Some(match symbol {
            Symbol::Local(at, name) => match self.parameters(*at).get(name) {
                Some(constant) => (TokenKind::Parameter, *constant),
                None => (TokenKind::Variable, false),
            },
            Symbol::Item(at) => match project::resolve_item(&Analysis(self.db), *at) {
                Resolution::Class(_) => (TokenKind::Class, false),
                Resolution::Constexpr(_) | Resolution::Constant(_) => (TokenKind::Variable, true),
                _ => (TokenKind::Function, false),
            },
            Symbol::Variable(..) => (TokenKind::Variable, false),
            Symbol::File(_) | Symbol::Module(_) => (TokenKind::Namespace, false),
            Symbol::Builtin(_) => (TokenKind::Builtin, false),
            Symbol::BuiltinParameter(..) => (TokenKind::Parameter, false),
        })
    }

    fn parameters(&mut self, at: ItemRef) -> &FxHashMap<Name, bool> {
        self.constexprs.entry(at).or_insert_with(|| {
            let sources = Analysis(self.db);
            let constant = project::constexpr_params(&sources, at);
            let function = project::function(&sources, at);
            let params = function.iter().flat_map(|function| &function.params);
            params.map(|param| (param.name.clone(), constant.contains(&param.name))).collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::db::{Database, SourceText};
    use crate::files::Disk;

    #[test]
    fn words_that_a_range_cuts_through_belong_to_it() {
        let text =
            "import triton\n\n@triton.jit\ndef kernel(pointer, number):\n    return number\n";
        let mut db = Database::new(Arc::new(Disk));
        let file = db.set_open(Path::new("/nowhere/kernels.py"), SourceText::new(text));
        let within = TextRange::new(text.find("inter").unwrap(), text.find("mber").unwrap());
        let found = tokens(&db, file, within);
        let words: Vec<&str> = found.iter().map(|token| &text[token.range.as_usize()]).collect();
        assert_eq!(words, ["pointer", "number"]);
    }
}
