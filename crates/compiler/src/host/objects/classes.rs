//! Classes of Python's own and of PyTorch: which of them a value is an instance of.

use crate::builtins::TORCH;
use crate::host::Host;
use crate::host::objects::records::SLICE;
use crate::host::value::Value;
use crate::project::Resolution;

/// The name of the class that a value of Python's own is of.
pub(crate) fn class_name(value: &Value) -> Option<&'static str> {
    Some(match value {
        Value::Bool(_) => "bool",
        Value::Int(_) => "int",
        Value::Float(_) => "float",
        Value::Str(_) => "str",
        Value::Tuple(_) => "tuple",
        Value::List(_) => "list",
        Value::Dict(_) => "dict",
        Value::Set(_) => "set",
        _ => return None,
    })
}

impl Host<'_> {
    /// Whether a value is an instance of a class, or of one of several.
    pub(crate) fn is_instance(&self, value: &Value, class: &Value) -> Option<bool> {
        match (value.plain(), class) {
            (Value::Object(object), class) => self.is_object_of(*object, class),
            (Value::OneOf(values), class) => {
                let (first, rest) = values.split_first()?;
                let known = self.is_instance(first, class)?;
                let is_same = |value| self.is_instance(value, class) == Some(known);
                rest.iter().all(is_same).then_some(known)
            }
            (value, Value::Tuple(classes)) => {
                let known = classes.iter().map(|class| self.is_instance(value, class));
                let known: Vec<_> = known.collect();
                if known.contains(&Some(true)) {
                    return Some(true);
                }
                known.iter().all(|known| *known == Some(false)).then_some(false)
            }
            (value, Value::Global(name)) => is_of_python(value, name),
            (value, Value::Named(Resolution::External(path))) => match path.as_slice() {
                [torch, class] if &**torch == TORCH => is_of_torch(value, class),
                [torch, .., class] if &**torch == TORCH && &**class == "DTensor" => {
                    is_of_others(value)
                }
                _ => None,
            },
            // Nothing derives from an enumeration that has members.
            (value, Value::Named(Resolution::Class(class))) if self.is_enumeration(*class) => {
                match value {
                    Value::Member(member) => Some(member.class == *class),
                    value => is_of_others(value),
                }
            }
            (value, Value::Named(Resolution::Class(class))) => {
                let is_plain = self.derives_plainly(&self.lineage(*class));
                is_of_others(value).filter(|_| is_plain)
            }
            _ => None,
        }
    }
}

/// False for a value of which it is known that it is of PyTorch's own class of tensors, or of one of Python's: what
/// is made here is of no other class, and spread over no devices.
fn is_of_others(value: &Value) -> Option<bool> {
    match value {
        Value::Tensor(tensor) => tensor.memory().map(|_| false),
        value => is_of_torch(value, "Tensor").or(is_of_python(value, "int").map(|_| false)),
    }
}

/// Whether a value is an instance of one of Python's own classes.
pub(crate) fn is_of_python(value: &Value, class: &str) -> Option<bool> {
    let own = match value {
        Value::None | Value::Tensor(_) | Value::DType(_) | Value::TorchDType(_) => "",
        Value::Record { names, .. } if *names.class == *SLICE => SLICE,
        Value::Record { .. } => "tuple",
        Value::Ints => return None,
        value => class_name(value)?,
    };
    // Truth values are numbers.
    let is_own = || own == class || own == "bool" && class == "int";
    CLASSES.contains(&class).then(is_own)
}

/// Classes of Python's own, of which values are known.
const CLASSES: &[&str] = &["bool", "dict", "float", "int", "list", "set", SLICE, "str", "tuple"];

/// Whether two of Python's own classes are one; `None` for other values.
pub(crate) fn same_class(left: &Value, right: &Value) -> Option<bool> {
    match (left, right) {
        (Value::Global(a), Value::Global(b)) => {
            (CLASSES.contains(&&**a) && CLASSES.contains(&&**b)).then_some(a == b)
        }
        _ => None,
    }
}

/// Whether a value is an instance of one of PyTorch's classes.
fn is_of_torch(value: &Value, class: &str) -> Option<bool> {
    let own = match value {
        Value::Tensor(_) => "Tensor",
        Value::TorchDType(_) => "dtype",
        Value::None
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Float(_)
        | Value::Str(_)
        | Value::List(_)
        | Value::Dict(_)
        | Value::DType(_) => "",
        Value::Tuple(_) | Value::Record { .. } if class != "Size" => "",
        _ => return None,
    };
    ["Size", "Tensor", "dtype"].contains(&class).then_some(own == class)
}
