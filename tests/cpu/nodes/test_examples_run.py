"""The first example of both runtimes, run as the server runs it, with the embedded models and no fake."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from app.events import Event, NodeText
from app.files import Files
from app.graph.run import run_job
from app.graph.services import Services
from app.graph.validate import ValidGraph, parse_and_validate
from app.queue import Job
from nodes.registry import Registry
from runtime.diffusion.engine import Engine as DiffusionEngine
from runtime.llm.engine import Engine as LanguageEngine

PROMPT = Path(__file__).parents[3] / "examples" / "api" / "llm_to_image.json"


@pytest.mark.timeout(300)  # two copies of a language model are read, beside whatever else the machine does
async def test_a_language_model_writes_the_prompt_of_a_picture(files: Files, published: list[Event]) -> None:
    torch.set_num_threads(1)
    registry = Registry()
    registry.load_builtin()
    language = LanguageEngine(models=files.language_model_paths, device="cpu")
    diffusion = DiffusionEngine(language_models=files.language_model_paths, device="cpu")
    services = Services(registry, files, files, language, diffusion, published.append)
    valid = parse_and_validate(json.loads(PROMPT.read_text()), registry, files)
    assert isinstance(valid, ValidGraph)
    try:
        outcome = await run_job(Job("example", 0, valid), services)
    finally:
        language.close()
        diffusion.close()
    assert outcome.status == "success", outcome.messages
    assert outcome.outputs["5"]["text"] == ["fire engine"]
    assert [event.text.strip() for event in published if isinstance(event, NodeText)][-1] == "fire engine"
    (saved,) = outcome.outputs["12"]["images"]
    pixels = np.asarray(Image.open(files.directories.output / saved["filename"]).convert("RGB")) / 255
    assert pixels.shape == (64, 64, 3)
    red, green, blue = pixels[24:48, 12:52].mean(axis=(0, 1))
    assert red > green + 0.15, "a fire engine is red"
    assert red > blue + 0.15
