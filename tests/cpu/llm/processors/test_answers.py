"""What a model says after images is what `generate` of transformers says, whoever shares the steps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from runtime.llm.api import ChatRequest, Message, SamplingParams
from runtime.platform.handle import Done, Event

COUNT = 8

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")


class Recorder:
    """A network that remembers what it was called with."""

    def __init__(self, network: Any) -> None:
        self.network = network
        self.inputs: dict[str, Any] = {}

    def __call__(self, *, use_cache: bool, **inputs: Any) -> Any:
        self.inputs = inputs
        return self.network(**inputs, use_cache=use_cache)


@torch.inference_mode()
def generated(family: Any, *content: Any) -> list[int]:
    recorder = Recorder(family.network)
    replace(family, network=recorder).expected(*content)
    ids = family.network.generate(
        **recorder.inputs, do_sample=False, min_new_tokens=COUNT, max_new_tokens=COUNT
    )
    answer: list[int] = ids[0, recorder.inputs["input_ids"].shape[1] :].tolist()
    return answer


def test_greedy_answers_after_images_are_those_of_generate(family: Any, contract: Any) -> None:
    contents = {
        "one": ("Before. ", contract.picture(1), " What is this?"),
        "other": ("See ", contract.picture(2, 40, 24), " and say."),
    }
    lane = family.lane()
    done: dict[str, tuple[int, ...]] = {}

    def deliver(event: Event) -> None:
        if isinstance(event, Done):
            done[event.request_id] = event.result.token_ids

    for name, content in contents.items():
        params = SamplingParams(temperature=0, max_tokens=COUNT, min_tokens=COUNT)
        request = ChatRequest(name, family.name, (Message("user", content),), params)
        lane.add(request, lane.prepare(request), deliver)
    for _ in range(60):
        lane.step()
    for name, content in contents.items():
        assert list(done[name]) == generated(family, *content), name
