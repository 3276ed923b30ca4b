//! A long session: somebody types.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::client::{Findings, Server, Usage};
use crate::summary::Summary;
use crate::{Arguments, Failure};

/// Characters between two figures of memory, where no time is given.
const REPORT_EVERY: usize = 1000;

/// What is typed beside the lines of the files themselves.
const TYPED: [&str; 4] = [
    "typed = tl.load(pointer + tl.arange(0, 64), mask=typed < 3)",
    "other_name = tl.sum(tl.zeros((16, 32), tl.float32), axis=1)",
    "for index in range(10): value = index * 2  # \u{65e5}\u{672c}",
    "import triton.language.extra.cuda as more",
];

/// What an editor asks for as the user types, by how many characters lie between.
const ASKED: [(usize, &str); 6] = [
    (1, "completion"),
    (3, "semanticTokens/full"),
    (3, "inlayHint"),
    (5, "codeLens"),
    (7, "hover"),
    (11, "documentSymbol"),
];

/// A document that is typed in.
struct Document {
    uri: String,
    lines: Vec<String>,
    version: usize,
}

struct Session {
    server: Server,
    /// Time between two characters.
    pause: Option<Duration>,
    /// When the next character is due.
    due: Instant,
    typed: usize,
    hovers: Vec<Duration>,
    completions: Vec<Duration>,
}

/// Types until the time is over, or the characters are.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let folder = arguments.paths[0].parent().unwrap_or(&arguments.paths[0]);
    let mut server = Server::start(&arguments.server, folder, Findings::Pushed)?;
    let mut documents = Vec::new();
    for file in &arguments.paths {
        let text = std::fs::read_to_string(file)?;
        let uri = server.open(file, &text)?;
        let lines = text.lines().map(str::to_owned).collect();
        documents.push(Document { uri, lines, version: 1 });
    }
    server.listen(Instant::now() + Duration::from_millis(1500))?;
    let mut session = Session {
        server,
        pause: arguments.rate.map(|rate| Duration::from_secs_f64(1.0 / rate)),
        due: Instant::now(),
        typed: 0,
        hovers: Vec::new(),
        completions: Vec::new(),
    };
    let start = Instant::now();
    let mut reported = 0;
    println!("minutes     keys  server MiB  of it data  threads  workers MiB");
    report(start, 0, session.server.usage()?);
    let mut random = Random(1);
    loop {
        let over = match arguments.time {
            Some(time) => start.elapsed() >= time,
            None => session.typed >= arguments.keys,
        };
        if over {
            break;
        }
        // A few lines of one file, then of another.
        let index = random.below(documents.len());
        for _ in 0..1 + random.below(6) {
            let document = &mut documents[index];
            if random.below(2) == 0 {
                session.retype(document, random.below(document.lines.len()))?;
            } else {
                let line = random.below(document.lines.len());
                session.add(document, line, TYPED[random.below(TYPED.len())])?;
            }
        }
        let now = match arguments.time {
            Some(_) => start.elapsed().as_secs() as usize / 60,
            None => session.typed / REPORT_EVERY,
        };
        if now > reported {
            reported = now;
            report(start, session.typed, session.server.usage()?);
        }
    }
    println!("hover       {}", Summary::of(&session.hovers));
    println!("completion  {}", Summary::of(&session.completions));
    session.server.stop()
}

fn report(start: Instant, typed: usize, usage: Usage) {
    let minutes = start.elapsed().as_secs_f64() / 60.0;
    let Usage { server_mib, data_mib, threads, children_mib, .. } = usage;
    let memory = format!("{server_mib:11.1} {data_mib:11.1}");
    println!("{minutes:7.1} {typed:8} {memory} {threads:8} {children_mib:12.1}");
}

impl Session {
    /// Deletes a line's text and types it again.
    fn retype(&mut self, document: &mut Document, line: usize) -> Result<(), Failure> {
        let text = document.lines[line].clone();
        let length = width(&text);
        self.change(document, [line, 0, line, length], "")?;
        self.type_text(document, line, &text)
    }

    /// Types a line above another one, indented as that, and deletes it again.
    fn add(&mut self, document: &mut Document, line: usize, text: &str) -> Result<(), Failure> {
        let below = &document.lines[line];
        let indent = below[..below.len() - below.trim_start().len()].to_owned();
        self.change(document, [line, 0, line, 0], "\n")?;
        self.type_text(document, line, &format!("{indent}{text}"))?;
        self.change(document, [line, 0, line + 1, 0], "")
    }

    fn type_text(
        &mut self,
        document: &mut Document,
        line: usize,
        text: &str,
    ) -> Result<(), Failure> {
        let mut column = 0;
        for (number, c) in text.chars().enumerate() {
            self.change(document, [line, column, line, column], &c.to_string())?;
            column += c.len_utf16();
            // A slip of the finger now and then.
            if number % 17 == 16 {
                self.change(document, [line, column, line, column], "x")?;
                self.change(document, [line, column, line, column + 1], "")?;
            }
            self.ask(document, [line, column])?;
        }
        Ok(())
    }

    /// Makes an edit when it is due.
    fn change(
        &mut self,
        document: &mut Document,
        range: [usize; 4],
        text: &str,
    ) -> Result<(), Failure> {
        if let Some(pause) = self.pause {
            self.server.listen(self.due)?;
            self.due = (self.due + pause).max(Instant::now());
        }
        document.version += 1;
        self.typed += 1;
        self.server.change(&document.uri, document.version, range, text)
    }

    /// Asks for what an editor asks for at this point, and waits for it.
    fn ask(&mut self, document: &Document, [line, character]: [usize; 2]) -> Result<(), Failure> {
        let position = json!({ "line": line, "character": character });
        let params = json!({
            "textDocument": { "uri": document.uri }, "position": position,
            "range": { "start": { "line": 0, "character": 0 }, "end": position },
        });
        for (every, what) in ASKED {
            if !self.typed.is_multiple_of(every) {
                continue;
            }
            let start = Instant::now();
            let id = self.server.ask(&format!("textDocument/{what}"), &params)?;
            self.settle(what, id)?;
            match what {
                "hover" => self.hovers.push(start.elapsed()),
                "completion" => self.completions.push(start.elapsed()),
                _ => {}
            }
        }
        Ok(())
    }

    /// Waits for an answer. A server need not know every request.
    fn settle(&mut self, what: &str, id: u64) -> Result<(), Failure> {
        match self.server.answer(id) {
            Err(error) if !error.to_string().contains("-32601") => {
                Err(format!("{what}: {error}").into())
            }
            _ => Ok(()),
        }
    }
}

/// How many UTF-16 code units a line has.
fn width(line: &str) -> usize {
    line.encode_utf16().count()
}

/// Random numbers, the same ones every time.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound.max(1)
    }
}
