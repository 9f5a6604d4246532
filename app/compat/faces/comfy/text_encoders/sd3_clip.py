"""`comfy.text_encoders.sd3_clip`: names only."""

from __future__ import annotations

from app.compat.named import named

(
    SD3ClipModel,
    T5XXLModel,
    SD3Tokenizer,
) = named("comfy.text_encoders.sd3_clip", "SD3ClipModel", "T5XXLModel", "SD3Tokenizer")
