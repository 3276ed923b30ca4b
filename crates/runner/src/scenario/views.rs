//! Slices, transposes and other views.

use super::error::{Eval, fault};
use super::operators::show_shape;
use super::tensor::Layout;

/// One part of a subscript.
#[derive(Debug, Clone, Copy)]
pub(super) enum Index {
    /// `i`: takes one element and drops the axis.
    At(i128),
    /// `lower:upper:step`.
    Range(Option<i128>, Option<i128>, i128),
    /// `None`: a new axis of extent 1.
    New,
    /// `...`: all axes that the other parts leave.
    Rest,
}

/// The view that a subscript takes.
pub(super) fn slice(layout: &Layout, parts: &[Index]) -> Eval<Layout> {
    let taken = parts.iter().filter(|part| matches!(part, Index::At(_) | Index::Range(..))).count();
    let rank = layout.shape.len();
    if taken > rank {
        return Err(fault!("{taken} indices for a tensor of shape {}", show_shape(&layout.shape)));
    }
    let mut view = Layout { shape: vec![], strides: vec![], offset: layout.offset };
    let mut axis = 0;
    let mut rest_seen = false;
    let whole = Index::Range(None, None, 1);
    for &part in parts {
        match part {
            Index::New => {
                view.shape.push(1);
                view.strides.push(0);
            }
            Index::Rest if rest_seen => return Err(fault!("only one `...` is allowed")),
            Index::Rest => {
                rest_seen = true;
                for _ in 0..rank - taken {
                    take(layout, &mut view, axis, whole)?;
                    axis += 1;
                }
            }
            _ => {
                take(layout, &mut view, axis, part)?;
                axis += 1;
            }
        }
    }
    for axis in axis..rank {
        take(layout, &mut view, axis, whole)?;
    }
    Ok(view)
}

fn take(layout: &Layout, view: &mut Layout, axis: usize, part: Index) -> Eval<()> {
    let (extent, stride) = (layout.shape[axis] as i128, layout.strides[axis]);
    let start = match part {
        Index::At(index) => {
            let at = if index < 0 { index + extent } else { index };
            if !(0..extent).contains(&at) {
                return Err(fault!("index {index} is outside axis {axis} of extent {extent}"));
            }
            at
        }
        Index::Range(lower, upper, step) => {
            let (start, count) = range(extent, lower, upper, step)?;
            view.shape.push(count);
            view.strides.push(stride * step as isize);
            if count == 0 { 0 } else { start }
        }
        Index::New | Index::Rest => return Ok(()),
    };
    view.offset = (view.offset as isize + start as isize * stride).max(0) as usize;
    Ok(())
}

/// First index and number of indices of `lower:upper:step` over `extent`, as Python clamps them.
fn range(
    extent: i128,
    lower: Option<i128>,
    upper: Option<i128>,
    step: i128,
) -> Eval<(i128, usize)> {
    if step == 0 {
        return Err(fault!("a slice's step cannot be 0"));
    }
    let (low, high) = if step > 0 { (0, extent) } else { (-1, extent - 1) };
    let clamp = |index: i128| (if index < 0 { index + extent } else { index }).clamp(low, high);
    let start = lower.map_or(if step > 0 { low } else { high }, clamp);
    let end = upper.map_or(if step > 0 { high } else { low }, clamp);
    let span = if step > 0 { end - start } else { start - end };
    let count = (span + step.abs() - 1) / step.abs();
    Ok((start, count.max(0) as usize))
}

/// The same elements at `shape`, in which one extent may be -1; `None` when they do not lie in
/// row-major order.
pub(super) fn reshape(layout: &Layout, shape: &[i128]) -> Eval<Option<Layout>> {
    let numel = layout.numel();
    let known: i128 = shape.iter().filter(|&&extent| extent != -1).product();
    let unknown = shape.iter().filter(|&&extent| extent == -1).count();
    let mut wanted = Vec::new();
    for &extent in shape {
        let extent = match extent {
            -1 if known > 0 => numel as i128 / known,
            extent => extent,
        };
        wanted.push(usize::try_from(extent).map_err(|_| fault!("an extent is {extent}"))?);
    }
    if unknown > 1 || wanted.iter().product::<usize>() != numel {
        let shape = show_shape(&layout.shape);
        return Err(fault!(
            "{shape} has {numel} elements and cannot become {}",
            show_shape(&wanted)
        ));
    }
    let dense = layout.is_contiguous();
    Ok(dense.then(|| Layout { offset: layout.offset, ..Layout::contiguous(&wanted) }))
}

/// Axes in the given order.
pub(super) fn permute(layout: &Layout, order: &[usize]) -> Eval<Layout> {
    let mut sorted = order.to_vec();
    sorted.sort_unstable();
    if sorted != (0..layout.shape.len()).collect::<Vec<_>>() {
        let rank = layout.shape.len();
        return Err(fault!("the axes must be a permutation of 0 to {}", rank.saturating_sub(1)));
    }
    Ok(Layout {
        shape: order.iter().map(|&axis| layout.shape[axis]).collect(),
        strides: order.iter().map(|&axis| layout.strides[axis]).collect(),
        offset: layout.offset,
    })
}
