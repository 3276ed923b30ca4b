//! Arithmetic that one float64 scalar turns into float64 although what goes in and what comes out
//! is narrower.
//!
//! A promotion that the author did not write has the place of the operation that needs it; a cast
//! that they wrote has its own. Only what is slow in float64 counts: sums and products of a kernel
//! that waits for memory cost nothing.

use rustc_hash::FxHashSet;

use crate::analysis::report::{finding, place};
use crate::diagnostic::{Code, Diagnostic, TextEdit};
use crate::ir::{Function, Inst, InstData, Loc, Opcode, Scalar, Value, ValueDef};
use crate::source::{FileRange, TextRange};

/// Slow operations for each element from which on a kernel that reads and writes float32 once waits
/// for arithmetic and not for memory.
const LEAST_SLOW: usize = 3;

/// A hint for each operation that makes a tile float64 by accident.
pub(super) fn check(func: &Function) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let mut reported = FxHashSet::default();
    for inst in func.walk() {
        let data = &func.insts[inst];
        if !is_f64_tile(func, data) {
            continue;
        }
        let Some(source) = promoting_scalar(func, data) else { continue };
        let Some(slow) = slow_use(func, inst) else { continue };
        if reported.insert(source) {
            found.push(describe(func, data, source, slow));
        }
    }
    found
}

fn is_f64_tile(func: &Function, data: &InstData) -> bool {
    let result = data.results.first().map(|&result| func.ty(result));
    result.is_some_and(|ty| ty.is_tile() && ty.number() == Some(Scalar::F64))
}

/// The float64 scalar that promotes the other operand of `data`, a narrower tile.
fn promoting_scalar(func: &Function, data: &InstData) -> Option<Value> {
    let is_promoted = |value: Value| {
        func.def(value).is_some_and(|cast| {
            cast.opcode == Opcode::FExt && cast.loc == data.loc && func.ty(value).is_tile()
        })
    };
    let (promoted, others): (Vec<Value>, Vec<Value>) = data.uses().partition(|&v| is_promoted(v));
    match (&promoted[..], &others[..]) {
        ([_], [other]) => repeated_scalar(func, *other),
        _ => None,
    }
}

/// The scalar that every element of `value` is, or is computed from, unless it was made float64 on
/// purpose.
fn repeated_scalar(func: &Function, value: Value) -> Option<Value> {
    match func.values[value].def {
        ValueDef::Argument(region, _) if region == func.body => Some(value),
        ValueDef::Argument(..) => None,
        ValueDef::Result(inst, _) => {
            let data = &func.insts[inst];
            match data.opcode {
                Opcode::Splat | Opcode::Broadcast | Opcode::ExpandDims => {
                    repeated_scalar(func, data.operand(0))
                }
                _ if func.ty(value).number() != Some(Scalar::F64) || func.ty(value).is_tile() => {
                    None
                }
                Opcode::Load => Some(value),
                Opcode::FAdd | Opcode::FSub | Opcode::FMul | Opcode::FDiv | Opcode::FNeg => {
                    data.uses().find_map(|operand| repeated_scalar(func, operand))
                }
                _ => None,
            }
        }
    }
}

/// The first operation from `inst` on that is slow in float64, if enough are and a narrower type
/// follows them.
fn slow_use(func: &Function, inst: Inst) -> Option<Inst> {
    let mut reached: FxHashSet<Value> = func.insts[inst].results.iter().copied().collect();
    let mut slow: Vec<Inst> = Vec::from_iter(is_slow(func.insts[inst].opcode).then_some(inst));
    let mut narrowed = false;
    for user in func.walk() {
        let data = &func.insts[user];
        if !data.uses().any(|value| reached.contains(&value)) {
            continue;
        }
        narrowed |= data.opcode == Opcode::FTrunc;
        if is_f64_tile(func, data) {
            slow.extend(is_slow(data.opcode).then_some(user));
            reached.extend(&data.results);
        }
    }
    slow.first().copied().filter(|_| narrowed && slow.len() >= LEAST_SLOW)
}

fn is_slow(opcode: Opcode) -> bool {
    use Opcode::*;
    matches!(
        opcode,
        Exp | Exp2
            | Log
            | Log2
            | Sin
            | Cos
            | Erf
            | FDiv
            | FDivRn
            | FRem
            | Sqrt
            | SqrtRn
            | Rsqrt
            | Extern
    )
}

fn describe(func: &Function, data: &InstData, source: Value, slow: Inst) -> Diagnostic {
    let name = |value: Value| match &func.values[value].name {
        Some(name) => format!("`{name}`"),
        None => "a scalar".to_owned(),
    };
    let message =
        format!("{} is float64, and so is everything computed from here on", name(source));
    let found = finding(func, data.loc, Code::Float64, message)
        .with_related(place(func, func.insts[slow].loc), "this is slow in float64")
        .with_note("convert the scalar: `.to(tl.float32)`");
    let Some(load) = func.def(source) else { return found };
    let at = place(func, load.loc);
    let end = FileRange { range: TextRange { start: at.range.end, ..at.range }, ..at };
    let found = found.with_related(at, "the float64 scalar is read here");
    if is_inlined(func, load.loc) {
        return found;
    }
    let edit = TextEdit { at: end, text: ".to(tl.float32)".to_owned() };
    found.with_fix("Convert to float32", vec![edit])
}

fn is_inlined(func: &Function, loc: Loc) -> bool {
    func.locs[loc].inlined_at.is_some()
}
