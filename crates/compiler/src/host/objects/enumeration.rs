//! Members of enumerations in host code.

use std::sync::Arc;

use crate::hir::{CompareOp, Expr, ExprId, Name};
use crate::host::Host;
use crate::host::code::operators;
use crate::host::value::Value;
use crate::project::{
    Also, ItemRef, Resolution, Scope, class, enumeration, is_member_name, item_scope, resolve_expr,
};
use crate::specialization::MemberArg;

impl Host<'_> {
    /// A member of an enumeration, or a variable of another class.
    pub(crate) fn member_of_class(&mut self, at: ItemRef, name: &str) -> Value {
        let Some(class) = class(self.sources, at) else { return Value::Unknown };
        let fields = || class.fields.iter().filter(|(field, ..)| **field == *name);
        if !self.is_enumeration(at) {
            return self.exact_member(at, name);
        }
        let Some(own) = fields().next().filter(|_| is_member_name(name)) else {
            return Value::Unknown;
        };
        // What has the value of an earlier member is that one, by another name.
        let text = |value: &Option<ExprId>| value.map(|value| &class.body.exprs[value]);
        let is_same = |(field, _, value): &&(Name, _, _)| {
            is_member_name(field)
                && text(value) == text(&own.2)
                && text(value).is_some_and(|text| matches!(text, Expr::Literal(_)))
        };
        let first = class.fields.iter().find(is_same).unwrap_or(own);
        Value::Member(MemberArg {
            class: at,
            class_name: class.name.clone(),
            name: first.0.clone(),
        })
    }

    /// The member that calling an enumeration with a value gives; `None` for other classes.
    pub(crate) fn member_of_value(
        &mut self,
        at: ItemRef,
        args: &[(Option<Name>, Value)],
    ) -> Option<Value> {
        let class = class(self.sources, at).filter(|_| self.is_enumeration(at))?;
        let [(None, wanted)] = args else { return Some(Value::Unknown) };
        // A member is what it gives itself.
        if matches!(wanted, Value::Member(member) if member.class == at) {
            return Some(wanted.clone());
        }
        for (name, ..) in class.fields.iter().filter(|(name, ..)| is_member_name(name)) {
            let member = self.member_of_class(at, name);
            let Value::Member(known) = &member else { return Some(Value::Unknown) };
            let value = self.attribute_of_member(known, "value");
            match operators::compare(CompareOp::Eq, &value, wanted) {
                Some(true) => return Some(member),
                Some(false) => {}
                None => return Some(Value::Unknown),
            }
        }
        Some(Value::Unknown)
    }

    /// The members of an enumeration, in order; `None` where two of them may be one.
    pub(crate) fn members(&mut self, at: ItemRef) -> Option<Vec<Value>> {
        let class = class(self.sources, at).filter(|_| self.is_enumeration(at))?;
        let names = class.fields.iter().map(|(name, ..)| name).filter(|name| is_member_name(name));
        let mut members: Vec<Value> = Vec::new();
        for name in names {
            let member = self.member_of_class(at, name);
            for other in &members {
                let is_same = self.compared_members(CompareOp::Eq, other, &member)?;
                (!is_same).then_some(())?;
            }
            members.push(member);
        }
        Some(members)
    }

    /// Whether a class is an enumeration.
    pub(crate) fn is_enumeration(&self, at: ItemRef) -> bool {
        let class = class(self.sources, at);
        class.is_some_and(|class| enumeration(self.sources, at.file, &class).is_some())
    }

    /// Whether members of one enumeration are the same: those of one name are, and those of different
    /// values are not.
    pub(crate) fn compared_members(
        &mut self,
        op: CompareOp,
        left: &Value,
        right: &Value,
    ) -> Option<bool> {
        let (Value::Member(left), Value::Member(right)) = (left, right) else { return None };
        let is_own = left.class == right.class && self.class_method(left.class, "__eq__").is_none();
        let same = match left.name == right.name {
            true => Some(true),
            false if self.is_numbered(left) && self.is_numbered(right) => Some(false),
            false => {
                let values = [left, right].map(|member| self.attribute_of_member(member, "value"));
                operators::compare(CompareOp::Eq, &values[0], &values[1]).filter(|same| !same)
            }
        };
        match op {
            _ if !is_own => None,
            CompareOp::Eq | CompareOp::Is => same,
            CompareOp::Ne | CompareOp::IsNot => same.map(|same| !same),
            _ => None,
        }
    }

    /// What an operator computes with: of members of enumerations that are numbers, those.
    pub(crate) fn as_operand(&mut self, value: Value) -> Value {
        let Value::Member(member) = &value else { return value };
        let kind = class(self.sources, member.class)
            .and_then(|class| enumeration(self.sources, member.class.file, &class));
        let is_number =
            kind.is_some_and(|kind| kind.also == Some(Also::Int) && !kind.flag && !kind.altered);
        let number = is_number.then(|| self.attribute_of_member(member, "value"));
        number.filter(|number| matches!(number, Value::Int(Some(_)))).unwrap_or(value)
    }

    /// Whether Python gives a member a value that no other one has which it gives one: `auto()`.
    fn is_numbered(&self, member: &MemberArg) -> bool {
        let Some(class) = class(self.sources, member.class) else { return false };
        let field = class.fields.iter().find(|(field, ..)| *field == member.name);
        let Some(Expr::Call { callee, args }) =
            field.and_then(|(_, _, value)| *value).map(|value| &class.body.exprs[value])
        else {
            return false;
        };
        let scope = item_scope(self.sources, member.class);
        let scope = Scope { file: member.class.file, path: &scope };
        args.is_empty()
            && matches!(resolve_expr(self.sources, scope, &class.body, *callee),
                Resolution::External(path) if path.iter().map(|part| &**part).eq(["enum", "auto"]))
    }

    /// `.name` and `.value` of a member of an enumeration.
    pub(crate) fn attribute_of_member(&mut self, member: &MemberArg, attr: &str) -> Value {
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
