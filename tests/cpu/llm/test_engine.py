"""What callers see of the language runtime: texts, events, ends and refusals."""

import asyncio
import gc
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from runtime.llm.api import (
    ChatRequest,
    CompleteRequest,
    EmbedRequest,
    Message,
    SamplingParams,
    Token,
)
from runtime.llm.engine import Engine
from runtime.llm.sequence import Row
from runtime.llm.text import TextStream
from runtime.platform.building import building
from runtime.platform.errors import MissingFile, RuntimeFault, Unsupported
from runtime.platform.handle import Cancelled, CancelledEvent, Done, Handle, Started

Start = Callable[..., Engine]
Greedy = Callable[[Sequence[int], int], list[int]]
PROMPT = "a stitch in time"


def complete(name: str, prompt: str | tuple[int, ...] = PROMPT, **params: object) -> CompleteRequest:
    settings = {"max_tokens": 12, "temperature": 0.0, "ignore_eos": True} | params
    return CompleteRequest(name, "tiny", prompt, SamplingParams(**settings))  # type: ignore[arg-type]


def test_events_stream_the_text_of_the_result(start: Start, tiny: Path) -> None:
    async def listen(engine: Engine) -> None:
        handle = engine.submit(complete("a", max_tokens=40))
        events = [event async for event in handle]
        tokens = [event for event in events if isinstance(event, Token)]
        result = await handle
        assert isinstance(events[0], Started)
        assert isinstance(events[-1], Done)
        assert "".join(token.text for token in tokens) == result.text
        assert tuple(token.token_id for token in tokens) == result.token_ids
        assert result.finish_reason == "length"
        whole = AutoTokenizer.from_pretrained(tiny).decode(result.token_ids, skip_special_tokens=True)
        assert whole.startswith(result.text)
        assert whole[len(result.text) :].strip("�") == "", "only half a character may be held back"

    asyncio.run(listen(start()))


def test_a_chat_goes_through_the_models_own_template(start: Start) -> None:
    engine = start()
    messages = (Message("system", "be brief"), Message("user", "hi"))
    params = SamplingParams(max_tokens=6, temperature=0)
    chat = engine.submit(ChatRequest("a", "tiny", messages, params)).wait(20)
    text = "<system>be brief</s><user>hi</s><assistant>"
    plain = engine.submit(CompleteRequest("b", "tiny", text, params)).wait(20)
    assert chat.token_ids == plain.token_ids
    assert chat.prompt_tokens == plain.prompt_tokens


def test_a_stop_string_ends_and_cuts_the_text(start: Start) -> None:
    engine = start()
    free = engine.submit(complete("free", max_tokens=40)).wait(20)
    stop = free.text[5:8]
    handle = engine.submit(complete("cut", max_tokens=40, stop=("never there", stop)))
    cut = handle.wait(20)
    assert cut.finish_reason == "stop"
    assert cut.text == free.text[: free.text.index(stop)]
    assert len(cut.token_ids) < len(free.token_ids)


def test_stop_tokens_end_a_request_and_are_no_text(start: Start) -> None:
    engine = start()
    free = engine.submit(complete("free", max_tokens=20)).wait(20)
    end = free.token_ids[6]
    cut = engine.submit(complete("cut", max_tokens=20, stop_token_ids=(end,))).wait(20)
    first = free.token_ids.index(end)
    assert cut.token_ids == free.token_ids[: first + 1]
    assert cut.finish_reason == "stop"
    assert free.text.startswith(cut.text)


def test_a_full_context_ends_with_length(start: Start) -> None:
    full = start().submit(complete("a", (5,) * 500, max_tokens=100)).wait(30)
    assert full.finish_reason == "length"
    assert full.prompt_tokens + len(full.token_ids) == 512


