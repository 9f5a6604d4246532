"""Nodes that show pictures to language models: what they ask, and what they make of the answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from app.events import Event, NodeProgress, NodeText
from app.files import Files
from app.graph.context import JobNodeContext
from nodes.context import NodeInputError
from nodes.generate_text import enhance
from nodes.generate_text import generate as text_generate
from nodes.language import chat, generate
from nodes.retrieval import draw, nearest, select
from nodes.structured import structured
from nodes.tools import call, result
from nodes.vision import ask, caption, load_folder, load_vision_language_model
from runtime.diffusion.api import TextEncoderRef
from runtime.llm.api import Message, ToolCall, media_of

VLM, _ = load_vision_language_model(model="seer")


def pictures(count: int) -> torch.Tensor:
    return torch.stack([torch.full((8, 12, 3), number / 10) for number in range(count)])


async def test_each_picture_of_a_batch_is_a_question_of_its_own(
    context: JobNodeContext, language: Any, published: list[Event]
) -> None:
    answers = await ask(context, vlm=VLM, image=pictures(3), question="Which colour?", system="Be brief.")
    assert answers == ["sea turtle"] * 3
    assert [len(media_of(each)) for each in language.requests] == [1, 1, 1]
    shown = [media_of(each)[0].pixels for each in language.requests]
    assert [int(each.max()) for each in shown] == [0, 25, 51]
    assert shown[0].shape == (8, 12, 3)
    system, question = language.requests[0].messages
    assert (system.text, question.text) == ("Be brief.", "Which colour?")
    counts = [event.value for event in published if isinstance(event, NodeProgress)]
    assert counts == [1, 2, 3]
    assert not [event for event in published if isinstance(event, NodeText)]


async def test_the_answer_to_one_picture_grows_on_the_node(
    context: JobNodeContext, published: list[Event]
) -> None:
    assert await ask(context, vlm=VLM, image=pictures(1)) == ["sea turtle"]
    assert [event.text for event in published if isinstance(event, NodeText)][-1] == " sea turtle\n"


async def test_a_folder_becomes_a_table_of_captions(context: JobNodeContext, files: Files) -> None:
    folder = files.directories.input / "photos"
    folder.mkdir(parents=True)
    for name in ("b.png", "a.png"):
        Image.new("RGB", (9, 7), "red").save(folder / name)
    (folder / "notes.txt").write_text("no picture")
    assert files.input_folders() == ["example pictures", "photos"]
    images, names = load_folder(context, folder="photos")
    assert names == ["a.png", "b.png"]
    captions, table = await caption(
        context, vlm=[VLM], images=images, names=names, question=["What?"], prefix=["a "], suffix=[", nice"],
        max_tokens=[8], seed=[0],
    )  # fmt: skip
    assert captions == ["a sea turtle, nice"] * 2
    assert table == 'file,caption\na.png,"a sea turtle, nice"\nb.png,"a sea turtle, nice"\n'


def test_a_folder_without_pictures_or_outside_is_refused(context: JobNodeContext, files: Files) -> None:
    (files.directories.input / "empty").mkdir()
    for name, says in (("empty", "no pictures"), ("missing", "not a folder"), ("../output", "leads out")):
        with pytest.raises(NodeInputError, match=says):
            load_folder(context, folder=name)


async def test_the_language_nodes_show_pictures_too(context: JobNodeContext, language: Any) -> None:
    await generate(context, model=VLM, prompt="x", image=pictures(2))
    await chat(context, model=VLM, message="y", image=pictures(1))
    assert [len(media_of(each)) for each in language.requests] == [2, 1]
    with pytest.raises(NodeInputError, match="no image"):
        await generate(context, model=VLM, prompt="x", mode="continue", image=pictures(1))


async def test_properties_of_the_schema_come_out_one_by_one(context: JobNodeContext, language: Any) -> None:
    schema = json.dumps({"type": "object", "properties": {"name": {}, "size": {}, "tags": {}}})
    language.words = ('{"size": 3, "name": "whale"}',)
    values = (await structured(context, model="tiny", prompt="x", schema=schema)).values
    assert values[0] == {"size": 3, "name": "whale"}
    assert values[2:6] == ("whale", 3, None, None)
    assert len(values) == 10


async def test_a_model_calls_a_tool_and_hears_what_came_of_it(context: JobNodeContext, language: Any) -> None:
    language.tool_calls = (ToolCall("c1", "multiply", '{"a": 6, "b": 7}'),)
    name, arguments, text, talk = await call(context, model="tiny", prompt="What is 6 times 7?")
    assert (name, arguments, text) == ("multiply", {"a": 6, "b": 7}, "sea turtle")
    asked = language.requests[0]
    assert [tool.name for tool in asked.tools] == ["multiply"]
    assert asked.must_call == ("multiply",)
    answered = result(chat=talk, result={"product": 42})
    assert answered[-1] == Message("tool", '{"product": 42}', tool_call_id="c1")
    language.tool_calls = ()
    reply, _ = await chat(context, model="tiny", message="So?", chat=answered)
    assert reply == "sea turtle"
    assert language.requests[1].messages[:3] == answered


async def test_without_a_call_there_is_nothing_to_answer(context: JobNodeContext) -> None:
    name, arguments, _, talk = await call(context, model="tiny", prompt="x", choice="auto")
    assert (name, arguments) == ("", {})
    with pytest.raises(NodeInputError, match="calls no tool"):
        result(chat=talk, result="y")


@pytest.mark.parametrize("tools", ["[", "3", '[{"description": "nameless"}]', "[]"])
async def test_what_is_no_tool_is_refused(context: JobNodeContext, tools: str) -> None:
    with pytest.raises(NodeInputError, match="tools"):
        await call(context, model="tiny", prompt="x", tools=tools)


def test_the_nearest_vector_and_its_entry() -> None:
    index, score = nearest(query=[[1.0, 0.0]], vectors=[[0.0, 1.0], [3.0, 0.3], [-1.0, 0.0]])
    assert index == 1
    assert score == pytest.approx(0.995, abs=1e-3)
    assert select(values=["a", "b", "c"], index=[index]) == "b"
    with pytest.raises(NodeInputError, match="no entry 3"):
        select(values=["a", "b", "c"], index=[3])
    with pytest.raises(NodeInputError, match="as long as"):
        nearest(query=[[1.0]], vectors=[[1.0, 2.0]])


def test_boxes_are_drawn_in_pixels_or_parts() -> None:
    plain = torch.zeros(1, 20, 40, 3)
    pixels = draw(image=plain, boxes=[[4, 2, 12, 10]], width=1)
    assert pixels[0, 2, 4:13].sum() > 0
    assert pixels[0, 5, 6].sum() == 0
    parts = draw(image=plain, boxes=[[100, 100, 300, 500]], scale=1000, width=1)
    assert torch.equal(parts, pixels)
    with pytest.raises(NodeInputError, match="four numbers"):
        draw(image=plain, boxes=[[1, 2, 3]])


async def test_a_clip_of_a_known_language_model_writes(
    context: JobNodeContext, language: Any, files: Files, tmp_path: Path
) -> None:
    name, path = next(iter(files.language_model_paths().items()))
    text = await text_generate(context, clip=TextEncoderRef((path,), "x"), prompt="Hi", image=pictures(1))
    assert text == "sea turtle"
    assert language.requests[0].model == name
    assert language.requests[0].params.temperature == 0
    mode = {"sampling_mode": "on", "temperature": 0.3, "top_k": 7, "top_p": 0.5, "min_p": 0.1, "seed": 3}
    await text_generate(context, clip=TextEncoderRef((path,), "x"), prompt="Hi", sampling_mode=mode)
    params = language.requests[1].params
    assert (params.temperature, params.top_k, params.top_p, params.min_p, params.seed) == (
        0.3,
        7,
        0.5,
        0.1,
        3,
    )
    with pytest.raises(NodeInputError, match="no language model"):
        await text_generate(context, clip=TextEncoderRef((tmp_path,), "x"), prompt="Hi")


async def test_a_prompt_is_made_richer_by_the_chosen_style(context: JobNodeContext, language: Any) -> None:
    assert await enhance(context, model="tiny", prompt="a whale") == "sea turtle"
    system, user = language.requests[0].messages
    assert "picture generator" in system.text
    assert user.text == "a whale"
    with pytest.raises(NodeInputError, match="instruction"):
        await enhance(context, model="tiny", prompt="x", style="custom")
