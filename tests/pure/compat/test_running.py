"""Packs' nodes in graphs: links, blockers, expansion, coroutines, and code that would take others down."""

from __future__ import annotations

import asyncio
import time

import pytest

from app.events import ExecutionError, NodeProgress
from app.graph.run import run_job
from tests.fakes import World, box
from tests.pure.compat.conftest import Load

NODE = """
class {name}:
    @classmethod
    def INPUT_TYPES(cls):
        return {{"required": {{"value": ("*",)}}, "optional": {{"other": ("*",)}}}}
    RETURN_TYPES = ("INT",)
    FUNCTION = "run"
    CATEGORY = "test"
    {body}
NODE_CLASS_MAPPINGS = {{"{name}": {name}}}
"""


def pack(name: str, body: str, before: str = "") -> str:
    return before + NODE.format(name=name, body=body.replace("\n", "\n    "))


async def shown(here: World, *nodes: object) -> object:
    """What Show says of the last node."""
    prompt = {str(i): node for i, node in enumerate(nodes, start=1)}
    prompt["show"] = box("Show", value=[str(len(nodes)), 0])
    outcome = await run_job(here.job(prompt), here.services)
    assert outcome.status == "success", outcome.messages[-1]
    return outcome.outputs["show"]["value"]


def failure(here: World) -> ExecutionError:
    return next(event for event in here.events if isinstance(event, ExecutionError))


async def test_links_that_a_class_does_not_declare_reach_its_keywords_and_literals_do_not(load: Load) -> None:
    body = "def run(self, value, **more):\n    return (sum(more.values()) + value,)"
    here = load({"adds.py": pack("Adds", body)})
    number, adds = box("Number", value=4), box("Adds", value=1, extra=["1", 0], dropped=100)
    assert await shown(here, number, adds) == [5]


async def test_a_hidden_input_of_no_known_kind_is_an_input_for_programs(load: Load) -> None:
    body = (
        "@classmethod\ndef INPUT_TYPES(cls):\n"
        "    return {'required': {}, 'hidden': {'start': ('*',), 'me': 'UNIQUE_ID'}}\n"
        "def run(self, me, start=7):\n    return (f'{me}:{start}',)"
    )
    here = load({"starts.py": pack("Starts", body)})
    assert await shown(here, box("Starts")) == ["1:7"]
    assert await shown(here, box("Number", value=3), box("Starts", start=["1", 0])) == ["2:3"]


async def test_an_expansion_by_graph_builder_runs_and_its_ids_tell_the_calls_apart(load: Load) -> None:
    before = "from comfy_execution.graph_utils import GraphBuilder, is_link\n"
    body = (
        "def run(self, value):\n"
        "    graph = GraphBuilder()\n"
        "    one = graph.node('Number', value=value)\n"
        "    two = graph.node('Add', a=one.out(0), b=one.out(0))\n"
        "    assert is_link(two.out(0)) and two.id.count('.') == 3, two.id\n"
        "    return {'result': (two.out(0),), 'expand': graph.finalize()}"
    )
    here = load({"doubles.py": pack("Doubles", body, before)})
    prompt = {
        "1": box("Spread", count=3), "2": box("Doubles", value=["1", 0]), "3": box("Show", value=["2", 0]),
    }  # fmt: skip
    outcome = await run_job(here.job(prompt), here.services)
    assert outcome.status == "success", outcome.messages[-1]
    values = [event.ui["value"][0] for event in here.events if getattr(event, "ui", None)]
    assert values == [0]
    assert outcome.outputs["3"]["value"] == [0, 2, 4]


async def test_a_blocker_with_words_is_told_and_a_silent_one_is_not(load: Load) -> None:
    before = "from comfy_execution.graph import ExecutionBlocker\n"
    body = "def run(self, value):\n    return (ExecutionBlocker(value or None),)"
    here = load({"blocks.py": pack("Blocks", body, before)})
    prompt = {"1": box("Blocks", value="not today"), "2": box("Show", value=["1", 0])}
    assert (await run_job(here.job(prompt), here.services)).status == "success"
    assert "not today" in failure(here).exception_message
    here.events.clear()
    prompt["1"]["inputs"]["value"] = ""
    assert (await run_job(here.job(prompt), here.services)).outputs == {}
    assert not [event for event in here.events if isinstance(event, ExecutionError)]


async def test_the_progress_of_a_coroutine_belongs_to_its_own_node(load: Load) -> None:
    before = "from comfy_api.latest import ComfyAPI\n"
    body = (
        "async def run(self, value):\n"
        "    await ComfyAPI().execution.set_progress(value, 10)\n"
        "    return (value,)"
    )
    here = load({"tells.py": pack("Tells", body, before)})
    assert await shown(here, box("Tells", value=1), box("Tells", value=["1", 0])) == [1]
    told = [(event.node.node_id, event.value) for event in here.events if isinstance(event, NodeProgress)]
    assert told == [("1", 1), ("2", 1)]


