//! The protocol.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use tile_worker::{Cache, Pool, WorkerCommand};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Handle;
use tokio::sync::mpsc::unbounded_channel;
use tokio::task::JoinSet;
use tower_lsp::jsonrpc::{Error, ErrorCode, Result};
use tower_lsp::ls_types::request::{GotoTypeDefinitionParams, GotoTypeDefinitionResponse};
use tower_lsp::ls_types::{
    CallHierarchyIncomingCall, CallHierarchyIncomingCallsParams, CallHierarchyItem,
    CallHierarchyOutgoingCall, CallHierarchyOutgoingCallsParams, CallHierarchyPrepareParams,
    CodeActionParams, CodeActionResponse, CodeLens, CodeLensParams, CompletionItem,
    CompletionParams, CompletionResponse, ConfigurationItem, DidChangeConfigurationParams,
    DidChangeWatchedFilesParams, DidChangeWorkspaceFoldersParams, DidOpenTextDocumentParams,
    DocumentDiagnosticParams, DocumentDiagnosticReportResult, DocumentHighlight,
    DocumentHighlightParams, DocumentLink, DocumentLinkParams, DocumentSymbolParams,
    DocumentSymbolResponse, ExecuteCommandParams, FoldingRange, FoldingRangeParams,
    GotoDefinitionParams, GotoDefinitionResponse, Hover, HoverParams, InitializeParams,
    InitializeResult, InitializedParams, InlayHint, InlayHintParams, Location, MessageType,
    PrepareRenameResponse, ReferenceParams, RenameFilesParams, RenameParams, SelectionRange,
    SelectionRangeParams, SemanticTokensDelta, SemanticTokensDeltaParams,
    SemanticTokensFullDeltaResult, SemanticTokensParams, SemanticTokensRangeParams,
    SemanticTokensRangeResult, SemanticTokensResult, SignatureHelp, SignatureHelpParams,
    TextDocumentPositionParams, Uri, WorkspaceDiagnosticParams, WorkspaceDiagnosticReportResult,
    WorkspaceEdit, WorkspaceSymbolParams, WorkspaceSymbolResponse,
};
use tower_lsp::{LanguageServer, LspService};

use crate::compile::Compiler;
use crate::files::{Disk, FileSystem};

mod answering;
mod background;
mod capabilities;
mod commands;
mod configuration;
mod diagnostics;
#[cfg(test)]
mod documents;
mod ext;
mod heap;
mod notifications;
mod ordered;
mod progress;
mod project_file;
mod requests;
mod results;
mod session;
mod settings;
mod state;
mod to_proto;
mod transport;

use ext::{KernelsParams, ViewIrParams, ViewIrResult};
use ordered::Ordered;
pub use project_file::{Problem, ProjectRules, project_rules};
use requests::{editing, navigation, workspace};
use session::Session;
pub use settings::{SETTINGS, Setting};
use state::{ReadError, Request, Snapshot, State};
use transport::{DirectStdin, DirectStdout};

/// How to serve.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where files that are not open are read.
    pub files: Arc<dyn FileSystem>,
    /// How to start a worker; `None` compiles and runs nothing.
    pub worker: Option<WorkerCommand>,
    /// Where artifacts are kept.
    pub cache: Cache,
}

impl Default for Options {
    /// The machine's files, the user's cache, and this executable as its own worker.
    fn default() -> Options {
        let worker = WorkerCommand::current_exe().ok();
        Options { files: Arc::new(Disk), worker, cache: Cache::user() }
    }
}

