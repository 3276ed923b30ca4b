//! Matrix products on the matrix units (`mma.sync`), or by multiply-adds.
//!
//! Operands arrive in the layouts that the instruction reads, so that a fragment is a handful of
//! registers found by the constant part of their coordinates: the fragment at rows `m`, columns
//! `n` and step `k` has the same registers in every thread.

use std::fmt::Write;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tile_compiler::gpu::GpuTarget;
use tile_compiler::gpu::product::{self, ProductKind};
use tile_compiler::ir::{InstData, Opcode, Scalar};
use tile_compiler::layout::LinearLayout;

use super::local::LocalRead;
use super::text::{Ty, Val};
use super::{Emitted, Emitter};
use crate::CodegenError;

/// Rows of one `mma.sync` result.
const ROWS: u32 = 16;
/// Columns of one `mma.sync` result.
const COLUMNS: u32 = 8;

/// Coordinates of a register: leading axes, then the matrix's two.
type Place = SmallVec<[u32; 4]>;

/// The registers of one operand by the constant part of their coordinates.
struct Fragments {
    registers: FxHashMap<Place, usize>,
    /// `None` for what was not read yet.
    values: Vec<Option<Val>>,
    /// The buffer to read from, for operands that lie in shared memory.
    source: Option<LocalRead>,
}

impl Fragments {
    fn new(layout: &LinearLayout, values: Vec<Option<Val>>, source: Option<LocalRead>) -> Self {
        let mut registers = FxHashMap::default();
        for register in 0..layout.elements_per_thread() {
            registers.entry(layout.offset_for_register(register)).or_insert(register);
        }
        Fragments { registers, values, source }
    }

    fn register(&self, batch: &[u32], row: u32, column: u32) -> Option<usize> {
        let place: Place = batch.iter().copied().chain([row, column]).collect();
        self.registers.get(&place).copied()
    }

    /// The places of the registers, in order.
    fn places(&self) -> Vec<Place> {
        let mut places: Vec<Place> = self.registers.keys().cloned().collect();
        places.sort();
        places
    }
}

