from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest

from nodes.declare import DECLARED, node, spec_of
from nodes.spec import NodeResult
from nodes.types import (
    Choices,
    Conditioning,
    Files,
    Float,
    Hidden,
    Image,
    InOptional,
    InputFiles,
    Int,
    Latent,
    Lazy,
    Mask,
    Model,
    Options,
    PromptText,
    Seed,
    Socket,
    Tooltip,
)
from tests.fakes import FakeLibrary

LIBRARY = FakeLibrary({"checkpoints": ["a.safetensors", "b"], "input": ["cat.png"], "llm": ["small"]})


async def sampler(
    ctx: Any,
    *,
    model: Model,
    seed: Seed = 0,
    cfg: Annotated[float, Float(0.0, 100.0, 0.1, round=0.01), Tooltip("how much")] = 8.0,
    name: Literal["euler", "heun"] = "euler",
    positive: Conditioning,
    mask: Mask | None = None,
    steps: Annotated[int, Int(1, 100), InOptional(), Options({"advanced": True})] = 20,
    prompt: Annotated[Any, Hidden("PROMPT")] = None,
) -> Latent:
    """Samples."""
    return {"seed": seed}


def configs(function, **declaration) -> dict:
    slots = spec_of(function, "X", category="c", **declaration).inputs(LIBRARY)
    return {slot.name: (slot.group, slot.config()) for slot in slots}


def test_a_signature_becomes_inputs_in_its_order():
    assert list(configs(sampler).items()) == [
        ("model", ("required", ["MODEL"])),
        (
            "seed",
            ("required", ["INT", {"default": 0, "min": 0, "max": 2**64 - 1, "control_after_generate": True}]),
        ),
        (
            "cfg",
            (
                "required",
                [
                    "FLOAT",
                    {
                        "default": 8.0,
                        "min": 0.0,
                        "max": 100.0,
                        "step": 0.1,
                        "round": 0.01,
                        "tooltip": "how much",
                    },
                ],
            ),
        ),
        ("name", ("required", [["euler", "heun"]])),
        ("positive", ("required", ["CONDITIONING"])),
        ("mask", ("optional", ["MASK"])),
        ("steps", ("optional", ["INT", {"default": 20, "min": 1, "max": 100, "advanced": True}])),
        ("prompt", ("hidden", ["PROMPT"])),
    ]


def test_the_rest_of_the_spec_comes_from_the_function_too():
    spec = spec_of(sampler, "X", category="c")
    assert spec.is_async
    assert spec.description == "Samples."
    assert [(output.type, output.name) for output in spec.outputs] == [("LATENT", "LATENT")]


def test_file_combos_list_what_the_library_has_now():
    def load(
        *,
        checkpoint: Annotated[str, Files("checkpoints")],
        image: Annotated[str, InputFiles("image")],
        llm: Annotated[str, Choices(lambda library: library.language_models())] = "small",
    ) -> Image: ...

    assert configs(load) == {
        "checkpoint": ("required", [["a.safetensors", "b"]]),
        "image": ("required", [["cat.png"], {"image_upload": True}]),
        "llm": ("required", [["small"]]),
    }


def test_texts_and_lazy_inputs_say_so():
    def text(*, prompt: PromptText, other: Annotated[Image, Lazy()]) -> str: ...

    assert configs(text) == {
        "prompt": ("required", ["STRING", {"default": "", "multiline": True, "dynamicPrompts": True}]),
        "other": ("required", ["IMAGE", {"lazy": True}]),
    }


def test_several_outputs_may_have_names_and_be_lists():
    def two(*, a: int) -> tuple[Image, Annotated[Any, Socket("MINE")]]: ...

    spec = spec_of(two, "X", category="c", outputs=("first", "second"), output_is_list=(False, True))
    assert [(o.type, o.name, o.is_list) for o in spec.outputs] == [
        ("IMAGE", "first", False),
        ("MINE", "second", True),
    ]


def test_a_plain_value_a_tuple_a_result_and_nothing_become_a_result():
    def one(*, a: int) -> int:
        return a

    def pair(*, a: int) -> tuple[int, int]:
        return a, a + 1

    def shown(*, a: int) -> NodeResult:
        return NodeResult((a,), ui={"a": [a]})

    def nothing(*, a: int) -> None: ...

    calls = [
        spec_of(f, "X", category="c", returns=r).call for f, r in ((one, None), (pair, None), (shown, [int]))
    ]
    assert [call(None, a=1).values for call in calls] == [(1,), (1, 2), (1,)]
    assert spec_of(nothing, "X", category="c").call(None, a=1) == NodeResult()


def test_a_tuple_as_the_only_output_stays_a_tuple():
    def chat(*, a: int) -> Annotated[Any, Socket("CHAT")]:
        return (1, 2)

    assert spec_of(chat, "X", category="c").call(None, a=1).values == ((1, 2),)


def test_checks_and_fingerprints_get_what_they_name():
    def check(library, name):
        return name in library.names("checkpoints") or "not there"

    def load(*, name: str, size: int) -> int: ...

    spec = spec_of(load, "X", category="c", check=check, fingerprint=lambda size: size * 2)
    assert spec.checked_inputs == {"name"}
    assert spec.check(LIBRARY, name="b", size=3) is True
    assert spec.check(LIBRARY, name="z", size=3) == "not there"
    assert spec.fingerprint(LIBRARY, name="b", size=3) == 6


def test_two_nodes_of_one_id_are_refused():
    def one(*, a: int) -> int: ...

    try:
        node("Twice (test)", category="c")(one)
        with pytest.raises(AssertionError, match="two nodes called Twice"):
            node("Twice (test)", category="c")(one)
    finally:
        del DECLARED["Twice (test)"]


def test_an_annotation_that_is_no_socket_is_refused():
    def odd(*, a: dict) -> int: ...

    with pytest.raises(AssertionError, match="no socket type"):
        spec_of(odd, "X", category="c")
