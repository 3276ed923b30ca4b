//! Global memory of the CPU executor: buffers in an address space of their own.
//!
//! Each buffer stands in the middle of its own terabyte, so that an address tells which buffer it
//! was meant for even when it misses it by much, and so that addresses survive arithmetic and
//! conversions to integers and back. Programs run in parallel and may race; every access is an
//! atomic one with relaxed ordering, which costs as much as a plain one and is defined.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use tile_compiler::ir::Scalar;

/// Bits of address that belong to one buffer.
const REGION_BITS: u32 = 40;
/// Offset of a buffer's first byte in its region.
const REGION_BASE: u64 = 1 << (REGION_BITS - 1);

/// A buffer of a [`Buffers`] arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BufferId(u32);

/// Global memory: what kernels' pointers point into.
#[derive(Debug, Default)]
pub struct Buffers {
    buffers: Vec<Buffer>,
}

/// One buffer of global memory.
#[derive(Debug)]
pub struct Buffer {
    /// What people call it: the argument's name.
    pub name: String,
    /// Element type, for messages and for the granularity of [`Marks`].
    pub dtype: Scalar,
    len: usize,
    words: Vec<AtomicU64>,
    initialized: bool,
    /// For each element what happened to it; empty until [`Buffers::start_recording`].
    marks: Vec<AtomicU8>,
}

/// Bits of a buffer's marks.
const READ: u8 = 1;
const WRITTEN: u8 = 2;
const INITIALIZED: u8 = 4;

impl BufferId {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

impl Buffers {
    /// Memory with no buffer.
    pub fn new() -> Buffers {
        Buffers::default()
    }

    /// A buffer that holds `bytes`.
    pub fn add(&mut self, name: impl Into<String>, dtype: Scalar, bytes: &[u8]) -> BufferId {
        self.push(name.into(), dtype, bytes, true)
    }

    /// A buffer whose `bytes` are a pattern that no kernel may depend on.
    pub fn add_uninitialized(
        &mut self,
        name: impl Into<String>,
        dtype: Scalar,
        bytes: &[u8],
    ) -> BufferId {
        self.push(name.into(), dtype, bytes, false)
    }

