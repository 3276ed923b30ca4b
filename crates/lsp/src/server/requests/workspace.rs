//! Answers about the whole workspace: symbols, the hierarchy of calls, diagnostics of every file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use tile_compiler::source::{FileRange, TextRange};
use tokio::sync::mpsc::unbounded_channel;
use tower_lsp::jsonrpc::Result;
use tower_lsp::ls_types::{
    CallHierarchyIncomingCall, CallHierarchyItem, CallHierarchyOutgoingCall, DocumentLink,
    FileRename, FullDocumentDiagnosticReport, Location, ProgressToken, Range, SymbolInformation,
    SymbolKind, TextDocumentPositionParams, UnchangedDocumentDiagnosticReport, Uri,
    WorkspaceDiagnosticParams, WorkspaceDiagnosticReport, WorkspaceDocumentDiagnosticReport,
    WorkspaceEdit, WorkspaceFullDocumentDiagnosticReport,
    WorkspaceUnchangedDocumentDiagnosticReport,
};

use crate::db::{Db, SourceFile};
use crate::ide::moves::{self, Moves};
use crate::ide::{structure, workspace};
use crate::server::requests::editing::workspace_edit;
use crate::server::requests::navigation::place;
use crate::server::settings::MovedImports;
use crate::server::state::{Request, Snapshot, State};
use crate::server::{blocking, diagnostics};

/// `workspace/symbol`.
#[allow(deprecated, reason = "the protocol's type still has the member")]
pub(crate) fn symbols(
    snapshot: &Snapshot,
    paths: &[PathBuf],
    query: &str,
) -> Vec<SymbolInformation> {
    let found = workspace::symbols(&snapshot.db, paths, query).into_iter();
    found
        .filter_map(|found| {
            Some(SymbolInformation {
                name: found.name,
                kind: SymbolKind::FUNCTION,
                tags: None,
                deprecated: None,
                location: snapshot.location(found.at)?,
                container_name: Some(found.container),
            })
        })
        .collect()
}

/// `textDocument/prepareCallHierarchy`.
pub(crate) fn prepare_calls(
    snapshot: &Snapshot,
    at: &TextDocumentPositionParams,
) -> Option<Vec<CallHierarchyItem>> {
    let (file, offset) = place(snapshot, at)?;
    let node = workspace::node_at(&snapshot.db, file, offset)?;
    Some(vec![call_item(snapshot, node)?])
}

fn call_item(snapshot: &Snapshot, node: workspace::Node) -> Option<CallHierarchyItem> {
    let Location { uri, range } = snapshot.location(node.at)?;
    let selection_range = snapshot.location(node.name_at)?.range;
    let kind = if node.detail == "scenario" { SymbolKind::EVENT } else { SymbolKind::FUNCTION };
    Some(CallHierarchyItem {
        name: node.name,
        kind,
        tags: None,
        detail: Some(node.detail.to_owned()),
        uri,
        range,
        selection_range,
        data: None,
    })
}

/// Where the name of an item of the hierarchy stands now.
fn name_at(snapshot: &Snapshot, item: &CallHierarchyItem) -> Option<FileRange> {
    let file = match snapshot.document(&item.uri) {
        Some(open) => open.file,
        None => snapshot.db.file(&item.uri.to_file_path()?),
    };
    let range = snapshot.text_range(file, item.selection_range);
    Some(FileRange { file: file.id(&snapshot.db), range })
}

/// `callHierarchy/incomingCalls`.
pub(crate) fn incoming(
    state: &State,
    snapshot: &Snapshot,
    item: &CallHierarchyItem,
) -> Vec<CallHierarchyIncomingCall> {
    let Some(at) = name_at(snapshot, item) else { return Vec::new() };
    let paths = state.workspace_files(snapshot.open_paths());
    let calls = workspace::incoming(&snapshot.db, at, &paths).into_iter();
    calls
        .filter_map(|(node, places)| {
            let file = snapshot.db.file_of(node.at.file)?;
            let from_ranges = ranges(snapshot, file, &places);
            Some(CallHierarchyIncomingCall { from: call_item(snapshot, node)?, from_ranges })
        })
        .collect()
}

