"""Generalized intersection over union of predicted and true boxes.

A box is (left, top, right, bottom). Images hold different numbers of boxes, so targets are padded
with boxes of zeros; their loss is 0 and `valid` is false. Inputs are float32 or bfloat16: the
kernel casts nothing, its arithmetic follows the inputs' type.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def giou_kernel(
    preds_ptr,
    targets_ptr,
    output_ptr,
    valid_ptr,
    n_boxes,
    BLOCK_SIZE: tl.constexpr,
):
    pid = tl.program_id(axis=0)
    box = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    in_range = box < n_boxes

    preds_left = tl.load(preds_ptr + 4 * box + 0, mask=in_range, other=0)
    preds_top = tl.load(preds_ptr + 4 * box + 1, mask=in_range, other=0)
    preds_right = tl.load(preds_ptr + 4 * box + 2, mask=in_range, other=0)
    preds_bottom = tl.load(preds_ptr + 4 * box + 3, mask=in_range, other=0)

    gt_left = tl.load(targets_ptr + 4 * box + 0, mask=in_range, other=0)
    gt_top = tl.load(targets_ptr + 4 * box + 1, mask=in_range, other=0)
    gt_right = tl.load(targets_ptr + 4 * box + 2, mask=in_range, other=0)
    gt_bottom = tl.load(targets_ptr + 4 * box + 3, mask=in_range, other=0)

    epsilon = 1e-5

    preds_area = (preds_right - preds_left) * (preds_bottom - preds_top)
    gt_area = (gt_right - gt_left) * (gt_bottom - gt_top)

    inter_w = tl.minimum(preds_right, gt_right) - tl.maximum(preds_left, gt_left)
    inter_h = tl.minimum(preds_bottom, gt_bottom) - tl.maximum(preds_top, gt_top)
    inter_area = tl.maximum(inter_w, 0) * tl.maximum(inter_h, 0)
    union_area = preds_area + gt_area - inter_area
    iou = inter_area / tl.maximum(union_area, epsilon)

    # The smallest box around both.
    hull_w = tl.maximum(preds_right, gt_right) - tl.minimum(preds_left, gt_left)
    hull_h = tl.maximum(preds_bottom, gt_bottom) - tl.minimum(preds_top, gt_top)
    hull_area = tl.maximum(hull_w, 0) * tl.maximum(hull_h, 0)
    giou = iou - (hull_area - union_area) / tl.maximum(hull_area, epsilon)

    valid = gt_bottom > 0
    tl.store(output_ptr + box, tl.where(valid, giou, 0), mask=in_range)
    tl.store(valid_ptr + box, valid, mask=in_range)


# tile: n = 10_000
# tile: corner = where(arange(4) >= 2, 1.0, 0.0)
# tile: preds = 3.0 * rand(n, 1) + rand(n, 4, seed=1) + corner
# tile: boxes = 3.0 * rand(n, 1, seed=2) + rand(n, 4, seed=3) + corner
# tile: targets = where(rand(n, 1, seed=4) < 0.8, boxes, 0.0)
# tile: output, valid = empty(n), empty(n, dtype=i1)
# tile: giou_kernel[(cdiv(n, 1024),)](preds, targets, output, valid, n, BLOCK_SIZE=1024)
# tile: pw, ph = preds[:, 2] - preds[:, 0], preds[:, 3] - preds[:, 1]
# tile: gw, gh = targets[:, 2] - targets[:, 0], targets[:, 3] - targets[:, 1]
# tile: most, least = maximum(preds, targets), minimum(preds, targets)
# tile: iw = maximum(least[:, 2] - most[:, 0], 0.0)
# tile: ih = maximum(least[:, 3] - most[:, 1], 0.0)
# tile: inter = iw * ih
# tile: union = pw * ph + gw * gh - inter
# tile: hull = (most[:, 2] - least[:, 0]) * (most[:, 3] - least[:, 1])
# tile: giou = inter / maximum(union, 1e-5) - (hull - union) / maximum(hull, 1e-5)
# tile: assert allclose(output, where(targets[:, 3] > 0, giou, 0.0), rtol=1e-4, atol=1e-4)
# tile: assert allclose(valid, targets[:, 3] > 0)


# tile: n = 10_000
# tile: corner = where(arange(4) >= 2, 1.0, 0.0)
# tile: preds = (3.0 * rand(n, 1) + rand(n, 4, seed=1) + corner).to(bf16)
# tile: boxes = 3.0 * rand(n, 1, seed=2) + rand(n, 4, seed=3) + corner
# tile: targets = where(rand(n, 1, seed=4) < 0.8, boxes, 0.0).to(bf16)
# tile: output, valid = empty(n, dtype=bf16), empty(n, dtype=i1)
# tile: giou_kernel[(cdiv(n, 1024),)](preds, targets, output, valid, n, BLOCK_SIZE=1024)
# tile: p, t = preds.to(fp32), targets.to(fp32)
# tile: pw, ph = p[:, 2] - p[:, 0], p[:, 3] - p[:, 1]
# tile: gw, gh = t[:, 2] - t[:, 0], t[:, 3] - t[:, 1]
# tile: most, least = maximum(p, t), minimum(p, t)
# tile: inter = maximum(least[:, 2] - most[:, 0], 0.0) * maximum(least[:, 3] - most[:, 1], 0.0)
# tile: union = pw * ph + gw * gh - inter
# tile: hull = (most[:, 2] - least[:, 0]) * (most[:, 3] - least[:, 1])
# tile: giou = inter / maximum(union, 1e-5) - (hull - union) / maximum(hull, 1e-5)
# tile: assert allclose(output.to(fp32), where(t[:, 3] > 0, giou, 0.0), rtol=0.05, atol=0.05)
# tile: assert allclose(valid, t[:, 3] > 0)


def giou_loss(preds: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Mean GIOU over the boxes that are not padding; both tensors are [..., 4] and contiguous."""
    n_boxes = preds.numel() // 4
    output = torch.empty(preds.shape[:-1], dtype=preds.dtype, device=preds.device)
    valid = torch.empty(preds.shape[:-1], dtype=torch.bool, device=preds.device)
    grid = lambda meta: (triton.cdiv(n_boxes, meta["BLOCK_SIZE"]),)
    giou_kernel[grid](preds, targets, output, valid, n_boxes, BLOCK_SIZE=1024)
    return output.sum() / valid.sum().clamp(1)


if __name__ == "__main__":
    torch.manual_seed(0)
    boxes = torch.rand(256, 100, 4, device="cuda").sort(dim=-1).values
    # A box lies on itself with a GIOU of 1.
    torch.testing.assert_close(giou_loss(boxes, boxes).item(), 1.0, rtol=1e-3, atol=1e-3)
