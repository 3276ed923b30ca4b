//! Guesses that cannot work, guessed again.
//!
//! A specialization often assumes arguments that no launch shows. When a kernel does not lower
//! under it, the assumed arguments that the failing code mentions are tried with other values;
//! whatever lets evaluation come furthest is kept, until the kernel lowers or nothing helps. What
//! is known is never changed, so a kernel that fails with what its author passes still fails.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::Failing;
use super::kernel::{LowerResult, try_lowering_within};
use crate::builtins::TritonVersion;
use crate::diagnostic::{Code, Severity};
use crate::hir::{ArgKind, Body, Expr, ExprId, Function, Name, Stmt, StmtId};
use crate::project::{ItemRef, Sources};
use crate::source::{FileRange, TextRange};
use crate::specialization::{ArgSpec, ConstArg, Specialization, alternatives};

/// Lowerings tried for one specialization.
const MAX_TRIALS: u32 = 128;

/// Steps of evaluation that all trials together may take, after which none begins.
const MAX_STEPS: u32 = 500_000;

/// Local variables are followed this far.
const MAX_TRACE: u32 = 4;

/// Looks for other values of assumed arguments under which the kernel `at` lowers; `failed` is
/// what came of `spec`. Tiles may have `most_elements`.
pub(super) fn repair(
    sources: &dyn Sources,
    at: ItemRef,
    spec: &Specialization,
    failed: &LowerResult,
    version: TritonVersion,
    most_elements: usize,
) -> Option<(Specialization, LowerResult)> {
    let mut trials = MAX_TRIALS;
    let mut steps = MAX_STEPS;
    let mut best = spec.clone();
    let mut progress = Progress::of(failed)?;
    let mut tried: FxHashSet<Change> = FxHashSet::default();
    loop {
        let mut improved = None;
        for change in changes(sources, at, &best, &suspects(&best, &progress), &progress) {
            if !tried.insert(change.clone()) {
                continue;
            }
            trials = trials.checked_sub(1)?;
            let candidate = with(&best, &change);
            let result = try_lowering_within(most_elements, sources, at, &candidate, version);
            if result.function.is_some() {
                return Some((candidate, result));
            }
            steps = steps.checked_sub(result.steps_to_error)?;
            let Some(reached) = Progress::of(&result) else { continue };
            if reached.is_beyond(&progress) {
                improved = Some((candidate, reached));
                break;
            }
        }
        (best, progress) = improved?;
    }
}

/// Other values for some arguments.
type Change = Vec<(Name, ArgSpec)>;

/// What is tried in turn: other values for each suspect, and other elements for all pointers that
/// have the same elements, since operands of one operation mostly do: among the suspects, and for a
/// matrix product among all arguments, because its operands follow from several. These come first
/// where the types of values do not fit each other.
fn changes(
    sources: &dyn Sources,
    at: ItemRef,
    spec: &Specialization,
    suspects: &[Name],
    progress: &Progress,
) -> Vec<Change> {
    let mut found = Vec::new();
    for name in suspects {
        let assumed = spec.assumed.contains(name);
        let values = alternatives(sources, at, spec, name).into_iter();
        let values = values.filter(|value| assumed || is_refinement(spec, name, value));
        found.extend(values.map(|value| vec![(name.clone(), value)]));
    }
    let mut joint = Vec::new();
    let all = if progress.of_product { &spec.assumed[..] } else { &[] };
    let holds_suspect = |group: &Vec<&Name>| group.iter().any(|name| suspects.contains(name));
    let wide = alike_pointers(spec, all).into_iter().filter(holds_suspect);
    for together in alike_pointers(spec, suspects).into_iter().chain(wide) {
        let values = alternatives(sources, at, spec, together[0]).into_iter().filter(is_pointer);
        joint.extend(values.map(|value| {
            together.iter().map(|name| ((*name).clone(), value.clone())).collect::<Change>()
        }));
    }
    let index = if progress.between_values { 0 } else { found.len() };
    found.splice(index..index, joint);
    found
}