    fn push(&mut self, name: String, dtype: Scalar, bytes: &[u8], initialized: bool) -> BufferId {
        let words = bytes.chunks(8).map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            AtomicU64::new(u64::from_ne_bytes(word))
        });
        let words = words.collect();
        let buffer =
            Buffer { name, dtype, len: bytes.len(), words, initialized, marks: Vec::new() };
        self.buffers.push(buffer);
        BufferId(self.buffers.len() as u32 - 1)
    }

    /// Address of a buffer's first byte, a multiple of 16.
    pub fn address(&self, id: BufferId) -> u64 {
        (u64::from(id.0) << REGION_BITS) + (1 << REGION_BITS) + REGION_BASE
    }

    /// What a buffer holds.
    pub fn bytes(&self, id: BufferId) -> Vec<u8> {
        let buffer = self.get(id);
        let words = buffer.words.iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes());
        words.take(buffer.len).collect()
    }

    /// Replaces what a buffer holds, as far as both reach.
    pub fn write(&mut self, id: BufferId, bytes: &[u8]) {
        let buffer = &mut self.buffers[id.0 as usize];
        for (at, &byte) in bytes.iter().take(buffer.len).enumerate() {
            let word = buffer.words[at / 8].get_mut();
            let mut parts = word.to_ne_bytes();
            parts[at % 8] = byte;
            *word = u64::from_ne_bytes(parts);
        }
        buffer.initialized = true;
        buffer.marks.clear();
    }

    /// Forgets which elements were read and written, and begins to record it.
    pub(super) fn start_recording(&mut self) {
        for buffer in &mut self.buffers {
            if buffer.marks.is_empty() {
                let mark = if buffer.initialized { INITIALIZED } else { 0 };
                buffer.marks = (0..buffer.elements()).map(|_| AtomicU8::new(mark)).collect();
            }
            for mark in &mut buffer.marks {
                *mark.get_mut() &= INITIALIZED;
            }
        }
    }

    /// Bytes of all elements that were read, and of all that were written, since recording
    /// started.
    pub(super) fn recorded_bytes(&self) -> (u64, u64) {
        let count = |bit: u8| {
            let bytes = self.buffers.iter().map(|buffer| {
                let set = |mark: &&AtomicU8| mark.load(Ordering::Relaxed) & bit != 0;
                buffer.marks.iter().filter(set).count() as u64 * u64::from(buffer.dtype.bytes())
            });
            bytes.sum()
        };
        (count(READ), count(WRITTEN))
    }

    /// A buffer.
    pub fn get(&self, id: BufferId) -> &Buffer {
        &self.buffers[id.0 as usize]
    }

    /// Every buffer.
    pub fn iter(&self) -> impl Iterator<Item = (BufferId, &Buffer)> {
        self.buffers.iter().enumerate().map(|(at, buffer)| (BufferId(at as u32), buffer))
    }

    /// Which buffer `address` was meant for, and its byte offset there, which may lie outside.
    pub(super) fn locate(&self, address: u64) -> Option<(BufferId, i64)> {
        let region = (address >> REGION_BITS).checked_sub(1)?;
        self.buffers.get(region as usize)?;
        let offset = (address & ((1 << REGION_BITS) - 1)) as i64 - REGION_BASE as i64;
        Some((BufferId(region as u32), offset))
    }

    /// The `count` words of type `T` at `address`, if all lie in one buffer and it is aligned.
    #[inline]
    pub(super) fn words<T: Word>(&self, address: u64, count: usize) -> Option<&[T::Atomic]> {
        let (id, offset) = self.locate(address)?;
        let buffer = &self.buffers[id.0 as usize];
        let offset = usize::try_from(offset).ok()?;
        let end = offset.checked_add(count.checked_mul(size_of::<T>())?)?;
        if end > buffer.len || !offset.is_multiple_of(size_of::<T>()) {
            return None;
        }
        let start = offset / size_of::<T>();
        Some(&T::atomics(&buffer.words)[start..start + count])
    }

    /// The buffer that `address` lies in as words of type `T`; `None` if it lies in none.
    #[inline]
    pub(super) fn window<T: Word>(&self, address: u64) -> Option<Window<'_, T>> {
        let (id, offset) = self.locate(address)?;
        let buffer = &self.buffers[id.0 as usize];
        let inside = usize::try_from(offset).is_ok_and(|offset| offset < buffer.len);
        let words = &T::atomics(&buffer.words)[..buffer.len / size_of::<T>()];
        inside.then(|| Window { start: self.address(id), words })
    }
}

/// One buffer as words of a type.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window<'b, T: Word> {
    start: u64,
    words: &'b [T::Atomic],
}

impl<'b, T: Word> Window<'b, T> {
    /// The word at an address, if it lies in the buffer and is aligned.
    #[inline(always)]
    pub fn word(&self, address: u64) -> Option<&'b T::Atomic> {
        let offset = address.wrapping_sub(self.start);
        let size = size_of::<T>() as u64;
        match offset % size {
            0 => self.words.get(usize::try_from(offset / size).ok()?),
            _ => None,
        }
    }
}

impl Buffer {
    /// Size in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True when it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Size in elements.
    pub fn elements(&self) -> usize {
        self.len / self.dtype.bytes() as usize
    }

    /// Marks elements as read; true if nothing has written one of them.
    pub(super) fn mark_read(&self, elements: std::ops::Range<usize>) -> bool {
        let marks = self.marks.get(elements).unwrap_or_default();
        let mut fresh = false;
        for mark in marks {
            fresh |= mark.fetch_or(READ, Ordering::Relaxed) & INITIALIZED == 0;
        }
        fresh
    }

    /// Marks elements as written.
    pub(super) fn mark_written(&self, elements: std::ops::Range<usize>) {
        for mark in self.marks.get(elements).unwrap_or_default() {
            mark.fetch_or(WRITTEN | INITIALIZED, Ordering::Relaxed);
        }
    }
}

