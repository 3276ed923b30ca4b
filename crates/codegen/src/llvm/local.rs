//! Buffers in shared memory: asynchronous copies into them, and reads of matrix fragments.
//!
//! A buffer is a byte offset into shared memory. Where an element lies follows from two layouts:
//! that of the tile, from place to element, and the inverse of the buffer's, from element to
//! offset. 16-bit fragments of the matrix units are read by `ldmatrix`, in which each lane names a
//! row of eight elements and receives two elements of another row.

use smallvec::SmallVec;
use tile_compiler::ir::{BufferType, Inst, InstData, Opcode, Type, Value};
use tile_compiler::layout::{Dim, LinearLayout};

use super::shared::{buffer_bytes, element_bytes};
use super::text::{Ty, Val};
use super::{Emitted, Emitter};
use crate::CodegenError;

/// How a tile in registers is read from a buffer.
pub(super) struct LocalRead {
    /// Byte offset of the buffer.
    base: Val,
    ty: Ty,
    /// From (register, lane, warp) to the element offset.
    offsets: LinearLayout,
    means: Means,
}

enum Means {
    /// Neighbors by ordinary loads; the register bits that count through them.
    Vectors(SmallVec<[u32; 4]>),
    /// `ldmatrix`: 8×8 elements for each of one, two or four values of some register bits.
    Matrices {
        /// Whether rows of the buffer are columns of the fragment.
        transposed: bool,
        /// Register bits that count the matrices of one instruction.
        count_bits: SmallVec<[u32; 2]>,
    },
}

