//! Completions of small files; `$0` marks the cursor.

use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::db::{Database, SourceText};
use crate::files::Disk;

/// What can be written at `$0` in kernel files.
fn items(text: &str) -> Vec<Item> {
    let text = format!("import triton\nimport triton.language as tl\n\n{text}");
    let offset = text.find("$0").expect("a cursor");
    let mut db = Database::new(Arc::new(Disk));
    let path = Path::new("/nowhere/kernels.py");
    let file = db.set_open(path, SourceText::new(text.replacen("$0", "", 1)));
    completions(&db, file, offset)
}

fn labels(text: &str) -> Vec<String> {
    items(text).into_iter().map(|item| item.label).collect()
}

/// Asserts which of the names are among those that can be written.
fn check(text: &str, there: &[&str], not_there: &[&str]) {
    let found = labels(text);
    let has = |name: &&str| found.iter().any(|label| label == name);
    let missing: Vec<_> = there.iter().filter(|name| !has(name)).collect();
    let wrong: Vec<_> = not_there.iter().filter(|name| has(name)).collect();
    assert!(missing.is_empty() && wrong.is_empty(), "{text}: {missing:?} {wrong:?} of {found:?}");
}

fn call(text: &str) -> Option<OpenCall> {
    open_call(text, text.len())
}

#[test]
fn open_calls_are_found_in_text_that_does_not_parse() {
    let load = call("x = tl.load(ptr + f(a, b), mask=m, ot").unwrap();
    assert_eq!(load.callee, ["tl", "load"]);
    assert_eq!((load.position, load.given, load.keyword), (1, vec!["mask".into()], None));
    let launch = call("kernel[(cdiv(n, 4),)](x, n, BLOCK=").unwrap();
    assert_eq!(launch.callee, ["kernel"]);
    assert_eq!(launch.keyword.as_deref(), Some("BLOCK"));
    assert_eq!(call("f(x).sum(").unwrap().callee, ["", "sum"]);
    assert!(call("f(x)").is_none());
    assert!(call("def f(x").is_none());
    assert_eq!(call("undef(x").unwrap().callee, ["undef"]);
    assert_eq!(call("def f(x=g(").unwrap().callee, ["g"]);
    assert!(call("x[f(").is_some());
    assert!(call("f(x[").is_none());
}

#[test]
fn comments_and_strings_are_no_arguments() {
    let commented = call("f(a,  # one, (two\n  b='(,', # k=1\n  c=").unwrap();
    assert_eq!((commented.position, commented.given), (1, vec!["b".into()]));
    assert_eq!(commented.keyword.as_deref(), Some("c"));
    assert_eq!(call("'''don't (\n'''\ng(x, 'it\\'s (', ").unwrap().position, 2);
    assert_eq!(call("x = 'open\nh(\"\", é=1, # ö,\n").unwrap().callee, ["h"]);
    assert_eq!(call("# tile: k[(1,)](x, # y, z\n# tile: f(1, ").unwrap().position, 1);
    let text = "a = 'é' # ü\nb";
    assert_eq!(code_alone(text), "a = '  '     \nb");
}

#[test]
fn paths_before_dots() {
    let path = |text: &str| dotted_before(text, text.len());
    assert_eq!(path("x = tl.ma").unwrap(), ["tl"]);
    assert_eq!(path("x = tl.math.").unwrap(), ["tl", "math"]);
    assert_eq!(path("f(x).s").unwrap(), Vec::<String>::new());
    assert_eq!(path("x = lo"), None);
}

/// A kernel whose last line is `line`.
fn in_kernel(line: &str) -> String {
    format!(
        "@triton.jit\ndef k(ptr, n, B: tl.constexpr):\n    offs = tl.arange(0, B)\n    \
         x = tl.load(ptr + offs)\n    desc = tl.make_tensor_descriptor(ptr, [n, n], [n, 1], [B, B])\n    \
         {line}\n\ndef run(p):\n    k[(1,)](p, 8, B=16)\n"
    )
}

