"""The only place that turns a user's string into a path: models, inputs, outputs, user files.

What it answers lies inside the folder that was asked for, or it raises.
"""

from __future__ import annotations

import json
import mimetypes
import os
import re
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from app.config import Directories
from app.folders import ModelFolders
from nodes.context import NodeInputError, SavedFile
from runtime.platform.installed import packaged_language_models

_ANNOTATION = re.compile(r"^(?P<name>.*?) ?\[(?P<type>input|output|temp)\]$", re.DOTALL)
# Stands among the folders below the input directory.
EXAMPLE_PICTURES = "example pictures"
# What the configuration of a model that takes images says.
_EYES = ("vision_config", "vision_encoder", "visual", "image_token_id", "image_token_index")
_MEDIA_BY_EXTENSION = {".webp": "image", ".avif": "image", ".jxl": "image", ".fbx": "model", ".glb": "model"}


class UnsafeName(ValueError):
    """A name that would leave its folder, or that no file can have."""


def within(root: Path, name: str) -> Path:
    """`root / name`, links followed; raises `UnsafeName` where that is not inside `root`."""
    path = within_by_name(root, name)
    if not path.resolve().is_relative_to(root.resolve()):
        raise UnsafeName(f"'{name}' leads out of its folder")
    return path


def within_by_name(root: Path, name: str) -> Path:
    """As `within`, for folders in which the owner's own links may lead elsewhere."""
    normal = os.path.normpath(name.replace("\\", "/") or ".")
    if "\0" in name or os.path.isabs(normal) or normal.split("/", 1)[0] == ".." or re.match(r"^\w:", normal):
        raise UnsafeName(f"'{name}' leads out of its folder")
    if not _is_possible(normal):
        raise UnsafeName("the name is too long, or holds what is no character")
    return root / normal


def _is_possible(name: str) -> bool:
    try:
        return len(os.fsencode(name)) <= 1024 and all(
            len(os.fsencode(part)) <= 255 for part in name.split("/")
        )
    except UnicodeEncodeError:
        return False


def split_annotation(name: str) -> tuple[str, str | None]:
    """`a.png [output]` -> (`a.png`, `output`)."""
    match = _ANNOTATION.match(name)
    return (name, None) if match is None else (match["name"], match["type"])


def media_kind(name: str) -> str:
    """ "image", "video", "audio", "model" or "other", by extension."""
    by_extension = _MEDIA_BY_EXTENSION.get(os.path.splitext(name)[1].lower())
    return by_extension or (mimetypes.guess_type(name)[0] or "other").split("/", 1)[0]


