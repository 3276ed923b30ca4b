//! Compiles kernels in the background, in worker processes.
//!
//! Whoever sees a new text says what each kernel is now ([`Compiler::want`]). A kernel whose tile
//! IR did not change is not compiled again. The newest wish wins: a wish that is overtaken before
//! it starts never starts, and the result of one that is overtaken while it runs is dropped.
//! Nothing here waits for typing to pause.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustc_hash::{FxHashMap, FxHashSet};
use tile_compiler::artifact::{Artifact, Listing, Resources};
use tile_compiler::diagnostic::Diagnostic;
use tile_compiler::hir::Name;
use tile_compiler::source::FileId;
use tile_worker::protocol::{CompileOptions, CompileRequest};
use tile_worker::{Cancel, Pool, WorkerError};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedSender;

use crate::db::Labelled;
use crate::db::anchored::Anchors;
use crate::ide::layouts::Layouts;
use crate::packed::Packed;

/// A compile that was overtaken is left to end by itself when it is this close to its start:
/// ending its worker costs more.
const PATIENCE: Duration = Duration::from_millis(400);

/// Workers that compile at once.
const MAX_RUNNING: usize = 2;

/// Specializations of a kernel that may come back, as while their scenario is being edited: what
/// was measured of this many is kept.
const MAX_OUTDATED: usize = 16;

/// A kernel of a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct KernelKey {
    /// The file.
    pub(crate) file: FileId,
    /// The kernel's name.
    pub(crate) kernel: Name,
}

/// What a kernel is at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wish {
    /// Label of the specialization.
    pub(crate) label: String,
    /// Tile IR, or in one line why there is none.
    pub(crate) ir: Result<Packed<String>, String>,
    /// What the locations of the IR count from.
    pub(crate) anchors: Arc<Anchors>,
    /// For what machine, and what to keep.
    pub(crate) options: CompileOptions,
}

/// A wish that was fulfilled.
#[derive(Debug)]
pub(crate) struct Compiled {
    /// The wish.
    pub(crate) wish: Wish,
    /// Measured resources; `None` when no assembler was at hand.
    pub(crate) resources: Option<Resources>,
    /// The lines that its PTX comes from, those of inlined helpers among them; each counts from
    /// its anchor.
    pub(crate) lines: FxHashSet<(FileId, u32)>,
    /// Its PTX. Machine code is not kept: nobody asks for it.
    ptx: Packed<Listing>,
    /// How its values lie in registers; found when first asked for.
    layouts: OnceLock<Layouts>,
}

/// How far a kernel is.
#[derive(Debug, Clone)]
pub(crate) enum Stage {
    /// Under way.
    Compiling,
    /// Done.
    Ready(Arc<Compiled>),
    /// It does not compile; why, in one line.
    Failed(String),
    /// Whether it compiles is not known, as no worker could find out; why, in one line.
    Unknown(String),
}

/// What to tell users whose server cannot have workers.
pub(crate) const NO_WORKER: &str =
    "no worker process can be started; `tile doctor` says what is missing";

/// What is known of a kernel.
#[derive(Debug, Clone)]
pub(crate) struct Status {
    /// The newest wish.
    pub(crate) wish: Wish,
    /// How far it is.
    pub(crate) stage: Stage,
    /// The newest result of any wish.
    pub(crate) last_good: Option<Arc<Compiled>>,
    /// What the same specialization took before the edit that led to the newest result.
    pub(crate) before: Option<Older>,
}

/// What a specialization took before an edit.
#[derive(Debug, Clone)]
pub(crate) struct Older {
    /// Label of the specialization.
    pub(crate) label: String,
    /// What was measured.
    pub(crate) resources: Resources,
}

/// What a specialization took of a multiprocessor when it was compiled last.
#[derive(Debug, Clone)]
pub(crate) struct Measured {
    /// The IR that was compiled.
    pub(crate) ir: Packed<String>,
    /// For what architecture.
    pub(crate) arch: String,
    /// What was measured.
    pub(crate) resources: Resources,
}

/// What compiling a specialization showed of the source.
#[derive(Debug, Clone)]
pub(crate) struct Verdict {
    /// What was compiled; places of findings count from its anchors.
    pub(crate) wish: Wish,
    /// Findings of the back end.
    pub(crate) findings: Vec<Diagnostic>,
    /// What the assembler reported.
    pub(crate) resources: Option<Resources>,
    /// Whether it multiplies matrices.
    pub(crate) has_products: bool,
}

impl Verdict {
    fn new(wish: Wish, outcome: &Result<Artifact, WorkerError>) -> Verdict {
        let (findings, resources, has_products) = match outcome {
            Ok(artifact) => (Vec::new(), artifact.resources.clone(), artifact.has_products),
            Err(WorkerError::Failed(failure)) => (failure.findings.clone(), None, false),
            Err(_) => (Vec::new(), None, false),
        };
        Verdict { wish, findings, resources, has_products }
    }
}

