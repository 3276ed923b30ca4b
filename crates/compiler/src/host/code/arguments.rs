//! Arguments of calls in host code, and what the parameters of a function get of them.

use crate::hir::{Name, ParamKind};
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

    /// The keyword arguments.
    pub(crate) fn keywords(&self) -> Vec<(Option<Name>, Value)> {
        self.0.iter().filter(|(name, _)| name.is_some()).cloned().collect()
    }

    /// The positional arguments.
    pub(crate) fn positional(&self) -> Vec<&'a Value> {
        self.0.iter().filter(|(name, _)| name.is_none()).map(|(_, value)| value).collect()
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
