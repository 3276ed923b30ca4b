//! What can follow the dot of a value besides the methods of the table of builtins.

use TypeKind::{Float, Integer, Pointer, Tile};

/// An attribute of values of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attribute {
    /// Its name.
    pub name: &'static str,
    /// True for a method.
    pub called: bool,
    /// What it is, in a line.
    pub doc: &'static str,
}

const fn value(name: &'static str, doc: &'static str) -> Attribute {
    Attribute { name, called: false, doc }
}

const fn method(name: &'static str, doc: &'static str) -> Attribute {
    Attribute { name, called: true, doc }
}

/// Attributes of scalars and tiles.
pub const OF_TENSORS: &[Attribute] = &[
    value("dtype", "the element type"),
    value("shape", "the extents, a tuple of compile-time values"),
    value("T", "the tile with its two axes exchanged"),
    value("type", "the element type and the shape"),
    value("numel", "the number of elements"),
];

/// Attributes of tensor descriptors.
pub const OF_DESCRIPTORS: &[Attribute] = &[
    value("dtype", "the element type"),
    value("shape", "the extents of the tensor in memory"),
    value("strides", "the strides of the tensor in memory"),
    value("block_shape", "the extents of the blocks that are loaded and stored"),
    value("block_type", "the type of such a block"),
    value("type", "the type of the descriptor"),
];

/// Attributes of block pointers.
pub const OF_BLOCK_POINTERS: &[Attribute] = &[
    value("dtype", "the type: a pointer to a block"),
    value("type", "the type: a pointer to a block"),
    value("shape", "the extents of the block"),
];

/// What a type is the type of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TypeKind {
    /// Integers and bools.
    Integer,
    /// Floats.
    Float,
    /// Pointers.
    Pointer,
    /// Tiles.
    Tile,
}

const ALL: &[TypeKind] = &[Integer, Float, Pointer, Tile];
const NUMBERS: &[TypeKind] = &[Integer, Float];

/// An attribute of types, and those that have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TypeAttribute {
    /// The attribute. Those that kernels have no use for have no documentation.
    pub attribute: Attribute,
    /// The types.
    pub of: &'static [TypeKind],
}

const fn of(of: &'static [TypeKind], attribute: Attribute) -> TypeAttribute {
    TypeAttribute { attribute, of }
}

