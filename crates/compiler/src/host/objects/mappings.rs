//! Instances of the project's own classes that derive from Python's `dict`: what they hold, and what its
//! methods do to them.

use crate::hir::{Body, CompareOp, Expr, ExprId, Name};
use crate::host::Host;
use crate::host::code::arguments::Args;
use crate::host::code::operators;
use crate::host::library::collections;
use crate::host::value::{Dict, Value};
use crate::project::{ItemRef, Resolution, class};

/// The attribute that stands for what such an object holds.
const ITEMS: &str = "dict items";

impl Host<'_> {
    /// Whether a class derives from Python's `dict`.
    pub(crate) fn is_mapping(&self, at: ItemRef) -> bool {
        self.lineage(at).into_iter().any(|at| {
            let Some(class) = class(self.sources, at) else { return false };
            class.bases.iter().zip(self.bases(at)).any(|(base, found)| match found {
                Resolution::Undefined => class.body.exprs[*base].is_name("dict"),
                Resolution::External(path) => {
                    let path: Vec<&str> = path.iter().map(|part| &**part).collect();
                    matches!(path[..], ["collections", "OrderedDict" | "UserDict"])
                }
                _ => false,
            })
        })
    }

    /// What `dict(...)` makes is what an object holds.
    pub(crate) fn fill_mapping(&mut self, object: usize, args: &Args<'_>) {
        let items = self.global_call("dict", args);
        self.replace_attribute(object, &ITEMS.into(), items);
    }

    /// What such an object holds; `None` for other values.
    pub(crate) fn items_of(&self, value: &Value) -> Option<Dict> {
        let Value::Object(object) = value else { return None };
        match self.object_attribute(*object, ITEMS) {
            Value::Dict(items) => Some(items),
            _ => None,
        }
    }

    /// Whether it is such an object.
    pub(crate) fn holds_items(&self, value: &Value) -> bool {
        matches!(value, Value::Object(object) if self.has_own(*object, ITEMS))
    }

    /// `object[key] = value`; false for other objects.
    pub(crate) fn set_mapped(&mut self, object: usize, key: Value, value: &Value) -> bool {
        if !self.has_own(object, ITEMS) {
            return false;
        }
        let mut items = self.items_of(&Value::Object(object));
        let known = items.as_mut().and_then(|items| {
            let key = Some(key).filter(|_| self.doubt.has_run());
            collections::set(items, key?, value.clone())
        });
        let now = known.and(items).map_or(Value::Collection, Value::Dict);
        self.replace_attribute(object, &ITEMS.into(), now);
        true
    }

    /// What a method of `dict` gives, called on such an object.
    pub(crate) fn mapping_method(&mut self, object: usize, name: &str, args: &Args<'_>) -> Value {
        let Some(items) = self.items_of(&Value::Object(object)) else { return Value::Unknown };
        let items = Value::Dict(items);
        if let Some((changed, result)) = collections::changed(&items, name, args) {
            let now = if self.doubt.has_run() { changed } else { Value::Collection };
            self.replace_attribute(object, &ITEMS.into(), now);
            return result;
        }
        collections::told(&items, name, args).unwrap_or(Value::Unknown)
    }

    /// What an attribute of such an object is whose class gives what it holds for attributes:
    /// `__getattr__ = dict.__getitem__`, or `self.__dict__ = self`.
    pub(crate) fn mapped_attribute(&mut self, object: usize, name: &str) -> Option<Value> {
        let items = self.items_of(&Value::Object(object))?;
        let own = self.objects.get(&object)?.get("__dict__");
        let is_itself = own.is_some_and(|own| *own == Value::Object(object));
        let reads =
            is_itself || self.takes_from_dict(object, "__getattr__", &["__getitem__", "get"]);
        let key = Value::Str(name.into());
        let is_there = operators::compare(CompareOp::In, &key, &Value::Dict(items.clone()));
        (reads && is_there == Some(true)).then(|| operators::subscript(&Value::Dict(items), &key))
    }

    /// Sets an attribute of such an object whose class has `__setattr__ = dict.__setitem__`.
    pub(crate) fn set_as_item(&mut self, object: usize, name: &Name, value: &Value) -> bool {
        self.has_own(object, ITEMS)
            && self.takes_from_dict(object, "__setattr__", &["__setitem__"])
            && self.set_mapped(object, Value::Str(name.clone()), value)
    }

    /// Whether the class of an object takes a special method from those of `dict`.
    fn takes_from_dict(&self, object: usize, special: &str, methods: &[&str]) -> bool {
        let Some(at) = self.classes.get(&object).copied() else { return false };
        self.lineage(at).into_iter().filter_map(|at| class(self.sources, at)).any(|class| {
            let field = class.fields.iter().find(|(name, ..)| **name == *special);
            let value = field.and_then(|(_, _, value)| *value);
            value.is_some_and(|value| is_of_dict(&class.body, value, methods))
        })
    }
}

/// True for `dict.method` of one of these methods.
fn is_of_dict(body: &Body, value: ExprId, methods: &[&str]) -> bool {
    matches!(&body.exprs[value], Expr::Attribute { value, attr }
        if body.exprs[*value].is_name("dict") && methods.contains(&&**attr))
}
