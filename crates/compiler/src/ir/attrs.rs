//! Compile-time attributes of operations, typed per operation.
//!
//! The op table names, for each operation, one [`AttrKind`]; its fields print as
//! `{name=value, ...}` and parse back through [`AttrField`].

use std::fmt;
use std::sync::Arc;

use half::{bf16, f16};
use smallvec::SmallVec;

use super::{Scalar, Shape};

/// A value that an attribute field may have: how it is spelled in the text form.
pub trait AttrField: Sized {
    /// Writes the value.
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
    /// Reads the value from the text between `=` and the next `,` or `}` of the same depth.
    ///
    /// # Errors
    /// What was expected instead.
    fn read(text: &str) -> Result<Self, String>;
}

macro_rules! attr_kinds {
    ($( $(#[$doc:meta])* $kind:ident { $( $(#[$fdoc:meta])* $field:ident : $ty:ty ),* $(,)? } )*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, PartialEq, Eq, Hash)]
            pub struct $kind { $( $(#[$fdoc])* pub $field: $ty, )* }
        )*

        /// Which attributes an operation takes.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum AttrKind {
            /// None at all.
            None,
            $( $(#[$doc])* $kind, )*
        }

        /// The attributes of one operation.
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        pub enum Attrs {
            /// None at all.
            None,
            $( $(#[$doc])* $kind($kind), )*
        }

        impl Attrs {
            /// Which kind these are.
            pub fn kind(&self) -> AttrKind {
                match self {
                    Attrs::None => AttrKind::None,
                    $( Attrs::$kind(_) => AttrKind::$kind, )*
                }
            }

            /// Reads the attributes of `kind` from `(name, value)` pairs.
            ///
            /// # Errors
            /// Which field is missing or malformed.
            pub fn read(kind: AttrKind, fields: &[(&str, &str)]) -> Result<Attrs, String> {
                match kind {
                    AttrKind::None => Ok(Attrs::None),
                    $( AttrKind::$kind => Ok(Attrs::$kind($kind {
                        $( $field: read_field(fields, stringify!($field))?, )*
                    })), )*
                }
            }
        }

        $( impl From<$kind> for Attrs {
            fn from(attrs: $kind) -> Attrs { Attrs::$kind(attrs) }
        } )*

        impl fmt::Display for Attrs {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    Attrs::None => Ok(()),
                    $( Attrs::$kind(attrs) => {
                        let mut separator = " {";
                        $(
                            f.write_str(separator)?;
                            f.write_str(concat!(stringify!($field), "="))?;
                            attrs.$field.write(f)?;
                            separator = ", ";
                        )*
                        if separator == ", " { f.write_str("}") } else { Ok(()) }
                    } )*
                }
            }
        }
    };
}

fn read_field<T: AttrField>(fields: &[(&str, &str)], name: &str) -> Result<T, String> {
    let (_, text) = fields
        .iter()
        .find(|(field, _)| *field == name)
        .ok_or_else(|| format!("missing attribute `{name}`"))?;
    T::read(text).map_err(|expected| format!("attribute `{name}`: expected {expected}"))
}

attr_kinds! {
    /// A constant: every element has these bits.
    Constant {
        /// Bits of one element, zero-extended; floats in their own encoding.
        bits: u64,
    }
    /// A grid axis (0, 1, 2) or a tile axis.
    Axis {
        /// The axis, counted from the outermost.
        axis: u32,
    }
    /// The half-open integer range `start..end`.
    Range {
        /// First value.
        start: i64,
        /// One past the last value.
        end: i64,
    }
    /// A permutation of tile axes.
    Order {
        /// `order[i]` is the source axis that becomes result axis `i`.
        order: Shape,
    }
    /// Reshape.
    Reshape {
        /// True when elements may change places.
        reorder: bool,
    }
    /// Comparison of integers or pointers.
    IntCompare {
        /// The predicate.
        predicate: IntPredicate,
    }
    /// Comparison of floats.
    FloatCompare {
        /// The predicate.
        predicate: FloatPredicate,
    }
    /// What minimum and maximum do with NaN.
    NanRule {
        /// True: NaN if either operand is one. False: the operand that is a number.
        propagate: bool,
    }
    /// Rounding of a narrowing float conversion.
    Round {
        /// The mode.
        mode: Rounding,
    }
    /// A read of global memory.
    LoadHints {
        /// Cache modifier.
        cache: CacheModifier,
        /// Eviction priority.
        evict: Eviction,
        /// True forbids combining, caching or removing the access.
        volatile: bool,
    }
    /// A write of global memory.
    StoreHints {
        /// Cache modifier.
        cache: CacheModifier,
        /// Eviction priority.
        evict: Eviction,
    }
    /// An atomic read-modify-write.
    Atomic {
        /// The operation.
        op: AtomicOp,
        /// Memory ordering.
        order: MemoryOrder,
        /// Which threads it orders against.
        scope: MemoryScope,
    }
    /// An atomic compare-and-swap.
    AtomicCas {
        /// Memory ordering.
        order: MemoryOrder,
        /// Which threads it orders against.
        scope: MemoryScope,
    }
    /// A counted loop.
    Loop {
        /// Pipeline depth asked for in the loop itself; 0 leaves it to the kernel's `num_stages`.
        stages: u32,
        /// Unroll factor asked for; 0 or 1 for none.
        unroll: u32,
        /// True when the loop nest may be fused into one loop.
        flatten: bool,
        /// True when warp specialization is asked for.
        warp_specialize: bool,
    }
    /// A prefix scan.
    Scan {
        /// Tile axis.
        axis: u32,
        /// True scans from the end.
        reverse: bool,
    }
    /// A matrix product.
    Dot {
        /// How f32 operands use the matrix units.
        precision: DotPrecision,
        /// For 8-bit floats: how many products may be summed in the units' reduced precision.
        max_imprecise: u32,
    }
    /// A matrix product of block-scaled operands.
    DotScaled {
        /// Format of the left operand.
        lhs: ScaledFormat,
        /// Format of the right operand.
        rhs: ScaledFormat,
        /// Two left values share a byte along K.
        lhs_k_pack: bool,
        /// Two right values share a byte along K.
        rhs_k_pack: bool,
    }
    /// A histogram.
    Bins {
        /// Number of bins.
        bins: u32,
    }
    /// A sort along the last axis, by a bitonic network.
    Sort {
        /// Runs of this many elements, a power of two, are in order already, upward and downward in
        /// turn: where the network starts.
        runs: u32,
        /// Largest first.
        descending: bool,
        /// How many elements of each row remain, the first ones in order.
        keep: u32,
    }
    /// Facts that the author asserts about an integer or pointer, one entry per axis.
    Facts {
        /// The first element of each run is a multiple of this; empty for no claim.
        divisibility: Longs,
        /// Runs of this many elements increase by one; empty for no claim.
        contiguity: Longs,
        /// Runs of this many elements are equal; empty for no claim.
        constancy: Longs,
    }
    /// A message for the person who runs the kernel.
    Message {
        /// The text, or the prefix of what is printed.
        text: Text,
        /// Print integers in hexadecimal.
        hex: bool,
    }
    /// A math function by its libdevice name without prefix, such as `tanh`.
    Extern {
        /// The name.
        symbol: Text,
    }
    /// Inline PTX.
    InlineAsm {
        /// The assembly text.
        asm: Text,
        /// LLVM constraint string.
        constraints: Text,
        /// Elements handled by one instance.
        pack: u32,
        /// False when it has effects beyond its results.
        pure: bool,
    }
    /// Elementwise application of a region.
    Pack {
        /// Elements handled by one instance of the region.
        pack: u32,
    }
    /// A group of asynchronous operations.
    Wait {
        /// How many of the most recent groups may still be pending.
        pending: u32,
    }
    /// How a tensor is copied in bulk.
    Boxes {
        /// Extents of what one instruction copies, outermost first.
        extents: Shape,
        /// How the storage permutes chunks of a row, by its length in bytes: 32, 64 or 128.
        swizzle: u32,
    }
    /// A number of bytes.
    Bytes {
        /// The number.
        bytes: u32,
    }
}

/// A list of 64-bit integers.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Longs(pub SmallVec<[i64; 4]>);

/// Shared text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Text(pub Arc<str>);

impl From<&str> for Text {
    fn from(text: &str) -> Text {
        Text(Arc::from(text))
    }
}

macro_rules! keyword_enum {
    ($( $(#[$doc:meta])* $name:ident { $( $(#[$vdoc:meta])* $variant:ident = $text:literal ),* $(,)? } )*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
            pub enum $name { $( $(#[$vdoc])* $variant, )* }

            impl $name {
                /// Every value.
                pub const ALL: &'static [$name] = &[ $( $name::$variant, )* ];

                /// Spelling in the text form.
                pub fn name(self) -> &'static str {
                    match self { $( $name::$variant => $text, )* }
                }
            }

            impl AttrField for $name {
                fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str(self.name())
                }
                fn read(text: &str) -> Result<$name, String> {
                    $name::ALL.iter().copied().find(|value| value.name() == text)
                        .ok_or_else(|| format!("one of {}", [$( $text ),*].join(", ")))
                }
            }
        )*
    };
}

keyword_enum! {
    /// Predicates of integer and pointer comparison.
    IntPredicate {
        /// Equal.
        Eq = "eq",
        /// Not equal.
        Ne = "ne",
        /// Signed less.
        Slt = "slt",
        /// Signed less or equal.
        Sle = "sle",
        /// Signed greater.
        Sgt = "sgt",
        /// Signed greater or equal.
        Sge = "sge",
        /// Unsigned less.
        Ult = "ult",
        /// Unsigned less or equal.
        Ule = "ule",
        /// Unsigned greater.
        Ugt = "ugt",
        /// Unsigned greater or equal.
        Uge = "uge",
    }
    /// Predicates of float comparison: ordered ones are false on NaN, `une` is true.
    FloatPredicate {
        /// Equal, ordered.
        Oeq = "oeq",
        /// Not equal, or unordered.
        Une = "une",
        /// Less, ordered.
        Olt = "olt",
        /// Less or equal, ordered.
        Ole = "ole",
        /// Greater, ordered.
        Ogt = "ogt",
        /// Greater or equal, ordered.
        Oge = "oge",
    }
    /// Rounding of narrowing conversions.
    Rounding {
        /// To nearest, ties to even.
        Nearest = "rtne",
        /// Toward zero.
        TowardZero = "rtz",
    }
    /// Cache modifiers of loads and stores, as PTX names them.
    CacheModifier {
        /// The default.
        Default = "default",
        /// Cache at all levels.
        Ca = "ca",
        /// Cache in L2 only.
        Cg = "cg",
        /// Do not cache, fetch again.
        Cv = "cv",
        /// Write back.
        Wb = "wb",
        /// Streaming.
        Cs = "cs",
        /// Write through.
        Wt = "wt",
    }
    /// Eviction priority.
    Eviction {
        /// The default.
        Normal = "normal",
        /// Evict first.
        First = "first",
        /// Evict last.
        Last = "last",
    }
    /// Atomic operations. Integer minimum and maximum come signed and unsigned.
    AtomicOp {
        /// Integer addition.
        Add = "add",
        /// Float addition.
        FAdd = "fadd",
        /// Bitwise and.
        And = "and",
        /// Bitwise or.
        Or = "or",
        /// Bitwise exclusive or.
        Xor = "xor",
        /// Signed maximum.
        SMax = "smax",
        /// Signed minimum.
        SMin = "smin",
        /// Unsigned maximum.
        UMax = "umax",
        /// Unsigned minimum.
        UMin = "umin",
        /// Exchange.
        Exchange = "xchg",
        /// Gives what is there and writes nothing; the value operand is not read.
        Load = "load",
        /// Writes the value; what it gives is not specified.
        Store = "store",
    }
    /// Memory ordering of atomics.
    MemoryOrder {
        /// No ordering.
        Relaxed = "relaxed",
        /// Acquire.
        Acquire = "acquire",
        /// Release.
        Release = "release",
        /// Acquire and release.
        AcqRel = "acq_rel",
    }
    /// Which threads an atomic orders against.
    MemoryScope {
        /// The cooperative thread array.
        Cta = "cta",
        /// The device.
        Gpu = "gpu",
        /// The whole system.
        Sys = "sys",
    }
    /// How f32 operands of a matrix product use the matrix units.
    DotPrecision {
        /// One TF32 product.
        Tf32 = "tf32",
        /// Three TF32 products.
        Tf32x3 = "tf32x3",
        /// IEEE f32 multiply-add, off the matrix units.
        Ieee = "ieee",
        /// Three bf16 products.
        Bf16x3 = "bf16x3",
        /// Six bf16 products.
        Bf16x6 = "bf16x6",
    }
    /// Operand formats of block-scaled products.
    ScaledFormat {
        /// 4-bit float, two to a byte.
        E2M1 = "e2m1",
        /// 8-bit float.
        E4M3 = "e4m3",
        /// 8-bit float.
        E5M2 = "e5m2",
        /// Brain float.
        Bf16 = "bf16",
        /// Half precision.
        Fp16 = "fp16",
    }
}

impl Constant {
    /// The constant for `value` in the encoding of the integer type `scalar`.
    pub fn int(scalar: Scalar, value: i128) -> Constant {
        let mask = if scalar.bits() == 64 { u64::MAX } else { (1 << scalar.bits()) - 1 };
        Constant { bits: value as u64 & mask }
    }

    /// The constant for `number` in the encoding of the float type `scalar`, if that is exact and has more than 8 bits.
    pub fn float(scalar: Scalar, number: f64) -> Option<Constant> {
        let bits = match scalar {
            Scalar::F16 => f16::from_f64(number).to_bits().into(),
            Scalar::BF16 => bf16::from_f64(number).to_bits().into(),
            Scalar::F32 => (number as f32).to_bits().into(),
            Scalar::F64 => number.to_bits(),
            _ => return None,
        };
        Some(Constant { bits }).filter(|constant| constant.number(scalar) == Some(number))
    }

    /// The number that it is in the encoding of the float type `scalar`, unless that has 8 bits.
    pub fn number(&self, scalar: Scalar) -> Option<f64> {
        match scalar {
            Scalar::F16 => Some(f16::from_bits(self.bits as u16).to_f64()),
            Scalar::BF16 => Some(bf16::from_bits(self.bits as u16).to_f64()),
            Scalar::F32 => Some(f32::from_bits(self.bits as u32).into()),
            Scalar::F64 => Some(f64::from_bits(self.bits)),
            _ => None,
        }
    }
}

impl AttrField for u32 {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
    fn read(text: &str) -> Result<u32, String> {
        text.parse().map_err(|_| "a non-negative integer".to_owned())
    }
}

impl AttrField for u64 {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:#x}")
    }
    fn read(text: &str) -> Result<u64, String> {
        let digits = text.strip_prefix("0x").ok_or("a hexadecimal integer")?;
        u64::from_str_radix(digits, 16).map_err(|_| "a hexadecimal integer".to_owned())
    }
}

impl AttrField for i64 {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
    fn read(text: &str) -> Result<i64, String> {
        text.parse().map_err(|_| "an integer".to_owned())
    }
}

impl AttrField for bool {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
    fn read(text: &str) -> Result<bool, String> {
        text.parse().map_err(|_| "true or false".to_owned())
    }
}

impl AttrField for Shape {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_list(f, self)
    }
    fn read(text: &str) -> Result<Shape, String> {
        read_list(text)
    }
}

impl AttrField for Longs {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_list(f, &self.0)
    }
    fn read(text: &str) -> Result<Longs, String> {
        read_list(text).map(Longs)
    }
}

impl AttrField for Text {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
    fn read(text: &str) -> Result<Text, String> {
        let quoted = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        unescape(quoted.ok_or("a quoted string")?).map(|text| Text(text.into()))
    }
}

fn write_list<T: fmt::Display>(f: &mut fmt::Formatter<'_>, items: &[T]) -> fmt::Result {
    f.write_str("[")?;
    for (at, item) in items.iter().enumerate() {
        write!(f, "{}{item}", if at == 0 { "" } else { ", " })?;
    }
    f.write_str("]")
}

fn read_list<T: std::str::FromStr, C: FromIterator<T>>(text: &str) -> Result<C, String> {
    let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let inner = inner.ok_or("a list in brackets")?.trim();
    let items = inner.split(',').map(str::trim).filter(|item| !item.is_empty());
    items.map(|item| item.parse().map_err(|_| "a list of integers".to_owned())).collect()
}

/// Undoes Rust's string escapes, which is how text is printed.
fn unescape(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some('0') => out.push('\0'),
            Some('u') => {
                let code: String =
                    chars.by_ref().skip(1).take_while(|&digit| digit != '}').collect();
                let value = u32::from_str_radix(&code, 16).ok().and_then(char::from_u32);
                out.push(value.ok_or("a Unicode escape such as \\u{7f}")?);
            }
            Some(c) => out.push(c),
            None => return Err("an escape after the backslash".to_owned()),
        }
    }
    Ok(out)
}

impl IntPredicate {
    /// The predicate that says the same of operands that have changed places.
    pub(crate) fn swapped(self) -> IntPredicate {
        use IntPredicate::{Eq, Ne, Sge, Sgt, Sle, Slt, Uge, Ugt, Ule, Ult};
        match self {
            Eq | Ne => self,
            Slt => Sgt,
            Sle => Sge,
            Sgt => Slt,
            Sge => Sle,
            Ult => Ugt,
            Ule => Uge,
            Ugt => Ult,
            Uge => Ule,
        }
    }
}
