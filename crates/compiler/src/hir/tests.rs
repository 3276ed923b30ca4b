//! Lowering of texts, shown as text.

use expect_test::{Expect, expect};

use super::{lower, pretty};
use crate::syntax::Parse;

fn check(text: &str, expected: Expect) {
    expected.assert_eq(&pretty::module(&lower(&Parse::new(text))));
}

#[test]
fn a_kernel_with_its_scenario_and_launch() {
    check(
        r#"
import triton
import triton.language as tl

# tile: n = 98_432
# tile: x, y, out = randn(n), randn(n, seed=1), empty(n)
# tile: add_kernel[(cdiv(n, 1024),)](x, y, out, n, BLOCK_SIZE=1024)
# tile: assert allclose(out, x + y)
@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr = 128):
    """Adds.

    Two vectors.
    """
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n  # tile: allow mask/missing
    if BLOCK_SIZE > 2 and n is not None:
        a, b = x_ptr, -1.5
    elif not n:
        pass
    else:
        return
    for i in tl.static_range(3):
        offsets += i
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)[:, None]
    tl.store(out_ptr + offsets, x, mask)

def add(x, y):
    grid = lambda meta: (triton.cdiv(x.numel(), meta["BLOCK_SIZE"]),)
    with torch.cuda.device(0):
        add_kernel[grid](x, y, x.numel(), BLOCK_SIZE=1024, num_warps=8)
"#,
        expect![[r#"
            triton: import triton
            tl: import triton.language
            add_kernel: function
              @triton.jit
              def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr = 128):
                doc "Adds.\n\nTwo vectors."
                pass
                offsets = ((tl.program_id(0) * BLOCK_SIZE) + tl.arange(0, BLOCK_SIZE))
                mask = (offsets < n)
                if ((BLOCK_SIZE > 2) and (n is not None)):
                  (a, b) = (x_ptr, (-1.5))
                else:
                  if (not n):
                    pass
                  else:
                    return
                for i in tl.static_range(3):
                  offsets += i
                x = tl.load((x_ptr + offsets), mask=mask, other=0.0)[(:, None)]
                tl.store((out_ptr + offsets), x, mask)
            add: function
              def add(x, y):
                grid = (lambda meta: (triton.cdiv(x.numel(), meta["BLOCK_SIZE"]),))
                with torch.cuda.device(0):
                  add_kernel[grid](x, y, x.numel(), BLOCK_SIZE=1024, num_warps=8)
            launch in module: add_kernel[(cdiv(n, 1024),)](x, y, out, n, BLOCK_SIZE=1024)
            launch in add: add_kernel[grid](x, y, x.numel(), BLOCK_SIZE=1024, num_warps=8)
            scenario:
              n = 98432
              (x, y, out) = (randn(n), randn(n, seed=1), empty(n))
              add_kernel[(cdiv(n, 1024),)](x, y, out, n, BLOCK_SIZE=1024)
              assert allclose(out, (x + y))
            allow mask/missing on this line
        "#]],
    );
}

#[test]
fn try_statements() {
    check(
        "
def run(path):
    try:
        import fast
        value = fast.load(path)
    except (OSError, ValueError) as error:
        value = str(error)
    except:
        raise
    else:
        print(value)
    finally:
        close(path)
    try:
        pass
    except* KeyError:
        pass
    return value
",
        expect![[r#"
            run: function
              def run(path):
                try:
                  <Import>
                  value = fast.load(path)
                except (OSError, ValueError) as error:
                  value = str(error)
                except:
                  <Raise>
                else:
                  print(value)
                finally:
                  close(path)
                try:
                  pass
                except KeyError:
                  pass
                return value
            run.fast: import fast
        "#]],
    );
}

#[test]
fn scenarios_inside_of_statements_launch_once() {
    for text in [
        "def main(x):\n    y = f(\n        # tile: k[(1,)](x, B=4)\n        x)\n",
        "def main(x):\n    try:\n        return f(x)\n# tile: k[(1,)](x, B=4)\n    finally:\n        g()\n",
    ] {
        let launches = lower(&Parse::new(text)).launches;
        assert_eq!(launches.len(), 1, "{text}");
        assert_eq!(launches[0].host, None, "host code does not launch it");
    }
}
