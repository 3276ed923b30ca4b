//! Which element a register holds: numbers that are linear in the thread number.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tile_compiler::analysis::resources::has_products;
use tile_compiler::ir::Value;
use tile_compiler::layout::{Dim, LinearLayout};

use super::Emitter;
use super::text::{Block, Ty, Val};
use crate::has_loops;

/// What the bits of the thread number contribute, by XOR: the five bits of the lane, then those of
/// the warp.
pub(super) type IndexKey = Vec<u32>;

/// Bits of the lane in the thread number.
pub(super) const LANE_BITS: usize = 5;

/// A block that holds what depends on the thread number alone, and what is in it.
#[derive(Clone)]
pub(super) struct Origin {
    /// The block.
    pub(super) prelude: Block,
    /// What comes after it, as long as it is open; the entry block ends with the function.
    rest: Option<Block>,
    /// The thread's number in the CTA.
    thread: Option<Val>,
    /// Per layout: the thread's part of the row-major element index.
    indices: FxHashMap<IndexKey, Val>,
    /// The same, where it is equal in all lanes of a warp and known to be.
    pub(super) group_indices: FxHashMap<IndexKey, Val>,
}

impl Origin {
    /// A prelude with nothing in it yet.
    pub(super) fn new(prelude: Block) -> Origin {
        let (indices, group_indices) = Default::default();
        Origin { prelude, rest: None, thread: None, indices, group_indices }
    }
}

