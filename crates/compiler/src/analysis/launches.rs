//! What is wrong with launches whatever their arguments are: names, counts, options, the grid's
//! shape, and decorators that name parameters which do not exist.

use rustc_hash::FxHashSet;

use super::grid;
use super::passed::{missing_text, repeated_text, similar, surplus_text, unknown_text};
use crate::builtins::{LAUNCH_OPTIONS, NUMPY};
use crate::diagnostic::{Code, Diagnostic, Severity, TextEdit};
use crate::hir::{
    Arg, ArgKind, BinaryOp, Body, Expr, ExprId, Item, ItemKind, Launch, Literal, Module, Name,
    ParamKind, UnaryOp,
};
use crate::project::{
    ItemRef, Kernel, Resolution, Scope, Sources, constexpr_params, is_expected_to_fail, kernel,
    launch_scope, launched_by, launching_item, never_runs, resolve_expr,
};
use crate::source::{FileId, FileRange, TextRange};
use crate::specialization::{Config, Tuning, decorated_tuning, gets_configs};

mod calls;
mod chosen;
mod decorators;
mod device;
mod meta;
mod names;
mod options;
mod order;
mod own;
mod pieces;
mod scenarios;
mod torch;
mod tuners;

/// Types of numbers of NumPy that Triton does not take for Python's: `float64` is one of its floats.
const NUMPY_NUMBERS: &[&str] = &[
    "bool_", "float16", "float32", "int16", "int32", "int64", "int8", "uint16", "uint32", "uint64",
    "uint8",
];

/// Functions of NumPy that make arrays.
const NUMPY_ARRAYS: &[&str] = &[
    "arange",
    "array",
    "asarray",
    "empty",
    "empty_like",
    "full",
    "full_like",
    "linspace",
    "ones",
    "ones_like",
    "zeros",
    "zeros_like",
];

/// Functions of NumPy that round, and give floats.
const NUMPY_ROUNDING: &[&str] = &["ceil", "floor", "rint", "trunc"];

/// Functions of Triton that make of a kernel what is launched as it is, but for what they choose.
const MAKERS: &[&str] = &["jit", "autotune", "heuristics"];

/// The most axes that a grid has.
const MAX_RANK: usize = 3;

/// Whether a keyword in a call at this place is told of that a function of the project does not have, whatever runs.
pub(super) fn tells_keyword(sources: &dyn Sources, call: FileRange) -> bool {
    let module = sources.module(call.file).unwrap_or_default();
    let told = names::check(sources, call.file, &module);
    told.iter().any(|found| {
        found.code == Code::UnknownKeyword && call.range.contains_range(found.primary.range)
    })
}

/// Findings about the launches in `file`, calls that should be launches, the decorators of its kernels, and
/// comments that switch findings off.
pub fn check_launches(sources: &dyn Sources, file: FileId) -> Vec<Diagnostic> {
    let Some(module) = sources.module(file) else { return Vec::new() };
    let mut found = Vec::new();
    for launch in &module.launches {
        let host = launching_item(&module, launch).map(|index| ItemRef { file, index });
        if host.is_some_and(|host| never_runs(sources, None, host)) {
            continue;
        }
        if is_expected_to_fail(sources, file, launch.range) {
            continue;
        }
        let scope = launch_scope(&module, launch);
        let check = |launch: &Launch| check_one(sources, file, &module, launch, &scope);
        found.extend(check(launch).unwrap_or_else(|| {
            let each: Vec<Launch> = chosen::of_each(&module, launch);
            let found: Option<Vec<_>> = each.iter().map(check).collect();
            in_all(found.unwrap_or_default())
        }));
    }
    found.extend(calls::check(sources, file, &module));
    found.extend(names::check(sources, file, &module));
    found.extend(scenarios::check(sources, file, &module));
    found.extend(super::allowed::check(file, &module));
    found.extend(tuners::check(sources, file, &module));
    for at in crate::project::kernels(sources, file) {
        found.extend(
            kernel(sources, at)
                .into_iter()
                .flat_map(|kernel| decorators::decorated(sources, &kernel)),
        );
    }
    found
}

