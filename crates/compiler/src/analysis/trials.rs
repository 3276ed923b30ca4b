//! Masks of a kernel of which nothing shows some compile-time values, or no launch at all: what is wrong
//! with them whatever the values are.
//!
//! The kernel is lowered under the guess and under [other values](Specialization::trials), and what is
//! found under each of them is told. As under a known specialization, arguments, grid and memory may be
//! anything.

use super::{AtLaunch, masks};
use crate::diagnostic::Diagnostic;
use crate::eval::Lowering;
use crate::hir::{BinaryOp, Expr, ItemKind};
use crate::project::{Sources, launching_item};
use crate::specialization::{Specialization, leaves_lanes};

/// Findings about masks that hold under `spec` and each of its trials that lowers. Kernels are looked at
/// that have loads with a mask and nothing else for the lanes that it leaves out: lowering the others as
/// well would take as long as all the rest.
pub(super) fn check(lowering: &Lowering<'_>, spec: &Specialization) -> Vec<(Diagnostic, AtLaunch)> {
    if !leaves_lanes(lowering.sources(), lowering.at()) {
        return Vec::new();
    }
    let ragged = || spec.ragged(|spec| lowering.as_given(spec).is_some());
    let spec = &if asks_for_remainders(lowering.sources(), spec) { spec.clone() } else { ragged() };
    let mut found = under(lowering, spec).unwrap_or_default();
    for alternatives in spec.trials() {
        if found.is_empty() {
            break;
        }
        let Some(other) = alternatives.iter().find_map(|spec| under(lowering, spec)) else {
            continue;
        };
        let is_same = |a: &Diagnostic, b: &Diagnostic| (a.code, a.primary) == (b.code, b.primary);
        found.retain(|finding| other.iter().any(|known| is_same(known, finding)));
    }
    let tried = spec.tried().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let noted = |finding: Diagnostic| match tried.is_empty() {
        true => finding,
        false => finding.with_note(format!(
            "no launch here shows {tried}: it is so for each value that was tried"
        )),
    };
    found.into_iter().map(|finding| (noted(finding), AtLaunch::default())).collect()
}

/// Whether host code that launches the kernel works out remainders, by which it may refuse sizes that blocks
/// do not divide.
fn asks_for_remainders(sources: &dyn Sources, spec: &Specialization) -> bool {
    let sites = spec.launches.iter().filter_map(|launch| launch.site);
    sites.into_iter().any(|site| {
        let module = sources.module(site.file).unwrap_or_default();
        let around = module.launches.get(site.index as usize).and_then(|launch| {
            let index = launching_item(&module, launch)?;
            Some(&module.items[index as usize])
        });
        around.is_some_and(|item| match &item.kind {
            ItemKind::Function(function) => function
                .body
                .exprs
                .values()
                .any(|expr| matches!(expr, Expr::Binary { op: BinaryOp::Mod, .. })),
            _ => false,
        })
    })
}

/// Findings under one trial; `None` where the kernel does not lower.
fn under(lowering: &Lowering<'_>, spec: &Specialization) -> Option<Vec<Diagnostic>> {
    let func = lowering.as_given(spec)?;
    let pause = || lowering.sources().checkpoint();
    Some(masks::check_any_grid(&func, &pause))
}
