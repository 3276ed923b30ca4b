//! Notifications that change the state, one after the other in the order in which they came.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;
use tower_lsp::ls_types::{
    DidChangeConfigurationParams, DidChangeWatchedFilesParams, DidChangeWorkspaceFoldersParams,
    DidCloseTextDocumentParams, FileEvent, WorkDoneProgressCancelParams,
};

use crate::server::capabilities::{is_project_file, is_watched};
use crate::server::ordered::ApplyInOrder;
use crate::server::settings;
use crate::server::state::State;

impl ApplyInOrder for Arc<State> {
    fn apply(&self, method: &str, params: Option<&Value>) {
        if self.session().is_none() || self.is_shut_down() {
            return;
        }
        match method {
            "textDocument/didOpen" => with(method, params, |params| self.open(params)),
            "textDocument/didChange" => with(method, params, |params| self.change(params)),
            "textDocument/didClose" => {
                with(method, params, |params: DidCloseTextDocumentParams| {
                    self.close(&params.text_document.uri);
                })
            }
            "workspace/didChangeWatchedFiles" => {
                with(method, params, |params: DidChangeWatchedFilesParams| {
                    let changed =
                        self.changed_files(params.changes.iter().map(|change| &change.uri));
                    // A folder that went may have held project files.
                    let may_hold_settings = |change: &FileEvent| {
                        let path = change.uri.to_file_path();
                        path.is_none_or(|path| is_project_file(&path) || !is_watched(&path))
                    };
                    let settings = params.changes.iter().any(may_hold_settings);
                    let matters = !changed.is_empty();
                    self.files_changed(changed);
                    if matters && settings {
                        self.configure(None);
                    }
                });
            }
            "workspace/didChangeWorkspaceFolders" => {
                with(method, params, |params: DidChangeWorkspaceFoldersParams| {
                    self.change_folders(&params.event);
                    self.configure(None);
                });
            }
            "workspace/didChangeConfiguration" => {
                with(method, params, |params: DidChangeConfigurationParams| {
                    let settings = params.settings;
                    let section = settings.get("tile").cloned().unwrap_or(settings);
                    if settings::says_something(&section) {
                        self.configure(Some(section));
                    }
                });
            }
            "window/workDoneProgress/cancel" => {
                with(method, params, |params: WorkDoneProgressCancelParams| {
                    self.cancel_run(&params.token);
                });
            }
            _ => {}
        }
    }
}

/// Hands typed parameters to `apply`; what does not fit is logged.
fn with<P: DeserializeOwned>(method: &str, params: Option<&Value>, apply: impl FnOnce(P)) {
    match P::deserialize(params.unwrap_or(&Value::Null)) {
        Ok(params) => apply(params),
        Err(error) => tracing::warn!(method, %error, "notification ignored"),
    }
}
