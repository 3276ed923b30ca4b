//! Loads and stores of global memory, and the words in which registers get there.
//!
//! Each thread moves as many neighbors per instruction as its registers, the addresses and the
//! mask allow. A mask becomes the instruction's predicate; what is masked off reads as `other`, or
//! zero. Threads and registers that repeat an element write it once.
//!
//! Where a tile runs through half a line of the cache or more, its reads ask for whole lines: other warps,
//! programs or iterations need what is left of them, as where rows begin within a line or a tile ends there.
//! On an H100, transposing bytes by tiles of 64 columns takes 0.94 times as long so, batched products by
//! blocks of 32 columns 0.96, rows of 8191 elements 0.98, and where all lines are whole anyway nothing
//! changes. Where one instruction of a warp reads a line at most, it asks for two: the next instruction, of
//! this warp or another, reads the other one. Sums of vectors of odd length and crossings of rows of 8191
//! elements take 0.9965 times as long so, none of 15 kernels longer. Where each thread reads 16 bytes, rows
//! looked up by their index would take 1.007 times as long. Runs of two lines or more, of which each thread reads 16
//! bytes, are read by whole lines but for their ends, and ask for nothing: on an H200, 75 kernels that read so take 0.999
//! times as long without in the mean, none of them more than 1.002.

use std::fmt::Write;

use smallvec::SmallVec;
use tile_compiler::ir::{
    Attrs, CacheModifier, Elem, Eviction, Inst, InstData, LoadHints, StoreHints, Value,
};
use tile_compiler::layout::{LinearLayout, PlaceMasks};

use super::index::runs;
use super::text::{Ty, Val};
use super::{Emitted, Emitter};
use crate::CodegenError;

/// The widest access of one thread, in bytes.
pub(super) const MAX_VECTOR_BYTES: u32 = 16;

/// Half a line of the cache, in bytes.
const HALF_LINE: i64 = 64;

/// Of so many bytes, whole vectors of neighboring threads read most lines whole by themselves.
const LONG_RUN: i64 = 2 * LINE as i64;

/// What has a read bring a whole line of 128 bytes from memory.
const WHOLE_LINE: &str = ".L2::128B";

/// Threads of a warp.
const LANES: u32 = 32;

/// A line of the cache, in bytes.
const LINE: u32 = 128;

/// What has a read bring two lines, of which the first begins at a multiple of 256 bytes: of a tensor's run by tiles with
/// one axis. Behind a line of a tile of rows the row may end, or others read it: on an H200, a stencil takes 0.993 times as
/// long without and a softmax of several rows 0.995 times, on an H100 both 1.001 times.
const TWO_LINES: &str = ".L2::256B";

/// The first compute capability whose reads say how much they bring.
const READS_OF_LINES: u32 = 75;

/// How a tile's registers are moved: lists of registers whose elements are neighbors in memory.
pub(super) struct Vectors {
    pub(super) groups: Vec<SmallVec<[usize; 16]>>,
}

/// One machine word of an access.
#[derive(Clone, Copy)]
pub(super) struct Words {
    /// Bits of a word.
    pub(super) bits: u32,
    /// Words of the access.
    pub(super) count: usize,
    /// Elements in each word.
    pub(super) elements: usize,
}

impl Words {
    pub(super) fn new(element_bits: u32, elements: usize) -> Words {
        let total = element_bits * elements as u32;
        let bits = if element_bits == 64 { 64 } else { total.min(32) };
        Words { bits, count: (total / bits) as usize, elements: (bits / element_bits) as usize }
    }

    /// The bytes that a thread moves by one instruction.
    fn of_thread(self) -> u32 {
        self.bits / 8 * self.count as u32
    }

    /// The bytes that a warp moves by one instruction.
    fn of_warp(self) -> u32 {
        LANES * self.of_thread()
    }

    pub(super) fn ty(self) -> Ty {
        Ty::Int(self.bits)
    }

