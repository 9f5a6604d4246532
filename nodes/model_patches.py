"""Models with another noise schedule than their family's own."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

from nodes.context import NodeInputError
from nodes.declare import node
from nodes.parts import present
from nodes.types import Float, Int, Model, Options
from runtime.diffusion.api import SamplingOverride

CATEGORY = "model/patch"
ADVANCED = Options({"advanced": True})
# FLUX counts a picture in patches of 16 pixels; its shift grows in a straight line between these two counts.
PATCH = 16
FEWEST_PATCHES, MOST_PATCHES = 256, 4096

Shift = Annotated[float, Float(0.0, 100.0, 0.01)]
PREDICTIONS = {"eps": "eps", "v_prediction": "v"}


@node("ModelSamplingSD3", category=f"{CATEGORY}/stable diffusion")
def sampling_sd3(*, model: Model, shift: Shift = 3.0) -> Model:
    """More shift spends more of the steps on the composition."""
    return _shifted(model, shift)


@node("ModelSamplingAuraFlow", category=CATEGORY)
def sampling_aura_flow(*, model: Model, shift: Shift = 1.73) -> Model:
    """More shift spends more of the steps on the composition."""
    return _shifted(model, shift)


@node("ModelSamplingFlux", category=f"{CATEGORY}/flux")
def sampling_flux(
    *,
    model: Model,
    max_shift: Annotated[Shift, ADVANCED] = 1.15,
    base_shift: Annotated[Shift, ADVANCED] = 0.5,
    width: Annotated[int, Int(16, 16384, 8)] = 1024,
    height: Annotated[int, Int(16, 16384, 8)] = 1024,
) -> Model:
    """A shift that grows with the size of the picture."""
    slope = (max_shift - base_shift) / (MOST_PATCHES - FEWEST_PATCHES)
    patches = width * height / (PATCH * PATCH)
    return _shifted(model, base_shift + slope * (patches - FEWEST_PATCHES))


@node("ModelSamplingDiscrete", category=CATEGORY)
def sampling_discrete(
    *,
    model: Model,
    sampling: Literal["eps", "v_prediction", "lcm", "x0", "img_to_img", "img_to_img_flow"] = "eps",
    zsnr: Annotated[bool, ADVANCED] = False,
) -> Model:
    """States what a network predicts, where its file does not tell. `zsnr` starts from pure noise."""
    if sampling not in PREDICTIONS:
        raise NodeInputError(f"sampling {sampling} is not supported; choose {' or '.join(PREDICTIONS)}")
    override = SamplingOverride(prediction=PREDICTIONS[sampling], zero_terminal_snr=zsnr)
    return replace(present(model, "MODEL"), sampling=override)


def _shifted(model: Model | None, shift: float) -> Model:
    return replace(present(model, "MODEL"), sampling=SamplingOverride(shift=shift))
