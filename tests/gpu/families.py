"""Further cases: families of kernels that models, their training and pictures need.

Registers its cases with those of `cases`."""

import torch
import triton

from cases import BF16_UNITS, Case, Config, case, empty, name_of, randn, size, tiles


def made(file, kernel, grid, arguments, outputs, moved, constexprs, warps=4, tolerance=0.0, initial=(),
         flops=0, configs=None, **others):
    """A case; what `initial` names is read before it is written."""
    before = {name: arguments[name].clone() for name in initial}
    configs = configs or [Config(constexprs, num_warps=warps)]
    return Case(f"{file}.py", kernel, grid, arguments, configs, outputs,
                size(*(arguments[name] for name in moved)), flops, tolerance, initial=before, **others)


def rows(kernel, *args, **kwargs):
    return made("rows", kernel, *args, **kwargs)


def sequences(kernel, *args, **kwargs):
    return made("sequences", kernel, *args, **kwargs)


def integers(low, high, *shape, dtype=torch.int32):
    return torch.randint(low, high, shape, device="cuda", dtype=dtype)


def units(dtype, fine=1e-5):
    """The tolerance for results of `dtype`."""
    return fine if dtype.itemsize >= 4 else BF16_UNITS if dtype == torch.bfloat16 else 2e-3


# Rows, records and pictures.


def add_norm_quantize(n_rows, cols, dtype):
    arguments = {"x_ptr": randn(n_rows, cols, dtype=dtype), "residual_ptr": randn(n_rows, cols, dtype=dtype),
                 "w_ptr": randn(cols, dtype=dtype), "q_ptr": empty(n_rows, cols, dtype=torch.int8),
                 "scale_ptr": empty(n_rows), "n_cols": cols, "eps": 1e-6}
    # A sum in another order moves a scale by a unit, and few values over a step.
    return rows("add_norm_quantize", (n_rows,), arguments, ["q_ptr", "scale_ptr", "residual_ptr"],
                ["x_ptr", "residual_ptr", "residual_ptr", "q_ptr"],
                {"BLOCK_SIZE": triton.next_power_of_2(cols)}, 8, 1.0, ["residual_ptr"])


def smoothed_loss(n_rows, cols, dtype):
    arguments = {"logits_ptr": randn(n_rows, cols, dtype=dtype), "target_ptr": integers(0, cols, n_rows, dtype=torch.int64),
                 "loss_ptr": empty(n_rows), "z_ptr": empty(n_rows), "n_cols": cols, "smoothing": 0.1}
    return rows("smoothed_loss", (n_rows,), arguments, ["logits_ptr", "loss_ptr", "z_ptr"], ["logits_ptr"] * 3,
                {"BLOCK_SIZE": 4096}, 8, units(dtype, 1e-4), ["logits_ptr"])


def moments(n_rows, cols, dtype):
    arguments = {"x_ptr": randn(n_rows, cols, dtype=dtype), "mean_ptr": empty(n_rows), "var_ptr": empty(n_rows),
                 "n_cols": cols}
    return rows("moments", (n_rows,), arguments, ["mean_ptr", "var_ptr"], ["x_ptr"], {"BLOCK_SIZE": 2048}, 8, 1e-4)


def norm_rows(n_rows, cols, dtype):
    arguments = {"x_ptr": randn(n_rows, cols, dtype=dtype), "w_ptr": randn(cols), "b_ptr": randn(cols),
                 "y_ptr": empty(n_rows, cols, dtype=dtype), "n_rows": n_rows, "n_cols": cols, "eps": 1e-5}
    return rows("norm_rows", lambda meta: (triton.cdiv(n_rows, meta["ROWS"]),), arguments, ["y_ptr"],
                ["x_ptr", "y_ptr"], {"ROWS": 16, "COLS": triton.next_power_of_2(cols)}, 4, units(dtype))


def norm_gradients(n_rows, cols, dtype):
    arguments = {"dy_ptr": randn(n_rows, cols, dtype=dtype), "x_ptr": randn(n_rows, cols, dtype=dtype),
                 "w_ptr": randn(cols, dtype=dtype), "dx_ptr": empty(n_rows, cols, dtype=dtype),
                 "dw_ptr": torch.zeros(cols, device="cuda"), "n_cols": cols, "eps": 1e-6}
    return rows("norm_gradients", (n_rows,), arguments, ["dx_ptr", "dw_ptr"], ["dy_ptr", "x_ptr", "dx_ptr"],
                {"BLOCK_SIZE": triton.next_power_of_2(cols)}, 4, max(1e-3, units(dtype)), ["dw_ptr"])


