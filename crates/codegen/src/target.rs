//! Target architectures: what their names mean.

use std::fmt;
use std::str::FromStr;

use crate::CodegenError;

/// What to compile for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Target {
    /// The architecture.
    pub arch: Arch,
}

/// An NVIDIA architecture, spelled `sm_90a`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Arch {
    /// Compute capability as one number: 80, 89, 90, ...
    pub capability: u32,
    /// Whether instructions specific to this very architecture may be used (`a`).
    pub specific: bool,
}

/// The newest architecture that LLVM 19 generates code for. Newer ones run the PTX of this one
/// (without its specific instructions), which the assembler or the driver translates.
const NEWEST: u32 = 90;
/// The oldest architecture that is supported, as a best effort.
const OLDEST: u32 = 75;

impl Arch {
    /// The architecture named in the PTX: this one, or the newest known one below it.
    pub(crate) fn virtual_arch(self) -> Arch {
        if self.capability > NEWEST { Arch { capability: NEWEST, specific: false } } else { self }
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}{}", self.capability, if self.specific { "a" } else { "" })
    }
}

impl FromStr for Arch {
    type Err = CodegenError;

    fn from_str(text: &str) -> Result<Arch, CodegenError> {
        let unknown = || CodegenError::UnknownArch(text.to_owned());
        let number = text.strip_prefix("sm_").ok_or_else(unknown)?;
        let (number, specific) = match number.strip_suffix('a') {
            Some(number) => (number, true),
            None => (number, false),
        };
        let capability: u32 = number.parse().map_err(|_| unknown())?;
        if !(OLDEST..=199).contains(&capability) || (specific && capability < 90) {
            return Err(unknown());
        }
        Ok(Arch { capability, specific })
    }
}
