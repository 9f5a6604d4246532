"""An encoder as its own process, for tests."""

import json
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tests.cpu.server.process import ENVIRONMENT, MAIN


class EncoderProcess:
    """`wait` returns when it answers."""

    def __init__(self, base: Path, model: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        flags = ["--cpu", "--port", str(port), "--base-directory", str(base)]
        self._log = (base / f"{model}.log").open("w+")
        self.process = subprocess.Popen(
            [*MAIN, "--encoder-only", "--model", model, *flags],
            env=ENVIRONMENT,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            cwd=base,
        )

    def wait(self) -> None:
        for _ in range(1200):
            assert self.process.poll() is None, Path(self._log.name).read_text()
            try:
                self.health()
                return
            except urllib.error.URLError:
                time.sleep(0.05)
        raise AssertionError("the encoder did not answer in a minute")

    def health(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self.url}/health", timeout=30) as answer:
            found: dict[str, Any] = json.loads(answer.read())
            return found

    def post(self, body: bytes) -> tuple[int, bytes]:
        try:
            with urllib.request.urlopen(f"{self.url}/encode", body, timeout=30) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self._log.close()
