//! Which statements of host code run, and what is known where that is not known.

use crate::project::{MemorySources, kernels};
use crate::specialization::*;

const KERNEL: &str = "
import torch, triton
import triton.language as tl
@triton.jit
def k(x_ptr, n):
    tl.store(x_ptr + n, 0)
";

/// What the launches in `code` show of `n`, least first: `?` where it is not known or the launch
/// need not happen.
fn launched(code: &str) -> String {
    let mut sources = MemorySources::new(Vec::new());
    let file = sources.add("kernel.py", &format!("{KERNEL}{code}"));
    let mut found = Vec::new();
    for spec in discover(&sources, kernels(&sources, file)[0], &Flags::default()) {
        for launch in &spec.launches {
            found.push(match (launch.arg("n"), spec.args.get("n")) {
                (Some(KnownArg::Int(value)), _) => value.to_string(),
                (_, Some(ArgSpec::Constexpr(value))) if !launch.doubtful => value.to_string(),
                _ => "?".to_owned(),
            });
        }
    }
    found.sort();
    found.join(" ")
}

#[track_caller]
fn check(table: &[(&str, &str)]) {
    for (code, expected) in table {
        assert_eq!(launched(code), *expected, "{code}");
    }
}

#[test]
fn the_case_that_takes_the_subject_runs() {
    let of = |subject: &str, cases: &str| {
        let cases = cases.replace('\n', "\n    ");
        let code =
            format!("x = torch.empty(99)\nn = 2\nmatch {subject}:\n    {cases}\nk[(1,)](x, n)\n");
        launched(&code)
    };
    let sizes = "case 5:\n    n = 50\ncase 6 | 7:\n    n = 60\ncase _:\n    n = 70";
    assert_eq!(of("5", sizes), "50");
    assert_eq!(of("7", sizes), "60");
    assert_eq!(of("8", sizes), "70");
    assert_eq!(of("-8", "case -8:\n    n = 80"), "80");
    assert_eq!(of("9", "case 8:\n    n = 80"), "2");
    assert_eq!(of("(3, 4)", "case (3, b) if b > 4:\n    n = 5\ncase [a, b]:\n    n = a * b"), "12");
    assert_eq!(of("3, 4", "case a, _:\n    n = a"), "3");
    assert_eq!(of("\"a\"", "case [a]:\n    n = 5\ncase str() as s:\n    n = 6"), "?");
    // One case or the other: which is not known, nor what it leaves, but for a run where there is one GPU.
    assert_eq!(of("torch.cuda.device_count()", sizes), "70 ?");
    assert_eq!(of("[4, 5]", "case [a, *rest]:\n    n = a"), "?");
}

#[test]
fn iterations_of_unknown_number_know_what_all_of_them_do() {
    check(&[
        // A first iteration is not the only one.
        (
            "def f(x, items):\n    n = 2\n    for i in items:\n        k[(1,)](x, n)\n        n *= 2\n",
            "?",
        ),
        ("def f(x, items):\n    n = 2\n    for i in items:\n        k[(1,)](x, n)\n", "2"),
        (
            "def f(x, items):\n    n = 2\n    for i in items:\n        n = 5\n        k[(1,)](x, n)\n",
            "5",
        ),
        (
            "def f(x, items):\n    n = 2\n    for i in items:\n        n = 5\n    k[(1,)](x, n)\n",
            "?",
        ),
        ("def f(x, go):\n    n = 2\n    while go:\n        n += 3\n        k[(1,)](x, n)\n", "?"),
        // A condition that is known each time.
        ("def f(x):\n    n = 2\n    while n < 30:\n        n *= 2\n    k[(1,)](x, n)\n", "32"),
        ("def f(x):\n    n = 2\n    while n > 30:\n        n = 50\n    k[(1,)](x, n)\n", "2"),
        (
            "def f(x):\n    n = 2\n    while True:\n        n += 2\n        if n > 7: break\n    k[(1,)](x, n)\n",
            "8",
        ),
        (
            "def f(x, go):\n    n = 2\n    while True:\n        n += 2\n        if go(n): break\n    k[(1,)](x, n)\n",
            "?",
        ),
        // More iterations than are run.
        (
            "def f(x):\n    n = 2\n    while True:\n        n += 2\n        if n > 700: break\n    k[(1,)](x, n)\n",
            "?",
        ),
    ]);
}

