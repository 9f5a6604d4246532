"""Tiny random checkpoints of the families in families/, and every logit that a mixed batch of requests gives.

A file there has functions `save_NAME(folder, tools)` that save a model with its processor.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoModelForMultimodalLM, PreTrainedTokenizerFast

from runtime.llm import model as model_module
from runtime.llm import text
from runtime.llm.api import ChatRequest, Image, Media, Message, SamplingParams
from runtime.llm.batch import build
from runtime.llm.lane import Lane
from runtime.llm.model import LanguageModel
from runtime.llm.processors import assemble
from runtime.llm.sequence import TokenSequence
from runtime.llm.text import Codec
from runtime.llm.writing import TokenWriter
from runtime.platform.building import building

FAMILIES = Path(__file__).parent / "families"
CHUNK = 16

# Parts in their order; an image is what {image} says, and so on.
_TEMPLATE = (
    "{{% for m in messages %}}<{{{{ m['role'] }}}}>{{% if m['content'] is string %}}{{{{ m['content'] }}}}"
    "{{% else %}}{{% for p in m['content'] %}}{{% if p['type'] == 'text' %}}{{{{ p['text'] }}}}"
    "{{% elif p['type'] == 'image' %}}{image}{{% elif p['type'] == 'video' %}}{video}"
    "{{% elif p['type'] == 'audio' %}}{audio}{{% endif %}}{{% endfor %}}{{% endif %}}</s>{{% endfor %}}"
    "{{% if add_generation_prompt %}}<assistant>{{% endif %}}"
)


def chat_template(image: str = "", video: str = "", audio: str = "") -> str:
    return _TEMPLATE.format(image=image, video=video, audio=audio)


def tokenizer(*control_tokens: str, **named: str) -> PreTrainedTokenizerFast:
    """Bytes, and control tokens from 258 on; `named` ones become attributes, as `image_token`."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {"<s>": 0, "</s>": 1} | {letter: number + 2 for number, letter in enumerate(alphabet)}
    backend = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    tokens = dict.fromkeys([*control_tokens, *named.values()])
    backend.add_special_tokens([AddedToken(each, special=True) for each in tokens])
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token="<s>",
        eos_token="</s>",
        pad_token="</s>",
        extra_special_tokens=named,
    )


def text_sizes(**changed: Any) -> dict[str, Any]:
    """Keyword arguments of a small text part."""
    return {
        "vocab_size": 320,
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 2048,
        "initializer_range": 0.2,
        "bos_token_id": 0,
        "eos_token_id": 1,
        "pad_token_id": 1,
        **changed,
    }


def save(folder: Path, config: Any, processor: Any) -> None:
    with building:
        torch.manual_seed(0)
        AutoModelForMultimodalLM.from_config(config).save_pretrained(folder)
    for name in processor.get_attributes():
        part = getattr(processor, name, None)
        if part is not None and name != "video_processor":
            part.save_pretrained(folder)
    # A processor without its video part cannot save itself.
    settings = {name: value for name, value in vars(processor).items() if isinstance(value, int | str)}
    kind = {"processor_class": type(processor).__name__}
    (folder / "processor_config.json").write_text(json.dumps(settings | kind))
    (folder / "chat_template.jinja").write_text(processor.chat_template)


