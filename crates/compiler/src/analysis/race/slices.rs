//! Tensors of which every program reads the same slices although what they write goes on over as many: what is
//! read lacks the step between programs.
//!
//! Programs that read the same are meant to where that is all of a tensor, as of a weight. Along the innermost
//! axis a kernel may read a part, as of a table whose halves are equal.

use rustc_hash::FxHashSet;

use crate::analysis::arguments::{buffer, is_alone};
use crate::analysis::elements::{Access, Elements};
use crate::analysis::led::depends_on_memory;
use crate::analysis::points::Points;
use crate::analysis::report;
use crate::analysis::terms::{AtomKind, Cond, Linear, Var};
use crate::analysis::unfollowed::Unfollowed;
use crate::diagnostic::{Code, Diagnostic};
use crate::ir::{Attrs, Function, Opcode};
use crate::specialization::KnownLaunch;

/// Points of one access that are looked at.
const MAX_POINTS: i128 = 1 << 15;

/// The fewest elements of a table for programs: less may be for something else.
const LEAST_TABLE: i128 = 3;

/// Findings about the tensors that `func` only reads, at addresses that are all known.
pub(super) fn check(
    func: &Function,
    launch: &KnownLaunch,
    elements: &mut Elements<'_>,
    programs: &[Linear; 3],
    accesses: &[Access],
) -> Vec<Diagnostic> {
    let none = Linear::default();
    let firsts = [0, 1, 2].map(|axis: usize| elements.terms.at_most(&programs[axis], &none));
    let elements = &*elements;
    let unfollowed = Unfollowed::of(func, launch, accesses, Opcode::is_global_access);
    let slices = Slices { func, launch, elements, programs, firsts, accesses, unfollowed };
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
    /// Along each axis, that a program is the first.
    firsts: [Cond; 3],
    accesses: &'a [Access],
    /// What is accessed at addresses that are not known.
    unfollowed: Unfollowed<'a>,
}

