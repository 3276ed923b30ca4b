//! Abstract values: what an expression of a kernel evaluates to.

use std::sync::Arc;

use super::closure::Closure;
use super::dtype::{DType, Elem};
use super::symbolic::Sym;
use crate::builtins::Builtin;
use crate::hir::{Class, Function, Name};
use crate::ir;
use crate::project::{Also, Enumeration};
use crate::source::{FileId, FileRange};

/// What an expression evaluates to.
#[derive(Debug, Clone)]
pub enum Value {
    /// Nothing is known, or an error was reported; absorbs silently.
    Unknown,
    /// A compile-time value.
    Const(Const),
    /// A scalar or a tile at run time.
    Tensor(Tensor),
    /// A tuple; lists are tuples.
    Tuple(Arc<Tuple>),
    /// A function of some file.
    Function(FunctionRef),
    /// A member of the language.
    Builtin(&'static Builtin),
    /// A method with its receiver.
    Bound(Arc<(Value, Value)>),
    /// A module.
    Module(ModuleRef),
    /// A pointer to a block of an n-dimensional array.
    BlockPtr(Arc<BlockPtr>),
    /// A tensor descriptor.
    Descriptor(Arc<Descriptor>),
    /// A class of some file.
    Class(ClassRef),
    /// An instance of an aggregate class.
    Object(Arc<Object>),
    /// What a `for` iterates.
    Range(Arc<RangeValue>),
    /// One of several functions; which one is known only when the module runs.
    Either(Arc<[Value]>),
    /// `tl.condition(...)`: the condition of a `while`.
    Condition(Arc<Value>),
}

/// A compile-time value.
#[derive(Debug, Clone)]
pub enum Const {
    /// `None`.
    None,
    /// A bool.
    Bool(bool),
    /// An integer.
    Int(i128),
    /// A float.
    Float(f64),
    /// A string.
    Str(Arc<str>),
    /// An element type.
    DType(Elem),
    /// A type of PyTorch, which the language does not take for its own.
    TorchDType(DType),
    /// The type of a tile.
    BlockType(Elem, Shape),
    /// The type of a block pointer: a pointer to a tile.
    BlockPtrType(Elem, Shape),
    /// The type of a tensor descriptor of such tiles.
    DescriptorType(Elem, Shape),
    /// `lower:upper:step`.
    Slice(Arc<[Option<Const>; 3]>),
    /// `...`.
    Ellipsis,
    /// A value of Python that no operation of the language takes, by its text: a complex number,
    /// bytes, the type of a tuple.
    Opaque(Arc<str>),
    /// A member of an enumeration of the language, such as `PropagateNan.ALL`.
    Enum(&'static str),
    /// A member of an enumeration of some file.
    Member(Arc<Member>),
    /// Not known yet: a symbol for a number, or for anything at all.
    Symbol(Sym),
}

/// Extents of a tile, perhaps not even their number. Cheap to clone, and small: there is one in every
/// value that evaluation records.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Shape(Extents);

#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
enum Extents {
    /// The rank is not known.
    #[default]
    Unknown,
    Scalar,
    /// Of a rank above 0.
    Tile(Arc<[Sym]>),
}

/// A scalar (rank 0) or a tile at run time.
#[derive(Debug, Clone)]
pub struct Tensor {
    /// Type of its elements.
    pub elem: Elem,
    /// Its extents.
    pub shape: Shape,
    /// The IR's value; `None` when nothing is emitted.
    pub ir: Option<ir::Value>,
    /// Why it is not a compile-time value.
    pub origin: Origin,
    /// It comes from an argument that may also be `None`, a number known at launch, a tuple or a
    /// descriptor; only while nothing else is known of it.
    pub open: bool,
    /// What it is known for while its type is not known.
    pub number: Option<Number>,
}

/// What an operator makes of operands of which one is of an unknown type, other than a pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Number {
    /// Where a float went into it: a float of some width, or an error where something else is a pointer.
    Float(FileRange),
    /// A number of some kind: no pointer is multiplied, divided or shifted.
    Any,
}

/// Index into the evaluator's list of reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Origin(pub u32);

impl Origin {
    /// No reason recorded.
    pub(crate) const NONE: Origin = Origin(u32::MAX);
}

/// A tuple, with names if it is a named one.
#[derive(Debug, Clone)]
pub struct Tuple {
    /// The elements.
    pub items: Vec<Value>,
    /// The class and field names of a named tuple.
    pub named: Option<Arc<(Name, Vec<Name>)>>,
    /// Whether one constexpr holds it.
    pub held: Held,
}

/// How the language holds a tuple.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Held {
    /// As its elements.
    #[default]
    Elements,
    /// Before Triton 3.9, a tuple that is annotated `tl.constexpr`: assignments leave its elements
    /// as they are. The first `shown` of them print as constexprs.
    Annotated {
        /// How many.
        shown: usize,
    },
    /// A tuple of Python in one constexpr, as globals are: it is indexed and passed, not assigned.
    Python,
    /// As [`Self::Python`], a list.
    PythonList,
}

