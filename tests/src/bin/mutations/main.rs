//! Breaks published kernels in one place at a time, and prints per family of mistakes the share that
//! is found.
//!
//! ```text
//! mutations [--missed] [--launched | --costs] FOLDER...
//! ```
//!
//! Kernels are those below the folders, which are also the roots of imports. A mistake counts as
//! found when a new error or warning appears in the kernel or its launches. Families that need sizes
//! of tensors, which published packages do not show, are measured under launches that are chosen
//! ([`launched`]); those of mistakes that change no result, by what they cost ([`costs`]). Where the
//! operands of a call are not understood with nothing known of the arguments, nothing can be said of
//! it: such places are counted apart, as are launches through decorators that are not Triton's, which
//! may take arguments of their own. With `--missed`, prints what was not found; with `--launched`,
//! tries only mistakes that a launch shows, with `--costs`, only those that cost. The last line is JSON.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use rayon::prelude::*;
use serde_json::json;
use tile_compiler::analysis;
use tile_compiler::diagnostic::{Diagnostic, Severity};
use tile_compiler::eval::{BodyTypes, Rules};
use tile_compiler::hir::{Arg, ArgKind, BinaryOp, Expr, ExprId, Function, Launch, Stmt, StmtId};
use tile_compiler::project::{self, Decorator, ItemRef, MemorySources, Sources};
use tile_compiler::source::FileId;
use tile_compiler::specialization::{Flags, Origin, discover};

mod costs;
mod launched;

/// Mistakes tried of each family, spread evenly over those that there are.
const PER_FAMILY: usize = 60;

/// Specializations of a broken kernel that are looked at.
const SPECIALIZATIONS: usize = 2;

fn main() -> ExitCode {
    let (flags, folders): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|word| word.starts_with("--"));
    let known = ["--missed", "--launched", "--costs"];
    if folders.is_empty() || flags.iter().any(|flag| !known.contains(&flag.as_str())) {
        eprintln!("usage: mutations [--missed] [--launched | --costs] FOLDER...");
        return ExitCode::FAILURE;
    }
    let sources = read(&folders);
    let has = |wanted: &str| flags.iter().any(|flag| flag == wanted);
    let (launched_alone, costs_alone) = (has("--launched"), has("--costs"));
    let files: Vec<FileId> = sources.files().filter(|_| !launched_alone && !costs_alone).collect();
    let drawn: Vec<Mutant> =
        files.into_par_iter().flat_map_iter(|file| mutants(&sources, file)).collect();
    let mut families: BTreeMap<&str, Vec<Mutant>> = BTreeMap::new();
    let mut apart: BTreeMap<&str, usize> = BTreeMap::new();
    for mutant in drawn {
        match mutant.is_open {
            true => *apart.entry(mutant.family).or_default() += 1,
            false => families.entry(mutant.family).or_default().push(mutant),
        }
    }
    let places: BTreeMap<&str, usize> =
        families.iter().map(|(family, mutants)| (*family, mutants.len())).collect();
    let tried: Vec<Mutant> =
        families.into_values().flat_map(|mutants| spread(mutants, PER_FAMILY)).collect();
    let verdicts = are_found(&sources, &folders, &tried);
    let mut shares = serde_json::Map::new();
    for (family, all) in places {
        let verdicts = tried.iter().zip(&verdicts).filter(|(mutant, _)| mutant.family == family);
        let (found, missed): (Vec<_>, Vec<_>) = verdicts.partition(|(_, found)| **found);
        if has("--missed") {
            missed.iter().for_each(|(mutant, _)| println!("{}", mutant.describe(&sources)));
        }
        let apart = apart.get(family).copied().unwrap_or(0);
        let (found, tried) = (found.len(), found.len() + missed.len());
        let share = found as f64 / tried as f64;
        println!(
            "{family:10} {found:4} of {tried:4} ({:5.1} %); {all} places, {apart} more that are not understood",
            100.0 * share,
        );
        shares.insert(family.to_owned(), json!((1000.0 * share).round() / 10.0));
    }
    let report = match (launched_alone, costs_alone) {
        (true, _) => launched::measure(&sources),
        (_, true) => costs::measure(&sources),
        _ => launched::Report::default(),
    };
    if report.kernels > 0 {
        println!("{} kernels under a launch that was chosen", report.kernels);
        for (kind, (tried, seen)) in &report.kinds {
            println!("    {kind:10} {tried:4} tried, {seen:4} of them mistakes");
        }
    }
    for (family, tally) in &report.families {
        if has("--missed") {
            tally.missed.iter().for_each(|missed| println!("{family}: {missed}"));
        }
        let share = tally.found as f64 / tally.all.max(1) as f64;
        println!(
            "{family:10} {:4} of {:4} ({:5.1} %); {} more of which nothing can be proved",
            tally.found,
            tally.all,
            100.0 * share,
            tally.apart,
        );
        shares.insert((*family).to_owned(), json!((1000.0 * share).round() / 10.0));
    }
    report.alarms.iter().for_each(|alarm| println!("false alarm: {alarm}"));
    println!("{}", json!({ "found_percent": shares, "false_alarms": report.alarms.len() }));
    ExitCode::SUCCESS
}

