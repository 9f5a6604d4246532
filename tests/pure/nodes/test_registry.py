from __future__ import annotations

import pytest

from nodes.declare import spec_of
from nodes.registry import Registry
from nodes.types import Image
from tests.fakes import FakeLibrary
from tests.pure.graph.boxes import add, quiet, specs

ALWAYS = {
    "input",
    "input_order",
    "is_input_list",
    "output",
    "output_is_list",
    "output_name",
    "name",
    "display_name",
    "description",
    "python_module",
    "category",
    "output_node",
    "has_intermediate_output",
}


@pytest.mark.parametrize("spec", specs(), ids=lambda spec: spec.id)
def test_every_class_is_described_with_the_keys_that_are_always_there(spec):
    info = Registry([spec]).object_info(spec.id, FakeLibrary())
    assert set(info) == ALWAYS
    assert len(info["output"]) == len(info["output_name"]) == len(info["output_is_list"])


def test_rare_facts_are_said_only_when_they_hold():
    rare = spec_of(
        add,
        "Rare",
        category="t",
        deprecated=True,
        experimental=True,
        search_aliases=("sum",),
        output_tooltips=("the sum",),
    )
    info = Registry([rare]).object_info("Rare", FakeLibrary())
    assert {key: info[key] for key in set(info) - ALWAYS} == {
        "deprecated": True,
        "experimental": True,
        "search_aliases": ["sum"],
        "output_tooltips": ["the sum"],
    }


def test_a_class_without_inputs_still_has_required_ones():
    def nothing() -> Image: ...

    info = Registry([spec_of(nothing, "Nothing", category="t")]).object_info("Nothing", FakeLibrary())
    assert (info["input"], info["input_order"]) == ({"required": {}}, {"required": []})


def test_an_unknown_class_is_not_found():
    registry = Registry([spec_of(quiet, "Quiet", category="t")])
    assert registry.find("Loud") is None
    assert list(registry) == ["Quiet"]
    assert len(registry) == 1
