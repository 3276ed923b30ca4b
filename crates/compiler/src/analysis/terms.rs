//! Integers and truth values of one element as terms over bounded variables.
//!
//! A [`Linear`] is a sum of multiples of atoms; an atom is a variable, something unknown of a known
//! range, or an operation that is not linear. Equal terms are equal values, so that what is shared
//! cancels. In a [`Domain`], which bounds each variable, every term has an interval, and operations
//! become linear where the bounds decide them: a quotient whose remainder is in range, a minimum
//! whose sides do not cross. Arithmetic is exact: where a kernel's integers may wrap around, a term
//! says so.

use std::fmt;

use cranelift_entity::{SparseMap, SparseMapValue, entity_impl};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

mod substitute;

pub use substitute::Substitution;

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

/// The integers `lo..=hi`; empty when `lo > hi`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Interval {
    /// The least.
    pub lo: i128,
    /// The greatest.
    pub hi: i128,
}

impl Interval {
    /// The integers `lo..=hi`.
    pub fn new(lo: i128, hi: i128) -> Interval {
        Interval { lo, hi }
    }

    /// One integer.
    pub fn point(value: i128) -> Interval {
        Interval { lo: value, hi: value }
    }

    /// The signed integers of `bits` bits.
    pub fn signed(bits: u32) -> Interval {
        let half = 1i128 << (bits.clamp(1, 64) - 1);
        Interval { lo: -half, hi: half - 1 }
    }

    /// The integer, if it is one.
    pub fn constant(self) -> Option<i128> {
        (self.lo == self.hi).then_some(self.lo)
    }

    /// True when every integer of `self` is in `other`.
    pub fn within(self, other: Interval) -> bool {
        other.lo <= self.lo && self.hi <= other.hi
    }

    fn hull(self, other: Interval) -> Interval {
        Interval { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi) }
    }

    fn scaled(self, factor: i128) -> Interval {
        let (a, b) = (self.lo.saturating_mul(factor), self.hi.saturating_mul(factor));
        Interval { lo: a.min(b), hi: a.max(b) }
    }

    fn plus(self, other: Interval) -> Interval {
        Interval { lo: self.lo.saturating_add(other.lo), hi: self.hi.saturating_add(other.hi) }
    }
}

/// A sum of multiples of atoms and a constant.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Linear {
    /// Atoms in order with factors that are not zero.
    pub terms: SmallVec<[(Atom, i128); 3]>,
    /// What is added.
    pub constant: i128,
}

impl Linear {
    /// A constant.
    pub fn constant(value: i128) -> Linear {
        Linear { terms: SmallVec::new(), constant: value }
    }

    /// An atom itself.
    pub fn atom(atom: Atom) -> Linear {
        Linear { terms: SmallVec::from_slice(&[(atom, 1)]), constant: 0 }
    }

    /// The constant, if it is one.
    pub fn as_constant(&self) -> Option<i128> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// The factor of `atom`.
    pub fn factor(&self, atom: Atom) -> i128 {
        self.terms.iter().find(|(known, _)| *known == atom).map_or(0, |(_, factor)| *factor)
    }

    /// `self * factor`; `None` beyond 128 bits.
    pub fn scaled(&self, factor: i128) -> Option<Linear> {
        if factor == 0 {
            return Some(Linear::default());
        }
        let terms =
            self.terms.iter().map(|(atom, known)| Some((*atom, known.checked_mul(factor)?)));
        Some(Linear {
            terms: terms.collect::<Option<_>>()?,
            constant: self.constant.checked_mul(factor)?,
        })
    }

    /// Adds `other * factor`; false beyond 128 bits, after which the sum is none.
    fn add_scaled(&mut self, other: &Linear, factor: i128) -> bool {
        let all = other.terms.iter().all(|(atom, own)| {
            own.checked_mul(factor).is_some_and(|scaled| self.add_multiple(*atom, scaled))
        });
        let constant = other.constant.checked_mul(factor);
        let constant = constant.and_then(|constant| self.constant.checked_add(constant));
        self.constant = constant.unwrap_or_default();
        all && constant.is_some()
    }

