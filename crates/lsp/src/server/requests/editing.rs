//! Completions, signatures, hints, tokens and code actions.

use std::collections::HashMap;

use serde_json::json;
use tile_compiler::diagnostic::{Fix, TextEdit as Edit};
use tile_compiler::eval::ValueClass;
use tile_compiler::source::TextRange;
use tower_lsp::ls_types::{
    CodeAction, CodeActionKind, CodeActionOrCommand, CodeActionParams, Command, CompletionItem,
    CompletionItemKind, CompletionItemTag, CompletionTextEdit, Documentation, InlayHint,
    InlayHintKind, InlayHintLabel, InsertTextFormat, MarkupContent, MarkupKind,
    ParameterInformation, ParameterLabel, Range, SemanticToken, SemanticTokenModifier,
    SemanticTokenType, SemanticTokens, SemanticTokensEdit, SemanticTokensLegend, SignatureHelp,
    SignatureInformation, TextDocumentPositionParams, TextEdit, Uri, WorkspaceEdit,
};

use crate::db;
use crate::ide::completion::{Item, ItemKindHint, completions, documented};
use crate::ide::hints::{Wanted, hints};
use crate::ide::lenses::Action;
use crate::ide::matching::matches;
use crate::ide::tokens::{TokenKind, tokens};
use crate::ide::{assists, fixes, signature};
use crate::server::requests::lenses::command;
use crate::server::requests::navigation::place;
use crate::server::state::{Snapshot, State};
use crate::server::to_proto;

fn markdown(value: String) -> Documentation {
    Documentation::MarkupContent(MarkupContent { kind: MarkupKind::Markdown, value })
}

/// `textDocument/completion`: what has the characters that were typed. Documentation waits for
/// `completionItem/resolve`.
pub(crate) fn completion(
    state: &State,
    snapshot: &Snapshot,
    at: &TextDocumentPositionParams,
) -> Vec<CompletionItem> {
    let Some((file, offset)) = place(snapshot, at) else { return Vec::new() };
    let text = file.text(&snapshot.db).as_ref().map_or("", |text| text.text());
    let word = word_before(text, offset);
    let range = snapshot.range(file, word);
    let fills_in = state.session().is_some_and(|session| session.client.snippets);
    let typed = |item: &Item| &text[item.replaces.unwrap_or(word).as_usize()];
    let items = completions(&snapshot.db, file, offset).into_iter();
    items
        .filter(|item| fills_in || !item.snippet)
        .filter(|item| matches(&item.label, typed(item)))
        .map(|item| {
            let new_text = item.insert.unwrap_or_else(|| item.label.clone());
            let range = item.replaces.map_or(range, |bytes| snapshot.range(file, bytes));
            let rank = if item.expected { EXPECTED } else { 'b' };
            let order = format!("{rank}{:02}{:02}{}", item.kind as u8, item.place, item.label);
            CompletionItem {
                sort_text: Some(order),
                kind: Some(completion_kind(item.kind)),
                detail: item.detail,
                tags: item.deprecated.then(|| vec![CompletionItemTag::DEPRECATED]),
                insert_text_format: item.snippet.then_some(InsertTextFormat::SNIPPET),
                data: item.doc.map(|doc| json!({ "doc": fingerprint(doc), "label": item.label })),
                text_edit: Some(CompletionTextEdit::Edit(TextEdit { range, new_text })),
                label: item.label,
                ..CompletionItem::default()
            }
        })
        .collect()
}

/// What the place asks for is sorted before all else.
const EXPECTED: char = 'a';

/// `completionItem/resolve`.
pub(crate) fn resolve(mut item: CompletionItem) -> CompletionItem {
    let wanted = item.data.as_ref().and_then(|data| {
        let label = data["label"].as_str()?;
        documented(label).find(|doc| data["doc"] == json!(fingerprint(doc)))
    });
    item.documentation = wanted.map(|doc| markdown(doc.to_owned()));
    item
}

