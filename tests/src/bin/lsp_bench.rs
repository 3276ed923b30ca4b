//! Times a language server over standard input and output: any server, so that several compare.
//!
//! ```text
//! lsp_bench [--edits N] [--typing N] FILE... -- SERVER ARGUMENTS...
//! lsp_bench kernels.py -- tile lsp
//! lsp_bench kernels.py others/*.py -- tile lsp
//! lsp_bench --typing 20000 kernels.py -- ty server
//! ```
//!
//! The first file is worked on; the others are open beside it. An edit puts a line with an
//! undefined name into a kernel, or takes it out again; the time runs until diagnostics say so.
//! Each figure is printed as median, 95th percentile and maximum. With `--typing`, lines are then
//! typed into the kernel and deleted again, a character an edit, and the memory is printed as it
//! goes.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(60);

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lsp_bench: {error}");
            ExitCode::FAILURE
        }
    }
}

struct Arguments {
    edits: usize,
    typing: usize,
    file: PathBuf,
    others: Vec<PathBuf>,
    server: Vec<String>,
}

fn arguments() -> Result<Arguments, Failure> {
    let usage = "usage: lsp_bench [--edits N] [--typing N] FILE... -- SERVER ARGUMENTS...";
    let mut words = std::env::args().skip(1);
    let (mut edits, mut typing) = (100, 0);
    let mut files = Vec::new();
    loop {
        match words.next().as_deref() {
            Some("--") => break,
            Some("--edits") => edits = words.next().ok_or(usage)?.parse()?,
            Some("--typing") => typing = words.next().ok_or(usage)?.parse()?,
            Some(word) => files.push(std::path::absolute(word)?),
            None => return Err(usage.into()),
        }
    }
    let server: Vec<String> = words.collect();
    if server.is_empty() || files.is_empty() {
        return Err(usage.into());
    }
    let file = files.remove(0);
    Ok(Arguments { edits, typing, file, others: files, server })
}

fn run() -> Result<(), Failure> {
    let arguments = arguments()?;
    let text = std::fs::read_to_string(&arguments.file)?;
    let start = Instant::now();
    let mut server = Server::start(&arguments.server, &arguments.file)?;
    let uri = server.open(&arguments.file, &text)?;
    server.diagnostics(&uri, &|_| true)?;
    let first = start.elapsed();
    for other in &arguments.others {
        let text = std::fs::read_to_string(other)?;
        let uri = server.open(other, &text)?;
        server.diagnostics(&uri, &|_| true)?;
    }
    // What follows opening (indexing, first compiles) is not an edit's cost.
    std::thread::sleep(Duration::from_millis(1500));
    let edits = time_edits(&mut server, &uri, &text, arguments.edits)?;
    let hovers = time_requests(&mut server, "hover", &uri, &text, arguments.edits)?;
    let completions = time_requests(&mut server, "completion", &uri, &text, arguments.edits)?;
    println!("{} ({} lines)", arguments.file.display(), text.lines().count());
    println!("start to first diagnostics  {:8.2} ms", first.as_secs_f64() * 1e3);
    println!("edit to diagnostics         {}", Summary::of(edits));
    println!("hover                       {}", Summary::of(hovers));
    println!("completion                  {}", Summary::of(completions));
    println!("files open                  {:8}", 1 + arguments.others.len());
    println!("resident memory             {:8.1} MiB", server.resident_mib()?);
    if arguments.typing > 0 {
        type_lines(&mut server, &uri, &text, arguments.edits, arguments.typing)?;
    }
    server.stop()
}

/// The line after the first one that asks for the program's id, and its indentation.
fn place(text: &str) -> Result<(usize, String), Failure> {
    let found = text
        .lines()
        .enumerate()
        .find(|(_, line)| line.contains("program_id(") && line.trim_start().contains('='));
    let (at, line) = found.ok_or("the file has no line with program_id")?;
    let ends_here = line.matches('(').count() == line.matches(')').count();
    if !ends_here {
        return Err("the line with program_id goes on".into());
    }
    Ok((at + 1, line[..line.len() - line.trim_start().len()].to_owned()))
}

fn time_edits(
    server: &mut Server,
    uri: &str,
    text: &str,
    count: usize,
) -> Result<Vec<Duration>, Failure> {
    let (line, indent) = place(text)?;
    let mut times = Vec::new();
    for round in 0..count {
        let name = format!("undefined_name_{round}");
        let version = 2 + 2 * round;
        let start = Instant::now();
        server.edit(uri, version, (line, line), &format!("{indent}{name}\n"))?;
        server.diagnostics(uri, &|params| params.to_string().contains(&name))?;
        times.push(start.elapsed());
        let start = Instant::now();
        server.edit(uri, version + 1, (line, line + 1), "")?;
        server.diagnostics(uri, &|params| !params.to_string().contains(&name))?;
        times.push(start.elapsed());
    }
    Ok(times)
}

