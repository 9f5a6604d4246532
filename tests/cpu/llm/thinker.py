"""A tiny random model that thinks aloud, where its template opens its thoughts or a token bias makes it."""

from __future__ import annotations

from pathlib import Path

from transformers import PreTrainedTokenizerFast

from tests.cpu.llm.conftest import byte_tokenizer, save_random, tiny_llama

_TEMPLATE = (
    "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}</s>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>"
    "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n"
    "{% elif opens %}<think>\n{% endif %}{% endif %}"
)


def thinking_tokenizer() -> PreTrainedTokenizerFast:
    tokenizer = byte_tokenizer()
    tokenizer.add_tokens(["<think>", "</think>"])
    tokenizer.chat_template = _TEMPLATE
    return tokenizer


def thinker_token(text: str) -> int:
    found: int = thinking_tokenizer().convert_tokens_to_ids(text)
    return found


def save_thinker(folder: Path) -> Path:
    config = tiny_llama()
    config.vocab_size = 260
    save_random(config, folder)
    thinking_tokenizer().save_pretrained(folder)
    return folder
