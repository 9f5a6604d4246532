"""What the prefix cache saves when several questions are asked about each picture, and what seeing one costs.

Eight pictures in turn, six questions about each, every answer being part of the next question: by an engine
with its prefix cache and by one without, question by question, over the embedded vision-language model.
Printed are the share of prompt tokens that were found computed and the median time to the first token of
both. Then how long preprocessing and encoding a picture take (prefill_time): at 64x64 for that model, and at
224x224 for eyes of CLIP ViT-B/16's size that have learned nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from transformers import AutoConfig, CLIPVisionModel
from transformers.models.llava.modeling_llava import LlavaMultiModalProjector

from app import decode
from bench.vlm_glyph import MODEL
from runtime.llm import model
from runtime.llm.api import ChatRequest, Image, Message, SamplingParams, Token
from runtime.llm.engine import Engine
from runtime.platform.installed import packaged_language_models

PICTURES = Path(__file__).parents[1] / "examples" / "pictures"
QUESTIONS = (
    "What is this?",
    "What colour is it?",
    "Describe the picture.",
    "Is it alive?",
    "Where would you see it?",
    "Name it in one word.",
)
CLOCKS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.process_time}
ENCODINGS = 12
PATCH, SIDE = 16, 224

Clock = Callable[[], float]


@dataclass(slots=True)
class Asker:
    """One engine, how long its first tokens took by the number of the question, and what it has heard."""

    engine: Engine
    times: list[list[float]] = field(default_factory=lambda: [[] for _ in QUESTIONS])
    history: tuple[Message, ...] = ()

    def ask(self, name: str, turn: int, picture: Image, clock: Clock) -> None:
        content = (picture, QUESTIONS[turn]) if turn == 0 else QUESTIONS[turn]
        messages = (*self.history, Message("user", content))
        params = SamplingParams(max_tokens=8, temperature=0.0)
        request = ChatRequest(f"ask-{time.monotonic_ns()}", name, messages, params)
        taken, answer = asyncio.run(_first_token(self.engine, request, clock))
        self.times[turn].append(taken)
        self.history = (*messages, Message("assistant", answer))


def main() -> None:
    options = parse()
    torch.set_num_threads(options.threads)
    clock = CLOCKS[options.clock]
    pictures = [decode.image(path.read_bytes()) for path in sorted(PICTURES.glob("*.png"))][
        : options.pictures
    ]
    with tempfile.TemporaryDirectory() as temporary:
        known = {**packaged_language_models(), MODEL.name: MODEL}
        known["random-224"] = save_random_eyes(Path(temporary) / "random-224")
        print(*conversations(known, MODEL.name, pictures, options.threads, clock), sep="\n", flush=True)
        for name in (MODEL.name, "random-224"):
            print(encoding(known, name, pictures[0], clock), flush=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.vlm", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--pictures", type=int, default=8, help="about how many of the eight is asked")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument(
        "--clock", choices=CLOCKS, default="wall", help="cpu is for machines that others use too"
    )
    return parser.parse_args()


def conversations(
    known: dict[str, Path], name: str, pictures: list[Image], threads: int, clock: Clock
) -> list[str]:
    askers = [Asker(Engine(lambda: known, threads=threads, prefix_cache=cached)) for cached in (True, False)]
    for asker in askers:
        # what only the first request pays is no part of the comparison
        asker.ask(name, 0, Image(pictures[0].pixels.flip(0)), clock)
        asker.times = [[] for _ in QUESTIONS]
    before = askers[0].engine.stats()[name]
    for picture in pictures:
        for asker in askers:
            asker.history = ()
        for turn in range(len(QUESTIONS)):
            for asker in askers:
                asker.ask(name, turn, picture, clock)
    after, without = (asker.engine.stats()[name] for asker in askers)
    for asker in askers:
        asker.engine.close()
    assert without.cached_tokens == 0, "the engine without a prefix cache found something in it"
    rate = (after.cached_tokens - before.cached_tokens) / (after.prompt_tokens - before.prompt_tokens)
    on, off = (statistics.median(chain.from_iterable(asker.times)) for asker in askers)
    turns = "  ".join(
        f"{1e3 * statistics.median(one):.0f}/{1e3 * statistics.median(other):.0f}"
        for one, other in zip(*(asker.times for asker in askers), strict=True)
    )
    return [
        f"{name}: {len(pictures)} pictures, {len(QUESTIONS)} questions each: hit rate {rate:.2f}",
        f"  time to the first token {1e3 * on:.0f} ms, without the cache {1e3 * off:.0f} ms: {on / off:.0%}",
        f"  by question, with/without: {turns} ms",
    ]


async def _first_token(engine: Engine, request: ChatRequest, clock: Clock) -> tuple[float, str]:
    began, taken = clock(), 0.0
    handle = engine.submit(request)
    async for event in handle:
        if isinstance(event, Token) and not taken:
            taken = clock() - began
    return taken, (await handle).text


def encoding(known: dict[str, Path], name: str, picture: Image, clock: Clock) -> str:
    """Each picture differs, so that nothing that was kept is used."""
    loaded = model.load(known[name], torch.device("cpu"), None, known)
    assert loaded.processor is not None, name
    preparing, encoding = [], []
    for number in range(ENCODINGS + 1):
        began = clock()
        item = loaded.processor.item(Image(picture.pixels.roll(number, 1)))
        prepared = clock()
        loaded.processor.encode(loaded.network, [item])
        preparing.append(prepared - began)
        encoding.append(clock() - prepared)
    height, width = item.inputs["pixel_values"].shape[-2:]
    return (
        f"{name}: prefill_time of a picture at {width}x{height} ({item.num_rows} tokens): median"
        f" {1e3 * statistics.median(encoding[1:]):.0f} ms, slowest {1e3 * max(encoding[1:]):.0f} ms;"
        f" preprocessing {1e3 * statistics.median(preparing[1:]):.0f} ms beside the engine"
    )


def save_random_eyes(folder: Path) -> Path:
    """As the embedded model's folder, with eyes of another size that have learned nothing."""
    folder.mkdir()
    for name in ("chat_template.jinja", "processor_config.json", "preprocessor_config.json"):
        shutil.copy(MODEL / name, folder)
    settings: dict[str, Any] = json.loads((MODEL / "config.json").read_text())
    settings["vision_config"] |= {
        "hidden_size": 768,
        "intermediate_size": 3072,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "image_size": SIDE,
        "patch_size": PATCH,
    }
    settings["image_seq_length"] = (SIDE // PATCH) ** 2
    (folder / "config.json").write_text(json.dumps(settings))
    images = json.loads((MODEL / "preprocessor_config.json").read_text())
    images["size"] = {"height": SIDE, "width": SIDE}
    (folder / "preprocessor_config.json").write_text(json.dumps(images))
    config = AutoConfig.from_pretrained(folder)
    torch.manual_seed(0)
    parts = {
        "vision_tower": CLIPVisionModel(config.vision_config),
        "multi_modal_projector": LlavaMultiModalProjector(config),
    }
    weights = {
        f"model.{part}.{name}": value
        for part, network in parts.items()
        for name, value in network.state_dict().items()
    }
    save_file(weights, folder / "vision.safetensors")
    return folder


if __name__ == "__main__":
    main()