/// A number that stands for a documentation among those of one name.
fn fingerprint(doc: &str) -> u32 {
    doc.bytes().fold(0, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte)))
}

/// The part of the word at `offset` that stands before it.
fn word_before(text: &str, offset: usize) -> TextRange {
    let before = text.get(..offset).unwrap_or_default();
    let start = before.trim_end_matches(|c: char| c == '_' || c.is_alphanumeric()).len();
    TextRange::new(start, before.len())
}

fn completion_kind(kind: ItemKindHint) -> CompletionItemKind {
    match kind {
        ItemKindHint::Keyword => CompletionItemKind::FIELD,
        ItemKindHint::Attribute => CompletionItemKind::PROPERTY,
        ItemKindHint::Variable => CompletionItemKind::VARIABLE,
        ItemKindHint::Constant => CompletionItemKind::CONSTANT,
        ItemKindHint::Class => CompletionItemKind::CLASS,
        ItemKindHint::Function | ItemKindHint::Builtin => CompletionItemKind::FUNCTION,
        ItemKindHint::Type => CompletionItemKind::STRUCT,
        ItemKindHint::Module => CompletionItemKind::MODULE,
        ItemKindHint::Snippet => CompletionItemKind::SNIPPET,
        ItemKindHint::Choice => CompletionItemKind::ENUM_MEMBER,
        ItemKindHint::Word => CompletionItemKind::KEYWORD,
    }
}

