"""Conditionings: what each node sets, and that it leaves alone what came in."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch

from nodes.conditioning import (
    average,
    combine,
    concat,
    multiply,
    set_area,
    set_area_percentage,
    set_area_strength,
    set_mask,
    set_timestep_range,
    zero_out,
)
from nodes.context import NodeInputError
from nodes.control import apply_control_net, apply_control_net_advanced, with_shared_controls
from nodes.encode_text import flux_disable_guidance, flux_guidance
from runtime.diffusion.api import ControlRef

Conditioning = list[list[Any]]
NET = ControlRef(Path("net.safetensors"), "sd")


def conditioning(value: float, length: int = 3) -> Conditioning:
    return [[torch.full((1, length, 2), value), {"pooled_output": torch.full((1, 2), value)}]]


def test_combine_keeps_both_entries_apart() -> None:
    both = combine(conditioning_1=conditioning(1), conditioning_2=conditioning(2))
    assert [tokens[0, 0, 0].item() for tokens, _ in both] == [1, 2]


def test_average_mixes_tokens_and_pooled_and_fills_the_shorter_with_zeros() -> None:
    (entry,) = average(
        conditioning_to=conditioning(1, 3),
        conditioning_from=conditioning(2, 2),
        conditioning_to_strength=0.25,
    )
    tokens, values = entry
    assert tokens[0, :, 0].tolist() == [1.75, 1.75, 0.25]
    assert values["pooled_output"].tolist() == [[1.75, 1.75]]


def test_average_cuts_the_longer_to_the_length_of_the_target() -> None:
    (entry,) = average(conditioning_to=conditioning(1, 2), conditioning_from=conditioning(2, 5))
    assert entry[0].shape == (1, 2, 2)


def test_concat_joins_tokens_and_keeps_the_pooled_of_the_target() -> None:
    (entry,) = concat(conditioning_to=conditioning(1, 2), conditioning_from=conditioning(2, 3))
    assert entry[0][0, :, 0].tolist() == [1, 1, 2, 2, 2]
    assert entry[1]["pooled_output"].tolist() == [[1, 1]]


@pytest.mark.parametrize("node", [average, concat])
def test_an_empty_source_is_named(node: Any) -> None:
    with pytest.raises(NodeInputError, match="conditioning_from is empty"):
        node(conditioning_to=conditioning(1), conditioning_from=[])


def test_multiply_and_zero_out_reach_tokens_and_pooled() -> None:
    for result, value in (
        (multiply(conditioning=conditioning(2), multiplier=-1.5), -3),
        (zero_out(conditioning=conditioning(2)), 0),
    ):
        assert result[0][0].unique().tolist() == [value]
        assert result[0][1]["pooled_output"].unique().tolist() == [value]


def test_an_area_is_counted_in_cells_of_eight_pixels() -> None:
    (entry,) = set_area(conditioning=conditioning(1), width=128, height=64, x=16, y=8, strength=0.5)
    assert entry[1]["area"] == (8, 16, 1, 2)
    assert entry[1]["strength"] == 0.5
    assert entry[1]["set_area_to_bounds"] is False


def test_a_fractional_area_says_that_it_is_one() -> None:
    (entry,) = set_area_percentage(conditioning=conditioning(1), width=0.5, height=0.25, x=0.1, y=0.2)
    assert entry[1]["area"] == ("percentage", 0.25, 0.5, 0.2, 0.1)


def test_a_mask_gets_a_batch_dimension() -> None:
    (entry,) = set_mask(
        conditioning=conditioning(1), mask=torch.ones(4, 6), strength=2, set_cond_area="mask bounds"
    )
    assert entry[1]["mask"].shape == (1, 4, 6)
    assert entry[1]["mask_strength"] == 2
    assert entry[1]["set_area_to_bounds"] is True


@pytest.mark.parametrize(
    ("result", "values"),
    [
        (set_area_strength(conditioning=conditioning(1), strength=3), {"strength": 3}),
        (
            set_timestep_range(conditioning=conditioning(1), start=0.1, end=0.7),
            {"start_percent": 0.1, "end_percent": 0.7},
        ),
        (flux_guidance(conditioning=conditioning(1), guidance=2.5), {"guidance": 2.5}),
        (flux_disable_guidance(conditioning=conditioning(1)), {"guidance": None}),
    ],
)
def test_a_value_is_set(result: Conditioning, values: dict[str, Any]) -> None:
    assert {key: result[0][1][key] for key in values} == values


def test_nodes_leave_the_conditioning_that_came_in_alone() -> None:
    before = conditioning(1)
    kept = copy.deepcopy(before)
    set_area_strength(conditioning=before, strength=3)
    average(conditioning_to=before, conditioning_from=before, conditioning_to_strength=0.5)
    apply_control_net(conditioning=before, control_net=NET, image=torch.zeros(1, 8, 8, 3))
    assert list(before[0][1]) == list(kept[0][1])
    assert torch.equal(before[0][0], kept[0][0])


def test_control_nets_chain() -> None:
    image = torch.zeros(1, 8, 8, 4)
    positive, negative = apply_control_net_advanced(
        positive=conditioning(1),
        negative=conditioning(2),
        control_net=NET,
        image=image,
        strength=0.5,
        end_percent=0.8,
    )
    positive, negative = apply_control_net_advanced(
        positive=positive, negative=negative, control_net=NET, image=image, strength=0.7
    )
    for side in (positive, negative):
        control = side[0][1]["control"]
        assert (control.strength, control.previous.strength) == (0.7, 0.5)
        assert (control.previous.end_percent, control.previous.previous) == (0.8, None)
        assert control.hint.shape[-1] == 3


def test_strength_zero_passes_a_conditioning_through() -> None:
    one, two = conditioning(1), conditioning(2)
    image = torch.zeros(1, 8, 8, 3)
    assert apply_control_net(conditioning=one, control_net=NET, image=image, strength=0) is one
    sides = apply_control_net_advanced(positive=one, negative=two, control_net=NET, image=image, strength=0)
    assert sides[0] is one
    assert sides[1] is two


def test_only_the_older_node_shares_its_control_with_the_negative() -> None:
    image, negative = torch.zeros(1, 8, 8, 3), conditioning(2)
    older = apply_control_net(conditioning=conditioning(1), control_net=NET, image=image)
    assert with_shared_controls(older, negative)[0][1]["control"] is older[0][1]["control"]
    newer, _ = apply_control_net_advanced(
        positive=conditioning(1), negative=negative, control_net=NET, image=image
    )
    assert with_shared_controls(newer, negative) is negative
