//! Lanes that masks leave out and that a reduction counts all the same: what is loaded there is what
//! `other` says, and what is computed from it is not zero, or may be greater than all others.
//!
//! What a lane holds is followed as far as it matters ([`Holds`]), in cases that conditions tell
//! apart. A lane for which anything else was loaded is one that the reduction is meant to count.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::{SmallVec, smallvec};

use super::Flow;
use super::gives::{Gives, combines_by, is_told};
use super::held::{Holds, one, two};
use crate::analysis::elements::{Element, Index, Variable};
use crate::analysis::solve::Outcome;
use crate::analysis::terms::{AtomKind, Cond, CondKind, Linear, Terms, Var, note_var};
use crate::ir::{
    Attrs, FloatPredicate, Function, Inst, InstData, IntPredicate, Opcode, Value, ValueDef,
};
use crate::specialization::KnownArg;

/// Cases in which one value is looked at.
const MAX_CASES: usize = 12;

/// Boxes that may be looked at to find that a lane is left out in each of several cases.
const COVER_FUEL: u32 = 20;

/// Values followed into each other.
const MAX_DEPTH: u32 = 80;

/// What a lane holds where a condition is true.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Case {
    cond: Cond,
    holds: Holds,
    /// The load whose mask leaves the lane out.
    masked: Option<Inst>,
    /// Whether something else was loaded for this lane.
    loaded: bool,
    /// Whether a loop has added it to what else it holds.
    added: bool,
}

type Cases = SmallVec<[Case; 2]>;

fn only(holds: Holds) -> Cases {
    smallvec![Case { holds, ..Case::OPEN }]
}

impl Case {
    /// Of a lane that may hold anything.
    const OPEN: Case =
        Case { cond: Terms::TRUE, holds: Holds::Any, masked: None, loaded: false, added: false };

    /// Whether a mask leaves the lane out of what was loaded.
    fn is_left_out(&self) -> bool {
        self.masked.is_some() && (self.added || !self.loaded)
    }

    /// Whether a sum is wrong that counts it.
    fn is_wrong(&self) -> bool {
        self.holds.counts() && self.is_left_out()
    }

    fn with(self, other: Case, cond: Cond, holds: Holds) -> Case {
        Case {
            cond,
            holds,
            masked: self.masked.or(other.masked),
            loaded: self.loaded || other.loaded,
            added: self.added || other.added,
        }
    }
}

/// A lane that a sum counts though a mask leaves it out.
pub(in crate::analysis) struct Counted {
    /// When it does.
    pub(in crate::analysis) cond: Cond,
    /// The load whose mask leaves it out.
    pub(in crate::analysis) load: Inst,
    /// Its position along the axis of the reduction.
    pub(in crate::analysis) lane: Linear,
    /// What the sum adds for it.
    pub(in crate::analysis) holds: Holds,
}

/// One walk from a reduction to what it combines.
struct Walk {
    gives: Gives,
    /// The position along the axis of the reduction.
    lane: FxHashSet<Var>,
    known: FxHashMap<(Value, Index), Cases>,
    depth: u32,
}

impl Flow<'_, '_> {
    /// When a reduction counts lanes that a mask leaves out.
    pub(super) fn counted(&mut self, inst: Inst, index: &Index) -> Cond {
        let data = &self.func.insts[inst];
        let Some(gives) = Gives::of(self.func, inst) else { return Terms::FALSE };
        let Attrs::Axis(axis) = &data.attrs else { return Terms::FALSE };
        let axis = axis.axis as usize;
        let summed = data.operand(0);
        let Some(&extent) = self.func.ty(summed).shape().get(axis) else { return Terms::FALSE };
        let mut inner = index.clone();
        if axis > inner.len() {
            return Terms::FALSE;
        }
        let lane = self.anywhere(extent);
        inner.insert(axis, lane.clone());
        let vars = self.vars_of(&lane);
        let mut walk = Walk { gives, lane: vars, known: FxHashMap::default(), depth: 0 };
        let cases = self.held(&mut walk, summed, &inner);
        let signed = |case: &Case| case.masked.is_none() && case.holds == Holds::Signed;
        let signed = is_told(self.func, data) && cases.iter().any(signed);
        let is_wrong = |case: &Case| case.is_left_out() && gives.is_changed_by(case.holds, signed);
        let wrong: Vec<Case> = cases.into_iter().filter(is_wrong).collect();
        self.left_out.extend(wrong.iter().filter_map(|case| {
            let (cond, load, lane, holds) = (case.cond, case.masked?, lane.clone(), case.holds);
            Some(Counted { cond, load, lane, holds })
        }));
        self.either(wrong.into_iter().map(|case| case.cond))
    }

