//! The loads of a loop that software pipelining can issue early.
//!
//! Two kinds: loads whose tile is put into a buffer that products read, and loads whose tile is used
//! from registers, as the packed weights and the scales of a quantized product, or few bytes of a loop
//! without products. The latter get a buffer of their own, in which each thread finds again what it copied.

use rustc_hash::{FxHashMap, FxHashSet};

use super::bulk::BulkCopy;
use super::{LANES, shared};
use crate::analysis::axis::AxisInfos;
use crate::ir::{
    Attrs, Elem, Function, Inst, InstData, Opcode, Region, Shape, Type, Value, ValueDef,
};
use crate::layout::{Dim, LinearLayout};

/// The smallest asynchronous copy of one thread, in bytes.
const LEAST_COPY_BYTES: u32 = 4;

/// The largest asynchronous copy of one thread, in bytes.
pub(super) const MOST_COPY_BYTES: u32 = 16;

/// A load that can be issued early.
pub(super) struct EarlyLoad {
    /// The load.
    pub load: Inst,
    /// The allocation and the store that put its tile into a buffer of one stage; `None` when the
    /// tile is used from registers.
    pub buffered: Option<Buffered>,
    /// Shape of the buffer.
    pub shape: Shape,
    /// Element type of the buffer.
    pub elem: Elem,
    /// From element offset in the buffer to tile coordinates.
    pub storage: LinearLayout,
    /// How it is copied in bulk; `None` where each thread copies its own elements.
    pub bulk: Option<BulkCopy>,
}

/// The instructions that put a load's tile into a buffer.
pub(super) struct Buffered {
    pub alloc: Inst,
    pub store: Inst,
}

impl EarlyLoad {
    /// The load whose tile `store` puts into a buffer of its own, if all three have `positions`.
    pub fn stored(
        func: &Function,
        positions: &FxHashMap<Inst, usize>,
        store: Inst,
    ) -> Option<EarlyLoad> {
        let data = &func.insts[store];
        if data.opcode != Opcode::LocalStore {
            return None;
        }
        let defined_by = |value: Value, opcode: Opcode| match func.values[value].def {
            ValueDef::Result(inst, _) if func.insts[inst].opcode == opcode => {
                positions.contains_key(&inst).then_some(inst)
            }
            _ => None,
        };
        let alloc = defined_by(data.operand(0), Opcode::LocalAlloc)?;
        let load = defined_by(data.operand(1), Opcode::Load)?;
        let Type::Buffer(buffer) = func.ty(func.insts[alloc].result()) else { return None };
        let storage = func.layouts[buffer.layout].clone();
        let (shape, elem) = (buffer.shape.clone(), buffer.elem);
        let buffered = Some(Buffered { alloc, store });
        Some(EarlyLoad { load, buffered, shape, elem, storage, bulk: None })
    }

    /// A load whose tile is used from registers, with a buffer of its own.
    pub(crate) fn from_registers(func: &Function, load: Inst) -> Option<EarlyLoad> {
        let tile = func.ty(func.insts[load].result());
        let elem = tile.elem().filter(|elem| elem.bits() >= 8)?;
        let layout = &func.layouts[tile.layout()?];
        let storage = thread_storage(layout, elem)?;
        let reader = exchanged(func, func.insts[load].result());
        let storage = reader.and_then(|reader| swizzled(&storage, reader, elem)).unwrap_or(storage);
        let shape = tile.shape().into();
        Some(EarlyLoad { load, buffered: None, shape, elem, storage, bulk: None })
    }

    /// Whether the load can be an asynchronous copy: what is masked off is zero, and each thread
    /// copies whole words.
    pub(crate) fn is_copy(&self, func: &Function, infos: &AxisInfos) -> bool {
        let data = &func.insts[self.load];
        let is_volatile = matches!(&data.attrs, Attrs::LoadHints(hints) if hints.volatile);
        self.fills_zeros(func) && !is_volatile && self.copy_bytes(func, infos) >= LEAST_COPY_BYTES
    }

    /// Whether what is masked off is zero.
    pub(super) fn fills_zeros(&self, func: &Function) -> bool {
        fills_zeros(func, &func.insts[self.load])
    }

    /// The values from which the copy follows.
    pub(super) fn sources(&self, func: &Function) -> Vec<Value> {
        let data = &func.insts[self.load];
        match &self.bulk {
            Some(bulk) => bulk.begins.clone(),
            None => [0, 1, 2].into_iter().filter_map(|slot| data.operand_opt(slot)).collect(),
        }
    }

