//! Values of terms at many points at once.
//!
//! What many points are looked at for is worked out for all of them by one operation after another,
//! as columns of a table, which takes a small part of the time that bounding terms at each point in
//! turn does.

use rustc_hash::FxHashMap;

use super::operation::{apply, wrapped};
use super::{Atom, AtomKind, Cond, CondKind, Interval, Linear, Terms, Var};

/// A value at each point; `None` where it is not known, not defined or beyond 64 bits.
pub(in crate::analysis) type Column = Vec<Option<i64>>;

/// A truth value at each point; `None` where it is not known.
type Truths = Vec<Option<bool>>;

/// Terms at so many points.
pub(in crate::analysis) struct Columns<'t> {
    terms: &'t Terms,
    points: usize,
    vars: FxHashMap<Var, Column>,
    atoms: FxHashMap<Atom, Column>,
    conds: FxHashMap<Cond, Truths>,
}

impl<'t> Columns<'t> {
    /// At `points` points, with the values of the variables at each. Other variables are not known
    /// unless they have only one value.
    pub(in crate::analysis) fn new(
        terms: &'t Terms,
        points: usize,
        vars: FxHashMap<Var, Column>,
    ) -> Columns<'t> {
        Columns { terms, points, vars, atoms: FxHashMap::default(), conds: FxHashMap::default() }
    }

    /// The values of a term.
    pub(in crate::analysis) fn values(&mut self, term: &Linear) -> Column {
        let mut sum = vec![i64::try_from(term.constant).ok(); self.points];
        for &(atom, factor) in &term.terms {
            let factor = i64::try_from(factor).ok();
            for (sum, value) in sum.iter_mut().zip(self.atom(atom)) {
                let product = value.zip(factor).and_then(|(value, by)| value.checked_mul(by));
                *sum = sum.zip(product).and_then(|(sum, product)| sum.checked_add(product));
            }
        }
        sum
    }

    fn atom(&mut self, atom: Atom) -> &Column {
        if !self.atoms.contains_key(&atom) {
            let column = self.column(atom);
            self.atoms.insert(atom, column);
        }
        &self.atoms[&atom]
    }

    fn column(&mut self, atom: Atom) -> Column {
        let terms = self.terms;
        match terms.atom(atom) {
            AtomKind::Var(var) => match self.vars.get(var) {
                Some(values) => values.clone(),
                None => self.only(terms.var_ranges()[var.0 as usize]),
            },
            AtomKind::Unknown(_) => self.only(terms.range(&Linear::atom(atom))),
            AtomKind::Binary(op, a, b) => {
                let (a, b) = (self.values(a), self.values(b));
                let both = a.into_iter().zip(b).map(|(a, b)| a.zip(b));
                let value = |(a, b): (i64, i64)| apply(*op, a.into(), b.into());
                both.map(|both| both.and_then(value).and_then(|value| value.try_into().ok()))
                    .collect()
            }
            AtomKind::Wrap(bits, inner) => {
                let wrap = |value: i64| wrapped(*bits, value.into()).try_into().ok();
                self.values(inner).into_iter().map(|value| value.and_then(wrap)).collect()
            }
            AtomKind::Choose(cond, a, b) => {
                let (a, b) = (self.values(a), self.values(b));
                let sides = a.into_iter().zip(b);
                let choose = |(holds, (a, b)): (&Option<bool>, _)| match holds {
                    Some(true) => a,
                    Some(false) => b,
                    None => None,
                };
                self.truths(*cond).iter().zip(sides).map(choose).collect()
            }
        }
    }

    fn only(&self, range: Interval) -> Column {
        vec![range.constant().and_then(|value| value.try_into().ok()); self.points]
    }

    /// Where a condition holds.
    pub(in crate::analysis) fn truths(&mut self, cond: Cond) -> &Truths {
        if !self.conds.contains_key(&cond) {
            let truths = self.decide(cond);
            self.conds.insert(cond, truths);
        }
        &self.conds[&cond]
    }

    fn decide(&mut self, cond: Cond) -> Truths {
        match self.terms.cond(cond) {
            CondKind::True => vec![Some(true); self.points],
            CondKind::False => vec![Some(false); self.points],
            CondKind::Unknown(_) => vec![None; self.points],
            CondKind::AtMostZero(term) => {
                self.values(term).into_iter().map(|value| Some(value? <= 0)).collect()
            }
            CondKind::IsZero(term) => {
                self.values(term).into_iter().map(|value| Some(value? == 0)).collect()
            }
            CondKind::Not(inner) => {
                self.truths(*inner).iter().map(|holds| holds.map(|holds| !holds)).collect()
            }
            CondKind::And(a, b) => self.either((*a, *b), false),
            CondKind::Or(a, b) => self.either((*a, *b), true),
        }
    }

    /// What two conditions are together, of which one that is `decisive` settles it.
    fn either(&mut self, (a, b): (Cond, Cond), decisive: bool) -> Truths {
        let a = self.truths(a).clone();
        let together = |(a, b): (Option<bool>, &Option<bool>)| match (a, *b) {
            (Some(a), _) | (_, Some(a)) if a == decisive => Some(decisive),
            (Some(_), Some(_)) => Some(!decisive),
            _ => None,
        };
        a.into_iter().zip(self.truths(b)).map(together).collect()
    }
}
