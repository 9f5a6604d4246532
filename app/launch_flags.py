"""Flags by which servers of language models are started elsewhere, with SGLang's names and its port."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from app.config import BadConfig, Config

PORT = 30000


def add(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("as servers of language models are started")
    group.add_argument(
        "--model-path",
        type=Path,
        metavar="PATH",
        help=f"serve this GGUF file or folder too, first of all, on port {PORT} unless --port says otherwise",
    )
    group.add_argument("--host", metavar="IP", help="as --listen IP")
    group.add_argument("--tp-size", "--tensor-parallel-size", type=int, default=1, metavar="N")
    group.add_argument("--log-level", choices=["debug", "info", "warning", "error", "critical"])


def follow(parsed: argparse.Namespace, config: Config) -> Config:
    """Raises `BadConfig` for what cannot be followed."""
    if parsed.tp_size != 1:
        raise BadConfig(f"--tp-size {parsed.tp_size}: a model runs on one device here; supported is 1")
    if parsed.host is not None:
        config = replace(config, listen=(parsed.host,))
    if parsed.log_level is not None:
        config = replace(config, log_level=parsed.log_level.upper())
    if parsed.model_path is None:
        return config
    path = parsed.model_path.expanduser().resolve()
    if not path.exists():
        raise BadConfig(f"--model-path {path}: there is no such file or folder")
    port = PORT if parsed.port is None else config.port
    return replace(config, port=port, directories=replace(config.directories, language_model=path))
