//! The `triton` package as seen by imports: which dotted paths are modules, and the canonical
//! path of what several modules export.

use std::sync::Arc;

use super::Resolution;
use crate::hir::Name;

/// Modules of the package with the module whose members they share.
const MODULES: &[(&str, &str)] = &[
    ("", ""),
    ("compiler", "compiler"),
    ("compiler.compiler", "compiler"),
    ("experimental", "experimental"),
    ("experimental.gluon", "experimental.gluon"),
    ("experimental.gluon.language", "experimental.gluon.language"),
    ("language", "language"),
    ("language.core", "language"),
    ("language.extra", "language.extra"),
    ("language.extra.cuda", "language.extra.cuda"),
    ("language.extra.cuda.libdevice", "language.extra.libdevice"),
    ("language.extra.hip", "language.extra.hip"),
    ("language.extra.hip.libdevice", "language.extra.libdevice"),
    ("language.extra.libdevice", "language.extra.libdevice"),
    ("language.libdevice", "language.extra.libdevice"),
    ("language.math", "language.math"),
    ("language.random", "language"),
    ("language.semantic", "language.semantic"),
    ("language.standard", "language"),
    ("language.target_info", "language.target_info"),
    ("runtime", "runtime"),
    ("runtime.autotuner", ""),
    ("runtime.driver", "runtime.driver"),
    ("runtime.jit", ""),
    ("testing", "testing"),
    ("tools", "tools"),
    ("tools.tensor_descriptor", "tools.tensor_descriptor"),
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

/// What `name` means in the module with canonical path `module`.
pub fn member(module: &str, name: &str) -> Resolution {
    let path = if module.is_empty() { name.to_owned() } else { format!("{module}.{name}") };
    if let Some((_, canonical)) = MODULES.iter().find(|(known, _)| *known == path) {
        return Resolution::TritonModule(Arc::from(*canonical));
    }
    let same = SAME.iter().find(|(known, _)| *known == path);
    Resolution::Triton(Arc::from(same.map_or(path.as_str(), |(_, canonical)| canonical)))
}
