//! Sparse tensors: objects that give the tensors of their places and of their numbers.

use crate::hir::Name;
use crate::host::Host;
use crate::host::code::arguments::Args;
use crate::host::torch::tensor::given_dtype;
use crate::host::torch::views;
use crate::host::value::{Tensor, Value};

/// Methods of tensors that make a sparse one of a dense one, with those of the result that give the
/// places along the dimension that is compressed and along the other.
const MAKERS: &[(&str, [&str; 2])] = &[
    ("to_sparse", ["indices", "indices"]),
    ("to_sparse_coo", ["indices", "indices"]),
    ("to_sparse_csc", ["ccol_indices", "row_indices"]),
    ("to_sparse_csr", ["crow_indices", "col_indices"]),
];

/// Methods that change neither places nor numbers.
const KEEPING: &[&str] = &["cpu", "cuda", "detach", "requires_grad_", "to"];

/// Attributes that a sparse tensor has as a dense one has.
const ATTRIBUTES: [&str; 2] = ["shape", "dtype"];

impl Host<'_> {
    /// `tensor.NAME(...)` that makes a sparse tensor; how many numbers it has is not known.
    pub(crate) fn sparsely(&mut self, tensor: &Tensor, name: &str) -> Option<Value> {
        let (_, places) = MAKERS.iter().find(|(maker, _)| *maker == name)?;
        let [compressed, other] = *places;
        let shape = tensor.shape.as_deref();
        let ends = match (
            shape,
            shape.and_then(|shape| shape.get(usize::from(name == "to_sparse_csc"))),
        ) {
            (Some([_, _]), Some(Value::Int(Some(count)))) => Some(count + 1),
            _ => None,
        };
        let parts = match compressed == other {
            true => vec![(compressed, Value::tensor(Some("i64")))],
            false => vec![(compressed, row(Some("i64"), ends)), (other, row(Some("i64"), None))],
        };
        let values = ("values", row(tensor.dtype.as_deref(), None));
        let dtype = tensor.dtype.clone().map_or(Value::Unknown, Value::TorchDType);
        let shape = shape.map_or(Value::Ints, |shape| Value::Tuple(shape.to_vec()));
        let parts = parts.into_iter().chain([values]).collect();
        Some(self.sparse_tensor(vec![("shape", shape), ("dtype", dtype)], parts))
    }

    /// `torch.NAME(...)` that makes a sparse tensor of places and numbers; `None` for other functions.
    pub(crate) fn sparse_of(&mut self, name: &str, args: &Args<'_>) -> Option<Value> {
        let places: &[&str] = match name {
            "sparse_coo_tensor" => &["indices"],
            "sparse_csc_tensor" => &["ccol_indices", "row_indices"],
            "sparse_csr_tensor" => &["crow_indices", "col_indices"],
            _ => return None,
        };
        let names = places.iter().chain(["values"].iter()).enumerate();
        let part = |(at, name): (usize, &&'static str)| {
            (*name, args.get(at, name).cloned().unwrap_or(Value::Unknown))
        };
        let mut parts: Vec<_> = names.map(part).collect();
        let shape = args.get(parts.len(), "size").and_then(Value::elements);
        let told = args.keyword("dtype").is_some();
        if let Some((_, Value::Tensor(values))) = parts.last_mut().filter(|_| told) {
            values.dtype = args.keyword("dtype").and_then(given_dtype);
        }
        let dtype = match parts.last() {
            Some((_, Value::Tensor(Tensor { dtype: Some(dtype), .. }))) => {
                Value::TorchDType(dtype.clone())
            }
            _ => Value::Unknown,
        };
        let shape = shape.map_or(Value::Ints, Value::Tuple);
        Some(self.sparse_tensor(vec![("shape", shape), ("dtype", dtype)], parts))
    }

    fn sparse_tensor(
        &mut self,
        attributes: Vec<(&'static str, Value)>,
        parts: Vec<(&'static str, Value)>,
    ) -> Value {
        let made = self.object();
        if let Value::Object(object) = made {
            self.sparse.insert(object);
            for (name, value) in attributes.into_iter().chain(parts) {
                self.set_attribute(object, &Name::from(name), value);
            }
        }
        made
    }

    /// What a method of a sparse tensor gives.
    pub(crate) fn sparse_method(&mut self, object: usize, name: &str, args: &Args<'_>) -> Value {
        let shape = self.object_attribute(object, ATTRIBUTES[0]);
        let is_type = |value: &Value| given_dtype(value).is_some();
        match name {
            "size" if args.0.is_empty() => shape,
            "dim" => shape
                .elements()
                .map_or(Value::Int(None), |shape| Value::Int(Some(shape.len() as i128))),
            "to_dense" => Value::Tensor(self.dense_of(object)),
            _ if MAKERS.iter().any(|(maker, _)| *maker == name) => {
                let dense = self.dense_of(object);
                self.sparsely(&dense, name).unwrap_or(Value::Unknown)
            }
            _ if KEEPING.contains(&name) && !args.0.iter().any(|(_, value)| is_type(value)) => {
                Value::Object(object)
            }
            _ if ATTRIBUTES.contains(&name) => Value::Unknown,
            // One of places is joined with its neighbors of the same place first.
            _ => self.object_attribute(object, name),
        }
    }

    /// The tensor of all elements of a sparse one.
    fn dense_of(&self, object: usize) -> Tensor {
        let shape = match self.object_attribute(object, ATTRIBUTES[0]) {
            Value::Tuple(shape) => Some(shape),
            _ => None,
        };
        let dtype = match self.object_attribute(object, ATTRIBUTES[1]) {
            Value::TorchDType(dtype) => Some(dtype),
            _ => None,
        };
        Tensor { dtype, shape, ..Tensor::default() }.copied()
    }

    /// How many rows a sparse tensor has; `None` for other objects.
    pub(crate) fn sparse_rows(&self, object: usize) -> Option<Value> {
        self.sparse.contains(&object).then(|| match self.object_attribute(object, ATTRIBUTES[0]) {
            Value::Tuple(shape) => shape.first().cloned().unwrap_or(Value::Int(None)),
            _ => Value::Int(None),
        })
    }
}

/// A tensor of one dimension, perhaps of a known size.
fn row(dtype: Option<&str>, size: Option<i128>) -> Value {
    let shape = Some(vec![Value::Int(size)]);
    let row = Tensor { dtype: dtype.map(Into::into), shape, ..Tensor::default() };
    // Numbers and their places may be taken out of what holds more.
    Value::Tensor(if size.is_none() { views::reordered(&row) } else { row.copied() })
}
