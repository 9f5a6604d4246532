import random

from app.events import (
    Event,
    ExecutionCached,
    ExecutionEnd,
    ExecutionStart,
    NodeName,
    NodePreview,
    NodeProgress,
    QueueChanged,
)
from app.replay import Numbered, Replay

NODE = NodeName("3", "3")


def kept(replay: Replay, client_id: str) -> list[int]:
    return [numbered.number for numbered in replay.events(client_id)]


def fill(replay: Replay, *events: Event, start: int = 1) -> None:
    for number, event in enumerate(events, start=start):
        replay.add(Numbered(number, event))


def test_only_events_of_a_clients_own_prompts_are_kept():
    replay = Replay(1)
    fill(
        replay,
        ExecutionStart("p", "me"),
        QueueChanged(1),
        ExecutionStart("q", "you"),
        ExecutionStart("r", None),
    )
    assert (kept(replay, "me"), kept(replay, "you"), kept(replay, "they")) == ([1], [3], [])


def test_a_newer_update_takes_the_place_of_an_older_and_goes_when_its_prompt_ends():
    replay = Replay(1)
    fill(
        replay,
        NodeProgress("p", "me", NODE, 1, 9),
        NodePreview("p", "me", NODE, b"x", "image/png"),
        NodeProgress("p", "me", NODE, 2, 9),
        NodeProgress("q", "me", NODE, 2, 9),
    )
    assert kept(replay, "me") == [2, 3, 4]
    fill(replay, ExecutionEnd("p", "me"), start=5)
    assert kept(replay, "me") == [4, 5]


def test_what_exceeded_the_bound_is_known():
    replay = Replay(1, events_a_client=3)
    fill(replay, *(ExecutionStart(str(i), "me") for i in range(5)))
    assert kept(replay, "me") == [3, 4, 5]
    assert [replay.has_lost("me", since, latest=5) for since in range(6)] == [
        False,
        True,
        False,
        False,
        False,
        False,
    ]


def test_clients_that_were_quiet_longest_are_forgotten_first_and_told_so():
    replay = Replay(1, clients=2)
    fill(replay, *(ExecutionStart("p", name) for name in ("a", "b", "a", "c")))
    assert (kept(replay, "a"), kept(replay, "b"), kept(replay, "c")) == ([1, 3], [], [4])
    assert replay.has_lost("b", since=1, latest=4)
    assert not replay.has_lost("b", since=2, latest=4)
    assert not replay.has_lost("a", since=1, latest=4)


def test_numbers_of_another_process_are_told_from_those_of_this_one():
    replay = Replay(1000)
    fill(replay, ExecutionStart("p", "me"), start=1000)
    assert replay.has_lost("me", since=999, latest=1000)
    assert replay.has_lost("me", since=1001, latest=1000)
    assert not replay.has_lost("me", since=1000, latest=1000)


def test_whoever_saw_a_number_gets_all_after_it_or_hears_of_a_gap():
    for seed in range(20):
        chance = random.Random(seed)
        replay = Replay(1, events_a_client=chance.randint(1, 30), clients=chance.randint(1, 4))
        sent: dict[str, list[int]] = {name: [] for name in "abcde"}
        for number in range(1, 300):
            name = chance.choice("abcde")
            sent[name].append(number)
            replay.add(Numbered(number, ExecutionCached("p", name, ())))
            name, since = chance.choice("abcde"), chance.randint(1, number)
            if not replay.has_lost(name, since, number):
                missed = [one for one in sent[name] if one > since]
                assert [one for one in kept(replay, name) if one > since] == missed
