from pathlib import Path
from typing import Any

import pytest

from app.cli.settings import WrongSetting, with_settings
from app.config import Directories
from app.files import Files
from app.folders import ModelFolders
from nodes.declare import spec_of
from nodes.registry import Registry


def sample(seed: int = 0, name: str = "", cfg: float = 1.0) -> str:
    return name


PROMPT = {"5:1": {"class_type": "Sample", "inputs": {"seed": 1, "name": "a"}}, "5": {"class_type": "Sample"}}


@pytest.fixture
def files(tmp_path: Path) -> Files:
    directories = Directories.below(tmp_path)
    return Files(directories, ModelFolders(directories))


def changed(files: Files, *settings: str) -> dict[str, Any]:
    registry = Registry([spec_of(sample, "Sample", category="test")])
    return {id: node["inputs"] for id, node in with_settings(PROMPT, settings, registry, files).items()}


def test_a_setting_replaces_or_adds_one_input(files: Files) -> None:
    inputs = changed(files, "5:1.seed=7", "5:1.cfg=2.5", '5.name="quoted"', "5:1.name=7")
    assert inputs == {"5:1": {"seed": 7, "cfg": 2.5, "name": "7"}, "5": {"name": "quoted"}}
    assert PROMPT["5:1"]["inputs"] == {"seed": 1, "name": "a"}


def test_a_value_may_hold_equals_signs_and_dots(files: Files) -> None:
    assert changed(files, "5:1.name=a=b.c")["5:1"]["name"] == "a=b.c"


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("5:1.seed", "ID.INPUT=VALUE"),
        ("9.seed=1", "no such node"),
        ("5:1.sed=1", "it has seed, name, cfg"),
        ("5:1.=1", "no such node"),
    ],
)
def test_a_wrong_setting_says_what_there_is(files: Files, setting: str, reason: str) -> None:
    with pytest.raises(WrongSetting, match=reason):
        changed(files, setting)
