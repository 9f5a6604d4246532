import random

import pytest

from runtime.llm.pages import Node, Pages


def fill(pages: Pages, tokens: list[int]) -> Node:
    """Compute a prompt of whole pages and leave it locked."""
    size, node = pages.page_size, pages.root
    for start in range(0, len(tokens), size):
        (page,) = pages.allocate(1) or pytest.fail("no page")
        node = pages.extend(node, tuple(tokens[start : start + size]), page)
    return node


def test_a_prefix_is_found_page_by_page_and_never_beyond_the_limit() -> None:
    pages = Pages(8, 4)
    fill(pages, list(range(12)))
    assert len(pages.match(list(range(12)), 12)) == 3
    assert len(pages.match(list(range(12)), 11)) == 2
    assert len(pages.match([0, 1, 2, 3, 9, 9, 9, 9], 8)) == 1
    assert pages.match([1, 2, 3, 4], 4) == []


def test_locked_pages_are_never_given_away() -> None:
    pages = Pages(3, 2)
    node = fill(pages, [1, 2, 3, 4])
    assert pages.allocate(2) is None
    pages.unlock(node)
    assert sorted(pages.allocate(3) or []) == [0, 1, 2]
    assert pages.match([1, 2], 2) == []


def test_the_least_recently_used_leaf_goes_first() -> None:
    pages = Pages(4, 1)
    first, second = fill(pages, [1, 2]), fill(pages, [3, 4])
    pages.unlock(first)
    pages.unlock(second)
    pages.lock(path := pages.match([1, 2], 2))
    pages.unlock(path[-1])
    assert pages.allocate(1)
    assert len(pages.match([3, 4], 2)) == 1, "the leaf of the older path goes"
    assert pages.allocate(1)
    assert pages.match([3, 4], 2) == []
    assert len(pages.match([1, 2], 2)) == 2


def test_the_second_to_compute_a_page_gets_the_first_ones() -> None:
    pages = Pages(4, 2)
    first, second = fill(pages, [5, 6]), fill(pages, [5, 6])
    assert first is second
    assert first.locks == 2
    assert pages.num_free == 3
    pages.check([])


def test_many_uses_without_eviction_do_not_grow_the_books() -> None:
    pages = Pages(2, 1)
    pages.unlock(fill(pages, [1, 2]))
    for _ in range(100):
        pages.lock(path := pages.match([1, 2], 2))
        pages.unlock(path[-1])
    assert len(pages._leaves) <= 2 * pages.num_pages + 1


def walk_at_random(seed: int) -> None:
    """Sequences come, share prefixes, grow and go; the invariants hold after each move."""
    choose = random.Random(seed)
    pages = Pages(choose.randint(1, 12), choose.randint(1, 3))
    held: dict[int, tuple[Node, list[int]]] = {}
    for name in range(40):
        if held and choose.random() < 0.45:
            node, private = held.pop(choose.choice(list(held)))
            pages.unlock(node)
            pages.release(private)
        else:
            tokens = [choose.randint(0, 1) for _ in range(choose.randint(1, 5) * pages.page_size)]
            path = pages.match(tokens, len(tokens))
            pages.lock(path)
            locked = {node.page for node in path}
            node = path[-1] if path else pages.root
            private = pages.allocate(len(tokens) // pages.page_size - len(path)) or []
            assert not locked & set(private), "a locked page was evicted"
            if private and choose.random() < 0.8:
                start = len(path) * pages.page_size
                node = pages.extend(node, tuple(tokens[start : start + pages.page_size]), private.pop(0))
            held[name] = node, private
        pages.check(page for _, private in held.values() for page in private)
        assert pages.num_free + pages.num_cached + pages.num_used == pages.num_pages


def test_a_thousand_random_walks_lose_no_page() -> None:
    for seed in range(1000):
        walk_at_random(seed)
