//! How values and types print: for people, and as the language itself prints them.

use std::fmt::{self, Write};

use super::dtype::Elem;
use super::value::{
    Const, Descriptor, Held, Member, Object, RangeValue, Shape, Tensor, Tuple, Value,
};
use crate::host::torch_name;

/// A type as hover shows it: `fp32`, `tile<BLOCK x fp32>`, `pointer<fp16>`.
pub fn type_text(value: &Value) -> String {
    match value {
        Value::Unknown => "?".to_owned(),
        Value::Const(value) => const_type(value),
        Value::Tensor(tensor) => tensor_type(tensor.elem, &tensor.shape),
        Value::Tuple(tuple) => {
            let items: Vec<String> = tuple.items.iter().map(type_text).collect();
            let name = tuple.named.as_ref().map_or("tuple", |named| &named.0);
            format!("{name}<{}>", items.join(", "))
        }
        Value::Function(function) => format!("function {}", function.function.name),
        Value::Builtin(builtin) => format!("builtin {}", builtin.name),
        Value::Bound(bound) => format!("method of {}", type_text(&bound.0)),
        Value::Module(_) => "module".to_owned(),
        Value::BlockPtr(block) => {
            format!("block_ptr<{}>", extents_and(&block.block, block.base.elem.pointee()))
        }
        Value::Descriptor(desc) => {
            format!("descriptor<{}>", extents_and(&desc.block, desc.base.elem.pointee()))
        }
        Value::Class(class) => format!("class {}", class.class.name),
        Value::Object(object) => object.class.class.name.to_string(),
        Value::Range(_) => "range".to_owned(),
        Value::Either(values) => values.first().map_or_else(|| "?".to_owned(), type_text),
        Value::Condition(_) => "condition".to_owned(),
    }
}

fn const_type(value: &Const) -> String {
    let name = match value {
        Const::None => "None",
        Const::Bool(_) => "bool",
        Const::Int(_) => "int",
        Const::Float(_) => "float",
        Const::Str(_) => "str",
        Const::DType(_) => "dtype",
        Const::TorchDType(_) => "torch.dtype",
        Const::BlockType(..) | Const::BlockPtrType(..) => "type",
        Const::DescriptorType(..) => "type",
        Const::Slice(_) => "slice",
        Const::Ellipsis => "ellipsis",
        Const::Opaque(_) => "object",
        Const::Enum(_) => "enum",
        Const::Member(member) => return format!("constexpr {}", member.class.class.name),
        Const::Symbol(_) => return "constexpr".to_owned(),
    };
    format!("constexpr {name}")
}

/// `fp32` for scalars, `tile<4 x 8 x fp32>` for tiles.
pub(crate) fn tensor_type(elem: Elem, shape: &Shape) -> String {
    if shape.is_scalar() { elem.to_string() } else { format!("tile<{}>", extents_and(shape, elem)) }
}

fn extents_and(shape: &Shape, elem: Elem) -> String {
    let mut out = String::new();
    match shape.dims() {
        Some(extents) => extents.iter().for_each(|extent| {
            let text = extent.to_string();
            let nested = text.contains(' ') && !text.starts_with('(');
            let _ = if nested { write!(out, "({text}) x ") } else { write!(out, "{text} x ") };
        }),
        None => out.push_str("... x "),
    }
    let _ = write!(out, "{elem}");
    out
}

/// `[4, BLOCK]`; `[...]` when the rank is not known.
pub(crate) fn shape_text(shape: &Shape) -> String {
    match shape.dims() {
        Some(extents) => {
            let extents: Vec<String> = extents.iter().map(ToString::to_string).collect();
            format!("[{}]", extents.join(", "))
        }
        None => "[...]".to_owned(),
    }
}

/// A compile-time value as Python's `str` spells it.
pub fn const_text(value: &Const) -> String {
    match value {
        Const::None => "None".to_owned(),
        Const::Bool(true) => "True".to_owned(),
        Const::Bool(false) => "False".to_owned(),
        Const::Int(value) => value.to_string(),
        Const::Float(value) => float_text(*value),
        Const::Str(text) => text.to_string(),
        Const::DType(elem) => elem.to_string(),
        Const::TorchDType(dtype) => torch_name(dtype.signature()),
        Const::BlockType(elem, shape) => block_type_text(*elem, shape),
        Const::BlockPtrType(elem, shape) => format!("pointer<{}>", block_type_text(*elem, shape)),
        Const::DescriptorType(elem, shape) => {
            format!("tensor_descriptor<{}>", block_type_text(*elem, shape))
        }
        Const::Slice(_) => "slice".to_owned(),
        Const::Ellipsis => "Ellipsis".to_owned(),
        Const::Opaque(text) => text.to_string(),
        Const::Enum(name) => (*name).to_owned(),
        Const::Member(member) => member_text(member),
        Const::Symbol(sym) => sym.to_string(),
    }
}