    /// The bytes that one thread can copy at a time: elements of which the mask lets pass none or the
    /// first ones, since a copy may fill the rest with zeros.
    pub(crate) fn copy_bytes(&self, func: &Function, infos: &AxisInfos) -> u32 {
        let data = &func.insts[self.load];
        let ptr = data.operand(0);
        let Some(tile) = func.ty(ptr).layout() else { return 0 };
        let (layout, bytes) = (&func.layouts[tile], self.elem.bytes());
        let Some((shared, _)) = layout.shared_access(&self.storage, bytes as usize) else {
            return 0;
        };
        let info = infos.get(func, ptr);
        let mask = data.operand_opt(1).map(|mask| infos.get(func, mask));
        let axes = 0..layout.rank();
        let elements = axes.map(|axis| {
            let aligned = (info.divisibility[axis] / i64::from(bytes)).max(1);
            let known = info.contiguity[axis].min(aligned);
            let known = mask.as_ref().map_or(known, |mask| known.min(mask.leading(axis)));
            let bits = layout.vector_bits(axis);
            let both = bits.iter().zip(&shared).take_while(|(global, shared)| global == shared);
            known.min(1 << both.count()) as u32
        });
        elements.max().unwrap_or(1) * bytes
    }

    /// The instructions that an early copy takes the place of.
    pub fn instructions(&self) -> impl Iterator<Item = Inst> + use<> {
        let buffered = self.buffered.as_ref().map(|buffered| [buffered.alloc, buffered.store]);
        std::iter::once(self.load).chain(buffered.into_iter().flatten())
    }

    /// Bytes of shared memory that `stages` stages take beyond what the load takes now.
    pub(crate) fn added_bytes(&self, stages: u32) -> u32 {
        let one = self.shape.iter().product::<u32>() * self.elem.bytes();
        one * (stages - u32::from(self.buffered.is_some()))
    }

    /// Whether products of warp groups read the load's buffer; others are turned first, and take
    /// the more room.
    pub(crate) fn feeds_warp_groups(&self, func: &Function, body: Region) -> bool {
        let Some(Buffered { alloc, .. }) = self.buffered else { return false };
        let buffer = func.insts[alloc].result();
        func.walk_from(body).into_iter().any(|inst| {
            let data = &func.insts[inst];
            let reads = |value| func.allocation(value) == buffer;
            data.opcode == Opcode::WarpGroupMma && data.uses().any(reads)
        })
    }
}

/// Where each thread keeps its elements side by side and lanes follow each other, so that a warp
/// reads and writes all banks; `None` for layouts that are no permutation of the tile.
fn thread_storage(layout: &LinearLayout, elem: Elem) -> Option<LinearLayout> {
    let registers = layout.bases(Dim::Register);
    let vector = (MOST_COPY_BYTES / elem.bytes()).max(1).ilog2() as usize;
    let (near, far) = registers.split_at(vector.min(registers.len()));
    let bases = [near, layout.bases(Dim::Lane), layout.bases(Dim::Warp), far].concat();
    let bases: Vec<u64> = bases.into_iter().filter(|&basis| basis != 0).collect();
    let outputs: Vec<(Dim, u32)> = layout.outputs().iter().map(|out| (out.dim, out.bits)).collect();
    let storage = LinearLayout::new(&[(Dim::Offset, bases.len() as u32)], &outputs, bases).ok()?;
    (storage.is_injective() && storage.is_surjective()).then_some(storage)
}

/// The layout in which a tile is used, if it would go there through shared memory.
fn exchanged(func: &Function, tile: Value) -> Option<&LinearLayout> {
    func.walk().into_iter().find_map(|inst| {
        let data = &func.insts[inst];
        let converts = data.opcode == Opcode::ConvertLayout && data.operand(0) == tile;
        let through_memory = converts && shared::exchanges(func, data);
        through_memory
            .then(|| func.ty(data.result()).layout())
            .flatten()
            .map(|id| &func.layouts[id])
    })
}

/// `storage` with the vectors of each 128 bytes in another order, by what tells lanes of `reader` apart beyond them:
/// such lanes would find the same banks otherwise. What is copied in vectors goes to all banks as before. On an H200,
/// attention with a matrix for a mask takes 0.89 times as long so.
fn swizzled(storage: &LinearLayout, reader: &LinearLayout, elem: Elem) -> Option<LinearLayout> {
    /// Bytes of all banks.
    const ALL_BANKS: u32 = 128;
    let bits = |bytes: u32| (bytes / elem.bytes()).ilog2() as usize;
    let (vector, all) = (bits(MOST_COPY_BYTES), bits(ALL_BANKS));
    let offsets = reader.invert_and_compose(storage).ok()?;
    let beyond = |&basis: &u64| basis.is_power_of_two() && basis >> all != 0;
    let apart = offsets.bases(Dim::Lane).iter().copied().filter(beyond);
    let mut bases = storage.bases(Dim::Offset).to_vec();
    for (slot, lane) in (vector..all).zip(apart) {
        bases[lane.trailing_zeros() as usize] ^= bases[slot];
    }
    let outputs: Vec<(Dim, u32)> =
        storage.outputs().iter().map(|out| (out.dim, out.bits)).collect();
    let swizzled = LinearLayout::new(&[(Dim::Offset, bases.len() as u32)], &outputs, bases).ok()?;
    let conflicts = |storage: &LinearLayout| {
        let (_, access) = reader.shared_access(storage, elem.bytes() as usize)?;
        Some(access.conflict_degree())
    };
    (conflicts(&swizzled)? < conflicts(storage)?).then_some(swizzled)
}

