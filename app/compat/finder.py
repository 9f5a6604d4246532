"""The import hook: `import comfy.utils` in a pack finds the face app/compat/faces/comfy/utils.py.

A face is one module under two names, so that it has its state once. Modules and names without a face fail
with a sentence that says which, and for which pack. It knows packs by the folder that a file lies in.
"""

from __future__ import annotations

import builtins
import importlib
import sys
import threading
from collections.abc import Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

FACES = "app.compat.faces"
_FOLDER = Path(__file__).parent / "faces"

# `nodes` is a package of this program too: packs alone are answered by the face, through their own __import__
NODES = "nodes"
SERVED = frozenset(path.stem for path in _FOLDER.iterdir() if path.stem not in ("__init__", "__pycache__"))


class NotServed(ModuleNotFoundError):
    """A module or a name of ComfyUI that this program does not have."""


class PackFinder(MetaPathFinder):
    """Answers ComfyUI's module names. `roots` are folders of packs, by which files are told apart.

    One finder serves the process; any thread may import.
    """

    def __init__(self) -> None:
        self.roots: list[Path] = []
        self._builtins: dict[str, dict[str, Any]] = {}
        self._lock = threading.Lock()

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        top = fullname.partition(".")[0]
        if top in SERVED and top != NODES:
            return self._face_spec(fullname)
        return None

    def pack_of(self, file: str) -> str | None:
        """The name of the pack that a file belongs to."""
        for root in self.roots:
            if file.startswith(f"{root}/"):
                return Path(file).relative_to(root).parts[0].removesuffix(".py")
        return None

    def loading_pack(self) -> str | None:
        """Whose code is it that runs here, or imports just now?"""
        frame = sys._getframe(1)
        while frame is not None:
            pack = self.pack_of(frame.f_code.co_filename)
            if pack is not None:
                return pack
            if frame.f_back is None:
                return None
            frame = frame.f_back
        return None

    def builtins_for(self, pack: str) -> dict[str, Any]:
        with self._lock:
            if pack not in self._builtins:
                self._builtins[pack] = {**vars(builtins), "__import__": _PackImport(pack)}
            return self._builtins[pack]

    def _face_spec(self, fullname: str) -> ModuleSpec:
        face = face_name(fullname)
        if face is None:
            raise NotServed(_sentence(f"the module {fullname}", self.loading_pack()), name=fullname)
        path = _FOLDER.joinpath(*fullname.split("."))
        return ModuleSpec(fullname, _FaceLoader(face), is_package=path.is_dir())


class _FaceLoader(Loader):
    def __init__(self, face: str) -> None:
        self._face = face

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = imported_face(self._face)
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """It ran under its own name; only what the import system wrote on it is put back."""
        spec = module.__spec__
        assert spec is not None
        module.__spec__ = spec.loader_state


class _PackImport:
    """`__import__` as one pack sees it."""

    def __init__(self, pack: str) -> None:
        self._pack = pack

    def __call__(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,
        locals: Mapping[str, Any] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        if level == 0 and name == NODES:
            module = imported_face(f"{FACES}.{NODES}")
        else:
            module = builtins.__import__(name, globals, locals, fromlist or (), level)
        if level == 0 and fromlist and name.partition(".")[0] in SERVED:
            for wanted in fromlist:
                if wanted != "*" and not hasattr(module, wanted):
                    raise NotServed(_sentence(f"{name}.{wanted}", self._pack), name=name)
        return module


def face_name(fullname: str) -> str | None:
    """The module of this program that answers to a name of ComfyUI."""
    path = _FOLDER.joinpath(*fullname.split("."))
    is_there = path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()
    return f"{FACES}.{fullname}" if is_there else None


def imported_face(name: str) -> ModuleType:
    module = importlib.import_module(name)
    if "__getattr__" not in vars(module):
        module.__dict__["__getattr__"] = _Missing(name.removeprefix(f"{FACES}."))
    return module


class _Missing:
    """A face's `__getattr__`: submodules are imported when asked for, the rest is named and refused."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __call__(self, name: str) -> Any:
        if not name.startswith("__"):
            full = f"{self._module}.{name}"
            if face_name(full) is not None:
                return importlib.import_module(full)
            raise AttributeError(_sentence(full, FINDER.loading_pack()))
        raise AttributeError(f"module '{self._module}' has no attribute '{name}'")


def _sentence(what: str, pack: str | None) -> str:
    who = f", which the pack {pack} asks for" if pack else ""
    return f"Treadle does not serve {what}{who}; docs/compat.md lists what it serves"


FINDER = PackFinder()


def install(roots: Sequence[Path]) -> None:
    """Once or again, with the folders that packs lie in."""
    FINDER.roots.extend(root for root in roots if root not in FINDER.roots)
    if FINDER not in sys.meta_path:
        sys.meta_path.insert(0, FINDER)
        _run_packs_with_their_own_import()
        _answer_import_module()


def _run_packs_with_their_own_import() -> None:
    """In the loader and not in a finder, because packs also load their parts by path, past every finder."""
    run = SourceFileLoader.exec_module

    def exec_module(loader: SourceFileLoader, module: ModuleType) -> None:
        pack = FINDER.pack_of(loader.path)
        if pack is not None:
            module.__dict__["__builtins__"] = FINDER.builtins_for(pack)
        run(loader, module)

    SourceFileLoader.exec_module = exec_module  # type: ignore[method-assign, assignment]


def _answer_import_module() -> None:
    """`importlib.import_module("nodes")` in a pack is the face too; all other callers get this package."""
    plain = importlib.import_module

    def import_module(name: str, package: str | None = None) -> ModuleType:
        if name == NODES and FINDER.pack_of(sys._getframe(1).f_code.co_filename) is not None:
            return imported_face(f"{FACES}.{NODES}")
        return plain(name, package)

    importlib.import_module = import_module