/// The assumed pointers among some arguments by what they point to, where several point to the same.
fn alike_pointers<'a>(spec: &Specialization, names: &'a [Name]) -> Vec<Vec<&'a Name>> {
    let mut groups: Vec<(&ArgSpec, Vec<&Name>)> = Vec::new();
    for name in names.iter().filter(|name| spec.assumed.contains(*name)) {
        let Some(arg) = spec.args.get(name).filter(|arg| is_pointer(arg)) else { continue };
        match groups.iter_mut().find(|(known, _)| *known == arg) {
            Some((_, group)) => group.push(name),
            None => groups.push((arg, vec![name])),
        }
    }
    groups.into_iter().map(|(_, group)| group).filter(|group| group.len() > 1).collect()
}

fn is_pointer(spec: &ArgSpec) -> bool {
    matches!(spec, ArgSpec::Runtime { signature, .. } if signature.starts_with('*'))
}

/// Whether a value takes back nothing that a launch shows: something for `None`, or 1 for a number.
fn is_refinement(spec: &Specialization, name: &Name, value: &ArgSpec) -> bool {
    let is_none = spec.args.get(name) == Some(&ArgSpec::Constexpr(ConstArg::None));
    is_none || *value == ArgSpec::Constexpr(ConstArg::Int(1))
}

/// How far an evaluation came.
struct Progress {
    steps: u32,
    /// What fails, innermost function first; not empty.
    failing: Vec<Failing>,
    /// Whether the types of values do not fit each other.
    between_values: bool,
    /// Whether a matrix product is what they do not fit.
    of_product: bool,
    /// Whether it is about sizes, which constants decide.
    about_sizes: bool,
    /// Whether what fails is not known to Tile, so that it helps only not to get there.
    is_unknown: bool,
}

impl Progress {
    fn of(result: &LowerResult) -> Option<Progress> {
        let mut errors = result.diagnostics.iter().filter(|d| d.severity == Severity::Error);
        let error = errors.next()?;
        if result.failing.is_empty() {
            return None;
        }
        Some(Progress {
            steps: result.steps_to_error,
            failing: result.failing.clone(),
            about_sizes: error.code.name().starts_with("shape/"),
            of_product: error.code == Code::DotType,
            is_unknown: error.code == Code::NotUnderstood,
            between_values: matches!(
                error.code,
                Code::DotType | Code::LoopCarried | Code::BranchMismatch
            ),
        })
    }

    /// True when this came further: more steps, or to a later operand of the same operation.
    fn is_beyond(&self, other: &Progress) -> bool {
        let [this, that] = [self, other].map(|progress| &progress.failing[0]);
        self.steps > other.steps
            || (self.steps == other.steps
                && Arc::ptr_eq(&this.function, &that.function)
                && this.at.start > that.at.start)
    }
}

/// The specialization with other values for arguments, which stay assumed.
fn with(spec: &Specialization, change: &Change) -> Specialization {
    let mut changed = spec.clone();
    for (name, value) in change {
        changed.args.insert(name.clone(), value.clone());
        if !changed.assumed.contains(name) {
            changed.assumed.push(name.clone());
        }
    }
    changed
}

/// Arguments that may be wrong, those nearest to the error first: assumed ones, `None`s, which
/// stand for what a caller may leave out, and integers. Where sizes do not fit, constants come before
/// others, and where types do not, the constants that choose among types.
fn suspects(spec: &Specialization, progress: &Progress) -> Vec<Name> {
    let is_free = |name: &Name| {
        let is_open = match spec.args.get(name) {
            Some(ArgSpec::Constexpr(ConstArg::None)) => true,
            // A number that no launch shows may be 1, as the last stride of a tensor mostly is.
            Some(ArgSpec::Runtime { signature, divisible_by_16: false }) => &**signature == "i32",
            _ => false,
        };
        spec.assumed.contains(name) || is_open
    };
    let mut found = blamed(&progress.failing);
    found.retain(is_free);
    if progress.is_unknown {
        found.retain(|name| !spec.args.get(name).is_some_and(is_pointer));
    }
    if progress.about_sizes {
        let is_constant = |name: &Name| matches!(spec.args.get(name), Some(ArgSpec::Constexpr(_)));
        found.sort_by_key(|name| !is_constant(name));
    }
    if progress.between_values {
        let chooses = |name: &Name| match spec.args.get(name) {
            Some(ArgSpec::Constexpr(value)) => {
                matches!(value, ConstArg::Bool(_) | ConstArg::DType(_) | ConstArg::TorchDType(_))
            }
            _ => false,
        };
        found.sort_by_key(|name| !chooses(name));
    }
    found
}

