//! Tensors of which every program reads the same slices although what they write goes on over as many: what is
//! read lacks the step between programs.
//!
//! Programs that read the same are meant to where that is all of a tensor, as of a weight. Along the innermost
//! axis a kernel may read a part, as of a table whose halves are equal.

use rustc_hash::FxHashSet;

use super::unread;
use crate::analysis::arguments::{buffer, is_alone};
use crate::analysis::elements::{Access, Elements};
use crate::analysis::points::Points;
use crate::analysis::report;
use crate::analysis::terms::{AtomKind, Linear, Var};
use crate::diagnostic::{Code, Diagnostic};
use crate::ir::{Function, Opcode};
use crate::specialization::KnownLaunch;

/// Points of one access that are looked at.
const MAX_POINTS: i128 = 1 << 15;

/// Findings about the tensors that `func` only reads, where all addresses are known.
pub(super) fn check(
    func: &Function,
    launch: &KnownLaunch,
    elements: &Elements<'_>,
    programs: &[Linear; 3],
    accesses: &[Access],
) -> Vec<Diagnostic> {
    if !unread::are_all_known(func, accesses) {
        return Vec::new();
    }
    let slices = Slices { func, launch, elements, programs, accesses };
    let params: FxHashSet<usize> = accesses.iter().map(|access| access.param).collect();
    let mut params: Vec<usize> = params.into_iter().collect();
    params.sort_unstable();
    params.into_iter().filter_map(|param| slices.of_param(param)).collect()
}

struct Slices<'a> {
    func: &'a Function,
    launch: &'a KnownLaunch,
    elements: &'a Elements<'a>,
    programs: &'a [Linear; 3],
    accesses: &'a [Access],
}

impl Slices<'_> {
    fn of_param(&self, param: usize) -> Option<Diagnostic> {
        let loads: Vec<&Access> =
            self.accesses.iter().filter(|access| access.param == param).collect();
        let of_tensor = buffer(self.func, self.launch, param)?;
        let sizes = of_tensor.sizes.as_deref()?;
        let are_loads = loads.iter().all(|load| self.is(load, Opcode::Load));
        if !are_loads || !is_alone(self.launch, of_tensor) || !self.stands_still(&loads) {
            return None;
        }
        let (first, read) = (loads.first()?, self.indices(&loads, sizes, true)?);
        let outer = sizes.len().saturating_sub(1).max(1);
        (0..outer).find_map(|axis| self.along(first, sizes, (axis, read.get(axis)?)))
    }

    fn is(&self, access: &Access, opcode: Opcode) -> bool {
        self.func.insts[access.inst].opcode == opcode
    }

    /// Whether some program id moves what is stored and nothing of what the loads read.
    fn stands_still(&self, loads: &[&Access]) -> bool {
        self.programs.iter().any(|program| {
            let [(atom, _)] = program.terms[..] else { return false };
            let AtomKind::Var(var) = self.elements.terms.atom(atom) else { return false };
            let moves = |access: &Access| self.depends(access, *var);
            let mut stores = self.accesses.iter().filter(|access| self.is(access, Opcode::Store));
            !loads.iter().any(|load| moves(load)) && stores.any(moves)
        })
    }

    fn depends(&self, access: &Access, var: Var) -> bool {
        let mut depends = false;
        self.elements.terms.visit(&access.offset, &mut |_, kind| {
            depends |= matches!(kind, AtomKind::Var(known) if *known == var);
        });
        depends
    }

    /// What is found along an axis of a tensor of which these indices are read.
    fn along(
        &self,
        load: &Access,
        sizes: &[i128],
        (axis, read): (usize, &FxHashSet<i128>),
    ) -> Option<Diagnostic> {
        let (extent, count) = (sizes[axis], read.len() as i128);
        // Two numbers need not be for two slices.
        let is_one = count == 1 && extent > if sizes.len() == 1 { 2 } else { 1 };
        if count == 0 || !(is_one || count * 2 <= extent && extent > 2) {
            return None;
        }
        let (output, of_output) = self.accesses.iter().find_map(|store| {
            let of_output = buffer(self.func, self.launch, store.param)?.sizes.as_deref()?;
            let alike = match of_output == sizes {
                true => axis,
                false if is_one => of_output.iter().position(|it| *it == extent)?,
                false => return None,
            };
            let stores: Vec<&Access> =
                self.accesses.iter().filter(|it| it.param == store.param).collect();
            let are_stores = stores.iter().all(|store| self.is(store, Opcode::Store));
            let written = are_stores.then(|| self.indices(&stores, of_output, false))??;
            (written[alike].len() as i128 == extent).then_some((store, alike))
        })?;
        let name = |access: &Access| self.elements.param_name(access.param);
        let message = format!(
            "every program reads the same of `{}`: {count} of the {extent} slices along its axis {axis}",
            name(load)
        );
        let loc = self.func.insts[load.inst].loc;
        let note = format!(
            "programs write all {extent} along axis {of_output} of `{}`: let what they read move with them",
            name(output)
        );
        Some(report::finding(self.func, loc, Code::Unread, message).with_note(note))
    }

    /// The indices along each axis of a contiguous tensor at which it is accessed, or with `may_happen` may be;
    /// `None` where they are not known, or some are outside.
    fn indices(
        &self,
        accesses: &[&Access],
        sizes: &[i128],
        may_happen: bool,
    ) -> Option<Vec<FxHashSet<i128>>> {
        let mut indices = vec![FxHashSet::default(); sizes.len()];
        let all: i128 = sizes.iter().product();
        for access in accesses {
            let standing = Default::default();
            let points = Points::of(self.elements, access, &standing, &[], (MAX_POINTS, 0))?;
            let possible = points.possible.iter().filter(|_| may_happen);
            let touched: FxHashSet<i128> =
                points.found.iter().chain(possible).map(|(_, element)| *element).collect();
            let is_inside = touched.iter().all(|element| (0..all).contains(element));
            if !points.bounded || !is_inside {
                return None;
            }
            for element in touched {
                let mut rest = element;
                for (axis, size) in sizes.iter().enumerate().rev() {
                    indices[axis].insert(rest % size);
                    rest /= size;
                }
            }
        }
        Some(indices)
    }
}
