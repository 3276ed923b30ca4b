//! Enumerations of some file: members, their attributes, sets of bits.

use std::sync::Arc;

use super::value::{ClassRef, Const, FunctionKind, FunctionRef, Member, Role, Value};
use super::{Evaluator, Frame, Local, Locals, Mode, Source};
use crate::hir::{BinaryOp, Expr, ExprId, Name};
use crate::project::{self, Also, Enumeration, Resolution, Scope};
use crate::source::{FileRange, TextRange};

/// Enumerations whose members are computed from other enumerations are followed this far.
const MAX_FRAMES: usize = 64;

impl Evaluator<'_> {
    /// What members of a class are, if it is an enumeration.
    pub(super) fn enumeration(&self, class: &ClassRef) -> Option<Enumeration> {
        project::enumeration(self.project, class.file, &class.class)
    }

    /// `Class.NAME`.
    pub(super) fn member(
        &mut self,
        class: &ClassRef,
        kind: Enumeration,
        name: &Name,
        at: FileRange,
    ) -> Value {
        if kind.altered {
            return Value::Unknown;
        }
        let members = self.members(class, kind);
        if let Some(member) = members.into_iter().find(|member| *member.0 == **name) {
            return Value::Const(Const::Member(Arc::new(member.1)));
        }
        // Classes have attributes of their own; a constexpr that holds one has some too.
        let other = name.starts_with('_')
            || matches!(&**name, "value" | "type")
            || self.method_of_enumeration(class, name).is_some();
        if other {
            return Value::Unknown;
        }
        self.no_attribute(&Value::Class(class.clone()), name, at)
    }

    /// The members by their names, also those that are other names of earlier ones.
    fn members(&mut self, class: &ClassRef, kind: Enumeration) -> Vec<(Name, Member)> {
        let mut members: Vec<(Name, Member)> = Vec::new();
        if self.frames.len() > MAX_FRAMES {
            return members;
        }
        let source = Source { body: &class.class.body, map: &class.class.map, file: class.file };
        let mut locals = Locals::default();
        for (name, _, value) in &class.class.fields {
            let Some(value) = value.filter(|_| project::is_member_name(name)) else { continue };
            let value = match self.is_automatic(source, value) {
                true => automatic(kind, name, &members),
                false => self.value_of_member(source, value, locals.clone()),
            };
            let local = Local { value: value.clone(), at: TextRange::default() };
            locals.insert(name.clone(), local);
            let earlier = members.iter().find(|(_, member)| is_equal(&member.value, &value));
            let member = match earlier {
                Some((_, member)) => member.clone(),
                None => {
                    Member { class: class.clone(), kind, name: name.clone(), value, bare: true }
                }
            };
            members.push((name.clone(), member));
        }
        members
    }

    /// What the body of a class binds `name` to, without anything that changes it.
    pub(super) fn class_attribute(&mut self, class: &ClassRef, name: &Name) -> Value {
        if !(class.class.bases.is_empty() && class.class.decorators.is_empty()) {
            return Value::Unknown;
        }
        let body = &class.class;
        let source = Source { body: &body.body, map: &body.map, file: class.file };
        let named = body.fields.iter().filter(|(field, ..)| field == name);
        match named.map(|(_, _, value)| *value).collect::<Vec<_>>()[..] {
            [Some(value)] => self.value_of_member(source, value, Locals::default()),
            _ => Value::Unknown,
        }
    }

    /// True for `auto()`.
    fn is_automatic(&self, source: Source<'_>, value: ExprId) -> bool {
        let Expr::Call { callee, args } = &source.body.exprs[value] else { return false };
        let scope = Scope { file: source.file, path: &[] };
        let callee = project::resolve_expr(self.project, scope, source.body, *callee);
        args.is_empty()
            && matches!(&callee, Resolution::External(path)
                if matches!(&path[..], [module, name] if &**module == "enum" && &**name == "auto"))
    }

    fn value_of_member(&mut self, source: Source<'_>, value: ExprId, locals: Locals) -> Value {
        let frame = Frame::new(Mode::Python, source.file, None, Arc::from([]), locals);
        self.frames.push(frame);
        let value = self.quietly(|this| this.expr(source, value));
        self.frames.pop();
        match value {
            Value::Const(Const::Symbol(_)) | Value::Tensor(_) => Value::Unknown,
            value => value,
        }
    }

    /// An attribute of a member. A constexpr answers `value` by what it holds.
    pub(super) fn member_attribute(
        &mut self,
        member: &Arc<Member>,
        attr: &Name,
        at: FileRange,
    ) -> Value {
        let bare = member.bare || self.frame().mode == Mode::Python;
        match &**attr {
            "value" if bare => member.value.clone(),
            "value" => {
                Value::Const(Const::Member(Arc::new(Member { bare: true, ..(**member).clone() })))
            }
            "name" if member.name.contains('|') || member.name.is_empty() => Value::Unknown,
            "name" => Value::str(member.name.clone()),
            // A constexpr has a type, which only tests of the language ask for.
            "type" => Value::Unknown,
            _ => self.other_attribute(member, attr, at),
        }
    }

    /// A method or property of the class, or what the number or string has that the member is.
    fn other_attribute(&mut self, member: &Arc<Member>, attr: &Name, at: FileRange) -> Value {
        let receiver = Value::Const(Const::Member(member.clone()));
        if let Some((method, property)) = self.method_of_enumeration(&member.class, attr) {
            let method = Value::Function(method);
            let bound = Value::Bound(Arc::new((receiver, method)));
            return if property { self.call_value(&bound, Vec::new(), at) } else { bound };
        }
        if let Some(plain) = member.plain() {
            let plain = Value::Const(plain.clone());
            return self.attribute(&plain, attr, at);
        }
        let class = member.class.clone();
        self.member(&class, member.kind, attr, at)
    }

    /// A method of an enumeration, and whether it is a property.
    fn method_of_enumeration(&self, class: &ClassRef, name: &Name) -> Option<(FunctionRef, bool)> {
        let method = class.class.methods.iter().find(|method| method.name == *name)?;
        let is_property = |decorator: &ExprId| matches!(&method.body.exprs[*decorator], Expr::Name(name) if &**name == "property");
        let role = match method.decorators.as_slice() {
            [] => Role::Constexpr,
            [one] if is_property(one) => Role::Constexpr,
            _ => Role::Unknown,
        };
        let function = FunctionRef {
            file: class.file,
            function: method.clone(),
            kind: FunctionKind { role, noinline: false, must_use: false },
            scope: Arc::from([]),
            closure: Arc::from([]),
        };
        Some((function, method.decorators.iter().any(is_property)))
    }

    /// `a & b`, `a | b`, `a ^ b` of members of one class of flags.
    pub(super) fn combine_flags(&mut self, op: BinaryOp, a: &Member, b: &Member) -> Option<Const> {
        let same = a.class.class.name == b.class.class.name && a.class.file == b.class.file;
        if !(a.kind.flag && b.kind.flag && same) {
            return None;
        }
        let (left, right) = (number(&a.value)?, number(&b.value)?);
        let bits = match op {
            BinaryOp::And => left & right,
            BinaryOp::Or => left | right,
            BinaryOp::Xor => left ^ right,
            _ => return None,
        };
        Some(self.flags(a, bits))
    }

    /// `~a` of a member of a class of flags: the other bits.
    pub(super) fn invert_flags(&mut self, member: &Member) -> Option<Const> {
        let bits = number(&member.value).filter(|_| member.kind.flag)?;
        let all = self.members(&member.class, member.kind);
        let all = all.iter().filter_map(|(_, member)| number(&member.value));
        Some(self.flags(member, all.fold(0, |all, bits| all | bits) & !bits))
    }

    /// The member of the class of `like` with these bits.
    fn flags(&mut self, like: &Member, bits: i128) -> Const {
        let members = self.members(&like.class, like.kind);
        let numbered = || members.iter().filter_map(|(_, it)| Some((it, number(&it.value)?)));
        let exact = numbered().find(|(_, value)| *value == bits);
        let member = exact.map(|(member, _)| member.clone()).unwrap_or_else(|| {
            let single = |value: i128| value.count_ones() == 1 && value & bits == value;
            let names: Vec<&str> =
                numbered().filter(|(_, value)| single(*value)).map(|(it, _)| &*it.name).collect();
            let name = Name::from(names.join("|"));
            Member { name, value: Value::int(bits), ..like.clone() }
        });
        Const::Member(Arc::new(Member { bare: false, ..member }))
    }
}

fn number(value: &Value) -> Option<i128> {
    match value {
        Value::Const(Const::Int(value)) => Some(*value),
        _ => None,
    }
}

/// True for values that are known to be equal: the later name is another one of the same member.
fn is_equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Const(a), Value::Const(b)) => {
            super::constant::compare_consts(crate::hir::CompareOp::Eq, a, b) == Some(true)
        }
        _ => false,
    }
}

/// What `auto()` gives the member `name` after `earlier`.
fn automatic(kind: Enumeration, name: &str, earlier: &[(Name, Member)]) -> Value {
    if kind.also == Some(Also::Str) {
        return Value::str(name.to_lowercase());
    }
    let values: Option<Vec<i128>> = earlier.iter().map(|(_, it)| number(&it.value)).collect();
    let Some(values) = values else { return Value::Unknown };
    let last = values.into_iter().max();
    let next = match last {
        None => 1,
        Some(last) if kind.flag => 1i128 << (128 - last.max(0).leading_zeros()).min(126),
        Some(last) => last.saturating_add(1),
    };
    Value::int(next)
}
