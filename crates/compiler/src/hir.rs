//! HIR: a module as kernels need it, free of positions.
//!
//! A [`Module`] lists what a file defines. Function bodies are arenas of expressions and
//! statements ([`Body`]); a parallel [`SourceMap`] says where each one stands, so that an edit of
//! white space or of another function changes no body. Lowering is total: what is missing or not
//! understood becomes [`Expr::Missing`] or [`Stmt::Unsupported`].

use std::sync::Arc;

use cranelift_entity::{PrimaryMap, SecondaryMap, entity_impl};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::diagnostic::Diagnostic;
use crate::source::{LineIndex, TextRange};

pub mod apart;
pub(crate) mod collections;
mod lower;
pub mod pretty;
#[cfg(test)]
mod tests;

pub use lower::{MAX_DEPTH, lower, lower_again, lower_expression};

/// An expression of a body.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExprId(u32);
entity_impl!(ExprId, "expr");

/// A statement of a body.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StmtId(u32);
entity_impl!(StmtId, "stmt");

/// A name in the source.
pub type Name = Arc<str>;

/// Everything a file defines, in source order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Module {
    /// Bindings at module level, and inside module-level `if`, `try`, `with` and function bodies
    /// that define kernels; later ones shadow earlier ones.
    pub items: Vec<Item>,
    /// Places in host code, or in scenarios, that launch a kernel.
    pub launches: Vec<Launch>,
    /// Scenarios, in source order.
    pub scenarios: Vec<Scenario>,
    /// What runs when the file is a program, in source order.
    pub mains: Vec<MainBlock>,
    /// `# tile: allow CODE` comments.
    pub allows: Vec<Allow>,
    /// Finds items by name.
    pub index: ItemIndex,
}

/// Positions in [`Module::items`] by name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ItemIndex(FxHashMap<Name, SmallVec<[u32; 1]>>);

impl Module {
    /// Indices of the items that bind `name`, in source order.
    pub fn items_named(&self, name: &str) -> impl DoubleEndedIterator<Item = u32> + '_ {
        self.index.0.get(name).into_iter().flatten().copied()
    }

    /// True when an `allow` comment switches `diagnostic` off. `lines` indexes `text`, the text
    /// of the file that the module and the diagnostic are of.
    pub fn is_allowed(&self, lines: &LineIndex, text: &str, diagnostic: &Diagnostic) -> bool {
        let line = lines.line(diagnostic.primary.range.start);
        let code = diagnostic.code.name();
        let family = code.split('/').next().unwrap_or(code);
        self.allows.iter().any(|allow| {
            (*allow.code == *code || *allow.code == *family)
                && allow.line(lines, text, &self.scenarios) == line
        })
    }

    /// Fills [`Module::index`].
    fn index_items(&mut self) {
        for (at, item) in self.items.iter().enumerate() {
            self.index.0.entry(item.name.clone()).or_default().push(at as u32);
        }
    }
}

impl Item {
    /// The scope of what stands inside the item, if it is a function or class.
    pub fn body_scope(&self) -> Vec<Name> {
        let mut scope = self.scope.clone();
        scope.push(self.name.clone());
        scope
    }
}

/// One binding of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The name bound.
    pub name: Name,
    /// Range of the name in the source.
    pub name_range: TextRange,
    /// Range of the whole statement, decorators included.
    pub range: TextRange,
    /// Names of enclosing host functions or classes, outermost first.
    pub scope: Vec<Name>,
    /// When the statement runs.
    pub occasion: Occasion,
    /// The condition of the module under which it runs, if there is one.
    pub guard: Option<Arc<Guard>>,
    /// What it is bound to.
    pub kind: ItemKind,
}

/// A condition of an outermost `if` on which depends whether a statement runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guard {
    /// Holds the condition.
    pub body: Arc<Body>,
    /// The condition.
    pub test: ExprId,
    /// Whether the statement runs when the condition is true, or when it is false.
    pub holds: bool,
    /// A condition that must be met as well.
    pub and: Option<Arc<Guard>>,
}

/// When a statement of a module or host function runs, as its blocks show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occasion {
    /// Whenever what is around it runs.
    Always,
    /// In one branch of several: in the body of `try`, or under an `if` that is not outermost; see
    /// [`Guard`].
    Branch,
    /// Where something failed: under `except`.
    Fallback,
}

