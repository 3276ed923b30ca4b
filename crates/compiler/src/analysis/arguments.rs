//! What a known launch passes for the parameters of a kernel's IR.

use crate::ir::{Function, Value};
use crate::specialization::{KnownArg, KnownBuffer, KnownLaunch};

/// The buffer behind a parameter, if its size is known.
pub(super) fn buffer<'l>(
    func: &Function,
    launch: &'l KnownLaunch,
    param: usize,
) -> Option<&'l KnownBuffer> {
    match launch.arg(&func.params[param].name) {
        Some(KnownArg::Buffer(buffer)) => Some(buffer),
        _ => None,
    }
}

/// Whether no other argument is in the same memory, as far as that is known.
pub(super) fn is_alone(launch: &KnownLaunch, buffer: &KnownBuffer) -> bool {
    let same = launch.args.iter().filter(|(_, arg)| match arg {
        KnownArg::Buffer(other) => other.id == buffer.id,
        _ => false,
    });
    buffer.id.is_none() || same.count() == 1
}

/// Whether two parameters point to elements of one type, so that equal positions in one buffer are
/// equal addresses.
pub(super) fn in_one_unit(func: &Function, a: usize, b: usize) -> bool {
    let element = |param: usize| func.params[param].signature.trim_start_matches(['*', 'k']);
    element(a) == element(b)
}

/// The allocation behind a parameter, if it is known which one it is.
pub(super) fn storage(func: &Function, launch: &KnownLaunch, param: usize) -> Option<u32> {
    buffer(func, launch, param)?.id
}

/// Whether two parameters may point into the same memory.
pub(super) fn may_share(func: &Function, launch: &KnownLaunch, a: usize, b: usize) -> bool {
    let [of_a, of_b] = [a, b].map(|param| storage(func, launch, param));
    a == b || of_a.zip(of_b).is_none_or(|(a, b)| a == b)
}

/// Whether two parameters are certainly in one buffer.
pub(super) fn is_same_memory(func: &Function, launch: &KnownLaunch, a: usize, b: usize) -> bool {
    let [of_a, of_b] = [a, b].map(|param| storage(func, launch, param));
    a == b || of_a.is_some() && of_a == of_b && in_one_unit(func, a, b)
}

/// The arguments that a launch gives this number for.
pub(super) fn passed<'a>(
    func: &'a Function,
    launch: &'a KnownLaunch,
    number: i128,
) -> impl Iterator<Item = Value> + 'a {
    let params = func.params.iter().zip(&func.regions[func.body].args);
    params
        .filter(move |(param, _)| launch.arg(&param.name) == Some(&KnownArg::Int(number)))
        .map(|(_, value)| *value)
}