/// Parameters of the outermost function that what fails depends on, nearest first.
fn blamed(failing: &[Failing]) -> Vec<Name> {
    let Some((innermost, callers)) = failing.split_first() else { return Vec::new() };
    let places = std::iter::once(innermost.at).chain(innermost.related.iter().copied());
    let mut names = mentions(&innermost.function, places, &[]);
    let mut callee = &innermost.function;
    for caller in callers {
        let passed = passed(&caller.function, caller.at, callee, &names);
        names = mentions(&caller.function, [caller.at], &passed);
        callee = &caller.function;
    }
    names
}

/// What the call at a place passes for some parameters of the function called.
fn passed(caller: &Function, at: TextRange, callee: &Function, names: &[Name]) -> Vec<ExprId> {
    let is_call = |id: &ExprId| {
        caller.map.exprs[*id] == at && matches!(caller.body.exprs[*id], Expr::Call { .. })
    };
    let Some(call) = caller.body.exprs.iter().map(|(id, _)| id).find(is_call) else {
        return Vec::new();
    };
    let Expr::Call { args, .. } = &caller.body.exprs[call] else { return Vec::new() };
    let passed = names.iter().filter_map(|name| {
        let index = callee.params.iter().position(|param| param.name == *name)?;
        let mut args = args.iter().enumerate();
        let (_, arg) = args.find(|(at, arg)| match &arg.kind {
            ArgKind::Positional => *at == index,
            ArgKind::Keyword(keyword) => keyword == name,
            ArgKind::Star | ArgKind::DoubleStar => false,
        })?;
        Some(arg.value)
    });
    passed.collect()
}

/// Parameters that what stands at a place depends on, nearest first.
pub(super) fn mentioned(function: &Function, at: FileRange) -> Vec<Name> {
    mentions(function, [at.range], &[])
}

/// Parameters that some expressions depend on, then those that what stands at some places does.
fn mentions(
    function: &Function,
    places: impl IntoIterator<Item = TextRange>,
    first: &[ExprId],
) -> Vec<Name> {
    let mut mentions = Mentions { function, names: Vec::new(), seen: FxHashSet::default() };
    first.iter().for_each(|expr| mentions.expression(*expr, 0));
    places.into_iter().for_each(|at| mentions.around(at));
    mentions.names
}

/// Names of parameters that an expression depends on, nearest first.
struct Mentions<'a> {
    function: &'a Function,
    names: Vec<Name>,
    seen: FxHashSet<Name>,
}