/// Requests at the first words of the lines after the place of the edits.
fn time_requests(
    server: &mut Server,
    what: &str,
    uri: &str,
    text: &str,
    count: usize,
) -> Result<Vec<Duration>, Failure> {
    let (from, _) = place(text)?;
    let lines: Vec<(usize, &str)> = text.lines().enumerate().skip(from).collect();
    let words = lines.iter().filter_map(|(number, line)| {
        let column = line.find(|c: char| c.is_alphabetic())?;
        Some((*number, column))
    });
    let method = format!("textDocument/{what}");
    let mut times = Vec::new();
    for (line, character) in words.cycle().take(count) {
        // A completion follows the first letter of a word.
        let character = character + usize::from(what == "completion");
        let position = json!({ "line": line, "character": character });
        let params = json!({ "textDocument": { "uri": uri }, "position": position });
        let start = Instant::now();
        server.request(&method, &params)?;
        times.push(start.elapsed());
    }
    Ok(times)
}

/// Edits between two figures of memory.
const REPORT_EVERY: usize = 1000;

/// What is typed, a character an edit.
const TYPED: [&str; 3] = [
    "typed = tl.load(pointer + tl.arange(0, 64), mask=typed < 3)",
    "other_name = tl.sum(tl.zeros((16, 32), tl.float32), axis=1)",
    "for index in range(10): value = index * 2  # \u{65e5}\u{672c}",
];

/// Types lines and deletes them again. After each line the server is waited for.
fn type_lines(
    server: &mut Server,
    uri: &str,
    text: &str,
    edits_before: usize,
    count: usize,
) -> Result<(), Failure> {
    let (line, indent) = place(text)?;
    let mut version = 2 + 2 * edits_before;
    let mut done = 0;
    for typed in TYPED.iter().cycle() {
        if done >= count {
            return Ok(());
        }
        server.edit(uri, version, (line, line), &format!("{indent}\n"))?;
        let mut column = indent.len();
        for c in typed.chars() {
            version += 1;
            server.edit_within(uri, version, line, (column, column), &c.to_string())?;
            column += c.len_utf16();
        }
        version += 1;
        let name = format!("undefined_name_{version}");
        server.edit(uri, version, (line, line + 1), &format!("{indent}{name}\n"))?;
        server.diagnostics(uri, &|params| params.to_string().contains(&name))?;
        version += 1;
        server.edit(uri, version, (line, line + 1), "")?;
        version += 1;
        let before = done / REPORT_EVERY;
        done += typed.chars().count() + 3;
        if done / REPORT_EVERY > before {
            println!("after {done:8} edits         {:8.1} MiB", server.resident_mib()?);
        }
    }
    Ok(())
}

/// A server process.
struct Server {
    child: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    waiting: VecDeque<Value>,
    next_id: u64,
}

impl Server {
    fn start(command: &[String], file: &Path) -> Result<Server, Failure> {
        let mut child = Command::new(&command[0])
            .args(&command[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let input = child.stdin.take().ok_or("no standard input")?;
        let mut output = BufReader::new(child.stdout.take().ok_or("no standard output")?);
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            while let Some(message) = read(&mut output) {
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let mut server = Server { child, input, messages, waiting: VecDeque::new(), next_id: 1 };
        let folder = format!("file://{}", file.parent().unwrap_or(file).display());
        let params = json!({
            "processId": std::process::id(),
            "rootUri": folder,
            "workspaceFolders": [{ "uri": folder, "name": "bench" }],
            "capabilities": {
                "workspace": { "configuration": true, "workspaceFolders": true },
                "textDocument": {
                    "publishDiagnostics": { "versionSupport": true },
                    "hover": { "contentFormat": ["markdown"] },
                },
            },
        });
        server.request("initialize", &params)?;
        server.notify("initialized", &json!({}))?;
        Ok(server)
    }

    fn send(&mut self, message: &Value) -> Result<(), Failure> {
        let body = message.to_string();
        write!(self.input, "Content-Length: {}\r\n\r\n{body}", body.len())?;
        Ok(self.input.flush()?)
    }

    fn notify(&mut self, method: &str, params: &Value) -> Result<(), Failure> {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }))
    }

    fn request(&mut self, method: &str, params: &Value) -> Result<Value, Failure> {
        let id = self.next_id;
        self.next_id += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        let answer = self.take(&|message| message["id"] == id && message["method"].is_null())?;
        match answer.get("error") {
            Some(error) => Err(format!("{method}: {error}").into()),
            None => Ok(answer["result"].clone()),
        }
    }

