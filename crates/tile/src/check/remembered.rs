//! What earlier runs of `tile check` found, by the contents of all that they read.
//!
//! What is found in a file follows from the texts of the file, of those that launch its kernels and
//! of what these import; from where imports led, or that they led nowhere; from which files launch
//! its kernels; and from which functions are kernels in the files that it imports. A memory holds
//! this beside the findings, for one set of arguments in one folder, and gives findings back as
//! long as all of it is as it was. Every failure is soft: a memory that cannot be read is empty, one
//! that cannot be written is lost.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use indexmap::IndexMap;
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
    /// What was read for all of them, by paths.
    reads: IndexMap<PathBuf, Read>,
    entries: BTreeMap<PathBuf, Entry>,
}

/// What was read of a file.
#[derive(Debug, Serialize, Deserialize)]
struct Read {
    contents: String,
    /// Where its imports led.
    imports: BTreeSet<AskedImport>,
    /// Which files launch its kernels.
    launchers: BTreeSet<PathBuf>,
    /// Its kernels, where it is one of those that are checked.
    kernels: Option<Vec<String>>,
}

/// What was found in one file.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Entry {
    /// The other files whose kernels it launches.
    used: BTreeSet<PathBuf>,
    /// Files in findings are indices into the `reads` of the memory.
    found: Found,
}

impl Memory {
    /// Whether what was found in the file at each index of `reads` follows from none of those of
    /// which `is_other` holds, nor from what was not noted. It follows from the file, from those
    /// that launch its kernels, and from what these import; where that is not checked itself,
    /// from those that launch its kernels too.
    fn unaffected(&self, is_other: impl Fn(&PathBuf, &Read) -> bool + Sync) -> Vec<bool> {
        let reads: Vec<(&PathBuf, &Read)> = self.reads.iter().collect();
        let other: Vec<bool> = reads.par_iter().map(|(path, read)| is_other(path, read)).collect();
        let affected = self.with_importers(other);
        let stands = |index: usize| !affected[index];
        let unaffected = |(index, (_, read)): (usize, (&PathBuf, &Read))| {
            stands(index) && read.launchers.iter().all(|path| self.index(path).is_some_and(stands))
        };
        self.reads.iter().enumerate().map(unaffected).collect()
    }

    /// Those in `found`, and what they lead to; a file leads to those that import it.
    fn with_importers(&self, mut found: Vec<bool>) -> Vec<bool> {
        let mut importers = vec![Vec::new(); found.len()];
        for (from, read) in self.reads.values().enumerate() {
            for path in read.leads_to() {
                match self.index(path) {
                    Some(to) => importers[to].push(from),
                    None => found[from] = true,
                }
            }
        }
        let mut next: Vec<usize> = (0..found.len()).filter(|index| found[*index]).collect();
        while let Some(index) = next.pop() {
            for from in &importers[index] {
                if !std::mem::replace(&mut found[*from], true) {
                    next.push(*from);
                }
            }
        }
        found
    }

    fn index(&self, path: &Path) -> Option<usize> {
        self.reads.get_index_of(path)
    }
}

impl Read {
    /// The files from which follows what this one means.
    fn leads_to(&self) -> impl Iterator<Item = &PathBuf> {
        let imported = self.imports.iter().filter_map(|import| import.found.as_ref());
        let launchers = self.launchers.iter().filter(|_| self.kernels.is_none());
        imported.chain(launchers)
    }
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
        let mut found = self.entry(file)?.found.clone();
        for at in found.diagnostics.iter_mut().flat_map(places) {
            let (path, _) = self.memory.reads.get_index(at.file.0 as usize)?;
            at.file = self.workspace.open_absolute(path)?;
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
        let memory = &self.memory;
        let among = |hold: &[bool], file: FileId| {
            let index = memory.index(&self.path(file));
            index.is_some_and(|index| hold[index]).then(|| self.entry(file)).flatten()
        };
        let unchanged = memory.unaffected(|path, read| !is_current(workspace, path, read));
        let size = |file: &FileId| workspace.file(*file).map_or(0, |file| file.text.len());
        let used = largest_first(&self.files, size, |file| match among(&unchanged, *file) {
            Some(entry) => {
                let used = entry.used.iter().filter_map(|path| workspace.open_absolute(path));
                (*file, used.collect())
            }
            None => (*file, used_files(workspace, *file)),
        });
        workspace.index_launches(&used);
        let is_launched_alike = |path: &PathBuf, read: &Read| {
            let file = workspace.open_absolute(path);
            file.is_some_and(|file| self.launchers(file) == read.launchers)
        };
        let launched_alike = memory
            .unaffected(|path, read| read.kernels.is_none() && !is_launched_alike(path, read));
        let is_settled = |file: FileId| {
            let path = self.path(file);
            let entry = among(&unchanged, file).and(among(&launched_alike, file))?;
            is_launched_alike(&path, memory.reads.get(&path)?).then_some(entry)
        };
        let kernels = self.files.par_iter().map(|file| match is_settled(*file) {
            Some(entry) => (*file, entry.found.kernels.clone()),
            None => (*file, kernel_names(workspace, *file)),
        });
        let kernels: HashMap<FileId, Vec<String>> = kernels.collect();
        let with_same_kernels = memory.unaffected(|path, read| {
            let file = workspace.open_absolute(path);
            file.and_then(|file| kernels.get(&file)) != read.kernels.as_ref()
        });
        let files = self.files.iter().copied();
        let holds = |file: &FileId| {
            is_settled(*file).and_then(|_| among(&with_same_kernels, *file)).is_some()
        };
        let valid = files.filter(holds).collect();
        (self.used, self.kernels, self.valid) = (used.into_iter().collect(), kernels, valid);
    }

