//! What the server says it can do.

use std::path::Path;

use serde_json::json;
use tile_compiler::project::paths;
use tower_lsp::ls_types::{
    CallHierarchyServerCapability, CodeActionKind, CodeActionOptions, CodeActionProviderCapability,
    CodeLensOptions, CompletionOptions, DiagnosticOptions, DiagnosticServerCapabilities,
    DocumentLinkOptions, ExecuteCommandOptions, FileOperationFilter, FileOperationPattern,
    FileOperationPatternKind, FileOperationRegistrationOptions, FoldingRangeProviderCapability,
    HoverProviderCapability, InitializeResult, OneOf, Registration, RenameOptions,
    SelectionRangeProviderCapability, SemanticTokensFullOptions, SemanticTokensOptions,
    ServerCapabilities, ServerInfo, SignatureHelpOptions, TextDocumentSyncCapability,
    TextDocumentSyncKind, TextDocumentSyncOptions, TypeDefinitionProviderCapability,
    WorkDoneProgressOptions, WorkspaceFileOperationsServerCapabilities,
    WorkspaceFoldersServerCapabilities, WorkspaceServerCapabilities,
};

use crate::encoding::Encoding;
use crate::server::ext::command;
use crate::server::requests::editing;
use crate::server::session::ClientAbilities;

/// The answer to `initialize`.
pub(crate) fn initialize_result(encoding: Encoding) -> InitializeResult {
    let info =
        ServerInfo { name: "tile".to_owned(), version: Some(env!("CARGO_PKG_VERSION").to_owned()) };
    InitializeResult {
        capabilities: capabilities(encoding),
        server_info: Some(info),
        ..InitializeResult::default()
    }
}

fn capabilities(encoding: Encoding) -> ServerCapabilities {
    ServerCapabilities {
        position_encoding: Some(encoding.kind()),
        text_document_sync: Some(TextDocumentSyncCapability::Options(TextDocumentSyncOptions {
            open_close: Some(true),
            change: Some(TextDocumentSyncKind::INCREMENTAL),
            ..TextDocumentSyncOptions::default()
        })),
        diagnostic_provider: Some(DiagnosticServerCapabilities::Options(DiagnosticOptions {
            identifier: Some("tile".to_owned()),
            inter_file_dependencies: true,
            workspace_diagnostics: true,
            ..DiagnosticOptions::default()
        })),
        hover_provider: Some(HoverProviderCapability::Simple(true)),
        definition_provider: Some(OneOf::Left(true)),
        type_definition_provider: Some(TypeDefinitionProviderCapability::Simple(true)),
        references_provider: Some(OneOf::Left(true)),
        call_hierarchy_provider: Some(CallHierarchyServerCapability::Simple(true)),
        workspace_symbol_provider: Some(OneOf::Left(true)),
        document_link_provider: Some(DocumentLinkOptions {
            resolve_provider: Some(false),
            work_done_progress_options: WorkDoneProgressOptions::default(),
        }),
        document_highlight_provider: Some(OneOf::Left(true)),
        rename_provider: Some(OneOf::Right(RenameOptions {
            prepare_provider: Some(true),
            work_done_progress_options: WorkDoneProgressOptions::default(),
        })),
        document_symbol_provider: Some(OneOf::Left(true)),
        folding_range_provider: Some(FoldingRangeProviderCapability::Simple(true)),
        selection_range_provider: Some(SelectionRangeProviderCapability::Simple(true)),
        inlay_hint_provider: Some(OneOf::Left(true)),
        completion_provider: Some(CompletionOptions {
            trigger_characters: Some([".", "\"", "'"].map(str::to_owned).to_vec()),
            resolve_provider: Some(true),
            ..CompletionOptions::default()
        }),
        signature_help_provider: Some(SignatureHelpOptions {
            trigger_characters: Some(vec!["(".to_owned(), ",".to_owned()]),
            ..SignatureHelpOptions::default()
        }),
        code_action_provider: Some(CodeActionProviderCapability::Options(CodeActionOptions {
            code_action_kinds: Some(vec![
                CodeActionKind::QUICKFIX,
                CodeActionKind::REFACTOR_REWRITE,
                editing::FIX_ALL,
                CodeActionKind::EMPTY,
            ]),
            ..CodeActionOptions::default()
        })),
        semantic_tokens_provider: Some(
            SemanticTokensOptions {
                legend: editing::legend(),
                full: Some(SemanticTokensFullOptions::Delta { delta: Some(true) }),
                range: Some(true),
                ..SemanticTokensOptions::default()
            }
            .into(),
        ),
        code_lens_provider: Some(CodeLensOptions { resolve_provider: Some(false) }),
        execute_command_provider: Some(ExecuteCommandOptions {
            commands: command::ALL.iter().map(|name| (*name).to_owned()).collect(),
            work_done_progress_options: WorkDoneProgressOptions { work_done_progress: Some(true) },
        }),
        workspace: Some(WorkspaceServerCapabilities {
            workspace_folders: Some(WorkspaceFoldersServerCapabilities {
                supported: Some(true),
                change_notifications: Some(OneOf::Left(true)),
            }),
            file_operations: Some(WorkspaceFileOperationsServerCapabilities {
                will_rename: Some(moved_files()),
                ..WorkspaceFileOperationsServerCapabilities::default()
            }),
        }),
        ..ServerCapabilities::default()
    }
}

