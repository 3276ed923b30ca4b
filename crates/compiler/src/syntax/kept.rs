//! What an edit leaves alone.

use super::Parse;
use super::kind::Kind;
use super::statement::Statement;
use crate::source::TextRange;

/// The outermost statements of a text that an older text has as well: the same bytes, parsed as
/// the same kind of statement, without errors. So all that they hold is the same.
#[derive(Debug, Clone, Default)]
pub struct Kept {
    /// Where each stands now and where it stood, in order.
    pairs: Vec<(TextRange, TextRange)>,
}

impl Kept {
    /// Compares two texts from both ends: what lies between is what edits touched.
    pub(super) fn between(old: &Parse, new: &Parse) -> Kept {
        let (before, after) = (old.text().as_bytes(), new.text().as_bytes());
        let prefix = before.iter().zip(after).take_while(|(a, b)| a == b).count();
        let rest = before.len().min(after.len()) - prefix;
        let ends = before.iter().rev().zip(after.iter().rev());
        let suffix = ends.take(rest).take_while(|(a, b)| a == b).count();
        let outermost = |parse: &Parse| -> Vec<(TextRange, Kind)> {
            let statements = Statement::all(parse);
            let whole = statements.iter().filter(|statement| !statement.has_error());
            whole.map(|statement| (statement.range(), statement.kind())).collect()
        };
        let known = outermost(old);
        let pairs = outermost(new).into_iter().filter_map(|(now, kind)| {
            let then = if now.end as usize <= prefix {
                now
            } else if now.start as usize >= after.len() - suffix {
                let place = |at: u32| at as usize + before.len() - after.len();
                TextRange::new(place(now.start), place(now.end))
            } else {
                return None;
            };
            let same = known.binary_search_by_key(&then.start, |(range, _)| range.start).ok()?;
            (known[same] == (then, kind)).then_some((now, then))
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