def test_hidden_states_equal_the_models_own_whoever_shares_the_batch(start: Start, tiny: Path) -> None:
    engine = start(max_batch_tokens=16)
    prompts = [tuple(range(5, 5 + count)) for count in (40, 7, 33)]
    company = [engine.submit(complete(f"c{n}", max_tokens=20)) for n in range(3)]
    asked = [(prompt, layer) for prompt in prompts for layer in (0, 1, -1)]
    handles = [
        engine.submit(EmbedRequest(str(number), "tiny", prompt, layer))
        for number, (prompt, layer) in enumerate(asked)
    ]
    with building:
        network = AutoModelForCausalLM.from_pretrained(tiny, dtype=torch.float32).eval()
    for (prompt, layer), handle in zip(asked, handles):
        got = handle.wait(30)
        with torch.no_grad():
            want = network(torch.tensor([prompt]), output_hidden_states=True).hidden_states[layer][0]
        assert got.token_ids == prompt
        torch.testing.assert_close(got.hidden, want, atol=1e-4, rtol=1e-4)
    for each in company:
        each.wait(30)


def test_cancelled_requests_end_and_hold_back_nobody(start: Start, greedy: Greedy) -> None:
    engine = start(max_rows=2)
    endless = [engine.submit(complete(str(number), max_tokens=480)) for number in range(4)]
    other = engine.submit(complete("other", (9, 8, 7), max_tokens=5))
    for handle in endless:
        handle.cancel()
    for handle in endless:
        with pytest.raises(Cancelled):
            handle.wait(20)
    assert list(other.wait(20).token_ids) == greedy((9, 8, 7), 5)
    engine.cancel("nobody")
    stats = engine.stats()["tiny"]
    assert (stats.running, stats.waiting, stats.pages_used) == (0, 0, 0)


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (CompleteRequest("a", "huge", PROMPT), "no language model called huge; there are: tiny"),
        (complete("a", ""), "prompt is empty"),
        (complete("a", (5,) * 600), "its context holds 511"),
        (complete("a", (5, 258)), "token 258 is not in the vocabulary of 258"),
        (complete("a", temperature=-1.0), "temperature must be"),
        (complete("a", top_p=0.0), "top_p must be"),
        (complete("a", max_tokens=0), "max_tokens must be"),
        (complete("a", stop=("",)), "stop string must not be empty"),
        (ChatRequest("a", "tiny", ()), "at least one message"),
        (EmbedRequest("a", "tiny", PROMPT, layer=3), "supported are -3 to 2"),
    ],
)
def test_what_cannot_be_served_fails_with_a_sentence(
    request_: CompleteRequest, words: str, start: Start
) -> None:
    engine = start()
    with pytest.raises(RuntimeFault, match=words):
        engine.submit(request_).wait(20)
    assert engine.submit(complete("after")).wait(20).text


def test_a_prompt_larger_than_the_memory_for_pages_is_refused(start: Start) -> None:
    with pytest.raises(Unsupported, match="memory for its pages holds 63"):
        start(num_pages=4).submit(complete("a", (5,) * 64)).wait(20)


def test_two_requests_may_not_share_an_id(start: Start) -> None:
    engine = start()
    first = engine.submit(complete("same", max_tokens=100))
    with pytest.raises(RuntimeFault, match="already running"):
        engine.submit(complete("same")).wait(20)
    assert len(first.wait(20).token_ids) == 100


