"""`comfy.diffusers_convert`: names only."""

from __future__ import annotations

from app.compat.named import named

(
    convert_vae_state_dict,
    convert_text_enc_state_dict,
    convert_text_enc_state_dict_v20,
) = named(
    "comfy.diffusers_convert",
    "convert_vae_state_dict",
    "convert_text_enc_state_dict",
    "convert_text_enc_state_dict_v20",
)
