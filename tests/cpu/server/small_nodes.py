"""Small real nodes for a server under test, and runtimes that nobody asks for anything."""

import asyncio
import threading
from typing import Annotated, Any

import torch
from PIL import Image

from nodes.context import NodeContext, NodeInputError
from nodes.declare import spec_of
from nodes.registry import Registry
from nodes.spec import NodeResult
from nodes.types import InputFiles
from runtime.diffusion.api import DiffusionStats


def source(text: str = "hello") -> str:
    return text


def show(ctx: NodeContext, text: str) -> NodeResult:
    return NodeResult((text,), ui={"text": [text]})


def picture(ctx: NodeContext, width: int = 8, prefix: str = "pic") -> NodeResult:
    path, saved = ctx.files.next_output(prefix, "png")
    Image.new("RGB", (width, width), (200, 30, 30)).save(path)
    return NodeResult((saved.filename,), ui={"images": [saved.as_ui()]})


async def slow(ctx: NodeContext, label: str, steps: int, pause_s: float) -> str:
    for step in range(steps):
        await asyncio.sleep(pause_s)
        ctx.progress(step + 1, steps)
        ctx.text(f"{step}")
        await asyncio.to_thread(ctx.preview, Image.new("RGB", (4, 4)))
    return "done"


def fail(ctx: NodeContext, text: str = "") -> str:
    raise NodeInputError(f"cannot work with '{text}'")


def need_file(ctx: NodeContext, name: str) -> str:
    return ctx.files.input(name).read_text()


def pick(name: Annotated[str, InputFiles("any")]) -> str:
    return name


def gradients(ctx: NodeContext) -> NodeResult:
    return NodeResult(("",), ui={"text": [str(torch.is_grad_enabled())]})


async def gradients_in_loop(ctx: NodeContext) -> NodeResult:
    return gradients(ctx)


def tell_hidden(ctx: NodeContext) -> NodeResult:
    return NodeResult(("",), ui={"text": [str(ctx.hidden["prompt"]), str(ctx.hidden["extra_pnginfo"])]})


class Gate:
    """Lets a test hold nodes back until it says go."""

    def __init__(self) -> None:
        self.opened = threading.Event()

    async def wait(self, ctx: NodeContext, text: str = "through") -> str:
        while not self.opened.is_set():
            ctx.check_cancelled()
            await asyncio.sleep(0.01)
        return text


def small_registry(gate: Gate) -> Registry:
    async def hold(ctx: NodeContext, text: str = "through") -> str:
        return await gate.wait(ctx, text)

    return Registry(
        [
            spec_of(source, "Source", category="test"),
            spec_of(show, "Show", category="test", returns=[str], is_output=True),
            spec_of(picture, "Picture", category="test", returns=[str], is_output=True),
            spec_of(gradients, "Gradients", category="test", returns=[str], is_output=True),
            spec_of(gradients_in_loop, "GradientsInLoop", category="test", returns=[str], is_output=True),
            spec_of(pick, "Pick", category="test"),
            spec_of(tell_hidden, "TellHidden", category="test", returns=[str], is_output=True),
            spec_of(slow, "Slow", category="test", not_idempotent=True),
            spec_of(fail, "Fail", category="test"),
            spec_of(need_file, "NeedFile", category="test"),
            spec_of(hold, "Hold", category="test", not_idempotent=True),
        ]
    )


class IdleRuntime:
    """No node of this registry asks a runtime for anything."""

    def stats(self) -> dict[str, Any]:
        return {}

    def unload(self) -> None:
        pass

    def close(self) -> None:
        pass


class IdleDiffusion(IdleRuntime):
    def stats(self) -> Any:
        return DiffusionStats(0, 0, 0, 0, 0)
