//! Rules of Python that its grammar does not express: the order of arguments and parameters,
//! repeated names, and statements outside of what they leave.

use rustc_hash::FxHashMap;
use tree_sitter::Node;

use super::kind::{Field, Kind};
use super::{Kept, Parse, range};
use crate::diagnostic::{Code, Diagnostic};
use crate::source::{FileId, FileRange, TextRange};

/// What breaks the rules, in no particular order; nothing of what is `kept` does.
pub(super) fn diagnostics(parse: &Parse, file: FileId, kept: &Kept) -> Vec<Diagnostic> {
    let mut rules = Rules { text: parse.text(), file, found: Vec::new() };
    let mut cursor = parse.root().walk();
    // Kinds of the compound nodes around the current one.
    let mut around = vec![Kind::Module];
    loop {
        let node = cursor.node();
        let kind = Kind::of(node);
        let is_kept = around.len() == 2 && kept.place_before(range(node)).is_some();
        if !is_kept {
            rules.check(node, kind, &around);
        }
        if !is_kept && rules.may_break(node, kind) && cursor.goto_first_child() {
            around.push(kind);
            continue;
        }
        while !cursor.goto_next_sibling() {
            around.pop();
            if !cursor.goto_parent() {
                return rules.found;
            }
        }
    }
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

struct Rules<'a> {
    text: &'a str,
    file: FileId,
    found: Vec<Diagnostic>,
}

impl<'a> Rules<'a> {
    /// Whether a rule can be broken inside of a node. Most nodes are those of simple statements,
    /// where only calls with keywords and lambdas have rules: text is searched before nodes are visited.
    fn may_break(&self, node: Node<'_>, kind: Kind) -> bool {
        let holds_statements = kind.is_compound()
            || matches!(kind, Kind::Module | Kind::ScenarioLine | Kind::ScenarioFor | Kind::Other);
        if holds_statements {
            return true;
        }
        let text = self.text[node.byte_range()].as_bytes();
        may_have_argument_after_keyword(text) || memchr::memmem::find(text, b"lambda").is_some()
    }

    fn check(&mut self, node: Node<'_>, kind: Kind, around: &[Kind]) {
        match kind {
            Kind::ArgumentList => self.arguments(node),
            Kind::Parameters | Kind::LambdaParameters => self.parameters(node),
            Kind::ReturnStatement if !within(around, &[Kind::FunctionDefinition], &[]) => {
                self.report(range(node), "`return` stands outside of a function");
            }
            Kind::BreakStatement | Kind::ContinueStatement => {
                let loops = [Kind::ForStatement, Kind::WhileStatement];
                let ends = [Kind::FunctionDefinition, Kind::ClassDefinition];
                if !within(around, &loops, &ends) {
                    let keyword = &self.text[node.byte_range()];
                    self.report(range(node), format!("`{keyword}` stands outside of a loop"));
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
        let mut cursor = list.walk();
        for argument in list.named_children(&mut cursor) {
            match Kind::of(argument) {
                Kind::KeywordArgument => {
                    let Some(name) = Field::Name.of(argument) else { continue };
                    self.unique(&mut names, name, "keyword argument");
                    last_keyword = Some(range(argument));
                }
                Kind::DictionarySplat => last_keyword = Some(range(argument)),
                // `*values` may follow keywords.
                Kind::ListSplat | Kind::Error => {}
                kind if kind.is_extra() => {}
                _ => {
                    if let Some(keyword) = last_keyword {
                        let message = "a positional argument cannot follow a keyword argument";
                        self.report(range(argument), message);
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
        let mut cursor = list.walk();
        for parameter in list.named_children(&mut cursor) {
            let kind = Kind::of(parameter);
            let name = match kind {
                Kind::DefaultParameter | Kind::TypedDefaultParameter => {
                    default = default.or(Some(range(parameter)));
                    Field::Name.of(parameter)
                }
                Kind::TypedParameter => parameter.named_child(0),
                Kind::Identifier | Kind::ListSplatPattern | Kind::DictionarySplatPattern => {
                    Some(parameter)
                }
                _ => None,
            };
            let plain = name.filter(|name| Kind::of(*name) == Kind::Identifier);
            let has_default = matches!(kind, Kind::DefaultParameter | Kind::TypedDefaultParameter);
            match (plain, default) {
                (Some(name), Some(first)) if !has_default => {
                    let message = "a parameter without a default cannot follow one with a default";
                    self.report(range(name), message);
                    self.relate(first, "the parameter with a default");
                    return;
                }
                // After `*args` or `*` every order is right.
                (None, _) if kind != Kind::PositionalSeparator && !kind.is_extra() => {
                    default = None;
                    if kind == Kind::KeywordSeparator || kind == Kind::ListSplatPattern {
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
        let text = &self.text[name.byte_range()];
        match names.get(text).copied() {
            Some(first) => {
                self.report(range(name), format!("{what} `{text}` is repeated"));
                self.relate(first, "the first one");
            }
            None => {
                names.insert(text, range(name));
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
