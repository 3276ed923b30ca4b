//! What an edit leaves alone.

use std::sync::Arc;

use super::kind::Kind;
use super::statement::Statements;
use crate::source::TextRange;

/// A text, and where its outermost statements stand that hold no errors.
#[derive(Debug, Clone, Default)]
pub struct Outline {
    text: Arc<str>,
    whole: Vec<(TextRange, Kind)>,
}

impl Outline {
    pub(super) fn of(statements: &Statements<'_>) -> Outline {
        let whole = statements.all().iter().filter(|statement| !statement.has_error());
        let whole = whole.map(|statement| (statement.range(), statement.kind())).collect();
        Outline { text: statements.parse().text().clone(), whole }
    }
}

/// The outermost statements of a text that an older text has as well: the same bytes, parsed as
/// the same kind of statement, without errors. So all that they hold is the same.
#[derive(Debug, Clone, Default)]
pub struct Kept {
    /// Where each stands now and where it stood, in order.
    pairs: Vec<(TextRange, TextRange)>,
}

impl Kept {
    /// Compares two texts from both ends: what lies between is what edits touched.
    pub fn between(old: &Outline, new: &Outline) -> Kept {
        let (before, after) = (old.text.as_bytes(), new.text.as_bytes());
        let prefix = before.iter().zip(after).take_while(|(a, b)| a == b).count();
        let rest = before.len().min(after.len()) - prefix;
        let ends = before.iter().rev().zip(after.iter().rev());
        let suffix = ends.take(rest).take_while(|(a, b)| a == b).count();
        let pairs = new.whole.iter().filter_map(|&(now, kind)| {
            let then = if now.end as usize <= prefix {
                now
            } else if now.start as usize >= after.len() - suffix {
                let place = |at: u32| at as usize + before.len() - after.len();
                TextRange::new(place(now.start), place(now.end))
            } else {
                return None;
            };
            let same =
                old.whole.binary_search_by_key(&then.start, |(range, _)| range.start).ok()?;
            (old.whole[same] == (then, kind)).then_some((now, then))
        });
        Kept { pairs: pairs.collect() }
    }

    /// Where the statement that stands at `now` stood.
    pub(crate) fn place_before(&self, now: TextRange) -> Option<TextRange> {
        let at = self.pairs.binary_search_by_key(&now.start, |(now, _)| now.start).ok()?;
        let (kept, then) = self.pairs[at];
        (kept == now).then_some(then)
    }
}
