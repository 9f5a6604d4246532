"""From prompts to conditionings."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from nodes.context import NodeContext
from nodes.declare import node
from nodes.parts import present
from nodes.types import Clip, Conditioning, Float, Int, Options, PromptText
from runtime.diffusion.api import EncodeTextRequest

CATEGORY = "model/conditioning"
ADVANCED = Options({"advanced": True})

Pixels = Annotated[int, Int(0, 16384)]
FluxGuidance = Annotated[float, Float(0.0, 100.0, 0.1)]


@node("CLIPTextEncode", display="CLIP Text Encode (Prompt)", category=CATEGORY)
async def encode_text(ctx: NodeContext, *, text: PromptText, clip: Clip) -> Conditioning:
    """What the text encoder makes of a prompt, to guide a sampler."""
    return await _encoded(ctx, clip, (text,))


@node("CLIPSetLastLayer", display="CLIP Set Last Layer", category=CATEGORY)
def set_last_layer(*, clip: Clip, stop_at_clip_layer: Annotated[int, Int(-24, -1, 1), ADVANCED] = -1) -> Clip:
    """Takes the text features from an earlier layer: -1 is the last, -2 the one before it."""
    return replace(present(clip, "CLIP"), stop_layer=stop_at_clip_layer)


@node("CLIPTextEncodeSDXL", display="CLIP Text Encode (SDXL)", category=f"{CATEGORY}/stable diffusion")
async def encode_text_sdxl(
    ctx: NodeContext,
    *,
    clip: Clip,
    width: Pixels = 1024,
    height: Pixels = 1024,
    crop_w: Annotated[Pixels, ADVANCED] = 0,
    crop_h: Annotated[Pixels, ADVANCED] = 0,
    target_width: Pixels = 1024,
    target_height: Pixels = 1024,
    text_g: PromptText,
    text_l: PromptText,
) -> Conditioning:
    """A prompt for each of SDXL's two encoders, and the sizes that its network is told."""
    sizes = {
        "width": width,
        "height": height,
        "crop_w": crop_w,
        "crop_h": crop_h,
        "target_width": target_width,
        "target_height": target_height,
    }
    return with_values(await _encoded(ctx, clip, (text_g, text_l)), sizes)


@node("CLIPTextEncodeFlux", category=f"{CATEGORY}/flux")
async def encode_text_flux(
    ctx: NodeContext, *, clip: Clip, clip_l: PromptText, t5xxl: PromptText, guidance: FluxGuidance = 3.5
) -> Conditioning:
    """A prompt for each of FLUX's two encoders, and its guidance."""
    return with_values(await _encoded(ctx, clip, (clip_l, t5xxl)), {"guidance": guidance})


@node("FluxGuidance", category=f"{CATEGORY}/flux")
def flux_guidance(*, conditioning: Conditioning, guidance: FluxGuidance = 3.5) -> Conditioning:
    """The guidance that a guidance-distilled network is told; no second pass is made for it."""
    return with_values(conditioning, {"guidance": guidance})


@node("FluxDisableGuidance", category=f"{CATEGORY}/flux")
def flux_disable_guidance(*, conditioning: Conditioning) -> Conditioning:
    """Tells a guidance-distilled network no guidance at all."""
    return with_values(conditioning, {"guidance": None})


def with_values(conditioning: Conditioning, values: dict[str, Any]) -> Conditioning:
    """Each entry with `values` set; the one that came in stays as it is, for others may hold it."""
    return [[tokens, entry | values] for tokens, entry in conditioning]


async def _encoded(ctx: NodeContext, clip: Clip | None, texts: tuple[str, ...]) -> Conditioning:
    encoder = present(clip, "CLIP")
    request = EncodeTextRequest(ctx.request_id(), encoder, texts)
    return await ctx.run(ctx.diffusion.submit(request))
