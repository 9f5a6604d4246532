"""A model's language part and its encoder, each loaded without the other."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from runtime.llm import encoder_model, weight_count
from runtime.llm import model as model_module
from runtime.platform.building import building
from runtime.platform.errors import RuntimeFault

CPU = torch.device("cpu")

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")


def test_the_halves_hold_every_weight_once_and_nothing_of_one_another(family: Any, contract: Any) -> None:
    with building:
        encoder, processor = encoder_model.load(family.folder, CPU, torch.float32, {})
        language = model_module.load(family.folder, CPU, torch.float32, encodes=False)
    inside = {id(each) for each in _language_weights(family.network)}
    whole = dict(family.network.named_parameters())
    own = {name for name, each in whole.items() if id(each) in inside}
    assert own < whole.keys(), "there is something to leave out"
    of_language, of_encoder = dict(language.network.named_parameters()), dict(encoder.named_parameters())
    assert of_language.keys() <= own
    assert of_encoder.keys() <= whole.keys() - own
    assert not any(each.is_meta for each in (*of_language.values(), *of_encoder.values()))
    held = weight_count.held(encoder)
    assert (language.weight_bytes, held) == (family.model.weight_bytes - held, held)
    assert held > 0
    if "image" in processor.kinds:
        item = processor.item(contract.picture(1))
        (features,) = processor.encode(encoder, [item])
        (expected,) = processor.encode(family.network, [item])
        assert (features.rows - expected.rows).abs().max() < 1e-5
        with pytest.raises((RuntimeFault, AttributeError)):
            processor.encode(language.network, [item])


def _language_weights(network: Any) -> list[torch.Tensor]:
    head = network.get_output_embeddings()
    return [*network.get_decoder().parameters(), *(() if head is None else head.parameters())]
