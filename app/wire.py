"""How events look on a websocket: ComfyUI's JSON messages and binary frames. Only this file knows.

One Wire serves one connection, because progress is cumulative and clients differ in what they understand.
"""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Mapping
from typing import Any

from app import events
from app.events import Event, JobEvent
from app.json_text import encode
from app.progress import ProgressStates, State, named
from app.replay import Numbered

Frame = str | bytes

PREVIEW_IMAGE, TEXT, PREVIEW_IMAGE_WITH_METADATA = 1, 3, 4
_IMAGE_FORMATS = {"image/jpeg": 1, "image/png": 2}


def server_features(max_upload_bytes: int, assets: bool) -> dict[str, Any]:
    """What this server can do, for `GET /features` and the handshake."""
    return {
        "supports_preview_metadata": True,
        "supports_model_type_tags": assets,
        "max_upload_size": max_upload_bytes,
        "node_replacements": True,
        "assets": assets,
        "partner_run_gate_enabled": False,
        "treadle_text": True,
    }


def message(kind: str, data: Mapping[str, Any]) -> str:
    return encode({"type": kind, "data": data})


def status(remaining: int, sid: str | None = None) -> str:
    data: dict[str, Any] = {"status": {"exec_info": {"queue_remaining": remaining}}}
    return message("status", data if sid is None else {**data, "sid": sid})


def client_features(text: str) -> dict[str, Any] | None:
    """The flags of a `feature_flags` message, or None for any other message of a client."""
    try:
        parsed = json.loads(text)
    except ValueError:
        return None
    if not isinstance(parsed, dict) or parsed.get("type") != "feature_flags":
        return None
    data = parsed.get("data")
    return data if isinstance(data, dict) else {}


