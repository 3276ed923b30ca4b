//! Code that the kernel's author gives per element: regions and inline assembly.

use tile_compiler::ir::{Attrs, InlineAsm, InstData};

use super::text::{Ty, Val};
use super::{Emitted, Emitter};
use crate::CodegenError;

impl Emitter<'_> {
    /// Applies a region to `pack` elements of each operand at a time: its arguments are the first
    /// operand's elements, then the second's; it yields the first result's elements, then the
    /// second's.
    pub(super) fn map_elements(&mut self, data: &InstData) -> Emitted {
        let Attrs::Pack(pack) = &data.attrs else { return Err(self.unsupported(data)) };
        let pack = pack.pack.max(1) as usize;
        let region = data.regions[0];
        let inputs: Vec<Vec<Val>> = data.uses().map(|value| self.registers(value)).collect();
        let count = self.register_count(data.results[0]);
        let mut results = vec![Vec::with_capacity(count); data.results.len()];
        for first in (0..count).step_by(pack) {
            let args = self.func.regions[region].args.clone();
            let elements = inputs.iter().flat_map(|input| {
                // Where a thread holds fewer elements than a pack, the last one is repeated.
                (first..first + pack).map(|at| input[at.min(input.len() - 1)])
            });
            let elements: Vec<Val> = elements.collect();
            for (&arg, value) in args.iter().zip(elements) {
                self.set(arg, vec![value]);
            }
            self.region(region)?;
            let yielded: Vec<Val> = self
                .func
                .terminator(region)
                .map(|end| end.uses().map(|value| self.registers(value)[0]).collect())
                .unwrap_or_default();
            for (result, values) in results.iter_mut().zip(yielded.chunks(pack)) {
                result.extend(values.iter().take(count - first));
            }
        }
        for (&result, registers) in data.results.iter().zip(results) {
            self.set(result, registers);
        }
        Ok(())
    }

    /// Inline assembly over `pack` elements at a time. Elements narrower than 32 bits are packed
    /// into 32-bit registers, the first in the lowest bits.
    pub(super) fn inline_asm(&mut self, data: &InstData) -> Emitted {
        let Attrs::InlineAsm(asm) = &data.attrs else { return Err(self.unsupported(data)) };
        if let Some(constraint) = asm.foreign_constraint() {
            let line = self.func.locs[self.func.user_loc(data.loc)].line;
            return Err(CodegenError::Constraint { constraint: constraint.to_owned(), line });
        }
        let constraints = asm.constraints().collect::<Vec<_>>().join(",");
        let pack = asm.pack.max(1) as usize;
        let count = data.results.first().map_or(1, |&result| self.register_count(result));
        let mut inputs = Vec::new();
        for value in data.uses() {
            inputs.push((self.register_ty(value)?, self.registers(value)));
        }
        let mut result_types = Vec::new();
        for &result in &data.results {
            result_types.push(self.register_ty(result)?);
        }
        let mut results = vec![Vec::with_capacity(count); data.results.len()];
        for first in (0..count).step_by(pack) {
            let mut args = Vec::new();
            for (ty, registers) in &inputs {
                let elements: Vec<Val> = (first..first + pack)
                    .map(|at| registers[at.min(registers.len() - 1)])
                    .collect();
                args.extend(self.asm_words(*ty, &elements));
            }
            let outputs = self.asm_call(asm, &constraints, &args, &result_types);
            for (result, values) in results.iter_mut().zip(outputs) {
                result.extend(values.into_iter().take(count - first));
            }
        }
        for (&result, registers) in data.results.iter().zip(results) {
            self.set(result, registers);
        }
        Ok(())
    }

    fn asm_words(&mut self, ty: Ty, elements: &[Val]) -> Vec<(Ty, Val)> {
        if ty.bits() >= 32 {
            return elements.iter().map(|&element| (ty, element)).collect();
        }
        let (narrow, raw): (Ty, Vec<Val>) = if ty == Ty::Int(1) {
            let byte = Ty::Int(8);
            (byte, elements.iter().map(|&bit| self.text.cast("zext", ty, bit, byte)).collect())
        } else {
            (ty, elements.to_vec())
        };
        let per_word = (32 / narrow.bits()) as usize;
        raw.chunks(per_word)
            .map(|chunk| {
                let mut padded = chunk.to_vec();
                padded.resize(per_word, Val::Poison);
                let vector = self.vector_of(narrow, &padded);
                let word =
                    self.text.op(format_args!("bitcast <{per_word} x {narrow}> {vector} to i32"));
                (Ty::Int(32), word)
            })
            .collect()
    }

    fn asm_call(
        &mut self,
        asm: &InlineAsm,
        constraints: &str,
        args: &[(Ty, Val)],
        result_types: &[Ty],
    ) -> Vec<Vec<Val>> {
        // The type of each output register, result by result.
        let mut outputs = Vec::new();
        for &ty in result_types {
            outputs
                .push((asm.registers(ty.bits()), if ty.bits() >= 32 { ty } else { Ty::Int(32) }));
        }
        let flat: Vec<Ty> =
            outputs.iter().flat_map(|&(words, ty)| std::iter::repeat_n(ty, words)).collect();
        let names: Vec<String> = flat.iter().map(Ty::to_string).collect();
        let result = match names.as_slice() {
            [] => "void".to_owned(),
            [one] => one.clone(),
            several => format!("{{ {} }}", several.join(", ")),
        };
        let args: Vec<String> = args.iter().map(|(ty, value)| format!("{ty} {value}")).collect();
        let effect = if asm.pure { "" } else { "sideeffect " };
        let call = format!(
            "call {result} asm {effect}\"{}\", \"{}\"({})",
            escape(&asm.asm.0),
            escape(constraints),
            args.join(", ")
        );
        if flat.is_empty() {
            self.text.line(format_args!("{call}"));
            return Vec::new();
        }
        let returned = self.text.op(format_args!("{call}"));
        let words: Vec<Val> = match flat.len() {
            1 => vec![returned],
            several => (0..several)
                .map(|at| self.text.op(format_args!("extractvalue {result} {returned}, {at}")))
                .collect(),
        };
        let mut words = words.into_iter();
        let mut results = Vec::new();
        for (&ty, (count, _)) in result_types.iter().zip(outputs) {
            let own: Vec<Val> = words.by_ref().take(count).collect();
            results.push(match ty.bits() {
                32.. => own,
                _ => self.asm_elements(ty, &own, asm.pack.max(1) as usize),
            });
        }
        results
    }

    fn asm_elements(&mut self, ty: Ty, words: &[Val], pack: usize) -> Vec<Val> {
        let narrow = if ty == Ty::Int(1) { Ty::Int(8) } else { ty };
        let per_word = 32 / narrow.bits();
        let mut elements = Vec::with_capacity(pack);
        for &word in words {
            let vector =
                self.text.op(format_args!("bitcast i32 {word} to <{per_word} x {narrow}>"));
            for at in 0..per_word {
                let element = self
                    .text
                    .op(format_args!("extractelement <{per_word} x {narrow}> {vector}, i32 {at}"));
                elements.push(match ty {
                    Ty::Int(1) => self.text.cast("trunc", narrow, element, ty),
                    _ => element,
                });
            }
        }
        elements.truncate(pack);
        elements
    }
}

/// Text within LLVM's quotes.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' | 0..=31 | 127.. => out.push_str(&format!("\\{byte:02X}")),
            _ => out.push(char::from(byte)),
        }
    }
    out
}