class Files:
    """Answers nodes (`NodeFiles`) and their declarations (`Library`). Any thread may ask."""

    def __init__(self, directories: Directories, folders: ModelFolders) -> None:
        self.directories = directories
        self.folders = folders
        self._numbering = threading.Lock()

    def make_directories(self) -> None:
        for path in (self.directories.input, self.directories.output, self.directories.temp):
            path.mkdir(parents=True, exist_ok=True)
        self.directories.user.mkdir(parents=True, exist_ok=True)

    # Library

    def names(self, folder: str) -> list[str]:
        return self.folders.names(folder)

    def input_names(self, kind: str) -> list[str]:
        if not self.directories.input.is_dir():
            return []
        files = [entry.name for entry in os.scandir(self.directories.input) if entry.is_file()]
        return sorted(name for name in files if kind == "any" or media_kind(name) == kind)

    def language_models(self) -> list[str]:
        return list(self.language_model_paths())

    def vision_language_models(self) -> list[str]:
        return [name for name, path in self.language_model_paths().items() if _has_eyes(path)]

    def input_folders(self) -> list[str]:
        root = self.directories.input
        found = [path for path in root.rglob("*") if path.is_dir()] if root.is_dir() else []
        return [EXAMPLE_PICTURES, *sorted(path.relative_to(root).as_posix() for path in found)]

    def stamp(self, folder: str, name: str) -> str | None:
        try:
            path = self.input(name) if folder == "input" else self.model(folder, name)
            status = path.stat()
        except (NodeInputError, OSError):
            return None
        return f"{status.st_mtime_ns}-{status.st_size}"

    # runtimes

    def language_model_paths(self) -> Mapping[str, Path]:
        """Name to file or folder; what came with a package first, then models/llm."""
        named = self.directories.language_model
        paths = {**({} if named is None else {named.name: named}), **packaged_language_models()}
        for name in self.folders.names("llm"):
            paths.setdefault(name, self.model("llm", name))
        return paths

    def adapter_paths(self) -> Mapping[str, Path]:
        """LoRA folders of language models, by name."""
        return {name: self.model("llm_loras", name) for name in self.folders.names("llm_loras")}

    # NodeFiles

    def model(self, folder: str, name: str) -> Path:
        known = self.folders.folder(folder)
        if known is None:
            there_are = ", ".join(self.folders.folder_names())
            raise NodeInputError(f"There is no model folder '{folder}'; there are: {there_are}")
        try:
            candidates = [within_by_name(root, name) for root in known.roots]
        except UnsafeName as error:
            raise NodeInputError(str(error)) from None
        for path in candidates:
            if path.exists():
                return path
        raise NodeInputError(f"'{name}' is not in the model folder {folder}: {known.roots[0]}")

    def input(self, name: str) -> Path:
        plain, kind = split_annotation(name)
        root = self.directories.by_type(kind or "input")
        assert root is not None
        try:
            path = within(root, plain)
        except UnsafeName as error:
            raise NodeInputError(str(error)) from None
        if not path.is_file():
            raise NodeInputError(f"'{name}' is not in {root}")
        return path

    def input_folder(self, name: str) -> Path:
        if name == EXAMPLE_PICTURES:
            return self.directories.example_pictures
        try:
            path = within(self.directories.input, name)
        except UnsafeName as error:
            raise NodeInputError(str(error)) from None
        if not path.is_dir():
            raise NodeInputError(f"'{name}' is not a folder in {self.directories.input}")
        return path

    def language_model_of(self, weights: Sequence[Path]) -> str | None:
        known = self.language_model_paths()
        for name, path in known.items():
            if any(each.resolve() == path.resolve() for each in weights):
                return name
        named = (
            _language_model_named_in(folder) for each in weights for folder in (each, each / "text_encoder")
        )
        return next((name for name in named if name in known), None)

    def next_output(
        self, prefix: str, extension: str, *, temporary: bool = False, size: tuple[int, int] = (0, 0)
    ) -> tuple[Path, SavedFile]:
        """The name is taken by creating the file empty, so that two nodes at once never get the same."""
        kind = "temp" if temporary else "output"
        root = self.directories.temp if temporary else self.directories.output
        filled = fill_prefix(prefix, size, time.localtime())
        try:
            stem = within(root, filled)
        except UnsafeName as error:
            raise NodeInputError(str(error)) from None
        if stem == root:
            raise NodeInputError("The file name prefix is empty")
        with self._numbering:
            stem.parent.mkdir(parents=True, exist_ok=True)
            path = _create_next(stem, extension.lstrip("."))
        subfolder = stem.parent.relative_to(root).as_posix()
        return path, SavedFile(path.name, "" if subfolder == "." else subfolder, kind)


def fill_prefix(prefix: str, size: tuple[int, int], now: time.struct_time) -> str:
    """%width%, %height%, %year%, %month%, %day%, %hour%, %minute% and %second% replaced."""
    values = {
        "width": str(size[0]),
        "height": str(size[1]),
        "year": str(now.tm_year),
        "month": f"{now.tm_mon:02}",
        "day": f"{now.tm_mday:02}",
        "hour": f"{now.tm_hour:02}",
        "minute": f"{now.tm_min:02}",
        "second": f"{now.tm_sec:02}",
    }
    return re.sub(r"%(\w+)%", lambda match: values.get(match[1], match[0]), prefix)


def _create_next(stem: Path, extension: str) -> Path:
    taken = re.compile(re.escape(stem.name) + r"_(\d+)", re.IGNORECASE)
    matches = (taken.match(entry.name) for entry in os.scandir(stem.parent))
    number = max((int(match[1]) for match in matches if match), default=0)
    while True:
        number += 1
        path = stem.parent / f"{stem.name}_{number:05}_.{extension}"
        try:
            path.touch(exist_ok=False)
        except FileExistsError:
            continue
        return path


def _has_eyes(path: Path) -> bool:
    return not _config(path).keys().isdisjoint(_EYES)


def _language_model_named_in(folder: Path) -> str | None:
    return _config(folder).get("language_model")


def _config(folder: Path) -> dict[str, Any]:
    try:
        config = json.loads((folder / "config.json").read_text())
    except (OSError, ValueError):
        return {}
    return config if isinstance(config, dict) else {}
