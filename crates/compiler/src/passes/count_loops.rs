//! Turns a `while` that counts into a `for`, of which analyses know how often it runs.
//!
//! In: a verified function. Out: the same function, where `while i < n` that ends with `i += step` runs
//! over `range(i, n, step)`; what the loop carries stays as it is, and its body reads the index instead of
//! the number that it counts. Not for code generation: a step that is not known is taken to lead to the
//! bound, as any other makes a loop that does not end. Cost: linear per loop.

use crate::ir::{
    Attrs, Builder, Function, Inst, InstData, IntPredicate, Loop, Opcode, Region, Type, Value,
    ValueDef,
};

/// A loop of which the author asks nothing else.
const AS_WRITTEN: Loop = Loop { stages: 0, unroll: 0, flatten: false, warp_specialize: false };

/// Makes a `for` of each loop that counts.
pub(crate) fn count_loops(func: &mut Function) {
    for region in func.regions.keys().collect::<Vec<_>>() {
        for inst in func.regions[region].insts.clone() {
            if let Some(counting) = Counting::of(func, inst) {
                counting.apply(func, region, inst);
            }
        }
    }
}

/// How a loop counts.
struct Counting {
    end: End,
    /// Which of the values that it carries is the number.
    at: usize,
    /// What changes it in each trip.
    step: Value,
    /// Whether that is taken away from it rather than added.
    is_taken: bool,
    /// What the bound and the step are made of within the loop, in order.
    hoisted: Vec<Inst>,
}

/// Where counting ends.
#[derive(Clone, Copy)]
struct End {
    bound: Value,
    /// Whether the loop runs at the bound as well.
    includes: bool,
    /// Whether the number falls.
    falls: bool,
}

impl End {
    /// Of a loop that runs while `predicate` holds between its number and `bound`.
    fn of(predicate: IntPredicate, bound: Value) -> Option<End> {
        let (falls, includes) = match predicate {
            IntPredicate::Slt => (false, false),
            IntPredicate::Sle => (false, true),
            IntPredicate::Sgt => (true, false),
            IntPredicate::Sge => (true, true),
            _ => return None,
        };
        Some(End { bound, includes, falls })
    }
}

impl Counting {
    fn of(func: &Function, inst: Inst) -> Option<Counting> {
        let data = &func.insts[inst];
        let &[before, body] = &data.regions[..] else { return None };
        let condition = func.terminator(before).filter(|_| data.opcode == Opcode::While)?;
        let args = &func.regions[before].args;
        let passed = condition.operands.iter().skip(1).copied();
        if !passed.eq(args.iter().copied().map(Some)) {
            return None;
        }
        let compared = func.def(condition.operand_opt(0)?)?;
        let Attrs::IntCompare(compare) = &compared.attrs else { return None };
        let position = |slot| args.iter().position(|arg| *arg == compared.operand(slot));
        let (at, end) = match (position(0), position(1)) {
            (Some(at), None) => (at, End::of(compare.predicate, compared.operand(1))?),
            (None, Some(at)) => (at, End::of(compare.predicate.swapped(), compared.operand(0))?),
            _ => return None,
        };
        let next = func.def(func.terminator(body)?.operand_opt(at)?)?;
        let (step, is_taken) = step(next, func.regions[body].args[at])?;
        let is_pure = |inst: &Inst| {
            let data = &func.insts[*inst];
            data.opcode == Opcode::Condition || data.opcode.is_pure() && data.regions.is_empty()
        };
        let is_integer = func.ty(end.bound).number().is_some_and(|number| number.is_int());
        if is_taken && !end.falls || !is_integer || !func.regions[before].insts.iter().all(is_pure)
        {
            return None;
        }
        let mut hoisted = Vec::new();
        for value in [end.bound, step] {
            hoist(func, [before, body], value, &mut hoisted)?;
        }
        Some(Counting { end, at, step, is_taken, hoisted })
    }