    fn vars_of(&self, term: &Linear) -> FxHashSet<Var> {
        let mut vars = FxHashSet::default();
        self.elements.terms.visit(term, &mut |_, kind| note_var(kind, &mut vars));
        vars
    }

    /// Whether what is at `index` is another element in each lane of the sum.
    fn varies(&self, walk: &Walk, index: &Index) -> bool {
        index.iter().any(|at| !self.vars_of(at).is_disjoint(&walk.lane))
    }

    /// Of a condition, what holds whatever `vars` are.
    fn whatever(&mut self, cond: Cond, vars: &FxHashSet<Var>) -> Cond {
        match *self.elements.terms.cond(cond) {
            CondKind::And(a, b) => {
                let (a, b) = (self.whatever(a, vars), self.whatever(b, vars));
                self.elements.terms.and(a, b)
            }
            CondKind::Or(a, b) => {
                let (a, b) = (self.whatever(a, vars), self.whatever(b, vars));
                self.elements.terms.or(a, b)
            }
            _ => {
                let mut used = FxHashSet::default();
                self.elements.terms.visit_cond(cond, &mut |_, kind| note_var(kind, &mut used));
                if used.is_disjoint(vars) { cond } else { Terms::FALSE }
            }
        }
    }

    /// What the element of `value` at `index` holds.
    fn held(&mut self, walk: &mut Walk, value: Value, index: &Index) -> Cases {
        let key = (value, index.clone());
        if let Some(known) = walk.known.get(&key) {
            return known.clone();
        }
        if walk.depth >= MAX_DEPTH {
            return only(Holds::Any);
        }
        walk.depth += 1;
        let mut cases = match self.func.values[value].def {
            ValueDef::Result(inst, at) => self.made(walk, inst, at as usize, index),
            ValueDef::Argument(region, at) if region == self.func.body => self.passed(at as usize),
            ValueDef::Argument(..) if self.rises(value) => only(Holds::Lowest),
            ValueDef::Argument(..) => only(Holds::Any),
        };
        walk.depth -= 1;
        cases = self.merged(cases);
        if cases.len() > MAX_CASES {
            cases = only(Holds::Any);
        }
        walk.known.insert(key, cases.clone());
        cases
    }

    /// The cases that may be: those that differ in their conditions alone are one.
    fn merged(&mut self, cases: Cases) -> Cases {
        let mut merged = Cases::new();
        for case in cases.into_iter().filter(|case| case.cond != Terms::FALSE) {
            let is_same = |known: &&mut Case| Case { cond: case.cond, ..**known } == case;
            match merged.iter_mut().find(is_same) {
                Some(known) => known.cond = self.elements.terms.or(known.cond, case.cond),
                None => merged.push(case),
            }
        }
        merged
    }

    /// Whether a loop starts with minus infinity and carries the maximum of that and other numbers.
    fn rises(&self, carried: Value) -> bool {
        let func = self.func;
        let Some((inst, start)) = self.elements.carried_from(carried) else { return false };
        let region = func.insts[inst].regions[0];
        let at = func.regions[region].args.iter().position(|arg| *arg == carried);
        let yielded = at.and_then(|at| func.terminator(region)?.operand_opt(at.checked_sub(1)?));
        let is_maximum = yielded.and_then(|value| func.def(value)).is_some_and(|data| {
            data.opcode == Opcode::FMax && data.uses().any(|used| used == carried)
        });
        let bits = func.constant_bits(start).zip(func.ty(start).number());
        let starts = bits.map(|(bits, number)| Holds::constant(number, bits));
        is_maximum && starts == Some(Holds::Number(f64::NEG_INFINITY))
    }

