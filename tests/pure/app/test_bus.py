import asyncio
import random
import threading

import pytest

from app.bus import Bus, Direct, Overrun, Replaced, Subscription
from app.events import (
    Event,
    ExecutionCached,
    ExecutionEnd,
    ExecutionInterrupted,
    ExecutionStart,
    NodeFinished,
    NodeName,
    NodePreview,
    NodeProgress,
    NodeStarted,
    NodeText,
    QueueChanged,
)
from app.replay import Numbered

NODE = NodeName("3", "3")


def progress(value: float, client_id: str | None = "me", node: NodeName = NODE) -> NodeProgress:
    return NodeProgress("p", client_id, node, value, 10)


async def heard(subscription: Subscription) -> Event | Direct:
    message = await subscription.receive()
    return message if isinstance(message, Direct) else message.event


async def drain(subscription: Subscription) -> list[Event | Direct]:
    received = []
    while True:
        try:
            received.append(await asyncio.wait_for(heard(subscription), 0.01))
        except TimeoutError:
            return received


async def test_a_client_hears_only_its_own_prompts() -> None:
    bus = Bus()
    mine, other = bus.subscribe("me"), bus.subscribe("other")
    bus.publish(ExecutionStart("p", "me"))
    bus.publish(QueueChanged(1))
    assert await drain(mine) == [ExecutionStart("p", "me"), QueueChanged(1)]
    assert await drain(other) == [QueueChanged(1)]


async def test_of_an_unowned_prompt_everybody_hears_progress_but_nobody_hears_starts_and_ends() -> None:
    bus = Bus()
    listeners = [bus.subscribe("a"), bus.subscribe("b")]
    for event in (
        ExecutionStart("p", None),
        progress(1, client_id=None),
        ExecutionCached("p", None, ()),
        ExecutionInterrupted("p", None, "3", "Sampler", ()),
        ExecutionEnd("p", None),
    ):
        bus.publish(event)
    for listener in listeners:
        assert [type(event) for event in await drain(listener)] == [NodeProgress, ExecutionInterrupted]


async def test_unread_progress_previews_and_text_keep_only_the_newest_of_each_node() -> None:
    bus = Bus()
    mine = bus.subscribe("me")
    other = NodeName("4", "4")
    for value in range(100):
        bus.publish(progress(value))
        bus.publish(progress(value, node=other))
        bus.publish(NodePreview("p", "me", NODE, b"%d" % value, "image/png"))
        bus.publish(NodeText("p", "me", NODE, "x" * value))
    assert await drain(mine) == [
        progress(99),
        progress(99, node=other),
        NodePreview("p", "me", NODE, b"99", "image/png"),
        NodeText("p", "me", NODE, "x" * 99),
    ]


async def test_an_update_never_overtakes_the_start_of_its_node() -> None:
    bus = Bus()
    mine = bus.subscribe("me")
    bus.publish(progress(1))
    bus.publish(NodeFinished("p", "me", NODE, None))
    bus.publish(NodeStarted("p", "me", NODE))
    bus.publish(progress(2))
    assert [type(event) for event in await drain(mine)] == [NodeFinished, NodeStarted, NodeProgress]


async def test_a_client_that_never_reads_is_dropped_and_holds_a_bounded_backlog() -> None:
    bus = Bus(limit=50)
    lazy, keen = bus.subscribe("lazy"), bus.subscribe("keen")
    for number in range(200):
        bus.publish(QueueChanged(number))
        bus.publish(progress(number, client_id="lazy"))
        bus.publish(ExecutionStart(str(number), "lazy"))
        assert await heard(keen) == QueueChanged(number)
    assert len(lazy._pending) <= 51
    with pytest.raises(Overrun):
        await lazy.receive()


async def test_a_full_backlog_still_tells_the_newest_queue_length() -> None:
    bus = Bus(limit=4)
    slow = bus.subscribe("slow")
    for number in range(100):
        bus.publish(QueueChanged(number))
    received = await drain(slow)
    assert received[-1] == QueueChanged(99)
    assert len(received) == 5


