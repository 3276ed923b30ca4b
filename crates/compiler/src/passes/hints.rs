//! Uses what the author asserts of a value wherever that value is used later.
//!
//! `tl.multiple_of(x, 16)` says something of `x`, whether or not its result is given a name: so what
//! uses `x` after it, in the same region or inside, uses the result. In: a verified function. Out: the
//! same function. Cost: linear per assertion.

use crate::ir::{Function, Opcode};

/// Has later uses of values take what is asserted of them.
pub(crate) fn spread_hints(func: &mut Function) {
    for region in func.regions.keys().collect::<Vec<_>>() {
        let insts = func.regions[region].insts.clone();
        for (at, &hint) in insts.iter().enumerate() {
            if func.insts[hint].opcode != Opcode::AssertFacts {
                continue;
            }
            let (value, asserted) = (func.insts[hint].operand(0), func.insts[hint].result());
            for inst in
                insts[at + 1..].iter().flat_map(|&inst| func.walk_inst(inst)).collect::<Vec<_>>()
            {
                let operands = func.insts[inst].operands.iter_mut().flatten();
                operands.filter(|operand| **operand == value).for_each(|it| *it = asserted);
            }
        }
    }
}
