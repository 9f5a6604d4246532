"""Who holds which slot of recurrent states: each running sequence one, and some computed prefixes one each.

Slots are integers: it knows no tensors. What has to be copied from slot to slot it writes down in order, for
whoever computes to carry out before the next forward.
"""

from __future__ import annotations

from collections import OrderedDict

from runtime.llm.pages import Node


class StateSlots:
    """The first `num_rows` slots are for sequences that run, the `num_kept` ones after them for prefixes.

    A kept state belongs to the node of the prefix tree at whose end it was taken, and is lost with it.
    """

    def __init__(self, num_rows: int, num_kept: int) -> None:
        assert num_rows > 0, num_rows
        self.num_rows = num_rows
        self.num_kept = num_kept
        self._free = list(range(num_rows - 1, -1, -1))
        self._unused = list(range(num_rows + num_kept - 1, num_rows - 1, -1))
        self._kept: OrderedDict[Node, int] = OrderedDict()
        self._moves: list[tuple[int, int]] = []

    @property
    def num_slots(self) -> int:
        return self.num_rows + self.num_kept

    def take(self) -> int:
        return self._free.pop()

    def give_back(self, slot: int) -> None:
        self._free.append(slot)
        self._moves = [(source, target) for source, target in self._moves if target != slot]

    def last_kept(self, node: Node) -> Node:
        """The deepest node from this one up whose state is kept; the root when there is none."""
        while node.parent is not None and node not in self._kept:
            node = node.parent
        return node

    def restore(self, node: Node, slot: int) -> None:
        """Begin in `slot` where the node's state ends."""
        self._kept.move_to_end(node)
        self._moves.append((self._kept[node], slot))

    def keep(self, node: Node, slot: int) -> None:
        """Keep what `slot` holds now as the state at the node's end; the least recently used gives way."""
        if self.num_kept == 0:
            return
        if node not in self._kept:
            if not self._unused:
                self._make_room()
            self._kept[node] = self._unused.pop()
            self._moves.append((slot, self._kept[node]))
        self._kept.move_to_end(node)

    def take_moves(self) -> list[tuple[int, int]]:
        """The copies, source and target, that have to be made next, in this order."""
        moves, self._moves = self._moves, []
        return moves

    def check(self, held: list[int]) -> None:
        """`held` are the slots of the running sequences. Every slot is in one place."""
        assert sorted([*self._free, *held]) == list(range(self.num_rows)), "a slot is lost or shared"
        places = sorted([*self._unused, *self._kept.values()])
        assert places == list(range(self.num_rows, self.num_slots)), "a kept state is lost or in two places"

    def _make_room(self) -> None:
        evicted = [node for node in self._kept if node.parent is None]
        for node in evicted or [next(iter(self._kept))]:
            self._unused.append(self._kept.pop(node))