/// Serves one client on standard input and output until it says `exit` or hangs up. True when the
/// client said `shutdown` before it left, as the protocol demands.
///
/// # Errors
/// When threads cannot be started.
pub fn serve(options: Options) -> std::io::Result<bool> {
    heap::limit();
    heap::give_back_code();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_stack_size(tile_compiler::eval::STACK_BYTES)
        .build()?;
    let (input, output) = (DirectStdin(std::io::stdin()), DirectStdout(std::io::stdout()));
    let stopped = runtime.block_on(serve_on(input, output, options));
    // What still works need not end first.
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
    .custom_method("tile/viewIr", Server::view_ir)
    .custom_method("tile/kernels", Server::kernels)
    .finish();
    let state = shared.expect("invariant: the builder calls its argument");
    let mut background = JoinSet::new();
    background.spawn(background::follow_changes(state.clone()));
    background.spawn(heap::give_back(state.clone()));
    if let Some(worker) = options.worker {
        let (events, received) = unbounded_channel();
        let pool = Arc::new(Pool::new(worker, options.cache));
        state.set_compiler(Arc::new(Compiler::new(pool, events, Handle::current())));
        background.spawn(background::tell_events(state.clone(), received));
    }
    let service = Ordered::new(service, state.clone());
    transport::serve(input, output, service, socket).await;
    background.shutdown().await;
    state.remove_views();
    state.is_shut_down()
}

/// Does work on a thread of its own.
pub(crate) async fn blocking<T: Send + 'static>(
    state: &Arc<State>,
    work: impl FnOnce(&State) -> Result<T> + Send + 'static,
) -> Result<T> {
    let _answer = state.answering.begin();
    let state = state.clone();
    let guarded = move || match catch_unwind(AssertUnwindSafe(|| work(&state))) {
        Ok(result) => result,
        Err(payload) => Err(internal(&state::panic_text(&*payload))),
    };
    let task = tokio::task::spawn_blocking(guarded).await;
    task.unwrap_or_else(|error| Err(internal(&error.to_string())))
}

/// An error that is the server's fault. It goes on serving.
fn internal(text: &str) -> Error {
    tracing::error!("a request failed: {text}");
    let message = format!("tile failed to answer this request ({text}); this is a defect of tile");
    Error { code: ErrorCode::InternalError, message: message.into(), data: None }
}

impl From<ReadError> for Error {
    fn from(error: ReadError) -> Error {
        match error {
            ReadError::Overtaken => Error::new(ErrorCode::ContentModified),
            ReadError::Panicked(text) => internal(&text),
            ReadError::Withdrawn => Error::request_cancelled(),
        }
    }
}

/// Withdraws a request when whoever waits for it is gone.
struct WithdrawOnDrop(Request);

impl Drop for WithdrawOnDrop {
    fn drop(&mut self) {
        self.0.withdraw();
    }
}

/// Answers requests; see [`notifications`] for notifications that change state.
#[derive(Debug)]
struct Server {
    state: Arc<State>,
}

