//! Masks: lanes that a load leaves undefined and that matter, masks along the wrong axis, masks
//! that are always true.
//!
//! A load without `other` leaves lanes undefined where its mask is false. For each such load, the
//! condition under which an element of a value is undefined is followed through the kernel: what
//! combines lanes is undefined where any of them is, a choice only where it chooses so. The load is
//! reported when the condition can hold at something that is seen: a store, an address, a branch.
//! So nothing is said about lanes that are stored under the same or a stronger mask, or replaced.
//! Arguments, grid and memory may be anything.

use rustc_hash::{FxHashMap, FxHashSet};

use super::elements::{Elements, Index};
use super::report;
use super::solve::{Outcome, Pause};
use super::terms::{Cond, Interval, Linear, Terms};
use crate::diagnostic::{Code, Diagnostic, TextEdit};
use crate::ir::{Attrs, Function, Inst, InstData, Opcode, Region, Value, ValueDef};
use crate::passes::eliminate_common_subexpressions;
use crate::source::{FileRange, TextRange};

/// Boxes that may be looked at for one question.
const FUEL: u32 = 200;

/// Boxes that may be looked at before a mask is taken not to be always true.
const QUICK_FUEL: u32 = 24;

/// Boxes that may be looked at for one kernel.
const KERNEL_FUEL: u32 = 3_000;

/// The greatest number that arguments, memory and loops are given in the search for an example.
const SMALL: i128 = 2048;

/// Values followed into each other.
const MAX_DEPTH: u32 = 150;

/// Elements that are followed from one load. Each exchange of a sorting network asks for twice as
/// many as the one before; where lanes go further than this, nothing is said of them.
const MAX_ELEMENTS: usize = 4_000;

/// Findings about the masks of `func`.
pub(super) fn check(func: &Function, pause: Pause<'_>) -> Vec<Diagnostic> {
    let has_mask = |inst: &Inst| mask_of(&func.insts[*inst]).is_some();
    if !func.walk().iter().any(has_mask) {
        return Vec::new();
    }
    let mut found = wrong_axes(func);
    // Equal computations become one value, so that what they have in common is seen.
    let mut shared = func.clone();
    eliminate_common_subexpressions(&mut shared);
    let mut elements = Elements::of_any_launch(&shared, pause);
    let reached = reached(&shared, &mut elements);
    found.extend(undefined_lanes(&shared, &mut elements, &reached));
    found.extend(always_true(&shared, &mut elements, &reached));
    found
}

/// The mask of a memory operation.
fn mask_of(data: &InstData) -> Option<Value> {
    match data.opcode {
        Opcode::Load => data.operand_opt(1),
        Opcode::Store | Opcode::AtomicRmw => data.operand_opt(2),
        _ => None,
    }
}

/// An instruction, and what must hold for it to run.
struct Reached {
    inst: Inst,
    path: Vec<Cond>,
}

fn reached(func: &Function, elements: &mut Elements<'_>) -> Vec<Reached> {
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

fn undefined_lanes<'f>(
    func: &'f Function,
    elements: &mut Elements<'f>,
    reached: &[Reached],
) -> Vec<Diagnostic> {
    let unfilled = |inst: &Inst| {
        let data = &func.insts[*inst];
        data.opcode == Opcode::Load
            && data.operand_opt(1).is_some_and(|mask| func.constant_bits(mask).is_none())
            && data.operand_opt(2).is_none()
    };
    let loads: Vec<Inst> = func.walk().into_iter().filter(unfilled).collect();
    let mut found: Vec<Diagnostic> = Vec::new();
    let mut reported = FxHashSet::default();
    let mut fuel = KERNEL_FUEL;
    for load in loads {
        if reported.contains(&func.insts[load].loc) {
            continue;
        }
        let mut flow = Flow {
            func,
            elements: &mut *elements,
            load,
            memo: FxHashMap::default(),
            depth: 0,
            fuel: &mut fuel,
        };
        let seen = reached.iter().find(|reached| flow.is_seen(reached));
        if let Some(sink) = seen {
            reported.insert(func.insts[load].loc);
            found.push(describe(func, load, sink.inst));
        }
    }
    found
}

/// Where the lanes that one load leaves undefined get to.
struct Flow<'e, 'f> {
    func: &'f Function,
    elements: &'e mut Elements<'f>,
    load: Inst,
    memo: FxHashMap<(Value, Index), Cond>,
    depth: u32,
    fuel: &'e mut u32,
}

