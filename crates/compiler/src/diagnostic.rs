//! Diagnostics: one table of codes and one rich shape, shared by the terminal and the editor.

use serde::{Deserialize, Serialize};

use crate::source::FileRange;

mod codes;
mod suggest;

pub use codes::{Code, CodeInfo};
pub(crate) use suggest::{misspelled, other_ending, suggest, suggest_in_any_case};

/// How serious a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// A possible improvement; never nags.
    Hint,
    /// Something the author asked to see, such as `tl.static_print`.
    Info,
    /// A provable flaw in code that Triton accepts.
    Warning,
    /// Triton would reject it, or it is provably wrong for a known launch.
    Error,
}

/// A finding of any stage, in terms of the user's source.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Diagnostic {
    /// Entry in the code table.
    pub code: Code,
    /// Severity; the table's level unless configuration changed it.
    pub severity: Severity,
    /// One line that stands alone.
    pub message: String,
    /// Where the user must look first. For an error inside an inlined helper this is the user's
    /// call, and the helper's line is a related location.
    pub primary: FileRange,
    /// Other places that explain it, with what each one contributes.
    pub related: Vec<Related>,
    /// Further sentences: reasons, counter-examples, what to do.
    pub notes: Vec<String>,
    /// Machine-applicable edits, best first.
    pub fixes: Vec<Fix>,
    /// The kernel concerned, if one is.
    pub kernel: Option<String>,
    /// Label of the specialization for which alone it holds; `None` when it always holds.
    pub specialization: Option<String>,
}

/// A secondary location of a diagnostic.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Related {
    /// The place.
    pub at: FileRange,
    /// What it contributes.
    pub message: String,
}

/// A titled set of edits that resolves a diagnostic.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Fix {
    /// Imperative title, as an editor shows it.
    pub title: String,
    /// Edits, disjoint, in the file of the primary range unless they say otherwise.
    pub edits: Vec<TextEdit>,
}

/// Replacement of one range.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TextEdit {
    /// What to replace.
    pub at: FileRange,
    /// The new text.
    pub text: String,
}

impl Diagnostic {
    /// A diagnostic of `code` at its default level, with no extras.
    pub fn new(code: Code, primary: FileRange, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            code,
            severity: code.info().level,
            message: message.into(),
            primary,
            related: Vec::new(),
            notes: Vec::new(),
            fixes: Vec::new(),
            kernel: None,
            specialization: None,
        }
    }

    /// Adds a related location.
    #[must_use]
    pub(crate) fn with_related(mut self, at: FileRange, message: impl Into<String>) -> Diagnostic {
        self.related.push(Related { at, message: message.into() });
        self
    }

    /// Adds a note.
    #[must_use]
    pub(crate) fn with_note(mut self, note: impl Into<String>) -> Diagnostic {
        self.notes.push(note.into());
        self
    }

    /// Adds a fix.
    #[must_use]
    pub(crate) fn with_fix(mut self, title: impl Into<String>, edits: Vec<TextEdit>) -> Diagnostic {
        self.fixes.push(Fix { title: title.into(), edits });
        self
    }

    /// Says what was probably meant by the name at the primary place, and how to write that.
    #[must_use]
    pub(crate) fn with_suggestion(self, meant: &str) -> Diagnostic {
        self.with_suggested_text(meant, meant.to_owned())
    }

    /// As [`Self::with_suggestion`], where `text` has to stand there for what was meant.
    #[must_use]
    pub(crate) fn with_suggested_text(mut self, meant: &str, text: String) -> Diagnostic {
        self.message.push_str(&format!("; did you mean `{meant}`?"));
        let edit = TextEdit { at: self.primary, text };
        self.with_fix(format!("Change to `{meant}`"), vec![edit])
    }

    /// Puts every place that it names elsewhere.
    pub fn map_places(&mut self, mut place: impl FnMut(FileRange) -> FileRange) {
        self.primary = place(self.primary);
        for related in &mut self.related {
            related.at = place(related.at);
        }
        for edit in self.fixes.iter_mut().flat_map(|fix| &mut fix.edits) {
            edit.at = place(edit.at);
        }
    }

    /// Sorts by place, then severity (worst first), then code, so that output is stable.
    pub fn sort_key(&self) -> (FileRange, std::cmp::Reverse<Severity>, Code, String) {
        (self.primary, std::cmp::Reverse(self.severity), self.code, self.message.clone())
    }
}
