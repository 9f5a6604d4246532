"""Picture files in and out, through the nodes that people use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from app.files import Files
from app.graph.context import JobNodeContext
from nodes.context import NodeInputError
from nodes.image_load import load_image, load_image_mask, load_image_output
from nodes.latent_files import load_latent, save_latent
from nodes.output import preview_image, save_image, save_text
from nodes.pictures import as_picture


def put(files: Files, name: str, picture: Image.Image, **options: Any) -> None:
    picture.save(files.directories.input / name, **options)


def rgba() -> Image.Image:
    pixels = np.zeros((2, 3, 4), dtype=np.uint8)
    pixels[..., 0] = 255
    pixels[..., 3] = [[0, 51, 255], [255, 255, 255]]
    return Image.fromarray(pixels)


def test_a_picture_becomes_rgb_and_one_minus_alpha(files: Files, context: JobNodeContext) -> None:
    put(files, "a.png", rgba())
    image, mask = load_image(context, image="a.png")
    assert image.shape == (1, 2, 3, 3)
    assert image[0, 0, 2].tolist() == [1, 0, 0]
    torch.testing.assert_close(mask[0], torch.tensor([[1.0, 0.8, 0.0], [0.0, 0.0, 0.0]]))


def test_a_picture_without_alpha_has_an_empty_mask_of_64(files: Files, context: JobNodeContext) -> None:
    put(files, "a.jpg", Image.new("RGB", (5, 4), "white"))
    _, mask = load_image(context, image="a.jpg")
    assert torch.equal(mask, torch.zeros(1, 64, 64))
    assert torch.equal(load_image_mask(context, image="a.jpg", channel="alpha"), torch.zeros(1, 64, 64))


def test_exif_orientation_is_applied(files: Files, context: JobNodeContext) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    put(files, "a.jpg", Image.new("RGB", (6, 4)), exif=exif)
    image, _ = load_image(context, image="a.jpg")
    assert image.shape == (1, 6, 4, 3)


def test_an_animation_is_a_batch_of_frames(files: Files, context: JobNodeContext) -> None:
    frames = [Image.new("RGB", (4, 4), color) for color in ("red", "lime", "blue")]
    put(files, "a.gif", frames[0], save_all=True, append_images=frames[1:])
    image, mask = load_image(context, image="a.gif")
    assert [frame[0, 0].argmax().item() for frame in image] == [0, 1, 2]
    assert mask.shape[0] == 3


def test_sixteen_bits_are_not_cut_to_white(files: Files, context: JobNodeContext) -> None:
    put(files, "a.png", Image.fromarray(np.full((2, 2), 32768, dtype=np.uint16)))
    image, _ = load_image(context, image="a.png")
    torch.testing.assert_close(image, torch.full((1, 2, 2, 3), 32768 / 65535))


@pytest.mark.parametrize(("channel", "value"), [("red", 1.0), ("green", 0.0), ("alpha", 0.8)])
def test_one_channel_as_a_mask(files: Files, context: JobNodeContext, channel: Any, value: float) -> None:
    put(files, "a.png", rgba())
    mask = load_image_mask(context, image="a.png", channel=channel)
    assert mask.shape == (1, 2, 3)
    assert mask[0, 0, 1].item() == pytest.approx(value)


def test_a_file_that_is_no_picture_is_named(files: Files, context: JobNodeContext) -> None:
    (files.directories.input / "a.png").write_text("hello")
    with pytest.raises(NodeInputError, match=r"a\.png is not a picture"):
        load_image(context, image="a.png")


def test_a_saved_picture_carries_prompt_and_workflow(context: JobNodeContext, files: Files) -> None:
    prompt, workflow = {"1": {"class_type": "X", "inputs": {}}}, {"nodes": [], "ü": 1}
    image = torch.rand(2, 3, 5, 3)
    result = save_image(
        context,
        images=image,
        filename_prefix="sub/a%batch_num%_%width%x%height%",
        prompt=prompt,
        extra_pnginfo={"workflow": workflow},
    )
    assert result.ui is not None
    names = [entry["filename"] for entry in result.ui["images"]]
    assert names == ["a0_5x3_00001_.png", "a1_5x3_00001_.png"]
    assert {(entry["subfolder"], entry["type"]) for entry in result.ui["images"]} == {("sub", "output")}
    assert result.values[0] is image
    with Image.open(files.directories.output / "sub" / names[0]) as saved:
        chunks = saved.text  # type: ignore[attr-defined]
        assert list(chunks) == ["prompt", "workflow"]
        assert json.loads(chunks["prompt"]) == prompt
        assert json.loads(chunks["workflow"]) == workflow


def test_what_was_saved_loads_back(context: JobNodeContext) -> None:
    pixels = torch.randint(0, 256, (1, 4, 4, 3)) / 255
    result = save_image(context, images=pixels)
    assert result.ui is not None
    image, _ = load_image_output(context, image=result.ui["images"][0]["filename"])
    torch.testing.assert_close(image, pixels)


def test_a_preview_goes_to_the_temporary_folder(context: JobNodeContext, files: Files) -> None:
    result = preview_image(context, images=torch.zeros(1, 2, 2, 3))
    assert result.ui is not None
    (entry,) = result.ui["images"]
    assert entry["type"] == "temp"
    assert (files.directories.temp / entry["filename"]).is_file()


@pytest.mark.parametrize(("channels", "mode"), [(1, "L"), (3, "RGB"), (4, "RGBA")])
def test_grey_colour_and_transparent_pictures_can_be_written(channels: int, mode: str) -> None:
    assert as_picture(torch.zeros(2, 2, channels)).mode == mode


def test_values_that_are_no_numbers_become_black() -> None:
    picture = as_picture(torch.full((1, 1, 3), float("nan")))
    assert picture.getpixel((0, 0)) == (0, 0, 0)


def test_a_latent_survives_its_file(context: JobNodeContext, files: Files) -> None:
    samples = torch.randn(2, 4, 3, 3)
    result = save_latent(context, samples={"samples": samples}, prompt={"1": {}})
    assert result.ui is not None
    (entry,) = result.ui["latents"]
    saved = files.directories.output / entry["subfolder"] / entry["filename"]
    saved.rename(files.directories.input / "a.latent")
    assert torch.equal(load_latent(context, latent="a.latent")["samples"], samples)


def test_a_file_that_is_no_latent_is_named(context: JobNodeContext, files: Files) -> None:
    (files.directories.input / "a.latent").write_bytes(b"12345678nonsense")
    with pytest.raises(NodeInputError, match=r"a\.latent is not a safetensors file"):
        load_latent(context, latent="a.latent")


def test_a_text_is_saved_as_it_is(context: JobNodeContext, files: Files) -> None:
    result = save_text(context, text="häuser\n", filename_prefix="t", format="md")
    assert result.ui is not None
    (path,) = list(Path(files.directories.output).glob("*.md"))
    assert path.read_text(encoding="utf-8") == "häuser\n"