    /// Opens a document; its address.
    fn open(&mut self, file: &Path, text: &str) -> Result<String, Failure> {
        let uri = format!("file://{}", file.display());
        let document = json!({ "uri": uri, "languageId": "python", "version": 1, "text": text });
        self.notify("textDocument/didOpen", &json!({ "textDocument": document }))?;
        Ok(uri)
    }

    /// Replaces whole lines.
    fn edit(
        &mut self,
        uri: &str,
        version: usize,
        lines: (usize, usize),
        text: &str,
    ) -> Result<(), Failure> {
        let range = json!({
            "start": { "line": lines.0, "character": 0 },
            "end": { "line": lines.1, "character": 0 },
        });
        self.change(uri, version, &range, text)
    }

    /// Replaces a part of a line.
    fn edit_within(
        &mut self,
        uri: &str,
        version: usize,
        line: usize,
        columns: (usize, usize),
        text: &str,
    ) -> Result<(), Failure> {
        let range = json!({
            "start": { "line": line, "character": columns.0 },
            "end": { "line": line, "character": columns.1 },
        });
        self.change(uri, version, &range, text)
    }

    fn change(
        &mut self,
        uri: &str,
        version: usize,
        range: &Value,
        text: &str,
    ) -> Result<(), Failure> {
        // Diagnostics of older texts do not count.
        self.waiting.retain(|message| message["method"] != "textDocument/publishDiagnostics");
        self.notify(
            "textDocument/didChange",
            &json!({
                "textDocument": { "uri": uri, "version": version },
                "contentChanges": [{ "range": range, "text": text }],
            }),
        )
    }

    /// Waits for diagnostics of a document that `wanted` accepts.
    fn diagnostics(&mut self, uri: &str, wanted: &dyn Fn(&Value) -> bool) -> Result<(), Failure> {
        self.take(&|message| {
            message["method"] == "textDocument/publishDiagnostics"
                && message["params"]["uri"] == uri
                && wanted(&message["params"])
        })?;
        Ok(())
    }

    /// The next message that `wanted` accepts. Questions of the server are answered with what
    /// makes it go on.
    fn take(&mut self, wanted: &dyn Fn(&Value) -> bool) -> Result<Value, Failure> {
        if let Some(at) = self.waiting.iter().position(wanted) {
            return self.waiting.remove(at).ok_or_else(|| "a message is gone".into());
        }
        loop {
            let message = self.messages.recv_timeout(PATIENCE)?;
            if message["method"].is_string() && !message["id"].is_null() {
                let items = message["params"]["items"].as_array().map_or(0, Vec::len);
                let result = if items > 0 { json!(vec![Value::Null; items]) } else { Value::Null };
                self.send(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }))?;
                continue;
            }
            if wanted(&message) {
                return Ok(message);
            }
            // Only diagnostics and answers are ever asked for.
            let is_answer = message["method"].is_null();
            if is_answer || message["method"] == "textDocument/publishDiagnostics" {
                self.waiting.push_back(message);
            }
        }
    }

    fn resident_mib(&self) -> Result<f64, Failure> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib: f64 = line.ok_or("no VmRSS")?.trim().trim_end_matches(" kB").parse()?;
        Ok(kib / 1024.0)
    }

    fn stop(mut self) -> Result<(), Failure> {
        self.request("shutdown", &Value::Null)?;
        self.notify("exit", &Value::Null)?;
        self.child.wait()?;
        Ok(())
    }
}

/// The next message; `None` when the server hung up or does not speak the protocol.
fn read(output: &mut impl BufRead) -> Option<Value> {
    let mut length = None;
    loop {
        let mut line = String::new();
        if output.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim().split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse().ok();
            }
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length?];
    output.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}

/// Times in milliseconds, sorted.
struct Summary(Vec<f64>);

impl Summary {
    fn of(times: Vec<Duration>) -> Summary {
        let mut times: Vec<f64> = times.iter().map(|time| time.as_secs_f64() * 1e3).collect();
        times.sort_by(f64::total_cmp);
        Summary(times)
    }

    fn quantile(&self, q: f64) -> f64 {
        let last = self.0.len().saturating_sub(1);
        self.0.get((q * last as f64).round() as usize).copied().unwrap_or(f64::NAN)
    }
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [median, p95, max] = [0.5, 0.95, 1.0].map(|q| self.quantile(q));
        write!(f, "{median:8.2} ms p50 {p95:8.2} ms p95 {max:8.2} ms max")
    }
}
