//! Values that are kept long and read rarely, such as the IR of every specialization of the kernels of
//! every open file.

use std::marker::PhantomData;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A value as compressed JSON: a listing of PTX takes a tenth of its size, and a millisecond to read.
/// Equal values are packed alike. Clones share their bytes.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Packed<T> {
    bytes: Arc<[u8]>,
    value: PhantomData<fn() -> T>,
}

impl<T: Serialize + DeserializeOwned> Packed<T> {
    /// Packs a value.
    pub(crate) fn new(value: &T) -> Packed<T> {
        let text = serde_json::to_vec(value).expect("invariant: plain data is written to memory");
        let bytes = lz4_flex::compress_prepend_size(&text).into();
        Packed { bytes, value: PhantomData }
    }

    /// The value that was packed.
    pub(crate) fn get(&self) -> T {
        let text = lz4_flex::decompress_size_prepended(&self.bytes);
        let text = text.expect("invariant: these bytes were compressed here");
        serde_json::from_slice(&text).expect("invariant: what was written is read")
    }

    /// Whether both were packed by one call.
    #[cfg(test)]
    pub(crate) fn is_shared(&self, other: &Packed<T>) -> bool {
        Arc::ptr_eq(&self.bytes, &other.bytes)
    }
}

impl<T> Clone for Packed<T> {
    fn clone(&self) -> Packed<T> {
        Packed { bytes: self.bytes.clone(), value: PhantomData }
    }
}
