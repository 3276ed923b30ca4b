//! Code with places to fill in, words of Python, and what scenarios can call.

use tile_compiler::builtins::SCENARIO_FUNCTIONS;

use super::{Item, ItemKindHint, is_word, item};

/// A snippet.
struct Snippet {
    label: &'static str,
    detail: &'static str,
    body: &'static str,
    /// It stands inside of kernels, not at module level.
    inside: bool,
}

const SNIPPETS: [Snippet; 3] = [
    Snippet {
        label: "kernel",
        detail: "a kernel with a scenario",
        body: "@triton.jit\ndef ${1:name}_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):\n    \
               offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    \
               mask = offsets < n\n    \
               x = tl.load(x_ptr + offsets, mask=mask)\n    \
               tl.store(out_ptr + offsets, ${2:x}, mask=mask)\n\n\n\
               # tile: n = ${3:10_000}\n\
               # tile: x, out = randn(n), empty(n)\n\
               # tile: ${1:name}_kernel[(cdiv(n, 1024),)](x, out, n, BLOCK=1024)\n\
               # tile: assert allclose(out, ${4:x})\n",
        inside: false,
    },
    Snippet {
        label: "masked load",
        detail: "a load that stays inside of its buffer",
        body: "${1:mask} = ${2:offsets} < ${3:n}\n\
               ${4:x} = tl.load(${5:x_ptr} + ${2:offsets}, mask=${1:mask}, other=${6:0.0})",
        inside: true,
    },
    Snippet {
        label: "reduction loop",
        detail: "a sum over an axis that does not fit into one tile",
        body: "${1:acc} = tl.zeros((${2:BLOCK},), dtype=tl.float32)\n\
               for ${3:start} in range(0, ${4:n}, ${2:BLOCK}):\n    \
               ${5:offsets} = ${3:start} + tl.arange(0, ${2:BLOCK})\n    \
               ${1:acc} += tl.load(${6:x_ptr} + ${5:offsets}, mask=${5:offsets} < ${4:n}, other=0.0)\n\
               ${7:total} = tl.sum(${1:acc}, axis=0)",
        inside: true,
    },
];

/// Words of Python that can stand inside of expressions of kernels.
const VALUE_WORDS: &[&str] =
    &["None", "True", "False", "and", "or", "not", "if", "else", "for", "in", "is"];

/// Words of Python that scenarios can use besides.
const SCENARIO_WORDS: &[&str] = &["assert", "lambda"];

/// Words of Python that statements of kernels begin with. Triton takes neither `break` and
/// `continue` nor what handles exceptions or defines something inside of functions.
const STATEMENT_WORDS: &[&str] =
    &["if", "elif", "else", "for", "while", "return", "assert", "pass"];

/// Words of Python that can stand at `offset`, inside of a kernel or of a scenario.
pub(super) fn words(text: &str, offset: usize, in_scenario: bool) -> impl Iterator<Item = Item> {
    let (words, more): (&[&str], &[&str]) = match (in_scenario, statement_begins(text, offset)) {
        (true, _) => (VALUE_WORDS, SCENARIO_WORDS),
        (false, true) => (STATEMENT_WORDS, &[]),
        (false, false) => (VALUE_WORDS, &[]),
    };
    words.iter().chain(more).map(|word| item(*word, ItemKindHint::Word))
}

/// Whether the word at `offset` is the first of its line.
fn statement_begins(text: &str, offset: usize) -> bool {
    indentation(text, offset).chars().all(|c| c == ' ' || c == '\t')
}

/// What stands before the word at `offset` on its line.
fn indentation(text: &str, offset: usize) -> &str {
    let line = text[..offset].rsplit(['\n', '\r']).next().unwrap_or_default();
    line.trim_end_matches(is_word)
}

/// The snippets that fit where a statement begins.
pub(super) fn at(text: &str, offset: usize, inside: bool) -> impl Iterator<Item = Item> {
    let begins = statement_begins(text, offset);
    // A function that is left again begins at the margin.
    let inside = inside && !indentation(text, offset).is_empty();
    let fits = move |snippet: &&Snippet| begins && snippet.inside == inside;
    SNIPPETS.iter().filter(fits).map(|snippet| Item {
        insert: Some(snippet.body.to_owned()),
        detail: Some(snippet.detail.to_owned()),
        snippet: true,
        ..item(snippet.label, ItemKindHint::Snippet)
    })
}

/// The functions of scenarios as completions.
pub(super) fn scenario_functions() -> impl Iterator<Item = Item> {
    SCENARIO_FUNCTIONS.iter().map(|function| Item {
        detail: Some(format!("{}({})", function.name, function.signature)),
        doc: Some(function.doc),
        ..item(function.name, ItemKindHint::Builtin)
    })
}
