//! What earlier runs of `tile check` found, by the contents of all that they read.
//!
//! What is found in a file follows from the texts of the file, of those that launch its kernels and
//! of what these import; from where imports led, or that they led nowhere; from which files launch
//! its kernels; and from which functions are kernels in the files that it imports. A memory holds
//! this beside the findings, for one set of arguments in one folder, and gives findings back as
//! long as all of it is as it was. Every failure is soft: a memory that cannot be read is empty, one
//! that cannot be written is lost.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use indexmap::IndexSet;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use tile_compiler::diagnostic::Diagnostic;
use tile_compiler::project::{self, Sources, used_files};
use tile_compiler::source::{FileId, FileRange};
use tile_worker::cache::{identity, user_folder, write_whole};

use crate::analysis::Found;
use crate::output;
use crate::workspace::{AskedImport, Workspace, largest_first};

/// Memories beyond this number are forgotten, the oldest first.
const MAX_MEMORIES: usize = 64;

/// What was found in files, as it is kept.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Memory {
    /// What was read for all of them.
    reads: IndexSet<Read>,
    entries: BTreeMap<PathBuf, Entry>,
}

/// A file that was read, and where its imports led.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Read {
    path: PathBuf,
    contents: String,
    imports: Vec<AskedImport>,
}

/// What was found in one file, and what that follows from.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Entry {
    /// All that was read, as indices into those of the memory.
    reads: Vec<usize>,
    /// Which files launch the kernels of it, and of what it imports that is not checked.
    launchers: BTreeMap<PathBuf, BTreeSet<PathBuf>>,
    /// The kernels of the files that it imports and that are checked.
    kernels: BTreeMap<PathBuf, Vec<String>>,
    /// The other files whose kernels it launches.
    used: BTreeSet<PathBuf>,
    /// Files in findings are indices into `reads`.
    found: Found,
}

/// What is remembered of the files of one run, and what it finds itself.
pub(super) struct Remembered<'w> {
    workspace: &'w Workspace,
    files: Vec<FileId>,
    /// `None` where nothing is to be kept.
    place: Option<PathBuf>,
    memory: Memory,
    /// The other files whose kernels each file launches.
    used: HashMap<FileId, Vec<FileId>>,
    /// The kernels of each file.
    kernels: HashMap<FileId, Vec<String>>,
    /// Those whose entries still hold.
    valid: BTreeSet<FileId>,
}

