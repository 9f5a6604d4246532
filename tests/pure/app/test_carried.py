import io
import json
import struct
import zlib

import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from app.carried import CarriesNothing, carried

PROMPT, WORKFLOW = {"1": {"class_type": "Source", "inputs": {"text": "ü"}}}, {"nodes": [], "version": 0.4}


def animated(**texts: object) -> bytes:
    """As ComfyUI writes it: private chunks behind the first picture."""
    target, info = io.BytesIO(), PngInfo()
    for name, value in texts.items():
        info.add(b"comf", name.encode() + b"\0" + json.dumps(value).encode("latin-1"), after_idat=True)
    frames = [Image.new("RGB", (4, 4), (shade, 0, 0)) for shade in (0, 100, 200)]
    frames[0].save(target, "PNG", save_all=True, append_images=frames[1:], pnginfo=info, duration=100)
    return target.getvalue()


def test_an_animated_png_carries_its_prompt_behind_the_pictures() -> None:
    found = carried(animated(prompt=PROMPT, workflow=WORKFLOW))
    assert (found.prompt, found.workflow) == (PROMPT, WORKFLOW)


def test_an_animated_png_that_is_cut_off_carries_what_is_left() -> None:
    data = animated(prompt=PROMPT, workflow=WORKFLOW)
    rest = data[: data.rindex(b"comf") + 12]
    assert (carried(rest).prompt, carried(rest).workflow) == (PROMPT, None)


def test_a_chunk_that_claims_to_be_huge_ends_the_search() -> None:
    data = animated()
    lying = struct.pack(">I4s", 0xFFFFFFF0, b"junk") + struct.pack(">I", zlib.crc32(b"junk"))
    with pytest.raises(CarriesNothing, match="neither 'prompt' nor 'workflow'"):
        carried(data[:-12] + lying)


def test_other_chunks_of_that_kind_are_no_workflow() -> None:
    with pytest.raises(CarriesNothing):
        carried(animated(other=PROMPT))