/// The files below folders, which are also the roots of imports.
fn read(folders: &[String]) -> MemorySources {
    let mut sources = MemorySources::new(folders.to_vec());
    let below = |folder: &String| tile_tests::files_below(Path::new(folder), "py");
    for path in folders.iter().flat_map(below) {
        if let Ok(text) = std::fs::read_to_string(&path) {
            sources.add(&path.to_string_lossy(), &text);
        }
    }
    sources
}

/// Whether each mistake is found; on all cores, each of which breaks kernels in a copy of its own.
fn are_found(working: &MemorySources, folders: &[String], tried: &[Mutant]) -> Vec<bool> {
    let each = tried.len().div_ceil(rayon::current_num_threads()).max(1);
    let look = |own: &mut MemorySources, part: &[Mutant]| -> Vec<bool> {
        part.iter().map(|mutant| is_found(working, own, mutant)).collect()
    };
    let parts = tried.par_chunks(each).map_init(|| read(folders), look);
    parts.collect::<Vec<Vec<bool>>>().concat()
}

/// One mistake in a kernel, or in a launch of it in the same file: what replaces what.
struct Mutant {
    family: &'static str,
    kernel: ItemRef,
    range: Range<usize>,
    text: String,
    /// Whether nothing can be said of the place as it is.
    is_open: bool,
}

impl Mutant {
    fn describe(&self, sources: &MemorySources) -> String {
        let text = sources.text(self.kernel.file).unwrap_or_else(|| "".into());
        let line = text[..self.range.start].matches('\n').count() + 1;
        let path = sources.path(self.kernel.file);
        let old = &text[self.range.clone()];
        format!("{} {path}:{line}: `{old}` became `{}`", self.family, self.text)
    }
}

/// So many of `items` at most, spread evenly over them.
fn spread<T>(items: Vec<T>, most: usize) -> Vec<T> {
    let step = items.len().div_ceil(most).max(1);
    items.into_iter().step_by(step).collect()
}

/// So many kernels at most, spread evenly over those that there are.
fn kernels(sources: &MemorySources, most: usize) -> Vec<ItemRef> {
    spread(sources.files().flat_map(|file| project::kernels(sources, file)).collect(), most)
}

/// Whether the mistake adds an error or a warning to what there is in `working`; `own` is a copy of
/// those sources, in which it is made and mended.
fn is_found(working: &MemorySources, own: &mut MemorySources, mutant: &Mutant) -> bool {
    let file = mutant.kernel.file;
    let Some(text) = working.text(file) else { return false };
    let path = working.path(file);
    let mut broken = text.to_string();
    broken.replace_range(mutant.range.clone(), &mutant.text);
    own.add(&path, &broken);
    // Nothing general is wrong with a kernel that is tried.
    let found = !general(own, mutant.kernel).is_empty() || {
        let before = under_specializations(working, mutant.kernel);
        !under_specializations(own, mutant.kernel).is_subset(&before)
    };
    own.add(&path, &text);
    found
}

