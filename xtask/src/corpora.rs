//! Published kernels: packages from PyPI that work with Triton.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use xshell::{Shell, cmd};

use crate::suite::{Counts, tee};
use crate::{program, root, target};

/// Published wheels full of kernels that work with Triton 3.6; `tile check` must find no error in
/// them.
const CORPORA: &[&str] = &["liger-kernel==0.8.5", "fla-core==0.6.0"];

/// The environment variable that names a checkout of Triton, whose tutorials are checked too.
const TRITON_CHECKOUT: &str = "TILE_TRITON_CHECKOUT";

/// Findings in all files of a folder that holds kernels; prints the summary and the first errors.
fn findings(
    sh: &Shell,
    tile: &Path,
    name: &str,
    folder: &Path,
    flags: &[&str],
) -> Result<Vec<Value>> {
    let output = cmd!(sh, "{tile} check {flags...} --format json {folder}")
        .quiet()
        .ignore_status()
        .read()?;
    let lines = output.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>();
    let mut lines = lines.context("tile check gave no JSON")?;
    let last = lines.pop().context("tile check gave no summary")?;
    let summary = &last["summary"];
    println!("{name}: {summary}");
    if summary["kernels"].as_u64().unwrap_or(0) == 0 {
        bail!("{} has no kernels; did it change?", folder.display());
    }
    for error in lines.iter().filter(|line| is_error(line)).take(20) {
        println!("{error}");
    }
    Ok(lines)
}

fn is_error(finding: &Value) -> bool {
    finding["severity"] == "error"
}

/// The folders of the corpora, each fetched once.
pub(crate) fn folders(sh: &Shell) -> Result<Vec<PathBuf>> {
    CORPORA.iter().map(|wheel| fetched(sh, wheel)).collect()
}

fn fetched(sh: &Shell, wheel: &str) -> Result<PathBuf> {
    let folder = target().join("corpora").join(wheel);
    if !folder.exists() {
        let options = ["--quiet", "--no-deps", "--no-compile", "--target"];
        cmd!(sh, "python3 -m pip install {options...} {folder} {wheel}").quiet().run()?;
    }
    Ok(folder)
}

/// Fetches each corpus once and checks all its files: there are no errors, and the warnings are the
/// ones that were read.
pub(crate) fn check(sh: &Shell, tile: &Path) -> Result<Counts> {
    let mut counts = Counts::default();
    let (mut warnings, mut lines) = (BTreeMap::new(), 0);
    for wheel in CORPORA {
        let folder = fetched(sh, wheel)?;
        let found = findings(sh, tile, wheel, &folder, &["--triton", "3.6"])?;
        counts.add(!found.iter().any(is_error));
        warnings.extend(found.iter().filter_map(|finding| warning(&folder, finding)));
        lines += lines_of_kernels(&folder)?;
    }
    counts.add(are_reviewed(sh, &warnings)?);
    println!("{} warnings in {lines} lines of files with kernels", warnings.len());
    counts.add(warnings.len() * LINES_PER_WARNING <= lines);
    if let Some(checkout) = std::env::var_os(TRITON_CHECKOUT) {
        let folder = Path::new(&checkout).join("python/tutorials");
        let found = findings(sh, tile, "Triton's tutorials", &folder, &[])?;
        counts.add(!found.iter().any(is_error));
    }
    counts.add(coverage(sh)?);
    let Counts { passed, failed } = mutations(sh)?;
    counts.passed += passed;
    counts.failed += failed;
    Ok(counts)
}

/// Published code gets at most one warning in so many lines.
const LINES_PER_WARNING: usize = 200;

/// The warnings that were read by hand and found true.
const REVIEWED: &str = "tests/analysis/warnings.txt";

