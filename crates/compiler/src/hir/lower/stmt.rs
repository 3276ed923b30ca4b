//! Statements.

use super::expr::binary_op;
use super::{Lowering, MAX_DEPTH, field_parts, parts};
use crate::hir::{Case, Expr, ExprId, Handler, Stmt, StmtId};
use crate::syntax::kind::{Field, Kind};
use crate::syntax::node::Node;

/// Python's name of a `global` statement.
const GLOBAL: &str = "Global";

impl Lowering<'_> {
    /// Statements of a block, or of an error that holds statements.
    pub(super) fn block(&mut self, node: Node<'_>) -> Vec<StmtId> {
        if self.depth >= MAX_DEPTH {
            return vec![self.add_stmt(node.range(), Stmt::Error)];
        }
        self.depth += 1;
        let mut stmts = Vec::new();
        for child in node.named_children() {
            match child.kind() {
                kind if kind.is_extra() => {}
                Kind::Error => {
                    stmts.push(self.add_stmt(child.range(), Stmt::Error));
                    stmts.extend(self.statements_in_error(child));
                }
                _ => stmts.push(self.stmt(child)),
            }
        }
        self.depth -= 1;
        stmts
    }

    /// Whole statements that error recovery kept inside an error.
    fn statements_in_error(&mut self, error: Node<'_>) -> Vec<StmtId> {
        parts(error)
            .into_iter()
            .filter(|child| is_statement(child.kind()))
            .map(|child| self.stmt(child))
            .collect()
    }

    /// The block in `field`; empty when it is missing.
    pub(super) fn field_block(&mut self, node: Node<'_>, field: Field) -> Vec<StmtId> {
        node.field(field).map(|block| self.block(block)).unwrap_or_default()
    }

    pub(super) fn stmt(&mut self, node: Node<'_>) -> StmtId {
        let stmt = match node.kind() {
            Kind::ExpressionStatement => self.expression_statement(node),
            Kind::Assignment => self.assignment(node),
            Kind::AugmentedAssignment => self.augmented_assignment(node),
            Kind::IfStatement => self.if_statement(node),
            Kind::ForStatement if is_async(node) => Stmt::Unsupported("AsyncFor"),
            Kind::ForStatement => self.for_statement(node),
            Kind::WhileStatement => Stmt::While {
                test: self.field_expr(node, Field::Condition),
                body: self.field_block(node, Field::Body),
                orelse: self.else_block(node),
            },
            Kind::WithStatement if is_async(node) => Stmt::Unsupported("AsyncWith"),
            Kind::WithStatement => self.with_statement(node),
            Kind::TryStatement => self.try_statement(node),
            Kind::MatchStatement => self.match_statement(node),
            Kind::ReturnStatement => {
                Stmt::Return(parts(node).first().map(|value| self.expr(*value)))
            }
            Kind::AssertStatement => self.assert_statement(node),
            Kind::PassStatement => Stmt::Pass,
            Kind::ScenarioFor => self.scenario_for(node),
            Kind::Error => Stmt::Error,
            Kind::GlobalStatement => self.global_statement(node),
            kind => match unsupported(kind, node) {
                Some(name) => Stmt::Unsupported(name),
                None => Stmt::Expr(self.expr(node)),
            },
        };
        let id = self.add_stmt(node.range(), stmt);
        self.note_broken(node, id);
        id
    }

    fn global_statement(&mut self, node: Node<'_>) -> Stmt {
        let names = parts(node).into_iter().map(|name| self.name(name));
        let names: Vec<_> = names.collect();
        self.globals.extend(names);
        Stmt::Unsupported(GLOBAL)
    }

    fn expression_statement(&mut self, node: Node<'_>) -> Stmt {
        match parts(node).as_slice() {
            [only] if only.kind() == Kind::Assignment => self.assignment(*only),
            [only] if only.kind() == Kind::AugmentedAssignment => self.augmented_assignment(*only),
            _ => Stmt::Expr(self.expression_statement_value(node)),
        }
    }

    /// The value of an expression statement; `a, b` is a tuple.
    pub(super) fn expression_statement_value(&mut self, node: Node<'_>) -> ExprId {
        let children = parts(node);
        let comma = node.children().any(|child| child.spelling() == ",");
        match children.as_slice() {
            [] => self.missing(node),
            [only] if !comma => self.expr(*only),
            _ => {
                let items = self.exprs(&children);
                self.add_expr(node.range(), Expr::Tuple(items))
            }
        }
    }

    fn assignment(&mut self, node: Node<'_>) -> Stmt {
        if let Some(annotation) = node.field(Field::Type) {
            let target = self.field_expr(node, Field::Left);
            let annotation = self.expr(annotation);
            let value = node.field(Field::Right).map(|value| self.expr(value));
            return Stmt::AnnAssign { target, annotation, value };
        }
        let mut targets = vec![self.field_expr(node, Field::Left)];
        let mut value = node.field(Field::Right);
        while let Some(next) = value.filter(|value| value.kind() == Kind::Assignment) {
            targets.push(self.field_expr(next, Field::Left));
            value = next.field(Field::Right);
        }
        let value = match value {
            Some(value) => self.expr(value),
            None => self.missing(node),
        };
        Stmt::Assign { targets, value }
    }

    fn augmented_assignment(&mut self, node: Node<'_>) -> Stmt {
        let target = self.field_expr(node, Field::Left);
        let value = self.field_expr(node, Field::Right);
        let operator = node.field(Field::Operator).map_or("", |operator| operator.spelling());
        match binary_op(operator.trim_end_matches('=')) {
            Some(op) => Stmt::AugAssign { target, op, value },
            None => Stmt::Error,
        }
    }

    /// `elif` and `else` clauses nest from the last one outwards.
    fn if_statement(&mut self, node: Node<'_>) -> Stmt {
        let test = self.field_expr(node, Field::Condition);
        let body = self.field_block(node, Field::Consequence);
        let mut clauses = Vec::new();
        for clause in field_parts(node, Field::Alternative) {
            if clause.kind() == Kind::ElifClause {
                let test = self.field_expr(clause, Field::Condition);
                clauses.push((clause, Some(test), self.field_block(clause, Field::Consequence)));
            } else {
                clauses.push((clause, None, self.field_block(clause, Field::Body)));
            }
        }
        let mut orelse = Vec::new();
        for (clause, test, body) in clauses.into_iter().rev() {
            orelse = match test {
                None => body,
                Some(test) => vec![self.add_stmt(clause.range(), Stmt::If { test, body, orelse })],
            };
        }
        Stmt::If { test, body, orelse }
    }

    fn else_block(&mut self, node: Node<'_>) -> Vec<StmtId> {
        match node.field(Field::Alternative) {
            Some(clause) => self.field_block(clause, Field::Body),
            None => Vec::new(),
        }
    }

    fn for_statement(&mut self, node: Node<'_>) -> Stmt {
        Stmt::For {
            target: self.field_expr(node, Field::Left),
            iter: self.field_expr(node, Field::Right),
            body: self.field_block(node, Field::Body),
            orelse: self.else_block(node),
        }
    }

    /// The statements that a scenario line has in a field.
    pub(super) fn field_stmts(&mut self, node: Node<'_>, field: Field) -> Vec<StmtId> {
        field_parts(node, field).into_iter().map(|stmt| self.stmt(stmt)).collect()
    }

    fn scenario_for(&mut self, node: Node<'_>) -> Stmt {
        let target = self.field_expr(node, Field::Left);
        let iter = self.field_expr(node, Field::Right);
        let body = self.field_stmts(node, Field::Body);
        Stmt::For { target, iter, body, orelse: Vec::new() }
    }

    fn try_statement(&mut self, node: Node<'_>) -> Stmt {
        let body = self.field_block(node, Field::Body);
        let (mut handlers, mut orelse, mut finally) = (Vec::new(), Vec::new(), Vec::new());
        for clause in parts(node) {
            match clause.kind() {
                Kind::ExceptClause => handlers.push(self.handler(clause)),
                Kind::ElseClause => orelse = self.field_block(clause, Field::Body),
                Kind::FinallyClause => finally = self.clause_block(clause),
                _ => {}
            }
        }
        Stmt::Try { body, handlers, orelse, finally }
    }

    fn handler(&mut self, clause: Node<'_>) -> Handler {
        let kinds = clause.field(Field::Value);
        let (kinds, alias) = match kinds {
            Some(kinds) if kinds.kind() == Kind::AsPattern => {
                let (kinds, alias) = self.with_item(kinds);
                (Some(kinds), alias)
            }
            kinds => (kinds.map(|kinds| self.expr(kinds)), None),
        };
        let target = clause.field(Field::Alias).map(|alias| self.expr(alias)).or(alias);
        Handler { kinds, target, body: self.clause_block(clause) }
    }

    fn match_statement(&mut self, node: Node<'_>) -> Stmt {
        let subjects = field_parts(node, Field::Subject);
        let subject = match subjects.as_slice() {
            [only] => self.expr(*only),
            several => {
                let items = self.exprs(several);
                self.add_expr(node.range(), Expr::Tuple(items))
            }
        };
        let clauses = node.field(Field::Body).map(parts).unwrap_or_default();
        let clauses = clauses.into_iter().filter(|clause| clause.kind() == Kind::CaseClause);
        let cases = clauses.map(|clause| {
            let guard = clause.field(Field::Guard).and_then(|guard| parts(guard).first().copied());
            Case {
                pattern: self.patterns_of(clause),
                guard: guard.map(|guard| self.expr(guard)),
                body: self.field_block(clause, Field::Consequence),
            }
        });
        Stmt::Match { subject, cases: cases.collect() }
    }

    /// The block of a clause that has no name for it.
    fn clause_block(&mut self, clause: Node<'_>) -> Vec<StmtId> {
        let block = parts(clause).into_iter().find(|part| part.kind() == Kind::Block);
        block.map(|block| self.block(block)).unwrap_or_default()
    }

    fn with_statement(&mut self, node: Node<'_>) -> Stmt {
        let mut items = Vec::new();
        for clause in parts(node) {
            if clause.kind() != Kind::WithClause {
                continue;
            }
            for item in parts(clause) {
                if let Some(value) = item.field(Field::Value) {
                    items.push(self.with_item(value));
                }
            }
        }
        Stmt::With { items, body: self.field_block(node, Field::Body) }
    }

    fn with_item(&mut self, value: Node<'_>) -> (ExprId, Option<ExprId>) {
        if value.kind() != Kind::AsPattern {
            return (self.expr(value), None);
        }
        let manager = match parts(value).first() {
            Some(manager) => self.expr(*manager),
            None => self.missing(value),
        };
        (manager, value.field(Field::Alias).map(|alias| self.expr(alias)))
    }

    fn assert_statement(&mut self, node: Node<'_>) -> Stmt {
        let children = parts(node);
        let test = match children.first() {
            Some(test) => self.expr(*test),
            None => self.missing(node),
        };
        Stmt::Assert { test, message: children.get(1).map(|message| self.expr(*message)) }
    }
}

