"""Encoder-decoder models of transformers: loading, and a group of answers that are written in step.

Such a model keeps its own cache, which grows with the answers of one group; pages have no part in it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoConfig,
    AutoModelForMultimodalLM,
    AutoModelForSeq2SeqLM,
    NoRepeatNGramLogitsProcessor,
)
from transformers.modeling_outputs import BaseModelOutput
from transformers.models.auto.modeling_auto import MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES
from transformers.utils import logging

from runtime.llm import processors, weight_count
from runtime.llm.processors.base import Processor
from runtime.platform.errors import RuntimeFault, Unsupported

_SUPPORTED = "supported are Florence-2 and text models such as T5, BART, Pegasus, mBART and Marian"
_PROBE = (5, 9, 4)


@dataclass(frozen=True, slots=True)
class EncoderDecoder:
    """`start_id` begins each answer; `context_length` bounds prompt and answer, each by itself."""

    network: Any
    device: torch.device
    processor: Processor | None
    start_id: int
    pad_id: int
    end_ids: frozenset[int]
    context_length: int

    @property
    def weight_bytes(self) -> int:
        return sum(each.numel() * each.element_size() for each in self.network.parameters())

    @property
    def silent_ids(self) -> frozenset[int]:
        """Control tokens around an answer, which are no part of its text."""
        config = self.network.config.get_text_config()
        begin = getattr(config, "bos_token_id", None)
        return self.end_ids | {self.start_id, self.pad_id} | (set() if begin is None else {begin})

    def rule(self, history: Sequence[int], scores: torch.Tensor, is_last: bool) -> None:
        """What the checkpoint demands of each answer, in place; `history` begins with `start_id`."""
        # scores: [V]
        settings = self.network.generation_config
        forced = settings.forced_bos_token_id if len(history) == 1 else None
        if is_last and settings.forced_eos_token_id is not None:
            forced = settings.forced_eos_token_id
        if settings.no_repeat_ngram_size:
            processor = NoRepeatNGramLogitsProcessor(settings.no_repeat_ngram_size)
            ids = torch.tensor([list(history)], device=scores.device)
            scores.copy_(processor(ids, scores[None].clone())[0])
        if forced is not None:
            scores.fill_(-torch.inf)
            scores[forced] = 0


class Decoding:
    """Answers of equal length to several prompts, computed together until each is taken out."""

    def __init__(
        self, model: EncoderDecoder, prompts: Sequence[Sequence[int]], media: Mapping[str, torch.Tensor]
    ) -> None:
        """`media` are the encoder's further inputs, with one entry for each prompt."""
        length = max(len(each) for each in prompts)
        device = model.device
        padded = [[*each, *[model.pad_id] * (length - len(each))] for each in prompts]
        self._network = model.network
        self._ids = torch.tensor(padded, device=device)
        lengths = torch.tensor([len(each) for each in prompts], device=device)
        self._mask = (torch.arange(length, device=device) < lengths[:, None]).long()
        dtype = model.network.dtype
        self._media = {
            name: each.to(device, dtype if each.is_floating_point() else None) for name, each in media.items()
        }
        self._encoded: torch.Tensor | None = None
        self._cache: Any = None

    @torch.inference_mode()
    def forward(self, histories: Sequence[Sequence[int]]) -> torch.Tensor:
        """Logits [R, V] of what follows each history. The first call computes everything, later ones only
        the last token.
        """
        history = torch.tensor([list(each) for each in histories], device=self._ids.device)
        if self._encoded is None:
            out = self._network(
                input_ids=self._ids,
                attention_mask=self._mask,
                decoder_input_ids=history,
                use_cache=True,
                **self._media,
            )
            self._encoded = out.encoder_last_hidden_state
        else:
            out = self._network(
                encoder_outputs=BaseModelOutput(last_hidden_state=self._encoded),
                attention_mask=self._mask,
                decoder_input_ids=history[:, -1:],
                cache=self._cache,
                use_cache=True,
            )
        self._cache = out.cache
        logits: torch.Tensor = out.logits[:, -1]
        return logits

    def keep(self, rows: Sequence[int]) -> None:
        """Go on with these rows only."""
        assert self._encoded is not None, "nothing is computed yet"
        index = torch.tensor(list(rows), device=self._ids.device)
        self._encoded, self._mask = self._encoded[index], self._mask[index]
        self._cache.batch_select_indices(index)


