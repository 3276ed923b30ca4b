//! Questions about names in a workspace of many files.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Findings, Server};
use crate::summary::Summary;
use crate::{Arguments, Failure};

/// Parameters of a kernel that are asked about.
const PARAMETERS: usize = 3;

/// A server that takes less processor time than this in [`PAUSE`] has looked around.
const QUIET_MS: f64 = 50.0;

/// Time between two looks at what a server takes.
const PAUSE: Duration = Duration::from_secs(1);

/// Times of one question: the first ones, each of a server that was never asked it, and the others.
struct Times {
    what: &'static str,
    cold: Vec<Duration>,
    warm: Vec<Duration>,
}

/// Asks at the first kernel of each file.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let [folder, files @ ..] = &arguments.paths[..] else {
        return Err("navigate needs a folder and a file".into());
    };
    let mut all: Vec<Times> = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(file)?;
        let names = kernel_names(&text).ok_or("the file has no kernel")?;
        for (number, question) in questions(&names, &text).iter().enumerate() {
            let (cold, warm) = ask(arguments, folder, file, &text, question)?;
            println!("{} {}: {:.0} ms", file.display(), question.title, cold.as_secs_f64() * 1e3);
            if all.len() <= number {
                all.push(Times { what: question.what, cold: Vec::new(), warm: Vec::new() });
            }
            all[number].cold.push(cold);
            all[number].warm.extend(warm);
        }
    }
    for times in sum_up(all) {
        println!("{:18} first   {}", times.what, Summary::of(&times.cold));
        println!("{:18} again   {}", "", Summary::of(&times.warm));
    }
    Ok(())
}

/// Times of the same kind of question together.
fn sum_up(all: Vec<Times>) -> Vec<Times> {
    let mut sums: Vec<Times> = Vec::new();
    for times in all {
        match sums.iter_mut().find(|sum| sum.what == times.what) {
            Some(sum) => {
                sum.cold.extend(times.cold);
                sum.warm.extend(times.warm);
            }
            None => sums.push(times),
        }
    }
    sums
}

/// A name and its place, by line and column.
struct Name {
    text: String,
    at: [usize; 2],
}

/// The first kernel of a file, and its first parameters.
fn kernel_names(text: &str) -> Option<Vec<Name>> {
    let lines: Vec<&str> = text.lines().collect();
    let jit = lines.iter().position(|line| line.trim_end().ends_with("triton.jit"))?;
    let head = (jit..lines.len()).find(|line| lines[*line].trim_start().starts_with("def "))?;
    let mut names = Vec::new();
    for (number, line) in lines.iter().enumerate().skip(head) {
        let mut at = if number == head { line.find("def ")? + 4 } else { 0 };
        let code = line.split('#').next().unwrap_or_default();
        while let Some(start) = code[at..].find(|c: char| c.is_alphabetic() || c == '_') {
            let start = at + start;
            let rest = &code[start..];
            let end = rest.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(rest.len());
            names.push(Name { text: rest[..end].to_owned(), at: [number, start] });
            // An annotation or a default is no name of a parameter.
            at = rest.find([',', '(']).map_or(code.len(), |next| start + next);
            if names.len() > PARAMETERS {
                return Some(names);
            }
        }
        if code.contains("):") || code.contains("->") {
            break;
        }
    }
    Some(names)
}

struct Question {
    what: &'static str,
    title: String,
    /// What is sent; of the hierarchy of calls, what comes first.
    method: &'static str,
    params: Value,
}

/// What is asked at these names; the address of the file is filled in later.
fn questions(names: &[Name], text: &str) -> Vec<Question> {
    let mut questions = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let [line, character] = name.at;
        let position = json!({ "line": line, "character": character });
        let question = |what, method, more: Value| {
            let mut params = more;
            params["position"] = position.clone();
            Question { what, title: format!("{what} of {}", name.text), method, params }
        };
        let context = json!({ "context": { "includeDeclaration": true } });
        questions.push(question("references", "textDocument/references", context));
        let new_name = json!({ "newName": format!("{}_renamed", name.text) });
        questions.push(question("rename", "textDocument/rename", new_name));
        if index == 0 {
            questions.push(question("callers", "textDocument/prepareCallHierarchy", json!({})));
        }
    }
    for query in ["", "fwd_kernel", names.first().map_or("", |name| &name.text)] {
        questions.push(Question {
            what: "symbols",
            title: format!("symbols like `{query}`"),
            method: "workspace/symbol",
            params: json!({ "query": query }),
        });
    }
    let lines = text.lines().enumerate().filter(|(_, line)| line.contains(" = tl."));
    for (line, _) in lines.take(5) {
        let position = json!({ "line": line, "character": 8 });
        questions.push(Question {
            what: "code actions",
            title: format!("code actions at line {}", line + 1),
            method: "textDocument/codeAction",
            params: json!({
                "range": { "start": position, "end": position },
                "context": { "diagnostics": [] },
            }),
        });
    }
    questions
}

/// Asks a server that has just opened the file, and again: the first time and the others.
fn ask(
    arguments: &Arguments,
    folder: &Path,
    file: &Path,
    text: &str,
    question: &Question,
) -> Result<(Duration, Vec<Duration>), Failure> {
    let mut server = Server::start(&arguments.server, folder, Findings::Pushed)?;
    let uri = server.open(file, text)?;
    server.diagnostics(&uri, &|_| true)?;
    settle(&mut server)?;
    let mut params = question.params.clone();
    params["textDocument"] = json!({ "uri": uri });
    let mut times = Vec::new();
    for _ in 0..=arguments.edits.min(5) {
        let start = Instant::now();
        let answer = server.request(question.method, &params)?;
        if question.what == "callers" {
            let item = answer[0].clone();
            server.request("callHierarchy/incomingCalls", &json!({ "item": item }))?;
        }
        times.push(start.elapsed());
    }
    server.stop()?;
    let cold = times.remove(0);
    Ok((cold, times))
}

/// Waits until a server has done what follows the opening of a file.
fn settle(server: &mut Server) -> Result<(), Failure> {
    let mut spent = server.usage()?.cpu_ms;
    loop {
        server.listen(Instant::now() + PAUSE)?;
        let now = server.usage()?.cpu_ms;
        if now - spent < QUIET_MS {
            return Ok(());
        }
        spent = now;
    }
}
