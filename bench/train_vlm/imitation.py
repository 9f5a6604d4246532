"""The first lesson: the vision half learns to tell the glyphs apart, and to say each as the language model's
own embeddings of its words. The language model does not run, so a step is cheap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.train_vlm.answers import Subject
from bench.train_vlm.augment import augment
from bench.train_vlm.lesson import Lesson
from bench.train_vlm.network import NUM_IMAGE_TOKENS, Language, Vision
from bench.train_vlm.pictures import Pictures

RATE, WEIGHT_DECAY = 1e-3, 0.05
WARM_UP = 200  # steps
BATCH = 64


@dataclass(frozen=True, slots=True)
class Sample:
    pictures: Tensor  # [B, 3, PICTURE, PICTURE] in [-1, 1]
    glyphs: Tensor  # [B]


def draw_sample(pictures: Pictures, size: int, generator: torch.Generator) -> Sample:
    """Any glyphs, each in one of its pictures, augmented."""
    version = torch.multinomial(pictures.shares, size, replacement=True, generator=generator)
    glyphs = torch.randint(pictures.versions.shape[1], (size,), generator=generator)
    return Sample(augment(pictures.versions[version, glyphs], generator), glyphs)


def learn_words(
    vision: Vision,
    language: Language,
    subjects: Sequence[Subject],
    pictures: Pictures,
    checkpoint: Path,
    steps: int,
) -> None:
    ids = word_ids(language, [subject.words for subject in subjects])
    known, targets = ids.unique(return_inverse=True)
    words = language.embed(known).float()
    recognise = nn.Linear(vision.vision_tower.config.hidden_size, len(subjects))
    learner = nn.ModuleDict({"vision": vision, "recognise": recognise})
    lesson = Lesson(learner, checkpoint, steps=steps, rate=RATE, warm_up=WARM_UP, weight_decay=WEIGHT_DECAY)
    for _ in lesson:
        sample = draw_sample(pictures, BATCH, lesson.generator)
        with torch.autocast("cpu", torch.bfloat16):
            features = vision.features(sample.pictures)
            said = vision.multi_modal_projector(features).float().flatten(0, 1)
            guess = recognise(features.mean(1)).float()
        wanted = targets[sample.glyphs].flatten()
        distance = (said - words[wanted]).square().mean() / words.square().mean()
        wording = F.cross_entropy(nearness(said, words), wanted)
        naming = F.cross_entropy(guess, sample.glyphs, label_smoothing=0.05)
        right = (guess.argmax(1) == sample.glyphs).float().mean().item()
        figures = {"right": right, "wording": wording.item(), "distance": distance.item()}
        lesson.step(naming + wording + 2 * distance, figures)


def nearness(said: Tensor, words: Tensor) -> Tensor:
    """Minus the squared distances, [A, D] and [W, D] to [A, W], but for a constant in each row."""
    return 2 * said @ words.T - words.square().sum(1)


def word_ids(language: Language, texts: Sequence[str]) -> Tensor:
    """The first tokens, [N, NUM_IMAGE_TOKENS]; a short text is followed by new lines."""
    new_line = language.tokens("\n")
    return torch.tensor(
        [(language.tokens(text) + new_line * NUM_IMAGE_TOKENS)[:NUM_IMAGE_TOKENS] for text in texts]
    )