def softmax_rows(n_rows, cols, dtype):
    arguments = {"x_ptr": randn(n_rows, cols, dtype=dtype), "y_ptr": empty(n_rows, cols, dtype=dtype),
                 "n_rows": n_rows, "n_cols": cols}
    return rows("softmax_rows", lambda meta: (triton.cdiv(n_rows, meta["ROWS"]),), arguments, ["y_ptr"],
                ["x_ptr", "y_ptr"], {"ROWS": 16, "COLS": triton.next_power_of_2(cols)}, 4, units(dtype))


def column_moments(n_rows, cols, dtype):
    arguments = {"x_ptr": randn(n_rows, cols, dtype=dtype), "mean_ptr": empty(cols), "var_ptr": empty(cols),
                 "n_rows": n_rows, "n_cols": cols}
    return rows("column_moments", lambda meta: (triton.cdiv(cols, meta["BLOCK_N"]),), arguments,
                ["mean_ptr", "var_ptr"], ["x_ptr"], {"BLOCK_M": 32, "BLOCK_N": 32}, 4, 1e-4)


def adam(n, dtype):
    arguments = {"p_ptr": randn(n, dtype=dtype), "g_ptr": randn(n, dtype=dtype), "m_ptr": randn(n), "v_ptr": randn(n).abs(),
                 "lr": 1e-3, "beta1": 0.9, "beta2": 0.99, "eps": 1e-8, "decay": 0.01, "step": 7, "n": n}
    return rows("adam", lambda meta: (triton.cdiv(n, meta["BLOCK_SIZE"]),), arguments, ["p_ptr", "m_ptr", "v_ptr"],
                ["p_ptr", "p_ptr", "g_ptr", "m_ptr", "m_ptr", "v_ptr", "v_ptr"], {"BLOCK_SIZE": 1024}, 4,
                units(dtype), ["p_ptr", "m_ptr", "v_ptr"])


def rotate_pairs(tokens, heads, half, dtype):
    x = randn(tokens, heads, 2 * half, dtype=dtype)
    arguments = {"x_ptr": x, "cos_ptr": randn(tokens, half), "sin_ptr": randn(tokens, half),
                 "y_ptr": torch.empty_like(x), "n_heads": heads}
    return rows("rotate_pairs", (tokens, heads), arguments, ["y_ptr"], ["x_ptr", "y_ptr"], {"HALF": half}, 1,
                2 * units(dtype))


def cache_rows(tokens, width, slots, dtype, cache):
    k, v = randn(tokens, width, dtype=dtype), randn(tokens, width, dtype=dtype)
    slot = torch.randperm(slots, device="cuda")[:tokens].contiguous()
    arguments = {"k_ptr": k, "v_ptr": v, "k_cache_ptr": empty(slots, width, dtype=cache),
                 "v_cache_ptr": empty(slots, width, dtype=cache), "slot_ptr": slot, "width": width}
    return rows("cache_rows", (tokens,), arguments, ["k_cache_ptr", "v_cache_ptr"], ["k_ptr", "v_ptr", "k_ptr", "v_ptr"],
                {"BLOCK_SIZE": width}, 4)


def gather_columns(n_rows, cols, n_out, dtype):
    arguments = {"x_ptr": randn(n_rows, cols, dtype=dtype), "index_ptr": integers(0, cols, n_rows, n_out, dtype=torch.int64),
                 "y_ptr": empty(n_rows, n_out, dtype=dtype), "n_cols": cols, "n_out": n_out}
    return rows("gather_columns", lambda meta: (n_rows, triton.cdiv(n_out, meta["BLOCK_SIZE"])), arguments, ["y_ptr"],
                ["x_ptr", "index_ptr", "y_ptr"], {"BLOCK_SIZE": 1024})


def scatter_add(n_rows, cols, targets, dtype):
    arguments = {"x_ptr": randn(n_rows, cols, dtype=dtype), "index_ptr": integers(0, targets, n_rows, dtype=torch.int64),
                 "y_ptr": torch.zeros(targets, cols, device="cuda", dtype=dtype), "n_cols": cols}
    return rows("scatter_add", lambda meta: (n_rows, triton.cdiv(cols, meta["BLOCK_SIZE"])), arguments, ["y_ptr"],
                ["x_ptr", "y_ptr"], {"BLOCK_SIZE": 1024}, 4, 1e-4 if dtype == torch.float32 else 0.1, ["y_ptr"])


