//! Fragments of matrix products stored to shared memory by whole warps (`stmatrix`).
//!
//! Each lane of a fragment holds neighbors of 32 bits, so by itself it stores no more than these at
//! once. By matrices a warp stores four such words of each lane in one instruction, to rows whose
//! addresses the lanes give, and transposed if that is how the rows lie.

use tile_compiler::layout::{Dim, LinearLayout, MatrixAccess, VectorAccess};

use super::Emitter;
use super::text::{Ty, Val};

/// The first architecture that stores matrices.
const MATRIX_STORES: u32 = 90;
/// Bits of what a lane holds of a matrix.
const WORD_BITS: u32 = 32;

impl Emitter<'_> {
    /// How registers of type `ty` that `vectors` would store are stored by matrices, where that takes
    /// fewer instructions, and as few passes over the banks. Not where several registers or lanes
    /// hold one element.
    pub(super) fn matrix_stores(&self, ty: Ty, vectors: &VectorAccess) -> Option<MatrixAccess> {
        let offsets = &vectors.offsets;
        let repeats = |dim: Dim| offsets.bases(dim).contains(&0);
        if self.target.arch.capability < MATRIX_STORES
            || ty == Ty::Int(1)
            || repeats(Dim::Register)
            || repeats(Dim::Lane)
        {
            return None;
        }
        let matrices = MatrixAccess::of(offsets, ty.bits().div_ceil(8) as usize)?;
        let [fewer, more] = [matrices.instructions().len(), vectors.instructions().len()];
        let passes = [fewer * matrices.cost.wavefronts, more * vectors.cost.wavefronts];
        (fewer < more && passes[0] <= passes[1]).then_some(matrices)
    }

    /// Stores the registers of a tile at `offsets` in the buffer at `start`.
    pub(super) fn store_all_matrices(
        &mut self,
        start: (Val, Ty),
        offsets: &LinearLayout,
        access: &MatrixAccess,
        registers: &[Val],
    ) {
        for group in access.instructions() {
            let values: Vec<Val> = group.iter().map(|&at| registers[at as usize]).collect();
            self.store_matrices(start, offsets, access, group[0], &values);
        }
    }

    /// Stores `values`, the registers of one instruction of `access`, of which `register` is the first
    /// of a tile at `offsets` in the buffer at `start`.
    fn store_matrices(
        &mut self,
        (start, ty): (Val, Ty),
        offsets: &LinearLayout,
        access: &MatrixAccess,
        register: u32,
        values: &[Val],
    ) {
        let mut bases: Vec<u32> = access.row_bases.to_vec();
        bases.extend(offsets.bases(Dim::Warp).iter().map(|&basis| basis as u32));
        let constant = Self::register_offset(offsets, register);
        let (place, rest) = self.buffer_place_and_rest(start, ty, &bases, constant);
        let words: Vec<String> = values
            .chunks((WORD_BITS / ty.bits()) as usize)
            .map(|elements| format!("i32 {}", self.word_of(ty, elements)))
            .collect();
        let count = words.len();
        let names: Vec<String> = (1..=count).map(|at| format!("${at}")).collect();
        let transposed = if access.transposed { ".trans" } else { "" };
        self.text.line(format_args!(
            "call void asm sideeffect \"stmatrix.sync.aligned.m8n8.x{count}{transposed}.shared.b16 \
             [$0+{rest}], {{{}}};\", \"r,{}~{{memory}}\"(ptr addrspace(3) {place}, {}) \
             convergent nounwind",
            names.join(", "),
            "r,".repeat(count),
            words.join(", ")
        ));
    }

    /// Elements of 32 bits together as one word.
    fn word_of(&mut self, ty: Ty, elements: &[Val]) -> Val {
        if let [one] = elements {
            return self.text.bitcast(ty, *one, Ty::Int(WORD_BITS));
        }
        let part = Ty::Int(ty.bits());
        let parts: Vec<Val> =
            elements.iter().map(|&element| self.text.bitcast(ty, element, part)).collect();
        let vector = self.vector_of(part, &parts);
        let count = parts.len();
        self.text.op(format_args!("bitcast <{count} x {part}> {vector} to i{WORD_BITS}"))
    }
}
