"""What families owe that take videos or sound: their own transformers forward, whoever shares the batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from runtime.llm import processors
from runtime.llm.api import Audio, Image, Media, Video
from runtime.llm.processors.video import FrameProcessor
from runtime.platform.errors import Unsupported

TOLERANCE = 1e-4
TAKES = {
    "video": ("qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_5", "qwen3_5_moe"),
    "audio": ("qwen2_audio", "phi4_multimodal"),
}
each_kind = pytest.mark.parametrize(
    ("family", "kind"),
    [(family, kind) for kind, families in TAKES.items() for family in families],
    indirect=["family"],
)


def film(seed: int, times: tuple[float, ...], height: int = 24, width: int = 40) -> Video:
    numbers = np.random.default_rng(seed).integers(0, 256, (len(times), height, width, 3), dtype=np.uint8)
    return Video(torch.from_numpy(numbers), times)


def sound(seed: int, seconds: float, rate: int) -> Audio:
    numbers = np.random.default_rng(seed).uniform(-1, 1, int(seconds * rate)).astype(np.float32)
    return Audio(torch.from_numpy(numbers), rate)


MAKE = {
    "video": lambda seed: film(seed, tuple(number / (1 + seed) for number in range(4 + seed))),
    # Those of one request have one length: transformers fills shorter ones up, which Phi-4 notices.
    "audio": lambda seed: sound(seed, 0.3 + 0.1 * min(seed, 5 - seed), (16000, 44100)[seed % 2]),
}


class Timed:
    """transformers' processor hands frames on without the times of the request's videos."""

    def __init__(self, frames: FrameProcessor, times: list[tuple[float, ...]]) -> None:
        self._frames = frames
        self._times = times

    def __getattr__(self, name: str) -> Any:
        return getattr(self._frames, name)

    def __call__(self, videos: Any, **_: Any) -> Any:
        return self._frames([each for request in videos for each in request], self._times)


@pytest.fixture
def expected(family: Any) -> Iterator[Any]:
    frames = family.model.processor._processor.video_processor if "video" in _kinds(family) else None

    def of(*content: str | Media) -> tuple[list[int], torch.Tensor]:
        if frames is not None:
            times = [each.times for each in content if isinstance(each, Video)]
            family.processor.video_processor = Timed(frames, times)
        return family.expected(*content)

    yield of
    if frames is not None:
        family.processor.video_processor = None


def _kinds(family: Any) -> tuple[str, ...]:
    return family.model.processor.kinds


@each_kind
def test_a_mixed_batch_in_chunks_equals_each_request_alone(
    family: Any, contract: Any, kind: str, expected: Any
) -> None:
    make = MAKE[kind]
    requests = {
        "text": ("What is the time in Rome?",),
        "one": ("Before. ", make(1), " What is this?"),
        "two": (make(2), " and ", make(3), " differ how?"),
    }
    if "image" in _kinds(family):
        requests["mixed"] = (make(1), " and ", contract.picture(1), " and ", make(4), " differ how?")
    lane = family.lane()
    sequences = [family.sequence(lane, name, *content) for name, content in requests.items()]
    computed = contract.all_logits(lane, sequences)
    for sequence, content, logits in zip(sequences, requests.values(), computed, strict=True):
        ids, wanted = expected(*content)
        assert sequence.tokens[: sequence.prompt_length] == ids
        worst = (logits - wanted[-len(logits) :]).abs().max().item()
        assert worst < TOLERANCE, (sequence.id, worst)


@each_kind
def test_the_same_medium_shares_pages_and_another_none_of_them(
    family: Any, contract: Any, kind: str, expected: Any
) -> None:
    make = MAKE[kind]
    lane = family.lane()
    first = family.sequence(lane, "first", "Look: ", make(5), " What is this?")
    start, stop = first.media.placed[0].span
    contract.all_logits(lane, [first])
    lane.cancel("first")

    same = family.sequence(lane, "same", "Look: ", make(5), " Which has it?")
    other = family.sequence(lane, "other", "Look: ", make(6), " What is this?")
    logits, _ = contract.all_logits(lane, [same, other])
    size = lane.scheduler.pages.page_size
    assert same.cached_tokens >= stop // size * size
    assert other.cached_tokens <= start
    assert lane.features.num_encoded == 2
    _, wanted = expected("Look: ", make(5), " Which has it?")
    assert (logits - wanted[-len(logits) :]).abs().max() < TOLERANCE


@each_kind
def test_features_of_several_at_once_are_those_of_each(family: Any, kind: str) -> None:
    processor, network = family.model.processor, family.model.network
    items = [processor.item(MAKE[kind](seed)) for seed in range(3)]
    together = processor.encode(network, items)
    for item, features in zip(items, together, strict=True):
        alone = processor.encode(network, [item])[0]
        assert len(features.rows) == item.num_rows
        assert torch.allclose(features.rows, alone.rows, atol=1e-5)


@each_kind
def test_what_a_user_spells_is_no_place_for_it(family: Any, kind: str) -> None:
    processor = family.model.processor
    spelled = family.codec.tokenizer.decode([processor.placeholder(kind)])
    sequence = family.sequence(family.lane(), "spelled", f"Say {spelled}! ", MAKE[kind](1), "?")
    assert len(sequence.media.placed) == 1
    count = sequence.tokens.count(processor.placeholder(kind))
    assert count == sequence.media.placed[0].item.num_rows


def test_every_family_that_takes_more_than_images_is_listed() -> None:
    for model_type, processor in processors.families().items():
        for kind in set(processor.kinds) - {"image"}:
            assert model_type.removesuffix("_moe") in TAKES[kind], (model_type, kind)


@pytest.mark.parametrize("family", ["qwen2_audio"], indirect=True)
def test_a_sound_too_long_for_the_model_is_refused(family: Any) -> None:
    assert family.model.processor.item(sound(1, 1.0, 16000)).num_rows == 25
    with pytest.raises(Unsupported, match="1 seconds at most"):
        family.model.processor.item(sound(1, 1.1, 16000))


@pytest.mark.parametrize("family", ["llava"], indirect=True)
def test_a_video_is_several_pictures_to_a_model_of_pictures(family: Any, contract: Any) -> None:
    video = film(1, tuple(number / 4 for number in range(12)))
    lane = family.lane()
    sequence = family.sequence(lane, "film", "See ", video, "?")
    (logits,) = contract.all_logits(lane, [sequence])
    pictures = [Image(video.frames[at]) for at in (0, 5, 11)]
    ids, wanted = family.expected("See ", *pictures, "?")
    assert sequence.tokens[: sequence.prompt_length] == ids
    assert (logits - wanted).abs().max() < TOLERANCE
