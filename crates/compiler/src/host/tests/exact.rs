//! What Python computes of values that are wholly known: when files are imported, in defaults,
//! configurations and launches.

use expect_test::expect;

use crate::project::{MemorySources, kernels};
use crate::specialization::tests::{ADD, check};
use crate::specialization::*;

/// The values of `BLOCK` that launches with `BLOCK=value` after the statements `setup` of the module
/// show, each with a question mark where it is assumed.
fn blocks(setup: &str, value: &str) -> String {
    let text = format!(
        "{ADD}import functools, itertools, math, os\n{setup}\n\
         def run(x, n):\n    add[(1,)](x, x, x, n, BLOCK={value})\n"
    );
    blocks_of(&[("kernel.py", &text)])
}

/// As [`blocks`], of the kernels in the last of several files.
fn blocks_of(files: &[(&str, &str)]) -> String {
    let mut sources = MemorySources::new(Vec::new());
    let mut last = None;
    for (path, text) in files {
        last = Some(sources.add(path, text));
    }
    let file = last.expect("a file");
    let block = |spec: Specialization| {
        let value = spec.args.get("BLOCK").map(ToString::to_string).unwrap_or_default();
        format!("{value}{}", if spec.assumed.iter().any(|it| &**it == "BLOCK") { "?" } else { "" })
    };
    let found = kernels(&sources, file).into_iter();
    let found = found.flat_map(|at| discover(&sources, at, &Flags::default()));
    found.map(block).collect::<Vec<_>>().join(" ")
}

#[test]
fn variables_of_modules_hold_what_importing_leaves() {
    let cases = [
        // Dictionaries, lists and sets that comprehensions and loops make.
        ("S = {str(w): 1 << (6 + i) for i, w in enumerate(('a', 'b', 'c'))}", "S['b']", "128"),
        ("S = {}\nfor i, w in enumerate('abc'):\n    S[w] = 32 << i", "S['c']", "128"),
        ("S = {}\nfor w in 'ab':\n    S.setdefault(w, []).append(64)", "S['a'][0]", "64"),
        ("S = []\nfor i in range(4):\n    S += [16 << i]", "S[-1]", "128"),
        ("S = [16]\nS.append(S[0] * 4)", "S[1]", "64"),
        ("S = dict(zip('abc', (16, 32, 64)))", "S['b']", "32"),
        ("S = dict(a=16) | dict(b=64)", "S['b']", "64"),
        ("S = {**{'a': 16}, 'b': 32}", "S['b']", "32"),
        ("A, (B, *C) = 16, (32, 64, 128)", "C[1]", "128"),
        ("A = B = 64", "B", "64"),
        ("A = 16\nA *= 8", "A", "128"),
        ("for A in (16, 32, 64):\n    pass", "A", "64"),
        ("A = 1\nwhile A < 100:\n    A *= 2", "A", "128"),
        ("if (A := 64) > 32:\n    B = A // 2", "B", "32"),
        ("try:\n    A = int('x')\nexcept ValueError:\n    A = 64", "A", "64"),
        // Texts.
        ("T = '-'.join(['16', '128'])", "int(T.split('-')[1])", "128"),
        ("T = f'{64:08b}'", "int(T, 2)", "64"),
        ("T = 'BLOCK_64'", "int(T[6:])", "64"),
        ("T = 'x=%d' % 128", "int(T.removeprefix('x='))", "128"),
        ("T = 'a64'.replace('a', '')", "int(T)", "64"),
        // Functions.
        (
            "def pick(kind):\n    return {'small': 32, 'large': 256}[kind]\nA = pick('large')",
            "A",
            "256",
        ),
        ("@functools.cache\ndef size(k):\n    return k * 2\nA = size(64)", "A", "128"),
        (
            "def outer(k):\n    def inner(n):\n        return k * n\n    return inner\nf = outer(8)",
            "f(16)",
            "128",
        ),
        ("sizes = sorted((256, 64, 128), reverse=True)", "sizes[0]", "256"),
        ("sizes = sorted(['bb', 'a'], key=len)", "64 * len(sizes[0])", "64"),
        ("sizes = sorted([3, 5, 4], key=lambda k: -k)", "sizes[0] * 16", "80"),
        ("A = max([64, 32], key=lambda k: -k)", "A", "32"),
        ("A = functools.reduce(lambda a, b: a * b, [2, 4, 8])", "A", "64"),
        ("A = list(itertools.chain([16], [32]))", "A[1]", "32"),
        ("A = sum(1 << i for i in range(6)) + 1", "A", "64"),
        ("A = list(map(int, '16 32'.split()))", "A[1]", "32"),
        ("A = round(63.7)", "A", "64"),
        ("A = divmod(130, 2)[0] - 1", "A", "64"),
        ("A = pow(2, 7)", "A", "128"),
        ("A = math.prod((4, 8))", "A", "32"),
        ("A = isinstance(64, int) and 64", "A", "64"),
        ("A = [16, 32, 64, 128][::-1]", "A[0]", "128"),
        ("A = [16, 32, 64, 128][1::2]", "A[1]", "128"),
        ("A = (100).bit_length()", "1 << A", "128"),
        // Classes.
        ("class Sizes:\n    SMALL = 16\n    LARGE = SMALL * 8", "Sizes.LARGE", "128"),
        (
            "from collections import namedtuple\nN = namedtuple('N', 'a b')\nS = N(16, b=32)",
            "S.b",
            "32",
        ),
        ("W = triton.language.constexpr(64)", "W", "64"),
        // What is not set in the environment has the default.
        ("A = int(os.environ.get('BLOCK', '128'))", "A", "128"),
        ("A = int(os.getenv('BLOCK', 64))", "A", "64"),
    ];
    let mut others = String::new();
    for (setup, value, expected) in cases {
        let found = blocks(setup, value);
        if found != expected {
            others.push_str(&format!("{setup}\n{value}: {found} instead of {expected}\n"));
        }
    }
    assert!(others.is_empty(), "{others}");
}

