//! Finds a point at which conditions hold, or proves that there is none.
//!
//! Branch and bound over integer boxes: bounds are tightened by each linear condition, and moved to
//! the next number that an equation leaves possible modulo the factors of its other terms; conditions
//! are combined with multipliers that cancel variables (one step of Fourier-Motzkin elimination at
//! a time), corners are tried, and what is left is halved. Exact: a point found satisfies every
//! condition, and nothing is sampled. The number of boxes is bounded, beyond which nothing is said.

use rustc_hash::FxHashSet;

use super::terms::{Atom, AtomKind, Cond, CondKind, Domain, Interval, Linear, Terms, Var};

/// What a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// A value of each variable at which all conditions hold.
    Found(Vec<i128>),
    /// There is no such point.
    Never,
    /// The conditions depend on what is not known, or the search would take too long.
    Unknown,
}

/// What is called now and then in work that may take a while. It may unwind, which gives the work
/// up: a server whose answer is not wanted any more does so.
pub type Pause<'a> = &'a dyn Fn();

/// Rounds of tightening bounds in one box.
const ROUNDS: usize = 4;

/// Conditions that are combined with one, one after another.
const COMBINATIONS: usize = 6;

/// Searches for a point with every variable within its one of `ranges` at which all of `conds` hold.
/// `fuel` is the number of boxes that may be looked at; what is used is taken off it. `pause` is
/// called before each box.
pub fn search(
    terms: &Terms,
    ranges: Vec<Interval>,
    conds: &[Cond],
    fuel: &mut u32,
    pause: Pause<'_>,
) -> Outcome {
    let mut domain = Domain::new(terms, ranges.clone());
    let mut boxes = vec![(ranges, conds.to_vec())];
    let mut undecided = false;
    while let Some((ranges, conds)) = boxes.pop() {
        if *fuel == 0 {
            return Outcome::Unknown;
        }
        *fuel -= 1;
        pause();
        match visit(&mut domain, &conds, ranges) {
            Step::Point(point) => return Outcome::Found(point),
            Step::Empty => {}
            Step::Undecided => undecided = true,
            Step::Halve(low, high) => {
                boxes.push((high, conds.clone()));
                boxes.push((low, conds));
            }
            Step::Either(ranges, first, second) => {
                boxes.push((ranges.clone(), second));
                boxes.push((ranges, first));
            }
        }
    }
    if undecided { Outcome::Unknown } else { Outcome::Never }
}

/// What one box shows.
enum Step {
    Point(Vec<i128>),
    Empty,
    Undecided,
    /// Two halves of the box.
    Halve(Vec<Interval>, Vec<Interval>),
    /// The box under either of two lists of conditions.
    Either(Vec<Interval>, Vec<Cond>, Vec<Cond>),
}

/// What is left of the conditions in a box.
struct Rest {
    /// Conditions that are not decided.
    conds: Vec<Cond>,
    /// Terms that must not be positive, as they are in the box.
    linear: Vec<Linear>,
    /// Terms that must be zero, as they are in the box.
    zero: Vec<Linear>,
}

fn visit(domain: &mut Domain<'_>, conds: &[Cond], mut ranges: Vec<Interval>) -> Step {
    let terms = domain.terms();
    for round in 0..=ROUNDS {
        domain.reset(&ranges);
        let Some(rest) = undecided(terms, domain, conds) else { return Step::Empty };
        if rest.conds.is_empty() {
            return Step::Point(ranges.iter().map(|range| range.lo).collect());
        }
        let mut changed = false;
        for term in &rest.linear {
            match tighten(terms, domain, term, &mut ranges) {
                None => return Step::Empty,
                Some(tightened) => changed |= tightened,
            }
        }
        for term in &rest.zero {
            match align(terms, term, &mut ranges) {
                None => return Step::Empty,
                Some(aligned) => changed |= aligned,
            }
        }
        if !changed || round == ROUNDS {
            return decide(terms, domain, &rest, conds);
        }
    }
    Step::Undecided
}

