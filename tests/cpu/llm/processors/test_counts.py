"""How many places images of any size get, and that a prompt must have as many."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from runtime.llm.api import CompleteRequest
from runtime.platform.errors import Unsupported

PATCH, MERGE, MIN_PIXELS, MAX_PIXELS = 4, 2, 64, 4096
SIZES = [tuple(map(int, each)) for each in np.random.default_rng(5).integers(6, 160, (25, 2))]


def qwen_places(height: int, width: int) -> int:
    """Sides become multiples of a merged patch, their product fits the bounds; then patches / merge²."""
    side = PATCH * MERGE
    rounded = [round(each / side) * side for each in (height, width)]
    if math.prod(rounded) > MAX_PIXELS:
        shrink = math.sqrt(height * width / MAX_PIXELS)
        rounded = [max(side, math.floor(each / shrink / side) * side) for each in (height, width)]
    elif math.prod(rounded) < MIN_PIXELS:
        stretch = math.sqrt(MIN_PIXELS / (height * width))
        rounded = [math.ceil(each * stretch / side) * side for each in (height, width)]
    return (rounded[0] // PATCH) * (rounded[1] // PATCH) // MERGE**2


@pytest.mark.parametrize("family", ["qwen2_vl", "qwen3_vl"], indirect=True)
def test_qwen_counts_patches_by_merged_patches(family: Any, contract: Any) -> None:
    for height, width in SIZES:
        item = family.model.processor.item(contract.picture(1, height, width))
        own = family.processor._get_num_multimodal_tokens(image_sizes=[(height, width)])
        _, rows, columns = item.inputs["image_grid_thw"][0].tolist()
        assert item.num_rows == rows * columns // MERGE**2
        assert item.num_rows == own["num_image_tokens"][0] == qwen_places(height, width), (height, width)


@pytest.mark.parametrize("family", ["llava_next", "llava_onevision"], indirect=True)
def test_tilings_count_as_transformers_says(family: Any, contract: Any) -> None:
    for height, width in SIZES:
        item = family.model.processor.item(contract.picture(1, height, width))
        own = family.processor._get_num_multimodal_tokens(image_sizes=[(height, width)])
        assert item.num_rows == own["num_image_tokens"][0], (height, width)


PLACES = {"llava": "<image>", "idefics3": "<image>", "internvl": "<IMG_CONTEXT>", "mistral3": "[IMG]"}


@pytest.mark.parametrize("family", PLACES, indirect=True)
def test_a_prompt_to_complete_holds_a_place_for_each_medium(family: Any, contract: Any) -> None:
    place, lane = PLACES[family.name], family.lane()

    def prepare(prompt: str) -> Any:
        media = (contract.picture(1), contract.picture(2))
        return lane.prepare(CompleteRequest("r", family.name, prompt, media=media))

    placed = prepare(f"This {place} and that {place}.").media.placed
    items = family.model.processor.items([contract.picture(1), contract.picture(2)])
    assert [each.item.hash for each in placed] == [item.hash for item in items]
    with pytest.raises(Unsupported, match="more places"):
        prepare(f"{place}, {place} and {place}")
    with pytest.raises(Unsupported, match="fewer places"):
        prepare(f"Only {place}")
