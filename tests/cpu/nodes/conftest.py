"""A real node context over a temporary folder; the two runtimes write down what they are asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from app.config import Directories
from app.events import Event, NodeName
from app.files import Files
from app.folders import ModelFolders
from app.graph.context import JobNodeContext
from app.graph.services import Services
from app.graph.stop import StopSignal
from runtime.diffusion.api import (
    Checkpoint,
    ControlRef,
    DecodeRequest,
    EncodeImageRequest,
    EncodeTextRequest,
    ModelRef,
    Sampled,
    SampleRequest,
    TextEncoderRef,
)
from runtime.llm.api import Completion, Token, ToolCall
from runtime.platform.handle import Done, Handle


class WritingDiffusion:
    """Answers at once with recognisable values, and keeps the requests."""

    def __init__(self) -> None:
        self.requests: list[Any] = []

    def submit(self, request: Any) -> Handle[Any]:
        self.requests.append(request)
        handle: Handle[Any] = Handle(request.id, lambda _: None)
        handle.deliver(Done(request.id, self._answer(request)))
        return handle

    def _answer(self, request: Any) -> Any:
        match request:
            case SampleRequest(latent=latent):
                return Sampled(latent + 1, latent + 2)
            case EncodeTextRequest(texts=texts):
                return [[torch.zeros(1, len(texts), 4), {"pooled_output": torch.ones(1, 4)}]]
            case EncodeImageRequest(vae=vae, pixels=pixels):
                total, height, width, _ = pixels.shape
                return torch.zeros(total, vae.channels, height // vae.factor, width // vae.factor)
            case DecodeRequest(vae=vae, samples=samples):
                total, _, height, width = samples.shape
                return torch.zeros(total, height * vae.factor, width * vae.factor, 3)
        raise AssertionError(request)

    def inspect_checkpoint(self, path: Path) -> Checkpoint:
        return Checkpoint(ModelRef(path, "sd"), TextEncoderRef((path,), "sd"), None)

    def inspect_model(self, path: Path) -> ModelRef:
        return ModelRef(path, "sd")

    def inspect_clip(self, paths: tuple[Path, ...], kind: str) -> TextEncoderRef:
        return TextEncoderRef(paths, kind)

    def inspect_control(self, path: Path) -> ControlRef:
        return ControlRef(path, "sd")


class WritingLanguage:
    """Answers each request with the same words, one token each, and keeps the requests."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.words = (" sea", " turtle", "\n")
        self.tool_calls: tuple[ToolCall, ...] = ()

    def models(self) -> tuple[str, ...]:
        return ("tiny",)

    def submit(self, request: Any) -> Handle[Any]:
        self.requests.append(request)
        handle: Handle[Any] = Handle(request.id, lambda _: None)
        for word in self.words:
            handle.deliver(Token(request.id, 0, word))
        answer = Completion("".join(self.words), (0,), "stop", 1, 0, tool_calls=self.tool_calls)
        handle.deliver(Done(request.id, answer))
        return handle


@pytest.fixture
def files(tmp_path: Path) -> Files:
    directories = Directories.below(tmp_path)
    files = Files(directories, ModelFolders(directories))
    files.make_directories()
    return files


@pytest.fixture
def published() -> list[Event]:
    return []


@pytest.fixture
def diffusion() -> WritingDiffusion:
    return WritingDiffusion()


@pytest.fixture
def language() -> WritingLanguage:
    return WritingLanguage()


ContextOver = Callable[[Any, Any], JobNodeContext]


@pytest.fixture
def context_over(files: Files, published: list[Event]) -> ContextOver:
    """A node context over a language and a diffusion runtime."""

    def make(language: Any, diffusion: Any) -> JobNodeContext:
        services = Services({}, files, files, language, diffusion, published.append)  # type: ignore[arg-type]
        return JobNodeContext(
            name=NodeName("1", "1"),
            prompt_id="job",
            client_id=None,
            hidden={},
            sends_previews=True,
            stop=StopSignal(),
            services=services,
        )

    return make


@pytest.fixture
def context(
    context_over: ContextOver, diffusion: WritingDiffusion, language: WritingLanguage
) -> JobNodeContext:
    return context_over(language, diffusion)


@pytest.fixture
def model_file(files: Files) -> Callable[[str, str], Path]:
    """Makes an empty file in a model folder."""

    def make(folder: str, name: str) -> Path:
        known = files.folders.folder(folder)
        assert known is not None
        path = known.roots[0] / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        return path

    return make
