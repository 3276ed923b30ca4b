//! Addresses that are constant distances apart.
//!
//! LLVM takes a constant out of an address, but stops at the first that it finds: what lies one row and eight
//! columns further keeps the columns, and gets a register of its own. What has no constant is added up in
//! another order than its neighbors, so that it shares nothing with them either. Here all constants of an
//! address come out at once, and neighbors become distances from one base, which instructions hold.
//!
//! Loops are left alone: LLVM finds there what is carried from iteration to iteration. On an H100 two of
//! them took 1.02 and 1.07 times as long with bases of their own.

use std::collections::HashMap;

use inkwell::basic_block::BasicBlock;
use inkwell::builder::{Builder, BuilderError};
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::targets::TargetData;
use inkwell::types::{BasicTypeEnum, IntType};
use inkwell::values::{
    AsValueRef, BasicValue, FunctionValue, InstructionOpcode, InstructionValue, IntValue, Operand,
    PointerValue,
};

/// Has the addresses of `module`, which is optimized, share bases.
pub(crate) fn share_bases<'c>(
    context: &'c Context,
    module: &Module<'c>,
    data: &TargetData,
) -> Result<(), BuilderError> {
    let writer = Writer { builder: context.create_builder(), context, data };
    let mut blocks = module.get_functions().flat_map(straight_blocks);
    blocks.try_for_each(|block| writer.block(block))
}

/// The blocks of `function` that no branch to an earlier one goes back over.
fn straight_blocks(function: FunctionValue<'_>) -> Vec<BasicBlock<'_>> {
    let blocks = function.get_basic_blocks();
    let places: HashMap<BasicBlock<'_>, usize> = blocks.iter().copied().zip(0..).collect();
    let mut loops = Vec::new();
    for (end, block) in blocks.iter().enumerate() {
        let targets = block.get_terminator().into_iter().flat_map(InstructionValue::get_operands);
        let starts = targets.filter_map(|target| match target {
            Some(Operand::Block(target)) => places.get(&target).copied(),
            _ => None,
        });
        loops.extend(starts.filter(|&start| start <= end).map(|start| start..=end));
    }
    let is_straight = |at: &usize| !loops.iter().any(|range| range.contains(at));
    (0..blocks.len()).filter(is_straight).map(|at| blocks[at]).collect()
}

/// An address: elements behind a pointer.
struct Address<'c> {
    inst: InstructionValue<'c>,
    element: BasicTypeEnum<'c>,
    base: Base<'c>,
    /// The elements that are the same in all threads and iterations.
    distance: i64,
}

/// What of an address is no constant.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Base<'c> {
    pointer: PointerValue<'c>,
    element_bytes: u64,
    terms: Vec<Term<'c>>,
}

/// A term of the number of elements: numbers without common bits, together extended to 64 bits.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Term<'c> {
    extension: Extension,
    parts: Vec<IntValue<'c>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Extension {
    None,
    Sign,
    Zero,
}

impl<'c> Address<'c> {
    fn of(inst: InstructionValue<'c>, data: &TargetData) -> Option<Address<'c>> {
        if inst.get_opcode() != InstructionOpcode::GetElementPtr || inst.get_num_operands() != 2 {
            return None;
        }
        let (Operand::Value(pointer), Operand::Value(index)) =
            (inst.get_operand(0)?, inst.get_operand(1)?)
        else {
            return None;
        };
        if !pointer.is_pointer_value() || !index.is_int_value() {
            return None;
        }
        let index = index.into_int_value();
        // Numbers of elements in shared memory have 32 bits, and LLVM finds their constants.
        if index.get_type().get_bit_width() != 64 {
            return None;
        }
        let (mut terms, mut distance) = (Vec::new(), 0);
        collect_terms(index, &mut terms, &mut distance);
        let element = inst.get_gep_source_element_type().ok()?;
        let (pointer, element_bytes) = (pointer.into_pointer_value(), data.get_abi_size(&element));
        let base = Base { pointer, element_bytes, terms };
        (!base.terms.is_empty()).then_some(Address { inst, element, base, distance })
    }
}

/// The terms of `index`, which has 64 bits, and the sum of its constants.
fn collect_terms<'c>(index: IntValue<'c>, terms: &mut Vec<Term<'c>>, distance: &mut i64) {
    if let Some(constant) = index.get_sign_extended_constant() {
        *distance = distance.wrapping_add(constant);
        return;
    }
    let made = index.as_instruction_value();
    if let Some(inst) =
        made.filter(|&inst| inst.get_opcode() == InstructionOpcode::Add || joins(inst))
    {
        let [a, b] = operands(inst);
        collect_terms(a, terms, distance);
        collect_terms(b, terms, distance);
        return;
    }
    let extension = match made.map(InstructionValue::get_opcode) {
        Some(InstructionOpcode::SExt) => Extension::Sign,
        Some(InstructionOpcode::ZExt) => Extension::Zero,
        _ => Extension::None,
    };
    let mut parts = Vec::new();
    match made.filter(|_| extension != Extension::None).and_then(|inst| inst.get_operand(0)) {
        Some(Operand::Value(narrow)) => {
            collect_parts(narrow.into_int_value(), extension, &mut parts, distance);
        }
        _ => parts.push(index),
    }
    if !parts.is_empty() {
        terms.push(Term { extension, parts });
    }
}

