//! Texts in the forms that queries read, and which syntax trees are at hand.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock, Weak};

use ropey::Rope;
use tile_compiler::hir::{self, Module};
use tile_compiler::source::FileId;
use tile_compiler::syntax::Parse;

use super::{Contents, lock};

/// A text in the forms that queries read. Cheap to clone; the forms are made when first asked for.
#[derive(Debug, Clone)]
pub(crate) struct SourceText {
    text: Arc<str>,
    forms: Arc<Forms>,
}

#[derive(Debug, Default)]
struct Forms {
    /// The syntax tree while it is at hand; see [`Trees`].
    tree: Mutex<Option<Parse>>,
    rope: OnceLock<Rope>,
    lowered: OnceLock<LoweredText>,
    /// An older text of the file, of which much may be the same.
    before: Mutex<Option<(Parse, LoweredText)>>,
}

/// What lowering a text gave.
#[derive(Debug, Clone)]
struct LoweredText {
    module: Arc<Module>,
    /// Whether there are no syntax errors.
    is_clean: bool,
}

impl SourceText {
    /// A text of which nothing is known yet.
    pub(crate) fn new(text: impl Into<Arc<str>>) -> SourceText {
        SourceText { text: text.into(), forms: Arc::default() }
    }

    /// A text that was parsed already.
    pub(crate) fn parsed(parse: Parse, rope: Rope) -> SourceText {
        let text = parse.text().clone();
        let (tree, rope) = (Mutex::new(Some(parse)), OnceLock::from(rope));
        SourceText { text, forms: Arc::new(Forms { tree, rope, ..Forms::default() }) }
    }

    /// Takes over from an older text what helps to look into this one.
    pub(super) fn follow(&self, older: &SourceText) {
        let lowered = older.forms.lowered.get().cloned();
        let older = match (older.known_tree(), lowered) {
            (Some(parse), Some(lowered)) => Some((parse, lowered)),
            _ => lock(&older.forms.before).take(),
        };
        *lock(&self.forms.before) = older;
    }

    /// The HIR, and the syntax errors as those of `file`.
    pub(super) fn lower(&self, file: FileId) -> Contents {
        let Some(parse) = &self.known_tree() else {
            let parse = Parse::new(self.text.clone());
            return Contents {
                module: Arc::new(hir::lower(&parse)),
                errors: parse.diagnostics(file),
            };
        };
        let before = lock(&self.forms.before).take();
        let before = before.map(|(older, lowered)| (parse.kept_since(&older), lowered));
        let module = match (self.forms.lowered.get(), &before) {
            (Some(known), _) => known.module.clone(),
            (None, Some((kept, older))) => Arc::new(hir::lower_again(parse, &older.module, kept)),
            (None, None) => Arc::new(hir::lower(parse)),
        };
        let errors = match &before {
            Some((kept, older)) if older.is_clean => parse.diagnostics_beside(file, kept),
            _ => parse.diagnostics(file),
        };
        let lowered = LoweredText { module: module.clone(), is_clean: errors.is_empty() };
        // Another database that has the text may have been faster, with the same outcome.
        let _ = self.forms.lowered.set(lowered);
        Contents { module, errors }
    }

    /// The text in one piece.
    pub(crate) fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// The syntax tree, made again where it is not at hand.
    pub(crate) fn parse(&self) -> Parse {
        let mut tree = lock(&self.forms.tree);
        tree.get_or_insert_with(|| Parse::new(self.text.clone())).clone()
    }

    fn known_tree(&self) -> Option<Parse> {
        lock(&self.forms.tree).clone()
    }

    /// The text by lines, for positions.
    pub(crate) fn rope(&self) -> &Rope {
        self.forms.rope.get_or_init(|| Rope::from_str(&self.text))
    }
}

/// The texts whose syntax trees are at hand, those asked for last at the end. A tree takes far more
/// memory than its text and is made in milliseconds, so only few are kept, however many files are
/// open.
#[derive(Debug, Default)]
pub(super) struct Trees(Mutex<VecDeque<Weak<Forms>>>);

/// Syntax trees that are kept.
const KEPT_TREES: usize = 8;

impl Trees {
    /// Keeps the tree of `text`, and forgets the one that was not asked for the longest.
    pub(super) fn keep(&self, text: &SourceText) {
        let mut kept = lock(&self.0);
        let this = Arc::downgrade(&text.forms);
        kept.retain(|known| known.strong_count() > 0 && !known.ptr_eq(&this));
        kept.push_back(this);
        while kept.len() > KEPT_TREES {
            if let Some(forgotten) = kept.pop_front().and_then(|forms| forms.upgrade()) {
                *lock(&forgotten.tree) = None;
            }
        }
    }
}
