//! HIR as stable, compact text: what `tile emit --stage ast` shows and tests compare.

use std::fmt::Write;

use super::*;

/// A whole module.
pub fn module(module: &Module) -> String {
    let mut out = String::new();
    for item in &module.items {
        print_item(&mut out, item);
    }
    for launch in &module.launches {
        let printer = Printer { body: &launch.body };
        let host = launch.host.as_deref().unwrap_or("module");
        let kernel = printer.expr(launch.kernel);
        let grid = printer.expr(launch.grid);
        let args = printer.args(&launch.args);
        let _ = writeln!(out, "launch in {host}: {kernel}[{grid}]({args})");
    }
    for scenario in &module.scenarios {
        out.push_str("scenario:\n");
        out.push_str(&block(&scenario.body, &scenario.body.root, 1));
    }
    for allow in &module.allows {
        let place = if allow.trailing { "this line" } else { "next line" };
        let _ = writeln!(out, "allow {} on {place}", allow.code);
    }
    out
}

/// A function with its decorators.
pub fn function(function: &Function) -> String {
    let mut out = String::new();
    print_function(&mut out, function, 0);
    out
}

/// The lines of [`function`]'s text, from 0, on which statements start.
pub fn statement_lines(function: &Function) -> Vec<(u32, StmtId)> {
    let head = function.decorators.len() + 1 + usize::from(function.doc.is_some());
    let (mut line, mut found) = (head as u32, Vec::new());
    block_lines(&function.body, &function.body.root, &mut line, &mut found);
    found
}

fn block_lines(body: &Body, stmts: &[StmtId], line: &mut u32, found: &mut Vec<(u32, StmtId)>) {
    for stmt in stmts {
        found.push((*line, *stmt));
        *line += 1;
        match &body.stmts[*stmt] {
            Stmt::If { body: inner, orelse, .. }
            | Stmt::For { body: inner, orelse, .. }
            | Stmt::While { body: inner, orelse, .. } => {
                block_lines(body, inner, line, found);
                *line += u32::from(!orelse.is_empty());
                block_lines(body, orelse, line, found);
            }
            Stmt::With { body: inner, .. } => block_lines(body, inner, line, found),
            Stmt::Try { body: inner, handlers, orelse, finally } => {
                block_lines(body, inner, line, found);
                for handler in handlers {
                    *line += 1;
                    block_lines(body, &handler.body, line, found);
                }
                for block in [orelse, finally] {
                    *line += u32::from(!block.is_empty());
                    block_lines(body, block, line, found);
                }
            }
            Stmt::Match { cases, .. } => {
                for case in cases {
                    *line += 1;
                    block_lines(body, &case.body, line, found);
                }
            }
            _ => {}
        }
    }
}

/// One expression, with every nested operation in parentheses.
pub fn expr(body: &Body, id: ExprId) -> String {
    Printer { body }.expr(id)
}

fn print_item(out: &mut String, item: &Item) {
    let scope: String = item.scope.iter().map(|name| format!("{name}.")).collect();
    let _ = write!(out, "{scope}{}: ", item.name);
    match &item.kind {
        ItemKind::Import { path, .. } => {
            let _ = writeln!(out, "import {}", path.join("."));
        }
        ItemKind::ImportFrom { level, path, member } => {
            let dots = ".".repeat(*level as usize);
            let _ = writeln!(out, "from {dots}{} import {member}", path.join("."));
        }
        ItemKind::Function(function) => {
            out.push_str("function\n");
            print_function(out, function, 1);
        }
        ItemKind::Class(class) => print_class(out, class),
        ItemKind::Assign { body, value, annotation, .. } => {
            let printer = Printer { body };
            let annotation = printer.optional(": ", *annotation);
            let _ = writeln!(out, "assign{annotation} = {}", printer.expr(*value));
        }
        ItemKind::Element { body, call, index, .. } => {
            let _ = writeln!(out, "element {index} of {}", Printer { body }.expr(*call));
        }
        ItemKind::Unknown => out.push_str("unknown\n"),
    }
}

fn print_class(out: &mut String, class: &Class) {
    let printer = Printer { body: &class.body };
    let bases: Vec<_> = class.bases.iter().map(|base| printer.expr(*base)).collect();
    let _ = writeln!(out, "class ({})", bases.join(", "));
    for decorator in &class.decorators {
        let _ = writeln!(out, "  @{}", printer.expr(*decorator));
    }
    for (name, annotation, default) in &class.fields {
        let annotation = printer.optional(": ", *annotation);
        let _ = writeln!(out, "  {name}{annotation}{}", printer.optional(" = ", *default));
    }
}

