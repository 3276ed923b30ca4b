//! Descriptors: variables of a class whose own methods say what it is to read or to set them through an instance.

use crate::hir::Name;
use crate::host::Host;
use crate::host::value::Value;
use crate::project::{ItemRef, Resolution};

impl Host<'_> {
    /// What reading a variable that the class `owner` holds through an object gives, where that is a descriptor.
    pub(crate) fn read_by_descriptor(
        &mut self,
        object: usize,
        owner: ItemRef,
        held: &Value,
        name: &str,
    ) -> Option<Value> {
        self.tell_name(owner, held, name);
        let class = Value::Named(Resolution::Class(owner));
        self.special(held, "__get__", &[Value::Object(object), class])
    }

    /// Sets an attribute of an object by a descriptor of its class; whether there is one.
    pub(crate) fn set_by_descriptor(&mut self, object: usize, name: &Name, value: &Value) -> bool {
        let Some(owner) = self.classes.get(&object).copied() else { return false };
        let held = self.class_variable(owner, name);
        self.tell_name(owner, &held, name);
        self.special(&held, "__set__", &[Value::Object(object), value.clone()]).is_some()
    }

    /// Tells what a class holds under which name that is, as Python does when it makes the class.
    fn tell_name(&mut self, owner: ItemRef, held: &Value, name: &str) {
        if let Value::Object(object) = held
            && self.named.insert(*object)
        {
            let class = Value::Named(Resolution::Class(owner));
            self.special(held, "__set_name__", &[class, Value::Str(name.into())]);
        }
    }
}
