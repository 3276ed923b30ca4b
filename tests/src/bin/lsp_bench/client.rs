//! A client of a server process that answers in its own time.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Failure;

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(120);

/// How the client learns of findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Findings {
    /// The server publishes them.
    Pushed,
    /// The client asks for them.
    Pulled,
}

/// A server process and the end of its session that is ours.
pub struct Server {
    child: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    waiting: VecDeque<Value>,
    next_id: u64,
}

/// What a server and its children hold of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct Usage {
    /// Resident memory of the server, in MiB.
    pub server_mib: f64,
    /// The part of it that is not the program itself, in MiB.
    pub data_mib: f64,
    /// Processor time that the server took so far, in milliseconds.
    pub cpu_ms: f64,
    /// Threads of the server.
    pub threads: usize,
    /// Resident memory of the processes that it started, in MiB.
    pub children_mib: f64,
}

impl Server {
    /// Starts `command` and shakes hands, with `folder` as the workspace.
    pub fn start(command: &[String], folder: &Path, findings: Findings) -> Result<Server, Failure> {
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
        server.request("initialize", &handshake(folder, findings))?;
        server.notify("initialized", &json!({}))?;
        Ok(server)
    }

    fn send(&mut self, message: &Value) -> Result<(), Failure> {
        let body = message.to_string();
        write!(self.input, "Content-Length: {}\r\n\r\n{body}", body.len())?;
        Ok(self.input.flush()?)
    }

