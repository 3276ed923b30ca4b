//! Expressions.

use super::{Lowering, MAX_DEPTH, field_parts, parts};
use crate::hir::{
    Arg, ArgKind, BinaryOp, CompareOp, Expr, ExprId, LambdaParam, Literal, Name, Param, UnaryOp,
};
use crate::source::TextRange;
use crate::syntax::kind::{Field, Kind};
use crate::syntax::node::Node;

impl Lowering<'_> {
    pub(super) fn expr(&mut self, node: Node<'_>) -> ExprId {
        if self.depth >= MAX_DEPTH {
            return self.missing(node);
        }
        self.depth += 1;
        let id = self.nested_expr(node);
        self.depth -= 1;
        id
    }

    fn nested_expr(&mut self, node: Node<'_>) -> ExprId {
        if node.is_missing() {
            return self.missing(node);
        }
        let kind = node.kind();
        if matches!(kind, Kind::ParenthesizedExpression | Kind::Type | Kind::AsPatternTarget) {
            return self.only_child(node);
        }
        let expr = match kind {
            Kind::Identifier => Expr::Name(self.name(node)),
            Kind::Integer | Kind::Float => Expr::Literal(self.number(node)),
            Kind::True => Expr::Literal(Literal::Bool(true)),
            Kind::False => Expr::Literal(Literal::Bool(false)),
            Kind::None => Expr::Literal(Literal::None),
            Kind::Ellipsis => Expr::Literal(Literal::Ellipsis),
            Kind::String => self.string(&[node]),
            Kind::ConcatenatedString => self.string(&parts(node)),
            // `(x) = 1`: the parentheses alone make no tuple.
            Kind::TuplePattern if !self.text(node).contains(',') && parts(node).len() == 1 => {
                return self.expr(parts(node)[0]);
            }
            Kind::Tuple | Kind::ExpressionList | Kind::PatternList | Kind::TuplePattern => {
                Expr::Tuple(self.exprs(&parts(node)))
            }
            Kind::List | Kind::ListPattern => Expr::List(self.exprs(&parts(node))),
            Kind::Set => Expr::Set(self.exprs(&parts(node))),
            Kind::Dictionary => self.dictionary(node),
            Kind::ListComprehension => self.list_comprehension(node),
            Kind::BinaryOperator => self.binary(node),
            Kind::UnaryOperator => self.unary(node),
            Kind::NotOperator => {
                Expr::Unary { op: UnaryOp::Not, operand: self.field_expr(node, Field::Argument) }
            }
            Kind::BooleanOperator => self.boolean(node),
            Kind::ComparisonOperator => self.comparison(node),
            Kind::Call => self.call(node),
            Kind::Attribute => self.attribute(node),
            Kind::DottedName => return self.dotted_name(node),
            Kind::Subscript => self.subscript(node),
            Kind::GenericType => self.generic_type(node),
            Kind::Slice => self.slice(node),
            Kind::ConditionalExpression => self.conditional(node),
            Kind::Lambda => self.lambda(node),
            Kind::NamedExpression => self.walrus(node),
            Kind::ListSplat
            | Kind::ListSplatPattern
            | Kind::ParenthesizedListSplat
            | Kind::SplatType => Expr::Starred(self.only_child(node)),
            Kind::Await => Expr::Unsupported("Await"),
            Kind::Yield => self.yielded(node),
            Kind::GeneratorExpression => Expr::Generator(self.elements(node)),
            Kind::DictionaryComprehension => Expr::DictComp(self.elements(node)),
            Kind::SetComprehension => Expr::SetComp(self.elements(node)),
            // An entry of a comprehension.
            Kind::Pair => Expr::Tuple(Box::new([
                self.field_expr(node, Field::Key),
                self.field_expr(node, Field::Value),
            ])),
            Kind::DictionarySplat => Expr::Unsupported("Dict"),
            Kind::AsPattern => return self.only_child(node),
            _ => Expr::Missing,
        };
        self.add_expr(node.range(), expr)
    }

    pub(super) fn exprs(&mut self, nodes: &[Node<'_>]) -> Box<[ExprId]> {
        nodes.iter().map(|node| self.expr(*node)).collect()
    }

    fn only_child(&mut self, node: Node<'_>) -> ExprId {
        match parts(node).first() {
            Some(child) => self.expr(*child),
            None => self.missing(node),
        }
    }

    /// `yield value`.
    fn yielded(&mut self, node: Node<'_>) -> Expr {
        let value = parts(node).first().map(|value| self.expr(*value));
        let of_each = self.text(node).split_whitespace().nth(1) == Some("from");
        Expr::Yield { value, of_each }
    }

    fn dictionary(&mut self, node: Node<'_>) -> Expr {
        let mut entries = Vec::new();
        for entry in parts(node) {
            if entry.kind() == Kind::Pair {
                let key = self.field_expr(entry, Field::Key);
                entries.push((Some(key), self.field_expr(entry, Field::Value)));
            } else {
                entries.push((None, self.only_child(entry)));
            }
        }
        Expr::Dict(entries.into())
    }

    /// The elements of a comprehension that makes no list, as those of one that does.
    fn elements(&mut self, node: Node<'_>) -> ExprId {
        let elements = self.list_comprehension(node);
        self.add_expr(node.range(), elements)
    }

    /// Comprehensions with several `for` clauses nest from the right: each inner one is a starred
    /// element of the one around it.
    fn list_comprehension(&mut self, node: Node<'_>) -> Expr {
        let mut clauses: Vec<(Node<'_>, Vec<Node<'_>>)> = Vec::new();
        for part in parts(node) {
            match (part.kind(), clauses.last_mut()) {
                (Kind::ForInClause, _) => clauses.push((part, Vec::new())),
                (Kind::IfClause, Some((_, conditions))) => conditions.push(part),
                _ => {}
            }
        }
        let Some(body) = node.field(Field::Body) else { return Expr::Missing };
        let mut element = self.expr(body);
        let mut comprehension = Expr::Missing;
        for (index, (clause, conditions)) in clauses.iter().enumerate().rev() {
            let target = self.field_expr(*clause, Field::Left);
            let iterable = self.clause_iterable(*clause);
            let conditions = conditions.iter().map(|node| self.only_child(*node)).collect();
            comprehension = Expr::ListComp { element, target, iterable, conditions };
            if index > 0 {
                let inner = self.add_expr(node.range(), comprehension);
                element = self.add_expr(node.range(), Expr::Starred(inner));
                comprehension = Expr::Missing;
            }
        }
        comprehension
    }

    fn clause_iterable(&mut self, clause: Node<'_>) -> ExprId {
        let values = field_parts(clause, Field::Right);
        match values.as_slice() {
            [] => self.missing(clause),
            [value] => self.expr(*value),
            [first, .., last] => {
                let at = first.range().cover(last.range());
                let items = self.exprs(&values);
                self.add_expr(at, Expr::Tuple(items))
            }
        }
    }

    fn binary(&mut self, node: Node<'_>) -> Expr {
        let lhs = self.field_expr(node, Field::Left);
        let rhs = self.field_expr(node, Field::Right);
        match node.field(Field::Operator).and_then(|op| binary_op(op.spelling())) {
            Some(op) => Expr::Binary { op, lhs, rhs },
            None => Expr::Missing,
        }
    }

    fn unary(&mut self, node: Node<'_>) -> Expr {
        let operand = self.field_expr(node, Field::Argument);
        match node.field(Field::Operator).map(|op| op.spelling()) {
            Some("-") => Expr::Unary { op: UnaryOp::Minus, operand },
            Some("+") => Expr::Unary { op: UnaryOp::Plus, operand },
            Some("~") => Expr::Unary { op: UnaryOp::Invert, operand },
            _ => Expr::Missing,
        }
    }

    /// `a and b and c` nests to the left in the tree and is one list here.
    fn boolean(&mut self, node: Node<'_>) -> Expr {
        let operator = |node: Node<'_>| node.field(Field::Operator).map(|op| op.spelling());
        let wanted = operator(node);
        let mut right_to_left = Vec::new();
        let mut current = node;
        loop {
            right_to_left.push(current.field(Field::Right));
            match current.field(Field::Left) {
                Some(left) if left.kind() == Kind::BooleanOperator && operator(left) == wanted => {
                    current = left;
                }
                left => {
                    right_to_left.push(left);
                    break;
                }
            }
        }
        let values = right_to_left
            .into_iter()
            .rev()
            .map(|value| match value {
                Some(value) => self.expr(value),
                None => self.missing(node),
            })
            .collect();
        Expr::Bool { and: wanted == Some("and"), values }
    }

    fn comparison(&mut self, node: Node<'_>) -> Expr {
        let mut first = None;
        let mut rest = Vec::new();
        let mut op = None;
        for child in node.children() {
            if !child.is_named() {
                op = compare_op(child.spelling()).or(op);
            } else if child.kind().is_extra() {
                continue;
            } else if first.is_none() {
                first = Some(self.expr(child));
            } else if let Some(op) = op.take() {
                rest.push((op, self.expr(child)));
            }
        }
        match first {
            Some(first) if !rest.is_empty() => Expr::Compare { first, rest: rest.into() },
            _ => Expr::Missing,
        }
    }

    fn call(&mut self, node: Node<'_>) -> Expr {
        let callee = self.field_expr(node, Field::Function);
        let args = node.field(Field::Arguments).map(|list| self.args(list)).unwrap_or_default();
        Expr::Call { callee, args }
    }

    pub(super) fn args(&mut self, list: Node<'_>) -> Box<[Arg]> {
        if list.kind() == Kind::GeneratorExpression {
            return Box::new([Arg { kind: ArgKind::Positional, value: self.expr(list) }]);
        }
        parts(list).into_iter().map(|node| self.arg(node)).collect()
    }

    fn arg(&mut self, node: Node<'_>) -> Arg {
        match node.kind() {
            Kind::KeywordArgument => {
                let name = node.field(Field::Name).map_or_else(|| Name::from(""), |n| self.name(n));
                let value = self.field_expr(node, Field::Value);
                Arg { kind: ArgKind::Keyword(name), value }
            }
            Kind::ListSplat => Arg { kind: ArgKind::Star, value: self.only_child(node) },
            Kind::DictionarySplat => {
                Arg { kind: ArgKind::DoubleStar, value: self.only_child(node) }
            }
            _ => Arg { kind: ArgKind::Positional, value: self.expr(node) },
        }
    }

    fn attribute(&mut self, node: Node<'_>) -> Expr {
        let value = self.field_expr(node, Field::Object);
        let attr = node.field(Field::Attribute).map_or_else(|| Name::from(""), |n| self.name(n));
        Expr::Attribute { value, attr }
    }

    /// `a.b.c` where the grammar has a dotted name (decorators of old, patterns).
    fn dotted_name(&mut self, node: Node<'_>) -> ExprId {
        let mut value = None;
        for part in parts(node) {
            let name = self.name(part);
            let at = TextRange::new(node.start_byte(), part.end_byte());
            let expr = match value {
                None => Expr::Name(name),
                Some(value) => Expr::Attribute { value, attr: name },
            };
            value = Some(self.add_expr(at, expr));
        }
        value.unwrap_or_else(|| self.missing(node))
    }

    fn subscript(&mut self, node: Node<'_>) -> Expr {
        let value = self.field_expr(node, Field::Value);
        let indices = field_parts(node, Field::Subscript);
        let index = self.index(node, &indices, has_trailing_comma(node));
        Expr::Subscript { value, index }
    }

    /// One index stands for itself; several, or one before a comma, are a tuple.
    fn index(&mut self, node: Node<'_>, indices: &[Node<'_>], comma: bool) -> ExprId {
        match indices {
            [] => self.missing(node),
            [index] if !comma => self.expr(*index),
            [first, ..] => {
                let last = indices.last().unwrap_or(first);
                let at = first.range().cover(last.range());
                let items = self.exprs(indices);
                self.add_expr(at, Expr::Tuple(items))
            }
        }
    }

    fn generic_type(&mut self, node: Node<'_>) -> Expr {
        let children = parts(node);
        let (Some(value), Some(parameters)) = (children.first(), children.get(1)) else {
            return Expr::Missing;
        };
        let value = self.expr(*value);
        let index = self.index(*parameters, &parts(*parameters), false);
        Expr::Subscript { value, index }
    }

    fn slice(&mut self, node: Node<'_>) -> Expr {
        let mut bounds = [None, None, None];
        let mut at = 0;
        for child in node.children() {
            if child.spelling() == ":" {
                at += 1;
            } else if child.is_named()
                && !child.kind().is_extra()
                && let Some(bound) = bounds.get_mut(at)
            {
                *bound = Some(self.expr(child));
            }
        }
        let [lower, upper, step] = bounds;
        Expr::Slice { lower, upper, step }
    }

    fn conditional(&mut self, node: Node<'_>) -> Expr {
        match parts(node).as_slice() {
            [on_true, condition, on_false] => Expr::IfElse {
                condition: self.expr(*condition),
                on_true: self.expr(*on_true),
                on_false: self.expr(*on_false),
            },
            _ => Expr::Missing,
        }
    }

    fn lambda(&mut self, node: Node<'_>) -> Expr {
        let params =
            node.field(Field::Parameters).map(|list| self.params(list)).unwrap_or_default();
        let param = |Param { name, default, kind, .. }| LambdaParam { name, default, kind };
        let params = params.into_iter().map(param).collect();
        Expr::Lambda { params, body: self.field_expr(node, Field::Body) }
    }

    fn walrus(&mut self, node: Node<'_>) -> Expr {
        let target = node.field(Field::Name).map_or_else(|| Name::from(""), |n| self.name(n));
        Expr::Walrus { target, value: self.field_expr(node, Field::Value) }
    }
}

