"""The embedded model through the engine: words in, the right picture out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from runtime.diffusion.api import (
    Checkpoint,
    Conditioning,
    DecodeRequest,
    EncodeImageRequest,
    EncodeTextRequest,
    SampleRequest,
)
from runtime.diffusion.engine import Engine
from runtime.platform.installed import packaged_language_models

GLYPH = Path(__file__).parents[3] / "models" / "checkpoints" / "glyph"


@pytest.fixture(scope="module")
def runner() -> Iterator[Engine]:
    made = Engine(packaged_language_models)
    yield made
    made.close()


@pytest.fixture(scope="module")
def checkpoint(runner: Engine) -> Checkpoint:
    return runner.inspect_checkpoint(GLYPH)


def words(runner: Engine, checkpoint: Checkpoint, *texts: str) -> list[Conditioning]:
    assert checkpoint.clip is not None
    handles = [
        runner.submit(EncodeTextRequest(f"text {place}", checkpoint.clip, (text,)))
        for place, text in enumerate(texts)
    ]
    return [handle.wait(60) for handle in handles]


def test_hearts_of_two_colours_drawn_together_have_their_colours(
    runner: Engine, checkpoint: Checkpoint
) -> None:
    assert checkpoint.model is not None
    assert checkpoint.vae is not None
    red, blue, nothing = words(runner, checkpoint, "red heart", "blue heart", "")
    handles = [
        runner.submit(
            SampleRequest(
                f"heart {place}", checkpoint.model, torch.zeros(1, 4, 8, 8), positive, nothing,
                seed=(3, 0)[place], steps=14, cfg=3.0, latent_factor=8,
            )
        )
        for place, positive in enumerate((red, blue))
    ]  # fmt: skip
    pictures = [
        runner.submit(DecodeRequest(f"picture {place}", checkpoint.vae, handle.wait(60).latent)).wait(60)
        for place, handle in enumerate(handles)
    ]
    middles = [picture[0, 24:40, 24:40].mean(dim=(0, 1)) for picture in pictures]
    assert middles[0][0] > middles[0][2] + 0.3, middles
    assert middles[1][2] > middles[1][0] + 0.3, middles
    corner = pictures[0][0, :4, :4]
    assert corner.min() > 0.8, "the background is white"


def test_a_picture_comes_back_from_its_latent(runner: Engine, checkpoint: Checkpoint) -> None:
    assert checkpoint.vae is not None
    picture = torch.ones(1, 64, 64, 3)
    picture[:, 16:48, 16:48] = torch.tensor([0.9, 0.2, 0.1])
    latent = runner.submit(EncodeImageRequest("in", checkpoint.vae, picture)).wait(60)
    assert latent.shape == (1, 8, 16, 16)
    back = runner.submit(DecodeRequest("out", checkpoint.vae, latent)).wait(60)
    assert float((back - picture).abs().mean()) < 0.05
