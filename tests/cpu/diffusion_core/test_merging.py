"""Requests that share forwards get what each gets alone, whatever happens to the others."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
import torch

from runtime.diffusion.api import ModelRef, Sampled, SampleRequest
from runtime.diffusion.batch import DenoiseRow
from runtime.diffusion.engine import Engine
from runtime.diffusion.families.base import Cond, Network
from runtime.diffusion.model import Loader
from runtime.platform.errors import OutOfMemory, Unsupported
from runtime.platform.handle import Cancelled, Handle, Started
from tests.cpu.diffusion_core.tiny import cond, engine, model_of, no_language_models, request

MIX = [
    # sampler, steps, guidance, forwards of others before it arrives
    ("euler", 12, 4.0, 0), ("heun", 7, 2.0, 0), ("dpmpp_2m", 12, 1.0, 0), ("euler_ancestral", 11, 7.5, 0),
    ("dpmpp_2m_sde", 10, 5.0, 0), ("uni_pc", 10, 3.0, 1), ("lms", 12, 6.0, 1), ("dpm_2", 6, 4.0, 2),
    ("dpmpp_sde", 6, 2.5, 2), ("ddim", 12, 8.0, 3), ("lcm", 8, 1.5, 4), ("res_multistep", 10, 4.5, 5),
]  # fmt: skip


def mixed(model: ModelRef, dtype: torch.dtype) -> list[SampleRequest]:
    schedulers = ["simple", "karras", "normal", "sgm_uniform"]
    return [
        request(
            f"r{place}", model, dtype, sampler=sampler, steps=steps, cfg=cfg, seed=100 + place,
            scheduler=schedulers[place % 4], positive=cond(10 + place, dtype),
            negative=cond(40 + place, dtype),
        )
        for place, (sampler, steps, cfg, _) in enumerate(MIX)
    ]  # fmt: skip


def run_alone(requests: Sequence[SampleRequest], dtype: torch.dtype) -> tuple[list[Sampled], int]:
    runner = engine(dtype)
    results = [runner.submit(one).wait(60) for one in requests]
    forwards = runner.stats().forwards
    runner.close()
    return results, forwards


class Together:
    """Submits requests as forwards go by, on the engine's thread: arrivals do not depend on the clock."""

    def __init__(self, requests: Sequence[SampleRequest], arrivals: Sequence[int]) -> None:
        self._due = sorted(zip(arrivals, range(len(requests)), strict=True))
        self._requests = requests
        self.handles: dict[int, Handle[Any]] = {}
        self.sizes: list[int] = []
        self.all_submitted = threading.Event()
        self._has_begun = threading.Event()
        self.on_size: Callable[[int], None] = lambda _: None

    def start(self, make: Callable[[Callable[[int], None]], Engine]) -> Engine:
        self.engine = make(self._after_forward)
        self._submit_due(0)
        self._has_begun.set()
        return self.engine

    def results(self) -> list[Sampled]:
        assert self.all_submitted.wait(60)
        return [self.handles[place].wait(60) for place in range(len(self._requests))]

    def _after_forward(self, rows: int) -> None:
        assert self._has_begun.wait(60)
        self.sizes.append(rows)
        self._submit_due(len(self.sizes))
        self.on_size(len(self.sizes))

    def _submit_due(self, forwards: int) -> None:
        while self._due and self._due[0][0] <= forwards:
            _, place = self._due.pop(0)
            self.handles[place] = self.engine.submit(self._requests[place])
        if not self._due:
            self.all_submitted.set()


def difference(a: torch.Tensor, b: torch.Tensor) -> float:
    return float((a - b).abs().max() / b.abs().max())


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-3)])
def test_twelve_mixed_requests_give_what_each_gives_alone(
    folder: Path, dtype: torch.dtype, tolerance: float
) -> None:
    requests = mixed(model_of(folder), dtype)
    alone, forwards_alone = run_alone(requests, dtype)
    together = Together(requests, [arrival for *_, arrival in MIX])
    runner = together.start(lambda hear: engine(dtype, on_forward=hear))
    for one, other in zip(together.results(), alone, strict=True):
        assert one.latent.dtype == dtype
        assert difference(one.latent, other.latent) < tolerance
        assert difference(one.denoised, other.denoised) < tolerance
    assert runner.stats().forwards * 4 <= forwards_alone
    assert runner.stats().rows == sum(together.sizes)
    runner.close()


