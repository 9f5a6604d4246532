"""ComfyAPI: what a running or loading pack may ask of the server; its twin is for plain functions."""

from __future__ import annotations

import asyncio
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from PIL.Image import Image

from app.compat.host import host
from app.compat.v3.replace import NodeReplace
from app.compat.v3.schema import ComfyNode
from nodes.context import current_context


class ComfyExtension(ABC):
    """What `comfy_entrypoint` of a pack returns."""

    async def on_load(self) -> None:
        """Before the list of nodes is asked for."""
        return None

    @abstractmethod
    async def get_node_list(self) -> list[type[ComfyNode]]: ...


class Execution:
    async def set_progress(
        self,
        value: float,
        max_value: float,
        node_id: str | None = None,
        preview_image: Any = None,
        ignore_size_limit: bool = False,  # noqa: ARG002
    ) -> None:
        """Of the node that runs here. Another node's `node_id` is refused: a node speaks for itself."""
        report_progress(value, max_value, node_id, preview_image)


class NodeReplacement:
    async def register(self, node_replace: NodeReplace) -> None:
        host().replacements.setdefault(node_replace.old_node_id, []).append(node_replace.as_dict())


class Caching:
    """Results of this program are cached in one place; providers from outside are not asked."""

    async def register_provider(self, provider: Any) -> None:
        raise NotImplementedError(
            "Treadle caches results itself (--cache-lru, --cache-mb) and asks no providers"
        )

    async def unregister_provider(self, provider: Any) -> None:
        raise NotImplementedError(
            "Treadle caches results itself (--cache-lru, --cache-mb) and asks no providers"
        )


def report_progress(value: float, max_value: float, node_id: str | None, preview_image: Any) -> None:
    context = current_context.get(None)
    if context is None:
        raise RuntimeError("progress belongs to a node that runs; nothing runs here")
    if node_id is not None and node_id != context.node_id:
        raise ValueError(f"node {context.node_id} cannot report the progress of node {node_id}")
    context.progress(value, max_value)
    if isinstance(preview_image, Image):
        context.preview(preview_image)
    elif preview_image is not None:
        from nodes.pictures import as_picture

        context.preview(as_picture(preview_image[0] if preview_image.ndim == 4 else preview_image))


class ComfyAPI:
    def __init__(self) -> None:
        self.execution = Execution()
        self.node_replacement = NodeReplacement()
        self.caching = Caching()


class ComfyAPISync:
    def __init__(self) -> None:
        self.execution = _Sync(Execution())
        self.node_replacement = _Sync(NodeReplacement())
        self.caching = _Sync(Caching())


class _Sync:
    """The methods of an object as plain functions. They wait for nothing, so a step runs them whole."""

    def __init__(self, of: Any) -> None:
        self._of = of

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._of, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            return finished(method(*args, **kwargs))

        return call


def finished(awaitable: Any) -> Any:
    """The result of a coroutine that does not wait, or of a pack's, in a loop of its own."""
    if not inspect.isawaitable(awaitable):
        return awaitable
    assert inspect.iscoroutine(awaitable), awaitable
    try:
        awaitable.send(None)
    except StopIteration as stop:
        return stop.value
    awaitable.close()
    raise RuntimeError("this call waits for something; await it with ComfyAPI instead")


def run_to_end(function: Callable[[], Any]) -> Any:
    """Of an entry point, which may be a coroutine function."""

    async def run() -> Any:
        value = function()
        return await value if inspect.isawaitable(value) else value

    return asyncio.run(run())
