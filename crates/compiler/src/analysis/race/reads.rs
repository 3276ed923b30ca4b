//! One program that reads what another stores, while nothing orders them.
//!
//! A read counts where the lane that is read gets to something that is seen, and where the program
//! does not store to the element itself: then either it is the element's owner, or stores meet,
//! which is another finding. Where it does and both store the same, the read counts if what was read
//! gets to another element as well. A store of what the element holds already changes nothing. Kernels that
//! order programs by any means are left alone: by atomic operations, inline assembly, volatile
//! loads, or loops that read until something changes.

use rustc_hash::FxHashSet;

use super::{
    Apart, Collision, MAX_PAIRS, Other, PAIR_FUEL, Pair, Part, collision, is_same_memory, parts,
    programs_of, synchronizes, within,
};
use crate::analysis::elements::{Access, Elements, Variable};
use crate::analysis::flow::{Flow, Followed, Fuel, Position, Reached, reached};
use crate::analysis::identity::Origins;
use crate::analysis::report;
use crate::analysis::solve::Outcome;
use crate::analysis::terms::{Cond, Domain, Linear};
use crate::diagnostic::{Code, Diagnostic};
use crate::ir::{Function, Opcode};
use crate::specialization::KnownLaunch;

/// Boxes that may be looked at to follow what was read.
const FLOW_FUEL: u32 = 2_000;

/// Findings about the loads of `func` under `launch`, of which `programs` are the positions and
/// `other` another program.
pub(super) fn check<'f>(
    func: &'f Function,
    launch: &KnownLaunch,
    elements: &mut Elements<'f>,
    (programs, other): (&[Linear; 3], &mut Other),
    accesses: &[Access],
) -> Vec<Diagnostic> {
    if may_order(func) {
        return Vec::new();
    }
    let of = |opcode: Opcode| {
        let wanted = move |access: &&Access| func.insts[access.inst].opcode == opcode;
        accesses.iter().filter(wanted).collect::<Vec<&Access>>()
    };
    let (loads, stores) = (of(Opcode::Load), of(Opcode::Store));
    let all = func.walk().into_iter().filter(|inst| func.insts[*inst].opcode == Opcode::Store);
    // A store whose address is not known may be to the program's own elements.
    if all.count() != stores.len() {
        return Vec::new();
    }
    let mut pairs = Vec::new();
    for load in loads.into_iter().filter(|load| elements.terms.is_known(&load.offset)) {
        let known = stores.iter().filter(|store| elements.terms.is_known(&store.offset));
        let same = known.filter(|store| is_same_memory(func, launch, load.param, store.param));
        pairs.extend(same.map(|store| (load, *store)));
    }
    pairs.truncate(MAX_PAIRS);
    let mut found = Vec::new();
    let mut reported = FxHashSet::default();
    for (load, store) in pairs {
        if reported.contains(&func.insts[load.inst].loc) {
            continue;
        }
        let mut search = Search { func, launch, elements, programs, stores: &stores };
        if let Some(pair) = search.race(other, (load, store)) {
            reported.insert(func.insts[load.inst].loc);
            found.push(search.describe((load, store), &pair));
        }
    }
    found
}

/// Whether something in a kernel may make programs wait for each other, or tell one that the others are done.
fn may_order(func: &Function) -> bool {
    let tells = |inst| match func.insts[inst].opcode {
        Opcode::AtomicRmw => true,
        // One that looks back asks other places one after the other.
        Opcode::While => func.any_within(inst, |opcode| opcode == Opcode::Load),
        _ => synchronizes(func, inst),
    };
    func.walk().into_iter().any(tells)
}

struct Search<'s, 'f> {
    func: &'f Function,
    launch: &'s KnownLaunch,
    elements: &'s mut Elements<'f>,
    programs: &'s [Linear; 3],
    /// Every store of the kernel.
    stores: &'s [&'s Access],
}

