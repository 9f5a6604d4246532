"""Who uses the server and where each one's files and settings lie. It knows no HTTP."""

from __future__ import annotations

import json
import re
import threading
import uuid
from pathlib import Path
from typing import Any

from app.errors import BadRequest, NotFound

SINGLE_USER = "default"
SYSTEM_PREFIX = "__"
SETTINGS_FILE = "comfy.settings.json"


class UnknownUser(NotFound):
    status = 401
    type = "unknown_user"


class Users:
    """With `multi` False there is one user. Settings are read and written whole, under a lock."""

    def __init__(self, root: Path, multi: bool) -> None:
        self.root = root
        self.multi = multi
        self._lock = threading.Lock()

    def names(self) -> dict[str, str]:
        path = self.root / "users.json"
        return json.loads(path.read_text()) if path.is_file() else {}

    def add(self, name: str) -> str:
        name = name.strip()
        if not name:
            raise BadRequest("username not provided")
        with self._lock:
            known = self.names()
            if name in known.values():
                raise BadRequest("Duplicate username.")
            user_id = f"{re.sub(r'[^a-zA-Z0-9-_]', '-', name).lstrip('_')}_{uuid.uuid4()}"
            _write_json(self.root / "users.json", {**known, user_id: name})
        return user_id

    def folder(self, user_id: str | None) -> Path:
        """The folder of the user that a request names; without several users it is always the same one."""
        if not self.multi:
            return self.root / SINGLE_USER
        user_id = user_id or SINGLE_USER
        if user_id.startswith(SYSTEM_PREFIX) or (user_id != SINGLE_USER and user_id not in self.names()):
            raise UnknownUser(f"There is no user '{user_id}'")
        return self.root / user_id

    def settings(self, user_id: str | None) -> dict[str, Any]:
        path = self.folder(user_id) / SETTINGS_FILE
        if not path.is_file():
            return {}
        stored = json.loads(path.read_text())
        return stored if isinstance(stored, dict) else {}

    def change_settings(self, user_id: str | None, changes: dict[str, Any]) -> None:
        with self._lock:
            _write_json(self.folder(user_id) / SETTINGS_FILE, {**self.settings(user_id), **changes})


def _write_json(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(value, indent=4))
    temporary.replace(path)
