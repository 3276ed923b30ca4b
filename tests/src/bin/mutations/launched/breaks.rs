//! The mistakes that are made in a kernel under a launch.

use std::ops::Range;

use tile_compiler::hir::{
    Arg, ArgKind, BinaryOp, CompareOp, Expr, ExprId, Function as Source, Name, Stmt,
};

use super::{Given, Working};
use tile_executor as cpu;

/// The function that gives a program's position.
const POSITION: &str = "tl.program_id(";

/// One mistake.
pub struct Mutant {
    /// What is changed, in a word.
    pub kind: &'static str,
    /// The change.
    pub change: Change,
}

/// What makes a mistake.
pub enum Change {
    /// Text of the kernel.
    Text(Range<usize>, String),
    /// A buffer has one element less.
    Shrunk(usize),
    /// The grid has one program more along an axis.
    Longer(usize),
    /// The grid has one program less along an axis.
    Shorter(usize),
    /// Two arguments are one buffer.
    Same(usize, usize),
    /// A number among the arguments is zero: a row stride of zero puts all rows into one.
    Stride(usize),
}

impl Mutant {
    /// The mistake for people; `text` is that of the kernel's file.
    pub fn describe(&self, kernel: &Working, text: &str) -> String {
        let (kind, name) = (self.kind, &kernel.name);
        match &self.change {
            Change::Text(range, new) => {
                let line = text[..range.start].matches('\n').count() + 1;
                let old = &text[range.clone()];
                format!("{kind} {name}:{line}: `{old}` became `{new}`")
            }
            Change::Shrunk(index) => {
                let is_buffer =
                    |given: &Given| matches!(given, Given::Buffer(known) if known == index);
                let mut args = kernel.launch.args.iter();
                let arg = args.find(|(_, given)| is_buffer(given)).map(|(name, _)| name.as_str());
                format!("{kind} {name}: `{}` has an element less", arg.unwrap_or_default())
            }
            Change::Longer(axis) => format!("{kind} {name}: a program more along axis {axis}"),
            Change::Shorter(axis) => format!("{kind} {name}: a program less along axis {axis}"),
            Change::Stride(index) => {
                format!("{kind} {name}: `{}` is 0", kernel.launch.args[*index].0)
            }
            Change::Same(a, b) => format!("{kind} {name}: buffers {a} and {b} are one"),
        }
    }
}

/// The mistakes that are tried in a kernel.
pub fn mutants(kernel: &Working, text: &str) -> Vec<Mutant> {
    let axis = (0..3).find(|axis| kernel.launch.grid[*axis] > 1);
    let mut found = Breaks { source: &kernel.source, text, axis, found: Vec::new() };
    found.of_launch(kernel);
    found.of_text();
    found.found
}

struct Breaks<'a> {
    source: &'a Source,
    text: &'a str,
    /// The first axis along which the grid has several programs.
    axis: Option<usize>,
    found: Vec<Mutant>,
}