/// What a module-level name is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ItemKind {
    /// `import a.b as name` (`import a.b` binds `a` with path `["a"]`).
    Import {
        /// Dotted path of the module.
        path: Vec<Name>,
    },
    /// `from a.b import c as name`.
    ImportFrom {
        /// Leading dots: 0 for absolute imports.
        level: u32,
        /// Dotted path after the dots; may be empty.
        path: Vec<Name>,
        /// The name imported; `*` binds everything.
        member: Name,
    },
    /// A function, jit-compiled or not.
    Function(Arc<Function>),
    /// A class.
    Class(Arc<Class>),
    /// `name = value`, `name: annotation = value`.
    Assign {
        /// Holds the expressions.
        body: Arc<Body>,
        /// Where they stand.
        map: Arc<SourceMap>,
        /// The value.
        value: ExprId,
        /// The annotation, if there is one.
        annotation: Option<ExprId>,
    },
    /// Bound in a way that is not followed.
    Unknown,
}

/// A function definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: Name,
    /// Decorators as expressions of `body`, outermost first.
    pub decorators: Vec<ExprId>,
    /// Parameters.
    pub params: Vec<Param>,
    /// Return annotation.
    pub returns: Option<ExprId>,
    /// Docstring.
    pub doc: Option<Arc<str>>,
    /// The statements, and every expression of decorators, annotations and defaults.
    pub body: Arc<Body>,
    /// Where the parts of the body stand.
    pub map: SourceMap,
    /// Lists and dicts that it changes in place and does not bind itself.
    pub changes: Vec<Name>,
}

/// A parameter of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Param {
    /// Its name.
    pub name: Name,
    /// Where the name stands.
    pub range: TextRange,
    /// Annotation.
    pub annotation: Option<ExprId>,
    /// Default value.
    pub default: Option<ExprId>,
    /// How arguments reach it.
    pub kind: ParamKind,
}

/// A parameter of a lambda.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LambdaParam {
    /// Its name.
    pub name: Name,
    /// Default value.
    pub default: Option<ExprId>,
    /// How arguments reach it.
    pub kind: ParamKind,
}

/// How arguments reach a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParamKind {
    /// By position or keyword.
    Normal,
    /// By position only: it stands before `/`.
    PositionalOnly,
    /// By keyword only.
    KeywordOnly,
    /// `*args`.
    VarArgs,
    /// `**kwargs`.
    KwArgs,
}

impl ParamKind {
    /// True for what takes an argument by its position.
    pub fn is_positional(self) -> bool {
        matches!(self, ParamKind::Normal | ParamKind::PositionalOnly)
    }
}

/// A class definition: for aggregates and named tuples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    /// Its name.
    pub name: Name,
    /// Holds decorators, bases, annotations and defaults.
    pub body: Arc<Body>,
    /// Where they stand.
    pub map: SourceMap,
    /// Decorators, outermost first.
    pub decorators: Vec<ExprId>,
    /// Base classes.
    pub bases: Vec<ExprId>,
    /// `field: annotation = default`.
    pub fields: Vec<(Name, Option<ExprId>, Option<ExprId>)>,
    /// Methods.
    pub methods: Vec<Arc<Function>>,
}

/// Expressions and statements of one function, class head or module-level value.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Body {
    /// Expressions.
    pub exprs: PrimaryMap<ExprId, Expr>,
    /// Statements.
    pub stmts: PrimaryMap<StmtId, Stmt>,
    /// The outermost statements in order.
    pub root: Vec<StmtId>,
    /// What syntax errors break, if there are any.
    pub broken: Option<Box<Broken>>,
}

/// What syntax errors break in a body.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Broken {
    /// Statements on whose lines, those of a suite not counted, there are errors.
    pub stmts: Vec<StmtId>,
    /// Every name on those lines, in order: it may be bound there.
    pub names: Vec<Name>,
}

impl Body {
    /// Whether a syntax error breaks a statement.
    pub fn is_broken(&self, stmt: StmtId) -> bool {
        self.broken.as_ref().is_some_and(|broken| broken.stmts.contains(&stmt))
    }

    /// Whether a name stands where a syntax error is.
    pub fn may_bind(&self, name: &str) -> bool {
        let names = self.broken.iter().flat_map(|broken| &broken.names);
        names.into_iter().any(|found| &**found == name)
    }

