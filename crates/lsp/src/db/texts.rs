//! Texts in the forms that queries read, and which syntax trees are at hand.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock, Weak};

use ropey::Rope;
use tile_compiler::hir::{self, Module};
use tile_compiler::source::FileId;
use tile_compiler::syntax::{Kept, Outline, Parse, Statements};

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
    /// What lowering an older text of the file gave, of which much may be the same.
    before: Mutex<Option<LoweredText>>,
}

/// What lowering a text gave; of an empty one by default.
#[derive(Debug, Clone, Default)]
struct LoweredText {
    outline: Arc<Outline>,
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
        let lowered = lowered.or_else(|| lock(&older.forms.before).take());
        *lock(&self.forms.before) = lowered;
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
        let statements = Statements::of(parse);
        let outline = Arc::new(statements.outline());
        let older = lock(&self.forms.before).take().unwrap_or_default();
        let kept = Kept::between(&older.outline, &outline);
        let module = match self.forms.lowered.get() {
            Some(known) => known.module.clone(),
            None => Arc::new(hir::lower_again(&statements, &older.module, &kept)),
        };
        let kept = if older.is_clean { kept } else { Kept::default() };
        let errors = statements.diagnostics(file, &kept);
        let is_clean = errors.is_empty();
        let lowered = LoweredText { outline, module: module.clone(), is_clean };
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
