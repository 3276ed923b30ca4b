//! Types of tile IR values.

use std::fmt;

use smallvec::SmallVec;

use super::LayoutId;

/// A scalar numeric type. Integers carry no sign: operations do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scalar {
    /// One bit. In memory a byte that is 0 or 1.
    I1,
    /// 8-bit integer.
    I8,
    /// 16-bit integer.
    I16,
    /// 32-bit integer.
    I32,
    /// 64-bit integer.
    I64,
    /// 8-bit float, 5 exponent and 2 mantissa bits, IEEE-like with infinities.
    F8E5,
    /// 8-bit float, 4 exponent and 3 mantissa bits, no infinities (`e4m3fn`).
    F8E4NV,
    /// 8-bit float, 4 exponent bits of bias 15, 3 mantissa bits.
    F8E4B15,
    /// IEEE half precision.
    F16,
    /// Brain float: the upper half of an `F32`.
    BF16,
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
}

impl Scalar {
    /// Every scalar type.
    pub const ALL: [Scalar; 12] = [
        Scalar::I1,
        Scalar::I8,
        Scalar::I16,
        Scalar::I32,
        Scalar::I64,
        Scalar::F8E5,
        Scalar::F8E4NV,
        Scalar::F8E4B15,
        Scalar::F16,
        Scalar::BF16,
        Scalar::F32,
        Scalar::F64,
    ];

    /// Width in bits; `I1` has one.
    pub fn bits(self) -> u32 {
        match self {
            Scalar::I1 => 1,
            Scalar::I8 | Scalar::F8E5 | Scalar::F8E4NV | Scalar::F8E4B15 => 8,
            Scalar::I16 | Scalar::F16 | Scalar::BF16 => 16,
            Scalar::I32 | Scalar::F32 => 32,
            Scalar::I64 | Scalar::F64 => 64,
        }
    }

    /// Size in memory in bytes; `I1` takes a whole byte.
    pub fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    /// True for the integer types, `I1` included.
    pub fn is_int(self) -> bool {
        matches!(self, Scalar::I1 | Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64)
    }

    /// True for the floating types.
    pub fn is_float(self) -> bool {
        !self.is_int()
    }

    /// True for the 8-bit floating types.
    pub fn is_fp8(self) -> bool {
        matches!(self, Scalar::F8E5 | Scalar::F8E4NV | Scalar::F8E4B15)
    }

    /// Spelling in the text form.
    pub fn name(self) -> &'static str {
        match self {
            Scalar::I1 => "i1",
            Scalar::I8 => "i8",
            Scalar::I16 => "i16",
            Scalar::I32 => "i32",
            Scalar::I64 => "i64",
            Scalar::F8E5 => "f8e5",
            Scalar::F8E4NV => "f8e4nv",
            Scalar::F8E4B15 => "f8e4b15",
            Scalar::F16 => "f16",
            Scalar::BF16 => "bf16",
            Scalar::F32 => "f32",
            Scalar::F64 => "f64",
        }
    }

    /// The scalar type spelled `name`.
    pub fn from_name(name: &str) -> Option<Scalar> {
        Scalar::ALL.into_iter().find(|scalar| scalar.name() == name)
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Type of one element: a number, or a pointer to numbers in global memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Elem {
    /// A number.
    Scalar(Scalar),
    /// A pointer to elements of the given type in global memory; offsets count elements.
    Ptr(Scalar),
    /// A pointer to pointers to the given type, each 64 bits wide.
    PtrPtr(Scalar),
}

impl Elem {
    /// Width in bits; pointers have 64.
    pub fn bits(self) -> u32 {
        match self {
            Elem::Scalar(scalar) => scalar.bits(),
            Elem::Ptr(_) | Elem::PtrPtr(_) => 64,
        }
    }

    /// Size in memory in bytes; `I1` takes a whole byte.
    pub fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    /// The number type, unless this is a pointer.
    pub fn scalar(self) -> Option<Scalar> {
        match self {
            Elem::Scalar(scalar) => Some(scalar),
            Elem::Ptr(_) | Elem::PtrPtr(_) => None,
        }
    }

    /// What a pointer points to; `None` for numbers.
    pub fn pointee(self) -> Option<Elem> {
        match self {
            Elem::Scalar(_) => None,
            Elem::Ptr(scalar) => Some(Elem::Scalar(scalar)),
            Elem::PtrPtr(scalar) => Some(Elem::Ptr(scalar)),
        }
    }

    /// True for pointers.
    pub fn is_ptr(self) -> bool {
        matches!(self, Elem::Ptr(_) | Elem::PtrPtr(_))
    }

    /// True for integers.
    pub fn is_int(self) -> bool {
        self.scalar().is_some_and(Scalar::is_int)
    }

    /// True for floats.
    pub fn is_float(self) -> bool {
        self.scalar().is_some_and(Scalar::is_float)
    }
}

impl From<Scalar> for Elem {
    fn from(scalar: Scalar) -> Elem {
        Elem::Scalar(scalar)
    }
}

impl fmt::Display for Elem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Elem::Scalar(scalar) => write!(f, "{scalar}"),
            Elem::Ptr(scalar) => write!(f, "ptr<{scalar}>"),
            Elem::PtrPtr(scalar) => write!(f, "ptr<ptr<{scalar}>>"),
        }
    }
}