impl Held {
    /// True for a value of Python in one constexpr.
    pub(crate) fn is_python(self) -> bool {
        matches!(self, Held::Python | Held::PythonList)
    }
}

impl Tuple {
    /// The same tuple with other elements.
    pub(crate) fn with_items(&self, items: Vec<Value>) -> Tuple {
        Tuple { items, named: self.named.clone(), held: self.held }
    }
}

/// A function of some file.
#[derive(Debug, Clone)]
pub struct FunctionRef {
    /// The file that defines it.
    pub file: FileId,
    /// The function.
    pub function: Arc<Function>,
    /// What its decorators make of it.
    pub kind: FunctionKind,
    /// Names of the functions and classes around it, outermost first.
    pub scope: Arc<[Name]>,
    /// Variables of the functions around it.
    pub closure: Closure,
}

/// What decorators make of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FunctionKind {
    /// Who may call it.
    pub role: Role,
    /// `noinline=True`: takes no tiles.
    pub noinline: bool,
    /// The result may not be dropped.
    pub must_use: bool,
}

/// Who may call a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// `@triton.jit`.
    Jit,
    /// `@triton.constexpr_function`.
    Constexpr,
    /// The Python function that a jit function wraps, `f.fn`, or one marked `@tl.constexpr`: runs at
    /// compile time.
    Wrapped,
    /// A builtin written in Python: runs at compile time, on tensors too.
    Builtin,
    /// Neither: host code.
    Host,
    /// Decorated in a way that is not understood.
    Unknown,
}

/// A class of some file.
#[derive(Debug, Clone)]
pub struct ClassRef {
    /// The file that defines it.
    pub file: FileId,
    /// The class.
    pub class: Arc<Class>,
}

/// A module that a name is bound to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ModuleRef {
    /// A module of Triton or Python that the table of builtins knows, by its dotted path.
    Known(Arc<str>),
    /// A module of the workspace.
    File(FileId),
    /// A folder with modules, by its path as this file imports them.
    Folder(FileId, Arc<[Name]>),
}

/// A pointer to a block of an n-dimensional array in memory.
#[derive(Debug, Clone)]
pub struct BlockPtr {
    /// Pointer to the array's first element.
    pub base: Tensor,
    /// Extents of the array, `int64`.
    pub shape: Vec<Tensor>,
    /// Strides in elements, `int64`.
    pub strides: Vec<Tensor>,
    /// Position of the block, `int32`.
    pub offsets: Vec<Tensor>,
    /// Extents of the block.
    pub block: Shape,
}

/// A tensor descriptor.
#[derive(Debug, Clone)]
pub struct Descriptor {
    /// Pointer to the first element.
    pub base: Tensor,
    /// Extents of the array, `int32`.
    pub shape: Vec<Tensor>,
    /// Strides in elements, `int64`.
    pub strides: Vec<Tensor>,
    /// Extents of the block.
    pub block: Shape,
    /// Reads outside give NaN instead of zero.
    pub nan_padding: bool,
}

/// An instance of an aggregate class.
#[derive(Debug, Clone)]
pub struct Object {
    /// Its class.
    pub class: ClassRef,
    /// Fields in the order of the class.
    pub fields: Vec<(Name, Value)>,
}

