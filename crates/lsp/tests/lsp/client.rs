//! A client that talks to a real server over in-memory pipes.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use tile_lsp::{Options, serve_on};
use tile_worker::Cache;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf};
use tokio::task::JoinHandle;

/// Longest that a test waits for the server to say something: a server that hangs fails, one on a
/// busy machine does not.
const PATIENCE: Duration = Duration::from_secs(300);

/// A server that compiles nothing, and neither reads nor fills the user's cache: what it answers
/// does not depend on when it is asked.
pub fn without_workers() -> Options {
    Options { worker: None, cache: Cache::disabled(), ..Options::default() }
}

/// One end of a session; the server runs in a task of the same runtime.
pub struct Client {
    read: ReadHalf<DuplexStream>,
    write: WriteHalf<DuplexStream>,
    buffer: Vec<u8>,
    waiting: VecDeque<Value>,
    next_id: u64,
    /// Requests of the server that a test answers.
    answer_by_hand: Vec<String>,
    server: JoinHandle<bool>,
}

impl Client {
    /// A client that has said nothing yet.
    pub fn connect(options: Options) -> Client {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let (input, output) = tokio::io::split(theirs);
        let server = tokio::spawn(serve_on(input, output, options));
        let (read, write) = tokio::io::split(ours);
        Client {
            read,
            write,
            buffer: Vec::new(),
            waiting: VecDeque::new(),
            next_id: 1,
            answer_by_hand: Vec::new(),
            server,
        }
    }

    /// A client that has shaken hands, with `capabilities`, of a server that compiles nothing.
    pub async fn start(capabilities: Value) -> Client {
        let mut client = Client::connect(without_workers());
        client.initialize(json!({ "capabilities": capabilities })).await;
        client
    }

    /// Shakes hands; the server's answer.
    pub async fn initialize(&mut self, params: Value) -> Value {
        let answer = self.request("initialize", params).await.expect("initialize succeeds");
        self.notify("initialized", json!({})).await;
        answer
    }

    /// Sends bytes as they are.
    pub async fn send_raw(&mut self, bytes: &[u8]) {
        self.write.write_all(bytes).await.expect("the server reads");
    }

    /// Sends a body with its header.
    pub async fn send_body(&mut self, body: &str) {
        let message = format!("Content-Length: {}\r\n\r\n{body}", body.len());
        self.send_raw(message.as_bytes()).await;
    }

    /// Sends a notification.
    pub async fn notify(&mut self, method: &str, params: Value) {
        let body = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        self.send_body(&body.to_string()).await;
    }

    /// Sends a request without waiting; its id.
    pub async fn send_request(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.send_body(&body.to_string()).await;
        id
    }

    /// The answer to a request: its result, or its error.
    pub async fn answer(&mut self, id: u64) -> Result<Value, Value> {
        let message = self.take(|message| message["id"] == id && message["method"].is_null()).await;
        match message.get("error") {
            Some(error) => Err(error.clone()),
            None => Ok(message["result"].clone()),
        }
    }

    /// Sends a request and waits for its answer.
    pub async fn request(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.send_request(method, params).await;
        self.answer(id).await
    }

    /// Waits for a request of the server; its id and its parameters.
    pub async fn asked(&mut self, method: &str) -> (Value, Value) {
        self.answer_by_hand.push(method.to_owned());
        let asks = |message: &Value| message["method"] == method && !message["id"].is_null();
        let message = self.take(asks).await;
        (message["id"].clone(), message["params"].clone())
    }

    /// Answers a request of the server.
    pub async fn respond(&mut self, id: Value, result: Value) {
        let body = json!({ "jsonrpc": "2.0", "id": id, "result": result });
        self.send_body(&body.to_string()).await;
    }

    /// Waits for the next notification of `method`; its parameters.
    pub async fn notification(&mut self, method: &str) -> Value {
        self.take(|message| message["method"] == method).await["params"].clone()
    }

    /// Has a message that was taken taken again.
    pub fn put_back(&mut self, message: Value) {
        self.waiting.push_front(message);
    }

    /// Asserts that no notification of `method` came that nobody took, up to now.
    pub async fn expect_no_more(&mut self, method: &str) {
        // What was said before the answer to this lies before it.
        let unknown = self.request("tile/unknown", Value::Null).await;
        assert!(unknown.is_err(), "there is no such request");
        let left: Vec<&Value> =
            self.waiting.iter().filter(|message| message["method"] == method).collect();
        assert!(left.is_empty(), "{left:?}");
    }