impl Slices<'_> {
    fn of_param(&self, param: usize) -> Option<Diagnostic> {
        let loads: Vec<&Access> =
            self.accesses.iter().filter(|access| access.param == param).collect();
        let of_tensor = buffer(self.func, self.launch, param)?;
        let sizes = of_tensor.sizes.as_deref()?;
        let are_loads = loads.iter().all(|load| self.is(load, Opcode::Load));
        let are_all = !self.unfollowed.may_reach(param);
        if !are_loads || !are_all || !is_alone(self.launch, of_tensor) {
            return None;
        }
        if let Some(found) = self.of_table(&loads, sizes) {
            return Some(found);
        }
        // Where numbers in memory say what is read, that is what is needed of it.
        if loads
            .iter()
            .all(|load| depends_on_memory(self.func, self.func.insts[load.inst].operand(0)))
        {
            return None;
        }
        let still = self.still(&loads);
        if still.is_empty() {
            return None;
        }
        let (first, read) = (loads.first()?, self.indices((&loads, true), sizes, &[])?);
        let outer = sizes.len().saturating_sub(1).max(1);
        (0..outer).find_map(|axis| {
            let read = (axis, read.get(axis)?);
            let conds: Vec<Cond> = still.iter().map(|axis| self.firsts[*axis]).collect();
            self.along((first, &conds), sizes, read)
                .or_else(|| self.one_for_all((first, &still), sizes, read))
        })
    }

    /// What is found of a tensor that has a block of slices for each program along an axis, and of which all of them
    /// read the first one.
    fn one_for_all(
        &self,
        (load, still): (&Access, &[usize]),
        sizes: &[i128],
        (axis, read): (usize, &FxHashSet<i128>),
    ) -> Option<Diagnostic> {
        let (extent, count) = (sizes[axis], read.len() as i128);
        let is_first_block = count > 0 && (0..count).all(|index| read.contains(&index));
        // A table of where sequences begin has one more than there are programs along another axis.
        let has_programs = |of: usize| {
            !still.contains(&of)
                && self.launch.grid.is_some_and(|grid| i128::from(grid[of]) == count)
        };
        let is_of_starts = extent == count + 1 && (0..3).any(has_programs);
        if sizes.len() == 1 && is_of_starts {
            return None;
        }
        // Two equal halves may be meant, as those of a table. Where programs along another axis go through what is read,
        // the tensor may be as long as it likes.
        let is_gone_through = self.is_moved_by_programs(load);
        let is_one_each = |of: &usize| {
            let programs = i128::from(self.launch.grid.map_or(0, |grid| grid[*of]));
            let covers = match is_gone_through {
                true => programs * count == extent,
                false => programs * count >= extent && (programs - 1) * count < extent,
            };
            covers && (programs > 2 || programs == 2 && programs * count > extent)
        };
        let of = *still.iter().find(|of| is_first_block && is_one_each(of))?;
        let name = self.elements.param_name(load.param);
        let programs = self.launch.grid?[of];
        let message = format!(
            "all {programs} programs along axis {of} read the same {count} of the {extent} slices along axis {axis} of \
             `{name}`"
        );
        let loc = self.func.insts[load.inst].loc;
        let note = "what they write moves with them: let what they read do so too";
        Some(report::finding(self.func, loc, Code::Unread, message).with_note(note))
    }

    /// What is found of a table that has an element for each program along an axis, or one more, as one of where
    /// sequences begin, and of which all of them read the same one.
    fn of_table(&self, loads: &[&Access], sizes: &[i128]) -> Option<Diagnostic> {
        let (&[size], Some(grid)) = (sizes, self.launch.grid) else { return None };
        let load = loads.first()?;
        let element = load.offset.as_constant().filter(|element| (0..size).contains(element))?;
        let is_it = |load: &&Access| load.offset.as_constant() == Some(element);
        if size < LEAST_TABLE || !loads.iter().all(is_it) {
            return None;
        }
        let axis = (0..3).find(|axis| {
            let programs = i128::from(grid[*axis as usize]);
            let mut stores = self.accesses.iter().filter(|it| self.is(it, Opcode::Store));
            (programs == size || programs + 1 == size)
                && stores.any(|store| self.asks(store, *axis))
        })?;
        let name = self.elements.param_name(load.param);
        let programs = grid[axis as usize];
        let message = format!(
            "every program reads element {element} of `{name}`, which has {size} elements for {programs} programs"
        );
        let found =
            report::finding(self.func, self.func.insts[load.inst].loc, Code::Unread, message);
        Some(found.with_note(format!("add the position along axis {axis} to where it is read")))
    }

    /// Whether where an access is depends on a program's position along an axis, in memory's ways too.
    fn asks(&self, access: &Access, axis: u32) -> bool {
        let address = self.func.insts[access.inst].operand(0);
        self.func.computing(address).iter().any(|value| {
            let made = self.func.def(*value).map(|made| (made.opcode, &made.attrs));
            matches!(made, Some((Opcode::ProgramId, Attrs::Axis(asked))) if asked.axis == axis)
        })
    }

    fn is(&self, access: &Access, opcode: Opcode) -> bool {
        self.func.insts[access.inst].opcode == opcode
    }

    /// The axes along which programs move what is stored and nothing of what the loads read.
    fn still(&self, loads: &[&Access]) -> Vec<usize> {
        let is_still = |axis: &usize| {
            let Some(var) = self.place(*axis) else { return false };
            let moves = |access: &Access| self.depends(access, var);
            let mut stores = self.accesses.iter().filter(|access| self.is(access, Opcode::Store));
            !loads.iter().any(|load| moves(load)) && stores.any(moves)
        };
        (0..self.programs.len()).filter(is_still).collect()
    }

    /// The variable for the place of a program along an axis.
    fn place(&self, axis: usize) -> Option<Var> {
        let [(atom, _)] = self.programs[axis].terms[..] else { return None };
        match self.elements.terms.atom(atom) {
            AtomKind::Var(var) => Some(*var),
            _ => None,
        }
    }

    /// Whether where an access is depends on the place of a program along an axis.
    fn is_moved_by_programs(&self, access: &Access) -> bool {
        (0..self.programs.len())
            .filter_map(|axis| self.place(axis))
            .any(|var| self.depends(access, var))
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
        (load, still): (&Access, &[Cond]),
        sizes: &[i128],
        (axis, read): (usize, &FxHashSet<i128>),
    ) -> Option<Diagnostic> {
        let (extent, count) = (sizes[axis], read.len() as i128);
        let is_one = count == 1 && extent >= if sizes.len() == 1 { LEAST_TABLE } else { 2 };
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
            let written = |within: &[Cond]| {
                let indices = self.indices((&stores, false), of_output, within)?;
                Some(indices[alike].len() as i128)
            };
            let goes_on = are_stores && written(&[])? == extent;
            let is_moved = still.iter().any(|first| written(&[*first]) < Some(extent));
            (goes_on && is_moved).then_some((store, alike))
        })?;
        let name = |access: &Access| self.elements.param_name(access.param);
        let message = format!(
            "no program reads more of `{}` than {count} of the {extent} slices along its axis {axis}",
            name(load)
        );
        let loc = self.func.insts[load.inst].loc;
        let note = format!(
            "programs write all {extent} along axis {of_output} of `{}`: let what they read move with them",
            name(output)
        );
        Some(report::finding(self.func, loc, Code::Unread, message).with_note(note))
    }

    /// The indices along each axis of a contiguous tensor at which it is accessed `within` conditions, or with
    /// `may_happen` may be; `None` where they are not known, or some are outside.
    fn indices(
        &self,
        (accesses, may_happen): (&[&Access], bool),
        sizes: &[i128],
        within: &[Cond],
    ) -> Option<Vec<FxHashSet<i128>>> {
        let mut indices = vec![FxHashSet::default(); sizes.len()];
        let all: i128 = sizes.iter().product();
        for access in accesses {
            let standing = Default::default();
            let points = match may_happen {
                true => Points::drawn(self.elements, access, &standing, within, MAX_POINTS)?,
                false => Points::of(self.elements, access, &standing, within, (MAX_POINTS, 0))?,
            };
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
