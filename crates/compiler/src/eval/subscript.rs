//! Subscripts: of tuples, of text, and of tiles, which they give more axes.

use super::aggregate::may_have_elements;
use super::dtype::Elem;
use super::report::a;
use super::value::{Const, Tensor, Value};
use super::{Evaluator, Mode, Stop};
use crate::diagnostic::{Code, Diagnostic};
use crate::source::FileRange;

impl Evaluator<'_> {
    /// `object[index]`.
    pub(super) fn subscript(
        &mut self,
        object: &Value,
        index: &Value,
        at: FileRange,
        index_at: FileRange,
    ) -> Value {
        match object {
            Value::Tensor(tensor) if tensor.is_open() => Value::Unknown,
            Value::Tensor(tensor) => {
                let tensor = tensor.clone();
                match self.index_tensor(&tensor, index, at, index_at) {
                    Ok(result) => Value::Tensor(result),
                    Err(_) => Value::Unknown,
                }
            }
            Value::Tuple(tuple)
                if tuple.held.is_python()
                    && self.frame().mode == Mode::Jit
                    && matches!(index, Value::Const(Const::Slice(_))) =>
            {
                let message = "a tuple that one constexpr holds has no slices";
                self.error(Code::TensorIndex, index_at, message);
                Value::Unknown
            }
            Value::Tuple(tuple) => self.index_tuple(&tuple.items, index, index_at),
            Value::Const(Const::Str(text)) => match index {
                Value::Const(Const::Int(position)) => {
                    let count = text.chars().count() as i128;
                    let position = if *position < 0 { position + count } else { *position };
                    match usize::try_from(position).ok().and_then(|at| text.chars().nth(at)) {
                        Some(c) => Value::str(c.to_string()),
                        None => {
                            self.error(Code::IndexRange, index_at, "the index is out of range");
                            Value::Unknown
                        }
                    }
                }
                _ => self.fresh_const(),
            },
            Value::Object(_) if self.defines(object, "__getitem__") => self
                .call_operator(object, "__getitem__", std::slice::from_ref(index), index_at)
                .unwrap_or(Value::Unknown),
            Value::Object(object) if !may_have_elements(&object.class.class) => {
                let message = format!("`{}` has no elements", object.class.class.name);
                self.error(Code::TensorIndex, index_at, message);
                Value::Unknown
            }
            other if has_no_elements(other) => {
                let message = format!("{} has no elements", a(other));
                self.error(Code::TensorIndex, at, message);
                Value::Unknown
            }
            _ => Value::Unknown,
        }
    }

    fn index_tuple(&mut self, items: &[Value], index: &Value, at: FileRange) -> Value {
        match index {
            Value::Const(Const::Int(position)) => {
                let count = items.len() as i128;
                let wrapped = if *position < 0 { position + count } else { *position };
                match usize::try_from(wrapped).ok().and_then(|at| items.get(at)) {
                    Some(item) => item.clone(),
                    None => {
                        let message =
                            format!("index {position} is out of range for a tuple of {count}");
                        self.error(Code::IndexRange, at, message);
                        Value::Unknown
                    }
                }
            }
            Value::Const(Const::Bool(value)) => {
                let index = Value::int(i128::from(*value));
                self.index_tuple(items, &index, at)
            }
            Value::Const(Const::Slice(bounds)) => slice_tuple(items, bounds),
            Value::Const(Const::Symbol(_)) | Value::Unknown => Value::Unknown,
            Value::Tensor(tensor) if tensor.elem.is_unknown() => Value::Unknown,
            other => {
                let what = "the index of a tuple";
                self.not_constexpr(Code::NotConstexpr, what, &other.clone(), at);
                Value::Unknown
            }
        }
    }

    /// `x[:, None]`: inserts axes.
    fn index_tensor(
        &mut self,
        tensor: &Tensor,
        index: &Value,
        at: FileRange,
        index_at: FileRange,
    ) -> Result<Tensor, Stop> {
        let parts: Vec<Value> = match index {
            Value::Tuple(tuple) => tuple.items.clone(),
            Value::Unknown => return Err(Stop::Unknown),
            other => vec![other.clone()],
        };
        let mut kept = 0;
        let mut result = tensor.clone();
        for (axis, part) in parts.iter().enumerate() {
            match part {
                Value::Const(Const::None) => {
                    if result.shape.rank().is_some_and(|rank| rank > 0 && axis > rank) {
                        break;
                    }
                    result = self.insert_axis(&result, axis);
                }
                Value::Const(Const::Slice(bounds)) if bounds.iter().all(Option::is_none) => {
                    kept += 1;
                }
                Value::Unknown | Value::Const(Const::Symbol(_)) => return Err(Stop::Unknown),
                _ => {
                    let diagnostic = Diagnostic::new(
                        Code::TensorIndex,
                        index_at,
                        "tiles are indexed only by `None` and `:`",
                    );
                    let diagnostic = diagnostic.with_note(match matches!(tensor.elem, Elem::Ptr(_)) {
                        true => "to read an element from memory, load it: `tl.load(pointer + index)`",
                        false => "to read single elements, load them from memory, or use `tl.gather` or a masked `tl.sum`",
                    });
                    return Err(self.emit_diagnostic(diagnostic));
                }
            }
        }
        // Before Triton 3.9 there are as many axes as slices, unless one is inserted behind them.
        let misplaced = parts.iter().enumerate().any(|(axis, part)| {
            part.is_none() && result.shape.rank().is_some_and(|rank| axis >= rank)
        });
        if let Some(rank) = tensor.shape.rank()
            && kept > rank
            && ((misplaced && rank > 0) || self.is_3_9())
        {
            let text = super::report::extents(&tensor.shape);
            let message = format!("{kept} axes are indexed, but the tile has shape {text}");
            return Err(self.error(Code::TensorIndex, at, message));
        }
        Ok(result)
    }
}

fn slice_tuple(items: &[Value], bounds: &[Option<Const>; 3]) -> Value {
    let count = items.len() as i128;
    let bound = |value: &Option<Const>, default: i128| match value {
        None => Some(default),
        Some(Const::Int(value)) => Some(if *value < 0 { value + count } else { *value }),
        Some(_) => None,
    };
    let step = match &bounds[2] {
        None => 1,
        Some(Const::Int(step)) if *step != 0 => *step,
        Some(_) => return Value::Unknown,
    };
    let (low, high) = if step > 0 { (0, count) } else { (count - 1, -1) };
    let (Some(start), Some(end)) = (bound(&bounds[0], low), bound(&bounds[1], high)) else {
        return Value::Unknown;
    };
    let mut picked = Vec::new();
    let mut at = start.clamp(-1, count);
    while (step > 0 && at < end.min(count)) || (step < 0 && at > end) {
        if let Some(item) = usize::try_from(at).ok().and_then(|at| items.get(at)) {
            picked.push(item.clone());
        }
        at += step;
    }
    Value::tuple(picked)
}

/// Whether a value is a number, a type or the like, which Python cannot index either.
fn has_no_elements(value: &Value) -> bool {
    match value {
        Value::Range(range) => !range.python,
        Value::Const(constant) => matches!(
            constant,
            Const::None
                | Const::Bool(_)
                | Const::Int(_)
                | Const::Float(_)
                | Const::DType(_)
                | Const::TorchDType(_)
        ),
        _ => false,
    }
}
