"""What a chat's prompt may be told beyond its messages, thoughts before the answer, and scores of prompts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from runtime.llm.api import ChatRequest, CompleteRequest, Completion, Grammar, Message, SamplingParams, Token
from runtime.llm.engine import Engine
from runtime.llm.text import Codec
from runtime.platform.building import building
from runtime.platform.errors import Unsupported
from tests.cpu.llm.conftest import byte_tokenizer
from tests.cpu.llm.thinker import save_thinker, thinker_token, thinking_tokenizer

HELLO = (Message("user", "hello"),)


@pytest.fixture(scope="module")
def thinker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    folder = save_thinker(tmp_path_factory.mktemp("thinker") / "thinker")
    made = Engine(lambda: {"thinker": folder}, num_pages=64, threads=1, dtype=torch.float32)
    yield made
    made.close()


def ask(engine: Engine, **more: Any) -> Completion:
    return engine.submit(ChatRequest("one", "thinker", HELLO, **more)).wait(60)


def text_of(codec: Codec, request: ChatRequest) -> str:
    text: str = codec.tokenizer.decode(codec.prompt_ids(request))
    return text


def test_a_template_hears_its_arguments_and_none_that_are_decided_elsewhere() -> None:
    codec = Codec(thinking_tokenizer(), "t")
    plain = ChatRequest("1", "t", HELLO)
    assert text_of(codec, plain) == "<user>hello</s><assistant>"
    quiet = ChatRequest("1", "t", HELLO, template_arguments={"enable_thinking": False})
    assert text_of(codec, quiet).endswith("<assistant><think>\n\n</think>\n\n")
    for name in ("messages", "add_generation_prompt", "tokenize", "chat_template", "sanitize_control_tokens"):
        with pytest.raises(Unsupported, match=name):
            codec.prompt_ids(ChatRequest("1", "t", HELLO, template_arguments={name: 1}))


def test_the_last_message_is_continued_or_nothing_is_opened() -> None:
    codec = Codec(byte_tokenizer(), "t")
    begun = (*HELLO, Message("assistant", "Dear "))
    assert text_of(codec, ChatRequest("1", "t", begun, continues_last=True)) == (
        "<user>hello</s><assistant>Dear "
    )
    assert text_of(codec, ChatRequest("1", "t", HELLO, opens_answer=False)) == "<user>hello</s>"
    with pytest.raises(Unsupported, match="last message of the assistant"):
        codec.prompt_ids(ChatRequest("1", "t", HELLO, continues_last=True))


def test_thoughts_are_told_apart_from_the_answer_which_alone_follows_the_grammar(thinker: Engine) -> None:
    close = thinker_token("</think>")
    params = SamplingParams(
        max_tokens=60, seed=3, grammar=Grammar("regex", "[a-c]{5}"), logit_bias=((close, 6.0),)
    )
    request = ChatRequest(
        "one", "thinker", HELLO, params, template_arguments={"opens": True}, separates_reasoning=True
    )
    handle = thinker.submit(request)
    answer: Completion = handle.wait(60)  # type: ignore[assignment]
    assert close in answer.token_ids
    assert len(answer.text) == 5
    assert set(answer.text) <= set("abc")
    assert answer.reasoning
    assert "think>" not in answer.reasoning + answer.text
    tokens = [event for event in handle._events if isinstance(event, Token)]
    assert "".join(token.reasoning for token in tokens) == answer.reasoning
    assert "".join(token.text for token in tokens) == answer.text


def test_a_model_that_may_think_writes_the_opening_itself_or_follows_the_grammar(thinker: Engine) -> None:
    opening, close = thinker_token("<think>"), thinker_token("</think>")
    seen = set()
    for seed in range(6):
        bias = ((opening, 4.0), (close, 8.0))
        params = SamplingParams(
            max_tokens=60, seed=seed, grammar=Grammar("regex", "[a-c]{5}"), logit_bias=bias, temperature=2.0
        )
        answer = ask(thinker, params=params, separates_reasoning=True)
        seen.add(answer.token_ids[0] == opening)
        assert len(answer.text) == 5, answer
    assert seen == {True, False}


def test_thoughts_stay_in_the_text_where_nobody_parts_them(thinker: Engine) -> None:
    params = SamplingParams(max_tokens=20, seed=3, logit_bias=((thinker_token("</think>"), 6.0),))
    answer = ask(thinker, params=params, template_arguments={"opens": True})
    assert "</think>" in answer.text
    assert answer.reasoning == ""


@pytest.mark.parametrize("chunk", [7, 256])
def test_a_prompt_is_scored_as_the_model_itself_does(
    start: Callable[..., Engine], tiny: Path, chunk: int
) -> None:
    prompt = tuple(range(20, 60))
    engine = start(max_batch_tokens=chunk, max_rows=4)
    params = SamplingParams(max_tokens=3, temperature=0.0, prompt_logprobs=2)
    engine.submit(CompleteRequest("warm", "tiny", prompt, SamplingParams(max_tokens=2))).wait(60)
    answer: Completion = engine.submit(CompleteRequest("a", "tiny", prompt, params)).wait(60)  # type: ignore[assignment]
    expected = scored(tiny, prompt)
    assert answer.cached_tokens == 0
    assert answer.prompt_ids == prompt
    first, *rest = answer.prompt_logprobs
    assert first is None
    assert [each.chosen.token_id for each in rest if each] == list(prompt[1:])
    found = torch.tensor([each.chosen.logprob for each in rest if each])
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=0)
    assert all(each is not None and len(each.top) == 2 for each in rest)


def scored(tiny: Path, prompt: Sequence[int]) -> torch.Tensor:
    with building:
        network = AutoModelForCausalLM.from_pretrained(tiny, dtype=torch.float32).eval()
    ids = torch.tensor([list(prompt)])
    with torch.inference_mode():
        logprobs = network(ids).logits[0].log_softmax(-1)
    return logprobs[:-1].gather(1, ids[0, 1:, None])[:, 0]


def test_a_stop_string_is_kept_and_named_where_that_is_asked(start: Callable[..., Engine]) -> None:
    engine = start()

    def run(id: str, **more: Any) -> Completion:
        params = SamplingParams(max_tokens=12, temperature=0.0, **more)
        answer: Completion = engine.submit(CompleteRequest(id, "tiny", "once", params)).wait(60)  # type: ignore[assignment]
        return answer

    whole = run("whole").text
    stop = whole[4]
    cut, kept = run("cut", stop=(stop,)), run("kept", stop=(stop,), keeps_stop=True)
    assert cut.text == whole[: whole.index(stop)]
    assert kept.text == cut.text + stop
    assert cut.matched_stop == kept.matched_stop == stop
