//! Integers, addresses and masks of tile IR, one element at a time, as [`terms`](super::terms).
//!
//! Variables are the program's position in the grid, the lane of the access, and the trip of each
//! loop around it. What a loop adds in every trip is a multiple of the trip, and what it works out anew
//! is that of the trip before. A `while` of a known launch is followed in its first trip, so that what
//! happens there is an example, and what does not happen there may happen later. Everything that comes
//! from memory or floats is unknown within the range of its type.

use std::cell::{Cell, OnceCell};
use std::sync::Arc;

use contents::RandomRead;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use self::extremes::{Extreme, extremes};
use super::solve::{Outcome, Pause, search};
use super::terms::{Atom, AtomKind, Cond, Interval, Linear, Terms, Var};
use crate::ir::{Function, Inst, IntPredicate, Opcode, Region, Value, ValueDef};
use crate::specialization::{KnownArg, KnownLaunch};

mod contents;
mod extremes;
mod floats;
mod loops;
mod operations;

/// Values followed into each other; what is nested deeper is unknown.
const MAX_DEPTH: u32 = 200;

/// Elements that are worked out for one function. What exchanges lanes again and again, such as a
/// sorting network, asks for exponentially many; further ones are unknown.
const MAX_ELEMENTS: u32 = 200_000;

/// The greatest number that arguments, memory and loops are given in the search for an example.
const SMALL: i128 = 2048;

/// Branches that one pointer may come from.
const MAX_BRANCHES: usize = 3;

/// Boxes that all searches about one function and launch may look at together, whatever each of them may.
pub(super) const MAX_BOXES: u32 = 24_000;

/// The most lanes that a tile has.
const MAX_LANES: i128 = 1 << 20;

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

impl Access {
    /// Whether it is the same operation on the same elements.
    pub(super) fn is_same(&self, other: &Access) -> bool {
        (self.inst, self.param, &self.offset) == (other.inst, other.param, &other.offset)
    }

    /// The conditions under which it happens.
    pub(super) fn happens(&self) -> Vec<Cond> {
        let mut conds = self.path.clone();
        conds.push(self.mask);
        conds
    }

    /// Its lane at a point.
    pub(super) fn lane(&self, point: &[i128]) -> Vec<i128> {
        self.lanes.iter().map(|var| point.get(var.0 as usize).copied().unwrap_or(0)).collect()
    }

    /// Whether it writes.
    pub(super) fn writes(&self, func: &Function) -> bool {
        func.insts[self.inst].opcode.is_global_write()
    }

    /// Whether it may happen in trips of loops that are not followed: then it may be anywhere.
    pub(super) fn may_be_elsewhere(&self, func: &Function) -> bool {
        self.loops.iter().any(|inst| func.insts[*inst].opcode == Opcode::While)
    }
}

/// What makes two unknown elements the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum UnknownKey {
    Value(Value, Index),
    /// What is read from a place; the kernels that matter do not write what they read twice.
    Read(usize, Linear, u32),
    /// The same, of parts of memory that may hold something else than the rest.
    Part(usize, Linear, u32),
    /// An unsigned comparison of what may be negative.
    Compare(IntPredicate, Linear, Linear),
}

/// One element of a value that a loop carries, by the loop, the value's position and the element.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Carried {
    inst: Inst,
    at: usize,
    index: Index,
}

/// What a loop makes of a carried value in each trip.
#[derive(Debug, Clone)]
enum Change {
    /// It adds the same.
    Step(Linear),
    /// It works the value out anew, over the trip, whatever it was.
    Anew(Linear),
}

/// What points have in common that any launch has.
struct Usual {
    /// The axes along which they are of the first program.
    still: [bool; 3],
    /// What holds there.
    holds: Cond,
}

