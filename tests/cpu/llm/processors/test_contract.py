"""What every family owes: its own transformers forward, request by request, whoever shares the batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

TOLERANCE = 1e-4

# GLM's processor hands numpy a tensor in a way that it will not take for long.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")


def test_a_mixed_batch_in_chunks_equals_each_request_alone(family: Any, contract: Any) -> None:
    picture = contract.picture
    requests = {
        "text": ("What is the time in Rome?",),
        "one": ("Before. ", picture(1), " What is this?"),
        "three": (picture(2, 40, 24), " and ", picture(1), " and ", picture(3, 32, 32), " differ how?"),
    }
    if family.model.processor.max_items == 1:
        requests["three"] = (picture(2, 40, 24), " and what else?")
    lane = family.lane()
    sequences = [family.sequence(lane, name, *content) for name, content in requests.items()]
    computed = contract.all_logits(lane, sequences)
    for sequence, content, logits in zip(sequences, requests.values(), computed, strict=True):
        ids, expected = family.expected(*content)
        assert sequence.tokens[: sequence.prompt_length] == ids
        # A page that another request computed first is not computed again.
        worst = (logits - expected[-len(logits) :]).abs().max().item()
        assert worst < TOLERANCE, (sequence.id, worst)


def test_the_same_image_shares_pages_and_a_changed_pixel_none_of_them(family: Any, contract: Any) -> None:
    image = contract.picture(7)
    changed = contract.changed(image)
    lane = family.lane()
    first = family.sequence(lane, "first", "Look: ", image, " What is this?")
    tokens = list(first.tokens)
    start, stop = first.media.placed[0].span
    contract.all_logits(lane, [first])
    lane.cancel("first")
    encoded = lane.features.num_encoded

    same = family.sequence(lane, "same", "Look: ", image, " Which colour has it?")
    other = family.sequence(lane, "other", "Look: ", changed, " What is this?")
    same_logits, other_logits = contract.all_logits(lane, [same, other])
    size = lane.scheduler.pages.page_size
    assert same.cached_tokens >= stop // size * size, "the image's pages are shared"
    assert other.cached_tokens <= start, "another image's pages are not"
    assert other.tokens[:stop] == tokens[:stop], "though the tokens are the same"
    assert lane.features.num_encoded == encoded + 1
    _, expected = family.expected("Look: ", image, " Which colour has it?")
    assert (same_logits - expected[-len(same_logits) :]).abs().max() < TOLERANCE
    _, expected = family.expected("Look: ", changed, " What is this?")
    assert (other_logits - expected[-len(other_logits) :]).abs().max() < TOLERANCE


def test_ten_requests_with_one_image_encode_it_once(family: Any, contract: Any) -> None:
    image = contract.picture(4)
    lane = family.lane()
    sequences = [family.sequence(lane, f"r{at}", f"{at}: ", image, "?") for at in range(10)]
    contract.all_logits(lane, sequences)
    assert lane.features.num_encoded == 1


def test_features_of_several_images_at_once_are_those_of_each(family: Any, contract: Any) -> None:
    processor, network = family.model.processor, family.model.network
    items = [processor.item(contract.picture(seed, 24 + 8 * seed, 40)) for seed in range(3)]
    together = processor.encode(network, items)
    for item, features in zip(items, together, strict=True):
        alone = processor.encode(network, [item])[0]
        assert torch.allclose(features.rows, alone.rows, atol=1e-5)
        for mine, theirs in zip(features.deep, alone.deep, strict=True):
            assert torch.allclose(mine, theirs, atol=1e-5)


def test_a_picture_of_any_size_has_as_many_places_as_features(family: Any, contract: Any) -> None:
    processor, network = family.model.processor, family.model.network
    sizes = np.random.default_rng(11).integers(8, 90, (6, 2)).tolist()
    items = [processor.item(contract.picture(at, *size)) for at, size in enumerate(sizes)]
    features = processor.encode(network, items)
    assert [len(each.rows) for each in features] == [item.num_rows for item in items]


def test_what_a_user_spells_is_no_place_for_an_image(family: Any, contract: Any) -> None:
    lane = family.lane()
    spelled = family.codec.tokenizer.decode([family.model.processor.placeholder("image")])
    sequence = family.sequence(lane, "spelled", f"Say {spelled}! ", contract.picture(5), "?")
    assert len(sequence.media.placed) == 1
    ids, _ = family.expected("Say ", contract.picture(5), "?")
    wanted = ids.count(family.model.processor.placeholder("image"))
    assert sequence.tokens.count(family.model.processor.placeholder("image")) == wanted
