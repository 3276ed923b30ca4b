//! Integers, addresses and masks of tile IR, one element at a time, as [`terms`](super::terms).
//!
//! Variables are the program's position in the grid, the lane of the access, and the trip of each
//! loop around it. What a loop adds in every trip is a multiple of the trip. Everything that comes
//! from memory or floats is unknown within the range of its type.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::terms::{AtomKind, Cond, Interval, Linear, Operation, Terms, Var};
use crate::ir::{Attrs, Function, Inst, InstData, IntPredicate, Opcode, Region, Value, ValueDef};
use crate::specialization::{KnownArg, KnownLaunch};

/// Values followed into each other; what is nested deeper is unknown.
const MAX_DEPTH: u32 = 200;

/// Positions of an element along each axis of its tile; empty for scalars.
pub type Index = SmallVec<[Linear; 3]>;

/// One element of a value.
#[derive(Debug, Clone, PartialEq)]
pub enum Element {
    /// An integer.
    Int(Linear),
    /// A truth value.
    Bool(Cond),
    /// An address: a parameter and a count of its elements.
    Pointer(usize, Linear),
    /// Nothing is known.
    Unknown,
}

/// What a variable stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Variable {
    /// Position in the grid along an axis.
    Program(u32),
    /// Position in the tile of an access along an axis, which has this extent.
    Lane(u32, u32),
    /// Trip of a loop, from 0.
    Trip(Inst),
}

/// An operation on global memory, with what must hold for it to happen.
#[derive(Debug, Clone)]
pub struct Access {
    /// The operation.
    pub inst: Inst,
    /// The parameter that the addresses are counted from.
    pub param: usize,
    /// Position of the element from the parameter, in elements.
    pub offset: Linear,
    /// Conditions of the branches and loops around it.
    pub path: Vec<Cond>,
    /// The mask; true where there is none.
    pub mask: Cond,
    /// Variables of its lanes.
    pub lanes: Vec<Var>,
    /// Loops around it, outermost first.
    pub loops: Vec<Inst>,
}

/// What makes two unknown elements the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum UnknownKey {
    Value(Value, Index),
    /// What is read from a place; the kernels that matter do not write what they read twice.
    Read(usize, Linear, u32),
    /// An unsigned comparison of what may be negative.
    Compare(IntPredicate, Linear, Linear),
}

/// The elements of a function under what is known of a launch.
pub struct Elements<'f> {
    func: &'f Function,
    /// The terms.
    pub terms: Terms,
    launch: Option<&'f KnownLaunch>,
    variables: FxHashMap<Variable, Var>,
    memo: FxHashMap<(Value, Index), Element>,
    /// What a loop adds to a carried value per trip; `None` when that is not the same every time.
    steps: FxHashMap<(Inst, usize, Index), Option<Linear>>,
    /// Whether what is unknown is a variable that may have any value.
    free: bool,
    /// Terms of what is unknown, by value and element or by what a load reads.
    unknown_memo: FxHashMap<UnknownKey, Linear>,
    /// Values behind unknown terms.
    unknowns: FxHashMap<Linear, Value>,
    /// Terms that stand for a loop's carried value while its step is worked out.
    carried: Vec<Linear>,
    /// Where integers may wrap around, by the term before it wraps.
    wraps: FxHashMap<(u32, Linear), Value>,
    /// The region of each value's definition, and the instruction around each region.
    owner: FxHashMap<Region, Inst>,
    home: FxHashMap<Inst, Region>,
    depth: u32,
}

