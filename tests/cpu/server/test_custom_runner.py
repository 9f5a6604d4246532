"""A server that was started with a runner of the user's own computes by it."""

from __future__ import annotations

from pathlib import Path

from tests.cpu.llm.conftest import save_random, tiny_llama
from tests.cpu.server.process import Server

RUNNER = """
from runtime.llm.runner import Runner

class Loud(Runner):
    def forward(self, batch, *, media, with_hidden):
        print("computed", batch.input_ids.numel(), flush=True)
        return super().forward(batch, media=media, with_hidden=with_hidden)
"""


def test_every_forward_goes_through_the_runner_of_the_flag(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(RUNNER)
    save_random(tiny_llama(), tmp_path / "models" / "llm" / "tiny")
    server = Server(tmp_path, "--custom-model-runner", f"{tmp_path / 'mine.py'}:Loud")
    try:
        body = {"model": "tiny", "prompt": "Hello", "max_tokens": 3, "temperature": 0, "ignore_eos": True}
        assert server.post("/v1/completions", body)["usage"]["completion_tokens"] == 3
        assert [line for line in server.said().splitlines() if line.startswith("computed")] == [
            "computed 5",
            "computed 1",
            "computed 1",
        ]
    finally:
        assert server.stop() == 0