impl Flow<'_, '_> {
    /// True when an undefined lane is certainly seen by an instruction, for some launch.
    fn is_seen(&mut self, reached: &Reached) -> bool {
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
            _ => return false,
        };
        let mask_cond = match mask {
            Some(mask) => {
                let index = self.lanes(mask);
                self.elements.truth(mask, &index)
            }
            None => Terms::TRUE,
        };
        watched.into_iter().chain(mask).any(|value| {
            let index = self.lanes(value);
            let undefined = self.undefined(value, &index);
            if undefined == Terms::FALSE {
                return false;
            }
            let mut conds = reached.path.clone();
            // A mask that is undefined itself may let anything through.
            if Some(value) != mask {
                conds.push(mask_cond);
            }
            conds.push(undefined);
            !self.elements.gave_up() && self.holds_somewhere(&conds)
        })
    }

    /// True when conditions hold together at some point. Small launches are enough to look at: a
    /// mask that is wrong is wrong for them, and they keep what is not linear within reach.
    fn holds_somewhere(&mut self, conds: &[Cond]) -> bool {
        let small = small_ranges(&self.elements.terms);
        let mut share = FUEL.min(*self.fuel);
        let before = share;
        let found = self.elements.search_within(small, conds, &mut share);
        *self.fuel -= before - share;
        matches!(found, Outcome::Found(_))
    }

    fn lanes(&mut self, value: Value) -> Index {
        self.elements.lanes(self.func.ty(value).shape()).0
    }

    fn either(&mut self, conds: impl IntoIterator<Item = Cond>) -> Cond {
        conds.into_iter().fold(Terms::FALSE, |any, cond| self.elements.terms.or(any, cond))
    }

    /// When the element of `value` at `index` is undefined.
    fn undefined(&mut self, value: Value, index: &Index) -> Cond {
        let key = (value, index.clone());
        if let Some(known) = self.memo.get(&key) {
            return *known;
        }
        if self.depth >= MAX_DEPTH || self.memo.len() >= MAX_ELEMENTS {
            return Terms::FALSE;
        }
        // What a loop carries is not asked for while it is worked out.
        self.memo.insert(key.clone(), Terms::FALSE);
        self.depth += 1;
        let cond = match self.func.values[value].def {
            ValueDef::Argument(..) => Terms::FALSE,
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
            Opcode::Reduce | Opcode::Scan => self.across(data, index),
            Opcode::Histogram => self.histogram(data),
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

    fn loaded(&mut self, inst: Inst, data: &InstData, index: &Index) -> Cond {
        let Some(mask) = data.operand_opt(1) else { return Terms::FALSE };
        let mask = self.elements.truth(mask, index);
        let masked = self.elements.terms.not(mask);
        if inst == self.load {
            return masked;
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
        if !same || matches!(data.opcode, Opcode::Sort | Opcode::Join | Opcode::Cat) {
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
        let parts =
            [self.undefined(lhs, &left), self.undefined(rhs, &right), self.undefined(acc, index)];
        self.either(parts)
    }
}

/// Ranges of the variables in small launches.
fn small_ranges(terms: &Terms) -> Vec<Interval> {
    let small = terms.var_ranges().iter().map(|range| match range.hi > SMALL {
        true => Interval::new(range.lo.max(i128::from(range.lo < 0)), SMALL),
        false => *range,
    });
    small.collect()
}

fn is_truth(func: &Function, value: Value) -> bool {
    func.ty(value).number().is_some_and(|number| number.bits() == 1)
}

fn describe(func: &Function, load: Inst, sink: Inst) -> Diagnostic {
    let combining = combining(func, load);
    let (at, what) = match combining {
        Some(inst) if func.insts[inst].opcode == Opcode::Dot => (inst, "a matrix product"),
        Some(inst) if func.insts[inst].opcode == Opcode::Scan => (inst, "a scan"),
        Some(inst) => (inst, "a reduction"),
        None => (
            sink,
            match func.insts[sink].opcode {
                Opcode::Load => "an address or mask",
                Opcode::If | Opcode::Condition | Opcode::For => "a condition",
                _ => "memory, under a weaker mask",
            },
        ),
    };
    let data = &func.insts[load];
    let message =
        format!("lanes of this load whose mask is false are undefined, and they reach {what}");
    let mut found = report::finding(func, data.loc, Code::UndefinedLanes, message);
    let place = report::place(func, func.insts[at].loc);
    if place != found.primary {
        found = found.with_related(
            place,
            format!("{what}, which sees them").replacen(
                "memory, under a weaker mask, which",
                "a store that",
                1,
            ),
        );
    }
    if func.frames(data.loc).len() == 1 {
        let float = func.ty(data.result()).elem().is_some_and(|elem| elem.is_float());
        let value = if float { "0.0" } else { "0" };
        let range = found.primary.range;
        let end = range.end.saturating_sub(1).max(range.start) as usize;
        let at = FileRange { file: found.primary.file, range: TextRange::empty(end) };
        let edit = TextEdit { at, text: format!(", other={value}") };
        found = found.with_fix(format!("give these lanes a value: `other={value}`"), vec![edit]);
    }
    found.with_note(
        "choose an `other` that does not change the result, such as 0.0 for a sum or \
         -float('inf') for a maximum",
    )
}

/// The first operation that combines lanes of what `load` reads.
fn combining(func: &Function, load: Inst) -> Option<Inst> {
    let mut tainted: FxHashSet<Value> = func.insts[load].results.iter().copied().collect();
    for inst in func.walk() {
        let data = &func.insts[inst];
        if !data.uses().any(|value| tainted.contains(&value)) {
            continue;
        }
        if matches!(data.opcode, Opcode::Reduce | Opcode::Scan | Opcode::Dot | Opcode::Histogram) {
            return Some(inst);
        }
        tainted.extend(&data.results);
    }
    None
}

/// Masks that hold along an axis on which the addresses do not use what the mask compares.
fn wrong_axes(func: &Function) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for inst in func.walk() {
        let data = &func.insts[inst];
        let Some(mask) = mask_of(data) else { continue };
        if func.ty(mask).shape().len() < 2 {
            continue;
        }
        let (used, masked) = (axes(func, data.operand(0)), axes(func, mask));
        let wrong = masked.iter().find_map(|(value, axes)| {
            let [axis] = axes.as_slice() else { return None };
            let of_address = used.get(value)?;
            let elsewhere = !of_address.contains(axis);
            (elsewhere && of_address.len() == 1).then_some((*value, *axis, of_address[0]))
        });
        let Some((value, axis, right)) = wrong else { continue };
        let name = report::name(func, value).unwrap_or_else(|| "an index".into());
        let message = format!(
            "the mask compares `{name}` along axis {axis}, but the addresses use it along axis {right}"
        );
        found.push(report::finding(func, data.loc, Code::MaskAxis, message));
    }
    found
}

/// One-dimensional values that a value is computed from, with the axes that they run along.
fn axes(func: &Function, value: Value) -> FxHashMap<Value, Vec<usize>> {
    let mut found: FxHashMap<Value, Vec<usize>> = FxHashMap::default();
    let mut seen = FxHashSet::default();
    let mut pending = vec![value];
    while let Some(value) = pending.pop() {
        let Some(data) = func.def(value).filter(|_| seen.insert(value)) else { continue };
        let elementwise = data.regions.is_empty() && data.opcode.is_pure();
        match (data.opcode, &data.attrs) {
            (Opcode::ExpandDims, _) => {
                if let Some((base, axis)) = expanded(func, value) {
                    let known = found.entry(base).or_default();
                    if !known.contains(&axis) {
                        known.push(axis);
                    }
                }
            }
            (
                Opcode::Reshape | Opcode::Permute | Opcode::Join | Opcode::Cat | Opcode::Gather,
                _,
            ) => {}
            _ if elementwise => pending.extend(data.uses()),
            _ => {}
        }
    }
    found
}

/// The one-dimensional value that a chain of `expand_dims` starts from, and the axis that it is
/// along in the end.
fn expanded(func: &Function, value: Value) -> Option<(Value, usize)> {
    let data = func.def(value)?;
    let Attrs::Axis(inserted) = &data.attrs else { return None };
    let source = data.operand(0);
    match func.ty(source).shape().len() {
        1 => Some((source, usize::from(inserted.axis == 0))),
        _ => {
            let (base, axis) = expanded(func, source)?;
            Some((base, axis + usize::from(inserted.axis as usize <= axis)))
        }
    }
}

/// Masks that hold in every lane of every launch.
fn always_true(
    func: &Function,
    elements: &mut Elements<'_>,
    reached: &[Reached],
) -> Vec<Diagnostic> {
    let mut found: Vec<Diagnostic> = Vec::new();
    let mut fuel = KERNEL_FUEL;
    for reached in reached {
        let data = &func.insts[reached.inst];
        let Some(mask) = mask_of(data).filter(|mask| func.constant_bits(*mask).is_none()) else {
            continue;
        };
        let index = elements.lanes(func.ty(mask).shape()).0;
        let mask = elements.truth(mask, &index);
        let mut conds = reached.path.clone();
        let not = elements.terms.not(mask);
        conds.push(not);
        // Nearly every mask is false somewhere in a small launch.
        let small = small_ranges(&elements.terms);
        let outcome = elements.search_within(small, &conds, &mut { QUICK_FUEL });
        if !matches!(outcome, Outcome::Never) {
            continue;
        }
        let mut share = FUEL.min(fuel);
        let before = share;
        let outcome = elements.search(&conds, &mut share);
        fuel -= before - share;
        if outcome == Outcome::Never {
            let message = "this mask is true in every lane, whatever the arguments are";
            let finding = report::finding(func, data.loc, Code::MaskAlwaysTrue, message);
            if !found.contains(&finding) {
                found.push(finding);
            }
        }
    }
    found
}