/// The conditions that a box does not decide; `None` when one of them never holds in it.
fn undecided(terms: &Terms, domain: &mut Domain<'_>, conds: &[Cond]) -> Option<Rest> {
    let mut rest = Rest { conds: Vec::new(), linear: Vec::new(), zero: Vec::new() };
    let mut pending: Vec<Cond> = conds.iter().rev().copied().collect();
    while let Some(cond) = pending.pop() {
        match domain.truth(cond) {
            Some(true) => continue,
            Some(false) => return None,
            None => {}
        }
        match terms.cond(cond) {
            CondKind::And(a, b) => {
                pending.extend([*b, *a]);
                continue;
            }
            CondKind::Or(a, b) if domain.truth(*a) == Some(false) => {
                pending.push(*b);
                continue;
            }
            CondKind::Or(a, b) if domain.truth(*b) == Some(false) => {
                pending.push(*a);
                continue;
            }
            CondKind::AtMostZero(term) => rest.linear.push(domain.resolve(term)),
            CondKind::IsZero(term) => {
                let term = domain.resolve(term);
                rest.linear.extend(term.scaled(-1));
                rest.linear.push(term.clone());
                rest.zero.push(term);
            }
            _ => {}
        }
        rest.conds.push(cond);
    }
    Some(rest)
}

/// Tightens the bounds of variables by `term <= 0`; `None` when nothing is left.
fn tighten(
    terms: &Terms,
    domain: &Domain<'_>,
    term: &Linear,
    ranges: &mut [Interval],
) -> Option<bool> {
    let least = |atom: Atom, factor: i128| {
        let range = domain.atom_range(atom);
        factor.saturating_mul(if factor > 0 { range.lo } else { range.hi })
    };
    let total = term
        .terms
        .iter()
        .fold(term.constant, |sum, (atom, factor)| sum.saturating_add(least(*atom, *factor)));
    let mut changed = false;
    for &(atom, factor) in &term.terms {
        let AtomKind::Var(var) = terms.atom(atom) else { continue };
        let slack = least(atom, factor).saturating_sub(total);
        let range = &mut ranges[var.0 as usize];
        let bound = slack.div_euclid(factor.saturating_abs());
        if factor > 0 && bound < range.hi {
            range.hi = bound;
            changed = true;
        } else if factor < 0 && -bound > range.lo {
            range.lo = -bound;
            changed = true;
        }
        if range.lo > range.hi {
            return None;
        }
    }
    Some(changed)
}

/// Moves the bounds of variables to numbers at which `term` can be zero modulo what the factors of
/// its other terms have in common; `None` when there are none.
fn align(terms: &Terms, term: &Linear, ranges: &mut [Interval]) -> Option<bool> {
    let mut changed = false;
    for &(atom, factor) in &term.terms {
        let AtomKind::Var(var) = terms.atom(atom) else { continue };
        let others = term.terms.iter().filter(|(other, _)| *other != atom);
        let common = others.fold(0, |common, (_, factor)| gcd(common, *factor));
        if common < 2 {
            continue;
        }
        let shared = gcd(common, factor);
        if term.constant % shared != 0 {
            return None;
        }
        let modulus = common / shared;
        let wanted = (-term.constant / shared).rem_euclid(modulus);
        let Some(inverse) = inverse((factor / shared).rem_euclid(modulus), modulus) else {
            continue;
        };
        let Some(rest) = wanted.checked_mul(inverse).map(|rest| rest.rem_euclid(modulus)) else {
            continue;
        };
        let range = &mut ranges[var.0 as usize];
        let (Some(up), Some(down)) = (rest.checked_sub(range.lo), range.hi.checked_sub(rest))
        else {
            continue;
        };
        let (up, down) = (up.rem_euclid(modulus), down.rem_euclid(modulus));
        changed |= up != 0 || down != 0;
        range.lo += up;
        range.hi -= down;
        if range.lo > range.hi {
            return None;
        }
    }
    Some(changed)
}

