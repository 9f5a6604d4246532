"""Schedules models whose layers carry a state from token to token beside their keys and values.

A page holds no state, so a prefix can be taken over only where its state was kept: at the end of a prompt, at
the end of each of its media, and where prompts were seen to part.
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime.llm.pages import Node, Pages
from runtime.llm.scheduler import Outcome, Scheduler
from runtime.llm.sequence import Row, TokenSequence
from runtime.llm.state_slots import StateSlots


class StateScheduler(Scheduler):
    """A sequence holds a slot as long as it runs; one that comes back begins where a state was kept."""

    def __init__(self, pages: Pages, slots: StateSlots, *, max_batch_tokens: int, max_rows: int) -> None:
        super().__init__(pages, max_batch_tokens=max_batch_tokens, max_rows=min(max_rows, slots.num_rows))
        self.slots = slots

    def check(self) -> None:
        super().check()
        self.slots.check([each.slot for each in self.running if each.slot is not None])
        assert all(each.slot is None for each in self.waiting), "who waits holds no slot"

    def _start(self, sequence: TokenSequence) -> None:
        super()._start(sequence)
        assert sequence.path is not None
        parting = sequence.computed
        self._step_back(sequence, sequence.path)
        sequence.slot = self.slots.take()
        if sequence.computed:
            self.slots.restore(sequence.path, sequence.slot)
        is_of_use = sequence.generates and self.pages.reuses
        sequence.stops = self._stops(sequence, parting) if is_of_use else ()

    def _step_back(self, sequence: TokenSequence, matched: Node) -> None:
        """From the longest prefix with pages to the longest with a state."""
        node = self.slots.last_kept(matched)
        path = _path(node)
        self.pages.lock(path)
        self.pages.unlock(matched)
        sequence.path = node
        sequence.num_shared = len(path)
        sequence.pages = sequence.pages[: len(path)]
        sequence.computed = len(path) * self.pages.page_size

    def _stops(self, sequence: TokenSequence, parting: int) -> tuple[int, ...]:
        size = self.pages.page_size
        last = (sequence.prompt_length - 1) // size * size
        media = sequence.media.placed if sequence.media is not None else ()
        ends = {placed.span[1] // size * size for placed in media}
        stops = {each for each in (parting, last, *ends) if sequence.computed < each <= last}
        inside = {each for each in stops for start, stop in sequence.atoms if start < each < stop}
        return tuple(sorted(stops - inside))

    def _next_page_key(self, sequence: TokenSequence) -> tuple[int, tuple[int, ...]] | None:
        """The next prefix whose state it will leave: whoever needs the same one waits for it."""
        stop = self._awaited(sequence) or _next_stop(sequence)
        return None if stop is None else (stop, tuple(sequence.keys[:stop]))

    def _awaited(self, sequence: TokenSequence) -> int | None:
        """The end of a prefix that another sequence is about to compute for it."""
        if sequence in self.running:
            return None
        for other in self.running:
            stop = _next_stop(other)
            if stop in sequence.stops and sequence.keys[:stop] == other.keys[:stop]:
                return stop
        return None

    def _with_drafts(self, rows: list[Row]) -> list[Row]:
        """A guess that turns out wrong could not be taken back out of a state."""
        return rows

    def _advance(self, row: Row, tokens: Sequence[int]) -> list[Outcome]:
        outcomes = super()._advance(row, tokens)
        sequence = row.sequence
        if sequence.slot is not None and sequence.computed in sequence.stops:
            assert sequence.path is not None
            self.slots.keep(sequence.path, sequence.slot)
        return outcomes

    def _withdraw(self, sequence: TokenSequence) -> None:
        super()._withdraw(sequence)
        assert sequence.slot is not None
        self.slots.give_back(sequence.slot)
        sequence.slot, sequence.stops = None, ()


def _next_stop(sequence: TokenSequence) -> int | None:
    return next((each for each in sequence.stops if each > sequence.computed), None)


def _path(node: Node) -> Sequence[Node]:
    """From the root, without it, down to the node."""
    path = []
    while node.parent is not None:
        path.append(node)
        node = node.parent
    return path[::-1]
