//! From tile IR to the executor's steps.

mod control;
mod regions;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use thiserror::Error;
use tile_compiler::ir::{
    Attrs, DotPrecision, Elem, Function, Inst, InstData, Level, Loc, Opcode, Region, Scalar,
    ScaledFormat, Value, verify,
};

use super::access::{Atomic, Load, Store};
use super::collective;
use super::dot::{Dot, Operand, Scaled};
use super::effects;
use super::extern_math;
use super::finding::{FunctionPlaces, Place};
use super::frame::Slot;
use super::lanes::{LaneOp, lane_fn, with_word};
use super::machine::Site;
use super::program::{Block, Step, Watch};
use super::shape::{self, Act, Along, Strided};
use super::sort;

/// Why a kernel cannot run on the CPU.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum CompileError {
    /// The IR is not at tile level or not well formed, which is a bug of the stage before.
    #[error("the kernel's IR cannot be executed: {0}")]
    Malformed(String),
    /// An operation has no meaning on the CPU.
    #[error("line {}: {what} cannot run on the CPU; run the kernel with `--device cuda:0`", .place.line)]
    Unsupported {
        /// What is used.
        what: String,
        /// The user's line.
        place: Place,
    },
}

/// A kernel in the executor's form.
#[derive(Debug)]
pub(super) struct Compiled {
    /// Steps that depend on nothing but the launch, run once by each worker.
    pub prologue: Block,
    /// Steps of each program.
    pub body: Block,
    /// Register of each parameter, with its type.
    pub params: Vec<(Slot, Elem)>,
    /// Sizes of the registers in bytes.
    pub sizes: Vec<usize>,
    pub places: FunctionPlaces,
    /// True when the kernel has atomics.
    pub atomics: bool,
    /// True when its programs do not ask for their position in the grid, so that all of them do
    /// the same.
    pub alike: bool,
}

pub(super) fn compile(func: &Function) -> Result<Compiled, CompileError> {
    if func.level != Level::Tile {
        return Err(CompileError::Malformed("it is at GPU level".to_owned()));
    }
    verify(func).map_err(|errors| {
        let text: Vec<String> = errors.iter().map(ToString::to_string).collect();
        CompileError::Malformed(text.join("; "))
    })?;
    let mut compiler = Compiler {
        func,
        slots: FxHashMap::default(),
        sizes: Vec::new(),
        free: FxHashMap::default(),
        pinned: FxHashSet::default(),
        lanes: 1,
    };
    let params = compiler.params();
    let mut prologue = Block::default();
    compiler.hoist(func.body, &mut prologue)?;
    let body = compiler.block(func.body)?;
    let places = FunctionPlaces::new(func);
    let is_atomic =
        |inst: Inst| matches!(func.insts[inst].opcode, Opcode::AtomicRmw | Opcode::AtomicCas);
    let atomics = func.walk().into_iter().any(is_atomic);
    let is_position =
        |inst: Inst| matches!(func.insts[inst].opcode, Opcode::ProgramId | Opcode::InlineAsm);
    let alike = !func.walk().into_iter().any(is_position);
    Ok(Compiled { prologue, body, params, sizes: compiler.sizes, places, atomics, alike })
}

struct Compiler<'f> {
    func: &'f Function,
    slots: FxHashMap<Value, Slot>,
    sizes: Vec<usize>,
    /// Registers whose values are dead, by their size in words.
    free: FxHashMap<usize, Vec<Slot>>,
    /// Values computed once per launch; their registers must keep them.
    pinned: FxHashSet<Value>,
    /// Elements that each scalar stands for in the region being compiled.
    lanes: usize,
}

type Compilation<T> = Result<T, CompileError>;

/// The number type whose storage holds an element: pointers are 64-bit integers.
fn storage(elem: Elem) -> Scalar {
    elem.scalar().unwrap_or(Scalar::I64)
}

impl<'f> Compiler<'f> {
    fn params(&mut self) -> Vec<(Slot, Elem)> {
        let args = self.func.regions[self.func.body].args.clone();
        args.into_iter()
            .map(|arg| {
                self.pinned.insert(arg);
                (self.slot(arg), self.elem(arg))
            })
            .collect()
    }