/// What is known of the specializations of one kernel, by their labels.
pub(crate) type MeasuredByLabel = FxHashMap<String, Measured>;

/// What happened to a kernel, for whoever tells the user.
#[derive(Debug)]
pub(crate) enum Event {
    /// A compile started, or ended.
    Changed(KernelKey),
    /// A worker process died by itself.
    WorkerDied,
    /// A specialization was looked into.
    Inspected,
    /// No worker can be had; why.
    NoWorker(String),
}

/// The background compiler.
#[derive(Debug)]
pub(crate) struct Compiler {
    pool: Arc<Pool>,
    table: Mutex<Table>,
    settled: Notify,
    events: UnboundedSender<Event>,
    runtime: Handle,
}

#[derive(Debug, Default)]
struct Table {
    kernels: FxHashMap<KernelKey, Entry>,
    queue: VecDeque<KernelKey>,
    measured: FxHashMap<KernelKey, MeasuredByLabel>,
    verdicts: FxHashMap<KernelKey, FxHashMap<String, Verdict>>,
    /// Of what text the other specializations of a kernel were last asked for.
    inspected: FxHashMap<KernelKey, u64>,
    /// Specializations that are only looked into, once nothing else is to be compiled.
    later: VecDeque<(KernelKey, Wish)>,
    running: usize,
    deaths: u64,
}

#[derive(Debug)]
struct Entry {
    status: Status,
    running: Option<(Instant, Cancel)>,
}

impl Compiler {
    /// A compiler that uses the workers of `pool` and reports to `events`.
    pub(crate) fn new(
        pool: Arc<Pool>,
        events: UnboundedSender<Event>,
        runtime: Handle,
    ) -> Compiler {
        Compiler { pool, table: Mutex::default(), settled: Notify::new(), events, runtime }
    }