/// The loads among the instructions of `body` that its products wait for: factors follow from
/// them. Of those that meet a product of a warp group on the way, such as the mask of scores, only
/// [tiles of some size](is_large): the others are hidden behind that product. On an
/// H200, attention whose scores are masked by bytes takes 0.81 times as long so.
pub(super) fn loads_of_operands(func: &Function, body: Region) -> FxHashSet<Inst> {
    let insts = &func.regions[body].insts;
    let products = insts.iter().filter(|&&inst| is_product(func, inst));
    products.flat_map(|&product| loads_of(func, insts, product)).collect()
}

/// The loads of a tile-level function of which pipelining will copy words ahead: each thread copies a word of its own
/// then, and reads those that it needs. On an H200, attention whose keys have hashes takes 0.82 times as long so as with
/// the words copied where they are used, all of them by a few lanes.
pub(super) fn loads_copied_ahead(func: &Function) -> FxHashSet<Inst> {
    let bodies = func.walk().into_iter().filter_map(|inst| {
        let data = &func.insts[inst];
        let Attrs::Loop(attrs) = &data.attrs else { return None };
        let stages = if attrs.stages == 0 { func.options.num_stages } else { attrs.stages };
        (data.opcode == Opcode::For && stages > 1).then(|| data.regions[0])
    });
    let loads = bodies.flat_map(|body| {
        let insts = &func.regions[body].insts;
        let products = insts.iter().filter(|&&inst| func.insts[inst].opcode == Opcode::Dot);
        products.flat_map(|&product| loads_of(func, insts, product)).collect::<Vec<_>>()
    });
    let takes_words = |load: &Inst| {
        let data = &func.insts[*load];
        let bits = func.ty(data.result()).elem().map_or(0, Elem::bits);
        bits >= LEAST_COPY_BYTES * 8 && fills_zeros(func, data) && is_large(func, *load)
    };
    loads.filter(takes_words).collect()
}

/// Whether what is masked off is zero.
fn fills_zeros(func: &Function, load: &InstData) -> bool {
    load.operand_opt(2).is_none_or(|other| func.constant_bits(other) == Some(0))
}

/// Whether each thread loads an element of its own or more.
fn is_large(func: &Function, load: Inst) -> bool {
    let threads = LANES * func.options.num_warps as usize;
    func.ty(func.insts[load].result()).numel() >= threads
}

fn is_product(func: &Function, inst: Inst) -> bool {
    func.insts[inst].opcode.is_gpu_product()
}

/// The loads among `insts` that the factors of `product` follow from and that it waits for.
fn loads_of(func: &Function, insts: &[Inst], product: Inst) -> Vec<Inst> {
    let mut waiting: Vec<Value> = func.insts[product].uses().take(3).collect();
    let (mut seen, mut loads, mut is_behind) = (FxHashSet::default(), Vec::new(), false);
    while let Some(value) = waiting.pop() {
        let ValueDef::Result(inst, _) = func.values[value].def else { continue };
        if !insts.contains(&inst) || !seen.insert(value) {
            continue;
        }
        let data = &func.insts[inst];
        match data.opcode {
            Opcode::WarpGroupMma => is_behind = true,
            Opcode::Load => loads.push(inst),
            Opcode::LocalAlloc => waiting.extend(stored_in(func, insts, value)),
            _ => waiting.extend(data.uses()),
        }
    }
    loads.retain(|&load| !is_behind || is_large(func, load));
    loads
}

/// The tiles that `insts` put into `buffer`.
fn stored_in<'f>(
    func: &'f Function,
    insts: &'f [Inst],
    buffer: Value,
) -> impl Iterator<Item = Value> + 'f {
    let stores = insts.iter().map(|&inst| &func.insts[inst]);
    let stores = stores.filter(|data| data.opcode == Opcode::LocalStore);
    stores.filter(move |data| data.operand(0) == buffer).map(|data| data.operand(1))
}
