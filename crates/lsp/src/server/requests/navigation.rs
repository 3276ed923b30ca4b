//! Definitions, references, highlights, renames, outlines, folds and selections.

use std::collections::HashMap;
use std::path::PathBuf;

use tile_compiler::source::FileRange;
use tower_lsp::jsonrpc::Result;
use tower_lsp::ls_types::{
    DocumentHighlight, DocumentHighlightKind, DocumentSymbol, FoldingRange, FoldingRangeKind,
    Location, Position, Range, SelectionRange, SymbolKind, TextDocumentPositionParams, TextEdit,
    Uri, WorkspaceEdit,
};

use crate::db::{SourceFile, version};
use crate::ide::structure::{self, EntryKind};
use crate::ide::{hover, installed, navigation, rename};
use crate::server::requests::failed;
use crate::server::state::{Snapshot, State};

/// The open document and the byte offset that a request is about.
pub(crate) fn place(
    snapshot: &Snapshot,
    at: &TextDocumentPositionParams,
) -> Option<(SourceFile, usize)> {
    let file = snapshot.document(&at.text_document.uri)?.file;
    Some((file, snapshot.offset(file, at.position)))
}

/// `textDocument/definition`. A member of the language is defined in the installed Triton; where
/// there is none, a page with its documentation stands in for it.
pub(crate) fn definition(
    state: &State,
    snapshot: &Snapshot,
    at: &TextDocumentPositionParams,
) -> Option<Location> {
    let (file, offset) = place(snapshot, at)?;
    let db = &snapshot.db;
    if let Some(defined) = navigation::definition(db, file, offset) {
        return snapshot.location(defined);
    }
    let builtin = navigation::builtin_at(db, file, offset)?;
    if let Some(defined) = installed::definition(db, file, builtin) {
        return snapshot.location(defined);
    }
    let text = hover::about_builtin(builtin, None, version(db, file));
    let page = PathBuf::from(format!("{}.md", builtin.display_name()));
    match state.write_view(&page, &text) {
        Ok(path) => Some(Location { uri: Uri::from_file_path(path)?, range: Range::default() }),
        Err(error) => {
            tracing::warn!(%error, "a page of documentation cannot be written");
            None
        }
    }
}

fn places(state: &State, snapshot: &Snapshot, file: SourceFile, offset: usize) -> Vec<FileRange> {
    let paths = state.workspace_files(snapshot.open_paths());
    navigation::references(&snapshot.db, file, offset, &paths)
}

/// `textDocument/typeDefinition`.
pub(crate) fn type_definition(
    snapshot: &Snapshot,
    at: &TextDocumentPositionParams,
) -> Option<Location> {
    let (file, offset) = place(snapshot, at)?;
    snapshot.location(navigation::type_definition(&snapshot.db, file, offset)?)
}

/// `textDocument/references`.
pub(crate) fn references(
    state: &State,
    snapshot: &Snapshot,
    at: &TextDocumentPositionParams,
    declaration: bool,
) -> Vec<Location> {
    let Some((file, offset)) = place(snapshot, at) else { return Vec::new() };
    let defined = navigation::definition(&snapshot.db, file, offset);
    let places = places(state, snapshot, file, offset).into_iter();
    let wanted = places.filter(|place| declaration || Some(*place) != defined);
    wanted.filter_map(|place| snapshot.location(place)).collect()
}

/// `textDocument/documentHighlight`.
pub(crate) fn highlights(
    snapshot: &Snapshot,
    at: &TextDocumentPositionParams,
) -> Vec<DocumentHighlight> {
    let Some((file, offset)) = place(snapshot, at) else { return Vec::new() };
    let found = navigation::highlights(&snapshot.db, file, offset).into_iter();
    found
        .map(|(range, binds)| DocumentHighlight {
            range: snapshot.range(file, range),
            kind: Some(if binds {
                DocumentHighlightKind::WRITE
            } else {
                DocumentHighlightKind::READ
            }),
        })
        .collect()
}