impl Server {
    /// Answers a request from a snapshot.
    async fn read<T: Send + 'static>(
        &self,
        answer: impl Fn(&State, &Snapshot) -> T + Send + 'static,
    ) -> Result<T> {
        // A request that the client cancels is dropped here, and the work on it with it.
        let waiting = WithdrawOnDrop(Request::default());
        let request = waiting.0.clone();
        let read =
            move |state: &State| Ok(state.read_for(&request, |snapshot| answer(state, snapshot))?);
        blocking(&self.state, read).await
    }

    async fn view_ir(&self, params: ViewIrParams) -> Result<ViewIrResult> {
        requests::view_ir::view_ir(&self.state, params).await
    }

    async fn kernels(&self, params: KernelsParams) -> Result<Vec<ext::Kernel>> {
        let uri = params.text_document.uri;
        self.read(move |_, snapshot| requests::kernels::kernels(snapshot, &uri)).await
    }

    /// Takes over settings.
    async fn configure(&self, editor: Option<Value>) {
        let configured = blocking(&self.state, move |state| {
            state.configure(editor);
            Ok(())
        });
        // A panic was logged.
        let _ = configured.await;
    }

    /// Settings may have changed: tells what is wrong with them, and has the client ask again for
    /// what depends on them.
    async fn settings_changed(&self) {
        self.tell_problems().await;
        background::refresh_views(&self.state);
    }

    /// Tells what is wrong with settings: each problem once, and in project files as findings.
    async fn tell_problems(&self) {
        let (sentences, files) = self.state.settings_news();
        for sentence in sentences {
            self.state.client.show_message(MessageType::WARNING, sentence).await;
        }
        for (path, problems) in files {
            let Some(uri) = Uri::from_file_path(&path) else { continue };
            let encoding = self.state.session().map(|session| session.encoding).unwrap_or_default();
            let found = problems.iter().filter_map(|p| to_proto::setting_problem(encoding, p));
            self.state.client.publish_diagnostics(uri, found.collect(), None).await;
        }
    }

    /// Asks the client for its settings, in general and for each folder, where it can be asked.
    async fn ask_settings(&self) {
        if !self.state.session().is_some_and(|session| session.client.configuration) {
            return;
        }
        let folders = self.state.folders();
        let scopes =
            folders.iter().filter_map(|folder| Some((folder, Uri::from_file_path(folder)?)));
        let (folders, uris): (Vec<PathBuf>, Vec<Uri>) =
            scopes.map(|(folder, uri)| (folder.clone(), uri)).unzip();
        let section = || Some("tile".to_owned());
        let items = [None].into_iter().chain(uris.into_iter().map(Some));
        let items = items.map(|scope_uri| ConfigurationItem { scope_uri, section: section() });
        let values = match self.state.client.configuration(items.collect()).await {
            Ok(values) => values,
            Err(error) => {
                tracing::warn!(%error, "the client did not tell its settings");
                return;
            }
        };
        let mut values = values.into_iter();
        let Some(general) = values.next().filter(settings::says_something) else { return };
        let by_folder =
            folders.into_iter().zip(values).filter(|(_, value)| settings::says_something(value));
        let by_folder = by_folder.collect();
        let configured = blocking(&self.state, move |state| {
            state.configure_folders(general, by_folder);
            Ok(())
        });
        // A panic was logged.
        let _ = configured.await;
        self.settings_changed().await;
    }

    /// Registers for what clients announce only to those who ask.
    async fn register(&self) {
        let Some(session) = self.state.session() else { return };
        let registrations = capabilities::registrations(&session.client);
        if registrations.is_empty() {
            return;
        }
        if let Err(error) = self.state.client.register_capability(registrations).await {
            tracing::warn!(%error, "the client did not register");
        }
    }
}

impl LanguageServer for Server {
    async fn initialize(&self, params: InitializeParams) -> Result<InitializeResult> {
        let session = Session::new(&params);
        let encoding = session.encoding;
        self.state.start_session(session);
        self.configure(Some(params.initialization_options.unwrap_or_default())).await;
        Ok(capabilities::initialize_result(encoding))
    }

    async fn initialized(&self, _: InitializedParams) {
        // Nothing is published before the client knows that the server is there.
        self.tell_problems().await;
        self.register().await;
        self.ask_settings().await;
        let found = blocking(&self.state, |state| {
            if let Some(compiler) = state.compiler() {
                compiler.warm_up();
            }
            Ok(state.find_local_arch())
        });
        if found.await.unwrap_or_default() {
            self.configure(None).await;
            self.tell_problems().await;
        }
    }

    async fn shutdown(&self) -> Result<()> {
        self.state.shut_down();
        Ok(())
    }

    // What these notifications change was changed in order; see `notifications`.

    async fn did_change_configuration(&self, _: DidChangeConfigurationParams) {
        self.settings_changed().await;
        // What a client sends holds for no folder in particular; those are asked about.
        self.ask_settings().await;
    }

    async fn did_open(&self, params: DidOpenTextDocumentParams) {
        let state = self.state.clone();
        tokio::task::spawn_blocking(move || state.prepare_edits(&params.text_document.uri));
        self.tell_problems().await;
    }

    async fn did_change_watched_files(&self, params: DidChangeWatchedFilesParams) {
        let uris = params.changes.iter().map(|change| &change.uri);
        if !self.state.changed_files(uris).is_empty() {
            self.settings_changed().await;
        }
    }

    async fn did_change_workspace_folders(&self, _: DidChangeWorkspaceFoldersParams) {
        self.settings_changed().await;
        self.ask_settings().await;
    }

    async fn diagnostic(
        &self,
        params: DocumentDiagnosticParams,
    ) -> Result<DocumentDiagnosticReportResult> {
        self.read(move |_, snapshot| diagnostics::pull(snapshot, &params)).await
    }

    async fn hover(&self, params: HoverParams) -> Result<Option<Hover>> {
        self.read(move |state, snapshot| requests::hover::hover(state, snapshot, &params)).await
    }

