import json
from typing import Any

import pytest

from app import events, wire
from app.events import NodeName
from app.progress import INTERVAL_S, SMALL, ProgressStates
from app.wire import Wire


def filled(count: int) -> ProgressStates:
    states = ProgressStates()
    for number in range(count):
        states.note("p", NodeName(str(number), str(number)), 0, 1, "running")
    return states


def test_of_a_small_prompt_every_state_is_told():
    states = filled(SMALL)
    assert all(states.due("p", now) is not None for now in (0.0, 0.0, 0.001))
    assert states.owed == ()


def test_states_of_a_large_prompt_keep_a_distance_and_the_last_is_owed():
    states = filled(SMALL + 1)
    assert states.due("p", 5.0) is not None
    states.note("p", NodeName("1", "1"), 1, 1, "finished")
    assert states.due("p", 5.0 + INTERVAL_S / 2) is None
    assert states.owed == ("p",)
    state = states.settle("p", 5.01)
    assert state is not None
    assert state["1"]["state"] == "finished"
    assert states.settle("p", 5.02) is None
    states.note("p", NodeName("2", "2"), 1, 1, "finished")
    assert states.due("p", 5.02 + INTERVAL_S) is not None


def test_a_prompt_that_ended_is_forgotten_with_what_it_owed():
    states = filled(SMALL + 1)
    states.forget("p")
    assert states.owed == ()
    assert states.maximum("p", NodeName("1", "1")) == 1


def test_a_long_chain_is_told_in_few_states_and_completely_before_its_success(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    monkeypatch.setattr(wire.time, "monotonic", lambda: now)
    translator = Wire()
    frames: list[Any] = []
    for number in range(1000):
        now += 0.001
        node = NodeName(str(number), str(number))
        frames += translator.frames(events.NodeStarted("p", "me", node))
        frames += translator.frames(events.NodeFinished("p", "me", node, None))
    frames += translator.frames(events.ExecutionSuccess("p", "me"))
    messages = [json.loads(frame) for frame in frames]
    states = [message["data"]["nodes"] for message in messages if message["type"] == "progress_state"]
    assert len(states) < 2 * SMALL + 1 / INTERVAL_S + 5
    assert sum(message["type"] == "executing" for message in messages) == 1000
    assert [message["type"] for message in messages[-2:]] == ["progress_state", "execution_success"]
    assert {entry["state"] for entry in states[-1].values()} == {"finished"}
    assert len(states[-1]) == 1000
    assert not translator.owes
