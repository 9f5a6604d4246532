"""Texts joined, filled in, searched and shown."""

from __future__ import annotations

from typing import Any

import pytest

from nodes.context import NodeInputError
from nodes.text import (
    compare,
    concatenate,
    contains,
    convert_case,
    extract_from_json,
    fill_in,
    join,
    regex_extract,
    regex_match,
    regex_replace,
    show,
    show_anything,
    substring,
    trim,
)


def test_a_template_takes_its_inputs_by_name() -> None:
    assert fill_in(template="{a} and {b}, {a} {{plain}}", a="x", b="y") == "x and y, x {plain}"


def test_an_input_that_is_not_given_leaves_an_empty_place() -> None:
    assert fill_in(template="<{a}|{d}>", a="x") == "<x|>"


def test_what_an_input_says_is_not_a_template_itself() -> None:
    assert fill_in(template="{a}", a="{b} {x}", b="no") == "{b} {x}"


@pytest.mark.parametrize("template", ["{e}", "{}", "{0}", "{a.__class__}", "{a[0]}"])
def test_an_unknown_place_is_named(template: str) -> None:
    with pytest.raises(NodeInputError, match=r"there are \{a\}, \{b\}, \{c\} and \{d\}"):
        fill_in(template=template, a="x")


@pytest.mark.parametrize("template", ["{a", "a}", "{"])
def test_an_unpaired_brace_is_explained(template: str) -> None:
    with pytest.raises(NodeInputError, match="unpaired brace"):
        fill_in(template=template, a="x")


def test_texts_are_joined_without_those_that_are_not_there() -> None:
    assert join(a="x", b="", separator=", ", d="z") == "x, , z"
    assert concatenate(string_a="x", string_b="y", delimiter="-") == "x-y"


def test_a_text_is_shown_and_passed_on() -> None:
    result = show(text="hello")
    assert (result.values, result.ui) == (("hello",), {"text": ["hello"]})


@pytest.mark.parametrize(
    ("value", "text"),
    [("a", "a"), (1.5, "1.5"), ([1, "ü"], '[\n  1,\n  "ü"\n]'), ({1}, "{1}"), (None, "null")],
)
def test_anything_can_be_shown(value: Any, text: str) -> None:
    assert show_anything(source=value).ui == {"text": [text]}


def test_small_changes() -> None:
    assert substring(string="abcdef", start=1, end=-1) == "bcde"
    assert trim(string=" a ", mode="Left") == "a "
    assert [
        convert_case(string="aB c", mode=m) for m in ("UPPERCASE", "lowercase", "Capitalize", "Title Case")
    ] == [
        "AB C",
        "ab c",
        "Ab c",
        "Ab C",
    ]


def test_comparisons_can_leave_case_aside() -> None:
    assert contains(string="Abc", substring="bC", case_sensitive=False)
    assert not contains(string="Abc", substring="bC")
    assert compare(string_a="Abc", string_b="aB", mode="Starts With", case_sensitive=False)
    assert compare(string_a="Abc", string_b="bc", mode="Ends With")
    assert not compare(string_a="Abc", string_b="abc", mode="Equal")


@pytest.mark.parametrize(
    ("mode", "found"),
    [
        ("First Match", "k1=v1"),
        ("All Matches", "k1=v1\nk2=v2"),
        ("First Group", "v1"),
        ("All Groups", "v1\nv2"),
    ],
)
def test_what_a_pattern_finds(mode: Any, found: str) -> None:
    assert (
        regex_extract(string="k1=v1, k2=v2", regex_pattern=r"(\w+)=(\w+)", mode=mode, group_index=2) == found
    )


def test_a_pattern_that_finds_nothing_gives_nothing() -> None:
    assert regex_extract(string="x", regex_pattern="y") == ""
    assert regex_extract(string="x", regex_pattern="(x)", mode="First Group", group_index=7) == ""
    assert not regex_match(string="x", regex_pattern="y")


def test_a_pattern_replaces_with_its_groups() -> None:
    assert regex_replace(string="a1 B2", regex_pattern=r"([a-z])(\d)", replace=r"\2\1") == "1a 2B"
    assert regex_replace(string="aaa", regex_pattern="a", replace="b", count=2) == "bba"


def test_a_broken_pattern_is_explained() -> None:
    with pytest.raises(NodeInputError, match="no regular expression"):
        regex_match(string="x", regex_pattern="(")
    with pytest.raises(NodeInputError, match="does not fit the pattern"):
        regex_replace(string="x", regex_pattern="x", replace=r"\9")


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ('{"k": "v"}', "v"),
        ('{"k": [1, "ü"]}', '[1, "ü"]'),
        ('{"k": null}', ""),
        ("[]", ""),
        ("no", ""),
        ("{}", ""),
    ],
)
def test_a_key_of_a_json_text(document: str, text: str) -> None:
    assert extract_from_json(json_string=document, key="k") == text


def test_a_pattern_that_takes_ages_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nodes.text.MATCHING_TIMEOUT_S", 0.2)
    evil, text = r"(a|aa)+$", "a" * 60 + "b"
    for ask in (
        lambda: regex_match(string=text, regex_pattern=evil),
        lambda: regex_extract(string=text, regex_pattern=evil),
        lambda: regex_replace(string=text, regex_pattern=evil, replace=""),
    ):
        with pytest.raises(NodeInputError, match=r"still searching after 0\.2 s"):
            ask()
