//! Addresses at distances from others that all threads share.
//!
//! The rows of an operand that a thread copies lie a multiple of the stride apart. A loop of products
//! would keep the address of each, two registers a row, where that of the first and the distances do. So
//! in such a loop the address of a register is written as that of an earlier one and a distance: LLVM
//! and the assembler cannot see it through the indices.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::{SmallVec, smallvec};
use tile_compiler::gpu::anew::is_loop_of_products;
use tile_compiler::ir::{Attrs, InstData, Opcode, Scalar, Value};
use tile_compiler::layout::{Dim, LinearLayout};

use super::Emitter;
use super::text::{Ty, Val};
use crate::CodegenError;

/// By how much a value grows from one index of an axis to the next: so much, times a scalar if there is
/// one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slope {
    count: i64,
    times: Option<Value>,
}

/// One for each axis.
type Slopes = SmallVec<[Slope; 4]>;

impl Slope {
    const FLAT: Slope = Slope { count: 0, times: None };
    const ONE: Slope = Slope { count: 1, times: None };

    fn plus(self, other: Slope) -> Option<Slope> {
        match (self.count, other.count) {
            (0, _) => Some(other),
            (_, 0) => Some(self),
            (a, b) => (self.times == other.times)
                .then(|| Slope { count: a.wrapping_add(b), times: self.times }),
        }
    }

    fn times(self, factor: Slope) -> Option<Slope> {
        let times = match (self.times, factor.times) {
            _ if self.count == 0 => None,
            (None, times) | (times, None) => times,
            (Some(_), Some(_)) => return None,
        };
        Some(Slope { count: self.count.wrapping_mul(factor.count), times })
    }
}

/// Whether the index of an element is a sum of what the register and what the thread contribute.
fn adds(layout: &LinearLayout) -> bool {
    let bits = |dim| layout.bases(dim).iter().fold(0, |all, basis| all | basis);
    bits(Dim::Register) & (bits(Dim::Lane) | bits(Dim::Warp)) == 0
}