    /// What an argument of the kernel is.
    fn passed(&self, at: usize) -> Cases {
        let param = &self.func.params[at];
        let value = self.func.regions[self.func.body].args[at];
        match self.elements.passed(&param.name) {
            Some(KnownArg::Float(bits)) => only(Holds::Number(f64::from_bits(*bits))),
            _ if is_float(self.func, value) => only(Holds::NonZero),
            _ => only(Holds::Any),
        }
    }

    fn made(&mut self, walk: &mut Walk, inst: Inst, at: usize, index: &Index) -> Cases {
        let func = self.func;
        let data = &func.insts[inst];
        match (data.opcode, &data.attrs) {
            (Opcode::Constant, Attrs::Constant(constant)) if is_float(func, data.result()) => {
                let number = func.ty(data.result()).number();
                only(number.map_or(Holds::Any, |number| Holds::constant(number, constant.bits)))
            }
            (Opcode::Constant, _) => match self.elements.element(data.result(), index) {
                Element::Int(term) => only(match term.as_constant() {
                    Some(number) => Holds::Number(number as f64),
                    None => Holds::Any,
                }),
                _ => only(Holds::Any),
            },
            (Opcode::Load, _) => self.read(walk, inst, data, index),
            (Opcode::Select, _)
                if self.compares_positions_as_floats(data.operand(0))
                    || self.compares_filled(data.operand(0)) =>
            {
                only(Holds::Any)
            }
            (Opcode::Select, _) => {
                let chosen = self.elements.truth(data.operand(0), index);
                let (yes, no) = self.decided(walk, data.operand(0), index);
                let not_no = self.elements.terms.not(no);
                let chosen = self.elements.terms.and(chosen, not_no);
                let chosen = self.elements.terms.or(yes, chosen);
                // Where an element was found, a mask has left out none that is there.
                let there = Some(data.operand(1)).filter(|_| !self.is_found(data.operand(0)));
                self.chosen(walk, chosen, (there, data.operand(2)), index)
            }
            (Opcode::For, _) => self.looped(walk, inst, data, at, index),
            (Opcode::Reduce, _) => self.reduced(walk, data, index),
            (Opcode::Dot, _) => self.product(walk, data, index),
            _ => match self.elements.moved(data, index) {
                Some((source, moved)) => self.held(walk, source, &moved),
                None => self.computed(walk, data, index),
            },
        }
    }

    fn read(&mut self, walk: &mut Walk, inst: Inst, data: &InstData, index: &Index) -> Cases {
        // What is the same in all lanes says nothing about which of them count.
        let varies = self.varies(walk, index);
        let float = is_float(self.func, data.result());
        let holds = match self.elements.element(data.operand(0), index) {
            _ if !float => Holds::Any,
            Element::Pointer(param, _) if self.elements.is_signed(param) => Holds::Signed,
            _ => Holds::NonZero,
        };
        let here = Case { cond: Terms::TRUE, holds, masked: None, loaded: varies, added: false };
        let Some(mask) = data.operand_opt(1) else { return smallvec![here] };
        let mask = self.elements.truth(mask, index);
        let masked = self.elements.terms.not(mask);
        let mut cases: Cases = smallvec![Case { cond: mask, ..here }];
        let filled = match (data.operand_opt(2), self.filled) {
            (Some(other), _) => self.held(walk, other, index),
            (None, Some((load, number))) if load == inst => only(Holds::Number(number)),
            (None, _) => only(Holds::Any),
        };
        for case in filled {
            let cond = self.elements.terms.and(masked, case.cond);
            cases.push(Case { cond, masked: Some(inst).filter(|_| varies), ..case });
        }
        cases
    }

