//! What the server does without being asked: diagnostics and compiles after each change, news of
//! compiles for the client.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tile_compiler::diagnostic::Severity;
use tile_compiler::hir::Name;
use tile_compiler::source::FileId;
use tile_worker::protocol::{CompileOptions, Depth};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};
use tower_lsp::ls_types::{MessageType, Uri};

use crate::compile::{Event, KernelKey, Stage, Wish};
use crate::db::{self, Kernel, Labelled, Lowered};
use crate::ide::{compiled, faded};
use crate::server::diagnostics::{self, Published};
use crate::server::ext::{IrChanged, IrChangedParams, KernelStatus, KernelStatusParams, Resources};
use crate::server::progress;
use crate::server::state::{ReadError, Snapshot, State};

/// Lenses are asked for again at most this often.
const REFRESH_EVERY: Duration = Duration::from_millis(50);

/// Follows changes of documents until the session ends.
pub(crate) async fn follow_changes(state: Arc<State>) {
    let mut published = Published::default();
    let mut search = None;
    loop {
        state.changed.notified().await;
        state.worked.set();
        let Some(session) = state.session() else { continue };
        let (dirty, open) = state.take_dirty();
        let pulls = session.client.pulls_diagnostics;
        if dirty.is_empty() {
            // A compile ended; texts are as they were.
        } else if pulls {
            diagnostics::refresh_others(&state, &dirty, &open);
        } else {
            diagnostics::publish_changed(&state, &mut published, dirty.clone(), &open).await;
        }
        // What follows takes longer: requests and a newer text are answered first.
        tokio::select! {
            () = state.answering.go_first() => {}
            () = state.changed.notified() => state.changed.notify_one(),
        }
        if state.is_dirty() {
            continue;
        }
        want_compiles(&state, &dirty, &open).await;
        if state.is_dirty() {
            continue;
        }
        for uri in check_exactly(&state, &dirty, &open).await {
            if pulls {
                diagnostics::refresh(&state);
            } else {
                diagnostics::publish(&state, &mut published, uri).await;
            }
        }
        want_inspected(&state, &dirty, &open).await;
        if !state.is_dirty() && search.as_ref().is_none_or(JoinHandle::is_finished) {
            search = Some(look_for_launches(state.clone()));
        }
    }
}

/// Looks for launches in the rest of the workspace, which may be large: edits are answered for
/// meanwhile.
fn look_for_launches(state: Arc<State>) -> JoinHandle<()> {
    tokio::task::spawn_blocking(move || {
        if matches!(state.find_launches(), Err(ReadError::Overtaken)) {
            // It starts again after the edit.
            state.changed.notify_one();
        }
    })
}

/// Checks the kernels of open documents under their specializations, those of edited documents
/// first; the documents in which that changed what is known. An edit ends it: what it would have
/// found is looked for after that edit again, or after whatever else overtook it.
async fn check_exactly(state: &Arc<State>, dirty: &[Uri], open: &[Uri]) -> Vec<Uri> {
    let mut changed = Vec::new();
    for uri in edited_first(dirty, open) {
        let (reader, address) = (state.clone(), uri.clone());
        let task = tokio::task::spawn_blocking(move || {
            let verdicts = |key: &KernelKey| {
                reader.compiler().map(|compiler| compiler.verdicts(key)).unwrap_or_default()
            };
            let found = reader.read_once(|snapshot| {
                let open = snapshot.document(&address)?;
                let mut found = db::exact_diagnostics(&snapshot.db, open.file).clone();
                found.extend(faded::inactive(&snapshot.db, open.file));
                found.extend(compiled::diagnostics(&snapshot.db, open.file, &verdicts));
                Some((open.version, found))
            });
            match found {
                Ok(Some((version, found))) => Ok(reader.set_exact(&address, version, found)),
                Ok(None) => Ok(false),
                Err(error) => Err(error),
            }
        });
        match task.await {
            Ok(Ok(true)) => changed.push(uri.clone()),
            Ok(Err(ReadError::Overtaken)) => {
                state.changed.notify_one();
                return changed;
            }
            _ => {}
        }
    }
    changed
}

/// Edited documents, the last edit first, then the others.
fn edited_first<'u>(dirty: &'u [Uri], open: &'u [Uri]) -> impl Iterator<Item = &'u Uri> {
    let edited = dirty.iter().rev().filter(|uri| open.contains(uri));
    edited.chain(open.iter().filter(|uri| !dirty.contains(uri)))
}

/// Says what the kernels of open documents are now, those of edited documents first.
async fn want_compiles(state: &Arc<State>, dirty: &[Uri], open: &[Uri]) {
    for uri in edited_first(dirty, open) {
        if state.is_dirty() {
            return;
        }
        let (reader, uri) = (state.clone(), uri.clone());
        let task = tokio::task::spawn_blocking(move || {
            // An edit that overtakes this asks again.
            let wishes = reader.read_once(|snapshot| wishes(&reader, snapshot, &uri));
            let Ok(Some(Wishes { file, kernels, wishes })) = wishes else { return };
            let Some(compiler) = reader.compiler() else { return };
            compiler.retain(file, &kernels);
            for (key, wish) in wishes {
                compiler.want(&key, wish);
            }
        });
        // A panic was logged by `read`.
        let _ = task.await;
    }
}

