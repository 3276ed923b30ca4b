//! Versions of packages that host code compares: `packaging.version.parse(triton.__version__)`.

use std::sync::Arc;

use crate::builtins::TritonVersion;
use crate::hir::Name;
use crate::host::code::arguments::Args;
use crate::host::value::Value;
use crate::project::{Resolution, triton};
use crate::specialization::TupleNames;

/// Versions of PyTorch in use with the versions of Triton that the table of builtins knows, as
/// `torch.__version__` says them.
const OF_TORCH: &[&str] = &["2.10.0+cu128", "2.11.0+cu130"];

/// What a version is asked for. It compares by its numbers, from which the others follow.
const FIELDS: &[&str] = &["major", "minor", "micro", "release", "base_version"];

/// How many numbers a version has: those that it lacks count as 0.
const NUMBERS: usize = 3;

/// `torch.__version__`.
pub(crate) fn of_torch() -> Value {
    Value::OneOf(OF_TORCH.iter().map(|version| Value::Str((*version).into())).collect())
}

/// Versions of Triton in use.
const OF_TRITON: [TritonVersion; 2] = [TritonVersion::V3_6, TritonVersion::V3_9];

/// `triton.__version__`.
pub(crate) fn of_triton() -> Value {
    let text = |version| Value::Str(format!("{version}.0").into());
    Value::OneOf(OF_TRITON.map(text).into())
}

/// Whether one of Triton's modules has a member; `None` where versions differ in that, or nothing is known of it.
pub(crate) fn triton_has(module: &str, name: &str) -> Option<bool> {
    match triton::member(module, name) {
        Resolution::TritonModule(_) => Some(true),
        Resolution::Triton(path) => {
            let [oldest, newest] = OF_TRITON.map(|version| triton::has(&path, Some(version)));
            oldest.filter(|_| oldest == newest)
        }
        _ => None,
    }
}

/// The version of a package, as a function outside of the project tells it; `None` for other functions.
pub(crate) fn of_package(path: &[&str], args: &Args<'_>) -> Option<Value> {
    let tells =
        matches!(path, ["importlib", "metadata", "version"] | ["importlib_metadata", "version"]);
    tells.then(|| match args.get(0, "distribution_name") {
        Some(Value::Str(name)) if **name == *"torch" => of_torch(),
        Some(Value::Str(name)) if **name == *"triton" => of_triton(),
        _ => Value::Unknown,
    })
}

/// What a function outside of the project makes of the text of a version; `None` for other functions.
pub(crate) fn parsed(path: &[&str], args: &Args<'_>) -> Option<Value> {
    let parses = matches!(
        path,
        ["packaging", "version", "parse" | "Version"]
            | ["packaging", "version", "version", "parse" | "Version"]
            | ["pkg_resources", "parse_version"]
            | ["distutils", "version", "LooseVersion" | "StrictVersion"]
    );
    parses.then(|| args.get(0, "version").and_then(parse).unwrap_or(Value::Unknown))
}

/// The numbers of a version without what follows them by a local label; none of one before a release.
fn parse(text: &Value) -> Option<Value> {
    let text = match text.plain() {
        Value::OneOf(texts) => {
            return Some(Value::OneOf(texts.iter().map(parse).collect::<Option<_>>()?));
        }
        Value::Str(text) => text,
        _ => return None,
    };
    let release = text.split('+').next()?;
    let numbers = release.split('.').map(|part| part.parse().ok());
    let mut numbers = numbers.collect::<Option<Vec<i128>>>()?;
    if numbers.len() > NUMBERS {
        return None;
    }
    numbers.resize(NUMBERS, 0);
    let base: Vec<String> = numbers.iter().map(i128::to_string).collect();
    let fields = FIELDS.iter().map(|field| Name::from(*field)).collect();
    let names = Arc::new(TupleNames { class: "Version".into(), fields });
    let mut items: Vec<Value> =
        numbers.into_iter().map(|number| Value::Int(Some(number))).collect();
    items.extend([Value::Tuple(items.clone()), Value::Str(base.join(".").into())]);
    Some(Value::Record { names, items })
}
