"""All the forms in which a graph may be posted, and answers that wait for its end."""

import asyncio
import io
import json
from typing import Any

import pytest
from aiohttp import FormData
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from app.keys import JOBS
from tests.cpu.server.small_nodes import Gate
from tests.cpu.server.talk import SHOWN, Client, graph, png, post


def workflow(text: str = "hello", kind: str = "Source") -> dict[str, Any]:
    """What an editor saves for `SHOWN`."""
    source = {"id": 1, "type": kind, "inputs": [], "widgets_values": [text]}
    shown = {"id": 2, "type": "Show", "inputs": [{"name": "text", "type": "STRING", "link": 7}]}
    source["outputs"] = [{"name": "text", "type": "STRING", "links": [7]}]
    return {"id": "w", "nodes": [source, shown], "links": [[7, 1, 0, 2, 0, "STRING"]], "version": 0.4}


def with_texts(**texts: Any) -> bytes:
    target, chunks = io.BytesIO(), PngInfo()
    for name, value in texts.items():
        chunks.add_text(name, json.dumps(value))
    Image.new("RGB", (4, 4)).save(target, "PNG", pnginfo=chunks)
    return target.getvalue()


def webp(**texts: Any) -> bytes:
    target, image = io.BytesIO(), Image.new("RGB", (4, 4))
    exif = image.getexif()
    for tag, (name, value) in zip((0x0110, 0x010F), texts.items(), strict=False):
        exif[tag] = f"{name}:{json.dumps(value)}"
    image.save(target, "WEBP", exif=exif)
    return target.getvalue()


def form(content: bytes, **fields: str) -> FormData:
    made = FormData()
    made.add_field("file", content, filename="workflow", content_type="application/octet-stream")
    for name, value in fields.items():
        made.add_field(name, value)
    return made


async def item_of(client: Client, answer: dict[str, Any]) -> dict[str, Any]:
    history = await (await client.get(f"/history/{answer['prompt_id']}")).json()
    item: dict[str, Any] = history[answer["prompt_id"]]
    return item


@pytest.mark.parametrize(
    "body",
    [
        {"json": {"prompt": SHOWN}},
        {"json": SHOWN},
        {"json": {"prompt": workflow()}},
        {"json": workflow()},
        {"data": with_texts(prompt=SHOWN, workflow=workflow())},
        {"data": with_texts(workflow=workflow())},
        {"data": webp(prompt=SHOWN, workflow=workflow())},
        {"data": webp(workflow=workflow())},
    ],
)
async def test_every_form_of_a_graph_runs_and_keeps_the_editors_document(
    client: Client, body: dict[str, Any]
) -> None:
    response = await client.post("/prompt?wait=true", **body)
    answer = await response.json()
    assert (response.status, answer["status"], answer["outputs"]) == (
        200,
        "completed",
        {"2": {"text": ["hello"]}},
    )
    extra_data = (await item_of(client, answer))["prompt"][3]
    brings_document = "nodes" in str(body)
    if brings_document:
        assert extra_data["extra_pnginfo"]["workflow"] == workflow()
    assert ("report" in answer) == (brings_document and "class_type" not in str(body))


async def test_a_form_brings_a_file_and_the_fields_of_a_body(client: Client) -> None:
    for content in (
        with_texts(workflow=workflow()),
        json.dumps(workflow()).encode(),
        json.dumps(SHOWN).encode(),
    ):
        fields = {"number": "-3", "client_id": "me", "extra_data": '{"mine": 1}'}
        answer = await (await client.post("/api/prompt?wait=true", data=form(content, **fields))).json()
        assert answer["number"] == -3
        extra_data = (await item_of(client, answer))["prompt"][3]
        assert (extra_data["client_id"], extra_data["mine"]) == ("me", 1)


@pytest.mark.parametrize(
    ("body", "type", "reason"),
    [
        ({"data": png()}, "invalid_prompt", "carries no workflow"),
        ({"data": png()[:20]}, "invalid_prompt", "cannot be read"),
        ({"data": b"RIFF\0\0\0\0WEBP"}, "invalid_prompt", "cannot be read"),
        ({"data": form(b"{broken")}, "invalid_json", "not valid JSON"),
        ({"data": form(b"{}", extra_data="{broken")}, "invalid_prompt", "extra_data should be JSON"),
        ({"data": form(b"{}", number="soon")}, "invalid_prompt", "wrong values"),
        ({"json": {"prompt": {"1": {}}, "number": "1e999"}}, "invalid_prompt", "wrong values"),
        ({"data": b'{"number": 1e999}'}, "invalid_json", "not valid JSON"),
        ({"json": workflow(kind="Absent")}, "missing_node_type", "Absent"),
        ({"json": {"nodes": [], "links": []}}, "prompt_no_outputs", "no outputs"),
    ],
)
async def test_what_carries_no_sound_graph_is_a_400_that_says_why(
    client: Client, body: dict[str, Any], type: str, reason: str
) -> None:
    response = await client.post("/prompt", **body)
    answer = await response.json()
    assert (response.status, answer["error"]["type"]) == (400, type)
    assert reason in answer["error"]["message"]


