"""`folder_paths`: where models, inputs and outputs lie. The paths are the running server's.

`folder_names_and_paths` is a dict that packs may change; the server's own nodes then see what they added.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Sequence
from typing import Any

from app.compat.host import host
from app.config import PROJECT
from app.files import media_kind, split_annotation
from app.folders import SharedFolders

__file__ = str(PROJECT / "folder_paths.py")

SYSTEM_USER_PREFIX = "__"
extension_mimetypes_cache: dict[str, str] = {"webp": "image", "fbx": "model"}
filename_list_cache: dict[str, Any] = {}
_LEGACY_NAMES = {"unet": "diffusion_models", "clip": "text_encoders"}


def __getattr__(name: str) -> Any:
    """Values that depend on the server, which is there before any pack is imported."""
    if name == "folder_names_and_paths":
        return _folders()
    if name == "supported_pt_extensions":
        return _folders()["loras"][1]
    if name == "base_path":
        return str(host().config.directories.custom_nodes.parent)
    if name in ("models_dir", "input_directory", "output_directory", "temp_directory", "user_directory"):
        return str(getattr(host().config.directories, name.removesuffix("_dir").removesuffix("_directory")))
    raise AttributeError(f"Treadle does not serve folder_paths.{name}; docs/compat.md lists what it serves")


def _folders() -> SharedFolders:
    return host().files.folders.share()


def map_legacy(folder_name: str) -> str:
    return _LEGACY_NAMES.get(folder_name, folder_name)


def get_output_directory() -> str:
    return str(host().config.directories.output)


def get_temp_directory() -> str:
    return str(host().config.directories.temp)


def get_input_directory() -> str:
    return str(host().config.directories.input)


def get_user_directory() -> str:
    return str(host().config.directories.user)


def get_system_user_directory(name: str = "system") -> str:
    return os.path.join(get_user_directory(), f"{SYSTEM_USER_PREFIX}{name}")


def get_public_user_directory(user_id: str) -> str | None:
    if user_id.startswith(SYSTEM_USER_PREFIX):
        return None
    return os.path.join(get_user_directory(), user_id)


def get_directory_by_type(type_name: str) -> str | None:
    path = host().config.directories.by_type(type_name)
    return None if path is None else str(path)


def get_folder_paths(folder_name: str) -> list[str]:
    return list(_folders()[map_legacy(folder_name)][0])


def add_model_folder_path(folder_name: str, full_folder_path: str, is_default: bool = False) -> None:
    """A new folder takes files of any extension."""
    paths, _ = _folders().setdefault(map_legacy(folder_name), ([], set()))
    if full_folder_path in paths and is_default:
        paths.remove(full_folder_path)
    if full_folder_path not in paths:
        paths.insert(0 if is_default else len(paths), full_folder_path)


def get_filename_list(folder_name: str) -> list[str]:
    if map_legacy(folder_name) not in _folders():
        raise KeyError(folder_name)
    return host().files.names(folder_name)


def get_full_path(folder_name: str, filename: str) -> str | None:
    """The first of the folder's directories that has it. A name cannot lead out of them."""
    relative = os.path.relpath(os.path.join("/", filename), "/")
    for root in _folders()[map_legacy(folder_name)][0]:
        path = os.path.join(root, relative)
        if os.path.exists(path):
            return path
    return None


def get_full_path_or_raise(folder_name: str, filename: str) -> str:
    path = get_full_path(folder_name, filename)
    if path is None:
        raise FileNotFoundError(f"Model in folder '{folder_name}' with filename '{filename}' not found.")
    return path


def annotated_filepath(name: str) -> tuple[str, str | None]:
    """The name without ` [output]`, ` [input]` or ` [temp]`, and the directory that it says."""
    plain, kind = split_annotation(name)
    return plain, None if kind is None else get_directory_by_type(kind)


def get_annotated_filepath(name: str, default_dir: str | None = None) -> str:
    plain, root = annotated_filepath(name)
    root = root or default_dir or get_input_directory()
    path = os.path.abspath(os.path.join(root, plain))
    if not is_within_directory(path, root):
        raise ValueError(f"'{name}' leads out of {root}")
    return path


def exists_annotated_filepath(name: str) -> bool:
    try:
        return os.path.exists(get_annotated_filepath(name))
    except ValueError:
        return False


def is_within_directory(path: str, directory: str) -> bool:
    real, root = os.path.realpath(path), os.path.realpath(directory)
    return real == root or real.startswith(root.rstrip(os.sep) + os.sep)


def recursive_search(
    directory: str, excluded_dir_names: Sequence[str] | None = None
) -> tuple[list[str], dict[str, float]]:
    """Relative names of all files, and every directory's time of change."""
    if not os.path.isdir(directory):
        return [], {}
    excluded = set(excluded_dir_names or ())
    files: list[str] = []
    times = {directory: os.path.getmtime(directory)}
    for here, inner, names in os.walk(directory, followlinks=True):
        inner[:] = [name for name in inner if name not in excluded]
        times |= {os.path.join(here, name): os.path.getmtime(os.path.join(here, name)) for name in inner}
        files += [os.path.relpath(os.path.join(here, name), directory) for name in names]
    return files, times


def filter_files_extensions(files: Iterable[str], extensions: Iterable[str]) -> list[str]:
    """An empty `extensions` keeps all."""
    wanted = set(extensions)
    return sorted(name for name in files if not wanted or os.path.splitext(name)[1].lower() in wanted)


def filter_files_content_types(files: Iterable[str], content_types: Iterable[str]) -> list[str]:
    wanted = set(content_types)
    return [name for name in files if media_kind(name) in wanted]


def get_input_subfolders() -> list[str]:
    root = get_input_directory()
    found = [
        os.path.relpath(os.path.join(here, name), root).replace(os.sep, "/")
        for here, inner, _ in os.walk(root)
        for name in inner
    ]
    return sorted(found)


def get_save_image_path(
    filename_prefix: str, output_dir: str, image_width: int = 0, image_height: int = 0
) -> tuple[str, str, int, str, str]:
    """(folder, name, next number, subfolder, prefix); the folder is made, and lies inside `output_dir`."""
    now = time.localtime()
    filled = filename_prefix
    values = {
        "width": str(image_width), "height": str(image_height), "year": str(now.tm_year),
        "month": f"{now.tm_mon:02}", "day": f"{now.tm_mday:02}", "hour": f"{now.tm_hour:02}",
        "minute": f"{now.tm_min:02}", "second": f"{now.tm_sec:02}",
    }  # fmt: skip
    for key, text in values.items():
        filled = filled.replace(f"%{key}%", text)
    subfolder, name = os.path.split(os.path.normpath(filled))
    folder = os.path.join(output_dir, subfolder)
    if not is_within_directory(folder, output_dir):
        raise ValueError(f"'{filename_prefix}' leads out of {output_dir}")
    os.makedirs(folder, exist_ok=True)
    return folder, name, _next_number(folder, name), subfolder, filled


def _next_number(folder: str, name: str) -> int:
    taken = re.compile(re.escape(name) + r"_(\d+)", re.IGNORECASE)
    numbers = (match[1] for entry in os.listdir(folder) if (match := taken.match(entry)))
    return max(map(int, numbers), default=0) + 1


def is_dangerous_content_type(content_type: str) -> bool:
    kind = content_type.split(";", 1)[0].strip().lower()
    return kind in DANGEROUS_CONTENT_TYPES


DANGEROUS_CONTENT_TYPES = frozenset(
    {"text/html", "text/html-sandboxed", "application/xhtml+xml", "text/javascript", "text/css"}
)
