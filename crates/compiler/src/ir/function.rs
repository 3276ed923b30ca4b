//! A kernel as data: arenas of instructions, values and regions, and side tables.

use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::sync::Arc;

use cranelift_entity::{EntitySet, PrimaryMap, entity_impl};
use smallvec::SmallVec;

use super::{Attrs, Opcode, Type};
use crate::layout::LinearLayout;
use crate::source::{FileId, FileRange};

/// An SSA value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value(u32);
entity_impl!(Value, "%");

/// An instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Inst(u32);
entity_impl!(Inst, "inst");

/// A region: one block of instructions with arguments.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Region(u32);
entity_impl!(Region, "region");

/// A layout of the function's layout table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LayoutId(u32);
entity_impl!(LayoutId, "#");

/// A location of the function's location table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Loc(u32);
entity_impl!(Loc, "loc");

/// Operands in slot order; an absent optional operand is `None`.
pub type Operands = SmallVec<[Option<Value>; 4]>;

/// Operands of a load before those that name a tensor.
const LOAD_SLOTS: usize = 3;

/// One instruction.
#[derive(Debug, Clone)]
pub struct InstData {
    /// What it does.
    pub opcode: Opcode,
    /// Operands, one entry per slot, the last slot's values spread out when it takes many.
    pub operands: Operands,
    /// Attributes, of the kind that the table names.
    pub attrs: Attrs,
    /// Results, in order.
    pub results: SmallVec<[Value; 1]>,
    /// Regions, as many as the table says.
    pub regions: SmallVec<[Region; 2]>,
    /// Where in the source it comes from.
    pub loc: Loc,
}

impl InstData {
    /// The operand in `slot`, which the table says is always there.
    ///
    /// # Panics
    /// If the instruction was not verified and lacks it.
    pub fn operand(&self, slot: usize) -> Value {
        self.operand_opt(slot).expect("invariant: verified instructions have this operand")
    }

    /// Whether nothing changes by it but its results, which follow from its operands alone: by its opcode, or
    /// as its inline assembly is said to be.
    pub(crate) fn is_pure(&self) -> bool {
        self.opcode.is_pure() || matches!(&self.attrs, Attrs::InlineAsm(asm) if asm.pure)
    }

    /// The operand in `slot`, unless it is optional and absent.
    pub fn operand_opt(&self, slot: usize) -> Option<Value> {
        self.operands.get(slot).copied().flatten()
    }

    /// All operands that are present.
    pub fn uses(&self) -> impl Iterator<Item = Value> + '_ {
        self.operands.iter().copied().flatten()
    }

    /// The tensor that a load reads a box of, as the table says; empty for other loads.
    pub fn tensor(&self) -> &[Option<Value>] {
        self.operands.get(LOAD_SLOTS..).unwrap_or_default()
    }

    /// Has a load be one of pointers alone.
    pub(crate) fn forget_tensor(&mut self) {
        self.operands.truncate(LOAD_SLOTS);
    }

    /// The one result.
    ///
    /// # Panics
    /// If it has none.
    pub fn result(&self) -> Value {
        self.results[0]
    }
}

/// What defines a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ValueDef {
    /// The `n`-th result of an instruction.
    Result(Inst, u32),
    /// The `n`-th argument of a region; arguments of the body are the kernel's parameters.
    Argument(Region, u32),
}

/// One value.
#[derive(Debug, Clone)]
pub struct ValueData {
    /// Its type.
    pub ty: Type,
    /// What defines it.
    pub def: ValueDef,
    /// Name of the source variable first bound to it, for people who read the IR.
    pub name: Option<Arc<str>>,
}

/// One region.
#[derive(Debug, Clone, Default)]
pub struct RegionData {
    /// Arguments.
    pub args: SmallVec<[Value; 4]>,
    /// Instructions in order; the last one is a terminator.
    pub insts: Vec<Inst>,
}

/// A runtime parameter of the kernel, in launch order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Param {
    /// Name in the source; parts of tuples are `name.0`, `name.1`, and a descriptor's `name.base`,
    /// `name.shape.0`, `name.stride.0`.
    pub name: Arc<str>,
    /// Triton's signature spelling, such as `*fp16`, `i32`, `u64`.
    pub signature: Arc<str>,
    /// The address or number is a multiple of this; 1 when nothing is known.
    pub divisibility: u32,
}

impl Param {
    /// Whether it points to the tensor of a descriptor that a launch gives.
    pub(crate) fn is_base_of_descriptor(&self) -> bool {
        self.name.ends_with(".base")
    }
}

/// A place in the source, with the calls through which it was inlined.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LocData {
    /// The text.
    pub at: FileRange,
    /// Line, from 1; 0 when there is none.
    pub line: u32,
    /// Column in characters, from 1; 0 when there is none.
    pub col: u32,
    /// The function whose text this is.
    pub function: Arc<str>,
    /// The call that was replaced by this function's body; the user's own line is at the end of
    /// the chain.
    pub inlined_at: Option<Loc>,
}

