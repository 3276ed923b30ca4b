//! Between which numbers integers lie, as far as constants, places in the grid and bounds of loops
//! tell.
//!
//! In: instructions in the order in which they run. Out: a range for each integer value, elements
//! of a tile taken together, read as signed. A result that might wrap has the range of its type, so
//! that every range holds whatever the arguments of the kernel are. Cost: constant for each
//! instruction.

use cranelift_entity::SecondaryMap;

use crate::ir::{
    Attrs, Function, Inst, InstData, IntPredicate, MAX_GRID, Opcode, Scalar, Type, Value,
};

/// The numbers from `low` to `high`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    low: i128,
    high: i128,
}

impl Range {
    fn new(low: i128, high: i128) -> Range {
        Range { low, high }
    }

    /// Everything that an integer type of more than one bit holds.
    fn of_type(ty: &Type) -> Option<Range> {
        let bits = ty.number().filter(|scalar| scalar.is_int() && *scalar != Scalar::I1)?.bits();
        let half = 1_i128 << (bits - 1);
        Some(Range::new(-half, half - 1))
    }

    /// The number, where there is but one.
    pub(super) fn single(self) -> Option<i128> {
        (self.low == self.high).then_some(self.low)
    }

    /// Whether all of it is at least zero and below all of `limit`.
    pub(super) fn is_index_below(self, limit: Range) -> bool {
        self.low >= 0 && self.high < limit.low
    }

    /// Whether no number of it is above one of `other`.
    pub(super) fn is_at_most(self, other: Range) -> bool {
        self.high <= other.low
    }

    /// Whether comparing any number of it with any of `other` has one outcome, and which.
    pub(super) fn compare(self, predicate: IntPredicate, other: Range) -> Option<bool> {
        let less = decide(self.high < other.low, self.low >= other.high);
        let at_most = decide(self.is_at_most(other), self.low > other.high);
        let equal = match (self.single(), other.single()) {
            (Some(one), Some(two)) => Some(one == two),
            _ if self.high < other.low || other.high < self.low => Some(false),
            _ => None,
        };
        let unsigned = self.low >= 0 && other.low >= 0;
        match predicate {
            IntPredicate::Eq => equal,
            IntPredicate::Ne => equal.map(|holds| !holds),
            IntPredicate::Slt => less,
            IntPredicate::Sle => at_most,
            IntPredicate::Sgt => at_most.map(|holds| !holds),
            IntPredicate::Sge => less.map(|holds| !holds),
            IntPredicate::Ult => less.filter(|_| unsigned),
            IntPredicate::Ule => at_most.filter(|_| unsigned),
            IntPredicate::Ugt => at_most.filter(|_| unsigned).map(|holds| !holds),
            IntPredicate::Uge => less.filter(|_| unsigned).map(|holds| !holds),
        }
    }

    fn join(self, other: Range) -> Range {
        Range::new(self.low.min(other.low), self.high.max(other.high))
    }

    /// The hull of `apply` over the ends, for what has its extremes there.
    fn corners(self, other: Range, apply: impl Fn(i128, i128) -> i128) -> Range {
        let ends = [(self.low, other.low), (self.low, other.high), (self.high, other.low)];
        let first = apply(self.high, other.high);
        ends.iter().fold(Range::new(first, first), |hull, &(one, two)| {
            let corner = apply(one, two);
            hull.join(Range::new(corner, corner))
        })
    }
}

fn decide(holds: bool, fails: bool) -> Option<bool> {
    if holds { Some(true) } else { fails.then_some(false) }
}

/// The ranges of a function's values.
#[derive(Default)]
pub(super) struct Ranges(SecondaryMap<Value, Option<Range>>);

impl Ranges {
    /// The range of an integer value.
    pub(super) fn get(&self, func: &Function, value: Value) -> Option<Range> {
        self.0[value].or_else(|| Range::of_type(func.ty(value)))
    }

    /// Takes note of the range of what an instruction gives, or of the index of a loop.
    pub(super) fn visit(&mut self, func: &Function, inst: Inst) {
        let data = &func.insts[inst];
        if data.opcode == Opcode::For {
            self.enter(func, data);
        } else if let &[result] = data.results.as_slice() {
            self.0[result] = self.result(func, data, result);
        }
    }

    /// The index of a loop that counts up lies within its bounds, where it cannot wrap.
    fn enter(&mut self, func: &Function, data: &InstData) {
        let index = func.regions[data.regions[0]].args[0];
        let bounds = [0, 1, 2].map(|slot| self.get(func, data.operand(slot)));
        let ([Some(lower), Some(upper), Some(step)], Some(all)) =
            (bounds, Range::of_type(func.ty(index)))
        else {
            return;
        };
        // Not negative, so that it says the same of signed and of unsigned loops.
        let counts_up = lower.low >= 0 && upper.low >= 0 && step.low > 0;
        if counts_up && upper.high + step.high <= all.high {
            self.0[index] = Some(Range::new(lower.low, (upper.high - 1).max(lower.low)));
        }
    }

