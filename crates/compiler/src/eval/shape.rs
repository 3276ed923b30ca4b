//! Broadcasting and reshaping.

use smallvec::SmallVec;

use super::display::shape_text;
use super::symbolic::Sym;
use super::value::{Shape, Tensor};
use super::{Eval, Evaluator, Stop};
use crate::diagnostic::{Code, Diagnostic};
use crate::ir::{self, Attrs, Opcode};
use crate::source::FileRange;

/// What broadcasting makes of two extents.
enum Extent {
    Same(Sym),
    /// Certainly incompatible.
    Clash,
    /// Depends on values that are not known.
    Unknown,
}

fn broadcast_extent(left: &Sym, right: &Sym) -> Extent {
    if left == right {
        return Extent::Same(left.clone());
    }
    match (left.int(), right.int()) {
        (Some(1), _) => Extent::Same(right.clone()),
        (_, Some(1)) => Extent::Same(left.clone()),
        (Some(_), Some(_)) => Extent::Clash,
        (Some(_), None) => Extent::Same(left.clone()),
        (None, Some(_)) => Extent::Same(right.clone()),
        (None, None) => {
            let apart = left.certainly_differs(right)
                && left.certainly_exceeds_one()
                && right.certainly_exceeds_one();
            if apart { Extent::Clash } else { Extent::Unknown }
        }
    }
}

