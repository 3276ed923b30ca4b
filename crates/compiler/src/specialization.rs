//! Specializations: what a kernel is compiled for.

use std::fmt;
use std::sync::Arc;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::builtins::TritonVersion;
use crate::diagnostic::Code;
use crate::hir::Name;
use crate::host::torch_name;
use crate::ir::LaunchOptions;
use crate::project::ItemRef;

mod alternatives;
mod argument;
mod bind;
mod config;
mod discover;
mod facts;
mod flags;
mod guess;
mod heuristics;
mod known;
mod launches;
mod preview;
mod spelled;
mod stated;
#[cfg(test)]
pub(crate) mod tests;
mod trials;
mod tuned;
mod tuning;
mod usage;
mod written;

pub(crate) use alternatives::alternatives;
pub use argument::{Annotated, annotated};
pub(crate) use bind::{executed_launch, launched};
pub use config::{Config, Configured};
pub(crate) use discover::under_sizes;
pub use discover::{Discovery, bind, discover};
pub use facts::Facts;
pub use flags::{Flags, parse_value};
pub use heuristics::{Passed, heuristics};
pub use known::{
    ArgFault, Caller, GridFault, Happened, KnownArg, KnownBuffer, KnownLaunch, LaunchSite, Past,
    PastLaunch, PastStep,
};
pub use launches::ShownLaunches;
pub use preview::{Previewed, preview, shown_by};
pub use tuned::{scenario_edits, scenario_variables};
pub use tuning::{Tuning, launched_tuning, tuning};
pub(crate) use tuning::{called_tunings, decorated_tuning, gets_configs, tuning_by};
pub use usage::{Usage, may_write, usage};
pub(crate) use usage::{leaves_lanes, uses};
pub use written::{LaunchGap, WrittenLaunch, tuned_launches, written_launches, written_options};

/// Where a specialization comes from. Guesses are always labelled, and what is found under one alone is not told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// Command-line flags or the user's pin in the editor.
    Flags,
    /// A scenario.
    Scenario,
    /// A launch in host code.
    Launch,
    /// An autotune configuration, or what a decorator states that tunes by rules of its own.
    Autotune,
    /// The documented guess.
    Guess,
}

/// What is known of one parameter at a launch.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ArgSpec {
    /// A runtime argument.
    Runtime {
        /// Triton's signature spelling: `*fp16`, `*ki64`, `i32`, `u1`, `fp32`,
        /// `tensordesc<fp16[128, 64]>`, ...
        signature: Arc<str>,
        /// The address or number is known to be a multiple of 16.
        divisible_by_16: bool,
    },
    /// A compile-time value: constexpr parameters, `None`, and integers equal to 1.
    Constexpr(ConstArg),
    /// A tuple of arguments.
    Tuple(TupleArg),
}

/// A tuple of arguments.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TupleArg {
    /// Its elements.
    pub items: Vec<ArgSpec>,
    /// What a named tuple's class and fields are called.
    pub named: Option<Arc<TupleNames>>,
}

/// What a named tuple is called.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TupleNames {
    /// The class.
    pub class: Name,
    /// The fields, one per element.
    pub fields: Vec<Name>,
}

impl From<Vec<ArgSpec>> for TupleArg {
    fn from(items: Vec<ArgSpec>) -> TupleArg {
        TupleArg { items, named: None }
    }
}

/// A compile-time argument.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ConstArg {
    /// `None`.
    None,
    /// A bool.
    Bool(bool),
    /// An integer.
    Int(i128),
    /// A float, by its bits.
    Float(u64),
    /// A string.
    Str(Arc<str>),
    /// A dtype by its signature spelling (`fp16`).
    DType(Arc<str>),
    /// A dtype of PyTorch, which kernels can only compare, by the signature spelling of the same one of
    /// Triton.
    TorchDType(Arc<str>),
    /// A jit function, by module-level name visible where the kernel is defined.
    Function(Arc<str>),
    /// A member of an enumeration.
    Member(MemberArg),
    /// A tuple.
    Tuple(Vec<ConstArg>),
}

