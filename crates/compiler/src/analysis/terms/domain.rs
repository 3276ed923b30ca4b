//! What terms are where each variable has bounds.

use cranelift_entity::{SparseMap, SparseMapValue};

use super::operation::{operation_range, simplify, wrapped};
use super::{Atom, AtomKind, Cond, CondKind, Interval, Linear, Terms};

/// Bounds of every variable, and what terms are within them.
pub struct Domain<'t> {
    terms: &'t Terms,
    ranges: Vec<Interval>,
    resolved: SparseMap<Atom, Resolved>,
    truths: SparseMap<Cond, Truth>,
}

/// What an atom that is no variable is within the bounds.
struct Resolved {
    atom: Atom,
    term: Linear,
    range: Interval,
}

impl SparseMapValue<Atom> for Resolved {
    fn key(&self) -> Atom {
        self.atom
    }
}

/// Whether a condition holds at every point within the bounds, or at none.
struct Truth {
    cond: Cond,
    holds: Option<bool>,
}

impl SparseMapValue<Cond> for Truth {
    fn key(&self) -> Cond {
        self.cond
    }
}

impl<'t> Domain<'t> {
    /// The variables of `terms` within `ranges`.
    pub fn new(terms: &'t Terms, ranges: Vec<Interval>) -> Domain<'t> {
        Domain { terms, ranges, resolved: SparseMap::new(), truths: SparseMap::new() }
    }

    /// The one point at which every variable has the value given.
    pub fn at(terms: &'t Terms, point: &[i128]) -> Domain<'t> {
        Domain::new(terms, point.iter().map(|value| Interval::point(*value)).collect())
    }

    /// Bounds the variables anew; memory is kept.
    pub(in crate::analysis) fn reset(&mut self, ranges: &[Interval]) {
        self.bound(ranges.iter().copied());
    }

    /// Gives every variable one value; memory is kept.
    pub(in crate::analysis) fn move_to(&mut self, point: &[i128]) {
        self.bound(point.iter().map(|value| Interval::point(*value)));
    }

    fn bound(&mut self, ranges: impl Iterator<Item = Interval>) {
        self.ranges.clear();
        self.ranges.extend(ranges);
        self.resolved.clear();
        self.truths.clear();
    }

    /// Where a term lies.
    pub fn range(&mut self, term: &Linear) -> Interval {
        let term = self.resolve(term);
        self.resolved_range(&term)
    }

    /// The term as it is here: linear where the bounds decide it.
    pub fn resolve(&mut self, term: &Linear) -> Linear {
        let mut sum = Linear::constant(term.constant);
        for (atom, factor) in &term.terms {
            let added = match self.terms.atom(*atom) {
                AtomKind::Var(var) => match self.ranges[var.0 as usize].constant() {
                    Some(value) => sum.add_scaled(&Linear::constant(value), *factor),
                    None => sum.add_multiple(*atom, *factor),
                },
                _ => sum.add_scaled(&self.resolved_atom(*atom).term, *factor),
            };
            if !added {
                return term.clone();
            }
        }
        sum
    }

    /// The term's value, if there is only one.
    pub fn value(&mut self, term: &Linear) -> Option<i128> {
        self.range(term).constant()
    }

    fn resolved_range(&self, term: &Linear) -> Interval {
        let parts = term.terms.iter().map(|(atom, factor)| self.atom_range(*atom).scaled(*factor));
        parts.fold(Interval::point(term.constant), Interval::plus)
    }

    /// What an atom that is no variable is here.
    fn resolved_atom(&mut self, atom: Atom) -> &Resolved {
        if !self.resolved.contains_key(atom) {
            let (term, range) = self.resolve_atom(atom);
            self.resolved.insert(Resolved { atom, term, range });
        }
        self.resolved.get(atom).expect("invariant: it was resolved")
    }

    fn resolve_atom(&mut self, atom: Atom) -> (Linear, Interval) {
        let terms = self.terms;
        let (kind, anywhere) = &terms.atoms[atom.0 as usize];
        let simplified = match kind {
            AtomKind::Var(_) | AtomKind::Unknown(_) => Err(*anywhere),
            AtomKind::Binary(op, a, b) => {
                let (a, b) = (self.resolve(a), self.resolve(b));
                let ranges = (self.resolved_range(&a), self.resolved_range(&b));
                let found = simplify(*op, &a, &b, ranges, |term| self.resolved_range(term));
                found.ok_or_else(|| operation_range(*op, ranges.0, ranges.1))
            }
            AtomKind::Wrap(bits, inner) => {
                let inner = self.resolve(inner);
                let range = self.resolved_range(&inner);
                let turns = (range.lo - wrapped(*bits, range.lo)) >> bits;
                let unwrapped = range.plus(Interval::point(-(turns << bits)));
                if unwrapped.within(Interval::signed(*bits)) {
                    Ok(inner.offset(-(turns << bits)))
                } else {
                    Err(*anywhere)
                }
            }
            AtomKind::Choose(cond, a, b) => match self.truth(*cond) {
                Some(true) => Ok(self.resolve(a)),
                Some(false) => Ok(self.resolve(b)),
                None => Err(self.range(a).hull(self.range(b))),
            },
        };
        match simplified {
            Ok(term) => {
                let range = self.resolved_range(&term);
                (term, range)
            }
            Err(range) => match range.constant() {
                Some(value) => (Linear::constant(value), range),
                None => (Linear::atom(atom), range),
            },
        }
    }

    /// Whether a condition holds at every point, or at none.
    pub fn truth(&mut self, cond: Cond) -> Option<bool> {
        if let Some(known) = self.truths.get(cond) {
            return known.holds;
        }
        let terms = self.terms;
        let holds = match terms.cond(cond) {
            CondKind::True => Some(true),
            CondKind::False => Some(false),
            CondKind::Unknown(_) => None,
            CondKind::AtMostZero(term) => {
                let term = self.resolve(term);
                let range = self.resolved_range(&term);
                decide(range.hi <= 0, range.lo > 0)
            }
            CondKind::IsZero(term) => {
                let term = self.resolve(term);
                let range = self.resolved_range(&term);
                decide(range == Interval::point(0), range.lo > 0 || range.hi < 0)
            }
            CondKind::Not(inner) => self.truth(*inner).map(|truth| !truth),
            CondKind::And(a, b) => match (self.truth(*a), self.truth(*b)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            },
            CondKind::Or(a, b) => match (self.truth(*a), self.truth(*b)) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            },
        };
        self.truths.insert(Truth { cond, holds });
        holds
    }

    /// Where an atom of a resolved term lies.
    pub(in crate::analysis) fn atom_range(&self, atom: Atom) -> Interval {
        match self.terms.atom(atom) {
            AtomKind::Var(var) => self.ranges[var.0 as usize],
            _ => match self.resolved.get(atom) {
                Some(resolved) => resolved.range,
                None => self.terms.atoms[atom.0 as usize].1,
            },
        }
    }

    /// What the domain is of.
    pub(in crate::analysis) fn terms(&self) -> &'t Terms {
        self.terms
    }

    /// Bounds of every variable.
    pub(in crate::analysis) fn ranges(&self) -> &[Interval] {
        &self.ranges
    }
}

fn decide(always: bool, never: bool) -> Option<bool> {
    match (always, never) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    }
}