    async fn code_lens(&self, params: CodeLensParams) -> Result<Option<Vec<CodeLens>>> {
        let uri = params.text_document.uri;
        self.read(move |state, snapshot| Some(requests::lenses::code_lenses(state, snapshot, &uri)))
            .await
    }

    async fn goto_definition(
        &self,
        params: GotoDefinitionParams,
    ) -> Result<Option<GotoDefinitionResponse>> {
        let at = params.text_document_position_params;
        self.read(move |state, snapshot| {
            navigation::definition(state, snapshot, &at).map(GotoDefinitionResponse::Scalar)
        })
        .await
    }

    async fn goto_type_definition(
        &self,
        params: GotoTypeDefinitionParams,
    ) -> Result<Option<GotoTypeDefinitionResponse>> {
        let at = params.text_document_position_params;
        self.read(move |_, snapshot| {
            navigation::type_definition(snapshot, &at).map(GotoDefinitionResponse::Scalar)
        })
        .await
    }

    async fn references(&self, params: ReferenceParams) -> Result<Option<Vec<Location>>> {
        let at = params.text_document_position;
        let declaration = params.context.include_declaration;
        self.read(move |state, snapshot| {
            Some(navigation::references(state, snapshot, &at, declaration))
        })
        .await
    }

    async fn symbol(
        &self,
        params: WorkspaceSymbolParams,
    ) -> Result<Option<WorkspaceSymbolResponse>> {
        let found = blocking(&self.state, move |state| {
            let paths = state.kernel_files();
            Ok(state.read(|snapshot| workspace::symbols(snapshot, &paths, &params.query))?)
        });
        Ok(Some(WorkspaceSymbolResponse::Flat(found.await?)))
    }

    async fn prepare_call_hierarchy(
        &self,
        params: CallHierarchyPrepareParams,
    ) -> Result<Option<Vec<CallHierarchyItem>>> {
        let at = params.text_document_position_params;
        self.read(move |_, snapshot| workspace::prepare_calls(snapshot, &at)).await
    }

    async fn incoming_calls(
        &self,
        params: CallHierarchyIncomingCallsParams,
    ) -> Result<Option<Vec<CallHierarchyIncomingCall>>> {
        self.read(move |state, snapshot| Some(workspace::incoming(state, snapshot, &params.item)))
            .await
    }

    async fn outgoing_calls(
        &self,
        params: CallHierarchyOutgoingCallsParams,
    ) -> Result<Option<Vec<CallHierarchyOutgoingCall>>> {
        self.read(move |_, snapshot| Some(workspace::outgoing(snapshot, &params.item))).await
    }

    async fn document_link(&self, params: DocumentLinkParams) -> Result<Option<Vec<DocumentLink>>> {
        let uri = params.text_document.uri;
        self.read(move |_, snapshot| Some(workspace::links(snapshot, &uri))).await
    }

    async fn workspace_diagnostic(
        &self,
        params: WorkspaceDiagnosticParams,
    ) -> Result<WorkspaceDiagnosticReportResult> {
        let waiting = WithdrawOnDrop(Request::default());
        let report = workspace::diagnose(&self.state, &waiting.0, params).await?;
        Ok(WorkspaceDiagnosticReportResult::Report(report))
    }

    async fn will_rename_files(&self, params: RenameFilesParams) -> Result<Option<WorkspaceEdit>> {
        self.read(move |state, snapshot| workspace::renamed_files(state, snapshot, &params.files))
            .await
    }

    async fn document_highlight(
        &self,
        params: DocumentHighlightParams,
    ) -> Result<Option<Vec<DocumentHighlight>>> {
        let at = params.text_document_position_params;
        self.read(move |_, snapshot| Some(navigation::highlights(snapshot, &at))).await
    }

    async fn prepare_rename(
        &self,
        params: TextDocumentPositionParams,
    ) -> Result<Option<PrepareRenameResponse>> {
        let range =
            self.read(move |_, snapshot| navigation::prepare_rename(snapshot, &params)).await??;
        Ok(range.map(PrepareRenameResponse::Range))
    }

