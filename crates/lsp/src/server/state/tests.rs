//! Whatever was edited, opened, closed, renamed, deleted or configured, in whatever order, the
//! server then answers as one that was just started.
//!
//! The suite makes [`STEPS`] random steps; `TILE_STEPS=N` asks for more, `TILE_SEED=S` for others,
//! and `TILE_CORPUS=FOLDER` for kernel files of a folder instead of the project's examples.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tower_lsp::LspService;
use tower_lsp::ls_types::{
    DidChangeTextDocumentParams, DidOpenTextDocumentParams, InitializeParams, Position, Range, Uri,
};

use super::{ReadError, Request, Snapshot, State, lock};
use crate::db;
use crate::files::FileSystem;
use crate::packed::Packed;
use crate::server::requests::{editing, hover, kernels, lenses, navigation, workspace};
use crate::server::session::Session;
use crate::server::{Server, diagnostics};

mod typist;

use typist::{Random, Step, Typist};

/// Steps that the suite makes.
const STEPS: usize = 120;

/// Steps between two comparisons with a fresh server.
const COMPARE_EVERY: usize = 40;

/// Where the workspace lies; nothing on the disk is touched.
const FOLDER: &str = "/workspace";

/// Places of each document whose hovers and definitions are compared.
const PLACES: usize = 10;

/// Files in memory.
#[derive(Debug, Default)]
pub(super) struct Memory(Mutex<BTreeMap<PathBuf, String>>);

impl Memory {
    /// Writes a file, or removes it.
    pub(super) fn set(&self, path: &Path, text: Option<&str>) {
        let mut files = lock(&self.0);
        match text {
            Some(text) => files.insert(path.to_owned(), text.to_owned()),
            None => files.remove(path),
        };
    }
}

impl FileSystem for Memory {
    fn read(&self, path: &Path) -> Option<String> {
        lock(&self.0).get(path).cloned()
    }

    fn walk(&self, folder: &Path, limit: usize) -> Vec<PathBuf> {
        let files = lock(&self.0);
        files.keys().filter(|path| path.starts_with(folder)).take(limit).cloned().collect()
    }
}

fn address(path: &Path) -> Uri {
    Uri::from_file_path(path).expect("the path is absolute")
}

fn typed<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("the value has the protocol's shape")
}

/// A server whose background work is done when the test says so.
struct Running {
    state: Arc<State>,
    // Holds the other end of the state's client.
    _service: LspService<Server>,
}

impl Running {
    fn start(files: &Arc<Memory>, settings: &Value) -> Running {
        let mut shared = None;
        let (service, _) = LspService::new(|client| {
            let state = Arc::new(State::new(client, files.clone()));
            shared = Some(state.clone());
            Server { state }
        });
        let state = shared.expect("the service was built");
        let params: InitializeParams = typed(json!({
            "capabilities": { "general": { "positionEncodings": ["utf-8"] } },
            "workspaceFolders": [{ "uri": address(Path::new(FOLDER)), "name": "w" }],
        }));
        state.start_session(Session::new(&params));
        state.configure(Some(settings.clone()));
        Running { state, _service: service }
    }

    fn open(&self, path: &Path, text: &str, version: i32) {
        let uri = address(path);
        let language =
            if path.extension().is_some_and(|e| e == "tile") { "tile" } else { "python" };
        let params: DidOpenTextDocumentParams = typed(json!({ "textDocument": {
            "uri": uri, "languageId": language, "version": version, "text": text,
        }}));
        self.state.open(params);
    }

    /// Does what follows a change, as the background loop does. An edit in between ends it.
    fn settle(&self) -> Result<(), ReadError> {
        settle(&self.state)
    }
}

fn settle(state: &State) -> Result<(), ReadError> {
    state.find_launches()?;
    let (_, open) = state.take_dirty();
    for uri in open {
        let found = state.read_once(|snapshot| {
            let open = snapshot.document(&uri)?;
            Some((open.version, db::exact_diagnostics(&snapshot.db, open.file).clone()))
        })?;
        if let Some((version, found)) = found {
            state.set_exact(&uri, version, found);
        }
    }
    Ok(())
}

/// Everything that the server says, by what was asked.
fn answers(state: &State, places: &[(Uri, Vec<Position>)]) -> BTreeMap<String, String> {
    let mut said = BTreeMap::new();
    let paths = state.kernel_files();
    for (uri, places) in places {
        let of_document = state.read(|snapshot| of_document(state, snapshot, uri, places));
        said.extend(of_document.expect("no request panics"));
    }
    let of_workspace = state.read(|snapshot| {
        let mut said = BTreeMap::new();
        // Those that are equally good come in the order in which files were read.
        let mut symbols: Vec<String> = workspace::symbols(snapshot, &paths, "")
            .iter()
            .map(|symbol| serde_json::to_string(symbol).expect("symbols can be written"))
            .collect();
        symbols.sort();
        said.insert("symbols of the workspace".to_owned(), symbols.join("\n"));
        for path in &paths {
            let file = db::Db::file(&snapshot.db, path);
            let open = snapshot.document(&address(path));
            let (found, _) = diagnostics::whole(snapshot, file, open);
            said.insert(format!("diagnostics of {}", path.display()), pretty(&found));
        }
        said
    });
    said.extend(of_workspace.expect("no request panics"));
    let checked = state.check(
        &Request::default(),
        &paths,
        |snapshot, file| pretty(&diagnostics::whole(snapshot, file, None).0),
        |_| {},
    );
    for (path, found) in paths.iter().zip(checked.expect("no check panics")) {
        said.insert(format!("check of {}", path.display()), found);
    }
    said
}

