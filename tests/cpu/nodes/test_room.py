"""Tensors that no memory holds are refused before anything is allocated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from nodes.context import NodeInputError
from nodes.image import empty, pad_for_outpaint, repeat_batch, scale
from nodes.latent import empty_latent, upscale
from nodes.latent import repeat_batch as repeat_latents
from nodes.room import need_room

LARGE = 16384


@pytest.mark.parametrize(
    "ask",
    [
        lambda: empty(width=LARGE, height=LARGE, batch_size=4096),
        lambda: empty_latent(width=LARGE, height=LARGE, batch_size=4096),
        lambda: scale(image=torch.zeros(1, 1, 1, 3).expand(4096, 1, 1, 3), width=LARGE, height=LARGE),
        lambda: repeat_batch(image=torch.zeros(1, 1, 1, 3).expand(1, LARGE, LARGE, 3), amount=4096),
        lambda: pad_for_outpaint(image=torch.zeros(1, 1, 1, 3).expand(512, 1, 1, 3), left=LARGE, top=LARGE),
        lambda: upscale(
            samples={"samples": torch.zeros(1).expand(LARGE, 4, 1, 1)}, width=LARGE, height=LARGE
        ),
        lambda: repeat_latents(samples={"samples": torch.zeros(1).expand(64, 4, 8192, 8192)}, amount=64),
    ],
)
def test_what_no_memory_holds_is_refused_with_its_size(ask: Callable[[], Any]) -> None:
    with pytest.raises(NodeInputError, match=r"A tensor of [\dx]+ needs \d+\.\d GiB"):
        ask()


def test_what_fits_passes() -> None:
    need_room(1, 64, 64, 3)
