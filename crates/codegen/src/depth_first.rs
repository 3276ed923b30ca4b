//! Elements computed one after the other.
//!
//! An operation on tiles is printed for all elements of a thread before the next one is, and LLVM's order for few
//! registers looks at no more than what is ready. So the values in the middle of a long computation are all there
//! at once, and the assembler, which schedules within what it is given, keeps them. Here what reads or writes memory
//! or waits stays in its order, and everything else is computed when the next of these needs it, depth first: the
//! elements of Philox, of which each holds four values, follow each other, and dropout of eight of them takes 32
//! registers instead of 50. Which order is better shows in machine code alone, see [`orders`](crate::orders).

use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::address::registers;

/// What says of code that it comes from no place in the source.
const NOWHERE: &str = "\t.loc\t1 0 0";

/// `ptx` with the instructions of each block depth first; as it is where lines open braces that others close.
pub(crate) fn order(ptx: &str) -> String {
    let lines: Vec<&str> = ptx.lines().collect();
    let Some(body) = body(&lines) else { return ptx.to_owned() };
    let mut out = Output { lines: lines[..body.start].to_vec(), place: NOWHERE };
    let mut block = Vec::new();
    let mut place = NOWHERE;
    for &line in &lines[body.clone()] {
        if line.trim_start().starts_with(".loc") {
            place = line;
        } else if ends_block(line) {
            out.write_block(&block);
            block.clear();
            out.write(line, place);
        } else {
            block.push(Statement::of(line, place));
        }
    }
    out.write_block(&block);
    out.lines.extend(&lines[body.end..]);
    out.lines.join("\n") + "\n"
}

/// The lines between the braces of the only function, if each line closes the braces that it opens.
fn body(lines: &[&str]) -> Option<Range<usize>> {
    let begin = lines.iter().position(|line| *line == "{")? + 1;
    let end = begin + lines[begin..].iter().position(|line| *line == "}")?;
    let count = |line: &str, brace| line.matches(brace).count();
    let is_whole = |line: &&str| count(line, '{') == count(line, '}');
    let has_more = lines[end + 1..].contains(&"{");
    (!has_more && lines[begin..end].iter().all(is_whole)).then_some(begin..end)
}

/// Whether nothing moves over a line: another block begins, or this one may end, or a register is declared.
fn ends_block(line: &str) -> bool {
    const PARTS: &[&str] = &["bra", "brx", "call", "exit", "ret", "trap"];
    let mut words = line.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    line.trim_start().starts_with('.') || line.ends_with(':') || words.any(|it| PARTS.contains(&it))
}

/// A line of instructions.
pub(crate) struct Statement<'t> {
    line: &'t str,
    /// The directive that says where in the source it comes from.
    place: &'t str,
    /// Registers that it may read.
    pub(crate) reads: Vec<&'t str>,
    /// Registers that it may write.
    pub(crate) writes: Vec<&'t str>,
    /// Whether it does nothing but compute these.
    pub(crate) is_pure: bool,
}

impl<'t> Statement<'t> {
    pub(crate) fn of(line: &'t str, place: &'t str) -> Statement<'t> {
        let mut statement =
            Statement { line, place, reads: Vec::new(), writes: Vec::new(), is_pure: true };
        for inst in line.split(';').map(str::trim) {
            let inst = inst.strip_prefix("{ ").unwrap_or(inst);
            if !matches!(inst, "" | "}") && !inst.starts_with(".reg ") {
                statement.add(inst);
            }
        }
        statement
    }

    /// Adds what one instruction does.
    fn add(&mut self, inst: &'t str) {
        let guarded = inst.strip_prefix('@').and_then(|it| it.split_once(' '));
        let (op, operands) = {
            let inst = guarded.map_or(inst, |(_, inst)| inst);
            inst.split_once(char::is_whitespace).unwrap_or((inst, ""))
        };
        let kind = Kind::of(op);
        self.is_pure &= kind == Kind::Computes && !registers(inst).any(changes_by_itself);
        let (result, rest) = match kind {
            Kind::Computes | Kind::Reads => split_result(operands.trim_start()),
            Kind::Writes => ("", operands),
            Kind::Other => (operands, operands),
        };
        self.writes.extend(registers(result));
        self.reads.extend(registers(rest));
        if let Some((guard, _)) = guarded {
            // Where the guard does not hold, the result is what it was.
            self.reads.extend(registers(guard).chain(registers(result)));
        }
    }
}

