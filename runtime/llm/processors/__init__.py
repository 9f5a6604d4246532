"""How each family of models takes images, video and sound. A module here is found by being here."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any

from transformers.models.auto import modeling_auto

from runtime.llm.processors.base import Processor
from runtime.platform.errors import Unsupported

_TORCHVISION = "transformers prepares its images with torchvision only"
_REASONS: Mapping[str, str] = {
    "cohere2_vision": _TORCHVISION,
    "idefics2": "the text that stands for one of its images depends on what is beside it",
    "lfm2_vl": _TORCHVISION,
    "minimax_m3_vl": _TORCHVISION,
    "molmo2": _TORCHVISION,
    "ovis2": "the marks around its images are made by its vision tower too",
    "paligemma": "its prompts attend both ways as a whole, so they can be neither cut into chunks nor shared",
    "perception_lm": _TORCHVISION,
    "step3p7": _TORCHVISION,
}


@cache
def families() -> dict[str, type[Processor]]:
    """Every family's class by the `model_type` of the configurations that it serves."""
    found: dict[str, type[Processor]] = {}
    for module in sorted(each.name for each in pkgutil.iter_modules(__path__)):
        for entry in vars(import_module(f"{__name__}.{module}")).values():
            if isinstance(entry, type) and issubclass(entry, Processor) and entry.__module__.endswith(module):
                for model_type in entry.model_types:
                    assert found.get(model_type, entry) is entry, f"two processors for {model_type}"
                    found[model_type] = entry
    return found


def is_known(config: Any) -> bool:
    """False for a model of text; raises `Unsupported` for one of media that no family serves."""
    model_type: str = config.model_type
    if model_type in families():
        return True
    if model_type in modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES or config.is_encoder_decoder:
        return False
    if (
        model_type in modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES
        or model_type in modeling_auto.MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES
    ):
        why = f": {_REASONS[model_type]}" if model_type in _REASONS else ""
        there = ", ".join(sorted(families()))
        raise Unsupported(
            f"models of type {model_type} are not served{why}; those that take media are {there}"
        )
    return False
