//! Discovery, shown as the labels that users see.

use expect_test::{Expect, expect};

mod tuning;

use super::*;
use crate::project::{MemorySources, kernels};

/// Checks what is found for every kernel of `text`, under the flags in `flags`.
fn check_with(text: &str, flags: &Flags, expected: Expect) {
    let mut sources = MemorySources::new(Vec::new());
    let file = sources.add("kernel.py", text);
    let mut out = String::new();
    let discovery = Discovery::new(&sources, flags);
    for at in kernels(&sources, file) {
        let name = crate::project::item(&sources, at).expect("an item").name;
        let found = discovery.of(at);
        assert_eq!(found, discover(&sources, at, flags), "other kernels change nothing");
        for spec in found {
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

pub(crate) fn check(text: &str, expected: Expect) {
    check_with(text, &Flags::default(), expected);
}

pub(crate) const ADD: &str = "
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
fn configurations_set_parameters_of_run_time_too() {
    check(
        "
import torch, triton
import triton.language as tl
CONFIGS = [triton.Config({'BLOCK': 32, 'group': group}) for group in (16, 1, 3)]
@triton.autotune(CONFIGS, key=[])
@triton.jit
def k(x, group, BLOCK: tl.constexpr): tl.store(x, group)
x = torch.empty(8, device='cuda')
k[(1,)](x)
",
        expect![[r#"
            k (autotune): x=*fp32:16 group=i32:16 BLOCK=32 num_warps=4 num_stages=3
            k (autotune): x=*fp32:16 group=1 BLOCK=32 num_warps=4 num_stages=3
            k (autotune): x=*fp32:16 group=i32 BLOCK=32 num_warps=4 num_stages=3
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
def row(base, at, keep):
    tl.store(base + at, 1.0, mask=keep)
@triton.jit
def locked(lock, groups, out):
    while tl.atomic_cas(lock + tl.program_id(0), 0, 1) == 1:
        pass
    row(out, tl.load(groups) * 4, True)
@triton.jit
def unpack(words, out, width: tl.constexpr):
    word = tl.load(words) & ((1 << width) - 1)
    row(out, 0, word.to(out.dtype.element_ty) > 0)
@triton.jit
def peers(bases, out, CACHE_MODIFIER_OUT: tl.constexpr):
    base = tl.load(bases + tl.program_id(0))
    peer = Peer(tl.cast(base, tl.pointer_type(tl.float32)), CACHE_MODIFIER_OUT)
    tl.store(out, tl.load(peer.base))
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
            locked (guess): lock=*i32:16 groups=*i64:16 out=*fp32:16 num_warps=4 num_stages=3 assumed lock groups out
            unpack (guess): words=*i64:16 out=*fp32:16 width=4 num_warps=4 num_stages=3 assumed words out width
            peers (guess): bases=*i64:16 out=*fp32:16 CACHE_MODIFIER_OUT="" num_warps=4 num_stages=3 assumed bases out CACHE_MODIFIER_OUT
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
        .assert_eq(&flags.check(std::slice::from_ref(function)).expect_err("no such parameter"));
    let mut flags = Flags::default();
    flags.add_value("BLOKC=32").expect("a value");
    let kernels =
        crate::hir::lower(&crate::syntax::Parse::new("def k(a, BLOCK): pass\ndef l(a, b): pass"));
    let functions = kernels.items.iter().map(|item| match &item.kind {
        crate::hir::ItemKind::Function(function) => function.clone(),
        other => panic!("{other:?}"),
    });
    let functions: Vec<_> = functions.collect();
    expect!["no kernel has a parameter BLOKC; there are a, BLOCK, b; did you mean BLOCK?"]
        .assert_eq(&flags.check(&functions).expect_err("no such parameter"));
    flags.args[0].0 = "b".into();
    assert_eq!(flags.check(&functions), Ok(()));
    assert_eq!(flags.check(&[]), Ok(()));
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

#[test]
fn functions_that_launch_several_kernels_run_for_all_of_them() {
    check(
        "
import torch, triton
import triton.language as tl
@triton.jit
def first(x_ptr, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), 1.0)
@triton.jit
def second(x_ptr, n, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), n)
def launch(x, block):
    first[(1,)](x, BLOCK=block)
    second[(1,)](x, 7, BLOCK=block * 2)
run = lambda: launch(torch.empty(64, dtype=torch.float16), 32)
def both():
    launch(torch.empty(64, dtype=torch.float32), 16)
    second[(1,)](torch.empty(64, dtype=torch.float16), 7, BLOCK=64)
if __name__ == '__main__':
    both()
    first[(1,)](torch.empty(64, dtype=torch.int32), BLOCK=8)
first[(1,)](torch.empty(64, dtype=torch.int8), BLOCK=4)
",
        expect![[r#"
            first (launch): x_ptr=*fp32:16 BLOCK=16 num_warps=4 num_stages=3
            first (launch): x_ptr=*i32:16 BLOCK=8 num_warps=4 num_stages=3
            first (launch): x_ptr=*i8:16 BLOCK=4 num_warps=4 num_stages=3
            second (launch): x_ptr=*fp32:16 n=i32 BLOCK=32 num_warps=4 num_stages=3
            second (launch): x_ptr=*fp16:16 n=i32 BLOCK=64 num_warps=4 num_stages=3
        "#]],
    );
}

#[test]
fn what_follows_loops_that_measure_is_found() {
    check(
        "
import torch, triton
import triton.language as tl
@triton.jit
def fill(x_ptr, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), 1.0)
def launch(dtype, block):
    x = torch.empty(64, dtype=dtype)
    grid = lambda meta: (triton.cdiv(64, meta['BLOCK']),)
    fill[grid](x, BLOCK=block)
def measure():
    for _ in range(10):
        launch(torch.float32, 16)
    for _ in range(512):
        launch(torch.float32, 16)
    for _ in range(512):
        launch(torch.float32, 8)
    launch(torch.float16, 32)
",
        expect![[r#"
            fill (launch): x_ptr=*fp32:16 BLOCK=16 num_warps=4 num_stages=3
            fill (launch): x_ptr=*fp32:16 BLOCK=8 num_warps=4 num_stages=3
            fill (launch): x_ptr=*fp16:16 BLOCK=32 num_warps=4 num_stages=3
        "#]],
    );
}

#[test]
fn flags_of_builtins_are_off() {
    check(
        "
import triton
import triton.language as tl
@triton.jit
def inner(p, n, WS: tl.constexpr, FLAT: tl.constexpr):
    for i in tl.range(n, warp_specialize=WS, flatten=FLAT, num_stages=2):
        tl.store(p + i, i)
@triton.jit
def outer(p, n, WS: tl.constexpr, KEEP: tl.constexpr, STAGES: tl.constexpr):
    inner(p, n, WS, True)
    x = tl.sum(tl.load(p + tl.arange(0, 16)), 0, keep_dims=KEEP)
    for i in tl.range(n, num_stages=STAGES):
        tl.store(p + i, x)
",
        expect![[r#"
            outer (guess): p=*fp32:16 n=i32 WS=False KEEP=False STAGES=3 num_warps=4 num_stages=3 assumed p n WS KEEP STAGES
        "#]],
    );
}

/// Checks how the launches of every kernel of `text` are written.
fn check_written(text: &str, expected: Expect) {
    let mut sources = MemorySources::new(Vec::new());
    let file = sources.add("kernel.py", text);
    let mut out = String::new();
    for at in kernels(&sources, file) {
        let found = discover(&sources, at, &Flags::default());
        for launch in written_launches(&sources, at, &found) {
            out.push_str(&match launch {
                Ok(launch) => {
                    let args = launch.args.iter().map(|(name, text)| format!("\n  {name}={text}"));
                    let made_up = launch.made_up.iter().map(|name| format!("\n  {name} made up"));
                    let (args, made_up) = (args.collect::<String>(), made_up.collect::<String>());
                    let options = written_options(&launch.options);
                    format!("{}{args}{made_up}\n  {options:?}\n", launch.grid())
                }
                Err(gap) => format!("not known: {}\n", gap.param.as_deref().unwrap_or("grid")),
            });
        }
    }
    expected.assert_eq(&out);
}

#[test]
fn launches_are_written_with_what_host_code_shows() {
    check_written(
        "
import torch, triton
import triton.language as tl

@triton.heuristics({'EVEN': lambda args: args['n'] % 64 == 0})
@triton.jit
def k(x, y, same, at, seq, some, out, mask, n, eps, inf, flag, nothing, one, EVEN: tl.constexpr, B: tl.constexpr):
    tl.store(out + tl.arange(0, B), eps)

def host():
    x = torch.randn(4, 6, device='cuda', dtype=torch.float16)
    at = torch.randperm(64, device='cuda')[:24].to(torch.int32)
    seq = torch.tensor([[0, 5], [9, 24]], device='cuda', dtype=torch.int32)
    some = (x * 3).to(torch.int64)
    out = torch.empty(4, 6, device='cuda')
    mask = torch.zeros(24, dtype=torch.bool, device='cuda')
    grid = (triton.cdiv(x.numel(), 8), 2)
    k[grid](x, x.t(), x, at, seq, some, out, mask, x.numel(), 1e-6, float('-inf'), True, None, 1, B=32, num_warps=8)
",
        expect![[r#"
            (3, 2)
              x=randn(4, 6, dtype=float16, seed=1)
              y=x
              same=x
              at=arange(0, 24, dtype=int32)
              seq=tensor([0, 5, 9, 24], dtype=int32).view(2, 2)
              some=zeros(4, 6, dtype=int64)
              out=empty(4, 6, dtype=float32)
              mask=zeros(24, dtype=int1)
              n=24
              eps=1e-6
              inf=-1e999
              flag=True
              nothing=None
              one=1
              B=32
              some made up
              [("num_warps", 8)]
        "#]],
    );
}

#[test]
fn what_a_launch_leaves_open_is_told() {
    check_written(
        "
import torch, triton
import triton.language as tl

@triton.jit
def k(x, n, B: tl.constexpr):
    tl.store(x + tl.arange(0, B), n)

def no_size(x, n: int):
    k[(4,)](torch.empty(n), n, B=32)

def no_grid(f):
    k[f()](torch.empty(64), 64, B=32)

def no_number(n: int):
    k[(4,)](torch.empty(64), n, B=32)

def whole():
    k[lambda meta: (triton.cdiv(64, meta['B']),)](torch.empty(64), 64, B=32)
",
        expect![[r#"
            not known: x
            not known: n
            not known: grid
            (2,)
              x=empty(64, dtype=float32)
              n=64
              B=32
              []
        "#]],
    );
}