    /// When a comparison of floats is certainly true and when it is certainly false, since both of
    /// them are numbers that are known.
    fn decided(&mut self, walk: &mut Walk, condition: Value, index: &Index) -> (Cond, Cond) {
        let (mut yes, mut no) = (Terms::FALSE, Terms::FALSE);
        let Some(data) = self.func.def(condition) else { return (yes, no) };
        let Attrs::FloatCompare(compare) = &data.attrs else { return (yes, no) };
        if self.func.ty(condition).shape().len() != index.len() {
            return (yes, no);
        }
        let (a, b) =
            (self.held(walk, data.operand(0), index), self.held(walk, data.operand(1), index));
        for (a, b) in a.iter().flat_map(|a| b.iter().map(move |b| (a, b))) {
            let (Holds::Number(x), Holds::Number(y)) = (a.holds, b.holds) else { continue };
            let cond = self.elements.terms.and(a.cond, b.cond);
            let decided = if is_true(compare.predicate, x, y) { &mut yes } else { &mut no };
            *decided = self.elements.terms.or(*decided, cond);
        }
        (yes, no)
    }

    /// Whether floats that are compared for a condition are integers, and nothing that is loaded: it may leave
    /// lanes out by where they are, which is not followed.
    fn compares_positions_as_floats(&self, condition: Value) -> bool {
        let made = self.func.computing(condition);
        let has = |is_meant: &dyn Fn(&InstData) -> bool| {
            made.iter().filter_map(|value| self.func.def(*value)).any(is_meant)
        };
        has(&|data| matches!(data.attrs, Attrs::FloatCompare(_)))
            && has(&|data| matches!(data.opcode, Opcode::SToF | Opcode::UToF))
            && !has(&|data| data.opcode == Opcode::Load)
    }

    /// Whether integers that are compared for a condition are loaded under a mask with an `other`: that may
    /// be beyond all that memory holds, and leave these lanes out.
    fn compares_filled(&self, condition: Value) -> bool {
        let made = self.func.computing(condition);
        made.iter().any(|value| {
            let filled = self.func.def(*value).filter(|data| data.opcode == Opcode::Load);
            filled.is_some_and(|load| load.operand_opt(2).is_some() && !is_float(self.func, *value))
        })
    }

    /// Whether a condition says that a position is the one which a reduction found, or which memory
    /// names: what that lists, as the class of a row, is there.
    fn is_found(&self, condition: Value) -> bool {
        let Some(data) = self.func.def(condition) else { return false };
        let is_equal = match &data.attrs {
            Attrs::IntCompare(compare) => compare.predicate == IntPredicate::Eq,
            _ => false,
        };
        let is_constant = |value: Value| self.func.constant_bits(value).is_some();
        is_equal
            && (data.uses().any(|value| self.is_position(value))
                || data.uses().any(|value| self.is_listed(value)) && !data.uses().any(is_constant))
    }

    /// Whether a value is read from memory once for all lanes along some axis.
    fn is_listed(&self, value: Value) -> bool {
        use Opcode::{Broadcast, ExpandDims, ExtS, ExtU, Splat, Trunc};
        self.func.def(value).is_some_and(|data| match data.opcode {
            ExtS | ExtU | Trunc => self.is_listed(data.operand(0)),
            Broadcast | ExpandDims | Splat => {
                self.is_listed(data.operand(0)) || self.is_read(data.operand(0))
            }
            _ => false,
        })
    }

    fn is_read(&self, value: Value) -> bool {
        use Opcode::{ExtS, ExtU, Load, Trunc};
        self.func.def(value).is_some_and(|data| match data.opcode {
            ExtS | ExtU | Trunc => self.is_read(data.operand(0)),
            Load => true,
            _ => false,
        })
    }

