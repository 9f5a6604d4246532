"""Conversations about pictures as token ids: one or two turns, in the language model's own chat form.

A picture is a run of placeholder ids in the user's text, mostly before the question.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from bench.train_vlm.answers import Subject, draw_exchange
from bench.train_vlm.network import NUM_IMAGE_TOKENS, PLACEHOLDER, Language

SYSTEMS = (
    "You are a helpful AI assistant named SmolLM, trained by Hugging Face",
    "You are a helpful AI assistant named SmolLM, trained by Hugging Face",
    "You are a helpful assistant.",
    "You answer questions about pictures.",
    "Answer briefly.",
)
IGNORED = -100  # the label of what is not the model's to say
SECOND_TURN, NEW_PICTURE = 0.3, 0.6
TEXT_FIRST = 0.1


@dataclass(frozen=True, slots=True)
class Turn:
    picture: bool  # whether the user shows one
    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class Dialogues:
    """`ids` and `labels` are [B, T], padded at the end; `labels` are the ids that the model should say."""

    prefix: list[int]  # the same for all
    ids: Tensor
    labels: Tensor


def draw_dialogues(
    shown: Sequence[Sequence[Subject]], is_new: Sequence[bool], language: Language, rng: random.Random
) -> Dialogues:
    """One dialogue for each list of subjects, with as many turns; turn i shows a picture if `is_new[i]`."""
    prefix = chat_prefix(language, rng.choice(SYSTEMS))
    rows = []
    for subjects in shown:
        exchanges = [draw_exchange(subject, rng) for subject in subjects]
        turns = [Turn(new, *exchange) for new, exchange in zip(is_new, exchanges, strict=True)]
        rows.append(encode(turns, language, rng))
    longest = max(len(ids) for ids, _ in rows)
    end = language.tokenizer.eos_token_id
    ids = [ids + [end] * (longest - len(ids)) for ids, _ in rows]
    labels = [labels + [IGNORED] * (longest - len(labels)) for _, labels in rows]
    return Dialogues(prefix, torch.tensor(ids), torch.tensor(labels))


def chat_prefix(language: Language, system: str) -> list[int]:
    return language.tokens(f"<|im_start|>system\n{system}<|im_end|>\n")


def encode(turns: Sequence[Turn], language: Language, rng: random.Random) -> tuple[list[int], list[int]]:
    ids: list[int] = []
    labels: list[int] = []
    for turn in turns:
        asked = language.tokens(
            f"<|im_start|>user\n{_question(turn, rng)}<|im_end|>\n<|im_start|>assistant\n"
        )
        answered = language.tokens(f"{turn.answer}<|im_end|>")
        ids += asked + answered + language.tokens("\n")
        labels += [IGNORED] * len(asked) + answered + [IGNORED]
    return ids, labels


def _question(turn: Turn, rng: random.Random) -> str:
    if not turn.picture:
        return turn.question
    image = PLACEHOLDER * NUM_IMAGE_TOKENS
    if rng.random() < TEXT_FIRST:
        return f"{turn.question}{rng.choice((' ', chr(10), ''))}{image}"
    return f"{image}{rng.choice(('', chr(10)))}{turn.question}"