/// True when a comma stands right before the closing bracket of a subscript or launch.
fn has_trailing_comma(node: Node<'_>) -> bool {
    let mut last = "";
    for child in node.children() {
        match child.spelling() {
            "]" => return last == ",",
            _ if child.kind().is_extra() => {}
            kind => last = kind,
        }
    }
    false
}

/// The operator spelled `text`, or `text` followed by `=`.
pub(super) fn binary_op(text: &str) -> Option<BinaryOp> {
    Some(match text {
        "+" => BinaryOp::Add,
        "-" => BinaryOp::Sub,
        "*" => BinaryOp::Mul,
        "/" => BinaryOp::Div,
        "//" => BinaryOp::FloorDiv,
        "%" => BinaryOp::Mod,
        "**" => BinaryOp::Pow,
        "@" => BinaryOp::MatMul,
        "<<" => BinaryOp::Shl,
        ">>" => BinaryOp::Shr,
        "&" => BinaryOp::And,
        "|" => BinaryOp::Or,
        "^" => BinaryOp::Xor,
        _ => return None,
    })
}

fn compare_op(text: &str) -> Option<CompareOp> {
    Some(match text {
        "==" => CompareOp::Eq,
        "!=" | "<>" => CompareOp::Ne,
        "<" => CompareOp::Lt,
        "<=" => CompareOp::Le,
        ">" => CompareOp::Gt,
        ">=" => CompareOp::Ge,
        "is" => CompareOp::Is,
        "is not" => CompareOp::IsNot,
        "in" => CompareOp::In,
        "not in" => CompareOp::NotIn,
        _ => return None,
    })
}
