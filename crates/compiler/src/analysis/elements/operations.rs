//! Operations: an element of what they give from elements of what they get.

use super::{Element, Elements, Index, UnknownKey};
use crate::analysis::terms::{AtomKind, Cond, Interval, Linear, Operation, Terms};
use crate::ir::{Attrs, Inst, InstData, IntPredicate, Opcode, Value};

impl Elements<'_> {
    pub(super) fn result(&mut self, value: Value, inst: Inst, at: usize, index: &Index) -> Element {
        let func = self.func;
        let data = &func.insts[inst];
        match data.opcode {
            Opcode::For => match self.step(data) {
                Some(step) => {
                    let trips = self.trips(inst, step);
                    self.carried(value, inst, at, index, &trips)
                }
                None => self.unknown(value, index),
            },
            Opcode::If => self.branches(value, inst, at, index),
            // The two halves along the last axis.
            Opcode::Split => {
                let mut inner = index.clone();
                inner.push(Linear::constant(at as i128));
                self.element(data.operand(0), &inner)
            }
            _ if data.results.len() == 1 => self.operation(value, data, index),
            _ => self.unknown(value, index),
        }
    }

    pub(super) fn branches(
        &mut self,
        value: Value,
        inst: Inst,
        at: usize,
        index: &Index,
    ) -> Element {
        let func = self.func;
        let data = &func.insts[inst];
        let mut yields =
            data.regions.iter().map(|region| func.terminator(*region)?.operand_opt(at));
        let (Some(Some(first)), Some(Some(second))) = (yields.next(), yields.next()) else {
            return self.unknown(value, index);
        };
        match self.taken.get(&inst) {
            Some(true) => return self.element(first, index),
            Some(false) => return self.element(second, index),
            None => {}
        }
        let condition = self.truth(data.operand(0), &Index::new());
        self.select(value, condition, first, second, index)
    }

    pub(super) fn select(
        &mut self,
        value: Value,
        condition: Cond,
        first: Value,
        second: Value,
        index: &Index,
    ) -> Element {
        match condition {
            Terms::TRUE => return self.element(first, index),
            Terms::FALSE => return self.element(second, index),
            _ => {}
        }
        match (self.element(first, index), self.element(second, index)) {
            (Element::Int(a), Element::Int(b)) => {
                Element::Int(self.terms.choose(condition, &a, &b))
            }
            (Element::Bool(a), Element::Bool(b)) => {
                let not = self.terms.not(condition);
                let (a, b) = (self.terms.and(condition, a), self.terms.and(not, b));
                Element::Bool(self.terms.or(a, b))
            }
            (Element::Pointer(param, a), Element::Pointer(other, b)) if param == other => {
                Element::Pointer(param, self.terms.choose(condition, &a, &b))
            }
            _ => self.unknown(value, index),
        }
    }

    /// `term` as an integer of the value's type, which wraps around.
    pub(super) fn fit(&mut self, value: Value, term: &Linear) -> Linear {
        let bits = self.func.ty(value).number().map_or(64, |number| number.bits());
        // Sums modulo a power of two add up, so that wrapping waits until the loop's step is known.
        let waits = self
            .carried
            .iter()
            .any(|carried| carried.terms.first().is_some_and(|(atom, _)| term.factor(*atom) != 0));
        if waits {
            return term.clone();
        }
        let fitted = self.terms.wrap(bits, term);
        if fitted != *term {
            self.wraps.entry((bits, term.clone())).or_default().push(value);
        }
        fitted
    }

    pub(super) fn operation(&mut self, value: Value, data: &InstData, index: &Index) -> Element {
        let ty = self.func.ty(value);
        if ty.number().is_some_and(|number| number.bits() == 1) {
            return self.truth_operation(value, data, index);
        }
        match (data.opcode, &data.attrs) {
            (Opcode::Constant, Attrs::Constant(constant)) => match ty.number() {
                Some(number) if number.is_int() => {
                    let term = Linear::constant(i128::from(constant.bits));
                    Element::Int(self.terms.wrap(number.bits(), &term))
                }
                _ => Element::Unknown,
            },
            (Opcode::ProgramId, Attrs::Axis(axis)) if axis.axis < 3 => {
                Element::Int(self.program(axis.axis))
            }
            (Opcode::NumPrograms, Attrs::Axis(axis)) if axis.axis < 3 => {
                match self.launch.and_then(|launch| launch.grid) {
                    Some(grid) => {
                        Element::Int(Linear::constant(i128::from(grid[axis.axis as usize])))
                    }
                    None => {
                        let range = Interval::new(1, i128::from(i32::MAX));
                        Element::Int(self.unknown_within(value, index, range))
                    }
                }
            }
            (Opcode::Arange, Attrs::Range(range)) => match index.first() {
                Some(at) => Element::Int(at.offset(i128::from(range.start))),
                None => Element::Unknown,
            },
            (Opcode::PtrAdd, _) => {
                let offset = self.int(data.operand(1), index);
                match self.element(data.operand(0), index) {
                    Element::Pointer(param, base) => match base.plus(&offset) {
                        Some(sum) => Element::Pointer(param, sum),
                        None => Element::Unknown,
                    },
                    _ => Element::Unknown,
                }
            }
            (Opcode::Bitcast, _) => self.bitcast(value, data, index),
            (Opcode::Select, _) => {
                let condition = self.truth(data.operand(0), index);
                self.select(value, condition, data.operand(1), data.operand(2), index)
            }
            (Opcode::Load, _) if ty.elem().is_some_and(|elem| elem.is_int()) => {
                self.loaded(value, data, index)
            }
            (Opcode::Join, _) => match index.split_last() {
                Some((side, inner)) => {
                    let first = self.terms.at_most(side, &Linear::default());
                    let inner = Index::from(inner);
                    self.select(value, first, data.operand(0), data.operand(1), &inner)
                }
                None => Element::Unknown,
            },
            _ => match self.moved(data, index) {
                Some((source, index)) => self.element(source, &index),
                None if ty.elem().is_some_and(|elem| elem.is_int()) => {
                    self.integer(value, data, index)
                }
                None => Element::Unknown,
            },
        }
    }

    /// The same bits: addresses keep their meaning among elements of one size.
    pub(super) fn bitcast(&mut self, value: Value, data: &InstData, index: &Index) -> Element {
        let size = |value: Value| {
            self.func
                .ty(value)
                .elem()
                .and_then(|elem| elem.pointee())
                .map(|elem| elem.bits().div_ceil(8))
        };
        match (size(data.operand(0)), size(value)) {
            (Some(from), Some(to)) if from == to => self.element(data.operand(0), index),
            (Some(_), _) | (_, Some(_)) => Element::Unknown,
            _ => self.unknown(value, index),
        }
    }

    /// Whether all that a value is for is to be reduced to one number, whatever order its elements
    /// have.
    fn is_only_reduced(&self, value: Value) -> bool {
        let func = self.func;
        let whole = func.ty(value).shape().len() == 1;
        let uses = |inst: &Inst| func.insts[*inst].uses().any(|used| used == value);
        let reduces = |inst: Inst| func.insts[inst].opcode == Opcode::Reduce;
        whole && func.walk().into_iter().filter(uses).all(reduces)
    }

    /// Where the element comes from, for operations that only move elements.
    pub(in crate::analysis) fn moved(
        &mut self,
        data: &InstData,
        index: &Index,
    ) -> Option<(Value, Index)> {
        let source = data.operand_opt(0)?;
        let shape = self.func.ty(source).shape();
        let index = match (data.opcode, &data.attrs) {
            (Opcode::Splat, _) => Index::new(),
            (Opcode::Unsplat, _) => shape.iter().map(|_| Linear::default()).collect(),
            (Opcode::AssertFacts | Opcode::ConvertLayout, _) => index.clone(),
            (Opcode::Broadcast, _) => {
                let axes = shape.iter().zip(index);
                axes.map(|(&extent, at)| if extent == 1 { Linear::default() } else { at.clone() })
                    .collect()
            }
            (Opcode::ExpandDims, Attrs::Axis(axis)) => {
                let mut inner = index.clone();
                if (axis.axis as usize) < inner.len() {
                    inner.remove(axis.axis as usize);
                }
                inner
            }
            (Opcode::Permute, Attrs::Order(order)) => {
                let mut inner: Index = index.iter().map(|_| Linear::default()).collect();
                for (to, &from) in order.order.iter().enumerate() {
                    *inner.get_mut(from as usize)? = index.get(to)?.clone();
                }
                inner
            }
            (Opcode::Reshape, Attrs::Reshape(reshape))
                if !reshape.reorder || self.is_only_reduced(data.result()) =>
            {
                let from = self.func.ty(data.result()).shape().to_vec();
                self.reshaped(&from, shape, index)?
            }
            (Opcode::Gather, Attrs::Axis(axis)) => {
                let axis = axis.axis as usize;
                let from = self.position_of(data.operand(1), index, *shape.get(axis)?)?;
                let mut inner = index.clone();
                *inner.get_mut(axis)? = from;
                inner
            }
            _ => return None,
        };
        (index.len() == shape.len()).then_some((source, index))
    }

    /// The position in an axis of this extent that an element of `value` is, when the program, the
    /// lane and the trips of loops alone determine it.
    fn position_of(&mut self, value: Value, index: &Index, extent: u32) -> Option<Linear> {
        let Element::Int(at) = self.element(value, index) else { return None };
        let range = self.terms.range(&at);
        let mut determined = range.lo >= 0 && range.hi < i128::from(extent);
        let known = &self.variables;
        self.terms.visit(&at, &mut |_, kind| {
            determined &= match kind {
                AtomKind::Var(var) => known.values().any(|known| known == var),
                AtomKind::Unknown(_) => false,
                _ => true,
            };
        });
        determined.then_some(at)
    }

    /// The position in a tile of shape `to` of what is at `index` in one of shape `from`.
    pub(super) fn reshaped(&mut self, from: &[u32], to: &[u32], index: &Index) -> Option<Index> {
        let mut linear = Linear::default();
        for (&extent, at) in from.iter().zip(index) {
            linear = linear.scaled(i128::from(extent))?.plus(at)?;
        }
        let mut inner: Index = to.iter().map(|_| Linear::default()).collect();
        for (axis, &extent) in to.iter().enumerate().rev() {
            let extent = Linear::constant(i128::from(extent));
            inner[axis] = self.terms.binary(Operation::Rem, &linear, &extent);
            linear = self.terms.binary(Operation::Div, &linear, &extent);
        }
        Some(inner)
    }

    pub(super) fn integer(&mut self, value: Value, data: &InstData, index: &Index) -> Element {
        let linear = |elements: &mut Self| {
            let a = elements.int(data.operand(0), index);
            let b = elements.int(data.operand(1), index);
            (a, b)
        };
        let term = match data.opcode {
            Opcode::Add => {
                let (a, b) = linear(self);
                a.plus(&b)
            }
            Opcode::Sub => {
                let (a, b) = linear(self);
                a.minus(&b)
            }
            Opcode::Mul => {
                let (a, b) = linear(self);
                Some(self.terms.binary(Operation::Mul, &a, &b))
            }
            Opcode::Shl => {
                let (a, b) = linear(self);
                b.as_constant().filter(|bits| (0..63).contains(bits)).and_then(|b| a.scaled(1 << b))
            }
            Opcode::ShrS | Opcode::ShrU => {
                let (a, b) = linear(self);
                let bits = b.as_constant().filter(|bits| (0..63).contains(bits));
                match bits {
                    Some(bits) if self.terms.range(&a).lo >= 0 => {
                        let divisor = Linear::constant(1 << bits);
                        Some(self.terms.binary(Operation::Div, &a, &divisor))
                    }
                    _ => None,
                }
            }
            Opcode::ExtS => {
                let bits =
                    self.func.ty(data.operand(0)).number().map_or(64, |number| number.bits());
                let inner = self.int(data.operand(0), index);
                if bits == 1 { inner.scaled(-1) } else { Some(inner) }
            }
            Opcode::Trunc => Some(self.int(data.operand(0), index)),
            Opcode::ExtU => {
                let inner = self.int(data.operand(0), index);
                (self.terms.range(&inner).lo >= 0).then_some(inner)
            }
            Opcode::AbsS => {
                let a = self.int(data.operand(0), index);
                a.scaled(-1).map(|negative| self.terms.binary(Operation::Max, &a, &negative))
            }
            opcode => {
                let Some((op, unsigned)) = nonlinear(opcode) else {
                    return self.unknown(value, index);
                };
                let (a, b) = linear(self);
                if op == Operation::Div && self.launch.is_none() && self.divides_arguments(data) {
                    self.note_quotient(&a, &b);
                }
                let negative = self.terms.range(&a).lo < 0 || self.terms.range(&b).lo < 0;
                (!unsigned || !negative).then(|| self.bitwise_or(op, &a, &b))
            }
        };
        match term {
            Some(term) => Element::Int(self.fit(value, &term)),
            None => self.unknown(value, index),
        }
    }

    /// Notes that `b` divides `a`, which is no less.
    fn note_quotient(&mut self, a: &Linear, b: &Linear) {
        let quotient = self.terms.binary(Operation::Div, a, b);
        let rest = self.terms.binary(Operation::Rem, a, b);
        let some = self.terms.at_most(&Linear::constant(1), &quotient);
        let none = self.terms.equal(&rest, &Linear::default());
        self.quotients.extend([some, none]);
    }

    /// Whether both operands are what the kernel is given.
    fn divides_arguments(&self, data: &InstData) -> bool {
        let args = &self.func.regions[self.func.body].args;
        args.contains(&data.operand(0)) && args.contains(&data.operand(1))
    }

    /// `a op b`; a mask of low bits is a remainder.
    pub(super) fn bitwise_or(&mut self, op: Operation, a: &Linear, b: &Linear) -> Linear {
        let low_bits = |term: &Linear| {
            let value = term.as_constant()?.checked_add(1)?;
            (value > 0 && value & (value - 1) == 0).then_some(value)
        };
        if op == Operation::And && self.terms.range(a).lo >= 0 && self.terms.range(b).lo >= 0 {
            if let Some(modulus) = low_bits(b) {
                return self.terms.binary(Operation::Rem, a, &Linear::constant(modulus));
            }
            if let Some(modulus) = low_bits(a) {
                return self.terms.binary(Operation::Rem, b, &Linear::constant(modulus));
            }
        }
        self.terms.binary(op, a, b)
    }

    pub(super) fn truth_operation(
        &mut self,
        value: Value,
        data: &InstData,
        index: &Index,
    ) -> Element {
        let cond = match (data.opcode, &data.attrs) {
            (Opcode::Constant, Attrs::Constant(constant)) => {
                if constant.bits & 1 == 0 {
                    Terms::FALSE
                } else {
                    Terms::TRUE
                }
            }
            (Opcode::Cmp, Attrs::IntCompare(compare)) => {
                return Element::Bool(self.comparison(data, compare.predicate, index));
            }
            (Opcode::FCmp, Attrs::FloatCompare(compare)) => {
                match self.compared_floats(data, compare.predicate, index) {
                    Some(cond) => cond,
                    None => return self.unknown(value, index),
                }
            }
            (Opcode::And | Opcode::Mul | Opcode::MinU, _) => {
                let (a, b) =
                    (self.truth(data.operand(0), index), self.truth(data.operand(1), index));
                self.terms.and(a, b)
            }
            (Opcode::Or | Opcode::MaxU, _) => {
                let (a, b) =
                    (self.truth(data.operand(0), index), self.truth(data.operand(1), index));
                self.terms.or(a, b)
            }
            (Opcode::Xor | Opcode::Add | Opcode::Sub, _) => {
                let (a, b) =
                    (self.truth(data.operand(0), index), self.truth(data.operand(1), index));
                self.terms.xor(a, b)
            }
            (Opcode::Select, _) => {
                let condition = self.truth(data.operand(0), index);
                return self.select(value, condition, data.operand(1), data.operand(2), index);
            }
            _ => match self.moved(data, index) {
                Some((source, index)) => return self.element(source, &index),
                None => return self.unknown(value, index),
            },
        };
        Element::Bool(cond)
    }

    pub(super) fn comparison(
        &mut self,
        data: &InstData,
        predicate: IntPredicate,
        index: &Index,
    ) -> Cond {
        use IntPredicate::{Eq, Ne};
        let (a, b) = (self.element(data.operand(0), index), self.element(data.operand(1), index));
        let (a, b) = match (a, b) {
            (Element::Int(a), Element::Int(b)) => (a, b),
            (Element::Bool(a), Element::Bool(b)) => {
                let differs = self.terms.xor(a, b);
                return match predicate {
                    Ne => differs,
                    Eq => self.terms.not(differs),
                    _ => self.any_truth(),
                };
            }
            (Element::Pointer(a, x), Element::Pointer(b, y)) if a == b => (x, y),
            _ => {
                let key = UnknownKey::Value(data.result(), index.clone());
                return self.keyed_truth(key);
            }
        };
        self.compared(predicate, &a, &b)
    }

    /// How two integers compare.
    pub(in crate::analysis) fn compared(
        &mut self,
        predicate: IntPredicate,
        a: &Linear,
        b: &Linear,
    ) -> Cond {
        use IntPredicate::{Eq, Ne, Sge, Sgt, Sle, Slt, Uge, Ugt, Ule, Ult};
        let negative = self.terms.range(a).lo < 0 || self.terms.range(b).lo < 0;
        if matches!(predicate, Ult | Ule | Ugt | Uge) && negative {
            return self.keyed_truth(UnknownKey::Compare(predicate, a.clone(), b.clone()));
        }
        match predicate {
            Eq => self.terms.equal(a, b),
            Ne => {
                let equal = self.terms.equal(a, b);
                self.terms.not(equal)
            }
            Slt | Ult => self.terms.less(a, b),
            Sle | Ule => self.terms.at_most(a, b),
            Sgt | Ugt => self.terms.less(b, a),
            Sge | Uge => self.terms.at_most(b, a),
        }
    }
}

/// The operation behind an opcode, and whether it takes its operands as unsigned.
fn nonlinear(opcode: Opcode) -> Option<(Operation, bool)> {
    Some(match opcode {
        Opcode::DivS => (Operation::Div, false),
        Opcode::DivU => (Operation::Div, true),
        Opcode::RemS => (Operation::Rem, false),
        Opcode::RemU => (Operation::Rem, true),
        Opcode::MinS => (Operation::Min, false),
        Opcode::MinU => (Operation::Min, true),
        Opcode::MaxS => (Operation::Max, false),
        Opcode::MaxU => (Operation::Max, true),
        Opcode::And => (Operation::And, false),
        Opcode::Or => (Operation::Or, false),
        Opcode::Xor => (Operation::Xor, false),
        _ => return None,
    })
}
