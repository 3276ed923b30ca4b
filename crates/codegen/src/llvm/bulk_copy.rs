//! Bulk copies of tiles from tensors (TMA), the mbarriers by which threads wait for them, and bulk copies of
//! whole tiles to memory.
//!
//! One thread makes mbarriers, tells them of bytes and starts copies; all threads wait. Statements of that
//! thread are predicated one by one, so that no branch stands between products.

use tile_compiler::gpu::shared;
use tile_compiler::ir::{
    Attrs, CacheModifier, Eviction, Inst, InstData, Opcode, StoreHints, Value,
};

use super::index::{LANE_BITS, runs};
use super::memory::{MAX_VECTOR_BYTES, memory_bits};
use super::text::{Ty, Val};
use super::{Emitted, Emitter, SHARED_SYMBOL};
use crate::CodegenError;
use crate::tensor_maps::tensor_map;

/// So many bytes, about what the L2 holds, let the bulk copy engine make up for the time that its last copies
/// take longer than writes of threads do.
const MUCH: u32 = 48 << 20;

impl Emitter<'_> {
    /// Operations of bulk copies. Those that access memory may need a barrier first where memory is used
    /// again.
    pub(super) fn bulk_op(&mut self, inst: Inst, data: &InstData) -> Emitted {
        if self.plan.needs_barrier(inst) {
            self.barrier();
        }
        match (data.opcode, &data.attrs) {
            (Opcode::TensorMap, _) => {
                let map = tensor_map(self.func, data);
                let at = self.tensor_maps.iter().position(|known| Some(known) == map.as_ref());
                let at = at.ok_or_else(|| self.unsupported(data))?;
                self.set(data.result(), vec![Val::TensorMap(at as u32)]);
            }
            (Opcode::MbarrierInit, _) => {
                self.each_mbarrier(data.operand(0), "mbarrier.init.shared::cta.b64 [$0], 1;");
                let issues = self.issues(None);
                self.predicated("fence.proxy.async.shared::cta;", issues, &[]);
            }
            (Opcode::MbarrierInvalidate, _) => {
                self.each_mbarrier(data.operand(0), "mbarrier.inval.shared::cta.b64 [$0];");
            }
            (Opcode::MbarrierExpect, Attrs::Bytes(bytes)) => {
                let mbarrier = self.shared_place(data.operand(0), 0);
                let issues = self.issues(Some(data.operand(1)));
                let bytes = bytes.bytes;
                let asm = format!("mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], {bytes};");
                self.predicated(&asm, issues, &[mbarrier]);
            }
            (Opcode::BulkCopy, _) => return self.bulk_copy(data),
            (Opcode::MbarrierWait, _) => self.wait_mbarrier(data),
            _ => return Err(self.unsupported(data)),
        }
        Ok(())
    }

    /// Whether this is the thread that copies, where `exists` is true.
    fn issues(&mut self, exists: Option<Value>) -> Val {
        let warps = self.func.options.num_warps;
        let is_first = self.thread_without((1 << LANE_BITS) - 1, warps - 1).unwrap_or(Val::Int(1));
        match exists {
            Some(exists) => {
                let exists = self.registers(exists)[0];
                self.text.binary("and", Ty::Int(1), exists, is_first)
            }
            None => is_first,
        }
    }

    /// A statement of the thread for which `issues` holds; `args` begin with their types.
    fn predicated(&mut self, asm: &str, issues: Val, args: &[String]) {
        let constraint = |arg: &String| if arg.starts_with("ptr %") { "l" } else { "r" };
        let mut constraints: Vec<&str> = args.iter().map(constraint).collect();
        constraints.extend(["b", "~{memory}"]);
        let all: Vec<String> = args.iter().cloned().chain([format!("i1 {issues}")]).collect();
        self.text.line(format_args!(
            "call void asm sideeffect \"@${} {asm}\", \"{}\"({})",
            args.len(),
            constraints.join(","),
            all.join(", ")
        ));
    }

    /// The address of a byte of `buffer`, with its type.
    fn shared_place(&mut self, buffer: Value, byte: u32) -> String {
        let start = self.registers(buffer)[0];
        let place = self
            .text
            .op(format_args!("getelementptr i8, ptr addrspace(3) @{SHARED_SYMBOL}, i32 {start}"));
        let place =
            self.text.op(format_args!("getelementptr i8, ptr addrspace(3) {place}, i32 {byte}"));
        format!("ptr addrspace(3) {place}")
    }

    /// A statement of one thread for the mbarrier of each stage.
    fn each_mbarrier(&mut self, mbarriers: Value, asm: &str) {
        let ty = self.ty(mbarriers);
        let bytes = shared::stage_bytes(ty);
        let stages = shared::stages(ty);
        let issues = self.issues(None);
        for stage in 0..stages {
            let place = self.shared_place(mbarriers, stage * bytes);
            self.predicated(asm, issues, &[place]);
        }
    }

    /// A tile comes by boxes: columns of blocks, of rows that lie one after another in the buffer.
    fn bulk_copy(&mut self, data: &InstData) -> Emitted {
        let [map, buffer, mbarrier, exists] = [0, 1, 2, 3].map(|slot| data.operand(slot));
        let Some(Attrs::Boxes(boxes)) = self.func.def(map).map(|map| &map.attrs) else {
            return Err(self.unsupported(data));
        };
        let shape = self.ty(buffer).shape();
        let bytes = self.ty(buffer).elem().map_or(0, |elem| elem.bytes());
        let box_bytes = boxes.extents.iter().product::<u32>() * bytes;
        let begins: Vec<Val> = data.uses().skip(4).map(|at| self.registers(at)[0]).collect();
        let issues = self.issues(Some(exists));
        let map = format!("ptr {}", self.registers(map)[0]);
        let mbarrier = self.shared_place(mbarrier, 0);
        let rank = shape.len();
        let names: Vec<String> = (0..rank).map(|at| format!("${}", at + 3)).collect();
        let asm = format!(
            "cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes \
             [$0], [$1, {{{}}}], [$2];",
            names.join(", ")
        );
        for (number, first) in box_starts(shape, &boxes.extents).into_iter().enumerate() {
            let place = self.shared_place(buffer, number as u32 * box_bytes);
            let mut args = vec![place, map.clone(), mbarrier.clone()];
            for (&begin, first) in begins.iter().zip(first).rev() {
                let at = match first {
                    0 => begin,
                    first => self.text.binary("add", Ty::Int(32), begin, first.into()),
                };
                args.push(format!("i32 {at}"));
            }
            self.predicated(&asm, issues, &args);
        }
        Ok(())
    }

    /// Where a launch writes much, a tile that is a run of memory goes through shared memory. Where the mask
    /// lets all of it pass, which the threads find out as they wait for each other, one thread has it copied
    /// and waits until it is read. Else, and in smaller launches, each thread writes its own part.
    pub(super) fn bulk_store(&mut self, inst: Inst, data: &InstData) -> Emitted {
        let (ptr, tile) = (data.operand(0), data.operand(1));
        let elem = self.elem_of(tile)?;
        let (Some(layout), Some(scratch)) = (self.layout(tile), self.plan.scratch(inst)) else {
            return Err(self.unsupported(data));
        };
        if scratch.barrier_before {
            self.barrier();
        }
        let (ty, values) = (Ty::of(elem), self.registers(tile));
        let [at_once, apart, end] = [(); 3].map(|()| self.text.add_block());
        let writes_much = self.has_programs(MUCH / scratch.bytes);
        self.text.branch(writes_much, at_once, apart);
        self.text.switch_to(at_once);
        let widest = (MAX_VECTOR_BYTES * 8 / memory_bits(elem)).ilog2();
        let mut bits = layout.vector_bits(0);
        bits.truncate(widest as usize);
        let indices = self.element_indices(layout);
        for vector in runs(layout, &bits) {
            let parts: Vec<Val> = vector.iter().map(|&at| values[at]).collect();
            self.store_shared_run(ty, scratch.offset, indices[vector[0]], &parts);
        }
        let masks = self.last_masks(data)?;
        let passed = self.wait_for_tile(&masks);
        let first = self.registers(ptr)[0];
        let place = self.shared_address(ty, scratch.offset, Val::Int(0));
        let issues = self.issues(None);
        let issues = self.both(passed, Some(issues)).unwrap_or(issues);
        self.text.line(format_args!(
            "call void asm sideeffect \"@$2 cp.async.bulk.global.shared::cta.bulk_group [$0], [$1], {}; \
             @$2 cp.async.bulk.commit_group; @$2 cp.async.bulk.wait_group.read 0;\", \
             \"l,r,b,~{{memory}}\"(ptr addrspace(1) {first}, ptr addrspace(3) {place}, i1 {issues})",
            scratch.bytes
        ));
        match passed {
            Some(passed) => self.text.branch(passed, end, apart),
            None => self.text.jump(end),
        }
        self.text.switch_to(apart);
        let hints = StoreHints { cache: CacheModifier::Default, evict: Eviction::Normal };
        self.store_registers(data, &values, &hints)?;
        self.text.jump(end);
        self.text.switch_to(end);
        Ok(())
    }

    /// Whether a launch has at least so many programs.
    fn has_programs(&mut self, least: u32) -> Val {
        let i32 = Ty::Int(32);
        let [x, y, z] = ["x", "y", "z"].map(|axis| {
            self.text.call(&format!("llvm.nvvm.read.ptx.sreg.nctaid.{axis}"), i32, &[])
        });
        let rows = self.text.binary("mul", i32, x, y);
        let programs = self.text.binary("mul", i32, rows, z);
        self.text.op(format_args!("icmp uge i32 {programs}, {least}"))
    }

    /// What must hold for a store's mask to let all of this thread's registers pass: the last of each
    /// vector implies the others.
    fn last_masks(&self, data: &InstData) -> Result<Vec<Val>, CodegenError> {
        let Some(mask) = data.operand_opt(2) else { return Ok(Vec::new()) };
        let (elem, masks) = (self.elem_of(data.operand(1))?, self.registers(mask));
        let vectors = self.stored_together(data, elem).into_iter();
        Ok(vectors.filter_map(|(_, vector)| vector.last().map(|&at| masks[at])).collect())
    }

    /// Waits for all threads, and shows the bulk copy engine what they have put into shared memory; whether
    /// `masks` hold in all of them, if there are any.
    fn wait_for_tile(&mut self, masks: &[Val]) -> Option<Val> {
        self.unfenced = false;
        self.text.line(format_args!(
            "call void asm sideeffect \"fence.proxy.async.shared::cta;\", \"~{{memory}}\"()"
        ));
        let all = masks.iter().fold(None, |all, &mask| self.both(all, Some(mask)));
        let Some(all) = all else {
            self.barrier();
            return None;
        };
        let own = self.text.cast("zext", Ty::Int(1), all, Ty::Int(32));
        let all = self.text.call("llvm.nvvm.barrier0.and", Ty::Int(32), &[(Ty::Int(32), own)]);
        Some(self.text.op(format_args!("icmp ne i32 {all}, 0")))
    }

    fn wait_mbarrier(&mut self, data: &InstData) {
        let mbarrier = self.shared_place(data.operand(0), 0);
        let parity = self.operand(data, 1)[0];
        self.text.line(format_args!(
            "call void asm sideeffect \"{{ .reg .pred done; wait: \
             mbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1; @!done bra wait; }}\", \
             \"r,r,~{{memory}}\"({mbarrier}, i32 {parity}) convergent"
        ));
    }
}

/// The index of the first element of each box of a tile, in the order in which they lie in its buffer: along
/// the rows first, then from one column of blocks to the next, then along leading axes.
fn box_starts(shape: &[u32], extents: &[u32]) -> Vec<Vec<u32>> {
    let rank = shape.len();
    let order = [rank - 2, rank - 1].into_iter().chain((0..rank - 2).rev());
    let mut starts = vec![vec![0; rank]];
    for axis in order {
        let along = (0..shape[axis]).step_by(extents[axis] as usize);
        starts = along
            .flat_map(|at| {
                starts.iter().map(move |start| {
                    let mut start = start.clone();
                    start[axis] = at;
                    start
                })
            })
            .collect();
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::box_starts;

    #[test]
    fn boxes_follow_each_other_along_rows_first() {
        let starts = box_starts(&[2, 512, 128], &[1, 256, 64]);
        let expected = [[0, 0, 0], [0, 256, 0], [0, 0, 64], [0, 256, 64], [1, 0, 0], [1, 256, 0]];
        assert_eq!(starts[..6], expected);
        assert_eq!(starts.len(), 8);
    }
}
