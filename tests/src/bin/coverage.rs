//! How much of the kernels below some folders the front end understands.
//!
//! ```text
//! coverage [--triton 3.6|3.9] [--why] [--root FOLDER]... FOLDER...
//! ```
//!
//! A kernel is *fully inferred* when, under each specialization found or guessed, every expression
//! that Triton would evaluate has a type: then it lowers to well-formed tile IR. A helper is fully
//! inferred when a kernel that is calls it, or, when none calls it, when every expression has a
//! type with nothing known of its arguments. Functions that use members of forks of Triton are
//! counted apart: no release of Triton compiles them.
//!
//! Folders are also the roots of absolute imports, as are those after `--root`, whose files are
//! read but not counted. Prints the reasons for what is not inferred by how often they occur, with
//! `--why` each place, and last one line of JSON.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::process::ExitCode;

use serde_json::json;
use tile_compiler::builtins::TritonVersion;
use tile_compiler::diagnostic::{Code, Diagnostic, Severity};
use tile_compiler::eval::{KernelInference, LowerResult, Rules};
use tile_compiler::ir;
use tile_compiler::project::{self, ItemRef, MemorySources, Sources};
use tile_compiler::source::{FileId, FileRange, LineIndex};
use tile_compiler::specialization::{Flags, discover};

fn main() -> ExitCode {
    let thread = std::thread::Builder::new().stack_size(tile_compiler::eval::STACK_BYTES);
    let ended = thread.spawn(measure).map(std::thread::JoinHandle::join);
    ended.ok().and_then(Result::ok).unwrap_or(ExitCode::FAILURE)
}

fn measure() -> ExitCode {
    let Some(arguments) = arguments() else {
        eprintln!("usage: coverage [--triton 3.6|3.9] [--why] [--root FOLDER]... FOLDER...");
        return ExitCode::FAILURE;
    };
    let (sources, counted) = read(&arguments);
    let mut coverage = Coverage {
        sources: &sources,
        rules: arguments.rules,
        why: arguments.why,
        ..Coverage::new(&sources)
    };
    for file in &counted {
        coverage.lower_kernels(*file);
    }
    for file in counted {
        coverage.count(file);
    }
    coverage.print();
    ExitCode::SUCCESS
}

struct Arguments {
    rules: Rules,
    why: bool,
    roots: Vec<String>,
    folders: Vec<String>,
}

fn arguments() -> Option<Arguments> {
    let mut words = std::env::args().skip(1);
    let mut arguments =
        Arguments { rules: Rules::Any, why: false, roots: Vec::new(), folders: Vec::new() };
    while let Some(word) = words.next() {
        match word.as_str() {
            "--why" => arguments.why = true,
            "--triton" => {
                arguments.rules = Rules::Only(TritonVersion::from_name(&words.next()?)?);
            }
            "--root" => arguments.roots.push(words.next()?),
            _ => arguments.folders.push(word),
        }
    }
    (!arguments.folders.is_empty()).then_some(arguments)
}

/// Every Python file, and those that count.
fn read(arguments: &Arguments) -> (MemorySources, Vec<FileId>) {
    let roots = [arguments.folders.clone(), arguments.roots.clone()].concat();
    let mut sources = MemorySources::new(roots);
    let mut add = |folder: &String| {
        let texts =
            tile_tests::files_below(Path::new(folder), "py").into_iter().filter_map(|path| {
                let text = std::fs::read_to_string(&path).ok()?;
                Some(sources.add(&path.to_string_lossy(), &text))
            });
        texts.collect::<Vec<FileId>>()
    };
    let counted = arguments.folders.iter().flat_map(&mut add).collect();
    arguments.roots.iter().for_each(|root| {
        add(root);
    });
    (sources, counted)
}

/// Whether one function is understood.
enum Verdict {
    Inferred,
    /// It uses a member that only a fork of Triton has.
    Foreign,
    /// Why not, and where.
    Not(String, FileRange),
}

/// Counts of one kind of thing.
#[derive(Default)]
struct Share {
    all: usize,
    good: usize,
    foreign: usize,
}

impl Share {
    fn percent(&self) -> f64 {
        let own = self.all - self.foreign;
        if own == 0 { 100.0 } else { 100.0 * self.good as f64 / own as f64 }
    }

    fn json(&self) -> serde_json::Value {
        json!({
            "all": self.all,
            "good": self.good,
            "foreign": self.foreign,
            "percent": (self.percent() * 10.0).round() / 10.0,
        })
    }
}

struct Coverage<'a> {
    sources: &'a MemorySources,
    rules: Rules,
    why: bool,
    /// Kernels that were lowered, with what came of it.
    kernels: BTreeMap<ItemRef, Verdict>,
    /// Helpers that a kernel which is fully inferred calls.
    reached: HashSet<ItemRef>,
    functions: Share,
    symbolic: Share,
    lowered_kernels: Share,
    specializations: Share,
    reasons: BTreeMap<String, usize>,
}

