"""The queue outlives its process: killed, told to stop, or brought down by one of its own prompts."""

import contextlib
import json
import os
import signal
import sqlite3
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cpu.server.process import Server, finished

pytestmark = pytest.mark.timeout(180)

PACK = '''
import asyncio, os, pathlib, signal

DIARY = pathlib.Path(__file__).parent / "diary"

class Note:
    """Writes down that it ran; while the file `wait` exists, it does not end."""
    RETURN_TYPES, FUNCTION, OUTPUT_NODE = (), "run", True

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"label": ("STRING", {})}}

    @classmethod
    def IS_CHANGED(cls, label):
        return float("nan")

    async def run(self, label):
        with DIARY.open("a") as diary:
            diary.write(f"start {label}\\n")
        while DIARY.with_name("wait").exists() and not label.startswith("quick"):
            await asyncio.sleep(0.01)
        with DIARY.open("a") as diary:
            diary.write(f"end {label}\\n")
        return {"ui": {"text": [label]}}

class Kill(Note):
    async def run(self, label):
        await super().run("quick" + label)
        os.kill(os.getpid(), signal.SIGKILL)

NODE_CLASS_MAPPINGS = {"Note": Note, "Kill": Kill}
'''


class Studio:
    """A base directory with the pack, and what its nodes wrote down."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.pack = base / "custom_nodes" / "diary"
        self.pack.mkdir(parents=True)
        (self.pack / "__init__.py").write_text(PACK)

    def hold(self, held: bool) -> None:
        (self.pack / "wait").touch() if held else (self.pack / "wait").unlink()

    def wrote(self, word: str) -> list[str]:
        path = self.pack / "diary"
        lines = path.read_text().splitlines() if path.exists() else []
        return [line.split()[1] for line in lines if line.startswith(word)]


@pytest.fixture
def studio(tmp_path: Path) -> Studio:
    return Studio(tmp_path)


def prompt(label: str, kind: str = "Note") -> dict[str, Any]:
    return {"1": {"class_type": kind, "inputs": {"label": label}}}


def post(server: Server, label: str) -> str:
    return str(server.post("/prompt", {"prompt": prompt(label)})["prompt_id"])


def until(holds: Callable[[], bool], what: str) -> None:
    for _ in range(600):
        if holds():
            return
        time.sleep(0.05)
    raise AssertionError(f"not reached: {what}")


def ids(server: Server) -> tuple[list[str], list[str]]:
    queue = json.loads(server.get("/queue"))
    running, pending = ([item[1] for item in queue[f"queue_{state}"]] for state in ("running", "pending"))
    return running, pending


def kill(server: Server) -> None:
    os.kill(server.process.pid, signal.SIGKILL)
    died(server)


def died(server: Server) -> None:
    assert server.process.wait(60) == -signal.SIGKILL
    server.log.close()


def attempts_on_disk(studio: Studio) -> list[int]:
    connection = sqlite3.connect(studio.base / "user" / "treadle.sqlite")
    attempts = [row[0] for row in connection.execute("SELECT attempts FROM queue ORDER BY sequence")]
    connection.close()
    return attempts


def test_killed_amid_three_running_and_twenty_waiting_prompts_it_loses_none(studio: Studio) -> None:
    studio.hold(True)
    server = Server(studio.base, "--max-running-jobs", "3")
    done = [post(server, f"quick{i}") for i in range(2)]
    for prompt_id in done:
        finished(server, prompt_id)
    running = [post(server, f"running{i}") for i in range(3)]
    until(lambda: len(studio.wrote("start")) == 5, "three are running")
    waiting = [post(server, f"waiting{i}") for i in range(20)]
    kill(server)

    server = Server(studio.base, "--max-running-jobs", "1")
    try:
        assert set(json.loads(server.get("/history"))) == set(done)
        assert json.loads(server.get("/prompt"))["exec_info"]["queue_remaining"] == 23
        late = post(server, "late")
        until(lambda: len(studio.wrote("start")) == 6, "the first runs again")
        assert ids(server) == (running[:1], [*running[1:], *waiting, late])
        studio.hold(False)
        for prompt_id in [*running, *waiting, late]:
            assert finished(server, prompt_id)["status"]["status_str"] == "success"
        again = [*(f"running{i}" for i in range(3)), *(f"waiting{i}" for i in range(20)), "late"]
        assert studio.wrote("start")[5:] == again
        assert studio.wrote("end") == ["quick0", "quick1", *again]
        numbers = [item["prompt"][0] for item in json.loads(server.get("/history")).values()]
        assert numbers == list(range(26))
    finally:
        assert server.stop() == 0


def test_told_to_stop_it_keeps_what_runs_and_what_waits_unless_it_is_to_forget(studio: Studio) -> None:
    studio.hold(True)
    server = Server(studio.base, "--max-running-jobs", "1")
    first, second = post(server, "first"), post(server, "second")
    until(lambda: studio.wrote("start") == ["first"], "the first runs")
    assert server.stop() == 0
    server = Server(studio.base, "--max-running-jobs", "1")
    until(lambda: studio.wrote("start") == ["first", "first"], "it runs again")
    assert ids(server) == ([first], [second])
    assert json.loads(server.get("/history")) == {}
    assert server.stop() == 0
    server = Server(studio.base, "--empty-queue")
    try:
        assert json.loads(server.get("/prompt"))["exec_info"]["queue_remaining"] == 0
    finally:
        assert server.stop() == 0
    assert attempts_on_disk(studio) == []


def test_a_prompt_that_kills_the_process_is_given_up_and_takes_nobody_along(studio: Studio) -> None:
    studio.hold(True)
    server = Server(studio.base)
    beside = [post(server, f"beside{i}") for i in range(2)]
    until(lambda: len(studio.wrote("start")) == 2, "two run")
    killer = str(uuid.uuid4())
    with contextlib.suppress(ConnectionError):
        server.post("/prompt", {"prompt_id": killer, "prompt": prompt("killer", "Kill")})
    died(server)
    died(Server(studio.base))
    assert attempts_on_disk(studio) == [2, 2, 2]
    # from now on each of them runs alone, so the innocent have to end by themselves
    studio.hold(False)
    died(Server(studio.base))
    assert studio.wrote("end") == ["quickkiller", "quickkiller", "beside0", "beside1", "quickkiller"]
    server = Server(studio.base)
    try:
        item: Any = finished(server, killer)
        (error,) = [data for kind, data in item["status"]["messages"] if kind == "execution_error"]
        assert error["exception_message"].startswith("The server died 3 times while this prompt ran")
        for prompt_id in beside:
            assert finished(server, prompt_id)["status"]["status_str"] == "success"
        assert studio.wrote("start").count("quickkiller") == 3
    finally:
        assert server.stop() == 0
