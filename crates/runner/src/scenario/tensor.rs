//! Tensors on the host: views of storages, and values computed from them.

use std::sync::Arc;

use rayon::prelude::*;
use tile_compiler::specialization::{ConstArg, MemberArg, TupleNames};

use super::dtype::DType;
use tile_executor::number;

/// Elements that one tensor of a scenario may have.
const MAX_ELEMENTS: usize = 1 << 31;

/// How many elements a tensor of a shape has.
///
/// # Errors
/// When they are more than a scenario's tensors may have, in a sentence.
pub(super) fn numel(shape: &[usize]) -> Result<usize, String> {
    let numel = shape.iter().try_fold(1usize, |numel, &extent| numel.checked_mul(extent));
    let allowed = numel.filter(|numel| *numel <= MAX_ELEMENTS);
    allowed.ok_or_else(|| format!("a tensor of a scenario has at most {MAX_ELEMENTS} elements"))
}

/// How a tensor's elements lie in its storage, in elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Extents, outermost first.
    pub shape: Vec<usize>,
    /// Distance between neighbors along each axis.
    pub strides: Vec<isize>,
    /// Position of the first element.
    pub offset: usize,
}

impl Layout {
    /// Row-major elements.
    pub fn contiguous(shape: &[usize]) -> Layout {
        let mut strides = vec![1; shape.len()];
        for axis in (1..shape.len()).rev() {
            strides[axis - 1] = strides[axis] * shape[axis] as isize;
        }
        Layout { shape: shape.to_vec(), strides, offset: 0 }
    }

    /// Number of elements.
    pub fn numel(&self) -> usize {
        self.shape.iter().product()
    }

    /// True when the elements lie one after the other in row-major order.
    pub fn is_contiguous(&self) -> bool {
        let dense = Layout::contiguous(&self.shape);
        let axes = self.shape.iter().zip(self.strides.iter().zip(&dense.strides));
        axes.into_iter().all(|(&extent, (a, b))| extent <= 1 || a == b)
    }

    /// The axes in reverse order.
    #[must_use]
    pub fn transposed(&self) -> Layout {
        let mut layout = self.clone();
        layout.shape.reverse();
        layout.strides.reverse();
        layout
    }

    /// The same elements broadcast to `shape`.
    pub fn broadcast(&self, shape: &[usize]) -> Option<Layout> {
        let added = shape.len().checked_sub(self.shape.len())?;
        let mut strides = vec![0; added];
        for (axis, (&extent, &stride)) in self.shape.iter().zip(&self.strides).enumerate() {
            match (extent, shape[added + axis]) {
                (extent, wanted) if extent == wanted => strides.push(stride),
                (1, _) => strides.push(0),
                _ => return None,
            }
        }
        Some(Layout { shape: shape.to_vec(), strides, offset: self.offset })
    }

    /// Position of every element in row-major order.
    pub fn positions(&self) -> Vec<usize> {
        if self.is_contiguous() {
            return (self.offset..self.offset + self.numel()).collect();
        }
        let mut positions = vec![self.offset as isize];
        for (&extent, &stride) in self.shape.iter().zip(&self.strides) {
            let axis = |start: isize| (0..extent as isize).map(move |at| start + at * stride);
            positions = positions.into_iter().flat_map(axis).collect();
        }
        positions.into_iter().map(|position| position.max(0) as usize).collect()
    }
}

/// The shape to which both shapes broadcast.
pub fn broadcast_shapes(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
    let rank = a.len().max(b.len());
    let extent = |shape: &[usize], axis: usize| {
        (axis + shape.len()).checked_sub(rank).map_or(1, |axis| shape[axis])
    };
    (0..rank)
        .map(|axis| match (extent(a, axis), extent(b, axis)) {
            (x, y) if x == y => Some(x),
            (1, y) => Some(y),
            (x, 1) => Some(x),
            _ => None,
        })
        .collect()
}

/// A storage of a [`Store`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StorageId(pub usize);

/// Memory that tensors view, and that kernels read and write.
#[derive(Debug, Clone)]
pub struct Storage {
    /// The name first bound to it.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// What it holds.
    pub bytes: Vec<u8>,
    /// False when it was made by `empty` and nothing has written it.
    pub initialized: bool,
}

/// All storages of a scenario.
#[derive(Debug, Clone, Default)]
pub struct Store {
    /// By [`StorageId`].
    pub storages: Vec<Storage>,
}

impl Store {
    /// Adds a storage and returns the contiguous tensor of `shape` over it.
    pub fn add(
        &mut self,
        dtype: DType,
        shape: &[usize],
        bytes: Vec<u8>,
        initialized: bool,
    ) -> Tensor {
        self.storages.push(Storage { name: String::new(), dtype, bytes, initialized });
        let storage = StorageId(self.storages.len() - 1);
        Tensor { storage, dtype, layout: Layout::contiguous(shape) }
    }

    /// The storage of a tensor.
    pub fn get(&self, id: StorageId) -> &Storage {
        &self.storages[id.0]
    }