fn print_function(out: &mut String, function: &Function, depth: usize) {
    let printer = Printer { body: &function.body };
    let indent = "  ".repeat(depth);
    for decorator in &function.decorators {
        let _ = writeln!(out, "{indent}@{}", printer.expr(*decorator));
    }
    let params: Vec<_> = function.params.iter().map(|param| printer.param(param)).collect();
    let returns = printer.optional(" -> ", function.returns);
    let _ = writeln!(out, "{indent}def {}({}){returns}:", function.name, params.join(", "));
    if let Some(doc) = &function.doc {
        let _ = writeln!(out, "{indent}  doc {doc:?}");
    }
    out.push_str(&block(&function.body, &function.body.root, depth + 1));
}

fn block(body: &Body, stmts: &[StmtId], depth: usize) -> String {
    let printer = Printer { body };
    stmts.iter().map(|stmt| printer.stmt(*stmt, depth)).collect()
}

struct Printer<'a> {
    body: &'a Body,
}

impl Printer<'_> {
    fn param(&self, param: &Param) -> String {
        let stars = match param.kind {
            ParamKind::Normal | ParamKind::PositionalOnly => "",
            ParamKind::KeywordOnly => "*, ",
            ParamKind::VarArgs => "*",
            ParamKind::KwArgs => "**",
        };
        let annotation = self.optional(": ", param.annotation);
        format!("{stars}{}{annotation}{}", param.name, self.optional(" = ", param.default))
    }

    fn optional(&self, before: &str, id: Option<ExprId>) -> String {
        id.map(|id| format!("{before}{}", self.expr(id))).unwrap_or_default()
    }

    fn list(&self, ids: &[ExprId]) -> String {
        let items: Vec<_> = ids.iter().map(|id| self.expr(*id)).collect();
        items.join(", ")
    }

    fn args(&self, args: &[Arg]) -> String {
        let args = args.iter().map(|arg| {
            let value = self.expr(arg.value);
            match &arg.kind {
                ArgKind::Positional => value,
                ArgKind::Keyword(name) => format!("{name}={value}"),
                ArgKind::Star => format!("*{value}"),
                ArgKind::DoubleStar => format!("**{value}"),
            }
        });
        args.collect::<Vec<_>>().join(", ")
    }

    fn expr(&self, id: ExprId) -> String {
        match &self.body.exprs[id] {
            Expr::Missing => "<missing>".to_owned(),
            Expr::Name(name) => name.to_string(),
            Expr::Literal(literal) => self::literal(literal),
            Expr::Tuple(items) if items.len() == 1 => format!("({},)", self.list(items)),
            Expr::Tuple(items) => format!("({})", self.list(items)),
            Expr::List(items) => format!("[{}]", self.list(items)),
            Expr::Set(items) => format!("{{{}}}", self.list(items)),
            Expr::ListComp { element, target, iterable, conditions } => {
                let conditions: String =
                    conditions.iter().map(|c| format!(" if {}", self.expr(*c))).collect();
                let (target, iterable) = (self.expr(*target), self.expr(*iterable));
                format!("[{} for {target} in {iterable}{conditions}]", self.expr(*element))
            }
            Expr::Generator(inner) => format!("iter({})", self.expr(*inner)),
            Expr::DictComp(inner) => format!("dict({})", self.expr(*inner)),
            Expr::SetComp(inner) => format!("set({})", self.expr(*inner)),
            Expr::Binary { op, lhs, rhs } => {
                format!("({} {} {})", self.expr(*lhs), op.symbol(), self.expr(*rhs))
            }
            Expr::Unary { op, operand } => format!("({}{})", op.symbol(), self.expr(*operand)),
            Expr::Bool { and, values } => {
                let values: Vec<_> = values.iter().map(|value| self.expr(*value)).collect();
                format!("({})", values.join(if *and { " and " } else { " or " }))
            }
            Expr::Compare { first, rest } => {
                let rest =
                    rest.iter().map(|(op, rhs)| format!(" {} {}", op.symbol(), self.expr(*rhs)));
                format!("({}{})", self.expr(*first), rest.collect::<String>())
            }
            Expr::Call { callee, args } => format!("{}({})", self.expr(*callee), self.args(args)),
            Expr::Attribute { value, attr } => format!("{}.{attr}", self.expr(*value)),
            Expr::Subscript { value, index } => {
                format!("{}[{}]", self.expr(*value), self.expr(*index))
            }
            Expr::Slice { lower, upper, step } => {
                let (lower, upper) = (self.optional("", *lower), self.optional("", *upper));
                format!("{lower}:{upper}{}", self.optional(":", *step))
            }
            Expr::IfElse { condition, on_true, on_false } => {
                let (on_true, on_false) = (self.expr(*on_true), self.expr(*on_false));
                format!("({on_true} if {} else {on_false})", self.expr(*condition))
            }
            Expr::FString(parts) => {
                let parts = parts.iter().map(|part| match part {
                    FStringPart::Text(text) => text.escape_debug().to_string(),
                    FStringPart::Hole(value) => format!("{{{}}}", self.expr(*value)),
                    FStringPart::Formatted { value, conversion, format } => {
                        let conversion = conversion.map(|letter| format!("!{letter}"));
                        let conversion = conversion.unwrap_or_default();
                        format!("{{{}{conversion}:{format}}}", self.expr(*value))
                    }
                });
                format!("f\"{}\"", parts.collect::<String>())
            }
            Expr::Lambda { params, body } => {
                let params = params.iter().map(|param| {
                    let star = match param.kind {
                        ParamKind::VarArgs => "*",
                        ParamKind::KwArgs => "**",
                        _ => "",
                    };
                    format!("{star}{}{}", param.name, self.optional("=", param.default))
                });
                let params: Vec<_> = params.collect();
                format!("(lambda {}: {})", params.join(", "), self.expr(*body))
            }
            Expr::Walrus { target, value } => format!("({target} := {})", self.expr(*value)),
            Expr::Dict(entries) => {
                let entries = entries.iter().map(|(key, value)| match key {
                    Some(key) => format!("{}: {}", self.expr(*key), self.expr(*value)),
                    None => format!("**{}", self.expr(*value)),
                });
                format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
            }
            Expr::Starred(value) => format!("*{}", self.expr(*value)),
            Expr::Yield { value, of_each } => {
                let word = if *of_each { "yield from" } else { "yield" };
                value.map_or(word.to_owned(), |value| format!("{word} {}", self.expr(value)))
            }
            Expr::Unsupported(name) => format!("<{name}>"),
        }
    }

    fn pattern(&self, pattern: &Pattern) -> String {
        let list = |patterns: &[Pattern], between: &str| {
            let patterns: Vec<_> = patterns.iter().map(|pattern| self.pattern(pattern)).collect();
            patterns.join(between)
        };
        match pattern {
            Pattern::Value(value) => self.expr(*value),
            Pattern::Capture(None) => "_".to_owned(),
            Pattern::Capture(Some(target)) => self.expr(*target),
            Pattern::Or(patterns) => list(patterns, " | "),
            Pattern::Sequence(patterns) => format!("[{}]", list(patterns, ", ")),
            Pattern::As(pattern, target) => {
                format!("{} as {}", self.pattern(pattern), self.expr(*target))
            }
            Pattern::Other(targets) => format!("<{}>", self.list(targets)),
        }
    }

    fn stmt(&self, id: StmtId, depth: usize) -> String {
        let indent = "  ".repeat(depth);
        let head = |text: String| format!("{indent}{text}\n");
        let block = |stmts: &[StmtId]| block(self.body, stmts, depth + 1);
        let orelse = |stmts: &[StmtId]| match stmts {
            [] => String::new(),
            stmts => format!("{indent}else:\n{}", block(stmts)),
        };
        match &self.body.stmts[id] {
            Stmt::Expr(value) => head(self.expr(*value)),
            Stmt::Assign { targets, value } => {
                let targets: String =
                    targets.iter().map(|target| format!("{} = ", self.expr(*target))).collect();
                head(format!("{targets}{}", self.expr(*value)))
            }
            Stmt::AugAssign { target, op, value } => {
                head(format!("{} {}= {}", self.expr(*target), op.symbol(), self.expr(*value)))
            }
            Stmt::AnnAssign { target, annotation, value } => {
                let (target, annotation) = (self.expr(*target), self.expr(*annotation));
                head(format!("{target}: {annotation}{}", self.optional(" = ", *value)))
            }
            Stmt::If { test, body, orelse: other } => {
                head(format!("if {}:", self.expr(*test))) + &block(body) + &orelse(other)
            }
            Stmt::For { target, iter, body, orelse: other } => {
                head(format!("for {} in {}:", self.expr(*target), self.expr(*iter)))
                    + &block(body)
                    + &orelse(other)
            }
            Stmt::While { test, body, orelse: other } => {
                head(format!("while {}:", self.expr(*test))) + &block(body) + &orelse(other)
            }
            Stmt::With { items, body } => {
                let items = items.iter().map(|(manager, target)| {
                    format!("{}{}", self.expr(*manager), self.optional(" as ", *target))
                });
                head(format!("with {}:", items.collect::<Vec<_>>().join(", "))) + &block(body)
            }
            Stmt::Try { body, handlers, orelse: other, finally } => {
                let handlers = handlers.iter().map(|handler| {
                    let kinds = self.optional(" ", handler.kinds);
                    let target = self.optional(" as ", handler.target);
                    head(format!("except{kinds}{target}:")) + &block(&handler.body)
                });
                let finally = match finally.as_slice() {
                    [] => String::new(),
                    stmts => head("finally:".to_owned()) + &block(stmts),
                };
                head("try:".to_owned())
                    + &block(body)
                    + &handlers.collect::<String>()
                    + &orelse(other)
                    + &finally
            }
            Stmt::Match { subject, cases } => {
                let cases = cases.iter().map(|case| {
                    let guard = self.optional(" if ", case.guard);
                    let pattern = self.pattern(&case.pattern);
                    head(format!("case {pattern}{guard}:")) + &block(&case.body)
                });
                head(format!("match {}:", self.expr(*subject))) + &cases.collect::<String>()
            }
            Stmt::Return(value) => head(format!("return{}", self.optional(" ", *value))),
            Stmt::Assert { test, message } => {
                head(format!("assert {}{}", self.expr(*test), self.optional(", ", *message)))
            }
            Stmt::Pass => head("pass".to_owned()),
            Stmt::Unsupported(name) => head(format!("<{name}>")),
            Stmt::Error => head("<error>".to_owned()),
        }
    }
}

