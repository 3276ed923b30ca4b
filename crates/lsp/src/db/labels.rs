//! Labels of specializations as users see them.

use std::fmt::Write;

use tile_compiler::ir::LaunchOptions;
use tile_compiler::specialization::{ArgSpec, Specialization};

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
        labelled.push(Labelled { label, spec });
    }
    labelled
}

/// Types of the arguments in order, `NAME=VALUE` of constexprs, then launch options that are not
/// the usual ones.
fn label(spec: &Specialization) -> String {
    let mut parts: Vec<String> = Vec::new();
    for arg in spec.args.values() {
        if !matches!(arg, ArgSpec::Constexpr(_)) {
            parts.push(type_text(arg));
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

/// The type of a run-time argument without what is known of its value.
fn type_text(arg: &ArgSpec) -> String {
    match arg {
        ArgSpec::Runtime { signature, .. } => signature.to_string(),
        ArgSpec::Constexpr(value) => value.to_string(),
        ArgSpec::Tuple(items) => {
            let items: Vec<String> = items.iter().map(type_text).collect();
            format!("({})", items.join(", "))
        }
    }
}

/// The specialization with the names of its parameters: `x_ptr: *fp32, n: i32, BLOCK=1024`.
pub(crate) fn named(spec: &Specialization) -> String {
    let mut out = String::new();
    for (name, arg) in &spec.args {
        if !matches!(arg, ArgSpec::Constexpr(_)) {
            let _ = write!(out, "{name}: {}, ", type_text(arg));
        }
    }
    let mut parts = Vec::new();
    constexprs(spec, &mut parts);
    out.push_str(&parts.join(", "));
    out.trim_end_matches(", ").to_owned()
}