/// Findings about one launch; `None` where it is not known of which kernel it is.
fn check_one(
    sources: &dyn Sources,
    file: FileId,
    module: &Module,
    launch: &Launch,
    path: &[Name],
) -> Option<Vec<Diagnostic>> {
    let scope = Scope { file, path };
    let Resolution::Jit(at) = launched_by(sources, file, module, launch) else {
        return None;
    };
    let Some(kernel) = kernel(sources, at) else { return Some(Vec::new()) };
    let site = Site { sources, file, module, launch, scope, kernel: &kernel };
    Some(site.check(&decorated_tuning(sources, &kernel)))
}

/// What is found whichever of several kernels is launched.
fn in_all(found: Vec<Vec<Diagnostic>>) -> Vec<Diagnostic> {
    let mut each = found.into_iter();
    let mut common = each.next().unwrap_or_default();
    for other in each {
        let is_same = |a: &Diagnostic, b: &Diagnostic| a.code == b.code && a.primary == b.primary;
        common.retain(|found| other.iter().any(|other| is_same(found, other)));
    }
    common
}

/// Of the arguments of a call, those given by name.
fn keyword_args(args: &[Arg]) -> impl Iterator<Item = (&Name, ExprId)> {
    args.iter().filter_map(|arg| match &arg.kind {
        ArgKind::Keyword(name) => Some((name, arg.value)),
        _ => None,
    })
}

/// Where the name of a keyword argument stands whose value stands at `value`.
fn keyword_range(text: &str, name: &str, value: TextRange) -> Option<TextRange> {
    let before = text.get(..value.start as usize)?;
    let before = before.trim_end_matches(|c: char| c.is_whitespace() || c == '(');
    let before = before.strip_suffix('=')?.trim_end();
    let start = before.strip_suffix(name)?.len();
    Some(TextRange::new(start, start + name.len()))
}

/// What calls of Triton's make of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Made {
    /// The kernel itself.
    Jit,
    /// A kernel of which parameters may be set by what tunes it.
    Tuned,
}

/// One launch of one kernel.
struct Site<'a> {
    sources: &'a dyn Sources,
    file: FileId,
    module: &'a Module,
    launch: &'a Launch,
    scope: Scope<'a>,
    kernel: &'a Kernel,
}

