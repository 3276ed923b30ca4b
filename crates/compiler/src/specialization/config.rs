//! One configuration of an autotuned kernel.

use std::sync::Arc;

use super::ConstArg;
use crate::hir::Name;
use crate::ir::LaunchOptions;
use crate::project::ItemRef;
use crate::source::FileRange;

/// One `triton.Config`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Config {
    /// Values of constexpr parameters.
    pub kwargs: Vec<(Name, ConstArg)>,
    /// Warps per CTA, if it says.
    pub num_warps: Option<u32>,
    /// Pipeline depth, if it says.
    pub num_stages: Option<u32>,
    /// CTAs per cluster, if it says.
    pub num_ctas: Option<u32>,
    /// Register limit per thread, if it says.
    pub max_registers: Option<u32>,
    /// The function that prepares the arguments of a launch, if it names one.
    pub pre_hook: Option<ItemRef>,
    /// Whether it names something that prepares the arguments, known or not.
    pub is_prepared: bool,
    /// The call that makes it.
    pub at: Option<FileRange>,
}

/// Which configuration something is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configured {
    /// Its position among all of the kernel, in what [`launched_tuning`](super::launched_tuning)
    /// finds.
    pub position: usize,
    /// How many the tuner chooses from.
    pub of: usize,
    /// The parameters that follow from which one it is: those that it sets, and what heuristics make of
    /// them.
    pub sets: Arc<[Name]>,
    /// The parameters whose memory is put back between the runs of tuning; `None` where nothing may
    /// be tuned, or what is put back is not known.
    pub restored: Option<Arc<[Name]>>,
}

impl Config {
    /// What it gives the parameter `name`.
    pub fn value(&self, name: &str) -> Option<&ConstArg> {
        self.kwargs.iter().find(|(known, _)| &**known == name).map(|(_, value)| value)
    }

    /// Whether both ask for the same, wherever they stand.
    pub fn is_same(&self, other: &Config) -> bool {
        self.spelled_out() == Config { at: self.at, ..other.spelled_out() }
    }

    /// The same with the launch options that `triton.Config` has where it is given none.
    pub(crate) fn spelled_out(&self) -> Config {
        let options = LaunchOptions::default();
        Config {
            num_warps: self.num_warps.or(Some(options.num_warps)),
            num_stages: self.num_stages.or(Some(options.num_stages)),
            num_ctas: self.num_ctas.or(Some(options.num_ctas)),
            ..self.clone()
        }
    }

    /// Its values of parameters and launch options as `NAME=VALUE` pairs.
    pub fn values(&self) -> Vec<(String, String)> {
        let options = [("num_warps", self.num_warps), ("num_stages", self.num_stages)];
        let options =
            options.into_iter().filter_map(|(name, value)| Some((name, value?.to_string())));
        let values = self.kwargs.iter().map(|(name, value)| (&**name, value.to_string()));
        values.chain(options).map(|(name, value)| (name.to_owned(), value)).collect()
    }
}
