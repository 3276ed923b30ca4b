//! `tile doctor`: what Tile found on this machine.

use tile_worker::cache::{Cache, user_folder};
use tile_worker::{Pool, WorkerCommand, ptxas};

use crate::cli::DoctorArgs;
use crate::{CommandError, Exit, output, workspace};

/// One line of the report.
struct Finding {
    what: &'static str,
    /// What was found, or what its absence means and how to mend it.
    text: String,
    /// Whether something needed is missing.
    missing: bool,
}

fn found(what: &'static str, text: impl Into<String>) -> Finding {
    Finding { what, text: text.into(), missing: false }
}

fn missing(what: &'static str, text: impl Into<String>) -> Finding {
    Finding { what, text: text.into(), missing: true }
}

/// Reports, after fetching the assembler if `--fix` asks for it and there is none.
pub(crate) fn run(arguments: &DoctorArgs) -> Result<Exit, CommandError> {
    let site_packages = workspace::site_packages(std::path::Path::new("."));
    let chosen = tile_lsp::project_rules(std::path::Path::new(".")).ptxas;
    let mut assembler = ptxas::find(chosen.as_deref(), site_packages.as_deref());
    if assembler.is_none() && arguments.fix {
        output::note("fetching ptxas from PyPI");
        assembler = Some(ptxas::fetch().map_err(CommandError::device)?);
    }
    let findings = [
        found("tile", env!("CARGO_PKG_VERSION")),
        assembler_line(assembler.as_deref()),
        match ptxas::find_disassembler(assembler.as_deref(), site_packages.as_deref()) {
            Some(path) => found("nvdisasm", path.display().to_string()),
            None => found("nvdisasm", "none; `--stage sass` needs it (`tile doctor --fix`)"),
        },
        devices(),
        match &site_packages {
            Some(folder) => found("python", python_line(folder)),
            None => found("python", "no environment; imports are followed inside the workspace"),
        },
        cache_line(),
    ];
    for finding in &findings {
        let mark = if finding.missing { "missing" } else { "ok" };
        output::text_line(&format!("{:<9} {mark:<8} {}", finding.what, finding.text))?;
    }
    let all_there = findings.iter().all(|finding| !finding.missing);
    Ok(if all_there { Exit::Success } else { Exit::Findings })
}

fn assembler_line(assembler: Option<&std::path::Path>) -> Finding {
    match assembler {
        Some(path) => match ptxas::version(path) {
            Some(version) => found("ptxas", format!("{version} ({})", path.display())),
            None => missing("ptxas", format!("{} does not answer", path.display())),
        },
        None => missing("ptxas", ptxas::missing()),
    }
}

fn devices() -> Finding {
    let answer =
        WorkerCommand::current_exe().map_err(|error| error.to_string()).and_then(|command| {
            Pool::new(command, Cache::disabled()).devices().map_err(|error| error.to_string())
        });
    match answer {
        Err(message) => missing("devices", message),
        Ok(devices) if devices.is_empty() => found("devices", "cpu (no CUDA device or driver)"),
        Ok(devices) => {
            let names = devices.iter().enumerate().map(|(number, device)| {
                let gib = device.memory_bytes >> 30;
                format!("cuda:{number} {} ({}, {gib} GiB)", device.name, device.arch)
            });
            found("devices", names.chain(["cpu".to_owned()]).collect::<Vec<_>>().join(", "))
        }
    }
}

fn cache_line() -> Finding {
    let Some(folder) = user_folder() else { return found("cache", "off") };
    let shown = folder.display();
    match std::fs::create_dir_all(&folder) {
        Ok(()) => found("cache", shown.to_string()),
        Err(error) => {
            let mend = "set TILE_CACHE to a folder that can be written, or to nothing for none";
            missing("cache", format!("{shown} cannot be made: {error}; {mend}"))
        }
    }
}

fn python_line(site_packages: &std::path::Path) -> String {
    let triton = workspace::package_version(site_packages, "triton");
    let triton = triton.map_or("no triton".to_owned(), |version| format!("triton {version}"));
    format!("{} ({triton})", site_packages.display())
}
