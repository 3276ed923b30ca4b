//! What combines the lanes of a load, and what those that a mask leaves out may hold without changing
//! that.

use rustc_hash::FxHashMap;

use crate::ir::{Function, Inst, InstData, Opcode, Value};

/// What a loaded number becomes on the way to what combines the lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Becomes {
    /// A number that rises with it, to infinity and from minus infinity.
    Rising,
    /// The exponential of such a number, or a multiple of that: 0 for minus infinity.
    Exponential,
    /// Anything else.
    Other,
    /// What an exponential made of anything else.
    Unclear,
}

/// What lanes may hold without changing what combines them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Neutral {
    /// The least number.
    Least,
    /// The greatest number.
    Greatest,
    /// Zero, as a float.
    Zero,
    /// Zero, as an integer.
    Nothing,
}

impl Neutral {
    /// As the author would write it.
    pub(super) fn text(self) -> &'static str {
        match self {
            Neutral::Least => "float(\"-inf\")",
            Neutral::Greatest => "float(\"inf\")",
            Neutral::Zero => "0.0",
            Neutral::Nothing => "0",
        }
    }

    /// The number itself.
    pub(super) fn number(self) -> f64 {
        match self {
            Neutral::Least => f64::NEG_INFINITY,
            Neutral::Greatest => f64::INFINITY,
            Neutral::Zero | Neutral::Nothing => 0.0,
        }
    }
}

/// The first operation that combines lanes of a load.
#[derive(Debug, Clone, Copy)]
pub(super) struct Combining {
    /// The operation.
    pub(super) inst: Inst,
    becomes: Becomes,
}

/// The first operation that combines lanes of what `load` reads.
pub(super) fn combining(func: &Function, load: Inst) -> Option<Combining> {
    let results = func.insts[load].results.iter();
    let mut known: FxHashMap<Value, Becomes> =
        results.map(|value| (*value, Becomes::Rising)).collect();
    // What a loop yields is known after its body.
    for _ in 0..2 {
        for inst in func.walk() {
            let data = &func.insts[inst];
            let made = data.uses().filter_map(|value| known.get(&value)).max().copied();
            if let Some(becomes) = made.filter(|_| combines(data.opcode)) {
                return Some(Combining { inst, becomes });
            }
            if made.is_some() && data.regions.is_empty() {
                let becomes = computed(func, data, &known);
                known.extend(data.results.iter().map(|value| (*value, becomes)));
            }
            for end in data.regions.iter().filter_map(|region| func.terminator(*region)) {
                for (value, result) in end.uses().zip(&data.results) {
                    if let Some(becomes) = known.get(&value).copied() {
                        known.insert(*result, becomes);
                    }
                }
            }
        }
    }
    None
}

/// Whether an operation combines lanes.
pub(super) fn combines(opcode: Opcode) -> bool {
    use Opcode::{Dot, Histogram, Reduce, Scan, Sort};
    matches!(opcode, Reduce | Scan | Dot | Histogram | Sort)
}

/// What an operation makes of operands of which one at least is `known`.
fn computed(func: &Function, data: &InstData, known: &FxHashMap<Value, Becomes>) -> Becomes {
    use Becomes::{Exponential, Other, Rising, Unclear};
    let operands: Vec<Option<Becomes>> =
        data.uses().map(|value| known.get(&value).copied()).collect();
    let worst = operands.iter().flatten().max().copied().unwrap_or(Other);
    let is_positive = |slot: usize| {
        let bits = data.operand_opt(slot).and_then(|value| func.constant_bits(value));
        let width = func.ty(data.result()).elem().map_or(0, |elem| elem.bits());
        bits.is_some_and(|bits| bits != 0 && bits >> width.saturating_sub(1) == 0)
    };
    match (data.opcode, operands.as_slice()) {
        (Opcode::FExt | Opcode::FTrunc, _)
        | (Opcode::Broadcast | Opcode::ExpandDims | Opcode::Reshape | Opcode::Permute, _)
        | (Opcode::Select, [None, _, _]) => worst,
        (Opcode::FAdd, [Some(Rising), None] | [None, Some(Rising)])
        | (Opcode::FSub, [Some(Rising), None]) => Rising,
        (Opcode::FMul, [Some(Rising), None]) if is_positive(1) => Rising,
        (Opcode::FMul, [None, Some(Rising)]) if is_positive(0) => Rising,
        (Opcode::FMul, [Some(Exponential), None] | [None, Some(Exponential)])
        | (Opcode::FDiv | Opcode::FDivRn, [Some(Exponential), None]) => Exponential,
        (Opcode::Exp | Opcode::Exp2, [Some(Rising)]) => Exponential,
        (Opcode::Exp | Opcode::Exp2, _) => Unclear,
        _ if matches!(worst, Exponential | Unclear) => Unclear,
        _ => Other,
    }
}

/// What lanes of `loaded` may hold without changing what combines them: the least number for a
/// maximum or a sum of exponentials, the greatest for a minimum, else zero. None where that is not
/// known.
pub(super) fn neutral(
    func: &Function,
    combining: Option<Combining>,
    loaded: Value,
) -> Option<Neutral> {
    let float = func.ty(loaded).elem().is_some_and(|elem| elem.is_float());
    let region = combining.and_then(|it| func.insts[it.inst].regions.first().copied());
    let insts = region.map(|region| func.regions[region].insts.as_slice()).unwrap_or_default();
    let takes =
        |wanted: &[Opcode]| insts.iter().any(|inst| wanted.contains(&func.insts[*inst].opcode));
    let greatest = takes(&[Opcode::FMax, Opcode::MaxS, Opcode::MaxU]);
    let least = takes(&[Opcode::FMin, Opcode::MinS, Opcode::MinU]);
    let becomes = combining.map(|it| it.becomes);
    // What is the least before `abs` need not be after, and what is reduced with positions is compared
    // in ways that are not looked at.
    let is_reordered = (greatest || least) && becomes == Some(Becomes::Other);
    if is_reordered || combining.is_some_and(|it| func.insts[it.inst].results.len() > 1) {
        return None;
    }
    Some(match (greatest, least, float) {
        (true, _, true) => Neutral::Least,
        (_, true, true) => Neutral::Greatest,
        // The least and the greatest integer depend on the type, which the author knows.
        (true, _, false) | (_, true, false) => return None,
        (false, false, _) if becomes == Some(Becomes::Unclear) => return None,
        (false, false, true) if becomes == Some(Becomes::Exponential) => Neutral::Least,
        (false, false, true) => Neutral::Zero,
        (false, false, false) => Neutral::Nothing,
    })
}