impl Site<'_> {
    fn check(&self, tuning: &Tuning) -> Vec<Diagnostic> {
        let mut found: Vec<Diagnostic> = self.grid().into_iter().chain(self.grid_call()).collect();
        found.extend(self.options());
        found.extend(self.meta_keys(tuning));
        let params = &self.kernel.function.params;
        let open = params.iter().any(|p| matches!(p.kind, ParamKind::VarArgs | ParamKind::KwArgs));
        if tuning.wrapped || open || !self.is_direct() {
            // What Triton's own calls made of a kernel takes no other names than the kernel.
            let made = self.made_by_triton().filter(|_| !tuning.wrapped && !open);
            found.extend(made.map(|_| self.keywords()).into_iter().flatten());
            if made != Some(Made::Jit) {
                return found;
            }
        } else {
            found.extend(self.keywords());
        }
        let args = &self.launch.args;
        let starred = args.iter().any(|arg| arg.kind == ArgKind::Star);
        let spread = args.iter().any(|arg| arg.kind == ArgKind::DoubleStar);
        found.extend(self.untyped());
        if !starred {
            found.extend(self.surplus());
            found.extend(self.repeated());
            found.extend(self.exchanged());
        }
        found.extend(self.tuned(tuning, starred));
        let is_named = tuning.complete || tuning.spelled.is_some();
        let known = is_named && !gets_configs(self.sources, self.kernel.at, self.file);
        // Another error may be about an argument that is meant for the parameter.
        let is_first = found.iter().all(|found| found.severity != Severity::Error);
        if !starred && !spread && known && is_first {
            found.extend(self.missing(tuning));
        }
        found
    }

    /// True when the launch is of the function itself. Where a call made what is launched from it,
    /// as in `tuned = autotune(...)(kernel)`, the call may give arguments.
    fn is_direct(&self) -> bool {
        let (Expr::Name(name) | Expr::Attribute { attr: name, .. }) =
            &self.launch.body.exprs[self.launch.kernel]
        else {
            return false;
        };
        let Some(home) = self.sources.module(self.kernel.at.file) else { return false };
        let own = &self.kernel.item.name;
        let renamed = |item: &Item| matches!(&item.kind, ItemKind::ImportFrom { member, .. } if member == own);
        let bound = self.module.items_named(name).map(|index| &self.module.items[index as usize]);
        // Nobody launches `None`: it stands for a kernel that is not there.
        let mut bound = bound.filter(|item| !item.binds_none());
        let defined = |item: &Item| matches!(item.kind, ItemKind::Function(_));
        let file = self.kernel.at.file;
        let may_run: Vec<u32> = home
            .items_named(own)
            .filter(|index| !home.items[*index as usize].binds_none())
            .filter(|index| !never_runs(self.sources, None, ItemRef { file, index: *index }))
            .collect();
        // Where it is not known which of several definitions there is, none can be blamed.
        let one_of = self.kernel.item.guard.is_some() && may_run.len() > 1;
        bound
            .all(|item| if name == own { defined(item) || item.is_import() } else { renamed(item) })
            && !one_of
            && may_run.iter().all(|index| defined(&home.items[*index as usize]))
            && (name == own || self.module.items_named(name).next().is_some())
    }

    /// What makes the kernel of a function of this file, or of another that it is imported from, where all that
    /// is launched under the name is what calls of Triton's make of it there, one after another:
    /// `kernel = triton.autotune(...)(kernel)`.
    fn made_by_triton(&self) -> Option<Made> {
        let Expr::Name(name) = &self.launch.body.exprs[self.launch.kernel] else { return None };
        let is_here = self.kernel.at.file == self.file;
        let is_imported = self
            .module
            .items_named(name)
            .all(|index| self.module.items[index as usize].is_import());
        let home = self.sources.module(self.kernel.at.file)?;
        let own = &self.kernel.item.name;
        let of = |name: &Name| -> (Vec<&Item>, Vec<&Item>) {
            let bound = home.items_named(name).map(|index| &home.items[index as usize]);
            bound.partition(|item| matches!(item.kind, ItemKind::Function(_)))
        };
        let (defined, mut made) = of(own);
        let mut is_made_once = defined.len() == 1;
        if name != own {
            let (others, named) = of(name);
            is_made_once &= others.is_empty() && made.is_empty() && !named.is_empty();
            made = named;
        }
        let makes = made.iter().map(|item| match &item.kind {
            ItemKind::Assign { body, value, .. } => self.makes(body, *value),
            _ => None,
        });
        let makes: Option<Vec<Made>> = makes.collect();
        let makes = makes.filter(|_| is_made_once && (is_here || is_imported))?;
        Some(match makes.iter().all(|made| *made == Made::Jit) {
            true => Made::Jit,
            false => Made::Tuned,
        })
    }

    /// What an expression makes of a kernel, if it is a call of Triton's that makes one.
    fn makes(&self, body: &Body, id: ExprId) -> Option<Made> {
        let Expr::Call { callee, .. } = &body.exprs[id] else { return None };
        let scope = Scope { file: self.kernel.at.file, path: &[] };
        match resolve_expr(self.sources, scope, body, *callee) {
            Resolution::Triton(path) if &*path == "jit" => Some(Made::Jit),
            Resolution::Triton(path) if MAKERS.contains(&&*path) => Some(Made::Tuned),
            _ => self.makes(body, *callee),
        }
    }

    fn finding(&self, code: Code, range: TextRange, message: String) -> Diagnostic {
        let at = FileRange { file: self.file, range };
        let mut found = Diagnostic::new(code, at, message);
        found.kernel = Some(self.kernel.item.name.to_string());
        let defined = FileRange { file: self.kernel.at.file, range: self.kernel.item.name_range };
        found.with_related(defined, "the kernel is defined here")
    }

    fn range(&self, expr: ExprId) -> TextRange {
        self.launch.map.exprs[expr]
    }

    fn positional(&self) -> impl Iterator<Item = &Arg> {
        self.launch.args.iter().filter(|arg| arg.kind == ArgKind::Positional)
    }

    fn keyword_args(&self) -> impl Iterator<Item = (&Name, ExprId)> {
        keyword_args(&self.launch.args)
    }

    fn is_param(&self, name: &str) -> bool {
        self.kernel.function.params.iter().any(|param| &*param.name == name)
    }

    /// True when the launch gives the parameter or option of this name a value.
    fn is_given(&self, name: &str) -> bool {
        let params = self.kernel.function.params.iter();
        let mut by_position = params.take(self.positional().count());
        by_position.any(|param| &*param.name == name)
            || self.keyword_args().any(|(given, _)| &**given == name)
    }

    /// Keywords that are neither parameters nor options.
    fn keywords(&self) -> Vec<Diagnostic> {
        let unknown = self
            .keyword_args()
            .filter(|(name, _)| !self.is_param(name) && !LAUNCH_OPTIONS.contains(&&***name));
        let finding = |(name, value): (&Name, ExprId)| {
            let message = unknown_text(&self.kernel.item.name, name);
            let range = self.keyword_range(name, value).unwrap_or_else(|| self.range(value));
            let found = self.finding(Code::UnknownArgument, range, message);
            match similar(name, self.kernel.function.params.iter().map(|param| &*param.name)) {
                // What is given already cannot be meant.
                Some(known) if self.is_given(known) => found,
                Some(known) if self.keyword_range(name, value).is_some() => {
                    found.with_suggestion(known)
                }
                Some(_) => found,
                None => Diagnostic { severity: Severity::Warning, ..found },
            }
        };
        unknown.map(finding).collect()
    }

    /// Arguments without a type at run time, for parameters that are no compile-time values.
    fn untyped(&self) -> Vec<Diagnostic> {
        let params = &self.kernel.function.params;
        let by_position = params
            .iter()
            .filter(|param| param.kind.is_positional())
            .zip(self.launch.args.iter().take_while(|arg| arg.kind == ArgKind::Positional))
            .map(|(param, arg)| (&param.name, arg.value));
        let constexprs = constexpr_params(self.sources, self.kernel.at);
        let given = by_position.chain(self.keyword_args());
        let runtime = given.filter(|(name, _)| self.is_param(name) && !constexprs.contains(name));
        let finding = |(name, value): (&Name, ExprId)| {
            let (what, instead) = self.untyped_value(value)?;
            let message = format!("`{name}` is given {what}, which a launch does not take");
            let found = self.finding(Code::ArgumentType, self.range(value), message);
            Some(found.with_note(instead))
        };
        runtime.filter_map(finding).collect()
    }

    /// What a value is that has no type at run time, and what to pass instead.
    fn untyped_value(&self, value: ExprId) -> Option<(&'static str, &'static str)> {
        match &self.launch.body.exprs[value] {
            Expr::List(_) | Expr::ListComp { .. } => Some(("a list", "pass a tuple")),
            Expr::Call { callee, .. } => {
                let called = resolve_expr(self.sources, self.scope, &self.launch.body, *callee);
                let Resolution::External(path) = called else { return None };
                let [module, name] = path.as_slice() else { return None };
                if &**module != NUMPY {
                    None
                } else if NUMPY_NUMBERS.contains(&&**name) {
                    Some(("a number of NumPy", "pass a number of Python's own: `int(...)`"))
                } else {
                    let makes = NUMPY_ARRAYS.contains(&&**name);
                    makes.then_some(("an array of NumPy", "pass a tensor: `torch.from_numpy(...)`"))
                }
            }
            _ => None,
        }
    }

    /// Where the name of a keyword argument stands.
    fn keyword_range(&self, name: &str, value: ExprId) -> Option<TextRange> {
        keyword_range(&self.sources.text(self.file)?, name, self.range(value))
    }

    /// Positional arguments beyond the parameters.
    fn surplus(&self) -> Option<Diagnostic> {
        let params = &self.kernel.function.params;
        let takes = params.iter().filter(|param| param.kind.is_positional()).count();
        let first = self.positional().nth(takes)?;
        let given = self.positional().count();
        let message = surplus_text(&self.kernel.item.name, takes, given);
        Some(self.finding(Code::SurplusArgument, self.range(first.value), message))
    }

    /// Parameters given both by position and by name.
    fn repeated(&self) -> Option<Diagnostic> {
        let given = self.positional().count();
        let by_position: FxHashSet<&Name> =
            self.kernel.function.params.iter().take(given).map(|param| &param.name).collect();
        let (name, value) = self.keyword_args().find(|(name, _)| by_position.contains(name))?;
        let range = self.keyword_range(name, value).unwrap_or_else(|| self.range(value));
        Some(self.finding(Code::RepeatedArgument, range, repeated_text(name)))
    }

    /// Parameters given although the decorators set them.
    fn tuned(&self, tuning: &Tuning, starred: bool) -> Option<Diagnostic> {
        // Every configuration has a number of these, stated or not.
        let option = |name: &Name| matches!(&**name, "num_warps" | "num_stages" | "num_ctas");
        let sets = |name: &Name| {
            let sets = |config: &Config| option(name) || config.value(name).is_some();
            !tuning.configs.is_empty() && tuning.configs.iter().all(sets)
        };
        if let Some((name, value)) = self.keyword_args().find(|(name, _)| sets(name)) {
            let range = self.keyword_range(name, value).unwrap_or_else(|| self.range(value));
            let message =
                format!("`{name}` is set by `@triton.autotune`, so a launch cannot give it");
            return Some(self.finding(Code::TunedArgument, range, message));
        }
        if starred {
            return None;
        }
        // Heuristics replace what is given by name.
        let mut by_position = self.kernel.function.params.iter().zip(self.positional());
        let (param, arg) = by_position
            .find(|(param, _)| sets(&param.name) || tuning.heuristics.contains(&param.name))?;
        let decorator = if sets(&param.name) { "autotune" } else { "heuristics" };
        let message = format!(
            "`{}` is set by `@triton.{decorator}`, so a launch cannot give it by position",
            param.name
        );
        Some(self.finding(Code::TunedArgument, self.range(arg.value), message))
    }

    /// Parameters without a value.
    fn missing(&self, tuning: &Tuning) -> Option<Diagnostic> {
        let given = self.positional().count();
        let params = self.kernel.function.params.iter().enumerate();
        let missing: Vec<&str> = params
            .filter(|(index, param)| {
                let by_position = *index < given && param.kind.is_positional();
                let by_name = self.keyword_args().any(|(name, _)| *name == param.name);
                let by_decorator = tuning.may_set(&param.name);
                // Configurations may set options that the kernel takes as parameters.
                let by_option =
                    LAUNCH_OPTIONS[..4].contains(&&*param.name) && !tuning.configs.is_empty();
                param.default.is_none() && !(by_position || by_name || by_decorator || by_option)
            })
            .map(|(_, param)| &*param.name)
            .collect();
        if missing.is_empty() {
            return None;
        }
        let message = missing_text(&self.kernel.item.name, &missing);
        let range = self.range(self.launch.kernel).cover(self.range(self.launch.grid));
        Some(self.finding(Code::MissingLaunchArgument, range, message))
    }

    /// A grid that is a number, or has too many axes.
    fn grid(&self) -> Option<Diagnostic> {
        let grid = self.launch.grid;
        let range = self.range(grid);
        match &self.launch.body.exprs[grid] {
            Expr::Tuple(extents) | Expr::List(extents) => {
                let starred = extents
                    .iter()
                    .any(|extent| matches!(self.launch.body.exprs[*extent], Expr::Starred(_)));
                let is_one = |extent: &&ExprId| {
                    self.launch.body.exprs[**extent] == Expr::Literal(Literal::Int(1.into()))
                };
                let ignored = extents.iter().skip(MAX_RANK).find(|extent| !is_one(extent));
                let quotient =
                    extents.iter().take(MAX_RANK).position(|extent| self.is_float(*extent));
                if let Some(axis) = quotient.filter(|_| !starred && !self.in_scenario()) {
                    let message = grid::fraction(axis);
                    let found = self.finding(Code::GridShape, range, message);
                    return Some(found.with_note(grid::ROUND_UP));
                }
                let none = extents
                    .iter()
                    .take(MAX_RANK)
                    .find(|extent| self.integer(**extent).is_some_and(|extent| extent < 1));
                if let Some(none) = none.filter(|_| !starred) {
                    let message = "no program runs: every extent of a grid is at least 1";
                    let found =
                        self.finding(Code::GridShape, self.range(*none), message.to_owned());
                    return Some(Diagnostic { severity: Severity::Warning, ..found });
                }
                if starred || (!extents.is_empty() && ignored.is_none()) {
                    return None;
                }
                let message = format!("a grid has 1 to 3 extents, not {}", extents.len());
                let found = self.finding(Code::GridShape, range, message);
                let Some(&ignored) = ignored else { return Some(found) };
                let found = Diagnostic { severity: Severity::Warning, ..found };
                let ignored = FileRange { file: self.file, range: self.range(ignored) };
                Some(found.with_related(ignored, "Triton ignores this extent"))
            }
            Expr::Literal(Literal::Float(_) | Literal::Str(_) | Literal::None) => {
                let message = "a grid is a tuple of integers, or a function that gives one";
                Some(self.finding(Code::GridShape, range, message.to_owned()))
            }
            // Scenarios take a number for a grid of one axis.
            _ if self.in_scenario() || !self.is_integer(grid) => None,
            _ => {
                let message = grid::NUMBER.to_owned();
                let found = self.finding(Code::GridShape, range, message);
                let at = |offset: u32| FileRange {
                    file: self.file,
                    range: TextRange::empty(offset as usize),
                };
                let edits = vec![
                    TextEdit { at: at(range.start), text: "(".into() },
                    TextEdit { at: at(range.end), text: ",)".into() },
                ];
                Some(found.with_fix("make it a tuple", edits))
            }
        }
    }

    fn in_scenario(&self) -> bool {
        let mut scenarios = self.module.scenarios.iter();
        scenarios.any(|scenario| scenario.range.contains_range(self.launch.range))
    }

    /// True for what is certainly a float.
    fn is_float(&self, expr: ExprId) -> bool {
        match &self.launch.body.exprs[expr] {
            Expr::Binary { op: BinaryOp::Div, .. } => true,
            Expr::Call { callee, .. } => {
                let called = resolve_expr(self.sources, self.scope, &self.launch.body, *callee);
                matches!(called, Resolution::External(path)
                    if matches!(path.as_slice(), [module, name]
                        if &**module == NUMPY && NUMPY_ROUNDING.contains(&&**name)))
            }
            _ => false,
        }
    }

    /// An integer as it is written.
    fn integer(&self, expr: ExprId) -> Option<i128> {
        match &self.launch.body.exprs[expr] {
            Expr::Literal(Literal::Int(value)) => Some(value.get()),
            Expr::Unary { op: UnaryOp::Minus, operand } => self.integer(*operand)?.checked_neg(),
            _ => None,
        }
    }

    /// True for what is certainly an integer.
    fn is_integer(&self, expr: ExprId) -> bool {
        match &self.launch.body.exprs[expr] {
            Expr::Literal(Literal::Int(_)) => true,
            Expr::Binary {
                op: BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::FloorDiv,
                lhs,
                rhs,
            } => self.is_integer(*lhs) && self.is_integer(*rhs),
            Expr::Call { callee, .. } => {
                let found = resolve_expr(self.sources, self.scope, &self.launch.body, *callee);
                found == Resolution::Triton("cdiv".into())
            }
            _ => false,
        }
    }
}