#[test]
fn what_follows_a_dot_is_what_the_value_has() {
    check(&in_kernel("x.$0"), &["sum", "dtype", "shape", "T"], &["element_ty", "gather_rows"]);
    check(&in_kernel("ptr.$0"), &["dtype", "to"], &["element_ty"]);
    check(&in_kernel("y = x.dtype.$0"), &["element_ty", "is_floating"], &["abs", "sum"]);
    check(&in_kernel("y = ptr.dtype.element_ty.prim$0"), &["primitive_bitwidth"], &["abs"]);
    check(&in_kernel("y = tl.float32.$0"), &["primitive_bitwidth"], &["abs"]);
    check(&in_kernel("desc.$0"), &["load", "store", "gather", "block_shape"], &["sum"]);
    check(&in_kernel("y = B.$0"), &["value"], &["sum"]);
    check(&in_kernel("tl.load(ptr).$0"), &["sum"], &[]);
    assert_eq!(labels(&in_kernel("y = 1.$0")), [""; 0]);
    assert_eq!(labels(&in_kernel("y = \"abc\".$0")), [""; 0]);
    assert_eq!(labels("def host(x):\n    x.$0\n"), [""; 0], "other servers know host code better");
}

#[test]
fn scenarios_complete_what_scenarios_take() {
    let scenario = |line: &str| {
        format!(
            "from triton.language.extra import libdevice\n\n@triton.jit\ndef k(ptr):\n    \
             tl.store(ptr, 1.0)\n\n# tile: x = randn(4)\n{line}\n"
        )
    };
    check(&scenario("# tile: y = randn(4, dtype=$0)"), &["float16", "int32"], &["dtype=", "seed="]);
    check(&scenario("# tile: y = x.$0"), &["shape", "T", "stride"], &["dot"]);
    check(&scenario("# tile: allow $0"), &["perf", "perf/float64"], &["randn", "k"]);
    check(&scenario("# tile: allow name/unused, perf/$0"), &["perf/float64"], &["randn"]);
    check(&scenario("# tile: y = $0"), &["randn", "k", "tl"], &["libdevice", "triton"]);
}

#[test]
fn strings_of_decorators_complete_parameters() {
    let decorated = |decorator: &str| {
        format!("@triton.{decorator}\n@triton.jit\ndef k(ptr, n, B: tl.constexpr):\n    pass\n")
    };
    for list in ["key", "reset_to_zero", "restore_value"] {
        let tuned = decorated(&format!("autotune(configs=[], {list}=[\"ptr\", \"$0\"])"));
        assert_eq!(labels(&tuned), ["ptr", "n"], "{list}");
    }
    assert_eq!(labels(&decorated("jit(do_not_specialize=[\"$0\"])")), ["ptr", "n"]);
    assert_eq!(labels(&decorated("heuristics({\"$0\": lambda args: 1})")), ["B"]);
    let configured = "autotune(configs=[triton.Config({\"A\": \"$0\"})], key=[])";
    assert_eq!(labels(&decorated(configured)), [""; 0], "a value is no name");
}

#[test]
fn grids_complete_what_a_launch_knows_when_it_compiles() {
    let kernel = "import triton\nimport triton.language as tl\n\n@triton.jit\ndef k(ptr, n, B: tl.constexpr):\n    pass\n";
    let inline = "def f(x):\n    k[lambda meta: (triton.cdiv(4, meta[\"$0\"]),)](x, 4)\n";
    assert_eq!(labels(&format!("{kernel}{inline}")), ["B"]);
    let named =
        "def f(x):\n    grid = lambda meta: (triton.cdiv(4, meta[\"$0\"]),)\n    k[grid](x, 4)\n";
    assert_eq!(labels(&format!("{kernel}{named}")), ["B"]);
    let other = "def f(x):\n    size = lambda meta: meta[\"$0\"]\n    k[(1,)](x, 4, B=4)\n";
    assert_eq!(labels(&format!("{kernel}{other}")), [""; 0]);
}

#[test]
fn names_come_once_and_with_their_types() {
    let found = items(&format!("offs = 3\n\n{}", in_kernel("y = o$0")));
    let offs: Vec<_> = found.iter().filter(|item| item.label == "offs").collect();
    assert_eq!(offs.len(), 1, "{offs:?}");
    assert_eq!(offs[0].detail.as_deref(), Some("tile<B x int32>"));
}