/// The elements of a function under what is known of a launch.
pub struct Elements<'f> {
    func: &'f Function,
    /// The terms.
    pub terms: Terms,
    launch: Option<&'f KnownLaunch>,
    variables: FxHashMap<Variable, Var>,
    memo: FxHashMap<(Value, Index), Element>,
    /// Branches that are taken for now: whether a condition is taken to be true.
    taken: FxHashMap<Inst, bool>,
    /// What loops make of carried values; `None` where that is not known.
    changes: FxHashMap<Carried, Option<Change>>,
    /// Whether what is unknown is a variable that may have any value.
    free: bool,
    /// Terms of what is unknown, by value and element or by what a load reads.
    unknown_memo: FxHashMap<UnknownKey, Linear>,
    /// Reads of random integers.
    random: Vec<RandomRead>,
    /// The parameters whose memory the kernel may write to, once that was asked for.
    written: OnceCell<Option<FxHashSet<usize>>>,
    /// What reduces integers to the greatest or the least, by what they reduce.
    extremes: FxHashMap<Value, Vec<Extreme>>,
    /// What holds of numbers with which others were compared.
    facts: Vec<Cond>,
    /// That nothing is left over where one argument is divided by another, which is no greater.
    quotients: Vec<Cond>,
    /// What is known of the points that are looked for, where [any launch has](Elements::expect_usual_launch)
    /// these.
    usual: Option<Usual>,
    /// Values behind unknown terms.
    unknowns: FxHashMap<Linear, Value>,
    /// Terms that stand for a loop's carried value while its step is worked out.
    carried: Vec<Linear>,
    /// Where integers may wrap around, by the term before it wraps.
    wraps: FxHashMap<(u32, Linear), Vec<Value>>,
    /// The region of each value's definition, and the instruction around each region.
    owner: FxHashMap<Region, Inst>,
    home: FxHashMap<Inst, Region>,
    depth: u32,
    /// Elements that may still be worked out.
    fuel: u32,
    /// Whether an element is unknown because it was too much work.
    gave_up: bool,
    /// Boxes that searches may look at together.
    allowed: u32,
    /// Those of them that they may still look at.
    boxes: Cell<u32>,
    pause: Pause<'f>,
}

