//! What programs read: `--format sarif` against the schema of SARIF 2.1.0, `--format json` against
//! `docs/output.schema.json`.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use jsonschema::Validator;
use serde_json::Value;

const HEAD: &str = "import triton\nimport triton.language as tl\n\n\n";

const ADD: &str = "@triton.jit
def add(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n) + 1.0, mask=i < n)

# tile: n = 1000
# tile: x, y = randn(n), empty(n)
# tile: add[(cdiv(n, 256),)](x, y, n, BLOCK=256)
# tile: assert allclose(y, x + 1.0)
";

/// Files by name, with what there is to find in them.
fn inputs() -> Vec<(&'static str, String)> {
    let file = |body: &str| format!("{HEAD}{body}");
    let row = "@triton.jit
def row(x_ptr, y_ptr, stride):
    at = tl.program_id(0)
    tl.store(y_ptr + at, tl.load(x_ptr + at * stride))

# tile: x, y = empty(40_000, 65_536, dtype=int8), empty(40_000, dtype=int8)
# tile: row[(40_000,)](x, y, x.stride(0))
";
    vec![
        ("nothing.py", file(ADD)),
        ("name.py", file(&ADD.replace("i < n)", "i < m)"))),
        ("keyword.py", file(&ADD.replace("BLOCK=256", "BLOK=256"))),
        ("grid.py", file("@triton.jit\ndef k(p):\n    tl.store(p, 1)\n\ndef f(x):\n    k[4](x)\n")),
        ("bounds.py", file(&ADD.replace(", mask=i < n) + 1.0", ") + 1.0"))),
        ("overflow.py", file(row)),
        ("race.py", file(&ADD.replace("y_ptr + i,", "y_ptr + i % 256,"))),
        ("undefined.py", file(&ADD.replace("+ 1.0, mask=i < n", "+ 1.0, mask=i < n + 5"))),
        ("hint.py", file(&ADD.replace("(cdiv(n, 256),)", "(cdiv(n, 256), 2)"))),
        ("print.py", file(&ADD.replace("    i =", "    tl.static_print(BLOCK)\n    i ="))),
        ("syntax.py", file("@triton.jit\ndef k(p:\n    tl.store(p, 1\n")),
        ("größe und 形 #1%.py", file(&ADD.replace("i < n)", "\u{1f600} < ö)"))),
        ("a:b/c d.py", file(&ADD.replace("i < n)", "i < größe)"))),
        ("crlf.py", file(&ADD.replace("i < n)", "i < m)")).replace('\n', "\r\n")),
        ("plain.py", "print('no kernels')\n".to_owned()),
    ]
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in inputs() {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    std::fs::write(folder.path().join("latin.py"), b"import triton # \xe9\n").unwrap();
    folder
}

fn tile(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_tile"))
        .args(arguments)
        .current_dir(folder)
        .env("TILE_CACHE", folder.join(".cache"))
        .env_remove("VIRTUAL_ENV")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

fn validator(schema: &Value) -> Validator {
    jsonschema::options().should_validate_formats(true).build(schema).unwrap()
}

fn check(validator: &Validator, what: &str, value: &Value) {
    let errors: Vec<String> = validator
        .iter_errors(value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{what}: {errors:#?}\n{value:#}");
}

/// The schema that a package of the registry ships; see the dependencies of this crate.
fn sarif_schema() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let package = packages.iter().find(|package| package["name"] == "serde-sarif").unwrap();
    let manifest = PathBuf::from(package["manifest_path"].as_str().unwrap());
    let text = std::fs::read_to_string(manifest.with_file_name("src/schema.json")).unwrap();
    let mut schema: Value = serde_json::from_str(&text).unwrap();
    // Languages, which tile does not name, have a pattern with a stray bracket.
    for part in ["run", "toolComponent"] {
        let language = &mut schema["definitions"][part]["properties"]["language"];
        language.as_object_mut().unwrap().remove("pattern");
    }
    schema
}

#[test]
fn sarif_logs_follow_the_schema() {
    let schema = sarif_schema();
    assert!(schema["title"].as_str().unwrap().contains("2.1.0"));
    let validator = validator(&schema);
    let folder = folder();
    let mut results = Vec::new();
    let names = inputs().into_iter().map(|(name, _)| name).chain(["latin.py", "absent.py", "."]);
    for name in names {
        let log: Value =
            serde_json::from_str(&tile(folder.path(), &["check", "--format", "sarif", name]))
                .unwrap();
        check(&validator, name, &log);
        results.extend(log["runs"][0]["results"].as_array().unwrap().clone());
    }
    let has = |what: &dyn Fn(&Value) -> bool| results.iter().any(what);
    for level in ["error", "warning", "note"] {
        assert!(has(&|result| result["level"] == level), "no result of level {level}");
    }
    assert!(has(&|result| result["relatedLocations"].is_array()));
    assert!(has(&|result| result["fixes"].is_array()));
    let uri = |result: &Value| {
        result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].clone()
    };
    assert!(has(&|result| uri(result) == "gr%C3%B6%C3%9Fe%20und%20%E5%BD%A2%20%231%25.py"));
    assert!(has(&|result| uri(result) == "./a:b/c%20d.py"));
    let absolute = folder.path().join("name.py");
    let log = tile(folder.path(), &["check", "--format", "sarif", absolute.to_str().unwrap()]);
    let log: Value = serde_json::from_str(&log).unwrap();
    check(&validator, "an absolute path", &log);
    let first = uri(&log["runs"][0]["results"][0]);
    assert!(first.as_str().unwrap().starts_with("file:///"), "{first}");
}

/// The schema for one kind of line.
fn line_schema(kind: &str) -> Validator {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/output.schema.json");
    let mut schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    schema.as_object_mut().unwrap().remove("oneOf");
    schema["$ref"] = format!("#/$defs/{kind}").into();
    validator(&schema)
}

#[test]
fn json_lines_follow_their_schema() {
    let (finding, summary) = (line_schema("finding"), line_schema("summary"));
    let folder = folder();
    let mut codes = std::collections::BTreeSet::new();
    let names = inputs().into_iter().map(|(name, _)| name).chain(["latin.py", "absent.py", "."]);
    for name in names {
        let text = tile(folder.path(), &["check", "--format", "json", name]);
        let lines: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let (last, findings) = lines.split_last().unwrap();
        check(&summary, name, last);
        for line in findings {
            check(&finding, name, line);
            codes.insert(line["code"].as_str().unwrap().to_owned());
        }
    }
    assert!(codes.len() >= 10, "the inputs show too little: {codes:?}");
    let run = line_schema("run");
    let ran = tile(folder.path(), &["run", "nothing.py", "--device", "cpu", "--format", "json"]);
    assert_eq!(ran.lines().count(), 1, "{ran}");
    check(&run, "run", &serde_json::from_str(&ran).unwrap());
}

/// Where there is an assembler; prints on what device it ran, if on any.
#[test]
fn info_has_the_occupancy_that_the_driver_reports() {
    let folder = folder();
    let text = tile(folder.path(), &["info", "nothing.py", "--format", "json"]);
    let doctor = tile(folder.path(), &["doctor"]);
    let line = |what: &str| doctor.lines().find(|line| line.starts_with(what)).unwrap().to_owned();
    if line("ptxas").contains("missing") {
        assert_eq!(text, "", "nothing is measured without an assembler");
        return;
    }
    let info: Value = serde_json::from_str(&text).unwrap();
    check(&line_schema("info"), "info", &info);
    let driver = &info["driver_occupancy"];
    let devices = line("devices");
    let ran = usize::from(devices.contains("cuda:0"));
    assert_eq!(driver.is_object(), ran == 1, "{devices}: {info:#}");
    if ran == 1 {
        // Of a kernel of few registers and no shared memory both say the same.
        assert_eq!(driver["occupancy"], info["occupancy"], "{info:#}");
        assert!(driver["ctas"].as_u64().unwrap() > 0);
        assert_eq!(driver["source"], "cuOccupancyMaxActiveBlocksPerMultiprocessor");
    }
    eprintln!("{ran} GPU tests ran: {devices}");
}

/// A line of another kind, or with a member of another type, is refused.
#[test]
fn the_schema_of_lines_is_strict() {
    let finding = line_schema("finding");
    let folder = folder();
    let text = tile(folder.path(), &["check", "--format", "json", "name.py"]);
    let line: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert!(finding.is_valid(&line));
    let broken = |change: &dyn Fn(&mut Value)| {
        let mut line = line.clone();
        change(&mut line);
        !finding.is_valid(&line)
    };
    assert!(broken(&|line| line["severity"] = "fatal".into()));
    assert!(broken(&|line| line["range"]["start"]["line"] = 0.into()));
    assert!(broken(&|line| line["code"] = "other/code".into()));
    assert!(broken(&|line| {
        line.as_object_mut().unwrap().remove("kernel");
    }));
}
