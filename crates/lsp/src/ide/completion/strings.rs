//! What can be written in strings and comments: names of parameters, and codes to allow.

use tile_compiler::diagnostic::Code;
use tile_compiler::hir::Expr;
use tile_compiler::project::{ItemRef, Resolution, Sources, constexpr_params};
use tile_compiler::source::TextRange;

use super::{Context, Item, ItemKindHint, code_alone, is_word, item, path_at_end};
use crate::db::Analysis;

/// Arguments of decorators that list parameters by name.
const LISTS: [&str; 5] = [
    "key",
    "reset_to_zero",
    "restore_value",
    "do_not_specialize",
    "do_not_specialize_on_alignment",
];

impl Context<'_, '_> {
    /// The parameters of the kernel that is configured or launched, inside the string of
    /// `triton.Config({"...`, `key=["...` or `meta["...`.
    pub(super) fn parameters_in_string(&self) -> Vec<Item> {
        let before = &self.semantics.text[..self.offset];
        let before = before.trim_end_matches(is_word);
        let Some(before) = before.strip_suffix(['"', '\'']) else { return Vec::new() };
        let code = code_alone(before.trim_end());
        let names = match self.decorated() {
            Some(at) => self.parameters_in_decorator(at, &code),
            None => self.launched(&code).map(|at| self.constexprs(at)),
        };
        let names = names.unwrap_or_default();
        names.into_iter().map(|name| item(name, ItemKindHint::Keyword)).collect()
    }

    /// The function one of whose decorators the cursor stands in.
    fn decorated(&self) -> Option<ItemRef> {
        let mut around = self.around.iter();
        let (at, _) = around.find(|(_, function)| {
            let decorators = function.decorators.iter();
            let mut ranges = decorators.map(|decorator| function.map.exprs[*decorator]);
            ranges.any(|range| range.touches(self.offset))
        })?;
        Some(*at)
    }

    /// The parameters that a decorator names where `code` ends: as keys of a dictionary, which are
    /// compile-time values, or in one of [`LISTS`].
    fn parameters_in_decorator(&self, at: ItemRef, code: &str) -> Option<Vec<String>> {
        if !code.ends_with(['{', '[', '(', ',']) {
            return None;
        }
        let open = innermost_open(code)?;
        if code[open..].starts_with('{') {
            return Some(self.constexprs(at));
        }
        let argument = code[..open].trim_end().strip_suffix('=')?.trim_end();
        let name = &argument[argument.trim_end_matches(is_word).len()..];
        let (_, function) = self.around.iter().find(|(known, _)| *known == at)?;
        let params = function.params.iter().map(|param| param.name.to_string());
        let constexprs = self.constexprs(at);
        // What is known at compile time is not specialized on, and tuned for anyway.
        let params = params.filter(|name| !constexprs.contains(name));
        LISTS.contains(&name).then(|| params.collect())
    }

    /// The kernel whose grid `code` ends in: `kernel[lambda meta: ... meta[`, or `grid = lambda meta: ...
    /// meta[` where a launch of the file has that grid.
    fn launched(&self, code: &str) -> Option<ItemRef> {
        let variable = path_at_end(code.strip_suffix('[')?);
        let lambda = code.rfind("lambda")?;
        let takes = code[lambda..].contains(&variable.join("."));
        let before = code[..lambda].trim_end();
        let at = match before.strip_suffix('[') {
            Some(launch) => match self.resolve(&path_at_end(launch)) {
                Resolution::Jit(at) => Some(at),
                _ => None,
            },
            None => self.launched_with(&path_at_end(before.strip_suffix('=')?.trim_end())),
        };
        at.filter(|_| takes)
    }

    /// The kernel of a launch with the variable at `path` for its grid.
    fn launched_with(&self, path: &[String]) -> Option<ItemRef> {
        let [name] = path else { return None };
        let file = self.semantics.file.id(self.semantics.db);
        let module = Analysis(self.semantics.db).module(file)?;
        let mut launches = module.launches.iter();
        let launch = launches.find(|launch| launch.body.exprs[launch.grid].is_name(name))?;
        let Expr::Name(kernel) = &launch.body.exprs[launch.kernel] else { return None };
        match self.resolve(&[kernel.to_string()]) {
            Resolution::Jit(at) => Some(at),
            _ => None,
        }
    }

    fn constexprs(&self, at: ItemRef) -> Vec<String> {
        let names = constexpr_params(&Analysis(self.semantics.db), at);
        names.iter().map(ToString::to_string).collect()
    }
}

/// Where the innermost bracket that is open at the end of `code` stands.
fn innermost_open(code: &str) -> Option<usize> {
    let mut depth = 0usize;
    for (at, c) in code.char_indices().rev() {
        match c {
            ')' | ']' | '}' => depth += 1,
            '(' | '[' | '{' if depth > 0 => depth -= 1,
            '(' | '[' | '{' => return Some(at),
            _ => {}
        }
    }
    None
}

/// The codes and families that `# tile: allow` can name at `offset`; `None` elsewhere.
pub(super) fn codes(text: &str, offset: usize) -> Option<Vec<Item>> {
    let line_start = text[..offset].rfind(['\n', '\r']).map_or(0, |at| at + 1);
    let line = &text[line_start..offset];
    let comment = line[line.rfind('#')? + 1..].trim_start();
    let listed = comment.strip_prefix("tile:")?.trim_start().strip_prefix("allow")?;
    if !listed.starts_with([' ', '\t']) {
        return None;
    }
    let is_part = |c: char| is_word(c) || c == '/' || c == '-';
    let replaces = Some(TextRange::new(line_start + line.trim_end_matches(is_part).len(), offset));
    let code = |code: &Code| Item {
        replaces,
        detail: Some(code.info().summary.to_owned()),
        ..item(code.name(), ItemKindHint::Choice)
    };
    let mut items: Vec<Item> = Code::ALL.iter().map(code).collect();
    let mut families: Vec<&str> = Code::ALL.iter().map(|code| code.family()).collect();
    families.sort_unstable();
    families.dedup();
    items.extend(
        families.into_iter().map(|family| Item { replaces, ..item(family, ItemKindHint::Choice) }),
    );
    Some(items)
}
