//! The `triton` package as seen by imports: which dotted paths are modules, and the canonical
//! path of what several modules export.

use std::sync::Arc;

use super::Resolution;
use crate::builtins::{self, TRITON, TritonVersion};
use crate::hir::Name;

/// Modules of the package with their canonical path.
const MODULES: &[(&str, &str)] = &[
    ("", ""),
    ("compiler", "compiler"),
    ("compiler.compiler", "compiler"),
    ("experimental", "experimental"),
    ("experimental.gluon", "experimental.gluon"),
    ("experimental.gluon.language", "experimental.gluon.language"),
    ("language", "language"),
    ("language.core", "language.core"),
    ("knobs", "knobs"),
    ("knobs.runtime", "knobs.runtime"),
    ("language.extra", "language.extra"),
    ("language.extra.cuda", "language.extra.cuda"),
    ("language.extra.cuda.libdevice", "language.extra.libdevice"),
    ("language.extra.hip", "language.extra.hip"),
    ("language.extra.hip.libdevice", "language.extra.libdevice"),
    ("language.extra.libdevice", "language.extra.libdevice"),
    ("language.libdevice", "language.extra.libdevice"),
    ("language.math", "language.math"),
    ("language.random", "language.random"),
    ("language.semantic", "language.semantic"),
    ("language.standard", "language.standard"),
    ("language.target_info", "language.target_info"),
    ("profiler", "profiler"),
    ("profiler.language", "profiler.language"),
    ("runtime", "runtime"),
    ("runtime.autotuner", ""),
    ("runtime.driver", "runtime.driver"),
    ("runtime.jit", ""),
    ("testing", "testing"),
    ("tools", "tools"),
    ("tools.tensor_descriptor", "tools.tensor_descriptor"),
];

/// Modules whose members count as those of `language`, which exports most of them.
const PARTS: [&str; 3] = ["language.core", "language.random", "language.standard"];

/// Members that Gluon's language has of the language itself.
const SHARED_WITH_GLUON: &[&str] = &[
    "bfloat16",
    "block_type",
    "constexpr",
    "dtype",
    "float16",
    "float32",
    "float64",
    "float8e4b15",
    "float8e4b8",
    "float8e4nv",
    "float8e5",
    "float8e5b16",
    "int1",
    "int16",
    "int32",
    "int64",
    "int8",
    "pointer_type",
    "static_range",
    "tensor",
    "tuple",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "void",
];

/// Members that two modules export, under the path that counts.
const SAME: &[(&str, &str)] = &[
    ("language._aggregate", "aggregate"),
    ("language.extra.cuda.libdevice", "language.extra.libdevice"),
    ("runtime.autotune", "autotune"),
    ("runtime.Autotuner", "Autotuner"),
    ("runtime.Config", "Config"),
    ("runtime.heuristics", "heuristics"),
    ("runtime.JITFunction", "JITFunction"),
];

/// What `triton.PATH` means.
pub fn resolve(path: &[Name]) -> Resolution {
    let mut current = Resolution::TritonModule(Arc::from(""));
    for name in path {
        current = match &current {
            Resolution::TritonModule(module) => member(module, name),
            // Attributes of members (`tl.float32.primitive_bitwidth`) are not the package's.
            _ => return Resolution::Unknown,
        };
    }
    current
}

/// What a package that is not there hands on of Triton, as `from vllm.triton_utils import tl, triton`
/// takes it: Triton itself by its name, its language by the usual one.
pub(super) fn handed_on(path: &[Name]) -> Option<Resolution> {
    let (member, module) = path.split_last()?;
    let is_of_triton = || module.iter().any(|name| name.contains("triton"));
    match &**member {
        "triton" => Some(resolve(&[])),
        "tl" if is_of_triton() => Some(resolve(&["language".into()])),
        _ => None,
    }
}

/// What `name` means in the module with canonical path `module`.
pub fn member(module: &str, name: &str) -> Resolution {
    let join = |module: &str| match module {
        "" => name.to_owned(),
        module => format!("{module}.{name}"),
    };
    let path = join(module);
    if let Some((_, canonical)) = MODULES.iter().find(|(known, _)| *known == path) {
        return Resolution::TritonModule(Arc::from(*canonical));
    }
    let shared = module == "experimental.gluon.language" && SHARED_WITH_GLUON.contains(&name);
    let path = if shared || PARTS.contains(&module) { join("language") } else { path };
    let same = SAME.iter().find(|(known, _)| *known == path);
    Resolution::Triton(Arc::from(same.map_or(path.as_str(), |(_, canonical)| canonical)))
}

/// Whether the member at a canonical path can be imported in every version, as far as is known.
pub(crate) fn can_import(path: &str) -> bool {
    let (module, _) = path.rsplit_once('.').unwrap_or(("", path));
    let in_all = [TritonVersion::V3_6, TritonVersion::V3_9]
        .iter()
        .all(|version| has(path, Some(*version)) != Some(false));
    in_all && (module.is_empty() || MODULES.iter().any(|(_, canonical)| *canonical == module))
}

/// Whether the member at a canonical path exists, in `version` where one is settled. `None` when
/// the table of builtins does not tell.
pub(crate) fn has(path: &str, version: Option<TritonVersion>) -> Option<bool> {
    let (module, name) = path.rsplit_once('.').unwrap_or(("", path));
    let module = if module.is_empty() { TRITON.to_owned() } else { format!("{TRITON}.{module}") };
    let builtin = builtins::member(&module, name)?;
    Some(version.is_none_or(|version| builtin.exists_in(version)))
}
