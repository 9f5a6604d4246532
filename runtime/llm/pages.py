"""Who holds which page of the key-value pool, and which prefixes are already computed.

Pages are integers and prefixes are token ids: it knows no tensors, no requests, no clock. A page is free, or
in the prefix tree (locked by sequences that read it, else cached and evictable), or held privately by one
sequence.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from itertools import count


class Node:
    """One full page of tokens in the prefix tree; `locks` counts the sequences whose path goes through it."""

    __slots__ = ("children", "key", "locks", "page", "parent", "used_at")

    def __init__(self, parent: Node | None, key: tuple[int, ...], page: int) -> None:
        self.parent = parent
        self.key = key
        self.page = page
        self.children: dict[tuple[int, ...], Node] = {}
        self.locks = 0
        self.used_at = 0


class Pages:
    """A path of locked nodes stays until it is unlocked; unlocked ones go leaf by leaf, least recently used
    first. Without `reuses` nothing is ever found again, so that every prompt is computed whole.
    """

    def __init__(self, num_pages: int, page_size: int, *, reuses: bool = True) -> None:
        assert min(num_pages, page_size) > 0, (num_pages, page_size)
        self.reuses = reuses
        self.num_pages = num_pages
        self.page_size = page_size
        self.root = Node(None, (), -1)
        self.num_cached = 0
        self._free = list(range(num_pages - 1, -1, -1))
        self._leaves: list[tuple[int, int, Node]] = []
        self._ticks = 0
        self._serials = count()

    @property
    def num_free(self) -> int:
        return len(self._free)

    @property
    def num_used(self) -> int:
        """Locked in the tree or held privately."""
        return self.num_pages - self.num_free - self.num_cached

    @property
    def num_available(self) -> int:
        """What `allocate` can give: an unlocked node has no locked descendant, so all of them can go."""
        return self.num_free + self.num_cached

    def match(self, tokens: Sequence[int], max_tokens: int) -> list[Node]:
        """The longest computed prefix of at most `max_tokens`, as nodes from the root down. Locks nothing."""
        path: list[Node] = []
        node = self.root
        if not self.reuses:
            return path
        for start in range(0, max_tokens - self.page_size + 1, self.page_size):
            child = node.children.get(tuple(tokens[start : start + self.page_size]))
            if child is None:
                break
            path.append(child)
            node = child
        return path

    def lock(self, path: Iterable[Node]) -> None:
        for node in path:
            self.num_cached -= node.locks == 0
            node.locks += 1

    def unlock(self, node: Node) -> None:
        """Give up the path that ends in `node`."""
        self._ticks += 1
        while node.parent is not None:
            assert node.locks > 0, "unlocked more often than locked"
            node.locks -= 1
            node.used_at = self._ticks
            self.num_cached += node.locks == 0
            self._note_leaf(node)
            node = node.parent

    def extend(self, parent: Node, key: tuple[int, ...], page: int) -> Node:
        """Put a computed private page under the caller's locked path, and lock it for the caller.

        When another sequence was first, its node is returned and the caller's page goes back to the free
        ones.
        """
        assert len(key) == self.page_size, key
        node = parent.children.get(key)
        if node is None:
            node = parent.children[key] = Node(parent, key, page)
        else:
            self.release([page])
            self.num_cached -= node.locks == 0
        node.locks += 1
        return node

    def allocate(self, wanted: int) -> list[int] | None:
        """`wanted` private pages, evicting cached ones where needed; None and no change when they cannot be
        had.
        """
        if wanted > self.num_available:
            return None
        while len(self._free) < wanted:
            self._evict_one()
        return [self._free.pop() for _ in range(wanted)]

    def release(self, pages: Iterable[int]) -> None:
        self._free.extend(pages)

    def check(self, held: Iterable[int]) -> None:
        """`held` are the private pages of all sequences. Every page is in one place, and locks cover their
        parents.
        """
        nodes = list(self._walk())
        places = [*self._free, *(node.page for node in nodes), *held]
        assert sorted(places) == list(range(self.num_pages)), "a page is lost or in two places"
        assert self.num_cached == sum(node.locks == 0 for node in nodes), self.num_cached
        for node in nodes:
            assert node.locks >= max((child.locks for child in node.children.values()), default=0), (
                "orphaned lock"
            )

    def _evict_one(self) -> None:
        entry = heapq.heappop(self._leaves)
        while not self._is_current(entry):
            entry = heapq.heappop(self._leaves)
        node = entry[2]
        assert node.parent is not None
        del node.parent.children[node.key]
        self.num_cached -= 1
        self._free.append(node.page)
        parent, node.parent = node.parent, None
        self._note_leaf(parent)

    @staticmethod
    def _is_evictable(node: Node) -> bool:
        return node.locks == 0 and not node.children and node.parent is not None

    def _note_leaf(self, node: Node) -> None:
        if not self._is_evictable(node):
            return
        if len(self._leaves) > 2 * self.num_pages:
            # Entries of nodes that were used again since are dropped in bulk: the heap never outgrows the
            # pool.
            self._leaves = [entry for entry in self._leaves if self._is_current(entry)]
            heapq.heapify(self._leaves)
        heapq.heappush(self._leaves, (node.used_at, next(self._serials), node))

    def _is_current(self, entry: tuple[int, int, Node]) -> bool:
        return self._is_evictable(entry[2]) and entry[2].used_at == entry[0]

    def _walk(self) -> Iterator[Node]:
        stack = list(self.root.children.values())
        while stack:
            node = stack.pop()
            yield node
            stack.extend(node.children.values())