/// Extents of a tile, outermost first, each a power of two. Empty for scalars.
pub type Shape = SmallVec<[u32; 4]>;

/// Type of an SSA value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Type {
    /// One element, the same in every thread of the program.
    Scalar(Elem),
    /// A tile of elements, distributed over the program's threads.
    Tile(TileType),
    /// A buffer in shared memory (GPU level only).
    Buffer(BufferType),
    /// Completion of a group of asynchronous operations (GPU level only).
    Token,
    /// What the bulk copy engine knows of a tensor (GPU level only).
    TensorMap,
}

/// A tile of elements.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TileType {
    /// Element type.
    pub elem: Elem,
    /// Extents, outermost first; at least one.
    pub shape: Shape,
    /// Which thread holds which element. `None` at tile level, always present at GPU level.
    pub layout: Option<LayoutId>,
}

/// A buffer in shared memory: `stages` copies of a tile, for pipelines.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BufferType {
    /// Element type.
    pub elem: Elem,
    /// Extents of one stage, outermost first.
    pub shape: Shape,
    /// Number of stages; 1 when the buffer is not multi-buffered.
    pub stages: u32,
    /// Map from byte offset within a stage to tile coordinates.
    pub layout: LayoutId,
}

impl Type {
    /// A scalar number type.
    pub fn scalar(scalar: Scalar) -> Type {
        Type::Scalar(Elem::Scalar(scalar))
    }

    /// The type of `elem` at `shape` without layout: a scalar when the shape is empty.
    pub fn of(elem: impl Into<Elem>, shape: &[u32]) -> Type {
        if shape.is_empty() {
            Type::Scalar(elem.into())
        } else {
            Type::Tile(TileType {
                elem: elem.into(),
                shape: SmallVec::from_slice(shape),
                layout: None,
            })
        }
    }

    /// Element type; `None` for tokens and tensor maps.
    pub fn elem(&self) -> Option<Elem> {
        match self {
            Type::Scalar(elem) => Some(*elem),
            Type::Tile(tile) => Some(tile.elem),
            Type::Buffer(buffer) => Some(buffer.elem),
            Type::Token | Type::TensorMap => None,
        }
    }

    /// Number type of the elements; `None` for pointers, tokens and tensor maps.
    pub fn number(&self) -> Option<Scalar> {
        self.elem().and_then(Elem::scalar)
    }

    /// Extents; empty for scalars, tokens and tensor maps.
    pub fn shape(&self) -> &[u32] {
        match self {
            Type::Tile(tile) => &tile.shape,
            Type::Buffer(buffer) => &buffer.shape,
            Type::Scalar(_) | Type::Token | Type::TensorMap => &[],
        }
    }

    /// Number of elements; 1 for scalars.
    pub fn numel(&self) -> usize {
        self.shape().iter().map(|&extent| extent as usize).product()
    }

    /// The layout of a tile or buffer.
    pub fn layout(&self) -> Option<LayoutId> {
        match self {
            Type::Tile(tile) => tile.layout,
            Type::Buffer(buffer) => Some(buffer.layout),
            Type::Scalar(_) | Type::Token | Type::TensorMap => None,
        }
    }

    /// True for tiles.
    pub fn is_tile(&self) -> bool {
        matches!(self, Type::Tile(_))
    }

    /// The same shape and layout with another element type.
    #[must_use]
    pub fn with_elem(&self, elem: impl Into<Elem>) -> Type {
        let elem = elem.into();
        match self {
            Type::Scalar(_) | Type::Token | Type::TensorMap => Type::Scalar(elem),
            Type::Tile(tile) => Type::Tile(TileType { elem, ..tile.clone() }),
            Type::Buffer(buffer) => Type::Buffer(BufferType { elem, ..buffer.clone() }),
        }
    }

    /// The same tile in `layout`; scalars have none and stay.
    #[must_use]
    pub(crate) fn with_layout(&self, layout: LayoutId) -> Type {
        match self {
            Type::Tile(tile) => Type::Tile(TileType { layout: Some(layout), ..tile.clone() }),
            other => other.clone(),
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Scalar(elem) => write!(f, "{elem}"),
            Type::Tile(tile) => {
                f.write_str("tile<")?;
                write_extents(f, &tile.shape)?;
                write!(f, "{}", tile.elem)?;
                match tile.layout {
                    Some(layout) => write!(f, ", {layout}>"),
                    None => f.write_str(">"),
                }
            }
            Type::Buffer(buffer) => {
                f.write_str("buffer<")?;
                write_extents(f, &buffer.shape)?;
                write!(f, "{}, stages={}, {}>", buffer.elem, buffer.stages, buffer.layout)
            }
            Type::Token => f.write_str("token"),
            Type::TensorMap => f.write_str("tensor_map"),
        }
    }
}

fn write_extents(f: &mut fmt::Formatter<'_>, shape: &[u32]) -> fmt::Result {
    shape.iter().try_for_each(|extent| write!(f, "{extent}x"))
}
