//! Loops: how often they run, and what they carry from trip to trip.

use rustc_hash::FxHashSet;

use super::{Carried, Change, Element, Elements, Index, Variable};
use crate::analysis::flow::mask_of;
use crate::analysis::terms::{AtomKind, Cond, Interval, Linear, Operation, Substitution, Var};
use crate::ir::{Inst, InstData, Opcode, Region, Value, ValueDef};

impl Elements<'_> {
    /// The condition that a loop runs its current trip.
    pub(in crate::analysis) fn runs(&mut self, inst: Inst) -> Cond {
        let data = &self.func.insts[inst];
        let Some(step) = self.step(data) else { return self.any_truth() };
        let index = self.induction(inst);
        let upper = self.int(data.operand(1), &Index::new());
        if step > 0 { self.terms.less(&index, &upper) } else { self.terms.less(&upper, &index) }
    }

    /// The step of a loop, if it is a constant other than zero.
    pub(in crate::analysis) fn step(&mut self, data: &InstData) -> Option<i128> {
        let step = self.int(data.operand(2), &Index::new());
        step.as_constant().filter(|step| *step != 0)
    }

    /// The index of a loop in its current trip.
    pub(in crate::analysis) fn induction(&mut self, inst: Inst) -> Linear {
        let data = &self.func.insts[inst];
        let bits = self.func.ty(data.operand(0)).number().map_or(64, |number| number.bits());
        let Some(step) = self.step(data) else { return self.terms.unknown(Interval::signed(bits)) };
        let trips = self.trips(inst, step);
        let most = self.terms.range(&trips).hi.max(1);
        let trip = self.variable_term(Variable::Trip(inst), Interval::new(0, most - 1));
        let lower = self.int(data.operand(0), &Index::new());
        let index = trip.scaled(step).and_then(|moved| lower.plus(&moved));
        // The index is below the bound, so that it does not wrap around.
        index.unwrap_or_else(|| self.terms.unknown(Interval::signed(bits)))
    }

    /// How often a loop runs.
    pub(in crate::analysis) fn trips(&mut self, inst: Inst, step: i128) -> Linear {
        let data = &self.func.insts[inst];
        let lower = self.int(data.operand(0), &Index::new());
        let upper = self.int(data.operand(1), &Index::new());
        let distance = if step > 0 { upper.minus(&lower) } else { lower.minus(&upper) };
        let Some(distance) = distance else { return self.terms.unknown(Interval::signed(64)) };
        let none = Linear::default();
        let distance = self.terms.binary(Operation::Max, &distance, &none);
        let rounded = distance.offset(step.abs() - 1);
        self.terms.binary(Operation::Div, &rounded, &Linear::constant(step.abs()))
    }

    /// The `for` that carries an argument of its body, and what it starts with.
    pub(in crate::analysis) fn carried_from(&self, value: Value) -> Option<(Inst, Value)> {
        let ValueDef::Argument(region, at) = self.func.values[value].def else { return None };
        let inst = *self.owner.get(&region)?;
        let data = &self.func.insts[inst];
        let carried = (at as usize).checked_sub(1).filter(|_| data.opcode == Opcode::For)?;
        Some((inst, data.operand_opt(3 + carried)?))
    }

    /// The condition that a `for` is in its first trip.
    pub(in crate::analysis) fn first_trip(&mut self, inst: Inst) -> Option<Cond> {
        self.induction(inst);
        let trip = self.variable(Variable::Trip(inst))?;
        let trip = self.terms.var_term(trip);
        Some(self.terms.at_most(&trip, &Linear::default()))
    }

    /// Whether a `while` comes to run its body in the trip that is followed.
    pub(super) fn goes_on(&mut self, data: &InstData) -> Cond {
        let goes_on = self
            .func
            .terminator(data.regions[0])
            .and_then(|end| end.operand_opt(0))
            .filter(|_| self.follows_first_trips());
        match goes_on {
            Some(goes_on) => self.truth(goes_on, &Index::new()),
            None => self.any_truth(),
        }
    }

    /// What an argument of a `while` is in the first trip, where that is followed: what the loop
    /// starts with, or what its condition hands on to its body.
    pub(super) fn in_first_trip(&self, inst: Inst, region: Region, at: usize) -> Option<Value> {
        let data = &self.func.insts[inst];
        if !self.follows_first_trips() {
            None
        } else if data.regions.first() == Some(&region) {
            data.operand_opt(at)
        } else {
            self.func.terminator(data.regions[0])?.operand_opt(at + 1)
        }
    }

    /// Whether examples are looked for, rather than what always holds.
    fn follows_first_trips(&self) -> bool {
        self.launch.is_some() && !self.free
    }

    /// The carried value `at` of a loop after `trips`, at `index`.
    pub(super) fn carried(
        &mut self,
        value: Value,
        inst: Inst,
        at: usize,
        index: &Index,
        trips: &Linear,
    ) -> Element {
        let data = &self.func.insts[inst];
        let Some(init) = data.operand_opt(3 + at) else { return self.unknown(value, index) };
        let init = self.element(init, index);
        if matches!(init, Element::Bool(_) | Element::Unknown) {
            return self.unknown(value, index);
        }
        let Some(change) = self.change(Carried { inst, at, index: index.clone() }, &init) else {
            return self.unknown(value, index);
        };
        match init {
            Element::Int(start) => match self.changed(&change, inst, &start, trips) {
                Some(term) => Element::Int(self.fit(value, &term)),
                None => self.unknown(value, index),
            },
            Element::Pointer(param, start) => match self.changed(&change, inst, &start, trips) {
                Some(term) => Element::Pointer(param, term),
                None => Element::Unknown,
            },
            _ => Element::Unknown,
        }
    }

    /// What a carried value that begins as `start` is after `trips`.
    fn changed(
        &mut self,
        change: &Change,
        inst: Inst,
        start: &Linear,
        trips: &Linear,
    ) -> Option<Linear> {
        match change {
            Change::Step(step) => {
                let moved = self.terms.binary(Operation::Mul, step, trips);
                start.plus(&moved)
            }
            Change::Anew(next) => {
                let before = self.in_trip(inst, next, &Linear::constant(-1));
                let last = self.in_trip(inst, next, &trips.offset(-1));
                if before == *start {
                    return Some(last);
                }
                let none = self.terms.at_most(trips, &Linear::default());
                Some(self.terms.choose(none, start, &last))
            }
        }
    }

    /// A term in another trip of a loop.
    fn in_trip(&mut self, inst: Inst, term: &Linear, trip: &Linear) -> Linear {
        let var = self.variable(Variable::Trip(inst));
        let trips = var.map(|var| (var, trip.clone())).into_iter().collect();
        Substitution::new(trips).term(&mut self.terms, term)
    }

    /// What a loop makes of a carried value in each trip.
    fn change(&mut self, carried: Carried, init: &Element) -> Option<Change> {
        if let Some(known) = self.changes.get(&carried) {
            return known.clone();
        }
        // Whoever asks while this is worked out gets no answer.
        self.changes.insert(carried.clone(), None);
        let change = self.find_change(&carried, init);
        self.changes.insert(carried, change.clone());
        change
    }

    fn find_change(&mut self, carried: &Carried, init: &Element) -> Option<Change> {
        let Carried { inst, at, index } = carried;
        let (inst, at) = (*inst, *at);
        let region = self.func.insts[inst].regions[0];
        let next = self.func.terminator(region)?.operand_opt(at)?;
        let arg = *self.func.regions[region].args.get(at + 1)?;
        if next == arg {
            return Some(Change::Step(Linear::default()));
        }
        let placeholder = self.terms.unknown(Interval::signed(64));
        let assumed = match init {
            Element::Pointer(param, _) => Element::Pointer(*param, placeholder.clone()),
            _ => Element::Int(placeholder.clone()),
        };
        let outside = std::mem::take(&mut self.memo);
        self.memo.insert((arg, index.clone()), assumed.clone());
        self.carried.push(placeholder.clone());
        let next = self.element(next, index);
        self.carried.pop();
        self.memo = outside;
        let moved = match (&assumed, next) {
            (Element::Pointer(from, _), Element::Pointer(to, term)) if *from == to => term,
            (Element::Int(_), Element::Int(term)) => term,
            _ => return None,
        };
        let step = moved.minus(&placeholder)?;
        if self.is_invariant(&step, &placeholder, inst) {
            return Some(Change::Step(step));
        }
        self.is_anew(&moved, &placeholder, inst).then_some(Change::Anew(moved))
    }

    /// True when a term has one value throughout a loop. What is read at random is another number where the
    /// trip says from where.
    fn is_invariant(&self, term: &Linear, placeholder: &Linear, inst: Inst) -> bool {
        let trip = self.variable(Variable::Trip(inst));
        let reads_elsewhere = |var: Var| {
            let mut reads = self.random.iter().filter(|read| read.var == var);
            reads.any(|read| !self.is_invariant(&read.offset, placeholder, inst))
        };
        self.is_unchanged(term, placeholder, inst, &|var| Some(var) == trip || reads_elsewhere(var))
    }

    /// True when a term rests on nothing that a loop changes but its trip. What is read at random is read
    /// elsewhere in other trips.
    fn is_anew(&self, term: &Linear, placeholder: &Linear, inst: Inst) -> bool {
        let is_random = |var: Var| self.random.iter().any(|read| read.var == var);
        self.is_unchanged(term, placeholder, inst, &is_random)
    }

    /// True when a term rests on nothing that is worked out in a loop, nor on variables that it `changes`.
    fn is_unchanged(
        &self,
        term: &Linear,
        placeholder: &Linear,
        inst: Inst,
        changes: &dyn Fn(Var) -> bool,
    ) -> bool {
        let mut unchanged = true;
        self.terms.visit(term, &mut |atom, kind| match kind {
            AtomKind::Var(_) | AtomKind::Unknown(_) => {
                unchanged &= !matches!(kind, AtomKind::Var(var) if changes(*var));
                let atom = Linear::atom(atom);
                unchanged &= atom != *placeholder;
                unchanged &=
                    !self.unknowns.get(&atom).is_some_and(|value| self.inside(*value, inst));
            }
            AtomKind::Choose(cond, ..) => unchanged &= !self.terms.has_unknown_cond(*cond),
            _ => {}
        });
        unchanged
    }

    /// Whether it depends on what some operation gives, of those for which `counts` holds, where an
    /// access goes or whether it happens.
    pub(in crate::analysis) fn rests_on(
        &self,
        access: Inst,
        counts: &dyn Fn(Inst) -> bool,
    ) -> bool {
        let data = &self.func.insts[access];
        let mut open: Vec<Value> = vec![data.operand(0)];
        open.extend(mask_of(data));
        let mut inside = access;
        while let Some(&around) = self.home.get(&inside).and_then(|region| self.owner.get(region)) {
            open.extend(self.decides(around));
            inside = around;
        }
        let mut seen = FxHashSet::default();
        while let Some(value) = open.pop() {
            if !seen.insert(value) {
                continue;
            }
            match self.func.values[value].def {
                ValueDef::Result(inst, _) if counts(inst) => return true,
                ValueDef::Result(inst, _) => open.extend(self.gives(inst)),
                ValueDef::Argument(region, _) => {
                    open.extend(self.owner.get(&region).into_iter().flat_map(|it| self.gives(*it)));
                }
            }
        }
        false
    }

    /// The values that decide whether the regions of an operation run.
    fn decides(&self, inst: Inst) -> Vec<Value> {
        let data = &self.func.insts[inst];
        match data.opcode {
            Opcode::For => (0..3).filter_map(|at| data.operand_opt(at)).collect(),
            Opcode::While => self.gives(inst),
            _ => data.uses().collect(),
        }
    }

    /// The values that what an operation gives is made of.
    fn gives(&self, inst: Inst) -> Vec<Value> {
        let data = &self.func.insts[inst];
        let ends = data.regions.iter().filter_map(|region| self.func.terminator(*region));
        data.uses().chain(ends.flat_map(|end| end.uses())).collect()
    }

    /// True when a value is defined inside `inst`.
    pub(super) fn inside(&self, value: Value, inst: Inst) -> bool {
        let mut region = match self.func.values[value].def {
            ValueDef::Argument(region, _) => Some(region),
            ValueDef::Result(def, _) => self.home.get(&def).copied(),
        };
        while let Some(current) = region {
            let Some(&owner) = self.owner.get(&current) else { return false };
            if owner == inst {
                return true;
            }
            region = self.home.get(&owner).copied();
        }
        false
    }
}