impl<'w> Remembered<'w> {
    /// What is remembered of `files` by runs to which all the same was said, which is `said`;
    /// nothing without it. Also finds which of the files launch kernels of others.
    pub(super) fn new(
        workspace: &'w Workspace,
        files: Vec<FileId>,
        said: Option<&str>,
    ) -> Remembered<'w> {
        let place = said.and_then(memory_path);
        let text = place.as_deref().and_then(|path| std::fs::read(path).ok());
        let memory = text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
        let (used, kernels, valid) = Default::default();
        let mut remembered = Remembered { workspace, files, place, memory, used, kernels, valid };
        remembered.validate();
        remembered
    }

    /// What was found in a file, if that still holds.
    pub(super) fn found(&self, file: FileId) -> Option<Found> {
        self.valid.contains(&file).then_some(())?;
        let entry = self.entry(file)?;
        let mut found = entry.found.clone();
        for at in found.diagnostics.iter_mut().flat_map(places) {
            let read = self.memory.reads.get_index(*entry.reads.get(at.file.0 as usize)?)?;
            at.file = self.workspace.open_absolute(&read.path)?;
        }
        Some(found)
    }

    fn path(&self, file: FileId) -> PathBuf {
        self.workspace.file(file).map(|file| file.path.clone()).unwrap_or_default()
    }

    fn entry(&self, file: FileId) -> Option<&Entry> {
        self.memory.entries.get(&self.workspace.file(file)?.path)
    }

    /// Finds whose entries still hold: first those of whose reads nothing changed, which say whose
    /// kernels a file launches; then those whose kernels are launched by the same files; then
    /// those that import the same kernels.
    fn validate(&mut self) {
        let workspace = self.workspace;
        let reads: Vec<&Read> = self.memory.reads.iter().collect();
        let current: Vec<bool> =
            reads.into_par_iter().map(|read| is_current(workspace, read)).collect();
        let is_read_alike = |entry: &&Entry| {
            entry.reads.iter().all(|read| current.get(*read).copied().unwrap_or(false))
        };
        let unchanged = |file: FileId| self.entry(file).filter(is_read_alike);
        let size = |file: &FileId| workspace.file(*file).map_or(0, |file| file.text.len());
        let used = largest_first(&self.files, size, |file| match unchanged(*file) {
            Some(entry) => {
                let used = entry.used.iter().filter_map(|path| workspace.open_absolute(path));
                (*file, used.collect())
            }
            None => (*file, used_files(workspace, *file)),
        });
        workspace.index_launches(&used);
        let is_launched_alike = |entry: &&Entry| {
            entry.launchers.iter().all(|(path, launchers)| {
                let file = workspace.open_absolute(path);
                file.is_some_and(|file| self.launchers(file) == *launchers)
            })
        };
        let settled = |file: FileId| unchanged(file).filter(is_launched_alike);
        let kernels = self.files.par_iter().map(|file| match settled(*file) {
            Some(entry) => (*file, entry.found.kernels.clone()),
            None => (*file, kernel_names(workspace, *file)),
        });
        let kernels: HashMap<FileId, Vec<String>> = kernels.collect();
        let imports_alike = |entry: &&Entry| {
            entry.kernels.iter().all(|(path, names)| {
                let file = workspace.open_absolute(path);
                file.and_then(|file| kernels.get(&file)) == Some(names)
            })
        };
        let files = self.files.iter().copied();
        let valid = files.filter(|file| settled(*file).filter(imports_alike).is_some()).collect();
        (self.used, self.kernels, self.valid) = (used.into_iter().collect(), kernels, valid);
    }

    fn launchers(&self, file: FileId) -> BTreeSet<PathBuf> {
        self.workspace.importers(file).into_iter().map(|from| self.path(from)).collect()
    }

    /// Keeps what this run found for the next one.
    pub(super) fn keep<'f>(&self, found: impl Iterator<Item = &'f (FileId, Found)>) {
        let Some(place) = &self.place else { return };
        let mut memory = Memory::default();
        let mut is_new = false;
        for (file, found) in found {
            let known = self.entry(*file).filter(|_| self.valid.contains(file));
            is_new |= known.is_none();
            let entry = match known {
                Some(entry) => self.moved(entry, &mut memory.reads),
                None => self.entry_of(*file, found, &mut memory.reads),
            };
            memory.entries.extend(entry.map(|entry| (self.path(*file), entry)));
        }
        if !is_new {
            return;
        }
        match write_whole(place, &memory) {
            Ok(()) => forget_oldest(place),
            // Who says nothing of a cache does not miss it.
            Err(_) if std::env::var_os("TILE_CACHE").is_none() => {}
            Err(error) => output::warning(&format!(
                "what was found is not remembered: {}: {error}; set TILE_CACHE to a folder that can \
                 be written, or to nothing for none",
                place.parent().unwrap_or(place).display()
            )),
        }
    }

    /// An entry of the memory that was loaded, for one with other reads.
    fn moved(&self, entry: &Entry, reads: &mut IndexSet<Read>) -> Option<Entry> {
        let of_old = entry.reads.iter().map(|read| self.memory.reads.get_index(*read).cloned());
        let of_new = of_old.map(|read| Some(reads.insert_full(read?).0));
        Some(Entry { reads: of_new.collect::<Option<_>>()?, ..entry.clone() })
    }

    /// What to remember of what this run found; `None` when it follows from what is not noted.
    fn entry_of(&self, file: FileId, found: &Found, reads: &mut IndexSet<Read>) -> Option<Entry> {
        let workspace = self.workspace;
        let imported = self.reached([file]);
        let is_checked = |file: &FileId| self.kernels.contains_key(file);
        let (checked, others): (Vec<FileId>, Vec<FileId>) =
            imported.into_iter().filter(|other| *other != file).partition(is_checked);
        let launched: Vec<FileId> = [file].into_iter().chain(others).collect();
        let from = launched.iter().flat_map(|file| workspace.importers(*file));
        let all = self.reached([file].into_iter().chain(from));
        let mut found = found.clone();
        for at in found.diagnostics.iter_mut().flat_map(places) {
            at.file = FileId(all.iter().position(|read| *read == at.file)? as u32);
        }
        let read = all.iter().map(|file| Some(reads.insert_full(self.read(*file)?).0));
        let used = self.used.get(&file)?.iter();
        let launchers = launched.iter().map(|file| (self.path(*file), self.launchers(*file)));
        let kernels = checked.iter().map(|file| (self.path(*file), self.kernels[file].clone()));
        Some(Entry {
            reads: read.collect::<Option<_>>()?,
            launchers: launchers.collect(),
            kernels: kernels.collect(),
            used: used.map(|file| self.path(*file)).collect(),
            found,
        })
    }

    /// The files from which imports that were followed in this run lead to each other.
    fn reached(&self, from: impl IntoIterator<Item = FileId>) -> Vec<FileId> {
        let mut found: Vec<FileId> = Vec::new();
        let mut next: Vec<FileId> = from.into_iter().collect();
        while let Some(file) = next.pop() {
            if found.contains(&file) {
                continue;
            }
            found.push(file);
            let asked = self.workspace.asked(file).unwrap_or_default();
            let paths = asked.iter().filter_map(|import| import.found.as_deref());
            next.extend(paths.filter_map(|path| self.workspace.open_absolute(path)));
        }
        found
    }

    /// `None` when more than texts was read for it.
    fn read(&self, file: FileId) -> Option<Read> {
        let imports = self.workspace.asked(file)?;
        let file = self.workspace.file(file)?;
        Some(Read { path: file.path.clone(), contents: hash(&file.text), imports })
    }
}

