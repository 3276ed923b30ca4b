//! The documented guess: what a kernel is compiled for when nothing in the source says.
//!
//! A parameter gets, in this order:
//!
//! 1. its default value, when it has one that is not `None` (a float or integer default of a
//!    parameter that is not constexpr gives only its type);
//! 2. the type that its annotation forces (`n: int` is `i32`, `x: float` is `fp32`);
//! 3. for a constexpr parameter, by use: a dtype is `fp32`; an option of a builtin that is a string
//!    is its usual one, and so is what has the option's name in its own (`CACHE_MODIFIER_A`) and is
//!    only handed on; a condition is `False`; what is
//!    compared for equality with strings, numbers or constants of the module is the first of
//!    them, if it is no extent and bounds nothing; what is only compared with `None` is `None`;
//!    the bound of an unrolled loop is 4, and what something is shifted by is 4; a tile extent is
//!    1024 when it is the only one in a kernel that neither multiplies matrices nor makes columns
//!    of tiles (`x[:, None]`), and 64 otherwise; a name that begins with `GROUP` is 8, `num_stages`
//!    and what only says how loops are pipelined is 3, `num_warps` is 4; what rule 4 would make `fp32` is 1.0,
//!    and any other number is 64;
//! 4. for other parameters, by use: what is indexed by numbers or taken apart is a
//!    tuple, of four where it does not show of how many; what is
//!    loaded or stored through, or whose elements' type is asked for, is `*fp32:16`, or `*i32:16`
//!    when what is loaded is counted up from an integer literal or compared with one by
//!    `atomic_cas`, or `*i64:16` when it serves as an index, bound or bit field, or its name says
//!    so (`indices`, `row_idx`, `cu_seqlens`); what has descriptor methods is
//!    `tensordesc<fp32[64, 64]>`, with extents of 1 before these for more offsets; what is only
//!    compared with `None` is `None`; what meets
//!    loaded data or floats in arithmetic and bounds nothing, or is called `eps`, `scale`,
//!    `alpha`, `beta`, `lr`, `p` or the like, is `fp32`; a mask is `i1`; anything else is `i32`.
//!
//! Pointers are found by use, not by name: see [`super::usage`]. A parameter that is never used
//! is a pointer when its name says so (`x_ptr`, `XPtr`, `pointer`).

use super::usage::{OPTIONS, Use};
use super::{ArgSpec, ConstArg};

/// Tile extent of a kernel with one constexpr extent.
const LONE_EXTENT: i128 = 1024;
/// Tile extent in general, and any integer about which nothing is known.
const EXTENT: i128 = 64;
/// Bits that something is shifted by: an element of any type has as many.
const SHIFT: i128 = 4;
/// Trip count of an unrolled loop.
const UNROLLED: i128 = 4;

/// What is known of a kernel as a whole.
#[derive(Debug, Clone, Copy)]
pub(super) struct KernelFacts {
    /// Number of constexpr parameters that are tile extents.
    pub(super) extents: usize,
    /// Whether it multiplies matrices.
    pub(super) has_dot: bool,
    /// Whether it makes columns of tiles.
    pub(super) has_columns: bool,
}

/// A constexpr parameter without a default.
/// `compared` is the first string or number that it is compared with for equality.
pub(super) fn constexpr(
    name: &str,
    uses: &Use,
    kernel: KernelFacts,
    compared: Option<ConstArg>,
) -> ConstArg {
    if uses.dtype {
        return ConstArg::DType("fp32".into());
    }
    if let Some(compared) = compared {
        return compared;
    }
    let option = uses.option.or_else(|| named_option(name).filter(|_| *uses == Use::default()));
    if uses.text || option.is_some() {
        return ConstArg::Str(option.unwrap_or_default().into());
    }
    let is_number = uses.extent || uses.number || uses.unrolled || uses.operand;
    if uses.none_test && !is_number {
        return ConstArg::None;
    }
    if uses.condition && !is_number {
        return ConstArg::Bool(false);
    }
    if is_float(name, uses) && !uses.extent {
        return ConstArg::Float(1f64.to_bits());
    }
    ConstArg::Int(integer(name, uses, kernel))
}

