//! Attributes of types: of numbers, pointers, tiles and block pointers.

use super::Evaluator;
use super::attribute::{answering, shape_tuple};
use super::dtype::{DType, Elem, Kind};
use super::value::{Const, Shape, Value};
use crate::builtins::attributes::{OF_TYPES, TypeKind};
use crate::hir::Name;
use crate::source::FileRange;

/// What a type may have as something else besides: a compile-time value, and a type of PyTorch.
const ELSEWHERE: &[&str] = &["is_complex", "is_floating_point", "is_signed", "type", "value"];

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
            "exponent_bias" => match num {
                Some(dtype) => Value::int(i128::from(dtype.exponent_bias())),
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
    if ELSEWHERE.contains(&name) || name.starts_with('_') {
        return true;
    }
    let kind = match ty {
        Const::DType(Elem::Unknown | Elem::Void) => None,
        Const::DType(Elem::Num(dtype)) if dtype.is_float() => Some(TypeKind::Float),
        Const::DType(Elem::Num(_)) => Some(TypeKind::Integer),
        Const::DType(Elem::Ptr(_)) => Some(TypeKind::Pointer),
        // A value without a shape has its element's type.
        Const::BlockType(_, shape) if shape.rank().is_none_or(|rank| rank == 0) => None,
        Const::BlockType(..) => Some(TypeKind::Tile),
        Const::BlockPtrType(..) => Some(TypeKind::Pointer),
        _ => return true,
    };
    let row = OF_TYPES.iter().find(|row| row.attribute.name == name);
    row.is_some_and(|row| kind.is_none_or(|kind| row.of.contains(&kind)))
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
    use crate::builtins::attributes::TypeAttribute;

    #[test]
    fn every_question_is_in_the_table() {
        let float = Const::DType(Elem::Num(DType::Float32));
        for TypeAttribute { attribute, .. } in OF_TYPES {
            let is_question =
                attribute.called && !matches!(attribute.name, "is_ptr" | "is_const" | "is_block");
            assert!(!is_question || predicate(attribute.name).is_some(), "{}", attribute.name);
        }
        assert!(has_attribute(&float, "fp_mantissa_width"));
        assert!(!has_attribute(&float, "int_bitwidth"));
        assert!(!has_attribute(&Const::DType(Elem::Unknown), "element_type"));
    }
}
