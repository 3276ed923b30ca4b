//! Offered edits are made, and what is found afterwards is compared.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use expect_test::{Expect, expect};
use tile_compiler::diagnostic::{Diagnostic, Fix, Severity};

use super::{assists, fix_all};
use crate::db::{self, Database, Db, SourceFile, SourceText, exact_diagnostics};
use crate::files::Disk;
use crate::ide::diagnostics::of_open;
use crate::ide::fixes::fixes;

/// Edits of one kind that are made in a file.
const PER_KIND: usize = 3;

/// What every kernel file starts with.
const HEAD: &str = "import triton\nimport triton.language as tl\n\n";

/// A file that can be edited and put back.
struct Bench {
    db: Database,
    path: PathBuf,
    text: String,
}

impl Bench {
    fn new(path: &Path, text: &str) -> Bench {
        let mut db = Database::new(Arc::new(Disk));
        db.set_open(path, SourceText::new(text));
        Bench { db, path: path.to_owned(), text: text.to_owned() }
    }

    fn file(&self) -> SourceFile {
        self.db.files().known(&self.path).expect("the file is open")
    }

    fn found(&self) -> Vec<Diagnostic> {
        of_open(&self.db, self.file(), exact_diagnostics(&self.db, self.file()))
    }

    /// The fixes of every finding, all of them at once, and what is offered at parameters, loads and
    /// stores.
    fn offers(&self) -> Vec<Fix> {
        let (db, file) = (&self.db, self.file());
        let exact = exact_diagnostics(db, file);
        let of_findings = self.found().into_iter().flat_map(|found| {
            fixes(db, file, exact, found.primary.range).into_iter().map(|quick| quick.fix)
        });
        let mut offers: Vec<Fix> = of_findings.chain(fix_all(db, file, exact)).collect();
        let accesses = ["tl.load(", "tl.store("];
        let accesses = accesses.iter().flat_map(|call| self.text.match_indices(call));
        let mut places: Vec<usize> = accesses.map(|(at, call)| at + call.len()).collect();
        for item in &db::module(db, file).items {
            let tile_compiler::hir::ItemKind::Function(function) = &item.kind else { continue };
            places.extend(function.params.iter().map(|param| param.range.start as usize));
        }
        offers.extend(places.into_iter().flat_map(|at| assists(db, file, at)));
        let mut seen = Vec::new();
        offers.retain(|fix| {
            let is_new = !seen.contains(&fix.edits);
            seen.push(fix.edits.clone());
            is_new
        });
        offers
    }

    /// What is found after `fix`, which is taken back.
    fn found_after(&mut self, fix: &Fix) -> Vec<Diagnostic> {
        let path = self.path.clone();
        self.db.set_open(&path, SourceText::new(edited(&self.text, fix)));
        let found = self.found();
        self.db.set_open(&path, SourceText::new(self.text.clone()));
        found
    }
}

fn edited(text: &str, fix: &Fix) -> String {
    let mut edits: Vec<_> = fix.edits.iter().collect();
    edits.sort_by_key(|edit| edit.at.range);
    let mut after = text.to_owned();
    for edit in edits.into_iter().rev() {
        after.replace_range(edit.at.range.as_usize(), &edit.text);
    }
    after
}

/// How often each code is found; errors alone where `severity` says so.
fn count(found: &[Diagnostic], severity: Severity) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for finding in found.iter().filter(|finding| finding.severity >= severity) {
        *counts.entry(finding.code.name()).or_default() += 1;
    }
    counts
}

/// Makes the offered edits, some of each kind; what is worse afterwards, a line each, and the number of edits.
fn wrong_offers(path: &Path, text: &str) -> (Vec<String>, usize) {
    let mut bench = Bench::new(path, text);
    let before = bench.found();
    let mut offers = bench.offers();
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    offers.retain(|fix| {
        // Titles begin with what is done, whatever it is done to.
        let kind = fix.title.split('`').next().unwrap_or_default().to_owned();
        let made = kinds.entry(kind).or_default();
        *made += 1;
        *made <= PER_KIND
    });
    let mut wrong = Vec::new();
    for fix in &offers {
        let after = bench.found_after(fix);
        let (old, new) = (count(&before, Severity::Error), count(&after, Severity::Error));
        let worse = new.iter().find(|(code, times)| old.get(*code).unwrap_or(&0) < *times);
        if let Some((code, _)) = worse {
            let message = after.iter().rfind(|found| found.code.name() == *code);
            let message = message.map_or("", |found| &found.message);
            wrong.push(format!("{}: {}: {code}: {message}", path.display(), fix.title));
        }
        if let Some(code) = fix.title.strip_prefix("Allow ") {
            let code = code.trim_end_matches(" here");
            let times = |found: &[Diagnostic]| count(found, Severity::Hint).get(code).copied();
            if times(&after) >= times(&before) {
                wrong.push(format!("{}: {}: it is still found", path.display(), fix.title));
            }
        }
    }
    (wrong, offers.len())
}

