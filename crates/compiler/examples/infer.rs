//! Infers every jit function below some directories: `cargo run --example infer -- DIR...`.
//!
//! Prints each diagnostic, and how many functions and expressions are understood. With `--lower`
//! every kernel is also lowered under each specialization that is found for it. Directories are
//! also the roots of absolute imports.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tile_compiler::diagnostic::Severity;
use tile_compiler::eval::{infer_file, lower_kernel};
use tile_compiler::ir;
use tile_compiler::project::{self, MemorySources, Sources};
use tile_compiler::source::{FileId, LineIndex};
use tile_compiler::specialization::{Flags, TritonVersion, discover};

fn collect(dir: &Path, out: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, out);
        } else if path.extension().is_some_and(|extension| extension == "py") {
            out.push(path);
        }
    }
}

#[derive(Default)]
struct Totals {
    functions: usize,
    complete: usize,
    diagnostics: usize,
    expressions: usize,
    unknown: usize,
    time: Duration,
    slowest: (Duration, String),
    specializations: usize,
    lowered: usize,
    lower_time: Duration,
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let version = if args.iter().any(|arg| arg == "--3.6") {
        TritonVersion::V3_6
    } else {
        TritonVersion::V3_9
    };
    let lowers = args.iter().any(|arg| arg == "--lower");
    let roots: Vec<String> = args.into_iter().filter(|arg| !arg.starts_with("--")).collect();
    let mut paths = Vec::new();
    roots.iter().for_each(|root| collect(Path::new(root), &mut paths));
    paths.sort();
    let mut sources = MemorySources::new(roots);
    for path in &paths {
        if let Ok(text) = std::fs::read_to_string(path) {
            sources.add(&path.to_string_lossy(), &text);
        }
    }
    let mut totals = Totals::default();
    for file in sources.files() {
        report(&sources, file, version, &mut totals);
        if lowers {
            lower(&sources, file, version, &mut totals);
        }
    }
    if lowers {
        println!(
            "{} specializations, {} lowered, {:?}",
            totals.specializations, totals.lowered, totals.lower_time
        );
    }
    println!(
        "{} functions, {} fully inferred, {} diagnostics; {} expressions, {} unknown; {:?}, slowest {:?} {}",
        totals.functions,
        totals.complete,
        totals.diagnostics,
        totals.expressions,
        totals.unknown,
        totals.time,
        totals.slowest.0,
        totals.slowest.1
    );
}

fn report(sources: &MemorySources, file: FileId, version: TritonVersion, totals: &mut Totals) {
    let start = Instant::now();
    let inference = infer_file(sources, file, version);
    let elapsed = start.elapsed();
    totals.time += elapsed;
    if elapsed > totals.slowest.0 {
        totals.slowest = (elapsed, sources.path(file));
    }
    for kernel in &inference.kernels {
        let (expressions, unknown) = kernel.types.coverage();
        totals.functions += 1;
        totals.complete += usize::from(unknown == 0);
        totals.expressions += expressions;
        totals.unknown += unknown;
        for diagnostic in &kernel.diagnostics {
            totals.diagnostics += 1;
            let at =
                diagnostic.related.first().filter(|related| related.message.contains("inlined"));
            let place = at.map_or(diagnostic.primary, |related| related.at);
            let text = sources.text(place.file).unwrap_or_else(|| "".into());
            let line = LineIndex::new(&text).line(place.range.start);
            let shown = text.lines().nth(line as usize).unwrap_or_default().trim().to_owned();
            println!(
                "{}:{} [{}] {}: {}\n    {shown}",
                sources.path(place.file),
                line + 1,
                kernel.name,
                diagnostic.code,
                diagnostic.message
            );
        }
    }
}

fn lower(sources: &MemorySources, file: FileId, version: TritonVersion, totals: &mut Totals) {
    for at in project::kernels(sources, file) {
        let Some(item) = project::item(sources, at) else { continue };
        for spec in discover(sources, at, &Flags::default()).into_iter().take(4) {
            totals.specializations += 1;
            let start = Instant::now();
            let result = lower_kernel(sources, file, &item.name, &spec, version);
            totals.lower_time += start.elapsed();
            let errors = result.diagnostics.iter().filter(|d| d.severity == Severity::Error);
            for error in errors {
                let place = error.related.first().map_or(error.primary, |related| related.at);
                let text = sources.text(place.file).unwrap_or_else(|| "".into());
                let line = LineIndex::new(&text).line(place.range.start);
                let shown = text.lines().nth(line as usize).unwrap_or_default().trim().to_owned();
                println!(
                    "LOWER {}:{} [{}] {}: {}\n    {shown}\n    {spec}",
                    sources.path(place.file),
                    line + 1,
                    item.name,
                    error.code,
                    error.message
                );
            }
            let Some(function) = result.function else { continue };
            match ir::verify(&function) {
                Ok(_) => totals.lowered += 1,
                Err(errors) => println!(
                    "ILL-FORMED {} {}: {:?}\n    {spec}",
                    sources.path(file),
                    item.name,
                    errors.first()
                ),
            }
        }
    }
}
