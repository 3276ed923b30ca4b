//! Every fix of every finding in chapters, made by itself.

use std::collections::BTreeMap;
use std::fmt::Write;

use tile_compiler::diagnostic::Diagnostic;

/// The fixes made so far.
#[derive(Default)]
pub(crate) struct Fixes {
    /// How many there were, by code.
    made: BTreeMap<&'static str, usize>,
    /// What is wrong with those that resolve nothing.
    problems: String,
}

impl Fixes {
    /// Makes each fix of what is found in the block at `place`: what comes out parses, and the code is
    /// found less often. `check` tells whether a text parses, and what is found in it.
    pub(crate) fn make(
        &mut self,
        place: &str,
        text: &str,
        check: impl Fn(&str) -> (bool, Vec<Diagnostic>),
    ) {
        let (parses, found) = check(text);
        let count = |found: &[Diagnostic], code| found.iter().filter(|it| it.code == code).count();
        for finding in &found {
            for fix in &finding.fixes {
                *self.made.entry(finding.code.name()).or_default() += 1;
                let mut edits = fix.edits.clone();
                edits.sort_by_key(|edit| edit.at.range.start);
                let mut text = text.to_owned();
                for edit in edits.iter().rev() {
                    text.replace_range(edit.at.range.as_usize(), &edit.text);
                }
                let (still_parses, left) = check(&text);
                let is_resolved = count(&left, finding.code) < count(&found, finding.code);
                if !is_resolved || parses && !still_parses {
                    let _ = writeln!(self.problems, "{place}: {}: {fix:#?}", finding.message);
                }
            }
        }
    }

    /// All of them resolve what they are of, and at least `codes` codes have some.
    pub(crate) fn expect(&self, codes: usize) {
        assert!(self.problems.is_empty(), "{:#?}\n{}", self.made, self.problems);
        assert!(self.made.len() >= codes, "too few codes have fixes: {:?}", self.made);
    }
}
