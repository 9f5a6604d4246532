"""`comfy_extras.nodes_gits`: names only."""

from __future__ import annotations

from app.compat.named import named

(GITSScheduler,) = named(
    "comfy_extras.nodes_gits",
    "GITSScheduler",
)
