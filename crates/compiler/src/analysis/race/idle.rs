//! Programs that differ along an axis of the grid that their kernel does not ask for: all of them do the
//! same, which does no harm unless they update an element in place, each what another has left there.

use crate::analysis::elements::{Access, Elements};
use crate::analysis::identity::Origins;
use crate::analysis::report;
use crate::analysis::solve::Outcome;
use crate::analysis::terms::{Domain, Linear};
use crate::diagnostic::{Code, Diagnostic};
use crate::ir::Function;
use crate::specialization::KnownLaunch;

/// The first axis along which a launch has several programs that do the same.
pub(super) fn axis(programs: &[Linear; 3], asked: [bool; 3]) -> Option<usize> {
    (0..3).find(|axis| !asked[*axis] && programs[*axis].as_constant().is_none())
}

/// A store of what arithmetic makes of what is in its own element, done by each program along `axis`.
pub(super) fn updated<'f>(
    func: &'f Function,
    launch: &KnownLaunch,
    elements: &mut Elements<'f>,
    axis: usize,
    store: &Access,
) -> Option<Diagnostic> {
    let mut fuel = super::PAIR_FUEL;
    let Outcome::Found(point) = elements.search(&store.happens(), &mut fuel) else { return None };
    let point = elements.terms.padded(&point);
    if !Origins::is_updated(func, elements, (store, &point)) {
        return None;
    }
    let element = Domain::at(&elements.terms, &point).value(&store.offset)?;
    let mut first = elements.position(&point);
    first[axis] = 0;
    let mut second = first;
    second[axis] = 1;
    let rank = launch.grid_rank.max(axis + 1);
    let [a, b] = [first, second].map(|at| report::program(at, rank));
    let name = elements.param_name(store.param);
    let message = format!(
        "programs {a} and {b} both update element {element} of `{name}` in place, and nothing orders \
         them"
    );
    let found = report::finding(func, func.insts[store.inst].loc, Code::Race, message);
    Some(found.with_note(format!(
        "the kernel does not ask for its position along axis {axis}, so that all programs along it do \
         the same to lane {:?}",
        store.lane(&point)
    )))
}
