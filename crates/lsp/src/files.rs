//! Where source text comes from when no editor has it open.

use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use tile_compiler::project::{ArrayHead, MAX_ARRAY_HEADER, paths};

/// Reads the files around the open ones. The one seam to the file system, so that tests and other
/// hosts can bring their own.
pub trait FileSystem: fmt::Debug + Send + Sync {
    /// The text of a file; `None` when there is none that can be read as source. Of an array's file
    /// (`.npy`) it is the header.
    fn read(&self, path: &Path) -> Option<String>;

    /// What a file holds, whether it can be read as source or not.
    ///
    /// # Errors
    /// Why it cannot be read at all.
    fn bytes(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.read(path).map(String::into_bytes).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Why a file that may have to do with kernels cannot be read as source, in a sentence; `None`
    /// for others, and for those that can.
    fn problem(&self, _path: &Path) -> Option<String> {
        None
    }

    /// Python and Tile files below a folder, sorted, at most `limit`; what `.gitignore` leaves out
    /// is left out.
    fn walk(&self, folder: &Path, limit: usize) -> Vec<PathBuf>;
}

/// Files on the machine that the server runs on.
#[derive(Debug, Clone, Copy, Default)]
pub struct Disk;

/// Source files beyond this size are not analysed.
pub const MAX_FILE_BYTES: u64 = 4 << 20;

/// What bytes say as source text.
///
/// # Errors
/// Why they are none, in a sentence.
pub fn source_text(bytes: Vec<u8>) -> Result<String, String> {
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(too_large(bytes.len() as u64));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = 1 + error.as_bytes()[..at].iter().filter(|&&byte| byte == b'\n').count();
        let byte = error.as_bytes()[at];
        format!("not UTF-8: byte 0x{byte:02x} on line {line}; save the file as UTF-8")
    })
}

/// What is wrong with a file of this many bytes.
pub fn too_large(bytes: u64) -> String {
    format!("{bytes} bytes is over the limit of 4 MiB ({MAX_FILE_BYTES} bytes); split the file")
}

/// A file to read. Pipes and devices need not end, and nobody may ever write to a pipe.
fn regular(path: &Path) -> io::Result<std::fs::File> {
    match std::fs::metadata(path)?.is_file() {
        true => std::fs::File::open(path),
        false => Err(io::Error::other("this is no regular file")),
    }
}

/// The header of the array in NumPy's file at `path`, of which no more is read.
///
/// # Errors
/// Why there is none, in a sentence.
pub fn array_header(path: &Path) -> Result<String, String> {
    let shown = path.display();
    let mut bytes = Vec::new();
    regular(path)
        .and_then(|file| file.take(MAX_ARRAY_HEADER).read_to_end(&mut bytes))
        .map_err(|error| format!("cannot open {shown}: {error}"))?;
    let header = ArrayHead::header(&bytes).map(str::to_owned);
    header.ok_or_else(|| format!("{shown} is not an .npy file"))
}

impl FileSystem for Disk {
    fn read(&self, path: &Path) -> Option<String> {
        if path.extension().is_some_and(|extension| extension == "npy") {
            return array_header(path).ok();
        }
        let bytes = self.bytes(path).ok()?;
        if bytes.len() as u64 > MAX_FILE_BYTES {
            tracing::debug!(path = %path.display(), "file is too large to be followed");
            return None;
        }
        String::from_utf8(bytes).ok()
    }

    fn bytes(&self, path: &Path) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        regular(path)?.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn problem(&self, path: &Path) -> Option<String> {
        let bytes = self.bytes(path).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        let concerns = paths::may_concern_kernels(&path.to_string_lossy(), &text);
        let length = std::fs::metadata(path).ok()?.len();
        if length > MAX_FILE_BYTES {
            return concerns.then(|| too_large(length));
        }
        source_text(bytes).err().filter(|_| concerns)
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
