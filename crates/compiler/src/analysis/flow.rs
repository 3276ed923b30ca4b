//! Where lanes of a load get to: the condition under which an element of a value depends on them,
//! followed through the kernel to what is seen.
//!
//! What combines lanes depends on all of them, a choice only on what it chooses.

use cranelift_entity::EntitySet;
use rustc_hash::FxHashMap;

use self::counted::Counted;
use super::elements::{Elements, Index};
use super::solve::Outcome;
use super::terms::{Cond, Interval, Linear, Terms};
use crate::ir::{Attrs, Function, Inst, InstData, Opcode, Region, Value, ValueDef};

pub(super) mod counted;
pub(super) mod gives;
pub(super) mod held;

/// Boxes that may be looked at for one question.
pub(super) const FUEL: u32 = 200;

/// Values followed into each other.
const MAX_DEPTH: u32 = 150;

/// Elements that are followed from one load. Each exchange of a sorting network asks for twice as
/// many as the one before; where lanes go further than this, nothing is said of them.
const MAX_ELEMENTS: usize = 4_000;

/// What may be looked at for one kernel: nothing is said of what is left after that.
pub(super) struct Fuel {
    /// Boxes, in searches for a point.
    boxes: u32,
    /// Elements that are followed, of all loads together. Where blocks are written out by the
    /// hundred, each of as many loads gets to thousands of values.
    elements: u32,
}

impl Fuel {
    /// For questions that look at as many boxes, and as many elements as a kernel may ask for.
    pub(super) fn new(boxes: u32) -> Fuel {
        Fuel { boxes, elements: 20_000 }
    }
}

/// The mask of a memory operation.
pub(super) fn mask_of(data: &InstData) -> Option<Value> {
    match data.opcode {
        Opcode::Load => data.operand_opt(1),
        Opcode::Store | Opcode::AtomicRmw => data.operand_opt(2),
        _ => None,
    }
}

/// An instruction, and what must hold for it to run.
pub(super) struct Reached {
    pub(super) inst: Inst,
    pub(super) path: Vec<Cond>,
}

/// Every instruction of `func`, in program order.
pub(super) fn reached(func: &Function, elements: &mut Elements<'_>) -> Vec<Reached> {
    let mut all = Vec::new();
    visit(func, elements, func.body, &mut Vec::new(), &mut all);
    all
}

fn visit(
    func: &Function,
    elements: &mut Elements<'_>,
    region: Region,
    path: &mut Vec<Cond>,
    all: &mut Vec<Reached>,
) {
    for &inst in &func.regions[region].insts {
        let data = &func.insts[inst];
        all.push(Reached { inst, path: path.clone() });
        let conds = match data.opcode {
            Opcode::If => {
                let condition = elements.truth(data.operand(0), &Index::new());
                vec![condition, elements.terms.not(condition)]
            }
            Opcode::For => vec![elements.runs(inst)],
            Opcode::While => vec![Terms::TRUE, Terms::TRUE],
            _ => continue,
        };
        for (&inner, cond) in data.regions.iter().zip(conds) {
            path.push(cond);
            visit(func, elements, inner, path, all);
            path.pop();
        }
    }
}

/// Lanes of a load that are followed.
pub(super) enum Followed {
    /// Those that its mask leaves undefined.
    Masked,
    /// A single one.
    At(Position),
    /// Those that masks leave out, in what a reduction, which takes the load's place, makes of them.
    Counted,
}

/// One lane of a load, in one trip of each loop around it.
pub(super) struct Position {
    /// The position in the tile.
    pub(super) lane: Vec<i128>,
    /// Conditions on the program and on the trips of loops.
    pub(super) conds: Vec<Cond>,
}

/// Where lanes of one load get to.
pub(super) struct Flow<'e, 'f> {
    func: &'f Function,
    elements: &'e mut Elements<'f>,
    load: Inst,
    followed: Followed,
    /// Values that may depend on the load: no others are looked at.
    dependents: EntitySet<Value>,
    memo: FxHashMap<(Value, Index), Cond>,
    /// Lanes that are counted though a mask leaves them out.
    pub(super) left_out: Vec<Counted>,
    /// A load, and the number that lanes get which its mask leaves out, where the kernel says none.
    pub(super) filled: Option<(Inst, f64)>,
    depth: u32,
    fuel: &'e mut Fuel,
}

