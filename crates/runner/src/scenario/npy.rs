//! Tensors in NumPy's file format.

use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::Path;

use npyz::{DType as NpyType, NpyFile, Order, TypeChar, WriterBuilder};

use super::dtype::DType;
use super::tensor::Array;

/// Reads an array. Types that NumPy does not have cannot stand in a file; convert after loading.
///
/// # Errors
/// When the file cannot be read, is not in the format, or holds no numbers.
pub fn load_npy(path: &Path) -> Result<Array, String> {
    let shown = path.display();
    let file = File::open(path).map_err(|error| format!("cannot open {shown}: {error}"))?;
    let npy = NpyFile::new(BufReader::new(file))
        .map_err(|error| format!("{shown} is not an .npy file: {error}"))?;
    let shape: Vec<usize> = npy.shape().iter().map(|&extent| extent as usize).collect();
    let order = npy.order();
    let NpyType::Plain(ty) = npy.dtype() else {
        return Err(format!("{shown} holds records, not numbers"));
    };
    let failed = |error: std::io::Error| format!("cannot read {shown}: {error}");
    let bytes = ty.size_field();
    macro_rules! floats {
        ($dtype:ident, $ty:ty) => {{
            let values: Vec<$ty> = npy.into_vec().map_err(failed)?;
            let values = values.into_iter().map(|value| f64::from(value)).collect();
            Array::floats(DType::$dtype, shape, values)
        }};
    }
    macro_rules! ints {
        ($dtype:ident, $ty:ty) => {{
            let values: Vec<$ty> = npy.into_vec().map_err(failed)?;
            Array::ints(
                DType::$dtype,
                shape,
                values.into_iter().map(|value| value as i64).collect(),
            )
        }};
    }
    let array = match (ty.type_char(), bytes) {
        (TypeChar::Float, 2) => floats!(F16, half::f16),
        (TypeChar::Float, 4) => floats!(F32, f32),
        (TypeChar::Float, 8) => floats!(F64, f64),
        (TypeChar::Bool, _) => ints!(Bool, bool),
        (TypeChar::Int, 1) => ints!(I8, i8),
        (TypeChar::Int, 2) => ints!(I16, i16),
        (TypeChar::Int, 4) => ints!(I32, i32),
        (TypeChar::Int, 8) => ints!(I64, i64),
        (TypeChar::Uint, 1) => ints!(U8, u8),
        (TypeChar::Uint, 2) => ints!(U16, u16),
        (TypeChar::Uint, 4) => ints!(U32, u32),
        (TypeChar::Uint, 8) => ints!(U64, u64),
        _ => return Err(format!("{shown} holds elements of type {ty}, which no tensor has")),
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
