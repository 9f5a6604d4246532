import asyncio
import uuid
from dataclasses import replace
from typing import Any

import pytest

from app.config import Config
from tests.cpu.server.small_nodes import Gate
from tests.cpu.server.talk import SHOWN, Client, Listen, graph, post


def kinds(messages: list[tuple[str, Any]]) -> list[str]:
    return [kind for kind, _ in messages]


async def run(client: Client, listen: Listen, prompt: Any) -> tuple[str, list[tuple[str, Any]]]:
    listener = await listen("me")
    status, answer = await post(client, prompt, client_id="me")
    assert (status, answer["node_errors"]) == (200, {})
    return answer["prompt_id"], await listener.until_end(answer["prompt_id"])


async def test_a_run_tells_its_owner_every_step_in_the_protocols_order(
    client: Client, listen: Listen
) -> None:
    prompt_id, messages = await run(client, listen, SHOWN)
    assert kinds(messages) == [
        "status",
        "status",
        "execution_start",
        "execution_cached",
        "progress_state",
        "executing",
        "progress_state",
        "progress_state",
        "executing",
        "executed",
        "progress_state",
        "execution_success",
        "status",
        "executing",
    ]
    counts = [data["status"]["exec_info"]["queue_remaining"] for kind, data in messages if kind == "status"]
    assert counts == [1, 1, 0]
    executed = dict(messages)["executed"]
    assert executed == {
        "node": "2",
        "display_node": "2",
        "output": {"text": ["hello"]},
        "prompt_id": prompt_id,
    }


async def test_history_is_complete_when_the_queue_is_told_empty(client: Client, listen: Listen) -> None:
    listener = await listen("me")
    _, answer = await post(
        client, SHOWN, client_id="me", extra_data={"extra_pnginfo": {"workflow": {"id": "w"}}}
    )
    prompt_id = answer["prompt_id"]
    while (await listener.message())[0] != "execution_success":
        pass
    assert (await listener.message())[0] == "status"
    item = (await (await client.get(f"/history/{prompt_id}")).json())[prompt_id]
    number, id_again, prompt, extra_data, outputs = item["prompt"]
    assert (number, id_again, outputs) == (answer["number"], prompt_id, ["2"])
    assert prompt == SHOWN
    assert extra_data["client_id"] == "me"
    assert item["outputs"] == {"2": {"text": ["hello"]}}
    assert item["meta"]["2"] == {
        "node_id": "2",
        "display_node": "2",
        "parent_node": None,
        "real_node_id": "2",
    }
    assert (item["status"]["status_str"], item["status"]["completed"]) == ("success", True)
    assert [name for name, _ in item["status"]["messages"]] == [
        "execution_start",
        "execution_cached",
        "execution_success",
    ]


async def test_a_rerun_is_cached_and_shows_its_output_again(client: Client, listen: Listen) -> None:
    await run(client, listen, SHOWN)
    _, messages = await run(client, listen, SHOWN)
    told = dict(messages)
    assert sorted(told["execution_cached"]["nodes"]) == ["1", "2"]
    assert told["executed"]["output"] == {"text": ["hello"]}
    executing = [data for kind, data in messages if kind == "executing"]
    assert [data["node"] for data in executing] == [None]


async def test_a_failing_node_is_named_and_the_server_goes_on(client: Client, listen: Listen) -> None:
    prompt = graph(("Fail", {"text": "x"}), ("Show", {"text": ["1", 0]}))
    prompt_id, messages = await run(client, listen, prompt)
    error = dict(messages)["execution_error"]
    assert (error["node_id"], error["node_type"]) == ("1", "Fail")
    assert error["exception_message"] == "cannot work with 'x'\n"
    assert error["exception_type"] == "nodes.context.NodeInputError"
    assert kinds(messages)[-3:] == ["execution_error", "status", "executing"]
    item = (await (await client.get(f"/history/{prompt_id}")).json())[prompt_id]
    assert (item["status"]["status_str"], item["status"]["completed"]) == ("error", False)
    job = await (await client.get(f"/api/jobs/{prompt_id}")).json()
    assert job["status"] == "failed"
    assert job["execution_error"]["node_id"] == "1"
    await run(client, listen, SHOWN)


