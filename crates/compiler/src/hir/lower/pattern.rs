//! Patterns of `match`.

use super::{Lowering, parts};
use crate::hir::{Expr, ExprId, Pattern, UnaryOp};
use crate::syntax::kind::Kind;
use crate::syntax::node::Node;

impl Lowering<'_> {
    /// The pattern of a `case`; several with commas between them take a sequence.
    pub(super) fn patterns_of(&mut self, clause: Node<'_>) -> Pattern {
        let patterns: Vec<Node<'_>> =
            parts(clause).into_iter().filter(|part| part.kind() == Kind::CasePattern).collect();
        let comma = clause.children().any(|child| child.spelling() == ",");
        match patterns.as_slice() {
            [only] if !comma => self.pattern(*only),
            several => self.sequence(clause, several),
        }
    }

    fn pattern(&mut self, node: Node<'_>) -> Pattern {
        let inner = parts(node);
        match (node.kind(), inner.as_slice()) {
            (Kind::CasePattern, []) => Pattern::Capture(None),
            (Kind::CasePattern, [only]) => match (only.kind(), self.text(node)) {
                (Kind::Integer | Kind::Float, text) if text.starts_with('-') => {
                    let operand = self.expr(*only);
                    let negative = Expr::Unary { op: UnaryOp::Minus, operand };
                    Pattern::Value(self.add_expr(node.range(), negative))
                }
                _ => self.pattern(*only),
            },
            (Kind::DottedName, [name]) => Pattern::Capture(Some(self.expr(*name))),
            (Kind::UnionPattern, _) => self.alternatives(node),
            (Kind::TuplePattern, [only]) if !self.text(node).contains(',') => self.pattern(*only),
            (Kind::ListPattern | Kind::TuplePattern, items) => self.sequence(node, items),
            (Kind::AsPattern, [pattern, .., name]) => {
                let pattern = self.pattern(*pattern);
                Pattern::As(Box::new(pattern), self.expr(*name))
            }
            (
                Kind::DottedName
                | Kind::Integer
                | Kind::Float
                | Kind::String
                | Kind::ConcatenatedString
                | Kind::True
                | Kind::False
                | Kind::None,
                _,
            ) => Pattern::Value(self.expr(node)),
            _ => Pattern::Other(self.captured(node)),
        }
    }

    /// `a | b`. A `_` and a sign have no node of their own there: such a pattern is not followed.
    fn alternatives(&mut self, node: Node<'_>) -> Pattern {
        let plain = |child: Node<'_>| child.is_named() || child.spelling() == "|";
        match node.children().all(plain) {
            true => Pattern::Or(parts(node).into_iter().map(|part| self.pattern(part)).collect()),
            false => Pattern::Other(self.captured(node)),
        }
    }

    fn sequence(&mut self, node: Node<'_>, items: &[Node<'_>]) -> Pattern {
        // Elsewhere a star stands for any number of elements.
        let starred = |item: &Node<'_>| self.text(*item).trim_start().starts_with('*');
        match items.iter().any(starred) {
            true => Pattern::Other(self.captured(node)),
            false => Pattern::Sequence(items.iter().map(|item| self.pattern(*item)).collect()),
        }
    }

    /// The names that a pattern binds, and perhaps some that it only mentions.
    fn captured(&mut self, node: Node<'_>) -> Vec<ExprId> {
        let mut found = Vec::new();
        for part in parts(node) {
            match part.kind() {
                Kind::Block | Kind::IfClause => {}
                Kind::Identifier => found.push(self.expr(part)),
                _ => found.extend(self.captured(part)),
            }
        }
        found
    }
}
