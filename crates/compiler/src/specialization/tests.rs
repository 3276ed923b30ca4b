//! Discovery, shown as the labels that users see.

use expect_test::{Expect, expect};

use super::*;
use crate::project::{MemorySources, kernels};

/// Checks what is found for every kernel of `text`, under the flags in `flags`.
fn check_with(text: &str, flags: &Flags, expected: Expect) {
    let mut sources = MemorySources::new(Vec::new());
    let file = sources.add("kernel.py", text);
    let mut out = String::new();
    for at in kernels(&sources, file) {
        let name = crate::project::item(&sources, at).expect("an item").name;
        for spec in discover(&sources, at, flags) {
            let origin = format!("{:?}", spec.origin).to_lowercase();
            out.push_str(&format!("{name} ({origin}): {spec}"));
            if !spec.assumed.is_empty() {
                out.push_str(&format!(" assumed {}", spec.assumed.join(" ")));
            }
            out.push('\n');
        }
    }
    expected.assert_eq(&out);
}

fn check(text: &str, expected: Expect) {
    check_with(text, &Flags::default(), expected);
}

const ADD: &str = "
import torch, triton
import triton.language as tl
@triton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask)
    y = tl.load(y_ptr + offsets, mask)
    tl.store(out_ptr + offsets, x + y, mask)
";

