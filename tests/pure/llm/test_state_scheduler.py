"""Sequences whose layers carry states: what a slot holds is always what its sequence has computed."""

from __future__ import annotations

import random

import pytest

from runtime.llm.pages import Pages
from runtime.llm.sequence import Row, TokenSequence
from runtime.llm.state_scheduler import StateScheduler
from runtime.llm.state_slots import StateSlots


class World:
    """A machine whose state of a sequence is the list of the keys that went into it."""

    def __init__(self, num_pages: int = 24, num_rows: int = 4, num_kept: int = 5, tokens: int = 12) -> None:
        self.slots = StateSlots(num_rows, num_kept)
        self.scheduler = StateScheduler(Pages(num_pages, 4), self.slots, max_batch_tokens=tokens, max_rows=99)
        self.states: dict[int, list[int]] = {}
        self.computed = 0

    def add(self, *tokens: int, new: int = 3, generates: bool = True) -> TokenSequence:
        length = len(tokens) + (new if generates else 0)
        sequence = TokenSequence("s", list(tokens), length, generates=generates)
        self.scheduler.add(sequence)
        return sequence

    def step(self) -> list[Row]:
        rows = self.scheduler.schedule()
        for source, target in self.slots.take_moves():
            self.states[target] = list(self.states[source])
        for row in rows:
            self._compute(row)
        self.scheduler.commit(rows, [(len(row.sequence.tokens) % 5,) for row in rows if row.samples])
        self.scheduler.check()
        return rows

    def _compute(self, row: Row) -> None:
        slot = row.sequence.slot
        assert slot is not None
        before = self.states[slot] if row.start else []
        assert before == row.sequence.keys[: row.start], "the state is another one's"
        self.states[slot] = row.sequence.keys[: row.start + row.count]
        self.computed += row.count

    def finish(self) -> None:
        while self.scheduler.running or self.scheduler.waiting:
            assert self.step()


@pytest.mark.parametrize("num_kept", [0, 1, 5])
@pytest.mark.parametrize("seed", range(4))
def test_a_random_walk_never_mixes_states(seed: int, num_kept: int) -> None:
    world, choose = World(num_kept=num_kept), random.Random(seed)
    known: list[TokenSequence] = []
    for _ in range(200):
        if choose.random() < 0.4:
            prefix = (choose.randint(0, 2),) * choose.randint(0, 30)
            tail = [choose.randint(0, 9) for _ in range(choose.randint(1, 20))]
            known.append(world.add(*prefix, *tail, new=choose.randint(1, 9), generates=choose.random() < 0.9))
        if known and choose.random() < 0.1:
            world.scheduler.cancel(choose.choice(known))
        world.step()
    world.finish()
    assert world.scheduler.pages.num_used == 0


def test_who_comes_second_begins_at_the_end_of_the_prompt_before() -> None:
    world = World()
    world.add(*range(10))
    world.finish()
    again = world.add(*range(10), 77)
    world.finish()
    assert again.cached_tokens == 8


def test_where_two_prompts_part_a_state_is_kept_for_the_third() -> None:
    world = World()
    cached = []
    for tail in ((50,) * 6, (60,) * 6, (70,) * 6):
        sequence = world.add(*range(8), 9, 9, *tail)
        world.finish()
        cached.append(sequence.cached_tokens)
    assert cached == [0, 0, 8]


def test_requests_alike_wait_for_the_one_that_leaves_its_state() -> None:
    world = World(num_pages=60, tokens=8)
    sequences = [world.add(*range(21)) for _ in range(4)]
    world.finish()
    assert [each.cached_tokens for each in sequences] == [0, 20, 20, 20]
    assert world.computed == 21 + 3 * 1 + 4 * 2


def test_the_least_recently_used_state_gives_way() -> None:
    world = World(num_kept=2)
    prompts = [tuple(range(start, start + 9)) for start in (0, 100, 200)]
    for prompt in (prompts[0], prompts[1], prompts[0], prompts[2]):
        world.add(*prompt)
        world.finish()
    cached = []
    for prompt in (prompts[0], prompts[1]):
        sequence = world.add(*prompt)
        world.finish()
        cached.append(sequence.cached_tokens)
    assert cached == [8, 0]


def test_no_chunk_goes_across_a_stop_or_ends_inside_an_atom() -> None:
    world = World(tokens=30)
    sequence = world.add(*range(23))
    sequence.atoms = ((18, 22),)
    ends = []
    while sequence.computed < 23:
        ends += [row.start + row.count for row in world.step()]
    assert ends == [23], "the last full page ends inside the atom, so no state is kept there"
