//! Folders for temporary files: those of workers, and those that editors are shown.
//!
//! A worker may be killed at any moment and then removes nothing, so the process that starts it
//! owns the folder that it writes to and removes it with the worker. Should that process be killed
//! as well, the next one finds the folder: the owner of a folder holds a lock on a file in it for
//! as long as it lives, whatever machine or container it lives in.

use std::fs::File;
use std::io;
use std::path::Path;

use tempfile::TempDir;

/// What the names of all such folders start with.
const PREFIX: &str = "tile-";

/// The file in each folder that its owner has locked.
const OWNER: &str = "owner.lock";

/// A folder that is removed when dropped.
#[derive(Debug)]
pub struct Scratch {
    folder: TempDir,
    // The lock ends with the file.
    _owned: File,
}

impl Scratch {
    /// Makes a folder for `purpose`, a word that is part of its name, among the temporary files of
    /// the system.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn new(purpose: &str) -> io::Result<Scratch> {
        Scratch::new_in(&std::env::temp_dir(), purpose)
    }

    fn new_in(parent: &Path, purpose: &str) -> io::Result<Scratch> {
        let prefix = format!("{PREFIX}{purpose}-");
        let folder = tempfile::Builder::new().prefix(&prefix).tempdir_in(parent)?;
        // Locked before it has its name, so that nobody ever sees it without a lock.
        let unnamed = folder.path().join("unlocked");
        let owned = File::create(&unnamed)?;
        owned.lock()?;
        std::fs::rename(&unnamed, folder.path().join(OWNER))?;
        Ok(Scratch { folder, _owned: owned })
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes the folders whose owners are gone.
pub(crate) fn sweep() {
    sweep_in(&std::env::temp_dir());
}

fn sweep_in(parent: &Path) {
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    let ours = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX));
    for folder in ours.map(|entry| entry.path()).filter(|folder| is_abandoned(folder)) {
        match std::fs::remove_dir_all(&folder) {
            Ok(()) => tracing::debug!(folder = %folder.display(), "an abandoned folder is removed"),
            Err(error) => tracing::debug!(folder = %folder.display(), %error, "cannot be removed"),
        }
    }
}

/// True when nobody holds the lock of a folder any more.
fn is_abandoned(folder: &Path) -> bool {
    File::open(folder.join(OWNER)).is_ok_and(|file| file.try_lock().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn abandoned_folders_are_swept_and_others_stay() {
        let parent = tempfile::tempdir().unwrap();
        let kept = Scratch::new_in(parent.path(), "worker").unwrap();
        let Scratch { folder, _owned } = Scratch::new_in(parent.path(), "views").unwrap();
        // As if its owner had been killed.
        let abandoned = folder.keep();
        drop(_owned);
        std::fs::write(abandoned.join("kernel.ptx"), "").unwrap();
        let foreign = parent.path().join("tile-worker-notes");
        std::fs::create_dir(&foreign).unwrap();
        sweep_in(parent.path());
        assert!(!abandoned.exists(), "its owner is gone");
        assert!(kept.path().exists(), "its owner lives");
        assert!(foreign.exists(), "it has no owner's lock");
        let path = kept.path().to_owned();
        drop(kept);
        assert!(!path.exists(), "it goes with its owner");
    }
}