    /// The first message that `wanted` accepts; others wait their turn. Requests of the server
    /// that nobody asked for are answered with `null`.
    pub async fn take(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.waiting.iter().position(&wanted) {
            return self.waiting.remove(at).expect("the position was just found");
        }
        loop {
            let message = tokio::time::timeout(PATIENCE, self.receive()).await;
            let message = message.expect("the server answers in time").expect("the server is up");
            if wanted(&message) {
                return message;
            }
            let by_hand = self.answer_by_hand.iter().any(|method| message["method"] == **method);
            if message["method"].is_string() && !message["id"].is_null() && !by_hand {
                let body = json!({ "jsonrpc": "2.0", "id": message["id"], "result": null });
                self.send_body(&body.to_string()).await;
            }
            self.waiting.push_back(message);
        }
    }

    /// The next message; `None` when the server hung up.
    pub async fn receive(&mut self) -> Option<Value> {
        loop {
            if let Some(body) = self.buffered() {
                return Some(serde_json::from_slice(&body).expect("the server sends JSON"));
            }
            let mut chunk = [0; 4096];
            match self.read.read(&mut chunk).await {
                Ok(0) | Err(_) => return None,
                Ok(length) => self.buffer.extend_from_slice(&chunk[..length]),
            }
        }
    }

    fn buffered(&mut self) -> Option<Vec<u8>> {
        let end = self.buffer.windows(4).position(|window| window == b"\r\n\r\n")?;
        let header = std::str::from_utf8(&self.buffer[..end]).expect("headers are ASCII");
        let length = header.lines().find_map(|line| line.strip_prefix("Content-Length: "));
        let length: usize = length.expect("a length").trim().parse().expect("a number");
        let body = end + 4;
        if self.buffer.len() < body + length {
            return None;
        }
        let rest = self.buffer.split_off(body + length);
        let message = std::mem::replace(&mut self.buffer, rest);
        Some(message[body..].to_vec())
    }

    /// Opens a document.
    pub async fn open(&mut self, uri: &str, text: &str) {
        self.open_as(uri, if uri.ends_with(".tile") { "tile" } else { "python" }, text).await;
    }

    /// Opens a document of this language.
    pub async fn open_as(&mut self, uri: &str, language: &str, text: &str) {
        let document = json!({ "uri": uri, "languageId": language, "version": 1, "text": text });
        self.notify("textDocument/didOpen", json!({ "textDocument": document })).await;
    }

    /// Replaces a range of lines and characters.
    pub async fn edit(&mut self, uri: &str, version: i32, range: [u32; 4], text: &str) {
        let [line, character, end_line, end_character] = range;
        let range = json!({
            "start": { "line": line, "character": character },
            "end": { "line": end_line, "character": end_character },
        });
        let params = json!({
            "textDocument": { "uri": uri, "version": version },
            "contentChanges": [{ "range": range, "text": text }],
        });
        self.notify("textDocument/didChange", params).await;
    }

    /// Waits for diagnostics of this version of a document, one per line of text.
    pub async fn diagnostics(&mut self, uri: &str, version: i32) -> String {
        let wanted = |message: &Value| {
            message["method"] == "textDocument/publishDiagnostics"
                && message["params"]["uri"] == uri
                && message["params"]["version"] == version
        };
        let message = self.take(wanted).await;
        let mut out = String::new();
        for item in message["params"]["diagnostics"].as_array().expect("a list") {
            let _ = writeln!(out, "{}", diagnostic_line(item));
        }
        out
    }

    /// Hangs up without a word and waits for the server to end; whether it was told to shut down.
    pub async fn hang_up(self) -> bool {
        let Client { read, write, server, .. } = self;
        drop((read, write));
        let ended = tokio::time::timeout(PATIENCE, server).await;
        ended.expect("the server ends in time").expect("the server does not panic")
    }

    /// Says goodbye properly and waits for the server to end.
    pub async fn stop(mut self) {
        self.request("shutdown", Value::Null).await.expect("shutdown succeeds");
        self.notify("exit", Value::Null).await;
        let ended = tokio::time::timeout(PATIENCE, self.server).await;
        assert!(ended.expect("the server ends in time").expect("the server does not panic"));
    }
}

/// `line:column-line:column severity code: message`, from 0.
pub fn diagnostic_line(item: &Value) -> String {
    let range = range_text(&item["range"]);
    let code = item["code"].as_str().unwrap_or_default();
    let message = item["message"].as_str().unwrap_or_default().replace('\n', " | ");
    format!("{range} {} {code}: {message}", item["severity"])
}

/// `line:column-line:column`, from 0.
pub fn range_text(range: &Value) -> String {
    let at = |end: &str| format!("{}:{}", range[end]["line"], range[end]["character"]);
    format!("{}-{}", at("start"), at("end"))
}

/// A file of the workspace's examples.
pub fn example(name: &str) -> (String, String) {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    let path = root.canonicalize().expect("the example is there");
    let text = std::fs::read_to_string(&path).expect("the example is text");
    (format!("file://{}", path.display()), text)
}
