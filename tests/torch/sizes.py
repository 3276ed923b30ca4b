"""Asks tile what it knows of the results of PyTorch's and Python's functions, with both as the oracle.

    python tests/torch/sizes.py TILE [--only REGEX] [--corpus FOLDER ...] [--show unknown|known|wrong]

Expressions are made from signatures (`torch.overrides`, `inspect`): a parameter's name says what fits it
(`FITTING`), and PyTorch says which of the combinations run. Of each result follow facts: type, sizes and strides of a
tensor, where its memory ends, numbers, truth values, strings. For every fact there is a program that computes the
expression and launches two kernels: one that is right where the fact holds, and must be silent, and one that is wrong
where it holds, and must be told. What is told of the first is a false alarm (`WRONG`), what is not told of the second is not known.
Facts that other numbers in the same tensors change are nobody's to know: telling one of them is `WRONG` as well, unless
it is told as what one draw of random numbers leads to.

With `--corpus`, names are ranked by how many of the folders' files use them in host code, and names without an
expression are listed too. Needs PyTorch (a build for CPU will do), no GPU.
"""

import argparse
import ast
import builtins
import collections
import functools
import inspect
import itertools
import json
import math
import re
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import torch
from torch.overrides import get_testing_overrides, resolve_name

warnings.simplefilter("ignore")

IMPORTS = """import collections, dataclasses, functools, itertools, math, operator
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
"""

# What expressions are made of: variables of every program, in order.
SAMPLES = {
    "a": "torch.randn(6, 10)",
    "b": "torch.randn(6, 10)",
    "row": "torch.randn(10)",
    "short": "torch.randn(6)",
    "col": "torch.randn(6, 1)",
    "m": "torch.randn(10, 4)",
    "square": "torch.randn(5, 5)",
    "cube": "torch.randn(2, 6, 10)",
    "other_cube": "torch.randn(2, 10, 4)",
    "image": "torch.randn(2, 3, 16, 12)",
    "filters": "torch.randn(8, 3, 3, 3)",
    "signal": "torch.randn(2, 3, 16)",
    "taps": "torch.randn(8, 3, 3)",
    "h": "torch.randn(6, 10).to(torch.float16)",
    "bf": "torch.randn(6, 10).to(torch.bfloat16)",
    "d": "torch.randn(6, 10).to(torch.float64)",
    "i": "torch.randint(0, 4, (6, 10))",
    "i32": "torch.randint(0, 4, (6, 10), dtype=torch.int32)",
    "u8": "torch.randint(0, 4, (6, 10), dtype=torch.uint8)",
    "places": "torch.randint(0, 4, (7,))",
    "mask": "torch.rand(6, 10) > 0.5",
    "at": "torch.randn(10, 6).t()",
    "part": "torch.randn(8, 10)[1:7]",
    "z": "torch.zeros(6, 10, dtype=torch.complex64)",
    "number": "torch.tensor(3.0)",
    "number16": "torch.tensor(3.0).to(torch.float16)",
    "sparse": "torch.eye(5).to_sparse_csr()",
}