fn check(files: impl Iterator<Item = (PathBuf, String)>, at_least: usize) {
    let (mut wrong, mut made) = (Vec::new(), 0);
    for (path, text) in files {
        let (found, offers) = wrong_offers(&path, &text);
        wrong.extend(found);
        made += offers;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(made >= at_least, "{made} edits were offered");
}

#[test]
fn no_offered_edit_of_the_explanations_adds_an_error() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/diagnostics.md");
    let text = std::fs::read_to_string(file).expect("the explanations are there");
    let blocks = text.split("```python\n").skip(1).map(|rest| rest.split("```").next());
    let files = blocks.flatten().enumerate().map(|(number, block)| {
        (PathBuf::from(format!("/nowhere/example{number}.py")), format!("{HEAD}{block}"))
    });
    check(files, 200);
}

/// `TILE_CORPUS=FOLDER` tries the files of another folder.
#[test]
fn no_offered_edit_of_the_examples_adds_an_error() {
    let examples = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let folder = std::env::var_os("TILE_CORPUS").map_or_else(examples, PathBuf::from);
    let entries = std::fs::read_dir(folder).expect("the folder is there");
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|found| found == "py" || found == "tile"));
    paths.sort();
    let files = paths.into_iter().filter_map(|path| {
        let text = std::fs::read_to_string(&path).ok()?;
        Some((path, text))
    });
    check(files, 50);
}

/// The lines that edits with `part` in their title change, each after the title of the edit.
fn check_offers(text: &str, part: &str, expected: Expect) {
    let text = format!("{HEAD}{text}");
    let bench = Bench::new(Path::new("/nowhere/kernels.py"), &text);
    let mut out = String::new();
    for fix in bench.offers().iter().filter(|fix| fix.title.contains(part)) {
        let after = edited(&text, fix);
        let old: Vec<&str> = text.split('\n').collect();
        let new = after.split('\n').filter(|line| !line.is_empty() && !old.contains(line));
        out.push_str(&format!("{}\n", fix.title));
        new.for_each(|line| out.push_str(&format!("  {line}\n")));
    }
    expected.assert_eq(&out);
}

