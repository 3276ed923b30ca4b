//! The changes that are made in a kernel.

use std::ops::Range;

use tile_compiler::diagnostic::Code;
use tile_compiler::hir::{Arg, ArgKind, BinaryOp, Expr, ExprId, Function as Source, Name};
use tile_compiler::specialization::{ArgSpec, ConstArg, Specialization};

use super::{Working, has_products};

/// The stages that are tried, if they are more.
const STAGES: [u32; 3] = [8, 12, 24];

/// Rows of a product that are fewer than an instruction has.
const FEW_ROWS: i128 = 8;

/// How far apart neighboring lanes are put, in elements.
const APART: u32 = 32;

/// One change.
pub struct Mutant {
    /// What is changed, in a word.
    pub kind: &'static str,
    /// What must be found.
    pub code: Code,
    /// The change.
    pub change: Change,
}

/// What is changed.
pub enum Change {
    /// Text of the kernel.
    Text(Range<usize>, String),
    /// A compile-time value.
    Constant(Name, i128),
    /// The stages of pipelines.
    Stages(u32),
}

impl Mutant {
    /// The family that the change belongs to.
    pub fn family(&self) -> &'static str {
        if self.code.is_resource() { "resource" } else { "perf" }
    }

    /// The change for people; `text` is that of the kernel's file.
    pub fn describe(&self, kernel: &Working, text: &str) -> String {
        let (kind, name) = (self.kind, &kernel.name);
        match &self.change {
            Change::Text(range, new) => {
                let line = text[..range.start].matches('\n').count() + 1;
                let old = &text[range.clone()];
                format!("{kind} {name}:{line}: `{old}` became `{new}`")
            }
            Change::Constant(constant, value) => format!("{kind} {name}: `{constant}` is {value}"),
            Change::Stages(stages) => format!("{kind} {name}: {stages} stages"),
        }
    }
}

/// The changes that are tried in a kernel.
pub fn mutants(kernel: &Working, text: &str) -> Vec<Mutant> {
    let mut breaks = Breaks { source: &kernel.source, spec: &kernel.spec, text, found: Vec::new() };
    if has_products(&kernel.func) {
        breaks.of_products(kernel.func.options.num_stages);
    }
    breaks.of_text();
    breaks.found
}

struct Breaks<'a> {
    source: &'a Source,
    spec: &'a Specialization,
    text: &'a str,
    found: Vec<Mutant>,
}

impl Breaks<'_> {
    fn add(&mut self, kind: &'static str, code: Code, change: Change) {
        self.found.push(Mutant { kind, code, change });
    }

    /// Puts `text` in the place of an expression.
    fn replace(&mut self, kind: &'static str, code: Code, expr: ExprId, text: String) {
        let range = self.range(expr);
        self.add(kind, code, Change::Text(range, text));
    }

    fn range(&self, expr: ExprId) -> Range<usize> {
        self.source.map.exprs[expr].as_usize()
    }

    fn source(&self, expr: ExprId) -> &str {
        &self.text[self.range(expr)]
    }

    /// Changes of what a kernel with products is compiled for.
    fn of_products(&mut self, stages: u32) {
        for stages in STAGES.into_iter().filter(|more| *more > stages) {
            self.add("stages", Code::SharedMemory, Change::Stages(stages));
        }
        let powers = self.spec.args.iter().filter_map(|(name, arg)| match arg {
            ArgSpec::Constexpr(ConstArg::Int(value)) if *value >= 16 && value.count_ones() == 1 => {
                Some((name.clone(), *value))
            }
            _ => None,
        });
        for (name, value) in powers.collect::<Vec<_>>() {
            for factor in [4, 8] {
                let larger = Change::Constant(name.clone(), factor * value);
                self.add("block", Code::SharedMemory, larger);
            }
            self.add("rows", Code::SmallProduct, Change::Constant(name, FEW_ROWS));
        }
    }

    fn of_text(&mut self) {
        let body = &self.source.body;
        let Some(first) = body.root.first() else { return };
        let start = self.source.map.stmts[*first].start;
        let inside = body.exprs.iter().filter(|(id, _)| self.source.map.exprs[*id].start >= start);
        let inside: Vec<(ExprId, Expr)> = inside.map(|(id, expr)| (id, expr.clone())).collect();
        for (id, expr) in inside {
            if let Expr::Call { callee, args } = expr {
                self.of_call(id, callee, &args);
            }
        }
    }

    fn of_call(&mut self, call: ExprId, callee: ExprId, args: &[Arg]) {
        match (self.source(callee), args) {
            ("tl.arange", _) => {
                let text = format!("({} * {APART})", self.source(call));
                self.replace("apart", Code::Uncoalesced, call, text);
            }
            ("tl.store", [pointer, value, rest @ ..]) => {
                if let Expr::Binary { op: BinaryOp::Add, lhs, rhs } =
                    self.source.body.exprs[pointer.value]
                {
                    let (base, offset) = (self.source(lhs), self.source(rhs));
                    let value = self.source(value.value);
                    let mask = rest.iter().find(|arg| is_keyword(arg, "mask"));
                    let mask = mask.map(|mask| format!(", mask={}", self.source(mask.value)));
                    let text = format!(
                        "tl.atomic_add({base} + tl.zeros_like({offset}), {value}{})",
                        mask.unwrap_or_default()
                    );
                    self.replace("offsets", Code::AtomicLanes, call, text);
                }
            }
            ("tl.dot", [lhs, rhs, rest @ ..]) => {
                let wide = |arg: &Arg| format!("({}).to(tl.float32)", self.source(arg.value));
                let mut parts = vec![wide(lhs), wide(rhs)];
                for arg in rest {
                    match &arg.kind {
                        ArgKind::Positional => parts.push(self.source(arg.value).to_owned()),
                        ArgKind::Keyword(word) if matches!(&**word, "acc" | "out_dtype") => {
                            parts.push(format!("{word}={}", self.source(arg.value)));
                        }
                        _ => {}
                    }
                }
                let text = format!("tl.dot({}, input_precision=\"ieee\")", parts.join(", "));
                self.replace("precision", Code::TensorCores, call, text);
            }
            _ => {}
        }
    }
}

fn is_keyword(arg: &Arg, wanted: &str) -> bool {
    matches!(&arg.kind, ArgKind::Keyword(name) if **name == *wanted)
}
