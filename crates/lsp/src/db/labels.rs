//! Labels of specializations as users see them.

use std::fmt::Write;

use tile_compiler::ir::LaunchOptions;
use tile_compiler::specialization::{ArgSpec, Origin, Specialization};

use super::Labelled;

/// Labels every specialization; a label that would come twice gets a number.
pub(super) fn label_all(specs: Vec<Specialization>) -> Vec<Labelled> {
    let mut labelled: Vec<Labelled> = Vec::with_capacity(specs.len());
    for spec in specs {
        let plain = label(&spec);
        let mut label = plain.clone();
        let mut number = 2;
        while labelled.iter().any(|other| other.label == label) {
            label = format!("{plain} ({number})");
            number += 1;
        }
        labelled.push(Labelled { label, spec, repairs: Vec::new() });
    }
    labelled
}

/// Types of the arguments in order, `NAME=VALUE` of constexprs, then launch options that are not
/// the usual ones.
pub(super) fn label(spec: &Specialization) -> String {
    let mut parts: Vec<String> = Vec::new();
    for arg in spec.args.values() {
        if !matches!(arg, ArgSpec::Constexpr(_)) {
            parts.push(argument(arg));
        }
    }
    constexprs(spec, &mut parts);
    parts.join(", ")
}

fn constexprs(spec: &Specialization, parts: &mut Vec<String>) {
    for (name, arg) in &spec.args {
        if let ArgSpec::Constexpr(value) = arg {
            parts.push(format!("{name}={value}"));
        }
    }
    let usual = LaunchOptions::default();
    let mut option = |name: &str, value: u32, usual: u32| {
        if value != usual {
            parts.push(format!("{name}={value}"));
        }
    };
    option("num_warps", spec.options.num_warps, usual.num_warps);
    option("num_stages", spec.options.num_stages, usual.num_stages);
}

/// The type of a run-time argument without what is known of its value, or a value.
pub(super) fn argument(arg: &ArgSpec) -> String {
    match arg {
        ArgSpec::Runtime { signature, .. } => signature.to_string(),
        ArgSpec::Constexpr(value) => value.to_string(),
        ArgSpec::Tuple(tuple) => {
            let items: Vec<String> = tuple.items.iter().map(argument).collect();
            format!("({})", items.join(", "))
        }
    }
}

/// Where a specialization comes from, in a word.
pub(crate) fn origin(origin: Origin) -> &'static str {
    match origin {
        Origin::Flags => "pin",
        Origin::Scenario => "scenario",
        Origin::Launch => "launch",
        Origin::Autotune => "autotune",
        Origin::Guess => "guess",
    }
}

/// `BLOCK=128, num_warps=8`: values and options alone, or the types where there are none.
pub(crate) fn values(spec: &Specialization) -> String {
    let mut parts = Vec::new();
    constexprs(spec, &mut parts);
    if parts.is_empty() { label(spec) } else { parts.join(", ") }
}

/// The specialization with the names of its parameters: `x_ptr: *fp32, n: i32, BLOCK=1024`.
pub(crate) fn named(spec: &Specialization) -> String {
    let mut out = String::new();
    for (name, arg) in &spec.args {
        if !matches!(arg, ArgSpec::Constexpr(_)) {
            let _ = write!(out, "{name}: {}, ", argument(arg));
        }
    }
    let mut parts = Vec::new();
    constexprs(spec, &mut parts);
    out.push_str(&parts.join(", "));
    out.trim_end_matches(", ").to_owned()
}
