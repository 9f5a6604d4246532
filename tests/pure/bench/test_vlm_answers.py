"""What counts as naming a picture rightly, and what the embedded vision-language model is taught to say."""

from __future__ import annotations

import random

import pytest

from bench.train_glyph.glyphs import Glyph
from bench.train_vlm.answers import Subject, draw_exchange, has_keyword, keywords_of


@pytest.mark.parametrize(
    ("name", "keywords"),
    [
        ("red heart", {"heart"}),
        ("cat face", {"cat"}),
        ("face with tears of joy", {"tear", "joy"}),
        ("jack-o-lantern", {"jack", "o", "lantern"}),
        ("orange", {"orange"}),
    ],
)
def test_a_name_has_keywords(name: str, keywords: set[str]) -> None:
    assert keywords_of(name) == keywords


@pytest.mark.parametrize(
    ("answer", "name", "is_right"),
    [
        ("a red heart", "red heart", True),
        ("It is a Heart.", "red heart", True),
        ("a red apple", "red heart", False),
        ("two grape", "grapes", True),
        ("a category", "cat face", False),
        ("a face", "dog face", False),
        ("", "rocket", False),
    ],
)
def test_an_answer_is_right_where_it_holds_a_keyword(answer: str, name: str, is_right: bool) -> None:
    assert has_keyword(answer, name) == is_right


def test_the_colour_is_part_of_a_description_unless_the_name_says_one() -> None:
    assert Subject(Glyph("ant", "🐜", ()), "black").description == "a picture of a black ant"
    assert Subject(Glyph("blue heart", "💙", ()), "blue").description == "a picture of a blue heart"
    assert Subject(Glyph("ant", "🐜", ()), None).description == "a picture of an ant"


def test_tags_tell_more_than_the_name() -> None:
    assert (
        Subject(Glyph("hot dog", "🌭", ("dog", "food", "hot-dog", "sausage")), None).tags == "food, sausage"
    )
    assert Subject(Glyph("hot dog", "🌭", ("dog",)), None).tags == "hot dog"


def test_nobody_asks_for_the_colour_of_what_has_none() -> None:
    rng = random.Random(0)
    colourless, green = (Subject(Glyph("frog", "🐸", ("animal",)), colour) for colour in (None, "green"))
    questions = [draw_exchange(colourless, rng)[0].lower() for _ in range(300)]
    assert not any("colo" in question for question in questions)
    assert ("Name the colour.", "green") in [draw_exchange(green, rng) for _ in range(600)]
