//! Conversions, against references of their own.
