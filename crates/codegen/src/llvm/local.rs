//! Buffers in shared memory: stores and loads.
//!
//! A buffer is a number of bytes from the start of shared memory. What a thread accesses lies at
//! an offset that is linear in thread and register: the part of the thread is computed once, the
//! part of the register is a constant, which goes into the instruction where the two have no bits
//! in common. Whole warps load fragments by matrix instructions where the layouts allow.

use smallvec::SmallVec;
use tile_compiler::gpu::shared;
use tile_compiler::ir::{Attrs, Inst, InstData, Opcode, Type, Value};
use tile_compiler::layout::{Dim, LinearLayout, MatrixAccess, VectorAccess};

use super::text::{Ty, Val};
use super::{Emitted, Emitter, SHARED_SYMBOL};
use crate::CodegenError;
use tile_compiler::gpu::ASYNC_COPIES;

/// Bits of a word of a matrix instruction.
const MATRIX_WORD: u32 = 32;

/// How the registers of a tile are read from a buffer, each when it is first asked for.
pub(super) struct Reader {
    /// The buffer's first byte.
    start: Val,
    /// The type of one register.
    ty: Ty,
    /// From register, lane and warp to the element offset in the buffer.
    offsets: LinearLayout,
    /// The matrix instructions, if they can be used.
    matrices: Option<MatrixAccess>,
    /// The registers that one instruction reads.
    groups: Vec<SmallVec<[u32; 16]>>,
    /// The group of each register.
    group_of: Vec<usize>,
    values: Vec<Option<Val>>,
    /// Where all offsets are changed, by XOR, by a number that is known when the kernel runs: the
    /// number, and the bits that it may have.
    turn: Option<(Val, u32)>,
}

impl Reader {
    /// What the bits of `register` contribute to its offset.
    pub(super) fn offset(&self, register: usize) -> u32 {
        Emitter::register_offset(&self.offsets, register as u32)
    }

    /// The registers that one instruction reads, for each.
    pub(super) fn groups(&self) -> &[SmallVec<[u32; 16]>] {
        &self.groups
    }

    /// Has what is read from here on lie at offsets XOR `value`, which has no bits but `reach`.
    pub(super) fn turn(&mut self, value: Val, reach: u32) {
        self.turn = Some((value, reach));
    }
}

