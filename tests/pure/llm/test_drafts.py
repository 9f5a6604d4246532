"""Rows with drafts: what is computed stays true, whatever is guessed, confirmed, cut short or taken back."""

from __future__ import annotations

import random
from collections.abc import Sequence

from runtime.llm.pages import Pages
from runtime.llm.scheduler import Scheduler
from runtime.llm.sequence import Row, TokenSequence
from runtime.llm.speculation import Ngrams, confirmed


def scheduler(num_pages: int = 64, page_size: int = 4, budget: int = 16, rows: int = 8) -> Scheduler:
    return Scheduler(Pages(num_pages, page_size), max_batch_tokens=budget, max_rows=rows)


def decoding(it: Scheduler, name: str, tokens: Sequence[int], new: int = 12) -> TokenSequence:
    """A sequence whose prompt is computed."""
    made = TokenSequence(name, list(tokens), len(tokens) + new)
    it.add(made)
    it.commit(it.schedule(), [[9]])
    return made


def writing(tokens: Sequence[int], block: int = 4, new: int = 8, **settings: object) -> TokenSequence:
    """A sequence that comes in blocks, the first of them all masks (0)."""
    draft = (0,) * (block - len(tokens) % block)
    return TokenSequence("a", list(tokens), len(tokens) + new, block=block, draft=draft, **settings)  # type: ignore[arg-type]


def test_a_draft_is_computed_with_the_last_token_and_kept_as_far_as_it_was_right() -> None:
    it = scheduler()
    a = decoding(it, "a", [1, 2, 3])
    a.draft = (4, 5, 6)
    (row,) = it.schedule()
    assert (row.start, row.count, row.tokens, row.num_sampled) == (3, 4, [9, 4, 5, 6], 4)
    outcomes = it.commit([row], [[4, 5, 7]])
    assert [each.token for each in outcomes] == [4, 5, 7]
    assert a.tokens == [1, 2, 3, 9, 4, 5, 7]
    assert (a.computed, a.draft) == (6, ())
    it.check()


def test_the_end_inside_a_draft_drops_what_follows() -> None:
    it = scheduler()
    a = decoding(it, "a", [1, 2, 3])
    a.end_ids, a.draft = frozenset({5}), (4, 5, 6)
    outcomes = it.commit(it.schedule(), [[4, 5, 6, 8]])
    assert [(each.token, each.finish) for each in outcomes] == [(4, None), (5, "stop")]
    assert it.running == []
    assert it.pages.num_used == 0


def test_a_draft_never_reaches_beyond_the_length() -> None:
    it = scheduler()
    a = decoding(it, "a", [1, 2, 3], new=3)
    a.draft = (4, 5, 6)
    (row,) = it.schedule()
    assert row.draft == (4,)
    assert [each.finish for each in it.commit([row], [[4, 8]])] == [None, "length"]


def test_prompts_come_before_guesses() -> None:
    it = scheduler(budget=8)
    a = decoding(it, "a", [1, 2, 3])
    it.add(TokenSequence("b", [5, 6, 7, 8, 9], 9))
    a.draft = (4, 5, 6)
    rows = it.schedule()
    assert [(row.sequence.id, row.count, len(row.draft)) for row in rows] == [("a", 3, 2), ("b", 5, 0)]


def test_a_guess_takes_no_page_that_another_needs() -> None:
    it = scheduler(num_pages=3, page_size=2)
    both = [TokenSequence(name, [token], 6) for name, token in (("a", 1), ("b", 3))]
    for each in both:
        it.add(each)
    it.commit(it.schedule(), [[9], [9]])
    for each in both:
        each.draft = (4, 5)
    rows = it.schedule()
    assert it.preemptions == 0
    assert [row.draft for row in rows] == [(), ()]


