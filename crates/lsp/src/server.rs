//! The protocol.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite};
use tower_lsp::jsonrpc::{Error, ErrorCode, Result};
use tower_lsp::ls_types::{
    DidCloseTextDocumentParams, DocumentDiagnosticParams, DocumentDiagnosticReportResult,
    InitializeParams, InitializeResult, InitializedParams,
};
use tower_lsp::{LanguageServer, LspService};

use crate::files::{Disk, FileSystem};

mod capabilities;
mod diagnostics;
mod ordered;
mod session;
mod state;
mod to_proto;
mod transport;

use ordered::{ApplyInOrder, Ordered};
use session::Session;
use state::{ReadError, Snapshot, State};

/// Stack of every thread that analyses: deep nesting in a source must not end the server.
const STACK_BYTES: usize = 64 << 20;

/// How to serve.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where files that are not open are read.
    pub files: Arc<dyn FileSystem>,
}

impl Default for Options {
    fn default() -> Options {
        Options { files: Arc::new(Disk) }
    }
}

/// Serves one client on standard input and output until it says `exit` or hangs up. True when the
/// client said `shutdown` before it left, as the protocol demands.
///
/// # Errors
/// When threads cannot be started.
pub fn serve(options: Options) -> std::io::Result<bool> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_stack_size(STACK_BYTES)
        .build()?;
    let stopped = runtime.block_on(serve_on(tokio::io::stdin(), tokio::io::stdout(), options));
    // A thread may still wait for input that will never come.
    runtime.shutdown_background();
    Ok(stopped)
}

/// Serves one client on any pair of streams. True when the client said `shutdown` before it left.
pub async fn serve_on<I, O>(input: I, output: O, options: Options) -> bool
where
    I: AsyncRead + Unpin,
    O: AsyncWrite + Unpin + Send + 'static,
{
    let mut shared = None;
    let (service, socket) = LspService::build(|client| {
        let state = Arc::new(State::new(client, options.files.clone()));
        shared = Some(state.clone());
        Server { state }
    })
    .finish();
    let state = shared.expect("invariant: the builder calls its argument");
    let background = tokio::spawn(diagnostics::push_loop(state.clone()));
    let service = Ordered::new(service, state.clone());
    transport::serve(input, output, service, socket).await;
    background.abort();
    state.is_shut_down()
}

/// Answers requests; see [`ApplyInOrder`] for notifications that change state.
#[derive(Debug)]
struct Server {
    state: Arc<State>,
}

impl Server {
    /// Answers a request from a snapshot, on a thread of its own.
    async fn read<T: Send + 'static>(
        &self,
        answer: impl Fn(&Snapshot) -> T + Send + 'static,
    ) -> Result<T> {
        let state = self.state.clone();
        let task = tokio::task::spawn_blocking(move || state.read(answer));
        match task.await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(ReadError::Overtaken)) => Err(Error::new(ErrorCode::ContentModified)),
            Ok(Err(ReadError::Panicked(text))) => Err(internal(text)),
            Err(error) => Err(internal(error.to_string())),
        }
    }
}

/// An error that is the server's fault. It goes on serving.
fn internal(text: String) -> Error {
    tracing::error!("a request failed: {text}");
    let message = format!("tile failed to answer this request ({text}); this is a defect of tile");
    Error { code: ErrorCode::InternalError, message: message.into(), data: None }
}

impl LanguageServer for Server {
    async fn initialize(&self, params: InitializeParams) -> Result<InitializeResult> {
        let session = Session::new(&params);
        let encoding = session.encoding;
        self.state.start_session(session);
        Ok(capabilities::initialize_result(encoding))
    }

    async fn initialized(&self, _: InitializedParams) {}

    async fn shutdown(&self) -> Result<()> {
        self.state.shut_down();
        Ok(())
    }

    async fn diagnostic(
        &self,
        params: DocumentDiagnosticParams,
    ) -> Result<DocumentDiagnosticReportResult> {
        self.read(move |snapshot| diagnostics::pull(snapshot, &params)).await
    }
}

impl ApplyInOrder for Arc<State> {
    fn apply(&self, method: &str, params: Option<&serde_json::Value>) {
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
            _ => {}
        }
    }
}

/// Hands typed parameters to `apply`; what does not fit is logged.
fn with<P: DeserializeOwned>(
    method: &str,
    params: Option<&serde_json::Value>,
    apply: impl FnOnce(P),
) {
    let value = params.unwrap_or(&serde_json::Value::Null);
    match P::deserialize(value) {
        Ok(params) => apply(params),
        Err(error) => tracing::warn!(method, %error, "notification ignored"),
    }
}