impl<'e, 'f> Flow<'e, 'f> {
    /// Of lanes of `load`.
    pub(super) fn new(
        func: &'f Function,
        elements: &'e mut Elements<'f>,
        (load, followed): (Inst, Followed),
        fuel: &'e mut Fuel,
    ) -> Self {
        let memo = FxHashMap::default();
        Flow {
            func,
            elements,
            load,
            followed,
            dependents: dependents(func, load),
            memo,
            left_out: Vec::new(),
            filled: None,
            depth: 0,
            fuel,
        }
    }

    /// True when a followed lane is certainly seen by an instruction, for some launch.
    pub(super) fn is_seen(&mut self, reached: &Reached) -> bool {
        self.witness(reached).is_some()
    }

    /// A point at which an operation's address certainly depends on a followed lane that its mask,
    /// which does not, lets through.
    pub(super) fn address_witness(&mut self, reached: &Reached) -> Option<Vec<i128>> {
        let data = &self.func.insts[reached.inst];
        let (address, mask) = (data.operand_opt(0)?, mask_of(data));
        let open = mask.is_some_and(|mask| self.dependents.contains(mask));
        self.seen_in(reached, address, mask).filter(|_| !open)
    }

    /// A point at which a followed lane is certainly seen by an instruction.
    pub(super) fn witness(&mut self, reached: &Reached) -> Option<Vec<i128>> {
        let data = &self.func.insts[reached.inst];
        let (watched, mask): (Vec<Value>, Option<Value>) = match data.opcode {
            Opcode::Load => (data.operand_opt(0).into_iter().collect(), data.operand_opt(1)),
            Opcode::Store | Opcode::AtomicRmw => {
                (vec![data.operand(0), data.operand(1)], data.operand_opt(2))
            }
            Opcode::AtomicCas | Opcode::If | Opcode::Condition => {
                (data.uses().take(3).collect(), None)
            }
            Opcode::For => (data.uses().take(3).collect(), None),
            _ => return None,
        };
        watched.into_iter().chain(mask).find_map(|value| self.seen_in(reached, value, mask))
    }

    /// A point at which a followed lane is certainly in a `value` of an instruction that has `mask`.
    fn seen_in(
        &mut self,
        reached: &Reached,
        value: Value,
        mask: Option<Value>,
    ) -> Option<Vec<i128>> {
        let index = self.lanes(value);
        let undefined = self.undefined(value, &index);
        if undefined == Terms::FALSE {
            return None;
        }
        let mut conds = reached.path.clone();
        // A mask that is undefined itself may let anything through.
        if let Some(mask) = mask.filter(|mask| *mask != value) {
            let index = self.lanes(mask);
            conds.push(self.elements.truth(mask, &index));
        }
        conds.push(undefined);
        self.somewhere(&conds).filter(|_| !self.elements.gave_up())
    }

    /// A point at which conditions hold together. Where a launch may be any, small ones are
    /// enough to look at: a mask that is wrong is wrong for them, and they keep what is not linear
    /// within reach.
    fn somewhere(&mut self, conds: &[Cond]) -> Option<Vec<i128>> {
        let ranges = match self.followed {
            Followed::Masked | Followed::Counted => self.elements.small_ranges(),
            Followed::At(_) => self.elements.terms.var_ranges().to_vec(),
        };
        let mut share = FUEL.min(self.fuel.boxes);
        let before = share;
        let found = self.elements.search_within(ranges, conds, &mut share);
        self.fuel.boxes -= before - share;
        match found {
            Outcome::Found(point) => Some(point),
            _ => None,
        }
    }

    fn lanes(&mut self, value: Value) -> Index {
        self.elements.lanes(self.func.ty(value).shape()).0
    }

    fn either(&mut self, conds: impl IntoIterator<Item = Cond>) -> Cond {
        conds.into_iter().fold(Terms::FALSE, |any, cond| self.elements.terms.or(any, cond))
    }