def test_a_finished_block_is_computed_with_the_next_one_in_one_row() -> None:
    it = scheduler()
    a = writing([1, 2, 3, 4, 5])
    it.add(a)
    (row,) = it.schedule()
    assert (row.start, row.count, row.draft, row.num_sampled) == (0, 8, (0, 0, 0), 3)
    assert it.commit([row], [[]]) == []
    assert a.computed == 4
    a.draft = (6, 0, 7)
    (row,) = it.schedule()
    assert (row.start, row.count, row.tokens) == (4, 4, [5, 6, 0, 7])
    a.draft = (0, 0, 0, 0)
    outcomes = it.commit([row], [[6, 8, 7]])
    assert [each.token for each in outcomes] == [6, 8, 7]
    assert a.computed == 4, "the block was computed with a mask in it"
    (row,) = it.schedule()
    assert (row.start, row.count, row.tokens) == (4, 8, [5, 6, 8, 7, 0, 0, 0, 0])


def test_a_block_that_was_computed_as_it_stays_is_not_computed_again() -> None:
    it = scheduler()
    a = writing([1, 2, 3, 4])
    a.draft = (5, 6, 7, 8)
    it.add(a)
    rows = it.schedule()
    a.draft = (0, 0, 0, 0)
    it.commit(rows, [[5, 6, 7, 8]])
    (row,) = it.schedule()
    assert (row.start, row.count) == (8, 4)


def test_chunks_of_a_prompt_hold_whole_blocks() -> None:
    it = scheduler(budget=10)
    it.add(writing(list(range(1, 16))))
    counts = []
    for accepted in ([], [[]]):
        rows = it.schedule()
        counts += [(row.count, row.samples) for row in rows]
        it.commit(rows, accepted)
    assert counts == [(8, False), (8, True)]


def trusted(count: int = 4) -> Ngrams:
    made = Ngrams()
    made.learn(count)
    return made


def test_what_is_known_of_a_sequence_is_proposed_again() -> None:
    grams = trusted()
    assert grams.propose([1, 2, 3, 4, 5], 3) == ()
    assert grams.propose([1, 2, 3, 4, 5, 8, 2, 3], 3) == (4, 5, 8)
    assert grams.propose([1, 2, 3, 4, 5, 8, 2, 3, 9, 9, 2, 3], 2) == (9, 9), "the last time counts"
    assert grams.propose([1, 2, 3, 4, 5, 8, 2, 3, 9, 9, 2, 3, 4, 5], 2) == (8, 2), "the longest run counts"


def test_a_cycle_is_proposed_on_and_on() -> None:
    assert trusted().propose([7, 1, 2, 3, 1, 2, 3, 1, 2], 7) == (3, 1, 2, 3, 1, 2, 3)


def test_more_is_guessed_where_guesses_were_right() -> None:
    grams, tokens = Ngrams(), [7, 1, 2, 3, 1, 2]
    sizes = []
    for num_right in (2, 4, 1, 0, 1):
        sizes.append(len(grams.propose(tokens, 6)))
        grams.learn(num_right)
    assert sizes == [2, 4, 6, 2, 1]


def test_guesses_are_confirmed_up_to_the_first_wrong_one() -> None:
    assert confirmed((4, 5), (4, 5, 6)) == (4, 5, 6)
    assert confirmed((4, 5), (4, 7, 6)) == (4, 7)
    assert confirmed((4, 5), (3, 5, 6)) == (3,)
    assert confirmed((), (3,)) == (3,)


