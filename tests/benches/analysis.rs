//! Time of the analyses per kernel: `cargo bench --package tile-tests --bench analysis`.
//!
//! Prints a table first: for each kernel of the examples, and of the packages below
//! `target/corpora` where `cargo xtask test corpora` has put them (or below the folders in
//! `TILE_BENCH_CORPORA`, separated by colons), the time of
//!
//! - `symbolic`: inference with nothing known of the arguments, and what it checks; to stay below
//!   2 ms in the median;
//! - `exact`: for one configuration, evaluation to tile IR and the search through masks, bounds and
//!   races; to stay below 10 ms in the median.
//!
//! Each time is the least of several runs, since what else runs on the machine only adds to it. Then
//! divan measures the parts on the examples alone.

use std::path::{Path, PathBuf};
use std::time::Instant;

use divan::{Bencher, black_box};
use tile_compiler::analysis;
use tile_compiler::eval::Rules;
use tile_compiler::project::{self, ItemRef, MemorySources, Sources};
use tile_compiler::source::FileId;
use tile_compiler::specialization::{Flags, Origin, Specialization, discover};

const EXAMPLES: &[&str] =
    &["attention", "cross_entropy", "layer_norm", "matmul", "rms_norm", "softmax", "vector_add"];

/// Runs of one measurement.
const RUNS: usize = 5;

/// Slowest measurements that are named.
const WORST: usize = 5;

fn main() {
    // The test runner asks for the list alone.
    if !std::env::args().any(|arg| arg == "--list" || arg == "--test") {
        for (name, folder) in corpora() {
            Corpus::read(&folder).measure(&name);
        }
    }
    divan::main();
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Names and folders of what the table is made from.
fn corpora() -> Vec<(String, PathBuf)> {
    let mut folders = vec![repository().join("examples")];
    match std::env::var("TILE_BENCH_CORPORA") {
        Ok(list) => folders.extend(list.split(':').map(PathBuf::from)),
        Err(_) => {
            let fetched = std::fs::read_dir(repository().join("target/corpora"));
            let entries = fetched.into_iter().flatten().flatten();
            let mut fetched: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
            fetched.sort();
            folders.extend(fetched);
        }
    }
    let name =
        |folder: &Path| folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    folders.into_iter().map(|folder| (name(&folder), folder)).collect()
}

/// The Python files below a folder.
struct Corpus {
    sources: MemorySources,
    files: Vec<FileId>,
}

/// What one kernel took, in milliseconds.
struct Time {
    what: String,
    ms: f64,
}

impl Corpus {
    fn read(folder: &Path) -> Corpus {
        let paths = tile_tests::files_below(folder, "py");
        let mut sources = MemorySources::new(vec![folder.to_string_lossy().into_owned()]);
        let texts = paths.iter().filter_map(|path| {
            let text = std::fs::read_to_string(path).ok()?;
            Some(sources.add(&path.to_string_lossy(), &text))
        });
        let files = texts.collect();
        Corpus { sources, files }
    }

    fn kernels(&self) -> impl Iterator<Item = (FileId, ItemRef)> + '_ {
        let of_file = |file: &FileId| {
            let file = *file;
            project::kernels(&self.sources, file).into_iter().map(move |at| (file, at))
        };
        self.files.iter().flat_map(of_file)
    }

    fn measure(&self, name: &str) {
        let (mut symbolic, mut exact) = (Vec::new(), Vec::new());
        for (_, at) in self.kernels() {
            let Some(item) = project::item(&self.sources, at) else { continue };
            let ms = least(|| {
                black_box(Rules::default().infer_function(&self.sources, at, true));
            });
            symbolic.push(Time { what: item.name.to_string(), ms });
            for spec in discover(&self.sources, at, &Flags::default()) {
                if spec.origin == Origin::Guess {
                    continue;
                }
                let ms = least(|| {
                    black_box(self.exact(at, &spec));
                });
                exact.push(Time { what: format!("{} {spec}", item.name), ms });
            }
        }
        print("symbolic", name, symbolic);
        print("exact", name, exact);
    }

    /// As `tile check` looks at one configuration; the number of findings.
    fn exact(&self, at: ItemRef, spec: &Specialization) -> usize {
        let lowered = Rules::default().lower_kernel(&self.sources, at, spec);
        let found = lowered
            .function
            .map(|func| analysis::check(&func, spec, self.sources.capability(), &|| ()).len());
        found.unwrap_or(lowered.diagnostics.len())
    }
}

/// The least time of several runs in milliseconds.
fn least(mut run: impl FnMut()) -> f64 {
    let times = (0..RUNS).map(|_| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64() * 1e3
    });
    times.fold(f64::INFINITY, f64::min)
}

fn print(part: &str, corpus: &str, mut times: Vec<Time>) {
    times.sort_by(|a, b| a.ms.total_cmp(&b.ms));
    let Some(last) = times.len().checked_sub(1) else { return };
    let at = |share: f64| times[(last as f64 * share).round() as usize].ms;
    println!(
        "{corpus:<24} {part:<8} {:>5} measured  median {:>8.3} ms  p95 {:>8.3} ms  worst {:>8.3} ms",
        times.len(),
        at(0.5),
        at(0.95),
        at(1.0),
    );
    for time in times.iter().rev().take(WORST) {
        let what: String = time.what.chars().take(100).collect();
        println!("    {:>8.3} ms  {what}", time.ms);
    }
}

/// The kernels of an example, each under the first specialization that a scenario shows.
fn example(name: &str) -> (Corpus, Vec<(FileId, ItemRef, Specialization)>) {
    let path = repository().join("examples").join(name).with_extension("py");
    let text = std::fs::read_to_string(path).expect("the example is there");
    let mut sources = MemorySources::new(Vec::new());
    let file = sources.add("kernel.py", &text);
    let corpus = Corpus { sources, files: vec![file] };
    let mut found = Vec::new();
    for (file, at) in corpus.kernels() {
        let mut specs = discover(&corpus.sources, at, &Flags::default()).into_iter();
        let spec = specs.find(|spec| spec.origin == Origin::Scenario);
        found.extend(spec.map(|spec| (file, at, spec)));
    }
    assert!(!found.is_empty(), "{name} has scenarios");
    (corpus, found)
}

#[divan::bench(args = EXAMPLES)]
fn symbolic(bencher: Bencher, name: &str) {
    let (corpus, kernels) = example(name);
    bencher.bench(|| {
        for (_, at, _) in &kernels {
            black_box(Rules::default().infer_function(&corpus.sources, *at, true));
        }
    });
}

#[divan::bench(args = EXAMPLES)]
fn exact(bencher: Bencher, name: &str) {
    let (corpus, kernels) = example(name);
    bencher.bench(|| {
        for (_, at, spec) in &kernels {
            black_box(corpus.exact(*at, spec));
        }
    });
}