    /// When the element of `value` at `index` is undefined.
    fn undefined(&mut self, value: Value, index: &Index) -> Cond {
        if !self.dependents.contains(value) {
            return Terms::FALSE;
        }
        let key = (value, index.clone());
        if let Some(known) = self.memo.get(&key) {
            return *known;
        }
        let is_enough = self.memo.len() >= MAX_ELEMENTS || self.fuel.elements == 0;
        if self.depth >= MAX_DEPTH || is_enough {
            return Terms::FALSE;
        }
        self.fuel.elements -= 1;
        // What a loop carries is not asked for while it is worked out.
        self.memo.insert(key.clone(), Terms::FALSE);
        self.depth += 1;
        let cond = match self.func.values[value].def {
            ValueDef::Argument(..) => self.carried(value, index),
            ValueDef::Result(inst, at) => self.result(value, inst, at as usize, index),
        };
        self.depth -= 1;
        self.memo.insert(key, cond);
        cond
    }

    fn result(&mut self, value: Value, inst: Inst, at: usize, index: &Index) -> Cond {
        let func = self.func;
        let data = &func.insts[inst];
        match data.opcode {
            Opcode::Load => self.loaded(inst, data, index),
            Opcode::Select => {
                let (condition, a, b) = (data.operand(0), data.operand(1), data.operand(2));
                let chosen = self.elements.truth(condition, index);
                self.choice(condition, chosen, (a, b), index)
            }
            Opcode::If => {
                let condition = data.operand(0);
                let chosen = self.elements.truth(condition, &Index::new());
                let mut yields = data
                    .regions
                    .iter()
                    .filter_map(|region| func.terminator(*region)?.operand_opt(at));
                let (Some(a), Some(b)) = (yields.next(), yields.next()) else {
                    return Terms::FALSE;
                };
                self.choice(condition, chosen, (a, b), index)
            }
            Opcode::For => {
                let start = data.operand_opt(3 + at).map(|init| self.undefined(init, index));
                let yielded = func.terminator(data.regions[0]).and_then(|end| end.operand_opt(at));
                let runs = self.elements.runs(inst);
                let later = yielded.map(|value| self.undefined(value, index));
                let later = later.map(|later| self.elements.terms.and(runs, later));
                self.either([start, later].into_iter().flatten())
            }
            Opcode::Reduce if inst == self.load => self.counted(inst, index),
            Opcode::Reduce | Opcode::Scan => self.across(data, index),
            Opcode::Histogram => self.histogram(data),
            Opcode::Sort => self.sorted(data, index),
            // The two halves along the last axis.
            Opcode::Split => {
                let mut inner = index.clone();
                inner.push(Linear::constant(at as i128));
                self.undefined(data.operand(0), &inner)
            }
            Opcode::Join => self.joined(data, index),
            Opcode::Dot => self.dot(data, index),
            Opcode::And if is_truth(func, value) => {
                let (a, b) = (data.operand(0), data.operand(1));
                let (not_a, not_b) = (self.undefined(a, index), self.undefined(b, index));
                let (a, b) = (self.elements.truth(a, index), self.elements.truth(b, index));
                // False on one side is false, whatever the other side is.
                let (open_a, open_b) =
                    (self.elements.terms.or(a, not_a), self.elements.terms.or(b, not_b));
                let (left, right) = (
                    self.elements.terms.and(not_a, open_b),
                    self.elements.terms.and(not_b, open_a),
                );
                self.elements.terms.or(left, right)
            }
            _ => match self.elements.moved(data, index) {
                Some((source, moved)) => self.undefined(source, &moved),
                None => self.elementwise(value, data, index),
            },
        }
    }

    /// When what a loop carries is undefined: in its first trip, where it starts so.
    fn carried(&mut self, value: Value, index: &Index) -> Cond {
        let Some((inst, start)) = self.elements.carried_from(value) else { return Terms::FALSE };
        let undefined = self.undefined(start, index);
        let Some(first) = self.elements.first_trip(inst).filter(|_| undefined != Terms::FALSE)
        else {
            return Terms::FALSE;
        };
        self.elements.terms.and(first, undefined)
    }

    fn loaded(&mut self, inst: Inst, data: &InstData, index: &Index) -> Cond {
        let mask = match data.operand_opt(1) {
            Some(mask) => self.elements.truth(mask, index),
            None => Terms::TRUE,
        };
        let masked = self.elements.terms.not(mask);
        match &self.followed {
            Followed::Masked if inst == self.load => return masked,
            Followed::At(position) if inst == self.load => {
                let terms = &mut self.elements.terms;
                let mut all = position.conds.iter().fold(mask, |all, cond| terms.and(all, *cond));
                for (at, lane) in index.iter().zip(&position.lane) {
                    let here = terms.equal(at, &Linear::constant(*lane));
                    all = terms.and(all, here);
                }
                return all;
            }
            _ => {}
        }
        let other = data.operand_opt(2).map(|other| self.undefined(other, index));
        self.elements.terms.and(masked, other.unwrap_or(Terms::FALSE))
    }

