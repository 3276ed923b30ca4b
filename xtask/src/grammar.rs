//! Regenerates the grammar's tables from `tree-sitter-tile/grammar.js`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use tree_sitter_generate::{ABI_VERSION_MAX, OptLevel, generate_parser_in_directory};
use xshell::{Shell, cmd};

/// The generated files, relative to `tree-sitter-tile/src`.
const GENERATED: [&str; 6] = [
    "parser.c",
    "grammar.json",
    "node-types.json",
    "tree_sitter/alloc.h",
    "tree_sitter/array.h",
    "tree_sitter/parser.h",
];

/// Writes the generated files of the grammar; with `check`, compares them with the
/// committed ones instead and changes nothing.
///
/// Needs `node` and, on the first call, `npm` to fetch the Python grammar that
/// `grammar.js` extends.
///
/// # Errors
///
/// When the grammar does not generate, or, with `check`, when a committed file is stale.
pub fn generate(check: bool) -> Result<()> {
    let grammar_dir = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("invariant: xtask lies inside the workspace")
        .join("tree-sitter-tile");
    install_base_grammar(&grammar_dir)?;
    let committed = grammar_dir.join("src");
    if !check {
        return generate_into(&grammar_dir, &committed);
    }
    let shell = Shell::new()?;
    let fresh = shell.create_temp_dir()?;
    generate_into(&grammar_dir, fresh.path())?;
    let stale = stale_files(&committed, fresh.path())?;
    ensure!(
        stale.is_empty(),
        "generated files differ from grammar.js: {}; run `cargo xtask grammar` and commit the result",
        stale.join(", ")
    );
    Ok(())
}

/// Installs the Python grammar that `grammar.js` requires, unless it is there already.
fn install_base_grammar(grammar_dir: &Path) -> Result<()> {
    if grammar_dir.join("node_modules/tree-sitter-python/grammar.js").exists() {
        return Ok(());
    }
    let shell = Shell::new()?;
    shell.change_dir(grammar_dir);
    cmd!(shell, "npm ci --ignore-scripts --no-audit --no-fund")
        .run()
        .context("the grammar extends the npm package tree-sitter-python; install node and npm")
}

/// Generates every file of [`GENERATED`] below `out`.
fn generate_into(grammar_dir: &Path, out: &Path) -> Result<()> {
    generate_parser_in_directory(
        grammar_dir,
        Some(out),
        None::<PathBuf>,
        ABI_VERSION_MAX,
        None,
        Some("node"),
        true,
        OptLevel::default(),
    )
    .context("grammar.js does not generate a parser")
}

/// Names the generated files that differ between two directories.
fn stale_files(committed: &Path, fresh: &Path) -> Result<Vec<&'static str>> {
    let mut stale = Vec::new();
    for name in GENERATED {
        let fresh = fs::read(fresh.join(name)).with_context(|| format!("generated {name}"))?;
        if fs::read(committed.join(name)).ok().as_deref() != Some(&fresh[..]) {
            stale.push(name);
        }
    }
    Ok(stale)
}