/// The parts of `number` before its extension, and what its constants come to behind it.
fn collect_parts<'c>(
    number: IntValue<'c>,
    extension: Extension,
    parts: &mut Vec<IntValue<'c>>,
    distance: &mut i64,
) {
    let constant = match extension {
        Extension::Zero => number.get_zero_extended_constant().map(|constant| constant as i64),
        Extension::Sign | Extension::None => number.get_sign_extended_constant(),
    };
    if let Some(constant) = constant {
        *distance = distance.wrapping_add(constant);
    } else if let Some(inst) = number.as_instruction_value().filter(|&inst| joins(inst)) {
        for operand in operands(inst) {
            collect_parts(operand, extension, parts, distance);
        }
    } else {
        parts.push(number);
    }
}

/// Whether `inst` joins numbers that have no bits in common, which is their sum, extended or not.
fn joins(inst: InstructionValue<'_>) -> bool {
    inst.get_opcode() == InstructionOpcode::Or && inst.get_disjoint_flag() == Ok(true)
}

struct Writer<'a, 'c> {
    builder: Builder<'c>,
    context: &'c Context,
    data: &'a TargetData,
}

impl<'c> Writer<'_, 'c> {
    fn block(&self, block: BasicBlock<'c>) -> Result<(), BuilderError> {
        let mut groups: Vec<Vec<Address<'c>>> = Vec::new();
        let mut known: HashMap<Base<'c>, usize> = HashMap::new();
        for mut address in block.get_instructions().filter_map(|inst| Address::of(inst, self.data))
        {
            let first = address.base.clone();
            address.base.sort();
            let at = *known.entry(address.base.clone()).or_insert(groups.len());
            if at == groups.len() {
                // The order in which the first address adds up its terms is kept.
                groups.push(vec![Address { base: first, ..address }]);
            } else {
                groups[at].push(address);
            }
        }
        let differ = |group: &Vec<Address<'c>>| {
            group.iter().any(|address| address.distance != group[0].distance)
        };
        groups.iter().filter(|group| differ(group)).try_for_each(|group| self.share(group))
    }

    /// Computes the base before the first address that has it, and each address from it.
    fn share(&self, group: &[Address<'c>]) -> Result<(), BuilderError> {
        let Address { inst, element, base: Base { element_bytes, terms, .. }, .. } = &group[0];
        // An address that it counts from may have been replaced.
        let Some(Operand::Value(pointer)) = inst.get_operand(0) else {
            unreachable!("invariant: an address counts from a pointer")
        };
        self.builder.position_before(inst);
        let index = self.sum(terms)?;
        // SAFETY: the operands have the types of those of the address that stood here.
        let base = unsafe {
            self.builder.build_gep(*element, pointer.into_pointer_value(), &[index], "")?
        };
        for Address { inst, distance, .. } in group {
            self.builder.position_before(inst);
            let bytes =
                self.wide().const_int((*distance as u64).wrapping_mul(*element_bytes), false);
            let byte = self.context.i8_type();
            // SAFETY: as above.
            let address = unsafe { self.builder.build_gep(byte, base, &[bytes], "")? };
            if let Some(address) = address.as_instruction_value() {
                inst.replace_all_uses_with(&address);
            }
            inst.erase_from_basic_block();
        }
        Ok(())
    }

    fn wide(&self) -> IntType<'c> {
        self.context.i64_type()
    }

    fn sum(&self, terms: &[Term<'c>]) -> Result<IntValue<'c>, BuilderError> {
        let mut sum: Option<IntValue<'c>> = None;
        for Term { extension, parts } in terms {
            let mut number = parts[0];
            for &part in &parts[1..] {
                number = self.builder.build_or(number, part, "")?;
                if let Some(joined) = number.as_instruction_value() {
                    // It is an instruction that may be so.
                    let _ = joined.set_disjoint_flag(true);
                }
            }
            let number = match extension {
                Extension::None => number,
                Extension::Sign => self.builder.build_int_s_extend(number, self.wide(), "")?,
                Extension::Zero => self.builder.build_int_z_extend(number, self.wide(), "")?,
            };
            sum = Some(match sum {
                Some(sum) => self.builder.build_int_add(sum, number, "")?,
                None => number,
            });
        }
        Ok(sum.expect("invariant: a base has terms"))
    }
}

impl Base<'_> {
    /// Puts terms and parts into an order that does not depend on how they were added up.
    fn sort(&mut self) {
        let place = |value: &IntValue<'_>| value.as_value_ref();
        for term in &mut self.terms {
            term.parts.sort_by_key(place);
        }
        self.terms.sort_by_key(|term| (place(&term.parts[0]), term.extension as u8));
    }
}

/// The operands of a sum.
fn operands(inst: InstructionValue<'_>) -> [IntValue<'_>; 2] {
    [0, 1].map(|at| match inst.get_operand(at) {
        Some(Operand::Value(value)) => value.into_int_value(),
        _ => unreachable!("invariant: both operands of a sum are values"),
    })
}