    /// The constraint letter of a word's register; bytes travel in 16-bit ones.
    pub(super) fn letter(self) -> &'static str {
        match self.bits {
            64 => "l",
            32 => "r",
            _ => "h",
        }
    }

    /// The type of a word's register.
    pub(super) fn register(self) -> Ty {
        Ty::Int(self.bits.max(16))
    }

    /// The type of an instruction's result: one register, or a structure of them.
    pub(super) fn result(self) -> String {
        let register = self.register().to_string();
        match self.count {
            1 => register,
            count => format!("{{ {} }}", vec![register; count].join(", ")),
        }
    }

    /// `.v4.b32`, `.b16`, ...
    fn suffix(self) -> String {
        match self.count {
            1 => format!(".b{}", self.bits),
            count => format!(".v{count}.b{}", self.bits),
        }
    }
}

/// A state space of memory.
#[derive(Clone, Copy)]
enum Space {
    Global,
    Shared,
}

impl Space {
    fn name(self) -> &'static str {
        match self {
            Space::Global => "global",
            Space::Shared => "shared",
        }
    }

    /// The number of the address space in LLVM IR, and the constraint letter of its addresses.
    fn address(self) -> (u32, &'static str) {
        match self {
            Space::Global => (1, "l"),
            Space::Shared => (3, "r"),
        }
    }
}

/// Element types as memory holds them.
pub(super) fn memory_bits(elem: Elem) -> u32 {
    elem.bits().max(8)
}