def scatter_max(n, targets, dtype):
    arguments = {"x_ptr": integers(-2**30, 2**30, n, dtype=dtype), "index_ptr": integers(0, targets, n),
                 "y_ptr": torch.full((targets,), -2**31, device="cuda", dtype=dtype), "n": n}
    return rows("scatter_max", lambda meta: (triton.cdiv(n, meta["BLOCK_SIZE"]),), arguments, ["y_ptr"],
                ["x_ptr", "index_ptr"], {"BLOCK_SIZE": 1024}, 4, 0.0, ["y_ptr"])


def stencil_2d(height, width):
    arguments = {"x_ptr": randn(height, width), "y_ptr": empty(height, width), "height": height, "width": width}
    return rows("stencil_2d", lambda meta: (triton.cdiv(width, meta["BLOCK_X"]), triton.cdiv(height, meta["BLOCK_Y"])),
                arguments, ["y_ptr"], ["x_ptr", "y_ptr"], {"BLOCK_Y": 8, "BLOCK_X": 128}, 4, 1e-6)


def stencil_3d(depth, height, width):
    arguments = {"x_ptr": randn(depth, height, width), "y_ptr": empty(depth, height, width), "depth": depth,
                 "height": height, "width": width}
    return rows("stencil_3d", lambda meta: (triton.cdiv(width, meta["BLOCK_SIZE"]), height, depth), arguments, ["y_ptr"],
                ["x_ptr", "y_ptr"], {"BLOCK_SIZE": 512}, 4, 1e-5)


def picture(kernel, planes, height, width, dtype, up):
    scale = 2 if up else 0.5
    arguments = {"x_ptr": randn(planes, height, width, dtype=dtype),
                 "y_ptr": empty(planes, int(height * scale), int(width * scale), dtype=dtype), "height": height, "width": width}
    return rows(kernel, lambda meta: (triton.cdiv(int(width * scale), meta["BLOCK_SIZE"]), int(height * scale), planes),
                arguments, ["y_ptr"], ["x_ptr", "y_ptr"], {"BLOCK_SIZE": 512}, 4, units(dtype) if up else 0.0)


def permute_copy(a, b, c, order, dtype):
    x = integers(-128, 128, a, b, c, dtype=torch.int16).to(dtype)
    strides, shape = [b * c, c, 1], [a, b, c]
    arguments = {"x_ptr": x, "y_ptr": torch.empty_like(x), "a": shape[order[0]], "b": shape[order[1]],
                 "c": shape[order[2]], "stride_a": strides[order[0]], "stride_b": strides[order[1]],
                 "stride_c": strides[order[2]], "n": a * b * c}
    return rows("permute_copy", lambda meta: (triton.cdiv(a * b * c, meta["BLOCK_SIZE"]),), arguments, ["y_ptr"],
                ["x_ptr", "y_ptr"], {"BLOCK_SIZE": 1024})


def transpose_of(n_rows, cols, dtype):
    x = integers(-128, 128, n_rows, cols, dtype=torch.int16).to(dtype)
    arguments = {"x_ptr": x, "y_ptr": empty(cols, n_rows, dtype=dtype), "n_rows": n_rows, "n_cols": cols}
    return made("memory", "transpose",
                lambda meta: (triton.cdiv(n_rows, meta["BLOCK_M"]), triton.cdiv(cols, meta["BLOCK_N"])), arguments,
                ["y_ptr"], ["x_ptr", "y_ptr"], {"BLOCK_M": 64, "BLOCK_N": 64})


def row_statistics(n_rows, cols, dtype):
    x = randn(n_rows, cols, dtype=dtype) if dtype.is_floating_point else integers(-99, 99, n_rows, cols, dtype=dtype)
    arguments = {"x_ptr": x, "sum_ptr": empty(n_rows, dtype=dtype), "max_ptr": empty(n_rows, dtype=dtype),
                 "norm_ptr": empty(n_rows, dtype=torch.float64), "n_cols": cols}
    return rows("row_statistics", (n_rows,), arguments, ["sum_ptr", "max_ptr", "norm_ptr"], ["x_ptr"],
                {"BLOCK_SIZE": triton.next_power_of_2(cols)}, 8, 1e-9)


