//! Where source text comes from when no editor has it open.

use std::fmt;
use std::path::{Path, PathBuf};

/// Reads the files around the open ones. The one seam to the file system, so that tests and other
/// hosts can bring their own.
pub trait FileSystem: fmt::Debug + Send + Sync {
    /// The text of a file; `None` when there is none that can be read as source.
    fn read(&self, path: &Path) -> Option<String>;

    /// Python and Tile files below a folder, sorted, at most `limit`; what `.gitignore` leaves out
    /// is left out.
    fn walk(&self, folder: &Path, limit: usize) -> Vec<PathBuf>;
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

    fn walk(&self, folder: &Path, limit: usize) -> Vec<PathBuf> {
        let is_source = |path: &Path| {
            path.extension().is_some_and(|extension| extension == "py" || extension == "tile")
        };
        let entries = ignore::WalkBuilder::new(folder).require_git(false).build().flatten();
        let files = entries.filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
        let paths = files.map(ignore::DirEntry::into_path).filter(|path| is_source(path));
        let mut paths: Vec<PathBuf> = paths.take(limit).collect();
        paths.sort();
        paths
    }
}