impl Emitter<'_> {
    pub(super) fn load(&mut self, inst: Inst, data: &InstData) -> Emitted {
        if self.clustered.contains(&inst) {
            return Ok(()); // Read together with an earlier load.
        }
        if let Some(members) = self.cluster(inst) {
            return self.load_cluster(&members);
        }
        let elem = self.elem_of(data.result())?;
        let ptrs = self.operand(data, 0);
        let mut registers = vec![Val::Poison; self.register_count(data.result())];
        for group in &self.vectors(data, elem).groups {
            let values = self.load_run(data, elem, ptrs[group[0]], group)?;
            for (&register, value) in group.iter().zip(values) {
                registers[register] = value;
            }
        }
        self.copy_repeated_registers(data.result(), &mut registers);
        self.set(data.result(), registers);
        Ok(())
    }

    /// Reads neighboring fields, one load each, by one access per element.
    fn load_cluster(&mut self, members: &[Inst]) -> Emitted {
        let first = &self.func.insts[members[0]];
        let elem = self.elem_of(first.result())?;
        let ptrs = self.operand(first, 0);
        let count = self.register_count(first.result());
        let mut fields = vec![vec![Val::Poison; count]; members.len()];
        for group in &self.vectors(first, elem).groups {
            let register = group[0];
            let same: SmallVec<[usize; 16]> = SmallVec::from_elem(register, members.len());
            let values = self.load_run(first, elem, ptrs[register], &same)?;
            for (field, value) in fields.iter_mut().zip(values) {
                field[register] = value;
            }
        }
        self.clustered.extend(members);
        for (&member, mut registers) in members.iter().zip(fields) {
            let result = self.func.insts[member].result();
            self.copy_repeated_registers(result, &mut registers);
            self.set(result, registers);
        }
        Ok(())
    }

    /// One access: as many neighbors from `ptr` on as `others` lists registers, which name the
    /// mask's element and the values of what is masked off.
    fn load_run(
        &mut self,
        data: &InstData,
        elem: Elem,
        ptr: Val,
        others: &[usize],
    ) -> Result<Vec<Val>, CodegenError> {
        let Attrs::LoadHints(hints) = &data.attrs else { return Err(self.unsupported(data)) };
        let words = Words::new(memory_bits(elem), others.len());
        let predicate = data.operand_opt(1).map(|mask| self.registers(mask)[others[0]]);
        let loaded = match predicate {
            // LLVM would take vectors apart again where it sees no alignment.
            None if is_plain(hints) && words.count == 1 => {
                vec![self.plain_load(words, ptr, hints.volatile)]
            }
            _ => {
                let fill = data.operand_opt(2).map(|other| {
                    let all = self.registers(other);
                    let parts: Vec<Val> = others.iter().map(|&at| all[at]).collect();
                    self.pack(Ty::of(elem), words, &parts)
                });
                let line = self.line_of_access(data.operand(0), words);
                self.asm_load((words, line), ptr, predicate, fill, hints)
            }
        };
        Ok(self.unpack(elem, words, &loaded))
    }

    /// What an access of a tile of pointers by each thread says of the lines that it is part of.
    fn line_of_access(&self, ptr: Value, words: Words) -> &'static str {
        let is_run = self.ty(ptr).shape().len() == 1;
        let is_whole = words.of_thread() >= MAX_VECTOR_BYTES && self.longest_run(ptr) >= LONG_RUN;
        match self.line_of(ptr) {
            WHOLE_LINE if is_whole => "",
            WHOLE_LINE if is_run && words.of_warp() <= LINE => TWO_LINES,
            line => line,
        }
    }

    /// What a read of a tile of pointers says of the lines that it is part of.
    pub(super) fn line_of(&self, ptr: Value) -> &'static str {
        let has_lines = self.target.arch.capability >= READS_OF_LINES;
        if has_lines && self.longest_run(ptr) >= HALF_LINE { WHOLE_LINE } else { "" }
    }

    /// The most bytes that lie one after another in a tile of pointers.
    fn longest_run(&self, ptr: Value) -> i64 {
        let info = self.infos.get(self.func, ptr);
        let pointee = self.ty(ptr).elem().and_then(|elem| elem.pointee());
        let bytes = pointee.map_or(1, |elem| i64::from(memory_bits(elem) / 8));
        info.contiguity.iter().max().map_or(0, |run| run * bytes)
    }

    pub(super) fn store(&mut self, data: &InstData) -> Emitted {
        let Attrs::StoreHints(hints) = &data.attrs else { return Err(self.unsupported(data)) };
        let values = self.operand(data, 1);
        self.store_registers(data, &values, hints)
    }

    /// Writes `values` to where a store or a bulk store goes.
    pub(super) fn store_registers(
        &mut self,
        data: &InstData,
        values: &[Val],
        hints: &StoreHints,
    ) -> Emitted {
        let elem = self.elem_of(data.operand(1))?;
        let ptrs = self.operand(data, 0);
        let mask = data.operand_opt(2).map(|mask| self.registers(mask));
        let owner = self.owner(data.operand(0));
        let modifiers = modifiers(hints.cache, hints.evict);
        for (axis, group) in self.stored_together(data, elem) {
            let passed = mask.as_ref().map(|mask| mask[group[0]]);
            let words = Words::new(memory_bits(elem), group.len());
            let parts: Vec<Val> = group.iter().map(|&at| values[at]).collect();
            let is_alike = self.alike(data.operand_opt(2), axis) >= group.len() as i64;
            if let (Some(mask), false) = (&mask, is_alike) {
                let passed: Vec<Val> =
                    group.iter().filter_map(|&at| self.both(Some(mask[at]), owner)).collect();
                self.store_first(Ty::of(elem), ptrs[group[0]], &parts, &passed, modifiers);
                continue;
            }
            let predicate = self.both(passed, owner);
            let packed = self.pack(Ty::of(elem), words, &parts);
            let plain = hints.cache == CacheModifier::Default && hints.evict == Eviction::Normal;
            // LLVM would take vectors of bytes apart again.
            let is_whole = words.count == 1 || words.elements <= 2;
            if predicate.is_none() && plain && is_whole {
                self.plain_store(words, ptrs[group[0]], &packed);
                continue;
            }
            let place = (Space::Global, ptrs[group[0]]);
            self.asm_store(words, place, predicate, &packed, modifiers);
        }
        Ok(())
    }

    /// The registers that a store writes at once where its mask lets pass all, or the first ones, with
    /// the axis along which they are neighbors.
    pub(super) fn stored_together(
        &self,
        data: &InstData,
        elem: Elem,
    ) -> Vec<(usize, SmallVec<[usize; 16]>)> {
        let (ptr, mask) = (data.operand(0), data.operand_opt(2));
        let Some(layout) = self.layout(ptr) else { return vec![(0, SmallVec::from_slice(&[0]))] };
        let masked = |axis| self.leading(mask, axis);
        let (axis, bits) = self.access_bits(ptr, layout, memory_bits(elem) / 8, masked);
        runs(layout, &bits).into_iter().map(|run| (axis, run)).collect()
    }

    /// Stores those of `values`, neighbors from `ptr` on, that are `passed`, which are the first ones:
    /// all by one instruction, fewer one by one. Most often there is a row's end in few vectors.
    fn store_first(&mut self, ty: Ty, ptr: Val, values: &[Val], passed: &[Val], modifiers: &str) {
        let (Some((&all, others)), truth) = (passed.split_last(), Ty::Int(1)) else { return };
        let words = Words::new(ty.bits().max(8), values.len());
        let packed = self.pack(ty, words, values);
        self.asm_store(words, (Space::Global, ptr), Some(all), &packed, modifiers);
        let fewer = self.text.binary("xor", truth, all, Val::Int(1));
        let one = Words::new(ty.bits().max(8), 1);
        for (at, &passed) in others.iter().enumerate() {
            let alone = self.text.binary("and", truth, passed, fewer);
            let bytes = at * one.bits as usize / 8;
            let place =
                self.text.op(format_args!("getelementptr i8, ptr addrspace(1) {ptr}, i32 {bytes}"));
            let packed = self.pack(ty, one, &values[at..=at]);
            self.asm_store(one, (Space::Global, place), Some(alone), &packed, modifiers);
        }
    }

    pub(super) fn elem_of(&self, value: Value) -> Result<Elem, CodegenError> {
        self.ty(value).elem().ok_or_else(|| CodegenError::Unsupported {
            what: format!("access to values of type {}", self.ty(value)),
        })
    }

    /// The thread's part of the condition that it writes: that no thread before it holds the same
    /// elements. `None` when all write.
    pub(super) fn owner(&mut self, value: Value) -> Option<Val> {
        let masks = match self.layout(value) {
            Some(layout) => layout.duplicates(),
            None => PlaceMasks { lane: 31, ..PlaceMasks::default() },
        };
        let warp = match self.layout(value) {
            Some(_) => masks.warp,
            None => self.func.options.num_warps - 1,
        };
        self.thread_without(masks.lane, warp)
    }

    pub(super) fn both(&mut self, a: Option<Val>, b: Option<Val>) -> Option<Val> {
        match (a, b) {
            (Some(a), Some(b)) => Some(self.text.binary("and", Ty::Int(1), a, b)),
            (a, b) => a.or(b),
        }
    }

    /// The accesses of a load, registers that repeat others left out.
    pub(super) fn vectors(&self, data: &InstData, elem: Elem) -> Vectors {
        let ptr = data.operand(0);
        let Some(layout) = self.layout(ptr) else {
            return Vectors { groups: vec![SmallVec::from_slice(&[0])] };
        };
        let mask = data.operand_opt(1);
        let bytes = memory_bits(elem) / 8;
        let (_, bits) = self.access_bits(ptr, layout, bytes, |axis| self.alike(mask, axis));
        Vectors { groups: runs(layout, &bits) }
    }

    /// The neighbors along `axis` that `mask` lets pass all or none of.
    pub(super) fn alike(&self, mask: Option<Value>, axis: usize) -> i64 {
        mask.map_or(i64::MAX, |mask| self.infos.get(self.func, mask).constancy[axis])
    }

    /// The neighbors along `axis` that `mask` lets pass the first ones of, if any.
    pub(super) fn leading(&self, mask: Option<Value>, axis: usize) -> i64 {
        mask.map_or(i64::MAX, |mask| self.infos.get(self.func, mask).leading(axis))
    }

    /// The axis along which an access of elements of `bytes` is widest, and the register bits that
    /// count through what one instruction moves, which are as many neighbors as `masked` says at most.
    pub(super) fn access_bits(
        &self,
        ptr: Value,
        layout: &LinearLayout,
        bytes: u32,
        masked: impl Fn(usize) -> i64,
    ) -> (usize, SmallVec<[u32; 4]>) {
        let info = self.infos.get(self.func, ptr);
        let width = |axis: usize| {
            let aligned = (info.divisibility[axis] / i64::from(bytes)).max(1);
            let width = info.contiguity[axis].min(aligned).min(masked(axis));
            let limit = width.min(i64::from(MAX_VECTOR_BYTES / bytes)).max(1) as usize;
            limit.min(layout.contiguous_per_thread(axis))
        };
        let axis = (0..layout.rank()).max_by_key(|&axis| width(axis)).unwrap_or(0);
        let mut bits = layout.vector_bits(axis);
        bits.truncate(width(axis).trailing_zeros() as usize);
        (axis, bits)
    }

    /// Gives registers that repeat an element the value of the one that was loaded.
    pub(super) fn copy_repeated_registers(&self, value: Value, registers: &mut [Val]) {
        let Some(layout) = self.layout(value) else { return };
        let repeated = layout.duplicates().register as usize;
        if repeated == 0 {
            return;
        }
        let index = |register: usize| layout.offset_for_register(register);
        for register in 0..registers.len() {
            if register & repeated != 0 {
                let same = (0..register).find(|&first| index(first) == index(register));
                if let Some(same) = same {
                    registers[register] = registers[same];
                }
            }
        }
    }

    fn plain_load(&mut self, words: Words, ptr: Val, volatile: bool) -> Val {
        let ty = words.ty();
        let volatile = if volatile { "volatile " } else { "" };
        let align = words.bits / 8;
        self.text.op(format_args!("load {volatile}{ty}, ptr addrspace(1) {ptr}, align {align}"))
    }

    fn plain_store(&mut self, words: Words, ptr: Val, values: &[Val]) {
        let ty = words.ty();
        let align = words.bits / 8 * words.count as u32;
        if let [value] = values {
            let store = format_args!("store {ty} {value}, ptr addrspace(1) {ptr}, align {align}");
            return self.text.line(store);
        }
        let vector = self.vector_of(ty, values);
        let count = words.count;
        self.text.line(format_args!(
            "store <{count} x {ty}> {vector}, ptr addrspace(1) {ptr}, align {align}"
        ));
    }

    pub(super) fn vector_of(&mut self, ty: Ty, values: &[Val]) -> Val {
        let count = values.len();
        values.iter().enumerate().fold(Val::Poison, |vector, (at, value)| {
            self.text
                .op(format_args!("insertelement <{count} x {ty}> {vector}, {ty} {value}, i32 {at}"))
        })
    }

    /// Reads words from `ptr` on, with what [`Emitter::line_of`] says of them.
    pub(super) fn asm_load(
        &mut self,
        (words, line): (Words, &str),
        ptr: Val,
        predicate: Option<Val>,
        others: Option<Vec<Val>>,
        hints: &LoadHints,
    ) -> Vec<Val> {
        let count = words.count;
        let letter = words.letter();
        let register = words.register();
        let mut asm = String::new();
        let mut constraints = vec![format!("={letter}"); count];
        let mut args = vec![format!("ptr addrspace(1) {ptr}")];
        constraints.push("l".to_owned());
        let mut guard = String::new();
        if let Some(predicate) = predicate {
            constraints.push("b".to_owned());
            args.push(format!("i1 {predicate}"));
            let _ = write!(guard, "@${} ", count + 1);
            for at in 0..count {
                let initial = match &others {
                    None => "0".to_owned(),
                    Some(others) => {
                        let word = self.text.cast("zext", words.ty(), others[at], register);
                        constraints.push(letter.to_owned());
                        args.push(format!("{register} {word}"));
                        format!("${}", count + 2 + at)
                    }
                };
                let _ = write!(asm, "mov.b{} ${at}, {initial}; ", register.bits());
            }
        }
        let outputs: Vec<String> = (0..count).map(|at| format!("${at}")).collect();
        let outputs =
            if count == 1 { outputs[0].clone() } else { format!("{{{}}}", outputs.join(", ")) };
        let modifiers = if hints.volatile {
            ".volatile.global".to_owned()
        } else {
            format!(".global{}{line}", modifiers(hints.cache, hints.evict))
        };
        let _ = write!(asm, "{guard}ld{modifiers}{} {outputs}, [${count}];", words.suffix());
        let result = words.result();
        let loaded = self.text.op(format_args!(
            "call {result} asm sideeffect \"{asm}\", \"{}\"({})",
            constraints.join(","),
            args.join(", ")
        ));
        self.parts(words, loaded)
    }

    /// The words of an instruction's result.
    pub(super) fn parts(&mut self, words: Words, result: Val) -> Vec<Val> {
        let (ty, register) = (words.result(), words.register());
        (0..words.count)
            .map(|at| {
                let word = match words.count {
                    1 => result,
                    _ => self.text.op(format_args!("extractvalue {ty} {result}, {at}")),
                };
                self.text.cast("trunc", register, word, words.ty())
            })
            .collect()
    }

    /// Writes neighbors from element `index` on of an array of `ty` at byte `base` of shared memory,
    /// where `predicate` holds. Unlike a branch it leaves the block whole, so that addresses are
    /// computed where they are used and stay short.
    pub(super) fn store_shared_where(
        &mut self,
        ty: Ty,
        (base, index): (u32, Val),
        values: &[Val],
        predicate: Option<Val>,
    ) {
        let words = Words::new(ty.bits().max(8), values.len());
        let packed = self.pack(ty, words, values);
        let address = self.shared_address(ty, base, index);
        self.asm_store(words, (Space::Shared, address), predicate, &packed, "");
    }

    fn asm_store(
        &mut self,
        words: Words,
        (space, ptr): (Space, Val),
        predicate: Option<Val>,
        values: &[Val],
        modifiers: &str,
    ) {
        let register = words.register();
        let (number, letter) = space.address();
        let mut constraints = vec![letter.to_owned()];
        let mut args = vec![format!("ptr addrspace({number}) {ptr}")];
        for &value in values {
            let word = self.text.cast("zext", words.ty(), value, register);
            constraints.push(words.letter().to_owned());
            args.push(format!("{register} {word}"));
        }
        let inputs: Vec<String> = (1..=values.len()).map(|at| format!("${at}")).collect();
        let inputs = if values.len() == 1 {
            inputs[0].clone()
        } else {
            format!("{{{}}}", inputs.join(", "))
        };
        let mut guard = String::new();
        if let Some(predicate) = predicate {
            guard = format!("@${} ", values.len() + 1);
            constraints.push("b".to_owned());
            args.push(format!("i1 {predicate}"));
        }
        self.text.line(format_args!(
            "call void asm sideeffect \"{guard}st.{}{modifiers}{} [$0], {inputs};\", \"{}\"({})",
            space.name(),
            words.suffix(),
            constraints.join(","),
            args.join(", ")
        ));
    }

    /// Elements as machine words, element 0 in the lowest bits.
    pub(super) fn pack(&mut self, ty: Ty, words: Words, elements: &[Val]) -> Vec<Val> {
        let memory = Ty::Int(ty.bits().max(8));
        let raw: Vec<Val> = elements
            .iter()
            .map(|&element| match ty {
                Ty::Int(1) => self.text.cast("zext", ty, element, memory),
                _ => self.text.bitcast(ty, element, memory),
            })
            .collect();
        raw.chunks(words.elements)
            .map(|chunk| match chunk {
                [one] => *one,
                several => {
                    let (part, parts) = self.in_pairs(memory, several);
                    if let (Ty::Int(8), &[low, high]) = (part, &parts[..]) {
                        return self.two_bytes(low, high);
                    }
                    let vector = self.vector_of(part, &parts);
                    let count = parts.len();
                    let word = words.ty();
                    self.text.op(format_args!("bitcast <{count} x {part}> {vector} to {word}"))
                }
            })
            .collect()
    }

    /// Two bytes as one word: LLVM would make it of a vector in local memory.
    fn two_bytes(&mut self, low: Val, high: Val) -> Val {
        let (byte, word) = (Ty::Int(8), Ty::Int(16));
        let [low, high] = [low, high].map(|part| self.text.cast("zext", byte, part, word));
        let high = self.text.binary("shl", word, high, Val::Int(8));
        self.text.binary("or", word, low, high)
    }

    /// Bytes of which each two were made together, two at a time; others as they are.
    fn in_pairs(&self, ty: Ty, elements: &[Val]) -> (Ty, Vec<Val>) {
        let pair = |pair: &[Val]| self.byte_pairs.get(pair).copied();
        match elements.chunks(2).map(pair).collect() {
            Some(pairs) => (Ty::Int(16), pairs),
            None => (ty, elements.to_vec()),
        }
    }

    /// The elements in machine words; a bool is true when its byte is not 0.
    pub(super) fn unpack(&mut self, elem: Elem, words: Words, values: &[Val]) -> Vec<Val> {
        let mut elements = Vec::with_capacity(words.count * words.elements);
        for &word in values {
            match Ty::of(elem) {
                Ty::Int(1) => elements.extend(self.truths(words, word)),
                ty => elements.extend(
                    self.within_word(words, elem, word)
                        .into_iter()
                        .map(|part| self.text.bitcast(Ty::Int(memory_bits(elem)), part, ty)),
                ),
            }
        }
        elements
    }

    /// Whether each byte of a word is not 0, found without taking the word apart.
    fn truths(&mut self, words: Words, word: Val) -> Vec<Val> {
        let ty = words.ty();
        let is_set = |at: usize| {
            let byte = self.text.op(format_args!("and {ty} {word}, {}", 0xffu64 << (8 * at)));
            self.text.op(format_args!("icmp ne {ty} {byte}, 0"))
        };
        (0..words.elements).map(is_set).collect()
    }

    /// The elements in a word, as memory holds them.
    fn within_word(&mut self, words: Words, elem: Elem, word: Val) -> Vec<Val> {
        let (from, count, memory) = (words.ty(), words.elements, Ty::Int(memory_bits(elem)));
        if count == 1 {
            return vec![word];
        }
        if memory == Ty::Int(8) {
            // As numbers, so that LLVM sees what comparisons and extensions need of the word.
            let part = |at: usize| {
                let low = self.text.binary("lshr", from, word, Val::Int(8 * at as i64));
                self.text.cast("trunc", from, low, memory)
            };
            return (0..count).map(part).collect();
        }
        let vector = self.text.op(format_args!("bitcast {from} {word} to <{count} x {memory}>"));
        let part = |at: usize| {
            let list = format_args!("extractelement <{count} x {memory}> {vector}, i32 {at}");
            self.text.op(list)
        };
        (0..count).map(part).collect()
    }
}

/// Whether a load needs nothing that LLVM's own cannot say.
fn is_plain(hints: &LoadHints) -> bool {
    matches!(hints.cache, CacheModifier::Default | CacheModifier::Cv)
        && hints.evict == Eviction::Normal
}

/// PTX takes a cache operator or an eviction priority, not both; the operator says more. `.cv` is
/// accepted and, as in Triton, has no effect.
fn modifiers(cache: CacheModifier, evict: Eviction) -> &'static str {
    match (cache, evict) {
        (CacheModifier::Ca, _) => ".ca",
        (CacheModifier::Cg, _) => ".cg",
        (CacheModifier::Wb, _) => ".wb",
        (CacheModifier::Cs, _) => ".cs",
        (CacheModifier::Wt, _) => ".wt",
        (CacheModifier::Default | CacheModifier::Cv, Eviction::First) => ".L1::evict_first",
        (CacheModifier::Default | CacheModifier::Cv, Eviction::Last) => ".L1::evict_last",
        (CacheModifier::Default | CacheModifier::Cv, Eviction::Normal) => "",
    }
}
