"""What tests of the browser know of the program that runs."""

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Server:
    url: str
    output: Path
