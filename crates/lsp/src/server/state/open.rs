//! A document that the client has open: its text, edited as the client edits it.

use std::path::PathBuf;
use std::sync::Arc;

use ropey::Rope;
use tile_compiler::diagnostic::Diagnostic;
use tile_compiler::syntax::{self, Parse};
use tower_lsp::ls_types::{TextDocumentContentChangeEvent, Uri};

use crate::cell;
use crate::db::SourceText;
use crate::document::{Document, Edit};
use crate::encoding::Encoding;
use crate::files::{self, MAX_FILE_BYTES};

/// Beyond this many changes in one message, the text is parsed anew once instead of once a change.
const MAX_INCREMENTAL_CHANGES: usize = 8;

/// An open document.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) document: Document,
    /// What the database has of it.
    pub(super) text: SourceText,
    pub(super) path: PathBuf,
    /// Why the text is not looked into.
    pub(super) problem: Option<Arc<str>>,
    /// What is known of its specializations; moved along by edits until it is found anew.
    pub(super) exact: Arc<[Diagnostic]>,
}

impl Open {
    /// Edits the text as the client did.
    pub(super) fn apply(&mut self, changes: &[TextDocumentContentChangeEvent], encoding: Encoding) {
        // What is IPython's own in a cell depends on whole lines.
        let incremental = changes.len() <= MAX_INCREMENTAL_CHANGES
            && self.problem.is_none()
            && !cell::is_cell(&self.path);
        let mut parse = self.text.parse();
        for change in changes {
            let edit = self.document.apply(change, encoding);
            self.move_exact(edit.as_ref());
            match edit.filter(|_| incremental && !self.is_too_large()) {
                Some(edit) => {
                    let edit = syntax::Edit { old: edit.replaced, new_len: edit.inserted };
                    parse = parse.edit(&edit, self.document.text.to_string());
                }
                None if incremental => parse = self.parse_anew(),
                None => {}
            }
        }
        if !incremental {
            parse = self.parse_anew();
        }
        self.take(parse);
    }

    /// Has the database look into the text, of which this is the tree.
    pub(super) fn take(&mut self, parse: Parse) {
        let rope = match self.problem {
            Some(_) => Rope::new(),
            None => self.document.text.clone(),
        };
        self.text = SourceText::parsed(parse, rope);
    }

    fn is_too_large(&self) -> bool {
        self.document.text.len_bytes() as u64 > MAX_FILE_BYTES
    }

    /// Parses the whole text; one that is too large counts as empty.
    pub(super) fn parse_anew(&mut self) -> Parse {
        if self.is_too_large() {
            let problem = files::too_large(self.document.text.len_bytes() as u64);
            self.problem = Some(problem.into());
            Parse::new("")
        } else {
            self.problem = None;
            let text = self.document.text.to_string();
            Parse::new(if cell::is_cell(&self.path) { cell::without_magics(&text) } else { text })
        }
    }

    /// Moves what is known along with the text, and forgets what the edit touches.
    fn move_exact(&mut self, edit: Option<&Edit>) {
        if self.exact.is_empty() {
            return;
        }
        self.exact = match edit {
            Some(edit) => self.exact.iter().filter_map(|found| moved(found, edit)).collect(),
            None => Arc::default(),
        };
    }
}

/// A finding after an edit elsewhere. Its fixes and further places stay behind.
fn moved(found: &Diagnostic, edit: &Edit) -> Option<Diagnostic> {
    let mut found = found.clone();
    found.primary.range = edit.moved(found.primary.range)?;
    found.fixes.clear();
    found.related.clear();
    Some(found)
}

/// The path of a document. A text that is in no file has its address as its path, with the
/// extension of its language.
pub(super) fn path_of(uri: &Uri, language: &str) -> PathBuf {
    let is_file = uri.as_str().starts_with("file:");
    if let Some(path) = uri.to_file_path().filter(|_| is_file) {
        return path.into_owned();
    }
    let extension = if language == "tile" { ".tile" } else { "" };
    PathBuf::from(format!("{}{extension}", uri.as_str()))
}
