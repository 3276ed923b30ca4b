//! Evaluation: the language's partial evaluator.
//!
//! One engine serves two uses. *Inference* ([`infer_file`]) knows no specialization: constexpr
//! parameters are symbols, element types of arguments are unknown unless annotated, an `if` on an
//! unknown constexpr visits both branches, and nothing is emitted. *Lowering* ([`lower_kernel`])
//! knows every argument and drives an emitter that builds tile IR. Rules of the language are
//! written once, in terms of abstract [`Value`]s that carry an IR value only while emitting.
//!
//! Evaluation is total: an error is reported once, its expression becomes [`Value::Unknown`],
//! which absorbs silently, and evaluation goes on. Work is bounded by a step budget, so that
//! unrolling and recursion end with a diagnostic instead of running away.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::builtins::TritonVersion;
use crate::diagnostic::{Code, Diagnostic};
use crate::hir::{Body, Function, Name, SourceMap};
use crate::ir;
use crate::project::{ItemRef, Sources};
use crate::source::{FileId, FileRange, LineIndex, TextRange};
use crate::specialization::Specialization;

mod aggregate;
mod arithmetic;
mod assign;
mod attribute;
mod builtins;
mod call;
mod cast;
mod closure;
mod compare;
mod constant;
mod construct;
mod control;
mod culprit;
mod display;
pub mod dtype;
mod emit;
mod enumeration;
mod expr;
mod function;
mod head;
mod join;
mod kernel;
mod loops;
mod module_member;
mod names;
mod operands;
mod operators;
mod promote;
mod python;
mod range;
mod repair;
mod report;
mod returns;
mod rules;
mod shape;
mod size;
mod stmt;
mod subscript;
mod symbolic;
mod ternary;
mod type_attribute;
mod types;
mod unsupported;
pub mod value;

pub use culprit::Culprit;
pub use kernel::{
    FileInference, KernelInference, LowerResult, drop_repeated, infer_file, lower_kernel,
};
pub(crate) use python::{Arguments, Plain, Python};
pub use rules::{Lowering, Rules};
pub use types::{BodyTypes, Reason, ValueClass};

use emit::Emitter;
use value::{FunctionRef, Origin, Value};

/// Why an evaluation has no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// An error was reported.
    Reported,
    /// Not enough is known.
    Unknown,
}

/// The value of an expression, or the reason why there is none.
type Eval<T> = Result<T, Stop>;

/// The text that is being evaluated: expressions, statements and where they stand.
#[derive(Clone, Copy)]
struct Source<'c> {
    body: &'c Body,
    map: &'c SourceMap,
    file: FileId,
}

impl<'c> Source<'c> {
    fn of(function: &'c Function, file: FileId) -> Source<'c> {
        Source { body: &function.body, map: &function.map, file }
    }

    fn at(self, expr: crate::hir::ExprId) -> FileRange {
        FileRange { file: self.file, range: self.map.exprs[expr] }
    }

    fn stmt_at(self, stmt: crate::hir::StmtId) -> FileRange {
        FileRange { file: self.file, range: self.map.stmts[stmt] }
    }
}

/// How statements of a frame behave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Kernel code: assignment turns literals into tensors.
    Jit,
    /// Python at compile time: `constexpr_function`s and module-level values.
    Python,
}

/// A local variable.
#[derive(Debug, Clone)]
struct Local {
    value: Value,
    at: TextRange,
}

type Locals = indexmap::IndexMap<Name, Local, rustc_hash::FxBuildHasher>;

/// Why a name that was assigned somewhere has no value here.
#[derive(Debug, Clone, Copy)]
struct Lost {
    at: TextRange,
    place: &'static str,
}

/// The evaluation of one function's body.
struct Frame {
    mode: Mode,
    file: FileId,
    /// Name and identity of the function; `None` for module-level values.
    function: Option<FunctionRef>,
    /// Enclosing host functions and classes, for names.
    scope: Arc<[Name]>,
    locals: Locals,
    lost: FxHashMap<Name, Lost>,
    /// Names that were annotated `tl.constexpr` and not assigned yet.
    declared: FxHashSet<Name>,
    /// Names that an annotation made `tl.constexpr`.
    constexprs: FxHashSet<Name>,
    /// Names that an assignment bound to `None` or a type: unlike those of parameters and
    /// annotated variables, these are no constexprs.
    bare: FxHashSet<Name>,
    /// Variables that unrolled loops count with, which Triton does not take for assigned.
    counters: FxHashSet<Name>,
    /// Values returned so far, with where.
    returns: Vec<(Value, FileRange)>,
    /// How many run-time loops are around.
    loops: u32,
    /// The call that led here.
    call: FileRange,
    /// The location of that call, while emitting.
    inlined_at: Option<ir::Loc>,
    /// Defaults of parameters may name any global.
    in_default: bool,
    /// A branch that may be taken at compile time has returned: the rest may be dead.
    remainder: Remainder,
}

