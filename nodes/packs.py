"""One pack of a custom_nodes folder, imported as ComfyUI imports it. An import that fails is a fact, not a
fault.
"""

from __future__ import annotations

import importlib.util
import logging
import sys
import time
import tomllib
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from nodes.declare import DECLARED
from nodes.legacy import spec_of_class
from nodes.spec import NodeSpec
from nodes.v3 import is_v3, spec_of_schema

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Pack:
    """`error` is the traceback of an import that failed. `refused` has the classes that are no node classes,
    with the reason. `web` has folders of browser scripts by the name under which they are served.
    """

    name: str
    path: Path
    specs: tuple[NodeSpec, ...] = ()
    seconds: float = 0.0
    error: str | None = None
    refused: Mapping[str, str] = field(default_factory=dict)
    web: Mapping[str, Path] = field(default_factory=dict)


RunToEnd = Callable[[Callable[[], Any]], Any]


def pack_paths(folder: Path) -> list[Path]:
    """In name order, so that two machines agree on which of two equal class names wins."""
    if not folder.is_dir():
        return []
    return [path for path in sorted(folder.iterdir()) if _is_pack(path)]


def _is_pack(path: Path) -> bool:
    if path.name == "__pycache__" or path.name.startswith(".") or path.name.endswith(".disabled"):
        return False
    return path.is_dir() or path.suffix == ".py"


def load_pack(path: Path, run_to_end: RunToEnd = lambda f: f()) -> Pack:
    """`run_to_end` calls what may be a coroutine function, a pack's entry point."""
    name = path.stem if path.is_file() else path.name
    started = time.perf_counter()
    known = set(DECLARED)
    try:
        module = _imported(path)
        specs, refused = _specs_of(module, name, known, run_to_end)
        web = _web_folders(module, path, name)
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
    module: ModuleType, pack: str, known: set[str], run_to_end: RunToEnd
) -> tuple[tuple[NodeSpec, ...], Mapping[str, str]]:
    """Classes of ComfyUI's first and third style, and functions declared with this package's `@node`."""
    specs = [
        replace(spec, pack=pack, python_module=f"custom_nodes.{pack}")
        for id, spec in DECLARED.items()
        if id not in known
    ]
    classes = getattr(module, "NODE_CLASS_MAPPINGS", None)
    entry_point = getattr(module, "comfy_entrypoint", None)
    wanted: list[tuple[str | None, Any, str | None]]
    if classes is not None:
        names = getattr(module, "NODE_DISPLAY_NAME_MAPPINGS", None) or {}
        wanted = [(id, kind, names.get(id)) for id, kind in classes.items()]
    elif entry_point is not None:
        wanted = [(None, kind, None) for kind in _listed(entry_point, run_to_end)]
    elif specs:
        wanted = []
    else:
        raise ImportError(
            "the pack declares no nodes: no NODE_CLASS_MAPPINGS, comfy_entrypoint or @node function"
        )
    refused: dict[str, str] = {}
    for id, kind, name in wanted:
        try:
            kind.RELATIVE_PYTHON_MODULE = f"custom_nodes.{pack}"
            specs.append(_spec_of(id, kind, name, pack))
        except Exception as error:
            title = id or str(getattr(kind, "__name__", kind))
            log.error("node class %s of the pack %s is left out: %r", title, pack, error)
            refused[title] = repr(error)
    return tuple(specs), refused


def _spec_of(id: str | None, kind: Any, display_name: str | None, pack: str) -> NodeSpec:
    """A class of the third style says its own id, unless it is listed among those of the first."""
    if is_v3(kind):
        spec = spec_of_schema(kind, pack, display_name)
        return spec if id is None else replace(spec, id=id)
    if id is None:
        raise TypeError(f"{kind!r} has no define_schema")
    return spec_of_class(id, kind, display_name, pack)


def _listed(entry_point: Callable[[], Any], run_to_end: RunToEnd) -> Sequence[Any]:
    extension = run_to_end(entry_point)
    run_to_end(extension.on_load)
    classes: Sequence[Any] = run_to_end(extension.get_node_list)
    return classes


def _web_folders(module: ModuleType, path: Path, name: str) -> dict[str, Path]:
    """WEB_DIRECTORY under the pack's name, and what its pyproject names under the project's."""
    if not path.is_dir():
        return {}
    named = {name: getattr(module, "WEB_DIRECTORY", None), **_project_web(path)}
    folders = {key: (path / web).resolve() for key, web in named.items() if isinstance(web, str)}
    return {key: folder for key, folder in folders.items() if folder.is_dir()}


def _project_web(path: Path) -> dict[str, Any]:
    try:
        project = tomllib.loads((path / "pyproject.toml").read_text())
        return {project["project"]["name"]: project["tool"]["comfy"]["web"]}
    except (OSError, ValueError, KeyError, TypeError):
        return {}