impl Emitter<'_> {
    pub(super) fn buffer_op(&mut self, inst: Inst, data: &InstData) -> Emitted {
        if self.plan.barrier_before(inst) {
            self.barrier();
        }
        match data.opcode {
            Opcode::LocalAlloc => {
                let scratch = self.plan.scratch(inst).ok_or_else(|| self.unsupported(data))?;
                self.values.insert(data.result(), vec![scratch.offset.into()]);
                Ok(())
            }
            Opcode::LocalStage => self.stage(data),
            Opcode::LocalStore => self.local_store(data),
            Opcode::LocalLoad => self.local_load(data),
            Opcode::AsyncCopy => self.async_copy(data),
            Opcode::AsyncCommit => {
                self.async_statement("cp.async.commit_group;");
                Ok(())
            }
            _ => {
                let tile_compiler::ir::Attrs::Wait(wait) = &data.attrs else {
                    return Err(self.unsupported(data));
                };
                self.async_statement(&format!("cp.async.wait_group {};", wait.pending));
                Ok(())
            }
        }
    }

    fn async_statement(&mut self, asm: &str) {
        self.text.line(format_args!("call void asm sideeffect \"{asm}\", \"~{{memory}}\"()"));
    }

    fn buffer(&self, value: Value) -> Result<&BufferType, CodegenError> {
        match self.ty(value) {
            Type::Buffer(buffer) => Ok(buffer),
            other => Err(CodegenError::Unsupported { what: format!("a buffer of type {other}") }),
        }
    }

    fn stage(&mut self, data: &InstData) -> Emitted {
        let bytes = buffer_bytes(self.buffer(data.operand(0))?);
        let i32 = Ty::Int(32);
        let (base, stage) = (self.operand(data, 0)[0], self.operand(data, 1)[0]);
        let start = match (base, stage) {
            (Val::Int(base), Val::Int(stage)) => Val::Int(base + stage * i64::from(bytes)),
            _ => {
                let distance = self.text.binary("mul nuw nsw", i32, stage, Val::Int(bytes.into()));
                self.text.binary("add nuw nsw", i32, base, distance)
            }
        };
        self.values.insert(data.result(), vec![start]);
        Ok(())
    }

    /// From places of a tile in `layout` to element offsets of `buffer`.
    fn offsets(
        &self,
        layout: &LinearLayout,
        buffer: &BufferType,
    ) -> Result<LinearLayout, CodegenError> {
        Ok(layout.invert_and_compose(&self.func.layouts[buffer.layout])?)
    }

    /// The element offset of the access that starts with `register`.
    fn local_index(&mut self, offsets: &LinearLayout, register: usize) -> Val {
        let bases = Self::thread_bases(offsets, |basis| basis as u32);
        let part = self.thread_index(&bases);
        let constant = offsets.apply_packed(offsets.pack_input(&[(Dim::Register, register)]));
        self.offset_index(part, &bases, constant as u32)
    }

    fn async_copy(&mut self, data: &InstData) -> Emitted {
        let ptr = data.operand(0);
        let buffer = self.buffer(data.operand(1))?.clone();
        let layout = self.layout(ptr).ok_or_else(|| self.unsupported(data))?;
        let offsets = self.offsets(layout, &buffer)?;
        let bytes = element_bytes(buffer.elem);
        let base = self.operand(data, 1)[0];
        let ptrs = self.operand(data, 0);
        let mask = data.operand_opt(2).map(|mask| self.registers(mask));
        let owner = self.owner(ptr);
        for group in self.copy_vectors(data, &offsets, bytes)? {
            let size = bytes * group.len() as u32;
            let index = self.local_index(&offsets, group[0]);
            let ty = Ty::Int(bytes * 8);
            let to = self.shared_address(ty, base, index);
            let cache = if size == 16 { "cg" } else { "ca" };
            let i32 = Ty::Int(32);
            let from_size = match &mask {
                Some(mask) => {
                    let (all, none) = (Val::Int(size.into()), Val::Int(0));
                    self.text.select(mask[group[0]], i32, all, none)
                }
                None => Val::Int(size.into()),
            };
            let (guard, constraint, predicate) = match owner {
                Some(owner) => ("@$3 ", ",b", format!(", i1 {owner}")),
                None => ("", "", String::new()),
            };
            let from = ptrs[group[0]];
            self.text.line(format_args!(
                "call void asm sideeffect \"{guard}cp.async.{cache}.shared.global [$0], [$1], \
                 {size}, $2;\", \"r,l,r{constraint},~{{memory}}\"(ptr addrspace(3) {to}, \
                 ptr addrspace(1) {from}, i32 {from_size}{predicate})"
            ));
        }
        Ok(())
    }

    /// The runs that are contiguous in global and in shared memory.
    fn copy_vectors(
        &self,
        data: &InstData,
        offsets: &LinearLayout,
        bytes: u32,
    ) -> Result<Vec<SmallVec<[usize; 16]>>, CodegenError> {
        let ptr = data.operand(0);
        let layout = self.layout(ptr).ok_or_else(|| self.unsupported(data))?;
        let (_, mut bits) = self.access_bits(ptr, data.operand_opt(2), layout, bytes);
        let registers = offsets.bases(Dim::Register);
        let together = bits
            .iter()
            .enumerate()
            .take_while(|&(at, &bit)| registers[bit as usize] == 1 << at)
            .count();
        bits.truncate(together);
        if bytes << bits.len() < 4 {
            let what = "an asynchronous copy of less than four bytes".to_owned();
            return Err(CodegenError::Unsupported { what });
        }
        Ok(runs(layout, &bits))
    }

    fn local_store(&mut self, data: &InstData) -> Emitted {
        let buffer = self.buffer(data.operand(0))?.clone();
        let value = data.operand(1);
        let layout = self.layout(value).ok_or_else(|| self.unsupported(data))?;
        let offsets = self.offsets(layout, &buffer)?;
        let bits = vector_bits(&offsets, element_bytes(buffer.elem));
        let (base, ty) = (self.operand(data, 0)[0], Ty::of(buffer.elem));
        let values = self.registers(value);
        for group in runs(layout, &bits) {
            let index = self.local_index(&offsets, group[0]);
            let run: Vec<Val> = group.iter().map(|&at| values[at]).collect();
            self.store_shared_run(ty, base, index, &run);
        }
        Ok(())
    }

    /// Reads a buffer now, unless only matrix products want it: they read it step by step.
    fn local_load(&mut self, data: &InstData) -> Emitted {
        let result = data.result();
        let only_products = self.func.insts.values().all(|user| {
            let uses = user.uses().any(|value| value == result);
            !uses || user.opcode == Opcode::Dot
        });
        if only_products {
            return Ok(());
        }
        let read = self.local_read(data)?;
        let mut registers = vec![None; self.register_count(result)];
        for register in 0..registers.len() {
            if registers[register].is_none() {
                for (at, value) in self.read_group(&read, register) {
                    registers[at] = Some(value);
                }
            }
        }
        self.set(result, registers.into_iter().map(|value| value.unwrap_or(Val::Poison)).collect());
        Ok(())
    }

    /// How a `local_load` reads its buffer.
    pub(super) fn local_read(&mut self, data: &InstData) -> Result<LocalRead, CodegenError> {
        let buffer = self.buffer(data.operand(0))?.clone();
        let layout = self.layout(data.result()).ok_or_else(|| self.unsupported(data))?;
        let offsets = self.offsets(layout, &buffer)?;
        let bytes = element_bytes(buffer.elem);
        let (base, ty) = (self.operand(data, 0)[0], Ty::of(buffer.elem));
        let has_matrices = self.target.arch.capability >= 75;
        let means = matrices(&offsets, bytes)
            .filter(|_| has_matrices)
            .unwrap_or_else(|| Means::Vectors(vector_bits(&offsets, bytes)));
        Ok(LocalRead { base, ty, offsets, means })
    }

    /// Reads `register` and what comes with it.
    pub(super) fn read_group(&mut self, read: &LocalRead, register: usize) -> Vec<(usize, Val)> {
        match &read.means {
            Means::Vectors(bits) => {
                let within = bits.iter().fold(0, |mask, bit| mask | 1usize << bit);
                let first = register & !within;
                let index = self.local_index(&read.offsets, first);
                let values = self.load_shared_run(read.ty, read.base, index, 1 << bits.len());
                spread(first, bits).into_iter().zip(values).collect()
            }
            Means::Matrices { transposed, count_bits } => {
                self.read_matrices(read, register, *transposed, count_bits)
            }
        }
    }

    /// Lanes 0 to 7 name the rows of the first matrix, lanes 8 to 15 those of the second, and so
    /// on; every lane receives a pair of elements of each.
    fn read_matrices(
        &mut self,
        read: &LocalRead,
        register: usize,
        transposed: bool,
        count_bits: &[u32],
    ) -> Vec<(usize, Val)> {
        let within = count_bits.iter().fold(1, |mask, bit| mask | 1usize << bit);
        let first = register & !within;
        let (registers, lanes) = (read.offsets.bases(Dim::Register), read.offsets.bases(Dim::Lane));
        let rows = if transposed {
            [registers[0], lanes[0], lanes[1]]
        } else {
            [lanes[2], lanes[3], lanes[4]]
        };
        let mut bases: Vec<u32> = rows.iter().map(|&basis| basis as u32).collect();
        bases.extend(count_bits.iter().map(|&bit| registers[bit as usize] as u32));
        bases.resize(5, 0);
        bases.extend(read.offsets.bases(Dim::Warp).iter().map(|&basis| basis as u32));
        let part = self.thread_index(&bases);
        let constant =
            read.offsets.apply_packed(read.offsets.pack_input(&[(Dim::Register, first)]));
        let index = self.offset_index(part, &bases, constant as u32);
        let address = self.shared_address(read.ty, read.base, index);

        let count = 1usize << count_bits.len();
        let outputs: Vec<String> = (0..count).map(|at| format!("${at}")).collect();
        let trans = if transposed { ".trans" } else { "" };
        let result = match count {
            1 => "i32".to_owned(),
            _ => format!("{{ {} }}", vec!["i32"; count].join(", ")),
        };
        let loaded = self.text.op(format_args!(
            "call {result} asm sideeffect \"ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 \
             {{{}}}, [${count}];\", \"{}r\"(ptr addrspace(3) {address})",
            outputs.join(", "),
            "=r,".repeat(count)
        ));
        let mut values = Vec::with_capacity(2 * count);
        let ty = read.ty;
        for (number, pair) in spread(first, count_bits).into_iter().enumerate() {
            let word = match count {
                1 => loaded,
                _ => self.text.op(format_args!("extractvalue {result} {loaded}, {number}")),
            };
            let vector = self.text.op(format_args!("bitcast i32 {word} to <2 x {ty}>"));
            for at in 0..2 {
                let element =
                    self.text.op(format_args!("extractelement <2 x {ty}> {vector}, i32 {at}"));
                values.push((pair | at, element));
            }
        }
        values
    }
}

