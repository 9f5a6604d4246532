"""One pack of a custom_nodes folder, imported as ComfyUI imports it. An import that fails is a fact, not a
fault.
"""

from __future__ import annotations

import importlib.util
import logging
import sys
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType

from nodes.declare import DECLARED
from nodes.legacy import spec_of_class
from nodes.spec import NodeSpec

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Pack:
    """`error` is the traceback of an import that failed. `refused` has the classes that are no node classes,
    with the reason. `web` is the folder of the pack's browser scripts.
    """

    name: str
    path: Path
    specs: tuple[NodeSpec, ...] = ()
    seconds: float = 0.0
    error: str | None = None
    refused: Mapping[str, str] = field(default_factory=dict)
    web: Path | None = None


def pack_paths(folder: Path) -> list[Path]:
    """In name order, so that two machines agree on which of two equal class names wins."""
    if not folder.is_dir():
        return []
    return [path for path in sorted(folder.iterdir()) if _is_pack(path)]


def _is_pack(path: Path) -> bool:
    if path.name == "__pycache__" or path.name.startswith(".") or path.name.endswith(".disabled"):
        return False
    return path.is_dir() or path.suffix == ".py"


def load_pack(path: Path) -> Pack:
    name = path.stem if path.is_file() else path.name
    started = time.perf_counter()
    known = set(DECLARED)
    try:
        module = _imported(path)
        specs, refused = _specs_of(module, name, known)
        web = _web_folder(module, path)
    except (Exception, SystemExit):
        error = traceback.format_exc()
        log.error("custom node pack %s could not be imported:\n%s", name, error)
        return Pack(name, path, seconds=time.perf_counter() - started, error=error)
    finally:
        for id in set(DECLARED) - known:
            del DECLARED[id]
    return Pack(name, path, specs, time.perf_counter() - started, refused=refused, web=web)


def _imported(path: Path) -> ModuleType:
    """Packs look themselves up in sys.modules under this name, and import their parts relative to it."""
    entry = path / "__init__.py" if path.is_dir() else path
    name = str(path if path.is_dir() else path.with_suffix("")).replace(".", "_x_")
    spec = importlib.util.spec_from_file_location(name, entry)
    if spec is None or spec.loader is None or not entry.is_file():
        raise ImportError(f"{path.name} has no __init__.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _specs_of(
    module: ModuleType, pack: str, known: set[str]
) -> tuple[tuple[NodeSpec, ...], Mapping[str, str]]:
    """Classes of ComfyUI's first style, and typed functions declared with this package's `@node`."""
    specs = [
        replace(spec, pack=pack, python_module=f"custom_nodes.{pack}")
        for id, spec in DECLARED.items()
        if id not in known
    ]
    classes = getattr(module, "NODE_CLASS_MAPPINGS", None)
    names = getattr(module, "NODE_DISPLAY_NAME_MAPPINGS", None) or {}
    if classes is None and not specs:
        raise ImportError(
            "the pack declares no NODE_CLASS_MAPPINGS; supported are V1 classes and @node functions"
        )
    refused = {}
    for id, kind in (classes or {}).items():
        try:
            specs.append(spec_of_class(id, kind, names.get(id), pack))
        except Exception as error:
            log.error("node class %s of the pack %s is left out: %r", id, pack, error)
            refused[id] = repr(error)
    return tuple(specs), refused


def _web_folder(module: ModuleType, path: Path) -> Path | None:
    named = getattr(module, "WEB_DIRECTORY", None)
    folder = (path / named).resolve() if isinstance(named, str) and path.is_dir() else None
    return folder if folder is not None and folder.is_dir() else None