    /// What a tensor holds.
    pub fn read(&self, tensor: &Tensor) -> Array {
        let bytes = &self.get(tensor.storage).bytes;
        let size = tensor.dtype.bytes();
        let positions = tensor.layout.positions();
        let element = |&position: &usize| load_bits(bytes, position * size, size);
        let data = if tensor.dtype.is_float() {
            let decode = |bits: u64| tensor.dtype.decode_float(bits);
            Data::Float(positions.par_iter().map(|at| decode(element(at))).collect())
        } else {
            let decode = |bits: u64| tensor.dtype.decode_int(bits);
            Data::Int(positions.par_iter().map(|at| decode(element(at))).collect())
        };
        Array { dtype: tensor.dtype, shape: tensor.layout.shape.clone(), data }
    }

    /// Writes elements that have the type and shape of `tensor` to its memory.
    pub fn write(&mut self, tensor: &Tensor, array: &Array) {
        let size = tensor.dtype.bytes();
        let bytes = array.to_bytes();
        let storage = &mut self.storages[tensor.storage.0];
        for (element, position) in bytes.chunks(size).zip(tensor.layout.positions()) {
            let at = position * size;
            if let Some(place) = storage.bytes.get_mut(at..at + size) {
                place.copy_from_slice(element);
            }
        }
        storage.initialized = true;
    }

    /// A new contiguous tensor that holds `array`, rounded to its type.
    pub fn store(&mut self, array: &Array) -> Tensor {
        self.add(array.dtype, &array.shape, array.to_bytes(), true)
    }
}

fn load_bits(bytes: &[u8], at: usize, size: usize) -> u64 {
    let mut word = [0; 8];
    if let Some(source) = bytes.get(at..at + size) {
        word[..size].copy_from_slice(source);
    }
    u64::from_le_bytes(word)
}

/// A view of a storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tensor {
    /// Where the elements are.
    pub storage: StorageId,
    /// Their type.
    pub dtype: DType,
    /// How they lie there.
    pub layout: Layout,
}

/// Elements of an [`Array`], in row-major order.
#[derive(Debug, Clone, PartialEq)]
pub enum Data {
    /// Floats, in double precision whatever the type.
    Float(Vec<f64>),
    /// Integers and booleans.
    Int(Vec<i64>),
}

/// The value of an expression: floats in double precision, not yet rounded to their type, so that
/// references are more precise than what they are compared with.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    /// The type that storing it gives.
    pub dtype: DType,
    /// Extents, outermost first.
    pub shape: Vec<usize>,
    /// Elements.
    pub data: Data,
}

impl Array {
    /// An array of floats.
    pub fn floats(dtype: DType, shape: Vec<usize>, values: Vec<f64>) -> Array {
        Array { dtype, shape, data: Data::Float(values) }
    }

    /// An array of integers.
    pub fn ints(dtype: DType, shape: Vec<usize>, values: Vec<i64>) -> Array {
        Array { dtype, shape, data: Data::Int(values) }
    }

    /// Number of elements.
    pub fn numel(&self) -> usize {
        self.shape.iter().product()
    }

    /// The elements as floats.
    pub fn to_floats(&self) -> Vec<f64> {
        match &self.data {
            Data::Float(values) => values.clone(),
            Data::Int(values) if self.dtype == DType::U64 => {
                values.iter().map(|&value| value as u64 as f64).collect()
            }
            Data::Int(values) => values.iter().map(|&value| value as f64).collect(),
        }
    }

    /// Element `at` as a float.
    pub(crate) fn float_at(&self, at: usize) -> f64 {
        match &self.data {
            Data::Float(values) => values[at],
            Data::Int(values) => values[at] as f64,
        }
    }

    /// The elements at `layout`'s positions.
    #[must_use]
    pub fn gather(&self, layout: &Layout) -> Array {
        let positions = layout.positions();
        let data = match &self.data {
            Data::Float(values) => {
                Data::Float(positions.iter().map(|&position| values[position]).collect())
            }
            Data::Int(values) => {
                Data::Int(positions.iter().map(|&position| values[position]).collect())
            }
        };
        Array { dtype: self.dtype, shape: layout.shape.clone(), data }
    }

    /// The elements as a tensor of `dtype` holds them: floats rounded to nearest, integers
    /// wrapped, floats that become integers truncated and saturated.
    #[must_use]
    pub fn convert(&self, dtype: DType) -> Array {
        let scalar = dtype.scalar();
        let encode_int = |value: &i64| dtype.decode_int(*value as u64);
        let data = match (&self.data, dtype.is_float()) {
            (_, true) => {
                let round = |value: f64| number::decode(scalar, number::encode(scalar, value));
                Data::Float(self.to_floats().into_par_iter().map(round).collect())
            }
            (Data::Int(values), _) if dtype == DType::Bool => {
                Data::Int(values.iter().map(|&value| i64::from(value != 0)).collect())
            }
            (Data::Int(values), _) => Data::Int(values.iter().map(encode_int).collect()),
            (Data::Float(values), _) => {
                Data::Int(values.iter().map(|&value| float_to_int(value, dtype)).collect())
            }
        };
        Array { dtype, shape: self.shape.clone(), data }
    }