    fn is_position(&self, value: Value) -> bool {
        use Opcode::{Broadcast, ExpandDims, ExtS, ExtU, Reduce, Splat, Trunc};
        self.func.def(value).is_some_and(|data| match data.opcode {
            Broadcast | ExpandDims | ExtS | ExtU | Splat | Trunc => {
                self.is_position(data.operand(0))
            }
            Reduce => data.results.len() == 2,
            _ => false,
        })
    }

    /// Whether a condition is true wherever another is, as one of those of which any is enough.
    fn covers(&self, cond: Cond, other: Cond) -> bool {
        cond == other
            || match *self.elements.terms.cond(cond) {
                CondKind::Or(a, b) => self.covers(a, other) || self.covers(b, other),
                _ => false,
            }
    }

    /// The first of these cases, where in all of those that may be a mask leaves the lane out while a
    /// condition is true.
    fn left_out_in(&mut self, cases: &Cases, cond: Cond) -> Option<Case> {
        let left_out: Cases = cases.iter().filter(|case| case.is_left_out()).copied().collect();
        let first = *left_out.first()?;
        if let Some(case) = left_out.iter().find(|case| self.covers(case.cond, cond)) {
            return Some(*case);
        }
        let any = self.either(left_out.iter().map(|case| case.cond));
        let none = self.elements.terms.not(any);
        let ranges = self.elements.terms.var_ranges().to_vec();
        let elsewhere = self.elements.search_within(ranges, &[cond, none], &mut { COVER_FUEL });
        (elsewhere == Outcome::Never).then_some(first)
    }

    fn chosen(
        &mut self,
        walk: &mut Walk,
        chosen: Cond,
        (there, elsewhere): (Option<Value>, Value),
        index: &Index,
    ) -> Cases {
        let otherwise = self.elements.terms.not(chosen);
        let a = there.map_or_else(|| only(Holds::Any), |there| self.held(walk, there, index));
        let b = self.held(walk, elsewhere, index);
        let mut cases = Cases::new();
        for (cond, here, there) in [(chosen, &a, &b), (otherwise, &b, &a)] {
            let replaced = self.left_out_in(there, cond);
            for case in here {
                // What takes the place of lanes that a mask leaves out stands for them. A maximum may
                // be meant to be no less than some number.
                let counts = walk.gives == Gives::Sum || case.holds.is_infinite();
                let replaced = replaced.filter(|_| counts).and_then(|replaced| replaced.masked);
                let masked = case.masked.or(replaced);
                let cond = self.elements.terms.and(cond, case.cond);
                cases.push(Case { cond, masked, ..*case });
            }
        }
        cases
    }

    /// What is left of an axis.
    fn reduced(&mut self, walk: &mut Walk, data: &InstData, index: &Index) -> Cases {
        let Attrs::Axis(axis) = &data.attrs else { return only(Holds::Any) };
        let (axis, input) = (axis.axis as usize, data.operand(0));
        let extent = self.func.ty(input).shape().get(axis).copied();
        let (Some(extent), true) = (extent, is_float(self.func, input)) else {
            return only(Holds::Any);
        };
        let mut inner = index.clone();
        if axis > inner.len() || data.uses().count() != 1 {
            return only(Holds::Any);
        }
        let position = self.anywhere(extent);
        inner.insert(axis, position.clone());
        let cases = self.held(walk, input, &inner);
        let loaded = self.varies(walk, index) && cases.iter().any(|case| case.loaded);
        let adds = combines_by(self.func, data, &[Opcode::FAdd]);
        let is = |case: &Case, wanted: &[Holds]| wanted.contains(&case.holds);
        let is_nonzero = |case: &Case| is(case, &[Holds::NonZero, Holds::Signed]);
        let is_open = |case: &Case| is(case, &[Holds::Any, Holds::Lowest]);
        let holds = match adds {
            true if cases.iter().any(is_nonzero) => Holds::NonZero,
            false if cases.iter().all(is_nonzero) => Holds::NonZero,
            false if cases.iter().any(is_open) => Holds::Any,
            _ => Holds::Finite,
        };
        let rest = Case { cond: Terms::TRUE, holds, masked: None, loaded, added: false };
        if adds { self.with_zeros(rest, &cases, &position) } else { smallvec![rest] }
    }