    fn launchers(&self, file: FileId) -> BTreeSet<PathBuf> {
        self.workspace.importers(file).into_iter().map(|from| self.path(from)).collect()
    }

    /// Keeps what this run found for the next one.
    pub(super) fn keep<'f>(&self, found: impl Iterator<Item = &'f (FileId, Found)>) {
        let Some(place) = &self.place else { return };
        let found: Vec<&(FileId, Found)> = found.collect();
        if found.iter().all(|(file, _)| self.valid.contains(file)) {
            return;
        }
        let memory = self.memory_of(&found);
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

    /// What to remember of what this run found: what follows from what can be noted.
    fn memory_of(&self, found: &[&(FileId, Found)]) -> Memory {
        let mut memory = Memory { reads: self.reads(found), ..Memory::default() };
        let noted = memory.unaffected(|_, _| false);
        for (file, found) in found {
            let path = self.path(*file);
            let is_noted = memory.index(&path).is_some_and(|index| noted[index]);
            let entry = is_noted.then(|| self.entry_of(*file, found, &memory.reads)).flatten();
            memory.entries.extend(entry.map(|entry| (path, entry)));
        }
        memory
    }

    fn entry_of(
        &self,
        file: FileId,
        found: &Found,
        reads: &IndexMap<PathBuf, Read>,
    ) -> Option<Entry> {
        let mut found = found.clone();
        for at in found.diagnostics.iter_mut().flat_map(places) {
            at.file = FileId(reads.get_index_of(&self.path(at.file))? as u32);
        }
        let used = self.used.get(&file)?.iter().map(|file| self.path(*file)).collect();
        Some(Entry { used, found })
    }

    /// All that was read for what was found, in this run or before.
    fn reads(&self, found: &[&(FileId, Found)]) -> IndexMap<PathBuf, Read> {
        let mut reads = IndexMap::new();
        let mut seen: HashSet<PathBuf> = HashSet::new();
        let mut next: Vec<PathBuf> = found.iter().map(|(file, _)| self.path(*file)).collect();
        while let Some(path) = next.pop() {
            if !seen.insert(path.clone()) {
                continue;
            }
            if let Some(read) = self.read(&path) {
                next.extend(read.leads_to().chain(&read.launchers).cloned());
                reads.insert(path, read);
            }
        }
        reads
    }

    /// `None` when more than texts was read for it.
    fn read(&self, path: &Path) -> Option<Read> {
        let file = self.workspace.open_absolute(path)?;
        let contents = hash(&self.workspace.file(file)?.text);
        let mut imports: BTreeSet<AskedImport> = self.workspace.asked(file)?.into_iter().collect();
        // What was found before may follow from imports that nothing asked for this time.
        let before = self.memory.reads.get(path).filter(|before| before.contents == contents);
        let before = before.into_iter().flat_map(|before| &before.imports);
        let holds = |import: &&AskedImport| self.workspace.still_leads(path, import);
        imports.extend(before.filter(holds).cloned());
        let kernels = self.kernels.get(&file).cloned();
        Some(Read { contents, imports, launchers: self.launchers(file), kernels })
    }
}

fn kernel_names(workspace: &Workspace, file: FileId) -> Vec<String> {
    let kernels = project::kernels(workspace, file).into_iter();
    kernels.filter_map(|at| Some(project::item(workspace, at)?.name.to_string())).collect()
}

/// Whether a file reads as it did, and its imports lead where they did.
fn is_current(workspace: &Workspace, path: &Path, read: &Read) -> bool {
    let file = workspace.open_absolute(path).and_then(|file| workspace.file(file));
    file.is_some_and(|file| hash(&file.text) == read.contents)
        && read.imports.iter().all(|import| workspace.still_leads(path, import))
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