    /// Adds `atom * factor`; false beyond 128 bits.
    fn add_multiple(&mut self, atom: Atom, factor: i128) -> bool {
        match self.terms.binary_search_by_key(&atom, |(known, _)| *known) {
            Ok(at) => {
                let Some(sum) = self.terms[at].1.checked_add(factor) else { return false };
                match sum {
                    0 => drop(self.terms.remove(at)),
                    sum => self.terms[at].1 = sum,
                }
            }
            Err(at) if factor != 0 => self.terms.insert(at, (atom, factor)),
            Err(_) => {}
        }
        true
    }

    /// `self + other`; `None` beyond 128 bits.
    pub fn plus(&self, other: &Linear) -> Option<Linear> {
        let mut terms = SmallVec::new();
        let (mut a, mut b) = (self.terms.iter().peekable(), other.terms.iter().peekable());
        loop {
            match (a.peek(), b.peek()) {
                (Some((left, _)), Some((right, _))) if left == right => {
                    let (left, right) = (a.next()?, b.next()?);
                    let factor = left.1.checked_add(right.1)?;
                    if factor != 0 {
                        terms.push((left.0, factor));
                    }
                }
                (Some((left, _)), Some((right, _))) if left < right => {
                    terms.extend(a.next().copied())
                }
                (Some(_), None) => terms.extend(a.next().copied()),
                (_, Some(_)) => terms.extend(b.next().copied()),
                (None, None) => break,
            }
        }
        Some(Linear { terms, constant: self.constant.checked_add(other.constant)? })
    }

    /// `self - other`; `None` beyond 128 bits.
    pub fn minus(&self, other: &Linear) -> Option<Linear> {
        self.plus(&other.scaled(-1)?)
    }

    /// `self + value`.
    pub fn offset(&self, value: i128) -> Linear {
        Linear { terms: self.terms.clone(), constant: self.constant.saturating_add(value) }
    }
}