/// Has the other configurations of kernels in edited documents looked into.
async fn want_inspected(state: &Arc<State>, dirty: &[Uri], open: &[Uri]) {
    for uri in dirty.iter().rev().filter(|uri| open.contains(uri)) {
        if state.is_dirty() {
            return;
        }
        let (reader, uri) = (state.clone(), uri.clone());
        let task = tokio::task::spawn_blocking(move || {
            let Some(compiler) = reader.compiler() else { return };
            let wishes = reader.read_once(|snapshot| {
                let known = |key: &KernelKey, now| compiler.is_inspected(key, now);
                other_wishes(&reader, snapshot, &uri, &known)
            });
            let Ok(Some(wishes)) = wishes else { return };
            for (key, fingerprint, wishes) in wishes {
                compiler.want_inspected(&key, fingerprint, wishes);
            }
        });
        // A panic was logged by `read`.
        let _ = task.await;
    }
}

/// The specializations of each kernel beside the active one of which something can be proved, with
/// a fingerprint of what they follow from. `known` says which kernels did not change.
fn other_wishes(
    state: &State,
    snapshot: &Snapshot,
    uri: &Uri,
    known: &dyn Fn(&KernelKey, u64) -> bool,
) -> Option<Vec<(KernelKey, u64, Vec<Wish>)>> {
    let file = snapshot.document(uri)?.file;
    let text = file.text(&snapshot.db).as_ref()?.text().clone();
    let kernels = db::kernels(&snapshot.db, file).iter().filter_map(|kernel| {
        let key = KernelKey { file: file.id(&snapshot.db), kernel: kernel.name.clone() };
        let active = kernel.active(&snapshot.db);
        let mut hasher = DefaultHasher::new();
        text[kernel.range.as_usize()].hash(&mut hasher);
        // It holds what is inlined from elsewhere.
        wish(state, snapshot, kernel, active).ir.hash(&mut hasher);
        for labelled in kernel.specializations.iter() {
            labelled.label.hash(&mut hasher);
        }
        let fingerprint = hasher.finish();
        if known(&key, fingerprint) {
            return None;
        }
        let others = kernel.specializations.iter().enumerate();
        let others = others.filter(|(index, other)| *index != active && other.spec.is_certain());
        let wishes = others.map(|(index, _)| {
            let wish = wish(state, snapshot, kernel, index);
            Wish { options: CompileOptions { depth: Depth::Gpu, ..wish.options }, ..wish }
        });
        Some((key, fingerprint, wishes.collect()))
    });
    Some(kernels.collect())
}

/// What the kernels of a file are.
struct Wishes {
    file: FileId,
    kernels: Vec<(Name, Arc<[Labelled]>)>,
    wishes: Vec<(KernelKey, Wish)>,
}

fn wishes(state: &State, snapshot: &Snapshot, uri: &Uri) -> Option<Wishes> {
    let open = snapshot.document(uri)?;
    let found = db::kernels(&snapshot.db, open.file);
    let wish_of = |kernel: &Kernel| {
        let key = KernelKey { file: open.id, kernel: kernel.name.clone() };
        (key, wish(state, snapshot, kernel, kernel.active(&snapshot.db)))
    };
    let labelled = |kernel: &Kernel| {
        let active = kernel.active(&snapshot.db);
        let mut all = kernel.settled(&snapshot.db).to_vec();
        if let (Some(known), Some(exact)) =
            (all.get_mut(active), kernel.specialization(&snapshot.db, active))
        {
            *known = exact;
        }
        (kernel.name.clone(), Arc::from(all))
    };
    Some(Wishes {
        file: open.id,
        kernels: found.iter().map(labelled).collect(),
        wishes: found.iter().map(wish_of).collect(),
    })
}

/// What a kernel is under its specialization of this index.
pub(crate) fn wish(state: &State, snapshot: &Snapshot, kernel: &Kernel, index: usize) -> Wish {
    let db = &snapshot.db;
    let label = kernel.specialization(db, index).map(|labelled| labelled.label);
    let file = db::Db::file_of(db, kernel.at.file);
    let lowered = file.map(|file| db::lowered(db, file, kernel.at.index, index));
    let anchors = lowered.map(|lowered| lowered.anchors.clone()).unwrap_or_default();
    let ir = match (db::syntax_error_in(db, kernel.at), lowered.map(|lowered| &**lowered)) {
        (Some(error), _) => Err(error),
        (None, Some(Lowered { ir: Some(ir), .. })) => Ok(ir.clone()),
        (None, Some(lowered)) => {
            let errors = lowered.found.unplaced().iter();
            let error = errors.clone().find(|found| found.severity == Severity::Error);
            Err(error.map_or("the kernel has errors", |found| &found.message).to_owned())
        }
        (None, None) => Err("the file is gone".to_owned()),
    };
    let path = file.map(|file| file.path(db).clone());
    let configuration = state.configuration(path.as_deref().unwrap_or(Path::new("")));
    let options = configuration.compile.clone();
    Wish { label: label.unwrap_or_default(), ir, anchors, options }
}