TENSORS = "a i h mask at part row cube image square bf d i32 u8 z number signal".split()
NUMBERS = ["2", "0.5"]
# What fits a parameter of this name, the likeliest first.
FITTING = {
    "self": TENSORS,
    "input": TENSORS,
    "tensor": TENSORS,
    "x": ["a", "2.0", "6", "row"],
    "other": ["b", "2", "0.5", "i", "row", "col", "mask", "square"],
    "tensors": ["[a, b]", "(a, h)", "[i, i]"],
    "mat1": ["a"], "mat2": ["m", "other_cube"], "batch1": ["cube"], "batch2": ["other_cube"],
    "vec": ["row"], "vec1": ["short"], "vec2": ["row"], "mat": ["a"],
    "tensor1": ["b"], "tensor2": ["b"],
    "dim": ["1", "-1", "0", "(0, 1)"], "dims": ["(1, 0)", "(0,)", "2"], "axis": ["1"],
    "dim0": ["0"], "dim1": ["1"], "axis0": ["0"], "axis1": ["1"],
    "source": ["0", "torch.ones(7, 10)", "mask.new_ones(7, 10)"], "destination": ["1"],
    "size": ["(3, 4)", "(6, 10)", "(60,)", "(2, 6, 10)", "3"], "shape": ["(3, 4)", "(60,)", "(5, -1)", "(2, 6, 10)"],
    "sizes": ["(2, 5)", "(2, 3)"], "stride": ["(4, 1)", "2", "1"],
    "dtype": ["torch.float16", "torch.float32", "torch.int64"],
    "index": ["places", "i", "2", "row.to(torch.int64).clamp(0, 3)"], "indices": ["places", "i", "(2, 4)", "[places]"],
    "src": ["b", "row", "1.0"], "value": ["1.0", "2", "b"], "values": ["b", "row", "(places,)"], "mask": ["mask"],
    "condition": ["mask"], "fill_value": ["1.0", "2"],
    "min": ["0", "0.5"], "max": ["1", "0.5"], "exponent": ["2", "0.5", "b"], "end": ["b", "5", "2.5"],
    "start": ["0", "1"], "step": ["1", "2"], "steps": ["7"], "length": ["3"],
    "k": ["3", "1"], "n": ["3", "2"], "m": ["4"], "p": ["2", "0.5"], "q": ["0.5"], "kernel_size": ["3", "(2, 3)"],
    "output_size": ["4", "(4, 3)"], "split_size": ["4", "(2, 4)"], "split_size_or_sections": ["4", "[2, 4]"],
    "chunks": ["3"], "sections": ["2"], "indices_or_sections": ["2", "(2, 4)"], "tensor_indices_or_sections": ["2"],
    "repeats": ["2", "(2, 3)"], "times": ["2"], "shifts": ["1"], "diagonal": ["1"], "offset": ["1"],
    "weight": ["filters", "taps", "torch.randn(4, 10)", "torch.randn(20, 8)", "0.5", "b", "row"],
    "normalized_shape": ["(10,)", "[10]"], "num_groups": ["1"], "num_classes": ["5"], "negative_slope": ["0.1"],
    "target": ["b", "torch.zeros(6, dtype=torch.int64)", "i"], "pad": ["(1, 2)", "(1, 2, 3, 4)"],
    "running_mean": ["None", "row"], "running_var": ["None", "row.abs()"], "bias": ["None", "row"],
    "query": ["cube"], "key": ["cube"], "value_": ["cube"], "boundaries": ["row.sort().values"],
    "sorted_sequence": ["row.sort().values"], "equation": ["'ij,jk->ik'"], "operands": ["a, m"],
    "num_samples": ["3"], "bins": ["5"], "data": ["[1, 2, 3]", "[[1.0, 2.0]]", "a"], "obj": ["a", "[1, 2]", "3"],
    "type": ["torch.float32"], "lambd": ["0.5"], "threshold": ["0.1"], "upscale_factor": ["1"], "scale_factor": ["2"],
    "repeat": ["2"], "axes": ["0"], "N": ["4"], "device": ["'cpu'"], "other_": ["b"], "low": ["2"], "high": ["5"],
    "beta": ["1"], "alpha": ["2"], "LU_data": ["square"], "A": ["square"], "B": ["square"], "tau": ["square[0]"],
    "real": ["a"], "imag": ["b"], "abs": ["a"], "angle": ["b"], "x1": ["a"], "x2": ["b"], "margin": ["1.0"],
    "anchor": ["a"], "positive": ["b"], "negative": ["b"], "input1": ["a"], "input2": ["b"], "mean": ["0.0", "a"],
    "std": ["1.0", "b.abs()"], "min_val": ["0.0"], "max_val": ["1.0"], "downscale_factor": ["2"], "groups": ["3", "1"],
    "batch": ["2"], "in_features": ["10"], "out_features": ["4"], "in_channels": ["3"], "out_channels": ["8"],
    "num_features": ["10", "3"], "num_channels": ["3", "10"], "num_embeddings": ["20"], "embedding_dim": ["8"],
    "num_parameters": ["1"], "input_size": ["10"], "hidden_size": ["4"], "d_model": ["10"], "nhead": ["2"],
    "embed_dim": ["10"], "num_heads": ["2"], "padding": ["1", "(1, 2)", "(1, 2, 1, 2)"], "unflattened_size": ["(2, 5)"],
}
# What is given by keyword besides, to a function that has the parameter.
BY_KEYWORD = {
    "dim": ["0", "-1", "(0, 1)", "None"],
    "keepdim": ["dim=-1, keepdim=True"],
    "dtype": ["torch.float16", "torch.float64", "torch.int32"],
    "out": ["torch.empty(0)"],
    "descending": ["True"], "largest": ["False"], "stable": ["True"], "unbiased": ["False"], "correction": ["0"],
    "memory_format": ["torch.contiguous_format"], "rounding_mode": ["'floor'"], "ord": ["2"], "start_dim": ["1"],
    "ceil_mode": ["True"], "padding": ["1"], "stride": ["2"], "dilation": ["2"], "groups": ["1"], "bias": ["None"],
    "mode": ["'constant'"], "reduction": ["'none'", "'sum'"], "return_inverse": ["True"], "right": ["True"],
    "out_int32": ["True"], "diagonal": ["1"], "decimals": ["1"], "p": ["2"], "dims": ["(0,)"], "n": ["2"], "k": ["1"],
    "min": ["0.1"], "max": ["0.5"], "alpha": ["2"], "beta": ["2"], "as_tuple": ["True"], "inplace": ["True"],
    "max_norm": ["None"], "is_causal": ["True"], "affine": ["False"], "num_layers": ["2"], "copy": ["True"],
}
# Functions that end, wait, write files, or are no functions of values.
LEFT_OUT = re.compile(
    r"(^|\.)(_|cuda\.|get_autocast_ipu|is_autocast_ipu|is_(gcu|mlu|npu)|fork|from_file|save|load|compile|export|wait|set_|manual_seed|seed$|init_|cuda$|xpu$|ipu$|hpu$|mtia$|"
    r"vulkan|to_mkldnn|share_memory|storage$|untyped_|register|backward|apply_|map_|map2_|pin_memory|is_pinned|fbgemm|"
    r"mkldnn|cudnn|miopen|quantize|dequantize|q_|fake_|fused_|int_repr|choose_|sym_|rnn|lstm|gru|quantized|handle_|"
    r"has_|module_load|refine|align|rename|names|cauchy_|geometric_|log_normal_|to_padded|numpy$|reinforce|record_)"
)
# Python's own: what methods and functions are tried on.
PYTHON = {
    "str": ["'fp16_row'", "'a,b'", "'3'", "'64x32'"],
    "int": ["12", "0"],
    "float": ["2.5"],
    "list": ["[3, 1, 2]", "['a', 'b']"],
    "tuple": ["(3, 1, 2)"],
    "dict": ["{'a': 1, 'b': 2}"],
    "set": ["{1, 2}"],
}
PYTHON_ARGUMENTS = ["2", "3.5", "'a'", "','", "'x'", "[3, 1, 2]", "(4, 5)", "{'a': 1}", "True", "None", "lambda x: x",
                    "range(4)", "'fp16'", "-7", "int", "a"]