#[test]
fn masks_are_added_after_the_last_argument() {
    check_offers(
        "\
@triton.jit
def k(ptr, n, B: tl.constexpr):
    offs = tl.arange(0, B)
    a = tl.load(ptr + offs,)
    b = tl.load(
        ptr + offs,  # black's comma
    )
    c = tl.load(ptr + offs, eviction_policy=\"evict_last\")
    d = tl.load(pointer=ptr + offs  # the pointer
    )
    tl.store(ptr + offs, (a + b + c + d),)
",
        "Add mask",
        expect![[r#"
            Add mask and other
                  a = tl.load(ptr + offs, mask=offs < n, other=0.0,)
            Add mask and other
                      ptr + offs, mask=offs < n, other=0.0,  # black's comma
            Add mask and other
                  c = tl.load(ptr + offs, eviction_policy="evict_last", mask=offs < n, other=0.0)
            Add mask and other
                  d = tl.load(pointer=ptr + offs, mask=offs < n, other=0.0  # the pointer
            Add mask
                  tl.store(ptr + offs, (a + b + c + d), mask=offs < n,)
        "#]],
    );
}

#[test]
fn masks_are_masks_that_are_bound_where_they_are_added() {
    check_offers(
        "\
@triton.jit
def k(ptr, n, B: tl.constexpr):
    block = tl.make_block_ptr(ptr, (n,), (1,), (0,), (B,), (0,))
    masked_at = tl.arange(0, B)
    early = tl.load(ptr + masked_at)
    for start in range(0, n, B):
        mask = start + masked_at < n
        early += tl.load(ptr + start + masked_at)
    scalar = tl.load(ptr + 3)
    whole = tl.load(block)
    tl.store(ptr + masked_at, early + scalar + whole)
",
        "Add mask",
        expect![[r#"
            Add mask and other
                  early = tl.load(ptr + masked_at, mask=masked_at < n, other=0.0)
            Add mask and other
                      early += tl.load(ptr + start + masked_at, mask=mask, other=0.0)
            Add mask
                  tl.store(ptr + masked_at, early + scalar + whole, mask=masked_at < n)
        "#]],
    );
}

#[test]
fn annotations_suit_what_is_passed() {
    check_offers(
        "\
@triton.jit(do_not_specialize=[\"n\"])
def k(ptr, starts, n, width, B: tl.constexpr):
    offs = tl.arange(0, B) + tl.load(starts)
    tl.store(ptr + offs, offs, mask=offs < n * width)

def launch(x, starts):
    k[(1,)](x, starts, x.numel(), 2, B=16)
",
        "Annotate",
        expect![[r#"
            Annotate `width` with `tl.constexpr`
              def k(ptr, starts, n, width: tl.constexpr, B: tl.constexpr):
        "#]],
    );
}

#[test]
fn scenarios_give_what_a_launch_has_to() {
    check_offers(
        "\
@triton.autotune(configs=[triton.Config({\"B\": 32}, num_warps=8)], key=[\"n\"])
@triton.heuristics({\"EVEN\": lambda args: args[\"n\"] % args[\"B\"] == 0})
@triton.jit
def tuned(ptr, B: tl.constexpr, n, EVEN: tl.constexpr):
    offs = tl.arange(0, B)
    tl.store(ptr + offs, offs, mask=offs < n)

@triton.jit
def folded(ptr, bias, n, B: tl.constexpr):
    offs = tl.arange(0, B)
    if bias is not None:
        offs += tl.load(bias)
    tl.store(ptr + offs, offs, mask=offs < n)  # the end

def launch(x):
    folded[(1,)](x, None, x.numel(), B=16, num_warps=8)
",
        "scenario",
        expect![[r#"
            Add a scenario that launches `folded`
              # tile: ptr = randn(1048576)
              # tile: n = 1024
              # tile: folded[(1,)](ptr, bias=None, n=n, B=16, num_warps=8)
            Add a scenario that launches `tuned`
              # tile: ptr = randn(1048576)
              # tile: n = 1024
              # tile: tuned[(1,)](ptr, n=n)
        "#]],
    );
}

#[test]
fn scenarios_launch_as_host_code_does() {
    check_offers(
        "\
import torch
import triton
import triton.language as tl

@triton.autotune(configs=[triton.Config({\"B\": 32}), triton.Config({\"B\": 64})], key=[\"n\"])
@triton.jit
def tuned(ptr, n, B: tl.constexpr):
    offs = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(ptr + offs, offs, mask=offs < n)

@triton.jit
def scaled(ptr, rows, scale, n, B: tl.constexpr):
    offs = tl.program_id(0) * n + tl.arange(0, B)
    at = tl.load(rows + tl.program_id(1))
    tl.store(ptr + offs, at * scale, mask=tl.arange(0, B) < n)

def launch():
    x = torch.empty(6, 100, device=\"cuda\", dtype=torch.float16)
    scaled[(6, 2)](x, torch.arange(2, device=\"cuda\"), 0.5, x.stride(0), B=128, num_warps=2)
    tuned[lambda meta: (triton.cdiv(600, meta[\"B\"]),)](x, 600)
",
        "scenario",
        expect![[r#"
            Add a scenario that launches `scaled`
              # tile: ptr = randn(6, 100, dtype=float16, seed=1)
              # tile: rows = arange(0, 2, 1, dtype=int64)
              # tile: scale = 0.5
              # tile: n = 100
              # tile: scaled[(6, 2)](ptr, rows, scale, n, B=128, num_warps=2)
            Add a scenario that launches `tuned`
              # tile: ptr = randn(1048576, dtype=float16)
              # tile: n = 1024
              # tile: tuned[(1,)](ptr, n)
        "#]],
    );
}

#[test]
fn lines_end_as_those_around_them() {
    let text = "import triton\r\nimport triton.language as tl\r\n\r\n@triton.jit\r\ndef k(ptr, B: \
                tl.constexpr):\r\n    offs = tl.arange(0, B)\r\n    unused = offs\r\n    \
                tl.store(ptr + offs, offs)\r\n";
    let bench = Bench::new(Path::new("/nowhere/kernels.py"), text);
    let edits: Vec<String> = bench.offers().iter().map(|fix| edited(text, fix)).collect();
    let grown = edits.iter().filter(|after| after.lines().count() > text.lines().count());
    assert_eq!(grown.count(), 2, "a scenario, and a comment that allows: {edits:#?}");
    for after in edits {
        assert_eq!(after.matches('\n').count(), after.matches("\r\n").count(), "{after:?}");
    }
}

#[test]
fn what_is_found_in_scenarios_can_be_allowed() {
    check_offers(
        "\
@triton.jit
def fill(out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, 1.0, mask=offsets < n)

# tile: out = empty(1000)
# tile: fill[(1000 // 256,)](out, 1000, BLOCK=256)
# tile: assert allclose(out, 1.0)
",
        "Allow bounds/uncovered",
        expect![[r#"
            Allow bounds/uncovered here
              # tile: allow bounds/uncovered
        "#]],
    );
}

#[test]
fn names_that_are_given_are_not_given_again() {
    let launch = |args: &str| {
        format!(
            "@triton.jit\ndef k(ptr, n, BLOCK: tl.constexpr):\n    tl.store(ptr, n + BLOCK)\n\n\
             def launch(x):\n    k[(1,)](x, {args})\n"
        )
    };
    check_offers(
        &launch("4, BLOK=256"),
        "BLOCK",
        expect![[r#"
        Change to `BLOCK`
              k[(1,)](x, 4, BLOCK=256)
    "#]],
    );
    check_offers(&launch("4, BLOK=256, BLOCK=256"), "BLOCK", expect![[r#""#]]);
    check_offers(&launch("4, 256, BLOK=256"), "BLOCK", expect![[r#""#]]);
}