    fn result(&self, func: &Function, data: &InstData, result: Value) -> Option<Range> {
        let all = Range::of_type(func.ty(result))?;
        let range = self.exact(func, data).unwrap_or(all);
        Some(if range.low < all.low || range.high > all.high { all } else { range })
    }

    /// The range of a result of unlimited width; `None` where nothing is known of it.
    fn exact(&self, func: &Function, data: &InstData) -> Option<Range> {
        let operand = |slot: usize| self.get(func, data.operand_opt(slot)?);
        match (data.opcode, &data.attrs) {
            (Opcode::Constant, Attrs::Constant(constant)) => {
                let ty = func.ty(data.result());
                let number = signed(ty.number()?, constant.bits);
                Some(Range::new(number, number))
            }
            (Opcode::Arange, Attrs::Range(range)) => {
                Some(Range::new(range.start.into(), i128::from(range.end) - 1))
            }
            (Opcode::ProgramId, Attrs::Axis(axis)) => Some(Range::new(0, extent(axis.axis)? - 1)),
            (Opcode::NumPrograms, Attrs::Axis(axis)) => Some(Range::new(1, extent(axis.axis)?)),
            (
                Opcode::Splat
                | Opcode::Unsplat
                | Opcode::Broadcast
                | Opcode::ExpandDims
                | Opcode::Reshape
                | Opcode::Permute
                | Opcode::Gather
                | Opcode::AssertFacts
                | Opcode::ExtS
                | Opcode::Trunc,
                _,
            ) => operand(0),
            (Opcode::ExtU, _) => extend_unsigned(operand(0), func.ty(data.operand(0))),
            (Opcode::Join | Opcode::Cat, _) => Some(operand(0)?.join(operand(1)?)),
            (Opcode::Select, _) => Some(operand(1)?.join(operand(2)?)),
            (opcode, _) => binary(opcode, operand(0)?, operand(1)?),
        }
    }
}

/// The largest extent of the grid along `axis`.
fn extent(axis: u32) -> Option<i128> {
    MAX_GRID.get(axis as usize).map(|&extent| extent.into())
}

/// Zero extension leaves what is not negative as it is.
/// The bits of an integer type as a signed number; the set bit of `i1` is -1.
pub(super) fn signed(scalar: Scalar, bits: u64) -> i128 {
    let unused = 64 - scalar.bits();
    i128::from(((bits << unused) as i64) >> unused)
}

fn extend_unsigned(range: Option<Range>, from: &Type) -> Option<Range> {
    let bits = from.number()?.bits();
    range.filter(|range| range.low >= 0).or(Some(Range::new(0, (1_i128 << bits) - 1)))
}

fn binary(opcode: Opcode, lhs: Range, rhs: Range) -> Option<Range> {
    let natural = lhs.low >= 0 && rhs.low >= 0;
    let amount = || u32::try_from(rhs.single()?).ok().filter(|&amount| amount < u64::BITS);
    match opcode {
        Opcode::Add => Some(Range::new(lhs.low + rhs.low, lhs.high + rhs.high)),
        Opcode::Sub => Some(Range::new(lhs.low - rhs.high, lhs.high - rhs.low)),
        Opcode::Mul => Some(lhs.corners(rhs, |one, two| one * two)),
        Opcode::DivS if rhs.low > 0 => Some(lhs.corners(rhs, |one, two| one / two)),
        Opcode::DivU if natural && rhs.low > 0 => Some(lhs.corners(rhs, |one, two| one / two)),
        Opcode::RemS if rhs.low > 0 => {
            let most = rhs.high - 1;
            Some(Range::new(lhs.low.clamp(-most, 0), lhs.high.clamp(0, most)))
        }
        Opcode::RemU if natural && rhs.low > 0 => Some(Range::new(0, lhs.high.min(rhs.high - 1))),
        Opcode::And if lhs.low >= 0 || rhs.low >= 0 => {
            let natural = [lhs, rhs].into_iter().filter(|range| range.low >= 0);
            Some(Range::new(0, natural.map(|range| range.high).min()?))
        }
        Opcode::Or | Opcode::Xor if natural => {
            let bits = i128::BITS - lhs.high.max(rhs.high).leading_zeros();
            Some(Range::new(0, (1 << bits) - 1))
        }
        Opcode::Shl => amount().map(|by| Range::new(lhs.low << by, lhs.high << by)),
        Opcode::ShrS => amount().map(|by| Range::new(lhs.low >> by, lhs.high >> by)),
        Opcode::ShrU if natural => amount().map(|by| Range::new(lhs.low >> by, lhs.high >> by)),
        Opcode::MinS => Some(Range::new(lhs.low.min(rhs.low), lhs.high.min(rhs.high))),
        Opcode::MaxS => Some(Range::new(lhs.low.max(rhs.low), lhs.high.max(rhs.high))),
        Opcode::MinU if natural => Some(Range::new(lhs.low.min(rhs.low), lhs.high.min(rhs.high))),
        Opcode::MaxU if natural => Some(Range::new(lhs.low.max(rhs.low), lhs.high.max(rhs.high))),
        _ => None,
    }
}
