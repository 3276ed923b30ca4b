//! Atomic operations of which many lanes update one address: memory does them one after another.

use rustc_hash::FxHashSet;

use crate::analysis::axis::AxisInfos;
use crate::analysis::report::finding;
use crate::diagnostic::{Code, Diagnostic};
use crate::ir::{AtomicOp, Attrs, Function, InstData, Opcode, Value};

/// Lanes with one address from which on it is said.
const LEAST_LANES: u32 = 16;

/// A hint for each operation whose lanes could be combined before.
pub(super) fn check(func: &Function) -> Vec<Diagnostic> {
    let order = func.walk();
    let combines: Vec<&InstData> = order.iter().map(|inst| &func.insts[*inst]).collect();
    let combines = combines.into_iter().filter(|data| operation(data).is_some());
    let combines: Vec<&InstData> = combines.collect();
    if combines.is_empty() {
        return Vec::new();
    }
    let used: FxHashSet<Value> =
        order.iter().flat_map(|inst| func.insts[*inst].uses().collect::<Vec<_>>()).collect();
    let infos = AxisInfos::of(func);
    let unread = combines.into_iter().filter(|data| data.results.iter().all(|r| !used.contains(r)));
    unread.filter_map(|data| describe(func, &infos, data)).collect()
}

/// The function that combines what is there with many values as well as with one at a time.
fn operation(data: &InstData) -> Option<&'static str> {
    let Attrs::Atomic(atomic) = &data.attrs else { return None };
    if data.opcode != Opcode::AtomicRmw {
        return None;
    }
    match atomic.op {
        AtomicOp::Add | AtomicOp::FAdd => Some("sum"),
        AtomicOp::SMax | AtomicOp::UMax => Some("max"),
        AtomicOp::SMin | AtomicOp::UMin => Some("min"),
        _ => None,
    }
}

fn describe(func: &Function, infos: &AxisInfos, data: &InstData) -> Option<Diagnostic> {
    let address = data.operand(0);
    let info = infos.get(func, address);
    let shape = func.ty(address).shape();
    let repeated = shape.iter().enumerate().filter(|(axis, extent)| {
        **extent >= LEAST_LANES && info.constancy.get(*axis) >= Some(&i64::from(**extent))
    });
    let (axis, lanes) = repeated.max_by_key(|(_, extent)| **extent)?;
    let message =
        format!("all {lanes} lanes along axis {axis} update one address, one after another");
    let function = operation(data)?;
    let advice = format!(
        "combine them first: `tl.{function}(..., axis={axis})`, then one update of each address"
    );
    Some(finding(func, data.loc, Code::AtomicLanes, message).with_note(advice))
}