/// `textDocument/prepareRename`.
pub(crate) fn prepare_rename(
    snapshot: &Snapshot,
    at: &TextDocumentPositionParams,
) -> Result<Option<Range>> {
    let Some((file, offset)) = place(snapshot, at) else { return Ok(None) };
    match rename::renamable(&snapshot.db, file, offset) {
        Ok(range) => Ok(Some(snapshot.range(file, range))),
        Err(message) => Err(failed(message)),
    }
}

/// `textDocument/rename`.
#[allow(clippy::mutable_key_type, reason = "the protocol's type; nothing changes its keys")]
pub(crate) fn rename(
    state: &State,
    snapshot: &Snapshot,
    at: &TextDocumentPositionParams,
    new_name: &str,
) -> Result<Option<WorkspaceEdit>> {
    if !rename::is_name(new_name) {
        return Err(failed(format!("`{new_name}` is not a name")));
    }
    let Some((file, offset)) = place(snapshot, at) else { return Ok(None) };
    rename::renamable(&snapshot.db, file, offset).map_err(failed)?;
    let places = places(state, snapshot, file, offset);
    if let Some(message) = rename::taken(&snapshot.db, file, offset, new_name, &places) {
        return Err(failed(message));
    }
    let mut changes: HashMap<Uri, Vec<TextEdit>> = HashMap::new();
    for place in places {
        if let Some(Location { uri, range }) = snapshot.location(place) {
            let edit = TextEdit { range, new_text: new_name.to_owned() };
            changes.entry(uri).or_default().push(edit);
        }
    }
    Ok(Some(WorkspaceEdit { changes: Some(changes), ..WorkspaceEdit::default() }))
}

/// `textDocument/documentSymbol`.
#[allow(deprecated, reason = "the protocol's type still has the member")]
pub(crate) fn symbols(snapshot: &Snapshot, uri: &Uri) -> Vec<DocumentSymbol> {
    let Some(open) = snapshot.document(uri) else { return Vec::new() };
    let entries = structure::outline(&snapshot.db, open.file).into_iter();
    entries
        .map(|entry| DocumentSymbol {
            name: entry.name,
            detail: entry.detail,
            kind: match entry.kind {
                EntryKind::Function => SymbolKind::FUNCTION,
                EntryKind::Class => SymbolKind::CLASS,
                EntryKind::Constant => SymbolKind::CONSTANT,
                EntryKind::Scenario => SymbolKind::EVENT,
            },
            tags: None,
            deprecated: None,
            range: snapshot.range(open.file, entry.range),
            selection_range: snapshot.range(open.file, entry.name_range),
            children: None,
        })
        .collect()
}

/// `textDocument/foldingRange`.
pub(crate) fn folds(snapshot: &Snapshot, uri: &Uri) -> Vec<FoldingRange> {
    let Some(open) = snapshot.document(uri) else { return Vec::new() };
    let folds = structure::folds(&snapshot.db, open.file).into_iter();
    let lines = folds.map(|fold| (snapshot.range(open.file, fold.range), fold.comment));
    lines
        .filter(|(range, _)| range.start.line < range.end.line)
        .map(|(range, comment)| FoldingRange {
            start_line: range.start.line,
            end_line: range.end.line,
            kind: Some(if comment { FoldingRangeKind::Comment } else { FoldingRangeKind::Region }),
            ..FoldingRange::default()
        })
        .collect()
}

/// `textDocument/selectionRange`.
pub(crate) fn selections(
    snapshot: &Snapshot,
    uri: &Uri,
    positions: &[Position],
) -> Vec<SelectionRange> {
    let Some(open) = snapshot.document(uri) else { return Vec::new() };
    let selection = |position: &Position| {
        let offset = snapshot.offset(open.file, *position);
        let ranges = structure::selections(&snapshot.db, open.file, offset);
        let mut outer: Option<SelectionRange> = None;
        for range in ranges.into_iter().rev() {
            let range = snapshot.range(open.file, range);
            outer = Some(SelectionRange { range, parent: outer.map(Box::new) });
        }
        let here = Range { start: *position, end: *position };
        outer.unwrap_or(SelectionRange { range: here, parent: None })
    };
    positions.iter().map(selection).collect()
}