/// Attributes of element types, and of the types of tiles and pointers.
pub(crate) const OF_TYPES: &[TypeAttribute] = &[
    of(
        &[Pointer, Tile],
        value("element_ty", "what a pointer points to; the type itself where it is none"),
    ),
    of(ALL, value("scalar", "the type of one element")),
    of(NUMBERS, value("primitive_bitwidth", "the width of a number in bits")),
    of(&[Integer], value("int_bitwidth", "the width of an integer in bits")),
    of(NUMBERS, value("itemsize", "the size of a number in bytes")),
    of(&[Float], value("fp_mantissa_width", "the width of a float's mantissa in bits")),
    of(&[Float], value("exponent_bias", "what is added to a float's exponent")),
    of(&[Integer], value("int_signedness", "whether an integer has a sign")),
    of(ALL, value("name", "the name as the IR spells it")),
    of(ALL, method("is_floating", "whether it is a float")),
    of(ALL, method("is_standard_floating", "whether it is a float of 16, 32 or 64 bits")),
    of(ALL, method("is_int", "whether it is an integer")),
    of(ALL, method("is_int_signed", "whether it is an integer with a sign")),
    of(ALL, method("is_int_unsigned", "whether it is an integer without a sign")),
    of(ALL, method("is_bool", "whether it is `int1`")),
    of(ALL, method("is_ptr", "whether it is a pointer")),
    of(ALL, method("is_const", "whether it is a pointer that nothing is stored through")),
    of(ALL, method("is_block", "whether it is the type of a tile")),
    of(ALL, method("is_fp8", "whether it is a float of 8 bits")),
    of(ALL, method("is_fp16", "whether it is `float16`")),
    of(ALL, method("is_bf16", "whether it is `bfloat16`")),
    of(ALL, method("is_fp32", "whether it is `float32`")),
    of(ALL, method("is_fp64", "whether it is `float64`")),
    of(ALL, method("is_int1", "whether it is `int1`")),
    of(ALL, method("is_int8", "whether it is `int8`")),
    of(ALL, method("is_int16", "whether it is `int16`")),
    of(ALL, method("is_int32", "whether it is `int32`")),
    of(ALL, method("is_int64", "whether it is `int64`")),
    of(ALL, method("is_uint8", "whether it is `uint8`")),
    of(ALL, method("is_uint16", "whether it is `uint16`")),
    of(ALL, method("is_uint32", "whether it is `uint32`")),
    of(ALL, method("is_uint64", "whether it is `uint64`")),
    of(ALL, value("FP_TYPES", "")),
    of(ALL, value("KIND", "")),
    of(ALL, value("OTHER_TYPES", "")),
    of(ALL, value("SIGNEDNESS", "")),
    of(ALL, value("SINT_TYPES", "")),
    of(ALL, value("STANDARD_FP_TYPES", "")),
    of(ALL, value("UINT_TYPES", "")),
    of(ALL, value("cache_key_part", "")),
    of(ALL, value("codegen_name", "")),
    of(ALL, value("get_int_max_value", "")),
    of(ALL, value("get_int_min_value", "")),
    of(ALL, value("is_dtype", "")),
    of(ALL, value("is_fp8e4b8", "")),
    of(ALL, value("is_fp8e5b16", "")),
    of(ALL, value("is_fp8e4nv", "")),
    of(ALL, value("is_fp8e5", "")),
    of(ALL, value("is_fp8e4b15", "")),
    of(ALL, value("is_void", "")),
    of(ALL, value("kind", "")),
    of(ALL, value("mangle", "")),
    of(ALL, value("to_ir", "")),
    of(ALL, value("with_element_ty", "")),
    of(&[Float], value("exponent_bias", "")),
    of(&[Pointer], value("address_space", "")),
    of(&[Pointer], value("const", "")),
    of(&[Tile], value("get_block_shapes", "")),
    of(&[Tile], value("nbytes", "")),
    of(&[Tile], value("numel", "")),
    of(&[Tile], value("shape", "")),
];

/// Those of [`OF_TYPES`] that kernels have a use for.
pub fn documented_of_types() -> impl Iterator<Item = &'static Attribute> {
    OF_TYPES.iter().map(|row| &row.attribute).filter(|attribute| !attribute.doc.is_empty())
}

/// Attributes of compile-time values.
pub const OF_CONSTEXPRS: &[Attribute] = &[value("value", "the value itself")];

/// Attributes of the tensors that scenarios make, besides the functions that take one first.
pub const OF_HOST_TENSORS: &[Attribute] = &[
    value("shape", "the extents"),
    value("dtype", "the element type"),
    value("ndim", "the number of axes"),
    value("T", "the tensor with its axes reversed"),
    method("stride", "the strides, or that along an axis"),
    method("numel", "the number of elements"),
    method("size", "the extents, or that along an axis"),
    method("dim", "the number of axes"),
    method("to", "the tensor in another element type"),
    method("float", "the tensor in `float32`"),
    method("half", "the tensor in `float16`"),
    method("bfloat16", "the tensor in `bfloat16`"),
    method("double", "the tensor in `float64`"),
    method("int", "the tensor in `int32`"),
    method("long", "the tensor in `int64`"),
    method("bool", "the tensor in `bool`"),
    method("contiguous", "the tensor with its elements in a row"),
    method("clone", "a copy"),
    method("view", "the same elements in another shape or type"),
    method("reshape", "the elements in another shape"),
    method("flatten", "the elements along one axis"),
    method("t", "the matrix with its axes exchanged"),
    method("transpose", "the tensor with two axes exchanged"),
    method("permute", "the tensor with its axes in another order"),
    method("unsqueeze", "the tensor with one more axis, of extent 1"),
    method("squeeze", "the tensor without axes of extent 1"),
    method("expand", "the tensor with axes of extent 1 repeated"),
    method("item", "the one element"),
    method("data_ptr", "the address of the first element"),
    method("element_size", "the size of an element in bytes"),
];