impl Emitter<'_> {
    /// Buffer operations. Those that access memory may need a barrier first where memory is used
    /// again.
    pub(super) fn buffer_op(&mut self, inst: Inst, data: &InstData) -> Emitted {
        if self.plan.needs_barrier(inst) {
            self.barrier();
        }
        match (data.opcode, &data.attrs) {
            (Opcode::LocalAlloc, _) => {
                let start = self.plan.buffer(data.result()).unwrap_or_default();
                self.set(data.result(), vec![Val::Int(start.into())]);
                Ok(())
            }
            (Opcode::LocalStage, _) => self.stage(data),
            (Opcode::LocalPermute, _) => {
                let buffer = self.operand(data, 0);
                self.set(data.result(), buffer);
                Ok(())
            }
            (Opcode::LocalStore, _) => self.store_buffer(data),
            (Opcode::LocalLoad, _) => {
                let Some(layout) = self.layout(data.result()) else {
                    return Err(self.unsupported(data));
                };
                let mut reader = self.reader(data.operand(0), layout)?;
                let registers = (0..layout.elements_per_thread())
                    .map(|register| self.read(&mut reader, register))
                    .collect();
                self.set(data.result(), registers);
                Ok(())
            }
            (Opcode::AsyncCopy, _) => self.async_copy(data),
            (Opcode::AsyncCommit, _) => {
                self.async_group("llvm.nvvm.cp.async.commit.group", None);
                self.set(data.result(), vec![Val::Poison]);
                Ok(())
            }
            (Opcode::AsyncWait, Attrs::Wait(wait)) => {
                self.async_group("llvm.nvvm.cp.async.wait.group", Some(wait.pending));
                self.set(data.result(), vec![Val::Poison]);
                Ok(())
            }
            _ => Err(self.unsupported(data)),
        }
    }

    fn async_group(&mut self, name: &str, pending: Option<u32>) {
        if self.target.arch.capability < ASYNC_COPIES {
            return;
        }
        let (ty, arg) = match pending {
            Some(pending) => ("i32", format!("i32 {pending}")),
            None => ("", String::new()),
        };
        self.text.declarations.insert(format!("declare void @{name}({ty})"));
        self.text.line(format_args!("call void @{name}({arg})"));
    }

    fn stage(&mut self, data: &InstData) -> Emitted {
        let bytes = shared::stage_bytes(self.ty(data.operand(0)));
        let start = self.operand(data, 0)[0];
        let stage = self.operand(data, 1)[0];
        let place = match (start, stage) {
            (Val::Int(start), Val::Int(stage)) => Val::Int(start + stage * i64::from(bytes)),
            _ => {
                let i32 = Ty::Int(32);
                let distance = self.text.binary("mul nuw nsw", i32, stage, Val::Int(bytes.into()));
                self.text.binary("add nuw nsw", i32, start, distance)
            }
        };
        self.set(data.result(), vec![place]);
        Ok(())
    }

    /// The layout of a buffer and the type of its elements.
    pub(super) fn buffer_parts(&self, buffer: Value) -> Result<(&LinearLayout, Ty), CodegenError> {
        match self.ty(buffer) {
            Type::Buffer(ty) => Ok((&self.func.layouts[ty.layout], Ty::of(ty.elem))),
            other => Err(CodegenError::Unsupported { what: format!("a buffer of type {other}") }),
        }
    }

    /// The address in the buffer at `start` of the element whose offset is that of `constant`,
    /// XOR what each bit of the thread number contributes by `bases`.
    fn buffer_place(&mut self, start: Val, ty: Ty, bases: &[u32], constant: u32) -> Val {
        let part = (self.thread_index(bases), reach(bases));
        let (place, rest) = self.place_and_rest(start, ty, part, constant);
        self.text.op(format_args!("getelementptr i8, ptr addrspace(3) {place}, i32 {rest}"))
    }

    /// As [`buffer_place`](Self::buffer_place), for what `reader` reads.
    fn place_of(&mut self, reader: &Reader, bases: &[u32], constant: u32) -> Val {
        let Some((turn, turned)) = reader.turn else {
            return self.buffer_place(reader.start, reader.ty, bases, constant);
        };
        let thread = self.thread_index(bases);
        let part = self.text.binary("xor", Ty::Int(32), thread, turn);
        let part = (part, reach(bases) | turned);
        let (place, rest) = self.place_and_rest(reader.start, reader.ty, part, constant);
        self.text.op(format_args!("getelementptr i8, ptr addrspace(3) {place}, i32 {rest}"))
    }

    /// As [`buffer_place`](Self::buffer_place), the last bytes of the distance as a number.
    pub(super) fn buffer_place_and_rest(
        &mut self,
        start: Val,
        ty: Ty,
        bases: &[u32],
        constant: u32,
    ) -> (Val, u32) {
        let part = (self.thread_index(bases), reach(bases));
        self.place_and_rest(start, ty, part, constant)
    }

    /// The same, of a part with the bits that it may have.
    fn place_and_rest(
        &mut self,
        start: Val,
        ty: Ty,
        (part, reach): (Val, u32),
        constant: u32,
    ) -> (Val, u32) {
        let bytes = ty.bits().div_ceil(8);
        let index = self.offset_index(part, &[reach], constant & reach);
        let distance = match index {
            Val::Int(index) => Val::Int(index * i64::from(bytes)),
            index => self.text.binary("mul nuw nsw", Ty::Int(32), index, Val::Int(bytes.into())),
        };
        let place = self.text.op(format_args!(
            "getelementptr i8, ptr addrspace(3) @{SHARED_SYMBOL}, i32 {distance}"
        ));
        let place =
            self.text.op(format_args!("getelementptr i8, ptr addrspace(3) {place}, i32 {start}"));
        (place, (constant & !reach) * bytes)
    }

    /// The constant part of a register's offset.
    pub(super) fn register_offset(offsets: &LinearLayout, register: u32) -> u32 {
        offsets.apply_packed(offsets.pack_input(&[(Dim::Register, register as usize)])) as u32
    }

    /// How a tile in `layout` is read from `buffer`.
    pub(super) fn reader(
        &mut self,
        buffer: Value,
        layout: &LinearLayout,
    ) -> Result<Reader, CodegenError> {
        let start = self.registers(buffer)[0];
        let (stored, ty) = self.buffer_parts(buffer)?;
        let bytes = ty.bits().div_ceil(8) as usize;
        let offsets = layout.invert_and_compose(stored)?;
        let matrices = MatrixAccess::of(&offsets, bytes);
        let groups = match &matrices {
            Some(access) => access.instructions(),
            None => plain_access(layout, stored, offsets.clone(), bytes)?.instructions(),
        };
        let mut group_of = vec![0; layout.elements_per_thread()];
        for (at, group) in groups.iter().enumerate() {
            group.iter().for_each(|&register| group_of[register as usize] = at);
        }
        let values = vec![None; group_of.len()];
        Ok(Reader { start, ty, offsets, matrices, groups, group_of, values, turn: None })
    }

    /// The value of one register.
    pub(super) fn read(&mut self, reader: &mut Reader, register: usize) -> Val {
        if let Some(value) = reader.values[register] {
            return value;
        }
        let group = reader.groups[reader.group_of[register]].clone();
        let values = match &reader.matrices {
            Some(access) => self.load_matrices(reader, access, &group),
            None => self.load_vector(reader, &group),
        };
        for (&register, value) in group.iter().zip(values) {
            reader.values[register as usize] = Some(value);
        }
        reader.values[register].unwrap_or(Val::Poison)
    }

    fn load_matrices(&mut self, reader: &Reader, access: &MatrixAccess, group: &[u32]) -> Vec<Val> {
        let count = 1usize << access.matrix_bits.len();
        let mut bases: Vec<u32> = access.row_bases.to_vec();
        bases.extend(reader.offsets.bases(Dim::Warp).iter().map(|&basis| basis as u32));
        let constant = Self::register_offset(&reader.offsets, group[0]);
        let place = self.place_of(reader, &bases, constant);
        let transposed = if access.transposed { ".trans" } else { "" };
        let name = format!("llvm.nvvm.ldmatrix.sync.aligned.m8n8.x{count}{transposed}.b16.p3");
        let result = match count {
            1 => "i32".to_owned(),
            _ => format!("{{ {} }}", vec!["i32"; count].join(", ")),
        };
        self.text.declarations.insert(format!("declare {result} @{name}(ptr addrspace(3))"));
        let loaded = self.text.op(format_args!("call {result} @{name}(ptr addrspace(3) {place})"));
        let word = Ty::Int(MATRIX_WORD);
        let mut values = Vec::with_capacity(group.len());
        for at in 0..count {
            let part = match count {
                1 => loaded,
                _ => self.text.op(format_args!("extractvalue {result} {loaded}, {at}")),
            };
            let elements = (MATRIX_WORD / reader.ty.bits()) as usize;
            if elements == 1 {
                values.push(self.text.bitcast(word, part, reader.ty));
                continue;
            }
            values.extend(self.elements_of(word, part, elements, reader.ty));
        }
        values
    }

    /// The elements in a machine word.
    fn elements_of(&mut self, word: Ty, value: Val, count: usize, ty: Ty) -> Vec<Val> {
        let vector = self.text.op(format_args!("bitcast {word} {value} to <{count} x {ty}>"));
        self.extract(count, ty, vector)
    }

    fn extract(&mut self, count: usize, ty: Ty, vector: Val) -> Vec<Val> {
        let extract =
            |at| self.text.op(format_args!("extractelement <{count} x {ty}> {vector}, i32 {at}"));
        (0..count).map(extract).collect()
    }

    fn load_vector(&mut self, reader: &Reader, group: &[u32]) -> Vec<Val> {
        let bases = Self::thread_bases(&reader.offsets, |basis| basis as u32);
        let constant = Self::register_offset(&reader.offsets, group[0]);
        let place = self.place_of(reader, &bases, constant);
        let (count, memory) = (group.len(), memory_ty(reader.ty));
        let align = memory.bits() as usize / 8 * count;
        let values = if count == 1 {
            let load = format_args!("load {memory}, ptr addrspace(3) {place}, align {align}");
            vec![self.text.op(load)]
        } else {
            let vector = self.text.op(format_args!(
                "load <{count} x {memory}>, ptr addrspace(3) {place}, align {align}"
            ));
            self.extract(count, memory, vector)
        };
        let from_memory = |value| match reader.ty {
            Ty::Int(1) => self.text.cast("trunc", memory, value, reader.ty),
            ty => self.text.bitcast(memory, value, ty),
        };
        values.into_iter().map(from_memory).collect()
    }

    fn store_buffer(&mut self, data: &InstData) -> Emitted {
        let (buffer, tile) = (data.operand(0), data.operand(1));
        let start = self.operand(data, 0)[0];
        let registers = self.operand(data, 1);
        let Some(layout) = self.layout(tile) else { return Err(self.unsupported(data)) };
        let (stored, ty) = self.buffer_parts(buffer)?;
        let bytes = ty.bits().div_ceil(8) as usize;
        let offsets = layout.invert_and_compose(stored)?;
        let access = plain_access(layout, stored, offsets, bytes)?;
        let repeated = layout.duplicates().register;
        if let Some(matrices) = self.matrix_stores(ty, &access) {
            self.store_all_matrices((start, ty), &access.offsets, &matrices, &registers);
            return Ok(());
        }
        for group in access.instructions() {
            if group[0] & repeated == 0 {
                let values: Vec<Val> = group.iter().map(|&at| registers[at as usize]).collect();
                self.store_vector(start, ty, &access.offsets, group[0], &values);
            }
        }
        Ok(())
    }

    /// Stores neighbors, the first of which is in `register` of a tile at `offsets`.
    pub(super) fn store_vector(
        &mut self,
        start: Val,
        ty: Ty,
        offsets: &LinearLayout,
        register: u32,
        values: &[Val],
    ) {
        let bases = Self::thread_bases(offsets, |basis| basis as u32);
        let constant = Self::register_offset(offsets, register);
        let place = self.buffer_place(start, ty, &bases, constant);
        let (count, memory) = (values.len(), memory_ty(ty));
        let align = memory.bits() as usize / 8 * count;
        let raw: Vec<Val> = values
            .iter()
            .map(|&value| match ty {
                Ty::Int(1) => self.text.cast("zext", ty, value, memory),
                _ => self.text.bitcast(ty, value, memory),
            })
            .collect();
        let (value, value_ty) = match raw.as_slice() {
            [one] => (*one, memory.to_string()),
            several => (self.vector_of(memory, several), format!("<{count} x {memory}>")),
        };
        self.text.line(format_args!(
            "store {value_ty} {value}, ptr addrspace(3) {place}, align {align}"
        ));
    }
}

/// The access of a tile in `layout` to a buffer stored as `stored`, `offsets` leading from one to
/// the other, by vectors of up to 16 bytes.
pub(super) fn plain_access(
    layout: &LinearLayout,
    stored: &LinearLayout,
    offsets: LinearLayout,
    bytes: usize,
) -> Result<VectorAccess, CodegenError> {
    let (vector_bits, cost) = layout.shared_access(stored, bytes).ok_or_else(|| {
        CodegenError::Unsupported { what: "a buffer that does not hold its tile".to_owned() }
    })?;
    Ok(VectorAccess { offsets, vector_bits, cost })
}

/// The type of an element in shared memory.
fn memory_ty(ty: Ty) -> Ty {
    Ty::Int(ty.bits().max(8))
}

/// All bits that `bases` have.
fn reach(bases: &[u32]) -> u32 {
    bases.iter().fold(0, |reach, basis| reach | basis)
}
