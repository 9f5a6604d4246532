"""The text encoders of a reference, loaded by role; several families share this."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runtime.diffusion.api import TextEncoderRef
from runtime.diffusion.encoder_parts import EncoderPart, find_encoders
from runtime.diffusion.encoders import load_encoder, load_tokenizer
from runtime.diffusion.families.architecture import LoadContext
from runtime.diffusion.patch import LoraNaming, merge_loras
from runtime.diffusion.text import ClipEncoder, ClipUse
from runtime.platform.errors import MissingFile

_FOLDERS = ("text_encoder", "text_encoder_2", "text_encoder_3")


def encoders_by_role(ref: TextEncoderRef, roles: Sequence[str]) -> dict[str, EncoderPart]:
    """Where each role's weights lie; the first file that has a role wins."""
    found: dict[str, EncoderPart] = {}
    for path in ref.weights:
        for encoder in find_encoders(path, roles):
            found.setdefault(encoder.role, encoder)
    return found


def load_module(
    ref: TextEncoderRef, encoder: EncoderPart, roles: Sequence[str], naming: LoraNaming, context: LoadContext
) -> Any:
    """The module with the reference's LoRAs merged; `roles` give the place that LoRA files name it by."""
    module = load_encoder(encoder, context.dtype, context.device)
    merge_loras(module, ref.loras, naming, _FOLDERS[roles.index(encoder.role)])
    return module


def load_clip(
    ref: TextEncoderRef,
    encoder: EncoderPart,
    use: ClipUse,
    roles: Sequence[str],
    naming: LoraNaming,
    context: LoadContext,
) -> ClipEncoder:
    module = load_module(ref, encoder, roles, naming, context)
    return ClipEncoder(module, load_tokenizer(encoder), use, ref.stop_layer)


def load_clip_encoders(
    ref: TextEncoderRef, uses: Mapping[str, ClipUse], naming: LoraNaming, context: LoadContext
) -> dict[str, ClipEncoder]:
    """All of them; one that is not there is an error."""
    roles = tuple(uses)
    found = encoders_by_role(ref, roles)
    for role in roles:
        if role not in found:
            names = ", ".join(path.name for path in ref.weights)
            raise MissingFile(f"{ref.family} needs the text encoder {role}, which is not in {names}")
    return {role: load_clip(ref, found[role], use, roles, naming, context) for role, use in uses.items()}