fn of_document(
    state: &State,
    snapshot: &Snapshot,
    uri: &Uri,
    places: &[Position],
) -> BTreeMap<String, String> {
    let mut said = BTreeMap::new();
    let mut say = |what: &str, answer: String| {
        said.insert(format!("{what} of {}", uri.as_str()), answer);
    };
    let everything = Range { start: Position::default(), end: Position::new(u32::MAX, 0) };
    say("hints", pretty(&editing::inlay_hints(state, snapshot, uri, everything)));
    say("tokens", pretty(&editing::semantic_tokens(snapshot, uri, None)));
    say("symbols", pretty(&navigation::symbols(snapshot, uri)));
    say("folds", pretty(&navigation::folds(snapshot, uri)));
    say("lenses", pretty(&lenses::code_lenses(state, snapshot, uri)));
    say("kernels", pretty(&kernels::kernels(snapshot, uri)));
    for place in places {
        let at = json!({ "textDocument": { "uri": uri }, "position": place });
        let hover = hover::hover(state, snapshot, &typed(at.clone()));
        let definition = navigation::definition(state, snapshot, &typed(at));
        // Pages about the language lie in a folder that each server makes.
        let definition = definition.filter(|found| !found.uri.as_str().ends_with(".md"));
        let what = format!("hover at {}:{}", place.line, place.character);
        say(&what, format!("{}\n{}", pretty(&hover), pretty(&definition)));
    }
    let file = snapshot.document(uri).map(|open| open.file);
    for kernel in file.iter().flat_map(|file| db::kernels(&snapshot.db, *file)) {
        let file = file.expect("it has kernels");
        let lowered = db::lowered(&snapshot.db, file, kernel.at.index, kernel.active(&snapshot.db));
        let ir = lowered.ir.as_ref().map_or("no IR".to_owned(), Packed::get);
        say(&format!("IR of {}", kernel.name), ir);
    }
    said
}

fn pretty(value: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(value).expect("answers can be written")
}

/// Takes one step on the server.
fn take(running: &Running, step: &Step) {
    match step {
        Step::Open { path, text, version } => running.open(path, text, *version),
        Step::Close { path } => running.state.close(&address(path)),
        Step::Edit { path, version, changes } => {
            let changes = changes.iter().map(|change| {
                let (start, end) = (change.start, change.end);
                let range = Range { start, end };
                json!({ "range": range, "text": change.text })
            });
            let params: DidChangeTextDocumentParams = typed(json!({
                "textDocument": { "uri": address(path), "version": version },
                "contentChanges": changes.collect::<Vec<_>>(),
            }));
            running.state.change(params);
        }
        Step::FilesChanged { paths } => {
            let uris: Vec<Uri> = paths.iter().map(|path| address(path)).collect();
            running.state.files_changed(running.state.changed_files(uris.iter()));
        }
        Step::Configure { settings } => {
            running.state.configure(Some(settings.clone()));
        }
    }
}

/// Asserts that the server says what a fresh one says.
fn compare(running: &Running, typist: &Typist, files: &Arc<Memory>, random: &mut Random) {
    let fresh = Running::start(files, typist.settings());
    let mut places = Vec::new();
    for (path, text, version) in typist.open_documents() {
        fresh.open(path, text, version);
        places.push((address(path), typist::places(text, PLACES, random)));
    }
    running.settle().expect("nobody edits");
    fresh.settle().expect("nobody edits");
    let (kept, found) = (answers(&running.state, &places), answers(&fresh.state, &places));
    assert!(!found.is_empty(), "something is open or on the disk");
    let asked: Vec<&String> = kept.keys().collect();
    assert_eq!(asked, found.keys().collect::<Vec<_>>(), "after {}", typist.describe());
    for (what, answer) in &kept {
        let steps = typist.describe();
        assert_eq!(answer, &found[what], "{what}, after {steps}");
    }
}

fn number(variable: &str, default: usize) -> usize {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn whoever_asks_is_left_alone_when_large_answers_are_forgotten() {
    let running = Running::start(&Arc::default(), &json!({}));
    let snapshot = running.state.snapshot();
    // To forget is to wait until the snapshot is gone.
    running.state.forget_large();
    drop(snapshot);
    running.state.forget_large();
}

#[test]
fn after_any_steps_the_server_answers_as_a_fresh_one() {
    let seed = number("TILE_SEED", 1) as u64;
    let steps = number("TILE_STEPS", STEPS);
    let mut random = Random::new(seed);
    let files = Arc::new(Memory::default());
    let mut typist = Typist::new(Path::new(FOLDER), &files, &mut random);
    let running = Running::start(&files, typist.settings());
    for number in 1..=steps {
        // What was asked before the edit may be under way when it comes.
        let state = running.state.clone();
        let reader = match random.below(4) {
            0 => Some(std::thread::spawn(move || settle(&state))),
            _ => None,
        };
        for step in typist.step(&files, &mut random) {
            take(&running, &step);
        }
        if let Some(reader) = reader {
            // An edit may have overtaken it.
            let ended = reader.join().expect("no request panics");
            assert!(!matches!(ended, Err(ReadError::Panicked(_))), "{ended:?}");
        }
        if number % COMPARE_EVERY == 0 || number == steps {
            compare(&running, &typist, &files, &mut random);
        }
    }
}
