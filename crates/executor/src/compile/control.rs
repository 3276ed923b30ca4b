//! Loops and branches: values move between registers when a region is entered or left.

use rustc_hash::FxHashSet;
use tile_compiler::ir::{Inst, InstData, Region, Value, ValueDef};

use super::super::frame::Slot;
use super::super::program::{Block, For, If, Moves, While};
use super::{Compilation, Compiler};

impl Compiler<'_> {
    pub(super) fn counted_loop(&mut self, data: &InstData) -> Compilation<For> {
        let region = data.regions[0];
        let args = &self.func.regions[region].args;
        let bounds = [0, 1, 2].map(|at| self.slot(data.operand(at)));
        let inits: Vec<Value> = data.uses().skip(3).collect();
        let carried = self.slots(args.iter().skip(1).copied());
        let results = self.slots(data.results.iter().copied());
        Ok(For {
            bounds,
            index: self.slot(args[0]),
            scalar: self.scalar(args[0]),
            enter: self.enter(&inits, &carried),
            body: self.block(region)?,
            next: self.pass(region, 0, &carried),
            leave: swap_all(&carried, &results),
        })
    }

    pub(super) fn while_loop(&mut self, inst: Inst) -> Compilation<While> {
        let data = &self.func.insts[inst];
        let [before, after] = [data.regions[0], data.regions[1]];
        let inits: Vec<Value> = data.uses().collect();
        let carried = self.slots(self.func.regions[before].args.iter().copied());
        let passed = self.slots(self.func.regions[after].args.iter().copied());
        let results = self.slots(data.results.iter().copied());
        let before_block = self.block(before)?;
        let condition = self.yielded(before)[0];
        Ok(While {
            waits: self.func.rereads(inst),
            enter: self.enter(&inits, &carried),
            before: before_block,
            condition: self.slot(condition),
            pass: self.pass(before, 1, &passed),
            after: self.block(after)?,
            next: self.pass(after, 0, &carried),
            leave: self.pass(before, 1, &results),
        })
    }

    pub(super) fn branch(&mut self, data: &InstData) -> Compilation<If> {
        let results = self.slots(data.results.iter().copied());
        let mut branch = |at: usize| -> Compilation<(Block, Moves)> {
            let region = data.regions[at];
            Ok((self.block(region)?, self.pass(region, 0, &results)))
        };
        let branches = [branch(0)?, branch(1)?];
        Ok(If { condition: self.slot(data.operand(0)), branches })
    }

    /// Copies of initial values, which may live on.
    fn enter(&mut self, inits: &[Value], carried: &[Slot]) -> Moves {
        let inits = self.slots(inits.iter().copied());
        Moves {
            copies: inits.into_iter().zip(carried.iter().copied()).collect(),
            ..Moves::default()
        }
    }

    pub(super) fn yielded(&self, region: Region) -> Vec<Value> {
        let end = self.func.terminator(region);
        end.map(|inst| inst.uses().collect()).unwrap_or_default()
    }

    /// Moves what a region's terminator passes on, after its first `skip` operands.
    fn pass(&mut self, region: Region, skip: usize, targets: &[Slot]) -> Moves {
        let mut moves = Moves::default();
        let mut seen = FxHashSet::default();
        for (value, &to) in self.yielded(region).into_iter().skip(skip).zip(targets) {
            let from = self.slot(value);
            if from == to {
                continue;
            }
            let dead = match self.func.values[value].def {
                ValueDef::Result(inst, _) => self.func.regions[region].insts.contains(&inst),
                ValueDef::Argument(of, _) => of == region && !targets.contains(&from),
            };
            if dead && !self.pinned.contains(&value) && seen.insert(value) {
                moves.swaps.push((from, to));
            } else if targets.contains(&from) {
                moves.staged.push((from, to));
            } else if seen.contains(&value) {
                // Taken by an exchange already: copy from where it went.
                let went = moves.swaps.iter().find(|(source, _)| *source == from);
                let source = went.map_or(from, |&(_, target)| target);
                moves.after.push((source, to));
            } else {
                moves.copies.push((from, to));
            }
        }
        moves
    }
}

fn swap_all(from: &[Slot], to: &[Slot]) -> Moves {
    Moves { swaps: from.iter().copied().zip(to.iter().copied()).collect(), ..Moves::default() }
}
