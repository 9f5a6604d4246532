"""`execution`: the names that packs look at. app.graph runs prompts: replacing these changes nothing."""

from __future__ import annotations

import asyncio
from typing import Any

from app.compat.host import host
from app.compat.named import named
from app.graph.complaints import PromptRejected
from app.graph.validate import parse_and_validate
from nodes.spec import Blocker as ExecutionBlocker  # noqa: F401

PromptExecutor, PromptQueue, IsChangedCache, CacheSet, ExecutionList, DynamicPrompt = named(
    "execution",
    "PromptExecutor",
    "PromptQueue",
    "IsChangedCache",
    "CacheSet",
    "ExecutionList",
    "DynamicPrompt",
)


async def validate_prompt(
    prompt_id: str, prompt: dict[str, Any], partial_execution_list: list[str] | None = None
) -> tuple[bool, Any, list[str], dict[str, Any]]:
    """(valid, error, outputs, node errors)."""
    verdict = await asyncio.to_thread(
        parse_and_validate, prompt, host().registry, host().files, partial_execution_list
    )
    if isinstance(verdict, PromptRejected):
        answer = verdict.as_json()
        return False, answer["error"], [], answer["node_errors"]
    return True, None, list(verdict.outputs), verdict.node_errors_json()
