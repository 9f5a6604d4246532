"""The second lesson: the vision half learns what makes the frozen language model give the right answers.

The language model computes in bfloat16; what all dialogues of a batch begin with is computed once for all.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import DynamicCache

from bench.train_vlm.answers import Subject
from bench.train_vlm.dialogue import IGNORED, NEW_PICTURE, SECOND_TURN, Dialogues, draw_dialogues
from bench.train_vlm.imitation import draw_sample
from bench.train_vlm.lesson import Lesson
from bench.train_vlm.network import PLACEHOLDER, Language, Vision
from bench.train_vlm.pictures import Pictures

RATE, WEIGHT_DECAY = 4e-4, 0.01
WARM_UP = 30  # steps
BATCH = 16


class Listener:
    """What the frozen language model makes of embeddings; keeps the states of prefixes that it read."""

    def __init__(self, language: Language) -> None:
        self._language = language
        self._placeholder = language.tokenizer.convert_tokens_to_ids(PLACEHOLDER)
        self._prefixes: dict[tuple[int, ...], list[tuple[Tensor, Tensor]]] = {}

    def answer_logits(self, dialogues: Dialogues, said: Tensor) -> tuple[Tensor, Tensor]:
        """For each token to be said, its logits and its id: [A, V] and [A]. `said` is [P, tokens, D] in the
        order of the placeholders.
        """
        embeddings = self._language.embed(dialogues.ids)
        is_picture = (dialogues.ids == self._placeholder)[..., None]
        embeddings = embeddings.masked_scatter(is_picture, said.to(embeddings.dtype))
        states = self._language.model.model(
            inputs_embeds=embeddings, cache=self._cache(dialogues.prefix, len(embeddings)), use_cache=True
        ).last_hidden_state
        labels = dialogues.labels[:, 1:]
        is_said = labels != IGNORED
        logits: Tensor = self._language.model.lm_head(states[:, :-1][is_said])
        return logits.float(), labels[is_said]

    def _cache(self, prefix: Sequence[int], count: int) -> DynamicCache:
        if tuple(prefix) not in self._prefixes:
            with torch.no_grad():
                read = self._language.model.model(input_ids=torch.tensor([prefix]), use_cache=True).cache
            self._prefixes[tuple(prefix)] = [(layer.keys, layer.values) for layer in read.layers]
        cache = DynamicCache()
        for number, (keys, values) in enumerate(self._prefixes[tuple(prefix)]):
            cache.update(keys.expand(count, -1, -1, -1), values.expand(count, -1, -1, -1), number)
        return cache


def learn_answers(
    vision: Vision,
    language: Language,
    subjects: Sequence[Subject],
    pictures: Pictures,
    checkpoint: Path,
    steps: int,
) -> None:
    listener = Listener(language)
    lesson = Lesson(vision, checkpoint, steps=steps, rate=RATE, warm_up=WARM_UP, weight_decay=WEIGHT_DECAY)
    for number in lesson:
        rng = random.Random(number)
        shows = [True] + [rng.random() < NEW_PICTURE] * (rng.random() < SECOND_TURN)
        count = BATCH // len(shows)
        sample = draw_sample(pictures, count * sum(shows), lesson.generator)
        seen = [subjects[place] for place in sample.glyphs.tolist()]
        # a dialogue's pictures follow each other; without a new one the talk is still of the last
        shown = [
            [seen[row * sum(shows) + min(turn, sum(shows) - 1)] for turn in range(len(shows))]
            for row in range(count)
        ]
        dialogues = draw_dialogues(shown, shows, language, rng)
        with torch.autocast("cpu", torch.bfloat16):
            said = vision(sample.pictures)
        logits, ids = listener.answer_logits(dialogues, said)
        loss = F.cross_entropy(logits, ids)
        right = (logits.argmax(1) == ids).float().mean().item()
        lesson.step(loss, {"loss": loss.item(), "right": right})
