"""Rows at different time steps, with different prompts, answer in one forward as each alone."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from runtime.diffusion.families.base import Cond, Network
from runtime.diffusion.model import Loader, inspect_checkpoint

TEXTS = ("a red cat", "the house on the hill (a cat:1.4)", "", "a house on the red hill " * 4)
TIMES = (0.9, 0.31, 0.05, 0.62)


def network_of(folder: Any, dtype: torch.dtype) -> tuple[Network, list[Cond], float]:
    checkpoint = inspect_checkpoint(folder)
    assert checkpoint.model is not None
    assert checkpoint.clip is not None
    loader = Loader(dict, dtype=dtype)
    answers = loader.text_encoder(checkpoint.clip).encode([(text,) for text in TEXTS])
    conds = [
        Cond(tokens, extra.get("pooled_output"), guidance=float(place + 1), extra={"width": 64 * (place + 1)})
        for place, [[tokens, extra]] in enumerate(answers)
    ]
    schedule = loader.family(checkpoint.model).schedule(checkpoint.model, None)
    return loader.network(checkpoint.model), conds, schedule.timestep(schedule.sigma_max)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
@pytest.mark.parametrize("family", ["sd15", "sdxl", "sd3", "flux", "z_image"])
def test_rows_in_one_forward_equal_rows_alone(
    saved: Callable[..., Any], family: str, dtype: torch.dtype, tolerance: float
) -> None:
    network, conds, last = network_of(saved(family)[1], dtype)
    x = torch.randn(4, 4, 8, 12, dtype=dtype, generator=torch.Generator().manual_seed(2))
    times = torch.tensor(TIMES, dtype=dtype) * last
    assert len({network.cond_key(cond) for cond in conds}) == 1
    together = network.forward(x, times, conds)
    for row in range(4):
        alone = network.forward(x[row : row + 1], times[row : row + 1], conds[row : row + 1])
        assert (together[row] - alone[0]).abs().max() <= tolerance * alone.abs().max()
    assert (together[0] - network.forward(x[:1], times[1:2], conds[:1])[0]).abs().max() > 1e-4


@pytest.mark.parametrize("family", ["sd15", "sdxl", "sd3", "flux", "z_image"])
def test_prompts_in_one_batch_equal_prompts_alone(saved: Callable[..., Any], family: str) -> None:
    clip = inspect_checkpoint(saved(family)[1]).clip
    assert clip is not None
    encoder = Loader(dict).text_encoder(clip)
    together = encoder.encode([(text,) for text in TEXTS])
    for text, [[tokens, extra]] in zip(TEXTS, together):
        [[alone, alone_extra]] = encoder.encode([(text,)])[0]
        torch.testing.assert_close(tokens, alone, rtol=1e-5, atol=1e-5)
        for name, value in alone_extra.items():
            torch.testing.assert_close(extra[name], value, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("family", ["sd3", "flux", "z_image"])
def test_a_latent_of_odd_size_is_padded_and_cropped(saved: Callable[..., Any], family: str) -> None:
    network, conds, last = network_of(saved(family)[1], torch.float32)
    x = torch.randn(1, 4, 7, 9, generator=torch.Generator().manual_seed(2))
    assert network.forward(x, torch.tensor([0.5 * last]), conds[:1]).shape == x.shape


@pytest.mark.parametrize("kept", [("",), ("_2",), ("_3",), ("", "_3"), ("", "_2")])
def test_sd3_reads_prompts_with_the_encoders_that_are_there(
    saved: Callable[..., Any], tmp_path: Path, kept: tuple[str, ...]
) -> None:
    _, folder = saved("sd3")
    shutil.copytree(folder, tmp_path / "sd3")
    for suffix in {"", "_2", "_3"} - set(kept):
        shutil.rmtree(tmp_path / "sd3" / f"text_encoder{suffix}")
    clip, whole = inspect_checkpoint(tmp_path / "sd3").clip, inspect_checkpoint(folder).clip
    assert clip is not None
    assert whole is not None
    encoder = Loader(dict).text_encoder(clip)
    [[tokens, extra]] = encoder.encode([("a red cat",)])[0]
    [[full, full_extra]] = Loader(dict).text_encoder(whole).encode([("a red cat",)])[0]
    if "_3" in kept:
        torch.testing.assert_close(tokens[:, -77:], full[:, -77:])
    if "" in kept:
        torch.testing.assert_close(tokens[:, :77, :32], full[:, :77, :32])
        torch.testing.assert_close(extra["pooled_output"][:, :32], full_extra["pooled_output"][:, :32])
    assert tokens.shape[1] == 154 if "_3" in kept and len(kept) > 1 else tokens.shape[1] == 77


def test_a_long_prompt_takes_several_chunks_in_both_encoders(saved: Callable[..., Any]) -> None:
    clip = inspect_checkpoint(saved("sdxl")[1]).clip
    assert clip is not None
    encoder = Loader(dict).text_encoder(clip)
    long = "a red house on the hill " * 20
    [[tokens, _]] = encoder.encode([("a cat", long)])[0]
    assert tokens.shape == (1, 154, 64)
    [[global_only, _]] = encoder.encode([("a cat",)])[0]
    torch.testing.assert_close(tokens[:, :77, 32:], global_only[..., 32:])


def test_a_weight_moves_its_words_away_from_the_empty_prompt(saved: Callable[..., Any]) -> None:
    clip = inspect_checkpoint(saved("sd15")[1]).clip
    assert clip is not None
    encoder = Loader(dict).text_encoder(clip)
    plain, heavy, none, empty = (
        answer[0][0] for answer in encoder.encode([("a cat",), ("a (cat:1.5)",), ("a (cat:0)",), ("",)])
    )
    torch.testing.assert_close(heavy[:, 2], empty[:, 2] + 1.5 * (plain[:, 2] - empty[:, 2]))
    torch.testing.assert_close(none[:, 2], empty[:, 2])
    torch.testing.assert_close(heavy[:, :2], plain[:, :2], rtol=0, atol=1e-6)


def test_a_stop_layer_reads_an_earlier_layer(saved: Callable[..., Any]) -> None:
    pipeline, folder = saved("sd15")
    clip = inspect_checkpoint(folder).clip
    assert clip is not None
    encoder = Loader(dict).text_encoder(replace(clip, stop_layer=-2))
    [[tokens, _]] = encoder.encode([("a red cat",)])[0]
    ids = pipeline.tokenizer("a red cat", padding="max_length", max_length=77, return_tensors="pt").input_ids
    with torch.inference_mode():
        states = pipeline.text_encoder(ids, output_hidden_states=True).hidden_states
        stock = pipeline.text_encoder.final_layer_norm(states[-2])
    torch.testing.assert_close(tokens, stock, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("family", ["sd15", "sdxl"])
def test_prompts_of_one_and_of_two_chunks_share_a_unets_forward(
    saved: Callable[..., Any], family: str
) -> None:
    checkpoint = inspect_checkpoint(saved(family)[1])
    assert checkpoint.model is not None
    assert checkpoint.clip is not None
    loader = Loader(dict, dtype=torch.float64)
    texts = ["a red cat", "a red house on the hill " * 15, "a house on the red hill " * 35]
    answers = loader.text_encoder(checkpoint.clip).encode([(text,) for text in texts])
    conds = [Cond(tokens, extra["pooled_output"]) for [[tokens, extra]] in answers]
    assert [cond.tokens.shape[1] // 77 for cond in conds] == [1, 2, 3]
    network = loader.network(checkpoint.model)
    assert network.cond_key(conds[0]) == network.cond_key(conds[1]) != network.cond_key(conds[2])
    x = torch.randn(2, 4, 8, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    times = torch.tensor([900.0, 20.0], dtype=torch.float64)
    together = network.forward(x, times, conds[:2])
    for row in range(2):
        alone = network.forward(x[row : row + 1], times[row : row + 1], conds[row : row + 1])
        torch.testing.assert_close(together[row], alone[0], rtol=1e-10, atol=1e-10)
