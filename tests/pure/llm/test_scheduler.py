import random
import subprocess
import sys

from runtime.llm.pages import Pages
from runtime.llm.scheduler import Scheduler
from runtime.llm.sequence import TokenSequence


def scheduler(num_pages: int = 64, page_size: int = 4, budget: int = 16, rows: int = 8) -> Scheduler:
    return Scheduler(Pages(num_pages, page_size), max_batch_tokens=budget, max_rows=rows)


def sequence(name: str, tokens: list[int], new: int = 4, **settings: object) -> TokenSequence:
    return TokenSequence(name, list(tokens), len(tokens) + new, **settings)  # type: ignore[arg-type]


def step(it: Scheduler, token: int = 7) -> list[tuple[str, int, int]]:
    rows = it.schedule()
    it.check()
    it.commit(rows, [[token]] * sum(row.samples for row in rows))
    it.check()
    return [(row.sequence.id, row.start, row.count) for row in rows]


def test_it_needs_no_torch() -> None:
    code = "import sys, runtime.llm.scheduler; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_long_prompt_is_cut_into_chunks_and_never_delays_a_token() -> None:
    it = scheduler(budget=8)
    it.add(sequence("short", [1, 2, 3]))
    it.add(sequence("long", list(range(10, 30))))
    assert step(it) == [("short", 0, 3), ("long", 0, 5)]
    assert step(it) == [("short", 3, 1), ("long", 5, 7)]
    assert step(it) == [("short", 4, 1), ("long", 12, 7)]
    assert step(it) == [("short", 5, 1), ("long", 19, 1)]
    assert step(it) == [("long", 20, 1)]


def test_the_end_is_a_token_or_a_length() -> None:
    it = scheduler()
    it.add(sequence("a", [1], new=2))
    it.add(sequence("b", [2], new=9, end_ids=frozenset({7})))
    first = it.commit(it.schedule(), [[5], [5]])
    assert [(each.token, each.finish) for each in first] == [(5, None), (5, None)]
    second = it.commit(it.schedule(), [[7], [7]])
    assert [(each.sequence.id, each.token, each.finish) for each in second] == [
        ("a", 7, "length"),
        ("b", 7, "stop"),
    ]
    assert it.schedule() == []
    assert it.pages.num_used == 0


def test_a_second_use_of_a_prefix_computes_only_the_rest() -> None:
    it = scheduler(budget=64)
    it.add(sequence("a", list(range(13)), new=1))
    step(it)
    it.add(again := sequence("b", [*range(13), 99]))
    assert step(it) == [("b", 12, 2)]
    assert again.cached_tokens == 12


def test_an_answer_is_cached_for_the_next_turn() -> None:
    it = scheduler(budget=64)
    it.add(first := sequence("a", [1, 2, 3], new=6))
    while step(it):
        pass
    it.add(sequence("b", [*first.tokens, 50, 51]))
    assert step(it) == [("b", 8, 3)]


def test_equal_prompts_in_one_step_compute_their_prefix_once() -> None:
    it = scheduler(budget=64)
    for name in "abc":
        it.add(sequence(name, list(range(9))))
    it.add(sequence("other", [5, 5, 5, 5]))
    assert step(it) == [("a", 0, 9), ("other", 0, 4)]
    assert step(it) == [("a", 9, 1), ("other", 4, 1), ("b", 8, 1), ("c", 8, 1)]


def test_without_reuse_nobody_waits_for_a_prefix_and_nobody_finds_one() -> None:
    it = Scheduler(Pages(64, 4, reuses=False), max_batch_tokens=64, max_rows=8)
    for name in "ab":
        it.add(sequence(name, list(range(9)), new=1))
    assert step(it) == [("a", 0, 9), ("b", 0, 9)]
    it.add(later := sequence("c", list(range(9))))
    assert step(it) == [("c", 0, 9)]
    assert later.cached_tokens == 0


def test_hidden_states_are_computed_for_the_whole_prompt() -> None:
    it = scheduler(budget=64)
    it.add(sequence("a", list(range(8))))
    step(it)
    it.add(embed := sequence("b", list(range(8)), new=0, generates=False))
    assert ("b", 0, 8) in step(it)
    assert embed not in it.running
    assert embed.cached_tokens == 0


def test_the_youngest_gives_way_when_pages_run_out_and_comes_back() -> None:
    it = scheduler(num_pages=4, page_size=2)
    it.add(old := sequence("old", [1, 2, 3], new=5))
    it.add(young := sequence("young", [4, 5], new=4))
    seen = []
    while rows := step(it):
        seen.append([name for name, _, _ in rows])
    assert it.preemptions > 0
    assert len(old.tokens) == 8
    assert len(young.tokens) == 6
    assert seen[-1] == ["young"]


def test_cancel_while_the_batch_is_on_the_device_drops_its_row() -> None:
    it = scheduler()
    it.add(gone := sequence("gone", [1, 2]))
    it.add(sequence("kept", [3, 4]))
    rows = it.schedule()
    it.cancel(gone)
    it.cancel(gone)
    assert [each.sequence.id for each in it.commit(rows, [[7], [8]])] == ["kept"]
    it.check()


def test_rows_that_were_not_committed_are_scheduled_again() -> None:
    it = scheduler()
    it.add(sequence("a", [1, 2, 3]))
    first = it.schedule()
    assert it.schedule() == first


def walk_at_random(seed: int) -> int:
    choose = random.Random(seed)
    it = scheduler(choose.randint(4, 10), choose.randint(1, 4), choose.randint(1, 24), choose.randint(1, 6))
    alive: dict[str, TokenSequence] = {}
    for number in range(choose.randint(1, 8)):
        prompt = [choose.randint(0, 1) for _ in range(choose.randint(1, min(8, it.capacity - 1)))]
        new = choose.randint(0, min(16, it.capacity - len(prompt)))
        each = sequence(
            str(number), prompt, new, generates=new > 0, end_ids=frozenset({choose.randint(2, 40)})
        )
        alive[each.id] = each
    coming, ended = list(alive.values()), set[str]()
    for _ in range(1000):
        if coming and choose.random() < 0.5:
            it.add(coming.pop())
        if choose.random() < 0.03:
            ended.add(dropped := choose.choice(list(alive)))
            it.cancel(alive[dropped])
            coming = [each for each in coming if each.id != dropped]
        rows = it.schedule()
        it.check()
        assert sum(row.count for row in rows) <= it.max_batch_tokens
        assert len({row.sequence.id for row in rows}) == len(rows) <= it.max_rows
        assert rows or not it.running, "running sequences always make progress"
        if rows and choose.random() < 0.03:
            ended.add(rows[0].sequence.id)
            it.cancel(rows[0].sequence)
        for outcome in it.commit(rows, [[choose.randint(2, 40)] for row in rows if row.samples]):
            assert outcome.sequence.id not in ended
            if outcome.finish:
                ended.add(outcome.sequence.id)
        it.check()
        if ended == set(alive):
            assert it.pages.num_used == 0
            return it.preemptions
    raise AssertionError(f"walk {seed} never ends")


def test_two_thousand_random_walks_end_and_lose_no_page() -> None:
    preemptions = sum(walk_at_random(seed) for seed in range(2000))
    assert preemptions > 500, f"{preemptions}: the walks must meet the case of full memory"
