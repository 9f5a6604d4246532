"""How many places an image of any size gets, and which families are refused with which sentence."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers import (
    Cohere2VisionConfig,
    JanusConfig,
    PaliGemmaConfig,
    PreTrainedConfig,
    Qwen3Config,
    T5Config,
)
from transformers.models.smolvlm import processing_smolvlm

from runtime.llm import processors, text
from runtime.llm.api import ChatRequest, CompleteRequest, Message
from runtime.llm.processors import assemble
from runtime.llm.processors.fuyu import Fuyu
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


@pytest.mark.parametrize("family", ["fuyu"], indirect=True)
def test_fuyu_comes_without_a_template_and_still_chats(family: Any, contract: Any, tmp_path: Path) -> None:
    folder = shutil.copytree(family.folder, tmp_path / "plain")
    (folder / "chat_template.jinja").unlink()
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    assert "chat_template" not in settings
    codec = text.load(folder)
    assert codec.tokenizer.chat_template is None
    processor = Fuyu.load(folder, family.model.network.config)
    items = processor.items([contract.picture(1)])
    message = Message("user", ("What is ", contract.picture(1), "this?"))
    ids = codec.prompt_ids(ChatRequest("r", "plain", (message,)), processor.template(items))
    prompt = processor.prompt(ids, items, None)
    assert prompt.placed[0].positions[0] == 0, "the picture comes first"
    assert codec.tokenizer.decode(ids).endswith("What is this?\n<0x04>")


@pytest.mark.parametrize(("rows", "columns"), [(0, 0), (1, 2), (3, 2)])
@pytest.mark.parametrize("family", ["smolvlm"], indirect=True)
def test_smolvlm_and_idefics3_say_the_same_for_an_image(family: Any, rows: int, columns: int) -> None:
    assert assemble.class_named("SmolVLMProcessor").__name__ == "Idefics3Processor"
    expected = processing_smolvlm.get_image_prompt_string(
        rows, columns, 4, "<fake_token_around_image>", "<image>", "<global-img>"
    )
    made = family.processor.replace_image_token({"rows": [[rows]], "cols": [[columns]]}, 0)
    assert made == expected


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (
            Cohere2VisionConfig,
            "cohere2_vision are not served: transformers prepares its images with torchvision",
        ),
        (PaliGemmaConfig, "paligemma are not served: its prompts attend both ways as a whole"),
        (JanusConfig, "janus are not served; those that take media are .*llava"),
    ],
)
def test_a_family_that_is_not_served_is_refused_with_its_reason(
    config: type[PreTrainedConfig], reason: str
) -> None:
    with pytest.raises(Unsupported, match=reason):
        processors.is_known(config())


@pytest.mark.parametrize("config", [Qwen3Config, T5Config])
def test_models_of_text_and_encoder_decoders_go_other_ways(config: type[PreTrainedConfig]) -> None:
    assert not processors.is_known(config())