#[test]
fn exceptions_end_what_calls() {
    let check_size = "def check(n):\n    if n > 4:\n        raise ValueError(n)\n    return n\n";
    check(&[
        (
            &format!(
                "{check_size}def f(x):\n    check(5)\n    k[(1,)](x, 5)\ndef g(x):\n    check(3)\n    k[(1,)](x, 3)\n"
            ),
            "3",
        ),
        (
            &format!(
                "{check_size}def f(x):\n    k[(1,)](x, check(5))\ndef g(x):\n    k[(1,)](x, 3)\n"
            ),
            "3",
        ),
        (
            &format!(
                "{check_size}def f(x):\n    n = 2\n    try:\n        check(5)\n        n = 3\n    except ValueError:\n        n = 7\n    k[(1,)](x, n)\n"
            ),
            "7",
        ),
        // Only one of two expressions raises.
        (
            &format!(
                "{check_size}def f(x, go):\n    n = check(5) if go else 3\n    k[(1,)](x, 8)\n"
            ),
            "8",
        ),
    ]);
}

#[test]
fn what_need_not_run_shows_nothing() {
    check(&[
        ("import zzz\nx = torch.empty(9)\nif zzz.on():\n    k[(1,)](x, 5)\n", "?"),
        ("import zzz\nx = torch.empty(9)\nif zzz.on():\n    k[(1,)](x, 5)\nk[(1,)](x, 6)\n", "6 ?"),
        (
            "import zzz\nx = torch.empty(9)\nfor n in [4, 8]:\n    if zzz.bad(n):\n        continue\n    k[(1,)](x, n)\nk[(1,)](x, 7)\n",
            "7 ?",
        ),
        ("import zzz\ndef f(x):\n    if zzz.bad():\n        return\n    k[(1,)](x, 5)\n", "?"),
        (
            "import zzz\ndef g():\n    if zzz.bad():\n        raise ValueError\ndef f(x):\n    try:\n        g()\n        k[(1,)](x, 5)\n    except ValueError:\n        pass\n",
            "?",
        ),
        ("import pytest\ndef f(x):\n    pytest.importorskip(\"zzz\")\n    k[(1,)](x, 5)\n", "?"),
        ("import pytest\ndef f(x):\n    pytest.importorskip(\"torch\")\n    k[(1,)](x, 5)\n", "5"),
        // What callers choose may be either way, and what is asserted holds.
        ("def f(x):\n    if x.is_contiguous():\n        k[(1,)](x, 5)\n", "5"),
        (
            "def f(x):\n    y = x.t()\n    if not y.is_contiguous():\n        return\n    k[(1,)](x, 5)\n",
            "5",
        ),
        ("def g(x):\n    if x.is_cuda:\n        k[(1,)](x, 5)\ndef f(x):\n    g(x)\n", "5"),
        ("import zzz\ndef f(x):\n    assert zzz.good()\n    k[(1,)](x, 5)\n", "5"),
        // So does what is guarded against by an exception that nothing takes.
        (
            "import zzz\ndef g():\n    if zzz.bad():\n        raise ValueError\ndef f(x):\n    g()\n    k[(1,)](x, 5)\n",
            "5",
        ),
    ]);
}

#[test]
fn what_is_installed_decides_between_bindings() {
    let of = |import: &str| {
        launched(&format!(
            "try:\n    {import}\n    HAS = True\nexcept ImportError:\n    HAS = False\n\
             def f(x):\n    k[(1,)](x, 5 if HAS else 6)\n"
        ))
    };
    assert_eq!(of("import zzz"), "?");
    assert_eq!(of("from zzz import a"), "?");
    assert_eq!(of("import torch"), "5");
    assert_eq!(of("from triton.tools.tensor_descriptor import TensorDescriptor"), "5");
    assert_eq!(of("import numpy as np, math"), "5");
}

#[test]
fn arguments_of_lambdas_reach_their_parameters() {
    check(&[
        (
            "f = lambda *s, n=5, **kw: (len(s), n)\nk[(1,)](torch.empty(9), f(1, 2, n=8, a=3)[1])\n",
            "8",
        ),
        ("f = lambda *s, n=5: len(s) + n\nk[(1,)](torch.empty(9), f(1, 2))\n", "7"),
        ("a = 3\nf = lambda n, b=a: n + b\na = 40\nk[(1,)](torch.empty(9), f(1))\n", "4"),
    ]);
}

