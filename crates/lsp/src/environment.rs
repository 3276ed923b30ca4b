//! What the machine has of Python: an environment. Nothing is run.

use std::path::{Path, PathBuf};

/// The site-packages folder of the chosen interpreter or environment; without a choice, of the
/// active virtual or Conda environment, else of `.venv` or `venv` in the folders or above.
pub fn site_packages(chosen: Option<&Path>, folders: &[PathBuf]) -> Option<PathBuf> {
    if let Some(chosen) = chosen {
        // `bin/python` lies two levels below its environment.
        return chosen.ancestors().take(3).find_map(packages_of);
    }
    let active = ["VIRTUAL_ENV", "CONDA_PREFIX"].iter().filter_map(std::env::var_os);
    let nearby = folders.iter().flat_map(|folder| folder.ancestors());
    let nearby = nearby.flat_map(|folder| [folder.join(".venv"), folder.join("venv")]);
    active.map(PathBuf::from).chain(nearby).find_map(|environment| packages_of(&environment))
}

/// The newest Python's packages in an environment.
fn packages_of(environment: &Path) -> Option<PathBuf> {
    let versions = std::fs::read_dir(environment.join("lib")).ok()?;
    let packages = versions.flatten().map(|version| version.path().join("site-packages"));
    packages.filter(|folder| folder.is_dir()).max()
}
