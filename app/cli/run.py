"""`main.py run WORKFLOW`: one workflow from start to end in this process, without a server."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import sys
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from app.cli.converted import converted
from app.cli.progress import ProgressBar
from app.cli.settings import WrongSetting, with_settings
from app.cli.source import CannotRun, Source, add_seed_flag, read_source
from app.config import Config
from app.files import Files
from app.flags import add_directory_flags, headless_config, set_environment
from app.folders import ModelFolders
from app.graph.complaints import PromptRejected
from app.graph.report import Outcome
from app.graph.run import run_job
from app.graph.validate import ValidGraph, parse_and_validate
from app.queue import Job
from app.startup import Studio, gradients_off, load, services_for
from app.workflow.tree import Definitions


def main(argv: Sequence[str]) -> int:
    parsed = _parser().parse_args(list(argv))
    set_environment(["--cpu"] if parsed.cpu else [])
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    config = headless_config(parsed)
    files = Files(config.directories, ModelFolders(config.directories, config.extra_model_paths))
    files.make_directories()
    try:
        source = read_source(parsed.workflow)
        studio = load(config, files, on_llm_forward=_ignore, on_diffusion_forward=_ignore)
        try:
            outcome = _run(source, parsed, config, files, studio)
        finally:
            studio.close()
    except CannotRun as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    _show(outcome, files, as_json=parsed.json)
    return 0 if outcome.status == "success" else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="main.py run", description=__doc__, allow_abbrev=False)
    parser.add_argument(
        "workflow",
        type=Path,
        help="a prompt, a saved workflow, or a picture that carries one; - is standard input",
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="ID.INPUT=VALUE", help="change one input"
    )
    add_seed_flag(parser)
    parser.add_argument("--json", action="store_true", help="print the outputs as JSON and no progress")
    parser.add_argument("--cpu", action="store_true", help="use no accelerator")
    add_directory_flags(parser)
    return parser


def _run(source: Source, parsed: argparse.Namespace, config: Config, files: Files, studio: Studio) -> Outcome:
    def definitions() -> Definitions:
        return {id: studio.registry.object_info(id, files) for id in studio.registry}

    try:
        prompt = converted(source, definitions, advance_seeds=parsed.advance_seeds)
        prompt = with_settings(prompt, parsed.set, studio.registry, files)
    except WrongSetting as error:
        raise CannotRun(str(error)) from None
    valid = parse_and_validate(prompt, studio.registry, files)
    if isinstance(valid, PromptRejected):
        raise CannotRun(_complaints(valid))
    for node_id, node in valid.node_errors.items():
        print(f"left out: node {node_id} ({node.class_type}): {node.errors[0].message}", file=sys.stderr)
    job = Job(str(uuid.uuid4()), 0, valid, extra_data=_extra_data(source))
    with ProgressBar(valid.graph, _num_needed(valid), parsed.json) as bar:
        return asyncio.run(_executed(job, studio, config, files, bar))


async def _executed(job: Job, studio: Studio, config: Config, files: Files, bar: ProgressBar) -> Outcome:
    gradients_off()
    return await run_job(job, services_for(studio, config, files, bar.publish))


def _extra_data(source: Source) -> dict[str, Any]:
    created = {"create_time": time.time_ns() // 1_000_000}
    return created if source.workflow is None else {**created, "extra_pnginfo": {"workflow": source.workflow}}


def _num_needed(valid: ValidGraph) -> int:
    needed: set[str] = set()
    todo = list(valid.outputs)
    while todo:
        node_id = todo.pop()
        if node_id not in needed:
            needed.add(node_id)
            todo.extend(link.node_id for link in valid.graph.nodes[node_id].links.values())
    return len(needed)


def _complaints(rejected: PromptRejected) -> str:
    lines = [f"{rejected.error.message} {rejected.error.details}".rstrip()]
    for node_id, node in rejected.node_errors.items():
        for error in node.errors:
            lines.append(f"  node {node_id} ({node.class_type}): {error.message}: {error.details}")
    return "\n".join(lines)


def _show(outcome: Outcome, files: Files, as_json: bool) -> None:
    failure = _failure(outcome)
    if as_json:
        print(
            json.dumps({"status": outcome.status, "outputs": outcome.outputs, "error": failure}, default=str)
        )
    else:
        for ui in outcome.outputs.values():
            for shown in _shown(ui, files):
                print(shown)
    if failure is not None:
        where = f"node {failure['node_id']} ({failure['node_type']}) failed: " if failure["node_id"] else ""
        print(f"error: {where}{failure['exception_message'].strip()}", file=sys.stderr)


def _shown(ui: Any, files: Files) -> list[str]:
    """Saved files by their path, texts as they are."""
    lines = []
    for kind, items in ui.items():
        for item in items if isinstance(items, list | tuple) else ():
            if isinstance(item, dict) and "filename" in item:
                root = files.directories.by_type(str(item.get("type"))) or Path()
                lines.append(str(root / str(item.get("subfolder", "")) / str(item["filename"])))
            elif kind == "text":
                lines.append(str(item))
    return lines


def _failure(outcome: Outcome) -> dict[str, Any] | None:
    return next((dict(data) for kind, data in outcome.messages if kind == "execution_error"), None)


def _ignore(_rows: int) -> None:
    pass