async def test_a_missing_input_file_is_an_error_of_its_node(client: Client, listen: Listen) -> None:
    for name in ("absent.txt", "../secrets.txt", "/etc/passwd"):
        prompt = graph(("NeedFile", {"name": name}), ("Show", {"text": ["1", 0]}))
        _, messages = await run(client, listen, prompt)
        assert dict(messages)["execution_error"]["exception_type"] == "nodes.context.NodeInputError"


async def test_progress_previews_and_text_reach_the_owner(client: Client, listen: Listen) -> None:
    listener = await listen("me", supports_preview_metadata=True, treadle_text=True)
    prompt = graph(("Slow", {"label": "", "steps": 3, "pause_s": 0.03}), ("Show", {"text": ["1", 0]}))
    _, answer = await post(client, prompt, client_id="me")
    messages = await listener.until_end(answer["prompt_id"])
    texts = [data for kind, data in messages if kind == "treadle.text"]
    assert texts[-1] == {"prompt_id": answer["prompt_id"], "node": "1", "text": "012"}
    frames = [data for kind, data in messages if kind == "binary"]
    assert {frame[3] for frame in frames} == {3, 4}
    assert b"012" in [frame[9:] for frame in frames if frame[3] == 3][-1]
    assert [data["value"] for kind, data in messages if kind == "progress"][-1] == 3


async def test_interrupting_stops_the_job_and_says_so(client: Client, listen: Listen) -> None:
    listener = await listen("me")
    _, answer = await post(
        client, graph(("Hold", {"text": "through"}), ("Show", {"text": ["1", 0]})), client_id="me"
    )
    prompt_id = answer["prompt_id"]
    while (await listener.message())[0] != "executing":
        pass
    other = await client.post("/interrupt", json={"prompt_id": str(uuid.uuid4())})
    assert other.status == 200
    assert (await (await client.get("/prompt")).json())["exec_info"]["queue_remaining"] == 1
    assert (await client.post("/interrupt", json={"prompt_id": prompt_id})).status == 200
    messages = await listener.until_end(prompt_id)
    assert kinds(messages)[-3:] == ["execution_interrupted", "status", "executing"]
    assert (await (await client.get(f"/jobs/{prompt_id}")).json())["status"] == "cancelled"


async def test_interrupting_without_a_body_stops_everything_that_runs(client: Client, listen: Listen) -> None:
    listener = await listen("me")
    for text in "ab":
        await post(client, graph(("Hold", {"text": text}), ("Show", {"text": ["1", 0]})), client_id="me")
    await asyncio.sleep(0.05)
    assert (await client.post("/interrupt")).status == 200
    seen: list[str] = []
    while seen.count("execution_interrupted") < 2:
        seen.append((await listener.message())[0])


async def test_waiting_jobs_can_be_seen_deleted_and_cleared(client: Client, gate: Gate) -> None:
    hold = graph(("Hold", {"text": "through"}), ("Show", {"text": ["1", 0]}))
    ids = [(await post(client, hold))[1]["prompt_id"] for _ in range(11)]
    queue = await (await client.get("/queue")).json()
    assert [item[1] for item in queue["queue_running"]] == ids[:8]
    assert [item[1] for item in queue["queue_pending"]] == ids[8:]
    assert (await client.post("/queue", json={"delete": [ids[9], "unknown"]})).status == 200
    cancelled = await client.post(f"/api/jobs/{ids[10]}/cancel")
    assert await cancelled.json() == {"cancelled": True}
    assert await (await client.post(f"/api/jobs/{ids[10]}/cancel")).json() == {"cancelled": False}
    pending = (await (await client.get("/api/queue")).json())["queue_pending"]
    assert [item[1] for item in pending] == [ids[8]]
    listed = await (await client.get("/api/jobs?status=pending,in_progress&limit=4")).json()
    assert listed["pagination"] == {"offset": 0, "limit": 4, "total": 9, "has_more": True}
    assert {job["status"] for job in listed["jobs"]} <= {"pending", "in_progress"}
    await client.post("/queue", json={"clear": True})
    assert (await (await client.get("/queue")).json())["queue_pending"] == []
    gate.opened.set()


