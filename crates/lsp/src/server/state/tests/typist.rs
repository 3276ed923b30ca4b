//! Somebody who works on kernel files: types, deletes, moves, takes back, opens, renames.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tower_lsp::ls_types::Position;

use super::Memory;

/// Files that import each other, one through a package, and host code that launches.
const LINKED: [(&str, &str); 5] = [
    (
        "helper.py",
        "import triton\nimport triton.language as tl\n\nWIDTH = tl.constexpr(16)\n\n\n@triton.jit\n\
         def twice(v, by: tl.constexpr = WIDTH):\n    return v * 2 + by\n",
    ),
    ("lib/__init__.py", "from .ops import half, scale\n"),
    (
        "lib/ops.py",
        "import triton\nimport triton.language as tl\nfrom helper import WIDTH\n\n\n@triton.jit\n\
         def half(v):\n    return v * 0.5\n\n\n@triton.jit\ndef scale(v, by):\n    \
         return half(v) * by + WIDTH\n",
    ),
    (
        "kernels.py",
        "import triton\nimport triton.language as tl\nimport lib\nfrom helper import twice, WIDTH\n\
         from lib import half\n\n\n@triton.jit\ndef first(x_ptr, out_ptr, n, BLOCK: tl.constexpr):\n    \
         at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    \
         x = tl.load(x_ptr + at, mask=at < n)\n    \
         tl.store(out_ptr + at, twice(half(x)), mask=at < n)\n\n\n@triton.jit\n\
         def second(x_ptr, out_ptr, BLOCK: tl.constexpr):\n    at = tl.arange(0, BLOCK)\n    \
         wide = tl.zeros([BLOCK, WIDTH], tl.float32) + tl.load(x_ptr + at)[:, None]\n    \
         tl.store(out_ptr + at, tl.sum(lib.scale(wide, 3), 1))\n\n\n\
         # tile: x, out = randn(256), empty(256)\n# tile: first[(2,)](x, out, 256, BLOCK=128)\n",
    ),
    (
        "host.py",
        "import torch\nimport triton\nfrom kernels import first, second\n\n\ndef go(n):\n    \
         x = torch.zeros(n, dtype=torch.float16)\n    out = torch.zeros(n, dtype=torch.float16)\n    \
         first[(triton.cdiv(n, 64),)](x, out, n, BLOCK=64)\n    \
         second[(1,)](x, out, BLOCK=32, num_warps=2)\n",
    ),
];

/// Names that a file may get.
const NAMES: [&str; 4] = ["helper.py", "moved.py", "lib/helper.py", "kernels.py"];

/// Files of the corpus that lie beside the linked ones.
const OTHERS: usize = 2;

/// Larger files take long in a build without optimizations.
const MAX_BYTES: usize = 6_000;

/// What is typed where it fits, and where it does not.
const PIECES: [&str; 24] = [
    "(",
    ")",
    "[",
    "]",
    ":",
    ",",
    ".",
    "=",
    " ",
    "#",
    "\"",
    "\n",
    "\n    ",
    "x",
    "0",
    "tl.",
    "BLOCK",
    "tl.sum(x)",
    "    y = tl.arange(0, 16)\n",
    "# tile: n = 1\n",
    "@triton.jit\n",
    "return ",
    "from helper import ",
    "# 日本😀\n",
];

/// Texts that can be taken back.
const HISTORY: usize = 20;

/// After about this many edits of a file it is whole again, so that edits do not pile up rubble.
const WHOLE_AGAIN: usize = 30;

/// Random numbers, the same ones every time.
pub(super) struct Random(u64);

impl Random {
    /// Numbers from a seed.
    pub(super) fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// A number below a bound.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound.max(1)
    }

    fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    fn word(&mut self, of: &[&'static str]) -> &'static str {
        of[self.below(of.len())]
    }
}

/// One replacement, in positions of the text before it; characters are bytes.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) start: Position,
    pub(super) end: Position,
    pub(super) text: String,
}

