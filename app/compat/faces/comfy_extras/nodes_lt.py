"""`comfy_extras.nodes_lt`: names only."""

from __future__ import annotations

from app.compat.named import named

LTXVAddGuide, get_noise_mask = named("comfy_extras.nodes_lt", "LTXVAddGuide", "get_noise_mask")