/// `callHierarchy/outgoingCalls`.
pub(crate) fn outgoing(
    snapshot: &Snapshot,
    item: &CallHierarchyItem,
) -> Vec<CallHierarchyOutgoingCall> {
    let Some(at) = name_at(snapshot, item) else { return Vec::new() };
    let Some(file) = snapshot.db.file_of(at.file) else { return Vec::new() };
    let calls = workspace::outgoing(&snapshot.db, at).into_iter();
    calls
        .filter_map(|(node, places)| {
            let from_ranges = ranges(snapshot, file, &places);
            Some(CallHierarchyOutgoingCall { to: call_item(snapshot, node)?, from_ranges })
        })
        .collect()
}

fn ranges(snapshot: &Snapshot, file: SourceFile, places: &[TextRange]) -> Vec<Range> {
    places.iter().map(|place| snapshot.range(file, *place)).collect()
}

/// `textDocument/documentLink`: files that scenarios load.
pub(crate) fn links(snapshot: &Snapshot, uri: &Uri) -> Vec<DocumentLink> {
    let Some(open) = snapshot.document(uri) else { return Vec::new() };
    let folder = open.file.path(&snapshot.db).parent();
    let found = structure::loaded_files(&snapshot.db, open.file).into_iter();
    found
        .filter_map(|(range, path)| {
            Some(DocumentLink {
                range: snapshot.range(open.file, range),
                target: Some(Uri::from_file_path(folder?.join(path))?),
                tooltip: None,
                data: None,
            })
        })
        .collect()
}

/// `workspace/willRenameFiles`: the edits that keep imports right.
pub(crate) fn renamed_files(
    state: &State,
    snapshot: &Snapshot,
    renames: &[FileRename],
) -> Option<WorkspaceEdit> {
    let db = &snapshot.db;
    let path = |uri: &str| Some(uri.parse::<Uri>().ok()?.to_file_path()?.into_owned());
    let wanted = |path: &Path| match state.configuration(path).settings.moved_imports {
        MovedImports::Tile => path.extension().is_some_and(|extension| extension == "tile"),
        MovedImports::All => true,
        MovedImports::Off => false,
    };
    let mut moves = Moves::default();
    for rename in renames {
        if let (Some(old), Some(new)) = (path(&rename.old_uri), path(&rename.new_uri)) {
            moves.add(db, (&old, &new), wanted);
        }
    }
    if moves.are_none_of_ours() {
        return None;
    }
    let paths = state.workspace_files(snapshot.open_paths());
    let files = moves::concerned(db, &paths, &moves);
    let edits: Vec<_> =
        files.into_iter().flat_map(|file| moves::imports(db, file, &moves)).collect();
    (!edits.is_empty()).then(|| workspace_edit(snapshot, &edits))
}

/// `workspace/diagnostic`. Files that are open are looked into as [`diagnostics::pull`] does, the
/// others as they were when the check began; see [`State::check`].
pub(crate) async fn diagnose(
    state: &Arc<State>,
    request: &Request,
    params: WorkspaceDiagnosticParams,
) -> Result<WorkspaceDiagnosticReport> {
    let token = params.work_done_progress_params.work_done_token;
    let progress = Progress::begin(state, token).await;
    let known: Vec<(Uri, String)> =
        params.previous_result_ids.into_iter().map(|known| (known.uri, known.value)).collect();
    let (done, mut news) = unbounded_channel();
    let request = request.clone();
    let work = blocking(state, move |state| {
        let tell = |percentage: usize| {
            // Nobody listens to a request that is withdrawn.
            let _ = done.send(percentage);
        };
        reports(state, &request, &known, tell)
    });
    let told = async {
        while let Some(percentage) = news.recv().await {
            progress.report(state, percentage).await;
        }
    };
    let (items, ()) = tokio::join!(work, told);
    progress.end(state).await;
    Ok(WorkspaceDiagnosticReport { items: items? })
}

