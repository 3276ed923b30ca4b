//! `textDocument/hover`.

use tower_lsp::ls_types::{Hover, HoverContents, HoverParams, MarkupContent, MarkupKind};

use crate::ide;
use crate::ide::hover::Known;
use crate::server::state::{Snapshot, State};

/// Answers a hover.
pub(crate) fn hover(state: &State, snapshot: &Snapshot, params: &HoverParams) -> Option<Hover> {
    let at = &params.text_document_position_params;
    let file = snapshot.document(&at.text_document.uri)?.file;
    let offset = snapshot.offset(file, at.position);
    let uri = &at.text_document.uri;
    let known = Known {
        status: &|key| state.compiler()?.status(key),
        measured: &|key| state.compiler().map(|found| found.measured(key)).unwrap_or_default(),
        runs: &|kernel| state.last_run(uri, kernel),
    };
    let info = ide::hover::hover(&snapshot.db, file, offset, known)?;
    let markup = MarkupContent { kind: MarkupKind::Markdown, value: info.markdown };
    Some(Hover {
        contents: HoverContents::Markup(markup),
        range: Some(snapshot.range(file, info.range)),
    })
}
