"""Looks at files for the assets: what lies where, how large, which hash. It blocks."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from PIL import Image, UnidentifiedImageError

from app.assets.places import Places, mime_type_of
from app.assets.rows import HASH_PREFIX, FileFacts

_SKIPPED_DIRECTORIES = frozenset({".git", "__pycache__"})


def facts_of(path: Path, places: Places, *, hash: str | None = None) -> FileFacts | None:
    """None for what is no file with a name that JSON can hold, or is empty, as one that is being written."""
    try:
        status = path.stat()
        path.as_posix().encode()
    except (OSError, UnicodeEncodeError):
        return None
    if not path.is_file() or not status.st_size:
        return None
    place = places.place(path)
    return FileFacts(
        str(path), status.st_size, status.st_mtime_ns, hash, place.loader_path, place.filename, place.tags
    )


def walked(roots: Sequence[Path]) -> Iterator[Path]:
    """Every file below, hidden ones and links to directories left out."""
    for root in roots:
        for directory, inner, names in os.walk(root):
            inner[:] = sorted(
                name for name in inner if not name.startswith(".") and name not in _SKIPPED_DIRECTORIES
            )
            yield from (Path(directory) / name for name in sorted(names) if not name.startswith("."))


def picture_metadata(path: Path) -> Mapping[str, Any]:
    """What a picture's header says of its size; empty for what is no picture."""
    if not (mime_type_of(path.name) or "").startswith("image/"):
        return {}
    try:
        with Image.open(path) as image:
            return {"kind": "image", "width": image.width, "height": image.height}
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError, SyntaxError, ValueError):
        return {}


def hash_of(content: IO[bytes]) -> str:
    """Of a stream from its begin on."""
    # imported here, because the server listens before numpy is there
    from app.assets.blake3 import content_hash

    content.seek(0)
    return content_hash(content)


def hash_of_file(path: Path) -> str | None:
    """None when it cannot be read any more."""
    try:
        with path.open("rb") as content:
            return hash_of(content)
    except OSError:
        return None


def stored(content: IO[bytes], folder: Path, hash: str, name: str) -> Path:
    """Writes an upload under its hash, so that equal names never meet; the extension stays."""
    extension = Path(name).suffix
    extension = extension if extension.isascii() and extension[1:].isalnum() else ""
    path = folder / f"{hash.removeprefix(HASH_PREFIX)}{extension}"
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / f".{path.name}.partial"
    content.seek(0)
    with temporary.open("wb") as target:
        shutil.copyfileobj(content, target)
    temporary.replace(path)
    return path