/// A member of an enumeration as Python's `str` spells it since 3.11.
fn member_text(member: &Member) -> String {
    let class = &member.class.class.name;
    match &member.value {
        Value::Const(value) if member.kind.prints_value => const_text(value),
        Value::Const(value) if member.name.is_empty() => format!("{class}({})", const_text(value)),
        _ => format!("{class}.{}", member.name),
    }
}

/// A float as Python's `repr` spells it.
pub(crate) fn float_text(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let magnitude = value.abs();
    if magnitude != 0.0 && !(1e-4..1e16).contains(&magnitude) {
        return exponent_text(value);
    }
    format!("{value:?}")
}

/// Scientific notation with the sign and two digits that Python gives an exponent.
fn exponent_text(value: f64) -> String {
    let text = format!("{value:e}");
    match text.split_once('e') {
        Some((mantissa, exponent)) => {
            let (sign, digits) = match exponent.strip_prefix('-') {
                Some(digits) => ('-', digits),
                None => ('+', exponent),
            };
            format!("{mantissa}e{sign}{digits:0>2}")
        }
        None => text,
    }
}

/// The type of a tile as the language prints it: `<['4', '8'], fp32>`.
pub(crate) fn block_type_text(elem: Elem, shape: &Shape) -> String {
    format!("<{}, {elem}>", quoted_extents(shape))
}

fn quoted_extents(shape: &Shape) -> String {
    let extents = shape.dims().unwrap_or_default();
    let extents: Vec<String> = extents.iter().map(|extent| format!("'{extent}'")).collect();
    format!("[{}]", extents.join(", "))
}

/// A value as `tl.static_print` spells it.
pub(crate) fn print_text(value: &Value) -> String {
    match value {
        Value::Const(value) => const_text(value),
        Value::Tensor(tensor) => tensor_text(tensor),
        Value::Tuple(tuple) if tuple.held.is_python() => python_text(value),
        Value::Tuple(tuple) => {
            let shown = match tuple.held {
                Held::Annotated { shown } => shown,
                _ => 0,
            };
            list_text(&tuple.items, shown)
        }
        Value::Descriptor(desc) => descriptor_type_text(desc),
        Value::BlockPtr(block) => {
            let ty = Const::BlockPtrType(block.base.elem.pointee(), block.block.clone());
            format!("{}[]", const_text(&ty))
        }
        Value::Range(range) if range.python => {
            range_text(range).unwrap_or_else(|| type_text(value))
        }
        other => type_text(other),
    }
}

/// Python's own `range` as it prints itself, if its bounds are known.
fn range_text(range: &RangeValue) -> Option<String> {
    let bound = |value: &Value| match value {
        Value::Const(Const::Int(bound)) => Some(*bound),
        _ => None,
    };
    let (start, end, step) = (bound(&range.start)?, bound(&range.end)?, bound(&range.step)?);
    Some(match step {
        1 => format!("range({start}, {end})"),
        step => format!("range({start}, {end}, {step})"),
    })
}

/// The type of a descriptor as the language prints it.
pub(crate) fn descriptor_type_text(desc: &Descriptor) -> String {
    format!("tensor_descriptor<{}>", block_type_text(desc.base.elem.pointee(), &desc.block))
}

/// A text as Python's `repr` spells it, but for characters that are not printed other than the ends of lines and tabs.
pub(super) fn quoted(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let text = text.replace('\\', r"\\");
    let text = text.replace('\n', r"\n").replace('\r', r"\r").replace('\t', r"\t");
    let text = if quote == '\'' { text.replace('\'', r"\'") } else { text };
    format!("{quote}{text}{quote}")
}

