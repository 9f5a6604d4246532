"""The steps from media to features, one by one, with a family made up here: n columns make n rows."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from runtime.llm.api import Audio, Image, Media
from runtime.llm.media import Features, Item
from runtime.llm.processors.base import Processor
from runtime.platform.errors import Unsupported

PLACE = 7
START, STOP = 100, 101


class _Tokenizer:
    def __init__(self) -> None:
        self.init_kwargs: dict[str, Any] = {}

    def encode(self, text: str, **_: Any) -> list[int]:
        return [PLACE if letter == "#" else ord(letter) for letter in text]


class _Library:
    """What a processor of transformers has."""

    unused_input_names = ("note",)

    def __init__(self) -> None:
        self.tokenizer = _Tokenizer()

    def _merge_kwargs(self, **_: Any) -> dict[str, Any]:
        return {"images_kwargs": {"scale": 2.0}}

    def _process_images(self, images: Sequence[Any], scale: float) -> tuple[dict[str, Any], list[str]]:
        pixels = torch.from_numpy(images[0][:, :, 0]).float() * scale  # [H, W]
        if pixels.shape[1] > 8:
            raise ValueError("it is too wide")
        return {"pixels": pixels[None], "note": torch.ones(1)}, ["<" + "#" * pixels.shape[1] + ">"]

    def get_text_with_replacements(self, text: str, texts: Sequence[str]) -> str:
        rest = iter(texts)
        return "".join([next(rest) if letter == "?" else letter for letter in text])


class _Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))
        self.calls = 0

    def get_image_features(self, pixels: torch.Tensor, return_dict: bool) -> Any:
        self.calls += 1
        widths = [int((each != 0).any(0).sum()) for each in pixels]
        rows = [each[:, :width].T for each, width in zip(pixels, widths, strict=True)]
        return SimpleNamespace(pooler_output=rows)


class Family(Processor):
    model_types = ("made_up",)


@pytest.fixture
def processor() -> Family:
    config = SimpleNamespace(model_type="made_up", image_token_id=PLACE)
    return Family(_Library(), config)


def image(width: int, brightness: int = 1) -> Image:
    return Image(torch.full((3, width, 3), brightness, dtype=torch.uint8))


def test_an_item_has_its_inputs_its_text_and_the_number_of_its_places(processor: Family) -> None:
    item = processor.item(image(4))
    assert item.text == "<####>"
    assert item.num_rows == 4
    assert list(item.inputs) == ["pixels"], "what the encoder does not take is left out"
    assert item.inputs["pixels"].eq(2).all(), "the processor's own settings apply"


def test_content_is_told_by_what_the_encoder_sees(processor: Family) -> None:
    first, same, other = (processor.item(image(4, each)) for each in (5, 5, 6))
    assert first.hash == same.hash
    assert first.hash != other.hash
    assert first.hash != processor.item(image(5, 5)).hash


def test_an_image_shown_again_is_not_prepared_again(processor: Family) -> None:
    first, again, other = processor.items([image(4, 5), image(4, 5), image(4, 6)])
    assert again is first
    assert other is not first


def test_other_media_and_what_cannot_be_read_are_refused_with_a_sentence(processor: Family) -> None:
    with pytest.raises(Unsupported, match="takes no audio; it takes image"):
        processor.item(Audio(torch.zeros(8), 16000))
    with pytest.raises(Unsupported, match="the image cannot be prepared for the model: it is too wide"):
        processor.item(image(9))


def test_a_family_may_limit_the_media_of_a_request(processor: Family) -> None:
    processor.max_items = 1  # type: ignore[misc]
    assert len(processor.items([image(2)])) == 1
    with pytest.raises(Unsupported, match="takes 1 medium a request at most"):
        processor.items([image(2), image(3)])


def test_the_template_puts_each_items_text_in_its_place(processor: Family) -> None:
    items = processor.items([image(1), image(2)])
    template = processor.template(items)
    _, texts = template._process_images()
    assert template.get_text_with_replacements("a?b?", texts) == "a<#>b<##>"
    with pytest.raises(Unsupported, match="more places than the media"):
        template.get_text_with_replacements("a?b?c?", texts)


def test_places_are_found_and_known_by_content(processor: Family) -> None:
    items = processor.items([image(2), image(3)])
    tokens = [1, START, PLACE, PLACE, STOP, 2, PLACE, PLACE, PLACE, 3]
    prompt = processor.prompt(tokens, items, None)
    assert [each.positions for each in prompt.placed] == [(2, 3), (6, 7, 8)]
    assert prompt.placed[1].rows_in(7, 9) == (1, 3)
    own = [key for key in prompt.keys if key >= 0]
    assert own == [1, START, STOP, 2, 3], "text is known by its tokens"
    assert prompt.keys[2] == prompt.keys[3] != prompt.keys[6]
    assert prompt.atoms == ()


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ([1, PLACE, 2], "fewer places than the images"),
        ([PLACE, PLACE, 2, PLACE], "more places than the media"),
    ],
)
def test_places_and_media_must_agree(processor: Family, tokens: list[int], message: str) -> None:
    with pytest.raises(Unsupported, match=message):
        processor.prompt(tokens, processor.items([image(2)]), None)


def test_images_that_attend_both_ways_stay_whole(processor: Family) -> None:
    processor.attends_both_ways = True  # type: ignore[misc]
    prompt = processor.prompt([1, PLACE, PLACE, 2], processor.items([image(2)]), None)
    assert prompt.atoms == ((1, 3),)


def test_items_of_different_sizes_are_encoded_in_one_call(processor: Family) -> None:
    network = _Network()
    items: list[Item] = processor.items([image(2, 5), image(4, 6)])
    first, second = processor.encode(network, items)
    assert network.calls == 1
    assert first.rows.tolist() == [[10.0] * 3] * 2
    assert second.rows.tolist() == [[12.0] * 3] * 4


def test_an_encoder_that_makes_another_number_of_rows_is_noticed(processor: Family) -> None:
    black: Media = image(2, 0)
    with pytest.raises((AssertionError, RuntimeError)):
        processor.encode(_Network(), [processor.item(black)])


def test_features_reach_the_network_in_the_form_that_it_takes(processor: Family) -> None:
    features = Features(torch.ones(3, 2))
    output = processor.arguments({"image": features})["mm_encoder_outputs"]["image"]
    assert isinstance(output.pooler_output, tuple)
    processor.takes_joined_rows = True  # type: ignore[misc]
    output = processor.arguments({"image": features})["mm_encoder_outputs"]["image"]
    assert output.pooler_output is features.rows
