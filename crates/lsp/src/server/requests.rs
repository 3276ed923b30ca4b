//! Answers to requests, a file for each that needs more than a conversion.

pub(crate) mod editing;
pub(crate) mod hover;
pub(crate) mod kernels;
pub(crate) mod lenses;
pub(crate) mod navigation;
pub(crate) mod view_ir;
pub(crate) mod workspace;

use tower_lsp::jsonrpc::{Error, ErrorCode};

/// LSP's `RequestFailed`.
const REQUEST_FAILED: i64 = -32803;

/// A failure whose message is fit for the user.
pub(crate) fn failed(message: impl Into<String>) -> Error {
    let code = ErrorCode::ServerError(REQUEST_FAILED);
    Error { code, message: message.into().into(), data: None }
}