/// A member of an enumeration as an argument.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MemberArg {
    /// The class.
    pub class: ItemRef,
    /// What the class is called.
    pub class_name: Name,
    /// The member.
    pub name: Name,
}

impl fmt::Display for MemberArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.class_name, self.name)
    }
}

/// Everything that a kernel is compiled for, apart from the architecture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Specialization {
    /// One entry per parameter, by name, in parameter order.
    pub args: IndexMap<Name, ArgSpec>,
    /// Launch options.
    pub options: LaunchOptions,
    /// Where it comes from.
    pub origin: Origin,
    /// Parameters whose type or value nothing in the source shows and a guess stands in for, in
    /// parameter order. What is wrong only because of a guess is not the author's mistake.
    pub assumed: Vec<Name>,
    /// Those of `assumed` that only say how loops are pipelined.
    pub pacing: Vec<Name>,
    /// Those of `assumed` that certainly are memory or numbers at run time: no branch of the kernel asks which.
    pub plain: Vec<Name>,
    /// Launches that the source shows, each with what is known of it.
    pub launches: Vec<KnownLaunch>,
    /// The autotune configuration that it is for.
    pub config: Option<Configured>,
}

impl Specialization {
    /// What a kernel is compiled for that gets these arguments, under the usual launch options.
    pub fn new(origin: Origin, args: IndexMap<Name, ArgSpec>) -> Specialization {
        Specialization {
            args,
            options: LaunchOptions::default(),
            origin,
            assumed: Vec::new(),
            pacing: Vec::new(),
            plain: Vec::new(),
            launches: Vec::new(),
            config: None,
        }
    }

    /// True when nothing in it is a guess, so that what is wrong under it is wrong.
    pub fn is_certain(&self) -> bool {
        self.assumed.is_empty() && self.origin != Origin::Guess
    }

    /// True when no guess stands in for anything on which values depend. Resources may.
    pub(crate) fn computes_as_known(&self) -> bool {
        self.guesses().next().is_none()
    }

    /// What is assumed and what values depend on.
    fn guesses(&self) -> impl Iterator<Item = &Name> {
        self.assumed.iter().filter(|name| !self.pacing.contains(name))
    }

    /// True when none of the launches need ever happen.
    fn is_doubtful(&self) -> bool {
        !self.launches.is_empty() && self.launches.iter().all(|launch| launch.doubtful)
    }

    /// True when an argument is a tensor descriptor whose block a tuning hook may replace: what
    /// the host passes is then often a placeholder.
    fn has_tuned_descriptor(&self) -> bool {
        let is_descriptor = |arg: &ArgSpec| match arg {
            ArgSpec::Runtime { signature, .. } => signature.starts_with("tensordesc<"),
            _ => false,
        };
        self.origin == Origin::Autotune && self.args.values().any(is_descriptor)
    }

