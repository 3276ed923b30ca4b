//! Settings as they hold now, and what is wrong with them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use serde_json::Value;

use super::{State, lock};
use crate::server::configuration::{Configuration, SettingSources};
use crate::server::project_file::Problem;

/// What is wrong with settings, and what of it the client was told of each project file.
#[derive(Debug, Default)]
pub(super) struct SettingProblems {
    now: Vec<Problem>,
    told: BTreeMap<PathBuf, Vec<Problem>>,
}

impl State {
    /// What holds for the file at `path`.
    pub(crate) fn configuration(&self, path: &Path) -> Arc<Configuration> {
        self.configurations.read().unwrap_or_else(PoisonError::into_inner).of(path)
    }

    /// Takes over what the editor says in general, if given, and what project files say. What is
    /// wrong with them waits for [`State::settings_news`].
    pub(crate) fn configure(&self, editor: Option<Value>) {
        let mut sources = lock(&self.sources);
        if let Some(editor) = editor {
            sources.set_editor(editor);
        }
        self.read_settings(&mut sources);
    }

    /// As [`State::configure`], with what the editor says of each folder of the workspace.
    pub(crate) fn configure_folders(&self, editor: Value, by_folder: BTreeMap<PathBuf, Value>) {
        let mut sources = lock(&self.sources);
        sources.set_editor(editor);
        sources.set_folders(by_folder);
        self.read_settings(&mut sources);
    }

    fn read_settings(&self, sources: &mut SettingSources) {
        for path in lock(&self.kernel_files).iter().flat_map(|(_, files)| files) {
            sources.concerns(&*self.files, path.parent().unwrap_or(path));
        }
        let folders = self.folders();
        let local_arch = self.local_arch.get().map(String::as_str);
        let (found, problems) = sources.read(&*self.files, &folders, local_arch);
        lock(&self.problems).now = problems;
        lock(&self.host).db.configure(folders, found.rules());
        *self.configurations.write().unwrap_or_else(PoisonError::into_inner) = found;
        self.mark_all_dirty();
    }

    /// Settings matter for the file at `path`: a project file beside it or above is read if nobody
    /// read it before.
    pub(super) fn find_settings(&self, path: &Path) {
        let Some(folder) = path.parent().filter(|_| path.is_absolute()) else { return };
        let mut sources = lock(&self.sources);
        if sources.concerns(&*self.files, folder) {
            self.read_settings(&mut sources);
        }
    }

    /// What is wrong with settings that the user was not told of, a sentence each, and the project
    /// files of which that changed since the last call, with all that is wrong with them now.
    pub(crate) fn settings_news(&self) -> (Vec<String>, BTreeMap<PathBuf, Vec<Problem>>) {
        let mut problems = lock(&self.problems);
        let mut by_file: BTreeMap<PathBuf, Vec<Problem>> = BTreeMap::new();
        for problem in &problems.now {
            if let Some(place) = &problem.place {
                by_file.entry(place.path.clone()).or_default().push(problem.clone());
            }
        }
        let mut changed = by_file.clone();
        changed.retain(|path, found| problems.told.get(path) != Some(found));
        let mended = problems.told.keys().filter(|path| !by_file.contains_key(*path));
        changed.extend(mended.map(|path| (path.clone(), Vec::new())));
        problems.told = by_file;
        let sentences = problems.now.iter().map(|problem| problem.seen_from(Path::new("")));
        (sentences.filter(|text| self.is_news(text)).collect(), changed)
    }
}
