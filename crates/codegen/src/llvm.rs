//! GPU IR to LLVM IR text.
//!
//! A tile is as many LLVM values per thread as its layout has registers. Which element a register
//! holds is known up to the thread: a constant of the register, XOR a value computed once from the
//! thread number. So elementwise operations repeat one instruction per register, and only ranges,
//! memory accesses and exchanges look at layouts at all.

mod across;
mod arith;
mod async_copy;
mod atomic;
mod bulk_copy;
mod cast;
mod cluster;
mod code;
mod control;
mod convert;
mod crowded;
mod debug;
mod diagnose;
mod dot;
mod elementary;
mod exchange;
mod index;
mod lanes;
mod local;
mod math;
mod matrix_store;
mod memory;
mod scan;
mod shape;
mod sort;
mod steps;
mod text;
mod totals;
mod warp_group;
mod words;

use std::collections::BTreeSet;
use std::fmt::Write;

use rustc_hash::{FxHashMap, FxHashSet};
use tile_compiler::analysis::axis::AxisInfos;
use tile_compiler::artifact::TensorMap;
use tile_compiler::gpu::anew::is_loop_of_products;
use tile_compiler::gpu::shared::SharedPlan;
use tile_compiler::ir::{Attrs, Function, Inst, InstData, Opcode, Region, Type, Value, Verified};
use tile_compiler::layout::LinearLayout;

use self::elementary::Elementary;
use self::index::Origin;
use self::text::{Block, Text, Ty, Val};
use crate::{CodegenError, Target, line_map, tensor_maps};

/// The module of one kernel.
#[derive(Debug)]
pub(crate) struct Module {
    /// LLVM IR.
    pub(crate) text: String,
    /// Dynamic shared memory that the kernel needs, in bytes.
    pub(crate) shared_bytes: u32,
    /// Whether loops of products have addresses at known distances from others, see [`steps`].
    pub(crate) has_steps: bool,
    /// Whether loops of products stand before comparisons of many indices, see [`apart`](crate::apart).
    pub(crate) compares_behind: bool,
    /// A function of libdevice that is called, if any is.
    pub(crate) libdevice_function: Option<String>,
}

/// The symbol of dynamic shared memory.
const SHARED_SYMBOL: &str = "shared_memory";

/// Bytes to which dynamic shared memory is aligned; bulk copies ask for as much.
const SHARED_ALIGN: u32 = 1024;

/// Writes the module of `func`.
///
/// # Errors
/// When an operation or type is not supported on the target.
pub(crate) fn emit(func: Verified<'_>, target: Target) -> Result<Module, CodegenError> {
    let plan = SharedPlan::new(&func)?;
    let mut text = Text::default();
    let entry = text.add_block();
    let body = text.add_block();
    text.switch_to(body);
    let mut emitter = Emitter {
        infos: AxisInfos::of(&func),
        tensor_maps: tensor_maps::of(&func),
        func: func.function(),
        target,
        plan,
        text,
        entry,
        origin: Origin::new(entry),
        values: FxHashMap::default(),
        libdevice_function: None,
        elementary: BTreeSet::new(),
        clustered: FxHashSet::default(),
        unfenced: false,
        byte_pairs: FxHashMap::default(),
        crowded: FxHashSet::default(),
        stepping: FxHashSet::default(),
        has_steps: false,
        compares_behind: false,
        strings: Vec::new(),
    };
    emitter.crowded = emitter.crowded_exponentials();
    emitter.stepping = emitter.addresses_in_products();
    for (at, &arg) in func.regions[func.body].args.iter().enumerate() {
        emitter.values.insert(arg, vec![Val::Param(at as u32)]);
    }
    emitter.region(func.body)?;
    emitter.text.line(format_args!("ret void"));
    emitter.text.switch_to(entry);
    emitter.text.location = None;
    emitter.text.jump(body);
    Ok(emitter.finish())
}

/// State while one function is written.
struct Emitter<'f> {
    func: &'f Function,
    target: Target,
    infos: AxisInfos,
    /// Those that the kernel takes, in order.
    tensor_maps: Vec<TensorMap>,
    plan: SharedPlan,
    text: Text,
    /// The first block.
    entry: Block,
    /// Where what depends on the thread number alone is computed.
    origin: Origin,
    /// The registers of each value written so far.
    values: FxHashMap<Value, Vec<Val>>,
    libdevice_function: Option<String>,
    /// Functions that are called and defined in this module.
    elementary: BTreeSet<Elementary>,
    /// Loads that were read together with an earlier one.
    clustered: FxHashSet<Inst>,
    /// Whether threads may have written buffers since the last fence that shows it to the matrix
    /// units.
    unfenced: bool,
    /// 16-bit values by the low and the high byte, where one instruction made both.
    byte_pairs: FxHashMap<[Val; 2], Val>,
    /// Exponentials that have no predicates to themselves.
    crowded: FxHashSet<Value>,
    /// Addresses in loops of products.
    stepping: FxHashSet<Value>,
    /// Whether some of them were written by their distances.
    has_steps: bool,
    /// Whether many indices are compared behind some loop of products.
    compares_behind: bool,
    /// Definitions of string constants.
    strings: Vec<String>,
}

