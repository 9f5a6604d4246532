"""A pack that encodes, samples and decodes by ComfyUI's functions draws what the graph of nodes draws."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cpu.server.process import Server, finished
from tests.cpu.server.test_real_models import prompt as graph_of_nodes

pytestmark = pytest.mark.timeout(240)

PACK = """
import comfy.model_management
import comfy.sample
import comfy.sd
import comfy.utils
import folder_paths
import nodes
import torch

class Paints:
    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {
            "clip": ("CLIP",), "vae": ("VAE",), "image": ("IMAGE",), "text": ("STRING", {}),
            "sampler": (comfy.samplers.KSampler.SAMPLERS,),
        }}
    RETURN_TYPES = ("VAE",)
    FUNCTION = "run"
    OUTPUT_NODE = True

    def run(self, clip, vae, image, text, sampler):
        path = folder_paths.get_full_path_or_raise("checkpoints", "glyph")
        model, _, _, _ = comfy.sd.load_checkpoint_guess_config(path)
        positive = clip.encode_from_tokens_scheduled(clip.tokenize(text))
        cond, pooled = clip.encode_from_tokens(clip.tokenize(""), return_pooled=True)
        (negative,) = nodes.CLIPTextEncode().encode(clip, "")
        assert torch.equal(negative[0][0], cond)
        latent = nodes.EmptyLatentImage().generate(64, 64, 1)[0]
        (drawn,) = nodes.common_ksampler(model, 0, 5, 3.0, sampler, "simple", positive, negative, latent)
        noise = comfy.sample.prepare_noise(drawn["samples"], 0)
        by_hand = comfy.sample.sample(
            model.clone(), noise, 5, 3.0, sampler, "simple", positive, negative, torch.zeros_like(noise)
        )
        again = vae.decode(vae.encode(image))
        assert again.shape == image.shape
        off = [float((vae.decode(samples) - image).abs().max()) for samples in (drawn["samples"], by_hand)]
        return {"ui": {"off": off, "tensors": [int(torch.is_tensor(again))]}, "result": (vae,)}

import comfy.samplers
NODE_CLASS_MAPPINGS = {"Paints": Paints}
"""


def test_the_functions_of_comfyui_draw_what_the_nodes_draw(tmp_path: Path) -> None:
    (tmp_path / "custom_nodes").mkdir()
    (tmp_path / "custom_nodes" / "paints.py").write_text(PACK)
    prompt = graph_of_nodes(0)
    del prompt["7"]
    inputs = {
        "clip": ["1", 1],
        "vae": ["1", 2],
        "image": ["6", 0],
        "text": "tree number 0",
        "sampler": "euler",
    }
    prompt["8"] = {"class_type": "Paints", "inputs": inputs}
    # what the pack hands on is a VAE for this program's own nodes
    prompt["9"] = {"class_type": "VAEEncode", "inputs": {"pixels": ["6", 0], "vae": ["8", 0]}}
    prompt["10"] = {"class_type": "VAEDecode", "inputs": {"samples": ["9", 0], "vae": ["8", 0]}}
    prompt["11"] = {"class_type": "PreviewImage", "inputs": {"images": ["10", 0]}}
    server = Server(tmp_path)
    try:
        item = finished(server, server.post("/prompt", {"prompt": prompt})["prompt_id"])
        assert item["status"]["status_str"] == "success", item["status"]
        assert item["outputs"]["8"]["tensors"] == [1]
        assert max(item["outputs"]["8"]["off"]) < 1e-3
    finally:
        server.stop()
