//! The points of a launch at which an access happens, one after another.
//!
//! What a search gives up on, such as remainders of what programs and lanes add up to, is decided by
//! looking at all points where they are few, and at the first ones where they are many.

use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

use super::elements::{Access, Elements};
use super::terms::{AtomKind, Column, Columns, Cond, Interval, Linear, Terms, Var};

/// Points that are worked out together: few enough for the columns to stay in the cache.
const AT_ONCE: i128 = 1 << 10;

/// Points at which an access happens.
pub(super) struct Points {
    /// The variables that matter, with the values that were looked at.
    vars: Vec<(Var, Interval)>,
    /// Numbers of points, each with the element that is accessed there.
    pub(super) found: Vec<(i128, i128)>,
    /// The same of points at which memory decides whether it happens.
    pub(super) possible: Vec<(i128, i128)>,
    /// Whether those found and possible are all.
    pub(super) bounded: bool,
}

impl Points {
    /// Those of `access` among `programs`, where `within` holds: all of them when there are no more
    /// than `most`, else among the first points, of which there are no more than `part`. `None` when
    /// it depends on more than the program, loops and the lane.
    pub(super) fn of(
        elements: &Elements<'_>,
        access: &Access,
        programs: &[Linear; 3],
        within: &[Cond],
        limits: (i128, i128),
    ) -> Option<Points> {
        let known = elements.variables().map(|(_, var)| var).collect();
        Points::over(elements, access, (programs, within), limits, &known)
    }

    /// As [`Points::of`], where no more than `most` are looked at, and of each number that is drawn all that it may be.
    pub(super) fn drawn(
        elements: &Elements<'_>,
        access: &Access,
        programs: &[Linear; 3],
        within: &[Cond],
        most: i128,
    ) -> Option<Points> {
        let known = elements.variables().map(|(_, var)| var).chain(elements.drawn()).collect();
        Points::over(elements, access, (programs, within), (most, 0), &known)
    }

    /// As [`Points::of`], among these variables.
    fn over(
        elements: &Elements<'_>,
        access: &Access,
        (programs, within): (&[Linear; 3], &[Cond]),
        (most, part): (i128, i128),
        known: &FxHashSet<Var>,
    ) -> Option<Points> {
        let terms = &elements.terms;
        let conds: Vec<Cond> = access.happens().into_iter().chain(within.iter().copied()).collect();
        let mut used: FxHashSet<Var> = access.lanes.iter().copied().collect();
        let mut note = |_, kind: &AtomKind| {
            if let AtomKind::Var(var) = kind {
                used.insert(*var);
            }
        };
        conds.iter().for_each(|cond| terms.visit_cond(*cond, &mut note));
        programs.iter().for_each(|program| terms.visit(program, &mut note));
        terms.visit(&access.offset, &mut note);
        if !used.is_subset(known) {
            return None;
        }
        let mut used: Vec<Var> = used.into_iter().collect();
        used.sort_unstable();
        let range = |var: Var| (var, terms.var_ranges()[var.0 as usize]);
        let mut vars: Vec<(Var, Interval)> = used.into_iter().map(range).collect();
        let bounded = count(&vars) <= most;
        if !bounded {
            shorten(&mut vars, part);
        }
        let (found, possible) = Default::default();
        let mut points = Points { vars, found, possible, bounded };
        points.look(elements, access, &conds);
        Some(points)
    }

    /// Whether those found are all at which it may happen.
    pub(super) fn is_complete(&self) -> bool {
        self.bounded && self.possible.is_empty()
    }

    fn look(&mut self, elements: &Elements<'_>, access: &Access, conds: &[Cond]) {
        let all = count(&self.vars);
        let mut from = 0;
        while from < all {
            elements.pause();
            let numbers = from..all.min(from + AT_ONCE);
            from = numbers.end;
            self.look_at(&elements.terms, numbers, access, conds);
        }
    }

    fn look_at(&mut self, terms: &Terms, numbers: Range<i128>, access: &Access, conds: &[Cond]) {
        let mut stride = 1;
        let mut vars: FxHashMap<Var, Column> = FxHashMap::default();
        for (var, range) in &self.vars {
            vars.insert(*var, column(*range, stride, &numbers));
            stride *= extent(*range);
        }
        let points = (numbers.end - numbers.start) as usize;
        let mut columns = Columns::new(terms, points, vars);
        let mut happens = vec![Some(true); points];
        for cond in conds {
            for (so_far, here) in happens.iter_mut().zip(columns.truths(*cond)) {
                *so_far = match (*so_far, here) {
                    (Some(false), _) | (_, Some(false)) => Some(false),
                    (so_far, here) => so_far.and(*here),
                };
            }
        }
        for ((number, happens), element) in numbers.zip(happens).zip(columns.values(&access.offset))
        {
            match (happens, element) {
                (Some(false), _) => {}
                (Some(true), Some(element)) => self.found.push((number, element.into())),
                (None, Some(element)) => self.possible.push((number, element.into())),
                (_, None) => self.bounded = false,
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

/// The values of a variable at so many points, of which each `stride` in a row have the same.
fn column(range: Interval, stride: i128, numbers: &Range<i128>) -> Column {
    let mut value = range.lo + numbers.start / stride % extent(range);
    let mut same = stride - numbers.start % stride;
    let mut missing = numbers.end - numbers.start;
    let mut column = Column::with_capacity(missing as usize);
    while missing > 0 {
        same = same.min(missing);
        column.extend(std::iter::repeat_n(i64::try_from(value).ok(), same as usize));
        missing -= same;
        value = if value == range.hi { range.lo } else { value + 1 };
        same = stride;
    }
    column
}

fn extent(range: Interval) -> i128 {
    range.hi.saturating_sub(range.lo).saturating_add(1)
}

fn count(vars: &[(Var, Interval)]) -> i128 {
    vars.iter().fold(1, |count: i128, (_, range)| count.saturating_mul(extent(*range)))
}

/// Leaves the first values of the variables that have most, until no more than `limit` points are
/// left.
fn shorten(vars: &mut [(Var, Interval)], limit: i128) {
    while count(vars) > limit {
        let Some((_, longest)) = vars.iter_mut().max_by_key(|(_, range)| extent(*range)) else {
            break;
        };
        longest.hi = longest.lo + extent(*longest) / 2 - 1;
    }
}
