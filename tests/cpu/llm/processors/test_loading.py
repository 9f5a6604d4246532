"""How processors are put together from what folders hold, and which families are refused, and why."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

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
from runtime.llm.api import ChatRequest, Message
from runtime.llm.processors import assemble
from runtime.llm.processors.fuyu import Fuyu
from runtime.llm.processors.llava import Llava
from runtime.platform.errors import Unsupported


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


@pytest.mark.parametrize("family", ["llava"], indirect=True)
def test_a_template_may_lie_where_only_processors_look(family: Any, contract: Any, tmp_path: Path) -> None:
    folder = shutil.copytree(family.folder, tmp_path / "older")
    template = (folder / "chat_template.jinja").read_text()
    (folder / "chat_template.jinja").unlink()
    (folder / "chat_template.json").write_text(json.dumps({"chat_template": template}))
    codec, processor = text.load(folder), Llava.load(folder, family.model.network.config)
    message = Message("user", ("What is ", contract.picture(1), "this?"))
    request = ChatRequest("r", "older", (message,))
    ids = codec.prompt_ids(request, processor.template(processor.items(message.media)))
    assert ids == family.expected(*message.content)[0]


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
