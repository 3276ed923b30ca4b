//! Results per expression, for hover and inlay hints.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::display::{const_text, type_text};
use super::dtype::Elem;
use super::value::{Origin, Tensor, Value};
use super::{OriginData, OriginKind};
use crate::hir::{Body, ExprId, Name};
use crate::source::FileRange;

/// What evaluation found for the expressions and variables of one function.
#[derive(Debug, Clone, Default)]
pub struct BodyTypes {
    /// By the number of the expression.
    values: Vec<Option<Value>>,
    params: Vec<(Name, Value)>,
    origins: Arc<Vec<OriginData>>,
    /// Arguments through which memory is accessed.
    pointers: FxHashSet<Name>,
}

/// What kind of value an expression has, as far as a reader cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ValueClass {
    /// Known at compile time.
    Constexpr,
    /// One number at run time.
    Scalar,
    /// A tile at run time.
    Tile,
    /// An address, a tile of addresses, a block pointer or a descriptor.
    Pointer,
}

/// One step in the explanation why a value is not known at compile time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// Where.
    pub at: FileRange,
    /// What happens there.
    pub message: String,
}

impl BodyTypes {
    pub(super) fn record(&mut self, expr: ExprId, value: &Value) {
        let at = expr.as_u32() as usize;
        if at >= self.values.len() {
            self.values.resize(at + 1, None);
        }
        if !value.is_unknown() || self.values[at].is_none() {
            self.values[at] = Some(value.clone());
        }
    }

    pub(super) fn set_params(&mut self, params: Vec<(Name, Value)>) {
        self.params = params;
    }

    /// Notes that memory is accessed through what `tensor` comes from.
    pub(super) fn note_pointer(&mut self, name: Name) {
        self.pointers.insert(name);
    }

    /// The value, with the type that its use shows: an argument that memory is accessed through
    /// is a pointer.
    fn shown(&self, value: &Value) -> Value {
        match value {
            Value::Tensor(tensor) if tensor.elem.is_unknown() => {
                let argument = argument_behind(&self.origins, tensor.origin);
                let is_pointer = argument.is_some_and(|name| self.pointers.contains(name));
                let elem = if is_pointer { Elem::pointer_to(None) } else { tensor.elem };
                Value::Tensor(Tensor { elem, ..tensor.clone() })
            }
            other => other.clone(),
        }
    }

    /// Evaluation is over, and `origins` are the reasons that values name.
    pub(super) fn finish(&mut self, mut origins: Vec<OriginData>) {
        // Results are kept for as long as a file is looked at.
        self.values.shrink_to_fit();
        origins.shrink_to_fit();
        self.origins = Arc::new(origins);
    }

    /// The abstract value of an expression, if it was evaluated.
    pub fn value(&self, expr: ExprId) -> Option<&Value> {
        self.values.get(expr.as_u32() as usize)?.as_ref()
    }

    /// The type as hover shows it, such as `tile<BLOCK x fp32>`; `None` where nothing is known.
    pub fn type_text(&self, expr: ExprId) -> Option<String> {
        let value = self.value(expr).filter(|value| !value.is_unknown())?;
        Some(type_text(&self.shown(value)))
    }

    /// What kind of value an expression has, where that is known.
    pub fn class(&self, expr: ExprId) -> Option<ValueClass> {
        self.class_of(self.value(expr)?)
    }

    /// The abstract value of a parameter.
    pub fn param(&self, name: &str) -> Option<&Value> {
        self.params.iter().find(|(param, _)| &**param == name).map(|(_, value)| value)
    }

    /// What kind of value a parameter has.
    pub fn param_class(&self, name: &str) -> Option<ValueClass> {
        self.class_of(self.param(name)?)
    }

    fn class_of(&self, value: &Value) -> Option<ValueClass> {
        match self.shown(value) {
            Value::Const(_) => Some(ValueClass::Constexpr),
            Value::BlockPtr(_) | Value::Descriptor(_) => Some(ValueClass::Pointer),
            Value::Tensor(tensor) if matches!(tensor.elem, Elem::Ptr(_)) => {
                Some(ValueClass::Pointer)
            }
            Value::Tensor(tensor) if tensor.is_scalar() => Some(ValueClass::Scalar),
            Value::Tensor(tensor) if tensor.shape.rank().is_some() => Some(ValueClass::Tile),
            _ => None,
        }
    }

    /// The compile-time value as text, such as `128` or `2*BLOCK`, if it is one.
    pub fn const_text(&self, expr: ExprId) -> Option<String> {
        self.value(expr)?.as_const().map(const_text)
    }

    /// The type of a parameter as hover shows it.
    pub fn param_text(&self, name: &str) -> Option<String> {
        Some(type_text(&self.shown(self.param(name)?)))
    }

    /// Why the value of an expression is not known at compile time, nearest reason first.
    pub fn reasons(&self, expr: ExprId) -> Vec<Reason> {
        let Some(Value::Tensor(tensor)) = self.value(expr) else { return Vec::new() };
        let mut reasons = Vec::new();
        let mut next = tensor.origin;
        while let Some(data) = self.origins.get(next.0 as usize) {
            if let Some(message) = reason(&data.kind) {
                reasons.push(Reason { at: data.at, message });
            }
            next = data.parent;
            if next == Origin::NONE || reasons.len() > 8 {
                break;
            }
        }
        reasons
    }

    /// The expressions of `body` that are not understood although all their parts are, in source
    /// order: the causes of all others.
    pub fn not_understood(&self, body: &Body) -> Vec<ExprId> {
        let is_unknown = |id: ExprId| self.value(id).is_some_and(Value::is_unknown);
        let is_cause = |id: &ExprId| {
            let mut known = true;
            body.exprs[*id].for_each_child(|child| known &= !is_unknown(child));
            is_unknown(*id) && known
        };
        body.exprs.keys().filter(is_cause).collect()
    }

    /// Number of expressions evaluated, and how many of them are not understood.
    pub fn coverage(&self) -> (usize, usize) {
        let evaluated = || self.values.iter().flatten();
        (evaluated().count(), evaluated().filter(|value| value.is_unknown()).count())
    }
}

/// The argument that a value comes from, if it is computed from one alone or from one first.
pub(super) fn argument_behind(origins: &[OriginData], origin: Origin) -> Option<&Name> {
    match origins.get(origin.0 as usize).map(|data| &data.kind) {
        Some(OriginKind::Argument(name)) => Some(name),
        _ => None,
    }
}

fn reason(kind: &OriginKind) -> Option<String> {
    match kind {
        OriginKind::Argument(name) => Some(format!("`{name}` is a runtime argument")),
        OriginKind::Literal(name) => Some(format!(
            "assigning a literal to `{name}` makes a tensor; annotate `: tl.constexpr`"
        )),
        OriginKind::Call(name) => Some(format!("the result of `{name}`")),
        OriginKind::LoopIndex | OriginKind::AfterLoop(_) => {
            Some("the index of a run-time loop".to_owned())
        }
    }
}