async def test_a_form_without_one_file_is_refused(client: Client) -> None:
    made = FormData()
    made.add_field("prompt", "x", content_type="text/plain")
    assert (await client.post("/prompt", data=made)).status == 400


async def test_converting_gives_the_prompt_and_what_was_odd(client: Client) -> None:
    answer = await (await client.post("/api/convert", json=workflow("again"))).json()
    inputs = {id: (node["class_type"], node["inputs"]) for id, node in answer["prompt"].items()}
    assert inputs == {"1": ("Source", {"text": "again"}), "2": ("Show", {"text": ["1", 0]})}
    assert answer["report"]["missing_types"] == {}
    missing = await (await client.post("/convert", json=workflow(kind="Absent"))).json()
    assert missing["report"]["missing_types"] == {"Absent": ["1"]}
    same = await (await client.post("/convert", json={"prompt": SHOWN})).json()
    assert same["prompt"] == SHOWN
    nothing = await client.post("/convert", json={})
    assert (nothing.status, (await nothing.json())["error"]["type"]) == (400, "no_prompt")


async def test_a_subgraph_that_contains_itself_is_refused(client: Client) -> None:
    inside = {"id": "s", "name": "s", "nodes": [{"id": 5, "type": "s"}], "links": []}
    endless = {"nodes": [{"id": 1, "type": "s"}], "links": [], "definitions": {"subgraphs": [inside]}}
    response = await client.post("/prompt", json=endless)
    assert (response.status, (await response.json())["error"]["type"]) == (400, "invalid_workflow")


async def test_whoever_waits_too_briefly_gets_the_id_and_may_ask_later(client: Client, gate: Gate) -> None:
    held = {"prompt": graph(("Hold", {"text": "x"}), ("Show", {"text": ["1", 0]}))}
    response = await client.post("/prompt?wait=true&timeout=0.05", json=held)
    answer = await response.json()
    assert (response.status, answer["status"]) == (202, "in_progress")
    gate.opened.set()
    again = await client.post("/prompt?wait=true", json={**held, "prompt_id": answer["prompt_id"]})
    assert (await again.json())["outputs"] == {"2": {"text": ["x"]}}


async def post_and_wait(client: Client, body: dict[str, Any]) -> Any:
    async with client.post("/prompt?wait=1", json=body) as answer:
        return await answer.json()


async def test_a_wait_tells_of_failures_and_cancellations(client: Client) -> None:
    failing = {"prompt": graph(("Fail", {"text": "x"}), ("Show", {"text": ["1", 0]}))}
    answer = await post_and_wait(client, failing)
    assert (answer["status"], answer["execution_error"]["node_id"]) == ("failed", "1")
    held = graph(("Hold", {"text": "x"}), ("Show", {"text": ["1", 0]}))
    _, running = await post(client, held)
    again = {"prompt": held, "prompt_id": running["prompt_id"]}
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(post_and_wait(client, again))
        while running["prompt_id"] not in client.app[JOBS]._ends:
            await asyncio.sleep(0.01)
        assert (await client.post(f"/api/jobs/{running['prompt_id']}/cancel")).status == 200
    assert waiting.result()["status"] == "cancelled"


@pytest.mark.parametrize("timeout", ["soon", "-1", "nan", "inf"])
async def test_a_timeout_that_is_none_is_refused(client: Client, timeout: str) -> None:
    response = await client.post(f"/prompt?wait=1&timeout={timeout}", json={"prompt": SHOWN})
    assert response.status == 400


async def test_values_with_a_control_move_on_when_asked(client: Client) -> None:
    control = {"id": 1, "type": "PrimitiveNode", "widgets_values": [7, "increment"]}
    width = {"name": "width", "type": "INT", "widget": {"name": "width"}, "link": 1}
    made = {"id": 2, "type": "Picture", "inputs": [width], "widgets_values": [1, "p"]}
    body = {"nodes": [control, made], "links": [[1, 1, 0, 2, 0, "INT"]]}
    for query, expected in (("", 7), ("?advance_seeds=true", 8)):
        answer = await (await client.post(f"/convert{query}", json=body)).json()
        assert answer["prompt"]["2"]["inputs"]["width"] == expected
    ran = await (await client.post("/prompt?advance_seeds=true&wait=true", json=body)).json()
    entry = (await (await client.get(f"/history/{ran['prompt_id']}")).json())[ran["prompt_id"]]
    assert entry["prompt"][2]["2"]["inputs"]["width"] == 8
