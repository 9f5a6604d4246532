import asyncio
import json
import socket
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest

from app import ws
from app.keys import BUS
from tests.cpu.server.small_nodes import Gate
from tests.cpu.server.talk import SHOWN, Client, Listen, graph, post


async def test_eight_clients_at_once_get_exactly_their_own_messages_in_order(
    client: Client, listen: Listen
) -> None:
    async def one(name: str) -> None:
        listener = await listen(name)
        for turn in range(3):
            text = f"{name}-{turn}"
            prompt = graph(
                ("Slow", {"label": text, "steps": 4, "pause_s": 0.0}),
                ("Source", {"text": text}),
                ("Show", {"text": ["2", 0]}),
            )
            prompt["4"] = {"class_type": "Show", "inputs": {"text": ["1", 0]}}
            _, answer = await post(client, prompt, client_id=name)
            messages = await listener.until_end(answer["prompt_id"])
            owned = [(kind, data) for kind, data in messages if kind not in ("status", "binary")]
            assert {data["prompt_id"] for _, data in owned} == {answer["prompt_id"]}
            kinds = [kind for kind, _ in owned]
            assert kinds[:2] == ["execution_start", "execution_cached"]
            assert kinds[-2:] == ["execution_success", "executing"]
            shown = {data["node"]: data["output"] for kind, data in owned if kind == "executed"}
            assert shown == {"3": {"text": [text]}, "4": {"text": ["done"]}}
            steps = [data["value"] for kind, data in owned if kind == "progress"]
            assert steps == sorted(steps)
            assert steps[-1] == 4

    await asyncio.gather(*(one(f"client{number}") for number in range(8)))
    history = await (await client.get("/history")).json()
    assert len(history) == 24


async def test_the_first_message_gives_a_client_its_id(client: Client) -> None:
    async with client.ws_connect("/ws") as connection:
        first = json.loads((await connection.receive()).data)
        assert first["type"] == "status"
        assert len(first["data"]["sid"]) == 32
        assert first["data"]["status"] == {"exec_info": {"queue_remaining": 0}}


async def test_only_the_first_message_can_be_the_handshake(client: Client) -> None:
    async with client.ws_connect("/ws?clientId=me") as connection:
        await connection.receive()
        await connection.send_str("{garbage")
        await connection.send_bytes(b"\x00")
        await connection.send_json({"type": "feature_flags", "data": {"treadle_text": True}})
        await post(client, SHOWN)
        kind = json.loads((await connection.receive()).data)["type"]
        assert kind == "status"


async def test_the_handshake_is_answered_with_what_features_says(client: Client) -> None:
    async with client.ws_connect("/ws") as connection:
        await connection.receive()
        await connection.send_json({"type": "feature_flags", "data": {}})
        answer = json.loads((await connection.receive()).data)
    assert answer == {"type": "feature_flags", "data": await (await client.get("/api/features")).json()}
    assert answer["data"]["supports_preview_metadata"] is True
    assert answer["data"]["max_upload_size"] == 104857600


async def test_a_client_that_comes_back_hears_where_its_prompt_is(
    client: Client, listen: Listen, gate: Gate
) -> None:
    listener = await listen("me")
    _, answer = await post(
        client, graph(("Hold", {"text": "through"}), ("Show", {"text": ["1", 0]})), client_id="me"
    )
    while (await listener.message())[0] != "executing":
        pass
    await listener.socket.close()
    back = await listen("me")
    assert await back.message() == ("executing", {"node": "1"})
    gate.opened.set()
    messages = await back.until_end(answer["prompt_id"])
    assert "execution_success" in [kind for kind, _ in messages]


async def counted(
    client: Client, since: int, until: Callable[[dict[str, Any]], bool]
) -> list[dict[str, Any]]:
    """What a client that counts events hears after the greeting, without the queue's changes."""
    async with client.ws_connect("/ws", params={"clientId": "me", "since": since}) as socket:
        assert (await socket.receive_json(timeout=10))["type"] == "status"
        heard: list[dict[str, Any]] = []
        while not heard or not until(heard[-1]):
            message = await socket.receive_json(timeout=10)
            heard += [message] if message["type"] != "status" else []
        return heard