def test_cancelling_three_changes_nothing_for_the_others(folder: Path) -> None:
    requests = mixed(model_of(folder), torch.float64)
    alone, _ = run_alone(requests, torch.float64)
    together = Together(requests, [0] * len(requests))
    victims = {1, 6, 9}

    def cancel_midway(forwards: int) -> None:
        if forwards == 4:
            for place in victims:
                together.handles[place].cancel()

    together.on_size = cancel_midway
    runner = together.start(lambda hear: engine(torch.float64, on_forward=hear))
    for place in range(len(requests)):
        if place in victims:
            with pytest.raises(Cancelled):
                together.handles[place].wait(60)
        else:
            result = together.handles[place].wait(60)
            assert difference(result.latent, alone[place].latent) < 1e-10
    assert together.sizes[4] < together.sizes[3]
    assert runner.stats().running == 0
    runner.close()


class Faulty:
    """A real network that sometimes fails first."""

    def __init__(self, network: Network, fault: Callable[[Sequence[Cond]], Exception | None]) -> None:
        self.dtype = network.dtype
        self._network, self._fault = network, fault

    def cond_key(self, one: Cond) -> Any:
        return self._network.cond_key(one)

    def forward(self, x: torch.Tensor, timestep: torch.Tensor, conds: Sequence[Cond]) -> torch.Tensor:
        error = self._fault(conds)
        if error is not None:
            raise error
        return self._network.forward(x, timestep, conds)


class FaultyLoader(Loader):
    def __init__(self, fault: Callable[[Sequence[Cond]], Exception | None]) -> None:
        super().__init__(no_language_models, "cpu", torch.float64)
        self._fault, self._wrapped = fault, {}  # type: ignore[var-annotated]

    def network(self, ref: ModelRef) -> Network:
        if ref not in self._wrapped:
            self._wrapped[ref] = Faulty(super().network(ref), self._fault)
        return self._wrapped[ref]  # type: ignore[no-any-return]


def test_running_out_of_memory_costs_nobody_a_result(folder: Path) -> None:
    requests = mixed(model_of(folder), torch.float64)
    alone, _ = run_alone(requests, torch.float64)
    faults = []

    def short_of_memory(conds: Sequence[Cond]) -> Exception | None:
        if len(conds) > 5:
            faults.append(len(conds))
            return torch.OutOfMemoryError("no more")
        return None

    runner = Engine(no_language_models, loader=FaultyLoader(short_of_memory))
    handles = [runner.submit(one) for one in requests]
    for handle, other in zip(handles, alone, strict=True):
        assert difference(handle.wait(60).latent, other.latent) < 1e-10
    assert faults, "nothing was injected"
    runner.close()


def test_a_passing_shortage_costs_a_lone_request_nothing(unet_folder: Path) -> None:
    faults = [MemoryError("passing")]
    runner = Engine(no_language_models, loader=FaultyLoader(lambda _: faults.pop() if faults else None))
    one = request("one", model_of(unet_folder), torch.float64, cfg=1.0)
    assert (
        difference(runner.submit(one).wait(60).latent, run_alone([one], torch.float64)[0][0].latent) < 1e-10
    )
    runner.close()


def test_a_request_that_never_fits_fails_with_its_size(unet_folder: Path) -> None:
    runner = Engine(no_language_models, loader=FaultyLoader(lambda _: MemoryError("small machine")))
    with pytest.raises(OutOfMemory, match="a single latent of 8 x 8 cells"):
        runner.submit(request("one", model_of(unet_folder), torch.float64)).wait(60)
    runner.close()


def test_a_request_at_fault_fails_alone(folder: Path) -> None:
    model = model_of(folder)
    good = [request(f"g{place}", model, torch.float64, seed=place) for place in range(3)]
    alone, _ = run_alone(good, torch.float64)
    wrong = cond(5, torch.float64)
    wrong[0][0] = wrong[0][0][..., :-1]
    runner = engine(torch.float64)
    handles = [runner.submit(one) for one in good]
    bad = runner.submit(request("bad", model, torch.float64, positive=wrong))
    for handle, other in zip(handles, alone, strict=True):
        assert difference(handle.wait(60).latent, other.latent) < 1e-10
    with pytest.raises(Unsupported, match="width"):
        bad.wait(60)
    runner.close()