/// What an editor tells the server.
#[derive(Debug)]
pub(super) enum Step {
    /// A document is opened.
    Open { path: PathBuf, text: String, version: i32 },
    /// A document is closed.
    Close { path: PathBuf },
    /// A document is edited.
    Edit { path: PathBuf, version: i32, changes: Vec<Change> },
    /// Files changed on the disk.
    FilesChanged { paths: Vec<PathBuf> },
    /// Settings changed.
    Configure { settings: Value },
}

#[derive(Debug)]
struct Document {
    text: String,
    version: i32,
    /// Older texts, the newest last.
    history: Vec<String>,
}

/// The user: what they have open, and what lies on the disk.
pub(super) struct Typist {
    /// The texts that files started with.
    originals: BTreeMap<PathBuf, String>,
    open: BTreeMap<PathBuf, Document>,
    folder: PathBuf,
    settings: Value,
    version: i32,
    taken: Vec<String>,
}

impl Typist {
    /// Lays out a workspace.
    pub(super) fn new(folder: &Path, files: &Memory, random: &mut Random) -> Typist {
        let mut originals: BTreeMap<PathBuf, String> =
            LINKED.iter().map(|(name, text)| (folder.join(name), (*text).to_owned())).collect();
        let corpus = corpus();
        assert!(!corpus.is_empty(), "there are no kernel files");
        for _ in 0..OTHERS {
            let (name, text) = random.one(&corpus);
            originals.insert(folder.join(name), text.clone());
        }
        for (path, text) in &originals {
            files.set(path, Some(text));
        }
        let settings = json!({ "triton": "", "lints": {} });
        let (open, taken) = Default::default();
        let folder = folder.to_owned();
        Typist { originals, open, folder, settings, version: 0, taken }
    }

    /// The settings in force.
    pub(super) fn settings(&self) -> &Value {
        &self.settings
    }

    /// What is open, with its text and version.
    pub(super) fn open_documents(&self) -> impl Iterator<Item = (&Path, &str, i32)> {
        self.open.iter().map(|(path, open)| (&**path, &*open.text, open.version))
    }

    /// The last steps, for whoever looks for a fault.
    pub(super) fn describe(&self) -> String {
        let last = self.taken.len().saturating_sub(8);
        format!("step {}:\n{}", self.taken.len(), self.taken[last..].join("\n"))
    }

    /// Does something; what the editor tells of it.
    pub(super) fn step(&mut self, files: &Memory, random: &mut Random) -> Vec<Step> {
        let steps = match random.below(40) {
            0 => self.toggle(files, random),
            1 => self.save(files, random),
            2 => self.write_elsewhere(files, random),
            3 => self.rename(files, random),
            4 => self.remove(files, random),
            5 => self.configure(random),
            _ if self.open.len() < 2 => self.toggle(files, random),
            _ => self.edit(random),
        };
        self.taken.push(format!("{steps:?}"));
        steps
    }

    fn paths(&self) -> Vec<PathBuf> {
        self.originals.keys().cloned().collect()
    }

    fn some_open(&self, random: &mut Random) -> Option<PathBuf> {
        self.open.keys().nth(random.below(self.open.len())).cloned()
    }

    fn opened(&mut self, path: &Path, text: String) -> Step {
        self.version += 1;
        let version = self.version;
        let open = Document { text: text.clone(), version, history: Vec::new() };
        self.open.insert(path.to_owned(), open);
        Step::Open { path: path.to_owned(), text, version }
    }

    /// Closes a document, or opens one as it lies on the disk.
    fn toggle(&mut self, files: &Memory, random: &mut Random) -> Vec<Step> {
        let path = random.one(&self.paths()).clone();
        if self.open.remove(&path).is_some() {
            return vec![Step::Close { path }];
        }
        let text = crate::files::FileSystem::read(files, &path).unwrap_or_default();
        vec![self.opened(&path, text)]
    }

    fn save(&mut self, files: &Memory, random: &mut Random) -> Vec<Step> {
        let Some(path) = self.some_open(random) else { return Vec::new() };
        files.set(&path, Some(&self.open[&path].text));
        vec![Step::FilesChanged { paths: vec![path] }]
    }

