//! Matrix products on the matrix units (`mma.sync`), or by multiply-adds.
//!
//! The accumulator's layout fixes what each thread needs of the operands. An operand is a tile that
//! holds just that, or a buffer from which it is read as the product proceeds along K, so that few
//! registers are in use at a time. A fragment is a handful of registers found by the constant part
//! of their coordinates: the fragment at rows `m`, columns `n` and step `k` has the same registers
//! in every thread.

use std::fmt::Write;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tile_compiler::gpu::product;
use tile_compiler::ir::{Inst, InstData, Opcode, Scalar, Type};
use tile_compiler::layout::LinearLayout;

use super::local::Reader;
use super::text::{Ty, Val};
use super::{Emitted, Emitter};
use crate::CodegenError;

/// Rows of one `mma.sync` result.
const ROWS: u32 = 16;
/// Columns of one `mma.sync` result.
const COLUMNS: u32 = 8;

/// The most multiply-adds of each thread that are written one after the other for one product. Code
/// beyond that does not fit the instruction cache, and takes the assembler long.
const UNROLLED: usize = 4096;

/// The same for all products of one kernel; those of kernels with more are loops from an eighth of
/// [`UNROLLED`] on.
const UNROLLED_IN_KERNEL: usize = 4 * UNROLLED;

/// Coordinates of a register: leading axes, then the matrix's two.
pub(super) type Place = SmallVec<[u32; 4]>;

/// The registers of the accumulator by the constant part of their coordinates.
pub(super) struct Sums {
    registers: FxHashMap<Place, usize>,
    pub(super) values: Vec<Val>,
}

impl Sums {
    /// The registers `values` of an accumulator in `layout`.
    pub(super) fn of(layout: &LinearLayout, values: Vec<Val>) -> Sums {
        Sums { registers: registers_by_place(layout), values }
    }

    /// The values as the registers of `layout`, some of which may repeat others.
    pub(super) fn registers_of(&self, layout: &LinearLayout) -> Vec<Val> {
        let registers = 0..layout.elements_per_thread();
        let first = |register| self.registers[&layout.offset_for_register(register)];
        registers.map(|register| self.values[first(register)]).collect()
    }

    pub(super) fn register(&self, batch: &[u32], row: u32, column: u32) -> Option<usize> {
        let place: Place = batch.iter().copied().chain([row, column]).collect();
        self.registers.get(&place).copied()
    }

    /// The places of the registers, in order.
    pub(super) fn places(&self) -> Vec<Place> {
        let mut places: Vec<Place> = self.registers.keys().cloned().collect();
        places.sort();
        places
    }
}

pub(super) fn registers_by_place(layout: &LinearLayout) -> FxHashMap<Place, usize> {
    let mut registers = FxHashMap::default();
    for register in 0..layout.elements_per_thread() {
        registers.entry(layout.offset_for_register(register)).or_insert(register);
    }
    registers
}

/// An operand: where its registers come from.
enum Source {
    Held(Vec<Val>),
    Stored(Box<Reader>),
}

/// The registers of one operand by the constant part of their coordinates.
pub(super) struct Fragments {
    registers: FxHashMap<Place, usize>,
    source: Source,
    /// Registers packed, or brought to the type of the sum, by the place of the first.
    ready: FxHashMap<Place, Val>,
}

impl Fragments {
    /// The power of two of neighbors along K, which is the axis `from_last` before the end, that
    /// instructions read together at most; `None` where registers hold the operand.
    fn steps_apart(&self, from_last: usize) -> Option<u32> {
        let Source::Stored(reader) = &self.source else { return None };
        let mut steps = vec![0; reader.groups().iter().flatten().count()];
        for (place, &register) in &self.registers {
            steps[register] = place[place.len() - from_last];
        }
        let apart = |group: &SmallVec<[u32; 16]>| {
            group.iter().fold(0, |bits, &at| bits | (steps[at as usize] ^ steps[group[0] as usize]))
        };
        let bits = reader.groups().iter().map(apart).fold(0, |bits, apart| bits | apart);
        Some((bits + 1).next_power_of_two())
    }