/// Tells the client what the compiler reports, until the session ends: of kernels at once, of lenses
/// now and then.
pub(crate) async fn tell_events(state: Arc<State>, mut events: UnboundedReceiver<Event>) {
    let mut no_worker = false;
    let mut refreshed = Instant::now();
    let mut refresh_at: Option<Instant> = None;
    loop {
        let refresh = sleep_until(refresh_at.unwrap_or(refreshed));
        let event = tokio::select! {
            event = events.recv() => event,
            () = refresh, if refresh_at.is_some() => {
                refresh_lenses(&state);
                (refreshed, refresh_at) = (Instant::now(), None);
                continue;
            }
        };
        let Some(event) = event else { return };
        let mut batch = vec![event];
        while let Ok(event) = events.try_recv() {
            batch.push(event);
        }
        let mut changed: Vec<KernelKey> = Vec::new();
        let mut inspected = false;
        for event in batch {
            match event {
                Event::Changed(key) if !changed.contains(&key) => changed.push(key),
                Event::Changed(_) => {}
                Event::Inspected => inspected = true,
                Event::WorkerDied => {
                    let text = "A worker process of tile died and was started again.";
                    state.client.show_message(MessageType::WARNING, text).await;
                }
                Event::NoWorker(text) if !no_worker => {
                    no_worker = true;
                    state.client.show_message(MessageType::ERROR, text).await;
                }
                Event::NoWorker(_) => {}
            }
        }
        for key in &changed {
            tell_status(&state, key).await;
            tokio::spawn(show_progress(state.clone(), key.clone()));
        }
        if inspected || !changed.is_empty() {
            // What was found by it is shown with what else is wrong.
            state.changed.notify_one();
        }
        if !changed.is_empty() {
            refresh_at.get_or_insert(refreshed + REFRESH_EVERY);
        }
    }
}

/// A compile that takes this long is shown.
const PATIENCE: Duration = Duration::from_millis(500);

/// Shows that a kernel is being compiled, once that takes a while.
async fn show_progress(state: Arc<State>, key: KernelKey) {
    let Some(compiler) = state.compiler() else { return };
    let compiling = || {
        let status = compiler.status(&key)?;
        matches!(status.stage, Stage::Compiling).then_some(status.wish)
    };
    let Some(wish) = compiling() else { return };
    tokio::time::sleep(PATIENCE).await;
    // A newer wish has its own.
    if compiling().as_ref() != Some(&wish) {
        return;
    }
    let Some(token) = progress::create(&state).await else { return };
    let progress = state.client.progress(token, format!("Compiling {}", key.kernel)).begin().await;
    compiler.settled(&key).await;
    progress.finish().await;
}

async fn tell_status(state: &State, key: &KernelKey) {
    let wanted = state.session().is_some_and(|session| session.client.kernel_status);
    let status = state.compiler().and_then(|compiler| compiler.status(key));
    let (true, Some(status), Some(uri)) = (wanted, status, state.open_uri(key.file)) else {
        return;
    };
    let kernel = key.kernel.to_string();
    let arch = &status.wish.options.arch;
    let (name, message, resources) = match &status.stage {
        Stage::Compiling => ("compiling", None, None),
        Stage::Ready(compiled) => {
            let resources = compiled.resources.as_ref();
            ("ready", None, resources.map(|found| Resources::new(found, arch)))
        }
        Stage::Failed(message) | Stage::Unknown(message) => ("error", Some(message.clone()), None),
    };
    let params = KernelStatusParams {
        uri: uri.clone(),
        kernel: kernel.clone(),
        specialization: status.wish.label.clone(),
        state: name,
        message,
        resources,
    };
    if let Ok(params) = serde_json::to_value(params) {
        state.client.send_notification::<KernelStatus>(params).await;
    }
    if !matches!(status.stage, Stage::Compiling) {
        state.client.send_notification::<IrChanged>(IrChangedParams { uri, kernel }).await;
    }
}

/// Asks the client to ask again for what settings, specializations and other files change: lenses,
/// hints, tokens.
pub(crate) fn refresh_views(state: &State) {
    refresh_lenses(state);
    refresh_hints(state);
    if state.session().is_some_and(|session| session.client.refreshes_tokens) {
        let client = state.client.clone();
        tokio::spawn(async move { client.semantic_tokens_refresh().await });
    }
}

/// Asks the client to ask for lenses again.
pub(crate) fn refresh_lenses(state: &State) {
    if state.session().is_some_and(|session| session.client.refreshes_lenses) {
        let client = state.client.clone();
        tokio::spawn(async move { client.code_lens_refresh().await });
    }
}

/// Asks the client to ask for hints again.
pub(crate) fn refresh_hints(state: &State) {
    if state.session().is_some_and(|session| session.client.refreshes_hints) {
        let client = state.client.clone();
        tokio::spawn(async move { client.inlay_hint_refresh().await });
    }
}
