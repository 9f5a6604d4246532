"""One step at a time of the algorithms by which blocks are written; 0 is the mask."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest

from runtime.llm.dllm import Algorithm, algorithms, make
from runtime.llm.dllm.blocks import Block, BlockStyle, Candidate
from runtime.platform.errors import Unsupported


def candidates(*pairs: tuple[int, float]) -> list[Candidate]:
    return [Candidate(token, confidence) for token, confidence in pairs]


def step(it: Algorithm, block: Block, *pairs: tuple[int, float]) -> bool:
    return it.step(block, candidates(*pairs), 0)


def test_it_needs_no_torch() -> None:
    code = "import sys, runtime.llm.dllm; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_prompt_leaves_the_rest_of_its_last_block_to_be_written() -> None:
    assert [len(BlockStyle(4, 0).masks_behind(count)) for count in (1, 3, 4, 5)] == [3, 1, 4, 3]


def test_low_confidence_takes_what_is_sure_or_else_the_surest() -> None:
    it, block = make("low_confidence", {"threshold": 0.9}), Block([0, 0, 0, 0])
    assert not step(it, block, (5, 0.95), (6, 0.1), (7, 0.91), (8, 0.9))
    assert block.tokens == [5, 0, 7, 0]
    assert not step(it, block, (9, 1.0), (6, 0.2), (9, 1.0), (8, 0.1))
    assert block.tokens == [5, 6, 7, 0], "what is filled in stays"
    assert step(it, block, (9, 1.0), (9, 1.0), (9, 1.0), (8, 0.1))
    assert block.tokens == [5, 6, 7, 8]


def test_joint_threshold_changes_tokens_until_nothing_changes() -> None:
    it, block = make("joint_threshold", {"threshold": 0.7, "edit_threshold": 0.5}), Block([0, 0])
    assert not step(it, block, (5, 0.8), (6, 0.6))
    assert block.tokens == [5, 0]
    assert not step(it, block, (9, 0.55), (6, 0.6))
    assert block.tokens == [9, 6], "an edit and the surest mask in one step"
    assert not step(it, block, (9, 0.9), (7, 0.51))
    assert block.tokens == [9, 7]
    assert step(it, block, (8, 0.5), (7, 0.9)), "0.5 is not above 0.5"
    assert block.tokens == [9, 7]


def test_edits_come_to_an_end() -> None:
    it, block = make("joint_threshold", {"max_checks": 2}), Block([3])
    assert [step(it, block, (token, 1.0)) for token in (4, 3)] == [False, True]
    block = Block([0])
    assert step(make("joint_threshold", {"max_checks": 0}), block, (4, 1.0)), "no looking back"


@pytest.mark.parametrize("name", list(algorithms))
def test_every_algorithm_ends_whatever_the_model_says(name: str) -> None:
    for seed in range(200):
        choose = random.Random(seed)
        block = Block([0] * choose.randint(1, 8))
        for _ in range(30):
            found = [(choose.randint(1, 3), choose.random()) for _ in block.tokens]
            if step(make(name, {}), block, *found):
                break
        else:
            pytest.fail(f"{name} never ends with seed {seed}")
        assert 0 not in block.tokens


def test_a_setting_below_nothing_is_refused() -> None:
    with pytest.raises(Unsupported, match="from 0 up, not -1"):
        make("low_confidence", {"threshold": -1})
