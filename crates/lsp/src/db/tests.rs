//! The database after edits answers as a fresh one does.

use std::path::Path;
use std::sync::Arc;

use ropey::Rope;
use tile_compiler::source::TextRange;
use tile_compiler::syntax::{Edit, Parse};

use super::kernel::shown_launches;
use super::{
    Database, Kernel, SourceFile, SourceText, diagnostics, exact_diagnostics, kernels, lowered,
    module, types,
};
use crate::files::Disk;
use crate::packed::Packed;

const EXAMPLE: &str = include_str!("../../../../examples/softmax.py");

/// Kernels that share helpers and constants, a class, host code that launches.
const SHARED: &str = "\
import triton
import triton.language as tl

WIDTH = tl.constexpr(16)

@triton.jit
def twice(v, by: tl.constexpr = WIDTH):
    return v * 2 + by

class Host:
    def go(self, x, out, n):
        first[(1,)](x, out, n, BLOCK=128)
        second[(1,)](x, out, n, BLOCK=64)

@triton.jit
def first(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, twice(tl.load(x_ptr + at, mask=at < n)), mask=at < n)

@triton.jit
def second(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    wide = tl.zeros([BLOCK, WIDTH], tl.float32) + tl.load(x_ptr + at)[:, None]
    tl.store(out_ptr + at, tl.sum(twice(wide), 1))

# tile: x, out = randn(256), empty(256)
# tile: first[(2,)](x, out, 256, BLOCK=128)
";

/// Host code after the kernels, which go through helpers and memory that kernels write.
const LAUNCHED: &str = "\
import torch
import triton
import triton.language as tl

@triton.autotune(configs=[triton.Config({'BLOCK': 64}), triton.Config({'BLOCK': 32})], key=['n'])
@triton.jit
def tuned(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n), mask=at < n)

@triton.jit
def gather(index_ptr, out_ptr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    tl.store(out_ptr + at, tl.load(index_ptr + at))

def run(n=256):
    index = torch.arange(0, 16, device='cuda')
    x, out = torch.ones(n, device='cuda'), torch.empty(n, device='cuda')
    tuned[lambda meta: (triton.cdiv(n, meta['BLOCK']),)](x, out, n)
    gather[(1,)](index, out, SIZE=16)
    tuned[lambda meta: (triton.cdiv(16, meta['BLOCK']),)](index, out, 16)

run()
";

/// What is put in place of what was there.
const PIECES: [&str; 12] = [
    "",
    "",
    " ",
    "\n",
    "(",
    "x",
    "tl.sum(x)",
    "    y = 1\n",
    "# tile: n = 1\n",
    "@triton.jit\n",
    "twice(",
    "# 日本😀\n",
];

/// The suite makes this many edits; `TILE_EDITS` asks for more.
const EDITS: usize = 120;

fn set(db: &mut Database, parse: &Parse) -> SourceFile {
    let text = SourceText::parsed(parse.clone(), Rope::from_str(parse.text()));
    db.set_open(Path::new("/nowhere/kernels.py"), text)
}

/// Diagnostics, specializations, IR with its places, and types.
fn answers(db: &Database, file: SourceFile) -> String {
    let exact = exact_diagnostics(db, file);
    let mut out = format!("{:#?}\n", diagnostics(db, file, exact));
    for kernel in kernels(db, file) {
        let lowered = lowered(db, file, kernel.at.index, kernel.active(db));
        let labels: Vec<&str> = kernel.specializations.iter().map(|known| &*known.label).collect();
        out.push_str(&format!("{} {labels:?} {:?}\n", kernel.name, lowered.anchors));
        out.push_str(&lowered.ir.as_ref().map_or("no IR\n".to_owned(), Packed::get));
    }
    for (index, item) in module(db, file).items.iter().enumerate() {
        let tile_compiler::hir::ItemKind::Function(function) = &item.kind else { continue };
        let Some(types) = types(db, file, index as u32) else { continue };
        let texts: Vec<Option<String>> =
            function.body.exprs.keys().map(|expr| types.type_text(expr)).collect();
        out.push_str(&format!("{} {texts:?}\n", item.name));
    }
    out
}

/// Random numbers below a bound, the same ones every time.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound.max(1)
    }
}

