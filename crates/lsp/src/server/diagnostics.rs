//! Diagnostics, pushed as documents change or pulled by the client.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use tile_compiler::diagnostic::{Code, Diagnostic};
use tile_compiler::source::{FileId, FileRange, TextRange};
use tower_lsp::ls_types::{
    self as lsp, DocumentDiagnosticParams, DocumentDiagnosticReport,
    DocumentDiagnosticReportResult, FullDocumentDiagnosticReport,
    RelatedFullDocumentDiagnosticReport, RelatedUnchangedDocumentDiagnosticReport,
    UnchangedDocumentDiagnosticReport, Uri,
};

use crate::cell;
use crate::db::{self, Db, SourceFile};
use crate::ide;
use crate::server::state::{OpenFile, Snapshot, State};
use crate::server::to_proto;

/// The findings in a file as the protocol has them.
fn of_file(snapshot: &Snapshot, open: &OpenFile) -> Vec<lsp::Diagnostic> {
    let file = open.file;
    let mut found = ide::diagnostics::of_open(&snapshot.db, file, &open.exact);
    found.retain(|found| snapshot.tags.shows(found.code));
    if cell::is_cell(file.path(&snapshot.db)) {
        // Other cells bind and read names as well.
        found.retain(|found| !matches!(found.code, Code::UndefinedName | Code::Unused));
    }
    found.extend(open.problem.as_ref().map(|problem| unreadable(open.id, problem)));
    found.iter().map(|diagnostic| to_proto::diagnostic(snapshot, file, diagnostic)).collect()
}

/// The finding in a file that cannot be read as source.
fn unreadable(file: FileId, problem: &str) -> Diagnostic {
    let start = FileRange { file, range: TextRange::default() };
    Diagnostic::new(Code::Unreadable, start, problem)
}

/// The findings in a file, open or not, with those under its specializations, and their result
/// id.
pub(crate) fn whole(
    snapshot: &Snapshot,
    file: SourceFile,
    open: Option<&OpenFile>,
) -> (Vec<lsp::Diagnostic>, String) {
    let items = match open {
        Some(open) => of_file(snapshot, open),
        None => {
            let exact = db::exact_diagnostics(&snapshot.db, file);
            let mut found = ide::diagnostics::diagnostics(&snapshot.db, file, exact);
            if file.text(&snapshot.db).is_none() {
                let problem = snapshot.db.files().system().problem(file.path(&snapshot.db));
                found.extend(problem.map(|problem| unreadable(file.id(&snapshot.db), &problem)));
            }
            found.iter().map(|found| to_proto::diagnostic(snapshot, file, found)).collect()
        }
    };
    let result_id = format!("{:016x}", fingerprint(&items));
    (items, result_id)
}

/// Answers `textDocument/diagnostic`.
pub(crate) fn pull(
    snapshot: &Snapshot,
    params: &DocumentDiagnosticParams,
) -> DocumentDiagnosticReportResult {
    let open = snapshot.document(&params.text_document.uri);
    let items = open.map(|open| of_file(snapshot, open)).unwrap_or_default();
    let result_id = format!("{:016x}", fingerprint(&items));
    let report = if params.previous_result_id.as_deref() == Some(result_id.as_str()) {
        DocumentDiagnosticReport::Unchanged(RelatedUnchangedDocumentDiagnosticReport {
            related_documents: None,
            unchanged_document_diagnostic_report: UnchangedDocumentDiagnosticReport { result_id },
        })
    } else {
        let result_id = Some(result_id);
        DocumentDiagnosticReport::Full(RelatedFullDocumentDiagnosticReport {
            related_documents: None,
            full_document_diagnostic_report: FullDocumentDiagnosticReport { result_id, items },
        })
    };
    DocumentDiagnosticReportResult::Report(report)
}

fn fingerprint(items: &[lsp::Diagnostic]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for item in items {
        let range = (item.range.start, item.range.end);
        (range.0.line, range.0.character, range.1.line, range.1.character).hash(&mut hasher);
        item.message.hash(&mut hasher);
        format!("{:?}{:?}{:?}", item.code, item.severity, item.tags).hash(&mut hasher);
    }
    hasher.finish()
}

/// What the client was told, by document: of which version, and what.
pub(crate) type Published = FxHashMap<Uri, (i32, Vec<lsp::Diagnostic>)>;

/// Publishes the findings in documents that changed: what was edited last first, then whatever
/// else the edits touch. The newest text wins: a computation that an edit overtakes starts again.
pub(crate) async fn publish_changed(
    state: &Arc<State>,
    published: &mut Published,
    dirty: Vec<Uri>,
    open: &[Uri],
) {
    for uri in dirty.iter().rev() {
        publish(state, published, uri.clone()).await;
    }
    for uri in open.iter().filter(|uri| !dirty.contains(uri)) {
        publish(state, published, uri.clone()).await;
    }
}

/// A client that pulls asks again for the document it edits; documents that depend on it change
/// without its knowledge.
pub(crate) fn refresh_others(state: &State, dirty: &[Uri], open: &[Uri]) {
    if dirty.len() > 1 || open.iter().any(|uri| !dirty.contains(uri)) {
        refresh(state);
    }
}

/// Asks a client that pulls to pull again.
pub(crate) fn refresh(state: &State) {
    if state.session().is_some_and(|session| session.client.refreshes_diagnostics) {
        let client = state.client.clone();
        tokio::spawn(async move { client.workspace_diagnostic_refresh().await });
    }
}

/// Publishes the findings in a document, if the client was told otherwise.
pub(crate) async fn publish(state: &Arc<State>, published: &mut Published, uri: Uri) {
    let reader = state.clone();
    let address = uri.clone();
    let found = tokio::task::spawn_blocking(move || {
        let found = reader.read(|snapshot| {
            let open = snapshot.document(&address)?;
            Some((of_file(snapshot, open), open.version))
        });
        reader.forget_large();
        found
    });
    let Ok(Ok(found)) = found.await else { return };
    let Some((items, version)) = found else {
        // Closed: nothing is shown for it any more.
        if published.remove(&uri).is_some_and(|(_, items)| !items.is_empty()) {
            state.client.publish_diagnostics(uri, Vec::new(), None).await;
        }
        return;
    };
    let news = (version, items);
    if published.get(&uri) != Some(&news) {
        published.insert(uri.clone(), news.clone());
        state.client.publish_diagnostics(uri, news.1, Some(version)).await;
    }
}
