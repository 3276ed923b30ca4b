//! Members of PyTorch by which host code is checked for misspelled ones. The table is made by
//! `tests/torch/table.py`, which says how it is written.

use std::sync::LazyLock;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::diagnostic::misspelled;
use crate::hir::Name;

/// Names, in no order.
pub(crate) type Names = FxHashSet<&'static str>;

/// Keywords that PyTorch takes everywhere as NumPy calls them, or took.
const OTHER_KEYWORDS: &[&str] = &["a", "axis", "keepdims", "names", "x", "x1", "x2"];

/// Lists by what they are of, by kind.
static TABLE: LazyLock<FxHashMap<&str, FxHashMap<&str, Names>>> = LazyLock::new(|| {
    let mut table: FxHashMap<&str, FxHashMap<&str, Names>> = FxHashMap::default();
    for line in include_str!("torch.txt").lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split(' ');
        let kind = words.next().unwrap_or_default();
        let of = if kind.starts_with("tensor") { None } else { words.next() };
        table.entry(kind).or_default().insert(of.unwrap_or_default(), words.collect());
    }
    table
});

fn names(kind: &str, of: &str) -> Option<&'static Names> {
    TABLE.get(kind)?.get(of)
}

/// The members of a module, such as `torch.nn`, that has a row.
pub(crate) fn members(module: &str) -> Option<&'static Names> {
    names("module", module)
}

/// Whether a path is of a member of a module that has a row.
pub(crate) fn has(path: &[Name]) -> bool {
    let Some((name, module)) = path.split_last() else { return false };
    members(&module.join(".")).is_some_and(|members| members.contains(&**name))
}

/// The members of the instances of a class that has a row.
pub(crate) fn instance_members(class: &str) -> Option<&'static Names> {
    names("class", class)
}

/// The members of tensors.
pub(crate) fn tensor_members() -> Option<&'static Names> {
    names("tensor", "")
}

/// Devices of backends that are packages of their own: PyTorch and its tensors have members of their
/// names where one is installed, which nothing need import.
const BACKENDS: &[&str] =
    &["gcu", "hpu", "iluvatar", "mlu", "musa", "npu", "sdaa", "spyre", "supa", "txda"];

/// What `torch.distributed.tensor.DTensor` has beside the members of tensors.
const OF_DISTRIBUTED: &[&str] =
    &["device_mesh", "full_tensor", "placements", "redistribute", "to_local"];

/// Whether a member of PyTorch is a backend that is a package of its own.
pub(crate) fn is_backend(name: &str) -> bool {
    BACKENDS.contains(&name)
}

/// Whether PyTorch may have a member that its documentation does not tell of: private ones come and go,
/// backends add theirs, and so do tensors that are distributed.
pub(crate) fn may_be_there(attr: &str) -> bool {
    attr.starts_with('_')
        || is_backend(attr.strip_prefix("is_").unwrap_or(attr))
        || OF_DISTRIBUTED.contains(&attr)
}

/// The member of tensors that a name is nearly, of names that none has.
pub(crate) fn tensor_member_near(name: &str) -> Option<&'static str> {
    let members = tensor_members()?;
    let is_known = members.contains(name) || may_be_there(name);
    (!is_known).then(|| misspelled(name, members.iter().copied())).flatten()
}

/// Whether the function `torch.name` gives one tensor.
pub(crate) fn gives_tensor(name: &str) -> bool {
    names("module-gives-tensors", "torch").is_some_and(|names| names.contains(name))
}

/// Whether a method of tensors gives one tensor.
pub(crate) fn method_gives_tensor(name: &str) -> bool {
    names("tensor-gives-tensors", "").is_some_and(|names| names.contains(name))
}

/// The keywords of the function `torch.name`, or of a method of tensors, where all are known.
pub(crate) fn keywords(name: &str, is_method: bool) -> Option<&'static Names> {
    names(if is_method { "method" } else { "call" }, name)
}

/// Whether a keyword is taken where PyTorch documents another.
pub(crate) fn is_other_keyword(name: &str) -> bool {
    OTHER_KEYWORDS.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_whole() {
        let has = |names: Option<&Names>, name| names.is_some_and(|names| names.contains(name));
        assert!(has(members("torch"), "empty_like") && has(members("torch"), "float16"));
        assert!(has(members("torch.nn"), "Parameter"));
        assert!(has(tensor_members(), "stride") && has(tensor_members(), "shape"));
        assert!(has(instance_members("torch.autograd.Function"), "saved_tensors"));
        assert!(has(keywords("empty", false), "dtype") && !has(keywords("empty", false), "dtpye"));
        assert!(has(keywords("sum", true), "keepdim") && keywords("nothing", false).is_none());
        assert!(gives_tensor("zeros") && !gives_tensor("is_tensor"));
        assert!(method_gives_tensor("contiguous") && !method_gives_tensor("numel"));
    }
}
