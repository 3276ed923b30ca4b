//! Functions and classes.

use std::sync::Arc;

use super::broken::BrokenLines;
use super::{Lowering, parts};
use crate::hir::collections;
use crate::hir::{Class, Expr, Function, Literal, Name, Param, ParamKind, Stmt};
use crate::syntax::Parse;
use crate::syntax::kind::{Field, Kind};
use crate::syntax::node::{Node, Nodes};

/// Lowers a `def` with its decorators.
pub(super) fn function(text: &str, definition: Node<'_>, decorators: &[Node<'_>]) -> Function {
    let mut lowering = Lowering::new(text);
    lowering.broken = BrokenLines::below(text, definition);
    let decorators = lowering.decorators(decorators);
    let params = definition.field(Field::Parameters).map(|list| lowering.params(list));
    let returns = definition.field(Field::ReturnType).map(|node| lowering.expr(node));
    let root = lowering.field_block(definition, Field::Body);
    let doc = lowering.take_docstring(&root);
    lowering.body.root = root;
    lowering.note_broken_names();
    let name = definition.field(Field::Name).map_or_else(|| Name::from(""), |n| lowering.name(n));
    let globals = std::mem::take(&mut lowering.globals);
    let (body, map) = lowering.finish();
    let params = params.unwrap_or_default();
    let changes = collections::changed_by(&body, &params);
    Function { name, decorators, params, returns, doc, body, map, changes, globals }
}

/// The method that `name = lambda ...: value` of a class body makes.
pub(super) fn lambda_method(text: &str, statement: Node<'_>) -> Option<Function> {
    let assignment = *parts(statement).first()?;
    let name = assignment.field(Field::Left).filter(|left| left.kind() == Kind::Identifier)?;
    let lambda = assignment.field(Field::Right).filter(|right| right.kind() == Kind::Lambda)?;
    let mut lowering = Lowering::new(text);
    let params = lambda.field(Field::Parameters).map(|list| lowering.params(list));
    let result = lowering.field_expr(lambda, Field::Body);
    let returned = lowering.add_stmt(lambda.range(), Stmt::Return(Some(result)));
    lowering.body.root.push(returned);
    let name = lowering.name(name);
    let (body, map) = lowering.finish();
    let params = params.unwrap_or_default();
    let (decorators, changes, globals) = Default::default();
    let (returns, doc) = (None, None);
    Some(Function { name, decorators, params, returns, doc, body, map, changes, globals })
}

