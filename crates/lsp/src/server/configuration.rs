//! What holds where: the settings of each folder, and what follows from them and from the machine.
//!
//! Settings hold below a folder: a folder of the workspace, or one with a `tile.toml` or a
//! `pyproject.toml` that has a table for Tile. For a file, those of the innermost folder around it
//! count. Each folder's are read from the nearest project file there or above, from what the editor
//! says in general, and from what it says of the folder of the workspace around it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use tile_compiler::artifact::Keep;
use tile_compiler::diagnostic::Severity;
use tile_worker::protocol::Depth;
use tile_worker::{CompileOptions, ptxas};

use crate::db::FolderRules;
use crate::environment;
use crate::files::FileSystem;
use crate::server::project_file::{Problem, ProjectFile};
use crate::server::settings::{self, Settings, Wrong};

/// The architecture that is compiled for where nothing says otherwise.
const DEFAULT_ARCH: &str = "sm_90a";

/// Settings and what follows from them and from the machine, for the files below one folder.
#[derive(Debug, Clone)]
pub(crate) struct Configuration {
    /// What the user chose.
    pub(crate) settings: Settings,
    /// Where packages of the Python environment lie.
    pub(crate) site_packages: Option<PathBuf>,
    /// How background compiles are done.
    pub(crate) compile: CompileOptions,
}

impl Default for Configuration {
    fn default() -> Configuration {
        Configuration::new(Settings::default(), &[], None)
    }
}

impl Configuration {
    fn new(settings: Settings, folders: &[PathBuf], local_arch: Option<&str>) -> Configuration {
        let site_packages = environment::site_packages(settings.python.as_deref(), folders);
        let arch = settings.arch.as_deref().or(local_arch).unwrap_or(DEFAULT_ARCH).to_owned();
        let ptxas = ptxas::find(settings.ptxas.as_deref(), site_packages.as_deref());
        let compile = CompileOptions {
            arch,
            ptxas,
            nvdisasm: None,
            keep: Keep::default(),
            depth: Depth::Full,
        };
        Configuration { settings, site_packages, compile }
    }

    /// What the settings of these sources name that was not found.
    fn missing(&self, sources: &[&Value]) -> Vec<Wrong> {
        let site_packages = self.site_packages.as_deref();
        self.settings.missing(sources, site_packages, self.compile.ptxas.as_deref())
    }

    fn rules(&self, folder: &Path) -> FolderRules {
        let everywhere = FolderRules::default();
        FolderRules {
            folder: folder.to_owned(),
            site_packages: self.site_packages.clone(),
            triton: self.settings.triton,
            lints: self.settings.lints.clone(),
            capability: FolderRules::capability_of(&self.compile.arch)
                .unwrap_or(everywhere.capability),
        }
    }
}

/// The configurations of all folders; the empty path stands for everywhere.
#[derive(Debug, Clone)]
pub(crate) struct Configurations(BTreeMap<PathBuf, Arc<Configuration>>);

impl Default for Configurations {
    fn default() -> Configurations {
        Configurations(BTreeMap::from([(PathBuf::new(), Arc::default())]))
    }
}

impl Configurations {
    /// What holds for the file at `path`.
    pub(crate) fn of(&self, path: &Path) -> Arc<Configuration> {
        let mut folders = path.ancestors().skip(1).chain([Path::new("")]);
        folders.find_map(|folder| self.0.get(folder).cloned()).unwrap_or_default()
    }

    /// What analysis asks of them, sorted by folder.
    pub(crate) fn rules(&self) -> Vec<FolderRules> {
        self.0.iter().map(|(folder, configuration)| configuration.rules(folder)).collect()
    }
}

/// Where settings come from.
#[derive(Debug, Default)]
pub(crate) struct SettingSources {
    /// What the editor says in general.
    editor: Value,
    /// What the editor says of folders of the workspace.
    by_folder: BTreeMap<PathBuf, Value>,
    /// Folders with files that settings matter for, and the nearest project file's folder.
    known: BTreeMap<PathBuf, Option<PathBuf>>,
}

impl SettingSources {
    /// Takes over what the editor says in general.
    pub(crate) fn set_editor(&mut self, value: Value) {
        self.editor = value;
    }

    /// Takes over what the editor says of each folder of the workspace; others are forgotten.
    pub(crate) fn set_folders(&mut self, by_folder: BTreeMap<PathBuf, Value>) {
        self.by_folder = by_folder;
    }

    /// Notes that settings matter for files of `folder`; true when a project file holds there that
    /// was not known before.
    pub(crate) fn concerns(&mut self, files: &dyn FileSystem, folder: &Path) -> bool {
        if self.known.contains_key(folder) {
            return false;
        }
        let found = ProjectFile::nearest(files, folder).map(|(at, _)| at);
        let is_news = found.is_some() && !self.known.values().any(|known| *known == found);
        self.known.insert(folder.to_owned(), found);
        is_news
    }

    /// The configurations that follow, and what is wrong with the settings.
    pub(crate) fn read(
        &mut self,
        files: &dyn FileSystem,
        workspace: &[PathBuf],
        local_arch: Option<&str>,
    ) -> (Configurations, Vec<Problem>) {
        let mut project_files: BTreeMap<PathBuf, ProjectFile> = BTreeMap::new();
        for folder in workspace {
            self.known.entry(folder.clone()).or_default();
        }
        for (folder, found) in &mut self.known {
            let nearest = ProjectFile::nearest(files, folder);
            *found = nearest.as_ref().map(|(at, _)| at.clone());
            project_files.extend(nearest);
        }
        let mut problems: Vec<Problem> =
            project_files.values().flat_map(|file| file.problems.clone()).collect();
        let said = [&self.editor].into_iter().chain(self.by_folder.values());
        problems.extend(said.flat_map(settings::misspelt).map(of_editor));
        let mut folders: BTreeSet<&Path> = workspace.iter().map(PathBuf::as_path).collect();
        folders.extend(project_files.keys().map(PathBuf::as_path));
        let everywhere = Path::new("");
        folders.insert(everywhere);
        let mut all = BTreeMap::new();
        for folder in folders {
            let project = innermost(&project_files, folder);
            let editor = innermost(&self.by_folder, folder);
            let said = project.map_or(&Value::Null, |file| &file.said);
            let sources: Vec<&Value> = [said, &self.editor].into_iter().chain(editor).collect();
            let (settings, mut wrong) = Settings::read(sources.iter().copied());
            let around: Vec<PathBuf> = match folder == everywhere {
                true => workspace.to_vec(),
                false => vec![folder.to_owned()],
            };
            let configuration = Configuration::new(settings, &around, local_arch);
            wrong.extend(configuration.missing(&sources));
            problems.extend(wrong.into_iter().map(|wrong| match project {
                Some(file) if wrong.source == 0 => file.problem(wrong),
                _ => of_editor(wrong),
            }));
            all.insert(folder.to_owned(), Arc::new(configuration));
        }
        Problem::settle(&mut problems);
        (Configurations(all), problems)
    }
}

fn of_editor(wrong: Wrong) -> Problem {
    Problem { place: None, severity: Severity::Warning, message: wrong.message }
}

/// What is said of the innermost folder around `folder`, itself included.
fn innermost<'m, T>(by_folder: &'m BTreeMap<PathBuf, T>, folder: &Path) -> Option<&'m T> {
    folder.ancestors().find_map(|folder| by_folder.get(folder))
}
