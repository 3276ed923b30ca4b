//! Values as sequences of tensors, and what becomes of a variable where two paths meet.

use std::mem::discriminant;
use std::sync::Arc;

use super::display::type_text;
use super::dtype::Elem;
use super::value::{BlockPtr, Descriptor, Object, Shape, Tensor, Tuple, Value};
use super::{Evaluator, Local, Locals, Lost};
use crate::diagnostic::{Code, Diagnostic};
use crate::hir::Name;
use crate::ir;
use crate::source::{FileRange, TextRange};

/// The tensors inside a value, in a fixed order. Compile-time parts have none.
pub(super) fn leaves(value: &Value) -> Vec<Tensor> {
    let mut out = Vec::new();
    collect(value, &mut out);
    out
}

fn collect(value: &Value, out: &mut Vec<Tensor>) {
    match value {
        // What has no value is no value of the IR either.
        _ if value.is_void() => {}
        Value::Tensor(tensor) => out.push(tensor.clone()),
        Value::Tuple(tuple) => tuple.items.iter().for_each(|item| collect(item, out)),
        Value::Object(object) => object.fields.iter().for_each(|(_, field)| collect(field, out)),
        Value::BlockPtr(block) => {
            out.push(block.base.clone());
            out.extend(block.shape.iter().chain(&block.strides).chain(&block.offsets).cloned());
        }
        Value::Descriptor(desc) => {
            out.push(desc.base.clone());
            out.extend(desc.shape.iter().chain(&desc.strides).cloned());
        }
        _ => {}
    }
}

/// `value` with its tensors replaced, in the order of [`leaves`].
pub(super) fn rebuild(value: &Value, tensors: &mut impl Iterator<Item = Tensor>) -> Value {
    let mut next = |old: &Tensor| tensors.next().unwrap_or_else(|| old.clone());
    match value {
        _ if value.is_void() => value.clone(),
        Value::Tensor(tensor) => Value::Tensor(next(tensor)),
        Value::Tuple(tuple) => {
            let items = tuple.items.iter().map(|item| rebuild(item, tensors)).collect();
            Value::Tuple(Arc::new(tuple.with_items(items)))
        }
        Value::Object(object) => {
            let fields = object
                .fields
                .iter()
                .map(|(name, field)| (name.clone(), rebuild(field, tensors)))
                .collect();
            Value::Object(Arc::new(Object { class: object.class.clone(), fields }))
        }
        Value::BlockPtr(block) => {
            let base = next(&block.base);
            let shape = block.shape.iter().map(&mut next).collect();
            let strides = block.strides.iter().map(&mut next).collect();
            let offsets = block.offsets.iter().map(&mut next).collect();
            let block = block.block.clone();
            Value::BlockPtr(Arc::new(BlockPtr { base, shape, strides, offsets, block }))
        }
        Value::Descriptor(desc) => {
            let base = next(&desc.base);
            let shape = desc.shape.iter().map(&mut next).collect();
            let strides = desc.strides.iter().map(&mut next).collect();
            let (block, nan_padding) = (desc.block.clone(), desc.nan_padding);
            Value::Descriptor(Arc::new(Descriptor { base, shape, strides, block, nan_padding }))
        }
        other => other.clone(),
    }
}

/// How two values of one variable relate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Relation {
    /// The same type.
    Same,
    /// Certainly different types.
    Different,
    /// Depends on what is not known.
    Unknown,
}

fn both(a: Relation, b: Relation) -> Relation {
    match (a, b) {
        (Relation::Different, _) | (_, Relation::Different) => Relation::Different,
        (Relation::Unknown, _) | (_, Relation::Unknown) => Relation::Unknown,
        _ => Relation::Same,
    }
}

