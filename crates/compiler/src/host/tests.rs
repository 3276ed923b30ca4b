//! What host code computes, shown by the specializations and sizes that follow from it.

use expect_test::expect;

mod control;
mod exact;
mod instances;
mod shapes;

use crate::project::{MemorySources, kernels};
use crate::specialization::tests::{ADD, check};
use crate::specialization::*;

/// The elements of the memory that `setup` leaves in `x`, as a launch of it shows; `None` where they
/// are not known. `host` is code of a function, else it is a scenario's.
fn elements(setup: &str, host: bool) -> Option<i128> {
    let kernel = "import torch, triton\nimport triton.language as tl\n@triton.jit\n\
                  def k(x_ptr, n):\n    tl.store(x_ptr + n, 0)\n\n";
    let lines = setup.split("; ").chain(["k[(1,)](x, 5)"]);
    let code: String = match host {
        true => lines.map(|line| format!("    {line}\n")).collect(),
        false => lines.map(|line| format!("# tile: {line}\n")).collect(),
    };
    let head = if host { "def run():\n" } else { "" };
    let mut sources = MemorySources::new(Vec::new());
    let file = sources.add("kernel.py", &format!("{kernel}{head}{code}"));
    let spec = discover(&sources, kernels(&sources, file)[0], &Flags::default()).swap_remove(0);
    match spec.launches.first()?.arg("x_ptr")? {
        KnownArg::Buffer(buffer) => Some(buffer.elements),
        KnownArg::Int(_) | KnownArg::Float(_) => None,
    }
}

#[test]
fn sizes_of_expressions_are_known() {
    let of_scenarios = [
        ("n = 100; x = empty(n * 2)", Some(200)),
        ("n = 100; x = randn(n, 2 + 1)", Some(300)),
        ("n = 100; x = 2 * randn(n * 2 - 1) + 1", Some(199)),
        ("n = 100; x = zeros(cdiv(n, 32) * 4)", Some(16)),
        ("n = 100; x = zeros(max(n, 32), next_power_of_2(n))", Some(12800)),
        ("n = 100; x = zeros(int(n * 1.5))", Some(150)),
        ("n = 100; x = zeros(-(-n // 8))", Some(13)),
        ("x = randn(6, 4) @ randn(4, 5)", Some(30)),
        ("x = (randn(100) > 0).to(fp32)", Some(100)),
        ("x = arange(10, 100)", Some(90)),
        ("x = arange(0, 100, 3)", Some(34)),
        ("x = arange(100, 0, -3)", Some(34)),
        ("x = cat([randn(10, 4), randn(20, 4)])", Some(120)),
        ("x = cat([randn(10, 4), randn(10, 5)], dim=1)", Some(90)),
        ("x = cat([randn(10, 4), randn(10, 5)])", None),
        ("x = stack([randn(10), randn(10)], -1)", Some(20)),
        // The memory goes on behind a part of it, and is not known before one.
        ("x = zeros(100)[:50]", Some(100)),
        ("x = zeros(10, 10)[0]", Some(100)),
        ("x = zeros(100)[10:]", Some(90)),
        ("x = zeros(10, 10)[2]", Some(80)),
        ("y = zeros(100)[10:40]; x = empty(y.numel())", Some(30)),
        ("y = zeros(10, 20)[2]; x = empty(y.shape[0] + 1)", Some(21)),
        ("x = randn(5, 20).sum(dim=1)", Some(5)),
        ("x = randn(5, 20).unsqueeze(1)", Some(100)),
        ("x = randn(5, 20).flatten()", Some(100)),
    ];
    let of_hosts = [
        ("m, n = 10, 20; x = torch.empty(m * n // 2)", Some(100)),
        ("m, n = 10, 20; x = torch.zeros([m, triton.cdiv(n, 16)])", Some(20)),
        ("y = torch.randn(100); x = y.new_empty(y.shape[0] * 2)", Some(200)),
        ("x = torch.randn(100).new(5, 7)", Some(35)),
        ("x = torch.randn(100).new([5, 7])", None),
        (
            "*n, m = torch.empty(3, 4, 5).shape; x = torch.empty(int(torch.as_tensor(n).prod()))",
            Some(12),
        ),
        ("y = torch.randn(10, 10); x = torch.zeros(*y.shape[:-1])", Some(10)),
        ("y = torch.randn(10, 10); x = y.new_full((5,), 2.0)", Some(5)),
        ("x = torch.arange(0, 100, dtype=torch.float32)", Some(100)),
        ("y = torch.randn(100); x = torch.cat([y, y])", Some(200)),
        ("y = torch.randn(10, 10); x = torch.stack((y, y, y), dim=1)", Some(300)),
        ("x = torch.eye(10)", Some(100)),
        ("x = torch.linspace(0, 1, 30)", Some(30)),
        ("x = torch.randn(10, 4).sum(dim=1, keepdim=True)", Some(10)),
        ("x = torch.randn(10, 4).sum(1, True)", Some(10)),
        ("x = torch.randn(10, 4).mean(dim=0)", Some(4)),
        // A maximum along a dimension comes with indices.
        ("x = torch.randn(10, 4).max(dim=0)", None),
        ("x = torch.randn(10, 4).repeat(2, 3)", Some(240)),
        ("x = torch.randn(10, 4).view(torch.int16)", Some(80)),
        ("x = torch.randn(10).cuda()[:n]", None),
        ("x, y, z = torch.randn(3, 20, 10).unbind(0)", Some(600)),
        ("w, y, z = torch.randn(3, 20, 10).unbind(); x = y.new_empty(y.shape[0])", Some(20)),
        ("y = torch.randn(3, 20).unbind(1); x = y[0]", Some(60)),
    ];
    for (host, table) in [(false, &of_scenarios[..]), (true, &of_hosts[..])] {
        for (setup, expected) in table {
            assert_eq!(elements(setup, host), *expected, "{setup}");
        }
    }
}

