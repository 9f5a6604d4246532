"""Language models that write in blocks, by diffusion, and the algorithms by which they do it, by name."""

from __future__ import annotations

from collections.abc import Mapping

from runtime.llm.dllm import joint_threshold, low_confidence
from runtime.llm.dllm.blocks import Algorithm, algorithms
from runtime.platform.errors import Unsupported

__all__ = ["DEFAULT", "Algorithm", "algorithms", "make"]

DEFAULT = "low_confidence"
_FILES = (low_confidence, joint_threshold)


def make(name: str, settings: Mapping[str, float]) -> Algorithm:
    """Raises `Unsupported` with what there is for an unknown name or setting."""
    kind = algorithms[name]
    known = kind.__dataclass_fields__
    for setting, value in settings.items():
        if setting not in known:
            raise Unsupported(f"{name} has no setting {setting!r}; supported: {', '.join(known)}")
        if not value >= 0:
            raise Unsupported(f"{setting} of {name} must be a number from 0 up, not {value}")
    return kind(**settings)