/// The registers that count through `bits`, from `first` on.
fn spread(first: usize, bits: &[u32]) -> SmallVec<[usize; 16]> {
    (0..1usize << bits.len())
        .map(|member| {
            let chosen = bits.iter().enumerate();
            chosen.fold(first, |at, (bit, to)| at | (member >> bit & 1) << to)
        })
        .collect()
}

/// Runs of registers that count through `bits`, those that repeat others left out.
pub(super) fn runs(layout: &LinearLayout, bits: &[u32]) -> Vec<SmallVec<[usize; 16]>> {
    let within = bits.iter().fold(0, |mask, bit| mask | 1usize << bit);
    let repeated = layout.duplicates().register as usize;
    (0..layout.elements_per_thread())
        .filter(|register| register & (within | repeated) == 0)
        .map(|first| spread(first, bits))
        .collect()
}

/// The register bits that count through neighbors in the buffer, at most 16 bytes of them.
fn vector_bits(offsets: &LinearLayout, bytes: u32) -> SmallVec<[u32; 4]> {
    let most = (16 / bytes).max(1).ilog2();
    let mut bits = SmallVec::new();
    for at in 0..most {
        let step = 1u64 << at;
        let users = offsets.packed_bases().iter().filter(|&basis| basis & step != 0).count();
        let carrier = offsets.bases(Dim::Register).iter().position(|&basis| basis == step);
        match carrier {
            Some(bit) if users == 1 => bits.push(bit as u32),
            _ => break,
        }
    }
    bits
}

/// Whether `ldmatrix` reads a fragment: eight neighbors are either what a register bit and the two
/// lowest lane bits count through, or, transposed, what the three highest lane bits do.
fn matrices(offsets: &LinearLayout, bytes: u32) -> Option<Means> {
    let (registers, lanes) = (offsets.bases(Dim::Register), offsets.bases(Dim::Lane));
    if bytes != 2 || registers.is_empty() || lanes.len() != 5 {
        return None;
    }
    let straight = [registers[0], lanes[0], lanes[1]];
    let across = [lanes[2], lanes[3], lanes[4]];
    let neighbors = [1, 2, 4];
    let (transposed, rows) = if straight == neighbors {
        (false, across)
    } else if across == neighbors {
        (true, straight)
    } else {
        return None;
    };
    // Each row must start at a multiple of eight elements.
    let starts = registers[1..].iter().chain(offsets.bases(Dim::Warp)).chain(&rows);
    if starts.into_iter().any(|basis| basis & 7 != 0) {
        return None;
    }
    let count_bits = (1..registers.len() as u32).take(2).collect();
    Some(Means::Matrices { transposed, count_bits })
}
