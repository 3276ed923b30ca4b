//! Small kernels with what the real front end of two Triton versions says of each: accepted, with
//! the text of its static prints, or rejected. `probes/mismatches.txt` lists the known
//! differences with the reason for each.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use serde::Deserialize;
use tile_compiler::diagnostic::Severity;
use tile_compiler::eval::lower_kernel;
use tile_compiler::hir::Name;
use tile_compiler::ir::LaunchOptions;
use tile_compiler::project::MemorySources;
use tile_compiler::specialization::{ArgSpec, ConstArg, Origin, Specialization, TritonVersion};

#[derive(Deserialize)]
struct Suite {
    prelude: String,
    probes: Vec<Probe>,
}

#[derive(Deserialize)]
struct Probe {
    name: String,
    params: Vec<Param>,
    body: String,
    #[serde(rename = "triton-3.6.0")]
    v3_6: Answer,
    #[serde(rename = "triton-3.9.0")]
    v3_9: Answer,
}

#[derive(Deserialize)]
struct Param {
    decl: String,
    #[serde(rename = "as")]
    given: String,
}

#[derive(Deserialize)]
struct Answer {
    accepts: bool,
    #[serde(default)]
    prints: String,
}

fn argument(given: &str) -> ArgSpec {
    if let Some(value) = given.strip_prefix("constexpr=") {
        let value = value.parse().expect("constexpr arguments of the probes are integers");
        return ArgSpec::Constexpr(ConstArg::Int(value));
    }
    let signature = given.split('=').next().unwrap_or(given);
    ArgSpec::Runtime { signature: Arc::from(signature), divisible_by_16: false }
}

fn evaluate(prelude: &str, probe: &Probe, version: TritonVersion) -> Result<String, String> {
    let params: Vec<&str> = probe.params.iter().map(|param| param.decl.as_str()).collect();
    let body = probe.body.replace('\n', "\n    ");
    let text = format!("{prelude}\n@triton.jit\ndef k({}):\n    {body}\n", params.join(", "));
    let mut sources = MemorySources::new(Vec::new());
    let file = sources.add("probe.py", &text);
    let args = probe.params.iter().map(|param| {
        let name = param.decl.split(':').next().unwrap_or(&param.decl).trim();
        (Name::from(name), argument(&param.given))
    });
    let spec = Specialization {
        args: args.collect(),
        options: LaunchOptions::default(),
        origin: Origin::Flags,
        assumed: Default::default(),
        launches: Vec::new(),
        config: None,
    };
    let result = lower_kernel(&sources, file, "k", &spec, version);
    let errors: Vec<String> = result
        .diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.severity == Severity::Error)
        .map(|diagnostic| format!("{}: {}", diagnostic.code, diagnostic.message))
        .collect();
    if !errors.is_empty() {
        return Err(errors.join("; "));
    }
    let function = result.function.ok_or("no function and no error")?;
    if let Err(errors) = tile_compiler::ir::verify(&function) {
        return Err(format!("ill-formed IR: {errors:?}"));
    }
    let prints: Vec<String> = result.prints.into_iter().map(|(_, text)| text).collect();
    Ok(prints.join(" "))
}

/// How an outcome differs from Triton's, if it does.
fn difference(expected: &Answer, found: &Result<String, String>) -> Option<String> {
    match (expected.accepts, found) {
        (true, Ok(prints)) if *prints == expected.prints => None,
        // The body of a run-time loop is evaluated twice by Triton, so it prints twice.
        (true, Ok(prints)) if format!("{prints} {prints}") == expected.prints => None,
        (true, Ok(prints)) => Some(format!("prints `{prints}`, not `{}`", expected.prints)),
        (true, Err(error)) => Some(format!("rejects: {error}")),
        (false, Ok(_)) => Some("accepts".to_owned()),
        (false, Err(error)) if error.starts_with("ill-formed") => Some(error.clone()),
        (false, Err(_)) => None,
    }
}

#[test]
fn answers_agree_with_triton() {
    let suite: Suite = serde_json::from_str(include_str!("probes/probes.json")).expect("probes");
    compare(&suite, include_str!("probes/mismatches.txt"));
}

/// Every builtin with every type; `tests/triton/surface.py` asked Triton.
#[test]
fn builtins_agree_with_triton() {
    let prelude = "import triton, triton.language as tl
from triton.language.extra import libdevice
@triton.jit
def add(a, b):
    return a + b
@triton.jit
def larger(a, i, b, j):
    take = a > b
    return tl.where(take, a, b), tl.where(take, i, j)
@triton.jit
def half(a):
    return a * 0.5
";
    let rows = include_str!("probes/surface.tsv").lines().skip(1);
    let suite = Suite { prelude: prelude.to_owned(), probes: rows.filter_map(row).collect() };
    compare(&suite, include_str!("probes/surface-mismatches.txt"));
}

/// One line of the table of builtins: parameters, statements, what 3.6 and 3.9 print; `!` where
/// they refuse.
fn row(line: &str) -> Option<Probe> {
    let [parameters, body, v3_6, v3_9] = line.split('\t').collect::<Vec<_>>().try_into().ok()?;
    let answer = |text: &str| Answer { accepts: text != "!", prints: text.replace('!', "") };
    let params = parameters
        .split_once(": ")
        .into_iter()
        .map(|(name, ty)| Param { decl: name.to_owned(), given: ty.to_owned() });
    Some(Probe {
        name: [parameters, body].join(" ").trim().to_owned(),
        params: params.collect(),
        body: body.replace("; ", "\n"),
        v3_6: answer(v3_6),
        v3_9: answer(v3_9),
    })
}

/// Compares every probe with Triton's answers. `known` lists the differences that are meant, as
/// `NAME VERSION: reason`.
fn compare(suite: &Suite, known: &str) {
    let known: BTreeMap<&str, &str> = known
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with('#'))
        .filter_map(|line| line.rsplit_once(": "))
        .collect();
    let mut unexpected = String::new();
    let mut stale: Vec<String> = known.keys().map(|key| (*key).to_owned()).collect();
    for probe in &suite.probes {
        let versions = [(TritonVersion::V3_6, &probe.v3_6), (TritonVersion::V3_9, &probe.v3_9)];
        for (version, expected) in versions {
            let found = evaluate(&suite.prelude, probe, version);
            let Some(difference) = difference(expected, &found) else { continue };
            let key = format!("{} {version}", probe.name);
            match known.get(key.as_str()) {
                Some(_) => stale.retain(|known| *known != key),
                None => {
                    let _ = writeln!(unexpected, "{key}: {difference}");
                }
            }
        }
    }
    assert!(unexpected.is_empty(), "differences from Triton:\n{unexpected}");
    assert!(stale.is_empty(), "listed as different, but agree now: {stale:?}");
}
