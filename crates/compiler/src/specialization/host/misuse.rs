//! What host code raises an exception for: a tensor is asked for what it does not have, or a tuple.

use super::value::{Tensor, Value};
use crate::hir::Name;

/// A use of a tensor, or of a tuple as its shape is one, that gives no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Misuse {
    /// A size or stride along a dimension that the tensor does not have.
    NoDimension {
        /// The dimension asked for.
        at: i128,
        /// How many there are.
        rank: usize,
    },
    /// An element that a tuple does not have.
    NoElement {
        /// The index of it.
        at: i128,
        /// How many there are.
        len: usize,
    },
    /// A tuple that is taken apart into more or fewer names than it has elements.
    Unpacked {
        /// How many elements there are.
        len: usize,
        /// How many names.
        names: usize,
    },
    /// A member that tensors do not have.
    NoMember {
        /// What is asked for.
        name: Name,
        /// The member that is called nearly so.
        meant: &'static str,
    },
    /// A method that is not called.
    NotCalled(&'static str),
    /// A member that is called, and is no method.
    Called(&'static str),
}

/// Methods that tell numbers about a tensor.
const METHODS: &[&str] = &["stride", "size", "numel", "dim", "nelement", "element_size"];

/// What tells about a tensor without a call.
const PLAIN: &[&str] = &["shape", "ndim", "dtype", "device"];

/// What arrays of NumPy and CuPy, which pass for tensors in much of host code, have in the place of
/// the method `stride`.
const STRIDES_OF_ARRAYS: &str = "strides";

/// Whether a tuple has the elements that are known of it, no more and no fewer: one that takes
/// something unknown apart has as many as that.
pub(super) fn is_whole(tuple: &[Value]) -> bool {
    tuple.iter().all(|item| matches!(item, Value::Int(Some(_))))
}

/// What `tensor.name` is where it is no value that is known: a method of its own, or nothing.
pub(super) fn attribute(tensor: &Tensor, name: &str) -> Option<Value> {
    let method = METHODS.iter().find(|method| **method == name).copied();
    // Whose element type is known is PyTorch's.
    let is_of_arrays = name == STRIDES_OF_ARRAYS && tensor.dtype.is_none();
    let missing = || no_member(name).filter(|_| !is_of_arrays);
    method.map(Misuse::NotCalled).or_else(missing).map(Value::Raises)
}

/// What `tensor.name(…)` is where it is no method that is known.
pub(super) fn call(name: &str) -> Option<Value> {
    let plain = PLAIN.iter().find(|plain| **plain == name).copied();
    plain.map(Misuse::Called).or_else(|| no_member(name)).map(Value::Raises)
}

/// The plural of a member, which no class of tensors has: subclasses may have others.
fn no_member(name: &str) -> Option<Misuse> {
    let singular = name.strip_suffix('s')?;
    let known = METHODS.iter().chain(PLAIN).find(|known| **known == singular);
    known.map(|meant| Misuse::NoMember { name: name.into(), meant })
}