fn is_async(node: Node<'_>) -> bool {
    node.children().next().is_some_and(|first| first.spelling() == "async")
}

/// Python's name of a statement that kernels may not use.
fn unsupported(kind: Kind, node: Node<'_>) -> Option<&'static str> {
    Some(match kind {
        Kind::BreakStatement => "Break",
        Kind::ContinueStatement => "Continue",
        Kind::RaiseStatement => "Raise",
        Kind::DeleteStatement => "Delete",
        Kind::NonlocalStatement => "Nonlocal",
        Kind::ImportStatement => "Import",
        Kind::ImportFromStatement | Kind::FutureImportStatement => "ImportFrom",
        Kind::FunctionDefinition if is_async(node) => "AsyncFunctionDef",
        Kind::FunctionDefinition => "FunctionDef",
        Kind::ClassDefinition => "ClassDef",
        Kind::DecoratedDefinition => {
            let definition = node.field(Field::Definition);
            return definition.and_then(|inner| unsupported(inner.kind(), inner));
        }
        Kind::TypeAliasStatement => "TypeAlias",
        Kind::ExecStatement => "Exec",
        Kind::PrintStatement => "Print",
        _ => return None,
    })
}

/// True for nodes that are statements wherever they stand.
pub(super) fn is_statement(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::ExpressionStatement
            | Kind::IfStatement
            | Kind::ForStatement
            | Kind::WhileStatement
            | Kind::WithStatement
            | Kind::ReturnStatement
            | Kind::AssertStatement
            | Kind::PassStatement
            | Kind::BreakStatement
            | Kind::ContinueStatement
            | Kind::TryStatement
            | Kind::RaiseStatement
            | Kind::DeleteStatement
            | Kind::GlobalStatement
            | Kind::NonlocalStatement
            | Kind::ImportStatement
            | Kind::ImportFromStatement
            | Kind::FutureImportStatement
            | Kind::FunctionDefinition
            | Kind::ClassDefinition
            | Kind::DecoratedDefinition
            | Kind::MatchStatement
    )
}
