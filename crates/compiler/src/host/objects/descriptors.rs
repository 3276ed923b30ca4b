//! Descriptors: variables of a class whose own methods say what it is to read or to set them through an instance.

use crate::hir::Name;
use crate::host::Host;
use crate::host::value::Value;
use crate::project::{ItemRef, Resolution};

/// The methods by which a descriptor is read, set, and told its name.
const READS: &str = "__get__";
const SETS: &str = "__set__";
const NAMES: &str = "__set_name__";

/// A descriptor that the class of an object has.
struct Descriptor {
    object: usize,
    class: ItemRef,
    /// The class that has it.
    owner: ItemRef,
}

impl Host<'_> {
    /// What reading a variable of its class through an object gives, where that is a descriptor.
    pub(crate) fn read_by_descriptor(
        &mut self,
        object: usize,
        owner: ItemRef,
        held: &Value,
        name: &str,
    ) -> Option<Value> {
        let descriptor = self.descriptor(owner, held, name)?;
        let reads = self.class_method(descriptor.class, READS)?;
        let given = [
            Value::Object(descriptor.object),
            Value::Object(object),
            Value::Named(Resolution::Class(descriptor.owner)),
        ];
        Some(self.call_function(reads, &given.map(|value| (None, value))))
    }

    /// Sets an attribute of an object by a descriptor of its class; whether there is one.
    pub(crate) fn set_by_descriptor(&mut self, object: usize, name: &Name, value: &Value) -> bool {
        let Some(owner) = self.classes.get(&object).copied() else { return false };
        let held = self.class_variable(owner, name);
        let Some(descriptor) = self.descriptor(owner, &held, name) else { return false };
        let Some(sets) = self.class_method(descriptor.class, SETS) else { return false };
        let given = [Value::Object(descriptor.object), Value::Object(object), value.clone()];
        self.call_function(sets, &given.map(|value| (None, value)));
        true
    }

    /// A variable of a class that is a descriptor, which knows its name.
    fn descriptor(&mut self, owner: ItemRef, held: &Value, name: &str) -> Option<Descriptor> {
        let Value::Object(object) = *held else { return None };
        let class = self.classes.get(&object).copied()?;
        let mut methods = [READS, SETS].into_iter();
        methods.find(|method| self.class_method(class, method).is_some())?;
        if self.named.insert(object)
            && let Some(names) = self.class_method(class, NAMES)
        {
            let class = Value::Named(Resolution::Class(owner));
            let given = [held.clone(), class, Value::Str(name.into())];
            self.call_function(names, &given.map(|value| (None, value)));
        }
        Some(Descriptor { object, class, owner })
    }
}