/// Code that does not lower, in one of the functions that calls led through.
#[derive(Debug, Clone, PartialEq)]
struct Failing {
    function: Arc<Function>,
    /// What fails, or the call that leads there.
    at: TextRange,
    /// What else in the function has to do with it.
    related: Vec<TextRange>,
}

/// What is known of code after a branch that returned under an undecided condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
enum Remainder {
    /// It runs.
    #[default]
    Live,
    /// It may be dead.
    MayBeDead,
    /// It may be dead, and holds only for some types of the arguments.
    Refined,
}

/// The reason why a value is not known at compile time.
#[derive(Debug, Clone)]
struct OriginData {
    at: FileRange,
    kind: OriginKind,
    parent: Origin,
}

#[derive(Debug, Clone)]
enum OriginKind {
    /// A runtime argument.
    Argument(Name),
    /// A literal that an assignment turned into a tensor; the range is the target.
    Literal(Name),
    /// The result of a builtin.
    Call(&'static str),
    /// The index of a run-time loop.
    LoopIndex,
    /// What a name, the index of a run-time loop, is after the loop: nothing that is defined.
    AfterLoop(Name),
}

/// Module-level names by file, scope and name; `None` for those that nothing binds.
type Globals = FxHashMap<(FileId, Arc<[Name]>, Name), Option<names::Global>>;

/// The evaluator.
struct Evaluator<'a> {
    project: &'a dyn Sources,
    version: TritonVersion,
    /// A specialization is known: errors hold for it alone.
    exact: bool,
    /// Compute capability compiled for, such as 90.
    capability: u32,
    options: ir::LaunchOptions,
    emitter: Option<Emitter>,
    frames: Vec<Frame>,
    /// The innermost expression or statement that is being evaluated.
    here: FileRange,
    origins: Vec<OriginData>,
    diagnostics: Vec<Diagnostic>,
    reported: FxHashSet<(Code, FileRange, FileRange)>,
    globals: Globals,
    resolving: Vec<ItemRef>,
    /// What modules compute when they are imported, as far as it was asked for.
    imports: python::Imports,
    /// Modules whose statements run, the innermost last.
    importing: Vec<python::Import>,
    lines: FxHashMap<FileId, (Arc<str>, Arc<LineIndex>)>,
    /// Symbols that are certainly integers.
    integer_symbols: FxHashSet<symbolic::Atom>,
    /// Symbols that are certainly no numbers.
    other_symbols: FxHashSet<symbolic::Atom>,
    fresh: u32,
    steps: u32,
    /// Blocks and expressions that evaluation is inside of.
    nesting: u32,
    /// Diagnostics are dropped while positive.
    quiet: u32,
    /// Above 0 while a statement with a syntax error runs, of which nothing is reported.
    muted: u32,
    /// Above 0 in code that ran in another branch already: it prints once.
    again: u32,
    /// Inside a branch that may be dead at compile time.
    speculative: u32,
    /// A function that runs at compile time raised an exception.
    raised: bool,
    /// A function that runs at compile time computed with a tensor, for which it has no builder.
    computed: bool,
    /// Inside a branch that is taken only for some types of the arguments, which inference does
    /// not know: there the types that it sees prove nothing.
    refined: u32,
    failed: bool,
    /// A variable of the environment is taken to be unset.
    unset: bool,
    /// Nothing is evaluated after the first error.
    ends_at_error: bool,
    /// A function that kernels call is evaluated by itself: it may be called nowhere.
    is_uncalled: bool,
    /// The most elements that a tile may have.
    most_elements: usize,
    /// A tile without elements was made, which Triton 3.6 allows until something depends on it.
    has_empty_tiles: bool,
    /// Steps until the first error.
    steps_to_error: u32,
    /// Where the first error is.
    failing: Vec<Failing>,
    kernel: Name,
    label: Option<String>,
    prints: Vec<(FileRange, String)>,
    types: BodyTypes,
    /// Jit functions whose bodies were evaluated for a call.
    inlined: Vec<FunctionRef>,
}