/// `textDocument/signatureHelp`.
pub(crate) fn signature_help(
    state: &State,
    snapshot: &Snapshot,
    at: &TextDocumentPositionParams,
) -> Option<SignatureHelp> {
    let (file, offset) = place(snapshot, at)?;
    let found = signature::signature(&snapshot.db, file, offset)?;
    let active = found.active.map(|index| index as u32);
    let by_offset = state.session().is_some_and(|session| session.client.label_offsets);
    let labels = match by_offset {
        true => parameter_places(&found),
        false => found.parameters.iter().cloned().map(ParameterLabel::Simple).collect(),
    };
    let parameters =
        labels.into_iter().map(|label| ParameterInformation { label, documentation: None });
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

/// Where the parameters stand in the text of a signature, in units of UTF-16: a short name may stand
/// in it several times.
fn parameter_places(signature: &signature::Signature) -> Vec<ParameterLabel> {
    let width = |text: &str| text.encode_utf16().count() as u32;
    let list = signature.parameters.join(", ");
    // The list is followed by a parenthesis.
    let mut at = width(&signature.label) - width(&list) - 1;
    let places = signature.parameters.iter().map(|parameter| {
        let start = at;
        at += width(parameter) + width(", ");
        ParameterLabel::LabelOffsets([start, start + width(parameter)])
    });
    places.collect()
}

/// `textDocument/inlayHint`.
pub(crate) fn inlay_hints(
    state: &State,
    snapshot: &Snapshot,
    uri: &Uri,
    range: Range,
) -> Vec<InlayHint> {
    let Some(open) = snapshot.document(uri) else { return Vec::new() };
    let configuration = snapshot.configuration(state, open);
    let settings = &configuration.settings;
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

/// All fixes of a file at once.
pub(crate) const FIX_ALL: CodeActionKind = CodeActionKind::new("source.fixAll.tile");

/// Specializations that are offered one by one; the lens lists them all.
const MAX_PINS: usize = 8;

/// `textDocument/codeAction`.
pub(crate) fn code_actions(
    state: &State,
    snapshot: &Snapshot,
    params: &CodeActionParams,
) -> Vec<CodeActionOrCommand> {
    let uri = &params.text_document.uri;
    let Some(open) = snapshot.document(uri) else { return Vec::new() };
    let within = snapshot.text_range(open.file, params.range);
    let db = &snapshot.db;
    let mut actions = Vec::new();
    let only = params.context.only.as_deref();
    // A kind stands for those below it.
    let wanted = |kind: &CodeActionKind| {
        only.is_none_or(|kinds| {
            kinds.iter().any(|asked| {
                let below = kind.as_str().strip_prefix(asked.as_str());
                below.is_some_and(|rest| {
                    rest.is_empty() || rest.starts_with('.') || asked.as_str().is_empty()
                })
            })
        })
    };
    if wanted(&CodeActionKind::QUICKFIX) {
        for found in fixes::fixes(db, open.file, &open.exact, within) {
            let diagnostic = to_proto::diagnostic(snapshot, open.file, &found.diagnostic);
            actions.push(CodeActionOrCommand::CodeAction(CodeAction {
                diagnostics: Some(vec![diagnostic]),
                is_preferred: Some(found.preferred),
                ..edit_action(snapshot, &found.fix, CodeActionKind::QUICKFIX)
            }));
        }
    }
    let offset = within.start as usize;
    let kernel = db::kernel_at(db, open.file, offset);
    if wanted(&CodeActionKind::REFACTOR_REWRITE) {
        let mut found = assists::assists(db, open.file, offset);
        found.extend(kernel.and_then(|kernel| {
            let values = state.fastest(uri, &kernel.name)?;
            assists::apply_fastest(db, open.file, kernel, &values)
        }));
        let kind = CodeActionKind::REFACTOR_REWRITE;
        actions.extend(found.iter().map(|fix| edit_action(snapshot, fix, kind.clone()).into()));
    }
    if wanted(&FIX_ALL) && only.is_some() {
        let fix = assists::fix_all(db, open.file, &open.exact);
        actions.extend(fix.map(|fix| edit_action(snapshot, &fix, FIX_ALL).into()));
    }
    if only.is_none()
        && let Some(kernel) = kernel
    {
        if kernel.can_run(&snapshot.db) {
            actions.push(run_action(uri, &kernel.name));
        }
        if kernel.name_range.touches(offset) {
            actions.extend(pin_actions(snapshot, uri, kernel));
        }
    }
    actions
}

fn edit_action(snapshot: &Snapshot, fix: &Fix, kind: CodeActionKind) -> CodeAction {
    CodeAction {
        title: fix.title.clone(),
        kind: Some(kind),
        edit: Some(workspace_edit(snapshot, &fix.edits)),
        ..CodeAction::default()
    }
}

/// Other specializations to look at the kernel under.
fn pin_actions(snapshot: &Snapshot, uri: &Uri, kernel: &db::Kernel) -> Vec<CodeActionOrCommand> {
    let active = kernel.active(&snapshot.db);
    let others = kernel.settled(&snapshot.db).iter().enumerate();
    let pin = |(_, labelled): (usize, &db::Labelled)| {
        let title = format!("Pin {}", labelled.label);
        let argument =
            json!({ "uri": uri, "kernel": kernel.name, "specialization": labelled.label });
        let name = crate::server::ext::command::SELECT;
        let command = Command::new(title.clone(), name.to_owned(), Some(vec![argument]));
        CodeActionOrCommand::CodeAction(CodeAction {
            title,
            kind: Some(CodeActionKind::EMPTY),
            command: Some(command),
            ..CodeAction::default()
        })
    };
    others.filter(|(index, _)| *index != active).take(MAX_PINS).map(pin).collect()
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

/// Edits as the protocol has them.
#[allow(clippy::mutable_key_type, reason = "the protocol's type; nothing changes its keys")]
pub(crate) fn workspace_edit(snapshot: &Snapshot, edits: &[Edit]) -> WorkspaceEdit {
    let mut changes: HashMap<Uri, Vec<TextEdit>> = HashMap::new();
    for edit in edits {
        if let Some(location) = snapshot.location(edit.at) {
            let change = TextEdit { range: location.range, new_text: edit.text.clone() };
            changes.entry(location.uri).or_default().push(change);
        }
    }
    WorkspaceEdit { changes: Some(changes), ..WorkspaceEdit::default() }
}