fn kernel_names(workspace: &Workspace, file: FileId) -> Vec<String> {
    let kernels = project::kernels(workspace, file).into_iter();
    kernels.filter_map(|at| Some(project::item(workspace, at)?.name.to_string())).collect()
}

/// Whether a file reads as it did, and its imports lead where they did.
fn is_current(workspace: &Workspace, read: &Read) -> bool {
    let file = workspace.open_absolute(&read.path).and_then(|file| workspace.file(file));
    file.is_some_and(|file| hash(&file.text) == read.contents)
        && read.imports.iter().all(|import| workspace.still_leads(&read.path, import))
}

fn hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

/// The places that a finding speaks of.
fn places(found: &mut Diagnostic) -> impl Iterator<Item = &mut FileRange> {
    let edits = found.fixes.iter_mut().flat_map(|fix| &mut fix.edits).map(|edit| &mut edit.at);
    let related = found.related.iter_mut().map(|related| &mut related.at);
    [&mut found.primary].into_iter().chain(related).chain(edits)
}

/// Where the memory for these arguments is kept.
fn memory_path(said: &str) -> Option<PathBuf> {
    let program = identity(&std::env::current_exe().ok()?);
    let here = std::env::current_dir().ok()?;
    let key = hash(&format!("{program}\n{}\n{said}", here.display()));
    Some(user_folder()?.join("checks").join(format!("{key}.json")))
}

/// Removes memories that were not renewed for long.
fn forget_oldest(place: &Path) {
    let Some(entries) = place.parent().and_then(|folder| std::fs::read_dir(folder).ok()) else {
        return;
    };
    let dated = entries.flatten().filter_map(|entry| {
        let renewed: SystemTime = entry.metadata().ok()?.modified().ok()?;
        Some((renewed, entry.path()))
    });
    let mut dated: Vec<(SystemTime, PathBuf)> = dated.collect();
    dated.sort();
    let surplus = dated.len().saturating_sub(MAX_MEMORIES);
    for (_, path) in dated.into_iter().take(surplus) {
        // Somebody else may have removed it.
        let _ = std::fs::remove_file(path);
    }
}