    fn elem(&self, value: Value) -> Elem {
        self.func.ty(value).elem().unwrap_or(Elem::Scalar(Scalar::I1))
    }

    fn scalar(&self, value: Value) -> Scalar {
        storage(self.elem(value))
    }

    fn numel(&self, value: Value) -> usize {
        self.func.ty(value).numel()
    }

    fn shape(&self, value: Value) -> &'f [u32] {
        self.func.ty(value).shape()
    }

    /// A register that holds nothing that is needed.
    fn fresh(&mut self, bytes: usize) -> Slot {
        // Exchanges between registers need equal sizes: those of one class stay together.
        if let Some(slot) = self.free.get_mut(&bytes.div_ceil(8)).and_then(Vec::pop) {
            return slot;
        }
        self.sizes.push(bytes);
        Slot(self.sizes.len() as u32 - 1)
    }

    /// Gives the register of a dead value to values to come: few registers stay in the cache.
    fn release(&mut self, value: Value) {
        if !self.pinned.contains(&value)
            && let Some(&slot) = self.slots.get(&value)
        {
            let words = self.sizes[slot.0 as usize].div_ceil(8);
            self.free.entry(words).or_default().push(slot);
        }
    }

    /// For each instruction of a region the results of the region's instructions that nothing
    /// uses after it. What the terminator passes on is used to the end.
    fn deaths(&self, region: Region) -> FxHashMap<Inst, Vec<Value>> {
        let mut last: FxHashMap<Value, Inst> = FxHashMap::default();
        for &inst in &self.func.regions[region].insts {
            let data = &self.func.insts[inst];
            let inner = self.func.walk_inst(inst).into_iter();
            for value in inner.flat_map(|at| self.func.insts[at].uses()) {
                if let Some(last) = last.get_mut(&value) {
                    *last = inst;
                }
            }
            last.extend(data.results.iter().map(|&result| (result, inst)));
            if data.opcode.is_terminator() {
                data.uses().for_each(|value| {
                    last.remove(&value);
                });
            }
        }
        let mut deaths: FxHashMap<Inst, Vec<Value>> = FxHashMap::default();
        for (value, inst) in last {
            deaths.entry(inst).or_default().push(value);
        }
        deaths.values_mut().for_each(|values| values.sort_unstable());
        deaths
    }

    /// The register of a value.
    fn slot(&mut self, value: Value) -> Slot {
        if let Some(&slot) = self.slots.get(&value) {
            return slot;
        }
        let size = self.scalar(value).bytes() as usize;
        let slot = self.fresh(self.numel(value) * self.lanes * size);
        self.slots.insert(value, slot);
        slot
    }

    fn slots(&mut self, values: impl IntoIterator<Item = Value>) -> Vec<Slot> {
        values.into_iter().map(|value| self.slot(value)).collect()
    }

    /// Compiles what depends only on the launch, in this region and in the loops and branches
    /// inside it, into `prologue`.
    fn hoist(&mut self, region: Region, prologue: &mut Block) -> Compilation<()> {
        for &inst in &self.func.regions[region].insts {
            let data = &self.func.insts[inst];
            let invariant = data.opcode.is_pure()
                && data.opcode != Opcode::ProgramId
                && data.uses().all(|value| self.pinned.contains(&value));
            if invariant {
                self.pinned.extend(data.results.iter().copied());
                self.inst(inst, &mut prologue.steps)?;
            }
            if matches!(data.opcode, Opcode::For | Opcode::While | Opcode::If) {
                for &inner in &data.regions {
                    self.hoist(inner, prologue)?;
                }
            }
        }
        Ok(())
    }

    fn block(&mut self, region: Region) -> Compilation<Block> {
        let mut block = Block::default();
        let deaths = self.deaths(region);
        for &inst in &self.func.regions[region].insts {
            let data = &self.func.insts[inst];
            let hoisted = data.opcode.is_pure()
                && data.results.iter().all(|result| self.pinned.contains(result));
            if !hoisted {
                self.inst(inst, &mut block.steps)?;
            }
            for &value in deaths.get(&inst).into_iter().flatten() {
                self.release(value);
            }
        }
        Ok(block)
    }

    fn site(&self, loc: Loc, value: Value) -> Site {
        let size = self.scalar(value).bytes() as usize;
        Site { loc, shape: self.shape(value).to_vec(), size }
    }

    fn unsupported<T>(&self, data: &InstData, what: impl Into<String>) -> Compilation<T> {
        let (place, _) = Place::of(self.func, data.loc);
        Err(CompileError::Unsupported { what: what.into(), place })
    }

    fn inst(&mut self, inst: Inst, steps: &mut Vec<Step>) -> Compilation<()> {
        let data = &self.func.insts[inst];
        let step = match data.opcode {
            Opcode::Yield | Opcode::Condition | Opcode::Return => return Ok(()),
            Opcode::Barrier | Opcode::Assume => return Ok(()),
            Opcode::For => Step::For(Box::new(self.counted_loop(data)?)),
            Opcode::While => Step::While(Box::new(self.while_loop(inst)?)),
            Opcode::If => Step::If(Box::new(self.branch(data)?)),
            _ => match self.lanes_step(data)? {
                Some(step) => step,
                None => {
                    let run = self.act(data)?;
                    Step::Act { run, watch: self.watch(data, false) }
                }
            },
        };
        steps.push(step);
        Ok(())
    }

    /// An operation on each element alone.
    fn lanes_step(&mut self, data: &InstData) -> Compilation<Option<Step>> {
        let (Some(&result), operands) = (data.results.first(), self.slots(data.uses())) else {
            return Ok(None);
        };
        let first = data.uses().next();
        let run = match (data.opcode, &data.attrs) {
            (Opcode::Constant, Attrs::Constant(constant)) => {
                Some(effects::constant(self.scalar(result), constant.bits))
            }
            (Opcode::Poison, _) => Some(effects::constant(self.scalar(result), 0)),
            (Opcode::ProgramId, Attrs::Axis(axis)) => Some(effects::program_id(axis.axis)),
            (Opcode::PtrAdd, _) => {
                let pointee = self.elem(data.operand(0)).pointee().map_or(1, pointee_bytes);
                let offsets = self.scalar(data.operand(1));
                Some(effects::ptr_add(operands[0], operands[1], offsets, pointee))
            }
            (Opcode::Extern, Attrs::Extern(external)) => {
                let types: Vec<Scalar> = data.uses().map(|value| self.scalar(value)).collect();
                let name = &*external.symbol.0;
                match extern_math::lane_fn(name, &operands, &types, self.scalar(result)) {
                    Some(run) => Some(run),
                    None => {
                        return self.unsupported(data, format!("the libdevice function `{name}`"));
                    }
                }
            }
            // A scalar condition of a tile's choice is not elementwise.
            (Opcode::Select, _) if self.shape(data.operand(0)) != self.shape(result) => None,
            _ => first.and_then(|first| {
                let from = match data.opcode {
                    Opcode::Select => self.scalar(result),
                    _ => self.scalar(first),
                };
                let to = self.scalar(result);
                let attrs = &data.attrs;
                lane_fn(&LaneOp { opcode: data.opcode, attrs, operands: &operands, from, to })
            }),
        };
        let Some(run) = run else { return Ok(None) };
        let (out, numel) = (self.slot(result), self.numel(result));
        Ok(Some(Step::Lanes { out, numel, run, watch: self.watch(data, true) }))
    }

    /// What to look at to find a NaN born here.
    fn watch(&mut self, data: &InstData, elementwise: bool) -> Option<Watch> {
        let &[result] = data.results.as_slice() else { return None };
        let moves_only = matches!(
            data.opcode,
            Opcode::Constant | Opcode::Poison | Opcode::Bitcast | Opcode::Select | Opcode::Load
        );
        if moves_only || !self.elem(result).is_float() {
            return None;
        }
        let inputs: SmallVec<_> = data
            .uses()
            .map(|value| (self.slot(value), self.scalar(value), self.numel(value)))
            .collect();
        let out = (self.slot(result), self.scalar(result), self.numel(result));
        Some(Watch { loc: data.loc, inputs, out, elementwise })
    }

    /// Operations that are not elementwise.
    fn act(&mut self, data: &InstData) -> Compilation<Act> {
        Ok(match data.opcode {
            Opcode::NumPrograms | Opcode::Arange => self.position(data),
            Opcode::Splat
            | Opcode::Unsplat
            | Opcode::Broadcast
            | Opcode::ExpandDims
            | Opcode::Reshape
            | Opcode::Permute
            | Opcode::Join
            | Opcode::Split
            | Opcode::Cat
            | Opcode::Gather
            | Opcode::Select => self.rearrange(data),
            Opcode::Load | Opcode::Store | Opcode::AtomicRmw | Opcode::AtomicCas => {
                self.access(data)
            }
            Opcode::Reduce | Opcode::Scan => return self.combine(data),
            Opcode::MapElements => return self.map_elements(data),
            Opcode::Dot | Opcode::DotScaled => self.dot(data),
            Opcode::Histogram | Opcode::Sort => return self.order(data),
            Opcode::DeviceAssert | Opcode::DevicePrint => self.effect(data),
            Opcode::InlineAsm => return self.unsupported(data, "inline PTX"),
            Opcode::ConvertLayout
            | Opcode::LocalAlloc
            | Opcode::LocalStage
            | Opcode::LocalPermute
            | Opcode::LocalStore
            | Opcode::LocalLoad
            | Opcode::AsyncCopy
            | Opcode::AsyncCommit
            | Opcode::AsyncWait
            | Opcode::TensorMap
            | Opcode::MbarrierInit
            | Opcode::MbarrierInvalidate
            | Opcode::MbarrierExpect
            | Opcode::BulkCopy
            | Opcode::BulkStore
            | Opcode::MbarrierWait
            | Opcode::Mma
            | Opcode::WarpGroupMma
            | Opcode::WarpGroupWait
            | Opcode::MultiplyAdd => {
                return self.unsupported(data, format!("the GPU operation `{}`", data.opcode));
            }
            // Elementwise and control operations are compiled before.
            opcode @ (Opcode::Constant
            | Opcode::ProgramId
            | Opcode::Poison
            | Opcode::Add
            | Opcode::Sub
            | Opcode::Mul
            | Opcode::DivS
            | Opcode::DivU
            | Opcode::RemS
            | Opcode::RemU
            | Opcode::MulHighU
            | Opcode::And
            | Opcode::Or
            | Opcode::Xor
            | Opcode::Shl
            | Opcode::ShrS
            | Opcode::ShrU
            | Opcode::MinS
            | Opcode::MaxS
            | Opcode::MinU
            | Opcode::MaxU
            | Opcode::AbsS
            | Opcode::FAdd
            | Opcode::FSub
            | Opcode::FMul
            | Opcode::FDiv
            | Opcode::FDivRn
            | Opcode::FRem
            | Opcode::FNeg
            | Opcode::FAbs
            | Opcode::FMin
            | Opcode::FMax
            | Opcode::Fma
            | Opcode::Exp
            | Opcode::Exp2
            | Opcode::Log
            | Opcode::Log2
            | Opcode::Sin
            | Opcode::Cos
            | Opcode::Sqrt
            | Opcode::SqrtRn
            | Opcode::Rsqrt
            | Opcode::Erf
            | Opcode::Floor
            | Opcode::Ceil
            | Opcode::Extern
            | Opcode::Cmp
            | Opcode::FCmp
            | Opcode::ExtS
            | Opcode::ExtU
            | Opcode::Trunc
            | Opcode::FExt
            | Opcode::FTrunc
            | Opcode::SToF
            | Opcode::UToF
            | Opcode::FToS
            | Opcode::FToU
            | Opcode::Bitcast
            | Opcode::IntToPtr
            | Opcode::PtrToInt
            | Opcode::PtrAdd
            | Opcode::AssertFacts
            | Opcode::For
            | Opcode::While
            | Opcode::If
            | Opcode::Yield
            | Opcode::Condition
            | Opcode::Return
            | Opcode::Assume
            | Opcode::Barrier) => {
                return Err(CompileError::Malformed(format!("`{opcode}` has unexpected operands")));
            }
        })
    }

    fn position(&mut self, data: &InstData) -> Act {
        let out = self.slot(data.result());
        match &data.attrs {
            Attrs::Range(range) => effects::arange(out, range.start, self.numel(data.result())),
            Attrs::Axis(axis) => effects::num_programs(out, axis.axis, self.lanes),
            _ => effects::nothing(),
        }
    }

    fn rearrange(&mut self, data: &InstData) -> Act {
        let results = self.slots(data.results.iter().copied());
        let from = data.operand(0);
        let (source, scalar) = (self.slot(from), self.scalar(from));
        let result = data.result();
        let (out, sizes) = (results[0], [self.numel(from), self.numel(result)]);
        let second = data.operand_opt(1).map(|value| self.slot(value));
        match (data.opcode, second, &data.attrs) {
            (Opcode::Select, Some(on_true), _) => {
                let on_false = self.slot(data.operand(2));
                with_word!(self.scalar(result), T => {
                    effects::select_tile::<T>(source, [on_true, on_false], out, sizes[1])
                })
            }
            (Opcode::Splat, ..) => {
                with_word!(scalar, T => shape::splat::<T>(source, out, sizes[1]))
            }
            (Opcode::Broadcast, ..) => {
                let view = Strided::broadcast(self.shape(from), self.shape(result));
                with_word!(scalar, T => shape::strided::<T>(source, out, sizes, view))
            }
            (Opcode::Permute, _, Attrs::Order(order)) => {
                let view = Strided::permute(self.shape(from), &order.order);
                with_word!(scalar, T => shape::strided::<T>(source, out, sizes, view))
            }
            (Opcode::Join, Some(rhs), _) => {
                with_word!(scalar, T => shape::join::<T>(source, rhs, out, sizes[0]))
            }
            (Opcode::Cat, Some(rhs), _) => {
                with_word!(scalar, T => shape::cat::<T>(source, rhs, out, sizes[0]))
            }
            (Opcode::Split, ..) => with_word!(scalar, T => {
                let low = shape::split::<T>(source, 0, results[0], sizes[1]);
                let high = shape::split::<T>(source, 1, results[1], sizes[1]);
                Box::new(move |frame, machine| {
                    low(frame, machine)?;
                    high(frame, machine)
                })
            }),
            (Opcode::Gather, Some(index), Attrs::Axis(axis)) => {
                let source_along = Along::new(self.shape(from), axis.axis);
                let target = Along::new(self.shape(result), axis.axis);
                let index_scalar = self.scalar(data.operand(1));
                with_word!(scalar, T => {
                    let slots = [source, index, out];
                    shape::gather::<T>(slots, index_scalar, source_along, target)
                })
            }
            // Unsplat, reshape, expand_dims: the same elements in the same order.
            _ => with_word!(scalar, T => shape::copy::<T>(source, out, sizes[0])),
        }
    }

    fn access(&mut self, data: &InstData) -> Act {
        let ptr = self.slot(data.operand(0));
        let optional =
            |compiler: &mut Self, at: usize| data.operand_opt(at).map(|value| compiler.slot(value));
        match (data.opcode, &data.attrs) {
            (Opcode::Load, _) => {
                let result = data.result();
                let load = Load {
                    site: self.site(data.loc, result),
                    ptr,
                    mask: optional(self, 1),
                    other: optional(self, 2),
                    out: self.slot(result),
                    numel: self.numel(result),
                    boolean: self.scalar(result) == Scalar::I1,
                };
                Box::new(move |frame, machine| load.run(frame, machine))
            }
            (Opcode::Store, _) => {
                let value = data.operand(1);
                let store = Store {
                    site: self.site(data.loc, value),
                    ptr,
                    value: self.slot(value),
                    mask: optional(self, 2),
                    numel: self.numel(value),
                    elem: self.elem(value),
                };
                Box::new(move |frame, machine| store.run(frame, machine))
            }
            (opcode, attrs) => {
                let swap = opcode == Opcode::AtomicCas;
                let result = data.result();
                let atomic = Atomic {
                    site: self.site(data.loc, result),
                    ptr,
                    value: self.slot(data.operand(if swap { 2 } else { 1 })),
                    mask: if swap { None } else { optional(self, 2) },
                    compare: if swap { optional(self, 1) } else { None },
                    out: self.slot(result),
                    numel: self.numel(result),
                    scalar: self.scalar(result),
                    op: match attrs {
                        Attrs::Atomic(atomic) => atomic.op,
                        _ => tile_compiler::ir::AtomicOp::Exchange,
                    },
                };
                Box::new(move |frame, machine| atomic.run(frame, machine))
            }
        }
    }

    fn dot(&mut self, data: &InstData) -> Act {
        let scaled = matches!(data.opcode, Opcode::DotScaled);
        let (rhs_at, acc_at) = if scaled { (2, 4) } else { (1, 2) };
        let [lhs, rhs, acc] = [0, rhs_at, acc_at].map(|at| data.operand(at));
        let result = data.result();
        let shape = self.shape(result);
        let rank = shape.len();
        let (m, n) = (shape[rank - 2] as usize, shape[rank - 1] as usize);
        let batch = shape[..rank - 2].iter().map(|&extent| extent as usize).product();
        let mut lhs_operand =
            Operand { slot: self.slot(lhs), scalar: self.scalar(lhs), scaled: None };
        let mut rhs_operand =
            Operand { slot: self.slot(rhs), scalar: self.scalar(rhs), scaled: None };
        let mut k = self.numel(lhs) / (batch * m);
        if let Attrs::DotScaled(attrs) = &data.attrs {
            let scale = |compiler: &mut Self, at: usize| {
                data.operand_opt(at).map(|value| {
                    (compiler.slot(value), compiler.scalar(value), compiler.numel(value))
                })
            };
            if attrs.lhs == ScaledFormat::E2M1 {
                k *= 2;
            }
            let half = [attrs.lhs, attrs.rhs].contains(&ScaledFormat::Fp16);
            let scaled = |format, scale, k_pack| Some(Scaled { format, half, scale, k_pack });
            lhs_operand.scaled = scaled(attrs.lhs, scale(self, 1), attrs.lhs_k_pack);
            rhs_operand.scaled = scaled(attrs.rhs, scale(self, 3), attrs.rhs_k_pack);
        }
        let dot = Dot {
            lhs: lhs_operand,
            rhs: rhs_operand,
            acc: self.slot(acc),
            out: self.slot(result),
            out_scalar: self.scalar(result),
            batch,
            m,
            n,
            k,
            precision: match &data.attrs {
                // Products that fill no instruction of the matrix units are multiply-adds.
                Attrs::Dot(dot) if m >= 16 && n >= 8 && k >= 8 => dot.precision,
                _ => DotPrecision::Ieee,
            },
        };
        Box::new(move |frame, _| {
            dot.run(frame);
            Ok(())
        })
    }

    fn order(&mut self, data: &InstData) -> Compilation<Act> {
        let (from, result) = (data.operand(0), data.result());
        let slots = [self.slot(from), self.slot(result)];
        let (scalar, count) = (self.scalar(from), self.numel(from));
        match &data.attrs {
            Attrs::Bins(bins) => {
                let mask = data.operand_opt(1).map(|value| self.slot(value));
                Ok(collective::histogram(slots, mask, scalar, (count, bins.bins as usize)))
            }
            Attrs::Sort(attrs) => {
                let extent = self.shape(from).last().map_or(1, |&extent| extent as usize);
                Ok(sort::sort(slots, scalar, (count, extent), attrs.clone()))
            }
            _ => self.unsupported(data, format!("`{}` without attributes", data.opcode)),
        }
    }

    fn effect(&mut self, data: &InstData) -> Act {
        let (text, hex) = match &data.attrs {
            Attrs::Message(message) => (message.text.0.to_string(), message.hex),
            _ => (String::new(), false),
        };
        if data.opcode == Opcode::DevicePrint {
            let args: Vec<effects::Printed> = data
                .uses()
                .map(|value| effects::Printed {
                    slot: self.slot(value),
                    elem: self.elem(value),
                    shape: self.shape(value).to_vec(),
                })
                .collect();
            return effects::print(text, args, hex);
        }
        let condition = data.operand(0);
        let mask = data.operand_opt(1).map(|value| self.slot(value));
        let site = self.site(data.loc, condition);
        let count = self.numel(condition);
        effects::assert(site, text, self.slot(condition), mask, count)
    }
}

fn pointee_bytes(elem: Elem) -> u64 {
    u64::from(storage(elem).bytes())
}