#[test]
fn a_key_that_is_not_known_may_be_any() {
    check(&[
        ("def f(x, key):\n    d = {\"a\": 5}\n    d[key] = 6\n    k[(1,)](x, d[\"a\"])\n", "?"),
        ("def f(x, key):\n    d = {\"a\": 5, key: 6}\n    k[(1,)](x, d[\"a\"])\n", "?"),
        ("def f(x, key):\n    d = {\"a\": 5}\n    d.pop(key)\n    k[(1,)](x, len(d) + 4)\n", "?"),
        (
            "def f(x):\n    d = {\"a\": 5, \"b\": 6}\n    d[\"a\"] = 7\n    k[(1,)](x, list(d.values())[0])\n",
            "7",
        ),
    ]);
}

#[test]
fn starred_targets_get_what_the_others_leave() {
    check(&[
        ("*a, n = (4, 5, 6)\nk[(1,)](torch.empty(9), n)\n", "6"),
        ("n, *a = (4, 5, 6)\nk[(1,)](torch.empty(9), len(a) + n)\n", "6"),
        ("m, *a, n = (4, 6)\nk[(1,)](torch.empty(9), len(a) + n)\n", "6"),
        ("*a, n = torch.empty(3, 7, 8).shape\nk[(1,)](torch.empty(9), a[1])\n", "7"),
        ("def f(x):\n    *a, n = x.shape\n    k[(1,)](x, n)\n", "?"),
    ]);
}

#[test]
fn any_number_of_lists_is_gone_through_side_by_side() {
    check(&[
        ("for a, n, b in zip([1], [5], [2, 3]):\n    k[(1,)](torch.empty(9), n + b)\n", "7"),
        ("def f(x, y):\n    for a, n, b in zip([1], [5], y):\n        k[(1,)](x, n)\n", "?"),
    ]);
}

#[test]
fn parameters_that_a_call_leaves_out_have_their_defaults() {
    let made = "    if y is None:\n        y = torch.empty(7)\n    k[(1,)](x, y.shape[0])\n";
    let called = |head: &str, call: &str| launched(&format!("def f({head}):\n{made}{call}\n"));
    assert_eq!(called("x, y=None", "f(torch.empty(9))"), "7");
    assert_eq!(called("x, y: torch.Tensor = None", "f(torch.empty(9))"), "7");
    assert_eq!(called("x, y: torch.Tensor = None", "f(torch.empty(9), torch.empty(8))"), "8");
    // Of what callers pass, an annotation says more than a default.
    assert_eq!(called("x, y: torch.Tensor = None", ""), "?");
}

#[test]
fn views_have_the_sizes_of_what_they_show() {
    let sized = |made: &str, size: &str| {
        launched(&format!("x = torch.empty(9)\ny = {made}\nk[(1,)](x, {size})\n"))
    };
    let ids = "torch.tensor([4, 5, 6])";
    assert_eq!(sized("torch.empty(3, 8).view(torch.uint8)", "y.shape[1]"), "32");
    assert_eq!(sized("torch.empty(3, 8, dtype=torch.int8).view(torch.int32)", "y.numel()"), "6");
    assert_eq!(sized("torch.empty(3, 8).t().view(torch.uint8)", "y.shape[1]"), "?");
    assert_eq!(sized("torch.arange(8).expand_as(torch.empty(3, 8))", "y.shape[0]"), "3");
    assert_eq!(sized("torch.arange(8).expand_as(torch.empty(3, 8))", "y.stride(0)"), "0");
    assert_eq!(sized(&format!("torch.cumsum({ids}, dim=0)"), "y.shape[0]"), "3");
    assert_eq!(sized(&format!("({ids}[1:] - {ids}[:-1]).cumsum(0)"), "y.shape[0]"), "2");
    assert_eq!(sized("torch.arange(8).expand(3, 8)[:, 0].clone()", "y.stride(0)"), "1");
    assert_eq!(sized("torch.nn.functional.pad(torch.empty(3, 8), (1, 2))", "y.shape[1]"), "11");
    assert_eq!(
        sized("torch.nn.functional.pad(torch.empty(3, 8), (1, 2, 4, 0))", "y.shape[0]"),
        "7"
    );
    assert_eq!(sized("torch.nn.functional.pad(torch.empty(3, 8), zzz)", "y.shape[1]"), "?");
}

#[test]
fn whether_elements_follow_each_other_is_known_of_known_layouts() {
    let of = |made: &str| {
        launched(&format!(
            "x = torch.empty(9)\nn = 5 if {made}.is_contiguous() else 6\nk[(1,)](x, n)\n"
        ))
    };
    assert_eq!(of("torch.empty(3, 8)"), "5");
    assert_eq!(of("torch.empty(3, 8).t()"), "6");
    assert_eq!(of("torch.empty(1, 8).t()"), "5");
    assert_eq!(of("zzz()"), "?");
}
