//! `# tile: allow` comments that switch nothing off, because no code is called what they say.

use crate::diagnostic::{Code, Diagnostic, suggest};
use crate::hir::{Allow, Module};
use crate::source::{FileId, FileRange};

/// Findings about the `# tile: allow` comments of `file`.
pub(super) fn check(file: FileId, module: &Module) -> Vec<Diagnostic> {
    let unknown = module.allows.iter().filter(|allow| !Code::is_any_called(&allow.code));
    unknown.map(|allow| finding(file, allow)).collect()
}

fn finding(file: FileId, allow: &Allow) -> Diagnostic {
    let message = match &*allow.code {
        "" => "this comment switches nothing off: it names no code".to_owned(),
        code => format!("there is no code `{code}`, so this comment switches nothing off"),
    };
    let known = Code::ALL.iter().flat_map(|code| [code.name(), code.family()]);
    let at = FileRange { file, range: allow.code_range };
    let found = Diagnostic::new(Code::UnknownCode, at, message);
    if allow.code.is_empty() {
        return found.with_note("write the code after it: `# tile: allow bounds/out-of-bounds`");
    }
    match suggest(&allow.code, known) {
        Some(best) => found.with_suggestion(best),
        None => found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hir::lower;
    use crate::syntax::Parse;

    fn told(text: &str) -> Vec<String> {
        let found = check(FileId(0), &lower(&Parse::new(text)));
        found.into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn codes_and_families_are_known() {
        let text = "# tile: allow perf\nx = 1  # tile: allow mask/undefined, race\n";
        assert_eq!(told(text), Vec::<String>::new());
    }

    #[test]
    fn other_names_are_told_with_what_is_meant() {
        let told = told("# tile: allow perf, mask/undefind\nx = 1  # tile: allow E501\n");
        assert_eq!(
            told,
            [
                "there is no code `mask/undefind`, so this comment switches nothing off; \
                 did you mean `mask/undefined`?",
                "there is no code `E501`, so this comment switches nothing off",
            ]
        );
    }

    #[test]
    fn comments_without_a_code_are_told() {
        let text = "def f():\n    x = 1  # tile: allow\n    y = 1  # tile: allow(mask/undefined)\n    \
                    # tile: allow rows of any length here\n";
        assert_eq!(told(text), ["this comment switches nothing off: it names no code"; 2]);
    }
}
