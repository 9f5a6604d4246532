"""`comfy.ldm.flux.math`: names only."""

from __future__ import annotations

from app.compat.named import named

(
    attention,
    apply_rope,
    rope,
) = named("comfy.ldm.flux.math", "attention", "apply_rope", "rope")