/// Lowers a `class` with its decorators; `methods` were lowered by the caller.
pub(super) fn class(
    text: &str,
    definition: Node<'_>,
    decorators: &[Node<'_>],
    methods: Vec<Arc<Function>>,
) -> Class {
    let mut lowering = Lowering::new(text);
    let decorators = lowering.decorators(decorators);
    let (mut bases, mut metaclass) = (Vec::new(), None);
    for base in definition.field(Field::Superclasses).map(parts).unwrap_or_default() {
        if base.kind() != Kind::KeywordArgument {
            bases.push(lowering.expr(base));
            continue;
        }
        let is_metaclass = |keyword: Node<'_>| &*lowering.name(keyword) == "metaclass";
        if base.field(Field::Name).is_some_and(is_metaclass) {
            metaclass = Some(lowering.field_expr(base, Field::Value));
        }
    }
    let fields =
        definition.field(Field::Body).map(|body| lowering.fields(body)).unwrap_or_default();
    let name = definition.field(Field::Name).map_or_else(|| Name::from(""), |n| lowering.name(n));
    let (body, map) = lowering.finish();
    Class { name, body, map, decorators, bases, metaclass, fields, methods }
}

impl Lowering<'_> {
    fn decorators(&mut self, nodes: &[Node<'_>]) -> Vec<super::ExprId> {
        nodes
            .iter()
            .map(|node| match parts(*node).first() {
                Some(value) => match self.evaluated(*value) {
                    Some(nodes) => self.expr(innermost(nodes.top())),
                    None => self.expr(*value),
                },
                None => self.missing(*node),
            })
            .collect()
    }

    /// The expression that a decorator `@eval("expression")` evaluates, in a text in which it has the place
    /// that it has in this one.
    fn evaluated(&self, decorator: Node<'_>) -> Option<Nodes> {
        let callee = decorator.field(Field::Function).filter(|_| decorator.kind() == Kind::Call)?;
        let [literal] = parts(decorator.field(Field::Arguments)?)[..] else { return None };
        let is_plain = self.text(callee) == "eval" && literal.kind() == Kind::String;
        let [start, content, _] = parts(literal)[..] else { return None };
        let is_constant = is_plain
            && self.text(start).trim_matches(['"', '\'']).is_empty()
            && content.kind() == Kind::StringContent
            && !self.text(content).contains('\\');
        let range = content.range();
        let before = (range.start as usize).checked_sub(1).filter(|_| is_constant)?;
        let text = format!("({:before$}{})", "", self.text(content));
        let parse = Parse::new(text);
        (!parse.has_error()).then(|| Nodes::of(parse.root()))
    }

    pub(super) fn params(&mut self, list: Node<'_>) -> Vec<Param> {
        let mut params = Vec::new();
        let mut kind = ParamKind::Normal;
        for node in parts(list) {
            match node.kind() {
                Kind::KeywordSeparator => kind = ParamKind::KeywordOnly,
                Kind::PositionalSeparator => {
                    params.iter_mut().for_each(|param: &mut Param| {
                        param.kind = ParamKind::PositionalOnly;
                    });
                }
                _ => {
                    let Some(param) = self.param(node, kind) else { continue };
                    if param.kind == ParamKind::VarArgs {
                        kind = ParamKind::KeywordOnly;
                    }
                    params.push(param);
                }
            }
        }
        params
    }

    fn param(&mut self, node: Node<'_>, kind: ParamKind) -> Option<Param> {
        let (pattern, annotation, default) = match node.kind() {
            Kind::Identifier | Kind::ListSplatPattern | Kind::DictionarySplatPattern => {
                (node, None, None)
            }
            Kind::TypedParameter => (node.named_children().next()?, node.field(Field::Type), None),
            Kind::DefaultParameter => (node.field(Field::Name)?, None, node.field(Field::Value)),
            Kind::TypedDefaultParameter => {
                (node.field(Field::Name)?, node.field(Field::Type), node.field(Field::Value))
            }
            _ => return None,
        };
        let (name, kind) = match pattern.kind() {
            Kind::Identifier => (pattern, kind),
            Kind::ListSplatPattern => (pattern.named_children().next()?, ParamKind::VarArgs),
            Kind::DictionarySplatPattern => (pattern.named_children().next()?, ParamKind::KwArgs),
            _ => return None,
        };
        Some(Param {
            name: self.name(name),
            range: name.range(),
            annotation: annotation.map(|node| self.expr(node)),
            default: default.map(|node| self.expr(node)),
            kind,
        })
    }

    /// The docstring that opens `stmts`, whose statement becomes a `pass`.
    fn take_docstring(&mut self, stmts: &[super::StmtId]) -> Option<Arc<str>> {
        let first = *stmts.first()?;
        let Stmt::Expr(value) = self.body.stmts[first] else { return None };
        let Expr::Literal(Literal::Str(text)) = &self.body.exprs[value] else { return None };
        let doc = clean_docstring(text);
        self.body.stmts[first] = Stmt::Pass;
        Some(Arc::from(doc))
    }

    /// `name: annotation = default` and `name = default` of a class body.
    fn fields(
        &mut self,
        body: Node<'_>,
    ) -> Vec<(Name, Option<super::ExprId>, Option<super::ExprId>)> {
        let mut fields = Vec::new();
        for statement in parts(body) {
            let Some(assignment) = parts(statement).first().copied() else { continue };
            if assignment.kind() != Kind::Assignment {
                continue;
            }
            let left = assignment.field(Field::Left).filter(|left| left.kind() == Kind::Identifier);
            let Some(left) = left else { continue };
            let annotation = assignment.field(Field::Type).map(|node| self.expr(node));
            let value = assignment.field(Field::Right).map(|node| self.expr(node));
            fields.push((self.name(left), annotation, value));
        }
        fields
    }
}

/// A docstring without the indentation of the code around it, as `inspect.cleandoc` does.
fn clean_docstring(text: &str) -> String {
    let indent = text
        .lines()
        .skip(1)
        .filter(|line| !line.trim().is_empty())
        .map(|line| line.len() - line.trim_start().len())
        .min()
        .unwrap_or(0);
    let mut lines: Vec<&str> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        lines.push(match index {
            0 => line.trim(),
            _ => line.get(indent..).unwrap_or_default().trim_end(),
        });
    }
    lines.join("\n").trim().to_owned()
}

/// The expression that all of a text in parentheses is.
fn innermost(node: Node<'_>) -> Node<'_> {
    match (node.kind(), parts(node).as_slice()) {
        (Kind::Module | Kind::ExpressionStatement | Kind::ParenthesizedExpression, [one]) => {
            innermost(*one)
        }
        _ => node,
    }
}
