"""What the place of a file says of an asset, and where a new one goes. It reads no file."""

from __future__ import annotations

import mimetypes
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from app.files import Files
from app.folders import Folder

MODEL_TYPE = "model_type:"
MISSING = "missing"
UNKNOWN_TYPE = "application/octet-stream"
ROLES = ("input", "models", "output")
# folders of things that are not weights
_NO_MODELS = frozenset({"configs", "custom_nodes", "datasets"})
_PASTED = "pasted"
_SHOWN = ("image/", "video/", "audio/", "text/")


class NoDestination(ValueError):
    """The tags of an upload do not say where it belongs; the text says why."""


@dataclass(frozen=True, slots=True)
class Place:
    """`kind` is input, output, temp or models, and `relative` the path in it; both None elsewhere.

    `loader_path` is what the widget of a loader node takes.
    """

    kind: str | None
    relative: str | None
    loader_path: str | None
    tags: frozenset[str]

    @property
    def filename(self) -> str | None:
        """For the metadata: the path in its folder."""
        return self.loader_path or self.relative

    @property
    def view_url(self) -> str | None:
        if self.relative is None or self.kind not in ("input", "output", "temp"):
            return None
        subfolder, _, name = self.relative.rpartition("/")
        url = f"/api/view?type={self.kind}&filename={quote(name, safe='')}"
        return f"{url}&subfolder={quote(subfolder, safe='')}" if subfolder else url


class Places:
    def __init__(self, files: Files) -> None:
        self._files = files

    def owned_roots(self) -> list[Path]:
        """Every directory whose files can be assets."""
        roots = [root for _, root in self._storages()]
        return roots + [root for _, folder in self.model_folders() for root in folder.roots]

    def roots(self, role: str) -> list[Path]:
        """The directories that a scan of `role` walks. Output folders may hold models as well."""
        if role == "models":
            return [root for _, folder in self.model_folders() for root in folder.roots]
        return [root for kind, root in self._storages() if kind == role]

    def model_folders(self) -> Iterator[tuple[str, Folder]]:
        folders = self._files.folders
        for name in folders.folder_names():
            folder = folders.folder(name)
            if folder is not None and name not in _NO_MODELS:
                yield name, folder

    def model_files(self) -> Iterator[Path]:
        """A model that is a whole directory has no content to hand out, so it is no asset."""
        for name, folder in self.model_folders():
            for listed in self._files.folders.names(name):
                paths = [root / listed for root in folder.roots]
                yield from (path for path in paths if path.is_file())

    def place(self, path: Path) -> Place:
        kind, relative = self._storage(path)
        holding = [(name, folder, root) for name, folder in self.model_folders() for root in folder.roots]
        holding = [(name, folder, root) for name, folder, root in holding if path.is_relative_to(root)]
        loading = [(name, root) for name, folder, root in holding if _is_loaded(path, folder)]
        tags = {MODEL_TYPE + name for name, _ in loading}
        tags |= {tag for tag in (kind, "models" if holding else None) if tag}
        if kind == "input" and path.parent.name == _PASTED and relative == f"{_PASTED}/{path.name}":
            tags.add(_PASTED)
        loader_path = relative if kind in ("input", "output", "temp") else None
        if loading:
            deepest = max((root for _, root in loading), key=lambda root: len(root.parts))
            loader_path = path.relative_to(deepest).as_posix()
        return Place(kind, relative, loader_path, frozenset(tags))

    def destination(self, tags: Iterable[str]) -> Path:
        """The directory for an upload. Raises `NoDestination`; tags of other kinds are mere labels."""
        tags = list(tags)
        roles = [role for role in ROLES if role in tags]
        if len(roles) != 1:
            raise NoDestination("The tags should hold exactly one of input, models and output")
        if roles[0] != "models":
            root = self._files.directories.by_type(roles[0])
            assert root is not None
            return root
        types = [tag.removeprefix(MODEL_TYPE) for tag in tags if tag.startswith(MODEL_TYPE)]
        if len(types) != 1:
            raise NoDestination("An upload of a model needs exactly one tag model_type:FOLDER")
        known = dict(self.model_folders())
        if types[0] not in known or not known[types[0]].roots:
            raise NoDestination(f"There is no model folder '{types[0]}'; there are: {', '.join(known)}")
        return known[types[0]].roots[0]

    def _storages(self) -> Iterator[tuple[str, Path]]:
        directories = self._files.directories
        for kind in ("input", "output", "temp"):
            root = directories.by_type(kind)
            assert root is not None
            yield kind, root
        yield "models", directories.models
        yield "models", directories.embedded_models

    def _storage(self, path: Path) -> tuple[str | None, str | None]:
        """The deepest of the roots around the file, because one may lie in another."""
        around = [(kind, root) for kind, root in self._storages() if root in path.parents]
        if not around:
            return None, None
        kind, root = max(around, key=lambda entry: len(entry[1].parts))
        return kind, path.relative_to(root).as_posix()


def mime_type_of(name: str) -> str | None:
    return mimetypes.guess_type(name)[0]


def can_be_shown(mime_type: str | None) -> bool:
    return (mime_type or "").startswith(_SHOWN)


def _is_loaded(path: Path, folder: Folder) -> bool:
    return folder.lists_files and (not folder.extensions or path.suffix.lower() in folder.extensions)
