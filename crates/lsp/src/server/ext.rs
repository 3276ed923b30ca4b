//! What the protocol has beyond the standard; docs/protocol.md is its specification.

use serde::{Deserialize, Serialize};
use tower_lsp::ls_types::notification::Notification;
use tower_lsp::ls_types::{Position, Range, TextDocumentIdentifier, Uri};

/// Names of the commands.
pub(crate) mod command {
    /// Runs scenarios.
    pub(crate) const RUN: &str = "tile.runKernel";
    /// Times scenarios.
    pub(crate) const BENCH: &str = "tile.benchKernel";
    /// Writes a stage of a kernel into a file.
    pub(crate) const VIEW_IR: &str = "tile.viewIr";
    /// Chooses a specialization.
    pub(crate) const SELECT: &str = "tile.selectSpecialization";
    /// Compiles and measures every specialization.
    pub(crate) const MEASURE: &str = "tile.measureConfigurations";
    /// Times autotune configurations.
    pub(crate) const TUNE: &str = "tile.tuneKernel";
    /// Starts workers anew.
    pub(crate) const RESTART: &str = "tile.restartWorker";
    /// Every command.
    pub(crate) const ALL: [&str; 7] = [RUN, BENCH, VIEW_IR, SELECT, MEASURE, TUNE, RESTART];
}

/// A stage of compilation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum IrStage {
    Ast,
    Tile,
    Gpu,
    Llvm,
    Ptx,
    Sass,
}

impl IrStage {
    /// The id of the text's language.
    pub(crate) fn language(self) -> &'static str {
        match self {
            IrStage::Ast | IrStage::Tile | IrStage::Gpu => "tile-ir",
            IrStage::Llvm => "llvm",
            IrStage::Ptx => "ptx",
            IrStage::Sass => "nvsass",
        }
    }

    /// The extension of a file that holds the text.
    pub(crate) fn extension(self) -> &'static str {
        match self {
            IrStage::Ast => "ast.tir",
            IrStage::Tile => "tile.tir",
            IrStage::Gpu => "gpu.tir",
            IrStage::Llvm => "ll",
            IrStage::Ptx => "ptx",
            IrStage::Sass => "sass",
        }
    }
}

/// A specialization by its place in the list or by its label.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(crate) enum SpecializationId {
    Index(usize),
    Label(String),
}

/// Parameters of `tile/viewIr`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ViewIrParams {
    pub(crate) text_document: TextDocumentIdentifier,
    #[serde(default)]
    pub(crate) kernel: Option<String>,
    #[serde(default)]
    pub(crate) position: Option<Position>,
    pub(crate) stage: IrStage,
    #[serde(default)]
    pub(crate) specialization: Option<SpecializationId>,
    #[serde(default)]
    pub(crate) raw: bool,
}

/// Result of `tile/viewIr`.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ViewIrResult {
    pub(crate) kernel: String,
    pub(crate) specialization: String,
    pub(crate) origin: &'static str,
    pub(crate) stage: IrStage,
    pub(crate) language_id: &'static str,
    pub(crate) text: String,
    pub(crate) line_map: Vec<LineMapEntry>,
    pub(crate) stale: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resources: Option<Resources>,
}

/// Lines of a generated text and a source line that they came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct LineMapEntry {
    pub(crate) source: SourceLine,
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// A line of a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct SourceLine {
    pub(crate) uri: Uri,
    pub(crate) line: u32,
}

/// What a kernel takes of a multiprocessor.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Resources {
    pub(crate) registers: u32,
    pub(crate) shared_bytes: u32,
    pub(crate) spill_load_bytes: u32,
    pub(crate) spill_store_bytes: u32,
    pub(crate) occupancy: f64,
    pub(crate) limited_by: &'static str,
    pub(crate) arch: String,
    pub(crate) source: String,
}

impl Resources {
    /// From what a compile for `arch` measured.
    pub(crate) fn new(resources: &tile_compiler::artifact::Resources, arch: &str) -> Resources {
        Resources {
            registers: resources.registers,
            shared_bytes: resources.shared_bytes,
            spill_load_bytes: resources.spill_load_bytes,
            spill_store_bytes: resources.spill_store_bytes,
            occupancy: resources.occupancy,
            limited_by: resources.limited_by.name(),
            arch: arch.to_owned(),
            source: resources.source.clone(),
        }
    }
}

/// Parameters of `tile/kernels`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct KernelsParams {
    pub(crate) text_document: TextDocumentIdentifier,
}

/// A kernel of a document.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Kernel {
    pub(crate) name: String,
    pub(crate) range: Range,
    pub(crate) selection_range: Range,
    pub(crate) specializations: Vec<Specialization>,
}

/// A specialization of a kernel.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Specialization {
    pub(crate) label: String,
    pub(crate) origin: &'static str,
    pub(crate) active: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) repaired: Vec<String>,
}

/// The argument of the commands about one kernel.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct KernelTarget {
    pub(crate) uri: Uri,
    pub(crate) kernel: String,
    #[serde(default)]
    pub(crate) scenario: Option<usize>,
    #[serde(default)]
    pub(crate) device: Option<String>,
    #[serde(default)]
    pub(crate) stage: Option<IrStage>,
    /// Absent, `null` and a value are three things.
    #[serde(default, deserialize_with = "present")]
    pub(crate) specialization: Option<Option<SpecializationId>>,
}

fn present<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Option<SpecializationId>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// `tile/irChanged`.
#[derive(Debug)]
pub(crate) enum IrChanged {}

impl Notification for IrChanged {
    type Params = IrChangedParams;
    const METHOD: &'static str = "tile/irChanged";
}

/// Parameters of `tile/irChanged`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct IrChangedParams {
    pub(crate) uri: Uri,
    pub(crate) kernel: String,
}

/// `tile/kernelStatus`.
#[derive(Debug)]
pub(crate) enum KernelStatus {}

impl Notification for KernelStatus {
    type Params = serde_json::Value;
    const METHOD: &'static str = "tile/kernelStatus";
}

/// Parameters of `tile/kernelStatus`.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct KernelStatusParams {
    pub(crate) uri: Uri,
    pub(crate) kernel: String,
    pub(crate) specialization: String,
    pub(crate) state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resources: Option<Resources>,
}
