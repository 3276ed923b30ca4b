//! What a compilation yields: text per stage, machine code, resources, line map, manifest.
//!
//! These are plain data so that they cross process boundaries: the code generator fills them in a
//! worker process, and the command line and the language server read them without linking LLVM.

use serde::{Deserialize, Serialize};

use crate::source::FileId;

mod listing;

pub use listing::Listing;

/// Everything that one kernel under one specialization compiled to.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Artifact {
    /// GPU IR text; empty unless [`Keep::gpu`] was asked for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub gpu_ir: String,
    /// LLVM IR text after optimization; empty unless [`Keep::llvm`] was asked for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub llvm_ir: String,
    /// From lines of [`Artifact::llvm_ir`] to source lines.
    #[serde(default, skip_serializing_if = "LineMap::is_empty")]
    pub llvm_line_map: LineMap,
    /// PTX, debug line directives included.
    pub ptx: String,
    /// Machine code; `None` when no assembler was at hand.
    #[serde(default, with = "hex_bytes", skip_serializing_if = "Option::is_none")]
    pub cubin: Option<Vec<u8>>,
    /// Disassembled machine code; `None` unless [`Keep::sass`] was asked for and a disassembler
    /// was at hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sass: Option<Sass>,
    /// From PTX lines to source lines.
    pub line_map: LineMap,
    /// How to launch the machine code.
    pub manifest: Manifest,
    /// Measured resources; `None` when no assembler was at hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// Whether it multiplies matrices: accumulators then fill the registers by design.
    #[serde(default)]
    pub has_products: bool,
    /// Time spent in each stage of the back end.
    pub timings: Timings,
}

/// Which texts an [`Artifact`] keeps besides PTX.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Keep {
    /// GPU IR.
    pub gpu: bool,
    /// LLVM IR.
    pub llvm: bool,
    /// Disassembled machine code.
    pub sass: bool,
}

/// Disassembled machine code.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Sass {
    /// The listing.
    pub text: String,
    /// From its lines to source lines.
    pub line_map: LineMap,
}

/// From the lines of a generated text to the user's source.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LineMap {
    /// Runs of generated lines, sorted by start and disjoint. A line in no run belongs to no
    /// source line (directives, prologue).
    pub runs: Vec<LineRun>,
}

/// Consecutive generated lines that come from one place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineRun {
    /// First generated line, from 0.
    pub start: u32,
    /// One past the last generated line.
    pub end: u32,
    /// The place: the kernel's own line first, then the lines inside inlined helpers, outermost
    /// helper first. Never empty.
    pub frames: Vec<Frame>,
}

/// One source place of an inlining chain.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Frame {
    /// The file, as numbered in the IR's locations.
    pub file: FileId,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1; 0 when unknown.
    pub col: u32,
    /// The function that the line stands in.
    pub function: String,
}

impl LineMap {
    /// True when no line belongs to a source line.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The inlining chain of a generated line (from 0); empty when it belongs to no source line.
    pub fn frames(&self, line: u32) -> &[Frame] {
        let at = self.runs.partition_point(|run| run.end <= line);
        match self.runs.get(at) {
            Some(run) if run.start <= line => &run.frames,
            _ => &[],
        }
    }
}

/// Everything that anyone needs to launch the machine code with the CUDA driver alone.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Manifest {
    /// Name of the entry function.
    pub entry: String,
    /// Target architecture, such as `sm_90a`.
    pub arch: String,
    /// Parameters in launch order; constexpr and folded arguments are left out.
    pub params: Vec<ManifestParam>,
    /// Warps per CTA.
    pub num_warps: u32,
    /// Threads of a CTA in x, y and z.
    pub block: [u32; 3],
    /// Dynamic shared memory to ask for at launch, in bytes.
    pub shared_bytes: u32,
    /// CTAs of a cluster in x, y and z.
    pub cluster: [u32; 3],
    /// Global scratch memory per CTA, in bytes; 0 when the kernel takes none.
    pub scratch_bytes: u64,
    /// Tensor maps, in launch order: parameters of 128 bytes each, aligned to 64, behind all others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tensor_maps: Vec<TensorMap>,
}