#[test]
fn a_program_runs_in_order() {
    check(
        &format!(
            "{ADD}
def run(x):
    out = torch.empty_like(x)
    add[(1,)](x, x, out, x.numel(), BLOCK=64)

torch.manual_seed(0)
x = torch.rand(512, dtype=torch.float16) - 0.5
run(x)
if hasattr(torch, 'bfloat16'):
    x = torch.rand(500)
    x = x.to(torch.bfloat16)
    run(x)
for n in [100, 1]:
    run(torch.rand(n))
"
        ),
        expect![[r#"
            add (launch): x_ptr=*fp16:16 y_ptr=*fp16:16 out_ptr=*fp16:16 n=i32:16 BLOCK=64 num_warps=4 num_stages=3
            add (launch): x_ptr=*bf16:16 y_ptr=*bf16:16 out_ptr=*bf16:16 n=i32 BLOCK=64 num_warps=4 num_stages=3
            add (launch): x_ptr=*fp32:16 y_ptr=*fp32:16 out_ptr=*fp32:16 n=i32 BLOCK=64 num_warps=4 num_stages=3
            add (launch): x_ptr=*fp32:16 y_ptr=*fp32:16 out_ptr=*fp32:16 n=1 BLOCK=64 num_warps=4 num_stages=3
        "#]],
    );
}

#[test]
fn what_branches_leave_is_an_example() {
    check(
        "
import torch, triton, os
import triton.language as tl
@triton.jit
def k(x_ptr, out_ptr, n, STAGE: tl.constexpr, KIND: tl.constexpr):
    i = tl.arange(0, 64)
    tl.store(out_ptr + i, tl.load(x_ptr + i) + STAGE)

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, causal, kind):
        if x.numel() == 0:
            return x
        stage = 3 if causal else 1
        out = torch.empty(64, dtype=torch.float16)
        k[(1,)](x, out, x.shape[0], STAGE=stage, KIND='PROBE' in os.environ)
        return out
",
        expect![[r#"
            k (launch): x_ptr=*fp32:16 out_ptr=*fp16:16 n=i32 STAGE=3 KIND=False num_warps=4 num_stages=3 assumed x_ptr STAGE
        "#]],
    );
}

#[test]
fn kernels_compiled_ahead() {
    check(
        &format!(
            "{ADD}
def run(x):
    n = x.numel()
    block = triton.next_power_of_2(n)
    kernel = add.warmup(x, x, x, n, BLOCK=block, num_warps=8, grid=(1,))
    kernel[(1, 1, 1)](x, x, x, n, block)

run(torch.rand(1000))
add.warmup(torch.float16, torch.float16, torch.float32, 64, BLOCK=64, grid=(1,))
"
        ),
        expect![[r#"
            add (launch): x_ptr=*fp32:16 y_ptr=*fp32:16 out_ptr=*fp32:16 n=i32 BLOCK=1024 num_warps=8 num_stages=3
            add (launch): x_ptr=*fp16:16 y_ptr=*fp16:16 out_ptr=*fp32:16 n=i32:16 BLOCK=64 num_warps=4 num_stages=3
        "#]],
    );
}

#[test]
fn hooks_apply_to_examples() {
    check(
        "
import torch, triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor
def set_blocks(nargs):
    half = nargs.get('HALF', False)
    if half:
        nargs['desc'].block_shape = [nargs['ROWS'] // 2, 64]
    else:
        nargs['desc'].block_shape = [nargs['ROWS'], 64]
def configs(pre_hook=None):
    if torch.cuda.get_device_capability() == (12, 0):
        return [triton.Config({'ROWS': 16}, num_ctas=2)]
    return [triton.Config({'ROWS': rows}, num_warps=8, pre_hook=pre_hook) for rows in (32, 64)]
@triton.autotune(configs=configs(pre_hook=set_blocks), key=[])
@triton.jit
def k(desc, out, ROWS: tl.constexpr):
    tl.store(out + tl.arange(0, 64), tl.sum(desc.load([0, 0]), 0))
def run(x, plain):
    out = torch.empty(64, dtype=torch.float16)
    if plain:
        desc = TensorDescriptor.from_tensor(x.half(), [1, 1])
    else:
        desc = TensorDescriptor(x, x.shape, x.stride(), [1, 1])
    k[(1,)](desc, out)
",
        expect![[r#"
            k (autotune): desc=tensordesc<fp16[32, 64]> out=*fp16:16 ROWS=32 num_warps=8 num_stages=3 assumed desc
            k (autotune): desc=tensordesc<fp16[64, 64]> out=*fp16:16 ROWS=64 num_warps=8 num_stages=3 assumed desc
        "#]],
    );
}

#[test]
fn programs_reach_launches_through_functions() {
    check(
        "
import torch, triton
import triton.language as tl
sizes = [32]
if triton.runtime.driver.active.get_current_target().backend == 'hip':
    sizes = list((64,))
@triton.autotune(configs=[triton.Config({'EXTRA': size}) for size in sizes], key=[])
@triton.jit
def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr, EXTRA: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i) + EXTRA)

class Norm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, shape, weight, eps):
        y = torch.empty_like(x)
        x_arg = x.reshape(-1, x.shape[-1])
        M, N = x_arg.shape
        limit = 65536 // x.element_size()
        BLOCK = min(limit, triton.next_power_of_2(N))
        if N > BLOCK:
            raise RuntimeError('too long')
        k[(M,)](x_arg, y, N, BLOCK=BLOCK, num_warps=min(max(BLOCK // 256, 1), 8))
        return y

norm = Norm.apply

def test_norm(M, N, dtype, eps=1e-5, device='cuda'):
    shape = (M, N)
    weight = torch.rand((shape[-1],), dtype=dtype, device=device)
    x = -2.3 + 0.5 * torch.randn(shape, dtype=dtype, device=device)
    x.requires_grad_(True)
    y = norm(x, (N,), weight, eps)
    assert torch.allclose(x, y)

sizes = []
test_norm(1151, 8192, torch.float16)
",
        expect![[r#"
            k (autotune): x_ptr=*fp16:16 y_ptr=*fp16:16 n=i32:16 BLOCK=8192 EXTRA=32 num_warps=8 num_stages=3
        "#]],
    );
}

#[test]
fn arguments_gathered_in_collections_reach_the_kernel() {
    let text = format!(
        "{ADD}
def by_list(x: torch.Tensor, n):
    args = [x]
    args.extend([x, n])
    args.insert(2, x)
    add[(1,)](*args, BLOCK=16)

def by_dict(x: torch.Tensor, n):
    meta = dict(BLOCK=8, WIDE=3)
    meta.pop('WIDE')
    meta.setdefault('BLOCK', 64)
    meta.update({{'BLOCK': 32}}, num_warps=8)
    add[(1,)](x, x, x, n, **meta)

def unknown(x: torch.Tensor, n, more):
    meta = {{'BLOCK': 64}}
    meta.update(more)
    add[(1,)](x, x, x, n, **meta)
"
    );
    check(
        &text,
        expect![[r#"
            add (launch): x_ptr=*fp32:16 y_ptr=*fp32:16 out_ptr=*fp32:16 n=i32 BLOCK=16 num_warps=4 num_stages=3 assumed x_ptr y_ptr out_ptr n
            add (launch): x_ptr=*fp32:16 y_ptr=*fp32:16 out_ptr=*fp32:16 n=i32 BLOCK=32 num_warps=8 num_stages=3 assumed x_ptr y_ptr out_ptr n
            add (launch): x_ptr=*fp32:16 y_ptr=*fp32:16 out_ptr=*fp32:16 n=i32 BLOCK=1024 num_warps=4 num_stages=3 assumed x_ptr y_ptr out_ptr n BLOCK
        "#]],
    );
}

#[test]
fn members_of_enumerations_are_constants() {
    check(
        "
import enum, triton
import triton.language as tl
class Mode(enum.Enum):
    NARROW = 16
    WIDE = 32
@triton.jit
def fill(x_ptr, mode: tl.constexpr, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), 1.0)
def run(x, wide: bool):
    fill[(1,)](x, Mode.WIDE, BLOCK=Mode.WIDE.value)
    fill[(1,)](x, mode=Mode.NARROW, BLOCK=16)
",
        expect![[r#"
            fill (launch): x_ptr=*fp32:16 mode=Mode.WIDE BLOCK=32 num_warps=4 num_stages=3 assumed x_ptr
            fill (launch): x_ptr=*fp32:16 mode=Mode.NARROW BLOCK=16 num_warps=4 num_stages=3 assumed x_ptr
        "#]],
    );
}

#[test]
fn what_is_returned_early_counts() {
    check(
        &format!(
            "{ADD}
def block(wide):
    if wide:
        return 128
    return 64

def same(wide):
    if wide:
        return 32
    return 32

def dtype(kind):
    for known in ('half', 'brain'):
        if kind == known:
            return torch.float16
    return torch.float32

def checked(x):
    if not x.is_contiguous():
        raise ValueError('stride')
    return 16

def run(x, wide, kind):
    out = torch.empty(64, dtype=dtype(kind))
    add[(1,)](out, out, out, 64, BLOCK=block(wide))
    add[(2,)](x.float(), x.float(), x.float(), same(wide), BLOCK=checked(x))
"
        ),
        expect![[r#"
            add (launch): x_ptr=*fp32:16 y_ptr=*fp32:16 out_ptr=*fp32:16 n=i32:16 BLOCK=16 num_warps=4 num_stages=3
            add (launch): x_ptr=*fp32:16 y_ptr=*fp32:16 out_ptr=*fp32:16 n=i32:16 BLOCK=64 num_warps=4 num_stages=3 assumed x_ptr y_ptr out_ptr BLOCK
        "#]],
    );
}

#[test]
fn ways_out_of_loops_count() {
    check(
        &format!(
            "{ADD}
def run(x, limit, skip):
    first = second = third = 64
    for size in [32, 16]:
        first = size
        if size > limit:
            break
        second = 16
    for size in [32, 16]:
        if skip:
            continue
        third = 32
    for size in [128, 256]:
        if size > 200:
            break
    x = x.float()
    add[(1,)](x, x, x, 64, BLOCK=first)
    add[(2,)](x, x, x, 64, BLOCK=second)
    add[(3,)](x, x, x, 64, BLOCK=third)
    add[(4,)](x, x, x, 64, BLOCK=size)
"
        ),
        expect![[r#"
            add (launch): x_ptr=*fp32:16 y_ptr=*fp32:16 out_ptr=*fp32:16 n=i32:16 BLOCK=256 num_warps=4 num_stages=3
            add (launch): x_ptr=*fp32:16 y_ptr=*fp32:16 out_ptr=*fp32:16 n=i32:16 BLOCK=16 num_warps=4 num_stages=3 assumed BLOCK
            add (launch): x_ptr=*fp32:16 y_ptr=*fp32:16 out_ptr=*fp32:16 n=i32:16 BLOCK=64 num_warps=4 num_stages=3 assumed BLOCK
        "#]],
    );
}

#[test]
fn a_try_may_stop_anywhere() {
    check(
        &format!(
            "{ADD}
def run(x, path):
    block, width, depth = 64, 64, 64
    try:
        block = 128
        data = load(path)
        width = 32
    except OSError as error:
        depth = 16
    else:
        depth = 64
    finally:
        size = 256
    x = x.float()
    add[(1,)](x, x, x, 64, BLOCK=block)
    add[(2,)](x, x, x, 64, BLOCK=width)
    add[(3,)](x, x, x, 64, BLOCK=depth)
    add[(4,)](x, x, x, 64, BLOCK=size)

def fallback(x):
    x = x.half()
    try:
        add[(1,)](x, x, x, 64, BLOCK=512)
    except RuntimeError:
        with torch.cuda.device(0):
            add[(1,)](x, x, x, 64, BLOCK=1024)

def chosen(fast):
    try:
        return torch.bfloat16
    finally:
        print(fast)

y = torch.empty(64, dtype=chosen(True))
try:
    add[(1,)](y, y, y, 64, BLOCK=8)
finally:
    print()
"
        ),
        expect![[r#"
            add (launch): x_ptr=*fp32:16 y_ptr=*fp32:16 out_ptr=*fp32:16 n=i32:16 BLOCK=256 num_warps=4 num_stages=3
            add (launch): x_ptr=*fp16:16 y_ptr=*fp16:16 out_ptr=*fp16:16 n=i32:16 BLOCK=512 num_warps=4 num_stages=3
            add (launch): x_ptr=*bf16:16 y_ptr=*bf16:16 out_ptr=*bf16:16 n=i32:16 BLOCK=8 num_warps=4 num_stages=3
            add (launch): x_ptr=*fp16:16 y_ptr=*fp16:16 out_ptr=*fp16:16 n=i32:16 BLOCK=1024 num_warps=4 num_stages=3
            add (launch): x_ptr=*fp32:16 y_ptr=*fp32:16 out_ptr=*fp32:16 n=i32:16 BLOCK=128 num_warps=4 num_stages=3 assumed BLOCK
            add (launch): x_ptr=*fp32:16 y_ptr=*fp32:16 out_ptr=*fp32:16 n=i32:16 BLOCK=32 num_warps=4 num_stages=3 assumed BLOCK
            add (launch): x_ptr=*fp32:16 y_ptr=*fp32:16 out_ptr=*fp32:16 n=i32:16 BLOCK=64 num_warps=4 num_stages=3 assumed BLOCK
        "#]],
    );
}

#[test]
fn launches_in_other_words() {
    check(
        &format!(
            "{ADD}
from functools import partial

def run(x):
    x = x.half()
    launcher = add[(1,)]
    launcher(x, x, x, 64, BLOCK=1)
    for run in [add[(2,)], partial(add[(4,)], x)]:
        pass
    both = {{'one': add[(8,)]}}
    both['one'](x, x, x, 64, BLOCK=2)
    held = partial(add[(4,)], x, x, BLOCK=4)
    held(x, 64)
    held(x, 64, BLOCK=8)
    add.run(x, x, x, 64, BLOCK=16, grid=(1,), warmup=False)
    call(held, x, 64, BLOCK=32)

def call(function, *args, **options):
    return function(*args, **options)

def configured(x, name):
    kernel = add if name == 'add' else other
    kernel[(1,)](x.float(), x.float(), x.float(), 64, BLOCK=64)
    for grid in [(1,), (2,)]:
        run = add[grid]
        run(x.double(), x.double(), x.double(), 64, BLOCK=128)

step = add[(1,)]
z = torch.zeros(64, dtype=torch.int32)
step(z, z, z, 64, BLOCK=256)

@triton.jit
def other(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, BLOCK), tl.load(x_ptr + tl.arange(0, BLOCK)))
"
        ),
        expect![[r#"
            add (launch): x_ptr=*fp16:16 y_ptr=*fp16:16 out_ptr=*fp16:16 n=i32:16 BLOCK=1 num_warps=4 num_stages=3
            add (launch): x_ptr=*fp16:16 y_ptr=*fp16:16 out_ptr=*fp16:16 n=i32:16 BLOCK=2 num_warps=4 num_stages=3
            add (launch): x_ptr=*fp16:16 y_ptr=*fp16:16 out_ptr=*fp16:16 n=i32:16 BLOCK=4 num_warps=4 num_stages=3
            add (launch): x_ptr=*fp16:16 y_ptr=*fp16:16 out_ptr=*fp16:16 n=i32:16 BLOCK=8 num_warps=4 num_stages=3
            add (launch): x_ptr=*fp16:16 y_ptr=*fp16:16 out_ptr=*fp16:16 n=i32:16 BLOCK=16 num_warps=4 num_stages=3
            add (launch): x_ptr=*fp16:16 y_ptr=*fp16:16 out_ptr=*fp16:16 n=i32:16 BLOCK=32 num_warps=4 num_stages=3
            add (launch): x_ptr=*fp32:16 y_ptr=*fp32:16 out_ptr=*fp32:16 n=i32:16 BLOCK=64 num_warps=4 num_stages=3
            add (launch): x_ptr=*fp64:16 y_ptr=*fp64:16 out_ptr=*fp64:16 n=i32:16 BLOCK=128 num_warps=4 num_stages=3
            add (launch): x_ptr=*i32:16 y_ptr=*i32:16 out_ptr=*i32:16 n=i32:16 BLOCK=256 num_warps=4 num_stages=3
            other (launch): x_ptr=*fp32:16 y_ptr=*fp32:16 out_ptr=*fp32:16 n=i32:16 BLOCK=64 num_warps=4 num_stages=3
        "#]],
    );
}

#[test]
fn a_backward_gets_what_its_forward_saves() {
    check(
        &format!(
            "{ADD}
class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, block=64):
        scale = torch.empty(64, dtype=torch.float16)
        ctx.save_for_backward(x, scale)
        ctx.block = block
        return scale * 2

    @staticmethod
    def backward(ctx, grad):
        x, scale = ctx.saved_tensors
        add[(1,)](x, scale, grad, x.numel(), BLOCK=ctx.block)
        return grad

class Either(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, wide):
        x = x.to(torch.bfloat16)
        if wide:
            ctx.save_for_backward(x, x)
            ctx.block = 512
            return x
        ctx.save_for_backward(x, x.float())
        ctx.block = 256
        return x

    @staticmethod
    def backward(ctx, grad):
        x, other = ctx.saved_tensors
        add[(1,)](x, other, grad, 64, BLOCK=ctx.block)

y = Scaled.apply(torch.rand(128, dtype=torch.float64, requires_grad=True), 32)
y.backward()
"
        ),
        expect![[r#"
            add (launch): x_ptr=*fp64:16 y_ptr=*fp16:16 out_ptr=*fp16:16 n=i32:16 BLOCK=32 num_warps=4 num_stages=3
            add (launch): x_ptr=*bf16:16 y_ptr=*fp32:16 out_ptr=*bf16:16 n=i32:16 BLOCK=256 num_warps=4 num_stages=3 assumed y_ptr BLOCK
        "#]],
    );
}

#[test]
fn command_lines_have_their_defaults() {
    check(
        &format!(
            "{ADD}
import argparse
if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('-n', '--block-size', type=int, default=64)
    parser.add_argument('--prec', choices=['fp8', 'fp16'], default='fp16')
    parser.add_argument('--wide', action='store_true')
    parser.add_argument('path')
    args = parser.parse_args()
    x = torch.empty(64, dtype=torch.float16 if args.prec == 'fp16' else torch.int8)
    add[(1,)](x, x, x, 64, BLOCK=128 if args.wide else args.block_size)
    add[(1,)](x, x, x, 64, BLOCK=len(args.path))
    add[lambda meta: (args.block_size,)](x, x, x, 64, BLOCK=16)
"
        ),
        expect![[r#"
            add (launch): x_ptr=*fp16:16 y_ptr=*fp16:16 out_ptr=*fp16:16 n=i32:16 BLOCK=64 num_warps=4 num_stages=3
            add (launch): x_ptr=*fp16:16 y_ptr=*fp16:16 out_ptr=*fp16:16 n=i32:16 BLOCK=16 num_warps=4 num_stages=3
            add (launch): x_ptr=*fp16:16 y_ptr=*fp16:16 out_ptr=*fp16:16 n=i32:16 BLOCK=1024 num_warps=4 num_stages=3 assumed BLOCK
        "#]],
    );
}

#[test]
fn arrays_in_files_have_what_their_headers_say() {
    let text = format!(
        "{ADD}\n# tile: x = load(\"x.npy\")\n# tile: y = load(\"x.npy\", dtype=fp16)\n\
         # tile: add[(1,)](x, y, load(\"z.npy\"), x.shape[1], 64)\n"
    );
    let mut sources = MemorySources::new(Vec::new());
    let head = crate::project::ArrayHead { dtype: "i16".into(), shape: vec![3, 32] };
    sources.add_array("x.npy", head);
    let file = sources.add("kernel.py", &text);
    let spec = discover(&sources, kernels(&sources, file)[0], &Flags::default()).swap_remove(0);
    expect![
        "x_ptr=*i16:16 y_ptr=*fp16:16 out_ptr=*fp32:16 n=i32:16 BLOCK=64 num_warps=4 num_stages=3"
    ]
    .assert_eq(&spec.to_string());
    assert_eq!(spec.assumed, ["out_ptr".into()]);
    let elements = |name: &str| match spec.launches[0].arg(name) {
        Some(KnownArg::Buffer(buffer)) => Some(buffer.elements),
        _ => None,
    };
    assert_eq!(
        [elements("x_ptr"), elements("y_ptr"), elements("out_ptr")],
        [Some(96), Some(96), None]
    );
}
