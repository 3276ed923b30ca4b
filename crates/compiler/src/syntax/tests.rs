//! Syntax errors as users see them, and incremental parsing.

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;
use crate::hir;
use crate::source::LineIndex;

/// Checks the errors of `text`, shown as line, column, quoted range and message.
fn check(text: &str, expected: Expect) {
    let lines = LineIndex::new(text);
    let mut out = String::new();
    let place = |at: TextRange| {
        let start = lines.line_col(text, at.start);
        format!("{}:{} {:?}", start.line + 1, start.col + 1, &text[at.as_usize()])
    };
    for diagnostic in Parse::new(text).diagnostics(FileId(0)) {
        out.push_str(&format!("{}: {}\n", place(diagnostic.primary.range), diagnostic.message));
        for related in &diagnostic.related {
            out.push_str(&format!("  {}: {}\n", place(related.at.range), related.message));
        }
        for note in &diagnostic.notes {
            out.push_str(&format!("  note: {note}\n"));
        }
    }
    expected.assert_eq(&out);
}

#[test]
fn brackets_without_a_partner() {
    check(
        "\
def a(p, q):
    y = (p + q
    z = 3
def b(p):
    x = tl.load(p,
    tl.store(p, x)
    return [1, 2
def c():
    return }
",
        expect![[r#"
            2:9 "(": `(` is never closed
              3:9 "3": it would have to be closed here
            5:16 "(": `(` is never closed
              6:18 ")": it would have to be closed here
            7:12 "[": `[` is never closed
              7:16 "2": it would have to be closed here
            9:12 "}": `}` closes nothing
        "#]],
    );
}

#[test]
fn incomplete_statements() {
    check(
        "\
def a(p)
    return p +
def b(p):
    x = p.
    if p = 3:
        pass
    for i in range(3)
        pass
    return \"abc
y = 5 5
print \"hello\"
foo(1,, 2)
",
        expect![[r#"
            1:8 ")": expected `:`
            2:14 "+": expected an expression after `+`
            4:10 ".": expected a name after `.`
            5:10 "=": `=` assigns; a condition compares with `==`
            7:21 ")": expected `:` at the end of this `for`
            9:12 "\"abc": this string has no end
            10:5 "5": unexpected `5`
            11:7 "\"": unexpected `"`: the statement before it ends here
              note: print is a function: write `print(...)`
            12:6 ",": unexpected `,`
        "#]],
    );
}

#[test]
fn form_feeds_are_no_indentation() {
    check("x = 1\n\u{c}def a(p):\n    y = 1\n  \u{c}    z = 2\n", expect![""]);
}

#[test]
fn indentation() {
    check(
        "\
def a(p):
if p:
    return 1
class C:

def b(p):
    x = 1
     y = 2
def c(p):
\tx = 1
        y = 2
else:
    pass
  z = 3
",
        expect![[r#"
            1:9 ":": expected an indented block after `def`
            4:8 ":": expected an indented block after `class`
            8:6 "y": unexpected indentation
            11:9 "y": tabs and spaces are mixed in this block's indentation
            12:1 "else": `else` has no `if` at its indentation
            14:3 "z": unexpected indentation
        "#]],
    );
}

#[test]
fn rules_beyond_the_grammar() {
    check(
        "\
f(a=1, b)
f(*a, b, c=1, *d, **e)
g(a=1, a=2)
def p(a=1, b): break
def q(a, a): pass
def r(a, /, b=1, *c, d, e=2, **f): return
def s(a=1, *, b, c=2, d): pass
def u(a=1, *b: int, c: int = 2, d: int): pass
for i in x:
    def t(): continue
    if i: break
return
",
        expect![[r#"
            1:8 "b": a positional argument cannot follow a keyword argument
              1:3 "a=1": the keyword argument before it
            3:8 "a": keyword argument `a` is repeated
              3:3 "a": the first one
            4:12 "b": a parameter without a default cannot follow one with a default
              4:7 "a=1": the parameter with a default
            5:10 "a": parameter `a` is repeated
              5:7 "a": the first one
            10:14 "continue": `continue` stands outside of a loop
            12:1 "return": `return` stands outside of a function
        "#]],
    );
}

#[test]
fn scenario_lines() {
    check(
        "\
# tile: x = = 3
# tile: k[1](x
# tile: y = \"abc
# tile: z = 1
",
        expect![[r##"
            1:13 "=": unexpected `=`
            2:13 "(": `(` is never closed; a scenario statement is one line
            3:1 "# tile: y = \"abc": this scenario statement is not complete
        "##]],
    );
}

#[test]
fn valid_texts_have_no_errors() {
    for text in [
        "def f():\n    # Half of the second\n    # tile: slower by 11-29% because\n    return 1\n",
        "",
        "\u{feff}x = 1\r\nif x:\r\n\ty = 2\r\n",
        "x = (1 +\n2)\nif x: y = 1; z = 2\n",
        "def f(a, /, b, *, c=1, **d) -> int: ...\n",
        "match x:\n    case [1, *_]:\n        pass\n",
        "# tile: allow mask/missing\nx = f\"{a!r:>{w}} {{}}\"\n",
        "class A: pass\nx = 1 \\\n  + 2\n",
    ] {
        assert_eq!(Parse::new(text).diagnostics(FileId(0)), [], "{text:?}");
    }
}

const KERNEL: &str = "\
import triton
import triton.language as tl

# tile: x, y = randn(64), empty(64)
# tile: k[(1,)](x, y, 64, BLOCK=64)
# tile: assert allclose(y, x * 2)
@triton.jit
def k(x, y, n, BLOCK: tl.constexpr):
    \"\"\"Doubles.\"\"\"
    i = tl.arange(0, BLOCK)  # tile: allow mask
    if n > 4:
        v = tl.load(x + i, mask=i < n, other=0.0)
    else:
        v = tl.zeros((BLOCK,), dtype=tl.float32)
    for s in tl.static_range(2):
        v += f(v, [s, (1, 2)])
    tl.store(y + i, v)

def host(x):
    k[lambda m: (triton.cdiv(1, m['BLOCK']),)](x, x, 3, **{'BLOCK': 16})
";

/// Text that edits put in.
fn snippet() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        "[ -~]{1,6}",
        prop_oneof![
            Just("("),
            Just(")"),
            Just("["),
            Just("\""),
            Just("\n"),
            Just("\n    "),
            Just(":"),
            Just("# tile: "),
            Just("def f(a):\n    return a\n"),
            Just("é"),
            Just("\t"),
            Just("'''"),
            Just("\\\n"),
            Just("@"),
            Just("f'{"),
            Just("\r\n"),
        ]
        .prop_map(str::to_owned),
    ]
}

/// Applies an edit at the nearest character boundaries.
fn apply(text: &str, at: usize, delete: usize, insert: &str) -> (Edit, String) {
    let boundary = |mut at: usize| {
        at = at.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let start = boundary(at % (text.len() + 1));
    let end = boundary(start + delete);
    let new = format!("{}{insert}{}", &text[..start], &text[end..]);
    (Edit { old: TextRange::new(start, end), new_len: insert.len() }, new)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn edits_never_break_parsing_or_lowering(
        edits in prop::collection::vec((any::<usize>(), 0..40usize, snippet()), 1..12)
    ) {
        let mut parse = Parse::new(KERNEL);
        let mut module = hir::lower(&parse);
        for (at, delete, insert) in edits {
            let (edit, new) = apply(parse.text(), at, delete, &insert);
            let older = parse;
            parse = older.edit(&edit, new);
            let fresh = Parse::new(parse.text().clone());
            let statements = Statements::of(&parse);
            let kept = Kept::between(&Statements::of(&older).outline(), &statements.outline());
            let again = hir::lower_again(&statements, &module, &kept);
            module = hir::lower(&parse);
            prop_assert_eq!(&again, &module);
            hir::pretty::module(&module);
            let errors = parse.diagnostics(FileId(0));
            if older.diagnostics(FileId(0)).is_empty() {
                prop_assert_eq!(statements.diagnostics(FileId(0), &kept), errors);
            }
            prop_assert_eq!(fresh.root().has_error(), parse.root().has_error());
            if !fresh.root().has_error() {
                prop_assert_eq!(fresh.root().to_sexp(), parse.root().to_sexp());
                prop_assert_eq!(&hir::lower(&fresh), &module);
            }
        }
    }
}

#[test]
fn an_edit_that_does_not_fit_parses_anew() {
    let parse = Parse::new("x = 1\n");
    let edit = Edit { old: TextRange::new(2, 900), new_len: 5 };
    assert_eq!(
        parse.edit(&edit, "y = 2\n").root().to_sexp(),
        Parse::new("y = 2\n").root().to_sexp()
    );
}

#[test]
fn deep_nesting_is_cut_off() {
    for (open, close) in [("(", ")"), ("[", "]"), ("-", ""), ("f(", ")"), ("not ", "")] {
        let text = format!("x = {}1{}\n", open.repeat(5000), close.repeat(5000));
        let parse = Parse::new(text);
        hir::pretty::module(&hir::lower(&parse));
        parse.diagnostics(FileId(0));
    }
    let blocks: String = (0..400).map(|depth| format!("{}if x:\n", " ".repeat(depth))).collect();
    hir::lower(&Parse::new(format!("def f(x):\n{}", blocks.replace("if", " if"))));
    let chain = format!("def f(x):\n  return {}\n", vec!["x"; 4000].join(" + "));
    hir::lower(&Parse::new(chain));
}

#[test]
fn launches_between_the_lines_of_a_scenario_are_taken_over() {
    let text = "# tile: x = 1\n# tile: y = 2\rk[(1,)](x)\n# tile: z = 3\nw = 4\n";
    let older = Parse::new(text);
    let module = hir::lower(&older);
    let inside = |launch: &hir::Launch| module.scenarios[0].range.contains_range(launch.range);
    assert!(module.launches.iter().any(inside), "one stands between the lines");
    let (edit, new) = apply(text, text.len() - 1, 0, "0");
    let parse = older.edit(&edit, new);
    let statements = Statements::of(&parse);
    let kept = Kept::between(&Statements::of(&older).outline(), &statements.outline());
    let again = hir::lower_again(&statements, &module, &kept);
    assert_eq!(again, hir::lower(&parse));
    assert_eq!(again.launches.len(), module.launches.len());
}

#[test]
fn items_of_one_statement_share_their_places_when_it_moves() {
    let text = "a = b = c = 1\n";
    let older = Parse::new(text);
    let module = hir::lower(&older);
    let (edit, new) = apply(text, 0, 0, "\n");
    let parse = older.edit(&edit, new);
    let statements = Statements::of(&parse);
    let kept = Kept::between(&Statements::of(&older).outline(), &statements.outline());
    let again = hir::lower_again(&statements, &module, &kept);
    assert_eq!(again, hir::lower(&parse));
    let maps: Vec<_> = again
        .items
        .iter()
        .filter_map(|item| match &item.kind {
            hir::ItemKind::Assign { map, .. } => Some(map),
            _ => None,
        })
        .collect();
    assert_eq!(maps.len(), 3);
    assert!(maps.windows(2).all(|pair| Arc::ptr_eq(pair[0], pair[1])));
}
