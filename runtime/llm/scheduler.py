"""Decides what each forward computes: which sequences run, in what chunks, on which pages, and who must give
way.

Events in (`add`, `cancel`, `commit`), rows out (`schedule`). It knows no tensors, no text, no threads, no
clock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Literal

from runtime.llm.pages import Pages
from runtime.llm.sequence import Row, TokenSequence

FinishReason = Literal["stop", "length"]
_MAX_HELD_BACK = 64


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
        # What a page holds depends on whole blocks, so none may reach into the next page.
        assert self.pages.page_size % sequence.block == 0, (self.pages.page_size, sequence.block)
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
        return self._with_drafts(rows)

    def commit(self, rows: Sequence[Row], accepted: Sequence[Sequence[int]]) -> list[Outcome]:
        """`accepted` has the new tokens of each row that samples, in their order: of a block none or all, of
        others at least one. Rows of cancelled sequences are ignored.
        """
        outcomes, sampled = [], iter(accepted)
        for row in rows:
            tokens = next(sampled) if row.samples else ()
            if row.sequence in self.running:
                outcomes += self._advance(row, tokens)
        return outcomes

    def check(self) -> None:
        """The invariants between two steps."""
        for sequence in self.waiting:
            assert (sequence.pages, sequence.path, sequence.computed) == ([], None, 0), sequence
        for sequence in self.running:
            assert sequence.computed <= len(sequence.pages) * self.pages.page_size, sequence
            assert sequence.computed % sequence.block == 0, sequence
            assert sequence.computed <= len(sequence.tokens), sequence
            path = list(self._path_pages(sequence))
            assert path == sequence.pages[: sequence.num_shared], "the path and the page table disagree"
        self.pages.check(page for each in self.running for page in each.pages[each.num_shared :])

    # -- running sequences -----------------------------------------------------------------------------------

    def _continue_running(self) -> list[Row]:
        """Decoding sequences first, so that a long prompt never delays a token; then the next chunks of
        prompts.
        """
        rows: dict[TokenSequence, Row] = {}
        for sequence in sorted(self.running, key=lambda each: each.is_prompt):
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
        samples = sequence.generates and count == sequence.needed
        draft = sequence.draft if samples and sequence.block > 1 else ()
        return Row(sequence, sequence.computed, count, samples, draft)

    def _with_drafts(self, rows: list[Row]) -> list[Row]:
        """Guesses take what is left over: nobody waits and nobody gives way for one."""
        left = self.max_batch_tokens - sum(row.count for row in rows)
        for index, row in enumerate(rows):
            sequence = row.sequence
            if not (row.samples and sequence.draft and sequence.block == 1):
                continue
            room = min(left, sequence.max_length - len(sequence.tokens) - 1, self._spare_room(row))
            draft = sequence.draft[: max(0, room)]
            grown = self._grow(sequence, row.count + len(draft))
            assert grown, "pages that were counted as available are not"
            rows[index] = replace(row, count=row.count + len(draft), draft=draft)
            left -= len(draft)
        return rows

    def _spare_room(self, row: Row) -> int:
        """How many tokens fit behind a row when a page is left for each running sequence."""
        spare = max(0, self.pages.num_available - len(self.running))
        num_pages = len(row.sequence.pages) + spare
        return num_pages * self.pages.page_size - row.start - row.count

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
        most = len(sequence.tokens) - (sequence.block == 1)
        reuses = sequence.generates and not sequence.scores_prompt
        path = self.pages.match(sequence.keys, most) if reuses else []
        self.pages.lock(path)
        sequence.path = path[-1] if path else self.pages.root
        sequence.pages = [node.page for node in path]
        sequence.num_shared = len(path)
        sequence.computed = len(path) * self.pages.page_size

    def _has_room(self, sequence: TokenSequence) -> bool:
        """All of its tokens and the next page must fit beside the others; alone it may take what there is."""
        total = -(-(len(sequence.tokens) + sequence.block) // self.pages.page_size)
        return not self.running or total - len(sequence.pages) <= self.pages.num_available

    def _next_page_key(self, sequence: TokenSequence) -> tuple[int, tuple[int, ...]] | None:
        """Where the next full page that it computes will hang in the tree; None when nobody could use it."""
        size, start = self.pages.page_size, sequence.num_shared * self.pages.page_size
        if not self.pages.reuses or start + size > len(sequence.tokens):
            return None
        return id(sequence.path), tuple(sequence.keys[start : start + size])

    # -- the end of a step and of a sequence -----------------------------------------------------------------

    def _advance(self, row: Row, accepted: Sequence[int]) -> list[Outcome]:
        sequence = row.sequence
        assert accepted or not row.samples or sequence.block > 1, "a row that samples yields a token"
        outcomes = self._append(sequence, accepted)
        num_valid = row.num_known + _num_agreeing(accepted[: len(outcomes)], row.draft)
        # A position has seen its whole block, so what follows a wrong guess there is wrong in all of it.
        sequence.computed = (row.start + num_valid) // sequence.block * sequence.block
        self._share_full_pages(sequence)
        if not sequence.generates and not sequence.remaining:
            outcomes = [Outcome(sequence, None, "stop")]
        if sequence.block == 1:
            sequence.draft = ()
        if outcomes and outcomes[-1].finish is not None:
            self._stop(sequence)
        return outcomes

    def _append(self, sequence: TokenSequence, tokens: Sequence[int]) -> list[Outcome]:
        """Up to the first that ends the sequence."""
        outcomes = []
        for token in tokens:
            sequence.append(token)
            outcomes.append(Outcome(sequence, token, self._finish_reason(sequence, token)))
            if outcomes[-1].finish is not None:
                break
        return outcomes

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


def _num_agreeing(tokens: Sequence[int], draft: Sequence[int]) -> int:
    """How many of the first tokens are as they were guessed."""
    agree = (token == guess for token, guess in zip(tokens, draft))
    return sum(1 for _ in takewhile(bool, agree))