    /// Sends a notification.
    pub fn notify(&mut self, method: &str, params: &Value) -> Result<(), Failure> {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }))
    }

    /// Sends a request without waiting; its id.
    pub fn ask(&mut self, method: &str, params: &Value) -> Result<u64, Failure> {
        let id = self.next_id;
        self.next_id += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        Ok(id)
    }

    /// Waits for the answer to a request.
    pub fn answer(&mut self, id: u64) -> Result<Value, Failure> {
        let answer = self.take(&|message| message["id"] == id && message["method"].is_null())?;
        match answer.get("error") {
            Some(error) => Err(error.to_string().into()),
            None => Ok(answer["result"].clone()),
        }
    }

    /// Sends a request and waits for its answer.
    pub fn request(&mut self, method: &str, params: &Value) -> Result<Value, Failure> {
        let id = self.ask(method, params)?;
        self.answer(id).map_err(|error| format!("{method}: {error}").into())
    }

    /// True once the answer to a request is here.
    pub fn has_answered(&mut self, id: u64) -> Result<bool, Failure> {
        self.listen(Instant::now())?;
        Ok(self.waiting.iter().any(|message| message["id"] == id && message["method"].is_null()))
    }

    /// Opens a document; its address.
    pub fn open(&mut self, file: &Path, text: &str) -> Result<String, Failure> {
        let uri = format!("file://{}", file.display());
        let document = json!({ "uri": uri, "languageId": "python", "version": 1, "text": text });
        self.notify("textDocument/didOpen", &json!({ "textDocument": document }))?;
        Ok(uri)
    }

    /// Replaces `[line, character, end line, end character]`.
    pub fn change(
        &mut self,
        uri: &str,
        version: usize,
        range: [usize; 4],
        text: &str,
    ) -> Result<(), Failure> {
        let [line, character, end_line, end_character] = range;
        let range = json!({
            "start": { "line": line, "character": character },
            "end": { "line": end_line, "character": end_character },
        });
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
    pub fn diagnostics(
        &mut self,
        uri: &str,
        wanted: &dyn Fn(&Value) -> bool,
    ) -> Result<(), Failure> {
        self.take(&|message| {
            message["method"] == "textDocument/publishDiagnostics"
                && message["params"]["uri"] == uri
                && wanted(&message["params"])
        })?;
        Ok(())
    }

    /// The next message that `wanted` accepts.
    fn take(&mut self, wanted: &dyn Fn(&Value) -> bool) -> Result<Value, Failure> {
        let limit = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.waiting.iter().position(wanted) {
                return self.waiting.remove(at).ok_or_else(|| "a message is gone".into());
            }
            if !self.receive(limit)? {
                return Err(format!("no answer after {} s", PATIENCE.as_secs()).into());
            }
        }
    }

    /// Takes in what the server says until `limit`.
    pub fn listen(&mut self, limit: Instant) -> Result<(), Failure> {
        while self.receive(limit)? {}
        Ok(())
    }

    /// Takes in one message; false when none comes before `limit`. Questions of the server are
    /// answered with what makes it go on.
    fn receive(&mut self, limit: Instant) -> Result<bool, Failure> {
        let left = limit.saturating_duration_since(Instant::now());
        let message = match self.messages.recv_timeout(left) {
            Ok(message) => message,
            Err(RecvTimeoutError::Timeout) => return Ok(false),
            Err(RecvTimeoutError::Disconnected) => return Err("the server is gone".into()),
        };
        if message["method"].is_string() && !message["id"].is_null() {
            let items = message["params"]["items"].as_array().map_or(0, Vec::len);
            let result = if items > 0 { json!(vec![Value::Null; items]) } else { Value::Null };
            self.send(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }))?;
            return Ok(true);
        }
        // Only diagnostics and answers are ever asked for; of diagnostics the newest count.
        if message["method"] == "textDocument/publishDiagnostics" {
            let uri = &message["params"]["uri"];
            let is_older = |known: &Value| known["params"]["uri"] == *uri;
            self.waiting.retain(|known| known["method"].is_null() || !is_older(known));
            self.waiting.push_back(message);
        } else if message["method"].is_null() {
            self.waiting.push_back(message);
        }
        Ok(true)
    }

    /// What the server and its children hold now.
    pub fn usage(&self) -> Result<Usage, Failure> {
        let process = self.child.id();
        let children =
            children(process).into_iter().filter_map(|child| status_mib(child, "VmRSS:").ok());
        Ok(Usage {
            server_mib: status_mib(process, "VmRSS:")?,
            data_mib: status_mib(process, "RssAnon:")?,
            cpu_ms: cpu_ms(process)?,
            threads: std::fs::read_dir(format!("/proc/{process}/task"))?.count(),
            children_mib: children.sum(),
        })
    }

    /// Says goodbye and waits for the server to end.
    pub fn stop(mut self) -> Result<(), Failure> {
        self.request("shutdown", &Value::Null)?;
        self.notify("exit", &Value::Null)?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Fails when it has ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn handshake(folder: &Path, findings: Findings) -> Value {
    let folder = format!("file://{}", folder.display());
    let mut document = json!({
        "publishDiagnostics": { "versionSupport": true },
        "hover": { "contentFormat": ["markdown"] },
    });
    if findings == Findings::Pulled {
        document["diagnostic"] = json!({});
    }
    json!({
        "processId": std::process::id(),
        "rootUri": folder,
        "workspaceFolders": [{ "uri": folder, "name": "bench" }],
        "capabilities": {
            "workspace": { "configuration": true, "workspaceFolders": true },
            "textDocument": document,
        },
    })
}

/// A figure of Linux about a process, in MiB.
fn status_mib(process: u32, figure: &str) -> Result<f64, Failure> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(figure));
    let kib: f64 = line.ok_or("no such figure")?.trim().trim_end_matches(" kB").parse()?;
    Ok(kib / 1024.0)
}

/// Processor time of a process, in milliseconds, to a hundredth of a second: the unit in which Linux
/// tells it.
fn cpu_ms(process: u32) -> Result<f64, Failure> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The second field is a name in parentheses, which may hold anything.
    let (_, fields) = stat.rsplit_once(')').ok_or("no fields")?;
    let spent = fields.split_whitespace().skip(11).take(2).map(str::parse::<f64>);
    Ok(spent.sum::<Result<f64, _>>()? * 10.0)
}

/// The processes that a process has started, and what those have started.
fn children(process: u32) -> Vec<u32> {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten();
    let lists = threads
        .flatten()
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    let lists: String = lists.collect::<Vec<_>>().join(" ");
    let own: Vec<u32> = lists.split_whitespace().filter_map(|id| id.parse().ok()).collect();
    let below: Vec<u32> = own.iter().flat_map(|child| children(*child)).collect();
    [own, below].concat()
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