/// Operations that are not linear in general. Quotients and remainders round toward zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Product.
    Mul,
    /// Quotient.
    Div,
    /// Remainder with the sign of the dividend.
    Rem,
    /// The smaller one.
    Min,
    /// The larger one.
    Max,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
}

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
    pub const TRUE: Cond = Cond(0);
    /// Never so.
    pub const FALSE: Cond = Cond(1);

    /// A fresh variable within `range`.
    pub fn var(&mut self, range: Interval) -> Var {
        let var = Var(self.vars.len() as u32);
        self.vars.push(range);
        var
    }

    /// A variable as a term.
    pub fn var_term(&mut self, var: Var) -> Linear {
        let range = self.vars[var.0 as usize];
        match range.constant() {
            Some(value) => Linear::constant(value),
            None => Linear::atom(self.intern(AtomKind::Var(var), range)),
        }
    }

    /// The atom of a variable; `None` when it has one value.
    pub fn var_atom(&mut self, var: Var) -> Option<Atom> {
        self.var_term(var).terms.first().map(|(atom, _)| *atom)
    }

    /// Bounds of every variable.
    pub fn var_ranges(&self) -> &[Interval] {
        &self.vars
    }

    /// Something unknown within `range`.
    pub fn unknown(&mut self, range: Interval) -> Linear {
        self.unknowns += 1;
        Linear::atom(self.intern(AtomKind::Unknown(self.unknowns), range))
    }

    /// An unknown truth value.
    pub fn unknown_cond(&mut self) -> Cond {
        self.unknowns += 1;
        self.intern_cond(CondKind::Unknown(self.unknowns))
    }

    /// What an atom is.
    pub fn atom(&self, atom: Atom) -> &AtomKind {
        &self.atoms[atom.0 as usize].0
    }

    /// What a truth value is.
    pub fn cond(&self, cond: Cond) -> &CondKind {
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
    pub fn at_most_zero(&mut self, term: Option<Linear>) -> Cond {
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
    pub fn at_most(&mut self, a: &Linear, b: &Linear) -> Cond {
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
    pub fn visit_cond(&self, cond: Cond, visit: &mut dyn FnMut(Atom, &AtomKind)) {
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

    /// True when a truth value depends on an unknown one.
    pub fn has_unknown_cond(&self, cond: Cond) -> bool {
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

/// The signed integer of `bits` bits that is congruent to `value`.
fn wrapped(bits: u32, value: i128) -> i128 {
    let modulus = 1i128 << bits;
    let low = value.rem_euclid(modulus);
    if low >= modulus / 2 { low - modulus } else { low }
}

/// `a op b` as a linear term, where the ranges allow it.
fn simplify(
    op: Operation,
    a: &Linear,
    b: &Linear,
    (of_a, of_b): (Interval, Interval),
    range: impl Fn(&Linear) -> Interval,
) -> Option<Linear> {
    if let (Some(a), Some(b)) = (of_a.constant(), of_b.constant()) {
        return apply(op, a, b).map(Linear::constant);
    }
    match op {
        Operation::Mul => match (of_a.constant(), of_b.constant()) {
            (_, Some(factor)) => a.scaled(factor),
            (Some(factor), _) => b.scaled(factor),
            _ => None,
        },
        Operation::Div | Operation::Rem if of_a.lo >= 0 && of_a.hi < of_b.lo => {
            Some(if op == Operation::Div { Linear::default() } else { a.clone() })
        }
        Operation::Div | Operation::Rem => {
            let divisor = of_b.constant().filter(|divisor| *divisor > 0)?;
            let quotient = quotient(a, divisor, of_a, &range)?;
            match op {
                Operation::Div => Some(quotient),
                _ => a.minus(&quotient.scaled(divisor)?),
            }
        }
        Operation::Min | Operation::Max => {
            let difference = range(&a.minus(b)?);
            let a_is_less = difference.hi <= 0;
            if !a_is_less && difference.lo < 0 {
                return None;
            }
            Some(if a_is_less == (op == Operation::Min) { a.clone() } else { b.clone() })
        }
        Operation::And | Operation::Or | Operation::Xor => None,
    }
}

/// `a / divisor` as a linear term: what is not a multiple of the divisor is within one quotient.
fn quotient(
    a: &Linear,
    divisor: i128,
    of_a: Interval,
    range: &impl Fn(&Linear) -> Interval,
) -> Option<Linear> {
    if of_a.lo / divisor == of_a.hi / divisor && (of_a.lo >= 0 || of_a.hi <= 0) {
        return Some(Linear::constant(of_a.lo / divisor));
    }
    let mut multiple = Linear::constant(a.constant.div_euclid(divisor));
    let mut rest = Linear::constant(a.constant.rem_euclid(divisor));
    for &(atom, factor) in &a.terms {
        if factor % divisor == 0 {
            multiple.terms.push((atom, factor / divisor));
        } else {
            rest.terms.push((atom, factor));
        }
    }
    if multiple.terms.is_empty() {
        return None;
    }
    let rest = range(&rest);
    let step = rest.lo.div_euclid(divisor);
    // Rounding toward zero and rounding down agree on what is not negative.
    let exact = rest == Interval::point(0);
    let one = step == rest.hi.div_euclid(divisor) && of_a.lo >= 0;
    (exact || one).then(|| multiple.offset(step))
}

/// `a op b`; `None` where it is not defined.
fn apply(op: Operation, a: i128, b: i128) -> Option<i128> {
    match op {
        Operation::Mul => a.checked_mul(b),
        Operation::Div => a.checked_div(b),
        Operation::Rem => a.checked_rem(b),
        Operation::Min => Some(a.min(b)),
        Operation::Max => Some(a.max(b)),
        Operation::And => Some(a & b),
        Operation::Or => Some(a | b),
        Operation::Xor => Some(a ^ b),
    }
}

/// Where `a op b` lies. Quotients and remainders by 0 have no value.
fn operation_range(op: Operation, a: Interval, b: Interval) -> Interval {
    let all = Interval::signed(64);
    match op {
        Operation::Mul => {
            let corners = [a.lo, a.hi].map(|x| [b.lo, b.hi].map(|y| x.saturating_mul(y)));
            let corners = corners.as_flattened();
            let lo = corners.iter().min().copied().unwrap_or(all.lo);
            let hi = corners.iter().max().copied().unwrap_or(all.hi);
            Interval { lo, hi }
        }
        Operation::Div => {
            if b.lo > 0 {
                let corners = [a.lo / b.lo, a.lo / b.hi, a.hi / b.lo, a.hi / b.hi];
                let lo = corners.iter().min().copied().unwrap_or(all.lo);
                let hi = corners.iter().max().copied().unwrap_or(all.hi);
                Interval { lo, hi }
            } else {
                let most = a.lo.saturating_abs().max(a.hi.saturating_abs());
                Interval { lo: -most, hi: most }
            }
        }
        Operation::Rem => {
            let most = b.lo.saturating_abs().max(b.hi.saturating_abs()).saturating_sub(1).max(0);
            Interval {
                lo: if a.lo >= 0 { 0 } else { a.lo.max(-most) },
                hi: if a.hi <= 0 { 0 } else { a.hi.min(most) },
            }
        }
        Operation::Min => Interval { lo: a.lo.min(b.lo), hi: a.hi.min(b.hi) },
        Operation::Max => Interval { lo: a.lo.max(b.lo), hi: a.hi.max(b.hi) },
        Operation::And if a.lo >= 0 && b.lo >= 0 => Interval { lo: 0, hi: a.hi.min(b.hi) },
        Operation::And if a.lo >= 0 => Interval { lo: 0, hi: a.hi },
        Operation::And if b.lo >= 0 => Interval { lo: 0, hi: b.hi },
        Operation::Or | Operation::Xor if a.lo >= 0 && b.lo >= 0 => {
            let bits = 128 - (a.hi | b.hi).leading_zeros();
            Interval { lo: 0, hi: (1i128 << bits.min(126)) - 1 }
        }
        Operation::And | Operation::Or | Operation::Xor => all,
    }
}

/// Adds the variable that an atom is, if it is one.
pub(super) fn note_var(kind: &AtomKind, used: &mut FxHashSet<Var>) {
    if let AtomKind::Var(var) = kind {
        used.insert(*var);
    }
}

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
    pub(super) fn reset(&mut self, ranges: &[Interval]) {
        self.bound(ranges.iter().copied());
    }

    /// Gives every variable one value; memory is kept.
    pub(super) fn move_to(&mut self, point: &[i128]) {
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
                let ranges = (self.range(a), self.range(b));
                let (a, b) = (self.resolve(a), self.resolve(b));
                let found = simplify(*op, &a, &b, ranges, |term| self.resolved_range(term));
                found.ok_or_else(|| operation_range(*op, ranges.0, ranges.1))
            }
            AtomKind::Wrap(bits, inner) => {
                let range = self.range(inner);
                let turns = (range.lo - wrapped(*bits, range.lo)) >> bits;
                let unwrapped = range.plus(Interval::point(-(turns << bits)));
                if unwrapped.within(Interval::signed(*bits)) {
                    Ok(self.resolve(inner).offset(-(turns << bits)))
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
    pub(super) fn atom_range(&self, atom: Atom) -> Interval {
        match self.terms.atom(atom) {
            AtomKind::Var(var) => self.ranges[var.0 as usize],
            _ => match self.resolved.get(atom) {
                Some(resolved) => resolved.range,
                None => self.terms.atoms[atom.0 as usize].1,
            },
        }
    }

    /// What the domain is of.
    pub(super) fn terms(&self) -> &'t Terms {
        self.terms
    }

    /// Bounds of every variable.
    pub(super) fn ranges(&self) -> &[Interval] {
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

impl fmt::Debug for Terms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Terms").field("atoms", &self.atoms).field("conds", &self.conds).finish()
    }
}
