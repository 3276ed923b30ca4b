//! Instances of data classes, and what their constructors set; methods of named tuples.

use std::sync::Arc;

use crate::hir::{Arg, ArgKind, Class, Expr, ExprId, Literal, Name};
use crate::host::Host;
use crate::host::code::arguments::Args;
use crate::host::value::Value;
use crate::project::{self, ItemRef, Resolution, Scope, class, is_external, resolve, resolve_expr};
use crate::source::FileId;
use crate::specialization::TupleNames;

impl Host<'_> {
    /// What the constructor of a data class sets: the fields of the classes that it derives from come first.
    pub(crate) fn fill(&mut self, object: usize, at: ItemRef, args: &[(Option<Name>, Value)]) {
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

    /// Whether a class has a constructor that is made of its fields.
    pub(crate) fn is_data_class(&self, at: ItemRef) -> bool {
        let Some(found) = class(self.sources, at) else { return false };
        let scope = project::item_scope(self.sources, at);
        let scope = Scope { file: at.file, path: &scope };
        found.decorators.iter().any(|decorator| {
            let callee = project::callee(&found.body, *decorator);
            is_data_maker(&resolve_expr(self.sources, scope, &found.body, callee))
        }) || self.lineage(at).into_iter().any(|at| self.bases(at).iter().any(is_data_base))
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
            let Some(class) = class(self.sources, of).filter(|_| self.is_data_class(of)) else {
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

    /// What a method of a named tuple gives.
    pub(crate) fn record_method(
        &mut self,
        file: FileId,
        (names, items): (&Arc<TupleNames>, &[Value]),
        name: &str,
        args: &Args<'_>,
    ) -> Value {
        let of_fields = |items: Vec<Value>| Value::Record { names: names.clone(), items };
        match name {
            "_asdict" => {
                let fields = names.fields.iter().map(|field| Value::Str(field.clone()));
                Value::Dict(fields.zip(items.iter().cloned()).collect())
            }
            "_replace" => {
                let mut items = items.to_vec();
                for (field, value) in args.keywords() {
                    let at = names.fields.iter().position(|known| Some(known) == field.as_ref());
                    let Some(at) = at else { return Value::Unknown };
                    items[at] = value;
                }
                of_fields(items)
            }
            _ => {
                let given = std::iter::once((None, of_fields(items.to_vec())));
                let given: Vec<_> = given.chain(args.0.iter().cloned()).collect();
                let method = self.record_class(file, names);
                match method.and_then(|class| self.class_method(class, name)) {
                    Some(method) => self.call_function(method, &given),
                    None => Value::Unknown,
                }
            }
        }
    }

    /// What a property of a named tuple gives.
    pub(crate) fn record_property(
        &mut self,
        file: FileId,
        names: &TupleNames,
        record: &Value,
        name: &str,
    ) -> Value {
        let class = self.record_class(file, names);
        let method = class.and_then(|class| self.class_method(class, name));
        match method.filter(|method| self.is_marked(*method, "property")) {
            Some(method) => self.call_function(method, &[(None, record.clone())]),
            None => Value::Unknown,
        }
    }

    /// The class of a named tuple, as code of a file names it.
    fn record_class(&self, file: FileId, names: &TupleNames) -> Option<ItemRef> {
        let found = resolve(self.sources, Scope { file, path: &[] }, &names.class);
        let Resolution::Class(at) = found else { return None };
        let class = class(self.sources, at)?;
        let fields = project::named_tuple_fields(&class)?;
        fields.iter().map(|(name, ..)| name).eq(&names.fields).then_some(at)
    }

    /// The names of the fields of a data class; `None` for other classes.
    pub(crate) fn data_names(&self, at: ItemRef) -> Option<Vec<Name>> {
        self.is_data_class(at).then_some(())?;
        Some(self.data_fields(at).into_iter().map(|(name, ..)| name).collect())
    }
}

/// What makes data classes of the classes that it decorates.
const DATA_MAKERS: &[&[&str]] = &[
    &["attr", "attrs"],
    &["attr", "dataclass"],
    &["attr", "define"],
    &["attr", "frozen"],
    &["attr", "s"],
    &["attrs", "define"],
    &["attrs", "frozen"],
    &["attrs", "mutable"],
    &["dataclasses", "dataclass"],
    &["pydantic", "dataclasses", "dataclass"],
];

/// Whether it makes a data class of the class that it decorates.
pub(crate) fn is_data_maker(found: &Resolution) -> bool {
    DATA_MAKERS.iter().any(|maker| is_external(found, maker))
}

/// Whether the classes that derive from it are data classes.
pub(crate) fn is_data_base(found: &Resolution) -> bool {
    is_external(found, &["pydantic", "BaseModel"])
}

/// The class of Python's slices, which are kept as records of their bounds.
pub(crate) const SLICE: &str = "slice";

/// `slice(...)`, and what stands for it between brackets.
pub(crate) fn slice(bounds: [Option<Value>; 3]) -> Value {
    let fields = ["start", "stop", "step"].map(Name::from).to_vec();
    let names = Arc::new(TupleNames { class: SLICE.into(), fields });
    Value::Record { names, items: bounds.map(|bound| bound.unwrap_or(Value::None)).to_vec() }
}

/// The bounds of a slice, as they are written between brackets; `None` for other values.
pub(crate) fn slice_bounds(value: &Value) -> Option<[Option<Value>; 3]> {
    let Value::Record { names, items } = value else { return None };
    let items: &[Value; 3] = items[..].try_into().ok().filter(|_| &*names.class == SLICE)?;
    let given = |bound: &Value| (*bound != Value::None).then(|| bound.clone());
    Some(items.each_ref().map(given))
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
