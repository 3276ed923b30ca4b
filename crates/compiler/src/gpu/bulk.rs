//! Tiles of tensors that the bulk copy engine brings: which loads, and by what boxes.
//!
//! The engine (TMA, since sm_90) copies boxes of a tensor into shared memory as the matrix units read
//! them. One thread names a box by its first index; no thread computes addresses, compares indices or
//! holds elements. What it knows of the tensor, a tensor map, is made by the launcher from the kernel's
//! arguments (`cuTensorMapEncodeTiled` of the CUDA driver).

use rustc_hash::FxHashSet;
use smallvec::{SmallVec, smallvec};

use super::early::EarlyLoad;
use crate::ir::{
    Attrs, Boxes, Builder, Elem, Function, Opcode, Region, Scalar, Shape, Type, Value, ValueDef,
};
use crate::layout::{LinearLayout, NvmmaSharedLayout};

/// The most elements that a box has along one axis.
const MOST_EXTENT: u32 = 256;

/// The most factors of a product that a launcher is asked to compute.
const MOST_FACTORS: usize = 8;

/// How the tile of a load is copied in bulk.
#[derive(Debug, Clone)]
pub(super) struct BulkCopy {
    base: Value,
    /// Extents, then strides but for the last.
    sizes: Vec<Value>,
    /// The index of the tile's first element along each axis.
    pub begins: Vec<Value>,
    boxes: Boxes,
}

impl BulkCopy {
    /// How `load`, an instruction of the loop's `body`, is copied in bulk rather than thread by thread:
    ///
    /// - a descriptor that the launch makes names its tensor, whose base and strides the language has aligned
    ///   as the engine asks. Kernels that make descriptors themselves are launched with plain arguments, by
    ///   whoever knows no more of them;
    /// - what is outside of the tensor is zero;
    /// - the kernel writes no tensor of the same parameter: the engine need not see what threads write;
    /// - base, extents and strides are parameters or products of them, so that the launcher knows them;
    /// - its buffer holds rows as the engine permutes them.
    ///
    /// Else, each thread copies its own elements.
    ///
    /// `written` are the parameters whose tensors the kernel writes.
    pub fn of(
        func: &Function,
        written: &FxHashSet<Value>,
        body: Region,
        load: &EarlyLoad,
    ) -> Option<BulkCopy> {
        let data = &func.insts[load.load];
        let tensor: Vec<Value> = data.tensor().iter().copied().flatten().collect();
        let (&base, axes) = tensor.split_first()?;
        let (sizes, begins) = axes.split_at(axes.len() / 3 * 2);
        let (&last, sizes) = sizes.split_last()?;
        let boxes = boxes(&load.storage, &load.shape, load.elem)?;
        let inside = func.defined_in(body);
        let is_known = |&size: &Value| !inside.contains(&size) && Product::of(func, size).is_some();
        let begins_fit = begins.iter().all(|&at| *func.ty(at) == Type::scalar(Scalar::I32));
        let param = Product::of(func, base)?.only_param()?;
        let is_described = func.params[param].is_base_of_descriptor();
        let is_read_only = !written.contains(&func.regions[func.body].args[param]);
        let fits = load.fills_zeros(func)
            && is_described
            && is_read_only
            && !inside.contains(&base)
            && func.constant_bits(last) == Some(1)
            && sizes.iter().all(is_known)
            && begins_fit;
        let [sizes, begins] = [sizes, begins].map(<[Value]>::to_vec);
        fits.then_some(BulkCopy { base, sizes, begins, boxes })
    }

    /// Writes the tensor map.
    pub fn map(&self, builder: &mut Builder<'_>) -> Value {
        let operands: Vec<Value> =
            std::iter::once(self.base).chain(self.sizes.iter().copied()).collect();
        builder.emit_typed(Opcode::TensorMap, &operands, self.boxes.clone(), Type::TensorMap)
    }
}

/// The boxes by which a tile is copied into a buffer of `storage`: a column of its blocks each.
fn boxes(storage: &LinearLayout, shape: &[u32], elem: Elem) -> Option<Boxes> {
    let bits = elem.scalar()?.bits();
    let sizes: SmallVec<[usize; 4]> = shape.iter().map(|&extent| extent as usize).collect();
    let found = NvmmaSharedLayout::of(storage, &sizes, bits as usize)?;
    let &[.., rows, _] = shape else { return None };
    let swizzle = found.swizzle_bytes as u32;
    let mut extents: Shape = smallvec![1; shape.len() - 2];
    extents.extend([rows.min(MOST_EXTENT), swizzle * 8 / bits]);
    (!found.transposed).then_some(Boxes { extents, swizzle })
}

/// A product of parameters of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Product {
    /// What is not a parameter.
    pub factor: i64,
    /// The positions of the parameters.
    pub params: SmallVec<[usize; 4]>,
}

impl Product {
    /// The product that `value` is, if it is one.
    pub fn of(func: &Function, value: Value) -> Option<Product> {
        let product = match func.values[value].def {
            ValueDef::Argument(region, at) if region == func.body => {
                Product { factor: 1, params: smallvec![at as usize] }
            }
            ValueDef::Argument(..) => return None,
            ValueDef::Result(inst, _) => {
                let data = &func.insts[inst];
                match (data.opcode, &data.attrs) {
                    (Opcode::Constant, Attrs::Constant(constant)) => {
                        let unused = 64 - func.ty(value).number()?.bits();
                        let factor = (constant.bits << unused) as i64 >> unused;
                        Product { factor, params: SmallVec::new() }
                    }
                    (Opcode::AssertFacts | Opcode::ExtS, _) => Product::of(func, data.operand(0))?,
                    (Opcode::Mul, _) => {
                        let a = Product::of(func, data.operand(0))?;
                        let b = Product::of(func, data.operand(1))?;
                        let params = a.params.into_iter().chain(b.params).collect();
                        Product { factor: a.factor.checked_mul(b.factor)?, params }
                    }
                    _ => return None,
                }
            }
        };
        (product.params.len() <= MOST_FACTORS).then_some(product)
    }

    /// The parameter that it is, if it is one.
    fn only_param(&self) -> Option<usize> {
        match self.params[..] {
            [param] if self.factor == 1 => Some(param),
            _ => None,
        }
    }
}

/// Has the loads of `func` be loads of pointers alone.
pub(super) fn forget_tensors(func: &mut Function) {
    for data in func.insts.values_mut().filter(|data| data.opcode == Opcode::Load) {
        data.forget_tensor();
    }
}
