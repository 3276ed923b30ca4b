//! Memory: loads, stores, block pointers, descriptors, atomics.

use super::{Builtin, Rule};
use crate::ir::AtomicOp;

const LOAD: &str = "pointer, mask=None, other=None, boundary_check: constexpr = (), padding_option: constexpr = '', cache_modifier: constexpr = '', eviction_policy: constexpr = '', volatile: constexpr = False";
const LOAD_3_9: &str = "pointer, mask=None, other=None, *, cache_modifier: constexpr = '', eviction_policy: constexpr = '', volatile: constexpr = False";
const STORE: &str = "pointer, value, mask=None, boundary_check: constexpr = (), cache_modifier: constexpr = '', eviction_policy: constexpr = ''";
const STORE_3_9: &str =
    "pointer, value, mask=None, *, cache_modifier: constexpr = '', eviction_policy: constexpr = ''";
const RMW: &str = "pointer, val, mask=None, sem: constexpr = None, scope: constexpr = None";

/// What to use instead of block pointers.
const NO_BLOCK_POINTERS: &str =
    "Triton 3.9 has no block pointers; use `tl.make_tensor_descriptor`.";

pub(super) const ROWS: &[Builtin] = &[
    Builtin::tl("load", LOAD, Rule::Load,
        "Reads through each pointer where `mask` is true; elsewhere gives `other`.\n\nThe result has the pointers' shape (broadcast with `mask` and `other`) and their element type. A scalar pointer takes a scalar mask. `other` needs `mask`; without it masked-off elements are undefined.")
        .in_3_9(LOAD_3_9),
    Builtin::tl("store", STORE, Rule::Store,
        "Writes `value`, converted to the pointers' element type, through each pointer where `mask` is true.\n\n`value` and `mask` broadcast to the pointers' shape; the pointers do not.")
        .in_3_9(STORE_3_9).method(),
    Builtin::tl("make_block_ptr", "base, shape, strides, offsets, block_shape: constexpr, order: constexpr", Rule::MakeBlockPtr,
        "A pointer to a block of an n-dimensional array in memory.").deprecated(NO_BLOCK_POINTERS),
    Builtin::tl("advance", "base, offsets", Rule::Advance,
        "A block pointer moved by `offsets`. The result must be used.").method().until_3_6().deprecated(NO_BLOCK_POINTERS)
        .must_use("`tl.advance` changes nothing: it gives the moved block pointer."),
    Builtin::tl("make_tensor_descriptor", "base, shape, strides, block_shape: constexpr, padding_option: constexpr = 'zero'", Rule::MakeDescriptor,
        "A descriptor of an array of 1 to 5 dimensions, to load and store blocks with bounds checks.\n\nThe last stride is 1 and the last extent of the block covers at least 16 bytes."),
    Builtin::tl("load_tensor_descriptor", "desc, offsets", Rule::DescriptorLoad,
        "Reads the block at `offsets`; elements outside the array are zero (or NaN)."),
    Builtin::tl("store_tensor_descriptor", "desc, offsets, value", Rule::DescriptorStore,
        "Writes `value` at `offsets`; elements outside the array are dropped."),
    Builtin::tl("atomic_add", RMW, Rule::AtomicRmw(AtomicOp::Add),
        "Atomically adds `val`; gives the old value. Takes 32- and 64-bit integers, and floats of 16 bits and more.").method(),
    Builtin::tl("atomic_max", RMW, Rule::AtomicRmw(AtomicOp::SMax),
        "Atomically takes the maximum with `val`; gives the old value. Takes 32- and 64-bit numbers.").method(),
    Builtin::tl("atomic_min", RMW, Rule::AtomicRmw(AtomicOp::SMin),
        "Atomically takes the minimum with `val`; gives the old value. Takes 32- and 64-bit numbers.").method(),
    Builtin::tl("atomic_and", RMW, Rule::AtomicRmw(AtomicOp::And),
        "Atomically combines with `val` by bitwise and; gives the old value.").method(),
    Builtin::tl("atomic_or", RMW, Rule::AtomicRmw(AtomicOp::Or),
        "Atomically combines with `val` by bitwise or; gives the old value.").method(),
    Builtin::tl("atomic_xor", RMW, Rule::AtomicRmw(AtomicOp::Xor),
        "Atomically combines with `val` by bitwise exclusive or; gives the old value.").method(),
    Builtin::tl("atomic_xchg", RMW, Rule::AtomicRmw(AtomicOp::Exchange),
        "Atomically writes `val`; gives the old value.").method(),
    Builtin::tl("atomic_cas", "pointer, cmp, val, sem: constexpr = None, scope: constexpr = None", Rule::AtomicCas,
        "Atomically writes `val` where the memory equals `cmp`; gives the old value. Takes 16, 32 and 64 bits.").method(),
    Builtin::tl("atomic_load", "pointer, mask=None, sem: constexpr = None, scope: constexpr = None", Rule::AtomicLoad,
        "Reads atomically. `sem` is 'acquire', the default, or 'relaxed'.").method().since_3_9(),
    Builtin::tl("atomic_store", "pointer, val, mask=None, sem: constexpr = None, scope: constexpr = None", Rule::AtomicStore,
        "Writes atomically. `sem` is 'release', the default, or 'relaxed'.").method().since_3_9(),
    Builtin::tl("atomic_poll", "pointer, expected_value, sem: constexpr = None, scope: constexpr = None, timeout_ns=None", Rule::AtomicPoll,
        "Loads again and again, until each element has equaled `expected_value` once; gives a bit each. Takes integers of 16, 32 and 64 bits.").method().since_3_9(),
];

