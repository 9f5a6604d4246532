"""The engine as callers meet it: events, cancelling, the text and picture lanes, closing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from runtime.diffusion.api import (
    Conditioning,
    DecodeRequest,
    EncodeImageRequest,
    EncodeTextRequest,
    Preview,
    Progress,
    TextEncoderRef,
    VaeRef,
)
from runtime.diffusion.conditioning_cache import ConditioningCache
from runtime.diffusion.engine import Engine
from runtime.diffusion.families.base import Autoencoder, TextEncoder
from runtime.diffusion.model import Loader
from runtime.platform.errors import MissingFile, OutOfMemory, RuntimeFault, Unsupported
from runtime.platform.handle import Cancelled, CancelledEvent, Done, Started
from tests.cpu.diffusion_core.tiny import engine, model_of, no_language_models, request


class Letters:
    """Encodes a prompt as its letters' codes; remembers what it was given together."""

    def __init__(self) -> None:
        self.calls: list[list[tuple[str, ...]]] = []

    def encode(self, texts: Sequence[tuple[str, ...]]) -> list[Conditioning]:
        self.calls.append(list(texts))
        return [[[torch.tensor([[[float(ord(letter))] for letter in text[0]]]), {}]] for text in texts]


class Halves:
    """Halves a picture's sides and doubles a latent's; remembers how many came together."""

    channels, factor = 3, 2

    def __init__(self) -> None:
        self.calls: list[int] = []

    def encode(self, pixels: torch.Tensor) -> torch.Tensor:
        self.calls.append(len(pixels))
        return pixels[..., ::2, ::2]

    def decode(self, latent: torch.Tensor) -> torch.Tensor:
        self.calls.append(len(latent))
        return latent.repeat_interleave(2, -1).repeat_interleave(2, -2)


class SmallLoader(Loader):
    """Has its own encoder and autoencoder beside the real networks."""

    def __init__(self) -> None:
        super().__init__(no_language_models)
        self.letters, self.halves = Letters(), Halves()
        self.encoder_loads = 0

    def text_encoder(self, ref: TextEncoderRef) -> TextEncoder:
        self.encoder_loads += 1
        return self.letters

    def autoencoder(self, ref: VaeRef) -> Autoencoder:
        return self.halves


CLIP = TextEncoderRef((Path("letters"),), "sd15")
VAE = VaeRef(Path("halves"), "kl", 3, 2)


@pytest.fixture
def loader() -> SmallLoader:
    return SmallLoader()


@pytest.fixture
def runner(loader: SmallLoader) -> Iterator[Engine]:
    made = Engine(no_language_models, loader=loader)
    yield made
    made.close()


def test_progress_counts_steps_and_the_result_comes_last(unet_folder: Path, runner: Engine) -> None:
    handle = runner.submit(request("one", model_of(unet_folder), sampler="heun", steps=5))
    handle.wait(60)
    events = handle._events
    assert isinstance(events[0], Started)
    assert isinstance(events[-1], Done)
    progress = [(event.step, event.steps) for event in events if isinstance(event, Progress)]
    assert progress == [(step, 5) for step in range(1, 6)]


def test_results_belong_to_the_caller(unet_folder: Path, runner: Engine) -> None:
    sampled = runner.submit(request("one", model_of(unet_folder))).wait(60)
    for tensor in (sampled.latent, sampled.denoised):
        assert not tensor.is_inference()
        tensor.add_(1)
        assert tensor.dtype == torch.float32


def test_an_awaited_request_streams_its_events(unet_folder: Path, runner: Engine) -> None:
    async def watch() -> list[str]:
        handle = runner.submit(request("one", model_of(unet_folder), steps=3))
        seen = [type(event).__name__ async for event in handle]
        await handle
        return seen

    assert asyncio.run(watch()) == ["Started", "Progress", "Progress", "Progress", "Done"]


