"""Several threads submit and cancel at random while memory runs short; whoever ends has its own result."""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from runtime.diffusion.api import Sampled, SampleRequest
from runtime.diffusion.engine import Engine
from runtime.diffusion.families.base import Cond
from runtime.platform.handle import Cancelled, Handle
from tests.cpu.diffusion_core.test_merging import FaultyLoader, difference, run_alone
from tests.cpu.diffusion_core.tiny import cond, model_of, no_language_models, request

THREADS, REQUESTS_EACH = 4, 8


@pytest.mark.parametrize("seed", range(3))
def test_a_random_crowd_leaves_every_result_as_it_is_alone(
    seed: int, unet_folder: Path, sd3_folder: Path
) -> None:
    kinds = distinct_requests(unet_folder, sd3_folder)
    expected, _ = run_alone(kinds, torch.float64)
    weather = random.Random(seed)

    def short_of_memory(conds: Sequence[Cond]) -> Exception | None:
        is_short = len(conds) > 1 and weather.random() < 0.2
        return torch.OutOfMemoryError("passing shortage") if is_short else None

    runner = Engine(no_language_models, loader=FaultyLoader(short_of_memory), max_rows=6)
    outcomes: list[tuple[int, Sampled | None]] = []

    def visitor(number: int) -> None:
        choose = random.Random(seed * 100 + number)
        handles: list[tuple[int, Handle[Sampled]]] = []
        for turn in range(REQUESTS_EACH):
            kind = choose.randrange(len(kinds))
            one = replace(kinds[kind], id=f"{number}-{turn}")
            handles.append((kind, runner.submit(one)))
            if choose.random() < 0.3:
                choose.choice(handles)[1].cancel()
        for kind, handle in handles:
            try:
                outcomes.append((kind, handle.wait(60)))
            except Cancelled:
                outcomes.append((kind, None))

    threads = [threading.Thread(target=visitor, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == THREADS * REQUESTS_EACH
    finished = [(kind, result) for kind, result in outcomes if result is not None]
    assert finished
    for kind, result in finished:
        assert difference(result.latent, expected[kind].latent) < 1e-10
    assert runner.stats().running == 0
    runner.close()


def distinct_requests(unet_folder: Path, sd3_folder: Path) -> list[SampleRequest]:
    made = []
    for place, folder in enumerate((unet_folder, sd3_folder) * 2):
        one = request(
            f"kind-{place}",
            model_of(folder),
            torch.float64,
            seed=place,
            steps=3 + place,
            sampler=("euler", "dpmpp_2m", "dpm_2", "euler_ancestral")[place],
            positive=cond(place, torch.float64),
            cfg=(1.0, 3.0, 5.0, 7.0)[place],
        )
        made.append(one)
    return made
