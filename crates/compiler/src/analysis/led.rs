//! Accesses that integers in memory lead: they say which rows are meant, or how many there are.

use cranelift_entity::EntitySet;

use super::elements::{Access, Elements, Variable};
use super::flow::dependents;
use super::terms::{Atom, AtomKind, Cond, CondKind, Linear, Terms};
use crate::ir::{Attrs, Function, Inst, Opcode, Value};

/// Whether integers in memory say where, or how far, an operation goes.
pub(super) fn is_led_by_memory(func: &Function, access: Inst) -> bool {
    leading(func, access).next().is_some()
}

/// Whether integers in memory say so for each lane of its own.
pub(super) fn is_led_lane_by_lane(func: &Function, access: Inst) -> bool {
    leading(func, access).any(|load| func.ty(func.insts[load].result()).numel() > 1)
}

/// Whether a value is computed from what memory holds.
pub(super) fn depends_on_memory(func: &Function, value: Value) -> bool {
    let reads = |value: &Value| func.def(*value).is_some_and(|data| data.opcode == Opcode::Load);
    func.computing(value).iter().any(reads)
}

/// The loads of integers that say where, or how far, an operation goes.
fn leading(func: &Function, access: Inst) -> impl Iterator<Item = Inst> {
    let reads = |inst: &Inst| {
        let data = &func.insts[*inst];
        let is_integers =
            |value: &Value| func.ty(*value).number().is_some_and(|number| number.is_int());
        data.opcode == Opcode::Load && data.results.iter().any(is_integers)
    };
    let leads = move |inst: &Inst| {
        let led = dependents(func, *inst);
        func.insts[access].uses().any(|used| led.contains(used))
    };
    func.walk().into_iter().filter(reads).filter(move |inst| *inst != access).filter(leads)
}

/// What the position along an axis decides.
fn moved_by(func: &Function, axis: u32) -> EntitySet<Value> {
    let is_position = |inst: &Inst| {
        let data = &func.insts[*inst];
        match (data.opcode, &data.attrs) {
            (Opcode::ProgramId, Attrs::Axis(asked)) => asked.axis == axis,
            _ => false,
        }
    };
    let mut moved = EntitySet::with_capacity(func.values.len());
    for position in func.walk().into_iter().filter(is_position) {
        moved.extend(dependents(func, position).iter());
    }
    moved
}

/// Whether what memory is read to lead an access is the same at each position along an axis.
pub(super) fn is_led_alike(func: &Function, access: Inst, axis: u32) -> bool {
    let moved = moved_by(func, axis);
    let moves = |load: Inst| func.insts[load].uses().any(|used| moved.contains(used));
    !leading(func, access).any(moves)
}

/// Whether nothing that the position along an axis decides of an access, of where it is or whether it
/// happens, is decided by what memory holds as well, where that [is alike](is_led_alike). `elements` have
/// variables for what it holds.
pub(super) fn is_apart_from_memory(
    func: &Function,
    elements: &Elements<'_>,
    access: &Access,
    axis: u32,
) -> bool {
    let moved = moved_by(func, axis);
    let terms = &elements.terms;
    let position = elements.variable(Variable::Program(axis));
    let is_position = |atom: &Atom| match terms.atom(*atom) {
        AtomKind::Var(var) => Some(*var) == position,
        _ => false,
    };
    let is_moved = |atom: &Atom| {
        let value = elements.unknown_value(*atom).flatten();
        value.is_some_and(|value| moved.contains(value))
    };
    let is_mixed = |atoms: Vec<Atom>| {
        let reads = atoms.iter().any(|atom| elements.unknown_value(*atom).is_some());
        reads && atoms.iter().any(is_position) || atoms.iter().any(is_moved)
    };
    conjuncts(terms, &access.happens()).into_iter().all(|it| !is_mixed(atoms_of(terms, it)))
        && parts(terms, &access.offset).iter().all(|part| !is_mixed(atoms_in(terms, part)))
}

/// An access that may be to more than it is: any number stands for what memory holds, and what memory
/// decides of whether it happens does not count.
pub(super) fn freed(elements: &mut Elements<'_>, access: &Access) -> Access {
    let reads = |elements: &Elements<'_>, atoms: Vec<Atom>| {
        atoms.into_iter().any(|atom| elements.unknown_value(atom).is_some())
    };
    let free = |conds: &[Cond]| {
        let mut conds = conjuncts(&elements.terms, conds);
        conds.retain(|cond| {
            is_known(&elements.terms, *cond) && !reads(elements, atoms_of(&elements.terms, *cond))
        });
        conds
    };
    let (path, mask) = (free(&access.path), free(&[access.mask]));
    let mask = mask.into_iter().fold(Terms::TRUE, |all, cond| elements.terms.and(all, cond));
    let mut offset = Linear::constant(access.offset.constant);
    for part in parts(&elements.terms, &access.offset) {
        let is_led = reads(elements, atoms_in(&elements.terms, &part));
        let part = match is_led {
            true => anything_like(&mut elements.terms, &part),
            false => Some(part),
        };
        match part.and_then(|part| offset.plus(&part)) {
            Some(sum) => offset = sum,
            None => return access.clone(),
        }
    }
    Access { offset, path, mask, ..access.clone() }
}

/// The multiple of an atom, with a variable of the atom's range in its place.
fn anything_like(terms: &mut Terms, part: &Linear) -> Option<Linear> {
    let &[(atom, factor)] = part.terms.as_slice() else { return Some(part.clone()) };
    let range = terms.range(&Linear::atom(atom));
    let var = terms.var(range);
    terms.var_term(var).scaled(factor)
}

/// Conditions that must all hold for all of `conds` to hold.
fn conjuncts(terms: &Terms, conds: &[Cond]) -> Vec<Cond> {
    let (mut open, mut found) = (conds.to_vec(), Vec::new());
    while let Some(cond) = open.pop() {
        match terms.cond(cond) {
            CondKind::And(a, b) => open.extend([*a, *b]),
            _ => found.push(cond),
        }
    }
    found
}

/// Whether a condition is more than a truth value that may be either.
fn is_known(terms: &Terms, cond: Cond) -> bool {
    match terms.cond(cond) {
        CondKind::Unknown(_) => false,
        CondKind::Not(inner) => is_known(terms, *inner),
        CondKind::And(a, b) | CondKind::Or(a, b) => is_known(terms, *a) && is_known(terms, *b),
        _ => true,
    }
}

/// What an offset is the sum of: multiples of one atom each, and constants. It is taken not to wrap around,
/// for then it is none of any memory.
fn parts(terms: &Terms, offset: &Linear) -> Vec<Linear> {
    let mut found = Vec::new();
    for &(atom, factor) in &offset.terms {
        let inner = match terms.atom(atom) {
            AtomKind::Wrap(_, inner) => parts(terms, inner)
                .into_iter()
                .chain([Linear::constant(inner.constant)])
                .map(|part| part.scaled(factor))
                .collect::<Option<Vec<Linear>>>(),
            _ => None,
        };
        match inner {
            Some(inner) => found.extend(inner),
            None => found.extend(Linear::atom(atom).scaled(factor)),
        }
    }
    found
}

fn atoms_of(terms: &Terms, cond: Cond) -> Vec<Atom> {
    let mut found = Vec::new();
    terms.visit_cond(cond, &mut |atom, _| found.push(atom));
    found
}

fn atoms_in(terms: &Terms, term: &Linear) -> Vec<Atom> {
    let mut found = Vec::new();
    terms.visit(term, &mut |atom, _| found.push(atom));
    found
}