/// The largest extent of a grid along each axis (CUDA C++ Programming Guide, table of technical
/// specifications per compute capability).
pub(crate) const MAX_GRID: [u32; 3] = [i32::MAX as u32, 65_535, 65_535];

/// Launch options that shape the code.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LaunchOptions {
    /// Warps per CTA, a power of two.
    pub num_warps: u32,
    /// Pipeline depth of loops that do not say otherwise.
    pub num_stages: u32,
    /// CTAs per cluster.
    pub num_ctas: u32,
    /// Register limit per thread, if one is set.
    pub max_registers: Option<u32>,
    /// Whether products and sums may be fused.
    pub fp_fusion: bool,
}

impl LaunchOptions {
    /// Why no kernel is compiled for them, a sentence; `None` when kernels are.
    pub fn fault(&self) -> Option<String> {
        let counts = [("num_warps", self.num_warps), ("num_ctas", self.num_ctas)];
        counts.into_iter().find_map(|(name, count)| no_power_of_two(name, count.into()))
    }
}

/// What is wrong with the number `count` of the option `name` if it is no power of two, a sentence.
pub(crate) fn no_power_of_two(name: &str, count: i128) -> Option<String> {
    let is_power = count > 0 && count & (count - 1) == 0;
    (!is_power).then(|| format!("`{name}` is a power of two, not {count}"))
}

impl Default for LaunchOptions {
    fn default() -> LaunchOptions {
        LaunchOptions {
            num_warps: 4,
            num_stages: 3,
            num_ctas: 1,
            max_registers: None,
            fp_fusion: true,
        }
    }
}

/// Which operations and types may occur.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Level {
    /// Tiles without layouts.
    Tile,
    /// Tiles with layouts, shared memory, asynchrony.
    Gpu,
}

/// One kernel under one specialization.
#[derive(Debug, Clone)]
pub struct Function {
    /// The kernel's name.
    pub name: Arc<str>,
    /// Level of the operations.
    pub level: Level,
    /// Launch options.
    pub options: LaunchOptions,
    /// Runtime parameters; the body's arguments correspond one to one.
    pub params: Vec<Param>,
    /// Instructions.
    pub insts: PrimaryMap<Inst, InstData>,
    /// Values.
    pub values: PrimaryMap<Value, ValueData>,
    /// Regions.
    pub regions: PrimaryMap<Region, RegionData>,
    /// Layouts; equal layouts have equal ids.
    pub layouts: PrimaryMap<LayoutId, LinearLayout>,
    /// Locations.
    pub locs: PrimaryMap<Loc, LocData>,
    /// Paths of the files that locations name, as debuggers and profilers are to see them.
    pub files: BTreeMap<FileId, Arc<str>>,
    /// The outermost region.
    pub body: Region,
}

impl Function {
    /// A kernel with an empty body and one unknown location, `loc0`.
    pub fn new(name: impl Into<Arc<str>>, level: Level, options: LaunchOptions) -> Function {
        let mut regions = PrimaryMap::new();
        let body = regions.push(RegionData::default());
        let mut locs = PrimaryMap::new();
        let name = name.into();
        locs.push(LocData {
            at: FileRange::default(),
            line: 0,
            col: 0,
            function: name.clone(),
            inlined_at: None,
        });
        Function {
            name,
            level,
            options,
            params: Vec::new(),
            insts: PrimaryMap::new(),
            values: PrimaryMap::new(),
            regions,
            layouts: PrimaryMap::new(),
            locs,
            files: BTreeMap::new(),
            body,
        }
    }

    /// Adds a parameter and the body argument for it.
    pub fn add_param(&mut self, param: Param, ty: Type) -> Value {
        let name = param.name.clone();
        self.params.push(param);
        let value = self.add_argument(self.body, ty);
        self.values[value].name = Some(name);
        value
    }

    /// Adds an argument to a region.
    pub fn add_argument(&mut self, region: Region, ty: Type) -> Value {
        let index = self.regions[region].args.len() as u32;
        let def = ValueDef::Argument(region, index);
        let value = self.values.push(ValueData { ty, def, name: None });
        self.regions[region].args.push(value);
        value
    }

    /// Type of a value.
    pub fn ty(&self, value: Value) -> &Type {
        &self.values[value].ty
    }

    /// The instruction that defines a value, unless it is an argument.
    pub fn def(&self, value: Value) -> Option<&InstData> {
        match self.values[value].def {
            ValueDef::Result(inst, _) => Some(&self.insts[inst]),
            ValueDef::Argument(..) => None,
        }
    }

    /// The values that `value` is computed from, and itself.
    pub fn computing(&self, value: Value) -> FxHashSet<Value> {
        let mut found = FxHashSet::default();
        let mut pending = vec![value];
        while let Some(value) = pending.pop() {
            if found.insert(value)
                && let Some(data) = self.def(value)
            {
                pending.extend(data.uses());
            }
        }
        found
    }

    /// The allocation that the shared-memory buffer `buffer` is, or is a stage or view of.
    pub fn allocation(&self, buffer: Value) -> Value {
        match self.def(buffer) {
            Some(data) if matches!(data.opcode, Opcode::LocalStage | Opcode::LocalPermute) => {
                self.allocation(data.operand(0))
            }
            _ => buffer,
        }
    }