impl Emitter<'_> {
    pub(super) fn dot(&mut self, data: &InstData) -> Emitted {
        let mut lhs = self.fragments(data, 0)?;
        let mut rhs = self.fragments(data, 1)?;
        let mut acc = self.fragments(data, 2)?;
        let shape = self.ty(data.operand(0)).shape();
        let depth = shape[shape.len() - 1];
        let target = GpuTarget { capability: self.target.arch.capability };
        match product::kind(self.func, data, target) {
            ProductKind::Mma { k_width } => {
                self.mma_product(data, k_width as u32, depth, (&mut lhs, &mut rhs, &mut acc))?;
            }
            ProductKind::MultiplyAdd => {
                self.fma_product(data, depth, (&mut lhs, &mut rhs, &mut acc))?;
            }
        }
        let Some(layout) = self.layout(data.result()) else { return Err(self.unsupported(data)) };
        let registers = (0..layout.elements_per_thread())
            .map(|register| {
                let first = acc.registers[&layout.offset_for_register(register)];
                acc.values[first].unwrap_or(Val::Poison)
            })
            .collect();
        self.set(data.result(), registers);
        Ok(())
    }

    /// An operand in registers, or still in the buffer of its `local_load`.
    fn fragments(&mut self, data: &InstData, slot: usize) -> Result<Fragments, CodegenError> {
        let value = data.operand(slot);
        let layout = self.layout(value).ok_or_else(|| self.unsupported(data))?;
        match self.func.def(value) {
            Some(load) if load.opcode == Opcode::LocalLoad && !self.values.contains_key(&value) => {
                let values = vec![None; layout.elements_per_thread()];
                let source = self.local_read(load)?;
                Ok(Fragments::new(layout, values, Some(source)))
            }
            _ => {
                let values = self.registers(value).into_iter().map(Some).collect();
                Ok(Fragments::new(layout, values, None))
            }
        }
    }

    /// The element at a place, read now if it was not before.
    fn fragment_value(
        &mut self,
        fragments: &mut Fragments,
        batch: &[u32],
        row: u32,
        column: u32,
    ) -> Result<Val, CodegenError> {
        let missing = || CodegenError::Unsupported { what: "this product's layout".to_owned() };
        let register = fragments.register(batch, row, column).ok_or_else(missing)?;
        if let Some(value) = fragments.values[register] {
            return Ok(value);
        }
        let source = fragments.source.as_ref().ok_or_else(missing)?;
        for (at, value) in self.read_group(source, register) {
            fragments.values[at] = Some(value);
        }
        fragments.values[register].ok_or_else(missing)
    }

    fn mma_product(
        &mut self,
        data: &InstData,
        k_width: u32,
        depth: u32,
        (lhs, rhs, acc): (&mut Fragments, &mut Fragments, &mut Fragments),
    ) -> Emitted {
        let instruction = Mma::new(self, data, k_width)?;
        let corners: Vec<Place> = acc
            .places()
            .into_iter()
            .filter(|place| {
                let [.., row, column] = place.as_slice() else { return false };
                row % ROWS == 0 && column % COLUMNS == 0
            })
            .collect();
        let missing = || CodegenError::Unsupported { what: "this product's layout".to_owned() };
        // One register per word of a fragment, shared by all results that need it.
        let mut words: FxHashMap<(usize, Place, u32), Val> = FxHashMap::default();
        for k in (0..depth).step_by(8 * k_width as usize) {
            for corner in &corners {
                let (batch, at) = corner.split_at(corner.len() - 2);
                let (m, n) = (at[0], at[1]);
                let half = k + 4 * k_width;
                let mut operands = Vec::with_capacity(6);
                for (row, k) in [(m, k), (m + 8, k), (m, half), (m + 8, half)] {
                    let key = (0, batch.iter().copied().chain([row]).collect(), k);
                    let word = match words.get(&key) {
                        Some(&word) => word,
                        None => {
                            let parts = (0..k_width)
                                .map(|at| self.fragment_value(lhs, batch, row, k + at))
                                .collect::<Result<Vec<Val>, _>>()?;
                            self.fragment_word(instruction.lhs, &parts)
                        }
                    };
                    words.insert(key, word);
                    operands.push(word);
                }
                for k in [k, half] {
                    let key = (1, batch.iter().copied().chain([n]).collect(), k);
                    let word = match words.get(&key) {
                        Some(&word) => word,
                        None => {
                            let parts = (0..k_width)
                                .map(|at| self.fragment_value(rhs, batch, k + at, n))
                                .collect::<Result<Vec<Val>, _>>()?;
                            self.fragment_word(instruction.rhs, &parts)
                        }
                    };
                    words.insert(key, word);
                    operands.push(word);
                }
                let places = [(m, n), (m, n + 1), (m + 8, n), (m + 8, n + 1)];
                let registers: Option<Vec<usize>> =
                    places.iter().map(|&(row, column)| acc.register(batch, row, column)).collect();
                let registers = registers.ok_or_else(missing)?;
                let sums = registers.iter().map(|&at| acc.values[at].ok_or_else(missing));
                let sums = sums.collect::<Result<Vec<Val>, _>>()?;
                for (at, value) in
                    registers.into_iter().zip(self.mma(&instruction, &operands, &sums))
                {
                    acc.values[at] = Some(value);
                }
            }
        }
        Ok(())
    }

    /// Neighbors along K as one 32-bit word.
    fn fragment_word(&mut self, scalar: Scalar, parts: &[Val]) -> Val {
        let ty = Ty::of_scalar(scalar);
        if let [one] = parts {
            return self.text.bitcast(ty, *one, Ty::Int(32));
        }
        let count = parts.len();
        let vector = self.vector_of(ty, parts);
        self.text.op(format_args!("bitcast <{count} x {ty}> {vector} to i32"))
    }

    /// One `mma.sync`: six operand words and four sums to four sums.
    fn mma(&mut self, instruction: &Mma, operands: &[Val], sums: &[Val]) -> Vec<Val> {
        let (ty, letter) = match instruction.acc {
            Ty::Float => (Ty::Float, "f"),
            _ => (Ty::Int(32), "r"),
        };
        let packed = instruction.acc == Ty::Half;
        let sums: Vec<Val> = if packed {
            sums.chunks(2).map(|pair| self.fragment_word(Scalar::F16, pair)).collect()
        } else {
            sums.to_vec()
        };
        let count = sums.len();
        let names = |from: usize, count: usize| {
            let names: Vec<String> = (from..from + count).map(|at| format!("${at}")).collect();
            format!("{{{}}}", names.join(", "))
        };
        // Sums are tied to the results, so that they have operand numbers of their own.
        let asm = format!(
            "mma.sync.aligned.{} {}, {}, {}, {};",
            instruction.name,
            names(0, count),
            names(count, 4),
            names(count + 4, 2),
            names(count + 6, count)
        );
        let mut constraints = vec![format!("={letter}"); count];
        constraints.extend(vec!["r".to_owned(); 6]);
        constraints.extend((0..count).map(|at| at.to_string()));
        let mut args = String::new();
        for operand in operands {
            let _ = write!(args, "i32 {operand}, ");
        }
        let sums: Vec<String> = sums.iter().map(|sum| format!("{ty} {sum}")).collect();
        let result = format!("{{ {} }}", vec![ty.to_string(); count].join(", "));
        let sum = self.text.op(format_args!(
            "call {result} asm sideeffect \"{asm}\", \"{}\"({args}{})",
            constraints.join(","),
            sums.join(", ")
        ));
        let mut results = Vec::with_capacity(4);
        for at in 0..count {
            let part = self.text.op(format_args!("extractvalue {result} {sum}, {at}"));
            if packed {
                let pair = self.text.op(format_args!("bitcast i32 {part} to <2 x half>"));
                for at in 0..2 {
                    results.push(
                        self.text.op(format_args!("extractelement <2 x half> {pair}, i32 {at}")),
                    );
                }
            } else {
                results.push(part);
            }
        }
        results
    }

    fn fma_product(
        &mut self,
        data: &InstData,
        depth: u32,
        (lhs, rhs, acc): (&mut Fragments, &mut Fragments, &mut Fragments),
    ) -> Emitted {
        let number = |slot: usize| {
            self.ty(data.operand(slot)).number().ok_or_else(|| self.unsupported(data))
        };
        let (left, right, sum) = (number(0)?, number(1)?, number(2)?);
        let missing = || CodegenError::Unsupported { what: "this product's layout".to_owned() };
        for k in 0..depth {
            for place in acc.places() {
                let (batch, at) = place.split_at(place.len() - 2);
                let (m, n) = (at[0], at[1]);
                let a = self.fragment_value(lhs, batch, m, k)?;
                let b = self.fragment_value(rhs, batch, k, n)?;
                let register = acc.registers[&place];
                let a = self.widen_factor(left, a, sum)?;
                let b = self.widen_factor(right, b, sum)?;
                let before = acc.values[register].ok_or_else(missing)?;
                acc.values[register] = Some(self.multiply_add(sum, a, b, before));
            }
        }
        Ok(())
    }

    fn widen_factor(&mut self, from: Scalar, value: Val, to: Scalar) -> Result<Val, CodegenError> {
        if from.is_int() {
            return Ok(self.text.cast("sext", Ty::of_scalar(from), value, Ty::of_scalar(to)));
        }
        if from.bits() < to.bits() { self.widen_float(from, value, to) } else { Ok(value) }
    }

    fn multiply_add(&mut self, scalar: Scalar, a: Val, b: Val, sum: Val) -> Val {
        let ty = Ty::of_scalar(scalar);
        if scalar.is_int() {
            let product = self.text.binary("mul", ty, a, b);
            return self.text.binary("add", ty, sum, product);
        }
        let name = format!("llvm.fma.{}", ty.suffix());
        self.text.call(&name, ty, &[(ty, a), (ty, b), (ty, sum)])
    }
}