# Expressions that no signature shows.
MORE = """
a.shape[0] | a.shape[-1] | a.shape.numel() | len(a) | a[0] | a[:, 2:5] | a[..., None] | a[None] | a[mask] | a[places.clamp(0, 5)] | a[1:5:2]
a[:, places] | a[places[:4], places[:4]] | a.T @ b | a @ m | a + row | a + i | h + a | h * 2 | i / 2 | i // 2 | i * 0.5 | i + mask | -a | ~mask | a > 0
mask & mask | a ** 2 | 2 ** i | a < b | i % 2 | i << 1 | u8 + i32 | mask + 1 | number + h | number * i | 1 - mask.float() | abs(a) | a == b | not a.is_cuda
torch.finfo(torch.float32).max | torch.finfo(torch.float16).min | torch.finfo(h.dtype).eps | torch.finfo(torch.bfloat16).max | torch.finfo(torch.float32).tiny
torch.finfo(torch.float16).smallest_normal | torch.finfo(torch.float8_e4m3fn).max | torch.finfo(torch.float8_e5m2).max | torch.finfo(torch.float64).bits
torch.iinfo(torch.int8).max | torch.iinfo(torch.int8).min | torch.iinfo(torch.int32).bits | torch.iinfo(torch.uint8).max | torch.iinfo(torch.int64).max
torch.get_default_dtype() | torch.is_grad_enabled() | torch.is_autocast_enabled() | torch.is_inference_mode_enabled() | torch.are_deterministic_algorithms_enabled()
torch.is_tensor(a) | torch.is_tensor(2) | torch.float16.itemsize | torch.float32.is_floating_point | torch.int8.is_signed | torch.complex64.is_complex
torch.promote_types(torch.float16, torch.float32) | torch.result_type(a, i) | torch.can_cast(torch.float32, torch.int8) | torch.Size([2, 3])[0] | torch.Size((2, 3)).numel()
torch.broadcast_shapes((6, 1), (10,)) | torch.empty((3, 4), dtype=torch.float16) | torch.empty(3, 4) | torch.empty([3, 4]) | torch.empty(a.shape) | torch.empty(a.size())
torch.zeros(3) | torch.ones((2,), dtype=torch.int32) | torch.full((2, 3), 7) | torch.full((2, 3), 0.5) | torch.full((2, 3), True) | torch.arange(5) | torch.arange(1, 9, 2) | torch.arange(0, 1, 0.25)
torch.arange(5, dtype=torch.float32) | torch.linspace(0, 1, 5) | torch.logspace(0, 1, 5) | torch.eye(4) | torch.eye(4, 5) | torch.randn(2, 3) | torch.rand((2, 3)) | torch.randint(5, (2, 3)) | torch.randint(0, 5, (2, 3), dtype=torch.int32)
torch.randint(low=0, high=5, size=(2, 3)) | torch.randperm(6) | torch.tensor([1, 2]) | torch.tensor([[1.0, 2.0]]) | torch.tensor(1.5) | torch.tensor(3) | torch.tensor(True) | torch.tensor([1, 2], dtype=torch.float16) | torch.as_tensor([1, 2])
torch.empty_strided((2, 3), (3, 1)) | torch.empty_like(h) | torch.zeros_like(a, dtype=torch.int32) | torch.rand_like(a) | torch.full_like(i, 2) | torch.empty(2, 3, memory_format=torch.contiguous_format)
torch.FloatTensor(2, 3) | torch.LongTensor([1, 2]) | torch.from_numpy(np.zeros((2, 3), dtype=np.float32)) | torch.scalar_tensor(2.0) | torch.where(mask) | torch.where(mask, a, b) | torch.where(mask, a, 0.0) | torch.where(mask, 1.0, 0.0)
torch.stack([a, b], dim=-1) | torch.cat([a, b], 1) | torch.cat((row, row)) | torch.cat([a, a.half()]) | torch.split(a, 4) | torch.chunk(a, 3, dim=1) | torch.cartesian_prod(row, row) | torch.combinations(row)
torch.nn.utils.rnn.pad_sequence([row, row]) | torch.nn.Parameter(a) | torch.atleast_2d(row) | torch.block_diag(a, b) | torch.einsum('ij,kj->ik', a, b) | torch.tensordot(a, m, dims=1)
torch.clamp(a, min=0) | torch.clamp(i, 0, 3) | torch.clamp(i, 0.5) | a.clamp(min=0.0, max=1.0) | i.clamp_min(1) | i.clamp(min=1).float() | torch.max(a) | torch.max(a, 1)[0] | torch.max(a, b) | torch.max(a, dim=1).values
a.max(dim=-1, keepdim=True)[0] | a.sum(-1, dtype=torch.float32) | a.norm(dim=-1) | h.float().sum(0) | i.sum(0) | mask.sum(-1) | a.var(0, unbiased=False) | a.mean((0, 1)) | h.mean(-1, keepdim=True) | a.float() | a.to(torch.float16) | a.to(h) | a.to('cpu', torch.float16)
a.type(torch.float16) | a.type_as(h) | a.view(-1) | a.view(3, 20) | a.view(2, 3, 10) | a.reshape(-1, 5) | a.view(torch.int32) | a.view(torch.int8) | h.view(torch.int16) | a.unsqueeze(0) | a.squeeze() | col.squeeze(-1) | a.flatten() | cube.flatten(0, 1) | a.expand(3, 6, 10) | col.expand(-1, 10)
cube.permute(2, 0, 1) | cube.transpose(1, 2).contiguous() | a.unbind(0)[1] | a.split([2, 4])[1] | a.chunk(2, -1)[1] | a.repeat(2, 1) | a.repeat_interleave(2, 0) | a.tile(2) | a.masked_fill(mask, 0.0) | a.masked_fill(mask, float('-inf')) | a.scatter(1, i, b) | a.gather(1, i) | a.index_select(0, places)
a.data_ptr() % 16 | a.numel() * a.element_size() | a.stride(0) | a.stride(-1) | a.size(1) | a.dim() | a.is_contiguous() | at.is_contiguous() | a.storage_offset() | part.storage_offset() | a.is_sparse | a.layout | a.requires_grad | a.is_leaf | a.grad | a.grad_fn | a.is_cuda | a.device.type
a.nbytes | a.itemsize | a.untyped_storage().nbytes() | a.new_empty(2, 3) | a.new_zeros((2, 3)) | h.new_full((2,), 1.0) | a.new_tensor([1.0, 2.0]) | a.copy_(b) | a.fill_(1.0) | a.zero_() | a.tolist() | places.tolist() | torch.tensor([3, 4]).tolist() | torch.tensor(3).item() | torch.tensor([1, 5]).max().item()
sparse.values() | sparse.crow_indices() | sparse.col_indices() | sparse.shape | len(sparse) | sparse.to_dense() | a.to_sparse() | a.to_sparse_csr() | square.to_sparse_csr().crow_indices() | square.to_sparse_csr().values() | square.to_sparse_csr().col_indices() | square.to_sparse().indices() | sparse.dtype | sparse.is_sparse_csr
F.softmax(a, dim=-1) | F.softmax(h, dim=-1, dtype=torch.float32) | F.linear(a, m.t()) | F.linear(cube, torch.randn(4, 10), torch.randn(4)) | F.layer_norm(a, (10,)) | F.rms_norm(a, (10,)) | F.gelu(a, approximate='tanh') | F.silu(h) | F.relu(i) | F.dropout(a, 0.5) | F.one_hot(places, 5) | F.one_hot(places)
F.pad(a, (1, 2)) | F.pad(a, (0, 0, 1, 1), value=1.0) | F.pad(image, (1, 1, 1, 1), mode='reflect') | F.conv2d(image, filters) | F.conv2d(image, filters, padding=1, stride=2) | F.conv2d(image, filters, None, (1, 2), 'same' if False else 1) | F.conv1d(signal, taps, padding=1) | F.conv_transpose2d(image, torch.randn(3, 5, 2, 2), stride=2)
F.max_pool2d(image, 2) | F.avg_pool2d(image, 3, stride=1) | F.adaptive_avg_pool2d(image, 1) | F.adaptive_avg_pool2d(image, (4, 3)) | F.interpolate(image, scale_factor=2) | F.embedding(places, m) | F.cross_entropy(a, torch.zeros(6, dtype=torch.int64)) | F.cross_entropy(a, torch.zeros(6, dtype=torch.int64), reduction='none')
F.mse_loss(a, b) | F.mse_loss(a, b, reduction='none') | F.normalize(a, dim=-1) | F.log_softmax(a, -1) | F.nll_loss(a, torch.zeros(6, dtype=torch.int64)) | F.scaled_dot_product_attention(image, image, image) | F.cosine_similarity(a, b) | F.group_norm(image, 3) | F.batch_norm(a, None, None, training=True) | F.unfold(image, 3) | F.pixel_shuffle(torch.randn(1, 8, 4, 4), 2)
nn.Linear(10, 4)(a) | nn.Linear(10, 4).weight | nn.Linear(10, 4, bias=False).bias | nn.Conv2d(3, 8, 3, padding=1)(image) | nn.Embedding(20, 8)(places) | nn.LayerNorm(10)(a) | nn.ReLU()(a) | nn.Sequential(nn.Linear(10, 4), nn.ReLU())(a) | nn.Conv2d(3, 8, 3).weight | nn.MaxPool2d(2)(image) | nn.AvgPool2d(2)(image)
nn.ConvTranspose2d(3, 8, 2, stride=2)(image) | nn.MSELoss()(a, b) | nn.CrossEntropyLoss()(a, torch.zeros(6, dtype=torch.int64)) | nn.Softmax(dim=-1)(a) | nn.GRU(10, 4)(cube)[0] | nn.LSTM(10, 4, batch_first=True)(cube)[0] | nn.MultiheadAttention(10, 2)(cube, cube, cube)[0] | nn.BatchNorm2d(3)(image) | nn.GroupNorm(3, 3)(image)
nn.AdaptiveAvgPool2d(1)(image) | nn.Upsample(scale_factor=2)(image) | nn.Unfold(3)(image) | nn.ZeroPad2d(1)(image) | nn.PixelShuffle(2)(torch.randn(1, 8, 4, 4)) | nn.Flatten()(image) | nn.Identity()(a) | nn.Dropout(0.1)(a) | nn.Module().training | nn.Linear(10, 4).training | nn.BatchNorm1d(10).running_mean | nn.BatchNorm1d(10).eps
math.pi | math.inf | math.log2(8) | math.sqrt(16) | math.ceil(2.5) | math.floor(2.5) | math.prod([2, 3]) | math.exp(0) | math.gcd(12, 8) | math.lcm(4, 6) | math.isqrt(17) | math.pow(2, 3) | math.log(8, 2) | math.log10(1000) | math.isinf(1.0) | math.isnan(1.0) | math.copysign(1, -2) | math.fabs(-2) | math.trunc(2.7) | math.comb(5, 2) | math.factorial(5) | math.e | math.tau
functools.reduce(lambda x, y: x * y, [2, 3, 4]) | functools.reduce(operator.mul, (2, 3), 1) | functools.partial(max, 3)(5) | list(itertools.chain([1], [2]))[1] | list(itertools.product([1, 2], [3]))[1][0] | list(itertools.accumulate([1, 2, 3]))[2] | list(itertools.combinations([1, 2, 3], 2))[0][1] | list(itertools.permutations([1, 2]))[1][0] | list(itertools.repeat(2, 3))[1] | list(itertools.zip_longest([1], [2, 3]))[1][1]
collections.OrderedDict(a=1)['a'] | collections.defaultdict(int)['q'] | collections.Counter('aab')['a'] | collections.namedtuple('P', 'x y')(1, 2).y | collections.deque([1, 2])[0] | operator.mul(2, 3) | operator.add(2, 3) | operator.floordiv(7, 2) | operator.itemgetter(1)([4, 5])
np.prod([2, 3]) | int(np.prod((2, 3))) | np.ceil(2.5) | int(np.ceil(2.5)) | np.log2(8) | np.sqrt(16.0) | np.pi | np.inf | np.zeros((2, 3)).shape[1] | np.array([1, 2]).shape[0] | np.arange(5).shape[0] | np.cumsum([1, 2, 3])[-1] | np.max([1, 2]) | np.iinfo(np.int32).max | np.random.randn(2, 3).shape[0]
len([1, 2]) | max(3, 4) | min([3, 4]) | sum([1, 2]) | sum(x for x in [1, 2]) | abs(-3) | round(2.5) | round(2.345, 2) | pow(2, 5) | pow(2, -1) | divmod(7, 2)[0] | divmod(-7, 2)[1] | int('12') | int(2.7) | float('inf') | bool([]) | str(12) | sorted([3, 1])[0] | sorted([3, 1], reverse=True)[0] | list(reversed([1, 2]))[0] | list(range(3))[2] | any([0, 1]) | all([1, 0]) | any(x > 1 for x in (1, 2))
tuple([1, 2])[1] | list(map(int, ['1', '2']))[1] | list(filter(None, [0, 2]))[0] | list(zip([1], [2]))[0][1] | list(enumerate(['a']))[0][0] | dict(a=1)['a'] | set([1, 1]).__len__() | len({1, 1}) | isinstance(a, torch.Tensor) | isinstance(2, int) | isinstance(2.0, (int, float)) | isinstance('s', str) | isinstance([1], (list, tuple)) | hasattr(a, 'shape') | getattr(a, 'ndim') | getattr(a, 'nope', 3) | callable(len) | type(2) == int | type(a) is torch.Tensor | ord('a') | chr(97) | hex(255) | bin(5) | 5 // 2 | -5 // 2 | -5 % 3 | 2 ** 10 | 7 / 2 | 1 << 4 | 5 & 4 | 5 | 6 ^ 3 | ~5 | (5).bit_length() | 'a' + 'b' | 'a' * 3 | [1] * 3 | (1, 2) + (3,) | [1, 2][::-1][0] | (1, 2, 3)[1:][0] | 'abc'[1] | f'{2}x' | 'a' in 'abc' | 2 in [1, 2] | 1 < 2 < 3 | 3 if False else 4 | [x * 2 for x in (1, 2)][1] | {k: k + 1 for k in (1, 2)}[2] | (lambda x: x + 1)(2) | None is None | 3 or 4 | 0 or 4 | None or 5 | 2 and 3 | float('-inf') | 1e-5 * 2 | int(1e3) | int(True) | (6).__floordiv__(4) | not 0 | -(-7 // 2) | (17 + 15) // 16 * 16 | max(1, 2, 3) | min(2.5, 3) | max([1, 2], default=0) | max([], default=7) | max(['a', 'bb'], key=len) | sum([1.5, 2.5]) | sum([[1], [2]], [])[1]
""".strip().replace("5 | 6 ^ 3", "5 ^ 3")


