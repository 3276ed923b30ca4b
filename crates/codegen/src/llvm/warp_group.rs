//! Matrix products of warp groups (`wgmma`), which read their operands from shared memory.
//!
//! A product is one group of asynchronous instructions, each 64 rows by up to 256 columns by 32
//! bytes along K. An operand in a buffer is named by a descriptor: where it starts, how its blocks of
//! eight rows follow each other, and its swizzle (PTX manual, "Matrix Descriptor Format"). The
//! buffer's layout is that of [`NvmmaSharedLayout`]; instructions within it differ in where they
//! start alone.

use std::fmt::Write;

use rustc_hash::FxHashMap;
use tile_compiler::ir::{Attrs, Inst, InstData, Opcode, Scalar, Type, Value};
use tile_compiler::layout::{Dim, LinearLayout, MmaLayout, MmaVersion, NvmmaSharedLayout};

use super::dot::{
    Fragments, Place, Sums, factor_format, foreign_layout, matrix_place, registers_by_place,
};
use super::text::{Ty, Val};
use super::{Emitted, Emitter, SHARED_SYMBOL};
use crate::CodegenError;

/// Rows that a warp has in one instruction.
const ROWS: u32 = 16;
/// Bits of the warp number within a group.
const WARP_BITS: usize = 2;
/// Bits of the lane in the thread number.
const LANE_BITS: usize = 5;
/// The most registers that one statement of inline assembly passes through.
const MAX_PASSED: usize = 128;

/// An operand of the instructions.
enum Side {
    /// Fragments in registers, of the left operand alone.
    Registers(Fragments),
    Buffer(Box<Matrix>),
}

/// A matrix in shared memory.
struct Matrix {
    /// The descriptor of its start.
    descriptor: Val,
    /// From the registers that would hold the operand to element offsets.
    offsets: LinearLayout,
    /// These registers by the constant part of their coordinates.
    registers: FxHashMap<Place, usize>,
    /// Bytes of an element.
    bytes: u32,
    /// Whether the rows of the storage run along K, instead of across.
    k_is_row: bool,
}

/// The instructions of one block of a product.
#[derive(Clone, Copy)]
struct Along {
    /// The extent of K.
    depth: u32,
    /// How much of it one instruction takes.
    step: u32,
    /// Whether the first ignores what the sums were: the assembler finds them to be 0 where that
    /// stands close by, and else sets them to 0 one by one.
    from_zero: bool,
}

