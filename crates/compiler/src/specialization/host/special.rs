//! Special methods of the project's own classes, which operators and statements of Python call, and the
//! values of methods.

use super::Host;
use super::applied::is_executor;
use super::value::{Callable, Value};
use crate::hir::{Expr, Item, ItemKind, Name};
use crate::project::{self, ItemRef, Resolution, function, item_scope};

/// What makes an attribute of a method that is computed once.
const CACHED: &[&str] = &["functools", "cached_property"];

impl Host<'_> {
    /// What the special method `name` of an object gives; `None` where its class has none.
    pub(super) fn special(&mut self, object: &Value, name: &str, args: &[Value]) -> Option<Value> {
        let Value::Object(number) = object else { return None };
        let class = *self.classes.get(number)?;
        let method = self.class_method(class, name)?;
        let given = std::iter::once(object).chain(args).map(|value| (None, value.clone()));
        Some(self.call_function(method, &given.collect::<Vec<_>>()))
    }

    /// What a loop goes over: what an object gives one by one, or the modules of a sequence.
    pub(super) fn gone_over(&mut self, iterable: Value) -> Value {
        match self.special(&iterable, "__iter__", &[]) {
            Some(given @ (Value::List(_) | Value::Tuple(_))) => given,
            Some(_) => Value::Unknown,
            None => self.iterated(iterable),
        }
    }

    /// What `with manager as target` gives its target. A context manager that is made of a generator
    /// gives what that yields.
    pub(super) fn entered(&mut self, manager: &Value) -> Value {
        match manager {
            Value::List(yielded) => match &yielded[..] {
                [value] => value.clone(),
                _ => Value::Unknown,
            },
            Value::Named(Resolution::External(path)) if is_executor(path) => manager.clone(),
            manager => self.special(manager, "__enter__", &[]).unwrap_or(Value::Unknown),
        }
    }

    /// Whether a method is computed once for an object, which has the result as an attribute.
    pub(super) fn is_cached(&self, method: ItemRef) -> bool {
        let Some(found) = function(self.sources, method) else { return false };
        let scope = item_scope(self.sources, method);
        match &self.decorators(method.file, &scope, &found)[..] {
            [Resolution::External(path)] => {
                path.iter().map(|part| &**part).eq(CACHED.iter().copied())
            }
            _ => false,
        }
    }

    /// What runs when an attribute of an object is set that its class computes.
    pub(super) fn setter(&self, object: usize, name: &str) -> Option<ItemRef> {
        let class = *self.classes.get(&object)?;
        self.lineage(class).into_iter().find_map(|at| {
            let scope = project::item(self.sources, at)?.body_scope();
            let module = self.sources.module(at.file)?;
            let mut named = module.items_named(name);
            let index = named.find(|index| {
                let item = &module.items[*index as usize];
                item.scope == scope && is_setter(item)
            })?;
            Some(ItemRef { file: at.file, index })
        })
    }

    /// Sets an attribute of an object that its class computes.
    pub(super) fn call_setter(&mut self, setter: ItemRef, object: &Value, value: &Value) {
        let Some(function) = function(self.sources, setter) else { return };
        let given = [(None, object.clone()), (None, value.clone())];
        if let Some((frame, _)) = self.frame_with(setter, &function, &given) {
            self.body_with(frame, &function, true);
        }
    }

    /// `setattr(object, attr, value)`: where the name is not known, any attribute may be set.
    pub(super) fn set_by_name(&mut self, object: usize, attr: &Value, value: &Value) {
        match attr {
            Value::Str(name) => self.set_attribute(object, name, value.clone()),
            _ => {
                let attributes = self.objects.get_mut(&object);
                let known = attributes.into_iter().flat_map(|attributes| attributes.values_mut());
                known.for_each(|known| *known = Value::Unknown);
            }
        }
    }

    /// Whether an object has an attribute of its own, whatever that is.
    pub(super) fn has_own(&self, object: usize, name: &str) -> bool {
        self.objects.get(&object).is_some_and(|attributes| attributes.contains_key(name))
    }

    /// `object.method` of a method that nothing decorates but Python's own marks.
    pub(super) fn bound_method(&self, object: usize, class: ItemRef, method: ItemRef) -> Value {
        let Some(found) = function(self.sources, method) else { return Value::Unknown };
        let of = |first: Value| {
            let callee = Box::new(Value::Named(Resolution::Function(method)));
            Value::Callable(Callable::Partial { callee, args: vec![(None::<Name>, first)] })
        };
        match found.decorators.len() {
            0 => of(Value::Object(object)),
            1 if self.is_marked(method, "classmethod") => {
                of(Value::Named(Resolution::Class(class)))
            }
            1 if self.is_marked(method, "staticmethod") => {
                Value::Named(Resolution::Function(method))
            }
            _ => Value::Unknown,
        }
    }
}

/// Whether a method is one under `@name.setter`.
fn is_setter(item: &Item) -> bool {
    let ItemKind::Function(function) = &item.kind else { return false };
    function.decorators.iter().any(|decorator| {
        matches!(&function.body.exprs[*decorator], Expr::Attribute { attr, .. } if &**attr == "setter")
    })
}