#[test]
fn what_nothing_shows_is_assumed() {
    let cases = [
        ("A = int(os.environ['BLOCK'])", "A"),
        ("import config\nA = config.BLOCK", "A"),
        ("A = len(open('x').read())", "A"),
        ("import random\nA = random.choice([16, 32])", "A"),
        ("import torch\nA = torch.cuda.device_count() * 64", "A"),
        ("S = {}\ndef note(k):\n    S['a'] = k", "S['a']"),
        ("S = [64]\ndef note(k):\n    S.append(k)", "S[0]"),
        ("A = 64\ndef change():\n    global A\n    A = 32", "A"),
        ("S = [64]\nS.append(unknown())", "S[1]"),
        ("S = {}\nfor w in unknown():\n    S[w] = 64", "S['a']"),
        ("A = 64\nfor w in unknown():\n    A = 32", "A"),
        ("A = 1\nwhile unknown():\n    A *= 2", "A"),
        ("A = {64, 32}", "max(A, unknown())"),
    ];
    let mut known = String::new();
    for (setup, value) in cases {
        let found = blocks(setup, value);
        if !found.ends_with('?') {
            known.push_str(&format!("{setup}\n{value}: {found}\n"));
        }
    }
    assert!(known.is_empty(), "{known}");
}

#[test]
fn values_come_from_other_files() {
    let sizes = "S = {}\nfor i, w in enumerate('abc'):\n    S[w] = 32 << i\nA, B = 16, 64\n\
                 def pick(w):\n    return S[w] * 2\n";
    let launch = |head: &str, value: &str| {
        let host = format!("{head}{ADD}def run(x):\n    add[(1,)](x, x, x, 5, BLOCK={value})\n");
        blocks_of(&[("sizes.py", sizes), ("kernel.py", &host)])
    };
    assert_eq!(launch("from sizes import S\n", "S['b']"), "64");
    assert_eq!(launch("from sizes import S as T\n", "T['c']"), "128");
    assert_eq!(launch("import sizes\n", "sizes.S['a']"), "32");
    assert_eq!(launch("import sizes\n", "sizes.B"), "64");
    assert_eq!(launch("from sizes import *\n", "B"), "64");
    assert_eq!(launch("from sizes import pick\n", "pick('b')"), "128");
    assert_eq!(
        launch("from sizes import S\nT = {k: v * 2 for k, v in S.items()}\n", "T['a']"),
        "64"
    );
}

