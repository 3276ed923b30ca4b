//! What values come to by variables and attributes: the objects that a launch keeps, as what a function
//! computes its grid from outlives the run that met it, and the memory that others may write.

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

    /// The allocations that values give access to, also by attributes of objects. What functions do that
    /// are given to others is seen where they are called.
    pub(crate) fn reached<'v>(&self, values: impl IntoIterator<Item = &'v Value>) -> Vec<u32> {
        let (mut objects, mut frames) = (FxHashSet::default(), FxHashSet::default());
        let mut found = Vec::new();
        for value in values {
            found.extend(value.allocations());
            if !matches!(value, Value::Callable(_)) {
                self.reach(value, &mut objects, &mut frames);
            }
        }
        let held = objects.iter().filter_map(|object| self.objects.get(object));
        found.extend(held.flat_map(Variables::values).flat_map(Value::allocations));
        found
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
