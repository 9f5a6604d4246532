"""Decides what each forward computes: which sequences run, in what chunks, on which pages, and who must give
way.

Events in (`add`, `cancel`, `commit`), rows out (`schedule`). It knows no tensors, no text, no threads, no
clock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from runtime.llm.pages import Node, Pages

if TYPE_CHECKING:
    from runtime.llm.media import MediaPrompt

FinishReason = Literal["stop", "length"]
_MAX_HELD_BACK = 64


@dataclass(eq=False, slots=True)
class TokenSequence:
    """One request's tokens and what is computed of them.

    `max_length` counts prompt and generated tokens. One that does not `generate` ends when its prompt is
    computed and computes all of it, since cached pages hold keys and values but no hidden states.

    `keys` are what the prefix tree knows the tokens by: the tokens themselves, unless what a position holds
    is told by more than its token. No chunk ends inside one of the `atoms`, which are spans of positions.
    `media` travels along for those who compute.
    """

    id: str
    tokens: list[int]
    max_length: int
    end_ids: frozenset[int] = frozenset()
    generates: bool = True
    keys: list[int] = field(default_factory=list)
    atoms: tuple[tuple[int, int], ...] = ()
    media: MediaPrompt | None = None
    prompt_length: int = field(init=False)
    computed: int = 0
    cached_tokens: int | None = None
    pages: list[int] = field(default_factory=list)
    num_shared: int = 0
    path: Node | None = None

    def __post_init__(self) -> None:
        self.prompt_length = len(self.tokens)
        self.keys = self.keys or self.tokens.copy()

    @property
    def remaining(self) -> int:
        return len(self.tokens) - self.computed

    def append(self, token: int) -> None:
        self.tokens.append(token)
        self.keys.append(token)

    def chunk(self, limit: int) -> int:
        """How many tokens to compute next: at most `limit`, or more where a larger atom comes first."""
        end = self.computed + min(limit, self.remaining)
        for start, stop in self.atoms:
            if start < end < stop:
                end = start if start > self.computed else stop
        return end - self.computed


@dataclass(frozen=True, slots=True)
class Row:
    """Compute tokens [start, start + count) of a sequence; one that `samples` yields its next token."""

    sequence: TokenSequence
    start: int
    count: int
    samples: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a committed row brought: a token, the end, or both."""

    sequence: TokenSequence
    token: int | None
    finish: FinishReason | None


