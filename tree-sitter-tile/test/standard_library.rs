//! Parses the standard library of the machine's Python.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::parser;

/// Prints the folder of the standard library.
const LIBRARY: &str = r#"import sysconfig; print(sysconfig.get_paths()["stdlib"])"#;

/// Prints, as JSON, those of its arguments that Python's own parser takes.
const ACCEPTED: &str = r#"
import ast, json, sys, warnings
warnings.simplefilter("ignore")
def accepts(path):
    try:
        with open(path, "rb") as file:
            ast.parse(file.read())
    except (SyntaxError, ValueError, RecursionError):
        return False
    return True
print(json.dumps([path for path in sys.argv[1:] if accepts(path)]))
"#;

/// What a Python program prints; `None` without a Python.
fn python(program: &str, arguments: &[PathBuf]) -> Option<String> {
    let output = Command::new("python3").args(["-c", program]).args(arguments).output().ok()?;
    let printed = String::from_utf8(output.stdout).expect("Python prints UTF-8");
    output.status.success().then(|| printed.trim().to_owned())
}

/// All Python files below a folder, except those of installed packages.
fn python_files(dir: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    for path in entries.map(|entry| entry.expect("a readable entry").path()) {
        if path.is_dir() && !path.ends_with("site-packages") {
            python_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "py") {
            files.push(path);
        }
    }
}

/// The files of the standard library; none without a Python, which is told.
pub fn standard_library() -> Vec<PathBuf> {
    let mut files = Vec::new();
    let Some(library) = python(LIBRARY, &[]) else {
        println!("skipped: there is no python3 on PATH to take the standard library from");
        return files;
    };
    python_files(Path::new(&library), &mut files);
    assert!(files.len() > 100, "{library} is the standard library");
    files
}

#[test]
fn standard_library_parses() {
    let mut files = standard_library();
    let count = files.len();
    if files.is_empty() {
        return;
    }
    let mut parser = parser();
    files.retain(|path| {
        let source = std::fs::read(path).expect("a readable file");
        let tree = parser.parse(&source, None).expect("no time limit was set");
        tree.root_node().has_error()
    });
    println!("parsed {count} files of the standard library, {} with errors", files.len());
    let accepted = python(ACCEPTED, &files).expect("Python ran before");
    let failures: Vec<String> = serde_json::from_str(&accepted).expect("a list as JSON");
    assert!(failures.is_empty(), "Python takes these files, the grammar does not: {failures:#?}");
}