def test_cancelling_ends_a_request_and_twice_is_harmless(unet_folder: Path, runner: Engine) -> None:
    handle = runner.submit(request("long", model_of(unet_folder), steps=5000))
    handle.cancel()
    handle.cancel()
    with pytest.raises(Cancelled):
        handle.wait(60)
    assert isinstance(handle._events[-1], CancelledEvent)
    runner.cancel("never heard of")
    assert runner.submit(request("next", model_of(unet_folder))).wait(60).latent.isfinite().all()


def test_one_id_cannot_run_twice(unet_folder: Path, runner: Engine) -> None:
    first = runner.submit(request("same", model_of(unet_folder), steps=30))
    second = runner.submit(request("same", model_of(unet_folder), steps=30))
    with pytest.raises(Unsupported, match="already running"):
        second.wait(60)
    assert first.wait(60).latent.isfinite().all()


def test_closing_cancels_what_is_live_and_refuses_what_comes_later(unet_folder: Path) -> None:
    runner = engine()
    handle = runner.submit(request("long", model_of(unet_folder), steps=5000))
    runner.close()
    with pytest.raises(Cancelled):
        handle.wait(1)
    with pytest.raises(RuntimeFault, match="closed"):
        runner.submit(request("late", model_of(unet_folder))).wait(1)
    runner.close()


def test_a_missing_file_fails_the_request_that_named_it(unet_folder: Path, tmp_path: Path) -> None:
    runner = engine()
    vae = VaeRef(tmp_path / "none.safetensors", "kl", 4, 8)
    with pytest.raises(RuntimeFault):
        runner.submit(DecodeRequest("one", vae, torch.zeros(1, 4, 8, 8))).wait(60)
    with pytest.raises((MissingFile, Unsupported)):
        runner.inspect_checkpoint(tmp_path / "none.safetensors")
    runner.close()


