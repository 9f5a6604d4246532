"""A model's language part and its encoder, each loaded without the other."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import copyfile
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from transformers import AutoModelForMultimodalLM, LlamaConfig

from runtime.llm import encoder_model, weight_count
from runtime.llm import model as model_module
from runtime.platform.building import building
from runtime.platform.errors import RuntimeFault, Unsupported
from tests.cpu.llm.conftest import save_random
from tests.cpu.llm.processors.conftest import SAVES, TOOLS

CPU = torch.device("cpu")

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")


# Its encoders lie inside its language part.
WHOLE = {"phi4_multimodal"}


@pytest.mark.parametrize("family", sorted(SAVES.keys() - WHOLE), indirect=True)
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


@pytest.mark.parametrize("family", sorted(WHOLE), indirect=True)
def test_encoders_inside_the_language_part_stay_there(family: Any) -> None:
    with building, pytest.raises(Unsupported, match="inside its language part"):
        encoder_model.load(family.folder, CPU, torch.float32, {})
    with building, pytest.raises(Unsupported, match="inside its language part"):
        model_module.load(family.folder, CPU, torch.float32, encodes=False)


def test_a_folder_with_eyes_only_is_an_encoder_by_itself(composed: dict[str, Path], contract: Any) -> None:
    with building:
        encoder, processor = encoder_model.load(composed["eyes"], CPU, torch.float32, composed)
        language = model_module.load(composed["eyes"], CPU, torch.float32, composed, encodes=False)
        whole = model_module.load(composed["eyes"], CPU, torch.float32, composed)
    assert language.weight_bytes + weight_count.held(encoder) == whole.weight_bytes
    assert all("language_model" in name for name, _ in language.network.named_parameters())
    item = processor.item(contract.picture(1))
    (features,), (expected,) = (processor.encode(each, [item]) for each in (encoder, whole.network))
    assert (features.rows - expected.rows).abs().max() < 1e-6


@pytest.fixture
def composed(tmp_path: Path) -> dict[str, Path]:
    """A tiny LLaVA as two folders: its language model, and the rest."""
    eyes, words = tmp_path / "eyes", tmp_path / "words"
    SAVES["llava"](eyes, TOOLS)
    with building:
        weights = AutoModelForMultimodalLM.from_pretrained(eyes, dtype=torch.float32).state_dict()
    (eyes / "model.safetensors").unlink()
    own = {name: each for name, each in weights.items() if "vision_tower" in name or "projector" in name}
    save_file(own, eyes / "vision.safetensors")
    config = json.loads((eyes / "config.json").read_text())
    (eyes / "config.json").write_text(json.dumps(config | {"language_model": "words"}))
    save_random(LlamaConfig(**config["text_config"]), words)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        copyfile(eyes / name, words / name)
    return {"eyes": eyes, "words": words}


def _language_weights(network: Any) -> list[torch.Tensor]:
    head = network.get_output_embeddings()
    return [*network.get_decoder().parameters(), *(() if head is None else head.parameters())]
