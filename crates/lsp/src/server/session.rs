//! What was agreed with the client when it connected.

use std::path::PathBuf;

use tower_lsp::ls_types::{
    ClientCapabilities, DiagnosticTag, InitializeParams, TextDocumentClientCapabilities,
};

use crate::encoding::Encoding;

/// What was agreed with the client.
#[derive(Debug)]
pub(crate) struct Session {
    /// How positions count.
    pub(crate) encoding: Encoding,
    /// What the client can do.
    pub(crate) client: ClientAbilities,
    /// Folders of the workspace at the start.
    pub(crate) folders: Vec<PathBuf>,
}

/// Tags of diagnostics that the client shows.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tags {
    /// It fades what is unnecessary.
    pub(crate) unnecessary: bool,
    /// It strikes out what is deprecated.
    pub(crate) deprecated: bool,
}

/// The abilities of a client that the server asks about.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ClientAbilities {
    /// It pulls diagnostics, so none are pushed.
    pub(crate) pulls_diagnostics: bool,
    /// It pulls again when told that diagnostics changed.
    pub(crate) refreshes_diagnostics: bool,
    /// It asks for code lenses again when told so.
    pub(crate) refreshes_lenses: bool,
    /// It asks for inlay hints again when told so.
    pub(crate) refreshes_hints: bool,
    /// It asks for semantic tokens again when told so.
    pub(crate) refreshes_tokens: bool,
    /// Tags of diagnostics that it shows.
    pub(crate) tags: Tags,
    /// It takes parameters as parts of the text of a signature.
    pub(crate) label_offsets: bool,
    /// It fills in snippets.
    pub(crate) snippets: bool,
    /// It answers `workspace/configuration`.
    pub(crate) configuration: bool,
    /// It lets the server register for changes of settings.
    pub(crate) registers_configuration: bool,
    /// It lets the server register for changes of files.
    pub(crate) registers_watchers: bool,
    /// It shows progress that the server starts.
    pub(crate) progress: bool,
    /// It opens documents for the server.
    pub(crate) shows_documents: bool,
    /// It shows results of runs by itself.
    pub(crate) shows_results: bool,
    /// It wants the notifications of compiles.
    pub(crate) kernel_status: bool,
}

impl Session {
    /// Reads what the client said.
    pub(crate) fn new(params: &InitializeParams) -> Session {
        Session {
            encoding: Encoding::negotiate(&params.capabilities),
            client: ClientAbilities::new(&params.capabilities),
            folders: folders(params),
        }
    }
}

#[allow(deprecated, reason = "clients without workspace folders still name their root")]
fn folders(params: &InitializeParams) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = params
        .workspace_folders
        .iter()
        .flatten()
        .filter_map(|folder| Some(folder.uri.to_file_path()?.into_owned()))
        .collect();
    if folders.is_empty() {
        folders.extend(params.root_uri.as_ref().and_then(|uri| Some(uri.to_file_path()?.into())));
    }
    folders
}

fn tags(document: Option<&TextDocumentClientCapabilities>) -> Tags {
    let published = document.and_then(|document| document.publish_diagnostics.as_ref());
    let known = published.and_then(|published| published.tag_support.as_ref());
    let shows = |tag| known.is_some_and(|known| known.value_set.contains(&tag));
    Tags {
        unnecessary: shows(DiagnosticTag::UNNECESSARY),
        deprecated: shows(DiagnosticTag::DEPRECATED),
    }
}

impl ClientAbilities {
    fn new(capabilities: &ClientCapabilities) -> ClientAbilities {
        let document = capabilities.text_document.as_ref();
        let workspace = capabilities.workspace.as_ref();
        let window = capabilities.window.as_ref();
        let tile = capabilities.experimental.as_ref().and_then(|all| all.get("tile"));
        let says = |name: &str| tile.and_then(|tile| tile.get(name)?.as_bool()).unwrap_or(false);
        ClientAbilities {
            pulls_diagnostics: document.is_some_and(|document| document.diagnostic.is_some()),
            refreshes_diagnostics: workspace
                .and_then(|w| w.diagnostics.as_ref()?.refresh_support)
                .unwrap_or(false),
            refreshes_lenses: workspace
                .and_then(|w| w.code_lens.as_ref()?.refresh_support)
                .unwrap_or(false),
            refreshes_hints: workspace
                .and_then(|w| w.inlay_hint.as_ref()?.refresh_support)
                .unwrap_or(false),
            refreshes_tokens: workspace
                .and_then(|w| w.semantic_tokens.as_ref()?.refresh_support)
                .unwrap_or(false),
            tags: tags(document),
            label_offsets: document
                .and_then(|document| {
                    document.signature_help.as_ref()?.signature_information.as_ref()
                })
                .and_then(|known| known.parameter_information.as_ref()?.label_offset_support)
                .unwrap_or(false),
            snippets: document
                .and_then(|document| document.completion.as_ref()?.completion_item.as_ref())
                .and_then(|item| item.snippet_support)
                .unwrap_or(false),
            configuration: workspace.and_then(|w| w.configuration).unwrap_or(false),
            registers_configuration: workspace
                .and_then(|w| w.did_change_configuration.as_ref()?.dynamic_registration)
                .unwrap_or(false),
            registers_watchers: workspace
                .and_then(|w| w.did_change_watched_files.as_ref()?.dynamic_registration)
                .unwrap_or(false),
            progress: window.and_then(|w| w.work_done_progress).unwrap_or(false),
            shows_documents: window
                .and_then(|w| w.show_document.as_ref())
                .is_some_and(|show| show.support),
            shows_results: says("showsResults"),
            kernel_status: says("kernelStatus"),
        }
    }
}
