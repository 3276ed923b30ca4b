//! What the server knows: open documents, the database, the client.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

use rustc_hash::{FxHashMap, FxHashSet};
use tile_compiler::diagnostic::Diagnostic;
use tile_compiler::hir::Name;
use tile_compiler::source::FileId;
use tile_worker::Scratch;
use tower_lsp::Client;
use tower_lsp::ls_types::{
    DidChangeTextDocumentParams, DidOpenTextDocumentParams, SemanticToken, SemanticTokens, Uri,
    WorkspaceFolder, WorkspaceFoldersChangeEvent,
};

use crate::compile::Compiler;
use crate::db::{Database, SourceFile, SourceText, launching_names};
use crate::document::Document;
use crate::encoding::Encoding;
use crate::files::FileSystem;
use crate::ide::mentions;
use crate::ide::workspace::MAX_FILES;
use crate::server::answering::Answering;
use crate::server::capabilities;
use crate::server::configuration::{Configurations, SettingSources};
use crate::server::heap::Worked;
use crate::server::session::Session;

mod checks;
mod open;
mod reading;
mod runs;
mod settings;
mod snapshot;
#[cfg(test)]
mod tests;

use checks::Checks;
use open::{Open, path_of};
pub(crate) use reading::{ReadError, Request, panic_text};
use runs::Runs;
use settings::SettingProblems;
use snapshot::Documents;
pub(crate) use snapshot::{OpenFile, Snapshot};

/// The workspace is looked through again after this long, should nobody tell of changes.
const WORKSPACE_IS_NEWS: Duration = Duration::from_secs(20);

/// Shared by everything that serves one client.
#[derive(Debug)]
pub(crate) struct State {
    /// The other end.
    pub(crate) client: Client,
    host: Mutex<Host>,
    files: Arc<dyn FileSystem>,
    session: OnceLock<Session>,
    folders: RwLock<Vec<PathBuf>>,
    shut_down: AtomicBool,
    sources: Mutex<SettingSources>,
    configurations: RwLock<Configurations>,
    /// What is wrong with settings.
    problems: Mutex<SettingProblems>,
    compiler: OnceLock<Arc<Compiler>>,
    local_arch: OnceLock<String>,
    runs: Mutex<Runs>,
    told: Mutex<FxHashSet<String>>,
    tokens: Mutex<KeptTokens>,
    /// Files of the workspace that may have to do with kernels, and since when that is known.
    kernel_files: Mutex<Option<(Instant, Vec<PathBuf>)>>,
    /// What checks of the workspace ask; made when there is a first.
    checks: Mutex<Option<Checks>>,
    /// Files that changed on the disk since the last check of the workspace.
    changed_on_disk: Mutex<Vec<PathBuf>>,
    /// Texts that the client was shown as files.
    views: Mutex<Option<Scratch>>,
    /// Wakes the loop that publishes diagnostics.
    pub(crate) changed: tokio::sync::Notify,
    /// Whether there was work since memory was given back.
    pub(crate) worked: Worked,
    /// The requests that are being answered.
    pub(crate) answering: Answering,
}

/// The one place where inputs change. Whoever holds a [`Snapshot`] must not lock it: a change
/// waits until every snapshot is gone.
#[derive(Debug)]
struct Host {
    db: Database,
    open: FxHashMap<Uri, Open>,
    documents: Arc<Documents>,
    dirty: Vec<Uri>,
    /// For each open file, the names by which other files were searched for launches of its
    /// kernels; `None` when all of them must be searched again.
    searched: Option<FxHashMap<SourceFile, FxHashSet<Name>>>,
    /// How often `searched` was given up: a search that began before that counts for nothing.
    search: u64,
}

/// The tokens that the client has, by document, with their result ids.
#[derive(Debug, Default)]
struct KeptTokens {
    next: u64,
    by_uri: FxHashMap<Uri, (String, Vec<SemanticToken>)>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    /// A state without documents.
    pub(crate) fn new(client: Client, system: Arc<dyn FileSystem>) -> State {
        let host = Host {
            db: Database::new(system.clone()),
            open: FxHashMap::default(),
            documents: Arc::default(),
            dirty: Vec::new(),
            searched: None,
            search: 0,
        };
        State {
            client,
            host: Mutex::new(host),
            files: system,
            session: OnceLock::new(),
            folders: RwLock::default(),
            shut_down: AtomicBool::new(false),
            sources: Mutex::default(),
            configurations: RwLock::default(),
            problems: Mutex::default(),
            compiler: OnceLock::new(),
            local_arch: OnceLock::new(),
            runs: Mutex::default(),
            told: Mutex::default(),
            tokens: Mutex::default(),
            kernel_files: Mutex::default(),
            checks: Mutex::default(),
            changed_on_disk: Mutex::default(),
            views: Mutex::default(),
            changed: tokio::sync::Notify::new(),
            worked: Worked::default(),
            answering: Answering::default(),
        }
    }

