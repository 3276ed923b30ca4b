//! What `tile check` remembers of earlier runs.

use serde_json::Value;

use super::{ADD, Done, Folder};

/// What a file of the workspace below may hold; `None` where it is not there.
const VARIANTS: &[(&str, &[Option<&str>])] = &[
    (
        "pkg/kernels.py",
        &[
            Some(
                "import triton\nimport triton.language as tl\nfrom .helpers import place\n\n\
                 @triton.jit\ndef fill(x_ptr, n, BLOCK: tl.constexpr):\n    at = place(BLOCK)\n    \
                 tl.store(x_ptr + at, 1.0)\n",
            ),
            Some(
                "import triton\nimport triton.language as tl\nfrom .helpers import place\n\n\
                 @triton.jit\ndef fill(x_ptr, n, BLOCK: tl.constexpr):\n    at = place(BLOCK)\n    \
                 tl.store(x_ptr + at, 1.0, mask=at < n)\n",
            ),
            Some("import triton\n\n@triton.jit\ndef fill(x_ptr, n, BLOCK):\n    missing()\n"),
        ],
    ),
    (
        "pkg/helpers.py",
        &[
            Some(
                "import triton\nimport triton.language as tl\n\n@triton.jit\ndef place(BLOCK: \
                 tl.constexpr):\n    return tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n",
            ),
            Some(
                "import triton\nimport triton.language as tl\nfrom .more import place\n\n\
                 @triton.jit\ndef other(BLOCK):\n    return wrong\n",
            ),
            None,
        ],
    ),
    (
        "pkg/more.py",
        &[
            None,
            Some(
                "import triton\nimport triton.language as tl\n\n@triton.jit\ndef place(BLOCK: \
                 tl.constexpr):\n    return tl.arange(0, BLOCK + 1)\n",
            ),
        ],
    ),
    (
        "host.py",
        &[
            Some(
                "import torch\nfrom pkg.kernels import fill\nfrom sizes import BLOCK\n\n\
                 def run():\n    x = torch.empty(128, device='cuda')\n    \
                 fill[(4,)](x, 128, BLOCK=BLOCK)\n",
            ),
            Some(
                "import torch\nfrom pkg.kernels import fill\n\ndef run():\n    \
                 x = torch.empty(100, device='cuda')\n    fill[(4,)](x, 100, BLOCK=32)\n",
            ),
            Some("from pkg.kernels import fill\n\ndef run(x):\n    fill(x, 1, 2)\n"),
            None,
        ],
    ),
    ("sizes.py", &[Some("BLOCK = 32\n"), Some("BLOCK = 48\n"), None]),
    ("pkg/__init__.py", &[Some(""), None]),
    ("tile.toml", &[None, Some("[lints]\nbounds = \"off\"\n")]),
];

/// All that was found, without how long that took.
fn findings(done: &Done) -> (Option<i32>, Vec<Value>) {
    let mut lines = done.json();
    if let Some(summary) = lines.last_mut().and_then(|line| line["summary"].as_object_mut()) {
        summary.remove("ms");
    }
    (done.code, lines)
}

#[test]
fn what_is_remembered_is_what_a_fresh_run_finds() {
    let folder = Folder::new(&[("add.py", ADD)]);
    let put = |name: &str, text: Option<&str>| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        match text {
            Some(text) => std::fs::write(path, text).unwrap(),
            None => drop(std::fs::remove_file(path)),
        }
    };
    for (name, variants) in VARIANTS {
        put(name, variants[0]);
    }
    let mut seen = std::collections::HashSet::new();
    let mut random: u64 = 2;
    let mut draw = |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) as usize % below
    };
    for step in 0..60 {
        let remembered = findings(&folder.run("check . --format json"));
        let fresh = findings(&folder.run("check . --format json --no-cache"));
        assert_eq!(remembered, fresh, "after {step} edits");
        seen.insert(format!("{:?}", fresh.1));
        let (name, variants) = VARIANTS[draw(VARIANTS.len())];
        put(name, variants[draw(variants.len())]);
    }
    assert!(seen.len() > 5, "the edits change what is found: {seen:#?}");
}

#[test]
fn files_that_read_as_they_did_are_not_checked_again() {
    let wrong = ADD.replace("+ 1.0", "+ missing");
    let folder = Folder::new(&[("add.py", ADD), ("wrong.py", &wrong)]);
    let first = folder.run("check . --format json");
    let place = folder.path().join(".cache/checks");
    let memory = std::fs::read_dir(place).unwrap().next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(&memory).unwrap();
    assert!(text.contains("`missing`"), "{text}");
    std::fs::write(&memory, text.replace("`missing`", "`remembered`")).unwrap();
    let mentions = |done: &Done, word: &str| done.stdout.contains(word);
    assert!(mentions(&first, "`missing`"), "{}", first.stdout);
    assert!(mentions(&folder.run("check . --format json"), "`remembered`"));
    assert!(mentions(&folder.run("check . --format json --no-cache"), "`missing`"));
    // Another question, and what is damaged, is answered by looking.
    assert!(mentions(&folder.run("check . --format json --arch sm_80"), "`missing`"));
    std::fs::write(&memory, "{").unwrap();
    assert!(mentions(&folder.run("check . --format json"), "`missing`"));
}
