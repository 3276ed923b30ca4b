//! Sizes and strides of what PyTorch's functions and modules make; those stated are PyTorch's own.

use crate::host::tests::*;

/// Numbers as the digits of one of base 1000, behind how many there are.
fn number_of(numbers: &[u32]) -> i128 {
    numbers.iter().fold(numbers.len() as i128, |all, number| all * 1000 + i128::from(*number))
}

/// What the expression `made` has by `tells`, as such a number; `None` where it is not known.
fn told(made: &str, tells: &str) -> Option<i128> {
    let code = format!(
        "from torch import nn; from torch.nn import functional as F; y = {made}; c = y.dim(); \
         for s in y.{tells}: c = c * 1000 + s; x = torch.empty(c)"
    );
    elements(&code, true)
}

#[test]
fn sizes_are_those_of_pytorch() {
    let shapes: &[(&str, &[u32], &[u32])] = &[
        (r#"torch.ones(5, 6).repeat_interleave(3)"#, &[90], &[1]),
        (r#"torch.ones(5, 6).repeat_interleave(3, dim=1)"#, &[5, 18], &[18, 1]),
        (r#"torch.repeat_interleave(torch.ones(5, 6), 2, 0)"#, &[10, 6], &[6, 1]),
        (r#"torch.ones(50).unfold(0, 10, 5)"#, &[9, 10], &[5, 1]),
        (r#"torch.ones(4, 20, 3).unfold(1, 4, 3)"#, &[4, 6, 3, 4], &[60, 9, 1, 3]),
        (r#"torch.ones(10, 20)[3:7, ::2]"#, &[4, 10], &[20, 2]),
        (r#"torch.ones(10, 20)[::3]"#, &[4, 20], &[60, 1]),
        (r#"torch.ones(10, 20)[1:9:2, 5]"#, &[4], &[40]),
        (r#"torch.ones(10, 20)[..., 1::7]"#, &[10, 3], &[20, 7]),
        (r#"torch.ones(10, 20)[::1, None, -5::2]"#, &[10, 1, 3], &[20, 20, 2]),
        (r#"torch.einsum("ij,jk->ik", torch.ones(10, 20), torch.ones(20, 7))"#, &[10, 7], &[7, 1]),
        (
            r#"torch.einsum("b h d, b d -> h b", torch.ones(3, 4, 5), torch.ones(3, 5))"#,
            &[4, 3],
            &[1, 4],
        ),
        (r#"torch.einsum("ij,jk", torch.ones(10, 20), torch.ones(20, 7))"#, &[10, 7], &[7, 1]),
        (r#"torch.einsum("ii", torch.ones(10, 10))"#, &[], &[]),
        (r#"torch.einsum("ij,ij->", [torch.ones(3, 4), torch.ones(3, 4)])"#, &[], &[]),
        (
            r#"torch.zeros(10, 5).scatter_(1, torch.zeros(10, 1, dtype=torch.int64), 1.0)"#,
            &[10, 5],
            &[5, 1],
        ),
        (
            r#"torch.zeros(10, 5).scatter(1, torch.zeros(10, 1, dtype=torch.int64), 1.0)"#,
            &[10, 5],
            &[5, 1],
        ),
        (
            r#"torch.zeros(10).index_add_(0, torch.zeros(3, dtype=torch.int64), torch.ones(3))"#,
            &[10],
            &[1],
        ),
        (r#"torch.zeros(10, 5).clamp_(min=0).sqrt_()"#, &[10, 5], &[5, 1]),
        (r#"F.one_hot(torch.arange(5), 8)"#, &[5, 8], &[8, 1]),
        (
            r#"F.one_hot(torch.zeros(2, 3, dtype=torch.int64), num_classes=4)"#,
            &[2, 3, 4],
            &[12, 4, 1],
        ),
        (r#"torch.ones(10, 20).tensor_split(3)[0]"#, &[4, 20], &[20, 1]),
        (r#"torch.ones(10, 20).tensor_split(3, dim=1)[2]"#, &[10, 6], &[20, 1]),
        (r#"torch.tensor_split(torch.ones(10, 20), (2, 5))[1]"#, &[3, 20], &[20, 1]),
        (r#"torch.ones(10, 20).diagonal()"#, &[10], &[21]),
        (r#"torch.diagonal(torch.ones(3, 10, 20), dim1=0, dim2=2)"#, &[10, 3], &[20, 201]),
        (
            r#"F.conv2d(torch.ones(1, 3, 8, 8), torch.ones(5, 3, 3, 3), padding=1)"#,
            &[1, 5, 8, 8],
            &[320, 64, 8, 1],
        ),
        (
            r#"F.conv2d(torch.ones(2, 4, 9, 11), torch.ones(6, 2, 3, 2), None, (2, 1), 0, 2, 2)"#,
            &[2, 6, 3, 9],
            &[162, 27, 9, 1],
        ),
        (
            r#"F.conv2d(torch.ones(2, 4, 9, 11), torch.ones(6, 4, 3, 3), padding="same")"#,
            &[2, 6, 9, 11],
            &[594, 99, 11, 1],
        ),
        (
            r#"F.conv1d(torch.ones(2, 4, 30), torch.ones(6, 4, 5), stride=3)"#,
            &[2, 6, 9],
            &[54, 9, 1],
        ),
        (r#"F.conv1d(torch.ones(4, 30), torch.ones(6, 4, 5))"#, &[6, 26], &[26, 1]),
        (
            r#"F.conv3d(torch.ones(2, 1, 5, 6, 7), torch.ones(2, 1, 2, 2, 2))"#,
            &[2, 2, 4, 5, 6],
            &[240, 120, 30, 6, 1],
        ),
        (r#"F.max_pool2d(torch.ones(1, 3, 8, 9), 2)"#, &[1, 3, 4, 4], &[48, 16, 4, 1]),
        (r#"F.max_pool2d(torch.ones(3, 8, 9), (3, 2), 1, 1)"#, &[3, 8, 10], &[80, 10, 1]),
        (
            r#"F.avg_pool2d(torch.ones(1, 3, 8, 9), 3, stride=2, padding=1)"#,
            &[1, 3, 4, 5],
            &[60, 20, 5, 1],
        ),
        (r#"F.avg_pool1d(torch.ones(1, 3, 9), 4)"#, &[1, 3, 2], &[6, 2, 1]),
        (r#"F.max_pool1d(torch.ones(1, 3, 9), 2, dilation=3, stride=1)"#, &[1, 3, 6], &[18, 6, 1]),
        (
            r#"F.interpolate(torch.ones(1, 2, 8, 8), scale_factor=2)"#,
            &[1, 2, 16, 16],
            &[512, 256, 16, 1],
        ),
        (r#"F.interpolate(torch.ones(1, 2, 8, 8), size=5)"#, &[1, 2, 5, 5], &[50, 25, 5, 1]),
        (
            r#"F.interpolate(torch.ones(1, 2, 8, 8), (5, 7), mode="bilinear")"#,
            &[1, 2, 5, 7],
            &[70, 35, 7, 1],
        ),
        (r#"F.unfold(torch.ones(1, 2, 5, 5), 3)"#, &[1, 18, 9], &[162, 9, 1]),
        (
            r#"F.unfold(torch.ones(1, 2, 7, 5), (3, 2), dilation=1, padding=1, stride=2)"#,
            &[1, 12, 12],
            &[144, 12, 1],
        ),
        (
            r#"F.scaled_dot_product_attention(torch.ones(2, 3, 5, 8), torch.ones(2, 3, 7, 8), torch.ones(2, 3, 7, 9))"#,
            &[2, 3, 5, 9],
            &[135, 45, 9, 1],
        ),
        (r#"nn.Conv2d(3, 5, 3).weight"#, &[5, 3, 3, 3], &[27, 9, 3, 1]),
        (r#"nn.Conv2d(4, 6, (3, 2), groups=2).weight"#, &[6, 2, 3, 2], &[12, 6, 2, 1]),
        (r#"nn.Conv1d(4, 6, 3).bias"#, &[6], &[1]),
        (
            r#"nn.Conv2d(3, 5, 3, stride=2, padding=1)(torch.ones(2, 3, 9, 9))"#,
            &[2, 5, 5, 5],
            &[125, 25, 5, 1],
        ),
        (r#"nn.Linear(8, 5)(torch.ones(3, 8))"#, &[3, 5], &[5, 1]),
        (r#"nn.Linear(8, 5, bias=False)(torch.ones(2, 3, 8))"#, &[2, 3, 5], &[15, 5, 1]),
        (r#"nn.Embedding(8, 5)(torch.zeros(2, 3, dtype=torch.int64))"#, &[2, 3, 5], &[15, 5, 1]),
        (r#"nn.LayerNorm(8)(torch.ones(3, 8))"#, &[3, 8], &[8, 1]),
        (r#"nn.Sequential(nn.Linear(8, 5), nn.ReLU())(torch.ones(3, 8))"#, &[3, 5], &[5, 1]),
        (
            r#"nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(72, 7))(torch.ones(3, 1, 8, 8))"#,
            &[3, 7],
            &[7, 1],
        ),
        (r#"nn.Sequential(nn.Linear(8, 5), nn.ReLU())[0].weight"#, &[5, 8], &[8, 1]),
        (
            r#"nn.ModuleList([nn.Linear(8, 5), nn.Linear(5, 2)])[-1](torch.ones(4, 5))"#,
            &[4, 2],
            &[2, 1],
        ),
        (r#"torch.meshgrid(torch.arange(3), torch.arange(4), indexing="ij")[0]"#, &[3, 4], &[1, 0]),
        (
            r#"torch.meshgrid(torch.arange(3), torch.arange(4), torch.arange(5), indexing="xy")[2]"#,
            &[4, 3, 5],
            &[0, 0, 1],
        ),
        (r#"torch.meshgrid([torch.arange(3), torch.arange(4)])[1]"#, &[3, 4], &[0, 1]),
        (r#"torch.where(torch.ones(10, 1) > 0, torch.ones(1, 4), 0.0)"#, &[10, 4], &[4, 1]),
        (r#"torch.where(torch.ones(10, 1) > 0, 1.0, 0.0)"#, &[10, 1], &[1, 1]),
        (r#"torch.ones(1, 4).where(torch.ones(10, 1) > 0, torch.zeros(4))"#, &[10, 4], &[4, 1]),
        (r#"torch.complex(torch.ones(8, 3), torch.ones(8, 3)).real"#, &[8, 3], &[6, 2]),
        (r#"torch.complex(torch.ones(8, 3), torch.ones(8, 3)).imag"#, &[8, 3], &[6, 2]),
        (r#"torch.hstack([torch.ones(2, 3), torch.ones(2, 4)])"#, &[2, 7], &[7, 1]),
        (r#"torch.hstack([torch.ones(2), torch.ones(4)])"#, &[6], &[1]),
        (r#"torch.vstack([torch.ones(2, 3), torch.ones(3)])"#, &[3, 3], &[3, 1]),
        (r#"torch.dstack((torch.ones(2, 3), torch.ones(2, 3)))"#, &[2, 3, 2], &[6, 2, 1]),
        (r#"torch.column_stack((torch.ones(4), torch.ones(4, 3)))"#, &[4, 4], &[4, 1]),
        (r#"torch.broadcast_to(torch.ones(3, 1), (3, 5))"#, &[3, 5], &[1, 0]),
        (r#"torch.movedim(torch.ones(2, 3, 4), 0, -1)"#, &[3, 4, 2], &[4, 1, 12]),
        (r#"torch.ones(2, 3, 4, 5).movedim((0, 1), (2, 0))"#, &[3, 4, 2, 5], &[20, 5, 60, 1]),
        (r#"torch.kron(torch.ones(2, 2), torch.ones(3, 4))"#, &[6, 8], &[8, 1]),
        (r#"torch.kron(torch.ones(2), torch.ones(3, 4))"#, &[3, 8], &[8, 1]),
        (r#"torch.cdist(torch.ones(4, 5), torch.ones(6, 5))"#, &[4, 6], &[6, 1]),
        (r#"torch.cdist(torch.ones(2, 4, 5), torch.ones(2, 6, 5))"#, &[2, 4, 6], &[24, 6, 1]),
        (
            r#"torch.block_diag(torch.ones(2, 2), torch.ones(3, 4), torch.ones(5))"#,
            &[6, 11],
            &[11, 1],
        ),
        (r#"torch.ones(2, 3).tile(2, 2)"#, &[4, 6], &[6, 1]),
        (r#"torch.ones(2, 3).tile((3,))"#, &[2, 9], &[9, 1]),
        (r#"torch.tile(torch.ones(3), (2, 2))"#, &[2, 6], &[6, 1]),
        (r#"torch.normal(0.0, 1.0, size=(3, 4))"#, &[3, 4], &[4, 1]),
        (r#"torch.normal(torch.zeros(3), 1.0)"#, &[3], &[1]),
        (r#"torch.diff(torch.ones(4, 10))"#, &[4, 9], &[9, 1]),
        (r#"torch.ones(4, 10).diff(2, 0)"#, &[2, 10], &[10, 1]),
        (r#"torch.multinomial(torch.ones(3, 10), 4)"#, &[3, 4], &[4, 1]),
        (r#"torch.histc(torch.ones(10), bins=7)"#, &[7], &[1]),
        (r#"torch.var_mean(torch.ones(4, 5), dim=1)[0]"#, &[4], &[1]),
        (r#"torch.var_mean(torch.ones(4, 5), dim=1, keepdim=True)[1]"#, &[4, 1], &[1, 1]),
        (r#"torch.tril_indices(5, 6)"#, &[2, 15], &[15, 1]),
        (r#"torch.triu_indices(5, 6, offset=1)"#, &[2, 15], &[15, 1]),
        (r#"torch.triu_indices(7, 3, offset=-1)"#, &[2, 9], &[9, 1]),
        (r#"torch.ones(32).as_strided((4, 4), (8, 1))"#, &[4, 4], &[8, 1]),
        (r#"torch.ones(4, 5).masked_fill(torch.ones(5, dtype=torch.bool), 0.0)"#, &[4, 5], &[5, 1]),
        (r#"torch.sort(torch.ones(4, 5))[1]"#, &[4, 5], &[5, 1]),
        (r#"torch.ones(5, 7).t().sort(0)[0]"#, &[7, 5], &[1, 7]),
        (r#"torch.ones(5, 7).t().argsort(0)"#, &[7, 5], &[1, 7]),
        (r#"torch.ones(5, 7).t().diff()"#, &[7, 4], &[1, 7]),
        (r#"torch.ones(5, 7).t().tile(1, 2)"#, &[7, 10], &[10, 1]),
        (r#"torch.ones(5, 7).t().repeat_interleave(2, 0)"#, &[14, 5], &[5, 1]),
        (
            r#"torch.ones(5, 7).t().scatter(0, torch.zeros(1, 5, dtype=torch.int64), 1.0)"#,
            &[7, 5],
            &[5, 1],
        ),
        (
            r#"torch.ones(5, 7).t().masked_fill(torch.ones(5, dtype=torch.bool), 0.0)"#,
            &[7, 5],
            &[5, 1],
        ),
        (r#"torch.where(torch.ones(5, 7).t() > 0, 1.0, 0.0)"#, &[7, 5], &[1, 7]),
        (r#"torch.where(torch.ones(7, 5) > 0, torch.ones(5, 7).t(), 0.0)"#, &[7, 5], &[5, 1]),
        (r#"torch.ones(5, 7).t().unfold(0, 3, 2)"#, &[3, 5, 3], &[2, 7, 1]),
        (r#"torch.ones(5, 7).t().diagonal()"#, &[5], &[8]),
        (r#"torch.ones(5, 7).t()[::2, 1:]"#, &[4, 4], &[2, 7]),
        (r#"torch.cdist(torch.ones(5, 7).t(), torch.ones(5, 7).t())"#, &[7, 7], &[7, 1]),
        (r#"torch.complex(torch.ones(5, 7).t(), torch.ones(5, 7).t()).real"#, &[7, 5], &[2, 14]),
        (
            r#"F.max_pool2d(torch.ones(2, 3, 8, 9).transpose(2, 3), 2)"#,
            &[2, 3, 4, 4],
            &[48, 16, 4, 1],
        ),
        (
            r#"F.interpolate(torch.ones(1, 2, 8, 8).transpose(2, 3), size=5)"#,
            &[1, 2, 5, 5],
            &[50, 25, 5, 1],
        ),
        (r#"F.one_hot(torch.zeros(2, 3, dtype=torch.int64).t(), 4)"#, &[3, 2, 4], &[8, 4, 1]),
        (r#"nn.Linear(5, 3)(torch.ones(5, 7).t())"#, &[7, 3], &[3, 1]),
        (r#"nn.ReLU()(torch.ones(5, 7).t())"#, &[7, 5], &[1, 7]),
        (r#"nn.Dropout(0.1)(torch.ones(5, 7).t())"#, &[7, 5], &[1, 7]),
        (
            r#"nn.Embedding(8, 5)(torch.zeros(2, 3, dtype=torch.int64).t())"#,
            &[3, 2, 5],
            &[10, 5, 1],
        ),
        (r#"torch.normal(torch.zeros(5, 7).t(), 1.0)"#, &[7, 5], &[5, 1]),
        (r#"torch.hstack([torch.ones(5, 7).t(), torch.ones(7, 2)])"#, &[7, 7], &[7, 1]),
        (
            r#"torch.meshgrid(torch.arange(12)[::3], torch.arange(5), indexing="ij")[0]"#,
            &[4, 5],
            &[3, 0],
        ),
        (r#"torch.ones(5, 7).t().tensor_split(3)[1]"#, &[2, 5], &[1, 7]),
        (r#"torch.ones(5, 7).t().movedim(0, 1)"#, &[5, 7], &[7, 1]),
        (r#"torch.var_mean(torch.ones(5, 7).t(), dim=0)[0]"#, &[5], &[1]),
        (r#"torch.ones(5, 7).t().clamp_(min=0)"#, &[7, 5], &[1, 7]),
        (
            r#"torch.ones(5, 7).t().index_fill(0, torch.zeros(1, dtype=torch.int64), 2.0)"#,
            &[7, 5],
            &[1, 7],
        ),
        (r#"torch.kron(torch.ones(2, 2), torch.ones(2, 3))"#, &[4, 6], &[6, 1]),
        (r#"torch.broadcast_to(torch.ones(5, 1).t(), (3, 5))"#, &[3, 5], &[0, 1]),
        (r#"torch.block_diag(torch.ones(5, 7).t(), torch.ones(1, 2))"#, &[8, 7], &[7, 1]),
        (r#"torch.ones(3, 5, 7).transpose(0, 1).sort()[1]"#, &[5, 3, 7], &[7, 35, 1]),
    ];
    let wrong = shapes.iter().filter_map(|(made, shape, strides)| {
        let (sizes, steps) = (told(made, "shape"), told(made, "stride()"));
        let is_right = sizes == Some(number_of(shape))
            // A library may choose the order of elements.
            && steps.is_none_or(|steps| steps == number_of(strides));
        (!is_right).then(|| format!("{made}: {sizes:?} {steps:?}, not {shape:?} {strides:?}\n"))
    });
    let wrong: String = wrong.collect();
    assert!(wrong.is_empty(), "{wrong}");
}
