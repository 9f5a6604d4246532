"""Packs written for a test, loaded as the server loads them, in a world without torch."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from app.compat.finder import FINDER
from app.compat.host import Host, set_host
from app.compat.packs import load_packs, run_prestartup
from app.config import Config, Directories
from app.files import Files
from app.folders import ModelFolders
from nodes.packs import Pack
from tests.fakes import World, world
from tests.pure.graph.boxes import specs

Load = Callable[[Mapping[str, str]], World]


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    directories = Directories.below(tmp_path)
    files = Files(directories, ModelFolders(directories))
    files.make_directories()
    directories.custom_nodes.mkdir()
    config = Config(directories=directories)
    host = Host(config, files)
    set_host(host)
    yield host
    FINDER.roots[:] = [root for root in FINDER.roots if root != directories.custom_nodes]
    prefix = str(tmp_path).replace(".", "_x_")
    for name in [name for name in sys.modules if name.startswith(prefix)]:
        del sys.modules[name]


@pytest.fixture
def load(host: Host, tmp_path: Path) -> Load:
    """Files by their path below custom_nodes."""

    def load(files: Mapping[str, str]) -> World:
        folder = host.config.directories.custom_nodes
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        here = world(specs(), tmp_path)
        host.registry = here.registry
        run_prestartup([folder], None)
        load_packs(here.registry, [folder], None)
        return here

    return load


def pack_of(here: World, name: str) -> Pack:
    return next(pack for pack in here.registry.packs if pack.name == name)
