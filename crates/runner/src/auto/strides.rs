//! Which parameters are strides of what a kernel stores, so that its elements can be apart.
//!
//! A pointer tile is a sum; a parameter that multiplies indices along one axis of it is that axis's
//! stride. What only moves whole tiles (multiples of a program id) is none.

use rustc_hash::FxHashMap;
use tile_compiler::analysis::axis::AxisInfos;
use tile_compiler::ir::{Attrs, Function, Opcode, Value};

/// Names of stride parameters of tiles that `func` stores, with the extents of the axes within theirs,
/// the innermost last. A parameter that several stores use has what the first says of it.
pub(super) fn of_stores(func: &Function) -> FxHashMap<String, Vec<u32>> {
    let infos = AxisInfos::of(func);
    let mut found = FxHashMap::default();
    for inst in func.walk() {
        let data = &func.insts[inst];
        if data.opcode == Opcode::Store {
            let pointer = data.operand(0);
            let shape = func.ty(pointer).shape();
            let axes: Vec<usize> = (0..shape.len()).collect();
            let mut search = Search { func, infos: &infos, shape, found: &mut found };
            search.visit(pointer, &axes);
        }
    }
    found
}

struct Search<'a> {
    func: &'a Function,
    infos: &'a AxisInfos,
    /// Extents of the tile that is stored.
    shape: &'a [u32],
    found: &'a mut FxHashMap<String, Vec<u32>>,
}

impl Search<'_> {
    /// Looks through the summands of `value`, of which `axes` are those of the tile that is stored.
    fn visit(&mut self, value: Value, axes: &[usize]) {
        let Some(data) = self.func.def(value) else { return };
        match (data.opcode, &data.attrs) {
            (Opcode::PtrAdd | Opcode::Add | Opcode::Sub, _) => {
                self.visit(data.operand(0), axes);
                self.visit(data.operand(1), axes);
            }
            (Opcode::Broadcast | Opcode::ExtS | Opcode::ExtU | Opcode::Trunc, _) => {
                self.visit(data.operand(0), axes);
            }
            (Opcode::ExpandDims, Attrs::Axis(axis)) => {
                let mut inner = axes.to_vec();
                inner.remove(axis.axis as usize);
                self.visit(data.operand(0), &inner);
            }
            (Opcode::Mul, _) => {
                let extents = self.func.ty(value).shape().iter().enumerate();
                let varying: Vec<(usize, &u32)> =
                    extents.filter(|(_, extent)| **extent > 1).collect();
                let &[(axis, extent)] = &*varying else { return };
                // What is divided or taken apart does not count up by one.
                let counts = |position: Value| {
                    let along = self.infos.get(self.func, position).contiguity;
                    along.get(axis).is_some_and(|run| *run >= i64::from(*extent))
                };
                let (a, b) = (data.operand(0), data.operand(1));
                let stride = [(a, b), (b, a)]
                    .into_iter()
                    .find_map(|(stride, position)| self.param(stride).filter(|_| counts(position)));
                if let Some(name) = stride {
                    let within = self.shape[axes[axis] + 1..].to_vec();
                    self.found.entry(name).or_insert(within);
                }
            }
            _ => {}
        }
    }

    /// The parameter that every element of `value` is.
    fn param(&self, mut value: Value) -> Option<String> {
        while let Some(data) = self.func.def(value) {
            match data.opcode {
                Opcode::Splat | Opcode::Broadcast | Opcode::ExtS | Opcode::ExtU | Opcode::Trunc => {
                    value = data.operand(0);
                }
                _ => return None,
            }
        }
        let args = &self.func.regions[self.func.body].args;
        let index = args.iter().position(|arg| *arg == value)?;
        Some(self.func.params[index].name.to_string())
    }
}