    fn choice(
        &mut self,
        condition: Value,
        chosen: Cond,
        of: (Value, Value),
        index: &Index,
    ) -> Cond {
        let (a, b) = (self.undefined(of.0, index), self.undefined(of.1, index));
        let at = if self.func.ty(condition).shape().len() == index.len() {
            index
        } else {
            &Index::new()
        };
        let undecided = self.undefined(condition, at);
        let otherwise = self.elements.terms.not(chosen);
        let (a, b) = (self.elements.terms.and(chosen, a), self.elements.terms.and(otherwise, b));
        self.either([a, b, undecided])
    }

    fn elementwise(&mut self, value: Value, data: &InstData, index: &Index) -> Cond {
        let shape = self.func.ty(value).shape();
        let acts_alone = data.opcode.is_pure() || data.opcode == Opcode::InlineAsm;
        if !acts_alone || !data.regions.is_empty() {
            return Terms::FALSE;
        }
        let same = data.uses().all(|operand| self.func.ty(operand).shape() == shape);
        // These move lanes to where is not known.
        let moves = matches!(
            data.opcode,
            Opcode::Cat | Opcode::Gather | Opcode::Reshape | Opcode::DotScaled
        );
        if !same || moves {
            return Terms::FALSE;
        }
        let operands: Vec<Value> = data.uses().collect();
        let parts: Vec<Cond> =
            operands.into_iter().map(|operand| self.undefined(operand, index)).collect();
        self.either(parts)
    }

    /// Any position along an axis of this extent.
    fn anywhere(&mut self, extent: u32) -> Linear {
        let var = self.elements.terms.var(Interval::new(0, i128::from(extent) - 1));
        self.elements.terms.var_term(var)
    }

    fn across(&mut self, data: &InstData, index: &Index) -> Cond {
        let (axis, scan) = match &data.attrs {
            Attrs::Axis(axis) => (axis.axis as usize, None),
            Attrs::Scan(scan) => (scan.axis as usize, Some(scan.reverse)),
            _ => return Terms::FALSE,
        };
        let Some(first) = data.operand_opt(0) else { return Terms::FALSE };
        let Some(&extent) = self.func.ty(first).shape().get(axis) else { return Terms::FALSE };
        let position = self.anywhere(extent);
        let mut inner = index.clone();
        let mut covered = Terms::TRUE;
        match scan {
            None if axis <= inner.len() => inner.insert(axis, position),
            Some(reverse) if axis < inner.len() => {
                covered = match reverse {
                    false => self.elements.terms.at_most(&position, &inner[axis]),
                    true => self.elements.terms.at_most(&inner[axis], &position),
                };
                inner[axis] = position;
            }
            _ => return Terms::FALSE,
        }
        let inputs: Vec<Value> = data.uses().collect();
        let parts: Vec<Cond> =
            inputs.into_iter().map(|input| self.undefined(input, &inner)).collect();
        let any = self.either(parts);
        self.elements.terms.and(covered, any)
    }

    /// What sorts along the last axis may bring any lane of it anywhere.
    fn sorted(&mut self, data: &InstData, index: &Index) -> Cond {
        let Some(&extent) = self.func.ty(data.operand(0)).shape().last() else {
            return Terms::FALSE;
        };
        let mut inner = index.clone();
        let Some(last) = inner.last_mut() else { return Terms::FALSE };
        *last = self.anywhere(extent);
        self.undefined(data.operand(0), &inner)
    }

    /// One of two values along a new last axis.
    fn joined(&mut self, data: &InstData, index: &Index) -> Cond {
        let Some((side, inner)) = index.split_last() else { return Terms::FALSE };
        let inner = Index::from(inner);
        let first = self.elements.terms.at_most(side, &Linear::default());
        let second = self.elements.terms.not(first);
        let parts = [(first, data.operand(0)), (second, data.operand(1))].map(|(here, value)| {
            let undefined = self.undefined(value, &inner);
            self.elements.terms.and(here, undefined)
        });
        self.either(parts)
    }