    fn apply(self, func: &mut Function, around: Region, inst: Inst) {
        let Counting { end: End { mut bound, includes, falls }, at, mut step, is_taken, hoisted } =
            self;
        let [before, body] = [func.insts[inst].regions[0], func.insts[inst].regions[1]];
        for region in [before, body] {
            func.regions[region].insts.retain(|inst| !hoisted.contains(inst));
        }
        let ty = func.ty(bound).clone();
        let loc = func.insts[inst].loc;
        let mut builder = Builder::new(func, around);
        let ahead = builder.create_region();
        builder.switch_to(ahead);
        builder.set_loc(loc);
        if is_taken {
            let none = builder.constant(ty.clone(), 0);
            step = builder.emit(Opcode::Sub, &[none, step], Attrs::None);
        }
        if includes {
            let one = builder.constant(ty.clone(), 1);
            let further = if falls { Opcode::Sub } else { Opcode::Add };
            bound = builder.emit(further, &[bound, one], Attrs::None);
        }
        let made = std::mem::take(&mut func.regions[ahead].insts);
        insert_index(func, body, at, ty);
        let data = &mut func.insts[inst];
        let first = data.operands[at];
        data.opcode = Opcode::For;
        data.attrs = Attrs::Loop(AS_WRITTEN);
        data.operands.insert_many(0, [first, Some(bound), Some(step)]);
        data.regions.remove(0);
        let insts = &mut func.regions[around].insts;
        let place = insts.iter().position(|other| *other == inst).unwrap_or(insts.len());
        insts.splice(place..place, hoisted.into_iter().chain(made));
    }
}

/// What `next` adds to `number`, or takes away from it, and whether it does that.
fn step(next: &InstData, number: Value) -> Option<(Value, bool)> {
    match (next.opcode, next.operand_opt(0)?, next.operand_opt(1)?) {
        (Opcode::Add, of, step) | (Opcode::Add, step, of) if of == number => Some((step, false)),
        (Opcode::Sub, of, step) if of == number => Some((step, true)),
        _ => None,
    }
}

/// Adds to `hoisted` what makes `value` in the regions of a loop, in order; `None` where that is not the same
/// in each trip.
fn hoist(
    func: &Function,
    regions: [Region; 2],
    value: Value,
    hoisted: &mut Vec<Inst>,
) -> Option<()> {
    let inst = match func.values[value].def {
        ValueDef::Argument(region, _) => return (!regions.contains(&region)).then_some(()),
        ValueDef::Result(inst, _) => inst,
    };
    let is_within = regions.iter().any(|region| func.regions[*region].insts.contains(&inst));
    if !is_within || hoisted.contains(&inst) {
        return Some(());
    }
    let data = &func.insts[inst];
    if !data.opcode.is_pure() || !data.regions.is_empty() {
        return None;
    }
    for used in data.uses() {
        hoist(func, regions, used, hoisted)?;
    }
    hoisted.push(inst);
    Some(())
}

/// Gives the body of a loop an index before the values that it carries, and has it read that instead of the
/// value `at`, except to count.
fn insert_index(func: &mut Function, body: Region, at: usize, ty: Type) {
    let number = func.regions[body].args[at];
    let index = func.add_argument(body, ty);
    func.regions[body].args.rotate_right(1);
    for (position, arg) in func.regions[body].args.clone().into_iter().enumerate() {
        func.values[arg].def = ValueDef::Argument(body, position as u32);
    }
    func.values[index].name = func.values[number].name.clone();
    let next = func.terminator(body).and_then(|end| end.operand_opt(at));
    let counts = |inst: &Inst| func.insts[*inst].results.iter().any(|made| Some(*made) == next);
    let readers: Vec<Inst> =
        func.walk_from(body).into_iter().filter(|inst| !counts(inst)).collect();
    for reader in readers {
        let operands = func.insts[reader].operands.iter_mut().flatten();
        operands.filter(|operand| **operand == number).for_each(|operand| *operand = index);
    }
}
