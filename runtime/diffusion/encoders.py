"""Text encoder modules and their tokenizers, wherever they lie.

Which encoders a family uses together, and how, is text.py's subject.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import torch

from runtime.diffusion.encoder_files import encoder_from_tensors
from runtime.diffusion.encoder_parts import EncoderPart
from runtime.platform.errors import MissingFile, Unsupported

_CLIP_TOKENIZER = Path(__file__).parent / "configs" / "clip_tokenizer"
# their inner values go beyond what half precision can hold
_OVERFLOWING = ("t5", "qwen3")
_SOURCES = {"t5": "google/t5-v1_1-xxl", "qwen3": "Qwen/Qwen3-4B"}


def load_encoder(encoder: EncoderPart, dtype: torch.dtype, device: str) -> Any:
    """A transformers module in evaluation mode."""
    importlib.import_module("transformers.utils.logging").disable_progress_bar()
    part = encoder.part
    if dtype == torch.float16 and encoder.role in _OVERFLOWING:
        dtype = torch.bfloat16
    if part.is_folder:
        module = _class_of_folder(encoder).from_pretrained(
            part.path, dtype=dtype, variant=part.variant, local_files_only=True
        )
    else:
        tensors = {name: tensor.to(dtype) for name, tensor in part.tensors().items()}
        module = encoder_from_tensors(encoder.role, tensors)
    return module.requires_grad_(False).eval().to(device)


def load_tokenizer(encoder: EncoderPart) -> Any:
    """The tokenizer beside the encoder, or the one that comes with Treadle (CLIP)."""
    transformers = importlib.import_module("transformers")
    is_clip = encoder.role.startswith("clip")
    own = encoder.part.path.parent / "tokenizers" / encoder.role
    for folder in (encoder.tokenizer, own):
        if (folder / "tokenizer_config.json").is_file():
            return transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        if not is_clip and (folder / "tokenizer.json").is_file():
            return transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
    if is_clip:
        return packaged_clip_tokenizer()
    raise MissingFile(
        f"the text encoder {encoder.part.path.name} ({encoder.role}) needs its tokenizer: "
        f"put tokenizer.json of {_SOURCES[encoder.role]} into {own}"
    )


def cut_after_layer(model: Any, hidden_layer: int) -> Any:
    """A decoder whose last hidden state is what `hidden_states[hidden_layer]` was before."""
    count = hidden_layer if hidden_layer >= 0 else len(model.layers) + 1 + hidden_layer
    if not 0 < count < len(model.layers):
        raise Unsupported(f"hidden layer {hidden_layer} of a text encoder of {len(model.layers)} layers")
    model.layers = model.layers[:count]
    model.norm = torch.nn.Identity()
    return model


def _class_of_folder(encoder: EncoderPart) -> Any:
    transformers = importlib.import_module("transformers")
    if encoder.role == "t5":
        return transformers.T5EncoderModel
    if encoder.role == "qwen3":
        return transformers.AutoModel
    named = encoder.part.config().get("architectures") or ["CLIPTextModel"]
    if named[0] not in ("CLIPTextModel", "CLIPTextModelWithProjection"):
        raise Unsupported(f"{encoder.part.path} is a {named[0]}, not a CLIP text encoder")
    return getattr(transformers, named[0])


def packaged_clip_tokenizer() -> Any:
    """CLIP's vocabulary follows from its merges: bytes, bytes that end a word, merges, two special tokens."""
    convert = importlib.import_module("transformers.convert_slow_tokenizer")
    letters = list(convert.bytes_to_unicode().values())
    lines = (_CLIP_TOKENIZER / "merges.txt").read_text(encoding="utf-8").split("\n")
    merges = [tuple(line.split(" ")) for line in lines if line]
    words = [*letters, *(f"{letter}</w>" for letter in letters), *("".join(merge) for merge in merges)]
    words += ["<|startoftext|>", "<|endoftext|>"]
    transformers = importlib.import_module("transformers")
    return transformers.CLIPTokenizer(
        vocab={word: number for number, word in enumerate(words)}, merges=merges
    )
