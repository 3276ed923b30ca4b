//! Where source text comes from when no editor has it open.

use std::fmt;
use std::path::{Path, PathBuf};

/// Reads the files around the open ones. The one seam to the file system, so that tests and other
/// hosts can bring their own.
pub trait FileSystem: fmt::Debug + Send + Sync {
    /// The text of a file; `None` when there is none that can be read as source.
    fn read(&self, path: &Path) -> Option<String>;

    /// Names of the entries of a folder, sorted; empty when it cannot be listed.
    fn list(&self, folder: &Path) -> Vec<PathBuf>;
}

/// Files on the machine that the server runs on.
#[derive(Debug, Clone, Copy, Default)]
pub struct Disk;

/// Source files beyond this size are not analysed.
pub const MAX_FILE_BYTES: u64 = 4 << 20;

impl FileSystem for Disk {
    fn read(&self, path: &Path) -> Option<String> {
        let length = std::fs::metadata(path).ok()?.len();
        if length > MAX_FILE_BYTES {
            tracing::debug!(path = %path.display(), length, "file is too large to be followed");
            return None;
        }
        String::from_utf8(std::fs::read(path).ok()?).ok()
    }

    fn list(&self, folder: &Path) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        paths
    }
}
