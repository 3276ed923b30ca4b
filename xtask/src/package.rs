//! Builds what is shipped: one binary and one extension.

use anyhow::Result;
use xshell::{Shell, cmd};

/// Builds the release binary and the VS Code extension into `target/package`.
pub(crate) fn run(sh: &Shell) -> Result<()> {
    crate::setup::for_tests(sh)?;
    let folder = crate::target().join("package");
    sh.create_dir(&folder)?;
    cmd!(sh, "cargo build --release --package tile").run()?;
    sh.copy_file(crate::target().join("release/tile"), &folder)?;
    let extension = crate::root().join("editors/vscode");
    let _dir = sh.push_dir(&extension);
    cmd!(sh, "npm run --silent package").run()?;
    sh.copy_file(extension.join("tile.vsix"), &folder)?;
    println!("packaged into {}", folder.display());
    Ok(())
}
