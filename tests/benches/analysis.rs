//! Time of the analyses per kernel: `cargo bench --package tile-tests --bench analysis`.
//!
//! `masks` takes no launch and is to stay below 2 ms per kernel in the median; `accesses` is exact
//! for the launches of the kernel's scenarios and is to stay below 10 ms.

use std::path::Path;

use divan::{Bencher, black_box};
use tile_compiler::analysis;
use tile_compiler::eval::Rules;
use tile_compiler::ir::Function;
use tile_compiler::project::{self, MemorySources};
use tile_compiler::specialization::{Flags, Origin, Specialization, discover};

const EXAMPLES: &[&str] =
    &["attention", "cross_entropy", "layer_norm", "matmul", "rms_norm", "softmax", "vector_add"];

fn main() {
    divan::main();
}

/// The kernels of an example, each under the first specialization that a scenario shows.
fn kernels(name: &str) -> Vec<(Function, Specialization)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(name);
    let text = std::fs::read_to_string(path.with_extension("py")).expect("the example is there");
    let mut sources = MemorySources::new(Vec::new());
    let file = sources.add("kernel.py", &text);
    let mut found = Vec::new();
    for at in project::kernels(&sources, file) {
        let name = project::item(&sources, at).expect("a kernel is an item").name;
        let specs = discover(&sources, at, &Flags::default());
        let Some(spec) = specs.into_iter().find(|spec| spec.origin == Origin::Scenario) else {
            continue;
        };
        let lowered = Rules::default().lower_kernel(&sources, file, &name, &spec);
        found.extend(lowered.function.map(|function| (function, spec)));
    }
    assert!(!found.is_empty(), "{name} has scenarios");
    found
}

#[divan::bench(args = EXAMPLES)]
fn masks(bencher: Bencher, name: &str) {
    let kernels = kernels(name);
    bencher.bench(|| {
        for (function, spec) in &kernels {
            black_box(analysis::check_masks(function, spec));
        }
    });
}

#[divan::bench(args = EXAMPLES)]
fn accesses(bencher: Bencher, name: &str) {
    let kernels = kernels(name);
    bencher.bench(|| {
        for (function, spec) in &kernels {
            black_box(analysis::check_accesses(function, spec));
        }
    });
}
