//! Attributes of types: of numbers, pointers, tiles and block pointers.

use super::Evaluator;
use super::attribute::{answering, shape_tuple};
use super::dtype::{DType, Elem, Kind};
use super::value::{Const, Shape, Value};
use crate::hir::Name;
use crate::source::FileRange;

/// What every type has, and the predicates that are told apart by [`predicate`].
const SHARED: &[&str] = &[
    "FP_TYPES",
    "KIND",
    "OTHER_TYPES",
    "SIGNEDNESS",
    "SINT_TYPES",
    "STANDARD_FP_TYPES",
    "UINT_TYPES",
    "cache_key_part",
    "codegen_name",
    "get_int_max_value",
    "get_int_min_value",
    "is_block",
    "is_const",
    "is_dtype",
    "is_fp8e4b8",
    "is_fp8e5b16",
    "is_ptr",
    "is_void",
    "kind",
    "mangle",
    "name",
    "scalar",
    "to_ir",
    "with_element_ty",
];

/// What a type may have as something else besides: a compile-time value, and a type of PyTorch.
const ELSEWHERE: &[&str] = &["is_complex", "is_floating_point", "is_signed", "type", "value"];

const OF_NUMBERS: &[&str] = &["itemsize", "primitive_bitwidth"];
const OF_INTEGERS: &[&str] = &["int_bitwidth", "int_signedness"];
const OF_FLOATS: &[&str] = &["exponent_bias", "fp_mantissa_width"];
const OF_POINTERS: &[&str] = &["address_space", "const", "element_ty"];
const OF_TILES: &[&str] = &["element_ty", "get_block_shapes", "nbytes", "numel", "shape"];

impl Evaluator<'_> {
    /// An attribute of the type `ty`. Predicates such as `is_int()` are methods.
    pub(super) fn type_attribute(&mut self, ty: &Const, attr: &Name, at: FileRange) -> Value {
        if !has_attribute(ty, attr) {
            return self.no_attribute(&Value::Const(ty.clone()), attr, at);
        }
        match ty {
            Const::DType(elem) => self.element_type_attribute(*elem, attr),
            Const::BlockType(elem, shape) => self.tile_type_attribute(*elem, shape, attr),
            Const::BlockPtrType(elem, shape) => match &**attr {
                "element_ty" => Value::Const(Const::BlockType(*elem, shape.clone())),
                "is_ptr" => self.predicate(Some(true)),
                _ => Value::Unknown,
            },
            _ => Value::Unknown,
        }
    }

    fn tile_type_attribute(&mut self, elem: Elem, shape: &Shape, name: &str) -> Value {
        // What has no shape is of its element type.
        let is_tile = shape.rank().map(|rank| rank > 0);
        match name {
            "element_ty" | "scalar" => Value::Const(Const::DType(elem)),
            "shape" => shape_tuple(shape),
            "get_block_shapes" => answering(shape_tuple(shape)),
            "numel" => match shape.numel() {
                Some(numel) => Value::Const(Const::from_sym(numel)),
                None => self.fresh_const(),
            },
            "is_block" => self.predicate(is_tile),
            "is_ptr" if is_tile == Some(true) => self.predicate(Some(false)),
            "is_fp8" => self.element_type_attribute(elem, name),
            // The others ask for the name of a type of numbers, which no tile's type has.
            name if is_tile == Some(true) && predicate(name).is_some() => {
                self.predicate(Some(false))
            }
            name if is_tile == Some(true) => match name {
                "is_const" => self.predicate(Some(false)),
                _ => Value::Unknown,
            },
            name if predicate(name).is_some() => self.predicate(None),
            name => self.element_type_attribute(elem, name),
        }
    }

    fn element_type_attribute(&mut self, elem: Elem, name: &str) -> Value {
        let num = elem.num();
        let known = !elem.is_unknown();
        match name {
            "element_ty" if elem.is_ptr() => Value::Const(Const::DType(elem.pointee())),
            "element_ty" | "scalar" => Value::Const(Const::DType(elem)),
            "primitive_bitwidth" | "int_bitwidth" => match elem.bits() {
                Some(bits) => Value::int(i128::from(bits)),
                None => self.fresh_const(),
            },
            "itemsize" => match elem.bits() {
                Some(bits) => Value::int(i128::from(bits / 8)),
                None => self.fresh_const(),
            },
            "fp_mantissa_width" => match num {
                Some(dtype) => Value::int(i128::from(dtype.mantissa_width())),
                None => self.fresh_const(),
            },
            "name" => match num {
                Some(dtype) => Value::str(dtype.name()),
                None => self.fresh_const(),
            },
            "int_signedness" => match num {
                Some(dtype) if dtype.is_signed() => Value::Const(Const::Enum("SIGNEDNESS.SIGNED")),
                Some(dtype) if dtype.is_int() => Value::Const(Const::Enum("SIGNEDNESS.UNSIGNED")),
                Some(_) => Value::Unknown,
                None => self.fresh_const(),
            },
            "is_ptr" => self.predicate(known.then(|| elem.is_ptr())),
            "is_block" => self.predicate(known.then_some(false)),
            "is_const" => self.predicate(known.then(|| elem.ptr().is_some_and(|p| p.constant))),
            // It looks for `fp8` in the name, which a pointer's has too.
            "is_fp8" => {
                let at_end = if elem.is_ptr() { elem.ptr().and_then(|p| p.to) } else { num };
                let open = !known || (elem.is_ptr() && at_end.is_none());
                self.predicate((!open).then(|| at_end.is_some_and(DType::is_fp8)))
            }
            name => match predicate(name) {
                Some(test) => self.predicate(known.then(|| num.is_some_and(test))),
                None => Value::Unknown,
            },
        }
    }

    /// A method without parameters whose result is decided at compile time.
    fn predicate(&mut self, result: Option<bool>) -> Value {
        let result = match result {
            Some(result) => Value::bool(result),
            None => self.fresh_const(),
        };
        answering(result)
    }
}