async def test_front_and_number_decide_what_starts_next(client: Client, gate: Gate, listen: Listen) -> None:
    listener = await listen("me")
    for _ in range(8):
        await post(client, graph(("Hold", {"text": "through"}), ("Show", {"text": ["1", 0]})))
    hold = graph(("Source", {"text": "late"}), ("Show", {"text": ["1", 0]}))
    last = (await post(client, hold, client_id="me"))[1]
    first = (await post(client, hold, client_id="me", front=True))[1]
    middle = (await post(client, hold, client_id="me", number=-0.5))[1]
    assert (first["number"] < 0, middle["number"], last["number"]) == (True, -0.5, 8)
    pending = (await (await client.get("/queue")).json())["queue_pending"]
    expected = [first["prompt_id"], middle["prompt_id"], last["prompt_id"]]
    assert [item[1] for item in pending] == expected
    gate.opened.set()
    started: list[str] = []
    while len(started) < 3:
        kind, data = await listener.message()
        if kind == "execution_start":
            started.append(data["prompt_id"])
    assert started == expected


async def test_secrets_reach_no_history(client: Client, listen: Listen) -> None:
    listener = await listen("me")
    secret = {"api_key_comfy_org": "s3cret", "auth_token_comfy_org": "t0ken"}
    _, answer = await post(client, SHOWN, client_id="me", extra_data=secret)
    await listener.until_end(answer["prompt_id"])
    text = await (await client.get("/history")).text()
    assert "s3cret" not in text
    assert "t0ken" not in text


CYCLE = graph(("Source", {"text": ["2", 0]}), ("Source", {"text": ["1", 0]}), ("Show", {"text": ["1", 0]}))


@pytest.mark.parametrize(
    ("prompt", "error_type", "node_error"),
    [
        (graph(("Nobody", {})), "missing_node_type", None),
        ({"1": {"inputs": {}}}, "missing_node_type", None),
        ({}, "prompt_no_outputs", None),
        (graph(("Source", {"text": "x"})), "prompt_no_outputs", None),
        (graph(("Show", {})), "prompt_outputs_failed_validation", ("1", "required_input_missing")),
        (
            graph(("Show", {"text": ["9", 0]})),
            "prompt_outputs_failed_validation",
            ("1", "exception_during_validation"),
        ),
        (
            graph(("Picture", {"width": "wide", "prefix": "p"})),
            "prompt_outputs_failed_validation",
            ("1", "invalid_input_type"),
        ),
        (CYCLE, "prompt_outputs_failed_validation", ("1", "dependency_cycle")),
    ],
)
async def test_a_wrong_graph_is_refused_in_the_protocols_form(
    client: Client, prompt: Any, error_type: str, node_error: tuple[str, str] | None
) -> None:
    status, answer = await post(client, prompt)
    assert status == 400
    assert answer["error"]["type"] == error_type
    assert set(answer["error"]) == {"type", "message", "details", "extra_info"}
    if node_error is not None:
        node_id, kind = node_error
        assert kind in [error["type"] for error in answer["node_errors"][node_id]["errors"]]
    assert (await post(client, SHOWN))[0] == 200


async def test_sound_outputs_run_although_others_are_wrong(client: Client, listen: Listen) -> None:
    prompt = SHOWN | {"9": {"class_type": "Show", "inputs": {}}}
    status, answer = await post(client, prompt)
    assert status == 200
    assert list(answer["node_errors"]) == ["9"]


@pytest.mark.parametrize(
    ("body", "error_type"),
    [
        (b"{not json", "invalid_json"),
        (b"[1, 2]", "invalid_prompt"),
        (b'{"prompt": 7}', "invalid_prompt"),
        (b'{"prompt": {"1": {"class_type": "Show", "inputs": {"text": NaN}}}}', "invalid_json"),
        (b"\xff\xfe\x00", "invalid_json"),
        (b"{}", "no_prompt"),
        (b'{"prompt": {}, "prompt_id": "not-a-uuid"}', "invalid_prompt_id"),
        (b'{"prompt": {}, "prompt_id": "6F9619FF-8B86-D011-B42D-00C04FC964FF"}', "invalid_prompt_id"),
        (b'{"prompt": {}, "number": "many"}', "invalid_prompt"),
        (b"[" * 100_000, "invalid_json"),
    ],
)
async def test_a_malformed_body_is_a_400_with_its_reason(
    client: Client, body: bytes, error_type: str
) -> None:
    answer = await client.post("/prompt", data=body, headers={"Content-Type": "application/json"})
    assert answer.status == 400
    assert (await answer.json())["error"]["type"] == error_type
    assert (await post(client, SHOWN))[0] == 200


