//! Instances of data classes: what their constructors set.

use super::Host;
use super::value::Value;
use crate::hir::{Arg, ArgKind, Class, Expr, ExprId, Literal, Name};
use crate::project::{self, ItemRef, Resolution, Scope, class, resolve_expr};

impl Host<'_> {
    /// What the constructor of a data class sets: the fields of the classes that it derives from come first.
    pub(super) fn fill(&mut self, object: usize, at: ItemRef, args: &[(Option<Name>, Value)]) {
        let mut positional = args.iter().filter(|(name, _)| name.is_none());
        for (name, of, default) in self.data_fields(at) {
            let named = args.iter().find(|(keyword, _)| keyword.as_ref() == Some(&name));
            let given = match default.is_some_and(|default| self.is_left_out(of, default)) {
                true => None,
                false => named.or_else(|| positional.next()),
            };
            let value = match (given, default, class(self.sources, of)) {
                (Some((_, value)), ..) => value.clone(),
                (None, Some(default), Some(class)) => self.class_value(of, &class, default),
                _ => Value::Unknown,
            };
            self.set_attribute(object, &name, value);
        }
    }

    /// Whether the constructor takes no argument for a field.
    fn is_left_out(&self, at: ItemRef, default: ExprId) -> bool {
        let Some(class) = class(self.sources, at) else { return false };
        let given = self.field_arguments(at, &class, default).and_then(|args| named(args, "init"));
        given.is_some_and(|init| {
            matches!(class.body.exprs[init], Expr::Literal(Literal::Bool(false)))
        })
    }

    /// The arguments of `field(...)`, if that is what a field is given in a class.
    fn field_arguments<'c>(
        &self,
        at: ItemRef,
        class: &'c Class,
        default: ExprId,
    ) -> Option<&'c [Arg]> {
        let Expr::Call { callee, args } = &class.body.exprs[default] else { return None };
        let scope = project::item_scope(self.sources, at);
        let scope = Scope { file: at.file, path: &scope };
        match resolve_expr(self.sources, scope, &class.body, *callee) {
            Resolution::External(path) if is_path(&path, &["dataclasses", "field"]) => Some(args),
            _ => None,
        }
    }

    /// The fields of a data class in the order of its constructor, each with the class that says its default.
    fn data_fields(&self, at: ItemRef) -> Vec<(Name, ItemRef, Option<ExprId>)> {
        let mut fields: Vec<(Name, ItemRef, Option<ExprId>)> = Vec::new();
        for of in self.lineage(at).into_iter().rev() {
            let Some(class) = class(self.sources, of).filter(|class| !class.decorators.is_empty())
            else {
                continue;
            };
            for (name, annotation, default) in &class.fields {
                match fields.iter_mut().find(|(known, ..)| known == name) {
                    _ if annotation.is_some_and(|known| is_of_class(&class, known)) => {}
                    Some(known) => (known.1, known.2) = (of, *default),
                    None if annotation.is_some() => fields.push((name.clone(), of, *default)),
                    None => {}
                }
            }
        }
        fields
    }

    /// The names of the fields of a data class; `None` for other classes.
    pub(super) fn data_names(&self, at: ItemRef) -> Option<Vec<Name>> {
        class(self.sources, at).filter(|class| !class.decorators.is_empty())?;
        Some(self.data_fields(at).into_iter().map(|(name, ..)| name).collect())
    }
}

/// Whether an annotation says that a variable is no field.
fn is_of_class(class: &Class, annotation: ExprId) -> bool {
    let exprs = &class.body.exprs;
    let marks = |marker: ExprId| match &exprs[marker] {
        Expr::Name(name) | Expr::Attribute { attr: name, .. } => &**name == "ClassVar",
        _ => false,
    };
    match exprs[annotation] {
        Expr::Subscript { value, .. } => marks(value),
        _ => marks(annotation),
    }
}

/// The argument of a keyword.
fn named(args: &[Arg], keyword: &str) -> Option<ExprId> {
    let is_it = |arg: &&Arg| matches!(&arg.kind, ArgKind::Keyword(name) if &**name == keyword);
    args.iter().find(is_it).map(|arg| arg.value)
}

fn is_path(path: &[Name], of: &[&str]) -> bool {
    path.iter().map(|part| &**part).eq(of.iter().copied())
}
