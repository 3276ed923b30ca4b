//! Parses the standard library of the machine's Python.

use std::{path::PathBuf, process::Command};

use crate::parser;

/// Prints, as JSON, the library's files and whether Python's own parser takes each.
const LIST_FILES: &str = r#"
import ast, json, os, sysconfig, warnings
warnings.simplefilter("ignore")
files = []
for directory, children, names in os.walk(sysconfig.get_paths()["stdlib"]):
    children[:] = sorted(name for name in children if name != "site-packages")
    for path in (os.path.join(directory, name) for name in sorted(names) if name.endswith(".py")):
        try:
            with open(path, "rb") as file:
                ast.parse(file.read())
            files.append((path, True))
        except (SyntaxError, ValueError, RecursionError):
            files.append((path, False))
print(json.dumps(files))
"#;

/// The library's files with whether Python accepts them; `None` without a Python.
pub fn library_files() -> Option<Vec<(PathBuf, bool)>> {
    let output = Command::new("python3").args(["-c", LIST_FILES]).output().ok()?;
    output
        .status
        .success()
        .then(|| serde_json::from_slice(&output.stdout).expect("python3 printed the list as JSON"))
}

#[test]
fn standard_library_parses() {
    let Some(files) = library_files() else {
        println!("skipped: there is no python3 on PATH to take the standard library from");
        return;
    };
    let mut parser = parser();
    let accepted: Vec<_> =
        files.iter().filter_map(|(path, accepted)| accepted.then_some(path)).collect();
    assert!(!accepted.is_empty(), "the standard library has files");
    let failures: Vec<_> = accepted
        .iter()
        .filter(|path| {
            let source = std::fs::read(path).expect("Python read this file");
            let tree = parser.parse(&source, None).expect("no time limit was set");
            tree.root_node().has_error()
        })
        .collect();
    println!("parsed {} files of the standard library", accepted.len());
    assert!(failures.is_empty(), "Python takes these files, the grammar does not: {failures:#?}");
}
