from __future__ import annotations

import random

import numpy
import pytest

from app.graph.cache import ResultCache, size_bytes
from app.graph.values import Entry


def entry(size: int) -> Entry:
    return Entry(((numpy.zeros(size, numpy.uint8),),))


def test_an_array_counts_with_its_bytes_and_once():
    array = numpy.zeros(100_000, numpy.uint8)
    assert 100_000 <= size_bytes([array, {"again": array}]) < 110_000


def test_the_least_recently_used_goes_first():
    cache = ResultCache(35_000)
    for key in "abc":
        cache.put(key, entry(10_000))
    assert cache.get("a") is not None
    cache.put("d", entry(10_000))
    assert [key for key in "abcd" if key in cache] == ["a", "c", "d"]


def test_a_pinned_entry_stays_until_it_is_unpinned():
    cache = ResultCache(0)
    cache.pin("a")
    cache.put("a", entry(10))
    cache.put("b", entry(10))
    assert "a" in cache
    assert "b" not in cache
    cache.clear()
    assert "a" in cache
    cache.unpin(["a"])
    assert "a" not in cache


@pytest.mark.parametrize("seed", range(20))
def test_any_use_keeps_the_books(seed):
    rng = random.Random(seed)
    cache = ResultCache(50_000)
    pins: list[str] = []
    for _ in range(300):
        key = rng.choice("abcdefgh")
        match rng.randrange(5):
            case 0 | 1:
                cache.put(key, entry(rng.randrange(20_000)))
            case 2:
                cache.get(key)
            case 3:
                cache.pin(key)
                pins.append(key)
            case 4 if pins:
                cache.unpin([pins.pop(rng.randrange(len(pins)))])
        cache.check()
    cache.unpin(pins)
    cache.check()
    assert cache.used_bytes <= cache.max_bytes


def test_at_most_so_many_entries_stay() -> None:
    cache = ResultCache(max_entries=2)
    for key in "abc":
        cache.put(key, Entry(((key,),)))
    cache.check()
    assert ("a" in cache, "b" in cache, "c" in cache) == (False, True, True)


def test_only_the_last_jobs_results_are_kept_and_what_others_still_use() -> None:
    cache = ResultCache()
    for key in "abc":
        cache.put(key, Entry(((key,),)))
    cache.pin("a")
    cache.keep_only(["b"])
    assert ("a" in cache, "b" in cache, "c" in cache) == (True, True, False)