impl Mentions<'_> {
    fn body(&self) -> &Body {
        &self.function.body
    }

    /// What the innermost statement around a place mentions, its conditions last.
    fn around(&mut self, at: TextRange) {
        let function = self.function;
        let holds = |stmt: &StmtId| function.map.stmts[*stmt].contains_range(at);
        let mut around: Vec<StmtId> = function.body.stmts.keys().filter(holds).collect();
        around.sort_by_key(|stmt| {
            let range = function.map.stmts[*stmt];
            range.end - range.start
        });
        let smallest = function.body.exprs.iter().map(|(id, _)| id).filter(|id| {
            let range = function.map.exprs[*id];
            !range.is_empty() && range.contains_range(at)
        });
        let smallest = smallest.min_by_key(|id| function.map.exprs[*id].len());
        if let Some(expr) = smallest {
            self.expression(expr, 0);
        }
        for stmt in around {
            match &function.body.stmts[stmt] {
                Stmt::Expr(value) | Stmt::Assign { value, .. } => self.expression(*value, 0),
                Stmt::AugAssign { target, value, .. } => {
                    self.expression(*target, 0);
                    self.expression(*value, 0);
                }
                Stmt::AnnAssign { value: Some(value), .. } | Stmt::Return(Some(value)) => {
                    self.expression(*value, 0);
                }
                Stmt::If { test, .. } | Stmt::While { test, .. } | Stmt::Assert { test, .. } => {
                    self.expression(*test, 0);
                }
                Stmt::For { iter, .. } => self.expression(*iter, 0),
                _ => {}
            }
        }
    }

    fn expression(&mut self, id: ExprId, depth: u32) {
        let mut pending = vec![id];
        let mut locals = Vec::new();
        while let Some(id) = pending.pop() {
            if let Expr::Name(name) = &self.body().exprs[id] {
                let name = name.clone();
                if self.seen.insert(name.clone()) {
                    if self.function.params.iter().any(|param| param.name == name) {
                        self.names.push(name.clone());
                    }
                    locals.push(name);
                }
            }
            self.body().exprs[id].for_each_child(|child| pending.push(child));
        }
        if depth < MAX_TRACE {
            for name in locals {
                self.values(&name).into_iter().for_each(|value| self.expression(value, depth + 1));
            }
        }
    }

    /// What is assigned to a variable.
    fn values(&self, name: &str) -> Vec<ExprId> {
        let body = self.body();
        let binds = |target: ExprId| {
            let is_it =
                |id: ExprId| matches!(&body.exprs[id], Expr::Name(known) if &**known == name);
            match &body.exprs[target] {
                Expr::Tuple(targets) => targets.iter().any(|target| is_it(*target)),
                _ => is_it(target),
            }
        };
        let values = body.stmts.values().filter_map(|stmt| match stmt {
            Stmt::Assign { targets, value } => {
                targets.iter().any(|target| binds(*target)).then_some(*value)
            }
            Stmt::AugAssign { target, value, .. }
            | Stmt::AnnAssign { target, value: Some(value), .. }
            | Stmt::For { target, iter: value, .. } => binds(*target).then_some(*value),
            _ => None,
        });
        values.collect()
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::{Progress, suspects};
    use crate::builtins::TritonVersion;
    use crate::eval::Rules;
    use crate::eval::kernel::lower_function;
    use crate::project::MemorySources;
    use crate::specialization::{Flags, discover};

    /// The arguments that may be wrong where the only kernel of `text` does not lower.
    fn suspected(text: &str) -> Vec<String> {
        let mut sources = MemorySources::new(Vec::new());
        let head = "import triton\nimport triton.language as tl\nfrom missing import strange\n";
        let file = sources.add("kernel.py", &format!("{head}@triton.jit\n{text}"));
        let at = crate::project::kernels(&sources, file).pop().expect("a kernel");
        let spec = discover(&sources, at, &Flags::default()).remove(0);
        let failed = lower_function(&sources, at, &spec, TritonVersion::V3_9);
        let progress = Progress::of(&failed).expect("an error");
        suspects(&spec, &progress).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn no_pointers_elements_are_tried_for_what_nobody_understands() {
        let kernel = |what: &str| {
            format!(
                "def kernel(x_ptr, y_ptr, FAST: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr + i, {what}(tl.load(x_ptr + i), FAST))
"
            )
        };
        assert_eq!(suspected(&kernel("strange")), ["FAST", "BLOCK"]);
        assert_eq!(suspected(&kernel("tl.dot")), ["FAST", "x_ptr", "y_ptr", "BLOCK"]);
    }

    /// Checks for what the last kernel of `text` is compiled when nothing is known of it.
    fn check(text: &str, expected: Expect) {
        let mut sources = MemorySources::new(Vec::new());
        let head = "import triton\nimport triton.language as tl\n\
                    from triton.language.extra import libdevice\n@triton.jit\n";
        let file = sources.add("kernel.py", &format!("{head}{text}"));
        let at = crate::project::kernels(&sources, file).pop().expect("a kernel");
        let spec = discover(&sources, at, &Flags::default()).remove(0);
        let rules = Rules::Only(TritonVersion::V3_9);
        let result = rules.lower_kernel(&sources, at, &spec);
        let found = result.repaired.map(|spec| spec.to_string());
        expected.assert_eq(&found.unwrap_or_else(|| "not repaired".to_owned()));
    }

    #[test]
    fn operands_of_one_operation_change_together() {
        check(
            "def kernel(a_ptr, b_ptr, c_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = i[:, None] * BLOCK + i[None, :]
    acc = tl.zeros((BLOCK, BLOCK), tl.int32)
    for k in range(4):
        acc += tl.dot(tl.load(a_ptr + at), tl.load(b_ptr + at))
    tl.store(c_ptr + at, acc)
",
            expect!["a_ptr=*i8:16 b_ptr=*i8:16 c_ptr=*fp32:16 BLOCK=64 num_warps=4 num_stages=3"],
        );
    }

    #[test]
    fn operands_change_together_whatever_else_is_mentioned() {
        check(
            "def kernel(slots, x_ptr, y_ptr, bias, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = i[:, None] * BLOCK + i[None, :]
    y = tl.load(y_ptr + at)
    row = tl.load(slots + i) + tl.load(slots + BLOCK)
    score = tl.dot(tl.load(x_ptr + at), y) + tl.load(bias + row)[:, None]
    tl.store(out_ptr + at, tl.dot(score.to(tl.float16), y))
",
            expect![
                "slots=*i64:16 x_ptr=*fp16:16 y_ptr=*fp16:16 bias=*fp16:16 out_ptr=*fp16:16 BLOCK=64 num_warps=4 num_stages=3"
            ],
        );
    }

    #[test]
    fn operands_far_from_the_error_change_along() {
        check(
            "def kernel(q_ptr, k_ptr, v_ptr, lse_ptr, out_ptr, IS_FP32: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = i[:, None] * BLOCK + i[None, :]
    q_base = q_ptr + tl.program_id(0) * BLOCK
    q_at = q_base + at
    q = tl.load(q_at)
    score = tl.dot(q, tl.trans(tl.load(k_ptr + at)))
    scaled = score * 0.125
    masked = tl.where(i[:, None] >= i[None, :], scaled, -float('inf'))
    p = tl.exp2(masked - tl.load(lse_ptr + i)[:, None])
    v = tl.load(v_ptr + at)
    if IS_FP32:
        out = tl.dot(p, v)
    else:
        out = tl.dot(p.to(tl.float16), v)
    tl.store(out_ptr + at, out)
",
            expect!["q_ptr=*fp16:16 k_ptr=*fp16:16 v_ptr=*fp16:16 lse_ptr=*fp16:16 out_ptr=*fp16:16 IS_FP32=False BLOCK=64 num_warps=4 num_stages=3"],
        );
    }

    #[test]
    fn constants_choose_types() {
        check(
            "def kernel(q_ptr, out_ptr, n, FLAG: tl.constexpr, IS_FP32: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = i[:, None] * BLOCK + i[None, :]
    q = tl.load(q_ptr + at).to(tl.float32)
    dtype: tl.constexpr = tl.float32 if IS_FP32 else tl.float16
    if FLAG:
        q = q * 2
    tl.store(out_ptr + at, tl.dot(q.to(dtype), q))
",
            expect!["q_ptr=*fp32:16 out_ptr=*fp32:16 n=i32 FLAG=False IS_FP32=True BLOCK=64 num_warps=4 num_stages=3"],
        );
    }

    #[test]
    fn values_of_branches_change_together() {
        check(
            "def kernel(x_ptr, ids, bins, scales, n):
    i = tl.program_id(0)
    offset = i
    if i > 0:
        offset -= tl.load(bins + i - 1)
    tl.store(x_ptr + offset + tl.load(ids + i), tl.load(scales + i) * n)
",
            expect![
                "x_ptr=*fp32:16 ids=*i64:16 bins=*i32:16 scales=*fp32:16 n=fp32 num_warps=4 num_stages=3"
            ],
        );
    }

    #[test]
    fn no_tile_is_larger_than_threads_can_hold() {
        check(
            "def kernel(x_ptr, out_ptr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    row = tl.arange(0, ROWS)
    x = tl.load(x_ptr + row[:, None] * BLOCK + i[None, :])
    pair = x[:, None, :] * x[None, :, :]
    tl.store(out_ptr + row[:, None] * BLOCK + i[None, :], tl.sum(pair, 1))
",
            expect!["x_ptr=*fp32:16 out_ptr=*fp32:16 ROWS=64 BLOCK=1 num_warps=4 num_stages=3"],
        );
    }

    #[test]
    fn sizes_depend_on_constants() {
        check(
            "def kernel(x_ptr, a_ptr, b_ptr, c_ptr, N: tl.constexpr, SQUARE: tl.constexpr):
    i = tl.arange(0, SQUARE)
    x = tl.load(x_ptr + tl.load(a_ptr + i) + tl.load(b_ptr + i) + tl.load(c_ptr + i))
    tl.store(x_ptr + tl.arange(0, N)[:, None] + tl.arange(0, N)[None, :], x.reshape(N, N))
",
            expect![
                "x_ptr=*fp32:16 a_ptr=*i64:16 b_ptr=*i64:16 c_ptr=*i64:16 N=8 SQUARE=64 num_warps=4 num_stages=3"
            ],
        );
    }

    #[test]
    fn tuples_may_hold_constants_and_tuples() {
        check(
            "def kernel(x_ptr, args):
    at = tl.arange(0, args[1][0])
    tl.store(x_ptr + at, args[0] + args[1][1])
",
            expect!["x_ptr=*fp32:16 args=(i32, (64, 64), i32, i32) num_warps=4 num_stages=3"],
        );
    }

    #[test]
    fn what_is_taken_apart_is_a_tuple() {
        check(
            "def kernel(args):
    x_ptr, (width, height) = args
    tl.store(x_ptr, width + height)
",
            expect!["args=(*fp32:16, (64, 64)) num_warps=4 num_stages=3"],
        );
    }

    #[test]
    fn a_number_may_have_to_be_a_float() {
        check(
            "def kernel(x_ptr, DIV: tl.constexpr):
    tl.store(x_ptr, libdevice.div_rn(tl.load(x_ptr), DIV))
",
            expect!["x_ptr=*fp32:16 DIV=1.0 num_warps=4 num_stages=3"],
        );
    }

    #[test]
    fn what_fails_in_a_function_called_is_traced_to_arguments() {
        let helpers = "def at(table, i):
    return tl.load(table + i)

@triton.jit
def put(p, i, a, b, c, d, e, f, g, h, k, l, m, n, o):
    v = a + b + c + d + e + f + g + h + k + l + m + n + o
    tl.store(p + i, v)

@triton.jit
";
        let kernel = "def kernel(x_ptr, table, a, b, c, d, e, f, g, h, k, l, m, n, o):
    put(x_ptr, at(table, 0), a, b, c, d, e, f, g, h, k, l, m, n, o)
    tl.store(x_ptr, 0.0)
";
        check(
            &format!("{helpers}{kernel}"),
            expect![
                "x_ptr=*fp32:16 table=*i32:16 a=i32 b=i32 c=i32 d=i32 e=i32 f=i32 g=i32 h=i32 k=i32 l=i32 m=i32 n=i32 o=i32 num_warps=4 num_stages=3"
            ],
        );
    }
}