/// What the launcher has `cuTensorMapEncodeTiled` of the CUDA driver make of a launch's arguments. The
/// driver counts axes from the innermost, here the outermost comes first. Element strides are 1, nothing is
/// interleaved, the L2 is promoted to 128 bytes (which changes speed alone), and what is read outside of
/// the tensor is zero.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TensorMap {
    /// Element type in Triton's spelling; the driver need know no more than its size.
    #[serde(rename = "type")]
    pub ty: String,
    /// Name of the parameter that points to the tensor, at a multiple of 16 bytes.
    pub base: String,
    /// Extent of each axis; where one is not positive, 1.
    pub shape: Vec<ProductOfParams>,
    /// Distance between neighbors along each axis but the last, where they are adjacent: in elements, and a
    /// multiple of 16 bytes.
    pub strides: Vec<ProductOfParams>,
    /// Extents of the box that one instruction copies.
    #[serde(rename = "box")]
    pub extents: Vec<u32>,
    /// How rows are permuted in shared memory: `CU_TENSOR_MAP_SWIZZLE_32B`, `_64B` or `_128B`.
    pub swizzle_bytes: u32,
}

/// A number that follows from a launch's arguments: the product of some, in 64 bits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProductOfParams {
    /// What the parameters are multiplied by.
    pub factor: i64,
    /// Names of the parameters, which are signed integers.
    pub params: Vec<String>,
}

/// A launch parameter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestParam {
    /// Its name in the source.
    pub name: String,
    /// Triton's signature spelling: `*fp16`, `i32`, `fp32`, ...
    #[serde(rename = "type")]
    pub ty: String,
}

/// What the machine code uses, as measured by the assembler and read from the cubin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Resources {
    /// Registers per thread.
    pub registers: u32,
    /// Shared memory per CTA, static and dynamic, in bytes.
    pub shared_bytes: u32,
    /// Bytes of spill loads per thread.
    pub spill_load_bytes: u32,
    /// Bytes of spill stores per thread.
    pub spill_store_bytes: u32,
    /// Stack frame per thread, in bytes.
    pub stack_bytes: u32,
    /// Resident warps over the multiprocessor's limit, 0 to 1.
    pub occupancy: f64,
    /// What bounds the occupancy.
    pub limited_by: Limit,
    /// Who measured: `ptxas 12.9.86`.
    pub source: String,
}

/// What bounds the number of resident CTAs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Limit {
    /// The register file.
    Registers,
    /// Shared memory.
    Shared,
    /// The limit of warps.
    Warps,
    /// The limit of CTAs.
    Blocks,
}

impl Limit {
    /// The name used in output.
    pub fn name(self) -> &'static str {
        match self {
            Limit::Registers => "registers",
            Limit::Shared => "shared",
            Limit::Warps => "warps",
            Limit::Blocks => "blocks",
        }
    }
}

/// Milliseconds spent in the stages of the back end.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Timings {
    /// Tile and GPU IR passes.
    pub passes: f64,
    /// LLVM, from GPU IR to PTX.
    pub llvm: f64,
    /// The assembler.
    pub ptxas: f64,
}

/// Bytes as a hexadecimal string, which JSON carries at two characters a byte.
mod hex_bytes {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(
        bytes: &Option<Vec<u8>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let Some(bytes) = bytes else { return serializer.serialize_none() };
        let mut text = String::with_capacity(bytes.len() * 2);
        for byte in bytes {
            text.push(char::from(DIGITS[usize::from(byte >> 4)]));
            text.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
        serializer.serialize_str(&text)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Vec<u8>>, D::Error> {
        let Some(text) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
        let digit = |c: u8| char::from(c).to_digit(16).map(|d| d as u8);
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        let bytes: Option<Vec<u8>> =
            pairs.iter().map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?)).collect();
        match bytes {
            Some(bytes) if rest.is_empty() => Ok(Some(bytes)),
            _ => Err(D::Error::custom("not a string of hexadecimal bytes")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn artifacts_survive_a_trip_through_json() {
        let artifact = Artifact { cubin: Some(vec![0, 127, 255]), ..Artifact::default() };
        let json = serde_json::to_string(&artifact).unwrap();
        assert!(json.contains(r#""cubin":"007fff""#), "{json}");
        assert_eq!(serde_json::from_str::<Artifact>(&json).unwrap(), artifact);
        let odd = json.replace("007fff", "007ff");
        assert!(serde_json::from_str::<Artifact>(&odd).is_err());
    }

    #[test]
    fn a_line_outside_every_run_has_no_frames() {
        let frame = Frame { file: FileId(0), line: 7, col: 1, function: "k".into() };
        let run = |start, end| LineRun { start, end, frames: vec![frame.clone()] };
        let map = LineMap { runs: vec![run(2, 4), run(6, 7)] };
        let lines: Vec<bool> = (0..8).map(|line| !map.frames(line).is_empty()).collect();
        assert_eq!(lines, [false, false, true, true, false, false, true, false]);
    }
}
