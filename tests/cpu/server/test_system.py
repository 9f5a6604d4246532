import asyncio
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from app.config import Config
from app.files import Files
from app.metrics import Metrics
from app.server import build_app
from app.startup import Studio
from tests.cpu.server.small_nodes import Gate, IdleDiffusion, IdleRuntime, small_registry
from tests.cpu.server.talk import SHOWN, Client, Listen, post


async def test_every_route_exists_plain_and_below_api(client: Client) -> None:
    for path in (
        "/prompt",
        "/queue",
        "/history",
        "/jobs",
        "/object_info",
        "/models",
        "/models/checkpoints",
        "/embeddings",
        "/extensions",
        "/settings",
        "/users",
        "/features",
        "/system_stats",
        "/i18n",
        "/workflow_templates",
        "/global_subgraphs",
        "/node_replacements",
        "/examples",
        "/experiment/models",
        "/experiment/models/checkpoints",
        "/metrics",
    ):
        for prefix in ("", "/api"):
            answer = await client.get(prefix + path)
            assert answer.status == 200, prefix + path


async def test_nodes_are_described_all_or_one(client: Client) -> None:
    every = await (await client.get("/object_info")).json()
    assert set(every) >= {"Source", "Show", "Slow"}
    assert every["Show"]["output_node"] is True
    one = await (await client.get("/api/object_info/Show")).json()
    assert one == {"Show": every["Show"]}
    assert await (await client.get("/object_info/Nobody")).json() == {}


async def test_descriptions_are_sent_again_only_when_they_changed(client: Client, config: Config) -> None:
    first = await client.get("/object_info")
    tag = {"If-None-Match": first.headers["ETag"]}
    assert first.headers["Content-Encoding"] == "gzip"
    same = await client.get("/object_info", headers=tag)
    assert (same.status, await same.read(), same.headers["ETag"]) == (304, b"", first.headers["ETag"])
    weak = await client.get("/object_info", headers={"If-None-Match": f'"other", W/{first.headers["ETag"]}'})
    assert weak.status == 304
    plain = await client.get("/object_info", headers={"Accept-Encoding": "gzip;q=0, br"})
    assert "Content-Encoding" not in plain.headers
    assert await plain.json() == await first.json()
    await asyncio.to_thread(config.directories.input.joinpath("new.txt").write_text, "x")
    changed = await client.get("/object_info", headers=tag)
    assert changed.status == 200
    assert "new.txt" in (await changed.json())["Pick"]["input"]["required"]["name"][0]


async def test_model_folders_are_listed(client: Client, config: Config) -> None:
    loras = config.directories.models / "loras"
    await asyncio.to_thread(loras.mkdir, parents=True)
    await asyncio.to_thread((loras / "a.safetensors").write_bytes, b"\x02\0\0\0\0\0\0\0{}")
    assert (await (await client.get("/models")).json())[:2] == ["checkpoints", "configs"]
    assert await (await client.get("/models/loras")).json() == ["a.safetensors"]
    assert (await (await client.get("/models/checkpoints")).json())[0] == "glyph"
    assert (await client.get("/models/nonsense")).status == 404
    assert (await client.get("/view_metadata/loras?filename=a.safetensors")).status == 404
    assert (await client.get("/view_metadata/loras?filename=../a.safetensors")).status == 403
    described = await (await client.get("/experiment/models/loras")).json()
    assert [(entry["name"], entry["size"]) for entry in described] == [("a.safetensors", 10)]


async def test_metadata_of_safetensors_is_read_from_the_header(client: Client, config: Config) -> None:
    header = b'{"__metadata__":{"ss_title":"x"}}'
    loras = config.directories.models / "loras"
    await asyncio.to_thread(loras.mkdir, parents=True)
    content = len(header).to_bytes(8, "little") + header
    await asyncio.to_thread((loras / "a.safetensors").write_bytes, content)
    answer = await client.get("/view_metadata/loras?filename=a.safetensors")
    assert await answer.json() == {"ss_title": "x"}


async def test_system_stats_have_what_an_editor_reads(client: Client) -> None:
    stats = await (await client.get("/system_stats")).json()
    assert {
        "os",
        "ram_total",
        "ram_free",
        "comfyui_version",
        "python_version",
        "pytorch_version",
        "argv",
    } <= set(stats["system"])
    assert {"name", "type", "index", "vram_total", "vram_free"} <= set(stats["devices"][0])


async def test_output_files_are_listed_newest_first(client: Client) -> None:
    for number in range(2):
        prompt = {"1": {"class_type": "Picture", "inputs": {"width": 8, "prefix": f"p{number}"}}}
        await post(client, prompt)
        while (await (await client.get("/prompt")).json())["exec_info"]["queue_remaining"]:
            await asyncio.sleep(0.01)
    names = await (await client.get("/internal/files/output")).json()
    assert names == ["p1_00001_.png [output]", "p0_00001_.png [output]"]
    assert (await client.get("/internal/files/models")).status == 400
    assert (await client.get("/api/internal/files/output")).status == 404


