//! Whether two stored elements are the same value, by what they are computed from.
//!
//! Each element gets a fingerprint: numbers that are known by their value, reads of memory by their
//! address, operations by the fingerprints of their operands, reductions and loops by the first and
//! the last of what they combine. Values with different fingerprints come from different memory or
//! different numbers; equal fingerprints are taken for equal values.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use smallvec::SmallVec;

use super::elements::{Access, Element, Elements, Index, Variable};
use super::terms::{Domain, Interval, Linear, Var, note_var};
use crate::ir::{Attrs, Function, Inst, InstData, Opcode, Region, Value, ValueDef};

/// Elements that may be looked at for one comparison.
const FUEL: u32 = 60_000;

/// Nesting beyond which nothing is said.
const MAX_DEPTH: u32 = 150;

type Position = SmallVec<[i128; 3]>;

/// Fingerprints of the elements of one program.
pub(super) struct Origins<'e, 'f> {
    func: &'f Function,
    elements: &'e mut Elements<'f>,
    point: FxHashMap<Var, i128>,
    memo: FxHashMap<(Value, Position), Option<u64>>,
    owner: FxHashMap<Region, Inst>,
    /// Loops whose trips are looked at.
    inside: Vec<Inst>,
    fuel: u32,
    depth: u32,
}

impl<'e, 'f> Origins<'e, 'f> {
    /// Whether two stores store the same value, each at its point; `None` when that is not known.
    pub(super) fn same(
        func: &'f Function,
        elements: &'e mut Elements<'f>,
        (first, at): (&Access, &[i128]),
        (second, other): (&Access, &[i128]),
    ) -> Option<bool> {
        let equal = Origins::equal(func, elements, (first, at), (second, other))?;
        // What is updated in place is updated twice.
        let twice = first.inst == second.inst
            && Origins::new(func, elements, at).updates(first, at) == Some(true);
        Some(equal && !twice)
    }

    /// As [`Origins::same`], where both are stored before any of them is read again.
    pub(super) fn equal(
        func: &'f Function,
        elements: &'e mut Elements<'f>,
        (first, at): (&Access, &[i128]),
        (second, other): (&Access, &[i128]),
    ) -> Option<bool> {
        let a = Origins::new(func, elements, at).stored(first, at)?;
        let b = Origins::new(func, elements, other).stored(second, other)?;
        Some(a == b)
    }

    /// Whether a store certainly stores what arithmetic makes of what is in its own element.
    pub(super) fn is_updated(
        func: &'f Function,
        elements: &'e mut Elements<'f>,
        (store, at): (&Access, &[i128]),
    ) -> bool {
        Origins::new(func, elements, at).updates(store, at) == Some(true)
    }

    /// Whether a store stores what arithmetic makes of what is in its own element; choices and
    /// extremes may leave it as it is when they are done twice.
    fn updates(&mut self, store: &Access, point: &[i128]) -> Option<bool> {
        let func = self.func;
        let data = &func.insts[store.inst];
        let lane = Position::from_slice(&store.lane(point));
        let own = self.print(data.operand(0), &lane)?;
        let mut open = vec![(data.operand(1), false)];
        let mut seen = FxHashSet::default();
        while let Some((value, changed)) = open.pop() {
            if !seen.insert((value, changed)) {
                continue;
            }
            use Opcode::{
                Add, Exp, Exp2, FAdd, FDiv, FExt, FMul, FSub, FTrunc, Fma, Load, Mul, Sub,
            };
            use Opcode::{FAbs, FMax, FMin, FNeg, Select};
            let Some(data) = func.def(value) else { continue };
            match data.opcode {
                Load if changed && self.print(data.operand(0), &lane) == Some(own) => {
                    let mask = data.operand_opt(1);
                    if mask.is_none_or(|mask| self.truth(mask, &lane) == Some(true)) {
                        return Some(true);
                    }
                }
                Add | Sub | Mul | FAdd | FSub | FMul | FDiv | Fma | Exp | Exp2 => {
                    open.extend(data.uses().map(|operand| (operand, true)));
                }
                FExt | FTrunc => open.push((data.operand(0), changed)),
                // What is chosen is changed after that.
                FAbs | FMax | FMin | FNeg | Select if changed => {
                    open.extend(data.uses().map(|operand| (operand, true)));
                }
                _ => {}
            }
        }
        Some(false)
    }

