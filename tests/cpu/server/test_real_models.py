"""The main job with the embedded model: graphs of several clients share the network's forwards."""

import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.cpu.server.process import Server, finished

pytestmark = pytest.mark.timeout(240)

SAMPLERS = [("euler", 5, 3.0), ("dpmpp_2m", 7, 1.0), ("heun", 4, 2.0), ("euler_ancestral", 6, 3.0)]


def prompt(number: int) -> dict[str, Any]:
    sampler, steps, cfg = SAMPLERS[number]
    text = {"class_type": "CLIPTextEncode", "inputs": {"text": f"tree number {number}", "clip": ["1", 1]}}
    nothing = {"class_type": "CLIPTextEncode", "inputs": {"text": "", "clip": ["1", 1]}}
    latent = {"class_type": "EmptyLatentImage", "inputs": {"width": 64, "height": 64, "batch_size": 1}}
    sample = {
        "model": ["1", 0],
        "seed": number,
        "steps": steps,
        "cfg": cfg,
        "sampler_name": sampler,
        "scheduler": "simple",
        "positive": ["2", 0],
        "negative": ["3", 0],
        "latent_image": ["4", 0],
        "denoise": 1.0,
    }
    return {
        "1": {"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": "glyph"}},
        "2": text,
        "3": nothing,
        "4": latent,
        "5": {"class_type": "KSampler", "inputs": sample},
        "6": {"class_type": "VAEDecode", "inputs": {"samples": ["5", 0], "vae": ["1", 2]}},
        "7": {"class_type": "SaveImage", "inputs": {"images": ["6", 0], "filename_prefix": f"p{number}"}},
    }


def picture(server: Server, prompt_id: str) -> np.ndarray:
    item = finished(server, prompt_id)
    assert item["status"]["status_str"] == "success", item["status"]
    (saved,) = item["outputs"]["7"]["images"]
    content = server.get(f"/view?filename={saved['filename']}")
    return np.asarray(Image.open(io.BytesIO(content)), dtype=np.int16)


def figure(server: Server, name: str) -> float:
    found = re.search(rf"^{name} (\S+)$", server.get("/metrics").decode(), re.MULTILINE)
    assert found is not None, name
    return float(found[1])


def test_graphs_that_run_together_share_forwards_and_draw_what_each_draws_alone(tmp_path: Path) -> None:
    server = Server(tmp_path, "--cache-none")
    try:
        ids = [server.post("/prompt", {"prompt": prompt(number)})["prompt_id"] for number in range(4)]
        together = [picture(server, prompt_id) for prompt_id in ids]
        rows = figure(server, "treadle_diffusion_rows_per_forward_sum")
        forwards = figure(server, "treadle_diffusion_forwards_total")
        assert rows / forwards >= 2, f"{rows} rows in {forwards} forwards"
        alone = []
        for number in range(4):
            again = server.post("/prompt", {"prompt": prompt(number)})["prompt_id"]
            alone.append(picture(server, again))
        assert figure(server, "treadle_diffusion_rows_per_forward_sum") == 2 * rows
        for one, other in zip(together, alone):
            assert np.std(one) > 5, "a flat picture"
            # rounding to 8 bits may tip by one
            assert np.abs(one - other).max() <= 1
        assert json.loads(server.get("/queue")) == {"queue_running": [], "queue_pending": []}
    finally:
        assert server.stop() == 0
