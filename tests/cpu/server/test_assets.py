"""Files as assets, over HTTP, as an editor's panels and upload dialogs ask for them."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import FormData

from app.config import Config, Directories
from app.keys import CATALOG
from tests.cpu.server.talk import Client, Listen, graph, png, post


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return Config(directories=Directories.below(tmp_path), assets=True)


async def seeded(client: Client) -> None:
    await client.app[CATALOG].scan.ended()
    answer = await client.post("/api/assets/seed?wait=true", json={"roots": ["input", "output"]})
    assert (answer.status, (await answer.json())["status"]) == (200, "completed")


async def upload(
    client: Client, content: bytes, tags: Iterable[str], name: str = "a.bin", user: str = "", **fields: str
) -> tuple[int, Any]:
    data = FormData({"tags": json.dumps(list(tags)), **fields})
    data.add_field("file", content, filename=name, content_type="application/octet-stream")
    answer = await client.post("/api/assets", data=data, headers={"comfy-user": user})
    return answer.status, await answer.json()


async def listed(client: Client, **query: str) -> list[str]:
    answer = await client.get("/api/assets", params=query)
    assert answer.status == 200, await answer.text()
    return [asset["name"] for asset in (await answer.json())["assets"]]


async def fault(client: Client, method: str, path: str, **more: Any) -> tuple[int, str]:
    answer = await client.request(method, path, **more)
    return answer.status, (await answer.json())["error"]["code"]


async def test_the_features_say_that_there_are_assets(client: Client, listen: Listen) -> None:
    features = await (await client.get("/features")).json()
    assert (features["assets"], features["supports_model_type_tags"]) == (True, True)


async def test_an_upload_is_stored_under_its_hash_and_comes_back(client: Client, tmp_path: Path) -> None:
    status, asset = await upload(client, png(), ["input", "mine"], "shot.png", user_metadata='{"a": 1}')
    assert (status, asset["created_new"], asset["hash"]) == (201, True, asset["asset_hash"])
    assert asset["tags"] == ["input", "mine", "uploaded"]
    stored = f"{asset['hash'].removeprefix('blake3:')}.png"
    assert (tmp_path / "input" / stored).read_bytes() == png()
    assert asset["metadata"] == {"kind": "image", "width": 6, "height": 4}
    assert asset["user_metadata"] == {"a": 1, "filename": stored}
    shown = await (await client.get(f"/api/assets/{asset['id']}")).json()
    assert {**shown, "created_new": True} == asset
    content = await client.get(f"/api/assets/{asset['id']}/content?disposition=inline")
    assert (await content.read(), content.headers["Content-Disposition"]) == (
        png(),
        'inline; filename="shot.png"',
    )
    for path in (asset["preview_url"], f"/view?filename={asset['hash']}"):
        assert await (await client.get(path)).read() == png()


async def test_known_content_gets_one_more_name_without_a_destination(client: Client, tmp_path: Path) -> None:
    _, first = await upload(client, b"same", ["input"])
    status, second = await upload(client, b"same", ["whatever"], "b.bin")
    assert (status, second["created_new"], second["hash"]) == (200, False, first["hash"])
    assert second["id"] != first["id"]
    assert "loader_path" not in second
    body = {"hash": first["hash"], "tags": ["third"], "name": "c.bin"}
    answer = await client.post("/api/assets/from-hash", json=body)
    assert (answer.status, (await answer.json())["created_new"]) == (201, False)
    assert len(list((tmp_path / "input").iterdir())) == 1
    assert (await client.head(f"/api/assets/hash/{first['hash']}")).status == 200
    assert await listed(client, hash=first["hash"], sort="name", order="asc") == ["a.bin", "b.bin", "c.bin"]


async def test_faulty_uploads_are_told_apart(client: Client) -> None:
    other = f"blake3:{'0' * 64}"
    assert (await upload(client, b"a", ["input"], hash=other))[1]["error"]["code"] == "HASH_MISMATCH"
    assert (await upload(client, b"a", ["input"], hash="md5:0"))[1]["error"]["code"] == "INVALID_HASH"
    assert (await upload(client, b"", ["input"]))[1]["error"]["code"] == "EMPTY_UPLOAD"
    assert (await upload(client, b"a", ["nowhere"]))[1]["error"]["code"] == "INVALID_BODY"
    assert (await upload(client, b"a", ["input"], user_metadata="{"))[1]["error"]["code"] == "INVALID_BODY"
    assert (await upload(client, b"a", ["input"], id="x"))[1]["error"]["code"] == "UNSUPPORTED_FIELD"
    assert (await upload(client, b"a", ["input"], mime_type="a\nb"))[1]["error"]["code"] == "INVALID_BODY"
    assert await fault(client, "POST", "/api/assets", json={}) == (415, "UNSUPPORTED_MEDIA_TYPE")
    body = {"hash": other, "tags": ["a"]}
    assert await fault(client, "POST", "/api/assets/from-hash", json=body) == (404, "ASSET_NOT_FOUND")
    assert await fault(client, "POST", "/api/assets/from-hash", data=b"{") == (400, "INVALID_JSON")
    assert await fault(client, "PUT", "/api/assets/x", json={}) == (400, "INVALID_BODY")
    assert await fault(client, "GET", "/api/assets/x") == (404, "ASSET_NOT_FOUND")


async def test_pages_follow_one_another_by_cursor(client: Client) -> None:
    for i in range(5):
        await upload(client, bytes([i]) * (i + 1), ["input", f"tag{i % 2}"], f"{i}.bin")
    seen, query = [], {"sort": "size", "order": "desc", "limit": "2"}
    while True:
        page = await (await client.get("/api/assets", params=query)).json()
        assert page["total"] == 5
        seen += [asset["name"] for asset in page["assets"]]
        assert page["has_more"] is ("next_cursor" in page)
        if not page["has_more"]:
            break
        query["after"] = page["next_cursor"]
    assert seen == ["4.bin", "3.bin", "2.bin", "1.bin", "0.bin"]
    assert sorted(await listed(client, tags_all="input", tags_none="tag0")) == ["1.bin", "3.bin"]
    assert len(await listed(client, tags_any="tag0,tag1")) == 5
    refined = await (await client.get("/api/assets/tags/refine?name_contains=0.BIN")).json()
    assert refined == {"tag_counts": {"input": 1, "tag0": 1, "uploaded": 1}}
    tags = await (await client.get("/api/tags?prefix=tag&include_zero=false&limit=1")).json()
    assert tags == {"tags": [{"name": "tag0", "count": 3}], "total": 2, "has_more": True}


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("limit=0", "INVALID_QUERY"),
        ("limit=501", "INVALID_QUERY"),
        ("offset=-1", "INVALID_QUERY"),
        ("sort=colour", "INVALID_QUERY"),
        ("metadata_filter=[1]", "INVALID_QUERY"),
        ("after=nonsense", "INVALID_CURSOR"),
        ("tags_all=a&tags_none=a", "INVALID_TAG_FILTER"),
        ("tags_all=a&include_tags=b", "INVALID_TAG_FILTER"),
        (f"tags_any={','.join(map(str, range(101)))}", "INVALID_TAG_FILTER"),
    ],
)
async def test_wrong_queries_are_refused(client: Client, query: str, code: str) -> None:
    assert await fault(client, "GET", f"/api/assets?{query}") == (400, code)


async def test_metadata_are_asked_for_by_value_and_type(client: Client) -> None:
    said = {"a": {"epoch": 1, "flags": ["x", "y"]}, "b": {"epoch": True, "maybe": None}}
    for name, metadata in said.items():
        await upload(client, name.encode(), ["input"], name, user_metadata=json.dumps(metadata))

    async def found(**asked: Any) -> list[str]:
        return await listed(client, metadata_filter=json.dumps(asked), sort="name", order="asc")

    assert (await found(epoch=1), await found(epoch=True), await found(epoch="1")) == (["a"], ["b"], [])
    assert (await found(flags="y"), await found(flags=["z", "x"]), await found(flags="z")) == (
        ["a"],
        ["a"],
        [],
    )
    assert (await found(maybe=None), await found(absent=[None, 1])) == (["a", "b"], ["a", "b"])


async def test_names_tags_and_previews_can_be_changed(client: Client) -> None:
    _, picture = await upload(client, png(), ["input"], "thumb.png")
    _, asset = await upload(client, b"weights", ["models", "model_type:vae"], "w.safetensors")
    assert (asset["loader_path"], "preview_url" in asset) == (f"{asset['hash'][7:]}.safetensors", False)
    path = f"/api/assets/{asset['id']}"
    changes = {"name": "new", "preview_id": picture["id"], "user_metadata": {"filename": "mine", "b": 2}}
    changed = await (await client.put(path, json=changes)).json()
    assert (changed["name"], changed["preview_url"]) == ("new", picture["preview_url"])
    assert changed["user_metadata"] == {**asset["user_metadata"], "b": 2}
    assert await fault(client, "PUT", path, json={"preview_id": "x"}) == (404, "ASSET_NOT_FOUND")
    added = await (await client.post(f"{path}/tags", json={"tags": ["z", "z ", "models"]})).json()
    assert (added["added"], added["already_present"]) == (["z"], ["models"])
    removed = await (await client.delete(f"{path}/tags", json={"tags": ["z", "y"]})).json()
    assert (removed["removed"], removed["not_present"], "z" in removed["total_tags"]) == (["z"], ["y"], False)
    assert await fault(client, "POST", f"{path}/tags", json={"tags": [1]}) == (400, "INVALID_BODY")
    assert (await client.delete(f"/api/assets/{picture['id']}")).status == 204
    assert "preview_url" not in await (await client.get(path)).json()


async def test_pages_and_scripts_are_never_shown_from_here(client: Client) -> None:
    for name, mime_type in (("evil.svg", ""), ("evil.txt", "text/html")):
        _, asset = await upload(client, name.encode(), ["input"], name, mime_type=mime_type)
        content = await client.get(f"/api/assets/{asset['id']}/content?disposition=inline")
        assert content.content_type == "application/octet-stream"
        assert content.headers["Content-Disposition"].startswith("attachment")
        assert content.headers["X-Content-Type-Options"] == "nosniff"


async def test_a_file_that_is_gone_is_missed_until_it_is_back(client: Client, tmp_path: Path) -> None:
    _, asset = await upload(client, b"content", ["input"])
    path, tags = tmp_path / "input" / asset["loader_path"], f"/api/assets/{asset['id']}"
    path.rename(tmp_path / "aside")
    assert await fault(client, "GET", f"{tags}/content") == (404, "FILE_NOT_FOUND")
    await seeded(client)
    assert "missing" in (await (await client.get(tags)).json())["tags"]
    assert (await client.head(f"/api/assets/hash/{asset['hash']}")).status == 404
    (tmp_path / "aside").rename(path)
    await seeded(client)
    assert "missing" not in (await (await client.get(tags)).json())["tags"]
    path.unlink()
    again = await upload(client, b"content", ["input"])
    assert (again[0], again[1]["created_new"], path.read_bytes()) == (200, False, b"content")


async def test_a_scan_can_be_asked_about_and_only_one_runs(client: Client, listen: Listen) -> None:
    await seeded(client)
    listener = await listen("me")
    assert (await (await client.post("/api/assets/seed")).json()) == {"status": "started"}
    assert await fault(client, "POST", "/api/assets/seed") == (409, "SCAN_RUNNING")
    assert await fault(client, "POST", "/api/assets/prune") == (409, "SCAN_RUNNING")
    kinds = []
    while not kinds or kinds[-1] != "assets.seed.completed":
        kinds.append((await listener.message())[0])
    assert kinds[0] == "assets.seed.started"
    status = await (await client.get("/api/assets/seed/status")).json()
    assert (status["state"], status["errors"], status["progress"]["created"]) == ("IDLE", [], 0)
    assert await (await client.post("/api/assets/seed/cancel")).json() == {"status": "idle"}
    assert await (await client.post("/api/assets/prune")).json() == {"status": "completed", "marked": 0}


async def test_a_picture_from_the_canvas_becomes_an_asset(client: Client) -> None:
    data = FormData({"subfolder": "pasted"})
    data.add_field("image", png(), filename="a.png", content_type="image/png")
    stored = await (await client.post("/upload/image", data=data)).json()
    assert (stored["name"], stored["asset"]["tags"]) == ("a.png", ["input", "pasted", "uploaded"])
    assert (await client.head(f"/api/assets/hash/{stored['asset']['asset_hash']}")).status == 200


async def test_what_a_prompt_saves_is_an_asset_of_its_job(client: Client, listen: Listen) -> None:
    listener = await listen("me")
    _, answer = await post(client, graph(("Picture", {"width": 8, "prefix": "pic"})), client_id="me")
    messages = await listener.until_end(answer["prompt_id"])
    (shown,) = [data["output"] for kind, data in messages if kind == "executed"]
    (picture,) = shown["images"]
    asset = await (await client.get(f"/api/assets/{picture['id']}")).json()
    assert (asset["name"], asset["job_id"]) == (picture["filename"], answer["prompt_id"])
    assert (asset["tags"], "hash" in asset) == (["output"], False)
    of_job = await (await client.get(f"/jobs/{answer['prompt_id']}/assets")).json()
    assert ([one["id"] for one in of_job["assets"]], of_job["total"]) == ([picture["id"]], 1)
    assert (await client.get("/jobs/absent/assets")).status == 404


class TestWithSeveralUsers:
    @pytest.fixture
    def config(self, tmp_path: Path) -> Config:
        return Config(directories=Directories.below(tmp_path), assets=True, multi_user=True)

    async def test_each_sees_their_own_uploads(self, client: Client) -> None:
        ann, bob = [
            await (await client.post("/users", json={"username": one})).json() for one in ("ann", "bob")
        ]
        _, asset = await upload(client, b"ann's", ["input"], user=ann)
        path = f"/api/assets/{asset['id']}"
        for user, status in ((ann, 200), (bob, 404), ("nobody", 401)):
            assert (await client.get(path, headers={"comfy-user": user})).status == status
        assert (await client.delete(path, headers={"comfy-user": bob})).status == 404
