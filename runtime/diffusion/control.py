"""ControlNets of the UNet families: what they add to a network's skip connections, row by row.

A row's strength scales what its nets add; nets of a chain are summed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F

from runtime.diffusion.api import ControlRef
from runtime.diffusion.families.base import Cond
from runtime.diffusion.families.unet_shapes import control_config
from runtime.diffusion.parts import Part, load_diffusers
from runtime.platform.checkpoint import first_prefix, read_shapes
from runtime.platform.errors import Unsupported

Residuals = tuple[list[torch.Tensor], torch.Tensor]


def load_control_net(ref: ControlRef, dtype: torch.dtype, device: str) -> Any:
    path = ref.weights
    prefix = "" if path.is_dir() else first_prefix(read_shapes(path), ("control_model.",)) or ""
    return load_diffusers(Part(path, prefix), "ControlNetModel", control_config, dtype=dtype, device=device)


def control_key(cond: Cond) -> Hashable:
    """Rows share a forward where the same nets look at hints of the same size."""
    return tuple((control.net, tuple(control.hint.shape)) for control in cond.controls)


def control_residuals(
    load: Callable[[ControlRef], Any],
    x: torch.Tensor,
    timestep: torch.Tensor,
    tokens: torch.Tensor,
    added: Mapping[str, torch.Tensor] | None,
    conds: Sequence[Cond],
) -> Residuals | None:
    """x [R, C, h, w], tokens [R, L, D] -> additions to skip connections and middle; None without nets."""
    total: Residuals | None = None
    for chain in zip(*(cond.controls for cond in conds)):
        net = load(chain[0].net)
        if net.config.cross_attention_dim != tokens.shape[-1]:
            raise Unsupported(
                f"the ControlNet {chain[0].net.weights.name} belongs to a model with conditionings of width "
                f"{net.config.cross_attention_dim}, not {tokens.shape[-1]}"
            )
        hints = torch.cat([control.hint for control in chain]).to(x.device, x.dtype)
        factor = 2 ** (len(net.config.conditioning_embedding_out_channels) - 1)
        size = (x.shape[-2] * factor, x.shape[-1] * factor)
        hints = hints if hints.shape[-2:] == size else F.interpolate(hints, size, mode="bilinear")
        strength = torch.tensor([control.strength for control in chain], device=x.device, dtype=x.dtype)
        strength = strength[:, None, None, None]
        down, middle = net(
            x,
            timestep,
            encoder_hidden_states=tokens,
            controlnet_cond=hints,
            added_cond_kwargs=added,
            return_dict=False,
        )
        scaled = ([residual * strength for residual in down], middle * strength)
        total = scaled if total is None else _sum(total, scaled)
    return total


def _sum(one: Residuals, other: Residuals) -> Residuals:
    return [a + b for a, b in zip(one[0], other[0])], one[1] + other[1]