/// The first of several operands, which may be a vector, and the others.
fn split_result(operands: &str) -> (&str, &str) {
    let end = if operands.starts_with('{') { '}' } else { ',' };
    operands.split_once(end).unwrap_or((operands, ""))
}

/// What an instruction does, as far as its order goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Its first operand follows from the others, whenever it runs.
    Computes,
    /// Its first operand follows from memory, or from other threads.
    Reads,
    /// It changes no register.
    Writes,
    /// It may do anything with the registers that it names.
    Other,
}

impl Kind {
    fn of(op: &str) -> Kind {
        const COMPUTE: &[&str] = &[
            "abs", "add", "and", "bfe", "bfi", "bfind", "brev", "clz", "cnot", "copysign", "cos",
            "cvt", "cvta", "div", "dp2a", "dp4a", "ex2", "fma", "lg2", "lop3", "mad", "max", "min",
            "mov", "mul", "mul24", "neg", "not", "or", "popc", "prmt", "rcp", "rem", "rsqrt",
            "sad", "selp", "set", "setp", "shf", "shl", "shr", "sin", "slct", "sqrt", "sub",
            "tanh", "testp", "xor",
        ];
        const READ: &[&str] = &["ld", "shfl", "vote"];
        const WRITE: &[&str] = &["bar", "fence", "membar", "red", "st"];
        let (name, variant) = op.split_once('.').unwrap_or((op, ""));
        if COMPUTE.contains(&name) || op.starts_with("ld.param.") {
            Kind::Computes
        } else if READ.contains(&name) {
            Kind::Reads
        } else if WRITE.contains(&name) && !(name == "bar" && variant.starts_with("red")) {
            Kind::Writes
        } else {
            Kind::Other
        }
    }
}

/// Whether a register is none of the kernel's own, nor the thread's or the CTA's number.
fn changes_by_itself(register: &str) -> bool {
    let is_number = ["%tid", "%ctaid", "%ntid", "%nctaid"].contains(&register);
    let class = register.trim_end_matches(|digit: char| digit.is_ascii_digit());
    !is_number && !["%p", "%rs", "%r", "%rd", "%rq", "%f", "%fd"].contains(&class)
}

/// The lines that are written, and the place in the source that they say last.
struct Output<'t> {
    lines: Vec<&'t str>,
    place: &'t str,
}

impl<'t> Output<'t> {
    fn write(&mut self, line: &'t str, place: &'t str) {
        if self.place != place {
            self.lines.push(place);
            self.place = place;
        }
        self.lines.push(line);
    }

