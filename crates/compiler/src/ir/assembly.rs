//! What inline assembly says of its operands, and whether that fits what it is given.

use thiserror::Error;

use super::InlineAsm;

/// What a constraint for NVPTX may consist of besides the numbers of outputs. Source: LLVM's
/// `NVPTXTargetLowering::getConstraintType`, and `n` and `i`, which every target has.
const CONSTRAINT_LETTERS: &str = "bchrlNfdqni";

/// Operands that do not fit the constraints. LLVM ends the process over each.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AsmMismatch {
    /// Arguments take more or fewer registers than the constraints name.
    #[error("the constraints name {}, but the arguments take {}", count(*.named, "input"), count(*.given, "register"))]
    Inputs {
        /// Constraints of inputs.
        named: usize,
        /// Registers of the arguments.
        given: usize,
    },
    /// Results take more or fewer registers than the constraints name.
    #[error("the constraints name {}, but the results take {}", count(*.named, "output"), count(*.given, "register"))]
    Outputs {
        /// Constraints of outputs.
        named: usize,
        /// Registers of the results.
        given: usize,
    },
    /// The text names an operand that there is not.
    #[error("the assembly names `${operand}`, but the constraints have {}", count(*.there_are, "operand"))]
    NoSuchOperand {
        /// The operand.
        operand: usize,
        /// How many there are, outputs and inputs.
        there_are: usize,
    },
}

fn count(number: usize, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        _ => format!("{number} {what}s"),
    }
}

impl InlineAsm {
    /// The constraints, one per operand or clobber.
    pub fn constraints(&self) -> impl Iterator<Item = &str> {
        let all = &*self.constraints.0;
        all.split(',').map(str::trim).filter(move |_| !all.trim().is_empty())
    }

    /// A constraint that NVIDIA GPUs do not have: the assembly is for other ones.
    pub fn foreign_constraint(&self) -> Option<&str> {
        self.constraints().find(|constraint| is_foreign(constraint))
    }

    /// Registers that `pack` elements of `bits` bits take: one each from 32 bits on; narrower ones
    /// share registers of 32 bits, and truth values are bytes. Source: Triton's lowering of
    /// elementwise inline assembly.
    pub fn registers(&self, bits: u32) -> usize {
        let pack = self.pack.max(1);
        match bits.max(8) {
            bits @ 0..32 => (pack * bits).div_ceil(32) as usize,
            _ => pack as usize,
        }
    }

    /// As [`InlineAsm::registers`] of several values; `None` where that needs more to be known.
    fn all_registers(&self, bits: &[Option<u32>]) -> Option<usize> {
        let alone = (self.pack <= 1).then_some(1);
        bits.iter().map(|bits| bits.map(|bits| self.registers(bits)).or(alone)).sum()
    }

    /// Whether the constraints and the text fit arguments and results of these numbers of bits, as
    /// far as they are known. Assembly for other GPUs is not judged.
    ///
    /// # Errors
    /// What does not fit.
    pub fn check(
        &self,
        arguments: &[Option<u32>],
        results: &[Option<u32>],
    ) -> Result<(), AsmMismatch> {
        if self.foreign_constraint().is_some() {
            return Ok(());
        }
        let outputs = self.constraints().filter(|constraint| constraint.starts_with('=')).count();
        let inputs = self.constraints().filter(|constraint| is_input(constraint)).count();
        if let Some(given) = self.all_registers(results).filter(|given| *given != outputs) {
            return Err(AsmMismatch::Outputs { named: outputs, given });
        }
        if let Some(given) = self.all_registers(arguments).filter(|given| *given != inputs) {
            return Err(AsmMismatch::Inputs { named: inputs, given });
        }
        let there_are = outputs + inputs;
        match operands(&self.asm.0).find(|operand| *operand >= there_are) {
            Some(operand) => Err(AsmMismatch::NoSuchOperand { operand, there_are }),
            None => Ok(()),
        }
    }
}

/// Whether LLVM would end the process over a constraint: it is not NVPTX's.
fn is_foreign(constraint: &str) -> bool {
    let known = |letter: char| CONSTRAINT_LETTERS.contains(letter) || letter.is_ascii_digit();
    let place = constraint.trim_start_matches(['=', '&', '*', '%']);
    !place.starts_with("~{") && (place.is_empty() || !place.chars().all(known))
}

/// Whether a constraint is that of an input: neither of a result nor of what is overwritten.
fn is_input(constraint: &str) -> bool {
    !constraint.starts_with(['=', '~'])
}

/// The operands that an assembly text names: `$0`, `${0}` and `${0:b}`; `$$` is a dollar sign.
fn operands(asm: &str) -> impl Iterator<Item = usize> {
    asm.replace("$$", " ")
        .split('$')
        .skip(1)
        .filter_map(|after| {
            let after = after.strip_prefix('{').unwrap_or(after);
            let end = after.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(after.len());
            after[..end].parse().ok()
        })
        .collect::<Vec<usize>>()
        .into_iter()
}