class Wire:
    """`features` are the client's flags, replaced when its handshake arrives.

    `since` is the number of the last event that the client has seen; None for one that counts no events.
    """

    def __init__(self, since: int | None = None) -> None:
        self._since = since
        self.features: Mapping[str, Any] = {}
        self._progress = ProgressStates()

    def numbered_frames(self, numbered: Numbered) -> list[Frame]:
        """The number stands in the last frame: who has that one has all of the event.

        An event that the client has seen already makes no frames, but tells how far its nodes were.
        """
        frames = self.frames(numbered.event)
        if self._since is None:
            return frames
        if numbered.number <= self._since:
            return []
        if frames and isinstance(last := frames[-1], str):
            frames[-1] = f'{last[:-1]}, "seq": {numbered.number}}}'
        return frames

    @property
    def owes(self) -> bool:
        """There is progress that was held back: ask for `owed_frames` soon."""
        return bool(self._progress.owed)

    def owed_frames(self) -> list[Frame]:
        return [frame for prompt_id in self._progress.owed for frame in self._settled(prompt_id)]

    def missed(self) -> str:
        """More happened than the server has kept; /history and /jobs tell what became of it."""
        return message("treadle.missed", {"since": self._since})

    def frames(self, event: Event) -> list[Frame]:
        match event:
            case events.QueueChanged():
                return [status(event.remaining)]
            case events.PackMessage():
                return [message(event.kind, event.data) if event.frame is None else event.frame]
            case events.NodeStarted():
                return self._node_started(event)
            case events.NodeProgress():
                return self._node_progress(event)
            case events.NodePreview():
                return [self._preview(event)]
            case events.NodeText():
                return self._text(event)
            case events.NodeFinished():
                return self._node_finished(event)
            case _:
                return [*self._settled(event.prompt_id), self._about_the_prompt(event)]

    def _about_the_prompt(self, event: JobEvent) -> Frame:
        prompt = {"prompt_id": event.prompt_id}
        stamped = {**prompt, "timestamp": time.time_ns() // 1_000_000}
        match event:
            case events.ExecutionStart():
                return message("execution_start", stamped)
            case events.ExecutionCached():
                return message("execution_cached", {"nodes": list(event.nodes), **stamped})
            case events.ExecutionSuccess():
                return message("execution_success", stamped)
            case events.ExecutionInterrupted():
                stopped = {"node_id": event.node_id, "node_type": event.node_type}
                return message(
                    "execution_interrupted", {**stamped, **stopped, "executed": list(event.executed)}
                )
            case events.ExecutionError():
                return message("execution_error", {**stamped, **error_data(event)})
            case events.ExecutionEnd():
                self._progress.forget(event.prompt_id)
                return message("executing", {"node": None, **prompt})
            case _:
                raise AssertionError(f"no wire form for {event}")

    def _node_started(self, event: events.NodeStarted) -> list[Frame]:
        self._progress.note(event.prompt_id, event.node, 0, 1, "running")
        return [*self._due(event.prompt_id), executing(event)]

    def _node_progress(self, event: events.NodeProgress) -> list[Frame]:
        self._progress.note(event.prompt_id, event.node, event.value, event.maximum, "running")
        legacy = {"value": event.value, "max": event.maximum, "prompt_id": event.prompt_id}
        return [
            *self._due(event.prompt_id),
            message("progress", {**legacy, "node": event.node.node_id}),
        ]

    def _node_finished(self, event: events.NodeFinished) -> list[Frame]:
        maximum = self._progress.maximum(event.prompt_id, event.node)
        self._progress.note(event.prompt_id, event.node, maximum, maximum, "finished")
        if event.ui is None and not event.cached:
            return self._due(event.prompt_id)
        shown = {"node": event.node.node_id, "display_node": event.node.display_id}
        return [
            message("executed", {**shown, "output": event.ui, "prompt_id": event.prompt_id}),
            *self._due(event.prompt_id),
        ]

    def _preview(self, event: events.NodePreview) -> Frame:
        if not self.features.get("supports_preview_metadata"):
            return struct.pack(">II", PREVIEW_IMAGE, _IMAGE_FORMATS[event.image_type]) + event.image
        about = {**named(event.prompt_id, event.node), "image_type": event.image_type}
        encoded = json.dumps(about).encode()
        return struct.pack(">II", PREVIEW_IMAGE_WITH_METADATA, len(encoded)) + encoded + event.image

    def _text(self, event: events.NodeText) -> list[Frame]:
        node_id = event.node.display_id
        encoded = node_id.encode(errors="replace")
        frames: list[Frame] = [
            struct.pack(">II", TEXT, len(encoded)) + encoded + event.text.encode(errors="replace")
        ]
        if self.features.get("treadle_text"):
            data = {"prompt_id": event.prompt_id, "node": node_id, "text": event.text}
            frames.append(message("treadle.text", data))
        return frames

    def _due(self, prompt_id: str) -> list[Frame]:
        return _progress_frames(prompt_id, self._progress.due(prompt_id, time.monotonic()))

    def _settled(self, prompt_id: str) -> list[Frame]:
        return _progress_frames(prompt_id, self._progress.settle(prompt_id, time.monotonic()))


def _progress_frames(prompt_id: str, state: State | None) -> list[Frame]:
    return [] if state is None else [message("progress_state", {"prompt_id": prompt_id, "nodes": state})]


def executing(event: events.NodeStarted) -> str:
    node = event.node
    return message(
        "executing",
        {"node": node.node_id, "display_node": node.display_id, "prompt_id": event.prompt_id},
    )


def error_data(event: events.ExecutionError) -> dict[str, Any]:
    """Also what history and jobs keep of an error."""
    return {
        "prompt_id": event.prompt_id,
        "node_id": event.node_id,
        "node_type": event.node_type,
        "executed": list(event.executed),
        "exception_message": event.exception_message,
        "exception_type": event.exception_type,
        "traceback": list(event.traceback),
        "current_inputs": event.current_inputs,
        "current_outputs": list(event.current_outputs),
    }
