//! Syntax tree to HIR. Total: any tree yields a module, and what is broken in one place leaves
//! the rest whole.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{Body, Expr, ExprId, Module, Name, SourceMap, Stmt, StmtId};
use crate::source::TextRange;
use crate::syntax::kind::{Field, Kind};
use crate::syntax::node::Node;
use crate::syntax::{Kept, Parse, Statements};

mod again;
mod broken;
mod expr;
mod function;
mod literal;
mod module;
mod pattern;
mod scenario;
pub(super) mod scopes;
mod stmt;

/// Nesting of expressions and statements beyond which the rest is [`Expr::Missing`] or
/// [`Stmt::Error`]; far beyond code that people write, and within any thread's stack.
pub const MAX_DEPTH: u32 = 200;

/// Lowers a whole file.
pub fn lower(parse: &Parse) -> Module {
    let statements = Statements::of(parse);
    finish(&statements, module::lower(parse.text(), statements.all()))
}

/// As [`lower`], after an edit: `old` is the module of a text of which `kept` stands in this one.
pub fn lower_again(statements: &Statements<'_>, old: &Module, kept: &Kept) -> Module {
    let text = statements.parse().text();
    finish(statements, again::lower(text, statements.all(), (old, kept)))
}

/// Adds what follows from the outermost statements of a module, or from the text as a whole.
fn finish(statements: &Statements<'_>, mut module: Module) -> Module {
    let (parse, statements) = (statements.parse(), statements.all());
    scenario::lower(parse, &mut module);
    let kept = std::mem::take(&mut module.names);
    if module.may_serve_kernels() {
        module.names = scopes::of_statements(parse.text(), statements, &kept);
        module.unbound = match parse.has_error() {
            true => Vec::new(),
            false => scopes::unbound(parse.text(), statements, &module.names),
        };
    }
    let is_open = module.names.iter().any(|(_, names)| names.is_open);
    module.is_open = is_open || parse.has_error() || !module.may_serve_kernels();
    module.index_items();
    module
}

/// Lowers the text of one expression, as given on a command line; `None` when it does not parse
/// as exactly one expression.
pub fn lower_expression(text: &str) -> Option<(Body, SourceMap, ExprId)> {
    let parse = Parse::new(text.trim());
    let statements = Statements::of(&parse);
    let [statement] = statements.all() else { return None };
    if parse.has_error() {
        return None;
    }
    let statement = statement.top();
    if statement.kind() != Kind::ExpressionStatement {
        return None;
    }
    let first = statement.named_children().next()?;
    if matches!(first.kind(), Kind::Assignment | Kind::AugmentedAssignment | Kind::Yield) {
        return None;
    }
    let mut lowering = Lowering::new(parse.text());
    let value = lowering.expression_statement_value(statement);
    Some((lowering.body, lowering.map, value))
}

/// Lowers expressions and statements into one body.
struct Lowering<'a> {
    text: &'a str,
    body: Body,
    map: SourceMap,
    /// Every name so far: most come often.
    names: FxHashMap<&'a str, Name>,
    /// Names in `global` statements so far.
    globals: Vec<Name>,
    depth: u32,
    /// Where syntax errors are.
    broken: broken::BrokenLines,
}

impl<'a> Lowering<'a> {
    fn new(text: &'a str) -> Lowering<'a> {
        let (body, map, names, globals, broken) = Default::default();
        Lowering { text, body, map, names, globals, depth: 0, broken }
    }

    /// What was lowered, in as little memory as it needs: it is kept for as long as the text is.
    fn finish(mut self) -> (Arc<Body>, SourceMap) {
        self.body.exprs.shrink_to_fit();
        self.body.stmts.shrink_to_fit();
        // A copy has no room to grow.
        (Arc::new(self.body), self.map.clone())
    }

    fn text(&self, node: Node<'_>) -> &'a str {
        self.text.get(node.range().as_usize()).unwrap_or_default()
    }

    fn name(&mut self, node: Node<'_>) -> Name {
        let text = self.text(node);
        self.names.entry(text).or_insert_with(|| Arc::from(text)).clone()
    }

    fn add_expr(&mut self, at: TextRange, expr: Expr) -> ExprId {
        let id = self.body.exprs.push(expr);
        self.map.exprs[id] = at;
        id
    }

    fn add_stmt(&mut self, at: TextRange, stmt: Stmt) -> StmtId {
        let id = self.body.stmts.push(stmt);
        self.map.stmts[id] = at;
        id
    }

    /// An expression that should stand in `node` and does not.
    fn missing(&mut self, node: Node<'_>) -> ExprId {
        self.add_expr(TextRange::empty(node.end_byte()), Expr::Missing)
    }

    /// The child in `field` as an expression; missing when there is none.
    fn field_expr(&mut self, node: Node<'_>, field: Field) -> ExprId {
        match node.field(field) {
            Some(child) => self.expr(child),
            None => self.missing(node),
        }
    }
}

/// Named children that are part of the structure: no comments, scenario lines or errors.
fn parts(node: Node<'_>) -> Vec<Node<'_>> {
    let is_part = |child: &Node<'_>| !child.kind().is_extra() && child.kind() != Kind::Error;
    node.named_children().filter(is_part).collect()
}

/// Children in `field`, named ones only.
fn field_parts(node: Node<'_>, field: Field) -> Vec<Node<'_>> {
    node.named_children().filter(|child| child.is_in(field)).collect()
}