    /// True when a finding of `code` under this specialization is the author's mistake, whatever
    /// the assumed arguments turn out to be. Shapes and compile-time values do not depend on the
    /// types of arguments; assertions may test those. Under a guessed compile-time value it is one of
    /// inference for all values.
    pub fn proves(&self, code: Code) -> bool {
        // Launches and configurations are told of the options that they write where they stand.
        let computes_warps = |launch: &KnownLaunch| {
            launch.arg_faults.iter().any(|fault| matches!(fault, ArgFault::Warps(_)))
        };
        let is_told = code == Code::WarpCount && !self.launches.iter().any(computes_warps);
        let of_launch = matches!(
            code,
            Code::MissingLaunchArgument
                | Code::SurplusArgument
                | Code::RepeatedArgument
                | Code::UnknownArgument
                | Code::ArgumentType
                | Code::WarpCount
        );
        // What a launch gives is given whatever a configuration adds.
        let is_launched = of_launch && !self.launches.is_empty();
        if self.is_tried() && code.is_tried() {
            return !self.guesses_a_tuple() && !self.is_doubtful();
        }
        if self.proves_nothing(is_launched) || is_told {
            return false;
        }
        if self.is_certain() || of_launch {
            return true;
        }
        if self.computes_as_known() {
            return !code.is_resource();
        }
        // Where accesses are does not depend on the types of other memory, and not on numbers of which
        // nothing is known.
        if code.is_of_accesses() && self.guesses().all(|name| self.plain.contains(name)) {
            return true;
        }
        if self.guesses_a_value() {
            // Extents that host code chooses by the device are for a device that is not known.
            return matches!(
                code,
                Code::DotShape
                    | Code::DotType
                    | Code::BroadcastMismatch
                    | Code::ReshapeCount
                    | Code::StoreShape
                    | Code::MaskShape
            );
        }
        let by_shape = matches!(code.family(), "shape" | "constexpr") && code != Code::StaticAssert;
        // Which lanes a mask lets through depends on types as little.
        by_shape || matches!(code, Code::MaskShape | Code::UndefinedLanes | Code::MaskAxis)
    }

    /// True when some finding may be the author's mistake, whatever the guesses are.
    pub(crate) fn proves_something(&self) -> bool {
        let is_launched = self.launches.iter().any(|launch| !launch.arg_faults.is_empty());
        !self.proves_nothing(is_launched)
    }

    /// True when no finding under this specialization need be the author's mistake, of a launch if
    /// `is_launched`.
    fn proves_nothing(&self, is_launched: bool) -> bool {
        let launched = is_launched || matches!(self.origin, Origin::Launch | Origin::Scenario);
        self.origin == Origin::Guess
            || self.guesses_a_tuple()
            || (self.guesses_a_value() && !launched)
            || self.has_tuned_descriptor()
            || self.is_doubtful()
    }

    /// True when a guess stands in for a tuple, whose elements may be compile-time values.
    fn guesses_a_tuple(&self) -> bool {
        self.assumed.iter().any(|name| matches!(self.args.get(name), Some(ArgSpec::Tuple(_))))
    }

    /// True when a guess stands in for a compile-time value. What such a kernel computes depends on
    /// the guess, so only what is wrong for all values of it is the author's mistake; see
    /// [`Lowering::check`](crate::eval::Lowering::check).
    pub(crate) fn guesses_a_value(&self) -> bool {
        self.tried().next().is_some()
    }
}

/// Specializations of a kernel whose masks are worth looking at, and whose launches are executed: further ones
/// differ in sizes, by which masks are hardly ever right or wrong.
pub const CHECKED_CLOSELY: usize = 3;

/// Positions of those among the specializations of a kernel under which something may be found that
/// is the author's mistake. Warps and stages, which configurations vary, do not matter to that, so
/// of those that differ in nothing else the first counts. The first of them, which are looked at most
/// closely, are of different modes.
pub fn worth_checking(found: &[&Specialization]) -> Vec<usize> {
    let mut chosen: Vec<usize> = Vec::new();
    for (index, spec) in found.iter().enumerate() {
        let same = |known: &usize| {
            let known = found[*known];
            known.args == spec.args && known.launches == spec.launches
        };
        if (spec.proves_something() || spec.is_tried()) && !chosen.iter().any(same) {
            chosen.push(index);
        }
    }
    first_of_each_mode(found, &mut chosen);
    chosen
}