    /// What a sum holds that is 0 where all that it adds is: a mask along other axes leaves out all
    /// of that at once.
    fn with_zeros(&mut self, rest: Case, added: &Cases, position: &Linear) -> Cases {
        let along = self.vars_of(position);
        let mut cases = Cases::new();
        let mut elsewhere = rest.cond;
        for case in added.iter().filter(|case| case.holds == Holds::Number(0.0)) {
            let cond = self.whatever(case.cond, &along);
            let not = self.elements.terms.not(cond);
            elsewhere = self.elements.terms.and(elsewhere, not);
            cases.push(Case { cond, ..*case });
        }
        cases.push(Case { cond: elsewhere, ..rest });
        cases
    }

    /// What a matrix product holds without what it is added to: 0 where all of a row or column is.
    fn product(&mut self, walk: &mut Walk, data: &InstData, index: &Index) -> Cases {
        let sums = self.products(walk, data, index);
        let added = self.held(walk, data.operand(2), index);
        self.combined(&sums, &added, false, |a, b| two(Opcode::FAdd, a, b))
    }

    fn products(&mut self, walk: &mut Walk, data: &InstData, index: &Index) -> Cases {
        let (lhs, rhs, rank) = (data.operand(0), data.operand(1), index.len());
        let Some(&extent) = self.func.ty(lhs).shape().last() else { return only(Holds::Any) };
        if rank < 2 {
            return only(Holds::Any);
        }
        let k = self.anywhere(extent);
        let vars = self.vars_of(&k);
        let (mut left, mut right) = (index.clone(), index.clone());
        left[rank - 1] = k.clone();
        right[rank - 2] = k;
        let mut cases = Cases::new();
        let mut rest = Terms::TRUE;
        let mut loaded = false;
        for (value, index) in [(lhs, left), (rhs, right)] {
            for case in self.held(walk, value, &index) {
                loaded |= case.loaded;
                if case.holds == Holds::Number(0.0) {
                    let cond = self.whatever(case.cond, &vars);
                    let not = self.elements.terms.not(cond);
                    rest = self.elements.terms.and(rest, not);
                    cases.push(Case { cond, ..case });
                }
            }
        }
        cases.push(Case { cond: rest, holds: Holds::NonZero, masked: None, loaded, added: false });
        cases
    }

    /// What a loop carries in the end: the sum of what each trip adds, where it starts with 0.
    fn looped(
        &mut self,
        walk: &mut Walk,
        inst: Inst,
        data: &InstData,
        at: usize,
        index: &Index,
    ) -> Cases {
        let func = self.func;
        let (Some(init), Some(region)) = (data.operand_opt(3 + at), data.regions.first()) else {
            return only(Holds::Any);
        };
        let carried = func.regions[*region].args.get(at + 1).copied();
        let yielded = func.terminator(*region).and_then(|end| end.operand_opt(at));
        let (Some(carried), Some(yielded)) = (carried, yielded) else { return only(Holds::Any) };
        let runs = self.elements.runs(inst);
        let trip = self.elements.variable(Variable::Trip(inst)).into_iter().collect();
        let starts = self.held(walk, init, index);
        let from_zero = starts.iter().all(|case| case.holds == Holds::Number(0.0));
        let added = match func.def(yielded) {
            Some(sum) if from_zero && matches!(sum.opcode, Opcode::FAdd | Opcode::Add) => {
                let (a, b) = (sum.operand(0), sum.operand(1));
                match (self.keeps(a, carried), self.keeps(b, carried)) {
                    (true, false) => Some(self.held(walk, b, index)),
                    (false, true) => Some(self.held(walk, a, index)),
                    _ => None,
                }
            }
            Some(dot) if from_zero && dot.opcode == Opcode::Dot && dot.operand(2) == carried => {
                Some(self.products(walk, dot, index))
            }
            _ => None,
        };
        let adds = added.is_some();
        let cases = added.unwrap_or_else(|| self.held(walk, yielded, index));
        let mut results = Cases::new();
        for case in cases {
            let always = self.whatever(case.cond, &trip);
            let wrong = adds && case.is_wrong();
            let (cond, holds, loaded) = match case.holds {
                // One trip is enough to add what must not be counted.
                holds if wrong => (case.cond, added_up(holds), case.loaded),
                holds if always == case.cond => (always, holds, case.loaded),
                Holds::Number(_) => (always, case.holds, case.loaded),
                // In other trips it may hold something else.
                holds => (case.cond, holds, true),
            };
            let cond = self.elements.terms.and(runs, cond);
            results.push(Case { cond, holds, loaded, added: case.added || wrong, ..case });
        }
        // What is the same in all lanes was loaded for none of them.
        if !self.varies(walk, index) {
            results.iter_mut().for_each(|case| case.loaded = false);
        }
        results
    }

