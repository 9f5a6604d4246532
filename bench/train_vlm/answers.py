"""Questions about one glyph's picture and the answers that are right.

Knows words; knows no pictures and no language model.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass

from bench.train_glyph.captions import COLOURS, with_article
from bench.train_glyph.glyphs import Glyph

NAME = """What is this?|What is it?|What is this a picture of?|What does the picture show?|What do you see?
What is in the image?|What can you see in this picture?|Name this.|Name this in a few words.
Name the thing in the picture.|Caption this image.|Write a short caption for this picture.|What is shown here?
Give the image a title.|Which emoji is this?|Tell me what this is."""
DESCRIBE = """Describe the picture.|Describe this image.|Describe what you see.|Describe this.
Describe the image in one sentence.|What is happening in this picture?
Please describe the picture in detail."""
TAGS = """List tags for this picture.|Give keywords for this image.|Which words go with this picture?
Tag this image.|Write some tags."""
COLOUR = """What colour is it?|What color is it?|Which colour does it have?|What is the main color?
Name the colour."""

SMALL = frozenset(["a", "an", "the", "of", "in", "on", "with", "and", "for", "to", "no", "face"])
COLOUR_WORDS = frozenset((*COLOURS, "grey", "light", "dark"))


@dataclass(frozen=True, slots=True)
class Subject:
    """What is known of one glyph. `colour` is None where none prevails."""

    glyph: Glyph
    colour: str | None

    @property
    def name(self) -> str:
        return with_article(self.glyph.name)

    @property
    def description(self) -> str:
        name = self.glyph.name
        if self.colour and not set(COLOURS) & set(name.split()):
            return f"a picture of {with_article(f'{self.colour} {name}')}"
        return f"a picture of {with_article(name)}"

    @property
    def tags(self) -> str:
        """The keywords that are no part of the name, or the name where there are none."""
        words = [
            word for word in self.glyph.keywords if word.isalpha() and word not in self.glyph.name.split()
        ]
        return ", ".join(words[:4]) or self.glyph.name

    @property
    def words(self) -> str:
        """All that the picture's tokens should say."""
        return f"{self.name}: {self.description.removeprefix('a picture of ')}, {self.tags}"


def draw_exchange(subject: Subject, rng: random.Random) -> tuple[str, str]:
    """A question and its answer; mostly the name is asked for."""
    kinds: list[tuple[float, str, Callable[[], str]]] = [
        (6, NAME, lambda: subject.name),
        (2, DESCRIBE, lambda: subject.description),
        (1.2, TAGS, lambda: subject.tags),
    ]
    if subject.colour:
        colour = subject.colour
        kinds.append((0.8, COLOUR, lambda: colour))
    _, questions, answer = rng.choices(kinds, [weight for weight, _, _ in kinds])[0]
    return rng.choice(questions.replace("\n", "|").split("|")), answer()


def keywords_of(name: str) -> frozenset[str]:
    """The words of a name that tell what it is: no small words, no "face", no colour beside others."""
    words = {word.removesuffix("s") for word in _words(name)} - SMALL
    return frozenset(words - COLOUR_WORDS or words)


def has_keyword(answer: str, name: str) -> bool:
    """Whether a keyword of the name is a word of the answer, in singular or plural."""
    return not keywords_of(name).isdisjoint(word.removesuffix("s") for word in _words(answer))


def _words(text: str) -> list[str]:
    return re.findall(r"[a-zà-ÿ]+", text.lower().replace("’s", "").replace("'s", ""))