async def test_the_newest_connection_of_a_client_id_replaces_the_older() -> None:
    bus = Bus()
    older = bus.subscribe("me")
    newer = bus.subscribe("me")
    with pytest.raises(Replaced):
        await older.receive()
    bus.unsubscribe(older)
    bus.publish(ExecutionStart("p", "me"))
    assert await drain(newer) == [ExecutionStart("p", "me")]


async def test_a_client_that_connects_late_learns_which_node_of_its_prompt_runs() -> None:
    bus = Bus()
    started = NodeStarted("p", "me", NODE)
    bus.publish(started)
    assert bus.running_node("me") == started
    assert bus.running_node("other") is None
    bus.publish(ExecutionEnd("p", "me"))
    assert bus.running_node("me") is None


async def test_who_writes_many_at_once_takes_what_is_there_in_order_and_no_more_than_asked_for() -> None:
    bus = Bus()
    mine = bus.subscribe("me")
    for number in range(5):
        bus.publish(QueueChanged(number))
    taken = [await mine.receive(), *mine.unread(2)]
    assert [one.event for one in taken if isinstance(one, Numbered)] == [QueueChanged(i) for i in range(3)]
    assert await drain(mine) == [QueueChanged(3), QueueChanged(4)]
    assert mine.unread(9) == []


async def test_events_of_many_threads_arrive_complete_and_each_thread_in_order() -> None:
    bus = Bus(limit=10_000)
    mine = bus.subscribe("me")

    def work(name: str) -> None:
        for number in range(300):
            bus.publish(ExecutionCached(name, "me", (str(number),)))

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    received = [await heard(mine) for _ in range(4 * 300)]
    for name in "abcd":
        numbers = [event.nodes[0] for event in received if event.prompt_id == name]  # type: ignore[union-attr]
        assert numbers == [str(number) for number in range(300)]


@pytest.mark.parametrize("seed", range(20))
async def test_whatever_the_reader_does_nothing_but_stale_updates_is_lost(seed: int) -> None:
    chance = random.Random(seed)
    bus = Bus()
    mine = bus.subscribe("me")
    certain: list[Event] = []
    newest: dict[str, float] = {}
    received: list[Event | Direct] = []
    for step in range(400):
        if chance.random() < 0.5:
            node = NodeName(*chance.choice([("1", "1"), ("2", "2")]))
            newest[node.node_id] = step
            bus.publish(progress(step, node=node))
        else:
            certain.append(ExecutionCached("p", "me", (str(step),)))
            bus.publish(certain[-1])
        while mine._pending and chance.random() < 0.4:
            received.append(await heard(mine))
    received += await drain(mine)
    assert [event for event in received if isinstance(event, ExecutionCached)] == certain
    updates = [event for event in received if isinstance(event, NodeProgress)]
    assert [event.value for event in updates] == sorted(event.value for event in updates)
    assert {event.node.node_id: event.value for event in updates} == newest


async def test_numbers_tell_a_client_that_comes_back_what_it_missed() -> None:
    bus = Bus(first_number=1000)
    gap = Direct("some are lost")
    first = bus.subscribe("me", since=0, gap=gap)
    bus.publish(ExecutionStart("p", "me"))
    seen = await first.receive()
    assert isinstance(seen, Numbered)
    assert seen.number == 1000
    bus.unsubscribe(first)
    bus.publish(NodeStarted("p", "me", NODE))
    bus.publish(ExecutionStart("q", "other"))
    bus.publish(progress(1))
    bus.publish(progress(2))
    again = bus.subscribe("me", since=seen.number, gap=gap)
    bus.publish(NodeFinished("p", "me", NODE, None))
    came = [await again.receive() for _ in range(4)]
    assert [(one.number, type(one.event)) for one in came if isinstance(one, Numbered)] == [
        (1000, ExecutionStart),
        (1001, NodeStarted),
        (1004, NodeProgress),
        (1005, NodeFinished),
    ]
    assert await heard(bus.subscribe("me", since=7, gap=gap)) == gap


async def test_a_client_that_does_not_ask_is_told_nothing_again() -> None:
    bus = Bus()
    bus.publish(ExecutionStart("p", "me"))
    assert await drain(bus.subscribe("me")) == []