fn literal(literal: &Literal) -> String {
    match literal {
        Literal::Int(value) => value.get().to_string(),
        Literal::BigInt(digits) => digits.to_string(),
        Literal::Float(bits) => format!("{:?}", f64::from_bits(*bits)),
        Literal::Bool(true) => "True".to_owned(),
        Literal::Bool(false) => "False".to_owned(),
        Literal::None => "None".to_owned(),
        Literal::Str(text) => format!("{text:?}"),
        Literal::Bytes => "<bytes>".to_owned(),
        Literal::Ellipsis => "...".to_owned(),
        Literal::Imaginary => "<imaginary>".to_owned(),
    }
}

impl BinaryOp {
    /// The operator as Python spells it.
    pub fn symbol(self) -> &'static str {
        match self {
            BinaryOp::Add => "+",
            BinaryOp::Sub => "-",
            BinaryOp::Mul => "*",
            BinaryOp::Div => "/",
            BinaryOp::FloorDiv => "//",
            BinaryOp::Mod => "%",
            BinaryOp::Pow => "**",
            BinaryOp::MatMul => "@",
            BinaryOp::Shl => "<<",
            BinaryOp::Shr => ">>",
            BinaryOp::And => "&",
            BinaryOp::Or => "|",
            BinaryOp::Xor => "^",
        }
    }
}

impl UnaryOp {
    /// The operator as Python spells it, with the space that `not` needs.
    pub fn symbol(self) -> &'static str {
        match self {
            UnaryOp::Plus => "+",
            UnaryOp::Minus => "-",
            UnaryOp::Invert => "~",
            UnaryOp::Not => "not ",
        }
    }
}

impl CompareOp {
    /// The operator as Python spells it.
    pub fn symbol(self) -> &'static str {
        match self {
            CompareOp::Eq => "==",
            CompareOp::Ne => "!=",
            CompareOp::Lt => "<",
            CompareOp::Le => "<=",
            CompareOp::Gt => ">",
            CompareOp::Ge => ">=",
            CompareOp::Is => "is",
            CompareOp::IsNot => "is not",
            CompareOp::In => "in",
            CompareOp::NotIn => "not in",
        }
    }
}
