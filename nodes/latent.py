"""Empty latents, their size and their batches. A LATENT is a dict with `samples` [B, C, h, w]."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import torch

from nodes.compose import repeated
from nodes.context import NodeInputError
from nodes.declare import node
from nodes.resize import resized, size_keeping_aspect
from nodes.room import need_room
from nodes.sampling import EMPTY_FACTOR
from nodes.types import Float, Int, Latent, Mask

CATEGORY = "model/latent"
# Sizes on latent nodes are pixels of an autoencoder with eight pixels a cell, whatever the latent came from.
CELL = 8
SMALLEST_SIDE = 64

BatchSize = Annotated[int, Int(1, 4096)]
UpscaleMethod = Literal["nearest-exact", "bilinear", "area", "bicubic", "bislerp"]
Side = Annotated[int, Int(0, 16384, 8)]


@node("EmptyLatentImage", display="Empty Latent Image", category=CATEGORY)
def empty_latent(
    *,
    width: Annotated[int, Int(16, 16384, 8)] = 512,
    height: Annotated[int, Int(16, 16384, 8)] = 512,
    batch_size: BatchSize = 1,
) -> Latent:
    """Nothing, to be filled by a sampler; the model that samples adapts it to its own latents."""
    need_room(batch_size, 4, height // CELL, width // CELL)
    samples = torch.zeros(batch_size, 4, height // CELL, width // CELL)
    return {"samples": samples, EMPTY_FACTOR: CELL}


@node("EmptySD3LatentImage", category=f"{CATEGORY}/stable diffusion")
def empty_latent_sd3(
    *,
    width: Annotated[int, Int(16, 16384, 16)] = 1024,
    height: Annotated[int, Int(16, 16384, 16)] = 1024,
    batch_size: BatchSize = 1,
) -> Latent:
    """Nothing, in the sixteen channels of Stable Diffusion 3 and FLUX."""
    need_room(batch_size, 16, height // CELL, width // CELL)
    samples = torch.zeros(batch_size, 16, height // CELL, width // CELL)
    return {"samples": samples, EMPTY_FACTOR: CELL}


@node("LatentUpscale", display="Upscale Latent", category=CATEGORY)
def upscale(
    *,
    samples: Latent,
    upscale_method: UpscaleMethod = "nearest-exact",
    width: Side = 512,
    height: Side = 512,
    crop: Literal["disabled", "center"] = "disabled",
) -> Latent:
    """To a size in pixels. A side of 0 follows from the other."""
    if width == 0 and height == 0:
        return samples
    old_height, old_width = samples["samples"].shape[-2:]
    new_width, new_height = size_keeping_aspect(old_width * CELL, old_height * CELL, width, height)
    cells = max(SMALLEST_SIDE, new_width) // CELL, max(SMALLEST_SIDE, new_height) // CELL
    return samples | {"samples": resized(samples["samples"], *cells, upscale_method, crop)}


@node("LatentUpscaleBy", display="Upscale Latent By", category=CATEGORY)
def upscale_by(
    *,
    samples: Latent,
    upscale_method: UpscaleMethod = "nearest-exact",
    scale_by: Annotated[float, Float(0.01, 8.0, 0.01)] = 1.5,
) -> Latent:
    """By a factor."""
    height, width = (max(1, round(side * scale_by)) for side in samples["samples"].shape[-2:])
    return samples | {"samples": resized(samples["samples"], width, height, upscale_method)}


@node("LatentFromBatch", display="Get Latent From Batch", category=f"{CATEGORY}/batch")
def from_batch(
    *,
    samples: Latent,
    batch_index: Annotated[int, Int(-16384, 16384)] = 0,
    length: Annotated[int, Int(1, 64)] = 1,
) -> Latent:
    """Some items of a batch, with the noise that they have in it. A negative index counts from the end."""
    total = samples["samples"].shape[0]
    start = min(max(batch_index + total if batch_index < 0 else batch_index, 0), total - 1)
    chosen = slice(start, min(start + length, total))
    result: dict[str, Any] = samples | {"samples": samples["samples"][chosen].clone()}
    mask = samples.get("noise_mask")
    if mask is not None:
        result["noise_mask"] = mask.clone() if mask.shape[0] == 1 else repeated(mask, total)[chosen].clone()
    result["batch_index"] = list(samples.get("batch_index", range(total)))[chosen]
    return result


@node("RepeatLatentBatch", display="Repeat Latent Batch", category=f"{CATEGORY}/batch")
def repeat_batch(*, samples: Latent, amount: Annotated[int, Int(1, 64)] = 1) -> Latent:
    """The batch several times over; each copy gets noise of its own."""
    total = samples["samples"].shape[0]
    need_room(amount, *samples["samples"].shape)
    result: dict[str, Any] = samples | {"samples": samples["samples"].repeat(amount, 1, 1, 1)}
    mask = samples.get("noise_mask")
    if mask is not None and mask.shape[0] > 1:
        result["noise_mask"] = repeated(mask, total).repeat(amount, 1, 1, 1)
    if "batch_index" in samples:
        indexes = list(samples["batch_index"])
        stride = max(indexes) - min(indexes) + 1
        result["batch_index"] = [index + stride * copy for copy in range(amount) for index in indexes]
    return result


@node("LatentBatch", display="Batch Latents (DEPRECATED)", category=f"{CATEGORY}/batch", deprecated=True)
def batch(*, samples1: Latent, samples2: Latent) -> Latent:
    """Two batches as one, the second brought to the size of the first."""
    one, two = samples1["samples"], samples2["samples"]
    joined = torch.cat((one, like(two, one, "bilinear")), dim=0)
    indexes = [
        index
        for part in (samples1, samples2)
        for index in part.get("batch_index", range(len(part["samples"])))
    ]
    return samples1 | {"samples": joined, "batch_index": indexes}


@node("LatentBatchSeedBehavior", category=f"{CATEGORY}/advanced")
def batch_seed_behavior(*, samples: Latent, seed_behavior: Literal["random", "fixed"] = "fixed") -> Latent:
    """ "fixed" gives every item of the batch the noise of the first, "random" to each its own."""
    result = {key: value for key, value in samples.items() if key != "batch_index"}
    if seed_behavior == "fixed":
        first = samples.get("batch_index", [0])[0]
        result["batch_index"] = [first] * samples["samples"].shape[0]
    return result


@node("SetLatentNoiseMask", display="Set Latent Noise Mask", category=CATEGORY)
def set_noise_mask(*, samples: Latent, mask: Mask) -> Latent:
    """The sampler repaints where the mask is white and keeps the rest."""
    return samples | {"noise_mask": mask.reshape(-1, 1, *mask.shape[-2:])}


def like(x: torch.Tensor, model: torch.Tensor, method: str) -> torch.Tensor:
    """x [B, C, h, w] at the size of `model`, cut in the middle."""
    if x.shape[1] != model.shape[1]:
        raise NodeInputError(
            f"These latents belong to different models: {x.shape[1]} and {model.shape[1]} channels"
        )
    return resized(x, model.shape[-1], model.shape[-2], method, "center")
