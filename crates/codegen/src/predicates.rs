//! Truth values that blocks pass on, as numbers.
//!
//! A thread has seven predicate registers. More truth values than these the assembler packs into bits,
//! which loops take apart and put together in every iteration: that costs several instructions a value.
//! A register for each costs one.

use std::collections::HashMap;

use inkwell::IntPredicate;
use inkwell::basic_block::BasicBlock;
use inkwell::builder::{Builder, BuilderError};
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::types::IntType;
use inkwell::values::{
    BasicValue, FunctionValue, InstructionOpcode, InstructionValue, IntValue, Operand, PhiValue,
};

/// Blocks may take this many truth values from others as they are.
const MAX_PASSED: usize = 4;

/// How many combinations lie between what a loop carries and what it goes on with, at most.
const MAX_DEPTH: u32 = 4;

/// Widens the truth values of blocks that take many. `module` is optimized: LLVM would narrow them
/// again.
pub(crate) fn widen<'c>(context: &'c Context, module: &Module<'c>) -> Result<(), BuilderError> {
    for function in module.get_functions() {
        let (builder, wide) = (context.create_builder(), context.i32_type());
        let (known, tests) = Default::default();
        Widener { builder, wide, known, tests }.function(function)?;
    }
    Ok(())
}

struct Widener<'c> {
    builder: Builder<'c>,
    wide: IntType<'c>,
    /// Truth values as numbers, at the ends of blocks.
    known: HashMap<(IntValue<'c>, BasicBlock<'c>), IntValue<'c>>,
    /// Tests of numbers that were truth values, and these numbers.
    tests: HashMap<IntValue<'c>, IntValue<'c>>,
}

impl<'c> Widener<'c> {
    fn function(&mut self, function: FunctionValue<'c>) -> Result<(), BuilderError> {
        for block in function.get_basic_blocks() {
            let phis: Vec<_> = truth_values(block).collect();
            if phis.len() > MAX_PASSED {
                phis.into_iter().try_for_each(|phi| self.phi(block, phi))?;
            }
        }
        Ok(())
    }

    /// Passes what `phi` is as a number.
    fn phi(&mut self, block: BasicBlock<'c>, phi: PhiValue<'c>) -> Result<(), BuilderError> {
        let narrow = phi.as_instruction();
        self.builder.position_before(&narrow);
        let wide = self.builder.build_phi(self.wide, "")?;
        for (value, from) in phi.get_incomings() {
            if let Some(end) = from.get_terminator() {
                self.builder.position_before(&end);
            }
            let place = (value.into_int_value(), from);
            let value = match self.known.get(&place) {
                Some(known) => *known,
                None => self.widened(place.0, (narrow, wide))?,
            };
            self.known.insert(place, value);
            wide.add_incoming(&[(&value, from)]);
        }
        let is_phi = |inst: &InstructionValue<'c>| inst.get_opcode() == InstructionOpcode::Phi;
        if let Some(first) = block.get_instructions().find(|inst| !is_phi(inst)) {
            self.builder.position_before(&first);
        }
        let wide = wide.as_basic_value().into_int_value();
        let zero = self.wide.const_zero();
        let test = self.builder.build_int_compare(IntPredicate::NE, wide, zero, "")?;
        self.tests.insert(test, wide);
        if let Some(test) = test.as_instruction_value() {
            narrow.replace_all_uses_with(&test);
        }
        narrow.erase_from_basic_block();
        Ok(())
    }

    /// `value` as a number, made of the carried number where it is made of the carried truth value.
    fn widened(
        &self,
        value: IntValue<'c>,
        carried: (InstructionValue<'c>, PhiValue<'c>),
    ) -> Result<IntValue<'c>, BuilderError> {
        if let Some(number) = self.tests.get(&value) {
            return Ok(*number);
        }
        let made = value.as_instruction_value().filter(|made| follows(*made, carried.0, MAX_DEPTH));
        let Some(made) = made else {
            return self.builder.build_int_z_extend(value, self.wide, "");
        };
        if made == carried.0 {
            return Ok(carried.1.as_basic_value().into_int_value());
        }
        let [a, b] = operands(made);
        let from_a = is_made_of(a, carried.0, MAX_DEPTH - 1);
        let (made_of, other) = if from_a { (a, b) } else { (b, a) };
        let before = self.widened(made_of, carried)?;
        let [one, zero] = [1, 0].map(|number| self.wide.const_int(number, false));
        let (yes, no) = match made.get_opcode() {
            InstructionOpcode::Or => (one, before),
            _ => (before, zero),
        };
        Ok(self.builder.build_select(other, yes, no, "")?.into_int_value())
    }
}

/// The truth values that come into `block`.
fn truth_values<'c>(block: BasicBlock<'c>) -> impl Iterator<Item = PhiValue<'c>> {
    let phis = block.get_instructions().map_while(|inst| PhiValue::try_from(inst).ok());
    phis.filter(|phi| {
        let ty = phi.as_basic_value().get_type();
        ty.is_int_type() && ty.into_int_type().get_bit_width() == 1
    })
}

/// Whether `inst` is `carried`, or joins it with others.
fn follows(inst: InstructionValue<'_>, carried: InstructionValue<'_>, depth: u32) -> bool {
    let joins = matches!(inst.get_opcode(), InstructionOpcode::Or | InstructionOpcode::And);
    let made_of = |operand| is_made_of(operand, carried, depth - 1);
    inst == carried || depth > 0 && joins && operands(inst).into_iter().any(made_of)
}

fn is_made_of(value: IntValue<'_>, carried: InstructionValue<'_>, depth: u32) -> bool {
    value.as_instruction_value().is_some_and(|inst| follows(inst, carried, depth))
}

/// The operands of what joins two integers.
fn operands(inst: InstructionValue<'_>) -> [IntValue<'_>; 2] {
    [0, 1].map(|at| match inst.get_operand(at) {
        Some(Operand::Value(value)) => value.into_int_value(),
        _ => unreachable!("invariant: both operands of a join are values"),
    })
}
