import json
import struct
from typing import Any

from app import events, wire
from app.events import NodeName, NodeProgress, NodeStarted
from app.replay import Numbered
from app.wire import Frame, Wire

NODE = NodeName("5.0.1", "5", "5")
STAMPED = {"prompt_id": "p"}


def told(frame: Frame) -> tuple[str, Any]:
    assert isinstance(frame, str)
    message = json.loads(frame)
    message["data"].pop("timestamp", None)
    return message["type"], message["data"]


def kinds(frames: list[Frame]) -> list[str]:
    return [told(frame)[0] for frame in frames]


def test_a_node_is_announced_by_its_state_and_then_by_its_name() -> None:
    state, name = Wire().frames(events.NodeStarted("p", "me", NODE))
    entry = {
        "value": 0,
        "max": 1,
        "state": "running",
        "node_id": "5.0.1",
        "prompt_id": "p",
        "display_node_id": "5",
        "parent_node_id": "5",
        "real_node_id": "5.0.1",
    }
    assert told(state) == ("progress_state", {"prompt_id": "p", "nodes": {"5.0.1": entry}})
    assert told(name) == ("executing", {"node": "5.0.1", "display_node": "5", "prompt_id": "p"})


def test_progress_is_cumulative_over_the_nodes_of_one_prompt_only() -> None:
    translator = Wire()
    translator.frames(events.NodeStarted("p", "me", NodeName("1", "1")))
    translator.frames(events.NodeFinished("p", "me", NodeName("1", "1"), None))
    translator.frames(events.NodeStarted("q", "me", NodeName("9", "9")))
    state, legacy = translator.frames(events.NodeProgress("p", "me", NodeName("2", "2"), 3, 20))
    nodes = told(state)[1]["nodes"]
    assert {id: (entry["state"], entry["value"], entry["max"]) for id, entry in nodes.items()} == {
        "1": ("finished", 1, 1),
        "2": ("running", 3, 20),
    }
    assert told(legacy) == ("progress", {"value": 3, "max": 20, "prompt_id": "p", "node": "2"})


def test_only_nodes_that_show_something_are_reported_as_executed() -> None:
    silent = Wire().frames(events.NodeFinished("p", "me", NODE, None))
    showing = Wire().frames(events.NodeFinished("p", "me", NODE, {"text": ["hi"]}))
    assert kinds(silent) == ["progress_state"]
    assert kinds(showing) == ["executed", "progress_state"]
    assert told(showing[0])[1] == {
        "node": "5.0.1",
        "display_node": "5",
        "output": {"text": ["hi"]},
        "prompt_id": "p",
    }


def test_a_cached_output_is_reported_even_when_it_shows_nothing() -> None:
    assert kinds(Wire().frames(events.NodeFinished("p", "me", NODE, None, cached=True)))[0] == "executed"


def test_the_end_of_a_prompt_names_no_node_and_forgets_its_progress() -> None:
    translator = Wire()
    translator.frames(events.NodeStarted("p", "me", NODE))
    assert [told(frame) for frame in translator.frames(events.ExecutionEnd("p", "me"))] == [
        ("executing", {"node": None, "prompt_id": "p"})
    ]
    assert translator._progress._nodes == {}


