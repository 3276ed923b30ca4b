//! What to compile for.

use std::str::FromStr;

pub use tile_compiler::gpu::arch::Arch;

use crate::CodegenError;

/// What to compile for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Target {
    /// The architecture.
    pub arch: Arch,
}

/// The newest architecture that LLVM 19 generates code for. Newer ones run the PTX of this one
/// (without its specific instructions), which the assembler or the driver translates.
const NEWEST: u32 = 90;

impl Target {
    /// The architecture named in the PTX: the target's, or the newest known one below it.
    pub(crate) fn virtual_arch(self) -> Arch {
        match self.arch {
            arch if arch.capability > NEWEST => Arch { capability: NEWEST, specific: false },
            arch => arch,
        }
    }
}

impl FromStr for Target {
    type Err = CodegenError;

    /// The target of an architecture's name.
    fn from_str(arch: &str) -> Result<Target, CodegenError> {
        Ok(Target { arch: arch.parse()? })
    }
}
