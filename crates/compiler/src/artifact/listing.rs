//! Generated text as people read it: without debug directives, with or without source lines.

use rustc_hash::FxHashMap;

use serde::{Deserialize, Serialize};

use super::{Frame, LineMap, LineRun};
use crate::source::FileId;

/// A generated text with its line map.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Listing {
    /// The text.
    pub text: String,
    /// From its lines to source lines.
    pub line_map: LineMap,
}

impl Listing {
    /// PTX without `.file`, `.loc` and debug sections.
    pub fn ptx(text: &str, line_map: &LineMap) -> Listing {
        let mut in_section = false;
        Listing::keep(text, line_map, |line| {
            let line = line.trim_start();
            if line.starts_with(".section") {
                in_section = true;
            }
            let kept = !in_section && !line.starts_with(".loc") && !line.starts_with(".file");
            if in_section && line.starts_with('}') {
                in_section = false;
            }
            kept.then_some(line.len())
        })
    }

    /// LLVM IR without metadata: its definitions, and what refers to them at the ends of lines.
    pub fn llvm(text: &str, line_map: &LineMap) -> Listing {
        Listing::keep(text, line_map, |line| {
            let is_definition = line.starts_with('!') || line.trim_start().starts_with("#dbg_");
            let end = [", !dbg ", " !dbg "].iter().filter_map(|tag| line.find(tag)).min();
            (!is_definition).then(|| end.unwrap_or(line.len()))
        })
    }

    /// Tile or GPU IR, whose own locations give the line map. Unless it is to stay `raw`, the
    /// locations and their tables are left out.
    pub fn ir(text: &str, raw: bool) -> Listing {
        let locations = IrLocations::read(text);
        let mut listing = Listing::default();
        let mut count = 0;
        for line in text.lines() {
            let is_table = line.starts_with("loc @") || line.starts_with("file ");
            if is_table && !raw {
                continue;
            }
            let (shown, number) = split_location(line);
            match number {
                Some(number) if !is_table => {
                    listing.line_map.push(count, &locations.frames(number));
                    let opens = if line.ends_with('{') { " {" } else { "" };
                    listing.text.push_str(if raw { line } else { shown });
                    listing.text.push_str(if raw { "" } else { opens });
                }
                _ => listing.text.push_str(line),
            }
            listing.text.push('\n');
            count += 1;
        }
        listing
    }

    /// Keeps the lines for which `kept` returns a length, shortened to that many bytes unless
    /// that is less than their indentation.
    fn keep(
        text: &str,
        line_map: &LineMap,
        mut kept: impl FnMut(&str) -> Option<usize>,
    ) -> Listing {
        let mut listing = Listing::default();
        let mut count = 0;
        for (number, line) in text.lines().enumerate() {
            let Some(length) = kept(line) else { continue };
            let opens_body = line.ends_with('{');
            let shown = if length < line.trim_start().len() { &line[..length] } else { line };
            listing.text.push_str(shown.trim_end());
            if opens_body && !shown.ends_with('{') {
                listing.text.push_str(" {");
            }
            listing.text.push('\n');
            listing.line_map.push(count, line_map.frames(number as u32));
            count += 1;
        }
        listing
    }

    /// The text with a comment line wherever the source line changes: the kernel's own line
    /// first, then lines of inlined helpers. `comment` starts a comment in this kind of text;
    /// `source` gives the path and the text of a source line.
    pub fn annotated(&self, comment: &str, source: &dyn Fn(&Frame) -> (String, String)) -> String {
        let mut out = String::new();
        let mut last: &[Frame] = &[];
        for (number, line) in self.text.lines().enumerate() {
            let frames = self.line_map.frames(number as u32);
            let same = frames.iter().map(place).eq(last.iter().map(place));
            if !same && !frames.is_empty() {
                for frame in frames {
                    let (path, text) = source(frame);
                    out.push_str(&format!("{comment} {path}:{}  {}\n", frame.line, text.trim()));
                }
            }
            if !frames.is_empty() {
                last = frames;
            }
            out.push_str(line);
            out.push('\n');
        }
        out
    }
}

/// The line of IR text without its location, and the location's number.
fn split_location(line: &str) -> (&str, Option<u32>) {
    let whole = line.strip_suffix(" {").unwrap_or(line);
    match whole.rsplit_once(" @") {
        Some((shown, number)) => match number.parse() {
            Ok(number) => (shown, Some(number)),
            Err(_) => (line, None),
        },
        None => (line, None),
    }
}

/// The location table of IR text.
struct IrLocations(FxHashMap<u32, (Frame, Option<u32>)>);

