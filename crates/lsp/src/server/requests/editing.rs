//! Completions, signatures, hints, tokens and code actions.

use std::collections::HashMap;

use tile_compiler::diagnostic::TextEdit as Edit;
use tile_compiler::eval::ValueClass;
use tile_compiler::source::TextRange;
use tower_lsp::ls_types::{
    CodeAction, CodeActionKind, CodeActionOrCommand, CodeActionParams, Command, CompletionItem,
    CompletionItemKind, CompletionTextEdit, Documentation, InlayHint, InlayHintKind,
    InlayHintLabel, MarkupContent, MarkupKind, ParameterInformation, ParameterLabel, Range,
    SemanticToken, SemanticTokenModifier, SemanticTokenType, SemanticTokens, SemanticTokensEdit,
    SemanticTokensLegend, SignatureHelp, SignatureInformation, TextDocumentPositionParams,
    TextEdit, Uri, WorkspaceEdit,
};

use crate::db::{self, SourceFile};
use crate::ide::completion::{ItemKindHint, completions};
use crate::ide::hints::{Wanted, hints};
use crate::ide::lenses::Action;
use crate::ide::tokens::{TokenKind, tokens};
use crate::ide::{fixes, signature};
use crate::server::requests::lenses::command;
use crate::server::requests::navigation::place;
use crate::server::state::{Snapshot, State};
use crate::server::to_proto;

fn markdown(value: String) -> Documentation {
    Documentation::MarkupContent(MarkupContent { kind: MarkupKind::Markdown, value })
}

/// `textDocument/completion`.
pub(crate) fn completion(
    snapshot: &Snapshot,
    at: &TextDocumentPositionParams,
) -> Vec<CompletionItem> {
    let Some((file, offset)) = place(snapshot, at) else { return Vec::new() };
    let word = word_before(snapshot, file, offset);
    let range = snapshot.range(file, word);
    let items = completions(&snapshot.db, file, offset).into_iter();
    items
        .map(|item| {
            let new_text = item.insert.unwrap_or_else(|| item.label.clone());
            CompletionItem {
                sort_text: Some(format!("{}{}", item.kind as u8, item.label)),
                kind: Some(completion_kind(item.kind)),
                detail: item.detail,
                documentation: item.doc.map(|doc| markdown(doc.to_owned())),
                text_edit: Some(CompletionTextEdit::Edit(TextEdit { range, new_text })),
                label: item.label,
                ..CompletionItem::default()
            }
        })
        .collect()
}

/// The part of the word at `offset` that stands before it.
fn word_before(snapshot: &Snapshot, file: SourceFile, offset: usize) -> TextRange {
    let text = file.text(&snapshot.db).as_ref().map_or("", |text| text.text());
    let before = text.get(..offset).unwrap_or_default();
    let start = before.trim_end_matches(|c: char| c == '_' || c.is_alphanumeric()).len();
    TextRange::new(start, before.len())
}

fn completion_kind(kind: ItemKindHint) -> CompletionItemKind {
    match kind {
        ItemKindHint::Keyword => CompletionItemKind::FIELD,
        ItemKindHint::Variable => CompletionItemKind::VARIABLE,
        ItemKindHint::Constant => CompletionItemKind::CONSTANT,
        ItemKindHint::Function | ItemKindHint::Builtin => CompletionItemKind::FUNCTION,
        ItemKindHint::Type => CompletionItemKind::STRUCT,
        ItemKindHint::Module => CompletionItemKind::MODULE,
    }
}

/// `textDocument/signatureHelp`.
pub(crate) fn signature_help(
    snapshot: &Snapshot,
    at: &TextDocumentPositionParams,
) -> Option<SignatureHelp> {
    let (file, offset) = place(snapshot, at)?;
    let found = signature::signature(&snapshot.db, file, offset)?;
    let active = found.active.map(|index| index as u32);
    let parameters = found.parameters.into_iter().map(|parameter| ParameterInformation {
        label: ParameterLabel::Simple(parameter),
        documentation: None,
    });
    let information = SignatureInformation {
        label: found.label,
        documentation: found.doc.map(markdown),
        parameters: Some(parameters.collect()),
        active_parameter: active,
    };
    Some(SignatureHelp {
        signatures: vec![information],
        active_signature: Some(0),
        active_parameter: active,
    })
}

/// `textDocument/inlayHint`.
pub(crate) fn inlay_hints(
    state: &State,
    snapshot: &Snapshot,
    uri: &Uri,
    range: Range,
) -> Vec<InlayHint> {
    let Some(open) = snapshot.document(uri) else { return Vec::new() };
    let settings = &state.configuration().settings;
    let wanted = Wanted {
        types: settings.type_hints,
        constexprs: settings.constexpr_hints,
        parameters: settings.parameter_hints,
    };
    let within = snapshot.text_range(open.file, range);
    let hints = hints(&snapshot.db, open.file, within, wanted).into_iter();
    hints
        .map(|hint| InlayHint {
            position: snapshot.range(open.file, TextRange::empty(hint.offset)).start,
            label: InlayHintLabel::String(hint.label),
            kind: Some(if hint.parameter { InlayHintKind::PARAMETER } else { InlayHintKind::TYPE }),
            text_edits: None,
            tooltip: None,
            padding_left: Some(false),
            padding_right: Some(hint.parameter),
            data: None,
        })
        .collect()
}

