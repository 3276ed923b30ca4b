//! Versions of Triton.

use serde::{Deserialize, Serialize};

/// A version of Triton whose rules apply.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
pub enum TritonVersion {
    /// Triton 3.6.
    #[serde(rename = "3.6")]
    V3_6,
    /// Triton 3.9.
    #[default]
    #[serde(rename = "3.9")]
    V3_9,
}