    /// The workers.
    pub(crate) fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, event: Event) {
        // Nobody listens any more once the session is over.
        let _ = self.events.send(event);
    }

    /// Says what a kernel is now.
    pub(crate) fn want(self: &Arc<Self>, key: &KernelKey, wish: Wish) {
        let mut table = self.table();
        let known = table.kernels.get(key);
        if known.is_some_and(|entry| entry.status.wish == wish) {
            return;
        }
        let stage = match &wish.ir {
            Ok(_) => Stage::Compiling,
            Err(message) => Stage::Failed(message.clone()),
        };
        let compiles = wish.ir.is_ok();
        let last_good = known.and_then(|entry| entry.status.last_good.clone());
        let before = known.and_then(|entry| entry.status.before.clone());
        let running = table.kernels.remove(key).and_then(|entry| entry.running);
        if !compiles {
            // What was found in the code before the error may not be there any more.
            table.verdicts.remove(key);
            table.inspected.remove(key);
        }
        if let Some((since, cancel)) = &running
            && since.elapsed() > PATIENCE
        {
            cancel.cancel();
        }
        let status = Status { wish, stage, last_good, before };
        table.kernels.insert(key.clone(), Entry { status, running });
        table.queue.retain(|queued| queued != key);
        if compiles {
            table.queue.push_back(key.clone());
        }
        self.pump(&mut table);
        drop(table);
        self.tell(Event::Changed(key.clone()));
        self.settled.notify_waiters();
    }

    /// Forgets the kernels of a file that are not among `kernels`, and in the long run what was
    /// measured of specializations that they do not have any more.
    pub(crate) fn retain(&self, file: FileId, kernels: &[(Name, Arc<[Labelled]>)]) {
        let mut table = self.table();
        let known = |key: &KernelKey| kernels.iter().find(|(name, _)| *name == key.kernel);
        let gone = |key: &KernelKey| key.file == file && known(key).is_none();
        table.kernels.retain(|key, _| !gone(key));
        table.measured.retain(|key, _| !gone(key));
        table.verdicts.retain(|key, _| !gone(key));
        table.inspected.retain(|key, _| !gone(key));
        table.later.retain(|(key, _)| !gone(key));
        table.queue.retain(|key| !gone(key));
        for (key, measured) in &mut table.measured {
            let Some((_, labelled)) = known(key).filter(|_| key.file == file) else { continue };
            if measured.len() > labelled.len() + MAX_OUTDATED {
                measured.retain(|label, _| labelled.iter().any(|known| known.label == *label));
            }
        }
    }

    /// What is known of a kernel.
    pub(crate) fn status(&self, key: &KernelKey) -> Option<Status> {
        self.table().kernels.get(key).map(|entry| entry.status.clone())
    }

    /// What the specializations of a kernel took when they were compiled last.
    pub(crate) fn measured(&self, key: &KernelKey) -> MeasuredByLabel {
        self.table().measured.get(key).cloned().unwrap_or_default()
    }

    /// What compiling the specializations of a kernel showed.
    pub(crate) fn verdicts(&self, key: &KernelKey) -> Vec<Verdict> {
        let table = self.table();
        let known = table.verdicts.get(key).into_iter().flat_map(|known| known.values());
        let mut verdicts: Vec<Verdict> = known.cloned().collect();
        verdicts.sort_by(|a, b| a.wish.label.cmp(&b.wish.label));
        verdicts
    }

    /// Whether [`Compiler::want_inspected`] was told of a kernel as it is now.
    pub(crate) fn is_inspected(&self, key: &KernelKey, fingerprint: u64) -> bool {
        self.table().inspected.get(key) == Some(&fingerprint)
    }

    /// Says which other specializations a kernel has, and what they follow from as a fingerprint.
    /// Those of which nothing is known are looked into as far as GPU IR, when there is nothing
    /// else to do.
    pub(crate) fn want_inspected(
        self: &Arc<Self>,
        key: &KernelKey,
        fingerprint: u64,
        wishes: Vec<Wish>,
    ) {
        let mut table = self.table();
        table.inspected.insert(key.clone(), fingerprint);
        table.later.retain(|(queued, _)| queued != key);
        let labels: Vec<&String> = wishes.iter().map(|wish| &wish.label).collect();
        let active = table.kernels.get(key).map(|entry| entry.status.wish.label.clone());
        let verdicts = table.verdicts.entry(key.clone()).or_default();
        verdicts.retain(|label, _| labels.contains(&label) || Some(label) == active.as_ref());
        let is_new = |wish: &Wish| {
            verdicts.get(&wish.label).is_none_or(|known| {
                known.wish.ir != wish.ir || known.wish.options.arch != wish.options.arch
            })
        };
        let new: Vec<Wish> = wishes.into_iter().filter(is_new).collect();
        table.later.extend(new.into_iter().map(|wish| (key.clone(), wish)));
        self.pump(&mut table);
    }

    /// Notes what compiling a specialization showed.
    pub(crate) fn note(
        &self,
        key: &KernelKey,
        wish: &Wish,
        outcome: &Result<Artifact, WorkerError>,
    ) {
        if matches!(outcome, Err(WorkerError::Cancelled)) {
            return;
        }
        let verdict = Verdict::new(wish.clone(), outcome);
        let mut table = self.table();
        table.verdicts.entry(key.clone()).or_default().insert(wish.label.clone(), verdict);
        drop(table);
        if let Ok(artifact) = outcome {
            self.note_measured(key, wish, artifact);
        }
    }

    fn note_measured(&self, key: &KernelKey, wish: &Wish, artifact: &Artifact) {
        let (Ok(ir), Some(resources)) = (&wish.ir, &artifact.resources) else { return };
        let measured = Measured {
            ir: ir.clone(),
            arch: wish.options.arch.clone(),
            resources: resources.clone(),
        };
        let mut table = self.table();
        table.measured.entry(key.clone()).or_default().insert(wish.label.clone(), measured);
    }

    /// What is known of a kernel once no compile of it is under way.
    pub(crate) async fn settled(&self, key: &KernelKey) -> Option<Status> {
        loop {
            let changed = self.settled.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            match self.status(key) {
                Some(Status { stage: Stage::Compiling, .. }) => changed.await,
                status => return status,
            }
        }
    }

    /// Starts what fits. A kernel is compiled by one worker at a time.
    fn pump(self: &Arc<Self>, table: &mut Table) {
        while table.running < MAX_RUNNING {
            let idle = |key: &KernelKey| {
                table.kernels.get(key).is_some_and(|entry| entry.running.is_none())
            };
            let Some(at) = table.queue.iter().position(idle) else {
                return self.pump_later(table);
            };
            let Some(key) = table.queue.remove(at) else { return };
            let Some(entry) = table.kernels.get_mut(&key) else { continue };
            let cancel = Cancel::default();
            entry.running = Some((Instant::now(), cancel.clone()));
            let wish = entry.status.wish.clone();
            table.running += 1;
            let compiler = self.clone();
            self.runtime.spawn_blocking(move || compiler.run(&key, wish, &cancel));
        }
    }

    /// Looks into one specialization at a time, so that whoever edits need not wait.
    fn pump_later(self: &Arc<Self>, table: &mut Table) {
        if table.running > 0 {
            return;
        }
        let Some((key, wish)) = table.later.pop_front() else { return };
        table.running += 1;
        let compiler = self.clone();
        self.runtime.spawn_blocking(move || {
            let outcome = compiler.compile(&wish, &Cancel::default());
            compiler.note(&key, &wish, &outcome);
            let mut table = compiler.table();
            table.running -= 1;
            compiler.pump(&mut table);
            drop(table);
            compiler.tell(Event::Inspected);
        });
    }

    fn run(self: Arc<Self>, key: &KernelKey, wish: Wish, cancel: &Cancel) {
        let outcome = self.compile(&wish, cancel);
        self.note(key, &wish, &outcome);
        self.report_deaths();
        if let Err(error @ WorkerError::Start(_)) = &outcome {
            self.tell(Event::NoWorker(error.to_string()));
        }
        let mut table = self.table();
        table.running -= 1;
        let mut news = false;
        if let Some(entry) = table.kernels.get_mut(key) {
            entry.running = None;
            news = entry.status.wish == wish;
            entry.finish(wish, outcome);
        }
        self.pump(&mut table);
        drop(table);
        if news {
            self.tell(Event::Changed(key.clone()));
        }
        self.settled.notify_waiters();
    }

    /// Compiles and waits, for a text that is not kept in the background.
    ///
    /// # Errors
    /// What the worker says.
    pub(crate) fn compile(&self, wish: &Wish, cancel: &Cancel) -> Result<Artifact, WorkerError> {
        let ir = match &wish.ir {
            Ok(ir) => ir.get(),
            Err(message) => return Err(failure(message)),
        };
        let request = CompileRequest { ir, options: wish.options.clone() };
        self.pool.compile(&request, cancel)
    }

    /// Tells of workers that died since the last call.
    pub(crate) fn report_deaths(&self) {
        let deaths = self.pool.deaths();
        let known = std::mem::replace(&mut self.table().deaths, deaths);
        if deaths > known {
            self.tell(Event::WorkerDied);
        }
    }

    /// Starts a worker, so that the first compile need not wait for it. Blocks.
    pub(crate) fn warm_up(&self) {
        if let Err(error) = self.pool.warm_up() {
            self.tell(Event::NoWorker(error.to_string()));
        }
    }

    /// Ends what workers are doing, and the workers.
    pub(crate) fn restart(&self) {
        for entry in self.table().kernels.values() {
            if let Some((_, cancel)) = &entry.running {
                cancel.cancel();
            }
        }
        self.pool.restart();
    }
}

