"""Between pictures and latents, whole or in tiles, and the two ways into inpainting."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import torch
from torch.nn.functional import max_pool2d

from nodes.context import NodeContext, NodeInputError
from nodes.declare import node
from nodes.encode_text import with_values
from nodes.parts import present
from nodes.resize import resized_mask
from nodes.types import Conditioning, Image, Int, Latent, Mask, Options, Vae
from runtime.diffusion.api import DecodeRequest, EncodeImageRequest

CATEGORY = "model/latent"
ADVANCED = Options({"advanced": True})
GREY = 0.5

Overlap = Annotated[int, Int(0, 4096, 32), ADVANCED]
# Frames of a video; pictures have none, so that still autoencoders look at neither.
Frames = Annotated[int, Int(8, 4096, 4), ADVANCED]
FrameOverlap = Annotated[int, Int(4, 4096, 4), ADVANCED]


@node("VAEDecode", display="VAE Decode", category=CATEGORY)
async def decode(ctx: NodeContext, *, samples: Latent, vae: Vae) -> Image:
    """Latents to pictures."""
    return await _decoded(ctx, samples, vae)


@node("VAEDecodeTiled", display="VAE Decode (Tiled)", category=CATEGORY)
async def decode_tiled(
    ctx: NodeContext,
    *,
    samples: Latent,
    vae: Vae,
    tile_size: Annotated[int, Int(64, 4096, 32), ADVANCED] = 512,
    overlap: Overlap = 64,
    temporal_size: Frames = 64,  # noqa: ARG001
    temporal_overlap: FrameOverlap = 8,  # noqa: ARG001
) -> Image:
    """Latents to pictures in overlapping tiles, so that a large picture needs little memory."""
    return await _decoded(ctx, samples, vae, tile_size, min(overlap, tile_size // 4))


@node("VAEEncode", display="VAE Encode", category=CATEGORY)
async def encode(ctx: NodeContext, *, pixels: Image, vae: Vae) -> Latent:
    """Pictures to latents; sides are cut in the middle to whole cells."""
    encoder = present(vae, "VAE")
    return {"samples": await _encoded(ctx, cut_to_cells(pixels, encoder.factor), encoder)}


@node("VAEEncodeTiled", display="VAE Encode (Tiled)", category=CATEGORY)
async def encode_tiled(
    ctx: NodeContext,
    *,
    pixels: Image,
    vae: Vae,
    tile_size: Annotated[int, Int(64, 4096, 64), ADVANCED] = 512,
    overlap: Overlap = 64,
    temporal_size: Frames = 64,  # noqa: ARG001
    temporal_overlap: FrameOverlap = 8,  # noqa: ARG001
) -> Latent:
    """Pictures to latents in overlapping tiles, so that a large picture needs little memory."""
    encoder = present(vae, "VAE")
    cut = cut_to_cells(pixels, encoder.factor)
    return {"samples": await _encoded(ctx, cut, encoder, tile_size, min(overlap, tile_size // 4))}


@node("VAEEncodeForInpaint", display="VAE Encode (for Inpainting)", category=CATEGORY)
async def encode_for_inpaint(
    ctx: NodeContext,
    *,
    pixels: Image,
    vae: Vae,
    mask: Mask,
    grow_mask_by: Annotated[int, Int(0, 64, 1)] = 6,
) -> Latent:
    """Encodes with the masked part grey, and repaints that part, grown a little."""
    encoder = present(vae, "VAE")
    cut, hole = await asyncio.to_thread(_cut_with_mask, pixels, mask, encoder.factor)
    grown = await asyncio.to_thread(_grown, hole.round(), grow_mask_by)
    samples = await _encoded(ctx, _greyed(cut, hole), encoder)
    return {"samples": samples, "noise_mask": grown[:, None]}


@node(
    "InpaintModelConditioning",
    category="model/conditioning",
    outputs=("positive", "negative", "latent"),
)
async def inpaint_model_conditioning(
    ctx: NodeContext,
    *,
    positive: Conditioning,
    negative: Conditioning,
    vae: Vae,
    pixels: Image,
    mask: Mask,
    noise_mask: bool = True,
) -> tuple[Conditioning, Conditioning, Latent]:
    """What an inpainting network is shown: the picture with a grey hole, and the hole's mask."""
    encoder = present(vae, "VAE")
    cut, hole = await asyncio.to_thread(_cut_with_mask, pixels, mask, encoder.factor)
    shown = await _encoded(ctx, _greyed(cut, hole), encoder)
    latent: dict[str, Any] = {"samples": await _encoded(ctx, cut, encoder)}
    if noise_mask:
        latent["noise_mask"] = hole[:, None]
    values = {"concat_latent_image": shown, "concat_mask": hole[:, None]}
    return with_values(positive, values), with_values(negative, values), latent


def cut_to_cells(pixels: torch.Tensor, factor: int) -> torch.Tensor:
    """pixels [B, H, W, ...] -> the middle part whose sides are multiples of `factor`."""
    height, width = pixels.shape[1] // factor * factor, pixels.shape[2] // factor * factor
    if height == 0 or width == 0:
        raise NodeInputError(
            f"A picture of {pixels.shape[2]}x{pixels.shape[1]} is smaller than one latent cell of "
            f"{factor}x{factor} pixels"
        )
    top, left = (pixels.shape[1] - height) // 2, (pixels.shape[2] - width) // 2
    return pixels[:, top : top + height, left : left + width]


async def _decoded(
    ctx: NodeContext, latent: Latent, vae: Vae | None, tile: int | None = None, overlap: int = 64
) -> torch.Tensor:
    request = DecodeRequest(ctx.request_id(), present(vae, "VAE"), latent["samples"], tile, overlap)
    return await ctx.run(ctx.diffusion.submit(request))


async def _encoded(
    ctx: NodeContext, pixels: torch.Tensor, vae: Vae, tile: int | None = None, overlap: int = 64
) -> torch.Tensor:
    request = EncodeImageRequest(ctx.request_id(), vae, pixels[..., :3], tile, overlap)
    return await ctx.run(ctx.diffusion.submit(request))


def _cut_with_mask(
    pixels: torch.Tensor, mask: torch.Tensor, factor: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """The picture [B, h, w, 3] and the mask [B', h, w] at its size, both cut to whole cells."""
    at_size = resized_mask(mask, pixels.shape[2], pixels.shape[1])
    return cut_to_cells(pixels[..., :3], factor), cut_to_cells(at_size, factor)


def _greyed(pixels: torch.Tensor, hole: torch.Tensor) -> torch.Tensor:
    kept = (1 - hole.round())[..., None]
    return (pixels - GREY) * kept + GREY


def _grown(hole: torch.Tensor, pixels: int) -> torch.Tensor:
    """hole [B, H, W] -> white wherever a square of side `pixels` around the point meets white."""
    if pixels == 0:
        return hole
    padding = pixels // 2
    grown = max_pool2d(hole[:, None], pixels, stride=1, padding=padding)
    return grown[:, 0, : hole.shape[1], : hole.shape[2]]
