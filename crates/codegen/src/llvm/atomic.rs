//! Atomics of global memory.
//!
//! Each instruction updates as many neighbors as it takes. Registers that repeat an element update
//! it once.

use std::fmt::Write;

use smallvec::SmallVec;
use tile_compiler::ir::{
    AtomicOp, Attrs, Elem, Inst, InstData, MemoryOrder, MemoryScope, Opcode, Scalar, Value,
};

use super::index::runs;
use super::memory::{Words, memory_bits};
use super::text::{Ty, Val};
use super::{Emitted, Emitter};
use crate::CodegenError;

impl Emitter<'_> {
    /// Atomics, of as many neighbors as one instruction takes. Of a scalar one thread does it for
    /// all: its result reaches the others through shared memory, and what it releases is what all
    /// of them accessed before, so it waits for them.
    pub(super) fn atomic(&mut self, inst: Inst, data: &InstData) -> Emitted {
        let ptr = data.operand(0);
        if self.layout(ptr).is_none() && releases(data) {
            self.barrier();
        }
        let elem = self.elem_of(data.operand(1))?;
        let ptrs = self.operand(data, 0);
        let operands: Vec<Vec<Val>> = data
            .uses()
            .skip(1)
            .take(if data.opcode == Opcode::AtomicCas { 2 } else { 1 })
            .map(|value| self.registers(value))
            .collect();
        let mask = match data.opcode {
            Opcode::AtomicRmw => data.operand_opt(2),
            _ => None,
        };
        let masks = mask.map(|mask| self.registers(mask));
        let owner = self.owner(ptr);
        let mut registers = vec![Val::Poison; ptrs.len()];
        for group in &self.atomic_groups(data, ptr, mask, elem) {
            let predicate = self.both(masks.as_ref().map(|mask| mask[group[0]]), owner);
            let words = Words::new(memory_bits(elem), group.len());
            let args: Vec<Vec<Val>> = operands
                .iter()
                .map(|all| {
                    let parts: Vec<Val> = group.iter().map(|&at| all[at]).collect();
                    self.pack(Ty::of(elem), words, &parts)
                })
                .collect();
            let old = self.atomic_run(data, elem, words, ptrs[group[0]], &args, predicate)?;
            let values = self.unpack(elem, words, &old);
            for (&register, value) in group.iter().zip(values) {
                registers[register] = value;
            }
        }
        let result = data.result();
        self.copy_repeated_registers(ptr, &mut registers);
        if self.plan.is_shared_result(inst) {
            self.share_owned(inst, ptr, elem, &mut registers)?;
        }
        self.set(result, registers);
        Ok(())
    }

    /// Registers whose elements one instruction updates, those that repeat others left out.
    fn atomic_groups(
        &self,
        data: &InstData,
        ptr: Value,
        mask: Option<Value>,
        elem: Elem,
    ) -> Vec<SmallVec<[usize; 16]>> {
        let Some(layout) = self.layout(ptr) else { return vec![SmallVec::from_slice(&[0])] };
        let bytes = memory_bits(elem) / 8;
        let (_, mut bits) = self.access_bits(ptr, layout, bytes, |axis| self.alike(mask, axis));
        bits.truncate(self.atomic_width(data, elem).trailing_zeros() as usize);
        runs(layout, &bits)
    }

    /// Neighbors that one atomic instruction takes at most: only sums of floats come in vectors.
    fn atomic_width(&self, data: &InstData, elem: Elem) -> u32 {
        let hopper = self.target.arch.capability >= 90;
        let adds = matches!(&data.attrs, Attrs::Atomic(atomic) if atomic.op == AtomicOp::FAdd);
        match elem.scalar() {
            Some(Scalar::F32) if adds && hopper => 4,
            Some(Scalar::F16 | Scalar::BF16) if adds && hopper => 8,
            Some(Scalar::F16) if adds => 2,
            _ => 1,
        }
    }

    /// One instruction; the words that memory held before.
    fn atomic_run(
        &mut self,
        data: &InstData,
        elem: Elem,
        words: Words,
        ptr: Val,
        args: &[Vec<Val>],
        predicate: Option<Val>,
    ) -> Result<Vec<Val>, CodegenError> {
        let bits = memory_bits(elem);
        let (op, order, scope) = match &data.attrs {
            Attrs::Atomic(atomic) => (Some(atomic.op), atomic.order, atomic.scope),
            Attrs::AtomicCas(cas) => (None, cas.order, cas.scope),
            _ => return Err(self.unsupported(data)),
        };
        let (order, scope) = (order_name(order), scope_name(scope));
        // Loads and stores are instructions of their own, for bytes as well.
        let (reads, writes) = (op != Some(AtomicOp::Store), op != Some(AtomicOp::Load));
        let instruction = match op {
            Some(AtomicOp::Load) => format!("ld.{order}.{scope}.global.b{bits}"),
            Some(AtomicOp::Store) => format!("st.{order}.{scope}.global.b{bits}"),
            _ if bits < 16 => return Err(self.unsupported(data)),
            Some(op) => {
                let name = self.atomic_name(data, op, elem, words)?;
                format!("atom.global.{order}.{scope}.{name}")
            }
            None => format!("atom.global.{order}.{scope}.cas.b{bits}"),
        };
        let (letter, word, count) = (words.letter(), words.ty(), words.count);
        let list = |first: usize| {
            let places: Vec<String> = (first..first + count).map(|at| format!("${at}")).collect();
            if count == 1 { places[0].clone() } else { format!("{{{}}}", places.join(", ")) }
        };
        let mut constraints = vec![format!("={letter}"); count];
        let mut text = vec![format!("ptr addrspace(1) {ptr}")];
        let mut asm: String =
            (0..count).map(|at| format!("mov.b{} ${at}, 0; ", words.bits.max(16))).collect();
        constraints.push("l".to_owned());
        let mut places = String::new();
        for arg in args.iter().filter(|_| writes) {
            let _ = write!(places, ", {}", list(constraints.len()));
            for value in arg {
                constraints.push(letter.to_owned());
                let value = self.text.cast("zext", word, *value, words.register());
                text.push(format!("{} {value}", words.register()));
            }
        }
        if let Some(predicate) = predicate {
            let _ = write!(asm, "@${} ", constraints.len());
            constraints.push("b".to_owned());
            text.push(format!("i1 {predicate}"));
        }
        let result_place = if reads { format!("{}, ", list(0)) } else { String::new() };
        let _ = write!(asm, "{instruction} {result_place}[${count}]{places};");
        let result = words.result();
        let old = self.text.op(format_args!(
            "call {result} asm sideeffect \"{asm}\", \"{}\"({})",
            constraints.join(","),
            text.join(", ")
        ));
        Ok(self.parts(words, old))
    }

    fn atomic_name(
        &self,
        data: &InstData,
        op: AtomicOp,
        elem: Elem,
        words: Words,
    ) -> Result<String, CodegenError> {
        let bits = memory_bits(elem);
        let vector = if words.count > 1 { format!(".v{}", words.count) } else { String::new() };
        let pair = if words.elements > 1 { "x2" } else { "" };
        let name = match op {
            AtomicOp::Add => format!("add.u{bits}"),
            AtomicOp::And => format!("and.b{bits}"),
            AtomicOp::Or => format!("or.b{bits}"),
            AtomicOp::Xor => format!("xor.b{bits}"),
            AtomicOp::SMax => format!("max.s{bits}"),
            AtomicOp::SMin => format!("min.s{bits}"),
            AtomicOp::UMax => format!("max.u{bits}"),
            AtomicOp::UMin => format!("min.u{bits}"),
            AtomicOp::Exchange => format!("exch.b{bits}"),
            AtomicOp::Load | AtomicOp::Store => return Err(self.unsupported(data)),
            AtomicOp::FAdd => match elem.scalar() {
                Some(Scalar::F32) => format!("add{vector}.f32"),
                Some(Scalar::F64) => "add.f64".to_owned(),
                Some(Scalar::F16) => format!("add.noftz{vector}.f16{pair}"),
                Some(Scalar::BF16) if self.target.arch.capability >= 90 => {
                    format!("add.noftz{vector}.bf16{pair}")
                }
                _ => return Err(self.unsupported(data)),
            },
        };
        Ok(name)
    }
}

fn order_name(order: MemoryOrder) -> &'static str {
    match order {
        MemoryOrder::Relaxed => "relaxed",
        MemoryOrder::Acquire => "acquire",
        MemoryOrder::Release => "release",
        MemoryOrder::AcqRel => "acq_rel",
    }
}

fn scope_name(scope: MemoryScope) -> &'static str {
    match scope {
        MemoryScope::Cta => "cta",
        MemoryScope::Gpu => "gpu",
        MemoryScope::Sys => "sys",
    }
}

/// Whether an atomic orders what came before it.
fn releases(data: &InstData) -> bool {
    let order = match &data.attrs {
        Attrs::Atomic(atomic) => atomic.order,
        Attrs::AtomicCas(cas) => cas.order,
        _ => return false,
    };
    matches!(order, MemoryOrder::Release | MemoryOrder::AcqRel)
}