    /// Whether a store stores something else than what a load of the same element reads, each at
    /// its point; `None` when that is not known.
    pub(super) fn stores_anew(
        func: &'f Function,
        elements: &'e mut Elements<'f>,
        (load, at): (&Access, &[i128]),
        (store, other): (&Access, &[i128]),
    ) -> Option<bool> {
        let pointer = func.insts[load.inst].operand(0);
        let lane = Position::from_slice(&load.lane(at));
        let address = Origins::new(func, elements, at).print(pointer, &lane)?;
        let stored = Origins::new(func, elements, other).stored(store, other)?;
        Some(stored != hash(("load", address)))
    }

    fn new(func: &'f Function, elements: &'e mut Elements<'f>, point: &[i128]) -> Self {
        let vars = point.iter().enumerate().map(|(var, value)| (Var(var as u32), *value));
        let mut owner = FxHashMap::default();
        for inst in func.walk() {
            owner.extend(func.insts[inst].regions.iter().map(|region| (*region, inst)));
        }
        Origins {
            func,
            point: vars.collect(),
            elements,
            memo: FxHashMap::default(),
            owner,
            inside: Vec::new(),
            fuel: FUEL,
            depth: 0,
        }
    }

    fn stored(&mut self, access: &Access, point: &[i128]) -> Option<u64> {
        let value = self.func.insts[access.inst].operand(1);
        let lane = access.lane(point);
        self.print(value, &Position::from_slice(&lane))
    }

    /// A value for every variable: what the program fixes, and the least where it fixes nothing.
    /// Random numbers among `used` that it does not fix are what their places say.
    fn whole_point(&self, used: &FxHashSet<Var>) -> Vec<i128> {
        let ranges = self.elements.terms.var_ranges().iter().enumerate();
        let fixed = |(var, range): (usize, &Interval)| {
            self.point.get(&Var(var as u32)).copied().unwrap_or(range.lo)
        };
        let mut point: Vec<i128> = ranges.map(fixed).collect();
        let open = |var: &Var| !self.point.contains_key(var);
        self.elements.place_random(&mut point, |var| used.contains(var) && open(var));
        point
    }

    /// The value of a term in this program.
    fn value(&mut self, term: &Linear) -> Option<i128> {
        let mut used = FxHashSet::default();
        self.elements.terms.visit(term, &mut |_, kind| note_var(kind, &mut used));
        let point = self.whole_point(&used);
        Domain::at(&self.elements.terms, &point).value(term)
    }

    fn truth(&mut self, value: Value, at: &Position) -> Option<bool> {
        let Element::Bool(cond) = self.elements.element(value, &index(at)) else { return None };
        let mut used = FxHashSet::default();
        self.elements.terms.visit_cond(cond, &mut |_, kind| note_var(kind, &mut used));
        let point = self.whole_point(&used);
        Domain::at(&self.elements.terms, &point).truth(cond)
    }

    /// The fingerprint of one element; `None` when nothing can be said.
    fn print(&mut self, value: Value, at: &Position) -> Option<u64> {
        let key = (value, at.clone());
        if let Some(known) = self.memo.get(&key) {
            return *known;
        }
        if self.fuel == 0 || self.depth >= MAX_DEPTH {
            return None;
        }
        self.fuel -= 1;
        self.depth += 1;
        let found = self.number(value, at).or_else(|| self.computed(value, at));
        self.depth -= 1;
        self.memo.insert(key, found);
        found
    }

    /// The fingerprint of a number that is known.
    fn number(&mut self, value: Value, at: &Position) -> Option<u64> {
        match self.elements.element(value, &index(at)) {
            Element::Int(term) => self.value(&term).map(|value| hash(("number", value))),
            Element::Bool(_) => {
                self.truth(value, at).map(|truth| hash(("number", i128::from(truth))))
            }
            Element::Pointer(param, term) => {
                self.value(&term).map(|offset| hash(("address", param, offset)))
            }
            Element::Unknown => None,
        }
    }

    fn computed(&mut self, value: Value, at: &Position) -> Option<u64> {
        let func = self.func;
        match func.values[value].def {
            ValueDef::Argument(region, index) if region == func.body => {
                Some(hash(("param", index)))
            }
            ValueDef::Argument(region, argument) => {
                let inst = *self.owner.get(&region)?;
                let data = &func.insts[inst];
                if data.opcode != Opcode::For {
                    return None;
                }
                let Some(carried) = (argument as usize).checked_sub(1) else {
                    let start = self.print(data.operand(0), &Position::new())?;
                    return Some(hash(("index", inst.as_u32(), self.trip(inst), start)));
                };
                self.carried(inst, carried, at)
            }
            ValueDef::Result(inst, result) => self.result(inst, result as usize, at),
        }
    }

