//! Kernels that calls tune, and decorators of a project's own.

use expect_test::expect;

use super::check;

const KERNEL: &str = "
import torch, triton
import triton.language as tl

CONFIGS = [triton.Config({'BLOCK': b}, num_warps=w) for b, w in ((64, 2), (128, 4))]

";

const BODY: &str = "
def kernel(x, n, BLOCK: tl.constexpr, EVEN: tl.constexpr = False):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, 1.0, mask=i < n)

";

fn check_tuned(decorators: &str, after: &str, expected: expect_test::Expect) {
    check(&format!("{KERNEL}{decorators}{BODY}{after}"), expected);
}

const LAUNCH: &str = "
def run():
    x = torch.empty(1000, dtype=torch.float16)
    tuned[lambda meta: (triton.cdiv(1000, meta['BLOCK']),)](x, 1000)
";

#[test]
fn a_call_tunes() {
    let after = format!("tuned = triton.autotune(configs=CONFIGS, key=['n'])(kernel)\n{LAUNCH}");
    check_tuned(
        "@triton.jit",
        &after,
        expect![[r#"
            kernel (autotune): x=*fp16:16 n=i32 BLOCK=64 EVEN=False num_warps=2 num_stages=3
            kernel (autotune): x=*fp16:16 n=i32 BLOCK=128 EVEN=False num_warps=4 num_stages=3
        "#]],
    );
}

#[test]
fn calls_tune_in_each_other_and_by_helpers() {
    let after = "
def tune(kernel):
    return triton.autotune(CONFIGS, key=['n'])(kernel)

tuned = triton.heuristics({'EVEN': lambda args: args['n'] % 8 == 0})(tune(triton.jit(kernel)))
";
    check_tuned(
        "",
        &format!("{after}{LAUNCH}"),
        expect![[r#"
            kernel (autotune): x=*fp16:16 n=i32 BLOCK=64 EVEN=True num_warps=2 num_stages=3
            kernel (autotune): x=*fp16:16 n=i32 BLOCK=128 EVEN=True num_warps=4 num_stages=3
        "#]],
    );
}

#[test]
fn the_kernel_itself_goes_untuned() {
    let after = "
tuned = triton.autotune(configs=CONFIGS, key=['n'])(kernel)

def run():
    x = torch.empty(1000, dtype=torch.float16)
    kernel[(8,)](x, 1000, BLOCK=256, num_warps=8)
";
    check_tuned(
        "@triton.jit",
        after,
        expect![[r#"
            kernel (launch): x=*fp16:16 n=i32 BLOCK=256 EVEN=False num_warps=8 num_stages=3
        "#]],
    );
}

#[test]
fn decorators_of_the_project_tune() {
    let decorators = "
def tuned_for(rows):
    configs = [triton.Config({'BLOCK': rows * times}) for times in (1, 2)]
    def decorate(kernel):
        return triton.autotune(configs=configs, key=['n'])(kernel)
    return decorate

@tuned_for(32)
@triton.jit";
    let after = LAUNCH.replace("tuned", "kernel");
    check_tuned(
        decorators,
        &after,
        expect![[r#"
            kernel (autotune): x=*fp16:16 n=i32 BLOCK=32 EVEN=False num_warps=4 num_stages=3
            kernel (autotune): x=*fp16:16 n=i32 BLOCK=64 EVEN=False num_warps=4 num_stages=3
        "#]],
    );
}

#[test]
fn variables_hold_decorators() {
    let decorators = "
tune = triton.autotune(configs=CONFIGS[:1], key=['n'])

@tune
@triton.jit";
    let after = LAUNCH.replace("tuned", "kernel");
    check_tuned(
        decorators,
        &after,
        expect![[r#"
            kernel (autotune): x=*fp16:16 n=i32 BLOCK=64 EVEN=False num_warps=2 num_stages=3
        "#]],
    );
}

#[test]
fn decorators_that_tune_nothing_change_nothing() {
    let decorators = "
def logged(kernel):
    return kernel

@logged
@triton.jit";
    let after = "
def run():
    kernel[(8,)](torch.empty(1000, dtype=torch.float16), 1000, BLOCK=256)
";
    check_tuned(
        decorators,
        after,
        expect![[r#"
            kernel (launch): x=*fp16:16 n=i32 BLOCK=256 EVEN=False num_warps=4 num_stages=3
        "#]],
    );
}

#[test]
fn functions_tune_what_they_launch() {
    let after = "
def tune(kernel, blocks):
    configs = [triton.Config({'BLOCK': b}) for b in blocks]
    return triton.autotune(configs=configs, key=['n'])(kernel)

def launch(tuned, n):
    x = torch.empty(n, dtype=torch.float16)
    grid = lambda meta: (triton.cdiv(n, meta['BLOCK']),)
    torch.library.wrap_triton(tuned)[grid](x, n)

def large():
    launch(tune(kernel, (64, 128)), 1000)

def small():
    even = triton.heuristics({'EVEN': lambda args: args['n'] % 8 == 0})
    launch(even(tune(kernel, (16,))), 32)

def plain():
    kernel[(8,)](torch.empty(1000), 1000, BLOCK=256)
";
    check_tuned(
        "@triton.jit",
        after,
        expect![[r#"
        kernel (launch): x=*fp32:16 n=i32 BLOCK=256 EVEN=False num_warps=4 num_stages=3
        kernel (autotune): x=*fp16:16 n=i32 BLOCK=64 EVEN=False num_warps=4 num_stages=3
        kernel (autotune): x=*fp16:16 n=i32 BLOCK=128 EVEN=False num_warps=4 num_stages=3
        kernel (autotune): x=*fp16:16 n=i32:16 BLOCK=16 EVEN=True num_warps=4 num_stages=3
    "#]],
    );
}

#[test]
fn one_of_several_tuners_is_chosen() {
    let after = "
def tune(blocks):
    configs = [triton.Config({'BLOCK': b}) for b in blocks]
    return triton.autotune(configs=configs, key=['n'])(kernel)

def run(fast: bool, n):
    if fast:
        tuned = tune((64, 128))
    else:
        tuned = tune((256,))
    tuned[lambda meta: (triton.cdiv(n, meta['BLOCK']),)](torch.empty(n), n)
";
    check_tuned(
        "@triton.jit",
        after,
        expect![[r#"
        kernel (autotune): x=*fp32:16 n=i32 BLOCK=256 EVEN=False num_warps=4 num_stages=3 assumed n
        kernel (autotune): x=*fp32:16 n=i32 BLOCK=64 EVEN=False num_warps=4 num_stages=3 assumed n
        kernel (autotune): x=*fp32:16 n=i32 BLOCK=128 EVEN=False num_warps=4 num_stages=3 assumed n
    "#]],
    );
}
