"""A runner of the user's own, named as `file.py:Class`: found, checked and made, or refused and why."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from runtime.llm.model import LanguageModel
from runtime.llm.runner import Runner
from runtime.llm.state_slots import StateSlots
from runtime.platform.errors import MissingFile, RuntimeFault, Unsupported

_BASE = f"{Runner.__module__}.{Runner.__name__}"


def load(named: str) -> type[Runner]:
    """The file is code and runs. Raises `MissingFile` or `Unsupported`."""
    file, _, name = named.rpartition(":")
    if not file or not name.isidentifier():
        raise Unsupported(f"{named} does not name a runner; it must be written as file.py:Class")
    found = getattr(_module(Path(file)), name, None)
    if found is None:
        raise Unsupported(f"there is no class {name} in {file}")
    if not (isinstance(found, type) and issubclass(found, Runner)):
        raise Unsupported(f"{name} in {file} is no runner; it must be a class that derives from {_BASE}")
    return found


def make(
    kind: type[Runner], model: LanguageModel, num_pages: int, page_size: int, slots: StateSlots | None
) -> Runner:
    """Raises `Unsupported` when the class cannot be made for this model."""
    try:
        made = kind(model, num_pages, page_size, slots)
    except RuntimeFault:
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise Unsupported(f"the runner {kind.__name__} cannot be made: {reason}") from error
    if not hasattr(made, "key_values"):
        raise Unsupported(f"the runner {kind.__name__} does not call {_BASE}.__init__")
    return made


def _module(file: Path) -> Any:
    if not file.is_file():
        raise MissingFile(f"there is no file {file} to take a runner from")
    spec = spec_from_file_location(f"custom_runner_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise Unsupported(
            f"{file} cannot be imported; a runner lies in a Python file, whose name ends in .py"
        )
    module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise Unsupported(f"{file} cannot be imported: {type(error).__name__}: {error}") from error
    return module