/// The greatest common divisor, which is not negative.
fn gcd(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    i128::try_from(a).unwrap_or(1)
}

/// The number that multiplied by `value` leaves 1 modulo `modulus`, where they have no divisor in
/// common.
fn inverse(value: i128, modulus: i128) -> Option<i128> {
    let (mut a, mut b) = (modulus, value);
    let (mut of_a, mut of_b) = (0i128, 1i128);
    while b != 0 {
        let quotient = a / b;
        (a, b) = (b, a % b);
        (of_a, of_b) = (of_b, of_a.checked_sub(quotient.checked_mul(of_b)?)?);
    }
    (a == 1).then(|| of_a.rem_euclid(modulus))
}

/// What to do with a box whose bounds do not tighten any more.
fn decide(terms: &Terms, domain: &mut Domain<'_>, rest: &Rest, conds: &[Cond]) -> Step {
    if rest.linear.iter().any(|target| contradicts(domain, target, &rest.linear)) {
        return Step::Empty;
    }
    if let Some(point) = corner(terms, domain, rest, conds) {
        return Step::Point(point);
    }
    if let Some((first, second)) = alternatives(terms, &rest.conds) {
        return Step::Either(domain.ranges().to_vec(), first, second);
    }
    let Some(var) = widest(terms, domain, rest) else { return Step::Undecided };
    let range = domain.ranges()[var.0 as usize];
    let middle = range.lo + (range.hi - range.lo) / 2;
    let (mut low, mut high) = (domain.ranges().to_vec(), domain.ranges().to_vec());
    low[var.0 as usize].hi = middle;
    high[var.0 as usize].lo = middle + 1;
    Step::Halve(low, high)
}

/// The undecided conditions with the first side of a disjunction, and with the second.
fn alternatives(terms: &Terms, conds: &[Cond]) -> Option<(Vec<Cond>, Vec<Cond>)> {
    let (at, a, b) = conds.iter().enumerate().find_map(|(at, cond)| match terms.cond(*cond) {
        CondKind::Or(a, b) => Some((at, *a, *b)),
        _ => None,
    })?;
    let with = |side: Cond| {
        let mut conds = conds.to_vec();
        conds[at] = side;
        conds
    };
    Some((with(a), with(b)))
}

/// True when `target <= 0` cannot hold together with `others`: some sum of multiples of them is
/// positive throughout the box.
fn contradicts(domain: &Domain<'_>, target: &Linear, others: &[Linear]) -> bool {
    let nothing = Linear::default();
    let mut target = target.clone();
    let mut now = least_of_sum(domain, (&target, 1), (&nothing, 1)).unwrap_or(i128::MIN);
    for _ in 0..COMBINATIONS {
        if now > 0 {
            return true;
        }
        // The multipliers of the best sum, and its least value.
        let mut best: Option<(i128, i128, i128, &Linear)> = None;
        for other in others {
            for &(atom, factor) in &target.terms {
                let opposite = other.factor(atom);
                if opposite == 0 || (opposite > 0) == (factor > 0) {
                    continue;
                }
                let divisor = gcd(factor, opposite).max(1);
                let (scale, weight) = (opposite.abs() / divisor, factor.abs() / divisor);
                let gain = least_of_sum(domain, (&target, scale), (other, weight));
                let Some(gain) = gain else { continue };
                // Compared at the target's own scale.
                let better = match &best {
                    None => gain > now.saturating_mul(scale),
                    Some((known, unit, ..)) => {
                        gain.saturating_mul(*unit) > known.saturating_mul(scale)
                    }
                };
                if better {
                    best = Some((gain, scale, weight, other));
                }
            }
        }
        let Some((gain, scale, weight, other)) = best else { return false };
        let sum = target.scaled(scale).zip(other.scaled(weight));
        let Some(sum) = sum.and_then(|(a, b)| a.plus(&b)) else { return false };
        (target, now) = (sum, gain);
    }
    now > 0
}