    async fn rename(&self, params: RenameParams) -> Result<Option<WorkspaceEdit>> {
        let at = params.text_document_position;
        let rename = move |state: &State, snapshot: &Snapshot| {
            navigation::rename(state, snapshot, &at, &params.new_name)
        };
        self.read(rename).await?
    }

    async fn document_symbol(
        &self,
        params: DocumentSymbolParams,
    ) -> Result<Option<DocumentSymbolResponse>> {
        let uri = params.text_document.uri;
        let symbols = self.read(move |_, snapshot| navigation::symbols(snapshot, &uri)).await?;
        Ok(Some(DocumentSymbolResponse::Nested(symbols)))
    }

    async fn folding_range(&self, params: FoldingRangeParams) -> Result<Option<Vec<FoldingRange>>> {
        let uri = params.text_document.uri;
        self.read(move |_, snapshot| Some(navigation::folds(snapshot, &uri))).await
    }

    async fn selection_range(
        &self,
        params: SelectionRangeParams,
    ) -> Result<Option<Vec<SelectionRange>>> {
        let uri = params.text_document.uri;
        self.read(move |_, snapshot| {
            Some(navigation::selections(snapshot, &uri, &params.positions))
        })
        .await
    }

    async fn completion(&self, params: CompletionParams) -> Result<Option<CompletionResponse>> {
        let at = params.text_document_position;
        let items =
            self.read(move |state, snapshot| editing::completion(state, snapshot, &at)).await?;
        Ok(Some(CompletionResponse::Array(items)))
    }

    async fn completion_resolve(&self, item: CompletionItem) -> Result<CompletionItem> {
        Ok(editing::resolve(item))
    }

    async fn signature_help(&self, params: SignatureHelpParams) -> Result<Option<SignatureHelp>> {
        let at = params.text_document_position_params;
        self.read(move |state, snapshot| editing::signature_help(state, snapshot, &at)).await
    }

    async fn inlay_hint(&self, params: InlayHintParams) -> Result<Option<Vec<InlayHint>>> {
        let uri = params.text_document.uri;
        self.read(move |state, snapshot| {
            Some(editing::inlay_hints(state, snapshot, &uri, params.range))
        })
        .await
    }

    async fn semantic_tokens_full(
        &self,
        params: SemanticTokensParams,
    ) -> Result<Option<SemanticTokensResult>> {
        let uri = params.text_document.uri;
        let address = uri.clone();
        let tokens =
            self.read(move |_, snapshot| editing::semantic_tokens(snapshot, &address, None));
        let tokens = self.state.keep_tokens(uri, tokens.await?);
        Ok(Some(SemanticTokensResult::Tokens(tokens)))
    }

    async fn semantic_tokens_full_delta(
        &self,
        params: SemanticTokensDeltaParams,
    ) -> Result<Option<SemanticTokensFullDeltaResult>> {
        let uri = params.text_document.uri;
        let known = self.state.kept_tokens(&uri, &params.previous_result_id);
        let address = uri.clone();
        let tokens =
            self.read(move |_, snapshot| editing::semantic_tokens(snapshot, &address, None));
        let tokens = self.state.keep_tokens(uri, tokens.await?);
        Ok(Some(match known {
            Some(known) => SemanticTokensFullDeltaResult::TokensDelta(SemanticTokensDelta {
                result_id: tokens.result_id,
                edits: editing::token_edits(&known, &tokens.data),
            }),
            None => SemanticTokensFullDeltaResult::Tokens(tokens),
        }))
    }

    async fn semantic_tokens_range(
        &self,
        params: SemanticTokensRangeParams,
    ) -> Result<Option<SemanticTokensRangeResult>> {
        let uri = params.text_document.uri;
        let range = Some(params.range);
        let tokens =
            self.read(move |_, snapshot| editing::semantic_tokens(snapshot, &uri, range)).await?;
        Ok(Some(SemanticTokensRangeResult::Tokens(tokens)))
    }

    async fn code_action(&self, params: CodeActionParams) -> Result<Option<CodeActionResponse>> {
        self.read(move |state, snapshot| Some(editing::code_actions(state, snapshot, &params)))
            .await
    }

    async fn execute_command(&self, params: ExecuteCommandParams) -> Result<Option<Value>> {
        commands::execute(&self.state, params).await.map(Some)
    }
}
