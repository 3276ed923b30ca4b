//! Whatever the text says, evaluation ends soon and without a panic.

use std::time::{Duration, Instant};

use tile_compiler::builtins::TritonVersion;
use tile_compiler::diagnostic::Code;
use tile_compiler::eval::{STACK_BYTES, infer_file, lower_kernel};
use tile_compiler::project::{self, MemorySources};
use tile_compiler::source::FileId;
use tile_compiler::specialization::{Flags, discover};

const PRELUDE: &str = "import triton\nimport triton.language as tl\n";

fn evaluate(text: &str) -> Vec<Code> {
    let mut sources = MemorySources::new(Vec::new());
    let file = sources.add("kernel.py", &format!("{PRELUDE}{text}"));
    let start = Instant::now();
    let codes = codes(&sources, file);
    assert!(start.elapsed() < Duration::from_secs(30), "too slow: {:?}", start.elapsed());
    codes
}

fn codes(sources: &MemorySources, file: FileId) -> Vec<Code> {
    let mut codes = Vec::new();
    let version = TritonVersion::V3_9;
    for kernel in infer_file(sources, file, version).kernels {
        codes.extend(kernel.diagnostics.iter().map(|diagnostic| diagnostic.code));
    }
    for at in project::jit_functions(sources, file) {
        let Some(item) = project::item(sources, at) else { continue };
        let Some(spec) = discover(sources, at, &Flags::default()).into_iter().next() else {
            continue;
        };
        let result = lower_kernel(sources, file, &item.name, &spec, version);
        codes.extend(result.diagnostics.iter().map(|diagnostic| diagnostic.code));
        let is_broken = project::is_broken(sources, at);
        assert!(result.function.is_some() || !result.diagnostics.is_empty() || is_broken);
    }
    codes
}

#[test]
fn endless_recursion_is_reported() {
    let codes = evaluate(
        "@triton.jit\ndef f(x):\n    return f(x)\n\n@triton.jit\ndef kernel(p):\n    tl.store(p, f(1.0))\n",
    );
    assert!(codes.contains(&Code::Recursion), "{codes:?}");
}

#[test]
fn mutual_recursion_ends() {
    evaluate(
        "@triton.jit\ndef f(x, n):\n    return g(x + x, n) + g(x, n)\n\n@triton.jit\ndef g(x, n):\n    return f(x, n) + f(x * 2, n)\n\n@triton.jit\ndef kernel(p, n):\n    tl.store(p, f(1.0, n))\n",
    );
}

#[test]
fn growing_recursion_ends() {
    evaluate(
        "@triton.jit\ndef f(x, n: tl.constexpr):\n    return f(x, n + 1) + f(x, n + 2)\n\n@triton.jit\ndef kernel(p):\n    tl.store(p, f(1.0, 0))\n",
    );
}

#[test]
fn deep_nesting_ends() {
    let expression = format!("{}1{}", "(1 + ".repeat(400), ")".repeat(400));
    evaluate(&format!("@triton.jit\ndef kernel(p):\n    tl.store(p, {expression})\n"));
    let sum = vec!["x"; 2000].join(" + ");
    evaluate(&format!("@triton.jit\ndef kernel(p):\n    x = tl.load(p)\n    tl.store(p, {sum})\n"));
    let mut nested = String::from("@triton.jit\ndef kernel(p, n):\n");
    for depth in 0..60 {
        nested.push_str(&format!("{}if n > {depth}:\n", "    ".repeat(depth + 1)));
    }
    nested.push_str(&format!("{}tl.store(p, 1.0)\n", "    ".repeat(61)));
    evaluate(&nested);
}

#[test]
fn blocks_nested_through_calls_fit_the_stack() {
    let mut text = String::new();
    for function in 0..60 {
        text.push_str(&format!("@triton.jit\ndef f{function}(x, n):\n"));
        for depth in 1..120 {
            text.push_str(&format!("{}if n > {depth}:\n", "    ".repeat(depth)));
        }
        let inner = match function {
            0 => "x + 1.0".to_owned(),
            other => format!("f{}(x, n)", other - 1),
        };
        text.push_str(&format!("{}x = {inner}\n    return x\n\n", "    ".repeat(120)));
    }
    text.push_str("@triton.jit\ndef kernel(p, n):\n    tl.store(p, f59(tl.load(p), n))\n");
    let mut sources = MemorySources::new(Vec::new());
    let file = sources.add("kernel.py", &format!("{PRELUDE}{text}"));
    let lowered = move || {
        let at = project::kernels(&sources, file)[0];
        let spec = discover(&sources, at, &Flags::default()).remove(0);
        let result = lower_kernel(&sources, file, "kernel", &spec, TritonVersion::V3_9);
        result.diagnostics.iter().map(|diagnostic| diagnostic.code).collect::<Vec<_>>()
    };
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(lowered);
    let codes = thread.expect("a thread").join().expect("it ends");
    assert!(codes.is_empty() || codes.contains(&Code::TooMuchCode), "{codes:?}");
}