impl IrLocations {
    fn read(text: &str) -> IrLocations {
        let entries =
            text.lines().filter_map(|line| IrLocations::entry(line.strip_prefix("loc @")?));
        IrLocations(entries.collect())
    }

    /// `1 = 0:12..20 2:5 "add" inlined @2`, the rest of a line of the table.
    fn entry(text: &str) -> Option<(u32, (Frame, Option<u32>))> {
        let (number, rest) = text.split_once(" = ")?;
        let (place, rest) = rest.split_once(" \"")?;
        let (function, rest) = rest.rsplit_once('"')?;
        let (bytes, position) = place.split_once(' ')?;
        let (file, _) = bytes.split_once(':')?;
        let (line, col) = position.split_once(':')?;
        let frame = Frame {
            file: FileId(file.parse().ok()?),
            line: line.parse().ok()?,
            col: col.parse().ok()?,
            function: function.to_owned(),
        };
        let caller = rest.trim().strip_prefix("inlined @").and_then(|caller| caller.parse().ok());
        Some((number.parse().ok()?, (frame, caller)))
    }

    /// The inlining chain of a location, the kernel's own line first; empty for the unknown one.
    fn frames(&self, number: u32) -> Vec<Frame> {
        let mut frames = Vec::new();
        let mut next = Some(number);
        while let Some((frame, caller)) = next.and_then(|number| self.0.get(&number)) {
            if frame.line == 0 || frames.len() > self.0.len() {
                break;
            }
            frames.push(frame.clone());
            next = *caller;
        }
        frames.reverse();
        frames
    }
}

/// What makes a source line, its columns aside.
fn place(frame: &Frame) -> (FileId, u32) {
    (frame.file, frame.line)
}

impl LineMap {
    /// Adds the next line, `number`, which comes from `frames`.
    fn push(&mut self, number: u32, frames: &[Frame]) {
        if frames.is_empty() {
            return;
        }
        match self.runs.last_mut() {
            Some(run) if run.end == number && run.frames == frames => run.end += 1,
            _ => {
                let run = LineRun { start: number, end: number + 1, frames: frames.to_vec() };
                self.runs.push(run);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn frame(line: u32) -> Frame {
        Frame { file: FileId(0), line, col: 1, function: "k".into() }
    }

    fn map(runs: &[(u32, u32, u32)]) -> LineMap {
        let run = |&(start, end, line)| LineRun { start, end, frames: vec![frame(line)] };
        LineMap { runs: runs.iter().map(run).collect() }
    }

    #[test]
    fn ptx_loses_its_debug_directives_and_keeps_its_lines() {
        let text = "\
.version 8.7
{
\t.loc\t1 7 3
\tadd.f32 %f1, %f2, %f3;
\tret;
}
\t.file\t1 \"k.py\"
\t.section\t.debug_abbrev
\t{
.b8 1
\t}
";
        let listing = Listing::ptx(text, &map(&[(2, 5, 7)]));
        let source = |frame: &Frame| ("k.py".to_owned(), format!("  line {}", frame.line));
        expect![[r#"
            .version 8.7
            {
            // k.py:7  line 7
            	add.f32 %f1, %f2, %f3;
            	ret;
            }
        "#]]
        .assert_eq(&listing.annotated("//", &source));
    }

    #[test]
    fn llvm_ir_loses_its_metadata() {
        let text = "\
define void @k(ptr %0) !dbg !4 {
  %2 = load float, ptr %0, align 4, !dbg !7
  ret void, !dbg !8
}
!4 = distinct !DISubprogram(name: \"k\")
";
        expect![[r"
            define void @k(ptr %0) {
              %2 = load float, ptr %0, align 4
              ret void
            }
        "]]
        .assert_eq(&Listing::llvm(text, &LineMap::default()).text);
    }

    #[test]
    fn ir_gives_its_own_line_map() {
        let text = "\
kernel @k level=tile {
  %0 = program_id {axis=0} : i32 @1
  if %0 @2 {
    yield @2
  }
  return @0
}
loc @1 = 0:1..2 7:3 \"k\"
loc @2 = 0:5..6 3:1 \"helper\" inlined @1
";
        let listing = Listing::ir(text, false);
        let lines: Vec<Vec<u32>> = (0..7)
            .map(|line| listing.line_map.frames(line).iter().map(|frame| frame.line).collect())
            .collect();
        assert_eq!(lines, [vec![], vec![7], vec![7, 3], vec![7, 3], vec![], vec![], vec![]]);
        expect![[r"
            kernel @k level=tile {
              %0 = program_id {axis=0} : i32
              if %0 {
                yield
              }
              return
            }
        "]]
        .assert_eq(&listing.text);
        assert_eq!(Listing::ir(text, true).text, text);
    }
}
