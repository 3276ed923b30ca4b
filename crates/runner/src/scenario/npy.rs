//! Tensors in NumPy's file format.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek};
use std::path::Path;

use npyz::{NpyFile, NpyHeader, Order, WriterBuilder};
use tile_compiler::project::{ArrayHead, MAX_ARRAY_HEADER};

use super::dtype::DType;
use super::tensor::{Array, numel};

fn shape<R: Read>(npy: &NpyFile<R>) -> Vec<usize> {
    npy.shape().iter().map(|&extent| extent as usize).collect()
}

/// The file after its header, with the type of its elements.
fn open(path: &Path) -> Result<(NpyFile<BufReader<File>>, DType), String> {
    let shown = path.display();
    let failed = |error: std::io::Error| format!("cannot open {shown}: {error}");
    let mut file = File::open(path).map_err(failed)?;
    let mut start = Vec::new();
    (&file).take(MAX_ARRAY_HEADER).read_to_end(&mut start).map_err(failed)?;
    file.rewind().map_err(failed)?;
    let header = ArrayHead::header(&start).ok_or_else(|| format!("{shown} is not an .npy file"))?;
    let head = ArrayHead::parse(header).map_err(|error| format!("{shown}: {error}"))?;
    let dtype = DType::from_name(&head.dtype)
        .ok_or_else(|| format!("{shown} holds elements of type {}", head.dtype))?;
    // Before the reader multiplies the extents, which may be anything.
    let extents: Vec<usize> = head.shape.iter().map(|&extent| extent as usize).collect();
    let elements = numel(&extents).map_err(|error| format!("{shown}: {error}"))?;
    let size = file.metadata().map_err(failed)?.len();
    let mut reader = BufReader::new(file);
    let header = NpyHeader::from_reader(&mut reader)
        .map_err(|error| format!("{shown} is not an .npy file: {error}"))?;
    let held = size.saturating_sub(reader.stream_position().map_err(failed)?);
    let wanted = (elements * dtype.bytes()) as u64;
    if held < wanted {
        return Err(format!(
            "{shown} is cut short: {elements} elements take {wanted} bytes, and it has {held}"
        ));
    }
    Ok((NpyFile::with_header(header, reader), dtype))
}

/// Reads an array. Types that NumPy does not have cannot stand in a file; convert after loading.
///
/// # Errors
/// When the file cannot be read, is not in the format, or holds no numbers.
pub fn load_npy(path: &Path) -> Result<Array, String> {
    let (npy, dtype) = open(path)?;
    let (shown, order, shape) = (path.display(), npy.order(), shape(&npy));
    let failed = |error: std::io::Error| format!("cannot read {shown}: {error}");
    macro_rules! floats {
        ($ty:ty) => {{
            let values: Vec<$ty> = npy.into_vec().map_err(failed)?;
            let values = values.into_iter().map(|value| f64::from(value)).collect();
            Array::floats(dtype, shape, values)
        }};
    }
    macro_rules! ints {
        ($ty:ty) => {{
            let values: Vec<$ty> = npy.into_vec().map_err(failed)?;
            Array::ints(dtype, shape, values.into_iter().map(|value| value as i64).collect())
        }};
    }
    let array = match dtype {
        DType::F16 => floats!(half::f16),
        DType::F32 => floats!(f32),
        DType::F64 => floats!(f64),
        DType::Bool => ints!(bool),
        DType::I8 => ints!(i8),
        DType::I16 => ints!(i16),
        DType::I32 => ints!(i32),
        DType::I64 => ints!(i64),
        DType::U8 => ints!(u8),
        DType::U16 => ints!(u16),
        DType::U32 => ints!(u32),
        DType::U64 => ints!(u64),
        other => return Err(format!("{shown} holds elements of type {other}")),
    };
    Ok(match order {
        Order::C => array,
        Order::Fortran => from_fortran(&array),
    })
}

/// The same array from elements in column-major order.
fn from_fortran(array: &Array) -> Array {
    let reversed: Vec<usize> = array.shape.iter().rev().copied().collect();
    array.gather(&super::tensor::Layout::contiguous(&reversed).transposed())
}

/// Writes an array in row-major order. Types that NumPy does not have are written as `float32`,
/// which holds their values exactly.
///
/// # Errors
/// When the file cannot be written.
pub fn save_npy(path: &Path, array: &Array) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot write {}: {error}", path.display());
    let file = BufWriter::new(File::create(path).map_err(failed)?);
    let shape: Vec<u64> = array.shape.iter().map(|&extent| extent as u64).collect();
    let array = array.convert(array.dtype);
    macro_rules! write {
        ($ty:ty, $values:expr) => {{
            let mut writer = npyz::WriteOptions::<$ty>::new()
                .default_dtype()
                .shape(&shape)
                .writer(file)
                .begin_nd()
                .map_err(failed)?;
            writer.extend($values).map_err(failed)?;
            writer.finish().map_err(failed)
        }};
    }
    let floats = array.to_floats();
    let ints = || match &array.data {
        super::tensor::Data::Int(values) => values.clone(),
        super::tensor::Data::Float(values) => values.iter().map(|&value| value as i64).collect(),
    };
    match array.dtype {
        DType::F64 => write!(f64, floats),
        DType::F16 => write!(half::f16, floats.into_iter().map(half::f16::from_f64)),
        dtype if dtype.is_float() => write!(f32, floats.into_iter().map(|value| value as f32)),
        DType::Bool => write!(bool, ints().into_iter().map(|value| value != 0)),
        DType::I8 => write!(i8, ints().into_iter().map(|value| value as i8)),
        DType::I16 => write!(i16, ints().into_iter().map(|value| value as i16)),
        DType::I32 => write!(i32, ints().into_iter().map(|value| value as i32)),
        DType::U8 => write!(u8, ints().into_iter().map(|value| value as u8)),
        DType::U16 => write!(u16, ints().into_iter().map(|value| value as u16)),
        DType::U32 => write!(u32, ints().into_iter().map(|value| value as u32)),
        DType::U64 => write!(u64, ints().into_iter().map(|value| value as u64)),
        _ => write!(i64, ints()),
    }
}