class Memory:
    """What each place of each page was computed from: all tokens that the position saw."""

    def __init__(self, page_size: int) -> None:
        self.page_size = page_size
        self.seen: dict[tuple[int, int], int] = {}

    def write(self, row: Row) -> None:
        tokens = row.sequence.tokens[: row.start] + row.tokens
        for position in range(row.start, row.start + row.count):
            page = row.sequence.pages[position // self.page_size]
            self.seen[page, position % self.page_size] = _view(tokens, position, row.sequence.block)

    def check(self, sequence: TokenSequence) -> None:
        for position in range(sequence.computed):
            page = sequence.pages[position // self.page_size]
            want = _view(sequence.tokens, position, sequence.block)
            assert self.seen[page, position % self.page_size] == want, (sequence, position)


def _view(tokens: list[int], position: int, block: int) -> int:
    return hash(tuple(tokens[: (position // block + 1) * block]))


def walk_at_random(seed: int, most_block: int) -> tuple[int, int]:
    """Every sequence has the walk's block, since a block is a model's. Preemptions and accepted guesses."""
    choose = random.Random(seed)
    block = choose.choice([2, 4]) if most_block > 1 else 1
    page_size = block * choose.randint(1, 2) if block > 1 else choose.randint(1, 4)
    it = scheduler(choose.randint(4, 10), page_size, choose.randint(1, 24), choose.randint(1, 6))
    memory, num_confirmed = Memory(page_size), 0
    alive: dict[str, TokenSequence] = {}
    for number in range(choose.randint(1, 8)):
        prompt = [choose.randint(1, 2) for _ in range(choose.randint(1, min(8, it.capacity - 1)))]
        length = len(prompt) + choose.randint(1, min(16, it.capacity - len(prompt)))
        ends = frozenset({choose.randint(3, 60)})
        alive[str(number)] = TokenSequence(str(number), prompt, length, end_ids=ends, block=block)
    coming, ended = list(alive.values()), set[str]()
    for _ in range(2000):
        if coming and choose.random() < 0.5:
            it.add(coming.pop())
        if choose.random() < 0.02:
            ended.add(dropped := choose.choice(list(alive)))
            it.cancel(alive[dropped])
            coming = [each for each in coming if each.id != dropped]
        for each in alive.values():
            each.draft = next_draft(choose, each)
        rows = it.schedule()
        it.check()
        assert sum(row.count for row in rows) <= it.max_batch_tokens + block - 1
        assert len({row.sequence.id for row in rows}) == len(rows) <= it.max_rows
        assert rows or not it.running, "running sequences always make progress"
        for row in rows:
            memory.write(row)
        accepted = [choice_of(choose, row) for row in rows if row.samples]
        for outcome in it.commit(rows, accepted):
            assert outcome.sequence.id not in ended
            if outcome.finish:
                ended.add(outcome.sequence.id)
        num_confirmed += sum(max(0, len(each) - 1) for each in accepted)
        it.check()
        for each in it.running:
            memory.check(each)
        if ended == set(alive):
            assert it.pages.num_used == 0
            return it.preemptions, num_confirmed
    raise AssertionError(f"walk {seed} never ends")


def next_draft(choose: random.Random, sequence: TokenSequence) -> tuple[int, ...]:
    """Few different tokens, so that prefixes are shared and guesses come true. 0 is the mask."""
    if sequence.block == 1:
        return tuple(choose.randint(1, 3) for _ in range(choose.randint(0, 5)))
    length = sequence.block - len(sequence.tokens) % sequence.block
    return tuple(choose.randint(0, 2) for _ in range(length))


def choice_of(choose: random.Random, row: Row) -> list[int]:
    draft = list(row.draft)
    if row.sequence.block == 1:
        right = choose.randint(0, len(draft))
        return [*draft[:right], choose.randint(1, 60) if choose.random() < 0.2 else choose.randint(1, 3)]
    if choose.random() < 0.5:
        return []
    return draft if 0 not in draft else [choose.randint(1, 60) for _ in draft]


def test_random_walks_with_guesses_keep_only_what_is_true() -> None:
    walks = [walk_at_random(seed, 1) for seed in range(800)]
    assert sum(preemptions for preemptions, _ in walks) > 100, "the walks must meet the case of full memory"
    assert sum(guesses for _, guesses in walks) > 1000, "the walks must meet guesses that come true"


def test_random_walks_in_blocks_keep_only_what_is_true() -> None:
    walks = [walk_at_random(seed, 4) for seed in range(800)]
    assert sum(preemptions for preemptions, _ in walks) > 100, "the walks must meet the case of full memory"
