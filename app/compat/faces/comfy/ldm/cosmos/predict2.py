"""`comfy.ldm.cosmos.predict2`: names only."""

from __future__ import annotations

from app.compat.named import named

(
    Attention,
    MiniTrainDIT,
) = named("comfy.ldm.cosmos.predict2", "Attention", "MiniTrainDIT")
