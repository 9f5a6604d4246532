"""Prompts a second and latencies of the graph server, beside those of a ComfyUI server where one is given.

Real servers over HTTP and a websocket, with nodes that cost nothing: a no-op one by one and many at once, a
chain of 1,000 nodes, the same chain fully cached, and prompts that mostly wait. The two servers take turns.
Beside the clock, which other work on the machine slows, stands the server's CPU time a prompt.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import time
import uuid
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp

from bench.graph_servers import Server, comfyui, treadle

Prompt = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Figures:
    """`latency_s` is the median from the post to the last message of a prompt."""

    num_prompts: int
    prompts_a_second: float
    latency_s: float


class Refused(Exception):
    """A server did not take a prompt; the text is its reason."""


class Client:
    """Posts prompts and hears on its websocket when each has ended."""

    def __init__(self, session: aiohttp.ClientSession, address: str) -> None:
        self._session = session
        self._address = address
        self._id = uuid.uuid4().hex
        self._ends: dict[str, asyncio.Future[float]] = {}

    async def listen(self) -> None:
        url = f"{self._address}/ws?clientId={self._id}"
        async with self._session.ws_connect(url, max_msg_size=0) as socket:
            async for message in socket:
                if message.type is not aiohttp.WSMsgType.TEXT:
                    continue
                event = message.json()
                if event["type"] == "execution_error":
                    raise SystemExit(f"a prompt of the benchmark failed: {event['data']}")
                if event["type"] == "executing" and event["data"]["node"] is None:
                    self._end(event["data"]["prompt_id"]).set_result(time.perf_counter())

    async def run(self, prompt: Prompt) -> float:
        """Seconds until it ended."""
        prompt_id, began = str(uuid.uuid4()), time.perf_counter()
        end = self._end(prompt_id)
        body = {"prompt": prompt, "prompt_id": prompt_id, "client_id": self._id}
        async with self._session.post(f"{self._address}/prompt", json=body) as answer:
            if answer.status != 200:
                raise Refused(_first_reason(await answer.json()))
        return await end - began

    def _end(self, prompt_id: str) -> asyncio.Future[float]:
        return self._ends.setdefault(prompt_id, asyncio.get_running_loop().create_future())


def _first_reason(answer: Any) -> str:
    for node in answer.get("node_errors", {}).values():
        for error in node["errors"]:
            return str(error["details"])
    return str(answer.get("error"))


_fresh = iter(range(int(time.time()) * 1000, 2**60))


def number(class_type: str, value: Any) -> Prompt:
    return {"class_type": class_type, "inputs": {"value": value}}


def no_op() -> Prompt:
    return {"1": number("BenchEnd", next(_fresh))}


def chain(length: int) -> Prompt:
    prompt = {"1": number("BenchNumber", next(_fresh))}
    prompt |= {str(i): number("BenchNext", [str(i - 1), 0]) for i in range(2, length)}
    return {**prompt, str(length): number("BenchEnd", [str(length - 1), 0])}


def sleeps(count: int) -> Prompt:
    """Each sleeps 100 ms, side by side where a server can."""
    prompt = {}
    for i in range(1, 2 * count, 2):
        prompt[str(i)] = number("BenchSleep", next(_fresh))
        prompt[str(i + 1)] = number("BenchEnd", [str(i), 0])
    return prompt


async def one_by_one(client: Client, prompts: list[Prompt]) -> Figures:
    latencies = [await client.run(prompt) for prompt in prompts]
    return Figures(len(prompts), len(prompts) / sum(latencies), statistics.median(latencies))


async def at_once(client: Client, prompts: list[Prompt]) -> Figures:
    began = time.perf_counter()
    latencies = await asyncio.gather(*(client.run(prompt) for prompt in prompts))
    rate = len(prompts) / (time.perf_counter() - began)
    return Figures(len(prompts), rate, statistics.median(latencies))


def cases(quick: bool) -> dict[str, Callable[[Client], Any]]:
    few, many, lengths = (3, 32, [200]) if quick else (5, 256, [200, 1000])
    found: dict[str, Callable[[Client], Any]] = {
        "no-op, one by one": lambda client: one_by_one(client, [no_op() for _ in range(many)]),
        "no-op, all at once": lambda client: at_once(client, [no_op() for _ in range(many)]),
        "64 x 4 sleeps of 100 ms": lambda client: at_once(client, [sleeps(4) for _ in range(64)]),
    }
    for length in lengths:
        chains = [chain(length) for _ in range(few)]
        found[f"chain of {length}"] = partial(one_by_one, prompts=chains)
        found[f"the last {length}, cached"] = partial(one_by_one, prompts=chains[-1:] * few)
    return found


async def measure(servers: dict[str, Server], quick: bool) -> None:
    async with aiohttp.ClientSession() as session:
        clients = {name: Client(session, server.address) for name, server in servers.items()}
        listening = [asyncio.create_task(client.listen()) for client in clients.values()]
        for client in clients.values():
            await asyncio.sleep(0.5)
            await at_once(client, [no_op() for _ in range(8)])
        print(f"{'':26}{'server':10}{'prompts/s':>10}{'median':>12}{'CPU a prompt':>15}")
        for title, case in cases(quick).items():
            rates = [await _measured(title, name, case(clients[name]), servers[name]) for name in servers]
            if len(rates) == 2 and rates[0] and rates[1]:
                print(f"{'':26}{'':10}{rates[0] / rates[1]:9.2f}x", flush=True)
        for task in listening:
            task.cancel()
        for result in await asyncio.gather(*listening, return_exceptions=True):
            if isinstance(result, BaseException) and not isinstance(result, asyncio.CancelledError):
                raise result


async def _measured(title: str, name: str, running: Awaitable[Figures], server: Server) -> float | None:
    """Prompts a second, or nothing where the server refused one: ComfyUI's validates by recursion."""
    before_s = server.cpu_s()
    try:
        figures = await running
    except Refused as error:
        print(f"{title:26}{name:10}   refused: {error}", flush=True)
        return None
    cpu_ms = (server.cpu_s() - before_s) * 1000 / figures.num_prompts
    rate, latency_ms = figures.prompts_a_second, figures.latency_s * 1000
    print(f"{title:26}{name:10}{rate:10.1f}{latency_ms:9.1f} ms{cpu_ms:12.1f} ms", flush=True)
    return rate


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.graph", description=__doc__)
    parser.add_argument("--comfyui", type=Path, metavar="PATH", help="a ComfyUI checkout to compare with")
    parser.add_argument("--comfyui-python", default=sys.executable, metavar="PYTHON")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    with ExitStack() as servers:
        started = {"treadle": servers.enter_context(treadle())}
        if options.comfyui is not None:
            peer = comfyui(options.comfyui.resolve(), options.comfyui_python)
            started["comfyui"] = servers.enter_context(peer)
        asyncio.run(measure(started, options.quick))


if __name__ == "__main__":
    main()
