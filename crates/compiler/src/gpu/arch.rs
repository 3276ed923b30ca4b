//! Architectures of GPUs: what their names mean.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// An NVIDIA architecture, spelled `sm_90a`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Arch {
    /// Compute capability as one number: 80, 89, 90, ...
    pub capability: u32,
    /// Whether instructions specific to this very architecture may be used (`a`).
    pub specific: bool,
}

/// Why a text names no architecture that is supported.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ArchError {
    /// It is no name of one.
    #[error("`{0}` is not an architecture; write it like sm_90a")]
    Unknown(String),
    /// There is no code generation for it.
    #[error("`{0}` is not supported; sm_75 and later are")]
    Unsupported(String),
    /// The `a` of an architecture that has none.
    #[error(
        "`{text}` is not an architecture: those before sm_90 have no `a`; write sm_{capability}"
    )]
    NotSpecific {
        /// The text.
        text: String,
        /// The number in it.
        capability: u32,
    },
}

/// The oldest architecture that is supported, as a best effort.
const OLDEST: u32 = 75;
/// No architecture has a number beyond this one.
const LAST: u32 = 199;
/// The first architecture with instructions that no later one has.
const FIRST_SPECIFIC: u32 = 90;

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}{}", self.capability, if self.specific { "a" } else { "" })
    }
}

impl FromStr for Arch {
    type Err = ArchError;

    fn from_str(text: &str) -> Result<Arch, ArchError> {
        let unknown = || ArchError::Unknown(text.to_owned());
        let number = text.strip_prefix("sm_").ok_or_else(unknown)?;
        let (number, specific) = match number.strip_suffix('a') {
            Some(number) => (number, true),
            None => (number, false),
        };
        let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
        let capability: u32 = number.parse().ok().filter(|_| is_number).ok_or_else(unknown)?;
        if !(OLDEST..=LAST).contains(&capability) {
            return Err(ArchError::Unsupported(text.to_owned()));
        }
        if specific && capability < FIRST_SPECIFIC {
            return Err(ArchError::NotSpecific { text: text.to_owned(), capability });
        }
        Ok(Arch { capability, specific })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_wrong_ones_explained() {
        let parse = |text: &str| match text.parse::<Arch>() {
            Ok(arch) => arch.to_string(),
            Err(error) => error.to_string(),
        };
        let texts = ["sm_75", "sm_90a", "sm_120", "sm_1", "sm_80a", "sm_90aa", "sm_+90", "hopper"];
        expect_test::expect![[r#"
            sm_75
            sm_90a
            sm_120
            `sm_1` is not supported; sm_75 and later are
            `sm_80a` is not an architecture: those before sm_90 have no `a`; write sm_80
            `sm_90aa` is not an architecture; write it like sm_90a
            `sm_+90` is not an architecture; write it like sm_90a
            `hopper` is not an architecture; write it like sm_90a"#]]
        .assert_eq(&texts.map(parse).join("\n"));
    }
}