    /// The id of `layout` in this function's table.
    pub(crate) fn intern_layout(&mut self, layout: LinearLayout) -> LayoutId {
        let known = self.layouts.iter().find(|(_, known)| **known == layout).map(|(id, _)| id);
        known.unwrap_or_else(|| self.layouts.push(layout))
    }

    /// The terminator of a region, if it has one.
    pub fn terminator(&self, region: Region) -> Option<&InstData> {
        let last = *self.regions[region].insts.last()?;
        Some(&self.insts[last]).filter(|inst| inst.opcode.is_terminator())
    }

    /// The operation that a region applies to its two arguments, if that is all that it does.
    pub fn combination(&self, region: Region) -> Option<&InstData> {
        let data = &self.regions[region];
        let &[inst, _] = data.insts.as_slice() else { return None };
        let (inst, end) = (&self.insts[inst], self.terminator(region)?);
        let on_arguments = data.args.len() == 2 && inst.uses().eq(data.args.iter().copied());
        (on_arguments && end.uses().eq(inst.results.iter().copied())).then_some(inst)
    }

    /// Every instruction in program order, outer before inner.
    pub fn walk(&self) -> Vec<Inst> {
        self.walk_from(self.body)
    }

    /// `inst` and every instruction in its regions, in program order.
    pub fn walk_inst(&self, inst: Inst) -> Vec<Inst> {
        let mut order = vec![inst];
        for &inner in &self.insts[inst].regions {
            self.walk_region(inner, &mut order);
        }
        order
    }

    /// Whether `inst` or an instruction in its regions does something of a kind.
    pub(crate) fn any_within(&self, inst: Inst, kind: impl Fn(Opcode) -> bool) -> bool {
        self.walk_inst(inst).into_iter().any(|inst| kind(self.insts[inst].opcode))
    }

    /// Whether the loop `inst` reads the same place of memory in each trip, as one does that waits for another program.
    pub fn rereads(&self, inst: Inst) -> bool {
        let mut varying = EntitySet::with_capacity(self.values.len());
        self.walk_inst(inst).into_iter().any(|inner| {
            let data = &self.insts[inner];
            let reads = matches!(data.opcode, Opcode::Load | Opcode::AtomicRmw | Opcode::AtomicCas);
            let is_same = reads && !varying.contains(data.operand(0));
            let args = data.regions.iter().flat_map(|region| &self.regions[*region].args);
            varying.extend(args.copied());
            if reads || !data.regions.is_empty() || data.uses().any(|used| varying.contains(used)) {
                varying.extend(data.results.iter().copied());
            }
            is_same
        })
    }

    /// Every instruction of `region` and inside it, in program order, outer before inner.
    pub fn walk_from(&self, region: Region) -> Vec<Inst> {
        let mut order = Vec::new();
        self.walk_region(region, &mut order);
        order
    }

    fn walk_region(&self, region: Region, order: &mut Vec<Inst>) {
        for &inst in &self.regions[region].insts {
            order.push(inst);
            for &inner in &self.insts[inst].regions {
                self.walk_region(inner, order);
            }
        }
    }

    /// Where each instruction of `region` stands in it.
    pub fn positions(&self, region: Region) -> FxHashMap<Inst, usize> {
        self.regions[region].insts.iter().enumerate().map(|(at, &inst)| (inst, at)).collect()
    }

    /// What `region` and the regions in it define: arguments and results.
    pub(crate) fn defined_in(&self, region: Region) -> FxHashSet<Value> {
        let mut defined = FxHashSet::from_iter(self.regions[region].args.iter().copied());
        for inst in self.walk_from(region) {
            let data = &self.insts[inst];
            defined.extend(&data.results);
            defined.extend(data.regions.iter().flat_map(|&inner| &self.regions[inner].args));
        }
        defined
    }

    /// The bits of a constant value, scalar or splat over a tile.
    pub fn constant_bits(&self, value: Value) -> Option<u64> {
        let inst = self.def(value)?;
        match (&inst.attrs, inst.opcode) {
            (Attrs::Constant(constant), Opcode::Constant) => Some(constant.bits),
            (_, Opcode::Splat | Opcode::Broadcast | Opcode::Reshape | Opcode::ExpandDims) => {
                self.constant_bits(inst.operand(0))
            }
            _ => None,
        }
    }

    /// The calls through which `loc` was inlined and itself: the kernel's own line first. Empty
    /// for the unknown location.
    pub fn frames(&self, loc: Loc) -> Vec<Loc> {
        let mut frames = Vec::new();
        let mut next = Some(loc);
        while let Some(loc) = next {
            if self.locs[loc].line != 0 {
                frames.push(loc);
            }
            next = self.locs[loc].inlined_at;
        }
        frames.reverse();
        frames
    }

    /// The user's own line for `loc`: the outermost call of the inlining chain.
    pub fn user_loc(&self, loc: Loc) -> Loc {
        match self.locs[loc].inlined_at {
            Some(call) => self.user_loc(call),
            None => loc,
        }
    }
}
