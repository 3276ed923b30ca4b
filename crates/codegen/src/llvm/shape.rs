//! Operations that rearrange elements without moving any between threads: renamings of registers.

use rustc_hash::FxHashMap;
use tile_compiler::ir::{Attrs, InstData, Opcode, Value};
use tile_compiler::layout::{Dim, LinearLayout};

use super::text::Val;
use super::{Emitted, Emitter};

impl Emitter<'_> {
    pub(super) fn reshape(&mut self, data: &InstData) -> Emitted {
        let result = data.results[0];
        let source = self.operand(data, 0);
        let registers = match (&data.attrs, data.opcode) {
            (_, Opcode::Splat) => vec![source[0]; self.register_count(result)],
            (_, Opcode::Unsplat) => vec![source[0]],
            (_, Opcode::AssertFacts) => source,
            (_, Opcode::Join) => {
                let other = self.operand(data, 1);
                source.into_iter().zip(other).flat_map(|(a, b)| [a, b]).collect()
            }
            (_, Opcode::Cat) => {
                let other = self.operand(data, 1);
                source.into_iter().chain(other).collect()
            }
            (_, Opcode::Split) => {
                let (even, odd) = source
                    .iter()
                    .copied()
                    .enumerate()
                    .partition::<Vec<_>, _>(|(at, _)| at % 2 == 0);
                let strip =
                    |half: Vec<(usize, Val)>| half.into_iter().map(|(_, value)| value).collect();
                self.set(data.results[1], strip(odd));
                strip(even)
            }
            (Attrs::Order(order), _) => {
                let order = order.order.clone();
                self.renamed(data, result, |index| {
                    let mut from = vec![0; index.len()];
                    for (to, &axis) in order.iter().enumerate() {
                        from[axis as usize] = index[to];
                    }
                    from
                })
            }
            (Attrs::Axis(axis), Opcode::ExpandDims) => {
                let axis = axis.axis as usize;
                self.renamed(data, result, |index| {
                    let mut from = index.to_vec();
                    from.remove(axis);
                    from
                })
            }
            (_, Opcode::Broadcast) => {
                let shape = self.ty(data.operand(0)).shape();
                self.renamed(data, result, |index| within(index, shape))
            }
            // A row-major reshape keeps the packed index, and the layouts were made to agree.
            _ => source,
        };
        self.set(result, registers);
        Ok(())
    }

    /// The source register's value for each result register.
    fn renamed(
        &self,
        data: &InstData,
        result: Value,
        source_of: impl Fn(&[u32]) -> Vec<u32>,
    ) -> Vec<Val> {
        let source = self.operand(data, 0);
        let (Some(from), Some(to)) = (self.layout(data.operand(0)), self.layout(result)) else {
            return source;
        };
        let registers = source_registers(from, to, source_of);
        registers.into_iter().map(|at| at.map_or(Val::Poison, |at| source[at])).collect()
    }

    /// The register of a broadcast's source that each register of its result repeats.
    pub(super) fn broadcast_registers(&self, data: &InstData) -> Option<Vec<usize>> {
        let source = data.operand(0);
        let (from, to) = (self.layout(source)?, self.layout(data.result())?);
        let shape = self.ty(source).shape();
        source_registers(from, to, |index| within(index, shape)).into_iter().collect()
    }
}

/// The coordinates `index` in a tile of extent 1 along the axes that it is repeated along.
fn within(index: &[u32], shape: &[u32]) -> Vec<u32> {
    index.iter().zip(shape).map(|(at, extent)| at & (extent - 1)).collect()
}

/// The source register of each result register, by the constant part of the coordinates: layouts
/// were assigned so that the thread's part agrees.
fn source_registers(
    from: &LinearLayout,
    to: &LinearLayout,
    source_of: impl Fn(&[u32]) -> Vec<u32>,
) -> Vec<Option<usize>> {
    let by_index = registers_by_index(from);
    (0..to.elements_per_thread())
        .map(|register| by_index.get(&source_of(&to.offset_for_register(register))).copied())
        .collect()
}

/// The first register of each constant part of the coordinates.
fn registers_by_index(layout: &LinearLayout) -> FxHashMap<Vec<u32>, usize> {
    let mut registers = FxHashMap::default();
    for register in 0..1usize << layout.input_bits(Dim::Register) {
        registers.entry(layout.offset_for_register(register).to_vec()).or_insert(register);
    }
    registers
}
