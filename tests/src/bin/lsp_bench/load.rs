//! Typing and hovering while everything else goes on at once.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Findings, Server};
use crate::summary::Summary;
use crate::{Arguments, Failure, place};

/// What is typed, a character an edit.
const TYPED: &str = "typed = tl.sum(tl.zeros((16, 32), tl.float32), axis=1) + 1";

/// Time between two characters.
const PAUSE: Duration = Duration::from_millis(100);

/// Times of one kind of work each.
#[derive(Default)]
struct Times {
    hovers: Vec<Duration>,
    completions: Vec<Duration>,
    findings: Vec<Duration>,
}

/// Types in the first file, alone at first, then while the folder is checked and every kernel of
/// the file is compiled under all its specializations.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let [folder, file, others @ ..] = &arguments.paths[..] else {
        return Err("load needs a folder and a file".into());
    };
    let text = std::fs::read_to_string(file)?;
    let mut server = Server::start(&arguments.server, folder, Findings::Pulled)?;
    let uri = server.open(file, &text)?;
    for other in others {
        server.open(other, &std::fs::read_to_string(other)?)?;
    }
    server.listen(Instant::now() + Duration::from_millis(1500))?;
    let mut typist = Typist { uri: uri.clone(), text, version: 1 };
    let mut alone = Times::default();
    for _ in 0..arguments.edits.div_ceil(TYPED.len()) {
        typist.type_line(&mut server, &mut alone)?;
    }
    print("alone", &alone);
    let mut loaded = Times::default();
    let start = Instant::now();
    let check = server.ask("workspace/diagnostic", &json!({ "previousResultIds": [] }))?;
    let compiles = compile_all(&mut server, &uri)?;
    let mut checked = None;
    let mut compiled = None;
    while checked.is_none() || compiled.is_none() {
        typist.type_line(&mut server, &mut loaded)?;
        if checked.is_none() && server.has_answered(check)? {
            checked = Some(start.elapsed());
        }
        let mut done = true;
        for id in &compiles {
            done &= server.has_answered(*id)?;
        }
        if compiled.is_none() && done {
            compiled = Some(start.elapsed());
        }
    }
    print("while checked and compiled", &loaded);
    let report = server.answer(check)?;
    let files = report["items"].as_array().map_or(0, Vec::len);
    let seconds = |time: Option<Duration>| time.unwrap_or_default().as_secs_f64();
    println!(
        "folder with {} sources      {:8.1} s, {files} with findings",
        sources(folder),
        seconds(checked)
    );
    println!("{:4} kernels compiled        {:8.1} s", compiles.len(), seconds(compiled));
    let memory = server.usage()?;
    println!(
        "resident memory             {:8.1} MiB, {:.1} MiB of it data",
        memory.server_mib, memory.data_mib
    );
    server.stop()
}

fn print(title: &str, times: &Times) {
    println!("{title}");
    println!("  hover                     {}", Summary::of(&times.hovers));
    println!("  completion                {}", Summary::of(&times.completions));
    println!("  edit to diagnostics       {}", Summary::of(&times.findings));
}

/// How many source files lie below a folder.
fn sources(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let count = |path: &Path| {
        if path.is_dir() {
            return sources(path);
        }
        usize::from(path.extension().is_some_and(|name| name == "py" || name == "tile"))
    };
    entries.map(|entry| count(&entry.path())).sum()
}

/// Asks for every configuration of every kernel of a file to be compiled.
fn compile_all(server: &mut Server, uri: &str) -> Result<Vec<u64>, Failure> {
    let kernels = server.request("tile/kernels", &json!({ "textDocument": { "uri": uri } }))?;
    let names = kernels.as_array().into_iter().flatten().map(|kernel| kernel["name"].clone());
    let names: Vec<Value> = names.collect();
    let asked = names.into_iter().map(|kernel| {
        let argument = json!({ "uri": uri, "kernel": kernel });
        let params = json!({ "command": "tile.measureConfigurations", "arguments": [argument] });
        server.ask("workspace/executeCommand", &params)
    });
    asked.collect()
}

struct Typist {
    uri: String,
    text: String,
    version: usize,
}

impl Typist {
    /// Types a line and deletes it, and asks after each character for what an editor asks for.
    fn type_line(&mut self, server: &mut Server, times: &mut Times) -> Result<(), Failure> {
        let (line, indent) = place(&self.text)?;
        self.change(server, [line, 0, line, 0], &format!("{indent}\n"))?;
        for (at, c) in TYPED.chars().enumerate() {
            let column = indent.len() + at;
            let due = Instant::now() + PAUSE;
            self.change(server, [line, column, line, column], &c.to_string())?;
            let at_cursor = self.params(line, column + 1);
            times.completions.push(time(server, "completion", &at_cursor)?);
            times.findings.push(time(server, "diagnostic", &at_cursor)?);
            times.hovers.push(time(server, "hover", &self.params(line - 1, indent.len()))?);
            server.listen(due)?;
        }
        self.change(server, [line, 0, line + 1, 0], "")
    }

    fn change(
        &mut self,
        server: &mut Server,
        range: [usize; 4],
        text: &str,
    ) -> Result<(), Failure> {
        self.version += 1;
        server.change(&self.uri, self.version, range, text)
    }

    fn params(&self, line: usize, character: usize) -> Value {
        let position = json!({ "line": line, "character": character });
        json!({ "textDocument": { "uri": self.uri }, "position": position })
    }
}

fn time(server: &mut Server, what: &str, params: &Value) -> Result<Duration, Failure> {
    let start = Instant::now();
    server.request(&format!("textDocument/{what}"), params)?;
    Ok(start.elapsed())
}
