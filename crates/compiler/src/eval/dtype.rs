//! Element types as the language sees them: signed and unsigned integers apart, pointers with
//! constness.

use std::fmt;

use crate::ir;

macro_rules! dtypes {
    ($( $(#[$doc:meta])* $variant:ident = $name:literal, $member:literal, $kind:ident, $bits:literal; )*) => {
        /// A number type of the language.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum DType { $( $(#[$doc])* $variant, )* }

        impl DType {
            /// Every number type.
            pub const ALL: &'static [DType] = &[ $( DType::$variant, )* ];

            /// The name that the language prints: `int32`, `fp16`, `bf16`, `fp8e4nv`.
            pub fn name(self) -> &'static str {
                match self { $( DType::$variant => $name, )* }
            }

            /// The name of the member of `triton.language`: `int32`, `float16`.
            pub fn member(self) -> &'static str {
                match self { $( DType::$variant => $member, )* }
            }

            /// Whether it is a bool, a signed or unsigned integer, or a float.
            pub fn kind(self) -> Kind {
                match self { $( DType::$variant => Kind::$kind, )* }
            }

            /// Width in bits.
            pub fn bits(self) -> u32 {
                match self { $( DType::$variant => $bits, )* }
            }
        }
    };
}

/// The kind of a number type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// `int1`.
    Bool,
    /// Signed integers.
    Signed,
    /// Unsigned integers.
    Unsigned,
    /// Floats.
    Float,
}

dtypes! {
    /// One bit.
    Int1 = "int1", "int1", Bool, 1;
    /// Signed, 8 bits.
    Int8 = "int8", "int8", Signed, 8;
    /// Signed, 16 bits.
    Int16 = "int16", "int16", Signed, 16;
    /// Signed, 32 bits.
    Int32 = "int32", "int32", Signed, 32;
    /// Signed, 64 bits.
    Int64 = "int64", "int64", Signed, 64;
    /// Unsigned, 8 bits.
    UInt8 = "uint8", "uint8", Unsigned, 8;
    /// Unsigned, 16 bits.
    UInt16 = "uint16", "uint16", Unsigned, 16;
    /// Unsigned, 32 bits.
    UInt32 = "uint32", "uint32", Unsigned, 32;
    /// Unsigned, 64 bits.
    UInt64 = "uint64", "uint64", Unsigned, 64;
    /// 8-bit float: 5 exponent and 2 mantissa bits.
    Float8E5 = "fp8e5", "float8e5", Float, 8;
    /// 8-bit float: 4 exponent and 3 mantissa bits, no infinities.
    Float8E4NV = "fp8e4nv", "float8e4nv", Float, 8;
    /// 8-bit float: 4 exponent bits of bias 15.
    Float8E4B15 = "fp8e4b15", "float8e4b15", Float, 8;
    /// 8-bit float of AMD devices.
    Float8E4B8 = "fp8e4b8", "float8e4b8", Float, 8;
    /// 8-bit float of AMD devices.
    Float8E5B16 = "fp8e5b16", "float8e5b16", Float, 8;
    /// Half precision.
    Float16 = "fp16", "float16", Float, 16;
    /// Brain float.
    BFloat16 = "bf16", "bfloat16", Float, 16;
    /// Single precision.
    Float32 = "fp32", "float32", Float, 32;
    /// Double precision.
    Float64 = "fp64", "float64", Float, 64;
}

impl DType {
    /// The member of `triton.language` called `name`.
    pub fn from_member(name: &str) -> Option<DType> {
        DType::ALL.iter().copied().find(|dtype| dtype.member() == name)
    }

    /// The type of a signature's spelling: `i32`, `u1`, `fp16`; also the printed name.
    pub fn from_signature(text: &str) -> Option<DType> {
        let known = DType::ALL.iter().copied();
        known
            .into_iter()
            .find(|dtype| {
                dtype.name() == text || dtype.signature() == text || dtype.member() == text
            })
            .or(if text == "u1" { Some(DType::Int1) } else { None })
    }

