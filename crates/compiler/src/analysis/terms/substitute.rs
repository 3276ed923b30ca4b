//! Terms with other terms in place of variables.

use rustc_hash::FxHashMap;

use super::{Atom, AtomKind, Cond, CondKind, Interval, Linear, Terms, Var};

/// Terms that take the place of variables, with what they make of atoms and truth values met so
/// far: these are shared by many terms.
#[derive(Debug, Default)]
pub struct Substitution {
    vars: FxHashMap<Var, Linear>,
    atoms: FxHashMap<Atom, Linear>,
    conds: FxHashMap<Cond, Cond>,
}

impl Substitution {
    /// The terms of `vars` in place of these variables; all others stay.
    pub fn new(vars: FxHashMap<Var, Linear>) -> Substitution {
        Substitution { vars, ..Substitution::default() }
    }

    /// What takes the place of `var`; `None` where it stays.
    pub(crate) fn of_var(&self, var: Var) -> Option<&Linear> {
        self.vars.get(&var)
    }

    /// `term` with the terms in place of variables.
    pub fn term(&mut self, terms: &mut Terms, term: &Linear) -> Linear {
        let mut sum = Linear::constant(term.constant);
        for (atom, factor) in &term.terms {
            let part = self.atom(terms, *atom);
            let scaled = part.scaled(*factor).and_then(|part| sum.plus(&part));
            sum = match scaled {
                Some(sum) => sum,
                None => return terms.unknown(Interval::signed(64)),
            };
        }
        sum
    }

    fn atom(&mut self, terms: &mut Terms, atom: Atom) -> Linear {
        if let Some(known) = self.atoms.get(&atom) {
            return known.clone();
        }
        let found = match terms.atom(atom).clone() {
            AtomKind::Var(var) => match self.vars.get(&var) {
                Some(term) => term.clone(),
                None => Linear::atom(atom),
            },
            AtomKind::Unknown(_) => Linear::atom(atom),
            AtomKind::Binary(op, a, b) => {
                let (a, b) = (self.term(terms, &a), self.term(terms, &b));
                terms.binary(op, &a, &b)
            }
            AtomKind::Wrap(bits, inner) => {
                let inner = self.term(terms, &inner);
                terms.wrap(bits, &inner)
            }
            AtomKind::Choose(cond, a, b) => {
                let cond = self.cond(terms, cond);
                let (a, b) = (self.term(terms, &a), self.term(terms, &b));
                terms.choose(cond, &a, &b)
            }
        };
        self.atoms.insert(atom, found.clone());
        found
    }

    /// `cond` with the terms in place of variables.
    pub(crate) fn cond(&mut self, terms: &mut Terms, cond: Cond) -> Cond {
        if let Some(&known) = self.conds.get(&cond) {
            return known;
        }
        let found = match terms.cond(cond).clone() {
            CondKind::True | CondKind::False | CondKind::Unknown(_) => cond,
            CondKind::AtMostZero(term) => {
                let term = self.term(terms, &term);
                terms.at_most_zero(Some(term))
            }
            CondKind::IsZero(term) => {
                let term = self.term(terms, &term);
                terms.equal(&term, &Linear::default())
            }
            CondKind::Not(inner) => {
                let inner = self.cond(terms, inner);
                terms.not(inner)
            }
            CondKind::And(a, b) => {
                let (a, b) = (self.cond(terms, a), self.cond(terms, b));
                terms.and(a, b)
            }
            CondKind::Or(a, b) => {
                let (a, b) = (self.cond(terms, a), self.cond(terms, b));
                terms.or(a, b)
            }
        };
        self.conds.insert(cond, found);
        found
    }
}
