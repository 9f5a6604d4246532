"""Prompts of many kinds and lengths, always the same ones: questions of chats, longer chats, and texts to be
continued.
"""

from __future__ import annotations

from itertools import islice

_SUBJECTS = (
    "the sea", "bees", "a bicycle", "photosynthesis", "bread", "the moon", "a chess opening", "volcanoes",
    "a violin", "the printing press", "friendship", "prime numbers", "winter in the mountains",
    "a coral reef", "the railway", "honest work", "a thunderstorm", "glass", "migrating birds",
    "the human heart",
)  # fmt: skip
_QUESTIONS = (
    "What is {}?",
    "Explain {} to a child of six years in two sentences.",
    "Write a short poem about {}.",
    "List five facts about {}, each with a reason why it matters.",
    "I have to give a talk about {} tomorrow, in front of people who know little about it and who would"
    " rather be outside. Suggest an opening, three main points and a closing line, and say how long each"
    " should take.",
)
_CONTINUATIONS = (
    "The history of {} begins",
    "def describe():\n    # prints a line about {}\n    print(",
    "Once upon a time there was a miller who cared for nothing but {}. Every morning, before the wheel turned"
    " and the first cart came up the hill, he would sit by the window and think. One day",
    "Question: Is it true that {} can be understood by anyone?\nAnswer:",
)
_CHAT = "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"


def make_prompts(count: int) -> list[str]:
    """At most 200, each kind with each subject in turn."""
    kinds = (*map(_chat, _QUESTIONS), *_CONTINUATIONS, _second_turn())
    made = list(islice((kind.format(subject) for subject in _SUBJECTS for kind in kinds), count))
    assert len(made) == count, f"there are {len(made)} prompts"
    return made


def _chat(question: str) -> str:
    return f"{_CHAT}<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"


def _second_turn() -> str:
    first = _chat("Name something that you like about {}.") + "There is always more to find.<|im_end|>\n"
    return f"{first}<|im_start|>user\nGive an example.<|im_end|>\n<|im_start|>assistant\n"
