import asyncio
import threading

import pytest

from runtime.platform.handle import Cancelled, CancelledEvent, Done, Event, Failed, Handle, Started


def ignore(_: str) -> None:
    pass


async def test_events_arrive_in_order_from_another_thread() -> None:
    handle: Handle[int] = Handle("r", ignore)

    def engine() -> None:
        handle.deliver(Started("r"))
        for _ in range(50):
            handle.deliver(Event("r"))
        handle.deliver(Done("r", 7))

    thread = threading.Thread(target=engine)
    thread.start()
    seen = [event async for event in handle]
    thread.join()
    assert len(seen) == 52
    assert isinstance(seen[0], Started)
    assert isinstance(seen[-1], Done)
    assert await handle == 7


async def test_two_readers_and_a_late_one_see_everything() -> None:
    handle: Handle[str] = Handle("r", ignore)

    async def count() -> int:
        return len([event async for event in handle])

    readers = [asyncio.create_task(count()) for _ in range(2)]
    await asyncio.sleep(0)
    handle.deliver(Started("r"))
    handle.deliver(Done("r", "x"))
    assert await asyncio.gather(*readers) == [2, 2]
    assert await count() == 2


async def test_a_failure_is_raised_where_it_is_awaited() -> None:
    handle: Handle[int] = Handle("r", ignore)
    handle.deliver(Failed("r", ValueError("too large")))
    with pytest.raises(ValueError, match="too large"):
        await handle


async def test_cancel_asks_the_engine_and_awaiting_says_so() -> None:
    asked: list[str] = []
    handle: Handle[int] = Handle("r", asked.append)
    handle.cancel()
    handle.deliver(CancelledEvent("r"))
    assert asked == ["r"]
    with pytest.raises(Cancelled):
        await handle


def test_a_plain_thread_can_wait() -> None:
    handle: Handle[int] = Handle("r", ignore)
    with pytest.raises(TimeoutError):
        handle.wait(0.01)
    threading.Timer(0.02, handle.deliver, [Done("r", 3)]).start()
    assert handle.wait(5) == 3


def test_nothing_may_follow_the_end() -> None:
    handle: Handle[int] = Handle("r", ignore)
    handle.deliver(Done("r", 1))
    with pytest.raises(AssertionError):
        handle.deliver(Started("r"))
