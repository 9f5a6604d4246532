"""Folders that hold eyes only: a vision tower and a projector, made for a language model that lies elsewhere.

Their config.json is a configuration of transformers' with one more field, `language_model`, the name of that
model; their weights are in vision.safetensors.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Set
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from transformers import AutoConfig, AutoModelForMultimodalLM, AutoTokenizer
from transformers.initialization import no_init_weights

from runtime.llm import half_network, processors
from runtime.llm.processors import assemble
from runtime.llm.processors.base import Processor
from runtime.platform.errors import MissingFile, Unsupported

WEIGHTS = "vision.safetensors"
_FIELD = "language_model"


def is_composed(path: Path) -> bool:
    return (path / WEIGHTS).is_file()


def language_path(path: Path, others: Mapping[str, Path]) -> Path:
    name = json.loads((path / "config.json").read_text())[_FIELD]
    if name not in others:
        there = ", ".join(sorted(others)) or "none"
        raise MissingFile(
            f"{path.name} sees for the language model {name}, which is not there; there are: {there}"
        )
    return others[name]


def tokenizer(path: Path, others: Mapping[str, Path]) -> Any:
    """The language model's, with the folder's own chat template, which knows images."""
    source = language_path(path, others)
    folder, file = (source, None) if source.is_dir() else (source.parent, source.name)
    found = AutoTokenizer.from_pretrained(folder, gguf_file=file, local_files_only=True)
    template = path / "chat_template.jinja"
    if template.is_file():
        found.chat_template = template.read_text()
    return found


def read(
    path: Path, language: Any, others: Mapping[str, Path], *, encodes: bool = True
) -> tuple[Any, Processor]:
    """A network around the weights of `language`, with its processor; `Unsupported` when weights lack. One
    that does not `encode` has no eyes.
    """
    config = AutoConfig.from_pretrained(path, local_files_only=True)
    config.text_config = deepcopy(language.config)
    network = _built(config)
    network.model.language_model = language.get_decoder()
    network.config.text_config = language.config  # transformers goes by identity
    network.set_output_embeddings(language.get_output_embeddings())
    borrowed = {id(each) for each in language.state_dict(keep_vars=True).values()}
    if encodes:
        _fill(network, path, language.dtype, borrowed)
    else:
        half_network.leave_out(network, "language")
    network.generation_config = language.generation_config
    return network, _processor(path, config, others)


def read_encoder(path: Path, dtype: torch.dtype, others: Mapping[str, Path]) -> tuple[Any, Processor]:
    """The folder's own weights alone, with the processor."""
    config = AutoConfig.from_pretrained(path, local_files_only=True)
    source = language_path(path, others)
    folder, file = (source, None) if source.is_dir() else (source.parent, source.name)
    config.text_config = AutoConfig.from_pretrained(folder, gguf_file=file, local_files_only=True)
    network = _built(config)
    half_network.leave_out(network, "encoder")
    _fill(network, path, dtype, frozenset())
    return network, _processor(path, config, others)


def _built(config: Any) -> Any:
    with no_init_weights():  # memory that is never written costs nothing, and fixed tables are filled in
        return AutoModelForMultimodalLM.from_config(config)


def _fill(network: Any, path: Path, dtype: torch.dtype, borrowed: Set[int]) -> None:
    """With the folder's weights; `borrowed` are the ids of those that are there."""
    weights = {name: each.to(dtype) for name, each in load_file(path / WEIGHTS).items()}
    network.load_state_dict(weights, strict=False, assign=True)
    own = [name for name, each in network.state_dict(keep_vars=True).items() if id(each) not in borrowed]
    left = [name for name in own if name not in weights]
    if left:
        raise Unsupported(f"{path.name} lacks weights, among them {left[0]}")


def _processor(path: Path, config: Any, others: Mapping[str, Path]) -> Processor:
    made = assemble.load(path, config.model_type, tokenizer(path, others))
    return processors.families()[config.model_type](made, config)