/// A finding as far as it does not depend on where it stands.
type Found = BTreeSet<(&'static str, String)>;

fn serious(found: impl IntoIterator<Item = Diagnostic>) -> Found {
    let serious = found.into_iter().filter(|found| found.severity >= Severity::Warning);
    serious.map(|found| (found.code.name(), found.message.to_string())).collect()
}

/// What is wrong whatever the arguments are, and with launches.
fn general(sources: &MemorySources, kernel: ItemRef) -> Found {
    let syntax = sources.parse(kernel.file).map(|parse| parse.diagnostics(kernel.file));
    let mut found = serious(syntax.into_iter().flatten());
    let inferred = Rules::default().infer_function(sources, kernel, true);
    found.extend(serious(inferred.into_iter().flat_map(|inferred| inferred.diagnostics)));
    found.extend(serious(analysis::check_launches(sources, kernel.file)));
    found
}

/// What is wrong under the first specializations that launches show.
fn under_specializations(sources: &MemorySources, kernel: ItemRef) -> Found {
    let mut found = Found::new();
    let specs = discover(sources, kernel, &Flags::default()).into_iter();
    for spec in specs.filter(|spec| spec.origin != Origin::Guess).take(SPECIALIZATIONS) {
        let mut lowering = Rules::default().lowering(sources, kernel);
        let checked =
            analysis::check_specialization(&mut lowering, &spec, true, &tile_executor::Executor);
        found.extend(serious(checked.into_iter().map(|(found, _)| found)));
    }
    found
}

/// The mistakes that are tried in a file.
fn mutants(sources: &MemorySources, file: FileId) -> Vec<Mutant> {
    let (Some(module), Some(text)) = (sources.module(file), sources.text(file)) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for at in project::kernels(sources, file) {
        let Some(function) = project::function(sources, at) else { continue };
        // A kernel with findings of its own is no working one.
        if !general(sources, at).is_empty() {
            continue;
        }
        let Some(inferred) = Rules::default().infer_function(sources, at, true) else { continue };
        let mut kernel = Kernel {
            at,
            function: &function,
            text: &text,
            types: &inferred.types,
            found: &mut found,
            is_open: false,
        };
        kernel.break_statements();
        kernel.break_expressions();
        let decorators = project::decorators(sources, at);
        kernel.is_open = decorators.iter().any(|found| matches!(found, Decorator::Other(_)));
        for launch in &module.launches {
            let of_kernel = matches!(&launch.body.exprs[launch.kernel],
                Expr::Name(name) if *name == function.name);
            if of_kernel {
                kernel.break_launch(launch);
            }
        }
    }
    found
}

struct Kernel<'a> {
    at: ItemRef,
    function: &'a Arc<Function>,
    text: &'a str,
    types: &'a BodyTypes,
    found: &'a mut Vec<Mutant>,
    /// Whether nothing can be said of the places that are being broken.
    is_open: bool,
}

