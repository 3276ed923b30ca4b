//! Arguments of calls in host code, and what the parameters of a function get of them.

use crate::hir::{Function, Name, ParamKind};
use crate::host::torch::misuse::Mismatch;
use crate::host::value::{Tensor, Value};

/// The key and keyword that stand for whatever else a dict may hold that is taken apart by `**`.
pub(crate) const REST: &str = "**";

/// Positional and keyword arguments of a call.
pub(crate) struct Args<'a>(pub(crate) &'a [(Option<Name>, Value)]);

impl<'a> Args<'a> {
    /// The positional argument at `index`, or the keyword argument `name`.
    pub(crate) fn get(&self, index: usize, name: &str) -> Option<&'a Value> {
        let positional = self.0.iter().filter(|(name, _)| name.is_none()).nth(index);
        positional.map(|(_, value)| value).or_else(|| self.keyword(name))
    }

    /// The keyword argument `name`.
    pub(crate) fn keyword(&self, name: &str) -> Option<&'a Value> {
        let found = self.0.iter().find(|(known, _)| known.as_deref() == Some(name));
        found.map(|(_, value)| value)
    }

    /// All but the keyword argument `name`.
    pub(crate) fn without(&self, name: &str) -> Vec<(Option<Name>, Value)> {
        let rest = self.0.iter().filter(|(known, _)| known.as_deref() != Some(name));
        rest.cloned().collect()
    }

    /// The keyword arguments.
    pub(crate) fn keywords(&self) -> Vec<(Option<Name>, Value)> {
        self.0.iter().filter(|(name, _)| name.is_some()).cloned().collect()
    }

    /// The positional arguments.
    pub(crate) fn positional(&self) -> Vec<&'a Value> {
        self.0.iter().filter(|(name, _)| name.is_none()).map(|(_, value)| value).collect()
    }

    /// The bounds of a progression in order, by position or as `start=`, `end=` and `step=`.
    pub(crate) fn bounds(&self) -> Vec<&'a Value> {
        let mut bounds = self.positional();
        let named = match bounds.len() {
            0 => &["start", "end", "step"][..],
            1 => &["end", "step"],
            _ => &["step"],
        };
        bounds.extend(named.iter().filter_map(|name| self.keyword(name)));
        bounds
    }

    /// The tensor that is the first argument, or `input=`, and the other arguments.
    pub(crate) fn of_input(&self) -> Option<(&'a Tensor, Args<'a>)> {
        match self.keyword("input") {
            Some(Value::Tensor(tensor)) => Some((tensor, Args(self.0))),
            _ => self.of_tensor(),
        }
    }

    /// The tensor that is the first argument, and the arguments after it.
    pub(crate) fn of_tensor(&self) -> Option<(&'a Tensor, Args<'a>)> {
        match self.0.split_first()? {
            ((None, Value::Tensor(tensor)), rest) => Some((tensor, Args(rest))),
            _ => None,
        }
    }
}

/// What the parameters of a function, each with the way in which arguments reach it, get of `args`;
/// `None` for those left out.
pub(crate) fn bound(
    params: &[(&Name, ParamKind)],
    args: &[(Option<Name>, Value)],
) -> Vec<Option<Value>> {
    let positional: Vec<&Value> =
        args.iter().filter(|(name, _)| name.is_none()).map(|(_, value)| value).collect();
    let mut index = 0;
    let of_param = |(param, kind): &(&Name, ParamKind)| match kind {
        ParamKind::VarArgs => {
            let rest = positional.get(index..).unwrap_or_default();
            index = positional.len();
            Some(Value::Tuple(rest.iter().copied().cloned().collect()))
        }
        ParamKind::KwArgs => {
            let taken = |name: &Name| {
                params
                    .iter()
                    .any(|(param, kind)| *param == name && *kind != ParamKind::PositionalOnly)
            };
            let entry = |(name, value): &(Option<Name>, Value)| {
                let name = name.clone().filter(|name| !taken(name))?;
                Some((Value::Str(name), value.clone()))
            };
            Some(Value::Dict(args.iter().filter_map(entry).collect()))
        }
        _ => {
            let is_named = *kind != ParamKind::PositionalOnly;
            let named = args.iter().find(|(name, _)| is_named && name.as_ref() == Some(*param));
            let next = positional.get(index).filter(|_| kind.is_positional());
            index += usize::from(kind.is_positional());
            named.map(|(_, value)| value).or(next.copied()).cloned()
        }
    };
    params.iter().map(of_param).collect()
}

/// A keyword that is given twice.
pub(crate) fn repeated(args: &[(Option<Name>, Value)]) -> Option<&Name> {
    let names: Vec<&Name> = args.iter().filter_map(|(name, _)| name.as_ref()).collect();
    let is_again = |at: &usize| **names[*at] != *REST && names[..*at].contains(&names[*at]);
    (0..names.len()).find(is_again).map(|at| names[at])
}

/// Why Python refuses to call a function with `args`, of which none is left out and the first `own` do not
/// stand in the call; `None` where it does not.
pub(crate) fn mismatch(
    function: &Function,
    args: &[(Option<Name>, Value)],
    own: usize,
) -> Option<Mismatch> {
    if args.iter().any(|(name, _)| name.as_deref() == Some(REST)) {
        return None;
    }
    let params = &function.params;
    let takes = |kind| params.iter().any(|param| param.kind == kind);
    let positional: Vec<_> = params.iter().filter(|param| param.kind.is_positional()).collect();
    let given = args.iter().filter(|(name, _)| name.is_none()).count();
    if given > positional.len() && !takes(ParamKind::VarArgs) {
        let own = own.min(positional.len());
        return Some(Mismatch::TooMany { takes: positional.len() - own, given: given - own });
    }
    let named = |name: &Name| {
        let by_keyword = [ParamKind::Normal, ParamKind::KeywordOnly];
        params.iter().any(|param| param.name == *name && by_keyword.contains(&param.kind))
    };
    let keywords = || args.iter().filter_map(|(name, _)| name.as_ref());
    if let Some(name) = keywords().find(|name| !named(name)).filter(|_| !takes(ParamKind::KwArgs)) {
        return Some(Mismatch::NoParameter(name.clone()));
    }
    let by_position = positional.iter().take(given).map(|param| &param.name);
    if let Some(name) =
        by_position.filter(|name| named(name)).find(|name| keywords().any(|other| other == *name))
    {
        return Some(Mismatch::Twice(name.clone()));
    }
    let heads: Vec<_> = params.iter().map(|param| (&param.name, param.kind)).collect();
    let mut needed = params.iter().zip(bound(&heads, args));
    let missing = needed.find(|(param, given)| param.default.is_none() && given.is_none());
    missing.map(|(param, _)| Mismatch::Missing(param.name.clone()))
}
