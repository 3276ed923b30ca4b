//! Options that are strings: what each of them may say, and what that means.

use std::borrow::Cow;

use super::TritonVersion;
use super::{Builtin, Rule};
use crate::ir::{
    CacheModifier, DotPrecision, Eviction, MemoryOrder, MemoryScope, Rounding, ScaledFormat,
};

/// One thing that an option may say.
#[derive(Debug, Clone, Copy)]
pub struct Choice<T = ()> {
    /// The string.
    pub text: &'static str,
    /// What it stands for.
    pub value: T,
    /// What that means, in Markdown.
    pub doc: &'static str,
    /// The first version that takes it.
    pub since: TritonVersion,
}

impl<T: Copy> Choice<T> {
    const fn new(text: &'static str, value: T, doc: &'static str) -> Choice<T> {
        Choice { text, value, doc, since: TritonVersion::V3_6 }
    }

    const fn since_3_9(self) -> Choice<T> {
        Choice { since: TritonVersion::V3_9, ..self }
    }
}

/// What lies outside of an array when a block of it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Padding {
    /// Zeros.
    Zero,
    /// NaN.
    Nan,
}

pub(crate) const LOAD_CACHE: &[Choice<CacheModifier>] = &[
    Choice::new("", CacheModifier::Default, "As the hardware does by itself."),
    Choice::new(".ca", CacheModifier::Ca, "Cached at all levels."),
    Choice::new(".cg", CacheModifier::Cg, "Cached in L2, not in L1."),
    Choice::new(".cv", CacheModifier::Cv, "Fetched anew: not cached, since others may write it."),
    Choice::new(".cs", CacheModifier::Cs, "Cached as data that is read once.").since_3_9(),
];

pub(crate) const STORE_CACHE: &[Choice<CacheModifier>] = &[
    Choice::new("", CacheModifier::Default, "As the hardware does by itself."),
    Choice::new(".wb", CacheModifier::Wb, "Written back at all levels."),
    Choice::new(".cg", CacheModifier::Cg, "Cached in L2, not in L1."),
    Choice::new(".cs", CacheModifier::Cs, "Cached as data that is used once."),
    Choice::new(".wt", CacheModifier::Wt, "Written through to memory."),
];

pub(crate) const EVICTION: &[Choice<Eviction>] = &[
    Choice::new("", Eviction::Normal, "As other data."),
    Choice::new("evict_normal", Eviction::Normal, "As other data.").since_3_9(),
    Choice::new("evict_first", Eviction::First, "Leaves the cache before other data."),
    Choice::new("evict_last", Eviction::Last, "Leaves the cache after other data."),
];

pub(crate) const PADDING: &[Choice<Padding>] = &[
    Choice::new("", Padding::Zero, "Zeros outside of the array."),
    Choice::new("zero", Padding::Zero, "Zeros outside of the array."),
    Choice::new("nan", Padding::Nan, "NaN outside of the array; for floats."),
];

pub(crate) const ORDERS: &[Choice<MemoryOrder>] = &[
    Choice::new("acq_rel", MemoryOrder::AcqRel, "Acquires and releases: the default."),
    Choice::new("acquire", MemoryOrder::Acquire, "What follows happens after it."),
    Choice::new("release", MemoryOrder::Release, "What precedes happens before it."),
    Choice::new("relaxed", MemoryOrder::Relaxed, "Orders nothing else; the fastest."),
];

pub(crate) const SCOPES: &[Choice<MemoryScope>] = &[
    Choice::new(
        "gpu",
        MemoryScope::Gpu,
        "Seen in order by all threads of the device: the default.",
    ),
    Choice::new("cta", MemoryScope::Cta, "Seen in order by the threads of one program."),
    Choice::new("sys", MemoryScope::Sys, "Seen in order by the host and other devices too."),
];

