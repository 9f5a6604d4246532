"""Folders that hold eyes only: a vision tower and a projector, made for a language model that lies elsewhere.

Their config.json is a configuration of transformers' with one more field, `language_model`, the name of that
model; their weights are in vision.safetensors.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

from safetensors.torch import load_file
from transformers import AutoConfig, AutoModelForMultimodalLM, AutoTokenizer
from transformers.initialization import no_init_weights

from runtime.llm import processors
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


def read(path: Path, language: Any, others: Mapping[str, Path]) -> tuple[Any, Processor]:
    """A network around the weights of `language`, with its processor; `Unsupported` when weights lack."""
    config = AutoConfig.from_pretrained(path, local_files_only=True)
    config.text_config = deepcopy(language.config)
    with no_init_weights():  # memory that is never written costs nothing, and fixed tables are filled in
        network = AutoModelForMultimodalLM.from_config(config)
    network.model.language_model = language.get_decoder()
    network.config.text_config = language.config  # transformers goes by identity
    network.set_output_embeddings(language.get_output_embeddings())
    weights = {name: each.to(language.dtype) for name, each in load_file(path / WEIGHTS).items()}
    network.load_state_dict(weights, strict=False, assign=True)
    borrowed = {id(each) for each in language.state_dict(keep_vars=True).values()}
    own = [name for name, each in network.state_dict(keep_vars=True).items() if id(each) not in borrowed]
    left = [name for name in own if name not in weights]
    if left:
        raise Unsupported(f"{path.name} lacks weights, among them {left[0]}")
    network.generation_config = language.generation_config
    made = assemble.load(path, config.model_type, tokenizer(path, others))
    return network, processors.families()[config.model_type](made, config)
