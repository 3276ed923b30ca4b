//! `# tile: allow` comments that switch nothing off, because no code is called what they say.

use crate::diagnostic::{Code, Diagnostic, suggest};
use crate::hir::{Allow, Module};
use crate::source::{FileId, FileRange};

/// Findings about the `# tile: allow` comments of `file`.
pub(super) fn check(file: FileId, module: &Module) -> Vec<Diagnostic> {
    let unknown = module.allows.iter().filter(|allow| !is_known(&allow.code));
    unknown.map(|allow| finding(file, allow)).collect()
}

fn family(code: &str) -> &str {
    code.split('/').next().unwrap_or(code)
}

fn is_known(code: &str) -> bool {
    Code::ALL.iter().any(|known| known.name() == code || family(known.name()) == code)
}

fn finding(file: FileId, allow: &Allow) -> Diagnostic {
    let message =
        format!("there is no code `{}`, so this comment switches nothing off", allow.code);
    let names = Code::ALL.iter().map(|code| code.name());
    let known = names.clone().chain(names.map(family));
    let at = FileRange { file, range: allow.code_range };
    let found = Diagnostic::new(Code::UnknownCode, at, message);
    match suggest(&allow.code, known) {
        Some(best) => found.with_suggestion(best),
        None => found,
    }
}