/// What there is to tell of the files that settings want checked, and those that are open; `tell`
/// hears the percentage that is done.
fn reports(
    state: &State,
    request: &Request,
    known: &[(Uri, String)],
    tell: impl Fn(usize),
) -> Result<Vec<WorkspaceDocumentDiagnosticReport>> {
    let wanted = |path: &Path| state.configuration(path).settings.workspace_diagnostics;
    let mut folders = state.folders();
    folders.push(PathBuf::new());
    let mut closed = match folders.iter().any(|folder| wanted(&folder.join("file"))) {
        true => state.kernel_files(),
        false => Vec::new(),
    };
    let open = state.snapshot().open_paths();
    closed.retain(|path| !open.contains(path) && wanted(path));
    let found = state.read_for(request, |snapshot| {
        let files = snapshot.open_files();
        files.filter_map(|file| report(snapshot, file, known)).collect::<Vec<_>>()
    });
    let mut items = found?;
    let report = |snapshot: &Snapshot, file| report(snapshot, file, known);
    let found = state.check(request, &closed, report, |done| tell(done * 100 / closed.len()));
    items.extend(found?.into_iter().flatten());
    let is_gone = |uri: &&Uri| !items.iter().any(|item| address(item) == *uri);
    let gone: Vec<Uri> = known.iter().map(|(uri, _)| uri).filter(is_gone).cloned().collect();
    items.extend(
        gone.into_iter().map(|uri| full(uri, None, FullDocumentDiagnosticReport::default())),
    );
    Ok(items)
}

/// The findings in one file; nothing for one without findings that the client knows nothing of.
fn report(
    snapshot: &Snapshot,
    file: SourceFile,
    known: &[(Uri, String)],
) -> Option<WorkspaceDocumentDiagnosticReport> {
    let uri = snapshot.uri(file.id(&snapshot.db))?;
    let open = snapshot.document(&uri);
    let version = open.map(|open| i64::from(open.version));
    let (items, result_id) = diagnostics::whole(snapshot, file, open);
    let previous = known.iter().find(|(known, _)| *known == uri).map(|(_, id)| id);
    if previous == Some(&result_id) {
        return Some(WorkspaceDocumentDiagnosticReport::Unchanged(
            WorkspaceUnchangedDocumentDiagnosticReport {
                uri,
                version,
                unchanged_document_diagnostic_report: UnchangedDocumentDiagnosticReport {
                    result_id,
                },
            },
        ));
    }
    if items.is_empty() && previous.is_none() {
        return None;
    }
    let report = FullDocumentDiagnosticReport { result_id: Some(result_id), items };
    Some(full(uri, version, report))
}

fn full(
    uri: Uri,
    version: Option<i64>,
    full_document_diagnostic_report: FullDocumentDiagnosticReport,
) -> WorkspaceDocumentDiagnosticReport {
    WorkspaceDocumentDiagnosticReport::Full(WorkspaceFullDocumentDiagnosticReport {
        uri,
        version,
        full_document_diagnostic_report,
    })
}

/// The document that a report is about.
fn address(report: &WorkspaceDocumentDiagnosticReport) -> &Uri {
    match report {
        WorkspaceDocumentDiagnosticReport::Full(report) => &report.uri,
        WorkspaceDocumentDiagnosticReport::Unchanged(report) => &report.uri,
    }
}

/// Progress that the client asked to be told of.
struct Progress(Option<ProgressToken>);

impl Progress {
    async fn begin(state: &State, token: Option<ProgressToken>) -> Progress {
        let progress = Progress(token);
        let title = "Checking kernels";
        progress.send(state, json!({ "kind": "begin", "title": title, "percentage": 0 })).await;
        progress
    }

    async fn report(&self, state: &State, percentage: usize) {
        self.send(state, json!({ "kind": "report", "percentage": percentage })).await;
    }

    async fn end(self, state: &State) {
        self.send(state, json!({ "kind": "end" })).await;
    }

    async fn send(&self, state: &State, value: Value) {
        use tower_lsp::ls_types::{ProgressParams, ProgressParamsValue, notification};
        let Some(token) = self.0.clone() else { return };
        let Ok(value) = serde_json::from_value(value) else { return };
        let params = ProgressParams { token, value: ProgressParamsValue::WorkDone(value) };
        state.client.send_notification::<notification::Progress>(params).await;
    }
}
