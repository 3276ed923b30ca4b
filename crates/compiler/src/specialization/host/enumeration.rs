//! Members of enumerations in host code.

use std::sync::Arc;

use super::Host;
use super::value::Value;
use crate::hir::Name;
use crate::project::{ItemRef, class, enumeration, is_member_name};
use crate::specialization::MemberArg;

impl Host<'_> {
    /// A member of an enumeration, or a variable of another class.
    pub(super) fn member_of_class(&mut self, at: ItemRef, name: &str) -> Value {
        let Some(class) = class(self.sources, at) else { return Value::Unknown };
        let fields = || class.fields.iter().filter(|(field, ..)| **field == *name);
        if enumeration(self.sources, at.file, &class).is_none() {
            return self.exact_member(at, name);
        }
        if !is_member_name(name) || fields().next().is_none() {
            return Value::Unknown;
        }
        Value::Member(MemberArg {
            class: at,
            class_name: class.name.clone(),
            name: Name::from(name),
        })
    }

    /// `.name` and `.value` of a member of an enumeration.
    pub(super) fn attribute_of_member(&mut self, member: &MemberArg, attr: &str) -> Value {
        let Some(class) = class(self.sources, member.class) else { return Value::Unknown };
        let value = class.fields.iter().find(|(field, ..)| *field == member.name);
        match (attr, value.and_then(|(_, _, value)| *value)) {
            ("name", _) => Value::Str(member.name.clone()),
            ("value", Some(value)) => {
                let parts = (&class.body, &Arc::new(class.map.clone()));
                self.module_expr(member.class.file, &[], parts, value)
            }
            _ => Value::Unknown,
        }
    }
}