    /// What was agreed with the client; `None` before it said `initialize`.
    pub(crate) fn session(&self) -> Option<&Session> {
        self.session.get()
    }

    /// Records what was agreed with the client; the first time counts.
    pub(crate) fn start_session(&self, session: Session) {
        *self.folders.write().unwrap_or_else(PoisonError::into_inner) = session.folders.clone();
        // A second `initialize` is refused before it gets here.
        let _ = self.session.set(session);
    }

    /// Folders of the workspace.
    pub(crate) fn folders(&self) -> Vec<PathBuf> {
        self.folders.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Folders were added to the workspace, and removed.
    pub(crate) fn change_folders(&self, event: &WorkspaceFoldersChangeEvent) {
        let path = |folder: &WorkspaceFolder| Some(folder.uri.to_file_path()?.into_owned());
        let removed: Vec<PathBuf> = event.removed.iter().filter_map(path).collect();
        let mut folders = self.folders.write().unwrap_or_else(PoisonError::into_inner);
        folders.retain(|folder| !removed.contains(folder));
        for added in event.added.iter().filter_map(path) {
            if !folders.contains(&added) {
                folders.push(added);
            }
        }
        drop(folders);
        lock(&self.host).search_again();
        *lock(&self.kernel_files) = None;
    }

    /// Source files of the workspace, sorted, and those that are open.
    pub(crate) fn workspace_files(&self, open: Vec<PathBuf>) -> Vec<PathBuf> {
        let folders = self.folders().into_iter();
        let mut files: Vec<PathBuf> =
            folders.flat_map(|folder| self.files.walk(&folder, MAX_FILES)).collect();
        files.extend(open);
        files.sort();
        files.dedup();
        files
    }

    /// Files of the workspace that may have to do with kernels, and those that are open. Clients
    /// ask every few seconds, so the workspace is not read each time.
    pub(crate) fn kernel_files(&self) -> Vec<PathBuf> {
        let known = lock(&self.kernel_files).clone();
        let known = known.filter(|(since, _)| since.elapsed() < WORKSPACE_IS_NEWS);
        let mut files = match known {
            Some((_, files)) => files,
            None => {
                // Without a snapshot: an edit would wait until all is read. What is open counts anyway.
                let files = self.workspace_files(Vec::new());
                let files = mentions::with_kernels(&*self.files, files);
                *lock(&self.kernel_files) = Some((Instant::now(), files.clone()));
                files.iter().for_each(|path| self.find_settings(path));
                files
            }
        };
        files.extend(lock(&self.host).open.values().map(|open| open.path.clone()));
        files.sort();
        files.dedup();
        files
    }

    /// The client said `shutdown`.
    pub(crate) fn shut_down(&self) {
        self.shut_down.store(true, Ordering::SeqCst);
    }

    /// True once the client said `shutdown`.
    pub(crate) fn is_shut_down(&self) -> bool {
        self.shut_down.load(Ordering::SeqCst)
    }

    fn encoding(&self) -> Encoding {
        self.session().map(|session| session.encoding).unwrap_or_default()
    }

    /// The state now.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let host = lock(&self.host);
        Snapshot {
            db: host.db.clone(),
            documents: host.documents.clone(),
            encoding: self.encoding(),
            tags: self.session().map(|session| session.client.tags).unwrap_or_default(),
        }
    }

    /// Forgets large answers beyond those that are to be kept, as every edit does: what is asked about many
    /// files between two edits would pile up. While somebody asks, it does nothing.
    pub(crate) fn forget_large(&self) {
        let mut host = lock(&self.host);
        // A snapshot has the documents until its database is gone, so nobody is waited for and nothing
        // unwinds.
        if Arc::get_mut(&mut host.documents).is_some() {
            host.db.forget_large();
        }
    }

    /// Records what is known of a document's specializations; true when it is news. What was
    /// found in an older version does not count.
    pub(crate) fn set_exact(&self, uri: &Uri, version: i32, found: Vec<Diagnostic>) -> bool {
        let mut host = lock(&self.host);
        let Some(open) = host.open.get_mut(uri).filter(|open| open.document.version == version)
        else {
            return false;
        };
        if *open.exact == *found {
            return false;
        }
        let exact: Arc<[Diagnostic]> = found.into();
        open.exact = exact.clone();
        if let Some(known) = Arc::make_mut(&mut host.documents).by_uri.get_mut(uri) {
            known.exact = exact;
        }
        true
    }

