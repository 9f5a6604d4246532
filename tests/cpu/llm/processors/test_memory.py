"""A medium is prepared once, however often and by however many threads it is asked for."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from runtime.llm.media import Item
from runtime.llm.processors.memory import ItemMemory


def item(num_floats: int) -> Item:
    return Item("image", {"pixels": torch.zeros(num_floats)}, "", 0, b"")


def test_what_is_kept_is_not_made_again() -> None:
    memory = ItemMemory(1000)
    first = memory.get(b"a", lambda: item(1))
    assert memory.get(b"a", lambda: pytest.fail("made twice")) is first
    assert memory.get(b"b", lambda: item(1)) is not first


def test_the_least_recently_used_goes_first() -> None:
    memory = ItemMemory(80)
    for key in (b"a", b"b"):
        memory.get(key, lambda: item(10))
    kept = memory.get(b"a", lambda: item(10))
    memory.get(b"c", lambda: item(10))
    assert memory.num_bytes == 80
    assert memory.get(b"a", lambda: item(10)) is kept
    made: list[bytes] = []
    memory.get(b"b", lambda: made.append(b"b") or item(10))  # type: ignore[func-returns-value]
    assert made == [b"b"], "it had gone"


def test_what_is_larger_than_the_bound_is_not_kept() -> None:
    memory = ItemMemory(10)
    assert memory.get(b"a", lambda: item(100)).num_bytes == 400
    assert memory.num_bytes == 0


def test_threads_that_want_the_same_wait_for_one() -> None:
    memory, release, made = ItemMemory(1000), threading.Event(), []

    def make() -> Item:
        made.append(1)
        assert release.wait(10)
        return item(3)

    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(memory.get, b"a", make) for _ in range(4)]
        while not made:
            pass
        release.set()
        assert len({id(future.result(10)) for future in futures}) == 1
    assert len(made) == 1


def test_a_failure_reaches_the_caller_and_is_forgotten() -> None:
    memory = ItemMemory(1000)

    def fail() -> Item:
        raise ValueError("no picture")

    with pytest.raises(ValueError, match="no picture"):
        memory.get(b"a", fail)
    assert memory.get(b"a", lambda: item(2)).num_bytes == 8