pub(crate) const PRECISIONS: &[Choice<DotPrecision>] = &[
    Choice::new(
        "tf32",
        DotPrecision::Tf32,
        "Operands are rounded to TF32: the default for `fp32`.",
    ),
    Choice::new(
        "tf32x3",
        DotPrecision::Tf32x3,
        "Three products of TF32, nearly as exact as `fp32`.",
    ),
    Choice::new("ieee", DotPrecision::Ieee, "`fp32` throughout, without tensor cores."),
    Choice::new("bf16x3", DotPrecision::Bf16x3, "Three products of `bf16`."),
    Choice::new("bf16x6", DotPrecision::Bf16x6, "Six products of `bf16`."),
];

pub(crate) const FORMATS: &[Choice<ScaledFormat>] = &[
    Choice::new("e2m1", ScaledFormat::E2M1, "4-bit floats, two to a byte."),
    Choice::new("e4m3", ScaledFormat::E4M3, "8-bit floats with 4 bits of exponent."),
    Choice::new("e5m2", ScaledFormat::E5M2, "8-bit floats with 5 bits of exponent."),
    Choice::new("bf16", ScaledFormat::Bf16, "`bf16`."),
    Choice::new("fp16", ScaledFormat::Fp16, "`fp16`."),
];

pub(crate) const ROUNDINGS: &[Choice<Rounding>] = &[
    Choice::new("rtne", Rounding::Nearest, "To the nearest value, ties to even: the default."),
    Choice::new("rtz", Rounding::TowardZero, "Toward zero."),
];

/// What is passed for `parameter` as [`Choice::text`] has it: Triton 3.9 takes cache modifiers without
/// their dot, and `none`. Source: `_CachePolicy` of its `language/core.py`.
pub(crate) fn canonical<'t>(
    parameter: &str,
    text: &'t str,
    version: TritonVersion,
) -> Cow<'t, str> {
    let dotted = parameter == "cache_modifier" && version >= TritonVersion::V3_9;
    match text.strip_prefix('.').unwrap_or(text) {
        "none" if dotted => Cow::Borrowed(""),
        bare if dotted && !bare.is_empty() => Cow::Owned(format!(".{bare}")),
        _ => Cow::Borrowed(text),
    }
}

/// Whether an atomic operation that by itself has the order `default` may have another one: those
/// that only read or only write have their own or none.
pub(crate) fn takes_order(default: MemoryOrder, order: MemoryOrder) -> bool {
    default == MemoryOrder::AcqRel || order == default || order == MemoryOrder::Relaxed
}

/// The order of an atomic operation that is given none.
pub(crate) fn default_order(rule: Rule) -> MemoryOrder {
    match rule {
        Rule::AtomicLoad | Rule::AtomicPoll => MemoryOrder::Acquire,
        Rule::AtomicStore => MemoryOrder::Release,
        _ => MemoryOrder::AcqRel,
    }
}

impl Builtin {
    /// What the string that is passed for `parameter` may say in `version`; empty where it is no such
    /// option.
    pub fn choices(&self, parameter: &str, version: TritonVersion) -> Vec<Choice> {
        let orders =
            |choice: &&Choice<MemoryOrder>| takes_order(default_order(self.rule), choice.value);
        match (parameter, self.rule) {
            ("cache_modifier", Rule::Store) => plain(STORE_CACHE, version),
            ("cache_modifier", _) => plain(LOAD_CACHE, version),
            ("eviction_policy", _) => plain(EVICTION, version),
            ("padding_option", _) => plain(PADDING, version),
            ("sem", _) => plain(ORDERS.iter().filter(orders), version),
            ("scope", _) => plain(SCOPES, version),
            ("input_precision", _) => plain(PRECISIONS, version),
            ("lhs_format" | "rhs_format", _) => plain(FORMATS, version),
            ("fp_downcast_rounding", _) => plain(ROUNDINGS, version),
            _ => Vec::new(),
        }
    }
}

fn plain<'c, T: 'c>(
    choices: impl IntoIterator<Item = &'c Choice<T>>,
    version: TritonVersion,
) -> Vec<Choice> {
    let known = choices.into_iter().filter(|choice| choice.since <= version);
    let plain = known.map(|choice| {
        let Choice { text, doc, since, .. } = *choice;
        Choice { text, value: (), doc, since }
    });
    plain.collect()
}