def environment(fill=None):
    """The variables of a program, with their numbers, or filled with one number."""
    torch.manual_seed(0)
    names = {}
    exec(IMPORTS, names)
    for name, made in SAMPLES.items():
        names[name] = eval(made, names)
        if fill is not None and name not in ("sparse", "filters", "taps"):
            names[name].fill_(fill)
    return names


def number_of(value):
    return isinstance(value, (bool, int, float)) and value == value


def facts(value, text, depth=0):
    """What a result is, as pairs of a kind and a condition on `text`; a tensor's last element in memory."""
    if isinstance(value, torch.Tensor):
        if value.layout != torch.strided:
            return [("dtype", f"{text}.dtype == {value.dtype}"), ("shape", f"{text}.shape == {tuple(value.shape)}")]
        found = [("dtype", f"{text}.dtype == {value.dtype}"), ("shape", f"{text}.shape == {tuple(value.shape)}")]
        if value.numel() > 1:
            found.append(("strides", f"{text}.stride() == {value.stride()}"))
        if value.numel() and value.dtype.itemsize and not value.is_complex():
            room = value.untyped_storage().nbytes() // value.dtype.itemsize - value.storage_offset()
            found.append(("memory", (text, room)))
        return found
    if isinstance(value, torch.Size):
        return [("value", f"{text} == {tuple(value)}")]
    if isinstance(value, torch.dtype):
        return [("value", f"{text} == {value}")]
    if value is None or isinstance(value, bool):
        return [("value", f"{text} is {value}")]
    if isinstance(value, str) and len(value) < 50:
        return [("value", f"{text} == {value!r}")]
    if number_of(value):
        written = repr(value) if abs(value) != math.inf else f"float('{value}')"
        return [("value", f"{text} == {written}")]
    if isinstance(value, (tuple, list)) and depth < 2:
        length = [("value", f"len({text}) == {len(value)}")]
        parts = [facts(part, f"{text}[{at}]", depth + 1) for at, part in enumerate(value[:2])]
        return length + [fact for part in parts for fact in part]
    return []


