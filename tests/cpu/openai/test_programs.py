"""Programs against the runtime itself and against a live server."""

from __future__ import annotations

import asyncio
import io
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from aiohttp.test_utils import TestServer
from PIL import Image

from bench.train_vlm.answers import has_keyword
from programs import EngineBackend, HttpBackend, State, assistant, function, gen, image, select, system, user
from programs.turns import Answer, Backend, Gap, Turn
from runtime.llm.engine import Engine
from runtime.platform.errors import RuntimeFault, Unsupported
from runtime.platform.handle import Cancelled
from runtime.platform.installed import packaged_language_models
from tests.cpu.llm.test_glyph_vlm import MODEL, pictures_of

TAGS = r"[a-z]{2,6}(, [a-z]{2,6}){1,3}"


def png(pixels: torch.Tensor) -> bytes:
    target = io.BytesIO()
    Image.fromarray(pixels.numpy()).save(target, "PNG")
    return target.getvalue()


@function
def describe(state: State, picture: bytes) -> dict[str, Any]:
    state += user(image(picture) + "What is this?")
    state += assistant(gen("caption", max_tokens=16))
    state += user("Which tags fit it?")
    state += assistant("Tags: " + gen("tags", max_tokens=40, regex=TAGS))
    return {"caption": state["caption"], "tags": state["tags"].split(", ")}


@function
def talk(state: State, subject: str) -> None:
    state += system("Be brief. " * 8)
    state += user(f"Speak about {subject}.")
    state += assistant(
        "Well, " + gen("first", max_tokens=8) + " and " + gen("second", max_tokens=8, stop="e")
    )
    state += user("Is it big?")
    state += assistant(select("size", ["small", "big", "bigger than a house"]))
    state += user("Numbers?")
    schema = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}
    state += assistant(gen("json", max_tokens=30, json_schema=schema))


@function
def compare(state: State) -> list[str]:
    state += user("A question that is long enough to fill some pages of the cache, asked once.")
    state += assistant(gen("opening", max_tokens=4))
    for number, branch in enumerate(state.fork(3)):
        branch += user(f"Way {number}?")
        branch += assistant(gen("way", max_tokens=4, temperature=1.0, seed=number))
    return [state["opening"]]


@pytest.fixture(scope="module")
def seeing() -> Iterator[Engine]:
    models = {**packaged_language_models(), MODEL.name: MODEL}
    engine = Engine(lambda: models, threads=1, num_pages=256)
    yield engine
    engine.close()


@pytest.mark.timeout(120)
def test_a_picture_becomes_a_caption_and_tags(seeing: Engine) -> None:
    run = describe.run(EngineBackend(seeing, MODEL.name), png(pictures_of(["frog"])[0].permute(1, 2, 0)))
    assert has_keyword(run.value["caption"], "frog"), run.value
    assert re.fullmatch(TAGS, ", ".join(run.value["tags"]))
    assert run.answer("tags").cached_tokens >= 16, "the second question computes the picture anew"


async def test_a_server_answers_a_program_as_the_engine_does(server: TestServer, engine: Engine) -> None:
    backends = [EngineBackend(engine, "tiny"), HttpBackend(str(server.make_url("/v1")), "tiny")]
    here, there = [await asyncio.to_thread(talk.run, backend, "the sea") for backend in backends]
    names = ("first", "second", "size", "json")
    assert [here[name] for name in names] == [there[name] for name in names]
    assert here["size"] in ("small", "big", "bigger than a house")
    assert there.answer("json").cached_tokens > 0
    assert "e" not in here["second"]


async def test_pictures_reach_a_server(server: TestServer, engine: Engine) -> None:
    picture = png(torch.arange(24 * 40 * 3, dtype=torch.uint8).view(24, 40, 3))
    backends = [EngineBackend(engine, "llava"), HttpBackend(str(server.make_url("/v1")), "llava")]
    here, there = [await asyncio.to_thread(describe.run, backend, picture) for backend in backends]
    assert here.value == there.value


