//! The database as the compiler's front end asks it: texts, modules, and where imports lead.

use std::path::Path;
use std::sync::Arc;

use rustc_hash::FxHashSet;
use tile_compiler::hir::{Module, Name};
use tile_compiler::project::{self, ArrayHead, Imports, ItemRef, Ways, paths};
use tile_compiler::source::{FileId, LineIndex};

use super::{Db, SourceFile, Workspace, folder_rules, line_index, module, parts};

/// The folders from which absolute imports of a file start, nearest first.
#[salsa::tracked(returns(ref))]
fn import_roots(db: &dyn Db, file: SourceFile) -> Vec<String> {
    let path = file.path(db).to_string_lossy();
    let exists = |path: &str| db.file(Path::new(path)).text(db).is_some();
    let workspace = Workspace::get(db);
    let around = workspace.folders(db).iter().filter(|folder| file.path(db).starts_with(folder));
    let root = around.map(|folder| folder.to_string_lossy()).max_by_key(|folder| folder.len());
    let root = root.map_or_else(|| repository(&path, &exists), |root| root.into_owned());
    let mut roots = paths::import_roots(&path, &root, &exists);
    let packages = folder_rules(db, file).site_packages.iter();
    roots.extend(packages.map(|path| path.display().to_string()));
    roots
}

/// The folder of the repository around `path`, else the root of all.
fn repository(path: &str, exists: &dyn Fn(&str) -> bool) -> String {
    let folders = Path::new(path).ancestors().skip(1).map(|folder| folder.display().to_string());
    folders.into_iter().find(|folder| exists(&format!("{folder}/.git/HEAD"))).unwrap_or("/".into())
}

/// The file that `from <level dots><path> import ...` means.
#[salsa::tracked(returns(copy))]
fn import(db: &dyn Db, from: SourceFile, level: u32, dotted: String) -> Option<SourceFile> {
    let path: Vec<Name> = dotted.split('.').filter(|n| !n.is_empty()).map(Name::from).collect();
    let roots = import_roots(db, from);
    let candidates = paths::candidates(&from.path(db).to_string_lossy(), roots, level, &path);
    let mut files = candidates.iter().map(|candidate| db.file(Path::new(candidate)));
    files.find(|file| file.text(db).is_some())
}

/// The folders that `from <level dots><path> import ...` may mean where no file does, best first.
pub(crate) fn package_folders(
    db: &dyn Db,
    from: SourceFile,
    level: u32,
    path: &[Name],
) -> Vec<String> {
    let roots = import_roots(db, from);
    let candidates = paths::candidates(&from.path(db).to_string_lossy(), roots, level, path);
    let inits = candidates.iter().filter_map(|file| file.strip_suffix("/__init__.py"));
    inits.map(str::to_owned).collect()
}

/// What the imports of a file bind.
#[salsa::tracked(returns(ref))]
fn imports(db: &dyn Db, file: SourceFile) -> Imports {
    project::find_imports(&Analysis(db), file.id(db))
}

/// What a file has to do with others: an edit seldom changes that, and then nothing else that follows from
/// it is asked again.
#[salsa::tracked(returns(ref))]
fn ways(db: &dyn Db, file: SourceFile) -> Arc<Ways> {
    Arc::new(Ways::of(&Analysis(db), file.id(db)))
}

/// The files whose kernels host code of `file` launches.
#[salsa::tracked(returns(ref))]
fn used_files(db: &dyn Db, file: SourceFile) -> Vec<FileId> {
    project::used_files(&Analysis(db), file.id(db))
}

/// The names by which other files may launch what `file` launches.
#[salsa::tracked(returns(clone))]
pub(crate) fn launching_names(db: &dyn Db, file: SourceFile) -> FxHashSet<Name> {
    project::launching_names(&Analysis(db), file.id(db))
}

/// The database as the compiler's front end asks it.
#[derive(Clone, Copy)]
pub(crate) struct Analysis<'db>(pub(crate) &'db dyn Db);

impl project::Sources for Analysis<'_> {
    fn module(&self, file: FileId) -> Option<Arc<Module>> {
        // The search for specializations asks often and takes long.
        project::Sources::checkpoint(self);
        let file = self.0.file_of(file)?;
        file.text(self.0).as_ref()?;
        Some(module(self.0, file).clone())
    }

    fn checkpoint(&self) {
        self.0.unwind_if_revision_cancelled();
    }

    fn callees(&self, at: ItemRef) -> Option<Arc<[ItemRef]>> {
        Some(parts::callees(self.0, self.0.file_of(at.file)?, at.index).clone())
    }

    fn text(&self, file: FileId) -> Option<Arc<str>> {
        Some(self.0.file_of(file)?.text(self.0).as_ref()?.text().clone())
    }

    fn lines(&self, file: FileId) -> Option<Arc<LineIndex>> {
        Some(line_index(self.0, self.0.file_of(file)?).clone())
    }

    fn path(&self, file: FileId) -> String {
        let file = self.0.file_of(file);
        file.map(|file| file.path(self.0).display().to_string()).unwrap_or_default()
    }

    fn import(&self, from: FileId, level: u32, path: &[Name]) -> Option<FileId> {
        let from = self.0.file_of(from)?;
        Some(import(self.0, from, level, path.join("."))?.id(self.0))
    }

    fn array(&self, from: FileId, path: &str) -> Option<ArrayHead> {
        let folder = self.0.file_of(from)?.path(self.0).parent()?;
        let header = self.0.file(&folder.join(path)).text(self.0).as_ref()?;
        ArrayHead::parse(header.text()).ok()
    }

    fn imports(&self, file: FileId) -> Option<Imports> {
        Some(imports(self.0, self.0.file_of(file)?).clone())
    }

    fn ways(&self, file: FileId) -> Option<Arc<Ways>> {
        Some(ways(self.0, self.0.file_of(file)?).clone())
    }

    fn importers(&self, file: FileId) -> Vec<FileId> {
        let known = Workspace::get(self.0).importers(self.0).get(&file);
        let candidates = known.into_iter().flatten().copied();
        let launches = |from: &FileId| {
            let from = self.0.file_of(*from);
            from.is_some_and(|from| used_files(self.0, from).contains(&file))
        };
        candidates.filter(launches).collect()
    }
}