def _saves() -> dict[str, Callable[[Path, Any], None]]:
    found = {}
    for file in sorted(FAMILIES.glob("*.py")):
        spec = importlib.util.spec_from_file_location(f"family_{file.stem}", file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for name, value in vars(module).items():
            if name.startswith("save_"):
                found[name.removeprefix("save_")] = value
    return found


SAVES = _saves()
_TAKE_NO_IMAGES = {"qwen2_audio"}


def picture(seed: int, height: int = 24, width: int = 40) -> Image:
    numbers = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image(torch.from_numpy(numbers))


@dataclass(frozen=True)
class Family:
    name: str
    folder: Path
    model: LanguageModel
    codec: Codec
    network: Any  # the reference, as transformers runs it
    processor: Any

    def lane(self, **settings: Any) -> Lane:
        plain = {
            "num_pages": 400,
            "page_size": 4,
            "max_batch_tokens": 3 * CHUNK,
            "max_rows": 16,
            "max_feature_bytes": 64 << 20,
            "num_kept_states": 16,
            "writer": TokenWriter(0),
            "on_forward": None,
        }
        return Lane(self.model, self.codec, **{**plain, **settings})

    def sequence(self, lane: Lane, name: str, *content: str | Media) -> TokenSequence:
        request = ChatRequest(name, self.name, (Message("user", content),), SamplingParams(temperature=0))
        prepared = lane.prepare(request)
        lane.add(request, prepared, lambda _: None)
        return lane.scheduler.waiting[-1]

    @torch.inference_mode()
    def expected(self, *content: str | Media) -> tuple[list[int], torch.Tensor]:
        """The ids and logits of a chat of one message, by transformers alone."""
        kinds = {"Image": "image", "Video": "video", "Audio": "audio"}
        parts = [
            {"type": "text", "text": each}
            if isinstance(each, str)
            else {"type": (kind := kinds[type(each).__name__]), kind: self.model.processor.raw(each)}
            for each in content
        ]
        inputs = self.processor.apply_chat_template(
            [{"role": "user", "content": parts}],
            tokenize=True,
            return_dict=True,
            return_tensors="pt",
            add_generation_prompt=True,
        )
        inner = getattr(self.network, "model", None)
        if hasattr(inner, "rope_deltas"):
            inner.rope_deltas = None
        logits = self.network(**inputs, use_cache=False).logits[0]
        return inputs["input_ids"][0].tolist(), logits


def all_logits(lane: Lane, sequences: Sequence[TokenSequence]) -> list[torch.Tensor]:
    """Compute the prompts together, chunk by chunk; each position's logits."""
    found: dict[str, dict[int, torch.Tensor]] = {each.id: {} for each in sequences}
    prompts = {each.id: each.prompt_length for each in sequences}
    while any(each.computed < prompts[each.id] for each in sequences):
        rows = lane.scheduler.schedule()
        assert rows
        for part in lane.runner.parts(rows):
            size, axes = lane.scheduler.pages.page_size, lane.model.position_axes
            batch = build(part, size, lane.model.device, axes)
            everywhere = replace(batch, logits_at=torch.arange(batch.input_ids.shape[1]))
            media = lane.features.arguments(batch.rows) if lane.features else {}
            logits, first = lane.runner.forward(everywhere, media=media, with_hidden=False).logits, 0
            for row in batch.rows:
                for at in range(row.count):
                    found[row.sequence.id][row.start + at] = logits[first + at]
                first += row.count
            lane.scheduler.commit(batch.rows, [[5] for row in batch.rows if row.samples])
        lane.scheduler.check()
    return [
        torch.stack([found[each.id][at] for at in sorted(found[each.id]) if at < prompts[each.id]])
        for each in sequences
    ]


TOOLS = SimpleNamespace(
    save=save,
    unchecked=assemble.unchecked,
    tokenizer=tokenizer,
    chat_template=chat_template,
    text_sizes=text_sizes,
)


def changed(image: Image) -> Image:
    """One number of one pixel is another."""
    pixels = image.pixels.clone()
    pixels[pixels.shape[0] // 2, pixels.shape[1] // 2, 0] ^= 0x80
    return Image(pixels)


@pytest.fixture(scope="session")
def contract() -> SimpleNamespace:
    return SimpleNamespace(picture=picture, changed=changed, all_logits=all_logits)


@pytest.fixture(scope="session", params=sorted(set(SAVES) - _TAKE_NO_IMAGES))
def family(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Family:
    name = request.param
    folder = tmp_path_factory.mktemp("families") / name
    SAVES[name](folder, TOOLS)
    with building:
        codec = text.load(folder)
        loaded = model_module.load(folder, torch.device("cpu"), torch.float32)
        network = AutoModelForMultimodalLM.from_pretrained(
            folder, dtype=torch.float32, attn_implementation="eager"
        )
        processor = assemble.load(folder, loaded.network.config.model_type)
    assert loaded.processor is not None
    return Family(name, folder, loaded, codec, network.eval(), processor)