impl Evaluator<'_> {
    /// The shape that two operands broadcast to.
    pub(super) fn broadcast_shapes(
        &mut self,
        left: &Shape,
        right: &Shape,
        at: FileRange,
        places: (FileRange, FileRange),
    ) -> Eval<Shape> {
        let (Some(a), Some(b)) = (left.dims(), right.dims()) else {
            return Ok(match (left.rank(), right.rank()) {
                (Some(0), _) => right.clone(),
                (_, Some(0)) => left.clone(),
                _ => Shape::unknown(),
            });
        };
        if a.is_empty() || b.is_empty() {
            return Ok(if a.is_empty() { right.clone() } else { left.clone() });
        }
        let rank = a.len().max(b.len());
        let one = Sym::Int(1);
        let extent = |dims: &[Sym], axis: usize| {
            (axis + dims.len()).checked_sub(rank).map_or(one.clone(), |at| dims[at].clone())
        };
        let mut result: SmallVec<[Sym; 3]> = SmallVec::new();
        for axis in 0..rank {
            match broadcast_extent(&extent(a, axis), &extent(b, axis)) {
                Extent::Same(extent) => result.push(extent),
                Extent::Unknown => {
                    let unknown = self.fresh_symbol();
                    result.push(unknown);
                }
                Extent::Clash => {
                    let (x, y) = (extent(a, axis), extent(b, axis));
                    return Err(self.shape_clash(left, right, axis, (x, y), at, places));
                }
            }
        }
        let result = Shape::of(result);
        self.check_numel(&result, at)?;
        Ok(result)
    }

    fn shape_clash(
        &mut self,
        left: &Shape,
        right: &Shape,
        axis: usize,
        extents: (Sym, Sym),
        at: FileRange,
        places: (FileRange, FileRange),
    ) -> Stop {
        let message = format!(
            "shapes {} and {} do not broadcast: {} against {} at axis {axis}",
            shape_text(left),
            shape_text(right),
            extents.0,
            extents.1
        );
        let mut diagnostic = Diagnostic::new(Code::BroadcastMismatch, at, message)
            .with_related(places.0, format!("this has shape {}", shape_text(left)))
            .with_related(places.1, format!("this has shape {}", shape_text(right)));
        if left.rank() == Some(1) && right.rank() == Some(1) {
            let note = "to combine every element of one with every element of the other, index them as `a[:, None]` and `b[None, :]`";
            diagnostic = diagnostic.with_note(note);
        }
        self.emit_diagnostic(diagnostic)
    }

    /// Repeats `tensor` up to `shape`, to which it is known to broadcast.
    pub(super) fn expand_to(&mut self, tensor: &Tensor, shape: &Shape) -> Tensor {
        if tensor.shape == *shape {
            return tensor.clone();
        }
        let mut result = tensor.clone();
        if !self.emitting() {
            result.shape = shape.clone();
            return result;
        }
        if result.is_scalar() {
            return self.op(Opcode::Splat, &[&result], Attrs::None, result.elem, shape.clone());
        }
        while result.shape.rank() < shape.rank() {
            let mut dims: SmallVec<[Sym; 3]> = SmallVec::from_iter([Sym::Int(1)]);
            dims.extend(result.shape.dims().unwrap_or_default().iter().cloned());
            let axis = ir::Axis { axis: 0 };
            result = self.op(Opcode::ExpandDims, &[&result], axis, result.elem, Shape::of(dims));
        }
        if result.shape == *shape {
            return result;
        }
        self.op(Opcode::Broadcast, &[&result], Attrs::None, result.elem, shape.clone())
    }

    /// Broadcasts two tensors to one shape.
    pub(super) fn broadcast(
        &mut self,
        left: &Tensor,
        right: &Tensor,
        at: FileRange,
        places: (FileRange, FileRange),
    ) -> Eval<(Tensor, Tensor)> {
        let shape = self.broadcast_shapes(&left.shape, &right.shape, at, places)?;
        Ok((self.expand_to(left, &shape), self.expand_to(right, &shape)))
    }

    /// Broadcasts any number of tensors to one shape.
    pub(super) fn broadcast_all(
        &mut self,
        tensors: &[Tensor],
        at: FileRange,
        places: &[FileRange],
    ) -> Eval<Vec<Tensor>> {
        let mut shape = Shape::scalar();
        for (index, tensor) in tensors.iter().enumerate() {
            let place = places.get(index).copied().unwrap_or(at);
            let first = places.first().copied().unwrap_or(at);
            shape = self.broadcast_shapes(&shape, &tensor.shape, at, (first, place))?;
        }
        Ok(tensors.iter().map(|tensor| self.expand_to(tensor, &shape)).collect())
    }

    /// Inserts an axis of extent 1.
    pub(super) fn insert_axis(&mut self, tensor: &Tensor, axis: usize) -> Tensor {
        let Some(dims) = tensor.shape.dims() else {
            return Tensor { shape: Shape::unknown(), ir: None, ..tensor.clone() };
        };
        let mut dims: SmallVec<[Sym; 3]> = SmallVec::from(dims);
        dims.insert(axis.min(dims.len()), Sym::Int(1));
        let shape = Shape::of(dims);
        if tensor.is_scalar() {
            return self.op(Opcode::Splat, &[tensor], Attrs::None, tensor.elem, shape);
        }
        let axis = ir::Axis { axis: axis as u32 };
        self.op(Opcode::ExpandDims, &[tensor], axis, tensor.elem, shape)
    }

    /// The same elements in row-major order at `shape`, which is known to have as many.
    pub(super) fn reshape_to(&mut self, tensor: &Tensor, shape: Shape, reorder: bool) -> Tensor {
        if tensor.shape == shape {
            return tensor.clone();
        }
        if shape.is_scalar() {
            return self.op(Opcode::Unsplat, &[tensor], Attrs::None, tensor.elem, shape);
        }
        if tensor.is_scalar() {
            return self.op(Opcode::Splat, &[tensor], Attrs::None, tensor.elem, shape);
        }
        let attrs = ir::Reshape { reorder };
        self.op(Opcode::Reshape, &[tensor], attrs, tensor.elem, shape)
    }

    /// As [`Self::check_extents`], where Triton 3.6 makes tiles without elements.
    pub(super) fn check_new_extents(&mut self, shape: &Shape, at: FileRange) -> Eval<()> {
        let empty =
            shape.dims().is_some_and(|dims| dims.iter().any(|extent| extent.int() == Some(0)));
        if empty && !self.is_3_9() {
            self.has_empty_tiles = true;
            return Ok(());
        }
        self.check_extents(shape, at)
    }

    /// Checks the extents of a new tile: positive powers of two, at most 2^20 elements.
    pub(super) fn check_extents(&mut self, shape: &Shape, at: FileRange) -> Eval<()> {
        let Some(dims) = shape.dims() else { return Ok(()) };
        for (axis, extent) in dims.iter().enumerate() {
            let Some(value) = extent.int() else { continue };
            let power = value > 0 && value & (value - 1) == 0;
            if power {
                continue;
            }
            let message = format!(
                "extent {axis} of {} is {value}, which is not a power of two",
                shape_text(shape)
            );
            let mut diagnostic = Diagnostic::new(Code::PowerOfTwo, at, message);
            if value > 2 {
                let next = (value as u128).next_power_of_two();
                diagnostic = diagnostic.with_note(format!(
                    "the next power of two is {next}; mask off what is too much"
                ));
            }
            return Err(self.emit_diagnostic(diagnostic));
        }
        self.check_numel(shape, at)
    }

    /// A tile, however it is made, has no more elements than the language allows, or a guess.
    pub(super) fn check_numel(&mut self, shape: &Shape, at: FileRange) -> Eval<()> {
        if let Some(numel) = shape.numel().and_then(|numel| numel.int())
            && numel > self.most_elements as i128
        {
            let most = self.most_elements;
            let message = format!("a tile of {numel} elements is too large; the most is {most}");
            return Err(self.error(Code::TooManyElements, at, message));
        }
        Ok(())
    }
}
