"""Two processes: one has a model's vision tower and nothing else, the other has everything else."""

from __future__ import annotations

import base64
import io
import json
import socket
import urllib.error
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from PIL import Image as Picture

from runtime.llm import encoder_wire
from runtime.llm.api import ChatRequest, Completion, Image, Message, SamplingParams
from runtime.llm.encoder_wire import Question, fingerprint
from runtime.llm.engine import Engine
from runtime.llm.media import content_hash
from runtime.platform.errors import Unreachable, Unsupported
from runtime.platform.handle import Handle
from tests.cpu.llm.processors.conftest import SAVES, TOOLS, picture
from tests.cpu.server.encoder_process import EncoderProcess
from tests.cpu.server.process import Server

MODELS = ("llava", "qwen2_5_vl")

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("encoders")
    (folder / "models" / "llm").mkdir(parents=True)
    for name in MODELS:
        SAVES[name](folder / "models" / "llm" / name, TOOLS)
    return folder


@pytest.fixture(scope="module")
def known(base: Path) -> dict[str, Path]:
    return {name: base / "models" / "llm" / name for name in MODELS}


@pytest.fixture(scope="module")
def encoders(base: Path) -> Iterator[dict[str, EncoderProcess]]:
    started = {name: EncoderProcess(base, name) for name in MODELS}
    for each in started.values():
        each.wait()
    yield started
    for each in started.values():
        each.kill()


@pytest.fixture(scope="module")
def whole(known: dict[str, Path]) -> Iterator[Engine]:
    """Everything in one process."""
    made = Engine(lambda: known, threads=1, num_pages=256)
    yield made
    made.close()


def ask(engine: Engine, model: str, name: str, *content: str | Image) -> Handle[Completion]:
    params = SamplingParams(max_tokens=12, temperature=0, ignore_eos=True)
    return engine.submit(ChatRequest(name, model, (Message("user", content),), params))


CONTENTS = {
    "text": ("Only words.",),
    "one": ("Before ", picture(1), " after."),
    "three": (picture(2), "a", picture(3, 40, 24), "b", picture(1), "?"),
    "large": (picture(4, 90, 70), " What?"),
}


@pytest.mark.parametrize("model", MODELS)
def test_answers_are_those_of_one_process_and_no_tower_is_there(
    model: str, encoders: dict[str, EncoderProcess], known: dict[str, Path], whole: Engine
) -> None:
    engine = Engine(lambda: known, threads=1, num_pages=256, encoder_url=encoders[model].url)
    try:
        asked = {name: ask(engine, model, name, *content) for name, content in CONTENTS.items()}
        expected = {name: ask(whole, model, name, *content) for name, content in CONTENTS.items()}
        for name, handle in asked.items():
            assert handle.wait(60).token_ids == expected[name].wait(60).token_ids, name
        answers = {expected[name].wait(1).token_ids for name in CONTENTS}
        assert len(answers) == len(CONTENTS), "the images decide what is said"
        mine, all_of_it = engine._lanes[model].model, whole._lanes[model].model
        names = [name for name, _ in mine.network.named_parameters()]
        assert names
        assert all(name.startswith(("model.language_model.", "lm_head.")) for name in names)
        assert mine.weight_bytes < all_of_it.weight_bytes
        assert engine._lanes[model].features.num_encoded == 0
        assert encoders[model].health()["encoded"] == 4, "picture 1 was encoded once"
        assert encoders[model].health()["model"] == model
    finally:
        engine.close()


def test_many_requests_at_once_share_the_encoder(
    encoders: dict[str, EncoderProcess], known: dict[str, Path], whole: Engine
) -> None:
    before = encoders["llava"].health()["encoded"]
    engine = Engine(lambda: known, threads=1, num_pages=256, encoder_url=encoders["llava"].url)
    try:
        handles = [ask(engine, "llava", str(n), picture(100 + n % 9), f"{n}?") for n in range(18)]
        for number, handle in enumerate(handles):
            alone = ask(whole, "llava", str(number), picture(100 + number % 9), f"{number}?")
            assert handle.wait(60).token_ids == alone.wait(60).token_ids
        assert encoders["llava"].health()["encoded"] == before + 9
    finally:
        engine.close()