fn failure(message: &str) -> WorkerError {
    use tile_worker::{Failure, FailureKind};
    WorkerError::Failed(Failure::new(FailureKind::Compile, message))
}

impl Compiled {
    fn new(wish: Wish, artifact: Artifact) -> Compiled {
        let frames = artifact.line_map.runs.iter().flat_map(|run| &run.frames);
        let lines = frames.map(|frame| (frame.file, frame.line)).collect();
        let ptx = Packed::new(&Listing { text: artifact.ptx, line_map: artifact.line_map });
        Compiled { wish, resources: artifact.resources, lines, ptx, layouts: OnceLock::new() }
    }

    /// Its PTX with all directives.
    pub(crate) fn ptx(&self) -> Listing {
        self.ptx.get()
    }

    /// How its values lie in registers.
    pub(crate) fn layouts(&self) -> &Layouts {
        self.layouts.get_or_init(|| {
            let ir = self.wish.ir.as_ref().map(Packed::get).unwrap_or_default();
            Layouts::of(&ir, &self.wish.options.arch)
        })
    }

    /// True when this is what the same specialization was before an edit.
    fn is_before(&self, newer: &Compiled) -> bool {
        self.wish.label == newer.wish.label
            && self.wish.options == newer.wish.options
            && self.wish.ir != newer.wish.ir
    }
}

impl Entry {
    /// Takes over the outcome of a wish, unless a newer one counts.
    fn finish(&mut self, wish: Wish, outcome: Result<Artifact, WorkerError>) {
        let current = self.status.wish == wish;
        match outcome {
            Ok(artifact) => {
                let compiled = Arc::new(Compiled::new(wish, artifact));
                if current {
                    let known = self.status.last_good.take();
                    if let Some(older) = known.filter(|older| older.is_before(&compiled)) {
                        let measured = older.resources.clone();
                        let label = older.wish.label.clone();
                        self.status.before = measured.map(|resources| Older { label, resources });
                    }
                    self.status.stage = Stage::Ready(compiled.clone());
                }
                if current || self.status.last_good.is_none() {
                    self.status.last_good = Some(compiled);
                }
            }
            Err(error) if current => {
                let message = error.to_string();
                let line = message.lines().next().unwrap_or_default().to_owned();
                self.status.stage = match error {
                    WorkerError::Failed(_) => Stage::Failed(line),
                    _ => Stage::Unknown(line),
                };
            }
            Err(_) => {}
        }
    }
}
