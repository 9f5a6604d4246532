"""The flags that say how language models write: with guesses, and in blocks. Their names are SGLang's."""

from __future__ import annotations

import argparse
from pathlib import Path

import yaml

from app.config import BadConfig, Writing
from runtime.llm import dllm
from runtime.platform.errors import Unsupported


def add(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how language models write")
    group.add_argument(
        "--speculative-algorithm",
        choices=["NGRAM"],
        help="guess tokens from what was said before; no answer changes, repetitive ones come faster",
    )
    group.add_argument(
        "--speculative-num-draft-tokens", type=int, choices=range(1, 65), default=6, metavar="N"
    )
    group.add_argument(
        "--dllm-algorithm",
        choices=list(dllm.algorithms),
        default=dllm.DEFAULT,
        help="how block-diffusion models fill a block",
    )
    group.add_argument(
        "--dllm-algorithm-config", type=Path, metavar="F", help="YAML file with settings of that algorithm"
    )


def read(parsed: argparse.Namespace) -> Writing:
    settings = _settings(parsed.dllm_algorithm_config)
    try:
        dllm.make(parsed.dllm_algorithm, settings)
    except Unsupported as error:
        raise BadConfig(f"--dllm-algorithm-config: {error}") from error
    return Writing(
        speculative_algorithm=parsed.speculative_algorithm,
        num_draft_tokens=parsed.speculative_num_draft_tokens,
        dllm_algorithm=parsed.dllm_algorithm,
        dllm_settings=tuple(settings.items()),
    )


def _settings(path: Path | None) -> dict[str, float]:
    if path is None:
        return {}
    try:
        found = yaml.safe_load(path.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise BadConfig(f"--dllm-algorithm-config {path}: {error}") from error
    if not isinstance(found, dict) or not all(_is_number(value) for value in found.values()):
        raise BadConfig(f"--dllm-algorithm-config {path}: it must map settings to numbers")
    return {str(name): value for name, value in found.items()}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
