//! Copies of objects, and what Python tells of data classes.

use std::sync::Arc;

use crate::hir::Name;
use crate::host::Host;
use crate::host::code::arguments::{Args, REST};
use crate::host::value::Value;
use crate::project::Resolution;
use crate::specialization::TupleNames;

/// Objects are copied no deeper than this.
const MAX_DEPTH: usize = 8;

impl Host<'_> {
    /// What a function of `copy` or `dataclasses` gives; `None` for others.
    pub(crate) fn copied_by(&mut self, path: &[Name], args: &Args<'_>) -> Option<Value> {
        let [module, name] = path else { return None };
        match (&**module, &**name) {
            ("copy", "copy") => Some(self.copy_of(args.get(0, "x")?, MAX_DEPTH, false)),
            ("copy", "deepcopy") => Some(self.copy_of(args.get(0, "x")?, MAX_DEPTH, true)),
            ("dataclasses", "field") => match args.keyword("default_factory") {
                Some(Value::Named(Resolution::Class(class))) => Some(self.instance(*class, &[])),
                Some(factory) => Some(self.call_value(factory, &[])),
                None => args.keyword("default").cloned(),
            },
            ("dataclasses", "replace") => {
                let copy = self.copy_of(args.get(0, "obj")?, MAX_DEPTH, false);
                let Value::Object(object) = copy else { return None };
                for (name, value) in args.keywords() {
                    let name = name.filter(|name| **name != *REST)?;
                    self.replace_attribute(object, &name, value);
                }
                self.special(&copy, "__post_init__", &[]);
                Some(copy)
            }
            ("dataclasses", "asdict") => match args.get(0, "obj")? {
                Value::Object(object) => self.attributes_of(*object),
                _ => None,
            },
            ("dataclasses", "astuple") => {
                let Value::Object(object) = args.get(0, "obj")? else { return None };
                let Value::Dict(fields) = self.attributes_of(*object)? else { return None };
                Some(Value::Tuple(fields.into_iter().map(|(_, value)| value).collect()))
            }
            ("dataclasses", "fields") => {
                let class = match args.get(0, "class_or_instance")? {
                    Value::Object(object) => *self.classes.get(object)?,
                    Value::Named(Resolution::Class(class)) => *class,
                    _ => return None,
                };
                Some(Value::Tuple(self.data_names(class)?.into_iter().map(field_of_name).collect()))
            }
            _ => None,
        }
    }

    /// The attributes of an object by name: the fields of a data class, or what a parser or a namespace has.
    pub(crate) fn attributes_of(&self, object: usize) -> Option<Value> {
        let attributes = self.objects.get(&object)?;
        let names: Vec<Name> = match self.classes.get(&object) {
            Some(class) => {
                self.data_names(*class).filter(|names| names.len() == attributes.len())?
            }
            None if self.is_torch_object(object) || self.sparse.contains(&object) => return None,
            None => {
                let mut names: Vec<Name> = attributes.keys().cloned().collect();
                names.sort();
                names
            }
        };
        let entry = |name: Name| {
            let value = self.object_attribute(object, &name);
            (Value::Str(name), value)
        };
        Some(Value::Dict(names.into_iter().map(entry).collect()))
    }

    /// A copy of a value, and of what it holds where it is a deep one.
    fn copy_of(&mut self, value: &Value, depth: usize, deep: bool) -> Value {
        match value {
            Value::Object(object) if depth > 0 => self.copy_of_object(*object, depth - 1, deep),
            Value::Object(_) => Value::Unknown,
            Value::Tensor(tensor) if deep => {
                let is_parameter =
                    tensor.memory().is_some_and(|memory| self.parameters.contains(&memory));
                let copy = Value::Tensor(tensor.copied());
                if is_parameter { self.parameter_of(copy) } else { copy }
            }
            Value::List(items) if deep => Value::List(self.copies_of(items, depth)),
            Value::Tuple(items) if deep => Value::Tuple(self.copies_of(items, depth)),
            Value::Dict(entries) if deep => {
                let copy =
                    |(key, value): &(Value, Value)| (key.clone(), self.copy_of(value, depth, deep));
                Value::Dict(entries.iter().map(copy).collect())
            }
            value => value.clone(),
        }
    }

    fn copies_of(&mut self, items: &[Value], depth: usize) -> Vec<Value> {
        items.iter().map(|item| self.copy_of(item, depth, true)).collect()
    }

    fn copy_of_object(&mut self, object: usize, depth: usize, deep: bool) -> Value {
        let known = self.sparse.contains(&object) || self.states.contains(&object);
        let Some(attributes) = self.objects.get(&object).filter(|_| !known).cloned() else {
            return Value::Unknown;
        };
        let copy = self.object();
        let Value::Object(number) = copy else { return copy };
        if let Some(class) = self.classes.get(&object).copied() {
            self.classes.insert(number, class);
        }
        if let Some(class) = self.modules.get(&object).copied() {
            self.modules.insert(number, class);
        }
        for (name, value) in attributes {
            let value = if deep { self.copy_of(&value, depth, deep) } else { value };
            self.replace_attribute(number, &name, value);
        }
        copy
    }
}

/// What `dataclasses` tells of a field, of which only the name is known.
fn field_of_name(name: Name) -> Value {
    let fields = FIELD.map(Name::from).to_vec();
    let mut items = vec![Value::Unknown; fields.len()];
    items[0] = Value::Str(name);
    Value::Record { names: Arc::new(TupleNames { class: "Field".into(), fields }), items }
}

/// The attributes of `dataclasses.Field`.
const FIELD: [&str; 10] = [
    "name",
    "type",
    "default",
    "default_factory",
    "init",
    "repr",
    "hash",
    "compare",
    "metadata",
    "kw_only",
];