impl Kernel<'_> {
    fn add(&mut self, family: &'static str, range: Range<usize>, text: impl Into<String>) {
        let (kernel, is_open) = (self.at, self.is_open);
        self.found.push(Mutant { family, kernel, range, text: text.into(), is_open });
    }

    fn range(&self, expr: ExprId) -> Range<usize> {
        self.function.map.exprs[expr].as_usize()
    }

    fn source(&self, expr: ExprId) -> &str {
        &self.text[self.range(expr)]
    }

    /// Puts something around an argument.
    fn wrap(&mut self, family: &'static str, arg: &Arg, before: &str, after: &str) {
        let text = format!("{before}{}{after}", self.source(arg.value));
        self.add(family, self.range(arg.value), text);
    }

    /// Whether an expression was evaluated and its value is known, with nothing known of arguments.
    fn is_understood(&self, expr: ExprId) -> bool {
        self.types.value(expr).is_some_and(|value| !value.is_unknown())
    }

    fn break_statements(&mut self) {
        let function = self.function.clone();
        let statements = function.body.stmts.iter();
        let inserted: Vec<(StmtId, &str)> = statements
            .filter_map(|(_, stmt)| match stmt {
                Stmt::For { body, .. } => Some((*body.first()?, "break")),
                Stmt::If { body, .. } => Some((*body.first()?, "import math")),
                _ => None,
            })
            .collect();
        for (first, text) in inserted {
            let start = function.map.stmts[first].as_usize().start;
            let line = self.text[..start].rfind('\n').map_or(0, |at| at + 1);
            let indent = &self.text[line..start];
            // A body on the line of its head, or behind a semicolon.
            if indent.trim().is_empty() {
                self.add("python", start..start, format!("{text}\n{indent}"));
            }
        }
    }

    fn break_expressions(&mut self) {
        let function = self.function.clone();
        let start = function.body.root.first().map(|first| function.map.stmts[*first].start);
        let inside = |id: &ExprId| Some(function.map.exprs[*id].start) >= start;
        for (id, expr) in function.body.exprs.iter().filter(|(id, _)| inside(id)) {
            match expr {
                Expr::Call { callee, args } => {
                    let end = self.range(id).end;
                    if self.text[..end].ends_with(')') {
                        self.add("syntax", end - 1..end, "");
                    }
                    if let Expr::Attribute { value, attr } = &function.body.exprs[*callee]
                        && self.source(*value) == "tl"
                    {
                        let end = self.range(*callee).end;
                        self.add("name", end..end, "e");
                        self.is_open = !args.iter().all(|arg| self.is_understood(arg.value));
                        self.break_call(attr, args);
                        self.is_open = false;
                    }
                }
                Expr::Binary { op: BinaryOp::And, lhs, .. } => {
                    self.is_open = !self.is_understood(*lhs);
                    let text = format!("tl.cast({}, tl.float32)", self.source(*lhs));
                    self.add("type", self.range(*lhs), text);
                    self.is_open = false;
                }
                Expr::Binary { lhs, .. } if matches!(function.body.exprs[*lhs], Expr::Name(_)) => {
                    let end = self.range(*lhs).end;
                    self.add("name", end..end, "_");
                }
                _ => {}
            }
        }
    }

    /// Breaks a call of a builtin.
    fn break_call(&mut self, name: &str, args: &[Arg]) {
        let keyword = |wanted: &str| args.iter().find(|arg| is_keyword(arg, wanted));
        let first = args.first().filter(|arg| arg.kind == ArgKind::Positional);
        let Some(first) = first else { return };
        match name {
            "load" | "store" => {
                if let Some(mask) = keyword("mask") {
                    self.wrap("mask", mask, "(", ") + 0");
                    if keyword("other").is_some() {
                        self.remove(mask);
                    }
                }
            }
            "arange" if args.len() == 2 => {
                self.add("constexpr", self.range(args[1].value), "tl.program_id(0)");
                self.add("shape", self.range(args[1].value), "3");
            }
            "static_range" => {
                self.add("constexpr", self.range(first.value), "tl.program_id(0)");
            }
            "zeros" | "full" => {
                if let Expr::Tuple(extents) | Expr::List(extents) =
                    &self.function.clone().body.exprs[first.value]
                    && let Some(extent) = extents.first()
                {
                    self.add("constexpr", self.range(*extent), "tl.program_id(0)");
                    self.add("shape", self.range(*extent), "3");
                }
            }
            "dot" => {
                if let Some(second) = args.get(1) {
                    self.wrap("shape", second, "(", ")[None, :, :]");
                }
            }
            "sum" | "max" | "min" | "cumsum" => {
                if let Some(axis) = keyword("axis") {
                    self.add("shape", self.range(axis.value), "5");
                }
            }
            "exp" | "exp2" | "log" | "log2" | "sqrt" | "rsqrt" | "sin" | "cos" => {
                self.wrap("type", first, "tl.cast(", ", tl.int32)");
            }
            "trans" if args.len() == 1 => self.wrap("shape", first, "", ", 0, 5"),
            _ => {}
        }
    }

    /// Takes a keyword argument away, with the comma before it.
    fn remove(&mut self, arg: &Arg) {
        let end = self.range(arg.value).end;
        if let Some(start) = self.text[..self.range(arg.value).start].rfind(',') {
            self.add("mask", start..end, "");
        }
    }

    fn break_launch(&mut self, launch: &Launch) {
        let decorators: String =
            self.function.decorators.iter().map(|at| self.source(*at)).collect();
        let passes_more = launch
            .args
            .iter()
            .any(|arg| !matches!(arg.kind, ArgKind::Positional | ArgKind::Keyword(_)));
        for arg in &launch.args {
            let ArgKind::Keyword(name) = &arg.kind else { continue };
            let Some(param) = self.function.params.iter().find(|param| param.name == *name) else {
                continue;
            };
            let value = launch.map.exprs[arg.value].as_usize();
            let Some(start) = self.text[..value.start].rfind(&**name) else { continue };
            let end = start + name.len();
            self.add("launch", end..end, "X");
            // A default, tuning or a heuristic gives it, or a dictionary may.
            let quoted = [format!("'{name}'"), format!("\"{name}\"")];
            let given = param.default.is_some()
                || passes_more
                || quoted.iter().any(|name| decorators.contains(name.as_str()));
            let comma = self.text[value.end..].starts_with(',');
            if !given && comma {
                self.add("launch", start..value.end + 1, "");
            }
        }
    }
}

fn is_keyword(arg: &Arg, wanted: &str) -> bool {
    matches!(&arg.kind, ArgKind::Keyword(name) if **name == *wanted)
}
