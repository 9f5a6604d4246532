"""A server of this program or of ComfyUI in a process of its own, with three small nodes, for bench.graph."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parent.parent

PACK = '''
import asyncio

class Number:
    """A number that costs nothing to make."""
    RETURN_TYPES, FUNCTION, CATEGORY = ("INT",), "run", "bench"

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"value": ("INT", {"default": 0, "min": 0, "max": 2**60})}}

    def run(self, value):
        return (value,)

class Next(Number):
    def run(self, value):
        return (value + 1,)

class Sleep(Number):
    async def run(self, value):
        await asyncio.sleep(0.1)
        return (value,)

class End(Number):
    RETURN_TYPES, OUTPUT_NODE = (), True

    def run(self, value):
        return {}

NODE_CLASS_MAPPINGS = {"BenchNumber": Number, "BenchNext": Next, "BenchSleep": Sleep, "BenchEnd": End}
'''


@dataclass(frozen=True, slots=True)
class Server:
    address: str
    process: psutil.Process

    def cpu_s(self) -> float:
        """Seconds that its process has computed so far, on all cores together."""
        times = self.process.cpu_times()
        return float(times.user + times.system)


@contextmanager
def treadle() -> Iterator[Server]:
    with _server([sys.executable, str(ROOT / "main.py")], ROOT) as server:
        yield server


@contextmanager
def comfyui(path: Path, python: str) -> Iterator[Server]:
    with _server([python, str(path / "main.py")], path) as server:
        yield server


@contextmanager
def _server(command: list[str], cwd: Path) -> Iterator[Server]:
    with tempfile.TemporaryDirectory() as folder, (Path(folder) / "log.txt").open("w+") as log:
        pack = Path(folder) / "custom_nodes" / "bench"
        pack.mkdir(parents=True)
        (pack / "__init__.py").write_text(PACK)
        for name in ("models", "input", "output", "temp", "user"):
            (Path(folder) / name).mkdir()
        port = _free_port()
        flags = ["--cpu", "--port", str(port), "--base-directory", folder]
        process = subprocess.Popen(
            [*command, *flags], cwd=cwd, stdout=log, stderr=subprocess.STDOUT, env=_environment()
        )
        try:
            _wait(f"http://127.0.0.1:{port}/object_info/BenchEnd", process, log.name)
            yield Server(f"http://127.0.0.1:{port}", psutil.Process(process.pid))
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}


def _wait(url: str, process: subprocess.Popen[bytes], log: str) -> None:
    deadline = time.monotonic() + 300
    while True:
        try:
            with urllib.request.urlopen(url, timeout=300) as answer:
                assert answer.read() != b"{}", "the server did not load the nodes of the benchmark"
                return
        except urllib.error.HTTPError as error:
            raise SystemExit(f"the server started without its nodes: {error.read().decode()}") from None
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"the server did not start:\n{Path(log).read_text()[-2000:]}") from None
            time.sleep(0.1)