/// An unsigned integer through which memory is accessed.
pub(super) trait Word: bytemuck::Pod + Send + Sync {
    /// Its atomic form, of the same size.
    type Atomic: Send + Sync;

    /// Memory as atomics of this size.
    fn atomics(words: &[AtomicU64]) -> &[Self::Atomic];
    fn load(atomic: &Self::Atomic) -> Self;
    /// Reads words that lie side by side.
    fn load_run(source: &[Self::Atomic], out: &mut [Self]);
    /// Writes words that lie side by side.
    fn store_run(target: &[Self::Atomic], values: &[Self]);
    fn store(atomic: &Self::Atomic, value: Self);
    /// Replaces the value by `update` of it, as one step; the old value.
    fn update(atomic: &Self::Atomic, update: impl Fn(Self) -> Self) -> Self;
}

/// Words side by side as the 64-bit ones among them, and those before and after.
macro_rules! widen_run {
    ($words:expr) => {
        // SAFETY: the words are parts of an array of `AtomicU64` (see `Word::atomics`), which has
        // no invalid bit patterns; the slices cover exactly the same bytes.
        unsafe { $words.align_to::<AtomicU64>() }
    };
}

macro_rules! word {
    ($($ty:ident $atomic:ident),*) => { $(
        impl Word for $ty {
            type Atomic = $atomic;

            #[inline(always)]
            fn atomics(words: &[AtomicU64]) -> &[$atomic] {
                let count = size_of_val(words) / size_of::<$atomic>();
                // SAFETY: the words are initialized, aligned for 8 bytes, and shared mutably only
                // through atomics; a narrower atomic has no invalid bit patterns, and `count` of
                // them cover exactly the same bytes.
                unsafe { std::slice::from_raw_parts(words.as_ptr().cast::<$atomic>(), count) }
            }
            #[inline(always)]
            fn load(atomic: &$atomic) -> $ty { atomic.load(Ordering::Relaxed) }
            #[inline(always)]
            fn store(atomic: &$atomic, value: $ty) { atomic.store(value, Ordering::Relaxed) }
            #[inline]
            fn load_run(source: &[$atomic], out: &mut [$ty]) {
                let (first, wide, last) = widen_run!(source);
                let (head, out) = out.split_at_mut(first.len());
                let (body, tail) = out.split_at_mut(out.len() - last.len());
                head.iter_mut().zip(first).for_each(|(out, word)| *out = $ty::load(word));
                let body = bytemuck::cast_slice_mut::<$ty, u8>(body).chunks_exact_mut(8);
                for (out, word) in body.zip(wide) {
                    out.copy_from_slice(&word.load(Ordering::Relaxed).to_ne_bytes());
                }
                tail.iter_mut().zip(last).for_each(|(out, word)| *out = $ty::load(word));
            }
            #[inline]
            fn store_run(target: &[$atomic], values: &[$ty]) {
                let (first, wide, last) = widen_run!(target);
                let (head, values) = values.split_at(first.len());
                let (body, tail) = values.split_at(values.len() - last.len());
                first.iter().zip(head).for_each(|(word, &value)| $ty::store(word, value));
                let body = bytemuck::cast_slice::<$ty, u8>(body).chunks_exact(8);
                for (word, bytes) in wide.iter().zip(body) {
                    let mut value = [0; 8];
                    value.copy_from_slice(bytes);
                    word.store(u64::from_ne_bytes(value), Ordering::Relaxed);
                }
                last.iter().zip(tail).for_each(|(word, &value)| $ty::store(word, value));
            }
            fn update(atomic: &$atomic, update: impl Fn($ty) -> $ty) -> $ty {
                // SeqCst is at least as strong as every ordering that a kernel may ask for.
                let result = atomic.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |old| {
                    Some(update(old))
                });
                result.unwrap_or_else(|old| old)
            }
        }
    )* };
}

word!(u8 AtomicU8, u16 AtomicU16, u32 AtomicU32, u64 AtomicU64);