async def test_a_client_that_counts_events_gets_what_it_missed_and_nothing_twice(
    client: Client, gate: Gate, listen: Listen
) -> None:
    held = graph(("Source", {"text": "x"}), ("Hold", {"text": ["1", 0]}), ("Show", {"text": ["2", 0]}))
    listening = asyncio.create_task(counted(client, 0, lambda message: message["data"].get("node") == "2"))
    while "me" not in client.app[BUS]._subscriptions:
        await asyncio.sleep(0.01)
    _, answer = await post(client, held, client_id="me")
    before = await listening
    gate.opened.set()
    while not await (await client.get(f"/history/{answer['prompt_id']}")).json():
        await asyncio.sleep(0.01)
    end = {"node": None, "prompt_id": answer["prompt_id"]}
    after = await counted(client, before[-1]["seq"], lambda message: message["data"] == end)
    assert after[0]["data"]["nodes"].keys() == {"1", "2"}, "progress is cumulative again"

    numbers = [message["seq"] for message in before + after if "seq" in message]
    assert numbers == sorted(set(numbers))
    whole = await counted(client, 0, lambda message: message["data"] == end)
    assert [message["type"] for message in before + after] == [message["type"] for message in whole]
    last_seen = await counted(client, 1, lambda message: True)
    assert last_seen == [{"type": "treadle.missed", "data": {"since": 1}}]


async def test_a_number_that_is_none_is_refused(client: Client) -> None:
    assert (await client.get("/ws?since=soon")).status == 400


async def test_a_second_connection_of_an_id_takes_over_and_the_first_is_closed(
    client: Client, listen: Listen
) -> None:
    older = await listen("me")
    newer = await listen("me")
    closing = await asyncio.wait_for(older.socket.receive(), 5)
    assert closing.type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSING, aiohttp.WSMsgType.CLOSED)
    _, answer = await post(client, SHOWN, client_id="me")
    await newer.until_end(answer["prompt_id"])


async def test_a_client_that_never_reads_slows_nobody_and_is_dropped(
    client: Client, listen: Listen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ws, "SEND_TIMEOUT_S", 0.5)
    lazy = await connect_and_never_read(client, "lazy")
    keen = await listen("keen")
    for number in range(40):
        await post(client, graph(("Show", {"text": f"{number}" * 200_000})), client_id="lazy")
    _, answer = await post(client, SHOWN, client_id="keen")
    await asyncio.wait_for(keen.until_end(answer["prompt_id"]), 10)
    bus = client.app[BUS]
    for _ in range(500):
        if "lazy" not in bus._subscriptions:
            break
        await asyncio.sleep(0.01)
    assert set(bus._subscriptions) == {"keen"}
    lazy.close()


async def test_a_client_that_answers_no_ping_is_kept_and_a_silent_line_is_pinged(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ws, "PING_S", 0.05)
    async with client.ws_connect("/ws?clientId=me", autoping=False) as connection:
        kinds = [(await connection.receive(5)).type for _ in range(5)]
        assert kinds == [aiohttp.WSMsgType.TEXT, *[aiohttp.WSMsgType.PING] * 4]
        _, answer = await post(client, SHOWN, client_id="me")
        text = ""
        while answer["prompt_id"] not in text or '"node": null' not in text:
            received = await connection.receive(5)
            assert received.type in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.PING)
            text = received.data if received.type is aiohttp.WSMsgType.TEXT else ""


async def connect_and_never_read(client: Client, client_id: str) -> socket.socket:
    """With a small window, so that what the server sends soon has nowhere to go."""
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    raw.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(raw, (client.host, client.port))
    request = (
        f"GET /ws?clientId={client_id} HTTP/1.1\r\nHost: {client.host}:{client.port}\r\n"
        "Upgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    await loop.sock_sendall(raw, request.encode())
    while client_id not in client.app[BUS]._subscriptions:
        await asyncio.sleep(0.01)
    return raw


async def test_a_prompt_without_an_owner_is_kept_in_history_only(client: Client, listen: Listen) -> None:
    listener = await listen("me")
    _, answer = await post(client, SHOWN)
    seen: list[Any] = []
    while (await (await client.get("/prompt")).json())["exec_info"]["queue_remaining"]:
        await asyncio.sleep(0.01)
    _, own = await post(client, graph(("Show", {"text": "own"})), client_id="me")
    seen = await listener.until_end(own["prompt_id"])
    assert {data.get("prompt_id") for kind, data in seen if kind != "status"} == {own["prompt_id"]}
    assert answer["prompt_id"] in await (await client.get("/history")).json()
