"""`main.py convert FILE`: an editor's workflow, or a picture that carries one, as a prompt in API format."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from app.cli.source import CannotRun, Source, read_json, read_source
from app.flags import add_directory_flags, headless_config
from app.workflow.convert import convert
from app.workflow.report import Report


def main(argv: Sequence[str]) -> int:
    parsed = _parser().parse_args(list(argv))
    try:
        source = read_source(parsed.workflow)
        prompt, report = _converted(source, parsed)
    except CannotRun as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for warning in report.warnings:
        print(f"node {warning.node}: {warning.detail}", file=sys.stderr)
    for kind, node_ids in report.missing_types.items():
        print(f"missing node type {kind}: {', '.join(node_ids)}", file=sys.stderr)
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
    add_directory_flags(parser)
    return parser


def _converted(source: Source, parsed: argparse.Namespace) -> tuple[dict[str, Any], Report]:
    if source.prompt is not None:
        return source.prompt, Report()
    definitions = _definitions(parsed)
    assert source.workflow is not None, "a source has one or the other"
    try:
        conversion = convert(source.workflow, definitions, strict=parsed.strict)
    except ValueError as error:
        raise CannotRun(f"this workflow cannot be converted to a prompt: {error}") from None
    return conversion.prompt, conversion.report


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