    fn histogram(&mut self, data: &InstData) -> Cond {
        let value = data.operand(0);
        let shape = self.func.ty(value).shape().to_vec();
        let inner: Index = shape.iter().map(|extent| self.anywhere(*extent)).collect();
        let counted = data.operand_opt(1).map(|mask| self.elements.truth(mask, &inner));
        let undefined = self.undefined(value, &inner);
        self.elements.terms.and(counted.unwrap_or(Terms::TRUE), undefined)
    }

    fn dot(&mut self, data: &InstData, index: &Index) -> Cond {
        let (lhs, rhs, acc) = (data.operand(0), data.operand(1), data.operand(2));
        let (Some(&extent), rank) = (self.func.ty(lhs).shape().last(), index.len()) else {
            return Terms::FALSE;
        };
        if rank < 2 {
            return Terms::FALSE;
        }
        let k = self.anywhere(extent);
        let (mut left, mut right) = (index.clone(), index.clone());
        left[rank - 1] = k.clone();
        right[rank - 2] = k;
        let (mut of_left, mut of_right) = (self.undefined(lhs, &left), self.undefined(rhs, &right));
        // Any integer times zero is zero, though not any float.
        if self.func.ty(lhs).elem().is_some_and(|elem| elem.is_int()) {
            let (zero_left, zero_right) = (self.zero(lhs, &left), self.zero(rhs, &right));
            let (not_left, not_right) =
                (self.elements.terms.not(zero_left), self.elements.terms.not(zero_right));
            of_left = self.elements.terms.and(of_left, not_right);
            of_right = self.elements.terms.and(of_right, not_left);
        }
        let of_sum = self.undefined(acc, index);
        self.either([of_left, of_right, of_sum])
    }

    /// When an integer is zero for being masked off, as far as that is seen.
    fn zero(&mut self, value: Value, index: &Index) -> Cond {
        let func = self.func;
        let Some(data) = func.def(value) else { return Terms::FALSE };
        match data.opcode {
            Opcode::Load => {
                let is_filled = data.operand_opt(2).is_some_and(|other| is_zero(func, other));
                match data.operand_opt(1).filter(|_| is_filled) {
                    Some(mask) => {
                        let mask = self.elements.truth(mask, index);
                        self.elements.terms.not(mask)
                    }
                    None => Terms::FALSE,
                }
            }
            Opcode::ExtS | Opcode::ExtU | Opcode::Trunc => self.zero(data.operand(0), index),
            _ => match self.elements.moved(data, index) {
                Some((source, moved)) => self.zero(source, &moved),
                None => Terms::FALSE,
            },
        }
    }
}

/// Values that may depend on what `source` gives, by way of registers: also what regions yield where
/// a condition depends on it, and what loops carry from one trip to the next.
pub(super) fn dependents(func: &Function, source: Inst) -> EntitySet<Value> {
    let mut found = EntitySet::with_capacity(func.values.len());
    found.extend(func.insts[source].results.iter().copied());
    let insts = func.walk();
    loop {
        let mut grows = false;
        for &inst in &insts {
            let data = &func.insts[inst];
            let ends = data.regions.iter().filter_map(|region| func.terminator(*region));
            let mut used = data.uses().chain(ends.flat_map(InstData::uses));
            if !used.any(|value| found.contains(value)) {
                continue;
            }
            let args = data.regions.iter().flat_map(|region| &func.regions[*region].args);
            for &value in data.results.iter().chain(args) {
                grows |= found.insert(value);
            }
        }
        if !grows {
            return found;
        }
    }
}

/// Whether all elements of a value are the integer zero, which conversions leave as it is.
fn is_zero(func: &Function, value: Value) -> bool {
    let is_passed = |opcode| {
        matches!(
            opcode,
            Opcode::ExtS | Opcode::ExtU | Opcode::Trunc | Opcode::Splat | Opcode::Broadcast
        )
    };
    match func.def(value).filter(|made| is_passed(made.opcode)) {
        Some(made) => is_zero(func, made.operand(0)),
        None => func.constant_bits(value) == Some(0),
    }
}

fn is_truth(func: &Function, value: Value) -> bool {
    func.ty(value).number().is_some_and(|number| number.bits() == 1)
}