def test_branches_share_what_came_before(engine: Engine) -> None:
    run = compare.run(EngineBackend(engine, "tiny"))
    answers = [branch.answer("way") for branch in run._branches]
    assert len({answer.text for answer in answers}) > 1
    assert all(answer.cached_tokens >= 64 for answer in answers), answers
    assert run.value == [run._branches[0]["opening"]]


def test_a_batch_of_programs_equals_each_alone(engine: Engine) -> None:
    backend = EngineBackend(engine, "tiny")
    subjects = ["bread", "glass", "bees"]
    together = talk.run_batch(backend, [{"subject": subject} for subject in subjects])
    assert [run["first"] for run in together] == [talk.run(backend, each)["first"] for each in subjects]


@pytest.mark.parametrize("over_http", [False, True])
async def test_a_stream_tells_every_piece_in_order(
    server: TestServer, engine: Engine, over_http: bool
) -> None:
    backend = HttpBackend(str(server.make_url("/v1")), "tiny") if over_http else EngineBackend(engine, "tiny")
    pieces = await asyncio.to_thread(lambda: list(talk.stream(backend, "the moon")))
    whole = await asyncio.to_thread(talk.run, backend, "the moon")
    assert list(dict.fromkeys(piece.name for piece in pieces)) == ["first", "second", "size", "json"]
    for name in ("first", "second", "size", "json"):
        assert "".join(piece.text for piece in pieces if piece.name == name) == whole[name]


def test_closing_a_stream_ends_its_request(engine: Engine) -> None:
    @function
    def endless(state: State) -> None:
        state += user("Go on.")
        state += assistant(gen("much", max_tokens=700, temperature=1.0, seed=2))

    before = engine.stats()["tiny"].generated_tokens
    stream = endless.stream(EngineBackend(engine, "tiny"))
    next(stream)
    stream.close()
    assert engine.stats()["tiny"].generated_tokens - before < 350


async def test_what_goes_wrong_is_raised_where_it_is_read(server: TestServer, engine: Engine) -> None:
    @function
    def impossible(state: State) -> str:
        state += user("Hm?")
        state += assistant(gen("word", regex="(unclosed"))
        state += user("And then?")
        state += assistant(gen("never"))
        return state["never"]

    with pytest.raises(Unsupported, match="regex"):
        await asyncio.to_thread(impossible.run, EngineBackend(engine, "tiny"))
    with pytest.raises(RuntimeFault, match="400"):
        await asyncio.to_thread(impossible.run, HttpBackend(str(server.make_url("/v1")), "tiny"))
    with pytest.raises(RuntimeFault, match="cannot be reached"):
        await asyncio.to_thread(impossible.run, HttpBackend("http://127.0.0.1:1/v1", "tiny"))


class Parrot:
    """Answers with what it was asked last."""

    def generate(self, turns: list[Turn], gap: Gap, hear: Callable[[str], None]) -> Answer:
        text = "".join(str(part) for part in turns[-1].parts)
        hear(text)
        return Answer(text, "stop", 1, 0, 1)


def test_what_belongs_elsewhere_is_refused() -> None:
    backend: Backend = Parrot()  # type: ignore[assignment]
    state = State(backend, lambda _: None)
    with pytest.raises(ValueError, match="the user shows pictures"):
        user(gen("x"))
    with pytest.raises(ValueError, match="the user shows pictures"):
        assistant(image(b"..."))
    with pytest.raises(ValueError, match="not both"):
        gen("x", regex="a", json_schema={})
    with pytest.raises(TypeError, match="adds turns"):
        state += "text"  # type: ignore[arg-type]
    state += assistant("so " + gen("x"))
    with pytest.raises(ValueError, match="already"):
        state += assistant(gen("x"))
    with pytest.raises(KeyError):
        state["y"]
    assert state["x"] == "so "


def test_a_closed_stream_ends_a_program_between_its_answers() -> None:
    told: list[BaseException] = []

    @function
    def long(state: State) -> None:
        try:
            for number in range(10_000):
                state += user("?")
                state += assistant(gen(f"a{number}"))
                state[f"a{number}"]
        except Cancelled as error:
            told.append(error)
            raise

    stream = long.stream(Parrot())  # type: ignore[arg-type]
    next(stream)
    stream.close()
    assert len(told) == 1