def evaluated(text, fill=None):
    names = environment(fill)
    return facts(eval(text, names), "y")


def known_facts(text):
    """The facts of an expression, each with whether it holds whatever the numbers are."""
    first = evaluated(text)
    others = []
    for fill in (0, 1):
        try:
            others.append(evaluated(text, fill))
        except Exception:
            pass
    return [(kind, fact, all(fact in [f for _, f in other] for other in others)) for kind, fact in first]


def signature(function):
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None


def runs(text):
    """What an expression gives in short; `None` where it raises an exception."""
    try:
        value = eval(text, environment())
    except Exception:
        return None
    value = value[0] if isinstance(value, (tuple, list)) and value else value
    if isinstance(value, torch.Tensor):
        return (value.dtype, value.dim(), value.is_contiguous() if value.layout == torch.strided else False)
    return type(value).__name__


def calls(call, params, receivers):
    """Expressions of a function by its parameters: one for each kind of first argument that runs."""
    required = [p for p in params if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    starred = [p for p in params if p.kind is p.VAR_POSITIONAL]
    pools = [FITTING.get(p.name, ["a", "2", "row", "i"]) for p in required + starred[:1]]
    if receivers and pools:
        pools[0] = receivers
    found, seen = [], set()
    for first in pools[0] if pools else [None]:
        rest = itertools.islice(itertools.product(*pools[1:]), 40)
        for arguments in rest:
            given = ([] if first is None else [first]) + list(arguments)
            text = call(given)
            kind = runs(text)
            if kind is not None:
                if (kind, tuple(given[1:2])) not in seen:
                    seen.add((kind, tuple(given[1:2])))
                    found.append((text, given))
                break
        if len(found) >= 6:
            break
    if found:
        text, given = found[0]
        taken = len(given)
        for param in params[taken:]:
            for value in BY_KEYWORD.get(param.name, []):
                word = value if "=" in value and "'" not in value else f"{param.name}={value}"
                more = call(given + [word])
                if runs(more) is not None:
                    found.append((more, given))
        if len(given) > 1:
            for value in FITTING.get(required[1].name if len(required) > 1 else "", [])[:4]:
                more = call([given[0], value] + given[2:])
                if more != text and runs(more) is not None and len(found) < 14:
                    found.append((more, given))
    return list(dict.fromkeys(text for text, _ in found))


def torch_expressions():
    """By name (`torch.x`, `.x` of a method or property): expressions."""
    found = {}
    for function, stand_in in get_testing_overrides().items():
        path = resolve_name(function)
        if not path or LEFT_OUT.search(path) or path.endswith(("__get__", "__set__", "__delete__")):
            continue
        params = signature(stand_in)
        if params is None:
            continue
        if path.startswith("torch.Tensor."):
            name = path.rsplit(".", 1)[1]
            if name.startswith("__"):
                continue
            call = lambda given, name=name: f"{given[0]}.{name}({', '.join(given[1:])})"
            found["." + name] = calls(call, params, TENSORS)
        else:
            path = path.replace("torch.functional.", "torch.").replace("torch.nn.functional.", "F.")
            found[path] = calls(lambda given, path=path: f"{path}({', '.join(given)})", params, None)
    for name in dir(torch.Tensor):
        if not name.startswith("_") and not callable(getattr(torch.Tensor, name)) and not LEFT_OUT.search(name):
            found["." + name] = [f"{of}.{name}" for of in ("a", "i", "at", "part") if runs(f"{of}.{name}") is not None]
    for module in (torch, torch.cuda, torch.backends.cuda, torch.utils):
        for name in dir(module):
            path = f"{module.__name__}.{name}"
            if re.match(r"(is|are|get)_", name) and path not in found and not LEFT_OUT.search(path):
                params = signature(getattr(module, name)) or []
                found[path] = calls(lambda given, path=path: f"{path}({', '.join(given)})", params, None)
    return found


def module_expressions():
    """Instances of `torch.nn` on what they take."""
    found = {}
    for name in dir(torch.nn):
        made = getattr(torch.nn, name)
        if not (inspect.isclass(made) and issubclass(made, torch.nn.Module)) or name.startswith(("Lazy", "Container", "Module")):
            continue
        params = [p for p in signature(made) or [] if p.name not in ("args", "kwargs")]
        for inputs in ("a", "image", "signal", "cube", "a, b", "places", "cube, cube"):
            call = lambda given, name=name, inputs=inputs: f"nn.{name}({', '.join(given)})({inputs})"
            found.setdefault("nn." + name, []).extend(calls(call, params, None)[:3])
    return found


def python_expressions():
    """Methods of Python's types and its functions, on whatever they take."""
    found = {}
    for kind, receivers in PYTHON.items():
        for name in dir(getattr(builtins, kind)):
            if name.startswith("_"):
                continue
            for of in receivers:
                tried = [[]] + [[x] for x in PYTHON_ARGUMENTS] + [list(x) for x in itertools.product(PYTHON_ARGUMENTS[:5], repeat=2)]
                texts = [f"{of}.{name}({', '.join(given)})" for given in tried]
                found.setdefault("." + name, []).extend([text for text in texts if runs(text) is not None][:3])
    for module, prefix in ((builtins, ""), (math, "math.")):
        for name in dir(module):
            value = getattr(module, name)
            is_class = inspect.isclass(value) and issubclass(value, BaseException)
            if name.startswith("_") or is_class or name in ("input", "exit", "quit", "help", "breakpoint", "print", "open", "license", "copyright", "credits", "exec", "eval", "compile", "globals", "locals", "vars", "dir", "id", "hash"):
                continue
            if not callable(value):
                found[prefix + name] = [prefix + name]
                continue
            tried = [[x] for x in PYTHON_ARGUMENTS] + [list(x) for x in itertools.product(PYTHON_ARGUMENTS, repeat=2)]
            texts = [f"{prefix}{name}({', '.join(given)})" for given in tried]
            found[prefix + name] = [text for text in texts if runs(text) is not None][:6]
    return found


def named(text):
    """The name that an expression is listed under: what it calls or asks for at last."""
    tree = ast.parse(text, mode="eval").body
    while isinstance(tree, ast.Subscript):
        tree = tree.value
    tree = tree.func if isinstance(tree, ast.Call) else tree
    if isinstance(tree, ast.Call):
        tree = tree.func
    written = ast.unparse(tree)
    if re.fullmatch(r"(torch|F|nn|math|np|functools|itertools|operator|collections)(\.\w+)+|\w+", written) and written not in SAMPLES:
        return written
    return "." + tree.attr if isinstance(tree, ast.Attribute) else type(tree).__name__


def expressions(only):
    found = collections.defaultdict(list)
    for line in MORE.splitlines():
        for text in line.split(" | "):
            text = text.strip()
            if runs(text) is not None:
                found[named(text)].append(text)
            else:
                print("does not run:", text, file=sys.stderr)
    for made in (torch_expressions(), module_expressions(), python_expressions()):
        for name, texts in made.items():
            found[name].extend(texts)
    return {name: list(dict.fromkeys(texts)) for name, texts in found.items() if texts and re.search(only, name)}


def program(text, found):
    """A program that computes an expression; by the lines of its kernels, the facts that they stand for."""
    head, tail, at = IMPORTS + "import triton\nimport triton.language as tl\n\n", [], {}
    for number, (kind, fact, _) in enumerate(found):
        for right in (True, False):
            name = f"{'right' if right else 'wrong'}_{number}"
            if kind == "memory":
                part, room = fact
                body = f"y, V):\n    tl.store(y + {room - 1 if right else room}, 0)\n"
                given = f"{part}, 1"
            else:
                body = f"y, V: tl.constexpr):\n    tl.static_assert({'V' if right else 'not V'})\n"
                given = f"a, {fact}"
            head += f"@triton.jit\ndef {name}({body}\n"
            at[head.count("\n") - 1] = (number, right)
            tail.append(f"    {name}[(1,)]({given})\n")
    head += "def main():\n" + "".join(f"    {name} = {made}\n" for name, made in SAMPLES.items() if name in names_in(text) or name == "a")
    return head + f"    y = {text}\n" + "".join(tail) + "\nmain()\n", at


@functools.cache
def names_in(text):
    return {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}


def is_of_one_draw(row):
    return any("one draw" in note for note in row["notes"])


def told(tile, folder):
    """By file: the lines of errors and warnings, counted from 1, with their messages; without what follows from random
    numbers as one run draws them."""
    run = subprocess.run([tile, "check", "--no-cache", "--format", "json", "."], cwd=folder, capture_output=True, text=True)
    found = collections.defaultdict(list)
    for row in map(json.loads, run.stdout.splitlines()):
        if row.get("severity") in ("error", "warning") and not is_of_one_draw(row):
            found[row["file"].removeprefix("./")].append((row["range"]["start"]["line"], row["code"], row["message"]))
    return found


def is_kernel(function):
    return any("jit" in ast.unparse(decorator) for decorator in function.decorator_list)


def used(folders):
    """How many files of the folders use a name in host code."""
    counts = collections.Counter()
    for folder in folders:
        for path in Path(folder).rglob("*.py"):
            try:
                text = path.read_text()
                tree = ast.parse(text)
            except Exception:
                continue
            if "triton" in text:
                counts.update(names_of(tree))
    return counts


def names_of(tree):
    """The names that host code of a file uses, as expressions are listed."""
    modules = {"torch": "torch", "F": "F", "nn": "nn", "math": "math", "np": "np"}
    short = {"torch.nn.functional": "F", "torch.nn": "nn", "numpy": "np"}
    names, open_ = set(), [tree]
    while open_:
        node = open_.pop()
        if isinstance(node, ast.FunctionDef) and is_kernel(node):
            continue
        if isinstance(node, ast.Import):
            for alias in node.names:
                modules[alias.asname or alias.name] = short.get(alias.name, alias.name)
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                path = f"{node.module}.{alias.name}"
                modules[alias.asname or alias.name] = short.get(path, path)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            written = ast.unparse(node)
            root = written.split(".")[0]
            if re.fullmatch(r"[\w.]+", written) and root in modules:
                path = modules[root] + written[len(root):]
                for long, brief in short.items():
                    path = re.sub(rf"^{re.escape(long)}(?=\.)", brief, path)
                names.add(path)
            else:
                names.add("." + node.attr)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in dir(builtins):
            names.add(node.func.id)
        open_ += ast.iter_child_nodes(node)
    return names


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tile")
    parser.add_argument("--only", default="")
    parser.add_argument("--corpus", nargs="*", default=[])
    parser.add_argument("--show", default="unknown,wrong")
    parser.add_argument("--limit", type=int, default=200)
    parser.add_argument("--keep", help="a file that holds the expressions, made where there is none")
    options = parser.parse_args()
    counts = used(options.corpus)
    kept = Path(options.keep) if options.keep else None
    if kept and kept.exists():
        cases = json.loads(kept.read_text())
    else:
        cases = []
        for name, texts in expressions("").items():
            for text in texts:
                try:
                    cases.append((name, text, known_facts(text)))
                except Exception as error:
                    print("fails:", text, error, file=sys.stderr)
        if kept:
            kept.write_text(json.dumps(cases))
    cases = [(name, text, found) for name, text, found in cases if found and re.search(options.only, name)]
    with tempfile.TemporaryDirectory() as folder:
        places = []
        for number, (_, text, found) in enumerate(cases):
            written, at = program(text, found)
            Path(folder, f"e{number}.py").write_text(written)
            places.append(at)
        reported = told(options.tile, folder)
    report(cases, places, reported, counts, options)


def report(cases, places, reported, counts, options):
    totals, by_name = collections.Counter(), collections.defaultdict(list)
    for number, (name, text, found) in enumerate(cases):
        lines = reported.get(f"e{number}.py", [])
        here = {(places[number][line]): message for line, _, message in lines if line in places[number]}
        elsewhere = [message for line, _, message in lines if line not in places[number]]
        for index, (kind, fact, holds) in enumerate(found):
            right, wrong = (index, True) in here, (index, False) in here
            state = "WRONG" if right or (wrong and not holds) else "known" if wrong else "unknown" if holds else "open"
            totals[kind, state] += 1
            by_name[name].append((state, kind, text))
        if elsewhere:
            totals["raises", "WRONG"] += 1
            by_name[name].append(("WRONG", elsewhere[0], text))
    states = ("known", "unknown", "open", "WRONG")
    print(f"{'':10}" + "".join(f"{state:>9}" for state in states))
    for kind in ("dtype", "shape", "strides", "memory", "value", "raises"):
        print(f"{kind:10}" + "".join(f"{totals[kind, state]:9}" for state in states))
    full = [name for name, rows in by_name.items() if all(row[0] in ("known", "open") for row in rows)]
    print(f"{len(full)} of {len(by_name)} names are known throughout")
    if counts:
        uses = sum(count for name, count in counts.items() if name in by_name)
        print(f"{sum(counts[name] for name in full) / max(uses, 1):.1%} of uses in files of the corpora")
    ranked = sorted(by_name, key=lambda name: -counts[name])
    for state in ("WRONG", "unknown", "known"):
        if state.lower() in options.show:
            for name in ranked[: None if state == "WRONG" else 10**6]:
                rows = [row for row in by_name[name] if row[0] == state]
                if rows:
                    texts = collections.defaultdict(list)
                    for _, kind, text in rows:
                        texts[text].append(kind)
                    shown = "; ".join(f"{text} ({','.join(sorted(set(kinds)))})" for text, kinds in list(texts.items())[: options.limit])
                    print(f"{state:8}{counts[name]:6} {name}: {shown}")
    if counts and "missing" in options.show:
        for name, count in counts.most_common():
            if name not in by_name and count > 1:
                print(f"{'missing':8}{count:6} {name}")


if __name__ == "__main__":
    main()
