//! Host code itself: statements, expressions, names and calls of the project's own functions.

pub(crate) mod agreement;
pub(crate) mod arguments;
pub(crate) mod assign;
pub(crate) mod calls;
pub(crate) mod certain;
pub(crate) mod claims;
pub(crate) mod doubt;
pub(crate) mod expr;
pub(crate) mod failing;
pub(crate) mod flow;
pub(crate) mod frame;
pub(crate) mod functions;
pub(crate) mod installed;
pub(crate) mod iterators;
pub(crate) mod names;
pub(crate) mod operators;
pub(crate) mod patterns;
pub(crate) mod rebound;
pub(crate) mod signature;
pub(crate) mod statics;
pub(crate) mod tuned;
pub(crate) mod wrapped;
