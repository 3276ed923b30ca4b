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
mod expr;
mod lower;
pub mod pretty;
mod python_names;
mod scenario;
pub mod statements;
mod stmt;
#[cfg(test)]
mod tests;

pub use expr::{Arg, ArgKind, BinaryOp, CompareOp, Expr, FStringPart, Literal, UnaryOp, WideInt};
pub use lower::{MAX_DEPTH, lower, lower_again, lower_expression};
pub(crate) use python_names::{MATH, PYTHON_NAMES, names_by_star};
pub use scenario::{Allow, Scenario};
pub use stmt::{Case, Handler, Pattern, Stmt};

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

/// The packages that code around kernels imports.
const PACKAGES: &[&str] = &["triton", "torch"];

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
    /// Names that are read and that nothing binds but stars perhaps, in source order; none in a module that neither
    /// decorates functions nor launches kernels, or that has syntax errors.
    pub unbound: Vec<Unbound>,
    /// Whether it may bind names in ways that are not followed, or that is not known.
    pub is_open: bool,
    /// What the outermost statements do with names, which that follows from.
    pub(crate) names: Vec<(TextRange, Arc<lower::scopes::StatementNames>)>,
    /// Finds items by name.
    pub index: ItemIndex,
}

/// A name that nothing binds, as the text alone shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unbound {
    /// The name.
    pub name: Name,
    /// Where it is read.
    pub range: TextRange,
    /// Whether that is the annotation of a parameter or a result, which newer versions of Python do not
    /// evaluate.
    pub in_annotation: bool,
    /// Whether a star may import it.
    pub perhaps_starred: bool,
    /// What the scopes around it bind.
    pub visible: Vec<Name>,
}

/// Positions in [`Module::items`] by name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ItemIndex(FxHashMap<Name, SmallVec<[u32; 1]>>);

impl Module {
    /// Indices of the items that bind `name`, in source order.
    pub fn items_named(&self, name: &str) -> impl DoubleEndedIterator<Item = u32> + '_ {
        self.index.0.get(name).into_iter().flatten().copied()
    }

    /// Whether several outermost statements bind a name, as branches do: any of them may have.
    pub(crate) fn binds_again(&self, name: &str) -> bool {
        let is_outermost = |index: &u32| self.items[*index as usize].scope.is_empty();
        self.items_named(name).filter(is_outermost).count() > 1
    }

    /// True when an `allow` comment switches `diagnostic` off. `lines` indexes `text`, the text
    /// of the file that the module and the diagnostic are of.
    pub(crate) fn is_allowed(
        &self,
        lines: &LineIndex,
        text: &str,
        diagnostic: &Diagnostic,
    ) -> bool {
        let at = diagnostic.primary.range;
        let (first, last) = (lines.line(at.start), lines.line(at.end));
        let (code, family) = (diagnostic.code.name(), diagnostic.code.family());
        let mut named =
            self.allows.iter().filter(|allow| *allow.code == *code || *allow.code == *family);
        named.any(|allow| {
            let line = allow.line(lines, text, &self.scenarios);
            line == first || allow.trailing && line == last
        })
    }

    /// Whether it may define kernels, launch them, or help code that does: it decorates functions, or imports
    /// one of [`PACKAGES`].
    fn may_serve_kernels(&self) -> bool {
        let is_of_packages =
            |path: &[Name]| path.first().is_some_and(|first| PACKAGES.contains(&&**first));
        let serves = |item: &Item| match &item.kind {
            ItemKind::Function(function) => !function.decorators.is_empty(),
            ItemKind::Import { path, .. } => is_of_packages(path),
            ItemKind::ImportFrom { level: 0, path, .. } => is_of_packages(path),
            _ => false,
        };
        !self.launches.is_empty() || self.items.iter().any(serves)
    }

    /// Fills [`Module::index`].
    fn index_items(&mut self) {
        for (at, item) in self.items.iter().enumerate() {
            self.index.0.entry(item.name.clone()).or_default().push(at as u32);
        }
    }
}