    /// Whether a value is what a loop carries, or a multiple of that.
    fn keeps(&self, value: Value, carried: Value) -> bool {
        let multiple = |data: &InstData| {
            data.opcode == Opcode::FMul && data.uses().any(|used| used == carried)
        };
        value == carried || self.func.def(value).is_some_and(multiple)
    }

    fn computed(&mut self, walk: &mut Walk, data: &InstData, index: &Index) -> Cases {
        let shape = self.func.ty(data.result()).shape();
        let operands: SmallVec<[Value; 3]> = data.uses().collect();
        let same = operands.iter().all(|operand| self.func.ty(*operand).shape() == shape);
        if !same || !data.regions.is_empty() || !data.opcode.is_pure() {
            return only(Holds::Any);
        }
        match (data.opcode, operands.as_slice()) {
            // A truth value as a number.
            (Opcode::ExtU | Opcode::UToF, [truth]) if is_truth(self.func, *truth) => {
                self.truths(walk, *truth, index)
            }
            (opcode, [a]) => {
                let mut cases = self.held(walk, *a, index);
                cases.iter_mut().for_each(|case| case.holds = one(opcode, case.holds));
                cases
            }
            (opcode, [a, b]) => self.of_two(walk, opcode, (*a, *b), index),
            (Opcode::Fma, [a, b, c]) => {
                let product = self.of_two(walk, Opcode::FMul, (*a, *b), index);
                let c = self.held(walk, *c, index);
                self.combined(&product, &c, false, |a, b| two(Opcode::FAdd, a, b))
            }
            _ => only(Holds::Any),
        }
    }

    /// What an operation gives of two values in each of their cases.
    fn of_two(
        &mut self,
        walk: &mut Walk,
        opcode: Opcode,
        (a, b): (Value, Value),
        index: &Index,
    ) -> Cases {
        let square = a == b;
        let (a, b) = (self.held(walk, a, index), self.held(walk, b, index));
        self.combined(&a, &b, square, |a, b| two(opcode, a, b))
    }

    /// What two operands give in each of their cases, where `same` says that they are one value.
    fn combined(
        &mut self,
        a: &Cases,
        b: &Cases,
        same: bool,
        operation: impl Fn(Holds, Holds) -> Holds,
    ) -> Cases {
        let mut cases = Cases::new();
        for (at, a) in a.iter().enumerate() {
            for (other, b) in b.iter().enumerate() {
                if same && at != other {
                    continue;
                }
                let cond = self.elements.terms.and(a.cond, b.cond);
                if cond != Terms::FALSE {
                    cases.push(a.with(*b, cond, operation(a.holds, b.holds)));
                }
            }
        }
        cases
    }