class Scheduler:
    """At most `max_rows` sequences run, and a forward computes at most `max_batch_tokens` tokens."""

    def __init__(self, pages: Pages, *, max_batch_tokens: int, max_rows: int) -> None:
        assert min(max_batch_tokens, max_rows) > 0, (max_batch_tokens, max_rows)
        self.pages = pages
        self.max_batch_tokens = max_batch_tokens
        self.max_rows = min(max_rows, max_batch_tokens)
        self.waiting: deque[TokenSequence] = deque()
        self.running: list[TokenSequence] = []
        self.preemptions = 0

    @property
    def capacity(self) -> int:
        """The longest sequence that can ever be served."""
        return self.pages.num_pages * self.pages.page_size

    def add(self, sequence: TokenSequence) -> None:
        assert 0 < sequence.prompt_length <= sequence.max_length <= self.capacity, sequence
        self.waiting.append(sequence)

    def cancel(self, sequence: TokenSequence) -> None:
        """Drop it wherever it is; harmless after its end."""
        if sequence in self.running:
            self._stop(sequence)
        elif sequence in self.waiting:
            self.waiting.remove(sequence)

    def schedule(self) -> list[Row]:
        preemptions = self.preemptions
        rows = self._continue_running()
        if self.preemptions == preemptions:
            rows += self._admit_waiting(self.max_batch_tokens - sum(row.count for row in rows))
        return rows

    def commit(self, rows: Sequence[Row], tokens: Sequence[int]) -> list[Outcome]:
        """`tokens` has one entry for each row that samples, in their order. Rows of cancelled sequences are
        ignored.
        """
        outcomes, sampled = [], iter(tokens)
        for row in rows:
            token = next(sampled) if row.samples else None
            if row.sequence in self.running:
                outcomes += self._advance(row, token)
        return outcomes

    def check(self) -> None:
        """The invariants between two steps."""
        for sequence in self.waiting:
            assert (sequence.pages, sequence.path, sequence.computed) == ([], None, 0), sequence
        for sequence in self.running:
            assert sequence.computed <= len(sequence.pages) * self.pages.page_size, sequence
            path = list(self._path_pages(sequence))
            assert path == sequence.pages[: sequence.num_shared], "the path and the page table disagree"
        self.pages.check(page for each in self.running for page in each.pages[each.num_shared :])

    # -- running sequences -----------------------------------------------------------------------------------

    def _continue_running(self) -> list[Row]:
        """Decoding sequences first, so that a long prompt never delays a token; then the next chunks of
        prompts.
        """
        rows: dict[TokenSequence, Row] = {}
        for sequence in sorted(self.running, key=lambda each: each.remaining > 1):
            left = self.max_batch_tokens - sum(row.count for row in rows.values())
            if left <= 0:
                break
            if sequence not in self.running:
                continue
            count = sequence.chunk(left)
            while not self._grow(sequence, count):
                victim = self.running[-1]
                self._preempt(victim)
                rows.pop(victim, None)
                if victim is sequence:
                    break
            else:
                rows[sequence] = self._row(sequence, count)
        return list(rows.values())

    def _preempt(self, sequence: TokenSequence) -> None:
        """Its full pages stay cached as long as nobody needs them, so coming back is cheap when memory
        returns.
        """
        self._stop(sequence)
        self.waiting.appendleft(sequence)
        self.preemptions += 1

    def _grow(self, sequence: TokenSequence, count: int) -> bool:
        wanted = -(-(sequence.computed + count) // self.pages.page_size) - len(sequence.pages)
        fresh = self.pages.allocate(max(0, wanted))
        if fresh is None:
            return False
        sequence.pages += fresh
        return True

    @staticmethod
    def _row(sequence: TokenSequence, count: int) -> Row:
        samples = sequence.generates and count == sequence.remaining
        return Row(sequence, sequence.computed, count, samples)

    # -- waiting sequences -----------------------------------------------------------------------------------

    def _admit_waiting(self, left: int) -> list[Row]:
        rows: list[Row] = []
        held_back: list[TokenSequence] = []
        filling = {key for each in self.running if (key := self._next_page_key(each)) is not None}
        while (
            left > 0
            and self.waiting
            and len(self.running) < self.max_rows
            and len(held_back) < _MAX_HELD_BACK
        ):
            sequence = self.waiting.popleft()
            self._start(sequence)
            key = self._next_page_key(sequence)
            if key is not None and key in filling:
                # Another sequence computes the same page in this very step; one step later it can be shared.
                self._withdraw(sequence)
                held_back.append(sequence)
                continue
            if not self._has_room(sequence):
                self._withdraw(sequence)
                self.waiting.appendleft(sequence)
                break
            count = sequence.chunk(left)
            grown = self._grow(sequence, count)
            assert grown, "pages that were counted as available are not"
            if sequence.cached_tokens is None:
                sequence.cached_tokens = sequence.computed
            self.running.append(sequence)
            rows.append(self._row(sequence, count))
            left -= count
            if key is not None:
                filling.add(key)
        self.waiting.extendleft(reversed(held_back))
        return rows

    def _start(self, sequence: TokenSequence) -> None:
        """Take over what the tree has of it, leaving at least one token to compute."""
        path = self.pages.match(sequence.keys, len(sequence.tokens) - 1) if sequence.generates else []
        self.pages.lock(path)
        sequence.path = path[-1] if path else self.pages.root
        sequence.pages = [node.page for node in path]
        sequence.num_shared = len(path)
        sequence.computed = len(path) * self.pages.page_size

    def _has_room(self, sequence: TokenSequence) -> bool:
        """All of its tokens and the next page must fit beside the others; alone it may take what there is."""
        total = -(-(len(sequence.tokens) + 1) // self.pages.page_size)
        return not self.running or total - len(sequence.pages) <= self.pages.num_available

    def _next_page_key(self, sequence: TokenSequence) -> tuple[int, tuple[int, ...]] | None:
        """Where the next full page that it computes will hang in the tree; None when no full page is left."""
        size, start = self.pages.page_size, sequence.num_shared * self.pages.page_size
        if start + size > len(sequence.tokens):
            return None
        return id(sequence.path), tuple(sequence.keys[start : start + size])

    # -- the end of a step and of a sequence -----------------------------------------------------------------

    def _advance(self, row: Row, token: int | None) -> list[Outcome]:
        sequence = row.sequence
        sequence.computed += row.count
        self._share_full_pages(sequence)
        if token is None:
            if sequence.generates or sequence.remaining:
                return []
            self._stop(sequence)
            return [Outcome(sequence, None, "stop")]
        sequence.append(token)
        finish = self._finish_reason(sequence, token)
        if finish is not None:
            self._stop(sequence)
        return [Outcome(sequence, token, finish)]

    @staticmethod
    def _finish_reason(sequence: TokenSequence, token: int) -> FinishReason | None:
        if token in sequence.end_ids:
            return "stop"
        return "length" if len(sequence.tokens) >= sequence.max_length else None

    def _share_full_pages(self, sequence: TokenSequence) -> None:
        size = self.pages.page_size
        assert sequence.path is not None
        while (sequence.num_shared + 1) * size <= sequence.computed:
            start = sequence.num_shared * size
            key = tuple(sequence.keys[start : start + size])
            sequence.path = self.pages.extend(sequence.path, key, sequence.pages[sequence.num_shared])
            sequence.pages[sequence.num_shared] = sequence.path.page
            sequence.num_shared += 1

    def _stop(self, sequence: TokenSequence) -> None:
        self.running.remove(sequence)
        self._withdraw(sequence)

    def _withdraw(self, sequence: TokenSequence) -> None:
        """Give back its pages; what it shared stays in the tree until it is evicted."""
        assert sequence.path is not None
        self.pages.unlock(sequence.path)
        self.pages.release(sequence.pages[sequence.num_shared :])
        sequence.path, sequence.pages, sequence.num_shared, sequence.computed = None, [], 0, 0

    @staticmethod
    def _path_pages(sequence: TokenSequence) -> Iterator[int]:
        pages, node = [], sequence.path
        while node is not None and node.parent is not None:
            pages.append(node.page)
            node = node.parent
        return reversed(pages)