/// Whether two shapes are the same.
pub(super) fn relate_shapes(a: &Shape, b: &Shape) -> Relation {
    let (Some(x), Some(y)) = (a.dims(), b.dims()) else { return Relation::Unknown };
    if x.len() != y.len() {
        return Relation::Different;
    }
    x.iter().zip(y).fold(Relation::Same, |relation, (left, right)| {
        let next = if left == right {
            Relation::Same
        } else if left.certainly_differs(right) {
            Relation::Different
        } else {
            Relation::Unknown
        };
        both(relation, next)
    })
}

/// Whether two pointers point to one type.
fn relate_elements(x: &Tensor, y: &Tensor) -> Relation {
    match (x.elem.pointee(), y.elem.pointee()) {
        (Elem::Unknown, _) | (_, Elem::Unknown) => Relation::Unknown,
        (x, y) if x == y => Relation::Same,
        _ => Relation::Different,
    }
}

/// Whether two values have one type, as variables that paths merge must.
pub(super) fn relate(a: &Value, b: &Value) -> Relation {
    match (a, b) {
        (Value::Unknown, _) | (_, Value::Unknown) => Relation::Unknown,
        (Value::Tensor(x), Value::Tensor(y)) => {
            let elems = match (x.elem, y.elem) {
                (Elem::Unknown, _) | (_, Elem::Unknown) => Relation::Unknown,
                (Elem::Ptr(p), Elem::Ptr(q)) if p.to.is_none() || q.to.is_none() => {
                    Relation::Unknown
                }
                (x, y) if x == y => Relation::Same,
                _ => Relation::Different,
            };
            both(elems, relate_shapes(&x.shape, &y.shape))
        }
        (Value::Tuple(x), Value::Tuple(y)) => {
            if x.items.len() != y.items.len() {
                return Relation::Different;
            }
            let items = x.items.iter().zip(&y.items);
            items.fold(Relation::Same, |relation, (x, y)| both(relation, relate(x, y)))
        }
        (Value::Object(x), Value::Object(y)) => {
            if x.fields.len() != y.fields.len() {
                return Relation::Different;
            }
            let items = x.fields.iter().zip(&y.fields);
            items.fold(Relation::Same, |relation, (x, y)| both(relation, relate(&x.1, &y.1)))
        }
        (Value::Tuple(_), Value::Tensor(tensor)) | (Value::Tensor(tensor), Value::Tuple(_))
            if !tensor.is_open() && !tensor.elem.is_unknown() =>
        {
            Relation::Different
        }
        (Value::BlockPtr(x), Value::BlockPtr(y)) => {
            both(relate_elements(&x.base, &y.base), relate_shapes(&x.block, &y.block))
        }
        (Value::Descriptor(x), Value::Descriptor(y)) => {
            both(relate_elements(&x.base, &y.base), relate_shapes(&x.block, &y.block))
        }
        (Value::Const(x), Value::Const(y)) => {
            match super::constant::compare_consts(crate::hir::CompareOp::Eq, x, y) {
                Some(true) => Relation::Same,
                Some(false) => Relation::Different,
                None => Relation::Unknown,
            }
        }
        (Value::Const(_), Value::Tensor(tensor)) | (Value::Tensor(tensor), Value::Const(_)) => {
            // An argument of unknown type may be that very constant at launch.
            if tensor.is_open() { Relation::Unknown } else { Relation::Different }
        }
        (Value::Function(x), Value::Function(y)) if Arc::ptr_eq(&x.function, &y.function) => {
            Relation::Same
        }
        (Value::Builtin(x), Value::Builtin(y)) if std::ptr::eq(*x, *y) => Relation::Same,
        (a, b) if is_settled(a) && is_settled(b) && discriminant(a) != discriminant(b) => {
            Relation::Different
        }
        _ => Relation::Unknown,
    }
}

/// Whether two tuples differ in the names of their fields, which branches must agree in but the
/// trips of a loop need not.
pub(super) fn names_differ(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Tuple(x), Value::Tuple(y)) => {
            let fields = |tuple: &Tuple| tuple.named.as_ref().map(|named| named.1.clone());
            fields(x) != fields(y) || x.items.iter().zip(&y.items).any(|(x, y)| names_differ(x, y))
        }
        _ => false,
    }
}