type Emitted = Result<(), CodegenError>;

impl<'f> Emitter<'f> {
    fn region(&mut self, region: Region) -> Emitted {
        let outer = self.origin.clone();
        let insts = &self.func.regions[region].insts;
        for (at, &inst) in insts.iter().enumerate() {
            let opcode = self.func.insts[inst].opcode;
            if !opcode.is_terminator() {
                self.inst(inst)?;
            }
            if is_loop_of_products(self.func, inst) {
                let is_own = self.origin.prelude != outer.prelude;
                self.renew_origin(is_own);
                self.compares_behind |= self.compare_many(&insts[at + 1..]);
            }
            self.unfenced |= self.leaves_unfenced(inst);
        }
        if self.origin.prelude != outer.prelude {
            self.end_prelude();
            self.origin = outer;
        }
        Ok(())
    }

    fn inst(&mut self, inst: Inst) -> Emitted {
        let data = &self.func.insts[inst];
        let line = line_map::debug_line(self.func, data.loc);
        self.text.location = (line != 0).then_some(line);
        match data.opcode {
            Opcode::Constant
            | Opcode::ProgramId
            | Opcode::NumPrograms
            | Opcode::Arange
            | Opcode::Poison => self.leaf(data),
            Opcode::Splat
            | Opcode::Unsplat
            | Opcode::Broadcast
            | Opcode::ExpandDims
            | Opcode::Reshape
            | Opcode::Permute
            | Opcode::Join
            | Opcode::Split
            | Opcode::Cat
            | Opcode::AssertFacts => self.reshape(data),
            Opcode::Load => self.load(inst, data),
            Opcode::Store => self.store(data),
            Opcode::BulkStore => self.bulk_store(inst, data),
            Opcode::AtomicRmw | Opcode::AtomicCas => self.atomic(inst, data),
            Opcode::Reduce => self.reduce(inst, data),
            Opcode::ConvertLayout => self.convert(inst, data),
            Opcode::Mma | Opcode::MultiplyAdd => self.product(inst, data),
            Opcode::WarpGroupMma => self.start_warp_group(inst, data),
            Opcode::WarpGroupWait => self.wait_warp_group(data),
            Opcode::Scan => self.scan(inst, data),
            Opcode::Sort => self.sort(inst, data),
            Opcode::Gather => self.gather(inst, data),
            Opcode::Histogram => self.histogram(inst, data),
            Opcode::MapElements => self.map_elements(data),
            Opcode::InlineAsm => self.inline_asm(data),
            Opcode::LocalAlloc
            | Opcode::LocalStage
            | Opcode::LocalPermute
            | Opcode::LocalStore
            | Opcode::LocalLoad
            | Opcode::AsyncCopy
            | Opcode::AsyncCommit
            | Opcode::AsyncWait => self.buffer_op(inst, data),
            Opcode::TensorMap
            | Opcode::MbarrierInit
            | Opcode::MbarrierInvalidate
            | Opcode::MbarrierExpect
            | Opcode::BulkCopy
            | Opcode::MbarrierWait => self.bulk_op(inst, data),
            Opcode::DeviceAssert => self.device_assert(data),
            Opcode::DevicePrint => self.device_print(data),
            Opcode::For => self.fenced_loop(data, Self::counted_loop),
            Opcode::While => self.fenced_loop(data, Self::while_loop),
            Opcode::If => self.branch(data),
            Opcode::Barrier => {
                self.barrier();
                Ok(())
            }
            Opcode::Assume => {
                self.assume(data);
                Ok(())
            }
            _ => self.elementwise(data),
        }
    }

    /// The registers of an operand.
    fn operand(&self, data: &InstData, slot: usize) -> Vec<Val> {
        self.registers(data.operand(slot))
    }

    fn registers(&self, value: Value) -> Vec<Val> {
        self.values
            .get(&value)
            .cloned()
            .expect("invariant: the verifier has seen every operand defined before its use")
    }

