//! From generated lines to source lines.
//!
//! LLVM carries one number per instruction through its passes: the debug line, which code
//! generation sets to the IR location's number ([`debug_line`]). Afterwards [`relocate`] replaces
//! each `.loc` of the PTX by the true file, line and column, with the inlining chain as PTX
//! spells it (`function_name`, `inlined_at`), so that profilers see it too, and collects the
//! [`LineMap`]. LLVM 19 prints no inlining chain by itself.

use std::collections::BTreeMap;
use std::fmt::Write;

use tile_compiler::artifact::{Frame, LineMap, LineRun};
use tile_compiler::ir::{Function, Loc};
use tile_compiler::source::FileId;

/// The debug line that stands for `loc`; 0, which means no line, for the unknown location.
pub(crate) fn debug_line(func: &Function, loc: Loc) -> u32 {
    if func.frames(loc).is_empty() { 0 } else { loc.as_u32() }
}

/// Replaces the numbered locations of the PTX that LLVM printed, and maps its lines.
pub(crate) fn relocate(ptx: &str, func: &Function) -> (String, LineMap) {
    let mut relocation = Relocation::new(func);
    let mut located = false;
    let mut body = String::with_capacity(ptx.len());
    for line in ptx.lines() {
        let directive = line.trim_start();
        if let Some(rest) = directive.strip_prefix(".loc\t") {
            let loc = numbered_location(rest, func);
            located = relocation.enter(loc, &mut body);
        } else if directive.starts_with(".file") {
            continue;
        } else {
            if is_instruction(directive) && located {
                relocation.instruction();
            } else if directive.starts_with('}') {
                located = false;
            }
            relocation.write(&mut body, line.trim_end());
        }
    }
    relocation.finish(body)
}

/// The location whose number LLVM printed as the line; `None` for line 0.
fn numbered_location(rest: &str, func: &Function) -> Option<Loc> {
    let line = rest.split_whitespace().nth(1)?;
    let line: u32 = line.trim_end_matches(',').parse().ok()?;
    let loc = Loc::from_u32(line);
    (line != 0 && func.locs.get(loc).is_some()).then_some(loc)
}

/// Maps the lines of LLVM IR, whose debug locations name IR locations by number.
pub(crate) fn of_llvm(text: &str, func: &Function) -> LineMap {
    let number = |line: &str| -> Option<(u32, u32)> {
        let (id, rest) = line.strip_prefix('!')?.split_once(" = ")?;
        let (_, place) = rest.split_once("!DILocation(line: ")?;
        let digits = place.split(|c: char| !c.is_ascii_digit()).next()?;
        Some((id.parse().ok()?, digits.parse().ok()?))
    };
    let locations: BTreeMap<u32, u32> = text.lines().filter_map(number).collect();
    let mut relocation = Relocation::new(func);
    for line in text.lines() {
        let id = line.rsplit_once("!dbg !").and_then(|(_, id)| id.trim().parse::<u32>().ok());
        let loc = id.and_then(|id| locations.get(&id)).filter(|number| **number != 0);
        let loc = loc.map(|number| Loc::from_u32(*number));
        relocation.current = relocation.frames(loc.filter(|loc| func.locs.get(*loc).is_some()));
        if !relocation.current.is_empty() {
            relocation.instruction();
        }
        relocation.line += 1;
    }
    LineMap { runs: relocation.runs }
}

/// True for lines that become machine code: neither directives, labels, comments nor braces.
pub(crate) fn is_instruction(line: &str) -> bool {
    let code = line.trim_start();
    let starts = code.starts_with(|c: char| c.is_ascii_lowercase() || c == '@');
    starts && code.contains(';')
}

struct Relocation<'f> {
    func: &'f Function,
    files: BTreeMap<FileId, usize>,
    functions: Vec<String>,
    runs: Vec<LineRun>,
    current: Vec<Frame>,
    /// Lines written so far.
    line: u32,
}

impl<'f> Relocation<'f> {
    fn new(func: &'f Function) -> Self {
        let (files, functions) = (BTreeMap::new(), Vec::new());
        Relocation { func, files, functions, runs: Vec::new(), current: Vec::new(), line: 0 }
    }

    fn write(&mut self, out: &mut String, line: &str) {
        out.push_str(line);
        out.push('\n');
        self.line += 1;
    }

    /// The inlining chain of a location.
    fn frames(&self, loc: Option<Loc>) -> Vec<Frame> {
        let frames = loc.map(|loc| self.func.frames(loc)).unwrap_or_default();
        let frame = |&frame: &Loc| {
            let data = &self.func.locs[frame];
            Frame {
                file: data.at.file,
                line: data.line,
                col: data.col,
                function: data.function.to_string(),
            }
        };
        frames.iter().map(frame).collect()
    }