impl Emitter<'_> {
    /// The results of pointer arithmetic in loops of products.
    pub(super) fn addresses_in_products(&self) -> FxHashSet<Value> {
        let insts = self.func.walk().into_iter();
        let loops = insts.filter(|&inst| is_loop_of_products(self.func, inst));
        let inner = loops.flat_map(|inst| self.func.walk_inst(inst));
        let datas = inner.map(|inst| &self.func.insts[inst]);
        datas.filter(|data| data.opcode == Opcode::PtrAdd).map(InstData::result).collect()
    }

    /// The registers of an address in a loop of products, of which all but the first follow from
    /// others by known distances; `None` for other values.
    pub(super) fn stepped(
        &mut self,
        data: &InstData,
        operands: &[Vec<Val>],
    ) -> Result<Option<Vec<Val>>, CodegenError> {
        let [result] = data.results.as_slice() else { return Ok(None) };
        let layout = self.layout(*result).filter(|layout| adds(layout));
        let (true, Some(layout)) = (self.stepping.contains(result), layout) else {
            return Ok(None);
        };
        let Some(slopes) = self.slopes(*result) else { return Ok(None) };
        let pointee = self.ty(*result).elem().and_then(|elem| elem.pointee());
        let bits = pointee.map_or(8, |elem| elem.bits().max(8));
        let args: Vec<Val> = operands.iter().map(|all| all[0]).collect();
        let mut registers = vec![self.element(data, &args)?];
        let mut distances: FxHashMap<(Option<Value>, i64), Val> = FxHashMap::default();
        for register in 1..layout.elements_per_thread() {
            let before = register & !(1 << register.ilog2());
            let [from, to] = [before, register].map(|at| layout.offset_for_register(at));
            let mut address = registers[before];
            for ((&from, &to), slope) in from.iter().zip(&to).zip(&slopes) {
                let count = slope.count.wrapping_mul(i64::from(to) - i64::from(from));
                if count != 0 {
                    let distance = *distances
                        .entry((slope.times, count))
                        .or_insert_with(|| self.distance(slope.times, count));
                    address = self.text.op(format_args!(
                        "getelementptr i{bits}, ptr addrspace(1) {address}, i64 {distance}"
                    ));
                }
            }
            registers.push(address);
        }
        self.has_steps |= distances.keys().any(|(times, _)| times.is_some());
        Ok(Some(registers))
    }

    fn distance(&mut self, times: Option<Value>, count: i64) -> Val {
        match times {
            None => Val::Int(count),
            Some(scalar) => {
                let scalar = self.registers(scalar)[0];
                self.text.binary("mul", Ty::Int(64), scalar, Val::Int(count))
            }
        }
    }

    /// How a pointer, or an integer of 64 bits, grows along each axis, if that is known exactly: sums
    /// of narrower integers may wrap around in between.
    fn slopes(&self, value: Value) -> Option<Slopes> {
        let flat = || smallvec![Slope::FLAT; self.ty(value).shape().len()];
        if !self.ty(value).is_tile() {
            return Some(flat());
        }
        let data = self.func.def(value)?;
        let operand = |slot| self.slopes(data.operand(slot));
        match (data.opcode, &data.attrs) {
            (Opcode::Splat | Opcode::Constant, _) => Some(flat()),
            (Opcode::AssertFacts, _) => operand(0),
            (Opcode::ExpandDims, Attrs::Axis(axis)) => {
                let mut slopes = operand(0)?;
                slopes.insert(axis.axis as usize, Slope::FLAT);
                Some(slopes)
            }
            (Opcode::Broadcast, _) => {
                let shape = self.ty(data.operand(0)).shape();
                let axes = shape.iter().zip(operand(0)?);
                Some(axes.map(|(&extent, s)| if extent == 1 { Slope::FLAT } else { s }).collect())
            }
            (Opcode::ExtS, _) => self.slopes_of_range(data.operand(0)),
            (Opcode::Add | Opcode::PtrAdd, _) if self.is_wide(data.operand(1)) => {
                let both = operand(0)?.into_iter().zip(operand(1)?);
                both.map(|(a, b)| a.plus(b)).collect()
            }
            (Opcode::Mul, _) if self.is_wide(value) => {
                let (slopes, factor) = match [0, 1].map(|at| self.factor(data.operand(at))) {
                    [_, Some(factor)] => (operand(0)?, factor),
                    [Some(factor), None] => (operand(1)?, factor),
                    [None, None] => return None,
                };
                slopes.into_iter().map(|slope| slope.times(factor)).collect()
            }
            _ => None,
        }
    }

    /// The slopes of a range, which holds no more than 32 bits do.
    fn slopes_of_range(&self, value: Value) -> Option<Slopes> {
        let data = self.func.def(value)?;
        match (data.opcode, &data.attrs) {
            (Opcode::Arange, _) => Some(smallvec![Slope::ONE]),
            (Opcode::ExpandDims, Attrs::Axis(axis)) => {
                let mut slopes = self.slopes_of_range(data.operand(0))?;
                slopes.insert(axis.axis as usize, Slope::FLAT);
                Some(slopes)
            }
            _ => None,
        }
    }

    /// The scalar that a tile holds everywhere, as a factor.
    fn factor(&self, value: Value) -> Option<Slope> {
        if let Some(bits) = self.func.constant_bits(value) {
            return Some(Slope { count: bits as i64, times: None });
        }
        let data = self.func.def(value)?;
        match data.opcode {
            Opcode::Splat => Some(Slope { count: 1, times: Some(data.operand(0)) }),
            Opcode::Broadcast => self.factor(data.operand(0)),
            _ => None,
        }
    }

    fn is_wide(&self, value: Value) -> bool {
        self.ty(value).number() == Some(Scalar::I64)
    }
}

#[cfg(test)]
mod tests {
    use tile_compiler::ir::Value;

    use super::Slope;

    #[test]
    fn slopes_add_where_they_count_the_same() {
        let stride = Some(Value::from_u32(3));
        let [once, twice] = [1, 2].map(|count| Slope { count, times: stride });
        assert_eq!(once.plus(once), Some(twice));
        assert_eq!(once.plus(Slope::FLAT), Some(once));
        assert_eq!(once.plus(Slope::ONE), None);
    }

    #[test]
    fn slopes_grow_by_one_scalar_at_most() {
        let stride = Slope { count: 1, times: Some(Value::from_u32(3)) };
        assert_eq!(Slope::ONE.times(stride), Some(stride));
        assert_eq!(Slope::FLAT.times(stride), Some(Slope::FLAT));
        assert_eq!(stride.times(stride), None);
    }
}
