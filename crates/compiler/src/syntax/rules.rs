//! Rules of Python that its grammar does not express: the order of arguments and parameters,
//! repeated names, and statements outside of what they leave.

use rustc_hash::FxHashMap;

use super::Kept;
use super::kind::{Field, Kind};
use super::node::Node;
use super::statement::Statement;
use crate::diagnostic::{Code, Diagnostic};
use crate::source::{FileId, FileRange, TextRange};

/// What breaks the rules, in no particular order; nothing of what is `kept` does.
pub(super) fn diagnostics(
    text: &str,
    statements: &[Statement<'_>],
    file: FileId,
    kept: &Kept,
) -> Vec<Diagnostic> {
    let mut rules = Rules { text, file, found: Vec::new(), around: vec![Kind::Module] };
    for statement in statements {
        if kept.place_before(statement.range()).is_none() {
            rules.visit(statement.top());
        }
    }
    rules.found
}

/// Whether a call in `text` may have an argument after a keyword or after `**values`: the rules of
/// arguments are about those. True for other things that look like it, too.
fn may_have_argument_after_keyword(text: &[u8]) -> bool {
    let after = |byte: u8, text: &[u8]| memchr::memchr(byte, text).map(|at| at + 1);
    let Some(open) = after(b'(', text) else { return false };
    let inside = &text[open..];
    let keyword = after(b'=', inside).into_iter().chain(memchr::memmem::find(inside, b"**")).min();
    keyword.is_some_and(|keyword| memchr::memchr(b',', &inside[keyword..]).is_some())
}

/// Nodes that lie deeper are not looked at; far beyond code that people write.
const MAX_DEPTH: usize = 1000;

struct Rules<'a> {
    text: &'a str,
    file: FileId,
    found: Vec<Diagnostic>,
    /// Kinds of the nodes around the current one.
    around: Vec<Kind>,
}

impl<'a> Rules<'a> {
    fn visit(&mut self, node: Node<'_>) {
        self.check(node);
        if self.around.len() < MAX_DEPTH && self.may_break(node) {
            self.around.push(node.kind());
            node.children().for_each(|child| self.visit(child));
            self.around.pop();
        }
    }

    /// Whether a rule can be broken inside of a node. Most nodes are those of simple statements,
    /// where only calls with keywords and lambdas have rules: text is searched before nodes are visited.
    fn may_break(&self, node: Node<'_>) -> bool {
        let kind = node.kind();
        let holds_statements = kind.is_compound()
            || matches!(kind, Kind::Module | Kind::ScenarioLine | Kind::ScenarioFor | Kind::Other);
        if holds_statements {
            return true;
        }
        let text = self.text[node.range().as_usize()].as_bytes();
        may_have_argument_after_keyword(text) || memchr::memmem::find(text, b"lambda").is_some()
    }

    fn check(&mut self, node: Node<'_>) {
        match node.kind() {
            Kind::ArgumentList => self.arguments(node),
            Kind::Parameters | Kind::LambdaParameters => self.parameters(node),
            Kind::ReturnStatement if !within(&self.around, &[Kind::FunctionDefinition], &[]) => {
                self.report(node.range(), "`return` stands outside of a function");
            }
            Kind::BreakStatement | Kind::ContinueStatement => {
                let loops = [Kind::ForStatement, Kind::WhileStatement];
                let ends = [Kind::FunctionDefinition, Kind::ClassDefinition];
                if !within(&self.around, &loops, &ends) {
                    let keyword = &self.text[node.range().as_usize()];
                    self.report(node.range(), format!("`{keyword}` stands outside of a loop"));
                }
            }
            _ => {}
        }
    }

    fn report(&mut self, at: TextRange, message: impl Into<String>) {
        let at = FileRange { file: self.file, range: at };
        self.found.push(Diagnostic::new(Code::SyntaxError, at, message));
    }

    fn arguments(&mut self, list: Node<'_>) {
        let mut names: FxHashMap<&'a str, TextRange> = FxHashMap::default();
        let mut last_keyword = None;
        for argument in list.named_children() {
            match argument.kind() {
                Kind::KeywordArgument => {
                    let Some(name) = argument.field(Field::Name) else { continue };
                    self.unique(&mut names, name, "keyword argument");
                    last_keyword = Some(argument.range());
                }
                Kind::DictionarySplat => last_keyword = Some(argument.range()),
                // `*values` may follow keywords.
                Kind::ListSplat | Kind::Error => {}
                kind if kind.is_extra() => {}
                _ => {
                    if let Some(keyword) = last_keyword {
                        let message = "a positional argument cannot follow a keyword argument";
                        self.report(argument.range(), message);
                        self.relate(keyword, "the keyword argument before it");
                        return;
                    }
                }
            }
        }
    }

    fn parameters(&mut self, list: Node<'_>) {
        let mut names: FxHashMap<&'a str, TextRange> = FxHashMap::default();
        let mut default = None;
        for parameter in list.named_children() {
            let kind = parameter.kind();
            let name = match kind {
                Kind::DefaultParameter | Kind::TypedDefaultParameter => {
                    default = default.or(Some(parameter.range()));
                    parameter.field(Field::Name)
                }
                Kind::TypedParameter => parameter.named_children().next(),
                Kind::Identifier | Kind::ListSplatPattern | Kind::DictionarySplatPattern => {
                    Some(parameter)
                }
                _ => None,
            };
            let plain = name.filter(|name| name.kind() == Kind::Identifier);
            let has_default = matches!(kind, Kind::DefaultParameter | Kind::TypedDefaultParameter);
            match (plain, default) {
                (Some(name), Some(first)) if !has_default => {
                    let message = "a parameter without a default cannot follow one with a default";
                    self.report(name.range(), message);
                    self.relate(first, "the parameter with a default");
                    return;
                }
                // After `*args` or `*` every order is right.
                (None, _) if kind != Kind::PositionalSeparator && !kind.is_extra() => {
                    default = None;
                    let is_star = |it: Node<'_>| it.kind() == Kind::ListSplatPattern;
                    if kind == Kind::KeywordSeparator || name.is_some_and(is_star) {
                        return;
                    }
                }
                _ => {}
            }
            if let Some(name) = plain {
                self.unique(&mut names, name, "parameter");
            }
        }
    }

    /// Reports a name that was there before.
    fn unique(&mut self, names: &mut FxHashMap<&'a str, TextRange>, name: Node<'_>, what: &str) {
        let text = &self.text[name.range().as_usize()];
        match names.get(text).copied() {
            Some(first) => {
                self.report(name.range(), format!("{what} `{text}` is repeated"));
                self.relate(first, "the first one");
            }
            None => {
                names.insert(text, name.range());
            }
        }
    }

    fn relate(&mut self, at: TextRange, message: &str) {
        let at = FileRange { file: self.file, range: at };
        if let Some(last) = self.found.pop() {
            self.found.push(last.with_related(at, message));
        }
    }
}

/// True when one of `wanted` is around, with none of `ends` further inside.
fn within(around: &[Kind], wanted: &[Kind], ends: &[Kind]) -> bool {
    let mut inside_out =
        around.iter().rev().filter(|kind| wanted.contains(kind) || ends.contains(kind));
    inside_out.next().is_some_and(|kind| wanted.contains(kind))
}
