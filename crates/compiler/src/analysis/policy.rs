//! What of the findings is shown: `# tile: allow` comments, levels that the user set, and the
//! order.

use rustc_hash::FxHashMap;

use super::replaced;
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::hir::Module;
use crate::source::{FileId, FileRange, LineIndex};

/// Levels that the user set, by `family/name` or by `family`. A code counts before its family.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lints {
    levels: Vec<(String, Option<Severity>)>,
}

impl Lints {
    /// Sets the level of a code or family; `None` switches it off.
    pub fn set(&mut self, code: impl Into<String>, level: Option<Severity>) {
        self.levels.push((code.into(), level));
    }

    /// The level for the code called `name`: `None` where nothing is set, `Some(None)` where it
    /// is off.
    fn level(&self, name: &str) -> Option<Option<Severity>> {
        let set_for = |wanted: &str| {
            let mut levels = self.levels.iter().rev();
            levels.find(|(code, _)| code == wanted).map(|(_, level)| *level)
        };
        set_for(name).or_else(|| set_for(name.split('/').next().unwrap_or_default()))
    }
}

/// Applies comments and levels to the findings of `file`, which has this text, and puts them in order: this file's
/// first, by place. What holds for every specialization, and what several specializations share,
/// stays once.
pub fn settle(
    diagnostics: &mut Vec<Diagnostic>,
    file: FileId,
    module: &Module,
    (lines, text): (&LineIndex, &str),
    lints: &Lints,
) {
    replaced::soften(diagnostics, (file, module), lines);
    diagnostics.retain_mut(|diagnostic| {
        match lints.level(diagnostic.code.name()) {
            Some(None) => return false,
            Some(Some(level)) => diagnostic.severity = level,
            // What the compiler does not know yet is no mistake of the kernel's author.
            None if diagnostic.code == Code::NotUnderstood => {
                diagnostic.severity = Severity::Info;
            }
            None => {}
        }
        diagnostic.primary.file != file || !module.is_allowed(lines, text, diagnostic)
    });
    drop_restated(diagnostics);
    diagnostics.sort_by_key(|diagnostic| {
        let general = diagnostic.specialization.is_none();
        (diagnostic.primary.file != file, diagnostic.sort_key(), !general)
    });
    diagnostics.dedup_by(|next, kept| {
        let same_place = next.primary == kept.primary && next.code == kept.code;
        // Of several counter-examples at one place, one is enough.
        let same = same_place && (next.message == kept.message || next.code.is_counter_example());
        // What is printed counts once for each specialization.
        let counts_once = next.severity != Severity::Info;
        same && (counts_once || next.specialization == kept.specialization)
    });
}

/// Drops what a specialization says of a place where the same is wrong under every one: the words
/// differ in sizes and types alone.
fn drop_restated(diagnostics: &mut Vec<Diagnostic>) {
    let mut general: FxHashMap<(Code, FileRange), Severity> = FxHashMap::default();
    for diagnostic in diagnostics.iter().filter(|found| found.specialization.is_none()) {
        let known = general.entry((diagnostic.code, diagnostic.primary));
        let severity = known.or_insert(diagnostic.severity);
        *severity = diagnostic.severity.max(*severity);
    }
    diagnostics.retain(|diagnostic| {
        let stated = general.get(&(diagnostic.code, diagnostic.primary));
        diagnostic.specialization.is_none()
            || diagnostic.severity == Severity::Info
            || stated.is_none_or(|severity| *severity < diagnostic.severity)
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hir::lower;
    use crate::source::TextRange;
    use crate::syntax::Parse;

    fn settled(text: &str, at: &str, lints: &Lints) -> Vec<Severity> {
        let file = FileId(0);
        let start = text.find(at).unwrap();
        let range = TextRange::new(start, start + at.len());
        let found = Diagnostic::new(Code::UndefinedName, FileRange { file, range }, "m");
        let mut diagnostics = vec![found.clone(), found];
        let module = lower(&Parse::new(text));
        settle(&mut diagnostics, file, &module, (&LineIndex::new(text), text), lints);
        diagnostics.iter().map(|diagnostic| diagnostic.severity).collect()
    }

    #[test]
    fn comments_on_or_above_the_line_allow() {
        let none = Lints::default();
        assert_eq!(settled("x = y\n", "y", &none), [Severity::Error], "repeated once");
        assert_eq!(settled("x = y # tile: allow name/undefined\n", "y", &none), []);
        assert_eq!(settled("# tile: allow name\nx = y\n", "y", &none), []);
        assert_eq!(settled("# tile: allow perf\nx = y\n", "y", &none).len(), 1);
        let scenario = "# tile: x = 1\n# tile: allow name\n# tile: k[y](x)\nz = 1\n";
        assert_eq!(settled(scenario, "y", &none), [], "the next line is one of a scenario");
        assert_eq!(settled(scenario, "z", &none).len(), 1);
        assert_eq!(lower(&Parse::new(scenario)).scenarios.len(), 1, "it is not torn");
    }

    #[test]
    fn levels_are_set_by_code_and_by_family() {
        let mut lints = Lints::default();
        lints.set("name", None);
        assert_eq!(settled("x = y\n", "y", &lints), []);
        lints.set("name/undefined", Some(Severity::Warning));
        assert_eq!(settled("x = y\n", "y", &lints), [Severity::Warning]);
    }
    #[test]
    fn a_specialization_restates_nothing() {
        let file = FileId(0);
        let at = FileRange { file, range: TextRange::new(0, 1) };
        let general = Diagnostic::new(Code::UndefinedName, at, "whatever it is");
        let mut exact = Diagnostic::new(Code::UndefinedName, at, "an int32");
        exact.specialization = Some("x=i32".into());
        let elsewhere = Diagnostic::new(Code::UnknownBuiltin, at, "of another kind");
        let mut other = Diagnostic { specialization: exact.specialization.clone(), ..elsewhere };
        other.severity = Severity::Warning;
        let mut diagnostics = vec![exact, other.clone(), general.clone()];
        let module = lower(&Parse::new("x\n"));
        settle(&mut diagnostics, file, &module, (&LineIndex::new("x\n"), "x\n"), &Lints::default());
        let messages: Vec<_> = diagnostics.iter().map(|found| &*found.message).collect();
        assert!(messages.contains(&&*general.message) && messages.contains(&&*other.message));
        assert_eq!(messages.len(), 2);
    }
}
