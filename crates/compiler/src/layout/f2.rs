//! Gaussian elimination over F2, one machine word per vector.
//!
//! Addition is XOR, so a set of vectors is a slice of `u64` and a linear combination of its members
//! is a mask: bit `i` set means "member `i` takes part".

use smallvec::SmallVec;

/// A set of vectors in echelon form which remembers how each row came from the vectors inserted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Span {
    rows: SmallVec<[Row; 16]>,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    /// The reduced vector; its highest set bit is the pivot and occurs in no other row's pivot.
    vector: u64,
    /// The combination of inserted members that yields `vector`.
    members: u64,
}

impl Span {
    /// The span of `vectors`, where member `i` is `vectors[i]`.
    pub(crate) fn of(vectors: &[u64]) -> Self {
        let mut span = Self::default();
        for (member, &vector) in vectors.iter().enumerate() {
            span.insert(vector, 1 << member);
        }
        span
    }

    /// Adds `vector`, named by the combination `members`. False when it was in the span already;
    /// the span is then unchanged, so later solutions use the members inserted first.
    pub(crate) fn insert(&mut self, vector: u64, members: u64) -> bool {
        let reduced = self.reduce(Row { vector, members });
        if reduced.vector == 0 {
            return false;
        }
        let at = self.rows.partition_point(|row| row.vector > reduced.vector);
        self.rows.insert(at, reduced);
        true
    }

    /// Adds vectors that no solution needs to name.
    pub(crate) fn extend(&mut self, vectors: &[u64]) {
        for &vector in vectors {
            self.insert(vector, 0);
        }
    }

    /// The combination of members whose sum is `target`, if `target` is in the span.
    pub(crate) fn solve(&self, target: u64) -> Option<u64> {
        let rest = self.reduce(Row { vector: target, members: 0 });
        (rest.vector == 0).then_some(rest.members)
    }

    /// The dimension of the span.
    pub(crate) fn rank(&self) -> usize {
        self.rows.len()
    }

    fn reduce(&self, mut row: Row) -> Row {
        for pivot in &self.rows {
            if row.vector ^ pivot.vector < row.vector {
                row.vector ^= pivot.vector;
                row.members ^= pivot.members;
            }
        }
        row
    }
}

/// The dimension of the span of `vectors`.
pub(crate) fn rank(vectors: impl IntoIterator<Item = u64>) -> usize {
    let mut span = Span::default();
    vectors.into_iter().for_each(|vector| {
        span.insert(vector, 0);
    });
    span.rank()
}

/// The sum of the `columns` selected by the set bits of `selector`: a matrix applied to a vector.
pub(crate) fn combine(columns: &[u64], selector: u64) -> u64 {
    bits(selector).filter_map(|bit| columns.get(bit as usize)).fold(0, |sum, column| sum ^ column)
}

/// The positions of the set bits of `mask`, lowest first.
pub(crate) fn bits(mut mask: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        (mask != 0).then(|| {
            let bit = mask.trailing_zeros();
            mask &= mask - 1;
            bit
        })
    })
}

/// A mask of the `count` lowest bits; `count` may be 64.
pub(crate) fn low_mask(count: u32) -> u64 {
    1u64.checked_shl(count).map_or(u64::MAX, |bit| bit - 1)
}