def test_a_fault_while_rows_are_made_fails_that_request_only(
    unet_folder: Path, loader: SmallLoader, runner: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = request("one", model_of(unet_folder))
    network = loader.network(one.model)
    with monkeypatch.context() as patch:
        patch.setattr(network, "cond_key", lambda _: {}["no such key"])
        with pytest.raises(KeyError):
            runner.submit(one).wait(60)
    assert runner.submit(one).wait(60).latent.isfinite().all()


def test_the_engine_outlives_its_own_mistakes(
    unet_folder: Path, runner: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = request("one", model_of(unet_folder))
    with monkeypatch.context() as patch:
        patch.setattr(runner, "_hand_back", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            runner.submit(one).wait(60)
    assert runner.submit(one).wait(60).latent.isfinite().all()


def test_weights_come_back_after_unloading(unet_folder: Path, runner: Engine) -> None:
    one = request("one", model_of(unet_folder))
    before = runner.submit(one).wait(60).latent
    runner.unload()
    assert torch.equal(runner.submit(one).wait(60).latent, before)


def test_prompts_that_wait_together_are_encoded_together_and_once(
    runner: Engine, loader: SmallLoader
) -> None:
    texts = ["a cat", "", "a dog", "", ""]
    handles = [runner.submit(EncodeTextRequest(f"t{i}", CLIP, (text,))) for i, text in enumerate(texts)]
    for handle, text in zip(handles, texts, strict=True):
        assert handle.wait(60)[0][0].flatten().tolist() == [ord(letter) for letter in text]
    assert sorted(text for call in loader.letters.calls for text in call) == [("",), ("a cat",), ("a dog",)]
    assert len(loader.letters.calls) <= 2


def test_a_prompt_seen_before_comes_from_the_cache(runner: Engine, loader: SmallLoader) -> None:
    for name in ("first", "second"):
        extra = {"guidance": 3.5} if name == "second" else {}
        encoded = runner.submit(EncodeTextRequest(name, CLIP, ("a cat",), extra)).wait(60)
    assert len(loader.letters.calls) == 1
    assert loader.encoder_loads == 1
    assert encoded[0][1] == {"guidance": 3.5}
    assert (runner.stats().conditioning_hits, runner.stats().conditioning_misses) == (1, 1)


def test_the_cache_lets_go_of_the_longest_unused() -> None:
    cache = ConditioningCache(budget_bytes=100)
    for name in ("a", "b", "a", "c"):
        if cache.get(CLIP, (name,)) is None:
            cache.put(CLIP, (name,), [[torch.zeros(1, 1, 10), {}]])
    assert cache.get(CLIP, ("a",)) is not None
    assert cache.get(CLIP, ("b",)) is None


def test_pictures_go_there_and_back(runner: Engine) -> None:
    picture = torch.rand(2, 9, 12, 4)
    latent = runner.submit(EncodeImageRequest("in", VAE, picture)).wait(60)
    assert latent.shape == (2, 3, 4, 6)
    image = runner.submit(DecodeRequest("out", VAE, latent)).wait(60)
    assert image.shape == (2, 8, 12, 3)
    assert not image.is_inference()
    assert torch.allclose(image[:, ::2, ::2], (latent.movedim(1, -1) + 1) / 2, atol=1e-6)


def test_decodes_of_one_shape_are_merged(runner: Engine, loader: SmallLoader) -> None:
    latents = [torch.full((1, 3, 4, 4), value / 10) for value in range(6)]
    handles = [runner.submit(DecodeRequest(f"d{i}", VAE, latent)) for i, latent in enumerate(latents)]
    for handle, latent in zip(handles, latents, strict=True):
        assert torch.allclose(handle.wait(60).mean(), (latent.mean() + 1) / 2)
    assert sum(loader.halves.calls) == 6
    assert len(loader.halves.calls) <= 3


def test_a_latent_too_large_to_decode_says_what_helps(
    runner: Engine, loader: SmallLoader, monkeypatch: pytest.MonkeyPatch
) -> None:
    def decode(_: torch.Tensor) -> torch.Tensor:
        raise torch.OutOfMemoryError("no more")

    monkeypatch.setattr(loader.halves, "decode", decode)
    with pytest.raises(OutOfMemory, match="a latent of 4 x 4 cells; use the tiled node"):
        runner.submit(DecodeRequest("one", VAE, torch.zeros(1, 3, 4, 4))).wait(60)


@pytest.mark.parametrize(
    "wrong",
    [
        EncodeTextRequest("one", CLIP, ()),
        EncodeTextRequest("one", CLIP, (3,)),  # type: ignore[arg-type]
        EncodeImageRequest("one", VAE, torch.zeros(8, 8, 3)),
        EncodeImageRequest("one", VAE, torch.zeros(1, 1, 1, 3)),
        EncodeImageRequest("one", VAE, torch.zeros(1, 8, 8, 3), tile=0),
        DecodeRequest("one", VAE, torch.zeros(1, 16, 4, 4)),
    ],
)
def test_bad_input_to_a_lane_fails_with_a_sentence(wrong: Any, runner: Engine) -> None:
    with pytest.raises(Unsupported):
        runner.submit(wrong).wait(60)
    assert runner.submit(EncodeTextRequest("good", CLIP, ("x",))).wait(60)


def test_previews_come_only_when_asked_for() -> None:
    runner = engine()
    checkpoint = runner.inspect_checkpoint(Path("models/checkpoints/glyph"))
    assert checkpoint.model is not None
    silent = [[torch.zeros(1, 16, 576), {}]]
    for previews in (True, False):
        handle = runner.submit(
            request(
                "one",
                checkpoint.model,
                latent=torch.zeros(1, 8, 16, 16),
                positive=silent,
                negative=silent,
                previews=previews,
            )
        )
        handle.wait(60)
        shown = [event for event in handle._events if isinstance(event, Preview)]
        assert bool(shown) == previews
        assert all(event.rgb.shape == (16, 16, 3) and event.rgb.dtype == torch.uint8 for event in shown)
    runner.close()