#[test]
fn configurations_are_made_by_any_code() {
    let tuned = |configs: &str| {
        let kernel = ADD.replace(
            "@triton.jit",
            &format!("{configs}\n@triton.autotune(configs, key=['n'])\n@triton.jit"),
        );
        blocks_of(&[("kernel.py", &kernel)])
    };
    let config = "triton.Config({'BLOCK': b}, num_warps=w)";
    let cases = [
        format!("configs = [{config} for b in (64, 128) for w in (4, 8) if b * w != 512]"),
        format!("configs = [{config} for b, w in {{64: 4, 128: 8, 256: 4}}.items() if b < 256]"),
        format!("configs = []\nfor b, w in zip((64, 128), (4, 8)):\n    configs.append({config})"),
        format!(
            "def made(limit):\n    found = []\n    for b in sorted([128, 64]):\n        \
             for w in (4, 8):\n            if b * w in (256, limit):\n                \
             found.append({config})\n    return found\nconfigs = made(limit=1024)"
        ),
        format!("configs = list(map(lambda b: {config}, (64, 128)))").replace("=w", "=4"),
        format!(
            "import itertools\nconfigs = [{config} for b, w in itertools.product([64, 128], [4])]"
        ),
        format!("configs = [{config} for b, w in ((int(t[1:]), 4) for t in 'b64 b128'.split())]"),
        "spec = '64:4,128:8'\nconfigs = [triton.Config({'BLOCK': int(b)}, num_warps=int(w)) \
         for b, w in [s.split(':') for s in spec.split(',')]]"
            .to_owned(),
    ];
    for configs in cases {
        assert_eq!(tuned(&configs), "64 128", "{configs}");
    }
    // A launch may choose another module's.
    let others = format!(
        "import triton\nconfigs = []\nfor b, w in ((64, 4), (128, 8)):\n    configs.append({config})\n"
    );
    let kernel = ADD.replace(
        "@triton.jit",
        "from tuned import configs\n@triton.autotune(configs, key=['n'])\n@triton.jit",
    );
    assert_eq!(blocks_of(&[("tuned.py", &others), ("kernel.py", &kernel)]), "64 128");
}

#[test]
fn defaults_heuristics_and_grids_are_computed() {
    check(
        r#"
import torch, triton
import triton.language as tl
SIZES = {str(w): 1 << (6 + i) for i, w in enumerate(("small", "mid", "large"))}
TAG = ",".join(f"{k}:{v}" for k, v in SIZES.items())
DTYPES = {name: getattr(tl, name) for name in ("float16", "float32")}
@triton.heuristics({"WARPS": lambda args: {128: 4, 256: 8}[args["BLOCK"]], "NAME": lambda a: f"b{a['BLOCK']:04d}"})
@triton.jit
def k(x, n, BLOCK: tl.constexpr, WARPS: tl.constexpr, NAME: tl.constexpr, TAG_: tl.constexpr = TAG,
      SIZE: tl.constexpr = SIZES["large"], LAST: tl.constexpr = TAG[-3:]):
    tl.store(x + tl.arange(0, BLOCK), n)
def run():
    x = torch.empty(SIZES["large"] * 2, device="cuda")
    grid = lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]), SIZES["small"])
    k[grid](x, len(TAG), BLOCK=SIZES["mid"])
"#,
        expect![[r#"
            k (launch): x=*fp32:16 n=i32 BLOCK=128 WARPS=4 NAME="b0128" TAG_="small:64,mid:128,large:256" SIZE=256 LAST="256" num_warps=4 num_stages=3
        "#]],
    );
}
