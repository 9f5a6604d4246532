"""What an editor reads beside nodes: translations, subgraphs and replacements of packs, and the log."""

import asyncio
import hashlib
import json
import logging
import sys
from pathlib import Path

from app.compat.host import HOST
from app.keys import LOGS, STARTUP
from app.logs import MAX_LINES, LogLines, Tee
from nodes.packs import Pack
from tests.cpu.server.talk import Client, Listen


async def add_pack(client: Client, path: Path, files: dict[str, str]) -> None:
    def write() -> None:
        for name, text in files.items():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_text(text)

    await asyncio.to_thread(write)
    (await client.app[STARTUP].ready()).registry.packs.append(Pack(path.name, path))


async def test_translations_of_all_packs_are_merged_by_language(client: Client, tmp_path: Path) -> None:
    one = {"locales/de/main.json": '{"greeting": "Hallo", "menu": {"open": "Öffnen"}}'}
    await add_pack(client, tmp_path / "one", {**one, "locales/de/nodeDefs.json": '{"A": {"name": "Eins"}}'})
    two = {"locales/de/main.json": '{"menu": {"close": "Schließen"}}', "locales/fr/settings.json": "{broken"}
    await add_pack(client, tmp_path / "two", {**two, "locales/de/nodeDefs.json": '{"B": {"name": "Zwei"}}'})
    assert await (await client.get("/api/i18n")).json() == {
        "de": {
            "greeting": "Hallo",
            "menu": {"open": "Öffnen", "close": "Schließen"},
            "nodeDefs": {"A": {"name": "Eins"}, "B": {"name": "Zwei"}},
            "commands": {},
            "settings": {},
        },
        "fr": {"nodeDefs": {}, "commands": {}, "settings": {}},
    }


async def test_subgraphs_of_packs_are_listed_and_read_one_by_one(client: Client, tmp_path: Path) -> None:
    pack = tmp_path / "drawers"
    await add_pack(client, pack, {"subgraphs/upscale.json": '{"nodes": []}'})
    id = hashlib.sha256(f"custom_node{pack / 'subgraphs' / 'upscale.json'}".encode()).hexdigest()
    entry = {"source": "custom_node", "name": "upscale", "info": {"node_pack": "drawers"}}
    assert await (await client.get("/global_subgraphs")).json() == {id: entry}
    assert await (await client.get(f"/global_subgraphs/{id}")).json() == {**entry, "data": '{"nodes": []}'}
    unknown = await client.get("/global_subgraphs/nobody")
    assert (unknown.status, await unknown.json()) == (200, None)


async def test_replacements_are_those_that_packs_declared(client: Client) -> None:
    new = {"new_node_id": "New", "old_node_id": "Old"}
    client.app[HOST].replacements["Old"] = [new]
    assert await (await client.get("/node_replacements")).json() == {"Old": [new]}
    assert (await (await client.get("/features")).json())["node_replacements"] is True


async def test_assets_are_refused_in_the_words_of_their_clients(client: Client) -> None:
    assert (await (await client.get("/features")).json())["assets"] is False
    for method, path in (("GET", "/api/assets"), ("POST", "/api/assets/from-hash"), ("GET", "/api/tags")):
        answer = await client.request(method, path)
        assert (answer.status, (await answer.json())["error"]["code"]) == (503, "SERVICE_DISABLED")
    assert (await client.get("/assets/absent.js")).status == 404, "the editor's own files are not meant"


async def test_the_log_keeps_the_last_lines_and_tells_those_who_subscribed(
    client: Client, listen: Listen
) -> None:
    logs = client.app[LOGS]
    listener, other = await listen("me"), await listen("other")
    answer = await client.patch("/internal/logs/subscribe", json={"clientId": "me", "enabled": True})
    assert answer.status == 200
    speaker = logging.getLogger("a pack")
    speaker.addHandler(LogLines(logs))
    speaker.warning("said %s", "once")
    kind, data = await listener.message()
    assert (kind, [entry["m"] for entry in data["entries"]]) == ("logs", ["said once\n"])
    await client.patch("/internal/logs/subscribe", json={"clientId": "me", "enabled": False})
    print("printed", file=Tee(sys.stdout, logs))
    for number in range(MAX_LINES):
        logs.add(f"line {number}\n")
    raw = await (await client.get("/internal/logs/raw")).json()
    assert len(raw["entries"]) == MAX_LINES
    assert raw["entries"][-1]["m"] == f"line {MAX_LINES - 1}\n"
    assert raw["entries"][0]["m"] == "line 0\n"
    assert "line 7\n" in json.loads(await (await client.get("/internal/logs")).text())
    await client.post("/queue", json={"clear": True})
    assert [(await one.message())[0] for one in (listener, other)] == ["status", "status"]
    assert (await client.patch("/internal/logs/subscribe", json={"enabled": True})).status == 400
