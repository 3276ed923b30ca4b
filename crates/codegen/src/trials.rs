//! How much may be tried.
//!
//! What the assembler makes of a kernel in another order, or with fewer registers, shows only when it is assembled so.
//! That takes some hundredths of a second for most kernels, but it grows faster than the kernel does: large products
//! took seconds. So each kernel has an allowance, of which every attempt takes what it costs. It goes by the
//! text alone, never by a clock: a kernel becomes the same code on any machine, however busy that is.

/// The longest kernel with products of which one attempt may be made, in lines of PTX. With that, those of
/// 450 lines, such as products of 64 x 64 elements, have four attempts, and those of 900 lines one.
const LONGEST_WITH_PRODUCTS: u64 = 900;

/// The longest of the others. The assembler is through with them sooner, and the memory that bounds them makes
/// more of an order.
const LONGEST: u64 = 2000;

/// The longest of which attempts may be made that promise much, whatever else was tried.
const LONGEST_PROMISING: u64 = 2000;

/// The most bytes that a thread spills from which an attempt may save it.
const FEW_BYTES: u32 = 256;

/// What is left of a kernel's allowance.
#[derive(Debug)]
pub(crate) struct Trials {
    lines: u64,
    /// The most lines of which an attempt may be made.
    longest: u64,
    /// In squares of lines, as what an attempt costs.
    left: u64,
}

impl Trials {
    /// The allowance of a kernel that is written as `ptx`.
    pub(crate) fn of(ptx: &str, has_products: bool) -> Trials {
        let longest = if has_products { LONGEST_WITH_PRODUCTS } else { LONGEST };
        Trials { lines: ptx.lines().count() as u64, longest, left: longest * longest }
    }

    /// How many of `attempts` may be made beside each other; they are paid for.
    pub(crate) fn take(&mut self, attempts: usize) -> usize {
        self.take_beside(0, attempts)
    }

    /// As [`Trials::take`], so that as many as `others` may still be made later.
    pub(crate) fn take_beside(&mut self, others: usize, attempts: usize) -> usize {
        let cost = (self.lines * self.lines).max(1);
        let fitting = (self.left / cost).saturating_sub(others as u64).min(attempts as u64);
        self.left -= fitting * cost;
        fitting as usize
    }

    /// Whether no attempt may be made, unless it promises much.
    pub(crate) fn is_long(&self) -> bool {
        self.lines > self.longest
    }

    /// Whether attempts may be made to save a kernel from spilling `bytes`.
    pub(crate) fn may_save(&self, bytes: u32) -> bool {
        bytes <= FEW_BYTES && self.may_promise()
    }

    /// Whether an attempt may be made that promises much.
    pub(crate) fn may_promise(&self) -> bool {
        self.lines <= LONGEST_PROMISING
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_lines(lines: usize) -> Trials {
        Trials::of(&"\tret;\n".repeat(lines), true)
    }

    #[test]
    fn long_kernels_are_tried_less_often() {
        let taken = |lines| of_lines(lines).take(usize::MAX);
        assert_eq!([100, 300, 450, 600, 900, 901].map(taken), [81, 9, 4, 2, 1, 0]);
        assert_eq!(Trials::of(&"\tret;\n".repeat(901), false).take(9), 4, "without products");
        assert_eq!([900, 901].map(|lines| of_lines(lines).is_long()), [false, true]);
    }

    #[test]
    fn attempts_are_paid_for_and_kept_for_others() {
        let mut trials = of_lines(450);
        assert_eq!(trials.take_beside(2, 3), 2);
        assert_eq!((trials.take(1), trials.take(5), trials.take(1)), (1, 1, 0));
    }

    #[test]
    fn few_spills_of_kernels_that_are_not_huge_are_worth_attempts() {
        let cases = [(1500, 16), (1500, 2000), (4000, 16)];
        assert_eq!(
            cases.map(|(lines, bytes)| of_lines(lines).may_save(bytes)),
            [true, false, false]
        );
    }
}
