"""Latents to and from files, in ComfyUI's .latent form: safetensors with the prompt in its metadata."""

from __future__ import annotations

from typing import Annotated, Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from nodes.context import NodeContext, NodeInputError
from nodes.declare import node
from nodes.output import ExtraPngInfo, Prompt
from nodes.pictures import text_metadata
from nodes.spec import Library, NodeResult
from nodes.types import Choices, Latent

CATEGORY = "model/latent"
SAMPLES = "latent_tensor"
# An empty tensor of this name marks files in the autoencoder's own scale; older ones were in the network's.
OWN_SCALE = "latent_format_version_0"
OLD_SCALE = 0.18215


def _latent_files(library: Library) -> list[str]:
    return [name for name in library.input_names("any") if name.endswith(".latent")]


@node(
    "SaveLatent",
    display="Save Latent",
    category=CATEGORY,
    returns=(Latent,),
    outputs=("samples",),
    is_output=True,
)
def save_latent(
    ctx: NodeContext,
    *,
    samples: Latent,
    filename_prefix: str = "latents/ComfyUI",
    prompt: Prompt = None,
    extra_pnginfo: ExtraPngInfo = None,
) -> NodeResult:
    """Writes a latent into the output folder, with the prompt in its metadata."""
    path, saved = ctx.files.next_output(filename_prefix, "latent")
    tensors = {SAMPLES: samples["samples"].contiguous(), OWN_SCALE: torch.tensor([])}
    save_file(tensors, path, metadata=text_metadata(prompt, extra_pnginfo) or None)
    return NodeResult((samples,), ui={"latents": [saved.as_ui()]})


@node("LoadLatent", display="Load Latent", category=CATEGORY)
def load_latent(ctx: NodeContext, *, latent: Annotated[str, Choices(_latent_files)]) -> Latent:
    """A latent from the input folder."""
    try:
        tensors = load_file(ctx.files.input(latent))
    except SafetensorError:
        raise NodeInputError(f"{latent} is not a safetensors file") from None
    if SAMPLES not in tensors:
        raise NodeInputError(f"{latent} holds no latent: there is no tensor named {SAMPLES}")
    scale = 1.0 if OWN_SCALE in tensors else 1.0 / OLD_SCALE
    result: dict[str, Any] = {"samples": tensors[SAMPLES].float() * scale}
    return result