impl Emitter<'_> {
    /// Starts a product.
    pub(super) fn start_warp_group(&mut self, inst: Inst, data: &InstData) -> Emitted {
        if self.plan.needs_barrier(inst) {
            self.barrier();
        }
        let Some(layout) = self.layout(data.result()) else { return Err(self.unsupported(data)) };
        let shape = layout.shape();
        let instruction = MmaLayout::v3_for([shape[0], shape[1]], self.warps())?;
        let MmaVersion::V3 { columns } = instruction.version else { return Err(foreign_layout()) };
        let (lhs, rhs) = (data.operand(0), data.operand(1));
        let number = |value: Value| self.ty(value).number().ok_or_else(foreign_layout);
        let factors = [number(lhs)?, number(rhs)?];
        let scalar = factors[0];
        let k_width = 32 / scalar.bits() as usize;
        let depth = self.ty(lhs).shape()[1];
        let left = layout.mma_operand(0, k_width, depth as usize)?;
        let right = layout.mma_operand(1, k_width, depth as usize)?;
        let mut left = match self.ty(lhs) {
            Type::Buffer(_) => Side::Buffer(Box::new(self.matrix(lhs, &left, 1)?)),
            _ => Side::Registers(self.fragments(data, 0, &left)?),
        };
        let right = self.matrix(rhs, &right, 0)?;
        let mut sums = Sums::of(layout, self.operand(data, 2));
        let step = 8 * k_width as u32;
        let from_zero = self.func.constant_bits(data.operand(2)) == Some(0);
        for corner in sums.places() {
            let (row, column) = matrix_place(&corner);
            if row % ROWS == 0 && (column as usize).is_multiple_of(columns) {
                let at = (row, column, columns as u32);
                let k = Along { depth, step, from_zero };
                self.instructions(factors, at, k, &mut left, &right, &mut sums)?;
            }
        }
        self.text.line(format_args!(
            "call void asm sideeffect \"wgmma.commit_group.sync.aligned;\", \"\"() convergent"
        ));
        let registers = sums.registers_of(layout);
        self.set(data.result(), registers);
        Ok(())
    }

    fn warps(&self) -> usize {
        self.func.options.num_warps as usize
    }

    /// The matrix in `buffer`, whose elements registers in `reader` would hold; K is along `k_axis`.
    fn matrix(
        &mut self,
        buffer: Value,
        reader: &LinearLayout,
        k_axis: usize,
    ) -> Result<Matrix, CodegenError> {
        let Type::Buffer(ty) = self.ty(buffer) else { return Err(foreign_layout()) };
        let stored = &self.func.layouts[ty.layout];
        let (shape, bits) = (stored.shape(), ty.elem.bits() as usize);
        let storage = NvmmaSharedLayout::of(stored, &shape, bits).ok_or_else(foreign_layout)?;
        let contiguous = usize::from(!storage.transposed);
        let k_is_row = contiguous != k_axis;
        let rows = shape[1 - contiguous];
        let offsets = reader.invert_and_compose(stored)?;
        let bytes = ty.elem.bits() / 8;
        // Groups of warps start at different places; lanes and the warps of a group do not.
        let mut bases = vec![0; LANE_BITS];
        for (bit, &basis) in offsets.bases(Dim::Warp).iter().enumerate() {
            bases.push(if bit < WARP_BITS { 0 } else { basis as u32 * bytes });
        }
        let part = self.group_index(&bases);
        let start = self.registers(buffer)[0];
        let int = Ty::Int(32);
        let symbol =
            self.text.op(format_args!("ptrtoint ptr addrspace(3) @{SHARED_SYMBOL} to i32"));
        let address = self.text.binary("add", int, symbol, start);
        let address = self.text.binary("add", int, address, part);
        let address = self.text.binary("and", int, address, Val::Int(ADDRESS_MASK));
        let address = self.text.binary("lshr", int, address, Val::Int(UNIT_BITS));
        let address = self.text.cast("zext", int, address, Ty::Int(64));
        let mode = descriptor_mode(storage, k_is_row.then_some(rows));
        let descriptor = self.text.binary("or disjoint", Ty::Int(64), address, Val::Int(mode));
        let registers = registers_by_place(reader);
        Ok(Matrix { descriptor, offsets, registers, bytes, k_is_row })
    }

    /// As [`thread_index`](Self::thread_index), for what is equal in all lanes: it goes through a
    /// shuffle, so that the assembler sees that it is.
    fn group_index(&mut self, bases: &[u32]) -> Val {
        let part = self.thread_index(bases);
        if part == Val::Int(0) {
            return part;
        }
        if let Some(&known) = self.origin.group_indices.get(bases) {
            return known;
        }
        let int = Ty::Int(32);
        let value = self.in_prelude(|this| {
            let args = [(int, Val::Int(-1)), (int, part), (int, Val::Int(0)), (int, Val::Int(31))];
            this.text.call("llvm.nvvm.shfl.sync.idx.i32", int, &args)
        });
        self.origin.group_indices.insert(bases.to_vec(), value);
        value
    }

    /// The descriptor of the part of a matrix that starts at a place.
    fn descriptor(&mut self, matrix: &Matrix, place: [u32; 2]) -> Result<Val, CodegenError> {
        let register = matrix.registers.get(&place[..]).copied().ok_or_else(foreign_layout)?;
        let input = matrix.offsets.pack_input(&[(Dim::Register, register)]);
        let distance = matrix.offsets.apply_packed(input) as u32 * matrix.bytes;
        let units = Val::Int(i64::from(distance >> UNIT_BITS));
        Ok(self.text.binary("add", Ty::Int(64), matrix.descriptor, units))
    }

    /// The instructions along K for one block of the result.
    fn instructions(
        &mut self,
        factors: [Scalar; 2],
        (row, column, columns): (u32, u32, u32),
        along: Along,
        left: &mut Side,
        right: &Matrix,
        sums: &mut Sums,
    ) -> Emitted {
        let mut registers = Vec::new();
        for at in (column..column + columns).step_by(8) {
            for (row, column) in [(row, at), (row, at + 1), (row + 8, at), (row + 8, at + 1)] {
                registers.push(sums.register(&[], row, column).ok_or_else(foreign_layout)?);
            }
        }
        let count = registers.len();
        let names = |from: usize, count: usize| {
            let names: Vec<String> = (from..from + count).map(|at| format!("${at}")).collect();
            format!("{{{}}}", names.join(", "))
        };
        let [format, right_format] = factors.map(factor_format);
        let sum = Sum::of(factors[0]);
        // Only 16-bit operands can have their rows along K, and only they say so.
        let is_free = factors[0].bits() == 16;
        let across = |matrix: &Matrix| match is_free {
            true => format!(", {}", u32::from(matrix.k_is_row)),
            false => String::new(),
        };
        let signs = if sum.ty == Ty::Float { ", 1, 1" } else { "" };
        let Along { depth, step, from_zero } = along;
        let mut asm = "{ .reg .pred p, n; setp.eq.u32 p, 0, 0; setp.ne.u32 n, 0, 0; \
                       wgmma.fence.sync.aligned;"
            .to_owned();
        let mut constraints = vec![sum.result.to_owned(); count];
        let mut args = Vec::new();
        for k in (0..depth).step_by(step as usize) {
            let _ = write!(
                asm,
                " wgmma.mma_async.sync.aligned.m64n{columns}k{step}.{}.{format}.{right_format} {}, ",
                sum.format,
                names(0, count)
            );
            let at = count + args.len();
            let modes = match left {
                Side::Registers(fragments) => {
                    let half = k + step / 2;
                    for (row, k) in [(row, k), (row + 8, k), (row, half), (row + 8, half)] {
                        let place = [row, k].into_iter().collect();
                        let word = self.word_at(fragments, factors[0], place, 1, step / 8)?;
                        args.push(format!("i32 {word}"));
                        constraints.push("r".to_owned());
                    }
                    let _ = write!(asm, "{}, ${}", names(at, 4), at + 4);
                    String::new()
                }
                Side::Buffer(matrix) => {
                    let descriptor = self.descriptor(matrix, [row, k])?;
                    args.push(format!("i64 {descriptor}"));
                    constraints.push("l".to_owned());
                    let _ = write!(asm, "${at}, ${}", at + 1);
                    across(matrix)
                }
            };
            let descriptor = self.descriptor(right, [k, column])?;
            args.push(format!("i64 {descriptor}"));
            constraints.push("l".to_owned());
            let adds = if from_zero && k == 0 { "n" } else { "p" };
            let _ = write!(asm, ", {adds}{signs}{modes}{};", across(right));
        }
        asm.push_str(" }");
        let before: Vec<Val> = registers.iter().map(|&at| sums.values[at]).collect();
        let after = self.pass_through(&asm, sum.ty, constraints, args, &before);
        for (at, value) in registers.into_iter().zip(after) {
            sums.values[at] = value;
        }
        Ok(())
    }

    /// Inline assembly that changes `values` in place; `constraints` are those of the results and
    /// of `args`.
    fn pass_through(
        &mut self,
        asm: &str,
        of: Ty,
        mut constraints: Vec<String>,
        mut args: Vec<String>,
        values: &[Val],
    ) -> Vec<Val> {
        let count = values.len();
        constraints.extend((0..count).map(|at| at.to_string()));
        constraints.push("~{memory}".to_owned());
        args.extend(values.iter().map(|value| format!("{of} {value}")));
        let ty = format!("{{ {} }}", vec![of.to_string(); count].join(", "));
        let result = self.text.op(format_args!(
            "call {ty} asm sideeffect \"{asm}\", \"{}\"({}) convergent nounwind",
            constraints.join(","),
            args.join(", ")
        ));
        (0..count)
            .map(|at| self.text.op(format_args!("extractvalue {ty} {result}, {at}")))
            .collect()
    }

    /// Waits for products. Their sums pass through the statement, so that nothing reads them
    /// before.
    pub(super) fn wait_warp_group(&mut self, data: &InstData) -> Emitted {
        let Attrs::Wait(wait) = &data.attrs else { return Err(self.unsupported(data)) };
        let Opcode::WarpGroupWait = data.opcode else { return Err(self.unsupported(data)) };
        let registers = self.operand(data, 0);
        let mut unique: Vec<Val> = Vec::with_capacity(registers.len());
        for &register in &registers {
            if !unique.contains(&register) {
                unique.push(register);
            }
        }
        let ty = self.register_ty(data.result())?;
        let result = if ty == Ty::Float { "=f" } else { "=r" };
        let mut asm = format!("wgmma.wait_group.sync.aligned {};", wait.pending);
        let mut passed = Vec::with_capacity(unique.len());
        for part in unique.chunks(MAX_PASSED) {
            let constraints = vec![result.to_owned(); part.len()];
            passed.extend(self.pass_through(&asm, ty, constraints, Vec::new(), part));
            asm.clear();
        }
        let place = |register: &Val| unique.iter().position(|known| known == register);
        let results = registers.iter().map(|register| place(register).map(|at| passed[at]));
        let results: Option<Vec<Val>> = results.collect();
        self.set(data.result(), results.ok_or_else(foreign_layout)?);
        Ok(())
    }
}

