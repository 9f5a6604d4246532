"""A server as its own process, for tests that need the whole program."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
MAIN = [sys.executable, str(ROOT / "main.py")]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}


class Server:
    def __init__(self, base: Path, *flags: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        command = [*MAIN, "--cpu", "--port", str(self.port), "--base-directory", str(base), *flags]
        started = time.monotonic()
        self.log = (base / "log.txt").open("w+")
        self.process = subprocess.Popen(
            command, env=ENVIRONMENT, stdout=self.log, stderr=subprocess.STDOUT, cwd=base
        )
        while True:
            try:
                self.get("/prompt")
                break
            except urllib.error.URLError:
                assert self.process.poll() is None, self.said()
                assert time.monotonic() - started < 60, "the port did not answer"
                time.sleep(0.02)
        self.seconds_to_answer = time.monotonic() - started

    def get(self, path: str) -> bytes:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=120) as answer:
            return bytes(answer.read())

    def post(self, path: str, body: Any) -> Any:
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=120) as answer:
            content = answer.read()
            return json.loads(content) if content else None

    def said(self) -> str:
        self.log.flush()
        return Path(self.log.name).read_text()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(30)
        finally:
            self.process.kill()
            self.process.wait()
            self.log.close()


def finished(server: Server, prompt_id: str) -> Any:
    """The history item, once there is one."""
    for _ in range(600):
        item = json.loads(server.get(f"/history/{prompt_id}"))
        if item:
            return item[prompt_id]
        time.sleep(0.1)
    raise AssertionError(f"prompt {prompt_id} did not end: {server.said()}")