impl Item {
    /// Whether it imports what it binds.
    pub fn is_import(&self) -> bool {
        matches!(self.kind, ItemKind::Import { .. } | ItemKind::ImportFrom { .. })
    }

    /// The scope of what stands inside the item, if it is a function or class.
    pub fn body_scope(&self) -> Vec<Name> {
        let mut scope = self.scope.clone();
        scope.push(self.name.clone());
        scope
    }

    /// Whether it binds `None`, as in the place of what is not there.
    pub(crate) fn binds_none(&self) -> bool {
        match &self.kind {
            ItemKind::Assign { body, value, .. } => {
                body.exprs[*value] == Expr::Literal(Literal::None)
            }
            _ => false,
        }
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
        /// What follows that path where the name is bound to its package alone: `["b"]`.
        within: Vec<Name>,
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
    /// One of the elements of what a call gives: `a, b = f()`.
    Element {
        /// Holds the call.
        body: Arc<Body>,
        /// Where its parts stand.
        map: Arc<SourceMap>,
        /// The call.
        call: ExprId,
        /// Which element it is, from 0.
        index: usize,
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
    /// Variables of its module that it may bind: those that a `global` statement names.
    pub globals: Vec<Name>,
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
    pub(crate) fn is_positional(self) -> bool {
        matches!(self, ParamKind::Normal | ParamKind::PositionalOnly)
    }

    /// True for what gathers any number of arguments, in a collection of its own.
    pub(crate) fn gathers(self) -> bool {
        matches!(self, ParamKind::VarArgs | ParamKind::KwArgs)
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
    /// What is given as `metaclass=`.
    pub metaclass: Option<ExprId>,
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

impl Function {
    /// Whether `...` stands for the code, which is elsewhere.
    pub(crate) fn is_stub(&self) -> bool {
        let is_ellipsis = |stmt: &StmtId| match self.body.stmts[*stmt] {
            Stmt::Expr(value) => {
                matches!(self.body.exprs[value], Expr::Literal(Literal::Ellipsis))
            }
            _ => false,
        };
        matches!(self.body.root.as_slice(), [.., last] if is_ellipsis(last))
    }
}

impl Body {
    /// Whether a syntax error breaks a statement.
    pub(crate) fn is_broken(&self, stmt: StmtId) -> bool {
        self.broken.as_ref().is_some_and(|broken| broken.stmts.contains(&stmt))
    }

    /// Whether a name stands where a syntax error is.
    pub(crate) fn may_bind(&self, name: &str) -> bool {
        let names = self.broken.iter().flat_map(|broken| &broken.names);
        names.into_iter().any(|found| &**found == name)
    }

    /// Whether code gives values by `yield`: a function with it is a generator.
    pub(crate) fn yields(&self) -> bool {
        self.exprs.values().any(|expr| matches!(expr, Expr::Yield { .. }))
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
    pub(crate) fn bound_in(&self, stmts: &[StmtId]) -> Vec<&Name> {
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
    pub(crate) fn names_in(&self, target: ExprId) -> Vec<&Name> {
        match &self.exprs[target] {
            Expr::Name(name) => vec![name],
            Expr::Tuple(targets) | Expr::List(targets) => {
                targets.iter().flat_map(|target| self.names_in(*target)).collect()
            }
            Expr::Starred(target) => self.names_in(*target),
            _ => Vec::new(),
        }
    }

    /// Whether a name stands in an expression.
    pub(crate) fn mentions(&self, id: ExprId, name: &str) -> bool {
        let mut mentions = self.exprs[id].is_name(name);
        self.exprs[id].for_each_child(|child| mentions = mentions || self.mentions(child, name));
        mentions
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
    pub args: Box<[Arg]>,
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
    /// True for what `if __name__ == "__main__":` guards: imports do not run it.
    pub is_program: bool,
}
