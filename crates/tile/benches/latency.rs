//! What a user waits for: `cargo bench --package tile --bench latency`.
//!
//! The compile benchmark takes the way of an edit: text to tile IR in this process, then a warm
//! worker process, without any cache, to PTX and the assembler's resources. Without an assembler
//! it ends at PTX.

use std::path::Path;
use std::process::{Command, Stdio};

use divan::Bencher;
use tile_compiler::artifact::Keep;
use tile_compiler::eval::Rules;
use tile_compiler::project::{self, MemorySources};
use tile_compiler::specialization::{Flags, discover};
use tile_worker::{Cache, Cancel, CompileOptions, CompileRequest, Pool, WorkerCommand};

const TILE: &str = env!("CARGO_BIN_EXE_tile");
const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");

fn main() {
    divan::main();
}

/// Starting `tile check` on one file, until it ends.
#[divan::bench(sample_count = 20)]
fn check_start_up(bencher: Bencher) {
    let file = Path::new(EXAMPLES).join("vector_add.py");
    bencher.bench(|| {
        let status = Command::new(TILE).arg("check").arg(&file).stdout(Stdio::null()).status();
        assert!(status.expect("tile starts").success());
    });
}

/// From changed text to PTX and resources.
#[divan::bench(args = ["vector_add.py", "softmax.py", "giou.py"], sample_count = 20)]
fn edit_to_resources(bencher: Bencher, name: &str) {
    let text = std::fs::read_to_string(Path::new(EXAMPLES).join(name)).expect("an example");
    let command = WorkerCommand { program: TILE.into(), args: vec!["worker".to_owned()] };
    let pool = Pool::new(command, Cache::disabled());
    let options = CompileOptions {
        arch: "sm_90a".to_owned(),
        ptxas: tile_worker::ptxas::find(None, None),
        nvdisasm: None,
        keep: Keep::default(),
        depth: tile_worker::protocol::Depth::Full,
    };
    bencher.bench(|| {
        let mut sources = MemorySources::new(Vec::new());
        let file = sources.add(name, &text);
        let at = project::jit_functions(&sources, file)[0];
        let spec = discover(&sources, at, &Flags::default()).remove(0);
        let lowered = Rules::Any.lower_kernel(&sources, at, &spec);
        let ir = lowered.function.expect("the examples compile").to_string();
        let request = CompileRequest { ir, options: options.clone() };
        pool.compile(&request, &Cancel::default()).expect("the examples compile")
    });
}
