//! Edits that resolve findings.

use tile_compiler::diagnostic::{Diagnostic, Fix, Severity, TextEdit};
use tile_compiler::source::{FileRange, TextRange};

use crate::db::{self, Db, SourceFile};
use crate::ide::diagnostics::of_open;

/// A fix and the finding that it resolves.
#[derive(Debug, Clone)]
pub(crate) struct QuickFix {
    /// What to do.
    pub(crate) fix: Fix,
    /// The finding.
    pub(crate) diagnostic: Diagnostic,
    /// The best or only way to resolve it.
    pub(crate) preferred: bool,
}

/// The fixes for findings that touch `within`.
pub(crate) fn fixes(
    db: &dyn Db,
    file: SourceFile,
    exact: &[Diagnostic],
    within: TextRange,
) -> Vec<QuickFix> {
    let mut fixes = Vec::new();
    for diagnostic in of_open(db, file, exact) {
        let at = diagnostic.primary.range;
        let apart = at.end < within.start || within.end < at.start;
        if diagnostic.primary.file != file.id(db) || apart {
            continue;
        }
        for (index, fix) in diagnostic.fixes.iter().enumerate() {
            let preferred = index == 0;
            fixes.push(QuickFix { fix: fix.clone(), diagnostic: diagnostic.clone(), preferred });
        }
        if diagnostic.severity != Severity::Error
            && let Some(fix) = allow(db, file, &diagnostic)
        {
            fixes.push(QuickFix { fix, diagnostic: diagnostic.clone(), preferred: false });
        }
    }
    fixes
}

/// Puts `# tile: allow CODE` above the line.
fn allow(db: &dyn Db, file: SourceFile, diagnostic: &Diagnostic) -> Option<Fix> {
    let at = diagnostic.primary.range;
    let text = file.text(db).as_ref()?.text();
    let lines = db::line_index(db, file);
    let start = lines.line_start(lines.line(at.start)) as usize;
    let line = text.get(start..)?;
    let indent = &line[..line.len() - line.trim_start_matches([' ', '\t']).len()];
    let comment = format!("{indent}# tile: allow {}{}", diagnostic.code.name(), line_end(text));
    let place = FileRange { file: file.id(db), range: TextRange::empty(start) };
    Some(Fix {
        title: format!("Allow {} here", diagnostic.code.name()),
        edits: vec![TextEdit { at: place, text: comment }],
    })
}

/// What ends the lines of a text, as far as its first line tells.
pub(crate) fn line_end(text: &str) -> &'static str {
    let end = text.find(['\r', '\n']).map_or("", |at| &text[at..]);
    match end {
        end if end.starts_with("\r\n") => "\r\n",
        end if end.starts_with('\r') => "\r",
        _ => "\n",
    }
}
