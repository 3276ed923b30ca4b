//! Addresses computed anew behind loops of matrix products.
//!
//! Such a loop fills the registers with its sums and operands. Tiles of indices, addresses and masks
//! that are used in front of the loop and behind it would take registers all the while, although they
//! follow from ranges and scalars by a few instructions. So what is used behind a loop is computed
//! there once more. Code generation reads the thread's number anew in the same places; otherwise LLVM
//! would find the two equal, and keep the first.
//!
//! In: a function whose common subexpressions are merged, which must not happen again. Out: the same
//! function; originals that are no longer used are left to the pass for dead code. Cost: linear in
//! the instructions behind each loop.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::ir::{Builder, Function, Inst, InstData, Opcode, Region, Type, Value, ValueDef};

/// Computes tiles that follow from ranges and scalars once more behind each loop of products.
pub(crate) fn compute_anew(func: &mut Function) {
    visit(func, func.body);
}

/// Whether `inst` is a loop of matrix products.
pub fn is_loop_of_products(func: &Function, inst: Inst) -> bool {
    matches!(func.insts[inst].opcode, Opcode::For | Opcode::While)
        && func.any_within(inst, Opcode::is_gpu_product)
}

fn visit(func: &mut Function, region: Region) {
    let insts = std::mem::take(&mut func.regions[region].insts);
    for (at, &inst) in insts.iter().enumerate() {
        for inner in func.insts[inst].regions.clone() {
            visit(func, inner);
        }
        func.regions[region].insts.push(inst);
        if is_loop_of_products(func, inst) {
            renew(func, region, &insts[at + 1..]);
        }
    }
}

/// Computes at the end of `region`, which is where a loop has just ended, what `rest` uses.
fn renew(func: &mut Function, region: Region, rest: &[Inst]) {
    let later: Vec<Inst> = rest.iter().flat_map(|&inst| func.walk_inst(inst)).collect();
    let mut own: FxHashSet<Value> = FxHashSet::default();
    for &inst in &later {
        let data = &func.insts[inst];
        own.extend(&data.results);
        own.extend(data.regions.iter().flat_map(|&at| &func.regions[at].args));
    }
    let mut copies =
        Copies { func, region, origins: FxHashMap::default(), made: FxHashMap::default() };
    for inst in later {
        for slot in 0..copies.func.insts[inst].operands.len() {
            let Some(value) = copies.func.insts[inst].operands[slot] else { continue };
            if !own.contains(&value) && copies.origin(value) == Origin::Range {
                let copy = copies.copy(value);
                copies.func.insts[inst].operands[slot] = Some(copy);
            }
        }
    }
}

/// What a value follows from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Origin {
    /// Scalars alone: it takes no registers of its own.
    Scalar,
    /// Ranges as well, by cheap instructions, or values of which each thread holds but a share.
    Range,
    /// Something else.
    Other,
}

/// Copies of values at the end of a region.
struct Copies<'f> {
    func: &'f mut Function,
    region: Region,
    origins: FxHashMap<Value, Origin>,
    made: FxHashMap<Value, Value>,
}

impl Copies<'_> {
    fn origin(&mut self, value: Value) -> Origin {
        if let Some(&known) = self.origins.get(&value) {
            return known;
        }
        let origin = match (self.func.ty(value), self.func.values[value].def) {
            (ty, _) if ty.layout().is_none() => Origin::Scalar,
            (Type::Buffer(_), _) | (_, ValueDef::Argument(..)) => Origin::Other,
            (_, ValueDef::Result(inst, _)) => self.origin_of_result(inst),
        };
        self.origins.insert(value, origin);
        origin
    }

    fn origin_of_result(&mut self, inst: Inst) -> Origin {
        let data = &self.func.insts[inst];
        match data.opcode {
            Opcode::Constant => Origin::Scalar,
            Opcode::Arange => Origin::Range,
            Opcode::ConvertLayout if self.spreads(data) => Origin::Range,
            opcode if is_cheap(opcode) => {
                let operands: Vec<Value> = data.uses().collect();
                let origins = operands.into_iter().map(|value| self.origin(value));
                origins.max().unwrap_or(Origin::Other)
            }
            _ => Origin::Other,
        }
    }

    /// Whether a conversion gives each thread many times what it is made of, which may be kept instead.
    fn spreads(&self, data: &InstData) -> bool {
        /// Elements for each that is kept.
        const MANY: usize = 8;
        let share = |value| {
            let layout = self.func.ty(value).layout();
            layout.map_or(1, |layout| self.func.layouts[layout].elements_per_thread())
        };
        share(data.operand(0)) * MANY <= share(data.result())
    }

    /// A copy of a value that follows from ranges; another value is its own copy.
    fn copy(&mut self, value: Value) -> Value {
        if let Some(&made) = self.made.get(&value) {
            return made;
        }
        let ValueDef::Result(inst, _) = self.func.values[value].def else { return value };
        if self.origin(value) != Origin::Range {
            return value;
        }
        let data = self.func.insts[inst].clone();
        let operands: Vec<Option<Value>> =
            data.operands.iter().map(|operand| operand.map(|value| self.copy(value))).collect();
        let ty = self.func.ty(value).clone();
        let mut builder = Builder::new(self.func, self.region);
        builder.set_loc(data.loc);
        let copied = builder.emit_inst(data.opcode, operands, data.attrs, [ty], []);
        let copy = self.func.insts[copied].result();
        self.func.values[copy].name = self.func.values[value].name.clone();
        self.made.insert(value, copy);
        copy
    }
}

/// Whether doing it once more costs less than keeping what it makes.
fn is_cheap(opcode: Opcode) -> bool {
    use Opcode::*;
    matches!(
        opcode,
        Splat
            | Broadcast
            | ExpandDims
            | Reshape
            | Permute
            | AssertFacts
            | Add
            | Sub
            | Mul
            | And
            | Or
            | Xor
            | Shl
            | ShrS
            | ShrU
            | MinS
            | MaxS
            | MinU
            | MaxU
            | Cmp
            | Select
            | ExtS
            | ExtU
            | Trunc
            | PtrAdd
    )
}
