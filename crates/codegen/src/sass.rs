//! The disassembler: machine code to a listing.

use std::path::Path;
use std::process::{Command, Stdio};

use tile_compiler::artifact::{LineMap, Sass};

use crate::CodegenError;

/// Disassembles `cubin`.
///
/// # Errors
/// When the tool cannot be run or rejects the file.
pub(crate) fn disassemble(nvdisasm: &Path, cubin: &[u8]) -> Result<Sass, CodegenError> {
    let io = |source| CodegenError::Disassemble { message: format!("{source}") };
    let mut file = tempfile::NamedTempFile::new().map_err(io)?;
    std::io::Write::write_all(&mut file, cubin).map_err(io)?;
    let output = Command::new(nvdisasm)
        .arg("-c")
        .arg(file.path())
        .stdin(Stdio::null())
        .output()
        .map_err(io)?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(CodegenError::Disassemble { message });
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(Sass { text, line_map: LineMap::default() })
}
