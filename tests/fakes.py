"""Small stand-ins for what a graph reaches: files by name, and two runtimes that answer without any model."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.events import Event
from app.graph.complaints import PromptRejected
from app.graph.services import Services
from app.graph.validate import ValidGraph, parse_and_validate
from app.queue import Job
from nodes.context import NodeInputError, SavedFile
from nodes.registry import Registry
from nodes.spec import NodeSpec
from runtime.diffusion.api import Preview, Progress
from runtime.llm.api import ChatRequest, CompleteRequest, Completion, Token
from runtime.platform.handle import CancelledEvent, Done, Handle, Started


@dataclass
class FakeLibrary:
    """Folder names to file names; a stamp is whatever the test puts there."""

    folders: dict[str, list[str]] = field(default_factory=dict)
    stamps: dict[tuple[str, str], str] = field(default_factory=dict)

    def names(self, folder: str) -> list[str]:
        return self.folders.get(folder, [])

    def input_names(self, kind: str) -> list[str]:
        return self.folders.get("input", [])

    def language_models(self) -> list[str]:
        return self.folders.get("llm", [])

    def vision_language_models(self) -> list[str]:
        return self.folders.get("vlm", [])

    def input_folders(self) -> list[str]:
        return []

    def stamp(self, folder: str, name: str) -> str | None:
        known = name in self.folders.get(folder, [])
        return self.stamps.get((folder, name), "as it was" if known else None)


@dataclass
class FakeFiles:
    """Everything lies in one folder."""

    folder: Path
    count: int = 0

    def model(self, folder: str, name: str) -> Path:
        return self._existing(name)

    def input(self, name: str) -> Path:
        return self._existing(name)

    def input_folder(self, name: str) -> Path:
        return self._existing(name)

    def language_model_of(self, weights: Sequence[Path]) -> str | None:
        return None

    def _existing(self, name: str) -> Path:
        path = self.folder / name
        if not path.exists():
            raise NodeInputError(f"there is no file '{name}'")
        return path

    def next_output(
        self, prefix: str, extension: str, *, temporary: bool = False, size: tuple[int, int] = (0, 0)
    ) -> tuple[Path, SavedFile]:
        self.count += 1
        name = f"{prefix}_{self.count:05}_.{extension}"
        return self.folder / name, SavedFile(name, "", "temp" if temporary else "output")


class FakeEngine:
    """Delivers what `answers(request)` yields, from a thread of its own, one event at each `tick`.

    With `hold` it waits for `release.set()` after the first event, so that a test can look at a running job.
    """

    def __init__(self, hold: bool = False) -> None:
        self.release = threading.Event()
        self.requests: list[Any] = []
        self.cancelled: set[str] = set()
        if not hold:
            self.release.set()

    def answers(self, request: Any) -> Iterator[Any]:
        raise NotImplementedError

    def submit(self, request: Any) -> Handle[Any]:
        handle: Handle[Any] = Handle(request.id, self.cancel)
        self.requests.append(request)
        threading.Thread(target=self._serve, args=(request, handle), daemon=True).start()
        return handle

    def cancel(self, request_id: str) -> None:
        self.cancelled.add(request_id)

    def _serve(self, request: Any, handle: Handle[Any]) -> None:
        handle.deliver(Started(request.id))
        for event in self.answers(request):
            while not self.release.wait(0.005) and request.id not in self.cancelled:
                pass
            if request.id in self.cancelled:
                handle.deliver(CancelledEvent(request.id))
                return
            handle.deliver(event)


class FakeLanguage(FakeEngine):
    """Answers a request with its own words in capitals, a word a token."""

    def answers(self, request: ChatRequest | CompleteRequest) -> Iterator[Any]:
        text = request.messages[-1].content if isinstance(request, ChatRequest) else str(request.prompt)
        words = [f"{word.upper()} " for word in text.split()]
        for i, word in enumerate(words):
            yield Token(request.id, i, word)
        yield Done(request.id, Completion("".join(words), tuple(range(len(words))), "stop", len(words), 0))

    def models(self) -> tuple[str, ...]:
        return ("loud",)


class FakeDiffusion(FakeEngine):
    """Three steps with a preview each; the result is the request."""

    def __init__(self, rgb: Any = None, hold: bool = False) -> None:
        super().__init__(hold)
        self.rgb = rgb

    def answers(self, request: Any) -> Iterator[Any]:
        for step in (1, 2, 3):
            yield Progress(request.id, step, 3)
            if self.rgb is not None:
                yield Preview(request.id, self.rgb, step, 3)
        yield Done(request.id, request)


@dataclass
class World:
    """A server's worth of services around a few node classes; `events` is what was published."""

    services: Services
    registry: Registry
    library: FakeLibrary
    events: list[Event]
    numbers: int = 0

    def job(
        self,
        prompt: Mapping[str, Any],
        client_id: str | None = "client",
        targets: Sequence[str] | None = None,
    ) -> Job:
        valid = parse_and_validate(prompt, self.registry, self.library, targets)
        assert isinstance(valid, ValidGraph), valid
        self.numbers += 1
        return Job(f"job-{self.numbers}", self.numbers, valid, client_id)

    def rejected(self, prompt: Any, targets: Sequence[str] | None = None) -> dict[str, Any]:
        verdict = parse_and_validate(prompt, self.registry, self.library, targets)
        assert isinstance(verdict, PromptRejected), verdict
        return verdict.as_json()

    def kinds(self) -> list[str]:
        """What was published, as words: the event and the node."""
        return [
            f"{type(event).__name__} {event.node.node_id}" if hasattr(event, "node") else type(event).__name__
            for event in self.events
        ]


def world(specs: Sequence[NodeSpec], folder: Path, **services: Any) -> World:
    registry, library, events = Registry(specs), FakeLibrary(), list[Event]()
    defaults: dict[str, Any] = {"llm": FakeLanguage(), "diffusion": FakeDiffusion()}
    return World(
        Services(
            specs=registry,
            library=library,
            files=FakeFiles(folder),
            publish=events.append,
            **(defaults | services),
        ),
        registry,
        library,
        events,
    )


def box(class_type: str, **inputs: Any) -> dict[str, Any]:
    """One node of a prompt."""
    return {"class_type": class_type, "inputs": inputs}