/// Moves forward, up to the number that is looked at closely, which of the specializations at `chosen` have
/// most compile-time values that those before them lack. Numbers, which say how large something is, do not
/// count. Of several that have as many, one whose blocks do not divide sizes tells most of masks.
fn first_of_each_mode(found: &[&Specialization], chosen: &mut [usize]) {
    let modes = |index: usize| {
        let values = found[index].args.iter();
        values.filter(|(_, arg)| match arg {
            ArgSpec::Constexpr(value) => !matches!(value, ConstArg::Int(_) | ConstArg::Float(_)),
            _ => false,
        })
    };
    for next in 1..chosen.len().min(CHECKED_CLOSELY) {
        let (before, rest) = chosen.split_at(next);
        let is_new = |mode: &(&Name, &ArgSpec)| {
            !before.iter().any(|known| modes(*known).any(|known| known == *mode))
        };
        let new = |index: usize| modes(index).filter(is_new).count();
        let newest = (0..rest.len())
            .max_by_key(|at| (new(rest[*at]), has_rest(found[rest[*at]]), std::cmp::Reverse(*at)));
        chosen[next..=next + newest.unwrap_or(0)].rotate_right(1);
    }
}

/// Whether a launch gives a size that no block divides.
fn has_rest(spec: &Specialization) -> bool {
    let blocks: Vec<i128> = spec
        .args
        .iter()
        .filter_map(|(_, arg)| match arg {
            ArgSpec::Constexpr(ConstArg::Int(block)) if *block > 1 => Some(*block),
            _ => None,
        })
        .filter(|block| block & (block - 1) == 0)
        .collect();
    let leaves_rest = |size: i128| size > 1 && blocks.iter().all(|block| size % block != 0);
    let mut sizes = spec.launches.iter().flat_map(|launch| &launch.args);
    !blocks.is_empty()
        && sizes.any(|(_, arg)| matches!(arg, KnownArg::Int(size) if leaves_rest(*size)))
}

impl fmt::Display for Specialization {
    /// The label that users see, such as `x_ptr=*fp32:16 n=i32 BLOCK=1024 num_warps=4`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, arg) in &self.args {
            write!(f, "{name}={arg} ")?;
        }
        write!(f, "num_warps={}", self.options.num_warps)?;
        write!(f, " num_stages={}", self.options.num_stages)
    }
}

impl fmt::Display for ArgSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ArgSpec::Runtime { signature, divisible_by_16 } => {
                write!(f, "{signature}{}", if *divisible_by_16 { ":16" } else { "" })
            }
            ArgSpec::Constexpr(value) => write!(f, "{value}"),
            ArgSpec::Tuple(tuple) => write!(f, "{tuple}"),
        }
    }
}

impl fmt::Display for TupleArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(named) = &self.named {
            f.write_str(&named.class)?;
        }
        write_tuple(f, &self.items)
    }
}

impl fmt::Display for ConstArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConstArg::None => f.write_str("None"),
            ConstArg::Bool(true) => f.write_str("True"),
            ConstArg::Bool(false) => f.write_str("False"),
            ConstArg::Int(value) => write!(f, "{value}"),
            ConstArg::Float(bits) => write!(f, "{:?}", f64::from_bits(*bits)),
            ConstArg::Str(text) => write!(f, "{text:?}"),
            ConstArg::DType(name) | ConstArg::Function(name) => f.write_str(name),
            ConstArg::TorchDType(name) => f.write_str(&torch_name(name)),
            ConstArg::Member(member) => write!(f, "{member}"),
            ConstArg::Tuple(items) => write_tuple(f, items),
        }
    }
}

fn write_tuple<T: fmt::Display>(f: &mut fmt::Formatter<'_>, items: &[T]) -> fmt::Result {
    f.write_str("(")?;
    for (at, item) in items.iter().enumerate() {
        write!(f, "{}{item}", if at == 0 { "" } else { ", " })?;
    }
    f.write_str(")")
}

impl TritonVersion {
    /// The version spelled `3.6` or `3.9`.
    pub fn from_name(name: &str) -> Option<TritonVersion> {
        match name {
            "3.6" => Some(TritonVersion::V3_6),
            "3.9" => Some(TritonVersion::V3_9),
            _ => None,
        }
    }
}

impl fmt::Display for TritonVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TritonVersion::V3_6 => "3.6",
            TritonVersion::V3_9 => "3.9",
        })
    }
}
