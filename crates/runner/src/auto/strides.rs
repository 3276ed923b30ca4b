//! Which parameters are strides of what a kernel stores, so that its elements can be apart.
//!
//! A pointer tile is a sum; a parameter that multiplies indices along one axis of it is that axis's
//! stride. What only moves whole tiles (multiples of a program id) is none.

use rustc_hash::FxHashMap;
use tile_compiler::ir::{Attrs, Function, Opcode, Value};

/// Names of stride parameters of tiles that `func` stores, with the extents of the axes within theirs,
/// the innermost last. A parameter that several stores use has what the first says of it.
pub(super) fn of_stores(func: &Function) -> FxHashMap<String, Vec<u32>> {
    let mut found = FxHashMap::default();
    for inst in func.walk() {
        let data = &func.insts[inst];
        if data.opcode == Opcode::Store {
            let pointer = data.operand(0);
            let shape = func.ty(pointer).shape();
            let axes: Vec<usize> = (0..shape.len()).collect();
            let mut search = Search { func, shape, found: &mut found };
            search.visit(pointer, &axes);
        }
    }
    found
}

struct Search<'a> {
    func: &'a Function,
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
                let extents = self.func.ty(value).shape().iter().zip(axes);
                let varying: Vec<usize> =
                    extents.filter(|(extent, _)| **extent > 1).map(|(_, axis)| *axis).collect();
                let (a, b) = (data.operand(0), data.operand(1));
                let stride = [(a, b), (b, a)].into_iter().find_map(|(stride, position)| {
                    self.param(stride).filter(|_| self.is_position(position))
                });
                if let (&[axis], Some(name)) = (&*varying, stride) {
                    let within = self.shape[axis + 1..].to_vec();
                    self.found.entry(name).or_insert(within);
                }
            }
            _ => {}
        }
    }

    /// Whether `value` counts up by one along its axis: what is divided or taken apart does not.
    fn is_position(&self, value: Value) -> bool {
        let Some(data) = self.func.def(value) else { return false };
        match data.opcode {
            Opcode::Arange => true,
            Opcode::Broadcast
            | Opcode::ExpandDims
            | Opcode::ExtS
            | Opcode::ExtU
            | Opcode::Trunc => self.is_position(data.operand(0)),
            Opcode::Add => {
                let is_same = |slot| {
                    let def = self.func.def(data.operand(slot));
                    def.is_some_and(|def| matches!(def.opcode, Opcode::Splat | Opcode::Constant))
                };
                is_same(0) && self.is_position(data.operand(1))
                    || is_same(1) && self.is_position(data.operand(0))
            }
            _ => false,
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
