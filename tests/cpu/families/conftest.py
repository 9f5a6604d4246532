from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.cpu.families import tiny

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Any, Path]]:
    """A tiny pipeline of a family and the folder that it was saved to; made once a session."""
    made: dict[str, tuple[Any, Path]] = {}

    def get(name: str) -> tuple[Any, Path]:
        if name not in made:
            pipeline = tiny.PIPELINES[name]()
            pipeline.set_progress_bar_config(disable=True)
            made[name] = pipeline, tiny.save(pipeline, tmp_path_factory.mktemp(name) / name)
        return made[name]

    return get