/// A warning as the list has it, `PACKAGE FILE:LINE CODE`, with its message; `None` for other
/// findings.
fn warning(folder: &Path, finding: &Value) -> Option<(String, String)> {
    if finding["severity"] != "warning" {
        return None;
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let file = PathBuf::from(text(&finding["file"]));
    let file = file.strip_prefix(folder).unwrap_or(&file).display().to_string();
    let (package, file) = file.split_once('/')?;
    let line = &finding["range"]["start"]["line"];
    let entry = format!("{package} {file}:{line} {}", text(&finding["code"]));
    Some((entry, text(&finding["message"])))
}

/// Whether the warnings are those of the list; prints what is new and what is gone.
fn are_reviewed(sh: &Shell, warnings: &BTreeMap<String, String>) -> Result<bool> {
    let list = sh.read_file(root().join(REVIEWED))?;
    let entries = list.lines().map(str::trim);
    let known: BTreeSet<&str> =
        entries.filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    let new: Vec<_> =
        warnings.iter().filter(|(entry, _)| !known.contains(entry.as_str())).collect();
    let gone: Vec<_> = known.iter().filter(|entry| !warnings.contains_key(**entry)).collect();
    if new.is_empty() && gone.is_empty() {
        return Ok(true);
    }
    println!("{REVIEWED} differs from what is found:");
    for (entry, message) in new {
        println!("+ {entry}\n      {message}");
    }
    for entry in gone {
        println!("- {entry}");
    }
    println!("Read what is new; if it is true, add it with the reason. Remove what is gone.");
    Ok(false)
}

/// Lines of the files that mention Triton.
fn lines_of_kernels(folder: &Path) -> Result<usize> {
    let mut lines = 0;
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            lines += lines_of_kernels(&path)?;
        } else if path.extension().is_some_and(|extension| extension == "py") {
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            lines += if text.contains("triton.jit") { text.lines().count() } else { 0 };
        }
    }
    Ok(lines)
}

/// Least share, in percent, of the functions of the corpora that must be fully inferred, and of
/// the kernels that must lower.
const LEAST_UNDERSTOOD: f64 = 95.0;

/// Prints how many functions of the corpora are fully inferred, how many kernels lower, and why
/// the others do not; see `tests/src/bin/coverage.rs`. Whether the shares are large enough.
fn coverage(sh: &Shell) -> Result<bool> {
    let folders = folders(sh)?;
    let coverage = program("coverage");
    let text = tee(cmd!(sh, "{coverage} {folders...}"))?;
    let shares: Value = serde_json::from_str(text.lines().last().unwrap_or_default())
        .context("coverage gave no JSON")?;
    let share = |what: &str| shares[what]["percent"].as_f64().unwrap_or(0.0);
    let enough = |what: &&str| share(what) >= LEAST_UNDERSTOOD;
    Ok(["functions_inferred", "kernels_lowered"].iter().all(enough))
}

/// Breaks kernels and launches of the corpora and the examples, and prints per family the share of
/// mistakes that is found; see `tests/src/bin/mutations`. Whether the shares are large enough, and no
/// kernel is blamed as it stands.
fn mutations(sh: &Shell) -> Result<Counts> {
    let mut counts = Counts::default();
    let mut folders = folders(sh)?;
    folders.push(root().join("examples"));
    let modes = [
        (&[][..], LEAST_FOUND),
        (&["--costs"], LEAST_FOUND),
        (&["--launched"], LEAST_LAUNCHED_FOUND),
    ];
    for (flags, least) in modes {
        let folders = &folders;
        let mutations = program("mutations");
        let text = tee(cmd!(sh, "{mutations} {flags...} {folders...}"))?;
        let found: Value = serde_json::from_str(text.lines().last().unwrap_or_default())
            .context("mutations gave no JSON")?;
        let shares = found["found_percent"].as_object().context("mutations gave no shares")?;
        for share in shares.values() {
            counts.add(share.as_f64().unwrap_or(0.0) >= least);
        }
        counts.add(found["false_alarms"] == 0);
    }
    Ok(counts)
}

/// Least share, in percent, of the mistakes of each family that must be found.
const LEAST_FOUND: f64 = 95.0;

/// The same for launches. Some ten to forty mistakes are tried there, in the kernels that the CPU
/// executor runs within a deadline, so that the set depends on the machine: one that is missed
/// weighs up to a tenth.
const LEAST_LAUNCHED_FOUND: f64 = 80.0;