fn edit_at_random(original: &str, edits: usize) {
    let mut db = Database::new(Arc::new(Disk));
    let mut parse = Parse::new(original);
    let mut random = Random(edits as u64);
    for number in 0..edits {
        let old = parse.text().clone();
        // Now and then the text is whole again, so that edits do not pile up rubble.
        let (start, end, piece) = if number % 8 == 7 {
            (0, old.len(), original)
        } else {
            let boundary = |mut at: usize| {
                while !old.is_char_boundary(at) {
                    at += 1;
                }
                at
            };
            let start = boundary(random.below(old.len()));
            let end = boundary((start + random.below(12)).min(old.len()));
            (start, end, PIECES[random.below(PIECES.len())])
        };
        let text = [&old[..start], piece, &old[end..]].concat();
        let edit = Edit { old: TextRange::new(start, end), new_len: piece.len() };
        parse = parse.edit(&edit, text.as_str());
        let file = set(&mut db, &parse);
        let mut fresh = Database::new(Arc::new(Disk));
        let fresh_file = set(&mut fresh, &Parse::new(text.as_str()));
        let (kept, found) = (answers(&db, file), answers(&fresh, fresh_file));
        assert_eq!(kept, found, "after edit {number}, {edit:?}\n{text}");
    }
}

fn edits() -> usize {
    std::env::var("TILE_EDITS").ok().and_then(|text| text.parse().ok()).unwrap_or(EDITS)
}

#[test]
fn edits_lead_to_what_a_fresh_database_knows() {
    edit_at_random(EXAMPLE, edits() / 3);
    edit_at_random(SHARED, edits());
    edit_at_random(LAUNCHED, edits());
}

#[test]
fn an_edit_inside_a_kernel_runs_no_host_code() {
    let mut db = Database::new(Arc::new(Disk));
    let file = set(&mut db, &Parse::new(LAUNCHED));
    let known = |db: &Database| {
        let launches = |kernel: &Kernel| kernel.specializations[0].spec.launches.clone();
        let shown: Vec<_> = kernels(db, file).iter().map(launches).collect();
        (std::ptr::from_ref(shown_launches(db, file)), shown)
    };
    let (run, before) = known(&db);
    assert!(before.iter().all(|launches| launches.iter().any(|launch| launch.grid.is_some())));
    let line = "    at = tl.arange(0, SIZE)\n";
    let harmless = LAUNCHED.replacen(line, &format!("{line}    less = at - 1\n"), 1);
    set(&mut db, &Parse::new(harmless.as_str()));
    assert_eq!(known(&db), (run, before));
    // What a kernel writes to is what host code does not know any more.
    let writes = LAUNCHED.replacen(line, &format!("{line}    tl.store(index_ptr + at, 0)\n"), 1);
    set(&mut db, &Parse::new(writes.as_str()));
    assert_ne!(known(&db).0, run);
    let (run, _) = known(&db);
    let shorter = writes.replacen("n=256", "n=128", 1);
    set(&mut db, &Parse::new(shorter.as_str()));
    assert_ne!(known(&db).0, run);
}

#[test]
fn an_edit_inside_a_kernel_leaves_the_others_alone() {
    let mut db = Database::new(Arc::new(Disk));
    let file = set(&mut db, &Parse::new(SHARED));
    let ir = |db: &Database, name: &str| {
        let kernel = super::kernel(db, file, name).expect("the kernel is there");
        lowered(db, file, kernel.at.index, 0).ir.clone().expect("it compiles")
    };
    let before = [ir(&db, "first"), ir(&db, "second")];
    let edited =
        SHARED.replacen("    at = tl.program_id", "    # more\n\n    at = tl.program_id", 1);
    set(&mut db, &Parse::new(edited.as_str()));
    assert!(before[1].is_shared(&ir(&db, "second")), "it was not lowered again");
    let moved = format!("\n\n{edited}");
    let inside = ir(&db, "first");
    set(&mut db, &Parse::new(moved.as_str()));
    assert!(inside.is_shared(&ir(&db, "first")), "lines that only move change nothing");
}

#[test]
fn no_number_of_kernels_makes_an_edit_lower_those_that_it_leaves_alone() {
    const KERNELS: usize = 30;
    let kernel = "\n@triton.jit\ndef at_N(out_ptr):\n    tl.store(out_ptr, N)\n";
    let mut text = "import triton\nimport triton.language as tl\n".to_owned();
    (0..KERNELS).for_each(|number| text.push_str(&kernel.replace('N', &number.to_string())));
    let mut db = Database::new(Arc::new(Disk));
    let file = set(&mut db, &Parse::new(text.as_str()));
    let all_ir = |db: &Database| {
        let ir = |kernel: &Kernel| lowered(db, file, kernel.at.index, 0).ir.clone();
        kernels(db, file).iter().map(ir).map(|ir| ir.expect("it compiles")).collect::<Vec<_>>()
    };
    let before = all_ir(&db);
    assert_eq!(before.len(), KERNELS);
    db.forget_large();
    set(&mut db, &Parse::new(text.replacen("ptr, 0)", "ptr, 7)", 1)));
    let after = all_ir(&db);
    let shared: Vec<bool> = before.iter().zip(&after).map(|(a, b)| a.is_shared(b)).collect();
    assert!(!shared[0] && shared[1..].iter().all(|shared| *shared), "{shared:?}");
}
