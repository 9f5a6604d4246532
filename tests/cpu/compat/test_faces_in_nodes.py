"""Faces that packs' nodes use while they run: core classes, saving, progress, and the stop of a job."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.cpu.compat.conftest import Serve
from tests.cpu.compat.history import shown
from tests.cpu.server.talk import Listener, graph, post

WHITE = ("EmptyImage", {"width": 8, "height": 4, "batch_size": 1, "color": 0xFFFFFF})

USES = """
import comfy.model_management as mm
import comfy.utils
import node_helpers
import nodes
import time
import torch
from comfy_extras.nodes_mask import SolidMask
from nodes import PreviewImage, SaveImage

class Saves(SaveImage):
    @classmethod
    def INPUT_TYPES(cls):
        hidden = {"prompt": "PROMPT", "extra_pnginfo": "EXTRA_PNGINFO"}
        return {"required": {"image": ("IMAGE",)}, "hidden": hidden}
    FUNCTION = "go"
    def go(self, image, prompt=None, extra_pnginfo=None):
        return self.save_images(image, "from/pack", prompt, extra_pnginfo)

class Shows(PreviewImage):
    pass

class Calls:
    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"image": ("IMAGE",)}}
    RETURN_TYPES = ()
    FUNCTION = "run"
    OUTPUT_NODE = True
    def run(self, image):
        (large,) = nodes.ImageScale().upscale(image, "bilinear", 16, 16, "disabled")
        named = nodes.NODE_CLASS_MAPPINGS["ImageInvert"]()
        (dark,) = getattr(named, named.FUNCTION)(image=large)
        mask = SolidMask.execute(value=0.5, width=2, height=3).result[0]
        both = node_helpers.conditioning_set_values([[image, {"a": [1]}]], {"a": [2], "b": 3}, append=True)
        assert both[0][1] == {"a": [1, 2], "b": 3}, both
        assert mm.get_torch_device().type == "cpu" and mm.is_device_cpu(mm.intermediate_device())
        bar = comfy.utils.ProgressBar(4)
        for _ in range(4):
            bar.update(1)
        return {"ui": {"size": list(dark.shape), "sum": [float(dark.sum())], "mask": list(mask.shape)}}

class Waits:
    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {}}
    RETURN_TYPES = ()
    FUNCTION = "run"
    OUTPUT_NODE = True
    def run(self):
        try:
            for _ in range(1000):
                mm.throw_exception_if_processing_interrupted()
                time.sleep(0.01)
        except Exception:
            pass
        return {"ui": {"ended": [1]}}

NODE_CLASS_MAPPINGS = {"Saves": Saves, "Shows": Shows, "Calls": Calls, "Waits": Waits}
"""


async def test_subclasses_of_the_saving_nodes_write_where_they_should(serve: Serve, tmp_path: Path) -> None:
    client = await serve({"uses.py": USES})
    _, answer = await post(
        client, graph(WHITE, ("Saves", {"image": ["1", 0]}), ("Shows", {"images": ["1", 0]}))
    )
    row = await shown(client, answer["prompt_id"])
    assert row["status"]["status_str"] == "success", row["status"]
    (saved,) = row["outputs"]["2"]["images"]
    assert saved == {"filename": "pack_00001_.png", "subfolder": "from", "type": "output"}
    assert (tmp_path / "output" / "from" / "pack_00001_.png").read_bytes()[:4] == b"\x89PNG"
    (previewed,) = row["outputs"]["3"]["images"]
    assert previewed["type"] == "temp"
    assert (tmp_path / "temp" / previewed["filename"]).is_file()


async def test_core_classes_can_be_called_and_progress_reaches_the_client(serve: Serve) -> None:
    client = await serve({"uses.py": USES})
    mine = Listener(await client.ws_connect("/ws", params={"clientId": "me"}))
    _, answer = await post(client, graph(WHITE, ("Calls", {"image": ["1", 0]})), client_id="me")
    messages = await mine.until_end(answer["prompt_id"])
    row = await shown(client, answer["prompt_id"])
    assert row["status"]["status_str"] == "success", row["status"]
    assert row["outputs"]["2"] == {"size": [1, 16, 16, 3], "sum": [0.0], "mask": [1, 3, 2]}
    progress = [data for kind, data in messages if kind == "progress" and data["node"] == "2"]
    assert (progress[-1]["value"], progress[-1]["max"]) == (4, 4)


async def test_a_plain_loop_that_asks_for_the_stop_ends_with_its_job(serve: Serve) -> None:
    client = await serve({"uses.py": USES})
    _, answer = await post(client, graph(("Waits", {})))
    await asyncio.sleep(0.3)
    assert (await client.post("/interrupt")).status == 200
    async with asyncio.timeout(3):
        row = await shown(client, answer["prompt_id"])
    assert [kind for kind, _ in row["status"]["messages"]][-1] == "execution_interrupted"
    assert row["outputs"] == {}
