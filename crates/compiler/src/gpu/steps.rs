//! How far neighbors along an axis usually lie apart, where they do not always lie as far.
//!
//! Rows and columns of positions, quotients and remainders by a width that only the launch knows, are
//! no runs, and yet most neighbors are next to each other: a remainder goes on as what it is of does, but where
//! it begins anew, and a quotient stays as it is. In: a tile of indices or pointers of a function at the level of
//! tiles. Out: the usual difference of neighbors, if it is known. Cost: linear in what the tile follows from.

use rustc_hash::FxHashMap;

use crate::ir::{Attrs, Function, Inst, InstData, Opcode, Region, Value, ValueDef};

/// Usual differences of neighbors, by value and axis.
pub(super) struct Steps<'f> {
    func: &'f Function,
    known: FxHashMap<(Value, usize), Option<i64>>,
    /// Loops by their bodies.
    loops: FxHashMap<Region, Inst>,
}

impl Steps<'_> {
    pub(super) fn of(func: &Function) -> Steps<'_> {
        let loops = func.walk().into_iter().filter(|&at| func.insts[at].opcode == Opcode::For);
        let loops = loops.map(|at| (func.insts[at].regions[0], at)).collect();
        Steps { func, known: FxHashMap::default(), loops }
    }

    /// The usual difference between neighbors of `value` along `axis`, in elements.
    pub(super) fn along(&mut self, value: Value, axis: usize) -> Option<i64> {
        if self.func.ty(value).shape().get(axis).is_none_or(|&extent| extent == 1) {
            return Some(0);
        }
        if let Some(&step) = self.known.get(&(value, axis)) {
            return step;
        }
        let func = self.func;
        let step = match func.values[value].def {
            ValueDef::Result(inst, _) => self.of_result(&func.insts[inst], axis),
            ValueDef::Argument(body, at) => self.of_carried(value, (body, at as usize), axis),
        };
        self.known.insert((value, axis), step);
        step
    }

    /// That of what a loop carries: as at first, if an iteration leaves it so.
    fn of_carried(
        &mut self,
        value: Value,
        (body, at): (Region, usize),
        axis: usize,
    ) -> Option<i64> {
        /// The bounds and the step of a loop, before what it carries.
        const RANGE: usize = 3;
        let at = at.checked_sub(1)?;
        let first = self.func.insts[*self.loops.get(&body)?].operand(RANGE + at);
        let step = self.along(first, axis)?;
        let next = self.func.terminator(body)?.operand(at);
        self.known.insert((value, axis), Some(step));
        let is_kept = self.along(next, axis) == Some(step);
        if !is_kept {
            // It was taken for what it is not.
            self.known.clear();
        }
        is_kept.then_some(step)
    }

    fn of_result(&mut self, data: &InstData, axis: usize) -> Option<i64> {
        use Opcode::*;
        let operand = |slot: usize| data.operand(slot);
        match data.opcode {
            Constant | Splat => Some(0),
            Arange => Some(1),
            ExpandDims => {
                let Attrs::Axis(added) = &data.attrs else { return None };
                self.along(operand(0), axis - usize::from(added.axis as usize <= axis))
            }
            Broadcast | ExtS | ExtU | Trunc | AssertFacts => self.along(operand(0), axis),
            Add | PtrAdd => {
                self.along(operand(0), axis)?.checked_add(self.along(operand(1), axis)?)
            }
            Sub => self.along(operand(0), axis)?.checked_sub(self.along(operand(1), axis)?),
            Mul => self.of_product(operand(0), operand(1), axis),
            RemS | RemU => {
                self.along(operand(0), axis).filter(|_| self.along(operand(1), axis) == Some(0))
            }
            DivS | DivU => {
                let step = self.along(operand(0), axis)?;
                let divisor =
                    self.func.constant_bits(operand(1)).map_or(i64::MAX, |bits| bits as i64);
                (self.along(operand(1), axis)? == 0).then_some(step / divisor.max(1))
            }
            _ => None,
        }
    }

    fn of_product(&mut self, left: Value, right: Value, axis: usize) -> Option<i64> {
        let steps = [self.along(left, axis)?, self.along(right, axis)?];
        let factor =
            |value: Value| self.func.constant_bits(value).map(|bits| i64::from(bits as i32));
        match steps {
            [0, 0] => Some(0),
            [step, 0] => step.checked_mul(factor(right)?),
            [0, step] => step.checked_mul(factor(left)?),
            _ => None,
        }
    }
}
