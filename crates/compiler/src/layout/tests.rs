//! The algebra against exhaustive enumeration: every claim about a layout is checked at every
//! hardware place of random and of known layouts.

mod conversions;
mod properties;
mod tables;