def test_a_fault_in_a_step_ends_its_requests_and_not_the_engine(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = start()
    engine.load("tiny")
    runner = engine._lanes["tiny"].runner
    whole = runner.forward

    def broken(*_: object, **__: object) -> object:
        raise ZeroDivisionError("a broken layer")

    monkeypatch.setattr(runner, "forward", broken)
    with pytest.raises(RuntimeFault, match="a broken layer"):
        engine.submit(complete("a")).wait(20)
    monkeypatch.setattr(runner, "forward", whole)
    assert engine.submit(complete("b")).wait(20).text


def test_broken_books_end_the_models_requests_and_load_it_anew(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = start()
    before = engine.submit(complete("a")).wait(20)
    broken = engine._lanes["tiny"]

    def lose_a_page() -> list[Row]:
        if not broken.is_idle:
            broken.scheduler.pages.allocate(1)
            broken.scheduler.check()
        return []

    monkeypatch.setattr(broken.scheduler, "schedule", lose_a_page)
    with pytest.raises(RuntimeFault, match="language runtime failed"):
        engine.submit(complete("b")).wait(20)
    assert engine.submit(complete("c")).wait(20) == before
    assert engine._lanes["tiny"] is not broken


def test_text_that_cannot_be_decoded_costs_nobody_else_theirs(
    start: Start, greedy: Greedy, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = TextStream.push

    def choking(stream: TextStream, token: int) -> str:
        if stream._stop == ("choke",):
            raise ValueError("not decodable")
        return whole(stream, token)

    monkeypatch.setattr(TextStream, "push", choking)
    engine = start()
    good = engine.submit(complete("good", (4, 5, 6)))
    with pytest.raises(RuntimeFault, match="not decodable"):
        engine.submit(complete("bad", stop=("choke",))).wait(20)
    assert list(good.wait(20).token_ids) == greedy((4, 5, 6), 12)


def test_a_step_that_runs_out_of_memory_is_tried_again_with_fewer_tokens(
    start: Start, greedy: Greedy, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = start(max_batch_tokens=64)
    engine.load("tiny")
    runner = engine._lanes["tiny"].runner
    whole = runner.forward

    def small_only(batch: object, **arguments: object) -> object:
        if batch.input_ids.numel() > 40:  # type: ignore[attr-defined]
            raise torch.OutOfMemoryError("too large")
        return whole(batch, **arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(runner, "forward", small_only)
    prompt = tuple(range(10, 90))
    assert list(engine.submit(complete("a", prompt)).wait(20).token_ids) == greedy(prompt, 12)


def test_rows_of_each_forward_are_reported(start: Start) -> None:
    rows: list[int] = []
    engine = start(on_forward=rows.append)
    handles = [engine.submit(complete(str(number), (number + 5,))) for number in range(6)]
    for handle in handles:
        handle.wait(20)
    stats = engine.stats()["tiny"]
    assert (len(rows), sum(rows)) == (stats.forwards, stats.rows)
    assert stats.generated_tokens == 72
    assert stats.prompt_tokens == 6


def test_unload_drops_idle_models_and_they_come_back(start: Start) -> None:
    engine = start()
    before = engine.submit(complete("a")).wait(20)
    engine.unload()
    assert engine.stats() == {}
    assert engine.submit(complete("b")).wait(20) == before
    busy = engine.submit(complete("c", max_tokens=400))
    while not any(isinstance(event, Started) for event in busy._events):
        time.sleep(0.001)
    engine.unload()
    assert "tiny" in engine.stats()
    assert len(busy.wait(20).token_ids) == 400


def test_close_ends_everything(start: Start) -> None:
    engine = start()
    running = engine.submit(complete("a", max_tokens=480))
    engine.close()
    engine.close()
    assert isinstance(running._events[-1], CancelledEvent)
    with pytest.raises(RuntimeFault, match="closed"):
        engine.submit(complete("b")).wait(5)


def test_models_are_asked_anew_and_a_failed_load_is_tried_again(start: Start, tiny: Path) -> None:
    known: dict[str, Path] = {"tiny": tiny.parent / "nowhere"}
    engine = start(models=lambda: known)
    assert engine.models() == ("tiny",)
    with pytest.raises(MissingFile):
        engine.load("tiny")
    known["tiny"] = tiny
    engine.load("tiny")
    assert engine.submit(complete("a")).wait(20).text


def test_requests_for_models_that_are_not_there_leave_nothing_behind(start: Start) -> None:
    engine = start()

    def ask(number: int) -> None:
        request = CompleteRequest(f"lost-{number}", f"no-{number}", PROMPT)
        with pytest.raises(MissingFile):
            engine.submit(request).wait(20)

    for number in range(20):
        ask(number)
    # The engine's thread knows its last message until it gets another.
    engine.load("tiny")
    gc.collect()
    left = [each for each in gc.get_objects() if type(each) is Handle and each.request_id.startswith("lost-")]
    assert not left


def test_half_precision_is_served_too(start: Start) -> None:
    engine = start(dtype=torch.bfloat16)
    handles = [engine.submit(complete(str(number), (number + 5, 9), max_tokens=8)) for number in range(5)]
    assert [len(handle.wait(20).token_ids) for handle in handles] == [8] * 5
