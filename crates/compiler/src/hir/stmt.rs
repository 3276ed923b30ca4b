//! Statements, and the patterns of `match`.

use super::{BinaryOp, ExprId, StmtId};

/// A statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stmt {
    /// An expression for its effect.
    Expr(ExprId),
    /// `a = b = value`.
    Assign {
        /// Targets, leftmost first.
        targets: Vec<ExprId>,
        /// The value.
        value: ExprId,
    },
    /// `target op= value`.
    AugAssign {
        /// The target.
        target: ExprId,
        /// The operator.
        op: BinaryOp,
        /// The value.
        value: ExprId,
    },
    /// `target: annotation = value`.
    AnnAssign {
        /// The target.
        target: ExprId,
        /// The annotation.
        annotation: ExprId,
        /// The value, if there is one.
        value: Option<ExprId>,
    },
    /// `if`; `elif` is an `if` in `orelse`.
    If {
        /// The condition.
        test: ExprId,
        /// When true.
        body: Vec<StmtId>,
        /// When false.
        orelse: Vec<StmtId>,
    },
    /// `for`.
    For {
        /// The target.
        target: ExprId,
        /// What is iterated.
        iter: ExprId,
        /// The body.
        body: Vec<StmtId>,
        /// `else`.
        orelse: Vec<StmtId>,
    },
    /// `while`.
    While {
        /// The condition.
        test: ExprId,
        /// The body.
        body: Vec<StmtId>,
        /// `else`.
        orelse: Vec<StmtId>,
    },
    /// `with`.
    With {
        /// Context managers with their targets.
        items: Vec<(ExprId, Option<ExprId>)>,
        /// The body.
        body: Vec<StmtId>,
    },
    /// `try`, or `try` with `except*`. No kernel may use it.
    Try {
        /// What may raise.
        body: Vec<StmtId>,
        /// `except` clauses.
        handlers: Vec<Handler>,
        /// `else`.
        orelse: Vec<StmtId>,
        /// `finally`.
        finally: Vec<StmtId>,
    },
    /// `match`. No kernel may use it.
    Match {
        /// What is looked at.
        subject: ExprId,
        /// The cases in order.
        cases: Vec<Case>,
    },
    /// `return`.
    Return(Option<ExprId>),
    /// `assert`.
    Assert {
        /// The condition.
        test: ExprId,
        /// The message.
        message: Option<ExprId>,
    },
    /// `pass`, or a docstring.
    Pass,
    /// Python that kernels may not use, by the name of its syntax tree node in Python's `ast`
    /// (`Break`, `Try`, `FunctionDef`, ...).
    Unsupported(&'static str),
    /// Text that did not parse; absorbs silently (the syntax error is reported elsewhere).
    Error,
}

impl Stmt {
    /// What the statement itself binds.
    pub fn targets(&self) -> Vec<ExprId> {
        match self {
            Stmt::Assign { targets, .. } => targets.clone(),
            Stmt::AugAssign { target, .. }
            | Stmt::AnnAssign { target, .. }
            | Stmt::For { target, .. } => vec![*target],
            Stmt::With { items, .. } => items.iter().filter_map(|(_, target)| *target).collect(),
            Stmt::Try { handlers, .. } => handlers.iter().filter_map(|it| it.target).collect(),
            Stmt::Match { cases, .. } => {
                cases.iter().flat_map(|case| case.pattern.targets()).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The blocks directly inside the statement.
    pub fn blocks(&self) -> Vec<&[StmtId]> {
        match self {
            Stmt::If { body, orelse, .. }
            | Stmt::For { body, orelse, .. }
            | Stmt::While { body, orelse, .. } => vec![body, orelse],
            Stmt::With { body, .. } => vec![body],
            Stmt::Try { body, handlers, orelse, finally } => {
                let handlers = handlers.iter().map(|handler| &*handler.body);
                [body.as_slice(), orelse, finally].into_iter().chain(handlers).collect()
            }
            Stmt::Match { cases, .. } => cases.iter().map(|case| &*case.body).collect(),
            _ => Vec::new(),
        }
    }
}

/// An `except` clause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handler {
    /// The exceptions that it takes: an expression, or all of them.
    pub kinds: Option<ExprId>,
    /// What the exception is bound to.
    pub target: Option<ExprId>,
    /// What runs.
    pub body: Vec<StmtId>,
}

/// A `case` clause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// What the subject must look like.
    pub pattern: Pattern,
    /// The condition behind `if`.
    pub guard: Option<ExprId>,
    /// What runs.
    pub body: Vec<StmtId>,
}

/// What a `case` takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pattern {
    /// What equals a literal or a dotted name.
    Value(ExprId),
    /// Anything, which a name is bound to unless the pattern is `_`.
    Capture(Option<ExprId>),
    /// What one of several patterns takes.
    Or(Vec<Pattern>),
    /// A sequence of as many elements, without a starred one.
    Sequence(Vec<Pattern>),
    /// What a pattern takes, under a name.
    As(Box<Pattern>, ExprId),
    /// A class, a mapping or a sequence of any length; of it only the names that it binds are known.
    Other(Vec<ExprId>),
}

impl Pattern {
    /// The names that it binds, as expressions.
    pub fn targets(&self) -> Vec<ExprId> {
        match self {
            Pattern::Value(_) => Vec::new(),
            Pattern::Capture(target) => target.iter().copied().collect(),
            Pattern::Or(patterns) | Pattern::Sequence(patterns) => {
                patterns.iter().flat_map(Pattern::targets).collect()
            }
            Pattern::As(pattern, target) => {
                pattern.targets().into_iter().chain([*target]).collect()
            }
            Pattern::Other(targets) => targets.clone(),
        }
    }
}
