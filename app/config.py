"""Every setting, once, as one frozen value. It reads no flags and touches no disk."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal


class BadConfig(Exception):
    """A setting that cannot be followed; the text is for the person who starts the program."""


PORT = 8188
PROJECT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Directories:
    """Where users' files live. `embedded_models` and `example_pictures` came with the program itself.

    `language_model` is one that lies elsewhere and comes before all others.
    """

    models: Path
    input: Path
    output: Path
    temp: Path
    user: Path
    custom_nodes: Path
    embedded_models: Path = PROJECT / "models"
    example_pictures: Path = PROJECT / "examples" / "pictures"
    language_model: Path | None = None

    @classmethod
    def below(cls, base: Path) -> Directories:
        return cls(
            models=base / "models",
            input=base / "input",
            output=base / "output",
            temp=base / "temp",
            user=base / "user",
            custom_nodes=base / "custom_nodes",
        )

    def by_type(self, kind: str) -> Path | None:
        """The `type` of a file reference on the wire."""
        return {"input": self.input, "output": self.output, "temp": self.temp}.get(kind)


@dataclass(frozen=True, slots=True)
class Writing:
    """How language models write; the words are those of `runtime.llm.engine.Engine`."""

    speculative_algorithm: str | None = None
    num_draft_tokens: int = 6
    dllm_algorithm: str = "low_confidence"
    dllm_settings: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Config:
    """`cors_origin` None means that the origin guard stands instead. `listen` are addresses to bind.

    With `encoder_only` the process serves the encoder of that language model and nothing else.
    """

    directories: Directories
    listen: tuple[str, ...] = ("127.0.0.1",)
    port: int = PORT
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    cors_origin: str | None = None
    max_upload_mb: float = 100.0
    compress_bodies: bool = False
    open_browser: bool = False
    quick_test: bool = False
    multi_user: bool = False
    device: str | None = None
    custom_model_runner: str | None = None
    encoder_only: str | None = None
    encoder_url: str | None = None
    extra_model_paths: tuple[Path, ...] = ()
    max_running_jobs: int = 8
    mem_fraction_static: float | None = None
    prefix_cache: bool = True
    writing: Writing = Writing()
    empty_queue: bool = False
    cache_mb: int = 2048
    cache_entries: int | None = None
    cache_keeps: Literal["all", "last", "nothing"] = "all"
    custom_nodes: bool = True
    whitelisted_packs: tuple[str, ...] = ()
    metadata: bool = True
    assets: bool = False
    asset_hashing: bool = False
    remote_media: Literal["none", "public", "any"] = "none"
    web_root: Path = PROJECT / "web" / "dist"
    examples: Path = PROJECT / "examples"
    log_level: str = "INFO"
    ignored_flags: tuple[str, ...] = ()
    argv: tuple[str, ...] = ()

    @property
    def max_upload_bytes(self) -> int:
        return int(self.max_upload_mb * 1024 * 1024)
