//! Plain data of the features as the protocol has it.

use ropey::Rope;
use tile_compiler::diagnostic::{Code, Diagnostic, Severity};
use tower_lsp::ls_types::{
    self as lsp, CodeDescription, DiagnosticRelatedInformation, DiagnosticSeverity, DiagnosticTag,
    NumberOrString,
};

use crate::db::SourceFile;
use crate::encoding::Encoding;
use crate::server::project_file::{Place, Problem};
use crate::server::session::Tags;
use crate::server::state::Snapshot;

/// Where the explanations of codes are published.
const EXPLANATIONS: &str = "https://github.com/tile-lang/tile/blob/main/docs/diagnostics.md";

/// A diagnostic whose primary place is in `file`.
pub(crate) fn diagnostic(
    snapshot: &Snapshot,
    file: SourceFile,
    diagnostic: &Diagnostic,
) -> lsp::Diagnostic {
    let related: Vec<DiagnosticRelatedInformation> = diagnostic
        .related
        .iter()
        .filter_map(|related| {
            let location = snapshot.location(related.at)?;
            Some(DiagnosticRelatedInformation { location, message: related.message.clone() })
        })
        .collect();
    lsp::Diagnostic {
        range: snapshot.range(file, diagnostic.primary.range),
        severity: Some(severity(diagnostic.severity)),
        code: Some(NumberOrString::String(diagnostic.code.name().to_owned())),
        code_description: code_description(diagnostic),
        source: Some("tile".to_owned()),
        message: message(diagnostic),
        related_information: (!related.is_empty()).then_some(related),
        tags: snapshot.tags.tag(diagnostic.code).map(|tag| vec![tag]),
        data: None,
    }
}

impl Tags {
    /// How findings of this code are shown.
    fn tag(self, code: Code) -> Option<DiagnosticTag> {
        match code {
            Code::Inactive | Code::Unused if self.unnecessary => Some(DiagnosticTag::UNNECESSARY),
            Code::Deprecated if self.deprecated => Some(DiagnosticTag::DEPRECATED),
            _ => None,
        }
    }

    /// False for what is nothing but a tag that the client does not show.
    pub(crate) fn shows(self, code: Code) -> bool {
        let is_tag_alone = matches!(code, Code::Inactive | Code::Unused | Code::Deprecated);
        !is_tag_alone || self.tag(code).is_some()
    }
}

fn code_description(diagnostic: &Diagnostic) -> Option<CodeDescription> {
    let anchor = anchor(diagnostic.code);
    Some(CodeDescription { href: format!("{EXPLANATIONS}#{anchor}").parse().ok()? })
}

/// The anchor of a code's section on the page of explanations.
pub(super) fn anchor(code: Code) -> String {
    code.name().replace('/', "")
}

/// The message with its notes and, for an error of one specialization, that one's label.
fn message(diagnostic: &Diagnostic) -> String {
    let mut message = diagnostic.message.clone();
    if let Some(specialization) = &diagnostic.specialization
        && !message.contains(specialization.as_str())
    {
        message.push_str(&format!("\nwith {specialization}"));
    }
    for note in &diagnostic.notes {
        message.push('\n');
        message.push_str(note);
    }
    message
}

/// Something wrong with settings, as a finding in the project file that says it.
pub(crate) fn setting_problem(encoding: Encoding, problem: &Problem) -> Option<lsp::Diagnostic> {
    let Place { text, range, .. } = problem.place.as_ref()?;
    Some(lsp::Diagnostic {
        range: encoding.range(&Rope::from_str(text), *range),
        severity: Some(severity(problem.severity)),
        source: Some("tile".to_owned()),
        message: problem.message.clone(),
        ..lsp::Diagnostic::default()
    })
}

fn severity(severity: Severity) -> DiagnosticSeverity {
    match severity {
        Severity::Error => DiagnosticSeverity::ERROR,
        Severity::Warning => DiagnosticSeverity::WARNING,
        Severity::Info => DiagnosticSeverity::INFORMATION,
        Severity::Hint => DiagnosticSeverity::HINT,
    }
}