    /// The elements in memory.
    pub fn to_bytes(&self) -> Vec<u8> {
        let size = self.dtype.bytes();
        let scalar = self.dtype.scalar();
        let bits: Vec<u64> = match &self.data {
            Data::Float(values) => {
                values.par_iter().map(|&value| number::encode(scalar, value)).collect()
            }
            Data::Int(values) => values.iter().map(|&value| value as u64).collect(),
        };
        bits.into_iter().flat_map(|bits| bits.to_le_bytes().into_iter().take(size)).collect()
    }

    /// What people want to know of an array: smallest, largest, mean and number of NaN. The first
    /// three leave NaN out, and are `None` when nothing is left.
    pub fn summary(&self) -> Summary {
        let values = self.to_floats();
        let numbers = || values.iter().copied().filter(|value| !value.is_nan());
        let count = numbers().count();
        Summary {
            min: numbers().reduce(f64::min),
            max: numbers().reduce(f64::max),
            mean: (count > 0).then(|| numbers().sum::<f64>() / count as f64),
            nan: values.len() - count,
        }
    }
}

fn float_to_int(value: f64, dtype: DType) -> i64 {
    match dtype {
        DType::Bool => i64::from(value != 0.0),
        DType::U8 => i64::from(value as u8),
        DType::U16 => i64::from(value as u16),
        DType::U32 => i64::from(value as u32),
        DType::U64 => value as u64 as i64,
        DType::I8 => i64::from(value as i8),
        DType::I16 => i64::from(value as i16),
        DType::I32 => i64::from(value as i32),
        _ => value as i64,
    }
}

/// See [`Array::summary`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Smallest number.
    pub min: Option<f64>,
    /// Largest number.
    pub max: Option<f64>,
    /// Mean of the numbers.
    pub mean: Option<f64>,
    /// How many elements are NaN.
    pub nan: usize,
}

/// A value of the host language.
#[derive(Debug, Clone)]
pub enum Value {
    /// `None`.
    None,
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i128),
    /// A float.
    Float(f64),
    /// A string.
    Str(Arc<str>),
    /// An element type.
    DType(DType),
    /// A function of the file, by its name: an argument for a constexpr parameter.
    Function(Arc<str>),
    /// A member of an enumeration: an argument for a constexpr parameter.
    Member(MemberArg),
    /// A tuple or a list.
    Tuple(Vec<Value>),
    /// A named tuple of the file, with what it and its fields are called.
    Record(Arc<TupleNames>, Vec<Value>),
    /// A tensor that kernels can take.
    Tensor(Tensor),
    /// Elements computed from tensors.
    Array(Arc<Array>),
    /// What `allclose` found; true or false.
    Comparison(Comparison),
    /// Values by name: the parameter of a grid's lambda.
    Meta(Arc<Vec<(String, Value)>>),
}

/// The host's value of a constexpr. An element type that no tensor can have stays its name.
impl From<&ConstArg> for Value {
    fn from(value: &ConstArg) -> Value {
        match value {
            ConstArg::None => Value::None,
            ConstArg::Bool(value) => Value::Bool(*value),
            ConstArg::Int(value) => Value::Int(*value),
            ConstArg::Float(bits) => Value::Float(f64::from_bits(*bits)),
            ConstArg::Str(text) => Value::Str(text.clone()),
            ConstArg::DType(name) | ConstArg::TorchDType(name) => {
                DType::from_name(name).map_or_else(|| Value::Str(name.clone()), Value::DType)
            }
            ConstArg::Function(name) => Value::Function(name.clone()),
            ConstArg::Member(member) => Value::Member(member.clone()),
            ConstArg::Tuple(items) => Value::Tuple(items.iter().map(Value::from).collect()),
        }
    }
}

/// How far two arrays are apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    /// True when every pair is within the tolerance.
    pub ok: bool,
    /// Largest absolute difference.
    pub max_abs: f64,
    /// Largest difference relative to the second array's element, where that is not zero.
    pub max_rel: f64,
    /// Row-major position of the first pair outside the tolerance, with both values.
    pub first: Option<(usize, f64, f64)>,
    /// How many pairs are outside.
    pub outside: usize,
    /// How many pairs there are.
    pub count: usize,
}

impl Value {
    /// What people call the value's kind.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::None => "None",
            Value::Bool(_) => "a bool",
            Value::Int(_) => "an integer",
            Value::Float(_) => "a float",
            Value::Str(_) => "a string",
            Value::DType(_) => "a dtype",
            Value::Function(_) => "a function",
            Value::Member(_) => "a member of an enumeration",
            Value::Tuple(_) | Value::Record(..) => "a tuple",
            Value::Tensor(_) | Value::Array(_) => "a tensor",
            Value::Comparison(_) => "a comparison",
            Value::Meta(_) => "the launch's arguments",
        }
    }
}
