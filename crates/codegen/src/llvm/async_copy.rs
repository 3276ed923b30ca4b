//! Asynchronous copies from global to shared memory.
//!
//! One instruction copies 4, 8 or 16 bytes, and may read fewer of them: the rest is zeros. So neighbors
//! of which a mask lets pass the first ones alone, as at the end of a row, are copied together.

use rustc_hash::FxHashSet;
use smallvec::{SmallVec, smallvec};
use tile_compiler::gpu::ASYNC_COPIES;
use tile_compiler::ir::{
    Attrs, Elem, InstData, IntCompare, IntPredicate, LoadHints, Opcode, Scalar, Value,
};

use super::index::runs;
use super::local::plain_access;
use super::memory::Words;
use super::text::{Ty, Val};
use super::{Emitted, Emitter};

/// The bytes of the smallest copy.
const LEAST_BYTES: usize = 4;

/// What one instruction copies.
struct Piece {
    /// The axis along which its elements are neighbors.
    axis: usize,
    registers: SmallVec<[usize; 16]>,
}

impl Piece {
    fn first(&self) -> usize {
        self.registers[0]
    }

    fn len(&self) -> usize {
        self.registers.len()
    }
}

/// How many neighbors of a piece a mask lets pass.
enum Passed {
    /// All where these hold, else none.
    All(SmallVec<[Val; 4]>),
    /// The first ones, so many; an `i32`.
    First(Val),
}