async def test_figures_count_prompts_by_outcome(client: Client, listen: Listen) -> None:
    listener = await listen("me")
    _, answer = await post(client, SHOWN, client_id="me")
    await listener.until_end(answer["prompt_id"])
    text = await (await client.get("/metrics")).text()
    assert 'treadle_prompts_total{outcome="success"} 1.0' in text
    assert "treadle_queue_length 0.0" in text
    assert "treadle_llm_rows_per_forward_bucket" in text
    assert "treadle_diffusion_forwards_total 0.0" in text
    assert "treadle_llm_prefix_tokens_reused_total 0.0" in text
    assert 'treadle_llm_guesses_total{outcome="right"} 0.0' in text
    assert "treadle_conditioning_cache_hits_total 0.0" in text


async def test_memory_can_be_freed(client: Client) -> None:
    for body in ({"unload_models": True}, {"free_memory": True}, {}):
        assert (await client.post("/free", json=body)).status == 200
    assert (await client.post("/free")).status == 200


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (
            "status=foo",
            "Invalid status value(s): foo. Valid values: pending, in_progress, completed, failed, cancelled",
        ),
        ("sort_by=x", "sort_by must be 'created_at' or 'execution_duration'"),
        ("sort_order=x", "sort_order must be 'asc' or 'desc'"),
        ("limit=0", "limit must be a positive integer"),
        ("limit=x", "limit must be an integer"),
        ("offset=x", "offset must be an integer"),
    ],
)
async def test_wrong_queries_for_jobs_are_answered_in_their_words(
    client: Client, query: str, reason: str
) -> None:
    answer = await client.get(f"/api/jobs?{query}")
    assert (answer.status, await answer.json()) == (400, {"error": reason})


async def test_jobs_show_what_a_run_left(client: Client, listen: Listen) -> None:
    listener = await listen("me")
    prompt = {"1": {"class_type": "Picture", "inputs": {"width": 8, "prefix": "p"}}}
    workflow = {"extra_pnginfo": {"workflow": {"id": "w1"}}}
    _, answer = await post(client, prompt, client_id="me", extra_data=workflow)
    await listener.until_end(answer["prompt_id"])
    listed = await (await client.get("/api/jobs?status=completed&workflow_id=w1")).json()
    (job,) = listed["jobs"]
    assert (job["id"], job["status"], job["outputs_count"]) == (answer["prompt_id"], "completed", 1)
    assert job["preview_output"] == {
        "filename": "p_00001_.png",
        "subfolder": "",
        "type": "output",
        "nodeId": "1",
        "mediaType": "images",
    }
    assert job["execution_end_time"] >= job["execution_start_time"] >= job["create_time"]
    one = await (await client.get(f"/api/jobs/{job['id']}")).json()
    assert one["outputs"] == {
        "1": {"images": [{"filename": "p_00001_.png", "subfolder": "", "type": "output"}]}
    }
    assert one["workflow"]["prompt"] == prompt
    missing = await client.get("/api/jobs/nobody")
    assert (missing.status, await missing.json()) == (404, {"error": "Job not found"})
    wrong = await client.post("/api/jobs/cancel", json={"job_ids": "x"})
    assert (wrong.status, await wrong.json()) == (400, {"error": "job_ids must be a list"})


@pytest.mark.parametrize(
    "query", ["max_items=abc", "max_items=-1", "offset=x", "max_items=99999999999999999999"]
)
async def test_wrong_numbers_for_history_are_a_400(client: Client, query: str) -> None:
    answer = await client.get(f"/history?{query}")
    assert answer.status == 400
    assert (await answer.json())["error"]["message"]


async def test_history_changes_are_a_body(client: Client) -> None:
    assert (await client.post("/history", json={"delete": ["unknown"]})).status == 200
    assert (await client.post("/history", json={"clear": True})).status == 200
    assert (await client.post("/history", data=b"{oops")).status == 400
    assert (await client.post("/queue", json={"delete": "x"})).status == 400


async def test_unknown_paths_and_methods_are_json_errors(client: Client) -> None:
    absent = await client.get("/absent/thing")
    assert (absent.status, (await absent.json())["error"]["type"]) == (404, "not_found")
    wrong = await client.put("/prompt")
    assert (wrong.status, (await wrong.json())["error"]["type"]) == (405, "method_not_allowed")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:99999999"}, 403),
    ],
)
async def test_pages_of_other_sites_are_kept_out(
    client: Client, headers: dict[str, str], status: int
) -> None:
    assert (await client.get("/queue", headers=headers)).status == status


