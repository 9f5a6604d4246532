"""`main.py convert FILE`: an editor's workflow, or a picture that carries one, as a prompt in API format."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from app.cli.converted import converted
from app.cli.source import CannotRun, add_seed_flag, read_json, read_source
from app.flags import add_directory_flags, headless_config


def main(argv: Sequence[str]) -> int:
    parsed = _parser().parse_args(list(argv))
    try:
        prompt = converted(
            read_source(parsed.workflow),
            partial(_definitions, parsed),
            strict=parsed.strict,
            advance_seeds=parsed.advance_seeds,
        )
    except CannotRun as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(json.dumps(prompt, indent=2, ensure_ascii=False))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="main.py convert", description=__doc__, allow_abbrev=False)
    parser.add_argument("workflow", type=Path, metavar="FILE", help="- reads standard input")
    parser.add_argument(
        "--object-info",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="node definitions as /object_info gives them, instead of those of the installed nodes",
    )
    parser.add_argument("--strict", action="store_true", help="convert exactly as ComfyUI's front end does")
    add_seed_flag(parser)
    add_directory_flags(parser)
    return parser


def _definitions(parsed: argparse.Namespace) -> Mapping[str, Mapping[str, Any]]:
    """Of files, the later ones win."""
    if not parsed.object_info:
        # imports torch, which a conversion by files does without
        from app.cli.installed import installed_definitions

        return installed_definitions(headless_config(parsed))
    definitions: dict[str, Mapping[str, Any]] = {}
    for path in parsed.object_info:
        definitions.update(read_json(path))
    return definitions