impl<'a> Coverage<'a> {
    fn new(sources: &'a MemorySources) -> Coverage<'a> {
        Coverage {
            sources,
            rules: Rules::Any,
            why: false,
            kernels: BTreeMap::new(),
            reached: HashSet::new(),
            functions: Share::default(),
            symbolic: Share::default(),
            lowered_kernels: Share::default(),
            specializations: Share::default(),
            reasons: BTreeMap::new(),
        }
    }

    /// Lowers every kernel of a file under each specialization.
    fn lower_kernels(&mut self, file: FileId) {
        for at in project::kernels(self.sources, file) {
            let mut verdict = Verdict::Inferred;
            let mut lowering = self.rules.lowering(self.sources, at);
            for spec in discover(self.sources, at, &Flags::default()) {
                let (spec, result) = lowering.lower(&spec);
                let found = self.judge(&result);
                self.specializations.add(&found);
                match (&verdict, found) {
                    (_, Verdict::Inferred) => self.reach(&result),
                    (Verdict::Inferred, other) => {
                        if let (true, Verdict::Not(_, _)) = (self.why, &other) {
                            println!("    under {:?} {spec}", spec.origin);
                        }
                        verdict = other;
                    }
                    _ => {}
                }
            }
            self.lowered_kernels.add(&verdict);
            self.kernels.insert(at, verdict);
        }
    }

    fn judge(&self, result: &LowerResult) -> Verdict {
        if let Some(function) = &result.function {
            return match ir::verify(function) {
                Ok(_) => Verdict::Inferred,
                Err(errors) => {
                    let text = errors.first().map_or_else(String::new, ToString::to_string);
                    Verdict::Not(format!("ill-formed: {text}"), FileRange::default())
                }
            };
        }
        if result.diagnostics.iter().any(is_foreign) {
            return Verdict::Foreign;
        }
        let error = result.diagnostics.iter().find(|found| found.severity == Severity::Error);
        match error {
            Some(error) => {
                let at = error.related.first().map_or(error.primary, |related| related.at);
                Verdict::Not(format!("{}: {}", error.code, error.message), at)
            }
            None => Verdict::Not("no reason given".to_owned(), FileRange::default()),
        }
    }

    /// Notes the helpers that a lowered kernel inlined.
    fn reach(&mut self, result: &LowerResult) {
        for callee in &result.inlined {
            let functions = project::jit_functions(self.sources, callee.file);
            let found = functions.into_iter().find(|at| {
                project::function(self.sources, *at)
                    .is_some_and(|function| std::sync::Arc::ptr_eq(&function, &callee.function))
            });
            self.reached.extend(found);
        }
    }

    /// Counts the jit functions of a file.
    fn count(&mut self, file: FileId) {
        let inference = self.rules.infer_file(self.sources, file);
        let functions = project::jit_functions(self.sources, file);
        for (at, inferred) in functions.into_iter().zip(&inference.kernels) {
            let alone = self.alone(at, inferred);
            self.symbolic.add(&alone);
            let verdict = match self.kernels.remove(&at) {
                Some(verdict) => verdict,
                None if self.reached.contains(&at) => Verdict::Inferred,
                None => alone,
            };
            self.functions.add(&verdict);
            if let Verdict::Not(reason, place) = verdict {
                self.note(&reason, place, &inferred.name);
            }
        }
    }

    /// Whether a function is understood with nothing known of its arguments.
    fn alone(&self, at: ItemRef, inferred: &KernelInference) -> Verdict {
        if inferred.diagnostics.iter().any(is_foreign) {
            return Verdict::Foreign;
        }
        let Some(function) = project::function(self.sources, at) else { return Verdict::Inferred };
        match inferred.types.not_understood(&function.body).first() {
            None => Verdict::Inferred,
            Some(cause) => {
                let at = FileRange { file: at.file, range: function.map.exprs[*cause] };
                Verdict::Not("not called, and unknown arguments give unknown types".to_owned(), at)
            }
        }
    }

    fn note(&mut self, reason: &str, at: FileRange, name: &str) {
        *self.reasons.entry(reason.to_owned()).or_default() += 1;
        if self.why {
            let text = self.sources.text(at.file).unwrap_or_else(|| "".into());
            let line = LineIndex::new(&text).line(at.range.start);
            let shown = text.lines().nth(line as usize).unwrap_or_default().trim();
            println!("{}:{} {name}: {reason}", self.sources.path(at.file), line + 1);
            println!("        {shown}");
        }
    }

    fn print(self) {
        let mut reasons: Vec<(String, usize)> = self.reasons.into_iter().collect();
        reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        for (reason, count) in reasons {
            println!("{count:5} {reason}");
        }
        let line = json!({
            "functions_inferred": self.functions.json(),
            "functions_inferred_alone": self.symbolic.json(),
            "kernels_lowered": self.lowered_kernels.json(),
            "specializations_lowered": self.specializations.json(),
        });
        println!("{line}");
    }
}

impl Share {
    fn add(&mut self, verdict: &Verdict) {
        self.all += 1;
        match verdict {
            Verdict::Inferred => self.good += 1,
            Verdict::Foreign => self.foreign += 1,
            Verdict::Not(..) => {}
        }
    }
}

/// True for the finding that a member of `tl` exists in a fork only.
fn is_foreign(found: &Diagnostic) -> bool {
    found.code == Code::UnknownBuiltin && found.severity == Severity::Warning
}
