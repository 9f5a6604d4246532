"""Prompts of an earlier process become jobs of this one, if the installed nodes still allow it. It blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from app.backlog import MAX_ATTEMPTS, StoredPrompt
from app.graph.complaints import PromptRejected
from app.graph.parse import Specs
from app.graph.validate import parse_and_validate
from app.queue import Job
from nodes.spec import Library

# Nodes that save files find nothing to write into them.
NO_METADATA: dict[str, Any] = {"prompt": None, "extra_pnginfo": None}


@dataclass(frozen=True, slots=True)
class Lost:
    """Why a prompt cannot run any more, for the person who posted it."""

    reason: str


def revived(stored: StoredPrompt, specs: Specs, library: Library, metadata: bool) -> Job | Lost:
    if stored.attempts >= MAX_ATTEMPTS:
        return Lost(
            f"The server died {stored.attempts} times while this prompt ran, so it is not started again. "
            "Post it again to try once more."
        )
    valid = parse_and_validate(stored.prompt, specs, library, stored.outputs)
    if isinstance(valid, PromptRejected):
        faults = [fault.message for node in valid.node_errors.values() for fault in node.errors]
        said = ". ".join(dict.fromkeys([valid.error.message, *faults]))
        return Lost(f"The server was restarted, and this prompt cannot run any more: {said}")
    return Job(
        stored.id,
        stored.number,
        valid,
        stored.client_id,
        stored.extra_data,
        {} if metadata else NO_METADATA,
        runs_alone=stored.attempts == MAX_ATTEMPTS - 1,
    )
