from __future__ import annotations

import pytest

from app.graph.match import types_match


class Wildcard(str):
    """The trick of packs: a str that is never unequal."""

    __slots__ = ()

    def __ne__(self, other):
        return False

    def __eq__(self, other):
        return str.__eq__(self, other)

    __hash__ = str.__hash__


@pytest.mark.parametrize(
    ("received", "expected"),
    [
        ("IMAGE", "IMAGE"),
        ("*", "IMAGE"),
        ("IMAGE", "*"),
        ("COMFY_MATCHTYPE_V3", "IMAGE"),
        ("IMAGE", "COMFY_MATCHTYPE_V3"),
        ("A, B", "B,C"),
        ("A,*", "Z"),
        (["x", "y"], "COMBO"),
        (["x", "y"], ["x", "y"]),
        (Wildcard("odd"), "IMAGE"),
        ("IMAGE", Wildcard("odd")),
    ],
)
def test_these_connect(received, expected):
    assert types_match(received, expected)


@pytest.mark.parametrize(
    ("received", "expected"),
    [("IMAGE", "LATENT"), ("A,B", "C"), (["x"], ["x", "y"]), (["x"], "STRING"), ("STRING", ["x"])],
)
def test_these_do_not(received, expected):
    assert not types_match(received, expected)