def random_integers(n):
    arguments = {"out_ptr": empty(4, n, dtype=torch.int32), "normal_ptr": empty(n), "seed": 42, "n": n}
    return rows("random_integers", lambda meta: (triton.cdiv(n, meta["BLOCK_SIZE"]),), arguments,
                ["out_ptr", "normal_ptr"], ["out_ptr", "normal_ptr"], {"BLOCK_SIZE": 1024})


def crossings(n_rows, cols):
    arguments = {"x_ptr": randn(n_rows, cols), "out_ptr": empty(n_rows, 3, dtype=torch.int32), "n_cols": cols}
    return rows("crossings", (n_rows,), arguments, ["out_ptr"], ["x_ptr"],
                {"BLOCK_SIZE": triton.next_power_of_2(cols)}, 4)


def route(tokens, experts, k):
    arguments = {"x_ptr": randn(tokens, experts), "weight_ptr": empty(tokens, k),
                 "expert_ptr": empty(tokens, k, dtype=torch.int32), "n_experts": experts}
    return rows("route", lambda meta: (tokens // meta["ROWS"],), arguments, ["weight_ptr", "expert_ptr"], ["x_ptr"],
                {"K": k, "EXPERTS": triton.next_power_of_2(experts), "ROWS": 16}, 4, 1e-6)


for dtype in (torch.float32, torch.bfloat16):
    name = name_of(dtype)
    case(f"rows.add_norm_quantize.{name}", add_norm_quantize, 8192, 4096, dtype)
    case(f"rows.smoothed_loss.{name}", smoothed_loss, 4096, 32_000, dtype)
    case(f"rows.moments.{name}", moments, 4096, 16_384, dtype)
    case(f"rows.norm_rows.{name}", norm_rows, 2**17, 256, dtype)
    case(f"rows.norm_gradients.{name}", norm_gradients, 16_384, 1024, dtype)
    case(f"rows.softmax_rows.{name}", softmax_rows, 2**17, 250, dtype)
    case(f"rows.column_moments.{name}", column_moments, 8192, 8192, dtype)
    case(f"rows.adam.{name}", adam, 2**24, dtype)
    case(f"rows.rotate_pairs.{name}", rotate_pairs, 4096, 32, 64, dtype)
    case(f"rows.gather_columns.{name}", gather_columns, 4096, 8192, 4096, dtype)
case("rows.cache_rows.bf16", cache_rows, 16_384, 1024, 32_768, torch.bfloat16, torch.bfloat16)
case("rows.cache_rows.fp8", cache_rows, 16_384, 1024, 32_768, torch.bfloat16, torch.float8_e4m3fn)
case("rows.scatter_add.f32", scatter_add, 16_384, 1024, 4096, torch.float32)
case("rows.scatter_add.f16", scatter_add, 16_384, 1024, 4096, torch.float16)
case("rows.scatter_max.i32", scatter_max, 2**23, 2**16, torch.int32)
case("rows.scatter_max.i64", scatter_max, 2**23, 2**16, torch.int64)
case("rows.stencil_2d", stencil_2d, 8192, 8192)
case("rows.stencil_3d", stencil_3d, 256, 256, 1024)
case("rows.max_pool.f32", picture, "max_pool", 64, 1024, 1024, torch.float32, False)
case("rows.max_pool.f16", picture, "max_pool", 64, 1024, 1024, torch.float16, False)
case("rows.upsample.f32", picture, "upsample", 64, 512, 512, torch.float32, True)
case("rows.permute.f32", permute_copy, 64, 1024, 512, (1, 0, 2), torch.float32)
case("rows.permute.bf16", permute_copy, 64, 1024, 512, (0, 2, 1), torch.bfloat16)
for dtype in (torch.int8, torch.float16, torch.int64, torch.float64):
    case(f"rows.transpose.{name_of(dtype)}", transpose_of, 4096, 8192, dtype)
for dtype in (torch.float64, torch.int64, torch.int32, torch.int8):
    case(f"rows.statistics.{name_of(dtype)}", row_statistics, 8192, 4096, dtype)
case("rows.random_integers", random_integers, 2**23)
case("rows.crossings", crossings, 8192, 8191)
case("rows.route.f32", route, 2**17, 128, 4)


# Along sequences.


def selective_scan(batch, length, dim, state, dtype):
    arguments = {"u_ptr": randn(batch, length, dim, dtype=dtype), "delta_ptr": randn(batch, length, dim, dtype=dtype),
                 "a_ptr": -torch.rand(dim, state, device="cuda"), "b_ptr": randn(batch, length, state, dtype=dtype),
                 "c_ptr": randn(batch, length, state, dtype=dtype), "d_ptr": randn(dim),
                 "y_ptr": empty(batch, length, dim, dtype=dtype), "length": length, "dim": dim}
    return sequences("selective_scan", lambda meta: (dim // meta["BLOCK_D"], batch), arguments, ["y_ptr"],
                     ["u_ptr", "delta_ptr", "y_ptr"], {"STATE": state, "BLOCK_D": 64}, 2, units(dtype, 1e-3) * 4)


def gated_recurrence(batch, length, dim, dtype):
    arguments = {"a_ptr": torch.rand(batch, length, dim, device="cuda").to(dtype), "x_ptr": randn(batch, length, dim, dtype=dtype),
                 "h_ptr": empty(batch, length, dim), "length": length, "dim": dim}
    return sequences("gated_recurrence", lambda meta: (dim // meta["BLOCK_D"], batch), arguments, ["h_ptr"],
                     ["a_ptr", "x_ptr", "h_ptr"], {"BLOCK_T": 32, "BLOCK_D": 64}, 4, 1e-4)


def segment_sums(n_rows, cols):
    arguments = {"x_ptr": randn(n_rows, cols), "start_ptr": integers(0, 50, n_rows, cols, dtype=torch.uint8) // 49,
                 "out_ptr": empty(n_rows, cols), "n_cols": cols}
    return sequences("segment_sums", (n_rows,), arguments, ["out_ptr"], ["x_ptr", "start_ptr", "out_ptr"],
                     {"BLOCK_SIZE": cols}, 4, 1e-4)


def argsort(n_rows, cols):
    arguments = {"x_ptr": randn(n_rows, cols), "value_ptr": empty(n_rows, cols),
                 "index_ptr": empty(n_rows, cols, dtype=torch.int32), "n_cols": cols}
    return sequences("argsort", (n_rows,), arguments, ["value_ptr", "index_ptr"], ["x_ptr", "value_ptr", "index_ptr"],
                     {"BLOCK_SIZE": triton.next_power_of_2(cols)}, 4)


def top_p(n_rows, cols):
    arguments = {"x_ptr": 3 * randn(n_rows, cols), "bound_ptr": empty(n_rows), "count_ptr": empty(n_rows, dtype=torch.int32),
                 "n_cols": cols, "p": 0.9}
    # Where a running sum comes close to the bound, one more may count.
    return sequences("top_p", (n_rows,), arguments, ["bound_ptr", "count_ptr"], ["x_ptr"],
                     {"BLOCK_SIZE": triton.next_power_of_2(cols)}, 4, 0.1)


def pick(n_rows, cols, dtype):
    arguments = {"x_ptr": randn(n_rows, cols, dtype=dtype), "noise_ptr": torch.rand(n_rows, cols, device="cuda"),
                 "out_ptr": empty(n_rows, dtype=torch.int32), "n_cols": cols, "temperature": 0.8}
    return sequences("pick", (n_rows,), arguments, ["out_ptr"], ["x_ptr", "noise_ptr"], {"BLOCK_SIZE": 4096}, 8)


def batched_gemv(batch, n_rows, cols, dtype):
    arguments = {"a_ptr": randn(batch, n_rows, cols, dtype=dtype), "x_ptr": randn(batch, cols, dtype=dtype),
                 "y_ptr": empty(batch, n_rows), "n_rows": n_rows, "n_cols": cols}
    return sequences("batched_gemv", lambda meta: (n_rows // meta["BLOCK_M"], batch), arguments, ["y_ptr"], ["a_ptr"],
                     {"BLOCK_M": 16, "BLOCK_N": 256}, 4, 1e-3)


def vector_matrix(n_rows, cols, dtype):
    arguments = {"x_ptr": randn(n_rows, dtype=dtype), "w_ptr": randn(n_rows, cols, dtype=dtype), "y_ptr": empty(cols),
                 "n_rows": n_rows, "n_cols": cols}
    return sequences("vector_matrix", lambda meta: (cols // meta["BLOCK_N"],), arguments, ["y_ptr"], ["w_ptr"],
                     {"BLOCK_M": 64, "BLOCK_N": 64}, 4, 1e-3)


for dtype in (torch.float32, torch.bfloat16):
    name = name_of(dtype)
    case(f"sequences.selective_scan.{name}", selective_scan, 8, 512, 4096, 16, dtype)
    case(f"sequences.gated_recurrence.{name}", gated_recurrence, 8, 2048, 4096, dtype)
    case(f"sequences.pick.{name}", pick, 2048, 32_000, dtype)
    case(f"sequences.batched_gemv.{name}", batched_gemv, 64, 1024, 1024, dtype)
    case(f"sequences.vector_matrix.{name}", vector_matrix, 8192, 16_384, dtype)
case("sequences.segment_sums", segment_sums, 8192, 2048)
case("sequences.argsort", argsort, 8192, 1024)
case("sequences.top_p", top_p, 8192, 1000)


def varlen_attention(lengths, heads, dim, window):
    ends = torch.tensor([0, *lengths]).cumsum(0).int().cuda()
    q, k, v, out = (randn(sum(lengths), heads, dim, dtype=torch.bfloat16) for _ in range(4))
    arguments = {"q_ptr": q, "k_ptr": k, "v_ptr": v, "out_ptr": out, "starts_ptr": ends, "scale": dim**-0.5,
                 "n_heads": heads, "cap": 30.0, "window": window}
    flops = sum(2 * n * n if n <= window else 4 * n * window for n in lengths) * heads * dim
    configs = [Config({"DIM": dim, "BLOCK_M": m, "BLOCK_N": 64}, warps, stages)
               for m, warps in ((128, 8), (64, 4)) for stages in (2, 3)]
    return sequences("varlen_attention",
                     lambda meta: (triton.cdiv(max(lengths), meta["BLOCK_M"]), len(lengths), heads), arguments,
                     ["out_ptr"], ["q_ptr"], {}, tolerance=BF16_UNITS, flops=flops, configs=configs)


def sparse_attention(heads, n_ctx, dim, most, block=64):
    q, k, v, out = (randn(heads, n_ctx, dim, dtype=torch.float16) for _ in range(4))
    blocks = n_ctx // block
    arguments = {"q_ptr": q, "k_ptr": k, "v_ptr": v, "out_ptr": out, "count_ptr": integers(most // 2, most + 1, blocks),
                 "block_ptr": integers(0, blocks, blocks, most), "scale": dim**-0.5, "n_ctx": n_ctx, "most": most}
    return sequences("sparse_attention", (blocks, heads), arguments, ["out_ptr"], ["q_ptr"], {}, tolerance=4e-3,
                     flops=3 * heads * n_ctx * most * block * dim,
                     configs=[Config({"DIM": dim, "BLOCK": block}, 4, stages) for stages in (2, 3)])


def split_decode(batch, kv_heads, group, length, dim, split):
    arguments = {"q_ptr": randn(batch, kv_heads, group, dim, dtype=torch.bfloat16),
                 "k_ptr": randn(batch, kv_heads, length, dim, dtype=torch.bfloat16),
                 "v_ptr": randn(batch, kv_heads, length, dim, dtype=torch.bfloat16),
                 "part_ptr": empty(batch, kv_heads, group, split, dim), "lse_ptr": empty(batch, kv_heads, group, split),
                 "scale": dim**-0.5, "length": length, "n_kv": kv_heads}
    configs = [Config({"SPLIT": split, "GROUP": group, "DIM": dim, "BLOCK_N": 64}, 4, stages) for stages in (2, 3)]
    return sequences("split_decode", (batch, kv_heads, split), arguments, ["part_ptr", "lse_ptr"], ["k_ptr", "v_ptr"], {},
                     tolerance=4e-3, configs=configs)


def chunk_states(heads, length, dim, dtype):
    k, v = randn(heads, length, dim, dtype=dtype) / 8, randn(heads, length, dim, dtype=dtype)
    h = empty(heads, length // 64, dim, dim, dtype=dtype)
    arguments = {"k_ptr": k, "v_ptr": v, "g_ptr": -torch.rand(heads, length, device="cuda") / 8, "h_ptr": h, "length": length}
    return sequences("chunk_states", lambda meta: (dim // meta["BLOCK_V"], heads), arguments, ["h_ptr"],
                     ["k_ptr", "v_ptr", "h_ptr"], {}, tolerance=4 * units(dtype), flops=2 * heads * length * dim * dim,
                     configs=[Config({"K": dim, "V": dim, "BLOCK_V": 64, "CHUNK": 64}, 4, stages) for stages in (2, 3)])


def block_peaks(heads, length, dim, block):
    arguments = {"q_ptr": randn(heads, length, dim, dtype=torch.float16), "k_ptr": randn(heads, length, dim, dtype=torch.float16),
                 "peak_ptr": empty(heads, length // block, length), "length": length}
    return sequences("block_peaks", (length // 64, heads), arguments, ["peak_ptr"], list(arguments)[:3],
                     {"DIM": dim, "BLOCK_M": 64, "BLOCK_N": block}, tolerance=1e-3, flops=2 * heads * length**2 * dim)


def chunk_backward(heads, length, dim):
    inputs = {f"{name}_ptr": randn(heads, length, dim, dtype=torch.bfloat16) / 4 for name in ("q", "k", "v", "do")}
    outputs = {f"d{name}_ptr": empty(heads, length, dim, dtype=torch.bfloat16) for name in ("q", "k", "v")}
    return sequences("chunk_backward", (length // 64, heads), inputs | outputs | {"length": length}, list(outputs),
                     [*inputs, *outputs], {}, tolerance=2 * BF16_UNITS, flops=10 * heads * length * 64 * dim,
                     configs=[Config({"K": dim, "V": dim, "CHUNK": 64}, warps, 2) for warps in (4, 8)])


BLOCKS = ((128, 128, 128, 3, 8), (128, 128, 128, 3, 4), (64, 128, 128, 4, 4))


def scaled_blocks(m, n, k, dtype, group=128):
    def operand(*shape):
        return integers(-127, 128, *shape, dtype=dtype) if dtype == torch.int8 else randn(*shape, dtype=dtype)

    a_scale, b_scale = torch.rand(m, k // group, device="cuda"), torch.rand(n // group, k // group, device="cuda")
    a, b = operand(m, k), operand(n, k)
    arguments = {"a_ptr": a, "b_ptr": b, "a_scale_ptr": a_scale / 64, "b_scale_ptr": b_scale / 64,
                 "c_ptr": empty(m, n, dtype=torch.bfloat16), "M": m, "N": n, "K": k}
    found = sequences("scaled_blocks", lambda meta: (triton.cdiv(m, meta["BLOCK_M"]), triton.cdiv(n, meta["BLOCK_N"])),
                      arguments, ["c_ptr"], ["a_ptr", "b_ptr", "c_ptr"], {}, tolerance=2e-2, flops=2 * m * n * k,
                      configs=tiles(BLOCKS, GROUP=group))
    found.sm80 = dtype == torch.int8
    return found


PAIRS = ((128, 128, 64, 3, 8), (128, 64, 64, 4, 4), (64, 128, 64, 3, 4))


def gated_products(m, n, k, dtype):
    arguments = {"x_ptr": randn(m, k, dtype=dtype), "gate_ptr": randn(n, k, dtype=dtype) / 16,
                 "up_ptr": randn(n, k, dtype=dtype) / 16, "y_ptr": empty(m, n, dtype=dtype), "M": m, "N": n, "K": k}
    return sequences("gated_products", lambda meta: (triton.cdiv(m, meta["BLOCK_M"]), triton.cdiv(n, meta["BLOCK_N"])),
                     arguments, ["y_ptr"], ["x_ptr", "y_ptr"], {}, tolerance=BF16_UNITS, flops=4 * m * n * k,
                     configs=tiles(PAIRS))


def biased_product(m, n, k, dtype, turned):
    a, b = randn(*((k, m) if turned else (m, k)), dtype=dtype), randn(k, n, dtype=dtype) / 16
    arguments = {"a_ptr": a, "b_ptr": b, "bias_ptr": randn(n, dtype=dtype), "residual_ptr": randn(m, n, dtype=dtype),
                 "c_ptr": empty(m, n, dtype=dtype), "M": m, "N": n, "K": k, "stride_am": 1 if turned else k,
                 "stride_ak": m if turned else 1, "stride_bk": n, "stride_bn": 1}
    return sequences("biased_product", lambda meta: (triton.cdiv(m, meta["BLOCK_M"]), triton.cdiv(n, meta["BLOCK_N"])),
                     arguments, ["c_ptr"], ["a_ptr", "b_ptr", "c_ptr"], {},
                     tolerance=5e-2 if dtype == torch.float32 else 2 * BF16_UNITS, flops=2 * m * n * k,
                     configs=tiles(((128, 128, 64, 3, 8), (64, 128, 64, 3, 4)) if dtype.itemsize == 2
                                   else ((128, 128, 32, 3, 8), (64, 64, 32, 3, 4))))


def convolution(images, side, channels, n, dtype):
    arguments = {"x_ptr": randn(images, side, side, channels, dtype=dtype), "w_ptr": randn(9 * channels, n, dtype=dtype) / 16,
                 "y_ptr": empty(images, side, side, n, dtype=dtype), "height": side, "width": side, "C": channels, "N": n}
    pixels = images * side * side
    return sequences("convolution", lambda meta: (pixels // meta["BLOCK_M"], n // meta["BLOCK_N"]), arguments, ["y_ptr"],
                     ["x_ptr", "y_ptr"], {}, tolerance=1e-2, flops=18 * pixels * channels * n,
                     configs=tiles(((128, 128, 64, 3, 8), (128, 128, 32, 3, 4)), SIDE=3))


def low_rank(tokens, n, k, rank, adapters, dtype):
    arguments = {"x_ptr": randn(tokens, k, dtype=dtype) / 8, "down_ptr": randn(adapters, rank, k, dtype=dtype) / 8,
                 "up_ptr": randn(adapters, n, rank, dtype=dtype), "index_ptr": integers(0, adapters, tokens // 32),
                 "y_ptr": randn(tokens, n, dtype=dtype), "N": n, "K": k}
    return sequences("low_rank", lambda meta: (tokens // meta["BLOCK_M"], n // meta["BLOCK_N"]), arguments, ["y_ptr"],
                     ["x_ptr", "y_ptr"], {}, tolerance=4 * BF16_UNITS, initial=["y_ptr"],
                     flops=2 * tokens * rank * (n + k * (n // 256)),
                     configs=tiles(((32, 256, 64, 3, 4),), RANK=rank))


def exact_product(batch, m, n, k, choices):
    arguments = {"a_ptr": randn(batch, m, k), "b_ptr": randn(batch, k, n), "c_ptr": empty(batch, m, n), "N": n, "K": k}
    return sequences("exact_product", lambda meta: (m // meta["BLOCK_M"], n // meta["BLOCK_N"], batch), arguments,
                     ["c_ptr"], ["a_ptr", "b_ptr", "c_ptr"], {}, tolerance=1e-4, flops=2 * batch * m * n * k,
                     configs=tiles(choices))


case("sequences.varlen_attention", varlen_attention, [1000, 37, 2048, 512, 3000, 64, 1500, 31], 32, 128, 1024)
case("sequences.sparse_attention", sparse_attention, 64, 4096, 64, 16)
case("sequences.split_decode", split_decode, 16, 8, 16, 8192, 128, 8)
case("sequences.chunk_states.bf16", chunk_states, 128, 4096, 128, torch.bfloat16)
for block in (16, 64):
    case(f"sequences.block_peaks.{block}", block_peaks, 32, 4096, 64, block)
case("sequences.chunk_backward", chunk_backward, 128, 4096, 64)
case("sequences.scaled_blocks.fp8", scaled_blocks, 4096, 4096, 4096, torch.float8_e4m3fn)
case("sequences.scaled_blocks.int8", scaled_blocks, 4096, 4096, 4096, torch.int8)
case("sequences.gated_products.bf16", gated_products, 4096, 4096, 2048, torch.bfloat16)
case("sequences.biased_product.bf16", biased_product, 4000, 4096, 2040, torch.bfloat16, False)
case("sequences.biased_product.turned.f16", biased_product, 4096, 4096, 2048, torch.float16, True)
case("sequences.biased_product.tf32", biased_product, 2048, 2048, 2048, torch.float32, False)
case("sequences.convolution.f16", convolution, 16, 64, 256, 256, torch.float16)
case("sequences.low_rank.bf16", low_rank, 8192, 4096, 4096, 16, 8, torch.bfloat16)
case("sequences.exact_product", exact_product, 8, 1024, 1024, 512,
     ((128, 128, 16, 2, 8), (128, 64, 32, 3, 4), (64, 64, 32, 3, 8), (64, 64, 32, 2, 4)))
case("sequences.exact_product.small", exact_product, 8, 1024, 1024, 512, ((32, 32, 32, 2, 4),))
