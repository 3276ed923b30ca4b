//! A short tour over the example kernels.

use std::path::Path;

use anyhow::Result;
use xshell::{Shell, cmd};

/// Sets up, builds and shows diagnostics, PTX with its source lines, resources and a run.
pub(crate) fn run(sh: &Shell) -> Result<()> {
    crate::setup::for_build(sh)?;
    println!("building tile; the first time takes some minutes");
    let tile = crate::build_tile(sh)?;
    cmd!(sh, "{tile} doctor --fix").quiet().run()?;
    diagnostics(sh, &tile)?;
    machine_code(sh, &tile)?;
    heading("It runs: on the GPU if there is one, else on the CPU");
    on_kernels(sh, &tile, "run")
}

/// Shows a command on every example that has kernels of its own.
fn on_kernels(sh: &Shell, tile: &Path, command: &str) -> Result<()> {
    for file in crate::examples(sh)? {
        if crate::has_scenario(sh, &file)? {
            let file = file.strip_prefix(crate::root()).unwrap_or(&file);
            shown(sh, tile, &[command, &file.to_string_lossy()], None)?;
        }
    }
    Ok(())
}

fn diagnostics(sh: &Shell, tile: &Path) -> Result<()> {
    heading("The examples have no errors");
    shown(sh, tile, &["check", "examples"], None)?;
    heading("With a mask of another shape than the pointers");
    let good = sh.read_file(crate::root().join("examples/vector_add.py"))?;
    let broken =
        good.replace("mask = offsets < n_elements", "mask = tl.arange(0, 512) < n_elements");
    shown(sh, tile, &["check", "-", "--stdin-name", "vector_add.py"], Some(&broken))
}

fn machine_code(sh: &Shell, tile: &Path) -> Result<()> {
    heading("What the kernels take, measured by the assembler");
    on_kernels(sh, tile, "info")?;
    heading("PTX, with the source line of each instruction");
    let arguments = ["emit", "examples/vector_add.py", "--stage", "ptx", "--annotate"];
    let text = cmd!(sh, "{tile} {arguments...}").quiet().read()?;
    println!("$ tile {}", arguments.join(" "));
    let body = text.lines().skip_while(|line| !line.contains("examples/vector_add.py:"));
    for line in body.take(14) {
        println!("{line}");
    }
    println!("...");
    Ok(())
}

fn heading(text: &str) {
    println!("\n── {text}");
}

/// Shows a command and its output; findings are part of the show.
fn shown(sh: &Shell, tile: &Path, arguments: &[&str], stdin: Option<&str>) -> Result<()> {
    println!("$ tile {}", arguments.join(" "));
    let command = cmd!(sh, "{tile} {arguments...}").quiet().ignore_status();
    match stdin {
        Some(text) => command.stdin(text).run()?,
        None => command.run()?,
    }
    Ok(())
}
