//! Layouts: placeholder until the algebra lands.

/// A layout.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LinearLayout;
