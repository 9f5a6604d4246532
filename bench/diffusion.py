"""Pictures a second of the embedded model: requests merged, against the same requests one after another."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path

import torch

from runtime.diffusion.api import (
    Checkpoint,
    Conditioning,
    DecodeRequest,
    EncodeTextRequest,
    SampleRequest,
)
from runtime.diffusion.engine import Engine
from runtime.platform.installed import packaged_language_models

GLYPH = Path(__file__).parents[1] / "models" / "checkpoints" / "glyph"
SAMPLERS = ("euler", "dpmpp_2m", "euler_ancestral", "heun", "uni_pc", "res_multistep", "lcm", "ddim")
SCHEDULERS = ("simple", "normal", "sgm_uniform", "beta")
GUIDANCE = (3.0, 4.0, 1.0, 2.5)
STEPS = (12, 14, 16)


@dataclass(frozen=True, slots=True)
class Figure:
    """The best of some repeats, which says most about the code and least about the machine's other work."""

    pictures_per_s: float
    cpu_s_per_picture: float
    forwards: int


Way = Callable[[Engine, Checkpoint, Sequence[SampleRequest]], None]


def requests(engine: Engine, checkpoint: Checkpoint, count: int) -> list[SampleRequest]:
    """No two are alike: sampler, spacing, steps, guidance, prompt and seed all differ."""
    assert checkpoint.model is not None, checkpoint
    names = [glyph["name"] for glyph in json.loads((GLYPH / "glyphs.json").read_text())]
    prompts = [encoded(engine, checkpoint, name) for name in islice(cycle(names), 3, 3 + count)]
    nothing = encoded(engine, checkpoint, "")
    return [
        SampleRequest(
            id=f"sample-{place}",
            model=checkpoint.model,
            latent=torch.zeros(1, 8, 16, 16),
            positive=prompt,
            negative=nothing,
            seed=place,
            steps=STEPS[place % len(STEPS)],
            cfg=GUIDANCE[place % len(GUIDANCE)],
            sampler=SAMPLERS[place % len(SAMPLERS)],
            scheduler=SCHEDULERS[place % len(SCHEDULERS)],
            previews=False,
        )
        for place, prompt in enumerate(prompts)
    ]


def encoded(engine: Engine, checkpoint: Checkpoint, text: str) -> Conditioning:
    assert checkpoint.clip is not None, checkpoint
    conditioning: Conditioning = engine.submit(
        EncodeTextRequest(f"prompt-{text}", checkpoint.clip, (text,))
    ).wait()
    return conditioning


def merged(engine: Engine, checkpoint: Checkpoint, wanted: Sequence[SampleRequest]) -> None:
    assert checkpoint.vae is not None, checkpoint
    sampled = [engine.submit(request) for request in wanted]
    decoded = [
        engine.submit(DecodeRequest(f"decode-{place}", checkpoint.vae, handle.wait().latent))
        for place, handle in enumerate(sampled)
    ]
    for handle in decoded:
        handle.wait()


def one_by_one(engine: Engine, checkpoint: Checkpoint, wanted: Sequence[SampleRequest]) -> None:
    for request in wanted:
        merged(engine, checkpoint, [request])


def measured(
    engine: Engine, checkpoint: Checkpoint, wanted: Sequence[SampleRequest], repeats: int
) -> tuple[Figure, Figure]:
    """One by one, then merged; the two take turns, so that a busy machine hurts both alike."""
    runs = [(way, *timed(way, engine, checkpoint, wanted)) for way in (one_by_one, merged) * repeats]
    alone, together = (
        Figure(
            pictures_per_s=len(wanted) / min(run[1] for run in runs if run[0] is way),
            cpu_s_per_picture=min(run[2] for run in runs if run[0] is way) / len(wanted),
            forwards=min(run[3] for run in runs if run[0] is way),
        )
        for way in (one_by_one, merged)
    )
    return alone, together


def timed(
    way: Way, engine: Engine, checkpoint: Checkpoint, wanted: Sequence[SampleRequest]
) -> tuple[float, float, int]:
    """Seconds by the clock, seconds of the processor, forwards."""
    forwards, start, cpu_start = engine.stats().forwards, time.perf_counter(), time.process_time()
    way(engine, checkpoint, wanted)
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
    return seconds, cpu_seconds, engine.stats().forwards - forwards


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer requests, one repeat")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    counts, repeats = ((1, 4), 1) if options.quick else ((1, 4, 8, 16), 3)
    engine = Engine(packaged_language_models, device=options.device)
    checkpoint = engine.inspect_checkpoint(GLYPH)
    everything = requests(engine, checkpoint, max(counts))
    merged(engine, checkpoint, everything[:2])  # the weights load now
    print(f"glyph model, 64x64, {options.device}, {torch.get_num_threads()} thread(s), best of {repeats}")
    heading = f"{'pictures/s':>12} {'cpu s/picture':>14} {'forwards':>9}"
    print(f"{'':>8} | {'one by one':^37} | {'merged':^37} |")
    print(f"{'requests':>8} | {heading} | {heading} | gain, by cpu")
    for count in counts:
        figures = measured(engine, checkpoint, everything[:count], repeats)
        alone, together = figures
        columns = " | ".join(
            f"{figure.pictures_per_s:12.2f} {figure.cpu_s_per_picture:14.3f} {figure.forwards:9d}"
            for figure in figures
        )
        gain = together.pictures_per_s / alone.pictures_per_s
        cpu_gain = alone.cpu_s_per_picture / together.cpu_s_per_picture
        print(f"{count:8d} | {columns} | {gain:.2f}x {cpu_gain:.2f}x", flush=True)
    engine.close()


if __name__ == "__main__":
    main()
