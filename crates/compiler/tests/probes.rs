//! Small kernels with what the real front end of two Triton versions says of each: accepted, with
//! the text of its static prints, or rejected. `probes/mismatches.txt` lists the known
//! differences with the reason for each.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use indexmap::IndexMap;
use serde::Deserialize;
use tile_compiler::builtins::TritonVersion;
use tile_compiler::diagnostic::Severity;
use tile_compiler::eval::{Rules, lower_kernel};
use tile_compiler::hir::{ItemKind, Name};
use tile_compiler::project::{self, MemorySources, Sources};
use tile_compiler::source::FileId;
use tile_compiler::specialization::{ArgSpec, ConstArg, Origin, Specialization};
use tile_compiler::syntax::Parse;

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
    let args = probe.params.iter().map(|param| {
        let name = param.decl.split(':').next().unwrap_or(&param.decl).trim();
        (Name::from(name), argument(&param.given))
    });
    compile(&text, "k", args.collect(), version)
}

/// The text that compiling `kernel` of a module prints, or why it is refused.
fn compile(
    text: &str,
    kernel: &str,
    args: IndexMap<Name, ArgSpec>,
    version: TritonVersion,
) -> Result<String, String> {
    if let Some(error) = Parse::new(text).diagnostics(FileId::default()).first() {
        return Err(format!("{}: {}", error.code, error.message));
    }
    let mut sources = MemorySources::new(Vec::new());
    let file = sources.add("probe.py", text);
    let spec = Specialization::new(Origin::Flags, args);
    let result = lower_kernel(&sources, file, kernel, &spec, version);
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

/// What the editor, which knows nothing of the arguments, says of the functions of a module that
/// Triton accepts. Those of the first `prelude` bytes are not looked at.
fn false_alarms(text: &str, prelude: usize, version: TritonVersion) -> Vec<String> {
    let mut sources = MemorySources::new(Vec::new());
    let file = sources.add("probe.py", text);
    let entries = project::kernels(&sources, file);
    let own = project::jit_functions(&sources, file).into_iter().filter(|at| {
        let item = project::item(&sources, *at);
        item.is_some_and(|item| item.name_range.start as usize >= prelude)
    });
    let rules = Rules::Only(version);
    let found = own.filter_map(|at| rules.infer_function(&sources, at, entries.contains(&at)));
    let found = found.flat_map(|function| function.diagnostics);
    let errors = found.filter(|diagnostic| diagnostic.severity == Severity::Error);
    errors.map(|error| format!("{}: {}", error.code, error.message)).collect()
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
    let prelude = include_str!("probes/kernels/prelude.py");
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

/// What parameters of `kernels/*.txt` are compiled for, by name; `tests/triton/probes.py` has the
/// same. Others take their defaults, or are an `i32`.
fn argument_named(name: &str) -> Option<ArgSpec> {
    let runtime =
        |signature: &str| ArgSpec::Runtime { signature: signature.into(), divisible_by_16: false };
    Some(match name {
        "p" => runtime("*fp32"),
        "q" => runtime("*i32"),
        "h" => runtime("*fp16"),
        "m" => runtime("i64"),
        "f" => runtime("fp32"),
        "b" => runtime("i1"),
        "desc" => runtime("tensordesc<fp32[16, 32]>"),
        "B" => ArgSpec::Constexpr(ConstArg::Int(64)),
        "C" => ArgSpec::Constexpr(ConstArg::Int(16)),
        "N" => ArgSpec::Constexpr(ConstArg::None),
        "S" => ArgSpec::Constexpr(ConstArg::Str("text".into())),
        _ => return None,
    })
}

/// The arguments of the last function `kernel` of a module.
fn arguments_of(text: &str) -> IndexMap<Name, ArgSpec> {
    let mut sources = MemorySources::new(Vec::new());
    let file = sources.add("probe.py", text);
    let module = sources.module(file).expect("the probe is a file");
    let kernel = module.items.iter().rev().find_map(|item| match &item.kind {
        ItemKind::Function(function) if &*item.name == "kernel" => Some(function),
        _ => None,
    });
    let params = kernel.into_iter().flat_map(|kernel| &kernel.params);
    params
        .filter_map(|param| {
            let i32 = ArgSpec::Runtime { signature: "i32".into(), divisible_by_16: false };
            let given = argument_named(&param.name).unwrap_or(i32);
            param.default.is_none().then(|| (param.name.clone(), given))
        })
        .collect()
}

/// A paragraph of a family: its module, and the answers by version.
fn paragraph(prelude: &str, text: &str) -> (String, BTreeMap<TritonVersion, String>) {
    let mut answers = BTreeMap::new();
    let mut lines = Vec::new();
    for line in text.lines() {
        match line.split_once('>') {
            Some(("#", said)) => {
                answers.insert(TritonVersion::V3_6, said.trim().to_owned());
                answers.insert(TritonVersion::V3_9, said.trim().to_owned());
            }
            Some(("#3.6", said)) => _ = answers.insert(TritonVersion::V3_6, said.trim().to_owned()),
            Some(("#3.9", said)) => _ = answers.insert(TritonVersion::V3_9, said.trim().to_owned()),
            _ => lines.push(line),
        }
    }
    let module = match text.contains("def kernel(") {
        true => format!("{prelude}{}\n", lines.join("\n")),
        false => format!(
            "{prelude}@triton.jit\ndef kernel(p, q, h, n, m, f, b, B: tl.constexpr, C: tl.constexpr):\n    {}\n",
            lines.join("\n    ")
        ),
    };
    (module, answers)
}

/// How we differ from Triton, which `said` what it prints, or `!`. The first `prelude` bytes of the
/// module are the same in all.
fn disagreements(module: &str, prelude: usize, said: &str, version: TritonVersion) -> Vec<String> {
    let expected = Answer { accepts: said != "!", prints: said.to_owned() };
    let found = compile(module, "kernel", arguments_of(module), version);
    let mut differences: Vec<String> = difference(&expected, &found).into_iter().collect();
    if expected.accepts {
        differences.extend(false_alarms(module, prelude, version));
    }
    differences
}

/// Small kernels by families of rules; `tests/triton/probes.py` asked Triton. Where a comment says
/// `# differs: REASON`, we do not answer as Triton does. `TILE_PROBES` names another folder of
/// families.
#[test]
fn kernels_agree_with_triton() {
    let own = probes().join("kernels");
    compare_families(&std::env::var_os("TILE_PROBES").map_or(own, PathBuf::from));
}

/// Kernels that `tests/triton/families.py` made, and asked Triton about.
#[test]
fn generated_kernels_agree_with_triton() {
    compare_families(&probes().join("generated"));
}

fn probes() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/probes")
}

/// Compares every paragraph of every family of a folder with Triton's answers. A family's modules
/// begin with `kernels/prelude.py` and, where there is one, with the family's own.
fn compare_families(folder: &Path) {
    let read = |path: &Path| std::fs::read_to_string(path).expect("the family is readable");
    let prelude = read(&probes().join("kernels/prelude.py"));
    let files = std::fs::read_dir(folder).expect("the folder is there");
    let mut families: Vec<_> = files.filter_map(|file| Some(file.ok()?.path())).collect();
    families.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    families.sort();
    let mut differences = String::new();
    for family in families {
        let own = family.with_extension("py");
        let own = if own.exists() { read(&own) } else { String::new() };
        let prelude = format!("{prelude}{own}");
        let name = family.file_stem().unwrap_or_default().to_string_lossy();
        for text in read(&family).split("\n\n") {
            for difference in differences_of(&prelude, text) {
                let _ = writeln!(differences, "--- {name} {difference}\n{text}");
            }
        }
    }
    assert!(differences.is_empty(), "differences from Triton:\n{differences}");
}

/// How we differ from Triton in a paragraph, other than it says.
fn differences_of(prelude: &str, text: &str) -> Vec<String> {
    let (module, answers) = paragraph(prelude, text.trim_matches('\n'));
    let found: Vec<String> = answers
        .into_iter()
        .flat_map(|(version, said)| {
            let found = disagreements(&module, prelude.len(), &said, version);
            found.into_iter().map(move |what| format!("{version}: {what}"))
        })
        .collect();
    match (text.contains("# differs: "), found.is_empty()) {
        (true, true) => vec!["agrees, but is said to differ".to_owned()],
        (true, false) => Vec::new(),
        (false, _) => found,
    }
}