def test_an_encoder_of_another_model_is_refused(
    encoders: dict[str, EncoderProcess], known: dict[str, Path]
) -> None:
    engine = Engine(lambda: known, threads=1, num_pages=64, encoder_url=encoders["llava"].url)
    try:
        with pytest.raises(Unsupported, match="refuses qwen2_5_vl: it serves llava, whose files are others"):
            ask(engine, "qwen2_5_vl", "a", *CONTENTS["one"]).wait(30)
        assert ask(engine, "qwen2_5_vl", "b", "words").wait(30).token_ids
    finally:
        engine.close()


def test_without_an_encoder_words_go_on_and_images_are_refused(known: dict[str, Path]) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        engine = Engine(lambda: known, threads=1, num_pages=64, encoder_url=url)
        try:
            hanging = [ask(engine, "llava", f"hangs {n}", *CONTENTS["one"]) for n in range(4)]
            assert ask(engine, "llava", "words", "words").wait(30).token_ids
            for handle in hanging:
                handle.cancel()
        finally:
            engine.close()
    engine = Engine(lambda: known, threads=1, num_pages=64, encoder_url=url)
    try:
        with pytest.raises(Unreachable, match=f"llava sees by the encoder at {url}, which does not answer"):
            ask(engine, "llava", "image", *CONTENTS["one"]).wait(30)
        assert ask(engine, "llava", "words", "words").wait(30).token_ids
    finally:
        engine.close()


def test_what_is_no_question_is_refused_and_costs_nobody_else(
    encoders: dict[str, EncoderProcess], known: dict[str, Path], whole: Engine
) -> None:
    whole.load("llava")
    item = whole._lanes["llava"].model.processor.item(picture(50))
    good = Question(fingerprint(known["llava"]), (item,))
    strange = {"pixel_values": torch.zeros(1, 3, 7, 7)}
    bad = replace(item, inputs=strange, hash=content_hash("image", strange))
    refused = {
        b"": "no safetensors file",
        b"\xff" * 100: "no safetensors file",
        encoder_wire.question(
            replace(good, items=(replace(item, hash=b"\0" * 32),))
        ): "not what its hash says",
        encoder_wire.question(replace(good, items=(replace(item, num_rows=3),))): "cannot be encoded",
        encoder_wire.question(replace(good, items=(bad,))): "cannot be encoded",
        encoder_wire.question(replace(good, fingerprint="x")): "whose files are others",
    }
    for body, sentence in refused.items():
        status, answer = encoders["llava"].post(body)
        assert (status, sentence in json.loads(answer)["error"]["message"]) == (400, True), answer
    status, answer = encoders["llava"].post(encoder_wire.question(good))
    (features,) = encoder_wire.read_answer(answer)
    assert (status, len(features.rows)) == (200, item.num_rows)


def test_the_server_of_the_flag_answers_about_images_and_says_when_it_cannot(
    base: Path, encoders: dict[str, EncoderProcess], whole: Engine
) -> None:
    server = Server(base, "--encoder-url", encoders["llava"].url)
    try:
        body = {
            "model": "llava",
            "messages": [{"role": "user", "content": _parts(picture(7), "What?")}],
            "max_tokens": 12,
            "temperature": 0,
            "ignore_eos": True,
        }
        text = server.post("/v1/chat/completions", body)["choices"][0]["message"]["content"]
        assert text == ask(whole, "llava", "a", picture(7), "What?").wait(60).text
        encoders["llava"].kill()
        assert server.post("/v1/chat/completions", body)["usage"], "it is known by its hash"
        body["messages"] = [{"role": "user", "content": _parts(picture(8), "What?")}]
        with pytest.raises(urllib.error.HTTPError) as failed:
            server.post("/v1/chat/completions", body)
        assert failed.value.code == 503
        assert "which does not answer" in json.loads(failed.value.read())["error"]["message"]
        body["messages"] = [{"role": "user", "content": "words"}]
        assert server.post("/v1/chat/completions", body)["usage"]["completion_tokens"] == 12
    finally:
        assert server.stop() == 0


def _parts(image: Image, question: str) -> list[dict[str, object]]:
    file = io.BytesIO()
    Picture.fromarray(image.pixels.numpy()).save(file, "PNG")
    url = "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()
    return [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": question}]
