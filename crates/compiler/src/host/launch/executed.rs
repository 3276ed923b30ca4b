//! Launches of a run that computes all numbers: they are executed where they happen, and memory holds then
//! what they leave.

use crate::host::Host;
use crate::host::launch::ObservedLaunch;
use crate::host::torch::data::{MAX_COMPUTED, contents};
use crate::host::torch::views;
use crate::host::value::contents::Contents;
use crate::host::value::dtype::is_float;
use crate::host::value::{Tensor, Value};

/// Executes launches.
pub(crate) trait Launcher {
    /// What a launch leaves in memory; nothing where that does not follow from what is known.
    fn left(&self, launch: &ObservedLaunch) -> Vec<LeftMemory>;
}

/// What a launch leaves in the memory that a kernel is given.
#[derive(Debug, Clone)]
pub(crate) struct LeftMemory {
    /// The allocation.
    pub(crate) id: u32,
    /// The element of it from which on it is known.
    pub(crate) from: usize,
    /// Whether its elements are integers or truth values.
    pub(crate) is_whole: bool,
    /// What it holds from there on.
    pub(crate) numbers: Vec<f64>,
}

impl Host<'_> {
    /// What allocations hold after a launch, where a run computes that.
    pub(super) fn memory_after(&mut self, launch: &ObservedLaunch) -> Vec<(u32, Contents)> {
        let is_certain = launch.complete && !launch.doubtful && self.doubt.is_straight();
        let Some(launcher) = self.launcher.filter(|_| is_certain) else { return Vec::new() };
        let mut launch = launch.clone();
        launch.args.iter_mut().for_each(|(_, value)| locate(value));
        let left = launcher.left(&launch);
        self.executed |= !left.is_empty();
        left.into_iter().filter_map(|left| Some((left.id, self.whole(left)?))).collect()
    }

    /// What all of an allocation holds of which a launch may have changed the end.
    fn whole(&self, left: LeftMemory) -> Option<Contents> {
        let dtype = if left.is_whole { "i64" } else { "fp64" };
        if left.from == 0 {
            return Some(contents(dtype, left.numbers));
        }
        let mut numbers = self.filled.get(&left.id)?.all(left.from)?;
        numbers.extend(left.numbers);
        Some(contents(dtype, numbers))
    }

    /// What a new allocation holds in which a constructor or a function made a tensor: all numbers of it one by
    /// one, where a run computes them and they are not too many.
    pub(crate) fn computed(&mut self, id: u32, tensor: &Tensor, known: Contents) -> Contents {
        let Some(count) = views::span(tensor).and_then(|count| usize::try_from(count).ok()) else {
            return known;
        };
        if self.launcher.is_none() || count > MAX_COMPUTED {
            return known;
        }
        let known = match (&known, tensor.dtype.as_deref()) {
            (Contents::Progression { .. }, Some(dtype)) if count > 0 => {
                match known.numbers(count) {
                    Some(numbers) if is_float(dtype) => Contents::Floats(
                        numbers.into_iter().map(|number| (number as f64).to_bits()).collect(),
                    ),
                    Some(numbers) => Contents::Listed(numbers.into()),
                    None => known,
                }
            }
            _ => known,
        };
        if let Contents::Floats(_) | Contents::Listed(_) = &known {
            self.filled.insert(id, known.clone());
        }
        known
    }

    /// Notes what an allocation holds of which a tensor is all.
    pub(crate) fn note_computed(&mut self, tensor: &Value) {
        if self.launcher.is_some()
            && let Value::Tensor(Tensor { storage: Some(storage), .. }) = tensor
            && let (Some(id), 0) = (storage.id, storage.before)
            && let Contents::Floats(_) | Contents::Listed(_) = &storage.contents
        {
            self.filled.insert(id, storage.contents.clone());
        }
    }
}

/// Gives a part of memory the number of the memory: what a launch writes to it is seen there.
fn locate(value: &mut Value) {
    if let Value::Tensor(Tensor { storage: Some(storage), .. }) = value {
        storage.id = storage.id.or(storage.part_of);
    }
}
