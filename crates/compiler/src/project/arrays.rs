//! What the headers of NumPy's files say.

use std::sync::Arc;

/// The largest header that is read, in bytes.
pub const MAX_ARRAY_HEADER: u64 = 64 << 10;

/// Type and shape of an array in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrayHead {
    /// The element type by signature spelling.
    pub dtype: Arc<str>,
    /// Sizes, outermost first.
    pub shape: Vec<u64>,
}

/// Types of elements that tensors have, as NumPy and signatures spell them.
const ELEMENTS: &[(&str, &str)] = &[
    ("f2", "fp16"),
    ("f4", "fp32"),
    ("f8", "fp64"),
    ("b1", "i1"),
    ("i1", "i8"),
    ("i2", "i16"),
    ("i4", "i32"),
    ("i8", "i64"),
    ("u1", "u8"),
    ("u2", "u16"),
    ("u4", "u32"),
    ("u8", "u64"),
];

impl ArrayHead {
    /// The header of the file that begins with these bytes; `None` where it is not in the format, or
    /// the header does not end among them.
    pub fn header(bytes: &[u8]) -> Option<&str> {
        let [major, _minor, rest @ ..] = bytes.strip_prefix(b"\x93NUMPY")? else { return None };
        let (length, rest) = match (major, rest) {
            (1, [a, b, rest @ ..]) => (u32::from(u16::from_le_bytes([*a, *b])), rest),
            (2 | 3, [a, b, c, d, rest @ ..]) => (u32::from_le_bytes([*a, *b, *c, *d]), rest),
            _ => return None,
        };
        str::from_utf8(rest.get(..length as usize)?).ok()
    }

    /// What a header says: the literal of a dict, `{'descr': '<f4', 'shape': (3, 4), ...}`.
    ///
    /// # Errors
    /// When it is none, or the elements are of a type that no tensor has, in a sentence.
    pub fn parse(header: &str) -> Result<ArrayHead, String> {
        let entry = |key: &str| {
            let (_, value) = header.split_once(&format!("'{key}'"))?;
            Some(value.trim_start().strip_prefix(':')?.trim_start())
        };
        let (Some(descr), Some(shape)) = (entry("descr"), entry("shape")) else {
            return Err("its header names no type or shape".to_owned());
        };
        let ty = descr.strip_prefix('\'').and_then(|ty| Some(ty.split_once('\'')?.0));
        let Some(ty) = ty else { return Err("it holds records, not numbers".to_owned()) };
        let element = ty.trim_start_matches(['<', '>', '=', '|']);
        let Some((_, dtype)) = ELEMENTS.iter().find(|(numpy, _)| *numpy == element) else {
            return Err(format!("it holds elements of type {ty}, which no tensor has"));
        };
        let sizes = shape.strip_prefix('(').and_then(|sizes| Some(sizes.split_once(')')?.0));
        let sizes = sizes.ok_or("its shape is none")?.split(',').map(str::trim);
        let shape = sizes.filter(|size| !size.is_empty()).map(str::parse).collect::<Result<_, _>>();
        Ok(ArrayHead { dtype: (*dtype).into(), shape: shape.map_err(|_| "its shape is none")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_tell_types_and_shapes() {
        let head = |dtype: &str, shape: &[u64]| {
            Ok(ArrayHead { dtype: dtype.into(), shape: shape.to_vec() })
        };
        let matrix = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }      \n";
        assert_eq!(ArrayHead::parse(matrix), head("fp32", &[3, 4]));
        let vector = "{'descr': '|u1', 'fortran_order': True, 'shape': (8,), }";
        assert_eq!(ArrayHead::parse(vector), head("u8", &[8]));
        let scalar = "{'shape': (), 'descr': '<i8', 'fortran_order': False}";
        assert_eq!(ArrayHead::parse(scalar), head("i64", &[]));
    }

    #[test]
    fn what_is_no_array_of_numbers_is_said() {
        let error = |header: &str| ArrayHead::parse(header).expect_err("it is none");
        assert!(error("{'descr': '<c8', 'shape': (3,)}").contains("type <c8"));
        assert!(error("{'descr': [('x', '<f4')], 'shape': (3,)}").contains("records"));
        assert!(error("{'descr': '<f4', 'shape': (n,)}").contains("shape"));
        assert!(error("{'descr': '<f4', 'shape': (3, }").contains("shape"));
        assert!(error("").contains("header"));
    }
}