/// Methods of tensor descriptors.
pub(super) const DESCRIPTOR_METHODS: &[Builtin] = &[
    Builtin::tl(
        "load",
        "desc, offsets",
        Rule::DescriptorLoad,
        "Reads the block at `offsets`; elements outside the array are zero (or NaN).",
    ),
    Builtin::tl(
        "store",
        "desc, offsets, value",
        Rule::DescriptorStore,
        "Writes `value` at `offsets`; elements outside the array are dropped.",
    ),
    Builtin::tl(
        "gather",
        "desc, x_offsets, y_offset",
        Rule::DescriptorGather,
        "Reads the rows `x_offsets` from column `y_offset` on. The block has one row.",
    ),
    Builtin::tl(
        "scatter",
        "desc, value, x_offsets, y_offset",
        Rule::DescriptorScatter,
        "Writes to the rows `x_offsets` from column `y_offset` on. The block has one row.",
    ),
    Builtin::tl(
        "atomic_add",
        "desc, offsets, value",
        Rule::DescriptorAtomic(AtomicOp::Add),
        "Atomically adds `value` to the block at `offsets`.",
    ),
    Builtin::tl(
        "atomic_min",
        "desc, offsets, value",
        Rule::DescriptorAtomic(AtomicOp::SMin),
        "Atomically takes the minimum with `value` in the block at `offsets`.",
    ),
    Builtin::tl(
        "atomic_max",
        "desc, offsets, value",
        Rule::DescriptorAtomic(AtomicOp::SMax),
        "Atomically takes the maximum with `value` in the block at `offsets`.",
    ),
    Builtin::tl(
        "atomic_and",
        "desc, offsets, value",
        Rule::DescriptorAtomic(AtomicOp::And),
        "Atomically combines the block at `offsets` with `value` by bitwise and.",
    ),
    Builtin::tl(
        "atomic_or",
        "desc, offsets, value",
        Rule::DescriptorAtomic(AtomicOp::Or),
        "Atomically combines the block at `offsets` with `value` by bitwise or.",
    ),
    Builtin::tl(
        "atomic_xor",
        "desc, offsets, value",
        Rule::DescriptorAtomic(AtomicOp::Xor),
        "Atomically combines the block at `offsets` with `value` by bitwise exclusive or.",
    ),
];
