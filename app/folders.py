"""Which models are on disk, under ComfyUI's folder names. It lists; paths are made in files.py."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from app.config import BadConfig, Directories

_WEIGHTS = frozenset({".ckpt", ".pt", ".pt2", ".bin", ".pth", ".safetensors", ".pkl", ".sft"})
_WEIGHTS_OR_GGUF = _WEIGHTS | {".gguf"}
_SKIPPED_DIRECTORIES = frozenset({".git", "__pycache__"})
_LEGACY_NAMES = {"unet": "diffusion_models", "clip": "text_encoders"}
_OUTPUT_FOLDERS = {
    "checkpoints": "checkpoints",
    "text_encoders": "clip",
    "vae": "vae",
    "diffusion_models": "diffusion_models",
    "loras": "loras",
}
_RARE = """
    hypernetworks photomaker classifiers model_patches audio_encoders background_removal frame_interpolation
    geometry_estimation optical_flow detection
"""
EMBEDDED_CHECKPOINT = "glyph"


@dataclass(frozen=True, slots=True)
class Folder:
    """`extensions` empty means any file. A directory that holds a `marker` file is one model."""

    roots: tuple[Path, ...]
    extensions: frozenset[str] = _WEIGHTS
    marker: str | None = None
    lists_files: bool = True


# What packs see and change: folder name to directories and extensions.
SharedFolders = dict[str, tuple[list[str], set[str]]]


@dataclass(slots=True)
class _Listing:
    folder: Folder
    names: list[str] = field(default_factory=list)
    stamps: dict[Path, int] = field(default_factory=dict)

    def is_current(self) -> bool:
        return all(_stamp(directory) == stamp for directory, stamp in self.stamps.items())


class ModelFolders:
    """Listings are kept until a directory below a root changes. Any thread may ask."""

    def __init__(self, directories: Directories, extra_model_paths: Iterable[Path] = ()) -> None:
        self._folders = _standard_folders(directories)
        for path in extra_model_paths:
            for name, root, is_default in read_extra_paths(path):
                self._add_root(name, root, is_default)
        self._shared: SharedFolders | None = None
        self._listings: dict[str, _Listing] = {}
        self._lock = threading.Lock()

    def folder_names(self) -> list[str]:
        return list(self._folders if self._shared is None else self._shared)

    def folder(self, name: str) -> Folder | None:
        name = _LEGACY_NAMES.get(name, name)
        known = self._folders.get(name)
        if self._shared is None:
            return known
        if name not in self._shared:
            return None
        paths, extensions = self._shared[name][:2]
        roots = tuple(Path(path) for path in paths)
        if known is None:
            return Folder(roots, frozenset(extensions))
        return Folder(roots, frozenset(extensions), known.marker, known.lists_files)

    def share(self) -> SharedFolders:
        """The same folders as a dict that its holder may change; from then on the dict says what there is."""
        if self._shared is None:
            sets = {folder.extensions: set(folder.extensions) for folder in self._folders.values()}
            self._shared = {
                name: ([str(root) for root in folder.roots], sets[folder.extensions])
                for name, folder in self._folders.items()
            }
        return self._shared

    def names(self, name: str) -> list[str]:
        """Sorted relative names with forward slashes; empty for a folder that nobody knows."""
        name = _LEGACY_NAMES.get(name, name)
        folder = self.folder(name)
        if folder is None:
            return []
        with self._lock:
            listing = self._listings.get(name)
            if listing is None or listing.folder != folder or not listing.is_current():
                listing = self._listings[name] = _list(folder)
        names = sorted(set(listing.names))
        if name == "checkpoints":
            names.sort(key=lambda entry: entry != EMBEDDED_CHECKPOINT)
        return names

    def _add_root(self, name: str, root: Path, is_default: bool) -> None:
        name = _LEGACY_NAMES.get(name, name)
        known = self._folders.get(name, Folder(roots=(), extensions=frozenset()))
        others = tuple(other for other in known.roots if other != root)
        roots = (root, *others) if is_default else (*others, root)
        self._folders[name] = Folder(roots, known.extensions, known.marker, known.lists_files)


def read_extra_paths(path: Path) -> list[tuple[str, Path, bool]]:
    """(folder name, directory, is_default) for each entry of an extra_model_paths.yaml."""
    try:
        sections = yaml.safe_load(path.read_text()) or {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise BadConfig(f"extra model paths {path} cannot be read: {error}") from None
    if not isinstance(sections, Mapping):
        raise BadConfig(f"{path} should hold sections, each with folder names and paths")
    found: list[tuple[str, Path, bool]] = []
    for title, section in sections.items():
        if section is None:
            continue
        if not isinstance(section, Mapping):
            raise BadConfig(f"section '{title}' of {path} should map folder names to paths")
        entries = dict(section)
        is_default = bool(entries.pop("is_default", False))
        base = path.parent / os.path.expandvars(os.path.expanduser(str(entries.pop("base_path", "") or "")))
        for name, lines in entries.items():
            for line in str(lines or "").splitlines():
                if line.strip():
                    expanded = os.path.expandvars(os.path.expanduser(line.strip()))
                    found.append((str(name), Path(os.path.normpath(base / expanded)), is_default))
    return found


def _standard_folders(directories: Directories) -> dict[str, Folder]:
    def roots(*names: str) -> tuple[Path, ...]:
        places = [directories.models / name for name in names]
        if directories.embedded_models != directories.models:
            places += [directories.embedded_models / name for name in names]
        if (saved := _OUTPUT_FOLDERS.get(names[0])) is not None:
            places.append(directories.output / saved)
        return tuple(places)

    any_file: frozenset[str] = frozenset()
    return {
        "checkpoints": Folder(roots("checkpoints"), marker="model_index.json"),
        "configs": Folder(roots("configs"), frozenset({".yaml"})),
        "loras": Folder(roots("loras")),
        "vae": Folder(roots("vae"), marker="config.json"),
        "text_encoders": Folder(roots("text_encoders", "clip"), _WEIGHTS_OR_GGUF, marker="config.json"),
        "diffusion_models": Folder(roots("diffusion_models", "unet"), _WEIGHTS_OR_GGUF, marker="config.json"),
        "clip_vision": Folder(roots("clip_vision"), marker="config.json"),
        **{name: Folder(roots(name)) for name in ("style_models", "embeddings")},
        "diffusers": Folder(roots("diffusers"), any_file, marker="model_index.json", lists_files=False),
        "vae_approx": Folder(roots("vae_approx")),
        "controlnet": Folder(roots("controlnet", "t2i_adapter"), marker="config.json"),
        **{name: Folder(roots(name)) for name in ("gligen", "upscale_models", "latent_upscale_models")},
        "custom_nodes": Folder((directories.custom_nodes,), any_file),
        "datasets": Folder(roots("datasets"), any_file),
        **{name: Folder(roots(name)) for name in _RARE.split()},
        "llm": Folder(roots("llm"), frozenset({".gguf"}), marker="config.json"),
        "llm_loras": Folder(roots("llm_loras"), any_file, marker="adapter_config.json", lists_files=False),
    }


def _list(folder: Folder) -> _Listing:
    listing = _Listing(folder)
    for root in folder.roots:
        listing.stamps[root] = _stamp(root)
        if root.is_dir():
            _walk(root, root, folder, listing, ancestors=frozenset())
    return listing


def _walk(
    root: Path, directory: Path, folder: Folder, listing: _Listing, ancestors: frozenset[tuple[int, int]]
) -> None:
    status = directory.stat()
    identity = (status.st_dev, status.st_ino)
    if identity in ancestors:
        return
    listing.stamps[directory] = status.st_mtime_ns
    for entry in os.scandir(directory):
        path = Path(entry.path)
        if entry.is_dir():
            if entry.name in _SKIPPED_DIRECTORIES:
                continue
            if folder.marker is not None and (path / folder.marker).is_file():
                listing.names.append(path.relative_to(root).as_posix())
                # not walked, so its own stamp tells when the marker goes
                listing.stamps[path] = _stamp(path)
            else:
                _walk(root, path, folder, listing, ancestors | {identity})
        elif folder.lists_files and _has_extension(entry.name, folder.extensions):
            listing.names.append(path.relative_to(root).as_posix())


def _has_extension(name: str, extensions: frozenset[str]) -> bool:
    return not extensions or os.path.splitext(name)[1].lower() in extensions


def _stamp(directory: Path) -> int:
    try:
        return directory.stat().st_mtime_ns
    except OSError:
        return -1
