"""Packs of ComfyUI's V1 classes: imported, described, validated and run."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from app.graph.run import run_job
from nodes.legacy import result_of, spec_of_class
from nodes.registry import Registry
from nodes.spec import Blocker
from tests.fakes import FakeLibrary, box, world
from tests.pure.graph.boxes import specs

PACK = '''
from .parts import twice

class Flexible(dict):
    def __contains__(self, name):
        return True
    def __getitem__(self, name):
        return ("*", {})

class Scale:
    """Doubles."""
    CATEGORY = "pack"
    FUNCTION = "run"
    RETURN_TYPES = ("FLOAT", ["a", "b"])
    RETURN_NAMES = ("scaled",)
    OUTPUT_TOOLTIPS = ("twice", "a letter")
    DESCRIPTION = "Doubles a number."
    calls = 0

    @classmethod
    def INPUT_TYPES(cls):
        return {
            "required": {"value": ("FLOAT", {"default": 1.0, "min": 0.0}), "mode": (["up", "down"],)},
            "optional": {"image": ("IMAGE",)},
            "hidden": {"id": "UNIQUE_ID", "prompt": "PROMPT"},
        }

    def run(self, value, mode, id, prompt, image=None):
        self.calls += 1
        prompt.clear()
        return (twice(value) + self.calls, mode)

class Say:
    FUNCTION = "say"
    RETURN_TYPES = ()
    OUTPUT_NODE = True
    CATEGORY = "pack"

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"value": ("*",)}, "optional": Flexible()}

    @classmethod
    def IS_CHANGED(cls, **kwargs):
        return float("nan")

    async def say(self, value, **more):
        return {"ui": {"said": [value, sorted(more.items())]}}

class Strict:
    FUNCTION = "run"
    RETURN_TYPES = ("INT",)
    CATEGORY = "pack"

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"a": ("INT", {"min": 5}), "b": ("INT", {"min": 5})}}

    @classmethod
    def VALIDATE_INPUTS(cls, a):
        return True if a > 1 else "a is too small"

    def run(self, a, b):
        return (a + b,)

class Broken:
    FUNCTION = "gone"

NODE_CLASS_MAPPINGS = {"Broken": Broken, "Scale": Scale, "Say": Say, "Strict": Strict, "Add": Say}
NODE_DISPLAY_NAME_MAPPINGS = {"Scale": "Scale it"}
WEB_DIRECTORY = "./js"
'''


@pytest.fixture
def packs(tmp_path: Path) -> Path:
    folder = tmp_path / "custom_nodes"
    good = folder / "good.pack"
    (good / "js").mkdir(parents=True)
    (good / "__init__.py").write_text(PACK)
    (good / "parts.py").write_text("def twice(value):\n    return 2 * value\n")
    (folder / "broken.py").write_text("import nothing_of_that_name\n")
    (folder / "leaves.py").write_text("raise SystemExit(1)\n")
    (folder / "empty.py").write_text("x = 1\n")
    (folder / "off.py.disabled").write_text("raise RuntimeError\n")
    (folder / "typed.py").write_text(
        "from nodes.declare import node\n"
        "@node('Typed', category='t')\n"
        "def typed(*, a: int = 1) -> int:\n"
        "    return a\n"
    )
    yield folder
    for name in [name for name in sys.modules if name.startswith(str(folder).replace(".", "_x_"))]:
        del sys.modules[name]


@pytest.fixture
def here(packs: Path, tmp_path: Path):
    here = world(specs(), tmp_path)
    here.registry.load_packs(packs)
    return here


def test_a_pack_that_fails_is_kept_with_its_reason_and_stops_nobody(here):
    found = {pack.name: pack for pack in here.registry.packs}
    assert sorted(found) == ["broken", "empty", "good.pack", "leaves", "typed"]
    assert "nothing_of_that_name" in found["broken"].error
    assert "SystemExit" in found["leaves"].error
    assert "NODE_CLASS_MAPPINGS" in found["empty"].error
    assert found["good.pack"].error is None
    assert found["good.pack"].web["good.pack"].name == "js"
    assert here.registry["Typed"].python_module == "custom_nodes.typed"


def test_a_class_that_is_no_node_is_left_out_and_the_rest_of_its_pack_stays(here):
    (good,) = [pack for pack in here.registry.packs if pack.name == "good.pack"]
    assert list(good.refused) == ["Broken"]
    assert "Broken" not in here.registry
    assert here.registry["Scale"].pack == "good.pack"


def test_a_class_that_takes_lists_gets_lists_in_its_own_checks_too():
    class Many:
        CATEGORY = "t"
        FUNCTION = "run"
        RETURN_TYPES = ()
        INPUT_IS_LIST = True

        @classmethod
        def INPUT_TYPES(cls):
            return {"required": {"a": ("INT",)}}

        @classmethod
        def IS_CHANGED(cls, a):
            return a

        def run(self, a):
            return ()

    assert spec_of_class("Many", Many, None, "p").fingerprint(FakeLibrary(), a=1) == [1]


def test_a_pack_cannot_replace_a_built_in_node(here):
    assert here.registry["Add"].pack is None


def test_only_allowed_packs_are_imported(packs: Path):
    registry = Registry()
    registry.load_packs(packs, ["typed.py"])
    assert [pack.name for pack in registry.packs] == ["typed"]


def test_a_missing_folder_is_no_trouble(tmp_path: Path):
    Registry().load_packs(tmp_path / "nowhere")


def test_a_class_is_described_as_comfyui_does(here):
    assert here.registry.object_info("Scale", FakeLibrary()) == {
        "input": {
            "required": {"value": ["FLOAT", {"default": 1.0, "min": 0.0}], "mode": [["up", "down"]]},
            "optional": {"image": ["IMAGE"]},
            "hidden": {"id": "UNIQUE_ID", "prompt": "PROMPT"},
        },
        "input_order": {"required": ["value", "mode"], "optional": ["image"], "hidden": ["id", "prompt"]},
        "is_input_list": False,
        "output": ["FLOAT", ["a", "b"]],
        "output_is_list": [False, False],
        "output_name": ["scaled", "COMBO"],
        "output_tooltips": ["twice", "a letter"],
        "name": "Scale",
        "display_name": "Scale it",
        "description": "Doubles a number.",
        "python_module": "custom_nodes.good.pack",
        "category": "pack",
        "output_node": False,
        "has_intermediate_output": False,
    }


async def test_an_object_outlives_a_prompt_and_cannot_harm_the_posted_one(here):
    outcome = []
    for value in (1, 2):
        job = here.job(
            {"1": box("Scale", value=value, mode="up"), "2": box("Say", value=["1", 0], x=1, y=["1", 1])}
        )
        outcome.append(await run_job(job, here.services))
        assert list(job.valid.graph.prompt) == ["1", "2"]
    assert [one.outputs["2"]["said"] for one in outcome] == [
        [3.0, [("x", 1), ("y", "up")]],
        [6.0, [("x", 1), ("y", "up")]],
    ]


async def test_is_changed_of_nan_runs_the_node_again(here):
    prompt = {"2": box("Say", value=1)}
    await run_job(here.job(prompt), here.services)
    here.events.clear()
    await run_job(here.job(prompt), here.services)
    assert "NodeStarted 2" in here.kinds()


def test_a_class_checks_only_the_inputs_that_it_names(here):
    body = here.rejected({"1": box("Strict", a=1, b=1), "2": box("Say", value=["1", 0])})
    errors = body["node_errors"]["1"]["errors"]
    assert [error["type"] for error in errors] == ["value_smaller_than_min"]
    body = here.rejected({"1": box("Strict", a=1, b=9), "2": box("Say", value=["1", 0])})
    (error,) = body["node_errors"]["1"]["errors"]
    assert error["details"] == "a - a is too small"


def test_the_shapes_of_a_return_value():
    blocker = Blocker()
    assert result_of((1, 2), 2).values == (1, 2)
    assert result_of(blocker, 2).values == (blocker, blocker)
    assert result_of({"result": (1,), "ui": {"a": [1]}}, 1).values == (1,)
    assert result_of(None, 0).values == ()
    short = result_of((1,), 3).values
    assert (short[0], [one.message for one in short[1:]]) == (
        1,
        [
            "output 1 was not computed: the node returned 1 values",
            "output 2 was not computed: the node returned 1 values",
        ],
    )
    assert result_of("what its last line was", 0).values == ()
    with pytest.raises(TypeError, match="returned int"):
        result_of(5, 1)


def test_a_class_without_a_function_is_refused():
    with pytest.raises(AttributeError):
        spec_of_class("Bad", type("Bad", (), {}), None, "pack")


async def test_lazy_status_of_a_class_is_asked_on_its_object(tmp_path):
    class Either:
        CATEGORY = "t"
        FUNCTION = "run"
        RETURN_TYPES = ("INT",)

        @classmethod
        def INPUT_TYPES(cls):
            return {"required": {"a": ("INT", {"lazy": True}), "b": ("INT", {"lazy": True})}}

        def check_lazy_status(self, a=None, b=None):
            return ["a"] if a is None else ["b"] if a < 0 and b is None else []

        def run(self, a, b):
            return (a if b is None else b,)

    here = world([*specs(), spec_of_class("Either", Either, None, "p")], tmp_path)

    async def shown(a: int) -> list:
        prompt = {
            "a": box("Number", value=a),
            "b": box("Number", value=7),
            "e": box("Either", a=["a", 0], b=["b", 0]),
            "s": box("Show", value=["e", 0]),
        }
        return (await run_job(here.job(prompt), here.services)).outputs["s"]["value"]

    assert await asyncio.gather(shown(1), shown(-1)) == [[1], [7]]
