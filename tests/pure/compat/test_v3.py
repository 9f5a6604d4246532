"""Nodes of the third style: what their schemas become, and how they run."""

from __future__ import annotations

from app.graph.run import run_job
from tests.fakes import box
from tests.pure.compat.conftest import Load, pack_of

PACK = """
from comfy_api.latest import ComfyExtension, io, ui

class Measure(io.ComfyNode):
    @classmethod
    def define_schema(cls):
        return io.Schema(
            node_id="Measure", display_name="Measure it", category="test", is_output_node=True,
            inputs=[
                io.Int.Input("size", default=3, min=0, max=9, tooltip="how large"),
                io.Combo.Input("unit", options=["m", "km"], optional=True),
                io.MultiType.Input("thing", types=[io.Image, io.Mask], optional=True),
                io.AnyType.Input("late", optional=True, lazy=True),
            ],
            outputs=[io.String.Output(display_name="text"), io.Int.Output()],
            hidden=[io.Hidden.unique_id],
        )

    @classmethod
    def check_lazy_status(cls, size, late=None, **more):
        return ["late"] if size > 5 and late is None else []

    @classmethod
    def validate_inputs(cls, unit="m"):
        return True if unit != "km" else "too far"

    @classmethod
    def fingerprint_inputs(cls, size, **more):
        return size

    @classmethod
    def execute(cls, size, unit="m", late=None, thing=None):
        text = f"{size}{unit} {late} at {cls.hidden.unique_id} of {len(cls.hidden.prompt)}"
        return io.NodeOutput(text, size, ui=ui.PreviewText(text))


class Join(io.ComfyNode):
    @classmethod
    def define_schema(cls):
        word = io.Autogrow.TemplatePrefix(io.String.Input("word"), prefix="word", min=1, max=4)
        ways = [io.DynamicCombo.Option("with", [io.String.Input("by")]), io.DynamicCombo.Option("plain", [])]
        return io.Schema(
            node_id="Join", inputs=[io.Autogrow.Input("words", template=word),
                                    io.DynamicCombo.Input("way", options=ways)],
            outputs=[io.String.Output()],
        )

    @classmethod
    async def execute(cls, words, way):
        return io.NodeOutput(way.get("by", "").join(words.values()))


class Stop(io.ComfyNode):
    @classmethod
    def define_schema(cls):
        return io.Schema("Stop", inputs=[io.Custom("THING").Input("thing", optional=True)],
                         outputs=[io.Custom("THING").Output(), io.Int.Output()])

    @classmethod
    def execute(cls, thing=None):
        return io.NodeOutput(block_execution="no further")


class Broken(io.ComfyNode):
    @classmethod
    def define_schema(cls):
        return io.Schema("Broken", inputs=[io.Int.Input("a"), io.Int.Input("a")])


class Extension(ComfyExtension):
    async def on_load(self):
        self.loaded = True

    async def get_node_list(self):
        assert self.loaded
        return [Measure, Join, Stop, Broken]


async def comfy_entrypoint():
    return Extension()
"""


def test_a_schema_is_described_as_the_first_style_is(load: Load) -> None:
    here = load({"measures.py": PACK})
    assert pack_of(here, "measures").error is None
    info = here.registry.object_info("Measure", here.library)
    assert info["display_name"] == "Measure it"
    assert info["input"]["required"]["size"] == [
        "INT",
        {"default": 3, "min": 0, "max": 9, "tooltip": "how large"},
    ]
    assert info["input"]["optional"]["unit"] == ["COMBO", {"multiselect": False, "options": ["m", "km"]}]
    assert info["input"]["optional"]["thing"] == ["IMAGE,MASK", {}] or info["input"]["optional"]["thing"] == [
        "IMAGE,MASK"
    ]
    assert (info["output"], info["output_name"]) == (["STRING", "INT"], ["text", "INT"])
    assert info["python_module"] == "custom_nodes.measures"
    assert here.registry["Measure"].is_output


def test_a_schema_that_contradicts_itself_costs_its_own_class(load: Load) -> None:
    here = load({"measures.py": PACK})
    assert list(pack_of(here, "measures").refused) == ["Broken"]
    assert "inputs of the same name: a" in pack_of(here, "measures").refused["Broken"]


async def test_hidden_inputs_ui_and_lazy_inputs_work(load: Load) -> None:
    here = load({"measures.py": PACK})
    prompt = {"7": box("Measure", size=4, unit="m", late=["8", 0]), "8": box("Explode", value=1)}
    outcome = await run_job(here.job(prompt), here.services)
    assert outcome.outputs["7"]["text"] == ("4m None at 7 of 2",)
    prompt = {"7": box("Measure", size=6, late=["8", 0]), "8": box("Number", value=5)}
    outcome = await run_job(here.job(prompt), here.services)
    assert outcome.outputs["7"]["text"] == ("6m 5 at 7 of 2",)


def test_a_class_checks_its_own_inputs(load: Load) -> None:
    here = load({"measures.py": PACK})
    answer = here.rejected({"7": box("Measure", size=1, unit="km")})
    assert answer["node_errors"]["7"]["errors"][0]["details"] == "unit - too far"


async def test_inputs_that_grow_and_choices_that_bring_inputs_arrive_as_dicts(load: Load) -> None:
    here = load({"measures.py": PACK})
    words = {"words.word0": "left", "words.word1": "right"}
    prompt = {"1": box("Join", **words, way="with", **{"way.by": "-"}), "2": box("Show", value=["1", 0])}
    assert (await run_job(here.job(prompt), here.services)).outputs["2"]["value"] == ["left-right"]


async def test_blocked_execution_reaches_every_output(load: Load) -> None:
    here = load({"measures.py": PACK})
    prompt = {"1": box("Stop"), "2": box("Show", value=["1", 1])}
    outcome = await run_job(here.job(prompt), here.services)
    assert (outcome.status, dict(outcome.outputs)) == ("success", {})


def test_a_mapping_of_the_first_style_may_hold_classes_of_the_third_under_its_own_ids(load: Load) -> None:
    here = load({"measures.py": PACK + "\nNODE_CLASS_MAPPINGS = {'Renamed': Measure}\n"})
    assert here.registry.find("Measure") is None
    assert here.registry["Renamed"].display_name == "Measure it"
