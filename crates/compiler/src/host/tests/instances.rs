//! Instances of the project's own classes.

use expect_test::expect;

use crate::specialization::tests::{ADD, check};

#[test]
fn modules_run_what_their_forward_runs() {
    check(
        &format!(
            "{ADD}
from torch import nn
from dataclasses import dataclass

@dataclass
class Config:
    width: int
    block: int = 128

class Inner(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size, dtype=torch.bfloat16))
        self.register_buffer('bias', torch.zeros(size))

    @property
    def block(self):
        return self.size() // 2

    def size(self):
        return self.weight.shape[0]

    def forward(self, x):
        out = torch.empty_like(x)
        add[(1,)](x, self.weight, out, self.bias.numel(), BLOCK=self.block)
        return out

class Outer(Inner):
    WARPS = 8

    def __init__(self, config):
        super().__init__(config.width)
        self.inner = Inner(config.width * 2)
        self.config = config

    def forward(self, x):
        y = self.inner(x)
        add[(1,)](y, y, y, x.numel(), BLOCK=self.config.block, num_warps=self.WARPS)
        return y

model = Outer(Config(64)).eval().cuda()
model(torch.randn(64, dtype=torch.float16))
"
        ),
        expect![[r#"
            add (launch): x_ptr=*fp16:16 y_ptr=*bf16:16 out_ptr=*fp16:16 n=i32:16 BLOCK=64 num_warps=4 num_stages=3
            add (launch): x_ptr=*fp16:16 y_ptr=*fp16:16 out_ptr=*fp16:16 n=i32:16 BLOCK=128 num_warps=8 num_stages=3
        "#]],
    );
}

#[test]
fn a_class_calls_what_its_call_is() {
    check(
        &format!(
            "{ADD}
class Runner:
    def __init__(self, block):
        self.block = block

    def __call__(self, x):
        add[(1,)](x, x, x, x.numel(), BLOCK=self.block)

run = Runner(block=256)
run(torch.rand(1000))
"
        ),
        expect![[r#"
            add (launch): x_ptr=*fp32:16 y_ptr=*fp32:16 out_ptr=*fp32:16 n=i32 BLOCK=256 num_warps=4 num_stages=3
        "#]],
    );
}

#[test]
fn of_classes_with_unknown_bases_nothing_is_known() {
    check(
        &format!(
            "{ADD}
import elsewhere

class Runner(elsewhere.Base):
    def __init__(self, block):
        self.block = block

    def __call__(self, x):
        add[(1,)](x, x, x, x.numel(), BLOCK=self.block)

run = Runner(256)
run(torch.rand(1000))
"
        ),
        expect![[r#"
            add (launch): x_ptr=*fp32:16 y_ptr=*fp32:16 out_ptr=*fp32:16 n=i32 BLOCK=1024 num_warps=4 num_stages=3 assumed x_ptr y_ptr out_ptr BLOCK
        "#]],
    );
}
