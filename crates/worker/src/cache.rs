//! Artifacts on disk, keyed by content.
//!
//! The key is a hash of the IR text, the options, the compiler's own build and the assembler's
//! identity. Every failure is soft: an unreadable or damaged entry is a miss, an entry that cannot
//! be written is not cached. Entries are trusted as the user's own files are: the cache lies in
//! the user's cache folder and holds machine code.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::Serialize;
use tile_compiler::artifact::Artifact;

use crate::protocol::CompileRequest;

/// A folder of artifacts.
#[derive(Debug, Clone)]
pub struct Cache {
    folder: Option<PathBuf>,
}

impl Cache {
    /// The user's cache; `TILE_CACHE` names another folder, and an empty value switches it off.
    pub fn user() -> Cache {
        Cache { folder: user_folder().map(|folder| folder.join("artifacts")) }
    }

    /// A cache in `folder`.
    pub fn at(folder: PathBuf) -> Cache {
        Cache { folder: Some(folder) }
    }

    /// A cache that holds nothing.
    pub fn disabled() -> Cache {
        Cache { folder: None }
    }

    /// The key of what `worker`, the executable that compiles, makes of `request`.
    pub fn key(&self, request: &CompileRequest, worker: &Path) -> String {
        let mut hasher = blake3::Hasher::new();
        let mut part = |text: &str| {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        };
        part(env!("CARGO_PKG_VERSION"));
        part(&identity(worker));
        for tool in [&request.options.ptxas, &request.options.nvdisasm] {
            part(&tool.as_deref().map(identity).unwrap_or_default());
        }
        part(&request.options.arch);
        part(&format!("{:?}", (request.options.keep, request.options.depth)));
        part(&request.ir);
        hasher.finalize().to_hex().to_string()
    }

    /// The artifact of `key`, if it is cached.
    pub fn get(&self, key: &str) -> Option<Artifact> {
        let text = std::fs::read(self.path(key)?).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Caches an artifact. One without machine code is not kept, since an assembler may appear.
    pub fn put(&self, key: &str, artifact: &Artifact) {
        let Some(path) = self.path(key) else { return };
        if artifact.cubin.is_none() {
            return;
        }
        if let Err(error) = write_whole(&path, artifact) {
            tracing::debug!(%error, path = %path.display(), "artifact not cached");
        }
    }

    fn path(&self, key: &str) -> Option<PathBuf> {
        let folder = self.folder.as_ref()?;
        Some(folder.join(key.get(..2)?).join(format!("{key}.json")))
    }
}

/// Where Tile keeps what it can make again; `None` when the user has no such place.
pub fn user_folder() -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os("TILE_CACHE") {
        return (!folder.is_empty()).then(|| PathBuf::from(folder));
    }
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let base = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(base.join("tile"))
}

/// Path, size and time of change: enough to tell builds of one executable apart.
pub fn identity(program: &Path) -> String {
    let stamp = std::fs::metadata(program).ok().map(|meta| {
        let modified = meta.modified().ok();
        let since = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        (meta.len(), since.map(|time| time.as_nanos()))
    });
    format!("{} {stamp:?}", program.display())
}

/// Writes a value as JSON through a temporary file, so that a reader never sees half of it.
///
/// # Errors
/// When the folder or the file cannot be written, or the value has no JSON.
pub fn write_whole(path: &Path, value: &impl Serialize) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let file = tempfile::NamedTempFile::new_in(folder)?;
    let mut writer = std::io::BufWriter::new(&file);
    serde_json::to_writer(&mut writer, value)?;
    writer.flush()?;
    drop(writer);
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use tile_compiler::artifact::Keep;

    use super::*;
    use crate::protocol::{CompileOptions, Depth};

    fn request(ir: &str) -> CompileRequest {
        let keep = Keep::default();
        let options = CompileOptions {
            arch: "sm_90a".into(),
            ptxas: None,
            nvdisasm: None,
            keep,
            depth: Depth::Full,
        };
        CompileRequest { ir: ir.to_owned(), options }
    }

    #[test]
    fn an_entry_comes_back_and_a_damaged_one_is_a_miss() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path().to_owned());
        let key = cache.key(&request("a"), Path::new("/nowhere"));
        assert_ne!(key, cache.key(&request("b"), Path::new("/nowhere")));
        assert_eq!(cache.get(&key), None);
        let artifact = Artifact { cubin: Some(vec![1]), ptx: "p".into(), ..Artifact::default() };
        cache.put(&key, &artifact);
        assert_eq!(cache.get(&key), Some(artifact));
        std::fs::write(cache.path(&key).unwrap(), "{").unwrap();
        assert_eq!(cache.get(&key), None);
    }

    #[test]
    fn an_artifact_without_machine_code_is_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path().to_owned());
        let key = cache.key(&request("a"), Path::new("/nowhere"));
        cache.put(&key, &Artifact::default());
        assert_eq!(cache.get(&key), None);
    }
}