/// Whether a type may have the attribute `name`; of a type that is not known, whether any has it.
pub(super) fn has_attribute(ty: &Const, name: &str) -> bool {
    let shared = |name: &str| {
        SHARED.contains(&name) || ELSEWHERE.contains(&name) || predicate(name).is_some()
    };
    if shared(name) || name.starts_with('_') {
        return true;
    }
    let number = |dtype: Option<DType>| {
        let of_kind = match dtype {
            Some(dtype) if dtype.is_float() => OF_FLOATS.contains(&name),
            Some(_) => OF_INTEGERS.contains(&name),
            None => OF_FLOATS.contains(&name) || OF_INTEGERS.contains(&name),
        };
        of_kind || OF_NUMBERS.contains(&name)
    };
    let any = || number(None) || OF_POINTERS.contains(&name) || OF_TILES.contains(&name);
    match ty {
        Const::DType(Elem::Unknown | Elem::Void) => any(),
        Const::DType(Elem::Num(dtype)) => number(Some(*dtype)),
        Const::DType(Elem::Ptr(_)) => OF_POINTERS.contains(&name),
        // A value without a shape has its element's type.
        Const::BlockType(_, shape) if shape.rank().is_none_or(|rank| rank == 0) => any(),
        Const::BlockType(..) => OF_TILES.contains(&name),
        _ => true,
    }
}

/// The question that a method asks about a type of numbers.
fn predicate(name: &str) -> Option<fn(DType) -> bool> {
    Some(match name {
        "is_floating" => DType::is_float,
        "is_standard_floating" => DType::is_standard_float,
        "is_int" => DType::is_int,
        "is_int_signed" => DType::is_signed,
        "is_int_unsigned" => DType::is_unsigned,
        "is_bool" | "is_int1" => |dtype| dtype.kind() == Kind::Bool,
        "is_fp8" => DType::is_fp8,
        "is_fp16" => |dtype| dtype == DType::Float16,
        "is_bf16" => |dtype| dtype == DType::BFloat16,
        "is_fp32" => |dtype| dtype == DType::Float32,
        "is_fp64" => |dtype| dtype == DType::Float64,
        "is_int8" => |dtype| dtype == DType::Int8,
        "is_int16" => |dtype| dtype == DType::Int16,
        "is_int32" => |dtype| dtype == DType::Int32,
        "is_int64" => |dtype| dtype == DType::Int64,
        "is_uint8" => |dtype| dtype == DType::UInt8,
        "is_uint16" => |dtype| dtype == DType::UInt16,
        "is_uint32" => |dtype| dtype == DType::UInt32,
        "is_uint64" => |dtype| dtype == DType::UInt64,
        "is_fp8e4nv" => |dtype| dtype == DType::Float8E4NV,
        "is_fp8e5" => |dtype| dtype == DType::Float8E5,
        "is_fp8e4b15" => |dtype| dtype == DType::Float8E4B15,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtins::attributes::OF_TYPES;

    #[test]
    fn documented_attributes_exist() {
        let unknown = Const::DType(Elem::Unknown);
        for attribute in OF_TYPES {
            assert!(has_attribute(&unknown, attribute.name), "{}", attribute.name);
        }
        assert!(!has_attribute(&unknown, "element_type"));
    }
}