    /// Another program edits a file, open or not; it may have been removed before.
    fn write_elsewhere(&mut self, files: &Memory, random: &mut Random) -> Vec<Step> {
        let path = random.one(&self.paths()).clone();
        let mut text = self.originals[&path].clone();
        if random.below(2) == 0 {
            let span = line_span(&text, random, 2);
            text.replace_range(span, "");
        }
        files.set(&path, Some(&text));
        vec![Step::FilesChanged { paths: vec![path] }]
    }

    /// A file takes another name, and what is open with it.
    fn rename(&mut self, files: &Memory, random: &mut Random) -> Vec<Step> {
        let from = random.one(&self.paths()).clone();
        let to = self.folder.join(random.word(&NAMES));
        if from == to || self.open.contains_key(&to) {
            return Vec::new();
        }
        let on_disk = crate::files::FileSystem::read(files, &from);
        files.set(&from, None);
        files.set(&to, on_disk.as_deref());
        self.originals.entry(to.clone()).or_insert_with(|| on_disk.unwrap_or_default());
        let mut steps = Vec::new();
        let open = self.open.remove(&from);
        if open.is_some() {
            steps.push(Step::Close { path: from.clone() });
        }
        steps.push(Step::FilesChanged { paths: vec![from, to.clone()] });
        if let Some(open) = open {
            steps.push(self.opened(&to, open.text));
        }
        steps
    }

    fn remove(&mut self, files: &Memory, random: &mut Random) -> Vec<Step> {
        let path = random.one(&self.paths()).clone();
        files.set(&path, None);
        vec![Step::FilesChanged { paths: vec![path] }]
    }

    fn configure(&mut self, random: &mut Random) -> Vec<Step> {
        let triton = random.word(&["", "3.6", "3.9"]);
        let lints = match random.below(3) {
            0 => json!({ "name": "off" }),
            1 => json!({ "perf": "error", "type/mismatch": "warning" }),
            _ => json!({}),
        };
        let hints = json!({ "types": random.below(4) > 0 });
        self.settings = json!({ "triton": triton, "lints": lints, "inlayHints": hints });
        vec![Step::Configure { settings: self.settings.clone() }]
    }

    fn edit(&mut self, random: &mut Random) -> Vec<Step> {
        let Some(path) = self.some_open(random) else { return Vec::new() };
        let original = self.originals[&path].clone();
        let other = random.one(&self.originals.values().collect::<Vec<_>>()).to_string();
        self.version += 1;
        let version = self.version;
        let Some(open) = self.open.get_mut(&path) else { return Vec::new() };
        open.version = version;
        let before = open.text.clone();
        let too_long = before.len() > original.len() + MAX_BYTES;
        let changes = if too_long || random.below(WHOLE_AGAIN) == 0 {
            become_text(&mut open.text, &original)
        } else if random.below(8) == 0 && !open.history.is_empty() {
            let older = open.history.pop().unwrap_or_default();
            become_text(&mut open.text, &older)
        } else {
            some_edit(&mut open.text, &other, random)
        };
        open.history.push(before);
        if open.history.len() > HISTORY {
            open.history.remove(0);
        }
        vec![Step::Edit { path, version, changes }]
    }
}

/// Replaces `span`; the change as an editor tells it.
fn replace(text: &mut String, span: Range<usize>, new: &str) -> Change {
    let change = Change {
        start: position(text, span.start),
        end: position(text, span.end),
        text: new.into(),
    };
    text.replace_range(span, new);
    change
}

/// Makes `text` what `wanted` is, leaving alone what they start and end with.
fn become_text(text: &mut String, wanted: &str) -> Vec<Change> {
    let same = |a: &mut dyn Iterator<Item = char>, b: &mut dyn Iterator<Item = char>| -> usize {
        a.zip(b).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum()
    };
    let head = same(&mut text.chars(), &mut wanted.chars());
    let tail = same(&mut text[head..].chars().rev(), &mut wanted[head..].chars().rev());
    let span = head..text.len() - tail;
    vec![replace(text, span, &wanted[head..wanted.len() - tail])]
}

