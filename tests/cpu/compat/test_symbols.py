"""Every name of ComfyUI that three or more of 87 public packs use is there: symbols.txt says how."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.compat.faces.comfy_api.latest import io
from app.compat.finder import FACES, face_name, imported_face, install
from app.compat.host import Host, set_host
from app.compat.named import Refused
from app.config import Config, Directories
from app.files import Files
from app.folders import ModelFolders

SYMBOLS = [
    tuple(line.split()) for line in Path(__file__).with_name("symbols.txt").read_text().splitlines() if line
]
SERVED = [name for how, name in SYMBOLS if how == "served"]
NAMED = [name for how, name in SYMBOLS if how == "named"]


@pytest.fixture(scope="module", autouse=True)
def _server(tmp_path_factory: pytest.TempPathFactory) -> None:
    directories = Directories.below(tmp_path_factory.mktemp("server"))
    files = Files(directories, ModelFolders(directories))
    files.make_directories()
    host = Host(Config(directories=directories, device="cpu"), files)
    host.registry.load_builtin()
    set_host(host)
    install(())


def found(symbol: str) -> Any:
    """As a pack finds it: the longest part that is a module, then attributes."""
    parts = symbol.split(".")
    length = max(n for n in range(1, len(parts) + 1) if face_name(".".join(parts[:n])))
    value: Any = imported_face(f"{FACES}.{'.'.join(parts[:length])}")
    for part in parts[length:]:
        value = getattr(value, part)
    return value


def is_refused(value: Any) -> bool:
    return "_served_by_nobody" in getattr(value, "__dict__", {})


@pytest.mark.parametrize("symbol", SERVED)
def test_a_served_name_is_there_and_not_only_named(symbol: str) -> None:
    assert not is_refused(found(symbol))


@pytest.mark.parametrize("symbol", NAMED)
def test_a_name_that_reaches_into_networks_can_be_imported_and_refuses_to_work(symbol: str) -> None:
    kind = found(symbol)
    assert isinstance(kind, type)
    with pytest.raises(Refused, match=symbol.rpartition(".")[2]):
        kind()


def test_the_list_is_that_of_the_page_about_compatibility() -> None:
    page = (Path(__file__).parents[3] / "docs" / "compat.md").read_text()
    assert f"Of {len(SYMBOLS)} symbols" in page
    assert f"{len(SERVED)} are served and {len(NAMED)} named" in page
    assert io is found("comfy_api.latest.io")
