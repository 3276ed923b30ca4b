//! Integers and truth values of one element as terms over bounded variables.
//!
//! A [`Linear`] is a sum of multiples of atoms; an atom is a variable, something unknown of a known
//! range, or an operation that is not linear. Equal terms are equal values, so that what is shared
//! cancels. In a [`Domain`], which bounds each variable, every term has an interval, and operations
//! become linear where the bounds decide them: a quotient whose remainder is in range, a minimum
//! whose sides do not cross. Arithmetic is exact: where a kernel's integers may wrap around, a term
//! says so.

use std::fmt;

use cranelift_entity::entity_impl;
use rustc_hash::{FxHashMap, FxHashSet};

mod columns;
mod domain;
mod linear;
mod operation;
mod substitute;

pub(super) use columns::{Column, Columns};
pub use domain::Domain;
pub use linear::{Interval, Linear};
pub use operation::Operation;
pub use substitute::Substitution;

pub(super) use operation::wrapped;
use operation::{operation_range, simplify};

/// An atom of a [`Terms`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Atom(u32);
entity_impl!(Atom);

/// A variable of a [`Terms`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Var(pub u32);

/// A truth value of a [`Terms`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cond(u32);
entity_impl!(Cond);

/// What an atom is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum AtomKind {
    /// A variable.
    Var(Var),
    /// Something of which only the range is known; the number tells such things apart.
    Unknown(u32),
    /// An operation.
    Binary(Operation, Linear, Linear),
    /// A signed integer of this many bits that is congruent to the term.
    Wrap(u32, Linear),
    /// The first where the condition holds, else the second.
    Choose(Cond, Linear, Linear),
}

/// What a truth value is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum CondKind {
    /// Always so.
    True,
    /// Never so.
    False,
    /// Not known; the number tells such things apart.
    Unknown(u32),
    /// The term is at most 0.
    AtMostZero(Linear),
    /// The term is 0.
    IsZero(Linear),
    /// Not so; only of [`CondKind::IsZero`] and [`CondKind::Unknown`].
    Not(Cond),
    /// Both.
    And(Cond, Cond),
    /// At least one.
    Or(Cond, Cond),
}

/// Terms, each once, with the variables that they are over.
pub struct Terms {
    atoms: Vec<(AtomKind, Interval)>,
    atom_ids: FxHashMap<AtomKind, Atom>,
    conds: Vec<CondKind>,
    cond_ids: FxHashMap<CondKind, Cond>,
    negations: FxHashMap<Cond, Cond>,
    vars: Vec<Interval>,
    unknowns: u32,
}

impl Default for Terms {
    fn default() -> Terms {
        let mut terms = Terms {
            atoms: Vec::new(),
            atom_ids: FxHashMap::default(),
            conds: Vec::new(),
            cond_ids: FxHashMap::default(),
            negations: FxHashMap::default(),
            vars: Vec::new(),
            unknowns: 0,
        };
        terms.intern_cond(CondKind::True);
        terms.intern_cond(CondKind::False);
        terms
    }
}

impl Terms {
    /// Always so.
    pub(crate) const TRUE: Cond = Cond(0);
    /// Never so.
    pub(crate) const FALSE: Cond = Cond(1);

    /// A fresh variable within `range`.
    pub fn var(&mut self, range: Interval) -> Var {
        let var = Var(self.vars.len() as u32);
        self.vars.push(range);
        var
    }

    /// A variable as a term.
    pub(crate) fn var_term(&mut self, var: Var) -> Linear {
        let range = self.vars[var.0 as usize];
        match range.constant() {
            Some(value) => Linear::constant(value),
            None => Linear::atom(self.intern(AtomKind::Var(var), range)),
        }
    }

    /// The atom of a variable; `None` when it has one value.
    pub(crate) fn var_atom(&mut self, var: Var) -> Option<Atom> {
        self.var_term(var).terms.first().map(|(atom, _)| *atom)
    }

    /// Bounds of every variable.
    pub(crate) fn var_ranges(&self) -> &[Interval] {
        &self.vars
    }

    /// Something unknown within `range`.
    pub fn unknown(&mut self, range: Interval) -> Linear {
        self.unknowns += 1;
        Linear::atom(self.intern(AtomKind::Unknown(self.unknowns), range))
    }

    /// An unknown truth value.
    pub(crate) fn unknown_cond(&mut self) -> Cond {
        self.unknowns += 1;
        self.intern_cond(CondKind::Unknown(self.unknowns))
    }

    /// What an atom is.
    pub fn atom(&self, atom: Atom) -> &AtomKind {
        &self.atoms[atom.0 as usize].0
    }

    /// What a truth value is.
    pub(crate) fn cond(&self, cond: Cond) -> &CondKind {
        &self.conds[cond.0 as usize]
    }