fn some_edit(text: &mut String, other: &str, random: &mut Random) -> Vec<Change> {
    let single = |change: Change| vec![change];
    match random.below(9) {
        0 => {
            let span = line_span(text, random, 3);
            single(replace(text, span, ""))
        }
        1 => {
            // Lines move, or are doubled.
            let from = line_span(text, random, 3);
            let moved = text[from.clone()].to_owned();
            let mut changes = Vec::new();
            if random.below(2) == 0 {
                changes.push(replace(text, from, ""));
            }
            let to = line_span(text, random, 1).start;
            changes.push(replace(text, to..to, &moved));
            changes
        }
        2 => {
            let from = line_span(other, random, 4);
            let to = line_span(text, random, 1).start;
            single(replace(text, to..to, &other[from]))
        }
        3 => {
            let (from, to) = (token(text, random), token(text, random));
            let new = text[from].to_owned();
            single(replace(text, to, &new))
        }
        4 => {
            let span = token(text, random);
            single(replace(text, span, ""))
        }
        5 => {
            let at = token(text, random).end;
            single(replace(text, at..at, random.word(&PIECES)))
        }
        6 => {
            // A line goes in or out.
            let start = line_span(text, random, 1).start;
            let indented = text[start..].starts_with("    ");
            let (span, new) =
                if indented { (start..start + 4, "") } else { (start..start, "    ") };
            single(replace(text, span, new))
        }
        7 => rename_everywhere(text, random),
        _ => {
            // A letter after a word.
            let at = token(text, random).end;
            single(replace(text, at..at, random.word(&["a", "_", "1", "é", "."])))
        }
    }
}

/// Every use of a word is replaced, one after the other in one message.
fn rename_everywhere(text: &mut String, random: &mut Random) -> Vec<Change> {
    let span = token(text, random);
    let word = text[span].to_owned();
    if word.is_empty() || !word.chars().all(|c| c.is_alphanumeric() || c == '_') {
        return Vec::new();
    }
    let new = format!("{word}_2");
    let mut changes = Vec::new();
    let mut from = 0;
    while let Some(at) = text[from..].find(&word) {
        let start = from + at;
        changes.push(replace(text, start..start + word.len(), &new));
        from = start + new.len();
    }
    changes
}

/// Up to `most` whole lines, with their line ends.
fn line_span(text: &str, random: &mut Random, most: usize) -> Range<usize> {
    let at = boundary(text, random.below(text.len() + 1));
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let count = 1 + random.below(most);
    let end = text[start..].match_indices('\n').nth(count - 1).map(|(end, _)| start + end + 1);
    start..end.unwrap_or(text.len())
}

/// A word, or one character that belongs to none.
fn token(text: &str, random: &mut Random) -> Range<usize> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let at = boundary(text, random.below(text.len() + 1));
    let rest = &text[at..];
    let Some(first) = rest.chars().next() else { return at..at };
    if !is_word(first) {
        return at..at + first.len_utf8();
    }
    let before = text[..at].chars().rev().take_while(|c| is_word(*c)).map(char::len_utf8);
    let start = at - before.sum::<usize>();
    let end = rest.find(|c| !is_word(c)).map_or(text.len(), |end| at + end);
    start..end
}

fn boundary(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn position(text: &str, offset: usize) -> Position {
    let before = &text[..offset];
    let line = before.matches('\n').count();
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    Position::new(line as u32, (offset - start) as u32)
}

/// Random places in a text, most of them in words.
pub(super) fn places(text: &str, count: usize, random: &mut Random) -> Vec<Position> {
    (0..count).map(|_| position(text, token(text, random).start)).collect()
}

/// Small kernel files, with their names.
fn corpus() -> Vec<(String, String)> {
    let examples = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let folder = std::env::var_os("TILE_CORPUS").map_or_else(examples, PathBuf::from);
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<(String, String)> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let is_source = name.ends_with(".py") || name.ends_with(".tile");
            let text = is_source.then(|| std::fs::read_to_string(entry.path()).ok())??;
            // Columns are counted in lines that end with a line feed alone.
            (text.len() <= MAX_BYTES && !text.contains('\r')).then_some((name, text))
        })
        .collect();
    files.sort();
    files
}
