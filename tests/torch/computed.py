"""Asks tile what numbers PyTorch's functions make, with PyTorch as the oracle.

    python tests/torch/computed.py TILE

Each expression, with statements before it, is computed by PyTorch on numbers that are written down. A program computes it anew, copies the result
with a kernel and compares it with what PyTorch computed: that must be silent (`WRONG` where it is not). Compared with
something else it must be told of; where it is not, tile does not compute the expression (`unknown`). The same is asked
of the gradients of what each expression is made of. Needs PyTorch (a build for CPU will do), no GPU.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
import torch.nn.functional as F

INPUTS = {
    "x": torch.randn(4, 6, generator=torch.Generator().manual_seed(1)),
    "y": torch.randn(4, 6, generator=torch.Generator().manual_seed(2)),
    "p": torch.rand(4, 6, generator=torch.Generator().manual_seed(3)) + 0.1,
    "r": torch.randn(6, generator=torch.Generator().manual_seed(4)),
    "m": torch.randn(6, 5, generator=torch.Generator().manual_seed(5)),
    "b": torch.randn(2, 4, 6, generator=torch.Generator().manual_seed(6)),
    "c": torch.randn(2, 6, 4, generator=torch.Generator().manual_seed(7)),
    "k": torch.randn(4, 4, 3, generator=torch.Generator().manual_seed(8)),
    "g": torch.randn(2, 4, 5, 6, generator=torch.Generator().manual_seed(9)),
    "w": torch.randn(6, 2, 3, 3, generator=torch.Generator().manual_seed(10)),
    "i": torch.tensor([3, 0, 5, 1]),
    "j": torch.tensor([[1, 2], [0, 5], [3, 3], [4, 0]]),
}

# More, of which only gradients are asked.
DIFFERENTIATED = """
x.clone().mul_(y) | x.detach() * y | torch.stack([x, x * y]).sum(0)[1] | (x[:, :2] * y[:, 2:4]).t() | x.t() @ y | x.view(-1)[3:9] * r
torch.zeros(5, 6).index_add(0, i.clamp(max=3), x) | torch.zeros(4, 6).scatter_add(1, j, x[:, :2] * 2) | b.reshape(8, 6)[::2] * x
torch.cat([x, y], 1).chunk(2, dim=1)[0] * 2 | x.unsqueeze(0).expand(3, 4, 6) * y | x / x.norm(dim=-1, keepdim=True) | x.min(dim=0).values
x.type_as(y) | x.float().type_as(p) * y | x.softmax(-1) @ m | F.silu(x) * (y + x) | F.scaled_dot_product_attention(g, g * 0.5, g + 1, is_causal=True) | (x.float() * 3).double().float()
x.masked_fill(x > 0, float("-inf")).softmax(-1) | torch.where(x > 0, x * y, 0.0) | x[i.clamp(max=3), i] | (x.half() * 2).float()
"""

# Statements that change tensors in place, with what is looked at after them; no gradients are asked.
CHANGES = """
z = x.clone(); z[:, 1:3] += y[:, 1:3]; z | z = x.clone(); z.t()[2] = r[:4]; z | z = x.clone(); z[1:][:, ::2] *= 3.0; z
z = x.clone(); v = z[2:]; v += 1; v[0] = y[3]; z | z = x.clone(); v = z[:, :3]; v.mul_(2).add_(1); z | z = x.clone(); z[:, 3:].zero_(); z
z = x > 0; z = z.repeat_interleave(2, dim=1)[:, :7]; z &= y[:, :1] < 0.5; z.float() | z = b.clone(); z[0].t().copy_(c[1]); z
z = torch.zeros(4, 6); z[i.clamp(max=3), i] = 5.0; z | z = torch.zeros(4, 6, dtype=torch.int32); v = z[:, 1:]; v[2] = i.repeat(2)[:5]; v -= 1; z.float()
z = x.clone(); v = z.view(-1)[7:19].view(3, 4); v[:, 1] = r[:3]; v.masked_fill_(v > 1, 0.0); z | z = x.clone(); z[..., 2].fill_(7.0); z.transpose(0, 1)
z = x.clone(); u, v = z.chunk(2, dim=1); u.copy_(v * 2); v -= u; z | z = x.clone(); z.diagonal().zero_(); z | z = sum([x, y, p], r); z | z = x * float(any(n > 5 for n in i)); z
z = torch.empty(4, 6); z[:, :2] = x[:, :2]; z[:, slice(2, None)] = y[:, 2:]; z | z = torch.empty(4, 6); z[0] = r; z[1:3].fill_(2.0); z[3] = z[0] * 2; z
z = torch.empty(4, 6, dtype=torch.int32); z[:, ::2] = 3; z[:, 1::2].zero_(); z[0, 0] = z[1, 2] + 1; z.float() | z = torch.empty(4); z[0] = 1.0; z[1:] = z[0] + r[:3]; z
z = x.scatter_reduce(1, j, y[:, :2], "sum"); z | z = x.scatter_reduce(1, j, y[:, :2], "mean"); z | z = x.scatter_reduce(1, j, y[:, :2], reduce="amax"); z
z = x.scatter_reduce(1, j, y[:, :2], "prod", include_self=False); z | z = x.scatter_reduce(1, j, y[:, :2], "mean", include_self=False); z
z = x.clone(); z.scatter_reduce_(0, j.clamp(max=3), y[:, :2], "amin"); z | z = x.index_reduce(0, i.clamp(max=3), y, "mean"); z | z = x.index_reduce(0, i.clamp(max=3), y, "mean", include_self=False); z
z = x.index_reduce(1, i, y[:, :4], "amax", include_self=False); z | z = x.clone(); z.index_reduce_(1, i, y[:, :4], "prod"); z | z = x.index_reduce(0, i.clamp(max=2), y, "amin"); z
z = torch.zeros(4, 6); z[i[3]][:] = x[0]; z[2, i[0]] = 7.0; z | z = torch.zeros(4, 6); v = z[i[1]]; v += 2; z[:, i[0]].mul_(3); z | z = x[i[3], 1:] + y[:, i[2]].sum(); z
z = torch.empty(4, 5); torch.matmul(x, m, out=z); z | z = torch.empty(4, 6); torch.add(x, y, out=z); z * 2 | z = x.clone(); torch.mul(z[1:3], 2.0, out=z[1:3]); z
z = torch.empty(4, 6).copy_(x).mul_(2).t(); z | z = torch.zeros(3).add_(1).add(r[:3]); z | z = torch.nn.init.ones_(torch.empty(4, 6)) * x; z
"""

EXPRESSIONS = """
x + y | x - 2 * y | x / p | x ** 2 | p ** 0.5 | -x | x.abs() | x.exp() | p.log() | p.log2() | p.log10() | x.expm1()
p.log1p() | p.sqrt() | p.rsqrt() | x.sin() | x.cos() | x.tan() | x.tanh() | x.sinh() | x.cosh() | x.atan() | x.erf()
torch.erfc(x) | torch.sigmoid(x) | F.silu(x) | F.gelu(x) | F.gelu(x, approximate="tanh") | F.relu(x) | F.relu6(x * 4)
F.leaky_relu(x) | F.leaky_relu(x, 0.2) | F.softplus(x) | F.mish(x) | F.hardswish(x * 3) | F.logsigmoid(x) | x.clamp(-0.5, 0.5)
x.clamp(min=0.1) | torch.maximum(x, y) | torch.minimum(x, y) | torch.max(x, y) | torch.where(x > 0, x, y)
x.masked_fill(x > 0, 2.0) | x.lerp(y, 0.3) | torch.addcmul(x, y, p, value=0.5) | torch.addcdiv(x, y, p) | x.round() | x.floor()
x.sum() | x.sum(1) | x.sum(dim=0, keepdim=True) | x.mean() | x.mean(-1, keepdim=True) | x.amax(1) | x.max(dim=1).values
x.max(dim=1).indices.float() | x.argmin(dim=0).float() | x.prod(1) | x.var(-1) | x.var(-1, unbiased=False) | x.std(0)
x.std(dim=1, keepdim=True) | torch.var(x, dim=1, correction=0) | x.norm() | x.norm(dim=1) | x.norm(p=2, dim=-1, keepdim=True)
torch.logsumexp(x, dim=1) | x.logsumexp(-1, keepdim=True) | x.cumsum(1) | x.cumprod(0) | torch.softmax(x, dim=1)
F.softmax(x, -1) | x.softmax(dim=0) | F.log_softmax(x, dim=-1) | torch.softmax(x, axis=1) | F.normalize(x) | F.normalize(x, dim=0)
F.normalize(x, p=2, dim=-1) | x @ m | torch.matmul(b, c) | torch.bmm(b, c) | torch.mm(x, m) | b @ m | x @ r
torch.dot(r, r) | torch.outer(r, r) | F.linear(x, m.T.contiguous()) | F.linear(x, y, x[:, 0]) | torch.addmm(x[:, :5], x, m)
torch.einsum("ij,jk->ik", x, m) | torch.einsum("bij,bjk->bik", b, c) | torch.einsum("ij,ij->i", x, y) | torch.einsum("ij->ji", x)
torch.einsum("bij,bkj->bik", b, b[:1]) | torch.einsum("bij,jk->bik", b, m) | torch.einsum("ij,jk", x, m) | torch.einsum("i,j->ij", r, r)
F.layer_norm(x, (6,)) | F.layer_norm(x, (6,), r, r) | F.layer_norm(b, (4, 6), eps=1e-3) | F.rms_norm(x, (6,), eps=1e-6)
F.rms_norm(x, (6,), r, 1e-5) | F.scaled_dot_product_attention(b, b, b) | F.scaled_dot_product_attention(b, b * 2, b + 1, is_causal=True)
F.scaled_dot_product_attention(b, b, b, scale=0.3) | F.scaled_dot_product_attention(b, b, b, attn_mask=b @ b.transpose(1, 2) > 0)
F.cross_entropy(x, i) | F.cross_entropy(x, i, reduction="none") | F.cross_entropy(x, i, reduction="sum", label_smoothing=0.1)
F.cross_entropy(x, i, ignore_index=0) | F.mse_loss(x, y) | F.mse_loss(x, y, reduction="sum") | F.l1_loss(x, y)
F.binary_cross_entropy_with_logits(x, p) | torch.cdist(x, y) | F.conv1d(b, k) | F.conv1d(b, k, padding=1, stride=2)
F.conv1d(b, k[:, :1].contiguous(), groups=4, padding=2) | F.conv2d(g, w[:, :2].repeat(1, 2, 1, 1), stride=2, padding=1)
F.conv2d(g, w, groups=2) | F.conv2d(g, w, r, padding=(1, 0), dilation=(1, 2), groups=2) | F.pad(x, (1, 2)) | F.pad(x, (0, 1, 2, 0), value=3.0)
x.tril() | x.triu(1) | torch.tril(x, diagonal=-1) | x.roll(1) | torch.roll(x, 2, dims=1) | x.flip(-1) | x.flip(0)
torch.cat([x, y]) | torch.cat([x, y], dim=-1) | torch.stack([x, y], dim=1) | x.t().contiguous() | x.permute(1, 0).reshape(3, 8)
b.transpose(1, 2).contiguous() | x[1:3] | x[:, ::2] | x[..., 1] | x[i.clamp(max=3)] | x.gather(1, j) | x.index_select(1, i)
x.repeat(2, 1) | x.repeat_interleave(2, dim=0) | r.expand(4, 6).contiguous() | x.unsqueeze(1) * y | b.sum((0, 2)) | b.mean(dim=(1, 2))
x.half().float() | x.bfloat16().float() | (x * 10).to(torch.int32).float() | (x > 0).float() | x.half() * 3 | (x.half() @ m.half()).float()
x.sort(dim=1).values | x.topk(2, dim=1).values | x.argsort(dim=1).float() | F.one_hot(i, 6).float() | F.embedding(i, m)
(x * x).sum(-1, keepdim=True).sqrt() | x / x.abs().amax(-1, keepdim=True) | torch.clamp((x * 127).round(), -127, 127).to(torch.int8).float()
(x.to(torch.float8_e5m2)).float() | (x * 100).to(torch.float8_e4m3fn).float() | x.square().mean(-1).rsqrt()
torch.diff(x) | torch.diag(r) | m[:5].diag() | x.trace() | x.cummax(1).values | x.cummin(0).values | x.median()
torch.std_mean(x, dim=1)[0] | torch.var_mean(x, dim=1)[1] | torch.aminmax(x)[0] | x.aminmax(dim=1)[1] | torch.fmod(x, 0.3)
torch.atan2(x, y) | torch.hypot(x, y) | torch.logaddexp(x, y) | torch.special.expit(x) | torch.lgamma(p) | torch.pow(2, x)
F.elu(x) | F.selu(x) | F.celu(x) | F.hardtanh(x) | F.hardsigmoid(x) | F.softsign(x) | F.tanhshrink(x) | F.softshrink(x)
F.threshold(x, 0.1, 2.0) | F.glu(x) | F.group_norm(g.reshape(2, 4, 30), 2) | F.instance_norm(g)
F.batch_norm(x, (r * 0).detach(), (r * 0 + 1).detach()) | F.batch_norm(x, None, None, training=True) | F.avg_pool2d(g, 2) | F.max_pool2d(g, 2)
F.avg_pool1d(b, 2) | F.max_pool1d(b, 2) | F.adaptive_avg_pool2d(g, 1) | F.adaptive_avg_pool2d(g, (2, 3))
F.pad(b, (1, 1), mode="replicate") | F.pad(b, (1, 1), mode="reflect") | F.pixel_shuffle(g, 2) | F.cosine_similarity(x, y)
F.cosine_similarity(x, y, dim=0) | F.pairwise_distance(x, y) | F.smooth_l1_loss(x, y) | F.huber_loss(x, y)
F.kl_div(x.log_softmax(1), y.softmax(1), reduction="batchmean") | F.binary_cross_entropy(p.clamp(max=0.9), p.clamp(max=0.8))
F.nll_loss(x, i) | F.cross_entropy(x, y.softmax(1)) | F.dropout(x, 0.5, training=False) | torch.baddbmm(x[:2, None, :4] , b, c)
torch.tensordot(x, m, dims=1) | torch.linalg.norm(x) | torch.linalg.vector_norm(x, dim=1) | x.take_along_dim(j, 1)
x.index_copy(0, i.argsort(), y) | x.index_fill(0, i[1:2], 3.0) | x.masked_scatter(x > 0, y)
x.index_put((i.clamp(max=3), i), r[:4]) | torch.argwhere(x > 0).float() | torch.copysign(x, y) | x.sub(y, alpha=2)
x.add(y, alpha=0.5) | torch.addr(x, r[:4], r) | torch.addmv(r[:4], x, r) | torch.inner(x, y) | x.cumsum(0).diff(dim=0) | x.sgn()
x.positive() | x.deg2rad()
torch.nn.GroupNorm(2, 4)(g) | torch.nn.AvgPool2d(2)(g) | torch.nn.AvgPool2d(2, 1, 1)(g) | torch.nn.AvgPool1d(3, stride=2)(b)
torch.nn.AdaptiveAvgPool2d(2)(g) | torch.nn.AdaptiveAvgPool1d(3)(b) | torch.nn.CosineSimilarity()(x, y)
torch.nn.CosineSimilarity(dim=0)(x, y) | torch.nn.ELU(0.5)(x) | torch.nn.GLU()(x) | torch.nn.Hardsigmoid()(x)
torch.nn.Hardtanh(-0.3, 0.2)(x) | torch.nn.HuberLoss(delta=0.3)(x, y) | torch.nn.HuberLoss(reduction='sum')(x, y)
torch.nn.KLDivLoss(reduction='batchmean')(x.log_softmax(1), y.softmax(1))
torch.nn.KLDivLoss(reduction='sum', log_target=True)(x.log_softmax(1), y.log_softmax(1))
torch.nn.NLLLoss()(x.log_softmax(1), i) | torch.nn.NLLLoss(ignore_index=3)(x.log_softmax(1), i)
torch.nn.NLLLoss(reduction='none')(x.log_softmax(1), i) | torch.nn.SmoothL1Loss(beta=0.2)(x, y)
torch.nn.SmoothL1Loss(reduction='none')(x, y) | torch.nn.SELU()(x) | torch.nn.Softsign()(x) | torch.nn.Tanhshrink()(x)
torch.nn.PixelShuffle(2)(g) | torch.nn.modules.loss.L1Loss()(x, y) | torch.nn.modules.activation.ReLU()(x)
torch.cartesian_prod(r, r) | torch.cartesian_prod(i, i, i).float() | torch.tril_indices(3, 4).float() | torch.triu_indices(4, 3, 1).float()
torch.utils._pytree.tree_map(lambda t: t * 2, {"a": x, "b": (y, r)})["b"][0] | torch.utils.checkpoint.checkpoint(lambda a, s: a * s, x, 2.0, use_reentrant=False)
torch.nn.Dropout(0.0)(x) | torch.nn.BatchNorm1d(6)(x) | torch.nn.BatchNorm1d(4, affine=False)(b) | torch.nn.Sequential(torch.nn.Tanh(), torch.nn.GELU())(x)
x[i[2:].clamp(max=3), 1:3] | x[x[:, 0] > 0, 1:3] | x[1:, x[0] > 0] | x[torch.tensor([0, 2]), ::2] | b[1:, i.clamp(max=3), 2:4] | b[:, i[:2].clamp(max=3), 1:] | b[0, i.clamp(max=3), -2:] | x[1:3, j] | x[i.clamp(max=3), None, :] | x[None, i.clamp(max=3)] | b[0, None, i.clamp(max=3), ::2] | x[x[:, 0] > 0, None, 1:] | b[:, x[:, 1] < 1, 2:] | x[[slice(None), 2]]
x * torch.nn.init.calculate_gain("relu") | x[:, : i[0]] | x.topk(i[3], dim=1).values | torch.arange(i[0]) * r[:3] | x.narrow(1, i[3], i[0]) | torch.nn.utils.rnn.pad_sequence([x.t(), y.t()[:3]], True)
x * torch.zeros_like(y) + torch.full_like(x, 3.0) | x.new_zeros(6) + x | torch.block_diag(x, y, r) | torch.kron(x, y) | torch.kron(r, r) | torch.nn.utils.rnn.pad_sequence([r, r[:3]], batch_first=True)
torch.nn.utils.rnn.pad_sequence([x, y[:2]]) | torch.cross(b[0, :, :3], b[1, :, :3], dim=-1) | torch.linalg.cross(b[0, :, :3], b[1, :, :3])
torch.logspace(0, 1, 5) | torch.logspace(0, 3, 4, 2.0) | x.logcumsumexp(1) | x.kthvalue(2, dim=1).values
x.kthvalue(3, dim=0, keepdim=True).indices.float() | x.median(dim=1).values | x.median(0, keepdim=True).values | x.quantile(0.5)
x.quantile(0.3, dim=1) | torch.quantile(x, 0.9, dim=0, keepdim=True) | x.nansum() | x.nanmean(1) | torch.isclose(x, y, atol=0.5).float()
torch.special.erfinv(x.clamp(-0.5, 0.5)) | torch.erfinv(p.clamp(max=0.999)) | F.prelu(x, r[:1]) | torch.nn.functional.interpolate(g, scale_factor=2)
F.interpolate(g, size=(7, 3)) | F.interpolate(g, scale_factor=2, mode="bilinear") | F.interpolate(g, size=(3, 9), mode="bilinear", align_corners=True)
F.interpolate(b, size=4, mode="linear") | F.interpolate(b, scale_factor=3) | F.unfold(g, 2) | F.unfold(g, (2, 3), padding=1, stride=2)
F.unfold(g, 2, dilation=2) | F.conv_transpose2d(g, w[:4]) | F.conv_transpose2d(g, w[:4], stride=2, padding=1, output_padding=1)
F.conv_transpose2d(g, w[:4], r[:4], groups=2, dilation=2) | F.conv_transpose1d(b, k) | F.conv_transpose1d(b, k, r[:4], 2, 1) | torch.nn.Unfold(2)(g)
F.poisson_nll_loss(x, p) | F.hinge_embedding_loss(x, y.sign().detach()) | F.margin_ranking_loss(x, y, p.sign().detach())
F.margin_ranking_loss(x, y, p.sign().detach(), margin=0.3) | F.triplet_margin_loss(x, y, p) | F.triplet_margin_loss(x, y, p, margin=0.2, reduction="none")
F.cosine_embedding_loss(x, y, p[:, 0].round().mul(2).sub(1).detach()) | F.soft_margin_loss(x, y.sign().detach()) | torch.linalg.inv(m[:5] + 3 * torch.eye(5))
torch.inverse(m[:5] + 3 * torch.eye(5)) | torch.linalg.det(m[:5]) | m[:5].det() | torch.linalg.solve(m[:5] + 3 * torch.eye(5), m[:5])
torch.linalg.cholesky(m @ m.T + torch.eye(6)) | torch.linalg.solve_triangular(y[:, :4].tril() + 2 * torch.eye(4), x, upper=False)
torch.linalg.solve_triangular(y[:, :4] + 2 * torch.eye(4), x, upper=True)
torch.linalg.solve_triangular(y[:, :4] + 2 * torch.eye(4), x[:, :4], upper=False, left=False)
torch.linalg.solve_triangular(y[:, :4], x, upper=True, unitriangular=True) | torch.linalg.multi_dot([x, m, m.T]) | torch.linalg.matrix_power(m[:5], 3)
torch.matrix_power(m[:5], 2) | torch.linalg.inv(b[:, :4, :4] + 4 * torch.eye(4)) | torch.linalg.inv(c @ b + 4 * torch.eye(6)) | torch.dstack((x, y))
torch.dstack((r, r)) | torch.column_stack((x, y)) | torch.column_stack((r, r)) | torch.column_stack((r[:4], x)) | torch.histc(x, 5)
torch.histc(i.float(), bins=6, min=0, max=5) | torch.gcd(i, i + 2).float() | torch.heaviside(x, y) | torch.ldexp(x, i[:1])
torch.float_power(p, 2).float() | torch.scalar_tensor(2.0) * x | x.logit(eps=0.1) | p.clamp(max=0.9).logit() | torch.sinc(x)
torch.isin(i, j).float() | torch.isin(j, i, invert=True).float() | torch.xlogy(x, p) | torch.special.xlogy(x, p)
F.grid_sample(g, b[..., :2].reshape(2, 4, 1, 2)) | F.grid_sample(g, b[..., :2].reshape(2, 2, 2, 2), padding_mode="border", align_corners=True)
F.grid_sample(g, b[..., :2].reshape(2, 2, 2, 2) * 0.3, mode="nearest", align_corners=False)
F.grid_sample(g, b[..., :2].reshape(2, 2, 2, 2), mode="bilinear", padding_mode="zeros", align_corners=True) | torch.nn.AvgPool2d(2, ceil_mode=True)(g)
torch.nn.AvgPool2d(2, 1, 1, count_include_pad=False)(g) | torch.nn.AvgPool2d(2, divisor_override=3)(g)
torch.nn.AvgPool2d(3, 2, 1, ceil_mode=True)(g) | torch.nn.AvgPool2d(3, 2, 1, ceil_mode=True, count_include_pad=False)(g)
F.avg_pool2d(g, 2, padding=1, ceil_mode=True) | F.max_pool2d(g, 3, 2, 1, ceil_mode=True) | F.max_pool2d(g, 2, ceil_mode=True) | torch.nn.Softplus()(x)
torch.nn.Softplus(2.0)(x) | F.softplus(x, beta=3) | F.softplus(x * 10, 2, 5) | torch.nn.MaxPool2d(2)(g) | torch.nn.MaxPool2d(2, 1)(g)
torch.nn.MaxPool1d(3, stride=2, padding=1)(b) | F.avg_pool1d(b, 4, 3, ceil_mode=True) | F.adaptive_max_pool2d(g, 2) | F.adaptive_avg_pool2d(g, 3)
torch.linalg.cross(b[:, :3, :3], c[:, :3, :3]) | F.interpolate(g, (3, 9), None, "bilinear", True)
torch.linalg.solve(c @ b + 4 * torch.eye(6), b.transpose(1, 2)) | x.log().nanmean()
"""

PROGRAM = '''import torch, triton
import torch.nn.functional as F
import triton.language as tl

@triton.jit
def copy(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)

{inputs}
{made}
copied = torch.empty_like(made)
copy[(triton.cdiv(made.numel(), 64),)](made, copied, made.numel(), BLOCK=64)
expected = torch.tensor({expected})
assert torch.allclose(copied.float(), expected, atol=1e-5, rtol=1e-4)
'''


# Gradients of a sum with different weights, one after the other.
GRADIENTS = """made = {expression}
(made * torch.linspace(-0.7, 0.9, made.numel()).reshape(made.shape)).sum().backward()
made = torch.cat([{gradients}])"""


def parts(code):
    """Statements, and the expression after them."""
    statements, _, expression = code.rpartition(";")
    return statements.replace("; ", "\n"), expression.strip()


def computed(code, inputs):
    values = {"torch": torch, "F": F, **inputs}
    statements, expression = parts(code)
    exec(statements, values)
    return eval(expression, values)


def used(expression):
    return [name for name in INPUTS if name in names(expression)]


def floats(expression):
    return [name for name in used(expression) if INPUTS[name].is_floating_point()]


def differentiated(expression):
    """What gives the gradients, and what these are; nothing where there are none, or PyTorch has no rule for them."""
    inputs = {name: numbers.clone().requires_grad_(numbers.is_floating_point()) if numbers.is_floating_point() else numbers
              for name, numbers in INPUTS.items()}
    made = computed(expression, inputs)
    if not made.requires_grad:
        return None
    try:
        (made * torch.linspace(-0.7, 0.9, made.numel()).reshape(made.shape)).sum().backward()
    except RuntimeError as error:
        if "not implemented" not in str(error):
            raise
        return None
    with_gradient = [name for name in floats(expression) if inputs[name].grad is not None]
    gradients = ", ".join(f"{name}.grad.flatten()" for name in with_gradient)
    text = GRADIENTS.format(expression=expression, gradients=gradients)
    return text, torch.cat([inputs[name].grad.flatten() for name in with_gradient])


def findings(tile, expression, text, expected):
    wants = ", requires_grad=True" if text is not None else ""
    inputs = "\n".join(
        f"{name} = torch.tensor({INPUTS[name].tolist()}{wants if name in floats(expression) else ''})"
        for name in used(expression)
    )
    made = text or "{}\nmade = ({}).contiguous()".format(*parts(expression))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.py"
        path.write_text(PROGRAM.format(inputs=inputs, made=made, expected=expected))
        done = subprocess.run([tile, "check", path, "--format", "json"], capture_output=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def names(expression):
    return compile(expression, "", "exec").co_names


def verdict(tile, expression, text, expected):
    def told(numbers):
        found = findings(tile, expression, text, numbers.tolist())
        return any(finding.get("code") == "launch/wrong-result" for finding in found)

    return "WRONG" if told(expected) else "right" if told(expected * 3 + 7) else "unknown"


def split(text):
    return [expression.strip() for line in text.strip().splitlines() for expression in line.split(" | ")]


def main():
    tile = sys.argv[1]
    wrong = 0
    for kind in ("numbers", "gradients"):
        counts = {"right": 0, "unknown": 0, "WRONG": 0}
        more = DIFFERENTIATED if kind == "gradients" else CHANGES
        for expression in split(EXPRESSIONS) + split(more):
            if kind == "numbers":
                text, expected = None, computed(expression, INPUTS).float()
            elif (found := differentiated(expression)) is not None:
                text, expected = found
            else:
                continue
            found = verdict(tile, expression, text, expected)
            counts[found] += 1
            if found != "right":
                print(f"{found:8} {kind} of {expression}")
        print(f"{kind}: " + ", ".join(f"{count} {found}" for found, count in counts.items()), flush=True)
        wrong += counts["WRONG"]
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
