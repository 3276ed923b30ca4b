//! What reductions give of numbers, and which of these change that.

use super::held::Holds;
use crate::ir::{Attrs, FloatPredicate, Function, Inst, InstData, Opcode, Value};

/// What a reduction gives of the numbers along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::analysis) enum Gives {
    /// Their sum.
    Sum,
    /// The greatest, or where it is.
    Greatest,
    /// The least, or where it is.
    Least,
}

impl Gives {
    /// What `inst` gives, if it is a reduction that gives any of these.
    pub(in crate::analysis) fn of(func: &Function, inst: Inst) -> Option<Gives> {
        use Opcode::{Add, FAdd, FMax, FMin};
        let data = &func.insts[inst];
        let by = |wanted: &[Opcode]| data.uses().count() == 1 && combines_by(func, data, wanted);
        match data.opcode {
            Opcode::Reduce if by(&[FAdd, Add]) => Some(Gives::Sum),
            Opcode::Reduce if by(&[FMax]) => Some(Gives::Greatest),
            Opcode::Reduce if by(&[FMin]) => Some(Gives::Least),
            Opcode::Reduce if data.results.len() == 2 => Gives::with_position(func, data),
            _ => None,
        }
    }

    /// What a reduction of numbers with their positions gives: it keeps what compares as greater or
    /// as less.
    fn with_position(func: &Function, data: &InstData) -> Option<Gives> {
        let region = &func.regions[*data.regions.first()?];
        let first = &func.insts[*region.insts.first()?];
        let kept = func.def(func.terminator(*data.regions.first()?)?.operand_opt(0)?)?;
        let [a, _, b, _] = region.args.as_slice() else { return None };
        let (compared, chosen) = ([first.operand_opt(0)?, first.operand_opt(1)?], [*a, *b]);
        let keeps_first = kept.opcode == Opcode::Select
            && [kept.operand(1), kept.operand(2)] == chosen
            && compared == chosen;
        match &first.attrs {
            Attrs::FloatCompare(cmp) if keeps_first => match cmp.predicate {
                FloatPredicate::Ogt => Some(Gives::Greatest),
                FloatPredicate::Olt => Some(Gives::Least),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether a lane that holds this changes the result, where others hold `signed` numbers.
    pub(super) fn is_changed_by(self, holds: Holds, signed: bool) -> bool {
        match (self, holds) {
            (Gives::Sum, holds) => holds.counts(),
            (Gives::Greatest, Holds::Number(number)) => {
                number == f64::INFINITY || signed && number >= 0.0
            }
            (Gives::Least, Holds::Number(number)) => {
                number == f64::NEG_INFINITY || signed && number <= 0.0
            }
            _ => false,
        }
    }
}

/// Whether a maximum or minimum is seen as it is, or where it is. What is only subtracted, as before
/// an exponential, may as well be another number.
pub(super) fn is_told(func: &Function, data: &InstData) -> bool {
    use Opcode::{Broadcast, ExpandDims, FExt, FTrunc, Reshape, Splat};
    let mut same: Vec<Value> = data.results.to_vec();
    let mut told = same.len() > 1;
    for inst in func.walk() {
        let user = &func.insts[inst];
        if !user.uses().any(|used| same.contains(&used)) {
            continue;
        }
        told |= user.opcode == Opcode::Store;
        if matches!(user.opcode, Broadcast | ExpandDims | FExt | FTrunc | Reshape | Splat) {
            same.push(user.result());
        }
    }
    told
}

/// Whether a reduction combines elements by one of these operations alone.
pub(in crate::analysis) fn combines_by(
    func: &Function,
    data: &InstData,
    wanted: &[Opcode],
) -> bool {
    let does = |inst: &Inst| {
        let opcode = func.insts[*inst].opcode;
        opcode == Opcode::Yield || wanted.contains(&opcode)
    };
    data.regions.iter().all(|region| func.regions[*region].insts.iter().all(does))
}