    /// The names that code binds, those of comprehensions and lambdas included; repeated ones more
    /// than once.
    pub fn bound_names(&self) -> impl Iterator<Item = &Name> {
        let targets = self.stmts.values().flat_map(Stmt::targets);
        let within = self.exprs.keys().flat_map(|expr| self.bound_by(expr));
        targets.flat_map(|target| self.names_in(target)).chain(within)
    }

    /// The names that an expression binds: a comprehension, a lambda or `:=`.
    pub fn bound_by(&self, expr: ExprId) -> Vec<&Name> {
        match &self.exprs[expr] {
            Expr::Walrus { target, .. } => vec![target],
            Expr::ListComp { target, .. } => self.names_in(*target),
            Expr::Lambda { params, .. } => params.iter().map(|param| &param.name).collect(),
            _ => Vec::new(),
        }
    }

    /// The names that some of the statements bind, with those within them; repeated ones more than
    /// once.
    pub fn bound_in(&self, stmts: &[StmtId]) -> Vec<&Name> {
        let mut names = Vec::new();
        let mut open = stmts.to_vec();
        while let Some(id) = open.pop() {
            let stmt = &self.stmts[id];
            names.extend(stmt.targets().into_iter().flat_map(|target| self.names_in(target)));
            open.extend(stmt.blocks().into_iter().flatten());
        }
        names
    }

    /// The names in the target of an assignment.
    pub fn names_in(&self, target: ExprId) -> Vec<&Name> {
        match &self.exprs[target] {
            Expr::Name(name) => vec![name],
            Expr::Tuple(targets) | Expr::List(targets) => {
                targets.iter().flat_map(|target| self.names_in(*target)).collect()
            }
            Expr::Starred(target) => self.names_in(*target),
            _ => Vec::new(),
        }
    }
}

/// Where the parts of a body stand. Kept apart so that bodies compare equal across moves.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SourceMap {
    /// Ranges of expressions.
    pub exprs: SecondaryMap<ExprId, TextRange>,
    /// Ranges of statements.
    pub stmts: SecondaryMap<StmtId, TextRange>,
}

/// An expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expr {
    /// Nothing usable stands there; absorbs silently.
    Missing,
    /// A name.
    Name(Name),
    /// A literal.
    Literal(Literal),
    /// `(a, b)`.
    Tuple(Vec<ExprId>),
    /// `[a, b]`.
    List(Vec<ExprId>),
    /// `[element for target in iterable if condition]`. With several `for`s, the element of all
    /// but the innermost is a [`Expr::Starred`] comprehension, which no source can spell:
    /// `[e for a in A for b in B]` is `[*[e for b in B] for a in A]`.
    ListComp {
        /// The element.
        element: ExprId,
        /// The loop target.
        target: ExprId,
        /// What is iterated.
        iterable: ExprId,
        /// Conditions.
        conditions: Vec<ExprId>,
    },
    /// `(element for target in iterable)`, by the comprehension of the same clauses.
    Generator(ExprId),
    /// Binary operator.
    Binary {
        /// The operator.
        op: BinaryOp,
        /// Left operand.
        lhs: ExprId,
        /// Right operand.
        rhs: ExprId,
    },
    /// Unary operator.
    Unary {
        /// The operator.
        op: UnaryOp,
        /// The operand.
        operand: ExprId,
    },
    /// `a and b and c`, `a or b`.
    Bool {
        /// True for `and`.
        and: bool,
        /// Operands, at least two.
        values: Vec<ExprId>,
    },
    /// `first op second op third ...`.
    Compare {
        /// Leftmost operand.
        first: ExprId,
        /// Operators with their right operands; at least one.
        rest: Vec<(CompareOp, ExprId)>,
    },
    /// A call.
    Call {
        /// What is called.
        callee: ExprId,
        /// Arguments in order.
        args: Vec<Arg>,
    },
    /// `value.attr`.
    Attribute {
        /// The object.
        value: ExprId,
        /// The attribute.
        attr: Name,
    },
    /// `value[index]`; several indices are a tuple.
    Subscript {
        /// The object.
        value: ExprId,
        /// The index.
        index: ExprId,
    },
    /// `lower:upper:step` inside a subscript.
    Slice {
        /// Lower bound.
        lower: Option<ExprId>,
        /// Upper bound.
        upper: Option<ExprId>,
        /// Step.
        step: Option<ExprId>,
    },
    /// `on_true if condition else on_false`.
    IfElse {
        /// The condition.
        condition: ExprId,
        /// Value when true.
        on_true: ExprId,
        /// Value when false.
        on_false: ExprId,
    },
    /// An f-string.
    FString(Vec<FStringPart>),
    /// `lambda params: body`.
    Lambda {
        /// Parameters.
        params: Vec<LambdaParam>,
        /// The body.
        body: ExprId,
    },
    /// `(target := value)`.
    Walrus {
        /// The name bound.
        target: Name,
        /// The value.
        value: ExprId,
    },
    /// `{key: value}`; `None` keys are `**value`.
    Dict(Vec<(Option<ExprId>, ExprId)>),
    /// `{a, b}`.
    Set(Vec<ExprId>),
    /// `*value`.
    Starred(ExprId),
    /// Python that kernels may not use, by the name of its syntax tree node in Python's `ast`
    /// (`Await`, `GeneratorExp`, `DictComp`, ...).
    Unsupported(&'static str),
}

