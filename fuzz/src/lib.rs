//! What fuzzers try: arbitrary bytes for the parts that meet a client's input.
//!
//! The same functions serve the fuzzer beside, which chooses bytes by what they reach, and the test
//! `fuzz` of the workspace, which changes seeds at random and takes this file as a module.

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::task::{Context, Poll};

use serde_json::{Value, json};
use tile_compiler::hir;
use tile_compiler::source::{FileId, TextRange};
use tile_compiler::syntax::{Edit, Kept, Parse, Statements};
use tile_lsp::{FileSystem, Options, serve_on};
use tile_worker::Cache;
use tokio::io::AsyncWrite;
use tokio::runtime::Runtime;

/// What is tried with some bytes. It panics when something is wrong.
pub type Target = fn(&[u8]);

/// Every target, by its name.
pub const TARGETS: &[(&str, Target)] = &[("reparse", reparse), ("session", session)];

/// Ends the text and each edit in the bytes of [`reparse`].
pub const SEPARATOR: u8 = 0xff;

/// A text and edits of it: the tree after each edit has an error where a fresh one has, and is
/// equal to it where there is none; and what the edit leaves alone can be taken over.
///
/// The text comes first, then the edits, each after a [`SEPARATOR`]: two bytes that tell where, one
/// that tells how many bytes are replaced, then what stands there afterwards.
pub fn reparse(data: &[u8]) {
    let mut parts = data.split(|byte| *byte == SEPARATOR);
    let text = String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    let mut parse = Parse::new(text);
    let mut module = hir::lower(&parse);
    for part in parts {
        let [high, low, delete, insert @ ..] = part else { continue };
        let (edit, text) = edited(parse.text(), [*high, *low], *delete, insert);
        let older = parse;
        parse = older.edit(&edit, text);
        let fresh = Parse::new(parse.text().clone());
        assert_eq!(fresh.root().has_error(), parse.root().has_error(), "{:?}", parse.text());
        assert_eq!(fresh.has_error(), fresh.root().has_error(), "{:?}", parse.text());
        let statements = Statements::of(&parse);
        let kept = Kept::between(&Statements::of(&older).outline(), &statements.outline());
        let errors = parse.diagnostics(FileId(0));
        if older.diagnostics(FileId(0)).is_empty() {
            assert_eq!(statements.diagnostics(FileId(0), &kept), errors, "{:?}", parse.text());
        }
        let again = hir::lower_again(&statements, &module, &kept);
        module = hir::lower(&parse);
        assert_eq!(again, module, "{:?}", parse.text());
        if !fresh.root().has_error() {
            let trees = [&fresh, &parse].map(|parse| parse.root().to_sexp());
            assert_eq!(trees[0], trees[1], "{:?}", parse.text());
            assert_eq!(hir::lower(&fresh), module, "{:?}", parse.text());
        }
    }
}

fn edited(text: &str, at: [u8; 2], delete: u8, insert: &[u8]) -> (Edit, String) {
    let boundary = |at: usize| {
        let mut at = at.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let start = boundary(usize::from(u16::from_be_bytes(at)) % (text.len() + 1));
    let end = boundary(start + usize::from(delete));
    let insert = String::from_utf8_lossy(insert);
    let new = [&text[..start], &insert, &text[end..]].concat();
    (Edit { old: TextRange::new(start, end), new_len: insert.len() }, new)
}

/// A client's side of a session: whatever it says, the server answers in well-formed messages and
/// ends when the client hangs up.
///
/// Bytes that begin with `raw:` are sent as they are; of others each line is the body of a message,
/// after a handshake.
pub fn session(data: &[u8]) {
    static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .thread_stack_size(64 << 20)
            .build();
        runtime.expect("threads can be started")
    });
    let input = match data.strip_prefix(b"raw:") {
        Some(raw) => raw.to_vec(),
        None => framed(data),
    };
    let output = Output::default();
    let options = Options { files: Arc::new(NoFiles), worker: None, cache: Cache::disabled() };
    RUNTIME.block_on(serve_on(&input[..], output.clone(), options));
    let said = output.0.lock().unwrap_or_else(PoisonError::into_inner);
    check_messages(&said);
}

/// Each line as a message, after the handshake.
fn framed(data: &[u8]) -> Vec<u8> {
    let params = json!({ "capabilities": {} });
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
    let ready = json!({ "jsonrpc": "2.0", "method": "initialized", "params": {} });
    let mut input = Vec::new();
    let mut add = |body: &[u8]| {
        input.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
        input.extend_from_slice(body);
    };
    add(hello.to_string().as_bytes());
    add(ready.to_string().as_bytes());
    data.split(|byte| *byte == b'\n').for_each(add);
    input
}

fn check_messages(mut said: &[u8]) {
    while !said.is_empty() {
        let end = said.windows(4).position(|four| four == b"\r\n\r\n").expect("a header ends");
        let header = std::str::from_utf8(&said[..end]).expect("headers are text");
        let length = header.strip_prefix("Content-Length: ").expect("a header tells the length");
        let body = end + 4..end + 4 + length.parse::<usize>().expect("a length is a number");
        let message: Value = serde_json::from_slice(&said[body.clone()]).expect("bodies are JSON");
        let code = &message["error"]["code"];
        assert!(*code != -32603, "an internal error: {message}");
        said = &said[body.end..];
    }
}

/// Keeps what is written to it.
#[derive(Debug, Clone, Default)]
struct Output(Arc<Mutex<Vec<u8>>>);

impl AsyncWrite for Output {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// A disk without files.
#[derive(Debug)]
struct NoFiles;

impl FileSystem for NoFiles {
    fn read(&self, _: &Path) -> Option<String> {
        None
    }

    fn walk(&self, _: &Path, _: usize) -> Vec<PathBuf> {
        Vec::new()
    }
}
