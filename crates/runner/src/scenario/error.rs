//! What can be wrong with a scenario.

use thiserror::Error;
use tile_compiler::source::TextRange;

use super::launcher::LaunchFailure;

/// A scenario could not be run to its end.
#[derive(Debug, Clone, PartialEq, Error)]
#[error("{message}")]
pub struct ScenarioError {
    /// Where in the file, as the scenario's source map says.
    pub at: TextRange,
    /// One line that says what is wrong and what to do.
    pub message: String,
    /// When a launch failed: why.
    pub launch: Option<LaunchFailure>,
}

/// An error before its place is known: the nearest expression adds it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fault {
    pub at: Option<TextRange>,
    pub message: String,
    pub launch: Option<LaunchFailure>,
}

impl Fault {
    pub fn new(message: impl Into<String>) -> Fault {
        Fault { at: None, message: message.into(), launch: None }
    }

    /// The error at `at`, unless an inner expression has a place already.
    pub fn at(mut self, at: TextRange) -> Fault {
        self.at.get_or_insert(at);
        self
    }

    pub fn finish(self) -> ScenarioError {
        let at = self.at.unwrap_or_default();
        ScenarioError { at, message: self.message, launch: self.launch }
    }
}

impl From<LaunchFailure> for Fault {
    fn from(failure: LaunchFailure) -> Fault {
        Fault { at: None, message: failure.message().to_owned(), launch: Some(failure) }
    }
}

/// A failed computation of a value.
pub(super) type Eval<T> = Result<T, Fault>;

/// An error with a formatted message.
macro_rules! fault {
    ($($arg:tt)*) => { $crate::scenario::error::Fault::new(format!($($arg)*)) };
}

pub(super) use fault;
