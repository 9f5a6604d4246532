"""The server of llama-cpp-python on the same GGUF file, as one more contender of `bench.llm`."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil

from runtime.llm import text

_START_S = 120.0
_ENDS_NOTHING = -100.0
_UNKNOWN = -1


def missing(python: str, model: Path) -> str | None:
    """Why there can be no such server, in two words; None when there can."""
    if model.suffix != ".gguf":
        return "no GGUF"
    found = subprocess.run([python, "-c", "import llama_cpp.server.app"], capture_output=True, check=False)
    return "not installed" if found.returncode else None


class LlamaServer:
    def __init__(self, process: subprocess.Popen[bytes], url: str, model: Path) -> None:
        self._process = psutil.Process(process.pid)
        self._url = url
        self._codec = text.load(model)

    def cpu_seconds(self) -> float:
        times = self._process.cpu_times()
        return float(times.user + times.system)

    def answer(self, prompts: Sequence[Sequence[int]], tokens: int) -> list[list[int]]:
        """All at once. It takes text and tells how many tokens it made, not which."""
        ends = {str(token): _ENDS_NOTHING for token in self._codec.end_ids}

        def ask(prompt: Sequence[int]) -> list[int]:
            said = self._codec.backend.decode(list(prompt))
            body = {"prompt": said, "max_tokens": tokens, "temperature": 0.0, "logit_bias": ends}
            return [_UNKNOWN] * _post(f"{self._url}/v1/completions", body)["usage"]["completion_tokens"]

        with ThreadPoolExecutor(len(prompts)) as pool:
            return list(pool.map(ask, prompts))


@contextlib.contextmanager
def serving(python: str, model: Path, threads: int) -> Iterator[LlamaServer]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = {"model": model, "port": port, "n_threads": threads, "n_threads_batch": threads, "n_ctx": 2048}
    # by itself a new request would end the one that is being answered
    flags = [f"--{name}={value}" for name, value in {**settings, "interrupt_requests": False}.items()]
    command = [python, "-m", "llama_cpp.server", *flags, "--verbose=False"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_for(f"{url}/v1/models", process)
        yield LlamaServer(process, url, model)
    finally:
        process.terminate()
        process.wait()


def _wait_for(address: str, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + _START_S
    while time.monotonic() < until and process.poll() is None:
        with contextlib.suppress(urllib.error.URLError, ConnectionError), urllib.request.urlopen(address):
            return
        time.sleep(0.2)
    raise RuntimeError(f"the llama.cpp server did not start; its exit status is {process.poll()}")


def _post(address: str, body: dict[str, Any]) -> dict[str, Any]:
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(address, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as answer:
        found: dict[str, Any] = json.load(answer)
    return found
