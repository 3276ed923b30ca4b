//! Checks of the whole workspace.
//!
//! An edit unwinds what is asked of the server's database, and waits until that has unwound. A check
//! of a thousand files would hardly ever end while somebody types, and typing would wait for it. So
//! checks ask a database of their own, which is brought up to date before each of them.

use std::path::PathBuf;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::reading::attempt;
use super::{Documents, Host, OpenFile, ReadError, Request, Snapshot, State, lock};
use crate::db::{Database, Db, SourceFile};
use crate::files::FileSystem;
use crate::threads;

/// Files that are checked before anybody hears of it.
const CHUNK: usize = 50;

/// How much less than other threads those that check count with the system, as `nice` has it.
const NICENESS: i32 = 10;

/// What checks ask.
#[derive(Debug)]
pub(super) struct Checks {
    db: Database,
    /// Open documents by their files in `db`.
    documents: Arc<Documents>,
}

impl Checks {
    pub(super) fn new(system: Arc<dyn FileSystem>) -> Checks {
        let mut db = Database::new(system);
        db.keep_few();
        Checks { db, documents: Arc::default() }
    }

    /// Takes over what changed since the last check: `on_disk`, in editors, in settings.
    fn follow(&mut self, host: &Host, on_disk: Vec<PathBuf>) {
        for path in on_disk {
            self.db.reload(&path);
        }
        for open in host.open.values() {
            self.db.file(&open.path);
        }
        // What editors have open counts more than what lies on the disk.
        for file in self.db.files().all() {
            let path = file.path(&self.db).clone();
            if let Some(theirs) = host.db.files().known(&path) {
                self.db.set_text(file, theirs.text(&host.db).clone());
            }
        }
        self.db.configure_as(&host.db);
        let documents = host.documents.by_uri.iter().map(|(uri, open)| {
            let file = self.db.file(open.file.path(&host.db));
            (uri.clone(), OpenFile { file, id: file.id(&self.db), ..open.clone() })
        });
        let by_uri: FxHashMap<_, _> = documents.collect();
        self.documents = Arc::new(Documents { by_uri });
    }
}

impl State {
    /// Asks about each of the files at `paths`, as they are when the check begins. Edits in the
    /// meantime neither end the check nor wait for it. `progress` hears how many are done.
    ///
    /// # Errors
    /// When the request is withdrawn, or `ask` panics.
    pub(crate) fn check<T: Send>(
        &self,
        request: &Request,
        paths: &[PathBuf],
        ask: impl Fn(&Snapshot, SourceFile) -> T + Sync,
        mut progress: impl FnMut(usize),
    ) -> Result<Vec<T>, ReadError> {
        let mut checks = lock(&self.checks);
        let checks = checks.get_or_insert_with(|| Checks::new(self.files.clone()));
        checks.follow(&lock(&self.host), std::mem::take(&mut *lock(&self.changed_on_disk)));
        let mut all = Vec::with_capacity(paths.len());
        for chunk in paths.chunks(CHUNK) {
            let snapshot = || Snapshot {
                db: checks.db.clone(),
                documents: checks.documents.clone(),
                encoding: self.encoding(),
                tags: self.session().map(|session| session.client.tags).unwrap_or_default(),
            };
            let answer = |snapshot: &Snapshot, path: &PathBuf| {
                step_back();
                match request.is_withdrawn() {
                    true => Err(ReadError::Withdrawn),
                    false => attempt(snapshot, |snapshot| ask(snapshot, snapshot.db.file(path))),
                }
            };
            let snapshots = (0..threads::available().div_ceil(2)).map(|_| snapshot()).collect();
            let answers = threads::ask_with(chunk, snapshots, &answer);
            if answers.len() < chunk.len() {
                return Err(ReadError::Panicked("a thread could not be started".to_owned()));
            }
            for answer in answers {
                all.push(answer?);
            }
            checks.db.forget_large();
            progress(all.len());
        }
        Ok(all)
    }
}

/// Lets other threads go before this one, from now on.
fn step_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: sets a property of this thread. It fails by changing nothing.
    unsafe {
        libc::setpriority(libc::PRIO_PROCESS, 0, NICENESS);
    }
}
