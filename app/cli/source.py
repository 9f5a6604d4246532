"""The workflow file of a command: JSON in either format, or a picture that carries it."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from app.carried import CarriesNothing, carried, is_picture
from app.workflow.schema import is_workflow


class CannotRun(Exception):
    """The text is for the person at the terminal."""


@dataclass(frozen=True, slots=True)
class Source:
    """Without a prompt, the editor's workflow has to be converted; beside one, files carry it along."""

    prompt: dict[str, Any] | None
    workflow: dict[str, Any] | None


def add_seed_flag(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--advance-seeds",
        action="store_true",
        help="move seeds of a saved workflow on as its control_after_generate says; else they stay",
    )


def read_source(path: Path) -> Source:
    data = _read(path)
    if is_picture(data):
        try:
            found = carried(data)
        except CarriesNothing as error:
            raise CannotRun(f"{path}: {error}") from None
        return Source(found.prompt, found.workflow)
    document = _object(path, data)
    for candidate in (document, document.get("prompt")):
        if is_workflow(candidate):
            return Source(None, candidate)
        if _is_prompt(candidate):
            return Source(candidate, None)
    raise CannotRun(
        f"{path} is neither a prompt nor a saved workflow: it has no nodes by id, each with a class_type, "
        "and no list 'nodes'"
    )


def _is_prompt(document: Any) -> TypeGuard[dict[str, Any]]:
    """One node is enough: what is wrong with the others is told node by node."""
    nodes = document.values() if isinstance(document, dict) else ()
    return any(isinstance(node, dict) and "class_type" in node for node in nodes)


def read_json(path: Path) -> dict[str, Any]:
    return _object(path, _read(path))


def _read(path: Path) -> bytes:
    try:
        return sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    except OSError as error:
        raise CannotRun(f"{path} cannot be read: {error.strerror}") from None


def _object(path: Path, data: bytes) -> dict[str, Any]:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CannotRun(f"{path} is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise CannotRun(f"{path} is neither a prompt nor a saved workflow: it should be a JSON object")
    return document