/// Steps after which evaluation gives up.
const MAX_STEPS: u32 = 400_000;
/// As [`MAX_STEPS`], for inference, which happens on every keystroke.
const MAX_INFERENCE_STEPS: u32 = 100_000;
/// Steps between two chances for whoever owns the files to end an evaluation.
const CHECK_EVERY: u32 = 64;
/// Nested calls after which recursion is refused.
const MAX_DEPTH: usize = 64;
/// Blocks and expressions inside each other, through calls, after which evaluation gives up. A
/// level takes up to 12 KB of the stack.
const MAX_NESTING: u32 = 8_000;
/// Stack of every thread that analyses or compiles: nothing that a file says may exhaust it.
pub const STACK_BYTES: usize = 128 << 20;

impl<'a> Evaluator<'a> {
    fn new(project: &'a dyn Sources, version: TritonVersion) -> Evaluator<'a> {
        Evaluator {
            project,
            version,
            exact: false,
            capability: project.capability(),
            options: ir::LaunchOptions::default(),
            emitter: None,
            frames: Vec::new(),
            here: FileRange::default(),
            origins: Vec::new(),
            diagnostics: Vec::new(),
            reported: FxHashSet::default(),
            globals: FxHashMap::default(),
            resolving: Vec::new(),
            imports: python::Imports::default(),
            importing: Vec::new(),
            lines: FxHashMap::default(),
            integer_symbols: FxHashSet::default(),
            other_symbols: FxHashSet::default(),
            fresh: 0,
            steps: 0,
            nesting: 0,
            quiet: 0,
            muted: 0,
            again: 0,
            speculative: 0,
            raised: false,
            computed: false,
            refined: 0,
            failed: false,
            unset: false,
            ends_at_error: false,
            is_uncalled: false,
            most_elements: ir::MAX_TILE_ELEMENTS,
            has_empty_tiles: false,
            steps_to_error: 0,
            failing: Vec::new(),
            kernel: Name::from(""),
            label: None,
            prints: Vec::new(),
            types: BodyTypes::default(),
            inlined: Vec::new(),
        }
    }

    fn frame(&self) -> &Frame {
        self.frames.last().expect("invariant: evaluation happens inside a frame")
    }

    fn frame_mut(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("invariant: evaluation happens inside a frame")
    }

    fn is_3_9(&self) -> bool {
        self.version == TritonVersion::V3_9
    }

    /// A number of which nothing is known.
    fn fresh_symbol(&mut self) -> symbolic::Sym {
        self.fresh += 1;
        symbolic::Sym::atom(format!("?{}", self.fresh))
    }

    /// A compile-time value of which nothing is known.
    fn fresh_const(&mut self) -> Value {
        Value::Const(value::Const::Symbol(self.fresh_symbol()))
    }

    fn origin(&mut self, at: FileRange, kind: OriginKind, parent: Origin) -> Origin {
        let index = self.origins.len() as u32;
        self.origins.push(OriginData { at, kind, parent });
        Origin(index)
    }

    /// Line and column, both from 1, of a byte offset.
    fn line_col(&mut self, file: FileId, offset: u32) -> (u32, u32) {
        let project = self.project;
        let (text, lines) = self.lines.entry(file).or_insert_with(|| {
            let text = project.text(file).unwrap_or_else(|| Arc::from(""));
            let lines = project.lines(file).unwrap_or_default();
            (text, lines)
        });
        let at = lines.line_col(text, offset);
        (at.line + 1, at.col + 1)
    }

    /// Counts a step; false once the budget is spent.
    fn step(&mut self) -> bool {
        self.steps = self.steps.saturating_add(1);
        if self.steps.is_multiple_of(CHECK_EVERY) {
            self.project.checkpoint();
        }
        !self.is_exhausted()
    }

    /// Counts the steps that a value of so many items costs: it is copied or compared with its parts.
    fn pay(&mut self, items: usize) {
        /// What is copied in the time of a step.
        const ITEMS_OF_A_STEP: usize = 16;
        self.steps = self.steps.saturating_add((items / ITEMS_OF_A_STEP) as u32);
    }

    /// Goes one level deeper, unless there are too many: then `None`.
    fn nested<T>(&mut self, evaluate: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.nesting >= MAX_NESTING {
            return None;
        }
        self.nesting += 1;
        let result = evaluate(self);
        self.nesting -= 1;
        Some(result)
    }

    /// True once the budget is spent: what is left is not evaluated.
    fn is_exhausted(&self) -> bool {
        self.steps > if self.exact { MAX_STEPS } else { MAX_INFERENCE_STEPS }
    }
}

/// The options of a specialization that evaluation reads.
fn options_of(spec: &Specialization) -> ir::LaunchOptions {
    spec.options.clone()
}
