//! Classes that Python's factories of named tuples make: `collections.namedtuple("P", "a b")`,
//! `typing.NamedTuple("P", [("a", int)])`.

use std::sync::Arc;

use super::Resolution;
use crate::hir::{Arg, ArgKind, Body, Class, Expr, ExprId, Literal, Name, SourceMap};

/// A field of a class with its annotation and its default.
pub type Field = (Name, Option<ExprId>, Option<ExprId>);

/// True for a factory of named tuples.
pub(super) fn makes(called: &Resolution) -> bool {
    let Resolution::External(path) = called else { return false };
    let path: Vec<&str> = path.iter().map(|name| &**name).collect();
    matches!(path[..], ["collections", "namedtuple"] | ["typing", "NamedTuple"])
}

/// The class that the call `value` of a factory makes. Its base is what was called.
pub(super) fn class(body: &Arc<Body>, map: &Arc<SourceMap>, value: ExprId) -> Option<Class> {
    let Expr::Call { callee, args } = &body.exprs[value] else { return None };
    let name = text(body, argument(args, 0, "typename")?)?;
    Some(Class {
        name: Name::from(name),
        body: body.clone(),
        map: (**map).clone(),
        decorators: Vec::new(),
        bases: vec![*callee],
        metaclass: None,
        fields: fields(body, args)?,
        methods: Vec::new(),
    })
}

/// The fields of a named tuple, those of its base first; `None` for other classes.
pub fn named_tuple_fields(class: &Class) -> Option<Vec<Field>> {
    class.bases.iter().find_map(|&base| match &class.body.exprs[base] {
        Expr::Name(name) | Expr::Attribute { attr: name, .. } => {
            is_factory(name).then(|| class.fields.clone())
        }
        Expr::Call { callee, args } => match &class.body.exprs[*callee] {
            Expr::Name(name) | Expr::Attribute { attr: name, .. } if is_factory(name) => {
                fields(&class.body, args)
            }
            _ => None,
        },
        _ => None,
    })
}

fn is_factory(name: &str) -> bool {
    matches!(name, "namedtuple" | "NamedTuple")
}

/// The fields that the arguments of a factory name; `None` where they cannot be read.
fn fields(body: &Body, args: &[Arg]) -> Option<Vec<Field>> {
    let named = argument(args, 1, "field_names").or_else(|| argument(args, 1, "fields"))?;
    let mut fields: Vec<Field> = match &body.exprs[named] {
        Expr::Literal(Literal::Str(names)) => names
            .split([',', ' ', '\t', '\n'])
            .filter(|name| !name.is_empty())
            .map(|name| (Name::from(name), None, None))
            .collect(),
        Expr::List(items) | Expr::Tuple(items) => {
            items.iter().map(|&item| field(body, item)).collect::<Option<_>>()?
        }
        _ => return None,
    };
    let defaults = args.iter().find(|arg| is_keyword(arg, "defaults"));
    if let Some(defaults) = defaults {
        let (Expr::List(values) | Expr::Tuple(values)) = &body.exprs[defaults.value] else {
            return None;
        };
        for (field, value) in fields.iter_mut().rev().zip(values.iter().rev()) {
            field.2 = Some(*value);
        }
    }
    Some(fields)
}

/// `"name"` or `("name", type)`.
fn field(body: &Body, item: ExprId) -> Option<Field> {
    match &body.exprs[item] {
        Expr::Literal(Literal::Str(name)) => Some((Name::from(&**name), None, None)),
        Expr::Tuple(parts) => match parts[..] {
            [name, annotation] => Some((Name::from(text(body, name)?), Some(annotation), None)),
            _ => None,
        },
        _ => None,
    }
}

fn text(body: &Body, expr: ExprId) -> Option<&str> {
    match &body.exprs[expr] {
        Expr::Literal(Literal::Str(text)) => Some(text),
        _ => None,
    }
}

/// The argument at a position, or of that keyword.
fn argument(args: &[Arg], position: usize, keyword: &str) -> Option<ExprId> {
    let positional = args.get(position).filter(|arg| arg.kind == ArgKind::Positional);
    let found = positional.or_else(|| args.iter().find(|arg| is_keyword(arg, keyword)));
    found.map(|arg| arg.value)
}

fn is_keyword(arg: &Arg, keyword: &str) -> bool {
    matches!(&arg.kind, ArgKind::Keyword(name) if &**name == keyword)
}
