//! Where the totals of warps lie in shared memory, in reductions and scans.
//!
//! As many as one access moves lie next to each other: those of a thread's rows first, then those of
//! the warps along one row. After them come those of neighboring threads, so that no bank is met
//! twice.

use tile_compiler::gpu::exchange::Places;

use super::index::LANE_BITS;
use super::text::Ty;

/// How the totals of warps lie in shared memory.
pub(super) struct Totals {
    pub(super) places: Places,
    /// How many bits of registers count through neighbors, and how many bits of warps after them.
    pub(super) near: (usize, usize),
}

impl Totals {
    /// The bits that one access moves.
    const ACCESS_BITS: u32 = 128;

    pub(super) fn new(places: Places, types: &[Ty]) -> Totals {
        let one_access = Self::one_access(types);
        let rows = places.rows.len().min(one_access);
        let along = places.along.len().min(one_access - rows);
        Totals { places, near: (rows, along) }
    }

    /// How many bits count through what one access moves of elements of all of `types`.
    pub(super) fn one_access(types: &[Ty]) -> usize {
        let widest = types.iter().map(|ty| ty.bits().max(8)).max().unwrap_or(32);
        (Self::ACCESS_BITS / widest).max(1).ilog2() as usize
    }

    /// The bits of a place from which on bits of threads, of rows and of warps count, as far as
    /// they are not near, and those of registers further along a row.
    fn starts(&self) -> [usize; 4] {
        let Places { rows, lanes, warps, along, .. } = &self.places;
        let threads = self.near.0 + self.near.1;
        let far_rows = threads + lanes.len() + warps.len();
        let far_along = far_rows + rows.len() - self.near.0;
        [threads, far_rows, far_along, far_along + along.len() - self.near.1]
    }

    /// What the bits of the thread number contribute to the place, but for the warp along the axis.
    pub(super) fn thread_bases(&self) -> Vec<u32> {
        let Places { lanes, warps, .. } = &self.places;
        let lanes = lanes.iter().map(|&bit| bit as usize);
        let bits = lanes.chain(warps.iter().map(|&bit| LANE_BITS + bit as usize));
        let mut bases = Vec::new();
        for (at, bit) in bits.enumerate() {
            put(&mut bases, bit, 1 << (self.starts()[0] + at));
        }
        bases
    }

    /// The same with that warp.
    pub(super) fn own_bases(&self) -> Vec<u32> {
        let mut bases = self.thread_bases();
        for (at, &bit) in self.places.along.iter().enumerate() {
            put(&mut bases, LANE_BITS + bit as usize, self.along(1 << at));
        }
        bases
    }

    /// What the number of a register contributes.
    pub(super) fn register(&self, register: usize) -> u32 {
        let [_, far_rows, _, later] = self.starts();
        let rows = self.places.rows.iter().enumerate().map(|(at, bit)| {
            let far = at.checked_sub(self.near.0);
            (bit, far.map_or(at, |at| far_rows + at))
        });
        let along = self.places.later.iter().enumerate().map(|(at, bit)| (bit, later + at));
        let set = rows.chain(along).filter(|(bit, _)| register >> *bit & 1 != 0);
        set.fold(0, |sum, (_, place)| sum | 1 << place)
    }

    /// What the number of a warp along the axis contributes.
    pub(super) fn along(&self, warp: u32) -> u32 {
        let low = warp & ((1 << self.near.1) - 1);
        low << self.near.0 | (warp >> self.near.1) << self.starts()[2]
    }

    /// The register bits that count through neighbors.
    pub(super) fn neighbors(&self) -> &[usize] {
        &self.places.rows[..self.near.0]
    }
}

/// `first` with each combination of the register bits `bits`, counting through them.
pub(super) fn combinations(first: usize, bits: &[usize]) -> Vec<usize> {
    let counted = 0..1usize << bits.len();
    let member = |count: usize| {
        let bits = bits.iter().enumerate();
        bits.fold(first, |register, (at, bit)| register | (count >> at & 1) << bit)
    };
    counted.map(member).collect()
}

/// Sets what bit `bit` of the thread number contributes.
pub(super) fn put(bases: &mut Vec<u32>, bit: usize, contribution: u32) {
    bases.resize(bases.len().max(bit + 1), 0);
    bases[bit] = contribution;
}
