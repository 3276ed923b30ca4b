//! What the server says it can do.

use serde_json::json;
use tower_lsp::ls_types::{
    CodeLensOptions, DiagnosticOptions, DiagnosticServerCapabilities, ExecuteCommandOptions,
    HoverProviderCapability, InitializeResult, OneOf, Registration, ServerCapabilities, ServerInfo,
    TextDocumentSyncCapability, TextDocumentSyncKind, TextDocumentSyncOptions,
    WorkDoneProgressOptions, WorkspaceFoldersServerCapabilities, WorkspaceServerCapabilities,
};

use crate::encoding::Encoding;
use crate::server::ext::command;
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
            workspace_diagnostics: false,
            ..DiagnosticOptions::default()
        })),
        hover_provider: Some(HoverProviderCapability::Simple(true)),
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
            ..WorkspaceServerCapabilities::default()
        }),
        ..ServerCapabilities::default()
    }
}

/// Files whose changes matter although no editor has them open.
const WATCHED: [&str; 4] = ["**/*.py", "**/*.tile", "**/tile.toml", "**/pyproject.toml"];

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
        let watchers: Vec<_> = WATCHED.iter().map(|glob| json!({ "globPattern": glob })).collect();
        let options = json!({ "watchers": watchers });
        register("tile.files", "workspace/didChangeWatchedFiles", options);
    }
    if client.registers_configuration {
        let options = json!({ "section": "tile" });
        register("tile.settings", "workspace/didChangeConfiguration", options);
    }
    registrations
}
