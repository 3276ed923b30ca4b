//! What one worker computes with: registers, which values share that are never needed at once, and
//! which are kept from program to program.

use bytemuck::Pod;
use tile_compiler::ir::Loc;

/// A register of a [`Frame`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Slot(pub u32);

/// The registers of one worker, and the program that it runs.
#[derive(Debug)]
pub(super) struct Frame {
    slots: Vec<Vec<u64>>,
    /// How many elements every scalar stands for: 1, except in regions that are applied to many
    /// elements at once.
    pub lanes: usize,
    /// Position of the program in the grid.
    pub program: [u32; 3],
    /// The program's number, x fastest.
    pub linear: u64,
    /// Where the program first made a NaN out of numbers. Only kept when sanitizing.
    pub nan_birth: Option<Loc>,
    /// True once the program has used an atomic or waited for what memory holds, which may order it after others.
    pub synchronized: bool,
    /// Loop iterations since the last look at the clock.
    pub ticks: u32,
    /// Elements that operations went through so far, without those of matrix products.
    pub elements: u64,
    /// Multiplications and additions of matrix products so far.
    pub flops: u64,
    /// Memory that matrix products use in passing.
    pub scratch: Scratch,
    /// Lines printed so far, with the program's number.
    pub prints: Vec<(u64, String)>,
}

/// Multiplications and additions of a product that take as long as one element of other operations.
const FLOPS_OF_ELEMENT: u64 = 8;

/// Memory that matrix products use in passing, kept from one to the next.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub lhs: Vec<u64>,
    pub rhs: Vec<u64>,
    pub sums: Vec<u64>,
}

impl Frame {
    /// Registers of the given sizes in bytes.
    pub fn new(sizes: &[usize]) -> Frame {
        Frame {
            slots: sizes.iter().map(|bytes| vec![0; bytes.div_ceil(8)]).collect(),
            lanes: 1,
            program: [0; 3],
            linear: 0,
            nan_birth: None,
            synchronized: false,
            ticks: 0,
            elements: 0,
            flops: 0,
            scratch: Scratch::default(),
            prints: Vec::new(),
        }
    }

    /// The work done so far, in elements that operations go through.
    pub fn work(&self) -> u64 {
        self.elements + self.flops / FLOPS_OF_ELEMENT
    }

    /// The first `count` elements of a register.
    #[inline(always)]
    pub fn get<T: Pod>(&self, slot: Slot, count: usize) -> &[T] {
        &bytemuck::cast_slice(&self.slots[slot.0 as usize])[..count]
    }

    /// The first element of a register.
    #[inline(always)]
    pub fn scalar<T: Pod>(&self, slot: Slot) -> T {
        self.get(slot, 1)[0]
    }

    /// Sets the first element of a register.
    pub(crate) fn set_scalar<T: Pod>(&mut self, slot: Slot, value: T) {
        bytemuck::cast_slice_mut(&mut self.slots[slot.0 as usize])[0] = value;
    }

    /// Takes a register out, to write it while others are read; [`Frame::put`] brings it back.
    #[inline(always)]
    pub fn take(&mut self, slot: Slot) -> Vec<u64> {
        std::mem::take(&mut self.slots[slot.0 as usize])
    }

    /// Brings a register back.
    #[inline(always)]
    pub fn put(&mut self, slot: Slot, words: Vec<u64>) {
        self.slots[slot.0 as usize] = words;
    }

    /// Exchanges two registers of the same size.
    pub fn swap(&mut self, a: Slot, b: Slot) {
        self.slots.swap(a.0 as usize, b.0 as usize);
    }

    /// Copies as much of one register to another as both hold.
    pub fn copy(&mut self, from: Slot, to: Slot) {
        let mut words = self.take(to);
        let source = &self.slots[from.0 as usize];
        let count = words.len().min(source.len());
        words[..count].copy_from_slice(&source[..count]);
        self.put(to, words);
    }

    /// All words of a register.
    pub fn words(&self, slot: Slot) -> &[u64] {
        &self.slots[slot.0 as usize]
    }

    /// A copy of a register.
    pub fn snapshot(&self, slot: Slot) -> Vec<u64> {
        self.slots[slot.0 as usize].clone()
    }
}

/// The first `count` elements of a register that was taken out.
#[inline(always)]
pub(super) fn elements<T: Pod>(words: &mut [u64], count: usize) -> &mut [T] {
    &mut bytemuck::cast_slice_mut(words)[..count]
}