@pytest.mark.parametrize(
    "body",
    [
        "def run(self, value):\n    raise SystemExit(1)",
        "async def run(self, value):\n    raise SystemExit(1)",
        "async def run(self, value):\n    raise KeyboardInterrupt",
        "def run(self, value):\n    class Odd(BaseException): pass\n    raise Odd('odd')",
    ],
)
async def test_a_node_that_raises_anything_ends_its_job_with_its_traceback(load: Load, body: str) -> None:
    here = load({"leaves.py": pack("Leaves", body)})
    prompt = {"1": box("Leaves", value=1), "2": box("Show", value=["1", 0])}
    assert (await run_job(here.job(prompt), here.services)).status == "error"
    assert "leaves.py" in "".join(failure(here).traceback)
    # and the pack's loop and threads still serve
    assert (await run_job(here.job(prompt), here.services)).status == "error"


async def test_a_coroutine_that_blocks_holds_up_neither_the_server_nor_other_packs(load: Load) -> None:
    blocks = "async def run(self, value):\n    import time\n    time.sleep(0.5)\n    return (1,)"
    quick = "async def run(self, value):\n    return (2,)"
    here = load({"slow.py": pack("Slow", blocks), "quick.py": pack("Quick", quick)})
    prompt = {"1": box("Slow", value=1), "2": box("Show", value=["1", 0])}
    began = time.monotonic()
    slow = asyncio.create_task(run_job(here.job(prompt), here.services))
    await asyncio.sleep(0.05)
    assert await shown(here, box("Quick", value=1)) == [2]
    assert time.monotonic() - began < 0.45, "the quick one waited for the slow one"
    assert (await slow).outputs["2"]["value"] == [1]


async def test_what_a_pack_writes_into_its_lists_and_dicts_is_seen_by_nobody_else(load: Load) -> None:
    makes = "def run(self, value):\n    return ({'items': [1, 2]},)"
    spoils = "def run(self, value):\n    value['items'].append(3)\n    return (len(value['items']),)"
    counts = "def run(self, value, **after):\n    return (len(value['items']),)"
    files = {"makes.py": pack("Makes", makes), "spoils.py": pack("Spoils", spoils)}
    here = load({**files, "counts.py": pack("Counts", counts)})
    prompt = {
        "1": box("Makes", value=0),
        "2": box("Spoils", value=["1", 0]),
        "3": box("Counts", value=["1", 0], after=["2", 0]),
        "4": box("Show", value=["3", 0]),
        "5": box("Show", value=["2", 0]),
    }
    outcome = await run_job(here.job(prompt), here.services)
    assert (outcome.outputs["4"]["value"], outcome.outputs["5"]["value"]) == ([2], [3])


async def test_wildcards_that_equal_everything_take_links_and_literals_of_any_kind(load: Load) -> None:
    before = (
        "class Equal(str):\n"
        "    def __eq__(self, other): return True\n"
        "    def __ne__(self, other): return False\n"
        "class Never(str):\n"
        "    def __ne__(self, other): return False\n"
    )
    body = (
        "@classmethod\ndef INPUT_TYPES(cls):\n"
        "    return {'required': {'a': (Equal('*'),), 'b': (Never('ANY'), {'default': 1})}}\n"
        "RETURN_TYPES = (Equal('*'),)\n"
        "def run(self, a, b):\n    return (f'{a!r} {b!r}',)"
    )
    here = load({"any.py": pack("Any", body, before)})
    assert await shown(here, box("Any", a="zz", b=True)) == ["'zz' True"]
    assert await shown(here, box("Number", value=3), box("Any", a=["1", 0], b={"x": 1})) == ["3 {'x': 1}"]


SPINS = "def run(self, value):\n    while value < 100:\n        value = 1 - value\n    return (value,)"


async def test_a_function_that_never_ends_ends_with_its_job_and_its_pack_goes_on(
    load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.graph.turns.GRACE_S", 0.2)
    here = load({"spins.py": pack("Spins", SPINS)})
    job = here.job({"1": box("Spins", value=1), "2": box("Show", value=["1", 0])})
    running = asyncio.create_task(run_job(job, here.services))
    await asyncio.sleep(0.1)
    job.stop.set()
    async with asyncio.timeout(2):
        assert (await running).status == "interrupted"
    assert await shown(here, box("Spins", value=100)) == [100]


async def test_a_function_that_cannot_be_stopped_is_left_behind_with_its_packs_turn(
    load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.graph.turns.GRACE_S", 0.1)
    sleeps = "def run(self, value):\n    import time\n    time.sleep(value)\n    return (value,)"
    here = load({"sleeps.py": pack("Sleeps", sleeps)})
    job = here.job({"1": box("Sleeps", value=0.8), "2": box("Show", value=["1", 0])})
    began = time.monotonic()
    running = asyncio.create_task(run_job(job, here.services))
    await asyncio.sleep(0.1)
    job.stop.set()
    assert (await running).status == "interrupted"
    assert time.monotonic() - began < 0.6
    assert await shown(here, box("Sleeps", value=0)) == [0]
    assert time.monotonic() - began > 0.7, "two functions of the pack ran at once"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_what_a_thread_of_a_pack_raises_touches_nobody(load: Load) -> None:
    body = (
        "def run(self, value):\n"
        "    import threading\n"
        "    def burst():\n"
        "        raise ValueError(9)\n"
        "    thread = threading.Thread(target=burst)\n"
        "    thread.start()\n"
        "    thread.join()\n"
        "    return (value,)"
    )
    assert await shown(load({"bursts.py": pack("Bursts", body)}), box("Bursts", value=4)) == [4]