    /// Writes the `.loc` of a location; false when it has none.
    fn enter(&mut self, loc: Option<Loc>, out: &mut String) -> bool {
        self.current = self.frames(loc);
        let Some((own, helpers)) =
            self.current.clone().split_first().map(|(a, b)| (a.clone(), b.to_vec()))
        else {
            return false;
        };
        // An inlined line names the line of the call, which PTX must have seen in a `.loc` before.
        let mut outer = self.place(&own);
        self.write(out, &format!("\t.loc\t{outer}"));
        for helper in &helpers {
            let place = self.place(helper);
            let name = self.function_label(&helper.function);
            let chain = format!("function_name {name}, inlined_at {outer}");
            self.write(out, &format!("\t.loc\t{place}, {chain}"));
            outer = place;
        }
        true
    }

    fn place(&mut self, frame: &Frame) -> String {
        let next = self.files.len() + 1;
        let file = *self.files.entry(frame.file).or_insert(next);
        format!("{file} {} {}", frame.line, frame.col)
    }

    fn function_label(&mut self, name: &str) -> String {
        let known = self.functions.iter().position(|known| known == name);
        let index = known.unwrap_or_else(|| {
            self.functions.push(name.to_owned());
            self.functions.len() - 1
        });
        format!("$L__info_string{index}")
    }

    /// The next line is an instruction.
    fn instruction(&mut self) {
        let line = self.line;
        match self.runs.last_mut() {
            Some(run) if run.end == line && run.frames == self.current => run.end = line + 1,
            _ => {
                self.runs.push(LineRun { start: line, end: line + 1, frames: self.current.clone() })
            }
        }
    }

    fn finish(self, mut text: String) -> (String, LineMap) {
        let mut numbered: Vec<_> = self.files.iter().map(|(file, number)| (number, file)).collect();
        numbered.sort();
        for (number, file) in numbered {
            let path = self.func.files.get(file).map_or("unknown.py", |path| path);
            let path = path.replace('\\', "/").replace('"', "'");
            let _ = writeln!(text, "\t.file\t{number} \"{path}\"");
        }
        if !self.functions.is_empty() {
            text.push_str("\t.section\t.debug_str\n\t{\n");
            for (index, name) in self.functions.iter().enumerate() {
                let bytes: Vec<String> =
                    name.bytes().chain([0]).map(|byte| byte.to_string()).collect();
                let _ = writeln!(text, "$L__info_string{index}:\n.b8 {}", bytes.join(","));
            }
            text.push_str("\t}\n");
        }
        (text, LineMap { runs: self.runs })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    const FUNCTION: &str = r#"kernel @k level=tile num_warps=4 num_stages=3 num_ctas=1 fp_fusion=true {
  %0 = program_id {axis=0} : i32 @2
  %1 = add %0, %0 : i32 @1
  return @0
}
loc @1 = 0:0..1 7:5 "k"
loc @2 = 1:0..1 3:9 "helper" inlined @1
file 0 = "kernels/k.py"
file 1 = "kernels/helper.py"
"#;

    #[test]
    fn lines_of_llvm_ir_are_mapped() {
        let func = tile_compiler::ir::parse(FUNCTION).unwrap();
        let text = "\
define void @k() !dbg !4 {
  %1 = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x(), !dbg !7
  %2 = add i32 %1, %1, !dbg !8
  ret void, !dbg !9
}
!4 = distinct !DISubprogram(name: \"k\")
!7 = !DILocation(line: 2, column: 1, scope: !4)
!8 = !DILocation(line: 1, scope: !4)
!9 = !DILocation(line: 0, scope: !4)
";
        let map = of_llvm(text, &func);
        let lines = |line| map.frames(line).iter().map(|frame| frame.line).collect::<Vec<_>>();
        assert_eq!([lines(0), lines(1), lines(2), lines(3)], [vec![], vec![7, 3], vec![7], vec![]]);
    }

    #[test]
    fn locations_become_lines_with_their_inlining_chain() {
        let func = tile_compiler::ir::parse(FUNCTION).unwrap();
        let ptx = "\
.visible .entry k()
{
\t.loc\t1 2 0
\tmov.u32 %r1, %ctaid.x;
\t.loc\t1 1 0
$L__BB0_1:
\tadd.s32 %r2, %r1, %r1;
\tadd.s32 %r3, %r1, %r1;
\t.loc\t1 0 0
\tret;
}
\t.file\t1 \"locations\"
";
        let (text, map) = relocate(ptx, &func);
        expect![[r#"
            .visible .entry k()
            {
            	.loc	1 7 5
            	.loc	2 3 9, function_name $L__info_string0, inlined_at 1 7 5
            	mov.u32 %r1, %ctaid.x;
            	.loc	1 7 5
            $L__BB0_1:
            	add.s32 %r2, %r1, %r1;
            	add.s32 %r3, %r1, %r1;
            	ret;
            }
            	.file	1 "kernels/k.py"
            	.file	2 "kernels/helper.py"
            	.section	.debug_str
            	{
            $L__info_string0:
            .b8 104,101,108,112,101,114,0
            	}
        "#]]
        .assert_eq(&text);
        let lines: Vec<_> = map
            .runs
            .iter()
            .map(|run| {
                let frames: Vec<_> =
                    run.frames.iter().map(|f| format!("{}:{}", f.function, f.line)).collect();
                format!("{}..{} {}", run.start, run.end, frames.join(" < "))
            })
            .collect();
        assert_eq!(lines, ["4..5 k:7 < helper:3", "7..9 k:7"]);
    }
}