def test_a_deterministic_request_shares_no_forward(unet_folder: Path) -> None:
    model = model_of(unet_folder)
    requests = [request(f"r{place}", model, steps=5, deterministic=True) for place in range(3)]
    together = Together(requests, [0, 0, 0])
    runner = together.start(lambda hear: engine(on_forward=hear))
    results = together.results()
    assert together.sizes == [2] * 15
    assert torch.equal(results[0].latent, results[1].latent)
    runner.close()


def test_a_batch_is_cut_into_forwards_of_the_limit(unet_folder: Path) -> None:
    model = model_of(unet_folder)
    one = request("one", model, torch.float64, latent=torch.zeros(5, 4, 8, 8, dtype=torch.float64), steps=2)
    whole, _ = run_alone([one], torch.float64)
    together = Together([one], [0])
    runner = together.start(lambda hear: engine(torch.float64, on_forward=hear, max_rows=4))
    assert difference(together.results()[0].latent, whole[0].latent) < 1e-10
    assert together.sizes == [4, 4, 2] * 2
    runner.close()


def test_keys_of_different_models_do_not_mix(unet_folder: Path, sd3_folder: Path) -> None:
    requests = [request("a", model_of(unet_folder)), request("b", model_of(sd3_folder))]
    together = Together(requests, [0, 0])
    runner = together.start(lambda hear: engine(on_forward=hear))
    together.results()
    assert set(together.sizes) == {2}
    assert isinstance(together.handles[0]._events[0], Started)
    runner.close()


# what each field of a request means for merging: it decides the key, it is data of the row, or neither
FIELDS = {
    "id": "ignored", "model": "key", "latent": "key", "positive": "key", "negative": "key", "seed": "row",
    "steps": "row", "cfg": "row", "sampler": "row", "scheduler": "row", "denoise": "row", "start_step": "row",
    "end_step": "row", "add_noise": "row", "full_denoise": "row", "noise_mask": "row", "batch_index": "row",
    "latent_factor": "key", "sigmas": "row", "noise": "row", "previews": "ignored", "deterministic": "key",
}  # fmt: skip


def test_every_field_of_a_request_is_classified() -> None:
    assert set(FIELDS) == {one.name for one in fields(SampleRequest)}


CHANGES: dict[str, Any] = {
    "seed": 77, "steps": 9, "cfg": 1.0, "sampler": "heun", "scheduler": "karras", "denoise": 0.5,
    "start_step": 1,
    "end_step": 3, "add_noise": False, "full_denoise": False, "batch_index": (2,),
    "noise_mask": torch.ones(1, 8, 8), "sigmas": torch.tensor([3.0, 1.0, 0.0]), "previews": True,
    "noise": torch.ones(1, 4, 8, 8),
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name, meaning in FIELDS.items() if meaning != "key"])
def test_fields_outside_of_the_key_leave_it_alone(name: str, unet_folder: Path) -> None:
    base = request("one", model_of(unet_folder))
    changed = replace(base, **{name: "other" if name == "id" else CHANGES[name]})
    assert first_key(base) == first_key(changed)


@pytest.mark.parametrize(
    "change",
    [
        {"latent": torch.zeros(1, 4, 16, 8)},
        {"positive": [[torch.zeros(1, 9, 32), {}]]},
        {"deterministic": True},
        {"latent_factor": 16},
    ],
)
def test_fields_of_the_key_change_it(change: dict[str, Any], unet_folder: Path) -> None:
    base = request("one", model_of(unet_folder))
    assert first_key(base) != first_key(request("one", model_of(unet_folder), **change))


LOADER = Loader(no_language_models)


def first_key(one: SampleRequest) -> Any:
    from runtime.diffusion.sampling import LoadedModel, sample

    family = LOADER.family(one.model)
    loaded = LoadedModel(
        LOADER.network(one.model),
        family.prediction,
        family.schedule(one.model, None),
        LOADER.latent_format(one.model),
    )
    course = sample(one, loaded, "cpu", lambda *_: None)
    row = next(course)[0]
    course.close()
    assert isinstance(row, DenoiseRow)
    return row.key
