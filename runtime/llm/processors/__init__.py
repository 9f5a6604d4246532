"""How each family of models takes images, video and sound. A module here is found by being here."""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module
from typing import Any

from runtime.llm.processors.base import Processor


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
    return getattr(config, "model_type", None) in families()
