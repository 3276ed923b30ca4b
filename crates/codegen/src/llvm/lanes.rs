//! Values across the lanes of a warp: moved by shuffles, combined by them or at once.

use tile_compiler::ir::{Opcode, Region};

use super::across::Tuple;
use super::text::{Ty, Val};
use super::{Emitted, Emitter};

/// The bits of a lane's number.
const ALL_LANES: u32 = 31;

/// Compute capability from which numbers of all lanes combine in one instruction.
const REDUX: u32 = 80;

const I1: Ty = Ty::Int(1);
const I32: Ty = Ty::Int(32);

impl Emitter<'_> {
    /// Combines each of `totals` with those of the lanes whose numbers differ in the bits of `lanes`: one
    /// step of all before the next, since each waits for its shuffle.
    pub(super) fn combine_lanes(
        &mut self,
        region: Region,
        types: &[Ty],
        lanes: u32,
        totals: &mut [Tuple],
    ) -> Emitted {
        if let &[ty] = types
            && let Some(opcode) = self.func.combination(region).map(|data| data.opcode)
            && self.combined_at_once(opcode, ty, lanes, totals)
        {
            return Ok(());
        }
        for bit in (0..5).filter(|bit| lanes >> bit & 1 != 0) {
            let mut others = vec![Tuple::new(); totals.len()];
            for (at, &ty) in types.iter().enumerate() {
                let values = totals.iter().map(|total| total[at]).collect();
                let moved = self.shuffle_together(ty, values, 1 << bit);
                others.iter_mut().zip(moved).for_each(|(other, value)| other.push(value));
            }
            for (total, other) in totals.iter_mut().zip(others) {
                *total = self.combine(region, total, &other)?;
            }
        }
        Ok(())
    }

    /// Combines each of `totals`, of one value, by one instruction where there is one, and tells so.
    fn combined_at_once(
        &mut self,
        opcode: Opcode,
        ty: Ty,
        lanes: u32,
        totals: &mut [Tuple],
    ) -> bool {
        totals.iter_mut().all(|total| {
            let combined = self.combine_at_once(opcode, ty, lanes, total[0]);
            combined.is_some_and(|combined| {
                total[0] = combined;
                true
            })
        })
    }

    /// What one instruction makes of the lanes, where there is one.
    fn combine_at_once(&mut self, opcode: Opcode, ty: Ty, lanes: u32, value: Val) -> Option<Val> {
        match ty {
            I1 if lanes == ALL_LANES => self.vote(opcode, value),
            I1 if lanes.count_ones() > 1 => self.vote_of_some(opcode, lanes, value),
            I32 if lanes == ALL_LANES && self.target.arch.capability >= REDUX => {
                let name = match opcode {
                    Opcode::Add => "add",
                    Opcode::And => "and",
                    Opcode::Or => "or",
                    Opcode::Xor => "xor",
                    Opcode::MinS => "min",
                    Opcode::MaxS => "max",
                    Opcode::MinU => "umin",
                    Opcode::MaxU => "umax",
                    _ => return None,
                };
                let args = [(I32, value), (I32, Val::Int(-1))];
                Some(self.text.call(&format!("llvm.nvvm.redux.sync.{name}"), I32, &args))
            }
            _ => None,
        }
    }

    /// Whether any lane, or each, holds true.
    fn vote(&mut self, opcode: Opcode, value: Val) -> Option<Val> {
        let name = match opcode {
            Opcode::Or => "llvm.nvvm.vote.any.sync",
            Opcode::And => "llvm.nvvm.vote.all.sync",
            _ => return None,
        };
        Some(self.text.call(name, I1, &[(I32, Val::Int(-1)), (I1, value)]))
    }

    /// The same of the lanes whose numbers differ from this one's in the bits of `lanes`.
    fn vote_of_some(&mut self, opcode: Opcode, lanes: u32, value: Val) -> Option<Val> {
        let (test, all) = match opcode {
            Opcode::Or => ("ne", false),
            Opcode::And => ("eq", true),
            _ => return None,
        };
        let thread = self.thread();
        let first = self.in_prelude(|this| {
            this.text.binary("and", I32, thread, Val::Int((ALL_LANES & !lanes).into()))
        });
        let voters =
            (0..32).filter(|lane| lane & !lanes == 0).map(|lane| 1u32 << lane).sum::<u32>();
        let voters = Val::Int(i64::from(voters as i32));
        let args = [(I32, Val::Int(-1)), (I1, value)];
        let ballot = self.text.call("llvm.nvvm.vote.ballot.sync", I32, &args);
        let ballot = self.text.binary("lshr", I32, ballot, first);
        let ballot = self.text.binary("and", I32, ballot, voters);
        let wanted = if all { voters } else { Val::Int(0) };
        Some(self.text.op(format_args!("icmp {test} i32 {ballot}, {wanted}")))
    }

    /// What the lane whose number differs in `mask` has of each of `values`: small ones travel several in a
    /// word.
    pub(super) fn shuffle_together(&mut self, ty: Ty, values: Vec<Val>, mask: i64) -> Vec<Val> {
        let mask = Val::Int(mask);
        if !matches!(ty.bits(), 8 | 16) {
            return values.into_iter().map(|it| self.shuffle("bfly", ty, it, mask)).collect();
        }
        let count = values.len();
        let words = self.elements(ty, values).words;
        let moved = words.into_iter().map(|word| self.shuffle("bfly", I32, word, mask)).collect();
        let mut moved = self.elements_of_words(ty, moved).values;
        moved.truncate(count);
        moved
    }

    /// `shfl.sync` of a value of any type, by words of 32 bits, within the whole warp.
    pub(super) fn shuffle(&mut self, mode: &str, ty: Ty, value: Val, lane: Val) -> Val {
        let i32 = Ty::Int(32);
        let raw_ty = Ty::Int(ty.bits());
        let raw = self.text.bitcast(ty, value, raw_ty);
        let bound = if mode == "up" { 0 } else { 31 };
        let word = |this: &mut Self, word: Val| {
            let args = [(i32, Val::Int(-1)), (i32, word), (i32, lane), (i32, Val::Int(bound))];
            this.text.call(&format!("llvm.nvvm.shfl.sync.{mode}.i32"), i32, &args)
        };
        let moved = match ty.bits() {
            64 => {
                let low = self.text.cast("trunc", raw_ty, raw, i32);
                let high = self.text.binary("lshr", raw_ty, raw, Val::Int(32));
                let high = self.text.cast("trunc", raw_ty, high, i32);
                let (low, high) = (word(self, low), word(self, high));
                let low = self.text.cast("zext", i32, low, raw_ty);
                let high = self.text.cast("zext", i32, high, raw_ty);
                let high = self.text.binary("shl", raw_ty, high, Val::Int(32));
                self.text.binary("or disjoint", raw_ty, low, high)
            }
            32 => word(self, raw),
            _ => {
                let wide = self.text.cast("zext", raw_ty, raw, i32);
                let moved = word(self, wide);
                self.text.cast("trunc", i32, moved, raw_ty)
            }
        };
        self.text.bitcast(raw_ty, moved, ty)
    }
}