    fn result(&mut self, inst: Inst, result: usize, at: &Position) -> Option<u64> {
        let func = self.func;
        let data = &func.insts[inst];
        match (data.opcode, &data.attrs) {
            (Opcode::Constant, Attrs::Constant(constant)) => Some(hash(("bits", constant.bits))),
            (Opcode::Load, _) => self.load(data, at),
            (Opcode::Select, _) => match self.truth(data.operand(0), at) {
                Some(chosen) => self.print(data.operand(if chosen { 1 } else { 2 }), at),
                None => self.elementwise(inst, data, at),
            },
            (Opcode::If, _) => {
                let branch = |origins: &mut Self, index: usize| {
                    let end = func.terminator(data.regions[index])?;
                    origins.print(end.operand_opt(result)?, at)
                };
                match self.truth(data.operand(0), &Position::new()) {
                    Some(chosen) => branch(self, usize::from(!chosen)),
                    None => {
                        let condition = self.print(data.operand(0), &Position::new())?;
                        let (a, b) = (branch(self, 0)?, branch(self, 1)?);
                        Some(hash(("either", condition, a, b)))
                    }
                }
            }
            (Opcode::For, _) => self.looped(inst, data, result, at),
            (Opcode::Reduce | Opcode::Scan, attrs) => {
                let axis = match attrs {
                    Attrs::Axis(axis) => axis.axis,
                    Attrs::Scan(scan) => scan.axis,
                    _ => return None,
                };
                self.across(inst, data, axis as usize, at)
            }
            (Opcode::Dot, _) => self.dot(inst, data, at),
            (Opcode::Histogram, _) => self.counted(inst, data, at),
            (Opcode::Join, _) => {
                let (side, inner) = at.split_last()?;
                self.print(data.operand(usize::from(*side != 0)), &Position::from_slice(inner))
            }
            _ => match self.elements.moved(data, &index(at)) {
                Some((source, moved)) => {
                    let moved = moved.iter().map(|term| self.value(term));
                    let moved = moved.collect::<Option<Position>>()?;
                    self.print(source, &moved)
                }
                None => self.elementwise(inst, data, at),
            },
        }
    }

    fn load(&mut self, data: &InstData, at: &Position) -> Option<u64> {
        if let Some(mask) = data.operand_opt(1)
            && self.truth(mask, at) == Some(false)
        {
            return match data.operand_opt(2) {
                Some(other) => self.print(other, at),
                None => Some(hash("nothing")),
            };
        }
        let address = self.print(data.operand(0), at)?;
        Some(hash(("load", address)))
    }

    fn elementwise(&mut self, inst: Inst, data: &InstData, at: &Position) -> Option<u64> {
        let func = self.func;
        let shape = func.ty(data.result()).shape();
        if !data.opcode.is_pure() || !data.regions.is_empty() {
            return None;
        }
        let mut parts = Vec::new();
        for operand in data.uses() {
            if func.ty(operand).shape() != shape {
                return None;
            }
            parts.push(self.print(operand, at)?);
        }
        Some(hash(("operation", data.opcode as u32, attrs_key(inst, data), parts)))
    }

    /// A reduction or scan: the ends of what is along the axis.
    fn across(&mut self, inst: Inst, data: &InstData, axis: usize, at: &Position) -> Option<u64> {
        let mut parts = Vec::new();
        for input in data.uses() {
            let extent = *self.func.ty(input).shape().get(axis)?;
            let mut inner = at.clone();
            if data.opcode == Opcode::Scan {
                parts.push(hash(*inner.get(axis)?));
            } else {
                inner.insert(axis, 0);
            }
            for position in ends(i128::from(extent)) {
                inner[axis] = position;
                parts.push(self.print(input, &inner)?);
            }
        }
        Some(hash(("across", inst.as_u32(), parts)))
    }

    /// A bin: the ends of what is counted.
    fn counted(&mut self, inst: Inst, data: &InstData, at: &Position) -> Option<u64> {
        let mut parts = Vec::new();
        for input in data.uses() {
            let extent = *self.func.ty(input).shape().first()?;
            for position in ends(i128::from(extent)) {
                parts.push(self.print(input, &Position::from_slice(&[position]))?);
            }
        }
        Some(hash(("counted", inst.as_u32(), at, parts)))
    }

