//! Whatever is edited in a kernel file, no stage panics: parsing, lowering, inference, the search
//! for specializations, lowering to tile IR, the passes.
//!
//! Files of `examples/` are edited as people and broken tools edit: spans are deleted, doubled,
//! moved and replaced by other spans of any kernel file or by odd tokens. `TILE_FUZZ_EDITS=N` tries
//! that many edited files, `TILE_FUZZ_SEED=S` starts at another seed, and `TILE_FUZZ_CORPUS` names
//! other directories of kernel files, separated by `:`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tile_compiler::builtins::TritonVersion;
use tile_compiler::eval::{infer_file, lower_kernel};
use tile_compiler::passes;
use tile_compiler::project::{self, MemorySources};
use tile_compiler::specialization::{Flags, discover};

/// How long one file may take in a build without optimizations.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is typed where nobody expects it.
const TOKENS: &[&str] = &[
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ":",
    ",",
    ".",
    "=",
    "==",
    "->",
    "*",
    "**",
    "//",
    "%",
    "@",
    "-",
    "~",
    "\n",
    "\n    ",
    "\n\t",
    "\\\n",
    "\"",
    "'''",
    "#",
    "# tile:",
    " if ",
    " else ",
    " for ",
    " in ",
    " while ",
    " not ",
    " and ",
    " is None",
    "lambda x: ",
    "return ",
    "break",
    "continue",
    "def f(",
    "@triton.jit\n",
    "None",
    "True",
    "0",
    "-1",
    "1 << 70",
    "2 ** 64",
    "1e400",
    "0.0",
    "float(\"nan\")",
    "()",
    "(1, 2)[0]",
    "[:, None]",
    "[None, :, None]",
    "[::2]",
    "[...]",
    "f\"{x!r}\"",
    "tl.constexpr",
    "tl.arange(0, 16)",
    "tl.arange(4, 4)",
    "tl.zeros((16, 16), tl.float32)",
    "tl.load",
    "tl.store",
    "tl.dot",
    "tl.sum",
    "tl.reduce",
    "tl.float8e5",
    "tl.int1",
    "tl.int64",
    ".to(tl.float16)",
    ".T",
    ".shape[0]",
    ".dtype.element_ty",
    "tl.static_range(3)",
    "tl.program_id(0)",
    "tl.reshape(x, [4, -1])",
    "x",
    "self",
    "*args",
    "**kwargs",
    "é",
    "\u{0}",
    "\u{feff}",
    "\r",
    "BLOCK",
    "M",
    "K",
];

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    /// A place in a text between two characters.
    fn place(&mut self, text: &str) -> usize {
        let mut at = self.below(text.len() + 1);
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    }

    /// A span: of a few characters, between places where words end, or of whole lines.
    fn span(&mut self, text: &str) -> std::ops::Range<usize> {
        let start = self.place(text);
        let rest = &text[start..];
        match self.below(3) {
            0 => {
                let count = self.below(12);
                let end = rest.char_indices().nth(count).map_or(rest.len(), |(at, _)| at);
                start..start + end
            }
            1 => {
                let begin = text[..start].rfind(|c: char| !c.is_alphanumeric() && c != '_');
                let begin =
                    begin.map_or(0, |at| at + text[at..].chars().next().map_or(1, char::len_utf8));
                let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
                begin..start + end.unwrap_or(rest.len())
            }
            _ => {
                let begin = text[..start].rfind('\n').map_or(0, |at| at + 1);
                let lines = 1 + self.below(3);
                let end = rest.match_indices('\n').nth(lines - 1).map(|(at, _)| start + at + 1);
                begin..end.unwrap_or(text.len())
            }
        }
    }

    fn edit(&mut self, text: &mut String, corpus: &[String]) {
        let span = self.span(text);
        match self.below(6) {
            0 => text.replace_range(span, ""),
            1 => {
                let copy = text[span].to_owned();
                let at = self.place(text);
                text.insert_str(at, &copy);
            }
            2 => {
                let other = &corpus[self.below(corpus.len())];
                let from = self.span(other);
                text.replace_range(span, &other[from]);
            }
            3 => text.insert_str(span.start, TOKENS[self.below(TOKENS.len())]),
            4 => text.replace_range(span, TOKENS[self.below(TOKENS.len())]),
            _ => {
                let from = self.span(text);
                let moved = text[from].to_owned();
                text.replace_range(span, &moved);
            }
        }
    }
}

fn collect(directory: &Path, texts: &mut Vec<String>) {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let kernel = path.extension().is_some_and(|name| name == "py" || name == "tile");
        if path.is_dir() {
            collect(&path, texts);
        } else if kernel && let Ok(text) = std::fs::read_to_string(&path) {
            texts.push(text);
        }
    }
}

fn corpus() -> Vec<String> {
    let mut texts = Vec::new();
    match std::env::var_os("TILE_FUZZ_CORPUS") {
        Some(paths) => std::env::split_paths(&paths).for_each(|path| collect(&path, &mut texts)),
        None => {
            let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
            collect(&root.join("examples"), &mut texts);
        }
    }
    texts.retain(|text| text.contains("triton"));
    texts
}

/// Everything that is done with a file's text.
fn compile(text: &str) {
    let mut sources = MemorySources::new(Vec::new());
    let file = sources.add("kernel.py", text);
    for version in [TritonVersion::V3_6, TritonVersion::V3_9] {
        infer_file(&sources, file, version);
    }
    for at in project::jit_functions(&sources, file) {
        let Some(item) = project::item(&sources, at) else { continue };
        for spec in discover(&sources, at, &Flags::default()).into_iter().take(2) {
            let lowered = lower_kernel(&sources, file, &item.name, &spec, TritonVersion::default());
            if let Some(mut func) = lowered.function {
                passes::optimize(&mut func).expect("passes keep functions well formed");
            } else {
                let why = !lowered.diagnostics.is_empty() || project::is_broken(&sources, at);
                assert!(why, "nothing says why there is no kernel");
            }
        }
    }
}

/// What goes wrong with a text.
fn wrong(text: &str) -> Option<String> {
    let start = Instant::now();
    match catch_unwind(AssertUnwindSafe(|| compile(text))) {
        Err(_) => Some("it panics".to_owned()),
        Ok(()) if start.elapsed() > PATIENCE => Some(format!("it takes {:?}", start.elapsed())),
        Ok(()) => None,
    }
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn edited_kernel_files_never_panic() {
    let corpus = corpus();
    assert!(!corpus.is_empty(), "no kernel files found");
    let first = number("TILE_FUZZ_SEED", 1);
    for seed in first..first + number("TILE_FUZZ_EDITS", 120) {
        let mut random = Random(seed);
        let mut text = corpus[random.below(corpus.len())].clone();
        for _ in 0..1 + random.below(4) {
            random.edit(&mut text, &corpus);
        }
        if let Some(wrong) = wrong(&text) {
            let text = shrink(text);
            panic!("seed {seed}: {wrong}\n----\n{text}\n----");
        }
    }
}

/// The text without lines that do not matter.
fn shrink(mut text: String) -> String {
    let mut size = text.lines().count() / 2;
    while size > 0 {
        let mut start = 0;
        loop {
            let lines: Vec<&str> = text.split_inclusive('\n').collect();
            if start >= lines.len() {
                break;
            }
            let end = lines.len().min(start + size);
            let shorter = [lines[..start].concat(), lines[end..].concat()].concat();
            if wrong(&shorter).is_some() {
                text = shorter;
            } else {
                start += size;
            }
        }
        size /= 2;
    }
    text
}
