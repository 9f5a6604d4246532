import random

import pytest

from runtime.platform.errors import OutOfMemory
from runtime.platform.memory import Lease, Ledger, Reclaim


def test_a_lease_is_given_back_once() -> None:
    ledger = Ledger(100)
    with ledger.lease("weights", 60):
        assert ledger.free_bytes == 40
    assert ledger.free_bytes == 100
    lease = ledger.lease("weights", 1)
    lease.release()
    with pytest.raises(AssertionError, match="twice"):
        lease.release()


def test_reclaiming_follows_the_written_order_and_stops_when_there_is_room() -> None:
    ledger = Ledger(100)
    held = {kind: ledger.lease(kind.name, 30) for kind in (Reclaim.CONDITIONINGS, Reclaim.CACHED_PAGES)} | {
        Reclaim.IDLE_WEIGHTS: ledger.lease("IDLE_WEIGHTS", 30)
    }
    order: list[str] = []

    def reclaimer(kind: Reclaim) -> None:
        order.append(kind.name)
        held[kind].release()

    for kind in held:
        ledger.on_shortage(kind, lambda _, kind=kind: reclaimer(kind))
    ledger.lease("vae decode", 50)
    assert order == ["IDLE_WEIGHTS", "CACHED_PAGES"]


def test_what_does_not_fit_is_refused_with_the_sizes_and_the_holders() -> None:
    ledger = Ledger(10 * 2**20)
    ledger.lease("glyph transformer", 8 * 2**20)
    with pytest.raises(OutOfMemory, match=r"latents needs 5 MiB, and 2 MiB of 10 MiB .* glyph transformer 8"):
        ledger.lease("latents", 5 * 2**20)


def test_random_leases_never_exceed_the_capacity() -> None:
    for seed in range(200):
        rng = random.Random(seed)
        ledger = Ledger(rng.randint(1, 1000))
        cached: list[Lease] = []
        live: list[Lease] = []
        ledger.on_shortage(Reclaim.CACHED_PAGES, lambda _, cached=cached: cached and cached.pop().release())
        for _ in range(50):
            try:
                lease = ledger.lease(rng.choice("abc"), rng.randint(0, 300))
                (cached if rng.random() < 0.3 else live).append(lease)
            except OutOfMemory:
                pass
            if live and rng.random() < 0.5:
                live.pop(rng.randrange(len(live))).release()
            assert ledger.used_bytes == sum(lease.size_bytes for lease in live + cached)
            assert 0 <= ledger.free_bytes <= ledger.capacity_bytes
