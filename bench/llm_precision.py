"""Which number formats a CPU may compute a language model in: how fast each is, and how often it answers as
float32 does.

For each format the command prints the tokens a second of 1 and of 16 requests, in turns with the others, and
the share of 200 prompts whose first 32 greedy tokens are those of float32 alone, when 16 run at once. For
that, transformers' own float32 network is shown each prompt with the answer, one at a time, and has to prefer
every token of it. float32 with 16 requests at once is among the formats: it rounds in another order than
alone, which bounds what any other can reach.
"""

from __future__ import annotations

import argparse
import logging
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from bench.llm import CLOCKS, load_network
from bench.llm_formats import FORMATS
from bench.llm_prompts import make_prompts
from runtime.llm import packed_linear
from runtime.llm.api import CompleteRequest, SamplingParams, TokenizeRequest
from runtime.llm.engine import Engine
from runtime.platform.installed import packaged_language_models

Tokens = tuple[int, ...]


def main() -> None:
    options = parse()
    torch.set_num_threads(options.threads)
    logging.disable(logging.WARNING)
    network = load_network(options.model, torch.float32)
    engines = {name: start(options, name) for name in options.formats}
    prompts = tokenize(next(iter(engines.values())), make_prompts(options.prompts))
    print(f"{options.model.name}, {options.threads} threads, {options.clock} time, {options.tokens} tokens")
    print(f"{'format':<22} {'tokens/s':>9} {'at 16':>9}   first {options.tokens} tokens as float32 alone")
    speeds = measure(engines, prompts[:16], options)
    for name, engine in engines.items():
        answers = answer(engine, prompts, options.tokens)
        equal = sum(prefers(network, *pair) for pair in zip(prompts, answers))
        one, many = speeds[name]
        share = equal / len(prompts)
        print(f"{name:<22} {one:>9.1f} {many:>9.1f}   {equal} of {len(prompts)} ({share:.1%})", flush=True)
        engine.close()


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.llm_precision", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument("--formats", nargs="+", choices=FORMATS, default=list(FORMATS), metavar="FORMAT")
    parser.add_argument("--prompts", type=int, default=200)
    parser.add_argument("--tokens", type=int, default=32, help="of each answer")
    parser.add_argument("--rounds", type=int, default=3, help="the median speed of so many is printed")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument(
        "--clock", choices=CLOCKS, default="wall", help="cpu is for machines that others use too"
    )
    parser.add_argument(
        "--model", type=Path, help="a GGUF file or a folder; the packaged SmolLM2 if not given"
    )
    options = parser.parse_args()
    options.model = options.model or packaged_language_models()["smollm2-135m-instruct"]
    return options


def start(options: argparse.Namespace, name: str) -> Engine:
    """An engine whose linear layers are replaced as the format says."""
    chosen = FORMATS[name]
    engine = Engine(
        lambda: {"bench": options.model}, dtype=chosen.dtype, threads=options.threads, max_rows=16
    )
    with patch.object(packed_linear, "pack", chosen.pack):
        engine.load("bench")
    return engine


def measure(
    engines: dict[str, Engine], prompts: Sequence[Tokens], options: argparse.Namespace
) -> dict[str, tuple[float, float]]:
    """Tokens a second of one and of all prompts at once, the first round left out: it warms up."""
    clock = CLOCKS[options.clock]
    seen: dict[str, list[tuple[float, float]]] = {name: [] for name in engines}
    for _ in range(options.rounds + 1):
        for name, engine in engines.items():
            pair = (
                speed(engine, prompts[:1], options.tokens, clock),
                speed(engine, prompts, options.tokens, clock),
            )
            seen[name].append(pair)
    return {
        name: (
            statistics.median(one for one, _ in pairs[1:]),
            statistics.median(many for _, many in pairs[1:]),
        )
        for name, pairs in seen.items()
    }


def speed(engine: Engine, prompts: Sequence[Tokens], tokens: int, clock: Callable[[], float]) -> float:
    began = clock()
    generated = sum(len(each) for each in answer(engine, prompts, tokens))
    return generated / (clock() - began)


def answer(engine: Engine, prompts: Sequence[Tokens], tokens: int) -> list[Tokens]:
    params = SamplingParams(max_tokens=tokens, temperature=0.0, ignore_eos=True)
    handles = [
        engine.submit(CompleteRequest(str(number), "bench", prompt, params))
        for number, prompt in enumerate(prompts)
    ]
    return [handle.wait().token_ids for handle in handles]


def tokenize(engine: Engine, prompts: Sequence[str]) -> list[Tokens]:
    handles = [engine.submit(TokenizeRequest(text, "bench", text)) for text in prompts]
    return [handle.wait().token_ids for handle in handles]


@torch.inference_mode()
def prefers(network: Any, prompt: Tokens, answer: Tokens) -> bool:
    """Whether each token of the answer is what the network would choose after those before it."""
    ids = torch.tensor([prompt + answer])
    logits = network(input_ids=ids, use_cache=False, logits_to_keep=len(answer) + 1).logits[0, :-1]
    return torch.equal(logits.argmax(-1), ids[0, -len(answer) :])


if __name__ == "__main__":
    main()