def test_every_event_of_a_prompt_has_its_message() -> None:
    error = events.ExecutionError(
        "p", "me", "7", "Bad", ("1",), "no\n", "ValueError", ("at",), {"x": [1]}, ("9",)
    )
    cases = {
        "execution_start": events.ExecutionStart("p", "me"),
        "execution_cached": events.ExecutionCached("p", "me", ("1", "2")),
        "execution_success": events.ExecutionSuccess("p", "me"),
        "execution_interrupted": events.ExecutionInterrupted("p", "me", "7", "Slow", ("1",)),
        "execution_error": error,
        "status": events.QueueChanged(3),
    }
    said = {kind: told(Wire().frames(event)[0]) for kind, event in cases.items()}
    assert {kind: message[0] for kind, message in said.items()} == {kind: kind for kind in cases}
    assert said["execution_cached"][1] == {"nodes": ["1", "2"], **STAMPED}
    assert said["execution_interrupted"][1] == {
        **STAMPED,
        "node_id": "7",
        "node_type": "Slow",
        "executed": ["1"],
    }
    assert said["execution_error"][1] == {
        **STAMPED,
        "node_id": "7",
        "node_type": "Bad",
        "executed": ["1"],
        "exception_message": "no\n",
        "exception_type": "ValueError",
        "traceback": ["at"],
        "current_inputs": {"x": [1]},
        "current_outputs": ["9"],
    }
    assert said["status"][1] == {"status": {"exec_info": {"queue_remaining": 3}}}


def test_prompts_carry_a_time_in_milliseconds() -> None:
    frame = Wire().frames(events.ExecutionStart("p", "me"))[0]
    assert json.loads(frame)["data"]["timestamp"] > 1_700_000_000_000


def test_a_preview_is_frame_1_until_the_client_says_that_it_reads_frame_4() -> None:
    translator = Wire()
    preview = events.NodePreview("p", "me", NODE, b"JFIF", "image/jpeg")
    assert translator.frames(preview) == [struct.pack(">II", 1, 1) + b"JFIF"]
    translator.features = {"supports_preview_metadata": True}
    (frame,) = translator.frames(preview)
    assert isinstance(frame, bytes)
    kind, length = struct.unpack(">II", frame[:8])
    assert kind == 4
    assert json.loads(frame[8 : 8 + length]) == {
        "node_id": "5.0.1",
        "prompt_id": "p",
        "display_node_id": "5",
        "parent_node_id": "5",
        "real_node_id": "5.0.1",
        "image_type": "image/jpeg",
    }
    assert frame[8 + length :] == b"JFIF"


def test_a_png_preview_says_so() -> None:
    preview = events.NodePreview("p", "me", NODE, b"PNG", "image/png")
    assert Wire().frames(preview) == [struct.pack(">II", 1, 2) + b"PNG"]


def test_text_goes_as_frame_3_and_as_json_to_those_who_ask() -> None:
    translator = Wire()
    text = events.NodeText("p", "me", NodeName("12", "12"), "wörter")
    binary = struct.pack(">II", 3, 2) + b"12" + "wörter".encode()
    assert translator.frames(text) == [binary]
    translator.features = {"treadle_text": True}
    first, second = translator.frames(text)
    assert first == binary
    assert told(second) == ("treadle.text", {"prompt_id": "p", "node": "12", "text": "wörter"})


def test_only_a_handshake_is_a_handshake() -> None:
    assert wire.client_features('{"type":"feature_flags","data":{"a":true}}') == {"a": True}
    assert wire.client_features('{"type":"feature_flags","data":7}') == {}
    for other in ('{"type":"hello"}', "[]", "not json", "null"):
        assert wire.client_features(other) is None


def test_a_client_that_counts_finds_the_number_in_the_last_frame_of_an_event() -> None:
    counting = Wire(since=4)
    node = NodeName("3", "3")
    assert counting.numbered_frames(Numbered(4, NodeStarted("p", "me", node))) == []
    frames = counting.numbered_frames(Numbered(5, NodeProgress("p", "me", node, 2, 8)))
    parsed: list[Any] = [json.loads(frame) for frame in frames]
    assert [(frame["type"], frame.get("seq")) for frame in parsed] == [
        ("progress_state", None),
        ("progress", 5),
    ]
    assert parsed[0]["data"]["nodes"]["3"]["value"] == 2


def test_a_client_that_does_not_count_gets_frames_as_ever() -> None:
    event = NodeStarted("p", "me", NodeName("3", "3"))
    assert Wire().numbered_frames(Numbered(5, event)) == Wire().frames(event)
