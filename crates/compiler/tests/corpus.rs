//! Every file of Python's standard library parses without errors and lowers without panics.
//!
//! The library is looked for where Python is usually installed; `TILE_PYTHON_CORPUS` names other
//! directories, separated by `:`. Without any the test says so and passes.

use std::path::{Path, PathBuf};

use tile_compiler::hir;
use tile_compiler::source::FileId;
use tile_compiler::syntax::Parse;

/// Directories of the library whose files are wrong on purpose, or are not the library's.
const SKIPPED: &[&str] = &["site-packages", "lib2to3", "test", "tests", "idlelib", "__pycache__"];

#[test]
fn the_standard_library_parses_and_lowers() {
    let mut files = Vec::new();
    for root in corpus() {
        collect(&root, &mut files);
    }
    if files.is_empty() {
        eprintln!("skipped: no Python library found; set TILE_PYTHON_CORPUS to a directory");
        return;
    }
    let mut broken = Vec::new();
    for file in &files {
        let Ok(text) = std::fs::read_to_string(file) else { continue };
        let parse = Parse::new(text);
        let module = hir::lower(&parse);
        hir::pretty::module(&module);
        if let Some(error) = parse.diagnostics(FileId(0)).first() {
            broken.push(format!("{}: {}", file.display(), error.message));
        }
    }
    assert!(broken.is_empty(), "{} of {} files:\n{}", broken.len(), files.len(), broken.join("\n"));
}

/// The directories to walk: one Python library is enough.
fn corpus() -> Vec<PathBuf> {
    if let Some(paths) = std::env::var_os("TILE_PYTHON_CORPUS") {
        return std::env::split_paths(&paths).collect();
    }
    let mut installations = vec![PathBuf::from("/usr"), PathBuf::from("/usr/local")];
    let home = std::env::home_dir().unwrap_or_default();
    installations.extend(entries(&home.join(".pyenv/versions")));
    let libraries = installations.iter().flat_map(|root| entries(&root.join("lib")));
    libraries.filter(|path| path.join("ast.py").is_file()).take(1).collect()
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    for path in entries(directory) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && !SKIPPED.contains(&name.as_str()) {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "py") {
            files.push(path);
        }
    }
}