/// A member of an enumeration of some file.
#[derive(Debug, Clone)]
pub struct Member {
    /// Its class.
    pub class: ClassRef,
    /// What members of the class are besides.
    pub kind: Enumeration,
    /// Its name; of bits that have none together, the names of each with `|` between.
    pub name: Name,
    /// What the class binds it to.
    pub value: Value,
    /// No constexpr holds it: `.value` is what the class binds it to, not the member.
    pub bare: bool,
}

impl Member {
    /// The number or string that it also is.
    pub fn plain(&self) -> Option<&Const> {
        match (self.kind.also?, &self.value) {
            (Also::Int, Value::Const(value @ (Const::Int(_) | Const::Bool(_))))
            | (Also::Str, Value::Const(value @ Const::Str(_))) => Some(value),
            _ => None,
        }
    }

    /// True for the same member of the same class.
    pub fn is_same(&self, other: &Member) -> bool {
        self.class.file == other.class.file
            && self.class.class.name == other.class.class.name
            && self.name == other.name
    }
}

/// What a `for` iterates.
#[derive(Debug, Clone)]
pub struct RangeValue {
    /// It is Python's own `range`, which cannot be assigned.
    pub python: bool,
    /// First index.
    pub start: Value,
    /// One past the last index.
    pub end: Value,
    /// Step.
    pub step: Value,
    /// Unrolled at compile time: `tl.static_range`.
    pub unrolled: bool,
    /// Options of `tl.range`.
    pub options: ir::Loop,
}

impl Value {
    /// `None`.
    pub(crate) const NONE: Value = Value::Const(Const::None);

    /// What a store gives: a tensor that has no value.
    pub fn void() -> Value {
        Value::Tensor(Tensor::new(Elem::Void, Shape::scalar()))
    }

    /// True for what [`Self::void`] gives.
    pub(crate) fn is_void(&self) -> bool {
        matches!(self, Value::Tensor(tensor) if tensor.elem == Elem::Void)
    }

    /// A compile-time bool.
    pub fn bool(value: bool) -> Value {
        Value::Const(Const::Bool(value))
    }

    /// A compile-time integer.
    pub fn int(value: i128) -> Value {
        Value::Const(Const::Int(value))
    }

    /// A compile-time string.
    pub fn str(text: impl Into<Arc<str>>) -> Value {
        Value::Const(Const::Str(text.into()))
    }

    /// A tuple without names.
    pub fn tuple(items: Vec<Value>) -> Value {
        Value::held_tuple(items, Held::Elements)
    }

    /// A tuple without names, and how it is held.
    pub(crate) fn held_tuple(items: Vec<Value>, held: Held) -> Value {
        Value::Tuple(Arc::new(Tuple { items, named: None, held }))
    }

    /// The value, where it is a tuple as one that is held so.
    pub fn held(self, held: Held) -> Value {
        match self {
            Value::Tuple(tuple) => Value::Tuple(Arc::new(Tuple { held, ..(*tuple).clone() })),
            other => other,
        }
    }

    /// The value as operations take it: members of enumerations that are also numbers or strings
    /// count as these.
    pub fn operand(self) -> Value {
        match &self {
            Value::Const(Const::Member(member)) => match member.plain() {
                Some(plain) => Value::Const(plain.clone()),
                None => self.in_constexpr(),
            },
            _ => self,
        }
    }

    /// The value as a name holds it: a constexpr holds members of enumerations.
    pub(crate) fn in_constexpr(self) -> Value {
        match self {
            Value::Const(Const::Member(member)) if member.bare => {
                Value::Const(Const::Member(Arc::new(Member { bare: false, ..(*member).clone() })))
            }
            other => other,
        }
    }

    /// The compile-time value, if it is one.
    pub(crate) fn as_const(&self) -> Option<&Const> {
        match self {
            Value::Const(value) => Some(value),
            _ => None,
        }
    }

    /// The tensor, if it is one.
    pub fn as_tensor(&self) -> Option<&Tensor> {
        match self {
            Value::Tensor(tensor) => Some(tensor),
            _ => None,
        }
    }

    /// True for `None`.
    pub fn is_none(&self) -> bool {
        matches!(self, Value::Const(Const::None))
    }

    /// True when nothing is known.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Value::Unknown)
    }
}

