"""A pack that takes its time, seen by everybody else: more prompts of it than may run at once are waiting."""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path

import pytest

from tests.cpu.compat.conftest import Serve
from tests.cpu.compat.history import shown
from tests.cpu.server.process import Server, finished
from tests.cpu.server.talk import graph, post

SLOW = """
import time

class Slow:
    @classmethod
    def INPUT_TYPES(cls):
        return {{"required": {{"n": ("INT", {{"default": 0}}), "seconds": ("FLOAT", {{"default": 0.0}})}}}}
    RETURN_TYPES = ()
    FUNCTION = "run"
    OUTPUT_NODE = True
    {kind}def run(self, n, seconds):
        time.sleep(seconds)
        return {{"ui": {{"n": [n]}}}}

NODE_CLASS_MAPPINGS = {{"{name}": Slow}}
"""
WHITE = ("EmptyImage", {"width": 8, "height": 4, "batch_size": 1, "color": 0xFFFFFF})


@pytest.mark.parametrize("kind", ["", "async "])
async def test_a_pack_that_blocks_leaves_every_other_prompt_its_place(serve: Serve, kind: str) -> None:
    slow, quick = SLOW.format(name="Slow", kind=kind), SLOW.format(name="Quick", kind="")
    client = await serve({"slow.py": slow, "quick.py": quick})
    blocked = [
        await post(client, graph(("Slow", {"n": n, "seconds": 2.5 if n == 0 else 0.0}))) for n in range(12)
    ]
    began = time.monotonic()
    for nodes in ([("Quick", {"n": 1, "seconds": 0.0})], [WHITE, ("PreviewImage", {"images": ["1", 0]})]):
        _, answer = await post(client, graph(*nodes))
        row = await shown(client, answer["prompt_id"])
        assert row["status"]["status_str"] == "success"
    assert time.monotonic() - began < 2.2, "they waited for the pack that blocks"
    for _, answer in blocked:
        async with asyncio.timeout(10):
            row = await shown(client, answer["prompt_id"])
        assert row["status"]["status_str"] == "success"


WILD = """
import logging, os, sys, threading, time

class Wild:
    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"how": ("STRING", {})}}
    RETURN_TYPES = ()
    FUNCTION = "run"
    OUTPUT_NODE = True
    def run(self, how):
        getattr(self, how)()
        return {"ui": {"did": [how]}}
    def moves(self):
        os.chdir("/")
    def hushes(self):
        logging.disable(logging.CRITICAL)
        logging.getLogger().handlers.clear()
        logging.Logger.info = lambda *args, **kwargs: None
    def shouts(self):
        print("x" * 5_000_000)
        sys.stderr.write("y" * 5_000_000)
    def closes(self):
        sys.stdout = None
    def bursts(self):
        def burst():
            raise SystemExit("in a thread")
        threading.Thread(target=burst).start()
    def spins(self):
        while True:
            pass

NODE_CLASS_MAPPINGS = {"Wild": Wild}
"""


# a whole process with torch in it takes most of a minute to load on a busy machine
@pytest.mark.timeout(300)
def test_a_whole_process_outlives_what_packs_do_to_it_and_stops_when_asked(tmp_path: Path) -> None:
    pack = tmp_path / "custom_nodes" / "wild.py"
    pack.parent.mkdir()
    pack.write_text(WILD)
    server = Server(tmp_path)
    try:
        for how in ("moves", "shouts", "bursts", "hushes", "closes"):
            answer = server.post("/prompt", {"prompt": graph(("Wild", {"how": how}))})
            row = finished(server, answer["prompt_id"])
            assert row["status"]["status_str"] == "success", (how, row["status"], server.said()[-2000:])
        stuck = server.post("/prompt", {"prompt": graph(("Wild", {"how": "spins"}))})
        picture = graph(WHITE, ("SaveImage", {"images": ["1", 0], "filename_prefix": "after"}))
        row = finished(server, server.post("/prompt", {"prompt": picture})["prompt_id"])
        (saved,) = row["outputs"]["2"]["images"]
        assert (tmp_path / "output" / saved["filename"]).is_file()
        server.post("/interrupt", {"prompt_id": stuck["prompt_id"]})
        assert finished(server, stuck["prompt_id"])["status"]["messages"][-1][0] == "execution_interrupted"
        assert "wild" in json.dumps(json.loads(server.get("/object_info/Wild")))
    finally:
        began = time.monotonic()
        code = server.stop()
    assert code in (0, -15), server.said()[-3000:]
    assert time.monotonic() - began < 15


@pytest.mark.timeout(300)
def test_a_process_ends_although_a_function_of_a_pack_does_not(tmp_path: Path) -> None:
    pack = tmp_path / "custom_nodes" / "slow.py"
    pack.parent.mkdir()
    pack.write_text(SLOW.format(name="Slow", kind=""))
    server = Server(tmp_path)
    server.post("/prompt", {"prompt": graph(("Slow", {"n": 1, "seconds": 3600.0}))})
    time.sleep(0.5)
    began = time.monotonic()
    assert server.stop() in (0, -15)
    assert time.monotonic() - began < 20
    assert not os.path.exists(f"/proc/{server.process.pid}")
