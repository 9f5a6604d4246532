"""What the graph does with tensors: it imports no torch, yet counts, shows and shares them."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path
from typing import Annotated

import pytest
import torch
from PIL import Image as Pictures

from app.events import ExecutionError, NodePreview
from app.graph.cache import ResultCache, size_bytes
from app.graph.preview import encoded, picture_of
from app.graph.run import run_job
from app.graph.untouched import seen
from nodes.declare import spec_of
from nodes.registry import Registry
from nodes.spec import NodeResult, NodeSpec
from nodes.types import Image, Int
from tests.fakes import FakeDiffusion, World, box, world
from tests.pure.graph.boxes import sample, show


def blank(*, side: Annotated[int, Int(1, 4096)] = 8) -> Image:
    return torch.zeros(1, side, side, 3)


def brightness(*, image: Image) -> NodeResult:
    return NodeResult(ui={"mean": [float(image.mean())]})


def halved(*, image: Image, unused: int = 0) -> Image:
    return image.mul_(0.5)


def white(*, side: int = 4) -> Image:
    return torch.ones(1, side, side, 3)


def same(*, image: Image) -> Image:
    return image


def mismatched(*, image: Image) -> Image:
    return image @ torch.zeros(7, 7)


def classes() -> list[NodeSpec]:
    return [
        spec_of(blank, "Blank", category="t"),
        spec_of(brightness, "Brightness", category="t", is_output=True),
        spec_of(halved, "Halved", category="t"),
        spec_of(white, "White", category="t"),
        spec_of(same, "Same", category="t"),
        spec_of(mismatched, "Mismatched", category="t"),
        spec_of(sample, "Sample", category="t"),
        spec_of(show, "Show", category="t", is_output=True),
    ]


@pytest.fixture
def here(tmp_path: Path) -> World:
    return world(classes(), tmp_path)


def test_a_tensor_counts_with_its_storage():
    assert 4 * 1000 <= size_bytes([{"samples": torch.zeros(1000)}]) < 4 * 1000 + 1000


async def test_the_cache_forgets_large_pictures_first_used_first(tmp_path: Path):
    here = world(classes(), tmp_path, cache=ResultCache(4 * 3 * 64 * 64 * 2 + 10_000))
    for side in (64, 63, 62):
        await run_job(
            here.job({"1": box("Blank", side=side), "2": box("Brightness", image=["1", 0])}), here.services
        )
        here.services.cache.check()
    here.events.clear()
    for side in (62, 64):
        await run_job(
            here.job({"1": box("Blank", side=side), "2": box("Brightness", image=["1", 0])}), here.services
        )
    assert [event.nodes for event in here.events if hasattr(event, "nodes")] == [("1", "2"), ("2",)]


async def test_an_error_shows_tensors_by_their_shape(here: World):
    prompt = {
        "1": box("Blank", side=4),
        "2": box("Mismatched", image=["1", 0]),
        "3": box("Brightness", image=["2", 0]),
    }
    await run_job(here.job(prompt), here.services)
    event = here.events[-1]
    assert isinstance(event, ExecutionError)
    assert event.current_inputs == {"image": ["Tensor of shape (1, 4, 4, 3)"]}
    assert event.exception_type == "RuntimeError"


@pytest.mark.parametrize(
    ("shape", "size"),
    [((8, 8), (128, 128)), ((16, 8), (64, 128)), ((300, 200), (200, 300)), ((2048, 1024), (256, 512))],
)
def test_previews_are_neither_tiny_nor_huge(shape: tuple[int, int], size: tuple[int, int]):
    rgb = torch.randint(0, 255, (*shape, 3), dtype=torch.uint8)
    picture = Pictures.open(io.BytesIO(encoded(picture_of(rgb))))
    assert (picture.format, picture.size) == ("JPEG", size)


async def test_a_runtimes_preview_arrives_as_a_picture_unless_the_prompt_declines(tmp_path: Path):
    rgb = torch.full((8, 8, 3), 200, dtype=torch.uint8)
    here = world(classes(), tmp_path, diffusion=FakeDiffusion(rgb))
    prompt = {"1": box("Sample", value=1), "2": box("Show", value=["1", 0])}
    await run_job(here.job(prompt), here.services)
    previews = [event for event in here.events if isinstance(event, NodePreview)]
    assert len(previews) == 3
    pixel = Pictures.open(io.BytesIO(previews[0].image)).getpixel((64, 64))
    assert all(abs(channel - 200) < 4 for channel in pixel)
    here.events.clear()
    job = here.job({"1": box("Sample", value=2), "2": box("Show", value=["1", 0])})
    job.extra_data["preview_method"] = "none"
    await run_job(job, here.services)
    assert not [event for event in here.events if isinstance(event, NodePreview)]


async def test_the_built_in_nodes_run_through_the_graph(tmp_path: Path):
    registry = Registry()
    registry.load_builtin()
    here = world([registry[id] for id in registry], tmp_path)
    prompt = {
        "1": box("EmptyImage", width=8, height=6, batch_size=2, color=255),
        "2": box("ImageInvert", image=["1", 0]),
        "3": box("SaveImage", images=["2", 0], filename_prefix="p"),
    }
    outcomes = await asyncio.gather(*(run_job(here.job(prompt), here.services) for _ in range(4)))
    assert {outcome.status for outcome in outcomes} == {"success"}
    images = outcomes[0].outputs["3"]["images"]
    assert [image["type"] for image in images] == ["output", "output"]
    assert all(outcome.outputs["3"]["images"] == images for outcome in outcomes)
    with Pictures.open(tmp_path / images[0]["filename"]) as picture:
        assert picture.size == (8, 6)
        assert picture.getpixel((0, 0)) == (255, 255, 0)


async def test_what_a_node_overwrites_is_not_handed_out_again(here: World, caplog):
    async def mean(unused: int) -> list[float]:
        prompt = {
            "1": box("White", side=4),
            "2": box("Same", image=["1", 0]),
            "3": box("Halved", image=["2", 0], unused=unused),
            "4": box("Brightness", image=["3", 0]),
        }
        return (await run_job(here.job(prompt), here.services)).outputs["4"]["mean"]

    assert [await mean(1), await mean(2), await mean(3)] == [[0.5], [0.5], [0.5]]
    assert "Halved (node 3) changes its inputs in place" in caplog.text


def test_a_tensor_without_a_counter_is_left_alone():
    with torch.inference_mode():
        tensor = torch.ones(2)
    before = seen([tensor, {"a": torch.ones(1)}])
    assert len(before.counts) == 1
    loop: list = [torch.ones(1)]
    loop.append(loop)
    assert len(seen(loop).counts) == 1
