"""Loads what makes features of a model's media, and nothing else of that model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig

from runtime.llm import composed, half_network, packed_linear, processors
from runtime.llm.model import implementations, number_format, silence_progress_bars
from runtime.llm.processors.base import Processor
from runtime.platform.errors import RuntimeFault, Unsupported


def load(
    path: Path, device: torch.device, dtype: torch.dtype | None, others: Mapping[str, Path]
) -> tuple[Any, Processor]:
    """The network with its processor. Numbers are kept as in `model.load`, so that features are the same."""
    silence_progress_bars()
    dtype, halves = number_format(device, dtype)
    try:
        network, processor = _read(path, dtype, others)
    except RuntimeFault:
        raise
    except Exception as error:
        # Damaged files and strange configurations come out of transformers as any kind of error.
        raise Unsupported(f"the encoder of {path.name} cannot be loaded ({error})") from error
    network = network.eval().requires_grad_(False).to(device)
    packed_linear.pack(network, device, halves=halves)
    return network, processor


def _read(path: Path, dtype: torch.dtype, others: Mapping[str, Path]) -> tuple[Any, Processor]:
    if path.is_file():
        raise Unsupported(f"{path.name} is a model of text; it has nothing that encodes media")
    if composed.is_composed(path):
        return composed.read_encoder(path, dtype, others)
    config = AutoConfig.from_pretrained(path, local_files_only=True)
    if config.is_encoder_decoder or not processors.is_known(config):
        raise Unsupported(f"{path.name} has no encoder of media that can be served by itself")
    settings = {"dtype": dtype, "attn_implementation": implementations(config)}
    network = half_network.load(path, config, "encoder", **settings)
    return network, processors.families()[config.model_type].load(path, config)