/// A printed tuple, of whose elements the first `shown` show that they are constexprs.
fn list_text(items: &[Value], shown: usize) -> String {
    let texts: Vec<String> = items
        .iter()
        .enumerate()
        .map(|(at, item)| match item {
            Value::Const(Const::DType(elem)) => quoted(&elem.to_string()),
            Value::Const(value) if at < shown => {
                quoted(&format!("constexpr[{}]", const_text(value)))
            }
            Value::Const(value) => quoted(&const_text(value)),
            Value::Tuple(tuple) if at < shown => {
                quoted(&list_text(&tuple.items, tuple.items.len()))
            }
            other => quoted(&print_text(other)),
        })
        .collect();
    format!("[{}]", texts.join(", "))
}

/// A value as Python's `repr` spells it.
fn python_text(value: &Value) -> String {
    match value {
        Value::Const(Const::Str(text)) => quoted(text),
        Value::Const(Const::DType(Elem::Num(dtype))) => {
            format!("triton.language.{}", dtype.member())
        }
        Value::Const(value) => const_text(value),
        Value::Tuple(tuple) if let Some(named) = &tuple.named => {
            let fields = named.1.iter().zip(&tuple.items);
            let fields: Vec<String> =
                fields.map(|(name, item)| format!("{name}={}", python_text(item))).collect();
            format!("{}({})", named.0, fields.join(", "))
        }
        Value::Tuple(tuple) if tuple.held == Held::PythonList => {
            let items: Vec<String> = tuple.items.iter().map(python_text).collect();
            format!("[{}]", items.join(", "))
        }
        // A tuple of the language.
        Value::Tuple(tuple) if matches!(tuple.held, Held::Annotated { .. }) => {
            let items: Vec<String> = tuple.items.iter().map(python_text).collect();
            format!("({})", items.join(", "))
        }
        Value::Tuple(tuple) => {
            let items: Vec<String> = tuple.items.iter().map(python_text).collect();
            let comma = if items.len() == 1 { "," } else { "" };
            format!("({}{comma})", items.join(", "))
        }
        other => print_text(other),
    }
}

/// A tensor as the language prints it: `int32[]`, `fp32[constexpr[4]]`.
fn tensor_text(tensor: &Tensor) -> String {
    let extents = tensor.shape.dims().unwrap_or_default();
    let extents: Vec<String> = extents.iter().map(|e| format!("constexpr[{e}]")).collect();
    format!("{}[{}]", tensor.elem, extents.join(", "))
}

impl fmt::Display for Const {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Const::Str(text) => write!(f, "{text:?}"),
            other => f.write_str(&const_text(other)),
        }
    }
}

/// The type of a tuple as Triton spells it; `None` where not all of it is known.
pub(super) fn tuple_type(tuple: &Tuple, newer: bool) -> Option<String> {
    let fields = tuple.named.as_ref().map(|named| &named.1);
    let mut parts = Vec::with_capacity(tuple.items.len());
    for (at, item) in tuple.items.iter().enumerate() {
        let ty = item_type(item, newer)?;
        parts.push(match fields.and_then(|fields| fields.get(at)) {
            Some(field) => format!("{field}:{ty}"),
            None if newer => ty,
            None => format!(":{ty}"),
        });
    }
    Some(format!("[{}]", parts.join(",")))
}

/// The type of an aggregate as Triton spells it; `None` where not all of it is known.
pub(super) fn aggregate_type(object: &Object, newer: bool) -> Option<String> {
    let mut fields = Vec::with_capacity(object.fields.len());
    for (name, value) in &object.fields {
        let ty = match value {
            Value::Tensor(Tensor { elem: Elem::Num(dtype), shape, .. }) if shape.is_scalar() => {
                format!("triton.language.{}", dtype.member())
            }
            value => item_type(value, newer)?,
        };
        fields.push(format!("('{name}', {ty})"));
    }
    let (class, fields) = (&object.class.class.name, fields.join(", "));
    Some(format!("_aggregate_type(base_cls=<class '{class}'>, fields=[{fields}])"))
}

/// The type of what a tuple or an aggregate holds.
fn item_type(item: &Value, newer: bool) -> Option<String> {
    Some(match item {
        Value::Tensor(tensor) if !tensor.elem.is_unknown() => match tensor.is_scalar() {
            true => tensor.elem.to_string(),
            false => const_text(&Const::BlockType(tensor.elem, tensor.shape.clone())),
        },
        Value::Const(constant) if !constant.is_symbol() => {
            format!("constexpr_type[{}]", const_text(constant))
        }
        Value::Tuple(inner) => tuple_type(inner, newer)?,
        Value::Object(inner) => aggregate_type(inner, newer)?,
        _ => return None,
    })
}
