"""A runner of the user's own computes every forward; one that cannot is refused with a sentence."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from runtime.llm import custom_runner
from runtime.llm.api import CompleteRequest, Completion, SamplingParams
from runtime.llm.engine import Engine
from runtime.platform.errors import MissingFile, RuntimeFault, Unsupported

DOCS = Path(__file__).parents[3] / "docs" / "llm_runtime.md"
BASE = "from runtime.llm.runner import Output, Runner\n"


def write(folder: Path, text: str) -> str:
    file = folder / "mine.py"
    file.write_text(text)
    return f"{file}:Mine"


def answer(engine: Engine) -> Completion:
    params = SamplingParams(max_tokens=6, temperature=0)
    return engine.submit(CompleteRequest("one", "tiny", (5, 6, 7, 8), params)).wait(30)


def test_the_example_of_the_docs_sees_every_forward(
    tmp_path: Path,
    start: Callable[..., Engine],
    greedy: Callable[[Sequence[int], int], list[int]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    (example,) = re.findall(r"```python\n(# my_runner\.py.*?)```", DOCS.read_text(), re.DOTALL)
    (name,) = re.findall(r"class (\w+)\(Runner\)", example)
    file = tmp_path / "my_runner.py"
    file.write_text(example)
    engine = start(runner=custom_runner.load(f"{file}:{name}"))
    assert list(answer(engine).token_ids) == greedy((5, 6, 7, 8), 6)
    assert capsys.readouterr().out.count("\n") == engine.stats()["tiny"].forwards == 6


def test_what_a_runner_answers_decides(tmp_path: Path, start: Callable[..., Engine]) -> None:
    text = (
        "class Mine(Runner):\n"
        "    def forward(self, batch, *, media, with_hidden):\n"
        "        out = super().forward(batch, media=media, with_hidden=with_hidden)\n"
        "        out.logits[:, 42] = 1e4\n"
        "        return out\n"
    )
    engine = start(runner=custom_runner.load(write(tmp_path, BASE + text)))
    assert answer(engine).token_ids == (42,) * 6


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "there is no class Mine"),
        ("Mine = 3", "Mine in .* is no runner"),
        ("class Mine: pass", r"derives from runtime\.llm\.runner\.Runner"),
        ("import nowhere_at_all", "cannot be imported: ModuleNotFoundError"),
        ("def broken(:", "cannot be imported: SyntaxError"),
    ],
)
def test_what_is_no_runner_is_refused(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match=words):
        custom_runner.load(write(tmp_path, text))


def test_a_runner_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MissingFile, match=r"gone\.py"):
        custom_runner.load(f"{tmp_path / 'gone.py'}:Mine")
    with pytest.raises(Unsupported, match=r"file\.py:Class"):
        custom_runner.load("mine.py")
    (tmp_path / "mine.txt").write_text("")
    with pytest.raises(Unsupported, match=r"ends in \.py"):
        custom_runner.load(f"{tmp_path / 'mine.txt'}:Mine")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("def __init__(self, *_): raise ValueError('no luck')", "cannot be made: ValueError: no luck"),
        ("def __init__(self, *_): pass", "does not call"),
        ("def forward(self, *_, **__): return None", "answers with NoneType; it must be an Output"),
        ("def forward(self, *_, **__): return Output([], ())", "0 rows of logits where 1 are wanted"),
        ("def forward(self, *_, **__): raise KeyError('lost')", "a step failed: 'lost'"),
    ],
)
def test_a_runner_that_breaks_says_so_to_the_request(
    body: str, words: str, tmp_path: Path, start: Callable[..., Engine]
) -> None:
    engine = start(runner=custom_runner.load(write(tmp_path, f"{BASE}class Mine(Runner):\n    {body}\n")))
    with pytest.raises(RuntimeFault, match=words):
        answer(engine)