impl Expr {
    /// Whether it is this name.
    pub fn is_name(&self, name: &str) -> bool {
        matches!(self, Expr::Name(found) if &**found == name)
    }

    /// Calls `visit` with the expressions directly inside this one, in source order.
    pub fn for_each_child(&self, mut visit: impl FnMut(ExprId)) {
        match self {
            Expr::Missing | Expr::Name(_) | Expr::Literal(_) | Expr::Unsupported(_) => {}
            Expr::Tuple(items) | Expr::List(items) | Expr::Set(items) => {
                items.iter().copied().for_each(visit);
            }
            Expr::ListComp { element, target, iterable, conditions } => {
                [*element, *target, *iterable].into_iter().for_each(&mut visit);
                conditions.iter().copied().for_each(visit);
            }
            Expr::Binary { lhs, rhs, .. } => [*lhs, *rhs].into_iter().for_each(visit),
            Expr::Unary { operand: inner, .. }
            | Expr::Attribute { value: inner, .. }
            | Expr::Walrus { value: inner, .. }
            | Expr::Generator(inner)
            | Expr::Starred(inner) => visit(*inner),
            Expr::Lambda { params, body } => {
                params.iter().filter_map(|param| param.default).for_each(&mut visit);
                visit(*body);
            }
            Expr::Bool { values, .. } => values.iter().copied().for_each(visit),
            Expr::Compare { first, rest } => {
                visit(*first);
                rest.iter().for_each(|(_, right)| visit(*right));
            }
            Expr::Call { callee, args } => {
                visit(*callee);
                args.iter().for_each(|arg| visit(arg.value));
            }
            Expr::Subscript { value, index } => [*value, *index].into_iter().for_each(visit),
            Expr::Slice { lower, upper, step } => {
                [*lower, *upper, *step].into_iter().flatten().for_each(visit);
            }
            Expr::IfElse { condition, on_true, on_false } => {
                [*on_true, *condition, *on_false].into_iter().for_each(visit);
            }
            Expr::FString(parts) => parts.iter().for_each(|part| {
                if let FStringPart::Hole(hole) | FStringPart::Formatted(hole) = part {
                    visit(*hole);
                }
            }),
            Expr::Dict(entries) => entries.iter().for_each(|(key, value)| {
                key.iter().copied().for_each(&mut visit);
                visit(*value);
            }),
        }
    }
}

/// A part of an f-string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FStringPart {
    /// Text between holes.
    Text(Arc<str>),
    /// `{value}`.
    Hole(ExprId),
    /// `{value:width}`, `{value!r}` or `{value=}`.
    Formatted(ExprId),
}

/// A literal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Literal {
    /// An integer of any size, as decimal digits when it exceeds 128 bits.
    Int(i128),
    /// An integer beyond 128 bits.
    BigInt(Arc<str>),
    /// A float, by its bits.
    Float(u64),
    /// `True`, `False`.
    Bool(bool),
    /// `None`.
    None,
    /// A string.
    Str(Arc<str>),
    /// A bytes literal.
    Bytes,
    /// `...`.
    Ellipsis,
    /// A complex number.
    Imaginary,
}

/// An argument of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arg {
    /// How it is passed.
    pub kind: ArgKind,
    /// The value.
    pub value: ExprId,
}