fn integer(name: &str, uses: &Use, kernel: KernelFacts) -> i128 {
    let lower = name.to_lowercase();
    match lower.as_str() {
        "num_stages" => 3,
        _ if uses.paces => 3,
        "num_warps" => 4,
        _ if lower.starts_with("group") => 8,
        _ if uses.unrolled && !uses.extent => UNROLLED,
        _ if uses.shift && !uses.extent => SHIFT,
        _ if uses.extent && kernel.extents == 1 && !kernel.has_dot && !kernel.has_columns => {
            LONE_EXTENT
        }
        _ => EXTENT,
    }
}

/// A parameter that is not constexpr, without default or annotation.
pub(super) fn runtime(name: &str, uses: &Use) -> ArgSpec {
    if uses.descriptor_rank > 0 {
        return descriptor(uses.descriptor_rank);
    }
    if uses.items {
        return tuple(name, uses);
    }
    if uses.pointer || (*uses == Use::default() && named_pointer(name)) {
        return pointer(name, uses);
    }
    if uses.none_test && !uses.operand {
        return ArgSpec::Constexpr(ConstArg::None);
    }
    number(match uses {
        _ if is_float(name, uses) => "fp32",
        Use { mask: true, operand: false, .. } => "i1",
        _ => "i32",
    })
}

fn pointer(name: &str, uses: &Use) -> ArgSpec {
    let integers = uses.integer_elements || named_index(name);
    let element = match uses {
        Use { counts: true, .. } => "*i32",
        _ if integers => "*i64",
        _ => "*fp32",
    };
    ArgSpec::Runtime { signature: element.into(), divisible_by_16: true }
}

/// As many arguments as the tuple is taken apart into, else as an unrolled loop has trips.
pub(super) fn tuple(name: &str, uses: &Use) -> ArgSpec {
    let count = if uses.parts > 0 { uses.parts } else { UNROLLED as usize };
    ArgSpec::Tuple(vec![element(name, uses); count].into())
}

/// The element called `name` of a tuple that is used so.
pub(super) fn element(name: &str, uses: &Use) -> ArgSpec {
    let is_pointer = uses.pointer || named_pointer(name);
    if is_pointer { pointer(name, uses) } else { number("i32") }
}

fn is_float(name: &str, uses: &Use) -> bool {
    (uses.float && !uses.integral) || named_float(name)
}

/// A descriptor of `rank` dimensions.
fn descriptor(rank: usize) -> ArgSpec {
    let sizes = (0..rank).map(|axis| if axis + 2 < rank { 1 } else { EXTENT });
    let sizes: Vec<String> = sizes.map(|size| size.to_string()).collect();
    number(&format!("tensordesc<fp32[{}]>", sizes.join(", ")))
}

/// A runtime argument about whose alignment nothing is known.
pub(super) fn number(signature: &str) -> ArgSpec {
    ArgSpec::Runtime { signature: signature.into(), divisible_by_16: false }
}

fn named_pointer(name: &str) -> bool {
    let lower = name.to_lowercase();
    lower.ends_with("ptr") || lower.ends_with("pointer") || lower.starts_with("ptr_")
}

/// Words in the names of tensors that hold indices or extents.
const INDEX_WORDS: &[&str] =
    &["ids", "idx", "index", "indices", "lens", "lengths", "offsets", "seqlen", "seqlens"];

fn named_index(name: &str) -> bool {
    name.to_lowercase().split('_').any(|word| INDEX_WORDS.contains(&word))
}

/// The usual value of the option of a builtin that a parameter is named for.
fn named_option(name: &str) -> Option<&'static str> {
    let lower = name.to_lowercase();
    let mut long = OPTIONS.iter().filter(|(option, _)| option.contains('_'));
    long.find(|(option, _)| lower.contains(option)).map(|(_, usual)| *usual)
}

/// Names that authors give to floating-point scalars.
const FLOAT_NAMES: &[&str] = &[
    "alpha",
    "beta",
    "dropout",
    "eps",
    "epsilon",
    "gamma",
    "lr",
    "momentum",
    "p",
    "prob",
    "scale",
    "sm_scale",
    "softcap",
    "temperature",
    "weight_decay",
];

fn named_float(name: &str) -> bool {
    let lower = name.to_lowercase();
    FLOAT_NAMES.contains(&lower.as_str())
        || lower.ends_with("_scale")
        || lower.ends_with("_eps")
        || lower.starts_with("eps_")
}
