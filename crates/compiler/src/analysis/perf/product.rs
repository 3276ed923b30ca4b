//! Matrix products that the tensor cores could do and do not.

use crate::analysis::report::finding;
use crate::diagnostic::{Code, Diagnostic};
use crate::gpu::product::{Obstacle, obstacle};
use crate::ir::{Function, Opcode};

/// A hint for each product that one change in the source would bring to the tensor cores.
pub(super) fn check(func: &Function, capability: u32) -> Vec<Diagnostic> {
    let products = func.walk().into_iter().filter(|&inst| func.insts[inst].opcode == Opcode::Dot);
    let found = products.filter_map(|inst| {
        let data = &func.insts[inst];
        let shape = |slot: usize| {
            let shape: Vec<String> =
                func.ty(data.operand(slot)).shape().iter().map(u32::to_string).collect();
            shape.join("x")
        };
        let product = format!("this product of {} by {}", shape(0), shape(1));
        let (code, message, advice) = match obstacle(func, data, capability)? {
            Obstacle::Precision => (
                Code::TensorCores,
                format!("{product} is done without tensor cores: they do not multiply f32 as `ieee` asks"),
                "`input_precision=\"tf32x3\"` is nearly as exact and uses them".to_owned(),
            ),
            Obstacle::Rows { rows, least } => (
                Code::SmallProduct,
                format!("{product} is done without tensor cores: it has {rows} rows, and they take {least}"),
                format!("pad the rows to {least}, with a mask and `other=0.0` where they are loaded"),
            ),
        };
        Some(finding(func, data.loc, code, message).with_note(advice))
    });
    found.collect()
}
