"""`comfy_extras.nodes_model_merging`: names only."""

from __future__ import annotations

from app.compat.named import named

ModelMergeBlocks, ModelMergeSimple = named(
    "comfy_extras.nodes_model_merging", "ModelMergeBlocks", "ModelMergeSimple"
)
