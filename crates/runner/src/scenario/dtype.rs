//! Element types as host code knows them: with signs.

use std::fmt;

use tile_compiler::ir::Scalar;

use tile_executor::number;

macro_rules! dtypes {
    ($($(#[$doc:meta])* $name:ident = $short:literal $long:literal $scalar:ident;)*) => {
        /// The element type of a tensor.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum DType { $($(#[$doc])* $name,)* }

        impl DType {
            /// Every type, narrower before wider.
            pub const ALL: &'static [DType] = &[$(DType::$name,)*];

            /// Triton's short name, as in signatures.
            pub fn name(self) -> &'static str {
                match self { $(DType::$name => $short,)* }
            }

            /// Triton's long name, as in `tl.float32`.
            pub(crate) fn long_name(self) -> &'static str {
                match self { $(DType::$name => $long,)* }
            }

            /// The type of the bits.
            pub fn scalar(self) -> Scalar {
                match self { $(DType::$name => Scalar::$scalar,)* }
            }
        }
    };
}

dtypes! {
    /// Boolean, a byte in memory.
    Bool = "i1" "int1" I1;
    /// Signed 8-bit integer.
    I8 = "i8" "int8" I8;
    /// Unsigned 8-bit integer.
    U8 = "u8" "uint8" I8;
    /// Signed 16-bit integer.
    I16 = "i16" "int16" I16;
    /// Unsigned 16-bit integer.
    U16 = "u16" "uint16" I16;
    /// Signed 32-bit integer.
    I32 = "i32" "int32" I32;
    /// Unsigned 32-bit integer.
    U32 = "u32" "uint32" I32;
    /// Signed 64-bit integer.
    I64 = "i64" "int64" I64;
    /// Unsigned 64-bit integer.
    U64 = "u64" "uint64" I64;
    /// 8-bit float, 5 exponent bits.
    F8E5 = "fp8e5" "float8e5" F8E5;
    /// 8-bit float, 4 exponent bits, no infinities.
    F8E4NV = "fp8e4nv" "float8e4nv" F8E4NV;
    /// 8-bit float, 4 exponent bits of bias 15.
    F8E4B15 = "fp8e4b15" "float8e4b15" F8E4B15;
    /// Half precision.
    F16 = "fp16" "float16" F16;
    /// Brain float.
    BF16 = "bf16" "bfloat16" BF16;
    /// Single precision.
    F32 = "fp32" "float32" F32;
    /// Double precision.
    F64 = "fp64" "float64" F64;
}

/// Names of other libraries for the same types.
const ALIASES: &[(&str, DType)] = &[
    ("bool", DType::Bool),
    ("half", DType::F16),
    // As Python's types, which are the ones without a prefix.
    ("float", DType::F64),
    ("double", DType::F64),
    ("int", DType::I64),
    ("long", DType::I64),
    ("float8_e5m2", DType::F8E5),
    ("float8_e4m3fn", DType::F8E4NV),
    ("u1", DType::Bool),
];

impl DType {
    /// The type with this name: Triton's short or long one, or PyTorch's.
    pub fn from_name(name: &str) -> Option<DType> {
        let known = DType::ALL.iter().copied();
        known
            .into_iter()
            .find(|dtype| dtype.name() == name || dtype.long_name() == name)
            .or_else(|| ALIASES.iter().find(|(alias, _)| *alias == name).map(|(_, dtype)| *dtype))
    }

    /// Size of an element in memory, in bytes.
    pub fn bytes(self) -> usize {
        self.scalar().bytes() as usize
    }

    /// True for the floating types.
    pub fn is_float(self) -> bool {
        self.scalar().is_float()
    }

    /// True for integers without sign, booleans included.
    pub fn is_unsigned(self) -> bool {
        matches!(self, DType::Bool | DType::U8 | DType::U16 | DType::U32 | DType::U64)
    }

    /// The integer with the given bits.
    pub(crate) fn decode_int(self, bits: u64) -> i64 {
        let spare = 64 - self.scalar().bits();
        if self.is_unsigned() {
            (bits << spare >> spare) as i64
        } else {
            (bits << spare) as i64 >> spare
        }
    }

    /// The float with the given bits.
    pub fn decode_float(self, bits: u64) -> f64 {
        number::decode(self.scalar(), bits)
    }

    /// The type that arithmetic on both gives: floats before integers, then the wider, then the
    /// unsigned; `int16` for bytes with and without a sign, and `fp32` for two floats of one width
    /// but different formats.
    pub fn promote(self, other: DType) -> DType {
        if self == other {
            return self;
        }
        let rank = |dtype: DType| (dtype.is_float(), dtype.scalar().bits(), dtype.is_unsigned());
        // Neither holds the values of the other.
        if let (DType::I8, DType::U8) | (DType::U8, DType::I8) = (self, other) {
            return DType::I16;
        }
        let formats = self.is_float() && other.is_float();
        if formats && self.scalar().bits() == other.scalar().bits() {
            return if self.scalar().bits() == 8 { DType::F16 } else { DType::F32 };
        }
        if rank(self) >= rank(other) { self } else { other }
    }

    /// Relative and absolute tolerance of `allclose` when the less precise side has this type.
    /// Integers compare exactly.
    pub fn tolerance(self) -> (f64, f64) {
        match self {
            DType::F64 => (1e-9, 1e-12),
            DType::F32 => (1e-4, 1e-5),
            DType::F16 => (1e-2, 1e-3),
            DType::BF16 => (2e-2, 1e-2),
            DType::F8E5 => (0.25, 0.125),
            DType::F8E4NV | DType::F8E4B15 => (0.125, 0.0625),
            _ => (0.0, 0.0),
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