#[test]
fn nothing_but_the_kernel() {
    check(
        ADD,
        expect![[r#"
        add (guess): x_ptr=*fp32:16 y_ptr=*fp32:16 out_ptr=*fp32:16 n=i32 BLOCK=1024 num_warps=4 num_stages=3 assumed x_ptr y_ptr out_ptr n BLOCK
    "#]],
    );
}

#[test]
fn scenarios_come_first() {
    let text = format!(
        "{ADD}
# tile: n = 98_432
# tile: x, y, out = randn(n), randn(n, seed=1), empty(n, dtype=float16)
# tile: add[(cdiv(n, 1024),)](x, y, out, n, BLOCK=1024, num_warps=8)
# tile: assert allclose(out, x + y)

# tile: n = 1
# tile: add[1](randn(n), randn(n), empty(n), n, 16)

def run(x, y):
    out = torch.empty_like(x)
    add[(1,)](x, y, out, out.numel(), BLOCK=256)
"
    );
    check(
        &text,
        expect![[r#"
            add (scenario): x_ptr=*fp32:16 y_ptr=*fp32:16 out_ptr=*fp16:16 n=i32:16 BLOCK=1024 num_warps=8 num_stages=3
            add (scenario): x_ptr=*fp32:16 y_ptr=*fp32:16 out_ptr=*fp32:16 n=1 BLOCK=16 num_warps=4 num_stages=3
            add (launch): x_ptr=*fp32:16 y_ptr=*fp32:16 out_ptr=*fp16:16 n=i32 BLOCK=256 num_warps=4 num_stages=3 assumed x_ptr y_ptr out_ptr
        "#]],
    );
}

#[test]
fn launches_show_dtypes_and_constants() {
    let text = format!(
        "{ADD}
BLOCK = 64
def run(n: int, block=BLOCK * 2, fused: bool = False):
    x = torch.randn(1024, dtype=torch.float16, device='cuda')
    y = x.to(torch.bfloat16)
    out = torch.empty_like(x).float()
    if fused:
        block = triton.next_power_of_2(100)
    grid = lambda meta: (triton.cdiv(n, meta['BLOCK']),)
    with torch.cuda.device(x.device):
        add[grid](x, y, out, x.numel(), BLOCK=block, num_stages=2)

def wrap(x, y):
    add[(1,)](x, y, x, 17, BLOCK=2 * BLOCK)

a = torch.ones(3, dtype=torch.int8)
wrap(a, a)
result = wrap(a, a)
"
    );
    check(
        &text,
        expect![[r#"
            add (launch): x_ptr=*fp16:16 y_ptr=*bf16:16 out_ptr=*fp32:16 n=i32:16 BLOCK=128 num_warps=4 num_stages=2
            add (launch): x_ptr=*i8:16 y_ptr=*i8:16 out_ptr=*i8:16 n=i32 BLOCK=128 num_warps=4 num_stages=3
        "#]],
    );
}

#[test]
fn autotune_multiplies() {
    check(
        "
import itertools, triton
import triton.language as tl
STAGES = [2, 3]
def configs():
    out = []
    for block in (64, 128):
        if block > 64:
            out.append(triton.Config({'BLOCK': block}, num_warps=8))
    return out
@triton.autotune(
    configs=configs() + [
        triton.Config(dict(BLOCK=b), num_warps=w, num_stages=s)
        for b, w in itertools.product([16, 32], [4]) for s in STAGES if b > 16
    ],
    key=['n'],
)
@triton.heuristics({'EVEN': lambda args: args['n'] % args['BLOCK'] == 0,
                    'HAS_BIAS': lambda args: args['bias'] is not None})
@triton.jit(do_not_specialize=['n'])
def k(x, bias, n, BLOCK: tl.constexpr, EVEN: tl.constexpr, HAS_BIAS: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), tl.load(bias))
# tile: k[1](zeros(64, dtype='fp16'), None, 64)
",
        expect![[r#"
            k (scenario): x=*fp16:16 bias=None n=i32 BLOCK=128 EVEN=False HAS_BIAS=False num_warps=8 num_stages=3
            k (autotune): x=*fp16:16 bias=None n=i32 BLOCK=32 EVEN=True HAS_BIAS=False num_warps=4 num_stages=2
            k (autotune): x=*fp16:16 bias=None n=i32 BLOCK=32 EVEN=True HAS_BIAS=False num_warps=4 num_stages=3
        "#]],
    );
}

#[test]
fn guesses_follow_use() {
    check(
        "
import triton
import triton.language as tl
@triton.jit
def helper(base, offset):
    return tl.load(base + offset)
@triton.jit
def k(x, index, table, out, rows, stride, eps, desc, n: int, unused_ptr, maybe=None,
      BLOCK_M: tl.constexpr = 32, BLOCK_K: tl.constexpr = None, DTYPE: tl.constexpr = tl.float16,
      ACT: tl.constexpr = '', FLAG: tl.constexpr = False, alpha=1.0):
    row = tl.program_id(0)
    x += row * stride
    at = tl.load(index + row)
    value = helper(table, at * stride)
    tile = desc.load([row, 0])
    tl.store(out + row + at, value / (tl.load(x).to(tl.float32) + eps))
@triton.jit
def mm(a, b, c, M, N, K, sam, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
       BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr, ACT: tl.constexpr, FUSED: tl.constexpr,
       OUT: tl.constexpr):
    pid = tl.program_id(0) // GROUP_M
    m = pid * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    a_ptrs = a + (m[:, None] * sam + k[None, :])
    b_ptrs = b + k[:, None] * N + n[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for _ in range(0, tl.cdiv(K, BLOCK_K)):
        acc = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs), acc)
        a_ptrs += BLOCK_K
    if ACT == 'relu':
        acc = tl.maximum(acc, 0.0)
    if FUSED:
        acc += 1.0
    tl.store(c + m[:, None] * N + n[None, :], acc.to(OUT), mask=(m < M)[:, None])
",
        expect![[r#"
            k (guess): x=*fp32:16 index=*i64:16 table=*fp32:16 out=*fp32:16 rows=i32 stride=i32 eps=fp32 desc=tensordesc<fp32[64, 64]> n=i32 unused_ptr=*fp32:16 maybe=None BLOCK_M=32 BLOCK_K=None DTYPE=fp16 ACT="" FLAG=False alpha=fp32 num_warps=4 num_stages=3 assumed x index table out rows stride eps desc n unused_ptr
            mm (guess): a=*fp32:16 b=*fp32:16 c=*fp32:16 M=i32 N=i32 K=i32 sam=i32 BLOCK_M=64 BLOCK_N=64 BLOCK_K=64 GROUP_M=8 ACT="relu" FUSED=False OUT=fp32 num_warps=4 num_stages=3 assumed a b c M N K sam BLOCK_M BLOCK_N BLOCK_K GROUP_M ACT FUSED OUT
        "#]],
    );
}

#[test]
fn flags_replace_what_was_found() {
    let mut flags = Flags::default();
    flags.add_value("BLOCK=32").expect("a value");
    flags.add_type("x_ptr=*bf16:16").expect("a type");
    flags.num_warps = Some(2);
    check_with(
        ADD,
        &flags,
        expect![[r#"
        add (flags): x_ptr=*bf16:16 y_ptr=*fp32:16 out_ptr=*fp32:16 n=i32 BLOCK=32 num_warps=2 num_stages=3 assumed y_ptr out_ptr n
    "#]],
    );
    let kernel = crate::hir::lower(&crate::syntax::Parse::new("def k(a, b): pass"));
    let crate::hir::ItemKind::Function(function) = &kernel.items[0].kind else { panic!() };
    expect!["kernel k has no parameter BLOCK; it has a, b"]
        .assert_eq(&flags.check(function).expect_err("no such parameter"));
}

#[test]
fn tuning_code_is_followed() {
    check(
        "
import torch, triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

def is_hip():
    return triton.runtime.driver.active.get_current_target().backend == 'hip'

def set_blocks(nargs):
    rows = nargs['ROWS']
    nargs['desc'].block_shape = [rows, 64]

configs = [
    triton.Config({'ROWS': rows}, num_stages=s, num_warps=w, pre_hook=set_blocks)
    for rows in [32, 64] for s in ([1] if is_hip() else [3]) for w in [4, 8]
]

def keep(conf):
    return conf.kwargs['ROWS'] * 2 > 64 or conf.num_warps == 4

@triton.autotune(configs=list(filter(keep, configs)), key=['n'])
@triton.jit
def k(desc, out, n, act: tl.constexpr, ROWS: tl.constexpr):
    tl.store(out + tl.arange(0, ROWS), tl.sum(desc.load([0, 0]), 1))

@triton.jit
def square(x):
    return x * x

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        desc = TensorDescriptor(x, shape=x.shape, strides=x.stride(), block_shape=[1, 1])
        out = torch.empty(x.shape[0], dtype=x.dtype)
        extra = {}
        if scale:
            extra['maxnreg'] = 128
        k[(1,)](desc, out, x.shape[0], act=square, **extra)
        return out

op = Op.apply

def bench(provider):
    x = torch.randn((1024, 64), device='cuda', dtype=torch.bfloat16)
    if provider == 'triton':
        triton.testing.do_bench(lambda: op(x, 1.0))
",
        expect![[r#"
            k (autotune): desc=tensordesc<bf16[32, 64]> out=*bf16:16 n=i32:16 act=square ROWS=32 num_warps=4 num_stages=3
            k (autotune): desc=tensordesc<bf16[64, 64]> out=*bf16:16 n=i32:16 act=square ROWS=64 num_warps=4 num_stages=3
            k (autotune): desc=tensordesc<bf16[64, 64]> out=*bf16:16 n=i32:16 act=square ROWS=64 num_warps=8 num_stages=3
        "#]],
    );
}

#[test]
fn kernels_inside_functions_are_found() {
    check(
        "
import torch, triton
import triton.language as tl
def outer(x):
    @triton.jit
    def inner(y, x, n, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(y + i, tl.load(x + i, i < n), i < n)
    y = torch.empty(100, dtype=torch.float16)
    inner[(1,)](y, triton.reinterpret(x, tl.float8e5), y.numel(), BLOCK=128)
",
        expect![[r#"
            inner (launch): y=*fp16:16 x=*fp8e5:16 n=i32 BLOCK=128 num_warps=4 num_stages=3
        "#]],
    );
}

#[test]
fn tuples_keep_constants_and_names() {
    check(
        "
import torch, triton
import triton.language as tl
from typing import NamedTuple

class Matrix(NamedTuple):
    ptr: any
    shape: tuple
    transposed: tl.constexpr = tl.constexpr(False)

@triton.jit
def copy(matrix, block, sizes, step):
    i = tl.arange(0, block[-1])
    tl.store(matrix.ptr + i, tl.load(matrix.ptr + i, i < sizes[-1]))

def run(other):
    x = torch.empty((8, 32), dtype=torch.float16)
    block = tuple(tl.constexpr(size) for size in (2, 64))
    copy[(1,)](Matrix(x, x.shape), block, x.size(), tl.constexpr(4))
    copy[(1,)](Matrix(ptr=other, shape=x.shape), block, other.shape, block[0] * 2)
",
        expect![[r#"
            copy (launch): matrix=Matrix(*fp16:16, (i32, i32:16), False) block=(2, 64) sizes=(i32, i32:16) step=4 num_warps=4 num_stages=3
            copy (launch): matrix=Matrix(*fp32:16, (i32, i32:16), False) block=(2, 64) sizes=(i32, i32, i32, i32) step=i32 num_warps=4 num_stages=3 assumed matrix sizes
        "#]],
    );
}

#[test]
fn a_none_by_default_is_not_held_against_the_kernel() {
    check(
        "
import torch, triton
import triton.language as tl
@triton.jit
def k(x, scale, bias, needed, out, HAS_BIAS: tl.constexpr):
    i = tl.arange(0, 64)
    v = tl.load(x + i) * scale + tl.load(needed + i)
    if HAS_BIAS:
        v += tl.load(bias + i)
    tl.store(out + i, v)
def run(x: torch.Tensor, scale: float = None, bias: torch.Tensor | None = None, needed=None):
    k[(1,)](x, scale, bias, needed, torch.empty(64), HAS_BIAS=bias is not None)
",
        expect![[r#"
            k (launch): x=*fp32:16 scale=fp32 bias=None needed=*fp32:16 out=*fp32:16 HAS_BIAS=False num_warps=4 num_stages=3 assumed x bias needed
        "#]],
    );
}

#[test]
fn a_preview_says_what_compiles_anew() {
    let text = "
import torch, triton
import triton.language as tl
@triton.autotune([triton.Config({'WIDTH': 64})], key=['n'])
@triton.jit(do_not_specialize=['seed'], do_not_specialize_on_alignment=['rows'])
def k(x, index, n, one, rows, seed, big, wide: tl.int64, scale, flag, bias, mode: tl.constexpr, WIDTH: tl.constexpr):
    pass
def run():
    x = torch.empty(64, dtype=torch.float16)
    index = torch.empty(64, dtype=torch.int64)
    k[(1,)](x, index, 4096, 1, 7, 32, 2 ** 40, 3, 0.5, True, None, mode='sum')
";
    let mut sources = MemorySources::new(Vec::new());
    let file = sources.add("kernel.py", text);
    let at = kernels(&sources, file)[0];
    let spec = &discover(&sources, at, &Flags::default())[0];
    let lines: Vec<String> = preview(&sources, at, spec)
        .iter()
        .map(|found| format!("{}: {}\n", found.name, found.text()))
        .collect();
    expect![[r#"
        x: pointer to float16, address divisible by 16; another element type, or an address that is not divisible by 16, compiles anew
        index: pointer to int64, address divisible by 16; another element type, or an address that is not divisible by 16, compiles anew
        n: int32, divisible by 16; a value not divisible by 16, equal to 1, or beyond 32 bits compiles anew
        one: equal to 1, folded into the code; any other value compiles anew
        rows: int32; a value equal to 1 or beyond 32 bits compiles anew
        seed: int32; a value beyond 32 bits compiles anew
        big: int64, divisible by 16; a value not divisible by 16, equal to 1, or within 32 bits compiles anew
        wide: int64; a value divisible by 16 or equal to 1 compiles anew
        scale: float32; another type compiles anew
        flag: bool; another type compiles anew
        bias: `None`, folded into the code; anything else compiles anew
        mode: constexpr `"sum"`; another value compiles anew
        WIDTH: constexpr `64`, which the decorators set; another value compiles anew
    "#]].assert_eq(&lines.concat());
    let site = shown_by(spec).expect("a launch shows it");
    assert!(!site.is_in_scenario(&sources));
    let at = site.place(&sources).expect("the launch stands in the text");
    assert_eq!(&text[at.range.as_usize()], "k[(1,)");
}

#[test]
fn guessed_types_prove_only_what_shapes_and_values_show() {
    let mut sources = MemorySources::new(Vec::new());
    let text =
        format!("{ADD}\ndef run(x, y):\n    add[(1,)](x, y, torch.empty(9), 9, BLOCK=1000)\n");
    let file = sources.add("kernel.py", &text);
    let launched = &discover(&sources, kernels(&sources, file)[0], &Flags::default())[0];
    assert!(!launched.is_certain());
    assert!(launched.proves(Code::PowerOfTwo));
    assert!(!launched.proves(Code::BadOperand));
    assert!(!launched.proves(Code::StaticAssert));
    let file = sources.add("alone.py", ADD);
    let guessed = &discover(&sources, kernels(&sources, file)[0], &Flags::default())[0];
    assert!(!guessed.proves(Code::PowerOfTwo));
}

#[test]
fn decorators_of_other_compilers_state_types() {
    check(
        r#"
import triton
import triton.language as tl
from torch._inductor.runtime import triton_helpers, triton_heuristics
from torch._inductor.runtime.hints import AttrsDescriptor, DeviceProperties, instance_descriptor

@triton_heuristics.pointwise(
    size_hints={'x': 100},
    filename=__file__,
    triton_meta={'signature': {'in_ptr0': '*bf16', 'out_ptr0': '*fp16', 'ks0': 'i64', 'one': 'i32', 'xnumel': 'i32', 'XBLOCK': 'constexpr'}, 'device': DeviceProperties(type='cuda', index=0), 'constants': {'one': 1}, 'configs': [{(0,): [['tt.divisibility', 16]], (4,): [['tt.divisibility', 16]]}]},
    inductor_meta={'kernel_name': 'triton_poi_fused_add_0'},
    min_elem_per_thread=0
)
@triton.jit
def pointwise(in_ptr0, out_ptr0, ks0, one, xnumel, XBLOCK : tl.constexpr):
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:]
    tmp0 = tl.load(in_ptr0 + (xindex + ks0), xindex < xnumel).to(tl.float32)
    tl.store(out_ptr0 + (xindex), tmp0 + one, xindex < xnumel)

@triton_heuristics.reduction(
    size_hints={'x': 4096, 'r0_': 20000},
    triton_meta={'signature': {'in_ptr0': '*fp32', 'out_ptr0': '*fp32', 'xnumel': 'i32', 'r0_numel': 'i32', 'XBLOCK': 'constexpr', 'R0_BLOCK': 'constexpr'}, 'constants': {}, 'configs': [AttrsDescriptor.from_dict({'arg_properties': {'tt.divisibility': (0, 1), 'tt.equal_to': ()}, 'cls': 'AttrsDescriptor'})]},
)
@triton.jit
def reduction(in_ptr0, out_ptr0, xnumel, r0_numel, XBLOCK : tl.constexpr, R0_BLOCK : tl.constexpr):
    x = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:, None]
    r = tl.arange(0, R0_BLOCK)[None, :]
    tl.store(out_ptr0 + x, tl.sum(tl.load(in_ptr0 + (x + r)), 1)[:, None], x < xnumel)

@triton_heuristics.template(
    num_stages=2,
    num_warps=8,
    triton_meta={'signature': {0: '*fp32', 1: 'i32'}, 'constants': {}, 'configs': [instance_descriptor(divisible_by_16=(0, 1), equal_to_1=())]},
)
@triton.jit
def template(out_ptr0, n):
    tl.store(out_ptr0, n)
"#,
        expect![[r#"
            pointwise (autotune): in_ptr0=*bf16:16 out_ptr0=*fp16 ks0=i64 one=1 xnumel=i32:16 XBLOCK=128 num_warps=4 num_stages=3 assumed XBLOCK
            reduction (autotune): in_ptr0=*fp32:16 out_ptr0=*fp32:16 xnumel=i32 r0_numel=i32 XBLOCK=1 R0_BLOCK=1024 num_warps=4 num_stages=3 assumed XBLOCK R0_BLOCK
            template (autotune): out_ptr0=*fp32:16 n=i32:16 num_warps=8 num_stages=2
        "#]],
    );
}

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
        KnownArg::Int(_) => None,
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
        ("x = zeros(100)[10:]", None),
        ("x = zeros(10, 10)[2]", None),
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
        ("y = torch.randn(10, 10); x = torch.zeros(*y.shape[:-1])", Some(10)),
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
        ("x = torch.randn(10, 4).view(torch.int32)", None),
        ("x = torch.randn(10).cuda()[:n]", None),
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
            add (launch): x_ptr=*fp16:16 y_ptr=*fp16:16 out_ptr=*fp16:16 n=i32:16 BLOCK=1024 num_warps=4 num_stages=3
            add (launch): x_ptr=*bf16:16 y_ptr=*bf16:16 out_ptr=*bf16:16 n=i32:16 BLOCK=8 num_warps=4 num_stages=3
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

y = Scaled.apply(torch.rand(128, dtype=torch.float64), 32)
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
