"""What a network is shown at a noise level, and what its raw answer says about the clean latent."""

from __future__ import annotations

import math

import torch

from runtime.diffusion.families.base import Prediction


def network_input(x: torch.Tensor, sigma: float, prediction: Prediction) -> torch.Tensor:
    return x if prediction == "flow" else x / math.sqrt(sigma**2 + 1)


def clean_estimate(
    x: torch.Tensor, sigma: float, answer: torch.Tensor, prediction: Prediction
) -> torch.Tensor:
    if prediction == "v":
        return x / (sigma**2 + 1) - answer * (sigma / math.sqrt(sigma**2 + 1))
    return x - answer * sigma
