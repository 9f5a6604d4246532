"""`comfy.sd1_clip`: the weight syntax of prompts."""

from __future__ import annotations

from app.compat.named import named
from runtime.diffusion.prompt_weights import parse_weights

SDClipModel, SD1ClipModel, SDTokenizer, SD1Tokenizer, ClipTokenWeightEncoder, gen_empty_tokens = named(
    "comfy.sd1_clip",
    "SDClipModel",
    "SD1ClipModel",
    "SDTokenizer",
    "SD1Tokenizer",
    "ClipTokenWeightEncoder",
    "gen_empty_tokens",
)

_ESCAPES = {"\\)": "\0\1", "\\(": "\0\2"}
_PLAIN = {"\0\1": ")", "\0\2": "("}


def escape_important(text: str) -> str:
    """Escaped parentheses as marks that `token_weights` does not see."""
    for written, mark in _ESCAPES.items():
        text = text.replace(written, mark)
    return text


def unescape_important(text: str) -> str:
    for mark, plain in _PLAIN.items():
        text = text.replace(mark, plain)
    return text


def token_weights(string: str, current_weight: float) -> list[tuple[str, float]]:
    return [(piece, weight * current_weight) for piece, weight in parse_weights(string)]
