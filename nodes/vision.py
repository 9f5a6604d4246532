"""Nodes that show pictures to vision language models: load, ask, caption."""

from __future__ import annotations

import asyncio
import csv
import io
from collections.abc import Sequence
from typing import Annotated, Any, cast

from nodes.context import NodeContext, NodeInputError
from nodes.declare import node
from nodes.language import (
    ADVANCED,
    MaxTokens,
    Stop,
    System,
    Temperature,
    TopK,
    TopP,
    sampling,
    system_message,
)
from nodes.pictures import as_media, read_image
from nodes.spec import Library
from nodes.types import Choices, Image, Int, Llm, Options, PromptText, Seed, Vlm
from runtime.llm.api import ChatRequest, Completion, Message, SamplingParams
from runtime.llm.api import Image as Media
from runtime.platform.handle import Handle

CATEGORY = "language/vision"
Names = Annotated[str | None, Options({"forceInput": True})]
PICTURES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff")


def _models(library: Library) -> list[str]:
    return library.vision_language_models()


def _folders(library: Library) -> list[str]:
    return library.input_folders()


@node(
    "VLMLoader",
    display="Load Vision Language Model",
    category=CATEGORY,
    outputs=("vlm", "llm"),
    search_aliases=("vlm", "llava", "qwen-vl"),
)
def load_vision_language_model(*, model: Annotated[str, Choices(_models)]) -> tuple[Vlm, Llm]:
    """A model that sees, by name. Its weights are read when it is first asked something."""
    return model, model


@node(
    "VLMGenerate",
    display="Ask about Image",
    category=CATEGORY,
    returns=(str,),
    outputs=("text",),
    output_is_list=(True,),
    search_aliases=("vqa", "describe", "caption"),
)
async def ask(
    ctx: NodeContext,
    *,
    vlm: Vlm,
    image: Image,
    question: PromptText = "What is this?",
    system: System = "",
    max_tokens: MaxTokens = 64,
    temperature: Temperature = 0.0,
    top_p: TopP = 1.0,
    top_k: TopK = 0,
    seed: Seed = 0,
    stop: Stop = "",
) -> list[str]:
    """The model's answer about each picture of a batch, all asked at the same time.

    The answer to a single picture appears on the node while it is written.
    """
    params = sampling(max_tokens, temperature, top_p, top_k, seed, stop)
    return await _about_each(ctx, vlm, system, question, as_media(image), params)


@node(
    "ImageCaptionBatch",
    display="Caption Images",
    category=CATEGORY,
    returns=(str, str),
    outputs=("captions", "csv"),
    output_is_list=(True, False),
    input_is_list=True,
    search_aliases=("caption", "dataset", "csv"),
)
async def caption(
    ctx: NodeContext,
    *,
    vlm: Vlm,
    images: Image,
    question: PromptText = "What is this?",
    prefix: str = "",
    suffix: str = "",
    max_tokens: MaxTokens = 32,
    seed: Seed = 0,
    names: Names = None,
) -> tuple[list[str], str]:
    """A caption of every picture, and a table of names and captions as CSV, to be saved with Save Text."""
    shown = [media for batch in _all(images) for media in as_media(batch)]
    params = SamplingParams(max_tokens=_one(max_tokens), temperature=0.0, seed=_one(seed))
    texts = await _about_each(ctx, _one(vlm), "", _one(question), shown, params)
    captions = [f"{_one(prefix)}{text}{_one(suffix)}" for text in texts]
    titles = [str(name) for name in _all(names)] if names else []
    titles += [f"image_{number}" for number in range(len(titles), len(captions))]
    return captions, _as_csv(titles, captions)


@node(
    "LoadImageFolder",
    display="Load Images of Folder",
    category="image",
    returns=(Image, str),
    outputs=("images", "names"),
    output_is_list=(True, True),
)
def load_folder(
    ctx: NodeContext,
    *,
    folder: Annotated[str, Choices(_folders)],
    limit: Annotated[int, Int(0, 100_000), ADVANCED] = 0,
) -> tuple[list[Image], list[str]]:
    """Every picture of a folder below the input folder, in the order of names; `limit` 0 means all.

    "example pictures" came with the program.
    """
    files = sorted(
        path for path in ctx.files.input_folder(folder).iterdir() if path.suffix.lower() in PICTURES
    )
    if not files:
        raise NodeInputError(f"The folder '{folder}' holds no pictures; supported are {' '.join(PICTURES)}")
    chosen = files[:limit] if limit else files
    return [read_image(path)[0] for path in chosen], [path.name for path in chosen]


async def _about_each(
    ctx: NodeContext, model: str, system: str, question: str, images: Sequence[Media], params: SamplingParams
) -> list[str]:
    requests = [
        ChatRequest(
            ctx.request_id(), model, (*system_message(system), Message("user", (image, question))), params
        )
        for image in images
    ]
    handles = [cast("Handle[Completion]", ctx.llm.submit(request)) for request in requests]
    if len(handles) == 1:
        return [(await ctx.run(handles[0])).text.strip()]
    return await _counted(ctx, handles)


async def _counted(ctx: NodeContext, handles: Sequence[Handle[Completion]]) -> list[str]:
    """Tokens of many answers at once would be a jumble on the node; it counts the answers instead."""
    done = 0

    async def follow(handle: Handle[Completion]) -> str:
        nonlocal done
        answer = await handle
        done += 1
        ctx.progress(done, len(handles))
        return answer.text.strip()

    try:
        return list(await asyncio.gather(*(follow(handle) for handle in handles)))
    finally:
        for handle in handles:
            if not handle.finished:
                handle.cancel()


def _as_csv(names: Sequence[str], captions: Sequence[str]) -> str:
    target = io.StringIO()
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow(["file", "caption"])
    writer.writerows(zip(names, captions, strict=False))
    return target.getvalue()


def _one(values: Any) -> Any:
    """A node that takes lists gets its widgets as lists of one."""
    return values[0] if isinstance(values, list) else values


def _all(values: Any) -> list[Any]:
    return values if isinstance(values, list) else [values]
