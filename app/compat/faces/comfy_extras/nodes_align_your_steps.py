"""`comfy_extras.nodes_align_your_steps`: names only."""

from __future__ import annotations

from app.compat.named import named

(AlignYourStepsScheduler,) = named(
    "comfy_extras.nodes_align_your_steps",
    "AlignYourStepsScheduler",
)