    fn ty(&self, value: Value) -> &'f Type {
        self.func.ty(value)
    }

    /// The LLVM type of one register of `value`.
    fn register_ty(&self, value: Value) -> Result<Ty, CodegenError> {
        self.ty(value).elem().map(Ty::of).ok_or_else(|| CodegenError::Unsupported {
            what: format!("a value of type {}", self.ty(value)),
        })
    }

    fn layout(&self, value: Value) -> Option<&'f LinearLayout> {
        self.ty(value).layout().map(|id| &self.func.layouts[id])
    }

    /// How many registers of each thread hold `value`.
    fn register_count(&self, value: Value) -> usize {
        self.layout(value).map_or(1, LinearLayout::elements_per_thread)
    }

    fn set(&mut self, value: Value, registers: Vec<Val>) {
        debug_assert_eq!(registers.len(), self.register_count(value));
        self.values.insert(value, registers);
    }

    fn barrier(&mut self) {
        self.fence();
        self.text.declarations.insert("declare void @llvm.nvvm.barrier0()".to_owned());
        self.text.line(format_args!("call void @llvm.nvvm.barrier0()"));
    }

    /// Whether `inst` accesses shared memory so that those who do by themselves must be shown: the matrix
    /// units what threads write, the bulk copy engine what they are done with. Asynchronous copies need
    /// no fence: the units see what was waited for.
    fn leaves_unfenced(&self, inst: Inst) -> bool {
        let data = &self.func.insts[inst];
        let is_buffer = |value: Value| matches!(self.ty(value), Type::Buffer(_));
        let reads_or_exchanges = || {
            let reads =
                matches!(data.opcode, Opcode::LocalLoad | Opcode::Mma | Opcode::MultiplyAdd);
            reads && data.uses().any(is_buffer) || self.plan.scratch(inst).is_some()
        };
        data.opcode == Opcode::LocalStore || self.plan.has_bulk_copies() && reads_or_exchanges()
    }

    /// Shows the matrix units and the bulk copy engine, which access shared memory by themselves, what this
    /// thread has written; that of other threads is seen behind the next barrier.
    fn fence(&mut self) {
        if self.plan.has_async_proxy() && std::mem::take(&mut self.unfenced) {
            self.text.line(format_args!(
                "call void asm sideeffect \"fence.proxy.async.shared::cta;\", \"~{{memory}}\"()"
            ));
        }
    }

    fn assume(&mut self, data: &InstData) {
        let condition = self.operand(data, 0)[0];
        self.text.declarations.insert("declare void @llvm.assume(i1)".to_owned());
        self.text.line(format_args!("call void @llvm.assume(i1 {condition})"));
    }

    fn leaf(&mut self, data: &InstData) -> Emitted {
        let result = data.result();
        let ty = self.register_ty(result)?;
        let count = self.register_count(result);
        let registers = match (&data.attrs, data.opcode) {
            (Attrs::Constant(constant), _) => vec![Val::constant(ty, constant.bits); count],
            (Attrs::Axis(axis), opcode) => {
                let name = if opcode == Opcode::ProgramId { "ctaid" } else { "nctaid" };
                let letter = ["x", "y", "z"][axis.axis.min(2) as usize];
                let name = format!("llvm.nvvm.read.ptx.sreg.{name}.{letter}");
                vec![self.text.call(&name, Ty::Int(32), &[])]
            }
            (Attrs::Range(range), _) => self.arange(result, range.start),
            _ => vec![Val::Poison; count],
        };
        self.set(result, registers);
        Ok(())
    }

    fn finish(mut self) -> Module {
        let mut out = String::new();
        let definitions: Vec<String> = self
            .elementary
            .iter()
            .map(|&function| elementary::definition(function, &mut self.text.declarations))
            .collect();
        let shared_bytes = self.plan.bytes();
        let _ = writeln!(out, "target triple = \"nvptx64-nvidia-cuda\"");
        if shared_bytes > 0 {
            let _ = writeln!(
                out,
                "@{} = external addrspace(3) global [0 x i8], align {SHARED_ALIGN}",
                SHARED_SYMBOL
            );
        }
        for line in self.strings.iter().chain(&self.text.declarations) {
            let _ = writeln!(out, "{line}");
        }
        out.extend(definitions);
        self.write_function(&mut out);
        self.write_metadata(&mut out);
        let Emitter { has_steps, compares_behind, libdevice_function, .. } = self;
        Module { text: out, shared_bytes, has_steps, compares_behind, libdevice_function }
    }

    fn write_function(&self, out: &mut String) {
        let args = self.func.regions[self.func.body].args.iter().enumerate();
        let maps = (0..self.tensor_maps.len() as u32)
            .map(|at| format!("ptr byval([128 x i8]) align 64 {}", Val::TensorMap(at)));
        let params: Vec<String> = args
            .map(|(at, &arg)| {
                let ty = self.ty(arg).elem().map_or(Ty::Int(32), Ty::of);
                let divisibility = self.func.params[at].divisibility;
                let align = if ty == Ty::Ptr && divisibility > 1 {
                    format!(" align {}", 1 << divisibility.trailing_zeros())
                } else {
                    String::new()
                };
                format!("{ty}{align} {}", Val::Param(at as u32))
            })
            .chain(maps)
            .collect();
        let _ = writeln!(
            out,
            "define ptx_kernel void @{}({}) nounwind !dbg !{} {{",
            quoted(&self.func.name),
            params.join(", "),
            self.func.locs.len()
        );
        self.text.write_blocks(out);
        out.push_str("}\n");
    }
}

/// A name as LLVM IR spells any name.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace(['\\', '"'], "_"))
}