#[test]
fn huge_unrolling_is_refused() {
    let codes = evaluate(
        "@triton.jit\ndef kernel(p):\n    for i in tl.static_range(1_000_000_000):\n        tl.store(p + i, 1.0)\n",
    );
    assert!(codes.contains(&Code::TooMuchCode), "{codes:?}");
    evaluate(
        "@triton.jit\ndef kernel(p):\n    for i in tl.static_range(4000):\n        for j in tl.static_range(4000):\n            tl.store(p + i + j, 1.0)\n",
    );
}

#[test]
fn many_early_returns_end() {
    let mut text = String::from("@triton.jit\ndef kernel(p, n):\n    x = tl.load(p)\n");
    for at in 0..14 {
        text.push_str(&format!(
            "    if n > {at}:\n        if n > {at} * 2:\n            return\n        x += {at}\n"
        ));
    }
    text.push_str("    tl.store(p, x)\n");
    evaluate(&text);
}

#[test]
fn branches_that_make_other_kinds_of_values_are_reported() {
    for made in ["(n,)", "None", "n", "tl.arange(0, 4)"] {
        let codes = evaluate(&format!(
            "@triton.jit\ndef kernel(p, n: tl.int32):\n    x = (n, n)\n    if n > 2:\n        x = {made}\n    tl.store(p, x[0])\n"
        ));
        assert!(codes.contains(&Code::BranchMismatch), "{made}: {codes:?}");
    }
}

#[test]
fn odd_constants_do_not_overflow() {
    evaluate(
        "@triton.jit\ndef kernel(p, N: tl.constexpr = 9):\n    a: tl.constexpr = 2 ** 200\n    b: tl.constexpr = 1 << 126\n    c: tl.constexpr = -(2 ** 126) // -1\n    d: tl.constexpr = 5 % 0\n    e: tl.constexpr = (2 ** 126) * (2 ** 126)\n    f = tl.full((4,), 2 ** 63, tl.int32)\n    g = tl.arange(0, 2 ** 40)\n    h = tl.zeros((2 ** 40, 2 ** 40, 2 ** 40, 2 ** 40), tl.int8)\n    i: tl.constexpr = (1, 2, 3)[::0]\n    j: tl.constexpr = (N ** N) ** (N * N * N)\n    tl.store(p, 0)\n",
    );
}

#[test]
fn broken_text_is_evaluated_as_far_as_it_goes() {
    evaluate("@triton.jit\ndef kernel(p, :\n    x = tl.load(p +\n    tl.store(p, x[\n");
    evaluate(
        "@triton.jit\ndef kernel(*args, **kwargs):\n    a, (b, *c) = args\n    del a\n    return lambda: (yield)\n",
    );
    evaluate(
        "@triton.jit\ndef kernel(p):\n    tl.load()\n    tl.store(1, 2, 3, 4, 5, 6, 7, 8)\n    tl.dot(p)\n    tl.reduce(p, 0, 0)\n    p.x.y.z()\n    tl.sum.sum(tl)\n    kernel\n    kernel()\n",
    );
}

#[test]
fn what_does_not_parse_lowers_to_nothing() {
    let bodies = [
        "    if n > 4:\n        p += n * \n    tl.store(p, 1)\n",
        "    for i in range(n):\n        p = p + i + \n    tl.store(p, 1)\n",
        "    q = p\n    while n > 0:\n        n -= \n    tl.store(q, n)\n",
        "    tl.store(p, n + )\n",
        "    tl.store(p, helper(n))\n\n@triton.jit\ndef helper(x):\n    return x * \n",
    ];
    for body in bodies {
        let mut sources = MemorySources::new(Vec::new());
        let text = format!("{PRELUDE}@triton.jit\ndef kernel(p, n):\n{body}");
        let file = sources.add("kernel.py", &text);
        let at = project::jit_functions(&sources, file)[0];
        let spec = discover(&sources, at, &Flags::default()).remove(0);
        let result = lower_kernel(&sources, file, "kernel", &spec, TritonVersion::default());
        assert!(result.function.is_none(), "{text}");
        assert!(result.diagnostics.is_empty(), "{:?}", result.diagnostics);
    }
}

#[test]
fn values_that_grow_without_end_are_given_up() {
    let bodies = [
        "    x = [1]\n    while True:\n        x = x + x\n",
        "    x = [1]\n    while True:\n        x.extend(x)\n",
        "    x = 'ab'\n    while True:\n        x += x\n",
        "    x = []\n    for i in range(60000):\n        x = [x]\n    return len(str(x))\n",
        "    x = [1]\n    for i in range(50):\n        x = [x, x]\n    return len(str(x))\n",
        "    x = [1]\n    x.append(x)\n    return len(str(x))\n",
        "    x = list(range(50000))\n    t = 0\n    for i in range(50000):\n        t += len(x[:])\n    return t\n",
        "    x = 'a' * 60000\n    return len(x.replace('a', x))\n",
    ];
    for body in bodies {
        let codes = evaluate(&format!(
            "@triton.constexpr_function\ndef f(n):\n{body}\n@triton.jit\ndef kernel(p, N: tl.constexpr):\n    a: tl.constexpr = f(N)\n    tl.store(p, 1)\n"
        ));
        assert!(codes.is_empty(), "{body}{codes:?}");
    }
}
