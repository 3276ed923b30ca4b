//! What of each argument a kernel is compiled for, and which other arguments compile it anew.
//!
//! Triton keeps a compiled kernel for the types of its arguments, the values of compile-time
//! parameters, whether integers equal 1 or are multiples of 16, and whether addresses are multiples
//! of 16. A launch that differs in one of these compiles.

use super::argument::{Annotated, annotated};
use super::{ArgSpec, ConstArg, LaunchSite, Specialization, tuning};
use crate::hir::Name;
use crate::project::{ItemRef, Sources, kernel};

/// What one parameter is compiled for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Previewed {
    /// The parameter.
    pub name: Name,
    /// What is known of it when the kernel is compiled: `int32, divisible by 16`.
    pub known: String,
    /// The arguments that compile the kernel anew; `None` when only another type does.
    pub anew: Option<String>,
    /// True when nothing in the source shows it.
    pub assumed: bool,
}

impl Previewed {
    /// Both in one sentence.
    pub fn text(&self) -> String {
        let known = &self.known;
        match &self.anew {
            Some(anew) => format!("{known}; {anew} compiles anew"),
            None => format!("{known}; the value does not matter"),
        }
    }
}

/// What each parameter of the kernel `at` is compiled for under `spec`, in parameter order.
pub fn preview(sources: &dyn Sources, at: ItemRef, spec: &Specialization) -> Vec<Previewed> {
    let Some(kernel) = kernel(sources, at) else { return Vec::new() };
    let tuning = tuning(sources, &kernel);
    let Annotated { constexpr, types } = annotated(sources, &kernel);
    let parameter = |(name, arg): (&Name, &ArgSpec)| {
        let rules = Keyed {
            is_constexpr: constexpr.contains(name),
            has_forced_type: types.contains_key(name),
            on_value: tuning.specializes_on_value(name),
            on_alignment: tuning.specializes_on_alignment(name),
            is_tuned: tuning.sets(name),
        };
        let (known, anew) = rules.describe(arg);
        let assumed = spec.assumed.contains(name);
        Previewed { name: name.clone(), known, anew, assumed }
    };
    spec.args.iter().map(parameter).collect()
}

/// Where the arguments come from that `spec` is for: its first launch.
pub fn shown_by(spec: &Specialization) -> Option<LaunchSite> {
    spec.launches.iter().find_map(|launch| launch.site)
}

/// What the key of a compiled kernel holds of one parameter.
struct Keyed {
    is_constexpr: bool,
    has_forced_type: bool,
    on_value: bool,
    on_alignment: bool,
    is_tuned: bool,
}

impl Keyed {
    /// What is known of the argument, and what compiles anew.
    fn describe(&self, arg: &ArgSpec) -> (String, Option<String>) {
        match arg {
            ArgSpec::Constexpr(value) if self.is_constexpr && self.is_tuned => (
                format!("constexpr `{value}`, which the decorators set"),
                Some("another value".into()),
            ),
            ArgSpec::Constexpr(value) if self.is_constexpr => {
                (format!("constexpr `{value}`"), Some("another value".into()))
            }
            ArgSpec::Constexpr(ConstArg::None) => {
                ("`None`, folded into the code".into(), Some("anything else".into()))
            }
            ArgSpec::Constexpr(ConstArg::Int(1)) => {
                ("equal to 1, folded into the code".into(), Some("any other value".into()))
            }
            ArgSpec::Constexpr(value) => {
                (format!("`{value}`, folded into the code"), Some("anything else".into()))
            }
            ArgSpec::Runtime { signature, divisible_by_16 } => {
                self.runtime(signature, *divisible_by_16)
            }
            ArgSpec::Tuple(tuple) => {
                let items: Vec<String> =
                    tuple.items.iter().map(|item| self.describe(item).0).collect();
                let known = format!("({})", items.join("; "));
                (known, Some("an element that differs in this".into()))
            }
        }
    }

    fn runtime(&self, signature: &str, divisible: bool) -> (String, Option<String>) {
        if let Some(inner) = signature.strip_prefix("tensordesc<") {
            let known = format!("descriptor of {}", inner.trim_end_matches('>'));
            return (known, Some("another element type or block shape".into()));
        }
        if let Some(element) = signature.strip_prefix('*') {
            return self.pointer(element, divisible);
        }
        match super::flags::is_integer(signature) {
            true => self.integer(signature, divisible),
            false => (spelled(signature), (!self.has_forced_type).then(|| "another type".into())),
        }
    }

    fn pointer(&self, element: &str, divisible: bool) -> (String, Option<String>) {
        let (konst, element) = match element.strip_prefix('k') {
            Some(element) => ("const ", element),
            None => ("", element),
        };
        let known = format!("{konst}pointer to {}", spelled(element));
        match (self.on_alignment, divisible) {
            (false, _) => (known, Some("another element type".into())),
            (true, true) => (
                format!("{known}, address divisible by 16"),
                Some("another element type, or an address that is not divisible by 16,".into()),
            ),
            (true, false) => {
                (known, Some("another element type, or an address that is divisible by 16,".into()))
            }
        }
    }

    fn integer(&self, signature: &str, divisible: bool) -> (String, Option<String>) {
        let mut known = spelled(signature);
        let mut anew = Vec::new();
        if self.on_alignment {
            if divisible {
                known.push_str(", divisible by 16");
            }
            anew.push(if divisible { "not divisible by 16" } else { "divisible by 16" });
        }
        if self.on_value {
            anew.push("equal to 1");
        }
        if !self.has_forced_type {
            anew.push(match signature {
                "i32" => "beyond 32 bits",
                "u64" => "within 63 bits",
                _ => "within 32 bits",
            });
        }
        let anew = match anew.as_slice() {
            [] => None,
            [one] => Some(format!("a value {one}")),
            [first, last] => Some(format!("a value {first} or {last}")),
            [rest @ .., last] => Some(format!("a value {}, or {last}", rest.join(", "))),
        };
        (known, anew)
    }
}

/// The type as the language's members are called: `int32` for `i32`.
fn spelled(signature: &str) -> String {
    let number = |prefix: &str| {
        signature.strip_prefix(prefix).filter(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
    };
    match signature {
        "i1" | "u1" => "bool".to_owned(),
        "bf16" => "bfloat16".to_owned(),
        _ => match (number("i"), number("u"), signature.strip_prefix("fp")) {
            (Some(bits), ..) => format!("int{bits}"),
            (_, Some(bits), _) => format!("uint{bits}"),
            (.., Some(rest)) => format!("float{rest}"),
            _ => signature.to_owned(),
        },
    }
}
