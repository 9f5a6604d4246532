"""An asset as its clients see it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from app.assets.places import Places, can_be_shown
from app.assets.rows import Asset


def as_json(asset: Asset, places: Places, **more: Any) -> dict[str, Any]:
    """What there is nothing to say of is left out."""
    own = places.place(Path(asset.path)) if asset.path is not None else None
    shape = {
        "id": asset.id,
        "name": asset.name,
        "hash": asset.hash,
        "asset_hash": asset.hash,
        "loader_path": asset.loader_path,
        "display_name": None if own is None else own.relative,
        "size": asset.size,
        "mime_type": asset.mime_type,
        "tags": list(asset.tags),
        "preview_url": _preview_url(asset, places),
        "preview_id": asset.preview_id,
        "user_metadata": dict(asset.user_metadata),
        "is_immutable": False,
        "metadata": dict(asset.metadata) or None,
        "job_id": asset.job_id,
        "prompt_id": asset.job_id,
        "created_at": _time(asset.created_at),
        "updated_at": _time(asset.updated_at),
        "last_access_time": _time(asset.last_access_time),
        **more,
    }
    return {key: value for key, value in shape.items() if value is not None}


def in_short(asset: Asset) -> dict[str, Any]:
    """Beside the answer to an upload of a picture."""
    return {
        "id": asset.id,
        "name": asset.name,
        "asset_hash": asset.hash,
        "size": asset.size,
        "mime_type": asset.mime_type,
        "tags": list(asset.tags),
    }


def _preview_url(asset: Asset, places: Places) -> str | None:
    """Of the asset that stands for it, else its own when a browser can show it."""
    if asset.preview_id is not None:
        file = asset.preview_file
    else:
        file = asset.file if can_be_shown(asset.mime_type) else None
    return None if file is None else places.place(Path(file)).view_url


def _time(microseconds: int) -> str:
    moment = datetime.fromtimestamp(microseconds / 1e6, UTC)
    return moment.isoformat().replace("+00:00", "Z")
