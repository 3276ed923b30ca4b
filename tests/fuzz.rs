//! The fuzzers' targets on seeds that are changed at random.
//!
//! The suite tries [`RUNS`] changed seeds of each target; `TILE_FUZZ_RUNS=N` asks for more,
//! `TILE_FUZZ_MINUTES=N` for as many as fit into a time, `TILE_FUZZ_SEED=S` for others, and
//! `TILE_FUZZ_TARGET=NAME` for one target alone.

use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use targets::{TARGETS, Target};

// A package of another workspace, so its file rather than the package.
#[path = "../fuzz/src/lib.rs"]
mod targets;

/// How many inputs of each target the suite tries.
const RUNS: usize = 150;

/// Longest that one input may take in a build without optimizations.
const PATIENCE: Duration = Duration::from_secs(60);

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound.max(1) as u64) as usize
    }

    /// A span of up to `most` bytes.
    fn span(&mut self, bytes: &[u8], most: usize) -> std::ops::Range<usize> {
        let start = self.below(bytes.len() + 1);
        start..(start + self.below(most + 1)).min(bytes.len())
    }

    /// Bytes made of seeds.
    fn change(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = seeds[self.below(seeds.len())].clone();
        for _ in 0..1 + self.below(6) {
            let span = self.span(&bytes, 24);
            match self.below(6) {
                0 => drop(bytes.drain(span)),
                1 => {
                    let other = &seeds[self.below(seeds.len())];
                    let from = self.span(other, 200);
                    bytes.splice(span, other[from].iter().copied());
                }
                2 => {
                    bytes.splice(span.clone(), std::iter::repeat_n(0xff, span.len())).for_each(drop)
                }
                3 if !span.is_empty() => bytes[span.start] ^= 1 << self.below(8),
                4 => {
                    // A line moves.
                    let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
                    let line = lines.remove(self.below(lines.len()));
                    lines.insert(self.below(lines.len() + 1), line);
                    bytes = lines.join(&b'\n');
                }
                _ => {
                    let token = TOKENS[self.below(TOKENS.len())];
                    bytes.splice(span, token.bytes());
                }
            }
        }
        bytes
    }
}

/// What stands where it should not.
const TOKENS: &[&str] = &[
    "(",
    ")",
    "[",
    "{",
    "}",
    "\"",
    "'''",
    ":",
    ",",
    "\n",
    "\r\n",
    "\r",
    "\t",
    "\n    ",
    "\\",
    "#",
    "# tile: ",
    "@triton.jit\n",
    "def f(",
    "null",
    "-1",
    "4294967295",
    "18446744073709551616",
    "1e999",
    "\u{65e5}",
    "\u{1f600}",
    "\u{feff}",
    "\\ud800",
    "\\u0000",
    "textDocument/",
    "file:///",
    "Content-Length: ",
    "Content-Length: 99999999999999999999\r\n\r\n",
    "\r\n\r\n",
    "\"id\":",
    "\"method\":",
    "\"params\":",
];

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds").join(target);
    let entries = std::fs::read_dir(folder).expect("every target has seeds").flatten();
    let mut seeds: Vec<_> = entries.map(|entry| entry.path()).collect();
    seeds.sort();
    seeds.iter().map(|path| std::fs::read(path).expect("seeds can be read")).collect()
}

fn number(variable: &str) -> Option<usize> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Tries one input.
fn attempt(name: &str, target: Target, input: &[u8]) {
    let start = Instant::now();
    let ended = catch_unwind(AssertUnwindSafe(|| target(input)));
    let taken = start.elapsed();
    if ended.is_ok() && taken < PATIENCE {
        return;
    }
    let mut shown = String::new();
    for byte in input {
        let _ = write!(shown, "{}", std::ascii::escape_default(*byte));
    }
    panic!("{name} fails or is slow ({taken:?}) on b\"{shown}\"");
}

#[test]
fn no_input_is_too_much() {
    let time = number("TILE_FUZZ_MINUTES").map(|minutes| Duration::from_secs(minutes as u64 * 60));
    let runs = number("TILE_FUZZ_RUNS").unwrap_or(RUNS);
    let only = std::env::var("TILE_FUZZ_TARGET").ok();
    for (name, target) in TARGETS.iter().filter(|(name, _)| only.as_ref().is_none_or(|o| o == name))
    {
        let seeds = seeds(name);
        assert!(!seeds.is_empty(), "{name} has no seeds");
        for seed in &seeds {
            attempt(name, *target, seed);
        }
        let mut random = Random(number("TILE_FUZZ_SEED").unwrap_or(1) as u64);
        let start = Instant::now();
        let mut done = 0;
        while time.map_or(done < runs, |time| start.elapsed() < time) {
            attempt(name, *target, &random.change(&seeds));
            done += 1;
        }
        println!("{name}: {done} inputs in {:.0} s", start.elapsed().as_secs_f64());
    }
}
