//! Structured control flow to basic blocks.

use tile_compiler::ir::{Inst, InstData, Opcode, Region, Value};

use super::text::{Block, Ty, Val};
use super::{Emitted, Emitter};
use crate::CodegenError;

/// Registers that a block takes from each of its predecessors.
struct Carried {
    registers: Vec<(Val, Ty)>,
}

impl Emitter<'_> {
    /// Reserves names for `values`, which `block` will define by where control comes from.
    fn carry(&mut self, values: &[Value]) -> Result<Carried, CodegenError> {
        let mut registers = Vec::new();
        for &value in values {
            let ty = self.register_ty(value)?;
            let names: Vec<Val> =
                (0..self.register_count(value)).map(|_| self.text.reserve()).collect();
            registers.extend(names.iter().map(|&name| (name, ty)));
            self.set(value, names);
        }
        Ok(Carried { registers })
    }

    fn define(&mut self, carried: &Carried, block: Block, from: &[(Vec<Val>, Block)]) {
        for (at, &(name, ty)) in carried.registers.iter().enumerate() {
            let sources: Vec<(Val, Block)> =
                from.iter().map(|(values, block)| (values[at], *block)).collect();
            self.text.phi(block, name, ty, &sources);
        }
    }

    fn flat(&self, values: impl IntoIterator<Item = Value>) -> Vec<Val> {
        values.into_iter().flat_map(|value| self.registers(value)).collect()
    }

    fn terminator_values(&self, region: Region) -> Vec<Value> {
        self.func.terminator(region).map(|end| end.uses().collect()).unwrap_or_default()
    }

    /// Results are the loop's arguments as they are when the condition fails.
    fn alias_results(&mut self, data: &InstData, sources: &[Value]) {
        for (&result, &source) in data.results.iter().zip(sources) {
            let registers = self.registers(source);
            self.set(result, registers);
        }
    }

    /// A loop, with fences where it needs them: what was written before is shown before, and an
    /// iteration that ends before it has shown all that it wrote leaves that to the next one.
    pub(super) fn fenced_loop(
        &mut self,
        data: &InstData,
        emit: fn(&mut Self, &InstData) -> Emitted,
    ) -> Emitted {
        let leaves = data.regions.iter().any(|&region| self.region_leaves_unfenced(region));
        match leaves {
            true => self.unfenced = true,
            false => self.fence(),
        }
        emit(self, data)?;
        self.unfenced = leaves;
        Ok(())
    }

    /// Whether something in `region` needs a fence and no barrier follows for certain, at which fences
    /// are.
    fn region_leaves_unfenced(&self, region: Region) -> bool {
        let mut leaves = false;
        for &inst in &self.func.regions[region].insts {
            let is = |inst: Inst, opcode: Opcode| self.func.insts[inst].opcode == opcode;
            let inner = self.func.walk_inst(inst);
            leaves |= inner.into_iter().any(|inst| self.leaves_unfenced(inst));
            leaves &= !is(inst, Opcode::Barrier);
        }
        leaves
    }

    pub(super) fn counted_loop(&mut self, data: &InstData) -> Emitted {
        let body_region = data.regions[0];
        let args = self.func.regions[body_region].args.clone();
        let ty = self.register_ty(args[0])?;
        let [lower, upper, step] = [0, 1, 2].map(|slot| self.operand(data, slot)[0]);
        let inits: Vec<Val> = self.flat(data.uses().skip(3));
        let entry = self.text.current();
        let [head, body, exit] = [(); 3].map(|()| self.text.add_block());
        self.text.jump(head);
        self.text.switch_to(head);
        let carried = self.carry(&args)?;
        let index = self.registers(args[0])[0];
        let goes_on = self.loop_condition(ty, index, upper, step);
        self.text.branch(goes_on, body, exit);
        self.text.switch_to(body);
        let location = self.text.location;
        self.region(body_region)?;
        self.text.location = location;
        let next = self.text.binary("add nsw", ty, index, step);
        let mut latch_values = vec![next];
        latch_values.extend(self.flat(self.terminator_values(body_region)));
        let latch = self.text.current();
        self.text.jump(head);
        let mut entry_values = vec![lower];
        entry_values.extend(inits);
        self.define(&carried, head, &[(entry_values, entry), (latch_values, latch)]);
        self.text.switch_to(exit);
        self.alias_results(data, &args[1..]);
        Ok(())
    }

    /// Whether a counted loop goes on: the direction is that of the step's sign.
    fn loop_condition(&mut self, ty: Ty, index: Val, upper: Val, step: Val) -> Val {
        let less = |this: &mut Self| this.text.op(format_args!("icmp slt {ty} {index}, {upper}"));
        let greater =
            |this: &mut Self| this.text.op(format_args!("icmp sgt {ty} {index}, {upper}"));
        match step {
            Val::Int(step) if step > 0 => less(self),
            Val::Int(_) => greater(self),
            // As in Triton, a step that is not a constant counts upward.
            _ => less(self),
        }
    }

    pub(super) fn while_loop(&mut self, data: &InstData) -> Emitted {
        let [before, after] = [data.regions[0], data.regions[1]];
        let inits: Vec<Val> = self.flat(data.uses());
        let entry = self.text.current();
        let [head, body, exit] = [(); 3].map(|()| self.text.add_block());
        self.text.jump(head);
        self.text.switch_to(head);
        let args = self.func.regions[before].args.clone();
        let carried = self.carry(&args)?;
        self.region(before)?;
        let passed = self.terminator_values(before);
        let goes_on = self.registers(passed[0])[0];
        self.text.branch(goes_on, body, exit);
        let after_args = self.func.regions[after].args.clone();
        for (&arg, &value) in after_args.iter().zip(&passed[1..]) {
            let registers = self.registers(value);
            self.set(arg, registers);
        }
        self.text.switch_to(body);
        self.region(after)?;
        let next = self.flat(self.terminator_values(after));
        let latch = self.text.current();
        self.text.jump(head);
        self.define(&carried, head, &[(inits, entry), (next, latch)]);
        self.text.switch_to(exit);
        self.alias_results(data, &passed[1..]);
        Ok(())
    }

    pub(super) fn branch(&mut self, data: &InstData) -> Emitted {
        let condition = self.operand(data, 0)[0];
        let [yes, no, join] = [(); 3].map(|()| self.text.add_block());
        self.text.branch(condition, yes, no);
        let mut from = Vec::new();
        let before = self.unfenced;
        let mut after = false;
        for (&region, block) in data.regions.iter().zip([yes, no]) {
            self.unfenced = before;
            self.text.switch_to(block);
            self.region(region)?;
            let values = self.flat(self.terminator_values(region));
            from.push((values, self.text.current()));
            self.text.jump(join);
            after |= self.unfenced;
        }
        self.unfenced = after;
        self.text.switch_to(join);
        let carried = self.carry(&data.results)?;
        self.define(&carried, join, &from);
        Ok(())
    }
}
