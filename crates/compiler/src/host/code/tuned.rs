//! Kernels that are tuned, and the configuration that was the fastest.

use std::sync::Arc;

use crate::hir::Name;
use crate::host::Host;
use crate::host::code::arguments::Args;
use crate::host::code::operators::join;
use crate::host::value::{Callable, TunedKernel, Tuner, Value};
use crate::project::{self, Resolution};
use crate::specialization::{Config, TupleNames, tuning_by};

impl Host<'_> {
    /// Tunes a kernel, or what was made of it.
    pub(crate) fn tune(&mut self, tuner: &Arc<Tuner>, args: &[(Option<Name>, Value)]) -> Value {
        let (kernel, mut tuners) = match Args(args).get(0, "fn") {
            Some(kernel) => kernel.clone().untuned(),
            None => return Value::Unknown,
        };
        let Value::Named(Resolution::Jit(at)) = kernel else { return Value::Unknown };
        self.tuned.push((at, Arc::clone(tuner)));
        tuners.push(Arc::clone(tuner));
        Value::Callable(Callable::Tuned(Arc::new(TunedKernel { at, tuners })))
    }

    /// `kernel.best_config` after a launch: any of the configurations may be the fastest. What all of them say is
    /// known.
    pub(crate) fn best_config(&self, kernel: &Value) -> Value {
        let (kernel, tuners) = kernel.clone().untuned();
        let Value::Named(Resolution::Jit(at)) = kernel else { return Value::Unknown };
        let Some(kernel) = project::kernel(self.sources, at) else { return Value::Unknown };
        let tuning = tuning_by(self.sources, &kernel, &tuners);
        match tuning.complete && !tuning.prunes() {
            true => common(&tuning.configs),
            false => Value::Unknown,
        }
    }
}

/// What is the same in each of these configurations, as one.
fn common(configs: &[Config]) -> Value {
    let configs: Vec<Config> = configs.iter().map(Config::spelled_out).collect();
    let of_all = |of_one: &dyn Fn(&Config) -> Value| {
        let all = configs.iter().map(of_one);
        all.reduce(|a, b| join(&a, &b)).unwrap_or(Value::Unknown)
    };
    let option = |of_one: fn(&Config) -> Option<u32>| {
        of_all(&|config| Value::Int(of_one(config).map(i128::from)))
    };
    let Some(first) = configs.first() else { return Value::Unknown };
    let value =
        |config: &Config, name: &Name| config.value(name).map_or(Value::Unknown, Value::from_const);
    let kwargs = first
        .kwargs
        .iter()
        .map(|(name, _)| (Value::Str(name.clone()), of_all(&|config| value(config, name))));
    let kwargs: Vec<(Value, Value)> = kwargs.collect();
    // Others may have more.
    let has_all = configs.iter().all(|config| config.kwargs.len() == kwargs.len());
    let kwargs = if has_all { Value::Dict(kwargs.into_iter().collect()) } else { Value::Unknown };
    let fields = ["kwargs", "num_warps", "num_stages", "num_ctas"].map(Name::from).to_vec();
    let options = [
        option(|config| config.num_warps),
        option(|config| config.num_stages),
        option(|config| config.num_ctas),
    ];
    Value::Record {
        names: Arc::new(TupleNames { class: "Config".into(), fields }),
        items: [kwargs].into_iter().chain(options).collect(),
    }
}
