//! `textDocument/hover`.

use tower_lsp::ls_types::{Hover, HoverContents, HoverParams, MarkupContent, MarkupKind};

use crate::ide;
use crate::server::state::{Snapshot, State};

/// Answers a hover.
pub(crate) fn hover(state: &State, snapshot: &Snapshot, params: &HoverParams) -> Option<Hover> {
    let at = &params.text_document_position_params;
    let file = snapshot.document(&at.text_document.uri)?.file;
    let offset = snapshot.offset(file, at.position);
    let status = |key: &_| state.compiler()?.status(key);
    let info = ide::hover::hover(&snapshot.db, file, offset, &status)?;
    let markup = MarkupContent { kind: MarkupKind::Markdown, value: info.markdown };
    Some(Hover {
        contents: HoverContents::Markup(markup),
        range: Some(snapshot.range(file, info.range)),
    })
}
