"""What tests of the browser know of the program that runs."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Server:
    url: str
    output: Path


def example(name: str) -> dict[str, Any]:
    """An example workflow as its file says it."""
    workflow: dict[str, Any] = json.loads((ROOT / f"examples/{name}.json").read_text())
    return workflow