    /// Whether the program, the lane and the trips of loops alone say what an integer is.
    fn is_known(&mut self, value: Value, index: &Index) -> bool {
        let Element::Int(term) = self.elements.element(value, index) else { return false };
        let mut known: FxHashSet<Var> = self.elements.variables().map(|(_, var)| var).collect();
        known.extend(index.iter().flat_map(|at| self.vars_of(at)));
        let mut fixed = true;
        self.elements.terms.visit(&term, &mut |_, kind| {
            fixed &= match kind {
                AtomKind::Var(var) => known.contains(var),
                AtomKind::Unknown(_) => false,
                _ => true,
            };
        });
        fixed
    }

    /// The number 1 or 0 that a truth value becomes, and whether loads that it compares were left
    /// out.
    fn truths(&mut self, walk: &mut Walk, truth: Value, index: &Index) -> Cases {
        let mut cases = Cases::new();
        for (case, holds) in self.compared(walk, truth, index) {
            let not = self.elements.terms.not(holds);
            for (cond, number) in [(holds, 1.0), (not, 0.0)] {
                let cond = self.elements.terms.and(cond, case.cond);
                cases.push(Case { cond, holds: Holds::Number(number), ..case });
            }
        }
        cases.retain(|case| case.cond != Terms::FALSE);
        cases
    }

    /// The cases of what a truth value compares, each with when it is true there: where a mask leaves a side
    /// out, that side is what `other` says.
    fn compared(&mut self, walk: &mut Walk, truth: Value, index: &Index) -> Vec<(Case, Cond)> {
        let holds = self.elements.truth(truth, index);
        let open = || vec![(Case::OPEN, holds)];
        let Some(data) = self.func.def(truth).filter(|data| data.opcode == Opcode::Cmp) else {
            return open();
        };
        let Attrs::IntCompare(compare) = &data.attrs else { return open() };
        let sides = [data.operand(0), data.operand(1)];
        if !sides.into_iter().any(|side| self.is_known(side, index)) {
            return open();
        }
        let [a, b] = sides.map(|side| self.held(walk, side, index));
        let mut found = Vec::new();
        for (a, b) in a.iter().flat_map(|a| b.iter().map(move |b| (a, b))) {
            let cond = self.elements.terms.and(a.cond, b.cond);
            let [left, right] =
                [(a, sides[0]), (b, sides[1])].map(|(case, side)| self.side(case, side, index));
            let case = a.with(*b, cond, Holds::Any);
            found.push(match (left, right) {
                (Some(left), Some(right)) => {
                    (case, self.elements.compared(compare.predicate, &left, &right))
                }
                _ => (Case { cond, ..Case::OPEN }, holds),
            });
        }
        found
    }

    /// What one side of a comparison is in a case; `None` where a mask leaves it out and `other` says no integer.
    fn side(&mut self, case: &Case, side: Value, index: &Index) -> Option<Linear> {
        match (case.masked, case.holds) {
            (Some(_), Holds::Number(number)) if number.fract() == 0.0 => {
                Some(Linear::constant(number as i128))
            }
            (Some(_), _) => None,
            (None, _) => match self.elements.element(side, index) {
                Element::Int(term) => Some(term),
                _ => None,
            },
        }
    }
}

fn is_true(predicate: FloatPredicate, a: f64, b: f64) -> bool {
    match predicate {
        FloatPredicate::Oeq => a == b,
        FloatPredicate::Une => a != b,
        FloatPredicate::Olt => a < b,
        FloatPredicate::Ole => a <= b,
        FloatPredicate::Ogt => a > b,
        FloatPredicate::Oge => a >= b,
    }
}

/// What several trips add up of what one adds.
fn added_up(holds: Holds) -> Holds {
    match holds {
        Holds::Number(_) => Holds::NonZero,
        holds => holds,
    }
}

fn is_float(func: &Function, value: Value) -> bool {
    func.ty(value).elem().is_some_and(|elem| elem.is_float())
}

fn is_truth(func: &Function, value: Value) -> bool {
    func.ty(value).number().is_some_and(|number| number.bits() == 1)
}