impl Const {
    /// The number as a symbolic integer, for integers, bools and symbols.
    pub(crate) fn to_sym(&self) -> Option<Sym> {
        match self {
            Const::Int(value) => Some(Sym::Int(*value)),
            Const::Bool(value) => Some(Sym::Int(i128::from(*value))),
            Const::Symbol(sym) => Some(sym.clone()),
            Const::Member(member) => member.plain()?.to_sym(),
            _ => None,
        }
    }

    /// The integer of a symbolic result.
    pub(crate) fn from_sym(sym: Sym) -> Const {
        match sym {
            Sym::Int(value) => Const::Int(value),
            poly @ Sym::Poly(_) => Const::Symbol(poly),
        }
    }

    /// Python's truth value; `None` when it is not known.
    pub fn truth(&self) -> Option<bool> {
        match self {
            Const::None => Some(false),
            Const::Bool(value) => Some(*value),
            Const::Int(value) => Some(*value != 0),
            Const::Float(value) => Some(*value != 0.0),
            Const::Str(text) => Some(!text.is_empty()),
            Const::Member(member) => match &member.value {
                Value::Const(value) if member.kind.flag || member.kind.also.is_some() => {
                    value.truth()
                }
                _ => Some(true),
            },
            Const::Symbol(_) => None,
            _ => Some(true),
        }
    }

    /// True for a value that is not known yet.
    pub(crate) fn is_symbol(&self) -> bool {
        matches!(self, Const::Symbol(_))
    }
}

impl Shape {
    /// The shape of scalars.
    pub fn scalar() -> Shape {
        Shape(Extents::Scalar)
    }

    /// A shape of which nothing is known.
    pub fn unknown() -> Shape {
        Shape(Extents::Unknown)
    }

    /// A shape of known extents.
    pub fn of(extents: impl IntoIterator<Item = Sym>) -> Shape {
        let extents: Arc<[Sym]> = extents.into_iter().collect();
        Shape(if extents.is_empty() { Extents::Scalar } else { Extents::Tile(extents) })
    }

    /// Its extents, if the rank is known.
    pub(crate) fn dims(&self) -> Option<&[Sym]> {
        match &self.0 {
            Extents::Unknown => None,
            Extents::Scalar => Some(&[]),
            Extents::Tile(extents) => Some(extents),
        }
    }

    /// Its rank, if it is known.
    pub fn rank(&self) -> Option<usize> {
        self.dims().map(<[Sym]>::len)
    }

    /// True when it is certainly a scalar.
    pub fn is_scalar(&self) -> bool {
        self.rank() == Some(0)
    }

    /// True when it is certainly a tile.
    pub fn is_block(&self) -> bool {
        self.rank().is_some_and(|rank| rank > 0)
    }

    /// Number of elements, if the rank is known.
    pub fn numel(&self) -> Option<Sym> {
        Some(self.dims()?.iter().fold(Sym::Int(1), |product, extent| product.mul(extent)))
    }

    /// All extents as the IR holds them, if all are known.
    pub fn known(&self) -> Option<ir::Shape> {
        self.dims()?.iter().map(|extent| u32::try_from(extent.int()?).ok()).collect()
    }
}

impl Tensor {
    /// A tensor of which no IR exists.
    pub fn new(elem: Elem, shape: Shape) -> Tensor {
        Tensor { elem, shape, ir: None, origin: Origin::NONE, open: false, number: None }
    }

    /// True when it is certainly a scalar.
    pub fn is_scalar(&self) -> bool {
        self.shape.is_scalar()
    }

    /// True when it is certainly a tile.
    pub fn is_block(&self) -> bool {
        self.shape.is_block()
    }

    /// True for what so little is known of that it may be anything at launch: a number, a
    /// pointer, `None`, a tuple, a descriptor.
    pub fn is_open(&self) -> bool {
        self.open && self.elem.is_unknown() && !self.is_block()
    }

    /// A scalar or tile of which nothing is known, not even that it exists at run time.
    pub fn anything(shape: Shape, origin: Origin) -> Tensor {
        Tensor { elem: Elem::Unknown, shape, ir: None, origin, open: true, number: None }
    }
}

impl From<Tensor> for Value {
    fn from(tensor: Tensor) -> Value {
        Value::Tensor(tensor)
    }
}

impl From<Const> for Value {
    fn from(value: Const) -> Value {
        Value::Const(value)
    }
}