def is_one(path: Path) -> bool:
    """Whether a folder's configuration is that of an encoder-decoder model."""
    if not (path / "config.json").is_file():
        return False
    try:
        config = AutoConfig.from_pretrained(path, local_files_only=True)
    except (OSError, ValueError, KeyError):
        # Whoever loads it as another kind of model will say what is wrong.
        return False
    return bool(getattr(config, "is_encoder_decoder", False))


def load(path: Path, device: torch.device, dtype: torch.dtype | None) -> EncoderDecoder:
    """`dtype` None is float32 on a CPU and bfloat16 elsewhere. Raises `Unsupported` or `OutOfMemory`."""
    logging.disable_progress_bar()
    dtype = dtype or (torch.float32 if device.type == "cpu" else torch.bfloat16)
    try:
        weight_count.check_fits(path, device, dtype)
        config = AutoConfig.from_pretrained(path, local_files_only=True)
        kind, processor = _kind(path, config)
        network = kind.from_pretrained(path, dtype=dtype, local_files_only=True)
    except RuntimeFault:
        raise
    except Exception as error:
        # As with other models, damaged files come out of transformers as any kind of error.
        raise Unsupported(f"{path.name} cannot be loaded ({error}); {_SUPPORTED}") from error
    network = network.eval().requires_grad_(False).to(device)
    text, settings = config.get_text_config(), network.generation_config
    start = settings.decoder_start_token_id
    start = text.decoder_start_token_id if start is None else start
    if start is None:
        raise Unsupported(f"{path.name} does not say with which token an answer starts")
    ends = settings.eos_token_id if settings.eos_token_id is not None else text.eos_token_id
    model = EncoderDecoder(
        network=network,
        device=device,
        processor=processor,
        start_id=start,
        pad_id=text.pad_token_id if text.pad_token_id is not None else 0,
        end_ids=frozenset([ends] if isinstance(ends, int) else ends or ()),
        context_length=getattr(text, "max_position_embeddings", None) or sys.maxsize,
    )
    _probe(model, path.name)
    return model


def _kind(path: Path, config: Any) -> tuple[Any, Processor | None]:
    if processors.is_known(config):
        return AutoModelForMultimodalLM, processors.families()[config.model_type].load(path, config)
    if config.model_type not in MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES:
        raise Unsupported(f"{path.name} is an encoder-decoder of type {config.model_type}; {_SUPPORTED}")
    return AutoModelForSeq2SeqLM, None


def _probe(model: EncoderDecoder, name: str) -> None:
    """A short answer in steps, beside a longer prompt's, and the same at once and alone must agree."""
    prompts = [list(_PROBE), [*_PROBE, *_PROBE]]
    history = [model.start_id, *_PROBE]
    try:
        together = Decoding(model, prompts, {})
        for length in range(1, len(history) + 1):
            stepped = together.forward([history[:length]] * 2)
        whole = torch.cat([Decoding(model, [each], {}).forward([history]) for each in prompts])
    except Exception as error:
        raise Unsupported(
            f"{name} cannot answer in steps ({type(error).__name__}: {error}); {_SUPPORTED}"
        ) from error
    worst = (stepped.float() - whole.float()).abs().max().item()
    tolerance = (1e-3 if whole.dtype == torch.float32 else 6e-2) * max(1.0, whole.abs().max().item())
    if not worst <= tolerance:
        raise Unsupported(f"{name} answers otherwise in steps (logits differ by {worst:.2g}); {_SUPPORTED}")
