//! The innermost loops of matrix products.

use bytemuck::Pod;

use super::super::simd::Loop;
use super::pack::{COLS, ROWS};

/// What products are summed in.
pub(super) trait Sum: Pod {
    /// `self + lhs * rhs`: floats round once, integers wrap.
    fn plus(self, lhs: Self, rhs: Self) -> Self;
}

impl Sum for f32 {
    #[inline(always)]
    fn plus(self, lhs: f32, rhs: f32) -> f32 {
        lhs.mul_add(rhs, self)
    }
}

impl Sum for f64 {
    #[inline(always)]
    fn plus(self, lhs: f64, rhs: f64) -> f64 {
        lhs.mul_add(rhs, self)
    }
}

impl Sum for i32 {
    #[inline(always)]
    fn plus(self, lhs: i32, rhs: i32) -> i32 {
        self.wrapping_add(lhs.wrapping_mul(rhs))
    }
}

/// `sums += lhs @ rhs` of packed operands; the sums are row-major, each in order of K.
pub(super) struct Multiply<'a, T> {
    pub lhs: &'a [T],
    pub rhs: &'a [T],
    pub sums: &'a mut [T],
    pub extents: [usize; 3],
}

impl<T: Sum> Loop for Multiply<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Multiply { lhs, rhs, sums, extents: [m, n, k] } = self;
        let mut col = 0;
        while col < n {
            let width = COLS.min(n - col);
            let mut row = 0;
            while row < m {
                let height = ROWS.min(m - row);
                let mut block = [[T::zeroed(); COLS]; ROWS];
                let (from_lhs, from_rhs) = (row * k, col * k);
                if width == COLS && height == ROWS {
                    let mut at = 0;
                    while at < ROWS {
                        let start = (row + at) * n + col;
                        assert!(start + COLS <= sums.len());
                        let mut lane = 0;
                        while lane < COLS {
                            block[at][lane] = sums[start + lane];
                            lane += 1;
                        }
                        at += 1;
                    }
                    block = accumulate((lhs, from_lhs), (rhs, from_rhs), k, block);
                    let mut at = 0;
                    while at < ROWS {
                        let start = (row + at) * n + col;
                        assert!(start + COLS <= sums.len());
                        let mut lane = 0;
                        while lane < COLS {
                            sums[start + lane] = block[at][lane];
                            lane += 1;
                        }
                        at += 1;
                    }
                } else {
                    let mut at = 0;
                    while at < height * width {
                        let place = (row + at / width) * n + col + at % width;
                        block[at / width][at % width] = sums[place];
                        at += 1;
                    }
                    block = accumulate((lhs, from_lhs), (rhs, from_rhs), k, block);
                    let mut at = 0;
                    while at < height * width {
                        let place = (row + at / width) * n + col + at % width;
                        sums[place] = block[at / width][at % width];
                        at += 1;
                    }
                }
                row += ROWS;
            }
            col += COLS;
        }
    }
}

/// Adds the products of one group of rows and one of columns to their sums.
#[inline(always)]
fn accumulate<T: Sum>(
    (lhs, from_lhs): (&[T], usize),
    (rhs, from_rhs): (&[T], usize),
    k: usize,
    mut sums: [[T; COLS]; ROWS],
) -> [[T; COLS]; ROWS] {
    assert!(from_lhs + k * ROWS <= lhs.len() && from_rhs + k * COLS <= rhs.len());
    let mut step = 0;
    while step < k {
        let (lhs_at, rhs_at) = (from_lhs + step * ROWS, from_rhs + step * COLS);
        let mut row = 0;
        while row < ROWS {
            let mut col = 0;
            while col < COLS {
                // SAFETY: `step < k`, `row < ROWS` and `col < COLS`, and the slices hold `k` steps
                // from where these start, as asserted above. The compiler does not see it, and a
                // check here would keep the loop from being vectorized.
                let (factor, value) =
                    unsafe { (*lhs.get_unchecked(lhs_at + row), *rhs.get_unchecked(rhs_at + col)) };
                sums[row][col] = sums[row][col].plus(factor, value);
                col += 1;
            }
            row += 1;
        }
        step += 1;
    }
    sums
}
