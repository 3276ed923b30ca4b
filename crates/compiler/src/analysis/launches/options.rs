//! Options of launches: which there are, and which values they have.

use super::Site;
use crate::diagnostic::{Code, Diagnostic};
use crate::hir::{Expr, ExprId, Literal, Name};
use crate::ir::no_power_of_two;

/// The most threads that devices run in a block.
const MAX_THREADS: i128 = 1024;

impl Site<'_> {
    /// Options with values that they do not have.
    pub(super) fn options(&self) -> Vec<Diagnostic> {
        self.keyword_args().filter_map(|(name, value)| self.option(name, value)).collect()
    }

    /// Threads of a warp as the launch says, which back ends other than NVIDIA's may be told;
    /// `None` when that is not known.
    fn warp_size(&self) -> Option<i128> {
        let given = self
            .keyword_args()
            .find(|(name, _)| ["warp_size", "threads_per_warp"].contains(&&***name));
        match given.map(|(_, value)| &self.launch.body.exprs[value]) {
            None => Some(WARP_SIZE),
            Some(Expr::Literal(Literal::Int(size))) => Some(size.get()),
            Some(_) => None,
        }
    }

    fn option(&self, name: &Name, value: ExprId) -> Option<Diagnostic> {
        let counts = ["num_warps", "num_stages", "num_ctas", "maxnreg"];
        if !counts.contains(&&**name) || self.is_param(name) {
            return None;
        }
        if let Some(number) = self.integer(value) {
            let (code, message) = match &**name {
                "num_warps" => (Code::WarpCount, warp_count_fault(number, self.warp_size())?),
                _ => (Code::BadLaunchOption, count_fault(name, number)?),
            };
            return Some(self.finding(code, self.range(value), message));
        }
        match &self.launch.body.exprs[value] {
            Expr::Literal(literal @ (Literal::Float(_) | Literal::Str(_))) => {
                let kind = if matches!(literal, Literal::Str(_)) { "a string" } else { "a float" };
                let message = format!("`{name}` is an integer, but this is {kind}");
                Some(self.finding(Code::BadLaunchOption, self.range(value), message))
            }
            _ => None,
        }
    }
}

/// What is wrong with a number that Triton takes for the option `name`. Source: what Triton 3.6 and
/// ptxas refuse.
fn count_fault(name: &str, number: i128) -> Option<String> {
    match name {
        "num_ctas" => no_power_of_two(name, number),
        "maxnreg" if number == 0 => {
            Some("`maxnreg` is positive: no thread runs without registers".to_owned())
        }
        _ if i32::try_from(number).is_err() => {
            Some(format!("`{name}` is an integer of 32 bits, not {number}"))
        }
        _ => None,
    }
}

/// Threads of a warp, unless a launch says otherwise.
pub(super) const WARP_SIZE: i128 = 32;

/// What is wrong with a number of warps of `size` threads; nothing is said of how many there may be
/// where the size is not known.
pub(super) fn warp_count_fault(warps: i128, size: Option<i128>) -> Option<String> {
    if let Some(fault) = no_power_of_two("num_warps", warps) {
        return Some(fault);
    }
    let most = MAX_THREADS / size.filter(|size| *size > 0)?;
    (warps > most).then(|| {
        format!(
            "`num_warps` is at most {most}, not {warps}: a block has at most {MAX_THREADS} threads"
        )
    })
}
