//! Tiles of two programs of which one lies partly over the other: where both store the elements between,
//! that is a mistake in the step or in the tile's width, whatever they store there.
//!
//! Tiles that are the same are meant to be, as where every program of a row writes its statistics. Tiles
//! that are moved by a minimum, or lanes that a remainder brings back, are made to lie over others.

use super::{Pair, programs_of};
use crate::analysis::elements::{Access, Elements, Variable};
use crate::analysis::report;
use crate::analysis::terms::{Atom, AtomKind, Domain, Linear, Operation, Var};
use crate::specialization::KnownLaunch;

/// By how many elements the tile of the second program of a pair is away from the tile of the first, where
/// all of its lanes are, both are the same otherwise, and the programs differ along one axis of the grid.
pub(super) fn shift(
    elements: &Elements<'_>,
    access: &Access,
    (first, second): &Pair,
) -> Option<i128> {
    if !access.offset.terms.iter().all(|(atom, _)| moves_lanes_alike(elements, *atom)) {
        return None;
    }
    let (one, two) = (elements.position(first), elements.position(second));
    if one.iter().zip(two).filter(|(one, two)| *one != two).count() != 1 {
        return None;
    }
    let mut moved = first.clone();
    for axis in 0..3 {
        if let Some(Var(program)) = elements.variable(Variable::Program(axis)) {
            *moved.get_mut(program as usize)? = *second.get(program as usize)?;
        }
    }
    let at = |point: &[i128]| {
        Domain::at(&elements.terms, &elements.terms.padded(point)).value(&access.offset)
    };
    at(&moved)?.checked_sub(at(first)?).filter(|shift| *shift != 0)
}

/// Whether a part of an offset is a lane, or the same for all lanes and nothing that keeps tiles within
/// bounds.
pub(super) fn moves_lanes_alike(elements: &Elements<'_>, atom: Atom) -> bool {
    if matches!(elements.terms.atom(atom), AtomKind::Var(_)) {
        return true;
    }
    let mut is_alike = true;
    elements.terms.visit(&Linear::atom(atom), &mut |_, kind| match kind {
        AtomKind::Var(var) => is_alike &= is_program(elements, *var),
        AtomKind::Binary(Operation::Min | Operation::Max, ..)
        | AtomKind::Choose(..)
        | AtomKind::Unknown(_)
        | AtomKind::Wrap(..) => is_alike = false,
        AtomKind::Binary(..) => {}
    });
    is_alike
}

/// Whether a variable is a program's position in the grid.
fn is_program(elements: &Elements<'_>, var: Var) -> bool {
    (0..3).any(|axis| elements.variable(Variable::Program(axis)) == Some(var))
}

/// What is wrong with the tiles of a pair, of which programs do `what`.
pub(super) fn note(
    elements: &Elements<'_>,
    launch: &KnownLaunch,
    (access, what): (&Access, &str),
    pair: &Pair,
) -> String {
    let [a, b] = programs_of(elements, launch, pair);
    let shift = shift(elements, access, pair).unwrap_or_default();
    let away = report::count(shift.abs(), "element");
    let side = if shift < 0 { "before" } else { "after" };
    format!(
        "what program {b} {what} begins {away} {side} what program {a} {what}, and one lies partly over the \
         other: let programs be as far apart as that is wide"
    )
}