    /// Spelling in a signature: `i32`, `u8`, `fp16`, `i1`.
    pub fn signature(self) -> &'static str {
        match self {
            DType::Int1 => "i1",
            DType::Int8 => "i8",
            DType::Int16 => "i16",
            DType::Int32 => "i32",
            DType::Int64 => "i64",
            DType::UInt8 => "u8",
            DType::UInt16 => "u16",
            DType::UInt32 => "u32",
            DType::UInt64 => "u64",
            float => float.name(),
        }
    }

    /// True for floats.
    pub fn is_float(self) -> bool {
        self.kind() == Kind::Float
    }

    /// True for integers, `int1` included.
    pub fn is_int(self) -> bool {
        !self.is_float()
    }

    /// True for signed integers.
    pub(crate) fn is_signed(self) -> bool {
        self.kind() == Kind::Signed
    }

    /// True for unsigned integers; `int1` counts as one.
    pub fn is_unsigned(self) -> bool {
        matches!(self.kind(), Kind::Unsigned | Kind::Bool)
    }

    /// True for 8-bit floats.
    pub fn is_fp8(self) -> bool {
        self.is_float() && self.bits() == 8
    }

    /// True for floats that are not 8 bits wide.
    pub(crate) fn is_standard_float(self) -> bool {
        self.is_float() && self.bits() > 8
    }

    /// Smallest and largest value of an integer type.
    pub(crate) fn int_range(self) -> Option<(i128, i128)> {
        match self.kind() {
            Kind::Float => None,
            Kind::Bool => Some((0, 1)),
            Kind::Signed => Some((-(1i128 << (self.bits() - 1)), (1i128 << (self.bits() - 1)) - 1)),
            Kind::Unsigned => Some((0, (1i128 << self.bits()) - 1)),
        }
    }

    /// Mantissa bits of a float, as the language counts them.
    pub(crate) fn mantissa_width(self) -> u32 {
        match self {
            DType::Float8E5 | DType::Float8E5B16 => 2,
            DType::Float8E4NV | DType::Float8E4B15 | DType::Float8E4B8 => 3,
            DType::Float16 => 10,
            DType::BFloat16 => 7,
            DType::Float32 => 23,
            DType::Float64 => 52,
            _ => 0,
        }
    }

    /// What is added to the exponent of a float, as the language has it.
    pub(crate) fn exponent_bias(self) -> u32 {
        match self {
            DType::Float8E4NV => 7,
            DType::Float8E4B8 => 8,
            DType::Float8E5 | DType::Float8E4B15 | DType::Float16 => 15,
            DType::Float8E5B16 => 16,
            DType::BFloat16 | DType::Float32 => 127,
            DType::Float64 => 1023,
            _ => 0,
        }
    }

    /// The integer type of `bits` and signedness.
    pub(crate) fn int_of(bits: u32, signed: bool) -> Option<DType> {
        let kind = if signed { Kind::Signed } else { Kind::Unsigned };
        DType::ALL.iter().copied().find(|dtype| dtype.kind() == kind && dtype.bits() == bits)
    }

    /// The IR's type, which has no signedness; `None` for the formats of AMD devices.
    pub fn scalar(self) -> Option<ir::Scalar> {
        Some(match self {
            DType::Int1 => ir::Scalar::I1,
            DType::Int8 | DType::UInt8 => ir::Scalar::I8,
            DType::Int16 | DType::UInt16 => ir::Scalar::I16,
            DType::Int32 | DType::UInt32 => ir::Scalar::I32,
            DType::Int64 | DType::UInt64 => ir::Scalar::I64,
            DType::Float8E5 => ir::Scalar::F8E5,
            DType::Float8E4NV => ir::Scalar::F8E4NV,
            DType::Float8E4B15 => ir::Scalar::F8E4B15,
            DType::Float8E4B8 | DType::Float8E5B16 => return None,
            DType::Float16 => ir::Scalar::F16,
            DType::BFloat16 => ir::Scalar::BF16,
            DType::Float32 => ir::Scalar::F32,
            DType::Float64 => ir::Scalar::F64,
        })
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Type of the elements of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Elem {
    /// Not known; absorbs silently.
    Unknown,
    /// What statements such as `tl.store` give.
    Void,
    /// A number.
    Num(DType),
    /// A pointer.
    Ptr(Pointer),
}

/// A pointer type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pointer {
    /// The number type at the end; `None` when it is not known.
    pub to: Option<DType>,
    /// How many pointers there are before it; 1 for a plain pointer.
    pub depth: u8,
    /// Whether stores through it are forbidden.
    pub constant: bool,
}

