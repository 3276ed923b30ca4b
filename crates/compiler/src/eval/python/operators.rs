//! Operators of Python.

use std::cell::RefCell;
use std::rc::Rc;

use super::super::Evaluator;
use super::super::constant::compare_consts;
use super::super::size::MAX_ITEMS;
use super::super::value::{Const, Object, Value};
use super::{Exit, Obj, Run, raise, text};
use crate::builtins::Rule;
use crate::hir::{BinaryOp, CompareOp, UnaryOp};

/// What Triton says where something at compile time computes with a tensor.
pub(super) const NO_KERNEL: &str = "Did you forget to add @triton.jit ? (`_semantic` argument must be provided outside of JIT functions.)";

impl Evaluator<'_> {
    /// `left op right`.
    pub(super) fn python_binary(&mut self, op: BinaryOp, left: &Obj, right: &Obj) -> Run<Obj> {
        if let (Obj::Constexpr(_), _) | (_, Obj::Constexpr(_)) = (left, right) {
            if matches!((left, right), (Obj::Sequence(..), _)) {
                return Err(Exit::Unknown);
            }
            let result = self.python_binary(op, &left.unwrapped(), &right.unwrapped())?;
            return Ok(Obj::Constexpr(Rc::new(result)));
        }
        if is_tensor(left) || is_tensor(right) {
            return raise("ValueError", NO_KERNEL);
        }
        if op == BinaryOp::Or && is_class(left) && is_class(right) {
            return Ok(Obj::tuple(vec![left.clone(), right.clone()]));
        }
        match (left, right) {
            (Obj::Const(Const::Str(format)), _) if op == BinaryOp::Mod => {
                let formatted = text::percent(format, right).ok_or(Exit::Unknown)?;
                Ok(Obj::str(&formatted))
            }
            (Obj::Const(a), Obj::Const(b)) => self.python_numbers(op, a, b),
            (Obj::Tuple(a, _), Obj::Tuple(b, _)) if op == BinaryOp::Add => {
                Ok(Obj::tuple(a.iter().chain(b.iter()).cloned().collect()))
            }
            (Obj::List(a), Obj::List(b)) if op == BinaryOp::Add => {
                Ok(Obj::list(a.borrow().iter().chain(b.borrow().iter()).cloned().collect()))
            }
            (Obj::Tuple(items, _), Obj::Const(Const::Int(count)))
            | (Obj::Const(Const::Int(count)), Obj::Tuple(items, _))
                if op == BinaryOp::Mul =>
            {
                Ok(Obj::tuple(repeated(items, *count)?))
            }
            (Obj::List(items), Obj::Const(Const::Int(count)))
            | (Obj::Const(Const::Int(count)), Obj::List(items))
                if op == BinaryOp::Mul =>
            {
                Ok(Obj::list(repeated(&items.borrow(), *count)?))
            }
            (Obj::Sequence(a, _), _) if op == BinaryOp::Add => match right {
                Obj::Sequence(b, _) => {
                    Ok(Obj::Sequence(Rc::new(a.iter().chain(b.iter()).cloned().collect()), None))
                }
                Obj::Tuple(b, _) => {
                    Ok(Obj::Sequence(Rc::new(a.iter().chain(b.iter()).cloned().collect()), None))
                }
                Obj::Const(_) => {
                    let class = right.class_text();
                    raise("AttributeError", format!("'{class}' object has no attribute 'values'"))
                }
                _ => Err(Exit::Unknown),
            },
            (Obj::Sequence(..), _) if op == BinaryOp::Mul => raise("AssertionError", ""),
            (Obj::Set(a), Obj::Set(b)) => {
                let (a, b) = (a.borrow().clone(), b.borrow().clone());
                let mut result = Vec::new();
                for item in &a {
                    let shared = self.python_contains(&b, item)?;
                    if match op {
                        BinaryOp::And => shared,
                        BinaryOp::Sub | BinaryOp::Xor => !shared,
                        BinaryOp::Or => true,
                        _ => return unsupported(op, left, right),
                    } {
                        result.push(item.clone());
                    }
                }
                for item in &b {
                    if matches!(op, BinaryOp::Or | BinaryOp::Xor)
                        && !self.python_contains(&a, item)?
                    {
                        result.push(item.clone());
                    }
                }
                Ok(Obj::Set(Rc::new(RefCell::new(result))))
            }
            (Obj::Dict(a), Obj::Dict(b)) if op == BinaryOp::Or => {
                let made = Obj::Dict(Rc::new(RefCell::new(a.borrow().clone())));
                for (key, value) in b.borrow().iter() {
                    self.python_store(&made, key, value.clone())?;
                }
                Ok(made)
            }
            (Obj::Value(Value::Object(object)), _) | (_, Obj::Value(Value::Object(object)))
                if may_define_operators(object) =>
            {
                Err(Exit::Unknown)
            }
            _ => unsupported(op, left, right),
        }
    }

    fn python_numbers(&mut self, op: BinaryOp, a: &Const, b: &Const) -> Run<Obj> {
        if let Some(result) = self.const_binary(op, a, b) {
            return if result.is_symbol() { Err(Exit::Unknown) } else { Ok(Obj::Const(result)) };
        }
        let (left, right) = (Obj::Const(a.clone()), Obj::Const(b.clone()));
        let number =
            |value: &Const| matches!(value, Const::Int(_) | Const::Bool(_) | Const::Float(_));
        let known = |value: &Const| {
            number(value)
                || matches!(
                    value,
                    Const::None | Const::Str(_) | Const::DType(_) | Const::BlockType(..)
                )
        };
        if number(a) && number(b) {
            let float = matches!(a, Const::Float(_)) || matches!(b, Const::Float(_));
            return match op {
                BinaryOp::Div | BinaryOp::FloorDiv | BinaryOp::Mod if b.truth() == Some(false) => {
                    raise("ZeroDivisionError", "division by zero")
                }
                BinaryOp::MatMul => unsupported(op, &left, &right),
                BinaryOp::And | BinaryOp::Or | BinaryOp::Xor | BinaryOp::Shl | BinaryOp::Shr
                    if float =>
                {
                    unsupported(op, &left, &right)
                }
                BinaryOp::Shl | BinaryOp::Shr if matches!(b, Const::Int(count) if *count < 0) => {
                    raise("ValueError", "negative shift count")
                }
                // A result that is too large.
                _ => Err(Exit::Unknown),
            };
        }
        if known(a) && known(b) { unsupported(op, &left, &right) } else { Err(Exit::Unknown) }
    }

    /// A unary operator but `not`.
    pub(super) fn python_unary(&mut self, op: UnaryOp, value: &Obj) -> Run<Obj> {
        match value {
            Obj::Constexpr(value) => {
                let result = self.python_unary(op, value)?;
                Ok(Obj::Constexpr(Rc::new(result)))
            }
            Obj::Value(Value::Tensor(_)) => raise("ValueError", NO_KERNEL),
            Obj::Const(constant) => match self.const_unary(op, constant) {
                Some(result) if !result.is_symbol() => Ok(Obj::Const(result)),
                None if !matches!(constant, Const::Int(_) | Const::Member(_) | Const::Enum(_)) => {
                    bad_operand(op, value)
                }
                _ => Err(Exit::Unknown),
            },
            Obj::Tuple(..) | Obj::Sequence(..) | Obj::List(_) | Obj::Dict(_) | Obj::Set(_) => {
                bad_operand(op, value)
            }
            Obj::Value(Value::Function(_) | Value::Module(_)) => bad_operand(op, value),
            _ => Err(Exit::Unknown),
        }
    }

    /// `bool(value)`.
    pub(super) fn python_truth(&mut self, value: &Obj) -> Run<bool> {
        match value {
            Obj::Const(value) => value.truth().ok_or(Exit::Unknown),
            Obj::Constexpr(value) => self.python_truth(value),
            Obj::Tuple(items, _) | Obj::Sequence(items, _) => Ok(!items.is_empty()),
            Obj::List(items) | Obj::Set(items) => Ok(!items.borrow().is_empty()),
            Obj::Dict(entries) => Ok(!entries.borrow().is_empty()),
            Obj::Range(start, end, step) => {
                Ok(super::super::range::iterations(*start, *end, *step) > 0)
            }
            Obj::Value(Value::Object(_)) => Err(Exit::Unknown),
            // Whatever has neither a length nor a truth value of its own.
            _ => Ok(true),
        }
    }

    /// `left op right` for a comparison.
    pub(super) fn python_compare(&mut self, op: CompareOp, left: &Obj, right: &Obj) -> Run<Obj> {
        match op {
            CompareOp::Is | CompareOp::IsNot => {
                let same = is_same(left, right).ok_or(Exit::Unknown)?;
                return Ok(Obj::bool(same == (op == CompareOp::Is)));
            }
            CompareOp::In | CompareOp::NotIn => {
                let inside = self.python_inside(left, right)?;
                return Ok(Obj::bool(inside == (op == CompareOp::In)));
            }
            _ => {}
        }
        if let (Obj::Constexpr(_), _) | (_, Obj::Constexpr(_)) = (left, right) {
            if matches!(left, Obj::Sequence(..)) || matches!(right, Obj::Sequence(..)) {
                return Err(Exit::Unknown);
            }
            let result = self.python_compare(op, &left.unwrapped(), &right.unwrapped())?;
            return Ok(Obj::Constexpr(Rc::new(result)));
        }
        if is_tensor(left) || is_tensor(right) {
            return raise("ValueError", NO_KERNEL);
        }
        let equality = matches!(op, CompareOp::Eq | CompareOp::Ne);
        if let (Obj::Sequence(items, _), other) | (other, Obj::Sequence(items, _)) = (left, right) {
            return match (op, other) {
                (CompareOp::Eq, Obj::Sequence(others, _) | Obj::Tuple(others, _)) => {
                    let same = self.python_equal_items(items, others)?;
                    Ok(Obj::Constexpr(Rc::new(Obj::bool(same))))
                }
                (CompareOp::Eq | CompareOp::Ne, Obj::Const(_)) => {
                    let class = other.class_text();
                    raise("AttributeError", format!("'{class}' object has no attribute 'values'"))
                }
                (_, Obj::Const(_) | Obj::Sequence(..)) if !equality => not_ordered(op, left, right),
                _ => Err(Exit::Unknown),
            };
        }
        if equality {
            return Ok(Obj::bool(self.python_equal(left, right)? == (op == CompareOp::Eq)));
        }
        match (left, right) {
            (Obj::Const(a), Obj::Const(b)) => match compare_consts(op, a, b) {
                Some(result) => Ok(Obj::bool(result)),
                None if matches!(a, Const::Member(_)) || matches!(b, Const::Member(_)) => {
                    Err(Exit::Unknown)
                }
                None => not_ordered(op, left, right),
            },
            (Obj::Tuple(a, _), Obj::Tuple(b, _)) => self.python_order(op, a, b),
            (Obj::List(a), Obj::List(b)) => {
                let (a, b) = (a.borrow().clone(), b.borrow().clone());
                self.python_order(op, &a, &b)
            }
            (Obj::Set(_), Obj::Set(_)) => Err(Exit::Unknown),
            (Obj::Value(Value::Object(_)), _) | (_, Obj::Value(Value::Object(_))) => {
                Err(Exit::Unknown)
            }
            _ => not_ordered(op, left, right),
        }
    }

    /// Sequences are ordered as their first different elements.
    fn python_order(&mut self, op: CompareOp, a: &[Obj], b: &[Obj]) -> Run<Obj> {
        for (x, y) in a.iter().zip(b) {
            if !self.python_equal(x, y)? {
                return self.python_compare(op, x, y);
            }
        }
        let (x, y) = (a.len() as i128, b.len() as i128);
        let result = compare_consts(op, &Const::Int(x), &Const::Int(y));
        result.map(Obj::bool).ok_or(Exit::Unknown)
    }

    /// `left == right` as a bool.
    pub(super) fn python_equal(&mut self, left: &Obj, right: &Obj) -> Run<bool> {
        if is_tensor(left) || is_tensor(right) {
            return raise("ValueError", NO_KERNEL);
        }
        match (left, right) {
            (Obj::Constexpr(_), _)
            | (_, Obj::Constexpr(_))
            | (Obj::Sequence(..), _)
            | (_, Obj::Sequence(..)) => {
                let equal = self.python_compare(CompareOp::Eq, left, right)?;
                self.python_truth(&equal)
            }
            (Obj::Const(a), Obj::Const(b)) => {
                compare_consts(CompareOp::Eq, a, b).ok_or(Exit::Unknown)
            }
            (Obj::Tuple(a, _), Obj::Tuple(b, _)) => self.python_equal_items(a, b),
            (Obj::List(a), Obj::List(b)) => {
                let (a, b) = (a.borrow().clone(), b.borrow().clone());
                self.python_equal_items(&a, &b)
            }
            (Obj::Value(Value::Object(_)), _) | (_, Obj::Value(Value::Object(_))) => {
                Err(Exit::Unknown)
            }
            (Obj::Dict(_), Obj::Dict(_))
            | (Obj::Set(_), Obj::Set(_))
            | (Obj::Range(..), Obj::Range(..)) => Err(Exit::Unknown),
            _ => is_same(left, right).ok_or(Exit::Unknown),
        }
    }

    fn python_equal_items(&mut self, a: &[Obj], b: &[Obj]) -> Run<bool> {
        if a.len() != b.len() {
            return Ok(false);
        }
        for (x, y) in a.iter().zip(b) {
            if is_same(x, y) != Some(true) && !self.python_equal(x, y)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// `item in items`.
    pub(super) fn python_contains(&mut self, items: &[Obj], item: &Obj) -> Run<bool> {
        for other in items {
            if is_same(other, item) == Some(true) || self.python_equal(other, item)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn python_inside(&mut self, item: &Obj, container: &Obj) -> Run<bool> {
        match (container, item) {
            (Obj::Const(Const::Str(text)), Obj::Const(Const::Str(part))) => {
                Ok(text.contains(&**part))
            }
            (Obj::Const(Const::Str(_)), _) => {
                let class = item.class_text();
                let message = format!("'in <string>' requires string as left operand, not {class}");
                raise("TypeError", message)
            }
            (Obj::Dict(entries), _) => {
                check_hashable(item)?;
                let keys: Vec<Obj> = entries.borrow().iter().map(|(key, _)| key.clone()).collect();
                self.python_contains(&keys, item)
            }
            (Obj::Builtin("os.environ"), _) => {
                self.take_unset()?;
                Ok(false)
            }
            (Obj::Set(items), _) => {
                check_hashable(item)?;
                let items = items.borrow().clone();
                self.python_contains(&items, item)
            }
            _ => {
                let items = self.python_items(container)?;
                self.python_contains(&items, item)
            }
        }
    }

    /// A set of values.
    pub(super) fn python_set(&mut self, items: Vec<Obj>) -> Run<Obj> {
        let mut kept: Vec<Obj> = Vec::new();
        for item in items {
            check_hashable(&item)?;
            if !self.python_contains(&kept, &item)? {
                kept.push(item);
            }
        }
        Ok(Obj::Set(Rc::new(RefCell::new(kept))))
    }

    /// The elements of a value whose order does not matter.
    pub(super) fn python_unordered(&mut self, value: &Obj) -> Run<Vec<Obj>> {
        match value {
            Obj::Set(items) => Ok(items.borrow().clone()),
            other => self.python_items(other),
        }
    }

    /// What iterating a value gives.
    pub(super) fn python_items(&mut self, value: &Obj) -> Run<Vec<Obj>> {
        Ok(match value {
            Obj::Tuple(items, _) | Obj::Sequence(items, _) => items.to_vec(),
            Obj::List(items) => items.borrow().clone(),
            // Python's order is another one.
            Obj::Set(items) if items.borrow().len() <= 1 => items.borrow().clone(),
            Obj::Dict(entries) => entries.borrow().iter().map(|(key, _)| key.clone()).collect(),
            Obj::Iterator(items, _) => std::mem::take(&mut *items.borrow_mut()),
            Obj::Range(start, end, step) => {
                let count = super::super::range::iterations(*start, *end, *step);
                if count > MAX_ITEMS as i128 {
                    return Err(Exit::Unknown);
                }
                (0..count).map(|at| Obj::int(start + at * step)).collect()
            }
            Obj::Const(Const::Str(text)) => {
                text.chars().map(|c| Obj::str(c.encode_utf8(&mut [0; 4]))).collect()
            }
            Obj::Constexpr(value) => return self.python_items(value),
            Obj::Const(Const::Member(_) | Const::Enum(_)) | Obj::Set(_) => {
                return Err(Exit::Unknown);
            }
            Obj::Value(Value::Tensor(_)) => return Err(Exit::Unknown),
            Obj::Const(_) | Obj::Value(Value::Function(_) | Value::Module(_)) | Obj::Lambda(_) => {
                let class = value.class_text();
                return raise("TypeError", format!("'{class}' object is not iterable"));
            }
            _ => return Err(Exit::Unknown),
        })
    }

    /// `object[index]`.
    pub(super) fn python_item(&mut self, object: &Obj, index: &Obj) -> Run<Obj> {
        let index = match (object, index) {
            (Obj::Sequence(..), Obj::Constexpr(index)) => index,
            _ => index,
        };
        match object {
            Obj::Constexpr(object) => self.python_item(object, &index.unwrapped()),
            Obj::Tuple(items, _) | Obj::Sequence(items, _) => {
                items.get(position(index, items.len())?).cloned().ok_or(Exit::Unknown)
            }
            Obj::List(items) => {
                let items = items.borrow();
                items.get(position(index, items.len())?).cloned().ok_or(Exit::Unknown)
            }
            Obj::Const(Const::Str(text)) => {
                let at = position(index, text.chars().count())?;
                let c = text.chars().nth(at).ok_or(Exit::Unknown)?;
                Ok(Obj::str(c.encode_utf8(&mut [0; 4])))
            }
            Obj::Dict(entries) => {
                check_hashable(index)?;
                let entries = entries.borrow().clone();
                for (key, value) in &entries {
                    if is_same(key, index) == Some(true) || self.python_equal(key, index)? {
                        return Ok(value.clone());
                    }
                }
                raise("KeyError", text::repr(index).unwrap_or_default())
            }
            Obj::Range(start, end, step) => {
                let count = super::super::range::iterations(*start, *end, *step);
                let at = position(index, count as usize)?;
                Ok(Obj::int(start + at as i128 * step))
            }
            Obj::Value(Value::Tensor(_)) => raise("ValueError", NO_KERNEL),
            Obj::Const(Const::Member(_) | Const::Enum(_)) => Err(Exit::Unknown),
            Obj::Const(_) | Obj::Set(_) | Obj::Lambda(_) | Obj::Value(Value::Module(_)) => {
                not_subscriptable(object)
            }
            _ => Err(Exit::Unknown),
        }
    }
}

/// `object[lower:upper:step]`.
pub(super) fn slice(object: &Obj, bounds: &[Option<Obj>; 3]) -> Run<Obj> {
    match object {
        Obj::Tuple(items, _) => Ok(Obj::tuple(sliced(items, bounds)?)),
        Obj::Sequence(items, _) => Ok(Obj::Sequence(Rc::new(sliced(items, bounds)?), None)),
        Obj::List(items) => Ok(Obj::list(sliced(&items.borrow(), bounds)?)),
        Obj::Const(Const::Str(text)) => {
            let chars: Vec<Obj> =
                text.chars().map(|c| Obj::str(c.encode_utf8(&mut [0; 4]))).collect();
            let chars = sliced(&chars, bounds)?;
            Ok(Obj::str(&chars.iter().filter_map(text::str).collect::<String>()))
        }
        Obj::Value(Value::Tensor(_)) => raise("ValueError", NO_KERNEL),
        Obj::Const(Const::Member(_) | Const::Enum(_)) => Err(Exit::Unknown),
        Obj::Const(_) | Obj::Set(_) => not_subscriptable(object),
        _ => Err(Exit::Unknown),
    }
}

fn sliced(items: &[Obj], bounds: &[Option<Obj>; 3]) -> Run<Vec<Obj>> {
    let count = items.len() as i128;
    let bound = |value: &Option<Obj>| match value {
        None | Some(Obj::Const(Const::None)) => Ok(None),
        Some(Obj::Const(Const::Int(value))) => Ok(Some(*value)),
        Some(Obj::Constexpr(_)) => Err(Exit::Unknown),
        Some(_) => {
            raise("TypeError", "slice indices must be integers or None or have an __index__ method")
        }
    };
    let step = bound(&bounds[2])?.unwrap_or(1);
    if step == 0 {
        return raise("ValueError", "slice step cannot be zero");
    }
    let (least, most) = if step > 0 { (0, count) } else { (-1, count - 1) };
    let clamped = |value: i128| (if value < 0 { value + count } else { value }).clamp(least, most);
    let (first, last) = if step > 0 { (least, most) } else { (most, least) };
    let start = bound(&bounds[0])?.map_or(first, clamped);
    let end = bound(&bounds[1])?.map_or(last, clamped);
    let picked = (0..super::super::range::iterations(start, end, step)).map(|at| start + at * step);
    Ok(picked.filter_map(|at| items.get(usize::try_from(at).ok()?).cloned()).collect())
}

/// The element that an index names among `count`.
pub(super) fn position(index: &Obj, count: usize) -> Run<usize> {
    let index = match index {
        Obj::Const(Const::Int(index)) => *index,
        Obj::Const(Const::Bool(index)) => i128::from(*index),
        Obj::Constexpr(index) => return position(index, count),
        Obj::Const(Const::Member(_)) => return Err(Exit::Unknown),
        other => {
            let class = other.class_text();
            return raise("TypeError", format!("indices must be integers or slices, not {class}"));
        }
    };
    let wrapped = if index < 0 { index + count as i128 } else { index };
    match usize::try_from(wrapped).ok().filter(|at| *at < count) {
        Some(at) => Ok(at),
        None => raise("IndexError", "index out of range"),
    }
}

/// Keys of dictionaries and elements of sets never change.
pub(super) fn check_hashable(value: &Obj) -> Run<()> {
    match value {
        Obj::List(_) | Obj::Dict(_) | Obj::Set(_) | Obj::Value(Value::Tensor(_)) => {
            raise("TypeError", format!("unhashable type: '{}'", value.class_text()))
        }
        Obj::Tuple(items, _) | Obj::Sequence(items, _) => items.iter().try_for_each(check_hashable),
        Obj::Value(Value::Object(_)) => Err(Exit::Unknown),
        _ => Ok(()),
    }
}

/// Whether two values are one object; `None` where that depends on how Python keeps them.
fn is_same(left: &Obj, right: &Obj) -> Option<bool> {
    match (left, right) {
        (Obj::Const(Const::None), Obj::Const(Const::None)) => Some(true),
        (Obj::Const(Const::Bool(a)), Obj::Const(Const::Bool(b))) => Some(a == b),
        (Obj::Const(a), Obj::Const(b)) => match compare_consts(CompareOp::Eq, a, b) {
            Some(false) => Some(false),
            Some(true)
                if matches!(a, Const::DType(_) | Const::TorchDType(_) | Const::Member(_)) =>
            {
                Some(true)
            }
            Some(true) if std::mem::discriminant(a) != std::mem::discriminant(b) => Some(false),
            _ => None,
        },
        (Obj::List(a), Obj::List(b)) | (Obj::Set(a), Obj::Set(b)) => Some(Rc::ptr_eq(a, b)),
        (Obj::Dict(a), Obj::Dict(b)) => Some(Rc::ptr_eq(a, b)),
        (Obj::Tuple(a, _), Obj::Tuple(b, _)) | (Obj::Sequence(a, _), Obj::Sequence(b, _)) => {
            Rc::ptr_eq(a, b).then_some(true)
        }
        (Obj::Builtin(a), Obj::Builtin(b)) => Some(a == b),
        (Obj::Value(a), Obj::Value(b)) => match (a, b) {
            (Value::Tensor(a), Value::Tensor(b)) => {
                (a.ir.is_some() && b.ir.is_some()).then(|| a.ir == b.ir)
            }
            (Value::Function(a), Value::Function(b)) => {
                Some(std::sync::Arc::ptr_eq(&a.function, &b.function))
            }
            (Value::Class(a), Value::Class(b)) => Some(std::sync::Arc::ptr_eq(&a.class, &b.class)),
            (Value::Module(a), Value::Module(b)) => Some(a == b),
            (Value::Builtin(a), Value::Builtin(b)) => Some(std::ptr::eq(*a, *b)),
            _ => None,
        },
        (Obj::Constexpr(_), Obj::Constexpr(_)) | (Obj::Method(..), Obj::Method(..)) => None,
        _ => Some(false),
    }
}

fn is_tensor(value: &Obj) -> bool {
    matches!(value, Obj::Value(Value::Tensor(_)))
}

fn repeated(items: &[Obj], count: i128) -> Run<Vec<Obj>> {
    let count = usize::try_from(count).unwrap_or(0);
    if items.len().saturating_mul(count) > MAX_ITEMS {
        return Err(Exit::Unknown);
    }
    Ok(items.iter().cycle().take(items.len() * count).cloned().collect())
}

fn unsupported<T>(op: BinaryOp, left: &Obj, right: &Obj) -> Run<T> {
    let (op, left, right) = (op.symbol(), left.class_text(), right.class_text());
    raise("TypeError", format!("unsupported operand type(s) for {op}: '{left}' and '{right}'"))
}

fn bad_operand<T>(op: UnaryOp, value: &Obj) -> Run<T> {
    let sign = op.symbol().trim_end();
    raise("TypeError", format!("bad operand type for unary {sign}: '{}'", value.class_text()))
}

fn not_ordered<T>(op: CompareOp, left: &Obj, right: &Obj) -> Run<T> {
    let (op, left, right) = (op.symbol(), left.class_text(), right.class_text());
    raise("TypeError", format!("'{op}' not supported between instances of '{left}' and '{right}'"))
}

fn not_subscriptable<T>(object: &Obj) -> Run<T> {
    raise("TypeError", format!("'{}' object is not subscriptable", object.class_text()))
}

fn is_class(value: &Obj) -> bool {
    match value {
        Obj::Builtin(name) => super::builtins::is_class(name),
        Obj::Value(Value::Class(_)) => true,
        Obj::Value(Value::Builtin(builtin)) => {
            matches!(builtin.rule, Rule::Class | Rule::Constexpr | Rule::DTypeClass)
        }
        _ => false,
    }
}

/// True for an aggregate that may say what an operator does with it.
fn may_define_operators(object: &Object) -> bool {
    let class = &object.class.class;
    !class.bases.is_empty()
        || class
            .methods
            .iter()
            .any(|method| method.name.starts_with("__") && &*method.name != "__init__")
}