/// Files, and folders with files, whose moves the server is asked about.
fn moved_files() -> FileOperationRegistrationOptions {
    let filter = |glob: String, matches: FileOperationPatternKind| FileOperationFilter {
        scheme: Some("file".to_owned()),
        pattern: FileOperationPattern { glob, matches: Some(matches), options: None },
    };
    let files = paths::EXTENSIONS
        .map(|extension| filter(format!("**/*.{extension}"), FileOperationPatternKind::File));
    let folders = filter("**".to_owned(), FileOperationPatternKind::Folder);
    FileOperationRegistrationOptions { filters: files.into_iter().chain([folders]).collect() }
}

/// Files with settings, by their names.
const PROJECT_FILES: [&str; 2] = ["tile.toml", "pyproject.toml"];

/// Files whose changes matter although no editor has them open, by their names.
const WATCHED: [&str; 5] = ["*.py", "*.tile", "*.npy", PROJECT_FILES[0], PROJECT_FILES[1]];

/// Whether a file is one with settings.
pub(crate) fn is_project_file(path: &Path) -> bool {
    PROJECT_FILES.iter().any(|name| path.ends_with(name))
}

/// Whether changes of a file matter although no editor has it open.
pub(crate) fn is_watched(path: &Path) -> bool {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return false };
    WATCHED.iter().any(|watched| match watched.strip_prefix('*') {
        Some(end) => name.ends_with(end),
        None => name == *watched,
    })
}

/// The kind of a watcher that tells of what is deleted alone.
const DELETED: u32 = 4;

/// What the server registers for with a client that lets it.
pub(crate) fn registrations(client: &ClientAbilities) -> Vec<Registration> {
    let mut registrations = Vec::new();
    let mut register = |id: &str, method: &str, options: serde_json::Value| {
        registrations.push(Registration {
            id: id.to_owned(),
            method: method.to_owned(),
            register_options: Some(options),
        });
    };
    if client.registers_watchers {
        let files = WATCHED.map(|name| json!({ "globPattern": format!("**/{name}") }));
        let folders = json!({ "globPattern": "**", "kind": DELETED });
        let watchers: Vec<_> = files.into_iter().chain([folders]).collect();
        let options = json!({ "watchers": watchers });
        register("tile.files", "workspace/didChangeWatchedFiles", options);
    }
    if client.registers_configuration {
        let options = json!({ "section": "tile" });
        register("tile.settings", "workspace/didChangeConfiguration", options);
    }
    registrations
}
