from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from app.config import Config
from tests.cpu.server.talk import Client


async def test_a_single_user_is_told_without_names(client: Client) -> None:
    assert await (await client.get("/api/users")).json() == {"storage": "server", "migrated": True}


async def test_settings_are_merged_and_kept(client: Client, config: Config) -> None:
    assert await (await client.get("/settings")).json() == {}
    assert (await client.post("/settings", json={"a": 1, "b": {"c": 2}})).status == 200
    assert (await client.post("/settings/Comfy.Theme", json="dark")).status == 200
    assert await (await client.get("/settings")).json() == {"a": 1, "b": {"c": 2}, "Comfy.Theme": "dark"}
    assert await (await client.get("/settings/Comfy.Theme")).json() == "dark"
    assert await (await client.get("/settings/unknown")).json() is None
    assert (config.directories.user / "default" / "comfy.settings.json").is_file()
    for wrong in (b"[1]", b"{oops"):
        assert (await client.post("/settings", data=wrong)).status == 400


async def write(client: Client, path: str, content: bytes, query: str = "") -> tuple[int, Any]:
    answer = await client.post(f"/userdata/{quote(path, safe='')}{query}", data=content)
    return answer.status, await answer.json()


async def test_a_workflow_is_written_read_moved_and_deleted(client: Client) -> None:
    assert await write(client, "workflows/a b.json", b"{}") == (200, "workflows/a b.json")
    url = f"/api/userdata/{quote('workflows/a b.json', safe='')}"
    assert await (await client.get(url)).read() == b"{}"
    status, answer = await write(client, "workflows/a b.json", b"{1}", "?overwrite=false")
    assert (status, answer["error"]["message"]) == (409, "File already exists")
    moved = await client.post(f"{url}/move/{quote('workflows/deep/c.json', safe='')}?full_info=true")
    assert (await moved.json())["path"] == "workflows/deep/c.json"
    assert (await client.get(url)).status == 404
    again = f"/userdata/{quote('workflows/deep/c.json', safe='')}"
    assert (await client.delete(again)).status == 204
    assert (await client.delete(again)).status == 404


async def test_files_are_listed_in_each_form(client: Client) -> None:
    await write(client, "workflows/a.json", b"12")
    await write(client, "workflows/deep/b.json", b"345")
    listed = "/userdata?dir=workflows"
    assert await (await client.get(listed)).json() == ["a.json"]
    assert await (await client.get(f"{listed}&recurse=true")).json() == ["a.json", "deep/b.json"]
    split = await (await client.get(f"{listed}&recurse=true&split=true")).json()
    assert split == [["a.json", "a.json"], ["deep/b.json", "deep", "b.json"]]
    full = await (await client.get(f"{listed}&recurse=true&full_info=true")).json()
    assert [(entry["path"], entry["size"]) for entry in full] == [("a.json", 2), ("deep/b.json", 3)]
    entries = await (await client.get("/v2/userdata?path=workflows")).json()
    assert [(entry["path"], entry["type"]) for entry in entries] == [
        ("workflows/a.json", "file"),
        ("workflows/deep", "directory"),
    ]


@pytest.mark.parametrize(
    ("url", "status"),
    [
        ("/userdata", 400),
        ("/userdata?dir=..%2F..", 403),
        ("/userdata?dir=absent", 404),
        ("/userdata/absent.json", 404),
        ("/userdata/..%2F..%2Fsecret", 403),
        ("/userdata/%2Fetc%2Fpasswd", 403),
        ("/v2/userdata?path=..", 403),
    ],
)
async def test_what_cannot_be_read_has_its_status(client: Client, url: str, status: int) -> None:
    assert (await client.get(url)).status == status


async def test_a_users_stylesheet_is_one_but_other_scripts_are_downloads(client: Client) -> None:
    for name in ("user.css", "page.html"):
        await write(client, name, b"x")
    assert (await client.get("/userdata/user.css")).content_type == "text/css"
    assert (await client.get("/userdata/page.html")).content_type == "application/octet-stream"


class TestSeveralUsers:
    @pytest.fixture
    def config(self, config: Config) -> Config:
        return replace(config, multi_user=True)

    async def test_each_has_settings_of_their_own(self, client: Client) -> None:
        ids = [await (await client.post("/users", json={"username": name})).json() for name in ("ann", "bo")]
        for user_id in ids:
            await client.post("/settings", json={"me": user_id}, headers={"comfy-user": user_id})
        for user_id in ids:
            answer = await client.get("/settings", headers={"comfy-user": user_id})
            assert await answer.json() == {"me": user_id}
        known = await (await client.get("/users")).json()
        assert known == {"storage": "server", "users": dict(zip(ids, ["ann", "bo"]))}

    async def test_names_are_given_once(self, client: Client) -> None:
        await client.post("/users", json={"username": "ann"})
        again = await client.post("/users", json={"username": "ann"})
        assert (again.status, await again.json()) == (400, {"error": "Duplicate username."})
        assert (await client.post("/users", json={"username": " "})).status == 400

    @pytest.mark.parametrize("user_id", ["stranger", "__system", "../default"])
    async def test_a_stranger_is_refused(self, client: Client, user_id: str) -> None:
        assert (await client.get("/settings", headers={"comfy-user": user_id})).status == 401
        assert (await client.get("/userdata?dir=x", headers={"comfy-user": user_id})).status == 401


def test_the_users_folder_is_the_only_one_written(tmp_path: Path) -> None:
    from app.users import Users

    users = Users(tmp_path, multi=False)
    users.change_settings(None, {"a": 1})
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["comfy.settings.json", "default"]