/// What products are summed in.
struct Sum {
    ty: Ty,
    /// Its name in instructions.
    format: &'static str,
    /// The constraint of a result.
    result: &'static str,
}

impl Sum {
    fn of(factor: Scalar) -> Sum {
        match factor {
            Scalar::I8 => Sum { ty: Ty::Int(32), format: "s32", result: "=r" },
            _ => Sum { ty: Ty::Float, format: "f32", result: "=f" },
        }
    }
}

/// Descriptors count in units of 16 bytes.
const UNIT_BITS: i64 = 4;
/// The part of a shared address that descriptors hold.
const ADDRESS_MASK: i64 = 0x3ffff;

/// Strides and swizzle of a descriptor. `rows` is the number of rows of the storage where K runs
/// along them; else blocks follow each other along the rows only.
fn descriptor_mode(storage: NvmmaSharedLayout, rows: Option<usize>) -> i64 {
    let units = |bytes: usize| (bytes >> UNIT_BITS) as i64;
    let leading = rows.map_or(1, |rows| units(storage.column_block_stride(rows)));
    let stride = units(storage.row_block_stride());
    let swizzle: i64 = match storage.swizzle_bytes {
        128 => 1,
        64 => 2,
        32 => 3,
        _ => 0,
    };
    leading << 16 | stride << 32 | swizzle << 62
}
