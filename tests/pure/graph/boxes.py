"""Node classes for tests of the graph; each does the least that shows one behaviour."""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import replace
from itertools import count
from typing import Annotated, Any, Literal

from nodes.context import JobInterrupted, NodeContext
from nodes.declare import spec_of
from nodes.spec import Blocker, NodeResult, NodeSpec
from nodes.types import Anything, Image, InOptional, InputFiles, Int, Lazy, Mask, PromptText
from runtime.llm.api import ChatRequest, Message

numbers = count()

Word = Annotated[str, InOptional()]
Small = Annotated[int, Int(0, 10)]
LazyInt = Annotated[int, Lazy()]


def number(*, value: Annotated[int, Int(-(10**9), 10**9)] = 0) -> int:
    return value


def add(*, a: int = 0, b: int = 0) -> int:
    return a + b


def small(*, b: Small = 0, c: Literal["x", "y"] = "x", d: float = 0.5, e: bool = False) -> int:
    return b


def picture(*, size: int = 1) -> Image:
    return size


def invert(*, image: Image, mask: Mask | None = None, strength: Annotated[int, InOptional()] = 3) -> Image:
    return image


def loaded(*, image: Annotated[str, InputFiles("image")]) -> Image:
    return image


def show(*, value: Anything) -> NodeResult:
    return NodeResult(ui={"value": [value]})


def quiet(*, value: Anything) -> None:
    return None


def explode(*, value: Anything, kind: Word = "") -> int:
    if kind == "stop":
        raise StopIteration
    if kind == "exit":
        raise SystemExit(3)
    raise RuntimeError("it went wrong")


async def explode_async(*, value: Anything, kind: Word = "") -> int:
    await asyncio.sleep(0)
    if kind == "exit":
        raise SystemExit(3)
    if kind == "cancel":
        raise asyncio.CancelledError
    raise RuntimeError("it went wrong")


async def doze_or_fail(ctx: NodeContext, *, value: int) -> int:
    """Fails on zero; anything else takes long."""
    if value == 0:
        raise RuntimeError("zero")
    await asyncio.sleep(30)
    return value


def interrupts(*, value: Anything) -> Anything:
    raise JobInterrupted


async def doze(
    ctx: NodeContext, *, value: Anything, seconds: Annotated[float, InOptional()] = 0.0
) -> Anything:
    await asyncio.sleep(seconds)
    return value


async def shout(ctx: NodeContext, *, text: PromptText) -> str:
    request = ChatRequest(ctx.request_id(), "loud", (Message("user", text),))
    return (await ctx.run(ctx.llm.submit(request))).text


async def sample(ctx: NodeContext, *, value: Anything) -> Anything:
    await ctx.run(ctx.diffusion.submit(ChatRequest(ctx.request_id(), "", ())))
    return value


def spread(*, count: int = 3) -> int:
    return [*range(count)]


def lines(*, text: str = "") -> str:
    return text.splitlines()  # type: ignore[return-value]


def gather(*, values: int) -> int:
    return sum(values)


def choose(*, first: bool = True, a: LazyInt, b: LazyInt) -> int:
    return a if first else b


def choose_needs(first: Any, a: Any = None, b: Any = None) -> list[str]:
    return [name for name, value in (("a", a), ("b", b)) if value is None and (name == "a") == first]


def block(*, value: Anything, message: Word = "") -> Anything:
    return Blocker(message or None)


def double(*, value: Anything) -> NodeResult:
    """Expands into value + value, each time under ids of its own."""
    prefix = f"inner{next(numbers)}."
    return NodeResult(
        ([prefix + "sum", 0],),
        expand={
            prefix + "one": {"class_type": "Number", "inputs": {"value": value}},
            prefix + "sum": {
                "class_type": "Add",
                "inputs": {"a": [prefix + "one", 0], "b": [prefix + "one", 0]},
            },
        },
    )


def at_least_five(value: Any) -> bool | str:
    return True if value is None or value >= 5 else f"{value} is less than five"


def checked(*, value: int = 5) -> int:
    return value


class Counter:
    """Counts its calls; `gate` holds them inside, where a deaf one does not look at the stop."""

    def __init__(self, seconds: float = 0, is_deaf: bool = False) -> None:
        self.seconds = seconds
        self.is_deaf = is_deaf
        self.calls = 0
        self.inside = 0
        self.most = 0
        self.gate = threading.Event()
        self.lock = threading.Lock()
        self.gate.set()

    def spec(self, id: str = "Count", pack: str | None = None, fingerprint: Any = None) -> NodeSpec:
        def count(ctx: NodeContext, *, value: Anything) -> Anything:
            with self.lock:
                self.calls += 1
                self.inside += 1
                self.most = max(self.most, self.inside)
            time.sleep(self.seconds)
            while not self.gate.wait(0.005):
                if not self.is_deaf:
                    ctx.check_cancelled()
            with self.lock:
                self.inside -= 1
            return value

        return replace(spec_of(count, id, category="t", fingerprint=fingerprint), pack=pack)


def specs() -> list[NodeSpec]:
    def plain(function: Any, id: str, **more: Any) -> NodeSpec:
        return spec_of(function, id, category="t", **more)

    return [
        plain(number, "Number"),
        plain(add, "Add"),
        plain(small, "Small"),
        plain(picture, "Picture"),
        plain(invert, "Invert"),
        plain(loaded, "Load"),
        plain(show, "Show", is_output=True),
        plain(quiet, "Quiet", is_output=True),
        plain(explode, "Explode"),
        plain(explode_async, "ExplodeAsync"),
        plain(doze, "Doze"),
        plain(doze_or_fail, "DozeOrFail"),
        plain(interrupts, "Interrupts"),
        plain(shout, "Shout"),
        plain(sample, "Sample"),
        plain(spread, "Spread", output_is_list=[True]),
        plain(lines, "Lines", output_is_list=[True]),
        plain(gather, "Gather", input_is_list=True),
        plain(choose, "Choose", lazy_needs=choose_needs),
        plain(block, "Block"),
        plain(double, "Double", returns=[int]),
        plain(checked, "Checked", check=at_least_five),
    ]