    /// Writes a text that the client is shown as a file; its path. `place` counts from a folder
    /// that lasts as long as the session.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn write_view(&self, place: &Path, text: &str) -> std::io::Result<PathBuf> {
        let mut views = lock(&self.views);
        let views = match &mut *views {
            Some(views) => views,
            none => none.insert(Scratch::new("views")?),
        };
        let path = views.path().join(place);
        std::fs::create_dir_all(path.parent().unwrap_or(views.path()))?;
        std::fs::write(&path, text)?;
        Ok(path)
    }

    /// Removes what [`State::write_view`] wrote.
    pub(crate) fn remove_views(&self) {
        *lock(&self.views) = None;
    }

    /// Notes what tokens the client is given, and gives them a result id.
    pub(crate) fn keep_tokens(&self, uri: Uri, mut tokens: SemanticTokens) -> SemanticTokens {
        let mut kept = lock(&self.tokens);
        kept.next += 1;
        let id = kept.next.to_string();
        kept.by_uri.insert(uri, (id.clone(), tokens.data.clone()));
        tokens.result_id = Some(id);
        tokens
    }

    /// The tokens that the client was given under this result id, if they were the last ones.
    pub(crate) fn kept_tokens(&self, uri: &Uri, id: &str) -> Option<Vec<SemanticToken>> {
        let kept = lock(&self.tokens);
        kept.by_uri.get(uri).filter(|(known, _)| known == id).map(|(_, data)| data.clone())
    }

    /// True the first time that the user is to be told this.
    pub(crate) fn is_news(&self, text: &str) -> bool {
        lock(&self.told).insert(text.to_owned())
    }

    /// Documents that changed since the last call, newest change last, and all open documents.
    pub(crate) fn take_dirty(&self) -> (Vec<Uri>, Vec<Uri>) {
        let mut host = lock(&self.host);
        let dirty = std::mem::take(&mut host.dirty);
        (dirty, host.open.keys().cloned().collect())
    }

    /// True when documents changed since [`State::take_dirty`].
    pub(crate) fn is_dirty(&self) -> bool {
        !lock(&self.host).dirty.is_empty()
    }

    /// The address of an open file.
    pub(crate) fn open_uri(&self, file: FileId) -> Option<Uri> {
        let host = lock(&self.host);
        let mut open = host.documents.by_uri.iter();
        open.find(|(_, open)| open.id == file).map(|(uri, _)| uri.clone())
    }

    /// The background compiler; `None` before the session began or when there are no workers.
    pub(crate) fn compiler(&self) -> Option<&Arc<Compiler>> {
        self.compiler.get()
    }

    /// Sets the background compiler; the first one counts.
    pub(crate) fn set_compiler(&self, compiler: Arc<Compiler>) {
        // `initialize` happens once.
        let _ = self.compiler.set(compiler);
    }

    /// Asks a worker for the architecture of the local device, which takes a while; true when that
    /// is news.
    pub(crate) fn find_local_arch(&self) -> bool {
        let found = self.compiler().and_then(|compiler| compiler.pool().local_arch());
        found.is_some_and(|arch| self.local_arch.set(arch).is_ok())
    }

    /// Chooses a kernel's specialization by its label.
    pub(crate) fn choose(&self, kernel: (FileId, Name), label: Option<String>) {
        lock(&self.host).db.choose(kernel, label);
        self.mark_all_dirty();
    }

    /// Looks in the workspace for launches of kernels of open documents, where that is not known
    /// yet. An edit ends it.
    pub(crate) fn find_launches(&self) -> Result<(), ReadError> {
        let host = lock(&self.host);
        let (searched, search) = (host.searched.clone(), host.search);
        drop(host);
        let names = self.read_once(|snapshot| {
            let open = snapshot.open_files();
            let named = open.map(|file| (file, launching_names(&snapshot.db, file)));
            named.collect::<FxHashMap<_, _>>()
        })?;
        let is_known = |(file, names): (&SourceFile, &FxHashSet<Name>)| {
            let searched = searched.as_ref().and_then(|searched| searched.get(file));
            searched.is_some_and(|searched| names.is_subset(searched))
        };
        if searched.is_some() && names.iter().all(is_known) {
            return Ok(());
        }
        let open = self.snapshot().open_paths();
        let paths = self.workspace_files(open);
        let importers =
            self.read_once(|snapshot| mentions::importers(&snapshot.db, &paths, &names))?;
        let mut host = lock(&self.host);
        if host.search != search {
            // Files changed since: what was found is of an older workspace.
            return Err(ReadError::Overtaken);
        }
        host.searched = Some(names);
        let news = host.db.set_importers(importers);
        drop(host);
        if news {
            self.mark_all_dirty();
        }
        Ok(())
    }

    /// Marks every open document as changed, since something around them did.
    pub(crate) fn mark_all_dirty(&self) {
        let mut host = lock(&self.host);
        host.dirty = host.open.keys().cloned().collect();
        drop(host);
        self.changed.notify_one();
    }

    /// A document was opened.
    pub(crate) fn open(&self, params: DidOpenTextDocumentParams) {
        let item = params.text_document;
        let path = path_of(&item.uri, &item.language_id);
        self.find_settings(&path);
        let document = Document::new(&item.text, item.version);
        let text = SourceText::new("");
        let mut open = Open { document, text, path, problem: None, exact: Arc::default() };
        let parse = open.parse_anew();
        open.take(parse);
        let mut host = lock(&self.host);
        host.set(item.uri, open);
        host.search_again();
        drop(host);
        self.changed.notify_one();
    }

    /// Makes the tree that edits of a document need, so that the first of them does not wait for it.
    pub(crate) fn prepare_edits(&self, uri: &Uri) {
        let text = lock(&self.host).open.get(uri).map(|open| open.text.clone());
        if let Some(text) = text {
            text.parse().tree();
        }
    }

    /// A document was edited.
    pub(crate) fn change(&self, params: DidChangeTextDocumentParams) {
        let encoding = self.encoding();
        let mut host = lock(&self.host);
        let uri = params.text_document.uri;
        let Some(mut open) = host.open.remove(&uri) else {
            tracing::warn!(uri = uri.as_str(), "change of a document that is not open");
            return;
        };
        open.document.version = params.text_document.version;
        open.apply(&params.content_changes, encoding);
        host.set(uri, open);
        drop(host);
        self.changed.notify_one();
    }

    /// A document was closed: the text on disk counts again.
    pub(crate) fn close(&self, uri: &Uri) {
        let mut host = lock(&self.host);
        let Some(open) = host.open.remove(uri) else { return };
        Arc::make_mut(&mut host.documents).by_uri.remove(uri);
        lock(&self.tokens).by_uri.remove(uri);
        self.forget_runs_of(uri);
        host.db.reload(&open.path);
        lock(&self.changed_on_disk).push(open.path);
        host.search_again();
        host.dirty.push(uri.clone());
        drop(host);
        // Its text on the disk may have to do with kernels where the one that was open did not.
        *lock(&self.kernel_files) = None;
        self.changed.notify_one();
    }

    /// Files changed on disk.
    pub(crate) fn files_changed(&self, changed: Vec<PathBuf>) {
        if changed.is_empty() {
            return;
        }
        let mut host = lock(&self.host);
        for path in changed {
            let is_open = host.open.values().any(|open| *open.path == *path);
            if !is_open {
                host.db.reload(&path);
                lock(&self.changed_on_disk).push(path);
            }
        }
        host.search_again();
        drop(host);
        *lock(&self.kernel_files) = None;
        self.mark_all_dirty();
    }

    /// The files that matter among those that changed on disk: editors tell of a folder that went, not
    /// of the files that it took along.
    pub(crate) fn changed_files<'u>(&self, uris: impl Iterator<Item = &'u Uri>) -> Vec<PathBuf> {
        let paths = uris.filter_map(|uri| Some(uri.to_file_path()?.into_owned()));
        let (mut changed, folders): (Vec<PathBuf>, Vec<PathBuf>) =
            paths.partition(|path| capabilities::is_watched(path));
        changed.extend(lock(&self.host).db.known_below(&folders));
        changed
    }
}

impl Host {
    /// Has every file searched for launches again.
    fn search_again(&mut self) {
        self.searched = None;
        self.search += 1;
    }

    fn set(&mut self, uri: Uri, open: Open) {
        let file = self.db.set_open(&open.path, open.text.clone());
        let known = OpenFile {
            file,
            id: file.id(&self.db),
            version: open.document.version,
            problem: open.problem.clone(),
            exact: open.exact.clone(),
        };
        Arc::make_mut(&mut self.documents).by_uri.insert(uri.clone(), known);
        self.dirty.retain(|dirty| *dirty != uri);
        self.dirty.push(uri.clone());
        self.open.insert(uri, open);
    }
}
