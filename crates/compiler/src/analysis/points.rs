//! The points of a launch at which an access happens, one after another.
//!
//! What a search gives up on, such as remainders of what programs and lanes add up to, is decided by
//! looking at all points where they are few, and at the first ones where they are many.

use rustc_hash::FxHashSet;

use super::bounds::happens;
use super::elements::{Access, Elements};
use super::terms::{AtomKind, Cond, Domain, Interval, Linear, Var};

/// Points at which an access happens.
pub(super) struct Points {
    /// The variables that matter, with the values that were looked at.
    vars: Vec<(Var, Interval)>,
    /// Numbers of points, each with the element that is accessed there.
    pub(super) found: Vec<(i128, i128)>,
    /// Whether these are all.
    pub(super) complete: bool,
}

impl Points {
    /// Those of `access` among `programs`, where `within` holds; no more than `limit` points are
    /// looked at. `None` when it depends on more than the program, loops and the lane.
    pub(super) fn of(
        elements: &Elements<'_>,
        access: &Access,
        programs: &[Linear; 3],
        within: &[Cond],
        limit: i128,
    ) -> Option<Points> {
        let terms = &elements.terms;
        let conds: Vec<Cond> = happens(access).into_iter().chain(within.iter().copied()).collect();
        let mut used: FxHashSet<Var> = access.lanes.iter().copied().collect();
        let mut note = |_, kind: &AtomKind| {
            if let AtomKind::Var(var) = kind {
                used.insert(*var);
            }
        };
        conds.iter().for_each(|cond| terms.visit_cond(*cond, &mut note));
        programs.iter().for_each(|program| terms.visit(program, &mut note));
        terms.visit(&access.offset, &mut note);
        let known: FxHashSet<Var> = elements.variables().map(|(_, var)| var).collect();
        if !used.is_subset(&known) {
            return None;
        }
        let mut used: Vec<Var> = used.into_iter().collect();
        used.sort_unstable();
        let range = |var: Var| (var, terms.var_ranges()[var.0 as usize]);
        let mut vars: Vec<(Var, Interval)> = used.into_iter().map(range).collect();
        let complete = !shorten(&mut vars, limit);
        let mut points = Points { vars, found: Vec::new(), complete };
        points.look(elements, access, &conds);
        Some(points)
    }

    fn look(&mut self, elements: &Elements<'_>, access: &Access, conds: &[Cond]) {
        let mut ranges = elements.terms.var_ranges().to_vec();
        let mut domain = Domain::new(&elements.terms, Vec::new());
        for number in 0..count(&self.vars) {
            elements.pause();
            for (var, value) in self.values(number) {
                ranges[var.0 as usize] = Interval::point(value);
            }
            domain.reset(&ranges);
            let truths = conds.iter().map(|cond| domain.truth(*cond));
            let truths: Vec<Option<bool>> = truths.collect();
            if truths.contains(&Some(false)) {
                continue;
            }
            match domain.value(&access.offset) {
                Some(element) if !truths.contains(&None) => self.found.push((number, element)),
                _ => self.complete = false,
            }
        }
    }

    /// The values of the variables at a point.
    pub(super) fn values(&self, number: i128) -> impl Iterator<Item = (Var, i128)> + '_ {
        self.vars.iter().scan(number, |rest, (var, range)| {
            let value = range.lo + *rest % extent(*range);
            *rest /= extent(*range);
            Some((*var, value))
        })
    }

    /// A value for each of so many variables at a point: of those that do not matter, the least.
    pub(super) fn whole(&self, elements: &Elements<'_>, number: i128, vars: usize) -> Vec<i128> {
        let ranges = elements.terms.var_ranges().iter().take(vars);
        let mut whole: Vec<i128> = ranges.map(|range| range.lo).collect();
        for (var, value) in self.values(number) {
            if let Some(slot) = whole.get_mut(var.0 as usize) {
                *slot = value;
            }
        }
        whole
    }
}

fn extent(range: Interval) -> i128 {
    range.hi.saturating_sub(range.lo).saturating_add(1)
}

fn count(vars: &[(Var, Interval)]) -> i128 {
    vars.iter().fold(1, |count: i128, (_, range)| count.saturating_mul(extent(*range)))
}

/// Leaves the first values of the variables that have most, until no more than `limit` points are
/// left. Whether there were more.
fn shorten(vars: &mut [(Var, Interval)], limit: i128) -> bool {
    let mut shortened = false;
    while count(vars) > limit {
        let Some((_, longest)) = vars.iter_mut().max_by_key(|(_, range)| extent(*range)) else {
            break;
        };
        longest.hi = longest.lo + extent(*longest) / 2 - 1;
        shortened = true;
    }
    shortened
}
