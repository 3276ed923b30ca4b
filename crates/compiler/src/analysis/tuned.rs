//! What Triton's tuner does: it passes over a configuration whose `tl.static_assert` fails and takes
//! another one, and it runs the kernel with each of them on the memory of the launch.

use rustc_hash::FxHashSet;

use super::arguments::buffer;
use super::elements::{Access, Elements};
use super::identity::Origins;
use super::report;
use super::solve::Outcome;
use super::terms::Domain;
use crate::diagnostic::{Code, Diagnostic};
use crate::host::Contents;
use crate::ir::{AtomicOp, Attrs, Function, Opcode, Value};
use crate::specialization::{KnownLaunch, Specialization};

/// Boxes that may be looked at for one access.
const FUEL: u32 = 1_000;

/// The finding about memory of `launch` to which each run of tuning adds, or which it updates in place,
/// though nothing puts back what it was. It is told of one configuration, the first.
pub(super) fn repeated<'f>(
    func: &'f Function,
    launch: &KnownLaunch,
    spec: &Specialization,
    (elements, accesses): (&mut Elements<'f>, &[Access]),
) -> Option<Diagnostic> {
    let config = spec.config.as_ref().filter(|config| config.position == 0)?;
    let restored = config.restored.as_ref()?;
    let insts = func.walk();
    let used: FxHashSet<Value> = insts.iter().flat_map(|inst| func.insts[*inst].uses()).collect();
    let writes: Vec<&Access> = accesses.iter().filter(|access| access.writes(func)).collect();
    // What is written by other means may be put back by the kernel itself.
    let is_write = |opcode: Opcode| opcode.is_global_write() || opcode == Opcode::InlineAsm;
    if insts.iter().filter(|inst| is_write(func.insts[**inst].opcode)).count() != writes.len() {
        return None;
    }
    let (access, point) = writes.iter().find_map(|access| {
        let name = elements.param_name(access.param);
        let is_alone =
            writes.iter().all(|other| other.inst == access.inst || other.param != access.param);
        if !is_alone || restored.iter().any(|restored| **restored == *name) {
            return None;
        }
        let Outcome::Found(point) = elements.search(&access.happens(), &mut { FUEL }) else {
            return None;
        };
        let point = elements.terms.padded(&point);
        let data = &func.insts[access.inst];
        let repeats = match &data.attrs {
            Attrs::Atomic(atomic) => {
                matches!(atomic.op, AtomicOp::Add | AtomicOp::FAdd)
                    && data.results.iter().all(|result| !used.contains(result))
            }
            _ => {
                data.opcode == Opcode::Store
                    && !reduces(func, data.operand(1))
                    && Origins::is_updated(func, elements, (access, &point))
            }
        };
        repeats.then_some((*access, point))
    })?;
    let element = Domain::at(&elements.terms, &point).value(&access.offset)?;
    let name = elements.param_name(access.param);
    let data = &func.insts[access.inst];
    let (does, mend) = match data.opcode {
        Opcode::Store => ("updates", "restore_value"),
        _ if buffer(func, launch, access.param).is_some_and(|it| it.contents == ZEROS) => {
            ("adds to", "reset_to_zero")
        }
        _ => ("adds to", "restore_value"),
    };
    let message = format!(
        "tuning runs `{}` with each of its {} configurations on the same memory, and each run {does} \
         element {element} of `{name}`",
        func.name, config.of,
    );
    Some(
        report::finding(func, data.loc, Code::RepeatedUpdate, message)
            .with_note("the launch that tunes gives a wrong result, those after it a right one")
            .with_note(format!("`@triton.autotune(..., {mend}=[\"{name}\"])` puts it back")),
    )
}

/// Memory that holds zeros.
const ZEROS: Contents = Contents::Progression { start: 0, step: 0 };

/// Whether a value is computed from what lanes make together: doing that again may change nothing.
fn reduces(func: &Function, value: Value) -> bool {
    let computing = func.computing(value);
    computing.into_iter().any(|value| {
        func.def(value).is_some_and(|data| matches!(data.opcode, Opcode::Reduce | Opcode::Scan))
    })
}