impl Elem {
    /// `int32`.
    pub const I32: Elem = Elem::Num(DType::Int32);
    /// `int1`.
    pub const BOOL: Elem = Elem::Num(DType::Int1);

    /// The number type, if this is one.
    pub fn num(self) -> Option<DType> {
        match self {
            Elem::Num(dtype) => Some(dtype),
            _ => None,
        }
    }

    /// The pointer type, if this is one.
    pub fn ptr(self) -> Option<Pointer> {
        match self {
            Elem::Ptr(pointer) => Some(pointer),
            _ => None,
        }
    }

    /// True when this is certainly a pointer.
    pub fn is_ptr(self) -> bool {
        matches!(self, Elem::Ptr(_))
    }

    /// True when nothing is known of it.
    pub fn is_unknown(self) -> bool {
        self == Elem::Unknown
    }

    /// A plain pointer to `to`.
    pub(crate) fn pointer_to(to: Option<DType>) -> Elem {
        Elem::Ptr(Pointer { to, depth: 1, constant: false })
    }

    /// Type of the elements behind a pointer; unknown when this is not certainly a pointer.
    pub fn pointee(self) -> Elem {
        match self {
            Elem::Ptr(Pointer { to: Some(to), depth: 0 | 1, .. }) => Elem::Num(to),
            Elem::Ptr(Pointer { to: None, depth: 0 | 1, .. }) => Elem::Unknown,
            Elem::Ptr(pointer) => Elem::Ptr(Pointer { depth: pointer.depth - 1, ..pointer }),
            _ => Elem::Unknown,
        }
    }

    /// The type of a signature's spelling: `*fp16`, `*ki64`, `**i32`, `i32`.
    pub fn from_signature(text: &str) -> Option<Elem> {
        let pointee = text.trim_start_matches('*');
        let depth = (text.len() - pointee.len()) as u8;
        if depth == 0 {
            return DType::from_signature(pointee).map(Elem::Num);
        }
        let (pointee, constant) = match pointee.strip_prefix('k') {
            Some(rest) => (rest, true),
            None => (pointee, false),
        };
        let to = DType::from_signature(pointee)?;
        Some(Elem::Ptr(Pointer { to: Some(to), depth, constant }))
    }

    /// Width in bits; `None` when it is not known.
    pub fn bits(self) -> Option<u32> {
        match self {
            Elem::Num(dtype) => Some(dtype.bits()),
            Elem::Ptr(_) => Some(64),
            Elem::Unknown | Elem::Void => None,
        }
    }

    /// The IR's type. Memory has no single bits: a pointer to `int1` is one to bytes.
    pub fn lower(self) -> Option<ir::Elem> {
        match self {
            Elem::Num(dtype) => dtype.scalar().map(ir::Elem::Scalar),
            Elem::Ptr(Pointer { to: Some(to), depth, .. }) => {
                let to = if to == DType::Int1 { ir::Scalar::I8 } else { to.scalar()? };
                match depth {
                    1 => Some(ir::Elem::Ptr(to)),
                    2 => Some(ir::Elem::PtrPtr(to)),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The more specific of two types of one value, of which either may be unknown.
    pub fn or(self, other: Elem) -> Elem {
        if self.is_unknown() { other } else { self }
    }
}

impl fmt::Display for Elem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Elem::Unknown => f.write_str("?"),
            Elem::Void => f.write_str("void"),
            Elem::Num(dtype) => f.write_str(dtype.name()),
            Elem::Ptr(pointer) => {
                for _ in 1..pointer.depth {
                    f.write_str("pointer<")?;
                }
                let name = if pointer.constant { "const_pointer<" } else { "pointer<" };
                f.write_str(name)?;
                f.write_str(pointer.to.map_or("?", DType::name))?;
                (0..pointer.depth).try_for_each(|_| f.write_str(">"))
            }
        }
    }
}

/// True where values of both types are one to the IR, which knows no signs; also while one of them
/// is not known.
pub(super) fn is_stored_alike(a: Elem, b: Elem) -> bool {
    let stored = |dtype: DType| (dtype.bits(), dtype.is_float().then_some(dtype));
    match (a.num(), b.num()) {
        (Some(a), Some(b)) => stored(a) == stored(b),
        _ => a == b || a.is_unknown() || b.is_unknown(),
    }
}
