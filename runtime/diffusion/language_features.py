"""The embedded model's text encoder: standardised hidden states of a small, installed language model.

Its folder names the language model, the layer and the statistics; the weights are found by that name.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from runtime.diffusion.api import Conditioning
from runtime.diffusion.encoders import cut_after_layer
from runtime.diffusion.gguf_decoder import load_gguf_decoder
from runtime.diffusion.text import decoder_states
from runtime.platform.checkpoint import read_config, read_tensors
from runtime.platform.errors import MissingFile

_LIMIT = 8.0


class LanguageFeatures:
    """A text encoder whose tokens are [1, max_tokens, D], zero beyond the text; no text is all zeros."""

    def __init__(
        self, module: Any, tokenizer: Any, statistics: Mapping[str, torch.Tensor], max_tokens: int
    ) -> None:
        self.modules = (module,)
        self._module = module
        self._tokenizer = tokenizer
        self._statistics = statistics
        self._max_tokens = max_tokens

    def encode(self, texts: Sequence[tuple[str, ...]]) -> list[Conditioning]:
        ids = [self._tokenizer(text[0].strip())["input_ids"][: self._max_tokens] for text in texts]
        written = [row for row in ids if row]
        states = iter(decoder_states(self._module, written) if written else [])
        return [self._features(next(states)) if row else self._silence() for row in ids]

    def _features(self, states: torch.Tensor) -> Conditioning:
        # [1, L, D]; the first token is the attention sink and carries no meaning where others follow
        of = self._statistics
        tokens = ((states - of["token_mean"]) / of["token_std"]).clamp(-_LIMIT, _LIMIT)
        if tokens.shape[1] > 1:
            tokens[:, 0] = 0
            pooled = tokens[:, 1:].mean(dim=1)
        else:
            pooled = tokens[:, 0]
        tokens = F.pad(tokens, (0, 0, 0, self._max_tokens - tokens.shape[1]))
        return [[tokens, {"pooled_output": (pooled - of["pooled_mean"]) / of["pooled_std"]}]]

    def _silence(self) -> Conditioning:
        width = len(self._statistics["token_mean"])
        return [[torch.zeros(1, self._max_tokens, width), {"pooled_output": torch.zeros(1, width)}]]


def load_language_features(
    folder: Path, language_models: Mapping[str, Path], dtype: torch.dtype, device: str
) -> LanguageFeatures:
    config = read_config(folder)
    name = config["language_model"]
    if name not in language_models:
        raise MissingFile(
            f"{folder.parent.name} reads its prompts with the language model {name}, which is not installed; "
            f"installed: {', '.join(language_models) or 'none'}"
        )
    module, tokenizer = _load_decoder(language_models[name], config["hidden_layer"], dtype)
    module = module.requires_grad_(False).eval().to(device)
    statistics = {
        key: value.float() for key, value in read_tensors(folder / "statistics.safetensors").items()
    }
    return LanguageFeatures(module, tokenizer, statistics, config["max_tokens"])


def _load_decoder(path: Path, hidden_layer: int, dtype: torch.dtype) -> tuple[Any, Any]:
    """The decoder up to the layer that is read, and its tokenizer, from a GGUF file or a folder."""
    if path.is_file():
        return load_gguf_decoder(path, hidden_layer, dtype)
    transformers = importlib.import_module("transformers")
    tokenizer = transformers.AutoTokenizer.from_pretrained(path, local_files_only=True)
    model = transformers.AutoModel.from_pretrained(path, dtype=dtype, local_files_only=True)
    return cut_after_layer(model, hidden_layer), tokenizer
