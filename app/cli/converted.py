"""The prompt of a source: as it is, or converted from a saved workflow with its oddities told on stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from app.cli.source import CannotRun, Source
from app.workflow.convert import convert
from app.workflow.report import Report
from app.workflow.tree import Definitions


def converted(
    source: Source, definitions: Callable[[], Definitions], *, strict: bool = False, advance_seeds: bool
) -> dict[str, Any]:
    """`definitions` is asked only when they are needed. Raises `CannotRun`."""
    if source.prompt is not None:
        return source.prompt
    assert source.workflow is not None, "a source has one or the other"
    known = definitions()
    try:
        conversion = convert(source.workflow, known, strict=strict, advance_seeds=advance_seeds)
    except (ValueError, RecursionError) as error:
        raise CannotRun(f"this saved workflow cannot be converted to a prompt: {error}") from None
    _tell(conversion.report)
    return conversion.prompt


def _tell(report: Report) -> None:
    for warning in report.warnings:
        where = f"node {warning.node}" + (f", {warning.input}" if warning.input else "")
        print(f"{where}: {warning.detail}", file=sys.stderr)
    for kind, node_ids in report.missing_types.items():
        print(f"missing node type {kind}: {', '.join(node_ids)}", file=sys.stderr)
    for model in report.missing_models:
        print(f"missing model {model['name']}: node {model['node']}", file=sys.stderr)
