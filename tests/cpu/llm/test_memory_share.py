"""`mem_fraction_static`: weights and pages of loaded models together stay below a share of all memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from runtime.llm.api import CompleteRequest, LanguageStats, SamplingParams
from runtime.llm.engine import Engine
from runtime.platform.errors import OutOfMemory

PAGE_BYTES = 16 * 2 * 2 * (16 + 16) * 4
NUM_PAGES = 64


def held(stats: LanguageStats) -> int:
    return stats.weight_bytes + stats.page_bytes


def share(size_bytes: float) -> float:
    return size_bytes / psutil.virtual_memory().total


def test_pages_get_what_the_weights_leave_of_the_share(tiny: Path, start: Callable[..., Engine]) -> None:
    engine = start(page_size=16)
    engine.load("tiny")
    weights = engine.stats()["tiny"].weight_bytes
    assert weights > 258 * 64 * 4
    assert engine.stats()["tiny"].page_bytes == 256 * PAGE_BYTES

    budget = 2 * weights + (2 * NUM_PAGES + 0.5) * PAGE_BYTES
    models = {"tiny": tiny, "same": tiny}
    engine = start(models=lambda: models, num_pages=None, mem_fraction_static=share(budget), page_size=16)
    engine.load("tiny")
    assert budget - PAGE_BYTES < held(engine.stats()["tiny"]) <= budget
    with pytest.raises(OutOfMemory, match="no memory is left for one page"):
        engine.load("same")
    params = SamplingParams(max_tokens=4, temperature=0, ignore_eos=True)
    assert len(engine.submit(CompleteRequest("r", "tiny", (5, 6, 7), params)).wait(20).token_ids) == 4


def test_a_share_below_the_weights_is_refused(start: Callable[..., Engine]) -> None:
    engine = start(num_pages=None, mem_fraction_static=share(1024))
    with pytest.raises(OutOfMemory, match="no memory is left"):
        engine.load("tiny")