    fn intern(&mut self, kind: AtomKind, range: Interval) -> Atom {
        if let Some(&known) = self.atom_ids.get(&kind) {
            return known;
        }
        let atom = Atom(self.atoms.len() as u32);
        self.atoms.push((kind.clone(), range));
        self.atom_ids.insert(kind, atom);
        atom
    }

    fn intern_cond(&mut self, kind: CondKind) -> Cond {
        if let Some(&known) = self.cond_ids.get(&kind) {
            return known;
        }
        let cond = Cond(self.conds.len() as u32);
        self.conds.push(kind.clone());
        self.cond_ids.insert(kind, cond);
        cond
    }

    /// All values that a term can have.
    pub fn range(&self, term: &Linear) -> Interval {
        let parts =
            term.terms.iter().map(|(atom, factor)| self.atoms[atom.0 as usize].1.scaled(*factor));
        parts.fold(Interval::point(term.constant), Interval::plus)
    }

    /// `a op b`.
    pub fn binary(&mut self, op: Operation, a: &Linear, b: &Linear) -> Linear {
        let ranges = (self.range(a), self.range(b));
        match simplify(op, a, b, ranges, |term| self.range(term)) {
            Some(term) => term,
            None => {
                let range = operation_range(op, ranges.0, ranges.1);
                Linear::atom(self.intern(AtomKind::Binary(op, a.clone(), b.clone()), range))
            }
        }
    }

    /// `term` as a signed integer of `bits` bits, which wraps around.
    pub fn wrap(&mut self, bits: u32, term: &Linear) -> Linear {
        let all = Interval::signed(bits);
        if self.range(term).within(all) {
            return term.clone();
        }
        if let Some(value) = term.as_constant() {
            return Linear::constant(wrapped(bits, value));
        }
        Linear::atom(self.intern(AtomKind::Wrap(bits, term.clone()), all))
    }

    /// `a` where `cond` holds, else `b`.
    pub fn choose(&mut self, cond: Cond, a: &Linear, b: &Linear) -> Linear {
        match cond {
            Terms::TRUE => a.clone(),
            Terms::FALSE => b.clone(),
            _ if a == b => a.clone(),
            _ => {
                let range = self.range(a).hull(self.range(b));
                Linear::atom(self.intern(AtomKind::Choose(cond, a.clone(), b.clone()), range))
            }
        }
    }

    /// `term <= 0`.
    pub(crate) fn at_most_zero(&mut self, term: Option<Linear>) -> Cond {
        let Some(term) = term else { return self.unknown_cond() };
        let range = self.range(&term);
        if range.hi <= 0 {
            Terms::TRUE
        } else if range.lo > 0 {
            Terms::FALSE
        } else {
            self.intern_cond(CondKind::AtMostZero(term))
        }
    }

    /// `a <= b`.
    pub(crate) fn at_most(&mut self, a: &Linear, b: &Linear) -> Cond {
        self.at_most_zero(a.minus(b))
    }

    /// `a < b`.
    pub fn less(&mut self, a: &Linear, b: &Linear) -> Cond {
        self.at_most_zero(a.minus(b).map(|difference| difference.offset(1)))
    }

    /// `a == b`.
    pub fn equal(&mut self, a: &Linear, b: &Linear) -> Cond {
        let Some(difference) = a.minus(b) else { return self.unknown_cond() };
        let range = self.range(&difference);
        if range == Interval::point(0) {
            Terms::TRUE
        } else if range.lo > 0 || range.hi < 0 {
            Terms::FALSE
        } else {
            self.intern_cond(CondKind::IsZero(difference))
        }
    }

    /// Not so.
    pub fn not(&mut self, cond: Cond) -> Cond {
        if let Some(&known) = self.negations.get(&cond) {
            return known;
        }
        let negation = self.negation(cond);
        self.negations.insert(cond, negation);
        negation
    }

    fn negation(&mut self, cond: Cond) -> Cond {
        match self.cond(cond).clone() {
            CondKind::True => Terms::FALSE,
            CondKind::False => Terms::TRUE,
            CondKind::Not(inner) => inner,
            CondKind::AtMostZero(term) => {
                let negated = term.scaled(-1).map(|term| term.offset(1));
                self.at_most_zero(negated)
            }
            CondKind::And(a, b) => {
                let (a, b) = (self.not(a), self.not(b));
                self.or(a, b)
            }
            CondKind::Or(a, b) => {
                let (a, b) = (self.not(a), self.not(b));
                self.and(a, b)
            }
            CondKind::Unknown(_) | CondKind::IsZero(_) => self.intern_cond(CondKind::Not(cond)),
        }
    }