/// The least value of `a * scale + b * weight` by the bounds of its atoms; `None` beyond 128 bits.
fn least_of_sum(
    domain: &Domain<'_>,
    (a, scale): (&Linear, i128),
    (b, weight): (&Linear, i128),
) -> Option<i128> {
    let constant = a.constant.checked_mul(scale)?.checked_add(b.constant.checked_mul(weight)?)?;
    let (mut left, mut right) = (a.terms.iter().peekable(), b.terms.iter().peekable());
    let mut sum = constant;
    loop {
        let next = match (left.peek(), right.peek()) {
            (None, None) => return Some(sum),
            (Some((atom, _)), Some((other, _))) => (*atom).min(*other),
            (Some((atom, _)), None) | (None, Some((atom, _))) => *atom,
        };
        let mut factor = 0i128;
        if let Some((_, own)) = left.next_if(|(atom, _)| *atom == next) {
            factor = own.checked_mul(scale)?;
        }
        if let Some((_, own)) = right.next_if(|(atom, _)| *atom == next) {
            factor = factor.checked_add(own.checked_mul(weight)?)?;
        }
        if factor != 0 {
            let range = domain.atom_range(next);
            let bound = if factor > 0 { range.lo } else { range.hi };
            sum = sum.saturating_add(factor.saturating_mul(bound));
        }
    }
}

/// A corner of the box at which all conditions hold: the lowest, and those that favor each linear
/// condition.
fn corner(
    terms: &Terms,
    domain: &mut Domain<'_>,
    rest: &Rest,
    conds: &[Cond],
) -> Option<Vec<i128>> {
    let ranges = domain.ranges().to_vec();
    let lowest: Vec<i128> = ranges.iter().map(|range| range.lo).collect();
    let favoring = rest.linear.iter().rev().take(3).map(|term| {
        let mut point = lowest.clone();
        for (atom, factor) in &term.terms {
            if let AtomKind::Var(var) = terms.atom(*atom) {
                let range = ranges[var.0 as usize];
                point[var.0 as usize] = if *factor > 0 { range.lo } else { range.hi };
            }
        }
        point
    });
    let mut points = std::iter::once(lowest.clone()).chain(favoring);
    let found = points.find(|point| {
        domain.move_to(point);
        hold(domain, conds)
    });
    domain.reset(&ranges);
    found
}

fn hold(domain: &mut Domain<'_>, conds: &[Cond]) -> bool {
    conds.iter().all(|cond| domain.truth(*cond) == Some(true))
}

/// The variable to halve: of those inside what is not linear, else of all in the conditions, the
/// one with most values.
fn widest(terms: &Terms, domain: &Domain<'_>, rest: &Rest) -> Option<Var> {
    let width = |var: &Var| {
        let range = domain.ranges()[var.0 as usize];
        range.hi.saturating_sub(range.lo)
    };
    let mut inside = FxHashSet::default();
    for term in &rest.linear {
        for (atom, _) in &term.terms {
            if !matches!(terms.atom(*atom), AtomKind::Var(_)) {
                terms.visit(&Linear::atom(*atom), &mut |_, kind| {
                    if let AtomKind::Var(var) = kind {
                        inside.insert(*var);
                    }
                });
            }
        }
    }
    let of_inside =
        inside.into_iter().filter(|var| width(var) > 0).max_by_key(|var| (width(var), *var));
    if of_inside.is_some() {
        return of_inside;
    }
    let mut all = FxHashSet::default();
    for cond in &rest.conds {
        terms.visit_cond(*cond, &mut |_, kind| {
            if let AtomKind::Var(var) = kind {
                all.insert(*var);
            }
        });
    }
    all.into_iter().filter(|var| width(var) > 0).max_by_key(|var| (width(var), *var))
}
