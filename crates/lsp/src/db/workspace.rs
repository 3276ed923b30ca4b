//! What holds for every file: folders and their rules, choices of the user, who may launch what.

use std::path::PathBuf;

use rustc_hash::FxHashMap;
use salsa::{Durability, Setter};
use tile_compiler::analysis::Lints;
use tile_compiler::builtins::TritonVersion;
use tile_compiler::eval::Rules;
use tile_compiler::gpu::arch::Arch;
use tile_compiler::hir::Name;
use tile_compiler::source::FileId;

use super::{Database, Db, SourceFile};

/// What holds for every file.
#[salsa::input(singleton)]
pub(crate) struct Workspace {
    /// Its folders.
    #[returns(ref)]
    pub(crate) folders: Vec<PathBuf>,
    /// What holds below which folder, sorted by folder; the first holds everywhere.
    #[returns(ref)]
    pub(crate) rules: Vec<FolderRules>,
    /// The specialization that the user chose for a kernel, by its label.
    #[returns(ref)]
    pub(crate) choices: FxHashMap<(FileId, Name), String>,
    /// Files that may launch kernels of a file; see [`Sources::importers`](project::Sources).
    #[returns(ref)]
    pub(crate) importers: FxHashMap<FileId, Vec<FileId>>,
}

/// Compute capability that kernels are lowered for where nothing says otherwise.
const DEFAULT_CAPABILITY: u32 = 90;

/// What settings say about the analysis of files below a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FolderRules {
    /// The folder; empty for what holds everywhere.
    pub(crate) folder: PathBuf,
    /// Where packages of the Python environment lie.
    pub(crate) site_packages: Option<PathBuf>,
    /// Whose rules hold.
    pub(crate) triton: Rules,
    /// Levels that the user set.
    pub(crate) lints: Lints,
    /// Compute capability that kernels are lowered for, such as 80 for sm_80.
    pub(crate) capability: u32,
}

impl Default for FolderRules {
    fn default() -> FolderRules {
        FolderRules {
            folder: PathBuf::new(),
            site_packages: None,
            triton: Rules::default(),
            lints: Lints::default(),
            capability: DEFAULT_CAPABILITY,
        }
    }
}

impl FolderRules {
    /// The compute capability of an architecture such as `sm_90a`.
    pub(crate) fn capability_of(arch: &str) -> Option<u32> {
        arch.parse::<Arch>().ok().map(|arch| arch.capability)
    }
}

/// What settings say about a file: what they say of the innermost folder around it.
#[salsa::tracked(returns(ref))]
pub(crate) fn folder_rules(db: &dyn Db, file: SourceFile) -> FolderRules {
    let rules = Workspace::get(db).rules(db);
    let mut around = rules.iter().rev().filter(|rules| file.path(db).starts_with(&rules.folder));
    around.next().cloned().unwrap_or_default()
}

/// The version of Triton whose documentation and signatures are shown in a file.
pub(crate) fn version(db: &dyn Db, file: SourceFile) -> TritonVersion {
    folder_rules(db, file).triton.newest()
}

impl Database {
    /// Takes over settings, choices and who launches what from another database.
    pub(crate) fn configure_as(&mut self, other: &Database) {
        let theirs = Workspace::get(other);
        self.configure(theirs.folders(other).clone(), theirs.rules(other).clone());
        let here = |id: &FileId| {
            let file = other.file_of(*id)?;
            Some(self.file(file.path(other)).id(self))
        };
        let importers = theirs.importers(other).iter().filter_map(|(file, importers)| {
            Some((here(file)?, importers.iter().filter_map(here).collect()))
        });
        let importers = importers.collect();
        self.set_importers(importers);
    }

    /// Chooses a kernel's specialization by its label; `None` leaves it to the best known one.
    pub(crate) fn choose(&mut self, kernel: (FileId, Name), label: Option<String>) {
        let workspace = Workspace::get(self);
        let mut choices = workspace.choices(self).clone();
        match label {
            Some(label) => choices.insert(kernel, label),
            None => choices.remove(&kernel),
        };
        workspace.set_choices(self).with_durability(Durability::HIGH).to(choices);
    }

    /// Says which files may launch kernels of others; true when that is news.
    pub(crate) fn set_importers(&mut self, importers: FxHashMap<FileId, Vec<FileId>>) -> bool {
        let workspace = Workspace::get(self);
        let news = *workspace.importers(self) != importers;
        if news {
            workspace.set_importers(self).with_durability(Durability::HIGH).to(importers);
        }
        news
    }

    /// Takes over what settings say about analysis: the workspace's folders, and what holds where.
    /// `rules` are sorted by folder and start with those that hold everywhere.
    pub(crate) fn configure(&mut self, folders: Vec<PathBuf>, rules: Vec<FolderRules>) {
        let workspace = Workspace::get(self);
        if *workspace.folders(self) != folders {
            workspace.set_folders(self).with_durability(Durability::HIGH).to(folders);
        }
        if *workspace.rules(self) != rules {
            workspace.set_rules(self).with_durability(Durability::HIGH).to(rules);
        }
    }
}