impl Emitter<'_> {
    /// The thread's number in the CTA.
    ///
    /// Where a kernel has neither loops nor products, LLVM is not to know its range: it would drop the masks
    /// of bits that move, and the assembler takes common factors out of sums of the CTA's number and an
    /// unmasked one, which puts one instruction more between that number and the first load. Measured on an
    /// H200, copies by strides take 0.99 times as long so, other kernels 0.985 to 1.002 times. Loops gain
    /// nothing by it, and one whose loads the assembler happened to order worse took 1.55 times as long.
    pub(super) fn thread(&mut self) -> Val {
        if let Some(thread) = self.origin.thread {
            return thread;
        }
        let is_first = self.origin.prelude == self.entry;
        let is_known = is_first && (has_loops(self.func) || has_products(self.func));
        // Not to be found equal to an earlier one.
        let sideeffect = if is_first { "" } else { "sideeffect " };
        let thread = self.in_prelude(|this| match is_known {
            true => this.text.call("llvm.nvvm.read.ptx.sreg.tid.x", Ty::Int(32), &[]),
            false => this
                .text
                .op(format_args!("call i32 asm {sideeffect}\"mov.u32 $0, %tid.x;\", \"=r\"()")),
        });
        self.origin.thread = Some(thread);
        thread
    }

    /// Writes into the prelude, which dominates what is written from here on.
    pub(super) fn in_prelude<T>(&mut self, write: impl FnOnce(&mut Self) -> T) -> T {
        self.in_block(self.origin.prelude, write)
    }

    /// Writes at the end of `block`.
    pub(super) fn in_block<T>(&mut self, block: Block, write: impl FnOnce(&mut Self) -> T) -> T {
        let back = self.text.switch_to(block);
        let location = self.text.location.take();
        let result = write(self);
        self.text.location = location;
        self.text.switch_to(back);
        result
    }

    /// Starts a new prelude here: what follows from the thread's number is computed anew, so that
    /// it takes no registers before. The prelude before it ends if it `is_replaced`; that of an
    /// enclosing region goes on behind this one.
    pub(super) fn renew_origin(&mut self, is_replaced: bool) {
        let [prelude, rest] = [(); 2].map(|()| self.text.add_block());
        self.text.jump(prelude);
        if is_replaced {
            self.end_prelude();
        }
        self.origin = Origin { rest: Some(rest), ..Origin::new(prelude) };
        self.text.switch_to(rest);
    }

    /// Has the prelude go on to what comes after it; nothing is written into it from here on.
    pub(super) fn end_prelude(&mut self) {
        if let Some(rest) = self.origin.rest.take() {
            self.in_block(self.origin.prelude, |this| this.text.jump(rest));
        }
    }

    /// The number `XOR of bases[i] over the set bits i of the thread number`, as an `i32`.
    pub(super) fn thread_index(&mut self, bases: &[u32]) -> Val {
        if bases.iter().all(|&basis| basis == 0) {
            return Val::Int(0);
        }
        if let Some(&known) = self.origin.indices.get(bases) {
            return known;
        }
        let thread = self.thread();
        let value = self.in_prelude(|this| this.combine_bits(thread, bases));
        self.origin.indices.insert(bases.to_vec(), value);
        value
    }

    /// The XOR of `bases[i]` over the set bits i of a number, such as the thread's. Consecutive bits
    /// that keep their distance move together, by one mask and one shift.
    pub(super) fn combine_bits(&mut self, thread: Val, bases: &[u32]) -> Val {
        let mut result: Option<(Val, u32)> = None;
        let mut at = 0;
        while at < bases.len() {
            let basis = bases[at];
            let start = at;
            at += 1;
            if basis == 0 {
                continue;
            }
            let mut covered = basis;
            while at < bases.len()
                && basis.is_power_of_two()
                && u64::from(bases[at]) == u64::from(basis) << (at - start)
            {
                covered |= bases[at];
                at += 1;
            }
            let part = if basis.is_power_of_two() {
                let mask = ((1u32 << (at - start)) - 1) << start;
                self.move_bits(thread, mask, start as u32, basis.trailing_zeros())
            } else {
                self.spread_bit(thread, start as u32, basis)
            };
            result = Some(match result {
                None => (part, covered),
                Some((sum, taken)) => {
                    let op = if taken & covered == 0 { "or disjoint" } else { "xor" };
                    (self.text.binary(op, Ty::Int(32), sum, part), taken | covered)
                }
            });
        }
        result.map_or(Val::Int(0), |(value, _)| value)
    }

    /// `mask`ed bits of the thread number, moved from bit `from` to bit `to`.
    fn move_bits(&mut self, thread: Val, mask: u32, from: u32, to: u32) -> Val {
        let i32 = Ty::Int(32);
        let masked = self.text.binary("and", i32, thread, Val::Int(mask.into()));
        if to > from {
            self.text.binary("shl nuw", i32, masked, Val::Int((to - from).into()))
        } else if to < from {
            self.text.binary("lshr exact", i32, masked, Val::Int((from - to).into()))
        } else {
            masked
        }
    }

    /// `basis` where bit `bit` of the thread number is set, else 0.
    fn spread_bit(&mut self, thread: Val, bit: u32, basis: u32) -> Val {
        let i32 = Ty::Int(32);
        let masked = self.text.binary("and", i32, thread, Val::Int(1 << bit));
        let set = self.text.op(format_args!("icmp ne i32 {masked}, 0"));
        self.text.select(set, i32, Val::Int(basis.into()), Val::Int(0))
    }

    /// The contributions of the thread's bits to an output of `layout` as packed by `pack`.
    pub(super) fn thread_bases(layout: &LinearLayout, pack: impl Fn(u64) -> u32) -> Vec<u32> {
        let mut bases: Vec<u32> = layout.bases(Dim::Lane).iter().map(|&b| pack(b)).collect();
        bases.resize(LANE_BITS, 0);
        bases.extend(layout.bases(Dim::Warp).iter().map(|&b| pack(b)));
        bases
    }

    /// `part` XOR `constant`, where `bases` are the contributions that `part` can have. Bits that
    /// `part` cannot have come last: they become the fixed distance of an address from one that
    /// others share.
    pub(super) fn offset_index(&mut self, part: Val, bases: &[u32], constant: u32) -> Val {
        if let Val::Int(part) = part {
            return Val::Int(part ^ i64::from(constant));
        }
        let reach = bases.iter().fold(0, |reach, basis| reach | basis);
        let mut index = part;
        for (op, bits) in [("xor", constant & reach), ("or disjoint", constant & !reach)] {
            if bits != 0 {
                index = self.text.binary(op, Ty::Int(32), index, Val::Int(bits.into()));
            }
        }
        index
    }

    /// The row-major element index of each register of a tile in `layout`.
    pub(super) fn element_indices(&mut self, layout: &LinearLayout) -> Vec<Val> {
        let bases = Self::thread_bases(layout, |basis| basis as u32);
        let part = self.thread_index(&bases);
        (0..layout.elements_per_thread())
            .map(|register| {
                let constant = layout.apply_packed(layout.pack_input(&[(Dim::Register, register)]));
                self.offset_index(part, &bases, constant as u32)
            })
            .collect()
    }

    /// The integers from `start` on, as the layout of `result` deals them out.
    pub(super) fn arange(&mut self, result: Value, start: i64) -> Vec<Val> {
        let Some(layout) = self.layout(result) else { return vec![Val::Int(start)] };
        let indices = self.element_indices(layout);
        if start == 0 {
            return indices;
        }
        let add = |index| self.text.binary("add nsw", Ty::Int(32), index, Val::Int(start));
        indices.into_iter().map(add).collect()
    }

    /// Whether this thread's number has no bit of `lanes` and `warps`, unless that always holds.
    pub(super) fn thread_without(&mut self, lanes: u32, warps: u32) -> Option<Val> {
        let mask = lanes | warps << LANE_BITS;
        if mask == 0 {
            return None;
        }
        let thread = self.thread();
        Some(self.in_prelude(|this| {
            let bits = this.text.binary("and", Ty::Int(32), thread, Val::Int(mask.into()));
            this.text.op(format_args!("icmp eq i32 {bits}, 0"))
        }))
    }
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

/// The registers that count through `bits`, from `first` on.
fn spread(first: usize, bits: &[u32]) -> SmallVec<[usize; 16]> {
    (0..1usize << bits.len())
        .map(|member| {
            let chosen = bits.iter().enumerate();
            chosen.fold(first, |at, (bit, to)| at | (member >> bit & 1) << to)
        })
        .collect()
}
