//! Operands in the order in which the product reads them.

use bytemuck::Pod;

use super::super::simd::{Loop, widest};

/// Rows of a block of sums that is kept in registers.
pub(super) const ROWS: usize = 4;
/// Columns of such a block.
pub(super) const COLS: usize = 16;

/// Extents of a factor.
#[derive(Debug, Clone, Copy)]
pub(super) struct Matrix {
    pub batch: usize,
    pub rows: usize,
    pub cols: usize,
    /// True when the columns are summed over: it is the left factor.
    pub k_last: bool,
}

impl Matrix {
    pub fn numel(self) -> usize {
        self.batch * self.rows * self.cols
    }
}

/// Where an operand is packed.
pub(super) struct Target<'a, T> {
    pub matrix: Matrix,
    pub out: &'a mut [T],
}

impl<T: Pod> Target<'_, T> {
    /// Packs row-major values, each converted.
    pub fn fill<S: Pod>(self, values: &[S], convert: impl Fn(S) -> T) {
        widest(Pack { values, convert, target: self });
    }
}

struct Pack<'a, S, T, F> {
    values: &'a [S],
    convert: F,
    target: Target<'a, T>,
}

impl<S: Pod, T: Pod, F: Fn(S) -> T> Loop for Pack<'_, S, T, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Pack { values, convert, target: Target { matrix, out } } = self;
        let packed = out.len() / matrix.batch;
        let mut batch = 0;
        while batch < matrix.batch {
            let start = batch * matrix.rows * matrix.cols;
            match matrix.k_last {
                true => pack_lhs((values, start), (out, batch * packed), matrix, &convert),
                false => pack_rhs((values, start), (out, batch * packed), matrix, &convert),
            }
            batch += 1;
        }
    }
}

/// Rows in groups of [`ROWS`]: for each step along K, one element of each; zeros fill the last.
#[inline(always)]
fn pack_lhs<S: Pod, T: Pod>(
    (values, start): (&[S], usize),
    (out, into): (&mut [T], usize),
    matrix: Matrix,
    convert: &impl Fn(S) -> T,
) {
    let Matrix { rows, cols: k, .. } = matrix;
    let mut row = 0;
    while row < rows.next_multiple_of(ROWS) {
        let into = into + row / ROWS * ROWS * k + row % ROWS;
        let mut step = 0;
        while step < k {
            let zero = T::zeroed();
            let value = if row < rows { convert(values[start + row * k + step]) } else { zero };
            out[into + step * ROWS] = value;
            step += 1;
        }
        row += 1;
    }
}

/// Columns in groups of [`COLS`]: for each step along K, one element of each; zeros fill the last.
#[inline(always)]
fn pack_rhs<S: Pod, T: Pod>(
    (values, start): (&[S], usize),
    (out, into): (&mut [T], usize),
    matrix: Matrix,
    convert: &impl Fn(S) -> T,
) {
    let Matrix { rows: k, cols: n, .. } = matrix;
    let mut col = 0;
    while col < n {
        let width = COLS.min(n - col);
        let mut step = 0;
        while step < k {
            let from = start + step * n + col;
            let to = into + (col / COLS * k + step) * COLS;
            assert!(from + width <= values.len() && to + COLS <= out.len());
            if width == COLS {
                let mut at = 0;
                while at < COLS {
                    out[to + at] = convert(values[from + at]);
                    at += 1;
                }
            } else {
                let mut at = 0;
                while at < COLS {
                    out[to + at] =
                        if at < width { convert(values[from + at]) } else { T::zeroed() };
                    at += 1;
                }
            }
            step += 1;
        }
        col += COLS;
    }
}
