"""Which rows go next: by key, oldest first, within limits, through faults."""

from __future__ import annotations

import random

import pytest

from runtime.diffusion.scheduler import GROWTH_AFTER_FULL_GROUPS, Group, Row, Scheduler


def rows(
    request_id: str, count: int = 1, key: str = "a", limit: int = 8, hold_until: float = 0.0
) -> list[Row]:
    return [Row(request_id, place, key, limit, hold_until) for place in range(count)]


def take(scheduler: Scheduler, now: float = 0.0) -> Group:
    group = scheduler.schedule(now)
    assert group is not None
    return group


def names(group: Group) -> list[str]:
    return [row.request_id for row in group.rows]


def test_rows_of_one_key_go_together_whoever_owns_them() -> None:
    scheduler = Scheduler()
    for name in "xyz":
        scheduler.add(rows(name, 2))
    assert names(take(scheduler)) == ["x", "x", "y", "y", "z", "z"]
    assert scheduler.num_waiting == 0


def test_a_group_keeps_to_its_limit_and_the_rest_waits() -> None:
    scheduler = Scheduler()
    scheduler.add(rows("x", 5, limit=3))
    first = take(scheduler)
    scheduler.done(first)
    assert [row.index for row in first.rows] == [0, 1, 2]
    assert [row.index for row in take(scheduler).rows] == [3, 4]


def test_keys_take_turns() -> None:
    scheduler = Scheduler()
    scheduler.add(rows("x", key="a"))
    scheduler.add(rows("y", key="b"))
    served = []
    for _ in range(6):
        group = take(scheduler)
        served.append(group.key)
        scheduler.done(group)
        scheduler.add(list(group.rows))
    assert served == ["a", "b"] * 3


def test_a_busy_key_cannot_starve_another() -> None:
    scheduler = Scheduler()
    scheduler.add(rows("crowd", 100, key="a", limit=4))
    scheduler.add(rows("lonely", key="b"))
    for turn in range(100):
        group = take(scheduler)
        scheduler.done(group)
        if group.key == "b":
            assert turn == 25
            return
        scheduler.add([Row("late", turn, "a", 4)])
    raise AssertionError("the other key never got its turn")


def test_dropped_rows_never_go() -> None:
    scheduler = Scheduler()
    for name in "xy":
        scheduler.add(rows(name, 2))
    scheduler.drop("x")
    assert names(take(scheduler)) == ["y", "y"]


def test_held_rows_wait_for_others_until_their_time() -> None:
    scheduler = Scheduler()
    scheduler.add(rows("x", hold_until=5.0))
    assert scheduler.schedule(4.0) is None
    assert scheduler.ready_at() == 5.0
    scheduler.add(rows("y", hold_until=6.0))
    assert names(take(scheduler, 5.0)) == ["x", "y"]


def test_a_full_group_need_not_wait() -> None:
    scheduler = Scheduler()
    scheduler.add(rows("x", 8, hold_until=5.0))
    assert len(take(scheduler, 0.0).rows) == 8


def test_held_rows_do_not_hold_back_another_key() -> None:
    scheduler = Scheduler()
    scheduler.add(rows("x", hold_until=5.0))
    scheduler.add(rows("y", key="b"))
    assert names(take(scheduler, 0.0)) == ["y"]


def test_out_of_memory_halves_the_limit_and_tries_the_same_rows_first() -> None:
    scheduler = Scheduler()
    scheduler.add(rows("x", 8))
    group = take(scheduler)
    scheduler.add(rows("later", 1))
    assert scheduler.out_of_memory(group)
    first = take(scheduler)
    assert first.rows == group.rows[:4]
    scheduler.done(first)
    assert take(scheduler).rows == group.rows[4:]


def test_another_key_keeps_its_limit() -> None:
    scheduler = Scheduler()
    scheduler.add(rows("x", 8))
    scheduler.add(rows("y", 8, key="b"))
    scheduler.out_of_memory(take(scheduler))
    assert scheduler.limit("a") == 4
    assert scheduler.limit("b") == 8


def test_a_single_row_is_tried_twice() -> None:
    scheduler = Scheduler()
    scheduler.add(rows("x"))
    assert scheduler.out_of_memory(take(scheduler))
    assert not scheduler.out_of_memory(take(scheduler))


def test_a_learnt_limit_grows_again_with_success() -> None:
    scheduler = Scheduler()
    scheduler.add(rows("x", 8))
    scheduler.out_of_memory(take(scheduler))
    scheduler.add(rows("y", 4 * GROWTH_AFTER_FULL_GROUPS))
    for _ in range(GROWTH_AFTER_FULL_GROUPS):
        group = take(scheduler)
        assert len(group.rows) == 4
        scheduler.done(group)
    assert len(take(scheduler).rows) == 5


def test_only_one_group_is_out() -> None:
    scheduler = Scheduler()
    scheduler.add(rows("x"))
    scheduler.add(rows("y", key="b"))
    take(scheduler)
    with pytest.raises(AssertionError, match="still out"):
        scheduler.schedule(0.0)


@pytest.mark.parametrize("seed", range(20))
def test_random_walks_lose_and_double_nothing(seed: int) -> None:
    choose = random.Random(seed)
    scheduler, now = Scheduler(), 0.0
    owed: set[Row] = set()
    served: set[Row] = set()
    waiting_since: dict[Row, int] = {}
    for turn in range(300):
        now += choose.random()
        if choose.random() < 0.5:
            held = now + choose.random() if choose.random() < 0.3 else 0.0
            limit = choose.choice([1, 3, 8])
            fresh = rows(f"r{turn}", choose.randint(1, 6), choose.choice("abc") + str(limit), limit, held)
            scheduler.add(fresh)
            owed.update(fresh)
            waiting_since.update(dict.fromkeys(fresh, turn))
        if owed and choose.random() < 0.1:
            victim = choose.choice(sorted(owed, key=repr)).request_id
            scheduler.drop(victim)
            owed = {row for row in owed if row.request_id != victim}
        group = scheduler.schedule(now)
        if group is None:
            continue
        assert group.rows
        assert len(group.rows) <= group.rows[0].limit
        assert {row.key for row in group.rows} == {group.key}
        assert set(group.rows) <= owed
        if choose.random() < 0.2 and scheduler.out_of_memory(group):
            continue
        if scheduler._out is not None:
            scheduler.done(group)
        served.update(group.rows)
        owed -= set(group.rows)
        assert scheduler.num_waiting == len(owed)
    while (group := scheduler.schedule(now + 10)) is not None:
        scheduler.done(group)
        owed -= set(group.rows)
    assert not owed
