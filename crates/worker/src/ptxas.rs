//! Finds the assembler and the disassembler, or fetches them.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cache::user_folder;

/// What to tell users who have none, where there is little room.
pub const MISSING: &str = "there is no ptxas; `tile doctor --fix` fetches it";

/// What to tell users who have none.
pub fn missing() -> String {
    let none = "there is no ptxas, so nothing can be measured or made into machine code";
    match chosen(None) {
        Some(path) => {
            let path = path.display();
            format!("{none}: TILE_PTXAS is {path}, which is no program; correct or unset it")
        }
        None => format!("{none}; `tile doctor --fix` fetches it, or set TILE_PTXAS"),
    }
}

/// What the user has chosen, whether it is there or not.
fn chosen(setting: Option<&Path>) -> Option<PathBuf> {
    let environment = || std::env::var_os("TILE_PTXAS").map(PathBuf::from);
    let chosen = setting.map(Path::to_owned).or_else(environment);
    chosen.filter(|path| !path.as_os_str().is_empty())
}

/// The assembler to use, or `None` when there is none.
///
/// A `setting` of the user (an option, `TILE_PTXAS`) is final, so that a wrong one is not hidden
/// by another. Else the first of: PATH, `CUDA_HOME` and `CUDA_PATH`, `/usr/local/cuda`, the
/// wheels in `site_packages`, and what `tile doctor --fix` fetched.
pub fn find(setting: Option<&Path>, site_packages: Option<&Path>) -> Option<PathBuf> {
    if let Some(path) = chosen(setting) {
        return which::which(path).ok();
    }
    if let Ok(path) = which::which("ptxas") {
        return Some(path);
    }
    let homes = ["CUDA_HOME", "CUDA_PATH"].iter().filter_map(std::env::var_os).map(PathBuf::from);
    let toolkits =
        homes.chain([PathBuf::from("/usr/local/cuda")]).map(|home| home.join("bin/ptxas"));
    let wheels = site_packages.into_iter().flat_map(|folder| tools_in(folder, "ptxas"));
    let fetched = fetched_folder().into_iter().flat_map(|folder| tools_in(&folder, "ptxas"));
    toolkits.chain(wheels).chain(fetched).find(|path| path.is_file())
}

/// The disassembler to use: next to the assembler, or from the same places.
pub fn find_disassembler(ptxas: Option<&Path>, site_packages: Option<&Path>) -> Option<PathBuf> {
    let beside = ptxas.and_then(Path::parent).map(|folder| folder.join("nvdisasm"));
    let wheels = site_packages.into_iter().flat_map(|folder| tools_in(folder, "nvdisasm"));
    let fetched = fetched_folder().into_iter().flat_map(|folder| tools_in(&folder, "nvdisasm"));
    let known = beside.into_iter().chain(wheels).chain(fetched).find(|path| path.is_file());
    known.or_else(|| which::which("nvdisasm").ok())
}

/// What an assembler says of itself: `ptxas 12.9.86`; `None` when it does not answer.
pub fn version(ptxas: &Path) -> Option<String> {
    let output = Command::new(ptxas).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (_, number) = text.rsplit_once(", V")?;
    Some(format!("ptxas {}", number.split_whitespace().next()?))
}

/// Python packages that carry the assembler and the disassembler.
const WHEELS: &[&str] = &["nvidia-cuda-nvcc-cu12", "nvidia-cuda-nvdisasm"];

/// Fetches the assembler and the disassembler from PyPI into the user's cache, with the user's
/// own pip and its configuration.
///
/// # Errors
/// A message for the user: there is no pip, no cache folder, or pip failed.
pub fn fetch() -> Result<PathBuf, String> {
    let folder = fetched_folder().ok_or("there is no cache folder; set HOME or TILE_CACHE")?;
    let python = which::which("python3").or_else(|_| which::which("python"));
    let python = python.map_err(|_| "python3 with pip is needed to fetch ptxas; install it")?;
    let output = Command::new(python)
        .args(["-m", "pip", "install", "--quiet", "--no-deps", "--no-compile", "--upgrade"])
        .args(["--only-binary", ":all:", "--target"])
        .arg(&folder)
        .args(WHEELS)
        .output()
        .map_err(|error| format!("cannot start pip: {error}"))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        return Err(format!("pip could not fetch {}:\n{}", WHEELS.join(" and "), stderr.trim()));
    }
    let found = tools_in(&folder, "ptxas").into_iter().find(|path| path.is_file());
    found.ok_or_else(|| format!("{} holds no ptxas for this machine", WHEELS[0]))
}

/// Where `tile doctor --fix` unpacks the assembler's wheel.
pub(crate) fn fetched_folder() -> Option<PathBuf> {
    Some(user_folder()?.join("ptxas"))
}

/// Where the wheels that carry an assembler or a disassembler keep it.
fn tools_in(folder: &Path, tool: &str) -> Vec<PathBuf> {
    ["nvidia/cuda_nvcc/bin", "nvidia/cu13/bin", "triton/backends/nvidia/bin"]
        .iter()
        .map(|place| folder.join(place).join(tool))
        .collect()
}