impl<'f> Elements<'f> {
    /// Of `func` under `launch`. What is not known of it is unknown.
    pub fn of_launch(func: &'f Function, launch: &'f KnownLaunch) -> Elements<'f> {
        Elements::new(func, Some(launch), false)
    }

    /// Of `func` whatever its arguments, the grid and memory are: variables stand for them.
    pub fn of_any_launch(func: &'f Function) -> Elements<'f> {
        Elements::new(func, None, true)
    }

    fn new(func: &'f Function, launch: Option<&'f KnownLaunch>, free: bool) -> Elements<'f> {
        let mut elements = Elements {
            func,
            terms: Terms::default(),
            launch,
            variables: FxHashMap::default(),
            memo: FxHashMap::default(),
            steps: FxHashMap::default(),
            free,
            unknown_memo: FxHashMap::default(),
            unknowns: FxHashMap::default(),
            carried: Vec::new(),
            wraps: FxHashMap::default(),
            owner: FxHashMap::default(),
            home: FxHashMap::default(),
            depth: 0,
        };
        elements.note_homes(func.body);
        elements
    }

    fn note_homes(&mut self, region: Region) {
        for &inst in &self.func.regions[region].insts {
            self.home.insert(inst, region);
            for &inner in &self.func.insts[inst].regions {
                self.owner.insert(inner, inst);
                self.note_homes(inner);
            }
        }
    }

    /// The variable of `of`, if there is one.
    pub fn variable(&self, of: Variable) -> Option<Var> {
        self.variables.get(&of).copied()
    }

    /// Every variable with what it stands for.
    pub fn variables(&self) -> impl Iterator<Item = (Variable, Var)> + '_ {
        self.variables.iter().map(|(of, var)| (*of, *var))
    }

    /// The value whose computation wraps around at `term`, as [`AtomKind::Wrap`] holds it.
    pub fn wrapping_value(&self, bits: u32, term: &Linear) -> Option<Value> {
        self.wraps.get(&(bits, term.clone())).copied()
    }

    fn variable_term(&mut self, of: Variable, range: Interval) -> Linear {
        let var = match self.variables.get(&of) {
            Some(var) => *var,
            None => {
                let var = self.terms.var(range);
                self.variables.insert(of, var);
                var
            }
        };
        self.terms.var_term(var)
    }

    /// The position in the grid along `axis`, which may be any in `range` instead.
    pub(super) fn widen(&mut self, axis: u32, range: Interval) -> Linear {
        self.variable_term(Variable::Program(axis), range)
    }

    /// The position in the grid along `axis`.
    pub fn program(&mut self, axis: u32) -> Linear {
        let extent = self.launch.and_then(|launch| launch.grid).map(|grid| grid[axis as usize & 3]);
        let extent = extent.map_or(i128::from(i32::MAX), i128::from);
        self.variable_term(Variable::Program(axis), Interval::new(0, extent - 1))
    }

    /// The element in the lane that variables stand for, of a tile of this shape, and those
    /// variables.
    pub(super) fn lanes(&mut self, shape: &[u32]) -> (Index, Vec<Var>) {
        let mut index = Index::new();
        let mut lanes = Vec::new();
        for (axis, &extent) in shape.iter().enumerate() {
            let of = Variable::Lane(axis as u32, extent);
            let range = Interval::new(0, i128::from(extent) - 1);
            index.push(self.variable_term(of, range));
            lanes.extend(self.variable(of));
        }
        (index, lanes)
    }

    /// One element of the value in each lane.
    pub fn lane(&mut self, value: Value) -> (Element, Vec<Var>) {
        let (index, lanes) = self.lanes(self.func.ty(value).shape());
        (self.element(value, &index), lanes)
    }

    /// Every access to global memory through an address that is known, in program order.
    pub fn accesses(&mut self) -> Vec<Access> {
        let mut found = Vec::new();
        self.visit(self.func.body, &mut Vec::new(), &mut Vec::new(), &mut found);
        found
    }

    fn visit(
        &mut self,
        region: Region,
        path: &mut Vec<Cond>,
        loops: &mut Vec<Inst>,
        found: &mut Vec<Access>,
    ) {
        let func = self.func;
        for &inst in &func.regions[region].insts {
            let data = &func.insts[inst];
            match data.opcode {
                Opcode::If => {
                    let condition = self.truth(data.operand(0), &Index::new());
                    let otherwise = self.terms.not(condition);
                    for (&inner, cond) in data.regions.iter().zip([condition, otherwise]) {
                        path.push(cond);
                        self.visit(inner, path, loops, found);
                        path.pop();
                    }
                }
                Opcode::For => {
                    let runs = self.runs(inst);
                    path.push(runs);
                    loops.push(inst);
                    self.visit(data.regions[0], path, loops, found);
                    loops.pop();
                    path.pop();
                }
                Opcode::While => {
                    let unknown = self.any_truth();
                    path.push(unknown);
                    loops.push(inst);
                    for &inner in &data.regions {
                        self.visit(inner, path, loops, found);
                    }
                    loops.pop();
                    path.pop();
                }
                Opcode::Load | Opcode::Store | Opcode::AtomicRmw | Opcode::AtomicCas => {
                    found.extend(self.access(inst, path, loops));
                }
                _ => {}
            }
        }
    }

    fn access(&mut self, inst: Inst, path: &[Cond], loops: &[Inst]) -> Option<Access> {
        let data = &self.func.insts[inst];
        let (pointer, lanes) = self.lane(data.operand(0));
        let Element::Pointer(param, offset) = pointer else { return None };
        let mask = match data.opcode {
            Opcode::Load => data.operand_opt(1),
            Opcode::Store | Opcode::AtomicRmw => data.operand_opt(2),
            _ => None,
        };
        let mask = match mask {
            Some(mask) => match self.lane(mask).0 {
                Element::Bool(mask) => mask,
                _ => self.any_truth(),
            },
            None => Terms::TRUE,
        };
        let (path, loops) = (path.to_vec(), loops.to_vec());
        Some(Access { inst, param, offset, path, mask, lanes, loops })
    }

    /// The condition that a loop runs its current trip.
    pub(super) fn runs(&mut self, inst: Inst) -> Cond {
        let data = &self.func.insts[inst];
        let Some(step) = self.step(data) else { return self.any_truth() };
        let index = self.induction(inst);
        let upper = self.int(data.operand(1), &Index::new());
        if step > 0 { self.terms.less(&index, &upper) } else { self.terms.less(&upper, &index) }
    }

    /// The step of a loop, if it is a constant other than zero.
    pub(super) fn step(&mut self, data: &InstData) -> Option<i128> {
        let step = self.int(data.operand(2), &Index::new());
        step.as_constant().filter(|step| *step != 0)
    }

    /// The index of a loop in its current trip.
    pub(super) fn induction(&mut self, inst: Inst) -> Linear {
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
    pub(super) fn trips(&mut self, inst: Inst, step: i128) -> Linear {
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

    fn int(&mut self, value: Value, index: &Index) -> Linear {
        match self.element(value, index) {
            Element::Int(term) => term,
            Element::Bool(cond) => {
                self.terms.choose(cond, &Linear::constant(1), &Linear::default())
            }
            _ => self.unknown_int(value, index),
        }
    }

    /// Whether the element of `value` at `index` is true.
    pub fn truth(&mut self, value: Value, index: &Index) -> Cond {
        match self.element(value, index) {
            Element::Bool(cond) => cond,
            _ => self.unknown_truth(value, index),
        }
    }

    fn unknown_int(&mut self, value: Value, index: &Index) -> Linear {
        let bits = self.func.ty(value).number().map_or(64, |number| number.bits());
        let range = if bits == 1 { Interval::new(0, 1) } else { Interval::signed(bits) };
        self.unknown_within(value, index, range)
    }

    fn unknown_within(&mut self, value: Value, index: &Index, range: Interval) -> Linear {
        let key = self.unknown_key(value, index);
        let unknown = self.keyed(key, range);
        self.unknowns.insert(unknown.clone(), value);
        unknown
    }

    fn keyed(&mut self, key: UnknownKey, range: Interval) -> Linear {
        if let Some(known) = self.unknown_memo.get(&key) {
            return known.clone();
        }
        let unknown = self.anything(range);
        self.unknown_memo.insert(key, unknown.clone());
        unknown
    }

    fn keyed_truth(&mut self, key: UnknownKey) -> Cond {
        let bit = self.keyed(key, Interval::new(0, 1));
        self.terms.at_most(&Linear::constant(1), &bit)
    }

    fn anything(&mut self, range: Interval) -> Linear {
        if self.free {
            let var = self.terms.var(range);
            self.terms.var_term(var)
        } else {
            self.terms.unknown(range)
        }
    }

    fn any_truth(&mut self) -> Cond {
        let bit = self.anything(Interval::new(0, 1));
        self.terms.at_most(&Linear::constant(1), &bit)
    }

    /// What two loads read from one place is the same.
    fn unknown_key(&mut self, value: Value, index: &Index) -> UnknownKey {
        let func = self.func;
        if let Some(load) = func.def(value).filter(|data| data.opcode == Opcode::Load)
            && let Element::Pointer(param, offset) = self.element(load.operand(0), index)
        {
            let bits = func.ty(value).number().map_or(64, |number| number.bits());
            return UnknownKey::Read(param, offset, bits);
        }
        UnknownKey::Value(value, index.clone())
    }

    fn unknown_truth(&mut self, value: Value, index: &Index) -> Cond {
        let bit = self.unknown_within(value, index, Interval::new(0, 1));
        self.terms.at_most(&Linear::constant(1), &bit)
    }

    fn unknown(&mut self, value: Value, index: &Index) -> Element {
        match self.func.ty(value).number() {
            Some(number) if number.bits() == 1 => Element::Bool(self.unknown_truth(value, index)),
            Some(number) if number.is_int() => Element::Int(self.unknown_int(value, index)),
            _ => Element::Unknown,
        }
    }

    /// The element of `value` at `index`.
    pub fn element(&mut self, value: Value, index: &Index) -> Element {
        let key = (value, index.clone());
        if let Some(known) = self.memo.get(&key) {
            return known.clone();
        }
        if self.depth >= MAX_DEPTH {
            return self.unknown(value, index);
        }
        self.depth += 1;
        let element = match self.func.values[value].def {
            ValueDef::Argument(region, at) => self.argument(value, region, at as usize, index),
            ValueDef::Result(inst, at) => self.result(value, inst, at as usize, index),
        };
        self.depth -= 1;
        self.memo.insert(key, element.clone());
        element
    }

    fn argument(&mut self, value: Value, region: Region, at: usize, index: &Index) -> Element {
        if region == self.func.body {
            return self.param(value, at, index);
        }
        let Some(&inst) = self.owner.get(&region) else { return self.unknown(value, index) };
        match self.func.insts[inst].opcode {
            Opcode::For if at == 0 => Element::Int(self.induction(inst)),
            Opcode::For => {
                let data = &self.func.insts[inst];
                let trip = match self.step(data) {
                    Some(step) => {
                        let most = self.trips(inst, step);
                        let most = self.terms.range(&most).hi.max(1);
                        self.variable_term(Variable::Trip(inst), Interval::new(0, most - 1))
                    }
                    None => return self.unknown(value, index),
                };
                self.carried(value, inst, at - 1, index, &trip)
            }
            _ => self.unknown(value, index),
        }
    }

    fn param(&mut self, value: Value, at: usize, index: &Index) -> Element {
        let ty = self.func.ty(value);
        if ty.elem().is_some_and(|elem| elem.is_ptr()) {
            return Element::Pointer(at, Linear::default());
        }
        let known = self.launch.and_then(|launch| launch.arg(&self.func.params[at].name));
        match (known, ty.number()) {
            (Some(KnownArg::Int(known)), Some(number)) if number.bits() == 1 => {
                Element::Bool(if *known == 0 { Terms::FALSE } else { Terms::TRUE })
            }
            (Some(KnownArg::Int(known)), Some(number)) if number.is_int() => {
                Element::Int(self.terms.wrap(number.bits(), &Linear::constant(*known)))
            }
            _ => self.unknown(value, index),
        }
    }

    /// The carried value `at` of a loop after `trips`, at `index`.
    fn carried(
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
        let Some(step) = self.carried_step(inst, at, index, &init) else {
            return self.unknown(value, index);
        };
        let moved = self.terms.binary(Operation::Mul, &step, trips);
        match init {
            Element::Int(start) => match start.plus(&moved) {
                Some(sum) => Element::Int(self.fit(value, &sum)),
                None => self.unknown(value, index),
            },
            Element::Pointer(param, start) => match start.plus(&moved) {
                Some(sum) => Element::Pointer(param, sum),
                None => Element::Unknown,
            },
            _ => Element::Unknown,
        }
    }

    /// What a loop adds to a carried value in each trip.
    fn carried_step(
        &mut self,
        inst: Inst,
        at: usize,
        index: &Index,
        init: &Element,
    ) -> Option<Linear> {
        let key = (inst, at, index.clone());
        if let Some(known) = self.steps.get(&key) {
            return known.clone();
        }
        // Whoever asks while this is worked out gets no answer.
        self.steps.insert(key.clone(), None);
        let step = self.find_step(inst, at, index, init);
        self.steps.insert(key, step.clone());
        step
    }

    fn find_step(
        &mut self,
        inst: Inst,
        at: usize,
        index: &Index,
        init: &Element,
    ) -> Option<Linear> {
        let region = self.func.insts[inst].regions[0];
        let next = self.func.terminator(region)?.operand_opt(at)?;
        let arg = *self.func.regions[region].args.get(at + 1)?;
        if next == arg {
            return Some(Linear::default());
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
        self.is_invariant(&step, &placeholder, inst).then_some(step)
    }

    /// True when a term has one value throughout a loop.
    fn is_invariant(&self, term: &Linear, placeholder: &Linear, inst: Inst) -> bool {
        let trip = self.variable(Variable::Trip(inst));
        let mut invariant = true;
        self.terms.visit(term, &mut |atom, kind| match kind {
            AtomKind::Var(_) | AtomKind::Unknown(_) => {
                invariant &= !matches!(kind, AtomKind::Var(var) if Some(*var) == trip);
                let atom = Linear::atom(atom);
                invariant &= atom != *placeholder;
                invariant &=
                    !self.unknowns.get(&atom).is_some_and(|value| self.inside(*value, inst));
            }
            AtomKind::Choose(cond, ..) => invariant &= !self.terms.has_unknown_cond(*cond),
            _ => {}
        });
        invariant
    }

    /// True when a value is defined inside `inst`.
    fn inside(&self, value: Value, inst: Inst) -> bool {
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

    fn result(&mut self, value: Value, inst: Inst, at: usize, index: &Index) -> Element {
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
            Opcode::If => self.branches(value, data, at, index),
            _ if data.results.len() == 1 => self.operation(value, data, index),
            _ => self.unknown(value, index),
        }
    }

    fn branches(&mut self, value: Value, data: &InstData, at: usize, index: &Index) -> Element {
        let func = self.func;
        let mut yields =
            data.regions.iter().map(|region| func.terminator(*region)?.operand_opt(at));
        let (Some(Some(first)), Some(Some(second))) = (yields.next(), yields.next()) else {
            return self.unknown(value, index);
        };
        let condition = self.truth(data.operand(0), &Index::new());
        self.select(value, condition, first, second, index)
    }

    fn select(
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
    fn fit(&mut self, value: Value, term: &Linear) -> Linear {
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
            self.wraps.insert((bits, term.clone()), value);
        }
        fitted
    }

    fn operation(&mut self, value: Value, data: &InstData, index: &Index) -> Element {
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
    fn bitcast(&mut self, value: Value, data: &InstData, index: &Index) -> Element {
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

    /// Where the element comes from, for operations that only move elements.
    pub(super) fn moved(&mut self, data: &InstData, index: &Index) -> Option<(Value, Index)> {
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
            (Opcode::Reshape, Attrs::Reshape(reshape)) if !reshape.reorder => {
                let from = self.func.ty(data.result()).shape().to_vec();
                self.reshaped(&from, shape, index)?
            }
            _ => return None,
        };
        (index.len() == shape.len()).then_some((source, index))
    }

    /// The position in a tile of shape `to` of what is at `index` in one of shape `from`.
    fn reshaped(&mut self, from: &[u32], to: &[u32], index: &Index) -> Option<Index> {
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

    fn integer(&mut self, value: Value, data: &InstData, index: &Index) -> Element {
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
                let negative = self.terms.range(&a).lo < 0 || self.terms.range(&b).lo < 0;
                (!unsigned || !negative).then(|| self.bitwise_or(op, &a, &b))
            }
        };
        match term {
            Some(term) => Element::Int(self.fit(value, &term)),
            None => self.unknown(value, index),
        }
    }

    /// `a op b`; a mask of low bits is a remainder.
    fn bitwise_or(&mut self, op: Operation, a: &Linear, b: &Linear) -> Linear {
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

    fn truth_operation(&mut self, value: Value, data: &InstData, index: &Index) -> Element {
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

    fn comparison(&mut self, data: &InstData, predicate: IntPredicate, index: &Index) -> Cond {
        use IntPredicate::{Eq, Ne, Sge, Sgt, Sle, Slt, Uge, Ugt, Ule, Ult};
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
        let negative = self.terms.range(&a).lo < 0 || self.terms.range(&b).lo < 0;
        if matches!(predicate, Ult | Ule | Ugt | Uge) && negative {
            return self.keyed_truth(UnknownKey::Compare(predicate, a, b));
        }
        match predicate {
            Eq => self.terms.equal(&a, &b),
            Ne => {
                let equal = self.terms.equal(&a, &b);
                self.terms.not(equal)
            }
            Slt | Ult => self.terms.less(&a, &b),
            Sle | Ule => self.terms.at_most(&a, &b),
            Sgt | Ugt => self.terms.less(&b, &a),
            Sge | Uge => self.terms.at_most(&b, &a),
        }
    }

    /// Name of the parameter at an index.
    pub fn param_name(&self, param: usize) -> Arc<str> {
        self.func.params[param].name.clone()
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
