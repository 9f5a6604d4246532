"""A prompt as the jobs API shows it, made from its history item or its place in the queue. Pure."""

from __future__ import annotations

import mimetypes
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

STATUSES = ("pending", "in_progress", "completed", "failed", "cancelled")
ENDED = ("completed", "failed", "cancelled")
_MEDIA = frozenset({"images", "video", "audio", "3d"})
_MODELS = (".obj", ".fbx", ".gltf", ".glb", ".usdz", ".stl", ".ply", ".splat", ".spz", ".ksplat")
_TEXTS = (".txt", ".md", ".json", ".csv", ".yaml", ".yml", ".xml", ".log")
_LONGEST_TEXT = 1024

Item = Mapping[str, Any]


def ended_status(status: Item) -> str:
    """From the `status` of a history item."""
    if any(event == "execution_interrupted" for event, _ in status.get("messages", ())):
        return "cancelled"
    return "failed" if status.get("status_str") == "error" else "completed"


def from_queue(item: Sequence[Any], status: str) -> dict[str, Any]:
    """`item` is [number, prompt_id, prompt, extra_data, outputs]."""
    number, prompt_id, _, extra_data, _ = item
    return _without_nulls(
        {
            "id": prompt_id,
            "status": status,
            "priority": number,
            "create_time": extra_data.get("create_time"),
            "outputs_count": 0,
            "workflow_id": workflow_id(extra_data),
        }
    )


def from_history(item: Item) -> dict[str, Any]:
    number, prompt_id, _, extra_data, _ = item["prompt"]
    messages = dict(item["status"]["messages"])
    ends = ("execution_success", "execution_error", "execution_interrupted")
    ended: Item = next((messages[name] for name in ends if name in messages), {})
    total, previewable, preview = _counted(item["outputs"])
    return _without_nulls(
        {
            "id": prompt_id,
            "status": ended_status(item["status"]),
            "priority": number,
            "create_time": extra_data.get("create_time"),
            "execution_start_time": messages.get("execution_start", {}).get("timestamp"),
            "execution_end_time": ended.get("timestamp"),
            "execution_error": messages.get("execution_error"),
            "outputs_count": total,
            "previewable_outputs_count": previewable,
            "preview_output": preview,
            "workflow_id": workflow_id(extra_data),
        }
    )


def detailed(summary: dict[str, Any], item: Item) -> dict[str, Any]:
    """What asking for one ended job adds."""
    _, _, prompt, extra_data, _ = item["prompt"]
    return {
        **summary,
        "outputs": item["outputs"],
        "execution_status": item["status"],
        "workflow": {"prompt": prompt, "extra_data": extra_data},
    }


def workflow_id(extra_data: Item) -> str | None:
    info = extra_data.get("extra_pnginfo")
    workflow = info.get("workflow") if isinstance(info, Mapping) else None
    return workflow.get("id") if isinstance(workflow, Mapping) else None


def ordered(jobs: list[dict[str, Any]], by: str, descending: bool) -> list[dict[str, Any]]:
    def key(job: dict[str, Any]) -> float:
        if by == "created_at":
            return job.get("create_time") or 0
        return (job.get("execution_end_time") or 0) - (job.get("execution_start_time") or 0)

    return sorted(jobs, key=key, reverse=descending)


def _counted(outputs: Item) -> tuple[int, int, Item | None]:
    items = list(_items(outputs))
    shown = [(rank, item) for kind, item in items if (rank := _preview_rank(kind, item)) is not None]
    # min keeps the first of equals
    best = min(shown, key=lambda ranked: ranked[0], default=None)
    return len(items), len(shown), None if best is None else best[1]


def _items(outputs: Item) -> Iterator[tuple[str, dict[str, Any]]]:
    for node_id, ui in outputs.items():
        for kind, values in (ui or {}).items():
            if kind == "animated" or not isinstance(values, list | tuple):
                continue
            for value in values:
                yield kind, _described(node_id, kind, value)


def _described(node_id: str, kind: str, value: Any) -> dict[str, Any]:
    named = {"nodeId": node_id, "mediaType": kind}
    if isinstance(value, Mapping):
        return {**value, **named}
    if isinstance(value, str) and value.lower().endswith(_MODELS):
        folder, _, name = value.rpartition("/")
        return {"filename": name, "type": "output", "subfolder": folder, **named, "mediaType": "3d"}
    text = str(value)
    cut = {"truncated": True} if len(text) > _LONGEST_TEXT else {}
    return {"content": text[:_LONGEST_TEXT], **named, **cut}


def _preview_rank(kind: str, item: Item) -> int | None:
    """0 is shown first; None is not shown at all."""
    name = str(item.get("filename", ""))
    extension = os.path.splitext(name)[1].lower()
    mime = str(item.get("format") or mimetypes.guess_type(name)[0] or "")
    if kind in _MEDIA or mime.startswith(("image/", "video/", "audio/")) or extension in _MODELS:
        return 0 if item.get("type") == "output" else 1
    if extension in _TEXTS:
        return 2
    return 3 if kind == "text" and "content" in item else None


def _without_nulls(job: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in job.items() if value is not None}