impl<'f> Search<'_, 'f> {
    /// The point of a program that reads, and that of one that stores, where they race.
    fn race(&mut self, other: &mut Other, (load, store): (&Access, &Access)) -> Option<Pair> {
        let mut fuel = PAIR_FUEL;
        let inside = within(self.func, self.launch, self.elements, load);
        for part in parts(self.elements, self.programs, load) {
            let within = inside.iter().chain(&part).copied().collect();
            let part =
                Part { programs: self.programs, asked: [true; 3], apart: Apart::Programs, within };
            let (func, programs, stores) = (self.func, self.programs, self.stores);
            let launch = self.launch;
            let mut more = PAIR_FUEL;
            let matters = |elements: &mut Elements<'f>, pair: &Pair| {
                let mut search = Search { func, launch, elements, programs, stores };
                search.matters((load, store), pair, &mut more)
            };
            let accesses = (load, store);
            match collision(self.elements, &part, other, accesses, (&mut fuel, matters)) {
                Collision::Counts(pair) => return Some(pair),
                Collision::Never if part.within.len() == inside.len() => return None,
                Collision::Never
                | Collision::Unknown
                | Collision::Passed
                | Collision::Overlaps(_) => {}
            }
        }
        None
    }

    /// Whether what is read at one point is another program's and gets somewhere.
    fn matters(&mut self, (load, store): (&Access, &Access), pair: &Pair, fuel: &mut u32) -> bool {
        let (one, two) = ((load, &*pair.0), (store, &*pair.1));
        (!self.owns(load, &pair.0, fuel) || self.hands_on(load, pair))
            && Origins::stores_anew(self.func, self.elements, one, two) == Some(true)
            && self.is_seen(load, &pair.0)
    }

    /// The conditions that hold of the program at a point.
    fn here(&mut self, point: &[i128]) -> Vec<Cond> {
        let at = self.elements.position(point);
        let terms = &mut self.elements.terms;
        let programs = self.programs.iter().zip(at);
        programs.map(|(program, at)| terms.equal(program, &Linear::constant(at))).collect()
    }

    /// Whether the program at a point may store to the element that it reads there.
    fn owns(&mut self, load: &Access, point: &[i128], fuel: &mut u32) -> bool {
        let whole = self.elements.terms.padded(point);
        let element = Domain::at(&self.elements.terms, &whole).value(&load.offset);
        let Some(element) = element else { return true };
        let here = self.here(point);
        for store in self.stores {
            if !is_same_memory(self.func, self.launch, load.param, store.param) {
                continue;
            }
            if store.may_be_elsewhere(self.func) {
                return true;
            }
            let mut conds = here.clone();
            conds.extend(store.happens());
            conds.push(self.elements.terms.equal(&store.offset, &Linear::constant(element)));
            if self.elements.search(&conds, fuel) != Outcome::Never {
                return true;
            }
        }
        false
    }

    /// Whether the first program, which stores to the element that it reads, stores what it read to
    /// another element of the same memory: then what is there depends on which program comes first,
    /// even where both store the same to their own. Programs that differ along axes that the kernel
    /// does not ask for do the same.
    fn hands_on(&mut self, load: &Access, pair: &Pair) -> bool {
        let [here, there] = [&pair.0, &pair.1].map(|point| self.elements.position(point));
        let asked = super::grid::axes_asked_for(self.func);
        if (0..3).all(|axis| !asked[axis] || here[axis] == there[axis]) {
            return false;
        }
        let whole = self.elements.terms.padded(&pair.0);
        let element = Domain::at(&self.elements.terms, &whole).value(&load.offset);
        let Some(element) = element.map(Linear::constant) else { return false };
        let stores = reached(self.func, self.elements)
            .into_iter()
            .filter(|reached| self.func.insts[reached.inst].opcode == Opcode::Store);
        let mut others = Vec::new();
        for mut reached in stores.collect::<Vec<_>>() {
            let is_same = |store: &&&Access| {
                store.inst == reached.inst
                    && is_same_memory(self.func, self.launch, load.param, store.param)
            };
            let same = self.stores.iter().find(is_same);
            if let Some(own) = same {
                let terms = &mut self.elements.terms;
                let at = terms.equal(&own.offset, &element);
                reached.path.push(terms.not(at));
                others.push(reached);
            }
        }
        self.reaches(load, &pair.0, others)
    }

    /// Whether what is read at a point gets to something that is seen.
    fn is_seen(&mut self, load: &Access, point: &[i128]) -> bool {
        let reached = reached(self.func, self.elements);
        self.reaches(load, point, reached)
    }

    /// Whether what is read at a point gets to any of these operations.
    fn reaches(&mut self, load: &Access, point: &[i128], reached: Vec<Reached>) -> bool {
        let mut conds = self.here(point);
        for &inst in &load.loops {
            let Some(var) = self.elements.variable(Variable::Trip(inst)) else { return false };
            let trip = self.elements.terms.var_term(var);
            let at = Linear::constant(point.get(var.0 as usize).copied().unwrap_or(0));
            conds.push(self.elements.terms.equal(&trip, &at));
        }
        let followed = Followed::At(Position { lane: load.lane(point), conds });
        let mut fuel = Fuel::new(FLOW_FUEL);
        let mut flow = Flow::new(self.func, self.elements, (load.inst, followed), &mut fuel);
        reached.iter().any(|reached| flow.is_seen(reached))
    }

    fn describe(&self, (load, store): (&Access, &Access), pair: &Pair) -> Diagnostic {
        let terms = &self.elements.terms;
        let mut domain = Domain::at(terms, &terms.padded(&pair.0));
        let element = domain.value(&load.offset).unwrap_or_default();
        let name = self.elements.param_name(load.param);
        let [reader, writer] = programs_of(self.elements, self.launch, pair);
        let message = format!(
            "program {reader} reads element {element} of `{name}`, which program {writer} stores to, \
             and nothing orders them"
        );
        let loc = self.func.insts[load.inst].loc;
        let there = report::place(self.func, self.func.insts[store.inst].loc);
        report::finding(self.func, loc, Code::ReadRace, message)
            .with_related(there, format!("program {writer} stores here"))
            .with_note(
                "what is read depends on which program comes first: store to another buffer, or \
                 store in a launch of its own",
            )
    }
}
