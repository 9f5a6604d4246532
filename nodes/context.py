"""What a running node may touch: the two runtimes, files by name, its own line to the client. No server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from runtime.platform.handle import Handle

if TYPE_CHECKING:
    from PIL.Image import Image

    from runtime.diffusion.api import DiffusionRuntime
    from runtime.llm.api import LanguageRuntime

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class SavedFile:
    """Where an output went, in the form that clients ask /view with."""

    filename: str
    subfolder: str
    type: str

    def as_ui(self) -> dict[str, str]:
        return {"filename": self.filename, "subfolder": self.subfolder, "type": self.type}


class NodeFiles(Protocol):
    """Turns names into paths; a name that leaves its folder or does not exist raises `NodeInputError`."""

    def model(self, folder: str, name: str) -> Path: ...

    def input(self, name: str) -> Path:
        """An uploaded file; `name` may carry ` [output]` or ` [temp]` and a subfolder."""

    def input_folder(self, name: str) -> Path:
        """A folder below the input directory."""

    def language_model_of(self, weights: Sequence[Path]) -> str | None:
        """The language model that text encoder weights belong to, if it is one that can write."""

    def next_output(
        self, prefix: str, extension: str, *, temporary: bool = False, size: tuple[int, int] = (0, 0)
    ) -> tuple[Path, SavedFile]:
        """The next free `prefix_00001_.ext`; %width%, %height%, %year% ... of the prefix are filled in."""


class NodeInputError(Exception):
    """The node cannot work with what it was given; the text is shown on the node."""


class JobInterrupted(BaseException):
    """The job was stopped. No plain Exception, so that a pack's `except Exception` does not swallow it."""


class NodeContext(Protocol):
    """`hidden` holds prompt, extra_pnginfo, unique_id and dynprompt, as ComfyUI's hidden inputs."""

    node_id: str
    prompt_id: str
    hidden: Mapping[str, Any]
    files: NodeFiles
    llm: LanguageRuntime
    diffusion: DiffusionRuntime

    def request_id(self) -> str:
        """A fresh id for a runtime request of this node."""

    def progress(self, value: float, maximum: float) -> None: ...

    def preview(self, image: Image) -> None: ...

    def text(self, delta: str) -> None:
        """Append to the text that is shown live on the node."""

    async def run(self, handle: Handle[R]) -> R:
        """Await a runtime's handle, forwarding its progress, previews and tokens; cancelled with the job."""

    def check_cancelled(self) -> None:
        """Raise `JobInterrupted` when the job was stopped; long plain loops call it now and then."""


class Invocation:
    """One call of a node's function; a node is called once for each item of its lists."""

    def __init__(self, index: int) -> None:
        self.index = index
        self._graphs = 0

    def next_graph(self) -> int:
        """A number for each graph that this call builds."""
        self._graphs += 1
        return self._graphs - 1


# The context of the node that runs here, in tasks and worker threads alike, for code that is given none.
current_context: ContextVar[NodeContext] = ContextVar("current_context")
current_invocation: ContextVar[Invocation] = ContextVar("current_invocation")