/// How an argument is passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArgKind {
    /// By position.
    Positional,
    /// `name=value`.
    Keyword(Name),
    /// `*value`.
    Star,
    /// `**value`.
    DoubleStar,
}

/// Binary operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are Python's")]
pub enum BinaryOp {
    Add,
    Sub,
    Mul,
    Div,
    FloorDiv,
    Mod,
    Pow,
    MatMul,
    Shl,
    Shr,
    And,
    Or,
    Xor,
}

/// Unary operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are Python's")]
pub enum UnaryOp {
    Plus,
    Minus,
    Invert,
    Not,
}

/// Comparison operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are Python's")]
pub enum CompareOp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Is,
    IsNot,
    In,
    NotIn,
}

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
    fn blocks(&self) -> Vec<&[StmtId]> {
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

/// A launch `kernel[grid](args)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// Range of the whole call.
    pub range: TextRange,
    /// Holds the expressions.
    pub body: Arc<Body>,
    /// Where they stand.
    pub map: Arc<SourceMap>,
    /// The expression before the brackets.
    pub kernel: ExprId,
    /// The grid.
    pub grid: ExprId,
    /// The arguments.
    pub args: Vec<Arg>,
    /// The host function around it, to follow simple local assignments; `None` at module level.
    pub host: Option<Name>,
}

/// An outermost statement that binds or calls something, or what `if __name__ == "__main__":`
/// guards: host code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MainBlock {
    /// Range of the whole statement.
    pub range: TextRange,
    /// The statements.
    pub body: Arc<Body>,
    /// Where they stand.
    pub map: Arc<SourceMap>,
}

/// Consecutive scenario lines: a small host program that launches one kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scenario {
    /// Range of all its lines.
    pub range: TextRange,
    /// The statements.
    pub body: Arc<Body>,
    /// Where they stand.
    pub map: Arc<SourceMap>,
}

impl Scenario {
    /// True when one of its statements begins inside of `at`.
    fn states_something(&self, at: TextRange) -> bool {
        let begins = |stmt: &TextRange| at.start <= stmt.start && stmt.start < at.end;
        self.range.start < at.end
            && at.start < self.range.end
            && self.map.stmts.values().any(begins)
    }

    /// What the scenario assigns to `name` first, by itself or as a part of a tuple.
    pub fn assigned(&self, name: &str) -> Option<ExprId> {
        self.body.root.iter().find_map(|statement| {
            let Stmt::Assign { targets, value } = &self.body.stmts[*statement] else {
                return None;
            };
            targets.iter().find_map(|target| self.part(*target, *value, name))
        })
    }

    /// The part of `value` that assigning it to `target` gives to `name`.
    fn part(&self, target: ExprId, value: ExprId, name: &str) -> Option<ExprId> {
        match (&self.body.exprs[target], &self.body.exprs[value]) {
            (Expr::Name(found), _) => (**found == *name).then_some(value),
            (Expr::Tuple(targets), Expr::Tuple(values)) if targets.len() == values.len() => {
                let mut pairs = targets.iter().zip(values);
                pairs.find_map(|(target, value)| self.part(*target, *value, name))
            }
            _ => None,
        }
    }
}

/// `# tile: allow CODE`: switches a diagnostic off for the line it ends, or the next line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allow {
    /// Where the comment stands.
    pub range: TextRange,
    /// `family/name` or `family`.
    pub code: Arc<str>,
    /// True when code stands before it on its line.
    pub trailing: bool,
}

impl Allow {
    /// The line (from zero) on which the code is switched off: its own when it ends a line of
    /// code, else the next line that is neither blank nor a comment, of which the statements of
    /// scenarios are none.
    pub fn line(&self, lines: &LineIndex, text: &str, scenarios: &[Scenario]) -> u32 {
        let own = lines.line(self.range.start);
        if self.trailing {
            return own;
        }
        let is_code = |line: &u32| {
            let at = TextRange { start: lines.line_start(*line), end: lines.line_start(line + 1) };
            let line = text.get(at.as_usize()).unwrap_or_default().trim();
            let is_stated = || scenarios.iter().any(|scenario| scenario.states_something(at));
            !line.is_empty() && (!line.starts_with('#') || is_stated())
        };
        (own + 1..lines.line_count()).find(is_code).unwrap_or(own)
    }
}
