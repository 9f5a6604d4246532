"""Expressions over linked numbers: Python's own arithmetic, and nothing else of Python."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.context import NodeInputError
from nodes.maths import calculate, evaluate


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("a + b", 10),
        ("a * b - 1", 20),
        ("7 / 2", 3.5),
        ("7 // 2", 3),
        ("2 ** 10 % 1000", 24),
        ("-a", -7),
        ("min(a, b, 1)", 1),
        ("round(pi, 2)", 3.14),
        ("a if a > b else b", 7),
        ("1 < b <= 3 < a", True),
        ("b > 3 or a", 7),
        ("b and 0", 0),
        ("not b", False),
        ("ceil(sqrt(50)) + floor(1.9) + pow(2, 3)", 17),
        ("  a\n", 7),
    ],
)
def test_expressions(expression: str, expected: Any) -> None:
    assert evaluate(expression, {"a": 7, "b": 3}) == expected


@given(st.integers(-99, 99), st.integers(-99, 99), st.sampled_from(["+", "-", "*"]))
def test_whole_numbers_come_out_as_python_computes_them(a: int, b: int, sign: str) -> None:
    expected = {"+": a + b, "-": a - b, "*": a * b}[sign]
    assert calculate(expression=f"a {sign} b", values={"a": a, "b": b}) == (
        expected,
        expected,
        bool(expected),
    )


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("a +", "cannot be read"),
        ("", "cannot be read"),
        ("c", "nothing is connected"),
        ("1 / 0", "cannot be computed"),
        ("9 ** 9 ** 9", "too large"),
        ("pow(2, 99999)", "too large"),
        ("__import__('os')", "may not hold"),
        ("a.real", "may not hold"),
        ("[1][0]", "may not hold"),
        ("(lambda: 1)()", "may not hold"),
        ("'text'", "may not hold"),
        ("a is b", "may not hold"),
        ("sqrt(-1)", "cannot be computed"),
        ("min()", "cannot be computed"),
        ("(" * 500 + "1" + ")" * 500, "cannot be"),
        ("1 + " * 900 + "1", "characters"),
    ],
)
def test_what_is_no_expression_is_refused_with_the_reason(expression: str, says: str) -> None:
    with pytest.raises(NodeInputError, match=says):
        calculate(expression=expression, values={"a": 1, "b": 2})


def test_what_is_no_number_is_refused() -> None:
    with pytest.raises(NodeInputError, match="no number"):
        calculate(expression="a - a", values={"a": math.inf})