/// One shape of `mma.sync`.
struct Mma {
    /// The part of its name after `mma.sync.aligned.`
    name: String,
    lhs: Scalar,
    rhs: Scalar,
    acc: Ty,
}

impl Mma {
    fn new(emitter: &Emitter<'_>, data: &InstData, k_width: u32) -> Result<Mma, CodegenError> {
        let number = |slot: usize| {
            emitter.ty(data.operand(slot)).number().ok_or_else(|| emitter.unsupported(data))
        };
        let (lhs, rhs, acc) = (number(0)?, number(1)?, number(2)?);
        let factor = |scalar: Scalar| match scalar {
            Scalar::F16 => "f16",
            Scalar::BF16 => "bf16",
            Scalar::F32 => "tf32",
            Scalar::I8 => "s8",
            Scalar::F8E5 => "e5m2",
            _ => "e4m3",
        };
        let sum = match acc {
            Scalar::F32 => "f32",
            Scalar::F16 if lhs == Scalar::F16 => "f16",
            Scalar::I32 => "s32",
            _ => return Err(emitter.unsupported(data)),
        };
        let name =
            format!("m16n8k{}.row.col.{sum}.{}.{}.{sum}", 8 * k_width, factor(lhs), factor(rhs));
        Ok(Mma { name, lhs, rhs, acc: Ty::of_scalar(acc) })
    }
}
