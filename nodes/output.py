"""What leaves the graph as a file or as text on the node."""

from __future__ import annotations

import random
import string
from collections.abc import Sequence
from typing import Annotated, Literal

from nodes.context import NodeContext, SavedFile
from nodes.declare import node
from nodes.mask import to_image
from nodes.pictures import PREVIEW_COMPRESSION, SAVED_COMPRESSION, as_picture, png_metadata
from nodes.spec import NodeResult
from nodes.types import Hidden, Image, Mask, Options

Prompt = Annotated[object, Hidden("PROMPT")]
ExtraPngInfo = Annotated[object, Hidden("EXTRA_PNGINFO")]


@node(
    "SaveImage", display="Save Image", category="image", returns=(Image,), outputs=("images",), is_output=True
)
def save_image(
    ctx: NodeContext,
    *,
    images: Image,
    filename_prefix: str = "ComfyUI",
    prompt: Prompt = None,
    extra_pnginfo: ExtraPngInfo = None,
) -> NodeResult:
    """Writes PNG files that carry the prompt and the workflow, by which an editor opens them again."""
    files = _written(ctx, images, filename_prefix, prompt, extra_pnginfo, compression=SAVED_COMPRESSION)
    return NodeResult((images,), ui={"images": files})


@node(
    "PreviewImage",
    display="Preview Image",
    category="image",
    returns=(Image,),
    outputs=("images",),
    is_output=True,
)
def preview_image(
    ctx: NodeContext, *, images: Image, prompt: Prompt = None, extra_pnginfo: ExtraPngInfo = None
) -> NodeResult:
    """Shows pictures without keeping them."""
    return NodeResult((images,), ui={"images": _previewed(ctx, images, prompt, extra_pnginfo)})


@node(
    "MaskPreview",
    display="Preview Mask",
    category="image/mask",
    returns=(Mask,),
    outputs=("mask",),
    is_output=True,
)
def preview_mask(
    ctx: NodeContext, *, mask: Mask, prompt: Prompt = None, extra_pnginfo: ExtraPngInfo = None
) -> NodeResult:
    """Shows a mask without keeping it."""
    return NodeResult((mask,), ui={"images": _previewed(ctx, to_image(mask=mask), prompt, extra_pnginfo)})


@node("SaveText", display="Save Text", category="text", returns=(str,), outputs=("text",), is_output=True)
def save_text(
    ctx: NodeContext,
    *,
    text: Annotated[str, Options({"forceInput": True})],
    filename_prefix: str = "ComfyUI",
    format: Literal["txt", "csv", "md", "json"] = "txt",
    prompt: Prompt = None,  # noqa: ARG001
    extra_pnginfo: ExtraPngInfo = None,  # noqa: ARG001
) -> NodeResult:
    """Writes a text file into the output folder."""
    path, saved = ctx.files.next_output(filename_prefix, format)
    path.write_text(text, encoding="utf-8")
    return NodeResult((text,), ui={"files": [saved.as_ui()], "text": [text]})


def _previewed(ctx: NodeContext, images: Image, prompt: object, extra: object) -> list[dict[str, str]]:
    letters = "".join(random.choices(string.ascii_lowercase, k=5))
    return _written(
        ctx, images, f"ComfyUI_temp_{letters}", prompt, extra, compression=PREVIEW_COMPRESSION, temporary=True
    )


def _written(
    ctx: NodeContext,
    images: Image,
    prefix: str,
    prompt: object,
    extra: object,
    *,
    compression: int,
    temporary: bool = False,
) -> list[dict[str, str]]:
    metadata = png_metadata(prompt, extra)
    size = (images.shape[2], images.shape[1])
    written: list[SavedFile] = []
    for number, image in enumerate(images):
        ctx.check_cancelled()
        named = prefix.replace("%batch_num%", str(number))
        path, saved = ctx.files.next_output(named, "png", temporary=temporary, size=size)
        as_picture(image).save(path, format="PNG", pnginfo=metadata, compress_level=compression)
        written.append(saved)
    return _as_ui(written)


def _as_ui(files: Sequence[SavedFile]) -> list[dict[str, str]]:
    return [file.as_ui() for file in files]
