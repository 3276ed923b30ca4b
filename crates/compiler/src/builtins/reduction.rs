//! Reductions, scans, sorting.

use super::{Builtin, Rule};

pub(super) const ROWS: &[Builtin] = &[
    Builtin::tl("reduce", "input, axis: constexpr, combine_fn, keep_dims: constexpr = False", Rule::Reduce,
        "Combines all elements along `axis` (all axes for `None`) by a jit function that takes two elements and returns one.\n\nA tuple as `input` reduces several tiles at once. The function must be associative.").method(),
    Builtin::tl("sum", "input, axis: constexpr = None, keep_dims: constexpr = False, dtype: constexpr = None", Rule::Sum,
        "Sum along `axis`, or of all elements. Integers narrower than 32 bits are summed in 32 bits.").method(),
    Builtin::tl("max", "input, axis: constexpr = None, return_indices: constexpr = False, return_indices_tie_break_left: constexpr = True, keep_dims: constexpr = False", Rule::ReduceExtremum { max: true },
        "Maximum along `axis`, or of all elements; with `return_indices=True` also its position as `int32`.").method(),
    Builtin::tl("min", "input, axis: constexpr = None, return_indices: constexpr = False, return_indices_tie_break_left: constexpr = True, keep_dims: constexpr = False", Rule::ReduceExtremum { max: false },
        "Minimum along `axis`, or of all elements; with `return_indices=True` also its position as `int32`.").method(),
    Builtin::tl("argmax", "input, axis: constexpr, tie_break_left: constexpr = True, keep_dims: constexpr = False", Rule::ArgExtremum { max: true },
        "Position of the maximum along `axis`, `int32`.").method(),
    Builtin::tl("argmin", "input, axis: constexpr, tie_break_left: constexpr = True, keep_dims: constexpr = False", Rule::ArgExtremum { max: false },
        "Position of the minimum along `axis`, `int32`.").method(),
    Builtin::tl("xor_sum", "input, axis: constexpr = None, keep_dims: constexpr = False", Rule::XorSum,
        "Bitwise exclusive or of the integers along `axis`, or of all.").method(),
    Builtin::tl("reduce_or", "input, axis: constexpr, keep_dims: constexpr = False", Rule::ReduceOr,
        "Bitwise or of the integers along `axis`.").method(),
    Builtin::tl("associative_scan", "input, axis: constexpr, combine_fn, reverse: constexpr = False", Rule::AssociativeScan,
        "Inclusive prefix combination along `axis` by an associative jit function.").method(),
    Builtin::tl("cumsum", "input, axis: constexpr = 0, reverse: constexpr = False, dtype: constexpr = None", Rule::CumSum,
        "Running sum along `axis`, from the end with `reverse=True`.").method(),
    Builtin::tl("cumprod", "input, axis: constexpr = 0, reverse: constexpr = False", Rule::CumProd,
        "Running product along `axis`, from the end with `reverse=True`.").method()
        .in_3_9("input, axis: constexpr = 0, reverse: constexpr = False, dtype: constexpr = None"),
    Builtin::tl("sort", "x, dim: constexpr = None, descending: constexpr = 0", Rule::Sort,
        "Sorts along the last axis.").method(),
    Builtin::tl("topk", "x, k: constexpr, dim: constexpr = None", Rule::TopK,
        "The `k` largest elements along the last axis, largest first. `k` is a power of two.")
        .in_3_9("x, k: constexpr, dim: constexpr = None, descending: constexpr = 1"),
    Builtin::tl("bitonic_merge", "x, dim: constexpr = None, descending: constexpr = 0", Rule::BitonicMerge,
        "Sorts a bitonic sequence along the last axis."),
    Builtin::tl("histogram", "input, num_bins: constexpr, mask=None", Rule::Histogram,
        "How often each of `0..num_bins` occurs in a one-dimensional integer tile. Gives `tile<num_bins x int32>`.").method(),
];
