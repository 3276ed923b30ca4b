//! Runs of kernels that have no scenario: as host code launches them, or with arguments that are chosen.

use expect_test::expect;

use super::Folder;

const HOST: &str = "\
import torch
import triton
import triton.language as tl

@triton.jit
def gather(x_ptr, at_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    at = tl.load(at_ptr + offsets, mask=mask, other=0)
    tl.store(out_ptr + offsets, tl.load(x_ptr + at, mask=mask, other=0.0), mask=mask)

def run():
    x = torch.arange(100, device='cuda', dtype=torch.float32)
    at = INDICES
    out = torch.empty(100, device='cuda')
    gather[(triton.cdiv(at.numel(), 32),)](x, at, out, at.numel(), BLOCK=32)
";

fn folder(indices: &str) -> Folder {
    Folder::new(&[("gather.py", &HOST.replace("INDICES", indices))])
}

#[test]
fn a_kernel_runs_as_host_code_launches_it() {
    let permuted = folder("torch.randperm(100, device='cuda')");
    permuted.run("run gather.py --device cpu --sanitize").expect(expect![[r#"
        exit 0
        out: gather on cpu: ok, N ms
        out:   out_ptr: fp32[100] min 0.000000 max 99.000000 mean 49.500000 nan 0
        err: note: as launched at gather.py:16: gather[(4,)](x_ptr=arange(0, 100, 1, dtype=float32), at_ptr=arange(0, 100, dtype=int64), out_ptr=empty(100, dtype=float32), n=100, BLOCK=32)
    "#]]);
    let timed = permuted.run("bench gather.py::gather --device cpu --format json");
    assert_eq!(timed.stdout.lines().count(), 1, "{}{}", timed.stdout, timed.stderr);
}

#[test]
fn what_host_code_does_wrong_is_found_in_its_run() {
    let beyond = folder("torch.randint(0, 200, (100,), device='cuda')");
    beyond.run("run gather.py --device cpu --sanitize").expect(expect![[r#"
        exit 1
        out: gather on cpu: FAILED, N ms
        out:   line 10: load from element 168 of `x_ptr`, which has 100 elements
        out:   out_ptr: fp32[100] min 0.000000 max 98.000000 mean 20.420000 nan 0
        err: note: as launched at gather.py:16: gather[(4,)](x_ptr=arange(0, 100, 1, dtype=float32), at_ptr=randint(0, 200, 100, dtype=int64, seed=2), out_ptr=empty(100, dtype=float32), n=100, BLOCK=32)
    "#]]);
}

#[test]
fn nothing_is_checked_with_integers_that_were_made_up() {
    let unknown = folder("torch.nonzero(x.digamma())[:, 0]");
    unknown.run("run gather.py --device cpu").expect(expect![[r#"
        exit 2
        err: note: the launch of gather at gather.py:16 cannot be repeated: `at_ptr` is not known
        err: error: gather.py has no scenarios, nor a launch in host code that is known in full; give every argument with --arg NAME=EXPR and the grid with --grid EXPR, or write `# tile:` lines below the kernel
    "#]]);
    let sorted = folder("(x.digamma() * 3).to(torch.int64)");
    sorted.run("run gather.py --device cpu --sanitize").expect(expect![[r#"
        exit 2
        err: note: the launch of gather at gather.py:16 cannot be repeated: what `at_ptr` holds is not known
        err: error: gather.py has no scenarios, nor a launch in host code that is known in full; give every argument with --arg NAME=EXPR and the grid with --grid EXPR, or write `# tile:` lines below the kernel
    "#]]);
    sorted.run("run gather.py --device cpu").expect(expect![[r#"
        exit 0
        out: gather on cpu: ok, N ms
        out:   out_ptr: fp32[100] min 0.000000 max 0.000000 mean 0.000000 nan 0
        err: note: as launched at gather.py:16: gather[(4,)](x_ptr=arange(0, 100, 1, dtype=float32), at_ptr=zeros(100, dtype=int64), out_ptr=empty(100, dtype=float32), n=100, BLOCK=32)
    "#]]);
}

#[test]
fn scenarios_and_flags_come_before_launches_in_host_code() {
    let permuted = "torch.randperm(100, device='cuda')";
    let scenario = "\n# tile: out = empty(8)\n\
                    # tile: gather[(1,)](ones(8), zeros(8, dtype=int32), out, 8, BLOCK=8)\n";
    let text = HOST.replace("INDICES", permuted) + scenario;
    Folder::new(&[("gather.py", &text)]).run("run gather.py --device cpu").expect(expect![[r#"
        exit 0
        out: gather on cpu: ok, N ms
        out:   out: fp32[8] min 1.000000 max 1.000000 mean 1.000000 nan 0
    "#]]);
    let without = folder(permuted);
    without.run("run gather.py --device cpu --set BLOCK=64").expect(expect![[r#"
        exit 2
        err: note: launches in host code are for their own values and types, so with --set and --type none of them is run
        err: error: gather.py has no scenarios, nor a launch in host code that is known in full; give every argument with --arg NAME=EXPR and the grid with --grid EXPR, or write `# tile:` lines below the kernel
    "#]]);
    without.run("run gather.py::gather#2 --device cpu").expect(expect![[r#"
        exit 2
        err: error: gather has no scenario #2; it has 0
    "#]]);
}

const TUNED: &str = "\
import torch
import triton
import triton.language as tl

@triton.autotune(
    configs=[triton.Config({'BLOCK': 64}), triton.Config({'BLOCK': 32}, num_warps=2)], key=['n']
)
@triton.jit
def scale(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, 2 * tl.load(x_ptr + at, mask=at < n), mask=at < n)

def run():
    x = torch.ones(SIZE, device='cuda')
    grid = lambda meta: (triton.cdiv(100, meta['BLOCK']),)
    scale[grid](x, torch.empty_like(x), 100)
";

#[test]
fn configurations_are_timed_as_host_code_launches_them() {
    let folder = Folder::new(&[
        ("scale.py", &TUNED.replace("SIZE", "100")),
        ("open.py", &TUNED.replace("SIZE", "int(input())")),
    ]);
    let done = folder.run("tune scale.py --device cpu --format json");
    assert_eq!(done.code, Some(0), "{}{}", done.stdout, done.stderr);
    assert_eq!(done.stderr, "note: as launched at scale.py:16\n");
    let mut values: Vec<String> = done.json().iter().map(|row| row["values"].to_string()).collect();
    values.sort();
    assert_eq!(values, [r#"{"BLOCK":"32","num_warps":"2"}"#, r#"{"BLOCK":"64"}"#]);
    folder.run("tune open.py --device cpu").expect(expect![[r#"
        exit 2
        err: error: the launch of scale at open.py:16 cannot be repeated: `x_ptr` is not known
    "#]]);
}

/// Tiles with strides that nothing gives.
const SCALED: &str = "\
import triton
import triton.language as tl

@triton.jit
def scaled(x_ptr, y_ptr, z_ptr, xm, xn, ym, yn, zb, zm, BM: tl.constexpr, BN: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.arange(0, BN)
    x = tl.load(x_ptr + m[:, None] * xm + n[None, :] * xn)
    tl.store(y_ptr + m[:, None] * ym + (n * yn)[None, :], 2 * x)
    tl.store(z_ptr + tl.program_id(1) * zb + m[:, None] * zm + n[None, :], 3 * x)
";

#[test]
fn strides_that_are_chosen_keep_elements_apart() {
    let folder = Folder::new(&[("scaled.py", SCALED)]);
    let chosen = "run scaled.py --device cpu --arg auto --sanitize --set BM=16 --set BN=32";
    folder.run(chosen).expect(expect![[r#"
        exit 0
        out: scaled on cpu: ok, N ms
        out:   y_ptr: fp32[15032] min 0.000141 max 1.959778 mean 0.512675 nan 0
        out:   z_ptr: fp32[15032] min 0.000105 max 2.939667 mean 0.530277 nan 0
        err: note: --arg auto chose scaled[(1,)](x_ptr=rand(46001, dtype=fp32, seed=0), y_ptr=rand(15032, dtype=fp32, seed=1), z_ptr=rand(15032, dtype=fp32, seed=2), xm=1000, xn=1000, ym=1000, yn=1, zb=1000, zm=1000, BM=16, BN=32)
    "#]]);
}

#[test]
fn pointers_that_a_helper_makes_are_not_made_up() {
    let text = HOST.replace("INDICES", "(x.digamma() * 3).to(torch.int64)").replace(
        "@triton.jit\ndef gather",
        "@triton.jit\ndef at_address(at):\n    return tl.load(at.to(tl.pointer_type(tl.float32)))\n\n\
         @triton.jit\ndef gather",
    );
    let text = text.replace("tl.load(x_ptr + at, mask=mask, other=0.0)", "at_address(at)");
    let addresses = Folder::new(&[("gather.py", &text)]);
    addresses.run("run gather.py --device cpu").expect(expect![[r#"
        exit 2
        err: note: the launch of gather at gather.py:20 cannot be repeated: what `at_ptr` holds is not known
        err: error: gather.py has no scenarios, nor a launch in host code that is known in full; give every argument with --arg NAME=EXPR and the grid with --grid EXPR, or write `# tile:` lines below the kernel
    "#]]);
}

#[test]
fn no_constexpr_that_a_launch_lacks_is_made_up() {
    let lacking = Folder::new(&[(
        "fill.py",
        "\
import triton
import triton.language as tl

@triton.jit
def fill(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, 1.0, mask=offsets < n)

# tile: fill[(2,)](empty(100), 100)
",
    )]);
    lacking.run("run fill.py --device cpu").expect(expect![[r#"
        exit 2
        err: error: fill.py:9: `fill` needs an argument for `BLOCK`
    "#]]);
}
