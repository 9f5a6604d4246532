"""Folders with tiny networks, written once a run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tests.cpu.diffusion_core.tiny import save_sd3, save_unet


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def unet_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_unet(tmp_path_factory.mktemp("unet"))


@pytest.fixture(scope="session")
def sd3_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_sd3(tmp_path_factory.mktemp("sd3"))


@pytest.fixture(params=["unet", "sd3"])
def folder(request: pytest.FixtureRequest) -> Path:
    path: Path = request.getfixturevalue(f"{request.param}_folder")
    return path