async def test_the_servers_own_page_may_ask(client: Client) -> None:
    origin = f"http://{client.host}:{client.port}"
    assert (await client.get("/queue", headers={"Origin": origin})).status == 200


class TestWithForeignOriginsAllowed:
    @pytest.fixture
    def config(self, config: Config) -> Config:
        return replace(config, cors_origin="http://friend.example", compress_bodies=True)

    async def test_the_answer_names_them(self, client: Client) -> None:
        for answer in (
            await client.get(
                "/queue", headers={"Origin": "http://friend.example", "Sec-Fetch-Site": "cross-site"}
            ),
            await client.options("/prompt"),
            await client.get("/absent/thing"),
        ):
            assert answer.headers["Access-Control-Allow-Origin"] == "http://friend.example"
            assert "PATCH" in answer.headers["Access-Control-Allow-Methods"]

    async def test_json_is_compressed_for_those_who_can_read_it(self, client: Client) -> None:
        answer = await client.get("/object_info", headers={"Accept-Encoding": "gzip"})
        assert answer.headers["Content-Encoding"] == "gzip"
        assert "Show" in await answer.json()


class TestTheEditor:
    @pytest.fixture
    def config(self, config: Config, tmp_path: Path) -> Config:
        root = tmp_path / "dist"
        (root / "assets").mkdir(parents=True)
        (root / "index.html").write_text("<p>editor</p>")
        (root / "assets" / "main-abc.js").write_text("1")
        return replace(config, web_root=root)

    async def test_it_is_served_fresh_and_its_assets_for_ever(self, client: Client) -> None:
        page = await client.get("/")
        assert await page.text() == "<p>editor</p>"
        assert page.headers["Cache-Control"] == "no-store, must-revalidate"
        script = await client.get("/assets/main-abc.js")
        assert "immutable" in script.headers["Cache-Control"]
        assert (await client.get("/assets/other.js")).status == 404
        assert (await client.get("/..%2f..%2fetc/passwd")).status == 403


async def test_without_a_build_the_front_page_says_how_to_make_one(client: Client, config: Config) -> None:
    server = TestServer(build_app(replace(config, web_root=config.directories.user / "absent"), broken))
    async with TestClient(server) as other:
        page = await other.get("/")
        assert page.status == 200
        assert "make web" in await page.text()


def broken(config: Config, files: Files, metrics: Metrics) -> Studio:
    raise ImportError("libtorch is missing")


async def test_a_failed_start_is_told_to_whoever_asks_for_nodes(config: Config) -> None:
    async with TestClient(TestServer(build_app(config, broken))) as client:
        for answer in (
            await client.get("/object_info"),
            await client.post("/prompt", json={"prompt": SHOWN}),
        ):
            assert answer.status == 503
            assert "libtorch is missing" in (await answer.json())["error"]["message"]
        assert (await client.get("/queue")).status == 200


async def test_the_server_answers_while_its_nodes_are_still_loading(config: Config) -> None:
    may_load = threading.Event()

    def slow_load(config: Config, files: Files, metrics: Metrics) -> Studio:
        assert may_load.wait(20)
        return Studio(small_registry(Gate()), IdleRuntime(), IdleDiffusion())  # type: ignore[arg-type]

    async with TestClient(TestServer(build_app(config, slow_load))) as client:
        waiting = asyncio.create_task(client.get("/object_info"))
        assert (await client.get("/system_stats")).status == 200
        await asyncio.sleep(0.05)
        assert not waiting.done()
        may_load.set()
        assert "Show" in await (await waiting).json()


async def test_examples_are_listed_for_our_editor_and_for_others(client: Client) -> None:
    listed = await (await client.get("/examples")).json()
    assert {"text_to_image", "llm_to_image"} <= {example["name"] for example in listed}
    assert all(example["title"] for example in listed)
    workflow = await (await client.get("/examples/text_to_image")).json()
    assert workflow["nodes"]
    templates = await (await client.get("/api/workflow_templates")).json()
    assert templates["Treadle"] == [example["name"] for example in listed]
    same = await client.get("/api/workflow_templates/Treadle/text_to_image.json")
    assert await same.json(content_type=None) == workflow
    for absent in (
        "/examples/nobody",
        "/examples/..%2Fpyproject",
        "/workflow_templates/Treadle/..%2F..%2Fmain.py",
    ):
        assert (await client.get(absent)).status in (403, 404)


async def test_a_pack_that_cannot_describe_a_node_hides_only_that_one(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    from app.keys import STARTUP

    registry = (await client.app[STARTUP].ready()).registry
    honest = registry.object_info

    def moody(id: str, library: Any) -> dict[str, Any]:
        if id == "Slow":
            raise KeyError("no such model folder")
        return honest(id, library)

    monkeypatch.setattr(registry, "object_info", moody)
    every = await (await client.get("/object_info")).json()
    assert "Show" in every
    assert "Slow" not in every