impl Emitter<'_> {
    /// Each thread copies its elements in pieces of 4, 8 or 16 bytes; smaller ones, and all where
    /// there are no asynchronous copies, are loaded and stored at once, which is early enough.
    pub(super) fn async_copy(&mut self, data: &InstData) -> Emitted {
        let Attrs::LoadHints(hints) = &data.attrs else { return Err(self.unsupported(data)) };
        let (ptr, buffer, mask) = (data.operand(0), data.operand(1), data.operand_opt(2));
        let ptrs = self.operand(data, 0);
        let start = self.operand(data, 1)[0];
        let (Some(layout), Some(elem)) = (self.layout(ptr), self.ty(buffer).elem()) else {
            return Err(self.unsupported(data));
        };
        let (stored, ty) = self.buffer_parts(buffer)?;
        let bytes = ty.bits().div_ceil(8) as usize;
        let offsets = layout.invert_and_compose(stored)?;
        let shared_bits = plain_access(layout, stored, offsets.clone(), bytes)?.vector_bits;
        let has_size = |piece: &Piece| bytes * piece.len() >= LEAST_BYTES;
        let mut pieces = self.pieces(data, &shared_bits, |axis| self.leading(mask, axis));
        let copies = self.target.arch.capability >= ASYNC_COPIES && pieces.iter().all(has_size);
        if !copies {
            pieces = self.pieces(data, &shared_bits, |axis| self.alike(mask, axis));
        }
        let (owner, line) = (self.owner(ptr), self.line_of(ptr));
        for piece in pieces {
            let register = piece.first();
            if !copies {
                let words = Words::new(bytes as u32 * 8, piece.len());
                let loaded = (words, line);
                let values = self.load_piece(loaded, (elem, ptrs[register]), mask, &piece, hints);
                self.store_vector(start, ty, &offsets, register as u32, &values);
                continue;
            }
            let bases = Self::thread_bases(&offsets, |basis| basis as u32);
            let constant = Self::register_offset(&offsets, register as u32);
            let place = self.buffer_place_and_rest(start, ty, &bases, constant);
            let passed = mask.map(|mask| self.passed(mask, &piece));
            let source = (ptrs[register], line);
            self.copy_piece(place, source, (bytes, piece.len()), passed, owner);
        }
        self.set(data.result(), vec![Val::Poison]);
        Ok(())
    }

    /// The registers that are copied together: neighbors in both memories, as many as `masked` says of
    /// an axis at most.
    fn pieces(
        &self,
        data: &InstData,
        shared_bits: &[u32],
        masked: impl Fn(usize) -> i64,
    ) -> Vec<Piece> {
        let (ptr, buffer) = (data.operand(0), data.operand(1));
        let (Some(layout), Some(elem)) = (self.layout(ptr), self.ty(buffer).elem()) else {
            return Vec::new();
        };
        let (axis, mut bits) = self.access_bits(ptr, layout, elem.bytes(), masked);
        let both = bits.iter().zip(shared_bits).take_while(|(global, shared)| global == shared);
        bits.truncate(both.count());
        runs(layout, &bits).into_iter().map(|registers| Piece { axis, registers }).collect()
    }

    fn load_piece(
        &mut self,
        (words, line): (Words, &str),
        (elem, ptr): (Elem, Val),
        mask: Option<Value>,
        piece: &Piece,
        hints: &LoadHints,
    ) -> Vec<Val> {
        let predicate = mask.map(|mask| self.registers(mask)[piece.first()]);
        let loaded = self.asm_load((words, line), ptr, predicate, None, hints);
        self.unpack(elem, words, &loaded)
    }

    /// How many elements of a piece `mask` lets pass, which are its first ones. What the piece shares
    /// with others, such as the part of a mask that follows from the column, is counted alike for all
    /// of them, so that it is done once.
    fn passed(&mut self, mask: Value, piece: &Piece) -> Passed {
        let values = self.registers(mask);
        let func = self.func;
        let data = func.def(mask);
        match data.map(|data| (data, data.opcode, &data.attrs)) {
            Some((_, Opcode::And, _)) if !self.is_one_part(mask, piece) => {
                let mut parts = Vec::new();
                self.conjuncts(mask, piece, &mut parts);
                parts.sort_by_key(|&part| self.differing(part, piece));
                let mut passed = self.passed(parts[0], piece);
                for &part in &parts[1..] {
                    let other = self.passed(part, piece);
                    passed = self.passed_by_both(passed, other);
                }
                passed
            }
            _ if self.is_alike(mask, piece) => Passed::All(smallvec![values[piece.first()]]),
            Some((data, Opcode::Broadcast, _)) => match self.broadcast_registers(data) {
                Some(from) => {
                    let registers = piece.registers.iter().map(|&at| from[at]).collect();
                    self.passed(data.operand(0), &Piece { registers, ..*piece })
                }
                None => self.counted(&values, piece),
            },
            Some((data, Opcode::Cmp, Attrs::IntCompare(compare))) if is_below(compare) => {
                self.below(data, piece).unwrap_or_else(|| self.counted(&values, piece))
            }
            _ => self.counted(&values, piece),
        }
    }

    /// What `mask` joins.
    fn conjuncts(&self, mask: Value, piece: &Piece, parts: &mut Vec<Value>) {
        let data = self.func.def(mask).filter(|_| !self.is_one_part(mask, piece));
        match data {
            Some(data) => (0..2).for_each(|slot| self.conjuncts(data.operand(slot), piece, parts)),
            None => parts.push(mask),
        }
    }

    /// Whether `mask` joins nothing, or nothing that is alike for the whole piece as the mask is.
    fn is_one_part(&self, mask: Value, piece: &Piece) -> bool {
        let data = self.func.def(mask).filter(|data| data.opcode == Opcode::And);
        data.is_none_or(|data| {
            let are_alike = data.uses().all(|part| self.is_alike(part, piece));
            self.is_alike(mask, piece) && !are_alike
        })
    }

    /// Whether `mask` lets pass all of a piece or nothing.
    fn is_alike(&self, mask: Value, piece: &Piece) -> bool {
        self.alike(Some(mask), piece.axis) >= piece.len() as i64
    }

    /// How many values of a part there are for all pieces: what few of them share comes first, so that it
    /// is done once.
    fn differing(&self, part: Value, piece: &Piece) -> usize {
        if !self.is_alike(part, piece) {
            return 0;
        }
        let within = piece.registers.iter().fold(0, |bits, at| bits | at ^ piece.first());
        let registers = self.registers(part).into_iter().enumerate();
        let of_pieces = registers.filter(|(at, _)| (at ^ piece.first()) & within == 0);
        of_pieces.map(|(_, value)| value).collect::<FxHashSet<_>>().len()
    }

    fn passed_by_both(&mut self, a: Passed, b: Passed) -> Passed {
        let i32 = Ty::Int(32);
        match (a, b) {
            (Passed::All(mut a), Passed::All(b)) => {
                a.extend(b);
                Passed::All(a)
            }
            (Passed::All(hold), Passed::First(count))
            | (Passed::First(count), Passed::All(hold)) => {
                let select = |count, holds| self.text.select(holds, i32, count, Val::Int(0));
                Passed::First(hold.into_iter().fold(count, select))
            }
            (Passed::First(a), Passed::First(b)) => {
                Passed::First(self.text.call("llvm.smin.i32", i32, &[(i32, a), (i32, b)]))
            }
        }
    }

    /// How many of the numbers that count up from the piece's first are below a bound.
    fn below(&mut self, data: &InstData, piece: &Piece) -> Option<Passed> {
        let [numbers, bound] = [0, 1].map(|slot| data.operand(slot));
        let scalar = self.ty(numbers).number()?;
        let ty = Ty::Int(scalar.bits());
        let count = piece.len() as i64;
        let runs = self.infos.get(self.func, numbers).contiguity[piece.axis];
        let is_known = runs.min(self.alike(Some(bound), piece.axis)) >= count;
        if !matches!(scalar, Scalar::I32 | Scalar::I64) || !is_known {
            return None;
        }
        let first = self.registers(numbers)[piece.first()];
        let bound = self.registers(bound)[piece.first()];
        let clamp = |this: &mut Self, op: &str, value: Val, limit: i64| {
            this.text.call(&format!("llvm.{op}.{ty}"), ty, &[(ty, value), (ty, Val::Int(limit))])
        };
        let name = format!("llvm.ssub.sat.{ty}");
        let distance = self.text.call(&name, ty, &[(ty, bound), (ty, first)]);
        let natural = clamp(self, "smax", distance, 0);
        let passed = clamp(self, "smin", natural, count);
        Some(Passed::First(self.text.cast("trunc", ty, passed, Ty::Int(32))))
    }

    /// The number of truth values of a piece that hold.
    fn counted(&mut self, values: &[Val], piece: &Piece) -> Passed {
        let i32 = Ty::Int(32);
        let numbers: Vec<Val> = piece
            .registers
            .iter()
            .map(|&at| self.text.cast("zext", Ty::Int(1), values[at], i32))
            .collect();
        let sum = numbers.into_iter().reduce(|sum, one| self.text.binary("add", i32, sum, one));
        Passed::First(sum.unwrap_or(Val::Int(0)))
    }

    /// One `cp.async` of `len` elements of `bytes` that reads those that are `passed`, and writes zeros for
    /// the others. Threads that do not own what they hold leave it to the one that does.
    fn copy_piece(
        &mut self,
        (place, rest): (Val, u32),
        (ptr, line): (Val, &str),
        (bytes, len): (usize, usize),
        passed: Option<Passed>,
        owner: Option<Val>,
    ) {
        let size = bytes * len;
        // Whole vectors need not pass through the first-level cache.
        let level = if size == 16 { "cg" } else { "ca" };
        let mut copy = format!("cp.async.{level}.shared.global{line} [$0+{rest}], [$1], {size}");
        let mut operands = vec![("r", "ptr addrspace(3)", place), ("l", "ptr addrspace(1)", ptr)];
        let mut joins = String::new();
        match passed {
            // The instruction takes a truth value as well; of a number of bytes the assembler makes one.
            // They are joined here: LLVM would join first what the loop does not change, copy by copy.
            Some(Passed::All(hold)) => {
                joins.push_str(".reg .pred p; ");
                for (at, holds) in hold.into_iter().enumerate() {
                    let number = operands.len();
                    joins.push_str(&match at {
                        0 => format!("mov.pred p, ${number}; "),
                        _ => format!("and.pred p, p, ${number}; "),
                    });
                    operands.push(("b", "i1", holds));
                }
                joins.push_str("not.pred p, p; ");
                copy.push_str(", p");
            }
            Some(Passed::First(count)) => {
                let bytes = Val::Int(bytes as i64);
                let read = self.text.binary("mul nuw nsw", Ty::Int(32), count, bytes);
                copy.push_str(&format!(", ${}", operands.len()));
                operands.push(("r", "i32", read));
            }
            None => {}
        }
        if let Some(owner) = owner {
            copy = format!("@${} {copy}", operands.len());
            operands.push(("b", "i1", owner));
        }
        let asm =
            if joins.is_empty() { format!("{copy};") } else { format!("{{ {joins}{copy}; }}") };
        let constraints: String = operands.iter().map(|(kind, ..)| format!("{kind},")).collect();
        let args: Vec<_> = operands.iter().map(|(_, ty, value)| format!("{ty} {value}")).collect();
        self.text.line(format_args!(
            "call void asm sideeffect \"{asm}\", \"{constraints}~{{memory}}\"({})",
            args.join(", ")
        ));
    }
}

/// Whether a comparison holds for the numbers below a bound.
fn is_below(compare: &IntCompare) -> bool {
    compare.predicate == IntPredicate::Slt
}
