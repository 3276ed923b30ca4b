//! What host code runs in: the code of a function or of an expression, and the variables so far.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::hir::{Arg, Body, ExprId, Function, Name, SourceMap};
use crate::host::code::flow::Exits;
use crate::host::value::Value;
use crate::host::value::changes::Names;
use crate::source::{FileId, FileRange, TextRange};

/// A running function, or an expression being evaluated.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    pub(crate) file: FileId,
    /// Where names are looked up that are no variables.
    pub(crate) scope: Arc<[Name]>,
    /// That of the function in which the running one stands, where it was made there.
    pub(crate) around: Option<Arc<Frame>>,
    pub(crate) code: Code,
    pub(crate) variables: Variables,
    /// Whether the functions of scenarios (`randn`, `cdiv`) are in scope.
    pub(crate) scenario: bool,
    /// The ways out that may have been taken.
    pub(crate) exits: Exits,
    /// Which variables change together.
    pub(crate) names: Names,
    /// Variables that hold what callers choose.
    pub(crate) open: FxHashSet<Name>,
}

/// The code that a frame runs.
#[derive(Debug, Clone)]
pub(crate) enum Code {
    /// A function's body.
    Function(Arc<Function>),
    /// An expression's body, and where its parts stand where that may be asked.
    Body(Arc<Body>, Option<Arc<SourceMap>>),
}

/// Variables by name.
pub(crate) type Variables = FxHashMap<Name, Value>;

impl Frame {
    pub(crate) fn new(file: FileId, scope: &[Name], code: Code, variables: Variables) -> Frame {
        let (scope, exits, names) = (Arc::from(scope), Exits::default(), Names::default());
        let open = FxHashSet::default();
        let (around, scenario) = (None, false);
        Frame { file, scope, around, code, variables, scenario, exits, names, open }
    }

    /// What `locals()` gives.
    pub(crate) fn as_dict(&self) -> Value {
        let entry = |(name, value): (&Name, &Value)| (Value::Str(name.clone()), value.clone());
        Value::Dict(self.variables.iter().map(entry).collect())
    }

    /// That of the function around whose scope is `scope`.
    pub(crate) fn of_scope(&self, scope: &[Name]) -> Option<&Arc<Frame>> {
        let mut frame = self.around.as_ref();
        while let Some(around) = frame.filter(|around| around.scope[..] != *scope) {
            frame = around.around.as_ref();
        }
        frame
    }

    /// From the callee to the last argument.
    pub(crate) fn call_place(&self, callee: ExprId, args: &[Arg]) -> Option<FileRange> {
        let callee = self.place(callee)?;
        let last = args.last().and_then(|arg| self.place(arg.value)).unwrap_or(callee);
        Some(FileRange { range: callee.range.cover(last.range), ..callee })
    }

    /// Where an expression of the running code stands.
    pub(crate) fn place(&self, expr: ExprId) -> Option<FileRange> {
        self.code.range(expr).map(|range| FileRange { file: self.file, range })
    }
}

impl Code {
    pub(crate) fn body(&self) -> &Body {
        match self {
            Code::Function(function) => &function.body,
            Code::Body(body, _) => body,
        }
    }

    pub(crate) fn range(&self, expr: ExprId) -> Option<TextRange> {
        self.map().map(|map| map.exprs[expr])
    }

    /// Where the parts of the body stand, if that is known.
    pub(crate) fn map(&self) -> Option<&SourceMap> {
        match self {
            Code::Function(function) => Some(&function.map),
            Code::Body(_, map) => map.as_deref(),
        }
    }
}
