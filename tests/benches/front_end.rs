//! Time of the front end's stages: `cargo bench --package tile-tests --bench front_end`.
//!
//! The long file repeats the example kernels up to 1,500 lines, about the size of the largest
//! kernel files that people edit.

use std::path::Path;

use divan::{Bencher, black_box};
use tile_compiler::builtins::TritonVersion;
use tile_compiler::eval;
use tile_compiler::hir::lower;
use tile_compiler::ir;
use tile_compiler::passes;
use tile_compiler::project::{self, MemorySources};
use tile_compiler::source::{FileId, TextRange};
use tile_compiler::specialization::{Flags, discover};
use tile_compiler::syntax::{Edit, Parse};

const LINES: usize = 1500;

fn main() {
    divan::main();
}

fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn long_file() -> String {
    let parts = ["softmax.py", "giou.py", "vector_add.py"].map(example);
    let mut text = String::new();
    for copy in 0.. {
        for part in &parts {
            text += &part.replace("_kernel", &format!("_kernel_{copy}"));
        }
        if text.lines().count() >= LINES {
            break;
        }
    }
    text
}

fn sources(name: &str, text: &str) -> (MemorySources, FileId) {
    let mut sources = MemorySources::new(Vec::new());
    let file = sources.add(name, text);
    (sources, file)
}

/// Parsing 1,500 lines from nothing.
#[divan::bench]
fn parse(bencher: Bencher) {
    let text = long_file();
    bencher.bench(|| Parse::new(black_box(text.as_str())));
}

/// Parsing 1,500 lines again after one character in the middle changed.
#[divan::bench]
fn parse_after_edit(bencher: Bencher) {
    let text = long_file();
    let at = text[..text.len() / 2].rfind("tl.load").expect("the examples load");
    let parse = Parse::new(text.as_str());
    let mut changed = text.clone();
    changed.insert(at, 'x');
    let edit = Edit { old: TextRange::empty(at), new_len: 1 };
    bencher.bench(|| parse.edit(black_box(&edit), changed.as_str()));
}

/// Lowering 1,500 parsed lines to HIR.
#[divan::bench]
fn lower_to_hir(bencher: Bencher) {
    let parse = Parse::new(long_file());
    bencher.bench(|| lower(black_box(&parse)));
}

/// Inferring every kernel of 1,500 lines.
#[divan::bench]
fn infer(bencher: Bencher) {
    let (sources, file) = sources("long.py", &long_file());
    bencher.bench(|| eval::infer_file(black_box(&sources), file, TritonVersion::default()));
}

/// From HIR to optimized, verified tile IR for one kernel and its first specialization.
#[divan::bench(args = ["vector_add.py", "giou.py", "softmax.py"])]
fn tile_ir(bencher: Bencher, name: &str) {
    let (sources, file) = sources(name, &example(name));
    let at = project::jit_functions(&sources, file)[0];
    let kernel = project::kernel(&sources, at).expect("a jit function");
    let spec = discover(&sources, at, &Flags::default()).remove(0);
    bencher.bench(|| {
        let name = &kernel.item.name;
        let lowered = eval::lower_kernel(&sources, file, name, &spec, TritonVersion::default());
        let mut func = lowered.function.expect("the examples compile");
        passes::optimize(&mut func).expect("passes keep functions well formed");
        func
    });
}

/// Printing and reading back the text form of a kernel.
#[divan::bench]
fn ir_round_trip(bencher: Bencher) {
    let text = include_str!("../filetests/ir/add.tir");
    let func = ir::parse(text).expect("the filetest parses");
    bencher.bench(|| ir::parse(&black_box(&func).to_string()));
}
