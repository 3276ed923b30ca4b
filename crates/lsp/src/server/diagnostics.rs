//! Diagnostics, pushed as documents change or pulled by the client.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use tower_lsp::ls_types::{
    self as lsp, DocumentDiagnosticParams, DocumentDiagnosticReport,
    DocumentDiagnosticReportResult, FullDocumentDiagnosticReport,
    RelatedFullDocumentDiagnosticReport, RelatedUnchangedDocumentDiagnosticReport,
    UnchangedDocumentDiagnosticReport, Uri,
};

use crate::db::SourceFile;
use crate::ide;
use crate::server::state::{Snapshot, State};
use crate::server::to_proto;

/// The findings in a file as the protocol has them.
fn of_file(snapshot: &Snapshot, file: SourceFile) -> Vec<lsp::Diagnostic> {
    ide::diagnostics::diagnostics(&snapshot.db, file)
        .iter()
        .map(|diagnostic| to_proto::diagnostic(snapshot, file, diagnostic))
        .collect()
}

/// Answers `textDocument/diagnostic`.
pub(crate) fn pull(
    snapshot: &Snapshot,
    params: &DocumentDiagnosticParams,
) -> DocumentDiagnosticReportResult {
    let file = snapshot.document(&params.text_document.uri).map(|open| open.file);
    let items = file.map(|file| of_file(snapshot, file)).unwrap_or_default();
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
        format!("{:?}{:?}", item.code, item.severity).hash(&mut hasher);
    }
    hasher.finish()
}

/// What the client was told, by document: of which version, and what.
type Published = FxHashMap<Uri, (i32, Vec<lsp::Diagnostic>)>;

/// Publishes diagnostics of documents as they change, until the server ends. The newest text
/// wins: a computation that an edit overtakes starts again.
pub(crate) async fn push_loop(state: Arc<State>) {
    let mut published = Published::default();
    loop {
        state.changed.notified().await;
        let Some(session) = state.session() else { continue };
        if session.client.pulls_diagnostics {
            refresh_others(&state).await;
            continue;
        }
        let dirty = state.take_dirty();
        // What was edited last comes first, then whatever else the edits touch.
        for uri in dirty.into_iter().rev() {
            publish(&state, &mut published, uri).await;
        }
        for uri in open_documents(&state).await {
            publish(&state, &mut published, uri).await;
        }
    }
}

/// A client that pulls asks again for the document it edits; documents that depend on it change
/// without its knowledge.
async fn refresh_others(state: &Arc<State>) {
    let dirty = state.take_dirty();
    let refreshes = state.session().is_some_and(|session| session.client.refreshes_diagnostics);
    let others = open_documents(state).await.iter().any(|uri| !dirty.contains(uri));
    if refreshes && (others || dirty.len() > 1) {
        let client = state.client.clone();
        tokio::spawn(async move { client.workspace_diagnostic_refresh().await });
    }
}

async fn open_documents(state: &Arc<State>) -> Vec<Uri> {
    let snapshot = state.snapshot();
    snapshot.open_documents().map(|(uri, _)| uri.clone()).collect()
}

async fn publish(state: &Arc<State>, published: &mut Published, uri: Uri) {
    let reader = state.clone();
    let address = uri.clone();
    let found = tokio::task::spawn_blocking(move || {
        reader.read(|snapshot| {
            let open = snapshot.document(&address)?;
            Some((of_file(snapshot, open.file), open.version))
        })
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