    /// What each bit of a multiple of `steps` along K contributes to the offset of what is read.
    fn offsets_along(&self, from_last: usize, steps: u32, depth: u32) -> Vec<u32> {
        let Source::Stored(reader) = &self.source else { return Vec::new() };
        let rank = self.registers.keys().next().map_or(0, |place| place.len());
        let offset = |k: u32| {
            let mut place: Place = std::iter::repeat_n(0, rank).collect();
            place[rank - from_last] = k;
            self.registers.get(&place).map_or(0, |&register| reader.offset(register))
        };
        (0..depth.trailing_zeros())
            .map(|bit| if 1 << bit < steps { 0 } else { offset(1 << bit) ^ offset(0) })
            .collect()
    }
}

impl Emitter<'_> {
    pub(super) fn product(&mut self, inst: Inst, data: &InstData) -> Emitted {
        if self.plan.needs_barrier(inst) {
            self.barrier();
        }
        let number = |slot: usize| {
            self.ty(data.operand(slot)).number().ok_or_else(|| self.unsupported(data))
        };
        let k_width = product::k_width(number(0)?);
        let Some(layout) = self.layout(data.result()) else { return Err(self.unsupported(data)) };
        let shape = self.ty(data.operand(0)).shape();
        let depth = shape[shape.len() - 1];
        let mut operands = Vec::with_capacity(2);
        for slot in [0, 1] {
            let needed = match data.opcode {
                Opcode::Mma => layout.mma_operand(slot, k_width, depth as usize)?,
                _ => layout.multiply_add_operand(slot, depth as usize)?,
            };
            operands.push(self.fragments(data, slot, &needed)?);
        }
        let [lhs, rhs] = operands.as_mut_slice() else { return Err(self.unsupported(data)) };
        let mut sums = Sums::of(layout, self.operand(data, 2));
        match data.opcode {
            Opcode::Mma => {
                let instruction = Mma::new(self, data, k_width as u32)?;
                self.mma_product(&instruction, depth, lhs, rhs, &mut sums)?;
            }
            _ => self.multiply_add_product(data, depth, lhs, rhs, &mut sums)?,
        }
        let registers = sums.registers_of(layout);
        self.set(data.result(), registers);
        Ok(())
    }

    /// The registers of an operand, of which the product needs those of `needed`.
    pub(super) fn fragments(
        &mut self,
        data: &InstData,
        slot: usize,
        needed: &LinearLayout,
    ) -> Result<Fragments, CodegenError> {
        let operand = data.operand(slot);
        let (layout, source) = match self.ty(operand) {
            Type::Buffer(_) => (needed, Source::Stored(Box::new(self.reader(operand, needed)?))),
            _ => {
                let held = self.layout(operand).ok_or_else(|| self.unsupported(data))?;
                (held, Source::Held(self.registers(operand)))
            }
        };
        Ok(Fragments { registers: registers_by_place(layout), source, ready: FxHashMap::default() })
    }

    /// One element of an operand.
    fn element_at(&mut self, of: &mut Fragments, place: &[u32]) -> Result<Val, CodegenError> {
        let register = of.registers.get(place).copied().ok_or_else(foreign_layout)?;
        Ok(match &mut of.source {
            Source::Held(values) => values[register],
            Source::Stored(reader) => self.read(reader, register),
        })
    }

    /// `count` neighbors along `axis` from `place` on as one 32-bit word.
    pub(super) fn word_at(
        &mut self,
        of: &mut Fragments,
        scalar: Scalar,
        place: Place,
        axis: usize,
        count: u32,
    ) -> Result<Val, CodegenError> {
        if let Some(&word) = of.ready.get(&place) {
            return Ok(word);
        }
        let mut parts = Vec::with_capacity(count as usize);
        for at in 0..count {
            let mut neighbor = place.clone();
            neighbor[axis] += at;
            parts.push(self.element_at(of, &neighbor)?);
        }
        let word = self.fragment_word(scalar, &parts);
        of.ready.insert(place, word);
        Ok(word)
    }

    fn mma_product(
        &mut self,
        instruction: &Mma,
        depth: u32,
        lhs: &mut Fragments,
        rhs: &mut Fragments,
        sums: &mut Sums,
    ) -> Emitted {
        let places = sums.places();
        let is_corner = |place: &&Place| {
            let (row, column) = matrix_place(place);
            row % ROWS == 0 && column % COLUMNS == 0
        };
        let corners: Vec<&Place> = places.iter().filter(is_corner).collect();
        let k_width = instruction.k_width;
        for k in (0..depth).step_by(8 * k_width as usize) {
            let half = k + 4 * k_width;
            for &corner in &corners {
                let (m, n) = matrix_place(corner);
                let axis = corner.len() - 1;
                let batch = &corner[..axis - 1];
                let at = |row: u32, column: u32| -> Place {
                    batch.iter().copied().chain([row, column]).collect()
                };
                let mut operands = Vec::with_capacity(6);
                for (row, k) in [(m, k), (m + 8, k), (m, half), (m + 8, half)] {
                    operands.push(self.word_at(lhs, instruction.lhs, at(row, k), axis, k_width)?);
                }
                for k in [k, half] {
                    let word = self.word_at(rhs, instruction.rhs, at(k, n), axis - 1, k_width)?;
                    operands.push(word);
                }
                let corners = [(m, n), (m, n + 1), (m + 8, n), (m + 8, n + 1)];
                let registers: Option<Vec<usize>> =
                    corners.iter().map(|&(row, col)| sums.register(batch, row, col)).collect();
                let registers = registers.ok_or_else(foreign_layout)?;
                let before: Vec<Val> = registers.iter().map(|&at| sums.values[at]).collect();
                let after = self.mma(instruction, &operands, &before);
                for (at, value) in registers.into_iter().zip(after) {
                    sums.values[at] = value;
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
            "call {result} asm \"{asm}\", \"{}\"({args}{}) convergent nounwind",
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

    /// The most multiply-adds of one product that are written one after the other here.
    fn unrolled(&self) -> usize {
        let func = self.func;
        let of_product = |data: &InstData| {
            let depth = self.ty(data.operand(0)).shape().last().copied().unwrap_or(1);
            self.register_count(data.result()) * depth as usize
        };
        let products = func.walk().into_iter().map(|inst| &func.insts[inst]);
        let all: usize =
            products.filter(|data| data.opcode == Opcode::MultiplyAdd).map(of_product).sum();
        if all > UNROLLED_IN_KERNEL { UNROLLED / 8 } else { UNROLLED }
    }

    /// A product of more multiply-adds of each thread than are written one after the other is a loop
    /// along K, if both operands are read as it proceeds.
    fn multiply_add_product(
        &mut self,
        data: &InstData,
        depth: u32,
        lhs: &mut Fragments,
        rhs: &mut Fragments,
        sums: &mut Sums,
    ) -> Emitted {
        let number = |slot: usize| {
            self.ty(data.operand(slot)).number().ok_or_else(|| self.unsupported(data))
        };
        let scalars = [number(0)?, number(1)?, number(2)?];
        let places = sums.places();
        let unrolled = self.unrolled();
        let steps = if places.len() * depth as usize > unrolled {
            let fit = (unrolled / places.len()).max(1).next_power_of_two() as u32 / 2;
            let apart = [(&*lhs, 1), (&*rhs, 2)].map(|(of, from_last)| of.steps_apart(from_last));
            apart.into_iter().try_fold(fit.max(1), |steps, apart| Some(steps.max(apart?)))
        } else {
            None
        };
        match steps.filter(|&steps| steps < depth) {
            Some(steps) => self.multiply_add_loop(scalars, [steps, depth], [lhs, rhs], sums),
            None => self.multiply_add_steps(scalars, depth, [lhs, rhs], sums),
        }
    }

    /// Adds the products of the first `steps` elements along K.
    fn multiply_add_steps(
        &mut self,
        [left, right, sum]: [Scalar; 3],
        steps: u32,
        [lhs, rhs]: [&mut Fragments; 2],
        sums: &mut Sums,
    ) -> Emitted {
        let places = sums.places();
        for k in 0..steps {
            for place in &places {
                let (m, n) = matrix_place(place);
                let batch = &place[..place.len() - 2];
                let at = |row: u32, column: u32| -> Place {
                    batch.iter().copied().chain([row, column]).collect()
                };
                let a = self.factor_at(lhs, left, at(m, k), sum)?;
                let b = self.factor_at(rhs, right, at(k, n), sum)?;
                let register = sums.registers[place];
                sums.values[register] = self.multiply_add(sum, a, b, sums.values[register]);
            }
        }
        Ok(())
    }

    /// A loop over `depth` elements along K, `steps` at a time.
    fn multiply_add_loop(
        &mut self,
        scalars: [Scalar; 3],
        [steps, depth]: [u32; 2],
        [lhs, rhs]: [&mut Fragments; 2],
        sums: &mut Sums,
    ) -> Emitted {
        let (index_ty, sum_ty) = (Ty::Int(32), Ty::of_scalar(scalars[2]));
        // What is first asked for in the loop is computed before it.
        let entry = self.text.current();
        let [body, exit] = [(); 2].map(|()| self.text.add_block());
        self.text.jump(body);
        self.text.switch_to(body);
        let index = self.text.reserve();
        for (of, from_last) in [(&mut *lhs, 1), (&mut *rhs, 2)] {
            let bases = of.offsets_along(from_last, steps, depth);
            let turn = self.combine_bits(index, &bases);
            if let Source::Stored(reader) = &mut of.source {
                reader.turn(turn, bases.iter().fold(0, |reach, basis| reach | basis));
            }
        }
        let before = std::mem::take(&mut sums.values);
        sums.values = before.iter().map(|_| self.text.reserve()).collect();
        let carried = sums.values.clone();
        self.multiply_add_steps(scalars, steps, [lhs, rhs], sums)?;
        let next = self.text.binary("add nuw nsw", index_ty, index, Val::Int(steps.into()));
        let goes_on = self.text.op(format_args!("icmp ult i32 {next}, {depth}"));
        self.text.branch(goes_on, body, exit);
        self.text.phi(body, index, index_ty, &[(Val::Int(0), entry), (next, body)]);
        for ((&name, &before), &after) in carried.iter().zip(&before).zip(&sums.values) {
            self.text.phi(body, name, sum_ty, &[(before, entry), (after, body)]);
        }
        self.text.switch_to(exit);
        Ok(())
    }

    /// One element of an operand in the type of the sum.
    fn factor_at(
        &mut self,
        of: &mut Fragments,
        from: Scalar,
        place: Place,
        to: Scalar,
    ) -> Result<Val, CodegenError> {
        if let Some(&factor) = of.ready.get(&place) {
            return Ok(factor);
        }
        let element = self.element_at(of, &place)?;
        let factor = self.widen_factor(from, element, to)?;
        of.ready.insert(place, factor);
        Ok(factor)
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
    /// Elements of an operand in one word.
    k_width: u32,
}

impl Mma {
    fn new(emitter: &Emitter<'_>, data: &InstData, k_width: u32) -> Result<Mma, CodegenError> {
        let number = |slot: usize| {
            emitter.ty(data.operand(slot)).number().ok_or_else(|| emitter.unsupported(data))
        };
        let (lhs, rhs, acc) = (number(0)?, number(1)?, number(2)?);
        let sum = match acc {
            Scalar::F32 => "f32",
            Scalar::F16 if lhs == Scalar::F16 => "f16",
            Scalar::I32 => "s32",
            _ => return Err(emitter.unsupported(data)),
        };
        let name = format!(
            "m16n8k{}.row.col.{sum}.{}.{}.{sum}",
            8 * k_width,
            factor_format(lhs),
            factor_format(rhs)
        );
        Ok(Mma { name, lhs, rhs, acc: Ty::of_scalar(acc), k_width })
    }
}

/// How instructions name an operand's type.
pub(super) fn factor_format(factor: Scalar) -> &'static str {
    match factor {
        Scalar::F16 => "f16",
        Scalar::BF16 => "bf16",
        Scalar::F32 => "tf32",
        Scalar::I8 => "s8",
        Scalar::F8E5 => "e5m2",
        _ => "e4m3",
    }
}

/// Row and column of a place.
pub(super) fn matrix_place(place: &[u32]) -> (u32, u32) {
    match place {
        [.., row, column] => (*row, *column),
        _ => (0, 0),
    }
}

pub(super) fn foreign_layout() -> CodegenError {
    CodegenError::Unsupported { what: "this product's layout".to_owned() }
}
