"""A model that sees, with a LoRA of its language part."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from shutil import copytree
from typing import Any

import peft
import pytest
import torch
from transformers import AutoModelForMultimodalLM

from runtime.llm.api import ChatRequest, Completion, Message, SamplingParams
from runtime.llm.engine import Engine
from runtime.platform.building import building
from runtime.platform.errors import Unsupported
from tests.cpu.llm.processors.conftest import SAVES, TOOLS

pytestmark = [
    pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning"),
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),
]

LAYERS = {"language": r".*language_model.*\.(q_proj|v_proj|down_proj)", "everywhere": ["q_proj"]}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """The model `merged` has the adapter `language` in its weights."""
    root = tmp_path_factory.mktemp("seeing")
    SAVES["llava"](root / "llava", TOOLS)
    copytree(root / "llava", root / "merged")
    for name, layers in LAYERS.items():
        _save(root, name, layers)
    models = {name: root / name for name in ("llava", "merged")}
    adapters = {name: root / name for name in LAYERS}
    made = Engine(lambda: models, adapters=lambda: adapters, threads=1, num_pages=256, dtype=torch.float32)
    yield made
    made.close()


def _save(root: Path, name: str, layers: Any) -> None:
    torch.manual_seed(3)
    with building:
        base = AutoModelForMultimodalLM.from_pretrained(root / "llava", dtype=torch.float32)
    network = peft.get_peft_model(base, peft.LoraConfig(r=4, lora_alpha=16, target_modules=layers))
    for key, each in network.named_parameters():
        if "lora_B" in key:
            torch.nn.init.normal_(each.data, std=0.2)
    network.save_pretrained(root / name)
    if name == "language":
        network.merge_and_unload().save_pretrained(root / "merged")


def ask(engine: Engine, model: str, *content: Any) -> Completion:
    params = SamplingParams(max_tokens=10, temperature=0, ignore_eos=True, logprobs=0)
    request = ChatRequest(f"{model} {content}", model, (Message("user", content),), params)
    answer: Completion = engine.submit(request).wait(60)
    return answer


def test_images_are_answered_as_with_the_adapter_in_the_weights(engine: Engine, contract: Any) -> None:
    contents = [("See ", contract.picture(1), "?"), (contract.picture(1), contract.picture(2)), ("words",)]
    for content in contents:
        plain, adapted, merged = (
            ask(engine, each, *content) for each in ("llava", "llava:language", "merged")
        )
        assert adapted.token_ids == merged.token_ids != plain.token_ids
        scores = [torch.tensor([each.chosen.logprob for each in a.logprobs]) for a in (adapted, merged)]
        assert (scores[0] - scores[1]).abs().max() < 1e-4
    assert ask(engine, "llava:language", *contents[0]).cached_tokens > 0
    assert engine.stats()["llava"].media_encoded == 2, "features know no adapter"


def test_an_adapter_of_the_tower_is_refused(engine: Engine) -> None:
    with pytest.raises(Unsupported, match=r"vision_tower.*no linear layer of this model's language part"):
        ask(engine, "llava:everywhere", "words")