/// Types and modifiers of tokens, by the numbers that are sent.
pub(crate) fn legend() -> SemanticTokensLegend {
    SemanticTokensLegend {
        token_types: vec![
            SemanticTokenType::NAMESPACE,
            SemanticTokenType::FUNCTION,
            SemanticTokenType::PARAMETER,
            SemanticTokenType::VARIABLE,
            SemanticTokenType::CLASS,
        ],
        token_modifiers: vec![
            SemanticTokenModifier::READONLY,
            SemanticTokenModifier::DEFAULT_LIBRARY,
            SemanticTokenModifier::new("constexpr"),
            SemanticTokenModifier::new("scalar"),
            SemanticTokenModifier::new("tile"),
            SemanticTokenModifier::new("pointer"),
        ],
    }
}

/// The bit of a kind of value; see [`legend`].
fn value_modifier(value: ValueClass) -> u32 {
    match value {
        ValueClass::Constexpr => 1 << 2,
        ValueClass::Scalar => 1 << 3,
        ValueClass::Tile => 1 << 4,
        ValueClass::Pointer => 1 << 5,
    }
}

/// `textDocument/semanticTokens/full/delta`: what replaces which numbers of `old`.
pub(crate) fn token_edits(old: &[SemanticToken], new: &[SemanticToken]) -> Vec<SemanticTokensEdit> {
    let same = |(a, b): &(&SemanticToken, &SemanticToken)| a == b;
    let before = old.iter().zip(new).take_while(same).count();
    let (old, new) = (&old[before..], &new[before..]);
    let after = old.iter().rev().zip(new.iter().rev()).take_while(same).count();
    let (old, new) = (&old[..old.len() - after], &new[..new.len() - after]);
    if old.is_empty() && new.is_empty() {
        return Vec::new();
    }
    // A token is five numbers.
    vec![SemanticTokensEdit {
        start: 5 * before as u32,
        delete_count: 5 * old.len() as u32,
        data: Some(new.to_vec()),
    }]
}

/// `textDocument/semanticTokens/full` and `/range`.
pub(crate) fn semantic_tokens(
    snapshot: &Snapshot,
    uri: &Uri,
    range: Option<Range>,
) -> SemanticTokens {
    let Some(open) = snapshot.document(uri) else { return SemanticTokens::default() };
    let everything = TextRange::new(0, snapshot.rope(open.file).len_bytes());
    let within = range.map_or(everything, |range| snapshot.text_range(open.file, range));
    let mut data = Vec::new();
    let mut last = (0, 0);
    for token in tokens(&snapshot.db, open.file, within) {
        let range = snapshot.range(open.file, token.range);
        let (line, start) = (range.start.line, range.start.character);
        let (number, library) = match token.kind {
            TokenKind::Namespace => (0, false),
            TokenKind::Function => (1, false),
            TokenKind::Builtin => (1, true),
            TokenKind::Parameter => (2, false),
            TokenKind::Variable => (3, false),
            TokenKind::Class => (4, false),
        };
        data.push(SemanticToken {
            delta_line: line - last.0,
            delta_start: if line == last.0 { start - last.1 } else { start },
            length: range.end.character - start,
            token_type: number,
            token_modifiers_bitset: u32::from(token.readonly)
                | u32::from(library) << 1
                | token.value.map_or(0, value_modifier),
        });
        last = (line, start);
    }
    SemanticTokens { result_id: None, data }
}

/// `textDocument/codeAction`.
pub(crate) fn code_actions(
    snapshot: &Snapshot,
    params: &CodeActionParams,
) -> Vec<CodeActionOrCommand> {
    let uri = &params.text_document.uri;
    let Some(open) = snapshot.document(uri) else { return Vec::new() };
    let within = snapshot.text_range(open.file, params.range);
    let mut actions = Vec::new();
    let only = params.context.only.as_deref();
    let fixes_wanted = only.is_none_or(|kinds| kinds.contains(&CodeActionKind::QUICKFIX));
    if fixes_wanted {
        for found in fixes::fixes(&snapshot.db, open.file, &open.exact, within) {
            let diagnostic = to_proto::diagnostic(snapshot, open.file, &found.diagnostic);
            actions.push(CodeActionOrCommand::CodeAction(CodeAction {
                title: found.fix.title.clone(),
                kind: Some(CodeActionKind::QUICKFIX),
                diagnostics: Some(vec![diagnostic]),
                edit: Some(workspace_edit(snapshot, &found.fix.edits)),
                is_preferred: Some(found.preferred),
                ..CodeAction::default()
            }));
        }
    }
    if only.is_none() {
        let kernel = db::kernel_at(&snapshot.db, open.file, within.start as usize);
        if let Some(kernel) = kernel.filter(|kernel| !kernel.scenarios.is_empty()) {
            actions.push(run_action(uri, &kernel.name));
        }
    }
    actions
}

fn run_action(uri: &Uri, kernel: &str) -> CodeActionOrCommand {
    let title = format!("▶ Run {kernel}");
    let (name, argument) = command(uri, kernel, Action::Run(None));
    let command = Command::new(title.clone(), name.to_owned(), Some(vec![argument]));
    CodeActionOrCommand::CodeAction(CodeAction {
        title,
        kind: Some(CodeActionKind::EMPTY),
        command: Some(command),
        ..CodeAction::default()
    })
}

#[allow(clippy::mutable_key_type, reason = "the protocol's type; nothing changes its keys")]
fn workspace_edit(snapshot: &Snapshot, edits: &[Edit]) -> WorkspaceEdit {
    let mut changes: HashMap<Uri, Vec<TextEdit>> = HashMap::new();
    for edit in edits {
        if let Some(location) = snapshot.location(edit.at) {
            let change = TextEdit { range: location.range, new_text: edit.text.clone() };
            changes.entry(location.uri).or_default().push(change);
        }
    }
    WorkspaceEdit { changes: Some(changes), ..WorkspaceEdit::default() }
}
