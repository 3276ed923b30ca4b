//! Objects that a launch keeps: what a function computes its grid from outlives the run that met it.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::host::code::frame::Frame;
use crate::host::value::{Callable, Value};
use crate::host::{Host, Variables};
use crate::project::ItemRef;

/// Objects with what they held at a launch. Launches are not told apart by them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kept(Option<Arc<Objects>>);

impl PartialEq for Kept {
    fn eq(&self, _: &Kept) -> bool {
        true
    }
}

#[derive(Debug, Default)]
struct Objects {
    attributes: FxHashMap<usize, Variables>,
    classes: FxHashMap<usize, ItemRef>,
    modules: FxHashMap<usize, &'static str>,
}

impl Host<'_> {
    /// The objects that a function of a grid comes to by its variables.
    pub(crate) fn kept_for(&self, grid: &Value) -> Kept {
        let mut found = FxHashSet::default();
        let mut frames = FxHashSet::default();
        self.reach(grid, &mut found, &mut frames);
        if found.is_empty() {
            return Kept::default();
        }
        let attributes =
            found.iter().filter_map(|object| Some((*object, self.objects.get(object)?.clone())));
        let classes = found.iter().filter_map(|object| Some((*object, *self.classes.get(object)?)));
        let modules = found.iter().filter_map(|object| Some((*object, *self.modules.get(object)?)));
        Kept(Some(Arc::new(Objects {
            attributes: attributes.collect(),
            classes: classes.collect(),
            modules: modules.collect(),
        })))
    }

    /// Knows these objects from now on.
    pub(crate) fn knowing(mut self, kept: &Kept) -> Self {
        if let Some(objects) = &kept.0 {
            self.objects.extend(objects.attributes.iter().map(|(at, held)| (*at, held.clone())));
            self.classes.extend(&objects.classes);
            self.modules.extend(&objects.modules);
        }
        self
    }

    fn reach(
        &self,
        value: &Value,
        found: &mut FxHashSet<usize>,
        frames: &mut FxHashSet<*const Frame>,
    ) {
        match value {
            Value::Object(object) if found.insert(*object) => {
                let held = self.objects.get(object).into_iter().flat_map(Variables::values);
                held.for_each(|value| self.reach(value, found, frames));
            }
            Value::Tuple(items)
            | Value::List(items)
            | Value::Set(items)
            | Value::OneOf(items)
            | Value::Record { items, .. } => {
                items.iter().for_each(|item| self.reach(item, found, frames));
            }
            Value::Dict(entries) => {
                entries.iter().for_each(|(_, value)| self.reach(value, found, frames));
            }
            Value::Callable(
                Callable::Lambda { frame, .. }
                | Callable::Closure { frame, .. }
                | Callable::Local { around: frame, .. },
            ) if frames.insert(Arc::as_ptr(frame)) => {
                let held = frame.variables.values();
                held.for_each(|value| self.reach(value, found, frames));
            }
            Value::Callable(Callable::Partial { callee, args }) => {
                self.reach(callee, found, frames);
                args.iter().for_each(|(_, value)| self.reach(value, found, frames));
            }
            _ => {}
        }
    }
}
