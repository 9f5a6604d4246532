"""Asks a server at random for some minutes and looks for what does not come back: pages, handles, answers.

Twenty callers ask a real server on few pages for chats, completions, pictures, embeddings, structured answers
and tool calls, hang up in the middle of some, and ask wrong questions. Each minute's figures are printed; at
the end the books must be in order, and the exit status says whether they are. A quick random model answers
most questions, the embedded vision-language model the rest.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import logging
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import psutil
import torch
from aiohttp import web
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

from app.config import Config, Directories
from app.files import Files
from app.metrics import Metrics
from app.server import build_app
from app.startup import Studio
from bench.soak_requests import Question, draw
from bench.vlm_glyph import MODEL
from nodes.registry import Registry
from runtime.diffusion.engine import Engine as DiffusionEngine
from runtime.llm.engine import Engine
from runtime.platform.handle import Handle
from runtime.platform.installed import packaged_language_models

CALLERS = 20
NUM_PAGES = 72
STUCK_S = 240.0
GROWTH_AT_MOST = 0.10
QUICK = "quick"


class Soak:
    def __init__(self, engine: Engine, url: str, seed: int) -> None:
        self.engine = engine
        self.url = url
        self.seed = seed
        self.asked: Counter[str] = Counter()
        self.open: dict[int, tuple[float, Question]] = {}
        self.faults: list[str] = []
        self.memory: list[float] = []

    async def call(self, number: int, until: float) -> None:
        choose = random.Random(1000 * self.seed + number)
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as session:
            while time.monotonic() < until:
                question = draw(choose, (QUICK, MODEL.name))
                self.open[number] = (time.monotonic(), question)
                await self._ask(session, question)
                del self.open[number]
                self.asked[question.kind] += 1
                await asyncio.sleep(choose.choice([0.0, 0.0, 0.2]))

    async def _ask(self, session: aiohttp.ClientSession, question: Question) -> None:
        sent = {"data": question.body} if isinstance(question.body, bytes) else {"json": question.body}
        try:
            async with asyncio.timeout(question.leaves_after):
                async with session.post(self.url + question.path, **sent) as answer:
                    text = await answer.text()
        except TimeoutError:
            return
        except aiohttp.ClientError as error:
            self._note(question, f"{type(error).__name__}: {error}")
            return
        if answer.status not in question.statuses or (answer.status == 200 and '"error": {' in text):
            self._note(question, f"{answer.status} {text[:300]}")

    def _note(self, question: Question, what: str) -> None:
        self.faults.append(f"{question.kind} {str(question.body)[:300]}: {what}")
        print("FAULT", self.faults[-1], flush=True)

    async def watch(self, began: float) -> None:
        while True:
            for _ in range(6):
                await asyncio.sleep(10)
                self.memory.append(psutil.Process().memory_info().rss / 1e6)
            print(self.report((time.monotonic() - began) / 60), flush=True)

    def report(self, minutes: float) -> str:
        now = time.monotonic()
        oldest = max((now - since for since, _ in self.open.values()), default=0.0)
        pages = "; ".join(
            f"{name} {each.pages_free}/{each.pages_cached}/{each.pages_used} pages free/cached/used,"
            f" {each.running} run, {each.waiting} wait, {each.preemptions} gave way"
            for name, each in self.engine.stats().items()
        )
        asked = sum(self.asked.values())
        return (
            f"{minutes:5.1f} min: {self.memory[-1]:.0f} MB, {live_handles()} handles, {asked} asked,"
            f" {len(self.faults)} faults, oldest open {oldest:.0f} s; {pages}"
        )

    async def settle(self) -> list[str]:
        """What is wrong once everybody has gone."""
        wrong = [f"{len(self.faults)} wrong answers, the first: {self.faults[0]}"] if self.faults else []
        for _ in range(100):
            if all(each.pages_used == 0 for each in self.engine.stats().values()):
                break
            await asyncio.sleep(0.1)
        for name, lane in self.engine._lanes.items():
            stats = lane.stats()
            if stats.pages_used or stats.running or stats.waiting:
                wrong.append(f"{name} still holds something: {stats}")
            lane.scheduler.check()  # type: ignore[union-attr]
        # a message that says nothing, since the engine's thread remembers the last one until the next comes
        await asyncio.to_thread(self.engine.load, QUICK)
        if left := live_handles():
            wrong.append(f"{left} handles are left")
        third = len(self.memory) // 3
        early, late = (max(part) for part in (self.memory[third : 2 * third], self.memory[2 * third :]))
        growth = f"{late / early - 1:+.1%}"
        print(f"memory: at most {early:.0f} MB in the second third, {late:.0f} MB in the last: {growth}")
        if late > early * (1 + GROWTH_AT_MOST):
            wrong.append("memory grew")
        return wrong


def live_handles() -> int:
    gc.collect()
    return sum(type(each) is Handle for each in gc.get_objects())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("minutes", type=float, help="at least 1")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    # requests that fail on purpose would fill pages with their tracebacks
    logging.disable(logging.ERROR)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        wrong = asyncio.run(soak(Path(folder), options.minutes, options.seed))
    print(*(f"WRONG {each}" for each in wrong), "soak: " + ("failed" if wrong else "all in order"), sep="\n")
    sys.exit(bool(wrong))


async def soak(folder: Path, minutes: float, seed: int) -> list[str]:
    known = {**packaged_language_models(), MODEL.name: MODEL, QUICK: save_quick(folder / QUICK)}
    engine = Engine(lambda: known, threads=1, num_pages=NUM_PAGES, max_feature_bytes=1 << 20)
    for name in (QUICK, MODEL.name):
        await asyncio.to_thread(engine.load, name)
    async with serving(engine, folder) as url:
        it = Soak(engine, url, seed)
        began = time.monotonic()
        watching = asyncio.create_task(it.watch(began))
        calls = [asyncio.create_task(it.call(number, began + 60 * minutes)) for number in range(CALLERS)]
        _, stuck = await asyncio.wait(calls, timeout=60 * minutes + STUCK_S)
        watching.cancel()
        wrong = [f"stuck: {it.open[calls.index(task)][1]}" for task in stuck]
        for task in stuck:
            task.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        wrong += [
            f"a caller failed: {task.exception()!r}"
            for task in calls
            if task not in stuck and task.exception()
        ]
        wrong += await it.settle()
        print(it.report((time.monotonic() - began) / 60))
        print("asked:", ", ".join(f"{count} {kind}" for kind, count in sorted(it.asked.items())))
    return wrong


@contextlib.asynccontextmanager
async def serving(engine: Engine, folder: Path) -> AsyncIterator[str]:
    diffusion = DiffusionEngine(language_models=dict)

    def studio(config: Config, files: Files, metrics: Metrics) -> Studio:  # noqa: ARG001
        return Studio(Registry(), engine, diffusion)

    app = build_app(Config(directories=Directories.below(folder), custom_nodes=False), studio)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=2)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def save_quick(folder: Path) -> Path:
    """Two random layers under SmolLM2's tokenizer."""
    source = packaged_language_models()["smollm2-135m-instruct"]
    tokenizer = AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name)
    tokenizer.save_pretrained(folder)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
        eos_token_id=tokenizer.eos_token_id,
    )
    torch.manual_seed(0)
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


if __name__ == "__main__":
    main()
