//! The state at one moment, and places in it as the protocol has them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ropey::Rope;
use rustc_hash::FxHashMap;
use tile_compiler::diagnostic::Diagnostic;
use tile_compiler::source::{FileId, FileRange, TextRange};
use tower_lsp::ls_types::{Location, Position, Range, Uri};

use super::State;
use crate::db::{Database, Db, SourceFile};
use crate::encoding::Encoding;
use crate::server::configuration::Configuration;
use crate::server::session::Tags;

/// The open documents as snapshots see them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Documents {
    pub(super) by_uri: FxHashMap<Uri, OpenFile>,
}

/// An open document in a snapshot.
#[derive(Debug, Clone)]
pub(crate) struct OpenFile {
    /// Its text.
    pub(crate) file: SourceFile,
    /// Its number.
    pub(crate) id: FileId,
    /// The editor's version of it.
    pub(crate) version: i32,
    /// Why its text is not looked into; the database has an empty one then.
    pub(crate) problem: Option<Arc<str>>,
    /// What is known of its specializations, perhaps from a moment ago.
    pub(crate) exact: Arc<[Diagnostic]>,
}

/// The state at one moment. Queries on it unwind when an edit arrives; see [`State::read`].
#[derive(Debug)]
pub(crate) struct Snapshot {
    /// The database.
    pub(crate) db: Database,
    /// The open documents.
    pub(crate) documents: Arc<Documents>,
    /// How positions count.
    pub(crate) encoding: Encoding,
    /// Tags of diagnostics that the client shows.
    pub(crate) tags: Tags,
}

impl Snapshot {
    /// An open document.
    pub(crate) fn document(&self, uri: &Uri) -> Option<&OpenFile> {
        self.documents.by_uri.get(uri)
    }

    /// What holds for an open document.
    pub(crate) fn configuration(&self, state: &State, open: &OpenFile) -> Arc<Configuration> {
        state.configuration(open.file.path(&self.db))
    }

    /// Paths of the files that are open.
    pub(crate) fn open_paths(&self) -> Vec<PathBuf> {
        self.open_files().map(|file| file.path(&self.db).to_path_buf()).collect()
    }

    /// Files that are open.
    pub(crate) fn open_files(&self) -> impl Iterator<Item = SourceFile> {
        self.documents.by_uri.values().map(|open| open.file)
    }

    /// The text of a file by lines.
    pub(crate) fn rope(&self, file: SourceFile) -> Rope {
        file.text(&self.db).as_ref().map(|text| text.rope().clone()).unwrap_or_default()
    }

    /// The byte offset of a position.
    pub(crate) fn offset(&self, file: SourceFile, position: Position) -> usize {
        self.encoding.offset(&self.rope(file), position)
    }

    /// The bytes of a range.
    pub(crate) fn text_range(&self, file: SourceFile, range: Range) -> TextRange {
        self.encoding.text_range(&self.rope(file), range)
    }

    /// The range of some bytes.
    pub(crate) fn range(&self, file: SourceFile, range: TextRange) -> Range {
        self.encoding.range(&self.rope(file), range)
    }

    /// The address of a file: the editor's own when it is open.
    pub(crate) fn uri(&self, id: FileId) -> Option<Uri> {
        let open = self.documents.by_uri.iter().find(|(_, open)| open.id == id);
        if let Some((uri, _)) = open {
            return Some(uri.clone());
        }
        let path: &Path = self.db.file_of(id)?.path(&self.db);
        Uri::from_file_path(path)
    }

    /// A place as the protocol has it.
    pub(crate) fn location(&self, at: FileRange) -> Option<Location> {
        let file = self.db.file_of(at.file)?;
        Some(Location { uri: self.uri(at.file)?, range: self.range(file, at.range) })
    }
}