impl Breaks<'_> {
    fn add(&mut self, kind: &'static str, change: Change) {
        self.found.push(Mutant { kind, change });
    }

    fn of_launch(&mut self, kernel: &Working) {
        let launch = &kernel.launch;
        for (index, memory) in launch.memory.iter().enumerate() {
            if memory.bytes.len() > memory.dtype.bytes() {
                self.add("buffer", Change::Shrunk(index));
            }
        }
        for axis in (0..3).filter(|axis| launch.grid[*axis] > 1) {
            self.add("grid", Change::Longer(axis));
            self.add("uncovered", Change::Shorter(axis));
        }
        for (index, (_, given)) in launch.args.iter().enumerate() {
            if matches!(given, Given::Number(cpu::Arg::Int(value)) if *value > 1) {
                self.add("stride", Change::Stride(index));
            }
        }
        for first in 0..launch.memory.len() {
            for second in first + 1..launch.memory.len() {
                if launch.memory[first].dtype == launch.memory[second].dtype {
                    self.add("alias", Change::Same(first, second));
                }
            }
        }
    }

    fn range(&self, expr: ExprId) -> Range<usize> {
        self.source.map.exprs[expr].as_usize()
    }

    fn source(&self, expr: ExprId) -> &str {
        &self.text[self.range(expr)]
    }

    fn of_text(&mut self) {
        let body = &self.source.body;
        let Some(first) = body.root.first() else { return };
        let start = self.source.map.stmts[*first].start;
        let programs = self.programs();
        let inside = body.exprs.iter().filter(|(id, _)| self.source.map.exprs[*id].start >= start);
        let inside: Vec<(ExprId, Expr)> = inside.map(|(id, expr)| (id, expr.clone())).collect();
        for (id, expr) in inside {
            match expr {
                Expr::Call { callee, args } => self.of_call(id, callee, &args),
                Expr::Compare { first, rest } => {
                    if let [(CompareOp::Lt, right)] = &*rest {
                        let between = self.range(first).end..self.range(*right).start;
                        let text = self.text[between.clone()].replace('<', "<=");
                        self.add("compare", Change::Text(between, text));
                    }
                }
                Expr::Binary { op: BinaryOp::Mul, lhs, rhs } => {
                    for side in [lhs, rhs] {
                        let of_program = matches!(&self.source.body.exprs[side],
                            Expr::Name(name) if programs.contains(name));
                        if of_program {
                            let text = format!("({} * 0)", self.source(side));
                            self.add("program", Change::Text(self.range(side), text));
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// Variables that hold the program's position.
    fn programs(&self) -> Vec<Name> {
        let body = &self.source.body;
        let assigned = body.stmts.iter().filter_map(|(_, stmt)| match stmt {
            Stmt::Assign { targets, value } => Some((targets.as_slice(), *value)),
            _ => None,
        });
        let of_program = assigned.filter(|(_, value)| self.source(*value).contains(POSITION));
        let names = of_program.flat_map(|(targets, _)| targets).flat_map(|target| {
            match &body.exprs[*target] {
                Expr::Tuple(items) => items.to_vec(),
                _ => vec![*target],
            }
        });
        let name = |id: ExprId| match &body.exprs[id] {
            Expr::Name(name) => Some(name.clone()),
            _ => None,
        };
        names.filter_map(name).collect()
    }

    fn of_call(&mut self, call: ExprId, callee: ExprId, args: &[Arg]) {
        let name = self.source(callee).to_owned();
        match name.as_str() {
            "tl.load" | "tl.store" => {
                let at = usize::from(name == "tl.store") + 1;
                let keeps = |index: usize, arg: &Arg| match &arg.kind {
                    ArgKind::Keyword(word) => {
                        !matches!(&**word, "mask" | "other" | "boundary_check" | "padding_option")
                    }
                    _ => index < at,
                };
                self.rebuild("mask", call, (&name, args), keeps);
            }
            "tl.atomic_add" => {
                let keeps = |index: usize, arg: &Arg| match &arg.kind {
                    ArgKind::Keyword(word) => &**word == "mask",
                    _ => index < 3,
                };
                self.rebuild("atomic", call, ("tl.store", args), keeps);
            }
            "tl.program_id" => {
                if let [axis] = args
                    && let Some(other) =
                        ["1", "0", "0"].get(self.source(axis.value).parse().unwrap_or(3))
                {
                    self.add("axis", Change::Text(self.range(axis.value), (*other).to_owned()));
                }
            }
            "tl.arange" => {
                let text = format!("({} + 1)", self.source(call));
                self.add("shift", Change::Text(self.range(call), text));
            }
            _ => {}
        }
        if let ("tl.store", Some(pointer)) = (name.as_str(), args.first()) {
            let (range, pointer) = (self.range(pointer.value), self.source(pointer.value));
            let text = format!("({pointer}) + 1");
            let overlapping = self.axis.map(|axis| format!("({pointer}) - {POSITION}{axis})"));
            self.add("store", Change::Text(range.clone(), text));
            if let Some(text) = overlapping {
                self.add("overlap", Change::Text(range, text));
            }
        }
    }

    /// The call of a function with some of the arguments, where that changes anything.
    fn rebuild(
        &mut self,
        kind: &'static str,
        call: ExprId,
        (callee, args): (&str, &[Arg]),
        keeps: impl Fn(usize, &Arg) -> bool,
    ) {
        let kept = args.iter().enumerate().filter(|(index, arg)| keeps(*index, arg));
        let kept: Vec<String> = kept
            .map(|(_, arg)| match &arg.kind {
                ArgKind::Keyword(word) => format!("{word}={}", self.source(arg.value)),
                _ => self.source(arg.value).to_owned(),
            })
            .collect();
        if kind != "mask" || kept.len() < args.len() {
            let text = format!("{callee}({})", kept.join(", "));
            self.add(kind, Change::Text(self.range(call), text));
        }
    }
}