    /// Both.
    pub fn and(&mut self, a: Cond, b: Cond) -> Cond {
        match (a, b) {
            (Terms::FALSE, _) | (_, Terms::FALSE) => Terms::FALSE,
            (Terms::TRUE, other) | (other, Terms::TRUE) => other,
            (a, b) if a == b => a,
            (a, b) => self.intern_cond(CondKind::And(a.min(b), a.max(b))),
        }
    }

    /// At least one.
    pub fn or(&mut self, a: Cond, b: Cond) -> Cond {
        match (a, b) {
            (Terms::TRUE, _) | (_, Terms::TRUE) => Terms::TRUE,
            (Terms::FALSE, other) | (other, Terms::FALSE) => other,
            (a, b) if a == b => a,
            (a, b) => self.intern_cond(CondKind::Or(a.min(b), a.max(b))),
        }
    }

    /// Exactly one.
    pub fn xor(&mut self, a: Cond, b: Cond) -> Cond {
        let (not_a, not_b) = (self.not(a), self.not(b));
        let (only_a, only_b) = (self.and(a, not_b), self.and(not_a, b));
        self.or(only_a, only_b)
    }

    /// Calls `visit` on every atom of `term`, those inside atoms included.
    pub fn visit(&self, term: &Linear, visit: &mut dyn FnMut(Atom, &AtomKind)) {
        self.visit_term(term, &mut Seen::default(), visit);
    }

    /// As [`Terms::visit`], of a truth value.
    pub(crate) fn visit_cond(&self, cond: Cond, visit: &mut dyn FnMut(Atom, &AtomKind)) {
        self.visit_truth(cond, &mut Seen::default(), visit);
    }

    fn visit_term(&self, term: &Linear, seen: &mut Seen, visit: &mut dyn FnMut(Atom, &AtomKind)) {
        for &(atom, _) in &term.terms {
            if !seen.atoms.insert(atom) {
                continue;
            }
            let kind = self.atom(atom);
            visit(atom, kind);
            match kind {
                AtomKind::Var(_) | AtomKind::Unknown(_) => {}
                AtomKind::Wrap(_, inner) => self.visit_term(inner, seen, visit),
                AtomKind::Binary(_, a, b) => {
                    self.visit_term(a, seen, visit);
                    self.visit_term(b, seen, visit);
                }
                AtomKind::Choose(cond, a, b) => {
                    self.visit_truth(*cond, seen, visit);
                    self.visit_term(a, seen, visit);
                    self.visit_term(b, seen, visit);
                }
            }
        }
    }

    fn visit_truth(&self, cond: Cond, seen: &mut Seen, visit: &mut dyn FnMut(Atom, &AtomKind)) {
        if !seen.conds.insert(cond) {
            return;
        }
        match self.cond(cond) {
            CondKind::True | CondKind::False | CondKind::Unknown(_) => {}
            CondKind::AtMostZero(term) | CondKind::IsZero(term) => {
                self.visit_term(term, seen, visit);
            }
            CondKind::Not(inner) => self.visit_truth(*inner, seen, visit),
            CondKind::And(a, b) | CondKind::Or(a, b) => {
                self.visit_truth(*a, seen, visit);
                self.visit_truth(*b, seen, visit);
            }
        }
    }

    /// Whether a term depends on nothing unknown.
    pub(super) fn is_known(&self, term: &Linear) -> bool {
        let mut known = true;
        self.visit(term, &mut |_, kind| known &= !matches!(kind, AtomKind::Unknown(_)));
        known
    }

    /// The point with the least value for variables made after it.
    pub(super) fn padded(&self, point: &[i128]) -> Vec<i128> {
        let rest = self.var_ranges().iter().skip(point.len()).map(|range| range.lo);
        point.iter().copied().chain(rest).collect()
    }

    /// True when a truth value depends on an unknown one.
    pub(crate) fn has_unknown_cond(&self, cond: Cond) -> bool {
        let mut seen = FxHashSet::default();
        let mut pending = vec![cond];
        while let Some(cond) = pending.pop() {
            match self.cond(cond) {
                _ if !seen.insert(cond) => {}
                CondKind::Unknown(_) => return true,
                CondKind::Not(inner) => pending.push(*inner),
                CondKind::And(a, b) | CondKind::Or(a, b) => pending.extend([*a, *b]),
                _ => {}
            }
        }
        false
    }
}

/// Atoms and truth values that a visit has met: they are shared, so that following each path to
/// them would take exponential time.
#[derive(Default)]
struct Seen {
    atoms: FxHashSet<Atom>,
    conds: FxHashSet<Cond>,
}

/// Adds the variable that an atom is, if it is one.
pub(super) fn note_var(kind: &AtomKind, used: &mut FxHashSet<Var>) {
    if let AtomKind::Var(var) = kind {
        used.insert(*var);
    }
}

impl fmt::Debug for Terms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Terms").field("atoms", &self.atoms).field("conds", &self.conds).finish()
    }
}
