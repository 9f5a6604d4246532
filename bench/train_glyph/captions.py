"""The ways to ask for one glyph: its name, its keywords and its colour, in the forms that people type.

Knows words and picture colours; knows no language model.
"""

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from bench.train_glyph.glyphs import Glyph

FRAMES = (
    "a picture of {a}",
    "a drawing of {a}",
    "an icon of {a}",
    "{a} on a white background",
    "{name} emoji",
    "{name} icon",
    "a cute {name}",
    "the {name}",
)
COLOURS = ("red", "orange", "yellow", "green", "blue", "purple", "pink", "brown", "black", "white", "gray")
RARE = 6  # a keyword of more glyphs than this hardly tells one from another


@dataclass(frozen=True, slots=True)
class Caption:
    text: str
    weight: float  # how often it is drawn, against the other captions of its glyph


def keyword_counts(glyphs: Iterable[Glyph]) -> Counter[str]:
    """In how many glyphs each keyword occurs."""
    return Counter(keyword for glyph in glyphs for keyword in set(glyph.keywords))


def captions_of(glyph: Glyph, counts: Counter[str], colour: str | None, rng: random.Random) -> list[Caption]:
    name, named = glyph.name, with_article(glyph.name)
    words = [word for word in glyph.keywords if word.isalpha() and len(word) > 2 and word not in name.split()]
    telling = [word for word in words if counts[word] <= RARE]
    captions = [Caption(name, 5.0), Caption(named, 2.0), Caption(plural(name), 0.7)]
    captions += [Caption(frame.format(name=name, a=named), 0.7) for frame in rng.sample(FRAMES, 4)]
    if colour and not set(COLOURS) & set(name.split()):
        captions += [Caption(f"{colour} {name}", 1.0), Caption(with_article(f"{colour} {name}"), 1.0)]
    for word in rng.sample(telling, min(len(telling), 4)):
        captions.append(Caption(word, 1.0 / counts[word]))
    for _ in range(5 if words else 0):
        chosen = rng.sample(words, min(len(words), rng.randint(1, 3)))
        captions.append(Caption(with_keywords(name, chosen, rng), 0.7))
    if len(telling) > 1:
        captions.append(Caption(" ".join(rng.sample(telling, min(len(telling), 3))), 0.7))
    return captions


def with_article(name: str) -> str:
    if name.startswith(("a ", "an ", "the ")) or name.endswith("s"):
        return name
    return ("an " if name[0] in "aeiou" else "a ") + name


def plural(name: str) -> str:
    if name.endswith(("s", "x", "ch", "sh")):
        return name + ("" if name.endswith("s") else "es")
    if name.endswith("y") and name[-2:-1] not in "aeiou":
        return name[:-1] + "ies"
    return name + "s"


def with_keywords(name: str, keywords: list[str], rng: random.Random) -> str:
    """The name and some keywords, as a list or as one phrase."""
    if rng.random() < 0.6:
        return ", ".join([name, *keywords])
    return " ".join([*keywords, name])
