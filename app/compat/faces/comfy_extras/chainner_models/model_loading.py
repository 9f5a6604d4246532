"""`comfy_extras.chainner_models.model_loading`: names only."""

from __future__ import annotations

from app.compat.named import named

(load_state_dict,) = named("comfy_extras.chainner_models.model_loading", "load_state_dict")