async def test_an_id_stands_for_one_prompt_while_it_waits_or_runs(client: Client, gate: Gate) -> None:
    prompt_id = str(uuid.uuid4())
    hold = graph(("Hold", {"text": "through"}), ("Show", {"text": ["1", 0]}))
    answers = await asyncio.gather(*(post(client, hold, prompt_id=prompt_id) for _ in range(8)))
    assert {status for status, _ in answers} == {200}
    assert {(answer["prompt_id"], answer["number"]) for _, answer in answers} == {
        (prompt_id, answers[0][1]["number"])
    }
    assert (await (await client.get("/prompt")).json())["exec_info"]["queue_remaining"] == 1
    other = graph(("Hold", {"text": "other"}), ("Show", {"text": ["1", 0]}))
    for refused in (
        await post(client, other, prompt_id=prompt_id),
        await post(client, hold, prompt_id=prompt_id, client_id="somebody"),
    ):
        assert (refused[0], refused[1]["error"]["type"]) == (409, "prompt_id_used")
    gate.opened.set()
    answer = await client.post("/prompt?wait=1", json={"prompt": hold, "prompt_id": prompt_id})
    assert (await answer.json())["status"] == "completed"
    assert (await post(client, other, prompt_id=prompt_id))[0] == 200, "it ended, so its id is free"


async def test_only_the_targets_of_a_partial_run_are_executed(client: Client, listen: Listen) -> None:
    listener = await listen("me")
    prompt = SHOWN | {"3": {"class_type": "Show", "inputs": {"text": "other"}}}
    _, answer = await post(client, prompt, client_id="me", partial_execution_targets=["3"])
    messages = await listener.until_end(answer["prompt_id"])
    assert [data["node"] for kind, data in messages if kind == "executed"] == ["3"]
    assert (await post(client, prompt, partial_execution_targets=[]))[1]["error"][
        "type"
    ] == "prompt_no_outputs"


async def test_a_fault_outside_the_nodes_ends_its_job_alone(
    client: Client, listen: Listen, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def crash(*_: Any) -> None:
        raise MemoryError("no room for the plan")

    with monkeypatch.context() as patched:
        patched.setattr("app.jobs.run_job", crash)
        prompt_id, messages = await run(client, listen, SHOWN)
    assert "no room for the plan" in dict(messages)["execution_error"]["exception_message"]
    item = (await (await client.get(f"/history/{prompt_id}")).json())[prompt_id]
    assert item["status"]["status_str"] == "error"
    _, messages = await run(client, listen, SHOWN)
    assert "execution_success" in kinds(messages)


class TestWithoutMetadata:
    @pytest.fixture
    def config(self, config: Config) -> Config:
        return replace(config, metadata=False)

    async def test_nodes_have_nothing_to_write_into_files(self, client: Client, listen: Listen) -> None:
        listener = await listen("me")
        extra_data = {"extra_pnginfo": {"workflow": {"id": "w"}}}
        _, answer = await post(client, graph(("TellHidden", {})), client_id="me", extra_data=extra_data)
        told = dict(await listener.until_end(answer["prompt_id"]))
        assert told["executed"]["output"] == {"text": ["None", "None"]}


class TestOneAtATime:
    @pytest.fixture
    def config(self, config: Config) -> Config:
        return replace(config, max_running_jobs=1)

    async def test_the_second_job_waits_for_the_first(
        self, client: Client, listen: Listen, gate: Gate
    ) -> None:
        listener = await listen("me")
        hold = graph(("Hold", {"text": "through"}), ("Show", {"text": ["1", 0]}))
        first = (await post(client, hold, client_id="me"))[1]["prompt_id"]
        second = (await post(client, SHOWN, client_id="me"))[1]["prompt_id"]
        queue = await (await client.get("/queue")).json()
        assert [item[1] for item in queue["queue_running"]] == [first]
        assert [item[1] for item in queue["queue_pending"]] == [second]
        gate.opened.set()
        told = await listener.until_end(second)
        about = [data["prompt_id"] for kind, data in told if "prompt_id" in data]
        assert about == [first] * about.count(first) + [second] * about.count(second)


async def test_no_node_records_gradients(client: Client, listen: Listen) -> None:
    asked = graph(("Gradients", {}), ("GradientsInLoop", {}))
    prompt_id, _ = await run(client, listen, asked)
    item = (await (await client.get(f"/history/{prompt_id}")).json())[prompt_id]
    assert item["outputs"] == {"1": {"text": ["False"]}, "2": {"text": ["False"]}}
