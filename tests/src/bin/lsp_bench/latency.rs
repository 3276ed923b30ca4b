//! One request at a time.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::client::{Findings, Server};
use crate::summary::Summary;
use crate::{Arguments, Failure, place};

/// Times edits, hovers and completions in the first file.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let (file, others) = arguments.paths.split_first().ok_or("no file")?;
    let text = std::fs::read_to_string(file)?;
    let folder = file.parent().unwrap_or(file);
    let start = Instant::now();
    let mut server = Server::start(&arguments.server, folder, Findings::Pushed)?;
    let uri = server.open(file, &text)?;
    server.diagnostics(&uri, &|_| true)?;
    let first = start.elapsed();
    for other in others {
        let text = std::fs::read_to_string(other)?;
        let uri = server.open(other, &text)?;
        server.diagnostics(&uri, &|_| true)?;
    }
    // What follows opening (indexing, first compiles) is not an edit's cost.
    server.listen(Instant::now() + Duration::from_millis(1500))?;
    let before = server.usage()?;
    let edits = time_edits(&mut server, &uri, &text, arguments.edits)?;
    let spent = (server.usage()?.cpu_ms - before.cpu_ms) / edits.len().max(1) as f64;
    let hovers = time_requests(&mut server, "hover", &uri, &text, arguments.edits)?;
    let completions = time_requests(&mut server, "completion", &uri, &text, arguments.edits)?;
    println!("{} ({} lines)", file.display(), text.lines().count());
    println!("start to first diagnostics  {:8.2} ms", first.as_secs_f64() * 1e3);
    println!("edit to diagnostics         {}", Summary::of(&edits));
    println!("processor time for an edit  {spent:8.2} ms");
    println!("hover                       {}", Summary::of(&hovers));
    println!("completion                  {}", Summary::of(&completions));
    println!("files open                  {:8}", 1 + others.len());
    let memory = server.usage()?;
    println!(
        "resident memory             {:8.1} MiB, {:.1} MiB of it data",
        memory.server_mib, memory.data_mib
    );
    server.stop()
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
        server.change(uri, version, [line, 0, line, 0], &format!("{indent}{name}\n"))?;
        server.diagnostics(uri, &|params| params.to_string().contains(&name))?;
        times.push(start.elapsed());
        let start = Instant::now();
        server.change(uri, version + 1, [line, 0, line + 1, 0], "")?;
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
