"""Florence-2 in the compatibility lane answers as transformers alone does: text, streams and boxes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import AddedToken
from transformers import (
    AutoModelForMultimodalLM,
    BartConfig,
    CLIPImageProcessorPil,
    Florence2Config,
    Florence2Processor,
)

from runtime.llm.api import ChatRequest, Completion, Image, Message, SamplingParams, Token, Video
from runtime.llm.compat_lane import CompatLane
from runtime.llm.engine import Engine
from runtime.llm.processors import assemble
from runtime.platform.building import building
from runtime.platform.errors import OutOfMemory, Unsupported
from runtime.platform.handle import Done
from tests.cpu.llm.conftest import byte_tokenizer

NUM_IMAGE_TOKENS = 17
PARSED = ["pure_text", "description_with_bboxes", "bboxes", "polygons", "phrase_grounding"]


def save(folder: Path) -> Path:
    tokenizer = byte_tokenizer()
    tokenizer.chat_template = None
    tokenizer.pad_token = "</s>"
    places = [f"<loc_{at}>" for at in range(1000)]
    names = ["<image>", *places, "<poly>", "</poly>"]
    tokenizer.add_special_tokens({"extra_special_tokens": [AddedToken(each, special=True) for each in names]})
    tokenizer.image_token, tokenizer.image_token_id = "<image>", tokenizer.convert_tokens_to_ids("<image>")
    text = BartConfig(
        vocab_size=len(tokenizer),
        d_model=64,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=96,
        decoder_ffn_dim=96,
        max_position_embeddings=160,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=1,
        decoder_start_token_id=1,
        forced_bos_token_id=0,
        init_std=0.3,
    )
    vision = {
        "depths": [1, 1],
        "patch_size": [7, 3],
        "patch_stride": [4, 2],
        "patch_padding": [3, 1],
        "patch_prenorm": [False, True],
        "embed_dim": [16, 32],
        "num_heads": [2, 2],
        "num_groups": [2, 2],
        "window_size": 4,
        "projection_dim": 64,
    }
    config = Florence2Config(
        text_config=text.to_dict(), vision_config=vision, image_token_id=tokenizer.image_token_id
    )
    with building:
        torch.manual_seed(0)
        network = AutoModelForMultimodalLM.from_config(config)
    # As in the published ones.
    network.generation_config.update(
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=1,
        decoder_start_token_id=1,
        forced_bos_token_id=0,
        forced_eos_token_id=1,
        no_repeat_ngram_size=3,
    )
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    set_image_token(folder)
    CLIPImageProcessorPil(
        size={"height": 32, "width": 32}, do_center_crop=False, image_seq_length=NUM_IMAGE_TOKENS
    ).save_pretrained(folder)
    settings = {
        "processor_class": "Florence2Processor",
        "num_additional_image_tokens": 1,
        "post_processor_config": {name: {} for name in PARSED},
    }
    (folder / "processor_config.json").write_text(json.dumps(settings))
    return folder


def set_image_token(folder: Path) -> None:
    file = folder / "tokenizer_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"image_token": "<image>"}))


class Reference:
    """The same checkpoint as transformers runs it."""

    def __init__(self, folder: Path) -> None:
        with building:
            self.network = AutoModelForMultimodalLM.from_pretrained(folder, dtype=torch.float32).eval()
        self.processor: Florence2Processor = assemble.load(folder, "florence2")

    def greedy(self, text: str, image: Image, count: int) -> list[int]:
        inputs = self.processor(text=text, images=image.pixels.numpy(), return_tensors="pt")
        out = self.network.generate(**inputs, do_sample=False, num_beams=1, max_new_tokens=count)
        return out[0, 1:].tolist()

    def parsed(self, text: str, image: Image, tokens: list[int]) -> Any:
        height, width = image.pixels.shape[:2]
        decoded = self.processor.tokenizer.decode(tokens, skip_special_tokens=False)
        return self.processor.post_process_generation(text=decoded, task=text, image_size=(width, height))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("florence") / "florence2")


@pytest.fixture(scope="module")
def reference(folder: Path) -> Reference:
    return Reference(folder)


@pytest.fixture
def engine(folder: Path, start: Callable[..., Engine]) -> Engine:
    engine = start(models=lambda: {"florence2": folder}, max_rows=6)
    engine.load("florence2")
    return engine


def picture(seed: int, height: int = 40, width: int = 56) -> Image:
    numbers = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image(torch.from_numpy(numbers))


def ask(id: str, text: str, image: Image, count: int = 12, **params: Any) -> ChatRequest:
    settings = SamplingParams(max_tokens=count, **({"temperature": 0} | params))
    return ChatRequest(id, "florence2", (Message("user", (image, text)),), settings)


def test_many_tasks_at_once_answer_as_generate_does(engine: Engine, reference: Reference) -> None:
    tasks = ["<OD>", "<CAPTION>", "<REGION_PROPOSAL>", "<CAPTION_TO_PHRASE_GROUNDING> a red car", "Say."]
    asked = [(tasks[at % 5], picture(at, 24 + 8 * at), 6 + at) for at in range(10)]
    handles = [
        engine.submit(ask(str(at), text, image, count)) for at, (text, image, count) in enumerate(asked)
    ]
    for (text, image, count), handle in zip(asked, handles):
        answer = handle.wait(30)
        expected = reference.greedy(text, image, count)
        assert list(answer.token_ids) == expected, text
        assert answer.finish_reason == "stop", "the last token is forced to be the end"
        assert answer.prompt_tokens > NUM_IMAGE_TOKENS
        if text in ("<OD>", "<CAPTION>", "<REGION_PROPOSAL>"):
            assert answer.extended == reference.parsed(text, image, expected)
        elif text == "Say.":
            assert answer.extended is None
    stats = engine.stats()["florence2"]
    assert (stats.running, stats.waiting, stats.pages_used) == (0, 0, 0)


def test_boxes_are_in_pixels_with_their_labels(engine: Engine) -> None:
    processor = engine._lanes["florence2"].model.processor
    tokens = processor.tokenizer("car<loc_0><loc_500><loc_250><loc_999>").input_ids
    boxes = processor.extended("<OD>", tokens, [picture(1, height=100, width=200)])
    assert boxes["<OD>"]["labels"] == ["car"]
    assert boxes["<OD>"]["bboxes"] == [[0, 50, 50, 99]]
    assert json.loads(json.dumps(boxes)) == boxes


def test_a_text_has_no_control_tokens_around_it(engine: Engine, reference: Reference) -> None:
    answer = engine.submit(ask("one", "<CAPTION>", picture(3), 10)).wait(30)
    decoded = reference.processor.tokenizer.decode(answer.token_ids, skip_special_tokens=False)
    assert answer.text == decoded.replace("<s>", "").replace("</s>", "")


async def test_tokens_come_one_by_one(engine: Engine) -> None:
    handle = engine.submit(ask("one", "<CAPTION>", picture(3), 7))
    tokens = [event async for event in handle if isinstance(event, Token)]
    answer = await handle
    assert tuple(each.token_id for each in tokens) == answer.token_ids
    assert "".join(each.text for each in tokens) == answer.text


def test_sampling_fields_are_served_and_a_seed_decides(engine: Engine) -> None:
    params = {"temperature": 0.9, "top_p": 0.95, "seed": 5, "logprobs": 2, "logit_bias": ((70, 100.0),)}
    first = engine.submit(ask("a", "<CAPTION>", picture(1), 6, **params))
    others = [engine.submit(ask(f"o{at}", "<OD>", picture(at), 9, temperature=1.0)) for at in range(3)]
    again = engine.submit(ask("b", "<CAPTION>", picture(1), 6, **params))
    answer = first.wait(30)
    assert again.wait(30).token_ids == answer.token_ids
    assert 70 in answer.token_ids
    assert len(answer.logprobs) == 5, "one for each but the end"
    values = [scored.logprob for each in answer.logprobs for scored in (each.chosen, *each.top)]
    assert all(-1e3 < value <= 0 for value in values), "the model's own, whatever is forced"
    for handle in others:
        handle.wait(30)


def test_what_it_does_not_take_is_refused_by_name(engine: Engine) -> None:
    image = picture(1)
    video = Video(torch.zeros(2, 8, 8, 3, dtype=torch.uint8), (0.0, 1.0))
    refused = [
        (ask("a", "<OD> and more", image), "does not take this prompt.*only content"),
        (ChatRequest("b", "florence2", (Message("user", "<OD>"),)), "about one image; 0 were given"),
        (ChatRequest("c", "florence2", (Message("user", (image, image, "<OD>")),)), "2 were given"),
        (ChatRequest("d", "florence2", (Message("user", (video, "<OD>")),)), "takes no video"),
        (ChatRequest("e", "florence2", (Message("user", (image, "x")),) * 2), "takes one message"),
        (ask("f", "<OD>", image, temperature=-1), "temperature must be"),
        (ask("g", "x" * 400, image), "the context of florence2 is 160"),
    ]
    for request, words in refused:
        with pytest.raises(Unsupported, match=words):
            engine.submit(request).wait(30)


def test_cancelled_requests_leave_and_the_others_go_on(engine: Engine, reference: Reference) -> None:
    images = [picture(at) for at in range(6)]
    handles = [engine.submit(ask(str(at), "<OD>", image, 30)) for at, image in enumerate(images)]
    handles[1].cancel()
    handles[4].cancel()
    for at in (0, 2, 3, 5):
        assert list(handles[at].wait(30).token_ids) == reference.greedy("<OD>", images[at], 30)
    assert engine._lanes["florence2"].is_idle
    assert not engine._lanes["florence2"]._groups


def finish(lane: CompatLane, asked: list[ChatRequest]) -> list[Completion]:
    """All of them start in the same step."""
    done: list[Completion] = []
    for request in asked:
        lane.add(request, lane.prepare(request), lambda event: event)
    while not lane.is_idle:
        for row in list(lane._live.values()):
            row.deliver = lambda event: done.append(event.result) if isinstance(event, Done) else None
        lane.step()
    return done


def test_who_starts_together_shares_every_forward(engine: Engine, reference: Reference) -> None:
    lane = engine._lanes["florence2"]
    sizes: list[int] = []
    mine = CompatLane(lane.model, lane.codec, 4, sizes.append)
    asked = [ask(str(at), "<OD>" if at % 2 else "Hello there.", picture(at), 5 + at) for at in range(6)]
    answers = finish(mine, asked)
    assert sorted(len(each.token_ids) for each in answers) == [5, 6, 7, 8, 9, 10]
    assert sizes[:6] == [4] * 5 + [1], "four at a time, and then who takes the place of the first"
    assert sum(sizes) == 45


def test_who_waits_behind_cancelled_ones_is_started(engine: Engine) -> None:
    lane = engine._lanes["florence2"]
    mine = CompatLane(lane.model, lane.codec, 4, None)
    first = ask("first", "<OD>", picture(1), 9)
    mine.add(first, mine.prepare(first), lambda _: None)
    mine.step()
    second = ask("second", "<OD>", picture(2), 9)
    mine.add(second, mine.prepare(second), lambda _: None)
    mine.cancel("first")
    while not mine.is_idle:
        mine.step()
    assert mine.stats().generated_tokens == 10


def test_out_of_memory_splits_a_group_and_loses_nothing(
    engine: Engine, reference: Reference, monkeypatch: pytest.MonkeyPatch
) -> None:
    lane, calls = engine._lanes["florence2"], iter(range(1000))
    head = lane.model.network.lm_head
    forward = head.forward

    def sometimes(hidden: torch.Tensor) -> torch.Tensor:
        if next(calls) == 3:
            raise MemoryError("for this test")
        return forward(hidden)

    monkeypatch.setattr(head, "forward", sometimes)
    mine = CompatLane(lane.model, lane.codec, 6, None)
    images = [picture(at) for at in range(3)]
    answers = finish(mine, [ask(str(at), "<OD>", image, 12) for at, image in enumerate(images)])
    assert {each.token_ids for each in answers} == {
        tuple(reference.greedy("<OD>", image, 12)) for image in images
    }
    assert mine.max_rows == 3


def test_one_that_does_not_fit_alone_is_told_its_size(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(_: torch.Tensor) -> torch.Tensor:
        raise MemoryError("for this test")

    monkeypatch.setattr(engine._lanes["florence2"].model.network.lm_head, "forward", never)
    with pytest.raises(OutOfMemory, match="a request of 23 tokens does not fit"):
        engine.submit(ask("one", "Say.", picture(1))).wait(30)