    fn dot(&mut self, inst: Inst, data: &InstData, at: &Position) -> Option<u64> {
        let (lhs, rhs, acc) = (data.operand(0), data.operand(1), data.operand(2));
        let rank = at.len();
        if rank < 2 {
            return None;
        }
        let extent = *self.func.ty(lhs).shape().last()?;
        let mut parts = vec![self.print(acc, at)?];
        let (mut left, mut right) = (at.clone(), at.clone());
        for k in ends(i128::from(extent)) {
            left[rank - 1] = k;
            right[rank - 2] = k;
            parts.push(self.print(lhs, &left)?);
            parts.push(self.print(rhs, &right)?);
        }
        Some(hash(("dot", inst.as_u32(), parts)))
    }

    /// The trip of a loop that the program is in.
    fn trip(&self, inst: Inst) -> i128 {
        let var = self.elements.variable(Variable::Trip(inst));
        var.and_then(|var| self.point.get(&var).copied()).unwrap_or(0)
    }

    /// A value that a loop carries, in the trip that the program is in: what it starts with, and what
    /// it was given in the first trip and the last one before. Within these it is the same where it
    /// starts the same.
    fn carried(&mut self, inst: Inst, carried: usize, at: &Position) -> Option<u64> {
        let data = &self.func.insts[inst];
        let start = self.print(data.operand_opt(3 + carried)?, at)?;
        let trip = self.trip(inst);
        let mut parts = vec![start];
        if trip > 0 && !self.inside.contains(&inst) {
            let yielded = self.func.terminator(data.regions[0])?.operand_opt(carried)?;
            parts.extend(self.in_trips(inst, yielded, trip, at)?);
        }
        Some(hash(("carried", inst.as_u32(), carried, parts)))
    }

    fn looped(&mut self, inst: Inst, data: &InstData, result: usize, at: &Position) -> Option<u64> {
        let step = self.elements.step(data)?;
        let trips = self.elements.trips(inst, step);
        let yielded = self.func.terminator(data.regions[0])?.operand_opt(result)?;
        let mut parts = vec![self.print(data.operand_opt(3 + result)?, at)?];
        // The index must have its variable before it is given values.
        self.elements.induction(inst);
        let trips = match self.value(&trips) {
            Some(trips) => trips,
            // Bounds that are read from memory are told apart by where they are.
            None => {
                for bound in [0, 1] {
                    parts.push(self.print(data.operand(bound), &Position::new())?);
                }
                1
            }
        };
        parts.extend(self.in_trips(inst, yielded, trips, at)?);
        Some(hash(("loop", inst.as_u32(), parts)))
    }

    /// What a loop yields in the first and the last of so many trips.
    fn in_trips(
        &mut self,
        inst: Inst,
        yielded: Value,
        trips: i128,
        at: &Position,
    ) -> Option<Vec<u64>> {
        let var = self.elements.variable(Variable::Trip(inst));
        let around = var.and_then(|var| self.point.get(&var).copied());
        self.inside.push(inst);
        let mut parts = Some(Vec::new());
        for trip in ends(trips) {
            if let Some(var) = var {
                self.point.insert(var, trip);
            }
            self.memo.clear();
            let found = self.print(yielded, at);
            parts = parts.and_then(|mut parts: Vec<u64>| {
                parts.push(found?);
                Some(parts)
            });
        }
        self.inside.pop();
        self.memo.clear();
        if let (Some(var), Some(around)) = (var, around) {
            self.point.insert(var, around);
        }
        parts
    }
}

/// The first and the last of so many. What is combined from there differs when these differ.
fn ends(count: i128) -> impl Iterator<Item = i128> {
    let last = (count > 1).then_some(count - 1);
    (count > 0).then_some(0).into_iter().chain(last)
}

fn index(at: &Position) -> Index {
    at.iter().map(|position| Linear::constant(*position)).collect()
}

/// Tells operations of one opcode apart that differ in attributes.
fn attrs_key(inst: Inst, data: &InstData) -> u64 {
    match data.attrs {
        Attrs::None => 0,
        _ => hash(("attrs", inst.as_u32())),
    }
}

fn hash(of: impl Hash) -> u64 {
    let mut hasher = FxHasher::default();
    of.hash(&mut hasher);
    hasher.finish()
}