/// Whether a value is of its kind at every launch.
fn is_settled(value: &Value) -> bool {
    match value {
        Value::Const(constant) => !constant.is_symbol(),
        Value::Tensor(tensor) => !tensor.is_open(),
        Value::Tuple(_) | Value::Object(_) | Value::BlockPtr(_) | Value::Descriptor(_) => true,
        _ => false,
    }
}

impl Evaluator<'_> {
    /// What is known of a value that is either `a` or `b`.
    pub(super) fn join(&mut self, a: &Value, b: &Value) -> Value {
        match (a, b) {
            (Value::Tensor(x), Value::Tensor(y)) => {
                let elem = if x.elem == y.elem { x.elem } else { Elem::Unknown };
                let shape = self.join_shapes(&x.shape, &y.shape);
                let ir = if x.ir == y.ir { x.ir } else { None };
                Value::Tensor(Tensor {
                    elem,
                    shape,
                    ir,
                    origin: x.origin,
                    open: x.open || y.open,
                    number: None,
                })
            }
            (Value::Const(x), Value::Const(y)) => {
                let equal = super::constant::compare_consts(crate::hir::CompareOp::Eq, x, y);
                let same_kind = discriminant(x) == discriminant(y);
                if equal == Some(true) && same_kind { a.clone() } else { self.fresh_const() }
            }
            (Value::Tuple(x), Value::Tuple(y)) if x.items.len() == y.items.len() => {
                let pairs: Vec<(Value, Value)> =
                    x.items.iter().cloned().zip(y.items.iter().cloned()).collect();
                let items = pairs.iter().map(|(x, y)| self.join(x, y)).collect();
                Value::Tuple(Arc::new(x.with_items(items)))
            }
            // A number that is known on one path only.
            (Value::Const(constant), Value::Tensor(tensor))
            | (Value::Tensor(tensor), Value::Const(constant))
                if tensor.is_scalar() && constant.to_sym().is_some() =>
            {
                Value::Tensor(Tensor::anything(Shape::scalar(), tensor.origin))
            }
            _ if relate(a, b) == Relation::Same => a.clone(),
            _ => match (callables(a), callables(b)) {
                (Some(a), Some(b)) => Value::Either(a.iter().chain(b).cloned().collect()),
                _ => Value::Unknown,
            },
        }
    }

    fn join_shapes(&mut self, a: &Shape, b: &Shape) -> Shape {
        let (Some(x), Some(y)) = (a.dims(), b.dims()) else { return Shape::unknown() };
        if x.len() != y.len() {
            return Shape::unknown();
        }
        let dims: Vec<_> = x
            .iter()
            .zip(y)
            .map(|(x, y)| if x == y { x.clone() } else { self.fresh_symbol() })
            .collect();
        Shape::of(dims)
    }

    /// Joins the locals of two paths where it is not known which one is taken, or whether both
    /// may be at run time. A name that only one path has may have no value.
    pub(super) fn join_locals(&mut self, then: Locals, other: Locals) -> Locals {
        let mut joined = Locals::default();
        for (name, local) in &then {
            let value = match other.get(name) {
                Some(alternative) => self.join(&local.value, &alternative.value),
                None => Value::Unknown,
            };
            joined.insert(name.clone(), Local { value, at: local.at });
        }
        for (name, local) in other {
            joined.entry(name).or_insert(Local { value: Value::Unknown, at: local.at });
        }
        joined
    }

    /// Forgets the names that a region bound and that did not exist before it.
    pub(super) fn forget_inner(&mut self, before: &Locals, place: &'static str) {
        let inner: Vec<(Name, TextRange)> = self
            .frame()
            .locals
            .iter()
            .filter(|(name, _)| !before.contains_key(*name))
            .map(|(name, local)| (name.clone(), local.at))
            .collect();
        for (name, at) in inner {
            self.frame_mut().lose(name, Lost { at, place });
        }
    }

    /// New tensors for the values that a structured operation gives, with the types of `like`.
    pub(super) fn with_handles(like: &[Tensor], handles: &[ir::Value]) -> Vec<Tensor> {
        like.iter()
            .enumerate()
            .map(|(at, tensor)| Tensor { ir: handles.get(at).copied(), ..tensor.clone() })
            .collect()
    }

    /// The variables whose value depends on the branch taken, with both values.
    pub(super) fn merge_locals(
        &mut self,
        before: &Locals,
        then_locals: &Locals,
        else_locals: &Locals,
        at: FileRange,
    ) -> Vec<(Name, Local, Local)> {
        let mut merged = Vec::new();
        let mut lost = Vec::new();
        for (name, then) in then_locals {
            let Some(other) = else_locals.get(name) else {
                lost.push((name.clone(), then.at));
                continue;
            };
            // What branches annotate as `tl.constexpr` or count with stays inside of them.
            let is_counter = self.frame().counters.contains(name);
            if is_counter || !before.contains_key(name) && self.frame().constexprs.contains(name) {
                if !before.contains_key(name) {
                    lost.push((name.clone(), then.at));
                }
                continue;
            }
            let (then, other) = (then.clone(), other.clone());
            if let Some(old) = before.get(name)
                && unchanged(old, &then)
                && unchanged(old, &other)
            {
                continue;
            }
            let old = before.get(name).filter(|old| !self.was_none(name, old));
            let in_both = |old: &Local| old.at != then.at && old.at != other.at;
            if old.is_none() && !before.get(name).is_none_or(in_both) {
                continue;
            }
            self.check_merge(name, old, &then, &other, at);
            merged.push((name.clone(), then, other));
        }
        self.refuse_nothing(before, &merged, at);
        let only_else = else_locals.iter().filter(|(name, _)| !then_locals.contains_key(*name));
        lost.extend(only_else.map(|(name, local)| (name.clone(), local.at)));
        for (name, at) in lost {
            let place = "one branch of an `if` on a run-time condition";
            self.frame_mut().lose(name, Lost { at, place });
        }
        merged
    }

    /// True for a variable that is `None` itself and no constexpr: Triton does not see that one
    /// branch assigns it, so it stays `None` after the `if`.
    fn was_none(&self, name: &Name, old: &Local) -> bool {
        old.value.is_none() && self.frame().bare.contains(name)
    }

    /// Triton ends branches twice that both assign variables, none of which exists at run time.
    fn refuse_nothing(&mut self, before: &Locals, merged: &[(Name, Local, Local)], at: FileRange) {
        let given = |(_, then, other): &(Name, Local, Local)| {
            !leaves(&then.value).is_empty() || !leaves(&other.value).is_empty()
        };
        if !self.emitting() || merged.iter().any(given) {
            return;
        }
        let in_both = |(name, then, other): &&(Name, Local, Local)| {
            let holds = matches!(then.value, Value::Object(_) | Value::Tuple(_));
            let anew = before.get(name).is_none_or(|old| old.at != then.at && old.at != other.at);
            holds && anew
        };
        let Some((name, then, _)) = merged.iter().find(in_both) else { return };
        let message = format!("nothing of `{name}` exists at run time, so no branch can give it");
        let diagnostic = Diagnostic::new(Code::BranchMismatch, at, message)
            .with_related(FileRange { file: at.file, range: then.at }, "assigned here")
            .with_note("assign it before the `if`");
        self.emit_diagnostic(diagnostic);
    }

    /// Both branches must give a variable one type, and keep the type it had.
    fn check_merge(
        &mut self,
        name: &Name,
        before: Option<&Local>,
        then: &Local,
        other: &Local,
        at: FileRange,
    ) {
        if self.speculative > 0 && !self.exact {
            return;
        }
        let place = |local: &Local| FileRange { file: at.file, range: local.at };
        if then.value.is_void() || other.value.is_void() {
            let message =
                format!("`{name}` has no value that the branches of this `if` could give");
            let diagnostic = Diagnostic::new(Code::BranchMismatch, at, message)
                .with_related(place(then), "assigned here")
                .with_note("call what stores on a line of its own");
            self.emit_diagnostic(diagnostic);
            return;
        }
        if before.is_none() && then.value.is_none() && other.value.is_none() {
            let message = format!("both branches of this `if` make `{name}` `None`");
            let diagnostic = Diagnostic::new(Code::BranchMismatch, at, message)
                .with_related(place(then), "assigned here")
                .with_note("assign it before the `if`");
            self.emit_diagnostic(diagnostic);
            return;
        }
        let clash =
            |a: &Value, b: &Value| relate(a, b) == Relation::Different || names_differ(a, b);
        if clash(&then.value, &other.value) {
            let message = format!(
                "`{name}` has different types in the branches of this `if`: `{}` and `{}`",
                type_text(&then.value),
                type_text(&other.value)
            );
            let what = |local: &Local| format!("`{}` here", type_text(&local.value));
            let diagnostic = Diagnostic::new(Code::BranchMismatch, at, message)
                .with_related(place(then), what(then))
                .with_related(place(other), what(other))
                .with_note("give both one type, for example with `.to(...)`");
            self.emit_diagnostic(diagnostic);
            return;
        }
        let Some(old) = before else { return };
        let changed = if unchanged(old, then) { other } else { then };
        if clash(&old.value, &changed.value) {
            let message = format!(
                "`{name}` is `{}` before this `if`, but a branch makes it `{}`",
                type_text(&old.value),
                type_text(&changed.value)
            );
            let diagnostic = Diagnostic::new(Code::BranchMismatch, at, message)
                .with_related(place(old), "its value before")
                .with_related(place(changed), "assigned with another type here");
            self.emit_diagnostic(diagnostic);
        }
    }

    /// The value of a variable after an `if` of which both branches must agree in type: what one
    /// side does not know, the other may.
    pub(super) fn join_typed(&mut self, a: &Value, b: &Value) -> Value {
        match (a, b) {
            (Value::Tensor(x), Value::Tensor(y)) => {
                let shape = if x.shape.rank().is_some() { &x.shape } else { &y.shape };
                let elem = x.elem.or(y.elem);
                Value::Tensor(Tensor {
                    elem,
                    shape: shape.clone(),
                    ir: None,
                    origin: x.origin,
                    open: false,
                    number: None,
                })
            }
            _ => self.join(a, b),
        }
    }
}

/// The functions that a value may be.
fn callables(value: &Value) -> Option<&[Value]> {
    match value {
        Value::Function(_) | Value::Builtin(_) => Some(std::slice::from_ref(value)),
        Value::Either(functions) => Some(functions),
        _ => None,
    }
}

/// True when a variable was not assigned in a branch.
fn unchanged(before: &Local, after: &Local) -> bool {
    if before.at != after.at {
        return false;
    }
    match (&before.value, &after.value) {
        (Value::Tensor(a), Value::Tensor(b)) => a.ir == b.ir && a.origin == b.origin,
        (Value::Tuple(a), Value::Tuple(b)) => Arc::ptr_eq(a, b),
        (Value::BlockPtr(a), Value::BlockPtr(b)) => Arc::ptr_eq(a, b),
        (Value::Descriptor(a), Value::Descriptor(b)) => Arc::ptr_eq(a, b),
        (Value::Object(a), Value::Object(b)) => Arc::ptr_eq(a, b),
        _ => relate(&before.value, &after.value) != Relation::Different,
    }
}