    /// Writes a block: in order what has to stay in order, and in front of each what it needs.
    fn write_block(&mut self, block: &[Statement<'t>]) {
        let needs = needs(block);
        let mut is_written = vec![false; block.len()];
        let fixed = (0..block.len()).filter(|&at| !block[at].is_pure);
        for root in fixed.chain(0..block.len()) {
            let mut open = vec![(root, 0)];
            while let Some((at, next)) = open.last_mut() {
                if is_written[*at] {
                    open.pop();
                } else if let Some(&need) = needs[*at].get(*next) {
                    *next += 1;
                    open.push((need, 0));
                } else {
                    is_written[*at] = true;
                    self.write(block[*at].line, block[*at].place);
                    open.pop();
                }
            }
        }
    }
}

/// For each statement of a block those that must come before it, in order.
fn needs(block: &[Statement<'_>]) -> Vec<Vec<usize>> {
    let mut writer: FxHashMap<&str, usize> = FxHashMap::default();
    let mut readers: FxHashMap<&str, Vec<usize>> = FxHashMap::default();
    let mut all = Vec::with_capacity(block.len());
    for (at, statement) in block.iter().enumerate() {
        let mut needs = Vec::new();
        for name in &statement.reads {
            needs.extend(writer.get(name));
            readers.entry(name).or_default().push(at);
        }
        for name in &statement.writes {
            needs.extend(writer.insert(name, at));
            needs.extend(readers.remove(name).unwrap_or_default());
        }
        needs.retain(|&need| need != at);
        needs.sort_unstable();
        needs.dedup();
        all.push(needs);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::order;

    /// Lines within the braces of a kernel.
    fn kernel(lines: &[&str]) -> String {
        format!(".entry k()\n.reqntid 128, 1, 1\n{{\n{}\n}}\n", lines.join("\n"))
    }

    #[track_caller]
    fn check(lines: &[&str], ordered: &[&str]) {
        assert_eq!(order(&kernel(lines)), kernel(ordered));
    }

    const READ_1: &str = "\tmov.b32 %r1, 0; @%p1 ld.global.b32 %r1, [%rd1];";
    const READ_2: &str = "\tmov.b32 %r2, 0; @%p1 ld.global.b32 %r2, [%rd1+512];";
    const WRITE_1: &str = "\t@%p1 st.global.b32 [%rd2], %r5;";
    const WRITE_2: &str = "\t@%p1 st.global.b32 [%rd2+512], %r6;";

    #[test]
    fn each_element_is_computed_when_it_is_written() {
        let [both_1, both_2] = [
            "\t{ .reg .b64 both; mul.wide.u32 both, %r1, 7; mov.b64 {%r3, %r7}, both; }",
            "\t{ .reg .b64 both; mul.wide.u32 both, %r2, 7; mov.b64 {%r4, %r8}, both; }",
        ];
        let [xor_1, xor_2] = ["\txor.b32 \t%r5, %r3, %r7;", "\txor.b32 \t%r6, %r4, %r8;"];
        check(
            &[READ_1, READ_2, both_1, both_2, xor_1, xor_2, WRITE_1, WRITE_2],
            &[READ_1, READ_2, both_1, xor_1, WRITE_1, both_2, xor_2, WRITE_2],
        );
    }

    #[test]
    fn places_in_the_source_follow() {
        let [two, three] = ["\tadd.s32 \t%r5, %r1, 2;", "\tadd.s32 \t%r6, %r2, 3;"];
        let [first, second] = ["\t.loc\t1 1 0", "\t.loc\t1 2 0"];
        check(
            &[READ_1, READ_2, first, two, three, second, WRITE_1, WRITE_2],
            &[READ_1, READ_2, first, two, second, WRITE_1, first, three, second, WRITE_2],
        );
    }

    #[test]
    fn what_a_register_held_before_is_used_first() {
        let [next, doubled] = ["\tadd.s32 \t%r5, %r1, 1;", "\tadd.s32 \t%r6, %r1, %r1;"];
        let copy = "\tmov.u32 \t%r1, %r5;";
        let ends = ["\t@%p2 bra \t$L__BB0_1;", "$L__BB0_2:"];
        let lines =
            |block: [_; 3]| [&["$L__BB0_1:"], &block[..], &ends, &[WRITE_1, WRITE_2]].concat();
        check(&lines([next, copy, READ_2]), &lines([READ_2, next, copy]));
        check(&lines([next, doubled, copy]), &lines([next, doubled, copy]));
        // The second copy takes what the first one wrote.
        let then = "\tadd.s32 \t%r6, %r1, %r1;";
        check(
            &lines([copy, then, "\tmov.u32 \t%r1, %r7;"]),
            &lines([copy, then, "\tmov.u32 \t%r1, %r7;"]),
        );
    }

    #[test]
    fn what_changes_by_itself_or_is_not_known_stays_in_order() {
        for inst in [
            "\tmov.u32 %r5, %clock;",
            "\ttry.this %r5, %r1;",
            "\tshfl.sync.bfly.b32\t%r5, %r1, 1, 31, -1;",
        ] {
            check(&[inst, READ_2, WRITE_1], &[inst, READ_2, WRITE_1]);
        }
        check(
            &["\tmov.u32 %r5, %tid.x;", READ_2, WRITE_1],
            &[READ_2, "\tmov.u32 %r5, %tid.x;", WRITE_1],
        );
    }

    #[test]
    fn lines_that_belong_together_stay_together() {
        let call = [
            "\t{ // callseq 0, 0",
            "\tadd.s32 \t%r5, %r1, 2;",
            READ_2,
            "\t} // callseq 0",
            WRITE_1,
        ];
        check(&call, &call);
    }
}
