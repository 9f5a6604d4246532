"""`comfy.cldm.cldm`: names only."""

from __future__ import annotations

from app.compat.named import named

(
    ControlNet,
    ControlledUnetModel,
) = named(
    "comfy.cldm.cldm",
    "ControlNet",
    "ControlledUnetModel",
)
