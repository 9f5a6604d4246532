"""ControlNets on conditionings."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from nodes.declare import node
from nodes.types import Conditioning, ControlNet, Float, Image, Vae
from runtime.diffusion.api import Control

CATEGORY = "model/conditioning/controlnet"
# Set by the node that knows no negative: the sampler then gives the same control to the other side.
SHARED = "control_apply_to_uncond"

Strength = Annotated[float, Float(0.0, 10.0, 0.01)]
Percent = Annotated[float, Float(0.0, 1.0, 0.001)]


@node("ControlNetApply", display="Apply ControlNet (DEPRECATED)", category=CATEGORY, deprecated=True)
def apply_control_net(
    *, conditioning: Conditioning, control_net: ControlNet, image: Image, strength: Strength = 1.0
) -> Conditioning:
    """Steers both sides of the sampling by a picture."""
    if strength == 0:
        return conditioning
    control = Control(control_net, _rgb(image), strength)
    return [[tokens, _chained(entry, control) | {SHARED: True}] for tokens, entry in conditioning]


@node(
    "ControlNetApplyAdvanced",
    display="Apply ControlNet",
    category=CATEGORY,
    outputs=("positive", "negative"),
)
def apply_control_net_advanced(
    *,
    positive: Conditioning,
    negative: Conditioning,
    control_net: ControlNet,
    image: Image,
    strength: Strength = 1.0,
    start_percent: Percent = 0.0,
    end_percent: Percent = 1.0,
    vae: Vae | None = None,  # noqa: ARG001
) -> tuple[Conditioning, Conditioning]:
    """Steers by a picture between two points of the sampling. No served ControlNet needs `vae`."""
    if strength == 0:
        return positive, negative
    control = Control(control_net, _rgb(image), strength, start_percent, end_percent)
    one, two = (
        [[tokens, _chained(entry, control) | {SHARED: False}] for tokens, entry in side]
        for side in (positive, negative)
    )
    return one, two


def with_shared_controls(positive: Conditioning, negative: Conditioning) -> Conditioning:
    """The negative with the control of a positive that shares it, unless it has its own."""
    shared = next((entry["control"] for _, entry in positive if entry.get(SHARED)), None)
    if shared is None:
        return negative
    return [
        [tokens, entry if "control" in entry else entry | {"control": shared}] for tokens, entry in negative
    ]


def _chained(entry: dict[str, Any], control: Control) -> dict[str, Any]:
    return entry | {"control": replace(control, previous=entry.get("control"))}


def _rgb(image: Image) -> Image:
    return image[..., :3]