impl<'f> Elements<'f> {
    /// Of `func` under `launch`. What is not known of it is unknown.
    pub fn of_launch(
        func: &'f Function,
        launch: &'f KnownLaunch,
        pause: Pause<'f>,
    ) -> Elements<'f> {
        Elements::new(func, Some(launch), false, pause)
    }

    /// Of `func` whatever its arguments, the grid and memory are: variables stand for them.
    pub(crate) fn of_any_launch(func: &'f Function, pause: Pause<'f>) -> Elements<'f> {
        Elements::new(func, None, true, pause)
    }

    /// Of `func` under `launch`, where variables stand for what is not known of it and for memory.
    pub(super) fn of_open_launch(
        func: &'f Function,
        launch: &'f KnownLaunch,
        pause: Pause<'f>,
    ) -> Elements<'f> {
        Elements::new(func, Some(launch), true, pause)
    }

    fn new(
        func: &'f Function,
        launch: Option<&'f KnownLaunch>,
        free: bool,
        pause: Pause<'f>,
    ) -> Elements<'f> {
        let mut elements = Elements {
            func,
            terms: Terms::default(),
            launch,
            variables: FxHashMap::default(),
            memo: FxHashMap::default(),
            taken: FxHashMap::default(),
            changes: FxHashMap::default(),
            free,
            unknown_memo: FxHashMap::default(),
            random: Vec::new(),
            written: OnceCell::new(),
            extremes: extremes(func),
            facts: Vec::new(),
            quotients: Vec::new(),
            usual: None,
            unknowns: FxHashMap::default(),
            carried: Vec::new(),
            wraps: FxHashMap::default(),
            owner: FxHashMap::default(),
            home: FxHashMap::default(),
            depth: 0,
            fuel: MAX_ELEMENTS,
            gave_up: false,
            allowed: MAX_BOXES,
            boxes: Cell::new(MAX_BOXES),
            pause,
        };
        elements.note_homes(func.body);
        elements
    }

    /// The same, where searches may look at no more than so many boxes together.
    pub(super) fn searching(self, allowed: u32) -> Elements<'f> {
        Elements { allowed, boxes: Cell::new(allowed), ..self }
    }

    /// How many boxes searches may look at together.
    pub(super) fn allowed(&self) -> u32 {
        self.allowed
    }

    /// True when an element was too much work, and is taken for anything its type can be: then a
    /// point that was found shows nothing where what is unknown is a variable.
    pub(crate) fn gave_up(&self) -> bool {
        self.gave_up
    }

    /// A point at which all of `conds` hold; see [`search`].
    pub(super) fn search(&self, conds: &[Cond], fuel: &mut u32) -> Outcome {
        self.search_within(self.terms.var_ranges().to_vec(), conds, fuel)
    }

    /// As [`Elements::search`], for variables within `ranges`.
    pub(super) fn search_within(
        &self,
        mut ranges: Vec<Interval>,
        conds: &[Cond],
        fuel: &mut u32,
    ) -> Outcome {
        let expected = self.expected(&mut ranges);
        let left = self.boxes.get();
        let share = left.min(*fuel);
        let mut unused = share;
        let conds = [conds, &self.facts, &expected].concat();
        let outcome = search(&self.terms, ranges, &conds, &mut unused, self.pause);
        let used = share - unused;
        *fuel -= used;
        self.boxes.set(left - used);
        outcome
    }

    /// Where nothing is known of the launch: from here on points are looked for that no launch leaves out.
    /// Arguments that are divided by others leave nothing over there, as host code sees to, and they are of
    /// the first program; along axes on which `mask` depends of one whose first lane it lets through.
    pub(super) fn expect_usual_launch(&mut self, mask: Option<Value>) {
        if self.launch.is_some() {
            return;
        }
        let mut usual = Usual { still: [true; 3], holds: Terms::TRUE };
        if let Some(mask) = mask {
            let index = self.lanes(self.func.ty(mask).shape()).0;
            let lanes = self.truth(mask, &index);
            usual.still = [0, 1, 2].map(|axis| !self.depends(lanes, Variable::Program(axis)));
            if usual.still != [true; 3] {
                let first = Index::from_elem(Linear::default(), index.len());
                usual.holds = self.truth(mask, &first);
            }
        }
        self.usual = Some(usual);
    }

    /// Any point will do again.
    pub(super) fn expect_any_launch(&mut self) {
        self.usual = None;
    }

    /// Narrows `ranges` to what is [expected](Elements::expect_usual_launch), and says what more is.
    fn expected(&self, ranges: &mut [Interval]) -> Vec<Cond> {
        let Some(usual) = &self.usual else { return Vec::new() };
        let still = (0..3).filter(|axis| usual.still[*axis as usize]);
        let programs = still.filter_map(|axis| self.variable(Variable::Program(axis)));
        programs.for_each(|program| ranges[program.0 as usize] = Interval::new(0, 0));
        let holds = self.quotients.iter().copied().chain([usual.holds]);
        holds.filter(|cond| *cond != Terms::TRUE).collect()
    }

    /// True when a condition depends on a variable.
    pub(super) fn depends(&self, cond: Cond, variable: Variable) -> bool {
        let Some(wanted) = self.variable(variable) else { return false };
        let mut depends = false;
        self.terms.visit_cond(cond, &mut |_, kind| {
            depends |= matches!(kind, AtomKind::Var(var) if *var == wanted);
        });
        depends
    }

    /// Lets others go on, in work that may take a while.
    pub(super) fn pause(&self) {
        (self.pause)();
    }

    /// Ranges of the variables in which an example is looked for. What may be any number is small,
    /// and so are launches that may be any.
    pub(super) fn small_ranges(&self) -> Vec<Interval> {
        let mut ranges = self.terms.var_ranges().to_vec();
        let fixed: Vec<Var> = match self.launch {
            Some(_) => self.variables.values().copied().collect(),
            None => Vec::new(),
        };
        // The lanes of a known launch are what they are.
        let most = if self.launch.is_some() { MAX_LANES } else { SMALL };
        for (at, range) in ranges.iter_mut().enumerate() {
            if range.hi > most && !fixed.contains(&Var(at as u32)) {
                *range = Interval::new(range.lo.max(i128::from(range.lo < 0)), SMALL);
            }
        }
        ranges
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

    /// The branches that an operation stands in, the innermost first.
    pub(super) fn branches_around(&self, inst: Inst) -> Vec<Inst> {
        self.around(inst, Opcode::If)
    }

    /// The loops over a range that an operation stands in, the innermost first.
    pub(super) fn loops_around(&self, inst: Inst) -> Vec<Inst> {
        self.around(inst, Opcode::For)
    }

    fn around(&self, inst: Inst, opcode: Opcode) -> Vec<Inst> {
        let around = |inst: &Inst| self.owner.get(self.home.get(inst)?).copied();
        let owners = std::iter::successors(around(&inst), around);
        owners.filter(|inst| self.func.insts[*inst].opcode == opcode).collect()
    }

    /// The variable of `of`, if there is one.
    pub fn variable(&self, of: Variable) -> Option<Var> {
        self.variables.get(&of).copied()
    }

    /// The position in the grid at a point.
    pub(super) fn position(&self, point: &[i128]) -> [i128; 3] {
        [0, 1, 2].map(|axis| {
            let program = self.variable(Variable::Program(axis));
            program.and_then(|var| point.get(var.0 as usize)).copied().unwrap_or(0)
        })
    }

    /// Every variable with what it stands for.
    pub fn variables(&self) -> impl Iterator<Item = (Variable, Var)> + '_ {
        self.variables.iter().map(|(of, var)| (*of, *var))
    }

    /// Whether an atom stands for what is not known, and for which value, where it is one of the kernel's
    /// that is not read from memory at an address that is known.
    pub(super) fn unknown_value(&self, atom: Atom) -> Option<Option<Value>> {
        let is_given = |var: &Var| self.variables.values().any(|known| known == var);
        match self.terms.atom(atom) {
            AtomKind::Var(var) if is_given(var) => None,
            AtomKind::Var(_) | AtomKind::Unknown(_) => {
                Some(self.unknowns.get(&Linear::atom(atom)).copied())
            }
            _ => None,
        }
    }

    /// The values whose computation wraps around at `term`, as [`AtomKind::Wrap`] holds it.
    pub(crate) fn wrapping_values(&self, bits: u32, term: &Linear) -> &[Value] {
        self.wraps.get(&(bits, term.clone())).map_or(&[], Vec::as_slice)
    }

    /// The term of a variable. The first time says in which `range` it is, whatever it stands for.
    pub(super) fn variable_term(&mut self, of: Variable, range: Interval) -> Linear {
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
                    let goes_on = self.goes_on(data);
                    loops.push(inst);
                    for (&inner, cond) in data.regions.iter().zip([Terms::TRUE, goes_on]) {
                        path.push(cond);
                        self.visit(inner, path, loops, found);
                        path.pop();
                    }
                    loops.pop();
                }
                Opcode::Load | Opcode::Store | Opcode::AtomicRmw | Opcode::AtomicCas => {
                    self.access(inst, path, loops, found);
                }
                _ => {}
            }
        }
    }

    /// What an operation accesses: in each branch by itself, where branches give pointers to
    /// different parameters.
    fn access(
        &mut self,
        inst: Inst,
        path: &mut Vec<Cond>,
        loops: &[Inst],
        found: &mut Vec<Access>,
    ) {
        let pointer = self.func.insts[inst].operand(0);
        if let Some(access) = self.access_here(inst, path, loops) {
            found.push(access);
            return;
        }
        let Some(branch) = self.branch_of(pointer).filter(|_| self.taken.len() < MAX_BRANCHES)
        else {
            return;
        };
        let condition = self.truth(self.func.insts[branch].operand(0), &Index::new());
        let otherwise = self.terms.not(condition);
        let before = found.len();
        for (taken, cond) in [(true, condition), (false, otherwise)] {
            let known = std::mem::take(&mut self.memo);
            self.taken.insert(branch, taken);
            path.push(cond);
            let count = found.len();
            self.access(inst, path, loops, found);
            path.pop();
            self.taken.remove(&branch);
            self.memo = known;
            // What one of them accesses alone is not all.
            if found.len() == count {
                found.truncate(before);
                return;
            }
        }
    }

    /// The branch, of those not taken yet, that a pointer comes from.
    fn branch_of(&self, mut pointer: Value) -> Option<Inst> {
        loop {
            let ValueDef::Result(inst, at) = self.func.values[pointer].def else { return None };
            let data = &self.func.insts[inst];
            pointer = match (data.opcode, self.taken.get(&inst)) {
                (Opcode::If, None) => return Some(inst),
                (Opcode::If, Some(taken)) => {
                    let region = data.regions[usize::from(!taken)];
                    self.func.terminator(region)?.operand_opt(at as usize)?
                }
                (
                    Opcode::PtrAdd
                    | Opcode::Splat
                    | Opcode::Broadcast
                    | Opcode::ExpandDims
                    | Opcode::AssertFacts,
                    _,
                ) => data.operand(0),
                _ => return None,
            };
        }
    }

    fn access_here(&mut self, inst: Inst, path: &[Cond], loops: &[Inst]) -> Option<Access> {
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
        if self.depth >= MAX_DEPTH || self.fuel == 0 {
            self.gave_up = true;
            return self.unknown(value, index);
        }
        self.fuel -= 1;
        (self.pause)();
        self.depth += 1;
        let element = match self.func.values[value].def {
            ValueDef::Argument(region, at) => self.argument(value, region, at as usize, index),
            ValueDef::Result(inst, at) => self.result(value, inst, at as usize, index),
        };
        self.depth -= 1;
        self.memo.insert(key, element.clone());
        self.note_extremes(value, index, &element);
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
            Opcode::While => match self.in_first_trip(inst, region, at) {
                Some(source) => self.element(source, index),
                None => self.unknown(value, index),
            },
            _ => self.unknown(value, index),
        }
    }

    /// What the launch passes for the parameter of this name.
    pub(super) fn passed(&self, name: &str) -> Option<&'f KnownArg> {
        self.launch.and_then(|launch| launch.arg(name))
    }

    fn param(&mut self, value: Value, at: usize, index: &Index) -> Element {
        let ty = self.func.ty(value);
        if ty.elem().is_some_and(|elem| elem.is_ptr()) {
            return Element::Pointer(at, Linear::default());
        }
        let known = self.passed(&self.func.params[at].name);
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

    /// Whether an unknown `atom` may differ between the lanes of one access.
    pub(super) fn varies_by_lane(&self, atom: Atom) -> bool {
        let value = self.unknowns.get(&Linear::atom(atom));
        value.is_none_or(|value| self.func.ty(*value).is_tile())
    }

    /// Name of the parameter at an index.
    pub(crate) fn param_name(&self, param: usize) -> Arc<str> {
        self.func.params[param].name.clone()
    }
}
