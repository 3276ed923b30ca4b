//! Finds the assembler.

use std::path::{Path, PathBuf};

use crate::cache::user_folder;

/// The assembler to use, or `None` when there is none.
///
/// A `setting` of the user (an option, `TILE_PTXAS`) is final, so that a wrong one is not hidden
/// by another. Else the first of: PATH, `CUDA_HOME` and `CUDA_PATH`, `/usr/local/cuda`, the
/// wheels in `site_packages`, and what `tile doctor --fix` fetched.
pub fn find(setting: Option<&Path>, site_packages: Option<&Path>) -> Option<PathBuf> {
    let chosen =
        setting.map(Path::to_owned).or_else(|| std::env::var_os("TILE_PTXAS").map(PathBuf::from));
    if let Some(path) = chosen.filter(|path| !path.as_os_str().is_empty()) {
        return which::which(path).ok();
    }
    if let Ok(path) = which::which("ptxas") {
        return Some(path);
    }
    let homes = ["CUDA_HOME", "CUDA_PATH"].iter().filter_map(std::env::var_os).map(PathBuf::from);
    let toolkits =
        homes.chain([PathBuf::from("/usr/local/cuda")]).map(|home| home.join("bin/ptxas"));
    let wheels = site_packages.into_iter().flat_map(in_site_packages);
    let fetched = fetched_folder().into_iter().flat_map(|folder| in_site_packages(&folder));
    toolkits.chain(wheels).chain(fetched).find(|path| path.is_file())
}

/// Where `tile doctor --fix` unpacks the assembler's wheel.
pub fn fetched_folder() -> Option<PathBuf> {
    Some(user_folder()?.join("ptxas"))
}

/// Where the wheels that carry an assembler keep it.
fn in_site_packages(folder: &Path) -> Vec<PathBuf> {
    ["nvidia/cuda_nvcc/bin/ptxas", "nvidia/cu13/bin/ptxas", "triton/backends/nvidia/bin/ptxas"]
        .iter()
        .map(|place| folder.join(place))
        .collect()
}
