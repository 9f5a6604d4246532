"""Words to what the transformer reads: standardised hidden states of a small language model.

One layer's states are the tokens, their mean is the pooled vector. Statistics bring both to unit scale; the
first token is left out wherever there is another, because it is the model's attention sink.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer

from runtime.platform.installed import packaged_language_models

LIMIT = 8.0  # standardised values beyond it are clipped
CHUNK = 64  # texts read together


@dataclass(frozen=True, slots=True)
class TextConfig:
    """The content of text_encoder/config.json."""

    language_model: str
    hidden_layer: int
    max_tokens: int


@dataclass(frozen=True, slots=True)
class Statistics:
    token_mean: Tensor
    token_std: Tensor
    pooled_mean: Tensor
    pooled_std: Tensor


@dataclass(frozen=True, slots=True)
class States:
    hidden: Tensor  # [B, L, D]
    lengths: Tensor  # [B]


@dataclass(frozen=True, slots=True)
class Features:
    tokens: Tensor  # [B, L, D], zero beyond a text's end
    pooled: Tensor  # [B, D]


class TextReader:
    """Owns a language model, cut off above the layer whose states are used."""

    def __init__(self, config: TextConfig) -> None:
        model_file = packaged_language_models()[config.language_model]
        source = {"pretrained_model_name_or_path": str(model_file.parent), "gguf_file": model_file.name}
        self._tokenizer = AutoTokenizer.from_pretrained(**source, padding_side="right")
        self._model = AutoModelForCausalLM.from_pretrained(**source, dtype=torch.float32).model.eval()
        self._model.layers = self._model.layers[: config.hidden_layer + 1]
        self._model.norm = torch.nn.Identity()  # inner states are read before the final norm
        self._max_tokens = config.max_tokens

    @torch.inference_mode()
    def read(self, texts: Sequence[str]) -> States:
        encoded = self._tokenizer(
            list(texts),
            return_tensors="pt",
            padding="max_length",
            truncation=True,
            max_length=self._max_tokens,
        )
        ids, mask = encoded["input_ids"].split(CHUNK), encoded["attention_mask"].split(CHUNK)
        parts = zip(ids, mask, strict=True)
        hidden = [self._model(input_ids=rows, attention_mask=seen).last_hidden_state for rows, seen in parts]
        return States(torch.cat(hidden), encoded["attention_mask"].sum(1))


def measure(states: States) -> Statistics:
    """Over all the tokens that count, and over all the texts."""
    tokens = states.hidden[_body(states)]
    neutral = torch.zeros(states.hidden.shape[-1])
    statistics = Statistics(tokens.mean(0), tokens.std(0), neutral, neutral + 1)
    pooled = standardise(states, statistics).pooled
    return Statistics(statistics.token_mean, statistics.token_std, pooled.mean(0), pooled.std(0))


def standardise(states: States, statistics: Statistics) -> Features:
    body = _body(states)
    tokens = (states.hidden - statistics.token_mean) / statistics.token_std
    tokens = tokens.clamp(-LIMIT, LIMIT) * body[..., None]
    pooled = tokens.sum(1) / body.sum(1, keepdim=True)
    return Features(tokens, (pooled - statistics.pooled_mean) / statistics.pooled_std)


def _body(states: States) -> Tensor:
    """Which tokens count, [B, L]."""
    position = torch.arange(states.hidden.shape[1])
    lengths = states.lengths[:, None]
    return (position < lengths) & ((position > 0) | (lengths == 1))
